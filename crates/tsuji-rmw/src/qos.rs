//! Quality of service as C says it, and as tsuji does.

use std::ffi::c_char;
use std::time::Duration;

use tsuji::{Context, Durability, EndpointKind, History, Liveliness, Qos, Reliability};
use tsuji_core::rxo::{self, QosPolicy};

use crate::check::{not_null, reference_mut};
use crate::error::{Result, RmwError, guard};
use crate::ffi::rmw::{
    RMW_DURATION_BEST_AVAILABLE, RMW_QOS_POLICY_DURABILITY_BEST_AVAILABLE,
    RMW_QOS_POLICY_LIVELINESS_BEST_AVAILABLE, RMW_QOS_POLICY_RELIABILITY_BEST_AVAILABLE,
};
use crate::ffi::rmw::{
    RMW_DURATION_INFINITE, RMW_DURATION_UNSPECIFIED, RMW_QOS_COMPATIBILITY_ERROR,
    RMW_QOS_COMPATIBILITY_OK, RMW_QOS_COMPATIBILITY_WARNING, RMW_QOS_POLICY_DEPTH_SYSTEM_DEFAULT,
    RMW_QOS_POLICY_DURABILITY_SYSTEM_DEFAULT, RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL,
    RMW_QOS_POLICY_DURABILITY_UNKNOWN, RMW_QOS_POLICY_DURABILITY_VOLATILE,
    RMW_QOS_POLICY_HISTORY_KEEP_ALL, RMW_QOS_POLICY_HISTORY_KEEP_LAST,
    RMW_QOS_POLICY_HISTORY_SYSTEM_DEFAULT, RMW_QOS_POLICY_HISTORY_UNKNOWN,
    RMW_QOS_POLICY_LIVELINESS_AUTOMATIC, RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC,
    RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT, RMW_QOS_POLICY_LIVELINESS_UNKNOWN,
    RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT, RMW_QOS_POLICY_RELIABILITY_RELIABLE,
    RMW_QOS_POLICY_RELIABILITY_SYSTEM_DEFAULT, RMW_QOS_POLICY_RELIABILITY_UNKNOWN,
    rmw_qos_compatibility_type_t, rmw_qos_profile_t, rmw_ret_t, rmw_time_t,
};

/// What a publisher of this topic offers that is to be of this profile.
///
/// What is to be the best available is what fits all subscriptions that are known now: reliable and
/// transient local, manual by topic if one asks for it, the shortest deadline and lease of any.
pub(crate) fn of_publisher(
    context: &Context,
    topic: &str,
    profile: &rmw_qos_profile_t,
) -> Result<Qos> {
    asked(profile, || best_offer(&known(context, topic, EndpointKind::Subscription)))
}

/// What a subscription to this topic asks for that is to be of this profile.
///
/// What is to be the best available is the most that every publisher offers that is known now; while
/// none is, the most there is.
pub(crate) fn of_subscription(
    context: &Context,
    topic: &str,
    profile: &rmw_qos_profile_t,
) -> Result<Qos> {
    asked(profile, || best_request(&known(context, topic, EndpointKind::Publisher)))
}

/// What a server or a client offers and asks for that is to be of this profile. The best available is
/// as in the profile of services: the default one.
pub(crate) fn of_service(profile: &rmw_qos_profile_t) -> Result<Qos> {
    asked(profile, || Qos::DEFAULT)
}

/// The profile of an endpoint, with nothing left open.
pub(crate) fn profile(qos: &Qos) -> rmw_qos_profile_t {
    let (history, depth) = match qos.history {
        History::KeepLast(depth) => (RMW_QOS_POLICY_HISTORY_KEEP_LAST, depth),
        History::KeepAll => (RMW_QOS_POLICY_HISTORY_KEEP_ALL, 0),
    };
    rmw_qos_profile_t {
        history,
        depth: usize::try_from(depth).unwrap_or(usize::MAX),
        reliability: match qos.reliability {
            Reliability::Reliable => RMW_QOS_POLICY_RELIABILITY_RELIABLE,
            Reliability::BestEffort => RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT,
        },
        durability: match qos.durability {
            Durability::TransientLocal => RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL,
            Durability::Volatile => RMW_QOS_POLICY_DURABILITY_VOLATILE,
        },
        deadline: time(qos.deadline),
        lifespan: time(qos.lifespan),
        liveliness: match qos.liveliness {
            Liveliness::Automatic => RMW_QOS_POLICY_LIVELINESS_AUTOMATIC,
            Liveliness::ManualByTopic => RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC,
        },
        liveliness_lease_duration: time(qos.liveliness_lease),
        avoid_ros_namespace_conventions: false,
    }
}

/// Whether a publisher and a subscription of these profiles would fit, and if not, or perhaps not, why:
/// first what does not fit, then what may not.
///
/// # Safety
///
/// `compatibility` is null or valid, and `reason` is null or has room for `reason_size` characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_qos_profile_check_compatible(
    publisher_profile: rmw_qos_profile_t,
    subscription_profile: rmw_qos_profile_t,
    compatibility: *mut rmw_qos_compatibility_type_t,
    reason: *mut c_char,
    reason_size: usize,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let compatibility = unsafe { reference_mut("compatibility", compatibility) }?;
        if reason_size != 0 {
            not_null("reason", reason)?;
        }
        let (answer, why) = compatible(&publisher_profile, &subscription_profile)?;
        *compatibility = answer;
        if !reason.is_null() {
            // SAFETY: the caller promises it.
            unsafe { write(&why, reason, reason_size) };
        }
        Ok(())
    })
}

/// As much of a text as there is room for, and a NUL.
///
/// # Safety
///
/// There is room for `size` characters.
unsafe fn write(text: &str, to: *mut c_char, size: usize) {
    let Some(most) = size.checked_sub(1) else { return };
    let whole = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    let bytes = &text.as_bytes()[..whole.unwrap_or_default()];
    // SAFETY: the caller promises the room, and there are less than that.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), to, bytes.len());
        to.add(bytes.len()).write(0);
    }
}

/// The QoS of those of this kind that are known now.
fn known(context: &Context, topic: &str, kind: EndpointKind) -> Vec<Qos> {
    let endpoints = context.endpoints_of(topic).into_iter();
    endpoints.filter(|it| it.kind == kind).map(|it| it.qos).collect()
}

/// The most that is fit for all of these subscriptions.
fn best_offer(subscriptions: &[Qos]) -> Qos {
    let liveliness = subscriptions.iter().map(|it| it.liveliness).max();
    Qos {
        reliability: Reliability::Reliable,
        durability: Durability::TransientLocal,
        liveliness: liveliness.unwrap_or(Liveliness::Automatic),
        deadline: subscriptions.iter().filter_map(|it| it.deadline).min(),
        liveliness_lease: subscriptions.iter().filter_map(|it| it.liveliness_lease).min(),
        ..Qos::DEFAULT
    }
}

/// The most that all of these publishers offer.
fn best_request(publishers: &[Qos]) -> Qos {
    // Infinite is the longest.
    let longest = |period: fn(&Qos) -> Option<Duration>| {
        let periods: Option<Vec<_>> = publishers.iter().map(period).collect();
        periods?.into_iter().max()
    };
    let reliability = publishers.iter().map(|it| it.reliability).min();
    let durability = publishers.iter().map(|it| it.durability).min();
    let liveliness = publishers.iter().map(|it| it.liveliness).min();
    Qos {
        reliability: reliability.unwrap_or(Reliability::Reliable),
        durability: durability.unwrap_or(Durability::TransientLocal),
        liveliness: liveliness.unwrap_or(Liveliness::ManualByTopic),
        deadline: longest(|it| it.deadline),
        liveliness_lease: longest(|it| it.liveliness_lease),
        ..Qos::DEFAULT
    }
}

/// A QoS of this profile, with `best` in the places of what is to be the best available.
fn asked(profile: &rmw_qos_profile_t, best: impl FnOnce() -> Qos) -> Result<Qos> {
    let open = Open::of(profile)?;
    let best = if open.wants_best() { best() } else { Qos::DEFAULT };
    let qos = Qos {
        history: open.history.or(Qos::DEFAULT.history, best.history)?,
        reliability: open.reliability.or(Reliability::Reliable, best.reliability)?,
        durability: open.durability.or(Durability::Volatile, best.durability)?,
        deadline: open.deadline.or(None, best.deadline)?,
        lifespan: open.lifespan,
        liveliness: open.liveliness.or(Liveliness::Automatic, best.liveliness)?,
        liveliness_lease: open.liveliness_lease.or(None, best.liveliness_lease)?,
    };
    qos.validate().map_err(|error| RmwError::invalid(error.to_string()))?;
    Ok(qos)
}

/// A profile as it was written, its numbers understood.
struct Open {
    history: Said<History>,
    reliability: Said<Reliability>,
    durability: Said<Durability>,
    deadline: Said<Option<Duration>>,
    lifespan: Option<Duration>,
    liveliness: Said<Liveliness>,
    liveliness_lease: Said<Option<Duration>>,
}

/// What a profile says of one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said<T> {
    This(T),
    SystemDefault,
    BestAvailable,
    /// The value that stands for not knowing.
    Unknown(&'static str),
}

impl<T: Copy> Said<T> {
    fn or(self, default: T, best: T) -> Result<T> {
        match self {
            Self::This(value) => Ok(value),
            Self::SystemDefault => Ok(default),
            Self::BestAvailable => Ok(best),
            Self::Unknown(policy) => Err(RmwError::invalid(format!(
                "{policy} is unknown; allowed: a value, or the system's default"
            ))),
        }
    }
}

impl<T: Copy> Said<T> {
    /// The value, or `open` if it is not known.
    fn open_as(self, open: T) -> T {
        if let Self::This(value) = self { value } else { open }
    }

    /// `best` if it is to be the best available, else `other`.
    fn best_as(self, best: T, other: T) -> T {
        if matches!(self, Self::BestAvailable) { best } else { other }
    }

    fn word(self, value: impl FnOnce(&T) -> String) -> String {
        match self {
            Self::This(this) => value(&this),
            Self::SystemDefault => "system_default".to_owned(),
            Self::BestAvailable => "best_available".to_owned(),
            Self::Unknown(_) => "unknown".to_owned(),
        }
    }
}

impl Open {
    fn of(profile: &rmw_qos_profile_t) -> Result<Self> {
        let refuse = |policy: &str, value: u32| {
            Err(RmwError::invalid(format!("{policy} is {value}; allowed: those that rmw names")))
        };
        let history = match (profile.history, profile.depth) {
            (RMW_QOS_POLICY_HISTORY_KEEP_ALL, _) => Said::This(History::KeepAll),
            (RMW_QOS_POLICY_HISTORY_UNKNOWN, _) => Said::Unknown("history"),
            (
                RMW_QOS_POLICY_HISTORY_KEEP_LAST | RMW_QOS_POLICY_HISTORY_SYSTEM_DEFAULT,
                RMW_QOS_POLICY_DEPTH_SYSTEM_DEFAULT,
            ) => Said::This(History::KeepLast(1)),
            (RMW_QOS_POLICY_HISTORY_KEEP_LAST | RMW_QOS_POLICY_HISTORY_SYSTEM_DEFAULT, depth) => {
                Said::This(History::KeepLast(u32::try_from(depth).unwrap_or(u32::MAX)))
            }
            (other, _) => return refuse("history", other),
        };
        let reliability = match profile.reliability {
            RMW_QOS_POLICY_RELIABILITY_SYSTEM_DEFAULT => Said::SystemDefault,
            RMW_QOS_POLICY_RELIABILITY_RELIABLE => Said::This(Reliability::Reliable),
            RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT => Said::This(Reliability::BestEffort),
            RMW_QOS_POLICY_RELIABILITY_UNKNOWN => Said::Unknown("reliability"),
            RMW_QOS_POLICY_RELIABILITY_BEST_AVAILABLE => Said::BestAvailable,
            other => return refuse("reliability", other),
        };
        let durability = match profile.durability {
            RMW_QOS_POLICY_DURABILITY_SYSTEM_DEFAULT => Said::SystemDefault,
            RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL => Said::This(Durability::TransientLocal),
            RMW_QOS_POLICY_DURABILITY_VOLATILE => Said::This(Durability::Volatile),
            RMW_QOS_POLICY_DURABILITY_UNKNOWN => Said::Unknown("durability"),
            RMW_QOS_POLICY_DURABILITY_BEST_AVAILABLE => Said::BestAvailable,
            other => return refuse("durability", other),
        };
        // By node is not among them: rmw has given it up.
        let liveliness = match profile.liveliness {
            RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT => Said::SystemDefault,
            RMW_QOS_POLICY_LIVELINESS_AUTOMATIC => Said::This(Liveliness::Automatic),
            RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC => Said::This(Liveliness::ManualByTopic),
            RMW_QOS_POLICY_LIVELINESS_UNKNOWN => Said::Unknown("liveliness"),
            RMW_QOS_POLICY_LIVELINESS_BEST_AVAILABLE => Said::BestAvailable,
            other => return refuse("liveliness", other),
        };
        Ok(Self {
            history,
            reliability,
            durability,
            deadline: period_said(profile.deadline),
            lifespan: period(profile.lifespan),
            liveliness,
            liveliness_lease: period_said(profile.liveliness_lease_duration),
        })
    }

    /// The strongest offer that it may be.
    fn strongest(&self) -> Qos {
        let shortest = Some(Duration::from_nanos(1));
        Qos {
            reliability: self.reliability.open_as(Reliability::Reliable),
            durability: self.durability.open_as(Durability::TransientLocal),
            deadline: self.deadline.open_as(shortest),
            liveliness: self.liveliness.open_as(Liveliness::ManualByTopic),
            liveliness_lease: self.liveliness_lease.open_as(shortest),
            ..Qos::DEFAULT
        }
    }

    /// The weakest request that it may be.
    fn weakest(&self) -> Qos {
        Qos {
            reliability: self.reliability.open_as(Reliability::BestEffort),
            durability: self.durability.open_as(Durability::Volatile),
            deadline: self.deadline.open_as(None),
            liveliness: self.liveliness.open_as(Liveliness::Automatic),
            liveliness_lease: self.liveliness_lease.open_as(None),
            ..Qos::DEFAULT
        }
    }

    /// The weakest offer that it may be. The best available fits.
    fn at_least(&self) -> Qos {
        let (weak, strong) = (self.weakest(), self.strongest());
        self.fitting(weak, strong)
    }

    /// The strongest request that it may be. The best available fits.
    fn at_most(&self) -> Qos {
        let (weak, strong) = (self.weakest(), self.strongest());
        self.fitting(strong, weak)
    }

    /// `open`, with `best` in the places of what is to be the best available.
    fn fitting(&self, open: Qos, best: Qos) -> Qos {
        Qos {
            reliability: self.reliability.best_as(best.reliability, open.reliability),
            durability: self.durability.best_as(best.durability, open.durability),
            deadline: self.deadline.best_as(best.deadline, open.deadline),
            liveliness: self.liveliness.best_as(best.liveliness, open.liveliness),
            liveliness_lease: self
                .liveliness_lease
                .best_as(best.liveliness_lease, open.liveliness_lease),
            ..Qos::DEFAULT
        }
    }

    /// What it says of a policy.
    fn word(&self, policy: QosPolicy) -> String {
        match policy {
            QosPolicy::Reliability => self.reliability.word(ToString::to_string),
            QosPolicy::Durability => self.durability.word(ToString::to_string),
            QosPolicy::Liveliness => self.liveliness.word(ToString::to_string),
            QosPolicy::Deadline => self.deadline.word(|it| format!("{it:?}")),
            QosPolicy::LivelinessLease => self.liveliness_lease.word(|it| format!("{it:?}")),
        }
    }

    fn wants_best(&self) -> bool {
        self.reliability == Said::BestAvailable
            || self.durability == Said::BestAvailable
            || self.liveliness == Said::BestAvailable
            || self.deadline == Said::BestAvailable
            || self.liveliness_lease == Said::BestAvailable
    }
}

fn period_said(time: rmw_time_t) -> Said<Option<Duration>> {
    if time == RMW_DURATION_BEST_AVAILABLE {
        return Said::BestAvailable;
    }
    Said::This(period(time))
}

/// A period, or `None` if it is infinite, not specified, or longer than can be announced.
pub(crate) fn period(time: rmw_time_t) -> Option<Duration> {
    if time == RMW_DURATION_UNSPECIFIED {
        return None;
    }
    let period = Duration::from_secs(time.sec).checked_add(Duration::from_nanos(time.nsec))?;
    (period <= Qos::DURATION_MAX).then_some(period)
}

fn time(period: Option<Duration>) -> rmw_time_t {
    period.map_or(RMW_DURATION_INFINITE, |period| rmw_time_t {
        sec: period.as_secs(),
        nsec: u64::from(period.subsec_nanos()),
    })
}

/// The answer, and why: what does not fit whatever is not known turns out to be, and what may not.
fn compatible(
    publisher: &rmw_qos_profile_t,
    subscription: &rmw_qos_profile_t,
) -> Result<(rmw_qos_compatibility_type_t, String)> {
    let (offered, requested) = (Open::of(publisher)?, Open::of(subscription)?);
    let mismatches =
        |offered: &Qos, requested: &Qos| rxo::check(offered, requested).err().unwrap_or_default();
    let errors = mismatches(&offered.strongest(), &requested.weakest());
    let doubts = mismatches(&offered.at_least(), &requested.at_most());
    let policies: Vec<_> = errors.iter().map(|it| it.policy).collect();
    let errors: Vec<_> = errors.iter().map(|it| format!("ERROR: {it};")).collect();
    let doubts: Vec<_> = doubts
        .iter()
        .filter(|it| !policies.contains(&it.policy))
        .map(|it| {
            let (offered, requested) = (offered.word(it.policy), requested.word(it.policy));
            format!("WARNING: {}: offered {offered}, requested {requested};", it.policy)
        })
        .collect();
    let answer = match (errors.is_empty(), doubts.is_empty()) {
        (false, _) => RMW_QOS_COMPATIBILITY_ERROR,
        (true, false) => RMW_QOS_COMPATIBILITY_WARNING,
        (true, true) => RMW_QOS_COMPATIBILITY_OK,
    };
    Ok((answer, [errors, doubts].concat().concat()))
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::ptr;

    use super::*;
    use crate::ffi::rmw::{
        RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_NODE, RMW_RET_INVALID_ARGUMENT, RMW_RET_OK,
    };

    /// As `rmw_qos_profile_default`.
    fn default() -> rmw_qos_profile_t {
        rmw_qos_profile_t {
            history: RMW_QOS_POLICY_HISTORY_KEEP_LAST,
            depth: 10,
            reliability: RMW_QOS_POLICY_RELIABILITY_RELIABLE,
            durability: RMW_QOS_POLICY_DURABILITY_VOLATILE,
            deadline: RMW_DURATION_UNSPECIFIED,
            lifespan: RMW_DURATION_UNSPECIFIED,
            liveliness: RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT,
            liveliness_lease_duration: RMW_DURATION_UNSPECIFIED,
            avoid_ros_namespace_conventions: false,
        }
    }

    /// As `rmw_qos_profile_unknown`.
    fn unknown() -> rmw_qos_profile_t {
        rmw_qos_profile_t {
            history: RMW_QOS_POLICY_HISTORY_UNKNOWN,
            depth: 0,
            reliability: RMW_QOS_POLICY_RELIABILITY_UNKNOWN,
            durability: RMW_QOS_POLICY_DURABILITY_UNKNOWN,
            liveliness: RMW_QOS_POLICY_LIVELINESS_UNKNOWN,
            ..default()
        }
    }

    const fn seconds(sec: u64) -> rmw_time_t {
        rmw_time_t { sec, nsec: 0 }
    }

    #[test]
    fn there_and_back() {
        let check = |profile: rmw_qos_profile_t, expect: Qos| {
            let qos = of_service(&profile).unwrap();
            assert_eq!(qos, expect);
            assert_eq!(of_service(&super::profile(&qos)).unwrap(), expect);
        };
        check(default(), Qos::DEFAULT);
        let history = |history| Qos { history, ..Qos::DEFAULT };
        let keep_all = RMW_QOS_POLICY_HISTORY_KEEP_ALL;
        check(rmw_qos_profile_t { history: keep_all, ..default() }, history(History::KeepAll));
        let deep = rmw_qos_profile_t { depth: 1000, ..default() };
        check(deep, history(History::KeepLast(1000)));
        check(rmw_qos_profile_t { depth: 0, ..default() }, history(History::KeepLast(1)));
        let system = rmw_qos_profile_t {
            history: RMW_QOS_POLICY_HISTORY_SYSTEM_DEFAULT,
            depth: 0,
            reliability: RMW_QOS_POLICY_RELIABILITY_SYSTEM_DEFAULT,
            durability: RMW_QOS_POLICY_DURABILITY_SYSTEM_DEFAULT,
            ..default()
        };
        check(system, history(History::KeepLast(1)));
        let strict = rmw_qos_profile_t {
            reliability: RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT,
            durability: RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL,
            deadline: rmw_time_t { sec: 1, nsec: 5 },
            lifespan: rmw_time_t { sec: 0, nsec: 2_000_000_000 },
            liveliness: RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC,
            liveliness_lease_duration: seconds(3),
            ..default()
        };
        let expect = Qos {
            reliability: Reliability::BestEffort,
            durability: Durability::TransientLocal,
            deadline: Some(Duration::new(1, 5)),
            lifespan: Some(Duration::from_secs(2)),
            liveliness: Liveliness::ManualByTopic,
            liveliness_lease: Some(Duration::from_secs(3)),
            ..Qos::DEFAULT
        };
        check(strict, expect);
        for long in [RMW_DURATION_INFINITE, seconds(1 << 31), seconds(u64::MAX)] {
            check(rmw_qos_profile_t { deadline: long, lifespan: long, ..default() }, Qos::DEFAULT);
        }
        assert_eq!(profile(&Qos::DEFAULT).deadline, RMW_DURATION_INFINITE);
    }

    #[test]
    fn what_cannot_be() {
        let check = |profile: rmw_qos_profile_t, expect: &str| {
            let error = of_service(&profile).unwrap_err();
            assert_eq!((error.ret(), &*error.to_string()), (RMW_RET_INVALID_ARGUMENT, expect));
        };
        check(unknown(), "history is unknown; allowed: a value, or the system's default");
        let no_reliability =
            rmw_qos_profile_t { reliability: RMW_QOS_POLICY_RELIABILITY_UNKNOWN, ..default() };
        check(no_reliability, "reliability is unknown; allowed: a value, or the system's default");
        let by_node = RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_NODE;
        let by_node = rmw_qos_profile_t { liveliness: by_node, ..default() };
        check(by_node, "liveliness is 2; allowed: those that rmw names");
        let odd = rmw_qos_profile_t { durability: 77, ..default() };
        check(odd, "durability is 77; allowed: those that rmw names");
        let deep = rmw_qos_profile_t { depth: usize::MAX, ..default() };
        check(deep, "history: depth 4294967295; allowed: 1 to 1000000, or keep_all");
    }

    #[test]
    fn the_best_available() {
        let best = rmw_qos_profile_t {
            reliability: RMW_QOS_POLICY_RELIABILITY_BEST_AVAILABLE,
            durability: RMW_QOS_POLICY_DURABILITY_BEST_AVAILABLE,
            deadline: RMW_DURATION_BEST_AVAILABLE,
            liveliness: RMW_QOS_POLICY_LIVELINESS_BEST_AVAILABLE,
            liveliness_lease_duration: RMW_DURATION_BEST_AVAILABLE,
            ..default()
        };
        assert_eq!(of_service(&best).unwrap(), Qos::DEFAULT);
        let second = Some(Duration::from_secs(1));
        let strict = Qos {
            durability: Durability::TransientLocal,
            liveliness: Liveliness::ManualByTopic,
            deadline: second,
            liveliness_lease: second,
            ..Qos::DEFAULT
        };
        let lax = Qos { deadline: Some(Duration::from_secs(2)), ..Qos::SENSOR_DATA };
        let offers = |others: &[Qos]| asked(&best, || best_offer(others)).unwrap();
        let transient = Qos { durability: Durability::TransientLocal, ..Qos::DEFAULT };
        assert_eq!(offers(&[]), transient);
        assert_eq!(offers(&[lax]), Qos { deadline: lax.deadline, ..transient });
        assert_eq!(offers(&[lax, strict]), strict);
        let asks = |others: &[Qos]| asked(&best, || best_request(others)).unwrap();
        let most = Qos { liveliness: Liveliness::ManualByTopic, ..transient };
        assert_eq!(asks(&[]), most);
        assert_eq!(asks(&[strict]), strict);
        let expect = Qos { history: Qos::DEFAULT.history, ..lax };
        assert_eq!(asks(&[lax, strict]), expect);
        assert_eq!(asks(&[strict, Qos::DEFAULT]), Qos::DEFAULT);
    }

    #[test]
    fn compatibility() {
        let check = |publisher, subscription, expect: (rmw_qos_compatibility_type_t, &str)| {
            let mut answer = 9;
            let mut reason = [0x55; 2048];
            let (text, room) = (reason.as_mut_ptr().cast(), reason.len());
            // SAFETY: there is this room.
            let ret = unsafe {
                rmw_qos_profile_check_compatible(publisher, subscription, &mut answer, text, room)
            };
            assert_eq!(ret, RMW_RET_OK);
            let reason = CStr::from_bytes_until_nul(&reason).unwrap().to_str().unwrap();
            assert_eq!((answer, reason), expect);
        };
        let full = profile(&Qos::DEFAULT);
        check(full, full, (RMW_QOS_COMPATIBILITY_OK, ""));
        let text = "WARNING: liveliness: offered system_default, requested system_default;";
        check(default(), default(), (RMW_QOS_COMPATIBILITY_WARNING, text));
        let sensor = profile(&Qos::SENSOR_DATA);
        let text = "ERROR: reliability: offered best_effort, requested reliable;";
        check(sensor, full, (RMW_QOS_COMPATIBILITY_ERROR, text));
        check(full, sensor, (RMW_QOS_COMPATIBILITY_OK, ""));
        let late = rmw_qos_profile_t { deadline: seconds(1), ..full };
        let text = "ERROR: deadline: offered infinite, requested 1s;";
        check(full, late, (RMW_QOS_COMPATIBILITY_ERROR, text));
        let text = "ERROR: deadline: offered infinite, requested 1s;\
                    WARNING: reliability: offered unknown, requested reliable;";
        check(unknown(), late, (RMW_QOS_COMPATIBILITY_ERROR, text));
        {
            let best = RMW_QOS_POLICY_RELIABILITY_BEST_AVAILABLE;
            let best = rmw_qos_profile_t {
                reliability: best,
                deadline: RMW_DURATION_BEST_AVAILABLE,
                ..full
            };
            check(best, late, (RMW_QOS_COMPATIBILITY_OK, ""));
            check(sensor, best, (RMW_QOS_COMPATIBILITY_OK, ""));
        }
    }

    #[test]
    fn a_reason_is_cut_to_its_room() {
        let check = |room: usize, expect: &[u8]| {
            let (full, sensor) = (profile(&Qos::DEFAULT), profile(&Qos::SENSOR_DATA));
            let mut answer = 9;
            let mut reason = [b'x'; 8];
            let text = reason.as_mut_ptr().cast();
            // SAFETY: there is more room than this.
            let ret =
                unsafe { rmw_qos_profile_check_compatible(sensor, full, &mut answer, text, room) };
            assert_eq!((ret, answer), (RMW_RET_OK, RMW_QOS_COMPATIBILITY_ERROR));
            assert_eq!(reason, expect);
        };
        check(0, b"xxxxxxxx");
        check(1, b"\0xxxxxxx");
        check(6, b"ERROR\0xx");
        let full = profile(&Qos::DEFAULT);
        let mut answer = 9;
        let nowhere = ptr::null_mut();
        // SAFETY: null is allowed.
        unsafe {
            let ret = rmw_qos_profile_check_compatible(full, full, nowhere, ptr::null_mut(), 0);
            assert_eq!(ret, RMW_RET_INVALID_ARGUMENT);
            let ret = rmw_qos_profile_check_compatible(full, full, &mut answer, ptr::null_mut(), 1);
            assert_eq!(ret, RMW_RET_INVALID_ARGUMENT);
            let ret = rmw_qos_profile_check_compatible(full, full, &mut answer, ptr::null_mut(), 0);
            assert_eq!((ret, answer), (RMW_RET_OK, RMW_QOS_COMPATIBILITY_OK));
        }
    }
}

//! QoS as it is announced over RTPS, and what an announcement means to tsuji.
//!
//! From `create_readwrite_qos` and `dds_qos_to_rmw_qos` in rmw_cyclonedds, `rmw_node.cpp`;
//! `fill_entity_qos_from_profile` in rmw_fastrtps, `rmw_fastrtps_shared_cpp/src/qos.cpp`; rmw,
//! `time.h` and `qos_profiles.h`:
//!
//! - Data are XCDR1 and topics have no key. rmw_cyclonedds turns automatic disposal off.
//! - A duration that rmw leaves unspecified is infinite, and so is `None` here.
//! - A reliable writer's blocking time is announced (Cyclone DDS: infinite, Fast DDS: 100 ms) and not
//!   matched. It is not here, since tsuji never blocks in an engine.
//!
//! Whether an offer satisfies a request is decided by [`tsuji_core::rxo`], on the values that
//! [`WireQos::offered`] and [`WireQos::requested`] give.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tsuji_core::{Durability, History, InvalidQos, Liveliness, Qos, Reliability};

/// The QoS of a writer or reader on RTPS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireQos {
    /// As in ROS 2.
    pub reliability: Reliability,
    /// As in ROS 2, with the two kinds that only a foreign DDS program asks for.
    pub durability: WireDurability,
    /// `None` where it was not announced: RTPS does not require it, and nothing is matched by it.
    /// An engine may put DDS's default in its place, keep last 1.
    pub history: Option<History>,
    /// `None` is infinite.
    pub deadline: Option<Duration>,
    /// `None` is infinite. Readers do not announce it.
    pub lifespan: Option<Duration>,
    /// As in ROS 2, with the kind that only a foreign DDS program asks for.
    pub liveliness: WireLiveliness,
    /// `None` is infinite.
    pub lease: Option<Duration>,
}

impl WireQos {
    /// What an endpoint of this QoS announces; refused as [`Qos::validate`] refuses.
    pub fn new(qos: &Qos) -> Result<Self, InvalidQos> {
        qos.validate()?;
        Ok(Self {
            reliability: qos.reliability,
            durability: match qos.durability {
                Durability::Volatile => WireDurability::Volatile,
                Durability::TransientLocal => WireDurability::TransientLocal,
            },
            history: Some(qos.history),
            deadline: qos.deadline,
            lifespan: qos.lifespan,
            liveliness: match qos.liveliness {
                Liveliness::Automatic => WireLiveliness::Automatic,
                Liveliness::ManualByTopic => WireLiveliness::ManualByTopic,
            },
            lease: qos.liveliness_lease,
        })
    }

    /// The history of the durability service, which Cyclone DDS keeps for late joiners apart from
    /// the writer's own: as deep as the history, without a cleanup delay and other limits.
    pub fn durability_service(&self) -> Option<History> {
        self.history.filter(|_| self.durability == WireDurability::TransientLocal)
    }

    /// How often Fast DDS is told to assert liveliness: two thirds of the lease, below the 0.7 that
    /// its documentation sets as the most.
    pub fn announcement_period(&self) -> Option<Duration> {
        self.lease.map(|lease| lease / 3 * 2)
    }

    /// What this writer offers, as far as tsuji's QoS has words for it; the rest is rounded down to
    /// what it certainly satisfies.
    ///
    /// Transient and persistent count as transient local, manual by participant as automatic. A
    /// history that was not announced is DDS's default, keep last 1. Depths and finite durations
    /// are brought into the range that [`Qos::validate`] allows.
    pub fn offered(&self) -> Qos {
        Qos {
            durability: match self.durability {
                WireDurability::Volatile => Durability::Volatile,
                _ => Durability::TransientLocal,
            },
            liveliness: match self.liveliness {
                WireLiveliness::ManualByTopic => Liveliness::ManualByTopic,
                _ => Liveliness::Automatic,
            },
            ..self.rest()
        }
    }

    /// What this reader asks for, rounded up to the least that certainly satisfies it: manual by
    /// participant counts as manual by topic. Otherwise as [`Self::offered`].
    ///
    /// Refused if no writer of tsuji can satisfy it: transient and persistent data outlive their
    /// writer.
    pub fn requested(&self) -> Result<Qos, Unsatisfiable> {
        Ok(Qos {
            durability: match self.durability {
                WireDurability::Volatile => Durability::Volatile,
                WireDurability::TransientLocal => Durability::TransientLocal,
                durability => return Err(Unsatisfiable { durability }),
            },
            liveliness: match self.liveliness {
                WireLiveliness::Automatic => Liveliness::Automatic,
                _ => Liveliness::ManualByTopic,
            },
            ..self.rest()
        })
    }

    /// What means the same in an offer and in a request.
    fn rest(&self) -> Qos {
        let shortest = Duration::from_nanos(1);
        let bring_in = |it: Option<Duration>| it.map(|it| it.clamp(shortest, Qos::DURATION_MAX));
        Qos {
            history: match self.history {
                Some(History::KeepLast(depth)) => History::KeepLast(depth.clamp(1, Qos::DEPTH_MAX)),
                Some(History::KeepAll) => History::KeepAll,
                None => History::KeepLast(1),
            },
            reliability: self.reliability,
            deadline: bring_in(self.deadline),
            lifespan: bring_in(self.lifespan),
            liveliness_lease: bring_in(self.lease),
            ..Qos::DEFAULT
        }
    }
}

/// Whether late joiners get what was sent before, on RTPS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WireDurability {
    /// They do not.
    Volatile,
    /// From the writer, while it lives.
    TransientLocal,
    /// From a service that outlives the writer. Unknown to ROS 2.
    Transient,
    /// From a service that outlives itself. Unknown to ROS 2.
    Persistent,
}

impl fmt::Display for WireDurability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Volatile => "volatile",
            Self::TransientLocal => "transient_local",
            Self::Transient => "transient",
            Self::Persistent => "persistent",
        })
    }
}

/// How a writer shows that it is alive, on RTPS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WireLiveliness {
    /// By its participant being alive.
    Automatic,
    /// By any writer of its participant asserting it. Unknown to ROS 2.
    ManualByParticipant,
    /// By publishing, or by asserting it.
    ManualByTopic,
}

/// A reader asks for what no writer of tsuji offers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Unsatisfiable {
    /// What it asks for.
    pub durability: WireDurability,
}

impl fmt::Display for Unsatisfiable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "durability: requested {}; offered at most transient_local", self.durability)
    }
}

impl fmt::Debug for Unsatisfiable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Unsatisfiable {}

/// A duration as Cyclone DDS counts it, in nanoseconds; infinite is `i64::MAX` (`DDS_INFINITY`), and
/// so is what would be longer.
pub fn to_nanoseconds(duration: Option<Duration>) -> i64 {
    let nanoseconds = duration.map(|it| i64::try_from(it.as_nanos()).unwrap_or(i64::MAX));
    nanoseconds.unwrap_or(i64::MAX)
}

/// A duration that Cyclone DDS counted, see [`to_nanoseconds`]. A negative one is zero.
pub fn from_nanoseconds(nanoseconds: i64) -> Option<Duration> {
    let nanoseconds = u64::try_from(nanoseconds).unwrap_or(0);
    (nanoseconds < i64::MAX as u64).then_some(Duration::from_nanos(nanoseconds))
}

/// A duration as Fast DDS counts it, in seconds and nanoseconds; infinite is the most that both
/// fields hold (`c_TimeInfinite`). A longer one is cut to the longest finite one, as
/// `clamp_rmw_time_to_dds_time` in rmw_dds_common, `time_utils.cpp`, does.
pub fn to_seconds(duration: Option<Duration>) -> (i32, u32) {
    match duration {
        None => (i32::MAX, u32::MAX),
        Some(duration) => match i32::try_from(duration.as_secs()) {
            Ok(seconds) => (seconds, duration.subsec_nanos()),
            Err(_) => (i32::MAX, NANOSECONDS - 1),
        },
    }
}

/// A duration that Fast DDS counted, see [`to_seconds`]. With the most seconds, nanoseconds that are
/// a whole second or more make it infinite, which takes the DDS standard's infinity in as well. A
/// negative one is zero.
pub fn from_seconds(seconds: i32, nanoseconds: u32) -> Option<Duration> {
    if seconds == i32::MAX && nanoseconds >= NANOSECONDS {
        return None;
    }
    let whole = u64::try_from(seconds).ok().map(Duration::from_secs);
    Some(whole.map_or(Duration::ZERO, |it| it + Duration::from_nanos(nanoseconds.into())))
}

const NANOSECONDS: u32 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tsuji_core::rxo;

    use super::*;

    const MINUTE: Option<Duration> = Some(Duration::from_secs(60));

    #[test]
    fn a_profile_is_announced_and_understood() {
        let qos = Qos {
            history: History::KeepLast(7),
            durability: Durability::TransientLocal,
            deadline: MINUTE,
            lifespan: Some(Duration::from_millis(1)),
            liveliness: Liveliness::ManualByTopic,
            liveliness_lease: Some(Duration::from_secs(3)),
            ..Qos::SENSOR_DATA
        };
        for qos in [Qos::DEFAULT, Qos::SENSOR_DATA, qos] {
            let wire = WireQos::new(&qos).unwrap();
            assert_eq!(wire.offered(), qos);
            assert_eq!(wire.requested(), Ok(qos));
        }
        let wire = WireQos::new(&qos).unwrap();
        assert_eq!(wire.durability_service(), Some(History::KeepLast(7)));
        assert_eq!(wire.announcement_period(), Some(Duration::from_secs(2)));
        let default = WireQos::new(&Qos::DEFAULT).unwrap();
        assert_eq!(default.durability_service(), None);
        assert_eq!(default.announcement_period(), None);
        let depth = Qos { history: History::KeepLast(0), ..Qos::DEFAULT };
        assert_eq!(WireQos::new(&depth), Err(InvalidQos::Depth { depth: 0 }));
    }

    #[test]
    fn what_ros_has_no_word_for_is_rounded_to_the_safe_side() {
        let plain = WireQos {
            reliability: Reliability::Reliable,
            durability: WireDurability::Persistent,
            history: None,
            deadline: Some(Duration::ZERO),
            lifespan: Some(Duration::MAX),
            liveliness: WireLiveliness::ManualByParticipant,
            lease: None,
        };
        let offered = plain.offered();
        assert_eq!(offered.durability, Durability::TransientLocal);
        assert_eq!(offered.liveliness, Liveliness::Automatic);
        assert_eq!(offered.history, History::KeepLast(1));
        assert_eq!(offered.deadline, Some(Duration::from_nanos(1)));
        assert_eq!(offered.lifespan, Some(Qos::DURATION_MAX));
        assert_eq!(
            plain.requested().unwrap_err().to_string(),
            "durability: requested persistent; offered at most transient_local"
        );
        let volatile = WireQos { durability: WireDurability::Volatile, ..plain };
        assert_eq!(volatile.requested().unwrap().liveliness, Liveliness::ManualByTopic);
    }

    #[test]
    fn infinite_durations() {
        assert_eq!(to_nanoseconds(None), i64::MAX);
        assert_eq!(to_nanoseconds(MINUTE), 60_000_000_000);
        assert_eq!(to_nanoseconds(Some(Duration::MAX)), i64::MAX);
        assert_eq!(from_nanoseconds(i64::MAX), None);
        assert_eq!(from_nanoseconds(-1), Some(Duration::ZERO));
        assert_eq!(to_seconds(None), (2_147_483_647, 4_294_967_295));
        assert_eq!(to_seconds(Some(Duration::MAX)), (2_147_483_647, 999_999_999));
        assert_eq!(from_seconds(i32::MAX, u32::MAX), None);
        // DURATION_INFINITE of the DDS standard.
        assert_eq!(from_seconds(0x7fff_ffff, 0x7fff_ffff), None);
        assert_eq!(from_seconds(i32::MAX, 0), Some(Qos::DURATION_MAX));
        assert_eq!(from_seconds(1, 2_000_000_000), Some(Duration::from_secs(3)));
        assert_eq!(from_seconds(-1, 5), Some(Duration::ZERO));
    }

    fn any_wire() -> impl Strategy<Value = WireQos> {
        use WireDurability::{Persistent, Transient, TransientLocal, Volatile};
        use WireLiveliness::{Automatic, ManualByParticipant, ManualByTopic};
        let history = prop_oneof![
            Just(None),
            Just(Some(History::KeepAll)),
            any::<u32>().prop_map(|depth| Some(History::KeepLast(depth)))
        ];
        let duration = || prop::option::of(any::<Duration>());
        (
            prop::sample::select(vec![Reliability::BestEffort, Reliability::Reliable]),
            prop::sample::select(vec![Volatile, TransientLocal, Transient, Persistent]),
            history,
            (duration(), duration(), duration()),
            prop::sample::select(vec![Automatic, ManualByParticipant, ManualByTopic]),
        )
            .prop_map(|(reliability, durability, history, durations, liveliness)| {
                let (deadline, lifespan, lease) = durations;
                WireQos { reliability, durability, history, deadline, lifespan, liveliness, lease }
            })
    }

    proptest! {
        #[test]
        fn whatever_was_announced_becomes_a_valid_profile(wire in any_wire()) {
            prop_assert_eq!(wire.offered().validate(), Ok(()));
            if let Ok(requested) = wire.requested() {
                prop_assert_eq!(requested.validate(), Ok(()));
            }
        }

        #[test]
        fn a_match_here_is_a_match_on_the_wire(writer in any_wire(), reader in any_wire()) {
            let Ok(requested) = reader.requested() else { return Ok(()) };
            if rxo::check(&writer.offered(), &requested).is_ok() {
                prop_assert!(writer.reliability >= reader.reliability);
                prop_assert!(writer.durability >= reader.durability);
                prop_assert!(writer.liveliness >= reader.liveliness);
            }
        }

        #[test]
        fn durations_read_back(
            nanoseconds in 0..i64::MAX,
            seconds in 0..i32::MAX,
            rest in 0..NANOSECONDS,
        ) {
            prop_assert_eq!(to_nanoseconds(from_nanoseconds(nanoseconds)), nanoseconds);
            prop_assert_eq!(to_seconds(from_seconds(seconds, rest)), (seconds, rest));
        }

        #[test]
        fn any_numbers_are_a_duration(nanoseconds: i64, seconds: i32, rest: u32) {
            from_nanoseconds(nanoseconds);
            from_seconds(seconds, rest);
        }
    }
}

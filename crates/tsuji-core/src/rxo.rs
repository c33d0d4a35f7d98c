//! Requested against offered: which QoS a subscription may ask of a publisher.
//!
//! Decided here once for every link, so that a flow matches or not whatever carries it.

use std::fmt;
use std::time::Duration;

use crate::{Durability, Liveliness, Qos, Reliability};

/// Checks whether a publisher that offers `offered` satisfies a subscription that asks for `requested`.
///
/// The rules are those of DDS: an offer must be at least as strong as the request, and a period at most as long.
/// History, depth and lifespan are each side's own affair.
///
/// # Errors
///
/// A [`Mismatch`] for each policy that does not fit, in the order of [`QosPolicy`].
pub fn check(offered: &Qos, requested: &Qos) -> Result<(), Vec<Mismatch>> {
    let mut mismatches = Vec::new();
    let mut require = |fits: bool, policy, offered, requested| {
        if !fits {
            mismatches.push(Mismatch { policy, offered, requested });
        }
    };
    require(
        offered.reliability >= requested.reliability,
        QosPolicy::Reliability,
        QosValue::Reliability(offered.reliability),
        QosValue::Reliability(requested.reliability),
    );
    require(
        offered.durability >= requested.durability,
        QosPolicy::Durability,
        QosValue::Durability(offered.durability),
        QosValue::Durability(requested.durability),
    );
    require(
        at_most(offered.deadline, requested.deadline),
        QosPolicy::Deadline,
        QosValue::Duration(offered.deadline),
        QosValue::Duration(requested.deadline),
    );
    require(
        offered.liveliness >= requested.liveliness,
        QosPolicy::Liveliness,
        QosValue::Liveliness(offered.liveliness),
        QosValue::Liveliness(requested.liveliness),
    );
    require(
        at_most(offered.liveliness_lease, requested.liveliness_lease),
        QosPolicy::LivelinessLease,
        QosValue::Duration(offered.liveliness_lease),
        QosValue::Duration(requested.liveliness_lease),
    );
    if mismatches.is_empty() { Ok(()) } else { Err(mismatches) }
}

/// One policy that does not fit. Prints as `reliability: offered best_effort, requested reliable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Which policy.
    pub policy: QosPolicy,
    /// What the publisher offers.
    pub offered: QosValue,
    /// What the subscription asks for.
    pub requested: QosValue,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, offered, requested } = self;
        write!(f, "{policy}: offered {offered}, requested {requested}")
    }
}

/// The policies that matching looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QosPolicy {
    /// [`Qos::reliability`].
    Reliability,
    /// [`Qos::durability`].
    Durability,
    /// [`Qos::deadline`].
    Deadline,
    /// [`Qos::liveliness`].
    Liveliness,
    /// [`Qos::liveliness_lease`].
    LivelinessLease,
}

impl fmt::Display for QosPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reliability => "reliability",
            Self::Durability => "durability",
            Self::Deadline => "deadline",
            Self::Liveliness => "liveliness",
            Self::LivelinessLease => "liveliness_lease",
        })
    }
}

/// The value of a policy, on either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QosValue {
    /// Of [`QosPolicy::Reliability`].
    Reliability(Reliability),
    /// Of [`QosPolicy::Durability`].
    Durability(Durability),
    /// Of [`QosPolicy::Deadline`] and [`QosPolicy::LivelinessLease`]; `None` is infinite.
    Duration(Option<Duration>),
    /// Of [`QosPolicy::Liveliness`].
    Liveliness(Liveliness),
}

impl fmt::Display for QosValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reliability(value) => value.fmt(f),
            Self::Durability(value) => value.fmt(f),
            Self::Duration(Some(value)) => write!(f, "{value:?}"),
            Self::Duration(None) => f.pad("infinite"),
            Self::Liveliness(value) => value.fmt(f),
        }
    }
}

fn at_most(offered: Option<Duration>, requested: Option<Duration>) -> bool {
    match (offered, requested) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(offered), Some(requested)) => offered <= requested,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::History;

    #[track_caller]
    fn check_pair(offered: Qos, requested: Qos, expect: &str) {
        let got = match check(&offered, &requested) {
            Ok(()) => "ok".to_owned(),
            Err(all) => all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        };
        assert_eq!(got, expect);
    }

    const BASE: Qos = Qos::DEFAULT;
    const MS: Option<Duration> = Some(Duration::from_millis(1));
    const SEC: Option<Duration> = Some(Duration::from_secs(1));

    #[test]
    fn a_profile_fits_itself_and_a_weaker_request() {
        check_pair(BASE, BASE, "ok");
        check_pair(BASE, Qos::SENSOR_DATA, "ok");
        check_pair(Qos { durability: Durability::TransientLocal, ..BASE }, BASE, "ok");
        check_pair(Qos { liveliness: Liveliness::ManualByTopic, ..BASE }, BASE, "ok");
        check_pair(Qos { deadline: MS, ..BASE }, BASE, "ok");
        check_pair(Qos { deadline: MS, ..BASE }, Qos { deadline: SEC, ..BASE }, "ok");
        check_pair(Qos { deadline: SEC, ..BASE }, Qos { deadline: SEC, ..BASE }, "ok");
    }

    #[test]
    fn what_each_side_keeps_is_its_own_affair() {
        check_pair(BASE, Qos { history: History::KeepAll, lifespan: MS, ..BASE }, "ok");
    }

    #[test]
    fn a_weaker_offer_is_told_with_both_values() {
        check_pair(Qos::SENSOR_DATA, BASE, "reliability: offered best_effort, requested reliable");
        check_pair(
            BASE,
            Qos { durability: Durability::TransientLocal, ..BASE },
            "durability: offered volatile, requested transient_local",
        );
        check_pair(BASE, Qos { deadline: SEC, ..BASE }, "deadline: offered infinite, requested 1s");
        check_pair(
            Qos { liveliness_lease: SEC, ..BASE },
            Qos { liveliness_lease: MS, ..BASE },
            "liveliness_lease: offered 1s, requested 1ms",
        );
    }

    #[test]
    fn every_mismatch_is_listed() {
        let strict = Qos {
            durability: Durability::TransientLocal,
            deadline: MS,
            liveliness: Liveliness::ManualByTopic,
            liveliness_lease: MS,
            ..BASE
        };
        check_pair(
            Qos::SENSOR_DATA,
            strict,
            "reliability: offered best_effort, requested reliable; \
             durability: offered volatile, requested transient_local; \
             deadline: offered infinite, requested 1ms; \
             liveliness: offered automatic, requested manual_by_topic; \
             liveliness_lease: offered infinite, requested 1ms",
        );
    }
}

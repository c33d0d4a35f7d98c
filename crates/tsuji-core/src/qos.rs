use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::words::words;

/// The quality of service that an endpoint offers or asks for, as ROS 2 names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qos {
    /// How many samples are kept, at the publisher and in a subscription's queue.
    pub history: History,
    /// Whether a lost sample is sent again.
    pub reliability: Reliability,
    /// Whether late joiners get what was sent before.
    pub durability: Durability,
    /// The longest time between samples; `None` is infinite.
    pub deadline: Option<Duration>,
    /// How long a sample stays valid after it was published; `None` is for ever.
    pub lifespan: Option<Duration>,
    /// How a publisher shows that it is alive.
    pub liveliness: Liveliness,
    /// The longest time without a sign of life; `None` is infinite. Timed for
    /// [`Liveliness::ManualByTopic`] only.
    pub liveliness_lease: Option<Duration>,
}

impl Qos {
    /// ROS 2's default profile: reliable, volatile, keep last 10.
    pub const DEFAULT: Self = Self {
        history: History::KeepLast(10),
        reliability: Reliability::Reliable,
        durability: Durability::Volatile,
        deadline: None,
        lifespan: None,
        liveliness: Liveliness::Automatic,
        liveliness_lease: None,
    };

    /// ROS 2's sensor data profile: best effort, keep last 5.
    pub const SENSOR_DATA: Self = Self {
        history: History::KeepLast(5),
        reliability: Reliability::BestEffort,
        ..Self::DEFAULT
    };

    /// The deepest history: with 64-byte samples about 100 MB, far above what any profile asks for.
    pub const DEPTH_MAX: u32 = 1_000_000;

    /// The longest finite duration, about 68 years: DDS announces seconds in 31 bits.
    pub const DURATION_MAX: Duration = Duration::from_secs(i32::MAX as u64);

    /// Refuses values that no endpoint can keep to.
    ///
    /// The depth is 1 to [`Self::DEPTH_MAX`]; a duration is `None` (infinite) or more than zero and
    /// at most [`Self::DURATION_MAX`]. The first fault in the order of the fields is returned.
    pub fn validate(&self) -> Result<(), InvalidQos> {
        if let History::KeepLast(depth) = self.history
            && !(1..=Self::DEPTH_MAX).contains(&depth)
        {
            return Err(InvalidQos::Depth { depth });
        }
        let durations = [
            ("deadline", self.deadline),
            ("lifespan", self.lifespan),
            ("liveliness_lease", self.liveliness_lease),
        ];
        for (policy, duration) in durations {
            if let Some(duration) = duration
                && (duration.is_zero() || duration > Self::DURATION_MAX)
            {
                return Err(InvalidQos::Duration { policy, duration });
            }
        }
        Ok(())
    }
}

impl Default for Qos {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why [`Qos::validate`] refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidQos {
    /// Keep last so many is out of range.
    Depth {
        /// What was asked for.
        depth: u32,
    },
    /// A duration is zero, or longer than can be announced.
    Duration {
        /// Of which policy.
        policy: &'static str,
        /// What was asked for.
        duration: Duration,
    },
}

impl fmt::Display for InvalidQos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Depth { depth } => {
                write!(f, "history: depth {depth}; allowed: 1 to {}, or keep_all", Qos::DEPTH_MAX)
            }
            Self::Duration { policy, duration } => write!(
                f,
                "{policy}: {duration:?}; allowed: more than 0 s, at most {:?}, or infinite",
                Qos::DURATION_MAX
            ),
        }
    }
}

impl Error for InvalidQos {}

/// How many samples are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// The newest so many; at least 1.
    KeepLast(u32),
    /// All, up to the resource limit; then the publisher waits.
    KeepAll,
}

/// Whether a lost sample is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reliability {
    /// It is not.
    BestEffort,
    /// It is.
    Reliable,
}

/// Whether late joiners get what was sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// They do not.
    Volatile,
    /// They get the publisher's history, while the publisher lives.
    TransientLocal,
}

/// How a publisher shows that it is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Liveliness {
    /// By its process being alive. The end of the process is noticed at once; a lease is not timed,
    /// so a process that hangs or is stopped stays alive, whatever the lease.
    Automatic,
    /// By publishing, or by asserting it.
    ManualByTopic,
}

words!(Reliability, "reliability" {
    [Self::BestEffort] => "best_effort",
    [Self::Reliable] => "reliable",
});
words!(Durability, "durability" {
    [Self::Volatile] => "volatile",
    [Self::TransientLocal] => "transient_local",
});
words!(Liveliness, "liveliness" {
    [Self::Automatic] => "automatic",
    [Self::ManualByTopic] => "manual_by_topic",
});

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeepLast(depth) => write!(f, "keep_last({depth})"),
            Self::KeepAll => f.write_str("keep_all"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(qos: Qos, expect: &str) {
        let got = match qos.validate() {
            Ok(()) => "ok".to_owned(),
            Err(invalid) => invalid.to_string(),
        };
        assert_eq!(got, expect);
    }

    #[test]
    fn depth() {
        let depth = |depth| Qos { history: History::KeepLast(depth), ..Qos::DEFAULT };
        check(Qos::DEFAULT, "ok");
        check(Qos::SENSOR_DATA, "ok");
        check(depth(1), "ok");
        check(depth(1_000_000), "ok");
        check(depth(0), "history: depth 0; allowed: 1 to 1000000, or keep_all");
        check(depth(1_000_001), "history: depth 1000001; allowed: 1 to 1000000, or keep_all");
        check(Qos { history: History::KeepAll, ..Qos::DEFAULT }, "ok");
    }

    #[test]
    fn durations() {
        let zero = Some(Duration::ZERO);
        let tail = "0ns; allowed: more than 0 s, at most 2147483647s, or infinite";
        check(Qos { deadline: zero, ..Qos::DEFAULT }, &format!("deadline: {tail}"));
        check(Qos { lifespan: zero, ..Qos::DEFAULT }, &format!("lifespan: {tail}"));
        check(Qos { liveliness_lease: zero, ..Qos::DEFAULT }, &format!("liveliness_lease: {tail}"));
        check(Qos { deadline: Some(Duration::from_nanos(1)), ..Qos::DEFAULT }, "ok");
        check(Qos { deadline: Some(Qos::DURATION_MAX), ..Qos::DEFAULT }, "ok");
        check(
            Qos { lifespan: Some(Duration::MAX), ..Qos::DEFAULT },
            "lifespan: 18446744073709551615.999999999s; \
             allowed: more than 0 s, at most 2147483647s, or infinite",
        );
    }

    #[test]
    fn words_read_back() {
        for word in Reliability::WORDS {
            assert_eq!(word.parse::<Reliability>().unwrap().to_string(), *word);
        }
        assert_eq!(
            "realiable".parse::<Reliability>().unwrap_err().to_string(),
            "\"realiable\" is not a reliability; allowed: best_effort, reliable"
        );
    }
}

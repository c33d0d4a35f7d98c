use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::words::words;

/// Quality of service that an endpoint offers or asks for, as ROS 2 names it.
///
/// ```
/// use tsuji_core::{Durability, Qos, Reliability};
///
/// let scan = Qos::SENSOR_DATA.keep_last(1);
/// assert_eq!(scan.reliability, Reliability::BestEffort);
/// let map = Qos { durability: Durability::TransientLocal, ..Qos::DEFAULT.keep_last(1) };
/// assert_eq!(map, Qos::LATCHED);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qos {
    /// Samples that are kept, at the publisher and in a subscription's queue. Default the last 10.
    pub history: History,
    /// Says whether a lost sample is sent again. Default reliable.
    pub reliability: Reliability,
    /// Says whether late joiners get what was sent before. Default volatile: they do not.
    pub durability: Durability,
    /// Longest time between samples; `None`, the default, is infinite.
    pub deadline: Option<Duration>,
    /// Time that a sample stays valid after it was published; `None`, the default, is for ever.
    pub lifespan: Option<Duration>,
    /// Way in which a publisher shows that it is alive. Default automatic.
    pub liveliness: Liveliness,
    /// Longest time without a sign of life; `None`, the default, is infinite. Timed for
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

    /// ROS 2's profile of services and their clients: the default one.
    pub const SERVICES: Self = Self::DEFAULT;

    /// ROS 2's profile of the services and events of parameters: reliable, keep last 1000.
    pub const PARAMETERS: Self = Self::DEFAULT.keep_last(1000);

    /// ROS 2's profile of `/rosout`: reliable, transient local, keep last 1000, valid for 10 s.
    pub const ROSOUT: Self =
        Self::DEFAULT.keep_last(1000).transient_local().lifespan(Duration::from_secs(10));

    /// ROS 2's profile of `/clock`: best effort, keep last 1.
    pub const CLOCK: Self = Self::DEFAULT.keep_last(1).best_effort();

    /// What stands until it changes, such as a map, `/tf_static` and the status of an action: reliable, transient local, keep
    /// last 1.
    pub const LATCHED: Self = Self::DEFAULT.keep_last(1).transient_local();

    /// The deepest history: with 64-byte samples about 100 MB, far above what any profile asks for.
    pub const DEPTH_MAX: u32 = 1_000_000;

    /// The longest finite duration, about 68 years: DDS announces seconds in 31 bits.
    pub const DURATION_MAX: Duration = Duration::from_secs(i32::MAX as u64);

    /// Keeps the last `depth` samples, 1 to [`Self::DEPTH_MAX`].
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tsuji_core::{Durability, History, Qos};
    /// let map = Qos::default().keep_last(1).transient_local();
    /// assert_eq!((map.history, map.durability), (History::KeepLast(1), Durability::TransientLocal));
    /// let scan = Qos::SENSOR_DATA.keep_last(1).deadline(Duration::from_millis(100));
    /// assert!(scan.validate().is_ok());
    /// ```
    pub const fn keep_last(mut self, depth: u32) -> Self {
        self.history = History::KeepLast(depth);
        self
    }

    /// Keeps all samples until they are taken, up to the limits of the publisher and the subscription.
    pub const fn keep_all(mut self) -> Self {
        self.history = History::KeepAll;
        self
    }

    /// Sends a lost sample again.
    pub const fn reliable(mut self) -> Self {
        self.reliability = Reliability::Reliable;
        self
    }

    /// Sends each sample once.
    pub const fn best_effort(mut self) -> Self {
        self.reliability = Reliability::BestEffort;
        self
    }

    /// Gives late joiners what was sent before, as much as the history keeps.
    pub const fn transient_local(mut self) -> Self {
        self.durability = Durability::TransientLocal;
        self
    }

    /// Gives late joiners nothing of before.
    pub const fn volatile(mut self) -> Self {
        self.durability = Durability::Volatile;
        self
    }

    /// Tells both ends when there is no sample for longer than this.
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Delivers no sample that is older than this.
    pub const fn lifespan(mut self, lifespan: Duration) -> Self {
        self.lifespan = Some(lifespan);
        self
    }

    /// Counts a publisher as alive only while it publishes or says so at least this often.
    pub const fn manual_liveliness(mut self, lease: Duration) -> Self {
        self.liveliness = Liveliness::ManualByTopic;
        self.liveliness_lease = Some(lease);
        self
    }

    /// Refuses values that no endpoint can keep to.
    ///
    /// The depth is 1 to [`Self::DEPTH_MAX`]; a duration is `None` (infinite) or more than zero and
    /// at most [`Self::DURATION_MAX`].
    ///
    /// # Errors
    ///
    /// [`InvalidQos::Depth`] or [`InvalidQos::Duration`] for the first value out of range, in the order of the
    /// fields.
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
#[derive(Clone, Copy, PartialEq, Eq)]
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Reliability {
    /// Sends each sample once.
    BestEffort,
    /// Sends a lost sample again.
    Reliable,
}

/// Whether late joiners get what was sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// Late joiners get what is sent from then on.
    Volatile,
    /// Late joiners get the publisher's history, while the publisher lives.
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

    /// As rmw/qos_profiles.h, rcl/logging_rosout.h and rclcpp/qos.hpp have them.
    #[test]
    fn profiles_are_those_of_ros_2() {
        let kept = |depth| History::KeepLast(depth);
        let base = Qos::DEFAULT;
        assert_eq!(base.history, kept(10));
        assert_eq!(Qos::SERVICES, base);
        assert_eq!(Qos::PARAMETERS, Qos { history: kept(1000), ..base });
        let lifespan = Some(Duration::from_secs(10));
        let durability = Durability::TransientLocal;
        assert_eq!(Qos::ROSOUT, Qos { history: kept(1000), durability, lifespan, ..base });
        let reliability = Reliability::BestEffort;
        assert_eq!(Qos::CLOCK, Qos { history: kept(1), reliability, ..base });
        assert_eq!(Qos::SENSOR_DATA, Qos { history: kept(5), reliability, ..base });
        assert_eq!(Qos::LATCHED, Qos { history: kept(1), durability, ..base });
    }

    #[test]
    fn each_method_sets_one_policy() {
        let ms = Duration::from_millis(5);
        let all = Qos::DEFAULT.keep_all().best_effort().transient_local().deadline(ms);
        let all = all.lifespan(ms).manual_liveliness(ms);
        let expect = Qos {
            history: History::KeepAll,
            reliability: Reliability::BestEffort,
            durability: Durability::TransientLocal,
            deadline: Some(ms),
            lifespan: Some(ms),
            liveliness: Liveliness::ManualByTopic,
            liveliness_lease: Some(ms),
        };
        assert_eq!(all, expect);
        let back = all.keep_last(10).reliable().volatile();
        assert_eq!(
            (back.history, back.reliability, back.durability),
            (History::KeepLast(10), Reliability::Reliable, Durability::Volatile)
        );
    }
}

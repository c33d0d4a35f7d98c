use std::fmt;
use std::time::Duration;

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
    /// The longest time without a sign of life; `None` is infinite.
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
}

impl Default for Qos {
    fn default() -> Self {
        Self::DEFAULT
    }
}

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
    /// By its process being alive.
    Automatic,
    /// By publishing, or by asserting it.
    ManualByTopic,
}

macro_rules! words {
    ($type:ty { $($pattern:pat => $word:literal,)* }) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $($pattern => $word,)* })
            }
        }
    };
}

words!(Reliability { Self::BestEffort => "best_effort", Self::Reliable => "reliable", });
words!(Durability { Self::Volatile => "volatile", Self::TransientLocal => "transient_local", });
words!(Liveliness { Self::Automatic => "automatic", Self::ManualByTopic => "manual_by_topic", });

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeepLast(depth) => write!(f, "keep_last({depth})"),
            Self::KeepAll => f.write_str("keep_all"),
        }
    }
}

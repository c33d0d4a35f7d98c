//! QoS as flags, and as `ros2 topic info -v` prints it.

use std::time::Duration;

use clap::Args;
use tsuji_core::{Durability, History, Liveliness, Qos, Reliability};

use crate::failure::Usage;

/// The words of `ros2` for whatever the profile says anyway.
const SYSTEM_DEFAULT: &str = "system_default";

/// The flags of `ros2 topic echo` and `pub`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct QosFlags {
    /// The profile that the other flags change
    #[arg(long, value_name = "PROFILE", value_parser = ["default", "sensor_data", "services_default", "parameters", "parameter_events", "action_status_default", SYSTEM_DEFAULT])]
    qos_profile: Option<String>,
    /// Samples kept, with the history keep_last
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(Qos::DEPTH_MAX)))]
    qos_depth: Option<u32>,
    /// Which samples are kept
    #[arg(long, value_name = "HISTORY", value_parser = ["keep_last", "keep_all", SYSTEM_DEFAULT])]
    qos_history: Option<String>,
    /// Whether a lost sample is sent again
    #[arg(long, value_name = "RELIABILITY", value_parser = ["reliable", "best_effort", SYSTEM_DEFAULT])]
    qos_reliability: Option<String>,
    /// Whether late joiners get what was sent before
    #[arg(long, value_name = "DURABILITY", value_parser = ["volatile", "transient_local", SYSTEM_DEFAULT])]
    qos_durability: Option<String>,
    /// How a publisher shows that it is alive
    #[arg(long, value_name = "LIVELINESS", value_parser = ["automatic", "manual_by_topic", SYSTEM_DEFAULT])]
    qos_liveliness: Option<String>,
    /// Without a sign of life for so long, a publisher counts as dead
    #[arg(long, value_name = "SECONDS", alias = "qos-liveliness-lease-duration-seconds", value_parser = crate::topic::seconds)]
    qos_liveliness_lease_duration: Option<Duration>,
}

impl QosFlags {
    /// Whether the user said nothing of this, so that a fitting value may be found.
    pub(crate) fn leaves_open(&self) -> Open {
        let profile = self.qos_profile.is_none();
        Open {
            reliability: profile && self.qos_reliability.is_none(),
            durability: profile && self.qos_durability.is_none(),
        }
    }

    /// The QoS that the flags say, over `base` where they say nothing.
    pub(crate) fn over(&self, base: Qos) -> anyhow::Result<Qos> {
        let mut qos = match self.qos_profile.as_deref() {
            Some("sensor_data") => Qos::SENSOR_DATA,
            Some("parameters" | "parameter_events") => Qos::PARAMETERS,
            Some("action_status_default") => Qos::LATCHED,
            Some(_) => Qos::DEFAULT,
            None => base,
        };
        if let Some(depth) = self.qos_depth {
            qos.history = History::KeepLast(depth);
        }
        match (self.qos_history.as_deref(), self.qos_depth) {
            (Some("keep_all"), Some(_)) => {
                let text = "--qos-depth has no meaning with --qos-history keep_all; leave one out";
                return Err(Usage(text.to_owned()).into());
            }
            (Some("keep_all"), None) => qos.history = History::KeepAll,
            _ => {}
        }
        if let Some(word) = said(&self.qos_reliability) {
            qos.reliability = word.parse::<Reliability>()?;
        }
        if let Some(word) = said(&self.qos_durability) {
            qos.durability = word.parse::<Durability>()?;
        }
        if let Some(word) = said(&self.qos_liveliness) {
            qos.liveliness = word.parse::<Liveliness>()?;
        }
        if self.qos_liveliness_lease_duration.is_some() {
            qos.liveliness_lease = self.qos_liveliness_lease_duration;
        }
        Ok(qos)
    }
}

/// What a user left open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    /// The reliability.
    pub(crate) reliability: bool,
    /// The durability.
    pub(crate) durability: bool,
}

/// The lines of a QoS in the words of `ros2 topic info -v`.
pub(crate) fn lines(qos: &Qos) -> Vec<String> {
    let reliability = match qos.reliability {
        Reliability::Reliable => "RELIABLE",
        Reliability::BestEffort => "BEST_EFFORT",
    };
    let history = match qos.history {
        History::KeepLast(depth) => format!("KEEP_LAST ({depth})"),
        History::KeepAll => "KEEP_ALL".to_owned(),
    };
    let durability = match qos.durability {
        Durability::Volatile => "VOLATILE",
        Durability::TransientLocal => "TRANSIENT_LOCAL",
    };
    let liveliness = match qos.liveliness {
        Liveliness::Automatic => "AUTOMATIC",
        Liveliness::ManualByTopic => "MANUAL_BY_TOPIC",
    };
    vec![
        format!("Reliability: {reliability}"),
        format!("History (Depth): {history}"),
        format!("Durability: {durability}"),
        format!("Lifespan: {}", duration(qos.lifespan)),
        format!("Deadline: {}", duration(qos.deadline)),
        format!("Liveliness: {liveliness}"),
        format!("Liveliness lease duration: {}", duration(qos.liveliness_lease)),
    ]
}

fn said(word: &Option<String>) -> Option<&str> {
    word.as_deref().filter(|it| *it != SYSTEM_DEFAULT)
}

fn duration(duration: Option<Duration>) -> String {
    match duration {
        Some(duration) => format!("{} nanoseconds", duration.as_nanos()),
        None => "Infinite".to_owned(),
    }
}

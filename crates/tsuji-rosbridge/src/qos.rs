use std::time::Duration;

use tsuji_core::{Durability, History, Qos, Reliability};

use crate::fields::{Field, Members, Value};
use crate::refusal::excerpt;

/// What a client asks of the quality of service. What it does not name is left to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QosRequest {
    /// How many samples are kept; a `depth` alone keeps so many.
    pub history: Option<History>,
    /// Whether a lost sample is sent again.
    pub reliability: Option<Reliability>,
    /// Whether late joiners get what was sent before.
    pub durability: Option<Durability>,
    /// The longest time between samples; `Some(None)` is infinite.
    pub deadline: Option<Option<Duration>>,
    /// How long a sample stays valid; `Some(None)` is for ever.
    pub lifespan: Option<Option<Duration>>,
}

impl QosRequest {
    /// `base`, which is valid, with what was asked for in its place. That is valid again.
    pub fn over(&self, base: Qos) -> Qos {
        Qos {
            history: self.history.unwrap_or(base.history),
            reliability: self.reliability.unwrap_or(base.reliability),
            durability: self.durability.unwrap_or(base.durability),
            deadline: self.deadline.unwrap_or(base.deadline),
            lifespan: self.lifespan.unwrap_or(base.lifespan),
            ..base
        }
    }
}

/// What is wrong with an option: its name, what stands there, what may.
pub(crate) struct QosFault {
    pub(crate) field: &'static str,
    pub(crate) found: String,
    pub(crate) expected: &'static str,
}

/// Reads the option `qos` of a message. Words are as in ROS 2, in any case, or numbered as in rmw.
pub(crate) fn read(members: &Members<'_>, nesting_max: usize) -> Result<QosRequest, QosFault> {
    let fault = |field: Field, expected| {
        let found = excerpt(members.raw(field));
        QosFault { field: field.name(), found, expected }
    };
    let mut qos = QosRequest::default();

    const DEPTH: &str = "a whole number from 1 to 1000000";
    let depth = match members.value(Field::Depth) {
        Ok(Value::Null) => None,
        Ok(Value::Integer(it)) => {
            let depth = u32::try_from(it).ok().filter(|it| (1..=Qos::DEPTH_MAX).contains(it));
            Some(depth.ok_or_else(|| fault(Field::Depth, DEPTH))?)
        }
        _ => return Err(fault(Field::Depth, DEPTH)),
    };
    const HISTORY: &str = "keep_last, keep_all or system_default";
    let history = word(members, Field::History, &["system_default", "keep_last", "keep_all"]);
    qos.history = match (history.ok_or_else(|| fault(Field::History, HISTORY))?, depth) {
        (Some(2), _) => Some(History::KeepAll),
        (_, Some(depth)) => Some(History::KeepLast(depth)),
        (Some(1), None) => Some(Qos::DEFAULT.history),
        _ => None,
    };
    const RELIABILITY: &str = "reliable, best_effort, system_default or best_available";
    let words = ["system_default", "reliable", "best_effort", "unknown", "best_available"];
    let reliability = word(members, Field::Reliability, &words);
    qos.reliability = match reliability.ok_or_else(|| fault(Field::Reliability, RELIABILITY))? {
        Some(1) => Some(Reliability::Reliable),
        Some(2) => Some(Reliability::BestEffort),
        _ => None,
    };
    const DURABILITY: &str = "volatile, transient_local, system_default or best_available";
    let words = ["system_default", "transient_local", "volatile", "unknown", "best_available"];
    let durability = word(members, Field::Durability, &words);
    qos.durability = match durability.ok_or_else(|| fault(Field::Durability, DURABILITY))? {
        Some(1) => Some(Durability::TransientLocal),
        Some(2) => Some(Durability::Volatile),
        _ => None,
    };
    const DURATION: &str = "seconds, {\"sec\": …, \"nanosec\": …} or \"infinite\"";
    qos.deadline = duration(members, Field::Deadline, nesting_max)
        .ok_or_else(|| fault(Field::Deadline, DURATION))?;
    qos.lifespan = duration(members, Field::Lifespan, nesting_max)
        .ok_or_else(|| fault(Field::Lifespan, DURATION))?;
    Ok(qos)
}

/// The place among `words` of what a member says, or `Some(None)` where it says nothing.
fn word(members: &Members<'_>, field: Field, words: &[&str]) -> Option<Option<usize>> {
    match members.value(field) {
        Ok(Value::Null) => Some(None),
        Ok(Value::Text(text)) => {
            words.iter().position(|word| word.eq_ignore_ascii_case(&text)).map(Some)
        }
        Ok(Value::Integer(number)) => {
            usize::try_from(number).ok().filter(|&it| it < words.len()).map(Some)
        }
        _ => None,
    }
}

/// A duration, of which nothing and what is longer than can be announced are infinite, as in rmw.
fn duration(
    members: &Members<'_>,
    field: Field,
    nesting_max: usize,
) -> Option<Option<Option<Duration>>> {
    let duration = match members.value(field).ok()? {
        Value::Null => return Some(None),
        Value::Text(word) if word.eq_ignore_ascii_case("infinite") => return Some(Some(None)),
        Value::Object => {
            let parts = members.object(field, nesting_max).ok()?;
            let part = |fields: [Field; 3]| {
                fields.into_iter().find(|&it| parts.has(it)).map_or(Some(0), |it| {
                    match parts.value(it) {
                        Ok(Value::Integer(part)) => u64::try_from(part).ok(),
                        _ => None,
                    }
                })
            };
            let seconds = part([Field::Sec, Field::Secs, Field::Seconds])?;
            let nanoseconds = part([Field::Nanosec, Field::Nsecs, Field::Nanoseconds])?;
            Duration::from_secs(seconds).checked_add(Duration::from_nanos(nanoseconds))?
        }
        value => seconds(&value)?,
    };
    Some(Some(Some(duration).filter(|it| !it.is_zero() && *it <= Qos::DURATION_MAX)))
}

/// A number of seconds that is not negative; one beyond all time is [`Duration::MAX`].
pub(crate) fn seconds(value: &Value<'_>) -> Option<Duration> {
    match value {
        Value::Integer(whole) => u64::try_from(*whole).ok().map(Duration::from_secs),
        Value::Float(it) if *it >= 0.0 => {
            Some(Duration::try_from_secs_f64(*it).unwrap_or(Duration::MAX))
        }
        _ => None,
    }
}

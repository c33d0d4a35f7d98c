//! The QoS that publishers offered, in the YAML that rosbag2 keeps it in.

use std::fmt::Write;
use std::time::Duration;

use tsuji_core::{Durability, History, Liveliness, Qos, Reliability};

/// Offers of a topic that are kept. Of more the later ones are left out.
pub const OFFERS_MAX: usize = 100;

/// What rosbag2 writes for a duration without an end.
const INFINITE: (u64, u64) = (9_223_372_036, 854_775_807);

/// The list of `offers`, in the words that rosbag2 writes since Jazzy.
pub(crate) fn to_yaml(offers: &[Qos]) -> String {
    let mut text = String::new();
    for qos in offers {
        let (history, depth) = match qos.history {
            History::KeepLast(depth) => ("keep_last", depth),
            History::KeepAll => ("keep_all", 0),
        };
        // Writing to a text does not fail.
        let _ = write!(
            text,
            "- history: {history}\n  depth: {depth}\n  reliability: {}\n  durability: {}\n{}{}  liveliness: {}\n{}  \
             avoid_ros_namespace_conventions: false\n",
            qos.reliability,
            qos.durability,
            duration("deadline", qos.deadline),
            duration("lifespan", qos.lifespan),
            qos.liveliness,
            duration("liveliness_lease_duration", qos.liveliness_lease),
        );
    }
    text
}

fn duration(name: &str, value: Option<Duration>) -> String {
    let (sec, nsec) = value.map_or(INFINITE, |it| (it.as_secs(), u64::from(it.subsec_nanos())));
    format!("  {name}:\n    sec: {sec}\n    nsec: {nsec}\n")
}

/// The offers of a list, in words or in the numbers that rosbag2 wrote before. What is not understood keeps ROS 2's
/// default; a text that is no such list has none, and one of more than [`OFFERS_MAX`] the first of them.
pub(crate) fn from_yaml(text: &str) -> Vec<Qos> {
    let mut offers: Vec<Qos> = Vec::new();
    let mut depth = 0;
    let mut within = "";
    let mut sec = 0;
    for line in text.lines() {
        let is_new = line.starts_with('-');
        if is_new && offers.len() == OFFERS_MAX {
            break;
        }
        if is_new {
            offers.push(Qos::DEFAULT);
            depth = 0;
        }
        let Some(qos) = offers.last_mut() else { continue };
        let Some((key, value)) = line.trim_start_matches(['-', ' ']).split_once(':') else {
            continue;
        };
        let value = value.trim().trim_matches(['"', '\'']);
        match key {
            "depth" => {
                depth = value.parse().unwrap_or(0);
                if let (History::KeepLast(_), 1..=Qos::DEPTH_MAX) = (qos.history, depth) {
                    qos.history = History::KeepLast(depth);
                }
            }
            "history" if matches!(value, "keep_all" | "2") => qos.history = History::KeepAll,
            "history" if 0 < depth && depth <= Qos::DEPTH_MAX => {
                qos.history = History::KeepLast(depth);
            }
            "reliability" if matches!(value, "best_effort" | "2") => {
                qos.reliability = Reliability::BestEffort;
            }
            "durability" if matches!(value, "transient_local" | "1") => {
                qos.durability = Durability::TransientLocal;
            }
            "liveliness" if matches!(value, "manual_by_topic" | "3") => {
                qos.liveliness = Liveliness::ManualByTopic;
            }
            "deadline" | "lifespan" | "liveliness_lease_duration" => within = key_of(key),
            "sec" => sec = value.parse().unwrap_or(0),
            "nsec" => {
                let found = finite(sec, value.parse().unwrap_or(0));
                match within {
                    "deadline" => qos.deadline = found,
                    "lifespan" => qos.lifespan = found,
                    "liveliness_lease_duration" => qos.liveliness_lease = found,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    offers
}

fn key_of(key: &str) -> &'static str {
    ["deadline", "lifespan", "liveliness_lease_duration"]
        .into_iter()
        .find(|it| *it == key)
        .unwrap_or("")
}

/// `None` for what every middleware calls infinite or unspecified.
fn finite(sec: u64, nsec: u64) -> Option<Duration> {
    let value = Duration::from_secs(sec).checked_add(Duration::from_nanos(nsec))?;
    (!value.is_zero() && value < Qos::DURATION_MAX).then_some(value)
}

/// What a publisher is to offer so that every subscription that one of `offers` served is served. No subscription
/// loses by the strongest; what a list does not say is ROS 2's default.
pub(crate) fn together(offers: &[Qos]) -> Qos {
    let Some(first) = offers.first() else { return Qos::DEFAULT };
    let mut qos = *first;
    for it in &offers[1..] {
        qos.reliability = qos.reliability.max(it.reliability);
        if it.durability == Durability::TransientLocal {
            qos.durability = it.durability;
        }
        qos.history = match (qos.history, it.history) {
            (History::KeepLast(a), History::KeepLast(b)) => History::KeepLast(a.max(b)),
            _ => History::KeepAll,
        };
    }
    // A recording is paused and played at other rates, which are no faults of the publisher.
    Qos {
        deadline: None,
        lifespan: None,
        liveliness: Liveliness::Automatic,
        liveliness_lease: None,
        ..qos
    }
}

/// What to ask for so that every one of `offers` is received: reliable only if all are, transient local only if all
/// are, and `depth` messages kept.
pub(crate) fn request(offers: &[Qos], depth: u32) -> Qos {
    let all = |fits: fn(&Qos) -> bool| offers.iter().all(fits);
    let mut qos = Qos { history: History::KeepLast(depth), ..Qos::DEFAULT };
    if !all(|it| it.reliability == Reliability::Reliable) {
        qos.reliability = Reliability::BestEffort;
    }
    if !offers.is_empty() && all(|it| it.durability == Durability::TransientLocal) {
        qos.durability = Durability::TransientLocal;
    }
    qos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let offers = [
            Qos::DEFAULT,
            Qos {
                history: History::KeepAll,
                durability: Durability::TransientLocal,
                deadline: Some(Duration::from_millis(1500)),
                ..Qos::SENSOR_DATA
            },
        ];
        assert_eq!(from_yaml(&to_yaml(&offers)), offers);
    }

    #[test]
    fn numbers_of_older_recordings() {
        let text = "- history: 1\n  depth: 7\n  reliability: 2\n  durability: 1\n  deadline:\n    sec: 2147483647\n    \
                    nsec: 4294967295\n  liveliness: 1\n  avoid_ros_namespace_conventions: false";
        let expect = Qos {
            history: History::KeepLast(7),
            reliability: Reliability::BestEffort,
            durability: Durability::TransientLocal,
            ..Qos::DEFAULT
        };
        assert_eq!(from_yaml(text), [expect]);
    }

    #[test]
    fn what_is_no_list_has_no_offers() {
        assert_eq!(from_yaml(""), []);
        assert_eq!(from_yaml("nonsense: 3\n\u{0}"), []);
    }

    #[test]
    fn a_list_without_end_has_an_end() {
        assert_eq!(from_yaml(&"-\n".repeat(1_000_000)), [Qos::DEFAULT; OFFERS_MAX]);
    }

    #[test]
    fn a_request_fits_all_offers() {
        let latched = Qos { durability: Durability::TransientLocal, ..Qos::DEFAULT };
        let check = |offers: &[Qos], reliability, durability| {
            let qos = request(offers, 3);
            assert_eq!((qos.reliability, qos.durability), (reliability, durability));
            assert!(offers.iter().all(|it| tsuji_core::rxo::check(it, &qos).is_ok()));
        };
        check(&[latched], Reliability::Reliable, Durability::TransientLocal);
        check(&[latched, Qos::DEFAULT], Reliability::Reliable, Durability::Volatile);
        check(&[latched, Qos::SENSOR_DATA], Reliability::BestEffort, Durability::Volatile);
    }
}

//! The QoS that publishers offered, in the YAML that rosbag2 keeps it in, and what follows from it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use tsuji_core::{Durability, History, Liveliness, Qos, Reliability};
use tsuji_msg::yaml::{self, Node, NodeKind};

use crate::list;

/// Offers of a topic that are kept. Of more the later ones are left out.
pub const OFFERS_MAX: usize = 100;

/// What rosbag2 writes for a duration without an end.
const INFINITE: (u64, u64) = (9_223_372_036, 854_775_807);

/// Which of the ways `rosbag2` has to write its metadata. Each version of it reads the ways of those before, and not those of
/// later ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// As Humble and those before read it.
    Humble,
    /// As Iron reads it.
    Iron,
    /// As Jazzy and those after read it.
    #[default]
    Jazzy,
}

impl Layout {
    /// The version in `metadata.yaml`.
    pub(crate) fn version(self) -> u32 {
        match self {
            Self::Humble => 5,
            Self::Iron => 7,
            Self::Jazzy => 9,
        }
    }
}

/// The list of `offers`, in words, or before Jazzy in the numbers of `rmw`.
pub(crate) fn to_yaml(offers: &[Qos], layout: Layout) -> String {
    let mut text = String::new();
    let in_words = layout == Layout::Jazzy;
    for qos in offers {
        let (history, depth) = match qos.history {
            History::KeepLast(depth) => (if in_words { "keep_last" } else { "1" }, depth),
            History::KeepAll => (if in_words { "keep_all" } else { "2" }, 0),
        };
        let reliability = match qos.reliability {
            _ if in_words => qos.reliability.to_string(),
            Reliability::Reliable => "1".to_owned(),
            Reliability::BestEffort => "2".to_owned(),
        };
        let durability = match qos.durability {
            _ if in_words => qos.durability.to_string(),
            Durability::TransientLocal => "1".to_owned(),
            Durability::Volatile => "2".to_owned(),
        };
        let liveliness = match qos.liveliness {
            _ if in_words => qos.liveliness.to_string(),
            Liveliness::Automatic => "1".to_owned(),
            Liveliness::ManualByTopic => "3".to_owned(),
        };
        // Writing to a text does not fail.
        let _ = write!(
            text,
            "- history: {history}\n  depth: {depth}\n  reliability: {reliability}\n  durability: {durability}\n{}{}  \
             liveliness: {liveliness}\n{}  avoid_ros_namespace_conventions: false\n",
            duration("deadline", qos.deadline),
            duration("lifespan", qos.lifespan),
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
    let mut offers: Vec<Profile> = Vec::new();
    for line in text.lines() {
        let is_new = line.starts_with('-');
        if is_new && offers.len() == OFFERS_MAX {
            break;
        }
        if is_new {
            offers.push(Profile::default());
        }
        let Some(profile) = offers.last_mut() else { continue };
        let Some((key, value)) = line.trim_start_matches(['-', ' ']).split_once(':') else {
            continue;
        };
        // What is not understood is left as it is.
        let _ = profile.set(key, value.trim().trim_matches(['"', '\'']));
    }
    offers.into_iter().map(|it| it.qos).collect()
}

/// The same of a list that was read as YAML.
pub(crate) fn from_nodes(profiles: &[Node]) -> Vec<Qos> {
    let mut offers = Vec::new();
    for node in profiles.iter().take(OFFERS_MAX) {
        let mut profile = Profile::default();
        profile.set_all(node, &mut |_| {});
        offers.push(profile.qos);
    }
    offers
}

/// The profiles of a file with overrides of QoS, as `rosbag2` reads it: by topic, and the words of `rmw` for each policy.
/// What a profile does not say is ROS 2's default.
///
/// # Errors
///
/// A sentence, which names the topic if there is one, if the text is no YAML, is no mapping of topics to profiles,
/// or a profile has a policy or a value that is none.
pub fn qos_overrides(text: &str) -> Result<BTreeMap<String, Qos>, String> {
    let root = yaml::parse(text).map_err(|error| error.to_string())?;
    let NodeKind::Mapping(topics) = &root.kind else {
        return Err(format!(
            "found {}; allowed: names of topics, each with a profile",
            root.describe()
        ));
    };
    let mut overrides = BTreeMap::new();
    for (topic, node) in topics {
        let mut wrong = None;
        let mut profile = Profile::default();
        profile.set_all(node, &mut |what| {
            wrong.get_or_insert(what);
        });
        if let Some(what) = wrong {
            return Err(format!("{topic}: {what}"));
        }
        if !matches!(node.kind, NodeKind::Mapping(_)) {
            return Err(format!("{topic}: found {}; allowed: policies by name", node.describe()));
        }
        overrides.insert(topic.clone(), profile.qos);
    }
    Ok(overrides)
}

/// A profile as it is read.
#[derive(Default)]
struct Profile {
    qos: Qos,
    depth: u32,
    /// The duration that is being read, and its seconds.
    within: &'static str,
    sec: u64,
}

impl Profile {
    /// Takes in all that a mapping says, and tells what is not understood.
    fn set_all(&mut self, node: &Node, wrong: &mut dyn FnMut(String)) {
        let NodeKind::Mapping(entries) = &node.kind else { return };
        for (key, value) in entries {
            let mut set = |key: &str, value: &str| {
                if let Err(what) = self.set(key, value) {
                    wrong(what);
                }
            };
            set(key, list::scalar(value));
            // The seconds before their rest, in whichever order they stand.
            for part in ["sec", "nsec"] {
                if let Some(value) = list::get(value, part) {
                    set(part, list::scalar(value));
                }
            }
        }
    }

    /// Takes in one policy, or a part of a duration; the error says what is allowed.
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let qos = &mut self.qos;
        match (key, value) {
            ("depth", _) => {
                self.depth = value
                    .parse()
                    .map_err(|_| format!("depth \"{value}\"; allowed: a number of at least 0"))?;
                if let (History::KeepLast(_), 1..=Qos::DEPTH_MAX) = (qos.history, self.depth) {
                    qos.history = History::KeepLast(self.depth);
                }
            }
            ("history", "keep_all" | "2") => qos.history = History::KeepAll,
            ("history", "keep_last" | "1") => {
                if 0 < self.depth && self.depth <= Qos::DEPTH_MAX {
                    qos.history = History::KeepLast(self.depth);
                }
            }
            ("reliability", "best_effort" | "2") => qos.reliability = Reliability::BestEffort,
            ("reliability", "reliable" | "1") => qos.reliability = Reliability::Reliable,
            ("durability", "transient_local" | "1") => qos.durability = Durability::TransientLocal,
            ("durability", "volatile" | "2") => qos.durability = Durability::Volatile,
            ("liveliness", "manual_by_topic" | "3") => qos.liveliness = Liveliness::ManualByTopic,
            ("liveliness", "automatic" | "1") => qos.liveliness = Liveliness::Automatic,
            (
                "history" | "reliability" | "durability" | "liveliness",
                "system_default" | "unknown" | "0",
            ) => {}
            ("history", _) => return Err(allowed(key, value, "keep_last, keep_all")),
            ("reliability", _) => return Err(allowed(key, value, "reliable, best_effort")),
            ("durability", _) => return Err(allowed(key, value, "volatile, transient_local")),
            ("liveliness", _) => return Err(allowed(key, value, "automatic, manual_by_topic")),
            ("deadline" | "lifespan" | "liveliness_lease_duration", _) => {
                self.within = key_of(key);
                self.sec = 0;
            }
            ("sec", _) => self.sec = value.parse().map_err(|_| allowed(key, value, "seconds"))?,
            ("nsec", _) => {
                let nsec = value.parse().map_err(|_| allowed(key, value, "nanoseconds"))?;
                let found = finite(self.sec, nsec);
                match self.within {
                    "deadline" => qos.deadline = found,
                    "lifespan" => qos.lifespan = found,
                    "liveliness_lease_duration" => qos.liveliness_lease = found,
                    _ => {}
                }
            }
            ("avoid_ros_namespace_conventions", _) => {}
            _ => {
                return Err(format!(
                    "\"{key}\" is no policy; allowed: history, depth, reliability, durability, deadline, lifespan, liveliness, \
                     liveliness_lease_duration, avoid_ros_namespace_conventions"
                ));
            }
        }
        Ok(())
    }
}

fn allowed(key: &str, value: &str, allowed: &str) -> String {
    format!("{key} \"{value}\"; allowed: {allowed}")
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
///
/// It keeps for late joiners as much as all publishers together did: each of several that latched one message, as those of
/// `/tf_static` do, had its own.
pub(crate) fn together(offers: &[Qos]) -> Qos {
    let Some(first) = offers.first() else { return Qos::DEFAULT };
    let is_latched = |it: &Qos| it.durability == Durability::TransientLocal;
    let (mut latched, mut most, mut is_all) = (0_u32, 0, false);
    for it in offers {
        match it.history {
            History::KeepAll => is_all = true,
            History::KeepLast(depth) if is_latched(it) => latched = latched.saturating_add(depth),
            History::KeepLast(depth) => most = most.max(depth),
        }
    }
    let depth = latched.max(most).min(Qos::DEPTH_MAX);
    Qos {
        reliability: offers.iter().map(|it| it.reliability).max().unwrap_or(first.reliability),
        durability: offers.iter().find(|it| is_latched(it)).unwrap_or(first).durability,
        history: if is_all { History::KeepAll } else { History::KeepLast(depth) },
        // A recording is paused and played at other rates, which are no faults of the publisher.
        deadline: None,
        lifespan: None,
        liveliness: Liveliness::Automatic,
        liveliness_lease: None,
    }
}

/// Adds to the offers of a topic those of `more`, which are all that one file says of it. Equal offers are those of several
/// publishers, so each is kept as often as the file says that has it most often. At most [`OFFERS_MAX`] are kept.
pub(crate) fn merge(offers: &mut Vec<Qos>, more: &[Qos]) {
    let count = |of: &[Qos], wanted: &Qos| of.iter().filter(|it| *it == wanted).count();
    for (at, it) in more.iter().enumerate() {
        if offers.len() < OFFERS_MAX && count(offers, it) < count(&more[..=at], it) {
            offers.push(*it);
        }
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
        for layout in [Layout::Humble, Layout::Iron, Layout::Jazzy] {
            let text = to_yaml(&offers, layout);
            assert_eq!(from_yaml(&text), offers, "{text}");
            let Node { kind: NodeKind::Sequence(nodes), .. } = yaml::parse(&text).unwrap() else {
                panic!("{text}")
            };
            assert_eq!(from_nodes(&nodes), offers, "{text}");
            // What Humble's rosbag2 reads are numbers.
            assert_eq!(text.contains("history: keep_last"), layout == Layout::Jazzy, "{text}");
        }
    }

    #[test]
    fn overrides_are_read_or_refused() {
        let text = "/map: {reliability: reliable, durability: transient_local, history: keep_last, depth: 1}\n\
                    /scan:\n  reliability: best_effort\n  depth: 5\n  deadline: {nsec: 500000000, sec: 1}\n";
        let overrides = qos_overrides(text).unwrap();
        let latched = Qos {
            history: History::KeepLast(1),
            durability: Durability::TransientLocal,
            ..Qos::DEFAULT
        };
        assert_eq!(overrides["/map"], latched);
        let scan = Qos {
            history: History::KeepLast(5),
            reliability: Reliability::BestEffort,
            deadline: Some(Duration::from_millis(1500)),
            ..Qos::DEFAULT
        };
        assert_eq!(overrides["/scan"], scan);
        for (text, expect) in [
            ("/a: {reliabilty: reliable}", "/a: \"reliabilty\" is no policy; allowed: history, "),
            ("/a: {reliability: 7}", "/a: reliability \"7\"; allowed: reliable, best_effort"),
            ("/a: {depth: -1}", "/a: depth \"-1\"; allowed: "),
            ("/a: best_effort", "/a: found `best_effort`; allowed: policies by name"),
            ("[]", "found a sequence; allowed: names of topics"),
            ("/a: {", "line"),
        ] {
            let error = qos_overrides(text).unwrap_err();
            assert!(error.contains(expect), "{text}: {error}");
        }
    }

    #[test]
    fn what_several_publishers_latched_is_kept_for_late_joiners() {
        let latched = |depth| Qos {
            history: History::KeepLast(depth),
            durability: Durability::TransientLocal,
            ..Qos::DEFAULT
        };
        let check = |offers: &[Qos], history, durability| {
            let qos = together(offers);
            assert_eq!((qos.history, qos.durability), (history, durability), "{offers:?}");
        };
        let of = History::KeepLast;
        check(&[latched(1); 3], of(3), Durability::TransientLocal);
        check(&[latched(1), latched(5), Qos::SENSOR_DATA], of(6), Durability::TransientLocal);
        check(&[Qos::DEFAULT, latched(1), latched(20)], of(21), Durability::TransientLocal);
        check(&[Qos::DEFAULT, Qos::SENSOR_DATA], of(10), Durability::Volatile);
        let all = Qos { history: History::KeepAll, ..latched(1) };
        check(&[latched(1), all], History::KeepAll, Durability::TransientLocal);
        check(&[latched(Qos::DEPTH_MAX); 2], of(Qos::DEPTH_MAX), Durability::TransientLocal);
    }

    #[test]
    fn equal_offers_are_kept_as_often_as_a_file_says() {
        let (a, b) = (Qos::DEFAULT, Qos::SENSOR_DATA);
        let mut offers = Vec::new();
        for (more, expect) in [
            (vec![a, a], vec![a, a]),
            (vec![a], vec![a, a]),
            (vec![b, a, a, a], vec![a, a, b, a]),
            (vec![a; OFFERS_MAX + 50], [vec![a, a, b, a], vec![a; OFFERS_MAX - 4]].concat()),
        ] {
            merge(&mut offers, &more);
            assert_eq!(offers, expect);
        }
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

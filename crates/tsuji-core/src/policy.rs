use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::words::words;
use crate::{
    Outward, Peers, Rate, Reliability, Robot, Scopes, Size, TopicPattern, Traits, TransportId,
    UnknownWord,
};

/// Ordered rules from traits to transports, resolved: whatever is built can be decided by.
///
/// Immutable, so that a decision and its reasons belong to one policy. The default has no rule at
/// all; every flow then takes the last resort.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "DraftPolicy", into = "DraftPolicy"))]
pub struct Policy(DraftPolicy);

impl Policy {
    /// The size line until it is set: 64 KiB, the line of the paper that tsuji starts from.
    pub const SIZE_LINE_BYTES_DEFAULT: u64 = 64 * 1024;

    /// The most rules, of both kinds together. A decision looks at each of them.
    pub const RULES_MAX: usize = 2000;

    /// The most transports that one rule names.
    pub const TRANSPORTS_PER_RULE_MAX: usize = 32;

    /// Resolves a draft: puts its rules in the order of their priorities, the highest first; equal
    /// priorities stay in the order in which they are given.
    ///
    /// # Errors
    ///
    /// - [`InvalidPolicy::SizeLineZero`] if the size line is 0.
    /// - [`InvalidPolicy::TooManyRules`] if there are more rules than [`RULES_MAX`](Self::RULES_MAX).
    /// - [`InvalidPolicy::NameTwice`] if a rule has the name of another.
    /// - [`InvalidPolicy::TransportCount`] if a rule names no transport, or more than
    ///   [`TRANSPORTS_PER_RULE_MAX`](Self::TRANSPORTS_PER_RULE_MAX); [`InvalidPolicy::NamedTwice`] if it names one
    ///   twice.
    /// - [`InvalidPolicy::SettingsTwice`] if a transport has two groups of settings.
    pub fn new(mut draft: DraftPolicy) -> Result<Self, InvalidPolicy> {
        if draft.size_line_bytes.value == 0 {
            return Err(InvalidPolicy::SizeLineZero);
        }
        if draft.rules.len() + draft.forbids.len() > Self::RULES_MAX {
            return Err(InvalidPolicy::TooManyRules);
        }
        let mut names = HashSet::new();
        for rule in draft.rules.iter().chain(&draft.forbids) {
            if rule.name.as_ref().is_some_and(|name| !names.insert(name)) {
                return Err(InvalidPolicy::NameTwice { rule: rule.reference() });
            }
            let named = &rule.transports;
            if named.is_empty() || named.len() > Self::TRANSPORTS_PER_RULE_MAX {
                return Err(InvalidPolicy::TransportCount { rule: rule.reference() });
            }
            for (at, transport) in named.iter().enumerate() {
                if named[..at].contains(transport) {
                    return Err(InvalidPolicy::NamedTwice {
                        rule: rule.reference(),
                        transport: transport.clone(),
                    });
                }
            }
        }
        for (at, one) in draft.transports.iter().enumerate() {
            if draft.transports[..at].iter().any(|other| other.transport == one.transport) {
                return Err(InvalidPolicy::SettingsTwice { transport: one.transport.clone() });
            }
        }
        draft.rules.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
        draft.forbids.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
        Ok(Self(draft))
    }

    /// The name of the rule that [`pinned`](Self::pinned) adds.
    pub const PIN: &str = "route set";

    /// The same policy with one more rule before all others: for `topic`, `transport`. It takes the
    /// place of an earlier one for this topic.
    ///
    /// Where `transport` is forbidden or not able, the other rules decide. The rule counts towards
    /// no limit, and those for several topics share their name: the policy is to decide by, and
    /// [`Self::new`] may refuse its parts.
    #[must_use]
    pub fn pinned(&self, topic: &str, transport: &TransportId) -> Self {
        let pin = Rule {
            name: Some(Self::PIN.into()),
            priority: i32::MAX,
            conditions: Conditions {
                topic: Some(TopicPattern::exact(topic)),
                ..Conditions::default()
            },
            transports: vec![transport.clone()],
            origin: Origin { file: "at run time".into(), line: 0 },
        };
        let is_replaced =
            |rule: &Rule| rule.reference() == pin.reference() && rule.conditions == pin.conditions;
        let mut parts = self.0.clone();
        parts.rules.retain(|rule| !is_replaced(rule));
        parts.rules.insert(0, pin);
        Self(parts)
    }

    /// What the user would rather have, where there is a choice.
    pub fn prefer(&self) -> Prefer {
        self.0.prefer.value
    }

    /// Which foreign ROS 2 peers are to be met.
    pub fn interop(&self) -> Interop {
        self.0.interop.value
    }

    /// Which engine speaks RTPS to foreign ROS 2 peers.
    pub fn engine(&self) -> RtpsEngine {
        self.0.engine.value
    }

    /// Samples of at least so many bytes are large.
    pub fn size_line_bytes(&self) -> u64 {
        self.0.size_line_bytes.value
    }

    /// The rules that choose, in the order in which they are tried.
    pub fn rules(&self) -> &[Rule] {
        &self.0.rules
    }

    /// The rules that forbid. A transport that any fitting one names is never chosen.
    pub fn forbids(&self) -> &[Rule] {
        &self.0.forbids
    }

    /// The topics whose sizes are stated; the first pattern that matches a topic counts.
    pub fn stated_sizes(&self) -> &[StatedSize] {
        &self.0.stated_sizes
    }

    /// What is stated of `topic`'s size.
    pub fn stated_size(&self, topic: &str) -> Option<&StatedSize> {
        self.0.stated_sizes.iter().find(|stated| stated.topic.matches(topic))
    }

    /// What the outside sees of processes, unless they are told of another robot.
    pub fn outward(&self) -> Outward {
        let robot = self.0.robot.as_ref().map(|it| it.value.clone());
        let exports = self.0.exports.iter().map(|it| (it.topic.clone(), it.rate));
        Outward::new(robot, exports.collect())
    }

    /// What is set for transports.
    pub fn transports(&self) -> &[TransportSettings] {
        &self.0.transports
    }

    /// What is set for one transport.
    pub fn settings(&self, transport: &TransportId) -> Option<&TransportSettings> {
        self.0.transports.iter().find(|settings| settings.transport == *transport)
    }

    /// Everything, with origins, to be shown or written out, or changed into another policy.
    pub fn parts(&self) -> &DraftPolicy {
        &self.0
    }
}

impl TryFrom<DraftPolicy> for Policy {
    type Error = InvalidPolicy;

    fn try_from(draft: DraftPolicy) -> Result<Self, InvalidPolicy> {
        Self::new(draft)
    }
}

impl From<Policy> for DraftPolicy {
    fn from(policy: Policy) -> Self {
        policy.0
    }
}

/// The parts of a [`Policy`], before they are put in order and checked.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DraftPolicy {
    /// Latency or memory.
    pub prefer: Sourced<Prefer>,
    /// Which foreign ROS 2 peers are to be met.
    pub interop: Sourced<Interop>,
    /// Which engine speaks RTPS to them.
    pub engine: Sourced<RtpsEngine>,
    /// Samples of at least so many bytes are large; at least 1.
    pub size_line_bytes: Sourced<u64>,
    /// The rules that choose.
    pub rules: Vec<Rule>,
    /// The rules that forbid.
    pub forbids: Vec<Rule>,
    /// Stated sizes by topic.
    pub stated_sizes: Vec<StatedSize>,
    /// Settings by transport, each transport once.
    pub transports: Vec<TransportSettings>,
    /// The robot that processes belong to.
    #[cfg_attr(feature = "serde", serde(default))]
    pub robot: Option<Sourced<Robot>>,
    /// The topics that leave the host and the robot; empty for all.
    #[cfg_attr(feature = "serde", serde(default))]
    pub exports: Vec<Export>,
}

impl Default for DraftPolicy {
    fn default() -> Self {
        Self {
            prefer: Sourced { value: Prefer::Latency, origin: None },
            interop: Sourced { value: Interop::RTPS, origin: None },
            engine: Sourced { value: RtpsEngine::CycloneDds, origin: None },
            size_line_bytes: Sourced { value: Policy::SIZE_LINE_BYTES_DEFAULT, origin: None },
            rules: Vec::new(),
            forbids: Vec::new(),
            stated_sizes: Vec::new(),
            transports: Vec::new(),
            robot: None,
            exports: Vec::new(),
        }
    }
}

/// Why a draft is not a policy.
#[derive(Clone, PartialEq, Eq)]
pub enum InvalidPolicy {
    /// With a line at 0 every sample would be large.
    SizeLineZero,
    /// More than [`Policy::RULES_MAX`].
    TooManyRules,
    /// A rule names no transport, or more than [`Policy::TRANSPORTS_PER_RULE_MAX`].
    TransportCount {
        /// The rule.
        rule: RuleRef,
    },
    /// A rule has the name of another.
    NameTwice {
        /// The rule.
        rule: RuleRef,
    },
    /// A rule names a transport twice.
    NamedTwice {
        /// The rule.
        rule: RuleRef,
        /// The transport.
        transport: TransportId,
    },
    /// A transport has two groups of settings.
    SettingsTwice {
        /// The transport.
        transport: TransportId,
    },
}

impl fmt::Display for InvalidPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SizeLineZero => f.write_str("the size line is 0 bytes; allowed: 1 and more"),
            Self::TooManyRules => write!(f, "more than {} rules", Policy::RULES_MAX),
            Self::TransportCount { rule } => {
                let max = Policy::TRANSPORTS_PER_RULE_MAX;
                write!(f, "{rule} names no transport or too many; allowed: 1 to {max}")
            }
            Self::NameTwice { rule } => write!(f, "{rule} has the name of another rule"),
            Self::NamedTwice { rule, transport } => write!(f, "{rule} names {transport} twice"),
            Self::SettingsTwice { transport } => write!(f, "{transport} has settings twice"),
        }
    }
}

impl Error for InvalidPolicy {}

/// One rule: for flows of these traits, these transports, the best first.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rule {
    /// What the rule is called, if anything; no two rules of a policy share a name.
    pub name: Option<Arc<str>>,
    /// Rules of a higher priority are tried first.
    pub priority: i32,
    /// Which flows it is for.
    pub conditions: Conditions,
    /// What it names, in order; at least one, none twice.
    pub transports: Vec<TransportId>,
    /// Where it is written.
    pub origin: Origin,
}

impl Rule {
    /// What a reason calls this rule.
    pub fn reference(&self) -> RuleRef {
        RuleRef { name: self.name.clone(), origin: self.origin.clone() }
    }
}

/// Which flows a rule is for. Every condition that is given must hold; none given is every flow.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Conditions {
    /// The size class.
    pub size: Option<Size>,
    /// The scopes.
    pub scope: Option<Scopes>,
    /// The reliability.
    pub reliability: Option<Reliability>,
    /// Who the other end is.
    pub peer: Option<Peers>,
    /// The topic.
    pub topic: Option<TopicPattern>,
    /// What the policy prefers.
    pub prefer: Option<Prefer>,
}

impl Conditions {
    /// Whether a flow of `traits` on `topic` is meant, under a policy that prefers `prefer`.
    pub fn fit(&self, traits: &Traits, topic: &str, prefer: Prefer) -> bool {
        self.size.is_none_or(|size| size == traits.size)
            && self.scope.is_none_or(|scopes| scopes.contains(traits.scope))
            && self.reliability.is_none_or(|reliability| reliability == traits.reliability)
            && self.peer.is_none_or(|peers| peers.contains(traits.peer))
            && self.prefer.is_none_or(|wanted| wanted == prefer)
            && self.topic.as_ref().is_none_or(|pattern| pattern.matches(topic))
    }
}

/// Names a rule in a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleRef {
    /// What it is called, if anything.
    pub name: Option<Arc<str>>,
    /// Where it is written.
    pub origin: Origin,
}

impl fmt::Display for RuleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "rule {name:?} ({})", self.origin),
            None => write!(f, "the rule at {}", self.origin),
        }
    }
}

/// A place in a policy file, or what stands for one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Origin {
    /// The file, as messages name it.
    pub file: Arc<str>,
    /// The line, counted from 1. At 0 there is no file, and `file` says where it comes from.
    pub line: u32,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// A value, and where it was set.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it is written; `None` where nobody set it.
    pub origin: Option<Origin>,
}

/// The size that a policy states for a topic, used until samples show it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StatedSize {
    /// For which topics.
    pub topic: TopicPattern,
    /// The class; where it is not given, it follows from `expected_bytes`.
    pub size: Option<Size>,
    /// The bytes of a typical sample.
    pub expected_bytes: Option<u64>,
    /// Where it is written.
    pub origin: Origin,
}

/// Topics that leave the host and the robot.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Export {
    /// Which topics and services.
    pub topic: TopicPattern,
    /// How often at most samples of such a topic leave.
    #[cfg_attr(feature = "serde", serde(default))]
    pub rate: Option<Rate>,
    /// Where it is written.
    pub origin: Origin,
}

/// What is set for one transport.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TransportSettings {
    /// Which transport.
    pub transport: TransportId,
    /// The library that brings it, for a plug-in.
    pub plugin: Option<Arc<str>>,
    /// Its settings, each key once. Their meaning is the transport's own affair.
    pub settings: Vec<Setting>,
    /// Where the transport was first written of.
    pub origin: Origin,
}

/// One `key = value`.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Setting {
    /// The key.
    pub key: Arc<str>,
    /// The value, as it is written.
    pub value: Arc<str>,
    /// Where it is written.
    pub origin: Origin,
}

/// What the user would rather have, where there is a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Prefer {
    /// Short delays, at the price of memory.
    Latency,
    /// Little memory, at the price of delay.
    Memory,
}

/// Which foreign peers are to be met: a set of wires on which they are.
///
/// In text the words of the wires with spaces or commas between, or `none`. `both` is short for `rtps zenoh`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Interop(u8);

impl Interop {
    /// None; no ROS name is announced.
    pub const NONE: Self = Self(0);

    /// ROS 2 nodes on DDS.
    pub const RTPS: Self = Self(1);

    /// ROS 2 nodes on Zenoh.
    pub const ZENOH: Self = Self(2);

    /// Nodes of ROS 1.
    pub const ROS1: Self = Self(4);

    /// The words that text has.
    pub const WORDS: &[&str] = &["rtps", "zenoh", "ros1", "both", "none"];

    const WIRES: [(Self, &'static str); 3] =
        [(Self::RTPS, "rtps"), (Self::ZENOH, "zenoh"), (Self::ROS1, "ros1")];

    /// Both sets together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What of this set is not in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all of the other set is in this one.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The words with spaces between.
impl fmt::Display for Interop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = Self::WIRES.iter().filter(|(wire, _)| self.contains(*wire));
        let words: Vec<&str> = words.map(|(_, word)| *word).collect();
        if words.is_empty() { f.pad("none") } else { f.pad(&words.join(" ")) }
    }
}

impl FromStr for Interop {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = |word: &str| UnknownWord {
            word: word.to_owned(),
            what: "kind of interop",
            allowed: Self::WORDS,
        };
        let mut words = text.split([' ', ',', '\t']).filter(|word| !word.is_empty()).peekable();
        if text == "none" {
            return Ok(Self::NONE);
        }
        if words.peek().is_none() {
            return Err(refused(text));
        }
        words.try_fold(Self::NONE, |all, word| {
            let known = Self::WIRES.iter().find(|(_, it)| *it == word).map(|(wire, _)| *wire);
            let both = || (word == "both").then_some(Self::RTPS.and(Self::ZENOH));
            known.or_else(both).map(|wire| all.and(wire)).ok_or_else(|| refused(word))
        })
    }
}

/// Which engine speaks RTPS to foreign ROS 2 peers, of those that understand each other there. A publisher
/// sends by one at a time, so that nobody hears a sample twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RtpsEngine {
    /// Eclipse Cyclone DDS.
    CycloneDds,
    /// eProsima Fast DDS.
    FastDds,
    /// Cyclone DDS, and beside it Fast DDS for peers on Fast DDS of this host.
    Both,
}

impl RtpsEngine {
    /// The one that finds everybody, and speaks to whomever no other does.
    pub fn first(self) -> Self {
        match self {
            Self::FastDds => Self::FastDds,
            Self::CycloneDds | Self::Both => Self::CycloneDds,
        }
    }
}

words!(Prefer, "preference" { [Self::Latency] => "latency", [Self::Memory] => "memory", });
words!(RtpsEngine, "known engine" {
    [Self::CycloneDds] => "cyclonedds",
    [Self::FastDds] => "fastdds",
    [Self::Both] => "both",
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::offer;
    use crate::{Choice, Health, Offer, Peer, Scope, SizeOrigin, select};

    fn rule(name: &str, priority: i32, transports: &[&str]) -> Rule {
        Rule {
            name: Some(name.into()),
            priority,
            conditions: Conditions::default(),
            transports: transports.iter().map(|name| TransportId::new(name)).collect(),
            origin: Origin { file: "t.xml".into(), line: 1 },
        }
    }

    #[test]
    fn rules_stand_by_priority_then_as_given() {
        let rules = vec![
            rule("a", 0, &["x"]),
            rule("b", 5, &["x"]),
            rule("c", 0, &["x"]),
            rule("d", -1, &["x"]),
        ];
        let policy = Policy::new(DraftPolicy { rules, ..DraftPolicy::default() }).unwrap();
        let order: Vec<_> = policy.rules().iter().filter_map(|rule| rule.name.as_deref()).collect();
        assert_eq!(order, ["b", "a", "c", "d"]);
    }

    /// What `policy` chooses for `/t`, and why; then what it does not, and why not.
    #[track_caller]
    fn check(policy: &Policy, offers: &[Offer], expect: &[&str]) {
        let traits = Traits {
            size: Size::Small,
            size_origin: SizeOrigin::Prior,
            sample_bytes: None,
            scope: Scope::Local,
            reliability: Reliability::Reliable,
            peer: Peer::Tsuji,
        };
        let Choice { transport, because, rejected } =
            select(&traits, policy, "/t", offers).unwrap();
        let rejected = rejected.iter().map(|(transport, reason)| format!("{transport}: {reason}"));
        let told: Vec<_> =
            [format!("{transport}: {}", because.basis)].into_iter().chain(rejected).collect();
        assert_eq!(told, expect);
    }

    fn policy(rules: Vec<Rule>, forbids: Vec<Rule>) -> Policy {
        Policy::new(DraftPolicy { rules, forbids, ..DraftPolicy::default() }).unwrap()
    }

    #[test]
    fn a_pinned_transport_wins_over_every_rule() {
        let policy = policy(vec![rule("a", i32::MAX, &["x", "y"])], vec![]);
        check(
            &policy.pinned("/t", &TransportId::new("y")),
            &[offer("x"), offer("y")],
            &[
                "y: rule \"route set\" (at run time)",
                "x: rule \"route set\" (at run time) chose y before rule \"a\" (t.xml:1) was reached",
            ],
        );
        check(
            &policy.pinned("/other", &TransportId::new("y")),
            &[offer("x"), offer("y")],
            &["x: rule \"a\" (t.xml:1)", "y: rule \"a\" (t.xml:1) puts x first"],
        );
    }

    #[test]
    fn a_pinned_transport_that_is_not_able_leaves_it_to_the_policy() {
        let pinned = policy(vec![rule("a", 0, &["x"])], vec![rule("b", 0, &["z"])]);
        let pinned = |name| pinned.pinned("/t", &TransportId::new(name));
        let full = Offer { health: Health::Exhausted("no memory".into()), ..offer("y") };
        check(
            &pinned("y"),
            &[offer("x"), full],
            &["x: rule \"a\" (t.xml:1)", "y: exhausted: no memory"],
        );
        check(
            &pinned("z"),
            &[offer("x"), offer("z")],
            &["x: rule \"a\" (t.xml:1)", "z: forbidden by rule \"b\" (t.xml:1)"],
        );
        check(
            &pinned("w"),
            &[offer("x")],
            &[
                "x: rule \"a\" (t.xml:1)",
                "w: not offered here (rule \"route set\" (at run time) names it)",
            ],
        );
    }

    #[test]
    fn the_last_pin_of_a_topic_counts_and_others_stay() {
        let (x, y) = (TransportId::new("x"), TransportId::new("y"));
        let policy = Policy::default().pinned("/t", &x).pinned("/u", &x).pinned("/t", &y);
        assert_eq!(policy.rules().len(), 2);
        check(
            &policy,
            &[offer("x"), offer("y")],
            &["y: rule \"route set\" (at run time)", "x: no rule that fits names it"],
        );
    }

    #[test]
    fn a_full_policy_is_pinned_too() {
        let unnamed = Rule { name: None, ..rule("", 0, &["x"]) };
        let policy = policy(vec![unnamed; Policy::RULES_MAX], vec![]);
        let pinned = policy.pinned("/t", &TransportId::new("y"));
        assert_eq!(pinned.rules().len(), Policy::RULES_MAX + 1);
        assert_eq!(pinned.rules()[0].name.as_deref(), Some(Policy::PIN));
    }

    #[test]
    fn a_pin_of_what_is_no_topic_does_no_harm() {
        for topic in ["", "t", "/", "//", "**", "/**a**", "カメラ", "/カ*", &"/a".repeat(1000)]
        {
            let pinned = Policy::default().pinned(topic, &TransportId::new("y"));
            check(
                &pinned,
                &[offer("x"), offer("y")],
                &[
                    "x: last resort, no rule names one that is able",
                    "y: last resort: x is offered first",
                ],
            );
        }
    }

    #[track_caller]
    fn refused(draft: DraftPolicy, expect: &str) {
        assert_eq!(Policy::new(draft).unwrap_err().to_string(), expect);
    }

    #[test]
    fn what_is_no_policy() {
        let base = DraftPolicy::default;
        refused(
            DraftPolicy { size_line_bytes: Sourced { value: 0, origin: None }, ..base() },
            "the size line is 0 bytes; allowed: 1 and more",
        );
        refused(
            DraftPolicy { rules: vec![rule("a", 0, &[])], ..base() },
            "rule \"a\" (t.xml:1) names no transport or too many; allowed: 1 to 32",
        );
        refused(
            DraftPolicy { forbids: vec![rule("a", 0, &["x", "y", "x"])], ..base() },
            "rule \"a\" (t.xml:1) names x twice",
        );
        refused(
            DraftPolicy { rules: vec![rule("a", 0, &["x"]); Policy::RULES_MAX + 1], ..base() },
            "more than 2000 rules",
        );
        refused(
            DraftPolicy {
                rules: vec![rule("a", 0, &["x"])],
                forbids: vec![rule("a", 0, &["x"])],
                ..base()
            },
            "rule \"a\" (t.xml:1) has the name of another rule",
        );
        let settings = TransportSettings {
            transport: TransportId::new("x"),
            plugin: None,
            settings: Vec::new(),
            origin: Origin { file: "t.xml".into(), line: 2 },
        };
        refused(DraftPolicy { transports: vec![settings; 2], ..base() }, "x has settings twice");
    }
}

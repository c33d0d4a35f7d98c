use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::{
    Capability, Peer, Peers, Policy, Reliability, Rule, RuleRef, Scope, Size, Traits, TransportId,
};

/// Chooses the transport of one flow, and says why it and why none of the others.
///
/// The rules that fit the flow are tried in the policy's order. The first transport that they name
/// which is offered and able wins. If there is none, the last resort does: among all that are
/// offered and able the best by [`Advantage`].
///
/// Every transport that is offered, or named by a rule that fits, is either chosen or in
/// `rejected`, once.
///
/// # Errors
///
/// [`NoRoute`] if none of `offers` is able to carry the flow, with a reason for each transport that was considered.
pub fn select(
    traits: &Traits,
    policy: &Policy,
    topic: &str,
    offers: &[Offer],
) -> Result<Choice, NoRoute> {
    let fits = |rule: &&Rule| rule.conditions.fit(traits, topic, policy.prefer());
    let forbids: Vec<&Rule> = policy.forbids().iter().filter(fits).collect();
    let rules: Vec<&Rule> = policy.rules().iter().filter(fits).collect();

    let mut rejected = Rejected::default();
    let mut winner = None;
    for rule in &rules {
        for transport in &rule.transports {
            let Some(offer) = offers.iter().find(|offer| offer.transport == *transport) else {
                rejected.add(transport, Reason::NotOffered { rule: rule.reference() });
                continue;
            };
            if let Some(reason) = objection(traits, &forbids, offer) {
                rejected.add(transport, reason);
                continue;
            }
            match &winner {
                None => winner = Some((offer, Basis::Rule(rule.reference()))),
                Some((first, Basis::Rule(by))) if first.transport != *transport => {
                    let winner = first.transport.clone();
                    let reason = if *by == rule.reference() {
                        Reason::RankedLower { winner, rule: by.clone() }
                    } else {
                        Reason::LaterRule { rule: rule.reference(), winner, by: by.clone() }
                    };
                    rejected.add(transport, reason);
                }
                Some(_) => {}
            }
        }
    }

    let able = |offer: &&Offer| objection(traits, &forbids, offer).is_none();
    if winner.is_none() {
        // `max_by_key` would take the last of equals; the order of the offers decides instead.
        let best = offers.iter().filter(able).rev().max_by_key(|offer| merit(traits, offer));
        winner = best.map(|offer| (offer, Basis::LastResort));
    }
    for offer in offers {
        let reason = match (objection(traits, &forbids, offer), &winner) {
            (Some(reason), _) => reason,
            (None, Some((first, _))) if first.transport == offer.transport => continue,
            (None, Some((first, Basis::LastResort))) => Reason::LesserLastResort {
                winner: first.transport.clone(),
                advantage: advantage(traits, first, offer),
            },
            (None, _) => Reason::NotNamed,
        };
        rejected.add(&offer.transport, reason);
    }

    let rejected = rejected.0;
    let Some((offer, basis)) = winner else {
        return Err(NoRoute { traits: traits.clone(), rejected });
    };
    let because =
        Because { basis, traits: traits.clone(), size_line_bytes: policy.size_line_bytes() };
    Ok(Choice { transport: offer.transport.clone(), because, rejected })
}

/// A transport that is there for a flow.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Offer {
    /// Which transport.
    pub transport: TransportId,
    /// What it can do.
    pub capability: Capability,
    /// Whom it can talk to.
    pub peers: Peers,
    /// How many readers the flow's writer already has on it, not counting this flow.
    pub readers: u32,
    /// Whether it can do it just now.
    pub health: Health,
}

impl Offer {
    /// A healthy transport that talks to tsuji endpoints only.
    pub fn new(transport: TransportId, capability: Capability) -> Self {
        Self { transport, capability, peers: Peers::TSUJI, readers: 0, health: Health::Good }
    }
}

/// Whether a transport can do now what it can do. The texts are the transport's own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Health {
    /// It can.
    Good,
    /// It has run out of something, for example of shared memory.
    Exhausted(Arc<str>),
    /// It does not work, for example because a library cannot be loaded.
    Failed(Arc<str>),
}

/// The transport of a flow, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The transport that carries the flow.
    pub transport: TransportId,
    /// Why this one.
    pub because: Because,
    /// The others, each with why not, in the order in which they were considered.
    pub rejected: Vec<(TransportId, Reason)>,
}

/// No transport can carry the flow.
#[derive(Clone, PartialEq)]
pub struct NoRoute {
    /// What was known of the flow.
    pub traits: Traits,
    /// Everything that was considered, each with why not.
    pub rejected: Vec<(TransportId, Reason)>,
}

impl fmt::Display for NoRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no transport can carry this flow")?;
        let mut separator = ": ";
        for (transport, reason) in &self.rejected {
            write!(f, "{separator}{transport}: {reason}")?;
            separator = "; ";
        }
        Ok(())
    }
}

impl Error for NoRoute {}

/// Why a transport was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Because {
    /// What chose it.
    pub basis: Basis,
    /// What was known of the flow, with how the size is known.
    pub traits: Traits,
    /// The line between small and large.
    pub size_line_bytes: u64,
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Traits { size, size_origin, sample_bytes, scope, reliability, peer } = &self.traits;
        write!(f, "{}; {size} (", self.basis)?;
        if let Some(bytes) = sample_bytes {
            write!(f, "{bytes} bytes, ")?;
        }
        write!(f, "{size_origin}; the line is {} bytes), ", self.size_line_bytes)?;
        match scope {
            Scope::Intra => f.write_str("intra (one process, proved)")?,
            Scope::Local => f.write_str("local (one host, proved)")?,
            Scope::Remote => f.write_str("remote (nothing nearer is proved)")?,
        }
        write!(f, ", {reliability}, peer {peer}")
    }
}

/// What chose a transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Basis {
    /// A rule named it.
    Rule(RuleRef),
    /// No rule that fits names a transport that is offered and able.
    LastResort,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => rule.fmt(f),
            Self::LastResort => f.write_str("last resort, no rule names one that is able"),
        }
    }
}

/// Why a transport was not chosen.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// A rule names it, but it is not in this build or not switched on.
    NotOffered {
        /// The rule that names it.
        rule: RuleRef,
    },
    /// A rule forbids it for this flow.
    Forbidden {
        /// The rule that forbids it.
        rule: RuleRef,
    },
    /// The other end is out of its reach.
    OutOfReach {
        /// How far the other end is.
        scope: Scope,
    },
    /// The other end does not speak it.
    NotSpoken {
        /// Who the other end is.
        peer: Peer,
    },
    /// The flow is reliable and the transport is not.
    NotReliable,
    /// The samples are larger than it accepts.
    TooLarge {
        /// The bytes of a typical sample.
        sample_bytes: u64,
        /// The largest sample it accepts.
        sample_bytes_max: u64,
    },
    /// The writer has as many readers on it as it allows.
    ReadersFull {
        /// The most readers of one writer.
        readers_max: u32,
    },
    /// It has run out of something.
    Exhausted {
        /// What it says.
        what: Arc<str>,
    },
    /// It does not work.
    Failed {
        /// What it says.
        what: Arc<str>,
    },
    /// The rule that decided names it after the winner.
    RankedLower {
        /// The transport before it.
        winner: TransportId,
        /// The rule that decided.
        rule: RuleRef,
    },
    /// A rule names it that was not reached.
    LaterRule {
        /// The rule that names it.
        rule: RuleRef,
        /// The transport that was chosen before.
        winner: TransportId,
        /// The rule that chose.
        by: RuleRef,
    },
    /// It is able, but no rule that fits names it.
    NotNamed,
    /// No rule decided, and another is better.
    LesserLastResort {
        /// The one that is better.
        winner: TransportId,
        /// What is better about it.
        advantage: Advantage,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOffered { rule } => write!(f, "not offered here ({rule} names it)"),
            Self::Forbidden { rule } => write!(f, "forbidden by {rule}"),
            Self::OutOfReach { scope } => write!(f, "out of reach: the peer is {scope}"),
            Self::NotSpoken { peer } => write!(f, "the peer ({peer}) does not speak it"),
            Self::NotReliable => f.write_str("not reliable, and the flow is"),
            Self::TooLarge { sample_bytes, sample_bytes_max } => {
                write!(f, "too large: {sample_bytes} bytes, it takes at most {sample_bytes_max}")
            }
            Self::ReadersFull { readers_max } => {
                write!(f, "full: one writer has at most {readers_max} readers")
            }
            Self::Exhausted { what } => write!(f, "exhausted: {what}"),
            Self::Failed { what } => write!(f, "not working: {what}"),
            Self::RankedLower { winner, rule } => write!(f, "{rule} puts {winner} first"),
            Self::LaterRule { rule, winner, by } => {
                write!(f, "{by} chose {winner} before {rule} was reached")
            }
            Self::NotNamed => f.write_str("no rule that fits names it"),
            Self::LesserLastResort { winner, advantage } => {
                write!(f, "last resort: {winner} {advantage}")
            }
        }
    }
}

/// What makes one last resort better than another, weightiest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Advantage {
    /// It carries typed values by reference, and both ends are in one process.
    Typed,
    /// It lends memory, and the samples are large.
    Loan,
    /// It stands earlier among the offers.
    Order,
}

impl fmt::Display for Advantage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Typed => "carries typed values by reference, this does not",
            Self::Loan => "lends memory for large samples, this does not",
            Self::Order => "is offered first",
        })
    }
}

/// The first reason for which an offer cannot carry the flow.
fn objection(traits: &Traits, forbids: &[&Rule], offer: &Offer) -> Option<Reason> {
    let Capability { scopes, reliable, sample_bytes_max, readers_max, .. } = offer.capability;
    if let Some(rule) = forbids.iter().find(|rule| rule.transports.contains(&offer.transport)) {
        return Some(Reason::Forbidden { rule: rule.reference() });
    }
    if !offer.peers.contains(traits.peer) {
        return Some(Reason::NotSpoken { peer: traits.peer });
    }
    if !scopes.contains(traits.scope) {
        return Some(Reason::OutOfReach { scope: traits.scope });
    }
    if traits.reliability == Reliability::Reliable && !reliable {
        return Some(Reason::NotReliable);
    }
    if let Some(sample_bytes) = traits.sample_bytes
        && sample_bytes > sample_bytes_max
    {
        return Some(Reason::TooLarge { sample_bytes, sample_bytes_max });
    }
    if offer.readers >= readers_max {
        return Some(Reason::ReadersFull { readers_max });
    }
    match &offer.health {
        Health::Good => None,
        Health::Exhausted(what) => Some(Reason::Exhausted { what: what.clone() }),
        Health::Failed(what) => Some(Reason::Failed { what: what.clone() }),
    }
}

/// By how much an offer suits the flow as a last resort; larger is better.
fn merit(traits: &Traits, offer: &Offer) -> (bool, bool) {
    let typed = traits.scope == Scope::Intra && offer.capability.typed;
    let loan = traits.size == Size::Large && offer.capability.loan;
    (typed, loan)
}

fn advantage(traits: &Traits, winner: &Offer, other: &Offer) -> Advantage {
    let (better, lesser) = (merit(traits, winner), merit(traits, other));
    if better.0 != lesser.0 {
        Advantage::Typed
    } else if better.1 != lesser.1 {
        Advantage::Loan
    } else {
        Advantage::Order
    }
}

/// Reasons in the order in which they came up, each transport once: the first counts.
#[derive(Default)]
struct Rejected(Vec<(TransportId, Reason)>);

impl Rejected {
    fn add(&mut self, transport: &TransportId, reason: Reason) {
        if !self.0.iter().any(|(known, _)| known == transport) {
            self.0.push((transport.clone(), reason));
        }
    }
}

/// For tests: an offer that reaches everywhere.
#[cfg(test)]
pub(crate) fn offer(name: &str) -> Offer {
    let capability = Capability {
        scopes: crate::Scopes::ALL,
        reliable: true,
        loan: false,
        typed: false,
        immediate: true,
        directed: true,
        whole_envelope: true,
        cdr_only: false,
        sample_bytes_max: 1 << 20,
        readers_max: 64,
    };
    Offer::new(TransportId::new(name), capability)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Conditions, DraftPolicy, Origin, Prefer, Scopes, SizeOrigin, Sourced};

    const FLOW: Traits = Traits {
        size: Size::Large,
        size_origin: SizeOrigin::Sent,
        sample_bytes: Some(921_600),
        scope: Scope::Local,
        reliability: Reliability::Reliable,
        peer: Peer::Tsuji,
    };

    fn rule(line: u32, conditions: Conditions, transports: &str) -> Rule {
        Rule {
            name: None,
            priority: 0,
            conditions,
            transports: transports.split(' ').map(TransportId::new).collect(),
            origin: Origin { file: "t".into(), line },
        }
    }

    fn policy(rules: &[&str], forbids: &[&str]) -> Policy {
        let rules_of = |all: &[&str]| -> Vec<Rule> {
            let lines = (1..).zip(all);
            lines.map(|(line, names)| rule(line, Conditions::default(), names)).collect()
        };
        let (rules, forbids) = (rules_of(rules), rules_of(forbids));
        Policy::new(DraftPolicy { rules, forbids, ..DraftPolicy::default() }).unwrap()
    }

    fn told(result: Result<Choice, NoRoute>) -> String {
        let (head, rejected) = match result {
            Ok(choice) => {
                (format!("{} by {}", choice.transport, choice.because.basis), choice.rejected)
            }
            Err(no_route) => ("none".to_owned(), no_route.rejected),
        };
        let rejected = rejected.iter().map(|(transport, reason)| format!("{transport}: {reason}"));
        [head].into_iter().chain(rejected).collect::<Vec<_>>().join("\n")
    }

    #[track_caller]
    fn check(policy: &Policy, offers: &[Offer], expect: &[&str]) {
        assert_eq!(told(select(&FLOW, policy, "/t", offers)), expect.join("\n"));
    }

    #[test]
    fn the_first_able_of_the_first_rule_wins_and_everybody_gets_a_reason() {
        check(
            &policy(&["a b c", "d b"], &[]),
            &[offer("e"), offer("d"), offer("c"), offer("b")],
            &[
                "b by the rule at t:1",
                "a: not offered here (the rule at t:1 names it)",
                "c: the rule at t:1 puts b first",
                "d: the rule at t:1 chose b before the rule at t:2 was reached",
                "e: no rule that fits names it",
            ],
        );
    }

    #[test]
    fn a_rule_of_which_nothing_is_able_gives_way_to_the_next() {
        let failed = Offer { health: Health::Failed("no library".into()), ..offer("a") };
        check(
            &policy(&["a", "b"], &[]),
            &[failed, offer("b")],
            &["b by the rule at t:2", "a: not working: no library"],
        );
    }

    #[test]
    fn every_objection() {
        let near = Scopes { intra: true, ..Scopes::default() };
        let base = offer("x").capability;
        let with = |name, capability| Offer { capability, ..offer(name) };
        let offers = [
            with("far", Capability { scopes: near, ..base }),
            with("lossy", Capability { reliable: false, ..base }),
            with("tiny", Capability { sample_bytes_max: 65_536, ..base }),
            Offer { readers: 64, ..offer("crowded") },
            Offer { peers: Peers::FOREIGN, ..offer("foreign") },
            Offer { health: Health::Exhausted("/dev/shm is full".into()), ..offer("full") },
            Offer { health: Health::Failed("libx.so is missing".into()), ..offer("broken") },
            offer("banned"),
        ];
        check(
            &policy(&["banned far"], &["banned"]),
            &offers,
            &[
                "none",
                "banned: forbidden by the rule at t:1",
                "far: out of reach: the peer is local",
                "lossy: not reliable, and the flow is",
                "tiny: too large: 921600 bytes, it takes at most 65536",
                "crowded: full: one writer has at most 64 readers",
                "foreign: the peer (tsuji) does not speak it",
                "full: exhausted: /dev/shm is full",
                "broken: not working: libx.so is missing",
            ],
        );
    }

    #[test]
    fn the_last_resort_is_the_best_of_what_is_able() {
        let typed = Capability { typed: true, ..offer("x").capability };
        let loan = Capability { loan: true, ..offer("x").capability };
        let offers = [
            offer("plain"),
            Offer { capability: loan, ..offer("loan") },
            Offer { capability: typed, ..offer("typed") },
        ];
        check(
            &policy(&["absent"], &[]),
            &offers,
            &[
                "loan by last resort, no rule names one that is able",
                "absent: not offered here (the rule at t:1 names it)",
                "plain: last resort: loan lends memory for large samples, this does not",
                "typed: last resort: loan lends memory for large samples, this does not",
            ],
        );
        let intra = Traits { scope: Scope::Intra, ..FLOW };
        assert_eq!(
            told(select(&intra, &Policy::default(), "/t", &offers)),
            "typed by last resort, no rule names one that is able\n\
             plain: last resort: typed carries typed values by reference, this does not\n\
             loan: last resort: typed carries typed values by reference, this does not"
        );
        check(
            &Policy::default(),
            &[offer("b"), offer("a")],
            &[
                "b by last resort, no rule names one that is able",
                "a: last resort: b is offered first",
            ],
        );
        check(&Policy::default(), &[], &["none"]);
    }

    #[test]
    fn the_reason_says_what_is_known_and_how() {
        let choice = select(&FLOW, &policy(&["a"], &[]), "/t", &[offer("a")]).unwrap();
        assert_eq!(
            choice.because.to_string(),
            "the rule at t:1; large (921600 bytes, what was really sent; the line is 65536 bytes), \
             local (one host, proved), reliable, peer tsuji"
        );
    }

    #[test]
    fn each_condition_counts() {
        let conditions = |change: fn(&mut Conditions)| {
            let mut conditions = Conditions::default();
            change(&mut conditions);
            conditions
        };
        let misses = [
            conditions(|it| it.size = Some(Size::Small)),
            conditions(|it| it.scope = Some(Scopes { local: false, ..Scopes::ALL })),
            conditions(|it| it.reliability = Some(Reliability::BestEffort)),
            conditions(|it| it.peer = Some(Peers::FOREIGN)),
            conditions(|it| it.topic = "/other/**".parse().ok()),
            conditions(|it| it.prefer = Some(Prefer::Latency)),
        ];
        let hit = Conditions {
            size: Some(Size::Large),
            scope: Some(Scopes { local: true, ..Scopes::default() }),
            reliability: Some(Reliability::Reliable),
            peer: Some(Peers::TSUJI),
            topic: "/*".parse().ok(),
            prefer: Some(Prefer::Memory),
        };
        let misses = (1..).zip(misses).map(|(line, conditions)| rule(line, conditions, "a"));
        let rules = misses.chain([rule(7, hit, "b")]).collect();
        let prefer = Sourced { value: Prefer::Memory, origin: None };
        let policy = Policy::new(DraftPolicy { rules, prefer, ..DraftPolicy::default() }).unwrap();
        check(
            &policy,
            &[offer("a"), offer("b")],
            &["b by the rule at t:7", "a: no rule that fits names it"],
        );
    }

    /// The ordered rules of the paper's section 3.1: default A; B for large, remote, reliable; C
    /// for large and local or remote; D for best effort; B before C before D.
    #[test]
    fn the_papers_rules_over_all_twelve_cells() {
        let local_or_remote = Scopes { intra: false, ..Scopes::ALL };
        let only_remote = Scopes { remote: true, ..Scopes::default() };
        let (size, any) = (Some(Size::Large), Conditions::default());
        let (reliable, best_effort) = (Some(Reliability::Reliable), Some(Reliability::BestEffort));
        let b = Conditions {
            size,
            scope: Some(only_remote),
            reliability: reliable,
            ..Conditions::default()
        };
        let c = Conditions { size, scope: Some(local_or_remote), ..Conditions::default() };
        let d = Conditions { reliability: best_effort, ..Conditions::default() };
        let rules = [(0, any, "A"), (1, d, "D"), (2, c, "C"), (3, b, "B")]
            .map(|(priority, conditions, name)| Rule { priority, ..rule(1, conditions, name) })
            .to_vec();
        let policy = Policy::new(DraftPolicy { rules, ..DraftPolicy::default() }).unwrap();
        let offers = ["A", "B", "C", "D"].map(offer);
        let mut got = String::new();
        for reliability in [Reliability::BestEffort, Reliability::Reliable] {
            for size in [Size::Small, Size::Large] {
                for scope in [Scope::Intra, Scope::Local, Scope::Remote] {
                    let traits = Traits { size, scope, reliability, ..FLOW };
                    let choice = select(&traits, &policy, "/t", &offers).unwrap();
                    got += choice.transport.as_str();
                }
                got += " ";
            }
        }
        assert_eq!(got, "DDD DCC AAA ACB ");
    }
}

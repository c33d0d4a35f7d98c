//! What the built-in default chooses, and what a user's file changes about it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tsuji_core::{
    Capability, Offer, Peer, Peers, Policy, Reliability, Scope, Scopes, Size, SizeOrigin, Traits,
    TransportId, select,
};
use tsuji_policy::{builtin_default, load};

const KNOWN: [&str; 6] = ["inproc", "shm", "cyclonedds", "fastdds", "zenoh", "ros1"];

/// All five, as a whole build offers them.
fn offers() -> Vec<Offer> {
    let offer = |name: &str, scopes, peers| {
        let capability = Capability {
            immediate: true,
            directed: true,
            whole_envelope: true,
            cdr_only: false,
            scopes,
            reliable: true,
            loan: name == "shm",
            typed: name == "inproc",
            sample_bytes_max: 1 << 30,
            readers_max: 1000,
        };
        Offer { peers, ..Offer::new(TransportId::new(name), capability) }
    };
    let intra = Scopes { intra: true, ..Scopes::default() };
    let host = Scopes { remote: false, ..Scopes::ALL };
    let rtps = Peers::RTPS;
    let zenoh = Peers { zenoh: true, ..Peers::TSUJI };
    let ros1 = Peers { tsuji: false, ros1: true, ..Peers::TSUJI };
    vec![
        offer("ros1", Scopes::ALL, ros1),
        offer("zenoh", Scopes::ALL, zenoh),
        offer("fastdds", Scopes::ALL, rtps),
        offer("cyclonedds", Scopes::ALL, rtps),
        offer("shm", host, Peers::TSUJI),
        offer("inproc", intra, Peers::TSUJI),
    ]
}

/// `words` are size, scope, reliability and peer, then transports that are not offered.
#[track_caller]
fn check(policy: &Policy, words: &str, expect: &str) {
    let words: Vec<&str> = words.split(' ').collect();
    let traits = Traits {
        size: words[0].parse().unwrap(),
        size_origin: SizeOrigin::Sent,
        sample_bytes: None,
        scope: words[1].parse().unwrap(),
        reliability: words[2].parse().unwrap(),
        peer: words[3].parse().unwrap(),
    };
    let offers: Vec<Offer> =
        offers().into_iter().filter(|it| !words[4..].contains(&it.transport.as_str())).collect();
    let got = match select(&traits, policy, "/camera/image", &offers) {
        Ok(choice) => format!("{} by {}", choice.transport, choice.because.basis),
        Err(no_route) => no_route.to_string(),
    };
    assert!(got.starts_with(expect), "{got}, expected {expect}");
}

#[test]
fn the_nearest_link_wins_whatever_the_size_and_reliability() {
    let policy = builtin_default();
    for size in Size::WORDS {
        for reliability in Reliability::WORDS {
            check(&policy, &format!("{size} intra {reliability} tsuji"), "inproc by");
            check(&policy, &format!("{size} local {reliability} tsuji"), "shm by");
            check(&policy, &format!("{size} remote {reliability} tsuji"), "cyclonedds by");
        }
    }
}

#[test]
fn plain_peers_are_met_on_their_own_wire() {
    let policy = builtin_default();
    for scope in ["local", "remote"] {
        for peer in Peer::WORDS.iter().filter(|peer| **peer != "tsuji") {
            let expect = match *peer {
                "zenoh" => "zenoh by",
                "ros1" => "ros1 by",
                _ => "cyclonedds by",
            };
            check(&policy, &format!("large {scope} reliable {peer}"), expect);
        }
    }
}

#[test]
fn what_is_not_there_gives_way_to_the_next() {
    let policy = builtin_default();
    check(&policy, "large intra reliable tsuji inproc", "shm by");
    check(&policy, "large local reliable tsuji shm", "cyclonedds by");
    check(&policy, "large remote reliable tsuji cyclonedds", "fastdds by");
    check(&policy, "large remote reliable tsuji cyclonedds fastdds", "zenoh by");
    check(
        &policy,
        "large local reliable zenoh zenoh cyclonedds fastdds",
        "no transport can carry this flow: \
         zenoh: not offered here (rule \"foreign nodes on Zenoh\" (builtin:default.xml:",
    );
}

#[test]
fn a_users_rules_come_first_at_equal_priority() {
    let text = r#"<tsuji>
  <rule name="mine" scope="local" use="zenoh"/>
  <rule name="less" priority="-1" scope="remote" use="zenoh"/>
</tsuji>"#;
    let policy = load("mine.xml", text.as_bytes(), &KNOWN).unwrap();
    check(&policy, "large local reliable tsuji", "zenoh by rule \"mine\" (mine.xml:2)");
    check(&policy, "large remote reliable tsuji", "cyclonedds by rule \"another host\" (builtin:");
    check(&policy, "large local reliable fast", "cyclonedds by rule \"foreign nodes on Fast DDS\"");
}

#[test]
fn without_the_builtin_default_the_last_resort_is_what_is_left() {
    let policy = load("mine.xml", br#"<tsuji builtin="off"/>"#, &KNOWN).unwrap();
    check(&policy, "small intra reliable tsuji", "inproc by last resort");
    check(&policy, "large local reliable tsuji", "shm by last resort");
    check(&policy, "small remote reliable tsuji", "zenoh by last resort");
    check(&policy, "small remote reliable fast", "fastdds by last resort");
}

#[test]
fn a_user_can_forbid() {
    let text = r#"<tsuji>
  <forbid name="pictures stay here" topic="/camera/**" scope="remote" use="cyclonedds zenoh"/>
</tsuji>"#;
    let policy = load("mine.xml", text.as_bytes(), &KNOWN).unwrap();
    check(&policy, "large local reliable tsuji", "shm by");
    check(&policy, "large remote reliable tsuji", "fastdds by");
    check(
        &policy,
        "large remote reliable tsuji fastdds",
        "no transport can carry this flow: \
         cyclonedds: forbidden by rule \"pictures stay here\" (mine.xml:2); \
         fastdds: not offered here (rule \"another host\" (builtin:default.xml:",
    );
}

#[test]
fn plain_peers_have_a_scope_too() {
    // Nothing in the default depends on a proof that a foreign peer cannot give.
    let policy = builtin_default();
    for scope in Scope::WORDS.iter().filter(|scope| **scope != "intra") {
        check(&policy, &format!("small {scope} best_effort other"), "cyclonedds by");
    }
}

#[test]
fn a_users_rule_replaces_the_builtin_one_of_its_name() {
    let text =
        r#"<tsuji><rule name="on this host" priority="-1" scope="local" use="zenoh"/></tsuji>"#;
    let policy = load("mine.xml", text.as_bytes(), &KNOWN).unwrap();
    assert_eq!(policy.rules().len(), builtin_default().rules().len());
    check(&policy, "large local reliable tsuji", "zenoh by rule \"on this host\" (mine.xml:1)");
}

//! Secured processes that meet over RTPS by DDS Security: those of other hosts, for which other run-time folders stand here, and nodes of
//! Fast DDS and of Cyclone DDS alone. Where the library was not built (`scripts/dds-security`) these tests do nothing, but with `TSUJI_DDS_SECURITY` set they
//! fail.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;
#[path = "house/network.rs"]
mod network;
#[path = "house/secured.rs"]
mod secured;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use house::{Peer, wait_until};
use network::{Network, is_there};
use secured::{Obeys, World, now};
use tsuji_security::{AccessPolicy, Enclave, Lifetime, Maker, NewGovernance};

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "obey" => secured::obey(),
        other => assert!(other.is_empty(), "{other}"),
    }
}

#[test]
fn hosts_of_a_keystore_exchange_topics_and_services_and_nobody_else_does() {
    if !is_there() {
        return;
    }
    let mut network = Network::new(60);
    let keystore = network.world.keystore("keys");
    let other = network.world.keystore("other");
    let mut talker = network.host(&keystore, "/talker");
    let mut stranger = network.host_in_clear();
    let mut forger = network.host(&other, "/listener");
    talker.does("publish chatter");
    talker.does("serve switch");
    stranger.does("subscribe chatter");
    forger.does("subscribe chatter");
    let mut listener = network.host(&keystore, "/listener");
    listener.does("subscribe chatter");
    talker.does("send 7");
    listener.does("take 7");
    for child in [&mut talker, &mut listener] {
        let routes = child.asked("protections");
        assert!(routes.split(' ').any(|it| it == "cyclonedds:encrypted"), "{routes}");
    }
    listener.does("client switch");
    listener.say("call");
    assert_eq!(talker.asked("spin"), "done");
    assert_eq!(listener.line(), "done");
    for child in [&mut stranger, &mut forger] {
        assert_eq!(child.asked("matched"), "0");
    }
    assert_eq!(talker.asked("matched"), "1");
    // On one host they are met by the control channel, and hear each sample once.
    let mut beside = network.beside(&network.folders[0].0, &keystore, "/listener");
    beside.does("subscribe chatter");
    wait_until("both are connected", || talker.asked("matched") == "2");
    talker.does("send 8");
    for child in [&mut listener, &mut beside] {
        child.does("take 8");
    }
    let routes = beside.asked("protections");
    assert!(routes.split(' ').any(|it| it == "shm:confined"), "{routes}");
}

#[test]
fn a_flow_goes_from_memory_to_encrypted_messages_and_back_and_loses_nothing() {
    if !is_there() {
        return;
    }
    let network = Network::new(67);
    let keystore = network.world.keystore("keys");
    let start = |enclave| network.beside(&network.world.folder.0, &keystore, enclave);
    let (mut talker, mut listener) = (start("/talker"), start("/listener"));
    talker.does("publish chatter");
    listener.does("subscribe chatter");
    talker.does("send 0");
    listener.does("take 0");
    let ways = ["cyclonedds:encrypted", "shm:confined"];
    for (round, way) in ways.iter().cycle().take(6).enumerate() {
        // Some before it, whatever they go by, and some behind.
        let [before, behind] = [0, 1].map(|it| (2 * round as u64 + it) * secured::SOME);
        talker.does(&format!("send_from {before}"));
        let (transport, _) = way.split_once(':').unwrap();
        talker.does(&format!("carry {transport}"));
        talker.does(&format!("send_from {behind}"));
        listener.does(&format!("take_from {before}"));
        listener.does(&format!("take_from {behind}"));
        assert_eq!(talker.asked("protections"), *way);
    }
}

/// How messages, what is said of samples, and samples are protected, and what is shown of that.
const KINDS: [([&str; 3], &str); 9] = [
    (["NONE", "NONE", "NONE"], "not protected"),
    (["SIGN", "NONE", "NONE"], "signed"),
    (["NONE", "SIGN", "NONE"], "signed"),
    (["NONE", "NONE", "SIGN"], "signed"),
    (["NONE", "NONE", "ENCRYPT"], "encrypted"),
    (["NONE", "ENCRYPT", "NONE"], "encrypted"),
    (["ENCRYPT", "NONE", "NONE"], "encrypted"),
    (["ENCRYPT", "ENCRYPT", "ENCRYPT"], "encrypted"),
    (
        ["ENCRYPT_WITH_ORIGIN_AUTHENTICATION", "ENCRYPT_WITH_ORIGIN_AUTHENTICATION", "ENCRYPT"],
        "encrypted",
    ),
];

#[test]
fn samples_of_every_size_come_by_every_kind_of_protection() {
    if !is_there() {
        return;
    }
    const ALL: &str = r#"<policy version="0.2.0"><enclaves><enclave path="/talker"><profiles><profile ns="/" node="node">
    <topics publish="ALLOW" subscribe="ALLOW"><topic>*</topic></topics></profile></profiles></enclave><enclave path="/listener"><profiles>
    <profile ns="/" node="node"><topics publish="ALLOW" subscribe="ALLOW"><topic>*</topic></topics></profile></profiles></enclave></enclaves></policy>"#;
    for (kinds, shown) in KINDS {
        let mut network = Network::new(61);
        let keystore = network.world.keystore_of("keys", now(), ALL);
        set_governance(&network.world, &keystore, kinds);
        let mut talker = network.host(&keystore, "/talker");
        let mut listener = network.host(&keystore, "/listener");
        listener.does("subscribe_text big");
        talker.does("publish_text big");
        for bytes in [1, 60_000, 64_990, 65_500, 1_000_000, 3_000_000] {
            talker.does(&format!("send_text {bytes}"));
            listener.does(&format!("take_text {bytes}"));
        }
        let routes = talker.asked("protections");
        assert!(routes.contains(&format!("cyclonedds:{shown}")), "{kinds:?}: {routes}");
        talker.finish();
        listener.finish();
    }
}

/// Signs governance anew, by which messages, what is said of samples, and samples are protected so.
fn set_governance(world: &World, keystore: &Path, kinds: [&str; 3]) {
    let text = fs::read_to_string(keystore.join("enclaves/governance.xml")).unwrap();
    let names = ["rtps_protection_kind", "metadata_protection_kind", "data_protection_kind"];
    let text = names.iter().zip(kinds).fold(text, |text, (name, kind)| {
        let (before, rest) = text.split_once(&format!("<{name}>")).unwrap();
        let (_, after) = rest.split_once('<').unwrap();
        format!("{before}<{name}>{kind}<{after}")
    });
    let path = world.path("governance.xml");
    fs::write(&path, text).unwrap();
    let maker = Maker::open(keystore, now(), || {}).unwrap();
    maker.sign_governance(&NewGovernance::read(&path, world.domain()).unwrap()).unwrap();
}

#[test]
fn a_certificate_that_was_replaced_is_shown_to_whoever_comes() {
    if !is_there() {
        return;
    }
    let mut network = Network::new(62);
    let keystore = network.world.keystore("keys");
    let mut talker = network.host(&keystore, "/talker");
    talker.does("publish chatter");
    let mut listener = network.host(&keystore, "/listener");
    listener.does("subscribe chatter");
    talker.does("send 1");
    listener.does("take 1");
    let old = fs::read(keystore.join("enclaves/talker/cert.pem")).unwrap();
    let maker = Maker::open(&keystore, now(), || {}).unwrap();
    for file in ["cert.pem", "key.pem"] {
        fs::remove_file(keystore.join("enclaves/talker").join(file)).unwrap();
    }
    let access = AccessPolicy::read(&network.world.path("access.xml")).unwrap();
    let lifetime = Lifetime::days(now(), 100);
    let access = access.access("/talker");
    maker.add_enclave("/talker", access, network.domain, lifetime, now()).unwrap();
    let replaced = network.world.path("old.pem");
    fs::write(&replaced, old).unwrap();
    maker.revoke(&[], &[replaced], lifetime, now()).unwrap();
    // It refuses the old one, so it hears the talker once that has the new one.
    let mut later = network.host(&keystore, "/listener");
    later.does("subscribe chatter");
    wait_until("both are connected", || talker.asked("matched") == "2");
    talker.does("send 2");
    listener.does("take 2");
    later.does("take 2");
}

#[test]
fn a_library_of_another_version_is_told_and_not_used() {
    if !is_there() {
        return;
    }
    let mut network = Network::new(63);
    let keystore = network.world.keystore("keys");
    let folder = network.world.path("libraries");
    fs::create_dir(&folder).unwrap();
    let library = folder.join("libtsuji_dds_security.so");
    let source = network.world.path("other.c");
    fs::write(&source, "int tsuji_0_1_0_init_authentication(void) { return 0; }\n").unwrap();
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
    assert!(built.unwrap().success());
    let folder = folder.display().to_string();
    let security = secured::environment(&keystore, "/talker", "Enforce");
    let environment = [&security[..], &[("TSUJI_TRANSPORT_PATH", &folder)]].concat();
    let mut child = network.start(&environment);
    child.expect("secured true ");
    child.does("publish chatter");
    let mut listener = network.host(&keystore, "/listener");
    listener.does("subscribe chatter");
    // With the right one it is met.
    let mut talker = network.host(&keystore, "/talker");
    talker.does("publish chatter");
    talker.does("send 1");
    listener.does("take 1");
    assert_eq!(child.asked("matched"), "0");
    let trouble = child.asked("trouble cyclonedds");
    assert!(trouble.contains("Could not find the function: tsuji_"), "{trouble}");
}

/// The program that `variable` names, where it was built.
#[allow(clippy::print_stderr, reason = "says that it did not run")]
fn peer(variable: &str) -> Option<OsString> {
    let peer = std::env::var_os(variable);
    if peer.is_none() {
        eprintln!("no {variable}: not run");
    }
    peer.filter(|_| is_there())
}

const FAST: &str = "TSUJI_PEER_FASTDDS";
/// Cyclone DDS and its plug-ins as the system's packages have them: another version than tsuji's.
const CYCLONE: &str = "TSUJI_PEER_CYCLONEDDS";

#[test]
fn nodes_of_fast_dds_in_the_same_keystore_are_peers() {
    if let Some(peer) = peer(FAST) {
        are_peers(&peer, 64);
    }
}

#[test]
fn nodes_of_cyclone_dds_in_the_same_keystore_are_peers() {
    if let Some(peer) = peer(CYCLONE) {
        are_peers(&peer, 69);
    }
}

fn are_peers(peer: &OsString, domain: u32) {
    let mut network = Network::new(domain);
    let keystore = network.world.keystore("keys");
    let enclave = |name: &str| Enclave::read(&keystore, name, now()).unwrap();
    let mut talker = network.host(&keystore, "/talker");
    let mut listener = network.host(&keystore, "/listener");
    talker.does("publish32 chatter");
    listener.does("subscribe32 chatter");
    // Either may be the one that asks, in its own way, by whose name is the lower: with some both happen.
    const PEERS: usize = 4;
    let start = |what, name: &str| {
        let enclave = enclave(name);
        [(); PEERS].map(|()| network.foreign(peer, what, Some(&enclave), "rt/chatter"))
    };
    let listeners = start("subscribe", "/listener");
    let in_clear = network.foreign(peer, "subscribe", None, "rt/chatter");
    wait_until("they are connected", || talker.asked("matched") == (1 + PEERS).to_string());
    // One that has not yet got the keys of a writer that knows it already has joined later.
    let mut deaf: Vec<&Peer> = listeners.iter().collect();
    wait_until("they hear", || {
        talker.does("send32 5");
        deaf.retain(|it| match it.line_within(Duration::from_millis(20)) {
            Some(heard) => heard != "5",
            None => true,
        });
        deaf.is_empty()
    });
    listener.does("take32 5");
    assert_eq!(in_clear.line_within(Duration::from_millis(100)), None);
    let _talkers = start("publish", "/talker");
    wait_until("they are heard", || listener.asked("matched") == (1 + PEERS).to_string());
    listener.does("take32 100..");
}

#[test]
fn services_go_to_nodes_of_fast_dds_and_back() {
    if let Some(peer) = peer(FAST) {
        services_go_both_ways(&peer, 75, true);
        // Older ones than those of the wheels: what names a request in its reply has another number there.
        services_go_both_ways(&peer, 77, false);
    }
}

#[test]
fn services_go_to_nodes_of_cyclone_dds_and_back() {
    if let Some(peer) = peer(CYCLONE) {
        services_go_both_ways(&peer, 76, true);
        services_go_both_ways(&peer, 78, false);
    }
}

fn services_go_both_ways(peer: &OsString, domain: u32, is_secured: bool) {
    let mut network = Network::new(domain);
    let keystore = network.world.keystore("keys");
    let enclave = |name| is_secured.then(|| Enclave::read(&keystore, name, now()).unwrap());
    let host = |network: &mut Network, enclave| match is_secured {
        true => network.host(&keystore, enclave),
        false => network.host_in_clear(),
    };
    // The foreign one asks.
    let mut server = host(&mut network, "/talker");
    server.does("serve switch");
    let client = network.foreign(peer, "call", enclave("/listener").as_ref(), "switch");
    let in_clear = is_secured.then(|| network.foreign(peer, "call", None, "switch"));
    // A reply to one that has not yet got the keys of its writer is not heard.
    wait_until("it is answered", || {
        server.does("spin");
        client.line_within(Duration::from_millis(20)).is_some_and(|it| it == "true")
    });
    if let Some(in_clear) = in_clear {
        assert_eq!(in_clear.line_within(Duration::from_millis(100)), None);
    }
    drop(client);
    server.finish();
    // It is asked.
    let server = network.foreign(peer, "serve", enclave("/talker").as_ref(), "switch");
    let mut client = host(&mut network, "/listener");
    client.does("client switch");
    for _ in 0..3 {
        client.does("call");
        assert_eq!(server.line(), "true");
    }
}

#[test]
fn nodes_of_fast_dds_are_peers_by_every_kind_of_protection() {
    if let Some(peer) = peer(FAST) {
        are_peers_by_every_kind(&peer, 71);
    }
}

#[test]
fn nodes_of_cyclone_dds_are_peers_by_every_kind_of_protection() {
    if let Some(peer) = peer(CYCLONE) {
        are_peers_by_every_kind(&peer, 72);
    }
}

fn are_peers_by_every_kind(peer: &OsString, domain: u32) {
    for (kinds, shown) in KINDS {
        let mut network = Network::new(domain);
        let keystore = network.world.keystore("keys");
        set_governance(&network.world, &keystore, kinds);
        let enclave = |name: &str| Enclave::read(&keystore, name, now()).unwrap();
        let mut talker = network.host(&keystore, "/talker");
        let mut listener = network.host(&keystore, "/listener");
        talker.does("publish32 chatter");
        listener.does("subscribe32 chatter");
        let deaf = network.foreign(peer, "subscribe", Some(&enclave("/listener")), "rt/chatter");
        let _dumb = network.foreign(peer, "publish", Some(&enclave("/talker")), "rt/chatter");
        wait_until("they are connected", || talker.asked("matched") == "2");
        wait_until("it hears", || {
            talker.does("send32 5");
            deaf.line_within(Duration::from_millis(20)).is_some_and(|heard| heard == "5")
        });

        // From 100 on it is the foreign one.
        listener.does("take32 100..");
        let routes = talker.asked("protections");
        assert!(routes.contains(&format!("cyclonedds:{shown}")), "{kinds:?}: {routes}");
    }
}

#[test]
fn a_node_of_fast_dds_that_is_revoked_is_heard_no_more() {
    if let Some(peer) = peer(FAST) {
        is_heard_no_more_once_revoked(&peer, 65);
    }
}

#[test]
fn a_node_of_cyclone_dds_that_is_revoked_is_heard_no_more() {
    if let Some(peer) = peer(CYCLONE) {
        is_heard_no_more_once_revoked(&peer, 70);
    }
}

fn is_heard_no_more_once_revoked(peer: &OsString, domain: u32) {
    let mut network = Network::new(domain);
    let keystore = network.world.keystore("keys");
    let maker = Maker::open(&keystore, now(), || {}).unwrap();
    let lifetime = Lifetime::days(now(), 10);
    let (_, stolen) = maker.add_enclave("/stolen", None, network.domain, lifetime, now()).unwrap();
    let mut listener = network.host(&keystore, "/listener");
    listener.does("subscribe32 chatter");
    let _thief = network.foreign(peer, "publish", Some(&stolen), "rt/chatter");
    listener.does("take32 100..");
    maker.revoke(&["/stolen".to_owned()], &[], lifetime, now()).unwrap();
    wait_until("it is let go", || listener.asked("matched") == "0");
    // Whoever is not in the list is met.
    let mut talker = network.host(&keystore, "/talker");
    talker.does("publish32 chatter");
    wait_until("it is connected", || talker.asked("matched") == "1");
    talker.does("send32 5");
    listener.does("take32 5");
    assert_eq!(listener.asked("matched"), "1");
}

#[test]
fn whoever_is_killed_in_a_handshake_leaves_the_others_as_they_were() {
    if !is_there() {
        return;
    }
    let mut network = Network::new(68);
    let keystore = network.world.keystore("keys");
    let mut talker = network.host(&keystore, "/talker");
    talker.does("publish chatter");
    let mut listener = network.host(&keystore, "/listener");
    listener.does("subscribe chatter");
    talker.does("send 0");
    listener.does("take 0");
    // The talker joins anew meanwhile, by a new key.
    let maker = Maker::open(&keystore, now(), || {}).unwrap();
    for file in ["cert.pem", "key.pem"] {
        fs::remove_file(keystore.join("enclaves/talker").join(file)).unwrap();
    }
    let access = AccessPolicy::read(&network.world.path("access.xml")).unwrap();
    let lifetime = Lifetime::days(now(), 100);
    maker
        .add_enclave("/talker", access.access("/talker"), network.domain, lifetime, now())
        .unwrap();
    for moment in 0..30 {
        let dying = network.start(&secured::environment(&keystore, "/listener", "Enforce"));
        // From before it has joined until after it has met them.
        std::thread::sleep(Duration::from_millis(10 * moment));
        dying.kill();
    }
    wait_until("those that live are connected", || talker.asked("matched") == "1");
    talker.does("send 1");
    listener.does("take 1");
    let mut later = network.host(&keystore, "/listener");
    later.does("subscribe chatter");
    wait_until("both are connected", || talker.asked("matched") == "2");
    talker.does("send 2");
    for child in [&mut listener, &mut later] {
        child.does("take 2");
    }
}

#[test]
fn whoever_has_expired_is_let_go() {
    if !is_there() {
        return;
    }
    let mut network = Network::new(66);
    let keystore = network.world.keystore("keys");
    let maker = Maker::open(&keystore, now(), || {}).unwrap();
    let mut listener = network.host(&keystore, "/listener");
    listener.does("subscribe chatter");
    // It has as long as that to start and to be met.
    let since = now() - Duration::from_secs(100 * 86_400) + Duration::from_secs(25);
    let lifetime = Lifetime::days(since, 100);
    maker.add_enclave("/short", None, network.domain, lifetime, now()).unwrap();
    let mut short = network.host(&keystore, "/short");
    short.does("publish chatter");
    short.does("send 1");
    listener.does("take 1");
    wait_until("it is let go", || listener.asked("matched") == "0");
}

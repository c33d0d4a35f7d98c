//! Somebody on the network repeats the packets of processes and alters them: no process ends of it, and what is secured is not taken in.
//!
//! To hear packets of others takes privileges. Where they lack, a test says so and does nothing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "house/attacker.rs"]
mod attacker;
mod house;
#[path = "house/network.rs"]
mod network;
#[path = "house/secured.rs"]
mod secured;

use attacker::Attacker;
use house::wait_until;
use network::{Network, is_there};
use secured::Obeys;

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "obey" => secured::obey(),
        other => assert!(other.is_empty(), "{other}"),
    }
}

/// While they meet it may keep them from that: announcements are in clear.
#[test]
fn whoever_repeats_and_alters_packets_ends_nobody_and_is_believed_by_nobody() {
    if !is_there() {
        return;
    }
    let mut network = Network::new(73);
    let Some(attacker) = Attacker::start(network.domain) else { return };
    let keystore = network.world.keystore("keys");
    let mut talker = network.host(&keystore, "/talker");
    talker.does("publish chatter");
    let mut listener = network.host(&keystore, "/listener");
    listener.does("subscribe chatter");
    attacker.says(1.0);
    attacker.rests(true);
    wait_until("they are connected", || talker.asked("matched") == "1");
    attacker.rests(false);
    for round in 0..10 {
        let first = round * secured::SOME;
        talker.does(&format!("send_from {first}"));
        attacker.says(0.1);
        listener.does(&format!("take_from {first}"));
    }
    drop(attacker);
    let mut later = network.host(&keystore, "/listener");
    later.does("subscribe chatter");
    wait_until("both are connected", || talker.asked("matched") == "2");
    talker.does("send 1");
    for child in [&mut listener, &mut later] {
        child.does("take 1");
    }
}

/// In clear what is altered is taken, and may do harm to a flow. It ends no process, and whoever comes later is met.
#[test]
fn whoever_repeats_and_alters_packets_ends_nobody_in_clear() {
    let mut network = Network::new(74);
    let Some(attacker) = Attacker::start(network.domain) else { return };
    let mut talker = network.host_in_clear();
    talker.does("publish chatter");
    talker.does("serve switch");
    let mut listener = network.host_in_clear();
    listener.does("subscribe chatter");
    listener.does("client switch");
    attacker.says(1.0);
    for _ in 0..10 {
        talker.does("publish chatter");
        talker.does("send_from 0");
        attacker.says(0.1);
    }
    drop(attacker);
    for child in [&mut talker, &mut listener] {
        child.asked("matched");
    }
    talker.does("publish other");
    let mut later = network.host_in_clear();
    later.does("subscribe other");
    wait_until("who comes later is met", || later.asked("matched") == "1");
}

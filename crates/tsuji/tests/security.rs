//! Processes that are secured by a keystore meet each other and nobody else, and do what they may.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;
#[path = "house/secured.rs"]
mod secured;

use std::fs;
use std::io::ErrorKind as IoKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use house::{Child, DOMAIN, wait_until};
use secured::{ACCESS, Obeys, World, now};
use tsuji_platform::socket::{Connection, Listener};
use tsuji_security::{AccessPolicy, Lifetime, Maker, NewGovernance};

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
fn two_enclaves_meet_by_shared_memory_and_do_what_they_may() {
    let world = World::new();
    let keystore = world.keystore("keys");
    let (mut talker, _) = world.secured(&keystore, "/talker");
    let (mut listener, _) = world.secured(&keystore, "/listener");
    talker.does("publish chatter");
    talker.does("serve switch");
    listener.does("subscribe chatter");
    listener.does("client switch");
    talker.does("send 7");
    listener.does("take 7");
    assert_eq!(listener.asked("settle"), "1");
    assert!(talker.asked("routes").split(' ').all(|it| it == "shm"));
    // What they may not is refused with the rule, and nobody hears of it.
    let (talker_may_not, listener_may_not) =
        ("the enclave \"/talker\" may not ", "the enclave \"/listener\" may not ");
    for (is_talker, word, expect) in [
        (true, "subscribe chatter", format!("{talker_may_not}subscribe rt/chatter: ")),
        (true, "publish other", format!("{talker_may_not}publish rt/other: ")),
        (true, "client switch", format!("{talker_may_not}publish rq/switchRequest: ")),
        (false, "publish chatter", format!("{listener_may_not}publish rt/chatter: ")),
        (false, "serve switch", format!("{listener_may_not}publish rr/switchReply: ")),
    ] {
        let refused = if is_talker { talker.asked(word) } else { listener.asked(word) };
        assert!(refused.starts_with("PermissionDenied ") && refused.contains(&expect), "{refused}");
        assert!(refused.contains("no rule of grant") && refused.ends_with("is DENY"), "{refused}");
    }
    talker.does("send 8");
    listener.does("take 8");
    talker.finish();
    listener.finish();
}

#[test]
fn a_service_is_called_across_enclaves() {
    let world = World::new();
    let keystore = world.keystore("keys");
    let (mut listener, _) = world.secured(&keystore, "/listener");
    let (mut talker, _) = world.secured(&keystore, "/talker");
    talker.does("serve switch");
    listener.does("client switch");
    listener.say("call");
    // Until it was called.
    assert_eq!(talker.asked("spin"), "done");
    assert_eq!(listener.line(), "done");
}

#[test]
fn nobody_in_clear_and_nobody_of_another_keystore_is_met() {
    let world = World::new();
    let (keystore, other) = (world.keystore("keys"), world.keystore("other"));
    let (mut talker, _) = world.secured(&keystore, "/talker");
    talker.does("publish chatter");
    let mut stranger = world.in_clear();
    stranger.does("subscribe chatter");
    let reason = stranger.asked("unreachable");
    let expect = "one of the two is secured by a keystore, and the other is not";
    assert!(reason.split(" | ").all(|it| it == expect), "{reason}");
    let told = talker.asked("unreachable");
    assert!(told.split(" | ").all(|it| it == expect), "{told}");
    // Whoever comes later finds out the same.
    let (mut forger, _) = world.secured(&other, "/listener");
    forger.does("subscribe chatter");
    for child in [&mut talker, &mut forger] {
        wait_until("they refuse each other", || {
            child.asked("unreachable").contains("its certificate for CN=/")
        });
    }
    // Who is of this keystore is met at once, whoever else stands there.
    let (mut listener, _) = world.secured(&keystore, "/listener");
    listener.does("subscribe chatter");
    talker.does("send 9");
    listener.does("take 9");
    for child in [&mut stranger, &mut forger] {
        assert_eq!(child.asked("matched"), "0");
    }
    wait_until("the listener alone is connected", || talker.asked("matched") == "1");
}

#[test]
fn an_enclave_that_exceeds_its_permissions_is_not_heard() {
    let world = World::new();
    let keystore = world.keystore("keys");
    // The same enclave, told by another governance that it need not ask.
    let lax = world.path("lax");
    let copied = std::process::Command::new("cp").arg("-a").args([&keystore, &lax]).status();
    assert!(copied.unwrap().success());
    let text = fs::read_to_string(lax.join("enclaves/governance.xml")).unwrap();
    let text = text
        .replace("<enable_read_access_control>true", "<enable_read_access_control>false")
        .replace("<enable_write_access_control>true", "<enable_write_access_control>false");
    let path = world.path("lax.xml");
    fs::write(&path, text).unwrap();
    let maker = Maker::open(&lax, now(), || {}).unwrap();
    maker.sign_governance(&NewGovernance::read(&path, DOMAIN).unwrap()).unwrap();

    let (mut listener, _) = world.secured(&keystore, "/listener");
    listener.does("subscribe chatter");
    let (mut liar, _) = world.secured(&lax, "/listener");
    liar.does("publish chatter");
    assert_eq!((liar.asked("settle"), listener.asked("settle")), ("1".into(), "1".into()));
    let (mut talker, _) = world.secured(&keystore, "/talker");
    talker.does("publish chatter");
    talker.does("send 3");
    listener.does("take 3");
    wait_until("the talker alone is connected", || listener.asked("matched") == "1");
    liar.kill();
}

#[test]
fn what_is_not_whole_does_not_start() {
    let world = World::new();
    let spoilt = |name: &str, spoil: &dyn Fn(&Path)| {
        let keystore = world.keystore(name);
        spoil(&keystore.join("enclaves/talker"));
        let child = world.start_with(&keystore, "/talker", "Permissive");
        let said = child.line();
        child.finish();
        said
    };
    for file in [
        "cert.pem",
        "key.pem",
        "permissions.p7s",
        "governance.p7s",
        "identity_ca.cert.pem",
        "permissions_ca.cert.pem",
    ] {
        let said = spoilt(&format!("without {file}"), &|enclave| {
            fs::remove_file(enclave.join(file)).unwrap();
        });
        assert!(
            said.starts_with("Invalid ROS_SECURITY_ENABLE=true: ") && said.contains(file),
            "{said}"
        );
        let said = spoilt(&format!("empty {file}"), &|enclave| {
            fs::remove_file(enclave.join(file)).unwrap();
            fs::write(enclave.join(file), "").unwrap();
        });
        assert!(said.starts_with("Invalid ") && said.contains(file), "{said}");
    }
    let said = spoilt("swapped", &|enclave| {
        fs::copy(enclave.with_file_name("listener").join("key.pem"), enclave.join("key.pem"))
            .unwrap();
    });
    assert!(said.contains("is not the key of cert.pem"), "{said}");
    let said = spoilt("changed", &|enclave| {
        let text = fs::read_to_string(enclave.join("permissions.p7s")).unwrap();
        fs::write(enclave.join("permissions.p7s"), text.replace("rt/chatter", "rt/******"))
            .unwrap();
    });
    assert!(said.contains("permissions.p7s") && said.contains("or was changed since"), "{said}");
    // Nor does one of which so much is gone that it could be taken for none.
    let said = spoilt("gone", &|enclave| {
        for file in ["cert.pem", "key.pem", "permissions.p7s"] {
            fs::remove_file(enclave.join(file)).unwrap();
            std::os::unix::fs::symlink("/nowhere", enclave.join(file)).unwrap();
        }
    });
    assert!(said.starts_with("Invalid ROS_SECURITY_ENABLE=true: "), "{said}");
    let said = spoilt("empty", &|enclave| {
        fs::remove_dir_all(enclave).unwrap();
        fs::create_dir(enclave).unwrap();
    });
    assert!(said.starts_with("Invalid ROS_SECURITY_ENABLE=true: "), "{said}");
    let old = world.keystore_since("old", now() - Duration::from_secs(200 * 86_400));
    let said = world.start(&old, "/talker").line();
    assert!(said.starts_with("Invalid ") && said.contains("has expired"), "{said}");
}

#[test]
fn without_an_enclave_only_what_is_not_enforced_starts() {
    let world = World::new();
    let keystore = world.keystore("keys");
    for (keystore, enclave, why) in [
        (&*keystore, "/nobody", "which has /listener, /talker"),
        (&*keystore, "/", "there is no enclave \"/\""),
        (Path::new("/nowhere"), "/talker", "which has none"),
        (Path::new(""), "/talker", "ROS_SECURITY_KEYSTORE is not set"),
    ] {
        let said = world.start(keystore, enclave).line();
        assert!(said.starts_with("Invalid security is enforced, and "), "{said}");
        assert!(said.contains(why), "{said}");
        let child = world.start_with(keystore, enclave, "Permissive");
        child.expect("secured false ");
        child.finish();
    }
}

#[test]
fn the_enclave_of_the_environment_prevails() {
    let world = World::new();
    let keystore = world.keystore("keys");
    let (mut talker, _) = world.secured(&keystore, "talker");
    talker.does("publish chatter");
    talker.does("with_args");
    talker.does("with_args --enclave /listener");
    let (mut other, _) = world.secured(&keystore, "/listener");
    other.does("subscribe chatter");
    talker.does("send 1");
    other.does("take 1");
}

#[test]
fn many_processes_with_long_permissions_meet_at_once() {
    let world = World::new();
    let more: String = (0..3000).map(|it| format!("<topic>of_no_use_{it}</topic>")).collect();
    let long = ACCESS.replace("<topic>chatter", &format!("{more}<topic>chatter"));
    let keystore = world.keystore_of("keys", now(), &long);
    let permissions = keystore.join("enclaves/talker/permissions.p7s");
    assert!(100_000 < fs::metadata(permissions).unwrap().len());
    const EACH: usize = 8;
    let mut all: Vec<Child> = Vec::new();
    for enclave in ["/talker", "/listener"] {
        all.extend((0..EACH).map(|_| world.start(&keystore, enclave)));
    }
    for (at, child) in all.iter_mut().enumerate() {
        child.expect("secured true ");
        child.does(if at < EACH { "publish chatter" } else { "subscribe chatter" });
    }
    for child in &mut all {
        wait_until("all are matched", || child.asked("matched") == EACH.to_string());
    }
}

/// A listening socket of this process in the place of another's, which is hidden beside it.
struct InPlace {
    listener: Listener,
    socket: PathBuf,
    hidden: PathBuf,
}

impl InPlace {
    fn of(world: &World, token: &str) -> Self {
        let socket = world.socket(token);
        let hidden = socket.with_extension("hidden");
        fs::hard_link(&socket, &hidden).unwrap();
        Self { listener: Listener::bind(&socket, 0o700).unwrap(), socket, hidden }
    }

    fn accept(&self) -> Connection {
        let mut accepted = None;
        wait_until("somebody connects", || {
            accepted = self.listener.accept().unwrap();
            accepted.is_some()
        });
        accepted.unwrap()
    }

    /// Gives the place back.
    fn end(self) {
        fs::rename(self.hidden, self.socket).unwrap();
    }
}

#[test]
fn who_was_refused_by_another_in_its_place_is_met_when_that_is_gone() {
    let world = World::new();
    let keystore = world.keystore("keys");
    let (mut talker, token) = world.secured(&keystore, "/talker");
    talker.does("publish chatter");
    let in_place = InPlace::of(&world, &token);
    let (mut listener, _) = world.secured(&keystore, "/listener");
    listener.does("subscribe chatter");
    let accepted = in_place.accept();
    let said = "nothing personal";
    let version = 14u32.to_le_bytes();
    let frame = [b"tsji", &version[..], &[REFUSED, said.len() as u8], said.as_bytes()].concat();
    accepted.send(&frame, &[]).unwrap();
    assert!(listener.asked("unreachable").contains(said));
    in_place.end();
    talker.does("send 4");
    listener.does("take 4");
}

#[test]
fn who_hands_on_what_others_say_is_refused_and_gets_nothing() {
    let world = World::new();
    let keystore = world.keystore("keys");
    let (mut talker, token) = world.secured(&keystore, "/talker");
    talker.does("publish chatter");
    let in_place = InPlace::of(&world, &token);
    let (mut listener, _) = world.secured(&keystore, "/listener");
    listener.does("subscribe chatter");
    let accepted = in_place.accept();
    let ends = [accepted, Connection::connect(&in_place.hidden).unwrap()];
    let mut handed_on = Vec::new();
    wait_until("one of them hangs up", || {
        let mut has_hung_up = false;
        for at in 0..2 {
            has_hung_up |= hand_on(&ends[at], &ends[1 - at], &mut handed_on);
        }
        has_hung_up
    });
    // It was taken for what it is by the first who heard it, and nobody has gone on to where memory is handed over.
    let is_refusal =
        |frame: &Vec<u8>| String::from_utf8_lossy(frame).contains("by the kernel's word");
    assert!(handed_on.iter().any(is_refusal), "{handed_on:?}");
    // Behind the version stands what it is.
    assert!(handed_on.iter().all(|frame| frame[8] != HELLO));
    // The talker has connected to the listener by itself, whose socket is its own.
    talker.does("send 5");
    listener.does("take 5");
}

/// Makes keys and permissions of an enclave anew, as whoever renews them does.
fn renew(world: &World, keystore: &Path, enclave: &str, access: &str) {
    let path = world.path("renewed.xml");
    fs::write(&path, access).unwrap();
    let access = AccessPolicy::read(&path).unwrap();
    for file in ["cert.pem", "key.pem"] {
        fs::remove_file(keystore.join("enclaves").join(&enclave[1..]).join(file)).unwrap();
    }
    let maker = Maker::open(keystore, now(), || {}).unwrap();
    let lifetime = Lifetime::days(now(), 50);
    maker.add_enclave(enclave, access.access(enclave), DOMAIN, lifetime, now()).unwrap();
}

#[test]
fn keys_are_renewed_while_processes_run_and_nothing_is_lost() {
    let world = World::new();
    let keystore = world.keystore("keys");
    let (mut talker, _) = world.secured(&keystore, "/talker");
    let (mut listener, _) = world.secured(&keystore, "/listener");
    talker.does("publish chatter");
    listener.does("subscribe chatter");
    let expiry = |child: &mut Child| child.asked("expiries");
    let before = expiry(&mut listener);
    let mut sent = 0;
    let mut send = |talker: &mut Child, listener: &mut Child| {
        sent += 1;
        talker.does(&format!("send {sent}"));
        listener.does(&format!("take {sent}"));
    };
    send(&mut talker, &mut listener);
    // Both at once, so that each begins a proof.
    renew(&world, &keystore, "/talker", ACCESS);
    renew(&world, &keystore, "/listener", ACCESS);
    wait_until("both ends are renewed", || {
        send(&mut talker, &mut listener);
        let now = expiry(&mut listener);
        now.split(' ').zip(before.split(' ')).all(|(now, before)| now != before)
    });
    send(&mut talker, &mut listener);
    // One more topic, and one less.
    renew(&world, &keystore, "/talker", &ACCESS.replace("<topic>chatter", "<topic>other"));
    wait_until("the talker is told of it", || talker.asked("publish other") == "done");
    wait_until("the listener forgets it", || listener.asked("matched") == "0");
    assert!(talker.asked("publish chatter").starts_with("PermissionDenied "));
}

#[test]
fn whoever_has_expired_is_not_met_any_more() {
    let world = World::new();
    // Long enough for both to start on a busy machine.
    let since = now() - Duration::from_secs(100 * 86_400 - 20);
    let keystore = world.keystore_since("keys", since);
    let (mut talker, _) = world.secured(&keystore, "/talker");
    let (mut listener, _) = world.secured(&keystore, "/listener");
    talker.does("publish chatter");
    listener.does("subscribe chatter");
    talker.does("send 1");
    listener.does("take 1");
    wait_until("they part", || talker.asked("matched") == "0");
    let reason = talker.asked("unreachable");
    assert!(reason.contains("expired"), "{reason}");
    // Renewed late, they find each other again.
    renew(&world, &keystore, "/talker", ACCESS);
    renew(&world, &keystore, "/listener", ACCESS);
    wait_until("they meet again", || talker.asked("matched") == "1");
    talker.does("send 2");
    listener.does("take 2");
}

#[test]
fn whoever_is_revoked_is_parted_with_and_met_by_a_new_key() {
    let world = World::new();
    let keystore = world.keystore("keys");
    let (mut talker, _) = world.secured(&keystore, "/talker");
    let (mut listener, _) = world.secured(&keystore, "/listener");
    talker.does("publish chatter");
    listener.does("subscribe chatter");
    talker.does("send 1");
    listener.does("take 1");
    let maker = Maker::open(&keystore, now(), || {}).unwrap();
    // Of both, so that neither enclave is whole any more.
    let both = ["/talker", "/listener"].map(str::to_owned);
    maker.revoke(&both, &[], Lifetime::days(now(), 50), now()).unwrap();
    drop(maker);
    wait_until("they part", || listener.asked("matched") == "0");
    let reason = listener.asked("unreachable");
    assert!(reason.contains("was revoked by CN=tsuji keystore"), "{reason}");
    renew(&world, &keystore, "/talker", ACCESS);
    renew(&world, &keystore, "/listener", ACCESS);
    wait_until("they meet again", || listener.asked("matched") == "1");
    talker.does("send 2");
    listener.does("take 2");
}

#[test]
fn who_is_killed_in_the_midst_of_a_proof_leaves_nothing_behind() {
    let world = World::new();
    let keystore = world.keystore("keys");
    let (mut talker, _) = world.secured(&keystore, "/talker");
    talker.does("publish chatter");
    let (mut first, _) = world.secured(&keystore, "/listener");
    first.does("subscribe chatter");
    talker.does("send 1");
    first.does("take 1");
    first.finish();
    wait_until("it has left", || talker.asked("settle") == "0");
    let before: u32 = talker.asked("descriptors").parse().unwrap();
    // It says its number before it makes its context, so these are the moments before, in and after its proof.
    for moment in 0..40 {
        let dying = world.start(&keystore, "/listener");
        std::thread::sleep(Duration::from_micros(500 * moment));
        dying.kill();
    }
    wait_until("all have left", || talker.asked("settle") == "0");
    wait_until("their descriptors are closed", || {
        talker.asked("descriptors").parse::<u32>().unwrap() <= before
    });
    let (mut listener, _) = world.secured(&keystore, "/listener");
    listener.does("subscribe chatter");
    talker.does("send 2");
    listener.does("take 2");
}

/// Hands on all that was said, which has no descriptors. Answers whether the other end has hung up.
fn hand_on(from: &Connection, to: &Connection, handed_on: &mut Vec<Vec<u8>>) -> bool {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.receive(&mut buffer) {
            Ok(None) => return true,
            Ok(Some(received)) => {
                assert!(received.fds.is_empty());
                let frame = &buffer[..received.bytes];
                handed_on.push(frame.to_vec());
                let _ = to.send(frame, &[]);
            }
            Err(error) if error.kind() == IoKind::WouldBlock => return false,
            Err(_) => return true,
        }
    }
}

/// The numbers of a hello and of a refusal on the control channel.
const HELLO: u8 = 0;
const REFUSED: u8 = 29;

#[test]
fn whoever_says_nothing_is_not_waited_for() {
    let world = World::new();
    let keystore = world.keystore("keys");
    let (mut talker, token) = world.secured(&keystore, "/talker");
    let socket = world.socket(&token);
    let silent: Vec<_> = (0..20).map(|_| Connection::connect(&socket).unwrap()).collect();
    let mut buffer = vec![0; 1 << 16];
    for connection in &silent {
        wait_until("it hangs up", || matches!(connection.receive(&mut buffer), Ok(None)));
    }
    talker.does("publish chatter");
}

//! The contract of the seam, over Fast DDS. Its library is built by `scripts/fastdds`, and looked for where
//! all plug-ins are.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tsuji_conformance::{Keep, World};
use tsuji_core::{Durability, Qos};
use tsuji_engine::{EngineTransport, participant_of};
use tsuji_platform::memory::Backing;
use tsuji_transport::bell::{Bells, Cell};
use tsuji_transport::{
    Bytes, Endpoint, Envelope, ErrorKind, Gid, Payload, PeerId, Transport as _, Writer,
};
use tsuji_transport_plugin::{Plugin, PluginConfig, PluginEngine, file_name, folders, locate};

/// Two participants in a domain that no other world of this process has. Beyond 101 the ports of a
/// domain are among those that the system gives to anybody.
fn over_loopback() -> World {
    static WORLDS: AtomicU32 = AtomicU32::new(0);
    let config = config(10 + WORLDS.fetch_add(1, Ordering::Relaxed) % 90);
    World::settled(move |id, _| {
        Arc::new(PluginEngine::create(id, config.clone()).expect("the domain is in range"))
    })
}

fn config(domain: u32) -> PluginConfig {
    let path = locate(&file_name("fastdds"), &folders()).expect("the library was built").path;
    let plugin = Plugin::load(&path, "fastdds").expect("the library is a transport");
    PluginConfig { host_only: true, ..PluginConfig::new(plugin.about().clone(), path, domain) }
}

tsuji_conformance::suite!(fastdds, over_loopback);

/// In a process of their own, whose participants are counted.
#[test]
fn a_process_that_joins_again_and_again() {
    alone("joins_again_as_another");
    alone("joins_again_at_the_ports_of_its_domain");
}

/// What the engine has no memory for it refuses for good, and does not say so of a sample that relates to another.
#[test]
fn a_reply_that_cannot_be_written_is_not_waited_for() {
    alone("is_short_of_memory");
}

/// Nothing of it is mapped otherwise, so that nothing that another build of Fast DDS left there can end the process.
#[test]
#[allow(clippy::print_stderr, reason = "says that it did not run")]
fn shared_memory_is_taken_where_it_is_asked_for_alone() {
    let apart = |command: &[&OsStr], asked_for: &str| {
        // A folder of its own, whatever others have in the host's.
        let inside = r#"mount -t tmpfs none /dev/shm && exec "$@""#;
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", inside, "sh"]);
        unshare.args(command).env("TSUJI_FASTDDS_SHM", asked_for);
        unshare.status().is_ok_and(|it| it.success())
    };
    if !apart(&[OsStr::new("true")], "") {
        eprintln!("not run: namespaces are refused here");
        return;
    }
    let own = std::env::current_exe().unwrap();
    let arguments = ["--exact", "has_the_memory_that_is_asked_for", "--ignored", "--nocapture"];
    let command: Vec<_> =
        std::iter::once(own.as_os_str()).chain(arguments.map(OsStr::new)).collect();
    for asked_for in ["", "0", "1"] {
        assert!(apart(&command, asked_for), "TSUJI_FASTDDS_SHM={asked_for:?}");
    }
}

/// Runs a test of this file in a process of its own.
#[track_caller]
fn alone(test: &str) {
    let own = std::env::current_exe().unwrap();
    let arguments = ["--exact", test, "--ignored", "--nocapture"];
    assert!(Command::new(own).args(arguments).status().unwrap().success(), "{test}");
}

#[test]
#[ignore = "a child process of the other tests"]
fn has_the_memory_that_is_asked_for() {
    let world = over_loopback();
    let (writer, reader) = world.pair("t", Keep::All(100));
    for number in 1..=50 {
        writer.send(100_000);
        assert_eq!(reader.numbers(), [number]);
    }
    // Before 3 they are called after its old name.
    let names = std::fs::read_dir("/dev/shm").unwrap().map(|it| it.unwrap().file_name());
    let count = names.filter(|it| it.to_string_lossy().contains("fast")).count();
    assert_eq!(0 < count, std::env::var("TSUJI_FASTDDS_SHM").unwrap() == "1", "{count} files");
}

/// The one that writes leaves whenever nothing needs it; the other stays, and must not take it for the one that left.
#[test]
#[ignore = "a child process of the other tests"]
fn joins_again_as_another() {
    let (made, config) = (Arc::new(Mutex::new(Vec::new())), config(6));
    let kept = Arc::clone(&made);
    let world = World::settled(move |id, _| {
        let made = PluginEngine::create(id, config.clone()).expect("the domain is in range");
        let made = made.ending_after(Some(Duration::from_nanos(1)));
        kept.lock().unwrap().push(made.clone());
        Arc::new(made)
    });
    let [leaves, stays] = &made.lock().unwrap()[..] else { panic!("two processes") };
    let endpoint = world.writer("name").endpoint();
    let _stays = world.reader("stays", Keep::Last(1));
    let mut names = Vec::new();
    for turn in 1..=4 {
        let other = Endpoint { gid: Gid([turn; 16]), ..endpoint.clone() };
        let named = opened(leaves, &other, world.one().cell());
        let (writer, reader) = world.pair("t", Keep::All(100));
        names.push(participant_of(named.wire_name().unwrap()));
        for number in 1..=50 {
            writer.send(100);
            assert_eq!(reader.numbers(), [number], "turn {turn}");
        }
        drop((writer, reader, named));
        leave(leaves);
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 4);
    let joins = |it: &EngineTransport| it.engine().unwrap().joins;
    assert_eq!((joins(leaves), joins(stays)), (4, 1));
}

/// The engine counts its participants on, and each has the next ports: those of other domains after 120.
#[test]
#[ignore = "a child process of the other tests"]
fn joins_again_at_the_ports_of_its_domain() {
    // Nothing here is in the one behind it.
    let domain = 8;
    let made = PluginEngine::create(PeerId([1; 16]), config(domain)).unwrap();
    let made = made.ending_after(Some(Duration::from_nanos(1)));
    let bells = Bells::create(&Backing::Anonymous).unwrap();
    let endpoint = endpoint();
    let mut names = VecDeque::new();
    for turn in 1..=130 {
        let writer = opened(&made, &endpoint, Arc::new(bells.claim_cell().unwrap()));
        let name = participant_of(writer.wire_name().unwrap());
        // Others have forgotten one of that name long ago, or remember another.
        assert!(!names.contains(&name), "turn {turn}: {name}");
        names.push_back(name);
        if 50 < names.len() {
            names.pop_front();
        }
        let behind = 7400 + 250 * (domain as u16 + 1)..7400 + 250 * (domain as u16 + 2);
        let there = ports().into_iter().filter(|it| behind.contains(it));
        assert_eq!(there.collect::<Vec<_>>(), [], "turn {turn}");
        drop(writer);
        leave(&made);
    }
}

fn endpoint() -> Endpoint {
    Endpoint {
        topic: "t".to_owned(),
        type_name: "T".to_owned(),
        gid: Gid([1; 16]),
        qos: Qos::DEFAULT,
        keep_all_max: 1,
        announced: None,
    }
}

/// A writer, as soon as there may be one: the engine may still be ending.
fn opened(transport: &EngineTransport, endpoint: &Endpoint, room: Arc<Cell>) -> Arc<dyn Writer> {
    loop {
        match transport.open_writer(endpoint, Arc::clone(&room)) {
            Ok(writer) => return writer,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
        }
        std::thread::yield_now();
    }
}

fn leave(transport: &EngineTransport) {
    while transport.engine().unwrap().run.unwrap().left_wall_ns.is_none() {
        transport.tidy(u64::MAX);
        std::thread::yield_now();
    }
}

/// The ports of this process's UDP sockets.
fn ports() -> Vec<u16> {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let links = links.filter_map(|it| it.path().read_link().ok());
    let own: Vec<String> = links.map(|it| it.to_string_lossy().into_owned()).collect();
    let sockets = std::fs::read_to_string("/proc/self/net/udp").unwrap();
    let port = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_own = own.contains(&format!("socket:[{}]", words[9]));
        let port = words[1].split_once(':')?.1;
        is_own.then(|| u16::from_str_radix(port, 16).unwrap())
    };
    sockets.lines().skip(1).filter_map(port).collect()
}

/// Leaves the process so much address space more, or lifts the limit.
fn limit_memory(more: Option<u64>) {
    let bytes = more.map(|more| tsuji_platform::process::virtual_bytes().unwrap() + more);
    let limit = bytes.unwrap_or(libc::RLIM_INFINITY);
    let limit = libc::rlimit { rlim_cur: limit, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the structure is whole.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}

#[test]
#[ignore = "a child process of the other tests"]
fn is_short_of_memory() {
    let made = PluginEngine::create(PeerId([1; 16]), config(7)).unwrap();
    let bells = Bells::create(&Backing::Anonymous).unwrap();
    // Then it is written though nobody reads it.
    let qos = Qos { durability: Durability::TransientLocal, ..Qos::DEFAULT };
    let endpoint = Endpoint { qos, ..endpoint() };
    let writer = opened(&made, &endpoint, Arc::new(bells.claim_cell().unwrap()));
    let send = |sequence, bytes: &Bytes| {
        let related = Some((Gid([2; 16]), sequence));
        let gid = endpoint.gid;
        let envelope = Envelope { gid, sequence, related, wall_ns: 1, ..Envelope::default() };
        writer.send(&envelope, &Payload::Bytes(bytes.clone()))
    };
    let large = Bytes::copy_from(&vec![0; 64 << 20]);
    send(1, &Bytes::copy_from(&[0; 4])).unwrap();
    limit_memory(Some(32 << 20));
    for _ in 0..2 {
        assert_eq!(send(2, &large).unwrap_err().kind(), ErrorKind::Unexpected);
    }
    limit_memory(None);
    send(2, &large).unwrap();
}

//! Nodes of Fast DDS and Cyclone DDS, each with its own DDS Security, in keystores that are made here. Where a peer was not built
//! (`make test-interop STEPS=dds-security`), its tests do nothing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, SystemTime};

use house::Folder;
use tsuji_security::{AccessPolicy, Deed, Enclave, Lifetime, Maker};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
const WATCHDOG: Duration = Duration::from_secs(60);
const DOMAIN: u32 = 91;
/// The peer of Fast DDS speaks there of itself.
const LOOPBACK: &str =
    r#"<General><Interfaces><NetworkInterface name="lo" multicast="true"/></Interfaces></General>"#;

/// A program that is a node of an engine alone.
struct Engine {
    program: OsString,
    /// Whether a topic of which publishing is denied by name is not to be subscribed to either: Cyclone DDS asks about topics too, and
    /// in 0.10.2 the first rule about one counts for both.
    takes_a_denial_for_both: bool,
}

impl Engine {
    #[allow(clippy::print_stderr, reason = "says that it did not run")]
    fn of(variable: &str, takes_a_denial_for_both: bool) -> Option<Self> {
        let program = std::env::var_os(variable);
        if program.is_none() {
            eprintln!("no {variable}: not run");
        }
        Some(Self { program: program?, takes_a_denial_for_both })
    }
}

/// Those that were built.
fn engines() -> impl Iterator<Item = Engine> {
    [("TSUJI_PEER_FASTDDS", false), ("TSUJI_PEER_CYCLONEDDS", true)]
        .into_iter()
        .filter_map(|(variable, takes_both)| Engine::of(variable, takes_both))
}

/// A node, which ends with its standard input.
struct Node {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Node {
    fn start(engine: &Engine, words: [&str; 5]) -> Self {
        let mut child = Command::new(&engine.program)
            .args(words)
            .env("CYCLONEDDS_URI", LOOPBACK)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (tell, lines) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || output.lines().map_while(Result::ok).all(|it| tell.send(it).is_ok()));
        let input = child.stdin.take();
        Self { child, input, lines }
    }

    /// Its next line; none where it has ended.
    fn next(&self) -> Option<String> {
        match self.lines.recv_timeout(WATCHDOG) {
            Ok(line) => Some(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("nothing was heard for {WATCHDOG:?}"),
        }
    }

    /// The next values that it hears.
    fn hears(&self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.next().unwrap().parse().unwrap()).collect()
    }

    /// Whether the engine lets it have its endpoint.
    fn may(mut self) -> bool {
        let is_ready = self.next().as_deref() == Some("ready");
        drop(self.input.take());
        let code = self.child.wait().unwrap().code();
        assert_eq!(code, Some(if is_ready { 0 } else { 3 }), "a participant at least");
        is_ready
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A keystore with these enclaves, which may do everything. The folder of each.
fn keystore<const N: usize>(folder: &Folder, name: &str, enclaves: [&str; N]) -> [String; N] {
    let keystore = folder.0.join(name);
    let now = SystemTime::now();
    let lifetime = Lifetime::days(now, 10);
    Maker::make(&keystore, DOMAIN, now, || {}).unwrap();
    let maker = Maker::open(&keystore, now, || {}).unwrap();
    enclaves.map(|it| {
        let (_, enclave) = maker.add_enclave(it, None, DOMAIN, lifetime, now).unwrap();
        enclave.folder().to_str().unwrap().to_owned()
    })
}

#[test]
fn nodes_of_one_keystore_hear_each_other_and_nobody_else() {
    engines().for_each(|it| hear_each_other_and_nobody_else(&it));
}

fn hear_each_other_and_nobody_else(engine: &Engine) {
    let folder = Folder::new("others");
    let [talker, listener] = keystore(&folder, "ours", ["/talker", "/robot/listener"]);
    let [other] = keystore(&folder, "theirs", ["/talker"]);
    let domain = DOMAIN.to_string();
    let start = |what, enclave: &str, first: u32| {
        let first = first.to_string();
        let node = Node::start(engine, [what, enclave, &domain, "rt/chatter", &first]);
        assert_eq!(node.next().as_deref(), Some("ready"), "{what} {enclave}");
        node
    };
    const CLEAR: u32 = 1_000_000;
    const THEIRS: u32 = 2_000_000;
    const OURS: u32 = 3_000_000;
    let _in_clear = start("publish", "-", CLEAR);
    let _other = start("publish", &other, THEIRS);
    let all = start("subscribe", "-", 0);
    // There is something to be heard.
    assert!(all.hears(10).iter().all(|it| (CLEAR..THEIRS).contains(it)));
    let ours = start("subscribe", &listener, 0);
    let _talker = start("publish", &talker, OURS);
    let heard = ours.hears(50);
    assert!(heard.iter().all(|it| OURS <= *it), "{heard:?}");
    let heard = all.hears(50);
    assert!(heard.iter().all(|it| (CLEAR..THEIRS).contains(it)), "{heard:?}");
}

#[test]
fn who_was_revoked_is_not_heard_there_either() {
    engines().for_each(|it| do_not_hear_the_revoked(&it));
}

fn do_not_hear_the_revoked(engine: &Engine) {
    let folder = Folder::new("revoked");
    let [listener, good, stolen] = keystore(&folder, "keystore", ["/listener", "/good", "/stolen"]);
    let now = SystemTime::now();
    let maker = Maker::open(&folder.0.join("keystore"), now, || {}).unwrap();
    maker.revoke(&["/stolen".to_owned()], &[], Lifetime::days(now, 10), now).unwrap();
    // Whoever has stolen a key has no list.
    std::fs::remove_file(Path::new(&stolen).join("crl.pem")).unwrap();
    let domain = DOMAIN.to_string();
    let start = |what, enclave: &str, first: &str| {
        let node = Node::start(engine, [what, enclave, &domain, "rt/revoked", first]);
        assert_eq!(node.next().as_deref(), Some("ready"), "{what} {enclave}");
        node
    };
    let _stolen = start("publish", &stolen, "1000000");
    let other = start("subscribe", &stolen, "0");
    // It is heard by one without the list.
    assert_eq!(other.hears(10).len(), 10);
    let ours = start("subscribe", &listener, "0");
    let _good = start("publish", &good, "2000000");
    let heard = ours.hears(50);
    assert!(heard.iter().all(|it| 2_000_000 <= *it), "{heard:?}");
}

const POLICY: &str = r#"<policy version="0.2.0"><enclaves><enclave path="/arm"><profiles>
    <profile ns="/robot" node="arm">
        <topics subscribe="ALLOW" publish="DENY"><topic>joints</topic><topic>/s*n</topic></topics>
        <services reply="ALLOW"><service>~/stop</service></services>
        <actions execute="ALLOW"><action>reach</action></actions>
        <topics publish="ALLOW"><topic>*</topic></topics>
    </profile>
</profiles></enclave></enclaves></policy>"#;

/// Whether each engine allows what is allowed here, and nothing else.
#[track_caller]
fn decide_the_same(enclave: &Enclave, domain: u32, topics: &[&str]) {
    let (folder, number) = (enclave.folder().to_str().unwrap(), domain.to_string());
    for engine in engines() {
        let mut answers = [0; 2];
        for topic in topics {
            let may = |deed| enclave.may(deed, domain, topic);
            let is_denied_by_name = may(Deed::Publish).because.starts_with("deny_rule");
            for (deed, what) in [(Deed::Publish, "publish"), (Deed::Subscribe, "subscribe")] {
                let answer = may(deed);
                let expected =
                    answer.is_allowed && !(engine.takes_a_denial_for_both && is_denied_by_name);
                let by_peer = Node::start(&engine, [what, folder, &number, topic, "0"]).may();
                assert_eq!(expected, by_peer, "{deed} {topic}: {}", answer.because);
                answers[usize::from(by_peer)] += 1;
            }
        }
        assert!(answers.iter().all(|it| 0 < *it), "{answers:?}");
    }
}

#[test]
fn what_is_allowed_here_is_allowed_there() {
    let folder = Folder::new("decides");
    let policy = AccessPolicy::read(&folder.write("policy.xml", POLICY)).unwrap();
    let [_] = keystore(&folder, "keystore", ["/other"]);
    let keystore = folder.0.join("keystore");
    let now = SystemTime::now();
    let maker = Maker::open(&keystore, now, || {}).unwrap();
    let lifetime = Lifetime::days(now, 10);
    let (_, arm) = maker.add_enclave("/arm", policy.access("/arm"), DOMAIN, lifetime, now).unwrap();
    let topics = [
        "rt/robot/joints",
        "rt/robot/other",
        "rt/scan",
        "rt/sun/moon",
        "rt/odom",
        "rq/robot/arm/stopRequest",
        "rr/robot/arm/stopReply",
        "rq/robot/reach/_action/send_goalRequest",
        "rt/robot/reach/_action/feedback",
        "ros_discovery_info",
    ];
    decide_the_same(&arm, DOMAIN, &topics);
}

#[test]
fn what_sros2_has_made_is_decided_as_there() {
    let keystore = Path::new(DATA).join("sros2");
    let talker = Enclave::read(&keystore, "/talker_listener/talker", SystemTime::now()).unwrap();
    let topics = ["rt/chatter", "rt/chatter2", "rt/rosout", "rr/talker/get_parametersReply"];
    decide_the_same(&talker, 0, &topics);
}

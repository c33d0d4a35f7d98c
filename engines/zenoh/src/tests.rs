//! The contract of an engine where the suite of the seam cannot look: what is put right behind a match.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use tsuji_core::{Durability, History, Qos, Reliability};
use tsuji_engine::{
    Arrived, EndpointSpec, Engine, EngineReader, EngineWriter, Listener, Participant, Tap,
};
use tsuji_security::{Lifetime, Maker};
use tsuji_transport::{Bytes, ErrorKind};
use zenoh::Wait;

use crate::{Endpoints, Meeting, Zenoh, ZenohConfig, engine};

/// A domain that no other test of this process has, nor the conformance suite's first worlds.
fn domain() -> ZenohConfig {
    static DOMAINS: AtomicU32 = AtomicU32::new(200);
    ZenohConfig::on_loopback(DOMAINS.fetch_add(1, Ordering::Relaxed))
}

fn join(config: &ZenohConfig) -> Box<dyn Participant> {
    Zenoh { config: config.clone() }.join().unwrap()
}

/// Wakes whoever waits for something to happen.
#[derive(Default)]
struct Bell(Mutex<u64>, Condvar);

impl Bell {
    fn ring(&self) {
        *self.0.lock().unwrap() += 1;
        self.1.notify_all();
    }

    /// Waits until `look` finds something. What hangs is cut.
    fn wait<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        loop {
            let rung = *self.0.lock().unwrap();
            if let Some(found) = look() {
                return found;
            }
            let guard = self.0.lock().unwrap();
            let waited = self.1.wait_timeout_while(guard, CUT, |now| *now == rung).unwrap();
            assert!(!waited.1.timed_out(), "nothing happens any more");
        }
    }
}

const CUT: Duration = Duration::from_secs(60);

impl Listener for Bell {
    fn data_available(&self) {
        self.ring();
    }

    fn matched(&self) {
        self.ring();
    }
}

/// By a topic that no other process has.
fn spec(qos: &Qos) -> EndpointSpec<'_> {
    static TOPIC: OnceLock<String> = OnceLock::new();
    let topic = TOPIC.get_or_init(|| format!("/of/{}", std::process::id()));
    EndpointSpec { topic, type_name: "t", is_keyed: false, qos, keep_all_max: 1000, user_data: &[] }
}

fn writer(at: &dyn Participant, qos: &Qos, bell: &Arc<Bell>) -> Box<dyn EngineWriter> {
    let mut writer = at.writer(&spec(qos)).unwrap();
    writer.listen(Arc::clone(bell) as Arc<dyn Listener>).unwrap();
    writer
}

fn reader(at: &dyn Participant, qos: &Qos, bell: &Arc<Bell>) -> Box<dyn EngineReader> {
    let mut reader = at.reader(&spec(qos)).unwrap();
    reader.listen(Arc::clone(bell) as Arc<dyn Listener>).unwrap();
    reader
}

fn sample(len: usize, fill: u8) -> Bytes {
    Bytes::copy_from(&vec![fill; len])
}

fn take(tap: &Arc<dyn Tap>, bell: &Bell) -> Arrived {
    bell.wait(|| tap.take().unwrap())
}

fn until_matched(writer: &dyn EngineWriter, readers: usize, bell: &Bell) {
    let peep = writer.peep();
    bell.wait(|| (peep.matches().len() == readers).then_some(()));
}

const TRANSIENT: Qos = Qos { durability: Durability::TransientLocal, ..Qos::DEFAULT };

#[test]
fn what_is_written_right_behind_the_match_comes() {
    let config = domain();
    let (here, there) = (join(&config), join(&config));
    for round in 0..100 {
        let (heard, got) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
        // Whichever is first.
        let (writer, reader) = if round % 2 == 0 {
            let writer = writer(&*here, &Qos::DEFAULT, &heard);
            (writer, reader(&*there, &Qos::DEFAULT, &got))
        } else {
            let reader = reader(&*there, &Qos::DEFAULT, &got);
            (writer(&*here, &Qos::DEFAULT, &heard), reader)
        };
        // One of an earlier round may still be shown.
        let peep = writer.peep();
        heard.wait(|| peep.matches().contains(&reader.guid()).then_some(()));
        for number in 1..=20 {
            let len = if number % 5 == 0 { 100_000 } else { 64 };
            writer.write(&sample(len, number as u8), number).unwrap();
        }
        let tap = reader.tap();
        for number in 1..=20 {
            let arrived = take(&tap, &got);
            assert_eq!((arrived.number, arrived.source_ns), (number, number), "round {round}");
            assert_eq!(arrived.writer, writer.guid());
            assert!(arrived.bytes.iter().all(|byte| *byte == number as u8));
        }
        writer.wait_for_acknowledgements(CUT);
        assert!(writer.is_acknowledged());
        assert_eq!(tap.matches(), [writer.guid()]);
    }
}

#[test]
fn late_joiners_get_what_is_kept_and_all_that_follows() {
    let config = domain();
    let (here, there) = (join(&config), join(&config));
    let heard = Arc::new(Bell::default());
    let writer = writer(&*here, &TRANSIENT, &heard);
    let end = Arc::new(std::sync::atomic::AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !end.load(Ordering::Relaxed) {
                let len = if number % 7 == 0 { 80_000 } else { 64 };
                match writer.write(&sample(len, 1), number) {
                    Ok(()) => number += 1,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Busy),
                }
                thread::yield_now();
                if number % 50 == 0 {
                    writer.wait_for_acknowledgements(CUT);
                }
            }
        });
        // Also where this thread panics, which would else wait for the other one.
        let at_end = SetAtEnd(&end);
        for round in 0..30 {
            let got = Arc::new(Bell::default());
            let qos = if round % 3 == 0 { Qos::DEFAULT } else { TRANSIENT };
            let reader = reader(&*there, &qos, &got);
            let tap = reader.tap();
            let first = take(&tap, &got).number;
            for number in first + 1..first + 100 {
                assert_eq!(take(&tap, &got).number, number, "round {round}");
            }
        }
        drop(at_end);
    });
    writer.wait_for_acknowledgements(CUT);
    let last = {
        let got = Arc::new(Bell::default());
        let reader = reader(&*there, &TRANSIENT, &got);
        let tap = reader.tap();
        let mut numbers: Vec<i64> = (0..10).map(|_| take(&tap, &got).number).collect();
        assert!(numbers.is_sorted_by(|a, b| a + 1 == *b), "{numbers:?}");
        numbers.pop().unwrap()
    };
    writer.write(&sample(4, 1), 0).unwrap();
    let got = Arc::new(Bell::default());
    let one = Qos { history: History::KeepLast(1), ..TRANSIENT };
    let reader = reader(&*there, &one, &got);
    let tap = reader.tap();
    bell_until(&tap, &got, last + 1);
}

/// Sets a flag when dropped.
struct SetAtEnd<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn bell_until(tap: &Arc<dyn Tap>, bell: &Bell, last: i64) {
    while take(tap, bell).number < last {}
}

#[test]
fn only_what_fits_matches() {
    let config = domain();
    let (here, there) = (join(&config), join(&config));
    let heard = Arc::new(Bell::default());
    let best_effort = Qos { reliability: Reliability::BestEffort, ..Qos::DEFAULT };
    let unreliable = writer(&*here, &best_effort, &heard);
    let volatile = writer(&*here, &Qos::DEFAULT, &heard);
    let got = Arc::new(Bell::default());
    let plain = reader(&*there, &Qos::DEFAULT, &got);
    let any = reader(&*there, &best_effort, &got);
    let late = reader(&*there, &TRANSIENT, &got);
    // Its own participant's writers are nobody's.
    let own = reader(&*here, &best_effort, &got);
    until_matched(&*volatile, 2, &heard);
    until_matched(&*unreliable, 1, &heard);
    for writer in [&unreliable, &volatile] {
        writer.write(&sample(8, 1), 1).unwrap();
    }
    let tap = any.tap();
    let mut from: Vec<_> = (0..2).map(|_| take(&tap, &got).writer).collect();
    from.sort_unstable();
    assert_eq!(from, [unreliable.guid(), volatile.guid()]);
    assert_eq!(take(&plain.tap(), &got).writer, volatile.guid());
    for reader in [&late, &own, &plain] {
        assert!(reader.tap().take().unwrap().is_none());
    }
    assert!(late.tap().matches().is_empty() && own.tap().matches().is_empty());
    drop(any);
    until_matched(&*unreliable, 0, &heard);
    until_matched(&*volatile, 1, &heard);
    drop(volatile);
    let tap = plain.tap();
    got.wait(|| tap.matches().is_empty().then_some(()));
    drop(plain);
    assert!(tap.take().is_err());
}

#[test]
fn whoever_comes_meets_those_who_stayed_when_the_first_has_left() {
    let config = domain();
    let first = join(&config);
    let (second, third) = (join(&config), join(&config));
    let (heard, got) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
    let writer = writer(&*second, &Qos::DEFAULT, &heard);
    let _reader = reader(&*third, &Qos::DEFAULT, &got);
    until_matched(&*writer, 1, &heard);
    drop(first);
    let fourth = join(&config);
    let late = reader(&*fourth, &Qos::DEFAULT, &got);
    until_matched(&*writer, 2, &heard);
    writer.write(&sample(8, 1), 1).unwrap();
    assert_eq!(take(&late.tap(), &got).number, 1);
    drop(fourth);
    drop(late);
    until_matched(&*writer, 1, &heard);
}

/// As the manual has it by TLS, by an enclave of a keystore of SROS2: `endpoints` are what it listens at, and whom it looks for.
fn by_tls(folder: &Path, keystore: &str, enclave: &str, endpoints: [&str; 2]) -> ZenohConfig {
    let manual = include_str!("../../../docs/transports.md");
    let block = manual.split("```json\n").nth(1).and_then(|it| it.split("```").next()).unwrap();
    let folder = folder.join(keystore).join("enclaves").join(enclave);
    let mut text = block.replace("/etc/robot/keystore/enclaves/talker", folder.to_str().unwrap());
    for (of_manual, endpoint) in ["tls/0.0.0.0:7448", "tls/other.local:7448"].iter().zip(endpoints)
    {
        assert!(text.contains(of_manual), "{text}");
        text = text.replace(&format!("{of_manual:?}"), endpoint);
    }
    let path = folder.join("zenoh.json");
    std::fs::write(&path, text).unwrap();
    ZenohConfig { domain: 0, meeting: Meeting::File(path), user_data: Vec::new() }
}

#[test]
fn by_tls_only_whoever_has_a_certificate_of_the_keystore_is_met() {
    let folder = std::env::temp_dir().join(format!("tsuji-zenoh-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let now = std::time::SystemTime::now();
    for keystore in ["ours", "theirs"] {
        let keystore = folder.join(keystore);
        Maker::make(&keystore, 0, now, || {}).unwrap();
        let maker = Maker::open(&keystore, now, || {}).unwrap();
        for enclave in ["/talker", "/listener"] {
            maker.add_enclave(enclave, None, 0, Lifetime::days(now, 9), now).unwrap();
        }
    }
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let endpoint = format!("{:?}", format!("tls/127.0.0.1:{port}"));
    let here = join(&by_tls(&folder, "ours", "talker", [&endpoint, ""]));
    let stranger = join(&by_tls(&folder, "theirs", "listener", ["", &endpoint]));
    let friend = join(&by_tls(&folder, "ours", "listener", ["", &endpoint]));
    let bells = [(); 3].map(|()| Arc::new(Bell::default()));
    let writer = writer(&*here, &Qos::DEFAULT, &bells[0]);
    let deaf = reader(&*stranger, &Qos::DEFAULT, &bells[1]);
    let reader = reader(&*friend, &Qos::DEFAULT, &bells[2]);
    let peep = writer.peep();
    bells[0].wait(|| (peep.matches() == [reader.guid()]).then_some(()));
    writer.write(&sample(100_000, 1), 1).unwrap();
    assert_eq!(take(&reader.tap(), &bells[2]).number, 1);
    assert_eq!(peep.matches(), [reader.guid()]);
    assert!(deaf.tap().matches().is_empty());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_writer_is_busy_before_too_much_is_on_its_way_and_loses_nothing() {
    let config = domain();
    let (here, there) = (join(&config), join(&config));
    let (heard, got) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
    let writer = writer(&*here, &Qos::DEFAULT, &heard);
    let reader = reader(&*there, &Qos::DEFAULT, &got);
    until_matched(&*writer, 1, &heard);
    let large = sample(4 << 20, 7);
    let (mut written, mut refused) = (0, 0);
    while written < 100 {
        match writer.write(&large, 1) {
            Ok(()) => written += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Busy);
                refused += 1;
                writer.wait_for_acknowledgements(Duration::from_millis(50));
            }
        }
        while written % 10 == 0 && reader.tap().take().unwrap().is_some() {}
    }
    assert!(0 < refused);
    let tap = reader.tap();
    bell_until(&tap, &got, 100);
}

/// Takes what comes and notes by which topic and number, in the order of coming; one that is closed holds whoever calls.
struct Notes {
    topic: &'static str,
    tap: Mutex<Option<Arc<dyn Tap>>>,
    all: Arc<Noted>,
    gate: Gate,
}

impl Listener for Notes {
    fn data_available(&self) {
        let tap = self.tap.lock().unwrap().clone();
        while let Some(arrived) = tap.as_ref().and_then(|it| it.take().unwrap()) {
            self.all.0.lock().unwrap().push((self.topic, arrived.number));
            self.all.1.notify_all();
            pass(&self.gate);
        }
    }

    fn matched(&self) {}
}

/// By which topic a sample has come, and which number it has.
type Noted = (Mutex<Vec<(&'static str, i64)>>, Condvar);

type Gate = Arc<(Mutex<bool>, Condvar)>;

/// Waits while the gate is closed. What hangs is cut.
fn pass(gate: &Gate) {
    let waited = gate.1.wait_timeout_while(gate.0.lock().unwrap(), CUT, |is_open| !*is_open);
    assert!(!waited.unwrap().1.timed_out(), "nobody opens the gate");
}

fn set(gate: &Gate, is_open: bool) {
    *gate.0.lock().unwrap() = is_open;
    gate.1.notify_all();
}

#[test]
fn neither_small_samples_nor_another_large_writer_wait_for_all_that_a_large_one_has_to_send() {
    let config = domain();
    let (here, there) = (join(&config), join(&config));
    let heard = Arc::new(Bell::default());
    let all = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
    let (open, gate): (Gate, Gate) = Default::default();
    set(&open, true);
    let ends = [("/stuck", &gate), ("/other", &open), ("/small", &open)].map(|(topic, gate)| {
        let spec = EndpointSpec { topic, ..spec(&Qos::DEFAULT) };
        let mut reader = there.reader(&spec).unwrap();
        let (all, gate) = (Arc::clone(&all), Arc::clone(gate));
        let tap = Mutex::new(Some(reader.tap()));
        reader.listen(Arc::new(Notes { topic, tap, all, gate })).unwrap();
        let mut writer = here.writer(&spec).unwrap();
        writer.listen(Arc::clone(&heard) as Arc<dyn Listener>).unwrap();
        until_matched(&*writer, 1, &heard);
        (reader, writer)
    });
    let [(_stuck_reader, stuck), (_other_reader, other), (_small_reader, small)] = &ends;
    let (large, little) = (sample(4 << 20, 1), sample(16, 2));
    let until = |what: (&str, i64)| {
        let noted = all.0.lock().unwrap();
        let waited = all.1.wait_timeout_while(noted, CUT, |it| !it.contains(&what));
        assert!(!waited.unwrap().1.timed_out(), "{what:?} does not come");
    };
    // While what has come of a large one is not taken.
    (1..=4).for_each(|number| stuck.write(&large, number).unwrap());
    (1..=20).for_each(|number| small.write(&little, number).unwrap());
    until(("/small", 20));
    // While the connection stands still, and the most that fits waits to be sent.
    (5..=15).for_each(|number| stuck.write(&large, number).unwrap());
    (1..=2).for_each(|number| other.write(&large, number).unwrap());
    (21..=40).for_each(|number| small.write(&little, number).unwrap());
    set(&gate, true);
    until(("/stuck", 15));
    let noted = all.0.lock().unwrap().clone();
    assert_eq!(noted.last(), Some(&("/stuck", 15)), "{noted:?}");
    for (topic, last) in [("/stuck", 15), ("/other", 2), ("/small", 40)] {
        let numbers = noted.iter().filter(|it| it.0 == topic).map(|it| it.1);
        assert!(numbers.eq(1..=last), "{noted:?}");
    }
}

#[test]
fn a_writer_that_becomes_large_stays_in_order() {
    let config = domain();
    let (here, there) = (join(&config), join(&config));
    let (heard, got) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
    for round in 0..20 {
        let reader = reader(&*there, &Qos::DEFAULT, &got);
        let writer = writer(&*here, &Qos::DEFAULT, &heard);
        let peep = writer.peep();
        heard.wait(|| peep.matches().contains(&reader.guid()).then_some(()));
        let turns_at = 1 + round * 5;
        for number in 1..=100 {
            let is_large = turns_at <= number && (number - turns_at) % 4 == 0;
            let len = if is_large { 1 << 20 } else { 64 };
            while writer.write(&sample(len, number as u8), number).is_err() {
                writer.wait_for_acknowledgements(Duration::from_millis(50));
            }
        }
        let tap = reader.tap();
        for number in 1..=100 {
            let arrived = take(&tap, &got);
            assert_eq!(arrived.number, number, "round {round}");
            assert!(arrived.bytes.iter().all(|byte| *byte == number as u8));
        }
    }
}

/// A router on this port.
fn router(port: u16) -> zenoh::Session {
    let text = format!(
        r#"{{ mode: "router", listen: {{ endpoints: ["tcp/127.0.0.1:{port}"] }},
             scouting: {{ multicast: {{ enabled: false }} }} }}"#
    );
    zenoh::open(zenoh::Config::from_json5(&text).unwrap()).wait().unwrap()
}

/// Looks again and again, for what no listener is told of. What hangs is cut.
fn poll(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + CUT;
    while !is_so() {
        assert!(Instant::now() < end, "nothing happens any more");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_router_may_come_late_and_go_and_come_back() {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let endpoints = Endpoints {
        listen: vec!["tcp/127.0.0.1:0".to_owned()],
        connect: vec![format!("tcp/127.0.0.1:{port}")],
        ..Endpoints::default()
    };
    let ZenohConfig { domain, .. } = domain();
    let meeting = Meeting::Endpoints(endpoints);
    let config = ZenohConfig { domain, meeting, user_data: Vec::new() };
    let here = engine::Participant::join(&config).unwrap();
    let there = join(&config);
    let (heard, got) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
    let writer = writer(&here, &Qos::DEFAULT, &heard);
    let first = reader(&*there, &Qos::DEFAULT, &got);
    assert!(writer.peep().matches().is_empty());
    let runs = router(port);
    until_matched(&*writer, 1, &heard);
    writer.write(&sample(8, 1), 1).unwrap();
    assert_eq!(take(&first.tap(), &got).number, 1);
    // Once they have a way of their own they need it no more.
    poll(|| here.session().info().peers_zid().wait().next().is_some());
    runs.close().wait().unwrap();
    poll(|| here.session().info().routers_zid().wait().next().is_none());
    until_matched(&*writer, 1, &heard);
    writer.write(&sample(8, 2), 2).unwrap();
    let mut taken = take(&first.tap(), &got);
    assert_eq!((taken.number, taken.bytes[0]), (2, 2));
    let late = join(&config);
    let second = reader(&*late, &Qos::DEFAULT, &got);
    let runs = router(port);
    until_matched(&*writer, 2, &heard);
    writer.write(&sample(8, 3), 3).unwrap();
    taken = take(&second.tap(), &got);
    assert_eq!((taken.number, taken.bytes[0]), (3, 3));
    assert_eq!(take(&first.tap(), &got).number, 3);
    runs.close().wait().unwrap();
}

const HASH: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";
const TEXT: &str = "std_msgs::msg::dds_::String_";
const ADD: &str = "example_interfaces::srv::dds_::AddTwoInts_";

/// A participant on rmw_zenoh's wire, and a session that is not tsuji's.
fn with_a_stranger() -> (engine::Participant, zenoh::Session, u32) {
    let config = ZenohConfig { user_data: b"enclave=/;".to_vec(), ..domain() };
    let here = engine::Participant::join(&config).unwrap();
    let text = format!(
        r#"{{ mode: "peer", connect: {{ endpoints: ["tcp/127.0.0.1:{}"] }},
             scouting: {{ multicast: {{ enabled: false }} }} }}"#,
        17_447 + config.domain
    );
    let session = zenoh::open(zenoh::Config::from_json5(&text).unwrap()).wait().unwrap();
    (here, session, config.domain)
}

fn on_wire<'a>(topic: &'a str, type_name: &'a str, user_data: &'a str) -> EndpointSpec<'a> {
    let user_data = user_data.as_bytes();
    EndpointSpec {
        topic,
        type_name,
        is_keyed: false,
        qos: &Qos::DEFAULT,
        keep_all_max: 10,
        user_data,
    }
}

fn attachment(number: i64) -> Vec<u8> {
    [&number.to_le_bytes()[..], &7i64.to_le_bytes(), &[16], &[0xee; 16]].concat()
}

#[test]
fn nonsense_on_the_wire_is_left_out() {
    let (here, stranger, domain) = with_a_stranger();
    let got = Arc::new(Bell::default());
    let watch = here.watch(&(Arc::clone(&got) as Arc<dyn Listener>)).unwrap();
    let said = format!("typehash={HASH};");
    let mut reader = here.reader(&on_wire("rt/chatter", TEXT, &said)).unwrap();
    reader.listen(Arc::clone(&got) as Arc<dyn Listener>).unwrap();
    let zid = stranger.zid();
    let declare = |key: String| stranger.liveliness().declare_token(key).wait().unwrap();
    let nonsense = [
        format!("@ros2_lv/{domain}/{zid}"),
        format!("@ros2_lv/{domain}/nobody/0/1/NN/%/%/n"),
        format!("@ros2_lv/{domain}/{zid}/0/1/MP/%/%/n"),
        format!("@ros2_lv/{domain}/{zid}/0/1/MP/%/%/n/%chatter/{TEXT}/{HASH}/x"),
        format!("@ros2_lv/{domain}/{zid}/0/1/MP/%/%/n/%chatter/{TEXT}/{HASH}/::,0:,:,:,,"),
        format!("@tsuji_lv/{domain}/{zid}/0/1/SS/%/%/n/%chatter/{TEXT}/{HASH}/::,10:,:,:,,"),
        format!("@tsuji/1/{domain}/{zid}/nohex"),
    ];
    let _nonsense: Vec<_> = nonsense.into_iter().map(declare).collect();
    let qos = "::,10:,:,:,,";
    let _other =
        declare(format!("@ros2_lv/{domain}/{zid}/0/2/MP/%/%/n/%chatter/{TEXT}/RIHS01_0/{qos}"));
    let _token =
        declare(format!("@ros2_lv/{domain}/{zid}/0/3/MP/%/%/n/%chatter/{TEXT}/{HASH}/{qos}"));
    let tap = reader.tap();
    got.wait(|| (tap.matches().len() == 1).then_some(()));
    let found = watch.take();
    // A participant, and the two writers of which one has another hash.
    assert_eq!(found.len(), 3, "{found:?}");
    let key = format!("{domain}/chatter/{TEXT}/{HASH}");
    let publisher = stranger.declare_publisher(&key).wait().unwrap();
    // That its token was seen here does not say that the reader was seen there.
    poll(|| publisher.matching_status().wait().unwrap().matching());
    let put = |attachment: Option<Vec<u8>>| {
        publisher.put("text").attachment(attachment).wait().unwrap();
    };
    put(None);
    put(Some(attachment(1)[..32].to_vec()));
    put(Some([attachment(1), vec![0]].concat()));
    let mut wrong = attachment(1);
    wrong[16] = 17;
    put(Some(wrong));
    put(Some(attachment(1)));
    put(Some(attachment(1)));
    put(Some(attachment(2)));
    let numbers = [take(&tap, &got), take(&tap, &got)].map(|it| (it.number, it.source_ns));
    assert_eq!(numbers, [(1, 7), (2, 7)]);
    assert!(tap.take().unwrap().is_none());
    drop(_token);
    got.wait(|| tap.matches().is_empty().then_some(()));
}

#[test]
fn requests_without_an_attachment_end_without_an_answer() {
    let (here, stranger, domain) = with_a_stranger();
    let got = Arc::new(Bell::default());
    let said = format!("serviceid=7;tsujiservicehash={HASH};");
    let replies = here.writer(&on_wire("rr/addReply", &format!("{ADD}Response_"), &said)).unwrap();
    let spec_type = format!("{ADD}Request_");
    let mut requests = here.reader(&on_wire("rq/addRequest", &spec_type, &said)).unwrap();
    requests.listen(Arc::clone(&got) as Arc<dyn Listener>).unwrap();
    let zid = stranger.zid();
    let token = format!("@ros2_lv/{domain}/{zid}/0/5/SC/%/%/n/%add/{ADD}/{HASH}/::,10:,:,:,,");
    let _token = stranger.liveliness().declare_token(token).wait().unwrap();
    let tap = requests.tap();
    got.wait(|| (tap.matches().len() == 1).then_some(()));
    let key = format!("{domain}/add/{ADD}/{HASH}");
    let querier = stranger.declare_querier(&key).timeout(CUT).wait().unwrap();
    poll(|| querier.matching_status().wait().unwrap().matching());
    let ask = |attachment: Option<Vec<u8>>| {
        querier.get().payload("asked").attachment(attachment).wait().unwrap()
    };
    for wrong in [None, Some(vec![1; 33]), Some(Vec::new())] {
        assert!(ask(wrong).recv().is_err());
    }
    // Two of one client at a time, answered the other way round.
    let answers = [ask(Some(attachment(4))), ask(Some(attachment(5)))];
    let asked = [take(&tap, &got), take(&tap, &got)];
    for (at, arrived) in asked.into_iter().enumerate().rev() {
        let related = arrived.related.unwrap();
        assert_eq!((related.number, &arrived.bytes[..]), (0, &b"asked"[..]));
        let related = tsuji_engine::Related { number: arrived.number, ..related };
        let answer = Bytes::copy_from(format!("answer {at}").as_bytes());
        replies.write_related(&answer, 9, related).unwrap();
        // It has had its answer.
        replies.write_related(&answer, 9, related).unwrap();
    }
    for (at, answer) in answers.iter().enumerate() {
        let reply = answer.recv().unwrap().into_result().unwrap();
        let text = reply.payload().try_to_string().unwrap().into_owned();
        let number = attachment(4 + at as i64);
        let said = reply.attachment().unwrap().to_bytes().into_owned();
        assert_eq!((text, &said[..8]), (format!("answer {at}"), &number[..8]));
        assert_eq!((said.len(), &said[17..]), (33, &number[17..]));
        assert!(answer.recv().is_err());
    }
}

#[test]
fn what_a_foreign_node_does_not_read_is_bounded_and_costs_others_nothing() {
    let (here, stranger, domain) = with_a_stranger();
    let heard = Arc::new(Bell::default());
    let said = format!("typehash={HASH};");
    let gate = Gate::default();
    let all = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
    let ends = [(1, "large"), (2, "small")].map(|(id, topic)| {
        let named = format!("rt/{topic}");
        let mut writer = here.writer(&on_wire(&named, TEXT, &said)).unwrap();
        writer.listen(Arc::clone(&heard) as Arc<dyn Listener>).unwrap();
        let (gate, all) = (Arc::clone(&gate), Arc::clone(&all));
        let subscriber = stranger
            .declare_subscriber(format!("{domain}/{topic}/{TEXT}/{HASH}"))
            .callback(move |it: zenoh::sample::Sample| {
                pass(&gate);
                let said = it.attachment().unwrap().to_bytes();
                let number = i64::from_le_bytes(said[..8].try_into().unwrap());
                all.0.lock().unwrap().push((topic, number));
                all.1.notify_all();
            });
        let subscriber = subscriber.wait().unwrap();
        let (zid, qos) = (stranger.zid(), "::,10:,:,:,,");
        let token = format!("@ros2_lv/{domain}/{zid}/0/{id}/MS/%/%/n/%{topic}/{TEXT}/{HASH}/{qos}");
        let token = stranger.liveliness().declare_token(token).wait().unwrap();
        until_matched(&*writer, 1, &heard);
        (writer, subscriber, token)
    });
    let [(large, ..), (small, ..)] = &ends;
    let (much, little) = (sample(4 << 20, 1), sample(16, 2));
    (1..=40).for_each(|number| large.write(&much, number).unwrap());
    (1..=200).for_each(|number| small.write(&little, number).unwrap());
    set(&gate, true);
    let until = |what: (&str, i64)| {
        let noted = all.0.lock().unwrap();
        let waited = all.1.wait_timeout_while(noted, CUT, |it| !it.contains(&what));
        let (noted, waited) = waited.unwrap();
        assert!(!waited.timed_out(), "{what:?} does not come: {noted:?}");
        noted.clone()
    };
    until(("small", 200));
    // Once there is room again, what is written goes on.
    let mut number = 40;
    let noted = loop {
        number += 1;
        large.write(&much, number).unwrap();
        let noted = all.0.lock().unwrap();
        let second = Duration::from_secs(1);
        let waited = all.1.wait_timeout_while(noted, second, |it| !it.contains(&("large", number)));
        let (noted, waited) = waited.unwrap();
        if !waited.timed_out() {
            break noted.clone();
        }
        assert!(number < 100, "nothing comes any more: {noted:?}");
    };
    let of = |topic| noted.iter().filter(move |it| it.0 == topic).map(|it| it.1);
    assert!(of("small").eq(1..=200), "{noted:?}");
    let came: Vec<i64> = of("large").collect();
    assert!(came.is_sorted() && came.starts_with(&[1, 2, 3]), "{came:?}");
    // 60 MiB wait here, and Zenoh and the system hold some.
    let early = came.iter().filter(|it| **it <= 40).count();
    assert!((15..=25).contains(&early), "{came:?}");
}

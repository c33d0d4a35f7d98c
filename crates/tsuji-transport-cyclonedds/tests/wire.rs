//! Two participants that know of each other only what the wire says, over the loopback interface.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{HashSet, VecDeque};
use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tsuji_conformance::watched;
use tsuji_core::{Durability, History, Liveliness, Qos, Reliability};
use tsuji_platform::memory::Backing;
use tsuji_platform::poll::Poll;
use tsuji_transport::bell::{Bells, Cell};
use tsuji_transport::wire::{
    ChannelSpec, Found, FoundEndpoint, FoundParticipant, Inlet, Wire, WireQos,
};
use tsuji_transport::{
    Announced, Bytes, Connected, Encoding, Endpoint, Envelope, ErrorKind, Gid, Payload, PeerId,
    Reader, Sample, Transport, Writer,
};
use tsuji_transport_cyclonedds::{CycloneConfig, CycloneDds, EngineTransport};

/// A participant, and what it has found of this process: on a busy machine there may be others.
struct Process {
    transport: EngineTransport,
    bells: Arc<Bells>,
    found: Mutex<VecDeque<Found>>,
    /// How the names of its kin begin.
    kin: Mutex<HashSet<[u8; 12]>>,
}

impl Process {
    fn new(domain: u32, number: u8) -> Self {
        let user_data = vec![b'u', number];
        let config = CycloneConfig { user_data, ..CycloneConfig::on_loopback(domain) };
        let transport = CycloneDds::create(PeerId([number; 16]), &config).unwrap();
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        Self { transport, bells, found: Mutex::default(), kin: Mutex::default() }
    }

    fn cell(&self) -> Arc<Cell> {
        Arc::new(self.bells.claim_cell().unwrap())
    }

    /// Answers what `look` does as soon as it does, looking whenever the transport has said that there
    /// is something.
    fn until<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        let poll = Poll::new().unwrap();
        poll.add(self.transport.control_fd().unwrap(), 0).unwrap();
        loop {
            assert_eq!(self.transport.control_messages(), [], "nobody here is told anything");
            if let Some(answer) = look() {
                return answer;
            }
            poll.wait(None, &mut Vec::new()).unwrap();
        }
    }

    fn data_available(&self) -> Vec<Found> {
        let mut kin = self.kin.lock().unwrap();
        let mut news = self.transport.found();
        news.retain(|found| {
            let name = match found {
                Found::Participant(it) => it.name,
                Found::Endpoint(it) => it.name,
                Found::Gone(name) => *name,
            };
            let prefix = *name.0.first_chunk().unwrap();
            match found {
                Found::Participant(it) if it.pid != Some(std::process::id()) => false,
                Found::Participant(_) => kin.insert(prefix),
                _ => kin.contains(&prefix),
            }
        });
        news
    }

    /// The next that is found of which `pick` answers something; what was found before it is gone.
    fn find<T>(&self, mut pick: impl FnMut(Found) -> Option<T>) -> T {
        self.until(|| {
            let mut found = self.found.lock().unwrap();
            found.extend(self.data_available());
            while let Some(next) = found.pop_front() {
                if let Some(picked) = pick(next) {
                    return Some(picked);
                }
            }
            None
        })
    }

    fn find_participant(&self) -> FoundParticipant {
        self.find(|found| match found {
            Found::Participant(it) => Some(it),
            _ => None,
        })
    }

    fn find_endpoint(&self, topic: &str) -> FoundEndpoint {
        self.find(|found| match found {
            Found::Endpoint(it) if it.topic == on_wire(topic) => Some(it),
            _ => None,
        })
    }

    fn writer(&self, topic: &str, qos: Qos) -> Arc<dyn Writer> {
        self.transport.open_writer(&endpoint(topic, qos), self.cell()).unwrap()
    }

    fn reader(&self, topic: &str, qos: Qos) -> Arc<dyn Reader> {
        self.transport.open_reader(&endpoint(topic, qos), self.cell()).unwrap()
    }

    fn figure(&self, name: &str) -> u64 {
        self.transport.figures().iter().find(|(it, _)| *it == name).unwrap().1
    }
}

/// A topic of this process.
fn on_wire(topic: &str) -> String {
    format!("rt/{topic}_{}", std::process::id())
}

fn endpoint(topic: &str, qos: Qos) -> Endpoint {
    let announced = Announced {
        topic: on_wire(topic),
        type_name: "example::dds_::T_".to_owned(),
        is_keyed: false,
        user_data: b"said".to_vec(),
    };
    Endpoint {
        topic: topic.to_owned(),
        type_name: "example/T".to_owned(),
        gid: Gid(*b"a name of tsuji."),
        qos,
        keep_all_max: 10,
        announced: Some(announced),
    }
}

fn channel(topic: &str, qos: Qos) -> ChannelSpec {
    ChannelSpec {
        topic: on_wire(topic),
        type_name: "example::dds_::T_".to_owned(),
        qos,
        user_data: b"said".to_vec(),
    }
}

const KEEP_ALL: Qos = Qos { history: History::KeepAll, ..Qos::DEFAULT };
const LATE: Qos = Qos { durability: Durability::TransientLocal, ..Qos::DEFAULT };

/// CDR with its header, of so many bytes.
fn cdr(number: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![number; len];
    bytes[..4].copy_from_slice(&[0, 1, 0, 0]);
    bytes
}

fn send(writer: &dyn Writer, number: u8, len: usize) -> u32 {
    let envelope = Envelope {
        gid: Gid(*b"a name of tsuji."),
        sequence: 1000 + u64::from(number),
        wall_ns: 5_000_000_000 + i64::from(number),
        ..Envelope::default()
    };
    let payload = Payload::Bytes(Bytes::copy_from(&cdr(number, len)));
    writer.send(&envelope, &payload).unwrap().readers
}

/// The next sample.
fn take(reader: &dyn Reader) -> Sample {
    let mut taken = None;
    wait_until(|| {
        taken = reader.take().unwrap();
        taken.is_some()
    });
    taken.unwrap()
}

fn bytes(sample: &Sample) -> &[u8] {
    match &sample.payload {
        Payload::Bytes(bytes) => bytes,
        Payload::Typed(_) => panic!("a typed value"),
    }
}

/// Waits for what the descriptor does not announce.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Both ends know of each other.
fn join_plainly(writing: &Process, writer: &dyn Writer, reading: &Process, reader: &dyn Reader) {
    let (from, to) = (writer.wire_name().unwrap(), reader.wire_name().unwrap());
    reading.until(|| (reader.accept_foreign(from).unwrap() == Connected::Now).then_some(()));
    writing.until(|| (writer.connect_foreign(to).unwrap() == Connected::Now).then_some(()));
}

#[test]
fn participants_and_endpoints_are_found_with_all_they_say() {
    watched(|| {
        let (one, two) = (Process::new(60, 1), Process::new(60, 2));
        assert_eq!(two.transport.wire().unwrap().found(), []);
        let qos = Qos {
            history: History::KeepLast(7),
            durability: Durability::TransientLocal,
            deadline: Some(Duration::from_secs(3)),
            lifespan: Some(Duration::from_secs(4)),
            liveliness: Liveliness::ManualByTopic,
            liveliness_lease: Some(Duration::from_secs(5)),
            ..Qos::DEFAULT
        };
        // What was there before and what comes after.
        let writer = one.writer("before", qos);
        let (name, own) = (one.transport.join().unwrap(), two.transport.join().unwrap());
        let found = two.find_participant();
        assert_eq!((found.name, found.vendor, &*found.user_data), (name, [1, 0x10], &b"u\x01"[..]));
        assert_eq!(found.pid, Some(std::process::id()));
        assert!(found.program.unwrap().contains("wire"));
        assert!(found.host.is_some());
        assert_ne!(name, own);

        let found = two.find_endpoint("before");
        assert_eq!(Some(found.name), writer.wire_name());
        assert_eq!((found.participant, found.is_writer), (name, true));
        assert_eq!((&*found.type_name, &*found.user_data), ("example::dds_::T_", &b"said"[..]));
        assert_eq!(found.qos, WireQos::new(&qos).unwrap());

        let reader = one.reader("after", Qos { reliability: Reliability::BestEffort, ..KEEP_ALL });
        let found = two.find_endpoint("after");
        assert_eq!((Some(found.name), found.is_writer), (reader.wire_name(), false));
        assert_eq!(found.qos.history, Some(History::KeepAll));
        assert_eq!(found.qos.reliability, Reliability::BestEffort);
        assert_eq!((found.qos.deadline, found.qos.lease), (None, None));
    });
}

/// An end whose type has keys matches such ends alone, but for ends of tsuji, of which one may not know that it has.
#[test]
fn keys_are_announced_and_divide_no_ends_of_tsuji() {
    watched(|| {
        let (one, two) = (Process::new(73, 1), Process::new(73, 2));
        let of = |is_keyed, user_data: &str| {
            let mut of = endpoint("keyed", Qos::DEFAULT);
            let announced = of.announced.as_mut().unwrap();
            (announced.is_keyed, announced.user_data) = (is_keyed, user_data.into());
            of
        };
        let writer = |of| one.transport.open_writer(&of, one.cell()).unwrap();
        let reader = |of| two.transport.open_reader(&of, two.cell()).unwrap();
        let kind = |name: Option<Gid>| name.unwrap().0[15];
        let theirs = writer(of(true, "said"));
        let (unlike, alike) = (reader(of(false, "said")), reader(of(true, "said")));
        // Kinds of entities, RTPS 2.5, table 9.1.
        assert_eq!([kind(unlike.wire_name()), kind(alike.wire_name())], [0x04, 0x07]);
        assert_eq!(kind(theirs.wire_name()), 0x02);
        join_plainly(&one, &*theirs, &two, &*alike);
        assert_ne!(unlike.accept_foreign(theirs.wire_name().unwrap()).unwrap(), Connected::Now);
        send(&*theirs, 1, 20);
        assert_eq!(bytes(&take(&*alike)), cdr(1, 20));
        assert!(unlike.take().unwrap().is_none());

        let gid = "tsujigid=000102030405060708090a0b0c0d0e0f;";
        for is_keyed in [true, false] {
            let (knows, does_not) = (writer(of(is_keyed, gid)), reader(of(!is_keyed, gid)));
            join_plainly(&one, &*knows, &two, &*does_not);
            send(&*knows, 2, 20);
            assert_eq!(bytes(&take(&*does_not)), cdr(2, 20));
        }
    });
}

#[test]
fn who_goes_is_told_endpoints_first() {
    watched(|| {
        let (one, two) = (Process::new(61, 1), Process::new(61, 2));
        two.transport.join().unwrap();
        let (writer, reader) = (one.writer("w", Qos::DEFAULT), one.reader("r", Qos::DEFAULT));
        let outlet = one.transport.open_outlet(&channel("o", Qos::DEFAULT)).unwrap();
        let participant = two.find_participant().name;
        let names = [writer.wire_name().unwrap(), reader.wire_name().unwrap(), outlet.name()];
        let mut missing = names.to_vec();
        two.find(|found| {
            let Found::Endpoint(it) = found else { panic!("{found:?}") };
            missing.retain(|name| *name != it.name);
            missing.is_empty().then_some(())
        });
        drop(writer);
        let gone = |found| match found {
            Found::Gone(name) => Some(name),
            _ => None,
        };
        assert_eq!(two.find(gone), names[0]);
        drop((reader, outlet, one));
        let mut left = vec![two.find(gone), two.find(gone)];
        left.sort_unstable();
        let mut expected = names[1..].to_vec();
        expected.sort_unstable();
        assert_eq!((left, two.find(gone)), (expected, participant));
        assert_eq!(two.data_available(), []);
    });
}

fn take_from(process: &Process, inlet: &dyn Inlet) -> (Gid, Vec<u8>) {
    let (writer, bytes) = process.until(|| inlet.take().unwrap());
    (writer, bytes.to_vec())
}

/// 120 participants of a host and domain have ports that follow from their indices; more have ports of the system's choice.
#[test]
fn beyond_the_last_index_others_are_met_too() {
    watched(|| {
        const DOMAIN: u16 = 71;
        let one = Process::new(DOMAIN.into(), 1);
        let name = one.transport.join().unwrap();
        let ports = (0..120).map(|index| 7400 + 250 * DOMAIN + 10 + 2 * index);
        // The first participant has one of them.
        let taken: Vec<_> = ports.filter_map(|it| UdpSocket::bind(("0.0.0.0", it)).ok()).collect();
        assert!(taken.len() < 120, "its ports follow from an index");
        let (two, three) = (Process::new(DOMAIN.into(), 2), Process::new(DOMAIN.into(), 3));
        let names = [name, two.transport.join().unwrap(), three.transport.join().unwrap()];
        for process in [&one, &two, &three] {
            let mut found = HashSet::new();
            while found.len() < 2 {
                found.insert(process.find_participant().name.0);
            }
            assert!(found.iter().all(|it| names.contains(&Gid(*it))));
        }
    });
}

#[test]
fn an_outlet_reaches_inlets_also_those_that_come_late() {
    watched(|| {
        let (one, two) = (Process::new(62, 1), Process::new(62, 2));
        let qos = Qos { history: History::KeepLast(2), ..LATE };
        let outlet = one.transport.open_outlet(&channel("o", qos)).unwrap();
        (1..=3).for_each(|number| outlet.write(&cdr(number, 20)).unwrap());
        let inlet = two.transport.open_inlet(&channel("o", LATE)).unwrap();
        let from = |number, len| (outlet.name(), cdr(number, len));
        assert_eq!(take_from(&two, &*inlet), from(2, 20));
        assert_eq!(take_from(&two, &*inlet), from(3, 20));
        outlet.write(&cdr(4, 1_000_001)).unwrap();
        assert_eq!(take_from(&two, &*inlet), from(4, 1_000_001));

        // A participant does not hear itself.
        let own = two.transport.open_outlet(&channel("o", qos)).unwrap();
        own.write(&cdr(5, 20)).unwrap();
        outlet.write(&cdr(6, 4)).unwrap();
        assert_eq!(take_from(&two, &*inlet), from(6, 4));
        assert_eq!(outlet.write(&[0, 1, 0]).unwrap_err().kind(), ErrorKind::Invalid);
        assert_ne!(inlet.name(), own.name());
    });
}

#[test]
fn what_is_no_plain_cdr_is_counted_and_dropped() {
    watched(|| {
        let (one, two) = (Process::new(63, 1), Process::new(63, 2));
        let qos = Qos { history: History::KeepLast(10), ..LATE };
        let outlet = one.transport.open_outlet(&channel("odd", qos)).unwrap();
        for encapsulation in [2, 3, 6, 7, 8, 9, 10, 11] {
            outlet.write(&[0, encapsulation, 0, 0, 1, 2, 3, 4]).unwrap();
        }
        outlet.write(&cdr(1, 9)).unwrap();
        let inlet = two.transport.open_inlet(&channel("odd", LATE)).unwrap();
        assert_eq!(take_from(&two, &*inlet), (outlet.name(), cdr(1, 9)));
        assert_eq!(two.figure("invalid_samples"), 8);

        let reader = two.reader("odd", qos);
        reader.accept_foreign(outlet.name()).unwrap();
        assert_eq!(bytes(&take(&*reader)), cdr(1, 9));
        assert_eq!(two.figure("invalid_samples"), 16);
        assert_eq!((reader.displaced(), two.figure("doubled_samples")), (0, 0));
    });
}

#[test]
fn what_is_shorter_than_its_header_is_counted_and_dropped() {
    watched(|| {
        const DOMAIN: u16 = 70;
        let (one, two) = (Process::new(DOMAIN.into(), 1), Process::new(DOMAIN.into(), 2));
        let outlet = one.transport.open_outlet(&channel("short", LATE)).unwrap();
        outlet.write(&cdr(1, 8)).unwrap();
        let inlet = two.transport.open_inlet(&channel("short", LATE)).unwrap();
        let reader = two.reader("short", LATE);
        reader.accept_foreign(outlet.name()).unwrap();
        assert_eq!(take_from(&two, &*inlet).1, cdr(1, 8));
        assert_eq!(bytes(&take(&*reader)), cdr(1, 8));

        // Whoever has this port of the domain gets it; the others know no such writer.
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let forged = fragment(outlet.name(), 2, 3);
        for port in 10..20 {
            socket.send_to(&forged, ("127.0.0.1", 7400 + 250 * DOMAIN + port)).unwrap();
        }
        wait_until(|| two.figure("invalid_samples") == 2);
        // The engine has that number already.
        outlet.write(&cdr(2, 8)).unwrap();
        outlet.write(&cdr(3, 8)).unwrap();
        assert_eq!(take_from(&two, &*inlet).1, cdr(3, 8));
        assert_eq!(bytes(&take(&*reader)), cdr(3, 8));
    });
}

/// An RTPS message with the only fragment of a sample of so many bytes, up to 4: RTPS 2.5, 9.4.4 and
/// 9.4.5.5.
fn fragment(writer: Gid, number: u32, sample_bytes: u32) -> Vec<u8> {
    let (participant, entity) = writer.0.split_at(12);
    let numbers = [[0; 4], number.to_le_bytes(), 1u32.to_le_bytes()].concat();
    let sizes = [&1u16.to_le_bytes()[..], &1024u16.to_le_bytes(), &sample_bytes.to_le_bytes()];
    let body = [&[0, 0, 28, 0, 0, 0, 0, 0], entity, &numbers, &sizes.concat(), &[0, 1, 0, 0]];
    let body = body.concat();
    let header = [&b"RTPS\x02\x01\x01\x10"[..], participant].concat();
    [&header[..], &[0x16, 1], &(body.len() as u16).to_le_bytes(), &body].concat()
}

#[test]
fn samples_go_plainly_without_any_letter() {
    watched(|| {
        let (one, two) = (Process::new(64, 1), Process::new(64, 2));
        for (writing, reading, topic) in [(&one, &two, "there"), (&two, &one, "back")] {
            let writer = writing.writer(topic, KEEP_ALL);
            let from = writer.wire_name().unwrap();
            assert_eq!((send(&*writer, 0, 8), writer.readers()), (0, 0));
            let reader = reading.reader(topic, Qos::DEFAULT);
            join_plainly(writing, &*writer, reading, &*reader);
            assert_eq!(reader.newest_ns(from), None);
            assert_eq!(
                writer.connect_foreign(reader.wire_name().unwrap()).unwrap(),
                Connected::Now
            );
            assert_eq!(writer.readers(), 1);
            let mut last = None;
            for number in 1..=5 {
                assert_eq!(send(&*writer, number, 9 + 50_000 * usize::from(number)), 1);
                let sample = take(&*reader);
                let envelope = sample.envelope;
                assert_eq!((envelope.gid, envelope.mono_ns, envelope.related), (from, 0, None));
                assert_eq!(envelope.encoding, Encoding::Cdr1);
                assert_eq!(envelope.wall_ns, 5_000_000_000 + i64::from(number));
                assert_eq!(bytes(&sample), cdr(number, 9 + 50_000 * usize::from(number)));
                assert!(last.is_none_or(|it| envelope.sequence == it + 1), "{last:?} {envelope:?}");
                last = Some(envelope.sequence);
            }
            assert!(reader.newest_ns(from).is_some());
            writer.disconnect(reader.wire_name().unwrap());
            assert_eq!((send(&*writer, 6, 8), writer.readers()), (0, 0));
            take(&*reader);
            reader.forget(from);
            assert_eq!(reader.newest_ns(from), None);
        }
    });
}

#[test]
fn memory_of_large_samples_is_used_again_and_outlives_its_reader() {
    const LEN: usize = 1_000_001;
    watched(|| {
        let (one, two) = (Process::new(72, 1), Process::new(72, 2));
        let (writer, reader) = (one.writer("large", LATE), two.reader("large", LATE));
        join_plainly(&one, &*writer, &two, &*reader);
        let exchange = |number| {
            send(&*writer, number, LEN);
            let sample = take(&*reader);
            assert_eq!(bytes(&sample), cdr(number, LEN));
            sample
        };
        let first = exchange(1);
        let address = bytes(&first).as_ptr();
        drop(first);
        let again = exchange(2);
        assert_eq!(bytes(&again).as_ptr(), address);
        let other = exchange(3);
        assert_ne!(bytes(&other).as_ptr(), address, "somebody holds it still");
        drop((writer, reader, one, two));
        assert_eq!(bytes(&again), cdr(2, LEN));
        drop(again);
        assert_eq!(bytes(&other), cdr(3, LEN));
    });
}

#[test]
fn a_foreign_reader_that_keeps_all_never_makes_busy_and_keeps_its_last() {
    watched(|| {
        let (one, two) = (Process::new(65, 1), Process::new(65, 2));
        let (writer, reader) = (one.writer("all", KEEP_ALL), two.reader("all", KEEP_ALL));
        join_plainly(&one, &*writer, &two, &*reader);
        (1..=100).for_each(|number| assert_eq!(send(&*writer, number, 1000), 1));
        wait_until(|| reader.displaced() == 90);
        for number in 91..=100 {
            assert_eq!(bytes(&take(&*reader)), cdr(number, 1000));
        }
        assert!(reader.take().unwrap().is_none());
    });
}

/// Matches without either end being told of the other.
fn match_silently(writing: &Process, writer: &dyn Writer, reader: &dyn Reader) {
    let to = reader.wire_name().unwrap();
    writing.until(|| (writer.connect_foreign(to).unwrap() == Connected::Now).then_some(()));
}

#[test]
fn samples_of_unknown_writers_are_held_for_a_while_and_counted() {
    watched(|| {
        let (one, two) = (Process::new(66, 1), Process::new(66, 2));
        let qos = Qos { history: History::KeepLast(1000), ..Qos::DEFAULT };
        let (writer, reader) = (one.writer("unknown", KEEP_ALL), two.reader("unknown", qos));
        match_silently(&one, &*writer, &*reader);
        (1..=100).for_each(|number| assert_eq!(send(&*writer, number, 100), 1));
        wait_until(|| two.figure("doubled_samples") == 36);
        assert_eq!(two.figure("doubled_bytes"), 3600);
        assert_eq!(send(&*writer, 101, 100_000), 1);
        wait_until(|| two.figure("doubled_samples") == 37);
        assert_eq!(two.figure("doubled_bytes"), 103_600);
        assert!(reader.take().unwrap().is_none());

        let from = writer.wire_name().unwrap();
        two.until(|| (reader.accept_foreign(from).unwrap() == Connected::Now).then_some(()));
        assert_eq!(send(&*writer, 102, 100_000), 1);
        for number in 37..=100 {
            let sample = take(&*reader);
            assert_eq!((bytes(&sample), sample.envelope.gid), (&*cdr(number, 100), from));
        }
        assert_eq!(bytes(&take(&*reader)), cdr(102, 100_000));
        assert_eq!((reader.displaced(), two.figure("doubled_samples")), (0, 37));

        // What is still held when the reader goes is nobody's either.
        reader.forget(from);
        assert_eq!(send(&*writer, 103, 100), 1);
        // It comes after the small one, so that one is held by then.
        assert_eq!(send(&*writer, 104, 100_000), 1);
        wait_until(|| two.figure("doubled_samples") == 38);
        drop(reader);
        assert_eq!(two.figure("doubled_samples"), 39);
    });
}

#[test]
fn a_late_joiner_gets_a_foreign_writers_history() {
    watched(|| {
        let (one, two) = (Process::new(67, 1), Process::new(67, 2));
        let qos = Qos { history: History::KeepLast(200), ..LATE };
        let writer = one.writer("late", qos);
        (1..=150).for_each(|number| assert_eq!(send(&*writer, number, 100_000), 0));
        let reader = two.reader("late", qos);
        // All is there before anybody is told.
        match_silently(&one, &*writer, &*reader);
        assert_eq!(send(&*writer, 151, 8), 1);
        assert!(reader.take().unwrap().is_none());
        reader.accept_foreign(writer.wire_name().unwrap()).unwrap();
        for number in 1..=150 {
            assert_eq!(bytes(&take(&*reader)), cdr(number, 100_000));
        }
        assert_eq!(take(&*reader).envelope.sequence, 151);
    });
}

#[test]
fn a_foreign_reader_that_goes_is_lost() {
    watched(|| {
        let (one, two) = (Process::new(68, 1), Process::new(68, 2));
        let (writer, reader) = (one.writer("lost", KEEP_ALL), two.reader("lost", Qos::DEFAULT));
        join_plainly(&one, &*writer, &two, &*reader);
        let name = reader.wire_name().unwrap();
        assert!(writer.lost().is_empty());
        drop(reader);
        let lost = one.until(|| Some(writer.lost()).filter(|lost| !lost.is_empty()));
        assert_eq!((lost, writer.readers()), (vec![name], 0));
        assert!(writer.lost().is_empty());
        assert_eq!(writer.connect_foreign(name).unwrap(), Connected::Later);
    });
}

#[test]
fn a_forked_child_of_a_wire_is_refused() {
    watched(|| {
        let (one, two) = (Process::new(69, 1), Process::new(69, 2));
        let (writer, reader) = (one.writer("forked", KEEP_ALL), one.reader("forked", LATE));
        let outlet = one.transport.open_outlet(&channel("o", Qos::DEFAULT)).unwrap();
        let inlet = one.transport.open_inlet(&channel("o", Qos::DEFAULT)).unwrap();
        two.transport.join().unwrap();
        one.find_participant();
        let mut all = Some((one, writer, reader, outlet, inlet));
        let child_is_right = in_child(&mut || {
            let Some((one, writer, reader, outlet, inlet)) = all.take() else { return false };
            let wire = one.transport.wire().unwrap();
            let spec = channel("o", Qos::DEFAULT);
            let errors = [
                wire.join().err(),
                wire.open_outlet(&spec).err(),
                wire.open_inlet(&spec).err(),
                outlet.write(&cdr(1, 8)).err(),
                inlet.take().err(),
                writer.connect_foreign(Gid([1; 16])).err(),
                reader.accept_foreign(Gid([1; 16])).err(),
            ];
            let is_closed =
                errors.iter().flatten().filter(|it| it.kind() == ErrorKind::Closed).count();
            let is_right = is_closed == errors.len() && wire.found().is_empty();
            drop((writer, reader, outlet, inlet, one));
            is_right
        });
        assert!(child_is_right);
        // The child has ended nothing of the parent's.
        let (one, writer, _reader, outlet, _inlet) = all.unwrap();
        let names = [writer.wire_name().unwrap(), outlet.name()];
        two.find(|found| match found {
            Found::Endpoint(it) if it.name == names[1] => Some(()),
            _ => None,
        });
        let reader = two.reader("forked", Qos::DEFAULT);
        join_plainly(&one, &*writer, &two, &*reader);
        assert_eq!(send(&*writer, 1, 8), 1);
        assert_eq!(bytes(&take(&*reader)), cdr(1, 8));
    });
}

/// What `body` answers in a forked child; false when the child panics or is killed.
fn in_child(body: &mut dyn FnMut() -> bool) -> bool {
    // SAFETY: `body` takes no lock that another thread of this test binary can hold but the allocator's.
    unsafe { tsuji_platform::fork::run_in_child(body) }
}

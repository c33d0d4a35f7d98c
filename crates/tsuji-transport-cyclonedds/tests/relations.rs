//! What samples relate to, and how endpoints are asked for, against a participant that announces itself as Fast DDS:
//! packets that this test writes and reads byte by byte (RTPS 2.5, 9.4), with a participant of Cyclone DDS beside it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::UdpSocket;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tsuji_core::{Qos, Reliability};
use tsuji_platform::memory::Backing;
use tsuji_transport::bell::{Bells, Cell};
use tsuji_transport::wire::Found;
use tsuji_transport::{
    Announced, Bytes, Connected, Endpoint, Envelope, Gid, Payload, PeerId, Reader, Sample,
    Transport, Writer,
};
use tsuji_transport_cyclonedds::{CycloneConfig, CycloneDds, EngineTransport};

/// A process of tsuji, or another on Cyclone DDS.
struct Process {
    transport: EngineTransport,
    bells: Arc<Bells>,
}

const OWN_READER: Gid = Gid([0xaa; 16]);

impl Process {
    fn new(domain: u32, number: u8) -> Self {
        let config = CycloneConfig::on_loopback(domain);
        let transport = CycloneDds::create(PeerId([number; 16]), &config).unwrap();
        Self { transport, bells: Bells::create(&Backing::Anonymous).unwrap() }
    }

    fn cell(&self) -> Arc<Cell> {
        Arc::new(self.bells.claim_cell().unwrap())
    }

    fn writer(&self, topic: &str) -> Arc<dyn Writer> {
        let endpoint = Endpoint { qos: Qos::DEFAULT, ..endpoint(topic, Gid([0xbb; 16])) };
        self.transport.open_writer(&endpoint, self.cell()).unwrap()
    }

    fn reader(&self, topic: &str) -> Arc<dyn Reader> {
        self.transport.open_reader(&endpoint(topic, OWN_READER), self.cell()).unwrap()
    }
}

const QOS: Qos = Qos { reliability: Reliability::BestEffort, ..Qos::DEFAULT };

fn endpoint(topic: &str, gid: Gid) -> Endpoint {
    let topic = on_wire(topic);
    let announced =
        Announced { topic: topic.clone(), type_name: TYPE.to_owned(), ..Announced::default() };
    let type_name = TYPE.to_owned();
    Endpoint { topic, type_name, gid, qos: QOS, keep_all_max: 10, announced: Some(announced) }
}

const TYPE: &str = "example::dds_::T_";

/// A topic of this process.
fn on_wire(topic: &str) -> String {
    format!("{topic}_{}", std::process::id())
}

/// The order of the numbers in a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u16(self, value: u16) -> [u8; 2] {
        if self == Self::Big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u32(self, value: u32) -> [u8; 4] {
        if self == Self::Big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn parameter(self, pid: u16, value: &[u8]) -> Vec<u8> {
        [&self.u16(pid), &self.u16(value.len() as u16), value].concat()
    }

    /// The value of a related sample identity.
    fn identity(self, name: Gid, high: u32, low: u32) -> Vec<u8> {
        [&name.0[..], &self.u32(high), &self.u32(low)].concat()
    }

    fn submessage(self, kind: u8, flags: u8, body: &[u8]) -> Vec<u8> {
        let flags = flags | u8::from(self == Self::Little);
        [&[kind, flags], &self.u16(body.len() as u16)[..], body].concat()
    }
}

const LITTLE: Order = Order::Little;
const STANDARD: u16 = 0x0083;
const CUSTOM: u16 = 0x800f;
const SENTINEL: u16 = 1;

/// A participant on nothing but a socket, which says that it is Fast DDS. Its writer is by best effort, its reader as it
/// is told.
struct Fake {
    socket: UdpSocket,
    prefix: [u8; 12],
    domain: u16,
    reads: Reliability,
    vendor: [u8; 2],
    /// What has come and was not taken.
    parts: RefCell<VecDeque<Part>>,
}

const WRITER: [u8; 4] = [0, 0, 1, 3];
const READER: [u8; 4] = [0, 0, 2, 4];
const FAST: [u8; 2] = [1, 0x0f];
const OPEN: [u8; 2] = [1, 0x03];

impl Fake {
    fn new(domain: u16, reads: Reliability) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        // Unlike that of Fast DDS it does not begin with the vendor.
        let mut prefix = *b"\x0b\x0cfake\0\0\0\0\0\0";
        prefix[6..10].copy_from_slice(&std::process::id().to_ne_bytes());
        prefix[10] = domain as u8;
        let vendor = FAST;
        Self { socket, prefix, domain, reads, vendor, parts: RefCell::default() }
    }

    fn guid(&self, entity: [u8; 4]) -> Gid {
        Gid([&self.prefix[..], &entity].concat().try_into().unwrap())
    }

    /// Sends a message to where the first participants of this host listen.
    fn send(&self, submessages: &[Vec<u8>]) {
        let header = [&b"RTPS\x02\x03"[..], &self.vendor, &self.prefix].concat();
        let message = [header, submessages.concat()].concat();
        for index in 0..8 {
            // One port is for discovery, the next for samples.
            for of in [10, 11] {
                let port = 7400 + 250 * self.domain + of + 2 * index;
                // Nobody may listen there.
                let _ = self.socket.send_to(&message, ("127.0.0.1", port));
            }
        }
    }

    /// Says that it is there with its writer and its reader of a topic.
    fn announce(&self, topic: &str) {
        let at = self.socket.local_addr().unwrap().port();
        let locator =
            [&1u32.to_le_bytes()[..], &u32::from(at).to_le_bytes(), &[0; 12], &[127, 0, 0, 1]];
        let locator = locator.concat();
        let list = |parameters: &[(u16, &[u8])]| {
            let each = parameters.iter().map(|(pid, value)| LITTLE.parameter(*pid, value));
            [vec![0, 3, 0, 0], each.collect::<Vec<_>>().concat(), vec![1, 0, 0, 0]].concat()
        };
        let participant = list(&[
            (0x15, &[2, 3, 0, 0]),
            (0x16, &[self.vendor[0], self.vendor[1], 0, 0]),
            (0x50, &self.guid([0, 0, 1, 0xc1]).0),
            (0x58, &0x3fu32.to_le_bytes()),
            (0x32, &locator),
            (0x31, &locator),
            (0x02, &[100, 0, 0, 0, 0, 0, 0, 0]),
        ]);
        let text = |text: &str| {
            let mut bytes =
                [&(text.len() as u32 + 1).to_le_bytes(), text.as_bytes(), &[0]].concat();
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let end = |entity| {
            let is_reliable = entity == READER && self.reads == Reliability::Reliable;
            let kind = if is_reliable { 2u32 } else { 1 };
            let reliability = [&kind.to_le_bytes()[..], &[0; 8]].concat();
            let guid = self.guid(entity).0;
            let (topic, ty) = (text(&on_wire(topic)), text(TYPE));
            list(&[(0x05, &topic), (0x07, &ty), (0x5a, &guid), (0x1a, &reliability)])
        };
        let data = |writer: u8, payload: &[u8]| {
            let ids = [0, if writer == 1 { 1 } else { 0 }, if writer == 1 { 0 } else { writer }];
            let (to, from) = ([&ids[..], &[0xc7]].concat(), [&ids[..], &[0xc2]].concat());
            let fields = [&[0, 0, 16, 0][..], &to, &from, &0u32.to_le_bytes(), &1u32.to_le_bytes()];
            LITTLE.submessage(0x15, 4, &[&fields.concat()[..], payload].concat())
        };
        self.send(&[data(1, &participant)]);
        self.send(&[data(3, &end(WRITER))]);
        self.send(&[data(4, &end(READER))]);
    }

    /// Asks a writer for a sample again, or for the second fragment of it.
    fn ask_again(&self, writer: Gid, number: u32, is_fragment: bool, count: u32) {
        let to = LITTLE.submessage(0x0e, 0, &writer.0[..12]);
        let ids = [&READER[..], &writer.0[12..]].concat();
        let number = [LITTLE.u32(0), LITTLE.u32(number)].concat();
        let only = [LITTLE.u32(1), LITTLE.u32(1 << 31), LITTLE.u32(count)].concat();
        let ask = match is_fragment {
            true => {
                LITTLE.submessage(0x12, 0, &[&ids[..], &number, &LITTLE.u32(2), &only].concat())
            }
            false => LITTLE.submessage(0x06, 2, &[&ids[..], &number, &only].concat()),
        };
        self.send(&[to, ask]);
    }

    /// Writes a sample with this inline QoS, if any, in fragments of so many bytes if that is said.
    fn write(
        &self,
        order: Order,
        number: u32,
        qos: Option<&[u8]>,
        data: &[u8],
        part: Option<usize>,
    ) {
        let flags = if qos.is_some() { 2 } else { 0 };
        let ids = |to_qos| {
            let number = [order.u32(0), order.u32(number)].concat();
            let ids = [[0; 4], WRITER].concat();
            [&[0, 0][..], &order.u16(to_qos), &ids, &number].concat()
        };
        let qos = qos.unwrap_or_default();
        let Some(part) = part else {
            let body = [&ids(16), qos, data].concat();
            return self.send(&[order.submessage(0x15, flags | 4, &body)]);
        };
        for (at, payload) in data.chunks(part).enumerate() {
            let start = order.u32(at as u32 + 1);
            let sizes = [order.u16(1), order.u16(part as u16)].concat();
            let body = [&ids(28), &start[..], &sizes, &order.u32(data.len() as u32), qos, payload];
            self.send(&[order.submessage(0x16, flags, &body.concat())]);
        }
    }

    /// The next sample of this writer, with what each part of it says beside it.
    fn take(&self, writer: Gid) -> (Vec<Option<Vec<u8>>>, Vec<u8>) {
        let (mut said, mut sample, mut missing) = (Vec::new(), Vec::new(), usize::MAX);
        while missing != 0 {
            let part = self.take_part(writer);
            if missing == usize::MAX {
                (missing, sample) = (part.size, vec![0; part.size]);
            }
            said.push(part.identity);
            let len = part.payload.len();
            sample[part.offset..part.offset + len].copy_from_slice(&part.payload);
            missing -= len;
        }
        (said, sample)
    }

    fn take_part(&self, writer: Gid) -> Part {
        loop {
            if let Some(part) = self.take_part_soon(writer) {
                return part;
            }
        }
    }

    /// The number at which the next acknowledgement begins that is for this writer, which has said nothing yet.
    fn asked_from(&self, writer: [u8; 4]) -> Option<u64> {
        let mut packet = [0; 1 << 16];
        loop {
            let len = self.socket.recv(&mut packet).ok()?;
            for (kind, _, body) in submessages(&packet[..len]) {
                if kind == 0x06 && body[4..8] == writer {
                    let high = u32::from_le_bytes(body[8..12].try_into().unwrap());
                    let low = u32::from_le_bytes(body[12..16].try_into().unwrap());
                    return Some(u64::from(high) << 32 | u64::from(low));
                }
            }
        }
    }

    /// The next DATA or DATA_FRAG of this writer, if there is one soon.
    fn take_part_soon(&self, writer: Gid) -> Option<Part> {
        let mut packet = [0; 1 << 16];
        loop {
            let mut parts = self.parts.borrow_mut();
            if let Some(part) = parts.pop_front() {
                return Some(part);
            }
            let len = self.socket.recv(&mut packet).ok()?;
            if packet[8..20] != writer.0[..12] {
                continue;
            }
            for (kind, flags, body) in submessages(&packet[..len]) {
                if [0x15, 0x16].contains(&kind) && body[8..12] == writer.0[12..] {
                    parts.push_back(Part::read(kind, flags, body));
                }
            }
        }
    }
}

/// What is in a packet, all of it little-endian: each with its kind and flags.
fn submessages(packet: &[u8]) -> impl Iterator<Item = (u8, u8, &[u8])> {
    let mut rest = packet.get(20..).unwrap_or_default();
    std::iter::from_fn(move || {
        let [kind, flags, low, high, body @ ..] = rest else { return None };
        let size = usize::from(u16::from_le_bytes([*low, *high]));
        let (body, behind) = body.split_at(if size == 0 { body.len() } else { size });
        rest = behind;
        Some((*kind, *flags, body))
    })
}

/// A sample, or some fragments of it.
struct Part {
    identity: Option<Vec<u8>>,
    /// Of the whole sample.
    size: usize,
    offset: usize,
    payload: Vec<u8>,
}

impl Part {
    fn read(kind: u8, flags: u8, body: &[u8]) -> Self {
        let u16_at = |at: usize| usize::from(u16::from_le_bytes([body[at], body[at + 1]]));
        let u32_at = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap()) as usize;
        let (mut at, mut identity, mut custom) = (4 + u16_at(2), None, None);
        let mut is_in_qos = flags & 2 != 0;
        while is_in_qos {
            let (pid, end) = (u16_at(at), at + 4 + u16_at(at + 2));
            if pid == usize::from(STANDARD) {
                identity = Some(body[at + 4..end].to_vec());
            }
            if pid == usize::from(CUSTOM) {
                custom = Some(body[at + 4..end].to_vec());
            }
            (at, is_in_qos) = (end, pid != usize::from(SENTINEL));
        }
        assert_eq!(identity, custom, "Fast DDS before 2.14 reads one, and later ones the other");
        let (offset, size) = match kind {
            0x15 => (0, body.len() - at),
            _ => ((u32_at(20) - 1) * u16_at(26), u32_at(28)),
        };
        let payload = &body[at..];
        let payload = payload[..payload.len().min(size - offset)].to_vec();
        Self { identity, size, offset, payload }
    }
}

/// Waits for what no descriptor announces, doing `again` as long as it is not so.
fn wait_until(mut again: impl FnMut(), mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        again();
        thread::sleep(Duration::from_millis(20));
    }
}

fn take(reader: &dyn Reader) -> Sample {
    let mut taken = None;
    wait_until(
        || (),
        || {
            taken = reader.take().unwrap();
            taken.is_some()
        },
    );
    taken.unwrap()
}

fn bytes(sample: &Sample) -> &[u8] {
    let Payload::Bytes(bytes) = &sample.payload else { panic!("a typed value") };
    bytes
}

fn cdr(len: usize) -> Vec<u8> {
    let body = (4..len).map(|at| (at % 251) as u8);
    [0, 1, 0, 0].into_iter().chain(body).collect()
}

/// Sends a request or reply of so many bytes.
fn send(writer: &dyn Writer, len: usize, related: Option<(Gid, u64)>, header: Option<[u8; 16]>) {
    let envelope = Envelope { wall_ns: 5, related, header, ..Envelope::default() };
    writer.send(&envelope, &Payload::Bytes(Bytes::copy_from(&cdr(len)))).unwrap();
}

#[test]
fn what_comes_beside_a_sample_is_read() {
    let (here, fake) = (Process::new(81, 1), Fake::new(81, Reliability::BestEffort));
    let reader = here.reader("r");
    let from = fake.guid(WRITER);
    wait_until(|| fake.announce("r"), || reader.accept_foreign(from).unwrap() == Connected::Now);
    let found = here.transport.wire().unwrap().found();
    let vendors = found.iter().filter_map(|it| match it {
        Found::Participant(it) if it.name == fake.guid([0, 0, 1, 0xc1]) => Some(it.vendor),
        _ => None,
    });
    assert_eq!(vendors.collect::<Vec<_>>(), [[1, 0x0f]]);
    let mut number = 0;
    let mut check = |order: Order, qos: Option<&[u8]>, part: Option<usize>, expect: (Gid, u64)| {
        number += 1;
        let data = cdr(if part.is_some() { 5000 } else { 24 });
        fake.write(order, number, qos, &data, part);
        let sample = take(&*reader);
        assert_eq!(sample.envelope.related, Some(expect), "sample {number}");
        assert_eq!(bytes(&sample), data);
        number
    };
    let other = Gid([7; 16]);
    let list = |order: Order, parameters: &[(u16, Vec<u8>)]| {
        let each = parameters.iter().map(|(pid, value)| order.parameter(*pid, value));
        [each.collect::<Vec<_>>().concat(), order.parameter(SENTINEL, &[])].concat()
    };
    for order in [Order::Little, Order::Big] {
        let whole = order.identity(other, 1, 2);
        for pid in [STANDARD, CUSTOM] {
            let said = list(order, &[(0x71, vec![0; 4]), (pid, whole.clone())]);
            check(order, Some(&said), None, (other, (1 << 32) + 2));
            // In each fragment, as Fast DDS does it.
            check(order, Some(&said), Some(1024), (other, (1 << 32) + 2));
        }
        // A request that says who takes the reply.
        let client = list(order, &[(STANDARD, order.identity(other, u32::MAX, 0))]);
        check(order, Some(&client), None, (other, 5 + if order == LITTLE { 0 } else { 10 }));
        // What is not there, or too short, is not said.
        let next = if order == LITTLE { 6 } else { 16 };
        check(order, None, None, (from, next));
        check(order, Some(&list(order, &[])), None, (from, next + 1));
        check(
            order,
            Some(&list(order, &[(STANDARD, whole[..20].to_vec())])),
            None,
            (from, next + 2),
        );
        check(order, Some(&list(order, &[(0x8010, whole)])), Some(1024), (from, next + 3));
        check(order, None, Some(1024), (from, next + 4));
    }

    // One on Cyclone DDS has it in the payload, where nobody looks here.
    let there = Process::new(81, 2);
    let writer = there.writer("r");
    let (name, own) = (writer.wire_name().unwrap(), reader.wire_name().unwrap());
    wait_until(|| (), || reader.accept_foreign(name).unwrap() == Connected::Now);
    wait_until(|| (), || writer.connect_foreign(own).unwrap() == Connected::Now);
    send(&*writer, 24, Some((other, 3)), Some([9; 16]));
    let sample = take(&*reader);
    assert_eq!(sample.envelope.related, None);
    assert_eq!(bytes(&sample), [&cdr(24)[..4], &[9; 16], &cdr(24)[4..]].concat());
}

#[test]
fn each_reader_gets_the_form_of_its_vendor() {
    let (here, fake) = (Process::new(82, 1), Fake::new(82, Reliability::BestEffort));
    let (writer, own) = (here.writer("w"), here.reader("replies"));
    let (from, to) = (writer.wire_name().unwrap(), fake.guid(READER));
    wait_until(|| fake.announce("w"), || writer.connect_foreign(to).unwrap() == Connected::Now);
    let other = Gid([7; 16]);
    let reply = Some((other, (3 << 32) + 4));
    let said = Some(LITTLE.identity(other, 3, 4));
    // Whoever asks says where the reply is to go, by the wire's name.
    let asked = Some(LITTLE.identity(own.wire_name().unwrap(), u32::MAX, 0));
    let taken = |len: usize, expect: &Option<Vec<u8>>| {
        let (said, data) = fake.take(from);
        assert!(said.iter().all(|it| it == expect), "{said:?}");
        // A sample in one part is rounded up to four bytes, and says so.
        let whole = if said.len() == 1 { len.next_multiple_of(4) } else { len };
        assert_eq!(data.len(), whole);
        assert!(data[4..len] == cdr(len)[4..], "{len} bytes");
        said.len()
    };
    let check = |len: usize| {
        send(&*writer, len, reply, Some([9; 16]));
        let parts = taken(len, &said);
        send(&*writer, len, Some((OWN_READER, 0)), Some([9; 16]));
        taken(len, &asked);
        // Nobody who takes the reply is known: it goes all the same.
        send(&*writer, len, Some((Gid([1; 16]), 0)), Some([9; 16]));
        taken(len, &None);
        // What relates to nothing.
        send(&*writer, len, None, None);
        taken(len, &None);
        parts
    };
    assert_eq!(check(24), 1);
    assert!(1 < check(100_001));

    // With a reader beside it that looks into the payload.
    let there = Process::new(82, 2);
    let reader = there.reader("w");
    let name = reader.wire_name().unwrap();
    wait_until(|| (), || reader.accept_foreign(from).unwrap() == Connected::Now);
    wait_until(|| (), || writer.connect_foreign(name).unwrap() == Connected::Now);
    for len in [24, 25, 1300, 100_001] {
        check_both(&*writer, &*reader, len, || {
            taken(len, &said);
        });
    }
}

fn check_both(writer: &dyn Writer, reader: &dyn Reader, len: usize, taken: impl Fn()) {
    let header = *b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10";
    send(writer, len, Some((Gid([7; 16]), (3 << 32) + 4)), Some(header));
    taken();
    let sample = take(reader);
    assert_eq!(sample.envelope.related, None);
    let plain = cdr(len);
    assert!(bytes(&sample) == [&plain[..4], &header, &plain[4..]].concat(), "{len} bytes");
}

/// Two readers ask for the same again, each of whom gets its form.
#[test]
fn what_is_sent_again_has_the_form_of_who_asks() {
    let (here, fake) = (Process::new(83, 1), Fake::new(83, Reliability::Reliable));
    let writer = here.writer("a");
    let (from, to) = (writer.wire_name().unwrap(), fake.guid(READER));
    wait_until(|| fake.announce("a"), || writer.connect_foreign(to).unwrap() == Connected::Now);
    let there = Process::new(83, 2);
    let reader = there.reader("a");
    let name = reader.wire_name().unwrap();
    wait_until(|| (), || reader.accept_foreign(from).unwrap() == Connected::Now);
    wait_until(|| (), || writer.connect_foreign(name).unwrap() == Connected::Now);
    let said = Some(LITTLE.identity(Gid([7; 16]), 3, 4));
    for (number, len) in (1..).zip([24, 100_001]) {
        check_both(&*writer, &*reader, len, || drop(fake.take(from)));
        let mut count = number * 1000;
        let mut again = |is_fragment| {
            // What is asked for at once after it was sent is taken for a repetition.
            let mut part = None;
            while part.is_none() {
                count += 1;
                fake.ask_again(from, number, is_fragment, count);
                part = fake.take_part_soon(from);
            }
            part.unwrap()
        };
        let part = again(false);
        let whole = if len == 24 { len } else { part.payload.len() };
        assert_eq!((&part.identity, part.offset), (&said, 0));
        // The encapsulation header says how much is padding.
        assert!(part.payload[4..] == cdr(len)[4..whole], "sample {number}");
        if len != 24 {
            let part = again(true);
            assert_eq!((&part.identity, part.size), (&said, len));
            let end = part.offset + part.payload.len();
            assert!(0 < part.offset && part.payload == cdr(len)[part.offset..end]);
        }
    }
}

/// Fast DDS answers at once to who asks from 0, and later to others (`changes.rs`).
#[test]
fn who_is_new_is_asked_at_once_for_its_endpoints() {
    let check = |domain: u16, vendor, expect| {
        let here = Process::new(domain.into(), 1);
        let _reader = here.reader("q");
        let fake = Fake { vendor, ..Fake::new(domain, Reliability::BestEffort) };
        let mut asked = None;
        wait_until(
            || fake.announce("q"),
            || {
                asked = fake.asked_from([0, 0, 3, 0xc2]);
                asked.is_some()
            },
        );
        assert_eq!(asked, Some(expect), "{vendor:?}");
    };
    check(84, FAST, 0);
    check(85, OPEN, 1);
}

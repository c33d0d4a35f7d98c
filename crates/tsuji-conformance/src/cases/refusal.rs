//! What is not declared, not possible or not sane is refused, and harms nothing.

use std::any::Any;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};

use tsuji_platform::memory::{Backing, Segment};
use tsuji_transport::{
    Address, Bytes, ErrorKind, Handshake, Loan, Payload, PeerId, Reader, Writer,
};

use crate::payload::Words;
use crate::world::{Keep, Process, World, name, refused};

/// Samples larger than this are not made to see them accepted or refused.
const TRIED_BYTES_MAX: u64 = 512 << 20;

/// A typed value arrives as the very same value, and is dropped when nobody holds it any more;
/// or it is refused where `typed` is not declared.
pub fn typed_is_carried_or_refused(world: World) {
    let (writer, reader) = world.pair("typed", Keep::Last(2));
    let value: Arc<dyn Any + Send + Sync> = Arc::new("a value".to_owned());
    let payload = Payload::Typed(Arc::clone(&value));
    if !world.capability().typed {
        refused(writer.writer.send(&writer.envelope(), &payload), ErrorKind::Unsupported);
        let sent = writer.writer.send_to(reader.gid, &writer.envelope(), &payload);
        refused(sent, ErrorKind::Unsupported);
        assert_eq!(Arc::strong_count(&value), 2);
        writer.send(10);
        assert_eq!(reader.numbers(), [1]);
        return;
    }
    let other = world.reader("typed", Keep::All(10));
    writer.connect(&other);
    for _ in 0..5 {
        writer.writer.send(&writer.envelope(), &payload).unwrap();
    }
    writer.writer.send_to(other.gid, &writer.envelope(), &payload).unwrap();
    for (reader, count) in [(&reader, 2), (&other, 6)] {
        for _ in 0..count {
            let sample = reader.reader.take().unwrap().unwrap();
            let Payload::Typed(arrived) = sample.payload else { panic!("bytes arrived") };
            assert!(Arc::ptr_eq(&value, &arrived), "a copy arrived");
            assert!(arrived.is::<String>());
        }
    }
    assert_eq!(Arc::strong_count(&value), 2);
    for _ in 0..5 {
        writer.writer.send(&writer.envelope(), &payload).unwrap();
    }
    drop((reader, other));
    drop((payload, writer));
    assert_eq!(Arc::strong_count(&value), 1);
}

/// A typed value whose destructor calls the transport hangs nobody.
pub fn a_typed_value_may_do_anything_when_dropped(world: World) {
    /// Calls both ends when it is dropped.
    struct Caller(Arc<dyn Writer>, Option<Arc<dyn Reader>>);
    impl Drop for Caller {
        fn drop(&mut self) {
            self.0.readers();
            self.0.cancel();
            if let Some(reader) = &self.1 {
                reader.displaced();
                drop(reader.take());
            }
        }
    }
    let (writer, reader) = world.pair("caller", Keep::Last(1));
    let ends = Mutex::new((Arc::clone(&writer.writer), Some(Arc::clone(&reader.reader))));
    let send = || {
        let ends = ends.lock().unwrap();
        let payload = Payload::Typed(Arc::new(Caller(Arc::clone(&ends.0), ends.1.clone())));
        let envelope = writer.envelope();
        writer.writer.send(&envelope, &payload)
    };
    if !world.capability().typed {
        refused(send(), ErrorKind::Unsupported);
        return;
    }
    // Pushed out while the writer sends, taken, and left in a reader that is dropped.
    for _ in 0..5 {
        send().unwrap();
    }
    drop(reader.reader.take().unwrap());
    // A value that holds its own reader would keep it for ever.
    ends.lock().unwrap().1 = None;
    for _ in 0..2 {
        send().unwrap();
    }
    drop(reader);
}

/// Memory is lent, or asking for it is refused where `loan` is not declared.
pub fn a_loan_is_lent_or_refused(world: World) {
    let writer = world.writer("lends");
    for len in [0, 1, 100_000] {
        match world.capability().loan {
            true => assert_eq!(writer.writer.loan(len).unwrap().len(), len),
            false => refused(writer.writer.loan(len), ErrorKind::Unsupported),
        }
    }
}

/// A sample above the declared size is refused wherever it is announced; one of just that size is
/// accepted.
pub fn too_large_is_refused(world: World) {
    let (writer, reader) = world.pair("large", Keep::Last(1));
    let max = world.capability().sample_bytes_max;
    for len in [usize::try_from(max + 1).unwrap(), usize::MAX / 2, usize::MAX] {
        let kind =
            if world.capability().loan { ErrorKind::TooLarge } else { ErrorKind::Unsupported };
        refused(writer.writer.loan(len), kind);
        refused(writer.writer.reserve(len), ErrorKind::TooLarge);
    }
    if max < TRIED_BYTES_MAX {
        let payload = |len: u64| Payload::Bytes(Loan::on_heap(len as usize).freeze());
        let too_large = payload(max + 1);
        let envelope = writer.envelope();
        refused(writer.writer.send(&envelope, &too_large), ErrorKind::TooLarge);
        let kind =
            if world.capability().directed { ErrorKind::TooLarge } else { ErrorKind::Unsupported };
        refused(writer.writer.send_to(reader.gid, &envelope, &too_large), kind);
        drop(too_large);
        assert!(reader.take().is_none());
        writer.send(usize::try_from(max).unwrap());
        let sample = reader.take().unwrap();
        assert_eq!(sample.payload.byte_len(), usize::try_from(max).ok());
    }
    writer.send(100);
    assert_eq!(reader.numbers(), [writer.sent()]);
}

/// Addresses that nobody gave are refused, and existing flows go on.
pub fn garbage_addresses_are_refused(world: World) {
    let (writer, reader) = world.pair("addresses", Keep::All(4));
    let other = world.reader("addresses", Keep::All(4));
    let address = other.reader.accept(world.one().id, writer.gid).unwrap();
    let mut words = Words(11);
    let mut garbage: Vec<Vec<u8>> = vec![vec![], vec![0xff; 1 << 20], random(&mut words, 1 << 20)];
    garbage.extend((0..address.bytes.len()).map(|len| address.bytes[..len].to_vec()));
    garbage.push([&*address.bytes, &[0]].concat());
    for round in 0..1000 {
        garbage.push(random(&mut words, round % 80));
        garbage.push(random(&mut words, address.bytes.len()));
    }
    for bytes in garbage {
        assert_refused_address(&*writer.writer, &Address { bytes, ..address.clone() });
    }
    if !world.is_shared() {
        let unknown = PeerId(name());
        assert_refused_address(&*writer.writer, &Address { peer: unknown, ..address.clone() });
        assert!(other.reader.accept(unknown, writer.gid).is_err(), "accepted an unknown_peer");
    }
    assert_eq!((writer.writer.readers(), writer.send(10).readers), (1, 1));
    writer.writer.connect(&address).unwrap();
    writer.send(10);
    assert_eq!((reader.numbers(), other.numbers()), (vec![1, 2], vec![2]));
}

/// An address outlives its reader, and is then worth nothing.
pub fn a_address_of_a_dropped_reader_is_refused(world: World) {
    let writer = world.writer("late");
    let reader = world.reader("late", Keep::All(4));
    let address = reader.reader.accept(world.one().id, writer.gid).unwrap();
    drop(reader);
    // Somebody else may have its place by now.
    let next = world.reader("late", Keep::All(4));
    assert_refused_address(&*writer.writer, &address);
    writer.send(10);
    assert!(next.take().is_none());
}

/// A handshake that is not one is refused; the process that it came from may still handshake properly.
///
/// A transport that serves everybody introduces nobody; there it only must not mind.
pub fn garbage_handshakes_are_refused(world: World) {
    let (writer, reader) = world.pair("greeted", Keep::All(4));
    let (two, unknown_peer) = (world.two(), world.unknown_peer());
    let real = || unknown_peer.transport.handshake(two.id).unwrap();
    let mut words = Words(12);
    let (len, count) = (real().bytes.len(), real().fds.len());
    let mut garbage = vec![
        Handshake::default(),
        Handshake { bytes: random(&mut words, 1 << 20), fds: vec![] },
        Handshake { bytes: random(&mut words, len), fds: real().fds },
        Handshake { bytes: vec![0; len + 1], fds: real().fds },
    ];
    garbage.extend((0..len).map(|short| {
        let real = real();
        Handshake { bytes: real.bytes[..short].to_vec(), fds: real.fds }
    }));
    if 0 < count {
        let wrong: &[&dyn Fn() -> OwnedFd] = &[
            &|| File::open("/dev/null").unwrap().into(),
            &|| File::options().read(true).write(true).open("/dev/zero").unwrap().into(),
            &|| File::open("/").unwrap().into(),
            &|| std::io::pipe().unwrap().0.into(),
            &|| memory(0),
            &|| memory(1),
        ];
        for fd in wrong {
            garbage.push(Handshake { fds: (0..count).map(|_| fd()).collect(), ..real() });
            for at in 0..count {
                let mut handshake = real();
                handshake.fds[at] = fd();
                garbage.push(handshake);
            }
        }
        garbage.push(Handshake { fds: (0..count).map(|_| memory(1 << 22)).collect(), ..real() });
        garbage.extend((0..count).map(|few| {
            let mut handshake = real();
            handshake.fds.truncate(few);
            handshake
        }));
    }
    for (number, handshake) in garbage.into_iter().enumerate() {
        let shown = format!("{number}: {} bytes, {:?}", handshake.bytes.len(), handshake.fds);
        let met = two.transport.meet(unknown_peer.id, handshake);
        assert!(world.is_shared() || met.is_err(), "garbage handshake {shown} was accepted");
    }
    unknown_peer.meet(two);
    assert_flows(&unknown_peer, two);
    writer.send(10);
    assert_eq!(reader.numbers(), [1]);
}

/// An answer that does not prove anything is refused.
pub fn garbage_answers_are_refused(world: World) {
    let two = world.two();
    let mut words = Words(13);
    for round in 0..20 {
        let unknown_peer = world.unknown_peer();
        let handshake = two.transport.handshake(unknown_peer.id).unwrap();
        let answer = unknown_peer.transport.meet(two.id, handshake).unwrap();
        let garbage = match round {
            0 => vec![],
            1 => random(&mut words, 1 << 20),
            2 => answer[..answer.len().saturating_sub(1)].to_vec(),
            3 => [&*answer, &[0]].concat(),
            _ => random(&mut words, answer.len()),
        };
        let confirmed = two.transport.confirm(unknown_peer.id, &garbage);
        assert!(world.is_shared() || confirmed.is_err(), "garbage answer {round} was accepted");
        let unknown = two.transport.confirm(PeerId(name()), &answer);
        assert!(world.is_shared() || unknown.is_err(), "somebody unknown was confirmed");
        two.transport.part(unknown_peer.id);
    }
    assert_flows(world.one(), two);
}

fn memory(bytes: u64) -> OwnedFd {
    let segment = Segment::create("tsuji-test", &Backing::Anonymous).unwrap();
    if 0 < bytes {
        segment.reserve(0, bytes).unwrap();
    }
    segment.as_fd().try_clone_to_owned().unwrap()
}

fn random(words: &mut Words, len: usize) -> Vec<u8> {
    (0..len).map(|_| words.next() as u8).collect()
}

#[track_caller]
fn assert_refused_address(writer: &dyn Writer, address: &Address) {
    match writer.connect(address) {
        Ok(_) => panic!("connected by {} bytes of garbage", address.bytes.len()),
        Err(error) => {
            let expected = matches!(error.kind(), ErrorKind::Closed | ErrorKind::Invalid);
            assert!(expected, "{error}");
        }
    }
}

#[track_caller]
fn assert_flows(from: &Arc<Process>, to: &Arc<Process>) {
    let (writer, reader) = (from.writer("flows"), to.reader("flows", Keep::All(2)));
    writer.connect(&reader);
    writer.send(70_000);
    let bytes: Option<Bytes> = reader.take().map(|it| crate::payload::bytes(&it).clone());
    assert_eq!(bytes.unwrap().len(), 70_000);
}

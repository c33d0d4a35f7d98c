//! Samples arrive as they were sent, once, in order, where they should.

use std::collections::HashMap;

use tsuji_core::Scope;
use tsuji_transport::{Encoding, Envelope, ErrorKind, Gid, LEAD, Payload, Sent};

use crate::payload::{self, bytes, is_pattern};
use crate::world::{Keep, World, refused, wait};

const SIZES: &[usize] = &[
    0,
    1,
    7,
    63,
    64,
    65,
    4095,
    4096,
    4097,
    65_535,
    65_537,
    1 << 20,
    (8 << 20) - 1,
    8 << 20,
    (8 << 20) + 1,
];

/// Bytes of every size arrive unchanged, copied or lent.
pub fn bytes_arrive_unchanged(world: World) {
    let (writer, reader) = world.pair("sizes", Keep::All(2));
    for &len in SIZES {
        let len = writer.carried(len);
        assert_eq!(writer.send(len), Sent { readers: 1, displaced: 0 });
        if world.capability().loan {
            writer.try_send_loan(len).unwrap();
        }
        let mut arrived = 0;
        while let Some(sample) = reader.take() {
            let bytes = bytes(&sample);
            assert_eq!(bytes.len(), len);
            let is_aligned = bytes.as_ptr().addr() % 16 == LEAD;
            assert!(!world.capability().loan || is_aligned, "{len} bytes at {:p}", bytes.as_ptr());
            arrived += 1;
        }
        assert_eq!(arrived, 1 + u64::from(world.capability().loan), "{len} bytes");
    }
    assert_eq!(reader.reader.displaced(), 0);
}

/// Every field of the envelope arrives as it was sent; or, where not all of it does, who sent it,
/// its number and its time.
pub fn the_envelope_arrives_unchanged(world: World) {
    let (writer, reader) = world.pair("envelopes", Keep::All(1));
    if !world.capability().whole_envelope {
        for (sequence, wall_ns) in (7..).zip([1, 999_999_999, 1_700_000_000_123_456_789]) {
            let envelope = Envelope { sequence, wall_ns, ..writer.envelope() };
            writer.writer.send(&envelope, &payload::payload(1, 24)).unwrap();
            let arrived = reader.reader.take().unwrap().unwrap().envelope;
            let Envelope { wall_ns: told_ns, arrived_ns, .. } = arrived;
            let expect = Envelope { wall_ns: told_ns, arrived_ns, ..envelope };
            assert_eq!(arrived, expect);
            // Some clocks on the wire count in fractions that are no whole nanoseconds.
            assert!(arrived.wall_ns.abs_diff(wall_ns) <= 1, "{} for {wall_ns}", arrived.wall_ns);
        }
        let opaque = Envelope { encoding: Encoding::Opaque, ..writer.envelope() };
        let sent = writer.writer.send(&opaque, &payload::payload(1, 24));
        return refused(sent, ErrorKind::Invalid);
    }
    let odd = Envelope {
        gid: Gid(*b"\x00\xff23456789 bcdef"),
        sequence: u64::MAX,
        wall_ns: i64::MIN,
        mono_ns: u64::MAX - 1,
        arrived_ns: 0,
        encoding: Encoding::Opaque,
        related: Some((Gid([0xff; 16]), u64::MAX - 2)),
        header: None,
    };
    let envelopes = [
        Envelope::default(),
        odd,
        Envelope { related: None, ..odd },
        Envelope { related: Some((Gid::default(), 0)), ..odd },
        Envelope { sequence: 0, wall_ns: i64::MAX, mono_ns: 0, ..odd },
        Envelope { encoding: Encoding::Cdr1, wall_ns: -1, ..odd },
    ];
    for envelope in envelopes {
        writer.writer.send(&envelope, &payload::payload(1, 24)).unwrap();
        assert_eq!(reader.reader.take().unwrap().unwrap().envelope, envelope);
        writer.writer.send_to(reader.gid, &envelope, &payload::payload(1, 24)).unwrap();
        assert_eq!(reader.reader.take().unwrap().unwrap().envelope, envelope);
    }
}

/// What was passed to a send can be sent again, changed in its envelope, and dropped.
pub fn the_sender_may_reuse_what_it_sent(world: World) {
    let (writer, reader) = world.pair("reuse", Keep::All(8));
    let payload = payload::payload(5, 1000);
    for sequence in 1..=4 {
        let envelope = Envelope { sequence, ..writer.envelope() };
        writer.writer.send(&envelope, &payload).unwrap();
    }
    drop(payload);
    for sequence in 1..=4 {
        let sample = reader.reader.take().unwrap().unwrap();
        assert_eq!(sample.envelope.sequence, sequence);
        assert!(is_pattern(bytes(&sample), 5));
    }
}

/// A reader in another thread gets all of a fast writer's samples, which waits for room.
pub fn ten_thousand_samples_arrive_once_and_in_order(world: World) {
    const SAMPLES: u64 = 10_000;
    let (writer, reader) = world.pair("order", Keep::All(16));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let bell = reader.bell();
            for sequence in 1..=SAMPLES {
                assert_eq!(reader.take_when_there_is_one(&bell).envelope.sequence, sequence);
            }
            assert!(reader.take().is_none());
        });
        let bell = writer.bell();
        for sequence in 1..=SAMPLES {
            let sent = writer.send_when_there_is_room(&bell, (sequence % 300) as usize);
            assert_eq!(sent, Sent { readers: 1, displaced: 0 });
        }
    });
    assert_eq!(reader.reader.displaced(), 0);
}

/// Writers in threads of their own share a reader; each writer's samples come in its order.
pub fn several_writers_keep_their_own_order(world: World) {
    const SAMPLES: u64 = 2000;
    let reader = world.reader("several", Keep::All(8));
    let writers: Vec<_> = (0..4).map(|_| world.writer("several")).collect();
    writers.iter().for_each(|writer| writer.connect(&reader));
    std::thread::scope(|scope| {
        for writer in &writers {
            scope.spawn(|| {
                let bell = writer.bell();
                for _ in 0..SAMPLES {
                    writer.send_when_there_is_room(&bell, 100);
                }
            });
        }
        let bell = reader.bell();
        let mut last = HashMap::new();
        for _ in 0..SAMPLES * writers.len() as u64 {
            let envelope = reader.take_when_there_is_one(&bell).envelope;
            let last = last.entry(envelope.gid).or_insert(0);
            *last += 1;
            assert_eq!(envelope.sequence, *last, "of {}", envelope.gid);
        }
        assert!(reader.take().is_none());
    });
}

/// Each of many readers gets every sample.
pub fn one_writer_reaches_64_readers(world: World) {
    let count = world.capability().readers_max.min(64);
    let writer = world.writer("many");
    let readers: Vec<_> = (0..count).map(|_| world.reader("many", Keep::All(20))).collect();
    readers.iter().for_each(|reader| writer.connect(reader));
    assert_eq!(writer.writer.readers(), count as usize);
    for _ in 0..20 {
        assert_eq!(writer.send(5000), Sent { readers: count, displaced: 0 });
    }
    refused(writer.try_send(5000), ErrorKind::Busy);
    for reader in &readers {
        assert_eq!(reader.numbers(), (1..=20).collect::<Vec<_>>());
    }
}

/// A writer takes as many readers as declared. One more is refused, and the others are served on.
pub fn readers_are_limited_as_declared(world: World) {
    /// More than these are not tried.
    const TRIED_MAX: u32 = 1024;
    let declared = world.capability().readers_max;
    let writer = world.writer("limit");
    let readers: Vec<_> = (0..declared.min(TRIED_MAX))
        .map(|_| {
            let reader = world.reader("limit", Keep::Last(1));
            writer.connect(&reader);
            reader
        })
        .collect();
    if declared <= TRIED_MAX {
        let reader = world.reader("limit", Keep::Last(1));
        let address = reader.reader.accept(world.one().id, writer.gid).unwrap();
        refused(writer.writer.connect(&address), ErrorKind::Exhausted);
        assert_eq!(writer.send(10).readers, declared);
        assert!(reader.take().is_none());
        // A place is free again when nothing that was sent to it is held.
        readers[3].numbers();
        writer.writer.disconnect(readers[3].gid);
        writer.connect(&reader);
    }
    // Where there is a limit one reader was disconnected, and the one in its place is gone.
    let gone = u32::from(declared <= TRIED_MAX);
    let sent = writer.send(10);
    assert_eq!(sent.readers, readers.len() as u32 - gone);
    assert_eq!(readers.last().unwrap().numbers(), [writer.sent()]);
}

/// What is sent on one topic does not arrive on another.
pub fn topics_do_not_mix(world: World) {
    let (writer_a, reader_a) = world.pair("a", Keep::All(10));
    let (writer_b, reader_b) = world.pair("b", Keep::All(10));
    for _ in 0..5 {
        writer_a.send(30);
        writer_b.send(30);
    }
    for (writer, reader) in [(writer_a, reader_a), (writer_b, reader_b)] {
        let gids: Vec<_> = std::iter::from_fn(|| reader.take()).map(|it| it.envelope.gid).collect();
        assert_eq!(gids, [writer.gid; 5]);
    }
}

/// Two processes write to and read from each other.
pub fn both_ways_at_once(world: World) {
    let (writer, reader) = world.pair("there", Keep::All(4));
    let (back_writer, back_reader) =
        (world.two().writer("back"), world.one().reader("back", Keep::All(4)));
    back_writer.connect(&back_reader);
    std::thread::scope(|scope| {
        for (writer, reader) in [(&writer, &back_reader), (&back_writer, &reader)] {
            scope.spawn(|| {
                let (room, news) = (writer.bell(), reader.bell());
                for sequence in 1..=2000 {
                    writer.send_when_there_is_room(&room, 300);
                    let sample = wait(&news, || reader.take());
                    assert_eq!(sample.envelope.sequence, sequence);
                }
            });
        }
    });
}

/// A transport that declares the scope intra connects the ends of one process; another refuses.
pub fn a_process_reaches_itself_or_is_refused(world: World) {
    let process = world.one();
    let (writer, reader) = (process.writer("self"), process.reader("self", Keep::All(4)));
    if world.capability().scopes.contains(Scope::Intra) {
        if !world.is_shared() {
            process.meet_itself();
        }
        writer.connect(&reader);
        writer.send(100);
        assert_eq!(reader.numbers(), [1]);
        return;
    }
    let address = reader.reader.accept(process.id, writer.gid);
    let connected = address.and_then(|address| writer.writer.connect(&address));
    assert!(connected.is_err(), "intra is not declared, and connects");
    assert_eq!(writer.send(100).readers, 0);
}

/// A writer without readers sends to nobody, which is no error.
pub fn without_readers_nothing_is_sent(world: World) {
    let writer = world.writer("alone");
    for _ in 0..1000 {
        assert_eq!(writer.send(1000), Sent::default());
        writer.writer.reserve(1000).unwrap();
    }
    let payload = payload::payload(0, 10);
    assert!(matches!(payload, Payload::Bytes(_)));
    let kind = if world.capability().directed { ErrorKind::Closed } else { ErrorKind::Unsupported };
    refused(writer.writer.send_to(Gid([9; 16]), &writer.envelope(), &payload), kind);
}

/// The time of the newest sample is known as soon as it is sent, and stays when it is taken or
/// displaced. A sample that was refused never came.
pub fn the_newest_arrival_is_known_before_it_is_taken(world: World) {
    let (writer, reader) = world.pair("newest", Keep::Last(2));
    assert_eq!(reader.reader.newest_ns(writer.gid), None);
    if !world.capability().whole_envelope {
        let mut last_ns = 0;
        for _ in 0..5 {
            writer.send(10);
            let newest_ns = reader.reader.newest_ns(writer.gid).unwrap();
            assert!(last_ns < newest_ns);
            last_ns = newest_ns;
        }
        assert_eq!(reader.numbers().len(), 2);
        assert_eq!(reader.reader.newest_ns(writer.gid), Some(last_ns));
        return assert_eq!(reader.reader.newest_ns(Gid([9; 16])), None);
    }
    for mono_ns in 1..=5 {
        writer.try_send_at(mono_ns, 10).unwrap();
        assert_eq!(reader.reader.newest_ns(writer.gid), Some(mono_ns));
    }
    assert_eq!(reader.numbers().len(), 2);
    assert_eq!(reader.reader.newest_ns(writer.gid), Some(5));
    let envelope = Envelope { mono_ns: 6, ..writer.envelope() };
    writer.writer.send_to(reader.gid, &envelope, &payload::payload(0, 10)).unwrap();
    assert_eq!(reader.reader.newest_ns(writer.gid), Some(6));
    assert_eq!(reader.reader.newest_ns(Gid([9; 16])), None);

    let (writer, reader) = world.pair("full", Keep::All(1));
    writer.try_send_at(1, 10).unwrap();
    refused(writer.try_send_at(2, 10), ErrorKind::Busy);
    assert_eq!(reader.reader.newest_ns(writer.gid), Some(1));
}

/// What one writer sends is no sign of another, nor of itself before it was forgotten.
pub fn each_writer_has_its_own_newest_arrival(world: World) {
    let (writer, reader) = world.pair("own", Keep::Last(2));
    let other = world.writer("own");
    other.connect(&reader);
    writer.try_send_at(7, 10).unwrap();
    assert_eq!(reader.reader.newest_ns(other.gid), None);
    other.try_send_at(3, 10).unwrap();
    let both = || [&writer, &other].map(|it| reader.reader.newest_ns(it.gid));
    if !world.capability().whole_envelope {
        assert!(both().iter().all(Option::is_some));
        writer.writer.disconnect(reader.gid);
        reader.reader.forget(writer.gid);
        assert!(both()[0].is_none() && both()[1].is_some());
        return;
    }
    assert_eq!(both(), [Some(7), Some(3)]);
    writer.writer.disconnect(reader.gid);
    reader.reader.forget(writer.gid);
    assert_eq!(both(), [None, Some(3)]);
    writer.connect(&reader);
    assert_eq!(both(), [None, Some(3)]);
    writer.try_send_at(8, 10).unwrap();
    assert_eq!(both(), [Some(8), Some(3)]);
}

//! What a reader keeps that does not take.

use tsuji_transport::{ErrorKind, Sent};

use crate::world::{Keep, World, refused, wait};

/// A reader that does not take gets exactly the newest; the others are counted on both sides.
pub fn keep_last_keeps_the_newest(world: World) {
    for depth in [1, 2, 3, 10, 100, 1000] {
        let (writer, reader) = world.pair("newest", Keep::Last(depth));
        let depth = u64::from(depth);
        let mut before = 0;
        for total in [depth - 1, depth, depth + 1, 2 * depth, 5 * depth + 3] {
            let first = writer.sent() + 1;
            let displaced: u64 = (0..total).map(|_| u64::from(writer.send(20).displaced)).sum();
            let kept = total.min(depth);
            assert_eq!(displaced, total - kept, "of {total} with depth {depth}");
            before += displaced;
            let last = first + total;
            assert_eq!(reader.numbers(), (last - kept..last).collect::<Vec<_>>(), "depth {depth}");
            assert_eq!(reader.reader.displaced(), before);
        }
    }
}

/// Readers of different depth on one writer each keep their own.
pub fn keep_last_counts_for_each_reader(world: World) {
    let writer = world.writer("depths");
    let readers =
        [1, 7, 50].map(|depth| (u64::from(depth), world.reader("depths", Keep::Last(depth))));
    readers.iter().for_each(|(_, reader)| writer.connect(reader));
    let displaced: u64 = (0..20).map(|_| u64::from(writer.send(20).displaced)).sum();
    assert_eq!(displaced, 19 + 13);
    for (depth, reader) in readers {
        let kept = depth.min(20);
        assert_eq!(reader.numbers(), (21 - kept..21).collect::<Vec<_>>());
        assert_eq!(reader.reader.displaced(), 20 - kept);
    }
}

/// A reader that keeps all takes as many as its limit says. Then sending is Busy and sends nothing.
pub fn keep_all_is_busy_at_its_limit(world: World) {
    for limit in [1, 2, 3, 10, 1000] {
        let (writer, reader) = world.pair("limit", Keep::All(limit));
        for round in 0..3 {
            for _ in 0..limit {
                assert_eq!(writer.send(20), Sent { readers: 1, displaced: 0 });
            }
            for _ in 0..3 {
                refused(writer.try_send(20), ErrorKind::Busy);
                refused(writer.writer.reserve(20), ErrorKind::Busy);
            }
            let first = round * u64::from(limit) + 1;
            let all: Vec<_> = (first..first + u64::from(limit)).collect();
            assert_eq!(reader.numbers(), all, "limit {limit}");
        }
        assert_eq!(reader.reader.displaced(), 0);
    }
}

/// A writer that was Busy is rung at the latest when the reader has taken everything, and then
/// it can send. One that was not Busy is not rung.
pub fn keep_all_rings_when_there_is_room(world: World) {
    for limit in [1, 10, 100] {
        let (writer, reader) = world.pair("room", Keep::All(limit));
        let room = writer.bell();
        writer.send(20);
        assert!(reader.take().is_some());
        assert!(!room.is_rung(), "rung without having been Busy");
        for _ in 0..3 {
            while writer.try_send(20).is_ok() {}
            room.drain(|_| ());
            while !room.is_rung() {
                assert!(reader.take().is_some(), "drained, and the writer was not told");
            }
            let mut rung = Vec::new();
            room.drain(|entity| rung.push(entity));
            assert_eq!(rung, [7]);
            writer.send(20);
            reader.numbers();
        }
    }
}

/// A full reader that keeps all holds back the sample from every reader, and repeats it to none.
pub fn keep_all_beside_keep_last(world: World) {
    let writer = world.writer("beside");
    let (last, all) = (world.reader("beside", Keep::Last(2)), world.reader("beside", Keep::All(3)));
    writer.connect(&last);
    writer.connect(&all);
    assert_eq!((0..3).map(|_| writer.send(20).displaced).sum::<u32>(), 1);
    let room = writer.bell();
    for _ in 0..5 {
        refused(writer.try_send(20), ErrorKind::Busy);
    }
    assert_eq!(last.numbers(), [2, 3]);
    assert_eq!(last.reader.displaced(), 1);
    assert_eq!(all.numbers(), [1, 2, 3]);
    wait(&room, || writer.try_send(20).ok());
    assert_eq!((last.numbers(), all.numbers()), (vec![4], vec![4]));
}

/// What was sent to one reader only takes its place there like any other.
pub fn send_to_counts_as_a_sample(world: World) {
    if !world.capability().directed {
        let (writer, reader) = world.pair("undirected", Keep::All(10));
        return refused(writer.try_send_to(reader.gid, 10), ErrorKind::Unsupported);
    }
    let (writer, reader) = world.pair("counts", Keep::Last(3));
    for _ in 0..3 {
        assert_eq!(writer.try_send_to(reader.gid, 10).unwrap(), Sent { readers: 1, displaced: 0 });
    }
    assert_eq!(writer.try_send_to(reader.gid, 10).unwrap(), Sent { readers: 1, displaced: 1 });
    writer.send(10);
    assert_eq!(reader.numbers(), [3, 4, 5]);
    assert_eq!(reader.reader.displaced(), 2);
}

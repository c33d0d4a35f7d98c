//! Ends that go, orderly or not, and what they leave behind.

use tsuji_transport::{ErrorKind, PeerId};

use crate::payload::assert_whole;
use crate::world::{Keep, Process, World, name, refused, unless_busy, wait};

/// A killed process runs no destructor.
fn dies<T>(everything_of_a_process: T) {
    std::mem::forget(everything_of_a_process);
}

/// What a writer sent whole before it was forgotten is delivered, then nothing.
pub fn a_forgotten_writers_samples_are_delivered(world: World) {
    let (writer, reader) = world.pair("forgotten", Keep::All(10));
    let other = world.writer("forgotten");
    other.connect(&reader);
    writer.send_many(3, 70_000);
    writer.writer.disconnect(reader.gid);
    reader.reader.forget(writer.gid);
    reader.reader.forget(writer.gid);
    writer.send(70_000);
    assert_eq!(reader.numbers(), [1, 2, 3]);
    other.send(10);
    assert_eq!(reader.numbers(), [1]);
}

/// Forgetting is not for ever, and forgetting somebody unknown is nothing.
pub fn a_forgotten_writer_comes_back(world: World) {
    let (writer, reader) = world.pair("unforgotten", Keep::All(10));
    reader.reader.forget(world.writer("unforgotten").gid);
    for round in 1..=100 {
        writer.send(10);
        writer.writer.disconnect(reader.gid);
        reader.reader.forget(writer.gid);
        writer.connect(&reader);
        writer.send(10);
        assert_eq!(reader.numbers(), [2 * round - 1, 2 * round]);
    }
}

/// A writer that is dropped leaves its samples to those that have not taken them yet.
pub fn a_dropped_writers_samples_are_delivered(world: World) {
    let (writer, reader) = world.pair("left", Keep::All(10));
    writer.send_many(5, 70_000);
    let gid = writer.gid;
    drop(writer);
    // Whoever comes next gets other memory.
    let next = world.writer("next");
    let next_reader = world.reader("next", Keep::All(10));
    next.connect(&next_reader);
    next.send_many(5, 70_000);
    let held = [reader.take().unwrap(), reader.take().unwrap()];
    reader.reader.forget(gid);
    assert_eq!(reader.numbers(), [3, 4, 5]);
    held.iter().for_each(assert_whole);
}

/// A full reader that is dropped, or disconnected, no longer makes its writers wait.
pub fn a_dropped_reader_makes_room(world: World) {
    let writer = world.writer("gone");
    let room = writer.bell();
    for disconnect_first in [false, true] {
        let reader = world.reader("gone", Keep::All(2));
        writer.connect(&reader);
        while unless_busy(writer.try_send(10)).is_some() {}
        let gid = reader.gid;
        if disconnect_first {
            writer.writer.disconnect(gid);
            writer.send(10);
        }
        drop(reader);
        wait(&room, || unless_busy(writer.try_send(10)));
        assert_eq!(writer.send(10).readers, 0);
        writer.writer.disconnect(gid);
    }
}

/// Readers that are dropped without having taken leave nothing that uses up memory.
pub fn readers_come_and_go_without_leaving_memory(world: World) {
    let writer = world.writer("come_and_go");
    for round in 0..10_000 {
        let keep = if round % 2 == 0 { Keep::Last(2) } else { Keep::All(3) };
        let reader = world.reader("come_and_go", keep);
        writer.connect(&reader);
        writer.send_many(3, 20_000);
        let held = (round % 3 == 0).then(|| reader.take().unwrap());
        let gid = reader.gid;
        if round % 5 == 0 {
            writer.writer.disconnect(gid);
        }
        drop(reader);
        writer.writer.disconnect(gid);
        assert!(held.is_none_or(|it| it.envelope.gid == writer.gid));
    }
}

/// The same for writers.
pub fn writers_come_and_go_without_leaving_memory(world: World) {
    let reader = world.reader("writers_come", Keep::Last(4));
    for round in 0..10_000 {
        let writer = world.writer("writers_come");
        writer.connect(&reader);
        writer.send_many(3, 20_000);
        let gid = writer.gid;
        if round % 2 == 0 {
            writer.writer.reserve(100).unwrap();
        }
        drop(writer);
        reader.reader.forget(gid);
        if round % 3 != 0 {
            assert!(!reader.numbers().is_empty());
        }
    }
}

/// What a dead process held, had not taken, or had been promised is free again.
///
/// In a world of one process nobody dies alone; there the reader just goes.
pub fn a_dead_readers_views_are_free_again(world: World) {
    let writer = world.writer("dead_reader");
    let survivor = world.reader("dead_reader", Keep::Last(1));
    writer.connect(&survivor);
    // In all three gibibytes, which is more than a transport under test may use.
    for round in 0..48 {
        let process = world.third();
        let reader = process.reader("dead_reader", Keep::All(8));
        writer.connect(&reader);
        writer.send_many(8, 8 << 20);
        let held: Vec<_> = (0..5).map(|_| reader.take().unwrap()).collect();
        if round % 3 == 0 {
            writer.writer.reserve(100).unwrap();
        }
        let (gid, id) = (reader.gid, process.id);
        if world.is_shared() {
            drop((reader, held));
            writer.writer.disconnect(gid);
            continue;
        }
        dies((process, reader, held));
        let orders: [&dyn Fn(); 2] =
            [&|| world.one().transport.part(id), &|| writer.writer.disconnect(gid)];
        orders[round % 2]();
        orders[1 - round % 2]();
        world.one().transport.part(id);
    }
    writer.send(100);
    assert_eq!(survivor.numbers(), [writer.sent()]);
}

/// What a dead process sent whole is delivered, and stays while it is held.
pub fn a_dead_writers_samples_are_delivered(world: World) {
    for _ in 0..20 {
        let process = world.third();
        let reader = world.one().reader("dead_writer", Keep::All(8));
        let writer = process.writer("dead_writer");
        writer.connect(&reader);
        writer.send_many(8, 200_000);
        refused(writer.writer.reserve(10), ErrorKind::Busy);
        let first = reader.take().unwrap();
        let (gid, id) = (writer.gid, process.id);
        if world.is_shared() {
            drop(writer);
        } else {
            dies((process, writer));
            world.one().transport.part(id);
        }
        reader.reader.forget(gid);
        assert_eq!(reader.numbers(), (2..=8).collect::<Vec<_>>());
        assert_whole(&first);
        assert!(reader.take().is_none());
    }
}

/// The death of somebody unknown disturbs no flow.
pub fn a_stranger_that_parts_changes_nothing(world: World) {
    let (writer, reader) = world.pair("undisturbed", Keep::All(3));
    writer.send_many(3, 70_000);
    let held = reader.take().unwrap();
    let part = |process: &Process| process.transport.part(PeerId(name()));
    part(world.one());
    part(world.two());
    writer.send(10);
    refused(writer.try_send(10), ErrorKind::Busy);
    assert_eq!(reader.numbers(), [2, 3, 4]);
    assert_whole(&held);
}

//! Ends that go, orderly or not, and what they leave behind.

use std::sync::Arc;

use tsuji_transport::{ErrorKind, FORGOTTEN_MAX, PeerId};

use crate::payload::assert_whole;
use crate::world::{Inlet, Keep, Outlet, Process, World, name, refused, unless_busy, wait};

/// A killed process runs no destructor.
fn dies<T>(everything_of_a_process: T) {
    std::mem::forget(everything_of_a_process);
}

/// In a world of one process nobody dies alone; there the writer just goes.
fn a_writers_process_dies<W>(world: &World, process: Arc<Process>, writer: W) {
    if world.is_shared() {
        return drop(writer);
    }
    let id = process.id;
    dies((process, writer));
    world.one().transport.part(id);
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
    for round in 0..world.rounds(10_000) {
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
    for round in 0..world.rounds(10_000) {
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

/// Writers that send and leave fill a reader that never takes to its depth, and then push out the
/// oldest. Neither they nor what they left uses up memory.
pub fn a_reader_that_never_takes_keeps_its_depth_of_those_that_left(world: World) {
    let writers = world.rounds(3000);
    let reader = world.reader("unread", Keep::Last(5));
    let mut gids = Vec::new();
    for round in 0..writers {
        let writer = world.writer("unread");
        writer.connect(&reader);
        for at in 0..3 {
            writer.try_send_at(10 * round + at, 20_000).unwrap();
        }
        gids.push(writer.gid);
        leave(writer, &reader, round);
    }
    let mut left: Vec<_> = std::iter::from_fn(|| reader.take()).map(|it| it.envelope).collect();
    left.sort_by_key(|envelope| envelope.mono_ns);
    let numbers: Vec<_> = left.iter().map(|it| (it.gid, it.sequence)).collect();
    let [.., before, last] = gids[..] else { unreachable!() };
    assert_eq!(numbers, [(before, 2), (before, 3), (last, 1), (last, 2), (last, 3)]);
    assert_eq!(reader.reader.displaced(), 3 * writers - 5);
}

fn leave(writer: Outlet, reader: &Inlet, round: u64) {
    let gid = writer.gid;
    match round % 3 {
        0 => {
            writer.writer.disconnect(reader.gid);
            reader.reader.forget(gid);
        }
        1 => {
            drop(writer);
            reader.reader.forget(gid);
        }
        // The news may come before the writer has left.
        _ => reader.reader.forget(gid),
    }
}

/// A reader that keeps all has what writers sent that left before it took anything: of at least as
/// many writers as promised, and what it does not have is counted.
pub fn a_reader_that_keeps_all_keeps_what_those_that_left_sent(world: World) {
    let writers = FORGOTTEN_MAX as u64 + 50;
    let reader = world.reader("all_unread", Keep::All(1000));
    let mut gids = Vec::new();
    for round in 0..writers {
        let writer = world.writer("all_unread");
        writer.connect(&reader);
        writer.send_many(2, 10);
        gids.push(writer.gid);
        leave(writer, &reader, round);
    }
    let left: Vec<_> = std::iter::from_fn(|| reader.take()).map(|it| it.envelope).collect();
    let displaced = reader.reader.displaced() as usize;
    assert_eq!(left.len() + displaced, 2 * gids.len());
    assert!(2 * FORGOTTEN_MAX <= left.len(), "{}", left.len());
    let kept = gids[displaced / 2..].iter().flat_map(|gid| [(*gid, 1), (*gid, 2)]);
    assert!(left.iter().map(|it| (it.gid, it.sequence)).eq(kept));
}

/// Processes that send and die leave a reader that never takes no more than its depth.
pub fn the_dead_leave_no_more_than_the_depth(world: World) {
    let reader = world.one().reader("dead_unread", Keep::Last(3));
    let mut gids = Vec::new();
    for round in 1..=50 {
        let process = world.third();
        let writer = process.writer("dead_unread");
        writer.connect(&reader);
        writer.try_send_at(round, 10).unwrap();
        let gid = writer.gid;
        gids.push(gid);
        a_writers_process_dies(&world, process, writer);
        reader.reader.forget(gid);
    }
    assert_eq!(reader.reader.displaced(), 47);
    let left: Vec<_> = std::iter::from_fn(|| reader.take()).map(|it| it.envelope.gid).collect();
    assert_eq!(left, gids[47..]);
}

/// What a dead process held, had not taken, or had been promised is free again.
///
/// In a world of one process nobody dies alone; there the reader just goes.
pub fn a_dead_readers_views_are_free_again(world: World) {
    let writer = world.writer("dead_reader");
    let survivor = world.reader("dead_reader", Keep::Last(1));
    writer.connect(&survivor);
    // In all three gibibytes, which is more than a transport under test may use.
    for round in 0..world.rounds(48) as usize {
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
        let gid = writer.gid;
        a_writers_process_dies(&world, process, writer);
        reader.reader.forget(gid);
        assert_eq!(reader.numbers(), (2..=8).collect::<Vec<_>>());
        assert_whole(&first);
        assert!(reader.take().is_none());
    }
}

/// The death of somebody unknown disturbs no flow.
pub fn a_unknown_peer_that_parts_changes_nothing(world: World) {
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

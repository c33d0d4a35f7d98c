//! A promise of room. It lets a sender commit on several links, or on none.
//!
//! The limit of a reader that keeps all holds for each of its writers, or for all of them together;
//! the seam leaves that open. The cases find out which, and hold the transport to it.

use std::sync::Barrier;

use tsuji_transport::{ErrorKind, Gid, Result};

use crate::world::{Inlet, Keep, Outlet, World, refused, unless_busy, wait};

/// Two writers of one reader.
struct Two {
    one: Outlet,
    two: Outlet,
    reader: Inlet,
    /// Places that `one` takes are missing to `two`.
    is_common: bool,
}

impl Two {
    fn open(world: &World, keep: Keep) -> Self {
        let connected = |keep| {
            let (one, reader) = world.pair("reserved", keep);
            let two = world.writer("reserved");
            two.connect(&reader);
            (one, two, reader)
        };
        let (one, two, _reader) = connected(Keep::All(1));
        one.send(10);
        let is_common = unless_busy(two.try_send(10)).is_none();
        let (one, two, reader) = connected(keep);
        Self { one, two, reader, is_common }
    }

    /// What `two` was answered while `one` has the last place.
    #[track_caller]
    fn waits_if_common<T>(&self, answer: Result<T>) {
        match self.is_common {
            true => refused(answer, ErrorKind::Busy),
            false => drop(answer.unwrap()),
        }
    }
}

/// Whatever another writer does, the send after a reservation finds its place.
pub fn a_reserved_send_is_not_busy(world: World) {
    let Two { one, two, reader, is_common } = Two::open(&world, Keep::All(4));
    for _ in 0..100 {
        one.writer.reserve(5000).unwrap();
        while unless_busy(two.try_send(5000)).is_some() {}
        one.try_send(5000).unwrap();
        refused(two.try_send(1), ErrorKind::Busy);
        assert_eq!(reader.numbers().len(), if is_common { 4 } else { 5 });
    }
    one.writer.reserve(70_000).unwrap();
    one.try_send(10).unwrap();
}

/// A cancelled place can be used by another, which is told.
pub fn cancel_gives_the_place_back(world: World) {
    let it = Two::open(&world, Keep::All(1));
    let room = it.two.bell();
    for _ in 0..100 {
        it.one.writer.reserve(10).unwrap();
        it.waits_if_common(it.two.try_send(10));
        it.one.writer.cancel();
        if it.is_common {
            wait(&room, || unless_busy(it.two.try_send(10)));
        }
        refused(it.two.writer.reserve(10), ErrorKind::Busy);
        it.waits_if_common(it.one.writer.reserve(10));
        it.one.writer.cancel();
        assert_eq!(it.reader.numbers().len(), 1);
    }
}

/// Of two writers that reserve the last place, one gets it.
pub fn the_last_place_goes_to_one(world: World) {
    let it = Two::open(&world, Keep::All(1));
    let room = it.two.bell();
    it.one.writer.reserve(10).unwrap();
    it.waits_if_common(it.two.writer.reserve(10));
    it.one.send(10);
    refused(it.one.writer.reserve(10), ErrorKind::Busy);
    it.waits_if_common(it.two.writer.reserve(10));
    assert_eq!(it.reader.numbers(), [1]);
    wait(&room, || unless_busy(it.two.writer.reserve(10)));
    if it.is_common {
        refused(it.one.try_send(10), ErrorKind::Busy);
    }
    it.two.send(10);
    assert_eq!(it.reader.numbers(), [1]);
}

/// The same between threads: whoever reserved can send, and no place is given twice.
pub fn the_last_place_goes_to_one_of_two_threads(world: World) {
    const ROUNDS: usize = 2000;
    let Two { one, two, reader, is_common } = Two::open(&world, Keep::All(1));
    let (start, end) = (Barrier::new(3), Barrier::new(3));
    std::thread::scope(|scope| {
        for writer in [&one, &two] {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    start.wait();
                    if unless_busy(writer.writer.reserve(10)).is_some() {
                        writer.try_send(10).unwrap();
                    }
                    end.wait();
                }
            });
        }
        for _ in 0..ROUNDS {
            start.wait();
            end.wait();
            assert_eq!(reader.numbers().len(), if is_common { 1 } else { 2 });
        }
    });
}

/// A second reservation takes no second place.
pub fn reserving_twice_is_once(world: World) {
    let it = Two::open(&world, Keep::All(2));
    for _ in 0..5 {
        it.one.writer.reserve(10).unwrap();
    }
    it.two.send(10);
    it.waits_if_common(it.two.try_send(10));
    it.one.send(10);
    it.waits_if_common(it.one.try_send(10));
    refused(it.one.try_send(10), ErrorKind::Busy);
    assert_eq!(it.reader.numbers().len(), if it.is_common { 2 } else { 4 });
    it.one.writer.reserve(10).unwrap();
    it.one.writer.cancel();
    it.two.send_many(2, 10);
}

/// A cancel too many does not give away the place of somebody else.
pub fn cancel_without_reservation_is_nothing(world: World) {
    let it = Two::open(&world, Keep::All(1));
    it.one.writer.reserve(10).unwrap();
    it.two.writer.cancel();
    it.two.writer.cancel();
    it.waits_if_common(it.two.try_send(10));
    it.one.send(10);
    it.one.writer.cancel();
    refused(it.one.try_send(10), ErrorKind::Busy);
    refused(it.two.try_send(10), ErrorKind::Busy);
    assert_eq!(it.reader.numbers().len(), if it.is_common { 1 } else { 2 });
}

/// A writer that is dropped with a reservation leaves its place to others, which are told.
pub fn a_dropped_writer_gives_its_place_back(world: World) {
    let it = Two::open(&world, Keep::All(1));
    let room = it.two.bell();
    it.one.writer.reserve(10).unwrap();
    it.waits_if_common(it.two.writer.reserve(10));
    let Two { one, two, reader, .. } = it;
    let gid = one.gid;
    drop(one);
    reader.reader.forget(gid);
    wait(&room, || unless_busy(two.try_send(10)));
    assert_eq!(reader.numbers(), [1]);
}

/// A reservation ends with a send or a cancel, not when readers are disconnected that were never
/// connected.
pub fn a_reservation_survives_unknown_peers(world: World) {
    let it = Two::open(&world, Keep::All(1));
    it.one.writer.reserve(10).unwrap();
    it.one.writer.disconnect(Gid([3; 16]));
    it.waits_if_common(it.two.try_send(10));
    it.one.send(10);
}

/// Nor when some of the readers leave.
pub fn a_reservation_survives_readers_that_leave(world: World) {
    let it = Two::open(&world, Keep::All(1));
    let open = || world.reader("reserved", Keep::All(1));
    let (leaver, dropped) = (open(), open());
    it.one.connect(&leaver);
    it.one.connect(&dropped);
    it.one.writer.reserve(10).unwrap();
    it.one.writer.disconnect(leaver.gid);
    drop(dropped);
    it.waits_if_common(it.two.try_send(10));
    it.one.send(10);
    assert_eq!(it.reader.numbers().len(), if it.is_common { 1 } else { 2 });
    // The one that left is whole: another writer finds its place free.
    it.two.connect(&leaver);
    let number = it.two.sent() + 1;
    it.two.send(10);
    assert_eq!((leaver.numbers(), it.reader.numbers()), (vec![number], vec![number]));
}

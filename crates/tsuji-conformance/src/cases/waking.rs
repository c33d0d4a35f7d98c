//! Who sleeps is woken, and no more often than needed.

use std::sync::Barrier;

use crate::world::{Keep, World, wait};

/// An arrival marks its cell once until the mark is drained; after everything was taken, the next
/// arrival marks it again.
pub fn an_arrival_rings_and_is_drained_once(world: World) {
    let (writer, reader) = world.pair("marks", Keep::All(10));
    let bell = reader.bell();
    let drained = || {
        let mut entities = Vec::new();
        bell.drain(|entity| entities.push(entity));
        entities
    };
    let is_immediate = world.capability().immediate;
    for round in 0..100 {
        assert!(!bell.is_rung());
        // Elsewhere each of several rings a moment after it has come, so that the last may be late.
        let count = if is_immediate { 1 + round % 3 } else { 1 };
        for _ in 0..count {
            writer.send(10);
        }
        assert!(!is_immediate || bell.is_rung(), "{round}");
        bell.wait(None);
        assert_eq!((drained(), drained()), (vec![7], vec![]));
        assert_eq!(reader.numbers().len(), count);
    }
    if world.capability().directed {
        writer.try_send_to(reader.gid, 10).unwrap();
        assert_eq!(drained(), [7]);
    }
}

/// A thread that sleeps, or is about to, finds the sample.
pub fn an_arrival_wakes_a_sleeper(world: World) {
    const ROUNDS: usize = 5000;
    let (writer, reader) = world.pair("sleeper", Keep::All(1));
    let start = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let bell = reader.bell();
            for _ in 0..ROUNDS {
                start.wait();
                reader.take_when_there_is_one(&bell);
            }
        });
        let room = writer.bell();
        for _ in 0..ROUNDS {
            start.wait();
            writer.send_when_there_is_room(&room, 10);
        }
    });
}

/// A reader's cell comes to ring another bell too and then that one only, while samples come, and the writer is not
/// told.
pub fn a_cell_rings_the_bells_that_it_is_attached_to(world: World) {
    let (writer, reader) = world.pair("moved", Keep::All(10));
    let is_immediate = world.capability().immediate;
    let one = reader.bell();
    writer.send(10);
    assert!(!is_immediate || one.is_rung());
    one.wait(None);
    let two = world.two().bells.claim_bell().unwrap();
    reader.arrivals.attach(&two, 9);
    let mut rung = Vec::new();
    two.drain(|entity| rung.push(entity));
    assert_eq!(rung, [9], "what waits already is told to the new bell");
    one.drain(|_| ());
    reader.numbers();
    writer.send(10);
    assert!(!is_immediate || (one.is_rung() && two.is_rung()));
    two.wait(None);
    one.wait(None);
    reader.arrivals.detach_from(&one);
    for bell in [&one, &two] {
        bell.drain(|_| ());
    }
    reader.numbers();
    writer.send(10);
    assert!(!is_immediate || two.is_rung());
    two.wait(None);
    assert!(!one.is_rung());
    reader.arrivals.detach_from(&two);
}

/// Two threads wake each other through the transport, and neither ever sleeps for good.
pub fn one_hundred_thousand_times_ping_pong(world: World) {
    const ROUNDS: u64 = 100_000;
    let (ping, ping_reader) = world.pair("ping", Keep::Last(1));
    let (pong, pong_reader) =
        (world.two().writer("pong"), world.one().reader("pong", Keep::All(1)));
    pong.connect(&pong_reader);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let bell = ping_reader.bell();
            for _ in 0..ROUNDS / 2 {
                ping_reader.take_when_there_is_one(&bell);
                pong.send(10);
            }
        });
        let bell = pong_reader.bell();
        for _ in 0..ROUNDS / 2 {
            ping.send(10);
            wait(&bell, || pong_reader.take());
        }
    });
    assert_eq!(ping_reader.reader.displaced(), 0);
}

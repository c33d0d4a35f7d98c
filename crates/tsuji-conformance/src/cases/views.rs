//! Samples that were taken stay what they are for as long as they are held.

use tsuji_transport::{ErrorKind, Payload};

use crate::payload::{assert_whole, bytes, is_pattern, seed};
use crate::world::{Keep, World, wait};

/// Samples taken stay valid when reader, writer and both transports are gone.
pub fn views_outlive_everything(world: World) {
    let (writer, reader) = world.pair("outlive", Keep::All(10));
    let mut held = Vec::new();
    for len in [0, 1, 100, 70_000, 2 << 20] {
        writer.send(len);
        held.push(reader.take().unwrap());
    }
    drop(reader);
    held.iter().for_each(assert_whole);
    drop(writer);
    held.iter().for_each(assert_whole);
    drop(world);
    let clones = held.clone();
    drop(held);
    clones.iter().for_each(assert_whole);
}

/// A sample that was taken does not change while others follow on the same way.
pub fn views_stay_while_a_thousand_samples_pass(world: World) {
    let (writer, reader) = world.pair("stay", Keep::Last(4));
    for len in [1, 300, 70_000] {
        writer.send(len);
        let held = reader.take().unwrap();
        for _ in 0..1000 {
            writer.send(len);
        }
        assert_whole(&held);
        assert_eq!(reader.numbers().len(), 4);
        assert_whole(&held);
    }
}

/// Many samples are held, let go in any order, and nothing changes or runs out.
pub fn fifty_views_are_held_while_a_thousand_samples_pass(world: World) {
    let (writer, reader) = world.pair("fifty", Keep::Last(10));
    let mut held: Vec<_> = (0..50)
        .map(|number| {
            writer.send(number * 100);
            reader.take().unwrap()
        })
        .collect();
    for round in 0..1000 {
        writer.send(round * 5);
        let sample = reader.take().unwrap();
        if round % 3 == 0 {
            held[round % 50] = sample;
        }
    }
    held.iter().for_each(assert_whole);
}

/// What was taken from one topic is sent on another, as it is.
pub fn a_view_is_sent_on(world: World) {
    let (writer, reader) = world.pair("first", Keep::All(1));
    let onward = world.two().writer("second");
    let last = world.one().reader("second", Keep::All(1));
    onward.connect(&last);
    for len in [0, 10, 70_000].map(|len| writer.carried(len)) {
        writer.send(len);
        let view = reader.take().unwrap();
        let Payload::Bytes(lent) = view.payload.clone() else { panic!("no bytes") };
        let expected = seed(&view.envelope);
        onward.writer.send(&onward.envelope(), &Payload::Bytes(lent)).unwrap();
        drop(view);
        let arrived = last.reader.take().unwrap().unwrap();
        assert_eq!(bytes(&arrived).len(), len);
        assert!(is_pattern(bytes(&arrived), expected));
    }
}

/// A reader that hoards large samples may use up the memory that a writer has. Then sending is
/// Busy, the room cell rings when views are dropped, and no view has changed.
pub fn held_views_make_busy_not_harm(world: World) {
    const LEN: usize = 8 << 20;
    /// Half a gibibyte: a transport that still has memory then is believed to have enough.
    const HELD_MAX: usize = 64;
    let (writer, reader) = world.pair("hoard", Keep::Last(1));
    let room = writer.bell();
    let mut held = Vec::new();
    let is_busy = loop {
        match writer.try_send(LEN) {
            Ok(_) => held.push(reader.take().unwrap()),
            Err(error) if error.kind() == ErrorKind::Busy => break true,
            Err(error) => panic!("{error}"),
        }
        if held.len() == HELD_MAX {
            break false;
        }
    };
    held.iter().for_each(assert_whole);
    if is_busy {
        room.drain(|_| ());
        held.clear();
        wait(&room, || writer.try_send(LEN).ok());
        assert!(reader.take().is_some());
    }
}

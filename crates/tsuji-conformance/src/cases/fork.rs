//! A forked child shares its parent's memory and must not touch it.
//!
//! `fork` is unsafe and this crate is not, so these cases are enrolled apart, by a test that
//! brings it.

use std::io::Write;
use std::sync::Arc;

use tsuji_transport::{Error, ErrorKind, Handshake, Payload};

use crate::payload::{self, assert_whole};
use crate::world::{Keep, World};

/// In the child every call answers Closed; what it drops is still there for the parent, whose
/// flows go on.
///
/// `in_child` forks, answers in the parent what the function answered in the child, and ends the
/// child without running anything else of it.
pub fn a_forked_child_is_refused(
    world: World,
    in_child: impl Fn(&mut dyn FnMut() -> bool) -> bool,
) {
    let (writer, reader) = world.pair("forked", Keep::All(8));
    let other = world.reader("forked", Keep::All(8));
    let address = other.reader.accept(world.one().id, writer.gid).unwrap();
    let endpoint = writer.endpoint();
    writer.send_many(4, 70_000);
    let held = reader.take().unwrap();
    let lends = world.capability().loan;
    let mut loan = lends.then(|| writer.writer.loan(70_000).unwrap());
    if let Some(loan) = &mut loan {
        payload::fill(loan, 1);
    }
    // The child's copies of these are the child's to drop.
    let mut everything = Some((world, writer, reader, other, held, loan));

    let child_is_right = in_child(&mut || {
        let Some((world, writer, reader, other, held, loan)) = everything.take() else {
            return false;
        };
        let payload = payload::payload(1, 100);
        let mut right = true;
        let mut closed = |call: &str, error: Option<Error>| {
            if error.as_ref().map(Error::kind) != Some(ErrorKind::Closed) {
                right = false;
                let shown = error.map_or_else(|| "no error".to_owned(), |it| it.to_string());
                let _ = writeln!(std::io::stderr(), "in a forked child, {call}: {shown}");
            }
        };
        closed("send", writer.writer.send(&writer.envelope(), &payload).err());
        closed("send_to", writer.writer.send_to(reader.gid, &writer.envelope(), &payload).err());
        closed("reserve", writer.writer.reserve(10).err());
        if lends {
            closed("loan", writer.writer.loan(10).err());
        }
        closed("connect", writer.writer.connect(&address).err());
        closed("take", reader.reader.take().err());
        closed("accept", reader.reader.accept(world.one().id, writer.gid).err());
        for process in [world.one(), world.two()] {
            let transport = &process.transport;
            let cell = || Arc::clone(&writer.room);
            closed("open_writer", transport.open_writer(&endpoint, cell()).err());
            closed("open_reader", transport.open_reader(&endpoint, cell()).err());
            if !world.is_shared() {
                closed("handshake", transport.handshake(world.one().id).err());
                closed("meet", transport.meet(world.one().id, Handshake::default()).err());
                closed("confirm", transport.confirm(world.one().id, &[]).err());
            }
            transport.part(world.one().id);
            transport.part(world.two().id);
            closed("claim_cell", process.bells.claim_cell().err());
            closed("claim_bell", process.bells.claim_bell().err());
        }
        writer.writer.cancel();
        writer.writer.disconnect(reader.gid);
        reader.reader.forget(writer.gid);
        drop((held.clone(), held, loan));
        drop((writer, other, reader));
        drop(world);
        right
    });
    assert!(child_is_right, "see what the child printed");

    let (world, writer, reader, other, held, loan) = everything.take().unwrap();
    assert_eq!(writer.writer.readers(), 1);
    assert_eq!(reader.numbers(), [2, 3, 4]);
    if let Some(loan) = loan {
        let envelope = writer.envelope();
        writer.writer.send(&envelope, &Payload::Bytes(loan.freeze())).unwrap();
        let sample = reader.reader.take().unwrap().unwrap();
        assert!(payload::is_pattern(payload::bytes(&sample), 1));
    }
    let (room, news) = (writer.bell(), reader.bell());
    for _ in 0..1000 {
        writer.send_when_there_is_room(&room, 70_000);
        reader.take_when_there_is_one(&news);
    }
    assert_whole(&held);
    writer.connect(&other);
    writer.send(10);
    assert_eq!(other.numbers().len(), 1);
    drop(world);
}

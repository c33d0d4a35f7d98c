//! The faulty transport does just the faults that it is told to, and counts them.
#![cfg(not(loom))]

use std::sync::Arc;

use tsuji_conformance::{Inlet, Keep, Outlet, World};
use tsuji_core::{Capability, Peers, TransportId};
use tsuji_platform::memory::Backing;
use tsuji_transport::bell::{Bells, Cell};
use tsuji_transport::faulty::{FaultCounts, Faults, Faulty};
use tsuji_transport::inproc::InProcess;
use tsuji_transport::wire::{self, ChannelSpec, Found, Wire};
use tsuji_transport::{
    Address, Connected, Endpoint, Envelope, ErrorKind, Gid, Loan, Payload, PeerId, Reader, Result,
    Sample, Sent, Transport, Writer,
};

fn pair(seed: u64, keep: Keep) -> (Faulty, World, Outlet, Inlet) {
    let faulty = Faulty::new(Arc::new(InProcess::new()), seed);
    let world = World::shared(faulty.clone());
    let (writer, reader) = world.pair("faults", keep);
    (faulty, world, writer, reader)
}

/// What arrives of 1,000 samples, and what is counted.
fn run(seed: u64, faults: Faults) -> (Vec<u64>, FaultCounts) {
    let (faulty, _world, writer, reader) = pair(seed, Keep::All(5000));
    faulty.set(faults);
    writer.send_many(1000, 10);
    drop(writer);
    (reader.numbers(), faulty.counts())
}

#[test]
fn without_a_fault_everything_arrives_once() {
    let (numbers, counts) = run(1, Faults::NONE);
    assert_eq!(numbers, (1..=1000).collect::<Vec<_>>());
    assert_eq!(counts, FaultCounts::default());
}

#[test]
fn the_lost_are_counted() {
    let (numbers, counts) = run(1, Faults { loss: 0.3, ..Faults::NONE });
    assert_eq!(numbers.len() as u64 + counts.lost, 1000);
    assert!((200..400).contains(&counts.lost), "{counts:?}");
    assert!(numbers.is_sorted_by(|a, b| a < b));
    assert_eq!(run(1, Faults { loss: 1.0, ..Faults::NONE }).0, []);
}

#[test]
fn the_repeated_follow_at_once_and_are_counted() {
    let (mut numbers, counts) = run(1, Faults { duplicate: 0.3, ..Faults::NONE });
    assert_eq!(numbers.len() as u64, 1000 + counts.duplicated);
    assert!((200..400).contains(&counts.duplicated), "{counts:?}");
    assert!(numbers.is_sorted());
    numbers.dedup();
    assert_eq!(numbers.len(), 1000);
}

#[test]
fn the_delayed_keep_their_order() {
    let faults = Faults { delay: 0.1, delay_samples: 7, ..Faults::NONE };
    let (numbers, counts) = run(1, faults);
    assert_eq!(numbers, (1..=1000).collect::<Vec<_>>());
    assert!(0 < counts.delayed);

    let (faulty, _world, writer, reader) = pair(1, Keep::All(5000));
    faulty.set(Faults { delay: 1.0, ..faults });
    writer.send_many(7, 10);
    assert_eq!(reader.numbers(), []);
    writer.send(10);
    assert_eq!(reader.numbers(), (1..=7).collect::<Vec<_>>());
    // A late joiner's sample must not overtake the held ones.
    writer.try_send_to(reader.gid, 10).unwrap();
    assert_eq!(reader.numbers(), [8, 9]);
}

#[test]
fn everything_together_loses_nothing_uncounted() {
    let faults =
        Faults { loss: 0.1, duplicate: 0.1, delay: 0.05, delay_samples: 5, ..Faults::NONE };
    let (numbers, counts) = run(3, faults);
    assert_eq!(numbers.len() as u64, 1000 - counts.lost + counts.duplicated);
    assert!(numbers.is_sorted());
}

#[test]
fn a_seed_repeats_a_run() {
    let faults = Faults { loss: 0.2, duplicate: 0.2, delay: 0.1, delay_samples: 3, ..Faults::NONE };
    assert_eq!(run(5, faults), run(5, faults));
    assert_ne!(run(5, faults).0, run(6, faults).0);
}

#[test]
fn a_cut_is_closed_until_it_heals() {
    let (faulty, world, writer, reader) = pair(1, Keep::All(10));
    writer.send(10);
    faulty.set(Faults { cut: true, ..Faults::NONE });
    assert!(faulty.trouble().is_some());
    assert_eq!(writer.try_send(10).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(writer.try_send_to(reader.gid, 10).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(writer.writer.reserve(10).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(writer.writer.loan(10).unwrap_err().kind(), ErrorKind::Closed);
    let address = reader.reader.accept(world.one().id, writer.gid).unwrap();
    assert_eq!(writer.writer.connect(&address).unwrap_err().kind(), ErrorKind::Closed);
    let (endpoint, cell) = (writer.endpoint(), world.one().cell());
    let opened = faulty.open_writer(&endpoint, Arc::clone(&cell));
    assert_eq!(opened.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(faulty.open_reader(&endpoint, cell).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(reader.numbers(), [1], "what had arrived is taken");
    faulty.set(Faults::NONE);
    assert!(faulty.trouble().is_none());
    writer.send(10);
    assert_eq!(reader.numbers(), [2]);
}

#[test]
fn busy_ends_with_a_ring() {
    let (faulty, _world, writer, reader) = pair(1, Keep::All(10));
    let room = writer.bell();
    faulty.set(Faults { busy: true, ..Faults::NONE });
    room.drain(|_| ());
    assert_eq!(writer.try_send(10).unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(writer.writer.reserve(10).unwrap_err().kind(), ErrorKind::Busy);
    assert!(!room.is_rung());
    faulty.set(Faults::NONE);
    writer.send_when_there_is_room(&room, 10);
    assert_eq!(reader.numbers(), [1]);
}

#[test]
fn a_starved_writer_has_no_memory_for_bytes() {
    let (faulty, _world, writer, reader) = pair(1, Keep::All(10));
    let room = writer.bell();
    faulty.set(Faults { starved: true, ..Faults::NONE });
    room.drain(|_| ());
    assert_eq!(faulty.trouble().as_deref(), Some("starved by a fault"));
    assert_eq!(writer.writer.loan(10).unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(writer.writer.reserve(10).unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(writer.try_send(10).unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(writer.try_send_to(reader.gid, 10).unwrap_err().kind(), ErrorKind::Busy);
    let value = Payload::Typed(Arc::new(7_u32));
    writer.writer.send(&writer.envelope(), &value).unwrap();
    assert!(reader.reader.take().unwrap().is_some(), "a value needs no memory");
    assert!(!room.is_rung());
    faulty.set(Faults::NONE);
    assert!(room.is_rung());
    assert!(faulty.trouble().is_none());
    writer.send(10);
    assert_eq!(reader.numbers(), [1]);
    faulty.set(Faults { busy: true, ..Faults::NONE });
    assert!(faulty.trouble().is_none(), "a full reader is no trouble");
}

#[test]
fn what_was_reserved_is_sent() {
    let (faulty, _world, writer, reader) = pair(1, Keep::All(10));
    for faults in [Faults { busy: true, ..Faults::NONE }, Faults { starved: true, ..Faults::NONE }]
    {
        faulty.set(Faults::NONE);
        writer.writer.reserve(10).unwrap();
        faulty.set(faults);
        writer.send(10);
        assert_eq!(writer.try_send(10).unwrap_err().kind(), ErrorKind::Busy);
        faulty.set(Faults::NONE);
        writer.writer.reserve(10).unwrap();
        faulty.set(faults);
        writer.writer.cancel();
        assert_eq!(writer.try_send(10).unwrap_err().kind(), ErrorKind::Busy);
        faulty.set(Faults::NONE);
        writer.writer.reserve(10).unwrap();
        faulty.set(Faults { cut: true, ..faults });
        assert_eq!(writer.try_send(10).unwrap_err().kind(), ErrorKind::Closed);
        writer.writer.cancel();
    }
    assert_eq!(reader.numbers(), [1, 2]);
}

#[test]
fn it_is_named_after_the_other_or_as_the_other() {
    let name = |faulty: Faulty| faulty.id().to_string();
    assert_eq!(name(Faulty::new(Arc::new(InProcess::new()), 1)), "faulty-inproc");
    assert_eq!(name(Faulty::in_place_of(Arc::new(InProcess::new()), 1)), "inproc");
}

#[test]
fn what_the_other_says_of_its_wire_is_passed_on() {
    let faulty = Faulty::in_place_of(Arc::new(Wired), 1);
    assert_eq!(faulty.wire().unwrap().join().unwrap(), NAME);
    assert!(Faulty::new(Arc::new(InProcess::new()), 1).wire().is_none());
    let bells = Bells::create(&Backing::Anonymous).unwrap();
    let cell = || Arc::new(bells.claim_cell().unwrap());
    let endpoint = World::shared(InProcess::new()).writer("wired").endpoint();
    let writer = faulty.open_writer(&endpoint, cell()).unwrap();
    let reader = faulty.open_reader(&endpoint, cell()).unwrap();
    assert_eq!((writer.wire_name(), reader.wire_name()), (Some(NAME), Some(NAME)));
    assert_eq!(writer.connect_foreign(NAME).unwrap(), Connected::Later);
    assert_eq!(reader.accept_foreign(NAME).unwrap(), Connected::Later);
    assert_eq!(writer.lost(), [NAME]);
    faulty.set(Faults { cut: true, ..Faults::NONE });
    assert_eq!(writer.connect_foreign(NAME).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_repeat_never_makes_a_reserved_send_busy() {
    let (faulty, _world, writer, reader) = pair(1, Keep::All(1));
    faulty.set(Faults { duplicate: 1.0, ..Faults::NONE });
    writer.writer.reserve(10).unwrap();
    writer.send(10);
    assert_eq!((reader.numbers(), faulty.counts().duplicated), (vec![1], 0));
}

#[test]
fn a_loss_gives_the_reservation_back() {
    let (faulty, world, writer, reader) = pair(1, Keep::All(1));
    let other = world.writer("faults");
    other.connect(&reader);
    faulty.set(Faults { loss: 1.0, ..Faults::NONE });
    writer.writer.reserve(10).unwrap();
    writer.send(10);
    faulty.set(Faults::NONE);
    other.send(10);
    assert_eq!(reader.numbers(), [1]);
}

#[test]
fn writers_that_are_gone_leave_no_cell() {
    let (_faulty, world, ..) = pair(1, Keep::All(1));
    (0..50_000).for_each(|_| drop(world.writer("faults")));
}

#[test]
fn what_is_held_at_the_end_goes_or_is_counted() {
    let held = |keep| {
        let (faulty, _world, writer, reader) = pair(1, keep);
        faulty.set(Faults { delay: 1.0, delay_samples: 100, ..Faults::NONE });
        writer.send_many(5, 10);
        drop(writer);
        (reader.numbers(), faulty.counts().lost)
    };
    assert_eq!(held(Keep::All(10)), (vec![1, 2, 3, 4, 5], 0));
    assert_eq!(held(Keep::All(2)), (vec![1, 2], 3));
}

const NAME: Gid = Gid([9; 16]);

/// A transport, its wire, its writer and its reader, all called the same; it carries nothing.
#[derive(Debug)]
struct Wired;

impl Transport for Wired {
    fn id(&self) -> TransportId {
        TransportId::new("wired")
    }

    fn capability(&self) -> Capability {
        InProcess::new().capability()
    }

    fn wire(&self) -> Option<&dyn Wire> {
        Some(self)
    }

    fn open_writer(&self, _: &Endpoint, _: Arc<Cell>) -> Result<Arc<dyn Writer>> {
        Ok(Arc::new(Self))
    }

    fn open_reader(&self, _: &Endpoint, _: Arc<Cell>) -> Result<Arc<dyn Reader>> {
        Ok(Arc::new(Self))
    }
}

impl Wire for Wired {
    fn peers(&self) -> Peers {
        Peers::FOREIGN
    }

    fn join(&self) -> Result<Gid> {
        Ok(NAME)
    }

    fn found(&self) -> Vec<Found> {
        Vec::new()
    }

    fn open_outlet(&self, _: &ChannelSpec) -> Result<Box<dyn wire::Outlet>> {
        unimplemented!()
    }

    fn open_inlet(&self, _: &ChannelSpec) -> Result<Box<dyn wire::Inlet>> {
        unimplemented!()
    }
}

impl Writer for Wired {
    fn loan(&self, _: usize) -> Result<Loan> {
        unimplemented!()
    }

    fn reserve(&self, _: usize) -> Result<()> {
        unimplemented!()
    }

    fn cancel(&self) {}

    fn send(&self, _: &Envelope, _: &Payload) -> Result<Sent> {
        unimplemented!()
    }

    fn send_to(&self, _: Gid, _: &Envelope, _: &Payload) -> Result<Sent> {
        unimplemented!()
    }

    fn connect(&self, _: &Address) -> Result<Connected> {
        unimplemented!()
    }

    fn disconnect(&self, _: Gid) {}

    fn wire_name(&self) -> Option<Gid> {
        Some(NAME)
    }

    fn connect_foreign(&self, _: Gid) -> Result<Connected> {
        Ok(Connected::Later)
    }

    fn lost(&self) -> Vec<Gid> {
        vec![NAME]
    }

    fn readers(&self) -> usize {
        0
    }
}

impl Reader for Wired {
    fn accept(&self, _: PeerId, _: Gid) -> Result<Address> {
        unimplemented!()
    }

    fn wire_name(&self) -> Option<Gid> {
        Some(NAME)
    }

    fn accept_foreign(&self, _: Gid) -> Result<Connected> {
        Ok(Connected::Later)
    }

    fn forget(&self, _: Gid) {}

    fn take(&self) -> Result<Option<Sample>> {
        Ok(None)
    }

    fn displaced(&self) -> u64 {
        0
    }

    fn newest_ns(&self, _: Gid) -> Option<u64> {
        None
    }
}

//! Memory that one writer does not need is there for another.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use tsuji_core::{History, Qos};
use tsuji_platform::memory::Backing;
use tsuji_transport::bell::{Bells, Cell};
use tsuji_transport::{
    Endpoint, Envelope, ErrorKind, Gid, Payload, PeerId, Reader, Transport, Writer,
};
use tsuji_transport_shm::{SharedMemory, ShmConfig};

struct Process {
    id: PeerId,
    bells: Arc<Bells>,
    memory: SharedMemory,
}

impl Process {
    fn new(number: u8, memory_bytes_max: u64) -> Self {
        let (id, bells) = (PeerId([number; 16]), Bells::create(&Backing::Anonymous).unwrap());
        let config = ShmConfig { memory_bytes_max, ..ShmConfig::default() };
        let memory = SharedMemory::create(id, &tsuji_conformance::life(), &bells, &config).unwrap();
        Self { id, bells, memory }
    }

    fn endpoint(number: u8) -> Endpoint {
        Endpoint {
            topic: "/t".into(),
            type_name: "t".into(),
            gid: Gid([number; 16]),
            qos: Qos { history: History::KeepAll, ..Qos::DEFAULT },
            keep_all_max: 8,
            announced: None,
        }
    }

    fn writer(&self, number: u8) -> Arc<dyn Writer> {
        self.writer_with(number, Arc::new(self.bells.claim_cell().unwrap()))
    }

    fn writer_with(&self, number: u8, room: Arc<Cell>) -> Arc<dyn Writer> {
        self.memory.open_writer(&Self::endpoint(number), room).unwrap()
    }

    fn reader(&self, number: u8) -> Arc<dyn Reader> {
        let news = Arc::new(self.bells.claim_cell().unwrap());
        self.memory.open_reader(&Self::endpoint(number), news).unwrap()
    }
}

fn meet(one: &Process, two: &Process) {
    for (a, b) in [(one, two), (two, one)] {
        let answer = b.memory.meet(a.id, a.memory.handshake(b.id).unwrap()).unwrap();
        a.memory.confirm(b.id, &answer).unwrap();
    }
}

fn connect(from: &Process, writer: &dyn Writer, number: u8, reader: &dyn Reader) {
    writer.connect(&reader.accept(from.id, Gid([number; 16])).unwrap()).unwrap();
}

fn send(writer: &dyn Writer, bytes: usize) -> tsuji_transport::Result<()> {
    let mut loan = writer.loan(bytes)?;
    loan.fill(7);
    writer.send(&Envelope::default(), &Payload::Bytes(loan.freeze())).map(|_| ())
}

#[test]
fn a_writer_gets_the_memory_that_another_no_longer_uses() {
    let (one, two) = (Process::new(1, 16 << 20), Process::new(2, 16 << 20));
    meet(&one, &two);
    let (greedy, modest) = (one.writer(3), one.writer(4));
    let (first, second) = (two.reader(5), two.reader(6));
    connect(&one, &*greedy, 3, &*first);
    connect(&one, &*modest, 4, &*second);
    let full = loop {
        if let Err(error) = send(&*greedy, 3 << 20) {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::Busy, "{full}");
    assert_eq!(send(&*modest, 3 << 20).unwrap_err().kind(), ErrorKind::Busy);
    // All is read and free, and the greedy writer says nothing more.
    while first.take().unwrap().is_some() {}
    for _ in 0..3 {
        send(&*modest, 3 << 20).unwrap();
        send(&*modest, 2 << 20).unwrap();
        while second.take().unwrap().is_some() {}
    }
    send(&*greedy, 3 << 20).unwrap();
}

#[test]
fn a_writer_that_wants_memory_is_told_when_the_reader_of_another_dies() {
    let (one, two) = (Process::new(1, 16 << 20), Process::new(2, 16 << 20));
    meet(&one, &two);
    let (bell, room) = (one.bells.claim_bell().unwrap(), one.bells.claim_cell().unwrap());
    room.attach(&bell, 0);
    let (greedy, modest) = (one.writer(3), one.writer_with(4, Arc::new(room)));
    let reader = two.reader(5);
    connect(&one, &*greedy, 3, &*reader);
    while send(&*greedy, 3 << 20).is_ok() {}
    assert_eq!(modest.loan(3 << 20).unwrap_err().kind(), ErrorKind::Busy);
    bell.drain(|_| ());
    one.memory.part(two.id);
    assert!(bell.is_rung());
    modest.loan(3 << 20).unwrap();
}

#[test]
fn memory_that_is_all_held_is_trouble_until_some_is_free() {
    let (one, two) = (Process::new(1, 1 << 20), Process::new(2, 1 << 20));
    meet(&one, &two);
    let (greedy, modest) = (one.writer(3), one.writer(4));
    let (first, second) = (two.reader(5), two.reader(6));
    connect(&one, &*greedy, 3, &*first);
    connect(&one, &*modest, 4, &*second);
    assert_eq!(one.memory.trouble(), None);
    send(&*modest, 100).unwrap();
    while send(&*greedy, 250_000).is_ok() {}
    let trouble = one.memory.trouble().unwrap();
    assert!(trouble.starts_with("no shared memory left for "), "{trouble}");
    assert!(trouble.ends_with(" of 1.0 MiB are in use"), "{trouble}");
    // That there is room for the small does not help the large.
    send(&*modest, 100).unwrap();
    assert_eq!(one.memory.trouble(), Some(trouble));
    assert_eq!(two.memory.trouble(), None);
    // Nobody of this process hears of it: it is seen when asked.
    drop(first.take().unwrap().unwrap());
    assert_eq!(one.memory.trouble(), None);
    send(&*greedy, 250_000).unwrap();
    assert_eq!(one.memory.trouble(), None);
    assert_eq!(send(&*greedy, 250_000).unwrap_err().kind(), ErrorKind::Busy);
    assert!(one.memory.trouble().is_some());
    one.memory.part(two.id);
    assert_eq!(one.memory.trouble(), None);
}

#[test]
fn memory_that_another_writer_does_not_use_any_more_ends_the_trouble() {
    let (one, two) = (Process::new(1, 16 << 20), Process::new(2, 16 << 20));
    meet(&one, &two);
    let (greedy, modest) = (one.writer(3), one.writer(4));
    let reader = two.reader(5);
    connect(&one, &*greedy, 3, &*reader);
    while send(&*greedy, 3 << 20).is_ok() {}
    assert_eq!(modest.loan(2 << 20).unwrap_err().kind(), ErrorKind::Busy);
    assert!(one.memory.trouble().is_some());
    // What comes free is of another size.
    drop(reader.take().unwrap().unwrap());
    assert_eq!(one.memory.trouble(), None);
    modest.loan(2 << 20).unwrap();
}

#[test]
fn what_is_no_trouble() {
    let (one, two) = (Process::new(1, 1 << 20), Process::new(2, 1 << 20));
    meet(&one, &two);
    let (writer, reader) = (one.writer(3), two.reader(4));
    connect(&one, &*writer, 3, &*reader);
    while send(&*writer, 100).is_ok() {}
    assert_eq!(send(&*writer, 100).unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(one.memory.trouble(), None, "a reader that keeps all is full");
    assert_eq!(writer.loan(1 << 20).unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(one.memory.trouble(), None, "a sample is too large");
    let endpoint = Endpoint { keep_all_max: 500_000, ..Process::endpoint(5) };
    let news = Arc::new(two.bells.claim_cell().unwrap());
    let reader = two.memory.open_reader(&endpoint, news).unwrap();
    let error = reader.accept(one.id, Gid([3; 16])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert_eq!(two.memory.trouble(), None, "a reader has no room for a ring");
}

#[test]
fn a_sample_that_grows_and_shrinks_needs_no_more_memory_than_its_largest() {
    let (one, two) = (Process::new(1, 64 << 20), Process::new(2, 64 << 20));
    meet(&one, &two);
    let (writer, reader) = (one.writer(3), two.reader(4));
    connect(&one, &*writer, 3, &*reader);
    for round in 0..200usize {
        send(&*writer, 1000 + round % 23 * 700_000).unwrap();
        assert!(reader.take().unwrap().is_some());
    }
    let figures = one.memory.figures();
    let reserved = figures.iter().find(|(name, _)| *name == "reserved_bytes").unwrap().1;
    assert!(reserved < 40 << 20, "{figures:?}");
}

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tsuji_core::{Capability, History, Qos};
use tsuji_platform::memory::Backing;
use tsuji_transport::bell::{Bell, Bells, Cell};
use tsuji_transport::{
    Endpoint, Envelope, ErrorKind, Gid, Payload, PeerId, Reader, Result, Sample, Sent, Transport,
    Writer,
};

use crate::payload;
use crate::settled::PostOffice;

type Make = dyn Fn(PeerId, &Arc<Bells>) -> Arc<dyn Transport> + Send + Sync;

/// Two processes that know each other, as far as a transport can tell. By default the first
/// writes and the second reads.
pub struct World {
    processes: [Arc<Process>; 2],
    make: Box<Make>,
    is_shared: bool,
}

impl World {
    /// One transport that serves everybody in this process.
    pub fn shared(transport: impl Transport) -> Self {
        let transport: Arc<dyn Transport> = Arc::new(transport);
        Self::new(Box::new(move |_, _| Arc::clone(&transport)), true)
    }

    /// A transport for each process, which `make` makes, introduced to one another.
    pub fn between(
        make: impl Fn(PeerId, &Arc<Bells>) -> Arc<dyn Transport> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Box::new(make), false)
    }

    /// As [`between`](Self::between), for a transport that is not
    /// [`immediate`](Capability::immediate): each call waits until what it began has happened.
    pub fn settled(
        make: impl Fn(PeerId, &Arc<Bells>) -> Arc<dyn Transport> + Send + Sync + 'static,
    ) -> Self {
        let post = Arc::new(PostOffice::default());
        Self::between(move |id, bells| post.settle(id, make(id, bells)))
    }

    fn new(make: Box<Make>, is_shared: bool) -> Self {
        let one = Process::new(&*make);
        // Where one transport serves both, they are one process: one page of bells.
        let two = if is_shared { Arc::clone(&one) } else { Process::new(&*make) };
        let capability = one.transport.capability();
        assert!(capability.reliable, "the suite is for transports that declare reliable");
        let world = Self { processes: [one, two], make, is_shared };
        if !is_shared {
            world.one().meet(world.two());
        }
        world
    }

    /// The process that writes.
    pub fn one(&self) -> &Arc<Process> {
        &self.processes[0]
    }

    /// The process that reads.
    pub fn two(&self) -> &Arc<Process> {
        &self.processes[1]
    }

    /// A third process, which has met the first. Where one transport serves everybody it is the
    /// same process again.
    pub fn third(&self) -> Arc<Process> {
        if self.is_shared {
            return Arc::clone(self.one());
        }
        let third = Process::new(&*self.make);
        self.one().meet(&third);
        third
    }

    /// A process that has met nobody.
    pub fn unknown_peer(&self) -> Arc<Process> {
        Process::new(&*self.make)
    }

    /// Whether one transport serves everybody.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// What the transport declares.
    pub fn capability(&self) -> Capability {
        self.one().transport.capability()
    }

    /// So many rounds, or fewer where opening and closing an end takes its time.
    pub fn rounds(&self, many: u64) -> u64 {
        if self.capability().immediate { many } else { (many / 100).max(ROUNDS_MIN) }
    }

    /// A writer of the first process.
    #[track_caller]
    pub fn writer(&self, topic: &str) -> Outlet {
        self.one().writer(topic)
    }

    /// A reader of the second process.
    #[track_caller]
    pub fn reader(&self, topic: &str, keep: Keep) -> Inlet {
        self.two().reader(topic, keep)
    }

    /// A writer of the first process, connected to a reader of the second.
    #[track_caller]
    pub fn pair(&self, topic: &str, keep: Keep) -> (Outlet, Inlet) {
        let (writer, reader) = (self.writer(topic), self.reader(topic, keep));
        writer.connect(&reader);
        (writer, reader)
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("processes", &self.processes).finish_non_exhaustive()
    }
}

/// What a case needs to go through its variants.
const ROUNDS_MIN: u64 = 12;

/// What a process has.
#[derive(Debug)]
pub struct Process {
    /// Its name.
    pub id: PeerId,
    /// Its bells and cells.
    pub bells: Arc<Bells>,
    /// The transport under test.
    pub transport: Arc<dyn Transport>,
}

impl Process {
    fn new(make: &Make) -> Arc<Self> {
        let id = PeerId(name());
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let transport = make(id, &bells);
        Arc::new(Self { id, bells, transport })
    }

    /// What two control channels would do: each greets, each answers, each confirms.
    #[track_caller]
    pub fn meet(&self, other: &Self) {
        let from_self = self.transport.handshake(other.id).unwrap();
        let from_other = other.transport.handshake(self.id).unwrap();
        let to_self = other.transport.meet(self.id, from_self).unwrap();
        let to_other = self.transport.meet(other.id, from_other).unwrap();
        self.transport.confirm(other.id, &to_self).unwrap();
        other.transport.confirm(self.id, &to_other).unwrap();
    }

    /// The same with one channel, from a process to itself.
    #[track_caller]
    pub fn meet_itself(&self) {
        let handshake = self.transport.handshake(self.id).unwrap();
        let answer = self.transport.meet(self.id, handshake).unwrap();
        self.transport.confirm(self.id, &answer).unwrap();
    }

    /// A writer that is connected to nobody.
    #[track_caller]
    pub fn writer(self: &Arc<Self>, topic: &str) -> Outlet {
        let room = self.cell();
        let endpoint = endpoint(topic, Keep::Last(10));
        let writer = opened(|| self.transport.open_writer(&endpoint, Arc::clone(&room)));
        let (gid, process) = (endpoint.gid, Arc::clone(self));
        Outlet { writer, room, gid, endpoint, process, sequence: AtomicU64::new(0) }
    }

    /// A reader that is connected to nobody.
    #[track_caller]
    pub fn reader(self: &Arc<Self>, topic: &str, keep: Keep) -> Inlet {
        let arrivals = self.cell();
        let endpoint = endpoint(topic, keep);
        let reader = opened(|| self.transport.open_reader(&endpoint, Arc::clone(&arrivals)));
        Inlet { reader, arrivals, gid: endpoint.gid, process: Arc::clone(self) }
    }

    /// A cell that rings nowhere yet.
    pub fn cell(&self) -> Arc<Cell> {
        Arc::new(self.bells.claim_cell().unwrap())
    }

    /// A bell that one cell rings, as its entity 7, and that has nothing to tell yet.
    pub fn bell(&self, cell: &Cell) -> Bell {
        let bell = self.bells.claim_bell().unwrap();
        cell.attach(&bell, 7);
        bell.drain(|_| ());
        bell
    }
}

/// What a reader keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The newest so many.
    Last(u32),
    /// All, up to so many; then the writer waits.
    All(u32),
}

/// A volatile reliable endpoint of a topic, with a name of its own.
pub fn endpoint(topic: &str, keep: Keep) -> Endpoint {
    let (history, keep_all_max) = match keep {
        Keep::Last(depth) => (History::KeepLast(depth), 1000),
        Keep::All(limit) => (History::KeepAll, limit),
    };
    Endpoint {
        topic: topic.to_owned(),
        type_name: "test_msgs/msg/Bytes".to_owned(),
        gid: Gid(name()),
        qos: Qos { history, ..Qos::DEFAULT },
        keep_all_max,
        announced: None,
    }
}

/// 16 bytes that this process has not used before.
pub(crate) fn name() -> [u8; 16] {
    static MADE: AtomicU64 = AtomicU64::new(1);
    let number = u128::from(MADE.fetch_add(1, Ordering::Relaxed));
    (number | (u128::from(std::process::id()) << 96)).to_le_bytes()
}

/// A writer with its cell, which numbers what it sends. What it sends is a pattern that only its
/// name and the number make.
#[derive(Debug)]
pub struct Outlet {
    /// The writer under test.
    pub writer: Arc<dyn Writer>,
    /// Rung when there is room again.
    pub room: Arc<Cell>,
    /// Its name.
    pub gid: Gid,
    endpoint: Endpoint,
    process: Arc<Process>,
    sequence: AtomicU64,
}

impl Outlet {
    /// Lets `reader` accept this writer, and connects to it.
    #[track_caller]
    pub fn connect(&self, reader: &Inlet) {
        let address = reader.reader.accept(self.process.id, self.gid).unwrap();
        assert_eq!(address.reader, reader.gid);
        self.writer.connect(&address).unwrap();
    }

    /// Sends `len` bytes under the next number, or answers why not and keeps the number.
    pub fn try_send(&self, len: usize) -> Result<Sent> {
        let len = self.carried(len);
        let envelope = self.envelope();
        let payload = payload::payload(payload::seed(&envelope), len);
        self.count(self.writer.send(&envelope, &payload))
    }

    /// The same, at this time.
    pub fn try_send_at(&self, mono_ns: u64, len: usize) -> Result<Sent> {
        let len = self.carried(len);
        let envelope = Envelope { mono_ns, ..self.envelope() };
        let payload = payload::payload(payload::seed(&envelope), len);
        self.count(self.writer.send(&envelope, &payload))
    }

    /// The same, filling a loan in place.
    pub fn try_send_loan(&self, len: usize) -> Result<Sent> {
        let envelope = self.envelope();
        let mut loan = self.writer.loan(len)?;
        payload::fill(&mut loan, payload::seed(&envelope));
        self.count(self.writer.send(&envelope, &Payload::Bytes(loan.freeze())))
    }

    /// The same, but not to these readers.
    pub fn try_send_except(&self, filtered: &[Gid], len: usize) -> Result<Sent> {
        let len = self.carried(len);
        let envelope = self.envelope();
        let payload = payload::payload(payload::seed(&envelope), len);
        self.count(self.writer.send_except(filtered, &envelope, &payload))
    }

    /// The same, to one reader.
    pub fn try_send_to(&self, reader: Gid, len: usize) -> Result<Sent> {
        let envelope = self.envelope();
        let payload = payload::payload(payload::seed(&envelope), len);
        self.count(self.writer.send_to(reader, &envelope, &payload))
    }

    /// Sends what must go.
    #[track_caller]
    pub fn send(&self, len: usize) -> Sent {
        self.try_send(len).unwrap()
    }

    /// Sends `count` samples of `len` bytes that must go.
    #[track_caller]
    pub fn send_many(&self, count: u32, len: usize) {
        for _ in 0..count {
            self.send(len);
        }
    }

    /// Sends, waiting on `bell`, which the room cell rings, while there is no room.
    #[track_caller]
    pub fn send_when_there_is_room(&self, bell: &Bell, len: usize) -> Sent {
        wait(bell, || unless_busy(self.try_send(len)))
    }

    /// The envelope of the next sample.
    pub fn envelope(&self) -> Envelope {
        Envelope { gid: self.gid, sequence: self.sent() + 1, ..Envelope::default() }
    }

    /// The number of the last sample that was sent.
    pub fn sent(&self) -> u64 {
        self.sequence.load(Ordering::Relaxed)
    }

    /// What it was opened as.
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    /// A bell that the room cell rings.
    pub fn bell(&self) -> Bell {
        self.process.bell(&self.room)
    }

    /// As many bytes, or the few that the transport needs at least.
    pub fn carried(&self, len: usize) -> usize {
        if self.process.transport.capability().cdr_only { len.max(CDR_BYTES_MIN) } else { len }
    }

    fn count(&self, sent: Result<Sent>) -> Result<Sent> {
        self.sequence.fetch_add(u64::from(sent.is_ok()), Ordering::Relaxed);
        sent
    }
}

/// The encapsulation header alone.
const CDR_BYTES_MIN: usize = 4;

/// A reader with its cell.
#[derive(Debug)]
pub struct Inlet {
    /// The reader under test.
    pub reader: Arc<dyn Reader>,
    /// Rung when there may be a sample.
    pub arrivals: Arc<Cell>,
    /// Its name.
    pub gid: Gid,
    process: Arc<Process>,
}

impl Inlet {
    /// The next sample if there is one, which must be whole.
    #[track_caller]
    pub fn take(&self) -> Option<Sample> {
        let sample = self.reader.take().unwrap()?;
        payload::assert_whole(&sample);
        Some(sample)
    }

    /// The numbers of all samples that are there, which must be whole.
    #[track_caller]
    pub fn numbers(&self) -> Vec<u64> {
        let mut numbers = Vec::new();
        while let Some(sample) = self.take() {
            numbers.push(sample.envelope.sequence);
        }
        numbers
    }

    /// The next sample, waiting on `bell`, which the cell of arrivals rings, while there is none.
    #[track_caller]
    pub fn take_when_there_is_one(&self, bell: &Bell) -> Sample {
        wait(bell, || self.take())
    }

    /// A bell that the cell of arrivals rings.
    pub fn bell(&self) -> Bell {
        self.process.bell(&self.arrivals)
    }
}

/// What `ready` answers, sleeping on `bell` while that is nothing.
pub(crate) fn wait<T>(bell: &Bell, mut ready: impl FnMut() -> Option<T>) -> T {
    loop {
        bell.drain(|_| ());
        if let Some(value) = ready() {
            return value;
        }
        bell.wait(None);
    }
}

/// The value, or `None` when it is to be tried again.
#[track_caller]
pub(crate) fn unless_busy<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if error.kind() == ErrorKind::Busy => None,
        Err(error) => panic!("{error}"),
    }
}

/// The result is a refusal of this kind.
#[track_caller]
pub(crate) fn refused<T>(result: Result<T>, kind: ErrorKind) {
    match result {
        Ok(_) => panic!("not refused; expected {kind:?}"),
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
    }
}

/// What opens in the end: a transport may be busy with joining for as long as its machine is. The watchdog cuts a hang.
#[track_caller]
fn opened<T>(open: impl Fn() -> Result<T>) -> T {
    loop {
        if let Some(opened) = unless_busy(open()) {
            return opened;
        }
        std::thread::yield_now();
    }
}

//! What stands behind every client, whatever its type: the requests that are open, and who reads the
//! replies.
//!
//! Replies are read by one of the threads that wait for one, which sleeps on a doorbell and hands the
//! others theirs; or, from the first await on, by the thread of the context that wakes tasks. Nobody
//! has to spin.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::thread::Thread;
use std::time::Duration;

use tsuji_platform::clock;
use tsuji_transport::bell::{Bell, Cell};
use tsuji_transport::{ErrorKind as TransportKind, Gid, Sample};

use crate::executor::Entity;
use crate::news::Inbox;
use crate::publication::{Opened, Opening, Outgoing, Parting, Publication};
use crate::reception::Reception;
use crate::{CallbackGroup, CallbackGroupKind, Error, ErrorKind, Node, Result};

/// What a client has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientCounters {
    /// Requests sent.
    pub sent: u64,
    /// Replies handed to the user.
    pub replied: u64,
    /// Calls whose time was up after the request was sent.
    pub timed_out: u64,
    /// Requests whose every server left before it answered.
    pub lost: u64,
    /// Requests that were dropped before a reply came.
    pub forgotten: u64,
    /// Replies that nobody waited for: after the time was up, or after another server's.
    pub late: u64,
    /// Requests that are open now.
    pub open: u64,
}

pub(crate) struct Calls {
    node: Node,
    pub(crate) publication: Arc<Publication>,
    pub(crate) reception: Arc<Reception>,
    table: Mutex<Table>,
    /// Held by the thread that takes replies and hands them out: they are handed out as they came, and no server
    /// is taken for silent whose reply another thread has just taken.
    taking: Mutex<()>,
    /// That thread, or 0.
    taker: AtomicUsize,
}

#[derive(Default)]
struct Table {
    /// By the number of the request; at most [`OPEN_MAX`].
    open: HashMap<u64, Call>,
    /// Requests whose replies are collected and have come, oldest first.
    arrived: VecDeque<u64>,
    /// Requests, and a server of each that has left: it is lost if no reply of it has come.
    left: Vec<(u64, Gid)>,
    reader: Reads,
    counters: ClientCounters,
}

/// Who reads replies.
#[derive(Default)]
enum Reads {
    #[default]
    Nobody,
    /// A thread that waits for a reply of its own.
    AThread,
    /// The context's thread that wakes tasks.
    TheContext(Arc<dyn Entity>),
}

/// An open request.
struct Call {
    progress: Progress,
    waits: Waits,
    /// Nobody waits for this reply; it is asked for whatever has come.
    is_collected: bool,
}

enum Progress {
    /// These servers have it and may answer.
    Asked(Vec<Gid>),
    Replied(Sample),
    Lost,
}

/// Who is to be told of progress.
enum Waits {
    Nobody,
    /// The thread that reads.
    TheReader,
    Thread(Thread),
    Task(Waker),
}

impl Calls {
    pub(crate) fn new(
        node: Node,
        publication: Arc<Publication>,
        reception: Arc<Reception>,
    ) -> Arc<Self> {
        let calls = Arc::new(Self {
            node,
            publication,
            reception,
            table: Mutex::default(),
            taking: Mutex::default(),
            taker: AtomicUsize::new(0),
        });
        let parting: Weak<dyn Parting> = Arc::<Self>::downgrade(&calls);
        calls.publication.tell_partings(parting);
        calls.publication.host.wake_at_end(&calls.reception.news);
        calls
    }

    /// Sends a request to all servers that are ready, and answers its number. Waits for room for at
    /// most `patience`.
    pub(crate) fn send(&self, request: &Outgoing<'_>, patience: Duration) -> Result<u64> {
        self.send_as(request, patience, false)
    }

    /// Sends a request whose reply will be [collected](Self::collect). Where too many are open, the oldest
    /// such request is forgotten.
    pub(crate) fn post(&self, request: &Outgoing<'_>, patience: Duration) -> Result<u64> {
        self.send_as(request, patience, true)
    }

    /// The oldest reply that has come to a request that was posted, with the request's number.
    pub(crate) fn collect(&self) -> Result<Option<(u64, Sample)>> {
        self.publication.open("take a reply")?;
        self.read();
        let mut table = self.lock();
        while let Some(number) = table.arrived.pop_front() {
            if let Some(Some(sample)) = table.finished(number) {
                return Ok(Some((number, sample)));
            }
        }
        Ok(None)
    }

    fn send_as(
        &self,
        request: &Outgoing<'_>,
        patience: Duration,
        is_collected: bool,
    ) -> Result<u64> {
        self.publication.open("send a request")?;
        // What waits here would hold the servers back.
        self.read();
        let (number, refused) = (0.into(), None.into());
        let asked = Asked { calls: self, number, refused, is_collected };
        let sent = self.publication.request(request, &asked, patience);
        match (sent, asked.refused.get()) {
            (Ok(()), _) => {
                self.lock().counters.sent += 1;
                Ok(asked.number.get())
            }
            (Err(_), Some(Refused::NoServer)) => Err(self.no_server("at the moment")),
            (Err(_), Some(Refused::Full)) => Err(Error::new(
                ErrorKind::Busy,
                format!(
                    "call {}: {OPEN_MAX} requests are open; wait for some, or drop them",
                    self.publication.topic
                ),
            )),
            (Err(error), None) => Err(error),
        }
    }

    /// Waits for the reply to request `number`, which is forgotten then, for at most until
    /// `give_up_ns`.
    pub(crate) fn wait(self: &Arc<Self>, number: u64, give_up_ns: u64) -> Result<Option<Sample>> {
        loop {
            if let Err(closed) = self.publication.open("wait for a reply") {
                self.wake_all();
                return Err(closed);
            }
            self.read();
            let mut table = self.lock();
            if let Some(reply) = table.finished(number) {
                drop(table);
                return reply.ok_or_else(|| self.lost()).map(Some);
            }
            let now_ns = clock::monotonic_ns();
            if give_up_ns <= now_ns {
                return Ok(None);
            }
            let Table { open, reader, .. } = &mut *table;
            let Some(call) = open.get_mut(&number) else { return Ok(None) };
            if matches!(reader, Reads::Nobody) {
                call.waits = Waits::TheReader;
                *reader = Reads::AThread;
                drop(table);
                self.read_until(number, give_up_ns)?;
            } else {
                call.waits = Waits::Thread(std::thread::current());
                drop(table);
                std::thread::park_timeout(Duration::from_nanos(give_up_ns - now_ns));
            }
        }
    }

    /// The reply to request `number` if it is there; else `waker` is woken when it may be.
    pub(crate) fn poll(self: &Arc<Self>, number: u64, waker: &Waker) -> Result<Option<Sample>> {
        self.publication.open("await a reply")?;
        self.read();
        let mut table = self.lock();
        if let Some(reply) = table.finished(number) {
            drop(table);
            return reply.ok_or_else(|| self.lost()).map(Some);
        }
        if let Some(call) = table.open.get_mut(&number) {
            call.waits = Waits::Task(waker.clone());
        }
        drop(table);
        self.let_the_context_read()?;
        Ok(None)
    }

    /// Forgets a request. A reply that comes later is counted.
    pub(crate) fn forget(&self, number: u64, why: impl FnOnce(&mut ClientCounters)) {
        let mut table = self.lock();
        let forgotten = table.open.remove(&number);
        if forgotten.is_some() {
            why(&mut table.counters);
        }
        drop(table);
        // A reply is the user's, and may do anything when dropped.
        drop(forgotten);
    }

    pub(crate) fn counters(&self) -> ClientCounters {
        // A forked child may find the locks held for ever.
        if !self.publication.host.is_current() {
            return ClientCounters::default();
        }
        self.read();
        let table = self.lock();
        ClientCounters { open: table.open.len() as u64, ..table.counters }
    }

    /// The client is dropped.
    pub(crate) fn close(&self) {
        let reader = std::mem::take(&mut self.lock().reader);
        if let Reads::TheContext(entity) = reader
            && let Ok(waking) = self.node.context().waking()
        {
            waking.detach(&entity);
        }
    }

    /// The error of whoever finds no server, with what keeps those from answering that are there.
    pub(crate) fn no_server(&self, when: &str) -> Error {
        let service = &self.publication.topic;
        let obstacles = self.obstacles();
        let mut what = format!("call {service}: no server is ready {when}");
        if !obstacles.is_empty() {
            what = format!("{what}; {}", obstacles.join("; "));
        }
        Error::new(ErrorKind::NoServer, what)
    }

    /// What keeps servers from answering that are there.
    pub(crate) fn obstacles(&self) -> Vec<String> {
        // A forked child may find the lock held for ever.
        if !self.publication.host.is_current() {
            return Vec::new();
        }
        let (requests, replies) = (self.publication.gid, self.reception.gid);
        self.publication.host.directory().obstacles(requests, replies)
    }

    fn lost(&self) -> Error {
        Error::new(
            ErrorKind::ServerLost,
            format!(
                "call {}: the server left or died before it replied; the request may have been \
                 performed",
                self.publication.topic
            ),
        )
    }

    /// Hands out the replies that have come, and ends what nobody can answer any more.
    fn read(&self) {
        let here = this_thread();
        if self.taker.load(Ordering::Relaxed) == here {
            // What was dropped while this thread took replies asks for something.
            return;
        }
        let mut after = After::default();
        {
            let _turn = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
            let _taking = Taking::begin(&self.taker, here);
            self.read_alone(&mut after);
        }
        // Replies are the user's, and may do anything when dropped.
        after.tasks.into_iter().for_each(Waker::wake);
        drop(after.late);
    }

    fn read_alone(&self, after: &mut After) {
        // Before the replies are read: whoever has left has said all it will.
        let left = std::mem::take(&mut self.lock().left);
        // An error says that it is closed, which everybody finds who waits.
        while let Ok(Some((sample, _))) = self.reception.take() {
            self.hand_out(sample, after);
        }
        if left.is_empty() {
            return;
        }
        let mut table = self.lock();
        let mut lost = Vec::new();
        for (number, server) in left {
            let Some(call) = table.open.get_mut(&number) else { continue };
            let Progress::Asked(servers) = &mut call.progress else { continue };
            servers.retain(|it| *it != server);
            if servers.is_empty() {
                call.progress = Progress::Lost;
                lost.push(std::mem::replace(&mut call.waits, Waits::Nobody));
                if call.is_collected {
                    // Nobody asks what became of it.
                    table.open.remove(&number);
                }
                table.counters.lost += 1;
            }
        }
        drop(table);
        lost.into_iter().for_each(|waits| self.wake_after(waits, after));
    }

    fn hand_out(&self, sample: Sample, after: &mut After) {
        let mut table = self.lock();
        let number = sample.envelope.related.filter(|(client, _)| *client == self.publication.gid);
        let call = number.and_then(|(_, number)| table.open.get_mut(&number));
        let asked = call.filter(|call| matches!(call.progress, Progress::Asked(_)));
        let Some(call) = asked else {
            table.counters.late += 1;
            return after.late.push(sample);
        };
        call.progress = Progress::Replied(sample);
        let (related, is_collected) = (number.map(|(_, number)| number), call.is_collected);
        let waits = std::mem::replace(&mut call.waits, Waits::Nobody);
        table.arrived.extend(related.filter(|_| is_collected));
        drop(table);
        self.wake_after(waits, after);
    }

    fn wake_after(&self, waits: Waits, after: &mut After) {
        match waits {
            Waits::Task(waker) => after.tasks.push(waker),
            waits => self.wake(waits),
        }
    }

    fn wake(&self, waits: Waits) {
        match waits {
            Waits::Nobody => (),
            Waits::TheReader => self.reception.news.ring(),
            Waits::Thread(thread) => thread.unpark(),
            Waits::Task(waker) => waker.wake(),
        }
    }

    /// Lets everybody who waits look anew.
    fn wake_all(&self) {
        let mut table = self.lock();
        let calls = table.open.values_mut();
        let all = calls.map(|call| std::mem::replace(&mut call.waits, Waits::Nobody));
        let all: Vec<_> = all.collect();
        drop(table);
        all.into_iter().for_each(|waits| self.wake(waits));
    }

    /// Reads replies on this thread until that to request `number` is there, it is time to give up,
    /// or somebody else reads.
    fn read_until(self: &Arc<Self>, number: u64, give_up_ns: u64) -> Result<()> {
        let reading = Reading::begin(self);
        let bell = match self.publication.host.bells().claim_bell() {
            Ok(bell) if reading.number <= READING_MAX => bell,
            Err(error) if error.kind() != TransportKind::Exhausted => return Err(error.into()),
            _ => {
                // One bell of the context's does for all.
                drop(reading);
                return self.let_the_context_read();
            }
        };
        // Ends before the bell does, which nothing may ring then.
        let reading = reading;
        if !reading.sleep_on(&bell) {
            return Ok(());
        }
        loop {
            // Whatever rings from here on will be seen by the wait below.
            bell.drain(|_| ());
            if self.publication.open("wait for a reply").is_err() {
                return Ok(());
            }
            self.read();
            let table = self.lock();
            let asked = table.open.get(&number).map(|call| &call.progress);
            let is_asked = matches!(asked, Some(Progress::Asked(_)));
            if !is_asked || !matches!(table.reader, Reads::AThread) {
                return Ok(());
            }
            drop(table);
            let now_ns = clock::monotonic_ns();
            if give_up_ns <= now_ns {
                return Ok(());
            }
            bell.wait(Some(Duration::from_nanos(give_up_ns - now_ns)));
        }
    }

    /// From now on the context's thread reads.
    fn let_the_context_read(self: &Arc<Self>) -> Result<()> {
        let mut table = self.lock();
        if matches!(table.reader, Reads::TheContext(_)) {
            return Ok(());
        }
        let waking = self.node.context().waking()?;
        let entity: Arc<dyn Entity> = Arc::new(Replies {
            calls: Arc::downgrade(self),
            news: Arc::clone(&self.reception.news),
            group: CallbackGroup::new(CallbackGroupKind::Reentrant),
        });
        // The thread that reads now is woken to find out, before its bell is rung no more.
        self.reception.news.ring();
        waking.attach(&entity)?;
        table.reader = Reads::TheContext(entity);
        Ok(())
    }

    /// Nothing panics while holding this lock, so a poisoned one is still sound.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inbox for Calls {
    fn cell(&self) -> &Arc<Cell> {
        &self.reception.news
    }

    /// Replies to be collected.
    fn waiting(&self, _most: usize) -> usize {
        if self.publication.open("look").is_err() {
            return 0;
        }
        self.read();
        self.lock().arrived.len()
    }
}

impl Parting for Calls {
    fn left(&self, server: Gid) {
        let mut table = self.lock();
        let Table { open, left, .. } = &mut *table;
        let had_it = open.iter().filter(|(_, call)| {
            matches!(&call.progress, Progress::Asked(servers) if servers.contains(&server))
        });
        left.extend(had_it.map(|(number, _)| (*number, server)));
        drop(table);
        // Whoever reads finds out, after what the server still said.
        self.reception.news.ring();
    }
}

impl Table {
    /// Forgets the oldest request whose reply is collected, if there are too many requests.
    fn make_room(&mut self) -> Option<Call> {
        if self.open.len() < OPEN_MAX {
            return None;
        }
        let collected = self.open.iter().filter(|(_, call)| call.is_collected);
        let oldest = *collected.map(|(number, _)| number).min()?;
        self.arrived.retain(|it| *it != oldest);
        self.counters.forgotten += 1;
        self.open.remove(&oldest)
    }

    /// What became of request `number`, once something has: the reply, or `None` if there will be
    /// none.
    fn finished(&mut self, number: u64) -> Option<Option<Sample>> {
        let call = self.open.get(&number)?;
        if matches!(call.progress, Progress::Asked(_)) {
            return None;
        }
        match self.open.remove(&number)?.progress {
            Progress::Replied(sample) => {
                self.counters.replied += 1;
                Some(Some(sample))
            }
            Progress::Asked(_) | Progress::Lost => Some(None),
        }
    }
}

/// What is the user's, and may do anything: for when no lock is held.
#[derive(Default)]
struct After {
    /// Replies that nobody waits for, to be dropped.
    late: Vec<Sample>,
    tasks: Vec<Waker>,
}

/// A thread takes replies.
struct Taking<'a>(&'a AtomicUsize);

impl<'a> Taking<'a> {
    fn begin(taker: &'a AtomicUsize, thread: usize) -> Self {
        taker.store(thread, Ordering::Relaxed);
        Self(taker)
    }
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// A number that no other thread has while this one lives, and that is not 0.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

/// This thread reads. When it ends, another that waits takes its place.
struct Reading<'a> {
    calls: &'a Calls,
    /// How many threads of the process read, this one included.
    number: usize,
}

static READING: AtomicUsize = AtomicUsize::new(0);

impl<'a> Reading<'a> {
    fn begin(calls: &'a Calls) -> Self {
        Self { calls, number: READING.fetch_add(1, Ordering::Relaxed) + 1 }
    }

    /// Lets replies ring `bell`, unless the context reads meanwhile.
    fn sleep_on(&self, bell: &Bell) -> bool {
        let table = self.calls.lock();
        let is_reader = matches!(table.reader, Reads::AThread);
        if is_reader {
            self.calls.reception.news.attach(bell, 0);
        }
        is_reader
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        READING.fetch_sub(1, Ordering::Relaxed);
        let mut table = self.calls.lock();
        let mut next = None;
        if matches!(table.reader, Reads::AThread) {
            self.calls.reception.news.detach();
            table.reader = Reads::Nobody;
            let mut waiting = table.open.values_mut().map(|call| &mut call.waits);
            let thread = waiting.find(|waits| matches!(waits, Waits::Thread(_)));
            next = thread.map(|waits| std::mem::replace(waits, Waits::Nobody));
        }
        drop(table);
        if let Some(next) = next {
            self.calls.wake(next);
        }
    }
}

/// Whoever waits for the reply to a request that is being sent.
struct Asked<'a> {
    calls: &'a Calls,
    number: std::cell::Cell<u64>,
    refused: std::cell::Cell<Option<Refused>>,
    is_collected: bool,
}

/// Why a request was not sent.
#[derive(Clone, Copy)]
enum Refused {
    NoServer,
    Full,
}

impl Opening for Asked<'_> {
    fn open(&self, number: u64, servers: &mut dyn Iterator<Item = Gid>) -> Opened {
        let servers: Vec<Gid> = servers.collect();
        self.number.set(number);
        if servers.is_empty() && self.is_collected {
            return Opened::Skip;
        }
        let mut table = self.calls.lock();
        let forgotten = if self.is_collected { table.make_room() } else { None };
        let refused = match table.open.len() {
            _ if servers.is_empty() => Some(Refused::NoServer),
            OPEN_MAX.. => Some(Refused::Full),
            _ => None,
        };
        self.refused.set(refused);
        if refused.is_none() {
            let progress = Progress::Asked(servers);
            let call = Call { progress, waits: Waits::Nobody, is_collected: self.is_collected };
            table.open.insert(number, call);
        }
        drop(table);
        // A reply is the user's, and may do anything when dropped.
        drop(forgotten);
        if refused.is_none() { Opened::Send } else { Opened::Refuse }
    }

    fn unopen(&self, number: u64) {
        self.calls.lock().open.remove(&number);
    }
}

/// Hands out replies on the context's thread.
struct Replies {
    calls: Weak<Calls>,
    news: Arc<Cell>,
    group: CallbackGroup,
}

impl Entity for Replies {
    fn cell(&self) -> Option<&Arc<Cell>> {
        Some(&self.news)
    }

    fn run(&self, _more: &mut dyn FnMut()) {
        let Some(calls) = self.calls.upgrade() else { return };
        calls.read();
        if calls.publication.open("await a reply").is_err() {
            calls.wake_all();
        }
    }

    fn group(&self) -> &CallbackGroup {
        &self.group
    }
}

/// Open requests of one client, those included whose reply was not taken. Beyond it a request answers
/// Busy.
const OPEN_MAX: usize = 1024;

/// Threads of the process that read replies, each with a doorbell. Beyond it the context's thread
/// reads, so that bells are left for everything else.
const READING_MAX: usize = 32;

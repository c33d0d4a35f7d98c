//! What stands behind every client, whatever its type: the requests that are open, and who reads the
//! replies.
//!
//! Replies are read by one of the threads that wait for one, which sleeps on a doorbell and hands the
//! others theirs; or, from the first await on, by the thread of the context that wakes tasks. Nobody
//! has to spin.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, Weak};
use std::task::Waker;
use std::thread::Thread;
use std::time::Duration;

use tsuji_platform::ordered::{Mutex, MutexGuard};
use tsuji_platform::{clock, report};
use tsuji_transport::bell::{Bell, Cell};
use tsuji_transport::{ErrorKind as TransportKind, Gid, Sample};

use crate::arrivals::{Inbox, Tally};
use crate::executor::Entity;
use crate::publisher_core::{Opened, Opening, Outgoing, Parting, PublisherCore};
use crate::subscription_core::SubscriptionCore;
use crate::turn::Turn;
use crate::{CallbackGroup, CallbackGroupKind, Error, ErrorKind, Node, Result};

/// Counts of what a client has done so far.
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
    /// Replies pushed out by newer ones before they were taken, where the
    /// [depth is kept](crate::ClientOptions::keep_depth).
    pub displaced: u64,
    /// Requests that are open now.
    pub open: u64,
}

pub(crate) struct Calls {
    node: Node,
    pub(crate) publisher_core: Arc<PublisherCore>,
    pub(crate) subscription_core: Arc<SubscriptionCore>,
    table: Mutex<Table>,
    /// Held by the thread that takes replies and hands them out: they are handed out as they came, and no server
    /// is taken for silent whose reply another thread has just taken.
    turn: Turn,
    /// How many replies are kept that are to be collected.
    depth: usize,
}

#[derive(Default)]
struct Table {
    /// By the number of the request; at most [`OPEN_MAX`].
    open: HashMap<u64, Call>,
    /// Requests whose replies are collected and have come, oldest first.
    arrived: VecDeque<u64>,
    /// How many were in `arrived` and are not any more.
    departed: u64,
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
        publisher_core: Arc<PublisherCore>,
        subscription_core: Arc<SubscriptionCore>,
        depth: Option<u32>,
    ) -> Arc<Self> {
        let calls = Arc::new(Self {
            node,
            publisher_core,
            subscription_core,
            table: Mutex::default(),
            turn: Turn::default(),
            depth: depth.map_or(usize::MAX, |depth| depth as usize),
        });
        let parting: Weak<dyn Parting> = Arc::<Self>::downgrade(&calls);
        calls.publisher_core.tell_partings(parting);
        calls.publisher_core.session.wake_at_end(&calls.subscription_core.news);
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
        self.publisher_core.open("take a reply")?;
        self.read();
        let mut table = self.lock();
        while let Some(number) = table.arrived.pop_front() {
            table.departed += 1;
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
        self.publisher_core.open("send a request")?;
        // What waits here would hold the servers back.
        self.read();
        let (number, refused) = (0.into(), None.into());
        let asked = Asked { calls: self, number, refused, is_collected };
        let sent = self.publisher_core.request(request, &asked, patience);
        match (sent, asked.refused.get()) {
            (Ok(()), _) => {
                self.lock().counters.sent += 1;
                Ok(asked.number.get())
            }
            (Err(_), Some(Refused::NoServer)) => Err(self.no_server()),
            (Err(_), Some(Refused::Full)) => Err(Error::new(
                ErrorKind::Busy,
                format!(
                    "call {}: {OPEN_MAX} requests are open; wait for some, or drop them",
                    self.publisher_core.topic
                ),
            )),
            (Err(error), None) => Err(error),
        }
    }

    /// Waits for the reply to request `number`, which is forgotten then, for at most until
    /// `give_up_ns`.
    pub(crate) fn wait(self: &Arc<Self>, number: u64, give_up_ns: u64) -> Result<Option<Sample>> {
        loop {
            if let Err(closed) = self.publisher_core.open("wait for a reply") {
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
            // A task that awaited it before is the user's, and may do anything when it is dropped.
            if matches!(reader, Reads::Nobody) {
                let before = std::mem::replace(&mut call.waits, Waits::TheReader);
                *reader = Reads::AThread;
                drop(table);
                drop(before);
                self.read_until(number, give_up_ns)?;
            } else {
                let here = Waits::Thread(std::thread::current());
                let before = std::mem::replace(&mut call.waits, here);
                drop(table);
                drop(before);
                // The end that came before wakes it no more.
                if self.publisher_core.open("wait for a reply").is_ok() {
                    std::thread::park_timeout(Duration::from_nanos(give_up_ns - now_ns));
                }
            }
        }
    }

    /// The reply to request `number` if it is there; else `waker` is woken when it may be.
    pub(crate) fn poll(self: &Arc<Self>, number: u64, waker: &Waker) -> Result<Option<Sample>> {
        self.publisher_core.open("await a reply")?;
        self.read();
        // A waker is the user's, and may do anything when it is copied or dropped.
        let mut waits = Waits::Task(waker.clone());
        let mut table = self.lock();
        if let Some(reply) = table.finished(number) {
            drop(table);
            return reply.ok_or_else(|| self.lost()).map(Some);
        }
        if let Some(call) = table.open.get_mut(&number) {
            std::mem::swap(&mut call.waits, &mut waits);
        }
        drop(table);
        drop(waits);
        self.let_the_context_read()?;
        // The end that came before wakes it no more.
        self.publisher_core.open("await a reply")?;
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
        if !self.publisher_core.session.is_current() {
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
    pub(crate) fn no_server(&self) -> Error {
        let service = &self.publisher_core.topic;
        let obstacles = self.obstacles();
        let what = format!("call {service}: no server is ready");
        let hint: String = obstacles.iter().map(|it| format!("; {it}")).collect();
        let no_server = Error::new(ErrorKind::NoServer, what).hint(hint);
        // When the context ends, all servers go out of its sight.
        self.publisher_core.open("look for a server").err().unwrap_or(no_server)
    }

    /// What keeps servers from answering that are there.
    pub(crate) fn obstacles(&self) -> Vec<String> {
        // A forked child may find the lock held for ever.
        if !self.publisher_core.session.is_current() {
            return Vec::new();
        }
        let (requests, replies) = (self.publisher_core.gid, self.subscription_core.gid);
        let session = &self.publisher_core.session;
        session.graph_cache().obstacles(session, requests, replies)
    }

    fn lost(&self) -> Error {
        Error::new(
            ErrorKind::ServerLost,
            format!(
                "call {}: the server left or died before it replied; the request may have been \
                 performed",
                self.publisher_core.topic
            ),
        )
    }

    /// Hands out the replies that have come, and ends what nobody can answer any more.
    fn read(&self) {
        let Some(turn) = self.turn.take() else { return };
        let mut after = After::default();
        self.read_alone(&mut after);
        drop(turn);
        if after.displaced_first {
            let (service, depth) = (&self.publisher_core.topic, self.depth);
            report::warn!(%service, depth, "more replies wait than the depth of the client: the oldest are dropped");
        }
        // Replies are the user's, and may do anything when dropped.
        after.tasks.into_iter().for_each(Waker::wake);
        drop(after.late);
    }

    fn read_alone(&self, after: &mut After) {
        // Before the replies are read: whoever has left has said all it will.
        let left = std::mem::take(&mut self.lock().left);
        // An error says that it is closed, which everybody finds who waits.
        while let Ok(Some((sample, _))) = self.subscription_core.take() {
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
        let number =
            sample.envelope.related.filter(|(client, _)| *client == self.publisher_core.gid);
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
        if self.depth < table.arrived.len() {
            let oldest = table.arrived.pop_front().and_then(|oldest| table.open.remove(&oldest));
            table.departed += 1;
            table.counters.displaced += 1;
            after.displaced_first |= table.counters.displaced == 1;
            if let Some(Call { progress: Progress::Replied(sample), .. }) = oldest {
                after.late.push(sample);
            }
        }
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
            Waits::TheReader => self.subscription_core.news.ring(),
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
        let mut reading = Reading::begin(self);
        let bell = match self.publisher_core.session.bells().claim_bell() {
            Ok(bell) if reading.number <= READING_MAX => bell,
            Err(error) if error.kind() != TransportKind::Exhausted => return Err(error.into()),
            _ => {
                // One bell of the context's does for all.
                drop(reading);
                return self.let_the_context_read();
            }
        };
        let Some(bell) = reading.sleep_on(bell) else { return Ok(()) };
        loop {
            // Whatever rings from here on will be seen by the wait below.
            bell.drain(|_| ());
            if self.publisher_core.open("wait for a reply").is_err() {
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
            news: Arc::clone(&self.subscription_core.news),
            group: CallbackGroup::new(CallbackGroupKind::Reentrant),
        });
        // The thread that reads now is woken to find out, before its bell is rung no more.
        self.subscription_core.news.ring();
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
        &self.subscription_core.news
    }

    /// Replies to be collected.
    fn waiting(&self, most: usize) -> usize {
        self.tally(most).waiting
    }

    fn tally(&self, _most: usize) -> Tally {
        if self.publisher_core.open("look").is_err() {
            return Tally::default();
        }
        self.read();
        let table = self.lock();
        Tally { waiting: table.arrived.len(), left: table.departed, is_wrong: false }
    }
}

impl Parting for Calls {
    fn left(&self, server: Gid) {
        // At the end of this context all servers go out of its sight: none has left.
        if self.publisher_core.session.is_stopping() {
            return;
        }
        let mut table = self.lock();
        let Table { open, left, .. } = &mut *table;
        let had_it = open.iter().filter(|(_, call)| {
            matches!(&call.progress, Progress::Asked(servers) if servers.contains(&server))
        });
        left.extend(had_it.map(|(number, _)| (*number, server)));
        drop(table);
        // Whoever reads finds out, after what the server still said.
        self.subscription_core.news.ring();
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
        let before = self.arrived.len();
        self.arrived.retain(|it| *it != oldest);
        self.departed += (before - self.arrived.len()) as u64;
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
    /// The first reply of all was pushed out.
    displaced_first: bool,
    tasks: Vec<Waker>,
}

/// This thread reads. When it ends, another that waits takes its place.
struct Reading<'a> {
    calls: &'a Calls,
    /// How many threads of the process read, this one included.
    number: usize,
    /// Replies ring it.
    bell: Option<Bell>,
}

static READING: AtomicUsize = AtomicUsize::new(0);

impl<'a> Reading<'a> {
    fn begin(calls: &'a Calls) -> Self {
        Self { calls, number: READING.fetch_add(1, Ordering::Relaxed) + 1, bell: None }
    }

    /// Lets replies ring `bell`, unless the context reads meanwhile.
    fn sleep_on(&mut self, bell: Bell) -> Option<&Bell> {
        let table = self.calls.lock();
        if !matches!(table.reader, Reads::AThread) {
            return None;
        }
        self.calls.subscription_core.news.attach(&bell, 0);
        Some(self.bell.insert(bell))
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        READING.fetch_sub(1, Ordering::Relaxed);
        if let Some(bell) = &self.bell {
            self.calls.subscription_core.news.detach_from(bell);
        }
        let mut table = self.calls.lock();
        let mut next = None;
        if matches!(table.reader, Reads::AThread) {
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
        if calls.publisher_core.open("await a reply").is_err() {
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

//! When the engine runs: it joins when something needs it, and leaves when nothing has for a while.
//!
//! Whatever is opened of a participant has a lease on it. When the last lease has ended and none is taken for a
//! stated time, the participant leaves; the next lease joins anew. One that watches the domain is announced to
//! others, and stays.
//!
//! To join and to leave may take long. Both are done by threads of their own, one at a time; whoever opens
//! something for a flow, with others waiting behind it, waits for a join that is short and is else told to come
//! again.

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use tsuji_platform::clock;
use tsuji_platform::fork::Generation;
use tsuji_platform::ordered::{Condvar, Mutex};
use tsuji_platform::poll::Waker;
use tsuji_transport::deferred::told;
use tsuji_transport::engines::{EngineRun, EngineStatus, Need};
use tsuji_transport::{Error, ErrorKind, Result};

use crate::engine::{Participant, Watch};
use crate::gauge::{Gauge, Growth};
use crate::{Shared, lock};

/// How long an engine that nothing needs stays, unless it is told otherwise.
pub const IDLE_DEFAULT: Duration = Duration::from_secs(10);

/// How soon is looked again at a lease that is just ending.
const ENDING_NS: u64 = 1_000_000;

/// How long, and how often, is looked whether a participant that was let go has no lease any more.
const LET_GO_NS: u64 = 10_000_000_000;
const LET_GO_PAUSE: Duration = Duration::from_millis(20);

/// How long whoever opens something for a flow waits for a join. Those of the engines that are known take a
/// tenth of it at most, where no names of hosts are asked for; but a machine may be busy, or emulated.
const JOIN_PATIENCE: Duration = Duration::from_secs(2);

/// How long at least whoever was told to come again is waited for: a flow does within 10 s.
const AWAITED_NS: u64 = 30_000_000_000;

/// The participant, while there is one, and those before it.
#[derive(Debug)]
pub(crate) struct Membership {
    current: Mutex<Option<Arc<Member>>>,
    /// For how long nothing needs it before it leaves; [`NEVER`] for always.
    idle_ns: AtomicU64,
    /// How often it has joined.
    joins: AtomicU64,
    /// The last that has left.
    last: Mutex<Option<EngineRun>>,
    /// Why it could not join, for whoever was told to come again; and when that was.
    failure: Mutex<Option<(Error, u64)>>,
}

const NEVER: u64 = u64::MAX;

impl Default for Membership {
    fn default() -> Self {
        Self {
            current: Mutex::default(),
            idle_ns: AtomicU64::new(IDLE_DEFAULT.as_nanos() as u64),
            joins: AtomicU64::new(0),
            last: Mutex::default(),
            failure: Mutex::default(),
        }
    }
}

/// One participant, from when it has joined.
struct Member {
    // In this order: what watches is deleted before the participant.
    watch: OnceLock<Box<dyn Watch>>,
    participant: Box<dyn Participant>,
    /// What it was joined for.
    need: Need,
    /// The addresses that it uses, beside those of loopback.
    addresses: Vec<IpAddr>,
    since_wall_ns: i64,
    left_wall_ns: AtomicI64,
    /// What the process has had more since, over the join and over its first writer and its first reader.
    growth: Mutex<Growth>,
    is_measured: [AtomicBool; 2],
    leases: AtomicUsize,
    /// Whoever wanted it was told to come again, and nobody has a lease yet.
    is_awaited: AtomicBool,
    /// When the last lease ended.
    idle_since_ns: AtomicU64,
    /// Told when the last lease ends.
    waker: Arc<Waker>,
    generation: Generation,
}

/// Keeps the participant.
pub(crate) struct Lease(Arc<Member>);

impl Membership {
    pub(crate) fn set_idle(&self, idle: Option<Duration>) {
        let idle_ns = idle.map_or(NEVER, |it| u64::try_from(it.as_nanos()).unwrap_or(NEVER));
        self.idle_ns.store(idle_ns, Ordering::Relaxed);
    }

    /// Whether there is a participant. To look is not to need it.
    pub(crate) fn is_there(&self) -> bool {
        lock(&self.current).is_some()
    }

    /// Calls `work` with the participant, if there is one. That alone does not keep it from leaving.
    pub(crate) fn with_participant(&self, work: impl FnOnce(&dyn Participant)) {
        let member = lock(&self.current).clone();
        if let Some(member) = member {
            work(&*member.participant);
        }
    }

    /// Why it could not join, if somebody who was told to come again is still to learn that.
    fn take_failure(&self) -> Option<Error> {
        let (error, at_ns) = lock(&self.failure).take()?;
        (clock::monotonic_ns().saturating_sub(at_ns) < AWAITED_NS).then_some(error)
    }

    /// A lease on the participant that is there, if there is one.
    pub(crate) fn current(&self) -> Option<Lease> {
        lock(&self.current).as_ref().map(Lease::new)
    }
}

/// Who starts the engine or ends it: one at a time.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    now: Mutex<Option<Doing>>,
    is_over: Condvar,
}

/// What is being done to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Start,
    /// The names of hosts are asked for.
    SlowStart,
    End,
}

/// The turn of whoever has this.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Shared>);

impl Turns {
    pub(crate) fn doing(&self) -> Option<Doing> {
        *lock(&self.now)
    }

    /// Waits until nothing is being done, for so long at most.
    fn wait(&self, timeout: Duration) {
        let waited = self.is_over.wait_timeout_while(lock(&self.now), timeout, |it| it.is_some());
        drop(waited);
    }
}

impl Turn {
    /// Waits for it.
    pub(crate) fn take(shared: &Arc<Shared>, doing: Doing) -> Self {
        let turns = &shared.turns;
        let now = turns.is_over.wait_while(lock(&turns.now), |it| it.is_some());
        *now.unwrap_or_else(PoisonError::into_inner) = Some(doing);
        Self(Arc::clone(shared))
    }

    fn try_take(shared: &Arc<Shared>, doing: Doing) -> Option<Self> {
        let mut now = lock(&shared.turns.now);
        now.is_none().then(|| {
            *now = Some(doing);
            Self(Arc::clone(shared))
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *lock(&self.0.turns.now) = None;
        self.0.turns.is_over.notify_all();
    }
}

impl Shared {
    /// The participant, for a flow: others wait for whoever asks. While it leaves, or where it takes long to join,
    /// this answers Busy.
    pub(crate) fn participant_now(self: &Arc<Self>, need: impl FnOnce() -> Need) -> Result<Lease> {
        self.open(JOIN)?;
        if let Some(lease) = self.membership.current() {
            return Ok(lease);
        }
        let doing = match self.turns.doing() {
            Some(doing) => doing,
            None => {
                if let Some(error) = self.membership.take_failure() {
                    return Err(error);
                }
                self.start_apart(need())?
            }
        };
        let (patience, why) = match doing {
            Doing::Start => (JOIN_PATIENCE, "it is still joining"),
            Doing::SlowStart => (Duration::ZERO, "names of hosts are being resolved"),
            Doing::End => (Duration::ZERO, "its engine is just being shut down"),
        };
        self.turns.wait(patience);
        match self.membership.current() {
            Some(lease) => Ok(lease),
            None => Err(match self.membership.take_failure() {
                Some(error) => error,
                None => Error::new(ErrorKind::Busy, JOIN).about(why),
            }),
        }
    }

    /// The participant, joined if it is not there. While another leaves this waits for its end.
    pub(crate) fn participant(self: &Arc<Self>, need: impl FnOnce() -> Need) -> Result<Lease> {
        self.open(JOIN)?;
        if let Some(lease) = self.membership.current() {
            return Ok(lease);
        }
        let _turn = Turn::take(self, self.start());
        match self.membership.current() {
            Some(lease) => Ok(lease),
            None => self.join(need(), false),
        }
    }

    fn start(&self) -> Doing {
        if self.engine.joins_slowly() { Doing::SlowStart } else { Doing::Start }
    }

    /// Joins on a thread of its own, unless that has just begun. Answers what is being done.
    fn start_apart(self: &Arc<Self>, need: Need) -> Result<Doing> {
        let doing = self.start();
        let Some(turn) = Turn::try_take(self, doing) else { return Ok(doing) };
        let shared = Arc::clone(self);
        let join = move || {
            // Somebody else may have joined before the turn came.
            let joined = match shared.membership.current() {
                Some(_) => Ok(()),
                None => shared.join(need, true).map(drop),
            };
            if let Err(error) = joined {
                *lock(&shared.membership.failure) = Some((error, clock::monotonic_ns()));
            }
            drop(turn);
            shared.wake();
        };
        self.apart("tsuji-start", join).map(|()| doing).map_err(|error| {
            Error::new(ErrorKind::Exhausted, JOIN).about("a thread").because(error)
        })
    }

    /// Joins. Called by whoever has the turn.
    fn join(&self, need: Need, is_awaited: bool) -> Result<Lease> {
        let gauge = Gauge::begin_named(self.about.id.as_str());
        // Before: what changes meanwhile is another than these.
        let addresses = self.engine.addresses();
        let joined = self.engine.join();
        let growth = gauge.end();
        let member = Arc::new(Member {
            watch: OnceLock::new(),
            participant: joined?,
            need,
            addresses,
            since_wall_ns: clock::wall_ns(),
            left_wall_ns: AtomicI64::new(0),
            growth: Mutex::new(growth),
            is_measured: Default::default(),
            leases: AtomicUsize::new(0),
            is_awaited: AtomicBool::new(false),
            idle_since_ns: AtomicU64::new(0),
            waker: Arc::clone(&self.control_message.waker),
            generation: self.generation,
        });
        let lease = Lease::new(&member);
        member.is_awaited.store(is_awaited, Ordering::Release);
        self.membership.joins.fetch_add(1, Ordering::Relaxed);
        *lock(&self.membership.current) = Some(member);
        self.apply_treatments();
        // Whoever only listened on the wire looks at it from now on.
        self.wake();
        Ok(lease)
    }

    /// Begins to leave if nothing has needed the participant for long enough, and else answers when to look again,
    /// if it is to be looked at by time at all. A thread of its own does what takes long.
    pub(crate) fn leave_if_idle(self: &Arc<Self>, now_ns: u64) -> Option<u64> {
        let idle_ns = self.membership.idle_ns.load(Ordering::Relaxed);
        let mut current = lock(&self.membership.current);
        let member = current.as_ref()?;
        // New leases are taken under the lock, or from one that there is.
        let is_needed = member.leases.load(Ordering::Acquire) != 0 || member.watch.get().is_some();
        if is_needed || idle_ns == NEVER {
            return None;
        }
        let stays_ns = match member.is_awaited.load(Ordering::Acquire) {
            true => idle_ns.max(AWAITED_NS),
            false => idle_ns,
        };
        let due_ns = member.idle_since_ns.load(Ordering::Acquire).saturating_add(stays_ns);
        if now_ns < due_ns {
            return Some(due_ns);
        }
        if Arc::strong_count(member) != 1 {
            return Some(now_ns.saturating_add(ENDING_NS));
        }
        // Before it is seen to be gone. Whoever has the turn wakers when it is over.
        let turn = Turn::try_take(self, Doing::End)?;
        let member = current.take()?;
        drop(current);
        member.left_wall_ns.store(clock::wall_ns(), Ordering::Relaxed);
        *lock(&self.membership.last) = Some(member.run());
        let leaving = Leaving { member: Some(member), idle_ns, turn };
        // Where there is no thread to be had the closure is dropped, here and now.
        let _ = self.apart("tsuji-end", move || drop(leaving));
        None
    }

    /// Why the participant that is there should join anew, if it should: it uses other addresses than it would now. Where
    /// there are none to use now, those that it has may come back.
    pub(crate) fn moved(&self) -> Option<String> {
        let member = lock(&self.membership.current).as_ref().map(Arc::clone)?;
        let now = self.engine.addresses();
        if now.is_empty() || now == member.addresses {
            return None;
        }
        let list = |all: &[IpAddr]| match all {
            [] => "loopback alone".to_owned(),
            some => some.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", "),
        };
        Some(format!("this host has {}, and it uses {}", list(&now), list(&member.addresses)))
    }

    /// Lets the participant go, that the next may join: it leaves when the last that was opened of it is dropped.
    pub(crate) fn let_go(self: &Arc<Self>) {
        let Some(member) = lock(&self.membership.current).take() else { return };
        member.left_wall_ns.store(clock::wall_ns(), Ordering::Relaxed);
        *lock(&self.membership.last) = Some(member.run());
        // Whoever has the last lease must not be the one that waits for the engine's end.
        let _ = self.apart("tsuji-end", move || {
            let began_ns = clock::monotonic_ns();
            while 1 < Arc::strong_count(&member)
                && clock::monotonic_ns().saturating_sub(began_ns) < LET_GO_NS
            {
                std::thread::sleep(LET_GO_PAUSE);
            }
            drop(member);
        });
    }

    /// Opens an endpoint; of the first of each kind it is noted what the process has more since.
    pub(crate) fn measured<T>(
        &self,
        lease: &Lease,
        kind: FirstOf,
        open: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let member = &lease.0;
        if member.is_measured[kind as usize].swap(true, Ordering::Relaxed) {
            return open();
        }
        let gauge = Gauge::begin_named(self.about.id.as_str());
        let opened = open();
        lock(&member.growth).add(gauge.end());
        opened
    }

    /// For people.
    pub(crate) fn status(&self) -> EngineStatus {
        let membership = &self.membership;
        let idle_ns = membership.idle_ns.load(Ordering::Relaxed);
        let library = self.engine.library();
        // Not a lease: to look at it is not to need it.
        let current = lock(&membership.current);
        let run = current.as_ref().map(|it| it.run());
        drop(current);
        EngineStatus {
            is_loaded: library.is_loaded,
            library: library.path,
            version: library.version,
            run: run.or_else(|| lock(&membership.last).clone()),
            joins: membership.joins.load(Ordering::Relaxed),
            idle: (idle_ns != NEVER).then(|| Duration::from_nanos(idle_ns)),
        }
    }
}

const JOIN: &str = "join the domain";

/// A participant on its way out, which takes as long as it takes to drop this.
struct Leaving {
    member: Option<Arc<Member>>,
    idle_ns: u64,
    // The last: when it is over another may join.
    turn: Turn,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let gauge = Gauge::begin();
        let began_ns = clock::monotonic_ns();
        self.member = None;
        let took_ns = clock::monotonic_ns() - began_ns;
        let left = gauge.end();
        told::info!(
            transport = %self.turn.0.about.id,
            "nothing has needed the engine for {} s: shut down in {} ms; {} threads and {} KiB less",
            self.idle_ns as f64 / 1e9,
            took_ns / 1_000_000,
            left.ended_threads,
            (-left.resident_bytes / 1024).max(0),
        );
    }
}

/// Whose first endpoint it is.
#[derive(Clone, Copy)]
pub(crate) enum FirstOf {
    Writers,
    Readers,
}

impl Member {
    fn run(&self) -> EngineRun {
        let left_wall_ns = self.left_wall_ns.load(Ordering::Relaxed);
        let growth = lock(&self.growth);
        EngineRun {
            need: self.need.clone(),
            since_wall_ns: self.since_wall_ns,
            left_wall_ns: (left_wall_ns != 0).then_some(left_wall_ns),
            users: self.leases.load(Ordering::Relaxed),
            is_on_the_wire: self.watch.get().is_some(),
            threads: growth.names(),
            resident_bytes: growth.resident_bytes,
            is_shared: growth.is_shared,
        }
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("participant", &self.participant).finish_non_exhaustive()
    }
}

impl Lease {
    fn new(member: &Arc<Member>) -> Self {
        member.leases.fetch_add(1, Ordering::Relaxed);
        member.is_awaited.store(false, Ordering::Release);
        Self(Arc::clone(member))
    }

    pub(crate) fn participant(&self) -> &dyn Participant {
        &*self.0.participant
    }

    pub(crate) fn watch(&self) -> Option<&dyn Watch> {
        self.0.watch.get().map(|it| &**it)
    }

    /// From now on this watches. Called by one at a time.
    pub(crate) fn keep_watching(&self, watch: Box<dyn Watch>) {
        self.0.watch.get_or_init(|| watch);
    }
}

impl Clone for Lease {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let member = &*self.0;
        // Before the count: whoever finds none left finds the time too.
        member.idle_since_ns.store(clock::monotonic_ns(), Ordering::Release);
        if member.leases.fetch_sub(1, Ordering::AcqRel) == 1 && member.generation.is_current() {
            member.waker.give();
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use tsuji_core::{Peers, Scopes, TransportId};
    use tsuji_transport::{PeerId, Transport};

    use super::*;
    use crate::EngineTransport;
    use crate::engine::{About, EndpointSpec, Engine, EngineReader, EngineWriter, Guid, Listener};

    /// Counts who is there. Joins and leaves when it may: whoever holds these locks makes that take long.
    #[derive(Clone, Debug, Default)]
    struct Fake {
        there: Arc<AtomicUsize>,
        joining: Arc<Mutex<()>>,
        leaving: Arc<Mutex<()>>,
        is_slow: bool,
        is_broken: Arc<AtomicBool>,
    }

    impl Engine for Fake {
        fn about(&self) -> About {
            About {
                id: TransportId::new("fake"),
                scopes: Scopes { intra: false, local: true, remote: false },
                peers: Peers::ALL,
                sample_bytes_max: 1000,
                relates: tsuji_transport::wire::Relates::Never,
            }
        }

        fn network(&self) -> u32 {
            0
        }

        fn joins_slowly(&self) -> bool {
            self.is_slow
        }

        fn join(&self) -> Result<Box<dyn Participant>> {
            drop(lock(&self.joining));
            if self.is_broken.load(Ordering::Acquire) {
                return Err(Error::new(ErrorKind::Invalid, JOIN).about("no such host"));
            }
            assert_eq!(self.there.fetch_add(1, Ordering::AcqRel), 0, "one at a time");
            Ok(Box::new(FakeParticipant(self.clone())))
        }
    }

    #[derive(Debug)]
    struct FakeParticipant(Fake);

    impl Drop for FakeParticipant {
        fn drop(&mut self) {
            drop(lock(&self.0.leaving));
            self.0.there.fetch_sub(1, Ordering::AcqRel);
        }
    }

    #[derive(Debug)]
    struct FakeWatch;

    impl Watch for FakeWatch {
        fn take(&self) -> Vec<tsuji_transport::wire::Found> {
            Vec::new()
        }
    }

    impl Participant for FakeParticipant {
        fn guid(&self) -> Guid {
            [1; 16]
        }

        fn writer(&self, _: &EndpointSpec<'_>) -> Result<Box<dyn EngineWriter>> {
            Err(Error::new(ErrorKind::Unsupported, "open a writer"))
        }

        fn reader(&self, _: &EndpointSpec<'_>) -> Result<Box<dyn EngineReader>> {
            Err(Error::new(ErrorKind::Unsupported, "open a reader"))
        }

        fn watch(&self, _: &Arc<dyn Listener>) -> Result<Box<dyn Watch>> {
            Ok(Box::new(FakeWatch))
        }
    }

    fn transport(idle: Option<Duration>) -> (EngineTransport, Arc<AtomicUsize>) {
        let fake = Fake::default();
        let there = Arc::clone(&fake.there);
        let transport = EngineTransport::new(PeerId([1; 16]), fake).unwrap();
        (transport.ending_after(idle), there)
    }

    fn lease(transport: &EngineTransport) -> Lease {
        transport.shared.participant(|| Need::Writer("/t".to_owned())).unwrap()
    }

    /// Waits until nothing is being done.
    fn ended(transport: &EngineTransport) {
        drop(Turn::take(&transport.shared, Doing::End));
    }

    fn now(transport: &EngineTransport) -> Result<Lease> {
        transport.shared.participant_now(|| Need::Reader("/t".to_owned()))
    }

    #[track_caller]
    fn is_busy(transport: &EngineTransport, why: &str) {
        let error = now(transport).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }

    #[test]
    fn nobody_waits_while_it_leaves_but_who_may() {
        let fake = Fake::default();
        let transport = EngineTransport::new(PeerId([1; 16]), fake.clone()).unwrap();
        let transport = transport.ending_after(Some(Duration::from_nanos(1)));
        drop(now(&transport).unwrap());
        let held = lock(&fake.leaving);
        // Neither who tidies nor a flow that wants it again.
        assert_eq!(transport.tidy(u64::MAX), None);
        is_busy(&transport, "just being shut down");
        assert_eq!((transport.tidy(u64::MAX), fake.there.load(Ordering::Acquire)), (None, 1));
        assert!(transport.engine().unwrap().run.unwrap().left_wall_ns.is_some());
        let other = transport.clone();
        let joins = std::thread::spawn(move || drop(lease(&other)));
        drop(held);
        joins.join().unwrap();
        ended(&transport);
        drop(now(&transport).unwrap());
        assert_eq!(transport.engine().unwrap().joins, 2);
    }

    #[test]
    fn nobody_waits_for_the_names_of_hosts() {
        let fake = Fake { is_slow: true, ..Fake::default() };
        let transport = EngineTransport::new(PeerId([1; 16]), fake.clone()).unwrap();
        let transport = transport.ending_after(Some(Duration::from_nanos(1)));
        let before_ns = clock::monotonic_ns();
        let held = lock(&fake.joining);
        // The first neither.
        is_busy(&transport, "names of hosts");
        is_busy(&transport, "names of hosts");
        drop(held);
        ended(&transport);
        // It does not leave before those have come again, however short it stays else.
        let due_ns = transport.tidy(clock::monotonic_ns()).unwrap();
        assert!(before_ns + AWAITED_NS <= due_ns);
        drop(now(&transport).unwrap());
        assert_eq!(transport.engine().unwrap().joins, 1);
        assert_eq!((transport.tidy(u64::MAX), ended(&transport)), (None, ()));
        assert_eq!(fake.there.load(Ordering::Acquire), 0);
        // What came of it is told to whoever comes again, and then it is tried anew.
        fake.is_broken.store(true, Ordering::Release);
        is_busy(&transport, "names of hosts");
        ended(&transport);
        let error = now(&transport).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        is_busy(&transport, "names of hosts");
    }

    /// Of what does not say before that it takes long.
    #[test]
    fn whoever_waits_for_a_join_does_so_for_a_while() {
        let fake = Fake::default();
        let transport = EngineTransport::new(PeerId([1; 16]), fake.clone()).unwrap();
        let held = lock(&fake.joining);
        is_busy(&transport, "still joining");
        drop(held);
        ended(&transport);
        drop(now(&transport).unwrap());
        assert_eq!(transport.engine().unwrap().joins, 1);
        // An error of one that is short comes at once.
        let fake = Fake::default();
        fake.is_broken.store(true, Ordering::Release);
        let transport = EngineTransport::new(PeerId([1; 16]), fake).unwrap();
        assert_eq!(now(&transport).unwrap_err().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn what_nothing_needs_leaves_when_its_time_has_passed() {
        let idle = Duration::from_secs(10);
        let (transport, there) = transport(Some(idle));
        let is_there = || there.load(Ordering::Acquire) == 1;
        let run = || transport.engine().unwrap().run.unwrap();
        assert_eq!((transport.tidy(u64::MAX), is_there()), (None, false));
        assert_eq!(transport.engine().unwrap().run, None);
        let (one, other) = (lease(&transport), lease(&transport));
        drop(one);
        assert_eq!((transport.tidy(u64::MAX), is_there(), run().users), (None, true, 1));
        let before_ns = clock::monotonic_ns();
        drop(other);
        let due_ns = transport.tidy(before_ns).unwrap();
        assert!(before_ns + 10_000_000_000 <= due_ns);
        assert_eq!((transport.tidy(due_ns - 1), is_there()), (Some(due_ns), true));
        // It was needed again, and the time begins anew.
        drop(lease(&transport));
        let due_ns = transport.tidy(due_ns).unwrap_or(due_ns);
        assert_eq!(transport.tidy(due_ns), None);
        ended(&transport);
        assert!(!is_there() && run().left_wall_ns.is_some());
        let again = lease(&transport);
        assert_eq!(
            (is_there(), run().left_wall_ns, transport.engine().unwrap().joins),
            (true, None, 2)
        );
        assert_eq!(run().need, Need::Writer("/t".to_owned()));
        drop(again);
    }

    #[test]
    fn what_is_on_the_wire_or_is_to_stay_does_not_leave() {
        let (shown, there) = transport(Some(Duration::from_nanos(1)));
        shown.wire().unwrap().join().unwrap();
        assert_eq!((shown.tidy(u64::MAX), there.load(Ordering::Acquire)), (None, 1));
        let (kept, there) = transport(None);
        drop(lease(&kept));
        assert_eq!((kept.tidy(u64::MAX), there.load(Ordering::Acquire)), (None, 1));
    }

    /// Whoever opens something while the participant leaves has one that is there.
    #[test]
    fn nobody_has_a_lease_on_what_has_left() {
        let (transport, there) = transport(Some(Duration::from_nanos(1)));
        std::thread::scope(|scope| {
            let users: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        // And as long as the other thread has not come to let it leave.
                        for round in 0.. {
                            let joins = transport.engine().unwrap().joins;
                            if 2_000 <= round && 1 < joins {
                                break;
                            }
                            let one = lease(&transport);
                            let other = one.clone();
                            drop(one);
                            assert_eq!(there.load(Ordering::Acquire), 1);
                            drop(other);
                        }
                    })
                })
                .collect();
            while !users.iter().all(|it| it.is_finished()) {
                transport.tidy(u64::MAX);
            }
        });
        transport.tidy(u64::MAX);
        ended(&transport);
        assert_eq!(there.load(Ordering::Acquire), 0);
    }
}

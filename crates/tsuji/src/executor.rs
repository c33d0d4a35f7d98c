//! Running callbacks: one thread or several, one place to sleep in.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tsuji_platform::clock;
use tsuji_transport::bell::{Bell, Cell, ENTITIES_MAX};

use crate::host::Host;
use crate::{Context, Error, ErrorKind, Node, Result};

/// Something that an executor runs when it is ready.
pub(crate) trait Entity: Send + Sync {
    /// What is rung when it may be ready; `None` for what is ready by time only.
    fn cell(&self) -> Option<&Arc<Cell>>;

    /// Runs one piece of work, if there is one. Calls `more` if there may be further pieces. Never
    /// runs twice at a time.
    fn run(&self, more: &mut dyn FnMut());

    /// When it is ready by time, on the monotonic clock.
    fn due_ns(&self) -> Option<u64> {
        None
    }

    /// The group that it shares with others.
    fn group(&self) -> &CallbackGroup;
}

/// Callbacks that do not overlap, or may. One callback never overlaps with itself.
#[derive(Clone, Debug)]
pub struct CallbackGroup {
    number: u64,
    kind: CallbackGroupKind,
}

/// Whether callbacks of a group may overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackGroupKind {
    /// One at a time.
    MutuallyExclusive,
    /// Any number of different ones at a time.
    Reentrant,
}

impl CallbackGroup {
    pub(crate) fn new(kind: CallbackGroupKind) -> Self {
        static GROUPS: AtomicU64 = AtomicU64::new(0);
        Self { number: GROUPS.fetch_add(1, Ordering::Relaxed), kind }
    }

    /// Whether its callbacks may overlap.
    pub fn kind(&self) -> CallbackGroupKind {
        self.kind
    }
}

/// Runs the callbacks of nodes on one thread or several.
///
/// A panic in a callback ends the spin, on all its threads, and comes out of it. Whoever catches it
/// may spin again.
///
/// Threads that have nothing to do sleep; one of them sleeps on the doorbell, the others wait for
/// it to find more work than it can do alone.
pub struct Executor {
    core: Arc<ExecutorCore>,
    threads: usize,
    nodes: Vec<Node>,
}

impl Executor {
    /// An executor without nodes, of one thread.
    pub fn new(context: &Context) -> Result<Self> {
        let core = ExecutorCore::new(context.host())?;
        Ok(Self { core, threads: 1, nodes: Vec::new() })
    }

    /// Runs callbacks on so many threads, at least 1, the one that calls [`spin`](Self::spin)
    /// among them.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Adds a node: what it has now and what it will get. A node belongs to one executor.
    pub fn add(&mut self, node: &Node) -> Result<&mut Self> {
        node.join(&self.core)?;
        self.nodes.push(node.clone());
        Ok(self)
    }

    /// Runs callbacks until the context is shut down; if it is already, nothing.
    pub fn spin(&mut self) -> Result<()> {
        self.spin_until(|| false)
    }

    /// Runs callbacks until `done` says so, which is asked first, after each callback and whenever
    /// something happened, or until the context is shut down.
    pub fn spin_until(&mut self, done: impl Fn() -> bool + Sync) -> Result<()> {
        self.run(&done)
    }

    /// Runs each callback that is ready, once; if none is, waits for at most `timeout`.
    pub fn spin_once(&mut self, timeout: Duration) -> Result<()> {
        if self.core.is_over()? {
            return Ok(());
        }
        let give_up_ns = crate::pacing::after(clock::monotonic_ns(), timeout);
        self.core.lock().is_ending = false;
        self.core.work_once(give_up_ns);
        self.core.is_of_this_process()
    }

    /// What lets a spin ask from any thread whether it is done.
    pub fn waker(&self) -> impl Fn() + Send + Sync + use<> + 'static {
        let core = Arc::clone(&self.core);
        move || core.wake()
    }

    /// Starts the thread that wakes those who await messages. It ends with
    /// [`ExecutorCore::end`].
    pub(crate) fn start_waking(host: &Arc<Host>) -> Result<Arc<ExecutorCore>> {
        let core = ExecutorCore::new(host)?;
        let working = Arc::clone(&core);
        let spawned = std::thread::Builder::new()
            .name("tsuji-await".to_owned())
            .stack_size(256 * 1024)
            .spawn(move || {
                working.work(&|| false);
                // Whoever still awaits something finds the end.
                working.run_all();
            });
        spawned.map_err(|error| Error::new(ErrorKind::Exhausted, "threads").because(error))?;
        Ok(core)
    }

    fn run(&self, done: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        if self.core.is_over()? || done() {
            return Ok(());
        }
        self.core.lock().is_ending = false;
        std::thread::scope(|scope| {
            for number in 1..self.threads {
                let name = format!("tsuji-spin-{number}");
                let core = &self.core;
                let spawned = std::thread::Builder::new()
                    .name(name)
                    .spawn_scoped(scope, move || core.work(done));
                if let Err(error) = spawned {
                    self.core.end();
                    return Err(Error::new(ErrorKind::Exhausted, "threads").because(error));
                }
            }
            self.core.work(done);
            self.core.is_of_this_process()
        })
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        if !self.core.host.is_current() {
            return;
        }
        self.nodes.iter().for_each(Node::leave);
        self.core.clear();
    }
}

pub(crate) struct ExecutorCore {
    host: Arc<Host>,
    bell: Bell,
    /// Rung when threads should look at the state anew.
    guard: Arc<Cell>,
    state: Mutex<State>,
    more: Condvar,
}

struct State {
    /// By the number that the bell knows them by; number 0 is the guard.
    entities: Vec<Option<Entry>>,
    free: Vec<u16>,
    /// Those that want to run at times.
    timed: Vec<u16>,
    ready: VecDeque<u16>,
    busy_groups: Vec<u64>,
    /// Runs until the bell is looked at again.
    left_of_round: usize,
    has_leader: bool,
    waiting: usize,
    is_ending: bool,
}

struct Entry {
    entity: Weak<dyn Entity>,
    is_queued: bool,
    is_running: bool,
    has_time: bool,
    /// It left while it ran; its number is free when it has ended.
    is_gone: bool,
}

impl ExecutorCore {
    pub(crate) fn new(host: &Arc<Host>) -> Result<Arc<Self>> {
        let (bell, guard) = host.guarded_bell(0)?;
        let state = State {
            entities: vec![None],
            free: Vec::new(),
            timed: Vec::new(),
            ready: VecDeque::new(),
            busy_groups: Vec::new(),
            left_of_round: 0,
            has_leader: false,
            waiting: 0,
            is_ending: false,
        };
        Ok(Arc::new(Self {
            host: Arc::clone(host),
            bell,
            guard,
            state: Mutex::new(state),
            more: Condvar::new(),
        }))
    }

    /// Runs this entity from now on.
    pub(crate) fn attach(&self, entity: &Arc<dyn Entity>) -> Result<()> {
        let mut state = self.lock();
        let number = match state.free.pop() {
            Some(number) => number,
            None if state.entities.len() < ENTITIES_MAX as usize => {
                state.entities.push(None);
                (state.entities.len() - 1) as u16
            }
            None => {
                return Err(Error::new(
                    ErrorKind::Exhausted,
                    format!("an executor runs at most {ENTITIES_MAX} callbacks"),
                ));
            }
        };
        let has_time = entity.due_ns().is_some();
        state.entities[number as usize] = Some(Entry {
            entity: Arc::downgrade(entity),
            is_queued: false,
            is_running: false,
            has_time,
            is_gone: false,
        });
        if has_time {
            state.timed.push(number);
        }
        drop(state);
        match entity.cell() {
            Some(cell) => cell.attach(&self.bell, number),
            None => self.guard.ring(),
        }
        Ok(())
    }

    /// Runs this entity no longer. A callback that runs just now runs to its end.
    pub(crate) fn detach(&self, entity: &Arc<dyn Entity>) {
        if let Some(cell) = entity.cell() {
            cell.detach();
        }
        let mut state = self.lock();
        let same = |entry: &Option<Entry>| {
            entry
                .as_ref()
                .is_some_and(|it| std::ptr::addr_eq(it.entity.as_ptr(), Arc::as_ptr(entity)))
        };
        if let Some(number) = state.entities.iter().position(same) {
            state.remove(number as u16);
        }
    }

    /// Wakes the threads to look at everything anew.
    pub(crate) fn wake(&self) {
        self.guard.ring();
    }

    fn run_all(&self) {
        let state = self.lock();
        let entities = state.entities.iter().flatten().filter_map(|it| it.entity.upgrade());
        let entities: Vec<_> = entities.collect();
        drop(state);
        entities.iter().for_each(|entity| entity.run(&mut || ()));
    }

    fn clear(&self) {
        let mut state = self.lock();
        state.timed.clear();
        let entries: Vec<Entry> = state.entities.drain(..).flatten().collect();
        drop(state);
        for entity in entries.iter().filter_map(|entry| entry.entity.upgrade()) {
            if let Some(cell) = entity.cell() {
                cell.detach();
            }
        }
    }

    pub(crate) fn end(&self) {
        self.lock().is_ending = true;
        self.more.notify_all();
        self.guard.ring();
    }

    /// Whether the context is shut down, as a signal may do before a spin begins. Fails in a forked
    /// child.
    fn is_over(&self) -> Result<bool> {
        if self.host.is_current() && self.host.is_stopping() {
            return Ok(true);
        }
        self.host.open("spin")?;
        Ok(false)
    }

    /// Fails in a forked child, which a callback may have turned into.
    fn is_of_this_process(&self) -> Result<()> {
        if self.host.is_current() { Ok(()) } else { self.host.open("spin") }
    }

    /// One thread's work until the end.
    fn work(&self, done: &dyn Fn() -> bool) {
        let _end = EndAtPanic(self);
        let mut state = self.lock();
        while self.goes_on(&state) {
            if state.left_of_round == 0 && !state.has_leader && !state.ready.is_empty() {
                // Whoever always has more does not keep the others from being seen.
                state.gather(&self.bell);
            }
            if let Some((number, entity)) = state.next_ready() {
                state.left_of_round = state.left_of_round.saturating_sub(1);
                if state.waiting != 0 && !state.has_leader {
                    // Another must take the lead while this one works.
                    self.more.notify_one();
                }
                drop(state);
                self.run(number, &entity);
                drop(entity);
                if done() {
                    self.end();
                }
                state = self.lock();
                continue;
            }
            if state.has_leader {
                state.waiting += 1;
                state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.waiting -= 1;
                continue;
            }
            state.has_leader = true;
            let due_ns = state.due_ns();
            drop(state);
            self.sleep(due_ns);
            if done() {
                self.end();
            }
            state = self.lock();
            state.has_leader = false;
            state.gather(&self.bell);
            if state.waiting != 0 && 1 < state.ready.len() {
                self.more.notify_all();
            }
        }
        drop(state);
        // Whoever waits finds the end too, or takes the lead.
        self.more.notify_all();
    }

    /// One round on this thread: what is ready, or what is first to be until `give_up_ns`.
    fn work_once(&self, give_up_ns: u64) {
        let _end = EndAtPanic(self);
        let mut state = self.lock();
        state.gather(&self.bell);
        while state.ready.is_empty() && self.goes_on(&state) {
            let due_ns = state.due_ns();
            drop(state);
            self.sleep(Some(due_ns.map_or(give_up_ns, |it| it.min(give_up_ns))));
            state = self.lock();
            state.gather(&self.bell);
            if give_up_ns <= clock::monotonic_ns() {
                break;
            }
        }
        // What comes while these run is for the next round.
        for _ in 0..state.ready.len() {
            let next = self.goes_on(&state).then(|| state.next_ready()).flatten();
            let Some((number, entity)) = next else { break };
            drop(state);
            self.run(number, &entity);
            drop(entity);
            state = self.lock();
        }
    }

    fn goes_on(&self, state: &State) -> bool {
        !state.is_ending && !self.host.is_stopping() && self.host.is_current()
    }

    /// Sleeps until something is rung or due.
    fn sleep(&self, due_ns: Option<u64>) {
        let now_ns = due_ns.map_or(0, |_| clock::monotonic_ns());
        self.bell.wait(due_ns.map(|it| Duration::from_nanos(it.saturating_sub(now_ns))));
    }

    fn run(&self, number: u16, entity: &Arc<dyn Entity>) {
        // While it runs nobody else may run it, so it is soon enough to queue it again afterwards:
        // after a panic too, so that whoever catches that can spin again.
        let running = Running { core: self, number, entity, has_more: false.into() };
        entity.run(&mut || running.has_more.set(true));
    }

    /// `entity` has run under `number`.
    fn release(&self, number: u16, entity: &Arc<dyn Entity>, has_more: bool) {
        let mut state = self.lock();
        let state = &mut *state;
        let group = entity.group();
        if group.kind == CallbackGroupKind::MutuallyExclusive {
            state.busy_groups.retain(|it| *it != group.number);
        }
        let mut is_timed = false;
        if let Some(Some(entry)) = state.entities.get_mut(number as usize) {
            entry.is_running = false;
            is_timed = entry.has_time;
            if entry.is_gone {
                state.remove(number);
            } else if has_more && !std::mem::replace(&mut entry.is_queued, true) {
                state.ready.push_back(number);
            }
        }
        if is_timed && state.has_leader {
            // Whoever sleeps did not reckon with the next time of what just ran.
            self.guard.ring();
        }
        if state.waiting != 0 && !state.ready.is_empty() {
            self.more.notify_one();
        }
    }

    /// Nothing panics while holding this lock, so a poisoned one is still sound.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the other threads' work when one's panics: they would wait for ever in the scope that the
/// panic has to leave.
struct EndAtPanic<'a>(&'a ExecutorCore);

impl Drop for EndAtPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end();
        }
    }
}

struct Running<'a> {
    core: &'a ExecutorCore,
    number: u16,
    entity: &'a Arc<dyn Entity>,
    has_more: std::cell::Cell<bool>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.core.release(self.number, self.entity, self.has_more.get());
    }
}

impl State {
    /// Forgets an entity. Its number is another's only when it does not run any more.
    fn remove(&mut self, number: u16) {
        self.ready.retain(|it| *it != number);
        self.timed.retain(|it| *it != number);
        let Some(place) = self.entities.get_mut(number as usize) else { return };
        match place {
            Some(entry) if entry.is_running => entry.is_gone = true,
            Some(_) => {
                *place = None;
                self.free.push(number);
            }
            None => (),
        }
    }

    /// The next entity that may run now; it is marked as running.
    fn next_ready(&mut self) -> Option<(u16, Arc<dyn Entity>)> {
        for at in 0..self.ready.len() {
            let number = self.ready[at];
            let Some(Some(entry)) = self.entities.get_mut(number as usize) else {
                self.ready.remove(at);
                return self.next_ready();
            };
            if entry.is_running {
                continue;
            }
            let Some(entity) = entry.entity.upgrade() else {
                self.remove(number);
                return self.next_ready();
            };
            let group = entity.group();
            if group.kind == CallbackGroupKind::MutuallyExclusive {
                if self.busy_groups.contains(&group.number) {
                    continue;
                }
                self.busy_groups.push(group.number);
            }
            entry.is_queued = false;
            entry.is_running = true;
            self.ready.remove(at);
            return Some((number, entity));
        }
        None
    }

    /// Takes note of all that was rung or is due.
    fn gather(&mut self, bell: &Bell) {
        let Self { entities, timed, ready, .. } = self;
        bell.drain(|number| {
            if let Some(Some(entry)) = entities.get_mut(number as usize)
                && !entry.is_gone
                && !std::mem::replace(&mut entry.is_queued, true)
            {
                ready.push_back(number);
            }
        });
        let mut now_ns = None;
        for number in timed.iter().copied() {
            let entry = entities.get_mut(number as usize).and_then(Option::as_mut);
            let Some(entry) = entry.filter(|it| !it.is_queued) else { continue };
            let due_ns = entry.entity.upgrade().and_then(|it| it.due_ns());
            if due_ns.is_some_and(|it| it <= *now_ns.get_or_insert_with(clock::monotonic_ns)) {
                entry.is_queued = true;
                ready.push_back(number);
            }
        }
        self.left_of_round = self.ready.len();
    }

    fn due_ns(&self) -> Option<u64> {
        let timed = self.timed.iter().filter_map(|it| self.entities.get(*it as usize)?.as_ref());
        timed.filter(|it| !it.is_running).filter_map(|entry| entry.entity.upgrade()?.due_ns()).min()
    }
}

/// Runs the callbacks of one node on this thread until the context is shut down.
pub fn spin(node: &Node) -> Result<()> {
    let mut executor = Executor::new(node.context())?;
    executor.add(node)?;
    executor.spin()
}

//! Running callbacks: one thread or several, one place to sleep in.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use tsuji_platform::clock;
use tsuji_platform::ordered::{Condvar, Mutex, MutexGuard};
use tsuji_transport::bell::{Bell, Cell, ENTITIES_MAX};

use crate::session::Session;
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
///
/// Every node has a group of its own, which is mutually exclusive.
///
/// ```no_run
/// use std::time::Duration;
/// use tsuji::{CallbackGroupKind, Context, Executor, TimerOptions};
///
/// let context = Context::new()?;
/// let node = context.node("drive")?;
/// // By two threads, the slow callback keeps nobody from the fast one.
/// let group = node.create_callback_group(CallbackGroupKind::MutuallyExclusive);
/// let _slow = node.create_timer(Duration::from_secs(1), || std::thread::sleep(Duration::from_millis(500)))?;
/// let _fast = node.create_timer(
///     TimerOptions::new(Duration::from_millis(10)).group(&group),
///     || println!("10 ms"),
/// )?;
/// let mut executor = Executor::new(&context)?.threads(2);
/// executor.add(&node)?.spin()?;
/// # Ok::<_, tsuji::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CallbackGroup {
    number: u64,
    kind: CallbackGroupKind,
}

/// Says whether callbacks of a [`CallbackGroup`] may overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackGroupKind {
    /// One callback of the group runs at a time.
    MutuallyExclusive,
    /// Any number of different callbacks of the group run at a time.
    Reentrant,
}

impl CallbackGroup {
    pub(crate) fn new(kind: CallbackGroupKind) -> Self {
        static GROUPS: AtomicU64 = AtomicU64::new(0);
        Self { number: GROUPS.fetch_add(1, Ordering::Relaxed), kind }
    }

    /// Returns whether the callbacks of the group may overlap.
    pub fn kind(&self) -> CallbackGroupKind {
        self.kind
    }
}

/// Runs the callbacks of nodes on one thread or several.
///
/// ```no_run
/// use tsuji::{Context, Executor};
///
/// let context = Context::new()?;
/// let (camera, drive) = (context.node("camera")?, context.node("drive")?);
/// let mut executor = Executor::new(&context)?.threads(4);
/// executor.add(&camera)?.add(&drive)?;
/// executor.spin()?;
/// # Ok::<_, tsuji::Error>(())
/// ```
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
    /// Creates an executor without nodes, of one thread.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exhausted`] if the process has 64 executors, wait sets and the like, or 65,536 endpoints and
    /// the like; [`ErrorKind::Closed`] in a forked child.
    pub fn new(context: &Context) -> Result<Self> {
        let core = ExecutorCore::new(context.session())?;
        Ok(Self { core, threads: 1, nodes: Vec::new() })
    }

    /// Sets how many threads run callbacks, at least 1, the one that calls [`spin`](Self::spin) among them. Default 1.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Adds a node: what it has now and what it will get. A node belongs to one executor.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if the node is of another participant or belongs to another executor,
    /// [`ErrorKind::Exhausted`] if there were more than 4095 callbacks then.
    pub fn add(&mut self, node: &Node) -> Result<&mut Self> {
        if !Arc::ptr_eq(node.context().session(), &self.core.session) {
            let what = "a node of another participant; allowed: those of the executor's own domain and process";
            return Err(Error::invalid(what));
        }
        node.join(&self.core)?;
        self.nodes.push(node.clone());
        Ok(self)
    }

    /// Runs callbacks until the context is shut down; if it is already, nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] in a forked child, [`ErrorKind::Exhausted`] if a thread cannot be started.
    pub fn spin(&mut self) -> Result<()> {
        self.spin_until(|| false)
    }

    /// Runs callbacks until `done` says so or the context is shut down.
    ///
    /// `done` is asked first, after each callback and whenever something happened.
    ///
    /// # Errors
    ///
    /// Those of [`spin`](Self::spin).
    pub fn spin_until(&mut self, done: impl Fn() -> bool + Sync) -> Result<()> {
        self.run(&done)
    }

    /// Runs each callback that is ready, once; if none is, waits for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] in a forked child.
    pub fn spin_once(&mut self, timeout: Duration) -> Result<()> {
        if self.core.is_over()? {
            return Ok(());
        }
        let give_up_ns = crate::pacing::after(clock::monotonic_ns(), timeout);
        self.core.lock().is_ending = false;
        self.core.work_once(give_up_ns);
        self.core.is_of_this_process()
    }

    /// Returns what lets a spin ask from any thread whether it is done.
    pub fn waker(&self) -> impl Fn() + Send + Sync + use<> + 'static {
        let core = Arc::clone(&self.core);
        move || core.wake()
    }

    /// Starts the thread that wakes those who await messages. It ends with
    /// [`ExecutorCore::end`].
    pub(crate) fn start_waking(session: &Arc<Session>) -> Result<Arc<ExecutorCore>> {
        let core = ExecutorCore::new(session)?;
        let working = Arc::clone(&core);
        let spawned = std::thread::Builder::new().name("tsuji-await".to_owned()).spawn(move || {
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
        if !self.core.session.is_current() {
            return;
        }
        self.nodes.iter().for_each(Node::leave);
        self.core.clear();
    }
}

pub(crate) struct ExecutorCore {
    session: Arc<Session>,
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
    /// Those whose cell rings here as that of another, which stands first, and so are ready with it.
    shared: Vec<(u16, u16)>,
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
    group: CallbackGroup,
    is_queued: bool,
    is_running: bool,
    has_time: bool,
    /// It left while it ran; its number is free when it has ended.
    is_gone: bool,
}

impl ExecutorCore {
    pub(crate) fn new(session: &Arc<Session>) -> Result<Arc<Self>> {
        let (bell, guard) = session.guarded_bell(0)?;
        let state = State {
            entities: vec![None],
            free: Vec::new(),
            timed: Vec::new(),
            shared: Vec::new(),
            ready: VecDeque::new(),
            busy_groups: Vec::new(),
            left_of_round: 0,
            has_leader: false,
            waiting: 0,
            is_ending: false,
        };
        Ok(Arc::new(Self {
            session: Arc::clone(session),
            bell,
            guard,
            state: Mutex::new(state),
            more: Condvar::new(),
        }))
    }

    /// Runs this entity from now on.
    pub(crate) fn attach(&self, entity: &Arc<dyn Entity>) -> Result<()> {
        let (has_time, group) = (entity.due_ns().is_some(), entity.group().clone());
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
        state.entities[number as usize] = Some(Entry {
            entity: Arc::downgrade(entity),
            group,
            is_queued: false,
            is_running: false,
            has_time,
            is_gone: false,
        });
        if has_time {
            state.timed.push(number);
        }
        let Some(cell) = entity.cell() else {
            drop(state);
            self.guard.ring();
            return Ok(());
        };
        let rings_as = cell.entity_at(&self.bell);
        state.shared.extend(rings_as.map(|first| (first, number)));
        // What became ready before rang nobody here, or another only.
        cell.attach(&self.bell, rings_as.unwrap_or(number));
        Ok(())
    }

    /// Runs this entity no longer. A callback that runs just now runs to its end.
    pub(crate) fn detach(&self, entity: &Arc<dyn Entity>) {
        let mut state = self.lock();
        let same = |entry: &Option<Entry>| {
            entry
                .as_ref()
                .is_some_and(|it| std::ptr::addr_eq(it.entity.as_ptr(), Arc::as_ptr(entity)))
        };
        let Some(number) = state.entities.iter().position(same) else { return };
        let number = number as u16;
        if let Some(cell) = entity.cell().filter(|it| it.is_attached(&self.bell, number)) {
            match state.next_of(number) {
                Some(next) => cell.attach(&self.bell, next),
                None => cell.detach_from(&self.bell),
            }
        }
        state.remove(number);
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
        state.shared.clear();
        let entries: Vec<Entry> = state.entities.drain(..).flatten().collect();
        drop(state);
        for entity in entries.iter().filter_map(|entry| entry.entity.upgrade()) {
            if let Some(cell) = entity.cell() {
                cell.detach_from(&self.bell);
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
        if self.session.is_current() && self.session.is_stopping() {
            return Ok(true);
        }
        self.session.open("spin")?;
        Ok(false)
    }

    /// Fails in a forked child, which a callback may have turned into.
    fn is_of_this_process(&self) -> Result<()> {
        if self.session.is_current() { Ok(()) } else { self.session.open("spin") }
    }

    /// One thread's work until the end.
    fn work(&self, done: &dyn Fn() -> bool) {
        let _end = EndAtPanic(self);
        let mut state = self.lock();
        while self.goes_on(&state) {
            if state.left_of_round == 0 && !state.has_leader && !state.ready.is_empty() {
                // Whoever always has more does not keep the others from being seen.
                state = self.gather(state);
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
            let timed = state.timed_entities(|it| !it.is_running);
            drop(state);
            let due_ns = timed.iter().filter_map(|(_, entity)| entity.due_ns()).min();
            drop(timed);
            self.sleep(due_ns);
            if done() {
                self.end();
            }
            state = self.gather(self.lock());
            state.has_leader = false;
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
        let mut state = self.gather(self.lock());
        while state.ready.is_empty() && self.goes_on(&state) {
            let timed = state.timed_entities(|it| !it.is_running);
            drop(state);
            let due_ns = timed.iter().filter_map(|(_, entity)| entity.due_ns()).min();
            drop(timed);
            self.sleep(Some(due_ns.map_or(give_up_ns, |it| it.min(give_up_ns))));
            state = self.gather(self.lock());
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
        !state.is_ending && !self.session.is_stopping() && self.session.is_current()
    }

    /// Takes note of all that was rung or is due. When that is, schedules say that may be the user's, so the lock is
    /// given back while they are asked.
    fn gather<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let timed = state.timed_entities(|it| !it.is_queued);
        if timed.is_empty() {
            let mut state = state;
            state.gather(&self.bell, &[]);
            return state;
        }
        drop(state);
        let now_ns = clock::monotonic_ns();
        let due = timed.iter().filter(|(_, it)| it.due_ns().is_some_and(|due_ns| due_ns <= now_ns));
        let due: Vec<u16> = due.map(|(number, _)| *number).collect();
        drop(timed);
        let mut state = self.lock();
        state.gather(&self.bell, &due);
        state
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
        self.shared.retain(|(first, it)| *first != number && *it != number);
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

    /// Who shares the cell of the entity `first` takes its place there; the others stand behind that one then.
    fn next_of(&mut self, first: u16) -> Option<u16> {
        let next = self.shared.iter().position(|(it, _)| *it == first)?;
        let (_, next) = self.shared.swap_remove(next);
        for (it, _) in self.shared.iter_mut().filter(|(it, _)| *it == first) {
            *it = next;
        }
        Some(next)
    }

    /// The next entity that may run now; it is marked as running.
    fn next_ready(&mut self) -> Option<(u16, Arc<dyn Entity>)> {
        for at in 0..self.ready.len() {
            let number = self.ready[at];
            let Some(Some(entry)) = self.entities.get_mut(number as usize) else {
                self.ready.remove(at);
                return self.next_ready();
            };
            let is_exclusive = entry.group.kind == CallbackGroupKind::MutuallyExclusive;
            if entry.is_running || (is_exclusive && self.busy_groups.contains(&entry.group.number))
            {
                continue;
            }
            // What is found here runs: nothing of the user's may be dropped with this lock held.
            let Some(entity) = entry.entity.upgrade() else {
                self.remove(number);
                return self.next_ready();
            };
            if is_exclusive {
                self.busy_groups.push(entry.group.number);
            }
            entry.is_queued = false;
            entry.is_running = true;
            self.ready.remove(at);
            return Some((number, entity));
        }
        None
    }

    /// Takes note of all that was rung, and of these that are due.
    fn gather(&mut self, bell: &Bell, due: &[u16]) {
        let Self { entities, shared, ready, .. } = self;
        let mut queue = |number: u16| {
            if let Some(Some(entry)) = entities.get_mut(number as usize)
                && !entry.is_gone
                && !std::mem::replace(&mut entry.is_queued, true)
            {
                ready.push_back(number);
            }
        };
        bell.drain(|number| {
            queue(number);
            let with_it = shared.iter().filter(|(first, _)| *first == number);
            with_it.for_each(|(_, other)| queue(*other));
        });
        for number in due.iter().copied() {
            // One that has left meanwhile may have given its number to another, which finds nothing to do then.
            let entry = entities.get_mut(number as usize).and_then(Option::as_mut);
            let Some(entry) = entry.filter(|it| !it.is_queued && !it.is_gone) else { continue };
            entry.is_queued = true;
            ready.push_back(number);
        }
        self.left_of_round = self.ready.len();
    }

    /// Those that run at times, to be asked and dropped when the lock is given back.
    fn timed_entities(&self, is_meant: impl Fn(&Entry) -> bool) -> Vec<(u16, Arc<dyn Entity>)> {
        let timed = self.timed.iter().filter_map(|number| {
            let entry = self.entities.get(*number as usize)?.as_ref();
            Some((*number, entry.filter(|it| is_meant(it))?.entity.upgrade()?))
        });
        timed.collect()
    }
}

/// Runs the callbacks of one node on this thread until the context is shut down.
///
/// # Errors
///
/// Those of [`Executor::new`] and [`Executor::add`]; [`ErrorKind::Closed`] in a forked child.
pub fn spin(node: &Node) -> Result<()> {
    let mut executor = Executor::new(node.context())?;
    executor.add(node)?;
    executor.spin()
}

//! Waiting for whatever a call names.

use std::sync::Arc;
use std::time::Duration;

use tsuji_platform::clock;
use tsuji_transport::bell::{Bell, Cell, ENTITIES_MAX};

use crate::executor::{Entity, ExecutorCore};
use crate::session::Session;
use crate::{CallbackGroup, CallbackGroupKind, Context, Error, ErrorKind, Executor, Result};

pub(crate) mod sealed {
    use std::sync::Arc;

    use tsuji_transport::bell::Cell;

    use crate::session::Session;

    /// A participant, to be compared.
    #[expect(unnameable_types, reason = "nobody else can ask for one")]
    #[derive(Debug)]
    pub struct Owner<'a>(pub(crate) &'a Arc<Session>);

    /// What can be waited for.
    #[expect(unnameable_types, reason = "nobody else can make a Waitable")]
    pub trait Source {
        /// Is rung when it may have become ready.
        fn cell(&self) -> &Arc<Cell>;

        /// The participant that it belongs to.
        fn owner(&self) -> Owner<'_>;

        /// Whether it is ready now. It may be found empty all the same.
        fn is_ready(&self) -> bool;

        /// A wait has said that it is ready.
        fn seen(&self) {}
    }
}

/// An entity that a [`WaitList`] waits for: a subscription, service or client without callbacks, or a guard
/// condition.
pub trait Waitable: sealed::Source + Send + Sync {}

/// Sleeps until one of those is ready that each call names anew, as `rmw_wait` asks.
///
/// ```no_run
/// use std::time::Duration;
/// use tsuji::{Context, Qos, WaitList};
/// use tsuji::interfaces::std_msgs::msg::String as Text;
///
/// let context = Context::new()?;
/// let node = context.node("listener")?;
/// let (chatter, news) = (
///     node.create_polled_subscription::<Text>("chatter", Qos::DEFAULT)?,
///     node.create_polled_subscription::<Text>("news", Qos::DEFAULT)?,
/// );
/// let mut list = WaitList::new(&context)?;
/// for at in list.wait(&[&*chatter, &*news], Some(Duration::from_secs(5)))? {
///     let subscription = [&chatter, &news][*at];
///     if let Some(received) = subscription.take()? {
///         println!("{}: {}", subscription.topic(), received.view().data);
///     }
/// }
/// # Ok::<_, tsuji::Error>(())
/// ```
///
/// Something is ready as long as there is something to be taken, however often it is asked. A call that
/// names the same as the last one costs no more than to look. What several lists wait for at once wakes
/// all of them; whoever takes first gets what there is, and the others go on waiting. What belongs to another
/// participant, as of another domain, wakes it by a thread that the list starts for that one.
pub struct WaitList {
    session: Arc<Session>,
    bell: Bell,
    guard: Arc<Cell>,
    /// Who was named last, by place.
    named: Vec<Named>,
    ready: Vec<usize>,
    /// Who looks after what belongs to other participants.
    others: Vec<(Arc<Session>, Arc<ExecutorCore>)>,
}

struct Named {
    cell: Arc<Cell>,
    /// What rings here: itself, or what is rung for it.
    rings: Arc<Cell>,
    /// Who does the latter.
    by: Option<(Arc<ExecutorCore>, Arc<dyn Entity>)>,
    /// It was ready when it was looked at last, or has been rung since.
    may_be_ready: bool,
}

impl WaitList {
    /// Creates a list that has waited for nothing yet.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exhausted`] if the process has 64 executors, wait sets and the like, or 65,536 endpoints and
    /// the like; [`ErrorKind::Closed`] in a forked child.
    pub fn new(context: &Context) -> Result<Self> {
        let session = Arc::clone(context.session());
        let (bell, guard) = session.guarded_bell(GUARD)?;
        Ok(Self { session, bell, guard, named: Vec::new(), ready: Vec::new(), others: Vec::new() })
    }

    /// Waits until something is ready, for at most `timeout` or, with `None`, without an end, and returns the
    /// places of those that are, in rising order.
    ///
    /// When the time is up the answer is empty. At most 4095 can be named.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] when the context is shut down or in a forked child; [`ErrorKind::Exhausted`] if more
    /// than 4095 are named, or the means to wait for those of another participant are used up.
    pub fn wait(
        &mut self,
        entities: &[&dyn Waitable],
        timeout: Option<Duration>,
    ) -> Result<&[usize]> {
        self.session.open("wait")?;
        self.name(entities)?;
        let give_up_ns = timeout.map(|it| crate::pacing::after(clock::monotonic_ns(), it));
        self.ready.clear();
        loop {
            let Self { bell, named, .. } = self;
            bell.drain(|place| {
                if let Some(it) = named.get_mut(usize::from(place)) {
                    it.may_be_ready = true;
                }
            });
            for (place, (it, entity)) in named.iter_mut().zip(entities).enumerate() {
                // What is named twice rings as the one of the places.
                if it.may_be_ready || !it.rings.is_attached(bell, place as u16) {
                    it.may_be_ready = entity.is_ready();
                    if it.may_be_ready {
                        self.ready.push(place);
                    }
                }
            }
            // When all were looked at: what is named twice is ready twice.
            for place in &self.ready {
                entities[*place].seen();
            }
            let left = give_up_ns.map(|it| it.saturating_sub(clock::monotonic_ns()));
            if !self.ready.is_empty() || left == Some(0) {
                return Ok(&self.ready);
            }
            self.bell.wait(left.map(Duration::from_nanos));
            self.session.open("wait")?;
        }
    }

    /// Lets just these ring the bell, by their places.
    fn name(&mut self, entities: &[&dyn Waitable]) -> Result<()> {
        if usize::from(GUARD) < entities.len() {
            return Err(Error::new(
                ErrorKind::Exhausted,
                format!("wait for {}; allowed: at most {GUARD}", entities.len()),
            ));
        }
        let is_same = |bell: &Bell, place: usize, it: &Named| {
            let asked = entities.get(place).map(|entity| entity.cell());
            asked.is_some_and(|cell| Arc::ptr_eq(cell, &it.cell))
                && it.rings.is_attached(bell, place as u16)
        };
        // All that go before any comes: it may be the same at another place.
        let Self { bell, named, .. } = self;
        for (place, it) in named.iter().enumerate().filter(|(place, it)| !is_same(bell, *place, it))
        {
            it.leave(bell, place);
        }
        named.truncate(entities.len());
        for (place, entity) in entities.iter().enumerate() {
            if self.named.get(place).is_some_and(|it| is_same(&self.bell, place, it)) {
                continue;
            }
            let new = self.come(*entity)?;
            new.rings.attach(&self.bell, place as u16);
            match self.named.get_mut(place) {
                Some(it) => *it = new,
                None => self.named.push(new),
            }
        }
        Ok(())
    }

    fn come(&mut self, entity: &dyn Waitable) -> Result<Named> {
        let cell = Arc::clone(entity.cell());
        if cell.is_beside(&self.bell) {
            let rings = Arc::clone(&cell);
            return Ok(Named { cell, rings, by: None, may_be_ready: true });
        }
        let sealed::Owner(session) = entity.owner();
        let known = self.others.iter().find(|(it, _)| Arc::ptr_eq(it, session));
        let core = match known {
            Some((_, core)) => Arc::clone(core),
            None => {
                let named = &self.named;
                // A list may outlive participants that come and go: each has a thread here.
                self.others.retain(|(_, core)| {
                    let mut used = named.iter().filter_map(|it| it.by.as_ref());
                    let is_used = used.any(|(it, _)| Arc::ptr_eq(it, core));
                    if !is_used {
                        core.end();
                    }
                    is_used
                });
                let core = Executor::start_waking(session)?;
                self.others.push((Arc::clone(session), Arc::clone(&core)));
                core
            }
        };
        let rings = Arc::new(self.session.bells().claim_cell()?);
        let group = CallbackGroup::new(CallbackGroupKind::Reentrant);
        let (from, to) = (Arc::clone(&cell), Arc::clone(&rings));
        let passing: Arc<dyn Entity> = Arc::new(Passing { from, to, group });
        core.attach(&passing)?;
        Ok(Named { cell, rings, by: Some((core, passing)), may_be_ready: true })
    }
}

impl Named {
    /// It rings as this place no more.
    fn leave(&self, bell: &Bell, place: usize) {
        if let Some((core, passing)) = &self.by {
            core.detach(passing);
        }
        if self.rings.is_attached(bell, place as u16) {
            self.rings.detach_from(bell);
        }
    }
}

/// Rings in one participant what was rung in another.
struct Passing {
    from: Arc<Cell>,
    to: Arc<Cell>,
    group: CallbackGroup,
}

impl Entity for Passing {
    fn cell(&self) -> Option<&Arc<Cell>> {
        Some(&self.from)
    }

    fn run(&self, _more: &mut dyn FnMut()) {
        self.to.ring();
    }

    fn group(&self) -> &CallbackGroup {
        &self.group
    }
}

impl Drop for WaitList {
    fn drop(&mut self) {
        if !self.session.is_current() {
            // A forked child has none of the threads, and none of the locks that it could trust.
            return;
        }
        for (place, it) in self.named.iter().enumerate() {
            it.leave(&self.bell, place);
        }
        self.others.iter().for_each(|(_, core)| core.end());
        self.guard.detach_from(&self.bell);
    }
}

impl std::fmt::Debug for WaitList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitList").field("named", &self.named.len()).finish_non_exhaustive()
    }
}

const GUARD: u16 = ENTITIES_MAX - 1;

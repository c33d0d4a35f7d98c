//! Waiting for whatever a call names.

use std::sync::Arc;
use std::time::Duration;

use tsuji_platform::clock;
use tsuji_transport::bell::{Bell, Cell, ENTITIES_MAX};

use crate::host::Host;
use crate::{Context, Error, ErrorKind, Result};

pub(crate) mod sealed {
    use std::sync::Arc;

    use tsuji_transport::bell::Cell;

    /// What can be waited for.
    #[expect(unnameable_types, reason = "nobody else can make a Waitable")]
    pub trait Source {
        /// Is rung when it may have become ready.
        fn cell(&self) -> &Arc<Cell>;

        /// Whether it is ready now. It may be found empty all the same.
        fn is_ready(&self) -> bool;

        /// A wait has said that it is ready.
        fn seen(&self) {}
    }
}

/// What a [`WaitList`] waits for: subscriptions, services and clients without callbacks, and guard
/// conditions.
pub trait Waitable: sealed::Source {}

/// Sleeps until one of those is ready that each call names anew, as `rmw_wait` asks.
///
/// Something is ready as long as there is something to be taken, however often it is asked. A call that
/// names the same as the last one costs no more than to look. What two lists wait for at once wakes the
/// one that began last.
pub struct WaitList {
    host: Arc<Host>,
    bell: Bell,
    guard: Arc<Cell>,
    /// Who was named last, by place.
    named: Vec<Named>,
    ready: Vec<usize>,
}

struct Named {
    cell: Arc<Cell>,
    /// It was ready when it was looked at last, or has been rung since.
    may_be_ready: bool,
}

impl WaitList {
    /// A list that has waited for nothing yet.
    pub fn new(context: &Context) -> Result<Self> {
        let host = Arc::clone(context.host());
        let (bell, guard) = host.guarded_bell(GUARD)?;
        Ok(Self { host, bell, guard, named: Vec::new(), ready: Vec::new() })
    }

    /// The places of those that are ready, in rising order; waits for one for at most `timeout`, or
    /// without an end. When the time is up the answer is empty, when the context is shut down it is Closed.
    /// At most 4095 can be named.
    pub fn wait(
        &mut self,
        entities: &[&dyn Waitable],
        timeout: Option<Duration>,
    ) -> Result<&[usize]> {
        self.host.open("wait")?;
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
                // What rings elsewhere, at another place or for another list, is not heard of here.
                if it.may_be_ready || !it.cell.is_attached(bell, place as u16) {
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
            self.host.open("wait")?;
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
        let Self { bell, named, .. } = self;
        let is_same = |place: usize, it: &Named| {
            let asked = entities.get(place).map(|entity| entity.cell());
            asked.is_some_and(|cell| Arc::ptr_eq(cell, &it.cell))
                && it.cell.is_attached(bell, place as u16)
        };
        // All that go before any comes: it may be the same at another place.
        for (place, it) in named.iter().enumerate().filter(|(place, it)| !is_same(*place, it)) {
            it.cell.detach_from(bell, place as u16);
        }
        named.truncate(entities.len());
        for (place, entity) in entities.iter().enumerate() {
            let cell = entity.cell();
            if cell.is_attached(bell, place as u16) {
                continue;
            }
            let new = Named::new(cell);
            match named.get_mut(place) {
                Some(it) => *it = new,
                None => named.push(new),
            }
            cell.attach(bell, place as u16);
        }
        Ok(())
    }
}

impl Named {
    fn new(cell: &Arc<Cell>) -> Self {
        Self { cell: Arc::clone(cell), may_be_ready: true }
    }
}

impl Drop for WaitList {
    fn drop(&mut self) {
        for (place, it) in self.named.iter().enumerate() {
            it.cell.detach_from(&self.bell, place as u16);
        }
        self.guard.detach();
    }
}

impl std::fmt::Debug for WaitList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitList").field("named", &self.named.len()).finish_non_exhaustive()
    }
}

const GUARD: u16 = ENTITIES_MAX - 1;

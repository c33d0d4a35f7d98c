//! Waiting for several subscriptions and services by hand.

use std::sync::Arc;
use std::time::Duration;

use tsuji_platform::clock;
use tsuji_transport::bell::{Bell, Cell, ENTITIES_MAX};

use crate::session::Session;
use crate::{Context, Error, ErrorKind, RawService, RawSubscription, Result};

/// Sleeps until one of its subscriptions may have a message, or one of its services a request. For those who do not
/// want callbacks.
///
/// The same may be in several wait sets, and awaited; whoever takes first gets what there is.
///
/// ```no_run
/// use std::time::Duration;
/// use tsuji::{Context, Qos, WaitSet};
/// use tsuji::interfaces::std_msgs::msg::String as Text;
///
/// let context = Context::new()?;
/// let node = context.node("listener")?;
/// let subscription = node.create_polled_subscription::<Text>("chatter", Qos::DEFAULT)?;
/// let mut set = WaitSet::new(&context)?;
/// set.add(&subscription)?;
/// while !set.wait(Duration::from_secs(5))?.is_empty() {
///     while let Some(received) = subscription.take()? {
///         println!("{}", received.view().data);
///     }
/// }
/// # Ok::<_, tsuji::Error>(())
/// ```
pub struct WaitSet {
    session: Arc<Session>,
    bell: Bell,
    guard: Arc<Cell>,
    cells: Vec<Arc<Cell>>,
}

impl WaitSet {
    /// Creates an empty set.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exhausted`] if the process has 64 executors, wait sets and the like, or 65,536 endpoints and
    /// the like; [`ErrorKind::Closed`] in a forked child.
    pub fn new(context: &Context) -> Result<Self> {
        let session = Arc::clone(context.session());
        let (bell, guard) = session.guarded_bell(GUARD)?;
        Ok(Self { session, bell, guard, cells: Vec::new() })
    }

    /// Adds a subscription that has no callback, and returns the number that [`wait`](Self::wait) will call it by.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] if it has a callback or is of another participant, [`ErrorKind::Exhausted`] if the
    /// set has 4095 already.
    pub fn add(&mut self, subscription: &RawSubscription) -> Result<usize> {
        if subscription.has_callback() {
            return Err(Error::invalid(format!(
                "{}: its messages go to a callback; build() a subscription to wait for",
                subscription.topic()
            )));
        }
        if !Arc::ptr_eq(&subscription.subscription_core.session, &self.session) {
            return Err(Error::invalid(format!(
                "{}: it belongs to another participant; allowed: those of the wait set's own",
                subscription.topic()
            )));
        }
        let number = self.cells.len();
        if usize::from(GUARD) <= number {
            return Err(Error::new(
                ErrorKind::Exhausted,
                format!("a wait set has at most {GUARD} subscriptions"),
            ));
        }
        let cell = Arc::clone(&subscription.subscription_core.news);
        // What was added before is told by its first number, and found by that below.
        if cell.entity_at(&self.bell).is_none() {
            cell.attach(&self.bell, number as u16);
        }
        self.cells.push(cell);
        Ok(number)
    }

    /// Adds a service that has no callback, and returns the number that [`wait`](Self::wait) will call it by.
    ///
    /// # Errors
    ///
    /// Those of [`add`](Self::add).
    pub fn add_service(&mut self, service: &RawService) -> Result<usize> {
        self.add(service.requests())
    }

    /// Waits until something may have a message or a request, for at most `timeout`, and returns the numbers of
    /// those that may.
    ///
    /// When the time is up the answer is empty. Take all messages of each before waiting again: only what comes
    /// later will end the next wait.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] when the context is shut down or in a forked child.
    pub fn wait(&self, timeout: Duration) -> Result<Vec<usize>> {
        let give_up_ns = crate::pacing::after(clock::monotonic_ns(), timeout);
        let mut ready = Vec::new();
        loop {
            self.session.open("wait")?;
            self.bell.drain(|number| {
                if let Some(rung) = self.cells.get(usize::from(number)) {
                    let all = self.cells.iter().enumerate().skip(number.into());
                    ready.extend(all.filter(|(_, it)| Arc::ptr_eq(it, rung)).map(|(at, _)| at));
                }
            });
            let now_ns = clock::monotonic_ns();
            if !ready.is_empty() || give_up_ns <= now_ns {
                return Ok(ready);
            }
            self.bell.wait(Some(Duration::from_nanos(give_up_ns - now_ns)));
        }
    }
}

impl Drop for WaitSet {
    fn drop(&mut self) {
        self.cells.iter().chain([&self.guard]).for_each(|cell| cell.detach_from(&self.bell));
    }
}

impl std::fmt::Debug for WaitSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitSet").field("subscriptions", &self.cells.len()).finish_non_exhaustive()
    }
}

const GUARD: u16 = ENTITIES_MAX - 1;

//! Waiting for several subscriptions and services by hand.

use std::sync::Arc;
use std::time::Duration;

use tsuji_platform::clock;
use tsuji_transport::bell::{Bell, Cell, ENTITIES_MAX};

use crate::host::Host;
use crate::{Context, Error, ErrorKind, RawService, RawSubscription, Result};

/// Sleeps until one of its subscriptions may have a message, or one of its services a request. For those who do not want callbacks.
pub struct WaitSet {
    host: Arc<Host>,
    bell: Bell,
    guard: Arc<Cell>,
    cells: Vec<Arc<Cell>>,
}

impl WaitSet {
    /// An empty set.
    pub fn new(context: &Context) -> Result<Self> {
        let host = Arc::clone(context.host());
        let (bell, guard) = host.guarded_bell(GUARD)?;
        Ok(Self { host, bell, guard, cells: Vec::new() })
    }

    /// Adds a subscription that has no callback, and answers the number that
    /// [`wait`](Self::wait) will call it by.
    pub fn add(&mut self, subscription: &RawSubscription) -> Result<usize> {
        if subscription.has_callback() {
            return Err(Error::invalid(format!(
                "{}: its messages go to a callback; build() a subscription to wait for",
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
        let cell = Arc::clone(&subscription.reception.news);
        cell.attach(&self.bell, number as u16);
        self.cells.push(cell);
        Ok(number)
    }

    /// Adds a service that has no callback, in the same way.
    pub fn add_service(&mut self, service: &RawService) -> Result<usize> {
        self.add(service.requests())
    }

    /// The numbers of those that may have a message. Waits for at most `timeout`; then the answer
    /// is empty. When the context is shut down it is Closed. Take all messages of each before waiting
    /// again: only what comes later will end the next wait.
    pub fn wait(&self, timeout: Duration) -> Result<Vec<usize>> {
        let give_up_ns = crate::pacing::after(clock::monotonic_ns(), timeout);
        let mut ready = Vec::new();
        loop {
            self.host.open("wait")?;
            self.bell.drain(|number| {
                if number != GUARD {
                    ready.push(usize::from(number));
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
        self.cells.iter().for_each(|cell| cell.detach());
        self.guard.detach();
    }
}

impl std::fmt::Debug for WaitSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitSet").field("subscriptions", &self.cells.len()).finish_non_exhaustive()
    }
}

const GUARD: u16 = ENTITIES_MAX - 1;

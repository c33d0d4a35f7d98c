//! What takes the lines of nodes to `/rosout`, without those who log waiting for it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Error, ErrorKind, Node, Publisher, Qos, Result};
use tsuji_interfaces::rcl_interfaces::msg::Log;
use tsuji_platform::clock;
use tsuji_platform::ordered::{Condvar, Mutex};

use super::Severity;
use super::logger::Core;
use crate::lock;
use crate::stamp::time;

/// The lines of a node that may wait to be published. Further ones are dropped and counted.
pub const QUEUE_LINES_MAX: usize = 1000;

/// The bytes of texts that may wait, of each node. Once there are as many, further lines are dropped and counted.
pub const QUEUE_BYTES_MAX: usize = 4 << 20;

/// How long a node that goes waits for its last lines to be published.
const LAST_LINES_MAX: Duration = Duration::from_secs(1);

/// Takes the log of a node to `/rosout` until it is dropped, which waits for a second at most for the last lines.
pub(crate) struct Rosout {
    logging: Arc<Core>,
    logger: String,
    outlet: Arc<Outlet>,
}

/// What has become of the lines of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RosoutCounters {
    /// Published.
    pub published: u64,
    /// Dropped, since too much waited already, or since they came of publishing itself.
    pub dropped: u64,
    /// Not published, since that failed, as it does when the context is shut down.
    pub failed: u64,
    /// Of those that were heard, such whose text was cut.
    pub cut: u64,
}

impl Rosout {
    pub(crate) fn new(logging: &Arc<Core>, node: &Node, logger: String) -> Result<Self> {
        logging.queue.start()?;
        let publisher = node.create_publisher("/rosout", Qos::ROSOUT)?;
        let outlet = Arc::new(Outlet {
            node: node.clone(),
            logger: logger.clone(),
            publisher,
            counts: Counts::default(),
        });
        logging.add_outlet(&logger, &outlet);
        Ok(Self { logging: Arc::clone(logging), logger, outlet })
    }

    /// What has become of the node's lines.
    pub(crate) fn counters(&self) -> RosoutCounters {
        self.outlet.counts.read()
    }
}

impl Drop for Rosout {
    fn drop(&mut self) {
        if !self.logging.is_of_this_process() {
            return;
        }
        self.logging.remove_outlet(&self.logger, &self.outlet);
        if self.outlet.node.context().is_ok() {
            self.logging.queue.wait_for(&self.outlet, LAST_LINES_MAX);
        }
    }
}

/// The `/rosout` of one node.
pub(crate) struct Outlet {
    node: Node,
    logger: String,
    publisher: Publisher<Log>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    published: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
    cut: AtomicU64,
}

impl Counts {
    fn read(&self) -> RosoutCounters {
        let read = |it: &AtomicU64| it.load(Ordering::Relaxed);
        RosoutCounters {
            published: read(&self.published),
            dropped: read(&self.dropped),
            failed: read(&self.failed),
            cut: read(&self.cut),
        }
    }
}

impl Outlet {
    pub(crate) fn count_cut(&self) {
        self.counts.cut.fetch_add(1, Ordering::Relaxed);
    }

    fn publish(&self, line: Log) {
        let counter = match self.publisher.publish(line) {
            Ok(()) => &self.counts.published,
            // What fails here cannot be logged here.
            Err(_) => &self.counts.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Tells the readers of `/rosout` what they do not see.
    fn publish_loss(&self, lost: u64) {
        self.publish(Log {
            stamp: time(clock::wall_ns()),
            level: Severity::Warn as u8,
            name: self.logger.clone(),
            msg: format!(
                "{lost} lines of this log were dropped, since more came than could be published"
            ),
            file: file!().to_owned(),
            function: module_path!().to_owned(),
            line: line!(),
        });
    }
}

/// Lines that wait to be published, of all nodes, in their order.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// A line has come, or the end.
    news: Condvar,
    /// A node's lines are all published.
    emptied: Condvar,
}

#[derive(Default)]
struct State {
    lines: VecDeque<(Arc<Outlet>, Log)>,
    /// Of whom something waits or is being published; few enough to look through.
    waiting: Vec<Waiting>,
    has_thread: bool,
    is_over: bool,
}

struct Waiting {
    outlet: Arc<Outlet>,
    lines: usize,
    bytes: usize,
    /// What was dropped since there was room.
    lost: u64,
}

thread_local! {
    static IS_PUBLISHING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

impl Queue {
    /// Starts the thread that publishes, if there is none.
    fn start(self: &Arc<Self>) -> Result<()> {
        let mut state = lock(&self.state);
        if state.has_thread {
            return Ok(());
        }
        let queue = Arc::clone(self);
        let spawned = thread::Builder::new().name("tsuji-rosout".to_owned()).spawn(move || {
            IS_PUBLISHING.set(true);
            queue.publish_all();
        });
        spawned.map_err(|error| Error::new(ErrorKind::Exhausted, format!("a thread: {error}")))?;
        state.has_thread = true;
        Ok(())
    }

    /// The thread publishes what it has, and ends.
    pub(crate) fn end(&self) {
        lock(&self.state).is_over = true;
        self.news.notify_all();
    }

    /// Lets a line be published, or drops it where too much waits. Never waits for that.
    pub(crate) fn push(&self, outlet: Arc<Outlet>, line: Log) {
        if IS_PUBLISHING.get() {
            outlet.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut state = lock(&self.state);
        let State { lines, waiting, .. } = &mut *state;
        let found = waiting.iter().position(|it| Arc::ptr_eq(&it.outlet, &outlet));
        let at = found.unwrap_or_else(|| {
            let outlet = Arc::clone(&outlet);
            waiting.push(Waiting { outlet, lines: 0, bytes: 0, lost: 0 });
            waiting.len() - 1
        });
        let of = &mut waiting[at];
        if QUEUE_LINES_MAX <= of.lines || QUEUE_BYTES_MAX <= of.bytes {
            of.lost += 1;
            outlet.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        of.lines += 1;
        of.bytes += line.msg.len();
        lines.push_back((outlet, line));
        drop(state);
        self.news.notify_one();
    }

    fn publish_all(&self) {
        loop {
            let mut state = lock(&self.state);
            let Some((outlet, line)) = state.lines.pop_front() else {
                if state.is_over {
                    return;
                }
                drop(self.news.wait(state).unwrap_or_else(PoisonError::into_inner));
                continue;
            };
            drop(state);
            let bytes = line.msg.len();
            outlet.publish(line);
            // Whoever lets go of an outlet last may end the whole log, which asks for the lock.
            drop(self.published(&outlet, bytes));
        }
    }

    /// A line of this outlet is published. Once no more wait, what was lost meanwhile is told, and what waited is
    /// handed out, to be dropped without the lock.
    fn published(&self, outlet: &Arc<Outlet>, bytes: usize) -> Option<Waiting> {
        let is_it = |it: &Waiting| Arc::ptr_eq(&it.outlet, outlet);
        let mut state = lock(&self.state);
        let at = state.waiting.iter().position(is_it)?;
        let of = &mut state.waiting[at];
        of.bytes -= bytes;
        if 1 < of.lines {
            of.lines -= 1;
            return None;
        }
        let lost = std::mem::take(&mut of.lost);
        if 0 < lost {
            drop(state);
            outlet.publish_loss(lost);
            state = lock(&self.state);
        }
        // More may have come while it was told, but of this outlet nothing has gone: only this thread takes any away.
        let at = state.waiting.iter().position(is_it)?;
        let of = &mut state.waiting[at];
        of.lines -= 1;
        if of.lines != 0 {
            return None;
        }
        self.emptied.notify_all();
        Some(state.waiting.swap_remove(at))
    }

    /// Waits until nothing of this outlet waits, for at most `timeout`.
    fn wait_for(&self, outlet: &Arc<Outlet>, timeout: Duration) {
        if IS_PUBLISHING.get() {
            return;
        }
        let deadline = Instant::now() + timeout;
        let mut state = lock(&self.state);
        while state.waiting.iter().any(|it| Arc::ptr_eq(&it.outlet, outlet)) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.emptied.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;

    #[test]
    fn what_publishing_itself_says_is_dropped_and_counted() {
        let folder = std::env::temp_dir().join(format!("tsuji-outlet-{}", std::process::id()));
        let context = Context::builder().runtime_dir(&folder).domain(7).isolated().build().unwrap();
        let logging = context.logging();
        let node = context.node("speaker").unwrap();
        let rosout = logging.rosout(&node).unwrap().unwrap();
        let push = || {
            let outlet = logging.core().outlet_of("speaker.child").unwrap();
            logging.core().queue.push(outlet, Log::default());
        };
        IS_PUBLISHING.set(true);
        push();
        IS_PUBLISHING.set(false);
        push();
        while rosout.counters().published == 0 {
            thread::yield_now();
        }
        let counters = rosout.counters();
        assert_eq!((counters.published, counters.dropped), (1, 1));
        drop((rosout, node, context));
        let _ = std::fs::remove_dir_all(&folder);
    }
}

//! The thread that asks the other processes, so that keys never wait for an answer.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use tsuji::{Context, ProcessEngines, ProcessInfo, RouteReport, RouteSetting};

use super::processor::Processor;
use crate::routes::{ANSWER, LOOK_SHARE};

/// How soon after a setting the routes are read again.
const CHANGE: Duration = Duration::from_millis(100);

/// What the watcher is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Read the routes so often; `None` not at all.
    Every(Option<Duration>),
    /// Read what each process and its engines take, or do not.
    Processes(bool),
    /// Set the transport of a topic; with `None` leave it to the policy.
    Set { topic: String, transport: Option<String> },
}

/// What the watcher has found out, in the order in which it did.
#[derive(Debug)]
pub(super) enum Report {
    /// What there is.
    Snapshot(Snapshot),
    /// What each process answered to [`Order::Set`].
    Set { topic: String, transport: Option<String>, answers: Vec<RouteSetting> },
}

/// What there was at one moment.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) flows: Vec<RouteReport>,
    /// What each process takes, where that was wanted.
    pub(super) processes: Option<Vec<ProcessEngines>>,
    /// The share of a core that each of them has taken since the snapshot before, by its token, as far as that is known.
    pub(super) shares: HashMap<String, f64>,
    /// The other processes of the domain.
    pub(super) others: Vec<ProcessInfo>,
}

/// The way to the thread, which ends when this is dropped, or the context is shut down.
pub(super) struct Watcher {
    orders: Sender<Order>,
    reports: Receiver<tsuji::Result<Report>>,
}

impl Watcher {
    pub(super) fn start(context: &Context, every: Duration) -> io::Result<Self> {
        let (orders, ordered) = channel();
        let (sender, reports) = channel();
        let context = context.clone();
        let run = move || {
            // Nobody waits any more for what is left.
            let _ = watch(&context, every, &ordered, &sender);
        };
        thread::Builder::new().name("watcher".to_owned()).spawn(run)?;
        Ok(Self { orders, reports })
    }

    /// Hands an order over. Of a watcher that has ended, [`report`](Self::report) tells it.
    pub(super) fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// The next report, if there is one.
    pub(super) fn report(&self) -> anyhow::Result<Option<Report>> {
        match self.reports.try_recv() {
            Ok(report) => Ok(Some(report?)),
            Err(TryRecvError::Empty) => Ok(None),
            // By a panic: an error was told.
            Err(TryRecvError::Disconnected) => {
                bail!("the thread that asks the other processes has ended")
            }
        }
    }

    /// The next report, waited for as long as processes have to answer.
    pub(super) fn last_report(&self) -> Option<Report> {
        self.reports.recv_timeout(2 * ANSWER).ok()?.ok()
    }
}

/// Reads and sets until nobody gives orders any more, or takes reports, or asking fails.
fn watch(
    context: &Context,
    every: Duration,
    orders: &Receiver<Order>,
    reports: &Sender<tsuji::Result<Report>>,
) -> Option<()> {
    let mut every = Some(every);
    let mut with_processes = false;
    let mut due = Some(Instant::now());
    let mut processor = Processor::default();
    loop {
        let order = match due {
            Some(due) => orders.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let began = Instant::now();
        let report = match order {
            Ok(Order::Every(wanted)) => {
                (every, due) = (wanted, wanted.map(|_| began));
                continue;
            }
            Ok(Order::Processes(wanted)) => {
                (with_processes, due) = (wanted, Some(began));
                processor = Processor::default();
                continue;
            }
            Ok(Order::Set { topic, transport }) => {
                let own = context.token();
                let answers = context.set_route(&topic, transport.as_deref(), ANSWER);
                due = Some(Instant::now() + CHANGE);
                answers.map(|mut answers| {
                    answers.retain(|it| it.process.token != own);
                    Report::Set { topic, transport, answers }
                })
            }
            Err(RecvTimeoutError::Timeout) => {
                let snapshot = snapshot(context, with_processes, &mut processor);
                due = every.map(|every| began + every.max(began.elapsed() * LOOK_SHARE));
                snapshot.map(Report::Snapshot)
            }
            Err(RecvTimeoutError::Disconnected) => return None,
        };
        let is_over = report.is_err();
        reports.send(report).ok()?;
        if is_over {
            return None;
        }
    }
}

fn snapshot(
    context: &Context,
    with_processes: bool,
    processor: &mut Processor,
) -> tsuji::Result<Snapshot> {
    let own = context.token();
    let processes = match with_processes {
        true => {
            let mut all = context.engines(ANSWER)?;
            // This command is there for a moment only.
            all.retain(|it| it.process.token != own);
            Some(all)
        }
        false => None,
    };
    let shares = processor.look(processes.iter().flatten().map(|it| &it.process));
    Ok(Snapshot {
        shares,
        flows: context.routes(ANSWER)?,
        processes,
        others: context.peer_processes().into_iter().map(|it| it.process).collect(),
    })
}

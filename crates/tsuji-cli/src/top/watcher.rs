//! What looks: a thread that asks the other processes, so that keys never wait for an answer.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tsuji::{Context, ProcessEngines, ProcessInfo, RouteReport, RouteSetting};

use crate::routes::ANSWER;

/// A look takes at most one in so many parts of the time, since everybody has to answer.
const LOOK_SHARE: u32 = 10;

/// How soon is looked what a setting has changed.
const CHANGE: Duration = Duration::from_millis(100);

/// What is asked of the watcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Look so often; `None` not at all.
    Every(Option<Duration>),
    /// Ask for what each process and its engines take, or do not.
    Processes(bool),
    /// Set the transport of a topic; with `None` leave it to the policy.
    Set { topic: String, transport: Option<String> },
}

/// What the watcher has learned.
#[derive(Debug)]
pub(super) enum News {
    /// What there is.
    Look(Look),
    /// What each process answered to an order.
    Set { topic: String, transport: Option<String>, answers: Vec<RouteSetting> },
}

/// What there was at one moment.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) flows: Vec<RouteReport>,
    /// What each process takes, where that was asked for.
    pub(super) processes: Option<Vec<ProcessEngines>>,
    /// The other processes of the domain.
    pub(super) others: Vec<ProcessInfo>,
}

/// A thread that looks. It ends when this is dropped, or the context is shut down.
pub(super) struct Watcher {
    orders: Sender<Order>,
    news: Receiver<tsuji::Result<News>>,
}

impl Watcher {
    pub(super) fn start(context: &Context, every: Duration) -> io::Result<Self> {
        let (orders, ordered) = channel();
        let (tell, news) = channel();
        let context = context.clone();
        let run = move || {
            // Nobody hears it who has ended.
            let _ = watch(&context, every, &ordered, &tell);
        };
        thread::Builder::new().name("watcher".to_owned()).spawn(run)?;
        Ok(Self { orders, news })
    }

    /// Hands an order over. A watcher that has ended has told why.
    pub(super) fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// What has been learned since the last time.
    pub(super) fn news(&self) -> impl Iterator<Item = tsuji::Result<News>> {
        self.news.try_iter()
    }
}

/// Looks and obeys until nobody gives orders any more, or hears what is told, or asking fails.
fn watch(
    context: &Context,
    every: Duration,
    orders: &Receiver<Order>,
    tell: &Sender<tsuji::Result<News>>,
) -> Option<()> {
    let mut every = Some(every);
    let mut with_processes = false;
    let mut due = Instant::now();
    loop {
        let order = match every {
            Some(_) => orders.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let began = Instant::now();
        let news = match order {
            Ok(Order::Every(wanted)) => {
                (every, due) = (wanted, began);
                continue;
            }
            Ok(Order::Processes(wanted)) => {
                (with_processes, due) = (wanted, began);
                continue;
            }
            Ok(Order::Set { topic, transport }) => {
                let own = context.token();
                let answers = context.set_route(&topic, transport.as_deref(), ANSWER);
                due = Instant::now() + CHANGE;
                answers.map(|mut answers| {
                    answers.retain(|it| it.process.token != own);
                    News::Set { topic, transport, answers }
                })
            }
            Err(RecvTimeoutError::Timeout) => {
                let look = look(context, with_processes);
                due = began + every?.max(began.elapsed() * LOOK_SHARE);
                look.map(News::Look)
            }
            Err(RecvTimeoutError::Disconnected) => return None,
        };
        let is_over = news.is_err();
        tell.send(news).ok()?;
        if is_over {
            return None;
        }
    }
}

fn look(context: &Context, with_processes: bool) -> tsuji::Result<Look> {
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
    Ok(Look {
        flows: context.routes(ANSWER)?,
        processes,
        others: context.peer_processes().into_iter().map(|it| it.process).collect(),
    })
}

//! All flows and processes of the domain, for whoever wants to know. Every process has to answer that, which a thread waits for. It
//! begins with the first question.

use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tsuji::{Context, Graph, ProcessEngines, RouteReport};

/// The way to the thread that asks the processes.
pub(crate) struct Observer {
    context: Context,
    thread: Mutex<Option<(SyncSender<Question>, JoinHandle<()>)>>,
}

/// What there was at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    at: Instant,
    pub(crate) graph: Graph,
    pub(crate) routes: Vec<RouteReport>,
    /// What each process takes, the bridge's own among them; empty unless somebody wanted that.
    pub(crate) processes: Vec<ProcessEngines>,
    /// The other processes of the domain.
    pub(crate) others: usize,
}

/// What somebody wants to know, and what becomes of the answer: what there is, or a sentence why that is not known.
struct Question {
    wants_processes: bool,
    answer: Box<Answer>,
}

type Answer = dyn FnOnce(Result<&Snapshot, &str>) + Send;

impl Observer {
    pub(crate) fn new(context: Context) -> Self {
        Self { context, thread: Mutex::default() }
    }

    /// Has `answer` called with what there is, on another thread, or at once with the reason why that is not known.
    pub(crate) fn ask(
        &self,
        wants_processes: bool,
        answer: impl FnOnce(Result<&Snapshot, &str>) + Send + 'static,
    ) {
        let asked = Question { wants_processes, answer: Box::new(answer) };
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let (sender, questions) = mpsc::sync_channel(QUESTIONS_MAX);
            let context = self.context.clone();
            let serve = move || serve(&questions, &context);
            match thread::Builder::new().name("bridge-routes".to_owned()).spawn(serve) {
                Ok(spawned) => *thread = Some((sender, spawned)),
                Err(error) => return (asked.answer)(Err(&format!("thread: {error}"))),
            }
        }
        let Some((sender, _)) = &*thread else { return };
        match sender.try_send(asked) {
            Ok(()) => {}
            Err(TrySendError::Full(asked)) => {
                (asked.answer)(Err("too many ask for routes or metrics at a time; ask later"));
            }
            // By a panic, which was told.
            Err(TrySendError::Disconnected(asked)) => {
                (asked.answer)(Err("the processes cannot be asked any more"));
            }
        }
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some((sender, thread)) = thread.take() {
            drop(sender);
            // A thread that has panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Answers until nobody can ask any more.
fn serve(questions: &Receiver<Question>, context: &Context) {
    let mut snapshot: Option<Result<Snapshot, String>> = None;
    while let Ok(first) = questions.recv() {
        let all: Vec<Question> = std::iter::once(first).chain(questions.try_iter()).collect();
        let wants_processes = all.iter().any(|it| it.wants_processes);
        let is_enough = |it: &Snapshot| {
            it.at.elapsed() < FRESH && !(wants_processes && it.processes.is_empty())
        };
        if !snapshot.as_ref().is_some_and(|it| it.as_ref().is_ok_and(is_enough)) {
            snapshot = Some(take(context, wants_processes).map_err(|error| error.to_string()));
        }
        let Some(snapshot) = &snapshot else { continue };
        for Question { answer, .. } in all {
            answer(snapshot.as_ref().map_err(String::as_str));
        }
    }
}

fn take(context: &Context, wants_processes: bool) -> tsuji::Result<Snapshot> {
    let processes = if wants_processes { context.engines(ANSWER)? } else { Vec::new() };
    let routes = context.routes(ANSWER)?;
    Ok(Snapshot {
        at: Instant::now(),
        graph: context.graph(),
        routes,
        processes,
        others: context.peer_processes().len(),
    })
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").finish_non_exhaustive()
    }
}

/// How long other processes have to say what they know of flows.
const ANSWER: Duration = Duration::from_secs(1);

/// No more often than this other processes are asked; who asks meanwhile gets the last snapshot.
const FRESH: Duration = Duration::from_millis(200);

/// Questions that wait for a look. One more fails.
const QUESTIONS_MAX: usize = 4096;

//! All flows and processes of the domain, for whoever wants to know, or to set a route. Every process has to answer that, which a thread
//! waits for. It begins with the first question.

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
    others: usize,
}

impl Snapshot {
    /// What there may be, for tests.
    #[cfg(test)]
    pub(crate) fn new(
        graph: Graph,
        routes: Vec<RouteReport>,
        processes: Vec<ProcessEngines>,
    ) -> Self {
        Self { at: Instant::now(), graph, routes, processes, others: 0 }
    }

    /// How many contexts have not said in time what they take.
    pub(crate) fn silent(&self) -> usize {
        (self.others + 1).saturating_sub(self.processes.len())
    }
}

/// What somebody wants, and what becomes of the answer: what there is, or a sentence why that is not known.
enum Question {
    Look { wants_processes: bool, answer: Box<Answer> },
    Act(Box<Act>),
}

type Answer = dyn FnOnce(Result<&Snapshot, &str>) + Send;
type Act = dyn FnOnce(Result<&mut Watch<'_>, &str>) + Send;

impl Question {
    fn fail(self, why: &str) {
        match self {
            Self::Look { answer, .. } => answer(Err(why)),
            Self::Act(act) => act(Err(why)),
        }
    }
}

/// What the thread has seen, for whoever acts on it.
pub(crate) struct Watch<'a> {
    pub(crate) context: &'a Context,
    snapshot: Option<Snapshot>,
}

impl Watch<'_> {
    /// Takes what there is now. Whoever asks next gets it too, if that is soon.
    pub(crate) fn refresh(&mut self) -> Result<&Snapshot, String> {
        self.take(false)
    }

    /// Leaves what was seen behind, as it has been changed.
    pub(crate) fn forget(&mut self) {
        self.snapshot = None;
    }

    /// What there was a moment ago, or at any time from `since` on, or else what there is now.
    fn recent(&mut self, wants_processes: bool, since: Instant) -> Result<&Snapshot, String> {
        let is_recent = |it: &mut Snapshot| since <= it.at || it.at.elapsed() < FRESH;
        let Some(mut snapshot) = self.snapshot.take_if(is_recent) else {
            return self.take(wants_processes);
        };
        if wants_processes && snapshot.processes.is_empty() {
            let engines = self.context.engines(ANSWER);
            snapshot.processes = engines.map_err(|error| error.to_string())?;
            // A process that has come since brings names with it that decide who may know of it.
            snapshot.graph = self.context.graph();
            snapshot.others = self.context.peer_processes().len();
        }
        Ok(self.snapshot.insert(snapshot))
    }

    fn take(&mut self, wants_processes: bool) -> Result<&Snapshot, String> {
        let taken = take(self.context, wants_processes).map_err(|error| error.to_string())?;
        Ok(self.snapshot.insert(taken))
    }
}

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
        self.put(Question::Look { wants_processes, answer: Box::new(answer) });
    }

    /// Has `act` called where all flows can be seen and routes set, which may take as long as processes take to answer; or at once with
    /// the reason why that is not possible. One act is over before the next begins.
    pub(crate) fn act(&self, act: impl FnOnce(Result<&mut Watch<'_>, &str>) + Send + 'static) {
        self.put(Question::Act(Box::new(act)));
    }

    fn put(&self, asked: Question) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let (sender, questions) = mpsc::sync_channel(QUESTIONS_MAX);
            let context = self.context.clone();
            let serve = move || serve(&questions, &context);
            match thread::Builder::new().name("bridge-routes".to_owned()).spawn(serve) {
                Ok(spawned) => *thread = Some((sender, spawned)),
                Err(error) => return asked.fail(&format!("thread: {error}")),
            }
        }
        let Some((sender, _)) = &*thread else { return };
        match sender.try_send(asked) {
            Ok(()) => {}
            Err(TrySendError::Full(asked)) => {
                asked.fail("too many ask for routes or metrics at a time; ask later");
            }
            // By a panic, which was told.
            Err(TrySendError::Disconnected(asked)) => {
                asked.fail("the processes cannot be asked any more");
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
    let mut watch = Watch { context, snapshot: None };
    while let Ok(first) = questions.recv() {
        let since = Instant::now();
        let all: Vec<Question> = std::iter::once(first).chain(questions.try_iter()).collect();
        // All that wait share a look. Who wants no processes does not wait for them, whoever else does.
        for question in all {
            match question {
                Question::Look { wants_processes, answer } => {
                    match watch.recent(wants_processes, since) {
                        Ok(snapshot) => answer(Ok(snapshot)),
                        Err(why) => answer(Err(&why)),
                    }
                }
                Question::Act(act) => act(Ok(&mut watch)),
            }
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
pub(crate) const ANSWER: Duration = Duration::from_secs(1);

/// No more often than this other processes are asked; who asks meanwhile gets the last snapshot.
const FRESH: Duration = Duration::from_millis(200);

/// Questions that wait for a look. One more fails.
const QUESTIONS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tsuji::Interop;

    use super::*;

    #[test]
    fn who_wants_no_processes_does_not_wait_for_them() {
        let folder = tsuji_platform::process::temporary_path("tsuji-observer");
        std::fs::create_dir(&folder).unwrap();
        let builder = Context::builder().runtime_dir(&folder).interop(Interop::NONE).isolated();
        let context = builder.build().unwrap();
        let counts = Arc::new(Mutex::new(Vec::new()));
        let (sender, questions) = mpsc::sync_channel(3);
        // All of them wait already when the first is taken.
        for wants_processes in [false, true, true] {
            let counts = Arc::clone(&counts);
            let answer = Box::new(move |snapshot: Result<&Snapshot, &str>| {
                counts.lock().unwrap().push(snapshot.unwrap().processes.len());
            });
            sender.send(Question::Look { wants_processes, answer }).unwrap();
        }
        drop(sender);
        serve(&questions, &context);
        assert_eq!(*counts.lock().unwrap(), [0, 1, 1]);
        context.shutdown();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

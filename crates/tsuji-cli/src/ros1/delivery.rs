//! Telling nodes what the master has decided, by their own servers.
//!
//! Each node has a queue of its own, so that one hears things in order and one that does not answer holds up nobody else. Of
//! what waits for a node, the last about a topic or a parameter takes the place of an earlier one.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tsuji_platform::deadline::DeadlineStream;
use tsuji_platform::poll::Waker;
use tsuji_ros1::http::{encode_request, take_response};
use tsuji_ros1::master::Notice;
use tsuji_ros1::uri::Uri;
use tsuji_ros1::xmlrpc::{Call, Reply};

/// Nodes that are told something at a time.
const WORKERS: usize = 8;
/// How many of these may be ones that failed the last time, and so may take long.
const FAILING_WORKERS: usize = 4;
/// How long a node may take to be connected to, and to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// Bytes of all notices that wait. What comes beyond is dropped, and counted as failed.
const WAITING_BYTES_MAX: usize = 256 << 20;
/// Nodes that are known to have failed. Beyond it all are forgotten, and so told of again.
const FAILING_MAX: usize = 10_000;

/// What became of a notice.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The problem, if it failed.
    pub(super) problem: Option<Problem>,
}

#[derive(Debug)]
pub(super) struct Problem {
    pub(super) api: String,
    pub(super) text: String,
    /// False if the notice before it to the same node failed as well.
    pub(super) is_first: bool,
}

/// Tells nodes, by threads of its own, which end with the process.
#[derive(Debug)]
pub(super) struct Delivery {
    shared: Arc<Shared>,
    outcomes: Receiver<Outcome>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    waker: Waker,
}

#[derive(Debug, Default)]
struct State {
    /// What waits, for each node that has something waiting or is being told something.
    waiting: HashMap<String, VecDeque<Notice>>,
    /// Nodes whose turn is next: those that answered the last time, and those that did not.
    ready: VecDeque<String>,
    ready_failing: VecDeque<String>,
    busy_failing: usize,
    failing: HashSet<String>,
    bytes: usize,
}

impl State {
    /// False if there is no room.
    fn push(&mut self, notice: Notice) -> bool {
        let api = notice.api().to_owned();
        let bytes = notice.bytes();
        if let Some(queue) = self.waiting.get_mut(&api)
            && let Some(place) = queue.iter().position(|it| is_replaced(it, &notice))
            && let Some(old) = queue.remove(place)
        {
            self.bytes -= old.bytes();
        }
        if WAITING_BYTES_MAX < self.bytes + bytes {
            return false;
        }
        self.bytes += bytes;
        match self.waiting.get_mut(&api) {
            Some(queue) => queue.push_back(notice),
            None => {
                self.waiting.insert(api.clone(), VecDeque::from([notice]));
                self.enqueue(api);
            }
        }
        true
    }

    fn enqueue(&mut self, api: String) {
        let is_failing = self.failing.contains(&api);
        if is_failing { &mut self.ready_failing } else { &mut self.ready }.push_back(api);
    }

    /// What is next, and whether its node failed the last time.
    fn pop(&mut self) -> Option<(Notice, bool)> {
        let (api, was_failing) = match self.ready.pop_front() {
            Some(api) => (api, false),
            None if self.busy_failing < FAILING_WORKERS => (self.ready_failing.pop_front()?, true),
            None => return None,
        };
        let notice = self.waiting.get_mut(&api)?.pop_front()?;
        self.bytes -= notice.bytes();
        self.busy_failing += usize::from(was_failing);
        Some((notice, was_failing))
    }

    /// Goes on with a node that was told something. True if it fails, and has not the time before.
    fn finish(&mut self, api: &str, was_failing: bool, is_failed: bool) -> bool {
        self.busy_failing -= usize::from(was_failing);
        let is_first = if is_failed {
            if FAILING_MAX <= self.failing.len() {
                self.failing.clear();
            }
            self.failing.insert(api.to_owned())
        } else {
            self.failing.remove(api);
            false
        };
        if self.waiting.get(api).is_some_and(|it| !it.is_empty()) {
            self.enqueue(api.to_owned());
        } else {
            self.waiting.remove(api);
        }
        is_first
    }
}

/// Whether nobody needs to be told the old one any more.
fn is_replaced(old: &Notice, new: &Notice) -> bool {
    match (old, new) {
        (
            Notice::PublisherUpdate { topic: old, .. },
            Notice::PublisherUpdate { topic: new, .. },
        )
        | (Notice::ParamUpdate { key: old, .. }, Notice::ParamUpdate { key: new, .. }) => {
            old == new
        }
        _ => false,
    }
}

impl Delivery {
    pub(super) fn start() -> io::Result<Self> {
        let waker = Waker::new()?;
        let shared = Shared { state: Mutex::default(), changed: Condvar::new(), waker };
        let shared = Arc::new(shared);
        let (told, outcomes) = channel();
        for _ in 0..WORKERS {
            let (shared, told) = (Arc::clone(&shared), told.clone());
            thread::Builder::new()
                .name("ros1 notices".to_owned())
                .spawn(move || work(&shared, &told))?;
        }
        Ok(Self { shared, outcomes })
    }

    /// Given when there are outcomes.
    pub(super) fn waker(&self) -> &Waker {
        &self.shared.waker
    }

    /// Puts a notice at the end of its node's queue. False if it is dropped, since too much waits.
    pub(super) fn push(&self, notice: Notice) -> bool {
        let is_taken = lock(&self.shared.state).push(notice);
        self.shared.changed.notify_one();
        is_taken
    }

    pub(super) fn outcomes(&self) -> impl Iterator<Item = Outcome> {
        self.shared.waker.take();
        self.outcomes.try_iter()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // No code that could panic runs within.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(shared: &Shared, told: &Sender<Outcome>) {
    loop {
        let mut state = lock(&shared.state);
        let (notice, was_failing) = loop {
            match state.pop() {
                Some(next) => break next,
                None => state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(state);
        let problem = deliver(&notice).err();
        let is_first = lock(&shared.state).finish(notice.api(), was_failing, problem.is_some());
        shared.changed.notify_one();
        let problem = problem.map(|text| Problem { api: notice.api().to_owned(), text, is_first });
        if told.send(Outcome { problem }).is_err() {
            return;
        }
        shared.waker.give();
    }
}

fn deliver(notice: &Notice) -> Result<(), String> {
    let uri: Uri = notice.api().parse().map_err(|it: tsuji_ros1::uri::UriError| it.to_string())?;
    if uri.scheme != "http" {
        return Err(format!("{} is not understood here; allowed: http", uri.scheme));
    }
    let call = notice.to_call();
    let reply = ask(&uri, &call, CONNECT_TIMEOUT).map_err(|it| it.to_string());
    match reply.and_then(Reply::ros) {
        Ok(_) => Ok(()),
        // It goes without a word, as it was asked to.
        Err(_) if matches!(notice, Notice::Shutdown { .. }) => Ok(()),
        Err(error) => Err(format!("{}: {error}", call.method)),
    }
}

/// Calls a method of a node and waits for its answer.
pub(super) fn ask(uri: &Uri, call: &Call, connect_timeout: Duration) -> io::Result<Reply> {
    let mut stream = DeadlineStream::connect(&uri.host, uri.port, connect_timeout, ANSWER_TIMEOUT)?;
    stream.get_ref().set_nodelay(true)?;
    stream.write_all(&encode_request(&uri.authority(), &uri.path, &call.encode()))?;
    let (mut buffer, mut part) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        let count = stream.read(&mut part)?;
        buffer.extend_from_slice(&part[..count]);
        if let Some(response) = take_response(&mut buffer, count == 0).map_err(io::Error::other)? {
            if response.status != 200 {
                return Err(io::Error::other(format!("it answers HTTP {}", response.status)));
            }
            return Reply::parse(&response.body).map_err(io::Error::other);
        }
    }
}

#[cfg(test)]
mod tests {
    use tsuji_ros1::xmlrpc::Value;

    use super::*;

    fn update(api: &str, topic: &str, count: usize) -> Notice {
        let publishers = vec!["http://p:1/".to_owned(); count];
        Notice::PublisherUpdate { api: api.to_owned(), topic: topic.to_owned(), publishers }
    }

    fn all(state: &mut State) -> Vec<Notice> {
        let mut all = Vec::new();
        while let Some((notice, was_failing)) = state.pop() {
            state.finish(notice.api(), was_failing, false);
            all.push(notice);
        }
        assert_eq!((state.bytes, state.waiting.len()), (0, 0));
        all
    }

    #[test]
    fn the_newest_of_a_topic_takes_the_place_of_what_waits() {
        let mut state = State::default();
        for notice in
            [update("a", "/t", 1), update("a", "/u", 1), update("b", "/t", 1), update("a", "/t", 2)]
        {
            assert!(state.push(notice));
        }
        assert_eq!(
            all(&mut state),
            [update("a", "/u", 1), update("b", "/t", 1), update("a", "/t", 2)]
        );
    }

    #[test]
    fn a_node_is_told_one_thing_at_a_time() {
        let mut state = State::default();
        state.push(update("a", "/t", 1));
        let (first, was_failing) = state.pop().unwrap();
        state.push(update("a", "/t", 2));
        assert!(state.pop().is_none(), "it is being told something");
        assert!(state.finish(first.api(), was_failing, true));
        let (second, was_failing) = state.pop().unwrap();
        assert_eq!((second, was_failing), (update("a", "/t", 2), true));
        assert!(!state.finish("a", true, true), "it is told once that it fails");
    }

    #[test]
    fn nodes_that_fail_leave_room_for_others() {
        let mut state = State::default();
        let dead: Vec<String> = (0..2 * WORKERS).map(|it| format!("dead{it}")).collect();
        state.failing.extend(dead.iter().cloned());
        dead.iter().for_each(|it| assert!(state.push(update(it, "/t", 1))));
        let taken = std::iter::from_fn(|| state.pop()).count();
        assert_eq!(taken, FAILING_WORKERS);
        state.push(update("well", "/t", 1));
        assert_eq!(state.pop().unwrap().0.api(), "well");
    }

    #[test]
    fn what_waits_has_a_limit() {
        let mut state = State::default();
        let large = |key: &str| Notice::ParamUpdate {
            api: "a".to_owned(),
            key: key.to_owned(),
            value: Value::Base64(vec![0; WAITING_BYTES_MAX / 2]),
        };
        assert!(state.push(large("/a/")) && !state.push(large("/b/")) && state.push(large("/a/")));
    }
}

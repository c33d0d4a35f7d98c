//! The master's server: all connections on one thread, so that none waits for another.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tsuji_platform::poll::{Poll, Ready};
use tsuji_platform::signals;
use tsuji_ros1::http::{BODY_BYTES_MAX, Request, encode_response, take_request};
use tsuji_ros1::master::{Master, Notice};
use tsuji_ros1::xmlrpc::{Call, Reply};

use super::delivery::Delivery;
use crate::output;

/// Connections at a time. At that, the one that has been idle longest is closed for a new one; if none is idle, the new one is
/// closed. Nodes connect again.
const CONNECTIONS_MAX: usize = 512;
/// How long a connection stays on which nobody asks anything.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a request may take to come whole, and an answer not to go on.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of one connection that were received and not answered yet. With more it is closed.
const RECEIVED_BYTES_MAX: usize = BODY_BYTES_MAX + (2 << 20);
/// Bytes that all connections have received and not answered, or that wait to be sent. With more, the connection that has most
/// is closed.
const BUFFERED_BYTES_MAX: usize = 512 << 20;
/// How long nothing is accepted when there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);

const SIGNALS: u64 = 0;
const LISTENER: u64 = 1;
const OUTCOMES: u64 = 2;
const FIRST_CONNECTION: u64 = 3;

/// A descriptor that becomes readable when this process is told to end.
pub(super) fn signals() -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    for signal in signals::heard(&[SIGINT, SIGTERM, SIGHUP]) {
        signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    Ok(reader)
}

/// A call that was answered.
pub(super) struct Event<'a> {
    pub(super) call: &'a Call,
    pub(super) reply: &'a Reply,
}

/// Why a master ended.
#[derive(Debug)]
pub(super) enum Ending {
    Signal,
    /// Some node asked for it; which one, and why.
    Asked(String),
}

/// What a master did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statistics {
    pub(super) requests: u64,
    /// Requests of these that were no call of a method there is.
    pub(super) refused: u64,
    pub(super) delivered: u64,
    pub(super) failed: u64,
    pub(super) nodes: usize,
}

pub(super) struct Server {
    poll: Poll,
    listener: TcpListener,
    // Watched while this lives.
    _signals: UnixStream,
    connections: HashMap<u64, Connection>,
    next_key: u64,
    master: Master,
    delivery: Delivery,
    done: Statistics,
}

struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    answer: Vec<u8>,
    /// How much of the answer has gone out.
    sent: usize,
    /// When the request began, or the answer went on, or the last one had gone out.
    since: Instant,
    awaits_room: bool,
    /// No request is taken any more.
    is_ending: bool,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            received: Vec::new(),
            answer: Vec::new(),
            sent: 0,
            since: Instant::now(),
            awaits_room: false,
            is_ending: false,
        }
    }

    fn is_idle(&self) -> bool {
        self.received.is_empty() && self.answer.is_empty()
    }

    fn deadline(&self) -> Instant {
        self.since + if self.is_idle() { IDLE_TIMEOUT } else { REQUEST_TIMEOUT }
    }

    fn bytes(&self) -> usize {
        self.received.capacity() + self.answer.capacity()
    }

    /// Reads what there is. `Ok(false)` if the other end sends no more.
    fn receive(&mut self, part: &mut [u8]) -> io::Result<bool> {
        match self.stream.read(part) {
            Ok(0) => Ok(false),
            Ok(count) => {
                if self.is_idle() {
                    self.since = Instant::now();
                }
                self.received.extend_from_slice(&part[..count]);
                if RECEIVED_BYTES_MAX < self.received.len() {
                    return Err(io::Error::other("too much is received"));
                }
                Ok(true)
            }
            Err(error) if is_later(&error) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Sends what there is room for. True if all has gone out.
    fn send(&mut self) -> io::Result<bool> {
        while self.sent < self.answer.len() {
            match self.stream.write(&self.answer[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.sent += count;
                    self.since = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) if is_later(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.answer = Vec::new();
        self.sent = 0;
        Ok(true)
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl Server {
    pub(super) fn new(
        listener: TcpListener,
        signals: UnixStream,
        master: Master,
        delivery: Delivery,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        listener.set_nonblocking(true)?;
        poll.add(&signals, SIGNALS)?;
        poll.add(&listener, LISTENER)?;
        poll.add(delivery.waker(), OUTCOMES)?;
        Ok(Self {
            poll,
            listener,
            _signals: signals,
            connections: HashMap::new(),
            next_key: FIRST_CONNECTION,
            master,
            delivery,
            done: Statistics::default(),
        })
    }

    pub(super) fn statistics(&self) -> Statistics {
        Statistics { nodes: self.master.node_count(), ..self.done }
    }

    /// Serves until a signal comes, or a node asks for an end. `tell` is told what was answered.
    pub(super) fn serve(
        &mut self,
        mut tell: impl FnMut(&Event<'_>) -> io::Result<()>,
    ) -> anyhow::Result<Ending> {
        let mut events: Vec<Ready> = Vec::new();
        let mut part = vec![0; 64 << 10];
        loop {
            let next = self.connections.values().map(Connection::deadline).min();
            let timeout = next.map(|it| it.saturating_duration_since(Instant::now()));
            self.poll.wait(timeout, &mut events)?;
            for event in &events {
                match event.key {
                    SIGNALS => return Ok(Ending::Signal),
                    LISTENER => self.accept(),
                    OUTCOMES => self.count(),
                    key => {
                        if self.go_on(key, event.readable, &mut part, &mut tell)? {
                            self.keep_bounds();
                        } else {
                            self.connections.remove(&key);
                        }
                    }
                }
            }
            let now = Instant::now();
            self.connections.retain(|_, it| now < it.deadline());
            if let Some(reason) = self.master.shutdown_reason() {
                return Ok(Ending::Asked(reason.to_owned()));
            }
        }
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if CONNECTIONS_MAX <= self.connections.len() && !self.close_idle() {
                        self.done.refused += 1;
                        continue;
                    }
                    let key = self.next_key;
                    self.next_key += 1;
                    // It cannot be served otherwise, so it is closed.
                    let is_watched = stream.set_nonblocking(true).is_ok()
                        && stream.set_nodelay(true).is_ok()
                        && self.poll.add(&stream, key).is_ok();
                    if is_watched {
                        self.connections.insert(key, Connection::new(stream));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => (),
                // There are no descriptors left, most likely.
                Err(_) => {
                    if !self.close_idle() {
                        thread::sleep(PAUSE);
                    }
                    return;
                }
            }
        }
    }

    /// Closes the connection that has been idle longest. False if none is.
    fn close_idle(&mut self) -> bool {
        let idle = self.connections.iter().filter(|it| it.1.is_idle());
        let oldest = idle.min_by_key(|it| it.1.since).map(|it| *it.0);
        oldest.is_some_and(|it| self.connections.remove(&it).is_some())
    }

    fn keep_bounds(&mut self) {
        loop {
            let bytes: usize = self.connections.values().map(Connection::bytes).sum();
            let most = self.connections.iter().max_by_key(|it| it.1.bytes()).map(|it| *it.0);
            match most {
                Some(key) if BUFFERED_BYTES_MAX < bytes => self.connections.remove(&key),
                _ => return,
            };
        }
    }

    /// Reads, answers and writes what can be. False if the connection is over.
    fn go_on(
        &mut self,
        key: u64,
        is_readable: bool,
        part: &mut [u8],
        tell: &mut impl FnMut(&Event<'_>) -> io::Result<()>,
    ) -> anyhow::Result<bool> {
        let Some(mut connection) = self.connections.remove(&key) else { return Ok(true) };
        let mut is_open = true;
        if is_readable {
            match connection.receive(part) {
                Ok(more) => is_open = more,
                Err(_) => return Ok(false),
            }
        }
        loop {
            match connection.send() {
                Ok(true) if connection.is_ending => return Ok(false),
                Ok(true) => (),
                // Whoever sends no more while it does not read either is of no use to wait for.
                Ok(false) if !is_open => return Ok(false),
                Ok(false) => break,
                Err(_) => return Ok(false),
            }
            let request = match take_request(&mut connection.received) {
                Ok(Some(request)) => request,
                Ok(None) if is_open => break,
                Ok(None) => return Ok(false),
                Err(error) => {
                    self.done.requests += 1;
                    self.done.refused += 1;
                    connection.answer = encode_response(error.status(), &error.to_string(), false);
                    connection.is_ending = true;
                    continue;
                }
            };
            if connection.received.is_empty() {
                connection.received = Vec::new();
            }
            connection.is_ending = !request.keep_alive;
            connection.answer = self.answer(&request, &mut connection.is_ending, tell)?;
            connection.since = Instant::now();
        }
        let awaits_room = !connection.answer.is_empty();
        if awaits_room != connection.awaits_room {
            if self.poll.want_write(&connection.stream, key, awaits_room).is_err() {
                return Ok(false);
            }
            connection.awaits_room = awaits_room;
        }
        self.connections.insert(key, connection);
        Ok(true)
    }

    fn answer(
        &mut self,
        request: &Request,
        is_ending: &mut bool,
        tell: &mut impl FnMut(&Event<'_>) -> io::Result<()>,
    ) -> anyhow::Result<Vec<u8>> {
        self.done.requests += 1;
        let status = match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/" | "/RPC2") => 200,
            ("POST", _) => 404,
            _ => 501,
        };
        if status != 200 {
            self.done.refused += 1;
            *is_ending = true;
            let text = "this is a master of ROS 1; allowed is XML-RPC by POST to / or /RPC2";
            return Ok(encode_response(status, text, false));
        }
        let reply = match Call::parse(&request.body) {
            Ok(call) => {
                let (reply, notices) = self.master.handle(&call);
                tell(&Event { call: &call, reply: &reply })?;
                notices.into_iter().for_each(|it| self.notify(it));
                reply
            }
            Err(error) => Reply::Fault { code: 1, text: error.to_string() },
        };
        if matches!(reply, Reply::Fault { .. }) {
            self.done.refused += 1;
        }
        Ok(encode_response(200, &reply.encode(), !*is_ending))
    }

    fn notify(&mut self, notice: Notice) {
        if !self.delivery.push(notice) {
            self.done.failed += 1;
        }
    }

    /// Counts what became of notices, and says which nodes cannot be told any.
    fn count(&mut self) {
        for outcome in self.delivery.outcomes() {
            match outcome.problem {
                None => self.done.delivered += 1,
                Some(problem) => {
                    self.done.failed += 1;
                    if problem.is_first {
                        let (api, text) = (problem.api, problem.text);
                        output::warning(format_args!(
                            "the node at {api} cannot be told of changes; it stays registered: {text}"
                        ));
                    }
                }
            }
        }
    }
}

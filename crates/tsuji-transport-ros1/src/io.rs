//! The thread that serves all connections: it takes what comes, and sends what had to wait.

use std::collections::HashMap;
use std::io::{ErrorKind, Read as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use tsuji_engine::Guid;
use tsuji_platform::poll::{Poll, Ready};
use tsuji_ros1::header::{HEADER_BYTES_MAX, Header};
use tsuji_ros1::http;
use tsuji_ros1::xmlrpc::{Call, Reply};

use crate::SAMPLE_BYTES_MAX;
use crate::converter::Converter;
use crate::link::{OutLink, Room};
use crate::service::Pending;
use crate::state::{Calls, Pool, ReaderCore, Shared, Target, prepare};
use crate::topic::{AGREE_WITHIN, HEADER_READ_BYTES};
use crate::types::{Message, Service};

const LISTENER: u64 = 0;
const WAKER: u64 = 1;
/// Numbers of connections begin behind this one.
pub(crate) const KEYS_FROM: u64 = 1;

/// Connections that are served, at most. Beyond it new ones are closed at once.
const CONNECTIONS_MAX: usize = 8192;

/// How long a connection of XML-RPC may be idle.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// What is read of one connection before others have their turn.
const TURN_BYTES: usize = 4 << 20;

/// What is read at once, but for what is left of a large message.
const READ_BYTES: usize = 64 << 10;

/// A buffer that has grown further is given back once its message is taken.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// A connection whose ends have agreed.
pub(crate) struct Connection {
    link: Arc<OutLink>,
    kind: ConnectionKind,
    frames: Frames,
    converter: Converter,
}

/// What a connection is for.
pub(crate) enum ConnectionKind {
    /// Somebody calls the slave API of this process.
    Slave(Slave),
    /// A subscriber of ROS 1, which says nothing.
    Subscriber,
    /// A publisher of ROS 1.
    Source { target: Target, reader: Arc<ReaderCore>, guid: Guid, message: Arc<Message> },
    /// A client of ROS 1.
    Caller { client: Guid, name: String, service: Arc<Service> },
    /// A server of ROS 1.
    Server {
        target: Target,
        reader: Arc<ReaderCore>,
        server: Guid,
        service: Arc<Service>,
        pending: Pending,
    },
}

/// Requests of XML-RPC.
pub(crate) struct Slave {
    received: Vec<u8>,
    since: Instant,
    is_closing: bool,
}

impl Connection {
    pub(crate) fn new(link: Arc<OutLink>, kind: ConnectionKind) -> Self {
        let before = usize::from(matches!(kind, ConnectionKind::Server { .. }));
        Self { link, kind, frames: Frames::new(before), converter: Converter::default() }
    }

    /// How long it may be idle, where that is not for ever.
    fn idle_until(&self) -> Option<Instant> {
        match &self.kind {
            ConnectionKind::Slave(slave) => Some(slave.since + IDLE_MAX),
            _ => None,
        }
    }

    /// True if it was for one request, which is answered.
    fn is_over(&self) -> bool {
        matches!(&self.kind, ConnectionKind::Slave(slave) if slave.is_closing)
            && self.link.is_done()
    }
}

/// A connection that has not said what it is for.
struct Handshake {
    stream: TcpStream,
    received: Vec<u8>,
    until: Instant,
}

/// Messages with their lengths before them, and perhaps a byte before that, as they come.
#[derive(Debug, Default)]
struct Frames {
    before: usize,
    head: Vec<u8>,
    body: Vec<u8>,
    length: Option<usize>,
}

impl Frames {
    fn new(before: usize) -> Self {
        Self { before, ..Self::default() }
    }

    /// Bytes that are left of a message that has begun.
    fn left(&self) -> usize {
        self.length.map_or(0, |it| it.saturating_sub(self.body.len()))
    }

    /// Takes what has come, and hands out what is whole.
    fn feed(&mut self, mut bytes: &[u8], take: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        loop {
            if self.length.is_none() {
                let wanted = self.before + 4 - self.head.len();
                let (head, rest) = bytes.split_at(wanted.min(bytes.len()));
                self.head.extend(head);
                bytes = rest;
                let Some(length) = self.head.get(self.before..).and_then(<[u8]>::first_chunk)
                else {
                    return Ok(());
                };
                let length = u32::from_le_bytes(*length);
                if SAMPLE_BYTES_MAX < length.into() {
                    return Err(format!("a message of {length} bytes; at most {SAMPLE_BYTES_MAX}"));
                }
                self.length = Some(length as usize);
            }
            let (body, rest) = bytes.split_at(self.left().min(bytes.len()));
            self.body.extend_from_slice(body);
            bytes = rest;
            if self.left() != 0 {
                return Ok(());
            }
            take(&self.head[..self.before], &self.body);
            self.length = None;
            self.head.clear();
            self.body.clear();
            if KEPT_BYTES_MAX < self.body.capacity() {
                self.body = Vec::new();
            }
        }
    }

    /// Reads once. Answers how much came; nothing where there is nothing now.
    fn read(
        &mut self,
        mut stream: &TcpStream,
        scratch: &mut [u8],
        take: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<Option<usize>, String> {
        let told = |error: std::io::Error| match error.kind() {
            ErrorKind::WouldBlock => Ok(None),
            ErrorKind::Interrupted => Ok(Some(0)),
            _ => Err(error.to_string()),
        };
        let left = self.left();
        if left <= READ_BYTES {
            return match stream.read(scratch) {
                Ok(0) => Err("it has ended the connection".to_owned()),
                Ok(length) => {
                    self.feed(&scratch[..length], take)?;
                    Ok(Some(length))
                }
                Err(error) => told(error),
            };
        }
        // Where it belongs, without a copy. As it comes, so that a length that lies takes no memory.
        self.body.reserve(left.min(self.body.len().max(1 << 20)));
        let at = self.body.len();
        match rustix::io::read(stream.as_fd(), spare_capacity(&mut self.body)) {
            Ok(0) => Err("it has ended the connection".to_owned()),
            Ok(length) => {
                let beyond = length.saturating_sub(left);
                let rest = self.body.split_off(at + length - beyond);
                if beyond != 0 || self.left() == 0 {
                    self.feed(&rest, take)?;
                }
                Ok(Some(length))
            }
            Err(error) => told(error.into()),
        }
    }
}

/// Serves connections until the participant leaves.
pub(crate) fn run(shared: &Arc<Shared>, listener: &TcpListener) {
    let mut io = Io {
        shared,
        connections: HashMap::new(),
        handshakes: HashMap::new(),
        scratch: vec![0; READ_BYTES],
        due: None,
        is_warned: false,
    };
    let mut events = Vec::new();
    loop {
        let timeout = io.timeout();
        if let Err(error) = shared.poll.wait(timeout, &mut events) {
            tracing::warn!("ros1: connections are not served any more: {error}");
            return;
        }
        let mut state = shared.lock();
        if state.is_leaving {
            return;
        }
        let new = std::mem::take(&mut state.new_connections);
        let to_close = std::mem::take(&mut state.to_close);
        drop(state);
        new.into_iter().for_each(|it| io.add(it));
        for key in to_close {
            if let Some(connection) = io.connections.remove(&key) {
                io.end(connection, "it is not wanted any more");
            }
        }
        for event in &events {
            match event.key {
                LISTENER => io.accept(listener),
                WAKER => shared.waker.take(),
                _ => io.serve(event),
            }
        }
        io.expire();
    }
}

/// Watches what the thread of connections begins with.
pub(crate) fn watch(poll: &Poll, listener: &TcpListener, shared: &Shared) -> std::io::Result<()> {
    poll.add(listener, LISTENER)?;
    poll.add(&shared.waker, WAKER)
}

struct Io<'a> {
    shared: &'a Arc<Shared>,
    connections: HashMap<u64, Connection>,
    handshakes: HashMap<u64, Handshake>,
    scratch: Vec<u8>,
    /// When something may have taken too long.
    due: Option<Instant>,
    is_warned: bool,
}

impl Io<'_> {
    /// What has to be over by then is looked for no later.
    fn note_due(&mut self, until: Instant) {
        self.due = Some(self.due.map_or(until, |it| it.min(until)));
    }

    fn timeout(&self) -> Option<Duration> {
        let left = |it: Instant| it.saturating_duration_since(Instant::now());
        self.due.map(|it| left(it) + Duration::from_millis(1))
    }

    fn add(&mut self, connection: Connection) {
        match connection.link.watch() {
            Ok(()) => drop(self.connections.insert(connection.link.key(), connection)),
            Err(error) => self.end(connection, &error.to_string()),
        }
    }

    fn accept(&mut self, listener: &TcpListener) {
        // So many at once: others have their turn too.
        for _ in 0..64 {
            let (stream, _) = match listener.accept() {
                Ok(it) => it,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => {
                    // Without descriptors it stays ready; what is there already is served meanwhile.
                    if !std::mem::replace(&mut self.is_warned, true) {
                        tracing::warn!("ros1: a connection is not taken: {error}");
                    }
                    std::thread::sleep(Duration::from_millis(10));
                    return;
                }
            };
            if CONNECTIONS_MAX <= self.connections.len() + self.handshakes.len() {
                if !std::mem::replace(&mut self.is_warned, true) {
                    tracing::warn!(
                        "ros1: more than {CONNECTIONS_MAX} connections; others are closed"
                    );
                }
                continue;
            }
            let key = self.shared.lock().new_key();
            if prepare(&stream).is_ok() && self.shared.poll.add(&stream, key).is_ok() {
                let until = Instant::now() + AGREE_WITHIN;
                self.note_due(until);
                let handshake = Handshake { stream, received: Vec::new(), until };
                self.handshakes.insert(key, handshake);
            }
        }
    }

    /// Ends what has taken too long, where something may have.
    fn expire(&mut self) {
        let now = Instant::now();
        if self.due.is_none_or(|it| now < it) {
            return;
        }
        self.handshakes.retain(|_, it| now < it.until);
        self.connections.retain(|_, it| it.idle_until().is_none_or(|it| now < it));
        let handshakes = self.handshakes.values().map(|it| it.until);
        let idle = self.connections.values().filter_map(Connection::idle_until);
        self.due = handshakes.chain(idle).min();
    }

    fn serve(&mut self, event: &Ready) {
        if self.handshakes.contains_key(&event.key) {
            return self.read_handshake(event.key);
        }
        let Some(mut connection) = self.connections.remove(&event.key) else { return };
        if event.writable {
            connection.link.flush();
        }
        let ended = match event.readable {
            true => self.read(&mut connection).err(),
            false => None,
        };
        match ended {
            None if connection.is_over() => (),
            None => drop(self.connections.insert(event.key, connection)),
            Some(why) => self.end(connection, &why),
        }
    }

    /// Reads what a connection is for, and no byte more.
    fn read_handshake(&mut self, key: u64) {
        let Some(mut handshake) = self.handshakes.remove(&key) else { return };
        loop {
            let at = handshake.received.len();
            let wanted = Header::wanted(&handshake.received);
            // As it comes, so that a length that lies takes no memory.
            handshake.received.resize(wanted.min(at + HEADER_READ_BYTES), 0);
            let read = handshake.stream.read(&mut handshake.received[at..]);
            handshake.received.truncate(at + read.as_ref().copied().unwrap_or(0));
            match read {
                Ok(0) => return,
                Ok(_) => (),
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.handshakes.insert(key, handshake);
                    return;
                }
                Err(_) => return,
            }
            let Some(first) = handshake.received.first_chunk::<4>() else { continue };
            if first.iter().all(|it| it.is_ascii_uppercase() || *it == b' ') {
                return self.add_slave(key, handshake);
            }
            match Header::take(&handshake.received) {
                Ok(Some((header, _))) => return self.agree(handshake.stream, header),
                Ok(None) => (),
                Err(error) => {
                    tracing::warn!("ros1: a connection is refused: {error}");
                    return;
                }
            }
        }
    }

    fn add_slave(&mut self, key: u64, handshake: Handshake) {
        let Handshake { stream, received, .. } = handshake;
        let link = Arc::new(OutLink::new(stream, Arc::clone(&self.shared.poll), key));
        let slave = Slave { received, since: Instant::now(), is_closing: false };
        let mut connection = Connection::new(link, ConnectionKind::Slave(slave));
        self.note_due(Instant::now() + IDLE_MAX);
        match self.read(&mut connection) {
            Ok(()) if connection.is_over() => (),
            Ok(()) => drop(self.connections.insert(key, connection)),
            Err(why) => self.end(connection, &why),
        }
    }

    fn agree(&mut self, stream: TcpStream, header: Header) {
        // It is served by others from now on, under another number.
        if self.shared.poll.remove(&stream).is_err() {
            return;
        }
        self.shared.run(Pool::Incoming, move |shared| {
            if header.get("service").is_some() {
                shared.accept_caller(stream, &header);
            } else {
                shared.accept_subscriber(stream, &header);
            }
        });
    }

    fn read(&mut self, connection: &mut Connection) -> Result<(), String> {
        let Connection { link, kind, frames, converter } = connection;
        let (shared, scratch) = (self.shared, &mut self.scratch[..]);
        match kind {
            ConnectionKind::Slave(slave) => slave.read(shared, link, scratch),
            // A subscriber says nothing, but may end.
            ConnectionKind::Subscriber => turn(|| match link.stream().read(scratch) {
                Ok(0) => Err("it has ended the connection".to_owned()),
                Ok(length) => Ok(Some(length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
                Err(error) => Err(error.to_string()),
            }),
            ConnectionKind::Source { reader, guid, message, .. } => {
                let mut is_new = false;
                let mut take = |_: &[u8], frame: &[u8]| {
                    let bytes = converter.to_cdr(message, frame);
                    is_new |= reader.arrive(*guid, None, bytes, "a message is dropped");
                };
                let read = turn(|| frames.read(link.stream(), scratch, &mut take));
                if is_new {
                    reader.ear.data_available();
                }
                read
            }
            ConnectionKind::Caller { client, name, service } => {
                let mut take = |_: &[u8], frame: &[u8]| {
                    let request = converter.to_cdr(&service.request, frame);
                    shared.take_request(link, *client, name, request);
                };
                turn(|| frames.read(link.stream(), scratch, &mut take))
            }
            ConnectionKind::Server { reader, server, service, pending, .. } => {
                let mut take = |ok: &[u8], frame: &[u8]| {
                    let Some(number) = crate::lock(pending).pop_front() else { return };
                    let reply = match ok {
                        [0] => Err(format!("the server says: {}", String::from_utf8_lossy(frame))),
                        _ => converter.to_cdr(&service.response, frame),
                    };
                    shared.take_reply(reader, *server, number, reply);
                };
                turn(|| frames.read(link.stream(), scratch, &mut take))
            }
        }
    }

    fn end(&mut self, connection: Connection, why: &str) {
        let Connection { link, kind, .. } = connection;
        let key = link.key();
        tracing::debug!(key, "ros1: a connection has ended: {why}");
        // What still sends learns of it.
        link.end();
        self.shared.change(|state, calls: &mut Calls| match kind {
            ConnectionKind::Slave(_) => (),
            ConnectionKind::Subscriber => state.lose_subscriber(&link, calls),
            ConnectionKind::Source { target, .. } => state.lose_source(&target, key, calls),
            ConnectionKind::Server { target, .. } => state.lose_server(&target, key, calls),
            ConnectionKind::Caller { client, .. } => {
                state.lose_caller(crate::graph::other_half(client), &link);
            }
        });
    }
}

/// Reads until there is nothing, or others are to have their turn.
fn turn(mut read: impl FnMut() -> Result<Option<usize>, String>) -> Result<(), String> {
    let mut taken = 0;
    while taken < TURN_BYTES {
        match read()? {
            Some(length) => taken += length,
            None => return Ok(()),
        }
    }
    Ok(())
}

impl Slave {
    fn read(
        &mut self,
        shared: &Shared,
        link: &Arc<OutLink>,
        scratch: &mut [u8],
    ) -> Result<(), String> {
        // Once, so that what is taken off the front of much that waits is never much; the rest is read next.
        match link.stream().read(scratch) {
            Ok(0) => return Err("it has ended the connection".to_owned()),
            Ok(length) => self.received.extend(&scratch[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
        if http::HEAD_BYTES_MAX + http::BODY_BYTES_MAX < self.received.len() {
            return Err("a request that is too long".to_owned());
        }
        loop {
            let request = match http::take_request(&mut self.received) {
                Ok(Some(request)) => request,
                Ok(None) => return Ok(()),
                Err(error) => {
                    let response = http::encode_response(400, &error.to_string(), false);
                    link.send(Arc::new(response), Room::All);
                    return Err(error.to_string());
                }
            };
            if !link.has_room(Room::All) {
                return Err("it does not read what it is answered".to_owned());
            }
            self.since = Instant::now();
            let reply = match Call::parse(&request.body) {
                Ok(call) => shared.answer(&call),
                Err(error) => Reply::failure(-1, &error.to_string()),
            };
            let response = http::encode_response(200, &reply.encode(), request.keep_alive);
            link.send(Arc::new(response), Room::All);
            self.is_closing |= !request.keep_alive;
        }
    }
}

const _: () = assert!(HEADER_BYTES_MAX <= 16 << 20, "a header is read into memory at once");

#[cfg(test)]
mod tests {
    use super::*;

    /// What came before the length of a message, and the message.
    type Taken = (Vec<u8>, Vec<u8>);

    fn fed(before: usize, parts: &[&[u8]]) -> Result<Vec<Taken>, String> {
        let (mut frames, mut taken) = (Frames::new(before), Vec::new());
        for part in parts {
            frames.feed(part, &mut |head, body| taken.push((head.to_vec(), body.to_vec())))?;
        }
        Ok(taken)
    }

    #[test]
    fn messages_come_whole_however_they_are_cut() {
        let bytes = b"\x03\0\0\0abc\0\0\0\0\x01\0\0\0d";
        let expect = [b"abc".to_vec(), Vec::new(), b"d".to_vec()].map(|it| (Vec::new(), it));
        for at in 0..=bytes.len() {
            assert_eq!(fed(0, &[&bytes[..at], &bytes[at..]]).unwrap(), expect, "cut at {at}");
        }
        let each: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(fed(0, &each).unwrap(), expect);
        let answers = fed(1, &[b"\x01\x02\0\0\0", b"ok\0\x01\0\0\0!"]).unwrap();
        assert_eq!(answers, [(vec![1], b"ok".to_vec()), (vec![0], b"!".to_vec())]);
    }

    #[test]
    fn a_length_that_lies_is_refused() {
        assert!(fed(0, &[&[0xff; 4]]).unwrap_err().contains("4294967295 bytes; at most"));
    }
}

//! The thread of all connections: it accepts, reads, hands messages to sessions, and writes what waits for clients.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};
use tsuji_platform::socket::set_keepalive;
use tungstenite::protocol::frame::coding::CloseCode;

use crate::desk::Desk;
use crate::settings::{Place, Protocol, Settings};
use crate::wake::Wake;
use crate::{Bound, Counters, Error, ErrorKind, Result};

mod flood;
mod http;
mod link;
mod outgoing;
mod stream;
mod tls;
mod udp;
mod websocket;

pub(crate) use link::READ_BYTES;
use link::{Link, Turn};
use stream::Stream;
use tls::Tls;
use udp::Udp;

/// Where it listens, and all that is connected.
pub(crate) struct Io {
    poll: Poll,
    wake: Arc<Wake>,
    settings: Arc<Settings>,
    counters: Arc<Counters>,
    listeners: Vec<(TcpListener, Protocol)>,
    udp: Option<Udp>,
    tls: Option<Tls>,
    links: Vec<Option<Link>>,
    free: Vec<usize>,
    /// Those that have a turn.
    hot: VecDeque<usize>,
    /// When each has to be looked at, and which.
    due: BTreeSet<(Instant, usize)>,
    due_of: Vec<Option<Instant>>,
}

impl Io {
    /// Listens wherever `settings` says. An error names the place.
    pub(crate) fn bind(
        settings: Arc<Settings>,
        counters: Arc<Counters>,
    ) -> Result<(Self, Vec<Bound>)> {
        let poll = Poll::new().map_err(|error| unexpected("poll", &error))?;
        let waker = mio::Waker::new(poll.registry(), WAKE);
        let waker = waker.map_err(|error| unexpected("wake", &error))?;
        let tls = settings.tls.as_ref().map(Tls::read).transpose()?;
        let mut io = Self {
            poll,
            wake: Arc::new(Wake::new(waker)),
            settings: Arc::clone(&settings),
            counters,
            listeners: Vec::new(),
            udp: None,
            tls,
            links: Vec::new(),
            free: Vec::new(),
            hot: VecDeque::new(),
            due: BTreeSet::new(),
            due_of: Vec::new(),
        };
        let mut bound = Vec::new();
        for (place, protocol) in
            [(settings.websocket, Protocol::WebSocket), (settings.tcp, Protocol::Tcp)]
        {
            if let Some(place) = place {
                bound.push(io.listen(place, protocol)?);
            }
        }
        if let Some(place) = settings.udp {
            let mut udp = Udp::bind(address(place), settings.udp_receive_buffer)
                .map_err(|error| taken(place, Protocol::Udp, &error))?;
            let registered = io.poll.registry().register(udp.socket(), UDP, Interest::READABLE);
            registered.map_err(|error| unexpected("register", &error))?;
            let local = udp.socket().local_addr().map_err(|error| unexpected("address", &error))?;
            bound.push(Bound { protocol: Protocol::Udp, address: local });
            io.udp = Some(udp);
        }
        Ok((io, bound))
    }

    /// By which it is woken.
    pub(crate) fn wake(&self) -> Arc<Wake> {
        Arc::clone(&self.wake)
    }

    fn listen(&mut self, place: Place, protocol: Protocol) -> Result<Bound> {
        let mut listener =
            TcpListener::bind(address(place)).map_err(|error| taken(place, protocol, &error))?;
        let local = listener.local_addr().map_err(|error| unexpected("address", &error))?;
        let token = Token(LISTENERS + self.listeners.len());
        let registered = self.poll.registry().register(&mut listener, token, Interest::READABLE);
        registered.map_err(|error| unexpected("register", &error))?;
        self.listeners.push((listener, protocol));
        Ok(Bound { protocol, address: local })
    }

    /// Serves until it is told to end.
    pub(crate) fn run(mut self, mut desk: Desk) {
        let mut events = Events::with_capacity(EVENTS);
        let mut dirty = Vec::new();
        while !self.wake.is_over() {
            let is_hot = !self.hot.is_empty() || self.udp.as_ref().is_some_and(Udp::is_hot);
            // Only while datagrams come by the hundred thousand a second, and not again where the sleep was long.
            let gathers = !is_hot && self.udp.as_mut().is_some_and(|it| it.lets_gather(desk.now()));
            if gathers {
                thread::sleep(GATHERING);
            }
            let rests = !is_hot && !gathers && self.wake.falls_asleep();
            let links = self.due.first().map(|(at, _)| *at);
            let udp = self.udp.as_ref().and_then(Udp::due);
            let due = links.into_iter().chain(udp).chain(desk.due()).min();
            let timeout = match rests {
                true => due.map(|at| at.saturating_duration_since(Instant::now())),
                false => Some(Duration::ZERO),
            };
            let polled = self.poll.poll(&mut events, timeout);
            self.wake.is_awake(&mut dirty);
            desk.tick();
            if let Err(error) = polled
                && error.kind() != io::ErrorKind::Interrupted
            {
                tracing::error!(%error, "the bridge cannot wait for its connections, and ends");
                break;
            }
            for event in &events {
                match event.token() {
                    WAKE => {}
                    UDP => {
                        if let Some(udp) = &mut self.udp {
                            udp.ready();
                        }
                    }
                    Token(at) if at < LINKS => self.accept(at - LISTENERS, &mut desk),
                    Token(at) => {
                        let place = at - LINKS;
                        if let Some(Some(link)) = self.links.get_mut(place) {
                            let is_closed = event.is_error() || event.is_read_closed();
                            link.ready(event.is_readable() || is_closed, event.is_writable());
                            self.heat(place);
                        }
                    }
                }
            }
            for place in dirty.drain(..) {
                match place.checked_sub(UDP_PLACES) {
                    None => self.heat(place),
                    Some(_) => {
                        if let Some(udp) = &mut self.udp {
                            udp.dirty(place, &mut desk);
                        }
                    }
                }
            }
            while let Some((_, place)) =
                self.due.first().copied().filter(|(at, _)| *at <= desk.now())
            {
                self.due.pop_first();
                self.due_of[place] = None;
                if let Some(Some(link)) = self.links.get_mut(place) {
                    link.look(&mut desk);
                    self.heat(place);
                }
            }
            for _ in 0..self.hot.len() {
                let Some(place) = self.hot.pop_front() else { break };
                self.turn(place, &mut desk);
            }
            if let Some(udp) = &mut self.udp {
                udp.turn(&mut desk);
            }
            desk.turn();
        }
        self.end_all(&mut desk);
    }

    fn heat(&mut self, place: usize) {
        if let Some(Some(link)) = self.links.get_mut(place)
            && link.heat()
        {
            self.hot.push_back(place);
        }
    }

    fn turn(&mut self, place: usize, desk: &mut Desk) {
        let Some(Some(link)) = self.links.get_mut(place) else { return };
        match link.turn(desk) {
            Turn::Again => self.heat(place),
            Turn::Rest => {}
            Turn::Over => return self.remove(place, desk),
        }
        let due = self.links[place].as_ref().and_then(|link| link.due(desk));
        self.schedule(place, due);
    }

    fn schedule(&mut self, place: usize, due: Option<Instant>) {
        if self.due_of[place] == due {
            return;
        }
        if let Some(before) = std::mem::replace(&mut self.due_of[place], due) {
            self.due.remove(&(before, place));
        }
        self.due.extend(due.map(|at| (at, place)));
    }

    fn accept(&mut self, listener: usize, desk: &mut Desk) {
        loop {
            let Some((socket, protocol)) = self.listeners.get(listener) else { return };
            let protocol = *protocol;
            let (stream, peer) = match socket.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    // Out of descriptors, mostly. What waits is accepted when the next one comes.
                    tracing::error!(%error, "a connection could not be accepted");
                    self.counters.refused.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            };
            let open = self.links.len() - self.free.len();
            if self.settings.limits.connections_max <= open {
                self.counters.refused.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%peer, open, "refused a connection: as many are open as are allowed");
                continue;
            }
            if protocol == Protocol::Tcp && desk.memory().is_tight() {
                self.counters.refused.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%peer, "refused a connection: too much waits for all clients together");
                continue;
            }
            // Answers are small, and somebody waits for them.
            let _ = stream.set_nodelay(true);
            if !self.settings.keepalive.is_zero()
                && let Err(error) = set_keepalive(&stream, self.settings.keepalive)
            {
                tracing::warn!(%error, "nobody will notice when {peer} vanishes");
            }
            let stream = match &mut self.tls {
                Some(tls) if protocol == Protocol::WebSocket => {
                    match tls.wrap(stream, desk.now()) {
                        Ok(stream) => stream,
                        Err(error) => {
                            tracing::error!(%error, "TLS cannot begin");
                            continue;
                        }
                    }
                }
                _ => Stream::Plain(stream),
            };
            self.add(stream, peer, protocol, desk);
        }
    }

    fn add(&mut self, stream: Stream, peer: SocketAddr, protocol: Protocol, desk: &mut Desk) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.links.push(None);
            self.due_of.push(None);
            self.links.len() - 1
        });
        let mut link = Link::new(place, stream, peer, protocol, desk);
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered =
            self.poll.registry().register(link.stream().socket(), Token(LINKS + place), interest);
        if let Err(error) = registered {
            tracing::error!(%error, "a connection cannot be waited for");
            self.free.push(place);
            return;
        }
        self.counters.connected.fetch_add(1, Ordering::Relaxed);
        self.links[place] = Some(link);
        self.heat(place);
    }

    fn remove(&mut self, place: usize, desk: &mut Desk) {
        self.schedule(place, None);
        let Some(mut link) = self.links[place].take() else { return };
        let _ = self.poll.registry().deregister(link.stream().socket());
        self.counters.disconnected.fetch_add(1, Ordering::Relaxed);
        if let Some(session) = link.into_session() {
            session.end(desk);
        }
        self.free.push(place);
    }

    fn end_all(&mut self, desk: &mut Desk) {
        for place in 0..self.links.len() {
            if let Some(link) = &mut self.links[place] {
                link.end(CloseCode::Away, "the server ends", desk);
                // As much as goes at once.
                link.turn(desk);
            }
            self.remove(place, desk);
        }
        desk.turn();
        desk.end();
    }
}

fn address(place: Place) -> SocketAddr {
    SocketAddr::new(place.address, place.port)
}

fn taken(place: Place, protocol: Protocol, error: &io::Error) -> Error {
    let why = match error.kind() {
        io::ErrorKind::AddrInUse => "the port is taken; allowed is another, or 0 for any",
        io::ErrorKind::PermissionDenied => {
            "the port may not be used; allowed are those from 1024 on"
        }
        io::ErrorKind::AddrNotAvailable => "no interface of this machine has that address",
        _ => {
            return Error::new(
                ErrorKind::Address,
                format!("{} at {}: {error}", protocol.word(), address(place)),
            );
        }
    };
    Error::new(ErrorKind::Address, format!("{} at {}: {why}", protocol.word(), address(place)))
}

fn unexpected(what: &str, error: &io::Error) -> Error {
    Error::new(ErrorKind::Unexpected, format!("{what}: {error}"))
}

const WAKE: Token = Token(0);
const UDP: Token = Token(1);
const LISTENERS: usize = 2;
const LINKS: usize = 16;

/// Places from here on are those of clients by UDP.
pub(crate) const UDP_PLACES: usize = usize::MAX / 2;

/// So long datagrams gather that come fast, and about as long again, since the system sleeps longer than it is told.
const GATHERING: Duration = Duration::from_micros(50);

/// What one wait tells of at most.
const EVENTS: usize = 1024;

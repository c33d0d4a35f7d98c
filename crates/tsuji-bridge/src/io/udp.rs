//! Clients that send a message a datagram.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::net::UdpSocket;
use tsuji_platform::datagram::{self, Batch};
use tsuji_rosbridge::Piece;

use super::UDP_PLACES;
use super::flood::Flood;
use crate::connected_client::Dialect;
use crate::desk::Desk;
use crate::session::{Arrived, Session, Verdict};
use crate::settings::Protocol;

/// The socket, and who speaks to it.
pub(super) struct Udp {
    socket: UdpSocket,
    clients: HashMap<SocketAddr, Client>,
    /// When each has to be looked at.
    due: BTreeSet<(Instant, SocketAddr)>,
    by_place: HashMap<usize, SocketAddr>,
    next_place: usize,
    may_read: bool,
    /// Nothing is read before, since a topic had no room.
    paused: Option<Paused>,
    /// What one call has taken; lent out while a datagram of it is obeyed.
    batch: Option<Batch>,
    /// So many are in it, and which is the next.
    taken: usize,
    next: usize,
    flood: Flood,
    /// What the system has dropped, as far as it is counted.
    dropped: u32,
    /// Whose datagram was obeyed last: what waits for it is sent with the turn, or when somebody else's comes.
    heard_last: Option<SocketAddr>,
    /// How much that client has said since then.
    heard_bytes: usize,
    swept: Instant,
}

struct Client {
    session: Session,
    place: usize,
    heard: Instant,
    due: Option<Instant>,
}

/// A client that has to wait, and what is left of its datagram.
struct Paused {
    until: Instant,
    address: SocketAddr,
    rest: Vec<u8>,
}

impl Udp {
    /// At `address`, where the system is to keep so many bytes that were not read yet.
    pub(super) fn bind(address: SocketAddr, receive_buffer: usize) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        let kept = datagram::set_receive_buffer(&socket, receive_buffer).unwrap_or(0);
        if kept < receive_buffer {
            tracing::warn!(
                wanted = receive_buffer,
                kept,
                "the system keeps less of datagrams than it should, and drops more of them: net.core.rmem_max is low"
            );
        }
        Ok(Self {
            socket,
            clients: HashMap::new(),
            due: BTreeSet::new(),
            by_place: HashMap::new(),
            next_place: UDP_PLACES,
            may_read: true,
            paused: None,
            batch: Some(Batch::default()),
            taken: 0,
            next: 0,
            flood: Flood::new(Instant::now()),
            dropped: 0,
            heard_last: None,
            heard_bytes: 0,
            swept: Instant::now(),
        })
    }

    pub(super) fn socket(&mut self) -> &mut UdpSocket {
        &mut self.socket
    }

    /// It can be read.
    pub(super) fn ready(&mut self) {
        self.may_read = true;
    }

    /// Something waits for the client at `place`.
    pub(super) fn dirty(&mut self, place: usize, desk: &mut Desk) {
        if let Some(address) = self.by_place.get(&place).copied() {
            let client = self.clients.get(&address);
            if client.is_some_and(|it| it.session.member().is_gone()) {
                return self.forget(address, desk);
            }
            self.settle(address, desk);
        }
    }

    /// Whether there may be more to read.
    pub(super) fn is_hot(&self) -> bool {
        (self.may_read || self.next < self.taken) && self.paused.is_none()
    }

    /// All that had come has been dealt with: whether some more datagrams are to gather before any is taken.
    pub(super) fn lets_gather(&mut self, now: Instant) -> bool {
        self.flood.lets_gather(now) && self.paused.is_none()
    }

    /// When it has to be looked at, whatever happens.
    pub(super) fn due(&self) -> Option<Instant> {
        let sweep = (!self.clients.is_empty()).then(|| self.swept + SILENCE_MAX);
        let paused = self.paused.as_ref().map(|it| it.until);
        paused.into_iter().chain(sweep).chain(self.due.first().map(|it| it.0)).min()
    }

    /// Reads some of what has come.
    pub(super) fn turn(&mut self, desk: &mut Desk) {
        let now = desk.now();
        while let Some((_, address)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.pop_first();
            if let Some(client) = self.clients.get_mut(&address) {
                client.due = None;
                client.session.look(desk);
            }
            self.settle(address, desk);
        }
        if self.paused.as_ref().is_some_and(|it| now < it.until) {
            return;
        }
        if let Some(Paused { address, rest, .. }) = self.paused.take()
            && let Some(client) = self.clients.get_mut(&address)
        {
            match client.session.resume(desk) {
                Verdict::Later(until) => self.paused = Some(Paused { until, address, rest }),
                Verdict::Fine | Verdict::End(_) => self.obey(&rest, address, desk),
            }
        }
        if self.swept + SILENCE_MAX <= now {
            self.sweep(desk);
        }
        for _ in 0..DATAGRAMS_A_TURN {
            if !self.is_hot() {
                break;
            }
            if self.next < self.taken {
                self.take(desk);
            } else {
                self.receive(desk);
            }
        }
        self.settle_last(desk);
    }

    /// Reads what waits, as much as one call takes.
    fn receive(&mut self, desk: &Desk) {
        let Some(batch) = &mut self.batch else { return };
        (self.taken, self.next) = (0, 0);
        match batch.receive(&self.socket) {
            Ok(count) => {
                self.taken = count;
                self.flood.took(count);
            }
            // What a datagram of ours met elsewhere is told here, and concerns nobody.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(_) => {
                self.may_read = false;
                self.count_dropped(desk);
            }
        }
    }

    /// Counts what the system has dropped. When all was read that it has kept, none is missed.
    fn count_dropped(&mut self, desk: &Desk) {
        // An emulator may not tell.
        let Ok(dropped) = datagram::dropped(&self.socket) else { return };
        let more = dropped.wrapping_sub(std::mem::replace(&mut self.dropped, dropped));
        desk.counters.datagrams_dropped.fetch_add(more.into(), Ordering::Relaxed);
    }

    /// Obeys the next datagram that was read.
    fn take(&mut self, desk: &mut Desk) {
        let Some(batch) = self.batch.take() else { return };
        if let Some((datagram, address)) = batch.datagram(self.next) {
            self.hear(datagram, address, desk);
        }
        self.next += 1;
        self.batch = Some(batch);
    }

    fn hear(&mut self, datagram: &[u8], address: SocketAddr, desk: &mut Desk) {
        if !self.clients.contains_key(&address) {
            let is_full = desk.settings_ref().limits.connections_max <= self.clients.len();
            if is_full || desk.memory().is_tight() {
                desk.counters.refused.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let place = self.next_place;
            self.next_place += 1;
            let session = desk.session(place, address, Protocol::Udp, Dialect::Rosbridge, None);
            self.by_place.insert(place, address);
            self.clients.insert(address, Client { session, place, heard: desk.now(), due: None });
        }
        self.obey(datagram, address, desk);
    }

    /// Does what a datagram says, until it has to wait.
    fn obey(&mut self, datagram: &[u8], address: SocketAddr, desk: &mut Desk) {
        let Some(client) = self.clients.get_mut(&address) else { return };
        client.heard = desk.now();
        let mut splitter = desk.splitter();
        let mut rest = datagram;
        while let Some(piece) = splitter.next(&mut rest) {
            let verdict = match piece {
                Piece::Message(message) => client.session.message(Arrived::Text(message), desk),
                Piece::Refused(garbage) => client.session.garbage(garbage),
            };
            match verdict {
                Verdict::Fine => {}
                Verdict::Later(until) => {
                    self.paused = Some(Paused { until, address, rest: rest.to_vec() });
                    break;
                }
                // It is not heard until it was silent for so long that it is another client.
                Verdict::End(_) => break,
            }
        }
        if splitter.held_bytes() != 0 {
            client.session.cut_short();
        }
        if self.heard_last != Some(address) {
            self.settle_last(desk);
            self.heard_last = Some(address);
        }
        self.heard_bytes += datagram.len();
        // Much may have much of an answer.
        if HEARD_BYTES_MAX < self.heard_bytes {
            self.settle_last(desk);
        }
    }

    /// Sends what waits for the client that was heard last.
    fn settle_last(&mut self, desk: &Desk) {
        self.heard_bytes = 0;
        if let Some(address) = self.heard_last.take() {
            self.settle(address, desk);
        }
    }

    /// Sends what waits for a client, and notes when it has to be looked at.
    fn settle(&mut self, address: SocketAddr, desk: &Desk) {
        self.write(address, desk);
        self.schedule(address, desk);
    }

    fn schedule(&mut self, address: SocketAddr, desk: &Desk) {
        let Some(client) = self.clients.get_mut(&address) else { return };
        let due = client.session.due(desk, true);
        if let Some(before) = std::mem::replace(&mut client.due, due) {
            self.due.remove(&(before, address));
        }
        self.due.extend(due.map(|at| (at, address)));
    }

    /// Sends what waits. What the socket does not take is lost, as it may be of datagrams, and counted.
    fn write(&mut self, address: SocketAddr, desk: &Desk) {
        let Some(client) = self.clients.get(&address) else { return };
        client.session.member().take(usize::MAX, desk.elapsed(), |frame| {
            if self.socket.send_to(frame.payload(), address).is_err() {
                desk.counters.datagrams_lost.fetch_add(1, Ordering::Relaxed);
            }
        });
    }

    /// Forgets who has said nothing for long.
    fn sweep(&mut self, desk: &mut Desk) {
        let now = desk.now();
        self.swept = now;
        let silent = |it: &Client| it.heard + SILENCE_MAX <= now;
        let gone: Vec<_> =
            self.clients.iter().filter(|(_, it)| silent(it)).map(|(address, _)| *address).collect();
        for address in gone {
            self.forget(address, desk);
        }
    }

    fn forget(&mut self, address: SocketAddr, desk: &mut Desk) {
        let Some(client) = self.clients.remove(&address) else { return };
        self.by_place.remove(&client.place);
        if let Some(at) = client.due {
            self.due.remove(&(at, address));
        }
        client.session.end(desk);
    }
}

/// So many are read before others have their turn.
const DATAGRAMS_A_TURN: usize = 256;

/// With so many bytes heard of one client, what waits for it is sent before the turn ends.
const HEARD_BYTES_MAX: usize = 4096;

/// Who says nothing for so long has gone.
const SILENCE_MAX: Duration = Duration::from_secs(60);

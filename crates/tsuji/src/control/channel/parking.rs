//! Channels for which no socket is held.
//!
//! A process knows all others of its host, and would be at its limit of descriptors with some hundreds of them. So
//! beyond [`OPEN_MAX`] channels those that were silent for longest are parked: both ends hang up, and keep what they know of each
//! other. Whoever has something to say connects again to the other's listening socket.
//!
//! - *Parking* takes both: one asks ([`ParkingWord::Park`]) and says no more, the other hangs up, or answers [`ParkingWord::Stay`].
//! - *Resuming* is done by the lower of the two numbers, so that there is one connection at most: it connects and says
//!   [`ParkingWord::Resume`], and sends what waits when the other has answered. The higher one asks for it ([`ParkingWord::ConnectBack`]).
//! - Nobody hangs up when a process dies with which all have parked their channels. So all processes of a host are a ring, by their
//!   numbers, and no channel between two that are adjacent is parked. When one of them dies the other tells all
//!   ([`ParkingWord::Gone`]), who look at its sign of life. Whoever leaves says so itself ([`ParkingWord::Bye`]). What is told may be lost, so
//!   those signs are looked at from time to time too.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tsuji_core::Outward;
use tsuji_platform::clock;
use tsuji_platform::life::Life;
use tsuji_platform::poll::{Poll, Waker};
use tsuji_platform::socket::{Connection, Credentials};
use tsuji_transport::PeerId;
use tsuji_transport::deferred::told;

use super::{Channel, Channels, Line};
use crate::control::listening_socket::socket_of;
use crate::control::protocol::{Control, ParkingWord, encode};
use crate::pacing::{Backoff, after};
use crate::session::Session;

/// Where the channels of this process end.
pub(crate) struct OwnEnd {
    pub(super) id: PeerId,
    pub(super) poll: Arc<Poll>,
    /// Wakes the thread of the channels, which may have another time to wait for.
    pub(super) waker: Arc<Waker>,
    /// Where the others listen.
    pub(super) folder: PathBuf,
    pub(super) life: Arc<Life>,
    /// What others see of it.
    pub(super) outward: Arc<Outward>,
    open_max: usize,
    /// Whether whoever is at the other end proves who it is.
    pub(super) is_secured: bool,
}

impl OwnEnd {
    pub(crate) fn new(session: &Session, folder: PathBuf) -> Self {
        let asked = std::env::var(OPEN_MAX_SETTING).ok().filter(|it| !it.is_empty());
        let open_max = match asked.as_deref().map(str::parse) {
            None => OPEN_MAX,
            Some(Ok(count)) => count,
            Some(Err(_)) => {
                told::warn!(
                    "{OPEN_MAX_SETTING}: {:?} is no number of channels; {OPEN_MAX} is taken",
                    asked.unwrap_or_default()
                );
                OPEN_MAX
            }
        };
        // Who resumes a channel names a number that anybody may have seen.
        let is_secured = session.security().is_some();
        let open_max = if is_secured { usize::MAX } else { open_max };
        let (poll, waker) = (Arc::clone(&session.poll), Arc::clone(&session.waker));
        let outward = Arc::clone(session.outward());
        let life = Arc::clone(session.life());
        Self { id: session.id, poll, waker, folder, life, outward, open_max, is_secured }
    }
}

/// How far the parking of an open channel has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Parking {
    #[default]
    No,
    /// The other end was asked, and nothing is said until it hangs up or refuses.
    Asked,
    /// The other end wants it to stay open.
    Refused,
    /// It is being resumed, and nothing is said until the other end has answered.
    Resuming,
}

/// The tries to reach those to whom something is to be said.
pub(super) struct ResumeBackoff(Backoff);

impl Default for ResumeBackoff {
    fn default() -> Self {
        Self(Backoff::new(RESUME_FIRST, RESUME_LAST))
    }
}

impl Channels {
    /// When a channel is to be parked or resumed, on the monotonic clock.
    pub(super) fn parking_due_ns(&self) -> Option<u64> {
        let dues = [self.resuming.0.due_ns(), self.park_due_ns(), self.lives_due_ns];
        dues.into_iter().flatten().min()
    }

    pub(super) fn park_and_resume(&mut self, now_ns: u64) {
        if self.resuming.0.is_due(now_ns) {
            self.resuming.0.tried();
            self.resume_all();
        }
        if self.park_due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            self.ask_to_park(now_ns);
        }
        if self.lives_due_ns.is_some_and(|due_ns| due_ns <= now_ns) {
            self.check_parked();
            // Who was said to be gone, and is open and lives, is parked again like any other.
            for channel in self.all.values_mut() {
                channel.is_wanted &= !channel.is_open() || channel.parking == Parking::Asked;
            }
            let is_any = self.all.values().any(|it| matches!(it.line, Line::Parked));
            self.lives_due_ns = is_any.then(|| after(now_ns, LIVES));
        }
    }

    /// Tries all again that could not be resumed.
    fn resume_all(&mut self) {
        let mut waiting = Vec::new();
        for (key, channel) in &mut self.all {
            channel.was_tried = false;
            if matches!(channel.line, Line::Parked) && channel.wants_line() {
                waiting.push(*key);
            }
        }
        if waiting.is_empty() {
            self.resuming.0.hurry();
        }
        waiting.into_iter().for_each(|key| self.resume(key));
        for peer in std::mem::take(&mut self.unreached) {
            // Those adjacent to it still have a channel.
            for other in self.adjacent_to(peer).into_iter().flatten() {
                self.send_gone(other, peer);
            }
        }
    }

    /// How many are open beyond those that may be, and are to stay so.
    fn excess(&self) -> usize {
        let stays = |it: &&Channel| it.is_open() && it.parking != Parking::Asked;
        let open = self.all.values().filter(stays).count();
        self.own.as_ref().map_or(0, |own| open.saturating_sub(own.open_max))
    }

    /// The channels that may be parked as soon as they were silent for long enough.
    fn may_park(&self) -> impl Iterator<Item = (u64, &Channel)> {
        let adjacent = self.adjacent();
        let may = move |it: &Channel| {
            it.is_open()
                && matches!(it.parking, Parking::No | Parking::Refused)
                && it.has_told_all()
                && it.outbox.is_empty()
                && it.peer().is_some_and(|peer| !adjacent.contains(&Some(peer)))
        };
        self.all.iter().filter(move |(_, it)| may(it)).map(|(key, it)| (*key, it))
    }

    fn park_due_ns(&self) -> Option<u64> {
        if self.excess() == 0 {
            return None;
        }
        self.may_park().map(|(_, it)| it.silent_ns()).min()
    }

    fn ask_to_park(&mut self, now_ns: u64) {
        let due = self.may_park().filter(|(_, it)| it.silent_ns() <= now_ns);
        let mut due: Vec<_> = due.map(|(key, it)| (it.used_ns, key)).collect();
        due.sort_unstable();
        let park = frame(ParkingWord::Park);
        for (_, key) in due.into_iter().take(self.excess()) {
            let Some(channel) = self.all.get_mut(&key) else { continue };
            channel.used_ns = now_ns;
            if let Line::Near(connection) = &channel.line
                && connection.send(&park, &[]).is_ok()
            {
                channel.parking = Parking::Asked;
            }
        }
    }

    /// The other end asks to park the channel.
    pub(crate) fn answer_park(&mut self, key: u64) {
        let Some(channel) = self.all.get(&key).filter(|it| !it.has_left) else { return };
        let is_needed = self.own.as_ref().is_some_and(|own| own.is_secured)
            || channel.peer().is_none_or(|peer| self.is_adjacent(peer))
            || !channel.has_told_all()
            || channel.wants_line();
        if is_needed && channel.parking != Parking::Asked {
            self.send_by(key, &Control::Parking(ParkingWord::Stay));
        } else {
            self.park(key);
        }
    }

    /// The other end wants the channel to stay open.
    pub(crate) fn take_refusal(&mut self, key: u64) {
        if let Some(channel) = self.all.get_mut(&key)
            && channel.parking == Parking::Asked
        {
            (channel.parking, channel.is_wanted) = (Parking::Refused, false);
            channel.used_ns = clock::monotonic_ns();
        }
        self.flush(key);
    }

    /// Hangs up, and keeps the rest.
    fn park(&mut self, key: u64) {
        let (Some(channel), Some(own)) = (self.all.get_mut(&key), &self.own) else { return };
        let Line::Near(connection) = &channel.line else { return };
        // Dropping the descriptor would do it too, unless a child shares it.
        let _ = own.poll.remove(connection);
        (channel.line, channel.parking, channel.wants_write) = (Line::Parked, Parking::No, false);
        self.lives_due_ns.get_or_insert_with(|| after(clock::monotonic_ns(), LIVES));
        if self.all.get(&key).is_some_and(Channel::wants_line) {
            self.resume(key);
        }
        self.hold_adjacent();
    }

    /// The other end of a channel has hung up. Answers whether it lives on as a parked one.
    pub(crate) fn survives_hang_up(&mut self, key: u64) -> bool {
        let Some(channel) = self.all.get(&key) else { return false };
        if channel.has_left {
            return false;
        }
        match channel.parking {
            Parking::No | Parking::Refused => return false,
            _ if channel.peer().is_none_or(|peer| self.is_over(peer)) => return false,
            Parking::Asked => self.park(key),
            // It could not let this process in.
            Parking::Resuming => {
                self.resume_later(key);
                self.park(key);
            }
        }
        true
    }

    /// Connects again to the other end of a parked channel, or asks it to; unless that was tried, and is to be tried later.
    pub(super) fn resume(&mut self, key: u64) {
        let (Some(channel), Some(own)) = (self.all.get_mut(&key), &self.own) else { return };
        let is_parked = matches!(channel.line, Line::Parked) && !channel.was_tried;
        let Some(peer) = channel.peer().filter(|_| is_parked) else { return };
        let is_caller = own.id.0 < peer.0;
        let word = if is_caller { ParkingWord::Resume } else { ParkingWord::ConnectBack };
        let word = frame(word(own.id.0));
        let tried = own.connect(peer).and_then(|connection| {
            if caller(connection.credentials().ok()) != caller(channel.credentials) {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            if is_caller {
                own.poll.add(&connection, key)?;
            }
            connection.send(&word, &[]).map(|()| connection)
        });
        match tried {
            Ok(connection) if is_caller => {
                (channel.line, channel.parking) = (Line::Near(connection), Parking::Resuming);
                channel.used_ns = clock::monotonic_ns();
                channel.misses = 0;
            }
            // It may not be able to connect now, so it is asked again.
            Ok(_) => self.resume_later(key),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => self.give_up(key),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                channel.misses += 1;
                let misses = channel.misses;
                if self.is_over(peer) || misses == MISSES_MAX {
                    return self.give_up(key);
                }
                if misses % MISSES == 0 {
                    self.unreached.push(peer);
                }
                self.resume_later(key);
            }
            Err(_) => self.resume_later(key),
        }
    }

    fn resume_later(&mut self, key: u64) {
        if let Some(channel) = self.all.get_mut(&key) {
            (channel.was_tried, channel.is_wanted) = (true, true);
        }
        if self.resuming.0.due_ns().is_none() {
            self.resuming.0.later(clock::monotonic_ns());
            self.own.iter().for_each(|own| own.waker.give());
        }
    }

    /// The other end of a parked channel has connected, which was taken for somebody new. Answers whether it is that channel
    /// now.
    pub(crate) fn adopt(&mut self, peer: PeerId, unnamed: u64) -> bool {
        let is_its_own = self.is_parked(peer) && self.is_from(peer, unnamed);
        let Some(key) = self.near_key(peer).filter(|_| is_its_own) else { return false };
        let Some(Channel { line: Line::Near(connection), .. }) = self.all.remove(&unnamed) else {
            return false;
        };
        let (Some(channel), Some(own)) = (self.all.get_mut(&key), &self.own) else { return false };
        let _ = own.poll.remove(&connection);
        let taken = own.poll.add(&connection, key).and_then(|()| {
            // Before what waits.
            connection.send(&frame(ParkingWord::Resumed), &[])
        });
        if taken.is_err() {
            // It tries again, or has said by a word of its own that it leaves.
            return true;
        }
        channel.line = Line::Near(connection);
        (channel.is_wanted, channel.was_tried, channel.misses) = (false, false, 0);
        channel.used_ns = clock::monotonic_ns();
        self.flush(key);
        true
    }

    /// The other end has let this process in again.
    pub(crate) fn take_resumed(&mut self, key: u64) {
        if let Some(channel) = self.all.get_mut(&key)
            && channel.parking == Parking::Resuming
        {
            (channel.parking, channel.is_wanted) = (Parking::No, false);
            channel.was_tried = false;
        }
        self.flush(key);
    }

    /// The other end of a parked channel asks to be connected to. Answers whether there is such a channel.
    pub(crate) fn connect_back(&mut self, peer: PeerId) -> bool {
        let Some(key) = self.near_key(peer) else { return false };
        self.want_line(key);
        true
    }

    /// Gives up those with parked channels whose lives are over: what was said of them may have been lost.
    pub(crate) fn check_parked(&mut self) {
        let parked: Vec<_> = self.peers().filter(|it| self.is_parked(*it)).collect();
        parked.into_iter().for_each(|peer| self.give_up_if_over(peer));
    }

    fn give_up_if_over(&mut self, peer: PeerId) {
        if let Some(key) = self.near_key(peer).filter(|_| self.is_over(peer)) {
            self.give_up(key);
        }
    }

    /// Somebody says that this process is gone.
    pub(crate) fn check_gone(&mut self, peer: PeerId) {
        let Some(key) = self.near_key(peer) else { return };
        if self.is_over(peer) {
            return self.give_up(key);
        }
        // It may be about to end. With a channel that is open that is seen; one that is parked before is opened again.
        self.want_line(key);
        self.all.get_mut(&key).into_iter().for_each(|channel| channel.is_wanted = true);
        if self.is_adjacent(peer) && self.all.get(&key).is_some_and(Channel::is_open) {
            // It lives, and is looked for in vain.
            self.send(peer, &Control::Parking(ParkingWord::Gone(peer.0)));
        }
    }

    fn want_line(&mut self, key: u64) {
        let Some(channel) = self.all.get_mut(&key) else { return };
        match (&channel.line, channel.parking) {
            // Nothing is said by one that is asked to be parked: afterwards.
            (Line::Parked, _) | (Line::Near(_), Parking::Asked) => channel.is_wanted = true,
            _ => return,
        }
        self.resume(key);
    }

    /// The process whose channel this is, if this one is to tell of its death: they are adjacent, as one of them sees it, and it
    /// has not said that it leaves.
    pub(crate) fn adjacent_lost(&self, key: u64) -> Option<PeerId> {
        let channel = self.all.get(&key).filter(|it| !it.is_remote() && !it.has_left)?;
        let peer = channel.peer().filter(|peer| self.near_key(*peer) == Some(key))?;
        (channel.parking == Parking::Refused || self.is_adjacent(peer)).then_some(peer)
    }

    /// Gives up those that were next to one that is gone, and are gone too: who saw that may have died before it told all.
    pub(crate) fn check_beside(&mut self, gone: PeerId) {
        let beside = self.adjacent_to(gone).into_iter().flatten();
        beside.for_each(|peer| self.give_up_if_over(peer));
    }

    /// The channel to a process that has introduced itself.
    pub(crate) fn key_of(&self, peer: PeerId) -> Option<u64> {
        self.by_peer.get(&peer).copied()
    }

    /// The same, if it is of this host and open.
    pub(crate) fn open_to(&self, peer: PeerId) -> Option<u64> {
        self.near_key(peer).filter(|key| self.all.get(key).is_some_and(Channel::is_open))
    }

    /// Sends to everybody of this host but itself that this process does not answer.
    pub(crate) fn broadcast_gone(&mut self, gone: PeerId) {
        let others: Vec<_> = self.peers().filter(|it| *it != gone && self.is_near(*it)).collect();
        others.into_iter().for_each(|other| self.send_gone(other, gone));
    }

    fn send_gone(&mut self, to: PeerId, gone: PeerId) {
        let gone = Control::Parking(ParkingWord::Gone(gone.0));
        if self.can_send(to) || !self.send_alone(to, &gone) {
            self.send(to, &gone);
        }
    }

    /// Sends to everybody of this host that this process leaves. Where somebody cannot be told, those adjacent to it are to see it
    /// as a death, and to tell all.
    pub(crate) fn send_bye(&mut self) {
        let Some(id) = self.own.as_ref().map(|own| own.id) else { return };
        let bye = Control::Parking(ParkingWord::Bye(id.0));
        let (open, silent): (Vec<_>, Vec<_>) =
            self.peers().filter(|it| self.is_near(*it)).partition(|it| self.can_send(*it));
        let failed = silent.into_iter().filter(|peer| !self.send_alone(*peer, &bye)).count();
        let tells_all = |peer: &PeerId| 0 < failed && self.is_adjacent(*peer);
        let open: Vec<_> = open.into_iter().filter(|peer| !tells_all(peer)).collect();
        open.into_iter().for_each(|peer| self.send(peer, &bye));
    }

    /// Whether what is said to this process goes out at once, by a channel that is open and not about to be parked or resumed.
    fn can_send(&self, peer: PeerId) -> bool {
        let is_silent = |it: &Channel| matches!(it.parking, Parking::Asked | Parking::Resuming);
        self.of(peer).is_some_and(|it| it.is_open() && !is_silent(it))
    }

    /// Notes that whoever is at the other end leaves.
    pub(crate) fn note_leaving(&mut self, key: u64) {
        if let Some(channel) = self.all.get_mut(&key) {
            channel.has_left = true;
        }
    }

    /// Whether who made the connection `unnamed` is the process that this peer was when it was met.
    pub(crate) fn is_from(&self, peer: PeerId, unnamed: u64) -> bool {
        let of = |channel: Option<&Channel>| channel.and_then(|it| caller(it.credentials));
        let known = of(self.of(peer));
        known.is_some() && known == of(self.all.get(&unnamed))
    }

    /// Sends one message to a process on a connection of its own. Answers whether that was possible.
    fn send_alone(&self, peer: PeerId, control: &Control) -> bool {
        let Some(own) = &self.own else { return false };
        own.connect(peer).and_then(|it| it.send(&encode(control), &[])).is_ok()
    }

    /// Resumes the channels to the two adjacent processes.
    pub(crate) fn hold_adjacent(&mut self) {
        for peer in self.adjacent().into_iter().flatten() {
            if let Some(key) = self.near_key(peer).filter(|_| self.is_parked(peer)) {
                self.want_line(key);
            }
        }
    }

    /// Whether this process and that one are next to each other on the ring.
    pub(crate) fn is_adjacent(&self, peer: PeerId) -> bool {
        self.adjacent().contains(&Some(peer))
    }

    /// The processes of this host that are next to this one on the ring.
    fn adjacent(&self) -> [Option<PeerId>; 2] {
        self.own.as_ref().map_or([None, None], |own| self.adjacent_to(own.id))
    }

    /// The other processes of this host whose numbers come before and after that of `centre`, round the ring.
    fn adjacent_to(&self, centre: PeerId) -> [Option<PeerId>; 2] {
        let number = |peer: PeerId| u128::from_be_bytes(peer.0);
        let (mut before, mut after) = (None, None);
        for (peer, key) in &self.by_peer {
            if *peer == centre || self.all.get(key).is_none_or(Channel::is_remote) {
                continue;
            }
            // How far it is round the ring, one way and the other.
            let down = number(centre).wrapping_sub(number(*peer));
            let up = number(*peer).wrapping_sub(number(centre));
            if before.is_none_or(|(least, _)| down < least) {
                before = Some((down, *peer));
            }
            if after.is_none_or(|(least, _)| up < least) {
                after = Some((up, *peer));
            }
        }
        [before.map(|(_, peer)| peer), after.map(|(_, peer)| peer)]
    }

    /// The channel to a process of this host that has introduced itself.
    fn near_key(&self, peer: PeerId) -> Option<u64> {
        self.key_of(peer).filter(|_| self.is_near(peer))
    }
}

/// Who is at an end of a connection: the user and the process.
fn caller(credentials: Option<Credentials>) -> Option<(u32, u32)> {
    credentials.map(|it| (it.user, it.pid))
}

/// What goes out by itself, past the outbox.
fn frame(word: ParkingWord) -> Vec<u8> {
    encode(&Control::Parking(word))
}

impl OwnEnd {
    fn connect(&self, peer: PeerId) -> io::Result<Connection> {
        Connection::connect(&socket_of(&self.folder, peer))
    }
}

impl Channel {
    /// When it was silent for long enough to be parked.
    fn silent_ns(&self) -> u64 {
        let is_refused = self.parking == Parking::Refused;
        after(self.used_ns, if is_refused { SILENT_REFUSED } else { SILENT })
    }

    /// Whether it holds a socket of this host.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.line, Line::Near(_))
    }

    /// Whether there is something to say on it, or somebody else wants it to be open.
    fn wants_line(&self) -> bool {
        self.is_wanted || !self.outbox.is_empty()
    }

    pub(super) fn peer(&self) -> Option<PeerId> {
        self.hello.as_ref().map(|hello| PeerId(hello.token))
    }
}

/// How many channels are open before one is parked. Those to adjacent processes count, and are never parked.
const OPEN_MAX: usize = 12;
/// The setting of another number.
const OPEN_MAX_SETTING: &str = "TSUJI_CHANNELS_OPEN_MAX";
/// A channel on which so long nothing was said may be parked.
const SILENT: Duration = Duration::from_secs(1);
/// The same where the other end has refused.
const SILENT_REFUSED: Duration = Duration::from_secs(30);
/// How soon whoever cannot be reached is tried again.
const RESUME_FIRST: Duration = Duration::from_millis(20);
const RESUME_LAST: Duration = Duration::from_secs(10);
/// How often the signs of life are looked at of those whose channels are parked, whatever was said of them.
const LIVES: Duration = Duration::from_secs(30);
/// So often the socket of a process that lives was not there, when those adjacent to it are asked to tell it.
const MISSES: u32 = 3;
/// So often it was not there, when its process is taken for one that has left and could not say so.
const MISSES_MAX: u32 = 9;

#[cfg(test)]
mod tests {
    use tsuji_platform::socket::Listener;

    use super::*;
    use crate::control::protocol::Hello;

    const OTHER: PeerId = PeerId([6; 16]);
    const BEFORE: PeerId = PeerId([7; 16]);
    const OWN: PeerId = PeerId([8; 16]);
    const AFTER: PeerId = PeerId([9; 16]);

    /// A process whose channel is open to another one that lives, and is not next to it.
    struct Met {
        channels: Channels,
        key: u64,
        its: Option<Connection>,
        /// At which the other one listens, with its sign of life.
        lives: Option<(Listener, Arc<Life>)>,
        folder: PathBuf,
        _adjacent: [Connection; 2],
    }

    impl Met {
        fn new(name: &str) -> Self {
            let folder = format!("tsuji-parking-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            let life =
                |of: PeerId| Arc::new(Life::begin(&folder.join("life.lock"), 0o600, of.0).unwrap());
            let (own, adjacent, other) = (life(OWN), life(BEFORE), life(OTHER));
            let (poll, waker) = (Arc::new(Poll::new().unwrap()), Arc::new(Waker::new().unwrap()));
            let mut channels = Channels::default();
            let folder_of = folder.clone();
            channels.begin(OwnEnd {
                id: OWN,
                poll,
                waker,
                folder: folder_of,
                life: own,
                outward: Arc::default(),
                open_max: 0,
                is_secured: false,
            });
            let mut meet = |peer: PeerId, life: &Life| {
                let (mine, its) = Connection::pair().unwrap();
                let key = channels.add(mine, Some(peer)).unwrap();
                channels.remember_life(key, peer, life.sign());
                let hello = Hello {
                    token: peer.0,
                    pid: 1,
                    program: String::new(),
                    host: String::new(),
                    robot: None,
                    rules: String::new(),
                    life: life.sign().into(),
                    handshakes: Vec::new(),
                };
                channels.name(key, hello);
                (key, its)
            };
            let adjacent = [BEFORE, AFTER].map(|it| meet(it, &adjacent).1);
            let (key, its) = meet(OTHER, &other);
            let listener = Listener::bind(&socket_of(&folder, OTHER), 0o700).unwrap();
            Self {
                channels,
                key,
                its: Some(its),
                lives: Some((listener, other)),
                folder,
                _adjacent: adjacent,
            }
        }

        /// The other end was asked to park the channel and hangs up, with its sign of life still there.
        fn is_parked(&mut self) {
            self.channels.get(self.key).unwrap().parking = Parking::Asked;
            self.its = None;
            assert!(self.channels.survives_hang_up(self.key), "it lives, as far as can be told");
            assert!(self.channels.is_parked(OTHER));
        }

        /// The other one is gone, and so much time passes.
        fn ends(&mut self, passes: Duration) {
            self.lives = None;
            self.channels.park_and_resume(after(clock::monotonic_ns(), passes));
        }
    }

    impl Drop for Met {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    #[test]
    fn one_that_was_said_to_be_gone_is_looked_for_when_its_channel_is_parked() {
        let mut met = Met::new("slow");
        // Whoever is next to it has seen it go; here its channel and its sign of life are there still.
        met.channels.check_gone(OTHER);
        assert!(met.channels.broken().is_empty());
        met.is_parked();
        met.ends(RESUME_LAST);
        assert_eq!(met.channels.broken(), [met.key]);
    }

    #[test]
    fn one_of_which_nobody_tells_is_given_up_in_the_end() {
        let mut met = Met::new("silent");
        met.is_parked();
        met.ends(RESUME_LAST);
        assert!(met.channels.broken().is_empty(), "nobody has told that it is gone");
        let due_ns = met.channels.parking_due_ns().unwrap();
        assert!(due_ns <= after(clock::monotonic_ns(), LIVES));
        met.ends(LIVES);
        assert_eq!(met.channels.broken(), [met.key]);
    }
}

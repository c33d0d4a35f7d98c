//! The connections to other processes, near and far, and what is still to be said on them.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use tsuji_core::{Robot, TransportId};
use tsuji_platform::life::LifeSign;
use tsuji_platform::socket::{Connection, Credentials, MESSAGE_BYTES_MAX};
use tsuji_platform::{clock, process};
use tsuji_security::Peer;
use tsuji_transport::PeerId;
use tsuji_transport::deferred::told;

use crate::control::authentication::Authentication;
use crate::control::outbox::{FlowMessage, Outbox};
use crate::control::protocol::{Control, Hello, encode};
use crate::control::remote::RemoteChannel;
use crate::endpoint::Audience;
use crate::graph::{PeerProcess, ProcessInfo};
use crate::pacing::after;
use parking::{Parking, ResumeBackoff};

pub(crate) use parking::OwnEnd;

mod parking;

/// All connections, by a number of their own and by peer.
#[derive(Default)]
pub(crate) struct Channels {
    all: HashMap<u64, Channel>,
    by_peer: HashMap<PeerId, u64>,
    /// The channels to processes of other hosts.
    far: HashMap<PeerId, u64>,
    made: u64,
    /// Those who may hold something of this process, with a channel or without.
    lives: HashMap<PeerId, Watched>,
    own: Option<OwnEnd>,
    resuming: ResumeBackoff,
    /// When is looked whether those live whose channels are parked, on the monotonic clock.
    lives_due_ns: Option<u64>,
    /// Those whose sockets are not there, though they live.
    unreached: Vec<PeerId>,
    /// Whoever cannot be talked to, whatever is tried.
    refused: HashSet<PeerId>,
    /// Whoever talks nonsense over a wire.
    refused_remote: HashSet<PeerId>,
    wanted: Wanted,
    wants_hurry: bool,
    /// A channel is lost to somebody who may hold something still.
    wants_parting: bool,
}

/// Whether to look for peers without a channel.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wanted {
    #[default]
    No,
    /// A channel could not be made.
    Later,
    /// A channel was lost, maybe to somebody who lives.
    Soon,
}

/// The life of a process.
struct Watched {
    life: LifeSign,
    /// Its number here; 0 where it is in another namespace.
    pid: u32,
    /// It was proved that a transport reaches it, so it may hold something.
    was_met: bool,
}

/// One connection.
pub(crate) struct Channel {
    pub(crate) line: Line,
    /// The peer that this process connected to, if it did and not the other; far ones do both.
    pub(crate) target: Option<PeerId>,
    /// Who it is, once it has said so.
    pub(crate) hello: Option<Hello>,
    /// Each transport, with the obstacle if it does not reach the peer. `None` until both ends
    /// have found out.
    pub(crate) reach: Option<Vec<(TransportId, Option<String>)>>,
    pub(crate) is_settled: bool,
    /// How far it is proved who is at the other end, where this process is secured.
    pub(crate) authentication: Authentication,
    /// Who is at the other end, as the kernel vouched when it was met; none of another host.
    credentials: Option<Credentials>,
    /// Since when it is there, on the monotonic clock and since the system began.
    since_ns: u64,
    since_boot_ns: u64,
    /// When something was said on it last.
    used_ns: u64,
    parking: Parking,
    /// Somebody wants it to be open.
    is_wanted: bool,
    /// It could not be resumed, and is to be tried later.
    was_tried: bool,
    /// So often the other end's socket was not there.
    misses: u32,
    /// The other end has said that it leaves.
    has_left: bool,
    /// It brought one message, and is nobody's channel.
    is_alone: bool,
    outbox: Outbox,
    is_broken: bool,
    wants_write: bool,
}

/// How a channel reaches the other end.
pub(crate) enum Line {
    /// A socket of this host.
    Near(Connection),
    /// None is held: it is connected again when there is something to say.
    Parked,
    /// The wire of a transport.
    OtherEnd(RemoteChannel),
}

impl Line {
    /// Sends a frame, which WouldBlock refuses for now.
    fn send(&mut self, message: &FlowMessage) -> io::Result<()> {
        match self {
            Self::Near(connection) => {
                let borrowed: Vec<_> = message.fds.iter().map(AsFd::as_fd).collect();
                connection.send(&message.frame, &borrowed)
            }
            Self::Parked => Err(io::ErrorKind::WouldBlock.into()),
            Self::OtherEnd(line) if !line.is_up() => Err(io::ErrorKind::WouldBlock.into()),
            Self::OtherEnd(line) => line.send(&message.frame).map_err(io::Error::other),
        }
    }
}

impl Channels {
    pub(crate) fn begin(&mut self, own: OwnEnd) {
        self.own = Some(own);
    }

    pub(crate) fn add(
        &mut self,
        connection: Connection,
        target: Option<PeerId>,
    ) -> io::Result<u64> {
        let key = LINK_KEYS + self.made;
        self.made += 1;
        if let Some(own) = &self.own {
            own.poll.add(&connection, key)?;
        }
        let credentials = connection.credentials().ok();
        let channel = Channel::new(Line::Near(connection), target);
        self.all.insert(key, Channel { credentials, ..channel });
        Ok(key)
    }

    /// Adds a channel to a process of another host.
    pub(crate) fn add_remote(&mut self, line: RemoteChannel, peer: PeerId) {
        let key = LINK_KEYS + self.made;
        self.made += 1;
        self.far.insert(peer, key);
        self.all.insert(key, Channel::new(Line::OtherEnd(line), Some(peer)));
    }

    /// The channel to this process of another host.
    pub(crate) fn remote_to(&self, peer: PeerId) -> Option<u64> {
        self.far.get(&peer).copied()
    }

    pub(crate) fn is_remote(&self, key: u64) -> bool {
        self.all.get(&key).is_some_and(Channel::is_remote)
    }

    /// When a channel wants to connect, on the monotonic clock.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        let far = self.far.values().filter_map(|key| self.all.get(key));
        let far = far.filter_map(|channel| channel.remote_channel()?.due_ns());
        far.chain(self.parking_due_ns())
            .chain(self.unauthenticated().map(|(due_ns, _)| due_ns))
            .min()
    }

    /// The channels on which a proof goes on, or is awaited, and until when, where this process is secured. Whoever has connected may
    /// take so long for each word, and all for the whole.
    fn unauthenticated(&self) -> impl Iterator<Item = (u64, u64)> {
        let is_secured = self.own.as_ref().is_some_and(|own| own.is_secured);
        let all = is_secured.then(|| self.all.iter()).into_iter().flatten();
        all.filter_map(|(key, it)| {
            let since_ns = match it.hello {
                None => it.since_ns,
                Some(_) => it.authentication.running_since_ns()?,
            };
            let word_ns = it.target.is_none().then(|| after(it.used_ns, PROOF_WORD));
            let due_ns = after(since_ns, PROOF).min(word_ns.unwrap_or(u64::MAX));
            Some((due_ns, *key))
        })
    }

    /// Bytes that are held of claims which are not proved.
    pub(crate) fn claimed_bytes(&self) -> usize {
        self.all.values().map(|it| it.authentication.claimed_bytes()).sum()
    }

    pub(crate) fn on_time(&mut self, now_ns: u64) {
        for key in self.far.values() {
            if let Some(Line::OtherEnd(line)) =
                self.all.get_mut(key).map(|channel| &mut channel.line)
            {
                line.on_time(now_ns);
            }
        }
        self.park_and_resume(now_ns);
        let late: Vec<_> = self.unauthenticated().filter(|(due_ns, _)| *due_ns <= now_ns).collect();
        late.into_iter().for_each(|(_, key)| self.give_up(key));
    }

    /// Notes that something was said on it.
    pub(crate) fn note_use(&mut self, key: u64) {
        if let Some(channel) = self.all.get_mut(&key) {
            channel.used_ns = clock::monotonic_ns();
        }
    }

    /// Notes that one message came on this connection, after which it ends.
    pub(crate) fn mark_as_alone(&mut self, key: u64) {
        if let Some(channel) = self.all.get_mut(&key) {
            channel.is_alone = true;
        }
    }

    pub(crate) fn get(&mut self, key: u64) -> Option<&mut Channel> {
        self.all.get_mut(&key)
    }

    /// Gives the channel its peer.
    pub(crate) fn name(&mut self, key: u64, hello: Hello) {
        if let Some(channel) = self.all.get_mut(&key) {
            self.by_peer.insert(PeerId(hello.token), key);
            channel.hello = Some(hello);
        }
    }

    /// Remembers the sign of life of a peer that is being met.
    pub(crate) fn remember_life(&mut self, key: u64, peer: PeerId, life: LifeSign) {
        let pid = self.all.get(&key).and_then(|it| it.credentials).map_or(0, |it| it.pid);
        self.lives.entry(peer).or_insert(Watched { life, pid, was_met: false });
    }

    /// Whether the life of this process is over, as far as can be told.
    fn is_over(&self, peer: PeerId) -> bool {
        let (Some(watched), Some(own)) = (self.lives.get(&peer), &self.own) else { return false };
        let is_over = own.life.is_over(watched.life);
        is_over.unwrap_or_else(|| watched.pid != 0 && !process::is_there(watched.pid))
    }

    /// The transports have found out whether they reach this peer.
    pub(crate) fn note_reach(&mut self, key: u64, reach: Vec<(TransportId, Option<String>)>) {
        let Some(channel) = self.all.get_mut(&key) else { return };
        channel.reach = Some(reach);
        let peer = channel.peer();
        if let Some(watched) = peer.and_then(|peer| self.lives.get_mut(&peer)) {
            watched.was_met = true;
        }
    }

    /// Whether this peer, whose channel is lost, holds nothing: it is dead, or was never met. Answers
    /// so once.
    pub(crate) fn has_ended(&mut self, peer: PeerId) -> bool {
        let Some(watched) = self.lives.get(&peer) else { return false };
        if watched.was_met && !self.is_over(peer) {
            self.wants_parting = true;
            return false;
        }
        self.lives.remove(&peer);
        true
    }

    /// Whether a channel was lost since the last call to somebody who may hold something still.
    pub(crate) fn wanted_parting(&mut self) -> bool {
        std::mem::take(&mut self.wants_parting)
    }

    /// Those who may hold something, and have no channel.
    pub(crate) fn parted(&self) -> Vec<PeerId> {
        let lives = self.lives.keys().copied();
        lives.filter(|peer| !self.is_near(*peer) && self.ours_to(*peer).is_none()).collect()
    }

    /// The channel that this process made to `peer`, if it did.
    pub(crate) fn ours_to(&self, peer: PeerId) -> Option<u64> {
        let mut near = self.all.iter().filter(|(_, channel)| !channel.is_remote());
        near.find(|(_, channel)| channel.target == Some(peer)).map(|(key, _)| *key)
    }

    /// Drops a channel. Answers the peer that cannot be reached any more.
    pub(crate) fn remove(&mut self, key: u64) -> Option<PeerId> {
        let channel = self.all.remove(&key)?;
        match (&channel.line, &self.own) {
            (Line::OtherEnd(_), _) => self.far.retain(|_, it| *it != key),
            (Line::Near(connection), Some(own)) => {
                // Dropping the descriptor would do it too, unless a child shares it.
                let _ = own.poll.remove(connection);
            }
            (Line::Near(_) | Line::Parked, _) => {}
        }
        if !channel.is_remote() && !channel.is_alone {
            self.want_look(if channel.hello.is_some() { Wanted::Soon } else { Wanted::Later });
        }
        let peer = channel.peer()?;
        if self.by_peer.get(&peer) == Some(&key) {
            self.by_peer.remove(&peer);
            return Some(peer);
        }
        None
    }

    pub(crate) fn peer(&self, key: u64) -> Option<PeerId> {
        self.all.get(&key)?.peer()
    }

    /// Whether this peer is on this host, as far as is proved.
    pub(crate) fn is_near(&self, peer: PeerId) -> bool {
        self.of(peer).is_some_and(|channel| !channel.is_remote())
    }

    /// Whether samples can be exchanged with this peer, on one transport or another.
    pub(crate) fn is_met(&self, peer: PeerId) -> bool {
        self.of(peer).is_some_and(|channel| channel.reach.is_some())
    }

    /// Why a transport does not reach a peer, or `None` when it does.
    pub(crate) fn obstacle(&self, peer: PeerId, transport: &TransportId) -> Option<String> {
        let reach = self.of(peer).and_then(|channel| channel.reach.as_ref());
        let Some(reach) = reach else { return Some("the process has not been met".to_owned()) };
        match reach.iter().find(|(id, _)| id == transport) {
            Some((_, obstacle)) => obstacle.clone(),
            None => Some("not in the peer's build".to_owned()),
        }
    }

    /// The channels on which it is proved who is at the other end.
    pub(crate) fn proved_keys(&self) -> Vec<u64> {
        let proved = self.all.iter().filter(|(_, it)| it.authentication.proved().is_some());
        proved.map(|(key, _)| *key).collect()
    }

    /// Whom a peer has proved to be, where this process is secured.
    pub(crate) fn proved(&self, peer: PeerId) -> Option<&Peer> {
        self.of(peer)?.authentication.proved()
    }

    pub(crate) fn process(&self, peer: PeerId) -> ProcessInfo {
        let hello = self.of(peer).and_then(|channel| channel.hello.as_ref());
        hello.map_or_else(ProcessInfo::default, introduced)
    }

    /// The program at the other end and its process number, as far as the kernel says it.
    pub(crate) fn program_at(&self, key: u64) -> String {
        let Some(channel) = self.all.get(&key) else { return String::new() };
        let ProcessInfo { program, pid, .. } = silent(PeerId::default(), &channel.line);
        format!("{program} {pid}")
    }

    /// Whoever said who it is, or was tried.
    pub(crate) fn peer_processes(&self) -> Vec<PeerProcess> {
        let known = self.all.values().filter_map(|channel| {
            let process = match (&channel.hello, channel.target) {
                (Some(hello), _) => introduced(hello),
                (None, Some(target)) => silent(target, &channel.line),
                (None, None) => return None,
            };
            Some(PeerProcess { process, is_settled: channel.has_told_all() })
        });
        let mut known: Vec<_> = known.collect();
        known.sort_by_key(|it| it.process.pid);
        known
    }

    /// Peers that have introduced themselves.
    pub(crate) fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.by_peer.keys().copied()
    }

    /// Whether everybody has told all it had at the start. Whoever tried to connect and has not said who
    /// it is is not waited for.
    pub(crate) fn are_settled(&self) -> bool {
        let mut known = self.all.values().filter(|it| match &it.line {
            Line::Near(_) | Line::Parked => it.target.is_some() || it.hello.is_some(),
            // One that was tried may be dead for a while.
            Line::OtherEnd(line) => line.is_up(),
        });
        known.all(Channel::has_told_all)
    }

    /// Connections made by others that have not said who they are.
    pub(crate) fn nameless(&self) -> usize {
        self.all.values().filter(|it| it.target.is_none() && it.hello.is_none()).count()
    }

    pub(crate) fn keys(&self) -> Vec<u64> {
        self.all.keys().copied().collect()
    }

    /// Connections that failed while something was said on them.
    pub(crate) fn broken(&self) -> Vec<u64> {
        let broken = self.all.iter().filter(|(_, channel)| channel.is_broken);
        broken.map(|(key, _)| *key).collect()
    }

    /// Whether this peer has a channel, or needs none.
    pub(crate) fn has_channel(&self, peer: PeerId) -> bool {
        self.is_near(peer) || self.is_refused(peer) || self.ours_to(peer).is_some()
    }

    /// Whether there is no talking to this peer on this host.
    pub(crate) fn is_refused(&self, peer: PeerId) -> bool {
        self.refused.contains(&peer)
    }

    /// Whether there is no talking to this peer over a wire.
    pub(crate) fn is_refused_remote(&self, peer: PeerId) -> bool {
        self.refused_remote.contains(&peer)
    }

    /// There will be no talking to this peer over a wire.
    pub(crate) fn refuse_remote(&mut self, peer: PeerId) {
        self.refused_remote.insert(peer);
    }

    /// This peer is gone: who comes by its name next is another.
    pub(crate) fn forgive_remote(&mut self, peer: PeerId) {
        self.refused_remote.remove(&peer);
    }

    /// It is met after all, or may be.
    pub(crate) fn forgive(&mut self, peer: PeerId) {
        self.refused.remove(&peer);
    }

    /// There will be no talking to this peer.
    pub(crate) fn refuse(&mut self, peer: PeerId) {
        self.refused.insert(peer);
    }

    /// Somebody has been met, so looking for others is of use.
    pub(crate) fn hurry(&mut self) {
        self.wants_hurry = true;
    }

    /// Whether somebody has been met since the last call.
    pub(crate) fn hurries(&mut self) -> bool {
        std::mem::take(&mut self.wants_hurry)
    }

    /// Asks for another look at who is there.
    pub(crate) fn look_again(&mut self) {
        self.want_look(Wanted::Later);
    }

    fn want_look(&mut self, wanted: Wanted) {
        self.wanted = self.wanted.max(wanted);
    }

    /// Whether another look was asked for since the last call.
    pub(crate) fn wanted_look(&mut self) -> Wanted {
        std::mem::take(&mut self.wanted)
    }

    /// Keeps those refused for whom `keep` speaks, and answers the others.
    pub(crate) fn retain_refused(&mut self, keep: impl Fn(&PeerId) -> bool) -> Vec<PeerId> {
        self.refused.extract_if(|peer| !keep(peer)).collect()
    }

    /// Whether this peer has, or may have, something to do with this process.
    pub(crate) fn is_known(&self, peer: PeerId) -> bool {
        self.lives.contains_key(&peer)
            || self.by_peer.contains_key(&peer)
            || self.ours_to(peer).is_some()
    }

    /// Lets go of a channel on which nothing can be said now. Its thread drops it.
    pub(crate) fn give_up(&mut self, key: u64) {
        if let Some(channel) = self.all.get_mut(&key) {
            channel.is_broken = true;
            // Of one without a socket nothing else tells it.
            self.own.iter().for_each(|own| own.waker.give());
        }
    }

    pub(crate) fn send(&mut self, peer: PeerId, control: &Control) {
        if let Some(key) = self.key_of(peer).filter(|key| !self.is_withheld(*key, control)) {
            self.send_by(key, control);
        }
    }

    /// Sends by this channel, whoever is at the other end.
    pub(crate) fn send_by(&mut self, key: u64, control: &Control) {
        let frame = self.encode(control);
        self.send_on(key, control, frame, Vec::new());
    }

    /// With the names that others have for what is here.
    fn encode(&self, control: &Control) -> Vec<u8> {
        match &self.own {
            Some(own) => encode(&control.outward(&own.outward)),
            None => encode(control),
        }
    }

    /// The robots of whoever is at the other end, once it has said so, and of this process.
    fn robots(&self, key: u64) -> Option<[Option<&str>; 2]> {
        let theirs = self.all.get(&key)?.hello.as_ref()?.robot.as_deref();
        Some([theirs, self.own.as_ref()?.outward.robot().map(Robot::name)])
    }

    /// Whether whoever is at the other end is on another host or of another robot.
    fn leads_outside(&self, key: u64) -> bool {
        self.is_remote(key) || self.robots(key).is_some_and(|[theirs, own]| theirs != own)
    }

    /// Whether a process is on another host or of another robot.
    pub(crate) fn is_outside(&self, peer: PeerId) -> bool {
        self.key_of(peer).is_some_and(|key| self.leads_outside(key))
    }

    /// Whether whoever is at the other end is of a robot, and of another than this process.
    pub(crate) fn is_of_other_robot(&self, key: u64) -> bool {
        self.robots(key).is_some_and(|[theirs, own]| theirs.is_some() && theirs != own)
    }

    /// Whether this shows a topic that does not leave this host or robot, and whoever is at the other end is outside.
    pub(crate) fn is_withheld(&self, key: u64, control: &Control) -> bool {
        self.is_kept_inside(control) && self.leads_outside(key)
    }

    fn is_kept_inside(&self, control: &Control) -> bool {
        let topic = control.topic().zip(self.own.as_ref());
        topic.is_some_and(|(topic, own)| !own.outward.is_exported(topic))
    }

    /// All of this audience to whom this is said, and by which channel.
    pub(crate) fn told(
        &self,
        audience: Audience,
        control: &Control,
    ) -> impl Iterator<Item = (PeerId, u64)> {
        let audience = if self.is_kept_inside(control) { Audience::Inside } else { audience };
        let all = self.by_peer.iter().map(|(peer, key)| (*peer, *key));
        all.filter(move |(_, key)| audience.has(|| self.leads_outside(*key)))
    }

    pub(crate) fn broadcast(&mut self, control: &Control) {
        self.broadcast_to(Audience::Everybody, control);
    }

    /// The same, to those of this audience.
    pub(crate) fn broadcast_to(&mut self, audience: Audience, control: &Control) {
        if self.by_peer.is_empty() {
            return;
        }
        let frame = self.encode(control);
        for (_, key) in self.told(audience, control).collect::<Vec<_>>() {
            // Whoever has not been told what there was before will be told everything then.
            self.send_on(key, control, frame.clone(), Vec::new());
        }
    }

    /// Says this to all processes of this host that have introduced themselves.
    pub(crate) fn broadcast_near(&mut self, control: &Control) {
        let near: Vec<_> = self.peers().filter(|peer| self.is_near(*peer)).collect();
        near.into_iter().for_each(|peer| self.send(peer, control));
    }

    /// Says this to all processes of this host to which a channel is open.
    pub(crate) fn broadcast_open(&mut self, control: &Control) {
        let open = self.all.iter().filter(|(_, it)| it.hello.is_some() && it.is_open());
        let (open, frame): (Vec<_>, _) =
            (open.map(|(key, _)| *key).collect(), self.encode(control));
        for key in open {
            self.send_on(key, control, frame.clone(), Vec::new());
        }
    }

    /// Whether no socket is held for the channel to this process.
    pub(crate) fn is_parked(&self, peer: PeerId) -> bool {
        self.of(peer).is_some_and(|it| matches!(it.line, Line::Parked))
    }

    /// Whether whoever is at the other end may set the links of topics: processes of this user on this
    /// host. Else the reason.
    pub(crate) fn may_set_routes(&self, key: u64) -> Result<(), String> {
        let line = self.all.get(&key).map(|channel| &channel.line);
        let Some(Line::Near(connection)) = line else {
            return Err("it comes from another host; allowed: this host".to_owned());
        };
        let user = connection.credentials().map_err(|error| error.to_string())?.user;
        if user == process::user_id() {
            return Ok(());
        }
        Err(format!("it comes from user {user}; allowed: user {}", process::user_id()))
    }

    /// Sends `frame`, the encoding of `control`, now or when the other end takes it.
    pub(crate) fn send_on(
        &mut self,
        key: u64,
        control: &Control,
        frame: Vec<u8>,
        fds: Vec<OwnedFd>,
    ) {
        let Some(channel) = self.all.get_mut(&key) else { return };
        if MESSAGE_BYTES_MAX < frame.len() {
            // Names are bounded where they are made. The other end could only hang up.
            told::error!(bytes = frame.len(), ?control, "too long to be told");
            return;
        }
        channel.outbox.push(control, frame, fds);
        self.flush(key);
    }

    /// Sends what the other end takes, and asks to be told when it takes more.
    pub(crate) fn flush(&mut self, key: u64) {
        let Some(channel) = self.all.get_mut(&key) else { return };
        if matches!(channel.line, Line::Parked) && !channel.outbox.is_empty() {
            return self.resume(key);
        }
        if matches!(channel.parking, Parking::Asked | Parking::Resuming) {
            return;
        }
        if !channel.outbox.is_empty() {
            channel.used_ns = clock::monotonic_ns();
        }
        while let Some(message) = channel.outbox.first() {
            match channel.line.send(message) {
                Ok(()) => (),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    // The reading side finds the same and removes it.
                    channel.is_broken = true;
                    channel.outbox.clear();
                    break;
                }
            }
            channel.outbox.remove_first();
        }
        let wants_write = !channel.outbox.is_empty();
        if wants_write != channel.wants_write
            && let (Some(own), Line::Near(connection)) = (&self.own, &channel.line)
        {
            channel.wants_write = wants_write;
            // If it fails the channel is broken, and reading finds out.
            let _ = own.poll.want_write(connection, key, wants_write);
        }
    }

    fn of(&self, peer: PeerId) -> Option<&Channel> {
        self.all.get(self.by_peer.get(&peer)?)
    }
}

impl Channel {
    fn new(line: Line, target: Option<PeerId>) -> Self {
        Self {
            line,
            target,
            hello: None,
            reach: None,
            is_settled: false,
            authentication: Authentication::default(),
            credentials: None,
            since_ns: clock::monotonic_ns(),
            since_boot_ns: clock::boot_ns(),
            used_ns: clock::monotonic_ns(),
            parking: Parking::No,
            is_wanted: false,
            was_tried: false,
            misses: 0,
            has_left: false,
            is_alone: false,
            outbox: Outbox::default(),
            is_broken: false,
            wants_write: false,
        }
    }

    pub(crate) fn since_boot_ns(&self) -> u64 {
        self.since_boot_ns
    }

    /// Who is at the other end, as the kernel vouched when it was met.
    pub(crate) fn credentials(&self) -> Option<Credentials> {
        self.credentials
    }

    pub(crate) fn remote_channel(&self) -> Option<&RemoteChannel> {
        match &self.line {
            Line::Near(_) | Line::Parked => None,
            Line::OtherEnd(line) => Some(line),
        }
    }

    fn is_remote(&self) -> bool {
        self.remote_channel().is_some()
    }

    fn has_told_all(&self) -> bool {
        self.is_settled && self.reach.is_some()
    }
}

/// A process as it introduced itself.
fn introduced(hello: &Hello) -> ProcessInfo {
    ProcessInfo {
        token: PeerId(hello.token).to_string(),
        pid: hello.pid,
        program: hello.program.clone(),
        host: hello.host.clone(),
    }
}

/// What the kernel knows of a process that has not introduced itself.
fn silent(peer: PeerId, line: &Line) -> ProcessInfo {
    let Line::Near(connection) = line else {
        return ProcessInfo { token: peer.to_string(), ..ProcessInfo::default() };
    };
    let pid = connection.credentials().map_or(0, |it| it.pid);
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let path = arguments.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = path.rsplit(|byte| *byte == b'/').next().filter(|it| !it.is_empty());
    ProcessInfo {
        token: peer.to_string(),
        pid,
        program: String::from_utf8_lossy(name.unwrap_or(b"?")).into_owned(),
        host: process::host_name(),
    }
}

/// How long a process may take to prove who it is, and one that has connected for each word of that.
const PROOF: Duration = Duration::from_secs(60);
const PROOF_WORD: Duration = Duration::from_secs(10);
/// Numbers of channels start here; below are the thread's own descriptors.
const LINK_KEYS: u64 = 1000;

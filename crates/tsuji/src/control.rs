//! The control channels: how processes find each other and what they say.
//!
//! Each participant listens at a socket in the run-time folder of its domain. A new process connects
//! to everyone it finds there; two new ones that connect to each other at once keep one of the two
//! connections. One thread for each participant reads what comes; what is to be said is sent by
//! whoever says it. The hang-up of a connection is the news that somebody left, unless both ends have agreed to park the
//! channel; the end of its sign of life is that of a death.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tsuji_core::TransportId;
use tsuji_platform::clock;
use tsuji_platform::network::Changes;
use tsuji_platform::poll::Ready;
use tsuji_platform::process;
use tsuji_platform::socket::{Connection, MESSAGE_BYTES_MAX};
use tsuji_transport::deferred::told;
use tsuji_transport::wire::Treatment;
use tsuji_transport::{Gid, Handshake, PeerId};

use crate::Result;
use crate::graph::UnreachablePeer;
use crate::graph_cache::GraphCache;
use crate::pacing::{Backoff, after};
use crate::policy_file::PolicyFile;
use crate::session::{Session, unexpected};
use authentication::introduce;
use channel::{Line, OwnEnd, Wanted};
use joining::join;
use listening::{JoinState, Listening};
use listening_socket::{ListeningSocket, is_for_group, socket_of};
use protocol::{Control, FrameError, HandshakeRecord, Hello, decode, encode};
use remote::{Heard, RemoteFrame};
use watching::{Deed, WatchWord, Watching};

pub(crate) mod authentication;
pub(crate) mod channel;
mod joining;
pub(crate) mod listening;
pub(crate) mod listening_socket;
mod outbox;
mod parked;
pub(crate) mod protocol;
pub(crate) mod remote;
mod robots;
pub(crate) mod watching;

/// Connects to everyone who is there, and starts the thread that listens.
pub(crate) fn start(
    session: Arc<Session>,
    listening_socket: ListeningSocket,
) -> Result<JoinHandle<()>> {
    let setup = |error| unexpected("control channel", error);
    session.poll.add(&listening_socket.listener, LISTENER).map_err(setup)?;
    session.poll.add(&session.waker, WAKE).map_err(setup)?;
    let policy = session.policy_file().and_then(PolicyFile::followed);
    // What was written before it was watched.
    let policy_due_ns = policy.map(|_| clock::monotonic_ns());
    let lock_mode = listening_socket.lock_mode();
    let policy = policy.map(Path::to_owned);
    let watching = Watching::begin(&listening_socket.path, lock_mode, policy, &session.poll, WATCH);
    let network = if session.speaks() { network_changes(&session) } else { None };
    for (transport, key) in session.transports().iter().zip(CONTROL_MESSAGE_KEYS..) {
        if let Some(fd) = transport.control_fd() {
            session.poll.add(fd, key).map_err(setup)?;
        }
    }
    let folder = listening_socket.folder.clone();
    let own = OwnEnd::new(&session, folder);
    session.graph_cache().channels.begin(own);
    listening_socket.remove_half_open();
    for path in listening_socket.peer_processes() {
        connect_attempt(&session, &path);
    }
    let listening = if session.speaks() { meet_foreign(&session) } else { Vec::new() };
    let look = Look(Backoff::new(LOOK_FIRST, LOOK_LAST));
    let parting = Backoff::new(PART_FIRST, PART_LAST);
    let buffer = vec![0; MESSAGE_BYTES_MAX];
    let ends = Arc::clone(&session);
    let keys = session.security().map(|_| clock::monotonic_ns());
    let unheard = BTreeSet::new();
    let mut keeper = Keeper {
        session,
        listening_socket,
        look,
        parting,
        buffer,
        unheard,
        listening,
        tidy_due_ns: None,
        watching,
        policy_due_ns,
        is_shut: false,
        network,
        settling: Settling::default(),
        keys_due_ns: keys,
    };
    std::thread::Builder::new()
        .name("tsuji-control".to_owned())
        .stack_size(256 * 1024)
        .spawn(move || keeper.run())
        .map_err(|error| {
            // So does whoever joins a wire.
            ends.stop();
            setup(error)
        })
}

const LISTENER: u64 = 0;
const WAKE: u64 = 1;
const WATCH: u64 = 2;
const NETWORK: u64 = 3;
/// Of the transports, in their order.
const CONTROL_MESSAGE_KEYS: u64 = 4;

/// WatchEvent of interfaces and addresses.
fn network_changes(session: &Session) -> Option<Changes> {
    let changes = Changes::new()
        .and_then(|changes| session.poll.add(&changes, NETWORK).map(|()| changes))
        .inspect_err(|error| told::warn!(%error, "interfaces that come later are not joined"));
    changes.ok()
}

/// Joins the wires of the transports; or begins to listen there, where memory is preferred.
fn meet_foreign(session: &Arc<Session>) -> Vec<Listening> {
    let mut all = Vec::new();
    for (at, transport) in session.transports().iter().enumerate() {
        if transport.wire().is_none() || session.is_second(&transport.id()) {
            continue;
        }
        if session.joins_at_once() {
            join(session, transport);
            continue;
        }
        let begun = Listening::begin(session, &**transport).and_then(|listening| {
            let added = session.poll.add(&listening.socket, listening_keys(session) + at as u64);
            added.map(|()| listening).map_err(|error| error.to_string())
        });
        let join_state = match begun {
            Ok(listening) => {
                all.push(listening);
                JoinState::Listens
            }
            Err(reason) => {
                told::info!(transport = %transport.id(), reason, "not only listened to");
                join(session, transport);
                JoinState::AtOnce(reason)
            }
        };
        session.graph_cache().join_states.insert(transport.id(), join_state);
    }
    all
}

/// Why a wire cannot, or can no longer, only be listened to.
fn reason_to_join(session: &Session, transport: usize) -> Option<String> {
    session.transports()[transport].wire()?.announcements().err()
}

/// Of the sockets that stand in for transports, in the order of these.
fn listening_keys(session: &Session) -> u64 {
    CONTROL_MESSAGE_KEYS + session.transports().len() as u64
}

/// Connects to the socket at `path`, and says hello.
fn connect_attempt(session: &Arc<Session>, path: &Path) {
    let Some(peer) = peer_of(path) else { return };
    let mut graph_cache = session.graph_cache();
    if graph_cache.channels.has_channel(peer) {
        return;
    }
    let unreachable_peer =
        |reason: String| UnreachablePeer { path: path.display().to_string(), reason };
    match Connection::connect(path) {
        Ok(connection) => {
            if let Err(reason) = may_come_in(&connection, session.folder()) {
                graph_cache.refuse_near(session, peer);
                return graph_cache.note_unreachable_peer(unreachable_peer(reason));
            }
            match graph_cache.channels.add(connection, Some(peer)) {
                Ok(key) => introduce(session, &mut graph_cache, key, peer),
                Err(error) => {
                    graph_cache.channels.look_again();
                    graph_cache.note_unreachable_peer(unreachable_peer(error.to_string()));
                }
            }
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            // Its owner died: the socket is all that is left of it.
            told::debug!(path = %path.display(), "removed the socket of a dead process");
            let _ = std::fs::remove_file(path);
            graph_cache.foreign.forget_process(peer);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => (),
        // So many connect there that some have to come again.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            graph_cache.channels.look_again()
        }
        Err(error) => {
            if error.kind() == io::ErrorKind::PermissionDenied {
                graph_cache.refuse_near(session, peer);
            } else {
                graph_cache.channels.look_again();
            }
            graph_cache.note_unreachable_peer(unreachable_peer(format!("cannot connect: {error}")));
        }
    }
}

/// Only processes of this user may, or of whoever a group's folder lets in; else the reason.
fn may_come_in(connection: &Connection, folder: &Path) -> Result<(), String> {
    let other = connection.credentials().map_err(|error| error.to_string())?;
    if other.user == process::user_id() || is_for_group(folder) {
        return Ok(());
    }
    Err(format!(
        "a process of user {}; allowed: user {}, or a group's run-time folder",
        other.user,
        process::user_id()
    ))
}

fn peer_of(path: &Path) -> Option<PeerId> {
    let name = path.file_stem()?.to_str()?;
    let mut token = [0; 16];
    if name.len() != 32 || !name.is_ascii() {
        return None;
    }
    for (at, byte) in token.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&name[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(PeerId(token))
}

fn is_passing(kind: tsuji_transport::ErrorKind) -> bool {
    matches!(kind, tsuji_transport::ErrorKind::Busy | tsuji_transport::ErrorKind::Exhausted)
}

fn say_hello(session: &Session, graph_cache: &mut GraphCache, key: u64, peer: PeerId) {
    let mut handshakes = Vec::new();
    let mut all_fds: Vec<OwnedFd> = Vec::new();
    let is_remote = graph_cache.channels.is_remote(key);
    for transport in session.transports() {
        let scopes = transport.capability().scopes;
        if !(if is_remote { scopes.remote } else { scopes.local }) {
            continue;
        }
        match transport.handshake(peer) {
            Ok(Handshake { bytes, fds }) => {
                let transport = transport.id().to_string();
                handshakes.push(HandshakeRecord { transport, bytes, fds: fds.len() as u32 });
                all_fds.extend(fds);
            }
            Err(error) if is_passing(error.kind()) => {
                told::warn!(transport = %transport.id(), %error, "no handshake now");
                return graph_cache.channels.give_up(key);
            }
            Err(error) => told::warn!(transport = %transport.id(), %error, "no handshake"),
        }
    }
    let hello = Hello {
        token: session.id.0,
        pid: session.info.pid,
        program: session.info.program.clone(),
        host: session.info.host.clone(),
        robot: session.outward().robot().map(|it| it.name().to_owned()),
        rules: session.outward().rules(),
        life: session.life().sign().into(),
        handshakes,
    };
    let hello = Control::Hello(hello);
    graph_cache.channels.send_on(key, &hello, encode(&hello), all_fds);
}

/// The thread of one participant.
struct Keeper {
    session: Arc<Session>,
    listening_socket: ListeningSocket,
    look: Look,
    /// When is looked whether those have ended whose channels are lost.
    parting: Backoff,
    buffer: Vec<u8>,
    /// The transports, by their places, on whose wires there is more to look at.
    unheard: BTreeSet<usize>,
    /// What stands in for the engines of transports.
    listening: Vec<Listening>,
    /// When transports may have something to end.
    tidy_due_ns: Option<u64>,
    watching: Watching,
    /// When the policy file is read again.
    policy_due_ns: Option<u64>,
    /// Whether the last who tried to connect could not be let in.
    is_shut: bool,
    /// WatchEvent of interfaces and addresses.
    network: Option<Changes>,
    /// When what has changed of them is looked at.
    settling: Settling,
    /// When the keystore is looked at, where this process is secured.
    keys_due_ns: Option<u64>,
}

/// When a network that changes is looked at: an address comes in several steps, and often comes back.
#[derive(Default)]
struct Settling {
    /// When the first change came that was not looked at yet.
    since_ns: Option<u64>,
    due_ns: Option<u64>,
}

impl Settling {
    fn note(&mut self, now_ns: u64) {
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        // A channel that flaps, or news that never end, must not keep the rest from being seen.
        let last_ns = after(since_ns, NETWORK_SETTLES_MAX);
        self.due_ns = Some(after(now_ns, NETWORK_SETTLES).min(last_ns));
    }

    /// Whether it is time to look; once.
    fn is_over(&mut self, now_ns: u64) -> bool {
        let is_over = self.due_ns.is_some_and(|due_ns| due_ns <= now_ns);
        if is_over {
            *self = Self::default();
        }
        is_over
    }
}

/// How long after the last change of the network it is looked at, and how long after the first at most.
const NETWORK_SETTLES: Duration = Duration::from_millis(1500);
const NETWORK_SETTLES_MAX: Duration = Duration::from_secs(10);

/// How long after its first change the policy file is read: editors take several steps.
const POLICY_SETTLES: Duration = Duration::from_millis(50);

/// When to look for peers without a channel: soon after one was lost, more rarely while nobody is
/// met, and not at all while there are none.
struct Look(Backoff);

impl Look {
    fn note(&mut self, wanted: Wanted) {
        match wanted {
            // Whoever was met and is lost is looked for at once, whatever else is waited for.
            Wanted::Soon => {
                self.0.hurry();
                self.0.later(clock::monotonic_ns());
            }
            Wanted::Later if self.0.due_ns().is_none() => self.0.later(clock::monotonic_ns()),
            Wanted::Later | Wanted::No => (),
        }
    }
}

const LOOK_FIRST: Duration = Duration::from_millis(100);
const LOOK_LAST: Duration = Duration::from_secs(30);

/// How soon is looked again whether somebody has ended whose channel is lost.
const PART_FIRST: Duration = Duration::from_millis(2);
const PART_LAST: Duration = Duration::from_secs(60);

impl Keeper {
    fn run(&mut self) {
        let mut events = Vec::new();
        while !self.session.is_stopping() {
            let mut graph_cache = self.session.graph_cache();
            let broken = graph_cache.channels.broken();
            let is_remote = broken.iter().any(|key| graph_cache.channels.is_remote(*key));
            for key in broken {
                self.drop_channel(&mut graph_cache, key);
            }
            if is_remote {
                // Whoever has been found again meanwhile was passed over for the sake of the old channel.
                graph_cache.meet_remote(&self.session);
            }
            if graph_cache.channels.hurries() {
                self.look.0.hurry();
            }
            self.look.note(graph_cache.channels.wanted_look());
            if graph_cache.channels.wanted_parting() {
                self.parting.soon(clock::monotonic_ns());
            }
            if graph_cache.wants_second()
                && let Some(engines) = self.session.wire_engines()
                && let Some(second) = self.session.transport(engines.second.as_str())
                && !join(&self.session, second)
            {
                graph_cache.second_failed(&self.session);
            }
            graph_cache.mend(&self.session);
            graph_cache.tell_nodes(&self.session);
            let words = std::mem::take(&mut graph_cache.watch_words);
            let deeds = self.watching.on_words(words, |peer| graph_cache.channels.is_near(peer));
            let due_ns = graph_cache.due_ns(&self.session);
            drop(graph_cache);
            self.act(deeds);
            self.session.tell();
            let connect_attempt_ns = self.listening.iter().filter_map(Listening::due_ns).min();
            let watch_ns = self.watching.due_ns();
            let look_ns = self.look.0.due_ns();
            let dues = [
                due_ns,
                look_ns,
                self.parting.due_ns(),
                connect_attempt_ns,
                self.policy_due_ns,
                self.tidy_due_ns,
                watch_ns,
                self.settling.due_ns,
                self.keys_due_ns,
            ];
            let first_ns = dues.into_iter().flatten().min();
            let first_ns = if self.unheard.is_empty() { first_ns } else { Some(0) };
            let timeout =
                first_ns.map(|due| Duration::from_nanos(due.saturating_sub(clock::monotonic_ns())));
            if let Err(error) = self.session.poll.wait(timeout, &mut events) {
                told::error!(%error, "the control channel ends");
                break;
            }
            for event in &events {
                self.handle(*event);
            }
            for at in std::mem::take(&mut self.unheard) {
                self.carry_control_messages(at);
            }
            self.tidy_transports();
            let mut graph_cache = self.session.graph_cache();
            if due_ns.is_some() {
                graph_cache.channels.on_time(clock::monotonic_ns());
                graph_cache.on_time(&self.session, clock::monotonic_ns());
            }
            drop(graph_cache);
            if self.look.0.is_due(clock::monotonic_ns()) {
                self.look_for_peers();
            }
            if self.parting.is_due(clock::monotonic_ns()) {
                self.part_again();
            }
            if self.policy_due_ns.is_some_and(|due| due <= clock::monotonic_ns()) {
                let is_in_doubt = self.session.read_policy_again();
                let again = || after(clock::monotonic_ns(), POLICY_SETTLES);
                self.policy_due_ns = is_in_doubt.then(again);
            }
            self.listening.iter_mut().for_each(|it| it.on_time(clock::monotonic_ns()));
            let deeds = self.watching.on_time(clock::monotonic_ns());
            self.act(deeds);
            if self.keys_due_ns.is_some_and(|due| due <= clock::monotonic_ns()) {
                self.keys_due_ns = self.check_keys();
            }
            if self.settling.is_over(clock::monotonic_ns()) {
                self.follow_network();
            }
        }
        let mut graph_cache = self.session.graph_cache();
        graph_cache.channels.send_bye();
        for key in graph_cache.channels.keys() {
            if let Some(line) =
                graph_cache.channels.get(key).and_then(|channel| channel.remote_channel())
            {
                line.end();
            }
            self.drop_channel(&mut graph_cache, key);
        }
        graph_cache.leave_wires(&self.session);
        drop(graph_cache);
        self.watching.end();
        self.listening_socket.end();
    }

    /// Lets transports end what nothing has needed for a while. Nobody waits for the graph meanwhile.
    fn tidy_transports(&mut self) {
        let now_ns = clock::monotonic_ns();
        let dues = self.session.transports().iter().filter_map(|it| it.tidy(now_ns));
        self.tidy_due_ns = dues.min();
    }

    fn handle(&mut self, event: Ready) {
        match event.key {
            LISTENER => self.accept(),
            WAKE => self.session.waker.take(),
            NETWORK => {
                if self.network.as_ref().is_some_and(Changes::take) {
                    self.settling.note(clock::monotonic_ns());
                }
            }
            WATCH => {
                let deeds = self.watching.on_new_message();
                self.act(deeds);
            }
            key if key < CONTROL_MESSAGE_KEYS + self.session.transports().len() as u64 => {
                self.carry_control_messages((key - CONTROL_MESSAGE_KEYS) as usize);
            }
            key if key < listening_keys(&self.session) + self.session.transports().len() as u64 => {
                let at = (key - listening_keys(&self.session)) as usize;
                let session = Arc::clone(&self.session);
                self.end_listening(at, |listening| {
                    let heard = listening.heard()?;
                    // It may have been the engine of this very process.
                    Some(reason_to_join(&session, at).unwrap_or(heard))
                });
            }
            key => {
                if event.writable {
                    self.session.graph_cache().channels.flush(key);
                }
                if event.readable {
                    self.read(key);
                }
            }
        }
    }

    /// Joins the wire of a transport that is only listened to, if there is a reason.
    fn end_listening(
        &mut self,
        transport: usize,
        reason: impl FnOnce(&Listening) -> Option<String>,
    ) {
        let transport = &self.session.transports()[transport];
        let id = transport.id();
        let Some(at) = self.listening.iter().position(|it| it.transport == id) else { return };
        let Some(reason) = reason(&self.listening[at]) else { return };
        told::debug!(transport = %id, reason, "no longer only listened to");
        let listening = self.listening.swap_remove(at);
        let _ = self.session.poll.remove(&listening.socket);
        self.session.graph_cache().join_states.insert(id, JoinState::Joined(reason));
        join(&self.session, transport);
    }

    /// Carries what a transport says, and goes on with what waited for it.
    fn carry_control_messages(&mut self, at: usize) {
        let session = Arc::clone(&self.session);
        // A flow may have started what was only listened to.
        self.end_listening(at, |_| reason_to_join(&session, at));
        let transport = &session.transports()[at];
        let mut graph_cache = session.graph_cache();
        for control_message in transport.control_messages() {
            let (transport, bytes) = (transport.id().to_string(), control_message.bytes);
            graph_cache
                .channels
                .send(control_message.to, &Control::OfTransport { transport, bytes });
        }
        let mut is_more = graph_cache.look_at_wire(&session, &**transport);
        is_more |= self.hear_remote(&mut graph_cache, &transport.id());
        if is_more {
            self.unheard.insert(at);
        }
        graph_cache.go_on(&self.session, &transport.id());
    }

    /// Reads what processes of other hosts say. Answers whether they say more.
    fn hear_remote(&self, graph_cache: &mut GraphCache, transport: &TransportId) -> bool {
        // One with very much to say must not keep the others waiting.
        for _ in 0..READ_BATCH {
            let Some((writer, sample)) = graph_cache.foreign.remote_said(transport) else {
                return false;
            };
            let Some(frame) = RemoteFrame::from_bytes(&sample) else {
                told::debug!("what came on a far control channel is no frame; dropped");
                continue;
            };
            // Whoever is not found yet tries to connect again.
            let key = graph_cache.channels.remote_to(frame.from);
            let Some(key) = key.filter(|_| graph_cache.foreign.speaks_for(writer, frame.from))
            else {
                continue;
            };
            let Some(Line::OtherEnd(line)) =
                graph_cache.channels.get(key).map(|channel| &mut channel.line)
            else {
                continue;
            };
            match line.hear(&frame) {
                Heard::Nothing => {}
                Heard::Up => {
                    say_hello(&self.session, graph_cache, key, frame.from);
                    graph_cache.channels.flush(key);
                    if !frame.body.is_empty() {
                        self.read_frame(graph_cache, key, frame.body, Vec::new());
                    }
                }
                Heard::Said => self.read_frame(graph_cache, key, frame.body, Vec::new()),
                Heard::Ended => {
                    graph_cache.foreign.forget_process(frame.from);
                    self.drop_channel(graph_cache, key);
                }
                Heard::Anew => {
                    self.drop_channel(graph_cache, key);
                    graph_cache.meet_remote(&self.session);
                }
            }
        }
        true
    }

    /// ConnectAttempts where nobody has answered yet, or not since the channel was lost. The sockets of the dead
    /// go by the way.
    fn look_for_peers(&mut self) {
        let peers = self.listening_socket.peer_processes();
        peers.iter().for_each(|path| connect_attempt(&self.session, path));
        let mut graph_cache = self.session.graph_cache();
        // What was noted here will be looked at when the next pause is over.
        graph_cache.channels.wanted_look();
        let gone = graph_cache
            .channels
            .retain_refused(|peer| peers.iter().any(|path| peer_of(path).as_ref() == Some(peer)));
        for peer in gone {
            graph_cache.treat_on_wires(&self.session, peer, Treatment::Wait);
        }
        let is_missing = |path: &PathBuf| {
            path.exists()
                && peer_of(path).is_some_and(|peer| !graph_cache.channels.has_channel(peer))
        };
        self.look.0.tried();
        if peers.iter().any(is_missing) {
            self.look.0.later(clock::monotonic_ns());
        }
    }

    fn accept(&mut self) {
        loop {
            match self.listening_socket.listener.accept() {
                Ok(Some(connection)) => {
                    if std::mem::take(&mut self.is_shut) {
                        // Those that were not let in may have come to tell of a death.
                        self.session.graph_cache().channels.check_parked();
                    }
                    if let Some(key) = self.let_in(connection) {
                        // Many bring one message and end, and need not hold a descriptor meanwhile.
                        self.read(key);
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    // Out of descriptors, most likely: who tried to connect is told by the hang-up, and tries to connect again.
                    if !std::mem::replace(&mut self.is_shut, true) {
                        told::warn!(%error, "a process could not be let in");
                    }
                    return;
                }
            }
        }
    }

    fn let_in(&mut self, connection: Connection) -> Option<u64> {
        let mut graph_cache = self.session.graph_cache();
        let unreachable_peer = |reason: String| UnreachablePeer {
            path: self.listening_socket.folder.display().to_string(),
            reason,
        };
        if NAMELESS_MAX <= graph_cache.channels.nameless() {
            graph_cache.note_unreachable_peer(unreachable_peer(format!(
                "more than {NAMELESS_MAX} connections that do not say who they are"
            )));
            self.is_shut = true;
            return None;
        }
        let added = may_come_in(&connection, &self.listening_socket.folder).and_then(|()| {
            graph_cache.channels.add(connection, None).map_err(|error| error.to_string())
        });
        added.map_err(|reason| graph_cache.note_unreachable_peer(unreachable_peer(reason))).ok()
    }

    /// Does what follows from what was seen or said of watched files.
    fn act(&mut self, deeds: Vec<Deed>) {
        for deed in deeds {
            match deed {
                Deed::LookForSocket => self.look_for_listening_socket(),
                Deed::ReadPolicy => {
                    let due_ns = after(clock::monotonic_ns(), POLICY_SETTLES);
                    self.policy_due_ns.get_or_insert(due_ns);
                }
                Deed::TellAll(WatchWord::SocketGone) => {
                    // Nobody can be connected to.
                    let word = Control::Watch(WatchWord::SocketGone);
                    self.session.graph_cache().channels.broadcast_open(&word);
                }
                Deed::Tell(peer, word) => {
                    let mut graph_cache = self.session.graph_cache();
                    if graph_cache.channels.is_near(peer) {
                        graph_cache.channels.send(peer, &Control::Watch(word));
                    }
                }
                Deed::TellAll(word) => {
                    self.session.graph_cache().channels.broadcast_near(&Control::Watch(word));
                }
            }
        }
    }

    /// Opens the door again if somebody removed it.
    fn look_for_listening_socket(&mut self) {
        if self.listening_socket.path.exists() || self.session.is_stopping() {
            return;
        }
        let _ = self.session.poll.remove(&self.listening_socket.listener);
        match ListeningSocket::open(&self.listening_socket.folder, self.session.id) {
            Ok(listening_socket) => {
                told::warn!(path = %listening_socket.path.display(), "the socket was removed; made again");
                self.listening_socket = listening_socket;
                if let Err(error) = self.session.poll.add(&self.listening_socket.listener, LISTENER)
                {
                    told::error!(%error, "new processes will not find this one");
                }
                self.watching.socket_made_again();
                // So may be those of others, whom the watcher cannot tell.
                let word = Control::Watch(WatchWord::SocketGone);
                self.session.graph_cache().channels.broadcast_open(&word);
                self.look_for_peers();
            }
            Err(error) => told::error!(%error, "new processes will not find this one"),
        }
    }

    fn read(&mut self, key: u64) {
        let session = Arc::clone(&self.session);
        let mut buffer = std::mem::take(&mut self.buffer);
        // A peer with very much to say must not keep the others waiting.
        for _ in 0..READ_BATCH {
            if !self.read_one(&mut session.graph_cache(), key, &mut buffer) {
                break;
            }
        }
        self.buffer = buffer;
    }

    /// Reads one message of a connection. Answers whether there may be more.
    fn read_one(&self, graph_cache: &mut GraphCache, key: u64, buffer: &mut [u8]) -> bool {
        let Some(channel) = graph_cache.channels.get(key) else { return false };
        let Line::Near(connection) = &channel.line else { return false };
        match connection.receive(buffer) {
            Ok(Some(received)) => {
                graph_cache.channels.note_use(key);
                self.read_frame(graph_cache, key, &buffer[..received.bytes], received.fds);
                return true;
            }
            Ok(None) if graph_cache.channels.survives_hang_up(key) => {}
            Ok(None) => self.drop_channel(graph_cache, key),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                told::warn!(%error, "a control channel failed");
                self.drop_channel(graph_cache, key);
            }
        }
        false
    }

    /// Does what the other end says.
    fn read_frame(&self, graph_cache: &mut GraphCache, key: u64, frame: &[u8], fds: Vec<OwnedFd>) {
        let error = match decode(frame) {
            Ok(control) => {
                let control = self.authenticate(graph_cache, key, control);
                let Some(control) = control else { return };
                return self.handle_message(graph_cache, key, control, fds);
            }
            Err(error) => error,
        };
        let reason = match error {
            FrameError::Version(theirs) => format!(
                "it speaks version {theirs} of the control protocol, this is {}; treated as a \
                 foreign peer",
                protocol::VERSION
            ),
            FrameError::Garbage => "what it says is not the control protocol".into(),
        };
        let path = self.place_of(graph_cache, key);
        graph_cache.note_unreachable_peer(UnreachablePeer { path, reason });
        match graph_cache.channels.get(key).and_then(|channel| channel.target) {
            Some(target) if graph_cache.channels.is_remote(key) => {
                graph_cache.channels.refuse_remote(target)
            }
            Some(target) => graph_cache.refuse_near(&self.session, target),
            // Whoever tried to connect learns from any frame of this version not to come again.
            None => graph_cache.channels.send_by(key, &Control::Settled),
        }
        self.drop_channel(graph_cache, key);
    }

    /// The socket of whoever is at the other end, as far as it is known.
    fn place_of(&self, graph_cache: &mut GraphCache, key: u64) -> String {
        let target = graph_cache.channels.get(key).and_then(|channel| channel.target);
        let peer = graph_cache.channels.peer(key).or(target);
        let path = peer.map(|peer| socket_of(&self.listening_socket.folder, peer));
        path.as_deref().unwrap_or(&self.listening_socket.folder).display().to_string()
    }

    fn obey(&self, graph_cache: &mut GraphCache, key: u64, control: Control, fds: Vec<OwnedFd>) {
        let session = &Arc::clone(&self.session);
        let peer = graph_cache.channels.peer(key);
        match (control, peer) {
            // These are taken before, or mean nothing now.
            (
                Control::Claim(_) | Control::ClaimPart(_) | Control::Proof(_) | Control::Refused(_),
                _,
            ) => {}
            (Control::Hello(hello), None) => self.welcome(graph_cache, key, hello, fds),
            // Nothing is parked of another host.
            (Control::Parking(_), _) if graph_cache.channels.is_remote(key) => {}
            (Control::Parking(word), None) => self.take_first(graph_cache, key, word),
            (Control::Parking(word), Some(peer)) => self.take_word(graph_cache, key, peer, word),
            (_, None) | (Control::Hello(_), Some(_)) => {
                let reason = "it did not say hello, or twice".to_owned();
                let path = self.place_of(graph_cache, key);
                graph_cache.note_unreachable_peer(UnreachablePeer { path, reason });
                self.drop_channel(graph_cache, key);
            }
            (Control::Met(answers), Some(peer)) => self.confirm(graph_cache, key, peer, &answers),
            (Control::Settled, Some(_)) => {
                if let Some(channel) = graph_cache.channels.get(key) {
                    channel.is_settled = true;
                }
            }
            (Control::Node(record), Some(peer)) => graph_cache.know_node(session, peer, record),
            (Control::NodeGone(gid), Some(peer)) => graph_cache.node_gone(session, peer, Gid(gid)),
            (Control::Endpoint(record), Some(peer)) => {
                graph_cache.know_endpoint(session, peer, record)
            }
            (Control::EndpointGone(gid), Some(peer)) => {
                if graph_cache.lives_in(Gid(gid), peer) {
                    graph_cache.forget_endpoint(session, Gid(gid));
                }
                graph_cache.forget_ignored(Gid(gid), peer);
            }
            (Control::Offer { flow, epoch, transport, .. }, Some(peer)) => {
                graph_cache.offered(session, peer, flow, epoch, &transport);
            }
            (Control::Answer { flow, epoch, address }, Some(peer)) => {
                graph_cache.answered(session, peer, flow, epoch, address);
            }
            // Whoever speaks of an endpoint that is not its own is not listened to.
            (
                word @ (Control::Cut { flow, .. }
                | Control::Withdrawn { flow, .. }
                | Control::Closed { flow, .. }),
                Some(peer),
            ) => {
                if graph_cache.lives_in(Gid(flow.publisher), peer) {
                    graph_cache.hear(session, word);
                }
            }
            (
                word @ (Control::Done { flow, .. }
                | Control::Shown { flow, .. }
                | Control::Displaced { flow, .. }
                | Control::Filter { flow, .. }),
                Some(peer),
            ) => {
                if graph_cache.lives_in(Gid(flow.subscription), peer) {
                    graph_cache.hear(session, word);
                }
            }
            (Control::OfTransport { transport, bytes }, Some(peer)) => {
                if let Some(transport) = session.transport(&transport) {
                    transport.receive(peer, &bytes);
                }
            }
            (Control::Alive(gid), Some(peer)) => {
                if graph_cache.lives_in(Gid(gid), peer) {
                    graph_cache.alive(Gid(gid));
                }
            }
            (Control::AskRoutes { question }, Some(peer)) => {
                for half in graph_cache.halves(session) {
                    let half = Some(half);
                    graph_cache.channels.send(peer, &Control::Route { question, half });
                }
                graph_cache.channels.send(peer, &Control::Route { question, half: None });
            }
            (Control::AskEngines { question }, Some(peer)) => {
                let engines = Box::new(graph_cache.engines(session));
                graph_cache.channels.send(peer, &Control::Engines { question, engines });
            }
            (Control::Engines { question, engines }, Some(peer)) => {
                if let Some(answers) = graph_cache.answers.get_mut(&question) {
                    answers.engines.push(*engines);
                    answers.waiting.retain(|it| *it != peer);
                }
            }
            (Control::Pin { question, topic, transport, stamp }, Some(peer)) => {
                let may = graph_cache.channels.may_set_routes(key).and_then(|()| {
                    graph_cache.denial_of_pin(session, peer, &topic).map_or(Ok(()), Err)
                });
                let outcome = match may {
                    Ok(()) => graph_cache.pin(session, &topic, transport.as_deref(), stamp),
                    Err(reason) => Err(reason),
                };
                if question != 0 {
                    graph_cache.channels.send(peer, &Control::Pinned { question, outcome });
                }
            }
            (Control::Watch(word), Some(peer)) => {
                // What another host watches is of no use here.
                if !graph_cache.channels.is_remote(key) {
                    graph_cache.watch_words.push((peer, word));
                }
            }
            (Control::Pinned { question, outcome }, Some(peer)) => {
                if let Some(answers) = graph_cache.answers.get_mut(&question) {
                    answers.settings.push((peer, outcome));
                    answers.waiting.retain(|it| *it != peer);
                }
            }
            (Control::Route { question, half }, Some(peer)) => {
                if let Some(answers) = graph_cache.answers.get_mut(&question) {
                    match half {
                        Some(half) => answers.halves.push(half),
                        None => answers.waiting.retain(|it| *it != peer),
                    }
                }
            }
        }
    }

    /// A process has introduced itself.
    fn welcome(&self, graph_cache: &mut GraphCache, key: u64, hello: Hello, fds: Vec<OwnedFd>) {
        let session = &self.session;
        let peer = PeerId(hello.token);
        let Some(channel) = graph_cache.channels.get(key) else { return };
        let is_ours = channel.target.is_some();
        let is_wrong = channel.target.is_some_and(|target| target != peer)
            || peer == session.id
            // Whoever has proved to be one process is not another.
            || (session.security().is_some() && channel.authentication.token() != Some(peer));
        if is_wrong {
            return self.drop_channel(graph_cache, key);
        }
        let is_remote = graph_cache.channels.is_remote(key);
        if graph_cache.channels.peers().any(|it| it == peer) {
            let far = graph_cache.channels.remote_to(peer).filter(|_| !is_remote);
            let has_lost_it = !is_remote
                && graph_cache.channels.is_parked(peer)
                && graph_cache.channels.is_from(peer, key);
            let parked = graph_cache.channels.key_of(peer).filter(|_| has_lost_it);
            // It is nearer than was known, or has lost the channel that is parked here.
            let old = far.or(parked);
            let Some(old) = old else { return self.drop_channel(graph_cache, key) };
            self.drop_channel(graph_cache, old);
        }
        if !is_ours && let Some(ours) = graph_cache.channels.ours_to(peer) {
            // Both connected at once. Both keep the connection that the lower number made, unless it is not proved by now: what
            // stands at its path may be somebody else.
            let is_settled = session.security().is_none()
                || graph_cache
                    .channels
                    .get(ours)
                    .is_some_and(|it| it.authentication.token().is_some());
            let keeps_ours = session.id < peer && is_settled;
            let loser = if keeps_ours { key } else { ours };
            graph_cache.channels.remove(loser);
            if loser == key {
                return;
            }
        }
        let mut fds = fds.into_iter();
        // Of one on another host its wire says whether it lives.
        if !is_remote {
            graph_cache.channels.remember_life(key, peer, hello.life.into());
        }
        let handshakes = hello.handshakes.clone();
        self.compare_rules(&hello);
        graph_cache.channels.name(key, hello);
        if !is_ours {
            say_hello(session, graph_cache, key, peer);
        }
        let mut answers = Vec::new();
        for handshake in handshakes {
            let own: Vec<OwnedFd> = fds.by_ref().take(handshake.fds as usize).collect();
            let transport = session.transport(&handshake.transport);
            let answer = match transport {
                Some(it) => it
                    .meet(peer, Handshake { bytes: handshake.bytes, fds: own })
                    .map_err(|error| error.to_string()),
                None => Err("not in this build".to_owned()),
            };
            answers.push((handshake.transport, answer));
        }
        graph_cache.channels.send(peer, &Control::Met(answers));
        let is_outside = graph_cache.channels.is_outside(peer);
        for control in graph_cache.introduction(session, is_outside) {
            graph_cache.channels.send(peer, &control);
        }
        if !is_remote && self.watching.is_watcher() {
            graph_cache.channels.send(peer, &Control::Watch(WatchWord::Watcher));
        }
    }

    /// A process has answered this one's handshakes.
    fn confirm(
        &self,
        graph_cache: &mut GraphCache,
        key: u64,
        peer: PeerId,
        answers: &[(String, Result<Vec<u8>, String>)],
    ) {
        let mut reach = Vec::new();
        for (name, answer) in answers {
            let Some(transport) = self.session.transport(name) else { continue };
            let obstacle = match answer {
                Ok(answer) => transport.confirm(peer, answer).err().map(|it| it.to_string()),
                Err(reason) => Some(reason.clone()),
            };
            reach.push((TransportId::new(name), obstacle));
        }
        graph_cache.channels.note_reach(key, reach);
        if !graph_cache.channels.is_remote(key) {
            graph_cache.treat_on_wires(&self.session, peer, Treatment::PassOver);
        }
        graph_cache.channels.hurry();
        let path = self.place_of(graph_cache, key);
        graph_cache.forget_unreachable_peer(&path);
        graph_cache.match_peer(&self.session, peer);
    }

    /// Forgets what lives in the other process, which may live on. What it holds stays its own.
    fn drop_channel(&self, graph_cache: &mut GraphCache, key: u64) {
        let target = graph_cache.channels.get(key).and_then(|channel| channel.target);
        let is_remote = graph_cache.channels.is_remote(key);
        let adjacent = graph_cache.channels.adjacent_lost(key);
        if let Some(peer) = graph_cache.channels.remove(key) {
            if !is_remote && !self.session.is_stopping() {
                // With whom it had parked its channels, nobody else sees it go.
                adjacent.into_iter().for_each(|it| graph_cache.channels.broadcast_gone(it));
                graph_cache.channels.check_beside(peer);
                graph_cache.channels.hold_adjacent();
            }
            if is_remote {
                // What it held was the engine's, which takes it back by itself.
                self.session.transports().iter().for_each(|transport| transport.part(peer));
            } else {
                self.part(graph_cache, peer);
                graph_cache.treat_on_wires(&self.session, peer, Treatment::Wait);
                if !self.has_listening_socket(peer) {
                    // It has left, and its participant goes too.
                    graph_cache.foreign.forget_process(peer);
                }
            }
            graph_cache.forget_peer(&self.session, peer);
        } else if let Some(target) = target
            && !graph_cache.channels.is_known(target)
        {
            // It was greeted and never answered.
            self.session.transports().iter().for_each(|transport| transport.part(target));
        }
    }

    /// Whether this peer can be tried.
    fn has_listening_socket(&self, peer: PeerId) -> bool {
        socket_of(&self.listening_socket.folder, peer).exists()
    }

    /// Looks again whether those have ended whose channels are lost.
    fn part_again(&mut self) {
        let mut graph_cache = self.session.graph_cache();
        for peer in graph_cache.channels.parted() {
            self.part(&mut graph_cache, peer);
        }
        self.parting.tried();
        if graph_cache.channels.wanted_parting() {
            self.parting.later(clock::monotonic_ns());
        }
    }

    /// Takes back what a process held, if it is dead.
    fn part(&self, graph_cache: &mut GraphCache, peer: PeerId) {
        if graph_cache.channels.has_ended(peer) {
            self.session.transports().iter().for_each(|transport| transport.part(peer));
        }
    }
}

/// Connections that have not said hello. Beyond it nobody is let in until one of them does or goes.
const NAMELESS_MAX: usize = 1024;

/// Messages of one connection that are read before others are looked at.
const READ_BATCH: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_that_never_settles_is_looked_at() {
        let ms = |ms: u64| ms * 1_000_000;
        let mut settling = Settling::default();
        settling.note(ms(1000));
        settling.note(ms(2000));
        assert!(!settling.is_over(ms(3499)), "it waits for the last change");
        assert!(settling.is_over(ms(3500)));
        assert!(settling.due_ns.is_none() && !settling.is_over(ms(9000)), "once");
        let first = (20_000..40_000).step_by(1000).find(|now| {
            settling.note(ms(*now));
            settling.is_over(ms(*now))
        });
        assert_eq!(first, Some(30_000));
        settling.note(ms(50_000));
        assert_eq!(settling.due_ns, Some(ms(51_500)), "counted from the first of the next ones");
    }
}

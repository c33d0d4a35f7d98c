//! The control channels: how processes find each other and what they say.
//!
//! Each participant listens at a socket in the run-time folder of its domain. A newcomer connects
//! to everyone it finds there; two newcomers that connect to each other at once keep one of the two
//! connections. One thread for each participant reads what comes; what is to be said is sent by
//! whoever says it. The hang-up of a connection is the news that somebody left; the end of its
//! sign of life is that of a death.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tsuji_core::TransportId;
use tsuji_platform::clock;
use tsuji_platform::life::LifeSeen;
use tsuji_platform::poll::Ready;
use tsuji_platform::process;
use tsuji_platform::socket::{Connection, Listener, MESSAGE_BYTES_MAX};
use tsuji_platform::watch::{FileWatch, FolderEvent, FolderWatch};
use tsuji_transport::{Gid, Greeting, PeerId, Transport};

use crate::directory::Directory;
use crate::graph::Stranger;
use crate::host::{Host, unexpected};
use crate::pacing::{Backoff, after};
use crate::policy_file::PolicyFile;
use crate::{Error, ErrorKind, Result};
use far::{FarFrame, Heard};
use link::{Line, Wanted};
use listening::{Listening, Standing};
use protocol::{Control, FrameError, GreetingRecord, Hello, decode, encode};

pub(crate) mod far;
pub(crate) mod link;
pub(crate) mod listening;
mod outbox;
pub(crate) mod protocol;

/// Where others knock.
pub(crate) struct Door {
    folder: PathBuf,
    path: PathBuf,
    listener: Listener,
    watch: Option<FolderWatch>,
}

impl Door {
    /// Opens the door of participant `id` in `folder`, which is made if it is not there.
    pub(crate) fn open(folder: &Path, id: PeerId) -> Result<Self> {
        prepare_folder(folder)?;
        let path = folder.join(format!("{id}.sock"));
        let too_long = path.as_os_str().len().saturating_sub(SOCKET_PATH_MAX);
        if 0 < too_long {
            return Err(Error::invalid(format!(
                "run-time folder {}: its path is {too_long} bytes too long for a socket in it; \
                 allowed: {SOCKET_PATH_MAX} with the socket's name; set TSUJI_RUNTIME_DIR to \
                 another",
                folder.display()
            )));
        }
        // The folder's group, if it is one's, may connect.
        let mode = if is_for_group(folder) { 0o770 } else { 0o700 };
        let listener = Listener::bind(&path, mode).map_err(|error| {
            let context = format!("cannot open a socket in {}", folder.display());
            unexpected(&context, error)
        })?;
        // Without the watch only a folder that somebody removes goes unnoticed.
        let watch = FolderWatch::new(folder)
            .inspect_err(|error| tracing::warn!(%error, "the run-time folder is not watched"))
            .ok();
        Ok(Self { folder: folder.to_owned(), path, listener, watch })
    }

    /// The sockets of the others.
    fn neighbours(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        let paths = entries.flatten().map(|entry| entry.path());
        paths
            .filter(|path| path.extension() == Some(OsStr::new("sock")) && *path != self.path)
            .collect()
    }

    /// Removes what processes left that were killed while they opened their doors.
    fn remove_half_open(&self) {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries
            .filter(|it| Path::new(&it.file_name()).extension() == Some(OsStr::new(HALF_OPEN)))
        {
            let age = entry.metadata().and_then(|it| it.modified()).map(|it| it.elapsed());
            if age.is_ok_and(|age| age.is_ok_and(|age| HALF_OPEN_AGE < age)) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// The kernel's limit, less the zero at the end.
const SOCKET_PATH_MAX: usize = 107;
/// How [`Listener::bind`] calls a socket that nobody can connect to yet.
const HALF_OPEN: &str = "new";
/// No door takes so long to open.
const HALF_OPEN_AGE: Duration = Duration::from_secs(60);

/// The folder of those who name none. Not below `XDG_RUNTIME_DIR`: it is set in some sessions of a
/// user and not in others, which would then not find each other.
pub(crate) fn default_folder() -> PathBuf {
    PathBuf::from(format!("/tmp/tsuji-{}", process::user_id()))
}

/// Whoever can write to a group's folder is a member of it.
fn is_for_group(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|it| it.permissions().mode() & 0o070 == 0o070)
}

/// Makes the folder, for this user alone or for the group that the folder above it belongs to.
fn prepare_folder(folder: &Path) -> Result<()> {
    let failed = |error: io::Error| {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull => ErrorKind::Exhausted,
            _ => ErrorKind::Invalid,
        };
        Error::new(kind, format!("run-time folder {}", folder.display())).because(error)
    };
    let parent = folder.parent().unwrap_or(folder);
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(parent).map_err(failed)?;
    let metadata = std::fs::symlink_metadata(parent).map_err(failed)?;
    if metadata.is_symlink() {
        return Err(Error::invalid(format!(
            "run-time folder {}: a symbolic link, which others may point elsewhere; allowed: the \
             folder itself; set TSUJI_RUNTIME_DIR to it",
            parent.display()
        )));
    }
    let mode = metadata.permissions().mode() & 0o7777;
    // Anybody may have made the default one, to be trusted as its owner or as of its group.
    let is_for_group = mode & 0o070 == 0o070 && parent != default_folder();
    let is_ours = metadata.uid() == process::user_id() && (is_for_group || mode & 0o020 == 0);
    if !metadata.is_dir() || !(is_ours || is_for_group) || mode & 0o002 != 0 {
        return Err(Error::invalid(format!(
            "run-time folder {}: owner {}, mode {mode:o}; allowed: a folder of user {} that others \
             cannot write to, or one that its group can and TSUJI_RUNTIME_DIR names",
            parent.display(),
            metadata.uid(),
            process::user_id(),
        )));
    }
    if !folder.exists() {
        match std::fs::create_dir(folder) {
            Ok(()) => (),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
            Err(error) => return Err(failed(error)),
        }
        let mode = std::fs::Permissions::from_mode(mode);
        // Somebody else of the group may have made it first, and set it.
        let _ = std::fs::set_permissions(folder, mode);
    }
    Ok(())
}

/// Connects to everyone who is there, and starts the thread that listens.
pub(crate) fn start(host: Arc<Host>, door: Door) -> Result<JoinHandle<()>> {
    let setup = |error| unexpected("control channel", error);
    host.poll.add(&door.listener, LISTENER).map_err(setup)?;
    host.poll.add(&host.nudge, NUDGE).map_err(setup)?;
    if let Some(watch) = &door.watch {
        host.poll.add(watch, WATCH).map_err(setup)?;
    }
    let policy_watch = host.policy_file().and_then(PolicyFile::watch);
    // What was written before it was watched.
    let policy_due_ns = policy_watch.as_ref().map(|_| clock::monotonic_ns());
    if let Some(watch) = &policy_watch {
        host.poll.add(watch, POLICY).map_err(setup)?;
    }
    for (transport, key) in host.transports().iter().zip(MAIL_KEYS..) {
        if let Some(fd) = transport.mail_fd() {
            host.poll.add(fd, key).map_err(setup)?;
        }
    }
    host.directory().links.watch_with(Arc::clone(&host.poll));
    door.remove_half_open();
    for path in door.neighbours() {
        knock(&host, &path);
    }
    let listening = if host.speaks() { meet_outside(&host) } else { Vec::new() };
    let look = Look(Backoff::new(LOOK_FIRST, LOOK_LAST));
    let buffer = vec![0; MESSAGE_BYTES_MAX];
    let ends = Arc::clone(&host);
    let unheard = BTreeSet::new();
    let mut keeper = Keeper {
        host,
        door,
        look,
        buffer,
        unheard,
        listening,
        tidy_due_ns: None,
        policy_watch,
        policy_due_ns,
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
const NUDGE: u64 = 1;
const WATCH: u64 = 2;
const POLICY: u64 = 3;
/// Of the transports, in their order.
const MAIL_KEYS: u64 = 4;

/// Joins the wires of the transports; or begins to listen there, where memory is preferred.
fn meet_outside(host: &Arc<Host>) -> Vec<Listening> {
    let mut all = Vec::new();
    for (at, transport) in host.transports().iter().enumerate() {
        if transport.wire().is_none() || host.is_second(&transport.id()) {
            continue;
        }
        if host.joins_at_once() {
            join(host, transport);
            continue;
        }
        let begun = Listening::begin(host, &**transport).and_then(|listening| {
            let added = host.poll.add(&listening.socket, listening_keys(host) + at as u64);
            added.map(|()| listening).map_err(|error| error.to_string())
        });
        let standing = match begun {
            Ok(listening) => {
                all.push(listening);
                Standing::Listens
            }
            Err(reason) => {
                tracing::info!(transport = %transport.id(), reason, "not only listened to");
                join(host, transport);
                Standing::AtOnce(reason)
            }
        };
        host.directory().standings.insert(transport.id(), standing);
    }
    all
}

/// Why a wire cannot, or can no longer, only be listened to.
fn reason_to_join(host: &Host, transport: usize) -> Option<String> {
    host.transports()[transport].wire()?.announcements().err()
}

/// Of the sockets that stand in for transports, in the order of these.
fn listening_keys(host: &Host) -> u64 {
    MAIL_KEYS + host.transports().len() as u64
}

/// Joins the wire of a transport, if it has one, on a thread of its own: the names of hosts may take
/// long to resolve. Answers whether that has begun.
fn join(host: &Arc<Host>, transport: &Arc<dyn Transport>) -> bool {
    if transport.wire().is_none() {
        return false;
    }
    let (host, transport) = (Arc::clone(host), Arc::clone(transport));
    let is_second = host.is_second(&transport.id());
    let spawned = std::thread::Builder::new()
        .name("tsuji-join".to_owned())
        .stack_size(256 * 1024)
        .spawn(move || {
            let mut pause = JOIN_FIRST;
            while !host.is_stopping() {
                let Some(wire) = transport.wire() else { return };
                match wire.join() {
                    Ok(name) => {
                        host.directory().joined(&host, &*transport, name);
                        host.tell();
                        return;
                    }
                    Err(error) if is_second => {
                        if pause == JOIN_FIRST {
                            tracing::warn!(transport = %transport.id(), %error, "nodes on it are spoken to by the first engine alone");
                        }
                        host.directory().second_failed(&host);
                        host.tell();
                    }
                    Err(error) => {
                        tracing::warn!(transport = %transport.id(), %error, "plain ROS 2 nodes are not met");
                    }
                }
                // Ends with the participant.
                let _ = host.wait_for(pause, |_| None::<()>);
                pause = JOIN_LAST.min(2 * pause);
            }
        });
    if let Err(error) = &spawned {
        tracing::warn!(%error, "plain ROS 2 nodes are not met");
    }
    spawned.is_ok()
}

/// How soon what could not be joined is tried again.
const JOIN_FIRST: Duration = Duration::from_secs(1);
const JOIN_LAST: Duration = Duration::from_secs(60);

/// Connects to the socket at `path`, and says hello.
fn knock(host: &Arc<Host>, path: &Path) {
    let Some(peer) = peer_of(path) else { return };
    let mut directory = host.directory();
    if directory.links.is_linked(peer) {
        return;
    }
    let stranger = |reason: String| Stranger { path: path.display().to_string(), reason };
    match Connection::connect(path) {
        Ok(connection) => {
            if let Err(reason) = may_come_in(&connection, host.folder()) {
                directory.links.refuse(peer);
                return directory.note_stranger(stranger(reason));
            }
            match directory.links.add(connection, Some(peer)) {
                Ok(key) => say_hello(host, &mut directory, key, peer),
                Err(error) => {
                    directory.links.look_again();
                    directory.note_stranger(stranger(error.to_string()));
                }
            }
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            // Its owner died: the socket is all that is left of it.
            tracing::debug!(path = %path.display(), "removed the socket of a dead process");
            let _ = std::fs::remove_file(path);
            directory.outside.forget_process(peer);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => (),
        // So many knock there that some have to come again.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => directory.links.look_again(),
        Err(error) => {
            if error.kind() == io::ErrorKind::PermissionDenied {
                directory.links.refuse(peer);
            } else {
                directory.links.look_again();
            }
            directory.note_stranger(stranger(format!("cannot connect: {error}")));
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

fn say_hello(host: &Host, directory: &mut Directory, key: u64, peer: PeerId) {
    let mut greetings = Vec::new();
    let mut all_fds: Vec<OwnedFd> = Vec::new();
    let is_far = directory.links.is_far(key);
    if !is_far {
        match host.life().to_be_seen() {
            Ok(life) => all_fds.push(life),
            Err(error) => {
                // Out of descriptors: both try again later.
                tracing::warn!(%error, "no sign of life to show");
                return directory.links.give_up(key);
            }
        }
    }
    for transport in host.transports() {
        let scopes = transport.capability().scopes;
        if !(if is_far { scopes.remote } else { scopes.local }) {
            continue;
        }
        match transport.greeting(peer) {
            Ok(Greeting { bytes, fds }) => {
                let transport = transport.id().to_string();
                greetings.push(GreetingRecord { transport, bytes, fds: fds.len() as u32 });
                all_fds.extend(fds);
            }
            Err(error) if is_passing(error.kind()) => {
                tracing::warn!(transport = %transport.id(), %error, "no greeting now");
                return directory.links.give_up(key);
            }
            Err(error) => tracing::warn!(transport = %transport.id(), %error, "no greeting"),
        }
    }
    let hello = Hello {
        token: host.id.0,
        pid: host.info.pid,
        program: host.info.program.clone(),
        host: host.info.host.clone(),
        greetings,
    };
    let hello = Control::Hello(hello);
    directory.links.send_on(key, &hello, encode(&hello), all_fds);
}

/// The thread of one participant.
struct Keeper {
    host: Arc<Host>,
    door: Door,
    look: Look,
    buffer: Vec<u8>,
    /// The transports, by their places, on whose wires there is more to look at.
    unheard: BTreeSet<usize>,
    /// What stands in for the engines of transports.
    listening: Vec<Listening>,
    /// When transports may have something to end.
    tidy_due_ns: Option<u64>,
    policy_watch: Option<FileWatch>,
    /// When the policy file is read again.
    policy_due_ns: Option<u64>,
}

/// How long after its first change the policy file is read: editors take several steps.
const POLICY_SETTLES: Duration = Duration::from_millis(50);

/// When to look for neighbours without a link: soon after one was lost, more rarely while nobody is
/// met, and not at all while there are none.
struct Look(Backoff);

impl Look {
    fn note(&mut self, wanted: Wanted) {
        match wanted {
            // Whoever was met and is lost is looked for at once, whatever else is waited for.
            Wanted::Soon => {
                self.0.hurry();
                self.0.later();
            }
            Wanted::Later if self.0.due_ns().is_none() => self.0.later(),
            Wanted::Later | Wanted::No => (),
        }
    }
}

const LOOK_FIRST: Duration = Duration::from_millis(100);
const LOOK_LAST: Duration = Duration::from_secs(30);

impl Keeper {
    fn run(&mut self) {
        let mut events = Vec::new();
        while !self.host.is_stopping() {
            let mut directory = self.host.directory();
            let broken = directory.links.broken();
            let is_far = broken.iter().any(|key| directory.links.is_far(*key));
            for key in broken {
                self.drop_link(&mut directory, key);
            }
            if is_far {
                // Whoever has been found again meanwhile was passed over for the sake of the old link.
                directory.meet_far(&self.host);
            }
            if directory.links.hurries() {
                self.look.0.hurry();
            }
            self.look.note(directory.links.wanted_look());
            if directory.wants_second()
                && let Some(engines) = self.host.wire_engines()
                && let Some(second) = self.host.transport(engines.second.as_str())
                && !join(&self.host, second)
            {
                directory.second_failed(&self.host);
            }
            let discarded = directory.mend(&self.host);
            directory.tell_nodes(&self.host);
            let due_ns = directory.due_ns();
            drop(directory);
            drop(discarded);
            self.host.tell();
            let knock_ns = self.listening.iter().filter_map(Listening::due_ns).min();
            let dues =
                [due_ns, self.look.0.due_ns(), knock_ns, self.policy_due_ns, self.tidy_due_ns];
            let first_ns = dues.into_iter().flatten().min();
            let first_ns = if self.unheard.is_empty() { first_ns } else { Some(0) };
            let timeout =
                first_ns.map(|due| Duration::from_nanos(due.saturating_sub(clock::monotonic_ns())));
            if let Err(error) = self.host.poll.wait(timeout, &mut events) {
                tracing::error!(%error, "the control channel ends");
                break;
            }
            for event in &events {
                self.handle(*event);
            }
            for at in std::mem::take(&mut self.unheard) {
                self.carry_mail(at);
            }
            self.tidy_transports();
            let mut directory = self.host.directory();
            if due_ns.is_some() {
                directory.links.on_time(clock::monotonic_ns());
                directory.on_time(&self.host, clock::monotonic_ns());
            }
            drop(directory);
            if self.look.0.is_due(clock::monotonic_ns()) {
                self.look_for_neighbours();
            }
            if self.policy_due_ns.is_some_and(|due| due <= clock::monotonic_ns()) {
                let is_in_doubt = self.host.read_policy_again();
                let again = || after(clock::monotonic_ns(), POLICY_SETTLES);
                self.policy_due_ns = is_in_doubt.then(again);
            }
            self.listening.iter_mut().for_each(|it| it.on_time(clock::monotonic_ns()));
        }
        let mut directory = self.host.directory();
        for key in directory.links.keys() {
            if let Some(line) = directory.links.get(key).and_then(|link| link.far_line()) {
                line.end();
            }
            self.drop_link(&mut directory, key);
        }
        directory.leave_wires(&self.host);
        drop(directory);
        let _ = std::fs::remove_file(&self.door.path);
    }

    /// Lets transports end what nothing has needed for a while. Nobody waits for the directory meanwhile.
    fn tidy_transports(&mut self) {
        let now_ns = clock::monotonic_ns();
        let dues = self.host.transports().iter().filter_map(|it| it.tidy(now_ns));
        self.tidy_due_ns = dues.min();
    }

    fn handle(&mut self, event: Ready) {
        match event.key {
            LISTENER => self.accept(),
            NUDGE => self.host.nudge.take(),
            WATCH => self.look_at_folder(),
            POLICY => {
                let has_changed = self.policy_watch.as_mut().is_some_and(FileWatch::has_changed);
                if has_changed && self.policy_due_ns.is_none() {
                    self.policy_due_ns = Some(after(clock::monotonic_ns(), POLICY_SETTLES));
                }
            }
            key if key < MAIL_KEYS + self.host.transports().len() as u64 => {
                self.carry_mail((key - MAIL_KEYS) as usize);
            }
            key if key < listening_keys(&self.host) + self.host.transports().len() as u64 => {
                let at = (key - listening_keys(&self.host)) as usize;
                let host = Arc::clone(&self.host);
                self.end_listening(at, |listening| {
                    let heard = listening.heard()?;
                    // It may have been the engine of this very process.
                    Some(reason_to_join(&host, at).unwrap_or(heard))
                });
            }
            key if link::is_life(key) => {
                let mut directory = self.host.directory();
                if let Some(peer) = directory.links.whose_life(key) {
                    self.part(&mut directory, peer);
                }
            }
            key => {
                if event.writable {
                    self.host.directory().links.flush(key);
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
        let transport = &self.host.transports()[transport];
        let id = transport.id();
        let Some(at) = self.listening.iter().position(|it| it.transport == id) else { return };
        let Some(reason) = reason(&self.listening[at]) else { return };
        tracing::debug!(transport = %id, reason, "no longer only listened to");
        let listening = self.listening.swap_remove(at);
        let _ = self.host.poll.remove(&listening.socket);
        self.host.directory().standings.insert(id, Standing::Joined(reason));
        join(&self.host, transport);
    }

    /// Carries what a transport says, and goes on with what waited for it.
    fn carry_mail(&mut self, at: usize) {
        let host = Arc::clone(&self.host);
        // A flow may have started what was only listened to.
        self.end_listening(at, |_| reason_to_join(&host, at));
        let transport = &host.transports()[at];
        let mut directory = host.directory();
        for mail in transport.mail() {
            let (transport, bytes) = (transport.id().to_string(), mail.bytes);
            directory.links.send(mail.to, &Control::Mail { transport, bytes });
        }
        let mut is_more = directory.look_at_wire(&host, &**transport);
        is_more |= self.hear_far(&mut directory, &transport.id());
        if is_more {
            self.unheard.insert(at);
        }
        directory.go_on(&self.host, &transport.id());
    }

    /// Reads what processes of other hosts say. Answers whether they say more.
    fn hear_far(&self, directory: &mut Directory, transport: &TransportId) -> bool {
        // One with very much to say must not keep the others waiting.
        for _ in 0..READ_BATCH {
            let Some((writer, sample)) = directory.outside.far_said(transport) else {
                return false;
            };
            let Some(frame) = FarFrame::from_bytes(&sample) else {
                tracing::debug!("what came on a far control channel is no frame; dropped");
                continue;
            };
            // Whoever is not found yet knocks again.
            let key = directory.links.far_to(frame.from);
            let Some(key) = key.filter(|_| directory.outside.speaks_for(writer, frame.from)) else {
                continue;
            };
            let Some(Line::Far(line)) = directory.links.get(key).map(|link| &mut link.line) else {
                continue;
            };
            match line.hear(&frame) {
                Heard::Nothing => {}
                Heard::Up => {
                    say_hello(&self.host, directory, key, frame.from);
                    directory.links.flush(key);
                    if !frame.body.is_empty() {
                        self.read_frame(directory, key, frame.body, Vec::new());
                    }
                }
                Heard::Said => self.read_frame(directory, key, frame.body, Vec::new()),
                Heard::Ended => {
                    directory.outside.forget_process(frame.from);
                    self.drop_link(directory, key);
                }
                Heard::Anew => {
                    self.drop_link(directory, key);
                    directory.meet_far(&self.host);
                }
            }
        }
        true
    }

    /// Knocks where nobody has answered yet, or not since the link was lost. The sockets of the dead
    /// go by the way.
    fn look_for_neighbours(&mut self) {
        let neighbours = self.door.neighbours();
        neighbours.iter().for_each(|path| knock(&self.host, path));
        let mut directory = self.host.directory();
        // What was noted here will be looked at when the next pause is over.
        directory.links.wanted_look();
        directory.links.retain_refused(|peer| {
            neighbours.iter().any(|path| peer_of(path).as_ref() == Some(peer))
        });
        let is_missing = |path: &PathBuf| {
            path.exists() && peer_of(path).is_some_and(|peer| !directory.links.is_linked(peer))
        };
        self.look.0.tried();
        if neighbours.iter().any(is_missing) {
            self.look.0.later();
        }
    }

    fn accept(&mut self) {
        loop {
            match self.door.listener.accept() {
                Ok(Some(connection)) => self.let_in(connection),
                Ok(None) => return,
                Err(error) => {
                    // Out of descriptors, most likely: who knocked is told by the hang-up.
                    tracing::warn!(%error, "a process could not be let in");
                    return;
                }
            }
        }
    }

    fn let_in(&mut self, connection: Connection) {
        let mut directory = self.host.directory();
        let stranger =
            |reason: String| Stranger { path: self.door.folder.display().to_string(), reason };
        if NAMELESS_MAX <= directory.links.nameless() {
            directory.note_stranger(stranger(format!(
                "more than {NAMELESS_MAX} connections that do not say who they are"
            )));
            return;
        }
        let added = may_come_in(&connection, &self.door.folder).and_then(|()| {
            directory.links.add(connection, None).map_err(|error| error.to_string())
        });
        if let Err(reason) = added {
            directory.note_stranger(stranger(reason));
        }
    }

    /// Opens the door again if somebody removed it.
    fn look_at_folder(&mut self) {
        let Some(watch) = &self.door.watch else { return };
        let own = self.door.path.file_name();
        let is_gone = watch.drain().iter().any(|event| match event {
            FolderEvent::Vanished(name) => Some(name.as_os_str()) == own,
            FolderEvent::Unsure => !self.door.path.exists(),
            FolderEvent::Appeared(_) => false,
        });
        if !is_gone || self.host.is_stopping() {
            return;
        }
        let _ = self.host.poll.remove(watch);
        let _ = self.host.poll.remove(&self.door.listener);
        match Door::open(&self.door.folder, self.host.id) {
            Ok(door) => {
                tracing::warn!(path = %door.path.display(), "the socket was removed; made again");
                self.door = door;
                let mut added = self.host.poll.add(&self.door.listener, LISTENER);
                if let (Ok(()), Some(watch)) = (&added, &self.door.watch) {
                    added = self.host.poll.add(watch, WATCH);
                }
                if let Err(error) = added {
                    tracing::error!(%error, "new processes will not find this one");
                }
                self.look_for_neighbours();
            }
            Err(error) => tracing::error!(%error, "new processes will not find this one"),
        }
    }

    fn read(&mut self, key: u64) {
        let host = Arc::clone(&self.host);
        // A neighbour with very much to say must not keep the others waiting.
        for _ in 0..READ_BATCH {
            let mut directory = host.directory();
            let Some(link) = directory.links.get(key) else { return };
            let Line::Near(connection) = &link.line else { return };
            let received = match connection.receive(&mut self.buffer) {
                Ok(Some(received)) => received,
                Ok(None) => return self.drop_link(&mut directory, key),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    tracing::warn!(%error, "a control channel failed");
                    return self.drop_link(&mut directory, key);
                }
            };
            let frame = &self.buffer[..received.bytes];
            self.read_frame(&mut directory, key, frame, received.fds);
        }
    }

    /// Does what the other end says.
    fn read_frame(&self, directory: &mut Directory, key: u64, frame: &[u8], fds: Vec<OwnedFd>) {
        let error = match decode(frame) {
            Ok(control) => return self.obey(directory, key, control, fds),
            Err(error) => error,
        };
        let reason = match error {
            FrameError::Version(theirs) => format!(
                "it speaks version {theirs} of the control protocol, this is {}; treated as a \
                 plain peer",
                protocol::VERSION
            ),
            FrameError::Garbage => "what it says is not the control protocol".into(),
        };
        let path = self.place_of(directory, key);
        directory.note_stranger(Stranger { path, reason });
        match directory.links.get(key).and_then(|link| link.target) {
            Some(target) if directory.links.is_far(key) => directory.links.refuse_far(target),
            Some(target) => directory.links.refuse(target),
            // Whoever knocked learns from any frame of this version not to come again.
            None => {
                let frame = encode(&Control::Settled);
                directory.links.send_on(key, &Control::Settled, frame, Vec::new());
            }
        }
        self.drop_link(directory, key);
    }

    /// The socket of whoever is at the other end, as far as it is known.
    fn place_of(&self, directory: &mut Directory, key: u64) -> String {
        let target = directory.links.get(key).and_then(|link| link.target);
        let peer = directory.links.peer(key).or(target);
        let path = peer.map(|peer| self.door.folder.join(format!("{peer}.sock")));
        path.as_deref().unwrap_or(&self.door.folder).display().to_string()
    }

    fn obey(&self, directory: &mut Directory, key: u64, control: Control, fds: Vec<OwnedFd>) {
        let host = &Arc::clone(&self.host);
        let peer = directory.links.peer(key);
        match (control, peer) {
            (Control::Hello(hello), None) => self.welcome(directory, key, hello, fds),
            (_, None) | (Control::Hello(_), Some(_)) => {
                let reason = "it did not say hello, or twice".to_owned();
                let path = self.place_of(directory, key);
                directory.note_stranger(Stranger { path, reason });
                self.drop_link(directory, key);
            }
            (Control::Met(answers), Some(peer)) => self.prove(directory, key, peer, &answers),
            (Control::Settled, Some(_)) => {
                if let Some(link) = directory.links.get(key) {
                    link.is_settled = true;
                }
            }
            (Control::Node(record), Some(peer)) => directory.know_node(peer, record),
            (Control::NodeGone(gid), Some(peer)) => directory.node_gone(peer, Gid(gid)),
            (Control::Endpoint(record), Some(peer)) => directory.know_endpoint(host, peer, record),
            (Control::EndpointGone(gid), Some(peer)) => {
                if directory.lives_in(Gid(gid), peer) {
                    directory.forget_endpoint(host, Gid(gid));
                }
            }
            (Control::Offer { flow, epoch, transport, .. }, Some(peer)) => {
                directory.offered(host, peer, flow, epoch, &transport);
            }
            (Control::Answer { flow, epoch, ticket }, Some(peer)) => {
                directory.answered(host, peer, flow, epoch, ticket);
            }
            // Whoever speaks of an endpoint that is not its own is not listened to.
            (
                word @ (Control::Cut { flow, .. }
                | Control::Withdrawn { flow, .. }
                | Control::Closed { flow, .. }),
                Some(peer),
            ) => {
                if directory.lives_in(Gid(flow.publisher), peer) {
                    directory.hear(host, word);
                }
            }
            (word @ (Control::Done { flow, .. } | Control::Shown { flow, .. }), Some(peer)) => {
                if directory.lives_in(Gid(flow.subscription), peer) {
                    directory.hear(host, word);
                }
            }
            (Control::Mail { transport, bytes }, Some(peer)) => {
                if let Some(transport) = host.transport(&transport) {
                    transport.receive(peer, &bytes);
                }
            }
            (Control::Alive(gid), Some(peer)) => {
                if directory.lives_in(Gid(gid), peer) {
                    directory.alive(Gid(gid));
                }
            }
            (Control::AskRoutes { question }, Some(peer)) => {
                for half in directory.halves(host) {
                    let half = Some(half);
                    directory.links.send(peer, &Control::Route { question, half });
                }
                directory.links.send(peer, &Control::Route { question, half: None });
            }
            (Control::AskEngines { question }, Some(peer)) => {
                let engines = Box::new(directory.engines(host));
                directory.links.send(peer, &Control::Engines { question, engines });
            }
            (Control::Engines { question, engines }, Some(peer)) => {
                if let Some(answers) = directory.answers.get_mut(&question) {
                    answers.engines.push(*engines);
                    answers.waiting.retain(|it| *it != peer);
                }
            }
            (Control::Pin { question, topic, transport, stamp }, Some(peer)) => {
                let outcome = match directory.links.may_set_routes(key) {
                    Ok(()) => directory.pin(host, &topic, transport.as_deref(), stamp),
                    Err(reason) => Err(reason),
                };
                if question != 0 {
                    directory.links.send(peer, &Control::Pinned { question, outcome });
                }
            }
            (Control::Pinned { question, outcome }, Some(peer)) => {
                if let Some(answers) = directory.answers.get_mut(&question) {
                    answers.settings.push((peer, outcome));
                    answers.waiting.retain(|it| *it != peer);
                }
            }
            (Control::Route { question, half }, Some(peer)) => {
                if let Some(answers) = directory.answers.get_mut(&question) {
                    match half {
                        Some(half) => answers.halves.push(half),
                        None => answers.waiting.retain(|it| *it != peer),
                    }
                }
            }
        }
    }

    /// A process has introduced itself.
    fn welcome(&self, directory: &mut Directory, key: u64, hello: Hello, fds: Vec<OwnedFd>) {
        let host = &self.host;
        let peer = PeerId(hello.token);
        let Some(link) = directory.links.get(key) else { return };
        let is_ours = link.target.is_some();
        let is_wrong = link.target.is_some_and(|target| target != peer) || peer == host.id;
        if is_wrong {
            return self.drop_link(directory, key);
        }
        let is_far = directory.links.is_far(key);
        if directory.links.peers().any(|it| it == peer) {
            let far = directory.links.far_to(peer).filter(|_| !is_far);
            let Some(far) = far else { return self.drop_link(directory, key) };
            // It is nearer than was known.
            self.drop_link(directory, far);
        }
        if !is_ours && let Some(ours) = directory.links.ours_to(peer) {
            // Both connected at once. Both keep the connection that the lower number made.
            let loser = if host.id < peer { key } else { ours };
            directory.links.remove(loser);
            if loser == key {
                return;
            }
        }
        let mut fds = fds.into_iter();
        // Of one on another host its wire says whether it lives.
        let life = if is_far { None } else { fds.next().map(LifeSeen::from_fd) };
        let is_watched = life.map(|life| directory.links.watch_life(peer, life));
        if !is_far && !matches!(is_watched, Some(Ok(()))) {
            let path = self.place_of(directory, key);
            let reason = "its hello brings no sign of life".to_owned();
            directory.note_stranger(Stranger { path, reason });
            return self.drop_link(directory, key);
        }
        let greetings = hello.greetings.clone();
        directory.links.name(key, hello);
        if !is_ours {
            say_hello(host, directory, key, peer);
        }
        let mut answers = Vec::new();
        for greeting in greetings {
            let own: Vec<OwnedFd> = fds.by_ref().take(greeting.fds as usize).collect();
            let transport = host.transport(&greeting.transport);
            let answer = match transport {
                Some(it) => it
                    .meet(peer, Greeting { bytes: greeting.bytes, fds: own })
                    .map_err(|error| error.to_string()),
                None => Err("not in this build".to_owned()),
            };
            answers.push((greeting.transport, answer));
        }
        directory.links.send(peer, &Control::Met(answers));
        for control in directory.introduction(host) {
            directory.links.send(peer, &control);
        }
    }

    /// A process has answered this one's greetings.
    fn prove(
        &self,
        directory: &mut Directory,
        key: u64,
        peer: PeerId,
        answers: &[(String, Result<Vec<u8>, String>)],
    ) {
        let mut proofs = Vec::new();
        for (name, answer) in answers {
            let Some(transport) = self.host.transport(name) else { continue };
            let obstacle = match answer {
                Ok(answer) => transport.confirm(peer, answer).err().map(|it| it.to_string()),
                Err(reason) => Some(reason.clone()),
            };
            proofs.push((TransportId::new(name), obstacle));
        }
        directory.links.prove(key, proofs);
        directory.links.hurry();
        let path = self.place_of(directory, key);
        directory.forget_stranger(&path);
        directory.match_peer(&self.host, peer);
    }

    /// Forgets what lives in the other process, which may live on. What it holds stays its own.
    fn drop_link(&self, directory: &mut Directory, key: u64) {
        let target = directory.links.get(key).and_then(|link| link.target);
        let is_far = directory.links.is_far(key);
        if let Some(peer) = directory.links.remove(key) {
            if is_far {
                // What it held was the engine's, which takes it back by itself.
                self.host.transports().iter().for_each(|transport| transport.part(peer));
            } else {
                self.part(directory, peer);
                if !self.has_door(peer) {
                    // It has left, and its participant goes too.
                    directory.outside.forget_process(peer);
                }
            }
            directory.forget_peer(&self.host, peer);
        } else if let Some(target) = target
            && !directory.links.is_known(target)
        {
            // It was greeted and never answered.
            self.host.transports().iter().for_each(|transport| transport.part(target));
        }
    }

    /// Whether this peer can be knocked at.
    fn has_door(&self, peer: PeerId) -> bool {
        self.door.folder.join(format!("{peer}.sock")).exists()
    }

    /// Takes back what a process held, if it is dead.
    fn part(&self, directory: &mut Directory, peer: PeerId) {
        if directory.links.has_ended(peer) {
            self.host.transports().iter().for_each(|transport| transport.part(peer));
        }
    }
}

/// Connections that have not said hello. Beyond it nobody is let in until one of them does or goes.
const NAMELESS_MAX: usize = 1024;

/// Messages of one connection that are read before others are looked at.
const READ_BATCH: usize = 256;

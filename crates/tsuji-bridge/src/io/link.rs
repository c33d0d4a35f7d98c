//! One connection, from its first byte to its last.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tungstenite::protocol::frame::coding::CloseCode;

use super::http::{self, Answer, Reading, Rules};
use super::outgoing::{Form, Outgoing};
use super::stream::Stream;
use super::websocket::{Broken, Came, Message, WebSocket, no_text};
use crate::connected_client::{Dialect, Gone};
use crate::deflate::NotInflated;
use crate::desk::Desk;
use crate::memory::{Held, Memory};
use crate::metrics::{self, Format, Slot};
use crate::plain::Plain;
use crate::session::{Arrived, Session, Verdict};
use crate::settings::Protocol;
use tsuji_rosbridge::access::UserKey;
use tsuji_rosbridge::{Piece, StreamSplitter};

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    place: usize,
    stream: Stream,
    phase: Phase,
    outgoing: Outgoing,
    /// What of that waits without a session, as far as it was told to the memory of all.
    response: Response,
    /// What was read and not looked at, since a message before it has to wait.
    left: Vec<u8>,
    session: Option<Session>,
    may_read: bool,
    may_write: bool,
    /// It waits for its turn.
    is_hot: bool,
    /// Nothing is read before.
    paused_until: Option<Instant>,
    /// It is over when all is written and the other side has closed too, or then.
    ends_at: Option<Instant>,
    /// All that was to be written has been taken by the system.
    is_written: bool,
    /// Nothing more will be written.
    is_finished: bool,
    /// `ends_at` has passed.
    is_late: bool,
    began: Instant,
    heard: Instant,
    pinged: Option<Instant>,
}

/// What waits of a response, in bytes.
#[derive(Debug)]
struct Response {
    memory: Arc<Memory>,
    held: Held,
    bytes: usize,
}

impl Response {
    fn new(memory: &Arc<Memory>) -> Self {
        Self { memory: Arc::clone(memory), held: Held::default(), bytes: 0 }
    }

    fn set(&mut self, bytes: usize) {
        self.memory.changed(&self.held, self.bytes, bytes);
        self.bytes = bytes;
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[derive(Debug)]
enum Phase {
    /// The request that a WebSocket begins with has not come whole.
    Request(Reading),
    WebSocket(Box<WebSocket>),
    Tcp(Box<StreamSplitter>),
    /// Metrics were asked for, and are being written.
    Metrics {
        slot: Arc<Slot>,
        since: Instant,
        format: Format,
        has_body: bool,
    },
    /// Nothing is read any more.
    Ending,
}

/// What has to become of a connection after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// There may be more to read.
    Again,
    /// Until something happens.
    Rest,
    /// Nothing of it is left.
    Over,
}

impl Link {
    pub(super) fn new(
        place: usize,
        stream: Stream,
        peer: SocketAddr,
        protocol: Protocol,
        desk: &mut Desk,
    ) -> Self {
        let now = desk.now();
        let (phase, session) = match protocol {
            Protocol::WebSocket | Protocol::Udp => (Phase::Request(Reading::default()), None),
            Protocol::Tcp => {
                let session = desk.session(place, peer, protocol, Dialect::Rosbridge, None);
                (Phase::Tcp(Box::new(desk.splitter())), Some(session))
            }
        };
        Self {
            place,
            stream,
            phase,
            outgoing: Outgoing::default(),
            response: Response::new(desk.memory()),
            left: Vec::new(),
            session,
            may_read: true,
            may_write: true,
            is_hot: false,
            paused_until: None,
            ends_at: None,
            is_written: true,
            is_finished: false,
            is_late: false,
            began: now,
            heard: now,
            pinged: None,
        }
    }
}

impl Link {
    /// What is waited for.
    pub(super) fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// It can be read, or written, or both.
    pub(super) fn ready(&mut self, read: bool, write: bool) {
        self.may_read |= read;
        self.may_write |= write;
    }

    /// Whether it is to be put among those that wait for a turn: not if it is there already.
    pub(super) fn heat(&mut self) -> bool {
        !std::mem::replace(&mut self.is_hot, true)
    }

    /// Reads some of what has come, and writes what waits.
    pub(super) fn turn(&mut self, desk: &mut Desk) -> Turn {
        self.is_hot = false;
        if let Some(member) = self.session.as_ref().map(Session::member)
            && !matches!(self.phase, Phase::Ending)
            && let Some(gone) = member.gone()
        {
            self.end(code_of(gone), gone.why(), desk);
        }
        self.read(desk);
        self.answer_metrics(desk.now());
        if !self.write(desk) {
            return Turn::Over;
        }
        self.tell_held();
        if matches!(self.phase, Phase::Ending) {
            // What is not taken in time never will be.
            return if self.is_written || self.is_late { self.linger() } else { Turn::Rest };
        }
        if matches!(self.phase, Phase::Metrics { .. }) {
            return Turn::Rest;
        }
        // Nobody tells again of what has come and was not read, since too much waited to be written.
        let is_more = (self.may_read || !self.left.is_empty())
            && self.paused_until.is_none()
            && self.outgoing.bytes() < ANSWERS_BYTES_MAX;
        if is_more { Turn::Again } else { Turn::Rest }
    }

    /// Tells what of it is being read and written.
    fn tell_held(&mut self) {
        let Some(session) = &self.session else { return self.response.set(self.outgoing.bytes()) };
        let begun = match &self.phase {
            Phase::WebSocket(websocket) => websocket.held_bytes(),
            Phase::Tcp(splitter) => splitter.held_bytes(),
            Phase::Request(_) | Phase::Metrics { .. } | Phase::Ending => 0,
        };
        let begun = begun + session.held_bytes();
        session.member().carries(begun + self.left.len() + self.outgoing.bytes());
    }

    /// In which form messages are sent.
    fn form(&self) -> Form {
        match &self.phase {
            Phase::Tcp(_) => Form::Bare,
            Phase::WebSocket(websocket) => websocket.form(),
            Phase::Request(_) | Phase::Metrics { .. } | Phase::Ending => Form::Framed,
        }
    }

    /// Lets what was said last arrive: a socket that is closed with something unread takes that back.
    fn linger(&mut self) -> Turn {
        if !std::mem::replace(&mut self.is_finished, true) {
            self.stream.finish();
        }
        let mut unread = [0; 4096];
        for _ in 0..MESSAGES_A_TURN {
            match self.stream.socket().read(&mut unread) {
                _ if self.is_late => return Turn::Over,
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Turn::Rest,
                Ok(0) | Err(_) => return Turn::Over,
            }
        }
        Turn::Again
    }

    /// Ends it with a reason; what waits is still written.
    pub(super) fn end(&mut self, code: CloseCode, why: &str, desk: &Desk) {
        // What was said before, such as why it ends, goes first.
        let form = self.form();
        if let Some(session) = &self.session {
            let outgoing = &mut self.outgoing;
            session.member().take(TAKEN_BYTES, desk.elapsed(), |frame| outgoing.push(frame, form));
        }
        if let Phase::WebSocket(websocket) = &mut self.phase {
            websocket.close(code, why, &mut self.outgoing);
        }
        self.stop(desk.now());
    }

    /// When it has to be looked at, whatever happens.
    pub(super) fn due(&self, desk: &Desk) -> Option<Instant> {
        let settings = desk.settings_ref();
        let handshake = match &self.phase {
            Phase::Request(_) => Some(self.began + HANDSHAKE_TIMEOUT),
            Phase::Metrics { since, .. } => Some(*since + METRICS_TIMEOUT),
            _ => None,
        };
        let ping = (matches!(self.phase, Phase::WebSocket(_)) && !settings.ping_interval.is_zero())
            .then(|| match self.pinged {
                Some(asked) => asked + settings.ping_timeout,
                None => self.heard + settings.ping_interval,
            });
        let can_be_sent = self.may_write && !matches!(self.phase, Phase::Ending);
        let session = self.session.as_ref().and_then(|it| it.due(desk, can_be_sent));
        [handshake, ping, self.paused_until, self.ends_at, session].into_iter().flatten().min()
    }

    /// Does what is due. The connection has a turn afterwards.
    pub(super) fn look(&mut self, desk: &mut Desk) {
        let (now, settings) = (desk.now(), desk.settings());
        if self.ends_at.is_some_and(|it| it <= now) {
            self.outgoing = Outgoing::default();
            self.phase = Phase::Ending;
            self.is_late = true;
        }
        if self.paused_until.is_some() {
            // It is not asked while nobody would hear the answer.
            (self.heard, self.pinged) = (now, None);
        }
        match &mut self.phase {
            Phase::Request(_) if self.began + HANDSHAKE_TIMEOUT <= now => self.stop(desk.now()),
            Phase::Metrics { slot, since, .. } if *since + METRICS_TIMEOUT <= now => {
                slot.put(Err("the processes have not answered in time"));
            }
            Phase::WebSocket(websocket) if !settings.ping_interval.is_zero() => match self.pinged {
                Some(asked) if asked + settings.ping_timeout <= now => {
                    self.end(CloseCode::Away, "no answer to a ping", desk);
                }
                None if self.heard + settings.ping_interval <= now => {
                    websocket.ping(&mut self.outgoing);
                    self.pinged = Some(now);
                }
                _ => {}
            },
            _ => {}
        }
        if let Some(session) = &mut self.session {
            session.look(desk);
        }
    }

    /// Reads until nothing is there, or for as long as a turn lasts.
    fn read(&mut self, desk: &mut Desk) {
        if let Some(until) = self.paused_until {
            if desk.now() < until {
                return;
            }
            self.paused_until = None;
            let resumed = self.session.as_mut().map(|it| it.resume(desk));
            if !self.obey(resumed.unwrap_or(Verdict::Fine), desk) {
                return;
            }
        }
        // Who does not read his answers gets no new ones.
        while (self.may_read || !self.left.is_empty()) && self.outgoing.bytes() < ANSWERS_BYTES_MAX
        {
            let read = match &mut self.phase {
                // What follows a request is nobody's.
                Phase::Ending | Phase::Metrics { .. } => return,
                Phase::Request(_) => self.read_request(desk),
                Phase::Tcp(_) => self.read_tcp(desk),
                Phase::WebSocket(_) => self.read_websocket(desk),
            };
            if read == Pace::Enough {
                return;
            }
        }
    }

    fn read_request(&mut self, desk: &mut Desk) -> Pace {
        let mut buffer = [0; 4096];
        let Some(count) = self.receive(&mut buffer, desk.now()) else { return Pace::On };
        let Phase::Request(reading) = &mut self.phase else { return Pace::On };
        let settings = desk.settings();
        let rules = Rules {
            deflates: settings.compression,
            url_path: &settings.url_path,
            origins: &settings.origins,
            page: &desk.page,
            metrics: settings.metrics,
            access: &settings.access,
            is_tls: settings.tls.is_some(),
            bson_only: settings.bson_only,
        };
        let answer = reading.read(&buffer[..count], &rules);
        match answer {
            Answer::Incomplete => {}
            Answer::Response(bytes) => self.respond(&bytes, desk.now()),
            Answer::Denied { response, why } => {
                let client = self.stream.socket().peer_addr().ok();
                tracing::warn!(target: "tsuji::audit", ?client, protocol = "http", "{}", Plain(why));
                self.respond(&response, desk.now());
            }
            Answer::Metrics { request: metrics::Request { format, .. }, has_body }
                if desk.memory().is_tight() =>
            {
                let why = Err(Gone::CrowdedOut.why().to_owned());
                self.respond(&http::metrics_response(why, format, has_body), desk.now());
            }
            Answer::Metrics { request, has_body } => {
                let slot = desk.write_metrics(self.place, request);
                let (format, since) = (request.format, desk.now());
                self.phase = Phase::Metrics { slot, since, format, has_body };
            }
            Answer::Upgraded { head, rest, deflate, dialect, user } => {
                self.outgoing.append(&head);
                self.left = rest;
                let websocket = WebSocket::new(settings.limits.message_bytes_max, deflate);
                self.phase = Phase::WebSocket(Box::new(websocket));
                self.upgraded(deflate.is_some(), dialect, user, desk);
            }
        }
        Pace::On
    }

    /// The last that is written.
    fn respond(&mut self, response: &[u8], now: Instant) {
        self.outgoing.append(response);
        // A file may be longer on its way than a last word.
        self.ends_at = Some(now + RESPONSE_TIMEOUT);
        self.stop(now);
    }

    /// Hands the metrics out, if they are wanted and written.
    fn answer_metrics(&mut self, now: Instant) {
        if let Phase::Metrics { slot, format, has_body, .. } = &self.phase
            && let Some(written) = slot.take()
        {
            let response = http::metrics_response(written, *format, *has_body);
            self.respond(&response, now);
        }
    }

    /// Begins the session of a WebSocket, if there is room for one more.
    fn upgraded(
        &mut self,
        is_deflated: bool,
        dialect: Dialect,
        user: Option<UserKey>,
        desk: &mut Desk,
    ) {
        if desk.memory().is_tight() {
            desk.counters.refused.fetch_add(1, Ordering::Relaxed);
            return self.end(code_of(Gone::CrowdedOut), Gone::CrowdedOut.why(), desk);
        }
        let Ok(peer) = self.stream.socket().peer_addr() else { return self.stop(desk.now()) };
        let session = desk.session(self.place, peer, Protocol::WebSocket, dialect, user);
        if is_deflated {
            session.member().deflate();
        }
        self.session = Some(session);
    }

    fn read_tcp(&mut self, desk: &mut Desk) -> Pace {
        if self.left.is_empty() {
            let mut buffer = desk.take_buffer();
            let room = desk.settings_ref().incoming_buffer.clamp(1, buffer.len());
            if let Some(count) = self.receive(&mut buffer[..room], desk.now()) {
                let read = self.split(&buffer[..count], desk);
                if let Some(rest) = buffer.get(read..count) {
                    self.left.extend_from_slice(rest);
                }
            }
            desk.give_buffer(buffer);
        } else {
            let left = std::mem::take(&mut self.left);
            let read = self.split(&left, desk);
            self.left.extend_from_slice(&left[read..]);
        }
        Pace::Enough
    }

    /// Hands on the messages of what was read, until one has to wait; how much that was.
    fn split(&mut self, read: &[u8], desk: &mut Desk) -> usize {
        let mut rest = read;
        while let (Phase::Tcp(splitter), Some(session)) = (&mut self.phase, &mut self.session) {
            let verdict = match splitter.next(&mut rest) {
                None => break,
                Some(Piece::Message(message)) => session.message(Arrived::Text(message), desk),
                Some(Piece::Refused(garbage)) => session.garbage(garbage),
            };
            if !self.obey(verdict, desk) {
                break;
            }
        }
        // The next may be long in coming.
        if let Phase::Tcp(splitter) = &mut self.phase {
            splitter.release();
        }
        read.len() - rest.len()
    }

    fn read_websocket(&mut self, desk: &mut Desk) -> Pace {
        if self.left.is_empty() {
            let mut buffer = desk.take_buffer();
            let room = buffer.len().min(READ_BYTES);
            if let Some(count) = self.receive(&mut buffer[..room], desk.now()) {
                // Whatever it says, it is there.
                self.heard = desk.now();
                self.pinged = None;
                let read = self.hear(&mut buffer[..count], desk);
                self.left.extend_from_slice(&buffer[read..count]);
            }
            desk.give_buffer(buffer);
        } else {
            let mut left = std::mem::take(&mut self.left);
            let read = self.hear(&mut left, desk);
            self.left.extend_from_slice(&left[read..]);
        }
        Pace::Enough
    }

    /// Hands on the messages of a WebSocket, until one has to wait or others have their turn; how much of what was read that was.
    fn hear(&mut self, read: &mut [u8], desk: &mut Desk) -> usize {
        let (mut at, mut inflated) = (0, 0);
        for _ in 0..MESSAGES_A_TURN {
            let (Phase::WebSocket(websocket), Some(session)) = (&mut self.phase, &mut self.session)
            else {
                break;
            };
            let verdict = match websocket.next(read, &mut at, &mut self.outgoing) {
                Ok(None) => break,
                Ok(Some(Came::Closed)) => {
                    self.stop(desk.now());
                    break;
                }
                Ok(Some(Came::Message(message))) if message.is_deflated => {
                    inflate(message, session, &mut inflated, desk)
                }
                Ok(Some(Came::Message(Message { is_text: true, bytes, .. }))) => {
                    Ok(session.message(Arrived::Text(bytes), desk))
                }
                Ok(Some(Came::Message(Message { bytes, .. }))) => {
                    Ok(session.message(Arrived::Binary(bytes), desk))
                }
                Err(broken) => Err(broken),
            };
            let goes_on = match verdict {
                Ok(verdict) => self.obey(verdict, desk),
                Err(Broken { code, why }) => {
                    self.end(code, &why, desk);
                    false
                }
            };
            if !goes_on || INFLATED_A_TURN < inflated {
                break;
            }
        }
        // The next may be long in coming.
        if let Phase::WebSocket(websocket) = &mut self.phase {
            websocket.release();
        }
        at
    }

    /// What was read; nothing where nothing is there, or nothing comes any more.
    fn receive(&mut self, buffer: &mut [u8], now: Instant) -> Option<usize> {
        match self.stream.read(buffer) {
            Ok(0) => {
                self.stop(now);
                self.may_read = false;
                None
            }
            Ok(count) => Some(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
            Err(error) => {
                self.may_read = false;
                if error.kind() != io::ErrorKind::WouldBlock {
                    self.stop(now);
                    self.outgoing = Outgoing::default();
                }
                None
            }
        }
    }

    /// Does what a message leads to; whether reading goes on.
    fn obey(&mut self, verdict: Verdict, desk: &mut Desk) -> bool {
        match verdict {
            Verdict::Fine => true,
            Verdict::Later(at) => {
                self.paused_until = Some(at);
                false
            }
            Verdict::End(why) => {
                self.end(CloseCode::Policy, &why, desk);
                false
            }
        }
    }

    /// Writes what waits; whether anybody is there to read it.
    fn write(&mut self, desk: &mut Desk) -> bool {
        let form = self.form();
        while self.may_write {
            if let Some(session) = &self.session
                && self.outgoing.bytes() < TAKEN_BYTES
                && !matches!(self.phase, Phase::Ending)
            {
                let outgoing = &mut self.outgoing;
                session.member().take(TAKEN_BYTES, desk.elapsed(), |frame| {
                    outgoing.push(frame, form);
                });
            }
            self.is_written = false;
            if self.outgoing.is_empty() {
                // TLS may have taken more than the socket.
                match self.stream.flush() {
                    Ok(()) => self.is_written = true,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.may_write = false
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) => return false,
                }
                return true;
            }
            match self.outgoing.write(&mut self.stream) {
                Ok(true) => {}
                Ok(false) => self.may_write = false,
                Err(_) => return false,
            }
        }
        true
    }

    /// Nothing is read any more; what waits is still written, for a while.
    fn stop(&mut self, now: Instant) {
        self.phase = Phase::Ending;
        self.ends_at.get_or_insert(now + LINGER);
    }

    /// The session, if there was one.
    pub(super) fn into_session(self) -> Option<Session> {
        self.session
    }
}

/// Hands on a message that was deflated, and adds how long it is to `inflated`.
fn inflate(
    message: Message<'_>,
    session: &mut Session,
    inflated: &mut usize,
    desk: &mut Desk,
) -> Result<Verdict, Broken> {
    let max = desk.settings_ref().limits.message_bytes_max;
    let mut inflater = desk.take_inflater();
    let verdict = match inflater.inflate(message.bytes, max) {
        Ok(bytes) if message.is_text && std::str::from_utf8(bytes).is_err() => Err(no_text()),
        Ok(bytes) => {
            *inflated += bytes.len();
            let arrived =
                if message.is_text { Arrived::Text(bytes) } else { Arrived::Binary(bytes) };
            Ok(session.message(arrived, desk))
        }
        Err(NotInflated::TooLong) => {
            let why = format!("a message of more than {max} bytes when it is inflated");
            Err(Broken { code: CloseCode::Size, why })
        }
        Err(NotInflated::Corrupt) => {
            let why = "a message that cannot be inflated".to_owned();
            Err(Broken { code: CloseCode::Invalid, why })
        }
    };
    desk.give_inflater(inflater);
    verdict
}

/// By which code a WebSocket of such a client is closed.
fn code_of(gone: Gone) -> CloseCode {
    match gone {
        Gone::CrowdedOut => CloseCode::Again,
        Gone::Left | Gone::Cut(_) => CloseCode::Policy,
    }
}

/// Whether a turn goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    On,
    Enough,
}

/// So many messages of one client are read before others have their turn.
const MESSAGES_A_TURN: usize = 256;

/// So much is read of a WebSocket at once.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// When so much was inflated of one client, others have their turn.
const INFLATED_A_TURN: usize = 1 << 20;

/// So much is taken from what waits at once. What is taken is sent, whatever comes later.
const TAKEN_BYTES: usize = 256 << 10;

/// With so many bytes of answers not written, nothing more is read of a client.
const ANSWERS_BYTES_MAX: usize = 1 << 20;

/// A connection that has not said what it wants after so long is closed.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// So long the processes may take to answer, those that were asked before included.
const METRICS_TIMEOUT: Duration = Duration::from_secs(10);

/// So long a file of the page, or the metrics, may be on its way.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// What was said last has so long to arrive.
const LINGER: Duration = Duration::from_secs(2);

//! One client, as both threads know it.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use tsuji_rosbridge::client::Client;
use tsuji_rosbridge::{
    Compression, Encoding, Id, Level, Outgoing, Refusal, SessionOptions, Values, write_png,
    write_refusal,
};

use crate::Counters;
use crate::foxglove;
use crate::frame::{Frame, Kind};
use crate::memory::{Held, Memory};
use crate::plain::Plain;
use crate::settings::{Protocol, Settings};
use crate::wake::Wake;

/// One client. What waits for it is put here by any thread, and taken by that of the connections.
#[derive(Debug)]
pub(crate) struct ConnectedClient {
    /// No other client has or had it.
    pub(crate) number: u64,
    /// How it wants to be spoken to.
    pub(crate) encoding: Encoding,
    /// Where it is.
    pub(crate) peer: Peer,
    place: usize,
    wake: Arc<Wake>,
    counters: Arc<Counters>,
    memory: Arc<Memory>,
    /// What waits for it and of it, in all.
    held: Arc<Held>,
    /// What of that is being read or written.
    carried_bytes: AtomicUsize,
    /// Its WebSocket has agreed on `permessage-deflate`.
    deflates: AtomicBool,
    /// What was asked of the thread of ROS for it and is not done.
    ordered_bytes: AtomicUsize,
    /// Answers without an id that went in pieces.
    nameless: AtomicU64,
    state: Mutex<State>,
}

/// Which protocol a client speaks on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// That of rosbridge.
    Rosbridge,
    /// That of Foxglove.
    Foxglove {
        /// It knows what it is that a recording is played.
        knows_playback: bool,
    },
}

impl Dialect {
    /// Whether that is Foxglove's.
    pub(crate) fn is_foxglove(self) -> bool {
        matches!(self, Self::Foxglove { .. })
    }

    /// Whether it is told how far a recording is played.
    pub(crate) fn knows_playback(self) -> bool {
        matches!(self, Self::Foxglove { knows_playback: true })
    }
}

/// From where a client speaks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) protocol: Protocol,
    pub(crate) dialect: Dialect,
}

/// What a client asked for, and what waits for it.
#[derive(Debug)]
pub(crate) struct State {
    /// What it asked for, and the samples that wait.
    pub(crate) client: Client<Arc<Frame>, u64>,
    /// How it is sent what it said nothing else of.
    pub(crate) delivery: Delivery,
    /// What comes before all samples, and is never dropped.
    answers: VecDeque<Arc<Frame>>,
    answers_bytes: usize,
    answers_bytes_max: usize,
    /// What is left of a message that goes in pieces. They follow each other.
    pieces: VecDeque<Arc<Frame>>,
    pieces_bytes: usize,
    /// The least time between two messages.
    interval: Duration,
    /// When the next may go.
    next: Duration,
    /// The thread of the connections knows that something waits.
    is_told: bool,
    /// It has left, or is to be cut off.
    gone: Option<Gone>,
    /// What waits here, as far as it was told to `memory`.
    counted_bytes: usize,
}

/// Why a client is served no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It has left.
    Left,
    /// For what it did, or may do no more.
    Cut(&'static str),
    /// Of all clients it had the most when there was no room.
    CrowdedOut,
}

impl Gone {
    /// As it is told.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Left => "it has left",
            Self::Cut(why) => why,
            Self::CrowdedOut => "too much waits for all clients together",
        }
    }
}

/// How a message is sent, besides its encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// The longest text in one piece.
    pub(crate) fragment_size: Option<u32>,
    /// Whether JSON goes as a picture.
    pub(crate) is_png: bool,
}

impl Delivery {
    /// What a request says of its answer.
    pub(crate) fn asked(fragment_size: Option<u32>, compression: Compression) -> Self {
        Self { fragment_size, is_png: compression == Compression::Png }
    }

    /// This, and where it says nothing what holds for the client.
    pub(crate) fn or(self, general: Self) -> Self {
        Self {
            fragment_size: self.fragment_size.or(general.fragment_size),
            is_png: self.is_png || general.is_png,
        }
    }
}

impl State {
    /// Notes what any message may say of all that is sent from then on.
    pub(crate) fn note(&mut self, options: SessionOptions) {
        let SessionOptions { fragment_size, message_interval, png } = options;
        self.delivery.fragment_size = fragment_size.or(self.delivery.fragment_size);
        self.delivery.is_png = png.unwrap_or(self.delivery.is_png);
        self.interval = message_interval.unwrap_or(self.interval);
    }

    /// When something is due, or may be sent that waits. Where nothing `can_be_sent`, what waits is due when something can.
    pub(crate) fn due(&self, now: Duration, can_be_sent: bool) -> Option<Duration> {
        let expiry = self.client.expiry();
        if !can_be_sent {
            return expiry;
        }
        let samples = self.client.subscriptions.timeout().map(|it| it.max(self.next));
        let waits = !self.pieces.is_empty()
            || !self.answers.is_empty()
            || self.client.subscriptions.is_ready(now);
        let held = (now < self.next && waits).then_some(self.next);
        expiry.into_iter().chain(samples).chain(held).min()
    }

    /// The next of what waits, if it may go now.
    fn take(&mut self, now: Duration) -> Option<Arc<Frame>> {
        if now < self.next {
            return None;
        }
        let frame = match self.pieces.pop_front() {
            Some(piece) => {
                self.pieces_bytes -= piece.cost_bytes();
                piece
            }
            None => self.take_whole(now)?,
        };
        if !self.interval.is_zero() {
            self.next = now.saturating_add(self.interval);
        }
        Some(frame)
    }

    /// The first piece of the next message.
    fn take_whole(&mut self, now: Duration) -> Option<Arc<Frame>> {
        let frame = match self.answers.pop_front() {
            Some(frame) => {
                self.answers_bytes -= frame.cost_bytes();
                frame
            }
            None => self.client.subscriptions.take(now)?.1,
        };
        self.pieces.extend(frame.more().iter().cloned());
        self.pieces_bytes += frame.cost_bytes() - frame.piece_bytes();
        Some(frame)
    }
}

/// The state of a client, for as long as this lives. What waits is counted when it goes.
pub(crate) struct Locked<'a> {
    member: &'a ConnectedClient,
    state: MutexGuard<'a, State>,
}

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let Self { member, state } = self;
        member.count(state);
        member.memory.relieve(member, state);
    }
}

impl ConnectedClient {
    pub(crate) fn new(
        number: u64,
        place: usize,
        peer: Peer,
        settings: &Settings,
        wake: Arc<Wake>,
        counters: Arc<Counters>,
        memory: Arc<Memory>,
    ) -> Self {
        let limits = settings.limits.client;
        let state = State {
            client: Client::new(limits),
            delivery: Delivery::default(),
            answers: VecDeque::new(),
            answers_bytes: 0,
            answers_bytes_max: limits.queue.bytes_max,
            pieces: VecDeque::new(),
            pieces_bytes: 0,
            interval: settings.message_interval,
            next: Duration::ZERO,
            is_told: false,
            gone: None,
            counted_bytes: 0,
        };
        Self {
            number,
            encoding: match peer.dialect {
                Dialect::Rosbridge => settings.encoding(),
                Dialect::Foxglove { .. } => Encoding::Json,
            },
            peer,
            place,
            wake,
            counters,
            memory,
            held: Arc::default(),
            carried_bytes: AtomicUsize::new(0),
            deflates: AtomicBool::new(false),
            ordered_bytes: AtomicUsize::new(0),
            nameless: AtomicU64::new(0),
            state: Mutex::new(state),
        }
    }

    /// Its state, for as long as the guard lives. Whoever puts something there to be sent calls [`tell`](Self::tell).
    pub(crate) fn lock(&self) -> Locked<'_> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Locked { member: self, state }
    }

    /// Lets the thread of the connections look at it, once for all that waits.
    pub(crate) fn tell(&self, mut state: Locked<'_>) {
        if !std::mem::replace(&mut state.is_told, true) {
            drop(state);
            self.wake.dirty(self.place);
        }
    }

    /// Sends an answer. A client that lets too many wait is cut off.
    pub(crate) fn answer(&self, answer: &Outgoing<'_>) {
        self.answer_by(Delivery::default(), answer);
    }

    /// The same, as its request said.
    pub(crate) fn answer_by(&self, delivery: Delivery, answer: &Outgoing<'_>) {
        if self.peer.dialect.is_foxglove() {
            return foxglove::answer(self, answer);
        }
        let sent = self.send(delivery, answer.id(), |out| answer.write(out, self.encoding));
        if let Err(bytes) = sent {
            self.counters.datagrams_lost.fetch_add(1, Ordering::Relaxed);
            self.tell_too_large(answer, &too_large(bytes));
        }
    }

    /// Tells who waits for an answer that no datagram takes.
    fn tell_too_large(&self, answer: &Outgoing<'_>, why: &str) {
        let (values, result) = (Values::Text(why), false);
        match *answer {
            Outgoing::ServiceResponse { id, service, .. } => {
                self.answer(&Outgoing::ServiceResponse { id, service, values, result });
            }
            Outgoing::ActionResult { id, action, .. } => {
                let status = UNKNOWN;
                self.answer(&Outgoing::ActionResult { id, action, values, status, result });
            }
            // Of a remark there is nothing more to say.
            Outgoing::Status { .. } => {}
            _ => self.remark(Level::Error, answer.id(), why),
        }
    }

    /// Whether this client is sent datagrams, and one cannot take the frame: how many bytes it has then.
    pub(crate) fn is_too_large(&self, frame: &Frame) -> Option<usize> {
        if self.peer.protocol != Protocol::Udp {
            return None;
        }
        Some(frame.largest_bytes()).filter(|bytes| DATAGRAM_BYTES_MAX < *bytes)
    }

    /// Sends what `write` appends, before all samples. What is too large for a datagram is not sent.
    fn send(
        &self,
        delivery: Delivery,
        id: Option<&Id<'_>>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), usize> {
        let delivery = delivery.or(self.lock().delivery);
        let frame = self.frame(delivery, id, write);
        if let Some(bytes) = self.is_too_large(&frame) {
            return Err(bytes);
        }
        self.say(Arc::new(frame));
        Ok(())
    }

    /// Sends what is written already, before all samples.
    pub(crate) fn say(&self, frame: Arc<Frame>) {
        self.put(frame, false);
    }

    /// The same of what it did not ask for one by one, for which it is not cut off.
    pub(crate) fn say_unasked(&self, frame: Arc<Frame>) {
        if self.deflates() {
            // Here, and not on the thread of the connections.
            frame.deflate_all();
        }
        self.put(frame, true);
    }

    /// How much may wait for it.
    pub(crate) fn answers_bytes_max(&self) -> usize {
        self.lock().answers_bytes_max
    }

    fn put(&self, frame: Arc<Frame>, is_unasked: bool) {
        let mut state = self.lock();
        if state.gone.is_some() {
            return;
        }
        state.answers_bytes += frame.cost_bytes();
        if !is_unasked && state.answers_bytes_max < state.answers_bytes {
            // It asks and does not listen.
            state.gone = Some(Gone::Cut("answers are not read"));
            state.answers.clear();
            state.answers_bytes = 0;
            // Told it was of something that it could not send.
            state.is_told = false;
        } else {
            state.answers.push_back(frame);
        }
        self.tell(state);
    }

    fn frame(
        &self,
        delivery: Delivery,
        id: Option<&Id<'_>>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Frame {
        let Delivery { fragment_size, is_png } = delivery;
        let frame = Frame::encode::<std::convert::Infallible>(self.kind(), |out| {
            if is_png && self.encoding == Encoding::Json {
                let mut json = Vec::new();
                write(&mut json);
                // The writer of JSON writes UTF-8.
                write_png(out, std::str::from_utf8(&json).unwrap_or_default());
            } else {
                write(out);
            }
            Ok(())
        });
        let frame = match frame {
            Ok(frame) => frame,
            Err(never) => match never {},
        };
        match (fragment_size, id) {
            (None, _) => frame,
            (_, Some(id)) => frame.in_pieces(fragment_size, id),
            (_, None) => {
                let number = self.nameless.fetch_add(1, Ordering::Relaxed);
                frame.in_pieces(fragment_size, &Id::Text(format!("answer#{number}").into()))
            }
        }
    }

    /// Says why something was not done, where the client wants to know.
    pub(crate) fn refuse(&self, refusal: &Refusal) {
        self.counters.refusals.fetch_add(1, Ordering::Relaxed);
        if self.peer.dialect.is_foxglove() {
            return foxglove::refuse(self, refusal);
        }
        if self.lock().client.level.tells(Level::Error) {
            let id = refusal.id.as_ref();
            // It is short.
            let _ = self
                .send(Delivery::default(), id, |out| write_refusal(out, self.encoding, refusal));
        }
        self.answer_refused(refusal);
    }

    /// Answers what was refused, where somebody waits for an answer.
    pub(crate) fn answer_refused(&self, refusal: &Refusal) {
        let why = refusal.to_string();
        let (id, name) = (refusal.id.as_ref(), refusal.name.as_deref().unwrap_or_default());
        let values = Values::Text(&why);
        match refusal.operation {
            Some("call_service") => {
                self.answer(&Outgoing::ServiceResponse {
                    id,
                    service: name,
                    values,
                    result: false,
                });
            }
            Some("send_action_goal") => {
                let (status, result) = (UNKNOWN, false);
                self.answer(&Outgoing::ActionResult { id, action: name, values, status, result });
            }
            _ => {}
        }
    }

    /// Says what is less than a refusal, where the client wants to know.
    pub(crate) fn remark(&self, level: Level, id: Option<&Id<'_>>, msg: &str) {
        let is_told = match self.peer.dialect {
            Dialect::Rosbridge => self.lock().client.level.tells(level),
            // It has no means to say what it wants to know.
            Dialect::Foxglove { .. } => Level::Warning.tells(level),
        };
        if is_told {
            self.answer(&Outgoing::Status { id, level, msg });
        }
    }

    /// A line of the audit: what this client may not do, or has done that changes how others work.
    pub(crate) fn audit(&self, what: &dyn fmt::Display) {
        let Peer { address, protocol, .. } = self.peer;
        tracing::warn!(target: "tsuji::audit", client = %address, protocol = protocol.word(), "{}", Plain(what));
    }

    /// Bounds what waits for it, and what has come of it in pieces, from now on.
    pub(crate) fn limit_bytes(&self, waiting_max: usize, fragments_max: usize) {
        let mut state = self.lock();
        state.answers_bytes_max = waiting_max;
        state.client.limit_bytes(waiting_max, fragments_max);
    }

    /// Takes about `bytes` of what waits, answers first.
    pub(crate) fn take(&self, bytes: usize, now: Duration, mut each: impl FnMut(Arc<Frame>)) {
        let mut state = self.lock();
        state.is_told = false;
        let mut taken = 0;
        while taken < bytes
            && let Some(frame) = state.take(now)
        {
            taken += frame.piece_bytes();
            each(frame);
        }
    }

    /// Nothing more is put here.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        state.gone.get_or_insert(Gone::Left);
        state.answers = VecDeque::new();
        state.pieces = VecDeque::new();
        (state.answers_bytes, state.pieces_bytes) = (0, 0);
    }

    /// Ends its connection, with that reason.
    pub(crate) fn cut(&self, why: &'static str) {
        let mut state = self.lock();
        state.gone.get_or_insert(Gone::Cut(why));
        state.is_told = false;
        self.tell(state);
    }

    /// Whether it has left, or is to be cut off.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone().is_some()
    }

    /// Why it is served no more, if it is not.
    pub(crate) fn gone(&self) -> Option<Gone> {
        self.lock().gone
    }

    /// What waits for it and of it.
    pub(crate) fn held(&self) -> &Arc<Held> {
        &self.held
    }

    /// Notes how much of it is being read or written.
    pub(crate) fn carries(&self, bytes: usize) {
        self.held_changes(self.carried_bytes.swap(bytes, Ordering::AcqRel), bytes);
    }

    /// Counts `now` bytes where `before` were. Nobody may have locked its state meanwhile.
    fn held_changes(&self, before: usize, now: usize) {
        self.memory.changed(&self.held, before, now);
        if before < now && self.memory.is_over() {
            // Room is made when it goes.
            drop(self.lock());
        }
    }

    /// Counts `request` as what waits of it, for as long as that is kept. Nobody may have locked its state meanwhile.
    pub(crate) fn keep(self: &Arc<Self>, request: Vec<u8>) -> Kept {
        self.held_changes(0, request.len());
        Kept { member: Arc::clone(self), request }
    }

    /// Notes that its WebSocket gets messages deflated.
    pub(crate) fn deflate(&self) {
        self.deflates.store(true, Ordering::Relaxed);
    }

    /// Whether it does.
    pub(crate) fn deflates(&self) -> bool {
        self.deflates.load(Ordering::Relaxed)
    }

    /// Tells what waits. For one that has gone nothing does, whatever comes.
    fn count(&self, state: &mut State) {
        if state.gone.is_some() {
            state.client.subscriptions.shed(usize::MAX);
        }
        let now = state.client.held_bytes() + state.answers_bytes + state.pieces_bytes;
        let before = std::mem::replace(&mut state.counted_bytes, now);
        self.memory.changed(&self.held, before, now);
    }

    /// Makes room for others as [`give`](Self::give) does, unless somebody has locked it.
    pub(crate) fn try_give(&self, bytes: usize) -> bool {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        self.give(&mut state, bytes);
        true
    }

    /// Makes room for others, about `bytes`, by its oldest samples; without any it is to be closed.
    pub(crate) fn give(&self, state: &mut State, bytes: usize) {
        if state.gone.is_some() {
            return self.held.spend();
        }
        let samples = state.client.subscriptions.shed(bytes);
        self.counters.crowded_out.fetch_add(samples, Ordering::Relaxed);
        if samples == 0 {
            self.held.spend();
            state.gone = Some(Gone::CrowdedOut);
            state.answers = VecDeque::new();
            state.pieces = VecDeque::new();
            state.pieces_bytes = 0;
            state.answers_bytes = 0;
            state.client.fragments.clear();
            self.counters.cut_off.fetch_add(1, Ordering::Relaxed);
            // Told it was, if at all, of something that it could not send.
            state.is_told = true;
            self.wake.dirty(self.place);
        }
        self.count(state);
    }

    /// Notes that the thread of ROS has so much more to do for it.
    pub(crate) fn ordered(&self, bytes: usize) {
        self.ordered_bytes.fetch_add(bytes, Ordering::AcqRel);
        self.memory.changed(&self.held, 0, bytes);
    }

    /// Notes that it is done.
    pub(crate) fn obeyed(&self, bytes: usize) {
        self.ordered_bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.memory.changed(&self.held, bytes, 0);
    }

    /// Whether that thread has so much to do for it that it has to wait.
    pub(crate) fn is_ahead(&self) -> bool {
        ORDERED_BYTES_MAX < self.ordered_bytes.load(Ordering::Acquire)
    }

    /// What its messages are to a WebSocket.
    pub(crate) fn kind(&self) -> Kind {
        match self.encoding {
            Encoding::Json => Kind::Text,
            Encoding::Cbor | Encoding::Bson => Kind::Binary,
        }
    }
}

impl Drop for ConnectedClient {
    fn drop(&mut self) {
        self.memory.leave(self.number, &self.held);
    }
}

/// A request of a client that waits.
#[derive(Debug)]
pub(crate) struct Kept {
    member: Arc<ConnectedClient>,
    request: Vec<u8>,
}

impl Deref for Kept {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.request
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.member.memory.changed(&self.member.held, self.request.len(), 0);
    }
}

/// What is said of what no datagram takes.
pub(crate) fn too_large(bytes: usize) -> String {
    format!(
        "{bytes} bytes do not fit a datagram, which has at most {DATAGRAM_BYTES_MAX}; \
         ask for pieces by fragment_size, or by TCP or WebSocket"
    )
}

/// What a datagram of IPv4 has beside its two headers.
const DATAGRAM_BYTES_MAX: usize = 65_507;

/// `action_msgs/GoalStatus` for what nobody knows.
pub(crate) const UNKNOWN: i8 = 0;

/// With more than that asked of the thread of ROS and not done, nothing more is read of a client.
const ORDERED_BYTES_MAX: usize = 256 << 10;

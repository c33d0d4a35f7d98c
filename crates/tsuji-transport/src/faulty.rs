//! A transport that misbehaves on command: it loses, repeats, delays and cuts what another carries.
//!
//! Faults are drawn from a seed, so a run repeats. A delay is counted in samples, not in time.
//! Samples sent to one reader only are neither lost nor repeated, and never overtake those that are
//! held back.

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tsuji_core::{Capability, TransportId};

use crate::bell::Cell;
use crate::engines::EngineStatus;
use crate::wire::Wire;
use crate::{
    Address, Connected, ControlMessage, Endpoint, Envelope, Error, ErrorKind, Gid, Handshake, Loan,
    Payload, PeerId, Reader, Result, Sent, Transport, Writer,
};

/// What goes wrong. Shares are between 0 (never) and 1 (always).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Faults {
    /// The share of samples that are lost.
    pub loss: f64,
    /// The share of samples that are sent twice.
    pub duplicate: f64,
    /// The share of samples that are held back, and with them all that follow, in order.
    pub delay: f64,
    /// How many samples are held at most. The next send after that lets them all go; so does
    /// dropping the writer.
    pub delay_samples: usize,
    /// Opening waits until this is over, as for an engine that takes long to start.
    pub slow_to_open: bool,
    /// Opening, connecting, lending and sending answer Closed. What has arrived is still taken.
    pub cut: bool,
    /// Sending and reserving answer Busy: a reader is full. That is no trouble. A send that was
    /// reserved before goes.
    pub busy: bool,
    /// Lending, reserving and sending of bytes answer Busy: there is no memory left. A value that is
    /// sent by reference needs none. A send that was reserved before goes.
    pub starved: bool,
}

impl Faults {
    /// Nothing goes wrong.
    pub const NONE: Self = Self {
        loss: 0.0,
        duplicate: 0.0,
        delay: 0.0,
        delay_samples: 0,
        slow_to_open: false,
        cut: false,
        busy: false,
        starved: false,
    };
}

impl Default for Faults {
    fn default() -> Self {
        Self::NONE
    }
}

impl Faults {
    fn refuse_if_cut(&self, operation: &'static str) -> Result<()> {
        refuse_if(self.cut, ErrorKind::Closed, operation, CUT)
    }

    fn refuse_if_busy(&self, operation: &'static str) -> Result<()> {
        refuse_if(self.busy, ErrorKind::Busy, operation, "made busy by a fault")
    }

    fn refuse_if_starved(&self, operation: &'static str) -> Result<()> {
        refuse_if(self.starved, ErrorKind::Busy, operation, STARVED)
    }
}

const CUT: &str = "cut by a fault";
const STARVED: &str = "starved by a fault";

fn refuse_if(refused: bool, kind: ErrorKind, operation: &'static str, why: &str) -> Result<()> {
    if refused { Err(Error::new(kind, operation).about(why)) } else { Ok(()) }
}

/// What went wrong so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Samples lost.
    pub lost: u64,
    /// Samples sent twice.
    pub duplicated: u64,
    /// Samples held back for a while.
    pub delayed: u64,
}

/// A transport with faults. Clones share them.
#[derive(Clone)]
pub struct Faulty {
    id: TransportId,
    inner: Arc<dyn Transport>,
    state: Arc<Mutex<State>>,
    /// There are other faults.
    changed: Arc<Condvar>,
}

struct State {
    faults: Faults,
    counts: FaultCounts,
    /// Openings that wait.
    opening: usize,
    random: u64,
    /// The room cells of writers, some of which may be gone.
    rooms: Vec<Weak<Cell>>,
}

impl Faulty {
    /// `inner` without any fault yet, named `faulty-` and its name. `seed` decides which samples
    /// faults will hit.
    pub fn new(inner: Arc<dyn Transport>, seed: u64) -> Self {
        Self::named(TransportId::new(&format!("faulty-{}", inner.id())), inner, seed)
    }

    /// As [`new`](Self::new), but with the name of `inner`, so that policies name it as they name
    /// that.
    pub fn in_place_of(inner: Arc<dyn Transport>, seed: u64) -> Self {
        Self::named(inner.id(), inner, seed)
    }

    fn named(id: TransportId, inner: Arc<dyn Transport>, seed: u64) -> Self {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let (faults, counts) = (Faults::default(), FaultCounts::default());
        let state = State { faults, counts, opening: 0, random, rooms: Vec::new() };
        Self { id, inner, state: Arc::new(Mutex::new(state)), changed: Arc::default() }
    }

    /// From now on these faults.
    pub fn set(&self, faults: Faults) {
        let mut state = lock(&self.state);
        state.faults = faults;
        state.rooms.iter().filter_map(Weak::upgrade).for_each(|room| room.ring());
        self.changed.notify_all();
    }

    /// How many openings wait because it is slow.
    pub fn opening(&self) -> usize {
        lock(&self.state).opening
    }

    /// What went wrong so far.
    pub fn counts(&self) -> FaultCounts {
        lock(&self.state).counts
    }

    fn faults(&self) -> Faults {
        lock(&self.state).faults
    }

    /// Begins to open something, which may take until there are other faults.
    fn begin_to_open(&self, operation: &'static str) -> Result<MutexGuard<'_, State>> {
        let mut state = lock(&self.state);
        state.opening += 1;
        let waited = self.changed.wait_while(state, |it| it.faults.slow_to_open);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.opening -= 1;
        state.faults.refuse_if_cut(operation)?;
        Ok(state)
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faulty({:?}, {:?})", self.inner, self.faults())
    }
}

impl Transport for Faulty {
    fn id(&self) -> TransportId {
        self.id.clone()
    }

    fn capability(&self) -> Capability {
        self.inner.capability()
    }

    fn is_confined(&self) -> bool {
        self.inner.is_confined()
    }

    fn is_secured(&self) -> bool {
        self.inner.is_secured()
    }

    fn trouble(&self) -> Option<String> {
        let faults = self.faults();
        let own = if faults.cut { Some(CUT) } else { faults.starved.then_some(STARVED) };
        own.map(str::to_owned).or_else(|| self.inner.trouble())
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let counts = self.counts();
        let own = [("lost", counts.lost), ("duplicated", counts.duplicated)];
        [self.inner.figures(), own.into(), vec![("delayed", counts.delayed)]].concat()
    }

    fn engine(&self) -> Option<EngineStatus> {
        self.inner.engine()
    }

    fn tidy(&self, now_ns: u64) -> Option<u64> {
        self.inner.tidy(now_ns)
    }

    fn handshake(&self, peer: PeerId) -> Result<Handshake> {
        self.inner.handshake(peer)
    }

    fn meet(&self, peer: PeerId, handshake: Handshake) -> Result<Vec<u8>> {
        self.inner.meet(peer, handshake)
    }

    fn confirm(&self, peer: PeerId, answer: &[u8]) -> Result<()> {
        self.inner.confirm(peer, answer)
    }

    fn part(&self, peer: PeerId) {
        self.inner.part(peer);
    }

    fn control_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.control_fd()
    }

    fn control_messages(&self) -> Vec<ControlMessage> {
        self.inner.control_messages()
    }

    fn receive(&self, from: PeerId, bytes: &[u8]) {
        self.inner.receive(from, bytes);
    }

    fn wire(&self) -> Option<&dyn Wire> {
        self.inner.wire()
    }

    fn open_writer(&self, endpoint: &Endpoint, room: Arc<Cell>) -> Result<Arc<dyn Writer>> {
        let mut state = self.begin_to_open("open a writer")?;
        state.rooms.retain(|room| 0 < room.strong_count());
        state.rooms.push(Arc::downgrade(&room));
        drop(state);
        let inner = self.inner.open_writer(endpoint, room)?;
        let (held, is_reserved) = (Mutex::default(), AtomicBool::new(false));
        Ok(Arc::new(FaultyWriter { faulty: self.clone(), inner, held, is_reserved }))
    }

    fn open_reader(&self, endpoint: &Endpoint, news: Arc<Cell>) -> Result<Arc<dyn Reader>> {
        drop(self.begin_to_open("open a reader")?);
        // No fault hits what has arrived, so the reader is that of the inner transport.
        self.inner.open_reader(endpoint, news)
    }
}

#[derive(Debug)]
struct FaultyWriter {
    faulty: Faulty,
    inner: Arc<dyn Writer>,
    /// Samples held back, oldest first.
    held: Mutex<VecDeque<Held>>,
    /// The next send was promised not to be Busy.
    is_reserved: AtomicBool,
}

/// A sample that was held back, and who is not to get it.
#[derive(Debug)]
struct Held {
    filtered: Vec<Gid>,
    envelope: Envelope,
    payload: Payload,
}

enum Fate {
    Send,
    Lose,
    Duplicate,
    Hold,
}

impl FaultyWriter {
    /// The faults that are there, unless one of them refuses to send `payload`.
    fn pass(&self, payload: &Payload, is_reserved: bool) -> Result<Faults> {
        let faults = self.faulty.faults();
        faults.refuse_if_cut("send")?;
        if is_reserved {
            return Ok(faults);
        }
        faults.refuse_if_busy("send")?;
        if let Payload::Bytes(_) = payload {
            faults.refuse_if_starved("send")?;
        }
        Ok(faults)
    }

    fn fate(&self, holding: bool) -> Fate {
        let mut state = lock(&self.faulty.state);
        let faults = state.faults;
        let mut draw = |share: f64| {
            state.random ^= state.random << 13;
            state.random ^= state.random >> 7;
            state.random ^= state.random << 17;
            (state.random >> 11) as f64 / (1u64 << 53) as f64 <= share && 0.0 < share
        };
        let (lose, duplicate, hold) =
            (draw(faults.loss), draw(faults.duplicate), draw(faults.delay));
        if lose {
            state.counts.lost += 1;
            return Fate::Lose;
        }
        if holding || hold {
            state.counts.delayed += 1;
            return Fate::Hold;
        }
        if duplicate {
            return Fate::Duplicate;
        }
        Fate::Send
    }

    /// Sends what is held while the inner writer takes it.
    fn let_go(&self, held: &mut VecDeque<Held>) -> Result<()> {
        while let Some(Held { filtered, envelope, payload }) = held.front() {
            self.pass_on(filtered, envelope, payload)?;
            held.pop_front();
        }
        Ok(())
    }

    fn pass_on(&self, filtered: &[Gid], envelope: &Envelope, payload: &Payload) -> Result<Sent> {
        match filtered {
            [] => self.inner.send(envelope, payload),
            filtered => self.inner.send_except(filtered, envelope, payload),
        }
    }

    fn send_or_fail(
        &self,
        filtered: &[Gid],
        envelope: &Envelope,
        payload: &Payload,
    ) -> Result<Sent> {
        let faults = self.pass(payload, self.is_reserved.load(Ordering::Relaxed))?;
        self.is_reserved.store(false, Ordering::Relaxed);
        let mut held = lock(&self.held);
        let limit = faults.delay_samples;
        if !held.is_empty() && limit <= held.len() {
            self.let_go(&mut held)?;
        }
        match self.fate(!held.is_empty()) {
            Fate::Send => self.pass_on(filtered, envelope, payload),
            Fate::Lose => {
                self.inner.cancel();
                Ok(Sent::default())
            }
            Fate::Duplicate => {
                let mut sent = self.pass_on(filtered, envelope, payload)?;
                // A reservation is for one: where there is no place for a second, none is sent.
                if let Ok(again) = self.pass_on(filtered, envelope, payload) {
                    sent.displaced += again.displaced;
                    lock(&self.faulty.state).counts.duplicated += 1;
                }
                Ok(sent)
            }
            Fate::Hold => {
                self.inner.cancel();
                let (envelope, payload) = (*envelope, payload.clone());
                held.push_back(Held { filtered: filtered.to_vec(), envelope, payload });
                Ok(Sent::default())
            }
        }
    }
}

impl Writer for FaultyWriter {
    fn loan(&self, len: usize) -> Result<Loan> {
        let faults = self.faulty.faults();
        faults.refuse_if_cut("loan")?;
        faults.refuse_if_starved("loan")?;
        self.inner.loan(len)
    }

    fn reserve(&self, len: usize) -> Result<()> {
        let faults = self.faulty.faults();
        faults.refuse_if_cut("reserve")?;
        faults.refuse_if_busy("reserve")?;
        faults.refuse_if_starved("reserve")?;
        self.inner.reserve(len)?;
        self.is_reserved.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn cancel(&self) {
        self.is_reserved.store(false, Ordering::Relaxed);
        self.inner.cancel();
    }

    fn send(&self, envelope: &Envelope, payload: &Payload) -> Result<Sent> {
        self.send_or_fail(&[], envelope, payload)
    }

    fn send_except(
        &self,
        filtered: &[Gid],
        envelope: &Envelope,
        payload: &Payload,
    ) -> Result<Sent> {
        if !self.faulty.inner.capability().directed {
            return self.inner.send_except(filtered, envelope, payload);
        }
        self.send_or_fail(filtered, envelope, payload)
    }

    fn note_filtered(&self, reader: Gid, envelope: &Envelope) {
        self.inner.note_filtered(reader, envelope);
    }

    fn send_to(&self, reader: Gid, envelope: &Envelope, payload: &Payload) -> Result<Sent> {
        self.pass(payload, false)?;
        self.let_go(&mut lock(&self.held))?;
        self.inner.send_to(reader, envelope, payload)
    }

    fn connect(&self, address: &Address) -> Result<Connected> {
        self.faulty.faults().refuse_if_cut("connect")?;
        self.is_reserved.store(false, Ordering::Relaxed);
        self.inner.connect(address)
    }

    fn disconnect(&self, reader: Gid) {
        self.inner.disconnect(reader);
    }

    fn wire_name(&self) -> Option<Gid> {
        self.inner.wire_name()
    }

    fn connect_foreign(&self, reader: Gid) -> Result<Connected> {
        self.faulty.faults().refuse_if_cut("connect to a foreign reader")?;
        self.is_reserved.store(false, Ordering::Relaxed);
        self.inner.connect_foreign(reader)
    }

    fn lost(&self) -> Vec<Gid> {
        self.inner.lost()
    }

    fn readers(&self) -> usize {
        self.inner.readers()
    }

    fn is_acknowledged(&self) -> bool {
        self.inner.is_acknowledged()
    }

    fn matched_for(&self, reader: Gid) -> Duration {
        self.inner.matched_for(reader)
    }

    fn when_acknowledged(&self, timeout: Duration, then: Box<dyn FnOnce() + Send>) {
        self.inner.when_acknowledged(timeout, then);
    }
}

impl Drop for FaultyWriter {
    fn drop(&mut self) {
        let mut held = std::mem::take(self.held.get_mut().unwrap_or_else(PoisonError::into_inner));
        if self.faulty.faults().cut || self.let_go(&mut held).is_err() {
            lock(&self.faulty.state).counts.lost += held.len() as u64;
        }
    }
}

/// Nothing panics while holding these locks, so a poisoned one is still sound.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

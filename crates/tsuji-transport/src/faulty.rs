//! A transport that misbehaves on command: it loses, repeats, delays and cuts what another carries.
//!
//! Faults are drawn from a seed, so a run repeats. A delay is counted in samples, not in time.
//! Samples sent to one reader only are neither lost nor repeated, and never overtake those that are
//! held back.

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tsuji_core::{Capability, TransportId};

use crate::bell::Cell;
use crate::{
    Connected, Endpoint, Envelope, Error, ErrorKind, Gid, Greeting, Loan, Mail, Payload, PeerId,
    Reader, Result, Sent, Ticket, Transport, Writer,
};

/// What goes wrong. Shares are between 0 (never) and 1 (always).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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
    /// Opening, connecting, lending and sending answer Closed. What has arrived is still taken.
    pub cut: bool,
    /// Sending and reserving answer Busy.
    pub busy: bool,
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
    inner: Arc<dyn Transport>,
    state: Arc<Mutex<State>>,
}

struct State {
    faults: Faults,
    counts: FaultCounts,
    random: u64,
    /// The room cells of writers, some of which may be gone.
    rooms: Vec<Weak<Cell>>,
}

impl Faulty {
    /// `inner` without any fault yet. `seed` decides which samples faults will hit.
    pub fn new(inner: Arc<dyn Transport>, seed: u64) -> Self {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let (faults, counts) = (Faults::default(), FaultCounts::default());
        let state = State { faults, counts, random, rooms: Vec::new() };
        Self { inner, state: Arc::new(Mutex::new(state)) }
    }

    /// From now on these faults.
    pub fn set(&self, faults: Faults) {
        let mut state = lock(&self.state);
        state.faults = faults;
        state.rooms.iter().filter_map(Weak::upgrade).for_each(|room| room.ring());
    }

    /// What went wrong so far.
    pub fn counts(&self) -> FaultCounts {
        lock(&self.state).counts
    }

    fn pass(&self, operation: &'static str) -> Result<()> {
        let state = lock(&self.state);
        if state.faults.cut {
            return Err(Error::new(ErrorKind::Closed, operation).about("cut by a fault"));
        }
        if state.faults.busy && operation == "send" {
            return Err(Error::new(ErrorKind::Busy, operation).about("made busy by a fault"));
        }
        Ok(())
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faulty({:?}, {:?})", self.inner, lock(&self.state).faults)
    }
}

impl Transport for Faulty {
    fn id(&self) -> TransportId {
        TransportId::new(&format!("faulty-{}", self.inner.id()))
    }

    fn capability(&self) -> Capability {
        self.inner.capability()
    }

    fn trouble(&self) -> Option<String> {
        let cut = lock(&self.state).faults.cut.then(|| "cut by a fault".to_owned());
        cut.or_else(|| self.inner.trouble())
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let counts = self.counts();
        let own = [("lost", counts.lost), ("duplicated", counts.duplicated)];
        [self.inner.figures(), own.into(), vec![("delayed", counts.delayed)]].concat()
    }

    fn greeting(&self, peer: PeerId) -> Result<Greeting> {
        self.inner.greeting(peer)
    }

    fn meet(&self, peer: PeerId, greeting: Greeting) -> Result<Vec<u8>> {
        self.inner.meet(peer, greeting)
    }

    fn confirm(&self, peer: PeerId, answer: &[u8]) -> Result<()> {
        self.inner.confirm(peer, answer)
    }

    fn part(&self, peer: PeerId) {
        self.inner.part(peer);
    }

    fn mail_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.mail_fd()
    }

    fn mail(&self) -> Vec<Mail> {
        self.inner.mail()
    }

    fn receive(&self, from: PeerId, bytes: &[u8]) {
        self.inner.receive(from, bytes);
    }

    fn open_writer(&self, endpoint: &Endpoint, room: Arc<Cell>) -> Result<Arc<dyn Writer>> {
        self.pass("open a writer")?;
        let mut state = lock(&self.state);
        state.rooms.retain(|room| 0 < room.strong_count());
        state.rooms.push(Arc::downgrade(&room));
        drop(state);
        let inner = self.inner.open_writer(endpoint, room)?;
        Ok(Arc::new(FaultyWriter { faulty: self.clone(), inner, held: Mutex::default() }))
    }

    fn open_reader(&self, endpoint: &Endpoint, news: Arc<Cell>) -> Result<Arc<dyn Reader>> {
        self.pass("open a reader")?;
        self.inner.open_reader(endpoint, news)
    }
}

#[derive(Debug)]
struct FaultyWriter {
    faulty: Faulty,
    inner: Arc<dyn Writer>,
    /// Samples held back, oldest first.
    held: Mutex<VecDeque<(Envelope, Payload)>>,
}

enum Fate {
    Send,
    Lose,
    Duplicate,
    Hold,
}

impl FaultyWriter {
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
    fn let_go(&self, held: &mut VecDeque<(Envelope, Payload)>) -> Result<()> {
        while let Some((envelope, payload)) = held.front() {
            self.inner.send(envelope, payload)?;
            held.pop_front();
        }
        Ok(())
    }
}

impl Writer for FaultyWriter {
    fn loan(&self, len: usize) -> Result<Loan> {
        self.faulty.pass("loan")?;
        self.inner.loan(len)
    }

    fn reserve(&self, len: usize) -> Result<()> {
        self.faulty.pass("send")?;
        self.inner.reserve(len)
    }

    fn cancel(&self) {
        self.inner.cancel();
    }

    fn send(&self, envelope: &Envelope, payload: &Payload) -> Result<Sent> {
        self.faulty.pass("send")?;
        let mut held = lock(&self.held);
        let limit = lock(&self.faulty.state).faults.delay_samples;
        if !held.is_empty() && limit <= held.len() {
            self.let_go(&mut held)?;
        }
        match self.fate(!held.is_empty()) {
            Fate::Send => self.inner.send(envelope, payload),
            Fate::Lose => {
                self.inner.cancel();
                Ok(Sent::default())
            }
            Fate::Duplicate => {
                let mut sent = self.inner.send(envelope, payload)?;
                // A reservation is for one: where there is no place for a second, none is sent.
                if let Ok(again) = self.inner.send(envelope, payload) {
                    sent.displaced += again.displaced;
                    lock(&self.faulty.state).counts.duplicated += 1;
                }
                Ok(sent)
            }
            Fate::Hold => {
                self.inner.cancel();
                held.push_back((*envelope, payload.clone()));
                Ok(Sent::default())
            }
        }
    }

    fn send_to(&self, reader: Gid, envelope: &Envelope, payload: &Payload) -> Result<Sent> {
        self.faulty.pass("send")?;
        self.let_go(&mut lock(&self.held))?;
        self.inner.send_to(reader, envelope, payload)
    }

    fn connect(&self, ticket: &Ticket) -> Result<Connected> {
        self.faulty.pass("connect")?;
        self.inner.connect(ticket)
    }

    fn disconnect(&self, reader: Gid) {
        self.inner.disconnect(reader);
    }

    fn lost(&self) -> Vec<Gid> {
        self.inner.lost()
    }

    fn readers(&self) -> usize {
        self.inner.readers()
    }
}

impl Drop for FaultyWriter {
    fn drop(&mut self) {
        let mut held = std::mem::take(self.held.get_mut().unwrap_or_else(PoisonError::into_inner));
        let is_cut = lock(&self.faulty.state).faults.cut;
        if is_cut || self.let_go(&mut held).is_err() {
            lock(&self.faulty.state).counts.lost += held.len() as u64;
        }
    }
}

/// Nothing panics while holding these locks, so a poisoned one is still sound.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

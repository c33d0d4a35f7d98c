//! The wire: who else is in the domain, and topics that are no flows.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use tsuji_core::{History, Peers, Qos};
use tsuji_platform::clock;
use tsuji_platform::ordered::{Mutex, MutexGuard};
use tsuji_platform::poll::Waker;
use tsuji_transport::deferred::told;
use tsuji_transport::engines::Need;
use tsuji_transport::wire::{
    Announcements, ChannelSpec, Found, Inlet, NetworkAddresses, Outlet, Relates, Treatment, Wire,
};
use tsuji_transport::{Bytes, Error, ErrorKind, Gid, PeerId, Result};

use crate::engine::{EndpointSpec, EngineReader, EngineWriter, Listener, Tap};
use crate::membership::{Doing, Lease, Turn};
use crate::{EngineTransport, HEADER_LEN, Shared, is_plain_cdr};

impl Wire for EngineTransport {
    fn peers(&self) -> Peers {
        self.shared.about.peers
    }

    fn relates(&self) -> Relates {
        self.shared.about.relates
    }

    fn announcements(&self) -> Result<Announcements, String> {
        // What an engine that is just starting announces is heard before its participant is here.
        let is_starting = self.shared.turns.doing().is_some();
        if is_starting || self.shared.membership.is_there() {
            return Err("its engine has started".to_owned());
        }
        self.shared.engine.announcements()
    }

    fn join(&self) -> Result<Gid> {
        Ok(Gid(self.shared.watched()?.participant().guid()))
    }

    fn moved(&self) -> Option<String> {
        self.shared.moved()
    }

    fn leave(&self) -> Vec<Found> {
        self.shared.let_go();
        crate::lock(&self.shared.known).clear()
    }

    fn treat(&self, peer: PeerId, treatment: Treatment) {
        if self.shared.is_current() {
            self.shared.treat(peer, treatment);
        }
    }

    fn addresses(&self) -> NetworkAddresses {
        let mut addresses = NetworkAddresses::default();
        if self.shared.is_current() {
            self.shared.membership.with_participant(|it| addresses = it.addresses());
        }
        addresses
    }

    fn found(&self) -> Vec<Found> {
        let shared = &self.shared;
        if !shared.is_current() || !shared.membership.is_there() {
            return Vec::new();
        }
        shared.found().unwrap_or_else(|error| {
            told::warn!("nobody is found: {error}");
            Vec::new()
        })
    }

    fn open_outlet(&self, spec: &ChannelSpec) -> Result<Box<dyn Outlet>> {
        let lease = self.shared.watched()?;
        let engine = lease.participant().writer(&endpoint_spec(spec))?;
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(EngineOutlet { shared, engine: Some(Arc::from(engine)), lease }))
    }

    fn open_inlet(&self, spec: &ChannelSpec) -> Result<Box<dyn Inlet>> {
        let lease = self.shared.watched()?;
        let mut engine = lease.participant().reader(&endpoint_spec(spec))?;
        let core = Arc::new(InletCore {
            shared: Arc::clone(&self.shared),
            tap: engine.tap(),
            samples_max: samples_max(&spec.qos),
            state: Mutex::default(),
        });
        engine.listen(Arc::new(Ear(Arc::downgrade(&core))))?;
        // What came before anybody listened.
        core.gather();
        Ok(Box::new(EngineInlet { engine, core, _lease: lease }))
    }
}

impl Shared {
    fn treat(&self, peer: PeerId, treatment: Treatment) {
        // Under the lock, so that the participant is told last what was said last.
        let mut treatments = crate::lock(&self.treatments);
        match treatment {
            Treatment::Wait => drop(treatments.remove(&peer)),
            Treatment::PassOver | Treatment::Meet => drop(treatments.insert(peer, treatment)),
        }
        self.membership.with_participant(|participant| participant.treat(peer, treatment));
    }

    /// Treats processes with a participant that has just joined as was said before.
    pub(crate) fn apply_treatments(&self) {
        let treatments = crate::lock(&self.treatments);
        self.membership.with_participant(|participant| {
            treatments.iter().for_each(|(peer, it)| participant.treat(*peer, *it));
        });
    }

    /// The participant, which watches the domain from the first call on, and is never left after that.
    fn watched(self: &Arc<Self>) -> Result<Lease> {
        let lease = self.participant(|| Need::Wire)?;
        if lease.watch().is_some() {
            return Ok(lease);
        }
        let _turn = Turn::take(self, Doing::Start);
        if lease.watch().is_none() {
            let waker: Arc<dyn Listener> =
                Arc::new(Lookout(Arc::clone(&self.control_message.waker)));
            lease.keep_watching(lease.participant().watch(&waker)?);
            // What was there before anybody listened.
            self.wake();
        }
        Ok(lease)
    }

    fn found(self: &Arc<Self>) -> Result<Vec<Found>> {
        let lease = self.watched()?;
        let own = lease.participant().guid();
        // Under the lock, so that what was found first is told first.
        let mut known = crate::lock(&self.known);
        let mut told = Vec::new();
        for found in lease.watch().map(|it| it.take()).unwrap_or_default() {
            if prefix(&name_of(&found)) != prefix(&Gid(own)) {
                known.note(found, &mut told);
            }
        }
        Ok(told)
    }
}

fn name_of(found: &Found) -> Gid {
    match found {
        Found::Participant(it) => it.name,
        Found::Endpoint(it) => it.name,
        Found::Gone(name) => *name,
    }
}

/// What all names of one participant begin with.
fn prefix(name: &Gid) -> &[u8] {
    &name.0[..12]
}

fn endpoint_spec(spec: &ChannelSpec) -> EndpointSpec<'_> {
    EndpointSpec {
        topic: &spec.topic,
        type_name: &spec.type_name,
        is_keyed: false,
        qos: &spec.qos,
        keep_all_max: KEEP_ALL_MAX,
        user_data: &spec.user_data,
    }
}

/// What an outlet that keeps all gives late joiners.
const KEEP_ALL_MAX: u32 = 4096;

/// What an inlet that keeps all holds untaken: as much as a process with very many endpoints says of
/// them at once.
const INLET_SAMPLES_MAX: usize = 1 << 16;

/// What an inlet holds untaken, in bytes; one sample more fits always.
const INLET_BYTES_MAX: usize = 64 << 20;

fn samples_max(qos: &Qos) -> usize {
    match qos.history {
        History::KeepLast(depth) => depth.max(1) as usize,
        History::KeepAll => INLET_SAMPLES_MAX,
    }
}

/// Wakers when the engine has found somebody. It does not keep what watches.
struct Lookout(Arc<Waker>);

impl Listener for Lookout {
    fn data_available(&self) {
        self.0.give();
    }
}

struct EngineOutlet {
    shared: Arc<Shared>,
    /// `None` when it is gone.
    engine: Option<Arc<dyn EngineWriter>>,
    lease: Lease,
}

impl Outlet for EngineOutlet {
    fn name(&self) -> Gid {
        Gid(self.engine.as_ref().map_or_else(Default::default, |it| it.guid()))
    }

    fn write(&self, bytes: &[u8]) -> Result<()> {
        self.shared.open("write")?;
        self.shared.fits(bytes.len())?;
        if bytes.len() < HEADER_LEN {
            let error = Error::new(ErrorKind::Invalid, "write");
            return Err(error.about("no CDR; allowed: CDR with its header of 4 bytes"));
        }
        let engine = self.engine.as_ref().ok_or_else(|| Error::new(ErrorKind::Closed, "write"))?;
        engine.write(&Bytes::copy_from(bytes), clock::wall_ns())
    }
}

impl Drop for EngineOutlet {
    fn drop(&mut self) {
        if self.shared.is_current() {
            self.shared.linger(self.engine.take(), self.lease.clone());
        }
    }
}

impl fmt::Debug for EngineOutlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineOutlet").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// What arrives is taken from the engine at once, whose thread would else wait for room.
struct EngineInlet {
    // In this order: callbacks end before what they look at.
    engine: Box<dyn EngineReader>,
    core: Arc<InletCore>,
    _lease: Lease,
}

struct InletCore {
    shared: Arc<Shared>,
    tap: Arc<dyn Tap>,
    samples_max: usize,
    state: Mutex<Arrivals>,
}

/// Beyond the depth, or [`INLET_SAMPLES_MAX`], and beyond [`INLET_BYTES_MAX`] the oldest are dropped.
#[derive(Default)]
struct Arrivals {
    samples: VecDeque<(Gid, Bytes)>,
    bytes: usize,
}

impl Arrivals {
    fn push(&mut self, writer: Gid, bytes: Bytes, samples_max: usize) {
        self.bytes += bytes.len();
        self.samples.push_back((writer, bytes));
        while samples_max < self.samples.len()
            || (INLET_BYTES_MAX < self.bytes && 1 < self.samples.len())
        {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<(Gid, Bytes)> {
        let (writer, bytes) = self.samples.pop_front()?;
        self.bytes -= bytes.len();
        Some((writer, bytes))
    }
}

impl InletCore {
    /// Takes from the engine what has arrived.
    fn gather(&self) {
        let mut state = self.lock();
        // An error here means that the reader is about to go.
        while let Ok(Some(arrived)) = self.tap.take() {
            if is_plain_cdr(&arrived.bytes) {
                state.push(Gid(arrived.writer), arrived.bytes, self.samples_max);
            } else {
                self.shared.figures.count_invalid();
            }
        }
        drop(state);
        self.shared.wake();
    }

    fn lock(&self) -> MutexGuard<'_, Arrivals> {
        crate::lock(&self.state)
    }
}

/// What the engine calls. It does not keep the inlet.
struct Ear(Weak<InletCore>);

impl Listener for Ear {
    fn data_available(&self) {
        if let Some(core) = self.0.upgrade() {
            core.gather();
        }
    }
}

impl Inlet for EngineInlet {
    fn name(&self) -> Gid {
        Gid(self.engine.guid())
    }

    fn take(&self) -> Result<Option<(Gid, Bytes)>> {
        self.core.shared.open("take")?;
        Ok(self.core.lock().pop())
    }
}

impl fmt::Debug for EngineInlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineInlet").field("name", &self.name()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inlet_that_is_full_drops_its_oldest() {
        let mut arrivals = Arrivals::default();
        let push = |it: &mut Arrivals, writer, len: usize| {
            it.push(Gid([writer; 16]), Bytes::copy_from(&vec![0; len]), 2);
        };
        (1..=3).for_each(|writer| push(&mut arrivals, writer, 10));
        assert_eq!(arrivals.pop().unwrap().0, Gid([2; 16]));
        push(&mut arrivals, 4, INLET_BYTES_MAX + 1);
        assert_eq!((arrivals.samples.len(), arrivals.bytes), (1, INLET_BYTES_MAX + 1));
        assert_eq!(arrivals.pop().unwrap().0, Gid([4; 16]));
        assert!(arrivals.pop().is_none());
    }
}

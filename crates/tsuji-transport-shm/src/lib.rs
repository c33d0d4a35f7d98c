//! Samples by shared memory between processes of one host.
//!
//! Each process owns one **arena**, a growable file of memory without a name, and hands its
//! descriptor to the others in its handshake. A writer's samples stand in **slots** of its process's
//! arena; each slot has one bit for every reader that may still look at it. For each writer a
//! reader keeps a **ring** of slot numbers in its own process's arena. Nothing has a name in any
//! file system and no count has to be repaired, so a process killed at any instruction leaves
//! nothing: its peers clear its bits, and the system frees its memory with the last mapping.
//!
//! This crate knows neither topics nor types: it is told who meets whom.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tsuji_core::{Capability, Scopes, TransportId};
use tsuji_platform::clock::{self, MonotonicClock};
use tsuji_platform::fork::Generation;
use tsuji_platform::life::Life;
use tsuji_platform::memory::Backing;
use tsuji_transport::bell::{Bells, Cell};
use tsuji_transport::{
    Endpoint, Error, ErrorKind, Handshake, PeerId, Reader, Result, Transport, Writer,
};

mod arena;
mod layout;
mod peer;
mod reader;
mod ring;
mod shortage;
mod slot;
/// What the ring stands on; `tests/loom_ring.rs` puts loom's in its place.
mod sync {
    pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
}
mod address;
mod writer;

use address::RingAddress;
use arena::{Arena, Block, Outlook, bytes_given_back};
use layout::{PROBES, READERS_MAX, VERSION};
use peer::Peer;
use reader::ShmReader;
use writer::{ShmWriter, WriterCore};

/// Limits and places of the shared memory of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShmConfig {
    /// Where the memory comes from.
    pub backing: Backing,
    /// The most bytes this process lends. At the limit a writer is Busy until a reader lets go;
    /// a sample that could never fit is TooLarge.
    pub memory_bytes_max: u64,
}

impl Default for ShmConfig {
    fn default() -> Self {
        Self { backing: Backing::Anonymous, memory_bytes_max: 4 << 30 }
    }
}

/// The shared memory of this process.
#[derive(Clone, Debug)]
pub struct SharedMemory {
    shared: Arc<Shared>,
}

impl SharedMemory {
    /// Reserves what every process needs, some pages. `id` names this process, `life` lasts
    /// until nothing here looks at the memory of others any more, and `bells` is where its waiting
    /// threads sleep.
    pub fn create(
        id: PeerId,
        life: &Arc<Life>,
        bells: &Arc<Bells>,
        config: &ShmConfig,
    ) -> Result<Self> {
        let arena = Arena::create(&config.backing, config.memory_bytes_max)?;
        let shared = Shared {
            id,
            life: Arc::clone(life),
            arena,
            bells: Arc::clone(bells),
            clock: MonotonicClock::own(),
            generation: Generation::current(),
            state: Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl Transport for SharedMemory {
    fn id(&self) -> TransportId {
        TransportId::new("shm")
    }

    fn capability(&self) -> Capability {
        Capability {
            scopes: Scopes { intra: true, local: true, remote: false },
            reliable: true,
            loan: true,
            typed: false,
            immediate: true,
            directed: true,
            whole_envelope: true,
            cdr_only: false,
            sample_bytes_max: self.shared.arena.block_bytes_max() - layout::DATA_AT as u64,
            readers_max: READERS_MAX,
        }
    }

    fn is_confined(&self) -> bool {
        true
    }

    fn trouble(&self) -> Option<String> {
        self.shared.trouble(clock::monotonic_ns())
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let state = self.shared.lock();
        vec![
            ("reserved_bytes", self.shared.arena.reserved_bytes()),
            ("memory_bytes_max", self.shared.arena.bytes_max()),
            ("peers", state.peers.len() as u64),
            ("writers_with_slots", state.writers.len() as u64),
            ("rings_of_dropped_readers", state.rings.len() as u64),
        ]
    }

    fn handshake(&self, peer: PeerId) -> Result<Handshake> {
        self.shared.open("handshake")?;
        let probe = self.shared.probe(peer)?;
        self.shared.arena.header().probes[probe as usize].store(0, Ordering::Release);
        let fds = [self.shared.arena.as_owned()?, clone_fd(&*self.shared.bells)?];
        let words = [VERSION, probe];
        let mut bytes = words.map(u32::to_le_bytes).concat();
        bytes.extend(self.shared.clock.to_bytes());
        Ok(Handshake { bytes, fds: fds.into() })
    }

    fn meet(&self, peer: PeerId, handshake: Handshake) -> Result<Vec<u8>> {
        self.shared.open("meet")?;
        let refused = |why: String| Error::new(ErrorKind::Unsupported, "meet").about(why);
        let misshapen = || refused(format!("a handshake of {} bytes", handshake.bytes.len()));
        let (words, rest) = handshake.bytes.split_first_chunk().ok_or_else(misshapen)?;
        let (version, probe) = (word(words, 0), word(words, 4));
        if version != VERSION {
            return Err(refused(format!("its memory layout is {version}, ours is {VERSION}")));
        }
        let clock = <[u8; MonotonicClock::BYTES]>::try_from(rest).map_err(|_| misshapen())?;
        let lead_ns = self.shared.clock.lead_of(&MonotonicClock::from_bytes(clock));
        let fds = <[_; 2]>::try_from(handshake.fds);
        let [arena, bells] = fds.map_err(|fds| refused(format!("{} descriptors", fds.len())))?;
        let known = Peer::open(peer, arena, bells, Arc::clone(&self.shared.life), lead_ns)
            .map_err(|error| refused("its memory cannot be mapped".to_owned()).because(error))?;
        let probe_word = known.header().probes.get(probe as usize);
        let probe_word = probe_word.ok_or_else(|| refused(format!("probe {probe}")))?;
        let answer = proof(self.shared.id, peer);
        probe_word.store(answer, Ordering::Release);
        self.shared.lock().peers.insert(peer, Arc::new(known));
        Ok(answer.to_le_bytes().into())
    }

    fn confirm(&self, peer: PeerId, answer: &[u8]) -> Result<()> {
        self.shared.open("confirm")?;
        let probe = self.shared.lock().probes.remove(&peer);
        let refused = |why: &str| Error::new(ErrorKind::Unsupported, "confirm").about(why);
        let probe = probe.ok_or_else(|| refused("it was not greeted"))?;
        let found = self.shared.arena.header().probes[probe as usize].load(Ordering::Acquire);
        let expected = proof(peer, self.shared.id);
        if found != expected || answer != expected.to_le_bytes() {
            return Err(refused("what it wrote is not in this memory"));
        }
        Ok(())
    }

    fn part(&self, peer: PeerId) {
        if !self.shared.generation.is_current() {
            return;
        }
        let mut state = self.shared.lock();
        state.peers.remove(&peer);
        state.probes.remove(&peer);
        for ring in state.rings.extract_if(.., |ring| ring.writer == peer) {
            self.shared.arena.free(ring.block);
        }
        let writers = state.writers.clone();
        drop(state);
        writers.iter().for_each(|writer| writer.part(peer));
        self.shared.sweep();
        // What the dead held may be what another writer waits for.
        self.shared.arena.header().feed(|cell| self.shared.bells.ring(cell));
    }

    fn open_writer(&self, endpoint: &Endpoint, room: Arc<Cell>) -> Result<Arc<dyn Writer>> {
        let _ = endpoint;
        self.shared.open("open a writer")?;
        self.shared.sweep();
        Ok(Arc::new(ShmWriter::open(Arc::clone(&self.shared), room)))
    }

    fn open_reader(&self, endpoint: &Endpoint, news: Arc<Cell>) -> Result<Arc<dyn Reader>> {
        self.shared.open("open a reader")?;
        self.shared.sweep();
        Ok(Arc::new(ShmReader::open(Arc::clone(&self.shared), endpoint, news)?))
    }
}

/// What all endpoints of the process share.
#[derive(Debug)]
struct Shared {
    id: PeerId,
    life: Arc<Life>,
    arena: Arc<Arena>,
    bells: Arc<Bells>,
    clock: MonotonicClock,
    generation: Generation,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    peers: HashMap<PeerId, Arc<Peer>>,
    /// The probes that were named in handshakes and not confirmed yet.
    probes: HashMap<PeerId, u32>,
    /// Writers, and what is left of closed ones while readers hold their samples.
    writers: Vec<Arc<WriterCore>>,
    /// Rings of dropped readers that their writers may still touch.
    rings: Vec<DroppedRing>,
}

#[derive(Debug)]
struct DroppedRing {
    writer: PeerId,
    ring: RingAddress,
    block: Block,
}

impl Shared {
    fn id(&self) -> PeerId {
        self.id
    }

    fn open(&self, operation: &'static str) -> Result<()> {
        if self.generation.is_current() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Closed, operation).about("this is a forked child"))
    }

    /// A place for the proof that `peer` shares this memory.
    fn probe(&self, peer: PeerId) -> Result<u32> {
        let mut state = self.lock();
        state.probes.remove(&peer);
        let free = (0..PROBES as u32).find(|probe| !state.probes.values().any(|it| it == probe));
        let probe = free.ok_or_else(|| {
            Error::new(ErrorKind::Exhausted, "handshake")
                .about(format!("{PROBES} processes are being met at once"))
        })?;
        state.probes.insert(peer, probe);
        Ok(probe)
    }

    fn peer(&self, id: PeerId) -> Result<Arc<Peer>> {
        let peer = self.lock().peers.get(&id).map(Arc::clone);
        peer.ok_or_else(|| {
            Error::new(ErrorKind::Closed, "connect").about(format!("process {id} is not known"))
        })
    }

    /// Frees a ring of this process that is closed, at once if nobody can touch it.
    fn drop_ring(&self, writer: PeerId, ring: RingAddress, block: Block) {
        let mut state = self.lock();
        let is_over = ring.retire_unless_connected()
            || ring.header().left.load(Ordering::Acquire) != 0
            || !state.peers.contains_key(&writer);
        if is_over {
            self.arena.free(block);
        } else {
            state.rings.push(DroppedRing { writer, ring, block });
        }
    }

    /// Why a writer was refused memory, while as much can still not be had. What somebody else holds
    /// the lock of is not waited for: until it can be looked at, the trouble goes on.
    fn trouble(&self, now_ns: u64) -> Option<String> {
        let refusal = self.arena.shortage.refusal()?;
        let (mut is_idle, mut idle_bytes) = (false, 0);
        for writer in self.writers_now() {
            writer.see_idle(|class| {
                is_idle |= class == refusal.class;
                idle_bytes += bytes_given_back(class);
            });
        }
        let can_be_had = match self.arena.outlook(refusal.class, idle_bytes) {
            Outlook::Good => true,
            Outlook::Bad => is_idle,
            Outlook::SystemUnknown => {
                let age_ns = now_ns.saturating_sub(refusal.at_ns);
                is_idle || !refusal.is_by_system || BELIEVED_NS <= age_ns
            }
        };
        if !can_be_had {
            return Some(refusal.why);
        }
        self.arena.shortage.end(|last| *last == refusal);
        None
    }

    /// The writers, or none when the list is in use just now.
    fn writers_now(&self) -> Vec<Arc<WriterCore>> {
        self.state.try_lock().map_or_else(|_| Vec::new(), |state| state.writers.clone())
    }

    fn remember_writer(&self, core: &Arc<WriterCore>) {
        self.lock().writers.push(Arc::clone(core));
    }

    /// Frees what nobody can touch any more.
    fn sweep(&self) {
        let mut state = self.lock();
        for ring in
            state.rings.extract_if(.., |it| it.ring.header().left.load(Ordering::Acquire) != 0)
        {
            self.arena.free(ring.block);
        }
        // A writer that is open is held by its handle too.
        state.writers.retain(|core| 1 < Arc::strong_count(core) || !core.dissolve());
    }

    /// Nothing panics while holding this lock, so a poisoned one is still sound.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// So long a refusal by the system is believed where nothing tells what the system has left.
const BELIEVED_NS: u64 = 1_000_000_000;

impl Arena {
    fn as_owned(&self) -> Result<std::os::fd::OwnedFd> {
        clone_fd(self)
    }
}

fn clone_fd(of: &impl std::os::fd::AsFd) -> Result<std::os::fd::OwnedFd> {
    of.as_fd().try_clone_to_owned().map_err(|error: io::Error| {
        Error::new(ErrorKind::Exhausted, "handshake").about("descriptors").because(error)
    })
}

fn word(bytes: &[u8; 8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// What `writer` writes into the memory of `owner`. Never zero.
fn proof(writer: PeerId, owner: PeerId) -> u64 {
    let mut mixed = 0x9e37_79b9_7f4a_7c15u64;
    for byte in writer.0.iter().chain(&owner.0) {
        mixed = (mixed ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
    }
    mixed | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_by_the_system_is_believed_for_a_while() {
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        let life = tsuji_conformance::life();
        let memory = SharedMemory::create(PeerId::default(), &life, &bells, &ShmConfig::default());
        let shared = memory.unwrap().shared;
        assert_eq!(shared.trouble(0), None);
        let error = Error::new(ErrorKind::Exhausted, "reserve shared memory")
            .because(io::Error::from(io::ErrorKind::OutOfMemory));
        shared.arena.note_refusal(100, 1 << 20, &error);
        let trouble = "the system has no more shared memory: out of memory";
        assert_eq!(shared.trouble(100).as_deref(), Some(trouble));
        assert_eq!(shared.trouble(99 + BELIEVED_NS).as_deref(), Some(trouble));
        assert_eq!(shared.trouble(100 + BELIEVED_NS), None);
        assert_eq!(shared.trouble(100), None, "it is forgotten");

        shared.arena.note_refusal(100, 1 << 20, &error);
        shared.arena.shortage.given(256 << 10);
        assert!(shared.trouble(100).is_some(), "less than that proves nothing");
        shared.arena.shortage.given(1 << 20);
        assert_eq!(shared.trouble(100), None);

        let error = Error::new(ErrorKind::TooLarge, "loan");
        shared.arena.note_refusal(100, 1 << 20, &error);
        assert_eq!(shared.trouble(100), None);
    }
}

//! Participants of this host that are passed over: see `shim/peer_processes.h`.

use std::ptr::{self, NonNull};

use tsuji_platform::fork::Generation;
use tsuji_transport::wire::Treatment;
use tsuji_transport::{Error, ErrorKind, PeerId, Result};

use crate::PeerMarks;
use crate::ffi;

/// Those of one domain, which was deleted before.
#[derive(Debug)]
pub(super) struct PeerProcesses {
    all: NonNull<ffi::PeerProcesses>,
    /// In a forked child nobody has let go of its lock.
    generation: Generation,
}

// SAFETY: it has a lock of its own.
unsafe impl Send for PeerProcesses {}
// SAFETY: as above.
unsafe impl Sync for PeerProcesses {}

impl PeerProcesses {
    pub(super) fn new(marks: &PeerMarks) -> Result<Self> {
        const WHAT: &str = "know peer processes";
        let (claim, key) = (super::text(WHAT, &marks.claim)?, super::text(WHAT, &marks.key)?);
        // SAFETY: both strings end with a nul.
        let all = unsafe { ffi::tsuji_peers_new(claim.as_ptr(), key.as_ptr()) };
        let all = NonNull::new(all).ok_or_else(|| Error::new(ErrorKind::Exhausted, WHAT))?;
        Ok(Self { all, generation: Generation::current() })
    }

    /// Creates a domain that knows these.
    pub(super) fn with_domain<T>(known: Option<&Self>, create: impl FnOnce() -> T) -> T {
        // SAFETY: they are there while the domain is.
        unsafe {
            ffi::tsuji_peers_for_next(known.map_or(ptr::null_mut(), |it| it.all.as_ptr()));
        }
        let created = create();
        // SAFETY: none is always allowed.
        unsafe { ffi::tsuji_peers_for_next(ptr::null_mut()) };
        created
    }

    /// Called while the participant is there.
    pub(super) fn treat(&self, peer: PeerId, treatment: Treatment) {
        let Ok(process) = super::text("treat a process", &peer.to_string()) else { return };
        let treatment = match treatment {
            Treatment::Wait => ffi::WAIT,
            Treatment::PassOver => ffi::PASS_OVER,
            Treatment::Meet => ffi::MEET,
        };
        // SAFETY: its domain has a participant, and the string ends with a nul.
        unsafe { ffi::tsuji_peers_treat(self.all.as_ptr(), process.as_ptr(), treatment) };
    }
}

impl Drop for PeerProcesses {
    fn drop(&mut self) {
        if self.generation.is_current() {
            // SAFETY: the domain that looked at them is deleted.
            unsafe { ffi::tsuji_peers_free(self.all.as_ptr()) };
        }
    }
}

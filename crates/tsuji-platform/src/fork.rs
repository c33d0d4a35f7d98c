//! Tells a process from its forked children.
//!
//! A child shares its parent's mapped memory and descriptors, so a destructor that runs in the
//! child would release what the parent still uses. Owners of such things keep the [`Generation`]
//! they were made in and do nothing in another one.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);
static INSTALL: Once = Once::new();

/// The process, as counted by forks since the first call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(u32);

impl Generation {
    /// The calling process.
    pub fn current() -> Self {
        INSTALL.call_once(|| {
            // SAFETY: the handler only adds to an atomic, which is safe in a freshly forked child.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
        Self(GENERATION.load(Ordering::Relaxed))
    }

    /// Whether the calling process is the one this value was made in, and not a child of it.
    #[inline]
    pub fn is_current(self) -> bool {
        GENERATION.load(Ordering::Relaxed) == self.0
    }
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

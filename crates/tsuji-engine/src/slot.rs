//! The place for a listener, of engines that call it themselves.

use std::sync::{Arc, Mutex, PoisonError};

use crate::Listener;

/// A listener that may be set once it is known, and whose calls end with [`ListenerSlot::close`]. What it calls must not
/// open or close its own place, which waits for it.
#[derive(Default)]
pub struct ListenerSlot(Mutex<Option<Arc<dyn Listener>>>);

impl ListenerSlot {
    /// Calls this listener from now on.
    pub fn open(&self, listener: Arc<dyn Listener>) {
        self.with(|it| *it = Some(listener));
    }

    /// Calls nobody any more, and waits for a call that is under way.
    pub fn close(&self) {
        self.with(|it| *it = None);
    }

    /// Says that something has arrived or was found.
    pub fn data_available(&self) {
        self.with(|it| it.iter().for_each(|it| it.data_available()));
    }

    /// Says that the set of endpoints that match has changed.
    pub fn matched(&self) {
        self.with(|it| it.iter().for_each(|it| it.matched()));
    }

    /// A listener that panics leaves it as it was, so a poisoned lock is still sound.
    fn with(&self, what: impl FnOnce(&mut Option<Arc<dyn Listener>>)) {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl std::fmt::Debug for ListenerSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListenerSlot").finish_non_exhaustive()
    }
}

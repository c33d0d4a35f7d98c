//! Whom an endpoint calls when something happens.

use std::sync::{Arc, Mutex};

use tsuji_engine::Listener;

/// Calls of a listener, which end with [`Ear::close`].
#[derive(Default)]
pub(crate) struct Ear(Mutex<Option<Arc<dyn Listener>>>);

impl Ear {
    pub(crate) fn open(&self, listener: Arc<dyn Listener>) {
        *crate::lock(&self.0) = Some(listener);
    }

    /// Waits for a call that is under way.
    pub(crate) fn close(&self) {
        *crate::lock(&self.0) = None;
    }

    pub(crate) fn data_available(&self) {
        if let Some(listener) = &*crate::lock(&self.0) {
            listener.data_available();
        }
    }

    pub(crate) fn matched(&self) {
        if let Some(listener) = &*crate::lock(&self.0) {
            listener.matched();
        }
    }
}

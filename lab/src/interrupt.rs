//! Ctrl-C: the first ends the measuring and keeps what there is, the second ends the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use tsuji_platform::signals;

/// Whether the user wants it to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens to SIGINT, SIGTERM and SIGHUP from now on, but to none that was ignored at the start.
    pub(crate) fn listen() -> Self {
        let interrupt = Self::default();
        for signal in signals::heard(&[SIGINT, SIGTERM, SIGHUP]) {
            // A signal that cannot be listened to ends the program as it always did, and the
            // children end with their input.
            let _ =
                flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&interrupt.0));
            let _ = flag::register(signal, Arc::clone(&interrupt.0));
        }
        interrupt
    }

    /// Whether a signal has come.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a program answers that was interrupted.
pub(crate) const INTERRUPTED: i32 = 130;

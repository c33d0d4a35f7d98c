//! A terminal whose keys or screen are taken goes back to its owner before a signal ends or stops this process.

use std::io;
use std::thread;

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;
use tsuji_platform::signals;

/// For how long the terminal is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Until this process, which is stopped, goes on.
    GoesOn,
    /// This process ends.
    Ends,
}

/// A thread that hears the signals, until this is dropped.
pub(crate) struct TerminalGuard {
    signals: Handle,
}

impl TerminalGuard {
    /// Calls `give_back` before a signal ends or stops this process, and `take_again` when it goes on, or was not stopped. Both may
    /// be called at any time, on another thread, and more than once.
    pub(crate) fn at_signals(give_back: fn(Until), take_again: fn()) -> io::Result<Self> {
        let ours = signals::heard(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP]);
        let mut heard = Signals::new(ours.into_iter().chain([SIGCONT]))?;
        let handle = heard.handle();
        thread::Builder::new().name("terminal".to_owned()).spawn(move || {
            for signal in heard.forever() {
                if signal == SIGCONT {
                    take_again();
                    continue;
                }
                match signal {
                    SIGTSTP => {
                        give_back(Until::GoesOn);
                        signals::stop();
                        take_again();
                    }
                    SIGQUIT => {
                        give_back(Until::Ends);
                        drop(emulate_default_handler(signal));
                    }
                    // The others end the command by another thread.
                    _ => give_back(Until::Ends),
                }
            }
        })?;
        Ok(Self { signals: handle })
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        self.signals.close();
    }
}

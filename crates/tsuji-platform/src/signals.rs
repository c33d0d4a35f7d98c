//! Which signals are this process's to hear.

use libc::c_int;

/// Those of `signals` that were not ignored when this process began, as `nohup` has SIGHUP ignored and a shell without a
/// terminal SIGINT for what it starts in the background. Whoever started it so wants it to stay, so a handler is set for
/// the others alone. To be asked before handlers are set.
pub fn heard(signals: &[c_int]) -> Vec<c_int> {
    signals.iter().copied().filter(|it| !is_ignored(*it)).collect()
}

fn is_ignored(signal: c_int) -> bool {
    // SAFETY: all bytes 0 are a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: asks only, and has a valid place for the answer. An unknown number is refused.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Stops this process as a SIGTSTP does that it does not hear, until it is told to go on. Where nobody could do that, since it is
/// a process that no shell watches over, the system does not stop it, and this returns at once.
pub fn stop() {
    // SAFETY: all bytes 0 are a valid `sigaction`, which is the default, with an empty mask.
    let default: libc::sigaction = unsafe { std::mem::zeroed() };
    let mut before = default;
    // SAFETY: both are valid, and what is set in the end is what was there.
    unsafe {
        if libc::sigaction(libc::SIGTSTP, &raw const default, &raw mut before) == 0 {
            libc::raise(libc::SIGTSTP);
            libc::sigaction(libc::SIGTSTP, &raw const before, std::ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_not_heard() {
        // Signals that nobody else in this process cares for.
        let (ignored, other) = (libc::SIGURG, libc::SIGWINCH);
        // SAFETY: sets no handler.
        unsafe { libc::signal(ignored, libc::SIG_IGN) };
        assert_eq!(heard(&[ignored, other]), [other]);
        // SAFETY: sets no handler.
        unsafe { libc::signal(ignored, libc::SIG_DFL) };
        assert_eq!(heard(&[ignored, other]), [ignored, other]);
    }
}

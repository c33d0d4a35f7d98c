//! When the next sample is due, and when none comes any more.

use std::thread;
use std::time::{Duration, Instant};

use tsuji_platform::clock::monotonic_ns;

/// Sleeps until then.
pub(crate) fn sleep_until(due_ns: u64) {
    while let Some(left @ 1..) = due_ns.checked_sub(monotonic_ns()) {
        thread::sleep(Duration::from_nanos(left));
    }
}

/// Waits until `look` says that the last has come, or until for a while no more have. It answers how many have come, and
/// whether the last is among them.
pub(crate) fn until_last(look: impl Fn() -> (usize, bool)) {
    let (mut came, mut since) = (0, Instant::now());
    loop {
        let (now, has_last) = look();
        if now != came {
            (came, since) = (now, Instant::now());
        }
        if has_last || SILENT <= since.elapsed() {
            return;
        }
        thread::sleep(LOOK);
    }
}

/// A flow in which nothing has come for so long has ended.
const SILENT: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

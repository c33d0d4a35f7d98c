use std::collections::VecDeque;
use std::io::Write;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;

use crate::{World, stacks};

/// Names an environment variable: after how many seconds a case counts as hanging.
const SECONDS_VARIABLE: &str = "TSUJI_CASE_SECONDS";

/// Far above what any case takes on a slow and busy machine that is not emulated.
const SECONDS: u64 = 60;

/// Runs one case. When it hangs, the process is aborted and says which case it was.
pub fn run(name: &'static str, world: fn() -> World, case: fn(World)) {
    watch(name.to_owned(), || case(world()));
}

/// Runs the body of a test in the same way, under the name of its thread.
pub fn watched(test: impl FnOnce()) {
    watch(thread::current().name().unwrap_or("a test").to_owned(), test);
}

fn watch(name: String, test: impl FnOnce()) {
    remember_panics();
    let seconds = std::env::var(SECONDS_VARIABLE).ok().and_then(|it| it.parse().ok());
    let limit = Duration::from_secs(seconds.unwrap_or(SECONDS));
    let (done, is_done) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        if is_done.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            let _ = writeln!(std::io::stderr(), "\nnot done after {limit:?} ({SECONDS_VARIABLE})");
            cut(&name);
        }
    });
    test();
    drop(done);
    watchdog.join().unwrap();
}

/// Ends a process in which the test of this name hangs, past the capture of the test harness, which an abort would
/// swallow. Says what panicked before, if that is remembered, and where the threads stand.
pub fn cut(name: &str) -> ! {
    let mut out = std::io::stderr();
    // Whoever reads this may have gone; the process ends all the same.
    let _ = writeln!(out, "\n{name} hangs");
    for panic in PANICS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let _ = writeln!(out, "hang: before that: {panic}");
    }
    for line in stacks::of_this_process() {
        let _ = writeln!(out, "hang: {line}");
    }
    std::process::abort();
}

/// The last panics, in whatever thread. A thread that panics may leave others waiting for it, and
/// its message would be lost with the abort.
static PANICS: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());
const PANICS_MAX: usize = 4;

/// From now on [`cut`] says what has panicked.
pub fn remember_panics() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let mut panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
            panics.truncate(PANICS_MAX - 1);
            panics.push_front(panic.to_string());
            drop(panics);
            before(panic);
        }));
    });
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    #[ignore = "the process that the other test starts"]
    fn a_process_that_is_cut() {
        remember_panics();
        let panicked = thread::spawn(|| panic!("a lock is left")).join();
        assert!(panicked.is_err());
        cut("a process");
    }

    #[test]
    #[allow(clippy::print_stdout, reason = "a test says why it did not run")]
    fn a_process_that_is_cut_says_why() {
        if std::env::var_os("TSUJI_TEST_RUNNER").is_some_and(|it| !it.is_empty()) {
            println!("not run: under emulation this program cannot start itself");
            return;
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "watchdog::tests::a_process_that_is_cut"]);
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains("a process hangs\n") && told.contains("a lock is left"), "{told}");
        // Of the debugger, or that there is none.
        assert!(told.contains("hang: no stacks") || told.contains(" < cut < "), "{told}");
    }
}

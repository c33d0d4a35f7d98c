use std::collections::VecDeque;
use std::io::Write;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;

use crate::World;

/// Names an environment variable: after how many seconds a case counts as hanging.
const SECONDS_VARIABLE: &str = "TSUJI_CASE_SECONDS";

/// Far above what any case takes on a slow and busy machine that is not emulated.
const SECONDS: u64 = 60;

/// Runs one case. When it hangs, the process is aborted and says which case it was.
pub fn run(name: &'static str, world: fn() -> World, case: fn(World)) {
    remember_panics();
    let seconds = std::env::var(SECONDS_VARIABLE).ok().and_then(|it| it.parse().ok());
    let limit = Duration::from_secs(seconds.unwrap_or(SECONDS));
    let (done, is_done) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        if is_done.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            shout(&format!("{name} hangs: not done after {limit:?} ({SECONDS_VARIABLE})"));
            std::process::abort();
        }
    });
    case(world());
    drop(done);
    watchdog.join().unwrap();
}

/// The last panics, in whatever thread. A thread that panics may leave others waiting for it, and
/// its message would be lost with the abort.
static PANICS: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());
const PANICS_MAX: usize = 4;

fn remember_panics() {
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

/// Past the capture of the test harness, which an abort would swallow.
fn shout(text: &str) {
    let _ = writeln!(std::io::stderr(), "\ntsuji-conformance: {text}");
    for panic in PANICS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let _ = writeln!(std::io::stderr(), "before that: {panic}");
    }
}

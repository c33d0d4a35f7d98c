//! What tsuji warns of, in the log of the process: by librcutils where that is there, so that it goes where the user's own
//! lines go, else to stderr.
//!
//! Whoever takes a line there may do anything, and call rmw too. So it is handed over by a thread of its own, which
//! holds nothing of tsuji then.

use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tsuji_platform::clock;

use crate::distribution::rcutils;
use crate::ffi::rmw::{
    RMW_LOG_SEVERITY_DEBUG, RMW_LOG_SEVERITY_ERROR, RMW_LOG_SEVERITY_INFO, RMW_LOG_SEVERITY_WARN,
    rmw_log_severity_t,
};

/// From here on what tsuji warns of is logged.
pub(crate) fn begin() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        // It fails where this library is part of a program that has a subscriber, which hears of it then.
        let _ = tracing::subscriber::set_global_default(Forwarder);
    });
    IS_OVER.store(false, Ordering::Release);
}

/// Takes only what is as severe, from here on. At first that is a warning.
pub(crate) fn set_severity(severity: rmw_log_severity_t) {
    SEVERITY.store(severity, Ordering::Release);
    tracing::callsite::rebuild_interest_cache();
}

/// Counts a context of the process.
pub(crate) fn context_begins() {
    CONTEXTS.fetch_add(1, Ordering::AcqRel);
    flush();
}

/// A context is shut down. When the last is, what takes lines in this process may end too: it gets what was said so
/// far, and no more.
pub(crate) fn context_ends() {
    flush();
    if CONTEXTS.fetch_sub(1, Ordering::AcqRel) == 1 {
        IS_OVER.store(true, Ordering::Release);
    }
}

static SEVERITY: AtomicU32 = AtomicU32::new(RMW_LOG_SEVERITY_WARN);
static CONTEXTS: AtomicUsize = AtomicUsize::new(0);
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Lines that wait to be handed over. When full, further ones are counted, and the number is told.
const LINES_MAX: usize = 1000;

/// How long a context waits for its lines to be handed over.
const FLUSH_MAX: Duration = Duration::from_secs(1);

struct Queue {
    lines: VecDeque<(rmw_log_severity_t, String)>,
    left_out: usize,
    is_busy: bool,
    /// The process that has a thread for them; a forked child has none.
    served_in: u32,
}

static QUEUE: Mutex<Queue> =
    Mutex::new(Queue { lines: VecDeque::new(), left_out: 0, is_busy: false, served_in: 0 });
static CHANGED: Condvar = Condvar::new();

fn lock() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn push(severity: rmw_log_severity_t, line: String) {
    let mut queue = lock();
    if LINES_MAX <= queue.lines.len() {
        queue.left_out += 1;
        return;
    }
    if queue.served_in != std::process::id() {
        let builder = std::thread::Builder::new().name("tsuji-log".to_owned());
        if builder.spawn(serve).is_err() {
            drop(queue);
            return print(severity, &line);
        }
        queue.served_in = std::process::id();
        queue.is_busy = false;
    }
    queue.lines.push_back((severity, line));
    CHANGED.notify_all();
}

fn serve() {
    let mut queue = lock();
    loop {
        let next = queue.lines.pop_front().or_else(|| {
            let left_out = std::mem::take(&mut queue.left_out);
            (left_out != 0)
                .then(|| (RMW_LOG_SEVERITY_WARN, format!("{left_out} further lines are left out")))
        });
        let Some((severity, line)) = next else {
            queue.is_busy = false;
            CHANGED.notify_all();
            queue = CHANGED.wait(queue).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        queue.is_busy = true;
        drop(queue);
        hand_over(severity, &line);
        queue = lock();
    }
}

/// Waits until all lines are handed over, for a while at most.
fn flush() {
    let give_up = Instant::now() + FLUSH_MAX;
    let mut queue = lock();
    while queue.served_in == std::process::id() && (queue.is_busy || !queue.lines.is_empty()) {
        let left = give_up.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        queue = CHANGED.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn hand_over(severity: rmw_log_severity_t, line: &str) {
    let log = if IS_OVER.load(Ordering::Acquire) { None } else { rcutils_log() };
    let Some(log) = log else { return print(severity, line) };
    let line = CString::new(line.replace('\0', "\u{fffd}")).unwrap_or_default();
    let severity = c_int::try_from(severity).unwrap_or(c_int::MAX);
    // SAFETY: all texts end with NUL and live through the call, and the format takes one text.
    unsafe { log(&LOCATION, severity, c"rmw_tsuji".as_ptr(), c"%s".as_ptr(), line.as_ptr()) };
}

fn print(severity: rmw_log_severity_t, line: &str) {
    let name = match severity {
        RMW_LOG_SEVERITY_DEBUG => "DEBUG",
        RMW_LOG_SEVERITY_INFO => "INFO",
        RMW_LOG_SEVERITY_WARN => "WARN",
        _ => "ERROR",
    };
    // Where stderr is closed there is nobody to be told.
    let _ = writeln!(std::io::stderr(), "[{name}] [rmw_tsuji]: {line}");
}

/// A place in the source, as librcutils has it. The line alone says what is wrong.
#[repr(C)]
struct Location {
    function_name: *const c_char,
    file_name: *const c_char,
    line_number: usize,
}

// SAFETY: it points to texts that never change.
unsafe impl Sync for Location {}

const NAME: &CStr = c"rmw_tsuji";
static LOCATION: Location =
    Location { function_name: NAME.as_ptr(), file_name: NAME.as_ptr(), line_number: 0 };

type RcutilsLog = unsafe extern "C" fn(*const Location, c_int, *const c_char, *const c_char, ...);

/// `rcutils_log`, if librcutils is in this process.
fn rcutils_log() -> Option<RcutilsLog> {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let mut found = FOUND.load(Ordering::Acquire);
    if found.is_null() {
        found = rcutils(c"rcutils_log");
        FOUND.store(found, Ordering::Release);
    }
    if found.is_null() {
        return None;
    }
    // SAFETY: librcutils has this function with these arguments in all distributions, and is never unloaded: a handle
    // to it is kept open.
    Some(unsafe { std::mem::transmute::<*mut c_void, RcutilsLog>(found) })
}

/// Makes lines of events.
struct Forwarder;

fn severity_of(level: Level) -> rmw_log_severity_t {
    match level {
        Level::ERROR => RMW_LOG_SEVERITY_ERROR,
        Level::WARN => RMW_LOG_SEVERITY_WARN,
        Level::INFO => RMW_LOG_SEVERITY_INFO,
        // librcutils knows nothing below.
        _ => RMW_LOG_SEVERITY_DEBUG,
    }
}

impl Subscriber for Forwarder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && self.max_level_hint().is_none_or(|most| *metadata.level() <= most)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let severity = SEVERITY.load(Ordering::Acquire);
        let levels = [
            (RMW_LOG_SEVERITY_DEBUG, LevelFilter::DEBUG),
            (RMW_LOG_SEVERITY_INFO, LevelFilter::INFO),
            (RMW_LOG_SEVERITY_WARN, LevelFilter::WARN),
            (RMW_LOG_SEVERITY_ERROR, LevelFilter::ERROR),
        ];
        // Nothing of tsuji's is fatal.
        let level = levels.into_iter().find(|(least, _)| severity <= *least);
        Some(level.map_or(LevelFilter::OFF, |(_, level)| level))
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let is_grave = *metadata.level() <= Level::WARN;
        let left_out = match is_grave {
            true => admit(metadata.callsite(), clock::monotonic_ns()),
            false => Some(0),
        };
        let Some(left_out) = left_out else { return };
        let mut said = Said::default();
        event.record(&mut said);
        let mut line = said.line();
        if left_out != 0 {
            line.push_str(&format!("; {left_out} more of this were left out"));
        }
        push(severity_of(*metadata.level()), line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Warnings of one place of the sources within [`PLACE_WITHIN_NS`]. Further ones are counted, and the number is told in
/// the next line of that place.
const PLACE_LINES_MAX: u64 = 10;
const PLACE_WITHIN_NS: u64 = 60_000_000_000;

/// What a place has told since a moment of the monotonic clock, and how much of it was left out.
#[derive(Default)]
struct Place {
    since_ns: u64,
    told: u64,
    left_out: u64,
}

impl Place {
    /// Answers how many lines were left out before this one, or `None` where it is left out itself.
    fn admit(&mut self, now_ns: u64) -> Option<u64> {
        if PLACE_WITHIN_NS <= now_ns.saturating_sub(self.since_ns) {
            (self.since_ns, self.told) = (now_ns, 0);
        }
        if PLACE_LINES_MAX <= self.told {
            self.left_out += 1;
            return None;
        }
        self.told += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// As [`Place::admit`], of the place that has this event.
fn admit(place: Identifier, now_ns: u64) -> Option<u64> {
    static PLACES: Mutex<Option<HashMap<Identifier, Place>>> = Mutex::new(None);
    let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    places.get_or_insert_default().entry(place).or_default().admit(now_ns)
}

/// The message of an event, and what else it says.
#[derive(Default)]
struct Said {
    message: String,
    fields: String,
}

impl Said {
    fn line(self) -> String {
        let Self { message, fields } = self;
        if fields.is_empty() { message } else { format!("{message} ({fields})") }
    }
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // A text takes all.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name if self.fields.is_empty() => write!(self.fields, "{name}: {value:?}"),
            name => write!(self.fields, ", {name}: {value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_place_that_warns_of_each_message_is_cut_short() {
        let mut place = Place::default();
        let begin = PLACE_WITHIN_NS;
        let told = (0..1000).filter(|_| place.admit(begin).is_some()).count() as u64;
        assert_eq!(told, PLACE_LINES_MAX);
        assert_eq!(place.admit(begin + PLACE_WITHIN_NS), Some(1000 - PLACE_LINES_MAX));
        assert_eq!(place.admit(begin + PLACE_WITHIN_NS), Some(0));
    }

    #[test]
    fn an_event_becomes_a_line() {
        struct Taken(Arc<Mutex<Vec<String>>>);
        impl Subscriber for Taken {
            fn enabled(&self, _: &Metadata<'_>) -> bool {
                true
            }
            fn new_span(&self, _: &Attributes<'_>) -> Id {
                Id::from_u64(1)
            }
            fn record(&self, _: &Id, _: &Record<'_>) {}
            fn record_follows_from(&self, _: &Id, _: &Id) {}
            fn event(&self, event: &Event<'_>) {
                let mut said = Said::default();
                event.record(&mut said);
                self.0.lock().unwrap().push(said.line());
            }
            fn enter(&self, _: &Id) {}
            fn exit(&self, _: &Id) {}
        }
        let taken = Arc::default();
        tracing::subscriber::with_default(Taken(Arc::clone(&taken)), || {
            tracing::warn!("plain {}", 1);
            tracing::warn!(topic = "/t", depth = 3, "with fields");
        });
        assert_eq!(*taken.lock().unwrap(), ["plain 1", "with fields (topic: /t, depth: 3)"]);
    }
}

//! Warnings of the library, told to whoever runs the program also where nobody collects events of `tracing`.
//!
//! [`warn!`](crate::report::warn) and [`error!`](crate::report::error) are events of `tracing`, with its fields. Where the
//! thread has no subscriber, and the program thus would not hear them, they are lines on standard error too:
//!
//! ```text
//! tsuji: warning: robot.xml:3:45: "nearby" is not a scope; allowed: intra, local, remote; the policy in force stays
//! ```
//!
//! A program silences them by a subscriber of its own, whatever that does with them; its user by `TSUJI_WARNINGS=off`, and by
//! `--ros-args --log-level error`, or `fatal`.
//!
//! **Limits.** One place of the sources tells the same line once in 10 seconds, and 10 lines a minute; how many were left out
//! stands in the next. A line is cut at 4096 bytes. Whoever warns never waits: what standard error does not take at once
//! is left out too.

use std::cell::Cell;
use std::fmt::{self, Display, Write as _};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
#[doc(hidden)]
pub use tracing;
use tracing::subscriber::NoSubscriber;

use crate::clock;

#[doc(inline)]
pub use crate::{__report_error as error, __report_warn as warn};

/// Warns: an event of `tracing`, with its target, fields and text, and a line on standard error where nobody has it.
#[doc(hidden)]
#[macro_export]
macro_rules! __report_warn {
    ($($event:tt)+) => {{
        $crate::report::tracing::warn!($($event)+);
        $crate::__report_line!($crate::report::Level::Warn, [] $($event)+);
    }};
}

/// Tells an error: an event of `tracing`, with its target, fields and text, and a line on standard error where nobody has it.
#[doc(hidden)]
#[macro_export]
macro_rules! __report_error {
    ($($event:tt)+) => {{
        $crate::report::tracing::error!($($event)+);
        $crate::__report_line!($crate::report::Level::Error, [] $($event)+);
    }};
}

/// Takes the fields of an event one by one, by the words that `tracing` has for them.
#[doc(hidden)]
#[macro_export]
macro_rules! __report_line {
    ($level:expr, [$($field:tt)*] $text:literal $($values:tt)*) => {{
        static PLACE: $crate::report::Place = $crate::report::Place::new();
        if !$crate::report::is_collected() {
            PLACE.tell($level, format_args!($text $($values)*), &[$($field)*]);
        }
    }};
    ($level:expr, [$($field:tt)*] target: $target:expr, $($rest:tt)+) => {
        $crate::__report_line!($level, [$($field)*] $($rest)+)
    };
    ($level:expr, [$($field:tt)*] % $value:expr, $($rest:tt)+) => {
        $crate::__report_line!($level, [$($field)* (stringify!($value), &$value),] $($rest)+)
    };
    ($level:expr, [$($field:tt)*] ? $value:expr, $($rest:tt)+) => {
        $crate::__report_line!($level, [$($field)* (stringify!($value), &format_args!("{:?}", $value)),] $($rest)+)
    };
    ($level:expr, [$($field:tt)*] $name:ident = % $value:expr, $($rest:tt)+) => {
        $crate::__report_line!($level, [$($field)* (stringify!($name), &$value),] $($rest)+)
    };
    ($level:expr, [$($field:tt)*] $name:ident = ? $value:expr, $($rest:tt)+) => {
        $crate::__report_line!($level, [$($field)* (stringify!($name), &format_args!("{:?}", $value)),] $($rest)+)
    };
    ($level:expr, [$($field:tt)*] $name:ident = $value:expr, $($rest:tt)+) => {
        $crate::__report_line!($level, [$($field)* (stringify!($name), &$value),] $($rest)+)
    };
    ($level:expr, [$($field:tt)*] $name:ident, $($rest:tt)+) => {
        $crate::__report_line!($level, [$($field)* (stringify!($name), &$name),] $($rest)+)
    };
}

/// How grave a line is, or the least grave that is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// What may become a fault.
    Warn,
    /// What went wrong.
    Error,
    /// Graver than any line: nothing is told.
    Nothing,
}

/// Sets the least grave lines that standard error has from now on, for the whole process.
pub fn set_least(level: Level) {
    LEAST.store(level as u8, Ordering::Relaxed);
}

static LEAST: AtomicU8 = AtomicU8::new(Level::Warn as u8);

/// The variable that silences these lines with the value `off`.
pub const WARNINGS_VARIABLE: &str = "TSUJI_WARNINGS";

fn is_told(level: Level) -> bool {
    static IS_OFF: OnceLock<bool> = OnceLock::new();
    let is_off =
        *IS_OFF.get_or_init(|| std::env::var_os(WARNINGS_VARIABLE).is_some_and(|it| it == "off"));
    !is_off && LEAST.load(Ordering::Relaxed) <= level as u8
}

/// True if this thread has a subscriber of `tracing`, which has every event then.
#[doc(hidden)]
pub fn is_collected() -> bool {
    !IS_LISTENING.get() && tracing::dispatcher::get_default(|it| !it.is::<NoSubscriber>())
}

thread_local! {
    static IS_LISTENING: Cell<bool> = const { Cell::new(false) };
}

/// Until it is dropped the thread's subscriber has what loggers say and nothing else, so it does not count as one.
#[doc(hidden)]
#[derive(Debug)]
pub struct Listening {
    was_listening: bool,
    /// It is of this thread.
    _not_send: PhantomData<*const ()>,
}

impl Listening {
    /// Begins.
    #[expect(clippy::new_without_default, reason = "it is a guard")]
    pub fn new() -> Self {
        Self { was_listening: IS_LISTENING.replace(true), _not_send: PhantomData }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        IS_LISTENING.set(self.was_listening);
    }
}

/// A place of the sources that tells lines.
#[doc(hidden)]
#[derive(Debug)]
pub struct Place {
    told: Mutex<Told>,
}

impl Place {
    /// One that has told nothing.
    #[expect(clippy::new_without_default, reason = "a static is made of it")]
    pub const fn new() -> Self {
        Self { told: Mutex::new(Told { lines: Vec::new(), left_out: 0 }) }
    }

    /// Tells a line, unless that would be too much.
    pub fn tell(&self, level: Level, text: fmt::Arguments<'_>, fields: &[(&str, &dyn Display)]) {
        if !is_told(level) {
            return;
        }
        let line = line(level, text, fields);
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        // A forked child may find it locked for good.
        let Ok(mut told) = self.told.try_lock() else { return };
        if let Some(left_out) = told.admit(hasher.finish(), clock::monotonic_ns()) {
            drop(told);
            write(&finished(line, left_out));
        }
    }
}

/// What a place has told of late.
#[derive(Debug)]
struct Told {
    /// What each line was, and when.
    lines: Vec<(u64, u64)>,
    left_out: u64,
}

impl Told {
    /// Answers how many lines were left out before this one, or `None` where it is left out itself.
    fn admit(&mut self, line: u64, now_ns: u64) -> Option<u64> {
        self.lines.retain(|(_, at)| now_ns.saturating_sub(*at) < LINES_WITHIN_NS);
        let is_new = |(before, at): &(u64, u64)| {
            *before != line || REPEATED_AFTER_NS <= now_ns.saturating_sub(*at)
        };
        if self.lines.len() == LINES_MAX || !self.lines.iter().all(is_new) {
            self.left_out += 1;
            return None;
        }
        self.lines.push((line, now_ns));
        Some(std::mem::take(&mut self.left_out))
    }
}

const LINES_MAX: usize = 10;
const LINES_WITHIN_NS: u64 = 60_000_000_000;
const REPEATED_AFTER_NS: u64 = 10_000_000_000;
/// A pipe takes so much at once or not at all.
const LINE_BYTES_MAX: usize = 4096;

fn line(level: Level, text: fmt::Arguments<'_>, fields: &[(&str, &dyn Display)]) -> String {
    let word = if level == Level::Warn { "warning" } else { "error" };
    let mut said = format!("tsuji: {word}: {text}");
    for (name, value) in fields {
        let _ = write!(said, "; {name}: {value}");
    }
    // Names and reasons may be those of others: no terminal shall obey them, and no line of theirs looks like one of its own.
    let mut line = String::with_capacity(said.len());
    for letter in said.trim_end().chars() {
        match letter {
            '\n' => line.push_str("\n  "),
            '\t' => line.push(' '),
            _ if letter.is_control() => line.extend(letter.escape_default()),
            _ => line.push(letter),
        }
    }
    line
}

fn finished(mut line: String, left_out: u64) -> String {
    let end = match left_out {
        0 => "\n".to_owned(),
        _ => format!(" ({left_out} more were left out before)\n"),
    };
    let room = LINE_BYTES_MAX - end.len();
    if room < line.len() {
        let most = room - '…'.len_utf8();
        line.truncate((0..=most).rfind(|at| line.is_char_boundary(*at)).unwrap_or_default());
        line.push('…');
    }
    line + &end
}

/// Writes to standard error what it takes at once, and not through the lock of the standard library, which somebody may
/// hold who waits.
fn write(line: &str) {
    let stderr = std::io::stderr();
    let mut ready = [PollFd::new(&stderr, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut ready, Some(&at_once)).is_ok() && ready[0].revents().contains(PollFlags::OUT) {
        // There is nobody to tell that it cannot be told.
        let _ = rustix::io::write(&stderr, line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_does_not_repeat_itself_and_tells_how_much_it_left_out() {
        let mut told = Told { lines: Vec::new(), left_out: 0 };
        let second = 1_000_000_000;
        for (line, at, expect) in [
            (1, 0, Some(0)),
            (1, 9, None),
            (2, 9, Some(1)),
            (1, 10, Some(0)),
            (1, 19, None),
            (1, 20, Some(1)),
        ] {
            assert_eq!(told.admit(line, at * second), expect, "line {line} after {at} s");
        }
        for line in 10..16 {
            assert_eq!(told.admit(line, 21 * second), Some(0));
        }
        for line in 20..30 {
            assert_eq!(told.admit(line, 22 * second), None);
        }
        // The first two are forgotten after a minute, and so may be two others.
        assert_eq!(told.admit(30, 69 * second), Some(10));
        assert_eq!(told.admit(31, 69 * second), Some(0));
        assert_eq!(told.admit(32, 69 * second), None);
    }

    #[test]
    fn a_line_has_all_that_the_event_has_and_nothing_that_a_terminal_obeys() {
        let topic = "/a\u{1b}[2J\u{9b}";
        let expect = "tsuji: warning: two\n  lines, 3; topic: /a\\u{1b}[2J\\u{9b}; error: Os";
        let fields: [(&str, &dyn Display); 2] = [("topic", &topic), ("error", &"Os")];
        assert_eq!(line(Level::Warn, format_args!("two\nlines, {}", 3), &fields), expect);
        assert_eq!(line(Level::Error, format_args!("x\n"), &[]), "tsuji: error: x");
        assert_eq!(finished("x".into(), 3), "x (3 more were left out before)\n");
        let long = finished("ä".repeat(4000), 0);
        assert!(long.len() <= LINE_BYTES_MAX && long.ends_with("ä…\n"), "{}", long.len());
    }

    #[test]
    fn the_words_of_an_event_are_understood() {
        struct Endpoint {
            topic: String,
        }
        let at = Endpoint { topic: "/t".to_owned() };
        let (error, link, jump) = ("refused", "shm", Some(1));
        // None of these may go through to the terminal of whoever runs the tests.
        set_least(Level::Nothing);
        warn!("plain");
        warn!("with {error} and {}", 3);
        warn!(%error, "a field");
        warn!(topic = %at.topic, link, error, ?jump, "many fields: {error}");
        error!(target: "cyclonedds", jump = ?jump, bytes = at.topic.len(), "{error}");
        set_least(Level::Warn);
    }

    #[test]
    fn who_has_a_subscriber_has_all() {
        struct All;
        impl tracing::Subscriber for All {
            fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
                false
            }
            fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
                tracing::span::Id::from_u64(1)
            }
            fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
            fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
            fn event(&self, _: &tracing::Event<'_>) {}
            fn enter(&self, _: &tracing::span::Id) {}
            fn exit(&self, _: &tracing::span::Id) {}
        }
        assert!(!is_collected());
        assert!(tracing::subscriber::with_default(All, is_collected));
        assert!(!is_collected());
    }
}

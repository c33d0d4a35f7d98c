//! What a library logs, told by the line that was given to it when it first joined.

use std::ffi::{CString, c_char};
use std::fmt::{self, Write as _};
use std::sync::OnceLock;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Takes whether it is an error, and a text that ends with a nul.
pub(crate) type Line = unsafe extern "C" fn(u32, *const c_char);

static LINE: OnceLock<Line> = OnceLock::new();

/// From now on warnings and errors of tsuji's own crates in this library are told by `line`, and errors of all others.
///
/// # Safety
///
/// It may be called from any thread for as long as the process lives.
pub(crate) unsafe fn tell_by(line: Line) {
    if LINE.set(line).is_ok() {
        // Where there is another, as in a program that is linked with the engine, that one tells.
        let _ = tracing::subscriber::set_global_default(Teller);
    }
}

/// Tells a line.
pub(crate) fn tell(is_error: bool, text: &str) {
    let Some(line) = LINE.get() else { return };
    let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
    // SAFETY: whoever gave it promises that it may be called, and the text ends with a nul.
    unsafe { line(is_error.into(), text.as_ptr()) };
}

struct Teller;

impl Subscriber for Teller {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_told(metadata.level(), metadata.target())
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        tell(*event.metadata().level() == Level::ERROR, &text.0);
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}
    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}
    fn enter(&self, _span: &Id) {}
    fn exit(&self, _span: &Id) {}
}

/// Engines warn of much that is no concern of whoever runs a program.
fn is_told(level: &Level, target: &str) -> bool {
    let is_own = target.starts_with("tsuji");
    *level <= if is_own { Level::WARN } else { Level::ERROR }
}

/// The message, and what else is said behind it.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engines_own_warnings_are_not_told() {
        for (level, target, expect) in [
            (Level::WARN, "tsuji_transport_x", true),
            (Level::INFO, "tsuji_transport_x", false),
            (Level::ERROR, "engine::link", true),
            (Level::WARN, "engine::link", false),
        ] {
            assert_eq!(is_told(&level, target), expect, "{level} {target}");
        }
    }
}

//! What the library says while a command runs: warnings and errors, one line each, and what components tell.

use std::fmt::{Debug, Write};
use std::sync::OnceLock;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::SubscriberExt;
use tsuji::log::Logging;

use crate::output;

/// From now on warnings of the library go to standard error.
pub(crate) fn listen() {
    // Nobody else in this process sets one.
    let _ = tracing::subscriber::set_global_default(Lines);
}

/// From now on what nodes of this process log goes to `/rosout` too.
pub(crate) fn publish(logging: &Logging) {
    let layer = tracing_subscriber::registry().with(logging.rosout_layer());
    // A command is one container at most.
    let _ = ROSOUT.set(Dispatch::new(layer));
    // Nobody was interested in what only `/rosout` has.
    tracing::callsite::rebuild_interest_cache();
}

static ROSOUT: OnceLock<Dispatch> = OnceLock::new();

/// Whom the components that ship speak as.
const COMPONENTS: &str = "tsuji_components";

struct Lines;

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // ROS has nothing finer.
        is_shown(metadata) || (ROSOUT.get().is_some() && *metadata.level() <= Level::DEBUG)
    }

    fn event(&self, event: &Event<'_>) {
        if let Some(rosout) = ROSOUT.get() {
            rosout.event(event);
        }
        if !is_shown(event.metadata()) {
            return;
        }
        let mut line = Line::default();
        event.record(&mut line);
        let text = format_args!("{}{}", line.message, line.fields);
        match *event.metadata().level() == Level::INFO {
            true => output::note(text),
            false => output::warning(text),
        }
    }

    // The library has no spans.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Whether the terminal has it.
fn is_shown(metadata: &Metadata<'_>) -> bool {
    // What the directory says of endpoints the commands are told as events, and tell.
    let level = if metadata.target() == COMPONENTS { Level::INFO } else { Level::WARN };
    *metadata.level() <= level && metadata.target() != "tsuji::directory"
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a String does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, "; {name}: {value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

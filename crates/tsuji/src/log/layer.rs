//! Events of `tracing` as lines of a node's log.

use std::fmt::{self, Debug, Write};
use std::sync::Arc;

use crate::Severity;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;
use tsuji_interfaces::rcl_interfaces::msg::Log;
use tsuji_platform::clock;

use super::TEXT_BYTES_MAX;
use super::logger::Core;
use crate::stamp::time;

/// Takes the events of a program to `/rosout` and to the terminal: a part of its subscriber, beside others.
pub struct LogLayer {
    core: Arc<Core>,
    prints: bool,
}

impl LogLayer {
    pub(crate) fn new(core: &Arc<Core>, prints: bool) -> Self {
        Self { core: Arc::clone(core), prints }
    }
}

impl Debug for LogLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogLayer").field("prints", &self.prints).finish_non_exhaustive()
    }
}

/// Whose the events in a span are.
struct OfLogger(String);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut said = Said::default();
        attributes.record(&mut said);
        if let (Some(logger), Some(span)) = (said.logger, context.span(id)) {
            span.extensions_mut().replace(OfLogger(logger));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if !self.core.is_of_this_process() {
            return;
        }
        let metadata = event.metadata();
        let severity = match *metadata.level() {
            Level::ERROR => Severity::Error,
            Level::WARN => Severity::Warn,
            Level::INFO => Severity::Info,
            Level::DEBUG => Severity::Debug,
            _ => return,
        };
        // Which error is fatal only its fields say.
        let gravest = if severity == Severity::Error { Severity::Fatal } else { severity };
        if !self.core.may_be_heard(gravest) {
            return;
        }
        let mut said = Said::default();
        event.record(&mut said);
        let severity = if said.is_fatal { Severity::Fatal } else { severity };
        let name = said.logger.or_else(|| of_span(event, &context));
        let name = name.unwrap_or_else(|| metadata.target().replace("::", "."));
        if !self.core.is_heard(&name, severity) {
            return;
        }
        let outlet = self.core.outlet_of(&name);
        if outlet.is_none() && !self.prints {
            return;
        }
        let mut text = Text::default();
        event.record(&mut text);
        let is_cut = text.is_cut;
        let wall_ns = clock::wall_ns();
        let line = Log {
            stamp: time(wall_ns),
            level: severity as u8,
            name,
            msg: text.finish(),
            file: metadata.file().unwrap_or_default().to_owned(),
            // Events do not know their function.
            function: metadata.module_path().unwrap_or_default().to_owned(),
            line: metadata.line().unwrap_or_default(),
        };
        if self.prints {
            self.core.console.print(&line, severity, wall_ns);
        }
        if let Some(outlet) = outlet {
            if is_cut {
                outlet.count_cut();
            }
            self.core.queue.push(outlet, line);
        }
    }
}

/// The logger that the innermost span around an event names.
fn of_span<S: Subscriber + for<'a> LookupSpan<'a>>(
    event: &Event<'_>,
    context: &Context<'_, S>,
) -> Option<String> {
    let mut spans = context.event_scope(event)?;
    spans.find_map(|span| Some(span.extensions().get::<OfLogger>()?.0.clone()))
}

/// The field that names the logger.
pub(crate) const LOGGER: &str = "logger";
const FATAL: &str = "fatal";

/// What an event says of itself, without writing its text out.
#[derive(Default)]
struct Said {
    logger: Option<String>,
    is_fatal: bool,
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == LOGGER {
            self.logger = Some(value.to_owned());
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.is_fatal |= field.name() == FATAL && value;
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // `%name` of a span.
        if field.name() == LOGGER {
            self.logger = Some(format!("{value:?}"));
        }
    }
}

/// The text of an event, with its other fields behind it.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
    is_cut: bool,
}

impl Text {
    fn finish(mut self) -> String {
        self.message.push_str(&self.fields);
        if self.is_cut {
            self.message.push('…');
        }
        self.message
    }
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut room = TEXT_BYTES_MAX - self.message.len() - self.fields.len();
        let (text, written) = match field.name() {
            LOGGER | FATAL => return,
            "message" => {
                let mut cut = Cut { text: &mut self.message, room: &mut room };
                (&mut self.is_cut, write!(cut, "{value:?}"))
            }
            name => {
                let mut cut = Cut { text: &mut self.fields, room: &mut room };
                (&mut self.is_cut, write!(cut, " {name}={value:?}"))
            }
        };
        *text |= written.is_err();
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.record_debug(field, &format_args!("{value}")),
            _ => self.record_debug(field, &value),
        }
    }
}

/// Writes as long as there is room, and fails then, so that nobody goes on formatting what is not kept.
struct Cut<'a> {
    text: &'a mut String,
    room: &'a mut usize,
}

impl Write for Cut<'_> {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let most = (*self.room).min(more.len());
        let fits = (0..=most).rfind(|it| more.is_char_boundary(*it)).unwrap_or_default();
        self.text.push_str(&more[..fits]);
        *self.room -= fits;
        if fits < more.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

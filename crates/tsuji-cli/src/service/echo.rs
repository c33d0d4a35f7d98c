//! `tsuji service echo`.

use std::io::Write;

use tsuji::{Graph, RawType};
use tsuji_core::Qos;
use tsuji_msg::{DynamicMessage, Value};

use crate::completions;
use crate::interfaces::Interfaces;
use crate::output::{self, Output};
use crate::session::{A_WHILE, Globals, Session};
use crate::topic::{self, Listener, Printer, Style};

/// What ROS puts behind the name of a service for what is told of it.
const EVENTS: &str = "_service_event";

/// The events in the order of their numbers.
const KINDS: [&str; 4] = ["REQUEST_SENT", "REQUEST_RECEIVED", "RESPONSE_SENT", "RESPONSE_RECEIVED"];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The service
    #[arg(value_name = "SERVICE", value_parser = super::full_name, add = completions::services())]
    service: String,
    /// The type, such as std_srvs/srv/SetBool, where nobody is there yet or the service has several
    #[arg(value_name = "TYPE", add = completions::service_types())]
    type_name: Option<String>,
    #[command(flatten)]
    style: Style,
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let interfaces = Interfaces::from_environment();
    let stated = args.type_name.as_deref().map(|it| interfaces.service(it)).transpose()?;
    let session = Session::open(globals)?;
    let service = match stated {
        Some(service) => service,
        None => match only_type(args, &session)? {
            Some(name) => interfaces.service(&name)?,
            None => return Ok(()),
        },
    };
    let events = format!("{}/{EVENTS}", args.service);
    if !topic::is_published(&session.graph(), &events) {
        // In the words of `ros2`.
        output::warning(format_args!(
            "No publishers on topic '{events}'; is service introspection on the client or server enabled?"
        ));
    }
    let printer = Printer::new(&args.style, &[], &service.event)?;
    let ty = &service.event;
    let raw = RawType::new(ty.name().to_string()).hash(ty.hash());
    let mut listener = Listener::open(&session, &events, raw, Qos::DEFAULT)?;
    while session.context.is_ok() {
        listener.wait(A_WHILE)?;
        while let Some(sample) = listener.take() {
            match DynamicMessage::decode(ty, &sample.bytes) {
                Ok(message) => {
                    let kind = kind_of(&message);
                    printer.print_with(&message, &sample.info, &|text| named(text, kind), out)?;
                }
                Err(error) => output::warning(format_args!(
                    "a message on {events} was no valid {ty}: {error}"
                )),
            }
        }
        out.flush()?;
    }
    Ok(())
}

/// The event's number.
fn kind_of(message: &DynamicMessage) -> Option<u8> {
    match *message.get("info.event_type").ok()? {
        Value::U8(number) => Some(number),
        _ => None,
    }
}

/// The event's name instead of its number, which YAML shows first, as `ros2` has it.
fn named(text: String, kind: Option<u8>) -> String {
    let Some(kind) = kind else { return text };
    match KINDS.get(usize::from(kind)) {
        Some(name) => {
            text.replacen(&format!("event_type: {kind}"), &format!("event_type: {name}"), 1)
        }
        None => text,
    }
}

/// The one type of the service, waited for if need be; `None` when the command is to end before.
fn only_type(args: &Args, session: &Session) -> anyhow::Result<Option<String>> {
    let look = |graph: &Graph| {
        let types = super::types(graph, &args.service);
        (!types.is_empty()).then_some(types)
    };
    if look(&session.graph()).is_none() {
        output::warning(format_args!("service '{}' is not there yet", args.service));
    }
    let Some(types) = session.wait_for_within(None, look) else { return Ok(None) };
    super::only_type("echo", &args.service, types)
}

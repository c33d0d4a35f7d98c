//! `tsuji service call`.

use std::io::Write;
use std::time::{Duration, Instant};

use tsuji::{ErrorKind, RawClient, RawType};
use tsuji_core::Qos;
use tsuji_msg::{DynamicMessage, ServiceDescription};

use crate::completions;
use crate::failure::Usage;
use crate::interfaces::Interfaces;
use crate::output::{self, Output};
use crate::python;
use crate::qos::QosFlags;
use crate::session::{A_WHILE, Globals, LOOK_AGAIN, Session};
use crate::topic::publish::{now, rate};
use crate::topic::{join, seconds};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The service
    #[arg(value_name = "SERVICE", value_parser = super::full_name, add = completions::services())]
    service: String,
    /// The type, such as std_srvs/srv/SetBool, where nobody is there yet or the service has several
    #[arg(value_name = "TYPE", add = completions::service_types())]
    type_name: Option<String>,
    /// The values of the request, in YAML
    #[arg(value_name = "VALUES", allow_hyphen_values = true)]
    values: Option<String>,
    /// Call again and again, so many times a second
    #[arg(short, long, value_name = "HZ", value_parser = rate)]
    rate: Option<Duration>,
    /// Give up each call after so many seconds, the wait for a server included
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Print each response as one line of JSON, and nothing else
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    qos: QosFlags,
}

impl Args {
    /// The type and the values. YAML where a type could stand is the values.
    fn words(&self) -> anyhow::Result<(Option<&str>, &str)> {
        match (self.type_name.as_deref(), self.values.as_deref()) {
            (Some(values), None) if is_yaml(values) => Ok((None, values)),
            (Some(values), Some(_)) if is_yaml(values) => {
                let text = format!("{values:?} is no type; allowed: SERVICE [TYPE] [VALUES]");
                Err(Usage(text).into())
            }
            (ty, values) => Ok((ty, values.unwrap_or("{}"))),
        }
    }
}

/// No type's name has any of these.
fn is_yaml(text: &str) -> bool {
    text.trim().is_empty() || text.contains(['{', ':', '\n'])
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let (stated, values) = args.words()?;
    let began = Instant::now();
    let interfaces = Interfaces::from_environment();
    // A type that is unknown is better told before waiting for the service.
    let stated = stated.map(|it| interfaces.service(it)).transpose()?;
    let session = Session::open(globals)?;
    let service = match stated {
        Some(service) => service,
        None => match only_type(args, &session, out)? {
            Some(name) => interfaces.service(&name)?,
            None => return Ok(()),
        },
    };
    let request = || {
        DynamicMessage::from_yaml_at(&service.request, values, now())
            .map_err(|error| Usage(format!("the values are no {}: {error}", service.request)))
    };
    request()?;
    let raw = RawType { name: service.name.to_string(), hash: service.hash.clone() };
    let node = session.hidden_node()?;
    let builder = node.raw_client(&args.service, raw).qos(args.qos.over(Qos::DEFAULT)?);
    let mut caller = Caller { args, service: &service, client: builder.build()?, began };
    caller.wait_for_service(out)?;
    loop {
        let called = Instant::now();
        match caller.call(&request()?, out) {
            Err(_) if !session.context.is_ok() => return Ok(()),
            done => done?,
        }
        let Some(period) = args.rate else { return Ok(()) };
        while session.context.is_ok() && called.elapsed() < period {
            std::thread::sleep((period - called.elapsed().min(period)).min(LOOK_AGAIN));
        }
        if !session.context.is_ok() {
            return Ok(());
        }
        caller.began = Instant::now();
    }
}

/// The one type of the service, waited for if need be; `None` when the command is to end before.
fn only_type(args: &Args, session: &Session, out: &mut Output) -> anyhow::Result<Option<String>> {
    let mut types = super::types(&session.graph(), &args.service);
    if types.is_empty() {
        tell_waiting(args, out)?;
        let appear = |graph: &tsuji::Graph| {
            let types = super::types(graph, &args.service);
            (!types.is_empty()).then_some(types)
        };
        match session.context.wait_for_graph(args.timeout.unwrap_or(A_WHILE), appear) {
            Ok(Some(found)) => types = found,
            Ok(None) => anyhow::bail!("call {}: no server in time", args.service),
            // Waiting fails when the context is shut down, which is how a command ends.
            Err(_) => return Ok(None),
        }
    }
    if types.len() > 1 {
        let text = format!(
            "Cannot call service '{}', as it has more than one type: [{}]; name one",
            args.service,
            join(&types)
        );
        return Err(Usage(text).into());
    }
    Ok(types.into_iter().next())
}

/// In the words of `ros2`.
fn tell_waiting(args: &Args, out: &mut Output) -> anyhow::Result<()> {
    if !args.json {
        out.line("waiting for service to become available...")?;
        out.flush()?;
    }
    Ok(())
}

struct Caller<'a> {
    args: &'a Args,
    service: &'a ServiceDescription,
    client: RawClient,
    /// When the time of this call began.
    began: Instant,
}

impl Caller<'_> {
    /// Says so if no server is ready. Whether one comes in time is told by the call.
    fn wait_for_service(&self, out: &mut Output) -> anyhow::Result<()> {
        // Of those who were met, a server that fits is ready within a blink.
        let met = self.client.wait_for_service(self.left().min(LOOK_AGAIN));
        if !met.is_err_and(|error| error.kind() == ErrorKind::NoServer) {
            return Ok(());
        }
        for obstacle in self.client.obstacles() {
            output::warning(format_args!(
                "A server of '{}' does not fit, and is not called: {obstacle}",
                self.args.service
            ));
        }
        tell_waiting(self.args, out)
    }

    fn call(&self, request: &DynamicMessage, out: &mut Output) -> anyhow::Result<()> {
        let bytes = request.encode()?;
        // As `ros2` does, the request is shown when there is somebody to make it to.
        while let Err(error) = self.client.wait_for_service(self.left()) {
            if error.kind() != ErrorKind::NoServer || self.args.timeout.is_some() {
                return Err(error.into());
            }
        }
        if !self.args.json {
            out.line(format_args!("requester: making request: {}\n", python::repr(request)))?;
            out.flush()?;
        }
        let reply = self.client.call_bytes(&bytes, self.left())?;
        let response = DynamicMessage::decode(&self.service.response, &reply)?;
        if self.args.json {
            out.line(response.to_json(Default::default()))?;
        } else {
            out.line(format_args!("response:\n{}\n", python::repr(&response)))?;
        }
        Ok(out.flush()?)
    }

    /// The time that is left for this call.
    fn left(&self) -> Duration {
        self.args.timeout.map_or(A_WHILE, |it| it.saturating_sub(self.began.elapsed()))
    }
}

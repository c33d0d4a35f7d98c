//! `tsuji service call`.

use std::io::Write;
use std::time::{Duration, Instant};

use tsuji::{ClientOptions, ErrorKind, RawClient, RawType};
use tsuji_core::Qos;
use tsuji_msg::{DynamicMessage, ServiceDescription};

use crate::completions;
use crate::failure::Usage;
use crate::figures;
use crate::interfaces::Interfaces;
use crate::output::{self, Output};
use crate::python;
use crate::qos::QosFlags;
use crate::session::{A_WHILE, Globals, LOOK_AGAIN, Session};
use crate::topic::publish::{now, rate};
use crate::topic::seconds;

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
    /// Take the values from standard input, which is read to its end
    #[arg(long, conflicts_with = "values")]
    stdin: bool,
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
    let values = &crate::topic::publish::said(values, args.stdin)?;
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
    let raw = RawType::new(service.name.to_string()).hash(service.hash.clone());
    let node = session.hidden_node()?;
    let mut caller = Caller {
        args,
        service: &service,
        client: node.create_raw_client(
            ClientOptions::new(&args.service).qos(args.qos.over(Qos::DEFAULT)?),
            raw,
        )?,
        began,
    };
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
            Ok(None) => {
                let within = figures::seconds(args.timeout.unwrap_or(A_WHILE));
                anyhow::bail!("call {}: no server is ready within {within}", args.service)
            }
            // Waiting fails when the context is shut down, which is how a command ends.
            Err(_) => return Ok(None),
        }
    }
    super::only_type("call", &args.service, types)
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
                return Err(self.told(error));
            }
        }
        if !self.args.json {
            out.lines(format_args!("requester: making request: {}\n", python::repr(request)))?;
            out.flush()?;
        }
        let reply = self.client.call_bytes(&bytes, self.left()).map_err(|it| self.told(it))?;
        let response = DynamicMessage::decode(&self.service.response, &reply)?;
        if self.args.json {
            out.line(response.to_json(Default::default()))?;
        } else {
            out.lines(format_args!("response:\n{}\n", python::repr(&response)))?;
        }
        Ok(out.flush()?)
    }

    fn told(&self, error: tsuji::Error) -> anyhow::Error {
        told_within(error, || self.client.obstacles(), &self.args.service, self.args.timeout)
    }

    /// The time that is left for this call.
    fn left(&self) -> Duration {
        self.args.timeout.map_or(A_WHILE, |it| it.saturating_sub(self.began.elapsed()))
    }
}

/// An error of a call with the time that was asked for, and not what was left of it then.
pub(crate) fn told_within(
    error: tsuji::Error,
    obstacles: impl FnOnce() -> Vec<String>,
    name: &str,
    timeout: Option<Duration>,
) -> anyhow::Error {
    let Some(within) = timeout.map(figures::seconds) else { return error.into() };
    match error.kind() {
        ErrorKind::NoServer => {
            let why = [format!("call {name}: no server is ready within {within}")];
            anyhow::anyhow!(why.into_iter().chain(obstacles()).collect::<Vec<_>>().join("; "))
        }
        ErrorKind::Timeout => anyhow::anyhow!(
            "call {name}: no reply within {within}; the request was sent, and may be performed"
        ),
        _ => error.into(),
    }
}

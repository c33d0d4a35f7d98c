//! `tsuji topic info`.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use tsuji::{EndpointInfo, EndpointKind, Graph};

use crate::completions;
use crate::failure::Told;
use crate::output::{self, Colour, Output};
use crate::qos;
use crate::session::{Globals, Session};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The topic
    #[arg(value_name = "TOPIC", value_parser = super::full_name, add = completions::topics())]
    topic: String,
    /// Show each publisher and subscription with its node, GID, type hash and QoS
    #[arg(short, long)]
    verbose: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let is_enough = |_: &Graph| !args.verbose && !args.json;
    let session = Session::open_named(globals, is_enough)?;
    let graph = session.graph();
    let types = super::types(&graph, &args.topic);
    if types.is_empty() {
        output::error(format_args!("Unknown topic '{}'", args.topic));
        return Err(Told(1).into());
    }
    let of = |kind| -> Vec<&EndpointInfo> {
        let here = graph.endpoints.iter().filter(|it| it.topic == args.topic);
        here.filter(|it| it.kind == kind).collect()
    };
    let (publishers, subscriptions) = (of(EndpointKind::Publisher), of(EndpointKind::Subscription));
    let misfits = misfits(&publishers, &subscriptions);
    if args.json {
        let json = json!({
            "topic": args.topic,
            "types": types,
            "publishers": publishers.iter().map(|it| endpoint_json(it)).collect::<Vec<_>>(),
            "subscriptions": subscriptions.iter().map(|it| endpoint_json(it)).collect::<Vec<_>>(),
            "incompatible": misfits.iter().map(Misfit::json).collect::<Vec<_>>(),
        });
        return Ok(out.lines(serde_json::to_string_pretty(&json)?)?);
    }
    out.line(format_args!("Type: {}", types_said(&types)))?;
    let ends = [("Publisher", &publishers), ("Subscription", &subscriptions)];
    for (name, endpoints) in ends {
        if args.verbose {
            out.line("")?;
        }
        out.line(format_args!("{name} count: {}", endpoints.len()))?;
        if args.verbose {
            for endpoint in endpoints {
                out.line("")?;
                show(endpoint, out)?;
            }
        }
    }
    if misfits.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.line(
        out.paint.text(Colour::Warning, format_args!("Incompatible pairs: {}", misfits.len())),
    )?;
    for misfit in misfits {
        let Misfit { publisher, subscription, reasons } = misfit;
        out.line(format_args!(
            "  {} -> {}: {}",
            end(publisher),
            end(subscription),
            reasons.join("; ")
        ))?;
    }
    Ok(())
}

/// One type, or several as a Python list, which is what `ros2` prints.
pub(crate) fn types_said(types: &BTreeSet<String>) -> String {
    if let (1, Some(one)) = (types.len(), types.first()) {
        return one.clone();
    }
    let quoted: Vec<String> = types.iter().map(|it| format!("'{it}'")).collect();
    format!("[{}]", quoted.join(", "))
}

/// The lines of `ros2 topic info -v`, and which process it is.
pub(crate) fn show(endpoint: &EndpointInfo, out: &mut Output) -> anyhow::Result<()> {
    let (namespace, name) = split(&endpoint.node);
    let kind = match endpoint.kind {
        EndpointKind::Publisher => "PUBLISHER",
        EndpointKind::Subscription => "SUBSCRIPTION",
        EndpointKind::Server => "SERVER",
        EndpointKind::Client => "CLIENT",
    };
    let hash = if endpoint.type_hash.is_empty() { "INVALID" } else { &endpoint.type_hash };
    out.line(format_args!("Node name: {name}"))?;
    out.line(format_args!("Node namespace: {namespace}"))?;
    out.line(format_args!("Topic type: {}", endpoint.type_name))?;
    out.line(format_args!("Topic type hash: {hash}"))?;
    out.line(format_args!("Endpoint type: {kind}"))?;
    out.line(format_args!("GID: {}", endpoint.gid))?;
    out.line("QoS profile:")?;
    for line in qos::lines(&endpoint.qos) {
        out.line(format_args!("  {line}"))?;
    }
    let process = &endpoint.process;
    out.line(format_args!(
        "Process: {} (pid {} on {})",
        process.program, process.pid, process.host
    ))?;
    if let Some(vendor) = &endpoint.vendor {
        out.line(format_args!("Middleware: {vendor}, a foreign ROS 2 node"))?;
    }
    Ok(())
}

/// A publisher and a subscription of one topic between which nothing flows.
struct Misfit<'a> {
    publisher: &'a EndpointInfo,
    subscription: &'a EndpointInfo,
    reasons: Vec<String>,
}

impl Misfit<'_> {
    fn json(&self) -> Json {
        json!({
            "publisher": self.publisher.gid.to_string(),
            "subscription": self.subscription.gid.to_string(),
            "reasons": self.reasons,
        })
    }
}

fn misfits<'a>(
    publishers: &[&'a EndpointInfo],
    subscriptions: &[&'a EndpointInfo],
) -> Vec<Misfit<'a>> {
    let mut misfits = Vec::new();
    for publisher in publishers {
        for subscription in subscriptions {
            let reasons = publisher.mismatches(subscription);
            if !reasons.is_empty() {
                misfits.push(Misfit { publisher, subscription, reasons });
            }
        }
    }
    misfits
}

pub(crate) fn endpoint_json(endpoint: &EndpointInfo) -> Json {
    let (namespace, name) = split(&endpoint.node);
    let qos = &endpoint.qos;
    let nanos = |it: Option<std::time::Duration>| {
        it.map(|it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX))
    };
    json!({
        "node": name,
        "namespace": namespace,
        "type": endpoint.type_name,
        "type_hash": endpoint.type_hash,
        "gid": endpoint.gid.to_string(),
        "qos": {
            "reliability": qos.reliability.to_string(),
            "history": qos.history.to_string(),
            "durability": qos.durability.to_string(),
            "lifespan_ns": nanos(qos.lifespan),
            "deadline_ns": nanos(qos.deadline),
            "liveliness": qos.liveliness.to_string(),
            "liveliness_lease_ns": nanos(qos.liveliness_lease),
        },
        "process": {
            "program": endpoint.process.program,
            "pid": endpoint.process.pid,
            "host": endpoint.process.host,
        },
        "middleware": endpoint.vendor.as_deref().unwrap_or("tsuji"),
    })
}

fn end(endpoint: &EndpointInfo) -> String {
    format!("{} ({} {})", endpoint.node, endpoint.process.program, endpoint.process.pid)
}

/// Namespace and name of a full node name.
fn split(node: &str) -> (&str, &str) {
    match node.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((namespace, name)) => (namespace, name),
        None => ("/", node),
    }
}

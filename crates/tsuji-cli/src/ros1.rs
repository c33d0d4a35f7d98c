//! `tsuji ros1`: what nodes of ROS 1 need.

use std::env;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

use clap::Subcommand;
use serde_json::json;
use tsuji_platform::process::host_name;
use tsuji_ros1::master::Master;
use tsuji_ros1::uri::{MASTER_PORT, Uri};
use tsuji_ros1::xmlrpc::{Call, Reply, Value};

use crate::failure::Usage;
use crate::output::{self, Output};

mod delivery;
mod param;
mod server;

use delivery::Delivery;
use server::{Ending, Server};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Be the master of ROS 1 nodes, in place of roscore
    #[command(after_help = EXAMPLES)]
    Master(Args),
    /// Read the parameters of a ROS 1 master
    #[command(subcommand)]
    Param(param::Command),
}

const EXAMPLES: &str = "\
Nodes of ROS 1 use it unchanged: roscpp, rospy, rostopic, rosparam and others. It
has no password, as ROS 1 has none: whoever reaches the port can do everything.
It announces the host name, or what --host, ROS_HOSTNAME or ROS_IP says.

Examples:
  tsuji ros1 master                          # port 11311, on all interfaces
  tsuji ros1 master --bind 127.0.0.1         # for this machine alone
  tsuji ros1 master --port 0 --json          # any free port; tells which
  tsuji ros1 master --host 10.0.0.5 --verbose";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The port; 0 for any that is free. That of ROS_MASTER_URI if not said, or else 11311
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,
    /// The address of the interface to listen at. All of them if not said, as rosmaster does, unless ROS_IP or ROS_HOSTNAME is of
    /// this machine alone
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// The host name or address by which nodes reach it, instead of ROS_HOSTNAME, ROS_IP or the name of this host
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Print what nodes register and set
    #[arg(short, long)]
    verbose: bool,
    /// Print where it listens, and at the end what it did, as JSON, and each warning as an object on standard error
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &Command, out: &mut Output) -> anyhow::Result<()> {
    match command {
        Command::Master(args) => master(args, out),
        Command::Param(command) => param::run(command, out),
    }
}

fn master(args: &Args, out: &mut Output) -> anyhow::Result<()> {
    if args.json {
        output::warn_in_json();
    }
    let signals = server::signals()?;
    let port = match args.port {
        Some(port) => port,
        None => port_of(environment("ROS_MASTER_URI").as_deref())?,
    };
    let said = announced(args.host.as_deref())?;
    let is_ipv6 = environment("ROS_IPV6").is_some_and(|it| it == "on");
    let bind = args.bind.unwrap_or_else(|| interface(said.as_deref(), is_ipv6));
    let listener = listen(SocketAddr::new(bind, port))?;
    let at = listener.local_addr()?;
    let host = said.unwrap_or_else(|| match bind {
        it if !it.is_unspecified() => it.to_string(),
        _ => Some(host_name()).filter(|it| is_host(it)).unwrap_or_else(|| "127.0.0.1".to_owned()),
    });
    let uri = Uri { scheme: "http".to_owned(), host, port: at.port(), path: "/".to_owned() };
    let uri = uri.to_string();
    if args.json {
        let address = at.ip().to_string();
        out.line(json!({ "listening": { "uri": uri, "address": address, "port": at.port() } }))?;
    } else {
        out.line(format_args!("ROS 1 master at {uri}"))?;
        out.line(format_args!("for nodes: export ROS_MASTER_URI={uri}"))?;
        if bind.is_unspecified() {
            output::note(
                "it listens on all interfaces; --bind 127.0.0.1 is for this machine alone",
            );
        }
        output::note("Ctrl-C ends it");
    }
    out.flush()?;
    let master = Master::new(uri, std::process::id());
    let mut server = Server::new(listener, signals, master, Delivery::start()?)?;
    let ending = server.serve(|event| {
        if args.verbose {
            tell(event, args.json, out)?;
            out.flush()?;
        }
        Ok(())
    })?;
    let done = server.statistics();
    if args.json {
        return Ok(out.line(json!({
            "requests": done.requests,
            "refused": done.refused,
            "notices": done.delivered,
            "failed": done.failed,
            "nodes": done.nodes,
        }))?);
    }
    if let Ending::Asked(reason) = ending {
        out.line(format_args!("asked to end by {reason}"))?;
    }
    Ok(out.line(format_args!(
        "{} requests, {} of them refused; {} notices to nodes, {} failed; {} nodes registered",
        done.requests, done.refused, done.delivered, done.failed, done.nodes
    ))?)
}

/// A variable that is set and not empty.
fn environment(name: &str) -> Option<String> {
    env::var(name).ok().filter(|it| !it.is_empty())
}

fn port_of(master_uri: Option<&str>) -> anyhow::Result<u16> {
    let Some(text) = master_uri else { return Ok(MASTER_PORT) };
    match text.parse::<Uri>() {
        Ok(uri) => Ok(uri.port),
        Err(error) => Err(Usage(format!("ROS_MASTER_URI={text:?}: {error}")).into()),
    }
}

/// The host that is said to be announced. ROS_HOSTNAME and ROS_IP mean the same to nodes, in this order.
fn announced(said: Option<&str>) -> anyhow::Result<Option<String>> {
    let flag = said.map(|it| ("--host", it.to_owned()));
    let from = |name| environment(name).map(|it| (name, it));
    let Some((whose, host)) = flag.or_else(|| from("ROS_HOSTNAME")).or_else(|| from("ROS_IP"))
    else {
        return Ok(None);
    };
    let host = host.trim_matches(['[', ']']).to_owned();
    if !is_host(&host) {
        let allowed = "allowed is a host name or an IP address, without http:// and without a port";
        return Err(Usage(format!("{whose} is {host:?}; {allowed}")).into());
    }
    Ok(Some(host))
}

fn is_host(text: &str) -> bool {
    let (scheme, path) = ("http".to_owned(), "/".to_owned());
    let uri = Uri { scheme, host: text.to_owned(), port: 1, path };
    uri.to_string().parse() == Ok(uri)
}

/// The interface to listen at: that of the machine alone if a host of it is announced, or all.
fn interface(announced: Option<&str>, is_ipv6: bool) -> IpAddr {
    let own = match announced {
        Some("localhost") => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        other => other.and_then(|it| it.parse().ok()).filter(IpAddr::is_loopback),
    };
    match own {
        Some(IpAddr::V4(_)) if is_ipv6 => IpAddr::V6(Ipv6Addr::LOCALHOST),
        Some(own) => own,
        None if is_ipv6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        None => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    }
}

fn listen(at: SocketAddr) -> anyhow::Result<TcpListener> {
    let error = match TcpListener::bind(at) {
        Ok(listener) => return Ok(listener),
        Err(error) => error,
    };
    if error.kind() != io::ErrorKind::AddrInUse {
        return Err(anyhow::Error::from(error).context(format!("cannot listen at {at}")));
    }
    let by = match master_at(at) {
        Some(pid) => format!("by another ROS 1 master, process {pid}"),
        None => "by another program".to_owned(),
    };
    anyhow::bail!(
        "cannot listen at {at}: the port is taken {by}; allowed is another, or 0 for any that is free"
    )
}

/// The process of the master that listens here, if it is one.
fn master_at(at: SocketAddr) -> Option<i32> {
    let host = match at.ip() {
        IpAddr::V4(it) if it.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(it) if it.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        it => it,
    };
    let (scheme, path) = ("http".to_owned(), "/".to_owned());
    let uri = Uri { scheme, host: host.to_string(), port: at.port(), path };
    let call = Call::new("getPid", vec![Value::from("/tsuji")]);
    let reply = delivery::ask(&uri, &call, Duration::from_secs(1)).ok()?;
    reply.ros().ok()?.as_int()
}

/// Says what nodes did in a call, where it changed anything.
fn tell(event: &server::Event<'_>, is_json: bool, out: &mut Output) -> io::Result<()> {
    let Reply::Value(Value::Array(answers)) = event.reply else { return Ok(()) };
    let call = event.call;
    if call.method != "system.multicall" {
        return tell_one(&call.method, &call.params, answers, is_json, out);
    }
    let calls = call.params.first().and_then(Value::as_array).unwrap_or_default();
    for (call, answer) in calls.iter().zip(answers) {
        let method = call.member("methodName").and_then(Value::as_str).unwrap_or_default();
        let params = call.member("params").and_then(Value::as_array).unwrap_or_default();
        let answer = answer.as_array().and_then(|it| it.first()?.as_array());
        tell_one(method, params, answer.unwrap_or_default(), is_json, out)?;
    }
    Ok(())
}

fn tell_one(
    method: &str,
    params: &[Value],
    answer: &[Value],
    is_json: bool,
    out: &mut Output,
) -> io::Result<()> {
    // Where the name stands, and the address, if there is one.
    let (what, name, uri) = match method {
        "registerPublisher" => ("+PUB", 1, Some(3)),
        "unregisterPublisher" => ("-PUB", 1, Some(2)),
        "registerSubscriber" => ("+SUB", 1, Some(3)),
        "unregisterSubscriber" => ("-SUB", 1, Some(2)),
        "registerService" => ("+SERVICE", 1, Some(2)),
        "unregisterService" => ("-SERVICE", 1, Some(2)),
        "setParam" => ("+PARAM", 1, None),
        "deleteParam" => ("-PARAM", 1, None),
        "subscribeParam" => ("+CACHEDPARAM", 2, Some(1)),
        "unsubscribeParam" => ("-CACHEDPARAM", 2, Some(1)),
        _ => return Ok(()),
    };
    if answer.first() != Some(&Value::Int(1)) {
        return Ok(());
    }
    let text = |index: usize| params.get(index).and_then(Value::as_str).unwrap_or_default();
    let (node, name) = (text(0), text(name));
    match (uri.map(text), is_json) {
        (Some(uri), false) => out.line(format_args!("{what} {name} by {node} at {uri}")),
        (None, false) => out.line(format_args!("{what} {name} by {node}")),
        (Some(uri), true) => {
            out.line(json!({ "event": method, "node": node, "name": name, "uri": uri }))
        }
        (None, true) => out.line(json!({ "event": method, "node": node, "name": name })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_that_of_the_environment() {
        assert_eq!(port_of(None).unwrap(), 11311);
        assert_eq!(port_of(Some("http://robot:11312/")).unwrap(), 11312);
        let error = port_of(Some("robot:11312")).unwrap_err().to_string();
        assert!(error.starts_with("ROS_MASTER_URI=\"robot:11312\": "), "{error}");
    }

    #[test]
    fn hosts_are_hosts() {
        for host in ["robot", "robot.local", "10.0.0.5", "fe80::1"] {
            assert!(is_host(host), "{host}");
        }
        for host in ["", "http://robot", "robot:1", "a b", "röbot", "a/b"] {
            assert!(!is_host(host), "{host}");
        }
        assert_eq!(announced(Some("[::1]")).unwrap().as_deref(), Some("::1"));
        assert!(announced(Some("http://robot:1")).is_err());
    }

    #[test]
    fn an_address_of_this_machine_alone_is_listened_at_alone() {
        for (announced, is_ipv6, expected) in [
            (None, false, "0.0.0.0"),
            (None, true, "::"),
            (Some("10.0.0.5"), false, "0.0.0.0"),
            (Some("localhost"), false, "127.0.0.1"),
            (Some("127.0.1.1"), false, "127.0.1.1"),
            (Some("localhost"), true, "::1"),
            (Some("::1"), false, "::1"),
        ] {
            assert_eq!(interface(announced, is_ipv6).to_string(), expected, "{announced:?}");
        }
    }
}

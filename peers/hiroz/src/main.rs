//! `hiroz-peer`: ROS 2 nodes over the crate hiroz, which speaks rmw_zenoh's wire, and a router, for tests that need
//! what is not made of tsuji. It knows nothing of tsuji and depends on none of its crates.
//!
//! It prints a line for what happens, and ends when its standard input does.
#![forbid(unsafe_code)]

use std::io::BufRead as _;
use std::process::ExitCode;
use std::time::Duration;

use hiroz::entity::EndpointKind;
use hiroz::prelude::*;
use zenoh::Wait as _;

mod action;
use action::Cancel;
mod messages;
mod parameters;
use messages::{AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse, Text};

const USAGE: &str = "usage:
  hiroz-peer router PORT
  hiroz-peer talk TOPIC COUNT        when somebody listens and a line came; its text is `hello N`
  hiroz-peer latch TOPIC COUNT       at once, with COUNT samples kept for late joiners
  hiroz-peer listen TOPIC            prints `heard TEXT`
  hiroz-peer late TOPIC              the same, with what was kept
  hiroz-peer serve NAME              adds two integers
  hiroz-peer call NAME COUNT         asks for N + 1000, COUNT times; prints `sum N`
  hiroz-peer pursue NAME             goals of Fibonacci; rejects those beyond 25, a negative one is pursued until canceled
  hiroz-peer ask NAME ORDER [cancel|cancel-all]
                                     asks for a goal when a line came; prints what it hears, at last `STATUS SEQUENCE`
  hiroz-peer offer                   has parameters; prints `set NAME VALUE`
  hiroz-peer inspect NODE NAME NUMBER...
                                     asks for parameters when a line came, and sets one; prints what it is told, and `done`
  hiroz-peer graph NODE TOPIC NAME   prints `found` when the node, topic and service are seen, then `gone`
with HIROZ_ROUTER=ENDPOINT, HIROZ_DOMAIN=NUMBER and HIROZ_NODE=NAME in the environment";

fn main() -> ExitCode {
    zenoh::init_log_from_env_or("error");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["router", port] => router(port),
        ["talk", topic, count] => with_runtime(|| talk(topic, number(count)?, false)),
        ["latch", topic, count] => with_runtime(|| talk(topic, number(count)?, true)),
        ["listen", topic] => with_runtime(|| listen(topic, false)),
        ["late", topic] => with_runtime(|| listen(topic, true)),
        ["serve", name] => with_runtime(|| serve(name)),
        ["call", name, count] => with_runtime(|| call(name, number(count)?)),
        ["pursue", name] => with_runtime(|| action::pursue(name)),
        ["ask", name, order] => with_runtime(|| action::ask(name, order.parse()?, Cancel::Nothing)),
        ["ask", name, order, "cancel"] => {
            with_runtime(|| action::ask(name, order.parse()?, Cancel::Own))
        }
        ["ask", name, order, "cancel-all"] => {
            with_runtime(|| action::ask(name, order.parse()?, Cancel::All))
        }
        ["offer"] => with_runtime(parameters::offer),
        ["inspect", node, name, ref values @ ..] => {
            with_runtime(|| parameters::inspect(node, name, values))
        }
        ["graph", node, topic, name] => with_runtime(|| graph(node, topic, name)),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Hiroz wants to be called in a runtime.
fn with_runtime(body: impl FnOnce() -> Result<()>) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let _entered = runtime.enter();
    body()
}

fn number(text: &str) -> Result<usize> {
    Ok(text.parse()?)
}

/// Routes as rmw_zenoh's router does: it tells each of all others, and peers go directly.
fn router(port: &str) -> Result<()> {
    let text = format!(
        r#"{{ mode: "router", listen: {{ endpoints: ["tcp/127.0.0.1:{port}"] }},
             scouting: {{ multicast: {{ enabled: false }} }} }}"#
    );
    let session = zenoh::open(zenoh::Config::from_json5(&text)?).wait()?;
    say("ready");
    until_told();
    session.close().wait()
}

fn node() -> Result<(ZContext, ZNode)> {
    let of = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let context = ZContextBuilder::default()
        .with_domain_id(number(&of("HIROZ_DOMAIN", "0"))?)
        .with_mode("peer")
        .disable_multicast_scouting()
        .with_connect_endpoints([of("HIROZ_ROUTER", "tcp/127.0.0.1:7447")])
        .build()?;
    let node = context.create_node(of("HIROZ_NODE", "hiroz_peer")).build()?;
    Ok((context, node))
}

fn qos(is_latched: bool, depth: usize) -> QosProfile {
    let durability = match is_latched {
        true => QosDurability::TransientLocal,
        false => QosDurability::Volatile,
    };
    let history = QosHistory::KeepLast(
        std::num::NonZeroUsize::new(depth).unwrap_or(std::num::NonZeroUsize::MIN),
    );
    QosProfile {
        durability,
        history,
        reliability: QosReliability::Reliable,
        ..QosProfile::default()
    }
}

fn talk(topic: &str, count: usize, is_latched: bool) -> Result<()> {
    let (_context, node) = node()?;
    let publisher = node.create_pub::<Text>(topic).with_qos(qos(is_latched, count)).build()?;
    say("ready");
    if !is_latched {
        let is_heard = || 0 < node.graph().count(EndpointKind::Subscription, topic);
        until(is_heard);
        say("matched");
        until_line();
    }
    for number in 1..=count {
        publisher.publish(&Text { data: format!("hello {number}") })?;
    }
    say(&format!("sent {count}"));
    until_told();
    Ok(())
}

fn listen(topic: &str, is_latched: bool) -> Result<()> {
    let (_context, node) = node()?;
    let heard = |text: Text| say(&format!("heard {}", text.data));
    let builder = node.create_sub::<Text>(topic).with_qos(qos(is_latched, 1000));
    let _subscription = builder.build_with_callback(heard)?;
    say("ready");
    until_told();
    Ok(())
}

fn serve(name: &str) -> Result<()> {
    let (_context, node) = node()?;
    let mut server = node.create_service::<AddTwoInts>(name).build()?;
    std::thread::spawn(move || {
        while let Ok(request) = server.take_request() {
            let AddTwoIntsRequest { a, b } = *request.message();
            say(&format!("asked {a} {b}"));
            let _ = request.reply_blocking(&AddTwoIntsResponse { sum: a + b });
        }
    });
    say("ready");
    until_told();
    Ok(())
}

fn call(name: &str, count: usize) -> Result<()> {
    let (_context, node) = node()?;
    let client = node.create_client::<AddTwoInts>(name).build()?;
    say("ready");
    until(|| 0 < node.graph().count(EndpointKind::Service, name));
    say("matched");
    let runtime = tokio::runtime::Handle::current();
    for number in 1..=count {
        let a = i64::try_from(number)?;
        let request = AddTwoIntsRequest { a, b: 1000 };
        let response = runtime.block_on(client.call_with_timeout(&request, WITHIN))?;
        say(&format!("sum {}", response.sum));
    }
    until_told();
    Ok(())
}

fn graph(name: &str, topic: &str, service: &str) -> Result<()> {
    let (_context, node) = node()?;
    say("ready");
    let is_there = || node.graph().get_node_names().iter().any(|(it, _)| it == name);
    let publishes = || 0 < node.graph().count(EndpointKind::Publisher, topic);
    let serves = || 0 < node.graph().count(EndpointKind::Service, service);
    until(is_there);
    say("sees the node");
    until(publishes);
    say("sees the topic");
    until(serves);
    say("found");
    until(|| !is_there() && !publishes() && !serves());
    say("gone");
    until_told();
    Ok(())
}

/// Longer than whoever started this waits.
const WITHIN: Duration = Duration::from_secs(100);

/// Looks again and again, until told to end.
fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn say(line: &str) {
    println!("{line}");
}

fn until_line() {
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line).unwrap_or(0) == 0 {
        std::process::exit(0);
    }
}

fn until_told() {
    for line in std::io::stdin().lock().lines() {
        if line.is_err() {
            return;
        }
    }
}

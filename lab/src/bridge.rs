//! Web clients at `tsuji bridge`: how soon what they publish is in ROS, how much they get, and what that takes.
//!
//! After an article on rosbridge_server, which sent 100,000 texts by TCP and by WebSocket, with two clients of its own: they are
//! here by what they do and, where Python is, themselves, beside one that is as fast as its bytes are taken.

use std::collections::HashMap;

use tsuji_bridge::Protocol;

use crate::budgets::Run;
use crate::crew::{Program, Stop};
use crate::rounds::{self, InRounds, Round};
use crate::statistics::interval_of_median;

mod client;
mod connects;
mod house;
mod inward;
mod outward;
mod part;
mod pictures;
mod python;
mod server;
mod wire;

use connects::CONNECTS;
use inward::{Inward, Who};
use outward::{Outward, TRIPS, Trips};
pub(crate) use part::BridgePart;
use pictures::{Form, Pictures};
use server::{INCOMING_BUFFER, OWN, ROSBRIDGE_1, ROSBRIDGE_2, Rosbridge1, Rosbridge2, Server};

/// Pictures of a camera.
const WIDTH: u32 = 640;
const HEIGHT: u32 = 480;
const PICTURE_BYTES: usize = WIDTH as usize * HEIGHT as usize * 3;

/// What a case does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// Texts by a protocol, of which the bridge reads so much of TCP at once.
    In(Protocol, u64),
    Out,
    Trips,
    Image(Form),
    Many(Form),
    Connects,
}

const CASES: [(&str, Case); 13] = [
    ("in-websocket", Case::In(Protocol::WebSocket, INCOMING_BUFFER)),
    ("in-tcp-65536", Case::In(Protocol::Tcp, INCOMING_BUFFER)),
    ("in-tcp-1024", Case::In(Protocol::Tcp, 1024)),
    ("in-udp", Case::In(Protocol::Udp, INCOMING_BUFFER)),
    ("out", Case::Out),
    (TRIPS, Case::Trips),
    ("image-json", Case::Image(Form::Json)),
    ("image-cbor", Case::Image(Form::Cbor)),
    ("image-cbor-raw", Case::Image(Form::CborRaw)),
    ("many-json", Case::Many(Form::Json)),
    ("many-cbor", Case::Many(Form::Cbor)),
    ("many-cbor-raw", Case::Many(Form::CborRaw)),
    (CONNECTS, Case::Connects),
];

impl Case {
    /// Whether a look has no time for it, unless it is asked for by name.
    fn is_long(self) -> bool {
        matches!(self, Self::Many(Form::Json | Form::Cbor))
    }

    /// Whether others than ours can take part.
    fn has_peer(self) -> bool {
        matches!(self, Self::In(..) | Self::Out | Self::Image(_))
    }

    /// Whether that bridge takes part.
    fn has(self, server: &Server) -> bool {
        match self {
            Self::In(protocol, _) => server.serves(protocol),
            _ => server.is_own() || self.has_peer(),
        }
    }

    /// The protocol of the article's client that it has; none has UDP.
    fn python(self) -> Option<Protocol> {
        match self {
            Self::In(protocol @ (Protocol::WebSocket | Protocol::Tcp), _) => Some(protocol),
            _ => None,
        }
    }

    fn scenarios(
        self,
        name: &str,
        server: &Server,
        python: Option<&Program>,
    ) -> Vec<Box<dyn Scenario>> {
        match self {
            Self::In(protocol, incoming_buffer) => {
                let server = server.for_protocol(protocol, incoming_buffer);
                let scenario = |who: Who| -> Box<dyn Scenario> {
                    let name = format!("{name}{}", who.suffix());
                    let (server, brought) = (server.clone(), Vec::new());
                    Box::new(Inward { name, protocol, server, who, brought })
                };
                let python = python.cloned().map(Who::Python);
                [Who::Fast, Who::Article].into_iter().chain(python).map(scenario).collect()
            }
            Self::Out => {
                let (name, server) = (name.to_owned(), server.clone());
                vec![Box::new(Outward { name, server, brought: Vec::new() })]
            }
            Self::Trips => vec![Box::new(Trips::default())],
            Self::Image(form) => vec![Box::new(Pictures::new(name, form, false, server.clone()))],
            Self::Many(form) => vec![Box::new(Pictures::new(name, form, true, server.clone()))],
            Self::Connects => Vec::new(),
        }
    }
}

/// What has its turn in each round, at one server.
trait Scenario: InRounds {
    fn server(&self) -> &Server;

    /// Says what all rounds brought.
    fn tell(&self, run: &mut Run<'_, '_>);

    /// What it is called in figures, and how long each start took for a message.
    fn timed(&self) -> Option<(&str, Vec<f64>)> {
        None
    }

    /// The same, if it has a row in the table of clients that publish.
    fn inward(&self) -> Option<&Inward> {
        None
    }
}

/// What `name` is called at `server` where it is told that it failed.
fn named(name: &str, server: &Server) -> String {
    if server.is_own() { name.to_owned() } else { format!("{name}, {server}") }
}

/// Measures what `options` asks for.
pub(crate) fn run(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let options = run.options;
    let mut wanted = run.wanted(CASES.into_iter())?;
    if options.quick && options.cases.is_empty() {
        wanted.retain(|(_, case)| !case.is_long());
    }
    let servers = servers(run, &wanted);
    let pythons = pythons(run, wanted.iter().filter_map(|it| it.1.python()));
    let mut scenarios = Vec::new();
    for (name, case) in &wanted {
        let of_case = servers.iter().filter(|it| case.has(it));
        let python = case.python().and_then(|it| pythons.get(&it));
        scenarios.extend(of_case.flat_map(|it| case.scenarios(name, it, python)));
    }
    let stopped = rounds::measure(run, Round::asked(options), &mut scenarios);
    tell(run, &scenarios);
    stopped?;
    if wanted.iter().any(|(_, case)| *case == Case::Connects) {
        let measured = connects::measure(run);
        run.part(CONNECTS, measured)?;
    }
    Ok(())
}

/// Our own, and each that is here and takes part in a case. Of others it is said why not.
fn servers(run: &mut Run<'_, '_>, wanted: &[(&str, Case)]) -> Vec<Server> {
    let mut servers = vec![OWN.clone()];
    let others = [
        (ROSBRIDGE_2, Rosbridge2::find().map(Server::Ros2)),
        (ROSBRIDGE_1, Rosbridge1::find(&run.stage.program).map(Server::Ros1)),
    ];
    for (name, found) in others {
        match found {
            Ok(it) => servers.push(it),
            Err(why) if wanted.iter().any(|it| it.1.has_peer()) => {
                run.report.absent(run.screen, name, &why);
            }
            Err(_) => {}
        }
    }
    servers
}

/// The Python of each of `protocols`, as far as they are here. Of others it is said why not.
fn pythons(
    run: &mut Run<'_, '_>,
    protocols: impl Iterator<Item = Protocol>,
) -> HashMap<Protocol, Program> {
    let (mut found, mut absent) = (HashMap::new(), Vec::new());
    for protocol in protocols {
        match python::find(protocol) {
            Ok(program) => {
                found.insert(protocol, program);
            }
            Err((what, why)) if !absent.contains(&what) => {
                absent.push(what);
                run.report.absent(run.screen, what, &why);
            }
            Err(_) => {}
        }
    }
    found
}

fn tell(run: &mut Run<'_, '_>, scenarios: &[Box<dyn Scenario>]) {
    scenarios.iter().for_each(|it| it.tell(run));
    for (at, ours) in scenarios.iter().enumerate().filter(|it| it.1.server().is_own()) {
        let Some((name, ours)) = ours.timed() else { continue };
        for it in scenarios[at..].iter().filter(|it| !it.server().is_own()) {
            let Some((_, theirs)) = it.timed().filter(|it| it.0 == name) else { continue };
            let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| a / b).collect();
            let of = format!("{OWN} / {}", it.server());
            run.judge(name, of, interval_of_median(&ratios), "×", None);
        }
    }
    inward::tables(run, &scenarios.iter().filter_map(|it| it.inward()).collect::<Vec<_>>());
}

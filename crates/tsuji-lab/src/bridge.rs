//! Web clients at `tsuji bridge`: how soon what they publish is in ROS, how much they get, and what that takes.
//!
//! After an article on rosbridge_server, which sent 100,000 texts by TCP and by WebSocket, with two clients of its own: they are
//! here by what they do and, where Python is, themselves, beside one that is as fast as its bytes are taken.

use std::collections::HashMap;

use tsuji_bridge::Carrier;

use crate::arguments::Options;
use crate::crew::{Program, Stage, Stop};
use crate::limits::Run;
use crate::report::{Report, Screen};
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
pub(crate) use part::{PART, part};
use pictures::{Form, Pictures};
use server::{INCOMING_BUFFER, OWN, ROSBRIDGE_1, ROSBRIDGE_2, Rosbridge1, Rosbridge2, Server};

/// Pictures of a camera.
const WIDTH: u32 = 640;
const HEIGHT: u32 = 480;
const PICTURE_BYTES: usize = WIDTH as usize * HEIGHT as usize * 3;

/// What a case does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// Texts by a carrier, of which the bridge reads so much of TCP at once.
    In(Carrier, u64),
    Out,
    Trips,
    Image(Form),
    Many(Form),
    Connects,
}

const CASES: [(&str, Case); 13] = [
    ("in-websocket", Case::In(Carrier::WebSocket, INCOMING_BUFFER)),
    ("in-tcp-65536", Case::In(Carrier::Tcp, INCOMING_BUFFER)),
    ("in-tcp-1024", Case::In(Carrier::Tcp, 1024)),
    ("in-udp", Case::In(Carrier::Udp, INCOMING_BUFFER)),
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
            Self::In(carrier, _) => server.serves(carrier),
            _ => server.is_own() || self.has_peer(),
        }
    }

    /// The carrier of the article's client that it has; none has UDP.
    fn python(self) -> Option<Carrier> {
        match self {
            Self::In(carrier @ (Carrier::WebSocket | Carrier::Tcp), _) => Some(carrier),
            _ => None,
        }
    }

    fn scenes(self, name: &str, server: &Server, python: Option<&Program>) -> Vec<Scene> {
        match self {
            Self::In(carrier, incoming_buffer) => {
                let server = server.for_carrier(carrier, incoming_buffer);
                let scene = |who: Who| {
                    let name = format!("{name}{}", who.suffix());
                    let (server, brought) = (server.clone(), Vec::new());
                    Scene::In(Inward { name, carrier, server, who, brought })
                };
                let python = python.cloned().map(Who::Python);
                [Who::Fast, Who::Article].into_iter().chain(python).map(scene).collect()
            }
            Self::Out => {
                let (name, server) = (name.to_owned(), server.clone());
                vec![Scene::Out(Outward { name, server, brought: Vec::new() })]
            }
            Self::Trips => vec![Scene::Trips(Trips::default())],
            Self::Image(form) => {
                vec![Scene::Pictures(Box::new(Pictures::new(name, form, false, server.clone())))]
            }
            Self::Many(form) => {
                vec![Scene::Pictures(Box::new(Pictures::new(name, form, true, server.clone())))]
            }
            Self::Connects => Vec::new(),
        }
    }
}

/// What has its turn in each round.
enum Scene {
    In(Inward),
    Out(Outward),
    Trips(Trips),
    Pictures(Box<Pictures>),
}

impl Scene {
    fn server(&self) -> &Server {
        match self {
            Self::In(it) => &it.server,
            Self::Out(it) => &it.server,
            Self::Trips(_) => &OWN,
            Self::Pictures(it) => &it.server,
        }
    }

    fn tell(&self, run: &mut Run<'_, '_>) {
        match self {
            Self::In(it) => it.tell(run),
            Self::Out(it) => it.tell(run),
            Self::Trips(it) => it.tell(run),
            Self::Pictures(it) => it.tell(run),
        }
    }

    /// What it is called in figures, and how long each start took for a message.
    fn timed(&self) -> Option<(&str, Vec<f64>)> {
        match self {
            Self::In(it) => {
                Some((&it.name, it.brought.iter().map(|it| 1.0 / it.a_second()).collect()))
            }
            Self::Out(it) => {
                Some((&it.name, it.brought.iter().map(|it| 1.0 / it.a_second()).collect()))
            }
            Self::Trips(_) | Self::Pictures(_) => None,
        }
    }
}

impl InRounds for Scene {
    fn name(&self) -> String {
        let name = match self {
            Self::In(it) => it.name(),
            Self::Out(it) => it.name(),
            Self::Trips(it) => it.name(),
            Self::Pictures(it) => it.name(),
        };
        if self.server().is_own() { name } else { format!("{name}, {}", self.server()) }
    }

    fn round(&mut self, run: &mut Run<'_, '_>, round: Round) -> Result<(), Stop> {
        match self {
            Self::In(it) => it.round(run, round),
            Self::Out(it) => it.round(run, round),
            Self::Trips(it) => it.round(run, round),
            Self::Pictures(it) => it.round(run, round),
        }
    }
}

/// Measures what `options` asks for.
pub(crate) fn run(
    stage: &Stage,
    options: &Options,
    screen: &mut Screen<'_>,
    report: &mut Report,
) -> Result<(), Stop> {
    let run = &mut Run { stage, options, screen, report };
    let mut wanted = run.wanted(CASES.into_iter())?;
    if options.quick && options.cases.is_empty() {
        wanted.retain(|(_, case)| !case.is_long());
    }
    let servers = servers(run, &wanted);
    let pythons = pythons(run, wanted.iter().filter_map(|it| it.1.python()));
    let mut scenes = Vec::new();
    for (name, case) in &wanted {
        let of_case = servers.iter().filter(|it| case.has(it));
        let python = case.python().and_then(|it| pythons.get(&it));
        scenes.extend(of_case.flat_map(|it| case.scenes(name, it, python)).map(Box::new));
    }
    let stopped = rounds::measure(run, Round::asked(options), &mut scenes);
    tell(run, &scenes);
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

/// The Python of each of `carriers`, as far as they are here. Of others it is said why not.
fn pythons(
    run: &mut Run<'_, '_>,
    carriers: impl Iterator<Item = Carrier>,
) -> HashMap<Carrier, Program> {
    let (mut found, mut absent) = (HashMap::new(), Vec::new());
    for carrier in carriers {
        match python::find(carrier) {
            Ok(program) => {
                found.insert(carrier, program);
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

fn tell(run: &mut Run<'_, '_>, scenes: &[Box<Scene>]) {
    scenes.iter().for_each(|it| it.tell(run));
    for (at, ours) in scenes.iter().enumerate().filter(|it| it.1.server().is_own()) {
        let Some((name, ours)) = ours.timed() else { continue };
        for it in scenes[at..].iter().filter(|it| !it.server().is_own()) {
            let Some((_, theirs)) = it.timed().filter(|it| it.0 == name) else { continue };
            let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| a / b).collect();
            let of = format!("{OWN} / {}", it.server());
            run.judge(name, of, interval_of_median(&ratios), "×", None);
        }
    }
    let inward = scenes.iter().filter_map(|it| match &**it {
        Scene::In(it) => Some(it),
        _ => None,
    });
    inward::tables(run, &inward.collect::<Vec<_>>());
}

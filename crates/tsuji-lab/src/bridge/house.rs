//! A bridge and those around it, started anew for each round of a case.

use std::fmt;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tsuji_bridge::Carrier;

use super::part::PART;
use crate::camera::seconds_used;
use crate::crew::{Child, Program, Stage, Stop};
use crate::placement::Seat;
use crate::rclcpp;
use crate::road;

/// Whose bridge it is.
#[derive(Clone, Debug)]
pub(super) enum Server {
    /// That of tsuji, which reads so many bytes of a TCP connection at once.
    Own { incoming_buffer: u64 },
    /// That of the ROS 2 that is sourced.
    Ros(Rosbridge),
}

/// That of tsuji as users start it.
pub(super) static OWN: Server = Server::Own { incoming_buffer: 65_536 };

impl Server {
    pub(super) fn is_own(&self) -> bool {
        matches!(self, Self::Own { .. })
    }

    /// How many messages it is given, where it is asked for `count`: a slow one would hold up all others.
    pub(super) fn messages(&self, count: u64) -> u64 {
        if self.is_own() { count } else { count.min(SLOW_MESSAGES_MAX) }
    }
}

const SLOW_MESSAGES_MAX: u64 = 100_000;

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_own() { "tsuji bridge" } else { ROSBRIDGE })
    }
}

/// Its package and its name in reports.
pub(super) const ROSBRIDGE: &str = "rosbridge_server";

/// The program of that package that serves WebSockets; it has no others.
const ROSBRIDGE_PROGRAM: &str = "rosbridge_websocket";

/// The rosbridge_server of the ROS 2 that is sourced.
#[derive(Clone, Debug)]
pub(super) struct Rosbridge {
    program: Program,
}

impl Rosbridge {
    /// Looks for it. An error says what is missing.
    pub(super) fn find() -> Result<Self, String> {
        let prefixes = rclcpp::prefixes()?;
        let folder = |prefix: std::path::PathBuf| prefix.join("lib").join(ROSBRIDGE);
        let mut folders = std::env::split_paths(&prefixes).map(folder);
        let program = folders.find_map(|it| Program::in_folder(&it, ROSBRIDGE_PROGRAM));
        let program = program.ok_or_else(|| {
            format!(
                "not installed: no {ROSBRIDGE}/{ROSBRIDGE_PROGRAM} in {}; for example apt-get install ros-humble-rosbridge-server",
                prefixes.display()
            )
        })?;
        Ok(Self { program })
    }

    /// Starts it on a free port of loopback; where it is, once it listens.
    fn start(&self, stage: &Stage) -> Result<(Child, String), Stop> {
        let port = free_port().map_err(|error| format!("find a free port: {error}"))?;
        let at = format!("port:={port}");
        let program =
            beside_ros(self.program.clone(), stage).with_words(&["--ros-args", "-p", &at]);
        let mut child = Child::start(&stage.with_program(program), "-p", "address:=127.0.0.1")?;
        let begin = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if stage.interrupt.is_set() {
                return Err(Stop::Interrupted);
            }
            if let Some(end) = child.end(Duration::ZERO) {
                return Err(end.into());
            }
            if LISTENS_WITHIN < begin.elapsed() {
                child.kill();
                return Err(format!("it does not listen at port {port}").into());
            }
            thread::sleep(LOOK);
        }
        Ok((child, format!("127.0.0.1:{port}")))
    }
}

const LISTENS_WITHIN: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);

/// One that nobody has now.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The same where its children are nodes of ROS 2 of this host and this run.
fn beside_ros(program: Program, stage: &Stage) -> Program {
    let (range, of_this_host) = rclcpp::range_of_this_host();
    let domain = road::domain(stage.folder()).to_string();
    program.with_variable("ROS_DOMAIN_ID", domain).with_variable(range, of_this_host)
}

/// A process, and what it is called where it fails.
pub(super) struct Player {
    who: &'static str,
    child: Child,
}

impl Player {
    pub(super) fn tell(&mut self, words: &str) -> Result<(), Stop> {
        self.child.tell(words).map_err(|stop| stop.of(self.who))
    }

    pub(super) fn answer(&mut self) -> Result<Value, Stop> {
        self.child.answer().map_err(|stop| stop.of(self.who))
    }

    pub(super) fn ask(&mut self, words: &str) -> Result<Value, Stop> {
        self.tell(words)?;
        self.answer()
    }
}

/// A bridge that runs.
pub(super) struct House<'a> {
    stage: &'a Stage,
    server: &'a Server,
    bridge: Player,
    /// Where each carrier is.
    places: Value,
}

impl<'a> House<'a> {
    /// Starts a bridge in `seat`, and measures with it. Where it has ended meanwhile, that is why nothing was measured.
    pub(super) fn with<T>(
        stage: &'a Stage,
        server: &'a Server,
        seat: Seat,
        measure: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let mut house = Self::start(stage, server, seat).map_err(|stop| stop.of(BRIDGE))?;
        let measured = measure(&mut house).map_err(|stop| match stop {
            Stop::Failed(why) => {
                let end = house.bridge.child.end(A_MOMENT);
                Stop::Failed(end.map_or(why, |end| format!("{BRIDGE}: {end}")))
            }
            Stop::Interrupted => Stop::Interrupted,
        });
        if !server.is_own() {
            // It does not end with its input.
            house.bridge.child.kill();
        }
        measured
    }

    fn start(stage: &'a Stage, server: &'a Server, seat: Seat) -> Result<Self, Stop> {
        let seated = stage.at(seat);
        let (child, places) = match server {
            Server::Own { incoming_buffer } => {
                let text = json!({
                    "role": "bridge", "folder": stage.folder(), "incoming_buffer": incoming_buffer,
                });
                let mut child = Child::start(&seated, PART, &text.to_string())?;
                let places = child.answer()?;
                (child, places)
            }
            Server::Ros(it) => {
                let (child, place) = it.start(&seated)?;
                (child, json!({ Carrier::WebSocket.word(): place }))
            }
        };
        Ok(Self { stage, server, bridge: Player { who: BRIDGE, child }, places })
    }

    /// A topic of that name: where others of the network may be, of this run.
    pub(super) fn topic(&self, name: &str) -> String {
        match self.server {
            Server::Own { .. } => format!("/{name}"),
            Server::Ros(_) => format!("/{}", road::of_this_run(self.stage.folder(), name)),
        }
    }

    /// Starts a node: who listens, or who speaks.
    pub(super) fn node(
        &self,
        seat: Seat,
        role: &'static str,
        mut text: Value,
    ) -> Result<Player, Stop> {
        text["is_beside_ros"] = (!self.server.is_own()).into();
        let stage = match self.server {
            Server::Own { .. } => self.stage.clone(),
            Server::Ros(_) => {
                self.stage.with_program(beside_ros(self.stage.program.clone(), self.stage))
            }
        };
        self.play(&stage.at(seat), role, text)
    }

    /// Starts clients by that carrier.
    pub(super) fn client(&self, seat: Seat, carrier: Carrier, text: Value) -> Result<Player, Stop> {
        self.client_of(&self.stage.program, seat, carrier, text)
    }

    /// The same, as that program plays them.
    pub(super) fn client_of(
        &self,
        program: &Program,
        seat: Seat,
        carrier: Carrier,
        mut text: Value,
    ) -> Result<Player, Stop> {
        text["carrier"] = carrier.word().into();
        text["address"] = self.places[carrier.word()].clone();
        self.play(&self.stage.with_program(program.clone()).at(seat), "client", text)
    }

    fn play(&self, stage: &Stage, role: &'static str, mut text: Value) -> Result<Player, Stop> {
        text["role"] = role.into();
        text["folder"] = json!(self.stage.folder());
        let who = match role {
            "listener" => "the listener",
            "speaker" => "the speaker",
            _ => "the client",
        };
        let child = Child::start(stage, PART, &text.to_string())?;
        let mut player = Player { who, child };
        player.answer()?;
        Ok(player)
    }

    /// Processor time of all threads of the bridge so far, µs: of ours as its clock says, of others in steps of 10 ms.
    pub(super) fn cpu_us(&mut self) -> Result<f64, Stop> {
        if self.server.is_own() {
            let used = self.bridge.ask("used")?;
            return Ok(used["cpu_ns"].as_u64().unwrap_or_default() as f64 / 1000.0);
        }
        Ok(seconds_used(self.bridge.child.id())? * 1e6)
    }

    /// Its process.
    pub(super) fn id(&self) -> u32 {
        self.bridge.child.id()
    }
}

const BRIDGE: &str = "the bridge";

/// Others notice that it has ended before it has.
const A_MOMENT: Duration = Duration::from_millis(500);

//! A bridge and those around it, started anew for each round of a case.

use std::time::Duration;

use serde_json::{Value, json};
use tsuji_bridge::Protocol;

use super::part::BridgePart;
use super::server::{self, Server};
use crate::camera::seconds_used;
use crate::crew::{Child, Program, Stage, Stop};
use crate::placement::Place;
use crate::ros1::Room;
use crate::route;

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
    /// Where each protocol is.
    places: Value,
    /// Where nodes of ROS 1 are.
    room: Option<Room>,
}

impl<'a> House<'a> {
    /// Starts a bridge in `place`, and measures with it. Where it has ended meanwhile, that is why nothing was measured.
    pub(super) fn with<T>(
        stage: &'a Stage,
        server: &'a Server,
        place: Place,
        measure: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let mut house = Self::start(stage, server, place).map_err(|stop| stop.of(BRIDGE))?;
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

    fn start(stage: &'a Stage, server: &'a Server, place: Place) -> Result<Self, Stop> {
        let placed = stage.at(place);
        let (child, places, room) = match server {
            Server::Own { incoming_buffer } => {
                let text = json!({
                    "role": "bridge", "folder": stage.folder(), "incoming_buffer": incoming_buffer,
                });
                let mut child = Child::start(&placed, &BridgePart(text))?;
                let places = child.answer()?;
                (child, places, None)
            }
            Server::Ros2(it) => {
                let (child, place) = it.start(&placed)?;
                (child, json!({ Protocol::WebSocket.word(): place }), None)
            }
            Server::Ros1(it) => {
                let room = it.room(stage)?;
                let (child, place) = it.start(&placed, &room)?;
                (child, json!({ it.protocol.word(): place }), Some(room))
            }
        };
        Ok(Self { stage, server, bridge: Player { who: BRIDGE, child }, places, room })
    }

    /// A topic of that name: where others of the network may be, of this run.
    pub(super) fn topic(&self, name: &str) -> String {
        match self.server {
            Server::Own { .. } | Server::Ros1(_) => format!("/{name}"),
            Server::Ros2(_) => format!("/{}", route::of_this_run(self.stage.folder(), name)),
        }
    }

    /// Starts a node: who listens, or who speaks.
    pub(super) fn node(
        &self,
        place: Place,
        role: &'static str,
        mut text: Value,
    ) -> Result<Player, Stop> {
        text["is_beside_ros"] = matches!(self.server, Server::Ros2(_)).into();
        let stage = match (self.server, &self.room) {
            (Server::Ros2(_), _) => {
                let program = self.stage.program.clone();
                &self.stage.with_program(server::beside_ros2(program, self.stage))
            }
            (_, Some(room)) => &room.stage,
            _ => self.stage,
        };
        self.start_player(&stage.at(place), role, text)
    }

    /// Starts clients by that protocol.
    pub(super) fn client(
        &self,
        place: Place,
        protocol: Protocol,
        text: Value,
    ) -> Result<Player, Stop> {
        self.client_of(&self.stage.program, place, protocol, text)
    }

    /// The same, as that program plays them.
    pub(super) fn client_of(
        &self,
        program: &Program,
        place: Place,
        protocol: Protocol,
        mut text: Value,
    ) -> Result<Player, Stop> {
        text["protocol"] = protocol.word().into();
        text["address"] = self.places[protocol.word()].clone();
        self.start_player(&self.stage.with_program(program.clone()).at(place), "client", text)
    }

    fn start_player(
        &self,
        stage: &Stage,
        role: &'static str,
        mut text: Value,
    ) -> Result<Player, Stop> {
        text["role"] = role.into();
        text["folder"] = json!(self.stage.folder());
        let who = match role {
            "listener" => "the listener",
            "speaker" => "the speaker",
            _ => "the client",
        };
        let child = Child::start(stage, &BridgePart(text))?;
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

//! Whose bridge is measured: that of tsuji, and rosbridge_server of the ROS that is sourced.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use tsuji_bridge::Protocol;

use crate::crew::{Child, Program, Stage, Stop};
use crate::rclcpp;
use crate::ros1::{Room, Ros1};
use crate::route;

/// Whose bridge it is.
#[derive(Clone, Debug)]
pub(super) enum Server {
    /// That of tsuji, which reads so many bytes of a TCP connection at once.
    Own { incoming_buffer: u64 },
    /// That of the ROS 1 that is sourced.
    Ros1(Rosbridge1),
    /// That of the ROS 2 that is sourced.
    Ros2(Rosbridge2),
}

/// That of tsuji as users start it.
pub(super) static OWN: Server = Server::Own { incoming_buffer: INCOMING_BUFFER };

/// What a bridge reads of TCP at once, where it is not told.
pub(super) const INCOMING_BUFFER: u64 = 65_536;

impl Server {
    pub(super) fn is_own(&self) -> bool {
        matches!(self, Self::Own { .. })
    }

    /// The same for a case of that protocol, with so much of TCP read at once.
    pub(super) fn for_protocol(&self, protocol: Protocol, incoming_buffer: u64) -> Self {
        match self {
            Self::Own { .. } => Self::Own { incoming_buffer },
            Self::Ros1(it) => Self::Ros1(Rosbridge1 { protocol, incoming_buffer, ..it.clone() }),
            Self::Ros2(it) => Self::Ros2(it.clone()),
        }
    }

    /// So many bytes of a TCP connection it reads at once.
    pub(super) fn incoming_buffer(&self) -> u64 {
        match self {
            Self::Own { incoming_buffer } | Self::Ros1(Rosbridge1 { incoming_buffer, .. }) => {
                *incoming_buffer
            }
            Self::Ros2(_) => INCOMING_BUFFER,
        }
    }

    /// Whether it has that protocol.
    pub(super) fn serves(&self, protocol: Protocol) -> bool {
        protocol == Protocol::WebSocket || !matches!(self, Self::Ros2(_))
    }

    /// How many messages it is given, where it is asked for `count`: a slow one would hold up all others.
    pub(super) fn messages(&self, count: u64) -> u64 {
        match self {
            Self::Own { .. } => count,
            Self::Ros1(it) if it.protocol == Protocol::Tcp && SMALL_BUFFER < it.incoming_buffer => {
                count.min(SLOWEST_MESSAGES_MAX)
            }
            Self::Ros1(_) | Self::Ros2(_) => count.min(SLOW_MESSAGES_MAX),
        }
    }
}

const SLOW_MESSAGES_MAX: u64 = 100_000;
/// It takes some 3 ms for each, once as much waits as it reads at once.
const SLOWEST_MESSAGES_MAX: u64 = 5000;
const SMALL_BUFFER: u64 = 4096;

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own { .. } => "tsuji bridge",
            Self::Ros1(_) => ROSBRIDGE_1,
            Self::Ros2(_) => ROSBRIDGE_2,
        })
    }
}

/// What they are called in reports.
pub(super) const ROSBRIDGE_1: &str = "rosbridge_server of ROS 1";
pub(super) const ROSBRIDGE_2: &str = PACKAGE;

const PACKAGE: &str = "rosbridge_server";

/// The program of that package that serves this protocol; that of ROS 2 has WebSocket alone.
fn program_of(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::WebSocket => "rosbridge_websocket",
        Protocol::Tcp => "rosbridge_tcp",
        Protocol::Udp => "rosbridge_udp",
    }
}

/// Where its programs are, if it is in one of `prefixes`.
fn folders(prefixes: &OsStr) -> impl Iterator<Item = PathBuf> {
    env::split_paths(prefixes).map(|it| it.join("lib").join(PACKAGE))
}

/// The rosbridge_server of the ROS 2 that is sourced.
#[derive(Clone, Debug)]
pub(super) struct Rosbridge2 {
    program: Program,
}

impl Rosbridge2 {
    /// Looks for it. An error says what is missing.
    pub(super) fn find() -> Result<Self, String> {
        let prefixes = rclcpp::prefixes()?;
        let name = program_of(Protocol::WebSocket);
        let program = folders(&prefixes).find_map(|it| Program::in_folder(&it, name));
        let program = program.ok_or_else(|| {
            format!(
                "not installed: no {PACKAGE}/{name} in {}; for example apt-get install ros-humble-rosbridge-server",
                prefixes.display()
            )
        })?;
        Ok(Self { program })
    }

    /// Starts it on a free port of loopback; where it is, once it listens.
    pub(super) fn start(&self, stage: &Stage) -> Result<(Child, String), Stop> {
        let port = free_port(Protocol::WebSocket)?;
        let at = format!("port:={port}");
        let program =
            beside_ros2(self.program.clone(), stage).with_words(&["--ros-args", "-p", &at]);
        let child = Child::start_with(&stage.with_program(program), ["-p", "address:=127.0.0.1"])?;
        listening(child, stage, Protocol::WebSocket, port)
    }
}

/// The same where its children are nodes of ROS 2 of this host and this run.
pub(super) fn beside_ros2(program: Program, stage: &Stage) -> Program {
    let (range, of_this_host) = rclcpp::range_of_this_host();
    let domain = route::domain(stage.folder()).to_string();
    program.with_variable("ROS_DOMAIN_ID", domain).with_variable(range, of_this_host)
}

/// The rosbridge_server of the ROS 1 that is sourced, for one protocol.
#[derive(Clone, Debug)]
pub(super) struct Rosbridge1 {
    nodes: Ros1,
    /// Its programs.
    folder: PathBuf,
    pub(super) protocol: Protocol,
    incoming_buffer: u64,
}

impl Rosbridge1 {
    /// Looks for it, for the nodes of the laboratory that are beside `own`, and for a master. An error says what is missing.
    pub(super) fn find(own: &Program) -> Result<Self, String> {
        let prefixes = env::var_os(CATKIN_PREFIXES).unwrap_or_default();
        // That of ROS 2 has no TCP.
        let has = |folder: &PathBuf| folder.join(program_of(Protocol::Tcp)).is_file();
        let folder = folders(&prefixes).find(has);
        let folder = folder.ok_or_else(|| {
            format!(
                "not installed: no {PACKAGE}/{} of ROS 1 in a folder of {CATKIN_PREFIXES}; for example apt-get install \
                 ros-noetic-rosbridge-server, and source /opt/ros/noetic/setup.bash",
                program_of(Protocol::Tcp)
            )
        })?;
        let nodes = Ros1::find(own)?;
        let (protocol, incoming_buffer) = (Protocol::WebSocket, INCOMING_BUFFER);
        Ok(Self { nodes, folder, protocol, incoming_buffer })
    }

    /// A master for it and those who meet there.
    pub(super) fn room(&self, stage: &Stage) -> Result<Room, Stop> {
        self.nodes.room(stage, &[])
    }

    /// Starts it on a free port of loopback; where it is, once it listens.
    pub(super) fn start(&self, stage: &Stage, room: &Room) -> Result<(Child, String), Stop> {
        let name = program_of(self.protocol);
        let program = Program::in_folder(&self.folder, name)
            .ok_or_else(|| format!("there is no {name} in {}", self.folder.display()))?;
        let port = free_port(self.protocol)?;
        // Each program has a name of its own for the address.
        let words = [
            format!("_port:={port}"),
            format!("_incoming_buffer:={}", self.incoming_buffer),
            "_host:=127.0.0.1".to_owned(),
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let stage = stage.with_program(room.with(program).with_words(&words));
        let child = Child::start_with(&stage, ["_address:=127.0.0.1", "_interface:=127.0.0.1"])?;
        listening(child, &stage, self.protocol, port)
    }
}

/// The variable with the folders of a ROS 1 that is sourced.
const CATKIN_PREFIXES: &str = "CMAKE_PREFIX_PATH";

/// Waits until `child` listens there.
fn listening(
    mut child: Child,
    stage: &Stage,
    protocol: Protocol,
    port: u16,
) -> Result<(Child, String), Stop> {
    let begin = Instant::now();
    while !is_taken(protocol, port) {
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

const LISTENS_WITHIN: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);

/// A port of loopback that nobody has now.
fn free_port(protocol: Protocol) -> Result<u16, String> {
    let any = (Ipv4Addr::LOCALHOST, 0);
    let address = match protocol {
        Protocol::Udp => UdpSocket::bind(any).and_then(|it| it.local_addr()),
        _ => TcpListener::bind(any).and_then(|it| it.local_addr()),
    };
    Ok(address.map_err(|error| format!("find a free port: {error}"))?.port())
}

/// Whether somebody listens at that port of loopback.
fn is_taken(protocol: Protocol, port: u16) -> bool {
    match protocol {
        // Nothing answers a datagram that is no message.
        Protocol::Udp => fs::read_to_string("/proc/net/udp").is_ok_and(|it| has_socket(&it, port)),
        _ => TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok(),
    }
}

/// Whether a table of sockets as in `/proc/net/udp` has one bound to that port; proc(5).
fn has_socket(table: &str, port: u16) -> bool {
    let end = format!(":{port:04X}");
    table.lines().filter_map(|it| it.split_ascii_whitespace().nth(1)).any(|it| it.ends_with(&end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_is_bound_is_seen() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(is_taken(Protocol::Udp, port));
        drop(socket);
        let table = "  sl  local_address rem_address   st\n  1: 0100007F:2382 00000000:0000 07\n";
        assert!(has_socket(table, 9090));
        assert!(!has_socket(table, 9091) && !has_socket("", 9090));
    }
}

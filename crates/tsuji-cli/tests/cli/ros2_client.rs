//! Commands towards a foreign ROS 2 node, one of ros2-client on RustDDS. The program is built by `make test`, which says
//! where it is in `TSUJI_PEER_ROS2_CLIENT`; without it nothing is done, but in CI that fails.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tsuji_platform::child;
use tsuji_platform::subprocess::Subprocess;

use crate::support::{WATCHDOG, World};

fn program() -> Option<OsString> {
    let program = std::env::var_os("TSUJI_PEER_ROS2_CLIENT");
    if program.is_none() {
        assert!(std::env::var_os("CI").is_none(), "TSUJI_PEER_ROS2_CLIENT is not set");
        let _ = writeln!(std::io::stderr(), "skipped: TSUJI_PEER_ROS2_CLIENT is not set");
    }
    program
}

/// A policy by which foreign nodes are met on loopback.
fn on_loopback(world: &World) -> PathBuf {
    world.write(
        "lo.xml",
        r#"<tsuji><transport name="cyclonedds">
        <set key="interfaces" value="lo"/><set key="multicast" value="true"/></transport></tsuji>"#,
    )
}

#[test]
fn commands_that_name_nodes_wait_for_their_names() {
    const WAITED: &str = "WARNING: no word of their nodes within 5 s from ";
    let Some(program) = program() else { return };
    let world = &World::new();
    let mut command = Command::new(program);
    command.args(["mute", "--domain", "96", "--address", "127.0.0.1"]);
    child::bind(command.stdin(Stdio::piped()).stdout(Stdio::null()));
    let peer = Subprocess::start(&mut command, WATCHDOG).unwrap();
    let policy = on_loopback(world);
    let variables = &[
        ("TSUJI_INTEROP", "rtps"),
        ("TSUJI_POLICY", policy.to_str().unwrap()),
        ("ROS_DOMAIN_ID", "96"),
    ];
    let commands: [&[&str]; 16] = [
        &["node", "list"],
        &["node", "info", "/nobody"],
        &["topic", "info", "/nothing", "-v"],
        &["topic", "info", "/nothing", "--json"],
        &["service", "info", "/nothing", "-v"],
        &["service", "info", "/nothing", "--json"],
        &["action", "info", "/nothing"],
        &["param", "list"],
        &["param", "get", "use_sim_time"],
        &["param", "get", "/nobody", "use_sim_time"],
        &["param", "dump", "/nobody"],
        &["lifecycle", "nodes"],
        &["component", "list"],
        &["routes"],
        &["routes", "--json"],
        &["route", "auto", "/nothing"],
    ];
    std::thread::scope(|scope| {
        for command in commands {
            scope.spawn(move || {
                // The participant may be met after the first few.
                let mut ended = (0..5).map(|_| world.run_with(variables, command));
                assert!(ended.any(|it| it.err.contains(WAITED)), "{command:?}");
            });
        }
    });
    for command in [["service", "info", "/nothing"], ["topic", "info", "/nothing"]] {
        let ended = world.run_with(variables, &command);
        assert!(!ended.err.contains("no word of their nodes"), "{ended:?}");
    }
    // It ends when its input does.
    drop(peer);
}

#[test]
fn the_parameters_of_a_plain_node_are_seen_set_and_dumped() {
    let Some(program) = program() else { return };
    let world = World::new();
    let mut command = Command::new(program);
    // The network knows nothing of worlds, so a run of this test beside another has another node.
    let node = &format!("/robot/theirs_{}", std::process::id());
    command.args(["offer", "--node", node, "--domain", "94", "--address", "127.0.0.1"]);
    child::bind(command.stdin(Stdio::piped()).stdout(Stdio::null()));
    let peer = Subprocess::start(&mut command, WATCHDOG).unwrap();
    let policy = on_loopback(&world);
    let variables = [
        ("TSUJI_INTEROP", "rtps"),
        ("TSUJI_POLICY", policy.to_str().unwrap()),
        ("ROS_DOMAIN_ID", "94"),
    ];
    // The first answer of a service may be missing, as RustDDS sends the news of a message ahead of it.
    let check = |arguments: &[&str], expect: &str| {
        let arguments = [&["param"], arguments].concat();
        let ended = (0..5).map(|_| world.run_with(&variables, &arguments));
        let mut ended = ended.skip_while(|it| {
            let unanswered = ["Node not found", "no parameter services", "no answer", "timed out"];
            it.code == Some(1) && unanswered.iter().any(|words| it.err.contains(words))
        });
        let ended = ended.next().expect("five times no answer");
        assert!(format!("{}{}", ended.out, ended.err).contains(expect), "{ended:?}");
    };
    check(
        &["list", node],
        "  arm.gain\n  enabled\n  label\n  rate_hz\n  sizes\n  tags\n  use_sim_time\n",
    );
    check(&["get", node, "arm.gain"], "Double value is: 0.5\n");
    check(&["get", node, "tags"], "String values are: ['a', 'b']\n");
    check(&["describe", node, "label"], "Parameter name: label\n  Type: string\n");
    check(&["set", node, "rate_hz", "20"], "Set parameter successful\n");
    check(&["set", node, "rate_hz", "0"], "rate_hz is more than 0, and not 0");
    check(&["dump", node], "    rate_hz: 20\n    sizes: [640, 480]\n    tags: [a, b]\n");
    // It ends when its input does.
    drop(peer);
}

//! `tsuji log`.

use serde_json::Value;
use tracing_subscriber::layer::SubscriberExt;
use tsuji::{Context, Node, debug, error, info, warn};

use crate::support::{World, spun};

/// A node of this process that logs while `body` runs.
fn logging(world: &World, arguments: &[&str], body: impl FnOnce(&Node)) {
    let arguments = ["program", "--ros-args"].iter().chain(arguments).map(|&it| it.to_owned());
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated();
    let context = context.args(arguments).build().unwrap();
    let node = Node::builder("drive").namespace("/robot").logger_service();
    let node = node.build(&context).unwrap();
    let subscriber = tracing_subscriber::registry().with(context.logging().rosout_layer());
    tracing::subscriber::with_default(subscriber, || spun(&node, || body(&node)));
}

#[test]
fn lines_are_followed_from_the_last_ones_on() {
    let world = World::new();
    logging(&world, &[], |node| {
        let logger = node.logger();
        info!(logger, "before anybody listened");
        let mut all = world.start(&["log", "--location"]);
        all.out("[robot.drive]: before anybody listened (cli::log at ");
        let mut grave = world.start(&["log", "--level", "warn", "--node", "/robot/drive"]);
        let others =
            world.start(&["log", "--node", "/robot", "--node", "/robot/dri", "--node", "other"]);
        let mut json = world.start(&["log", "--json", "--node", "/robot/drive"]);
        json.out("before anybody listened");
        warn!(logger.child("wheels"), "worn");
        all.out("[robot.drive.wheels]: worn");
        grave.out("[robot.drive.wheels]: worn");
        info!(logger, "calm\x1b[2J");
        error!(logger, "stuck");
        for listening in [&mut all, &mut grave, &mut json] {
            listening.out("stuck");
        }
        let printed = grave.stop().good();
        let lines: Vec<&str> = printed.lines().collect();
        assert!(lines[0].starts_with("[WARN] [") && lines[1].starts_with("[ERROR] ["), "{printed}");
        assert_eq!(lines.len(), 2, "{printed}");
        let printed = all.stop().good();
        assert!(
            printed.contains("[INFO] [") && printed.contains("]: calm\\x1b[2J (cli::log at "),
            "{printed}"
        );
        let printed = json.stop().good();
        let last: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
        assert_eq!((&last["level"], &last["name"]), (&"ERROR".into(), &"robot.drive".into()));
        assert_eq!((&last["msg"], last["line"].is_u64()), (&"stuck".into(), true));
        others.interrupt();
        assert_eq!(others.end().out, "");
    });
    let error = world.run(&["log", "--level", "loud"]).bad(2);
    assert!(
        error.contains("\"loud\" is no level; allowed: debug, info, warn, error, fatal"),
        "{error}"
    );
}

#[test]
fn a_level_is_set_by_the_service() {
    let world = World::new();
    logging(&world, &["--log-level", "robot.drive:=error"], |node| {
        let logger = node.logger();
        let mut listening = world.start(&["log"]);
        error!(logger, "first");
        listening.out("first");
        warn!(logger, "unheard");
        let call = |name: &str, words: &str| {
            let service = format!("/robot/drive/{name}_logger_levels");
            let ty = match name {
                "get" => "rcl_interfaces/srv/GetLoggerLevels",
                _ => "rcl_interfaces/srv/SetLoggerLevels",
            };
            world.run(&["service", "call", &service, ty, words]).good()
        };
        let answer = call("get", "{names: [robot.drive]}");
        assert!(answer.contains("level=40"), "{answer}");
        let answer = call("set", "{levels: [{name: robot.drive, level: 10}, {name: x, level: 7}]}");
        assert!(answer.contains("successful=True") && answer.contains("7 is no level"), "{answer}");
        debug!(logger, "heard");
        listening.out("heard");
        let printed = listening.stop().good();
        assert!(!printed.contains("unheard"), "{printed}");
    });
}

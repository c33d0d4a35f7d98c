//! The commands of the manual, run as they stand in its pages, in a world that is as the page says. docs/programs.md says which
//! blocks this file runs; it runs those and no others.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use tsuji::lifecycle::Lifecycle;
use tsuji::{Context, Node, Qos, info};
use tsuji_interfaces::nav_msgs::msg::Odometry;
use tsuji_interfaces::sensor_msgs::msg::Image;

use crate::support::{Ended, Running, WATCHDOG, World, flow, is_there, spun};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const THIS: &str = "crates/tsuji-cli/tests/cli/manual.rs";

/// A block of a page: what runs in a shell, and the lines that the page shows after each command.
struct Block {
    page: &'static str,
    begins: String,
    text: String,
}

impl Block {
    /// The block of a page that begins so; the second of several by `(2)`.
    fn of(page: &'static str, begins: &str) -> Self {
        let text = fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
        let (first, number) = match begins.rsplit_once(" (") {
            Some((first, number)) if number.len() == 2 => (first, number[..1].parse().unwrap()),
            _ => (begins, 1),
        };
        let blocks = text.split("\n```").skip(1).step_by(2);
        let texts = blocks.map(|it| it.split_once('\n').unwrap().1.to_owned() + "\n");
        let found = texts.filter(|it| it.lines().next().unwrap().trim() == first).nth(number - 1);
        let text = found.unwrap_or_else(|| panic!("{page} has no block that begins with {begins}"));
        Self { page, begins: begins.to_owned(), text }
    }

    /// Holds this against the list, once it has run.
    fn ran(&self) {
        let list = fs::read_to_string(Path::new(ROOT).join("docs/programs.md")).unwrap();
        let path = self
            .page
            .strip_prefix("docs/")
            .map_or_else(|| format!("../{}", self.page), str::to_owned);
        let row = format!("]({path}) | `{}` | test `{THIS}` |", self.begins.replace('|', "\\|"));
        assert!(list.contains(&row), "docs/programs.md does not say that this runs: {row}");
    }

    /// The commands with the lines that are shown after each.
    fn commands(&self) -> Vec<(String, Vec<&str>)> {
        let is_console = self.text.starts_with("$ ");
        let mut commands: Vec<(String, Vec<&str>)> = Vec::new();
        for line in self.text.lines().filter(|it| !it.trim().is_empty()) {
            match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
                (None, Some((command, _))) if command.ends_with('\\') => {
                    command.truncate(command.len() - 1);
                    command.push_str(line);
                }
                (None, Some((_, shown))) if is_console => shown.push(line),
                (None, _) => commands.push((line.to_owned(), Vec::new())),
            }
        }
        commands
    }

    /// Runs each command to its end, and compares what it prints with what the page shows.
    fn run(&self, world: &World) {
        for (command, shown) in self.commands() {
            let ended = end_of(world, &command);
            let printed = format!("{}{}", ended.out, ended.err);
            compare(&command, &shown, &printed);
        }
        self.ran();
    }

    /// Starts each command, as `here` says it for this machine, and `look`s at it with what the page shows; it is to end well.
    fn run_each(
        &self,
        world: &World,
        here: impl Fn(String) -> String,
        look: impl Fn(&str, &[&str], &mut Running),
    ) {
        for (command, shown) in self.commands() {
            let command = here(command);
            let mut running = start(world, &command);
            look(&command, &shown, &mut running);
            let ended = running.end();
            assert_eq!(ended.code, Some(0), "{command}: {ended:?}");
        }
        self.ran();
    }
}

/// Commands of a page, for a shell in the world's folder that finds `tsuji`.
fn shell(world: &World, commands: &str) -> Command {
    let mut shell = world.with_tsuji(["bash", "-c", &format!("set -e\n{commands}")]);
    shell.env("CARGO_NET_OFFLINE", "true").env_remove("CARGO_TARGET_DIR");
    shell
}

/// Starts a command of a page.
fn start(world: &World, command: &str) -> Running {
    Running::new(&mut shell(world, &format!("exec {command}")))
}

/// Runs commands of a page to their end.
fn end_of(world: &World, commands: &str) -> Ended {
    Running::new(&mut shell(world, commands)).end()
}

/// What is printed has the lines that the page shows, in their order. Numbers, times and widths of columns are the machine's; `…`
/// stands for any lines where it stands alone, else for any words that follow. A page that shows nothing says nothing.
#[track_caller]
fn compare(command: &str, shown: &[&str], printed: &str) {
    let mut lines = printed.lines().map(shape).filter(|it| !it.is_empty());
    let mut skips = false;
    for line in shown {
        let wanted = shape(line);
        if wanted == "…" {
            skips = true;
            continue;
        }
        let fits = |line: &String| match wanted.strip_suffix('…') {
            Some(begin) => line.starts_with(begin.trim_end()),
            None => *line == wanted,
        };
        let found = if skips { lines.by_ref().find(fits) } else { lines.next().filter(fits) };
        assert!(found.is_some(), "{command}: the page shows\n{wanted}\nbut it printed\n{printed}");
        skips = false;
    }
    let rest: Vec<_> = lines.collect();
    assert!(skips || shown.is_empty() || rest.is_empty(), "{command}: printed besides: {rest:?}");
}

/// A line without what differs from run to run: numbers with their units, and how many spaces there are.
fn shape(line: &str) -> String {
    const UNITS: [&str; 9] = ["ns", "µs", "ms", "s", "Hz", "B/s", "kB/s", "kB", "MB"];
    let mut words = Vec::new();
    for word in line.split_whitespace() {
        let is_number = word.chars().next().is_some_and(|it| it.is_ascii_digit() || it == '~');
        if UNITS.contains(&word) && words.last().is_some_and(|it| it == "#") {
            continue;
        }
        // A unit may stand right behind its number.
        let number = word.trim_end_matches(|it: char| it.is_alphabetic() || it == '/');
        let is_measured = is_number && UNITS.contains(&&word[number.len()..]);
        let word = if is_measured { number } else { word };
        let mut shape = String::new();
        for letter in word.chars() {
            let is_digit = letter.is_ascii_digit()
                || (is_number && "~.:".contains(letter) && !word.ends_with(letter));
            match (is_digit, shape.ends_with('#')) {
                (true, true) => {}
                (true, false) => shape.push('#'),
                (false, _) => shape.push(letter),
            }
        }
        // A value that is not known yet is a dash.
        words.push(if shape == "-" { "#".to_owned() } else { shape });
    }
    words.join(" ")
}

#[test]
fn shapes_are_without_what_differs() {
    let check = |line: &str, expect: &str| assert_eq!(shape(line), expect);
    check("/a  12.5 ms   -  shm", "/a # # shm");
    check("after 197.461µs", "after #");
    check("(tsuji 14011)  04:22:50.946Z", "(tsuji #) #Z");
    check("robot.xml:2:41: no", "robot.xml:#:#: no");
}

#[test]
#[should_panic(expected = "the page shows")]
fn another_line_is_told() {
    compare("x", &["/chatter: cyclonedds is set"], "/chatter: shm is set\n");
}

#[test]
fn policies() {
    let world = World::new();
    let policy = Block::of("docs/how-to/policy.md", "<tsuji>");
    world.write("robot.xml", &policy.text);
    assert_eq!(world.run(&["policy", "check", "robot.xml"]).code, Some(0));
    policy.ran();
    let explain = "$ tsuji policy explain --policy robot.xml --topic /camera/image --size large --scope local --reliability reliable";
    Block::of("docs/how-to/policy.md", explain).run(&world);
    world.write(
        "robot.xml",
        &policy.text.replace("900KiB", "900 KiBs").replace("\"local\"", "\"nearby\""),
    );
    Block::of("docs/how-to/policy.md", "$ tsuji policy check robot.xml").run(&world);
    for (page, begins) in [
        ("policies/README.md", "<tsuji prefer=\"latency\" interop=\"rtps\" engine=\"cyclonedds\">"),
        ("docs/how-to/networks.md", "<tsuji>"),
        ("docs/how-to/robots.md", "<tsuji>"),
        ("docs/how-to/wifi.md", "<tsuji>"),
        ("docs/transports.md", "<tsuji>"),
        ("docs/transports.md", "<tsuji engine=\"fastdds\">"),
    ] {
        let block = Block::of(page, begins);
        world.write("checked.xml", &block.text);
        let ended = world.run(&["policy", "check", "checked.xml"]);
        assert_eq!(ended.code, Some(0), "{page}: {ended:?}");
        block.ran();
    }
}

#[test]
fn robots() {
    let world = World::new();
    let page = "docs/how-to/robots.md";
    let begins =
        "TSUJI_ROBOT=r1 tsuji topic pub /chatter std_msgs/msg/String \"{data: I am r1}\" &";
    let block = Block::of(page, begins);
    let mut robots = Vec::new();
    for line in block.text.lines() {
        let (robot, rest) = line.split_once(' ').unwrap();
        let words: Vec<_> = rest.trim_end_matches(" &").splitn(6, ' ').skip(1).collect();
        let words: Vec<_> = words.iter().map(|it| it.trim_matches('"')).collect();
        robots.push(world.start_with(&[robot.split_once('=').unwrap()], &words));
    }
    assert_eq!(robots.len(), 2);
    block.ran();
    world.run_until(&["topic", "list"], |it| it.out == "/r1/chatter\n/r2/chatter\n");
    Block::of(page, "$ tsuji topic list").run(&world);
}

#[test]
fn keystores() {
    let world = World::new();
    let page = "docs/how-to/keystores.md";
    Block::of(page, "$ tsuji security create --keystore keystore /talker /listener").run(&world);
    let policy = Block::of(page, "<policy version=\"0.2.0\">");
    world.write("robot.xml", &policy.text);
    Block::of(page, "$ tsuji security create --keystore keystore --access robot.xml").run(&world);
    policy.ran();
    let begins = "export ROS_SECURITY_ENABLE=true ROS_SECURITY_STRATEGY=Enforce ROS_SECURITY_KEYSTORE=\"$PWD/keystore\"";
    let secured = Block::of(page, begins);
    let ended = end_of(&world, &secured.text);
    assert!(ended.out.contains("data: hello\n---\n") && ended.code == Some(0), "{ended:?}");
    secured.ran();
    Block::of(page, "$ tsuji security revoke --keystore keystore /listener").run(&world);
    let ended = end_of(&world, "tsuji security check --keystore keystore");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("cert.pem: was revoked by CN=tsuji keystore"), "{ended:?}");
}

#[test]
fn routes() {
    let world = World::new();
    world.write("robot.xml", "<tsuji><rule name=\"mine\" priority=\"9\" use=\"shm\"/></tsuji>");
    let _flow = flow(&world, &["--policy", "robot.xml"]);
    Block::of("docs/how-to/routes.md", "$ tsuji route set /chatter cyclonedds").run(&world);
    let settled = |count: usize, transport: &str| {
        world.run_until(&["routes", "--json"], |it| {
            let flow = &it.json()[0];
            let changes = flow["changes"].as_array().map_or(0, Vec::len);
            changes == count && flow["transport"] == transport && flow["handover_to"].is_null()
        });
    };
    settled(2, "cyclonedds");
    world.run(&["route", "set", "/chatter", "shm"]);
    settled(3, "shm");
    world.run(&["route", "auto", "/chatter"]).good();
    world.write(
        "robot.xml",
        "<tsuji><rule name=\"mine\" priority=\"9\" use=\"cyclonedds\"/></tsuji>",
    );
    settled(4, "cyclonedds");
    Block::of("docs/how-to/routes.md", "$ tsuji routes --history").run(&world);
    // One that shows flows again and again, until it is interrupted.
    let watch = Block::of("docs/how-to/wifi.md", "tsuji routes --watch");
    let mut running = start(&world, watch.text.trim());
    running.out("/chatter");
    assert_eq!(running.stop().code, Some(0));
    watch.ran();
    let engines = Block::of("docs/transports.md", "$ tsuji routes --engines");
    let (command, shown) = engines.commands().remove(0);
    let ended = end_of(&world, &command);
    // Which engines there are is the machine's affair; the columns are the page's.
    assert!(ended.out.lines().map(shape).any(|it| it == shape(shown[1])), "{ended:?}");
    engines.ran();
    let doctor = Block::of("docs/how-to/wifi.md", "tsuji doctor");
    let ended = end_of(&world, &doctor.text);
    assert!(ended.out.contains("multicast") && ended.out.contains("fragments"), "{ended:?}");
    doctor.ran();
}

struct Arm;

impl Lifecycle for Arm {}

/// A node of this process while `body` runs.
fn with_node(world: &World, name: &str, namespace: &str, body: impl FnOnce(&Node)) {
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let node = context.unwrap().node_in(name, namespace).unwrap();
    spun(&node, || body(&node));
}

#[test]
fn parameters_log_and_lifecycles() {
    const PAGE: &str = "docs/tutorial/parameters.md";
    let world = World::new();
    let values = "/robot/arm:\n  ros__parameters:\n    joints:\n      limits: [1, 2.0]\n";
    world.write("robot.yaml", values);
    with_node(&world, "arm", "/robot", |_| {
        Block::of(PAGE, "$ tsuji param load /robot/arm robot.yaml").run(&world);
    });
    with_node(&world, "arm", "/", |node| {
        let _managed = node.manage(Arm).unwrap();
        Block::of(PAGE, "$ tsuji lifecycle set /arm activate").run(&world);
    });
    with_node(&world, "driven_node", "/", |node| {
        let log = Block::of(PAGE, "$ tsuji log --level info --node /driven_node");
        let (command, shown) = log.commands().remove(0);
        let mut listening = start(&world, &command);
        let clock = node.clock().unwrap();
        let now = clock.now();
        info!(node.logger(), "it is {}.{:09}", now.sec, now.nanosec);
        listening.out("it is ");
        compare(&command, &shown, &listening.stop().out);
        log.ran();
    });
}

/// Has a part of the repository, or a folder elsewhere, in the world's folder by this name.
fn link(world: &World, name: &str, to: impl AsRef<Path>) {
    let link = world.path(name);
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(Path::new(ROOT).canonicalize().unwrap().join(to), link).unwrap();
}

/// The examples, which `cargo test` builds with the workspace, where the pages have them; `None` where they are not built.
fn examples(world: &World) -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_BIN_EXE_tsuji")).with_file_name("examples");
    let talker = built.join("talker").to_string_lossy().into_owned();
    let has_runner = env::var("TSUJI_TEST_RUNNER").is_ok_and(|it| !it.is_empty());
    if has_runner || !Path::new(&talker).exists() || !is_there(&["bash", "-c", "true"]) {
        let _ = is_there(&[talker.as_str()]);
        return None;
    }
    link(world, "target/debug/examples", built);
    Some(world.path("target/debug/examples"))
}

#[test]
fn programs_of_the_tutorial() {
    let world = World::new();
    let Some(examples) = examples(&world) else { return };
    let example = |name: &str| examples.join(name).to_string_lossy().into_owned();
    let run_both = Block::of(
        "docs/tutorial/talker-and-listener.md",
        "$ cargo run --release --bin talker                    $ cargo run --release --bin listener",
    );
    let mut talker = Running::new(&mut world.foreign([example("talker").as_str()]));
    let mut listener = Running::new(&mut world.foreign([example("listener").as_str()]));
    for (at, wanted) in [(0, talker.out_line("Publishing")), (54, listener.out_line("I heard"))] {
        let line = run_both.text.lines().nth(1).unwrap();
        let column = line.get(at..(at + 52).min(line.len())).unwrap_or_else(|| &line[at..]);
        assert_eq!(shape(column), shape(&wanted));
    }
    run_both.ran();
    let refused = Block::of(
        "docs/tutorial/talker-and-listener.md",
        "$ TSUJI_POLICY=robot.xml cargo run --release --bin listener",
    );
    let (command, shown) = refused.commands().remove(0);
    let command = command.replace("cargo run --release --bin listener", &example("listener"));
    let ended = end_of(&world, &command);
    assert_eq!(ended.code, Some(1));
    compare(&command, &shown, &ended.err);
    refused.ran();

    link(&world, "docs", "docs");
    let launch = Block::of(
        "docs/tutorial/launch.md",
        "$ PATH=target/debug/examples:$PATH tsuji launch docs/talker_listener.launch.xml robot:=arm",
    );
    let (command, _) = launch.commands().remove(0);
    let mut running = Running::new(
        shell(&world, &format!("exec env {command}")).env("ROS_LOG_DIR", world.path("logs")),
    );
    for wanted in [
        "[INFO] [talker-1]: process started with pid [",
        "[INFO] [listener-2]: process started with pid [",
        "[listener-2] I heard: 'Hello World: ",
    ] {
        running.out(wanted);
    }
    assert_eq!(running.stop().code, Some(0));
    launch.ran();

    let pictures = Block::of("docs/tutorial/camera.md", "cargo run -p tsuji --example camera");
    let running: Vec<_> = pictures
        .commands()
        .iter()
        .map(|(command, _)| {
            let name = command.strip_prefix("cargo run -p tsuji --example ").unwrap();
            Running::new(&mut world.foreign([example(name).as_str()]))
        })
        .collect();
    world.run_until(&["routes", "--json", "--topic", "/camera/image"], |it| {
        it.code == Some(0) && it.json()[0]["state"] == "active"
    });
    pictures.ran();
    let why = Block::of("docs/tutorial/camera.md", "tsuji routes --why --topic /camera/image");
    let ended = end_of(&world, &why.text);
    assert!(ended.out.contains("shm") && ended.out.contains("because"), "{ended:?}");
    why.ran();
    running.into_iter().for_each(|it| drop(it.stop()));
}

#[test]
fn crates_of_the_tutorial() {
    let world = World::new();
    if !is_there(&["cargo", "--version"]) {
        return;
    }
    link(&world, "tsuji", "");
    let crates = Block::of(
        "docs/tutorial/talker-and-listener.md",
        "cargo new robot && cd robot && mkdir src/bin",
    );
    let run = |text: &str| {
        let ended = end_of(&world, text);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    };
    run(&crates.text);
    crates.ran();
    let messages = Block::of(
        "docs/tutorial/messages.md",
        "cargo add --build --path ../tsuji/crates/tsuji-build",
    );
    run(&format!("cd robot\n{}", messages.text));
    messages.ran();
    let manifest = fs::read_to_string(world.path("robot/Cargo.toml")).unwrap();
    for (kind, name) in [
        ("dependencies", "tsuji"),
        ("dependencies", "tsuji-interfaces"),
        ("build-dependencies", "tsuji-build"),
    ] {
        let of = manifest.split("\n[").find(|it| it.starts_with(&format!("{kind}]"))).unwrap();
        assert!(of.lines().any(|it| it.starts_with(&format!("{name} = "))), "{manifest}");
    }
}

#[test]
fn components() {
    let world = World::new();
    let block = Block::of(
        "docs/tutorial/components.md",
        "$ tsuji component standalone tsuji_components Camera      # a container, with the first component in it",
    );
    let mut commands = block.commands().into_iter();
    let (standalone, _) = commands.next().unwrap();
    let mut container = start(&world, &standalone);
    container.out("Loaded component 1");
    container.out("Container '/ComponentManager'");
    for (command, shown) in commands {
        compare(&command, &shown, &end_of(&world, &command).out);
    }
    block.ran();
}

#[test]
fn bridges() {
    let world = World::new();
    // What listens at a port that this machine has free, in the place of the one that the page names.
    let anywhere = |command: String| {
        let words: Vec<_> = command.split('#').next().unwrap().split_whitespace().collect();
        let mut words: Vec<_> =
            words.iter().map(|it| if it.parse::<u16>().is_ok() { "0" } else { it }).collect();
        if !words.contains(&"--port") {
            words.extend(["--port", "0"]);
        }
        words.join(" ")
    };
    world.certify();
    crate::bridge::numbers(&world, "drive.mcap", 3);
    for (page, begins) in [
        ("docs/tutorial/browser.md", "$ tsuji bridge --tcp-port 9091"),
        (
            "docs/bridge.md",
            "tsuji bridge                                      # ws://127.0.0.1:9090, and a page at http://127.0.0.1:9090/",
        ),
        (
            "docs/foxglove.md",
            "tsuji bridge --address 0.0.0.0 --token sesame     # then connect to ws://ROBOT:9090/?token=sesame",
        ),
        ("docs/foxglove.md", "tsuji bridge --play drive.mcap --start-paused"),
        ("docs/how-to/from-rosbridge-server.md", "tsuji bridge --address 0.0.0.0 --port 9090"),
    ] {
        Block::of(page, begins).run_each(&world, anywhere, |_, shown, bridge| {
            bridge.out("listening");
            let lines = shown.iter().filter(|it| !it.contains("Ctrl-C"));
            let begins: Vec<_> = lines.filter_map(|it| it.split("127.0.0.1").next()).collect();
            bridge.out_each(&begins);
            bridge.interrupt();
        });
    }
}

#[test]
fn a_master_of_ros_1() {
    let world = World::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let anywhere = |command| format!("env ROS_IP=127.0.0.1 ROS_MASTER_URI=http://{free} {command}");
    let page = "docs/how-to/ros1.md";
    Block::of(page, "tsuji ros1 master").run_each(&world, anywhere, |_, _, master| {
        master.out("ROS 1 master at http://127.0.0.1:");
        master.interrupt();
    });
}

#[test]
fn recordings() {
    let world = World::new();
    with_node(&world, "robot", "/", |node| {
        let odometry = node.create_publisher::<Odometry>("/odom", Qos::DEFAULT).unwrap();
        let pictures = node.create_publisher::<Image>("/camera/image", Qos::DEFAULT).unwrap();
        let publish = move || {
            let _ = odometry.publish(Odometry::default());
            let _ = pictures.publish(Image::default());
        };
        let _timer = node.create_timer(Duration::from_millis(20), publish).unwrap();
        let block = Block::of("docs/record.md", "$ tsuji record /odom '/camera/**' -o drive.mcap");
        block.run_each(
            &world,
            |command| command,
            |command, _, running| {
                if !command.starts_with("tsuji record ") {
                    return;
                }
                let is_all = command.contains("--all");
                let file = world.path(if is_all { "drive/drive_0.mcap" } else { "drive.mcap" });
                let began = Instant::now();
                while fs::metadata(&file).map_or(0, |it| it.len()) <= 4096 {
                    assert!(began.elapsed() < WATCHDOG, "{command} writes nothing");
                    std::thread::yield_now();
                }
                running.interrupt();
            },
        );
    });
}

#[test]
fn a_launch_file_of_the_reference() {
    let world = World::new();
    let block = Block::of("docs/launch.md", "<launch>");
    world.write("robot.launch.xml", &block.text);
    for name in ["talker", "listener"] {
        world.script(&format!("bin/{name}"), "#!/bin/sh\n");
    }
    let ended = end_of(&world, "tsuji launch --dry-run robot.launch.xml robot:=arm");
    assert!(
        ended.code == Some(0) && ended.out.contains("/arm") && ended.out.contains("listener"),
        "{ended:?}"
    );
    block.ran();
}

#[test]
fn a_transport_in_c_is_built() {
    let world = World::new();
    if !is_there(&["cc", "--version"]) {
        return;
    }
    link(&world, "cpp", "cpp");
    let begins = "$ cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden -pthread -I cpp/include \\";
    let block = Block::of("docs/transports.md", begins);
    let ended = end_of(&world, &block.commands()[0].0);
    assert!(
        ended.code == Some(0) && world.path("libtsuji_transport_example.so").exists(),
        "{ended:?}"
    );
    block.ran();
}

#[test]
fn variables_are_taken() {
    let world = World::new();
    for page in ["docs/how-to/networks.md", "docs/how-to/wifi.md"] {
        let block = Block::of(page, "export ROS_STATIC_PEERS=\"robot.local;192.168.1.7\"");
        let ended = end_of(&world, &format!("{}\ntsuji doctor", block.text));
        assert!(ended.out.contains("ROS_STATIC_PEERS"), "{ended:?}");
        block.ran();
    }
}

/// What the list says that this file runs, and which of its tests name it: a block that nobody runs any more is told.
#[test]
fn each_block_that_is_said_to_run_here_is_named_here() {
    let list = fs::read_to_string(Path::new(ROOT).join("docs/programs.md")).unwrap();
    let this = fs::read_to_string(Path::new(ROOT).join(THIS))
        .unwrap()
        .replace("\\\"", "\"")
        .replace("\\\\", "\\");
    let rows = list.lines().filter(|it| it.ends_with(&format!("| test `{THIS}` |")));
    let mut count = 0;
    for row in rows {
        let begins =
            row.split(" | `").nth(1).unwrap().split("` | test").next().unwrap().replace("\\|", "|");
        assert!(this.contains(&format!("\"{begins}\"")), "nothing here runs {row}");
        count += 1;
    }
    assert!(count > 20, "{count}");
}

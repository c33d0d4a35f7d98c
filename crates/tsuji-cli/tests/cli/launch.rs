//! `tsuji launch`: real processes, among them this test program again as nodes.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tsuji::parameter::Parameter;
use tsuji::{Context, Qos};
use tsuji_interfaces::composition_interfaces::srv::{LoadNode, LoadNodeRequest, LoadNodeResponse};
use tsuji_interfaces::std_msgs::msg::String as Text;
use tsuji_platform::child;

use crate::support::{Ended, Running, Signal, WATCHDOG, World, spun};

/// In which role this program is run again, and with which words, one in a line.
const ROLE: &str = "LAUNCH_TEST_ROLE";
const WORDS: &str = "LAUNCH_TEST_WORDS";

/// A program `name` in the world's folder that is this test program in a role.
fn node(world: &World, name: &str, role: &str) -> PathBuf {
    let runner = env::var("TSUJI_TEST_RUNNER").unwrap_or_default();
    let program = env::current_exe().unwrap();
    let text = format!(
        "#!/bin/sh\n{ROLE}={role} {WORDS}=$(printf '%s\\n' \"$@\") exec {runner} '{}' --exact \
         launch::is_a_node_when_it_is_asked_to_be --nocapture\n",
        program.display()
    );
    world.script(name, &text)
}

#[test]
#[allow(clippy::print_stdout, reason = "it is what the launch passes on")]
fn is_a_node_when_it_is_asked_to_be() {
    let Ok(role) = env::var(ROLE) else { return };
    let words: Vec<String> = env::var(WORDS).unwrap().lines().map(str::to_owned).collect();
    let context = Context::builder().args(words).isolated().build().unwrap();
    context.shutdown_on_signals().unwrap();
    let node = context.node(&role).unwrap();
    let parameters = node.parameters().unwrap();
    println!("I am {}", node.fully_qualified_name());
    match role.as_str() {
        "talker" => {
            let text = parameters.declare("text", "hello".to_owned()).unwrap();
            let times = parameters.declare("times", 1i64).unwrap();
            let publisher = node.create_publisher::<Text>("chatter", Qos::DEFAULT).unwrap();
            let _timer = node.create_timer(Duration::from_millis(20), move || {
                let _ = publisher.publish(Text { data: format!("{text} times {times}") });
            });
            let _ = tsuji::spin(&node);
        }
        "listener" => {
            let hears = |it: tsuji::Received<Text>| println!("heard {}", it.view().data);
            let _hears = node.create_subscription::<Text>("chatter", Qos::DEFAULT, hears);
            let _ = tsuji::spin(&node);
        }
        role => panic!("no role {role}"),
    }
    println!("{role} ends well");
}

fn launch(world: &World, text: &str, more: &[&str]) -> Running {
    let file = world.write("t.launch.xml", text);
    world.start(&[&["launch", file.to_str().unwrap()], more].concat())
}

#[track_caller]
fn refused(world: &World, text: &str, more: &[&str], expect: &str) {
    let error = launch(world, text, more).end().bad(2);
    assert!(error.contains(expect), "{error}");
}

/// Whether a process is there, one whose end nobody took included.
fn is_there(pid: &str) -> bool {
    PathBuf::from(format!("/proc/{pid}")).exists()
}

#[track_caller]
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < WATCHDOG, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn nodes_of_one_file_talk_with_names_and_parameters_of_the_file() {
    let world = World::new();
    node(&world, "talker", "talker");
    node(&world, "listener", "listener");
    world.write("times.yaml", "/robot/speaker:\n  ros__parameters:\n    times: 7\n");
    let text = r#"<launch>
        <arg name="who" default="nobody"/>
        <group>
            <push_ros_namespace namespace="robot"/>
            <node exec="talker" name="speaker" output="screen">
                <param from="$(dirname)/times.yaml"/>
                <param name="text" value="$(var who)" type="str"/>
                <remap from="chatter" to="words"/>
            </node>
        </group>
        <node exec="listener" output="screen"><remap from="chatter" to="/robot/words"/></node>
    </launch>"#;
    let mut launched = launch(&world, text, &["who:=true"]);
    launched.out("I am /robot/speaker");
    launched.out("[listener-2] heard true times 7");
    let listed = world.run_until(&["node", "list"], |it| it.out.lines().count() == 2).good();
    assert_eq!(listed, "/listener\n/robot/speaker\n");
    let ended = launched.stop();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    for line in [
        "[talker-1] talker ends well",
        "[listener-2] listener ends well",
        "[INFO] [talker-1]: process has finished cleanly [pid ",
        "[WARNING] [launch]: user interrupted with ctrl-c (SIGINT)",
        "[INFO] [talker-1]: sending signal 'SIGINT' to process[talker-1]",
    ] {
        assert!(ended.out.contains(line), "{line}: {}", ended.out);
    }
}

#[test]
fn the_example_of_the_documents_runs() {
    let world = World::new();
    let talker = node(&world, "bin/talker", "talker");
    node(&world, "bin/listener", "listener");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/talker_listener.launch.xml");
    let path = format!("{}:{}", talker.parent().unwrap().display(), env::var("PATH").unwrap());
    let mut command = world.command(&["launch", file, "robot:=arm"]);
    let mut launched = Running::new(command.env("PATH", path));
    launched.out("[listener-2] heard ");
    let ended = launched.stop();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.out.contains("I am /arm/talker") && ended.out.contains("I am /arm/listener"));
}

#[test]
fn one_that_is_killed_is_started_again_as_often_as_it_may() {
    let world = World::new();
    let text = r#"<launch><executable cmd="sh -c 'echo $$$$; exec sleep 1000'" output="screen"
        respawn="true" respawn_delay="0" respawn_max_retries="2"/></launch>"#
        .replace("$$$$", "pid=$$");
    let mut launched = launch(&world, &text, &[]);
    let mut pids = Vec::new();
    for _ in 0..3 {
        let line = launched.out_line("[sh-1] pid=");
        let pid = line.trim_start_matches("[sh-1] pid=").to_owned();
        assert!(child::tell(pid.parse().unwrap(), Signal::Kill));
        pids.push(pid);
    }
    let ended = launched.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.out.matches("process has died").count(), 3, "{ended:?}");
    assert_eq!(ended.out.matches("process is started again in 0.1 s").count(), 2, "{ended:?}");
    assert!(ended.out.contains("process is not started again: it has been 2 times"), "{ended:?}");
    assert!(ended.out.contains("exit code -9"), "{ended:?}");
    pids.dedup();
    assert_eq!(pids.len(), 3);
}

#[test]
fn ctrl_c_ends_even_those_that_do_not_listen_and_what_they_started() {
    let world = World::new();
    // Neither it nor what it started ends by SIGINT or SIGTERM, and a part of it has left its group.
    let deaf = r#"<launch><executable output="screen" sigterm_timeout="0.2" sigkill_timeout="0.2"
        cmd="sh -c 'trap : INT TERM; (trap : INT TERM; echo grandchild is up; while :; do sleep 1000; done) &amp;
        setsid sh -c &quot;trap : INT TERM; echo stray is up; while :; do sleep 1000; done&quot; &amp;
        while :; do sleep 1000; done'"/></launch>"#;
    let mut launched = launch(&world, deaf, &[]);
    launched.out_each(&["grandchild is up", "stray is up"]);
    let all = descendants(launched.id());
    assert!(4 < all.len(), "{all:?}");
    let ended = launched.stop();
    for signal in ["SIGINT", "SIGTERM", "SIGKILL"] {
        let line = format!("sending signal '{signal}' to process[sh-1]");
        assert!(ended.out.contains(&line), "{ended:?}");
    }
    assert!(ended.out.contains("processes that had left their groups were killed"), "{ended:?}");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let left: Vec<_> = all.iter().filter(|it| is_there(it)).collect();
    assert!(left.is_empty(), "{left:?} are left of {all:?}");
}

#[test]
fn a_second_ctrl_c_and_a_third_do_not_wait() {
    let world = World::new();
    let text = r#"<launch><executable output="screen" sigterm_timeout="80000" sigkill_timeout="80000"
        cmd="sh -c 'trap : INT TERM; echo up; while :; do sleep 1000; done'"/></launch>"#;
    let mut launched = launch(&world, text, &[]);
    launched.out("up");
    for signal in ["SIGINT", "SIGTERM", "SIGKILL"] {
        launched.interrupt();
        launched.out(&format!("sending signal '{signal}' to process[sh-1]"));
    }
    assert_eq!(launched.end().code, Some(0));
}

#[test]
fn what_a_launch_started_ends_with_it_however_it_ends() {
    let world = World::new();
    let text = r#"<launch><executable output="screen"
        cmd="sh -c 'trap : INT TERM; (trap : INT TERM; echo grandchild is up; while :; do sleep 1000; done) &amp;
        while :; do sleep 1000; done'"/></launch>"#;
    let mut launched = launch(&world, text, &[]);
    launched.out("grandchild is up");
    let all = descendants(launched.id());
    assert!(3 < all.len(), "{all:?}");
    launched.kill();
    for pid in all {
        wait_until("one that a killed launch had started ends", || !is_there(&pid));
    }
}

/// All that a process has started, and what these have.
fn descendants(pid: u32) -> Vec<String> {
    let mut all = Vec::new();
    let mut next = vec![pid.to_string()];
    while let Some(parent) = next.pop() {
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let Some((_, rest)) = stat.rsplit_once(')') else { continue };
            if rest.split_whitespace().nth(1) == Some(parent.as_str()) {
                let pid = entry.file_name().to_string_lossy().into_owned();
                all.push(pid.clone());
                next.push(pid);
            }
        }
    }
    all
}

#[test]
fn the_end_of_one_is_that_of_all_if_the_file_says_so() {
    let world = World::new();
    let text = r#"<launch><executable cmd="sleep 1000" output="screen"/>
        <executable cmd="sh -c 'exit 3'" on_exit="shutdown"/></launch>"#;
    let ended = launch(&world, text, &[]).end();
    assert_eq!(ended.code, Some(1));
    assert!(ended.out.contains("process[sh-2] has ended, and all others with it"), "{ended:?}");
    assert!(ended.out.contains("exit code 3"), "{ended:?}");
    assert!(ended.out.contains("sending signal 'SIGINT' to process[sleep-1]"), "{ended:?}");
}

#[test]
fn output_goes_where_the_file_says() {
    let world = World::new();
    let text = r#"<launch><executable cmd="sh -c 'echo to out; echo to err 1>&amp;2'" name="kept"/>
        <executable cmd="sh -c 'echo to out; head -c 100000 /dev/zero | tr \\\\0 x; echo'" output="both" name="both"/></launch>"#;
    let file = world.write("t.launch.xml", text);
    let logs = world.path("logs");
    let logs = logs.to_str().unwrap();
    let ended =
        world.run_with(&[("ROS_LOG_DIR", logs)], &["launch", file.to_str().unwrap(), "--json"]);
    let events: Vec<serde_json::Value> =
        ended.good().lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let of = |kind: &str, process: &str| {
        let all = events.iter().filter(|it| it["event"] == kind && it["process"] == process);
        all.collect::<Vec<_>>()
    };
    let [line] = of("output", "kept-1")[..] else { panic!("{events:#?}") };
    assert_eq!((&line["line"], &line["stream"]), (&"to err".into(), &"stderr".into()));
    let lines: Vec<usize> =
        of("output", "both-2").iter().map(|it| it["line"].as_str().unwrap().len()).collect();
    assert_eq!(lines, [6, 65536, 100_000 - 65536]);
    assert_eq!(of("ended", "kept-1")[0]["code"], 0);
    let folder = events.iter().find(|it| it["event"] == "log").unwrap()["folder"].clone();
    let read = |name: &str| fs::read_to_string(PathBuf::from(folder.as_str().unwrap()).join(name));
    assert_eq!(read("kept-1-stdout.log").unwrap(), "to out\n");
    assert_eq!(read("kept-1-stderr.log").unwrap(), "to err\n");
    assert!(read("both-2-stdout.log").unwrap().starts_with("to out\nxxx"));
}

#[test]
fn what_cannot_be_started_is_told_and_nothing_is() {
    let world = World::new();
    let started = world.path("started");
    let toucher = format!(r#"<executable cmd="touch {}" output="screen"/>"#, started.display());
    let check = |body: &str, more: &[&str], expect: &str| {
        refused(&world, &format!("<launch>{toucher}\n{body}</launch>"), more, expect);
        assert!(!started.exists());
    };
    check(r#"<node exec="nobody"/>"#, &[], r#"t.launch.xml:2:13: "nobody" is not an executable"#);
    check(r#"<node pkg="x" exec="y"/>"#, &[], "AMENT_PREFIX_PATH is not set");
    check(
        r#"<nodes exec="sh"/>"#,
        &[],
        r#":2:2: "nodes" is not an element here (did you mean "node"?)"#,
    );
    check(r#"<node exec="sh" outputs="log"/>"#, &[], r#""outputs" is not an attribute of "node""#);
    check(
        r#"<node exec="sh"><param name="a" value="[1, x]"/></node>"#,
        &[],
        "\"x\" is of another type than the first of its array",
    );
    check(
        r#"<node exec="sh"><param name="a" value="x" type="int"/></node>"#,
        &[],
        "\"x\" is no int",
    );
    check(r#"<include file="$(dirname)/t.launch.xml"/>"#, &[], "includes itself: ");
    check("", &["who:=me"], "\"who\" is not an argument of this file");
    check("", &["--dry-run", "x:=1", "y"], "\"y\" is not an argument; it is NAME:=VALUE");
    world.write("bad.yaml", "/**:\n  ros__parameters:\n    a: [1, 2.0]\n");
    check(
        r#"<node exec="sh"><param from="$(dirname)/bad.yaml"/></node>"#,
        &[],
        "bad.yaml:3:12: a: found `2.0`",
    );
    // A file that is there, and that not even root may read.
    check(
        r#"<node exec="sh"><param from="/proc/sys/vm/drop_caches"/></node>"#,
        &[],
        "t.launch.xml:2: /proc/sys/vm/drop_caches: Permission denied",
    );
    let error = world.run(&["launch", "none.xml"]).bad(2);
    assert!(error.contains("none.xml:1:1: \"launch\" cannot be read: No such file"), "{error}");
    // A pipe that nobody writes to keeps nobody waiting.
    let pipe = world.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let error = world.run(&["launch", "pipe"]).bad(2);
    assert!(
        error.contains("pipe:1:1: \"launch\" cannot be read: it is no regular file"),
        "{error}"
    );
    check(r#"<node exec="sh"><param from="$(dirname)/pipe"/></node>"#, &[], "pipe\" is not a file");
    let error = world.run(&["launch", "pkg", "none.xml"]).bad(2);
    assert!(
        error.contains("package pkg is not known, nor any other: AMENT_PREFIX_PATH is not set"),
        "{error}"
    );
    for (name, text, language) in [
        ("a.launch.py", "import launch\n", "Python"),
        ("a.launch.yaml", "launch: []\n", "YAML"),
        ("a.launch", "from launch import LaunchDescription\n", "Python"),
    ] {
        world.write(name, text);
        let error = world.run(&["launch", name]).bad(2);
        let expect =
            format!("{name}\" is a launch file in {language}, and only those in XML are supported");
        assert!(error.contains(&expect) && error.contains("ros2 launch"), "{error}");
    }
    // What the kernel refuses ends what was started before.
    world.script("odd", "#!/no/such/interpreter\n");
    let text = r#"<launch><executable cmd="sleep 1000" output="screen"/><node exec="odd" output="screen"/></launch>"#;
    let ended = launch(&world, text, &[]).end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.out.contains("[odd-2]: cannot be started: "), "{ended:?}");
    assert!(ended.out.contains("sending signal 'SIGINT' to process[sleep-1]"), "{ended:?}");
}

#[test]
fn files_of_a_package_are_found_wherever_they_are_in_it() {
    let world = World::new();
    for package in ["demo", "demo_robot", "other"] {
        world.write(&format!("ros/share/ament_index/resource_index/packages/{package}"), "");
    }
    let text = r#"<launch><executable cmd="echo found" output="screen"/></launch>"#;
    world.write("ros/share/demo/launch/robots/arm/deep.launch.xml", text);
    world.write("ros/share/demo/top.launch.xml", text);
    world.write("ros/share/demo/launch/twice.launch.xml", text);
    world.write("ros/share/demo/more/twice.launch.xml", text);
    world.write("ros/share/other/x.txt", "");
    let prefix = world.path("ros");
    let variables = [("AMENT_PREFIX_PATH", prefix.to_str().unwrap())];
    let run = |words: &[&str]| world.run_with(&variables, &[&["launch"], words].concat());
    for file in ["deep.launch.xml", "top.launch.xml", "launch/twice.launch.xml"] {
        let found = run(&["demo", file]).good();
        assert!(found.contains("[echo-1] found\n"), "{file}: {found}");
    }
    // A folder whose name is not UTF-8 hides no other.
    let prefixes = [b"/\xff:".as_slice(), prefix.as_os_str().as_bytes()].concat();
    let mut command = world.command(&["launch", "demo", "top.launch.xml"]);
    command.env("AMENT_PREFIX_PATH", OsStr::from_bytes(&prefixes));
    assert!(Running::new(&mut command).end().good().contains("[echo-1] found\n"));
    let refused = |words: &[&str], expect: &[&str]| {
        let error = run(words).bad(2);
        for expect in expect {
            assert!(error.contains(expect), "{words:?}: {error}");
        }
    };
    refused(
        &["demo", "twice.launch.xml"],
        &[
            "the file twice.launch.xml is more than once in the share folder of package demo: ",
            "ros/share/demo/launch/twice.launch.xml, ",
            "ros/share/demo/more/twice.launch.xml; name one of them by its path",
        ],
    );
    refused(
        &["demo", "depe.launch.xml"],
        &[
            "there is no file depe.launch.xml in the share folder of package demo, ",
            "its launch files: deep.launch.xml, top.launch.xml, twice.launch.xml",
        ],
    );
    refused(&["other", "x.launch.xml"], &["it has no launch files"]);
    refused(
        &["dmeo", "top.launch.xml"],
        &["package dmeo is not known; AMENT_PREFIX_PATH has ", "; did you mean demo?"],
    );
    refused(
        &["demo"],
        &["demo is a package, and no file is named; its launch files: deep.launch.xml"],
    );
    world.write("demo", "");
    refused(
        &["demo", "top.launch.xml"],
        &["\"top.launch.xml\" is not an argument; it is NAME:=VALUE"],
    );
}

#[test]
fn a_folder_of_logs_that_cannot_be_made_is_named() {
    let world = World::new();
    let file = world.write("t.xml", r#"<launch><executable cmd="true"/></launch>"#);
    world.write("file", "");
    let home = world.path("file");
    let run = |variables: &[(&str, &str)]| {
        let error = world.run_with(variables, &["launch", file.to_str().unwrap()]).bad(1);
        error.lines().collect::<Vec<_>>().join(" ")
    };
    let error = run(&[("HOME", home.to_str().unwrap())]);
    let expect = format!("cannot make the folder {}/.ros/log/launch-", home.display());
    assert!(error.contains(&expect) && error.contains("ROS_LOG_DIR"), "{error}");
    let error = run(&[("HOME", "")]);
    assert!(error.contains("none of ROS_LOG_DIR, ROS_HOME, HOME is set"), "{error}");
}

#[test]
fn what_a_file_says_and_words_before_processes() {
    let world = World::new();
    let text = r#"<launch><log message="hello $(env NOBODY 'you all')"/>
        <executable cmd="echo said"/><executable cmd="echo dir=$(log_dir)" launch-prefix=""/></launch>"#;
    let file = world.write("t.xml", text);
    let said = world
        .run(&["launch", file.to_str().unwrap(), "-a", "--launch-prefix", "echo 'a b'"])
        .good();
    assert!(said.contains("[INFO] [launch.user]: hello you all\n"), "{said}");
    assert!(said.contains("[echo-1] a b "), "{said}");
    let folder = said.split("All log files can be found below ").nth(1).unwrap();
    let folder = folder.lines().next().unwrap();
    assert!(said.contains(&format!("[echo-2] dir={folder}\n")), "{said}");
    let planned = world.run(&["launch", file.to_str().unwrap(), "--dry-run"]).good();
    assert!(planned.starts_with("says: hello you all\n"), "{planned}");
}

#[test]
fn a_package_is_found_as_ros2_finds_it() {
    let world = World::new();
    world.write("ros/share/ament_index/resource_index/packages/demo", "");
    world.script("ros/lib/demo/say", "#!/bin/sh\necho says \"$@\"\n");
    let text = r#"<launch><arg name="a" description="what is said"/>
        <node pkg="demo" exec="say" args="$(var a)" name="n" output="screen"/></launch>"#;
    world.write("ros/share/demo/launch/say.xml", text);
    let prefix = world.path("ros");
    let variables = [("AMENT_PREFIX_PATH", prefix.to_str().unwrap())];
    let run = |more: &[&str]| {
        world.run_with(&variables, &[&["launch", "demo", "say.xml"], more].concat())
    };
    let said = run(&["a:=b c"]).good();
    assert!(said.contains("[say-1] says b c --ros-args -r __node:=n\n"), "{said}");
    let shown = run(&["--show-args"]).good();
    assert!(shown.ends_with("'a':\n        what is said\n        (must be given)\n"), "{shown}");
    let planned = run(&["a:=b c", "--dry-run"]).good();
    let line = format!("[say-1] {}/lib/demo/say 'b c' --ros-args -r __node:=n\n", prefix.display());
    assert!(planned.starts_with(&line), "{planned}");
    let planned = run(&["a:=b c", "--dry-run", "--json"]).json();
    assert_eq!(planned["processes"][0]["argv"][1], "b c");
    let error = run(&[]).bad(2);
    assert!(error.contains("\"a\" is an argument without a default"), "{error}");
}

#[test]
fn components_are_loaded_into_their_container() {
    let world = World::new();
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let node = context.unwrap().node_in("box", "/robot").unwrap();
    let (sender, asked) = std::sync::mpsc::channel();
    // As every container answers.
    let answer = move |request: std::sync::Arc<LoadNodeRequest>| {
        let is_known = request.plugin_name == "demo::Talker";
        sender.send((*request).clone()).unwrap();
        LoadNodeResponse {
            success: is_known,
            error_message: if is_known { String::new() } else { "no such class".to_owned() },
            full_node_name: format!("{}/{}", request.node_namespace, request.node_name),
            unique_id: 1,
        }
    };
    let _service = node.create_service::<LoadNode>("/robot/box/_container/load_node", answer);
    let text = r#"<launch><push_ros_namespace namespace="robot"/><load_composable_node target="robot/box">
        <composable_node pkg="demo" plugin="demo::Talker" name="t">
            <param name="rate" value="2.5"/><remap from="a" to="b"/>
            <extra_arg name="use_intra_process_comms" value="true"/>
        </composable_node>
        <composable_node pkg="demo" plugin="demo::Nobody" name="n"/>
        </load_composable_node></launch>"#;
    spun(&node, || {
        let ended = launch(&world, text, &[]).end();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(
            ended.out.contains("[launch]: Loaded node '/robot/t' in container '/robot/box'\n"),
            "{ended:?}"
        );
        assert!(
            ended.out.contains(
                "[ERROR] [launch]: Failed to load node 'n' of type 'demo::Nobody' in container '/robot/box': \
                 no such class ["
            ),
            "{ended:?}"
        );
    });
    let request = asked.recv_timeout(WATCHDOG).unwrap();
    assert_eq!(
        (request.package_name.as_str(), request.node_namespace.as_str()),
        ("demo", "/robot")
    );
    assert_eq!(request.remap_rules, ["a:=b"]);
    let parameter = Parameter::try_from(request.parameters[0].clone()).unwrap();
    assert_eq!(parameter, Parameter::new("rate", 2.5));
    let extra = Parameter::try_from(request.extra_arguments[0].clone()).unwrap();
    assert_eq!(extra, Parameter::new("use_intra_process_comms", true));
}

#[test]
fn a_container_gets_each_component_once_whenever_it_is_started() {
    let world = World::new();
    let text = format!(
        "#!/bin/sh\necho >> '{starts}'\n[ $(wc -l < '{starts}') -ge 3 ] || exit 1\n\
         exec {tsuji} component container \"$@\"\n",
        starts = world.path("starts").display(),
        tsuji = crate::support::tsuji(),
    );
    world.script("box.sh", &text);
    let text = r#"<launch><push_ros_namespace namespace="robot"/>
        <node_container exec="box.sh" name="box" respawn="true" output="screen">
            <composable_node pkg="tsuji_components" plugin="Talker" name="t"/></node_container>
        <load_composable_node target="robot/box">
            <composable_node pkg="tsuji_components" plugin="Listener" name="l"/></load_composable_node></launch>"#;
    let mut launched = launch(&world, text, &[]);
    let started = "process started with pid [";
    launched.out(started);
    launched.out(started);
    let line = launched.out_line(started);
    let pid = line.rsplit_once('[').unwrap().1.trim_end_matches(']').to_owned();
    let loaded = "Loaded node '/robot/l' in container '/robot/box'";
    let listed = "/robot/box\n  1  /robot/t\n  2  /robot/l\n";
    launched.out(loaded);
    world.run_until(&["component", "list"], |it| it.out == listed);
    assert!(child::tell(pid.parse().unwrap(), Signal::Kill));
    launched.out(started);
    launched.out(loaded);
    world.run_until(&["component", "list"], |it| it.out == listed);
    let ended = launched.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for node in ["t", "l"] {
        let loaded = format!("Loaded node '/robot/{node}' in container");
        assert_eq!(ended.out.matches(&loaded).count(), 2, "{ended:?}");
    }
}

#[test]
fn components_of_a_container_that_has_ended_have_failed() {
    let world = World::new();
    let text = r#"<launch><node_container exec="true" name="box"><composable_node pkg="demo" plugin="demo::A"/>
        </node_container></launch>"#;
    let ended = launch(&world, text, &[]).end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let expect = "[ERROR] [launch]: Failed to load node of type 'demo::A' in container '/box': the container has ended [";
    assert_eq!(ended.out.matches(expect).count(), 1, "{ended:?}");
}

#[test]
fn a_container_of_others_is_waited_for_when_no_process_is_left() {
    let world = World::new();
    let text = r#"<launch><executable cmd="true" output="screen"/><load_composable_node target="other">
        <composable_node pkg="demo" plugin="demo::A"/></load_composable_node></launch>"#;
    let mut launched = launch(&world, text, &[]);
    launched.out("process has finished cleanly");
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let node = context.unwrap().node("other").unwrap();
    let answer = |_: std::sync::Arc<LoadNodeRequest>| LoadNodeResponse {
        success: true,
        full_node_name: "/a".to_owned(),
        ..LoadNodeResponse::default()
    };
    let _service = node.create_service::<LoadNode>("/other/_container/load_node", answer);
    spun(&node, || {
        let ended = launched.end();
        assert!(ended.good().contains("Loaded node '/a' in container '/other'"));
    });
}

#[test]
fn a_reader_that_stands_still_keeps_no_launch_from_ending() {
    let world = World::new();
    let text = r#"<launch><executable cmd="yes" output="screen"/></launch>"#;
    let file = world.write("t.launch.xml", text);
    let mut command = world.command(&["launch", file.to_str().unwrap()]);
    let (_unread, launched) = Running::unread(&mut command);
    // Until the one that prints has no room left, and so waits.
    let written = || {
        let all = descendants(launched.id());
        let yes = all.iter().find(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|it| it == "yes\n")
        })?;
        fs::read_to_string(format!("/proc/{yes}/io")).ok()
    };
    let mut before = None;
    let mut same = 0;
    wait_until("the output is full", || {
        let now = written();
        same = if now.is_some() && now == before { same + 1 } else { 0 };
        before = now;
        same == 50
    });
    let Ended { code, err: error, .. } = launched.stop();
    assert_eq!(code, Some(0), "{error}");
    assert!(error.contains("lines were not printed, since nobody read them"), "{error}");
}

#[test]
fn a_reader_that_is_gone_ends_the_launch() {
    let world = World::new();
    let text = r#"<launch><executable cmd="sh -c 'while :; do echo more; sleep 0.02; done'" output="screen"/></launch>"#;
    let file = world.write("t.launch.xml", text);
    let mut command = world.command(&["launch", file.to_str().unwrap()]);
    let (line, ended) = crate::support::first_line_then_hang_up(&mut command);
    assert!(line.contains("process started with pid ["), "{line}");
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
}

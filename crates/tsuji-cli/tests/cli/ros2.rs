//! The commands of `ros2` and their flags, as ros2cli of Jazzy and of Rolling (0.36) has them: each means the same here,
//! or is refused with a line. What the flags do is tested beside the commands; docs/commands.md is the same table for
//! people. `bag`, `launch` and `doctor` have tests of their own.

use crate::support::{Running, World, is_there};

/// A command, and its flags, each with the words of a value that it may have.
const TAKEN: &[(&str, &[&str])] = &[
    (
        "topic list",
        &[
            "-t",
            "--show-types",
            "-c",
            "--count-topics",
            "--include-hidden-topics",
            "-v",
            "--verbose",
            NODE,
        ],
    ),
    ("topic info", &["-v", "--verbose", NODE]),
    ("topic --include-hidden-topics type", &[NODE]),
    ("topic find", &["-c", "--count-topics", "--include-hidden-topics", NODE]),
    (
        "topic echo",
        &[
            "--csv",
            "--field x",
            "-f",
            "--full-length",
            "-l 5",
            "--truncate-length 5",
            "--no-arr",
            "--no-str",
            "--flow-style",
            "--lost-messages",
            "--no-lost-messages",
            "--raw",
            "--once",
            "--timeout 5",
            "--include-message-info",
            "-i",
            "--clear",
            "-c",
            "-n name",
            "--node-name name",
            QOS,
            NODE,
        ],
    ),
    (
        "topic pub",
        &[
            "-r 5",
            "--rate 5",
            "-p 5",
            "--print 5",
            "-1",
            "--once",
            "-t 5",
            "--times 0",
            "-w 1",
            "--wait-matching-subscriptions 1",
            "--max-wait-time-secs 5",
            "--keep-alive 1",
            "-n name",
            "--node-name name",
            "--stdin",
            QOS,
            NODE,
        ],
    ),
    ("topic hz", &["-w 5", "--window 5", "--wall-time", "/a /b", NODE]),
    ("topic bw", &["-w 5", "--window 5", NODE]),
    ("topic delay", &["-w 5", "--window 5", NODE]),
    (
        "service list",
        &["-t", "--show-types", "-c", "--count-services", "--include-hidden-services", NODE],
    ),
    ("service info", &[NODE]),
    ("service --include-hidden-services type", &[]),
    ("service find", &["-c", "--count-services", "--include-hidden-services"]),
    (
        "service echo",
        &[
            "--csv",
            "-f",
            "--full-length",
            "-l 5",
            "--truncate-length 5",
            "--no-arr",
            "--no-str",
            "--flow-style",
        ],
    ),
    ("service call", &["-r 5", "--rate 5", "--stdin"]),
    ("action list", &["-t", "--show-types", "-c", "--count-actions"]),
    ("action info", &["-t", "--show-types", "-c", "--count"]),
    ("action type", &[]),
    ("action find", &["-c", "--count-actions"]),
    ("action send_goal", &["-f", "--feedback", "--stdin"]),
    ("node list", &["-a", "--all", "-c", "--count-nodes", NODE]),
    ("node info", &["--include-hidden", NODE]),
    (
        "param list",
        &["--filter a.*", "--include-hidden-nodes", "--param-prefixes a b", "--param-type", NODE],
    ),
    ("param get", &["--include-hidden-nodes", "--hide-type", "--timeout 5", NODE]),
    ("param set", &["--include-hidden-nodes", "--timeout 5", NODE]),
    ("param delete", &["--include-hidden-nodes", "--timeout 5", NODE]),
    ("param describe", &["--include-hidden-nodes", "--timeout 5", NODE]),
    ("param dump", &["--include-hidden-nodes", "--timeout 5", NODE]),
    ("param load", &["--include-hidden-nodes", "--no-use-wildcard", "--timeout 5", NODE]),
    ("lifecycle nodes", &["-a", "--all", "-c", "--count-nodes", NODE]),
    ("lifecycle list", &["--include-hidden-nodes", "-a", "--all", NODE]),
    ("lifecycle get", &["--include-hidden-nodes", NODE]),
    ("lifecycle set", &["--include-hidden-nodes", NODE]),
    ("component list", &["--containers-only", NODE]),
    ("component load", &["-q", "--quiet", COMPONENT, NODE]),
    ("component unload", &["-q", "--quiet", NODE]),
    ("component standalone", &["-c name", "--container-node-name name", COMPONENT, NODE]),
    ("component types", &[]),
    ("interface list", KINDS),
    ("interface package", KINDS),
    ("interface packages", KINDS),
    ("interface proto", &["--no-quotes"]),
    ("interface show", &["--all-comments", "--no-comments"]),
    ("pkg list", &[]),
    ("pkg executables", &["--full-path"]),
    ("pkg prefix", &["--share"]),
    ("pkg xml", &["-t version", "--tag version"]),
    ("run", &["--prefix gdb"]),
    ("multicast send", &["--group 225.0.0.1", "--port 49150", "--ttl 1"]),
    ("multicast receive", &["--group 225.0.0.1", "--port 49150"]),
    ("wtf", &[]),
    ("bag play", &["-l", "--loop", "-r 2", "-p", "-i a", "-d 1"]),
    ("play", &["-l", "--loop"]),
];

/// Of every command that has a node of its own.
const NODE: &str = "--spin-time 1|-s|--use-sim-time|--no-daemon";

const QOS: &str = "--qos-profile default|--qos-profile sensor_data|--qos-profile system_default|\
    --qos-profile services_default|--qos-profile parameters|--qos-profile parameter_events|\
    --qos-profile action_status_default|--qos-depth 5|--qos-history keep_last|--qos-history keep_all|\
    --qos-history system_default|--qos-reliability reliable|--qos-reliability best_effort|\
    --qos-reliability system_default|--qos-durability volatile|--qos-durability transient_local|\
    --qos-durability system_default|--qos-liveliness automatic|--qos-liveliness manual_by_topic|\
    --qos-liveliness system_default|--qos-liveliness-lease-duration-seconds 1.5";

const COMPONENT: &str = "-n name|--node-name name|--node-namespace /x|--log-level info|-r a:=b|--remap-rule a:=b|\
    -p a:=1|--parameter a:=1|-e a:=1|--extra-argument a:=1";

const KINDS: &[&str] = &["-m", "--only-msgs", "-s", "--only-srvs", "-a", "--only-actions"];

#[test]
fn every_flag_of_ros2_is_taken() {
    let world = World::new();
    let mut wrong = Vec::new();
    for (command, flags) in TAKEN {
        let flags = flags.iter().flat_map(|it| it.split('|'));
        for flag in flags.chain([""]) {
            // A flag that is unknown is told before the help is reached.
            let words: Vec<&str> = [command, flag, "--help"]
                .into_iter()
                .flat_map(|it| it.split_whitespace())
                .collect();
            let ended = world.run(&words);
            if ended.code != Some(0) {
                wrong.push(format!("{command} {flag}: {}", ended.err));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_not_taken_is_refused_with_a_line() {
    let world = World::new();
    for (words, expect) in [
        ("daemon start", "there is no daemon"),
        ("daemon stop", "there is no daemon"),
        ("daemon status --help", "there is no daemon"),
        ("security create_keystore x", "`tsuji security create`"),
        ("test x.py", "`ros2 test`"),
        ("extensions -a", "no extensions"),
        ("extension_points", "no extensions"),
        ("plugin list", "`tsuji component types`"),
        ("trace", "`ros2 trace`"),
        ("control list_controllers", "`ros2 control`"),
        ("pkg create --build-type ament_cmake x", "`ros2 pkg create`"),
        ("action echo /x", "ACTION/_action/feedback"),
        ("topic echo /x --filter len(m.data)>1", "column 4: found `(`"),
        ("topic hz /x --filter m.data>1", "an expression of Python"),
        ("topic pub /x std_msgs/msg/Empty --max-wait-time-secs 1", "is only effective with"),
        ("topic echo /x --raw --no-arr", "cannot be used with"),
        ("topic echo /x --csv --flow-style", "cannot be used with"),
        ("topic echo /x --qos-profile unknown", "possible values"),
        ("topic echo /x --qos-reliability best_available", "possible values"),
        ("multicast send --group 10.0.0.1", "224.0.0.0"),
        ("doctor --report", "--json"),
        ("doctor -r", "--json"),
        ("doctor -rf", "what mends it"),
        ("wtf --report-failed", "what mends it"),
        ("doctor --include-warnings", "always told"),
        ("doctor -iw", "always told"),
        ("doctor -ep", "versions of packages"),
        ("doctor hello", "`tsuji multicast receive`"),
        ("doctor hello -t /x", "`tsuji multicast receive`"),
        ("doctor what", "flags alone"),
        ("launch -d x.xml", "--dry-run"),
        ("launch --debug x.xml", "--dry-run"),
        ("play x --delay -1", "allowed: a number of seconds"),
        ("play x --start-offset -1", "allowed: a number of seconds"),
        ("record -a --max-bag-size -1", "a whole number of bytes above 0"),
        ("record -a --max-bag-duration -1", "a number of seconds above 0"),
        ("record -a --duration -1", "a number of seconds above 0"),
        ("record -a --depth -1", "-1 is not in 1..=1000000"),
        ("topic echo /x -l -1", "a whole number from 0"),
        ("topic echo /x --timeout -1", "a number of seconds above 0"),
        ("topic echo /x --field ", "--field '': allowed: a name"),
        ("record --topic-types foo", "`foo` names no interface"),
        ("interface show -", "standard input is empty"),
    ] {
        let error = world.run(&words.split(' ').collect::<Vec<_>>()).bad(2);
        assert!(error.contains(expect), "{words}: {error}");
        assert!(error.starts_with("error: "), "{words}: {error}");
    }
}

#[test]
fn packages_that_are_installed() {
    let world = World::new();
    let index = "share/ament_index/resource_index/packages";
    world.write(&format!("over/{index}/arm"), "");
    world.write(&format!("under/{index}/arm"), "");
    world.write(&format!("under/{index}/eye"), "");
    world.write("over/share/arm/package.xml", "<package format=\"3\"><name>arm</name><version>1.2.3</version><depend>a</depend><depend>b</depend><license>Apache-<!-- or later -->2.0</license><author/></package>\n");
    let script = "#!/bin/sh\necho \"$0 $@\"\nexit 7\n";
    world.script("over/lib/arm/grip", script);
    world.script("over/lib/arm/deep/turn", script);
    world.write("over/lib/arm/notes.txt", script);
    let (over, under) = (world.path("over"), world.path("under"));
    let (over, under) = (over.to_str().unwrap(), under.to_str().unwrap());
    let path = format!("{over}:{under}:/nowhere");
    let ros = [("AMENT_PREFIX_PATH", path.as_str())];
    let run = |words: &str| world.run_with(&ros, &words.split(' ').collect::<Vec<_>>());
    assert_eq!(run("pkg list").good(), "arm\neye\n");
    assert_eq!(run("pkg executables").good(), "arm turn\narm grip\n");
    assert_eq!(
        run("pkg executables arm --full-path").good(),
        format!("{over}/lib/arm/deep/turn\n{over}/lib/arm/grip\n")
    );
    assert_eq!(run("pkg executables eye").good(), "");
    assert_eq!(run("pkg prefix arm").good(), format!("{over}\n"));
    assert_eq!(run("pkg prefix eye --share").good(), format!("{under}/share/eye\n"));
    assert_eq!(run("pkg xml arm -t version").good(), "1.2.3\n");
    assert_eq!(run("pkg xml arm --tag depend").good(), "a\nb\n");
    // As ElementTree of Python has it, which `ros2 pkg xml` prints.
    assert_eq!(run("pkg xml arm --tag license").good(), "Apache-2.0\n");
    assert_eq!(run("pkg xml arm --tag author").good(), "None\n");
    assert!(run("pkg xml arm").good().contains("<version>1.2.3</version>"));
    assert!(run("pkg xml arm -t licence").bad(1).contains("XML tag not found"));
    assert!(run("pkg xml eye").bad(1).contains("eye/package.xml: No such file"));
    let error = run("pkg prefix leg").bad(1);
    assert!(
        error.starts_with("error: Package 'leg' not found; searched AMENT_PREFIX_PATH (3 folders)"),
        "{error}"
    );
    // The program takes the place of the command, with its arguments and its exit code.
    let ran = run("run arm turn --ros-args -r a:=b --help");
    assert_eq!(
        (ran.code, ran.out),
        (Some(7), format!("{over}/lib/arm/deep/turn --ros-args -r a:=b --help\n"))
    );
    let ran = world.run_with(&ros, &["run", "--prefix", "env 'A B=c'", "arm", "grip"]);
    assert_eq!((ran.code, ran.out), (Some(7), format!("{over}/lib/arm/grip \n")));
    assert!(
        run("run arm notes.txt")
            .bad(1)
            .contains("No executable found: 'notes.txt' of arm; there are: turn, grip")
    );
    // What stands behind the executable is the program's, and what stands before the package is passed on.
    for words in
        ["-h", "--help", "-V", "--version", "--domain-id 5", "--policy x", "-- -x", "--prefix y"]
    {
        let ran = run(&format!("run arm grip {words}"));
        assert_eq!((ran.code, ran.out), (Some(7), format!("{over}/lib/arm/grip {words}\n")));
    }
    world.script("over/lib/arm/env", "#!/bin/sh\necho $ROS_DOMAIN_ID $TSUJI_POLICY\n");
    assert_eq!(run("--domain-id 5 --policy x.xml run arm env").good(), "5 x.xml\n");
    assert!(run("run arm --unknown").bad(2).contains("unexpected argument '--unknown'"));
    assert!(run("run arm").bad(2).contains("<EXECUTABLE>"));
    assert_eq!(
        world.run(&["pkg", "prefix", "leg"]).bad(1),
        "error: Package 'leg' not found: AMENT_PREFIX_PATH is not set; installed packages are found by it\n"
    );
    assert!(run("run leg walk").bad(1).contains("Package 'leg' not found"));
    // An index that cannot be read is told.
    world.write(&format!("broken/{}", index.rsplit_once('/').unwrap().0), "");
    let broken = world.path("broken");
    let path = format!("{}:{under}", broken.display());
    let told = world.run_with(&[("AMENT_PREFIX_PATH", &path)], &["pkg", "list"]);
    assert_eq!((told.code, told.out.as_str()), (Some(0), "arm\neye\n"));
    assert!(told.err.contains("resource_index/packages: Not a directory"), "{}", told.err);
}

#[test]
fn prototypes_of_all_kinds() {
    let world = World::new();
    let proto = |name: &str| world.run(&["interface", "proto", name, "--no-quotes"]).good();
    assert_eq!(proto("std_msgs/msg/String"), "data: ''\n\n");
    assert_eq!(proto("std_srvs/srv/SetBool"), "data: false\n\n");
    assert_eq!(proto("std_srvs/srv/SetBool_Response"), "success: false\nmessage: ''\n\n");
    assert_eq!(proto("example_interfaces/action/Fibonacci"), "order: 0\n\n");
    let only = |flag: &str| world.run(&["interface", "package", "example_interfaces", flag]).good();
    assert_eq!(only("-a"), "example_interfaces/action/Fibonacci\n");
    assert!(only("-s").lines().all(|it| it.contains("/srv/")) && only("-s").contains("AddTwoInts"));
}

#[test]
fn a_datagram_for_a_group_comes_through() {
    let alone = ["unshare", "-rn", "true"];
    if !is_there(&alone) || !is_there(&["ip", "-V"]) {
        return;
    }
    let world = World::new();
    let script = "ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo && \
        \"$@\" multicast receive --port 49151 > heard & \
        until grep -qs Waiting heard; do sleep 0.02; done; \"$@\" multicast send --port 49151 --ttl 2 && wait && cat heard";
    let ended =
        Running::new(&mut world.command_under(&["unshare", "-rn", "sh", "-c", script, "sh"], &[]))
            .end();
    let out = ended.good();
    assert!(out.starts_with("Sending one UDP multicast datagram...\nWaiting for UDP multicast datagram...\nReceived from "), "{out}");
    assert!(out.ends_with(": 'Hello World!'\n"), "{out}");
}

//! Launch files as users write them, and what becomes of them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use support::{Machine, machine};
use tsuji_launch::{
    INCLUDE_DEPTH_MAX, Output, ParameterSource, Plan, Process, Respawn, XmlErrors, declared, plan,
};

fn planned_on(
    machine: &Machine,
    text: &str,
    arguments: &[(&str, &str)],
) -> Result<Plan, XmlErrors> {
    let mut machine = machine.clone();
    machine.files.insert("/robot/t.xml".into(), text.to_owned());
    let arguments: Vec<_> =
        arguments.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    plan(&machine, Path::new("/robot/t.xml"), &arguments)
}

#[track_caller]
fn planned(body: &str) -> Plan {
    planned_on(&machine(), &format!("<launch>{body}</launch>"), &[]).unwrap()
}

/// The words of the one process that the body asks for.
#[track_caller]
fn argv(body: &str, expect: &[&str]) {
    let plan = planned(body);
    let [process] = &plan.processes[..] else { panic!("one process: {plan:#?}") };
    assert_eq!(process.argv, expect);
}

#[track_caller]
fn refused(body: &str, expect: &[&str]) {
    let errors = planned_on(&machine(), &format!("<launch>{body}</launch>"), &[]).unwrap_err();
    let errors: Vec<String> = errors.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, expect);
}

#[test]
fn a_node_has_the_words_that_every_ros_2_node_takes() {
    argv(r#"<node pkg="demo" exec="talker"/>"#, &["/ros/lib/demo/talker"]);
    argv(
        r#"<node pkg="demo" exec="talker" name="t" namespace="a/b" args="--fast 'to the'" ros_args="--log-level warn">
            <param from="$(dirname)/p.yaml"/>
            <param name="rate" value="2.5"/>
            <param name="camera"><param name="name" value="1" type="str"/><param name="on" value="true"/></param>
            <remap from="chatter" to="words"/>
        </node>"#,
        &[
            "/ros/lib/demo/talker",
            "--fast",
            "to the",
            "--ros-args",
            "--log-level",
            "warn",
            "--ros-args",
            "-r",
            "__node:=t",
            "-r",
            "__ns:=/a/b",
            "--params-file",
            "/robot/p.yaml",
            "-p",
            "rate:=2.5",
            "-p",
            "camera.name:=\"1\"",
            "-p",
            "camera.on:=true",
            "-r",
            "chatter:=words",
        ],
    );
}

#[test]
fn everything_that_is_said_of_a_process_is_in_the_plan() {
    let plan = planned(
        r#"<node pkg="demo" exec="talker" name="t" output="both" respawn="true" respawn_delay="1.5"
            respawn_max_retries="3" cwd="/tmp" sigterm_timeout="1" sigkill_timeout="2" on_exit="shutdown"
            launch-prefix="gdb --args">
            <env name="A" value="b c"/>
        </node>
        <executable cmd="camera --size 640"/>
        <executable cmd="a | b" shell="true" name="both" output="screen"/>"#,
    );
    let [node, camera, both] = &plan.processes[..] else { panic!("three: {plan:#?}") };
    assert_eq!(node.argv[..3], ["/bin/gdb", "--args", "/ros/lib/demo/talker"]);
    assert_eq!((node.label.as_str(), node.node.as_deref()), ("talker-1", Some("/t")));
    assert_eq!(node.output, Output::Both);
    let respawn = Respawn { delay: Duration::from_millis(1500), retries_max: Some(3) };
    assert_eq!((node.respawn, node.shuts_down), (Some(respawn), true));
    assert_eq!(node.patience.until_terminate, Duration::from_secs(1));
    assert_eq!(node.patience.until_kill, Duration::from_secs(2));
    assert_eq!((node.env["A"].as_deref(), node.place.line), (Some("b c"), 1));
    assert_eq!(node.cwd.as_deref(), Some(Path::new("/tmp")));
    assert_eq!(camera.argv, ["/robot/camera", "--size", "640"]);
    assert_eq!((camera.output, camera.respawn), (Output::Log, None));
    assert_eq!(camera.patience.until_kill, Duration::from_secs(5));
    assert_eq!(both.argv, ["/bin/sh", "-c", "a | b"]);
    assert_eq!((both.label.as_str(), both.output), ("both-3", Output::Screen));
}

#[test]
fn programs_without_a_package_are_beside_the_file_or_in_path() {
    argv(r#"<node exec="camera"/>"#, &["/robot/camera"]);
    argv(r#"<node exec="../bin/gdb"/>"#, &["/robot/../bin/gdb"]);
    argv(r#"<node exec="gdb"/>"#, &["/bin/gdb"]);
    argv(r#"<node exec="/bin/gdb"/>"#, &["/bin/gdb"]);
}

#[test]
fn groups_hold_what_is_set_in_them() {
    let plan = planned(
        r#"<set_env name="A" value="1"/>
        <group>
            <push_ros_namespace namespace="out"/>
            <group>
                <push-ros-namespace namespace="in"/>
                <set_remap from="a" to="b"/><set_parameter name="p" value="1"/>
                <set_env name="B" value="$(env A)2"/><unset_env name="PATH"/>
                <let name="x" value="y"/>
                <node pkg="demo" exec="talker" args="$(var x)"/>
            </group>
            <node pkg="demo" exec="talker" namespace="/base" name="n" args="$(var x none)"/>
        </group>
        <group scoped="false"><push_ros_namespace namespace="kept"/></group>
        <node pkg="demo" exec="talker"/>"#,
    );
    let words: Vec<String> = plan.processes.iter().map(|it| it.argv[1..].join(" ")).collect();
    assert_eq!(words[0], "y --ros-args -r __ns:=/out/in -p p:=1 -r a:=b");
    assert_eq!(words[1], "none --ros-args -r __node:=n -r __ns:=/base");
    assert_eq!(words[2], "--ros-args -r __ns:=/kept");
    let env = |number: usize| -> Vec<(&str, Option<&str>)> {
        let Process { env, .. } = &plan.processes[number];
        env.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect()
    };
    assert_eq!(env(0), [("A", Some("1")), ("B", Some("12")), ("PATH", None)]);
    assert_eq!(env(1), [("A", Some("1"))]);
    assert_eq!(plan.processes[1].node.as_deref(), Some("/base/n"));
}

#[test]
fn substitutions_give_what_they_name() {
    #[track_caller]
    fn check(value: &str, expect: &str) {
        let body = format!(r#"<let name="x" value="X"/><node exec="camera" args="a={value}"/>"#);
        argv(&body, &["/robot/camera", &format!("a={expect}")]);
    }
    check("$(var x)", "X");
    check("$(var $(var y x))", "X");
    check("$(var 'nobody' 'a b')", "a b");
    check("$(env ROBOT)", "arm");
    check("$(env NOBODY $(env ROBOT))", "arm");
    check("$(find-pkg-share demo)/x", "/ros/share/demo/x");
    check("$(find-pkg-prefix demo)", "/ros");
    check("$(exec-in-pkg talker demo)", "/ros/lib/demo/talker");
    check("$(dirname)", "/robot");
    check("$(filename)", "/robot/t.xml");
    check("$(anon node)", "node_7");
    check(
        "$(and true $(not 0))-$(or false 0)-$(equals a b)-$(not-equals a b)",
        "true-false-false-true",
    );
    argv(r"<node exec='camera' args='a=\$(x)'/>", &["/robot/camera", "a=$(x)"]);
}

#[test]
fn substitutions_that_look_at_the_machine_or_choose() {
    #[track_caller]
    fn check(value: &str, expect: &str) {
        let body = format!(
            r#"<set_parameter name="p" value="[a, b]"/><set_parameter name="on" value="yes"/>
            <executable cmd="camera '{value}'"/>"#
        );
        argv(&body, &["/robot/camera", expect]);
    }
    check("$(any false no on)", "true");
    check("$(any 0 off)", "false");
    check("$(all true yes 1)", "true");
    check("$(all true 0)", "false");
    check("$(find-exec gdb)", "/bin/gdb");
    check("$(find-exec /robot/camera)", "/robot/camera");
    check("$(file-content /robot/words.txt)", "one\ntwo\n");
    check("$(log_dir)", "/logs/launch-1");
    check("$(launch_log_dir)/a", "/logs/launch-1/a");
    check("$(anon a.b-c)", "a_b_c_7");
    check("$(param on)", "True");
    check("$(param p)", "('a', 'b')");
    check("$(param nobody x)", "x");
    for (value, expect) in [
        (
            "$(command ls)",
            "\"command\" runs a program, and a plan is made without anything being run",
        ),
        ("$(eval 1 + 1)", "\"eval\" runs Python, which is not here; $(if …), $(equals …)"),
        ("$(arg x)", "\"arg\" is of ROS 1; it is $(var NAME) in ROS 2"),
        ("$(find demo)", "\"find\" is of ROS 1; it is $(find-pkg-share PACKAGE) in ROS 2"),
        ("$(optenv A)", "\"optenv\" is of ROS 1; it is $(env NAME DEFAULT) in ROS 2"),
        (
            "$(path-join a b)",
            "\"path-join\" is not a substitution that is here; allowed: all, and, anon",
        ),
        ("$(string-join a b)", "\"string-join\" is not a substitution that is here"),
        ("$(boolean true)", "\"boolean\" is not a substitution that is here"),
        (
            "$(not maybe)",
            "\"maybe\" is not a truth value; allowed: true, false, yes, no, on, off, 1, 0",
        ),
        ("$(equals a)", "\"equals\" has 1 words after it, and takes 2"),
        ("$(var)", "\"var\" has 0 words after it, and takes 1 or 2"),
        ("$(dirname x)", "\"dirname\" has 1 words after it, and takes none"),
        ("$(find-exec nobody)", "\"nobody\" is not an executable in PATH"),
        ("$(exec-in-pkg nobody demo)", "\"nobody\" is not an executable in /ros/lib/demo"),
        ("$(find-pkg-share dmeo)", "which is /none:/ros; did you mean \"demo\"?"),
        ("$(file-content /nowhere)", "\"/nowhere\" is a file that cannot be read: no such file"),
        ("$(param nobody)", "\"nobody\" is not a parameter that set_parameter has set here"),
        ("$(var  x)", "\" \" stands where a word does; one space is between words"),
        ("$(var x", "\"$(\" is not closed; its ')' is missing"),
        ("$(equals $(env ROBOT) '')", "\"''\" is empty, which ROS 2 compares as the text []"),
    ] {
        let text = format!(r#"<launch><executable cmd="camera {value}"/></launch>"#);
        let error = planned_on(&machine(), &text, &[]).unwrap_err().to_string();
        assert!(error.contains(expect), "{value}: {error}");
    }
}

#[test]
fn a_variable_that_is_not_utf_8_is_told_and_its_other_folders_count() {
    let mut machine = machine();
    for (name, value) in
        [("ODD", &b"\xff"[..]), ("PATH", b"/\xff:/bin"), ("AMENT_PREFIX_PATH", b"/\xff:/ros")]
    {
        machine.variables.insert(name.into(), OsString::from_vec(value.to_vec()));
    }
    let planned = |body: &str| planned_on(&machine, &format!("<launch>{body}</launch>"), &[]);
    let plan =
        planned(r#"<executable cmd="camera '$(find-exec gdb)' '$(find-pkg-prefix demo)'"/>"#);
    assert_eq!(plan.unwrap().processes[0].argv, ["/robot/camera", "/bin/gdb", "/ros"]);
    for body in [r#"<let name="a" value="$(env ODD x)"/>"#, r#"<append_env name="ODD" value="x"/>"#]
    {
        let error = planned(body).unwrap_err().to_string();
        assert!(error.contains("\"ODD\" is not UTF-8 in the environment"), "{body}: {error}");
    }
}

#[test]
fn variables_are_forgotten_kept_and_lengthened() {
    let plan = planned(
        r#"<let name="x" value="X"/><let name="y" value="Y"/><push_ros_namespace namespace="ns"/>
        <set_parameter name="p" value="1"/><set_remap from="a" to="b"/><set_env name="E" value="1"/>
        <group forwarding="no"><keep name="x" value="$(var y)"/>
            <node exec="camera" args="$(var x) $(var y -) $(env E -)"/>
        </group>
        <group><keep name="z" value="Z"/><node exec="camera" args="$(var x) $(var z)"/></group>
        <group scoped="off"><keep name="k" value="K"/></group>
        <reset if="false"/>
        <node exec="camera" args="$(var k) $(var z -)"/>
        <append_env name="E" value="2"/><append_env name="E" value="0" prepend="on" separator=","/>
        <append_env name="NEW" value="3"/>
        <reset><keep name="y" value="$(var x)"/></reset>
        <node exec="camera" args="$(var x -) $(var y) $(env E)"/>
        <reset_env/>
        <node exec="camera" args="$(env E -) $(env ROBOT)"/>"#,
    );
    let words: Vec<String> = plan.processes.iter().map(|it| it.argv[1..].join(" ")).collect();
    let all = "--ros-args -r __ns:=/ns -p p:=1 -r a:=b";
    assert_eq!(words[0], "Y - -");
    assert_eq!(words[1], format!("X Z {all}"));
    assert_eq!(words[2], format!("K - {all}"));
    assert_eq!(words[3], "- X 0,1:2");
    assert_eq!(words[4], "- arm");
    let env = &plan.processes[3].env;
    assert_eq!((env["E"].as_deref(), env["NEW"].as_deref()), (Some("0,1:2"), Some("3")));
    assert!(plan.processes[4].env.is_empty());
}

#[test]
fn elements_and_attributes_mean_what_they_mean_to_ros_2() {
    let plan = planned(
        r#"<set_parameters_from_file filename="/robot/p.yaml"/>
        <set_ros_log_dir new_log_dir="run"/>
        <log message="rate $(env ROBOT)"/><log message="never" if="0"/>
        <let name="sigterm_timeout" value="2.5"/><let name="launch-prefix" value="gdb --args"/>
        <node pkg="demo" exec="talker" exec_name="speaker" emulate_tty="false" respawn="on">
            <param name="a" value="1"/><param from="/robot/p.yaml"/><param name="a" value="2"/>
        </node>
        <executable cmd="camera" launch-prefix="" sigterm_timeout="1" shell="no" respawn_max_retries="-1"/>"#,
    );
    let [node, camera] = &plan.processes[..] else { panic!("{plan:#?}") };
    // Later parameters count, so their order is that of the file.
    assert_eq!(
        node.argv.join(" "),
        "/bin/gdb --args /ros/lib/demo/talker --ros-args --params-file /robot/p.yaml -p a:=1 \
         --params-file /robot/p.yaml -p a:=2"
    );
    assert_eq!((node.label.as_str(), node.respawn.is_some()), ("speaker-1", true));
    assert_eq!(node.patience.until_terminate, Duration::from_millis(2500));
    assert_eq!(node.env["ROS_LOG_DIR"].as_deref(), Some("/users/arm/.ros/log/run"));
    assert_eq!(camera.argv, ["/robot/camera"]);
    assert_eq!(camera.patience.until_terminate, Duration::from_secs(1));
    let [(message, place)] = &plan.messages[..] else { panic!("{:?}", plan.messages) };
    assert_eq!((message.as_str(), place.line), ("rate arm", 3));
    // A name and a choice have no substitutions.
    let text = r#"<launch><arg name="\$(a)" default="$(env ROBOT)"/><arg name="c" default="\d"><choice value="\\d"/><choice value="d"/></arg>
        <node exec="camera" args="$(var '\$(a)')$(var c)"/></launch>"#;
    let plan = planned_on(&machine(), text, &[]).unwrap();
    assert_eq!(plan.processes[0].argv[1], "armd");
    for (body, expect) in [
        (
            r#"<node exec="camera" emulate_tty="true"/>"#,
            "\"true\" is not supported: what processes print goes through a pipe",
        ),
        (r#"<timer period="1"/>"#, "\"timer\" is not an element here"),
        (r#"<shutdown/>"#, "\"shutdown\" is not an element here"),
        (r#"<lifecycle_node/>"#, "\"lifecycle_node\" is not an element here"),
        (
            r#"<let name="launch-prefix-filter" value="x"/><node exec="camera"/>"#,
            "\"launch-prefix-filter\" is a variable that is not supported",
        ),
        (r#"<group if="on"/>"#, "\"on\" is not a truth value; allowed: true, false, 1, 0"),
        (
            r#"<group scoped="maybe"/>"#,
            "\"maybe\" is not a truth value; allowed: true, false, yes, no, on, off, 1, 0",
        ),
        (r#"<keep name="a" value="b"/>"#, "\"keep\" is not an element here"),
        (r#"<set_parameters_from_file filename="/none"/>"#, "\"/none\" is not a file"),
        (
            r#"<node exec="camera"><param from="/robot/p.yaml"><param name="a" value="1"/></param></node>"#,
            "\"param\" has no place in a \"param\" with \"from\"",
        ),
        (
            r#"<node exec="camera"><param name="a" type="int"><param name="b" value="1"/></param></node>"#,
            "\"type\" has no place beside parameters inside",
        ),
    ] {
        let error = planned_on(&machine(), &format!("<launch>{body}</launch>"), &[]);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expect), "{body}: {error}");
    }
}

#[test]
fn launch_files_in_other_languages_are_told_as_such() {
    let mut machine = machine();
    for (name, text, language) in [
        ("/robot/a.launch.py", "from launch import LaunchDescription\n", "Python"),
        ("/robot/a.launch.yaml", "launch:\n- node: {pkg: demo, exec: talker}\n", "YAML"),
        ("/robot/a.launch", "launch:\n", "YAML"),
    ] {
        machine.files.insert(name.into(), text.to_owned());
        let expect = format!("is a launch file in {language}, and only those in XML are supported");
        for error in [
            plan(&machine, Path::new(name), &[]).unwrap_err().to_string(),
            declared(&machine, Path::new(name)).unwrap_err().to_string(),
            planned_on(&machine, &format!(r#"<launch><include file="{name}"/></launch>"#), &[])
                .unwrap_err()
                .to_string(),
        ] {
            assert!(error.contains(&expect), "{error}");
            assert!(error.contains("ros2 launch"), "{error}");
        }
    }
}

#[test]
fn conditions_decide() {
    let plan = planned(
        r#"<let name="yes" value="True"/>
        <node exec="camera" if="$(var yes)" args="1"/><node exec="camera" unless="$(var yes)" args="2"/>
        <group if="0"><node exec="nobody"/></group><node exec="camera" unless="false" args="3"/>"#,
    );
    let args: Vec<_> = plan.processes.iter().map(|it| it.argv[1].as_str()).collect();
    assert_eq!(args, ["1", "3"]);
}

#[test]
fn arguments_come_from_the_command_line_or_their_defaults() {
    let text = r#"<launch><arg name="a" default="1"/><arg name="b"><choice value="x"/><choice value="y"/></arg>
        <node exec="camera" args="$(var a)$(var b)"/></launch>"#;
    let planned = |arguments: &[(&str, &str)]| {
        planned_on(&machine(), text, arguments)
            .map(|it| it.processes[0].argv[1].clone())
            .map_err(|it| it.to_string())
    };
    assert_eq!(planned(&[("b", "x")]).as_deref(), Ok("1x"));
    assert_eq!(planned(&[("b", "y"), ("a", "2")]).as_deref(), Ok("2y"));
    let missing = planned(&[]).unwrap_err();
    assert!(
        missing.starts_with(
            "/robot/t.xml:1:47: \"b\" is an argument without a default, and is not given"
        ),
        "{missing}"
    );
    let error = planned(&[("b", "z")]).unwrap_err();
    assert!(error.contains(r#""z" is not a choice of the argument "b""#), "{error}");
    assert!(error.contains("allowed: x, y"), "{error}");
    let error = planned(&[("b", "x"), ("bb", "")]).unwrap_err();
    assert_eq!(
        error,
        "/robot/t.xml:1:2: \"bb\" is not an argument of this file (did you mean \"b\"?); allowed: a, b"
    );
    let mut machine = machine();
    machine.files.insert("/robot/t.xml".into(), text.to_owned());
    let arguments = declared(&machine, Path::new("/robot/t.xml")).unwrap();
    assert_eq!((arguments[0].name.as_str(), arguments[0].default.as_deref()), ("a", Some("1")));
    assert_eq!(
        (arguments[1].default.as_deref(), &arguments[1].choices[..]),
        (None, &["x".to_owned(), "y".to_owned()][..])
    );
}

#[test]
fn files_include_others() {
    let mut machine = machine();
    let inner = r#"<launch><arg name="n"/><push_ros_namespace namespace="$(var n)"/>
        <node exec="./camera" args="$(filename)"/></launch>"#;
    machine.files.insert("/robot/parts/inner.xml".into(), inner.to_owned());
    machine.files.insert("/robot/parts/camera".into(), "program".to_owned());
    let include = |inside: &str| {
        let text = format!(
            r#"<launch><group><include file="$(dirname)/x/../parts/inner.xml">{inside}</include></group>
            <node exec="camera"/></launch>"#
        );
        planned_on(&machine, &text, &[]).map_err(|it| it.to_string())
    };
    let plan = include(r#"<arg name="n" value="a"/>"#).unwrap();
    assert_eq!(
        plan.processes[0].argv,
        ["/robot/parts/./camera", "/robot/parts/inner.xml", "--ros-args", "-r", "__ns:=/a"]
    );
    assert_eq!(plan.processes[0].place.to_string(), "/robot/parts/inner.xml:2");
    assert_eq!(plan.processes[1].argv, ["/robot/camera"]);
    let error = include("").unwrap_err();
    assert!(
        error.starts_with("/robot/parts/inner.xml:1:20: \"n\" is an argument without"),
        "{error}"
    );
    let error = include(r#"<let name="n" value="a"/><arg name="m" value="a"/>"#).unwrap_err();
    assert!(error.contains("\"m\" is not an argument of /robot/parts/inner.xml"), "{error}");
}

#[test]
fn circles_and_depths_of_files_are_refused() {
    let mut machine = machine();
    let include = |of: &str| format!(r#"<launch><include file="{of}"/></launch>"#);
    machine.files.insert("/robot/a.xml".into(), include("$(dirname)/./t.xml"));
    let error = planned_on(&machine, &include("/robot/a.xml"), &[]).unwrap_err().to_string();
    assert_eq!(
        error,
        "/robot/a.xml:1:24: \"/robot/./t.xml\" includes itself: /robot/t.xml → /robot/a.xml → /robot/t.xml"
    );
    for number in 0..INCLUDE_DEPTH_MAX {
        let path = format!("/robot/{number}.xml");
        machine.files.insert(path.into(), include(&format!("/robot/{}.xml", number + 1)));
    }
    let error = planned_on(&machine, &include("/robot/0.xml"), &[]).unwrap_err().to_string();
    assert!(error.contains("is included too deep; the most is 16 files"), "{error}");
    let error = planned_on(&machine, &include("/nowhere.xml"), &[]).unwrap_err().to_string();
    assert!(error.contains("\"/nowhere.xml\" cannot be read: no such file"), "{error}");
    machine.files.insert("/robot/b.xml".into(), "<launch/>".to_owned());
    let many = r#"<include file="/robot/b.xml"/>"#.repeat(300);
    let error = planned_on(&machine, &format!("<launch>{many}</launch>"), &[]).unwrap_err();
    assert!(error.to_string().contains("is one file too many; a launch has at most 256"));
}

#[test]
fn components_are_loaded_into_their_container() {
    let plan = planned(
        r#"<group><push_ros_namespace namespace="ns"/>
        <node_container pkg="demo" exec="container" name="box">
            <composable_node pkg="demo" plugin="demo::Talker" name="t" namespace="in">
                <param name="rate" value="2"/><param name="word" value="1e3"/><remap from="a" to="b"/>
                <extra_arg name="use_intra_process_comms" value="true"/>
            </composable_node>
            <composable_node pkg="demo" plugin="demo::Listener" if="false"/>
        </node_container>
        <load_composable_node target="ns/box"><composable_node pkg="demo" plugin="demo::B"/></load_composable_node>
        <load_composable_node target="/x/y"><composable_node pkg="demo" plugin="demo::C"/></load_composable_node>
        </group>"#,
    );
    assert_eq!(plan.processes[0].node.as_deref(), Some("/ns/box"));
    let [talker, b, c] = &plan.components[..] else { panic!("{plan:#?}") };
    assert_eq!((talker.container.as_str(), talker.plugin.as_str()), ("/ns/box", "demo::Talker"));
    assert_eq!((talker.name.as_str(), talker.namespace.as_str()), ("t", "/ns/in"));
    assert_eq!(talker.remappings, ["a:=b"]);
    assert!(matches!(&talker.parameters[0], ParameterSource::Assign(it, _) if it == "rate:=2"));
    // A container is sent the text that YAML reads, where a node would read a number.
    assert!(
        matches!(&talker.parameters[1], ParameterSource::Assign(it, _) if it == "word:=\"1e3\"")
    );
    assert_eq!(talker.extra[0].0, "use_intra_process_comms:=true");
    // A target begins at the root, whatever is pushed.
    assert_eq!((b.container.as_str(), c.container.as_str()), ("/ns/box", "/x/y"));
    let plan = planned(
        r#"<push_ros_namespace namespace="/"/><node_container pkg="demo" exec="container" name="box"/>
        <load_composable_node target="box"><composable_node pkg="demo" plugin="demo::B"/></load_composable_node>"#,
    );
    assert_eq!(plan.processes[0].node.as_deref(), Some("/box"));
    assert_eq!(plan.components[0].container, "/box");
    refused(
        r#"<node_container pkg="demo" exec="container" name="box"/>
        <group><push_ros_namespace namespace="/"/>
        <node_container pkg="demo" exec="container" name="box"/></group>"#,
        &[
            "/robot/t.xml:3:59: \"/box\" is a second container of this name, of which components would go into either; \
             the first is at /robot/t.xml:1",
        ],
    );
    refused(
        r#"<node_container pkg="demo" exec="container"/>"#,
        &[
            "/robot/t.xml:1:10: \"node_container\" needs a name, by which its components find it; allowed: name",
        ],
    );
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    refused(
        r#"<nod pkg="demo"/>"#,
        &[
            "/robot/t.xml:1:10: \"nod\" is not an element here (did you mean \"node\"?); allowed: append_env, arg, executable, \
          group, include, let, load_composable_node, log, node, node_container, push-ros-namespace, push_ros_namespace, \
          reset, reset_env, set_env, set_parameter, set_parameters_from_file, set_remap, set_ros_log_dir, unset_env",
        ],
    );
    refused(
        r#"<group if="false"><let name="a" vale="b"/></group>"#,
        &["/robot/t.xml:1:41: \"vale\" is not an attribute of \"let\" (did you mean \"value\"?); \
           allowed: name, value, if, unless"],
    );
    refused(
        r#"<node pkg="demo" exec="talkr"/>"#,
        &["/robot/t.xml:1:32: \"talkr\" is not an executable in /ros/lib/demo"],
    );
    refused(
        r#"<node pkg="dem" exec="talker"/>"#,
        &[
            "/robot/t.xml:1:20: \"dem\" is not a package of AMENT_PREFIX_PATH, which is /none:/ros; \
           did you mean \"demo\"?",
        ],
    );
    refused(
        r#"<node pkg="../demo" exec="talker"/>"#,
        &[
            "/robot/t.xml:1:20: \"../demo\" is not a package's name; it has letters, digits, '_' and '-'",
        ],
    );
    refused(
        r#"<node exec="nobody"/>"#,
        &["/robot/t.xml:1:21: \"nobody\" is not an executable beside /robot/t.xml or in PATH"],
    );
    refused(
        r#"<node exec="camera" respawn="maybe"/>"#,
        &[
            "/robot/t.xml:1:38: \"maybe\" is not a truth value; allowed: true, false, yes, no, on, off, 1, 0",
        ],
    );
    refused(
        r#"<node exec="camera" respawn_delay="-1"/><node exec="camera" output="scren"/>"#,
        &[
            "/robot/t.xml:1:44: \"-1\" is not a time; it is 0 to 86400 seconds",
            "/robot/t.xml:1:77: \"scren\" is not an output (did you mean \"screen\"?); allowed: screen, log, both",
        ],
    );
    refused(
        r#"<node exec="camera"><param name="a" value="x" type="int"/></node>"#,
        &["/robot/t.xml:1:52: \"x\" is no int, an integer of 64 bits"],
    );
    refused(
        r#"<node exec="camera"><param name="a" value="x" type="integer"/></node>"#,
        &[
            "/robot/t.xml:1:61: \"integer\" is not a type; allowed: int, float, bool, str, list_of_int, \
           list_of_float, list_of_bool, list_of_str, yaml",
        ],
    );
    refused(
        r#"<node exec="camera"><param from="/none.yaml"/></node>"#,
        &["/robot/t.xml:1:42: \"/none.yaml\" is not a file"],
    );
    refused(
        r#"<node exec="camera" name="a b"/>"#,
        &[
            "/robot/t.xml:1:35: \"a b\" is refused: node name \"a b\": character 2, ' ': allowed: letters, digits and '_'",
        ],
    );
    refused(
        r#"<let name="a" value="1 $(var b)"/>"#,
        &["/robot/t.xml:1:32: \"b\" is not an argument or variable that is known here"],
    );
    refused(
        r#"<let name="a" value="$(command ls)"/>"#,
        &[
            "/robot/t.xml:1:30: \"command\" runs a program, and a plan is made without anything being run; \
             give its output as an argument",
        ],
    );
    refused(
        r#"<let name="a" value="$(var b"/>"#,
        &["/robot/t.xml:1:30: \"$(\" is not closed; its ')' is missing"],
    );
    refused(
        r#"<let name="a" value="$(env B)"/>"#,
        &["/robot/t.xml:1:30: \"B\" is not set in the environment, and no default is given"],
    );
    refused(
        r#"<node exec="camera" args="'a"/>"#,
        &["/robot/t.xml:1:35: \"'\" is a quote that is not closed"],
    );
    refused("text", &["/robot/t.xml:1:9: \"text\" is text, which has no place here"]);
}

#[test]
fn what_grows_has_a_limit() {
    let many = r#"<node exec="camera"/>"#.repeat(1001);
    refused(
        &many,
        &["/robot/t.xml:1:21010: \"node\" is one too many; a launch has at most 1000 processes"],
    );
    let doubled: String = (0..40)
        .map(|it| format!(r#"<let name="a{}" value="$(var a{it})$(var a{it})"/>"#, it + 1))
        .collect();
    let text = format!(r#"<let name="a0" value="0123456789"/>{doubled}"#);
    let errors = planned_on(&machine(), &format!("<launch>{text}</launch>"), &[]).unwrap_err();
    assert!(errors.to_string().contains("bytes are too many for a value"), "{errors}");
    let deep = format!(r#"<let name="a" value="{}x{}"/>"#, "$(not ".repeat(30), ")".repeat(30));
    let errors = planned_on(&machine(), &format!("<launch>{deep}</launch>"), &[]).unwrap_err();
    assert!(errors.to_string().contains("nested too deep; the most is 16 levels"), "{errors}");
    let large = format!(
        r#"<let name="a" value="{}"/>{}"#,
        "x".repeat(60_000),
        r#"<node exec="camera" args="$(var a)"/>"#.repeat(300)
    );
    let errors = planned_on(&machine(), &format!("<launch>{large}</launch>"), &[]).unwrap_err();
    assert!(errors.to_string().contains("more than 16777216 bytes"), "{errors}");
    // What is inherited counts for each that inherits it.
    let inherited = |set: &str, heir: &str| {
        let value = "x".repeat(60_000);
        let many: String = (0..200).map(|it| set.replace("NAME", &format!("n{it}"))).collect();
        let text = format!(r#"<let name="a" value="{value}"/>{many}{}"#, heir.repeat(100));
        let errors = planned_on(&machine(), &format!("<launch>{text}</launch>"), &[]).unwrap_err();
        assert!(errors.to_string().contains("more than 16777216 bytes"), "{set}: {errors}");
    };
    let component = r#"<load_composable_node target="/x"><composable_node pkg="demo" plugin="P"/></load_composable_node>"#;
    inherited(r#"<set_parameter name="NAME" value="$(var a)"/>"#, component);
    inherited(r#"<set_env name="NAME" value="$(var a)"/>"#, r#"<node exec="camera"/>"#);
    inherited(r#"<set_env name="NAME" value="$(var a)"/>"#, r#"<executable cmd="./camera"/>"#);
}

proptest! {
    #[test]
    fn values_never_panic(value in "[ $()a-z'\"\\\\{}-]{0,40}") {
        let escaped = value.replace('"', "&quot;");
        let body = format!(
            r#"<let name="v" value="{escaped}"/><node exec="camera" args="{escaped}" namespace="{escaped}">
            <param name="p" value="{escaped}"/></node>"#
        );
        let _ = planned_on(&machine(), &format!("<launch>{body}</launch>"), &[]);
    }

    #[test]
    fn an_argument_reaches_its_process_as_it_is(value in "\\PC{0,30}") {
        let text = r#"<launch><arg name="a"/><node exec="camera" args="--a $(var a)"/></launch>"#;
        let plan = planned_on(&machine(), text, &[("a", &value)]).unwrap();
        prop_assert_eq!(&plan.processes[0].argv, &["/robot/camera", "--a", value.as_str()]);
    }

    #[test]
    fn a_text_reaches_its_parameter_as_it_is(value in "\\PC{0,30}") {
        let text = r#"<launch><arg name="a"/><node exec="camera">
            <param name="p" value="$(var a)" type="str"/></node></launch>"#;
        let plan = planned_on(&machine(), text, &[("a", &value)]).unwrap();
        let words = plan.processes[0].argv[3].strip_prefix("p:=").unwrap();
        let node = tsuji_msg::yaml::parse(words).unwrap();
        let tsuji_msg::yaml::NodeKind::Scalar { text, plain } = node.kind else { panic!("{words}") };
        prop_assert_eq!((text, plain), (value, false));
    }
}

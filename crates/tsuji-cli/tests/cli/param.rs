//! `tsuji param`.

use tsuji::parameter::{ParameterDescriptor, ParameterRange, Parameters};
use tsuji::{Context, Message, Node, RawRequest, RawType};
use tsuji_interfaces::rcl_interfaces::msg;
use tsuji_interfaces::rcl_interfaces::srv::{
    DescribeParametersResponse, GetParameterTypesResponse, GetParametersResponse,
    ListParametersResponse, SetParametersResponse,
};

use crate::support::{World, spun};

/// A node of this process with parameters, and one without, while `body` runs.
fn served(world: &World, body: impl FnOnce(&Parameters)) {
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let context = context.unwrap();
    let node = context.node_in("camera", "/robot").unwrap();
    let _silent = context.node("silent").unwrap();
    let parameters = node.parameters().unwrap();
    let range = Some(ParameterRange::FloatingPoint { from: 0.0, to: 1.0, step: 0.25 });
    let described = ParameterDescriptor {
        description: "seconds".into(),
        additional_constraints: "less than a frame".into(),
        range,
        ..Default::default()
    };
    parameters.declare_with("exposure.time", 0.5, described).unwrap();
    parameters.declare("exposure.auto", true).unwrap();
    parameters.declare("modes", vec!["day".to_owned(), "night".to_owned()]).unwrap();
    parameters.declare("sizes", vec![640i64, 480]).unwrap();
    parameters.declare("key", vec![1u8, 97]).unwrap();
    let fixed = ParameterDescriptor { read_only: true, ..Default::default() };
    parameters.declare_with("name", "y".to_owned(), fixed).unwrap();
    spun(&node, || body(&parameters));
}

/// What serialises to these bytes, but for a question mark, which is a byte that is no UTF-8.
fn bent(reply: &impl Message) -> Vec<u8> {
    let bytes = reply.to_vec().unwrap();
    bytes.into_iter().map(|it| if it == b'?' { 0xe9 } else { it }).collect()
}

#[test]
fn a_text_that_is_not_utf_8_hides_nothing_else() {
    let world = World::new();
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let node = context.unwrap().node("odd").unwrap();
    let text = |it: &str| msg::ParameterValue {
        r#type: 4,
        string_value: it.to_owned(),
        ..Default::default()
    };
    let names = vec!["plain".to_owned(), "drink".to_owned()];
    let result = msg::ListParametersResult { names, prefixes: Vec::new() };
    let values = vec![text("tea"), text("caf?")];
    let refused = msg::SetParametersResult { successful: false, reason: "no caf?".to_owned() };
    let described = msg::ParameterDescriptor {
        name: "drink".to_owned(),
        r#type: 4,
        description: "such as caf?".to_owned(),
        ..Default::default()
    };
    let types = vec![4, 4];
    let replies = [
        ("ListParameters", "list_parameters", bent(&ListParametersResponse { result })),
        ("GetParameters", "get_parameters", bent(&GetParametersResponse { values })),
        ("GetParameterTypes", "get_parameter_types", bent(&GetParameterTypesResponse { types })),
        (
            "DescribeParameters",
            "describe_parameters",
            bent(&DescribeParametersResponse { descriptors: vec![described] }),
        ),
        (
            "SetParameters",
            "set_parameters",
            bent(&SetParametersResponse { results: vec![refused] }),
        ),
    ];
    let servers = replies.map(|(ty, name, reply)| {
        let service = format!("odd/{name}");
        let ty = format!("rcl_interfaces/srv/{ty}");
        let answer = move |request: RawRequest| request.respond_bytes(&reply).unwrap();
        node.create_raw_service(service, RawType::new(ty), answer).unwrap()
    });
    spun(&node, || {
        let run = |arguments: &[&str]| world.run(&[&["param"], arguments].concat());
        let dumped = run(&["dump", "/odd"]).good();
        assert!(dumped.contains("plain: tea\n") && dumped.contains("caf\u{fffd}"), "{dumped}");
        let described = run(&["describe", "/odd", "drink"]).good();
        assert!(described.contains("Description: such as caf\u{fffd}\n"), "{described}");
        let refused = run(&["set", "/odd", "drink", "tea"]);
        assert!(refused.err.contains("no caf\u{fffd}"), "{refused:?}");
    });
    drop(servers);
}

#[test]
fn parameters_are_listed_and_read_as_ros2_does() {
    let world = World::new();
    assert_eq!(world.run(&["param", "list"]).good(), "");
    served(&world, |_| {
        let check = |arguments: &[&str], expect: &str| {
            assert_eq!(world.run(&[&["param"], arguments].concat()).good(), expect);
        };
        let all = "  exposure.auto\n  exposure.time\n  key\n  modes\n  name\n  sizes\n";
        check(&["list", "/robot/camera"], all);
        check(&["list"], &format!("/robot/camera:\n{all}"));
        check(
            &["list", "robot/camera", "--param-type", "--param-prefixes", "exposure"],
            "  exposure.auto (type: boolean)\n  exposure.time (type: double)\n",
        );
        let get = |name: &str, expect: &str| check(&["get", "/robot/camera", name], expect);
        get("exposure.time", "Double value is: 0.5\n");
        get("exposure.auto", "Boolean value is: True\n");
        get("modes", "String values are: ['day', 'night']\n");
        get("sizes", "Integer values are: array('q', [640, 480])\n");
        get("key", "Byte values are: [b'\\x01', b'a']\n");
        get("name", "String value is: y\n");
        check(&["get", "/robot/camera", "sizes", "--hide-type"], "array('q', [640, 480])\n");
        check(
            &["describe", "/robot/camera", "exposure.time", "name"],
            "Parameter name: exposure.time\n  Type: double\n  Description: seconds\n  Constraints:\n    \
             Min value: 0.0\n    Max value: 1.0\n    Step: 0.25\n    \
             Additional constraints: less than a frame\n\
             Parameter name: name\n  Type: string\n  Constraints:\n    Read only: true\n",
        );
        let json = |arguments: &[&str]| world.run(&[&["param"], arguments].concat()).json();
        let listed = json(&["list", "--json"]);
        assert_eq!(listed[0]["node"], "/robot/camera");
        assert_eq!(listed[0]["parameters"][1]["type"], "double");
        let got = json(&["get", "/robot/camera", "sizes", "--json"]);
        assert_eq!((&got["type"], &got["value"][1]), (&"integer array".into(), &480.into()));
        let described = json(&["describe", "/robot/camera", "exposure.time", "--json"]);
        assert_eq!(described[0]["range"]["step"], 0.25);
    });
}

#[test]
fn parameters_are_set_dumped_and_loaded() {
    let world = World::new();
    served(&world, |parameters| {
        let set =
            |name: &str, value: &str| world.run(&["param", "set", "/robot/camera", name, value]);
        assert_eq!(set("exposure.time", "0.75").good(), "Set parameter successful\n");
        assert_eq!(parameters.get::<f64>("exposure.time").unwrap(), 0.75);
        assert_eq!(set("modes", "[dusk]").good(), "Set parameter successful\n");
        assert_eq!(
            set("exposure.time", "1").bad(1),
            "error: Setting parameter failed: Wrong parameter type, parameter {exposure.time} is of type \
             {double}, setting it to {integer} is not allowed.\n"
        );
        assert!(
            set("exposure.time", "0.8").bad(1).contains("allowed: 0.0 to 1.0 in steps of 0.25")
        );
        assert!(set("name", "z").bad(1).contains("because it is read-only"));
        assert!(set("nothing", "1").bad(1).contains("because it was not declared"));
        assert!(set("sizes", "[1, x]").bad(2).contains("found `x`, of type string; allowed:"));
        let ended = world.run(&["param", "set", "/robot/camera", "name", "z", "--json"]);
        assert_eq!((ended.code, &ended.json()["successful"]), (Some(1), &false.into()));
        let dumped = world.run(&["param", "dump", "/robot/camera"]).good();
        let expect = "/robot/camera:\n  ros__parameters:\n    exposure:\n      auto: true\n      time: 0.75\n    \
                      # key: a byte array, which YAML of ROS has no form for\n    modes: [dusk]\n    \
                      name: 'y'\n    sizes: [640, 480]\n";
        assert_eq!(dumped, expect);
        let text = dumped.replace("0.75", "0.25").replace("dusk", "dawn");
        let file = world.write("camera.yaml", &text);
        let file = file.to_str().unwrap();
        let ended = world.run(&["param", "load", "/robot/camera", file]);
        assert_eq!(ended.code, Some(1));
        assert!(ended.out.contains("Set parameter exposure.time successful\n"), "{ended:?}");
        let error =
            "Set parameter name failed: parameter 'name' cannot be set because it is read-only\n";
        assert_eq!(ended.err, error);
        assert_eq!(parameters.get::<f64>("exposure.time").unwrap(), 0.25);
        let file = world.write("all.yaml", "/**:\n  ros__parameters:\n    sizes: [1]\n");
        let load = |more: &[&str]| {
            world.run(&[&["param", "load", "/robot/camera", file.to_str().unwrap()], more].concat())
        };
        assert!(
            load(&["--no-use-wildcard"]).bad(2).contains("has no parameters for /robot/camera")
        );
        assert_eq!(load(&[]).good(), "Set parameter sizes successful\n");
        assert_eq!(load(&["--json"]).json()[0]["successful"], true);
        // Values are those of YAML 1.1, and an empty array has the type of its parameter.
        set("sizes", "[010, 1_000]").good();
        assert_eq!(parameters.get::<Vec<i64>>("sizes").unwrap(), [8, 1000]);
        set("sizes", "[]").good();
        assert_eq!(parameters.get::<Vec<i64>>("sizes").unwrap(), [0i64; 0]);
        world.write("all.yaml", "/**:\n  ros__parameters:\n    modes: []\n    sizes: [010]\n");
        load(&[]).good();
        assert_eq!(parameters.get::<Vec<String>>("modes").unwrap(), [""; 0]);
        assert_eq!(parameters.get::<Vec<i64>>("sizes").unwrap(), [8]);
        let dumped = world.run(&["param", "dump", "/robot/camera"]).good();
        assert!(dumped.contains("\n    modes: []\n"), "{dumped}");
        let bad = world.write("bad.yaml", "/**:\n  ros__parameters:\n    sizes: [1, 2.0]\n");
        let error = world.run(&["param", "load", "/robot/camera", bad.to_str().unwrap()]).bad(2);
        assert!(error.contains("bad.yaml:3:16: sizes: found `2.0`, of type double"), "{error}");
    });
}

#[test]
fn texts_that_yaml_takes_for_something_else_are_texts() {
    let world = World::new();
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let node = Node::builder("camera").allow_undeclared_parameters();
    let node = node.build(&context.unwrap()).unwrap();
    let parameters = node.parameters().unwrap();
    parameters.declare("text", "old".to_owned()).unwrap();
    spun(&node, || {
        for text in ["", " ", "~", "null", "y", "N", "yes it is"] {
            assert_eq!(
                world.run(&["param", "set", "/camera", "text", text]).good(),
                "Set parameter successful\n",
                "{text:?}"
            );
            assert_eq!(parameters.get::<String>("text").unwrap(), text);
        }
        assert_eq!(
            world.run(&["param", "set", "/camera", "text", ""]).good(),
            "Set parameter successful\n"
        );
        assert_eq!(world.run(&["param", "get", "/camera", "text"]).good(), "String value is: \n");
        let json = world.run(&["param", "get", "/camera", "text", "--json"]).json();
        assert_eq!((&json["type"], &json["value"]), (&"string".into(), &"".into()));
    });
}

#[test]
fn parameters_of_all_nodes_and_by_expressions() {
    let world = World::new();
    let error = world.run(&["param", "get", "exposure.time"]).bad(1);
    assert_eq!(
        error,
        "error: no node has a parameter 'exposure.time'; allowed: [NODE] PARAMETER\n"
    );
    served(&world, |_| {
        let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
        let node = context.unwrap().node("arm").unwrap();
        let parameters = node.parameters().unwrap();
        parameters.declare("name", "left".to_owned()).unwrap();
        spun(&node, || {
            let get = |more: &[&str]| world.run(&[&["param", "get", "name"], more].concat());
            let both = "/arm:\n  String value is: left\n/robot/camera:\n  String value is: y\n";
            world.run_until(&["param", "get", "name"], |it| it.out == both && it.err.is_empty());
            assert_eq!(get(&["--hide-type"]).good(), "/arm:\n  left\n/robot/camera:\n  y\n");
            let json = get(&["--json"]).json();
            assert_eq!(
                (&json[1]["node"], &json[1]["value"]),
                (&"/robot/camera".into(), &"y".into())
            );
            let one = world.run(&["param", "get", "exposure.time"]).good();
            assert_eq!(one, "/robot/camera:\n  Double value is: 0.5\n");
            let list = |more: &[&str]| world.run(&[&["param", "list"], more].concat());
            assert_eq!(
                list(&["--filter", "expo.*"]).good(),
                "/robot/camera:\n  exposure.auto\n  exposure.time\n"
            );
            // Bound to the beginning and not to the end, as Python's `match`.
            assert_eq!(list(&["/robot/camera", "--filter", "s|time"]).good(), "  sizes\n");
            assert!(list(&["--filter", "("]).bad(2).contains("unclosed group"));
        });
    });
}

#[test]
fn parameters_are_deleted_where_the_node_allows_it() {
    let world = World::new();
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let node = Node::builder("camera").allow_undeclared_parameters();
    let node = node.build(&context.unwrap()).unwrap();
    let parameters = node.parameters().unwrap();
    let dynamic = ParameterDescriptor { dynamic_typing: true, ..Default::default() };
    parameters.declare_with("loose", 1i64, dynamic).unwrap();
    parameters.declare("fixed", 1i64).unwrap();
    spun(&node, || {
        assert_eq!(
            world.run(&["param", "delete", "/camera", "loose"]).good(),
            "Deleted parameter successfully\n"
        );
        assert!(!parameters.has("loose"));
        let error = world.run(&["param", "delete", "/camera", "fixed"]).bad(1);
        assert!(error.starts_with("error: Deleting parameter failed: "), "{error}");
        let ended = world.run(&["param", "delete", "/camera", "fixed", "--json"]);
        assert_eq!((ended.code, &ended.json()["successful"]), (Some(1), &false.into()));
    });
}

#[test]
fn what_cannot_be_asked_is_told() {
    let world = World::new();
    let error = world.run(&["param", "get", "/camera", "x"]).bad(1);
    assert_eq!(
        error,
        "error: Node not found: '/camera'; `tsuji node list` lists those there are\n"
    );
    // One that is not spun answers nobody, and the time is told as it was given.
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let idle = context.unwrap().node("idle").unwrap();
    let _parameters = idle.parameters().unwrap();
    let error = world.run(&["param", "get", "/idle", "x", "--timeout", "0.3"]).bad(1);
    assert!(error.contains(": no reply within 0.3 s; the request was sent"), "{error}");
    served(&world, |_| {
        let error = world.run(&["param", "list", "/silent", "--timeout", "0.1"]).bad(1);
        assert!(error.starts_with("error: '/silent' has no parameter services"), "{error}");
        let error = world.run(&["param", "get", "/robot/camera", "nothing"]).bad(1);
        assert_eq!(error, "error: parameters of /robot/camera: it has no parameter nothing\n");
        let error = world.run(&["param", "describe", "/robot/camera", "key", "nothing"]).bad(1);
        assert!(error.contains("it does not have all of key, nothing"), "{error}");
        // A second node of the name: whichever answers first would be believed.
        let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
        let node = context.unwrap().node_in("camera", "/robot").unwrap();
        let _parameters = node.parameters().unwrap();
        let arguments = ["param", "get", "/robot/camera", "key"];
        let ended = world.run_until(&arguments, |ended| ended.code == Some(1));
        assert!(ended.err.contains("2 nodes of this name are there; allowed: one"), "{ended:?}");
    });
}

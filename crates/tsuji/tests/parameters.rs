//! Parameters between a node and those who ask and set: services, events, callbacks, files and arguments.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tsuji::parameter::{
    Parameter, ParameterClient, ParameterDescriptor, ParameterRange, ParameterType, ParameterValue,
    Parameters,
};
use tsuji::{Context, ErrorKind, History, Node, Qos, Subscription};
use tsuji_interfaces::rcl_interfaces::msg;
use tsuji_interfaces::rcl_interfaces::msg::ParameterEvent;
use tsuji_interfaces::rcl_interfaces::srv::{SetParameters, SetParametersRequest};

#[path = "house/world.rs"]
mod world;
use world::{DOMAIN, Folder, HANG, spun};

/// A node with parameters and one that asks for them, each as in a process of its own.
struct Pair {
    serving: Node,
    parameters: Parameters,
    asking: Node,
    client: ParameterClient,
    /// Goes last, when nobody makes anything in it any more.
    folder: Folder,
}

fn pair() -> Pair {
    let folder = Folder::new();
    let serving = folder.process().node_in("serving", "/robot").unwrap();
    let parameters = serving.parameters().unwrap();
    let asking = folder.process().node("asking").unwrap();
    let client = ParameterClient::new(&asking, "/robot/serving");
    Pair { folder, serving, parameters, asking, client }
}

fn reason(results: Vec<Result<(), String>>) -> String {
    let [result] = <[_; 1]>::try_from(results).unwrap();
    result.unwrap_err()
}

#[test]
fn others_get_set_describe_and_list() {
    let pair = pair();
    let range = Some(ParameterRange::FloatingPoint { from: 0.0, to: 2.0, step: 0.5 });
    let described =
        ParameterDescriptor { description: "how fast".into(), range, ..Default::default() };
    assert_eq!(pair.parameters.declare_with("speed.highest", 1.0, described.clone()).unwrap(), 1.0);
    pair.parameters.declare("speed.unit", "m/s".to_owned()).unwrap();
    pair.parameters.declare("joints", vec![1i64, 2]).unwrap();
    spun(&pair.serving, || {
        let client = &pair.client;
        let values = client.get(&["joints", "speed.highest"], HANG).unwrap();
        assert_eq!(values, [vec![1i64, 2].into(), 1.0.into()]);
        let types = client.types(&["joints", "speed.unit"], HANG).unwrap();
        assert_eq!(types, [ParameterType::IntegerArray, ParameterType::String]);
        let found = client.describe(&["speed.highest"], HANG).unwrap().remove(0);
        assert_eq!((found.name.as_str(), found.ty), ("speed.highest", ParameterType::Double));
        assert_eq!(found.descriptor, described);
        let listed = client.list(&["speed"], 0, HANG).unwrap();
        assert_eq!(listed.names, ["speed.highest", "speed.unit"]);
        assert_eq!(listed.prefixes, ["speed"]);
        assert_eq!(client.list(&[], 1, HANG).unwrap().names, ["joints"]);
        let set = vec![Parameter::new("speed.highest", 1.5), Parameter::new("joints", 3)];
        let results = client.set(set.clone(), HANG).unwrap();
        assert_eq!(results[0], Ok(()));
        assert!(
            results[1].as_ref().unwrap_err().starts_with("Wrong parameter type"),
            "{results:?}"
        );
        assert_eq!(pair.parameters.get::<f64>("speed.highest").unwrap(), 1.5);
        let set = [Parameter::new("speed.highest", 2.0), Parameter::new("joints", 3)];
        assert!(client.set_atomically(set.to_vec(), HANG).unwrap().is_err());
        assert_eq!(pair.parameters.get::<f64>("speed.highest").unwrap(), 1.5);
        assert_eq!(client.set_atomically(set[..1].to_vec(), HANG).unwrap(), Ok(()));
        assert_eq!(pair.parameters.get::<f64>("speed.highest").unwrap(), 2.0);
    });
}

#[test]
fn what_is_not_allowed_is_refused_with_the_reason() {
    let pair = pair();
    let range = Some(ParameterRange::Integer { from: 0, to: 10, step: 5 });
    let ranged = ParameterDescriptor { range, ..Default::default() };
    pair.parameters.declare_with("ranged", 5i64, ranged).unwrap();
    let fixed = ParameterDescriptor { read_only: true, ..Default::default() };
    pair.parameters.declare_with("fixed", true, fixed).unwrap();
    spun(&pair.serving, || {
        let refused = |name: &str, value: ParameterValue| {
            reason(pair.client.set(vec![Parameter::new(name, value)], HANG).unwrap())
        };
        assert_eq!(
            refused("ranged", 6.into()),
            "Parameter {ranged} doesn't comply with integer range; allowed: 0 to 10 in steps of 5"
        );
        assert_eq!(
            refused("ranged", "x".into()),
            "Wrong parameter type, parameter {ranged} is of type {integer}, setting it to {string} is not allowed."
        );
        assert_eq!(
            refused("fixed", false.into()),
            "parameter 'fixed' cannot be set because it is read-only"
        );
        assert_eq!(
            refused("nothing", 1.into()),
            "parameter 'nothing' cannot be set because it was not declared"
        );
        let error = pair.client.get(&["nothing"], HANG).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(error.to_string(), "parameters of /robot/serving: it has no parameter nothing");
        assert!(pair.client.describe(&["fixed", "nothing"], HANG).is_err());
        // A type that there is not.
        let client = pair.asking.create_client::<SetParameters>("/robot/serving/set_parameters");
        let value = msg::ParameterValue { r#type: 77, ..Default::default() };
        let parameters = vec![msg::Parameter { name: "ranged".into(), value }];
        let response = client.unwrap().call(SetParametersRequest { parameters }, HANG).unwrap();
        assert!(!response.results[0].successful);
        assert_eq!(response.results[0].reason, "77 is no type of a parameter; allowed: 0 to 9");
    });
    // The program itself hears the same.
    let error = pair.parameters.set("ranged", 11).unwrap_err();
    assert!(error.to_string().contains("set parameters of /robot/serving: Parameter {ranged}"));
    assert!(
        pair.parameters.get::<bool>("ranged").unwrap_err().to_string().contains("found integer")
    );
    assert!(pair.parameters.undeclare("ranged").is_err());
    assert!(pair.parameters.declare("ranged", 1i64).is_err());
}

/// Takes the next event.
fn event(events: &Subscription<ParameterEvent>) -> ParameterEvent {
    loop {
        if let Some(event) = events.take().unwrap() {
            return event.view().to_message();
        }
        thread::yield_now();
    }
}

fn names(parameters: &[msg::Parameter]) -> Vec<&str> {
    parameters.iter().map(|it| it.name.as_str()).collect()
}

#[test]
fn every_change_is_told() {
    let pair = pair();
    let qos = Qos { history: History::KeepLast(1000), ..Qos::DEFAULT };
    let events =
        pair.asking.create_polled_subscription::<ParameterEvent>("/parameter_events", qos).unwrap();
    events.wait_for_publishers(1, HANG).unwrap();
    let dynamic = ParameterDescriptor { dynamic_typing: true, ..Default::default() };
    pair.parameters.declare_with("a", 1i64, dynamic).unwrap();
    let told = event(&events);
    assert_eq!(told.node, "/robot/serving");
    assert!(told.stamp.sec > 1_500_000_000);
    assert_eq!(names(&told.new_parameters), ["a"]);
    assert_eq!(told.new_parameters[0].value.integer_value, 1);
    pair.parameters.declare("b", 1i64).unwrap();
    assert_eq!(names(&event(&events).new_parameters), ["b"]);
    // A call is told in one event, but for a second value of a name.
    let set = |name: &str, value: i64| Parameter::new(name, value);
    let results =
        pair.parameters.set_each(vec![set("a", 2), set("c", 2), set("b", 2), set("a", 3)]);
    assert_eq!(results.iter().filter(|it| it.is_ok()).count(), 3);
    assert_eq!(names(&event(&events).changed_parameters), ["a", "b"]);
    assert_eq!(event(&events).changed_parameters[0].value.integer_value, 3);
    // What is refused is not told.
    assert!(pair.parameters.set("b", "x").is_err());
    pair.parameters.undeclare("a").unwrap();
    let told = event(&events);
    assert_eq!(names(&told.deleted_parameters), ["a"]);
    assert!(told.new_parameters.is_empty() && told.changed_parameters.is_empty());
}

#[test]
fn callbacks_refuse_and_hear() {
    let pair = pair();
    pair.parameters.declare("a", 1i64).unwrap();
    pair.parameters.declare("b", 1i64).unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let inner = pair.parameters.clone();
    let refusing = pair.parameters.on_set(move |parameters| {
        // It sees what was before, and changes nothing itself.
        assert_eq!(inner.get::<i64>("a").unwrap(), 1);
        let error = inner.set("b", 2).unwrap_err().to_string();
        assert!(error.contains("a callback of parameters can not"), "{error}");
        let is_odd = parameters.iter().any(|it| it.value == 13.into());
        if is_odd { Err("13 is not allowed".to_owned()) } else { Ok(()) }
    });
    let hearing = Arc::clone(&heard);
    let told = pair.parameters.on_post_set(move |parameters| {
        hearing.lock().unwrap().extend(parameters.iter().map(|it| it.name.clone()));
    });
    spun(&pair.serving, || {
        let set = |name: &str, value: i64| {
            pair.client.set(vec![Parameter::new(name, value)], HANG).unwrap().remove(0)
        };
        assert_eq!(set("b", 13), Err("13 is not allowed".to_owned()));
        assert_eq!(set("b", 5), Ok(()));
        // Of all or none, none.
        let both = vec![Parameter::new("b", 6), Parameter::new("a", 13)];
        assert!(pair.client.set_atomically(both, HANG).unwrap().is_err());
        assert_eq!(pair.parameters.get::<i64>("b").unwrap(), 5);
        assert!(pair.parameters.declare("c", 13i64).is_err());
        assert!(!pair.parameters.has("c"));
        drop(refusing);
        assert_eq!(set("a", 13), Ok(()));
        drop(told);
        assert_eq!(set("a", 14), Ok(()));
    });
    assert_eq!(*heard.lock().unwrap(), ["b", "a"]);
}

#[test]
fn a_callback_that_panics_refuses_and_poisons_nothing() {
    let pair = pair();
    pair.parameters.declare("a", 1i64).unwrap();
    let before = pair.parameters.on_set(|parameters| {
        assert_ne!(parameters[0].value, 2.into(), "on purpose");
        Ok(())
    });
    let after = pair.parameters.on_post_set(|parameters| {
        assert_ne!(parameters[0].value, 3.into(), "on purpose");
    });
    spun(&pair.serving, || {
        let set =
            |value: i64| pair.client.set(vec![Parameter::new("a", value)], HANG).unwrap().remove(0);
        assert_eq!(set(2), Err("the on-set callback panicked".to_owned()));
        assert_eq!(pair.parameters.get::<i64>("a").unwrap(), 1);
        // What is set stays set.
        assert_eq!(set(3), Ok(()));
        assert_eq!(set(4), Ok(()));
        assert_eq!(pair.parameters.get::<i64>("a").unwrap(), 4);
    });
    drop((before, after));
}

#[test]
fn two_nodes_of_one_name_are_an_error() {
    let pair = pair();
    let other = pair.folder.process().node_in("serving", "/robot").unwrap();
    let parameters = other.parameters().unwrap();
    spun(&pair.serving, || {
        spun(&other, || {
            let error = loop {
                match pair.client.list(&[], 0, HANG) {
                    Err(error) => break error,
                    // The other has not been found yet.
                    Ok(_) => thread::yield_now(),
                }
            };
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            let expect =
                "parameters of /robot/serving: 2 nodes of this name are there; allowed: one";
            assert_eq!(error.to_string(), expect);
        });
    });
    drop(parameters);
}

#[test]
fn a_node_without_parameters_is_told_apart() {
    let folder = Folder::new();
    let asking = folder.process().node("asking").unwrap();
    let client = ParameterClient::new(&asking, "/nobody");
    let error = client.list(&[], 0, Duration::from_millis(10)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoServer, "{error}");
    assert!(error.to_string().contains("/nobody/list_parameters"), "{error}");
    assert!(error.to_string().contains(" within 0.01 s"), "{error}");
}

/// A context with these arguments.
fn with_arguments(folder: &Folder, arguments: &[&str]) -> Context {
    let arguments = ["program", "--ros-args"].iter().chain(arguments).map(|&it| it.to_owned());
    let builder = Context::builder().runtime_dir(&folder.0).domain(DOMAIN).isolated();
    builder.args(arguments).build().unwrap()
}

#[test]
fn files_and_arguments_override_defaults_and_the_later_counts() {
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let first = write("first.yaml", "/**:\n  ros__parameters: {a: 1, b: 1, c: 1, d: {e: 1.0}}\n");
    let second = write("second.yaml", "/robot/arm:\n  ros__parameters: {b: 2}\n");
    let arguments = ["-p", "c:=9", "--params-file", &first, "--params-file", &second];
    let arguments = [&arguments[..], &["-p", "/robot/arm:f:=x", "-p", "other:b:=3"]].concat();
    let arguments = [&arguments[..], &["-r", "__node:=arm", "-p", "g:=5"]].concat();
    let context = with_arguments(&folder, &arguments);
    let builder = || {
        let builder = Node::builder("name").namespace("/robot");
        builder.parameter_overrides([Parameter::new("g", 6)])
    };
    let parameters = builder().build(&context).unwrap().parameters().unwrap();
    for (name, expect) in [("a", 1), ("b", 2), ("c", 1), ("g", 6), ("h", 0)] {
        assert_eq!(parameters.declare(name, 0i64).unwrap(), expect, "{name}");
    }
    assert_eq!(parameters.declare("f", String::new()).unwrap(), "x");
    let error = parameters.declare("d.e", 0i64).unwrap_err().to_string();
    assert!(
        error.contains("parameter {d.e} is of type {integer}, setting it to {double}"),
        "{error}"
    );
    drop(parameters);
    let node = builder().declare_parameter_overrides().build(&context).unwrap();
    let declared = node.parameters().unwrap();
    assert_eq!(declared.list(&[], 0).names, ["a", "b", "c", "d.e", "f", "g"]);
}

#[test]
fn a_bad_file_or_argument_is_told_with_its_line() {
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    let path = folder.0.join("bad.yaml");
    std::fs::write(&path, "/**:\n  ros__parameters:\n    a: [1, x]\n").unwrap();
    let path = path.to_str().unwrap();
    let check = |arguments: &[&str], expect: &str| {
        let node = with_arguments(&folder, arguments).node("n").unwrap();
        let error = node.parameters().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().starts_with(expect), "{error}");
    };
    check(
        &["--params-file", path],
        &format!("{path}:3:12: a: found `x`, of type string; allowed:"),
    );
    check(&["--params-file", "/nowhere.yaml"], "/nowhere.yaml: No such file");
    check(&["-p", "a:=[1, x]"], "-p a:=[1, x]: 1:5: a: found `x`, of type string; allowed:");
}

#[test]
fn undeclared_parameters_are_set_where_that_is_allowed() {
    let folder = Folder::new();
    let node = Node::builder("serving").allow_undeclared_parameters();
    let node = node.build(&folder.process()).unwrap();
    let parameters = node.parameters().unwrap();
    let asking = folder.process().node("asking").unwrap();
    let client = ParameterClient::new(&asking, "/serving");
    spun(&node, || {
        assert_eq!(client.get(&["a"], HANG).unwrap(), [ParameterValue::NotSet]);
        assert_eq!(client.set(vec![Parameter::new("a", 1)], HANG).unwrap(), [Ok(())]);
        assert_eq!(client.get(&["a"], HANG).unwrap(), [1.into()]);
        let unset = Parameter::new("a", ParameterValue::NotSet);
        assert_eq!(client.set(vec![unset], HANG).unwrap(), [Ok(())]);
        assert!(!parameters.has("a"));
    });
}

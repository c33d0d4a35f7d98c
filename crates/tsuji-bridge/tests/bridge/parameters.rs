//! Parameters of nodes, as clients ask rosapi for them.

use serde_json::{Value, json};
use tsuji_bridge::Settings;
use tsuji_bridge::protocol::access::{Access, Globs, ServerGlobs};
use tsuji_interfaces::rcl_interfaces::srv::{ListParameters, ListParametersResponse};

use crate::world::{Client, World, until};

fn names(client: &mut Client) -> Value {
    client.call("/rosapi/get_param_names", json!({}))["values"]["names"].clone()
}

/// Waits until the bridge has heard of them.
fn are_known(client: &mut Client) {
    until("the parameters", || {
        let names = names(client);
        names.as_array().unwrap().contains(&json!("/beside:gain")).then_some(())
    });
}

fn ask(client: &mut Client, service: &str, args: Value) -> Value {
    let answer = client.call(&format!("/rosapi/{service}"), args);
    assert_eq!(answer["result"], true, "{answer}");
    answer["values"].clone()
}

#[test]
fn parameters_are_read_set_found_and_deleted() {
    let mut world = World::new();
    let parameters = world.serve_parameters();
    let mut client = world.client();
    are_known(&mut client);
    assert_eq!(names(&mut client), json!(["/beside:gain", "/beside:name"]));
    let value = |text: &str| json!({ "value": text, "successful": true, "reason": "" });
    let gain = json!({ "name": "/beside:gain" });
    assert_eq!(ask(&mut client, "get_param", gain.clone()), value("0.5"));
    assert_eq!(ask(&mut client, "get_param", json!(["beside:name", ""])), value("\"left\""));

    let done = json!({ "successful": true, "reason": "" });
    let set = |client: &mut Client, name: &str, value: &str| {
        ask(client, "set_param", json!({ "name": name, "value": value }))
    };
    // JavaScript writes 1.0 so.
    assert_eq!(set(&mut client, "/beside:gain", "1"), done);
    assert_eq!(parameters.get::<f64>("gain").unwrap(), 1.0);
    // Python writes so what is not finite, and reads it.
    for (text, expect) in [("Infinity", f64::INFINITY), ("-1e999", f64::NEG_INFINITY)] {
        assert_eq!(set(&mut client, "/beside:gain", text), done);
        assert_eq!(parameters.get::<f64>("gain").unwrap(), expect);
    }
    assert_eq!(ask(&mut client, "get_param", gain.clone()), value("-Infinity"));
    assert_eq!(set(&mut client, "/beside:gain", "NaN"), done);
    assert!(parameters.get::<f64>("gain").unwrap().is_nan());
    assert_eq!(ask(&mut client, "get_param", gain.clone()), value("NaN"));
    assert_eq!(set(&mut client, "/beside:fresh", "[1, 2]"), done);
    assert_eq!(parameters.get::<Vec<i64>>("fresh").unwrap(), [1, 2]);
    let refused = set(&mut client, "/beside:gain", "\"much\"");
    assert_eq!(refused["successful"], false);
    assert_ne!(refused["reason"], "", "the node says why");

    let exists =
        |client: &mut Client, name: &str| ask(client, "has_param", json!({ "name": name }));
    assert_eq!(exists(&mut client, "/beside:fresh"), json!({ "exists": true }));
    let fresh = json!({ "name": "/beside:fresh" });
    assert_eq!(ask(&mut client, "delete_param", fresh.clone()), done);
    assert!(!parameters.has("fresh"));
    assert_eq!(exists(&mut client, "/beside:fresh"), json!({ "exists": false }));
    let again = ask(&mut client, "delete_param", fresh);
    let reason = "/beside has no parameter fresh";
    assert_eq!(again, json!({ "successful": false, "reason": reason }));

    let found = |client: &mut Client, name: &str| {
        ask(client, "search_param", json!({ "name": name }))["global_name"].clone()
    };
    assert_eq!(found(&mut client, "name"), "/beside:name");
    assert_eq!(found(&mut client, "/beside:name"), "/beside:name");
    assert_eq!(found(&mut client, "nothing"), "");
}

#[test]
fn a_node_that_is_not_there_has_none() {
    let world = World::new();
    let mut client = world.client();
    let nobody = json!({ "name": "/nobody:gain", "default_value": "7" });
    let answer = ask(&mut client, "get_param", nobody);
    assert_eq!((&answer["value"], &answer["successful"]), (&json!("7"), &json!(true)));
    assert_eq!(answer["reason"], "service /nobody/get_parameters does not exist");
    let answer = ask(&mut client, "has_param", json!({ "name": "/nobody:gain" }));
    assert_eq!(answer, json!({ "exists": false }));
    assert_eq!(names(&mut client), json!([]));
    let wrong = client.call("/rosapi/get_param", json!({ "name": "gain" }));
    assert_eq!(wrong["result"], false);
    let expected = "get_param: name: found \"gain\"; expected NODE:PARAMETER";
    assert_eq!(wrong["values"], expected);
}

#[test]
fn a_node_that_does_not_answer_keeps_no_name_of_others_back() {
    let mut world = World::new();
    let _parameters = world.serve_parameters();
    // Nobody spins it.
    let mute = world.node.context().node("mute").unwrap();
    let _service = mute
        .create_service::<ListParameters>("/mute/list_parameters", |_| {
            ListParametersResponse::default()
        })
        .unwrap();
    let mut client = world.client();
    until("both", || {
        let services = client.call("/rosapi/services", json!({}))["values"]["services"].clone();
        let services = services.as_array().unwrap().clone();
        let both = ["/mute/list_parameters", "/beside/list_parameters"];
        both.iter().all(|it| services.contains(&json!(it))).then_some(())
    });
    assert_eq!(names(&mut client), json!(["/beside:gain", "/beside:name"]));
}

#[test]
fn only_parameters_of_the_glob_are_read_and_set() {
    let params = Globs::parse("[/beside:g*]").unwrap();
    let access = Access::new(ServerGlobs { params, ..ServerGlobs::default() }, Vec::new());
    let mut world = World::with(Settings { access, ..Settings::default() });
    let parameters = world.serve_parameters();
    let mut client = world.client();
    are_known(&mut client);
    assert_eq!(names(&mut client), json!(["/beside:gain"]));
    for (service, act) in
        [("get_param", "get_param"), ("has_param", "get_param"), ("set_param", "set_param")]
    {
        let args = json!({ "name": "/beside:name", "value": "\"right\"" });
        let answer = client.call(&format!("/rosapi/{service}"), args);
        let expected =
            format!("a client may not {act} \"/beside:name\": params_glob allows [/beside:g*]");
        assert_eq!((&answer["result"], &answer["values"]), (&json!(false), &json!(expected)));
    }
    assert_eq!(parameters.get::<String>("name").unwrap(), "left");
}

#[test]
fn actions_are_told_of_with_their_types() {
    let world = World::new();
    let mut client = world.client();
    client.say(&json!({
        "op": "advertise_action", "action": "/fibonacci", "type": "example_interfaces/action/Fibonacci",
    }));
    until("the action", || {
        let answer = ask(&mut client, "action_type", json!({ "action": "/fibonacci" }));
        (answer["type"] == "example_interfaces/action/Fibonacci").then_some(())
    });
    for (what, field) in [("goal", "order"), ("result", "sequence"), ("feedback", "sequence")] {
        let args = json!({ "type": "example_interfaces/Fibonacci" });
        let answer = ask(&mut client, &format!("action_{what}_details"), args);
        assert_eq!(answer["typedefs"][0]["fieldnames"], json!([field]), "{what}");
    }
}

//! Actions where something is out of order: servers that die or are two, results that nobody asked for.

use std::sync::mpsc;

use serde_json::{Value, json};
use tsuji::action::GoalStatus;
use tsuji_interfaces::example_interfaces::action::{Fibonacci, FibonacciGoal};

use crate::world::{WATCHDOG, World};

fn goal(id: &str) -> Value {
    json!({
        "op": "send_action_goal", "id": id, "action": "/fibonacci", "args": { "order": 3 },
        "action_type": "example_interfaces/action/Fibonacci",
    })
}

#[test]
fn a_goal_whose_server_leaves_has_failed() {
    let world = World::new();
    let (handles, begun) = mpsc::channel();
    let server = world
        .node
        .create_deferred_action_server::<Fibonacci>("/fibonacci", move |handle| {
            handles.send(handle).unwrap();
        })
        .unwrap();
    world.spin();
    let mut client = world.client();
    client.say(&goal("g"));
    let handle = begun.recv_timeout(WATCHDOG).unwrap();
    client.settle();
    drop(server);
    let result = client.hear_of("action_result");
    assert_eq!((&result["id"], &result["result"]), (&json!("g"), &json!(false)), "{result}");
    let why = result["values"].as_str().unwrap();
    assert!(why.contains("/fibonacci") && why.contains("left"), "{why}");
    drop(handle);
}

#[test]
fn of_two_servers_none_is_asked() {
    let world = World::new();
    let serve = || {
        let pursue = |_| unreachable!("no goal comes");
        world.node.create_action_server::<Fibonacci>("/fibonacci", pursue).unwrap()
    };
    let _two = (serve(), serve());
    world.spin();
    let mut client = world.client();
    client.say(&goal("g"));
    let result = client.hear_of("action_result");
    let expected = "send a goal to /fibonacci: 2 servers are there; allowed: one";
    assert_eq!((&result["values"], &result["result"]), (&json!(expected), &json!(false)));
}

#[test]
fn a_goal_that_nobody_wanted_given_up_is_aborted_and_not_canceled() {
    let world = World::new();
    let mut client = world.client();
    client.say(&json!({
        "op": "advertise_action", "action": "/fibonacci",
        "type": "example_interfaces/action/Fibonacci",
    }));
    let asking = world.node.create_action_client::<Fibonacci>("/fibonacci").unwrap();
    let asked = std::thread::spawn(move || {
        let goal = asking.send_goal(FibonacciGoal { order: 3 }, WATCHDOG).unwrap().unwrap();
        goal.result(WATCHDOG).unwrap()
    });
    let id = client.hear_of("send_action_goal")["id"].clone();
    client.say(&json!({
        "op": "action_result", "id": id, "action": "/fibonacci", "status": 5, "result": true,
        "values": { "sequence": [0, 1] },
    }));
    let (status, result) = asked.join().unwrap();
    assert_eq!((status, result.sequence), (GoalStatus::Aborted, vec![0, 1]));
}

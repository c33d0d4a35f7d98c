//! `tsuji action`.

use tsuji::action::{ActionServerOptions, GoalHandle};
use tsuji::{Context, RawType};
use tsuji_interfaces::example_interfaces::action::{Fibonacci, FibonacciFeedback, FibonacciResult};

use crate::support::{WATCHDOG, World, spun};

const FIBONACCI: &str = "example_interfaces/action/Fibonacci";

#[test]
fn actions_are_listed_as_ros2_lists_them() {
    let world = World::new();
    assert_eq!(world.run(&["action", "list"]).good(), "");
    let nobody = "Action: /fibonacci\nAction clients: 0\nAction servers: 0\n";
    let ended = world.run(&["action", "info", "/fibonacci"]);
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(1), nobody, ""));
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let context = context.unwrap();
    // What takes goals is what makes an action of it.
    let of = || RawType::new(format!("{FIBONACCI}_SendGoal"));
    let (serving, asking) = (context.node("serving").unwrap(), context.node("asking").unwrap());
    let _server = serving.create_polled_raw_service("fibonacci/_action/send_goal", of()).unwrap();
    let _client = asking.create_raw_client("fibonacci/_action/send_goal", of()).unwrap();
    let check = |arguments: &[&str], expect: &str| {
        assert_eq!(world.run(&[&["action"], arguments].concat()).good(), expect);
    };
    check(&["list"], "/fibonacci\n");
    check(&["list", "-t"], &format!("/fibonacci [{FIBONACCI}]\n"));
    check(&["list", "-c"], "1\n");
    check(&["type", "fibonacci"], &format!("{FIBONACCI}\n"));
    check(&["find", FIBONACCI], "/fibonacci\n");
    check(&["find", "-c", "test_msgs/action/Fibonacci"], "0\n");
    assert_eq!(world.run(&["action", "type", "/nobody"]).bad(1), "");
    let info = world.run(&["node", "info", "/serving"]).good();
    assert!(
        info.ends_with(&format!("  Service Servers:\n  Service Clients:\n  Action Servers:\n    /fibonacci: {FIBONACCI}\n  Action Clients:\n")),
        "{info}"
    );
    let both =
        "Action: /fibonacci\nAction clients: 1\n    /asking\nAction servers: 1\n    /serving\n";
    check(&["info", "fibonacci"], both);
    let both = "Action: /fibonacci\nAction clients: 1\nAction servers: 1\n";
    check(&["info", "/fibonacci", "-c"], both);
    assert!(
        world
            .run(&["action", "info", "/fibonacci", "-t"])
            .good()
            .contains(&format!("/serving [{FIBONACCI}]"))
    );
    let json = world.run(&["action", "info", "/fibonacci", "--json"]).json();
    assert_eq!(json["servers"][0]["node"], "/serving");
    assert_eq!(json["clients"][0]["type"], FIBONACCI);
    let json = world.run(&["action", "list", "--json"]).json();
    assert_eq!((&json[0]["action"], &json[0]["servers"]), (&"/fibonacci".into(), &1.into()));
}

/// A negative order is pursued until it is to be given up; of 0 nothing comes.
fn pursue(handle: GoalHandle<Fibonacci>) {
    let order = handle.goal().order;
    let mut sequence = vec![0, 1];
    handle.publish_feedback(FibonacciFeedback { sequence: sequence.clone() }).unwrap();
    if order < 0 {
        assert!(handle.sleep(WATCHDOG), "nobody cancels it");
        handle.canceled(FibonacciResult { sequence }).unwrap();
    } else if order > 0 {
        for _ in 1..order {
            sequence.push(sequence[sequence.len() - 1] + sequence[sequence.len() - 2]);
        }
        handle.succeed(FibonacciResult { sequence }).unwrap();
    }
}

#[test]
fn a_goal_is_sent_followed_and_canceled() {
    let world = World::new();
    let arguments = ["action", "send-goal", "/fibonacci", FIBONACCI];
    let ended = world.run(&[&arguments[..], &["{order: x}"]].concat());
    assert!(ended.bad(2).contains("the goal is no example_interfaces/action/Fibonacci_Goal: "));
    let error = world.run(&["action", "send-goal", "/fibonacci", "std_msgs/msg/String"]).bad(2);
    assert!(error.contains("std_msgs/msg/String"), "{error}");
    let ended = world.run(&[&arguments[..], &["--timeout", "0.05"]].concat());
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("call /fibonacci: no server is ready within 0.05 s"), "{ended:?}");
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let node = context.unwrap().node("serving").unwrap();
    let server = node
        .create_action_server(
            ActionServerOptions::<Fibonacci>::new("fibonacci").on_goal(|_, goal| goal.order < 10),
            pursue,
        )
        .unwrap();
    spun(&node, || {
        let send = |more: &[&str]| world.run(&[&arguments[..], more].concat());
        let out = send(&["{order: 3}"]).good();
        let expect = "Waiting for an action server to become available...\nSending goal:\n     order: 3\n\n\
                      Goal accepted with ID: ";
        assert!(out.starts_with(expect), "{out}");
        let expect =
            "Result:\n    sequence:\n- 0\n- 1\n- 1\n- 2\n\nGoal finished with status: SUCCEEDED\n";
        assert!(out.ends_with(expect), "{out}");
        let ended = send(&["{order: 2}", "--json"]);
        assert_eq!(ended.json()["result"]["sequence"], serde_json::json!([0, 1, 1]));
        let ended = send(&["{order: 10}"]);
        assert_eq!((ended.code, ended.err.as_str()), (Some(1), "error: Goal was rejected\n"));
        let ended = send(&["{order: 0}"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.out.ends_with("Goal finished with status: ABORTED\n"), "{ended:?}");
        let mut asking = world.start(&[&arguments[..], &["{order: -1}", "--feedback"]].concat());
        asking.out("Goal accepted with ID: ");
        asking.out("Feedback:");
        let ended = asking.stop();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.out.ends_with("Canceling goal...\nGoal canceled.\n"), "{ended:?}");
        while server.counters().canceled == 0 {
            std::thread::yield_now();
        }
    });
}

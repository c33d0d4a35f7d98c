//! `tsuji service`.

use std::sync::Arc;
use std::time::Duration;

use tsuji::{Context, Node, Qos, RawType, ServiceType};
use tsuji_interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use tsuji_interfaces::std_srvs::srv::{Empty, EmptyResponse, SetBool};

use crate::support::{WATCHDOG, World, spun};

const ADD: &str = "example_interfaces/srv/AddTwoInts";

/// A node of this process that adds two numbers and does nothing, while `body` runs.
fn served(world: &World, body: impl FnOnce(&Node)) {
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let context = context.unwrap();
    let node = context.node("server").unwrap();
    let add = |it: Arc<AddTwoIntsRequest>| AddTwoIntsResponse { sum: it.a + it.b };
    let _add = node.create_service::<AddTwoInts>("add", add).unwrap();
    let _hidden = node.create_service::<Empty>("_hidden", |_| EmptyResponse::default()).unwrap();
    let _client = node.create_client::<SetBool>("switch").unwrap();
    spun(&node, || body(&node));
}

#[test]
fn services_are_listed_as_ros2_lists_them() {
    let world = World::new();
    assert_eq!(world.run(&["service", "list"]).good(), "");
    assert_eq!(world.run(&["service", "type", "/add"]).bad(1), "");
    served(&world, |_| {
        let check = |arguments: &[&str], expect: &str| {
            assert_eq!(world.run(&[&["service"], arguments].concat()).good(), expect);
        };
        check(&["list"], "/add\n/switch\n");
        check(&["list", "--include-hidden-services"], "/_hidden\n/add\n/switch\n");
        check(&["--include-hidden-services", "list"], "/_hidden\n/add\n/switch\n");
        check(&["--include-hidden-services", "find", "std_srvs/srv/Empty"], "/_hidden\n");
        check(&["list", "-t"], &format!("/add [{ADD}]\n/switch [std_srvs/srv/SetBool]\n"));
        check(&["list", "--count-services"], "2\n");
        check(&["type", "/add"], &format!("{ADD}\n"));
        check(&["type", "add"], &format!("{ADD}\n"));
        check(&["find", ADD], "/add\n");
        check(&["find", "std_srvs/srv/Empty"], "");
        check(&["find", "-c", "std_srvs/srv/Empty", "--include-hidden-services"], "1\n");
        let json = world.run(&["service", "list", "--json"]).json();
        assert_eq!(json[0]["service"], "/add");
        assert_eq!(json[0]["types"][0], ADD);
        assert_eq!((&json[0]["servers"], &json[1]["clients"]), (&1.into(), &1.into()));
        // A service is no topic.
        assert_eq!(world.run(&["topic", "list"]).good(), "");
        assert_eq!(
            world.run(&["node", "info", "/server"]).good(),
            format!(
                "/server\n  Subscribers:\n  Publishers:\n  Service Servers:\n    /add: {ADD}\n  Service Clients:\n    \
                 /switch: std_srvs/srv/SetBool\n  Action Servers:\n  Action Clients:\n"
            )
        );
        let all = world.run(&["node", "info", "/server", "--include-hidden"]).good();
        assert!(all.contains("Servers:\n    /_hidden: std_srvs/srv/Empty\n    /add: "), "{all}");
        check(&["info", "/add"], &format!("Type: {ADD}\nClients count: 0\nServices count: 1\n"));
        check(
            &["info", "switch"],
            "Type: std_srvs/srv/SetBool\nClients count: 1\nServices count: 0\n",
        );
        let verbose = world.run(&["service", "info", "-v", "/add"]).good();
        assert!(
            verbose.contains("\nNode name: server\n")
                && verbose.contains("\nEndpoint type: SERVER\n"),
            "{verbose}"
        );
        let json = world.run(&["service", "info", "/add", "--json"]).json();
        assert_eq!(
            (&json["types"][0], &json["servers"][0]["node"]),
            (&ADD.into(), &"server".into())
        );
        let error = world.run(&["service", "info", "/nobody"]).bad(1);
        assert_eq!(error, "error: Unknown service '/nobody'\n");
    });
}

#[test]
fn a_call_prints_what_ros2_prints() {
    let world = World::new();
    served(&world, |_| {
        let expect = "requester: making request: example_interfaces.srv.AddTwoInts_Request(a=1, b=2)\n\n\
                      response:\nexample_interfaces.srv.AddTwoInts_Response(sum=3)\n\n";
        let call = |arguments: &[&str]| {
            let out = world.run(&[&["service", "call", "/add"], arguments].concat()).good();
            // A machine that is busy may be slower than a blink.
            let waited = "waiting for service to become available...\n";
            out.strip_prefix(waited).unwrap_or(&out).to_owned()
        };
        assert_eq!(call(&[ADD, "{a: 1, b: 2}"]), expect);
        assert_eq!(call(&["{a: 1, b: 2}"]), expect);
        assert_eq!(call(&["{a: 1, b: 2}", "--timeout", "60", "--json"]), "{\"sum\":3}\n");
        assert!(call(&[]).contains("AddTwoInts_Request(a=0, b=0)"));
        let empty = world.run(&["service", "call", "/_hidden", "std_srvs/srv/Empty"]).good();
        assert!(
            empty.ends_with(
                "requester: making request: std_srvs.srv.Empty_Request()\n\n\
                 response:\nstd_srvs.srv.Empty_Response()\n\n"
            ),
            "{empty}"
        );
        let mut calls = world.start(&["service", "call", "/add", "{a: 5}", "-r", "100"]);
        for _ in 0..3 {
            calls.out("AddTwoInts_Response(sum=5)");
        }
        assert_eq!(calls.stop().code, Some(0));
    });
}

#[test]
fn a_call_that_cannot_be_made_says_why() {
    let world = World::new();
    let waiting = "waiting for service to become available...\n";
    let ended = world.run(&["service", "call", "/add", ADD, "--timeout", "0.05"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), waiting), "{ended:?}");
    assert!(ended.err.starts_with("error: call /add: no server is ready within"), "{ended:?}");
    let ended = world.run(&["service", "call", "/add", "--timeout", "0.05"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), waiting), "{ended:?}");
    assert_eq!(ended.err, "error: call /add: no server is ready within 0.05 s\n");
    let error = world.run(&["service", "call", "/add", "std_srvs/srv/SetBol"]).bad(2);
    assert!(error.contains("did you mean std_srvs/srv/SetBool or "), "{error}");
    let error = world.run(&["service", "call", "/add", ADD, "{c: 1}"]).bad(2);
    assert!(
        error.contains("expected a field of example_interfaces/srv/AddTwoInts_Request"),
        "{error}"
    );
    let error = world.run(&["service", "call", "/add", "std_msgs/msg/String"]).bad(2);
    assert!(error.contains("std_msgs/msg/String"), "{error}");
    served(&world, |node| {
        let arguments = ["service", "call", "/add", "std_srvs/srv/SetBool", "--timeout", "0.3"];
        let ended = world.run(&arguments);
        let types = format!("/server: type: offered std_srvs/srv/SetBool, requested {ADD}");
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.err.contains(&types), "{ended:?}");
        // One that does not answer.
        let silent = RawType::new(SetBool::TYPE_NAME).hash(SetBool::TYPE_HASH);
        let _silent = node.create_polled_raw_service("silent", silent).unwrap();
        let ended = world.run(&["service", "call", "/silent", "--timeout", "2"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.out.contains("SetBool_Request(data=False)"), "{ended:?}");
        assert!(ended.err.contains("call /silent: no reply within"), "{ended:?}");
    });
}

#[test]
fn routes_tell_requests_from_replies() {
    let world = World::new();
    served(&world, |node| {
        let client = node.create_client::<AddTwoInts>("add").unwrap();
        client.wait_for_service(Duration::from_secs(60)).unwrap();
        let out = world.run(&["routes"]).good();
        let lines: Vec<&str> = out.lines().skip(1).collect();
        assert!(lines[0].starts_with("/add (requests)  "), "{out}");
        assert!(lines[1].starts_with("/add (replies)  "), "{out}");
        let json = world.run(&["routes", "--json"]).json();
        assert_eq!((&json[0]["role"], &json[1]["role"]), (&"request".into(), &"reply".into()));
    });
}

#[test]
fn what_introspection_tells_of_a_service() {
    let world = World::new();
    let context = Context::builder().runtime_dir(world.run_time()).domain(0).isolated().build();
    let node = context.unwrap().node("server").unwrap();
    let service = tsuji_msg::TypeSet::new(tsuji_interfaces::Shipped).load_service(ADD).unwrap();
    let raw = RawType::new(service.event.name().to_string()).hash(service.event.hash());
    let publisher = node.create_raw_publisher("/add/_service_event", raw, Qos::DEFAULT).unwrap();
    let text = "{info: {event_type: 2, sequence_number: 7}, response: [{sum: 3}]}";
    let event =
        tsuji_msg::DynamicMessage::from_yaml(&service.event, text).unwrap().encode().unwrap();
    let echo = |more: &[&str]| world.start(&[&["service", "echo", "/add", ADD], more].concat());
    let mut all = [echo(&[]), echo(&["--json"]), echo(&["--csv"]), echo(&["--flow-style"])];
    publisher.wait_for_subscriptions(4, WATCHDOG).unwrap();
    publisher.publish_bytes(&event).unwrap();
    all[0].out("---");
    all[1].out("\"event_type\":2");
    all[2].out("2,0,0,");
    all[3].out("event_type: RESPONSE_SENT, ");
    let [yaml, ..] = all;
    let out = yaml.stop().good();
    assert!(out.starts_with("info:\n  event_type: RESPONSE_SENT\n  stamp:\n"), "{out}");
    assert!(
        out.ends_with("  sequence_number: 7\nrequest: []\nresponse:\n- sum: 3\n---\n"),
        "{out}"
    );
    let mut alone = world.start(&["service", "echo", "/nobody", ADD]);
    alone.err("WARNING: No publishers on topic '/nobody/_service_event'; is service introspection on the client or server enabled?");
}

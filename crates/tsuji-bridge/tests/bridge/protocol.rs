//! What clients of other languages send, what is answered when something is refused, and what the bridge tells of itself.

use std::time::Duration;

use serde_json::{Value, json};
use tsuji::{Qos, RawType};
use tsuji_bridge::Settings;
use tsuji_bridge::protocol::access::{Access, Globs, ServerGlobs};
use tsuji_interfaces::std_msgs::msg::{Float64MultiArray, String as Text};
use tsuji_interfaces::std_srvs::srv::{Trigger, TriggerResponse};
use tungstenite::Message;

use crate::world::{Client, WATCHDOG, World, until};
use crate::{KEEP_ALL, text};

#[test]
fn json_in_binary_frames_is_understood() {
    let world = World::with(Settings { compression: true, ..Settings::default() });
    let heard = world.node.create_polled_subscription::<Text>("/chatter", KEEP_ALL).unwrap();
    let mut client = world.client();
    let advertise = r#"{"op":"advertise","topic":"/chatter","type":"std_msgs/String"}"#;
    client.socket.send(Message::binary(advertise)).unwrap();
    let said = ["\u{feff}", " \r\n", ""].map(|before| format!("{before}{}", text("hello")));
    for message in &said {
        client.socket.send(Message::binary(message.clone())).unwrap();
    }
    // By TCP too a client may begin so, and a message in pieces may be binary.
    let mut tcp = world.tcp();
    tcp.say(&["\u{feff}".as_bytes(), advertise.as_bytes(), said[0].as_bytes()].concat());
    let (first, second) = said[2].split_at(20);
    for (num, piece) in [first, second].into_iter().enumerate() {
        let fragment =
            json!({ "op": "fragment", "id": "f", "data": piece, "num": num, "total": 2 });
        client.socket.send(Message::binary(fragment.to_string())).unwrap();
    }
    for _ in 0..5 {
        let message = until("a message", || heard.take().unwrap());
        assert_eq!(message.view().data, "hello");
    }
    assert_eq!(world.bridge.statistics().refusals, 0);
    // What is neither is refused as what it is not.
    client.socket.send(Message::binary(b"\x01".to_vec())).unwrap();
    assert_eq!(client.hear_json()["op"], "status");
}

#[test]
fn where_bson_is_spoken_json_is_refused_and_the_connection_goes_on() {
    let world = World::with(Settings { bson_only: true, ..Settings::default() });
    let mut client = world.client();
    client.socket.send(Message::binary(text("hello").to_string())).unwrap();
    let Message::Binary(status) = client.hear() else { panic!() };
    assert!(status.windows(5).any(|it| it == b"error"), "{status:?}");
    client.socket.send(Message::text(text("hello").to_string())).unwrap();
    assert!(matches!(client.hear(), Message::Binary(_)));
    assert_eq!(world.bridge.statistics().refusals, 2);
}

/// Says it; the status and the answer that come of it, which say the same.
#[track_caller]
fn refused(client: &mut Client, said: &Value) -> Value {
    client.say(said);
    let status = client.hear_json();
    assert_eq!((&status["op"], &status["level"]), (&json!("status"), &json!("error")), "{status}");
    let answer = client.hear_json();
    assert_eq!(answer["values"], status["msg"], "{answer}");
    assert_eq!((&answer["result"], &answer["id"]), (&json!(false), &said["id"]), "{answer}");
    answer
}

#[test]
fn every_request_that_is_refused_is_answered() {
    let globs = |it: &str| Globs::parse(it).unwrap();
    let access = Access::new(
        ServerGlobs {
            services: globs("[/may]"),
            actions: globs("[/may]"),
            ..ServerGlobs::default()
        },
        Vec::new(),
    );
    let mut settings = Settings { access, ..Settings::default() };
    settings.limits.client.pending_max = 1;
    let world = World::with(settings);
    let mut client = world.client();
    let call = |more: Value| {
        let mut call = json!({ "op": "call_service", "id": "c", "service": "/may" });
        for (name, value) in more.as_object().unwrap() {
            call[name] = value.clone();
        }
        call
    };
    let goal = |more: Value| {
        let mut goal = json!({
            "op": "send_action_goal", "id": 7, "action": "/may",
            "action_type": "example_interfaces/action/Fibonacci",
        });
        for (name, value) in more.as_object().unwrap() {
            goal[name] = value.clone();
        }
        goal
    };
    for (more, service, what) in [
        (json!({ "service": "/other" }), "/other", "services_glob"),
        (json!({ "service": null }), "", "service: found nothing"),
        (json!({ "timeout": "soon" }), "/may", "timeout"),
        (json!({ "fragment_size": 0 }), "/may", "fragment_size"),
        (json!({ "type": 3 }), "/may", "type"),
    ] {
        let answer = refused(&mut client, &call(more));
        assert_eq!(
            (&answer["op"], &answer["service"]),
            (&json!("service_response"), &json!(service))
        );
        assert!(answer["values"].as_str().unwrap().contains(what), "{answer}");
    }
    for (more, action, what) in [
        (json!({ "action": "/other" }), "/other", "actions_glob"),
        (json!({ "action": null }), "", "action: found nothing"),
        (json!({ "action_type": null }), "/may", "action_type"),
        (json!({ "action_type": "no_msgs/action/No" }), "/may", "action_type"),
        (json!({ "feedback": 3 }), "/may", "feedback"),
    ] {
        let answer = refused(&mut client, &goal(more));
        assert_eq!((&answer["op"], &answer["action"]), (&json!("action_result"), &json!(action)));
        assert_eq!(answer["status"], 0);
        assert!(answer["values"].as_str().unwrap().contains(what), "{answer}");
    }
    // What fails later is answered alone.
    for (more, what) in [
        (json!({ "type": "std_srvs/srv/Trigger" }), "does not exist"),
        (json!({ "type": "no_srvs/srv/No" }), "no_srvs"),
        (json!({}), "does not exist"),
        (json!({ "type": "std_srvs/srv/SetBool", "args": { "data": 3 } }), "args: "),
    ] {
        client.say(&call(more));
        let answer = client.hear_json();
        assert_eq!((&answer["op"], &answer["result"]), (&json!("service_response"), &json!(false)));
        assert!(answer["values"].as_str().unwrap().contains(what), "{answer}");
    }
    client.say(&goal(json!({ "args": { "order": "many" } })));
    let answer = client.hear_json();
    assert_eq!((&answer["op"], &answer["result"]), (&json!("action_result"), &json!(false)));

    // One is under way.
    let serving = world.node.create_polled_raw_service("/may", trigger()).unwrap();
    client.say(&call(json!({ "type": "std_srvs/srv/Trigger", "timeout": 0 })));
    let request = until("a request", || serving.take_bytes().unwrap());
    refused(&mut client, &call(json!({ "id": "more" })));
    refused(&mut client, &goal(json!({ "id": "more" })));
    request.respond_bytes(&[0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]).unwrap();
    assert_eq!(client.hear_json()["result"], true);
    // Whoever wants no status is answered all the same.
    client.say(&json!({ "op": "set_level", "level": "none" }));
    client.say(&call(json!({ "service": "/other" })));
    assert_eq!(client.hear_json()["op"], "service_response");
}

fn trigger() -> RawType {
    RawType::new("std_srvs/srv/Trigger")
}

#[test]
fn who_sets_no_time_waits_for_as_long_as_it_takes() {
    let settings = Settings { call_timeout: Duration::from_millis(20), ..Settings::default() };
    let world = World::with(settings);
    let serving = world.node.create_polled_raw_service("/slow", trigger()).unwrap();
    let mut client = world.client();
    for timeout in [json!(0), json!(-1), json!(-0.5)] {
        client.say(&json!({
            "op": "call_service", "id": "slow", "service": "/slow", "timeout": timeout,
            "type": "std_srvs/srv/Trigger",
        }));
        let request = until("a request", || serving.take_bytes().unwrap());
        // Another that has no answer either is over before.
        client.say(&json!({
            "op": "call_service", "id": "short", "service": "/slow", "type": "std_srvs/srv/Trigger",
        }));
        let short = client.hear_json();
        assert_eq!((&short["id"], &short["result"]), (&json!("short"), &json!(false)), "{short}");
        until("the other request", || serving.take_bytes().unwrap());
        request.respond_bytes(&[0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]).unwrap();
        let slow = client.hear_json();
        assert_eq!((&slow["id"], &slow["result"]), (&json!("slow"), &json!(true)), "{slow}");
    }
}

#[test]
fn what_is_not_finite_comes_in_as_python_writes_it() {
    let world = World::new();
    let heard = world.node.create_polled_subscription::<Float64MultiArray>("/values", KEEP_ALL);
    let heard = heard.unwrap();
    let mut client = world.client();
    client.say(
        &json!({ "op": "advertise", "topic": "/values", "type": "std_msgs/Float64MultiArray" }),
    );
    client.say_text(
        r#"{"op": "publish", "topic": "/values", "msg": {"data": [NaN, Infinity, -Infinity, 1.5]}}"#,
    );
    let message = until("a message", || heard.take().unwrap());
    let data: Vec<f64> = message.view().data.iter().collect();
    assert!(data[0].is_nan());
    assert_eq!(data[1..], [f64::INFINITY, f64::NEG_INFINITY, 1.5]);
}

#[test]
fn what_a_body_or_a_picture_is_not_is_said_once() {
    let world = World::new();
    let mut client = world.client();
    let mut status = |said: Value| {
        client.say(&said);
        let status = client.hear_json();
        assert_eq!(status["op"], "status", "{status}");
        status
    };
    let picture = status(json!({ "op": "png", "id": "p", "data": "x" }));
    assert_eq!(picture["id"], "p");
    assert_eq!(picture["msg"], "png: data: found no base64; expected base64");
    client.say(&json!({ "op": "advertise", "topic": "/chatter", "type": "std_msgs/String" }));
    client.say(&json!({ "op": "publish", "id": 1, "topic": "/chatter", "msg": { "data": 3 } }));
    let body = client.hear_json();
    assert_eq!(
        body["msg"], "publish: msg: found `3` in field `data`; expected string (byte 8)",
        "{body}"
    );
}

#[test]
fn what_no_float_can_hold_is_infinite_and_a_queue_of_less_than_none_is_none() {
    let world = World::new();
    let heard = world.node.create_polled_subscription::<Float64MultiArray>("/values", KEEP_ALL);
    let heard = heard.unwrap();
    let mut client = world.client();
    client.say(&json!({
        "op": "subscribe", "topic": "/chatter", "type": "std_msgs/String",
        "queue_length": -5, "throttle_rate": -1,
    }));
    client.say(
        &json!({ "op": "advertise", "topic": "/values", "type": "std_msgs/Float64MultiArray" }),
    );
    client.say_text(r#"{"op": "publish", "topic": "/values", "msg": {"data": [1e999, -1e999]}}"#);
    let message = until("a message", || heard.take().unwrap());
    let data: Vec<f64> = message.view().data.iter().collect();
    assert_eq!(data, [f64::INFINITY, f64::NEG_INFINITY]);
    assert_eq!(world.bridge.statistics().refusals, 0);
}

#[test]
fn who_calls_what_another_client_serves_is_told_when_that_will_not_answer() {
    let world = World::new();
    let mut caller = world.client();
    let serve = |server: &mut Client| {
        server.say(&json!({
            "op": "advertise_service", "service": "/served", "type": "std_srvs/srv/Trigger",
        }));
    };
    let call = json!({
        "op": "call_service", "id": "c", "service": "/served", "timeout": 0,
        "type": "std_srvs/srv/Trigger",
    });
    let told = |caller: &mut Client, why: &str| {
        let answer = caller.hear_json();
        assert_eq!((&answer["op"], &answer["id"]), (&json!("service_response"), &json!("c")));
        assert_eq!((&answer["result"], &answer["values"]), (&json!(false), &json!(why)));
    };
    let mut server = world.client();
    serve(&mut server);
    for (values, why) in [
        (json!("no coffee"), "no coffee"),
        (json!({}), "the server of /served says that it has failed"),
    ] {
        caller.say(&call);
        let request = server.hear_json();
        server.say(&json!({
            "op": "service_response", "id": request["id"], "service": "/served", "values": values,
            "result": false,
        }));
        told(&mut caller, why);
    }
    // One that answers something else is told so, too.
    caller.say(&call);
    let request = server.hear_json();
    server.say(&json!({
        "op": "service_response", "id": request["id"], "service": "/served",
        "values": { "success": 3 },
    }));
    let answer = caller.hear_json();
    let why = answer["values"].as_str().unwrap();
    assert!(why.starts_with("the response is none of its type: "), "{answer}");
    assert_eq!(server.hear_json()["op"], "status");

    caller.say(&call);
    server.hear_json();
    server.say(&json!({ "op": "unadvertise_service", "service": "/served" }));
    told(&mut caller, "the server of /served has gone");

    serve(&mut server);
    caller.say(&call);
    server.hear_json();
    drop(server);
    told(&mut caller, "the server of /served has gone");

    // A server that is no client is missed as well. Of which type it is, is said at once.
    let serving = world.node.create_polled_raw_service("/served", trigger()).unwrap();
    caller.say(&call);
    let request = until("a request", || serving.take_bytes().unwrap());
    let mut wrong = call.clone();
    wrong["type"] = json!("std_srvs/srv/SetBool");
    caller.say(&wrong);
    told(&mut caller, "service /served is of type std_srvs/srv/Trigger");
    drop(serving);
    told(&mut caller, "the server of /served has gone");
    drop(request);
}

#[test]
fn what_no_datagram_takes_and_what_cannot_be_read_is_told_to_who_waits() {
    let world = World::new();
    let udp = world.udp();
    let hear = || {
        let mut datagram = vec![0; 70_000];
        let count = udp.recv(&mut datagram).unwrap();
        serde_json::from_slice::<Value>(&datagram[..count]).unwrap()
    };
    let _service = world
        .node
        .create_service::<Trigger>("/long", |_| TriggerResponse {
            success: true,
            message: "x".repeat(100_000),
        })
        .unwrap();
    world.spin();
    let call = json!({ "op": "call_service", "id": "l", "service": "/long", "type": "std_srvs/srv/Trigger" });
    udp.send(call.to_string().as_bytes()).unwrap();
    let answer = hear();
    assert_eq!((&answer["id"], &answer["result"]), (&json!("l"), &json!(false)), "{answer}");
    assert!(answer["values"].as_str().unwrap().contains("65507"), "{answer}");
    // In pieces it comes.
    let mut pieces = call;
    pieces["fragment_size"] = json!(30_000);
    udp.send(pieces.to_string().as_bytes()).unwrap();
    assert_eq!(hear()["op"], "fragment");
    while hear()["num"] != 3 {}

    let subscribe = json!({ "op": "subscribe", "topic": "/long", "type": "std_msgs/String" });
    udp.send(subscribe.to_string().as_bytes()).unwrap();
    let mut client = world.client();
    client.say(&subscribe);
    // Both have subscribed before anything is published.
    let version = json!({ "op": "call_service", "id": "v", "service": "/rosapi/get_ros_version" });
    udp.send(version.to_string().as_bytes()).unwrap();
    assert_eq!(hear()["id"], "v");
    client.settle();
    let raw = world
        .node
        .create_raw_publisher("/long", RawType::new("std_msgs/msg/String"), Qos::DEFAULT)
        .unwrap();
    raw.wait_for_subscriptions(1, WATCHDOG).unwrap();
    // A text that is longer than what there is.
    for _ in 0..2 {
        raw.publish_bytes(&[0, 1, 0, 0, 255, 0, 0, 0]).unwrap();
    }
    for status in [hear(), client.hear_json()] {
        assert_eq!((&status["op"], &status["level"]), (&json!("status"), &json!("error")));
        let msg = status["msg"].as_str().unwrap();
        assert!(msg.starts_with("subscribe: /long: a sample is none of its type"), "{msg}");
    }
    let other = world.udp();
    other.send(subscribe.to_string().as_bytes()).unwrap();
    let count = [200_000_u32.to_le_bytes().to_vec(), vec![b'x'; 199_999], vec![0]].concat();
    let mut datagram = vec![0; 70_000];
    let status = until("a status", || {
        raw.publish_bytes(&[&[0, 1, 0, 0], &count[..]].concat()).unwrap();
        let _ = other.set_read_timeout(Some(Duration::from_millis(50)));
        let count = other.recv(&mut datagram).ok()?;
        serde_json::from_slice::<Value>(&datagram[..count]).ok()
    });
    assert!(status["msg"].as_str().unwrap().contains("do not fit a datagram"), "{status}");
    assert!(0 < world.bridge.statistics().datagrams_lost);
    // Nothing is said twice.
    assert_eq!(client.hear_json()["op"], "publish");
}

#[test]
fn rosapi_lists_itself_and_knows_what_its_services_are() {
    let settings =
        Settings { interfaces: vec!["my_msgs/srv/Run".to_owned()], ..Settings::default() };
    let world = World::with(settings);
    let mut client = world.client();
    let mut ask = |service: &str, args: Value| {
        let answer = client.call(&format!("/rosapi/{service}"), args);
        assert_eq!(answer["result"], true, "{service}: {answer}");
        answer["values"].clone()
    };
    let listed = ask("services", json!({}));
    let listed: Vec<&str> =
        listed["services"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(listed.len(), 30, "{listed:?}");
    for service in listed {
        let ty = ask("service_type", json!({ "service": service }))["type"].clone();
        let of_type = ask("services_for_type", json!({ "type": ty }));
        assert_eq!(of_type["services"], json!([service]));
        assert_eq!(ask("service_node", json!({ "service": service }))["node"], "/bridge");
        assert_eq!(
            ask("service_providers", json!({ "service": ty }))["providers"],
            json!(["/bridge"])
        );
        let request = ask("service_request_details", json!({ "type": ty }));
        let response = ask("service_response_details", json!({ "type": ty }));
        assert!(!response["typedefs"][0]["fieldnames"].as_array().unwrap().is_empty());
        assert!(request["typedefs"][0]["fieldnames"].is_array());
    }
    let interfaces = ask("interfaces", json!({}));
    for name in ["my_msgs/srv/Run", "std_msgs/msg/String", "rosapi_msgs/srv/Topics"] {
        assert!(interfaces["interfaces"].as_array().unwrap().contains(&json!(name)), "{name}");
    }
    let own = ask("node_details", json!({ "node": "/bridge" }));
    assert!(own["services"].as_array().unwrap().contains(&json!("/rosapi/topics")));
    assert_eq!(own["publishing"], json!(["/client_count", "/connected_clients"]));
}

#[test]
fn it_is_published_who_is_connected() {
    let world = World::new();
    let mut watching = world.client();
    watching.say(&json!({ "op": "subscribe", "topic": "/client_count" }));
    assert_eq!(watching.hear_json()["msg"]["data"], 1);
    let other = world.tcp();
    assert_eq!(watching.hear_json()["msg"]["data"], 2);
    watching.say(&json!({ "op": "unsubscribe", "topic": "/client_count" }));
    watching.say(&json!({ "op": "subscribe", "topic": "/connected_clients" }));
    let clients = watching.hear_json()["msg"]["clients"].clone();
    assert_eq!(clients.as_array().unwrap().len(), 2);
    for client in clients.as_array().unwrap() {
        assert_eq!(client["ip_address"], "127.0.0.1");
        assert!(1_600_000_000 < client["connection_time"]["sec"].as_i64().unwrap(), "{client}");
    }
    drop(other);
    assert_eq!(watching.hear_json()["msg"]["clients"], json!([clients[0]]));
    // Whoever comes later gets it too.
    let mut late = world.client();
    late.say(&json!({ "op": "subscribe", "topic": "/client_count" }));
    assert_eq!(late.hear_json()["msg"]["data"], 2);
}

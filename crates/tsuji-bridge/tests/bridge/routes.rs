//! A client sets the transport of a topic, takes that back, and is told what engines take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tsuji::{Publisher, Qos};
use tsuji_bridge::protocol::access::{Access, ServerGlobs};
use tsuji_bridge::{Settings, Users};
use tsuji_interfaces::std_msgs::msg::String as Text;
use tsuji_interfaces::std_srvs::srv::{Trigger, TriggerResponse};
use tungstenite::Message;

use crate::KEEP_ALL;
use crate::world::{Client, WATCHDOG, World, until};

const TOPIC: &str = "/chatter";

/// A topic that a client hears, so that it has one flow, from one process to another, which shared memory carries; and another client.
fn flow(world: &World) -> (Publisher<Text>, Client, Client) {
    let speaker = world.node.create_publisher::<Text>(TOPIC, KEEP_ALL).unwrap();
    let (mut listener, mut client) = (world.client(), world.client());
    listener.say(&json!({
        "op": "subscribe", "topic": TOPIC, "type": "std_msgs/String", "qos": { "history": "keep_all" },
    }));
    let first = carried(&mut client, "shm");
    assert_eq!(first["pinned"], Value::Null);
    (speaker, listener, client)
}

/// What a service answers that does what is asked.
fn done(client: &mut Client, service: &str, args: Value) -> Value {
    let answer = client.call(&format!("/rosapi/tsuji_{service}"), args);
    assert_eq!(answer["result"], true, "{answer}");
    answer["values"].clone()
}

/// What it says where it does not.
fn refused(client: &mut Client, service: &str, args: Value) -> String {
    let answer = client.call(&format!("/rosapi/tsuji_{service}"), args);
    assert_eq!(answer["result"], false, "{answer}");
    answer["values"].as_str().unwrap().to_owned()
}

fn set(client: &mut Client, transport: &str) -> Value {
    done(client, "set_route", json!({ "topic": TOPIC, "transport": transport }))
}

fn undo(client: &mut Client) -> Value {
    done(client, "undo_route", json!({ "topic": TOPIC }))
}

/// The flow of the topic, once `transport` carries it and nothing is under way.
fn carried(client: &mut Client, transport: &str) -> Value {
    until(transport, || {
        let told = done(client, "routes", json!({}));
        let routes = told["routes"].as_array().unwrap();
        let flow = routes.iter().find(|it| it["topic"] == TOPIC)?;
        let is_settled = flow["changes"].as_array()?.iter().all(|it| it["is_settled"] == true);
        let is_it = flow["transport"] == transport && flow["handover_to"].is_null();
        (is_it && is_settled && flow["state"] == "active").then(|| flow.clone())
    })
}

/// A bridge for these users.
fn world_of(users: &str) -> World {
    let Users { named, .. } = Users::parse(users).unwrap();
    let access = Access::new(ServerGlobs::default(), named);
    World::with(Settings { access, ..Settings::default() })
}

fn user(world: &World, token: &str) -> Client {
    let mut client = world.client();
    client.say(&json!({ "op": "auth", "token": token }));
    client
}

fn settings(client: &mut Client) -> Value {
    done(client, "route_settings", json!({}))["settings"].clone()
}

fn numbers(listener: &mut Client, end: u64) {
    for at in 0..end {
        let sample = listener.hear_of("publish");
        assert_eq!(sample["msg"]["data"], at.to_string(), "lost, repeated or out of order");
    }
}

/// The block of docs/how-to/routes.md for other programs, line by line.
#[test]
fn what_the_manual_shows_sets_a_route_and_takes_it_back() {
    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/routes.md");
    let page = std::fs::read_to_string(PAGE).unwrap();
    let shown = page.split("```json\n").nth(1).and_then(|it| it.split("```").next()).unwrap();
    let world = World::new();
    let (_speaker, _listener, mut client) = flow(&world);
    let mut pinned = Vec::new();
    for line in shown.lines() {
        let said: Value = serde_json::from_str(line).unwrap();
        client.say(&said);
        let answer = client.hear_of("service_response");
        assert_eq!((&answer["id"], &answer["result"]), (&said["id"], &json!(true)), "{answer}");
        pinned.push(answer["values"]["transport"].clone());
    }
    assert_eq!(pinned, [json!("cyclonedds"), json!("auto")]);
    carried(&mut client, "shm");
}

#[test]
fn a_topic_takes_what_a_client_sets_and_gives_it_back_and_nothing_is_lost() {
    let world = World::new();
    let (speaker, mut listener, mut client) = flow(&world);
    assert_eq!(settings(&mut client), json!([]));
    let is_over = AtomicBool::new(false);
    let sent = std::thread::scope(|scope| {
        let speaking = scope.spawn(|| {
            let mut at: u64 = 0;
            while !is_over.load(Ordering::Acquire) {
                speaker.publish(Text { data: at.to_string() }).unwrap();
                at += 1;
                std::thread::sleep(Duration::from_micros(500));
            }
            at
        });
        let told = set(&mut client, "cyclonedds");
        assert_eq!((&told["transport"], &told["before"]), (&json!("cyclonedds"), &json!("auto")));
        assert_eq!((&told["flows"], &told["not_carried"]), (&json!(1), &json!([])), "{told}");
        let process = &told["processes"][0];
        assert_eq!((&process["flows"], &process["refused"]), (&json!(1), &Value::Null));
        assert_eq!(process["process"]["pid"], std::process::id());
        // The bridge itself has no flow of it to decide about.
        assert_eq!(told["others"], json!({ "remembered": 1, "refused": 0 }));
        assert_eq!(told["routes"][0]["pinned"], "cyclonedds", "{told}");

        let by = carried(&mut client, "cyclonedds");
        let changes = by["changes"].as_array().unwrap();
        let change = changes.last().unwrap();
        assert_eq!((&change["from"], &change["to"]), (&json!("shm"), &json!("cyclonedds")));
        assert_eq!(change["why"], "the user has set it");
        let setting = json!({ "topic": TOPIC, "transport": "cyclonedds", "undo": "auto" });
        assert_eq!(settings(&mut client), json!([setting]));
        // Samples come by it.
        let count = by["samples"].as_u64().unwrap();
        until("more of them", || {
            let more = carried(&mut client, "cyclonedds")["samples"].as_u64().unwrap();
            (count + 100 < more).then_some(())
        });

        let told = undo(&mut client);
        assert_eq!((&told["transport"], &told["before"]), (&json!("auto"), &json!("cyclonedds")));
        assert_eq!(told["flows"], 1, "{told}");
        let back = carried(&mut client, "shm");
        assert_eq!(back["pinned"], Value::Null);
        assert_eq!(settings(&mut client), json!([]));
        is_over.store(true, Ordering::Release);
        speaking.join().unwrap()
    });
    assert!(100 < sent);
    numbers(&mut listener, sent);
}

/// What is told is how late samples come by the transport that carries them now, not by all that the flow has had.
#[test]
fn latencies_begin_anew_with_the_transport() {
    let world = World::new();
    let (speaker, mut listener, mut client) = flow(&world);
    let mut hear = |count: usize| {
        for _ in 0..count {
            speaker.publish(Text { data: "hello".to_owned() }).unwrap();
        }
        (0..count).for_each(|_| drop(listener.hear_of("publish")));
    };
    hear(10);
    until("a latency", || {
        carried(&mut client, "shm")["latency"]["median_us"].is_number().then_some(())
    });
    set(&mut client, "cyclonedds");
    let flow = carried(&mut client, "cyclonedds");
    assert_eq!((&flow["samples"], &flow["latency"]), (&json!(10), &Value::Null));
    hear(1);
    until("a latency by it", || {
        let flow = carried(&mut client, "cyclonedds");
        let latency = flow["latency"].as_object()?;
        // Of one sample they are the same.
        assert_eq!(latency["median_us"], latency["p99_us"], "{flow}");
        Some(())
    });
}

#[test]
fn taking_back_restores_what_another_command_had_set_and_never_what_it_has_set_since() {
    let world = World::new();
    let (_speaker, _listener, mut client) = flow(&world);
    let other = |transport| world.node.context().set_route(TOPIC, transport, WATCHDOG).unwrap();
    other(Some("cyclonedds"));
    carried(&mut client, "cyclonedds");
    // It is told of, and is not this bridge's to take back.
    let setting = |transport: &str, undo: Value| json!([{ "topic": TOPIC, "transport": transport, "undo": undo }]);
    assert_eq!(settings(&mut client), setting("cyclonedds", Value::Null));
    let nothing = "/chatter: nothing was set here that could be taken back";
    assert_eq!(refused(&mut client, "undo_route", json!({ "topic": "chatter" })), nothing);

    assert_eq!(set(&mut client, "shm")["before"], "cyclonedds");
    carried(&mut client, "shm");
    assert_eq!(settings(&mut client), setting("shm", json!("cyclonedds")));
    assert_eq!(set(&mut client, "auto")["before"], "shm");
    assert_eq!(settings(&mut client), setting("auto", json!("shm")));
    // What is set already is no step of its own.
    assert_eq!(set(&mut client, "auto")["before"], "auto");
    // Whoever it is that takes it back.
    let mut another = world.client();
    assert_eq!(undo(&mut another)["transport"], "shm");
    assert_eq!(undo(&mut another)["transport"], "cyclonedds");
    carried(&mut client, "cyclonedds");
    assert_eq!(refused(&mut client, "undo_route", json!({ "topic": TOPIC })), nothing);

    set(&mut client, "shm");
    other(None);
    until("it is seen", || (settings(&mut client) == json!([])).then_some(()));
    let why = refused(&mut client, "undo_route", json!([TOPIC]));
    let expected = "/chatter: another command has chosen the policy since; nothing is taken back";
    assert_eq!(why, expected);
    assert_eq!(refused(&mut client, "undo_route", json!([TOPIC])), nothing);
    assert_eq!(carried(&mut client, "shm")["pinned"], Value::Null);
}

#[test]
fn what_cannot_be_set_is_said_and_changes_nothing() {
    let world = World::new();
    let (_speaker, _listener, mut client) = flow(&world);
    let idle = world.node.create_publisher::<Text>("/idle", Qos::DEFAULT).unwrap();
    set(&mut client, "cyclonedds");
    let before = carried(&mut client, "cyclonedds");
    let mut check = |topic: &str, transport: Value, expected: &str| {
        let why =
            refused(&mut client, "set_route", json!({ "topic": topic, "transport": transport }));
        assert!(why.contains(expected), "{topic} {transport}: {why}");
    };
    let known =
        "expected inproc, shm, cyclonedds, fastdds, zenoh, ros1, or auto for what the policy says";
    check(
        TOPIC,
        json!("pigeon"),
        &format!("tsuji_set_route: transport: found \"pigeon\"; {known}"),
    );
    check(TOPIC, Value::Null, "tsuji_set_route: transport: found null; expected a text");
    check(
        "/nothing",
        json!("shm"),
        "topic: found \"/nothing\"; expected a topic that is published",
    );
    let out_of_reach = "out of reach: the peer is local";
    let expected = format!("nothing is set: none of its flows can go by inproc: {out_of_reach}");
    check(TOPIC, json!("inproc"), &format!("/chatter: {expected}"));
    check(TOPIC, json!("fastdds"), "none of its flows can go by fastdds: not working: ");
    check("/idle", json!("fastdds"), "fastdds is not at work in this process; there are ");
    check("/a b", json!("shm"), "found \"/a b\"");
    let after = carried(&mut client, "cyclonedds");
    assert_eq!(after["pinned"], "cyclonedds");
    // Not even for a moment.
    assert_eq!(after["changes"], before["changes"]);
    assert_eq!(settings(&mut client)[0]["undo"], "auto");
    // What has no flow yet is remembered for the first.
    let told =
        done(&mut client, "set_route", json!({ "topic": "idle", "transport": "cyclonedds" }));
    assert_eq!((&told["flows"], &told["processes"][0]["flows"]), (&json!(0), &json!(0)), "{told}");
    let told = done(&mut client, "route_settings", json!({}));
    let of_idle = json!({ "topic": "/idle", "transport": "cyclonedds", "undo": "auto" });
    assert_eq!((&told["settings"][1], &told["may_set"]), (&of_idle, &json!([TOPIC, "/idle"])));
    // What is refused is told before it is asked for.
    let unable = told["unable"].as_object().unwrap();
    assert_eq!((unable.len(), &unable[TOPIC]["inproc"]), (1, &json!(out_of_reach)), "{told}");
    assert!(unable[TOPIC]["fastdds"].as_str().unwrap().starts_with("not working: "), "{told}");
    assert_eq!((&unable[TOPIC]["shm"], &unable[TOPIC]["cyclonedds"]), (&Value::Null, &Value::Null));

    // It is taken back when nobody has the topic any more, too.
    drop(idle);
    until("nobody has it", || {
        let told = done(&mut client, "routes", json!({}));
        told["topics"].as_array()?.iter().all(|it| it["topic"] != "/idle").then_some(())
    });
    assert_eq!(settings(&mut client)[1], of_idle);
    let told = done(&mut client, "undo_route", json!({ "topic": "/idle" }));
    assert_eq!((&told["transport"], &told["flows"]), (&json!("auto"), &json!(0)), "{told}");
    let told = done(&mut client, "route_settings", json!({}));
    assert_eq!((&told["settings"][1], &told["may_set"]), (&Value::Null, &json!([TOPIC])));
}

#[test]
fn a_right_of_its_own_is_needed_and_nobody_learns_of_topics_by_asking() {
    let world = world_of(
        "
users:
  viewer: {token: viewer, subscribe: all, call_service: ['/rosapi/*']}
  driver: {token: driver, subscribe: all, publish: all, call_service: all, set_param: all}
  operator: {token: operator, subscribe: all, call_service: ['/rosapi/*', '/no*'], set_route: [/chatter, '/no*']}
  blind: {token: blind, subscribe: [/map], call_service: ['/rosapi/*'], set_route: all}
  mute: {token: mute, subscribe: all, set_route: all}
",
    );
    let speaker = world.node.create_publisher::<Text>(TOPIC, KEEP_ALL).unwrap();
    let _heard = world.node.create_polled_subscription::<Text>(TOPIC, KEEP_ALL).unwrap();
    let _other = world.node.create_publisher::<Text>("/other", KEEP_ALL).unwrap();
    let _heard_too = world.node.create_polled_subscription::<Text>("/other", KEEP_ALL).unwrap();
    speaker.wait_for_subscriptions(1, WATCHDOG).unwrap();
    let user = |token: &str| user(&world, token);
    let args = |topic: &str| json!({ "topic": topic, "transport": "shm" });
    let check = |token: &str, topic: &str, expected: &str| {
        for service in ["set_route", "undo_route"] {
            let why = refused(&mut user(token), service, args(topic));
            assert!(why.contains(expected), "{token} {topic}: {why}");
        }
    };
    let mut operator = user("operator");
    until("the flows", || {
        let told = done(&mut operator, "route_settings", json!({}));
        (told["may_set"] == json!([TOPIC])).then_some(())
    });
    check("viewer", TOPIC, "\"viewer\" may not set_route \"/chatter\": this user is allowed []");
    check("driver", TOPIC, "\"driver\" may not set_route \"/chatter\": this user is allowed []");
    check(
        "operator",
        "/other",
        "may not set_route \"/other\": this user is allowed [/chatter, /no*]",
    );
    check("operator", "/nothing", "topic: found \"/nothing\"; expected");
    for topic in [TOPIC, "/nothing"] {
        check("blind", topic, &format!("\"blind\" may not subscribe \"{topic}\": this user is"));
    }
    check("mute", TOPIC, "\"mute\" may not call_service \"/rosapi/tsuji_");
    assert_eq!(done(&mut user("viewer"), "route_settings", json!({}))["may_set"], json!([]));

    // In one process nothing but inproc is as good; what is set all the same counts.
    let told = done(&mut operator, "set_route", args(TOPIC));
    assert_eq!((&told["flows"], &told["routes"][0]["pinned"]), (&json!(1), &json!("shm")));
    let seen =
        |token: &str| done(&mut user(token), "route_settings", json!({}))["settings"].clone();
    assert_eq!(seen("viewer")[0]["transport"], "shm");
    assert_eq!(seen("blind"), json!([]));
}

#[test]
fn a_service_that_has_gone_stays_a_service_for_who_would_see_or_take_back_its_setting() {
    let world = world_of(
        "
users:
  admin: {token: admin, subscribe: all, call_service: all, set_route: all}
  listener: {token: listener, subscribe: all, call_service: ['/rosapi/*'], set_route: all}
  caller: {token: caller, call_service: all, set_route: all}
  bare: {token: bare, call_service: ['/rosapi/*'], set_route: all}
",
    );
    let service = "/vault/open";
    let served = world.node.create_service::<Trigger>(service, |_| TriggerResponse::default());
    let served = served.unwrap();
    let [mut admin, mut listener, mut caller, mut bare] =
        ["admin", "listener", "caller", "bare"].map(|it| user(&world, it));
    let is_served = |client: &mut Client| {
        let answer = client.call("/rosapi/services", json!({}));
        answer["values"]["services"].as_array().unwrap().contains(&json!(service))
    };
    until("it is served", || is_served(&mut admin).then_some(()));
    let args = json!({ "topic": service, "transport": "shm" });
    let never_there = json!({ "topic": "/vault/close", "transport": "shm" });
    let setting = json!([{ "topic": service, "transport": "shm", "undo": "auto" }]);
    // Nobody may learn from the words of a refusal that there is a service.
    let check = |client: &mut Client, right: &str| {
        for of in ["set_route", "undo_route"] {
            for args in [&args, &never_there] {
                let why = refused(client, of, args.clone());
                let expected = format!("may not {right} {}: ", args["topic"]);
                assert!(why.contains(&expected), "{of}: {why}");
            }
        }
    };
    let mut judged = |client: &mut Client| {
        assert_eq!(settings(&mut admin), setting);
        assert_eq!(settings(client), setting);
        assert_eq!(settings(&mut listener), json!([]));
        assert_eq!(settings(&mut bare), json!([]));
        check(&mut listener, "call_service");
        check(&mut bare, "subscribe");
    };
    done(&mut caller, "set_route", args.clone());
    judged(&mut caller);
    drop(served);
    until("nobody serves it", || (!is_served(&mut caller)).then_some(()));
    judged(&mut caller);
    // What is set once more is a service as before.
    done(&mut caller, "set_route", json!({ "topic": service, "transport": "cyclonedds" }));
    assert_eq!(settings(&mut listener), json!([]));
    check(&mut listener, "call_service");
    assert_eq!(done(&mut caller, "undo_route", args.clone())["transport"], "shm");
    // A topic of that name does not make it one, for who may only subscribe.
    let _topic = world.node.create_publisher::<Text>(service, KEEP_ALL).unwrap();
    until("the topic", || {
        let told = done(&mut user(&world, "listener"), "routes", json!({}));
        told["topics"].as_array()?.iter().any(|it| it["topic"] == service).then_some(())
    });
    assert_eq!(settings(&mut listener), json!([]));
    check(&mut listener, "call_service");
    let mut admin = user(&world, "admin");
    assert_eq!(done(&mut admin, "undo_route", args)["transport"], "auto");
    assert_eq!(settings(&mut admin), json!([]));
}

#[test]
fn a_topic_without_flows_hides_processes_from_who_may_not_know_of_it() {
    let world = world_of(
        "
users:
  all: {token: all, subscribe: all, call_service: all, send_action_goal: all}
  blind: {token: blind, subscribe: [/map], call_service: ['/rosapi/*']}
",
    );
    let _secret = world.node.create_publisher::<Text>("/secret", KEEP_ALL).unwrap();
    let mut all = user(&world, "all");
    until("the topic", || {
        let told = done(&mut all, "routes", json!({}));
        assert_eq!(told["routes"], json!([]));
        told["topics"].as_array()?.iter().any(|it| it["topic"] == "/secret").then_some(())
    });
    let count = |token: &str| {
        done(&mut user(&world, token), "engines", json!({}))["processes"].as_array().unwrap().len()
    };
    assert_eq!((count("all"), count("blind")), (2, 0));
}

/// What clients of the bridge are told of the engine of Cyclone DDS in each process that they may know of: why it runs.
fn reasons(told: &Value) -> Vec<&str> {
    let processes = told["processes"].as_array().unwrap().iter();
    let engines = processes.flat_map(|it| it["engines"].as_array().unwrap());
    let running = engines.filter(|it| it["transport"] == "cyclonedds" && it["state"] == "running");
    let mut reasons: Vec<_> = running.map(|it| it["because"].as_str().unwrap()).collect();
    reasons.sort_unstable();
    reasons
}

#[test]
fn clients_are_told_what_engines_take_and_why_they_run() {
    let world = World::new();
    let (_speaker, _listener, mut client) = flow(&world);
    let told = done(&mut client, "engines", json!({}));
    assert_eq!(reasons(&told), [""; 0]);
    set(&mut client, "cyclonedds");
    carried(&mut client, "cyclonedds");
    let told = until("both engines", || {
        let told = done(&mut client, "engines", json!({}));
        (reasons(&told).len() == 2).then_some(told)
    });
    assert_eq!(reasons(&told), ["a publisher on /chatter", "a subscription to /chatter"]);
    assert_eq!((&told["processes_left_out"], &told["contexts_silent"]), (&json!(0), &json!(0)));
    let positive = |it: &Value| it.as_u64().is_some_and(|it| 0 < it);
    for it in told["processes"].as_array().unwrap() {
        assert_eq!(it["process"]["pid"], std::process::id(), "{it}");
        assert!(positive(&it["threads"]) && positive(&it["resident_bytes"]), "{it}");
        let engines = it["engines"].as_array().unwrap();
        let of = |name: &str| engines.iter().find(|it| it["transport"] == name).unwrap();
        let cyclonedds = of("cyclonedds");
        assert!(positive(&cyclonedds["users"]) && cyclonedds["resident_bytes"].is_i64(), "{it}");
        assert_eq!(of("inproc")["state"], "built_in", "{it}");
        assert_eq!(of("fastdds")["users"], 0, "{it}");
    }
}

#[test]
fn who_may_not_know_of_a_topic_is_not_told_that_an_engine_runs_for_it() {
    let world = world_of(
        "
users:
  all: {token: all, subscribe: all, call_service: ['/rosapi/*'], set_route: all}
  few: {token: few, subscribe: [/open], call_service: ['/rosapi/*']}
  blind: {token: blind, subscribe: [/map], call_service: ['/rosapi/*']}
  mute: {token: mute, subscribe: all}
",
    );
    let mut all = user(&world, "all");
    let speakers = [TOPIC, "/open"].map(|topic| {
        all.say(&json!({ "op": "subscribe", "topic": topic, "type": "std_msgs/String" }));
        world.node.create_publisher::<Text>(topic, KEEP_ALL).unwrap()
    });
    for speaker in &speakers {
        speaker.wait_for_subscriptions(1, WATCHDOG).unwrap();
    }
    carried(&mut all, "shm");
    set(&mut all, "cyclonedds");
    carried(&mut all, "cyclonedds");
    let expected = ["a publisher on /chatter", "a subscription to /chatter"];
    assert_eq!(reasons(&done(&mut all, "engines", json!({}))), expected);
    let told = done(&mut user(&world, "few"), "engines", json!({}));
    assert_eq!(reasons(&told), ["", ""], "{told}");
    assert!(!told.to_string().contains(TOPIC), "{told}");
    let told = done(&mut user(&world, "blind"), "engines", json!({}));
    assert_eq!(told["processes"], json!([]));
    let why = refused(&mut user(&world, "mute"), "engines", json!({}));
    assert!(why.contains("\"mute\" may not call_service \"/rosapi/tsuji_engines\""), "{why}");
}

#[test]
fn it_is_asked_for_in_cbor_too() {
    let world = World::new();
    let (_speaker, _listener, mut client) = flow(&world);
    let call = b"\xa4\x62op\x6ccall_service\x62id\x61c\x67service\x77/rosapi/tsuji_set_route\
        \x64args\xa2\x65topic\x68/chatter\x69transport\x6acyclonedds";
    client.socket.send(Message::binary(&call[..])).unwrap();
    let answer = client.hear_of("service_response");
    assert_eq!(
        (&answer["result"], &answer["values"]["flows"]),
        (&json!(true), &json!(1)),
        "{answer}"
    );
    carried(&mut client, "cyclonedds");
}

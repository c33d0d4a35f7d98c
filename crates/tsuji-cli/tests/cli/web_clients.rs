//! Clients of rosbridge and of Foxglove that others wrote, unchanged. Where `TSUJI_WEB_CLIENTS` does not name the folder that has them
//! (`scripts/web-clients`), these tests do nothing.

use std::env;

use serde_json::Value;

use crate::support::{Running, World};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/web");

fn clients() -> Option<String> {
    env::var("TSUJI_WEB_CLIENTS").ok().filter(|it| !it.is_empty())
}

/// What a client says that speaks to a bridge of its own.
fn says(arguments: &[&str], words: impl Fn(&str) -> Vec<String>) -> String {
    let world = World::new();
    let own = ["bridge", "--port", "0", "--json"];
    let mut bridge = world.start(&[&own[..], arguments].concat());
    let told: Value = serde_json::from_str(&bridge.out_line("listening")).unwrap();
    let words = words(&told["listening"][0]["port"].to_string());
    let said = Running::new(&mut world.foreign(words.iter().map(String::as_str))).end().good();
    assert_eq!(bridge.stop().code, Some(0));
    said
}

#[test]
fn roslib_publishes_subscribes_serves_calls_and_asks() {
    let Some(folder) = clients() else { return };
    let expected = "hello none 🦀\nhello cbor 🦀\nhello png 🦀\nlatched one one one\nbinary b true 2 false\nsum 3\nservice /nobody does not exist\ntopics true\nparams true\n\
                    {\"x\":\"double\",\"y\":\"double\",\"z\":\"double\"}\n";
    let words =
        |port: &str| ["node", &format!("{folder}/roslib.mjs"), port].map(str::to_owned).to_vec();
    assert_eq!(says(&[], words), expected);
    // It offers that by itself.
    assert_eq!(says(&["--use-compression"], words), expected);
}

#[test]
fn roslibrust_publishes_subscribes_serves_calls_and_asks() {
    let Some(folder) = clients() else { return };
    let said = says(&[], |port| vec![format!("{folder}/roslibrust"), port.to_owned()]);
    let expected = "heard hello 0 \u{1f980} hello 49 \u{1f980}\nsum 42\n\
                    Rosbridge server reported an error: service /nobody does not exist\ntopic of std_msgs/String\n\
                    service of example_interfaces/AddTwoInts\n";
    assert_eq!(said, expected);
}

#[test]
fn roslibpy_publishes_subscribes_serves_calls_and_asks() {
    let Some(folder) = clients() else { return };
    let said = says(&[], |port| {
        let python = format!("{folder}/python/bin/python");
        vec![python, format!("{SCRIPTS}/roslibpy_client.py"), port.to_owned()]
    });
    let expected = "heard hello 0 hello 49\nlatched\nsum 42\ntopics True\ntype std_msgs/msg/String\ntime True\n";
    assert_eq!(said, expected);
}

#[test]
fn a_client_of_foxglove_reads_writes_calls_and_asks() {
    let Some(folder) = clients() else { return };
    for subprotocol in ["foxglove.sdk.v1", "foxglove.websocket.v1"] {
        let world = World::new();
        let text = "std_msgs/msg/String";
        let talks = ["topic", "pub", "-p", "0", "-n", "talker", "-r", "50", "/chatter", text];
        let _publisher = world.start(&[&talks[..], &["data: hello \u{1f980}"]].concat());
        let _camera = world.start(&["component", "standalone", "tsuji_components", "Camera"]);
        let mut bridge = world.start(&["bridge", "--port", "0", "--json"]);
        let told: Value = serde_json::from_str(&bridge.out_line("listening")).unwrap();
        let port = told["listening"][0]["port"].to_string();
        let words = ["node", &format!("{folder}/foxglove.mjs"), &port, subprotocol];
        let said = Running::new(&mut world.foreign(words)).end().good();
        let expected = "tsuji bridge cdr json\nheard hello \u{1f980}\npicture true\nback map 7 1.5 -2\ncalled 1\nfailed 6\n\
                        parameter [{\"name\":\"/camera.use_sim_time\",\"value\":false}]\n\
                        set [{\"name\":\"/camera.use_sim_time\",\"value\":true}]\n\
                        followed [{\"name\":\"/camera.use_sim_time\",\"value\":true}]\n\
                        graph {\"name\":\"/chatter\",\"publisherIds\":[\"/talker\"]}\n\
                        asset 9 package://none/a.stl: no package none in AMENT_PREFIX_PATH\n";
        assert_eq!(said, format!("{subprotocol} {expected}"));
        assert_eq!(bridge.stop().code, Some(0));
    }
}

#[test]
fn the_parsers_of_prometheus_read_the_metrics() {
    let Some(folder) = clients() else { return };
    let world = World::new();
    let text = "std_msgs/msg/String";
    let publish = ["topic", "pub", "-p", "0", "-n", "talker", "-r", "50", "/chatter", text];
    let _publisher = world.start(&publish);
    let mut echo = world.start(&["topic", "echo", "/chatter", text]);
    echo.out("data: ");
    world.run_until(&["routes", "--json"], |it| it.json()[0]["latency"].is_object());
    let mut bridge = world.start(&["bridge", "--port", "0", "--json"]);
    let told: Value = serde_json::from_str(&bridge.out_line("listening")).unwrap();
    let port = told["listening"][0]["port"].to_string();
    let words =
        [&format!("{folder}/python/bin/python"), &format!("{SCRIPTS}/metrics_client.py"), &port];
    let said = Running::new(&mut world.foreign(words.map(String::as_str))).end().good();
    assert_eq!(said, "prometheus 1 True True 1\nopenmetrics 1 True True 1\n");
    assert_eq!(bridge.stop().code, Some(0));
}

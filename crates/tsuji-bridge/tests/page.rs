//! What browsers are served, and what the page asks of the bridge itself.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tsuji::{Executor, Qos};
use tsuji_bridge::protocol::access::{Access, Globs, Permissions, ServerGlobs, Token, User};
use tsuji_bridge::{Protocol, Settings};
use tsuji_interfaces::std_msgs::msg::String as Text;
use world::{WATCHDOG, World, until};

mod world;

/// What is answered to `request`, until the server closes.
fn answer(world: &World, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(world.address(Protocol::WebSocket)).unwrap();
    stream.set_read_timeout(Some(WATCHDOG)).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

fn get(world: &World, path: &str) -> String {
    answer(world, format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
}

#[test]
fn the_page_and_its_files_come_whole_and_may_load_nothing_from_elsewhere() {
    let world = World::new();
    for (path, media_type, end) in [
        ("/", "text/html; charset=utf-8", "</html>\n"),
        ("/style.css", "text/css; charset=utf-8", "}\n"),
        ("/main.js", "text/javascript; charset=utf-8", ";\n"),
        ("/icon.svg", "image/svg+xml", "</svg>\n"),
        ("/vendor/roslib.js", "text/javascript; charset=utf-8", ";\n"),
        ("/vendor/LICENSES.txt", "text/plain; charset=utf-8", "\n"),
    ] {
        let told = get(&world, path);
        let (head, body) = told.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body.ends_with(end), "{path}: {head}");
        for line in [
            &format!("Content-Type: {media_type}"),
            &format!("Content-Length: {}", body.len()),
            "Connection: close",
            "Cache-Control: no-cache",
            "X-Content-Type-Options: nosniff",
            "X-Frame-Options: DENY",
        ] {
            assert!(head.lines().any(|it| it == line), "{path}: {line}: {head}");
        }
        let policy = head.lines().find_map(|it| it.strip_prefix("Content-Security-Policy: "));
        assert!(policy.unwrap().starts_with("default-src 'self'; "), "{head}");
    }
}

#[test]
fn what_is_no_file_is_refused_and_websockets_go_on() {
    let world = World::new();
    let mut client = world.client();
    let check = |request: &str, expected: &str| {
        let told = answer(&world, request.as_bytes());
        assert!(told.starts_with(&format!("HTTP/1.1 {expected}")), "{request:.60}: {told}");
    };
    check("HEAD /main.js HTTP/1.1\r\n\r\n", "200 OK");
    check("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "405 Method Not Allowed");
    check("GET /nothing HTTP/1.1\r\n\r\n", "404 Not Found");
    check("GET /../Cargo.toml HTTP/1.1\r\n\r\n", "404 Not Found");
    check("GET\r\n\r\n", "400 Bad Request");
    check(&format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(20_000)), "431");
    check(&format!("GET / HTTP/1.1\r\n{}\r\n", "A: a\r\n".repeat(200)), "400");
    client.settle();
}

/// Who says it letter by letter has only so long for the whole of it.
#[test]
fn a_request_that_does_not_end_is_cut() {
    let world = World::new();
    let mut stream = TcpStream::connect(world.address(Protocol::WebSocket)).unwrap();
    stream.set_read_timeout(Some(WATCHDOG)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: lo").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.is_empty(), "{answer:?}");
    until("it is counted", || (world.bridge.statistics().disconnected == 1).then_some(()));
}

#[test]
fn the_page_comes_by_tls_too() {
    let world = World::new();
    let (_bridge, mut stream) = world.by_tls();
    stream.write_all(b"GET /vendor/roslib.js HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut told = Vec::new();
    // An end without the word of TLS for it would be an error.
    stream.read_to_end(&mut told).unwrap();
    let plain = get(&world, "/vendor/roslib.js");
    assert!(plain.starts_with("HTTP/1.1 200") && told == plain.as_bytes());
}

#[test]
fn there_is_no_page_where_none_is_wanted() {
    let world = World::with(Settings { page: false, ..Settings::default() });
    assert!(get(&world, "/").starts_with("HTTP/1.1 404"));
    world.client().settle();
}

/// The answer of one of the bridge's own services, once it is as `fits` says.
fn overview(client: &mut world::Client, fits: impl Fn(&Value) -> bool) -> Value {
    until("the overview", || {
        let answer = client.call("/rosapi/tsuji_routes", json!({}));
        assert_eq!(answer["result"], true, "{answer}");
        fits(&answer["values"]).then(|| answer["values"].clone())
    })
}

#[test]
fn clients_are_told_of_topics_and_of_flows_with_their_reasons() {
    let world = World::new();
    let mut client = world.client();
    let speaker = world.node.create_publisher::<Text>("/chatter", Qos::DEFAULT).unwrap();
    let heard = world.node.create_polled_subscription::<Text>("/chatter", Qos::DEFAULT).unwrap();
    let _lonely = world.node.create_publisher::<Text>("/lonely", Qos::DEFAULT).unwrap();
    let _hidden = world.node.create_publisher::<Text>("/_hidden", Qos::DEFAULT).unwrap();
    let told = overview(&mut client, |it| {
        let _ = speaker.publish(Text { data: "hello".to_owned() });
        let _ = heard.take();
        it["routes"][0]["samples"].as_u64().is_some_and(|it| it > 0)
            && it["topics"].as_array().unwrap().len() == 4
    });
    let ty = "std_msgs/msg/String";
    let topic = |name, publishers, subscriptions| json!({ "topic": name, "type": ty, "publishers": publishers, "subscriptions": subscriptions });
    let own = |name, ty| json!({ "topic": name, "type": ty, "publishers": 1, "subscriptions": 0 });
    let expected = [
        topic("/chatter", 1, 1),
        own("/client_count", "std_msgs/msg/Int32"),
        own("/connected_clients", "rosbridge_msgs/msg/ConnectedClients"),
        topic("/lonely", 1, 0),
    ];
    assert_eq!(told["topics"], json!(expected));
    let route = &told["routes"][0];
    assert_eq!((&route["topic"], &route["type_name"]), (&json!("/chatter"), &json!(ty)));
    assert_eq!(route["state"], "active");
    assert!(!route["because"].as_str().unwrap().is_empty() && route["transport"].is_string());
    assert_eq!((&told["topics_left_out"], &told["routes_left_out"]), (&json!(0), &json!(0)));

    let answer = client.call("/rosapi/tsuji_bridge", json!({}));
    let done = &answer["values"];
    assert_eq!((&done["connections"], &done["published"]), (&json!(1), &json!(0)), "{done}");
    client.say(&json!({ "op": "publish", "topic": "/chatter", "msg": { "data": "me too" } }));
    until("it is counted", || {
        let answer = client.call("/rosapi/tsuji_bridge", json!({}));
        (answer["values"]["published"] == 1).then_some(())
    });
}

#[test]
fn who_may_not_know_of_a_topic_is_not_told_of_it() {
    let globs = |text: &str| Globs::parse(text).unwrap();
    let may = Permissions {
        subscribe: globs("[/seen]"),
        call_service: globs("[/rosapi/*]"),
        ..Permissions::NONE
    };
    let user = User { may, ..User::unrestricted("viewer", Token::new("sesame")) };
    let access = Access::new(ServerGlobs::default(), vec![user]);
    let world = World::with(Settings { access, ..Settings::default() });
    let ends = ["/seen", "/unseen"].map(|name| {
        let speaker = world.node.create_publisher::<Text>(name, Qos::DEFAULT).unwrap();
        (speaker, world.node.create_polled_subscription::<Text>(name, Qos::DEFAULT).unwrap())
    });
    let mut client = world.client();
    client.say(&json!({ "op": "call_service", "id": "c", "service": "/rosapi/tsuji_routes" }));
    assert!(client.hear_of("status")["msg"].as_str().unwrap().contains("not authenticated"));
    assert_eq!(client.hear_of("service_response")["result"], false);
    client.say(&json!({ "op": "auth", "token": "sesame" }));
    until("both flow", || ends.iter().all(|it| it.0.matched() == 1).then_some(()));
    let told = overview(&mut client, |it| {
        it["routes"].as_array().is_some_and(|it| !it.is_empty())
            && it["topics"].as_array().is_some_and(|it| !it.is_empty())
    });
    assert_eq!(told["topics"].as_array().unwrap().len(), 1, "{told}");
    assert!(!told.to_string().contains("/unseen"), "{told}");
}

#[test]
fn many_who_ask_at_once_are_all_answered() {
    let world = World::new();
    let mut clients: Vec<_> = (0..20).map(|_| world.client()).collect();
    for client in &mut clients {
        for at in 0..20 {
            let service = if at % 2 == 0 { "/rosapi/tsuji_routes" } else { "/rosapi/tsuji_bridge" };
            client.say(&json!({ "op": "call_service", "id": at, "service": service }));
        }
    }
    for client in &mut clients {
        let ids: std::collections::BTreeSet<_> = (0..20)
            .map(|_| {
                let answer = client.hear_of("service_response");
                assert_eq!(answer["result"], true, "{answer}");
                answer["id"].as_u64().unwrap()
            })
            .collect();
        assert_eq!(ids.len(), 20);
    }
}

/// The samples of the metrics whose names and labels begin so, each without its value.
fn samples<'a>(body: &'a str, begin: &str) -> Vec<(&'a str, f64)> {
    let lines = body.lines().filter(|it| it.starts_with(begin));
    lines
        .map(|it| it.rsplit_once(' ').map(|(name, value)| (name, value.parse().unwrap())).unwrap())
        .collect()
}

#[test]
fn metrics_tell_of_flows_processes_and_the_bridge() {
    let world = World::new();
    let received = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&received);
    let publisher = world.node.create_publisher::<Text>("/chatter", Qos::default()).unwrap();
    let subscription =
        world.node.create_subscription::<Text>("/chatter", Qos::default(), move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
    let _subscription = subscription.unwrap();
    let mut executor = Executor::new(world.node.context()).unwrap();
    executor.add(&world.node).unwrap();
    until("a sample comes", || {
        publisher.publish(&Text { data: "hello".to_owned() }).unwrap();
        executor.spin_once(Duration::from_millis(10)).unwrap();
        (0 < received.load(Ordering::Relaxed)).then_some(())
    });
    let told = get(&world, "/metrics");
    let (head, body) = told.split_once("\r\n\r\n").unwrap();
    assert!(
        head.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
        "{head}"
    );
    let flows = samples(body, "tsuji_flow_info{");
    let labels = "type=\"std_msgs/msg/String\",transport=\"inproc\",state=\"active\",reach=\"intra\",size=\"small\"";
    assert!(matches!(&flows[..], [(name, 1.0)] if name.contains(labels)), "{flows:?}");
    for (name, least) in [
        ("tsuji_flow_received_samples_total{flow=", 1.0),
        ("tsuji_flow_sent_samples_total{flow=", 1.0),
        ("tsuji_flow_dropped_samples_total{flow=", 0.0),
        ("tsuji_flow_latency_seconds{flow=", 0.0),
        ("tsuji_process_threads{", 1.0),
        ("tsuji_engines_running{", 0.0),
        ("tsuji_bridge_connections", 1.0),
        ("tsuji_bridge_connected_total", 1.0),
    ] {
        let found = samples(body, name);
        assert!(!found.is_empty() && found.iter().all(|it| least <= it.1), "{name}: {found:?}");
    }
    // A histogram grows from bound to bound, and its last bound has all.
    let buckets = samples(body, "tsuji_flow_latency_distribution_seconds_bucket{flow=");
    assert_eq!(buckets.len(), 14, "{buckets:?}");
    assert!(buckets.is_sorted_by(|it, next| it.1 <= next.1), "{buckets:?}");
    let bound = |at: usize| buckets[at].0.split(",le=\"").nth(1).unwrap().trim_end_matches("\"}");
    assert_eq!((bound(0), bound(12), bound(13)), ("1e-06", "1.0", "+Inf"));
    let all = samples(body, "tsuji_flow_latency_distribution_seconds_count{flow=");
    assert_eq!((all.len(), all[0].1), (1, buckets[13].1));
    assert_eq!(all[0].1, samples(body, "tsuji_flow_received_samples_total{flow=")[0].1);
    let sum = samples(body, "tsuji_flow_latency_distribution_seconds_sum{flow=")[0].1;
    let longest = samples(body, "tsuji_flow_latency_seconds{flow=")[2].1;
    assert!(0.0 < sum && sum <= longest * all[0].1 * 1.001, "{sum} {longest}");
    // No sample twice, as a scraper refuses that.
    let mut names: Vec<_> = samples(body, "tsuji").into_iter().map(|it| it.0).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "{body}");

    let open = "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n";
    let open = answer(&world, open.as_bytes());
    assert!(
        open.contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0; "),
        "{open}"
    );
    assert!(
        open.ends_with("\n# EOF\n") && open.contains("\n# TYPE tsuji_bridge_connected counter\n")
    );
    let head = answer(&world, b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(get(&world, "/healthz").ends_with("\r\n\r\nok\n"));
}

#[test]
fn many_may_ask_for_metrics_and_leave_before_they_come() {
    let world = World::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(world.address(Protocol::WebSocket)).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    }
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..20).map(|_| scope.spawn(|| get(&world, "/metrics"))).collect();
        for told in asked {
            let told = told.join().unwrap();
            assert!(told.starts_with("HTTP/1.1 200 OK\r\n"), "{told}");
        }
    });
    let open = |body: &str| samples(body, "tsuji_bridge_connections")[0].1;
    until("those who have left are gone", || (open(&get(&world, "/metrics")) <= 1.0).then_some(()));
}

#[test]
fn metrics_tell_a_user_what_it_may_hear() {
    let user = |name: &str, token: &str, topics: &str| {
        let may = Permissions { subscribe: Globs::parse(topics).unwrap(), ..Permissions::ALL };
        User { may, ..User::unrestricted(name, Token::new(token)) }
    };
    let users = vec![user("all", "sesame", ""), user("few", "thyme", "[/map]")];
    let access = Access::new(ServerGlobs::default(), users);
    let world = World::with(Settings { access, ..Settings::default() });
    let _publisher = world.node.create_publisher::<Text>("/secret", Qos::default()).unwrap();
    let subscription = world.node.create_subscription::<Text>("/secret", Qos::default(), |_| {});
    let _subscription = subscription.unwrap();
    let of = |token: &str| {
        let request = format!("GET /metrics HTTP/1.1\r\nAuthorization: Bearer {token}\r\n\r\n");
        answer(&world, request.as_bytes())
    };
    assert!(get(&world, "/metrics").starts_with("HTTP/1.1 401 Unauthorized\r\n"));
    until("the flow is there", || of("sesame").contains("topic=\"/secret\"").then_some(()));
    assert!(!of("thyme").contains("/secret"));
}

#[test]
fn metrics_tell_of_no_process_to_who_may_not_know_of_a_topic_without_flows() {
    let may =
        |topics: &str| Permissions { subscribe: Globs::parse(topics).unwrap(), ..Permissions::ALL };
    let user = |name: &str, topics: &str| User {
        may: may(topics),
        ..User::unrestricted(name, Token::new(name))
    };
    let access = Access::new(ServerGlobs::default(), vec![user("all", ""), user("few", "[/map]")]);
    let world = World::with(Settings { access, ..Settings::default() });
    let _publisher = world.node.create_publisher::<Text>("/secret", Qos::default()).unwrap();
    let processes = |token: &str| {
        let request = format!("GET /metrics HTTP/1.1\r\nAuthorization: Bearer {token}\r\n\r\n");
        samples(&answer(&world, request.as_bytes()), "tsuji_process_threads").len()
    };
    until("the processes", || (processes("all") > 0).then_some(()));
    let mut client = world.client();
    client.say(&json!({ "op": "auth", "token": "all" }));
    let is_secret = |it: &Value| it["topic"] == "/secret";
    overview(&mut client, |it| it["topics"].as_array().unwrap().iter().any(is_secret));
    assert_eq!(processes("few"), 0);
}

/// What it asks for while routes are looked at, and what it waits for.
#[test]
fn the_page_shows_routes_without_waiting_for_engines() {
    run_of_the_page("system", &["system.js", "spark.js", "dom.js"]);
}

#[test]
fn the_page_tells_where_a_recording_is() {
    run_of_the_page("playback", &["playback.js", "dom.js"]);
}

/// The page's own code under `tests/page/NAME.mjs`, in node where there is one.
fn run_of_the_page(name: &str, files: &[&str]) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-of-{name}"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("package.json"), r#"{"type": "module"}"#).unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in files {
        fs::copy(sources.join("page").join(file), folder.join(file)).unwrap();
    }
    let test = sources.join(format!("tests/page/{name}.mjs"));
    let run = match Command::new("node").arg(test).arg(&folder).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        run => run.unwrap(),
    };
    let [told, wrong] = [run.stdout, run.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!((told.trim(), run.status.code()), ("all done", Some(0)), "{wrong}");
}

/// Flows of an action are those of who may send goals to it, and processes those of who may know of all flows.
#[test]
fn metrics_keep_to_the_globs_of_actions_too() {
    let globs = ServerGlobs { actions: Globs::NONE, ..ServerGlobs::default() };
    let world =
        World::with(Settings { access: Access::new(globs, Vec::new()), ..Settings::default() });
    let name = "/arm/_action/feedback";
    let _publisher = world.node.create_publisher::<Text>(name, Qos::default()).unwrap();
    let _subscription =
        world.node.create_subscription::<Text>(name, Qos::default(), |_| {}).unwrap();
    let _other = world.node.create_publisher::<Text>("/map", Qos::default()).unwrap();
    let _others = world.node.create_subscription::<Text>("/map", Qos::default(), |_| {}).unwrap();
    until("the flow is there", || get(&world, "/metrics").contains("topic=\"/map\"").then_some(()));
    assert!(!get(&world, "/metrics").contains("/arm/"));
}

/// An answer that nobody reads counts as what waits, until who asked has left.
#[test]
fn what_is_not_read_counts() {
    let world = World::new();
    // More than the system takes of a connection.
    let long = "x".repeat(240);
    let node = world.node.context().node(&long).unwrap();
    let ends: Vec<_> = (0..600)
        .map(|number| {
            let topic = format!("/{long}{number}");
            let publisher = node.create_publisher::<Text>(&topic, Qos::default()).unwrap();
            let heard = node.create_subscription::<Text>(&topic, Qos::default(), |_| {});
            (publisher, heard.unwrap())
        })
        .collect();
    let held = || samples(&get(&world, "/metrics"), "tsuji_bridge_held_bytes")[0].1;
    until("all flows are there", || {
        let told = get(&world, "/metrics");
        (samples(&told, "tsuji_flow_info").len() == ends.len()).then_some(())
    });
    let unread: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = TcpStream::connect(world.address(Protocol::WebSocket)).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            stream
        })
        .collect();
    until("what is not read counts", || (1e6 < held()).then_some(()));
    drop(unread);
    until("it is given back", || (held() < 1e6).then_some(()));
}

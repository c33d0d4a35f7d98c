//! What is remembered of a client.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::sync::Arc;
use std::time::Duration;

use tsuji_rosbridge::access::{
    Access, Act, Enclaves, Globs, Permissions, Rejected, Rosauth, ServerGlobs, Token, User,
    UserLimits,
};
use tsuji_rosbridge::client::*;
use tsuji_rosbridge::*;

const NOW: Duration = Duration::from_secs(1000);

fn limits() -> ClientLimits {
    let queue = QueueLimits { samples_max: 4, bytes_max: 100 };
    ClientLimits { names_max: 2, ids_max: 3, pending_max: 2, queue, ..ClientLimits::default() }
}

fn client() -> Client<u32, &'static str> {
    Client::new(limits())
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn advertise(client: &mut Client<u32, &'static str>, json: &str) -> String {
    let incoming = parse_json(json.as_bytes()).unwrap();
    match incoming.operation {
        Operation::Advertise(it) => match client.advertisements.advertise(&it) {
            Ok(advertised) => format!("{advertised:?}"),
            Err(refusal) => refusal.to_string(),
        },
        Operation::Unadvertise(it) => {
            format!("{:?}", client.advertisements.unadvertise(NOW, &it))
        }
        _ => panic!(),
    }
}

#[test]
fn a_topic_is_advertised_as_long_as_one_advertisement_is_left() {
    let mut client = client();
    let mut check = |json: &str, expect: &str| assert_eq!(advertise(&mut client, json), expect);
    check(r#"{"op":"advertise","id":"a","topic":"/t","type":"t/T"}"#, "Opened");
    check(r#"{"op":"advertise","id":"a","topic":"/t","type":"t/T"}"#, "Joined");
    check(r#"{"op":"advertise","topic":"/t","type":"t/T"}"#, "Joined");
    check(r#"{"op":"advertise","id":"b","topic":"/t","type":"t/T"}"#, "Joined");
    let full = "advertise: id: found one more; expected at most 3 advertisements";
    check(r#"{"op":"advertise","id":"c","topic":"/t","type":"t/T"}"#, full);
    check(r#"{"op":"advertise","id":"c","topic":"/u","type":"t/T"}"#, full);
    check(
        r#"{"op":"advertise","id":"a","topic":"/t","type":"t/U"}"#,
        "advertise: type: found t/U; expected t/T, as /t was advertised before",
    );
    check(r#"{"op":"unadvertise","id":"x","topic":"/t"}"#, "Unknown");
    check(r#"{"op":"unadvertise","id":"a","topic":"/x"}"#, "Unknown");
    check(r#"{"op":"unadvertise","id":"a","topic":"/t"}"#, "Remains");
    check(r#"{"op":"unadvertise","topic":"/t"}"#, "Leaving { at: 1010s }");
    check(r#"{"op":"unadvertise","topic":"/t"}"#, "Unknown");
    check(r#"{"op":"advertise","id":"b","topic":"/t","type":"t/T"}"#, "Joined");
    check(r#"{"op":"unadvertise","id":"b","topic":"/t"}"#, "Leaving { at: 1010s }");
    check(r#"{"op":"advertise","id":"b","topic":"/u","type":"t/T"}"#, "Opened");
    check(
        r#"{"op":"advertise","id":"b","topic":"/v","type":"t/T"}"#,
        "advertise: topic: found one more; expected at most 2 topics",
    );
    let end = NOW + Duration::from_secs(10);
    assert_eq!(client.timeout(), Some(end));
    assert!(client.advertisements.expire(end - ms(1)).is_empty());
    assert!(client.advertisements.topic("/t").is_some());
    assert_eq!(client.advertisements.expire(end), ["/t"]);
    assert!(client.advertisements.topic("/t").is_none());
    assert_eq!(client.advertisements.topics().collect::<Vec<_>>(), ["/u"]);
    assert_eq!(client.timeout(), None);
}

/// Subscribes or unsubscribes; how the stream is sent then.
fn subscribe(client: &mut Client<u32, &'static str>, json: &str) -> String {
    let told = |it: StreamSettings| {
        format!(
            "{} ms, {} wait, {:?} bytes, {:?}",
            it.throttle_rate.as_millis(),
            it.queue_length,
            it.fragment_size,
            it.compression
        )
    };
    match parse_json(json.as_bytes()).unwrap().operation {
        Operation::Subscribe(it) => match client.subscriptions.subscribe(NOW, &it) {
            Ok(Subscribed::Opened { settings, .. }) => format!("opened, {}", told(settings)),
            Ok(Subscribed::Joined { settings, qos_differs, .. }) => {
                let warning = if qos_differs { ", other QoS" } else { "" };
                format!("joined, {}{warning}", told(settings))
            }
            Err(refusal) => refusal.to_string(),
        },
        Operation::Unsubscribe(it) => match client.subscriptions.unsubscribe(NOW, &it) {
            Unsubscribed::Unknown => "unknown".to_owned(),
            Unsubscribed::Remains { settings, .. } => format!("remains, {}", told(settings)),
            Unsubscribed::Closed { .. } => "closed".to_owned(),
        },
        _ => panic!(),
    }
}

#[test]
fn subscriptions_to_a_topic_are_one_stream() {
    let mut client = client();
    let mut check = |json: &str, expect: &str| assert_eq!(subscribe(&mut client, json), expect);
    check(
        r#"{"op":"subscribe","id":"a","topic":"/t","type":"t/T","throttle_rate":100,"queue_length":5,"fragment_size":500}"#,
        "opened, 100 ms, 5 wait, Some(500) bytes, None",
    );
    check(
        r#"{"op":"subscribe","id":"b","topic":"/t","throttle_rate":50,"queue_length":9,"compression":"cbor"}"#,
        "joined, 50 ms, 5 wait, Some(500) bytes, Cbor",
    );
    check(
        r#"{"op":"subscribe","id":"c","topic":"/t","throttle_rate":100,"queue_length":50}"#,
        "joined, 50 ms, 5 wait, Some(500) bytes, Cbor",
    );
    let full = "subscribe: id: found one more; expected at most 3 subscriptions";
    check(r#"{"op":"subscribe","id":"d","topic":"/t"}"#, full);
    check(r#"{"op":"subscribe","id":"d","topic":"/u"}"#, full);
    check(
        r#"{"op":"unsubscribe","id":"c","topic":"/t"}"#,
        "remains, 50 ms, 5 wait, Some(500) bytes, Cbor",
    );
    check(
        r#"{"op":"subscribe","id":"b","topic":"/t","throttle_rate":70,"queue_length":2,"compression":"png","qos":{"depth":4}}"#,
        "joined, 70 ms, 2 wait, Some(500) bytes, Png, other QoS",
    );
    check(
        r#"{"op":"subscribe","id":"b","topic":"/t","type":"t/U"}"#,
        "subscribe: type: found t/U; expected t/T, as /t was subscribed before",
    );
    check(r#"{"op":"unsubscribe","id":"x","topic":"/t"}"#, "unknown");
    check(
        r#"{"op":"unsubscribe","id":"a","topic":"/t"}"#,
        "remains, 70 ms, 2 wait, None bytes, Png",
    );
    check(
        r#"{"op":"subscribe","topic":"/u","compression":"cbor-raw"}"#,
        "opened, 0 ms, 0 wait, None bytes, CborRaw",
    );
    check(
        r#"{"op":"subscribe","topic":"/v"}"#,
        "subscribe: topic: found one more; expected at most 2 topics",
    );
    check(r#"{"op":"unsubscribe","topic":"/t"}"#, "closed");
    check(r#"{"op":"unsubscribe","topic":"/t"}"#, "unknown");
}

fn stream(client: &mut Client<u32, &'static str>, topic: &str, options: &str) -> StreamKey {
    let json = format!(r#"{{"op":"subscribe","id":"1","topic":"{topic}"{options}}}"#);
    subscribe(client, &json);
    client.subscriptions.key(topic).unwrap()
}

fn taken(client: &mut Client<u32, &'static str>, now: Duration) -> Vec<u32> {
    std::iter::from_fn(|| client.subscriptions.take(now)).map(|(_, sample)| sample).collect()
}

#[test]
fn a_queue_keeps_the_newest() {
    let mut client = client();
    let key = stream(&mut client, "/t", r#","queue_length":2"#);
    for sample in 1..=5 {
        assert!(client.subscriptions.offer(NOW, key, sample, 10));
    }
    assert_eq!(client.held_bytes(), 20);
    assert_eq!(taken(&mut client, NOW), [4, 5]);
    let status = StreamStatus { waiting: 0, taken: 2, dropped: 3, throttled: 0 };
    assert_eq!(client.subscriptions.status(key), Some(status));
    assert_eq!(client.held_bytes(), 0);
}

#[test]
fn without_a_queue_length_as_many_wait_as_may() {
    let mut client = client();
    let key = stream(&mut client, "/t", "");
    for sample in 1..=6 {
        assert!(client.subscriptions.offer(NOW, key, sample, 10));
    }
    assert_eq!(taken(&mut client, NOW), [3, 4, 5, 6]);
}

#[test]
fn what_does_not_fit_pushes_out_the_oldest_of_its_topic() {
    let mut client = client();
    let small = stream(&mut client, "/small", "");
    let large = stream(&mut client, "/large", "");
    assert!(client.subscriptions.offer(NOW, large, 1, 500), "one alone always fits");
    assert!(!client.subscriptions.offer(NOW, small, 2, 10));
    assert!(client.subscriptions.offer(NOW, large, 3, 60));
    assert!(client.subscriptions.offer(NOW, small, 4, 40));
    assert!(client.subscriptions.offer(NOW, small, 5, 30));
    assert_eq!(client.held_bytes(), 90);
    assert_eq!(taken(&mut client, NOW), [3, 5]);
    assert_eq!(client.subscriptions.status(small).unwrap().dropped, 2);
}

#[test]
fn where_all_have_too_much_the_oldest_go_of_the_topic_with_the_most() {
    let mut client = client();
    let (t, u) = (stream(&mut client, "/t", ""), stream(&mut client, "/u", ""));
    for (key, sample, bytes) in [(t, 1, 10), (u, 2, 20), (u, 3, 20), (t, 4, 10), (u, 5, 10)] {
        assert!(client.subscriptions.offer(NOW, key, sample, bytes));
    }
    assert_eq!((client.subscriptions.shed(0), client.subscriptions.shed(15)), (0, 1));
    assert_eq!(client.subscriptions.held_bytes(), 50);
    // All of one topic, and then of the other; what is left still goes.
    assert_eq!(client.subscriptions.shed(35), 3);
    assert_eq!(client.subscriptions.held_bytes(), 10);
    assert_eq!(taken(&mut client, NOW), [4]);
    assert_eq!(client.subscriptions.shed(1), 0);
    assert!(client.subscriptions.offer(NOW, u, 6, 10));
    assert_eq!(taken(&mut client, NOW), [6]);
    let dropped = [t, u].map(|it| client.subscriptions.status(it).unwrap().dropped);
    assert_eq!(dropped, [1, 3]);
}

#[test]
fn a_throttled_stream_without_a_queue_drops_what_comes_too_early() {
    let mut client = client();
    let key = stream(&mut client, "/t", r#","throttle_rate":100"#);
    let mut offered = Vec::new();
    for (sample, at) in [(1, 0), (2, 99), (3, 100), (4, 150), (5, 320)] {
        if client.subscriptions.offer(NOW + ms(at), key, sample, 1) {
            offered.push(sample);
        }
    }
    assert_eq!(offered, [1, 3, 5]);
    assert_eq!(taken(&mut client, NOW), offered);
    assert_eq!(client.subscriptions.status(key).unwrap().throttled, 2);
}

#[test]
fn a_throttled_stream_with_a_queue_sends_what_waits_in_its_time() {
    let mut client = client();
    let key = stream(&mut client, "/t", r#","throttle_rate":100,"queue_length":2"#);
    for sample in 1..=4 {
        assert!(client.subscriptions.offer(NOW, key, sample, 1));
    }
    assert!(client.subscriptions.is_ready(NOW));
    assert_eq!(taken(&mut client, NOW), [3]);
    assert_eq!(client.timeout(), Some(NOW + ms(100)));
    assert!(!client.subscriptions.is_ready(NOW + ms(99)));
    assert_eq!(taken(&mut client, NOW + ms(99)), []);
    assert_eq!(taken(&mut client, NOW + ms(100)), [4]);
    assert_eq!(client.timeout(), None);
    assert!(client.subscriptions.offer(NOW + ms(150), key, 5, 1));
    assert_eq!(client.timeout(), Some(NOW + ms(200)));
    // A subscription that is not throttled makes the stream so.
    subscribe(&mut client, r#"{"op":"subscribe","id":"2","topic":"/t","queue_length":9}"#);
    assert_eq!(client.timeout(), None);
    assert_eq!(taken(&mut client, NOW + ms(150)), [5]);
}

#[test]
fn what_the_throttle_rate_leaves_out_is_not_called_dropped() {
    let mut client = client();
    let key = stream(&mut client, "/t", r#","throttle_rate":100,"queue_length":1"#);
    let offer = |client: &mut Client<u32, &'static str>, at: u64, sample| {
        assert!(client.subscriptions.offer(NOW + ms(at), key, sample, 1));
    };
    let told = |client: &Client<u32, &'static str>| {
        let status = client.subscriptions.status(key).unwrap();
        (status.throttled, status.dropped)
    };
    // All at once, while the next one waits for its time, and when its time has just come.
    (0..3).for_each(|sample| offer(&mut client, 0, sample));
    assert_eq!(taken(&mut client, NOW), [2]);
    (3..6).for_each(|sample| offer(&mut client, 50, sample));
    assert!(client.subscriptions.is_ready(NOW + ms(100)));
    offer(&mut client, 110, 6);
    assert_eq!(taken(&mut client, NOW + ms(120)), [6]);
    assert_eq!(told(&client), (5, 0));
    // Whoever does not take one for so long is slow.
    (7..9).for_each(|sample| offer(&mut client, 300, sample));
    offer(&mut client, 401, 9);
    assert_eq!(told(&client), (6, 1));
}

#[test]
fn what_a_publisher_keeps_is_sent_whatever_the_throttle_rate_and_the_queue_length() {
    for options in [
        r#","throttle_rate":100"#,
        r#","queue_length":1"#,
        r#","throttle_rate":100,"queue_length":1"#,
    ] {
        let mut client = client();
        let key = stream(&mut client, "/t", options);
        assert!(client.subscriptions.offer(NOW, key, 1, 1));
        for sample in 2..=4 {
            assert!(client.subscriptions.offer_kept(NOW, key, sample, 1));
        }
        assert_eq!(taken(&mut client, NOW), [1, 2, 3, 4], "{options}");
        for sample in 5..=7 {
            assert!(client.subscriptions.offer_kept(NOW, key, sample, 1));
        }
        // What comes next is as any other: dropped, in its time, or in the place of the one before.
        for sample in 8..=9 {
            client.subscriptions.offer(NOW, key, sample, 1);
        }
        let status = client.subscriptions.status(key).unwrap();
        assert_eq!(
            status.dropped + status.throttled,
            if options.contains("queue") { 1 } else { 2 }
        );
        assert_eq!(taken(&mut client, NOW)[..3], [5, 6, 7], "{options}");
        client.subscriptions.shed(usize::MAX);
        assert_eq!(client.subscriptions.held_bytes(), 0);
    }
}

#[test]
fn topics_take_turns() {
    let mut client = client();
    let a = stream(&mut client, "/a", "");
    let b = stream(&mut client, "/b", "");
    for sample in 1..=3 {
        client.subscriptions.offer(NOW, a, sample, 1);
    }
    client.subscriptions.offer(NOW, b, 10, 1);
    client.subscriptions.offer(NOW, b, 11, 1);
    assert_eq!(taken(&mut client, NOW), [1, 10, 2, 11, 3]);
    client.subscriptions.offer(NOW, a, 4, 1);
    client.subscriptions.offer(NOW, b, 12, 1);
    assert_eq!(subscribe(&mut client, r#"{"op":"unsubscribe","topic":"/a"}"#), "closed");
    assert_eq!(taken(&mut client, NOW), [12]);
    assert_eq!(client.held_bytes(), 0);
    assert!(!client.subscriptions.offer(NOW, a, 5, 1));
    let again = stream(&mut client, "/a", "");
    assert_ne!(again, a);
    assert!(!client.subscriptions.offer(NOW, a, 5, 1), "the key of a stream that is gone");
    assert_eq!(client.subscriptions.status(a), None);
    assert_eq!(client.subscriptions.topic(again), Some("/a"));
}

#[test]
fn what_is_served() {
    let mut served = client().served;
    let mut check = |kind, name: &str, ty: &str, expect| {
        assert_eq!(served.advertise(kind, name, ty), expect);
    };
    check(Kind::Service, "/s", "t/T", ServedName::Opened);
    check(Kind::Service, "/s", "t/T", ServedName::Again);
    check(Kind::Service, "/s", "t/U", ServedName::Replaced);
    check(Kind::Action, "/s", "t/A", ServedName::Opened);
    check(Kind::Action, "/u", "t/A", ServedName::Full { names_max: 2 });
    assert_eq!(served.ty(Kind::Service, "/s"), Some("t/U"));
    assert_eq!(served.next_id(Kind::Service, "/s").to_string(), "service_request:/s:1");
    assert_eq!(served.next_id(Kind::Action, "/s").to_string(), "action_goal:/s:2");
    assert!(served.unadvertise(Kind::Service, "/s"));
    assert!(!served.unadvertise(Kind::Service, "/s"));
    assert_eq!(served.names().collect::<Vec<_>>(), [(Kind::Action, "/s")]);
}

#[test]
fn what_is_pending() {
    let mut pending = client().asked;
    let id = |text: &'static str| Id::Text(text.into());
    let soon = Some(NOW + ms(10));
    let first = pending.begin(Some(id("a")), "/s", soon, "first").unwrap();
    assert_eq!(pending.begin(None, "/s", Some(NOW + ms(5)), "second"), Ok(first + 1));
    assert_eq!(pending.begin(Some(id("c")), "/s", soon, "third"), Err("third"));
    assert_eq!(pending.answer(&id("b"), "/s"), None);
    assert_eq!(pending.answer(&id("a"), "/other"), None);
    assert_eq!(pending.timeout(), Some(NOW + ms(5)));
    let expired = pending.expire(NOW + ms(5));
    assert_eq!(expired[0].context, "second");
    assert_eq!(pending.key(&id("a")), Some(first));
    *pending.context(first).unwrap().1 = "changed";
    assert_eq!(pending.answer(&id("a"), "/s").unwrap().context, "changed");
    assert!(pending.is_empty());
    assert_eq!(pending.timeout(), None);
    // An id that comes again is that of the last, and the first still ends.
    pending.begin(Some(id("a")), "/s", None, "old").unwrap();
    pending.begin(Some(id("a")), "/s", None, "new").unwrap();
    assert_eq!(pending.answer(&id("a"), "/s").unwrap().context, "new");
    assert_eq!(pending.answer(&id("a"), "/s"), None);
    assert_eq!(pending.end_all("/s")[0].context, "old");
    pending.begin(None, "/s", None, "left").unwrap();
    assert_eq!(pending.drain().len(), 1);
    assert_eq!(pending.len(), 0);
}

#[test]
fn globs() {
    let check = |text: &str, name: &str, expect| {
        assert_eq!(Globs::parse(text).unwrap().allow(name), expect, "{text} {name}");
    };
    check("", "/a", true);
    check("None", "/a", true);
    check("[]", "/a", false);
    check("[/a*, /b]", "/a/deep", true);
    check("[/a*, /b]", "/b", true);
    check("[/a*, /b]", "/bb", false);
    check("['/a', \"/b\"]", "/b", true);
    check("[/*/x/*/y]", "/1/x/2/x/3/y", true);
    check("[/a?c]", "/abc", true);
    check("[/a?c]", "/ac", false);
    check("[/a[b-d]]", "/ac", true);
    check("[/a[!b-d]]", "/ac", false);
    check("[/a[b,c], /d]", "/a,", true);
    check("[/a[]]x]", "/a]x", true);
    check("[*a*a*a*a*a*a*a*b]", &"a".repeat(200), false);
    assert!(Globs::parse("/a").is_err());
    assert!(!Globs::new(["/[a"]).allow("/b"));
    assert!(Globs::new(["/[a"]).allow("/[a"));
}

#[test]
fn access() {
    let globs = ServerGlobs {
        topics: Globs::parse("[/open/*]").unwrap(),
        services: Globs::parse("[/s]").unwrap(),
        ..ServerGlobs::default()
    };
    let anyone = Access::new(globs.clone(), Vec::new());
    let check = |access: &Access, token: Option<&str>, act, name: &str, expect: &str| {
        let user = token.map(|token| access.user(token).unwrap());
        let got = access.decide(user, act, name).err().map(|it| it.to_string());
        assert_eq!(got.as_deref().unwrap_or("allowed"), expect);
    };
    check(&anyone, None, Act::Publish, "/open/a", "allowed");
    check(
        &anyone,
        None,
        Act::Subscribe,
        "/closed",
        "a client may not subscribe \"/closed\": topics_glob allows [/open/*]",
    );
    check(&anyone, None, Act::CallService, "/rosapi/topics", "allowed");
    check(&anyone, None, Act::SendGoal, "/any", "allowed");
    let none = ServerGlobs { services: Globs::parse("[]").unwrap(), ..ServerGlobs::default() };
    check(
        &Access::new(none, Vec::new()),
        None,
        Act::CallService,
        "/rosapi/topics",
        "a client may not call_service \"/rosapi/topics\": services_glob allows []",
    );
    let may = Permissions {
        publish: Globs::new(["/open/arm"]),
        call_service: Globs::NONE,
        ..Permissions::ALL
    };
    let user = User { may, ..User::unrestricted("arm", Token::new("secret")) };
    let users = Access::new(globs, vec![user]);
    assert!(users.needs_user());
    for wrong in ["secre", "secreT", ""] {
        assert_eq!(users.user(wrong), None);
    }
    check(
        &users,
        None,
        Act::Publish,
        "/open/arm",
        "a client may not publish \"/open/arm\": it has not authenticated",
    );
    let arm = Some("secret");
    check(&users, arm, Act::Publish, "/open/arm", "allowed");
    check(
        &users,
        arm,
        Act::Publish,
        "/open/leg",
        "\"arm\" may not publish \"/open/leg\": this user is allowed [/open/arm]",
    );
    check(&users, arm, Act::Subscribe, "/open/leg", "allowed");
    check(
        &users,
        arm,
        Act::CallService,
        "/s",
        "\"arm\" may not call_service \"/s\": this user is allowed []",
    );
    check(&users, arm, Act::ServeService, "/s", "allowed");
    // The server's globs hold for what makes the name known.
    check(&users, arm, Act::SetRoute, "/closed", "allowed");
}

#[test]
fn who_has_not_said_who_it_is_may_do_what_anonymous_may() {
    let limits = UserLimits { memory_bytes_max: Some(7), ..UserLimits::default() };
    let may = Permissions { subscribe: Globs::new(["/map"]), ..Permissions::NONE };
    let anonymous = User { may, limits, ..User::unrestricted("anonymous", None) };
    let known = User::unrestricted("arm", Token::new("secret"));
    let access = Access::new(ServerGlobs::default(), vec![known]).with_anonymous(anonymous);
    assert!(!access.needs_user());
    assert_eq!(access.limits(None), limits);
    assert!(access.decide(None, Act::Subscribe, "/map").is_ok());
    let denial = access.decide(None, Act::Publish, "/map").unwrap_err().to_string();
    assert_eq!(denial, "\"anonymous\" may not publish \"/map\": this user is allowed []");
    let denial = access.decide(None, Act::SetRoute, "/map").unwrap_err().to_string();
    assert_eq!(denial, "\"anonymous\" may not set_route \"/map\": this user is allowed []");
    let arm = access.user("secret");
    assert!(arm.is_some() && access.decide(arm, Act::Publish, "/map").is_ok());
    assert_eq!(access.limits(arm), UserLimits::default());
}

#[test]
fn whoever_is_of_an_enclave_may_do_what_that_allows_too() {
    #[derive(Debug)]
    struct OnlyMaps;

    impl Enclaves for OnlyMaps {
        fn denial(&self, enclave: &str, act: Act, name: &str) -> Option<String> {
            (name != "/map").then(|| format!("{enclave} has no {act} of {name}"))
        }

        fn version(&self, _: &str) -> u64 {
            7
        }
    }

    let may = Permissions { publish: Globs::NONE, ..Permissions::ALL };
    let enclave = Some("/viewer".to_owned());
    let viewer = User { may, enclave, ..User::unrestricted("a", Token::new("secret")) };
    let steady = User::unrestricted("b", Token::new("other"));
    let access = Access::new(ServerGlobs::default(), vec![viewer, steady]);
    let user = access.user("secret");
    let denied = |access: &Access, act, name| {
        let denial = access.decide(user, act, name).err();
        denial.map_or_else(String::new, |it| it.to_string())
    };
    let nobody = denied(&access, Act::Subscribe, "/map");
    assert!(nobody.ends_with("nobody says what the enclave \"/viewer\" may do"), "{nobody}");
    assert_eq!(access.enclaves().collect::<Vec<_>>(), ["/viewer"]);
    assert_eq!(access.version(user), None);
    let access = access.with_enclaves(Arc::new(OnlyMaps));
    let versions = [user, access.user("other"), None].map(|it| access.version(it));
    assert_eq!(versions, [Some(7), None, None]);
    assert_eq!(denied(&access, Act::Subscribe, "/map"), "");
    let why = "\"a\" may not subscribe \"/scan\": /viewer has no subscribe of /scan";
    assert_eq!(denied(&access, Act::Subscribe, "/scan"), why);
    // What the user's own names do not allow no enclave does.
    let why = "\"a\" may not publish \"/map\": this user is allowed []";
    assert_eq!(denied(&access, Act::Publish, "/map"), why);
}

#[test]
fn a_parameter_is_named_whole_or_alone() {
    let globs = |params: &str| ServerGlobs {
        params: Globs::parse(params).unwrap(),
        ..ServerGlobs::default()
    };
    for (params, allowed) in [
        ("", true),
        ("[]", false),
        ("[gain]", true),
        ("[/camera:*]", true),
        ("[/camera]", false),
        ("[/arm:*, exposure]", false),
    ] {
        let access = Access::new(globs(params), Vec::new());
        let decided = access.decide(None, Act::ReadParameter, "/camera:gain");
        assert_eq!(decided.is_ok(), allowed, "{params}");
    }
}

/// A token that is written down only as its hash, by `printf sesame | sha256sum`.
#[test]
fn a_token_is_known_by_its_hash() {
    let hash = "D0C04F4B1951e4aeaaec8223ed2039e542f3aae805a6fa7f6d794e5afff5d272";
    assert_eq!(Token::from_sha256(hash), Token::new("sesame"));
    assert_eq!(Token::from_sha256(&hash[1..]), None);
    assert_eq!(Token::from_sha256(&hash.replace('D', "g")), None);
    assert_eq!(Token::new(""), None);
    assert_eq!(format!("{:?}", Token::new("sesame")), "Some(Token(_))");
}

/// The members are those of rosauth's own test, the hash is by `printf … | sha512sum`.
const AUTH: &str = r#"{"op":"auth","client":"192.168.1.101","dest":"192.168.1.111","rand":"xyzabc",
    "t":1700000000,"level":"admin","end":1700000120,"mac":"982c7fa52085714b781f045ab6e94c99190d6caa801a9f2c7c49a7aa84cf1ee79aab77f904ffd8c1b2158903f0699426a73c3c70341bf3a22709844d757ff9cc"}"#;

#[test]
fn a_hash_of_rosauth_is_known_for_its_time_and_its_level() {
    let recognise = |access: &Access, text: &str, wall: f64| {
        let Operation::Auth(auth) = parse_json(text.as_bytes()).unwrap().operation else {
            panic!()
        };
        access.recognise(&auth, Duration::from_secs_f64(wall))
    };
    let none = Access::new(ServerGlobs::default(), Vec::new());
    assert_eq!(recognise(&none, AUTH, 1.7e9), Err(Rejected::NotOffered));
    let any = none.clone().with_rosauth(Rosauth::new("abcdefghijklmnop"));
    assert!(any.needs_user() && any.decide(None, Act::Publish, "/a").is_err());
    let known = recognise(&any, AUTH, 1.7e9 + 2.0).unwrap();
    assert_eq!(known.remaining, Duration::from_secs(118));
    assert_eq!(any.name(known.user), "rosauth");
    assert!(any.decide(Some(known.user), Act::Publish, "/a").is_ok());
    // A fraction of a second is not hashed.
    let fraction = AUTH.replace("1700000000", "1700000000.75");
    assert!(recognise(&any, &fraction, 1.7e9).is_ok());
    for (from, to, wall, why) in [
        ("admin", "guest", 1.7e9, Rejected::Mac),
        ("982c", "982d", 1.7e9, Rejected::Mac),
        ("982c", "98", 1.7e9, Rejected::Mac),
        ("1700000120", "1700000121", 1.7e9, Rejected::Mac),
        ("1700000120", "1700000000", 1.7e9 + 1.0, Rejected::Ended),
        ("", "", 1.7e9 + 6.0, Rejected::Time),
        ("", "", 1.7e9 - 6.0, Rejected::Time),
    ] {
        let said = if from.is_empty() { AUTH.to_owned() } else { AUTH.replace(from, to) };
        assert_eq!(recognise(&any, &said, wall), Err(why), "{from} {to} {wall}");
    }
    let other = none.with_rosauth(Rosauth::new("abcdefghijklmnoq"));
    assert_eq!(recognise(&other, AUTH, 1.7e9), Err(Rejected::Mac));

    let strict = Rosauth { otherwise: None, ..Rosauth::new("abcdefghijklmnop") };
    let named =
        |name: &str| Access::new(ServerGlobs::default(), vec![User::unrestricted(name, None)]);
    let admin = named("admin").with_rosauth(strict.clone());
    assert_eq!(admin.name(recognise(&admin, AUTH, 1.7e9).unwrap().user), "admin");
    let guest = named("guest").with_rosauth(strict);
    assert_eq!(recognise(&guest, AUTH, 1.7e9), Err(Rejected::Level));
}

#[test]
fn what_is_dropped_beyond_a_rate_is_not_paid_for() {
    let mut bucket = Bucket::new(NOW, Rate::steady(2.0));
    assert!(bucket.take_if(NOW, 1.0) && bucket.take_if(NOW, 1.0));
    for _ in 0..100 {
        assert!(!bucket.take_if(NOW, 1.0));
    }
    assert!(bucket.take_if(NOW + ms(500), 1.0));
    // What is larger than a burst comes through when nothing else has.
    assert!(!bucket.take_if(NOW + ms(1400), 5.0));
    assert!(bucket.take_if(NOW + ms(1500), 5.0));
    assert!(!bucket.take_if(NOW + ms(3400), 1.0));
    assert!(bucket.take_if(NOW + ms(3600), 1.0));
    assert_eq!(Rate::steady(0.1).burst, 1.0);
}

#[test]
fn what_may_wait_can_become_less_and_more() {
    let mut client = client();
    let subscribed = parse_json(br#"{"op":"subscribe","topic":"/a"}"#).unwrap();
    let Operation::Subscribe(asked) = subscribed.operation else { panic!() };
    let Ok(Subscribed::Opened { key, .. }) = client.subscriptions.subscribe(NOW, &asked) else {
        panic!()
    };
    client.limit_bytes(20, 1000);
    for sample in 0..3 {
        client.subscriptions.offer(NOW, key, sample, 10);
    }
    assert_eq!((client.held_bytes(), client.subscriptions.status(key).unwrap().dropped), (20, 1));
    let piece =
        |data: &str| format!(r#"{{"op":"fragment","id":"f","num":0,"total":2,"data":"{data}"}}"#);
    let add = |client: &mut Client<u32, &'static str>, length: usize| {
        let text = piece(&"x".repeat(length));
        let Operation::Fragment(it) = parse_json(text.as_bytes()).unwrap().operation else {
            panic!()
        };
        client.fragments.add(NOW, &it)
    };
    assert!(add(&mut client, 900).is_err());
    client.limit_bytes(100, 2000);
    assert_eq!(add(&mut client, 900).unwrap(), None);
    client.subscriptions.offer(NOW, key, 3, 10);
    assert_eq!(client.subscriptions.held_bytes(), 30);
}

#[test]
fn a_rate_is_kept_after_a_burst() {
    let mut bucket = Bucket::new(NOW, Rate { per_second: 10.0, burst: 2.0 });
    assert_eq!(bucket.take(NOW, 1.0), Duration::ZERO);
    assert_eq!(bucket.take(NOW, 1.0), Duration::ZERO);
    assert_eq!(bucket.take(NOW, 1.0), ms(100));
    assert_eq!(bucket.take(NOW + ms(100), 1.0), ms(100));
    assert_eq!(bucket.take(NOW + ms(300), 1.0), Duration::ZERO);
    assert_eq!(bucket.take(NOW + Duration::from_secs(100), 2.0), Duration::ZERO);
    assert_eq!(bucket.take(NOW + Duration::from_secs(100), 2.0), ms(200));
}

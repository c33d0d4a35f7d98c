//! Actions and parameters on rmw_zenoh's wire, with nodes that nobody here wrote, those of hiroz, as real processes, and
//! a router. Where the plug-in (`scripts/zenoh`) or the peer (`build_hiroz` in scripts/peers.sh) was not built these tests
//! do nothing, but with `TSUJI_ZENOH` set they fail.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use tsuji::Interop;
use tsuji::action::{ActionServerOptions, CancelOutcome, GoalHandle, GoalStatus};
use tsuji::parameter::{
    Parameter, ParameterClient, ParameterDescriptor, ParameterRange, ParameterType, ParameterValue,
};
use tsuji::{Context, History, Qos, RouteState};
use tsuji_interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciGoal, FibonacciResult,
};
use tsuji_interfaces::rcl_interfaces::msg::ParameterEvent;

#[path = "house/world.rs"]
mod world;
use world::peer::{Peer, free_port};
use world::{Folder, HANG, spun};

/// A router, and where it is.
struct Side {
    port: u16,
    domain: u32,
    folder: Folder,
    _router: Peer,
}

impl Side {
    fn start(domain: u32) -> Option<Self> {
        let folder = Folder::new();
        let offered = folder.process().transports();
        let zenoh = offered.iter().find(|it| it.name == "zenoh").unwrap();
        let is_built = zenoh.is_installed && std::env::var_os("TSUJI_PEER_HIROZ").is_some();
        if !is_built && std::env::var_os("TSUJI_ZENOH").is_none() {
            let why = zenoh.trouble.as_deref().unwrap_or("TSUJI_PEER_HIROZ is not set");
            let _ = writeln!(std::io::stderr(), "skipped: {why}");
            return None;
        }
        let port = free_port(domain);
        let router = Peer::hiroz(&format!("router {port}"), &[]);
        Some(Self { port, domain, folder, _router: router })
    }

    /// A node of hiroz that is named `theirs`.
    fn peer(&self, arguments: &str) -> Peer {
        let variables = [
            ("HIROZ_ROUTER", format!("tcp/127.0.0.1:{}", self.port)),
            ("HIROZ_DOMAIN", self.domain.to_string()),
            ("HIROZ_NODE", "theirs".to_owned()),
        ];
        Peer::hiroz(arguments, &variables)
    }

    fn context(&self) -> Context {
        let policy = self.folder.0.with_extension("xml");
        let text = format!(
            r#"<tsuji><transport name="zenoh"><set key="connect" value="tcp/127.0.0.1:{}"/></transport></tsuji>"#,
            self.port
        );
        std::fs::write(&policy, text).unwrap();
        let builder = Context::builder().runtime_dir(&self.folder.0).domain(self.domain);
        let builder = builder.policy_file(&policy).interop(Interop::ZENOH).isolated();
        let context = builder.build().unwrap();
        std::fs::remove_file(policy).unwrap();
        assert_eq!(context.interop(), Interop::ZENOH);
        context
    }
}

/// Waits until so many foreign nodes hear what is published to each of the topics.
fn wait_for_listeners(context: &Context, topics: &[&str], count: usize) {
    let began = Instant::now();
    loop {
        let routes = context.routes(HANG).unwrap();
        let is_heard = |topic: &&str| {
            let active = |it: &&tsuji::RouteReport| it.state == RouteState::Active;
            let own = routes.iter().filter(|it| it.topic == *topic && it.peer == "zenoh");
            own.filter(active).count() == count
        };
        if topics.iter().all(is_heard) {
            return;
        }
        assert!(began.elapsed() < HANG, "{routes:#?}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn goal(order: i32) -> FibonacciGoal {
    FibonacciGoal { order }
}

const FIVE: [i32; 6] = [0, 1, 1, 2, 3, 5];

#[test]
fn a_plain_server_pursues_rejects_and_cancels_our_goals() {
    let Some(side) = Side::start(94) else { return };
    let context = side.context();
    let client =
        context.node("asking").unwrap().create_action_client::<Fibonacci>("theirs").unwrap();
    let peer = side.peer("pursue theirs");
    client.wait_for_server(HANG).unwrap();
    let five = client.send_goal(goal(5), HANG).unwrap().expect("the goal of 5 is accepted");
    peer.says(&["accepted 5", "succeeded 5"]);
    for length in 3..=6 {
        let feedback = five.next_feedback(HANG).unwrap().expect("it is told of each step");
        assert_eq!(feedback.sequence[..], FIVE[..length]);
    }
    assert!(five.next_feedback(HANG).unwrap().is_none());
    assert_eq!(five.status(), GoalStatus::Succeeded);
    let (status, result) = five.result(HANG).unwrap();
    assert_eq!((status, &result.sequence[..]), (GoalStatus::Succeeded, &FIVE[..]));

    assert!(client.send_goal(goal(26), HANG).unwrap().is_none());
    peer.says(&["rejected 26"]);

    let endless = client.send_goal(goal(-1), HANG).unwrap().expect("the goal of -1 is accepted");
    peer.says(&["accepted -1"]);
    thread::scope(|scope| {
        // Somebody waits for the result while it is given up.
        let result = scope.spawn(|| endless.result(HANG).unwrap());
        assert_eq!(five.cancel(HANG).unwrap(), CancelOutcome::UnknownGoal);
        assert_eq!(endless.cancel(HANG).unwrap(), CancelOutcome::Canceling);
        let (status, result) = result.join().unwrap();
        assert_eq!((status, &result.sequence[..]), (GoalStatus::Canceled, &FIVE[..3]));
    });
    peer.says(&["canceled -1"]);
}

/// A negative order is pursued until it is to be given up.
fn pursue(handle: GoalHandle<Fibonacci>) {
    let order = handle.goal().order;
    let mut sequence = vec![0, 1];
    for _ in 1..order.max(2) {
        sequence.push(sequence[sequence.len() - 1] + sequence[sequence.len() - 2]);
        handle.publish_feedback(FibonacciFeedback { sequence: sequence.clone() }).unwrap();
    }
    let result = FibonacciResult { sequence };
    if 0 <= order {
        handle.succeed(result).unwrap();
    } else if handle.sleep(HANG) {
        handle.canceled(result).unwrap();
    }
}

#[test]
fn plain_clients_have_their_goals_pursued_rejected_and_canceled() {
    let Some(side) = Side::start(95) else { return };
    let context = side.context();
    let node = context.node("serving").unwrap();
    let _server = node
        .create_action_server(
            ActionServerOptions::<Fibonacci>::new("ours").on_goal(|_, goal| goal.order <= 25),
            pursue,
        )
        .unwrap();
    let own = context.node("asking").unwrap().create_action_client::<Fibonacci>("ours").unwrap();
    let check = |arguments: &str, expect: &[&str]| {
        let mut peer = side.peer(&format!("ask ours {arguments}"));
        peer.says(&["matched"]);
        let topics = ["/ours/_action/feedback", "/ours/_action/status"];
        wait_for_listeners(&context, &topics, 1);
        peer.go_on();
        peer.says(expect);
        drop(peer);
        wait_for_listeners(&context, &topics, 0);
    };
    spun(&node, || {
        let five = [
            "accepted",
            "feedback [0, 1, 1]",
            "feedback [0, 1, 1, 2]",
            "feedback [0, 1, 1, 2, 3]",
            "feedback [0, 1, 1, 2, 3, 5]",
            "Succeeded [0, 1, 1, 2, 3, 5]",
        ];
        check("5", &five);
        check("26", &["rejected"]);
        let canceled = |told| ["accepted", "feedback [0, 1, 1]", told, "Canceled [0, 1, 1]"];
        check("-1 cancel", &canceled("canceling 0 1"));
        check("-1 cancel-all", &canceled("canceling 0 1"));
        // It asks with the time of day beside the goal's name, which by the rules of CancelGoal is all goals until then.
        let earlier = own.send_goal(goal(-1), HANG).unwrap().expect("the goal of -1 is accepted");
        check("-1 cancel", &canceled("canceling 0 2"));
        let (status, result) = earlier.result(HANG).unwrap();
        assert_eq!((status, &result.sequence[..]), (GoalStatus::Canceled, &FIVE[..3]));
    });
}

#[test]
fn a_plain_node_asks_for_sets_and_hears_of_our_parameters() {
    let Some(side) = Side::start(96) else { return };
    let context = side.context();
    let node = context.node_in("ours", "/robot").unwrap();
    let parameters = node.parameters().unwrap();
    let range = Some(ParameterRange::FloatingPoint { from: 0.0, to: 1.0, step: 0.0 });
    let described =
        ParameterDescriptor { description: "m/s".into(), range, ..ParameterDescriptor::default() };
    parameters.declare_with("arm.speed", 0.5, described).unwrap();
    parameters.declare("label", "demo".to_owned()).unwrap();
    spun(&node, || {
        let mut peer = side.peer("inspect /robot/ours arm.speed 0.75 9");
        peer.says(&["matched"]);
        wait_for_listeners(&context, &["/parameter_events"], 1);
        peer.go_on();
        let lines: Vec<String> =
            std::iter::repeat_with(|| peer.line()).take_while(|it| it != "done").collect();
        let (mut events, answers): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|it| it.starts_with("event "));
        let refused =
            "Parameter {arm.speed} doesn't comply with floating point range; allowed: 0.0 to 1.0";
        let expect = [
            "names arm.speed label of arm".to_owned(),
            "value [Double(0.5)]".to_owned(),
            "type [Double]".to_owned(),
            "described arm.speed Double \"m/s\" Some((0.0, 1.0))".to_owned(),
            "set true \"\"".to_owned(),
            "set atomically true \"\"".to_owned(),
            format!("set false {refused:?}"),
            format!("set atomically false {refused:?}"),
        ];
        assert_eq!(answers, expect);
        while events.len() < 2 {
            events.push(peer.line());
        }
        assert_eq!(events, ["event arm.speed 0.75", "event arm.speed 0.75"]);
        assert_eq!(parameters.get::<f64>("arm.speed").unwrap(), 0.75);
    });
}

#[test]
fn we_ask_for_set_and_hear_of_the_parameters_of_a_plain_node() {
    let Some(side) = Side::start(97) else { return };
    let context = side.context();
    let asking = context.node("asking").unwrap();
    let peer = side.peer("offer");
    let keep_1000 = Qos { history: History::KeepLast(1000), ..Qos::DEFAULT };
    let events = asking
        .create_polled_subscription::<ParameterEvent>("/parameter_events", keep_1000)
        .unwrap();
    events.wait_for_publishers(1, HANG).unwrap();
    let client = ParameterClient::new(&asking, "/theirs");
    let all = client.list(&[], 0, HANG).unwrap();
    let names = ["arm.gain", "enabled", "label", "rate_hz", "raw", "sizes", "tags"];
    assert_eq!(
        (&all.names[..], &all.prefixes[..]),
        (&names.map(String::from)[..], &["arm".to_owned()][..])
    );
    let expect: [ParameterValue; 7] = [
        0.5.into(),
        true.into(),
        "demo".into(),
        1i64.into(),
        vec![1u8, 2, 3].into(),
        vec![640i64, 480].into(),
        vec!["a".to_owned(), "b".to_owned()].into(),
    ];
    assert_eq!(client.get(&names, HANG).unwrap(), expect);
    let types = client.types(&["arm.gain", "raw", "sizes"], HANG).unwrap();
    let expect = [ParameterType::Double, ParameterType::ByteArray, ParameterType::IntegerArray];
    assert_eq!(types, expect);
    let [rate] = &client.describe(&["rate_hz"], HANG).unwrap()[..] else { panic!("one") };
    assert_eq!((rate.name.as_str(), rate.ty), ("rate_hz", ParameterType::Integer));
    assert_eq!(rate.descriptor.description, "how often, in Hz");
    let range = ParameterRange::Integer { from: 1, to: 1000, step: 1 };
    assert_eq!(rate.descriptor.range, Some(range));

    let set = |value: i64| client.set(vec![Parameter::new("rate_hz", value)], HANG).unwrap();
    assert_eq!(set(20), [Ok(())]);
    assert_eq!(peer.line(), "set rate_hz Integer(20)");
    let [Err(refused)] = &set(-1)[..] else { panic!("-1 is out of its range") };
    assert_eq!(refused, "value -1 out of range [1, 1000]");
    let label = |it: &str| {
        let parameters = vec![Parameter::new("label", it), Parameter::new("enabled", false)];
        client.set_atomically(parameters, HANG).unwrap()
    };
    assert_eq!(label(""), Err("a label has letters".to_owned()));
    assert_eq!(label("new"), Ok(()));
    peer.says(&["set label String(\"new\")", "set enabled Bool(false)"]);
    let values = client.get(&["rate_hz", "label", "enabled"], HANG).unwrap();
    assert_eq!(values, [ParameterValue::from(20i64), "new".into(), false.into()]);

    let began = Instant::now();
    let mut changed = Vec::new();
    while changed.len() < 3 {
        assert!(began.elapsed() < HANG, "{changed:?}");
        match events.take().unwrap() {
            Some(event) if event.message().node == "/theirs" => {
                changed.extend(event.message().changed_parameters.iter().map(|it| it.name.clone()));
            }
            Some(_) => {}
            None => thread::sleep(Duration::from_millis(5)),
        }
    }
    assert_eq!(changed, ["rate_hz", "label", "enabled"]);
}

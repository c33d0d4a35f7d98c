//! Actions and parameters with foreign ROS 2 nodes that nobody here wrote, those of ros2-client on RustDDS, as real
//! processes. The program is built by `make test`, which says where it is in `TSUJI_PEER_ROS2_CLIENT`; without it nothing
//! is done, but in CI that fails.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::thread;
use std::time::{Duration, Instant};

use tsuji::Interop;
use tsuji::action::{ActionServerOptions, CancelOutcome, ClientGoal, GoalHandle, GoalStatus};
use tsuji::parameter::{
    Parameter, ParameterClient, ParameterDescriptor, ParameterRange, ParameterType, ParameterValue,
};
use tsuji::{Context, Error, RouteState};
use tsuji_interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciGoal, FibonacciResult,
};

#[path = "house/world.rs"]
mod world;
use world::peer::{Peer, ros2_client};
use world::{Folder, HANG, spun};

/// Far longer than an answer takes. RustDDS matches later than it is matched, and sends the news of a message ahead of
/// it; so of each service the first answer may be missing, and then all is done again.
const A_WHILE: Duration = Duration::from_secs(5);
const ATTEMPTS: usize = 5;

impl Peer {
    /// Waits for both to have met by so many flows under a name, and lets one that holds go on.
    fn begin(&mut self, context: &Context, under: &str, flows: usize) {
        assert_eq!(self.line(), "matched");
        let began = Instant::now();
        let active = || {
            let routes = context.routes(HANG).unwrap();
            let own = routes.iter().filter(|it| it.topic.starts_with(under));
            own.filter(|it| it.state == RouteState::Active).count()
        };
        while active() < flows {
            assert!(began.elapsed() < HANG, "{} of {flows} flows", active());
            thread::sleep(Duration::from_millis(10));
        }
        self.go_on();
    }

    /// All that it says from now on to its end, or as far as it comes.
    fn rest(&self) -> Vec<String> {
        std::iter::from_fn(|| self.line_within(A_WHILE)).collect()
    }
}

/// A context that speaks to foreign nodes over loopback.
fn context(folder: &Folder, domain: u32) -> Context {
    let policy = folder.0.with_extension("xml");
    let text = r#"<tsuji><transport name="cyclonedds">
        <set key="interfaces" value="lo"/><set key="multicast" value="true"/></transport></tsuji>"#;
    std::fs::write(&policy, text).unwrap();
    let builder = Context::builder().runtime_dir(&folder.0).domain(domain).policy_file(&policy);
    let context = builder.interop(Interop::RTPS).isolated().build().unwrap();
    std::fs::remove_file(policy).unwrap();
    context
}

fn goal(order: i32) -> FibonacciGoal {
    FibonacciGoal { order }
}

const FIVE: [i32; 6] = [0, 1, 1, 2, 3, 5];

#[test]
fn a_plain_server_pursues_rejects_and_cancels_our_goals() {
    let Some(program) = ros2_client() else { return };
    let folder = Folder::new();
    let attempt = || -> Result<(), Error> {
        let context = context(&folder, 90);
        let client = context.node("asking").unwrap().create_action_client::<Fibonacci>("theirs")?;
        let peer = Peer::ros2_client(&program, 90, "pursue theirs");
        client.wait_for_server(HANG)?;
        assert_eq!(peer.line(), "matched");
        let five = client.send_goal(goal(5), A_WHILE)?.expect("the goal of 5 is accepted");
        assert_eq!(peer.line(), "accepted 5");
        let heard = feedback(&five)?;
        assert!(heard.ends_with(&[FIVE.to_vec()]) && heard.len() <= 4, "{heard:?}");
        let (status, result) = five.result(A_WHILE)?;
        assert_eq!((status, &result.sequence[..]), (GoalStatus::Succeeded, &FIVE[..]));
        assert_eq!(peer.line(), "Succeeded 5");
        assert!(client.send_goal(goal(26), A_WHILE)?.is_none());
        assert_eq!(peer.line(), "rejected 26");
        let endless = client.send_goal(goal(-1), A_WHILE)?.expect("the goal of -1 is accepted");
        assert_eq!(peer.line(), "accepted -1");
        assert!(matches!(endless.cancel(A_WHILE)?, CancelOutcome::Canceling));
        let (status, result) = endless.result(A_WHILE)?;
        assert_eq!((status, &result.sequence[..]), (GoalStatus::Canceled, &[0, 1, 1][..]));
        Ok(())
    };
    let attempts: Vec<_> = (0..ATTEMPTS).map(|_| attempt()).take_while(Result::is_err).collect();
    assert!(attempts.len() < ATTEMPTS, "{attempts:?}");
}

/// All feedback of a goal to the last. RTPS keeps no order between it and the result, so some may come behind the end.
fn feedback(goal: &ClientGoal<Fibonacci>) -> Result<Vec<Vec<i32>>, Error> {
    let (mut heard, until): (Vec<Vec<i32>>, _) = (Vec::new(), Instant::now() + A_WHILE);
    while heard.last().is_none_or(|it| it[..] != FIVE) && Instant::now() < until {
        match goal.next_feedback(A_WHILE)? {
            Some(feedback) => heard.push(feedback.sequence),
            None => thread::sleep(Duration::from_millis(1)),
        }
    }
    Ok(heard)
}

/// A negative order is pursued until it is to be given up.
fn pursue(handle: GoalHandle<Fibonacci>) {
    let order = handle.goal().order;
    let mut sequence = vec![0, 1];
    for _ in 1..order.max(2) {
        sequence.push(sequence[sequence.len() - 1] + sequence[sequence.len() - 2]);
        handle.publish_feedback(FibonacciFeedback { sequence: sequence.clone() }).unwrap();
    }
    if order < 0 {
        // Whoever missed the feedback does not cancel; then the goal ends as one that failed, and all is done again.
        if handle.sleep(A_WHILE) {
            handle.canceled(FibonacciResult { sequence }).unwrap();
        }
        return;
    }
    handle.succeed(FibonacciResult { sequence }).unwrap();
}

#[test]
fn plain_clients_have_their_goals_pursued_rejected_and_canceled() {
    let Some(program) = ros2_client() else { return };
    let folder = Folder::new();
    let context = context(&folder, 91);
    let node = context.node("serving").unwrap();
    let _server = node
        .create_action_server(
            ActionServerOptions::<Fibonacci>::new("ours").on_goal(|_, goal| goal.order <= 25),
            pursue,
        )
        .unwrap();
    spun(&node, || {
        let check = |arguments: &str, expect: &[&str]| {
            let mut said = Vec::new();
            for _ in 0..ATTEMPTS {
                let mut peer =
                    Peer::ros2_client(&program, 91, &format!("ask ours {arguments} --hold"));
                // Requests and replies of three services, feedback and status.
                peer.begin(&context, "/ours/_action/", 8);
                let mut lines = peer.rest();
                // The first feedback may be missing.
                lines.retain(|it| !it.starts_with("feedback [0, 1, 1]"));
                if lines == expect {
                    return;
                }
                said.push(lines);
                drop(peer);
            }
            panic!("{arguments}: {said:#?}");
        };
        let five = [
            "accepted",
            "feedback [0, 1, 1, 2]",
            "feedback [0, 1, 1, 2, 3]",
            "feedback [0, 1, 1, 2, 3, 5]",
            "Succeeded [0, 1, 1, 2, 3, 5]",
        ];
        check("5", &five);
        check("26", &["rejected"]);
        check("-1 --cancel", &["accepted", "canceling 1 None", "Canceled [0, 1, 1]"]);
    });
}

#[test]
fn a_plain_node_asks_for_sets_and_hears_of_our_parameters() {
    let Some(program) = ros2_client() else { return };
    let folder = Folder::new();
    let context = context(&folder, 92);
    let node = context.node("ours").unwrap();
    let parameters = node.parameters().unwrap();
    let range = Some(ParameterRange::FloatingPoint { from: 0.0, to: 1.0, step: 0.0 });
    let described =
        ParameterDescriptor { description: "m/s".into(), range, ..ParameterDescriptor::default() };
    parameters.declare_with("arm.speed", 0.5, described).unwrap();
    parameters.declare("label", "demo".to_owned()).unwrap();
    spun(&node, || {
        let mut said = Vec::new();
        for _ in 0..ATTEMPTS {
            parameters.set("arm.speed", 0.5).unwrap();
            let arguments = "inspect ours arm.speed label --set 0.75 --set 9 --hold";
            let mut peer = Peer::ros2_client(&program, 92, arguments);
            // Requests and replies of six services.
            peer.begin(&context, "/ours/", 12);
            let lines = peer.rest();
            let is_whole = lines.last().is_some_and(|it| it.starts_with("event "));
            if !is_whole {
                said.push(lines);
                continue;
            }
            let refused = |of: &str| {
                format!(
                    "{of} false \"Parameter {{arm.speed}} doesn't comply with floating point range; allowed: 0.0 to 1.0"
                )
            };
            let expect = [
                "names arm.speed label",
                "value Double(0.5)",
                "value String(\"demo\")",
                "types [3, 4]",
                "described arm.speed 3 \"m/s\" [(0.0, 1.0)]",
                "described label 4 \"\" []",
                "set true \"\"",
                "set atomically true \"\"",
                &refused("set"),
                &refused("set atomically"),
                "event arm.speed Double(0.75)",
            ];
            assert_eq!(lines.len(), expect.len(), "{lines:#?}");
            for (line, expect) in lines.iter().zip(expect) {
                assert!(line.starts_with(expect), "{line:?} is not {expect:?}");
            }
            return;
        }
        panic!("{said:#?}");
    });
}

#[test]
fn we_ask_for_and_set_the_parameters_of_a_plain_node() {
    let Some(program) = ros2_client() else { return };
    let folder = Folder::new();
    let context = context(&folder, 93);
    let asking = context.node("asking").unwrap();
    let _peer = Peer::ros2_client(&program, 93, "offer --node /robot/theirs");
    let client = ParameterClient::new(&asking, "/robot/theirs");
    /// Again, as long as the answer does not come.
    fn answered<T>(ask: impl Fn() -> Result<T, Error>) -> T {
        let mut last = ask();
        for _ in 1..ATTEMPTS {
            if last.is_ok() {
                break;
            }
            last = ask();
        }
        last.unwrap()
    }
    let mut names = answered(|| client.list(&[], 0, A_WHILE)).names;
    names.sort();
    let all = ["arm.gain", "enabled", "label", "rate_hz", "sizes", "tags", "use_sim_time"];
    assert_eq!(names, all);
    let values = answered(|| client.get(&all[..6], A_WHILE));
    let expect: [ParameterValue; 6] = [
        0.5.into(),
        true.into(),
        "demo".into(),
        1i64.into(),
        vec![640i64, 480].into(),
        vec!["a".to_owned(), "b".to_owned()].into(),
    ];
    assert_eq!(values, expect);
    let types = answered(|| client.types(&["arm.gain", "sizes"], A_WHILE));
    assert_eq!(types, [ParameterType::Double, ParameterType::IntegerArray]);
    let described = answered(|| client.describe(&["label"], A_WHILE));
    assert_eq!((described[0].name.as_str(), described[0].ty), ("label", ParameterType::String));
    let set = |value: i64| answered(|| client.set(vec![Parameter::new("rate_hz", value)], A_WHILE));
    assert_eq!(set(20), [Ok(())]);
    assert_eq!(set(-1), [Err("rate_hz is more than 0, and not -1".to_owned())]);
    let atomically =
        answered(|| client.set_atomically(vec![Parameter::new("label", "new")], A_WHILE));
    assert_eq!(atomically, Ok(()));
    let values = answered(|| client.get(&["rate_hz", "label"], A_WHILE));
    assert_eq!(values, [ParameterValue::from(20i64), "new".into()]);
}

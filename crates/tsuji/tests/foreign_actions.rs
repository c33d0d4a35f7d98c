//! Actions whose clients are foreign participants that do each step when the test says so: the engine itself, without
//! anything of tsuji.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::time::{Duration, Instant};

use house::foreign::{Plain, Topic, context, dds_type, next};
use house::{Folder, Watchdog, keep_all, spun};
use tsuji::action::GoalHandle;
use tsuji_interfaces::example_interfaces::action::{Fibonacci, FibonacciFeedback, FibonacciResult};
use tsuji_ros::service::RequestHeader;

/// Goals come from clients of one participant that subscribe to feedback each only after they have sent theirs, and from one that
/// never does.
#[test]
fn feedback_comes_to_whoever_listens_before_the_answer() {
    let _watchdog = Watchdog::start("feedback");
    let folder = Folder::new();
    let context = context(&folder, 47);
    let node = context.node("counting").unwrap();
    let pursue = |goal: GoalHandle<Fibonacci>| {
        goal.publish_feedback(FibonacciFeedback { sequence: vec![7] }).unwrap();
        goal.succeed(FibonacciResult::default()).unwrap();
    };
    let _server = node.create_action_server("count", pursue).unwrap();
    let ty = "example_interfaces/action/Fibonacci_SendGoal";
    let name = "count/_action/send_goal";
    let feedback = Topic::new(
        "rt/count/_action/feedback".to_owned(),
        dds_type("example_interfaces/action/Fibonacci", "_FeedbackMessage"),
    );
    spun(&node, || {
        let plain = Plain::join(47);
        let mut clients = Vec::new();
        for (id, is_heard) in (1..).zip([true, true, true, false]) {
            let says = format!("clientid={id};");
            let asks = plain.talker(&Topic::requests(name, ty).saying(&says), keep_all());
            let takes = plain.listener(&Topic::replies(name, ty).saying(&says), keep_all());
            asks.wait_for_readers(1);
            // The id of the goal, and its order.
            let goal = [[0, 1, 0, 0].as_slice(), &[id; 16], &[1, 0, 0, 0]].concat();
            let asked_at = Instant::now();
            asks.write(&RequestHeader { client: id.into(), sequence: 1 }.join(&goal).unwrap());
            let hears = is_heard.then(|| plain.inlet(&feedback, keep_all()));
            // A test that is not let run for so long is none.
            let is_in_time = asked_at.elapsed() < Duration::from_millis(50);
            let (_, whole) = takes.next();
            let (header, _, answer) = RequestHeader::split(&whole).unwrap();
            assert_eq!((header.sequence, answer[0]), (1, 1), "accepted");
            if let Some(hears) = hears.as_ref().filter(|_| is_in_time) {
                let (_, said) = next(&**hears);
                // The goal's id, and the sequence with its length.
                assert_eq!(said[4..28], [[id; 16].as_slice(), &[1, 0, 0, 0, 7, 0, 0, 0]].concat());
            }
            clients.push((asks, takes, hears));
        }
    });
}

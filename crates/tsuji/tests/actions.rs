//! Actions between a server and clients: goals that are reached, given up, refused, queued and overtaken, and
//! whose pursuers and askers die.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "children speak by it")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tsuji::action::{
    ActionClient, ActionServerOptions, CancelOutcome, ClientGoal, GoalHandle, GoalStatus, ManyGoals,
};
use tsuji::{Context, ErrorKind, Node};
use tsuji_interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciGoal, FibonacciResult,
};

#[path = "house/world.rs"]
mod world;
use world::child::{Child, role, tell};
use world::{Folder, HANG, spun};

fn goal(order: i32) -> FibonacciGoal {
    FibonacciGoal { order }
}

/// As the tutorial of ROS 2 has it; each number of the sequence is said. A negative order is pursued until it is to be
/// given up.
fn pursue(handle: GoalHandle<Fibonacci>) {
    let order = handle.goal().order;
    let mut sequence = vec![0, 1];
    if order < 0 {
        let is_canceling = handle.sleep(HANG);
        assert!(is_canceling, "nobody cancels it");
        handle.canceled(FibonacciResult { sequence }).unwrap();
        return;
    }
    for _ in 1..order {
        sequence.push(sequence[sequence.len() - 1] + sequence[sequence.len() - 2]);
        handle.publish_feedback(FibonacciFeedback { sequence: sequence.clone() }).unwrap();
    }
    handle.succeed(FibonacciResult { sequence }).unwrap();
}

struct Pair {
    serving: Node,
    client: ActionClient<Fibonacci>,
    /// Goes last, when nobody makes anything in it any more.
    _folder: Folder,
}

/// A server's node and a client, each as in a process of its own.
fn pair() -> Pair {
    let folder = Folder::new();
    let serving = folder.process().node("serving").unwrap();
    let asking = folder.process().node("asking").unwrap();
    let client = asking.create_action_client("fibonacci").unwrap();
    Pair { _folder: folder, serving, client }
}

impl Pair {
    fn ask(&self, order: i32) -> ClientGoal<Fibonacci> {
        self.client.send_goal(goal(order), HANG).unwrap().unwrap()
    }
}

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    let role = role();
    let context = Context::new().unwrap();
    let node = context.node("child").unwrap();
    match role.as_str() {
        "serve" => {
            let _server = node.create_action_server::<Fibonacci>("fibonacci", pursue).unwrap();
            tell("there");
            tsuji::spin(&node).unwrap();
        }
        "ask for what takes long" => {
            let client = node.create_action_client::<Fibonacci>("fibonacci").unwrap();
            client.wait_for_server(HANG).unwrap();
            let goal = client.send_goal(goal(-1), HANG).unwrap().unwrap();
            tell(&format!("asked {}", goal.id()));
            thread::sleep(HANG);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_goal_is_reached_with_all_feedback_in_order() {
    let pair = pair();
    let server = pair.serving.create_action_server::<Fibonacci>("fibonacci", pursue).unwrap();
    spun(&pair.serving, || {
        pair.client.wait_for_server(HANG).unwrap();
        let goal = pair.ask(6);
        assert!(goal.stamp() > Duration::from_secs(1_500_000_000));
        let mut said = Vec::new();
        while let Some(feedback) = goal.next_feedback(HANG).unwrap() {
            said.push(feedback.sequence.len());
        }
        assert_eq!(said, [3, 4, 5, 6, 7]);
        let (status, result) = goal.result(HANG).unwrap();
        assert_eq!(status, GoalStatus::Succeeded);
        assert_eq!(result.sequence, [0, 1, 1, 2, 3, 5, 8]);
        assert_eq!((goal.status(), goal.dropped()), (GoalStatus::Succeeded, 0));
        // Whoever asks once more gets it again.
        assert_eq!(goal.result(HANG).unwrap().0, GoalStatus::Succeeded);
        let (counters, goals) = (server.counters(), server.goals());
        assert_eq!((counters.accepted, counters.succeeded, counters.aborted), (1, 1, 0));
        assert_eq!(goals, [(goal.id(), GoalStatus::Succeeded)]);
    });
}

#[test]
fn a_goal_is_given_up_when_somebody_asks_and_not_twice() {
    let pair = pair();
    let _server = pair.serving.create_action_server::<Fibonacci>("fibonacci", pursue).unwrap();
    spun(&pair.serving, || {
        let goal = pair.ask(-1);
        assert_eq!(goal.cancel(HANG).unwrap(), CancelOutcome::Canceling);
        let (status, result) = goal.result(HANG).unwrap();
        assert_eq!((status, result.sequence), (GoalStatus::Canceled, vec![0, 1]));
        assert_eq!(goal.cancel(HANG).unwrap(), CancelOutcome::Ended);
        let three = [pair.ask(-1), pair.ask(-1), pair.ask(-1)];
        let mut canceled = pair.client.cancel_all(HANG).unwrap();
        canceled.sort_unstable();
        let mut asked: Vec<_> = three.iter().map(ClientGoal::id).collect();
        asked.sort_unstable();
        assert_eq!(canceled, asked);
        for goal in three {
            assert_eq!(goal.result(HANG).unwrap().0, GoalStatus::Canceled);
        }
    });
}

#[test]
fn what_the_server_does_not_want_is_refused() {
    let pair = pair();
    let server = pair
        .serving
        .create_action_server(
            ActionServerOptions::<Fibonacci>::new("fibonacci")
                .on_goal(|_, goal| goal.order < 10)
                .on_cancel(|_| false),
            |handle| {
                while !handle.is_canceling() && handle.goal().order == 5 {
                    // It is not to be given up, so it ends when it is told by the next goal.
                    if PASSED.load(Ordering::Acquire) {
                        break;
                    }
                    thread::yield_now();
                }
            },
        )
        .unwrap();
    static PASSED: AtomicBool = AtomicBool::new(false);
    spun(&pair.serving, || {
        assert!(pair.client.send_goal(goal(10), HANG).unwrap().is_none());
        let goal = pair.ask(5);
        assert_eq!(goal.cancel(HANG).unwrap(), CancelOutcome::Rejected);
        PASSED.store(true, Ordering::Release);
        // It was dropped without a word.
        assert_eq!(goal.result(HANG).unwrap(), (GoalStatus::Aborted, FibonacciResult::default()));
        let counters = server.counters();
        assert_eq!((counters.accepted, counters.rejected), (1, 1));
        assert_eq!((counters.aborted, counters.abandoned), (1, 1));
    });
}

#[test]
fn whoever_panics_aborts_his_goal() {
    let pair = pair();
    let server = pair
        .serving
        .create_action_server::<Fibonacci>("fibonacci", |_handle| panic!("on purpose"))
        .unwrap();
    spun(&pair.serving, || {
        assert_eq!(pair.ask(1).result(HANG).unwrap().0, GoalStatus::Aborted);
        assert_eq!(server.counters().abandoned, 1);
    });
}

#[test]
fn results_are_kept_for_as_long_as_said() {
    let pair = pair();
    let server = pair
        .serving
        .create_action_server(
            ActionServerOptions::<Fibonacci>::new("fibonacci")
                .result_timeout(Duration::from_millis(50)),
            pursue,
        )
        .unwrap();
    spun(&pair.serving, || {
        let goal = pair.ask(2);
        assert_eq!(goal.result(HANG).unwrap().0, GoalStatus::Succeeded);
        while !server.goals().is_empty() {
            thread::yield_now();
        }
        let error = goal.result(HANG).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("does not know it"), "{error}");
        assert_eq!(goal.cancel(HANG).unwrap(), CancelOutcome::UnknownGoal);
    });
}

#[test]
fn who_looks_late_learns_how_a_goal_ended_all_the_same() {
    let pair = pair();
    let server = pair
        .serving
        .create_action_server(
            ActionServerOptions::<Fibonacci>::new("fibonacci")
                .result_timeout(Duration::from_millis(50)),
            pursue,
        )
        .unwrap();
    spun(&pair.serving, || {
        // More than the status tells of.
        let goals: Vec<_> = (0..100).map(|_| pair.ask(2)).collect();
        while !server.goals().is_empty() {
            thread::yield_now();
        }
        for goal in goals {
            while goal.next_feedback(HANG).unwrap().is_some() {}
            assert_eq!(goal.status(), GoalStatus::Succeeded);
            assert_eq!(goal.result(HANG).unwrap().0, GoalStatus::Succeeded);
        }
        assert_eq!(server.counters().succeeded, 100);
    });
}

#[test]
fn one_at_a_time_rejects_or_queues_or_overtakes() {
    for many in [ManyGoals::Reject, ManyGoals::Queue(1), ManyGoals::Preempt] {
        let pair = pair();
        let server = pair
            .serving
            .create_action_server(
                ActionServerOptions::<Fibonacci>::new("fibonacci").many_goals(many),
                pursue,
            )
            .unwrap();
        spun(&pair.serving, || {
            let first = pair.ask(-1);
            let second = pair.client.send_goal(goal(-1), HANG).unwrap();
            match many {
                ManyGoals::Reject => {
                    assert!(second.is_none());
                    assert_eq!(first.cancel(HANG).unwrap(), CancelOutcome::Canceling);
                    assert_eq!(first.result(HANG).unwrap().0, GoalStatus::Canceled);
                    // Its place is free again.
                    assert_eq!(pair.ask(3).result(HANG).unwrap().0, GoalStatus::Succeeded);
                }
                ManyGoals::Queue(_) => {
                    let second = second.unwrap();
                    assert!(pair.client.send_goal(goal(3), HANG).unwrap().is_none(), "it is full");
                    assert_eq!(server.goals()[1], (second.id(), GoalStatus::Accepted));
                    // One that waits can be given up too, and makes room.
                    assert_eq!(second.cancel(HANG).unwrap(), CancelOutcome::Canceling);
                    assert_eq!(second.result(HANG).unwrap().0, GoalStatus::Canceled);
                    let third = pair.ask(3);
                    assert_eq!(first.cancel(HANG).unwrap(), CancelOutcome::Canceling);
                    assert_eq!(first.result(HANG).unwrap().0, GoalStatus::Canceled);
                    assert_eq!(third.result(HANG).unwrap().0, GoalStatus::Succeeded);
                }
                _ => {
                    let second = second.unwrap();
                    assert_eq!(first.result(HANG).unwrap().0, GoalStatus::Canceled);
                    let third = pair.ask(3);
                    assert_eq!(second.result(HANG).unwrap().0, GoalStatus::Canceled);
                    assert_eq!(third.result(HANG).unwrap().0, GoalStatus::Succeeded);
                }
            }
        });
    }
}

#[test]
fn two_servers_of_one_name_are_an_error() {
    let pair = pair();
    let other = pair._folder.process().node("other").unwrap();
    let one = pair.serving.create_action_server::<Fibonacci>("fibonacci", pursue).unwrap();
    let two = other.create_action_server::<Fibonacci>("fibonacci", pursue).unwrap();
    let both = |body: &dyn Fn()| spun(&pair.serving, || spun(&other, body));
    both(&|| {
        let error = loop {
            match pair.client.send_goal(goal(2), HANG) {
                Err(error) => break error,
                // The other has not been found yet.
                Ok(goal) => drop(goal),
            }
        };
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("2 servers are there; allowed: one"), "{error}");
    });
    drop((one, two));
    // That they have left is heard a moment later, and of one service after the other.
    loop {
        match pair.client.wait_for_server(Duration::from_millis(1)) {
            Err(error) if error.to_string().contains("/fibonacci/_action/send_goal") => {
                break assert_eq!(error.kind(), ErrorKind::NoServer, "{error}");
            }
            _ => thread::yield_now(),
        }
    }
}

#[test]
fn a_client_that_dies_leaves_its_goal_and_others_can_end_it() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("serving").unwrap();
    let server = node.create_action_server::<Fibonacci>("fibonacci", pursue).unwrap();
    let client =
        folder.process().node("asking").unwrap().create_action_client::<Fibonacci>("fibonacci");
    let client = client.unwrap();
    spun(&node, || {
        let child = Child::start(&folder, "ask for what takes long");
        let asked = child.line();
        drop(child);
        // It is told that its goal was accepted before that is begun.
        while server.counters().accepted == 0 || server.goals()[0].1 == GoalStatus::Accepted {
            thread::yield_now();
        }
        assert_eq!(server.goals().len(), 1);
        assert_eq!(server.goals()[0].1, GoalStatus::Executing);
        let canceled = client.cancel_all(HANG).unwrap();
        assert_eq!(format!("asked {}", canceled[0]), asked);
        while server.counters().canceled == 0 {
            thread::yield_now();
        }
        assert_eq!(server.counters().abandoned, 0);
    });
}

#[test]
fn a_server_that_dies_is_told_to_whoever_waits() {
    let folder = Folder::new();
    let client =
        folder.process().node("asking").unwrap().create_action_client::<Fibonacci>("fibonacci");
    let client = client.unwrap();
    let child = Child::start(&folder, "serve");
    assert_eq!(child.line(), "there");
    client.wait_for_server(HANG).unwrap();
    let goal = client.send_goal(goal(-1), HANG).unwrap().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| goal.result(HANG));
        let listening = scope.spawn(|| goal.next_feedback(HANG));
        let reached = client.send_goal(FibonacciGoal { order: 3 }, HANG).unwrap().unwrap();
        assert_eq!(reached.result(HANG).unwrap().1.sequence, [0, 1, 1, 2]);
        drop(child);
        let error = waiting.join().unwrap().unwrap_err();
        // Where it was asked for a moment too late nobody was there.
        assert!(matches!(error.kind(), ErrorKind::ServerLost | ErrorKind::NoServer), "{error}");
        let error = listening.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ServerLost, "{error}");
    });
}

#[test]
fn who_shuts_its_own_context_down_has_lost_no_server_of_an_action() {
    let folder = Folder::new();
    let asking = folder.process();
    let client = asking.node("asking").unwrap().create_action_client::<Fibonacci>("fibonacci");
    let client = client.unwrap();
    let child = Child::start(&folder, "serve");
    assert_eq!(child.line(), "there");
    client.wait_for_server(HANG).unwrap();
    let goal = client.send_goal(goal(-1), HANG).unwrap().unwrap();
    // From now on the status is listened to.
    let _ = goal.next_feedback(Duration::ZERO);
    asking.shutdown();
    // Some may have come before.
    let error = loop {
        match goal.next_feedback(HANG) {
            Ok(feedback) => assert!(feedback.is_some(), "the goal has not ended"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    drop(child);
}

#[test]
fn feedback_of_a_server_in_the_same_context_ends_with_the_context() {
    let folder = Folder::new();
    let both = folder.process();
    let serving = both.node("serving").unwrap();
    let asking = both.node("asking").unwrap();
    let client = asking.create_action_client::<Fibonacci>("fibonacci").unwrap();
    let _server = serving.create_action_server::<Fibonacci>("fibonacci", pursue).unwrap();
    spun(&serving, || {
        client.wait_for_server(HANG).unwrap();
        let goal = client.send_goal(goal(-1), HANG).unwrap().unwrap();
        let _ = goal.next_feedback(Duration::ZERO);
        both.shutdown();
        let error = loop {
            match goal.next_feedback(HANG) {
                Ok(feedback) => assert!(feedback.is_some(), "the goal has not ended"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    });
}

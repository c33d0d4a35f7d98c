//! Actions in bytes and with dynamic messages, beside those of Rust types: each form of client with each form of server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{self, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use tsuji::action::{
    ActionClient, ActionForm, ActionServer, ActionServerOptions, CancelOutcome, DynamicAction,
    GoalHandle, GoalStatus, ManyGoals, RawAction, RawActionType,
};
use tsuji::dynamic::{ActionDescription, DynamicMessage, List, TypeSet, Value};
use tsuji::{ErrorKind, Message, Node, WaitList};
use tsuji_interfaces::Shipped;
use tsuji_interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciGetResultResponse, FibonacciGoal, FibonacciResult,
};

#[path = "house/world.rs"]
mod world;
use world::{Folder, HANG, spun};

fn description() -> Arc<ActionDescription> {
    Arc::new(TypeSet::new(Shipped).load_action("example_interfaces/action/Fibonacci").unwrap())
}

/// What goals, feedback and results of Fibonacci are in a form.
trait Speaks: ActionForm {
    fn goal(order: i32) -> Self::Goal;
    fn order(goal: &Self::Goal) -> i32;
    fn feedback(sequence: &[i32]) -> Self::Feedback;
    fn heard(feedback: Self::Feedback) -> Vec<i32>;
    fn result(sequence: &[i32]) -> Self::Result;
    fn reached(result: Self::Result) -> Vec<i32>;
    fn client(node: &Node) -> ActionClient<Self>;
}

impl Speaks for Fibonacci {
    fn goal(order: i32) -> FibonacciGoal {
        FibonacciGoal { order }
    }

    fn order(goal: &FibonacciGoal) -> i32 {
        goal.order
    }

    fn feedback(sequence: &[i32]) -> FibonacciFeedback {
        FibonacciFeedback { sequence: sequence.to_vec() }
    }

    fn heard(feedback: FibonacciFeedback) -> Vec<i32> {
        feedback.sequence
    }

    fn result(sequence: &[i32]) -> FibonacciResult {
        FibonacciResult { sequence: sequence.to_vec() }
    }

    fn reached(result: FibonacciResult) -> Vec<i32> {
        result.sequence
    }

    fn client(node: &Node) -> ActionClient<Self> {
        node.create_action_client("fibonacci").unwrap()
    }
}

fn cdr(message: &impl Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.serialize_onto(&mut bytes).unwrap();
    bytes
}

impl Speaks for RawAction {
    fn goal(order: i32) -> Vec<u8> {
        cdr(&FibonacciGoal { order })
    }

    fn order(goal: &Vec<u8>) -> i32 {
        FibonacciGoal::deserialize(goal).unwrap().order
    }

    fn feedback(sequence: &[i32]) -> Vec<u8> {
        cdr(&FibonacciFeedback { sequence: sequence.to_vec() })
    }

    fn heard(feedback: Vec<u8>) -> Vec<i32> {
        FibonacciFeedback::deserialize(&feedback).unwrap().sequence
    }

    fn result(sequence: &[i32]) -> Vec<u8> {
        let result = FibonacciResult { sequence: sequence.to_vec() };
        cdr(&FibonacciGetResultResponse { result, ..Default::default() })
    }

    fn reached(result: Vec<u8>) -> Vec<i32> {
        FibonacciGetResultResponse::deserialize(&result).unwrap().result.sequence
    }

    fn client(node: &Node) -> ActionClient<Self> {
        node.create_raw_action_client("fibonacci", RawActionType::of::<Fibonacci>()).unwrap()
    }
}

fn numbers(message: &DynamicMessage) -> Vec<i32> {
    match message.get("sequence").unwrap().into_owned() {
        Value::List(List::I32(numbers)) => numbers,
        other => panic!("{other:?}"),
    }
}

fn with_numbers(mut message: DynamicMessage, sequence: &[i32]) -> DynamicMessage {
    message.set("sequence", Value::List(List::I32(sequence.to_vec()))).unwrap();
    message
}

impl Speaks for DynamicAction {
    fn goal(order: i32) -> DynamicMessage {
        let mut goal = DynamicMessage::new(description().goal.clone());
        goal.set("order", Value::I32(order)).unwrap();
        goal
    }

    fn order(goal: &DynamicMessage) -> i32 {
        match goal.get("order").unwrap().into_owned() {
            Value::I32(order) => order,
            other => panic!("{other:?}"),
        }
    }

    fn feedback(sequence: &[i32]) -> DynamicMessage {
        with_numbers(DynamicMessage::new(description().feedback.clone()), sequence)
    }

    fn heard(feedback: DynamicMessage) -> Vec<i32> {
        numbers(&feedback)
    }

    fn result(sequence: &[i32]) -> DynamicMessage {
        with_numbers(DynamicMessage::new(description().result.clone()), sequence)
    }

    fn reached(result: DynamicMessage) -> Vec<i32> {
        numbers(&result)
    }

    fn client(node: &Node) -> ActionClient<Self> {
        node.create_dynamic_action_client("fibonacci", description()).unwrap()
    }
}

/// The sequence up to `order`, with feedback; below 0 until the goal is to be given up; of 0 none is told of.
fn pursue<A: Speaks>(goal: GoalHandle<A>) {
    let order = A::order(goal.goal());
    let mut sequence = vec![0, 1];
    if order < 0 {
        assert!(goal.sleep(HANG), "nobody cancels it");
        return goal.canceled(A::result(&sequence)).unwrap();
    }
    if order == 0 {
        return;
    }
    for _ in 1..order {
        sequence.push(sequence[sequence.len() - 1] + sequence[sequence.len() - 2]);
        goal.publish_feedback(A::feedback(&sequence)).unwrap();
    }
    goal.succeed(A::result(&sequence)).unwrap();
}

fn wants<A: Speaks>() -> ActionServerOptions<A> {
    ActionServerOptions::new("fibonacci").on_goal(|_, goal| A::order(goal) < 47)
}

/// All that a client may meet with.
fn ask<A: Speaks>(client: &ActionClient<A>) {
    client.wait_for_server(HANG).unwrap();
    assert!(client.is_ready());
    let goal = client.send_goal(A::goal(5), HANG).unwrap().unwrap();
    assert!(Duration::from_secs(1_500_000_000) < goal.stamp());
    let mut heard = Vec::new();
    while let Some(feedback) = goal.next_feedback(HANG).unwrap() {
        heard.push(A::heard(feedback).len());
    }
    assert_eq!(heard, [3, 4, 5, 6]);
    let (status, result) = goal.result(HANG).unwrap();
    assert_eq!((status, A::reached(result)), (GoalStatus::Succeeded, vec![0, 1, 1, 2, 3, 5]));
    assert!(client.send_goal(A::goal(47), HANG).unwrap().is_none(), "it is rejected");
    let goal = client.send_goal(A::goal(-1), HANG).unwrap().unwrap();
    assert_eq!(client.cancel_goal(goal.id(), HANG).unwrap(), CancelOutcome::Canceling);
    let (status, result) = goal.result(HANG).unwrap();
    assert_eq!((status, A::reached(result)), (GoalStatus::Canceled, vec![0, 1]));
    let goal = client.send_goal(A::goal(0), HANG).unwrap().unwrap();
    let (status, result) = goal.result(HANG).unwrap();
    assert_eq!((status, A::reached(result)), (GoalStatus::Aborted, vec![]));
    block_on(async {
        let goal = client.start_goal(A::goal(3)).unwrap().await.unwrap().unwrap();
        let mut heard = Vec::new();
        while let Some(feedback) = poll_fn(|context| goal.poll_feedback(context)).await.unwrap() {
            heard.push(A::heard(feedback).len());
        }
        assert_eq!(heard, [3, 4]);
        let (status, result) = poll_fn(|context| goal.poll_result(context)).await.unwrap();
        assert_eq!((status, A::reached(result)), (GoalStatus::Succeeded, vec![0, 1, 1, 2]));
        let goal = client.start_goal(A::goal(-1)).unwrap().await.unwrap().unwrap();
        assert_eq!(goal.start_cancel().unwrap().await.unwrap(), CancelOutcome::Canceling);
        let ended = poll_fn(|context| goal.poll_result(context)).await.unwrap();
        assert_eq!(ended.0, GoalStatus::Canceled);
        assert_eq!(goal.start_cancel().unwrap().await.unwrap(), CancelOutcome::Ended);
    });
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on this thread, which a hang of the test's watchdog would cut.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, mut context) = (pin!(future), task::Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park_timeout(HANG),
        }
    }
}

/// Every form of client, in a process of its own and in the server's.
fn all_clients(folder: &Folder, serving: &Node) {
    let asking = folder.process().node("asking").unwrap();
    for node in [&asking, serving] {
        ask(&Fibonacci::client(node));
        ask(&RawAction::client(node));
        ask(&DynamicAction::client(node));
    }
}

#[test]
fn every_form_of_client_meets_a_server_of_rust_types() {
    let folder = Folder::new();
    let node = folder.process().node("serving").unwrap();
    let _server: ActionServer<Fibonacci> = node.create_action_server(wants(), pursue).unwrap();
    spun(&node, || all_clients(&folder, &node));
}

#[test]
fn every_form_of_client_meets_a_server_in_bytes() {
    let folder = Folder::new();
    let node = folder.process().node("serving").unwrap();
    let of = RawActionType::from(&*description());
    assert_eq!(of, RawActionType::of::<Fibonacci>());
    let _server = node.create_raw_action_server(wants(), of, pursue).unwrap();
    spun(&node, || all_clients(&folder, &node));
}

#[test]
fn every_form_of_client_meets_a_server_with_dynamic_messages() {
    let folder = Folder::new();
    let node = folder.process().node("serving").unwrap();
    let _server = node.create_dynamic_action_server(wants(), description(), pursue).unwrap();
    spun(&node, || all_clients(&folder, &node));
}

#[test]
fn a_polled_server_is_asked_for_goals_and_needs_no_executor() {
    let folder = Folder::new();
    let node = folder.process().node("serving").unwrap();
    let of = RawActionType::of::<Fibonacci>();
    let server = node.create_polled_raw_action_server(wants(), of).unwrap();
    thread::scope(|scope| {
        let asking = scope.spawn(|| all_clients(&folder, &node));
        let mut list = WaitList::new(node.context()).unwrap();
        let mut pursuing = Vec::new();
        while !asking.is_finished() {
            list.wait(&server.waitables(), Some(Duration::from_millis(10))).unwrap();
            while let Some(goal) = server.take().unwrap() {
                pursuing.push(thread::spawn(|| pursue(goal)));
            }
        }
        pursuing.into_iter().for_each(|it| it.join().unwrap());
    });
    let counters = server.counters();
    assert_eq!((counters.accepted, counters.rejected), (6 * 5, 6));
    assert_eq!((counters.succeeded, counters.canceled, counters.abandoned), (12, 12, 6));
}

#[test]
fn what_is_none_of_the_type_is_refused_where_it_is_said() {
    let folder = Folder::new();
    let node = folder.process().node("serving").unwrap();
    let begun = |goal: GoalHandle<DynamicAction>| {
        let other = || DynamicMessage::new(description().goal.clone());
        assert_eq!(goal.publish_feedback(other()).unwrap_err().kind(), ErrorKind::Invalid);
        // The goal is aborted then.
        assert_eq!(goal.succeed(other()).unwrap_err().kind(), ErrorKind::Invalid);
    };
    let _server = node.create_dynamic_action_server("fibonacci", description(), begun).unwrap();
    spun(&node, || {
        let client = DynamicAction::client(&node);
        client.wait_for_server(HANG).unwrap();
        let error = client.send_goal(DynamicAction::result(&[]), HANG).unwrap_err();
        let expected = "a example_interfaces/action/Fibonacci_Result; \
                        allowed: a example_interfaces/action/Fibonacci_Goal";
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Invalid, expected.to_owned()));
        let goal = client.send_goal(DynamicAction::goal(1), HANG).unwrap().unwrap();
        assert_eq!(goal.result(HANG).unwrap().0, GoalStatus::Aborted);
        let client = RawAction::client(&node);
        client.wait_for_server(HANG).unwrap();
        assert_eq!(client.send_goal(vec![0, 1], HANG).unwrap_err().kind(), ErrorKind::Invalid);
        // What the server cannot read it rejects.
        assert!(client.send_goal(vec![0, 1, 0, 0], HANG).unwrap().is_none());
    });
}

#[test]
fn a_server_in_bytes_answers_whoever_knows_less_or_writes_otherwise() {
    let folder = Folder::new();
    let node = folder.process().node("serving").unwrap();
    let _server = node
        .create_raw_action_server("fibonacci", RawActionType::of::<Fibonacci>(), pursue)
        .unwrap();
    let of = |part: &str| format!("example_interfaces/action/Fibonacci_{part}");
    let sends = node.create_raw_client("fibonacci/_action/send_goal", &*of("SendGoal")).unwrap();
    let asks = node.create_raw_client("fibonacci/_action/get_result", &*of("GetResult")).unwrap();
    spun(&node, || {
        // Big endian: the id and an order of 2.
        let id = [7; 16];
        let goal = [&[0, 0, 0, 0][..], &id, &[0, 0, 0, 2]].concat();
        let answer = sends.call_bytes(&goal, HANG).unwrap();
        assert_eq!((answer.len(), answer[4]), (16, 1), "{answer:?}");
        let result = asks.call_bytes(&[&[0, 1, 0, 0][..], &id].concat(), HANG).unwrap();
        assert_eq!(RawAction::reached(result.to_vec()), [0, 1, 1]);
        assert_eq!(result[4], GoalStatus::Succeeded.number() as u8);
        // An id that nobody knows, and half of one.
        for request in
            [&[0, 1, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9][..], &[0, 1, 0, 0, 9]]
        {
            let result = asks.call_bytes(request, HANG).unwrap();
            assert_eq!((result[4], RawAction::reached(result.to_vec())), (0, vec![]));
        }
        // Half a goal.
        assert_eq!(sends.call_bytes(&[0, 1, 0, 0, 1], HANG).unwrap()[4], 0);
    });
}

#[test]
fn a_polled_server_is_told_when_the_next_goal_has_its_turn() {
    let folder = Folder::new();
    let node = folder.process().node("serving").unwrap();
    let options =
        ActionServerOptions::<Fibonacci>::new("fibonacci").many_goals(ManyGoals::Queue(9));
    let server = node.create_polled_action_server(options).unwrap();
    let client = Fibonacci::client(&node);
    let next = || {
        let mut list = WaitList::new(node.context()).unwrap();
        loop {
            if let Some(goal) = server.take().unwrap() {
                return goal;
            }
            // Nothing but what it waits for wakes it.
            let ready = list.wait(&server.waitables(), Some(HANG)).unwrap();
            assert!(!ready.is_empty(), "it sleeps though there is a goal");
        }
    };
    thread::scope(|scope| {
        let asked = scope.spawn(|| {
            client.wait_for_server(HANG).unwrap();
            let send = |order| client.send_goal(Fibonacci::goal(order), HANG).unwrap().unwrap();
            let goals = [send(1), send(2), send(3)];
            goals.map(|it| it.result(HANG).unwrap().1.sequence.len())
        });
        for _ in 0..3 {
            let goal = next();
            // It ends on another thread, when the first one sleeps again.
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(20));
                pursue(goal);
            });
        }
        while !asked.is_finished() {
            assert!(server.take().unwrap().is_none());
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(asked.join().unwrap(), [2, 3, 4]);
    });
}

#[test]
fn one_task_awaits_feedback_and_another_the_result() {
    let folder = Folder::new();
    let node = folder.process().node("serving").unwrap();
    let _server: ActionServer<Fibonacci> = node.create_action_server(wants(), pursue).unwrap();
    spun(&node, || {
        let client = Fibonacci::client(&node);
        client.wait_for_server(HANG).unwrap();
        // No more than the ten that the QoS of feedback keeps.
        for order in [5, 9, 11, 0, 7, 10, 3, 8, 0, 6] {
            let goal = client.send_goal(Fibonacci::goal(order), HANG).unwrap().unwrap();
            thread::scope(|scope| {
                let result =
                    scope.spawn(|| block_on(poll_fn(|context| goal.poll_result(context))).unwrap());
                let feedback = scope.spawn(|| {
                    let mut count = 0;
                    let next = || block_on(poll_fn(|context| goal.poll_feedback(context))).unwrap();
                    while next().is_some() {
                        count += 1;
                    }
                    count
                });
                // A third looks on.
                while !(result.is_finished() && feedback.is_finished()) {
                    goal.status();
                    thread::yield_now();
                }
                let expected = if order == 0 { GoalStatus::Aborted } else { GoalStatus::Succeeded };
                assert_eq!(result.join().unwrap().0, expected);
                assert_eq!(feedback.join().unwrap(), (order - 1).max(0));
            });
        }
    });
}

#[test]
fn whoever_awaits_anything_is_told_that_the_server_has_left() {
    let folder = Folder::new();
    let node = folder.process().node("serving").unwrap();
    let asking = folder.process().node("asking").unwrap();
    let (handles, begun) = std::sync::mpsc::channel();
    let options = ActionServerOptions::<Fibonacci>::new("fibonacci");
    let server = node
        .create_deferred_action_server(options, move |handle| handles.send(handle).unwrap())
        .unwrap();
    let client = Fibonacci::client(&asking);
    let (goal, handle) = spun(&node, || {
        client.wait_for_server(HANG).unwrap();
        let goal = client.send_goal(Fibonacci::goal(3), HANG).unwrap().unwrap();
        (goal, begun.recv_timeout(HANG).unwrap())
    });
    thread::scope(|scope| {
        let feedback = scope.spawn(|| block_on(poll_fn(|context| goal.poll_feedback(context))));
        let result = scope.spawn(|| block_on(poll_fn(|context| goal.poll_result(context))));
        drop(server);
        let left = [ErrorKind::ServerLost, ErrorKind::NoServer];
        assert!(left.contains(&result.join().unwrap().unwrap_err().kind()));
        assert_eq!(feedback.join().unwrap().unwrap_err().kind(), ErrorKind::ServerLost);
        // Also who asks afterwards, and has looked in between.
        goal.status();
        let later = block_on(poll_fn(|context| goal.poll_feedback(context)));
        assert_eq!(later.unwrap_err().kind(), ErrorKind::ServerLost);
    });
    drop(handle);
}

#[test]
fn a_goal_that_cannot_be_read_is_rejected_in_every_form() {
    let folder = Folder::new();
    let node = folder.process().node("serving").unwrap();
    let _server: ActionServer<Fibonacci> = node.create_action_server(wants(), pursue).unwrap();
    spun(&node, || {
        let client = RawAction::client(&node);
        client.wait_for_server(HANG).unwrap();
        // Without its order.
        assert!(client.send_goal(vec![0, 1, 0, 0], HANG).unwrap().is_none());
    });
}

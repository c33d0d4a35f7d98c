//! Services, actions and parameters with nodes of rclpy on `rmw_fastrtps_cpp`, both ways, with no plug-in.
//!
//! `TSUJI_ROS_WHEELS` names a virtual environment of Python with the wheels of a distribution: rclpy with Fast DDS,
//! std_srvs and test_msgs. Without it these tests do nothing, and say so.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::sync::Arc;

use house::foreign::{Plain, Talker, Topic, context};
use house::{Folder, HANG, Peer, Watchdog, keep_all, spun};
use tsuji::action::{ActionServerOptions, DynamicActionType, GoalHandle, GoalStatus};
use tsuji::dynamic::{DynamicMessage, List, TypeSet, Value};
use tsuji::interfaces::Shipped;
use tsuji::interfaces::std_srvs::srv::{SetBool, SetBoolRequest, SetBoolResponse};
use tsuji::parameter::ParameterClient;
use tsuji::{Message, ServiceType};
use tsuji_msg::{ActionDescription, Definition, Kind, Resolver, Unreadable};
use tsuji_ros::service::RequestHeader;

/// What ships, and the action of test_msgs.
struct Texts;

impl Resolver for Texts {
    fn find(
        &self,
        kind: Kind,
        package: &str,
        name: &str,
    ) -> Result<Option<Definition<'_>>, Unreadable> {
        if (package, name) != ("test_msgs", "Fibonacci") {
            return Shipped.find(kind, package, name);
        }
        let text = "int32 order\n---\nint32[] sequence\n---\nint32[] sequence\n";
        Ok(Some(text.into()))
    }
}

fn fibonacci() -> Arc<ActionDescription> {
    TypeSet::new(Texts).load_action("test_msgs/action/Fibonacci").unwrap().into()
}

fn sequence(of: &DynamicMessage) -> Value {
    of.get("sequence").unwrap().into_owned()
}

fn numbers(all: &[i32]) -> Value {
    Value::List(List::I32(all.to_vec()))
}

/// A call of a foreign node that writes a header into the payload, as `rmw_cyclonedds_cpp` does.
fn call_headed(talker: &Talker<'_>, replies: &house::foreign::Listener<'_>, sequence: i64) {
    let header = RequestHeader { client: 77, sequence };
    talker.write(&header.join(&SetBoolRequest { data: true }.to_vec().unwrap()).unwrap());
    // Replies to others come too, each with a header.
    loop {
        let (_, reply) = replies.next();
        let (of, _, body) = RequestHeader::split(&reply).unwrap();
        if of == header {
            return assert_eq!(body[0], 1);
        }
    }
}

#[test]
fn nodes_on_fast_dds_ask_us() {
    let _watchdog = Watchdog::start("rclpy asks");
    let Some(python) = house::ros_wheels() else { return };
    let folder = Folder::new();
    let context = context(&folder, 68);
    let node = context.node("ours").unwrap();
    let answer = |it: Arc<SetBoolRequest>| SetBoolResponse {
        success: it.data,
        message: "x".repeat(if it.data { 200_000 } else { 3 }),
    };
    let _service = node.create_service::<SetBool>("ours", answer).unwrap();
    node.parameters().unwrap().declare("height", 1.5).unwrap();
    let of = fibonacci();
    let result = Arc::clone(&of.result);
    let feedback = Arc::clone(&of.feedback);
    let pursue = move |goal: GoalHandle<_>| {
        let mut said = DynamicMessage::new(Arc::clone(&feedback));
        said.set("sequence", numbers(&[0, 1])).unwrap();
        goal.publish_feedback(said).unwrap();
        let mut done = DynamicMessage::new(Arc::clone(&result));
        done.set("sequence", numbers(&[0, 1, 1, 2, 3, 5])).unwrap();
        goal.succeed(done).unwrap();
    };
    let options = ActionServerOptions::new("fib_ours");
    let _actions =
        node.create_dynamic_action_server(options, DynamicActionType::from(of), pursue).unwrap();
    // One on Cyclone DDS asks beside it, of the same server.
    let cyclone = Plain::join(68);
    let talker = cyclone.talker(&Topic::requests("ours", SetBool::TYPE_NAME), keep_all());
    let replies = cyclone.listener(&Topic::replies("ours", SetBool::TYPE_NAME), keep_all());
    spun(&node, || {
        talker.wait_for_readers(1);
        let peer = Peer::ros_wheels(&python, "ask", 68);
        peer.says(&["service True"]);
        for number in 0..20 {
            call_headed(&talker, &replies, number);
            let expect = if number % 2 == 1 { "(True, 200000)" } else { "(False, 3)" };
            peer.says(&[&format!("reply {number} {expect}")]);
        }
        peer.says(&["parameters height", "height 1.5", "action True"]);
        peer.says(&["result 4 [0, 1, 1, 2, 3, 5]", "feedback [0, 1]"]);
        peer.finish();
    });
}

#[test]
fn we_ask_nodes_on_fast_dds() {
    let _watchdog = Watchdog::start("rclpy answers");
    let Some(python) = house::ros_wheels() else { return };
    let folder = Folder::new();
    let context = context(&folder, 69);
    let node = context.node("ours").unwrap();
    let peer = Peer::ros_wheels(&python, "serve", 69);
    let client = node.create_client::<SetBool>("theirs").unwrap();
    client.wait_for_service(HANG).unwrap();
    for number in 0..20 {
        let data = number % 2 == 1;
        let reply = client.call(SetBoolRequest { data }, HANG).unwrap();
        let len = if data { 200_000 } else { 3 };
        assert_eq!((reply.success, reply.message.len()), (data, len));
    }
    assert_eq!(client.counters().late, 0);
    let parameters = ParameterClient::new(&node, "/peer");
    let names = parameters.list(&[], 0, HANG).unwrap().names;
    assert!(names.iter().any(|it| it == "speed"), "{names:?}");
    assert_eq!(parameters.get(&["speed"], HANG).unwrap(), [3i64.into()]);
    let of = fibonacci();
    let mut goal = DynamicMessage::new(Arc::clone(&of.goal));
    goal.set("order", Value::I32(5)).unwrap();
    let actions = node.create_dynamic_action_client("fib_theirs", of).unwrap();
    let goal = actions.send_goal(goal, HANG).unwrap().unwrap();
    let mut said = Vec::new();
    while let Some(feedback) = goal.next_feedback(HANG).unwrap() {
        said.push(sequence(&feedback));
    }
    let (status, result) = goal.result(HANG).unwrap();
    let all = numbers(&[0, 1, 1, 2, 3, 5]);
    assert_eq!((status, sequence(&result)), (GoalStatus::Succeeded, all.clone()));
    assert_eq!(said.last(), Some(&all));
    peer.end();
}

/// A server on each kind of engine under one name: each is asked once, as it understands, and both answer.
#[test]
fn servers_of_both_mappings_are_asked_once_each() {
    let _watchdog = Watchdog::start("two servers");
    let Some(python) = house::ros_wheels() else { return };
    let folder = Folder::new();
    let context = context(&folder, 70);
    let node = context.node("ours").unwrap();
    let peer = Peer::ros_wheels(&python, "serve", 70);
    let cyclone = Plain::join(70);
    let taken = cyclone.listener(&Topic::requests("theirs", SetBool::TYPE_NAME), keep_all());
    let answers = cyclone.talker(&Topic::replies("theirs", SetBool::TYPE_NAME), keep_all());
    let client = node.create_client::<SetBool>("theirs").unwrap();
    house::wait_until("both servers are ready", || client.servers() == 2);
    answers.wait_for_readers(1);
    for number in 0..10 {
        let pending = client.send(SetBoolRequest { data: false }).unwrap();
        let (_, request) = taken.next();
        let (header, encapsulation, body) = RequestHeader::split(&request).unwrap();
        assert_eq!(body, [0], "request {number}");
        assert!(pending.wait(HANG).unwrap().message.starts_with("yyy"));
        let response = SetBoolResponse { success: true, message: "late".into() };
        assert_eq!(response.to_vec().unwrap()[..4], encapsulation);
        answers.write(&header.join(&response.to_vec().unwrap()).unwrap());
    }
    house::wait_until("the others have answered", || client.counters().late == 10);
    peer.end();
}

//! Nodes of rclrs, the Rust client library of ROS 2, unchanged: on rmw_tsuji, and on rmw_fastrtps_cpp with a node of tsuji at the
//! other end.
//!
//! `TSUJI_RCLRS` names the program that scripts/rclrs makes. Without it these tests do nothing, and say so.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::sync::Arc;

use house::foreign::context;
use house::{Folder, HANG, Peer, Watchdog, keep_all, spun, take_until, wait_until};
use tsuji::interfaces::rcl_interfaces::msg::{ListParametersResult, Log};
use tsuji::interfaces::rcl_interfaces::srv::{
    ListParameters, ListParametersRequest, ListParametersResponse,
};
use tsuji::parameter::{Parameter, ParameterClient};

fn names(names: Vec<String>) -> ListParametersResult {
    ListParametersResult { names, ..Default::default() }
}

/// Messages of all sizes there and back, services both ways, and its parameters.
fn talk(rmw: &str, domain: u32) {
    let Some(program) = house::rclrs() else { return };
    let folder = Folder::new();
    let context = context(&folder, domain);
    let node = context.node("ours").unwrap();
    let answer = |it: Arc<ListParametersRequest>| ListParametersResponse {
        result: names(vec![it.prefixes.concat(), it.depth.to_string()]),
    };
    let _service = node.create_service::<ListParameters>("our_names", answer).unwrap();
    let publisher = node.create_publisher::<Log>("to_rclrs", keep_all()).unwrap();
    let subscription = node.create_polled_subscription::<Log>("from_rclrs", keep_all()).unwrap();
    let client = node.create_client::<ListParameters>("rclrs_names").unwrap();
    let parameters = ParameterClient::new(&node, "/rclrs_peer");
    let peer = Peer::rclrs(&program, rmw, &folder.0, domain);
    spun(&node, || {
        // Its client asks as soon as it sees the service.
        assert_eq!(peer.expect("answered"), "answered ab 7");
    });
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    wait_until("its node is named", || {
        context.graph().nodes.iter().any(|it| it.name == "rclrs_peer")
    });
    for (at, len) in [0, 1, 1000, 60_000, 2_000_000].into_iter().enumerate() {
        let message = Log { level: at as u8, msg: "x".repeat(len), ..Default::default() };
        publisher.publish(&message).unwrap();
        assert_eq!(peer.expect("heard"), format!("heard {len} {at}"));
        take_until(&node, &subscription, |received| {
            let view = received.view();
            assert_eq!((view.level, view.msg.len()), (at as u8, len));
            true
        });
    }
    client.wait_for_service(HANG).unwrap();
    for count in 0..20 {
        let prefixes: Vec<_> = (0..count).map(|it| format!("prefix {it}")).collect();
        let request = ListParametersRequest { prefixes: prefixes.clone(), depth: 1 };
        assert_eq!(client.call(request, HANG).unwrap().result, names(prefixes));
        assert_eq!(peer.expect("asked"), format!("asked for {count}"));
    }
    assert_eq!(client.counters().late, 0);
    assert_eq!(parameters.get(&["speed"], HANG).unwrap(), [3i64.into()]);
    let faster = vec![Parameter::new("speed", 4i64)];
    assert_eq!(parameters.set(faster, HANG).unwrap(), [Ok(())]);
    assert_eq!(parameters.get(&["speed"], HANG).unwrap(), [4i64.into()]);
    peer.end();
    wait_until("it is gone", || context.graph().nodes.iter().all(|it| it.name != "rclrs_peer"));
}

#[test]
fn rclrs_on_rmw_tsuji() {
    let _watchdog = Watchdog::start("rclrs on rmw_tsuji");
    talk("tsuji", 71);
}

#[test]
fn rclrs_on_rmw_fastrtps() {
    let _watchdog = Watchdog::start("rclrs on rmw_fastrtps_cpp");
    talk("fastrtps", 72);
}

//! What is told of the health of the robot.

use tsuji::Qos;
use tsuji_bridge::Settings;
use tsuji_interfaces::diagnostic_msgs::msg::{DiagnosticArray, DiagnosticStatus};
use tsuji_interfaces::std_msgs::msg::String as Text;

use crate::world::{World, until};

const TOPIC: &str = "/diagnostics";

#[test]
fn topics_and_the_bridge_are_told_while_somebody_subscribes() {
    let world = World::with(Settings { diagnostics: true, ..Settings::default() });
    let _publisher = world.node.create_publisher::<Text>("/chatter", Qos::DEFAULT).unwrap();
    let hears = || world.node.create_polled_subscription::<DiagnosticArray>(TOPIC, Qos::DEFAULT);
    let mut heard = hears().unwrap();
    let _subscription = world.node.create_polled_subscription::<Text>("/chatter", Qos::DEFAULT);
    // Whoever comes again is told as well.
    for _ in 0..2 {
        let [bridge, chatter] = until("both are told", || {
            let told = heard.take().unwrap()?;
            let of = |name: &str| {
                told.message().status.iter().find(|it| it.name == format!("tsuji: {name}")).cloned()
            };
            // Its flow is not carried at once.
            let is_carried = |it: &DiagnosticStatus| {
                it.values.iter().any(|it| it.key == "transport" && it.value == "inproc")
            };
            Some([of("bridge")?, of("/chatter").filter(is_carried)?])
        });
        assert_eq!((bridge.level, &*bridge.message), (DiagnosticStatus::OK, "0 connections"));
        assert_eq!(chatter.level, DiagnosticStatus::OK, "{chatter:?}");
        assert!(chatter.message.starts_with("by inproc, "), "{chatter:?}");
        drop(heard);
        heard = hears().unwrap();
    }
}

#[test]
fn it_is_told_only_where_that_is_wanted() {
    let world = World::new();
    let mut client = world.client();
    client.settle();
    assert!(world.node.context().endpoints_of(TOPIC).is_empty());
}

//! The generated types: what the definitions say, as bytes and back.

use own_messages::my_robot_msgs::action::Dock;
use own_messages::my_robot_msgs::msg::{Battery, Cell};
use own_messages::my_robot_msgs::srv::{SetCharging, SetChargingRequest};
use tsuji::{Message, ServiceType};
use tsuji_interfaces::std_msgs::msg::Header;
use tsuji_interfaces::tsuji_msg::Action;

#[test]
fn a_message_of_its_own_comes_back_as_it_was() {
    let header = Header { frame_id: "base_link".into(), ..Header::default() };
    let cell = Cell { voltage: 3.7, temperatures: [20.0, 21.0, 22.0, 23.0] };
    let battery = Battery { header, cells: vec![cell; 2], faults: vec![7], ..Battery::default() };
    let bytes = battery.to_vec().unwrap();
    let view = Battery::view_cdr(&bytes).unwrap();
    assert_eq!((view.serial, view.header.frame_id), ("unknown", "base_link"));
    assert_eq!(view.to_message(), battery);
}

#[test]
fn what_the_definitions_say_holds() {
    let battery = Battery::default();
    assert_eq!((battery.state, battery.charge), (Battery::STATE_UNKNOWN, 1.0));
    assert!(SetChargingRequest::default().charging);
    assert_eq!(
        [Battery::TYPE_NAME, SetCharging::TYPE_NAME, Dock::TYPE_NAME],
        ["my_robot_msgs/msg/Battery", "my_robot_msgs/srv/SetCharging", "my_robot_msgs/action/Dock"]
    );
    // More than a bound allows is not sent.
    let long = Battery { serial: "B".repeat(17), ..Battery::default() };
    assert!(long.to_vec().is_err());
    let many = Battery { cells: vec![Cell::default(); 9], ..Battery::default() };
    assert!(many.to_vec().is_err());
}

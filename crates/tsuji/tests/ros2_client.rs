//! Foreign ROS 2 nodes of ros2-client, and tsuji on Cyclone DDS.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;
#[path = "house/ros2_client.rs"]
mod ros2_client;

use ros2_client::Side;
use tsuji::RtpsEngine;

fn side(domain: u32) -> Side {
    Side { engine: RtpsEngine::CycloneDds, domain }
}

#[test]
fn a_foreign_talker_is_heard_in_order_and_without_a_gap() {
    ros2_client::a_foreign_talker_is_heard_in_order_and_without_a_gap(side(20));
}

#[test]
fn a_foreign_listener_hears_beside_one_of_tsuji() {
    ros2_client::a_foreign_listener_hears_beside_one_of_tsuji(side(21));
}

#[test]
fn what_comes_by_shared_memory_is_not_delivered_again() {
    ros2_client::what_comes_by_shared_memory_is_not_delivered_again(side(22));
}

#[test]
fn late_joiners_get_what_was_said_before_both_ways() {
    ros2_client::late_joiners_get_what_was_said_before_both_ways(side(23));
}

#[test]
fn pictures_go_both_ways() {
    ros2_client::pictures_go_both_ways(side(24));
}

#[test]
fn a_talker_killed_in_a_picture_leaves_no_trace_of_it() {
    ros2_client::a_talker_killed_in_a_picture_leaves_no_trace_of_it(side(25));
}

#[test]
fn foreign_servers_answer_and_foreign_clients_are_answered() {
    ros2_client::foreign_servers_answer_and_foreign_clients_are_answered(side(26));
}

#[test]
fn each_sees_the_others_nodes_and_topics() {
    ros2_client::each_sees_the_others_nodes_and_topics(side(27));
}

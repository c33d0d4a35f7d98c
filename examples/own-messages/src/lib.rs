//! The messages, services and actions of `my_robot_msgs` as Rust types, for the program and the tests of this crate
//! and for other crates.
#![forbid(unsafe_code)]

include!(concat!(env!("OUT_DIR"), "/interfaces.rs"));

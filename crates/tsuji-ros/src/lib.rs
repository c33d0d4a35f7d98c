//! What foreign ROS 2 nodes say and expect over RTPS: `rmw_cyclonedds_cpp` and `rmw_fastrtps_cpp`, from
//! Humble on.
//!
//! This crate translates; it never acts. It opens no socket, spawns no thread, reads no file and no
//! variable of the environment, and knows no engine: a transport hands it bytes and names and gets
//! values, or values and gets bytes. Whatever comes from a peer is checked before it becomes a value,
//! and an error says what is wrong, where, and what is allowed.
//!
//! | module | what it translates |
//! |---|---|
//! | [`names`] | topics, services and types, and their names on DDS |
//! | [`user_data`] | the `key=value;` that participants and endpoints carry |
//! | [`graph_message`] | which node owns which endpoint: the topic `ros_discovery_info` |
//! | [`gid`] | GUIDs, and what differs between the distributions |
//! | [`service`] | the header in the requests and replies of `rmw_cyclonedds_cpp` |
//! | [`environment`] | `ROS_DOMAIN_ID` and its like |
//! | [`discovery`] | what is sent to where participants announce themselves |
//! | [`vendor`] | who made a participant |
//!
//! Each module names the source that it follows, by repository and file.
#![forbid(unsafe_code)]

pub mod discovery;
pub mod environment;
pub mod gid;
pub mod graph_message;
mod hex;
pub mod names;
mod sentence;
pub mod service;
pub mod user_data;
pub mod vendor;

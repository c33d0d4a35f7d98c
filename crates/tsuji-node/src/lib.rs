//! What ROS 2 users take for granted of a node, over the node API of tsuji: actions.
//!
//! This crate carries and decides nothing: what it says goes by the services and topics of `tsuji`, under the
//! names and types that every ROS 2 node has for it.
#![forbid(unsafe_code)]

pub mod action;

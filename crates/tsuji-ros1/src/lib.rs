//! ROS 1 as data and decisions: XML-RPC, a master, connection headers of TCPROS, and types, with their conversion from and
//! to the CDR of ROS 2.
//!
//! This crate performs no I/O and knows no transport. What comes from elsewhere is checked before anything believes it, and
//! has limits.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod convert;
pub mod header;
pub mod http;
pub mod mapping;
pub mod master;
mod sentence;
pub mod types;
pub mod uri;
pub mod xmlrpc;

//! The rmw plug-in: the C functions that ROS 2's `rmw_implementation` looks up in `librmw_tsuji.so`,
//! each a translation to the node API of the crate `tsuji`.
//!
//! `docs/rmw.md` says which of them do their work and which answer `RMW_RET_UNSUPPORTED`.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the tables in abi/ are of 64-bit platforms; allowed: x86_64 and aarch64");

pub mod abi;
mod check;
pub mod client;
mod distribution;
mod error;
pub mod events;
pub mod ffi;
pub mod filter;
mod gid;
pub mod graph;
mod handle;
pub mod identity;
pub mod init;
mod log;
mod memory;
mod message;
pub mod network;
mod news;
pub mod node;
pub mod plan;
pub mod publisher;
pub mod qos;
pub mod serialized;
pub mod service;
pub mod subscription;
mod text;
pub mod unsupported;
pub mod wait;

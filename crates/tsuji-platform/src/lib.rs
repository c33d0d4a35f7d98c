//! The Linux system calls that tsuji stands on, behind safe types.
//!
//! This crate knows memory, futexes, sockets, network interfaces, folders, processors and clocks. It knows nothing of topics,
//! samples, routes or ROS, and decides nothing. [`report`] is how the crates above it warn.

pub mod child;
pub mod clock;
pub mod datagram;
pub mod deadline;
pub mod exit;
pub mod fork;
pub mod futex;
pub mod life;
pub mod limit;
pub mod lock;
pub mod mapped_file;
pub mod memory;
pub mod multicast;
pub mod network;
pub mod ordered;
pub mod poll;
pub mod process;
pub mod processor;
pub mod report;
pub mod signals;
pub mod socket;
pub mod subprocess;
pub mod terminal;
pub mod watch;

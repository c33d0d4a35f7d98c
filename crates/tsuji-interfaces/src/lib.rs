//! The common ROS 2 interfaces as Rust types, and where definitions come from: those that ship with
//! tsuji and those of an installed ROS 2.
//!
//! This crate holds definitions and reads definition files. It serialises nothing itself; the
//! generated types do that through [`tsuji_msg`].
//!
//! ```
//! use tsuji_interfaces::std_msgs::msg::String as Text;
//! use tsuji_msg::Message;
//!
//! let bytes = Text { data: "hello".into() }.to_vec()?;
//! assert_eq!(Text::view_cdr(&bytes)?.data, "hello");
//! # Ok::<_, tsuji_msg::CdrError>(())
//! ```
#![forbid(unsafe_code)]

include!(concat!(env!("OUT_DIR"), "/interfaces.rs"));

mod resolvers;
pub use resolvers::{AmentIndex, Chain, Shipped, names};

//! Rust types of a package's own messages, services and actions, from a build script.
//!
//! `build.rs`, with `tsuji-build` among the `[build-dependencies]`:
//!
//! ```no_run
//! fn main() -> Result<(), tsuji_build::Error> {
//!     tsuji_build::Interfaces::new().folder("interfaces/my_robot_msgs").generate()
//! }
//! ```
//!
//! `src/lib.rs` or `src/main.rs`, with `tsuji-interfaces` among the `[dependencies]`:
//!
//! ```ignore
//! include!(concat!(env!("OUT_DIR"), "/interfaces.rs"));
//!
//! use my_robot_msgs::msg::Battery;
//! ```
//!
//! [`Interfaces`] says which packages are generated, and where the types are that those use.
//! `tsuji interface rust my_robot_msgs` prints the same source for an installed package.
//!
//! This crate finds and reads definition files, for tsuji-interfaces at run time too: those of folders ([`Folders`])
//! and of an installed ROS 2 ([`AmentIndex`]). What is in them is the business of [`tsuji_msg`].
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod error;
mod files;
mod folders;
mod interfaces;

pub use error::Error;
pub use files::{AmentIndex, Chain};
pub use folders::Folders;
pub use interfaces::{Interfaces, codegen};

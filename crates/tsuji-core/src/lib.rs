//! What a flow is, which route it should take, and why.
//!
//! This crate decides; it never acts. It opens no socket, spawns no thread, reads no file and
//! asks no clock. Time and facts come in as arguments, decisions go out as values.
#![forbid(unsafe_code)]

mod capability;
pub use capability::{Capability, TransportId};

mod qos;
pub use qos::{Durability, History, Liveliness, Qos, Reliability};

mod time;
pub use time::Time;

mod traits;
pub use traits::{Peer, Scope, Scopes, Size, SizeOrigin, Traits, Vendor};

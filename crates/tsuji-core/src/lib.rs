//! What a flow is, which route it should take, and why.
//!
//! This crate decides; it never acts. It opens no socket, spawns no thread, reads no file and
//! asks no clock. Time and facts come in as arguments, decisions go out as values.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod capability;
pub use capability::{Capability, TransportId};

pub mod flows;

pub mod handover;

pub mod names;

mod outward;
pub use outward::{InvalidRobot, Outward, ROBOT_LENGTH_MAX, Robot};

pub mod pacing;

mod pattern;
pub use pattern::{InvalidPattern, TopicPattern};

mod policy;
pub use policy::{
    Conditions, DraftPolicy, Export, Interop, InvalidPolicy, Origin, Policy, Prefer, RtpsEngine,
    Rule, RuleRef, Setting, Sourced, StatedSize, TransportSettings,
};

mod qos;
pub use qos::{Durability, History, InvalidQos, Liveliness, Qos, Reliability};

mod rate;
pub use rate::{InvalidRate, Rate};

pub mod rxo;

mod select;
pub use select::{Advantage, Basis, Because, Choice, Health, NoRoute, Offer, Reason, select};

mod sentence;

mod size;
pub use size::{Estimate, SizeEstimator, SizeFacts};

mod traits;
pub use traits::{Peer, Peers, Scope, Scopes, Size, SizeOrigin, Traits, Vendor};

mod words;
pub use words::UnknownWord;

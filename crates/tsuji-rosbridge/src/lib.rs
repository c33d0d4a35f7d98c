//! The rosbridge protocol as data and decisions: what clients say, what is written to them, and what the server remembers of each.
//!
//! This crate decides; it never acts. It opens no socket, spawns no thread, asks no clock and knows no node of ROS: bytes and
//! times come in as arguments, values and bytes go out. What is inside a message of ROS it hands on unread.
//!
//! - [`parse_json`], [`parse_cbor`] and [`parse_bson`] make an [`Operation`] of one message, or a [`Refusal`] that says what is wrong.
//! - [`Splitter`] and [`BsonSplitter`] find messages in a stream without frames.
//! - [`write_publish`], [`write_publish_raw`], [`write_png`], [`Outgoing`] and [`Fragments`] write to clients.
//! - [`client::Client`] is the state of one client: what it publishes, gets, serves and waits for.
//! - [`access::Access`] says who may do what, [`Limits`] how much.
//!
//! A time `now` is how long ago some fixed instant was, by a clock that only goes on.
#![forbid(unsafe_code)]

pub mod access;

mod bson;
mod cbor;
pub mod client;
mod fields;

mod fragments;
pub use fragments::{Assembly, FragmentLimits, Fragments, SENT_PIECES_MAX};

mod json;

mod limits;
pub use limits::{Bucket, Limits, Rate};

mod operation;
pub use operation::{
    ActionFeedback, ActionResult, Advertise, AdvertiseAction, AdvertiseService, Auth, Body,
    CallService, CancelActionGoal, Compression, Encoding, Fragment, Id, Incoming, Level, Operation,
    Png, Publish, QUEUE_SIZE, SendActionGoal, ServiceResponse, SessionOptions, SetLevel, Status,
    Subscribe, Unadvertise, UnadvertiseAction, UnadvertiseService, Unsubscribe,
};

mod parse;
pub use parse::{NESTING_MAX, parse, parse_bson, parse_cbor, parse_json};

mod picture;
pub use picture::{read_png, write_png};

mod qos;
pub use qos::QosRequest;

mod refusal;
pub use refusal::Refusal;

mod splitter;
pub use splitter::{BsonSplitter, Fault, Garbage, Piece, Splitter, StreamSplitter};

mod write;
pub use write::{
    Outgoing, PublishEnd, Values, begin_publish, write_publish, write_publish_raw, write_refusal,
};

//! The Foxglove WebSocket protocol as data and decisions, for a server.
//!
//! This crate decides; it never acts. It opens no socket, asks no clock and knows no node of ROS. What is inside a message of ROS it
//! hands on unread.
//!
//! - [`negotiate`] picks a subprotocol of those that a client offers. Both that it knows have the same messages.
//! - [`Request`] is what a client says in text, [`Binary`] what it says in bytes.
//! - [`ServerInfo`] and the other messages of a server are written by [`text`], those in bytes by functions of their own.
//! - [`Subscribed`] and [`Published`] are what one client has asked for.
//! - [`Catalogue`] gives topics and services their numbers, and tells what has come and gone.
//! - [`ConnectionGraph`] tells what has changed of who publishes, subscribes and serves.
//!
//! The protocol is described at <https://docs.foxglove.dev/docs/sdk/websocket-server> and by
//! <https://github.com/foxglove/ws-protocol>; its numbers are little-endian.
#![forbid(unsafe_code)]

mod catalogue;
pub use catalogue::{Catalogue, Changes, Entry};

mod client;
pub use client::{
    Binary, ClientChannel, Malformed, Parameter, ParameterType, Request, Subscription,
};

mod graph;
pub use graph::{ConnectionGraph, GraphUpdate, Provided};

mod server;
pub use server::{
    Capability, Channel, Level, MESSAGE_HEAD_BYTES, Message, PlaybackState, PlaybackStatus,
    Providers, Publishers, Schema, ServerInfo, Service, Subscribers, Timestamp, text, write_asset,
    write_message_head, write_no_asset, write_playback, write_response, write_time,
};

mod state;
pub use state::{Published, Refused, Subscribed};

/// The subprotocols that are known, the one of today's clients first.
pub const SUBPROTOCOLS: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];

/// Whether clients of this subprotocol know what it is that a recording is played. Those of the older one take bytes that they do
/// not know for an error.
pub fn knows_playback(subprotocol: &str) -> bool {
    subprotocol == SUBPROTOCOLS[0]
}

/// What of a client's offers is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Negotiated {
    /// It does not speak this protocol.
    None,
    /// This one.
    Agreed(&'static str),
    /// It speaks this protocol, in no version that is known.
    Unknown,
}

/// Picks the first of a client's subprotocols that is known. `offers` are the values of its `Sec-WebSocket-Protocol` headers.
pub fn negotiate<'a>(offers: impl IntoIterator<Item = &'a str>) -> Negotiated {
    let mut negotiated = Negotiated::None;
    for offer in offers.into_iter().flat_map(|it| it.split(',')).map(str::trim) {
        if let Some(known) = SUBPROTOCOLS.iter().find(|it| **it == offer) {
            return Negotiated::Agreed(known);
        }
        if offer.starts_with("foxglove.") {
            negotiated = Negotiated::Unknown;
        }
    }
    negotiated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_known_is_taken() {
        let agreed = |offers: &[&str]| negotiate(offers.iter().copied());
        assert_eq!(agreed(&[]), Negotiated::None);
        assert_eq!(agreed(&["rosbridge_v2, x"]), Negotiated::None);
        assert_eq!(agreed(&["x", "foxglove.websocket.v1"]), Negotiated::Agreed(SUBPROTOCOLS[1]));
        let both = "foxglove.websocket.v2 , foxglove.sdk.v1,foxglove.websocket.v1";
        assert_eq!(agreed(&[both]), Negotiated::Agreed(SUBPROTOCOLS[0]));
        assert_eq!(agreed(&["foxglove.sdk.v2"]), Negotiated::Unknown);
        assert_eq!(agreed(&["Foxglove.sdk.v1"]), Negotiated::None, "its letters count");
    }
}

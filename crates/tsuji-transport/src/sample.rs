use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::Bytes;

/// Global identifier of an endpoint or a node: 16 bytes, as in the ROS graph.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gid(pub [u8; 16]);

impl From<Gid> for [u8; 16] {
    fn from(gid: Gid) -> Self {
        gid.0
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02x}", if at == 0 { "" } else { "." })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What is known of a sample besides its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The publisher.
    pub gid: Gid,
    /// Its number for this sample, from 1, without gaps.
    pub sequence: u64,
    /// When it was published, in nanoseconds since the Unix epoch; 0 or less where nobody says.
    pub wall_ns: i64,
    /// The same on the publisher's monotonic clock. 0 at a receiver that does not share that clock, or
    /// is not told.
    pub mono_ns: u64,
    /// Where `mono_ns` is 0, when it arrived, or where that is known was sent, on the receiver's
    /// monotonic clock.
    pub arrived_ns: u64,
    /// How the bytes are encoded.
    pub encoding: Encoding,
    /// The request that this sample answers: its client, and its number, which is not 0. Of a request on a
    /// [`Wire`](crate::wire::Wire) that relates, who takes the replies, and 0.
    pub related: Option<(Gid, u64)>,
    /// What stands in front of the body of a request or a reply for readers that look there for what it
    /// relates to. On a [`Wire`](crate::wire::Wire) that relates [by either](crate::wire::Relates::Either).
    pub header: Option<RelationHeader>,
}

/// What a request or a reply begins with, behind the encapsulation header, where that says what it
/// relates to.
pub type RelationHeader = [u8; 16];

/// How the bytes of a payload are encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Encoding {
    /// CDR, version 1, with its header of 4 bytes.
    #[default]
    Cdr1 = 0,
    /// Bytes that mean something to the two ends only.
    Opaque = 1,
}

impl Encoding {
    /// The encoding with this number on the wire.
    pub fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Cdr1),
            1 => Some(Self::Opaque),
            _ => None,
        }
    }
}

/// What a sample carries.
#[derive(Clone)]
pub enum Payload {
    /// A value, shared by reference inside the process.
    Typed(Arc<dyn Any + Send + Sync>),
    /// Bytes, encoded as the envelope says.
    Bytes(Bytes),
}

impl Payload {
    /// How many bytes it has, if it has bytes.
    pub fn byte_len(&self) -> Option<usize> {
        match self {
            Self::Typed(_) => None,
            Self::Bytes(bytes) => Some(bytes.len()),
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Typed(_) => f.write_str("Typed"),
            Self::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

/// One sample on its way.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What is known of it.
    pub envelope: Envelope,
    /// What it carries.
    pub payload: Payload,
}

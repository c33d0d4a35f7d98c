//! Conversion of messages between the serialised form of ROS 1 and CDR.
//!
//! ROS 1 writes little endian, without padding, and counts strings and arrays in 32 bits. CDR aligns every number to its
//! size and ends strings with NUL. A [`Plan`] is compiled once for a pair of types; where the bytes are the same in both
//! forms, as in an image or a list of points, they are copied as one piece.
//!
//! Fields belong together by name, or as a rule of the [`Mapping`] says; a field of ROS 1 may have capitals that ROS 2 does
//! not allow. If one of the two types has further fields, they are passed over, and have their default values on the way
//! back. If both have, the types are refused unless a rule lists their fields, as ros1_bridge does. Numbers of different
//! types convert if the value fits; numbers of eight bits and `bool` are exchanged as bytes.
//!
//! A time that the other side cannot state becomes the nearest that it can: negative ones of ROS 2 are zero in ROS 1, and
//! those of ROS 1 from 2^31 seconds on are the last of ROS 2.

mod compile;
mod error;
mod matching;
mod program;
mod state;

pub use error::{ConvertError, ConvertProblem, PlanError};

use crate::mapping::Mapping;
use crate::types::MessageType;
use compile::Direction;
use program::Program;
use state::State;
use std::sync::Arc;
use tsuji_msg::TypeDescription;
use tsuji_msg::cdr::{ByteOrder, HEADER_SIZE};

/// Bytes of a converted message. One that would become longer is refused; roscpp drops such a message too.
pub const MESSAGE_BYTES_MAX: usize = 1_000_000_000;

/// Fields that a plan may look at. Types of more are refused, which bounds the time and memory that a plan takes.
pub const PLAN_FIELDS_MAX: usize = 1 << 16;

/// Bytes that the elements without bytes in ROS 1, such as those of `std_msgs/Empty[]`, may have in CDR, in all lists of a
/// message together. More are refused, because their count alone says how much memory they take.
pub const EMPTY_ELEMENTS_BYTES_MAX: usize = 1 << 20;

/// Converts messages of one type between ROS 1's form and CDR.
#[derive(Debug)]
pub struct Plan {
    to_ros1: Program,
    to_cdr: Program,
}

impl Plan {
    /// Compiles the conversion between two types.
    ///
    /// # Errors
    ///
    /// A [`PlanError`] if both types have fields that the other has not and no rule lists their fields, if two fields that
    /// belong together have types that do not convert, if a rule names a field that is not there, or if the types have more
    /// than [`PLAN_FIELDS_MAX`] fields.
    pub fn new(
        ros1: &MessageType,
        ros2: &Arc<TypeDescription>,
        mapping: &Mapping,
    ) -> Result<Self, PlanError> {
        Ok(Self {
            to_ros1: compile::program(ros1, ros2, mapping, Direction::ToRos1)?,
            to_cdr: compile::program(ros1, ros2, mapping, Direction::ToCdr)?,
        })
    }

    /// Appends the message in ROS 1's form to `out`, without the length that TCPROS puts before it.
    ///
    /// `cdr` begins with its encapsulation header and may have either byte order. `seq` is what `header.seq` becomes, or `seq`
    /// of a message that is a header itself; in other places it is 0.
    ///
    /// # Errors
    ///
    /// A [`ConvertError`] if `cdr` is no message of the type, a number does not fit into its type in ROS 1, or the result
    /// would be longer than [`MESSAGE_BYTES_MAX`]. Nothing is appended then.
    pub fn to_ros1(&self, cdr: &[u8], seq: u32, out: &mut Vec<u8>) -> Result<(), ConvertError> {
        let order = ByteOrder::from_header(cdr).map_err(ConvertError::header)?;
        let body = cdr.get(HEADER_SIZE..).unwrap_or_default();
        let start = out.len();
        let mut state = State::new(body, out, self.to_ros1.slots, order == ByteOrder::Big, seq);
        let done = self.to_ros1.run::<true>(&mut state);
        done.inspect_err(|_| out.truncate(start)).map_err(|error| error.behind(HEADER_SIZE))
    }

    /// Appends CDR with its encapsulation header, little endian, to `out`. Alignment counts from behind that header.
    ///
    /// What follows the message in `ros1` is ignored, as ROS 1 does.
    ///
    /// # Errors
    ///
    /// A [`ConvertError`] if `ros1` is no message of the type, a string or list is longer than its bound in ROS 2, a number
    /// does not fit into its type in ROS 2, a list has more elements without bytes than [`EMPTY_ELEMENTS_BYTES_MAX`] allows,
    /// or the result would be longer than [`MESSAGE_BYTES_MAX`]. Nothing is appended then.
    pub fn to_cdr(&self, ros1: &[u8], out: &mut Vec<u8>) -> Result<(), ConvertError> {
        let start = out.len();
        out.extend_from_slice(&ByteOrder::Little.header());
        let mut state = State::new(ros1, out, self.to_cdr.slots, false, 0);
        let done = self.to_cdr.run::<false>(&mut state);
        done.inspect_err(|_| out.truncate(start))
    }
}

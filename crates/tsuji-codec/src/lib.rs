//! ROS messages as JSON, CBOR and BSON, straight from CDR and to CDR: by a [`Plan`] that is made once for a type, in one
//! pass, and with no tree of values in between.
//!
//! This crate turns bytes into bytes. It knows no topic, no protocol, no file and no clock: the time comes in as an
//! argument.
//!
//! ```
//! use tsuji_codec::{Now, Plan};
//! use tsuji_msg::TypeSet;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let types = TypeSet::new(tsuji_interfaces::Shipped);
//! let plan = Plan::new(&types.load("geometry_msgs/msg/Twist")?);
//! let mut cdr = Vec::new();
//! plan.cdr_from_json(br#"{"linear": {"x": 0.5}}"#, Now { sec: 0, nanosec: 0 }, &mut cdr)?;
//! let mut json = Vec::new();
//! plan.json_from_cdr(&cdr, &mut json)?;
//! assert!(json.starts_with(br#"{"linear":{"x":0.5,"y":0.0,"z":0.0},"#));
//! # Ok(())
//! # }
//! ```
//!
//! # What is read
//!
//! - An object with the fields of the message, in any order. A field that is not named keeps the default of its definition.
//!   Defaults that nobody named may take [`DEFAULT_BYTES_MAX`] beside those of one empty message; more is an error.
//! - At the top also a list of the fields' values in the order of the definition, as rosbridge allows for `args`. Fewer
//!   than there are fields leaves the others at their defaults, more is an error.
//! - An unknown name, a name that comes twice, a value of another type or out of range, and a wrong number of elements are
//!   errors, which name the field, what was found and what was expected.
//! - A whole number takes a float without a fraction, of at most 2⁵³: `3.0` is 3, and `3.5` is an error. (rosbridge_suite
//!   refuses both, and no JavaScript ever writes the first.) A float takes any number that does not become infinite. No
//!   number is a text, and a `bool` is `true` or `false`.
//! - `null` is a NaN where a float is wanted, and an error elsewhere. So are `NaN`, `Infinity` and `-Infinity` in JSON, as Python
//!   writes them.
//! - `uint8[]`, `byte[]` and `char[]`, of a fixed length too, are a list of numbers, or a text in base64, or in CBOR and
//!   BSON bytes.
//! - A `std_msgs/Header` that has no `stamp` gets the time now. One that is not there at all is not stamped, as in
//!   rosbridge_suite. A `builtin_interfaces/Time` may be the text `now`. For Time and Duration `secs` and `nsecs` are
//!   understood beside `sec` and `nanosec`, and a Header's `seq` is passed over, since clients of ROS 1 send them.
//!
//! # What is written
//!
//! - Every field, in the order of the definition. All digits of a whole number; of a float the fewest that read back. A
//!   NaN and the infinities become `null` in JSON, and are what they are in CBOR and BSON.
//! - Arrays of bytes are base64 in JSON, a byte string in CBOR and binary in BSON; arrays of other numbers are typed arrays
//!   in CBOR. A whole number of BSON that no signed number of 64 bits holds is a `decimal128`.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod base64;
pub mod bson;
pub mod cbor;
mod cdr;
mod error;
pub mod json;
mod number;
mod plan;
mod raw;
mod read;
mod write;

pub use error::FieldError;
pub use raw::{Format, Members, Raw};
pub use tsuji_msg::Now;

use plan::Struct;
use std::sync::Arc;
use tsuji_msg::{CdrError, TypeDescription};

/// Bytes of default values that one message may make of fields that it does not name, beside those of an empty
/// message of its type. Beyond that it is refused: `[{}, {}]` may be short and its defaults long.
pub const DEFAULT_BYTES_MAX: usize = 16 << 20;

/// Objects and lists in each other in a value that is passed over. A deeper one is refused. Messages themselves are
/// nested no deeper than [`tsuji_msg::NESTING_MAX`].
pub const DEPTH_MAX: usize = 128;

/// How messages of one type are read and written. Made once for a type; used from any thread, and cheap to clone.
///
/// What is read and written is appended to `out`, and nothing is where that fails. CDR is a whole sample, little
/// endian, with its header of 4 bytes.
#[derive(Clone, Debug)]
pub struct Plan {
    ty: Arc<TypeDescription>,
    root: Arc<Struct>,
}

impl Plan {
    /// Makes ready a type and all that it uses.
    pub fn new(ty: &Arc<TypeDescription>) -> Self {
        Self { ty: ty.clone(), root: Struct::new(ty) }
    }

    /// The type of the messages.
    pub fn ty(&self) -> &Arc<TypeDescription> {
        &self.ty
    }

    /// Reads a message of any format. `now` is for a stamp that is not named.
    ///
    /// # Errors
    ///
    /// A [`FieldError`] with the path of the field and the offset if
    /// - the bytes are no value of the format, or have something behind it;
    /// - a value is of another kind than its field, out of range, or longer than its type allows;
    /// - an object has a name that its type does not have, or a name twice;
    /// - a list has a wrong number of elements, or stands for a message and has more values than that has fields;
    /// - the fields that are not named take more than [`DEFAULT_BYTES_MAX`];
    /// - what is passed over in JSON or CBOR is nested deeper than [`DEPTH_MAX`].
    pub fn read(&self, message: Raw<'_>, now: Now, out: &mut Vec<u8>) -> Result<(), FieldError> {
        let Raw { format, kind, bytes } = message;
        match format {
            Format::Json => read::read(&self.root, json::Scanner::new(bytes), now, out),
            Format::Cbor => read::read(&self.root, cbor::Scanner::new(bytes), now, out),
            Format::Bson => read::read(&self.root, bson::Scanner::new(kind, bytes), now, out),
        }
    }

    /// Writes a sample in any format. Bytes after the message are taken for padding.
    ///
    /// # Errors
    ///
    /// - [`CdrProblem::Encapsulation`](tsuji_msg::CdrProblem::Encapsulation) if the header of the sample does not
    ///   announce plain CDR.
    /// - [`CdrProblem::Truncated`](tsuji_msg::CdrProblem::Truncated) if the bytes end before the message does.
    /// - [`CdrProblem::Length`](tsuji_msg::CdrProblem::Length) if a sequence, a text or an array of numbers has
    ///   more elements than the bytes left can hold.
    /// - [`CdrProblem::Bool`](tsuji_msg::CdrProblem::Bool) if a `bool` is neither 0 nor 1;
    ///   [`CdrProblem::Terminator`](tsuji_msg::CdrProblem::Terminator) if a string does not end with NUL.
    /// - [`CdrProblem::Bound`](tsuji_msg::CdrProblem::Bound) if a text or a sequence is longer than its type
    ///   allows, or of BSON a text, an array of bytes or a document has more than 2 GiB.
    pub fn write(&self, sample: &[u8], format: Format, out: &mut Vec<u8>) -> Result<(), CdrError> {
        let start = out.len();
        let written = match format {
            Format::Json => write::write(&self.root, sample, &mut json::Writer::new(out)),
            Format::Cbor => write::write(&self.root, sample, &mut cbor::Writer::new(out)),
            Format::Bson => write::write(&self.root, sample, &mut bson::Writer::new(out)),
        };
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    /// Reads a message of JSON, as [`Plan::read`].
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read).
    pub fn cdr_from_json(
        &self,
        json: &[u8],
        now: Now,
        out: &mut Vec<u8>,
    ) -> Result<(), FieldError> {
        self.read(Raw::new(Format::Json, json), now, out)
    }

    /// Writes a sample as JSON, as [`Plan::write`].
    ///
    /// # Errors
    ///
    /// Those of [`write`](Self::write).
    pub fn json_from_cdr(&self, sample: &[u8], out: &mut Vec<u8>) -> Result<(), CdrError> {
        self.write(sample, Format::Json, out)
    }

    /// Reads a message of CBOR, as [`Plan::read`].
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read).
    pub fn cdr_from_cbor(
        &self,
        cbor: &[u8],
        now: Now,
        out: &mut Vec<u8>,
    ) -> Result<(), FieldError> {
        self.read(Raw::new(Format::Cbor, cbor), now, out)
    }

    /// Writes a sample as CBOR, as [`Plan::write`].
    ///
    /// # Errors
    ///
    /// Those of [`write`](Self::write).
    pub fn cbor_from_cdr(&self, sample: &[u8], out: &mut Vec<u8>) -> Result<(), CdrError> {
        self.write(sample, Format::Cbor, out)
    }

    /// Reads a message from a document of BSON, as [`Plan::read`].
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read).
    pub fn cdr_from_bson(
        &self,
        document: &[u8],
        now: Now,
        out: &mut Vec<u8>,
    ) -> Result<(), FieldError> {
        self.read(Raw::new(Format::Bson, document), now, out)
    }

    /// Writes a sample as a document of BSON, as [`Plan::write`]. More than 2 GiB are refused.
    ///
    /// # Errors
    ///
    /// Those of [`write`](Self::write).
    pub fn bson_from_cdr(&self, sample: &[u8], out: &mut Vec<u8>) -> Result<(), CdrError> {
        self.write(sample, Format::Bson, out)
    }
}

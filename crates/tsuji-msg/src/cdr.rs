//! The CDR encoding (XCDR1) of message bytes, in both byte orders.
//!
//! A sample is a 4-byte encapsulation header and a body. Everything in the body is aligned to its
//! own size relative to the start of the body, so a reader or writer counts its position from
//! there.
//!
//! Strings carry their length with the terminating NUL. A `wstring` is a count of UTF-16 code units
//! followed by one 32-bit word for each, without a terminator: that is what rmw_cyclonedds (its
//! `wchar_t` has 4 bytes on Linux) and the Fast DDS type support of ROS 2 both write, the latter
//! widening on purpose to agree with the former. An array without elements adds no padding.

mod error;
mod reader;
mod scalar;
mod writer;

pub use error::{CdrError, CdrProblem};
pub use reader::Reader;
pub use scalar::{Number, Scalar};
pub use writer::{Bounds, Count, Sink, Slice, Writer};

/// Bytes of the encapsulation header before the body.
pub const HEADER_SIZE: usize = 4;

/// Address of the header modulo 16 that makes the body 16-byte aligned.
pub const HEADER_OFFSET_MOD_16: usize = 12;

/// The byte order of a CDR body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first, encapsulation `00 01`. What tsuji writes.
    Little,
    /// Most significant byte first, encapsulation `00 00`.
    Big,
}

impl ByteOrder {
    /// The byte order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// Whether bytes in this order can be used on this machine as they are.
    #[inline]
    pub fn is_native(self) -> bool {
        self == Self::NATIVE
    }

    /// The encapsulation header that announces this order.
    pub fn header(self) -> [u8; HEADER_SIZE] {
        match self {
            Self::Big => [0, 0, 0, 0],
            Self::Little => [0, 1, 0, 0],
        }
    }

    /// Reads the encapsulation header of a sample.
    ///
    /// # Errors
    ///
    /// [`CdrProblem::Truncated`] if there are fewer than 4 bytes; [`CdrProblem::Encapsulation`] if they announce
    /// anything but plain CDR in either byte order.
    pub fn from_header(bytes: &[u8]) -> Result<Self, CdrError> {
        match *bytes {
            // The last two bytes are options; some writers put the count of padding bytes there.
            [0, 0, _, _, ..] => Ok(Self::Big),
            [0, 1, _, _, ..] => Ok(Self::Little),
            [first, second, _, _, ..] => {
                Err(CdrError::new(0, CdrProblem::Encapsulation([first, second])))
            }
            _ => Err(CdrError::new(
                0,
                CdrProblem::Truncated { needed: HEADER_SIZE, left: bytes.len() },
            )),
        }
    }
}

//! The numbers of ROS, each with how it is made of what the formats have.

use tsuji_msg::cdr::Scalar;

/// A number of ROS.
pub(crate) trait Number: Scalar {
    /// What `null` stands for.
    const NULL: Option<Self>;

    /// The tag of RFC 8746 for an array of such numbers, little endian.
    const CBOR_TAG: u8;

    /// From a whole number, if it is in range. Any is in the range of a float, which takes the nearest.
    fn from_whole(value: i128) -> Option<Self>;

    /// From a float. A whole number takes only one without a fraction, and only as far as floats hold every whole
    /// number; `float32` takes the nearest, but no finite one that would become infinite.
    fn from_float(value: f64) -> Option<Self>;

    /// From the beginning of a text, which is a number as JSON writes it, as [`from_float`](Self::from_float) but
    /// without rounding twice; and how many bytes it has. What no float can hold is infinite.
    fn from_decimal(text: &[u8]) -> Option<(Self, usize)>;

    /// What it is, for formats that know fewer kinds.
    fn widened(self) -> Wide;

    /// Appends it as JSON: in the fewest digits that read back, a NaN or an infinity as `null`.
    fn write_json(self, out: &mut Vec<u8>);

    /// Appends it as CDR has it, without padding.
    fn write_cdr(self, out: &mut Vec<u8>);
}

/// A number as CBOR and BSON know it.
#[derive(Clone, Copy)]
pub(crate) enum Wide {
    Whole(i128),
    F32(f32),
    F64(f64),
}

/// Below it every whole number is a float.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The whole number that a float is.
fn whole(value: f64) -> Option<i128> {
    (value.fract() == 0.0 && value.abs() <= EXACT_MAX).then_some(value as i128)
}

/// Whether the number at the beginning of a text is infinite, as Python reads it: its floats have 64 bits, and what only
/// `float32` cannot hold is a mistake.
#[cold]
fn is_beyond_all_floats(text: &[u8]) -> bool {
    fast_float2::parse_partial::<f64, _>(text).is_ok_and(|(value, _)| value.is_infinite())
}

macro_rules! whole_number {
    ($($type:ty: $tag:literal;)*) => {$(
        impl Number for $type {
            const NULL: Option<Self> = None;
            const CBOR_TAG: u8 = $tag;

            #[inline]
            fn from_whole(value: i128) -> Option<Self> {
                Self::try_from(value).ok()
            }

            fn from_float(value: f64) -> Option<Self> {
                Self::from_whole(whole(value)?)
            }

            #[cold]
            fn from_decimal(text: &[u8]) -> Option<(Self, usize)> {
                let (value, size) = fast_float2::parse_partial(text).ok()?;
                Some((Self::from_float(value)?, size))
            }

            #[inline]
            fn widened(self) -> Wide {
                Wide::Whole(self.into())
            }

            #[inline]
            fn write_json(self, out: &mut Vec<u8>) {
                out.extend_from_slice(itoa::Buffer::new().format(self).as_bytes());
            }

            #[inline]
            fn write_cdr(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

whole_number! {
    u8: 64;
    u16: 69;
    u32: 70;
    u64: 71;
    i8: 72;
    i16: 77;
    i32: 78;
    i64: 79;
}

/// Room for the digits of a float, in one line of the cache: a copy out of two waits until they are written, and a float
/// costs twice as much.
#[repr(align(64))]
struct Digits(zmij::Buffer);

macro_rules! float {
    ($($type:ident: $tag:literal, $wide:ident, $value:ident => $narrowed:expr;)*) => {$(
        impl Number for $type {
            const NULL: Option<Self> = Some(Self::NAN);
            const CBOR_TAG: u8 = $tag;

            #[inline]
            fn from_whole(value: i128) -> Option<Self> {
                Some(value as Self)
            }

            #[inline]
            fn from_float($value: f64) -> Option<Self> {
                let narrowed: Self = $narrowed;
                (narrowed.is_finite() || !$value.is_finite()).then_some(narrowed)
            }

            #[inline]
            fn from_decimal(text: &[u8]) -> Option<(Self, usize)> {
                let (value, size): (Self, usize) = fast_float2::parse_partial(text).ok()?;
                (value.is_finite() || is_beyond_all_floats(text)).then_some((value, size))
            }

            #[inline]
            fn widened(self) -> Wide {
                Wide::$wide(self)
            }

            #[inline]
            fn write_json(self, out: &mut Vec<u8>) {
                if self.is_finite() {
                    let mut digits = Digits(zmij::Buffer::new());
                    out.extend_from_slice(digits.0.format_finite(self).as_bytes());
                } else {
                    out.extend_from_slice(b"null");
                }
            }

            #[inline]
            fn write_cdr(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

float! {
    f32: 85, F32, value => value as Self;
    f64: 86, F64, value => value;
}

/// Does the same for every kind of number, which is `$number` in it, and something else for `bool`.
macro_rules! each_number {
    ($kind:expr, bool => $boolean:expr, $number:ident => $result:expr) => {
        match $kind {
            ScalarKind::Bool => $boolean,
            ScalarKind::Byte | ScalarKind::Char | ScalarKind::U8 => {
                type $number = u8;
                $result
            }
            ScalarKind::I8 => {
                type $number = i8;
                $result
            }
            ScalarKind::U16 => {
                type $number = u16;
                $result
            }
            ScalarKind::I16 => {
                type $number = i16;
                $result
            }
            ScalarKind::U32 => {
                type $number = u32;
                $result
            }
            ScalarKind::I32 => {
                type $number = i32;
                $result
            }
            ScalarKind::U64 => {
                type $number = u64;
                $result
            }
            ScalarKind::I64 => {
                type $number = i64;
                $result
            }
            ScalarKind::F32 => {
                type $number = f32;
                $result
            }
            ScalarKind::F64 => {
                type $number = f64;
                $result
            }
        }
    };
}

pub(crate) use each_number;

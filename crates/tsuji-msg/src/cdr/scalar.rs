use super::ByteOrder;
use crate::definition::ScalarKind;
use bytemuck::{CheckedBitPattern, NoUninit, Pod, Zeroable};
use std::fmt::Debug;

/// A number or `bool` with a fixed size in CDR. Sealed: the set is that of ROS 2.
pub trait Scalar:
    CheckedBitPattern
    + NoUninit
    + Zeroable
    + Copy
    + Default
    + PartialEq
    + Debug
    + Send
    + Sync
    + sealed::Sealed
    + 'static
{
    /// Size and alignment in CDR.
    const SIZE: usize = size_of::<Self>();

    /// Which number it is; none if it is a `bool`.
    const NUMBER: Option<ScalarKind>;

    /// The value with its bytes reversed.
    #[must_use]
    fn swapped(self) -> Self;

    /// The value in the first [`Scalar::SIZE`] bytes; none if the bit pattern is not allowed or
    /// bytes are missing.
    fn from_bytes(bytes: &[u8], order: ByteOrder) -> Option<Self>;

    /// All values in `bytes`, in this machine's byte order; none if they are not aligned, a bit pattern is not allowed or bytes are
    /// left. Of numbers no bit pattern is looked at: a build that is not optimised would take 40 ms for a picture of 6 MB.
    fn slice_from_bytes(bytes: &[u8]) -> Option<&[Self]>;

    /// All values in `bytes`, copied as a block when the byte order allows it; none if a bit
    /// pattern is not allowed.
    fn vec_from_bytes(bytes: &[u8], order: ByteOrder) -> Option<Vec<Self>>;

    /// Fills `out` from as many bytes; false if a bit pattern is not allowed or the lengths differ.
    fn fill_from_bytes(out: &mut [Self], bytes: &[u8], order: ByteOrder) -> bool;

    /// Whether every bit pattern in `bytes` is allowed.
    fn check_bytes(bytes: &[u8]) -> bool;
}

/// A number, of which every bit pattern is allowed: what can be written and read in place.
pub trait Number: Scalar + Pod {}

mod sealed {
    /// Keeps [`Scalar`](super::Scalar) to the scalars of ROS 2.
    #[expect(unnameable_types, reason = "what nobody can name nobody can implement")]
    pub trait Sealed {}
}

macro_rules! number {
    ($($type:ty, $kind:ident, $value:ident => $swapped:expr;)*) => {$(
        impl sealed::Sealed for $type {}

        impl Number for $type {}

        impl Scalar for $type {
            const NUMBER: Option<ScalarKind> = Some(ScalarKind::$kind);

            #[inline]
            fn swapped(self) -> Self {
                let $value = self;
                $swapped
            }

            #[inline]
            fn from_bytes(bytes: &[u8], order: ByteOrder) -> Option<Self> {
                let bytes = *bytes.first_chunk()?;
                Some(match order {
                    ByteOrder::Little => Self::from_le_bytes(bytes),
                    ByteOrder::Big => Self::from_be_bytes(bytes),
                })
            }

            #[inline]
            fn slice_from_bytes(bytes: &[u8]) -> Option<&[Self]> {
                bytemuck::try_cast_slice(bytes).ok()
            }

            fn vec_from_bytes(bytes: &[u8], order: ByteOrder) -> Option<Vec<Self>> {
                if order.is_native()
                    && let Some(aligned) = Self::slice_from_bytes(bytes)
                {
                    return Some(aligned.to_vec());
                }
                let mut values = vec![Self::zeroed(); bytes.len() / Self::SIZE];
                Self::fill_from_bytes(&mut values, bytes, order).then_some(values)
            }

            fn fill_from_bytes(out: &mut [Self], bytes: &[u8], order: ByteOrder) -> bool {
                let target: &mut [u8] = bytemuck::cast_slice_mut(out);
                if target.len() != bytes.len() {
                    return false;
                }
                target.copy_from_slice(bytes);
                if !order.is_native() {
                    for value in out {
                        *value = value.swapped();
                    }
                }
                true
            }

            #[inline]
            fn check_bytes(_: &[u8]) -> bool {
                true
            }
        }
    )*};
}

number! {
    u8, U8, value => value;
    i8, I8, value => value;
    u16, U16, value => value.swap_bytes();
    i16, I16, value => value.swap_bytes();
    u32, U32, value => value.swap_bytes();
    i32, I32, value => value.swap_bytes();
    u64, U64, value => value.swap_bytes();
    i64, I64, value => value.swap_bytes();
    f32, F32, value => Self::from_bits(value.to_bits().swap_bytes());
    f64, F64, value => Self::from_bits(value.to_bits().swap_bytes());
}

impl sealed::Sealed for bool {}

impl Scalar for bool {
    const NUMBER: Option<ScalarKind> = None;

    #[inline]
    fn swapped(self) -> Self {
        self
    }

    #[inline]
    fn from_bytes(bytes: &[u8], _: ByteOrder) -> Option<Self> {
        match bytes.first() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        }
    }

    fn slice_from_bytes(bytes: &[u8]) -> Option<&[Self]> {
        bytemuck::checked::try_cast_slice(bytes).ok()
    }

    fn vec_from_bytes(bytes: &[u8], _: ByteOrder) -> Option<Vec<Self>> {
        Self::slice_from_bytes(bytes).map(<[Self]>::to_vec)
    }

    fn fill_from_bytes(out: &mut [Self], bytes: &[u8], _: ByteOrder) -> bool {
        match Self::slice_from_bytes(bytes) {
            Some(values) if values.len() == out.len() => {
                out.copy_from_slice(values);
                true
            }
            _ => false,
        }
    }

    fn check_bytes(bytes: &[u8]) -> bool {
        bytes.iter().all(|byte| *byte <= 1)
    }
}

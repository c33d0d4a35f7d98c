//! One conversion under way: what is read and what is written.

use super::error::{ConvertError, ConvertProblem};
use super::{EMPTY_ELEMENTS_BYTES_MAX, MESSAGE_BYTES_MAX};
use tsuji_msg::definition::ScalarKind;

pub(super) struct State<'a> {
    source: &'a [u8],
    pub(super) at: usize,
    pub(super) out: &'a mut Vec<u8>,
    /// Length of `out` where alignment counts from.
    origin: usize,
    /// Positions of fields that are not read in their order.
    pub(super) slots: Vec<usize>,
    /// Whether the source is big endian.
    pub(super) is_big: bool,
    pub(super) seq: u32,
    /// Bytes that elements without bytes may still have on the other side.
    empty_left: usize,
}

/// A number between its two types.
#[derive(Clone, Copy)]
pub(super) enum Number {
    Integer(i128),
    Float(f64),
}

impl<'a> State<'a> {
    pub(super) fn new(
        source: &'a [u8],
        out: &'a mut Vec<u8>,
        slots: usize,
        is_big: bool,
        seq: u32,
    ) -> Self {
        // In most messages either form has about as many bytes as the other.
        out.reserve(source.len().min(MESSAGE_BYTES_MAX));
        Self {
            source,
            at: 0,
            origin: out.len(),
            out,
            slots: vec![0; slots],
            is_big,
            seq,
            empty_left: EMPTY_ELEMENTS_BYTES_MAX,
        }
    }

    fn left(&self) -> usize {
        self.source.len().saturating_sub(self.at)
    }

    #[cold]
    pub(super) fn error(&self, problem: ConvertProblem) -> ConvertError {
        ConvertError::new(self.at.min(self.source.len()), problem)
    }

    /// Aligns what is read. Beyond the end the next read finds nothing.
    #[inline]
    pub(super) fn align_source(&mut self, align: usize) {
        self.at = self.at.next_multiple_of(align);
    }

    /// Aligns what is written.
    #[inline]
    pub(super) fn align_out(&mut self, align: usize) {
        let position = self.out.len() - self.origin;
        let padding = position.next_multiple_of(align) - position;
        self.out.resize(self.out.len() + padding, 0);
    }

    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], ConvertError> {
        let end = self.at.checked_add(count);
        let bytes = end.and_then(|end| Some((self.source.get(self.at..end)?, end)));
        let Some((bytes, end)) = bytes else {
            let left = self.left();
            return Err(self.error(ConvertProblem::Truncated { needed: count, left }));
        };
        self.at = end;
        Ok(bytes)
    }

    /// Reads a count, without alignment.
    #[inline]
    pub(super) fn count(&mut self) -> Result<usize, ConvertError> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(if self.is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) } as usize)
    }

    /// Checks that so many elements can follow, of which each has so many bytes at least on either side.
    #[inline]
    pub(super) fn expect(
        &mut self,
        claimed: usize,
        min: usize,
        target_min: usize,
    ) -> Result<(), ConvertError> {
        let left = self.left();
        if min == 0 {
            let bytes = claimed.saturating_mul(target_min.max(1));
            let Some(left) = self.empty_left.checked_sub(bytes) else {
                return Err(self.error(ConvertProblem::EmptyElements { claimed }));
            };
            self.empty_left = left;
            return Ok(());
        }
        match claimed.checked_mul(min).is_some_and(|bytes| bytes <= left) {
            true => Ok(()),
            false => Err(self.error(ConvertProblem::Length { claimed, left })),
        }
    }

    /// Checks that so many bytes may still be written.
    #[inline]
    fn make_room(&self, count: usize) -> Result<(), ConvertError> {
        match (self.out.len() - self.origin).saturating_add(count) <= MESSAGE_BYTES_MAX {
            true => Ok(()),
            false => Err(self.error(ConvertProblem::TooLong)),
        }
    }

    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), ConvertError> {
        self.make_room(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    pub(super) fn zeros(&mut self, count: usize) -> Result<(), ConvertError> {
        self.make_room(count)?;
        self.out.resize(self.out.len() + count, 0);
        Ok(())
    }

    /// Writes a count, without alignment.
    #[inline]
    pub(super) fn put_count(&mut self, count: usize) -> Result<(), ConvertError> {
        let count = u32::try_from(count).map_err(|_| self.error(ConvertProblem::TooLong))?;
        self.put(&count.to_le_bytes())
    }

    pub(super) fn number(&mut self, kind: ScalarKind) -> Result<Number, ConvertError> {
        let bytes = self.take(kind.size())?;
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        if self.is_big {
            wide[..bytes.len()].reverse();
        }
        let bits = u64::from_le_bytes(wide);
        Ok(match kind {
            ScalarKind::F32 => Number::Float(f32::from_bits(bits as u32).into()),
            ScalarKind::F64 => Number::Float(f64::from_bits(bits)),
            ScalarKind::I8 => Number::Integer((bits as i8).into()),
            ScalarKind::I16 => Number::Integer((bits as i16).into()),
            ScalarKind::I32 => Number::Integer((bits as i32).into()),
            ScalarKind::I64 => Number::Integer((bits as i64).into()),
            _ => Number::Integer(bits.into()),
        })
    }

    /// Writes a number that was just read as `from`.
    pub(super) fn put_number(
        &mut self,
        kind: ScalarKind,
        number: Number,
        from: ScalarKind,
    ) -> Result<(), ConvertError> {
        let bits = match number {
            Number::Float(value) if kind == ScalarKind::F32 => u64::from((value as f32).to_bits()),
            Number::Float(value) => value.to_bits(),
            Number::Integer(value) => {
                let (min, max) = kind.integer_range().unwrap_or_default();
                if !(min..=max).contains(&value) {
                    let to = kind.name();
                    let start = self.at.saturating_sub(from.size());
                    return Err(ConvertError::new(start, ConvertProblem::Range { value, to }));
                }
                value as u64
            }
        };
        self.put(&bits.to_le_bytes()[..kind.size()])
    }
}

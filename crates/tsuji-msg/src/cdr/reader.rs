use std::borrow::Cow;

use super::writer::Bounds;
use super::{ByteOrder, CdrError, CdrProblem, HEADER_SIZE, Scalar};
use crate::wire::{Bounded, Wire};

/// Reads values from a CDR sample. Every read is checked against the end of the bytes, and a length
/// is believed only as far as the bytes that follow can justify it.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    body: &'a [u8],
    position: usize,
    order: ByteOrder,
    is_lossy: bool,
}

impl<'a> Reader<'a> {
    /// Reads a sample with its encapsulation header. Bytes after the message are taken for padding.
    ///
    /// # Errors
    ///
    /// Those of [`ByteOrder::from_header`].
    pub fn new(sample: &'a [u8]) -> Result<Self, CdrError> {
        let order = ByteOrder::from_header(sample)?;
        let body = sample.get(HEADER_SIZE..).unwrap_or_default();
        Ok(Self { body, position: 0, order, is_lossy: false })
    }

    /// Reads a sample with its encapsulation header, and owned texts may have U+FFFD where they are not UTF-8, or
    /// wide ones not UTF-16.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn lossy(sample: &'a [u8]) -> Result<Self, CdrError> {
        Ok(Self { is_lossy: true, ..Self::new(sample)? })
    }

    /// Reads an owned string.
    #[inline]
    pub(crate) fn owned_string(&mut self) -> Result<String, CdrError> {
        match self.is_lossy {
            true => Ok(self.lossy_string()?.0.into_owned()),
            false => self.string().map(String::from),
        }
    }

    /// Reads an owned wide string.
    pub(crate) fn owned_wstring(&mut self) -> Result<String, CdrError> {
        match self.is_lossy {
            true => Ok(self.lossy_wstring()?.0),
            false => self.wstring(),
        }
    }

    /// The byte order that the header announced.
    #[inline]
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// Offset of the next byte in the sample, header included.
    #[inline]
    pub fn offset(&self) -> usize {
        self.position + HEADER_SIZE
    }

    /// Moves to a byte of the sample, as [`offset`](Self::offset) told it. Beyond the end the next read finds nothing.
    #[inline]
    pub fn seek(&mut self, offset: usize) {
        self.position = offset.saturating_sub(HEADER_SIZE).min(self.body.len());
    }

    /// Bytes after the current position.
    #[inline]
    pub fn left(&self) -> usize {
        self.body.len() - self.position
    }

    /// Reads one scalar.
    ///
    /// # Errors
    ///
    /// [`CdrProblem::Truncated`] if the bytes end before it; [`CdrProblem::Bool`] if a `bool` is neither 0 nor 1.
    #[inline]
    pub fn scalar<T: Scalar>(&mut self) -> Result<T, CdrError> {
        self.align(T::SIZE);
        let bytes = self.take(T::SIZE)?;
        match T::from_bytes(bytes, self.order) {
            Some(value) => Ok(value),
            None => Err(self.bad_bool(bytes)),
        }
    }

    /// Reads `count` scalars into a vector, as a block when the byte order allows it.
    ///
    /// # Errors
    ///
    /// Those of [`scalar_bytes`](Self::scalar_bytes).
    pub fn scalars<T: Scalar>(&mut self, count: usize) -> Result<Vec<T>, CdrError> {
        let bytes = self.scalar_bytes::<T>(count)?;
        T::vec_from_bytes(bytes, self.order).ok_or_else(|| self.bad_bool(bytes))
    }

    /// Reads as many scalars as `out` has.
    ///
    /// # Errors
    ///
    /// Those of [`scalar_bytes`](Self::scalar_bytes).
    pub fn scalars_into<T: Scalar>(&mut self, out: &mut [T]) -> Result<(), CdrError> {
        let bytes = self.scalar_bytes::<T>(out.len())?;
        if T::fill_from_bytes(out, bytes, self.order) { Ok(()) } else { Err(self.bad_bool(bytes)) }
    }

    /// The bytes of `count` scalars, checked and in place.
    ///
    /// # Errors
    ///
    /// [`CdrProblem::Length`] if `count` scalars are more than the bytes left can hold; [`CdrProblem::Bool`] if a
    /// `bool` among them is neither 0 nor 1.
    pub fn scalar_bytes<T: Scalar>(&mut self, count: usize) -> Result<&'a [u8], CdrError> {
        let bytes = self.block(T::SIZE, count)?;
        if T::check_bytes(bytes) { Ok(bytes) } else { Err(self.bad_bool(bytes)) }
    }

    /// Bytes of `count` values of `size` bytes each, to which they are aligned.
    #[inline]
    pub(crate) fn block(&mut self, size: usize, count: usize) -> Result<&'a [u8], CdrError> {
        if count == 0 {
            return Ok(&[]);
        }
        self.align(size);
        match count.checked_mul(size).filter(|bytes| *bytes <= self.left()) {
            Some(bytes) => self.take(bytes),
            None => Err(self.length_error(count)),
        }
    }

    /// Reads the count of a sequence whose elements take at least `element_min` bytes each.
    ///
    /// # Errors
    ///
    /// [`CdrProblem::Truncated`] if the bytes end before the count does; [`CdrProblem::Length`] if it claims more
    /// elements than the bytes left can hold.
    #[inline]
    pub fn length(&mut self, element_min: usize) -> Result<usize, CdrError> {
        let count = self.scalar::<u32>()? as usize;
        match count.checked_mul(element_min) {
            Some(size) if size <= self.left() => Ok(count),
            _ => Err(self.length_error(count)),
        }
    }

    /// Reads a string in place.
    ///
    /// # Errors
    ///
    /// Those of [`lossy_string`](Self::lossy_string); [`CdrProblem::Utf8`] if the string is not UTF-8, which CDR
    /// does not promise.
    #[inline]
    pub fn string(&mut self) -> Result<&'a str, CdrError> {
        let text = self.string_bytes()?;
        str::from_utf8(text).map_err(|error| {
            let start = self.offset() - text.len() - 1;
            CdrError::new(start + error.valid_up_to(), CdrProblem::Utf8)
        })
    }

    /// Reads a string to be shown, and tells how many bytes it has.
    ///
    /// What in it is not UTF-8 is U+FFFD, as `String::from_utf8_lossy` says.
    ///
    /// # Errors
    ///
    /// Those of [`length`](Self::length) for the count; [`CdrProblem::Terminator`] if the string does not end with
    /// NUL. An empty one needs none.
    #[inline]
    pub fn lossy_string(&mut self) -> Result<(Cow<'a, str>, usize), CdrError> {
        let text = self.string_bytes()?;
        Ok((String::from_utf8_lossy(text), text.len()))
    }

    /// The bytes of a string, its terminator left out.
    #[inline]
    fn string_bytes(&mut self) -> Result<&'a [u8], CdrError> {
        let length = self.length(1)?;
        // Some writers give an empty string no terminator.
        if length == 0 {
            return Ok(&[]);
        }
        match self.take(length)? {
            [text @ .., 0] => Ok(text),
            _ => Err(CdrError::new(self.offset() - 1, CdrProblem::Terminator)),
        }
    }

    /// Reads a wide string.
    ///
    /// # Errors
    ///
    /// Those of [`length`](Self::length) for the count; [`CdrProblem::Utf16`] if the string is not UTF-16, such as
    /// half a surrogate pair.
    pub fn wstring(&mut self) -> Result<String, CdrError> {
        let start = self.offset() + size_of::<u32>();
        let bad = || CdrError::new(start, CdrProblem::Utf16);
        let units = self.wide_units()?.into_iter().map(u16::try_from);
        let units: Vec<u16> = units.collect::<Result<_, _>>().map_err(|_| bad())?;
        String::from_utf16(&units).map_err(|_| bad())
    }

    /// Reads a wide string to be shown, and tells how many units it has. What in it is not UTF-16 is U+FFFD.
    ///
    /// # Errors
    ///
    /// Those of [`length`](Self::length) for the count.
    pub fn lossy_wstring(&mut self) -> Result<(String, usize), CdrError> {
        const REPLACED: u16 = 0xfffd;
        let units = self.wide_units()?.into_iter();
        let units: Vec<u16> = units.map(|it| u16::try_from(it).unwrap_or(REPLACED)).collect();
        Ok((String::from_utf16_lossy(&units), units.len()))
    }

    /// The units of a wide string, each of which has the room of a 32-bit number.
    fn wide_units(&mut self) -> Result<Vec<u32>, CdrError> {
        let count = self.length(size_of::<u32>())?;
        self.scalars(count)
    }

    /// Passes over a string of which nothing is to be known.
    pub(crate) fn skip_string(&mut self) -> Result<(), CdrError> {
        self.string_bytes().map(drop)
    }

    /// Passes over a wide string of which nothing is to be known.
    pub(crate) fn skip_wstring(&mut self) -> Result<(), CdrError> {
        let count = self.length(size_of::<u32>())?;
        self.block(size_of::<u32>(), count).map(drop)
    }

    /// Passes over all before `end`, a position in the body.
    pub(crate) fn skip_to(&mut self, end: usize) -> Result<(), CdrError> {
        self.take(end.saturating_sub(self.position)).map(drop)
    }

    /// Bytes of the body before the current position.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Reads a field; an error names it.
    ///
    /// # Errors
    ///
    /// Those of [`Wire::read`] of `T`.
    #[inline]
    pub fn field<T: Wire>(&mut self, name: &str) -> Result<T, CdrError> {
        match T::read(self) {
            Ok(value) => Ok(value),
            Err(error) => Err(error.within(name)),
        }
    }

    /// Reads a field in place; an error names it.
    ///
    /// # Errors
    ///
    /// Those of [`Wire::read_view`] of `T`.
    #[inline]
    pub fn view_field<T: Wire>(&mut self, name: &str) -> Result<T::View<'a>, CdrError> {
        match T::read_view(self) {
            Ok(value) => Ok(value),
            Err(error) => Err(error.within(name)),
        }
    }

    /// Reads a field whose length, or whose elements' length, the type limits.
    ///
    /// # Errors
    ///
    /// Those of [`field`](Self::field), then those of [`Bounds::check`]. A text counts with the U+FFFD that a
    /// [`lossy`](Self::lossy) reader puts in.
    pub fn bounded_field<T: Wire + Bounded>(
        &mut self,
        name: &str,
        bounds: Bounds,
    ) -> Result<T, CdrError> {
        let offset = self.offset();
        let value = self.field::<T>(name)?;
        bounds.check(&value, offset).map_err(|error| error.within(name))?;
        Ok(value)
    }

    /// Reads a field in place whose length, or whose elements' length, the type limits.
    ///
    /// # Errors
    ///
    /// Those of [`view_field`](Self::view_field), then those of [`Bounds::check`].
    pub fn bounded_view_field<T: Wire>(
        &mut self,
        name: &str,
        bounds: Bounds,
    ) -> Result<T::View<'a>, CdrError>
    where
        T::View<'a>: Bounded,
    {
        let offset = self.offset();
        let value = self.view_field::<T>(name)?;
        bounds.check(&value, offset).map_err(|error| error.within(name))?;
        Ok(value)
    }

    /// Moves to a multiple of `size`, a power of two; at the end of the bytes the next read finds
    /// nothing.
    #[inline]
    fn align(&mut self, size: usize) {
        let padding = self.position.wrapping_neg() & (size - 1);
        self.position = (self.position + padding).min(self.body.len());
    }

    #[inline]
    fn take(&mut self, count: usize) -> Result<&'a [u8], CdrError> {
        let start = self.position;
        match self.body.get(start..start.saturating_add(count)) {
            Some(bytes) => {
                self.position = start + count;
                Ok(bytes)
            }
            None => Err(CdrError::new(
                self.offset(),
                CdrProblem::Truncated { needed: count, left: self.left() },
            )),
        }
    }

    /// The error of a count that was just read.
    #[cold]
    fn length_error(&self, claimed: usize) -> CdrError {
        CdrError::new(self.offset(), CdrProblem::Length { claimed, left: self.left() })
    }

    /// The error of bytes that were just read and hold something else than 0 and 1.
    #[cold]
    fn bad_bool(&self, bytes: &[u8]) -> CdrError {
        let index = bytes.iter().position(|byte| *byte > 1).unwrap_or(0);
        let byte = bytes.get(index).copied().unwrap_or(0);
        CdrError::new(self.offset() - bytes.len() + index, CdrProblem::Bool(byte))
    }
}

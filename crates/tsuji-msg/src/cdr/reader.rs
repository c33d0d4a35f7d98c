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
}

impl<'a> Reader<'a> {
    /// Reads a sample with its encapsulation header. Bytes after the message are taken for padding.
    pub fn new(sample: &'a [u8]) -> Result<Self, CdrError> {
        let order = ByteOrder::from_header(sample)?;
        Ok(Self { body: sample.get(HEADER_SIZE..).unwrap_or_default(), position: 0, order })
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

    /// Bytes after the current position.
    #[inline]
    pub fn left(&self) -> usize {
        self.body.len() - self.position
    }

    /// Reads one scalar.
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
    pub fn scalars<T: Scalar>(&mut self, count: usize) -> Result<Vec<T>, CdrError> {
        let bytes = self.scalar_bytes::<T>(count)?;
        T::vec_from_bytes(bytes, self.order).ok_or_else(|| self.bad_bool(bytes))
    }

    /// Reads as many scalars as `out` has.
    pub fn scalars_into<T: Scalar>(&mut self, out: &mut [T]) -> Result<(), CdrError> {
        let bytes = self.scalar_bytes::<T>(out.len())?;
        if T::fill_from_bytes(out, bytes, self.order) { Ok(()) } else { Err(self.bad_bool(bytes)) }
    }

    /// The bytes of `count` scalars, checked and in place.
    pub fn scalar_bytes<T: Scalar>(&mut self, count: usize) -> Result<&'a [u8], CdrError> {
        if count == 0 {
            return Ok(&[]);
        }
        self.align(T::SIZE);
        let Some(size) = count.checked_mul(T::SIZE).filter(|size| *size <= self.left()) else {
            return Err(self.length_error(count));
        };
        let bytes = self.take(size)?;
        if T::check_bytes(bytes) { Ok(bytes) } else { Err(self.bad_bool(bytes)) }
    }

    /// Reads the count of a sequence whose elements take at least `element_min` bytes each.
    #[inline]
    pub fn length(&mut self, element_min: usize) -> Result<usize, CdrError> {
        let count = self.scalar::<u32>()? as usize;
        match count.checked_mul(element_min) {
            Some(size) if size <= self.left() => Ok(count),
            _ => Err(self.length_error(count)),
        }
    }

    /// Reads a string in place.
    #[inline]
    pub fn string(&mut self) -> Result<&'a str, CdrError> {
        let length = self.length(1)?;
        // Some writers give an empty string no terminator.
        if length == 0 {
            return Ok("");
        }
        let start = self.offset();
        match self.take(length)? {
            [text @ .., 0] => str::from_utf8(text)
                .map_err(|error| CdrError::new(start + error.valid_up_to(), CdrProblem::Utf8)),
            _ => Err(CdrError::new(self.offset() - 1, CdrProblem::Terminator)),
        }
    }

    /// Reads a wide string.
    pub fn wstring(&mut self) -> Result<String, CdrError> {
        let count = self.length(size_of::<u32>())?;
        let start = self.offset();
        let bad = || CdrError::new(start, CdrProblem::Utf16);
        let mut units = Vec::with_capacity(count);
        for _ in 0..count {
            units.push(u16::try_from(self.scalar::<u32>()?).map_err(|_| bad())?);
        }
        String::from_utf16(&units).map_err(|_| bad())
    }

    /// Reads a field; an error names it.
    #[inline]
    pub fn field<T: Wire>(&mut self, name: &str) -> Result<T, CdrError> {
        match T::read(self) {
            Ok(value) => Ok(value),
            Err(error) => Err(error.within(name)),
        }
    }

    /// Reads a field in place; an error names it.
    #[inline]
    pub fn view_field<T: Wire>(&mut self, name: &str) -> Result<T::View<'a>, CdrError> {
        match T::read_view(self) {
            Ok(value) => Ok(value),
            Err(error) => Err(error.within(name)),
        }
    }

    /// Reads a field whose length, or whose elements' length, the type limits.
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

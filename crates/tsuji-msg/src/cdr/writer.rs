use super::{ByteOrder, CdrError, CdrProblem, HEADER_SIZE, Scalar};
use crate::definition::ScalarKind;
use crate::path::Step;
use crate::wire::{Bounded, Element, Wire};
use std::ops::Range;

/// Where a [`Writer`] puts the body of a sample.
///
/// Three sinks answer the three needs: [`Slice`] writes into memory of a known size, `Vec<u8>`
/// grows, and [`Count`] only counts, which makes every size exact by construction.
pub trait Sink {
    /// Whether bytes are only counted. A size is then answered even for a value that breaks a limit
    /// of its type, so that the error comes from the writing that follows and names the field.
    const COUNTS: bool = false;

    /// Appends bytes.
    ///
    /// # Errors
    ///
    /// [`CdrProblem::NoRoom`] if the bytes do not fit. [`Slice`] ends with its memory; `Vec<u8>` and [`Count`]
    /// never fail.
    fn put(&mut self, bytes: &[u8]) -> Result<(), CdrError>;

    /// Appends zeros.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put).
    fn zeros(&mut self, count: usize) -> Result<(), CdrError>;

    /// Appends bytes whose contents the caller fills in later.
    ///
    /// What is there now is not touched where that is possible, and zero otherwise.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put).
    fn skip(&mut self, count: usize) -> Result<(), CdrError>;

    /// Bytes put so far, the encapsulation header included.
    fn position(&self) -> usize;

    /// Hears that a field or an element is about to be written.
    #[inline]
    fn enter(&mut self, _: Step<'_>) {}

    /// Hears that what was entered last is written.
    #[inline]
    fn exit(&mut self) {}

    /// How many elements the array of numbers that is about to be written has, if its contents are
    /// left to be filled in place.
    #[inline]
    fn room(&self) -> Option<usize> {
        None
    }

    /// Hears which bytes of the sample were left for that array, and of what numbers it is.
    #[inline]
    fn lend(&mut self, _: ScalarKind, _: Range<usize>) {}
}

/// Counts bytes instead of writing them.
#[derive(Debug, Default)]
pub struct Count(usize);

impl Sink for Count {
    const COUNTS: bool = true;

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), CdrError> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(())
    }

    #[inline]
    fn zeros(&mut self, count: usize) -> Result<(), CdrError> {
        self.0 = self.0.saturating_add(count);
        Ok(())
    }

    #[inline]
    fn skip(&mut self, count: usize) -> Result<(), CdrError> {
        self.0 = self.0.saturating_add(count);
        Ok(())
    }

    #[inline]
    fn position(&self) -> usize {
        self.0
    }
}

/// Writes into a caller's memory, and answers [`CdrProblem::NoRoom`] at its end.
#[derive(Debug)]
pub struct Slice<'a> {
    out: &'a mut [u8],
    position: usize,
}

impl<'a> Slice<'a> {
    /// Writes from the start of `out`.
    pub fn new(out: &'a mut [u8]) -> Self {
        Self { out, position: 0 }
    }

    #[inline]
    fn next(&mut self, count: usize) -> Result<&mut [u8], CdrError> {
        let start = self.position;
        let left = self.out.len().saturating_sub(start);
        if count > left {
            return Err(CdrError::new(start, CdrProblem::NoRoom { needed: count, left }));
        }
        self.position = start + count;
        Ok(&mut self.out[start..start + count])
    }
}

impl Sink for Slice<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), CdrError> {
        self.next(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn zeros(&mut self, count: usize) -> Result<(), CdrError> {
        self.next(count)?.fill(0);
        Ok(())
    }

    #[inline]
    fn skip(&mut self, count: usize) -> Result<(), CdrError> {
        self.next(count).map(|_| ())
    }

    #[inline]
    fn position(&self) -> usize {
        self.position
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), CdrError> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn zeros(&mut self, count: usize) -> Result<(), CdrError> {
        self.resize(self.len().saturating_add(count), 0);
        Ok(())
    }

    #[inline]
    fn skip(&mut self, count: usize) -> Result<(), CdrError> {
        self.zeros(count)
    }

    #[inline]
    fn position(&self) -> usize {
        self.len()
    }
}

/// Writes values as CDR.
#[derive(Debug)]
pub struct Writer<S> {
    sink: S,
    order: ByteOrder,
    /// Where the sink stood before the header; alignment counts from [`HEADER_SIZE`] past it.
    start: usize,
}

impl<S: Sink> Writer<S> {
    /// Starts a sample: puts the encapsulation header.
    ///
    /// # Errors
    ///
    /// Those of [`Sink::put`].
    pub fn new(mut sink: S, order: ByteOrder) -> Result<Self, CdrError> {
        let start = sink.position();
        sink.put(&order.header())?;
        Ok(Self { sink, order, start })
    }

    /// Bytes of the sample so far, header included.
    #[inline]
    pub fn position(&self) -> usize {
        self.sink.position() - self.start
    }

    /// Ends the sample and gives the sink back.
    pub fn into_sink(self) -> S {
        self.sink
    }

    /// Writes one scalar.
    ///
    /// # Errors
    ///
    /// Those of [`Sink::put`].
    #[inline]
    pub fn scalar<T: Scalar>(&mut self, value: T) -> Result<(), CdrError> {
        self.align(T::SIZE)?;
        let value = if self.order.is_native() { value } else { value.swapped() };
        self.sink.put(bytemuck::bytes_of(&value))
    }

    /// Writes scalars one after the other, as a block when the byte order allows it, without a
    /// count.
    ///
    /// # Errors
    ///
    /// Those of [`Sink::put`].
    #[inline]
    pub fn scalars<T: Scalar>(&mut self, values: &[T]) -> Result<(), CdrError> {
        if values.is_empty() {
            return Ok(());
        }
        self.align(T::SIZE)?;
        if self.order.is_native() || T::SIZE == 1 {
            return self.sink.put(bytemuck::cast_slice(values));
        }
        for value in values {
            self.sink.put(bytemuck::bytes_of(&value.swapped()))?;
        }
        Ok(())
    }

    /// Writes a sequence: its count and its elements, or room for them.
    ///
    /// # Errors
    ///
    /// Those of [`length`](Self::length) and of [`Wire::write`] of an element.
    #[inline]
    pub(crate) fn sequence<T: Element>(&mut self, items: &[T]) -> Result<(), CdrError> {
        match T::NUMBER.zip(self.sink.room()) {
            None => {
                self.length(items.len())?;
                T::write_items(items, self)
            }
            Some((kind, count)) => {
                self.length(count)?;
                self.lend(kind, count)
            }
        }
    }

    /// Writes an array of a fixed length, or leaves room for its elements.
    ///
    /// # Errors
    ///
    /// [`CdrProblem::Bound`] if the room is for another number of elements, unless the sink only counts; else those
    /// of [`Wire::write`] of an element.
    #[inline]
    pub(crate) fn array<T: Element>(&mut self, items: &[T]) -> Result<(), CdrError> {
        match T::NUMBER.zip(self.sink.room()) {
            None => T::write_items(items, self),
            Some((_, length)) if !S::COUNTS && length != items.len() => {
                let bound = items.len();
                Err(CdrError::new(self.position(), CdrProblem::Bound { length, bound }))
            }
            Some((kind, count)) => self.lend(kind, count),
        }
    }

    /// How many elements the array that is about to be written has, if it is left to be filled in place.
    #[inline]
    pub(crate) fn room(&self) -> Option<usize> {
        self.sink.room()
    }

    /// Leaves room for `count` numbers, without a count, and returns which bytes of the sample it has.
    ///
    /// # Errors
    ///
    /// Those of [`Sink::skip`].
    pub fn skip(&mut self, kind: ScalarKind, count: usize) -> Result<Range<usize>, CdrError> {
        if count > 0 {
            self.align(kind.size())?;
        }
        let start = self.position();
        self.sink.skip(count.saturating_mul(kind.size()))?;
        Ok(start..self.position())
    }

    /// Leaves room for the array that the sink has room for.
    pub(crate) fn lend(&mut self, kind: ScalarKind, count: usize) -> Result<(), CdrError> {
        let room = self.skip(kind, count)?;
        self.sink.lend(kind, room);
        Ok(())
    }

    /// Writes the count of a sequence.
    ///
    /// # Errors
    ///
    /// [`CdrProblem::TooLong`] if `length` is more than a 32-bit count can say, unless the sink only counts; else
    /// those of [`Sink::put`].
    #[inline]
    pub fn length(&mut self, length: usize) -> Result<(), CdrError> {
        match u32::try_from(length) {
            Ok(count) => self.scalar(count),
            Err(_) if S::COUNTS => self.scalar(u32::MAX),
            Err(_) => Err(CdrError::new(self.position(), CdrProblem::TooLong { length })),
        }
    }

    /// Writes a string with its terminator.
    ///
    /// # Errors
    ///
    /// Those of [`length`](Self::length) for the bytes of `text` and its terminator; those of [`Sink::put`].
    #[inline]
    pub fn string(&mut self, text: &str) -> Result<(), CdrError> {
        self.length(text.len().saturating_add(1))?;
        self.sink.put(text.as_bytes())?;
        self.sink.zeros(1)
    }

    /// Writes a wide string: a count of UTF-16 code units and a 32-bit word for each.
    ///
    /// # Errors
    ///
    /// Those of [`length`](Self::length) for the UTF-16 code units of `text`; those of [`Sink::put`].
    pub fn wstring(&mut self, text: &str) -> Result<(), CdrError> {
        self.length(text.encode_utf16().count())?;
        for unit in text.encode_utf16() {
            self.scalar(u32::from(unit))?;
        }
        Ok(())
    }

    /// Writes a field; an error names it.
    ///
    /// # Errors
    ///
    /// Those of [`Wire::write`] of `T`.
    #[inline]
    pub fn field<T: Wire>(&mut self, name: &str, value: &T) -> Result<(), CdrError> {
        self.within(Step::Field(name), |writer| value.write(writer))
    }

    /// Writes a field whose length, or whose elements' length, the type limits.
    ///
    /// # Errors
    ///
    /// Those of [`Bounds::check`], unless the sink only counts; else those of [`field`](Self::field).
    pub fn bounded_field<T: Wire + Bounded>(
        &mut self,
        name: &str,
        value: &T,
        bounds: Bounds,
    ) -> Result<(), CdrError> {
        self.within(Step::Field(name), |writer| {
            match writer.room() {
                _ if S::COUNTS => (),
                None => bounds.check(value, writer.position())?,
                Some(length) => check_length(length, bounds.items, writer.position())?,
            }
            value.write(writer)
        })
    }

    /// Writes what is at a step; an error names it.
    #[inline]
    pub(crate) fn within(
        &mut self,
        step: Step<'_>,
        write: impl FnOnce(&mut Self) -> Result<(), CdrError>,
    ) -> Result<(), CdrError> {
        self.sink.enter(step);
        let written = write(self);
        self.sink.exit();
        match written {
            Ok(()) => Ok(()),
            Err(error) => Err(error.within_step(step)),
        }
    }

    /// Pads to a multiple of `size`, a power of two.
    #[inline]
    fn align(&mut self, size: usize) -> Result<(), CdrError> {
        let padding = (self.position() - HEADER_SIZE).wrapping_neg() & (size - 1);
        if padding == 0 { Ok(()) } else { self.sink.zeros(padding) }
    }
}

/// The limits that a field's type states, such as `string<=10[<=5]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Most elements of a bounded sequence.
    pub items: Option<usize>,
    /// Most bytes of a bounded string, or UTF-16 code units of a bounded wide string.
    pub text: Option<usize>,
}

impl Bounds {
    /// Checks a value against the limits; `offset` is for the error.
    ///
    /// # Errors
    ///
    /// [`CdrProblem::Bound`] if the value has more elements, or a longer text, than the limits allow.
    pub fn check<T: Bounded>(self, value: &T, offset: usize) -> Result<(), CdrError> {
        check_length(value.items(), self.items, offset)?;
        if self.text.is_some() { check_length(value.text_max(), self.text, offset) } else { Ok(()) }
    }
}

fn check_length(length: usize, bound: Option<usize>, offset: usize) -> Result<(), CdrError> {
    match bound {
        Some(bound) if length > bound => {
            Err(CdrError::new(offset, CdrProblem::Bound { length, bound }))
        }
        _ => Ok(()),
    }
}

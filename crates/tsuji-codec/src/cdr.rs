//! Samples as they are written.

use crate::number::Number;
use crate::plan::{Field, Preset, Struct};
use std::sync::Arc;
use tsuji_msg::cdr::ByteOrder;
use tsuji_msg::definition::{Base, Shape};

/// A sample that grows at the end of a vector.
#[derive(Debug)]
pub(crate) struct Cdr<'o> {
    bytes: &'o mut Vec<u8>,
    /// Where the body begins; alignment counts from here.
    body: usize,
}

impl<'o> Cdr<'o> {
    /// Begins with the header.
    pub(crate) fn new(bytes: &'o mut Vec<u8>) -> Self {
        bytes.extend_from_slice(&ByteOrder::Little.header());
        let body = bytes.len();
        Self { bytes, body }
    }

    /// Appends zeros up to a multiple of `size`, a power of two of at most 8.
    #[inline]
    pub(crate) fn align(&mut self, size: usize) {
        let padding = (self.bytes.len() - self.body).wrapping_neg() & (size - 1);
        if padding > 0 {
            self.bytes.extend_from_slice(&[0; 8][..padding]);
        }
    }

    /// Where bytes that need no alignment are appended.
    #[inline]
    pub(crate) fn raw(&mut self) -> &mut Vec<u8> {
        self.bytes
    }

    #[inline]
    pub(crate) fn number<T: Number>(&mut self, value: T) {
        self.align(T::SIZE);
        value.write_cdr(self.bytes);
    }

    #[inline]
    pub(crate) fn boolean(&mut self, value: bool) {
        self.bytes.push(value.into());
    }

    /// Leaves room for a count and tells where.
    #[inline]
    pub(crate) fn begin_count(&mut self) -> usize {
        self.number(0_u32);
        self.bytes.len() - size_of::<u32>()
    }

    /// Says the count; false if it is more than 32 bits hold.
    #[inline]
    #[must_use]
    pub(crate) fn end_count(&mut self, place: usize, count: usize) -> bool {
        let Ok(count) = u32::try_from(count) else { return false };
        self.bytes[place..place + size_of::<u32>()].copy_from_slice(&count.to_le_bytes());
        true
    }

    /// Appends a text with its terminator; false if it is longer than 32 bits say.
    #[inline]
    #[must_use]
    pub(crate) fn text(&mut self, text: &str) -> bool {
        let Ok(length) = u32::try_from(text.len() + 1) else { return false };
        self.number(length);
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        true
    }

    /// Appends a wide text, and tells its length in UTF-16 units; none if 32 bits do not say it.
    pub(crate) fn wide(&mut self, text: &str) -> Option<usize> {
        let place = self.begin_count();
        let mut count = 0;
        for unit in text.encode_utf16() {
            self.number(u32::from(unit));
            count += 1;
        }
        self.end_count(place, count).then_some(count)
    }

    /// Appends the default value of a field.
    pub(crate) fn default_field(&mut self, field: &Field) {
        match (&field.preset, field.ty.shape) {
            (Preset::Zero, Shape::Single) => self.zeros(&field.ty.base, 1),
            (Preset::Zero, Shape::Array(count)) => self.zeros(&field.ty.base, count as usize),
            (Preset::Zero, Shape::Sequence | Shape::Bounded(_)) => self.number(0_u32),
            (Preset::Numbers(bytes, count), shape) => {
                self.preset_count(shape, *count);
                if *count > 0 {
                    self.align(bytes.len() / count);
                }
                self.bytes.extend_from_slice(bytes);
            }
            (Preset::Texts(texts), shape) => {
                self.preset_count(shape, texts.len());
                for text in texts {
                    // What stands in a definition, which is no longer than a file may be, is no
                    // longer than 32 bits say.
                    if matches!(field.ty.base, Base::WString { .. }) {
                        self.wide(text);
                    } else {
                        let _ = self.text(text);
                    }
                }
            }
        }
    }

    /// Appends the default value of a message.
    pub(crate) fn default_message(&mut self, ty: &Struct) {
        for field in &ty.fields {
            self.default_field(field);
        }
        if ty.fields.is_empty() {
            self.bytes.push(0);
        }
    }

    fn preset_count(&mut self, shape: Shape, count: usize) {
        if matches!(shape, Shape::Sequence | Shape::Bounded(_)) {
            self.number(u32::try_from(count).unwrap_or(0));
        }
    }

    /// Appends so many values that are zero or empty.
    fn zeros(&mut self, base: &Base<Arc<Struct>>, count: usize) {
        match base {
            Base::Scalar(kind) => {
                self.align(kind.size());
                self.bytes.resize(self.bytes.len() + kind.size() * count, 0);
            }
            Base::String { .. } => {
                for _ in 0..count {
                    let _ = self.text("");
                }
            }
            Base::WString { .. } => {
                for _ in 0..count {
                    self.number(0_u32);
                }
            }
            Base::Nested(nested) => {
                for _ in 0..count {
                    self.default_message(nested);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_has_32_bits() {
        let mut bytes = vec![9];
        let mut cdr = Cdr::new(&mut bytes);
        cdr.boolean(true);
        let place = cdr.begin_count();
        assert!(!cdr.end_count(place, 1 << 32));
        assert!(cdr.end_count(place, (1 << 32) - 1));
        assert_eq!(bytes, [9, 0, 1, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    }
}

//! Arrays and sequences seen in place.

use crate::cdr::{ByteOrder, CdrError, Reader, Scalar};
use crate::wire::Element;
use std::fmt;
use std::marker::PhantomData;

/// Numbers of several bytes in place, over a typed value or over CDR bytes.
///
/// [`ArrayView::as_slice`] is there when the numbers lie aligned and in this machine's byte order,
/// which tsuji's own samples always do; the other methods work in every case.
#[derive(Clone, Copy)]
pub struct ArrayView<'a, T> {
    bytes: &'a [u8],
    order: ByteOrder,
    element: PhantomData<T>,
}

impl<'a, T: Scalar> ArrayView<'a, T> {
    /// Views numbers in CDR bytes; bytes beyond a whole number of elements are not seen.
    pub fn from_bytes(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { bytes, order, element: PhantomData }
    }

    /// How many numbers there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() / T::SIZE
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers as a slice, if they lie aligned and in this machine's byte order.
    #[inline]
    pub fn as_slice(&self) -> Option<&'a [T]> {
        if !self.order.is_native() {
            return None;
        }
        if self.bytes.is_empty() {
            return Some(&[]);
        }
        T::slice_from_bytes(self.bytes)
    }

    /// The number at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> Option<T> {
        let start = index.checked_mul(T::SIZE)?;
        T::from_bytes(self.bytes.get(start..)?, self.order)
    }

    /// The numbers one by one.
    #[inline]
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = T> + DoubleEndedIterator + Clone + use<'a, T> {
        let order = self.order;
        // Numbers of several bytes have no forbidden bit pattern, so the default never shows.
        self.bytes
            .chunks_exact(T::SIZE)
            .map(move |bytes| T::from_bytes(bytes, order).unwrap_or_default())
    }

    /// A copy of the numbers.
    pub fn to_vec(&self) -> Vec<T> {
        T::vec_from_bytes(self.bytes, self.order).unwrap_or_default()
    }
}

impl<'a, T: Scalar> From<&'a [T]> for ArrayView<'a, T> {
    #[inline]
    fn from(items: &'a [T]) -> Self {
        Self::from_bytes(bytemuck::cast_slice(items), ByteOrder::NATIVE)
    }
}

impl<T: Scalar> fmt::Debug for ArrayView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Scalar> PartialEq for ArrayView<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Scalar> PartialEq<[T]> for ArrayView<'_, T> {
    fn eq(&self, other: &[T]) -> bool {
        self.iter().eq(other.iter().copied())
    }
}

/// Texts or messages in place, over typed values or over CDR bytes, decoded as they are asked for.
///
/// Over CDR every element was checked when the view was made, so iterating cannot fail; finding an
/// element by its index walks the ones before it.
pub struct SeqView<'a, T>(Source<'a, T>);

enum Source<'a, T> {
    Items(&'a [T]),
    Cdr { first: Reader<'a>, count: usize },
}

impl<'a, T: Element> SeqView<'a, T> {
    /// Views `count` elements in CDR bytes, checking each, and moves the reader past them.
    ///
    /// # Errors
    ///
    /// Those of [`Wire::read_view`](crate::Wire::read_view) of an element, with its index.
    pub fn read(reader: &mut Reader<'a>, count: usize) -> Result<Self, CdrError> {
        let first = *reader;
        for index in 0..count {
            T::read_view(reader).map_err(|error| error.within_element(index))?;
        }
        Ok(Self(Source::Cdr { first, count }))
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        match self.0 {
            Source::Items(items) => items.len(),
            Source::Cdr { count, .. } => count,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index`.
    pub fn get(&self, index: usize) -> Option<T::View<'a>> {
        match self.0 {
            Source::Items(items) => items.get(index).map(T::as_view),
            Source::Cdr { .. } => self.iter().nth(index),
        }
    }

    /// The elements one by one.
    pub fn iter(&self) -> SeqIter<'a, T> {
        SeqIter(match self.0 {
            Source::Items(items) => Source::Items(items),
            Source::Cdr { first, count } => Source::Cdr { first, count },
        })
    }
}

impl<'a, T> From<&'a [T]> for SeqView<'a, T> {
    fn from(items: &'a [T]) -> Self {
        Self(Source::Items(items))
    }
}

impl<T> Clone for SeqView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SeqView<'_, T> {}

impl<T> Clone for Source<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Source<'_, T> {}

impl<'a, T: Element> IntoIterator for SeqView<'a, T> {
    type Item = T::View<'a>;
    type IntoIter = SeqIter<'a, T>;

    fn into_iter(self) -> SeqIter<'a, T> {
        self.iter()
    }
}

impl<'a, T: Element> IntoIterator for &SeqView<'a, T> {
    type Item = T::View<'a>;
    type IntoIter = SeqIter<'a, T>;

    fn into_iter(self) -> SeqIter<'a, T> {
        self.iter()
    }
}

impl<T: Element> fmt::Debug for SeqView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The elements of a [`SeqView`] one by one.
pub struct SeqIter<'a, T>(Source<'a, T>);

impl<T: Element> fmt::Debug for SeqIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(SeqView(self.0).iter()).finish()
    }
}

impl<T> Clone for SeqIter<'_, T> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<'a, T: Element> Iterator for SeqIter<'a, T> {
    type Item = T::View<'a>;

    fn next(&mut self) -> Option<T::View<'a>> {
        match &mut self.0 {
            Source::Items(items) => {
                let (first, rest) = items.split_first()?;
                *items = rest;
                Some(first.as_view())
            }
            Source::Cdr { first, count } => {
                *count = count.checked_sub(1)?;
                // Every element was read once when the view was made.
                T::read_view(first).ok()
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = SeqView(self.0).len();
        (left, Some(left))
    }
}

impl<T: Element> ExactSizeIterator for SeqIter<'_, T> {}

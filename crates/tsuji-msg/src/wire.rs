//! How each Rust type of a field is written, read and viewed. Generated code builds on this; users
//! of messages want [`Message`](crate::Message).

use crate::array::Seek;
use crate::cdr::{CdrError, Number, Reader, Scalar, Sink, Writer};
use crate::definition::ScalarKind;
use crate::path::{Path, Step};
use crate::view::{ArrayView, SeqView};
use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::ops::{Deref, DerefMut};

/// A value that has a place in a CDR body.
pub trait Wire: Sized + 'static {
    /// The value seen in place: over a typed value or over CDR bytes alike.
    type View<'a>: Clone + Debug;

    /// Fewest bytes that a value takes, padding not counted. Bounds what a sequence's count can
    /// claim.
    const MIN_SIZE: usize;

    /// Writes the value.
    ///
    /// # Errors
    ///
    /// [`CdrProblem::Bound`](crate::CdrProblem::Bound) if a sequence or a text is longer than its type allows,
    /// [`CdrProblem::TooLong`](crate::CdrProblem::TooLong) if it has more than a 32-bit count can say; neither
    /// where the sink only counts. [`CdrProblem::NoRoom`](crate::CdrProblem::NoRoom), or what else [`Sink::put`]
    /// answers, if the sink has no room.
    fn write<S: Sink>(&self, writer: &mut Writer<S>) -> Result<(), CdrError>;

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// - [`CdrProblem::Truncated`](crate::CdrProblem::Truncated) if the bytes end before the value does.
    /// - [`CdrProblem::Length`](crate::CdrProblem::Length) if a sequence, a text or an array of scalars has more
    ///   elements than the bytes left can hold.
    /// - [`CdrProblem::Bool`](crate::CdrProblem::Bool) if a `bool` is neither 0 nor 1.
    /// - [`CdrProblem::Terminator`](crate::CdrProblem::Terminator) if a string does not end with NUL.
    /// - [`CdrProblem::Utf8`](crate::CdrProblem::Utf8) or [`CdrProblem::Utf16`](crate::CdrProblem::Utf16) if a text
    ///   is not UTF-8, or a wide one not UTF-16, unless the reader is [lossy](Reader::lossy).
    /// - [`CdrProblem::Bound`](crate::CdrProblem::Bound) if a sequence or a text is longer than its type allows.
    fn read(reader: &mut Reader<'_>) -> Result<Self, CdrError>;

    /// Views this value.
    fn as_view(&self) -> Self::View<'_>;

    /// Views a value in CDR bytes.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read), of a reader that is not lossy.
    fn read_view<'a>(reader: &mut Reader<'a>) -> Result<Self::View<'a>, CdrError>;

    /// A copy of what is viewed.
    fn from_view(view: &Self::View<'_>) -> Self;

    /// The array of numbers at a path, if it is there and of this type.
    fn find<T: Number>(&self, _: Path<'_>) -> Option<&[T]> {
        None
    }

    /// Looks for an array of numbers in the value that comes next in a sample.
    ///
    /// # Errors
    ///
    /// Those of [`read_view`](Self::read_view), for what stands before the array.
    fn seek(_: &mut Seek<'_, '_>) -> Result<(), CdrError> {
        Ok(())
    }
}

/// A value that arrays and sequences can hold.
pub trait Element: Wire + Clone + Debug + Default + PartialEq {
    /// An array or sequence of these seen in place.
    type Seq<'a>: Clone + Debug;

    /// Which number it is, if it is one.
    const NUMBER: Option<ScalarKind> = None;

    /// Writes all items, without a count.
    ///
    /// # Errors
    ///
    /// Those of [`Wire::write`].
    fn write_items<S: Sink>(items: &[Self], writer: &mut Writer<S>) -> Result<(), CdrError>;

    /// Reads `count` items; the caller has checked the count against the bytes left.
    ///
    /// # Errors
    ///
    /// Those of [`Wire::read`].
    fn read_items(reader: &mut Reader<'_>, count: usize) -> Result<Vec<Self>, CdrError>;

    /// Reads as many items as `out` has.
    ///
    /// # Errors
    ///
    /// Those of [`Wire::read`].
    fn read_array(reader: &mut Reader<'_>, out: &mut [Self]) -> Result<(), CdrError>;

    /// Views items.
    fn view_items(items: &[Self]) -> Self::Seq<'_>;

    /// Views `count` items in CDR bytes; the caller has checked the count against the bytes left.
    ///
    /// # Errors
    ///
    /// Those of [`Wire::read_view`].
    fn read_view_items<'a>(
        reader: &mut Reader<'a>,
        count: usize,
    ) -> Result<Self::Seq<'a>, CdrError>;

    /// Copies of items that are viewed.
    fn items_from_view(view: &Self::Seq<'_>) -> Vec<Self>;

    /// The array of numbers at a path that leads into these items, if it is there and of this type.
    fn find_in<'a, T: Number>(items: &'a [Self], path: Path<'_>) -> Option<&'a [T]>;

    /// Looks for an array of numbers in the `count` items that come next in a sample.
    ///
    /// # Errors
    ///
    /// Those of [`Wire::seek`].
    fn seek_in(seek: &mut Seek<'_, '_>, count: usize) -> Result<(), CdrError>;

    /// Length of a text, in what its bound counts; 0 for what is no text.
    #[inline]
    fn text_len(&self) -> usize {
        0
    }

    /// Length of a viewed text, in what its bound counts; 0 for what is no text.
    #[inline]
    fn view_text_len(_view: &Self::View<'_>) -> usize {
        0
    }
}

/// What a `string<=10` or a `T[<=5]` limits.
pub trait Bounded {
    /// Elements of a sequence; 0 for what is no sequence.
    fn items(&self) -> usize {
        0
    }

    /// Longest text in it, in bytes, or in UTF-16 code units for a wide string; 0 for what holds no
    /// text.
    fn text_max(&self) -> usize {
        0
    }
}

/// A `wstring`: UTF-16 on the wire, a `String` in Rust.
///
/// A type of its own because the wire form differs. It derefs to `String`.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WString(pub String);

impl Deref for WString {
    type Target = String;

    fn deref(&self) -> &String {
        &self.0
    }
}

impl DerefMut for WString {
    fn deref_mut(&mut self) -> &mut String {
        &mut self.0
    }
}

impl Debug for WString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for WString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl From<&str> for WString {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for WString {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl Wire for String {
    type View<'a> = &'a str;
    const MIN_SIZE: usize = 4;

    #[inline]
    fn write<S: Sink>(&self, writer: &mut Writer<S>) -> Result<(), CdrError> {
        writer.string(self)
    }

    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        reader.owned_string()
    }

    #[inline]
    fn as_view(&self) -> &str {
        self
    }

    #[inline]
    fn read_view<'a>(reader: &mut Reader<'a>) -> Result<&'a str, CdrError> {
        reader.string()
    }

    fn from_view(view: &&str) -> Self {
        (*view).to_owned()
    }
}

impl Bounded for String {
    fn text_max(&self) -> usize {
        self.len()
    }
}

impl Bounded for &str {
    fn text_max(&self) -> usize {
        self.len()
    }
}

impl Wire for WString {
    /// Borrowed over a typed value, decoded over CDR.
    type View<'a> = Cow<'a, str>;
    const MIN_SIZE: usize = 4;

    fn write<S: Sink>(&self, writer: &mut Writer<S>) -> Result<(), CdrError> {
        writer.wstring(&self.0)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        reader.owned_wstring().map(Self)
    }

    fn as_view(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0)
    }

    fn read_view<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, str>, CdrError> {
        reader.wstring().map(Cow::Owned)
    }

    fn from_view(view: &Cow<'_, str>) -> Self {
        Self::from(&**view)
    }
}

impl Bounded for WString {
    fn text_max(&self) -> usize {
        self.0.encode_utf16().count()
    }
}

impl Bounded for Cow<'_, str> {
    fn text_max(&self) -> usize {
        self.encode_utf16().count()
    }
}

impl<T: Element> Wire for Vec<T> {
    type View<'a> = T::Seq<'a>;
    const MIN_SIZE: usize = 4;

    #[inline]
    fn write<S: Sink>(&self, writer: &mut Writer<S>) -> Result<(), CdrError> {
        writer.sequence(self)
    }

    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        let count = reader.length(T::MIN_SIZE)?;
        T::read_items(reader, count)
    }

    #[inline]
    fn as_view(&self) -> T::Seq<'_> {
        T::view_items(self)
    }

    #[inline]
    fn read_view<'a>(reader: &mut Reader<'a>) -> Result<T::Seq<'a>, CdrError> {
        let count = reader.length(T::MIN_SIZE)?;
        T::read_view_items(reader, count)
    }

    fn from_view(view: &T::Seq<'_>) -> Self {
        T::items_from_view(view)
    }

    fn find<U: Number>(&self, path: Path<'_>) -> Option<&[U]> {
        T::find_in(self, path)
    }

    fn seek(seek: &mut Seek<'_, '_>) -> Result<(), CdrError> {
        let count = seek.length(T::MIN_SIZE)?;
        T::seek_in(seek, count)
    }
}

impl<T: Element> Bounded for Vec<T> {
    fn items(&self) -> usize {
        self.len()
    }

    fn text_max(&self) -> usize {
        self.iter().map(T::text_len).max().unwrap_or(0)
    }
}

impl<T: Element, const N: usize> Wire for [T; N] {
    type View<'a> = T::Seq<'a>;
    const MIN_SIZE: usize = T::MIN_SIZE.saturating_mul(N);

    #[inline]
    fn write<S: Sink>(&self, writer: &mut Writer<S>) -> Result<(), CdrError> {
        writer.array(self)
    }

    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        let mut items = std::array::from_fn(|_| T::default());
        T::read_array(reader, &mut items)?;
        Ok(items)
    }

    #[inline]
    fn as_view(&self) -> T::Seq<'_> {
        T::view_items(self)
    }

    #[inline]
    fn read_view<'a>(reader: &mut Reader<'a>) -> Result<T::Seq<'a>, CdrError> {
        T::read_view_items(reader, N)
    }

    fn from_view(view: &T::Seq<'_>) -> Self {
        let mut items = T::items_from_view(view).into_iter();
        std::array::from_fn(|_| items.next().unwrap_or_default())
    }

    fn find<U: Number>(&self, path: Path<'_>) -> Option<&[U]> {
        T::find_in(self, path)
    }

    fn seek(seek: &mut Seek<'_, '_>) -> Result<(), CdrError> {
        T::seek_in(seek, N)
    }
}

impl<T: Element, const N: usize> Bounded for [T; N] {
    fn text_max(&self) -> usize {
        self.iter().map(T::text_len).max().unwrap_or(0)
    }
}

impl<T: Scalar> Bounded for &[T] {
    fn items(&self) -> usize {
        self.len()
    }
}

impl<T: Scalar> Bounded for ArrayView<'_, T> {
    fn items(&self) -> usize {
        self.len()
    }
}

impl<T: Element> Bounded for SeqView<'_, T> {
    fn items(&self) -> usize {
        self.len()
    }

    fn text_max(&self) -> usize {
        self.iter().map(|item| T::view_text_len(&item)).max().unwrap_or(0)
    }
}

/// A scalar on its own.
macro_rules! single {
    ($type:ty) => {
        impl Wire for $type {
            type View<'a> = Self;
            const MIN_SIZE: usize = size_of::<Self>();

            #[inline]
            fn write<S: Sink>(&self, writer: &mut Writer<S>) -> Result<(), CdrError> {
                writer.scalar(*self)
            }

            #[inline]
            fn read(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
                reader.scalar()
            }

            #[inline]
            fn as_view(&self) -> Self {
                *self
            }

            #[inline]
            fn read_view<'a>(reader: &mut Reader<'a>) -> Result<Self, CdrError> {
                reader.scalar()
            }

            #[inline]
            fn from_view(view: &Self) -> Self {
                *view
            }
        }
    };
}

/// Scalars in a row, read and written as a block.
macro_rules! block {
    () => {
        const NUMBER: Option<ScalarKind> = <Self as Scalar>::NUMBER;

        #[inline]
        fn write_items<S: Sink>(items: &[Self], writer: &mut Writer<S>) -> Result<(), CdrError> {
            writer.scalars(items)
        }

        #[inline]
        fn read_items(reader: &mut Reader<'_>, count: usize) -> Result<Vec<Self>, CdrError> {
            reader.scalars(count)
        }

        #[inline]
        fn read_array(reader: &mut Reader<'_>, out: &mut [Self]) -> Result<(), CdrError> {
            reader.scalars_into(out)
        }

        fn find_in<'a, T: Number>(items: &'a [Self], path: Path<'_>) -> Option<&'a [T]> {
            let is_it = path.is_end() && <Self as Scalar>::NUMBER == T::NUMBER;
            is_it.then(|| T::slice_from_bytes(bytemuck::cast_slice(items)))?
        }

        fn seek_in(seek: &mut Seek<'_, '_>, count: usize) -> Result<(), CdrError> {
            match <Self as Scalar>::NUMBER {
                Some(kind) => seek.scalars(kind, count),
                None => Ok(()),
            }
        }
    };
}

/// Scalars of one byte: a sequence of them is a slice wherever it lies.
macro_rules! narrow {
    ($($type:ty)*) => {$(
        single!($type);

        impl Element for $type {
            type Seq<'a> = &'a [Self];
            block!();

            #[inline]
            fn view_items(items: &[Self]) -> &[Self] {
                items
            }

            #[inline]
            fn read_view_items<'a>(reader: &mut Reader<'a>, count: usize) -> Result<&'a [Self], CdrError> {
                let bytes = reader.scalar_bytes::<Self>(count)?;
                // The bytes were checked just now, and one-byte values have no alignment to miss.
                Ok(<Self as Scalar>::slice_from_bytes(bytes).unwrap_or_default())
            }

            #[inline]
            fn items_from_view(view: &&[Self]) -> Vec<Self> {
                view.to_vec()
            }
        }
    )*};
}

/// Scalars of several bytes: a sequence of them may be unaligned or in the other byte order.
macro_rules! wide {
    ($($type:ty)*) => {$(
        single!($type);

        impl Element for $type {
            type Seq<'a> = ArrayView<'a, Self>;
            block!();

            #[inline]
            fn view_items(items: &[Self]) -> ArrayView<'_, Self> {
                ArrayView::from(items)
            }

            #[inline]
            fn read_view_items<'a>(
                reader: &mut Reader<'a>,
                count: usize,
            ) -> Result<ArrayView<'a, Self>, CdrError> {
                Ok(ArrayView::from_bytes(reader.scalar_bytes::<Self>(count)?, reader.order()))
            }

            #[inline]
            fn items_from_view(view: &ArrayView<'_, Self>) -> Vec<Self> {
                view.to_vec()
            }
        }
    )*};
}

narrow!(bool u8 i8);
wide!(u16 i16 u32 i32 u64 i64 f32 f64);

/// Values that are read one by one: texts and messages.
macro_rules! one_by_one {
    () => {
        type Seq<'a> = SeqView<'a, Self>;

        fn write_items<S: Sink>(items: &[Self], writer: &mut Writer<S>) -> Result<(), CdrError> {
            for (index, item) in items.iter().enumerate() {
                writer.within(Step::Element(index), |writer| item.write(writer))?;
            }
            Ok(())
        }

        fn read_items(reader: &mut Reader<'_>, count: usize) -> Result<Vec<Self>, CdrError> {
            let mut items = Vec::with_capacity(count);
            for index in 0..count {
                items.push(Self::read(reader).map_err(|error| error.within_element(index))?);
            }
            Ok(items)
        }

        fn read_array(reader: &mut Reader<'_>, out: &mut [Self]) -> Result<(), CdrError> {
            for (index, item) in out.iter_mut().enumerate() {
                *item = Self::read(reader).map_err(|error| error.within_element(index))?;
            }
            Ok(())
        }

        fn view_items(items: &[Self]) -> SeqView<'_, Self> {
            SeqView::from(items)
        }

        fn read_view_items<'a>(
            reader: &mut Reader<'a>,
            count: usize,
        ) -> Result<SeqView<'a, Self>, CdrError> {
            SeqView::read(reader, count)
        }

        fn items_from_view(view: &SeqView<'_, Self>) -> Vec<Self> {
            view.iter().map(|item| Self::from_view(&item)).collect()
        }

        fn find_in<'a, T: Number>(items: &'a [Self], path: Path<'_>) -> Option<&'a [T]> {
            let (index, rest) = path.element()?;
            items.get(index)?.find(rest)
        }

        fn seek_in(seek: &mut Seek<'_, '_>, count: usize) -> Result<(), CdrError> {
            seek.element(count, Self::seek, |reader, index| {
                (0..index).try_for_each(|at| match Self::read_view(reader) {
                    Ok(_) => Ok(()),
                    Err(error) => Err(error.within_element(at)),
                })
            })
        }
    };
}

impl Element for String {
    one_by_one!();

    fn text_len(&self) -> usize {
        self.text_max()
    }

    fn view_text_len(view: &&str) -> usize {
        view.text_max()
    }
}

impl Element for WString {
    one_by_one!();

    fn text_len(&self) -> usize {
        self.text_max()
    }

    fn view_text_len(view: &Cow<'_, str>) -> usize {
        view.text_max()
    }
}

impl<M: crate::Message> Element for M {
    one_by_one!();
}

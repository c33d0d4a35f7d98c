//! Arrays of numbers by name: where they lie in a sample, and samples that leave room for them.
//!
//! A path names an array: `ranges`, `image.data`, `channels[2].values`.

use crate::cdr::{
    Bounds, ByteOrder, CdrError, CdrProblem, Count, Number, Reader, Sink, Slice, Writer,
};
use crate::definition::{Base, FieldType, ScalarKind, Shape};
use crate::dynamic::{DynamicMessage, ValueError, write_message};
use crate::message::Message;
use crate::path::{Path, Step};
use crate::types::{Field, TypeDescription};
use crate::view::ArrayView;
use crate::wire::{Bounded, Wire};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

type Nested = Arc<TypeDescription>;

/// Why there is no array of numbers at a path.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum ArrayError {
    /// The message has no such array, or it cannot be used in place.
    Array(ValueError),
    /// The bytes are no sample of the type; or the message breaks a limit of it.
    Cdr(CdrError),
}

impl fmt::Display for ArrayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(error) => error.fmt(f),
            Self::Cdr(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ArrayError {}

impl From<CdrError> for ArrayError {
    fn from(error: CdrError) -> Self {
        Self::Cdr(error)
    }
}

/// Knows where the arrays of numbers of a message type lie in its samples.
///
/// Only what stands before an array is read, and arrays of numbers are passed over.
///
/// ```
/// use std::collections::HashMap;
/// use tsuji_msg::{ArrayLayout, TypeSet};
///
/// let ty = TypeSet::new(HashMap::new()).load_text("my_msgs/msg/Scan", "string name\nfloat32[] ranges\n")?;
/// let layout = ArrayLayout::from(ty);
/// let sample = [0, 1, 0, 0, 2, 0, 0, 0, b'a', 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x3f];
/// let ranges = layout.array::<f32>(&sample, "ranges")?;
/// assert_eq!(ranges.iter().collect::<Vec<_>>(), [0.5]);
///
/// let error = layout.array::<f64>(&sample, "ranges").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "field `ranges`: found no array of f64; expected one that this my_msgs/msg/Scan has: ranges (f32)"
/// );
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ArrayLayout(Of);

#[derive(Clone)]
enum Of {
    Rust {
        name: &'static str,
        seek: fn(&mut Seek<'_, '_>) -> Result<(), CdrError>,
        list: fn(&[u8]) -> List,
    },
    Described(Arc<TypeDescription>),
}

impl ArrayLayout {
    /// The layout of a type of Rust.
    pub fn of<M: Message>() -> Self {
        let list = |sample: &[u8]| List::of(&M::deserialize_lossy(sample).unwrap_or_default());
        Self(Of::Rust { name: M::TYPE_NAME, seek: M::seek, list })
    }

    /// Returns where the array of `T` at `path` lies: its range of bytes in `sample`.
    ///
    /// # Errors
    ///
    /// [`ArrayError::Array`] if there is no array at `path`, or one of other numbers; [`ArrayError::Cdr`] if
    /// `sample` is no sample of the type as far as it was looked at.
    pub fn locate<T: Number>(&self, sample: &[u8], path: &str) -> Result<Range<usize>, ArrayError> {
        let reader = Reader::new(sample)?;
        let path_left = Some(Path::new(path));
        let mut seek = Seek { reader, path: path_left, number: T::NUMBER, found: None };
        match &self.0 {
            Of::Rust { seek: look, .. } => look(&mut seek)?,
            Of::Described(ty) => seek_message(ty, &mut seek)?,
        }
        seek.found.ok_or_else(|| self.list(sample).without::<T>(path))
    }

    /// The arrays that a sample has.
    fn list(&self, sample: &[u8]) -> List {
        match &self.0 {
            Of::Rust { list, .. } => list(sample),
            Of::Described(ty) => {
                let message = DynamicMessage::decode(ty, sample);
                List::of(&message.unwrap_or_else(|_| DynamicMessage::new(ty.clone())))
            }
        }
    }

    /// Views the array of `T` at `path` in place.
    ///
    /// [`ArrayView::as_slice`] is there where it lies aligned and in this machine's byte order, as in every sample
    /// of tsuji; the rest of the view works in every case.
    ///
    /// # Errors
    ///
    /// Those of [`locate`](Self::locate).
    pub fn array<'a, T: Number>(
        &self,
        sample: &'a [u8],
        path: &str,
    ) -> Result<ArrayView<'a, T>, ArrayError> {
        let place = self.locate::<T>(sample, path)?;
        let order = ByteOrder::from_header(sample)?;
        Ok(ArrayView::from_bytes(sample.get(place).unwrap_or_default(), order))
    }

    /// Lends the array of `T` at `path` to be written in place.
    ///
    /// # Errors
    ///
    /// Those of [`locate`](Self::locate); [`ArrayError::Array`] if the array does not lie aligned or is of the other
    /// byte order.
    pub fn array_mut<'a, T: Number>(
        &self,
        sample: &'a mut [u8],
        path: &str,
    ) -> Result<&'a mut [T], ArrayError> {
        self.arrays_mut(sample, [path]).map(|[only]| only)
    }

    /// Lends several arrays of `T` to be written in place at once.
    ///
    /// # Errors
    ///
    /// Those of [`array_mut`](Self::array_mut); [`ArrayError::Array`] if an array is named twice.
    pub fn arrays_mut<'a, T: Number, const N: usize>(
        &self,
        sample: &'a mut [u8],
        paths: [&str; N],
    ) -> Result<[&'a mut [T]; N], ArrayError> {
        let mut places: [_; N] = std::array::from_fn(|_| 0..0);
        for (place, path) in places.iter_mut().zip(paths) {
            *place = self.locate::<T>(sample, path)?;
        }
        let is_native = ByteOrder::from_header(sample)?.is_native();
        let wrong = |path: &str, found| {
            let expected =
                "an array of its own, in this machine's byte order and aligned in memory";
            ArrayError::Array(ValueError::new(path, found, expected))
        };
        let twice = (1..N).find(|at| places[..*at].contains(&places[*at]));
        if let Some(path) = twice.and_then(|at| paths.get(at)) {
            return Err(wrong(path, "the same array twice"));
        }
        let parts = sample.get_disjoint_mut(places).ok();
        let first = paths.first().copied().unwrap_or_default();
        let parts = parts.ok_or_else(|| wrong(first, "an array within another"))?;
        let mut arrays: [_; N] = std::array::from_fn(|_| &mut [][..]);
        for ((array, part), path) in arrays.iter_mut().zip(parts).zip(paths) {
            if !is_native && T::SIZE > 1 {
                return Err(wrong(path, "numbers in the other byte order"));
            }
            if !part.is_empty() {
                *array = bytemuck::try_cast_slice_mut(part)
                    .map_err(|_| wrong(path, "an array that does not lie aligned"))?;
            }
        }
        Ok(arrays)
    }
}

impl From<Arc<TypeDescription>> for ArrayLayout {
    fn from(ty: Arc<TypeDescription>) -> Self {
        Self(Of::Described(ty))
    }
}

impl fmt::Debug for ArrayLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Of::Rust { name, .. } => write!(f, "ArrayLayout({name})"),
            Of::Described(ty) => write!(f, "ArrayLayout({})", ty.name()),
        }
    }
}

/// Looks for an array of numbers in a sample. Generated code shows it the fields in their order.
#[derive(Debug)]
pub struct Seek<'a, 'p> {
    reader: Reader<'a>,
    /// What is left of the path; none once the field that it names was looked into.
    path: Option<Path<'p>>,
    number: Option<ScalarKind>,
    found: Option<Range<usize>>,
}

impl<'a> Seek<'a, '_> {
    /// Passes over a field, or looks into it where the path names it; an error names it.
    ///
    /// # Errors
    ///
    /// Those of [`Wire::read_view`] of `T`.
    #[inline]
    pub fn field<T: Wire>(&mut self, name: &str) -> Result<(), CdrError> {
        self.pass(name, T::seek, |reader| T::read_view(reader).map(drop))
    }

    /// Does the same for a field whose length, or whose elements' length, the type limits.
    ///
    /// # Errors
    ///
    /// Those of [`field`](Self::field) and of [`Bounds::check`].
    pub fn bounded_field<T: Wire>(&mut self, name: &str, bounds: Bounds) -> Result<(), CdrError>
    where
        T::View<'a>: Bounded,
    {
        let skip = |reader: &mut Reader<'a>| {
            let offset = reader.offset();
            bounds.check(&T::read_view(reader)?, offset)
        };
        self.pass(
            name,
            |seek| {
                skip(&mut { seek.reader })?;
                T::seek(seek)
            },
            skip,
        )
    }

    #[inline]
    fn pass(
        &mut self,
        name: &str,
        look: impl FnOnce(&mut Self) -> Result<(), CdrError>,
        skip: impl FnOnce(&mut Reader<'a>) -> Result<(), CdrError>,
    ) -> Result<(), CdrError> {
        let Some(path) = self.path else { return Ok(()) };
        let passed = match path.past(Step::Field(name)) {
            None => skip(&mut self.reader),
            rest => {
                self.path = rest;
                let looked = look(self);
                self.path = None;
                looked
            }
        };
        passed.map_err(|error| error.within(name))
    }

    /// Looks into the element that the path names of the `count` that come next, if there is such.
    pub(crate) fn element(
        &mut self,
        count: usize,
        look: impl FnOnce(&mut Self) -> Result<(), CdrError>,
        skip: impl FnOnce(&mut Reader<'a>, usize) -> Result<(), CdrError>,
    ) -> Result<(), CdrError> {
        match self.path.and_then(Path::element) {
            Some((index, rest)) if index < count => {
                skip(&mut self.reader, index)?;
                self.path = Some(rest);
                look(self).map_err(|error| error.within_element(index))
            }
            _ => Ok(()),
        }
    }

    /// Has found the array if these `count` scalars are of the right type and the path ends here.
    pub(crate) fn scalars(&mut self, kind: ScalarKind, count: usize) -> Result<(), CdrError> {
        if self.path.is_some_and(Path::is_end) && kind.number() == self.number {
            let bytes = self.reader.block(kind.size(), count)?;
            let end = self.reader.offset();
            self.found = Some(end - bytes.len()..end);
        }
        Ok(())
    }

    /// Reads the count of a sequence.
    pub(crate) fn length(&mut self, element_min: usize) -> Result<usize, CdrError> {
        self.reader.length(element_min)
    }
}

fn seek_message(ty: &TypeDescription, seek: &mut Seek<'_, '_>) -> Result<(), CdrError> {
    for Field { name, ty, .. } in ty.fields() {
        seek.pass(name, |seek| seek_field(ty, seek), |reader| skip_field(ty, reader))?;
    }
    Ok(())
}

fn seek_field(ty: &FieldType<Nested>, seek: &mut Seek<'_, '_>) -> Result<(), CdrError> {
    if let (Base::Nested(nested), Shape::Single) = (&ty.base, ty.shape) {
        return seek_message(nested, seek);
    }
    let count = count(ty, &mut seek.reader)?;
    match &ty.base {
        Base::Scalar(kind) if ty.shape != Shape::Single => seek.scalars(*kind, count),
        Base::Nested(nested) => seek.element(
            count,
            |seek| seek_message(nested, seek),
            |reader, index| skip_items(&ty.base, index, reader),
        ),
        _ => Ok(()),
    }
}

pub(crate) fn skip_field(ty: &FieldType<Nested>, reader: &mut Reader<'_>) -> Result<(), CdrError> {
    let count = count(ty, reader)?;
    skip_items(&ty.base, count, reader)
}

pub(crate) fn skip_items(
    base: &Base<Nested>,
    count: usize,
    reader: &mut Reader<'_>,
) -> Result<(), CdrError> {
    if let Some(end) = base.fixed_end(reader.position(), count) {
        return reader.skip_to(end);
    }
    for index in 0..count {
        let skipped = match base {
            // Always of the same size.
            Base::Scalar(_) => Ok(()),
            Base::String { .. } => reader.skip_string(),
            Base::WString { .. } => reader.skip_wstring(),
            Base::Nested(nested) => {
                nested.fields().iter().try_for_each(|Field { name, ty, .. }| {
                    skip_field(ty, reader).map_err(|error| error.within(name))
                })
            }
        };
        skipped.map_err(|error| error.within_element(index))?;
    }
    Ok(())
}

/// How many values a field has, as the type or the sample says.
pub(crate) fn count(ty: &FieldType<Nested>, reader: &mut Reader<'_>) -> Result<usize, CdrError> {
    let bound = match ty.shape {
        Shape::Single => return Ok(1),
        Shape::Array(count) => return Ok(count as usize),
        Shape::Sequence => None,
        Shape::Bounded(bound) => Some(bound as usize),
    };
    let offset = reader.offset();
    let length = reader.length(ty.base.min_size())?;
    match bound {
        Some(bound) if bound < length => {
            Err(CdrError::new(offset, CdrProblem::Bound { length, bound }))
        }
        _ => Ok(length),
    }
}

/// An array that a sample leaves room for: its path, and how many elements it has.
#[derive(Clone, Debug)]
pub struct Room<'a> {
    path: &'a str,
    elements: usize,
    rest: Path<'a>,
    /// How deep inside the message the path was followed; none where it was passed by.
    depth: Option<usize>,
    place: Option<Range<usize>>,
}

impl<'a> Room<'a> {
    /// Room for the array at `path`, of so many elements.
    pub fn new(path: &'a str, elements: usize) -> Self {
        Self { path, elements, rest: Path::new(path), depth: Some(0), place: None }
    }

    /// Where the room is: a range of bytes of the sample, once it is written.
    pub fn place(&self) -> Range<usize> {
        self.place.clone().unwrap_or_default()
    }
}

/// A message, of a type of Rust or of one known at run time, that is written around arrays which are
/// filled in place.
///
/// ```
/// use std::collections::HashMap;
/// use tsuji_msg::{ArrayLayout, DynamicMessage, Room, Template, TypeSet};
///
/// let ty = TypeSet::new(HashMap::new()).load_text("my_msgs/msg/Scan", "string name\nfloat32[] ranges\n")?;
/// let template = DynamicMessage::from_yaml(&ty, "name: laser")?;
/// let mut rooms = [Room::new("ranges", 2)];
/// let mut sample = vec![0; template.size_around(&mut rooms)?];
/// template.serialize_around(&mut rooms, &mut sample)?;
///
/// let [room] = rooms;
/// assert_eq!(room.place(), 20..28);
/// assert_eq!(ArrayLayout::from(ty).locate::<f32>(&sample, "ranges")?, room.place());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub trait Template {
    /// Writes the body of a sample.
    ///
    /// # Errors
    ///
    /// Those of [`Wire::write`].
    fn write_body<S: Sink>(&self, writer: &mut Writer<S>) -> Result<(), CdrError>;

    /// The layout of its type.
    fn layout(&self) -> ArrayLayout;

    /// The name of its type, such as `sensor_msgs/msg/Image`.
    fn type_name(&self) -> String;

    /// Exact bytes of the sample with these arrays; what they hold in `self` does not count.
    ///
    /// # Errors
    ///
    /// [`ArrayError::Array`] if the message has no array of numbers at the path of a room, or two rooms have the same
    /// path; [`ArrayError::Cdr`] if the message cannot be written.
    fn size_around(&self, rooms: &mut [Room<'_>]) -> Result<usize, ArrayError> {
        write_around(self, rooms, Count::default())
    }

    /// Writes header and body, little endian, but the contents of these arrays, whose places the rooms tell then.
    ///
    /// Their bytes are left as they are.
    ///
    /// # Errors
    ///
    /// Those of [`size_around`](Self::size_around); [`ArrayError::Cdr`] if the message breaks a limit of its type, as
    /// an array does that has another number of elements, or if `out` is too short.
    fn serialize_around(&self, rooms: &mut [Room<'_>], out: &mut [u8]) -> Result<(), ArrayError> {
        write_around(self, rooms, Slice::new(out)).map(drop)
    }
}

impl<M: Message> Template for M {
    fn write_body<S: Sink>(&self, writer: &mut Writer<S>) -> Result<(), CdrError> {
        self.write(writer)
    }

    fn layout(&self) -> ArrayLayout {
        ArrayLayout::of::<M>()
    }

    fn type_name(&self) -> String {
        M::TYPE_NAME.into()
    }
}

impl Template for DynamicMessage {
    fn write_body<S: Sink>(&self, writer: &mut Writer<S>) -> Result<(), CdrError> {
        write_message(self, writer)
    }

    fn layout(&self) -> ArrayLayout {
        self.ty().clone().into()
    }

    fn type_name(&self) -> String {
        self.ty().name().to_string()
    }
}

/// The bytes that were written.
fn write_around<T: Template + ?Sized, S: Sink>(
    template: &T,
    rooms: &mut [Room<'_>],
    sink: S,
) -> Result<usize, ArrayError> {
    for room in &mut *rooms {
        *room = Room::new(room.path, room.elements);
    }
    let mut writer = Writer::new(Around { sink, rooms, depth: 0 }, ByteOrder::Little)?;
    template.write_body(&mut writer)?;
    let written = writer.position();
    match rooms.iter().position(|room| room.place.is_none()) {
        None => Ok(written),
        Some(at) => {
            let path = rooms[at].path;
            let is_twice = rooms[..at].iter().any(|room| room.path == path);
            let found = if is_twice { "the same array twice" } else { "no array of numbers" };
            Err(List::of(template).error(path, found))
        }
    }
}

/// A sink that leaves room.
struct Around<'r, 'a, S> {
    sink: S,
    rooms: &'r mut [Room<'a>],
    /// How deep inside the message the writer is.
    depth: usize,
}

impl<S: Sink> Sink for Around<'_, '_, S> {
    const COUNTS: bool = S::COUNTS;

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), CdrError> {
        self.sink.put(bytes)
    }

    #[inline]
    fn zeros(&mut self, count: usize) -> Result<(), CdrError> {
        self.sink.zeros(count)
    }

    #[inline]
    fn skip(&mut self, count: usize) -> Result<(), CdrError> {
        self.sink.skip(count)
    }

    #[inline]
    fn position(&self) -> usize {
        self.sink.position()
    }

    fn enter(&mut self, step: Step<'_>) {
        for room in self.rooms.iter_mut().filter(|room| room.depth == Some(self.depth)) {
            if let Some(rest) = room.rest.past(step) {
                room.rest = rest;
                room.depth = Some(self.depth + 1);
            }
        }
        self.depth += 1;
    }

    fn exit(&mut self) {
        // No other field has the name, no other element the index.
        for room in self.rooms.iter_mut().filter(|room| room.depth == Some(self.depth)) {
            room.depth = None;
        }
        self.depth -= 1;
    }

    fn room(&self) -> Option<usize> {
        let is_here = |room: &&Room<'_>| room.depth == Some(self.depth) && room.rest.is_end();
        self.rooms.iter().find(is_here).map(|room| room.elements)
    }

    fn lend(&mut self, _: ScalarKind, place: Range<usize>) {
        let is_here = |room: &&mut Room<'_>| room.depth == Some(self.depth) && room.rest.is_end();
        if let Some(room) = self.rooms.iter_mut().find(is_here) {
            room.place = Some(place);
        }
    }
}

/// Why a message has no array of `T` at a path.
pub(crate) fn missing<T: Number>(message: &impl Template, path: &str) -> ArrayError {
    List::of(message).without::<T>(path)
}

/// The arrays of numbers that a message has, for who named another one.
#[derive(Default)]
struct List {
    of: String,
    /// At most [`LISTED_MAX`]; more are not told.
    arrays: Vec<String>,
    path: String,
    /// Where the steps of the path start.
    steps: Vec<usize>,
    bytes: Count,
}

const LISTED_MAX: usize = 16;

impl List {
    fn of<T: Template + ?Sized>(message: &T) -> Self {
        let list = Self { of: message.type_name(), ..Self::default() };
        let Ok(mut writer) = Writer::new(list, ByteOrder::Little) else { return Self::default() };
        // What fails has a limit that is told elsewhere, and what was found until then is worth telling.
        let _ = message.write_body(&mut writer);
        writer.into_sink()
    }

    fn without<T: Number>(&self, path: &str) -> ArrayError {
        let kind = T::NUMBER.map(ScalarKind::rust_name).unwrap_or_default();
        self.error(path, &format!("no array of {kind}"))
    }

    fn error(&self, path: &str, found: &str) -> ArrayError {
        let (of, arrays) = (&self.of, &self.arrays);
        let expected = match arrays.as_slice() {
            [] => format!("nothing: this {of} has no array of numbers"),
            arrays => format!("one that this {of} has: {}", arrays.join(", ")),
        };
        ArrayError::Array(ValueError::new(path, found, expected))
    }
}

impl Sink for List {
    const COUNTS: bool = true;

    fn put(&mut self, bytes: &[u8]) -> Result<(), CdrError> {
        self.bytes.put(bytes)
    }

    fn zeros(&mut self, count: usize) -> Result<(), CdrError> {
        self.bytes.zeros(count)
    }

    fn skip(&mut self, count: usize) -> Result<(), CdrError> {
        self.bytes.skip(count)
    }

    fn position(&self) -> usize {
        self.bytes.position()
    }

    fn enter(&mut self, step: Step<'_>) {
        self.steps.push(self.path.len());
        let joint = if self.path.is_empty() { "" } else { "." };
        self.path += &match step {
            Step::Field(name) => format!("{joint}{name}"),
            Step::Element(index) => format!("[{index}]"),
        };
    }

    fn exit(&mut self) {
        self.path.truncate(self.steps.pop().unwrap_or_default());
    }

    fn room(&self) -> Option<usize> {
        Some(0)
    }

    fn lend(&mut self, kind: ScalarKind, _: Range<usize>) {
        match self.arrays.len() {
            ..LISTED_MAX => self.arrays.push(format!("{} ({})", self.path, kind.rust_name())),
            LISTED_MAX => self.arrays.push("…".into()),
            _ => (),
        }
    }
}

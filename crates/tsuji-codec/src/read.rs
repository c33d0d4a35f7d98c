//! Reading a message of any format into CDR, in one pass and without a tree.
//!
//! CDR has the fields in the order of the definition. As long as the input has them in that order too, each is read
//! as it comes. From the first one on that is out of order the rest of its object is passed over once, to note where
//! each field is, and then read by these notes.

use crate::cdr::Cdr;
use crate::error::FieldError;
use crate::number::{Number, each_number};
use crate::plan::{Field, Key, Member, Role, Struct, expectation};
use crate::raw::Raw;
use crate::{DEFAULT_BYTES_MAX, base64};
use std::borrow::Cow;
use std::sync::Arc;
use tsuji_msg::Now;
use tsuji_msg::definition::{Base, FieldType, ScalarKind, Shape};

/// Values of one format, one behind the other.
///
/// What asks for a kind of value answers none, and stays where it is, if a value of another kind comes next; it fails
/// only where there is no value at all.
pub(crate) trait Source<'a> {
    /// What is to be remembered of an object or list that is being read.
    type Frame;
    /// Where a value is.
    type Place: Copy;

    /// Where the next value is.
    fn place(&self) -> Self::Place;

    /// Goes on at a value, or behind the last of an object.
    fn seek(&mut self, place: Self::Place);

    /// Bytes from the beginning to here.
    fn offset(&self) -> usize;

    /// Passes over the next value.
    fn raw(&mut self) -> Result<Raw<'a>, FieldError>;

    /// Goes into an object.
    fn open_object(&mut self) -> Result<Option<Self::Frame>, FieldError>;

    /// Goes to the next value of an object. `expected` is the name that it probably has.
    fn name(
        &mut self,
        frame: &mut Self::Frame,
        expected: Option<&Key>,
    ) -> Result<Name<'a>, FieldError>;

    /// Goes into a list.
    fn open_list(&mut self) -> Result<Option<Self::Frame>, FieldError>;

    /// Goes to the next value of a list; false at its end, which is then passed.
    fn item(&mut self, frame: &mut Self::Frame) -> Result<bool, FieldError>;

    /// Whether nothing comes next; it is passed if so.
    fn null(&mut self) -> Result<bool, FieldError>;

    /// Takes a truth value.
    fn boolean(&mut self) -> Result<Option<bool>, FieldError>;

    /// Takes a number that is in range, or what stands for one.
    fn number<T: Number>(&mut self) -> Result<Option<T>, FieldError>;

    /// Takes a text.
    fn text(&mut self) -> Result<Option<Cow<'a, str>>, FieldError>;

    /// Takes a text of which nobody needs to know yet that it is one.
    fn letters(&mut self) -> Result<Option<Cow<'a, [u8]>>, FieldError> {
        Ok(self.text()?.map(|text| match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        }))
    }

    /// Takes bytes.
    fn bytes(&mut self) -> Result<Option<Cow<'a, [u8]>>, FieldError> {
        Ok(None)
    }

    /// Takes numbers that are packed into bytes.
    fn packed(&mut self) -> Result<Option<Packed<'a>>, FieldError> {
        Ok(None)
    }

    /// What comes next, in the words of an error.
    fn describe(&mut self) -> String;

    /// Fails if anything is left.
    fn end(&mut self) -> Result<(), FieldError>;
}

/// What [`Source::name`] found.
pub(crate) enum Name<'a> {
    /// The name that was expected.
    Expected,
    /// Another one.
    Other(Cow<'a, str>),
    /// The end of the object, which is now passed.
    End,
}

/// Numbers in the bytes of one of RFC 8746's typed arrays.
pub(crate) struct Packed<'a> {
    pub(crate) tag: u8,
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Of one number.
    pub(crate) size: usize,
}

impl Packed<'_> {
    /// The number at a place, if it is in range.
    fn number<T: Number>(&self, at: usize) -> Option<T> {
        let bytes = self.bytes.get(at..at + self.size)?;
        let mut little = [0; 8];
        little[..self.size].copy_from_slice(bytes);
        if !self.is_little() {
            little[..self.size].reverse();
        }
        let bits = u64::from_le_bytes(little);
        if self.is_float() {
            return T::from_float(match self.size {
                2 => crate::cbor::half(bits as u16),
                4 => f32::from_bits(bits as u32).into(),
                _ => f64::from_bits(bits),
            });
        }
        let unused = 64 - 8 * self.size as u32;
        let is_signed = self.tag & 8 != 0;
        T::from_whole(if is_signed {
            ((bits << unused) as i64 >> unused).into()
        } else {
            bits.into()
        })
    }

    fn is_float(&self) -> bool {
        self.tag & 16 != 0
    }

    fn is_little(&self) -> bool {
        self.tag & 4 != 0
    }
}

/// Reads the one message that is in `source`, and appends it as CDR. Nothing is appended if that fails.
pub(crate) fn read<'a, S: Source<'a>>(
    ty: &Struct,
    source: S,
    now: Now,
    out: &mut Vec<u8>,
) -> Result<(), FieldError> {
    let start = out.len();
    let defaults_left = DEFAULT_BYTES_MAX.saturating_add(ty.default_bytes);
    let notes = Vec::new();
    let mut reading = Reading { source, now, out: Cdr::new(out), notes, defaults_left };
    let result = reading.whole(ty);
    if result.is_err() {
        out.truncate(start);
    }
    result
}

struct Reading<'a, 'o, S: Source<'a>> {
    source: S,
    now: Now,
    out: Cdr<'o>,
    /// Where fields are that come out of order, of each object that is being read so.
    notes: Vec<Option<S::Place>>,
    /// What is left of [`DEFAULT_BYTES_MAX`].
    defaults_left: usize,
}

impl<'a, S: Source<'a>> Reading<'a, '_, S> {
    /// The message itself, which may be a list of its fields' values too.
    fn whole(&mut self, ty: &Struct) -> Result<(), FieldError> {
        match self.source.open_list()? {
            Some(frame) => self.listed(ty, frame)?,
            None => self.message(ty)?,
        }
        self.source.end()
    }

    /// A message whose fields are the elements of a list.
    fn listed(&mut self, ty: &Struct, mut frame: S::Frame) -> Result<(), FieldError> {
        let mut next = 0;
        while self.source.item(&mut frame)? {
            let Some(field) = ty.fields.get(next) else {
                let expected = format!("at most {next} values, for the fields of {ty}");
                return Err(self.found(format!("more than {next} values"), expected));
            };
            self.named(field)?;
            next += 1;
        }
        self.rest(ty, next)
    }

    fn message(&mut self, ty: &Struct) -> Result<(), FieldError> {
        let Some(mut frame) = self.source.open_object()? else { return self.word(ty) };
        let mut next = 0;
        loop {
            let expected = ty.fields.get(next);
            match self.source.name(&mut frame, expected.map(|field| &field.key))? {
                Name::Expected => {}
                Name::End => return self.rest(ty, next),
                Name::Other(name) => match self.member(ty, &name, next)? {
                    Member::Field(index) if index == next => {}
                    Member::Field(index) => {
                        return self.scattered(ty, &mut frame, next, (index, &name));
                    }
                    Member::Ignored => {
                        self.source.raw()?;
                        continue;
                    }
                },
            }
            if let Some(field) = expected {
                self.named(field)?;
                next += 1;
            }
        }
    }

    /// What is left of a message of which the fields before `next` are read, from where the field `first` is, which
    /// is another one.
    fn scattered(
        &mut self,
        ty: &Struct,
        frame: &mut S::Frame,
        next: usize,
        first: (usize, &str),
    ) -> Result<(), FieldError> {
        let notes = self.notes.len();
        self.notes.resize(notes + ty.fields.len(), None);
        self.note(notes, next, first)?;
        let mut likely = first.0 + 1;
        loop {
            match self.source.name(frame, None)? {
                Name::End => break,
                Name::Expected => {}
                Name::Other(name) => match self.member(ty, &name, likely)? {
                    Member::Ignored => drop(self.source.raw()?),
                    Member::Field(index) => {
                        self.note(notes, next, (index, &name))?;
                        likely = index + 1;
                    }
                },
            }
        }
        let end = self.source.place();
        for (index, field) in ty.fields.iter().enumerate().skip(next) {
            match self.notes.get(notes + index).copied().flatten() {
                Some(place) => {
                    self.source.seek(place);
                    self.named(field)?;
                }
                None => self.absent(ty, index, field)?,
            }
        }
        self.notes.truncate(notes);
        self.source.seek(end);
        Ok(())
    }

    /// Notes where the field is that comes next, and passes over it.
    fn note(
        &mut self,
        notes: usize,
        read: usize,
        (index, name): (usize, &str),
    ) -> Result<(), FieldError> {
        let place = self.source.place();
        let before = self.notes[notes + index].replace(place);
        if index < read || before.is_some() {
            return Err(self.found(format!("the name `{name}` again"), "each name at most once"));
        }
        self.source.raw().map(drop)
    }

    fn member(&mut self, ty: &Struct, name: &str, next: usize) -> Result<Member, FieldError> {
        ty.member(name, next).ok_or_else(|| {
            let name = crate::error::shortened(name.as_bytes());
            self.found(format!("the name {name}"), ty.names())
        })
    }

    /// What may stand for a message beside an object.
    #[cold]
    fn word(&mut self, ty: &Struct) -> Result<(), FieldError> {
        let is_time = ty.role == Role::Time;
        let place = self.source.place();
        if is_time && self.source.text()?.as_deref() == Some("now") {
            self.now();
            return Ok(());
        }
        self.source.seek(place);
        let now = if is_time { ", or \"now\"" } else { "" };
        let expected = format!("an object with the fields of {ty}{now}");
        Err(self.unfit(expected))
    }

    fn now(&mut self) {
        self.out.number(self.now.sec);
        self.out.number(self.now.nanosec);
    }

    /// The fields from `next` on, which are not there.
    #[inline]
    fn rest(&mut self, ty: &Struct, next: usize) -> Result<(), FieldError> {
        if ty.fields.is_empty() {
            self.out.raw().push(0);
        }
        for (index, field) in ty.fields.iter().enumerate().skip(next) {
            self.absent(ty, index, field)?;
        }
        Ok(())
    }

    fn absent(&mut self, ty: &Struct, index: usize, field: &Field) -> Result<(), FieldError> {
        if ty.role == (Role::Header { stamp: index }) {
            self.now();
            return Ok(());
        }
        let Some(left) = self.defaults_left.checked_sub(field.default_bytes) else {
            let found = "too many fields without a value";
            let expected = format!("at most {DEFAULT_BYTES_MAX} bytes of default values");
            return Err(self.found(found, expected).within(&field.key.name));
        };
        self.defaults_left = left;
        self.out.default_field(field);
        Ok(())
    }

    #[inline]
    fn named(&mut self, field: &Field) -> Result<(), FieldError> {
        let result = match field.ty.shape {
            Shape::Single => self.single(&field.ty.base),
            _ => self.list(&field.ty),
        };
        match result {
            Ok(()) => Ok(()),
            Err(error) => Err(error.within(&field.key.name)),
        }
    }

    #[inline]
    fn single(&mut self, base: &Base<Arc<Struct>>) -> Result<(), FieldError> {
        match base {
            Base::Scalar(kind) => {
                each_number!(*kind, bool => self.boolean(base), T => self.number::<T>(base))
            }
            Base::String { bound } => self.string(base, *bound),
            Base::WString { bound } => self.wide(base, *bound),
            Base::Nested(nested) => self.message(nested),
        }
    }

    fn boolean(&mut self, base: &Base<Arc<Struct>>) -> Result<(), FieldError> {
        match self.source.boolean()? {
            Some(value) => self.out.boolean(value),
            None => return Err(self.unfit(expectation(base))),
        }
        Ok(())
    }

    #[inline]
    fn number<T: Number>(&mut self, base: &Base<Arc<Struct>>) -> Result<(), FieldError> {
        match self.source.number::<T>()? {
            Some(value) => self.out.number(value),
            None => return Err(self.unfit(expectation(base))),
        }
        Ok(())
    }

    #[inline]
    fn string(&mut self, base: &Base<Arc<Struct>>, bound: Option<u32>) -> Result<(), FieldError> {
        let Some(text) = self.source.text()? else { return Err(self.unfit(expectation(base))) };
        let is_within = bound.is_none_or(|bound| text.len() <= bound as usize);
        if is_within && self.out.text(&text) {
            return Ok(());
        }
        Err(self.found(format!("{} bytes", text.len()), expectation(base)))
    }

    fn wide(&mut self, base: &Base<Arc<Struct>>, bound: Option<u32>) -> Result<(), FieldError> {
        let Some(text) = self.source.text()? else { return Err(self.unfit(expectation(base))) };
        let units = self.out.wide(&text);
        let is_within =
            units.is_some_and(|units| bound.is_none_or(|bound| units <= bound as usize));
        if is_within {
            return Ok(());
        }
        let units = text.encode_utf16().count();
        Err(self.found(format!("{units} UTF-16 units"), expectation(base)))
    }

    fn list(&mut self, ty: &FieldType<Arc<Struct>>) -> Result<(), FieldError> {
        let counted = (!matches!(ty.shape, Shape::Array(_))).then(|| self.out.begin_count());
        let count = match &ty.base {
            Base::Scalar(kind) => {
                each_number!(
                    *kind,
                    bool => self.each(ty, |it| it.boolean(&ty.base))?,
                    T => self.numbers::<T>(ty, *kind)?
                )
            }
            Base::String { bound } => self.each(ty, |it| it.string(&ty.base, *bound))?,
            Base::WString { bound } => self.each(ty, |it| it.wide(&ty.base, *bound))?,
            Base::Nested(nested) => self.each(ty, |it| it.message(nested))?,
        };
        let is_right = match ty.shape {
            Shape::Array(right) => count == right as usize,
            Shape::Bounded(most) => count <= most as usize,
            Shape::Single | Shape::Sequence => true,
        };
        if is_right && counted.is_none_or(|place| self.out.end_count(place, count)) {
            return Ok(());
        }
        Err(self.found(format!("{count} elements"), counts(ty)))
    }

    fn each(
        &mut self,
        ty: &FieldType<Arc<Struct>>,
        one: impl FnMut(&mut Self) -> Result<(), FieldError>,
    ) -> Result<usize, FieldError> {
        match self.source.open_list()? {
            Some(frame) => self.each_in(ty, frame, one),
            None => Err(self.unfit(format!("a list ({ty})"))),
        }
    }

    fn each_in(
        &mut self,
        ty: &FieldType<Arc<Struct>>,
        mut frame: S::Frame,
        mut one: impl FnMut(&mut Self) -> Result<(), FieldError>,
    ) -> Result<usize, FieldError> {
        let most = match ty.shape {
            Shape::Array(most) | Shape::Bounded(most) => most as usize,
            Shape::Single | Shape::Sequence => u32::MAX as usize,
        };
        let mut count = 0;
        while self.source.item(&mut frame)? {
            if count == most {
                return Err(self.found(format!("more than {most} elements"), counts(ty)));
            }
            if let Err(error) = one(self) {
                return Err(error.within_element(count));
            }
            count += 1;
        }
        Ok(count)
    }

    fn numbers<T: Number>(
        &mut self,
        ty: &FieldType<Arc<Struct>>,
        kind: ScalarKind,
    ) -> Result<usize, FieldError> {
        if let Some(frame) = self.source.open_list()? {
            return self.each_in(ty, frame, |it| it.number::<T>(&ty.base));
        }
        let is_bytes = matches!(kind, ScalarKind::Byte | ScalarKind::Char | ScalarKind::U8);
        if is_bytes {
            if let Some(bytes) = self.source.bytes()? {
                self.out.raw().extend_from_slice(&bytes);
                return Ok(bytes.len());
            }
            let place = self.source.place();
            if let Some(letters) = self.source.letters()? {
                let start = self.out.raw().len();
                if base64::decode(&letters, self.out.raw()) {
                    return Ok(self.out.raw().len() - start);
                }
                self.source.seek(place);
            }
        }
        match self.source.packed()? {
            Some(packed) => self.unpack::<T>(&packed, &ty.base),
            None if is_bytes => Err(self.unfit(format!("{ty}, as numbers or in base64"))),
            None => Err(self.unfit(format!("a list ({ty})"))),
        }
    }

    fn unpack<T: Number>(
        &mut self,
        packed: &Packed<'_>,
        base: &Base<Arc<Struct>>,
    ) -> Result<usize, FieldError> {
        let count = packed.bytes.len() / packed.size;
        if packed.tag == T::CBOR_TAG {
            if count > 0 {
                self.out.align(T::SIZE);
            }
            self.out.raw().extend_from_slice(&packed.bytes);
            return Ok(count);
        }
        for index in 0..count {
            match packed.number::<T>(index * packed.size) {
                Some(value) => self.out.number(value),
                None => {
                    let found = "a number out of range";
                    return Err(self.found(found, expectation(base)).within_element(index));
                }
            }
        }
        Ok(count)
    }

    /// The error of what comes next.
    #[cold]
    fn unfit(&mut self, expected: String) -> FieldError {
        let found = self.source.describe();
        FieldError::new(self.source.offset(), found, expected)
    }

    /// The error of what was just read.
    #[cold]
    fn found(&self, found: impl Into<String>, expected: impl Into<String>) -> FieldError {
        FieldError::new(self.source.offset(), found, expected)
    }
}

/// How many elements may be in a list, as errors say it.
fn counts(ty: &FieldType<Arc<Struct>>) -> String {
    match ty.shape {
        Shape::Array(count) => format!("exactly {count} ({ty})"),
        Shape::Bounded(bound) => format!("at most {bound} ({ty})"),
        Shape::Single | Shape::Sequence => format!("at most {} ({ty})", u32::MAX),
    }
}

//! Values that are not read yet, of any of the three formats.

use crate::error::FieldError;
use crate::read::{Name, Source};
use crate::{bson, cbor, json};
use std::borrow::Cow;

/// How a value is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON, as text in UTF-8.
    Json,
    /// CBOR.
    Cbor,
    /// BSON.
    Bson,
}

/// A value as it came. Who reads the envelope of a message hands on what is in it so, and [`Plan::read`](crate::Plan::read)
/// makes CDR of it. Offsets in errors count from the beginning of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    pub(crate) format: Format,
    /// Of a value of BSON, whose bytes do not say it; 0 otherwise.
    pub(crate) kind: u8,
    pub(crate) bytes: &'a [u8],
}

/// Does the same with a source of whichever format.
macro_rules! with_source {
    ($raw:expr, $source:ident => $result:expr) => {
        match $raw.format {
            Format::Json => {
                let mut $source = json::Scanner::new($raw.bytes);
                $result
            }
            Format::Cbor => {
                let mut $source = cbor::Scanner::new($raw.bytes);
                $result
            }
            Format::Bson => {
                let mut $source = bson::Scanner::new($raw.kind, $raw.bytes);
                $result
            }
        }
    };
}

impl<'a> Raw<'a> {
    /// A whole message; of BSON a document.
    pub fn new(format: Format, bytes: &'a [u8]) -> Self {
        let kind = if format == Format::Bson { bson::document_kind(bytes) } else { 0 };
        Self { format, kind, bytes }
    }

    /// A value in a document.
    pub(crate) fn bson(kind: u8, bytes: &'a [u8]) -> Self {
        Self { format: Format::Bson, kind, bytes }
    }

    /// How it is written down.
    pub fn format(self) -> Format {
        self.format
    }

    /// What is written. Of BSON that does not say what it is, unless it is an object or a list.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The members, if it is an object.
    ///
    /// # Errors
    ///
    /// A [`FieldError`] if it is no object, or no value at all. What is wrong within the object is told by
    /// [`Members`], member by member.
    pub fn members(self) -> Result<Members<'a>, FieldError> {
        fn opened<'a, S: Source<'a>>(source: &mut S) -> Result<S::Frame, FieldError> {
            match source.open_object()? {
                Some(frame) => Ok(frame),
                None => Err(unfit(source, "an object")),
            }
        }
        let cursor = match self.format {
            Format::Json => {
                let mut source = json::Scanner::new(self.bytes);
                Cursor::Json(opened(&mut source)?, source)
            }
            Format::Cbor => {
                let mut source = cbor::Scanner::new(self.bytes);
                Cursor::Cbor(opened(&mut source)?, source)
            }
            Format::Bson => {
                let mut source = bson::Scanner::new(self.kind, self.bytes);
                Cursor::Bson(opened(&mut source)?, source)
            }
        };
        Ok(Members { cursor: Some(cursor) })
    }

    /// The text that it is.
    ///
    /// # Errors
    ///
    /// A [`FieldError`] if it is of another kind, is no value of its format, or has something behind it.
    pub fn text(self) -> Result<Cow<'a, str>, FieldError> {
        with_source!(self, it => whole(&mut it, Source::text, "a text"))
    }

    /// The truth value that it is.
    ///
    /// # Errors
    ///
    /// Those of [`text`](Self::text).
    pub fn boolean(self) -> Result<bool, FieldError> {
        with_source!(self, it => whole(&mut it, Source::boolean, "true or false"))
    }

    /// The whole number that it is.
    ///
    /// # Errors
    ///
    /// Those of [`text`](Self::text); a [`FieldError`] also if it has a fraction, is a float beyond 2⁵³, or does
    /// not fit 64 bits with a sign.
    pub fn integer(self) -> Result<i64, FieldError> {
        with_source!(self, it => whole(&mut it, Source::number::<i64>, "a whole number"))
    }

    /// The number that it is; a NaN where it is `null`.
    ///
    /// # Errors
    ///
    /// Those of [`text`](Self::text).
    pub fn float(self) -> Result<f64, FieldError> {
        with_source!(self, it => whole(&mut it, Source::number::<f64>, "a number"))
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        with_source!(self, it => matches!(it.null(), Ok(true)))
    }
}

/// The one value of a source, if it is of the kind that is taken.
fn whole<'a, S: Source<'a>, T>(
    source: &mut S,
    take: impl FnOnce(&mut S) -> Result<Option<T>, FieldError>,
    expected: &str,
) -> Result<T, FieldError> {
    let Some(value) = take(source)? else { return Err(unfit(source, expected)) };
    source.end()?;
    Ok(value)
}

#[cold]
fn unfit<'a, S: Source<'a>>(source: &mut S, expected: &str) -> FieldError {
    let found = source.describe();
    FieldError::new(source.offset(), found, expected)
}

/// The members of an object, in their order: names and values. After an error there are no more.
///
/// A name that comes twice is told twice. What comes behind the object is an error, as the last item.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    /// None behind the last.
    cursor: Option<Cursor<'a>>,
}

#[derive(Clone, Debug)]
enum Cursor<'a> {
    Json(bool, json::Scanner<'a>),
    Cbor(u64, cbor::Scanner<'a>),
    Bson(usize, bson::Scanner<'a>),
}

impl<'a> Iterator for Members<'a> {
    type Item = Result<(Cow<'a, str>, Raw<'a>), FieldError>;

    fn next(&mut self) -> Option<Self::Item> {
        let member = match self.cursor.as_mut()? {
            Cursor::Json(frame, source) => member(source, frame),
            Cursor::Cbor(frame, source) => member(source, frame),
            Cursor::Bson(frame, source) => member(source, frame),
        };
        if !matches!(member, Ok(Some(_))) {
            self.cursor = None;
        }
        member.transpose()
    }
}

fn member<'a, S: Source<'a>>(
    source: &mut S,
    frame: &mut S::Frame,
) -> Result<Option<(Cow<'a, str>, Raw<'a>)>, FieldError> {
    match source.name(frame, None)? {
        Name::Other(name) => Ok(Some((name, source.raw()?))),
        Name::End | Name::Expected => source.end().map(|()| None),
    }
}

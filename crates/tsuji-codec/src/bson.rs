//! BSON (bsonspec.org, 1.1) as it comes, and as MongoDB's drivers write it: whole numbers in 32 bits where they fit, else
//! in 64, arrays of bytes as binary.
//!
//! BSON has no unsigned numbers. What is too large for 64 bits with a sign is written, and read, as a `decimal128`, which
//! holds every digit.

use crate::error::{FieldError, shortened};
use crate::number::{Number, Wide};
use crate::plan::Key;
use crate::raw::{Format, Members, Raw};
use crate::read::{Name, Source};
use crate::write::Target;
use std::borrow::Cow;
use tsuji_msg::CdrProblem;

/// The members of a document: their names, and their values as bytes with what they are.
///
/// # Errors
///
/// Those of [`Raw::members`].
pub fn members(document: &[u8]) -> Result<Members<'_>, FieldError> {
    Raw::new(Format::Bson, document).members()
}

mod kind {
    pub(super) const DOUBLE: u8 = 0x01;
    pub(super) const TEXT: u8 = 0x02;
    pub(super) const OBJECT: u8 = 0x03;
    pub(super) const LIST: u8 = 0x04;
    pub(super) const BINARY: u8 = 0x05;
    pub(super) const UNDEFINED: u8 = 0x06;
    pub(super) const OBJECT_ID: u8 = 0x07;
    pub(super) const BOOL: u8 = 0x08;
    pub(super) const DATE: u8 = 0x09;
    pub(super) const NULL: u8 = 0x0a;
    pub(super) const PATTERN: u8 = 0x0b;
    pub(super) const POINTER: u8 = 0x0c;
    pub(super) const CODE: u8 = 0x0d;
    pub(super) const SYMBOL: u8 = 0x0e;
    pub(super) const SCOPED_CODE: u8 = 0x0f;
    pub(super) const INT32: u8 = 0x10;
    pub(super) const TIMESTAMP: u8 = 0x11;
    pub(super) const INT64: u8 = 0x12;
    pub(super) const DECIMAL: u8 = 0x13;
    pub(super) const MAX_KEY: u8 = 0x7f;
    pub(super) const MIN_KEY: u8 = 0xff;
}

/// The binary of old drivers, which has its length twice.
const OLD_BINARY: u8 = 2;
/// A document's length and its end.
const DOCUMENT_BYTES_MIN: usize = 5;
/// The upper half of a `decimal128` with the exponent 0.
const DECIMAL_WHOLE: u64 = 0x3040_0000_0000_0000;
const DECIMAL_SIGN: u64 = 1 << 63;

/// What a document is: a list, if its first member has the name 0, which no field can have.
pub(crate) fn document_kind(document: &[u8]) -> u8 {
    if document.get(5..7) == Some(b"0\0") { kind::LIST } else { kind::OBJECT }
}

/// Reads values of BSON, each of which its kind comes before.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Of the next value.
    kind: u8,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(kind: u8, bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, kind }
    }

    #[inline]
    fn array<const SIZE: usize>(&self, at: usize) -> Result<[u8; SIZE], FieldError> {
        match self.bytes.get(at..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => Ok(*bytes),
            None => Err(self.ended(at)),
        }
    }

    #[cold]
    fn ended(&self, at: usize) -> FieldError {
        FieldError::new(at, "the end", "the rest of a value")
    }

    /// A length of at least `min`.
    #[inline]
    fn length(&self, at: usize, min: usize) -> Result<usize, FieldError> {
        let length = i32::from_le_bytes(self.array(at)?);
        match usize::try_from(length) {
            Ok(length) if length >= min => Ok(length),
            _ => {
                let expected = format!("at least {min}");
                Err(FieldError::new(at, format!("a length of {length}"), expected))
            }
        }
    }

    /// Takes so many bytes.
    #[inline]
    fn take(&mut self, size: usize) -> Result<&'a [u8], FieldError> {
        let end = self.at.saturating_add(size);
        match self.bytes.get(self.at..end) {
            Some(bytes) => {
                self.at = end;
                Ok(bytes)
            }
            None => Err(self.ended(self.at)),
        }
    }

    /// Bytes of a name or the like that begins at `at`, with its terminator.
    fn name_size(&self, at: usize) -> Result<usize, FieldError> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        match rest.iter().position(|byte| *byte == 0) {
            Some(length) => Ok(length + 1),
            None => Err(self.ended(at)),
        }
    }

    /// Bytes of the next value.
    fn size(&self) -> Result<usize, FieldError> {
        Ok(match self.kind {
            kind::UNDEFINED | kind::NULL | kind::MIN_KEY | kind::MAX_KEY => 0,
            kind::BOOL => 1,
            kind::INT32 => 4,
            kind::DOUBLE | kind::DATE | kind::TIMESTAMP | kind::INT64 => 8,
            kind::OBJECT_ID => 12,
            kind::DECIMAL => 16,
            kind::TEXT | kind::CODE | kind::SYMBOL => 4 + self.length(self.at, 1)?,
            kind::POINTER => 4 + self.length(self.at, 1)? + 12,
            kind::BINARY => 4 + 1 + self.length(self.at, 0)?,
            kind::OBJECT | kind::LIST | kind::SCOPED_CODE => {
                self.length(self.at, DOCUMENT_BYTES_MIN)?
            }
            kind::PATTERN => {
                let size = self.name_size(self.at)?;
                size + self.name_size(self.at + size)?
            }
            unknown => {
                let found = format!("a value of the kind {unknown:#04x}");
                return Err(FieldError::new(self.at, found, "one of a kind that BSON has"));
            }
        })
    }

    /// Goes into a document of this kind; tells where it ends.
    #[inline]
    fn open(&mut self, kind: u8) -> Result<Option<usize>, FieldError> {
        if self.kind != kind {
            return Ok(None);
        }
        let size = self.length(self.at, DOCUMENT_BYTES_MIN)?;
        let end = self.at + size;
        if self.bytes.get(end - 1) != Some(&0) {
            let found = format!("a document of {size} bytes");
            return Err(FieldError::new(self.at, found, "one that is whole and ends with 0"));
        }
        self.at += size_of::<i32>();
        Ok(Some(end))
    }

    /// Takes the kind of the next member; false at the end of the document, which is passed.
    #[inline]
    fn next(&mut self, end: usize) -> Result<bool, FieldError> {
        let last = end - 1;
        if self.at == last {
            self.at = end;
            return Ok(false);
        }
        if self.at > last {
            return Err(FieldError::new(self.at, "a value beyond its document", "its end before"));
        }
        self.kind = self.bytes.get(self.at).copied().unwrap_or(0);
        if self.kind == 0 {
            return Err(FieldError::new(
                self.at,
                "the end of a document",
                "it where its length says",
            ));
        }
        self.at += 1;
        Ok(true)
    }

    /// The text of so many bytes.
    fn utf8(&self, bytes: &'a [u8], at: usize) -> Result<&'a str, FieldError> {
        str::from_utf8(bytes).map_err(|error| {
            let at = at + error.valid_up_to();
            FieldError::new(at, "bytes that are not UTF-8", "a text in UTF-8")
        })
    }

    /// The whole number of a `decimal128`, if it is one that has a sign and 64 bits.
    fn decimal(&self) -> Result<Option<i128>, FieldError> {
        let low = u64::from_le_bytes(self.array(self.at)?);
        let high = u64::from_le_bytes(self.array(self.at + 8)?);
        let value = i128::from(low);
        Ok(match high {
            DECIMAL_WHOLE => Some(value),
            _ if high == DECIMAL_WHOLE | DECIMAL_SIGN => Some(-value),
            _ => None,
        })
    }

    /// The next value as a number, if it is one.
    fn wide(&self) -> Result<Option<Wide>, FieldError> {
        Ok(match self.kind {
            kind::INT32 => Some(Wide::Whole(i32::from_le_bytes(self.array(self.at)?).into())),
            kind::INT64 => Some(Wide::Whole(i64::from_le_bytes(self.array(self.at)?).into())),
            kind::DOUBLE => Some(Wide::F64(f64::from_le_bytes(self.array(self.at)?))),
            kind::DECIMAL => self.decimal()?.map(Wide::Whole),
            _ => None,
        })
    }
}

impl<'a> Source<'a> for Scanner<'a> {
    /// Where the document ends.
    type Frame = usize;
    type Place = (u8, usize);

    fn place(&self) -> (u8, usize) {
        (self.kind, self.at)
    }

    fn seek(&mut self, (kind, at): (u8, usize)) {
        self.kind = kind;
        self.at = at;
    }

    fn offset(&self) -> usize {
        self.at
    }

    fn raw(&mut self) -> Result<Raw<'a>, FieldError> {
        let size = self.size()?;
        Ok(Raw::bson(self.kind, self.take(size)?))
    }

    #[inline]
    fn open_object(&mut self) -> Result<Option<usize>, FieldError> {
        self.open(kind::OBJECT)
    }

    #[inline]
    fn name(&mut self, end: &mut usize, expected: Option<&Key>) -> Result<Name<'a>, FieldError> {
        if !self.next(*end)? {
            return Ok(Name::End);
        }
        if let Some(key) = expected
            && self.bytes.get(self.at..).unwrap_or_default().starts_with(&key.bson)
        {
            self.at += key.bson.len();
            return Ok(Name::Expected);
        }
        let start = self.at;
        let name = self.take(self.name_size(start)?)?;
        let name = self.utf8(name.strip_suffix(&[0]).unwrap_or(name), start)?;
        Ok(Name::Other(Cow::Borrowed(name)))
    }

    #[inline]
    fn open_list(&mut self) -> Result<Option<usize>, FieldError> {
        self.open(kind::LIST)
    }

    /// The elements are taken in their order, whatever their names are.
    #[inline]
    fn item(&mut self, end: &mut usize) -> Result<bool, FieldError> {
        let goes_on = self.next(*end)?;
        if goes_on {
            self.at += self.name_size(self.at)?;
        }
        Ok(goes_on)
    }

    fn null(&mut self) -> Result<bool, FieldError> {
        Ok(matches!(self.kind, kind::NULL | kind::UNDEFINED))
    }

    fn boolean(&mut self) -> Result<Option<bool>, FieldError> {
        if self.kind != kind::BOOL {
            return Ok(None);
        }
        match self.take(1)? {
            [byte @ 0..=1] => Ok(Some(*byte == 1)),
            bytes => Err(FieldError::new(self.at - 1, format!("{bytes:?}"), "0 or 1")),
        }
    }

    #[inline]
    fn number<T: Number>(&mut self) -> Result<Option<T>, FieldError> {
        if self.kind == kind::NULL {
            return Ok(T::NULL);
        }
        let value = self.wide()?.and_then(|wide| match wide {
            Wide::Whole(value) => T::from_whole(value),
            Wide::F32(value) => T::from_float(value.into()),
            Wide::F64(value) => T::from_float(value),
        });
        if value.is_some() {
            self.at += self.size()?;
        }
        Ok(value)
    }

    #[inline]
    fn text(&mut self) -> Result<Option<Cow<'a, str>>, FieldError> {
        if self.kind != kind::TEXT {
            return Ok(None);
        }
        let length = self.length(self.at, 1)?;
        self.at += size_of::<i32>();
        let start = self.at;
        match self.take(length)? {
            [text @ .., 0] => self.utf8(text, start).map(|text| Some(Cow::Borrowed(text))),
            _ => Err(FieldError::new(start, "a text that does not end with 0", "one that does")),
        }
    }

    fn bytes(&mut self) -> Result<Option<Cow<'a, [u8]>>, FieldError> {
        if self.kind != kind::BINARY {
            return Ok(None);
        }
        let length = self.length(self.at, 0)?;
        let [subtype] = self.array(self.at + 4)?;
        self.at += 5;
        if subtype != OLD_BINARY {
            return self.take(length).map(|bytes| Some(Cow::Borrowed(bytes)));
        }
        let inner = self.length(self.at, 0)?;
        if length != inner + 4 {
            let found = format!("a length of {inner} in one of {length}");
            return Err(FieldError::new(self.at, found, "one of 4 less"));
        }
        self.at += 4;
        self.take(inner).map(|bytes| Some(Cow::Borrowed(bytes)))
    }

    fn describe(&mut self) -> String {
        let mut scanner = self.clone();
        match self.kind {
            kind::TEXT => match scanner.text() {
                Ok(Some(text)) => format!("the text {}", shortened(text.as_bytes())),
                _ => "a text".to_owned(),
            },
            kind::OBJECT => "an object".to_owned(),
            kind::LIST => "a list".to_owned(),
            kind::BINARY => "bytes".to_owned(),
            kind::BOOL => match scanner.boolean() {
                Ok(Some(value)) => format!("`{value}`"),
                _ => "a bool".to_owned(),
            },
            kind::NULL => "`null`".to_owned(),
            kind::UNDEFINED => "`undefined`".to_owned(),
            kind => match self.wide() {
                Ok(Some(Wide::Whole(value))) => format!("`{value}`"),
                Ok(Some(Wide::F64(value))) => format!("`{value:?}`"),
                _ => format!("a value of the kind {kind:#04x}"),
            },
        }
    }

    fn end(&mut self) -> Result<(), FieldError> {
        if self.at == self.bytes.len() {
            return Ok(());
        }
        let left = self.bytes.len().saturating_sub(self.at);
        Err(FieldError::new(self.at, format!("{left} bytes more"), "the end"))
    }
}

/// Appends values as BSON. A document holds at most 2 GiB.
#[derive(Debug)]
pub(crate) struct Writer<'o> {
    out: &'o mut Vec<u8>,
    /// Where the kind of the next value stands, before its name; nowhere for the document itself.
    kind_at: Option<usize>,
}

impl<'o> Writer<'o> {
    pub(crate) fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out, kind_at: None }
    }

    #[inline]
    fn kind(&mut self, kind: u8) {
        if let Some(at) = self.kind_at.take() {
            self.out[at] = kind;
        }
    }

    fn open(&mut self, kind: u8) -> usize {
        self.kind(kind);
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        start
    }

    fn close(&mut self, start: usize) -> Result<(), CdrProblem> {
        self.out.push(0);
        let length = length(self.out.len() - start)?;
        self.out[start..start + 4].copy_from_slice(&length);
        Ok(())
    }
}

/// A length as BSON says it.
fn length(length: usize) -> Result<[u8; 4], CdrProblem> {
    const BOUND: usize = i32::MAX as usize;
    match i32::try_from(length) {
        Ok(length) => Ok(length.to_le_bytes()),
        Err(_) => Err(CdrProblem::Bound { length, bound: BOUND }),
    }
}

impl Target for Writer<'_> {
    /// Where the document begins.
    type Frame = usize;

    fn open_object(&mut self, _: usize) -> usize {
        self.open(kind::OBJECT)
    }

    #[inline]
    fn name(&mut self, key: &Key, _: bool) {
        self.kind_at = Some(self.out.len());
        self.out.push(0);
        self.out.extend_from_slice(&key.bson);
    }

    fn close_object(&mut self, start: usize) -> Result<(), CdrProblem> {
        self.close(start)
    }

    fn open_list(&mut self, _: usize) -> usize {
        self.open(kind::LIST)
    }

    #[inline]
    fn item(&mut self, index: usize) {
        self.kind_at = Some(self.out.len());
        self.out.push(0);
        self.out.extend_from_slice(itoa::Buffer::new().format(index).as_bytes());
        self.out.push(0);
    }

    fn close_list(&mut self, start: usize) -> Result<(), CdrProblem> {
        self.close(start)
    }

    fn boolean(&mut self, value: bool) {
        self.kind(kind::BOOL);
        self.out.push(value.into());
    }

    #[inline]
    fn number<T: Number>(&mut self, value: T) {
        let value = match value.widened() {
            Wide::F32(value) => f64::from(value),
            Wide::F64(value) => value,
            Wide::Whole(value) => {
                if let Ok(value) = i32::try_from(value) {
                    self.kind(kind::INT32);
                    self.out.extend_from_slice(&value.to_le_bytes());
                } else if let Ok(value) = i64::try_from(value) {
                    self.kind(kind::INT64);
                    self.out.extend_from_slice(&value.to_le_bytes());
                } else {
                    // Only what has no sign is so large, and has 64 bits.
                    self.kind(kind::DECIMAL);
                    self.out.extend_from_slice(&(value as u64).to_le_bytes());
                    self.out.extend_from_slice(&DECIMAL_WHOLE.to_le_bytes());
                }
                return;
            }
        };
        self.kind(kind::DOUBLE);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    fn text(&mut self, text: &str) -> Result<(), CdrProblem> {
        self.kind(kind::TEXT);
        self.out.extend_from_slice(&length(text.len() + 1)?);
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(0);
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), CdrProblem> {
        self.kind(kind::BINARY);
        self.out.extend_from_slice(&length(bytes.len())?);
        self.out.push(0);
        self.out.extend_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_has_31_bits() {
        let most = i32::MAX as usize;
        assert_eq!(length(most), Ok(i32::MAX.to_le_bytes()));
        assert_eq!(length(most + 1), Err(CdrProblem::Bound { length: most + 1, bound: most }));
    }
}

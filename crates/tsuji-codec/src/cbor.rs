//! CBOR (RFC 8949) as it comes, and as rosbridge writes it: arrays of numbers as RFC 8746's typed arrays, little endian,
//! and arrays of bytes as byte strings.
//!
//! Read are also typed arrays of other numbers as far as they are in range, lists, texts and bytes without a length or
//! in parts, floats of 16 bits, and whatever has tags that mean something else.

use crate::DEPTH_MAX;
use crate::error::{FieldError, shortened};
use crate::number::{Number, Wide};
use crate::plan::Key;
use crate::raw::{Format, Members, Raw};
use crate::read::{Name, Packed, Source};
use crate::write::Target;
use std::borrow::Cow;
use tsuji_msg::CdrProblem;
use tsuji_msg::cdr::ByteOrder;

/// The members of an object: their names, and their values as bytes.
///
/// # Errors
///
/// Those of [`Raw::members`].
pub fn members(cbor: &[u8]) -> Result<Members<'_>, FieldError> {
    Raw::new(Format::Cbor, cbor).members()
}

mod major {
    pub(super) const WHOLE: u8 = 0;
    pub(super) const NEGATIVE: u8 = 1;
    pub(super) const BYTES: u8 = 2;
    pub(super) const TEXT: u8 = 3;
    pub(super) const LIST: u8 = 4;
    pub(super) const OBJECT: u8 = 5;
    pub(super) const TAG: u8 = 6;
    pub(super) const OTHER: u8 = 7;
}

const FALSE: u8 = 20;
const TRUE: u8 = 21;
const NULL: u8 = 22;
const UNDEFINED: u8 = 23;
const FLOATS: [u8; 3] = [25, 26, 27];
/// A length that comes in the end.
const OPEN: u8 = 31;
const BREAK: u8 = 0xff;
/// Elements left of what has no length.
const UNKNOWN: u64 = u64::MAX;
/// RFC 8746's typed arrays, but for floats of 128 bits and what it reserves.
const TYPED_ARRAYS: std::ops::RangeInclusive<u64> = 64..=86;
const NOT_TYPED_ARRAYS: [u64; 2] = [76, 83];
/// Two names for arrays of bytes.
const BYTE_ARRAYS: [u64; 2] = [64, 68];

/// Reads values of CBOR, one behind the other.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The beginning of a value.
#[derive(Clone, Copy)]
struct Head {
    /// The last tag before it.
    tag: Option<u64>,
    major: u8,
    info: u8,
    argument: u64,
    /// Where it ends.
    end: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The head of the next value, behind its tags.
    #[inline]
    fn head(&self) -> Result<Head, FieldError> {
        let mut head = self.head_at(self.at)?;
        while head.major == major::TAG {
            let tag = Some(head.argument);
            head = Head { tag, ..self.head_at(head.end)? };
        }
        Ok(head)
    }

    #[inline]
    fn head_at(&self, at: usize) -> Result<Head, FieldError> {
        let Some(first) = self.bytes.get(at) else { return Err(self.ended(at)) };
        let (major, info) = (first >> 5, first & 31);
        let size = match info {
            0..24 => 0,
            24..28 => 1 << (info - 24),
            OPEN if (major::BYTES..=major::OBJECT).contains(&major) => 0,
            _ => return Err(FieldError::new(at, format!("the byte {first:#04x}"), "a value")),
        };
        let end = at + 1 + size;
        let Some(bytes) = self.bytes.get(at + 1..end) else { return Err(self.ended(at)) };
        let argument = match size {
            0 => info.into(),
            _ => bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)),
        };
        Ok(Head { tag: None, major, info, argument, end })
    }

    #[cold]
    fn ended(&self, at: usize) -> FieldError {
        FieldError::new(at, "the end", "the rest of a value")
    }

    /// The bytes of a text or of bytes that have a length.
    #[inline]
    fn string_at(&self, head: Head) -> Result<(&'a [u8], usize), FieldError> {
        let length = usize::try_from(head.argument).unwrap_or(usize::MAX);
        let end = head.end.saturating_add(length);
        match self.bytes.get(head.end..end) {
            Some(bytes) => Ok((bytes, end)),
            None => Err(self.ended(head.end)),
        }
    }

    /// The bytes of a text or of bytes, which may be in parts.
    #[inline]
    fn string(&mut self, head: Head) -> Result<Cow<'a, [u8]>, FieldError> {
        if head.info != OPEN {
            let (bytes, end) = self.string_at(head)?;
            self.at = end;
            return Ok(Cow::Borrowed(bytes));
        }
        let mut all = Vec::new();
        let mut at = head.end;
        while self.bytes.get(at) != Some(&BREAK) {
            let part = self.part(head.major, at)?;
            let (bytes, end) = self.string_at(part)?;
            all.extend_from_slice(bytes);
            at = end;
        }
        self.at = at + 1;
        Ok(Cow::Owned(all))
    }

    /// The head of a part of a text or of bytes.
    fn part(&self, major: u8, at: usize) -> Result<Head, FieldError> {
        let part = self.head_at(at)?;
        if part.major != major || part.info == OPEN {
            return Err(FieldError::new(at, "something else", "a part of a text or of bytes"));
        }
        Ok(part)
    }

    /// Passes over a text or bytes.
    fn skip_string(&mut self, head: Head) -> Result<(), FieldError> {
        if head.info != OPEN {
            self.at = self.string_at(head)?.1;
            return Ok(());
        }
        self.at = head.end;
        while self.bytes.get(self.at) != Some(&BREAK) {
            let part = self.part(head.major, self.at)?;
            self.at = self.string_at(part)?.1;
        }
        self.at += 1;
        Ok(())
    }

    fn skip(&mut self) -> Result<(), FieldError> {
        // What is left of each list or object that is open.
        let mut open: Vec<u64> = Vec::new();
        loop {
            let head = self.head()?;
            let values = match head.major {
                major::BYTES | major::TEXT => {
                    self.skip_string(head)?;
                    None
                }
                major::LIST => Some(1),
                major::OBJECT => Some(2),
                _ => None,
            };
            if let Some(values) = values {
                if open.len() == DEPTH_MAX {
                    let expected = format!("at most {DEPTH_MAX} objects and lists in each other");
                    return Err(FieldError::new(self.at, "one more", expected));
                }
                open.push(if head.info == OPEN {
                    UNKNOWN
                } else {
                    head.argument.saturating_mul(values).min(UNKNOWN - 1)
                });
            }
            self.at = self.at.max(head.end);
            while let Some(left) = open.last_mut() {
                if self.has_next(left) {
                    break;
                }
                open.pop();
            }
            if open.is_empty() {
                return Ok(());
            }
        }
    }

    /// Whether a list or an object goes on; its end is passed.
    #[inline]
    fn has_next(&mut self, left: &mut u64) -> bool {
        match *left {
            0 => false,
            UNKNOWN => {
                let is_over = self.bytes.get(self.at) == Some(&BREAK);
                self.at += usize::from(is_over);
                !is_over
            }
            _ => {
                *left -= 1;
                true
            }
        }
    }

    /// Goes into a list or an object.
    #[inline]
    fn open(&mut self, major: u8) -> Result<Option<u64>, FieldError> {
        let head = self.head()?;
        if head.major != major {
            return Ok(None);
        }
        self.at = head.end;
        let count = if head.info == OPEN { UNKNOWN } else { head.argument.min(UNKNOWN - 1) };
        Ok(Some(count))
    }

    /// Passes over a value that is one of these.
    fn other(&mut self, infos: &[u8]) -> Result<Option<u8>, FieldError> {
        let head = self.head()?;
        if head.major != major::OTHER || !infos.contains(&head.info) {
            return Ok(None);
        }
        self.at = head.end;
        Ok(Some(head.info))
    }
}

/// The number in the bits of a float of 16 bits.
pub(crate) fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (fraction + 1024.0) * 2_f64.powi(exponent - 25),
    };
    if bits >> 15 == 0 { magnitude } else { -magnitude }
}

fn float(head: Head) -> f64 {
    match head.info {
        25 => half(head.argument as u16),
        26 => f32::from_bits(head.argument as u32).into(),
        _ => f64::from_bits(head.argument),
    }
}

impl<'a> Source<'a> for Scanner<'a> {
    /// Members or elements that are left, or [`UNKNOWN`].
    type Frame = u64;
    type Place = usize;

    fn place(&self) -> usize {
        self.at
    }

    fn seek(&mut self, place: usize) {
        self.at = place;
    }

    fn offset(&self) -> usize {
        self.at
    }

    fn raw(&mut self) -> Result<Raw<'a>, FieldError> {
        let start = self.at;
        self.skip()?;
        Ok(Raw::new(Format::Cbor, self.bytes.get(start..self.at).unwrap_or_default()))
    }

    #[inline]
    fn open_object(&mut self) -> Result<Option<u64>, FieldError> {
        self.open(major::OBJECT)
    }

    #[inline]
    fn name(&mut self, left: &mut u64, expected: Option<&Key>) -> Result<Name<'a>, FieldError> {
        if !self.has_next(left) {
            return Ok(Name::End);
        }
        if let Some(key) = expected
            && self.bytes.get(self.at..).unwrap_or_default().starts_with(&key.cbor)
        {
            self.at += key.cbor.len();
            return Ok(Name::Expected);
        }
        match self.text()? {
            Some(name) if expected.is_some_and(|key| key.name == name) => Ok(Name::Expected),
            Some(name) => Ok(Name::Other(name)),
            None => Err(FieldError::new(self.at, self.describe(), "a name, which is a text")),
        }
    }

    #[inline]
    fn open_list(&mut self) -> Result<Option<u64>, FieldError> {
        self.open(major::LIST)
    }

    #[inline]
    fn item(&mut self, left: &mut u64) -> Result<bool, FieldError> {
        Ok(self.has_next(left))
    }

    fn null(&mut self) -> Result<bool, FieldError> {
        Ok(self.other(&[NULL, UNDEFINED])?.is_some())
    }

    fn boolean(&mut self) -> Result<Option<bool>, FieldError> {
        Ok(self.other(&[FALSE, TRUE])?.map(|info| info == TRUE))
    }

    #[inline]
    fn number<T: Number>(&mut self) -> Result<Option<T>, FieldError> {
        let head = self.head()?;
        let value = match (head.major, head.info) {
            (major::WHOLE, _) => T::from_whole(head.argument.into()),
            (major::NEGATIVE, _) => T::from_whole(-1 - i128::from(head.argument)),
            (major::OTHER, NULL) => T::NULL,
            (major::OTHER, info) if FLOATS.contains(&info) => T::from_float(float(head)),
            _ => None,
        };
        if value.is_some() {
            self.at = head.end;
        }
        Ok(value)
    }

    #[inline]
    fn text(&mut self) -> Result<Option<Cow<'a, str>>, FieldError> {
        let head = self.head()?;
        if head.major != major::TEXT {
            return Ok(None);
        }
        let bad = |at: usize| {
            FieldError::new(head.end + at, "bytes that are not UTF-8", "a text in UTF-8")
        };
        match self.string(head)? {
            Cow::Borrowed(bytes) => match str::from_utf8(bytes) {
                Ok(text) => Ok(Some(Cow::Borrowed(text))),
                Err(error) => Err(bad(error.valid_up_to())),
            },
            Cow::Owned(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Ok(Some(Cow::Owned(text))),
                Err(error) => Err(bad(error.utf8_error().valid_up_to())),
            },
        }
    }

    fn bytes(&mut self) -> Result<Option<Cow<'a, [u8]>>, FieldError> {
        let head = self.head()?;
        let is_other = |tag: u64| TYPED_ARRAYS.contains(&tag) && !BYTE_ARRAYS.contains(&tag);
        if head.major != major::BYTES || head.tag.is_some_and(is_other) {
            return Ok(None);
        }
        self.string(head).map(Some)
    }

    fn packed(&mut self) -> Result<Option<Packed<'a>>, FieldError> {
        let head = self.head()?;
        let Some(tag) = head.tag.filter(|tag| TYPED_ARRAYS.contains(tag)) else { return Ok(None) };
        if head.major != major::BYTES || NOT_TYPED_ARRAYS.contains(&tag) {
            return Ok(None);
        }
        let tag = tag as u8;
        let size = if tag & 16 == 0 { 1 << (tag & 3) } else { 2 << (tag & 3) };
        let bytes = self.string(head)?;
        if bytes.len() % size != 0 {
            let expected = format!("a multiple of {size}, for an array with tag {tag}");
            return Err(FieldError::new(head.end, format!("{} bytes", bytes.len()), expected));
        }
        Ok(Some(Packed { tag, bytes, size }))
    }

    fn describe(&mut self) -> String {
        let Ok(head) = self.head() else { return "no value".to_owned() };
        match (head.major, head.info) {
            (major::WHOLE, _) => format!("`{}`", head.argument),
            (major::NEGATIVE, _) => format!("`{}`", -1 - i128::from(head.argument)),
            (major::BYTES, _) if head.tag.is_some() => {
                format!("bytes with tag {}", head.tag.unwrap_or(0))
            }
            (major::BYTES, _) => "bytes".to_owned(),
            (major::TEXT, _) => match self.clone().string(head) {
                Ok(text) => format!("the text {}", shortened(&text)),
                Err(_) => "a text".to_owned(),
            },
            (major::LIST, _) => "a list".to_owned(),
            (major::OBJECT, _) => "an object".to_owned(),
            (_, FALSE) => "`false`".to_owned(),
            (_, TRUE) => "`true`".to_owned(),
            (_, NULL) => "`null`".to_owned(),
            (_, UNDEFINED) => "`undefined`".to_owned(),
            (_, info) if FLOATS.contains(&info) => format!("`{:?}`", float(head)),
            _ => "a value without a meaning".to_owned(),
        }
    }

    fn end(&mut self) -> Result<(), FieldError> {
        if self.at == self.bytes.len() {
            return Ok(());
        }
        let left = self.bytes.len() - self.at;
        Err(FieldError::new(self.at, format!("{left} bytes more"), "the end"))
    }
}

/// Appends values as CBOR.
#[derive(Debug)]
pub(crate) struct Writer<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> Writer<'o> {
    pub(crate) fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out }
    }
}

/// Appends a head in the fewest bytes.
fn write_head(major: u8, argument: u64, out: &mut Vec<u8>) {
    let first = major << 5;
    let bytes = argument.to_be_bytes();
    match argument {
        0..24 => out.push(first | argument as u8),
        24..=0xff => out.extend_from_slice(&[first | 24, argument as u8]),
        0x100..=0xffff => {
            out.push(first | 25);
            out.extend_from_slice(&bytes[6..]);
        }
        0x1_0000..=0xffff_ffff => {
            out.push(first | 26);
            out.extend_from_slice(&bytes[4..]);
        }
        _ => {
            out.push(first | 27);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends a text.
pub(crate) fn write_text(text: &str, out: &mut Vec<u8>) {
    write_head(major::TEXT, text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

impl Target for Writer<'_> {
    type Frame = ();

    fn open_object(&mut self, members: usize) {
        write_head(major::OBJECT, members as u64, self.out);
    }

    #[inline]
    fn name(&mut self, key: &Key, _: bool) {
        self.out.extend_from_slice(&key.cbor);
    }

    fn close_object(&mut self, (): ()) -> Result<(), CdrProblem> {
        Ok(())
    }

    fn open_list(&mut self, count: usize) {
        write_head(major::LIST, count as u64, self.out);
    }

    fn item(&mut self, _: usize) {}

    fn close_list(&mut self, (): ()) -> Result<(), CdrProblem> {
        Ok(())
    }

    fn boolean(&mut self, value: bool) {
        self.out.push(major::OTHER << 5 | if value { TRUE } else { FALSE });
    }

    fn number<T: Number>(&mut self, value: T) {
        match value.widened() {
            // No number of ROS has more than 64 bits.
            Wide::Whole(value) if value < 0 => {
                write_head(major::NEGATIVE, (-1 - value) as u64, self.out);
            }
            Wide::Whole(value) => write_head(major::WHOLE, value as u64, self.out),
            Wide::F32(value) => {
                self.out.push(major::OTHER << 5 | 26);
                self.out.extend_from_slice(&value.to_be_bytes());
            }
            Wide::F64(value) => {
                self.out.push(major::OTHER << 5 | 27);
                self.out.extend_from_slice(&value.to_be_bytes());
            }
        }
    }

    fn text(&mut self, text: &str) -> Result<(), CdrProblem> {
        write_text(text, self.out);
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), CdrProblem> {
        write_head(major::BYTES, bytes.len() as u64, self.out);
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn numbers<T: Number>(&mut self, bytes: &[u8], order: ByteOrder) -> Result<(), CdrProblem> {
        write_head(major::TAG, T::CBOR_TAG.into(), self.out);
        write_head(major::BYTES, bytes.len() as u64, self.out);
        let start = self.out.len();
        self.out.extend_from_slice(bytes);
        if order == ByteOrder::Big {
            for number in self.out[start..].chunks_exact_mut(T::SIZE) {
                number.reverse();
            }
        }
        Ok(())
    }
}

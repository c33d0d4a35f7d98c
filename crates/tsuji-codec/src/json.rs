//! JSON as it comes: values are passed over or read where they are, and no tree is made of them.
//!
//! What RFC 8259 does not allow is refused, in what is passed over too, but for half surrogate pairs, which only
//! reading a text finds. White space may be anywhere between values. No value that is passed over may be nested deeper
//! than [`DEPTH_MAX`], and none costs more stack for being deep.

mod text;

use crate::error::{FieldError, shortened};
use crate::number::Number;
use crate::plan::Key;
use crate::raw::{Format, Members, Raw};
use crate::read::{Name, Source};
use crate::write::Target;
use crate::{DEPTH_MAX, base64};
use std::borrow::Cow;
use std::ops::Range;
use tsuji_msg::CdrProblem;

/// The members of an object: their names, and their values as text.
///
/// # Errors
///
/// Those of [`Raw::members`].
pub fn members(json: &[u8]) -> Result<Members<'_>, FieldError> {
    Raw::new(Format::Json, json).members()
}

/// Reads values of JSON, one behind the other.
///
/// ```
/// # use tsuji_codec::{FieldError, json::Scanner};
/// # fn main() -> Result<(), FieldError> {
/// let text = br#"{"a": [1, 2]} "b\n" 3"#;
/// let mut scanner = Scanner::new(text);
/// assert_eq!(scanner.skip()?, 0..13);
/// assert_eq!(scanner.string()?, "b\n");
/// assert_eq!(&text[scanner.skip()?], b"3");
/// scanner.end()
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A text that was passed over: what is between its quotes.
struct Token {
    content: Range<usize>,
    is_escaped: bool,
}

impl<'a> Scanner<'a> {
    /// Reads from the beginning.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes that were read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Passes over the next value, whatever it is, and tells where it is.
    ///
    /// # Errors
    ///
    /// A [`FieldError`] with the offset if what comes next is no value of JSON, or is nested deeper than
    /// [`DEPTH_MAX`].
    pub fn skip(&mut self) -> Result<Range<usize>, FieldError> {
        self.peek();
        let start = self.at;
        // One bit for each object or list that is open; set in an object.
        let mut objects = 0_u128;
        let mut depth = 0;
        loop {
            let opened = self.skip_one()?;
            if let Some(is_object) = opened {
                if depth == DEPTH_MAX {
                    let expected = format!("at most {DEPTH_MAX} objects and lists in each other");
                    return Err(FieldError::new(self.at, "one more", expected));
                }
                objects = objects << 1 | u128::from(is_object);
                depth += 1;
            }
            let mut is_first = opened.is_some();
            loop {
                if depth == 0 {
                    return Ok(start..self.at);
                }
                let is_object = objects & 1 == 1;
                if self.next(&mut is_first, if is_object { b'}' } else { b']' })? {
                    if is_object {
                        self.token_of_name()?;
                        self.colon()?;
                    }
                    break;
                }
                objects >>= 1;
                depth -= 1;
            }
        }
    }

    /// Reads a text.
    ///
    /// # Errors
    ///
    /// A [`FieldError`] with the offset if what comes next is no text, or one without an end, with a control
    /// character, with an escape that JSON does not have, with half a surrogate pair or with bytes that are not
    /// UTF-8.
    pub fn string(&mut self) -> Result<Cow<'a, str>, FieldError> {
        match self.text()? {
            Some(text) => Ok(text),
            None => Err(self.unfit("a text")),
        }
    }

    /// Checks that nothing but white space is left.
    ///
    /// # Errors
    ///
    /// A [`FieldError`] with the offset if anything but white space is left.
    pub fn end(&mut self) -> Result<(), FieldError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unfit("the end")),
        }
    }

    /// The next byte that is no white space.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    #[inline]
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Passes over a value, or the beginning of an object or a list; tells whether it is an object.
    fn skip_one(&mut self) -> Result<Option<bool>, FieldError> {
        match self.peek() {
            Some(opening @ (b'{' | b'[')) => {
                self.at += 1;
                return Ok(Some(opening == b'{'));
            }
            Some(b'"') => {
                let token = self.token()?;
                self.checked(&token)?;
            }
            Some(b'-') if self.word(b"-Infinity") => {}
            Some(b'-' | b'0'..=b'9') => {
                self.at = self.number_end()?;
            }
            _ if self.word(b"null") || self.word(b"true") || self.word(b"false") => {}
            _ if self.word(b"NaN") || self.word(b"Infinity") => {}
            _ => return Err(self.unfit("a value")),
        }
        Ok(None)
    }

    /// Goes to the next member or element; false at the end, which is then passed.
    #[inline]
    fn next(&mut self, is_first: &mut bool, closing: u8) -> Result<bool, FieldError> {
        let was_first = std::mem::replace(is_first, false);
        match self.peek() {
            Some(byte) if byte == closing => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') if !was_first => {
                self.at += 1;
                Ok(true)
            }
            Some(_) if was_first => Ok(true),
            _ => Err(self.unfit(&format!("`,` or `{}`", char::from(closing)))),
        }
    }

    fn colon(&mut self) -> Result<(), FieldError> {
        if self.peek() != Some(b':') {
            return Err(self.unfit("`:`"));
        }
        self.at += 1;
        Ok(())
    }

    fn token_of_name(&mut self) -> Result<Token, FieldError> {
        if self.peek() != Some(b'"') {
            return Err(self.unfit("a name in quotes"));
        }
        self.token()
    }

    /// Passes over a word and what it is, if it is next.
    #[inline]
    fn word(&mut self, word: &[u8]) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    /// Passes over a text, at whose first quote this is.
    #[inline]
    fn token(&mut self) -> Result<Token, FieldError> {
        let start = self.at + 1;
        let mut end = start;
        let mut is_escaped = false;
        loop {
            let rest = self.bytes.get(end..).unwrap_or_default();
            end += text::plain(rest);
            if self.bytes.get(end) == Some(&b'"') {
                self.at = end + 1;
                return Ok(Token { content: start..end, is_escaped });
            }
            is_escaped = true;
            end += self.escape_size(end)?;
        }
    }

    /// Bytes of what is no plain text at `at`.
    fn escape_size(&self, at: usize) -> Result<usize, FieldError> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        text::escape_size(rest).ok_or_else(|| match rest.first() {
            None => FieldError::new(at, "the end", "a text with a quote at its end"),
            Some(b'\\') => {
                let size = if rest.get(1) == Some(&b'u') { 6 } else { 2 };
                let found = shortened(&rest[..rest.len().min(size)]);
                FieldError::new(at, found, "one of JSON's escapes, such as `\\n` and `\\u000a`")
            }
            Some(control) => {
                let found = format!("the control character {control}");
                FieldError::new(at, found, "it as an escape")
            }
        })
    }

    /// The text of a token, as it is written.
    fn checked(&self, token: &Token) -> Result<&'a str, FieldError> {
        let content = self.bytes.get(token.content.clone()).unwrap_or_default();
        str::from_utf8(content).map_err(|error| {
            let at = token.content.start + error.valid_up_to();
            FieldError::new(at, "bytes that are not UTF-8", "a text in UTF-8")
        })
    }

    /// The text of a token, as it is meant.
    #[inline]
    fn meant(&self, token: &Token) -> Result<Cow<'a, str>, FieldError> {
        let text = self.checked(token)?;
        if !token.is_escaped {
            return Ok(Cow::Borrowed(text));
        }
        match text::unescape(text) {
            Ok(text) => Ok(Cow::Owned(text)),
            Err(at) => {
                let expected = "both halves of a surrogate pair";
                Err(FieldError::new(token.content.start + at, "one half", expected))
            }
        }
    }

    /// Where the whole part ends of the number that begins here, and what it is without its sign, if it has at most 19
    /// digits.
    #[inline]
    fn whole_part(&self) -> Result<(usize, Option<u64>), FieldError> {
        let first = self.at + usize::from(self.bytes.get(self.at) == Some(&b'-'));
        let mut end = first;
        let mut value = 0_u64;
        while let Some(digit @ b'0'..=b'9') = self.bytes.get(end) {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            end += 1;
        }
        if end == first || (self.bytes.get(first) == Some(&b'0') && end > first + 1) {
            return Err(self.bad_number(end));
        }
        Ok((end, (end - first <= 19).then_some(value)))
    }

    /// Where the number ends that begins here.
    fn number_end(&self) -> Result<usize, FieldError> {
        let digits = |at: usize| {
            let rest = self.bytes.get(at..).unwrap_or_default();
            match rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len()) {
                0 => Err(self.bad_number(at)),
                count => Ok(at + count),
            }
        };
        let (mut end, _) = self.whole_part()?;
        if self.bytes.get(end) == Some(&b'.') {
            end = digits(end + 1)?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(end) {
            let is_signed = matches!(self.bytes.get(end + 1), Some(b'+' | b'-'));
            end = digits(end + 1 + usize::from(is_signed))?;
        }
        Ok(end)
    }

    /// A float as Python writes it, which JSON has no word for.
    #[cold]
    fn not_finite<T: Number>(&mut self) -> Option<T> {
        let words: [(&[u8], f64); 3] =
            [(b"NaN", f64::NAN), (b"Infinity", f64::INFINITY), (b"-Infinity", f64::NEG_INFINITY)];
        let (word, value) = words.into_iter().find(|(word, _)| self.rest().starts_with(word))?;
        let value = T::from_float(value).filter(|_| T::NULL.is_some())?;
        self.at += word.len();
        Some(value)
    }

    /// A number without a fraction that ends there and has more than 19 digits.
    #[cold]
    fn long<T: Number>(&self, end: usize) -> Option<(T, usize)> {
        let text = self.bytes.get(self.at..end)?;
        match str::from_utf8(text).ok()?.parse::<i128>() {
            Ok(value) => T::from_whole(value).map(|value| (value, text.len())),
            Err(_) => T::from_decimal(text),
        }
    }

    #[cold]
    fn bad_number(&self, end: usize) -> FieldError {
        let end = (end + 1).min(self.bytes.len());
        let found = shortened(self.bytes.get(self.at..end).unwrap_or_default());
        FieldError::new(self.at, found, "a number as JSON has it, such as -1, 0.5 and 2e9")
    }

    /// The error of what comes next.
    #[cold]
    fn unfit(&mut self, expected: &str) -> FieldError {
        let found = self.describe();
        FieldError::new(self.at, found, expected)
    }
}

impl<'a> Source<'a> for Scanner<'a> {
    /// Whether nothing of it was read yet.
    type Frame = bool;
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
        let value = self.skip()?;
        Ok(Raw::new(Format::Json, self.bytes.get(value).unwrap_or_default()))
    }

    #[inline]
    fn open_object(&mut self) -> Result<Option<bool>, FieldError> {
        let is_object = self.peek() == Some(b'{');
        self.at += usize::from(is_object);
        Ok(is_object.then_some(true))
    }

    #[inline]
    fn name(
        &mut self,
        is_first: &mut bool,
        expected: Option<&Key>,
    ) -> Result<Name<'a>, FieldError> {
        // Most objects have no white space, and their fields in the order of the definition.
        if let Some(key) = expected
            && self.word(key.json(*is_first))
        {
            *is_first = false;
            return Ok(Name::Expected);
        }
        if !self.next(is_first, b'}')? {
            return Ok(Name::End);
        }
        let token = self.token_of_name()?;
        let name = self.meant(&token)?;
        self.colon()?;
        match expected {
            Some(key) if key.name == name => Ok(Name::Expected),
            _ => Ok(Name::Other(name)),
        }
    }

    #[inline]
    fn open_list(&mut self) -> Result<Option<bool>, FieldError> {
        let is_list = self.peek() == Some(b'[');
        self.at += usize::from(is_list);
        Ok(is_list.then_some(true))
    }

    #[inline]
    fn item(&mut self, is_first: &mut bool) -> Result<bool, FieldError> {
        self.next(is_first, b']')
    }

    fn null(&mut self) -> Result<bool, FieldError> {
        self.peek();
        Ok(self.word(b"null"))
    }

    fn boolean(&mut self) -> Result<Option<bool>, FieldError> {
        self.peek();
        let is_true = self.word(b"true");
        Ok((is_true || self.word(b"false")).then_some(is_true))
    }

    #[inline]
    fn number<T: Number>(&mut self) -> Result<Option<T>, FieldError> {
        match self.peek() {
            Some(b'-') if self.bytes.get(self.at + 1) == Some(&b'I') => {
                return Ok(self.not_finite());
            }
            Some(b'-' | b'0'..=b'9') => {}
            _ if T::NULL.is_some() && self.word(b"null") => return Ok(T::NULL),
            Some(b'N' | b'I') => return Ok(self.not_finite()),
            _ => return Ok(None),
        }
        let (end, whole) = self.whole_part()?;
        let is_negative = self.bytes.get(self.at) == Some(&b'-');
        let value = match (self.bytes.get(end), whole) {
            (Some(b'.'), _) if !self.bytes.get(end + 1).is_some_and(u8::is_ascii_digit) => {
                return Err(self.bad_number(end + 1));
            }
            (Some(b'.' | b'e' | b'E'), _) => T::from_decimal(self.rest()),
            // Only floats have one.
            (_, Some(0)) if is_negative => T::from_float(-0.0).map(|value| (value, end - self.at)),
            (_, Some(magnitude)) => {
                let magnitude = i128::from(magnitude);
                let value = T::from_whole(if is_negative { -magnitude } else { magnitude });
                value.map(|value| (value, end - self.at))
            }
            (_, None) => self.long(end),
        };
        Ok(value.map(|(value, size)| {
            self.at += size;
            value
        }))
    }

    #[inline]
    fn text(&mut self) -> Result<Option<Cow<'a, str>>, FieldError> {
        if self.peek() != Some(b'"') {
            return Ok(None);
        }
        let token = self.token()?;
        self.meant(&token).map(Some)
    }

    fn letters(&mut self) -> Result<Option<Cow<'a, [u8]>>, FieldError> {
        if self.peek() != Some(b'"') {
            return Ok(None);
        }
        let token = self.token()?;
        if !token.is_escaped {
            return Ok(self.bytes.get(token.content).map(Cow::Borrowed));
        }
        self.meant(&token).map(|text| Some(Cow::Owned(text.into_owned().into_bytes())))
    }

    fn describe(&mut self) -> String {
        match self.peek() {
            None => "the end".to_owned(),
            Some(b'{') => "an object".to_owned(),
            Some(b'[') => "a list".to_owned(),
            Some(b'"') => {
                let end = self.clone().token().map_or(self.bytes.len(), |token| token.content.end);
                let text = self.bytes.get(self.at + 1..end).unwrap_or_default();
                format!("the text {}", shortened(text))
            }
            Some(_) => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                let rest = self.rest();
                let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
                shortened(&rest[..length.max(1)])
            }
        }
    }

    fn end(&mut self) -> Result<(), FieldError> {
        Scanner::end(self)
    }
}

/// Appends values as JSON without white space.
#[derive(Debug)]
pub(crate) struct Writer<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> Writer<'o> {
    pub(crate) fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out }
    }
}

impl Target for Writer<'_> {
    type Frame = ();

    #[inline]
    fn open_object(&mut self, _: usize) {
        self.out.push(b'{');
    }

    #[inline]
    fn name(&mut self, key: &Key, is_first: bool) {
        self.out.extend_from_slice(key.json(is_first));
    }

    #[inline]
    fn close_object(&mut self, (): ()) -> Result<(), CdrProblem> {
        self.out.push(b'}');
        Ok(())
    }

    fn open_list(&mut self, _: usize) {
        self.out.push(b'[');
    }

    #[inline]
    fn item(&mut self, index: usize) {
        if index > 0 {
            self.out.push(b',');
        }
    }

    fn close_list(&mut self, (): ()) -> Result<(), CdrProblem> {
        self.out.push(b']');
        Ok(())
    }

    fn boolean(&mut self, value: bool) {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    #[inline]
    fn number<T: Number>(&mut self, value: T) {
        value.write_json(self.out);
    }

    #[inline]
    fn text(&mut self, text: &str) -> Result<(), CdrProblem> {
        text::write(text, self.out);
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), CdrProblem> {
        self.out.push(b'"');
        base64::encode(bytes, self.out);
        self.out.push(b'"');
        Ok(())
    }
}

//! JSON as far as an envelope needs it: where the members of an object lie, and what a scalar says.
//!
//! A value that is handed on, or that nobody knows, is passed over by its brackets and quotes alone; whoever reads it checks it.

use std::borrow::Cow;

use crate::fields::{Broken, Field, Kind, Value};

/// Whether these bytes begin as a text of JSON that is an object. No map of CBOR begins so.
pub(crate) fn begins_object(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    bytes.trim_ascii_start().first() == Some(&b'{')
}

pub(crate) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Tells `found` each known member of the object that `text` is, in order.
pub(crate) fn members(
    text: &[u8],
    nesting_max: usize,
    found: &mut impl FnMut(Field, usize, usize, Kind),
) -> Result<(), Broken> {
    // As .NET begins what it writes.
    let at = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let mut cursor = Cursor { text, at };
    cursor.blank();
    cursor.expect(b'{', "an object in braces")?;
    cursor.blank();
    if cursor.peek() == Some(b'}') {
        cursor.at += 1;
        return cursor.end();
    }
    loop {
        let start = cursor.at;
        if cursor.peek() != Some(b'"') {
            return Err(cursor.broken("a name in double quotes"));
        }
        let escaped = cursor.string()?;
        let key = &text[start + 1..cursor.at - 1];
        let field = if escaped {
            unescape(key, Lone::Refused).ok().and_then(|key| Field::of(&key))
        } else {
            Field::of(key)
        };
        cursor.blank();
        cursor.expect(b':', "a colon")?;
        cursor.blank();
        let start = cursor.at;
        let kind = cursor.value(nesting_max)?;
        if let Some(field) = field {
            found(field, start, cursor.at, kind);
        }
        cursor.blank();
        match cursor.peek() {
            Some(b',') => cursor.at += 1,
            Some(b'}') => {
                cursor.at += 1;
                return cursor.end();
            }
            _ => return Err(cursor.broken("a comma or the closing brace")),
        }
        cursor.blank();
    }
}

/// What a text or a number says, as it stands.
pub(crate) fn value(raw: &[u8], kind: Kind) -> Result<Value<'_>, &'static str> {
    const NOT_UTF8: &str = "a text in UTF-8";
    match kind {
        Kind::Text => {
            let text = std::str::from_utf8(inside(raw)).map_err(|_| NOT_UTF8)?;
            Ok(Value::Text(Cow::Borrowed(text)))
        }
        Kind::EscapedText => {
            let text = unescape(inside(raw), Lone::Refused)?;
            let text = String::from_utf8(text).map_err(|_| NOT_UTF8)?;
            Ok(Value::Text(Cow::Owned(text)))
        }
        Kind::Number => {
            let text = std::str::from_utf8(raw).map_err(|_| NOT_UTF8)?;
            // A whole number beyond 64 bits is read as JavaScript would.
            match text.parse() {
                Ok(integer) => Ok(Value::Integer(integer)),
                // It reads what Python writes for what is not finite, too.
                Err(_) => text.parse().map(Value::Float).map_err(|_| "a number"),
            }
        }
        _ => Ok(Value::Other),
    }
}

/// The bytes of a text, where halves of surrogate pairs may stand alone: JavaScript cuts between them.
pub(crate) fn text_in_pieces(raw: &[u8], kind: Kind) -> Result<Cow<'_, [u8]>, &'static str> {
    match kind {
        Kind::EscapedText => unescape(inside(raw), Lone::Kept).map(Cow::Owned),
        _ => Ok(Cow::Borrowed(inside(raw))),
    }
}

fn inside(raw: &[u8]) -> &[u8] {
    raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default()
}

pub(crate) const PLAIN: u8 = 0;
pub(crate) const QUOTE: u8 = 1;
pub(crate) const OPEN: u8 = 2;
pub(crate) const CLOSE: u8 = 3;

/// What matters outside of texts. Structure comes every eight bytes, so that looking at each byte is faster than searching.
pub(crate) const STRUCTURE: [u8; 256] = {
    let mut table = [PLAIN; 256];
    table[b'"' as usize] = QUOTE;
    table[b'{' as usize] = OPEN;
    table[b'[' as usize] = OPEN;
    table[b'}' as usize] = CLOSE;
    table[b']' as usize] = CLOSE;
    table
};

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn broken(&self, expected: &'static str) -> Broken {
        Broken { at: self.at, expected }
    }

    fn blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), Broken> {
        if self.peek() != Some(byte) {
            return Err(self.broken(expected));
        }
        self.at += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<(), Broken> {
        self.blank();
        if self.at < self.text.len() {
            return Err(self.broken("nothing after the closing brace"));
        }
        Ok(())
    }

    fn value(&mut self, nesting_max: usize) -> Result<Kind, Broken> {
        match self.peek() {
            Some(b'"') => Ok(if self.string()? { Kind::EscapedText } else { Kind::Text }),
            Some(b'{') => self.container(nesting_max).map(|()| Kind::Object),
            Some(b'[') => self.container(nesting_max).map(|()| Kind::Array),
            Some(b't') => self.word(b"true").map(|()| Kind::True),
            Some(b'f') => self.word(b"false").map(|()| Kind::False),
            Some(b'n') => self.word(b"null").map(|()| Kind::Null),
            Some(b'N') => self.word(b"NaN").map(|()| Kind::Number),
            Some(b'I') => self.word(b"Infinity").map(|()| Kind::Number),
            Some(b'-') if self.text.get(self.at + 1) == Some(&b'I') => {
                self.word(b"-Infinity").map(|()| Kind::Number)
            }
            Some(b'-' | b'0'..=b'9') => self.number().map(|()| Kind::Number),
            _ => Err(self.broken("a value")),
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Broken> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.broken("a value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), Broken> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Broken> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.broken("a digit"));
        }
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        Ok(())
    }

    /// Passes over a text, from its opening quote to behind its closing one; whether a backslash is in it.
    fn string(&mut self) -> Result<bool, Broken> {
        let mut escaped = false;
        let mut at = self.at + 1;
        loop {
            at = plain_text_end(self.text, at);
            match self.text.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    at += 2;
                }
                Some(_) => {
                    self.at = at;
                    return Err(self.broken("no control character within a text"));
                }
                None => {
                    self.at = self.text.len();
                    return Err(self.broken("the closing quote of a text"));
                }
            }
        }
        self.at = at + 1;
        Ok(escaped)
    }

    /// Passes over an object or a list; the object that it stands in is the first level.
    fn container(&mut self, nesting_max: usize) -> Result<(), Broken> {
        let mut depth = 1;
        loop {
            let Some(byte) = self.peek() else {
                return Err(self.broken("the closing bracket"));
            };
            match STRUCTURE[usize::from(byte)] {
                PLAIN => self.at += 1,
                QUOTE => drop(self.string()?),
                OPEN => {
                    depth += 1;
                    if depth > nesting_max {
                        return Err(self.broken("fewer levels of nesting"));
                    }
                    self.at += 1;
                }
                CLOSE.. => {
                    depth -= 1;
                    self.at += 1;
                    if depth == 1 {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// The first quote, backslash or control character at or after `at`, or the end.
pub(crate) fn plain_text_end(text: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    while let Some(eight) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*eight);
        let quote = zero(word ^ (ONES * b'"' as u64));
        let backslash = zero(word ^ (ONES * b'\\' as u64));
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        // A borrow may mark bytes above the first hit falsely, never below it.
        let hit = quote | backslash | control;
        if hit != 0 {
            return at + hit.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while text.get(at).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)) {
        at += 1;
    }
    at.min(text.len())
}

/// What becomes of half a surrogate pair.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lone {
    Refused,
    /// As three bytes, which are not UTF-8 until [`join_surrogates`] has found the other half.
    Kept,
}

fn unescape(text: &[u8], lone: Lone) -> Result<Vec<u8>, &'static str> {
    const EXPECTED: &str = "an escape of JSON";
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        out.extend_from_slice(&rest[..at]);
        let escape = *rest.get(at + 1).ok_or(EXPECTED)?;
        rest = &rest[at + 2..];
        match escape {
            b'"' | b'\\' | b'/' => out.push(escape),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => {
                let mut unit = hex(rest).ok_or(EXPECTED)?;
                rest = &rest[4..];
                if (0xD800..0xDC00).contains(&unit)
                    && let Some(next) = rest.strip_prefix(b"\\u")
                    && let Some(low @ 0xDC00..0xE000) = hex(next)
                {
                    rest = &next[4..];
                    unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                }
                match char::from_u32(unit) {
                    Some(it) => out.extend_from_slice(it.encode_utf8(&mut [0; 4]).as_bytes()),
                    None if lone == Lone::Kept => out.extend_from_slice(&surrogate(unit)),
                    None => return Err("both halves of a surrogate pair"),
                }
            }
            _ => return Err(EXPECTED),
        }
    }
    out.extend_from_slice(rest);
    Ok(out)
}

fn hex(text: &[u8]) -> Option<u32> {
    text.first_chunk::<4>()?
        .iter()
        .try_fold(0, |unit, &digit| Some(unit * 16 + char::from(digit).to_digit(16)?))
}

/// The three bytes that UTF-8 would have for half a pair, were it allowed.
fn surrogate(unit: u32) -> [u8; 3] {
    [0xE0 | (unit >> 12) as u8, 0x80 | (unit >> 6 & 0x3F) as u8, 0x80 | (unit & 0x3F) as u8]
}

/// Makes characters of halves that have come together.
pub(crate) fn join_surrogates(text: Vec<u8>) -> Vec<u8> {
    let half = |at: usize, second: std::ops::Range<u8>| match text.get(at..)?.first_chunk::<3>()? {
        [0xED, b, c] if second.contains(b) => Some(u32::from(b & 0x3F) << 6 | u32::from(c & 0x3F)),
        _ => None,
    };
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let pair = half(at, 0xA0..0xB0).zip(half(at + 3, 0xB0..0xC0));
        let joined = pair.and_then(|(high, low)| {
            char::from_u32(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF))
        });
        match joined {
            Some(it) => {
                out.extend_from_slice(it.encode_utf8(&mut [0; 4]).as_bytes());
                at += 6;
            }
            None => {
                out.push(text[at]);
                at += 1;
            }
        }
    }
    out
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends a text in quotes.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    write_escaped(out, text.as_bytes());
    out.push(b'"');
}

/// Appends what stands between the quotes.
pub(crate) fn write_escaped(out: &mut Vec<u8>, text: &[u8]) {
    let mut at = 0;
    loop {
        let end = plain_text_end(text, at);
        out.extend_from_slice(&text[at..end]);
        let Some(&byte) = text.get(end) else { return };
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
        at = end + 1;
    }
}

/// JSON of the same meaning without a byte above 127.
pub(crate) fn in_ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() * 2);
    for it in text.chars() {
        if it.is_ascii() {
            out.push(it);
        } else {
            for unit in it.encode_utf16(&mut [0; 2]) {
                out.push_str("\\u");
                for shift in [12, 8, 4, 0] {
                    out.push(char::from(HEX[usize::from(*unit >> shift & 15)]));
                }
            }
        }
    }
    Cow::Owned(out)
}

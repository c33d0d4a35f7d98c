//! BSON as far as an envelope needs it. What lies within a member has a stated length and is not looked into.

use std::borrow::Cow;

use crate::fields::{Broken, Field, Kind, Value};

const DOUBLE: u8 = 0x01;
const TEXT: u8 = 0x02;
const DOCUMENT: u8 = 0x03;
const ARRAY: u8 = 0x04;
const BINARY: u8 = 0x05;
const BOOL: u8 = 0x08;
const INT32: u8 = 0x10;
const INT64: u8 = 0x12;

/// The shortest document: its length and its end.
pub(crate) const DOCUMENT_BYTES_MIN: usize = 5;

/// Tells `found` each known member of the document that `bytes` is, in order.
pub(crate) fn members(
    bytes: &[u8],
    found: &mut impl FnMut(Field, usize, usize, Kind),
) -> Result<(), Broken> {
    let broken = |at, expected| Err(Broken { at, expected });
    if length(bytes, 0) != Some(bytes.len()) || bytes.len() < DOCUMENT_BYTES_MIN {
        return broken(0, "a document that is as long as it says");
    }
    let end = bytes.len() - 1;
    if bytes[end] != 0 {
        return broken(end, "the zero that ends a document");
    }
    let mut at = 4;
    while at < end {
        let kind = bytes[at];
        let key_start = at + 1;
        let Some(key_length) = bytes[key_start..end].iter().position(|&byte| byte == 0) else {
            return broken(key_start, "a name that a zero ends");
        };
        let start = key_start + key_length + 1;
        let length = value_length(&bytes[..end], start, kind);
        let Some(next) = length.and_then(|it| start.checked_add(it)).filter(|&it| it <= end) else {
            return broken(start, "a whole value of BSON");
        };
        if let Some(field) = Field::of(&bytes[key_start..start - 1]) {
            let kind = match kind {
                DOUBLE => Kind::Double,
                TEXT => Kind::Text,
                DOCUMENT => Kind::Object,
                ARRAY => Kind::Array,
                BINARY => Kind::Bytes,
                BOOL if bytes[start] == 0 => Kind::False,
                BOOL => Kind::True,
                // Undefined, which is as good as absent, and null.
                0x06 | 0x0A => Kind::Null,
                INT32 => Kind::Int32,
                INT64 => Kind::Int64,
                _ => Kind::Other,
            };
            found(field, start, next, kind);
        }
        at = next;
    }
    Ok(())
}

/// How long the value of that kind is that starts at `at`.
fn value_length(bytes: &[u8], at: usize, kind: u8) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let zero_ended =
        |from: usize| Some(from + rest.get(from..)?.iter().position(|&it| it == 0)? + 1);
    match kind {
        DOUBLE | 0x09 | 0x11 | INT64 => Some(8),
        // A text, JavaScript, a symbol.
        TEXT | 0x0D | 0x0E => {
            let length = length(bytes, at)?.checked_add(4)?;
            (length > 4 && *rest.get(length - 1)? == 0).then_some(length)
        }
        DOCUMENT | ARRAY => {
            let length = length(bytes, at)?;
            (length >= DOCUMENT_BYTES_MIN && *rest.get(length - 1)? == 0).then_some(length)
        }
        // JavaScript with its scope.
        0x0F => length(bytes, at).filter(|&it| it >= 4),
        BINARY => length(bytes, at)?.checked_add(5),
        0x06 | 0x0A | 0x7F | 0xFF => Some(0),
        0x07 => Some(12),
        BOOL => Some(1),
        // A regular expression and its options.
        0x0B => zero_ended(zero_ended(0)?),
        0x0C => length(bytes, at)?.checked_add(4 + 12),
        INT32 => Some(4),
        0x13 => Some(16),
        _ => None,
    }
}

/// The length that stands at `at`, if it is one.
pub(crate) fn length(bytes: &[u8], at: usize) -> Option<usize> {
    let raw = bytes.get(at..)?.first_chunk::<4>()?;
    usize::try_from(i32::from_le_bytes(*raw)).ok()
}

/// What a scalar says, as it stands. It was passed over before, so it is whole.
pub(crate) fn value(raw: &[u8], kind: Kind) -> Result<Value<'_>, &'static str> {
    const WHOLE: &str = "a whole value of BSON";
    match kind {
        Kind::Double => {
            raw.first_chunk().map(|it| Value::Float(f64::from_le_bytes(*it))).ok_or(WHOLE)
        }
        Kind::Int32 => {
            raw.first_chunk().map(|it| Value::Integer(i32::from_le_bytes(*it).into())).ok_or(WHOLE)
        }
        Kind::Int64 => {
            raw.first_chunk().map(|it| Value::Integer(i64::from_le_bytes(*it))).ok_or(WHOLE)
        }
        Kind::Text => {
            let content = raw.get(4..raw.len().saturating_sub(1)).ok_or(WHOLE)?;
            let text = std::str::from_utf8(content).map_err(|_| "a text in UTF-8")?;
            Ok(Value::Text(Cow::Borrowed(text)))
        }
        Kind::Bytes => raw.get(5..).map(Value::Bytes).ok_or(WHOLE),
        _ => Ok(Value::Other),
    }
}

/// The kind as BSON numbers it, of a value that is handed on.
pub(crate) fn kind_byte(kind: Kind) -> u8 {
    match kind {
        Kind::Double => DOUBLE,
        Kind::Text => TEXT,
        Kind::Array => ARRAY,
        Kind::Bytes => BINARY,
        Kind::False | Kind::True => BOOL,
        Kind::Int32 => INT32,
        Kind::Int64 => INT64,
        Kind::Object => DOCUMENT,
        // No operation takes these; whoever reads a message refuses them.
        _ => 0x0A,
    }
}

fn write_name(out: &mut Vec<u8>, kind: u8, name: &str) {
    out.push(kind);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
}

/// Begins a document; give what it returns to [`end_document`].
pub(crate) fn begin_document(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    start
}

/// Ends a document and notes its length. One of 2 GiB or more cannot be written; it is made of a message, which is smaller.
pub(crate) fn end_document(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let length = i32::try_from(out.len() - start).unwrap_or(i32::MAX);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

pub(crate) fn write_text(out: &mut Vec<u8>, name: &str, text: &str) {
    write_name(out, TEXT, name);
    let length = i32::try_from(text.len() + 1).unwrap_or(i32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// The name of a document that whoever calls this appends next.
pub(crate) fn begin_member(out: &mut Vec<u8>, name: &str) {
    write_name(out, DOCUMENT, name);
}

pub(crate) fn write_document(out: &mut Vec<u8>, name: &str, document: &[u8]) {
    write_name(out, DOCUMENT, name);
    out.extend_from_slice(document);
}

/// As short as it can be, as rosbridge's writer has it.
pub(crate) fn write_integer(out: &mut Vec<u8>, name: &str, integer: i64) {
    if let Ok(short) = i32::try_from(integer) {
        write_name(out, INT32, name);
        out.extend_from_slice(&short.to_le_bytes());
    } else {
        write_name(out, INT64, name);
        out.extend_from_slice(&integer.to_le_bytes());
    }
}

pub(crate) fn write_bool(out: &mut Vec<u8>, name: &str, value: bool) {
    write_name(out, BOOL, name);
    out.push(value.into());
}

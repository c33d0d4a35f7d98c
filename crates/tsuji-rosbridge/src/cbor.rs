//! CBOR as far as an envelope needs it, of RFC 8949; a tag says nothing here and is passed over.

use std::borrow::Cow;

use crate::fields::{Broken, Field, Kind, Value};

const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;

/// How deep a message may be whatever is set: passing over a level takes some of the stack.
const LEVELS_MAX: usize = 1000;

/// Ends what has no length.
const BREAK: u8 = 0xFF;

/// The first bytes of an item.
#[derive(Clone, Copy)]
struct Head {
    major: u8,
    info: u8,
    /// A length or a value; `None` where the item ends with a break.
    argument: Option<u64>,
    /// Behind the head.
    next: usize,
}

fn head(bytes: &[u8], at: usize) -> Result<Head, Broken> {
    let broken = |expected| Broken { at, expected };
    let first = *bytes.get(at).ok_or_else(|| broken("an item of CBOR"))?;
    let (major, info) = (first >> 5, first & 0x1F);
    let long = |length: usize| {
        let raw =
            bytes.get(at + 1..at + 1 + length).ok_or_else(|| broken("a whole item of CBOR"))?;
        let argument = raw.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
        Ok(Head { major, info, argument: Some(argument), next: at + 1 + length })
    };
    match info {
        0..24 => Ok(Head { major, info, argument: Some(info.into()), next: at + 1 }),
        24 => long(1),
        25 => long(2),
        26 => long(4),
        27 => long(8),
        31 if (BYTES..=MAP).contains(&major) => {
            Ok(Head { major, info, argument: None, next: at + 1 })
        }
        _ => Err(broken("an item of CBOR")),
    }
}

/// Tells `found` each known member of the map that `bytes` is, in order.
pub(crate) fn members(
    bytes: &[u8],
    nesting_max: usize,
    found: &mut impl FnMut(Field, usize, usize, Kind),
) -> Result<(), Broken> {
    let nesting_max = nesting_max.min(LEVELS_MAX);
    let map = head(bytes, 0)?;
    if map.major != MAP {
        return Err(Broken { at: 0, expected: "a map" });
    }
    let mut at = map.next;
    let mut left = map.argument;
    loop {
        match &mut left {
            Some(0) => break,
            Some(left) => *left -= 1,
            None if bytes.get(at) == Some(&BREAK) => {
                at += 1;
                break;
            }
            None => (),
        }
        let key = head(bytes, at)?;
        if key.major != TEXT {
            return Err(Broken { at, expected: "a name in text" });
        }
        let key_at = at;
        at = skip(bytes, at, nesting_max)?.0;
        let start = at;
        let (end, kind) = skip(bytes, at, nesting_max.saturating_sub(1))?;
        at = end;
        if let Ok(Value::Text(key)) = value(&bytes[key_at..start])
            && let Some(field) = Field::of(key.as_bytes())
        {
            found(field, start, end, kind);
        }
    }
    if at < bytes.len() {
        return Err(Broken { at, expected: "nothing after the map" });
    }
    Ok(())
}

/// The end of the item at `at`, and what it is. It calls itself once a level, of which there are at most `levels`.
fn skip(bytes: &[u8], at: usize, levels: usize) -> Result<(usize, Kind), Broken> {
    let item = head(bytes, at)?;
    if matches!(item.major, ARRAY | MAP | TAG) && levels == 0 {
        return Err(Broken { at, expected: "fewer levels of nesting" });
    }
    let whole = Broken { at, expected: "a whole item of CBOR" };
    match item.major {
        UNSIGNED | NEGATIVE => Ok((item.next, Kind::Number)),
        BYTES | TEXT => {
            let kind = if item.major == TEXT { Kind::Text } else { Kind::Bytes };
            let Some(length) = item.argument else {
                return Ok((pieces(bytes, item, |_| ())?, kind));
            };
            let end = usize::try_from(length).ok().and_then(|length| item.next.checked_add(length));
            let end = end.filter(|&end| end <= bytes.len()).ok_or(whole)?;
            Ok((end, kind))
        }
        ARRAY | MAP => {
            let (each, kind) = if item.major == MAP { (2, Kind::Object) } else { (1, Kind::Array) };
            let mut next = item.next;
            let Some(count) = item.argument else {
                while bytes.get(next) != Some(&BREAK) {
                    for _ in 0..each {
                        next = skip(bytes, next, levels - 1)?.0;
                    }
                }
                return Ok((next + 1, kind));
            };
            // However many are announced, each takes a byte, so the end of the bytes ends this.
            for _ in 0..count.saturating_mul(each) {
                next = skip(bytes, next, levels - 1)?.0;
            }
            Ok((next, kind))
        }
        TAG => skip(bytes, item.next, levels - 1),
        _ => Ok((
            item.next,
            match item.info {
                20 => Kind::False,
                21 => Kind::True,
                // What JavaScript has not defined is as good as absent.
                22 | 23 => Kind::Null,
                25..=27 => Kind::Number,
                _ => Kind::Other,
            },
        )),
    }
}

/// Tells `each` the pieces of a text or a byte string without a length; the end of it.
fn pieces(bytes: &[u8], item: Head, mut each: impl FnMut(&[u8])) -> Result<usize, Broken> {
    let mut at = item.next;
    while bytes.get(at) != Some(&BREAK) {
        let piece = head(bytes, at)?;
        let broken = Broken { at, expected: "a piece of the same kind, of a stated length" };
        let length = piece.argument.filter(|_| piece.major == item.major).ok_or(broken)?;
        let end = usize::try_from(length).ok().and_then(|length| piece.next.checked_add(length));
        let content = end.and_then(|end| bytes.get(piece.next..end)).ok_or(broken)?;
        each(content);
        at = piece.next + content.len();
    }
    Ok(at + 1)
}

/// What a scalar says, as it stands. It was passed over before, so it is whole.
pub(crate) fn value(raw: &[u8]) -> Result<Value<'_>, &'static str> {
    const NUMBER: &str = "a number";
    const NOT_UTF8: &str = "a text in UTF-8";
    let mut item = head(raw, 0).map_err(|it| it.expected)?;
    while item.major == TAG {
        item = head(raw, item.next).map_err(|it| it.expected)?;
    }
    let content = raw.get(item.next..).unwrap_or_default();
    let Some(argument) = item.argument else {
        let mut all = Vec::new();
        match item.major {
            TEXT => {
                pieces(raw, item, |piece| all.extend_from_slice(piece))
                    .map_err(|it| it.expected)?;
                let text = String::from_utf8(all).map_err(|_| NOT_UTF8)?;
                return Ok(Value::Text(Cow::Owned(text)));
            }
            _ => return Ok(Value::Other),
        }
    };
    match item.major {
        UNSIGNED => {
            Ok(i64::try_from(argument).map_or(Value::Float(argument as f64), Value::Integer))
        }
        NEGATIVE => Ok(i64::try_from(argument)
            .map_or_else(|_| Value::Float(-1.0 - argument as f64), |it| Value::Integer(-1 - it))),
        TEXT => {
            let text = std::str::from_utf8(content).map_err(|_| NOT_UTF8)?;
            Ok(Value::Text(Cow::Borrowed(text)))
        }
        BYTES => Ok(Value::Bytes(content)),
        ARRAY => Ok(Value::Array),
        MAP => Ok(Value::Object),
        _ => match (item.info, argument) {
            (25, half) => Ok(Value::Float(from_half(half as u16))),
            (26, single) => Ok(Value::Float(f32::from_bits(single as u32).into())),
            (27, double) => Ok(Value::Float(f64::from_bits(double))),
            (20, _) => Ok(Value::Bool(false)),
            (21, _) => Ok(Value::Bool(true)),
            (22 | 23, _) => Ok(Value::Null),
            _ => Err(NUMBER),
        },
    }
}

/// A float of 16 bits.
fn from_half(bits: u16) -> f64 {
    let exponent = i32::from(bits >> 10 & 0x1F);
    let fraction = f64::from(bits & 0x3FF);
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (fraction + 1024.0) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

/// Appends the head of an item, as short as it can be.
fn write_head(out: &mut Vec<u8>, major: u8, argument: u64) {
    let major = major << 5;
    match argument {
        0..24 => out.push(major | argument as u8),
        24..=0xFF => out.extend_from_slice(&[major | 24, argument as u8]),
        0x100..=0xFFFF => {
            out.push(major | 25);
            out.extend_from_slice(&(argument as u16).to_be_bytes());
        }
        0x1_0000..=0xFFFF_FFFF => {
            out.push(major | 26);
            out.extend_from_slice(&(argument as u32).to_be_bytes());
        }
        _ => {
            out.push(major | 27);
            out.extend_from_slice(&argument.to_be_bytes());
        }
    }
}

/// Appends the head of a map of so many members.
pub(crate) fn write_map(out: &mut Vec<u8>, members: u64) {
    write_head(out, MAP, members);
}

pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) {
    write_head(out, TEXT, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

pub(crate) fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_head(out, BYTES, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(crate) fn write_integer(out: &mut Vec<u8>, integer: i64) {
    match u64::try_from(integer) {
        Ok(positive) => write_head(out, UNSIGNED, positive),
        Err(_) => write_head(out, NEGATIVE, !integer as u64),
    }
}

pub(crate) fn write_bool(out: &mut Vec<u8>, value: bool) {
    out.push(if value { 0xF5 } else { 0xF4 });
}

use super::{Base, FieldType, ScalarKind, Shape};
use std::fmt;

/// The value of a constant or a default, checked against its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// Of a `bool`.
    Bool(bool),
    /// Of a whole number of any size.
    Integer(i128),
    /// Of a `float32` or `float64`.
    Float(f64),
    /// Of a `string` or `wstring`.
    Text(String),
    /// Of an array or sequence.
    List(Vec<Self>),
}

impl Literal {
    /// Bytes that the texts and lists in it take in memory.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::List(items) => {
                items.iter().map(|it| size_of::<String>().saturating_add(it.memory())).sum()
            }
            Self::Bool(_) | Self::Integer(_) | Self::Float(_) => 0,
        }
    }
}

impl fmt::Display for Literal {
    /// As in a definition.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(value) => write!(f, "\"{}\"", value.replace('"', "\\\"")),
            Self::List(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}{value}")?;
                }
                f.write_str("]")
            }
        }
    }
}

/// Why a word is no value of a type.
pub(super) struct BadLiteral {
    /// Where in the text the word starts, in bytes.
    pub(super) start: usize,
    pub(super) word: String,
    pub(super) problem: &'static str,
    pub(super) allowed: String,
}

impl Literal {
    /// Reads the value of a field type.
    pub(super) fn parse<N>(ty: &FieldType<N>, text: &str) -> Result<Self, BadLiteral> {
        match ty.shape {
            Shape::Single => Self::parse_single(&ty.base, text),
            shape => Self::parse_list(&ty.base, shape, text),
        }
    }

    /// Reads the value of one element.
    pub(super) fn parse_single<N>(base: &Base<N>, text: &str) -> Result<Self, BadLiteral> {
        let bad =
            |problem, allowed: String| BadLiteral { start: 0, word: text.into(), problem, allowed };
        match base {
            Base::Scalar(ScalarKind::Bool) => match text.to_ascii_lowercase().as_str() {
                "true" | "1" => Ok(Self::Bool(true)),
                "false" | "0" => Ok(Self::Bool(false)),
                _ => Err(bad("not a bool", "true, false, 1, 0".into())),
            },
            Base::Scalar(ScalarKind::F32 | ScalarKind::F64) => {
                parse_float(text).map(Self::Float).ok_or_else(|| {
                    bad(
                        "not a floating point number",
                        "a number with `.` before the fraction".into(),
                    )
                })
            }
            Base::Scalar(kind) => {
                let (min, max) = kind.integer_range().unwrap_or_default();
                parse_integer(text)
                    .filter(|value| (min..=max).contains(value))
                    .map(Self::Integer)
                    .ok_or_else(|| {
                        bad(
                            "not a number of this type",
                            format!("whole numbers from {min} to {max}"),
                        )
                    })
            }
            Base::String { bound } => {
                let value =
                    unquote(text).ok_or_else(|| bad("badly quoted text", QUOTING.into()))?;
                match bound {
                    Some(bound) if value.len() > *bound as usize => Err(bad(
                        "longer than the bound of its type",
                        format!("at most {bound} bytes"),
                    )),
                    _ => Ok(Self::Text(value)),
                }
            }
            Base::WString { bound } => {
                let value =
                    unquote(text).ok_or_else(|| bad("badly quoted text", QUOTING.into()))?;
                match bound {
                    Some(bound) if value.encode_utf16().count() > *bound as usize => Err(bad(
                        "longer than the bound of its type",
                        format!("at most {bound} UTF-16 units"),
                    )),
                    _ => Ok(Self::Text(value)),
                }
            }
            Base::Nested(_) => {
                Err(bad("a message can have no default value", "nothing here".into()))
            }
        }
    }

    fn parse_list<N>(base: &Base<N>, shape: Shape, text: &str) -> Result<Self, BadLiteral> {
        let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
            return Err(BadLiteral {
                start: 0,
                word: text.into(),
                problem: "not a list",
                allowed: "values between `[` and `]`, with commas between them".into(),
            });
        };
        let mut values = Vec::new();
        for (start, item) in split_items(inner) {
            let value = Self::parse_single(base, item)
                .map_err(|bad| BadLiteral { start: bad.start + start + 1, ..bad })?;
            values.push(value);
        }
        let (right, allowed) = match shape {
            Shape::Array(count) => {
                (values.len() == count as usize, format!("exactly {count} values"))
            }
            Shape::Bounded(bound) => {
                (values.len() <= bound as usize, format!("at most {bound} values"))
            }
            Shape::Single | Shape::Sequence => (true, String::new()),
        };
        if right {
            Ok(Self::List(values))
        } else {
            Err(BadLiteral {
                start: 0,
                word: text.into(),
                problem: "wrong number of values",
                allowed,
            })
        }
    }
}

const QUOTING: &str =
    "text without quotes, or between \" or ' with the same quote inside written as \\\" or \\'";

/// The items of a list with their byte offsets: commas separate, except between quotes.
fn split_items(inner: &str) -> Vec<(usize, &str)> {
    if inner.trim().is_empty() {
        return Vec::new();
    }
    let mut items = Vec::new();
    let mut start = 0;
    let mut quote = None;
    let mut escaped = false;
    let mut blank = true;
    for (index, letter) in inner.char_indices() {
        match (quote, letter) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if letter == open => quote = None,
            (None, '"' | '\'') if blank => quote = Some(letter),
            (None, ',') => {
                items.push((start, &inner[start..index]));
                start = index + 1;
                blank = true;
                continue;
            }
            _ => {}
        }
        blank &= letter.is_whitespace();
    }
    items.push((start, &inner[start..]));
    items
        .into_iter()
        .map(|(start, item)| (start + (item.len() - item.trim_start().len()), item.trim()))
        .collect()
}

/// A text without its quotes; none if a quote inside is not escaped.
fn unquote(text: &str) -> Option<String> {
    for quote in ['"', '\''] {
        let Some(inner) = text.strip_prefix(quote) else { continue };
        let inner = inner.strip_suffix(quote)?;
        let mut plain = String::with_capacity(inner.len());
        let mut letters = inner.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '\\' if letters.peek() == Some(&quote) => plain.extend(letters.next()),
                _ if letter == quote => return None,
                _ => plain.push(letter),
            }
        }
        return Some(plain);
    }
    Some(text.to_owned())
}

/// A whole number: decimal, or `0x`, `0o`, `0b`, with `_` between digits.
pub(crate) fn parse_integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0o" | "0O") => (8, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        _ => (10, digits),
    };
    if digits.starts_with(['_', '-', '+']) || digits.ends_with('_') || digits.contains("__") {
        return None;
    }
    let value = i128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    Some(if negative { -value } else { value })
}

/// A floating point number as Python reads it: also `inf`, `nan`, `1_000.5`.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    if text.contains('_') {
        let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
        let bytes = text.as_bytes();
        let between_digits = bytes.iter().enumerate().all(|(index, byte)| {
            *byte != b'_'
                || (index > 0 && digit(bytes.get(index - 1)) && digit(bytes.get(index + 1)))
        });
        return if between_digits { text.replace('_', "").parse().ok() } else { None };
    }
    text.parse().ok()
}

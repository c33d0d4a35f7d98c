use super::input::{self, Input};
use super::{DynamicMessage, List, Value, ValueError};
use crate::types::TypeDescription;
use serde_json::{Map, Number, Value as Json};
use std::sync::Arc;

/// How `uint8[]`, `byte[]` and `char[]` look in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bytes {
    /// As an array of numbers.
    #[default]
    Numbers,
    /// As a text in base64, which rosbridge sends.
    Base64,
}

/// How a message looks in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonStyle {
    /// How arrays of bytes look.
    pub bytes: Bytes,
}

impl DynamicMessage {
    /// A message from JSON.
    ///
    /// Fields that are not named keep their defaults, `null` is a NaN, and a text is taken for an array of bytes in
    /// base64 where one is wanted.
    ///
    /// # Errors
    ///
    /// A [`ValueError`] with the path of the field if an object or a list is wanted and there is another value, an
    /// object names a field that its type does not have, a value is of another kind or out of range, a text is
    /// longer than its type allows or no base64 where bytes are wanted, or a list has more or fewer elements than
    /// its type allows.
    pub fn from_json(ty: &Arc<TypeDescription>, json: &Json) -> Result<Self, ValueError> {
        input::message(ty, Input::Json(json), None)
    }

    /// The message as JSON. Numbers that JSON does not have, NaN and the infinities, become `null`.
    pub fn to_json(&self, style: JsonStyle) -> Json {
        let entries =
            self.fields().map(|(field, value)| (field.name.clone(), value.to_json(style)));
        Json::Object(entries.collect::<Map<_, _>>())
    }
}

impl Value {
    /// The value as JSON.
    pub fn to_json(&self, style: JsonStyle) -> Json {
        match self {
            Self::Bool(value) => Json::Bool(*value),
            Self::U8(value) => (*value).into(),
            Self::I8(value) => (*value).into(),
            Self::U16(value) => (*value).into(),
            Self::I16(value) => (*value).into(),
            Self::U32(value) => (*value).into(),
            Self::I32(value) => (*value).into(),
            Self::U64(value) => (*value).into(),
            Self::I64(value) => (*value).into(),
            Self::F32(value) => number((*value).into()),
            Self::F64(value) => number(*value),
            Self::Text(value) => Json::String(value.clone()),
            Self::Message(value) => value.to_json(style),
            Self::List(list) => list.to_json(style),
        }
    }
}

impl List {
    fn to_json(&self, style: JsonStyle) -> Json {
        match self {
            Self::U8(items) if style.bytes == Bytes::Base64 => Json::String(to_base64(items)),
            Self::Bool(items) => items.iter().map(|item| Json::Bool(*item)).collect(),
            Self::U8(items) => items.iter().copied().map(Json::from).collect(),
            Self::I8(items) => items.iter().copied().map(Json::from).collect(),
            Self::U16(items) => items.iter().copied().map(Json::from).collect(),
            Self::I16(items) => items.iter().copied().map(Json::from).collect(),
            Self::U32(items) => items.iter().copied().map(Json::from).collect(),
            Self::I32(items) => items.iter().copied().map(Json::from).collect(),
            Self::U64(items) => items.iter().copied().map(Json::from).collect(),
            Self::I64(items) => items.iter().copied().map(Json::from).collect(),
            Self::F32(items) => items.iter().map(|item| number((*item).into())).collect(),
            Self::F64(items) => items.iter().map(|item| number(*item)).collect(),
            Self::Text(items) => items.iter().cloned().map(Json::String).collect(),
            Self::Message(items) => items.iter().map(|item| item.to_json(style)).collect(),
        }
    }
}

fn number(value: f64) -> Json {
    Number::from_f64(value).map_or(Json::Null, Json::Number)
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn to_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let [a, b, c] =
            std::array::from_fn(|index| u32::from(chunk.get(index).copied().unwrap_or(0)));
        let bits = a << 16 | b << 8 | c;
        for place in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// Bytes from standard base64, with or without padding; none if it is something else.
pub(super) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    let padding = text.iter().rev().take(2).take_while(|letter| **letter == b'=').count();
    if padding > 0 && !text.len().is_multiple_of(4) {
        return None;
    }
    let letters = &text[..text.len() - padding];
    if letters.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(letters.len() * 3 / 4);
    for chunk in letters.chunks(4) {
        let mut bits = 0;
        for place in 0..4 {
            bits = bits << 6 | chunk.get(place).map_or(Some(0), |letter| sextet(*letter))?;
        }
        let [_, a, b, c] = u32::to_be_bytes(bits);
        bytes.extend_from_slice(&[a, b, c][..chunk.len() - 1]);
    }
    Some(bytes)
}

fn sextet(letter: u8) -> Option<u32> {
    Some(u32::from(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

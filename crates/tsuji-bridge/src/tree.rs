//! What rosapi is asked and answers: small trees of values, of which no type is known here.

use std::borrow::Cow;

use serde_json::{Map, Value};
use tsuji_codec::{Format, Raw};
use tsuji_rosbridge::Body;

/// What is asked. Of binary only the texts, since rosapi asks for nothing else.
pub(crate) fn read(body: Body<'_>) -> Result<Value, String> {
    match body {
        Body::None => Ok(Value::Null),
        Body::Json(text) => serde_json::from_slice(text).map_err(|error| error.to_string()),
        Body::Cbor(item) => texts(Raw::new(Format::Cbor, item)),
        Body::Bson { value, .. } => texts(Raw::new(Format::Bson, value)),
    }
}

/// A text that a service is asked with: the field of that name, or what stands at that place where the arguments are a list.
pub(crate) fn text_of<'a>(
    args: &'a Value,
    service: &str,
    field: &str,
    place: usize,
) -> Result<&'a str, String> {
    let listed = args.as_array().and_then(|it| it.get(place));
    match listed.unwrap_or_else(|| &args[field]) {
        Value::String(text) => Ok(text),
        other => Err(format!("{service}: {field}: found {other}; expected a text")),
    }
}

/// What is said where there is no message but a text.
pub(crate) fn text(body: Body<'_>) -> Option<String> {
    match body {
        Body::Json(text) => serde_json::from_slice(text).ok(),
        Body::Cbor(item) => Raw::new(Format::Cbor, item).text().ok().map(Cow::into_owned),
        Body::Bson { kind: STRING, value } => {
            let text = value.get(4..)?.strip_suffix(&[0])?;
            Some(String::from_utf8_lossy(text).into_owned())
        }
        Body::None | Body::Bson { .. } => None,
    }
}

/// The kind of a text in BSON.
const STRING: u8 = 2;

fn texts(object: Raw<'_>) -> Result<Value, String> {
    let mut members = Map::new();
    for member in object.members().map_err(|error| error.to_string())? {
        let (name, value) = member.map_err(|error| error.to_string())?;
        if let Ok(text) = value.text() {
            members.insert(name.into_owned(), Value::String(text.into_owned()));
        }
    }
    Ok(Value::Object(members))
}

/// An object or a list as a document of BSON. Of anything else it is an empty one.
pub(crate) fn bson(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_document(value, &mut out);
    out
}

fn write_document(value: &Value, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    match value {
        Value::Object(members) => members.iter().for_each(|(name, it)| write(name, it, out)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, it)| write(&at.to_string(), it, out));
        }
        _ => {}
    }
    out.push(0);
    // What rosapi answers is far from 2 GiB.
    let length = i32::try_from(out.len() - start).unwrap_or(i32::MAX);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

fn write(name: &str, value: &Value, out: &mut Vec<u8>) {
    let mut begin = |kind: u8| {
        out.push(kind);
        out.extend_from_slice(name.as_bytes());
        out.push(0);
    };
    match value {
        Value::Null => begin(0x0a),
        Value::Bool(value) => {
            begin(0x08);
            out.push((*value).into());
        }
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => match i32::try_from(integer) {
                Ok(short) => {
                    begin(0x10);
                    out.extend_from_slice(&short.to_le_bytes());
                }
                Err(_) => {
                    begin(0x12);
                    out.extend_from_slice(&integer.to_le_bytes());
                }
            },
            (None, float) => {
                begin(0x01);
                out.extend_from_slice(&float.unwrap_or(f64::NAN).to_le_bytes());
            }
        },
        Value::String(text) => {
            begin(0x02);
            let length = i32::try_from(text.len() + 1).unwrap_or(i32::MAX);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(text.as_bytes());
            out.push(0);
        }
        Value::Array(_) => {
            begin(0x04);
            write_document(value, out);
        }
        Value::Object(_) => {
            begin(0x03);
            write_document(value, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_is_as_the_specification_of_bson_shows() {
        // Both are the examples of bsonspec.org.
        let hello = b"\x16\0\0\0\x02hello\0\x06\0\0\0world\0\0";
        assert_eq!(bson(&json!({ "hello": "world" })), hello);
        let list = b"\x31\0\0\0\x04BSON\0\x26\0\0\0\x020\0\x08\0\0\0awesome\0\x011\0\x33\x33\x33\x33\x33\x33\x14\x40\x102\0\xc2\x07\0\0\0\0";
        assert_eq!(bson(&json!({ "BSON": ["awesome", 5.05, 1986] })), list);
        let rest = json!({ "a": null, "b": true, "c": 1_i64 << 40, "d": {} });
        let expected =
            b"\x1f\0\0\0\x0aa\0\x08b\0\x01\x12c\0\0\0\0\0\0\x01\0\0\x03d\0\x05\0\0\0\0\0";
        assert_eq!(bson(&rest), expected);
    }

    #[test]
    fn texts_are_read_of_every_form() {
        let expected = json!({ "name": "/a:b" });
        let text = br#"{"name":"/a:b"}"#;
        let cbor = b"\xa2\x64name\x64/a:b\x61n\x01";
        let document = bson(&json!({ "name": "/a:b", "n": 1 }));
        assert_eq!(read(Body::Json(text)).unwrap(), expected);
        assert_eq!(read(Body::Cbor(cbor)).unwrap(), expected);
        assert_eq!(read(Body::Bson { kind: 3, value: &document }).unwrap(), expected);
        assert_eq!(read(Body::None).unwrap(), Value::Null);
        assert!(read(Body::Json(b"{")).is_err() && read(Body::Cbor(b"\x01")).is_err());
    }
}

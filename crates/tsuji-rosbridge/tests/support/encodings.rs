//! CBOR and BSON of a tree of JSON, by the book and as plain as can be.

use serde_json::Value;

pub(crate) fn cbor(value: &Value, out: &mut Vec<u8>) {
    let head = |out: &mut Vec<u8>, major: u8, length: u64| match length {
        0..24 => out.push(major << 5 | length as u8),
        _ => {
            out.push(major << 5 | 27);
            out.extend(length.to_be_bytes());
        }
    };
    match value {
        Value::Null => out.push(0xF6),
        Value::Bool(it) => out.push(if *it { 0xF5 } else { 0xF4 }),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(it), _) => head(out, 0, it),
            (_, Some(it)) => head(out, 1, !it as u64),
            _ => {
                out.push(0xFB);
                out.extend(number.as_f64().unwrap().to_be_bytes());
            }
        },
        Value::String(text) => {
            head(out, 3, text.len() as u64);
            out.extend(text.bytes());
        }
        Value::Array(items) => {
            head(out, 4, items.len() as u64);
            items.iter().for_each(|it| cbor(it, out));
        }
        Value::Object(members) => {
            head(out, 5, members.len() as u64);
            for (key, value) in members {
                cbor(&Value::String(key.clone()), out);
                cbor(value, out);
            }
        }
    }
}

pub(crate) fn bson(value: &Value) -> Vec<u8> {
    let mut out = vec![0; 4];
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(key, it)| (key.clone(), it)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(at, it)| (at.to_string(), it)).collect()
        }
        other => panic!("{other} is no document"),
    };
    for (key, value) in members {
        let (kind, bytes) = match value {
            Value::Null => (0x0A, Vec::new()),
            Value::Bool(it) => (0x08, vec![u8::from(*it)]),
            Value::Number(number) => match (number.as_i64().map(i32::try_from), number.as_i64()) {
                (Some(Ok(short)), _) => (0x10, short.to_le_bytes().to_vec()),
                (_, Some(long)) => (0x12, long.to_le_bytes().to_vec()),
                _ => (0x01, number.as_f64().unwrap().to_le_bytes().to_vec()),
            },
            Value::String(text) => {
                let mut bytes = (text.len() as i32 + 1).to_le_bytes().to_vec();
                bytes.extend(text.bytes());
                bytes.push(0);
                (0x02, bytes)
            }
            Value::Array(_) => (0x04, bson(value)),
            Value::Object(_) => (0x03, bson(value)),
        };
        out.push(kind);
        out.extend(key.bytes());
        out.push(0);
        out.extend(bytes);
    }
    out.push(0);
    let length = (out.len() as i32).to_le_bytes();
    out[..4].copy_from_slice(&length);
    out
}

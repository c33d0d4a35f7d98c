//! Messages as Python prints them, which is how `ros2` shows what it sends with `topic pub` and
//! `service call`.

use tsuji_msg::definition::{Base, ScalarKind, Shape};
use tsuji_msg::{DynamicMessage, Field, List, Value};

/// Elements of an array that are printed before `...`.
const ELEMENTS_MAX: usize = 128;

/// `std_msgs.msg.String(data='hello')`.
pub(crate) fn repr(message: &DynamicMessage) -> String {
    let name = message.ty().name();
    let fields: Vec<String> = message
        .fields()
        .map(|(field, value)| format!("{}={}", field.name, field_repr(field, value)))
        .collect();
    format!("{}.{}.{}({})", name.package(), name.kind(), name.name(), fields.join(", "))
}

fn field_repr(field: &Field, value: &Value) -> String {
    let is_byte = matches!(field.ty.base, Base::Scalar(ScalarKind::Byte));
    match value {
        Value::List(list) => {
            let list = list_repr(list, is_byte);
            // An array of fixed length is a numpy array there, unless its elements are no numbers.
            let numbers = matches!(&field.ty.base, Base::Scalar(kind) if !matches!(kind, ScalarKind::Bool | ScalarKind::Byte));
            match field.ty.shape {
                Shape::Array(_) if numbers => format!("array({list})"),
                _ => list,
            }
        }
        value => scalar_repr(value, is_byte),
    }
}

fn list_repr(list: &List, is_byte: bool) -> String {
    let shown = list.len().min(ELEMENTS_MAX);
    let items = (0..shown).filter_map(|at| list.get(at));
    let mut items: Vec<String> = items.map(|it| scalar_repr(&it, is_byte)).collect();
    if shown < list.len() {
        items.push("...".to_owned());
    }
    format!("[{}]", items.join(", "))
}

/// A value that is no list, as Python prints it.
pub(crate) fn scalar_repr(value: &Value, is_byte: bool) -> String {
    match value {
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::U8(value) if is_byte => bytes(&[*value]),
        Value::U8(value) => value.to_string(),
        Value::I8(value) => value.to_string(),
        Value::U16(value) => value.to_string(),
        Value::I16(value) => value.to_string(),
        Value::U32(value) => value.to_string(),
        Value::I32(value) => value.to_string(),
        Value::U64(value) => value.to_string(),
        Value::I64(value) => value.to_string(),
        Value::F32(value) => float(f64::from(*value)),
        Value::F64(value) => float(*value),
        Value::Text(text) => quoted(text),
        Value::Message(message) => repr(message),
        Value::List(list) => list_repr(list, false),
    }
}

/// A number in the shortest form that reads back, as Python's `repr` chooses it.
pub(crate) fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let text = value.to_string();
    if text.contains('.') { text } else { format!("{text}.0") }
}

fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if letter == quote => out.extend(['\\', letter]),
            letter if letter.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push(quote);
    out
}

/// `b'\\x00ab'`.
pub(crate) fn bytes(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    let mut out = format!("b{quote}");
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x20..0x7f if char::from(*byte) == quote => out.extend(['\\', quote]),
            0x20..0x7f => out.push(char::from(*byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push(quote);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsuji_interfaces::Shipped;

    #[track_caller]
    fn check(ty: &str, yaml: &str, expect: &str) {
        let ty = tsuji_msg::load(ty, &Shipped).unwrap();
        assert_eq!(repr(&DynamicMessage::from_yaml(&ty, yaml).unwrap()), expect);
    }

    #[test]
    fn as_python_prints() {
        check("std_msgs/msg/String", "{data: it's}", "std_msgs.msg.String(data=\"it's\")");
        check(
            "geometry_msgs/msg/Vector3",
            "{x: 1, y: 1.0e-5, z: 1.0e+16}",
            "geometry_msgs.msg.Vector3(x=1.0, y=1e-05, z=1e+16)",
        );
        check("std_msgs/msg/Bool", "{data: true}", "std_msgs.msg.Bool(data=True)");
        check("std_msgs/msg/Byte", "{data: 7}", "std_msgs.msg.Byte(data=b'\\x07')");
        check("std_msgs/msg/Empty", "", "std_msgs.msg.Empty()");
        check(
            "std_msgs/msg/UInt8MultiArray",
            "{data: [1, 2]}",
            "std_msgs.msg.UInt8MultiArray(layout=std_msgs.msg.MultiArrayLayout(dim=[], data_offset=0), data=[1, 2])",
        );
    }
}

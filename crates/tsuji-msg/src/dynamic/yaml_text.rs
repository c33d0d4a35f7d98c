//! Messages as YAML text, the way `ros2 topic echo` prints them.
//!
//! A text with line breaks stands between double quotes here, where `ros2` breaks it over several
//! lines; both read back as the same text.

use super::{DynamicMessage, List, Value};
use crate::definition::{Base, FieldType, ScalarKind, Shape, parse_float, parse_integer};
use crate::types::TypeDescription;
use std::fmt::Write as _;
use std::sync::Arc;

/// Whether something is printed in full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// As it is.
    #[default]
    Full,
    /// As a note of its type and length.
    Summary,
}

/// What of a message is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EchoStyle {
    /// Elements of an array, and characters of a text, that are printed before `...`; all if none.
    /// `ros2` takes 128.
    pub limit: Option<usize>,
    /// Arrays and sequences; a summary is what `--no-arr` prints.
    pub arrays: Detail,
    /// Texts; a summary is what `--no-str` prints.
    pub strings: Detail,
}

impl DynamicMessage {
    /// The message as YAML, the way `ros2 topic echo` prints it, without the `---` behind it.
    pub fn to_yaml(&self, style: EchoStyle) -> String {
        let mut printer = Printer { text: String::new(), style };
        if self.ty.fields().is_empty() {
            printer.text.push_str("{}\n");
        } else {
            printer.message(self, 0, false);
        }
        printer.text
    }

    /// The same in one line, as `ros2 topic echo --flow-style` prints it.
    pub fn to_yaml_flow(&self, style: EchoStyle) -> String {
        let mut printer = Printer { text: String::new(), style };
        printer.flow_message(self);
        printer.text.push('\n');
        printer.text
    }
}

struct Printer {
    text: String,
    style: EchoStyle,
}

impl Printer {
    /// Prints the fields, each on its line; the first follows on the current line if `started`.
    fn message(&mut self, message: &DynamicMessage, indent: usize, started: bool) {
        for (position, (field, value)) in message.fields().enumerate() {
            if position > 0 || !started {
                self.indent(indent);
            }
            self.text.push_str(&field.name);
            self.text.push(':');
            self.value(&field.ty, value, indent);
        }
    }

    /// Prints what follows the `name:` of a field.
    fn value(&mut self, ty: &FieldType<Arc<TypeDescription>>, value: &Value, indent: usize) {
        match value {
            Value::Message(message) if message.ty.fields().is_empty() => {
                self.text.push_str(" {}\n")
            }
            Value::Message(message) => {
                self.text.push('\n');
                self.message(message, indent + 2, false);
            }
            Value::List(list) if self.style.arrays == Detail::Summary => {
                let note = summary(ty, list.len());
                self.scalar(&quoted(&note));
            }
            Value::List(list) if list.is_empty() => self.text.push_str(" []\n"),
            Value::List(list) => {
                self.text.push('\n');
                self.list(&ty.base, list, indent);
            }
            value => {
                let scalar = self.scalar_text(&ty.base, value);
                self.scalar(&scalar);
            }
        }
    }

    fn scalar(&mut self, text: &str) {
        self.text.push(' ');
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn list(&mut self, base: &Base<Arc<TypeDescription>>, list: &List, indent: usize) {
        let shown = self.style.limit.unwrap_or(usize::MAX).min(list.len());
        for index in 0..shown {
            self.indent(indent);
            self.text.push('-');
            match list {
                List::Message(items) if items[index].ty.fields().is_empty() => {
                    self.text.push_str(" {}\n")
                }
                List::Message(items) => {
                    self.text.push(' ');
                    self.message(&items[index], indent + 2, true);
                }
                _ => {
                    // In range: `index` is below the length.
                    let scalar = list
                        .get(index)
                        .map(|value| self.scalar_text(base, &value))
                        .unwrap_or_default();
                    self.scalar(&scalar);
                }
            }
        }
        if shown < list.len() {
            self.indent(indent);
            self.text.push_str("- '...'\n");
        }
    }

    fn flow_message(&mut self, message: &DynamicMessage) {
        self.text.push('{');
        for (position, (field, value)) in message.fields().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            // Writing to a String does not fail.
            let _ = write!(self.text, "{comma}{}: ", field.name);
            match value {
                Value::List(list) if self.style.arrays == Detail::Summary => {
                    let note = summary(&field.ty, list.len());
                    self.text.push_str(&in_flow(quoted(&note)));
                }
                value => self.flow_value(&field.ty.base, value),
            }
        }
        self.text.push('}');
    }

    fn flow_value(&mut self, base: &Base<Arc<TypeDescription>>, value: &Value) {
        match value {
            Value::Message(message) => self.flow_message(message),
            Value::List(list) => {
                self.text.push('[');
                let shown = self.style.limit.unwrap_or(usize::MAX).min(list.len());
                for (position, value) in (0..shown).filter_map(|at| list.get(at)).enumerate() {
                    self.text.push_str(if position == 0 { "" } else { ", " });
                    self.flow_value(base, &value);
                }
                if shown < list.len() {
                    self.text.push_str(if shown == 0 { "'...'" } else { ", '...'" });
                }
                self.text.push(']');
            }
            value => {
                let scalar = self.scalar_text(base, value);
                self.text.push_str(&in_flow(scalar));
            }
        }
    }

    fn indent(&mut self, indent: usize) {
        self.text.extend(std::iter::repeat_n(' ', indent));
    }

    fn scalar_text(&self, base: &Base<Arc<TypeDescription>>, value: &Value) -> String {
        match value {
            Value::Bool(value) => value.to_string(),
            // Python holds a byte as text, and prints it so.
            Value::U8(value) if matches!(base, Base::Scalar(ScalarKind::Byte)) => {
                quoted(char::from(*value).encode_utf8(&mut [0; 4]))
            }
            Value::U8(value) => value.to_string(),
            Value::I8(value) => value.to_string(),
            Value::U16(value) => value.to_string(),
            Value::I16(value) => value.to_string(),
            Value::U32(value) => value.to_string(),
            Value::I32(value) => value.to_string(),
            Value::U64(value) => value.to_string(),
            Value::I64(value) => value.to_string(),
            Value::F32(value) => float_text((*value).into()),
            Value::F64(value) => float_text(*value),
            Value::Text(value) => self.text_text(value),
            // Messages and lists are printed by the callers.
            Value::Message(_) | Value::List(_) => String::new(),
        }
    }

    fn text_text(&self, text: &str) -> String {
        if self.style.strings == Detail::Summary {
            return quoted(&format!("<string length: <{}>>", text.chars().count()));
        }
        match self.style.limit.and_then(|limit| text.char_indices().nth(limit)) {
            Some((end, _)) => quoted(&format!("{}...", &text[..end])),
            None => quoted(text),
        }
    }
}

/// What `--no-arr` prints, with the type names of IDL.
fn summary(ty: &FieldType<Arc<TypeDescription>>, length: usize) -> String {
    let name = match &ty.base {
        Base::Scalar(ScalarKind::Bool) => "boolean".to_owned(),
        Base::Scalar(ScalarKind::Byte) => "octet".to_owned(),
        Base::Scalar(ScalarKind::Char) => "uint8".to_owned(),
        Base::Scalar(ScalarKind::F32) => "float".to_owned(),
        Base::Scalar(ScalarKind::F64) => "double".to_owned(),
        Base::Scalar(kind) => kind.name().to_owned(),
        Base::String { .. } => "string".to_owned(),
        Base::WString { .. } => "wstring".to_owned(),
        Base::Nested(nested) => nested.name().to_string(),
    };
    match ty.shape {
        Shape::Array(count) => format!("<array type: {name}[{count}]>"),
        Shape::Bounded(bound) => format!("<sequence type: {name}[{bound}], length: {length}>"),
        Shape::Single | Shape::Sequence => format!("<sequence type: {name}, length: {length}>"),
    }
}

/// A number as Python and its YAML writer print it.
fn float_text(value: f64) -> String {
    if value.is_nan() {
        return ".nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf".into() } else { "-.inf".into() };
    }
    let scientific = format!("{value:e}");
    // The form of `{:e}` always has an `e` and a whole number behind it.
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..16).contains(&exponent) {
        let point = if digits.contains('.') { "" } else { ".0" };
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}{point}e{sign}{:02}", exponent.abs());
    }
    let mut text = value.to_string();
    if !text.contains('.') {
        text.push_str(".0");
    }
    text
}

/// A text as a YAML scalar: plain where that reads back as the same text, else quoted.
fn quoted(text: &str) -> String {
    let needs_escapes = text.chars().any(|letter| {
        letter.is_control()
            || matches!(letter, '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}')
    });
    if needs_escapes {
        return escaped(text);
    }
    if is_plain(text) { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}

/// A scalar as it stands inside of `{}` and `[]`, where more letters mean something.
fn in_flow(scalar: String) -> String {
    let is_quoted = scalar.starts_with(['\'', '"']);
    if is_quoted || !scalar.contains([',', '?', '[', ']', '{', '}', ':']) {
        return scalar;
    }
    format!("'{}'", scalar.replace('\'', "''"))
}

fn escaped(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{1b}' => out.push_str("\\e"),
            letter if letter.is_control() && u32::from(letter) < 0x100 => {
                // Writing to a String does not fail.
                let _ = write!(out, "\\x{:02X}", u32::from(letter));
            }
            '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(out, "\\u{:04X}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// Whether YAML reads a text without quotes as that very text.
fn is_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let indicator = "#,[]{}&*!|>'\"%@`".contains(first)
        || ("-?:".contains(first) && text[1..].chars().next().is_none_or(char::is_whitespace));
    let inside = text.contains(": ") || text.ends_with(':') || text.contains(" #");
    let edges = text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace);
    let document = text.starts_with("---") || text.starts_with("...");
    !(indicator || inside || edges || document || means_something(text))
}

/// Whether YAML 1.1 or 1.2 reads the word as something else than text.
fn means_something(text: &str) -> bool {
    let word = matches!(
        text.to_ascii_lowercase().as_str(),
        "~" | "null"
            | "true"
            | "false"
            | "yes"
            | "no"
            | "on"
            | "off"
            | "="
            | "<<"
            | ".nan"
            | ".inf"
            | "nan"
            | "inf"
    );
    if word {
        return true;
    }
    let numberlike =
        text.starts_with(|letter: char| letter.is_ascii_digit() || "+-.".contains(letter));
    if !numberlike {
        return false;
    }
    let stripped = text.replace('_', "");
    let unsigned = stripped.trim_start_matches(['+', '-']);
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parse_float(&stripped).is_some()
        || parse_integer(&stripped).is_some()
        || matches!(unsigned, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN")
        // Numbers to the base of 60 and dates.
        || unsigned.split(':').count() > 1 && unsigned.split([':', '.']).all(digits)
        || looks_like_date(text)
}

fn looks_like_date(text: &str) -> bool {
    let head: Vec<&str> = text.splitn(3, '-').collect();
    matches!(*head.as_slice(), [year, month, rest] if year.len() == 4
        && year.bytes().all(|byte| byte.is_ascii_digit())
        && matches!(month.len(), 1 | 2)
        && month.bytes().all(|byte| byte.is_ascii_digit())
        && rest.starts_with(|letter: char| letter.is_ascii_digit()))
}

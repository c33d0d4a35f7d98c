//! Messages as YAML text, the way `ros2 topic echo` prints them.
//!
//! A text with line breaks stands between double quotes here, where `ros2` breaks it over several
//! lines; both read back as the same text.

use super::{DynamicMessage, List, Value};
use crate::definition::{Base, FieldType, ScalarKind, Shape};
use crate::types::TypeDescription;
use crate::yaml::{float_text, in_flow, quoted};
use std::borrow::Cow;
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

impl EchoStyle {
    /// What is printed of a text: all, its beginning, or a note of its length.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.strings == Detail::Summary {
            return format!("<string length: <{}>>", text.chars().count()).into();
        }
        match self.limit.and_then(|limit| text.char_indices().nth(limit)) {
            Some((end, _)) => format!("{}...", &text[..end]).into(),
            None => text.into(),
        }
    }
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
                let note = array_summary(ty, list.len());
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
                    let note = array_summary(&field.ty, list.len());
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
            Value::Text(value) => quoted(&self.style.text(value)),
            // Messages and lists are printed by the callers.
            Value::Message(_) | Value::List(_) => String::new(),
        }
    }
}

/// What `--no-arr` prints of an array with `length` elements, with the type names of IDL.
pub fn array_summary(ty: &FieldType<Arc<TypeDescription>>, length: usize) -> String {
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

//! Random messages of any type, and a package of definitions with every shape of field.

use std::collections::HashMap;
use std::sync::Arc;
use tsuji_msg::definition::{Base, FieldType, ScalarKind, Shape};
use tsuji_msg::{DynamicMessage, List, TypeDescription, Value};

/// SplitMix64: enough randomness for tests, from a seed that a failing test prints.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// A message with random values; sequences and texts are short, deeper ones shorter.
    pub(crate) fn message(&mut self, ty: &Arc<TypeDescription>) -> DynamicMessage {
        self.nested(ty, 5)
    }

    fn nested(&mut self, ty: &Arc<TypeDescription>, longest: usize) -> DynamicMessage {
        let mut message = DynamicMessage::new(ty.clone());
        for field in ty.fields() {
            let value = self.field(&field.ty, longest);
            message.set(&field.name, value).expect("a value made for this field");
        }
        message
    }

    fn field(&mut self, ty: &FieldType<Arc<TypeDescription>>, longest: usize) -> Value {
        let count = match ty.shape {
            Shape::Single => return self.single(&ty.base, longest),
            Shape::Array(count) => count as usize,
            Shape::Sequence => self.below(longest + 1),
            Shape::Bounded(bound) => self.below((bound as usize).min(longest) + 1),
        };
        let mut list = List::empty(&ty.base);
        for _ in 0..count {
            let value = self.single(&ty.base, longest / 2);
            list.push(value).expect("a value made for this list");
        }
        Value::List(list)
    }

    fn single(&mut self, base: &Base<Arc<TypeDescription>>, longest: usize) -> Value {
        let bits = if self.below(4) == 0 { self.next() % 3 } else { self.next() };
        match base {
            Base::Scalar(ScalarKind::Bool) => Value::Bool(bits & 1 == 1),
            Base::Scalar(ScalarKind::Byte | ScalarKind::Char | ScalarKind::U8) => {
                Value::U8(bits as u8)
            }
            Base::Scalar(ScalarKind::I8) => Value::I8(bits as i8),
            Base::Scalar(ScalarKind::U16) => Value::U16(bits as u16),
            Base::Scalar(ScalarKind::I16) => Value::I16(bits as i16),
            Base::Scalar(ScalarKind::U32) => Value::U32(bits as u32),
            Base::Scalar(ScalarKind::I32) => Value::I32(bits as i32),
            Base::Scalar(ScalarKind::U64) => Value::U64(bits),
            Base::Scalar(ScalarKind::I64) => Value::I64(bits as i64),
            Base::Scalar(ScalarKind::F32) => {
                // NaN is equal to nothing, so comparing messages would fail on it.
                let value = f32::from_bits(bits as u32);
                Value::F32(if value.is_nan() { 0.5 } else { value })
            }
            Base::Scalar(ScalarKind::F64) => {
                let value = f64::from_bits(bits);
                Value::F64(if value.is_nan() { -0.5 } else { value })
            }
            Base::String { bound } | Base::WString { bound } => {
                Value::Text(self.text(bound.map(|b| b as usize)))
            }
            Base::Nested(nested) => Value::Message(self.nested(nested, longest)),
        }
    }

    fn text(&mut self, bound: Option<usize>) -> String {
        const WORDS: [&str; 14] = [
            "", "a", "hello", "ä", "日本", "🚁", "null", "1.5", "- x", "a: b", "\n", "'", "\"",
            "#c",
        ];
        let mut text = String::new();
        for _ in 0..self.below(4) {
            let word = WORDS[self.below(WORDS.len())];
            // The bound of a string counts bytes, of a wstring UTF-16 units; bytes are never fewer.
            if bound.is_none_or(|bound| text.len() + word.len() <= bound) {
                text.push_str(word);
            }
        }
        text
    }
}

/// Definitions with every shape of field, by name.
#[allow(dead_code, reason = "one of the tests that share this file does not need it")]
pub(crate) fn shapes() -> HashMap<String, String> {
    SHAPES.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

pub(crate) const SHAPES: &[(&str, &str)] = &[
    ("shapes/msg/Empty", "# Holds nothing.\n"),
    (
        "shapes/msg/Scalars",
        "bool a_bool true\nbyte a_byte 7\nchar a_char 99\nint8 i8 -8\nuint8 u8 8\nint16 i16 -16\nuint16 u16 16\n\
         int32 i32 -32\nuint32 u32 32\nint64 i64 -64\nuint64 u64 18446744073709551615\nfloat32 f32 0.5\nfloat64 f64 1e300\n",
    ),
    (
        "shapes/msg/Texts",
        "string plain \"hello # world\"\nstring<=10 short 'it\\'s'\nwstring wide \"日本\"\nwstring<=4 wide_short\n\
         string[] many ['a', \"b, c\"]\nstring<=3[<=2] bounded\nstring[2] pair\nwstring[] wides\nstring<=5[2] short_pair\n",
    ),
    (
        "shapes/msg/Arrays",
        "bool[3] bools [true, false, 1]\nbyte[] bytes\nuint8[] data [1, 2, 0xff]\nint8[<=4] small\nuint16[5] five\n\
         float32[] floats\nfloat64[40] matrix\nuint64[<=3] ids\nchar[2] letters\nbool[] flags\nuint8[2000] page\n\
         int32[300] ints\n",
    ),
    (
        "shapes/msg/Nested",
        "Scalars scalars\nEmpty empty\nEmpty[] empties\nScalars[2] two\nTexts[] texts\nArrays[<=2] arrays\n\
         Point[] points\nPoint[3] triangle\nPoint point\nEmpty[40] forty\n",
    ),
    ("shapes/msg/Point", "uint8 tag\nfloat64 x\nfloat32 y\n"),
    (
        "shapes/msg/Keywords",
        "# Names that Rust keeps for itself.\nuint8 TYPE=1\nstring NAME='x'\nfloat32 FAR=inf\nuint8 type\nbool match\n\
         string self\nint32 crate 5\nfloat64 async\nuint8[] fn\n",
    ),
    ("shapes/msg/Blob", "Point origin\nuint16[] samples\nstring unit\nuint8 after\n"),
    ("shapes/srv/Ask", "string question\nbool loud true\n---\nPoint[] answers\n"),
    ("shapes/srv/Nothing", "---\n"),
];

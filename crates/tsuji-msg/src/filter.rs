//! Content filters: which samples of a topic somebody wants, as an expression over the fields of its type.
//!
//! The language is the filter expression of DDS (OMG DDS 1.4, annex B), which is like the `WHERE` of SQL.

mod compile;
mod error;
mod parse;
mod pattern;
mod plan;
mod token;
mod value;

pub use error::FilterError;

use crate::cdr::{ByteOrder, CdrError, Reader, Writer};
use crate::types::TypeDescription;
use crate::wire::Wire;
use compile::Test;
use parse::Condition;
use plan::{Prefix, Until, Visit};
use std::fmt;
use std::sync::Arc;
use value::Found;

/// Most bytes of an expression, and of a parameter.
pub const EXPRESSION_BYTES_MAX: usize = 16 << 10;

/// Most parameters: `%0` to `%99`.
pub const PARAMETERS_MAX: usize = 100;

/// Most parentheses and `NOT` inside each other.
pub const NESTING_MAX: usize = 64;

/// A filter expression that was read, and is not yet about a type.
///
/// # Language
///
/// | part | what is read |
/// |---|---|
/// | field | `temperature`, `header.stamp.sec`, `poses[3].position.x` |
/// | constant | `-5`, `0x1f`, `2.5e3`, `TRUE`, `FALSE`, `'a text'`; `''` in a text is one quote, and it may begin with a backquote |
/// | parameter | `%0` to `%99`: a constant that is given beside the expression |
/// | comparison | `=`, `<>` or `!=`, `<`, `<=`, `>`, `>=` between a field and a field, a constant or a parameter |
/// | range | `x BETWEEN 1 AND %0`, `x NOT BETWEEN 1 AND 5`; both ends belong to it |
/// | pattern | `name LIKE 'wheel_%'`: `%` or `*` is any text, `_` or `?` one character; `name MATCH '[ab]+'`: a regular expression, in which `\w` and the like are of ASCII. Both must fit the whole text |
/// | condition | `NOT` binds closest, then `AND`, then `OR`; parentheses as usual |
///
/// Words of the language are read in capitals or small letters. An expression that is empty lets everything pass.
///
/// # Meaning
///
/// - Whole numbers are compared exactly, of whatever size and sign. As soon as one side is a floating-point number both
///   are `float64`; a constant beside a `float32` is rounded to that first, so that `x = 0.1` can be true.
/// - NaN is not equal to anything and neither less nor greater: `x <> 1` is true of it, each other comparison false.
/// - A `bool` is 0 or 1, and `TRUE` and `FALSE` are these. A `char` is a number, or a text of one character.
/// - Texts are compared byte by byte, and capitals count. What in a text is not UTF-8 is U+FFFD.
/// - What is said of an element that a sequence does not have is neither true nor false, and so is its `NOT`. Such a
///   sample passes only if the rest of the expression lets it pass: `a[9] = 1 OR b = 2` where `b` is 2.
///
/// # Limits
///
/// [`EXPRESSION_BYTES_MAX`], [`PARAMETERS_MAX`] and [`NESTING_MAX`]; beyond each is an error. So are more than 16 `MATCH`, a
/// regular expression that takes more than 256 KiB of memory, and a pattern of `LIKE` of more than 1 KiB.
///
/// ```
/// use std::collections::HashMap;
/// use tsuji_msg::{DynamicMessage, Expression, TypeSet};
///
/// let ty = TypeSet::new(HashMap::new()).load_text("my_msgs/msg/Heat", "string room\nfloat64 celsius\n")?;
/// let filter = Expression::parse("room LIKE 'lab%' AND celsius > %0")?.compile(&ty, &["30"])?;
///
/// let hot = DynamicMessage::from_yaml(&ty, "{room: lab 3, celsius: 31.5}")?.encode()?;
/// assert!(filter.matches(&hot)?);
///
/// let error = Expression::parse("celcius > 30")?.compile(&ty, &[] as &[&str]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "column 1: found no field `celcius` in my_msgs/msg/Heat; expected one of room, celsius (did you mean `celsius`?)"
/// );
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    /// None where everything passes.
    condition: Option<Condition>,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// A [`FilterError`] that says in which column what was found and what is allowed there.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Ok(Self { condition: parse::condition(text)?, text: text.to_owned() })
    }

    /// Whether it lets everything pass because it says nothing.
    pub fn is_empty(&self) -> bool {
        self.condition.is_none()
    }

    /// The text that was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Compiles the expression for the samples of a type.
    ///
    /// A parameter is written as a constant is, with quotes around a text. One that the expression does not name is not
    /// read.
    ///
    /// # Errors
    ///
    /// A [`FilterError`] if the type has no such field or index, if a field is compared to what is not of its kind, if
    /// a parameter is missing or is no constant, or if there are more than [`PARAMETERS_MAX`].
    pub fn compile<T: AsRef<str>>(
        &self,
        ty: &Arc<TypeDescription>,
        parameters: &[T],
    ) -> Result<Filter, FilterError> {
        let parameters: Vec<&str> = parameters.iter().map(T::as_ref).collect();
        let (test, slots, visit) = compile::compile(self.condition.as_ref(), ty, &parameters)?;
        Ok(Filter { ty: Arc::clone(ty), test, slots, visit })
    }
}

/// An [`Expression`] that was compiled for a type, and tells which of its samples pass.
#[derive(Clone)]
pub struct Filter {
    ty: Arc<TypeDescription>,
    test: Option<Test>,
    /// How many fields are looked at.
    slots: usize,
    visit: Visit,
}

impl Filter {
    /// The type whose samples it is for.
    pub fn ty(&self) -> &Arc<TypeDescription> {
        &self.ty
    }

    /// Whether a sample passes: its bytes in CDR, of either byte order, with their header.
    ///
    /// Only what stands before the last field that the expression names is read, and arrays are passed over.
    ///
    /// # Errors
    ///
    /// A [`CdrError`] if the bytes are no sample of the type, as far as they were looked at.
    pub fn matches(&self, sample: &[u8]) -> Result<bool, CdrError> {
        let Some(test) = &self.test else { return Ok(true) };
        let mut found = vec![Found::Absent; self.slots];
        self.visit.message(&self.ty, &mut Reader::new(sample)?, &mut found, Until::Last)?;
        Ok(test.holds(&found) == Some(true))
    }

    /// Whether a message of Rust passes, which is serialised as far as the expression looks.
    ///
    /// # Errors
    ///
    /// A [`CdrError`] if the message breaks a limit of its type, or is of another.
    pub fn matches_message<M: Wire>(&self, message: &M) -> Result<bool, CdrError> {
        if self.test.is_none() {
            return Ok(true);
        }
        let mut prefix = Prefix::new(self.visit.fields());
        let mut writer = Writer::new(&mut prefix, ByteOrder::Little)?;
        match message.write(&mut writer) {
            Err(error) if !prefix.is_whole() => Err(error),
            _ => self.matches(prefix.bytes()),
        }
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter").field("ty", self.ty.name()).finish_non_exhaustive()
    }
}

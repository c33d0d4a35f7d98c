//! From conditions to what is asked of the samples of a type.

use super::PARAMETERS_MAX;
use super::error::{FilterError, nearest, shown};
use super::parse::{self, Comparison, Condition, Operand, Pattern, What};
use super::pattern::{Fit, REGEXES_MAX};
use super::plan::{Visit, Way};
use super::token::Constant;
use super::value::{Compared, Found};
use crate::definition::{Base, FieldType, ScalarKind, Shape};
use crate::path::{Path, Step};
use crate::types::TypeDescription;
use std::sync::Arc;

/// What is asked of the values that were found in a sample. Values are named by their slots.
#[derive(Clone, Debug)]
pub(super) enum Test {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Compare(usize, Comparison, Found<'static>),
    CompareSlots(usize, Comparison, usize),
    Fits(usize, Fit),
}

impl Test {
    /// Whether it is true; none where a value that it asks for is not there.
    pub(super) fn holds(&self, found: &[Found<'_>]) -> Option<bool> {
        let slot = |slot: usize| found.get(slot).unwrap_or(&Found::Absent);
        let compared = |by: Comparison, compared| match compared {
            Compared::Unknown => None,
            Compared::Ordered(ordering) => Some(by.holds(ordering)),
        };
        match self {
            Self::All(tests) => unless(tests, found, false),
            Self::Any(tests) => unless(tests, found, true),
            Self::Not(test) => test.holds(found).map(|holds| !holds),
            Self::Compare(left, by, right) => compared(*by, slot(*left).compare(right)),
            Self::CompareSlots(left, by, right) => compared(*by, slot(*left).compare(slot(*right))),
            Self::Fits(left, fit) => match slot(*left) {
                Found::Text(text) => Some(fit.is_fit(text)),
                _ => None,
            },
        }
    }
}

/// `decisive` as soon as one test says so; else the opposite, unless one of them does not know.
fn unless(tests: &[Test], found: &[Found<'_>], decisive: bool) -> Option<bool> {
    let mut result = Some(!decisive);
    for test in tests {
        match test.holds(found) {
            Some(holds) if holds == decisive => return Some(decisive),
            Some(_) => (),
            None => result = None,
        }
    }
    result
}

/// What is asked of a sample, of how many values, and where they are.
pub(super) fn compile(
    condition: Option<&Condition>,
    ty: &Arc<TypeDescription>,
    parameters: &[&str],
) -> Result<(Option<Test>, usize, Visit), FilterError> {
    if PARAMETERS_MAX < parameters.len() {
        let found = format!("{} parameters", parameters.len());
        return Err(FilterError::new(1, found, format!("at most {PARAMETERS_MAX}")));
    }
    let mut compiler = Compiler { ty, parameters, slots: 0, regexes: 0, visit: Visit::default() };
    let test = condition.map(|condition| compiler.test(condition)).transpose()?;
    Ok((test, compiler.slots, compiler.visit))
}

struct Compiler<'a> {
    ty: &'a Arc<TypeDescription>,
    parameters: &'a [&'a str],
    slots: usize,
    /// How many were met.
    regexes: usize,
    visit: Visit,
}

/// What a field holds, as far as comparing goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    Char,
    Integer,
    Float32,
    Float64,
    Text,
}

impl Kind {
    fn is_float(self) -> bool {
        matches!(self, Self::Float32 | Self::Float64)
    }

    fn goes_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Text, other) | (other, Self::Text) => other == Self::Text,
            (Self::Bool, other) | (other, Self::Bool) => !other.is_float(),
            _ => true,
        }
    }

    /// What it may be compared to.
    fn allowed(self) -> &'static str {
        match self {
            Self::Bool => "TRUE, FALSE, 0 or 1",
            Self::Char => "a whole number or a text of one character such as 'a'",
            Self::Integer => "a number",
            Self::Float32 | Self::Float64 => "a number",
            Self::Text => "a text in quotes such as 'left'",
        }
    }
}

/// A field that an expression names.
struct Place {
    slot: usize,
    kind: Kind,
    /// As errors show it, with its type.
    shown: String,
}

impl Compiler<'_> {
    fn test(&mut self, condition: &Condition) -> Result<Test, FilterError> {
        Ok(match condition {
            Condition::All(conditions) => Test::All(self.tests(conditions)?),
            Condition::Any(conditions) => Test::Any(self.tests(conditions)?),
            Condition::Not(condition) => Test::Not(Box::new(self.test(condition)?)),
            Condition::Compare { left, by, right } => self.comparison(left, *by, right)?,
            Condition::Between { left, low, high } => {
                let place = self.field_of(left, "the field of a range")?;
                let low = self.constant_for(&place, low)?;
                let high = self.constant_for(&place, high)?;
                Test::All(vec![
                    Test::Compare(place.slot, Comparison::GreaterOrEqual, low),
                    Test::Compare(place.slot, Comparison::LessOrEqual, high),
                ])
            }
            Condition::Fits { left, by, right } => self.fit(left, *by, right)?,
        })
    }

    fn tests(&mut self, conditions: &[Condition]) -> Result<Vec<Test>, FilterError> {
        conditions.iter().map(|condition| self.test(condition)).collect()
    }

    fn comparison(
        &mut self,
        left: &Operand,
        by: Comparison,
        right: &Operand,
    ) -> Result<Test, FilterError> {
        match (&left.what, &right.what) {
            (What::Field, What::Field) => {
                let (one, other) = (self.place(left)?, self.place(right)?);
                if !one.kind.goes_with(other.kind) {
                    let expected = format!("a field to compare to {}", one.shown);
                    return Err(FilterError::new(right.column, other.shown, expected));
                }
                Ok(Test::CompareSlots(one.slot, by, other.slot))
            }
            (What::Field, _) => {
                let place = self.place(left)?;
                let constant = self.constant_for(&place, right)?;
                Ok(Test::Compare(place.slot, by, constant))
            }
            (_, What::Field) => {
                let place = self.place(right)?;
                let constant = self.constant_for(&place, left)?;
                Ok(Test::Compare(place.slot, by.turned(), constant))
            }
            _ => {
                let found = shown(&right.written);
                let expected = "a field, since the other side is a constant";
                Err(FilterError::new(right.column, found, expected))
            }
        }
    }

    fn fit(&mut self, left: &Operand, by: Pattern, right: &Operand) -> Result<Test, FilterError> {
        let place = self.field_of(left, "a field with a text")?;
        if place.kind != Kind::Text {
            let expected = "a field with a text before LIKE and MATCH";
            return Err(FilterError::new(left.column, place.shown, expected));
        }
        let constant = self.constant_of(right)?;
        let Constant::Text(pattern) = constant else {
            return Err(self.at(right, "a pattern in quotes such as 'wheel_%'"));
        };
        let fit = match by {
            Pattern::Like => {
                Fit::like(&pattern).map_err(|why| self.at(right, &format!("a pattern {why}")))?
            }
            Pattern::Match => {
                self.regexes += 1;
                if REGEXES_MAX < self.regexes {
                    let found = format!("MATCH for the {}th time", self.regexes);
                    let expected = format!("it at most {REGEXES_MAX} times");
                    return Err(FilterError::new(right.column, found, expected));
                }
                let not_one = |why| self.at(right, &format!("a regular expression ({why})"));
                Fit::regex(&pattern).map_err(not_one)?
            }
        };
        Ok(Test::Fits(place.slot, fit))
    }

    /// The field that an operand must be.
    fn field_of(&mut self, operand: &Operand, what: &str) -> Result<Place, FilterError> {
        if operand.what != What::Field {
            return Err(FilterError::new(operand.column, shown(&operand.written), what));
        }
        self.place(operand)
    }

    /// The field that is named, found in the type.
    fn place(&mut self, operand: &Operand) -> Result<Place, FilterError> {
        let written = &operand.written;
        // A name has no letters of more than one byte.
        let error = |at: usize, found: String, expected: String| {
            FilterError::new(operand.column + at, found, expected)
        };
        let (mut path, mut way) = (Path::new(written), Vec::new());
        let mut message = Some(self.ty);
        let mut field: Option<&FieldType<Arc<TypeDescription>>> = None;
        // Whether an element of it was asked for.
        let mut is_element = false;
        while let Some((step, rest)) = path.step() {
            let start = written.len() - path.text().len();
            let before = written[..start].trim_end_matches('.');
            match step {
                Step::Field(name) => {
                    if field.is_some_and(|it| it.shape != Shape::Single && !is_element) {
                        return Err(no_index(operand, before, field));
                    }
                    let Some(ty) = message else {
                        let of = field.map_or("", |it| name_of(&it.base));
                        let found =
                            format!("{} behind {}, which is {of}", shown(name), shown(before));
                        return Err(error(start, found, "nothing behind it".into()));
                    };
                    let Some((number, found)) = ty.field(name) else {
                        let found = format!("no field {} in {}", shown(name), ty.name());
                        return Err(error(start, found, fields_of(ty, Some(name))));
                    };
                    way.push(Way::Field(number));
                    (field, is_element) = (Some(&found.ty), false);
                    message = found.ty.base.nested();
                }
                Step::Element(index) => {
                    let Some(list) = field.filter(|it| it.shape != Shape::Single && !is_element)
                    else {
                        let found = format!("an index behind {}", shown(before));
                        let expected = "an index behind an array or sequence only".into();
                        return Err(error(start, found, expected));
                    };
                    if let Shape::Array(max) | Shape::Bounded(max) = list.shape
                        && max as usize <= index
                    {
                        let expected = format!("an index below {max}, since it is {list}");
                        return Err(error(start, format!("index {index}"), expected));
                    }
                    way.push(Way::Element(index));
                    is_element = true;
                }
            }
            path = rest;
        }
        let Some(field) = field.filter(|_| path.is_end()) else {
            let expected = "a field such as `height`, `pose.position.x` or `poses[3].x`".into();
            return Err(error(0, shown(written), expected));
        };
        if field.shape != Shape::Single && !is_element {
            return Err(no_index(operand, written, Some(field)));
        }
        let kind = match &field.base {
            Base::Scalar(ScalarKind::Bool) => Kind::Bool,
            Base::Scalar(ScalarKind::Char) => Kind::Char,
            Base::Scalar(ScalarKind::F32) => Kind::Float32,
            Base::Scalar(ScalarKind::F64) => Kind::Float64,
            Base::Scalar(_) => Kind::Integer,
            Base::String { .. } | Base::WString { .. } => Kind::Text,
            Base::Nested(nested) => {
                let found = format!("{}, which is {}", shown(written), nested.name());
                let expected = format!("a field of it: {}", fields_of(nested, None));
                return Err(error(0, found, expected));
            }
        };
        let slot = self.visit.add(&way, self.slots);
        self.slots = self.slots.max(slot + 1);
        let shown = format!("{}, which is {}", shown(written), name_of(&field.base));
        Ok(Place { slot, kind, shown })
    }

    /// The constant that is compared to a field.
    fn constant_for(
        &self,
        place: &Place,
        operand: &Operand,
    ) -> Result<Found<'static>, FilterError> {
        let constant = self.constant_of(operand)?;
        let found = match (place.kind, constant) {
            (Kind::Text, Constant::Text(text)) => Found::Text(text.into()),
            (Kind::Char, Constant::Text(text)) => {
                let mut letters = text.chars().map(u32::from);
                match (letters.next(), letters.next()) {
                    (Some(letter @ ..0x100), None) => Found::Integer(letter.into()),
                    _ => return Err(self.not_for(place, operand)),
                }
            }
            (Kind::Bool | Kind::Char | Kind::Integer, Constant::Bool(value)) => {
                Found::Integer(value.into())
            }
            (Kind::Bool | Kind::Char | Kind::Integer, Constant::Integer(value)) => {
                Found::Integer(value)
            }
            (Kind::Char | Kind::Integer | Kind::Float64, Constant::Float(value)) => {
                Found::Float(value)
            }
            (Kind::Float32, Constant::Float(value)) => Found::Float((value as f32).into()),
            (Kind::Float32, Constant::Integer(value)) => Found::Float((value as f32).into()),
            (Kind::Float64, Constant::Integer(value)) => Found::Float(value as f64),
            _ => return Err(self.not_for(place, operand)),
        };
        Ok(found)
    }

    /// A constant is not of the kind of the field that it is compared to.
    fn not_for(&self, place: &Place, operand: &Operand) -> FilterError {
        self.at(operand, &format!("{} to compare to {}", place.kind.allowed(), place.shown))
    }

    fn constant_of(&self, operand: &Operand) -> Result<Constant, FilterError> {
        let number = match &operand.what {
            What::Constant(constant) => return Ok(constant.clone()),
            What::Parameter(number) => *number,
            What::Field => {
                let expected = "a constant or a parameter such as %0";
                return Err(FilterError::new(operand.column, shown(&operand.written), expected));
            }
        };
        let Some(text) = self.parameters.get(number) else {
            let expected = match self.parameters.len() {
                0 => "no parameter, since none is given".to_owned(),
                1 => "%0, since one parameter is given".to_owned(),
                count => format!("%0 to %{}, since {count} parameters are given", count - 1),
            };
            return Err(FilterError::new(operand.column, shown(&operand.written), expected));
        };
        parse::constant(text).map_err(|error| error.in_parameter(number))
    }

    /// An operand is not what may stand there; of a parameter that is its value.
    fn at(&self, operand: &Operand, expected: &str) -> FilterError {
        match &operand.what {
            What::Parameter(number) => {
                let text = self.parameters.get(*number).copied().unwrap_or_default();
                FilterError::new(1, shown(text), expected).in_parameter(*number)
            }
            _ => FilterError::new(operand.column, shown(&operand.written), expected),
        }
    }
}

/// An array or sequence was named where one of its elements is to be.
fn no_index(
    operand: &Operand,
    path: &str,
    field: Option<&FieldType<Arc<TypeDescription>>>,
) -> FilterError {
    let ty = field.map(ToString::to_string).unwrap_or_default();
    let found = format!("{}, which is {ty}", shown(path));
    FilterError::new(operand.column, found, format!("one of its elements, such as `{path}[0]`"))
}

/// Most names that an error lists.
const LISTED_MAX: usize = 16;

/// The fields of a message, and which of them was probably meant.
fn fields_of(ty: &TypeDescription, meant: Option<&str>) -> String {
    let names = || ty.fields().iter().map(|field| field.name.as_str());
    let mut listed: Vec<_> = names().take(LISTED_MAX).collect();
    if LISTED_MAX < ty.fields().len() {
        listed.push("…");
    }
    let guess = meant.and_then(|meant| nearest(meant, names()));
    let guess = guess.map(|it| format!(" (did you mean `{it}`?)")).unwrap_or_default();
    match listed.as_slice() {
        [] => "another type, since this one has no fields".to_owned(),
        listed => format!("one of {}{guess}", listed.join(", ")),
    }
}

/// What a field of one value holds, as definitions name it.
fn name_of(base: &Base<Arc<TypeDescription>>) -> &'static str {
    match base {
        Base::Scalar(kind) => kind.name(),
        Base::String { .. } => "string",
        Base::WString { .. } => "wstring",
        Base::Nested(_) => "a message",
    }
}

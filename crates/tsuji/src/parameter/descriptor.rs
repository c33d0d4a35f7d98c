//! What is allowed of a parameter.

use std::fmt;

use tsuji_interfaces::rcl_interfaces::msg;

use super::{ParameterType, ParameterValue, UnknownType};

/// What is said of a parameter when it is declared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterDescriptor {
    /// What it is for, in words.
    pub description: String,
    /// What else is allowed of it, in words; an on-set callback sees to it.
    pub additional_constraints: String,
    /// Its value stays that of its declaration.
    pub read_only: bool,
    /// Values of other types than the first are allowed.
    pub dynamic_typing: bool,
    /// The numbers that are allowed.
    pub range: Option<ParameterRange>,
}

/// Numbers from one to another.
///
/// As in rclcpp both bounds are allowed, also where no step leads to the upper one, and with a step of 0 all between
/// them. Floating-point numbers may be off by what rounding makes of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterRange {
    /// Of an integer.
    Integer {
        /// The lowest.
        from: i64,
        /// The highest.
        to: i64,
        /// The distance from one to the next, counted from the lowest; 0 for any.
        step: u64,
    },
    /// Of a double.
    FloatingPoint {
        /// The lowest.
        from: f64,
        /// The highest.
        to: f64,
        /// The distance from one to the next, counted from the lowest; 0 for any.
        step: f64,
    },
}

impl ParameterRange {
    fn ty(self) -> ParameterType {
        match self {
            Self::Integer { .. } => ParameterType::Integer,
            Self::FloatingPoint { .. } => ParameterType::Double,
        }
    }

    /// Whether a value is in it. A value that is no such number is.
    fn contains(self, value: &ParameterValue) -> bool {
        match (self, value) {
            (Self::Integer { from, to, step }, ParameterValue::Integer(value)) => {
                let is_step = || (i128::from(*value) - i128::from(from)) % i128::from(step) == 0;
                *value == to || (from..=to).contains(value) && (step == 0 || is_step())
            }
            (Self::FloatingPoint { from, to, step }, ParameterValue::Double(value)) => {
                let is_step = || {
                    let steps = ((value - from) / step).round();
                    are_equal(*value, from + steps * step)
                };
                are_equal(*value, from)
                    || are_equal(*value, to)
                    || (from..=to).contains(value) && (step == 0.0 || is_step())
            }
            _ => true,
        }
    }

    /// What is wrong with the range itself, for a parameter of this type.
    fn flaw(self, ty: ParameterType, dynamic_typing: bool) -> Option<String> {
        if !dynamic_typing && self.ty() != ty {
            return Some(format!("a range of type {} for a parameter of type {ty}", self.ty()));
        }
        let is_sound = match self {
            Self::Integer { from, to, .. } => from <= to,
            Self::FloatingPoint { from, to, step } => from <= to && 0.0 <= step,
        };
        (!is_sound)
            .then(|| format!("the range {self}; allowed: the lowest first, and no step below 0"))
    }
}

impl fmt::Display for ParameterRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer { from, to, step: 0 } => write!(f, "{from} to {to}"),
            Self::Integer { from, to, step } => write!(f, "{from} to {to} in steps of {step}"),
            Self::FloatingPoint { from, to, step } if *step == 0.0 => {
                write!(f, "{from:?} to {to:?}")
            }
            Self::FloatingPoint { from, to, step } => {
                write!(f, "{from:?} to {to:?} in steps of {step:?}")
            }
        }
    }
}

/// As rclcpp compares doubles with the bounds of ranges, but that nothing else is equal to infinity.
fn are_equal(a: f64, b: f64) -> bool {
    const UNITS: f64 = 100.0;
    a == b || (a + b).is_finite() && (a - b).abs() <= f64::EPSILON * (a + b).abs() * UNITS
}

impl ParameterDescriptor {
    /// Whether a parameter of type `ty`, which counts where typing is static, may have this value; else why not, in
    /// the words of rclcpp.
    pub(super) fn check(
        &self,
        name: &str,
        ty: ParameterType,
        value: &ParameterValue,
    ) -> Result<(), String> {
        if !self.dynamic_typing && value.ty() != ty {
            return Err(format!(
                "Wrong parameter type, parameter {{{name}}} is of type {{{ty}}}, setting it to {{{}}} is not allowed.",
                value.ty()
            ));
        }
        match self.range {
            Some(range) if !range.contains(value) => {
                let kind = match range {
                    ParameterRange::Integer { .. } => "integer",
                    ParameterRange::FloatingPoint { .. } => "floating point",
                };
                Err(format!(
                    "Parameter {{{name}}} doesn't comply with {kind} range; allowed: {range}"
                ))
            }
            _ => Ok(()),
        }
    }

    /// What is wrong with it, for a parameter of this type.
    pub(super) fn flaw(&self, ty: ParameterType) -> Option<String> {
        self.range.and_then(|range| range.flaw(ty, self.dynamic_typing))
    }
}

/// A parameter as a node describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribedParameter {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: ParameterType,
    /// What was said when it was declared.
    pub descriptor: ParameterDescriptor,
}

impl From<DescribedParameter> for msg::ParameterDescriptor {
    fn from(described: DescribedParameter) -> Self {
        let DescribedParameter { name, ty, descriptor } = described;
        let mut message = Self {
            name,
            r#type: ty.number(),
            description: descriptor.description,
            additional_constraints: descriptor.additional_constraints,
            read_only: descriptor.read_only,
            dynamic_typing: descriptor.dynamic_typing,
            ..Self::default()
        };
        match descriptor.range {
            Some(ParameterRange::Integer { from, to, step }) => message
                .integer_range
                .push(msg::IntegerRange { from_value: from, to_value: to, step }),
            Some(ParameterRange::FloatingPoint { from, to, step }) => message
                .floating_point_range
                .push(msg::FloatingPointRange { from_value: from, to_value: to, step }),
            None => {}
        }
        message
    }
}

impl TryFrom<msg::ParameterDescriptor> for DescribedParameter {
    type Error = UnknownType;

    fn try_from(message: msg::ParameterDescriptor) -> Result<Self, UnknownType> {
        let ty = ParameterType::from_number(message.r#type).ok_or(UnknownType(message.r#type))?;
        let integer = message.integer_range.first().map(|it| ParameterRange::Integer {
            from: it.from_value,
            to: it.to_value,
            step: it.step,
        });
        let floating = message.floating_point_range.first();
        let floating = floating.map(|it| ParameterRange::FloatingPoint {
            from: it.from_value,
            to: it.to_value,
            step: it.step,
        });
        // A node may name both, of which the one counts that is of its type.
        let range =
            if ty == ParameterType::Double { floating.or(integer) } else { integer.or(floating) };
        let descriptor = ParameterDescriptor {
            description: message.description,
            additional_constraints: message.additional_constraints,
            read_only: message.read_only,
            dynamic_typing: message.dynamic_typing,
            range,
        };
        Ok(Self { name: message.name, ty, descriptor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(range: ParameterRange, value: impl Into<ParameterValue>, expect: bool) {
        assert_eq!(range.contains(&value.into()), expect);
    }

    #[test]
    fn integers_in_steps_from_the_lowest_and_both_bounds() {
        let range = |from, to, step| ParameterRange::Integer { from, to, step };
        for value in [-3, 0, 3, 4] {
            check(range(-3, 4, 3), value, true);
        }
        for value in [-4, -2, 2, 5, i64::MIN, i64::MAX] {
            check(range(-3, 4, 3), value, false);
        }
        check(range(-3, 4, 0), 2, true);
        // Neither the distance nor the step fits 64 bits with a sign.
        check(range(i64::MIN, i64::MAX, u64::MAX - 1), i64::MAX - 1, true);
        check(range(i64::MIN, i64::MAX, u64::MAX - 1), 0, false);
        // What is no integer is for others to judge.
        check(range(0, 1, 0), "text", true);
    }

    #[test]
    fn doubles_as_rounding_leaves_them() {
        let range = |from, to, step| ParameterRange::FloatingPoint { from, to, step };
        for value in [0.0, 0.1, 0.1 + 0.2, 0.7, 1.0] {
            check(range(0.0, 1.0, 0.1), value, true);
        }
        for value in [0.15, -0.1, 1.1, f64::NAN, f64::INFINITY] {
            check(range(0.0, 1.0, 0.1), value, false);
        }
        check(range(0.0, 1.0, 0.3), 1.0, true);
        check(range(0.0, 1.0, 0.0), 0.123, true);
        check(range(0.0, f64::INFINITY, 0.0), -1.0, false);
        check(range(0.0, f64::INFINITY, 0.0), 1e300, true);
    }

    #[test]
    fn a_range_that_allows_nothing_is_a_flaw() {
        let check = |range, ty, expect: Option<&str>| {
            let descriptor =
                ParameterDescriptor { range: Some(range), ..ParameterDescriptor::default() };
            assert_eq!(descriptor.flaw(ty).as_deref(), expect);
        };
        let integers = ParameterRange::Integer { from: 1, to: 0, step: 0 };
        check(
            integers,
            ParameterType::Integer,
            Some("the range 1 to 0; allowed: the lowest first, and no step below 0"),
        );
        check(
            integers,
            ParameterType::Double,
            Some("a range of type integer for a parameter of type double"),
        );
        let doubles = ParameterRange::FloatingPoint { from: 0.0, to: 1.0, step: 0.5 };
        check(doubles, ParameterType::Double, None);
        let doubles = ParameterRange::FloatingPoint { from: 0.0, to: 1.0, step: f64::NAN };
        assert!(doubles.flaw(ParameterType::Double, false).is_some());
    }

    #[test]
    fn what_a_message_says_comes_back() {
        let ranges = [
            None,
            Some(ParameterRange::Integer { from: -1, to: 5, step: 2 }),
            Some(ParameterRange::FloatingPoint { from: -1.0, to: 5.5, step: 0.5 }),
        ];
        for range in ranges {
            let descriptor = ParameterDescriptor {
                description: "what for".into(),
                additional_constraints: "odd".into(),
                read_only: true,
                dynamic_typing: true,
                range,
            };
            let described =
                DescribedParameter { name: "a.b".into(), ty: ParameterType::Integer, descriptor };
            let message = msg::ParameterDescriptor::from(described.clone());
            assert_eq!(DescribedParameter::try_from(message), Ok(described));
        }
        let unknown = msg::ParameterDescriptor { r#type: 10, ..Default::default() };
        assert_eq!(DescribedParameter::try_from(unknown), Err(UnknownType(10)));
    }
}

//! What a word without quotes means in YAML 1.1, as PyYAML's `safe_load` reads it: the commands of ROS 2 and its launch
//! files read their values by it.

use std::borrow::Cow;

use super::{Node, NodeKind, float_text};

/// The meaning of a word.
#[derive(Clone, Debug, PartialEq)]
pub enum Word<'a> {
    /// Nothing, `~` or `null`.
    Null,
    /// `true`, `yes`, `on` and their opposites.
    Bool(bool),
    /// A whole number: decimal, `0x10`, `0b10`, octal `010`, `1:30` to the base of 60, with `_` anywhere.
    Integer(i128),
    /// A number with a point, and `.inf` and `.nan`. `1e3` is none.
    Float(f64),
    /// A date, which no value of ROS 2 has, as Python prints it.
    Date(String),
    /// A word that is neither a value nor a text: `=`, `<<`, a date that is not in the calendar, a whole number of
    /// more than 127 bits.
    Unreadable,
    /// A text.
    Text(&'a str),
}

impl<'a> Word<'a> {
    /// Reads a word that stands without quotes.
    pub fn plain(text: &'a str) -> Self {
        if matches!(text, "" | "~" | "null" | "Null" | "NULL") {
            return Self::Null;
        }
        if matches!(text, "=" | "<<") {
            return Self::Unreadable;
        }
        if let Some(value) = super::boolean(text) {
            return Self::Bool(value);
        }
        if !text.starts_with(|it: char| it.is_ascii_digit() || matches!(it, '-' | '+' | '.')) {
            return Self::Text(text);
        }
        if let Some(value) = float(text) {
            return Self::Float(value);
        }
        if is_integer(text) {
            return integer(text).map_or(Self::Unreadable, Self::Integer);
        }
        date(text).unwrap_or(Self::Text(text))
    }

    /// The meaning of a node that is a scalar; a quoted one is a text.
    pub fn of(node: &'a Node) -> Option<Self> {
        match &node.kind {
            NodeKind::Scalar { text, plain: true } => Some(Self::plain(text)),
            NodeKind::Scalar { text, .. } => Some(Self::Text(text)),
            _ => None,
        }
    }

    /// What Python's `str()` makes of the value, if it is one.
    pub fn python_text(&self) -> Option<Cow<'a, str>> {
        match self {
            Self::Bool(true) => Some("True".into()),
            Self::Bool(false) => Some("False".into()),
            Self::Integer(value) => Some(value.to_string().into()),
            Self::Float(value) => Some(python_float_text(*value).into()),
            Self::Text(text) => Some((*text).into()),
            Self::Null | Self::Date(_) | Self::Unreadable => None,
        }
    }
}

/// The word that PyYAML makes of a scalar with a tag other than `!!str`, written so that it means the same without the
/// tag. Else what would be right.
pub(super) fn constructed(tag: &str, text: &str) -> Result<String, &'static str> {
    match tag {
        "!!null" if text.is_empty() => Ok(String::new()),
        "!!null" => Ok("null".to_owned()),
        "!!bool" => {
            let value = super::boolean(&text.to_ascii_lowercase());
            value.map(|it| it.to_string()).ok_or("true, false, yes, no, on or off")
        }
        "!!int" => {
            let value = constructed_integer(&text.replace('_', ""));
            value.map(|it| it.to_string()).ok_or("a whole number")
        }
        "!!float" => {
            let value = constructed_float(&text.replace('_', "").to_ascii_lowercase());
            value.map(float_text).ok_or("a number")
        }
        _ => Err("no tag, or one of !!str, !!int, !!float, !!bool and !!null"),
    }
}

/// What follows a tag need not look like a whole number of YAML: Python's `int()` reads it, to the base that the first
/// digits say.
fn constructed_integer(text: &str) -> Option<i128> {
    let (sign, digits) = signed(text);
    let to_base = |digits: &str, radix| {
        let (sign, digits) = signed(digits.trim());
        let is_sound = !digits.is_empty() && digits.chars().all(|it| it.is_digit(radix));
        is_sound.then(|| i128::from_str_radix(digits, radix).ok())?.map(|it| sign * it)
    };
    let value = match digits.get(..2) {
        Some("0b") => to_base(&digits[2..], 2),
        Some("0x") => to_base(&digits[2..], 16),
        Some("0o" | "0O") => to_base(&digits[2..], 8),
        _ if digits.starts_with('0') => to_base(digits, 8),
        _ => digits
            .split(':')
            .try_fold(0_i128, |sum, part| sum.checked_mul(60)?.checked_add(python_integer(part)?)),
    };
    value.map(|it| sign * it)
}

/// The same of a number, which Python's `float()` reads.
fn constructed_float(text: &str) -> Option<f64> {
    let (sign, digits) = signed(text);
    let value = match digits {
        ".inf" => f64::INFINITY,
        ".nan" => f64::NAN,
        _ => {
            // From the end on, as PyYAML does it, so that the last bit is the same.
            let mut parts = digits.rsplit(':').enumerate();
            parts.try_fold(0.0, |sum, (at, part)| {
                let base = 60_f64.powi(i32::try_from(at).ok()?);
                Some(sum + python_float(part)? * base)
            })?
        }
    };
    Some(value * sign as f64)
}

/// A number as Python's `str()` prints it.
pub fn python_float_text(value: f64) -> String {
    match value {
        _ if value.is_nan() => "nan".to_owned(),
        f64::INFINITY => "inf".to_owned(),
        f64::NEG_INFINITY => "-inf".to_owned(),
        _ => {
            let text = float_text(value);
            // Python leaves the `.0` out before an exponent.
            match text.split_once(".0e") {
                Some((digits, exponent)) => format!("{digits}e{exponent}"),
                None => text,
            }
        }
    }
}

/// A whole number as Python's `int()` reads it: decimal, also with zeros before it, spaces around it and `_` between
/// its digits.
pub fn python_integer(text: &str) -> Option<i128> {
    let text = text.trim();
    let (sign, digits) = signed(text);
    let is_sound = digits.starts_with(|it: char| it.is_ascii_digit())
        && digits.ends_with(|it: char| it.is_ascii_digit())
        && !digits.contains("__")
        && digits.bytes().all(|it| it.is_ascii_digit() || it == b'_');
    let value: i128 = is_sound.then(|| digits.replace('_', "").parse().ok())??;
    Some(sign * value)
}

/// A number as Python's `float()` reads it: also `1e3`, `inf`, `nan`, with spaces around it and `_` between digits.
pub fn python_float(text: &str) -> Option<f64> {
    let text = text.trim();
    let (_, digits) = signed(text);
    let is_word = ["inf", "infinity", "nan"].iter().any(|it| digits.eq_ignore_ascii_case(it));
    // Rust reads the same words and digits, but has no `_`.
    if !is_word && !digits.starts_with(|it: char| it.is_ascii_digit() || it == '.') {
        return None;
    }
    crate::definition::parse_float(text)
}

/// The meaning of a word without quotes where ROS 2's nodes read their parameters: in files of parameters and behind
/// `-p`. It is not that of YAML, but that of C's `strtoll` and `strtod`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterWord {
    /// `true`, `yes`, `on`, `y` and their opposites.
    Bool(bool),
    /// A whole number of 64 bits: decimal, `0x10`, octal `010`.
    Integer(i64),
    /// A number: `1.5`, `1e3`, `.inf`, `nan`, `08`.
    Double(f64),
    /// A number that is larger than those, or nearer to 0.
    OutOfRange,
    /// A text.
    Text,
}

impl ParameterWord {
    /// Reads a word that is not empty.
    pub fn plain(text: &str) -> Self {
        match text {
            "y" | "Y" => return Self::Bool(true),
            "n" | "N" => return Self::Bool(false),
            _ => {}
        }
        if let Some(value) = super::boolean(text) {
            return Self::Bool(value);
        }
        let (sign, unsigned) = signed(text);
        if let Some(digits) = strtoll_digits(unsigned) {
            return match digits.map(|value| i64::try_from(sign * value)) {
                Some(Ok(value)) => Self::Integer(value),
                _ => Self::OutOfRange,
            };
        }
        let marked = ["inf", "Inf", "INF"].iter().any(|it| unsigned.strip_prefix('.') == Some(it));
        if marked {
            return Self::Double(f64::INFINITY * sign as f64);
        }
        if matches!(text, ".nan" | ".NaN" | ".NAN") {
            return Self::Double(f64::NAN);
        }
        match strtod(unsigned) {
            None => Self::Text,
            Some(Some(value)) => Self::Double(value * sign as f64),
            Some(None) => Self::OutOfRange,
        }
    }
}

/// A whole number to the base that its first digits say; `Some(None)` if it is too large.
fn strtoll_digits(text: &str) -> Option<Option<i128>> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = match hexadecimal {
        Some(digits) => (digits, 16),
        None if text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    let is_sound = !digits.is_empty() && digits.chars().all(|it| it.is_digit(radix));
    is_sound.then(|| i128::from_str_radix(digits, radix).ok())
}

/// A number without a sign; `Some(None)` if it is out of range.
fn strtod(text: &str) -> Option<Option<f64>> {
    let lower = text.to_ascii_lowercase();
    let is_nan = lower.strip_prefix("nan").is_some_and(|rest| {
        let inner = rest.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
        rest.is_empty()
            || inner.is_some_and(|it| it.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_'))
    });
    match lower.as_str() {
        "inf" | "infinity" => return Some(Some(f64::INFINITY)),
        _ if is_nan => return Some(Some(f64::NAN)),
        _ => {}
    }
    let (value, is_zero) = match lower.strip_prefix("0x") {
        Some(digits) => hexadecimal(digits)?,
        None => {
            if !lower.starts_with(|it: char| it.is_ascii_digit() || it == '.') {
                return None;
            }
            let mantissa = lower.split('e').next().unwrap_or_default();
            (lower.parse::<f64>().ok()?, !mantissa.contains(|it| matches!(it, '1'..='9')))
        }
    };
    // What is nearer to 0 than a normal number is one here, and a text to `strtod` of rcl.
    let is_in_range = value.is_finite() && (value != 0.0 || is_zero);
    Some(is_in_range.then_some(value))
}

/// `1.8p3`, to the base of 16 with an exponent to the base of 2, and whether it is zero.
fn hexadecimal(text: &str) -> Option<(f64, bool)> {
    let (mantissa, exponent) = text.split_once('p').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_sound = !(whole.is_empty() && fraction.is_empty())
        && (whole.bytes().chain(fraction.bytes())).all(|it| it.is_ascii_hexdigit());
    let exponent: i32 = is_sound.then(|| exponent.parse().ok())??;
    let digit = |it: char| f64::from(it.to_digit(16).unwrap_or_default());
    let whole = whole.chars().fold(0.0, |sum, it| sum * 16.0 + digit(it));
    let fraction = fraction.chars().rev().fold(0.0, |sum, it| (sum + digit(it)) / 16.0);
    let mantissa = whole + fraction;
    Some((mantissa * 2_f64.powi(exponent), mantissa == 0.0))
}

fn signed(text: &str) -> (i128, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn all(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(allowed)
}

fn is_digit_or_line(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'_'
}

/// The rest behind digits and `_`, of which the first is a digit.
fn behind_digits(text: &str) -> Option<&str> {
    if !text.starts_with(|it: char| it.is_ascii_digit()) {
        return None;
    }
    Some(text.trim_start_matches(|it: char| it.is_ascii_digit() || it == '_'))
}

/// `e+3`, whose sign YAML 1.1 asks for.
fn is_exponent(text: &str) -> bool {
    let digits = text.strip_prefix(['e', 'E']).and_then(|it| it.strip_prefix(['-', '+']));
    digits.is_some_and(|it| all(it, |byte| byte.is_ascii_digit()))
}

fn float(text: &str) -> Option<f64> {
    let (_, unsigned) = signed(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(f64::NAN);
    }
    let with_exponent = |rest: &str| {
        let rest = rest.trim_start_matches(|it: char| it.is_ascii_digit() || it == '_');
        rest.is_empty() || is_exponent(rest)
    };
    let is_float = match behind_digits(unsigned) {
        Some(rest) => rest.strip_prefix('.').is_some_and(with_exponent),
        // Without a digit before the point there is no sign either.
        None => text
            .strip_prefix('.')
            .is_some_and(|rest| behind_digits(rest).is_some() && with_exponent(rest)),
    };
    if is_float {
        return text.replace('_', "").parse().ok();
    }
    let (whole, fraction) = text.split_once('.')?;
    let is_fraction = fraction.is_empty() || all(fraction, is_digit_or_line);
    if !is_fraction || !is_sexagesimal(signed(whole).1) {
        return None;
    }
    let fraction: f64 = format!("0.{}", fraction.replace('_', "")).parse().ok()?;
    let (sign, digits) = signed(whole);
    Some((sexagesimal(digits)? as f64 + fraction) * sign as f64)
}

fn is_integer(text: &str) -> bool {
    let (_, digits) = signed(text);
    let marked = |mark: &str, allowed: fn(u8) -> bool| {
        digits.strip_prefix(mark).is_some_and(|it| all(it, |byte| byte == b'_' || allowed(byte)))
    };
    let decimal = digits.starts_with(|it: char| matches!(it, '1'..='9'));
    digits == "0"
        || marked("0b", |byte| matches!(byte, b'0' | b'1'))
        || marked("0x", |byte| byte.is_ascii_hexdigit())
        || marked("0", |byte| matches!(byte, b'0'..=b'7'))
        || decimal && (all(digits, is_digit_or_line) || is_sexagesimal(digits))
}

fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = signed(text);
    let digits = digits.replace('_', "");
    let value = match (digits.get(..2), digits.as_str()) {
        (_, "0") => 0,
        (Some("0b"), _) => i128::from_str_radix(&digits[2..], 2).ok()?,
        (Some("0x"), _) => i128::from_str_radix(&digits[2..], 16).ok()?,
        _ if digits.starts_with('0') => i128::from_str_radix(&digits, 8).ok()?,
        _ if digits.contains(':') => sexagesimal(&digits)?,
        _ => digits.parse().ok()?,
    };
    Some(sign * value)
}

/// `190:20:30`
fn is_sexagesimal(digits: &str) -> bool {
    let Some((first, rest)) = digits.split_once(':') else { return false };
    let is_part = |part: &str| match part.as_bytes() {
        [unit] => unit.is_ascii_digit(),
        [ten, unit] => matches!(ten, b'0'..=b'5') && unit.is_ascii_digit(),
        _ => false,
    };
    behind_digits(first) == Some("") && rest.split(':').all(is_part)
}

fn sexagesimal(digits: &str) -> Option<i128> {
    digits
        .replace('_', "")
        .split(':')
        .try_fold(0_i128, |sum, part| sum.checked_mul(60)?.checked_add(part.parse().ok()?))
}

/// A date, or a date and a time.
fn date(text: &str) -> Option<Word<'static>> {
    let number = |text: &str, lengths: &[usize]| {
        let is_number = lengths.contains(&text.len()) && all(text, |it| it.is_ascii_digit());
        is_number.then(|| text.parse::<u32>().ok()).flatten()
    };
    let end = text.find(['t', 'T', ' ', '\t']).unwrap_or(text.len());
    let (day, time) = text.split_at(end);
    let lengths: &[usize] = if time.is_empty() { &[2] } else { &[1, 2] };
    let mut parts = day.split('-');
    let (Some(year), Some(month), Some(of_month), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let (year, month) = (number(year, &[4])?, number(month, lengths)?);
    let of_month = number(of_month, lengths)?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    if !time.is_empty() && !is_time(time) {
        return None;
    }
    let is_day = year != 0 && (1..=days).contains(&of_month);
    Some(if is_day { Word::Date(text.to_owned()) } else { Word::Unreadable })
}

/// `T12:30:45.5 +01:00`
fn is_time(text: &str) -> bool {
    let digits = |text: &str, lengths: &[usize]| {
        lengths.contains(&text.len()) && all(text, |it| it.is_ascii_digit())
    };
    let clock = match text.strip_prefix(['t', 'T']) {
        Some(rest) => rest,
        None => text.trim_start_matches([' ', '\t']),
    };
    let end = clock.find(|it: char| !it.is_ascii_digit() && !matches!(it, ':' | '.'));
    let (clock, zone) = clock.split_at(end.unwrap_or(clock.len()));
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let parts: Vec<&str> = clock.split(':').collect();
    let is_clock = matches!(parts[..], [hour, minute, second]
        if digits(hour, &[1, 2]) && digits(minute, &[2]) && digits(second, &[2]));
    let zone = zone.trim_start_matches([' ', '\t']);
    let is_zone = match zone.strip_prefix(['-', '+']) {
        None => matches!(zone, "" | "Z"),
        Some(offset) => {
            let (hours, minutes) = offset.split_once(':').unwrap_or((offset, "00"));
            digits(hours, &[1, 2]) && digits(minutes, &[2])
        }
    };
    is_clock && is_zone && (fraction.is_empty() || digits(fraction, &[fraction.len()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row is a tag with a text, and what `repr()` of PyYAML's `safe_load` prints; nothing where it raises an error.
    #[test]
    fn tags_make_what_pyyaml_constructs() {
        for (tag, text, expected) in [
            ("!!float", "1", "1.0"),
            ("!!float", "1e3", "1000.0"),
            ("!!float", "abc", ""),
            ("!!float", "1:30", "90.0"),
            ("!!float", "", ""),
            ("!!float", ".inf", "inf"),
            ("!!float", "inf", "inf"),
            ("!!float", "NaN", "nan"),
            ("!!float", "0x10", ""),
            ("!!float", " 1 ", "1.0"),
            ("!!float", "1_0", "10.0"),
            ("!!float", "1_", "1.0"),
            ("!!float", "-.INF", "-inf"),
            ("!!float", "+.nan", "nan"),
            ("!!float", ".5", "0.5"),
            ("!!float", "1:30.5", "90.5"),
            ("!!float", "-1:30", "-90.0"),
            ("!!float", "1e", ""),
            ("!!float", "-inf", "-inf"),
            ("!!float", ".iNf", "inf"),
            ("!!float", "1:-30", "30.0"),
            ("!!float", "1:1e3", "1060.0"),
            ("!!float", "1:30:15.7", "5415.7"),
            ("!!float", "++1", "1.0"),
            ("!!float", "1e400", "inf"),
            ("!!float", "1e22", "1e+22"),
            ("!!float", "-0.0", "-0.0"),
            ("!!float", ":", ""),
            ("!!float", "a:b", ""),
            ("!!float", "5e-324", "5e-324"),
            ("!!float", "0.1", "0.1"),
            ("!!float", "- 1", "-1.0"),
            ("!!float", "e5", ""),
            ("!!float", "1 2", ""),
            ("!!int", "1", "1"),
            ("!!int", "010", "8"),
            ("!!int", "08", ""),
            ("!!int", "1.5", ""),
            ("!!int", "abc", ""),
            ("!!int", "0x1F", "31"),
            ("!!int", "0X1F", ""),
            ("!!int", "0b11", "3"),
            ("!!int", "1:30", "90"),
            ("!!int", "-1:30", "-90"),
            ("!!int", " 5 ", "5"),
            ("!!int", "", ""),
            ("!!int", "1_0", "10"),
            ("!!int", "_1", "1"),
            ("!!int", "+5", "5"),
            ("!!int", "-0x5", "-5"),
            ("!!int", "0o17", "15"),
            ("!!int", "0", "0"),
            ("!!int", "-0", "0"),
            ("!!int", "0x", ""),
            ("!!int", "0b", ""),
            ("!!int", "1 2", ""),
            ("!!int", "0_1", "1"),
            ("!!int", "0:30", ""),
            ("!!int", "1:030", "90"),
            ("!!int", "1:90", "150"),
            ("!!int", "1:-30", "30"),
            ("!!int", "++1", "1"),
            ("!!int", "--1", "1"),
            ("!!int", "-", ""),
            ("!!int", "0x-5", "-5"),
            ("!!int", "é", ""),
            ("!!int", "1:", ""),
            ("!!int", "-010", "-8"),
            ("!!int", "0b2", ""),
            ("!!int", "0é", ""),
            ("!!bool", "yes", "True"),
            ("!!bool", "tRue", "True"),
            ("!!bool", "On", "True"),
            ("!!bool", "OFF", "False"),
            ("!!bool", "y", ""),
            ("!!bool", "1", ""),
            ("!!bool", "", ""),
            ("!!null", "x", "None"),
            ("!!null", "", "None"),
            ("!!null", "null", "None"),
            ("!!foo", "x", ""),
            ("!!timestampx", "2020-01-01", ""),
            ("!!seq", "x", ""),
            ("!!map", "", ""),
            ("!foo", "x", ""),
        ] {
            let found = constructed(tag, text).ok();
            let printed = found.as_deref().map(|it| match Word::plain(it) {
                Word::Null => "None".into(),
                word => word.python_text().unwrap_or_else(|| panic!("{tag} {text:?}: {word:?}")),
            });
            assert_eq!(printed.unwrap_or_default(), expected, "{tag} {text:?}");
        }
    }

    /// Each row is a word, what PyYAML takes it for, and what Python prints of the value.
    #[test]
    fn words_mean_what_pyyaml_reads() {
        let table = include_str!("../../tests/data/pyyaml_words.tsv");
        let mut rows = 0;
        for row in table.lines().filter(|it| !it.starts_with('#')) {
            let mut columns = row.split('\t');
            let (text, kind) = (columns.next().unwrap(), columns.next().unwrap());
            let printed = columns.next().unwrap_or_default();
            let word = Word::plain(text);
            let found = match &word {
                Word::Null => "null",
                Word::Bool(_) => "bool",
                Word::Integer(_) => "int",
                Word::Float(_) => "float",
                Word::Date(_) => "date",
                Word::Unreadable => "error",
                Word::Text(_) => "str",
            };
            assert_eq!(found, kind, "{text}");
            if let Some(said) = word.python_text() {
                assert_eq!(said, printed, "{text}");
            }
            rows += 1;
        }
        assert!(1000 < rows, "{rows}");
    }

    /// Each row is a word, and the type and the value that a node of rclpy has of it by `-p`.
    #[test]
    fn words_of_parameters_mean_what_rcl_reads() {
        let table = include_str!("../../tests/data/rcl_words.tsv");
        let mut rows = 0;
        for row in table.lines().filter(|it| !it.starts_with('#')) {
            let mut columns = row.split('\t');
            let (text, kind) = (columns.next().unwrap(), columns.next().unwrap());
            let printed = columns.next().unwrap_or_default();
            let (found, said) = match ParameterWord::plain(text) {
                ParameterWord::Bool(value) => ("BOOL", Word::Bool(value).python_text()),
                ParameterWord::Integer(value) => ("INTEGER", Some(value.to_string().into())),
                ParameterWord::Double(value) => ("DOUBLE", Word::Float(value).python_text()),
                ParameterWord::Text => ("STRING", Some(text.into())),
                // It is a text or an inexact number to rcl, and refused here.
                ParameterWord::OutOfRange => ("", None),
            };
            match said {
                Some(said) if kind == "STRING" && found == "DOUBLE" => {
                    let value: f64 = said.parse().unwrap();
                    assert!(value.is_subnormal(), "{text}");
                }
                Some(said) => assert_eq!((found, &*said), (kind, printed), "{text}"),
                None => assert!(matches!(kind, "STRING" | "DOUBLE"), "{text}: {kind}"),
            }
            rows += 1;
        }
        assert!(1000 < rows, "{rows}");
    }

    #[test]
    fn texts_become_numbers_as_in_python() {
        for (text, expect) in [
            ("5", Some(5)),
            (" -5 ", Some(-5)),
            ("+010", Some(10)),
            ("1_000", Some(1000)),
            ("1__0", None),
            ("_1", None),
            ("0x10", None),
            ("1.0", None),
            ("", None),
            ("-", None),
            ("--1", None),
        ] {
            assert_eq!(python_integer(text), expect, "{text}");
        }
        for (text, expect) in [
            ("1e3", Some(1000.0)),
            (" .5 ", Some(0.5)),
            ("-5.", Some(-5.0)),
            ("1_0.5", Some(10.5)),
            ("Infinity", Some(f64::INFINITY)),
            ("-inf", Some(f64::NEG_INFINITY)),
            ("1e400", Some(f64::INFINITY)),
            (".inf", None),
            ("0x10", None),
            ("", None),
            ("e5", None),
            ("+-1", None),
            ("1_.5", None),
        ] {
            assert_eq!(python_float(text), expect, "{text}");
        }
        assert!(python_float("NaN").is_some_and(f64::is_nan));
    }
}

//! The words of an expression.

use super::error::{FilterError, shown};
use super::{EXPRESSION_BYTES_MAX, PARAMETERS_MAX};

/// A constant, as it is written in an expression or a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Constant {
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
}

/// One word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A field, or a word of the language: which of the two, its place tells.
    Word(String),
    Constant(Constant),
    Parameter(usize),
    /// `=`, `<>`, `<`, `<=`, `>`, `>=`, `(` or `)`.
    Sign(&'static str),
    End,
}

impl Token {
    /// Whether it is this word of the language.
    pub(super) fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword))
    }
}

/// Takes an expression apart.
pub(super) struct Tokens<'a> {
    text: &'a str,
    /// Where the next token is looked for.
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, FilterError> {
        if EXPRESSION_BYTES_MAX < text.len() {
            return Err(FilterError::new(
                1,
                format!("{} bytes", text.len()),
                format!("at most {EXPRESSION_BYTES_MAX}"),
            ));
        }
        Ok(Self { text, at: 0 })
    }

    /// The column of a byte, in characters from 1.
    pub(super) fn column(&self, at: usize) -> usize {
        self.text[..at].chars().count() + 1
    }

    /// What was written from one byte to another.
    pub(super) fn written(&self, from: usize, to: usize) -> &'a str {
        &self.text[from..to]
    }

    /// The next token, where it starts and where it ends.
    pub(super) fn next(&mut self) -> Result<(Token, usize, usize), FilterError> {
        let rest = self.text[self.at..].trim_start();
        let start = self.text.len() - rest.len();
        let Some(first) = rest.chars().next() else { return Ok((Token::End, start, start)) };
        let (token, len) = match first {
            '\'' | '`' => self.text_constant(start)?,
            '%' => self.parameter(start)?,
            '0'..='9' | '+' | '-' | '.' => self.number(start)?,
            'a'..='z' | 'A'..='Z' | '_' => self.word(start)?,
            _ => self.sign(start)?,
        };
        self.at = start + len;
        Ok((token, start, self.at))
    }

    fn error(&self, at: usize, found: String, expected: &str) -> FilterError {
        FilterError::new(self.column(at), found, expected)
    }

    fn sign(&self, start: usize) -> Result<(Token, usize), FilterError> {
        const SIGNS: [(&str, &str); 9] = [
            ("<>", "<>"),
            ("!=", "<>"),
            ("<=", "<="),
            (">=", ">="),
            ("<", "<"),
            (">", ">"),
            ("=", "="),
            ("(", "("),
            (")", ")"),
        ];
        let rest = &self.text[start..];
        if rest.starts_with("==") {
            return Err(self.error(start, "`==`".into(), "`=`, which compares here"));
        }
        let sign = SIGNS.into_iter().find(|(written, _)| rest.starts_with(written));
        sign.map(|(written, sign)| (Token::Sign(sign), written.len())).ok_or_else(|| {
            let end = rest.chars().next().map_or(0, char::len_utf8);
            self.error(
                start,
                shown(&rest[..end]),
                "a field, a constant, a parameter such as %0, a comparison or a parenthesis",
            )
        })
    }

    /// A text in quotes, of which two stand for one inside it.
    fn text_constant(&self, start: usize) -> Result<(Token, usize), FilterError> {
        let body = &self.text[start + 1..];
        let (mut text, mut at) = (String::new(), 0);
        loop {
            let Some(end) = body[at..].find('\'') else {
                return Err(self.error(
                    start,
                    shown(&self.text[start..]),
                    "a text that ends with a quote (')",
                ));
            };
            text += &body[at..at + end];
            at += end + 1;
            if !body[at..].starts_with('\'') {
                return Ok((Token::Constant(Constant::Text(text)), at + 1));
            }
            text.push('\'');
            at += 1;
        }
    }

    fn parameter(&self, start: usize) -> Result<(Token, usize), FilterError> {
        let rest = &self.text[start + 1..];
        let len = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = rest[..len].parse().ok().filter(|it| *it < PARAMETERS_MAX);
        match number {
            Some(number) => Ok((Token::Parameter(number), 1 + len)),
            None => Err(self.error(
                start,
                shown(&self.text[start..=start + len]),
                "a parameter from %0 to %99",
            )),
        }
    }

    fn number(&self, start: usize) -> Result<(Token, usize), FilterError> {
        let rest = &self.text[start..];
        let mut len = usize::from(rest.starts_with(['+', '-']));
        let is_hex = rest[len..].starts_with("0x") || rest[len..].starts_with("0X");
        let mut before = ' ';
        for it in rest[len..].chars() {
            let is_exponent_sign =
                matches!(it, '+' | '-') && matches!(before, 'e' | 'E') && !is_hex;
            if !it.is_ascii_alphanumeric() && !matches!(it, '.' | '_') && !is_exponent_sign {
                break;
            }
            before = it;
            len += it.len_utf8();
        }
        let written = &rest[..len];
        let number = number(written).ok_or_else(|| {
            self.error(
                start,
                shown(written),
                "a number such as -5, 0x1f or 2.5e3, within 64 bits if whole",
            )
        })?;
        Ok((Token::Constant(number), len))
    }

    /// A name, with the names and indices behind it.
    fn word(&self, start: usize) -> Result<(Token, usize), FilterError> {
        let rest = &self.text[start..];
        let is_part = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '.' | '[' | ']');
        let len = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
        let word = &rest[..len];
        match word {
            _ if word.eq_ignore_ascii_case("true") => {
                Ok((Token::Constant(Constant::Bool(true)), len))
            }
            _ if word.eq_ignore_ascii_case("false") => {
                Ok((Token::Constant(Constant::Bool(false)), len))
            }
            _ => Ok((Token::Word(word.to_owned()), len)),
        }
    }
}

fn number(written: &str) -> Option<Constant> {
    let digits = written.strip_prefix(['+', '-']).unwrap_or(written);
    let sign = if written.starts_with('-') { -1 } else { 1 };
    let whole = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) if hex.bytes().all(|it| it.is_ascii_hexdigit()) => {
            Some(u64::from_str_radix(hex, 16).ok()?)
        }
        Some(_) => return None,
        None if !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit()) => {
            Some(digits.parse::<u64>().ok()?)
        }
        None => None,
    };
    if let Some(whole) = whole {
        let value = sign * i128::from(whole);
        return (i128::from(i64::MIN) <= value).then_some(Constant::Integer(value));
    }
    // Not what Rust reads as well: `inf`, `nan`, `1.`.
    let is_digit = |it: Option<&u8>| it.is_some_and(u8::is_ascii_digit);
    let bytes = digits.as_bytes();
    if !bytes.iter().all(|it| it.is_ascii_digit() || b".eE+-".contains(it)) {
        return None;
    }
    if !is_digit(bytes.last()) || !(is_digit(bytes.first()) || bytes.first() == Some(&b'.')) {
        return None;
    }
    written.parse::<f64>().ok().filter(|it| it.is_finite()).map(Constant::Float)
}

//! From the text of an expression to its conditions.

use super::NESTING_MAX;
use super::error::{FilterError, shown};
use super::token::{Constant, Token, Tokens};
use std::cmp::Ordering;

/// What a sample is asked.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Compare { left: Operand, by: Comparison, right: Operand },
    Between { left: Operand, low: Operand, high: Operand },
    Fits { left: Operand, by: Pattern, right: Operand },
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Whether it is true of two values, of which none says that they cannot be ordered.
    pub(super) fn holds(self, ordering: Option<Ordering>) -> bool {
        use Ordering::{Equal, Greater, Less};
        match self {
            Self::Equal => ordering == Some(Equal),
            Self::NotEqual => ordering != Some(Equal),
            Self::Less => ordering == Some(Less),
            Self::LessOrEqual => matches!(ordering, Some(Less | Equal)),
            Self::Greater => ordering == Some(Greater),
            Self::GreaterOrEqual => matches!(ordering, Some(Greater | Equal)),
        }
    }

    /// The one that says the same with the two sides changed over.
    pub(super) fn turned(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }
}

/// What a text is to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    Like,
    Match,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operand {
    pub(super) what: What,
    /// As it was written.
    pub(super) written: String,
    pub(super) column: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    Field,
    Constant(Constant),
    Parameter(usize),
}

/// The condition of a whole expression; none if it is empty.
pub(super) fn condition(text: &str) -> Result<Option<Condition>, FilterError> {
    let mut parser = Parser::new(text)?;
    if parser.token == Token::End {
        return Ok(None);
    }
    let condition = parser.any(0)?;
    match parser.token {
        Token::End => Ok(Some(condition)),
        _ => Err(parser.expected("AND, OR or the end of the expression")),
    }
}

/// A constant alone, as a parameter is.
pub(super) fn constant(text: &str) -> Result<Constant, FilterError> {
    let mut parser = Parser::new(text)?;
    match parser.take()?.0 {
        Token::Constant(constant) if parser.token == Token::End => Ok(constant),
        _ => Err(FilterError::new(
            1,
            if text.trim().is_empty() { "nothing".to_owned() } else { shown(text) },
            "one constant: a number, TRUE, FALSE, or a text in quotes such as 'left'",
        )),
    }
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    /// The next token, where it starts and ends.
    token: Token,
    start: usize,
    end: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self, FilterError> {
        let mut tokens = Tokens::new(text)?;
        let (token, start, end) = tokens.next()?;
        Ok(Self { tokens, token, start, end })
    }

    /// Takes the next token, with its text and its column.
    fn take(&mut self) -> Result<(Token, String, usize), FilterError> {
        let (start, end) = (self.start, self.end);
        let next = self.tokens.next()?;
        let token = std::mem::replace(&mut self.token, next.0);
        (self.start, self.end) = (next.1, next.2);
        Ok((token, self.tokens.written(start, end).to_owned(), self.tokens.column(start)))
    }

    /// Passes over a word or sign, if it comes next.
    fn pass(&mut self, word: &str) -> Result<bool, FilterError> {
        let is_next = self.token.is(word) || matches!(self.token, Token::Sign(it) if it == word);
        if is_next {
            self.take()?;
        }
        Ok(is_next)
    }

    /// The next token is not what may stand there.
    fn expected(&self, expected: &str) -> FilterError {
        let found = match self.token {
            Token::End => "the end of the expression".to_owned(),
            _ => shown(self.tokens.written(self.start, self.end)),
        };
        FilterError::new(self.tokens.column(self.start), found, expected)
    }

    fn any(&mut self, depth: usize) -> Result<Condition, FilterError> {
        let mut conditions = vec![self.all(depth)?];
        while self.pass("OR")? {
            conditions.push(self.all(depth)?);
        }
        Ok(one_of(conditions, Condition::Any))
    }

    fn all(&mut self, depth: usize) -> Result<Condition, FilterError> {
        let mut conditions = vec![self.one(depth)?];
        while self.pass("AND")? {
            conditions.push(self.one(depth)?);
        }
        Ok(one_of(conditions, Condition::All))
    }

    fn one(&mut self, depth: usize) -> Result<Condition, FilterError> {
        if NESTING_MAX < depth {
            let found = format!("more than {NESTING_MAX} conditions inside each other");
            let column = self.tokens.column(self.start);
            return Err(FilterError::new(column, found, format!("at most {NESTING_MAX}")));
        }
        if self.pass("NOT")? {
            return Ok(Condition::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.pass("(")? {
            let condition = self.any(depth + 1)?;
            if !self.pass(")")? {
                return Err(self.expected("AND, OR or a closing parenthesis"));
            }
            return Ok(condition);
        }
        self.predicate()
    }

    fn predicate(&mut self) -> Result<Condition, FilterError> {
        let left = self.operand()?;
        let is_negated = self.pass("NOT")?;
        if self.pass("BETWEEN")? {
            let low = self.operand()?;
            if !self.pass("AND")? {
                return Err(self.expected("AND and the upper end of the range"));
            }
            let high = self.operand()?;
            let between = Condition::Between { left, low, high };
            return Ok(if is_negated { Condition::Not(Box::new(between)) } else { between });
        }
        if is_negated {
            return Err(self.expected("BETWEEN behind NOT; for others NOT stands before the field"));
        }
        for (word, by) in [("LIKE", Pattern::Like), ("MATCH", Pattern::Match)] {
            if self.pass(word)? {
                return Ok(Condition::Fits { left, by, right: self.operand()? });
            }
        }
        let by = match self.token {
            Token::Sign("=") => Comparison::Equal,
            Token::Sign("<>") => Comparison::NotEqual,
            Token::Sign("<") => Comparison::Less,
            Token::Sign("<=") => Comparison::LessOrEqual,
            Token::Sign(">") => Comparison::Greater,
            Token::Sign(">=") => Comparison::GreaterOrEqual,
            _ => {
                let expected = "a comparison: =, <>, <, <=, >, >=, LIKE, MATCH or BETWEEN";
                return Err(self.expected(expected));
            }
        };
        self.take()?;
        Ok(Condition::Compare { left, by, right: self.operand()? })
    }

    fn operand(&mut self) -> Result<Operand, FilterError> {
        if matches!(self.token, Token::Sign(_) | Token::End) || self.token.is("NOT") {
            return Err(self.expected("a field, a constant or a parameter such as %0"));
        }
        let (token, written, column) = self.take()?;
        let what = match token {
            Token::Constant(constant) => What::Constant(constant),
            Token::Parameter(number) => What::Parameter(number),
            _ => What::Field,
        };
        Ok(Operand { what, written, column })
    }
}

/// The only one, or all of them together.
fn one_of(mut conditions: Vec<Condition>, together: fn(Vec<Condition>) -> Condition) -> Condition {
    match conditions.pop() {
        Some(only) if conditions.is_empty() => only,
        Some(last) => {
            conditions.push(last);
            together(conditions)
        }
        None => together(conditions),
    }
}

use super::literal::BadLiteral;
use super::{
    ActionSpec, Base, Constant, FieldSpec, FieldType, Literal, MessageSpec, Reference, ScalarKind,
    ServiceSpec, Shape,
};
use std::collections::HashSet;
use std::fmt;

/// Bytes of a definition. A longer text is refused.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Why a definition is refused: where, which word, and what is allowed there.
#[derive(Clone, PartialEq, Eq)]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The offending word.
    pub word: String,
    /// What is wrong with it.
    pub problem: String,
    /// What would be right.
    pub allowed: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: `{}`: {}", self.line, self.column, self.word, self.problem)?;
        if self.allowed.is_empty() { Ok(()) } else { write!(f, "; allowed: {}", self.allowed) }
    }
}

impl std::error::Error for ParseError {}

/// Parses the text of a `.msg` file.
///
/// # Errors
///
/// A [`ParseError`] with its place if the text is longer than [`TEXT_BYTES_MAX`], has a line of `---`, or has a
/// line that is no field, constant or comment: a word that is no type or names one of ROS 1, a size or bound that
/// is none, a name that is missing, not allowed or there already, a value that its type does not take.
pub fn parse_message(text: &str) -> Result<MessageSpec, ParseError> {
    let [spec] = parse_sections(text, "message")?;
    Ok(spec)
}

/// Parses the text of a `.srv` file.
///
/// # Errors
///
/// Those of [`parse_message`], but exactly one line of `---` must be there.
pub fn parse_service(text: &str) -> Result<ServiceSpec, ParseError> {
    let [request, response] = parse_sections(text, "service")?;
    Ok(ServiceSpec { request, response })
}

/// Parses the text of an `.action` file.
///
/// # Errors
///
/// Those of [`parse_message`], but exactly two lines of `---` must be there.
pub fn parse_action(text: &str) -> Result<ActionSpec, ParseError> {
    let [goal, result, feedback] = parse_sections(text, "action")?;
    Ok(ActionSpec { goal, result, feedback })
}

const SEPARATOR: &str = "---";

/// Parses `N` messages separated by lines of `---`.
fn parse_sections<const N: usize>(text: &str, what: &str) -> Result<[MessageSpec; N], ParseError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(ParseError {
            line: 1,
            column: 1,
            word: String::new(),
            problem: format!("the definition has {} bytes", text.len()),
            allowed: format!("at most {TEXT_BYTES_MAX} bytes"),
        });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut sections = Vec::with_capacity(N);
    let mut section = Section::default();
    let mut last_line = 0;
    for (index, line) in lines(text).enumerate() {
        last_line = index + 1;
        if line.trim_end() == SEPARATOR {
            if sections.len() + 1 == N {
                return Err(ParseError {
                    line: last_line,
                    column: 1,
                    word: SEPARATOR.into(),
                    problem: "one separator too many".into(),
                    allowed: format!("{} lines of --- in a {what}", N - 1),
                });
            }
            sections.push(std::mem::take(&mut section).finish());
        } else {
            section.line(last_line, line)?;
        }
    }
    sections.push(section.finish());
    let found = sections.len();
    sections.try_into().map_err(|_| ParseError {
        line: last_line.max(1),
        column: 1,
        word: SEPARATOR.into(),
        problem: format!("missing: {found} of {N} parts found"),
        allowed: format!("{} lines of --- in a {what}", N - 1),
    })
}

/// The lines of a text, ended by LF, CR LF or CR.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        match text.find(['\n', '\r']) {
            None => {
                rest = None;
                (!text.is_empty()).then_some(text)
            }
            Some(end) => {
                let width = if text[end..].starts_with("\r\n") { 2 } else { 1 };
                rest = Some(&text[end + width..]);
                Some(&text[..end])
            }
        }
    })
}

/// One message in the making.
#[derive(Default)]
struct Section {
    spec: MessageSpec,
    /// Comment lines that wait for the element below them.
    pending: Vec<String>,
    /// Something else than head comments was seen.
    past_head: bool,
    /// What an indented comment belongs to.
    last: Option<Last>,
    names: HashSet<String>,
}

#[derive(Clone, Copy)]
enum Last {
    Field,
    Constant,
}

impl Section {
    fn line(&mut self, number: usize, line: &str) -> Result<(), ParseError> {
        self.spec.text.push_str(line);
        self.spec.text.push('\n');

        let cursor = Cursor { number, line };
        let (code, comment) = split_comment(line);
        let comment = comment.map(|comment| comment.trim_start_matches('#').trim_end());
        if code.trim().is_empty() {
            self.comment_line(comment, code);
            return Ok(());
        }
        self.past_head = true;
        self.element(&cursor, code)?;
        let mut lines = std::mem::take(&mut self.pending);
        lines.extend(comment.map(str::to_owned));
        if let Some(target) = self.last_comment() {
            *target = tidy(lines);
        }
        Ok(())
    }

    /// A line without code. Comments at the head of the file are the message's, indented ones
    /// belong to the element above, the others to the element below.
    fn comment_line(&mut self, comment: Option<&str>, indent: &str) {
        let Some(comment) = comment else {
            self.past_head |= !self.spec.comment.is_empty();
            return;
        };
        if !self.past_head && indent.is_empty() {
            self.spec.comment.push(comment.trim_start().to_owned());
            return;
        }
        if !indent.is_empty()
            && let Some(target) = self.last_comment()
        {
            target.push(comment.trim_start().to_owned());
            return;
        }
        self.pending.push(comment.to_owned());
    }

    fn last_comment(&mut self) -> Option<&mut Vec<String>> {
        match self.last? {
            Last::Field => self.spec.fields.last_mut().map(|field| &mut field.comment),
            Last::Constant => self.spec.constants.last_mut().map(|constant| &mut constant.comment),
        }
    }

    fn element(&mut self, cursor: &Cursor<'_>, code: &str) -> Result<(), ParseError> {
        let code = code.trim();
        let (type_word, rest) = split_word(code);
        let ty = parse_type(cursor, type_word)?;
        let name = &rest[..rest
            .find(|letter: char| letter.is_whitespace() || letter == '=')
            .unwrap_or(rest.len())];
        if name.is_empty() {
            return Err(cursor.error(
                rest_or(rest, type_word),
                "a name must follow the type",
                "TYPE NAME, TYPE NAME DEFAULT or TYPE NAME=VALUE",
            ));
        }
        let rest = rest[name.len()..].trim_start();
        if !self.names.insert(name.to_owned()) {
            return Err(cursor.error(
                name,
                "this name is there already",
                "a name that no other field or constant of the message has",
            ));
        }
        match rest.strip_prefix('=') {
            Some(value) => self.constant(cursor, ty, type_word, name, value.trim_start()),
            None => self.field(cursor, ty, name, rest),
        }
    }

    fn constant(
        &mut self,
        cursor: &Cursor<'_>,
        ty: FieldType<Reference>,
        type_word: &str,
        name: &str,
        value: &str,
    ) -> Result<(), ParseError> {
        let plain = matches!(
            ty.base,
            Base::Scalar(_) | Base::String { bound: None } | Base::WString { bound: None }
        );
        if ty.shape != Shape::Single || !plain {
            return Err(cursor.error(
                type_word,
                "not a type for a constant",
                &format!("{}, string, wstring", scalar_names()),
            ));
        }
        if !is_constant_name(name) {
            return Err(cursor.error(
                name,
                "not a name for a constant",
                "a capital, then capitals, digits and single underscores, no underscore at the end",
            ));
        }
        let is_text = !matches!(ty.base, Base::Scalar(_));
        if value.is_empty() && !is_text {
            return Err(cursor.error(name, "a value must follow the `=`", "TYPE NAME=VALUE"));
        }
        let value = Literal::parse_single(&ty.base, value)
            .map_err(|bad| cursor.literal_error(value, bad))?;
        self.spec.constants.push(Constant {
            name: name.to_owned(),
            base: ty.base,
            value,
            comment: Vec::new(),
        });
        self.last = Some(Last::Constant);
        Ok(())
    }

    fn field(
        &mut self,
        cursor: &Cursor<'_>,
        ty: FieldType<Reference>,
        name: &str,
        default: &str,
    ) -> Result<(), ParseError> {
        if !is_field_name(name) {
            return Err(cursor.error(
                name,
                "not a name for a field",
                "a small letter, then small letters, digits and single underscores, no underscore at the end",
            ));
        }
        let default = match default {
            "" => None,
            text => Some(Literal::parse(&ty, text).map_err(|bad| cursor.literal_error(text, bad))?),
        };
        self.spec.fields.push(FieldSpec {
            name: name.to_owned(),
            ty,
            default,
            comment: Vec::new(),
        });
        self.last = Some(Last::Field);
        Ok(())
    }

    fn finish(mut self) -> MessageSpec {
        self.spec.comment = tidy(self.spec.comment);
        self.spec
    }
}

/// Knows where words are, for errors.
struct Cursor<'a> {
    number: usize,
    line: &'a str,
}

impl Cursor<'_> {
    /// An error at `word`, which must be a slice of the line; at the end of the line otherwise.
    fn error(&self, word: &str, problem: &str, allowed: &str) -> ParseError {
        let start = (word.as_ptr() as usize).wrapping_sub(self.line.as_ptr() as usize);
        ParseError {
            line: self.number,
            column: self.column(start),
            word: word.to_owned(),
            problem: problem.to_owned(),
            allowed: allowed.to_owned(),
        }
    }

    fn literal_error(&self, text: &str, bad: BadLiteral) -> ParseError {
        let start = (text.as_ptr() as usize)
            .wrapping_sub(self.line.as_ptr() as usize)
            .wrapping_add(bad.start);
        ParseError {
            line: self.number,
            column: self.column(start),
            word: bad.word,
            problem: bad.problem.to_owned(),
            allowed: bad.allowed,
        }
    }

    fn column(&self, byte: usize) -> usize {
        self.line.get(..byte).unwrap_or(self.line).chars().count() + 1
    }
}

/// Splits a line at the `#` that starts its comment. A `#` between quotes is part of a value.
fn split_comment(line: &str) -> (&str, Option<&str>) {
    let mut quote = None;
    let mut escaped = false;
    let mut before = ' ';
    for (index, letter) in line.char_indices() {
        match (quote, letter) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '#') => return (&line[..index], Some(&line[index..])),
            // A quote opens a value only where a value can start, so that an apostrophe in a word
            // is no quote, and only if it is closed again.
            (None, '"' | '\'')
                if (before.is_whitespace() || "=[,".contains(before))
                    && line[index + 1..].contains(letter) =>
            {
                quote = Some(letter);
            }
            (None, _) => {}
        }
        before = letter;
    }
    (line, None)
}

fn split_word(text: &str) -> (&str, &str) {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

fn rest_or<'a>(rest: &'a str, other: &'a str) -> &'a str {
    if rest.is_empty() { other } else { rest }
}

fn parse_type(cursor: &Cursor<'_>, word: &str) -> Result<FieldType<Reference>, ParseError> {
    let Some(inner) = word.strip_suffix(']') else {
        return Ok(FieldType { base: parse_base(cursor, word)?, shape: Shape::Single });
    };
    let Some(open) = inner.rfind('[') else {
        return Err(cursor.error(word, "`]` without `[`", "TYPE[], TYPE[N] or TYPE[<=N]"));
    };
    let size = &inner[open + 1..];
    let number = |digits: &str| {
        parse_size(digits).ok_or_else(|| {
            cursor.error(size, "not a size", "a whole number from 1 to 4294967295, or <= and one")
        })
    };
    let shape = match (size, size.strip_prefix("<=")) {
        ("", _) => Shape::Sequence,
        (_, Some(bound)) => Shape::Bounded(number(bound)?),
        _ => Shape::Array(number(size)?),
    };
    Ok(FieldType { base: parse_base(cursor, &inner[..open])?, shape })
}

fn parse_base(cursor: &Cursor<'_>, word: &str) -> Result<Base<Reference>, ParseError> {
    if let Some(kind) = ScalarKind::from_name(word) {
        return Ok(Base::Scalar(kind));
    }
    match word {
        "string" => return Ok(Base::String { bound: None }),
        "wstring" => return Ok(Base::WString { bound: None }),
        "time" | "duration" => {
            return Err(cursor.error(
                word,
                "a type of ROS 1",
                "builtin_interfaces/Time, builtin_interfaces/Duration",
            ));
        }
        _ => {}
    }
    if let Some((text, bound)) = word.split_once("<=")
        && matches!(text, "string" | "wstring")
    {
        let Some(bound) = parse_size(bound) else {
            return Err(cursor.error(bound, "not a bound", "a whole number from 1 to 4294967295"));
        };
        let bound = Some(bound);
        return Ok(if text == "string" { Base::String { bound } } else { Base::WString { bound } });
    }
    let (package, name) = match word.split_once('/') {
        Some((package, name)) => (Some(package), name),
        None => (None, word),
    };
    if let Some(package) = package
        && !is_package_name(package)
    {
        return Err(cursor.error(package, "not a name for a package", PACKAGE_RULE));
    }
    if !is_message_name(name) {
        let allowed =
            format!("{}, string, wstring, a message as Name or package/Name", scalar_names());
        return Err(cursor.error(name, "not a type", &allowed));
    }
    Ok(Base::Nested(Reference { package: package.map(str::to_owned), name: name.to_owned() }))
}

fn parse_size(digits: &str) -> Option<u32> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|size| *size > 0)
}

fn scalar_names() -> String {
    ScalarKind::ALL.map(ScalarKind::name).join(", ")
}

const PACKAGE_RULE: &str =
    "a small letter, then small letters, digits and single underscores, no underscore at the end";

/// Whether packages may be called so; the same rule holds for fields.
pub(crate) fn is_package_name(name: &str) -> bool {
    is_field_name(name)
}

fn is_field_name(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !name.contains("__")
        && !name.ends_with('_')
}

fn is_constant_name(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_uppercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        && !name.contains("__")
        && !name.ends_with('_')
}

/// Whether messages may be called so. The parts of services and actions have a suffix behind an
/// underscore.
pub(crate) fn is_message_name(name: &str) -> bool {
    let stem = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    let stem = ["_SendGoal", "_GetResult"]
        .iter()
        .find_map(|suffix| stem.strip_suffix(suffix))
        .unwrap_or(stem);
    stem.starts_with(|letter: char| letter.is_ascii_uppercase())
        && stem.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// What ROS appends to name the parts of services and actions.
pub(crate) const SUFFIXES: [&str; 7] =
    ["_Request", "_Response", "_Event", "_Goal", "_Result", "_FeedbackMessage", "_Feedback"];

/// Drops the common indent and empty lines at both ends.
fn tidy(mut lines: Vec<String>) -> Vec<String> {
    let indent = lines
        .iter()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start_matches(' ').len())
        .min()
        .unwrap_or(0);
    for line in &mut lines {
        *line = line.get(indent..).unwrap_or("").trim_end().to_owned();
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let blank = lines.iter().take_while(|line| line.is_empty()).count();
    lines.drain(..blank);
    lines
}

//! Definitions in IDL, as far as rosidl makes them of `.msg`, `.srv` and `.action` files: modules, structures,
//! constants, type definitions of arrays, comments and defaults. They become the text of such a file again.

use super::parse::{TEXT_BYTES_MAX, parse_message};
use super::{Kind, ParseError};
use std::collections::{HashMap, HashSet};

/// What rosidl puts into a structure that has nothing else, since IDL has no empty ones.
const FILLER: &str = "structure_needs_at_least_one_member";

/// Modules in modules, and annotations in brackets; a deeper text is refused.
const DEPTH_MAX: usize = 16;

/// The parts of an interface, each with what follows the interface's name.
fn parts(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Message => &[""],
        Kind::Service => &["_Request", "_Response"],
        Kind::Action => &["_Goal", "_Result", "_Feedback"],
    }
}

/// Turns the IDL of the interface `package/kind/name` into the text of a `.msg`, `.srv` or `.action` file.
///
/// # Errors
///
/// A [`ParseError`] with its place in the IDL if the text is longer than [`TEXT_BYTES_MAX`](super::TEXT_BYTES_MAX),
/// is no IDL, has what has no counterpart there, such as enumerations and unions, has types, names or values that
/// ROS does not allow, or lacks a structure of the interface.
pub fn definition_of_idl(
    text: &str,
    kind: Kind,
    package: &str,
    name: &str,
) -> Result<String, ParseError> {
    let mut reader = Reader { tokens: tokens(text)?, at: 0, package, found: Found::default() };
    while !reader.is_over() {
        reader.item(&mut Vec::new())?;
    }
    let mut out = Vec::new();
    for part in parts(kind) {
        let path = format!("{package}::{}::{name}{part}", kind.word());
        let Some(fields) = reader.found.structs.get(&path) else {
            let problem = format!("there is no structure {path}");
            return Err(error((1, 1), &path, problem, "IDL as rosidl makes it"));
        };
        let constants = reader.found.constants.get(&format!("{path}_Constants"));
        out.push(constants.into_iter().chain([fields]).map(String::as_str).collect::<String>());
    }
    Ok(out.join("---\n"))
}

/// What was read, by its full name.
#[derive(Default)]
struct Found {
    structs: HashMap<String, String>,
    constants: HashMap<String, String>,
    types: HashMap<String, Type>,
    /// The full names of the constants and fields.
    names: HashSet<String>,
}

/// A type in the words of definitions.
#[derive(Clone)]
struct Type {
    base: String,
    /// `[3]`, `[]` or `[<=3]`.
    shape: String,
}

type Place = (usize, usize);

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A name, with `::` in it, or a number.
    Word(String),
    /// Without its quotes.
    Text(String),
    Sign(char),
}

impl Token {
    fn shown(&self) -> String {
        match self {
            Self::Word(word) => word.clone(),
            Self::Text(text) => format!("\"{text}\""),
            Self::Sign(sign) => sign.to_string(),
        }
    }
}

fn error(place: Place, word: &str, problem: impl Into<String>, allowed: &str) -> ParseError {
    ParseError {
        line: place.0,
        column: place.1,
        word: word.chars().take(80).collect(),
        problem: problem.into(),
        allowed: allowed.to_owned(),
    }
}

/// Words, texts and signs with their places; comments and the lines of the preprocessor are left out.
fn tokens(text: &str) -> Result<Vec<(Token, Place)>, ParseError> {
    if text.len() > TEXT_BYTES_MAX {
        let problem = format!("{} bytes are too many", text.len());
        return Err(error((1, 1), "", problem, &format!("{TEXT_BYTES_MAX} bytes")));
    }
    let mut tokens = Vec::new();
    let letters: Vec<char> = text.chars().collect();
    let (mut at, mut line, mut began) = (0, 1, 0);
    let mut is_first = true;
    while let Some(&letter) = letters.get(at) {
        let place = (line, at - began + 1);
        let next = letters.get(at + 1).copied();
        match letter {
            '\n' => {
                at += 1;
                (line, began, is_first) = (line + 1, at, true);
                continue;
            }
            _ if letter.is_whitespace() => {
                at += 1;
                continue;
            }
            '#' if is_first => at = end_of_line(&letters, at),
            '/' if next == Some('/') => at = end_of_line(&letters, at),
            '/' if next == Some('*') => {
                at += 2;
                while !(letters.get(at) == Some(&'*') && letters.get(at + 1) == Some(&'/')) {
                    match letters.get(at) {
                        Some('\n') => (line, began) = (line + 1, at + 1),
                        Some(_) => {}
                        None => {
                            return Err(error(place, "/*", "a comment that does not end", "*/"));
                        }
                    }
                    at += 1;
                }
                at += 2;
            }
            '"' | '\'' => {
                let mut inside = String::new();
                at += 1;
                loop {
                    match (letters.get(at), letters.get(at + 1)) {
                        (Some(it), _) if *it == letter => break,
                        (Some('\\'), Some(escaped)) => {
                            inside.push(match escaped {
                                'n' => '\n',
                                't' => '\t',
                                'r' => '\r',
                                other => *other,
                            });
                            at += 2;
                        }
                        (None | Some('\n'), _) => {
                            let word = letter.to_string();
                            return Err(error(place, &word, "a text that does not end", &word));
                        }
                        (Some(it), _) => {
                            inside.push(*it);
                            at += 1;
                        }
                    }
                }
                at += 1;
                tokens.push((Token::Text(inside), place));
            }
            _ if is_word(letter) || letter == '-' || letter == '+' => {
                let mut word = String::from(letter);
                at += 1;
                while let Some(&it) = letters.get(at) {
                    // `1e-5`
                    let is_exponent = (it == '-' || it == '+')
                        && word.ends_with(['e', 'E'])
                        && word.starts_with(|it: char| it.is_ascii_digit() || "+-.".contains(it));
                    let is_scope =
                        it == ':' && (letters.get(at + 1) == Some(&':') || letters[at - 1] == ':');
                    if !is_word(it) && !is_exponent && !is_scope {
                        break;
                    }
                    word.push(it);
                    at += 1;
                }
                tokens.push((Token::Word(word), place));
            }
            _ => {
                at += 1;
                tokens.push((Token::Sign(letter), place));
            }
        }
        is_first = false;
    }
    Ok(tokens)
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '.'
}

fn end_of_line(letters: &[char], at: usize) -> usize {
    letters[at..].iter().position(|it| *it == '\n').map_or(letters.len(), |it| at + it)
}

struct Reader<'a> {
    tokens: Vec<(Token, Place)>,
    at: usize,
    package: &'a str,
    found: Found,
}

/// What annotations say of what follows them.
#[derive(Default)]
struct Notes {
    comment: Vec<String>,
    default: Option<(Token, Place)>,
}

impl Reader<'_> {
    fn is_over(&self) -> bool {
        self.tokens.len() <= self.at
    }

    fn place(&self) -> Place {
        let last = self.tokens.len().saturating_sub(1);
        self.tokens.get(self.at.min(last)).map_or((1, 1), |(_, place)| *place)
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn next(&mut self, allowed: &str) -> Result<Token, ParseError> {
        let Some((token, _)) = self.tokens.get(self.at) else {
            return Err(error(self.place(), "", "the text ends too early", allowed));
        };
        self.at += 1;
        Ok(token.clone())
    }

    fn refuse<T>(&mut self, token: &Token, problem: &str, allowed: &str) -> Result<T, ParseError> {
        self.at -= 1;
        Err(error(self.place(), &token.shown(), problem, allowed))
    }

    fn sign(&mut self, wanted: char) -> Result<(), ParseError> {
        match self.next(&wanted.to_string())? {
            Token::Sign(sign) if sign == wanted => Ok(()),
            other => self.refuse(&other, "is not what belongs here", &wanted.to_string()),
        }
    }

    fn takes(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(&Token::Sign(wanted));
        self.at += usize::from(is_there);
        is_there
    }

    fn word(&mut self, allowed: &str) -> Result<String, ParseError> {
        match self.next(allowed)? {
            Token::Word(word) => Ok(word),
            other => self.refuse(&other, "is no name", allowed),
        }
    }

    fn number(&mut self) -> Result<u32, ParseError> {
        let word = self.word("a number")?;
        match word.parse() {
            Ok(number) => Ok(number),
            Err(_) => self.refuse(&Token::Word(word), "is no length", "a number"),
        }
    }

    /// A module, a structure, a type definition or a constant, and what stands in it.
    fn item(&mut self, scope: &mut Vec<String>) -> Result<(), ParseError> {
        let notes = self.notes()?;
        let allowed = "module, struct, typedef or const";
        let word = self.word(allowed)?;
        match word.as_str() {
            "module" => {
                scope.push(self.word("the name of a module")?);
                if scope.len() > DEPTH_MAX {
                    return self.refuse(&Token::Word(word), "is in too many others", "16");
                }
                self.sign('{')?;
                while !self.takes('}') {
                    self.item(scope)?;
                }
                scope.pop();
            }
            "struct" => self.structure(scope, &notes)?,
            "typedef" => {
                let ty = self.ty(scope)?;
                let name = self.word("the name of a type")?;
                let ty = self.array(ty)?;
                self.found.types.insert(scoped(scope, &name), ty);
            }
            "const" => {
                let of_type = self.place();
                let ty = self.ty(scope)?;
                let of_name = self.place();
                let name = self.word("the name of a constant")?;
                self.sign('=')?;
                let of_value = self.place();
                let value = self.literal(&ty)?;
                self.once(scoped(scope, &name), &name, of_name)?;
                let head = format!("{}{}", ty.base, ty.shape);
                let value = format!("={value}");
                let line = checked([(&head, of_type), (&name, of_name), (&value, of_value)])?;
                let constants = self.found.constants.entry(scope.join("::")).or_default();
                constants.extend(notes.comment.iter().map(|it| comment(it)));
                constants.push_str(&line);
            }
            _ => {
                return self.refuse(
                    &Token::Word(word),
                    "has no counterpart in ROS's own files",
                    allowed,
                );
            }
        }
        self.takes(';');
        Ok(())
    }

    fn structure(&mut self, scope: &[String], notes: &Notes) -> Result<(), ParseError> {
        let path = scoped(scope, &self.word("the name of a structure")?);
        self.sign('{')?;
        let mut text: String = notes.comment.iter().map(|it| comment(it)).collect();
        while !self.takes('}') {
            let notes = self.notes()?;
            let of_type = self.place();
            let ty = self.ty(scope)?;
            loop {
                let of_name = self.place();
                let name = self.word("the name of a field")?;
                let ty = self.array(ty.clone())?;
                if name != FILLER {
                    self.once(scoped(std::slice::from_ref(&path), &name), &name, of_name)?;
                    text.extend(notes.comment.iter().map(|it| comment(it)));
                    let head = format!("{}{}", ty.base, ty.shape);
                    let (value, of_value) = match &notes.default {
                        Some((value, place)) => {
                            (format!(" {}", default(&ty, value, *place)?), *place)
                        }
                        None => (String::new(), of_name),
                    };
                    let parts = [(&head, of_type), (&name, of_name), (&value, of_value)];
                    text.push_str(&checked(parts)?);
                }
                if !self.takes(',') {
                    break;
                }
            }
            self.sign(';')?;
        }
        self.found.structs.insert(path, text);
        Ok(())
    }

    /// Takes the full name of a constant or a field, which no other may have.
    fn once(&mut self, path: String, name: &str, place: Place) -> Result<(), ParseError> {
        if self.found.names.insert(path) {
            return Ok(());
        }
        Err(error(place, name, "this name is there already", "a name that nothing else there has"))
    }

    /// Annotations, such as `@verbatim (language="comment", text="…" "\n" "…")`.
    fn notes(&mut self) -> Result<Notes, ParseError> {
        let mut notes = Notes::default();
        while self.takes('@') {
            let name = self.word("the name of an annotation")?;
            if !self.takes('(') {
                continue;
            }
            let (mut depth, mut said) = (1, Vec::new());
            while depth > 0 {
                let place = self.place();
                let token = self.next(")")?;
                match &token {
                    Token::Sign('(') => depth += 1,
                    Token::Sign(')') => depth -= 1,
                    _ => {}
                }
                said.push((token, place));
            }
            let value = |key: &str| {
                let key = said.iter().position(|(it, _)| *it == Token::Word(key.to_owned()))?;
                said.get(key + 2..)
            };
            match name.as_str() {
                "default" => notes.default = value("value").and_then(|it| it.first().cloned()),
                "verbatim"
                    if value("language").is_some_and(|it| {
                        it.first().map(|(it, _)| it) == Some(&Token::Text("comment".to_owned()))
                    }) =>
                {
                    let pieces =
                        value("text").into_iter().flatten().map_while(|(it, _)| match it {
                            Token::Text(text) => Some(text.as_str()),
                            _ => None,
                        });
                    let text = pieces.collect::<String>();
                    // A definition ends its lines by CR alone as well.
                    let lines = text.lines().flat_map(|it| it.split('\r'));
                    notes.comment = lines.map(str::to_owned).collect();
                }
                // A unit and the like say nothing of the type.
                _ => {}
            }
        }
        Ok(notes)
    }

    fn ty(&mut self, scope: &[String]) -> Result<Type, ParseError> {
        let mut word = self.word("a type")?;
        // `unsigned long long`
        while ["unsigned", "long", "unsigned long"].contains(&word.as_str()) {
            match self.peek() {
                Some(Token::Word(next)) if ["short", "long", "double"].contains(&next.as_str()) => {
                    word = format!("{word} {next}");
                    self.at += 1;
                }
                _ => break,
            }
        }
        let plain = |base: &str| Ok(Type { base: base.to_owned(), shape: String::new() });
        match word.as_str() {
            "boolean" => plain("bool"),
            "octet" => plain("byte"),
            "char" => plain("char"),
            "float" => plain("float32"),
            "double" => plain("float64"),
            "short" => plain("int16"),
            "long" => plain("int32"),
            "long long" => plain("int64"),
            "unsigned short" => plain("uint16"),
            "unsigned long" => plain("uint32"),
            "unsigned long long" => plain("uint64"),
            "int8" | "uint8" | "int16" | "uint16" | "int32" | "uint32" | "int64" | "uint64" => {
                plain(&word)
            }
            "string" | "wstring" => {
                if !self.takes('<') {
                    return plain(&word);
                }
                let bound = self.number()?;
                self.sign('>')?;
                plain(&format!("{word}<={bound}"))
            }
            "sequence" => {
                self.sign('<')?;
                if self.peek() == Some(&Token::Word("sequence".to_owned())) {
                    return self.refuse(
                        &Token::Word(word),
                        "holds sequences",
                        "sequences of single values",
                    );
                }
                let inner = self.ty(scope)?;
                let bound =
                    if self.takes(',') { format!("<={}", self.number()?) } else { String::new() };
                self.sign('>')?;
                if !inner.shape.is_empty() {
                    return self.refuse(
                        &Token::Word(word),
                        "holds arrays",
                        "sequences of single values",
                    );
                }
                Ok(Type { base: inner.base, shape: format!("[{bound}]") })
            }
            _ => self.named(word, scope),
        }
    }

    /// A type that was defined before, or another message.
    fn named(&mut self, word: String, scope: &[String]) -> Result<Type, ParseError> {
        for depth in (0..=scope.len()).rev() {
            if let Some(ty) = self.found.types.get(&scoped(&scope[..depth], &word)) {
                return Ok(ty.clone());
            }
        }
        let parts: Vec<&str> = word.trim_start_matches("::").split("::").collect();
        let base = match parts.as_slice() {
            [package, _, name] if *package == self.package => (*name).to_owned(),
            [package, "msg", name] => format!("{package}/{name}"),
            [name] if !name.contains(' ') => (*name).to_owned(),
            _ => {
                return self.refuse(
                    &Token::Word(word),
                    "is no type that ROS has",
                    "package::msg::Name",
                );
            }
        };
        Ok(Type { base, shape: String::new() })
    }

    /// The length behind a name.
    fn array(&mut self, ty: Type) -> Result<Type, ParseError> {
        if !self.takes('[') {
            return Ok(ty);
        }
        let length = self.number()?;
        self.sign(']')?;
        match ty.shape.is_empty() && self.peek() != Some(&Token::Sign('[')) {
            true => Ok(Type { shape: format!("[{length}]"), ..ty }),
            false => Err(error(self.place(), "[", "is an array of arrays", "one length")),
        }
    }

    fn literal(&mut self, ty: &Type) -> Result<String, ParseError> {
        let place = self.place();
        let mut value = self.next("a value")?;
        // Texts that stand one behind the other are one.
        while let (Token::Text(first), Some(Token::Text(more))) = (&value, self.peek()) {
            value = Token::Text(format!("{first}{more}"));
            self.at += 1;
        }
        default(ty, &value, place)
    }
}

fn scoped(scope: &[String], name: &str) -> String {
    scope.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("::")
}

fn comment(line: &str) -> String {
    format!("# {line}").trim_end().to_owned() + "\n"
}

/// The line of a constant or a field: type, name and value with their places. It is read here already, because an
/// error of later could name a place in the translation only, which nobody sees.
fn checked(parts: [(&String, Place); 3]) -> Result<String, ParseError> {
    let [(ty, of_type), (name, of_name), (value, of_value)] = parts;
    let line = format!("{ty} {name}{value}");
    if line.contains(['\n', '\r']) {
        return Err(error(of_value, value, "has a line break", "values of one line"));
    }
    let end_of_type = ty.chars().count() + 1;
    let end_of_name = end_of_type + name.chars().count();
    parse_message(&line).map_err(|error| {
        let place = match error.column {
            column if column <= end_of_type => of_type,
            column if column <= end_of_name => of_name,
            _ => of_value,
        };
        ParseError { line: place.0, column: place.1, ..error }
    })?;
    Ok(line + "\n")
}

/// A value in the words of definitions. Arrays stand in texts, as Python's tuples.
fn default(ty: &Type, value: &Token, place: Place) -> Result<String, ParseError> {
    let is_text = ty.base.starts_with("string") || ty.base.starts_with("wstring");
    match value {
        Token::Text(tuple) if !ty.shape.is_empty() => {
            let inside = tuple.trim().strip_prefix('(').and_then(|it| it.strip_suffix(')'));
            let inside = inside.map(|it| it.trim().trim_end_matches(',')).ok_or_else(|| {
                error(place, tuple, "is no tuple", "values in brackets, with commas between them")
            })?;
            let inside = match ty.base.as_str() {
                "bool" => inside.replace("True", "true").replace("False", "false"),
                _ => inside.to_owned(),
            };
            Ok(format!("[{inside}]"))
        }
        Token::Text(text) if is_text => {
            Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
        }
        Token::Word(word) if word.eq_ignore_ascii_case("true") => Ok("true".to_owned()),
        Token::Word(word) if word.eq_ignore_ascii_case("false") => Ok("false".to_owned()),
        Token::Word(word) => Ok(word.clone()),
        other => Err(error(place, &other.shown(), "is no value of the type", &ty.base)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, load};
    use std::collections::HashMap;

    const ALL: &str = r#"
// generated
#include "b_msgs/msg/Other.idl"
module a_msgs { module msg {
    typedef b_msgs::msg::Other b_msgs__msg__Other;
    typedef b_msgs__msg__Other b_msgs__msg__Other__2[2];
    typedef double double__3[3];
    module All_Constants {
      @verbatim (language="comment", text= "the first")
      const uint8 FIRST = 1;
      const string NAME = "say \"a\"" "b";
      const float E = -1.5e-5;
    };
    @verbatim (language="comment", text=
      "One line" "\n"
      "and another")
    struct All {
      @default (value=TRUE)
      boolean flag;
      @verbatim (language="comment", text="of; it}")
      @unit (value="m")
      octet raw;
      uint8 small;
      @default (value=-7)
      int64 big;
      @default (value=0.5)
      double number;
      float short_number;
      @default (value="it's")
      string<10> text;
      wstring wide;
      sequence<float> many;
      sequence<a_msgs::msg::Near, 4> near;
      b_msgs__msg__Other__2 others;
      double__3 three;
      @default (value="(True, False)")
      sequence<boolean> flags;
      long plain, twice[2];
      unsigned long long largest;
      /* a comment
         of two lines */
    };
}; };
"#;

    #[test]
    fn the_text_of_a_message() {
        let text = definition_of_idl(ALL, Kind::Message, "a_msgs", "All").unwrap();
        let expect = "# the first\nuint8 FIRST=1\nstring NAME=\"say \\\"a\\\"b\"\nfloat32 E=-1.5e-5\n\
            # One line\n# and another\nbool flag true\n# of; it}\nbyte raw\nuint8 small\nint64 big -7\n\
            float64 number 0.5\nfloat32 short_number\nstring<=10 text \"it's\"\nwstring wide\nfloat32[] many\n\
            Near[<=4] near\nb_msgs/Other[2] others\nfloat64[3] three\nbool[] flags [true, false]\nint32 plain\n\
            int32[2] twice\nuint64 largest\n";
        assert_eq!(text, expect);
        let known: HashMap<String, String> = [
            ("a_msgs/msg/All", text.as_str()),
            ("a_msgs/msg/Near", "int8 x"),
            ("b_msgs/msg/Other", "int8 x"),
        ]
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .into();
        assert_eq!(load("a_msgs/msg/All", &known).unwrap().fields().len(), 16);
    }

    #[test]
    fn no_text_panics() {
        for (end, _) in ALL.char_indices() {
            assert!(definition_of_idl(&ALL[..end], Kind::Message, "a_msgs", "Other").is_err());
            for sign in ["{", "}", "<", "[", "(", "@", ";", "sequence ", "-", "::", "\"", "struct "]
            {
                let text = format!("{}{sign}{}", &ALL[..end], &ALL[end..]);
                // Some of them still read.
                let _ = definition_of_idl(&text, Kind::Message, "a_msgs", "All");
            }
        }
        for deep in ["module a {", "sequence<", "@a(", "struct A { sequence<"] {
            let text = deep.repeat(10_000);
            assert!(definition_of_idl(&text, Kind::Message, "a", "A").is_err(), "{deep}");
        }
    }

    #[test]
    fn services_have_parts_that_may_be_empty() {
        let idl = "module a { module srv {\nstruct Do_Request { uint8 structure_needs_at_least_one_member; };\n\
            struct Do_Response { boolean done; }; }; };";
        assert_eq!(definition_of_idl(idl, Kind::Service, "a", "Do").unwrap(), "---\nbool done\n");
    }

    #[test]
    fn what_has_no_counterpart_is_refused_with_its_place() {
        let check = |idl: &str, expect: &str| {
            let error = definition_of_idl(idl, Kind::Message, "a", "M").unwrap_err();
            assert_eq!(error.to_string(), expect, "{idl}");
        };
        let items = "; allowed: module, struct, typedef or const";
        check(
            "enum E { A };",
            &format!("line 1, column 1: `enum`: has no counterpart in ROS's own files{items}"),
        );
        check(
            "module a {\n  union U {};",
            &format!("line 2, column 3: `union`: has no counterpart in ROS's own files{items}"),
        );
        check("module a {", &format!("line 1, column 10: ``: the text ends too early{items}"));
        check(
            "module a { module msg { struct N { int8 x; }; }; };",
            "line 1, column 1: `a::msg::M`: there is no structure a::msg::M; allowed: IDL as rosidl makes it",
        );
        check(
            "struct M { int8 x[2][3]; };",
            "line 1, column 21: `[`: is an array of arrays; allowed: one length",
        );
        check(
            "struct M { long double x; };",
            "line 1, column 17: `long double`: is no type that ROS has; allowed: package::msg::Name",
        );
        for (inside, place, problem) in [
            ("struct M { int8 a;\n  wchar x; };", "line 3, column 3", "`wchar`: not a type"),
            (
                "struct M { int8 sequence_; };",
                "line 2, column 17",
                "`sequence_`: not a name for a field",
            ),
            ("struct M { int8 x, y, x; };", "line 2, column 23", "`x`: this name is there already"),
            ("struct M { int8 x[0]; };", "line 2, column 12", "`0`: not a size"),
            (
                "struct M {\n  @default (value=300)\n  uint8 x; };",
                "line 3, column 19",
                "`300`: not a number of this type",
            ),
            (
                "module M_Constants { const int8 low = 1; }; struct M { int8 x; };",
                "line 2, column 33",
                "`low`: not a name for a constant",
            ),
            (
                "module M_Constants { const string A = \"a\\nb\"; }; struct M { int8 x; };",
                "line 2, column 39",
                "`=\"a\nb\"`: has a line break",
            ),
            (
                "module M_Constants { const int8 A = 1; const int8 A = 2; }; struct M { int8 x; };",
                "line 2, column 51",
                "`A`: this name is there already",
            ),
        ] {
            let idl = format!("module a {{ module msg {{\n{inside}\n}}; }};");
            let error = definition_of_idl(&idl, Kind::Message, "a", "M").unwrap_err().to_string();
            assert!(error.starts_with(&format!("{place}: {problem}")), "{inside}: {error}");
        }
        check("/* a", "line 1, column 1: `/*`: a comment that does not end; allowed: */");
        check(
            "struct M { string x = \"a",
            "line 1, column 23: `\"`: a text that does not end; allowed: \"",
        );
    }
}

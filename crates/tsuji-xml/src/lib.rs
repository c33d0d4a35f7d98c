//! Strict XML for the files of tsuji: elements with their places, limits, and errors that say what is allowed.
//!
//! This crate reads no file and knows no kind of file: it is handed a text and what such a text may have. A document
//! type is refused, so there are no entities to expand.
#![forbid(unsafe_code)]

use std::sync::Arc;

pub use roxmltree::{Attribute, Node};
use roxmltree::{Document, ParsingOptions};

mod error;
use error::shortened;
pub use error::{ERRORS_MAX, XmlError, XmlErrors};

pub mod spelling;

/// What a kind of file may have.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// What messages call such a file, as in "a policy file".
    pub name: &'static str,
    /// Its root element.
    pub root: &'static str,
    /// The most bytes.
    pub bytes_max: usize,
    /// The most elements, comments and texts.
    pub elements_max: u32,
    /// The most attributes of an element. An XML parser compares each with each.
    pub attributes_max: usize,
    /// The deepest nesting.
    pub depth_max: usize,
}

/// Hands the root element of a text to `read`, or tells why it has none.
///
/// `file` is what messages call the text. What `read` finds wrong it tells the [`Places`], and then its answer is dropped.
pub fn read<T>(
    kind: &Kind,
    file: &str,
    bytes: &[u8],
    read: impl for<'a> FnOnce(Node<'a, 'a>, &mut Places<'a>) -> T,
) -> Result<T, XmlErrors> {
    let file: Arc<str> = file.into();
    let refused = |text, offset, word: &str, problem: String| {
        let mut places = Places::new(kind, file.clone(), text);
        places.error(offset, word, problem, &[]);
        XmlErrors::new(places.errors)
    };
    if kind.bytes_max < bytes.len() {
        let problem = format!("bytes are too many; {} has at most {}", kind.name, kind.bytes_max);
        return Err(refused("", 0, &bytes.len().to_string(), problem));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let (good, bad) = bytes.split_at(error.valid_up_to());
        let good = std::str::from_utf8(good).unwrap_or_default();
        let word = format!("\\x{:02x}", bad.first().copied().unwrap_or_default());
        refused(good, good.len(), &word, "is not UTF-8".to_owned())
    })?;
    if let Some((offset, word, problem)) = excess(kind, text) {
        return Err(refused(text, offset, word, problem));
    }
    let options =
        ParsingOptions { allow_dtd: false, nodes_limit: kind.elements_max, ..Default::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let (offset, word, problem) = syntax_problem(kind, text, &error);
        refused(text, offset, word, problem)
    })?;
    let mut places = Places::new(kind, file.clone(), text);
    let root = document.root_element();
    if root.tag_name().name() != kind.root || root.tag_name().namespace().is_some() {
        places.unknown_element(root, &[kind.root]);
        return Err(places.wrong());
    }
    let value = read(root, &mut places);
    if places.errors.is_empty() { Ok(value) } else { Err(places.wrong()) }
}

/// Turns offsets of a text into lines and columns, and collects what is wrong there.
#[derive(Debug)]
pub struct Places<'a> {
    kind: Kind,
    file: Arc<str>,
    text: &'a str,
    line_starts: Vec<usize>,
    errors: Vec<XmlError>,
    omitted: usize,
}

impl<'a> Places<'a> {
    fn new(kind: &Kind, file: Arc<str>, text: &'a str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(after_newlines).collect();
        Self { kind: *kind, file, text, line_starts, errors: Vec::new(), omitted: 0 }
    }

    fn wrong(self) -> XmlErrors {
        let mut all = XmlErrors::new(self.errors);
        all.omitted += self.omitted;
        all
    }

    /// Whether nothing was wrong so far.
    pub fn is_good(&self) -> bool {
        self.errors.is_empty()
    }

    /// What messages call the text.
    pub fn file(&self) -> &Arc<str> {
        &self.file
    }

    /// Notes that `word`, which begins at `offset`, is wrong. The errors of a file are bounded by its elements.
    pub fn error(&mut self, offset: usize, word: &str, problem: String, allowed: &[&str]) {
        let (line, start) = self.line(offset);
        // The mark of the byte order at the begin of a file is seen by nobody.
        let before = self.text.get(start..offset).unwrap_or_default().trim_start_matches(MARK);
        let column = before.chars().count();
        let column = u32::try_from(column + 1).unwrap_or(u32::MAX);
        let (file, word) = (self.file.clone(), shortened(word));
        let allowed = allowed.iter().map(|&word| word.to_owned()).collect();
        self.errors.push(XmlError { file, line, column, word, problem, allowed });
    }

    /// Notes what is wrong with another file, or with this one as a whole.
    pub fn others(&mut self, errors: XmlErrors) {
        self.errors.extend(errors.errors);
        self.omitted += errors.omitted;
    }

    /// The line of an offset, from 1.
    pub fn line_of(&self, offset: usize) -> u32 {
        self.line(offset).0
    }

    /// The place of what begins at byte `at` of a value, also behind references such as `&lt;` and line ends, which stand
    /// there otherwise than they are read.
    pub fn inside(&self, attribute: Attribute<'_, '_>, at: usize) -> usize {
        let range = attribute.range_value();
        range.start + raw_offset(self.text.get(range).unwrap_or_default(), at)
    }

    fn line(&self, offset: usize) -> (u32, usize) {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line.saturating_sub(1)];
        (u32::try_from(line).unwrap_or(u32::MAX), start)
    }

    /// The elements inside `node`; text between them is refused.
    pub fn elements(&mut self, node: Node<'a, 'a>) -> Vec<Node<'a, 'a>> {
        for child in node.children().filter(Node::is_text) {
            let text = child.text().unwrap_or_default();
            let trimmed = text.trim_start();
            if !trimmed.is_empty() {
                // A text goes on behind the place that is known of it where sections of CDATA are in it.
                let start = child.range().start;
                let raw = self.text.get(start..).unwrap_or_default();
                let offset = start + raw_offset(raw, text.len() - trimmed.len());
                let word = trimmed.split_whitespace().next().unwrap_or_default();
                let problem = "is text, which has no place here".to_owned();
                self.error(offset, word, problem, &[]);
            }
        }
        node.children().filter(Node::is_element).collect()
    }

    /// Notes every element inside `node`, which has none.
    pub fn leaf(&mut self, node: Node<'a, 'a>) {
        for child in self.elements(node) {
            let word = child.tag_name().name();
            let problem = format!("has no place inside {:?}", node.tag_name().name());
            self.error(name_offset(child), word, problem, &[]);
        }
    }

    /// Notes every attribute that is not allowed.
    pub fn attributes(&mut self, node: Node<'a, 'a>, allowed: &[&str]) {
        if node.tag_name().namespace().is_some() {
            let problem = format!("is in a namespace, and {} has none", self.kind.name);
            self.error(name_offset(node), node.tag_name().name(), problem, &[]);
        }
        for attribute in node.attributes() {
            if attribute.namespace().is_some() || !allowed.contains(&attribute.name()) {
                let problem = format!("is not an attribute of {:?}", node.tag_name().name());
                let offset = attribute.range().start;
                self.error(offset, attribute.name(), problem, allowed);
            }
        }
    }

    /// An attribute, which is noted where it is missing.
    pub fn required(&mut self, node: Node<'a, 'a>, name: &str) -> Option<Attribute<'a, 'a>> {
        let attribute = node.attribute_node(name);
        if attribute.is_none() {
            let word = node.tag_name().name();
            let problem = format!("lacks the attribute {name:?}");
            self.error(name_offset(node), word, problem, &[]);
        }
        attribute
    }

    /// Notes an element that has no place there.
    pub fn unknown_element(&mut self, node: Node<'a, 'a>, allowed: &[&str]) {
        let problem = "is not an element here".to_owned();
        self.error(name_offset(node), node.tag_name().name(), problem, allowed);
    }
}

/// The mark of the byte order.
const MARK: char = '\u{feff}';

/// Where in a text as it stands that is which is read as its byte `at`.
fn raw_offset(raw: &str, at: usize) -> usize {
    const SECTION: (&str, &str) = ("<![CDATA[", "]]>");
    let (mut offset, mut read, mut is_section) = (0, 0, false);
    loop {
        let rest = &raw[offset..];
        let mark = if is_section { SECTION.1 } else { SECTION.0 };
        if rest.starts_with(mark) {
            offset += mark.len();
            is_section = !is_section;
            continue;
        }
        let Some(letter) = rest.chars().next().filter(|_| read < at) else { return offset };
        let (stands, is_read) = match letter {
            '&' if !is_section => {
                let end = rest.find(';').map_or(rest.len(), |it| it + 1);
                (end, referenced(&rest[1..end - usize::from(end != 1)]).len_utf8())
            }
            '\r' if rest.starts_with("\r\n") => (2, 1),
            _ => (letter.len_utf8(), letter.len_utf8()),
        };
        offset += stands;
        read += is_read;
    }
}

/// What a reference is read as. There are no entities but those that XML has.
fn referenced(name: &str) -> char {
    let code = match (name.strip_prefix("#x"), name.strip_prefix('#')) {
        (Some(digits), _) => u32::from_str_radix(digits, 16).ok(),
        (None, Some(digits)) => digits.parse().ok(),
        (None, None) => None,
    };
    code.and_then(char::from_u32).unwrap_or('&')
}

/// Where the name of an element stands.
pub fn name_offset(node: Node<'_, '_>) -> usize {
    node.range().start + 1
}

/// What the file has too much of for it to be parsed, if anything: place, word and problem.
///
/// An XML parser compares the attributes of an element with each other and keeps a state for each
/// level, so both are counted before it sees the text.
fn excess<'a>(kind: &Kind, text: &'a str) -> Option<(usize, &'a str, String)> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(found) = text[at..].find('<') {
        let start = at + found;
        let rest = &text[start..];
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")]
            .into_iter()
            .find(|(open, _)| rest.starts_with(open));
        if let Some((open, close)) = skipped {
            // Without its end it is not well-formed, which is the parser's to say.
            at = start + open.len() + rest[open.len()..].find(close)?;
            continue;
        }
        at = start + 1;
        if rest.starts_with("<!") {
            continue;
        }
        if rest.starts_with("</") {
            depth = depth.saturating_sub(1);
            continue;
        }
        let mut quote = None;
        let mut attributes = 0;
        let mut before = b'<';
        for (index, byte) in rest.bytes().enumerate() {
            at = start + index;
            match (byte, quote) {
                (b'"' | b'\'', None) => quote = Some(byte),
                (_, Some(open)) if byte == open => quote = None,
                (b'=', None) => attributes += 1,
                (b'>', None) => {
                    if before != b'/' {
                        depth += 1;
                    }
                    break;
                }
                _ => {}
            }
            before = byte;
        }
        // The last byte looked at is '>' or the last of the text, perhaps inside a character.
        while !text.is_char_boundary(at) {
            at += 1;
        }
        let word = word_at(text, start + 1);
        if kind.attributes_max < attributes {
            let problem = format!("has more than {} attributes", kind.attributes_max);
            return Some((start + 1, word, problem));
        }
        if kind.depth_max < depth {
            let problem = format!("is nested too deep; the most is {} levels", kind.depth_max);
            return Some((start + 1, word, problem));
        }
        if at + 1 >= text.len() {
            return None;
        }
    }
    None
}

/// Says where and what a text stops being XML.
fn syntax_problem<'a>(
    kind: &Kind,
    text: &'a str,
    error: &roxmltree::Error,
) -> (usize, &'a str, String) {
    use roxmltree::Error;
    let told = |problem: &str| problem.to_owned();
    match error {
        Error::DtdDetected => {
            let offset = text.find("<!DOCTYPE").unwrap_or_default();
            return (
                offset,
                "<!DOCTYPE",
                format!("is refused: {} has no document type", kind.name),
            );
        }
        Error::NodesLimitReached => {
            let problem =
                format!("has more than {} elements, comments and texts", kind.elements_max);
            return (0, kind.root, problem);
        }
        Error::NoRootNode | Error::UnclosedRootNode => {
            let problem = told("comes too early: an element is not closed, or there is none");
            return (text.len(), "end of file", problem);
        }
        _ => {}
    }
    let position = error.pos();
    let line = text.split_inclusive('\n').nth(position.row.saturating_sub(1) as usize);
    let offset = line.map_or(text.len(), |line| {
        let start = line.as_ptr() as usize - text.as_ptr() as usize;
        let column = position.col.saturating_sub(1) as usize;
        start + line.char_indices().nth(column).map_or(line.len(), |(index, _)| index)
    });
    let message = error.to_string();
    let message = message.strip_suffix(&format!(" at {position}")).unwrap_or(&message);
    (offset, word_at(text, offset), format!("is not well-formed XML: {message}"))
}

/// The word that begins at `offset`.
fn word_at(text: &str, offset: usize) -> &str {
    let rest = text.get(offset..).unwrap_or_default();
    let end = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | '=' | '/');
    match rest.char_indices().skip(1).find(|(_, c)| end(*c)) {
        Some((index, _)) => rest[..index].trim_end(),
        None => rest.trim_end(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind {
        name: "a test",
        root: "root",
        bytes_max: 1 << 20,
        elements_max: 1000,
        attributes_max: 10,
        depth_max: 5,
    };
    const WRONG: &str = "wrong";

    /// The places of all that is `wrong` in a text, as they are told.
    fn told(text: &str) -> Vec<(u32, u32)> {
        let result = read(&KIND, "t", text.as_bytes(), |root, places| {
            for node in std::iter::once(root).chain(places.elements(root)) {
                for attribute in node.attributes() {
                    if let Some(at) = attribute.value().find(WRONG) {
                        let offset = places.inside(attribute, at);
                        places.error(offset, WRONG, "is wrong".to_owned(), &[]);
                    }
                }
            }
        });
        let errors = result.err().map(|it| it.errors).unwrap_or_default();
        errors.iter().map(|it| (it.line, it.column)).collect()
    }

    /// Where it stands, as an editor shows it: characters of the line before it, and one more.
    fn shown(text: &str) -> Vec<(u32, u32)> {
        let place = |(at, _): (usize, &str)| {
            let before = &text[..at];
            let line = before.matches('\n').count() as u32 + 1;
            let column = before.rsplit('\n').next().unwrap_or_default();
            (line, column.trim_start_matches(MARK).chars().count() as u32 + 1)
        };
        text.match_indices(WRONG).map(place).collect()
    }

    #[test]
    fn places_are_those_of_the_words_whatever_stands_before_them() {
        let before = [
            "",
            " ",
            "a",
            "\t",
            "\n",
            "\r\n",
            "ä",
            "辻",
            "🦀",
            "&lt;",
            "&amp;",
            "&quot;",
            "&#10;",
            "&#x8fbb;",
            "&#128640;",
            "]]",
            "e\u{301}",
        ];
        for one in before {
            for two in before {
                for three in ["", "&gt;", "\r\n", "辻"] {
                    let lead = format!("{one}{two}{three}");
                    for text in [
                        format!("<root a=\"{lead}wrong\"/>"),
                        format!("\u{feff}<root a='{lead}wrong'/>"),
                        format!(
                            "<root>\r\n\t<!-- {one} -->\r\n<b c='{two}' a='{lead}wrong'/></root>"
                        ),
                    ] {
                        assert_eq!(told(&text), shown(&text), "{text:?}");
                    }
                }
            }
        }
        let blanks = ["", " ", "\t", "\n", "\r\n", "&#32;", "&#x9;", "<![CDATA[ ]]>", "<![CDATA["];
        for one in blanks {
            for two in &blanks[..7] {
                let end = if one.ends_with('[') { "]]>" } else { "" };
                let text = format!("<root>{two}{one}{two}wrong {end}</root>");
                if end.is_empty() || !two.starts_with('&') {
                    assert_eq!(told(&text), shown(&text), "{text:?}");
                }
            }
        }
    }
}

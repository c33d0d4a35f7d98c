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
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count());
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

    /// The place of a part of a value, as far as the value stands there as it is read: a reference
    /// such as `&lt;` shifts what follows, and then the value's own place has to do.
    pub fn inside(&self, attribute: Attribute<'_, '_>, at: usize) -> usize {
        let range = attribute.range_value();
        let start = range.start;
        if self.text.get(range).is_some_and(|raw| raw.len() == attribute.value().len()) {
            start + at
        } else {
            start
        }
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
                let offset = child.range().start + (text.len() - trimmed.len());
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

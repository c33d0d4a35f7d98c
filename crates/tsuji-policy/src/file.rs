use std::str::FromStr;
use std::sync::Arc;

use roxmltree::{Attribute, Document, Node, ParsingOptions};
use tsuji_core::{
    Conditions, DraftPolicy, Interop, Origin, Peer, Peers, Policy, Prefer, Reliability, RtpsEngine,
    Rule, Scope, Scopes, Setting, Size, Sourced, StatedSize, TopicPattern, TransportId,
    TransportSettings,
};

use crate::builtin::builtin_file;
use crate::error::shortened;
use crate::units::{SIZE_UNITS, parse_size};
use crate::{PolicyError, PolicyErrors};

/// The most bytes of a file.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// The most rules of a file, those that forbid included. The built-in default has room beside.
pub const RULES_MAX: usize = 1000;

/// The most elements, comments and texts of a file.
pub const ELEMENTS_MAX: u32 = 20_000;

/// The most attributes of an element. An XML parser compares each with each.
pub const ATTRIBUTES_MAX: usize = 256;

/// The deepest nesting. The deepest that means anything is 3.
pub const DEPTH_MAX: usize = 16;

/// The most characters of a name, a key or a plug-in's path.
const NAME_LENGTH_MAX: usize = 200;

/// The most characters of a setting's value.
const VALUE_LENGTH_MAX: usize = 64 * 1024;

const CONDITIONS: [&str; 6] = ["size", "scope", "reliability", "peer", "topic", "prefer"];

/// One policy file, understood but not yet laid over the built-in default.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyFile {
    prefer: Option<Sourced<Prefer>>,
    interop: Option<Sourced<Interop>>,
    engine: Option<Sourced<RtpsEngine>>,
    size_line_bytes: Option<Sourced<u64>>,
    over_builtin: bool,
    rules: Vec<Rule>,
    forbids: Vec<Rule>,
    stated_sizes: Vec<StatedSize>,
    transports: Vec<TransportSettings>,
}

impl PolicyFile {
    /// Understands the bytes of a file, or tells everything that is wrong with it.
    ///
    /// `file` is what messages call it; `known` are the transports that need no declaration.
    pub fn parse(file: &str, bytes: &[u8], known: &[&str]) -> Result<Self, PolicyErrors> {
        let file: Arc<str> = file.into();
        let refused = |text, offset, word: &str, problem: String| {
            let mut places = Places::new(file.clone(), text);
            places.error(offset, word, problem, &[]);
            PolicyErrors::new(places.errors)
        };
        if bytes.len() > FILE_BYTES_MAX {
            let problem = format!("bytes are too many; a policy file has at most {FILE_BYTES_MAX}");
            return Err(refused("", 0, &bytes.len().to_string(), problem));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let (good, bad) = bytes.split_at(error.valid_up_to());
            let good = std::str::from_utf8(good).unwrap_or_default();
            let word = format!("\\x{:02x}", bad.first().copied().unwrap_or_default());
            refused(good, good.len(), &word, "is not UTF-8".to_owned())
        })?;
        if let Some((offset, word, problem)) = excess(text) {
            return Err(refused(text, offset, word, problem));
        }
        let options =
            ParsingOptions { allow_dtd: false, nodes_limit: ELEMENTS_MAX, ..Default::default() };
        let document = Document::parse_with_options(text, options).map_err(|error| {
            let (offset, word, problem) = syntax_problem(text, &error);
            refused(text, offset, word, problem)
        })?;
        let reader = Reader { places: Places::new(file, text), known, plugins: Vec::new() };
        reader.read(document.root_element())
    }

    /// Lays the file over the built-in default, unless it says `builtin="off"`.
    ///
    /// The file's rules come first among equal priorities and replace those below of the same name,
    /// its stated sizes count first, and its values and settings replace those below.
    pub fn resolve(self) -> Result<Policy, PolicyErrors> {
        let mut below = if self.over_builtin { builtin_file() } else { Self::empty() };
        let named = |name: &Arc<str>| {
            let mut rules = self.rules.iter().chain(&self.forbids);
            rules.any(|rule| rule.name.as_ref() == Some(name))
        };
        below.rules.retain(|rule| !rule.name.as_ref().is_some_and(named));
        below.forbids.retain(|rule| !rule.name.as_ref().is_some_and(named));
        let default = DraftPolicy::default();
        let mut transports = self.transports;
        for below in below.transports {
            match transports.iter_mut().find(|above| above.transport == below.transport) {
                Some(above) => {
                    above.plugin = above.plugin.take().or(below.plugin);
                    for setting in below.settings {
                        if !above.settings.iter().any(|known| known.key == setting.key) {
                            above.settings.push(setting);
                        }
                    }
                }
                None => transports.push(below),
            }
        }
        let draft = DraftPolicy {
            prefer: self.prefer.or(below.prefer).unwrap_or(default.prefer),
            interop: self.interop.or(below.interop).unwrap_or(default.interop),
            engine: self.engine.or(below.engine).unwrap_or(default.engine),
            size_line_bytes: self
                .size_line_bytes
                .or(below.size_line_bytes)
                .unwrap_or(default.size_line_bytes),
            rules: [self.rules, below.rules].concat(),
            forbids: [self.forbids, below.forbids].concat(),
            stated_sizes: [self.stated_sizes, below.stated_sizes].concat(),
            transports,
        };
        // Each of the policy's own demands was checked with its place when the file was read, so
        // what is left has no better place than the whole file.
        let file = draft.rules.first().map(|rule| rule.origin.file.clone());
        Policy::new(draft).map_err(|invalid| {
            let mut places = Places::new(file.unwrap_or_default(), "");
            places.error(0, "tsuji", invalid.to_string(), &[]);
            PolicyErrors::new(places.errors)
        })
    }

    /// The same file with nothing below it.
    pub(crate) fn alone(self) -> Self {
        Self { over_builtin: false, ..self }
    }

    fn empty() -> Self {
        Self {
            prefer: None,
            interop: None,
            engine: None,
            size_line_bytes: None,
            over_builtin: true,
            rules: Vec::new(),
            forbids: Vec::new(),
            stated_sizes: Vec::new(),
            transports: Vec::new(),
        }
    }
}

/// Goes through the elements, collecting what is understood and what is wrong.
struct Reader<'a> {
    places: Places<'a>,
    known: &'a [&'a str],
    plugins: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    fn read(mut self, root: Node<'a, 'a>) -> Result<PolicyFile, PolicyErrors> {
        let mut file = PolicyFile::empty();
        if root.tag_name().name() != "tsuji" || root.tag_name().namespace().is_some() {
            self.unknown_element(root, &["tsuji"]);
            return Err(PolicyErrors::new(self.places.errors));
        }
        self.attributes(root, &["prefer", "interop", "engine", "builtin"]);
        file.prefer = self.sourced(root, "prefer", "preference", Prefer::WORDS);
        file.interop = self.sourced(root, "interop", "kind of interop", Interop::WORDS);
        file.engine = self.sourced(root, "engine", "known engine", RtpsEngine::WORDS);
        if let Some(builtin) = root.attribute_node("builtin") {
            match builtin.value() {
                "on" => {}
                "off" => file.over_builtin = false,
                word => {
                    let offset = builtin.range_value().start;
                    self.places.error(offset, word, "is not a switch".to_owned(), &["on", "off"]);
                }
            }
        }
        // Plug-ins may be declared below the rules that name them.
        self.plugins = root
            .children()
            .filter(|node| node.has_tag_name("transport") && node.has_attribute("plugin"))
            .filter_map(|node| node.attribute("name"))
            .filter(|name| is_transport_name(name))
            .collect();
        for node in self.elements(root) {
            match node.tag_name().name() {
                "size" => self.size(node, &mut file),
                "topic" => self.topic(node, &mut file),
                "rule" => self.rule(node, &mut file),
                "forbid" => self.forbid(node, &mut file),
                "transport" => self.transport(node, &mut file),
                _ => {
                    self.unknown_element(node, &["size", "topic", "rule", "forbid", "transport"]);
                }
            }
        }
        if self.places.errors.is_empty() {
            Ok(file)
        } else {
            Err(PolicyErrors::new(self.places.errors))
        }
    }

    fn size(&mut self, node: Node<'a, 'a>, file: &mut PolicyFile) {
        self.attributes(node, &["line"]);
        self.leaf(node);
        let Some(line) = self.required(node, "line") else { return };
        let origin = Some(self.places.origin(node));
        let Some(value) = self.bytes(line) else { return };
        if value == 0 {
            let offset = line.range_value().start;
            self.places.error(
                offset,
                line.value(),
                "is no line; it is at least 1B".to_owned(),
                &[],
            );
        } else if file.size_line_bytes.is_some() {
            self.twice(node, "size");
        } else {
            file.size_line_bytes = Some(Sourced { value, origin });
        }
    }

    fn topic(&mut self, node: Node<'a, 'a>, file: &mut PolicyFile) {
        self.attributes(node, &["pattern", "size", "expected"]);
        self.leaf(node);
        let size = self.word(node, "size", "size", Size::WORDS);
        let expected_bytes = node.attribute_node("expected").and_then(|it| self.bytes(it));
        if !node.has_attribute("size") && !node.has_attribute("expected") {
            let problem = "states nothing; give it one of the attributes".to_owned();
            self.places.error(name_offset(node), "topic", problem, &["size", "expected"]);
        }
        let Some(pattern) = self.required(node, "pattern") else { return };
        let Some(topic) = self.pattern(pattern) else { return };
        let origin = self.places.origin(node);
        file.stated_sizes.push(StatedSize { topic, size, expected_bytes, origin });
    }

    fn rule(&mut self, node: Node<'a, 'a>, file: &mut PolicyFile) {
        self.attributes(node, &[&["name", "priority", "use"], &CONDITIONS[..]].concat());
        let priority = match node.attribute_node("priority") {
            None => 0,
            Some(attribute) => attribute.value().parse().unwrap_or_else(|_| {
                let problem = format!("is not a priority; it is {} to {}", i32::MIN, i32::MAX);
                let offset = attribute.range_value().start;
                self.places.error(offset, attribute.value(), problem, &[]);
                0
            }),
        };
        if let Some(rule) = self.either_rule(node, priority, file) {
            file.rules.push(rule);
        }
    }

    fn forbid(&mut self, node: Node<'a, 'a>, file: &mut PolicyFile) {
        self.attributes(node, &[&["name", "use"], &CONDITIONS[..]].concat());
        if let Some(rule) = self.either_rule(node, 0, file) {
            file.forbids.push(rule);
        }
    }

    fn either_rule(
        &mut self,
        node: Node<'a, 'a>,
        priority: i32,
        file: &PolicyFile,
    ) -> Option<Rule> {
        self.leaf(node);
        let name = node.attribute_node("name").and_then(|name| self.rule_name(name, file));
        let scope = node.attribute_node("scope").map(|it| self.scopes(it));
        let peer = node.attribute_node("peer").map(|it| self.peers(it));
        let conditions = Conditions {
            size: self.word(node, "size", "size", Size::WORDS),
            scope,
            reliability: self.word(node, "reliability", "reliability", Reliability::WORDS),
            peer,
            topic: node.attribute_node("topic").and_then(|it| self.pattern(it)),
            prefer: self.word(node, "prefer", "preference", Prefer::WORDS),
        };
        let named = self.required(node, "use")?;
        let transports = self.transports(named);
        if file.rules.len() + file.forbids.len() == RULES_MAX {
            let word = node.tag_name().name();
            let problem = format!("is one too many; a file has at most {RULES_MAX} rules");
            self.places.error(name_offset(node), word, problem, &[]);
        }
        let origin = self.places.origin(node);
        Some(Rule { name, priority, conditions, transports, origin })
    }

    fn rule_name(&mut self, name: Attribute<'a, 'a>, file: &PolicyFile) -> Option<Arc<str>> {
        let value = self.short(name, NAME_LENGTH_MAX)?;
        let mut rules = file.rules.iter().chain(&file.forbids);
        if let Some(first) = rules.find(|rule| rule.name.as_deref() == Some(value)) {
            let problem = format!("is the name of the rule in line {} already", first.origin.line);
            self.places.error(name.range_value().start, value, problem, &[]);
        }
        Some(value.into())
    }

    fn transport(&mut self, node: Node<'a, 'a>, file: &mut PolicyFile) {
        self.attributes(node, &["name", "plugin"]);
        let plugin = node.attribute_node("plugin");
        let path = plugin.and_then(|plugin| self.short(plugin, NAME_LENGTH_MAX));
        let mut settings: Vec<Setting> = Vec::new();
        for child in self.elements(node) {
            if child.tag_name().name() != "set" {
                self.unknown_element(child, &["set"]);
                continue;
            }
            self.attributes(child, &["key", "value"]);
            self.leaf(child);
            let key = self.required(child, "key").and_then(|it| self.short(it, NAME_LENGTH_MAX));
            let value = self.required(child, "value").and_then(|value| {
                // An empty value can be meant, so only its length is looked at.
                let fits = value.value().chars().count() <= VALUE_LENGTH_MAX;
                if fits { Some(value.value()) } else { self.short(value, VALUE_LENGTH_MAX) }
            });
            let (Some(key), Some(value)) = (key, value) else { continue };
            if settings.iter().any(|setting| *setting.key == *key) {
                self.twice(child, key);
                continue;
            }
            let origin = self.places.origin(child);
            settings.push(Setting { key: key.into(), value: value.into(), origin });
        }
        let Some(name) = self.required(node, "name") else { return };
        let offset = name.range_value().start;
        if let (Some(plugin), true) = (plugin, self.known.contains(&name.value())) {
            let problem = format!("has no place here, {} is tsuji's own", name.value());
            self.places.error(plugin.range().start, "plugin", problem, &[]);
        } else if plugin.is_some() && !is_transport_name(name.value()) {
            let problem = "is not a name for a transport; it is a letter, then letters, digits, \
                           '_' and '-', at most 200"
                .to_owned();
            self.places.error(offset, name.value(), problem, &[]);
            return;
        } else if !self.transport_is_known(name.value()) {
            self.unknown_transport(offset, name.value());
            return;
        }
        let transport = TransportId::new(name.value());
        if file.transports.iter().any(|known| known.transport == transport) {
            self.twice(node, name.value());
            return;
        }
        let origin = self.places.origin(node);
        let plugin = path.map(Arc::from);
        file.transports.push(TransportSettings { transport, plugin, settings, origin });
    }

    /// The elements inside `node`; text between them is refused.
    fn elements(&mut self, node: Node<'a, 'a>) -> Vec<Node<'a, 'a>> {
        for child in node.children().filter(Node::is_text) {
            let text = child.text().unwrap_or_default();
            let trimmed = text.trim_start();
            if !trimmed.is_empty() {
                let offset = child.range().start + (text.len() - trimmed.len());
                let word = trimmed.split_whitespace().next().unwrap_or_default();
                let problem = "is text, which has no place here".to_owned();
                self.places.error(offset, word, problem, &[]);
            }
        }
        node.children().filter(Node::is_element).collect()
    }

    fn leaf(&mut self, node: Node<'a, 'a>) {
        for child in self.elements(node) {
            let word = child.tag_name().name();
            let problem = format!("has no place inside {:?}", node.tag_name().name());
            self.places.error(name_offset(child), word, problem, &[]);
        }
    }

    fn attributes(&mut self, node: Node<'a, 'a>, allowed: &[&str]) {
        if node.tag_name().namespace().is_some() {
            let problem = "is in a namespace, and a policy file has none".to_owned();
            self.places.error(name_offset(node), node.tag_name().name(), problem, &[]);
        }
        for attribute in node.attributes() {
            if attribute.namespace().is_some() || !allowed.contains(&attribute.name()) {
                let problem = format!("is not an attribute of {:?}", node.tag_name().name());
                let offset = attribute.range().start;
                self.places.error(offset, attribute.name(), problem, allowed);
            }
        }
    }

    fn required(&mut self, node: Node<'a, 'a>, name: &str) -> Option<Attribute<'a, 'a>> {
        let attribute = node.attribute_node(name);
        if attribute.is_none() {
            let word = node.tag_name().name();
            let problem = format!("lacks the attribute {name:?}");
            self.places.error(name_offset(node), word, problem, &[]);
        }
        attribute
    }

    fn word<T: FromStr>(
        &mut self,
        node: Node<'a, 'a>,
        name: &str,
        what: &str,
        words: &[&str],
    ) -> Option<T> {
        let attribute = node.attribute_node(name)?;
        let value = attribute.value().parse().ok();
        if value.is_none() {
            let problem = format!("is not a {what}");
            self.places.error(attribute.range_value().start, attribute.value(), problem, words);
        }
        value
    }

    fn sourced<T: FromStr>(
        &mut self,
        node: Node<'a, 'a>,
        name: &str,
        what: &str,
        words: &[&str],
    ) -> Option<Sourced<T>> {
        let value = self.word(node, name, what, words)?;
        let origin = node.attribute_node(name).map(|it| self.places.origin_at(it.range().start));
        Some(Sourced { value, origin })
    }

    fn bytes(&mut self, attribute: Attribute<'a, 'a>) -> Option<u64> {
        let bytes = parse_size(attribute.value());
        if bytes.is_none() {
            let units: Vec<&str> = SIZE_UNITS.iter().map(|(unit, _)| *unit).collect();
            let problem =
                format!("is not a size; it is a whole number and one of {}", units.join(", "));
            self.places.error(attribute.range_value().start, attribute.value(), problem, &[]);
        }
        bytes
    }

    fn pattern(&mut self, attribute: Attribute<'a, 'a>) -> Option<TopicPattern> {
        let value = attribute.value();
        match value.parse::<TopicPattern>() {
            Ok(pattern) => Some(pattern),
            Err(invalid) => {
                let at = value.char_indices().nth(invalid.position - 1);
                let inside = at.map_or(value.len(), |(index, _)| index);
                let offset = self.places.inside(attribute, inside);
                let problem = format!("is not a topic pattern, {invalid}");
                self.places.error(offset, value, problem, &[]);
                None
            }
        }
    }

    fn scopes(&mut self, attribute: Attribute<'a, 'a>) -> Scopes {
        let mut scopes = Scopes::default();
        for (offset, word) in self.list(attribute) {
            match word.parse() {
                Ok(Scope::Intra) => scopes.intra = true,
                Ok(Scope::Local) => scopes.local = true,
                Ok(Scope::Remote) => scopes.remote = true,
                Err(_) => {
                    self.places.error(offset, word, "is not a scope".to_owned(), Scope::WORDS);
                }
            }
        }
        scopes
    }

    fn peers(&mut self, attribute: Attribute<'a, 'a>) -> Peers {
        let mut peers = Peers::default();
        for (offset, word) in self.list(attribute) {
            let more = match word.parse::<Peer>() {
                Ok(peer) => Peers::from(peer),
                Err(_) if word == "plain" => Peers::PLAIN,
                Err(_) => {
                    let allowed = [&["plain"], Peer::WORDS].concat();
                    self.places.error(offset, word, "is not a peer".to_owned(), &allowed);
                    continue;
                }
            };
            peers = peers.union(more);
        }
        peers
    }

    fn transports(&mut self, attribute: Attribute<'a, 'a>) -> Vec<TransportId> {
        let mut transports: Vec<TransportId> = Vec::new();
        for (offset, word) in self.list(attribute) {
            if !self.transport_is_known(word) {
                self.unknown_transport(offset, word);
                continue;
            }
            let transport = TransportId::new(word);
            if transports.contains(&transport) {
                self.places.error(offset, word, "is named twice".to_owned(), &[]);
            } else if transports.len() == Policy::TRANSPORTS_PER_RULE_MAX {
                let max = Policy::TRANSPORTS_PER_RULE_MAX;
                let problem = format!("is one too many; a rule names at most {max}");
                self.places.error(offset, word, problem, &[]);
                break;
            } else {
                transports.push(transport);
            }
        }
        transports
    }

    /// The words of a list, each with its place; an empty list is refused.
    fn list(&mut self, attribute: Attribute<'a, 'a>) -> Vec<(usize, &'a str)> {
        let value = attribute.value();
        let mut words = Vec::new();
        let mut at = 0;
        for word in value.split(' ') {
            if !word.is_empty() {
                words.push((self.places.inside(attribute, at), word));
            }
            at += word.len() + 1;
        }
        if words.is_empty() {
            let problem = "is empty; leave it out, or name at least one".to_owned();
            self.places.error(attribute.range().start, attribute.name(), problem, &[]);
        }
        words
    }

    /// A value that is neither empty nor too long.
    fn short(&mut self, attribute: Attribute<'a, 'a>, length_max: usize) -> Option<&'a str> {
        let value = attribute.value();
        let length = value.chars().count();
        if (1..=length_max).contains(&length) {
            return Some(value);
        }
        let problem = format!("has {length} characters; it has 1 to {length_max}");
        self.places.error(attribute.range().start, attribute.name(), problem, &[]);
        None
    }

    fn transport_is_known(&self, name: &str) -> bool {
        self.known.contains(&name) || self.plugins.contains(&name)
    }

    fn unknown_transport(&mut self, offset: usize, word: &str) {
        let allowed = [self.known, &self.plugins].concat();
        self.places.error(offset, word, "is not a transport".to_owned(), &allowed);
    }

    fn unknown_element(&mut self, node: Node<'a, 'a>, allowed: &[&str]) {
        let problem = "is not an element here".to_owned();
        self.places.error(name_offset(node), node.tag_name().name(), problem, allowed);
    }

    fn twice(&mut self, node: Node<'a, 'a>, word: &str) {
        self.places.error(name_offset(node), word, "is written twice".to_owned(), &[]);
    }
}

/// Turns offsets into lines and columns, and collects errors.
struct Places<'a> {
    file: Arc<str>,
    text: &'a str,
    line_starts: Vec<usize>,
    errors: Vec<PolicyError>,
}

impl<'a> Places<'a> {
    fn new(file: Arc<str>, text: &'a str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(after_newlines).collect();
        Self { file, text, line_starts, errors: Vec::new() }
    }

    fn error(&mut self, offset: usize, word: &str, problem: String, allowed: &[&str]) {
        let (line, start) = self.line(offset);
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count());
        let column = u32::try_from(column + 1).unwrap_or(u32::MAX);
        let (file, word) = (self.file.clone(), shortened(word));
        let allowed = allowed.iter().map(|&word| word.to_owned()).collect();
        self.errors.push(PolicyError { file, line, column, word, problem, allowed });
    }

    fn origin(&self, node: Node<'_, '_>) -> Origin {
        self.origin_at(node.range().start)
    }

    fn origin_at(&self, offset: usize) -> Origin {
        Origin { file: self.file.clone(), line: self.line(offset).0 }
    }

    /// The place of a part of a value, as far as the value stands there as it is read: a reference
    /// such as `&lt;` shifts what follows, and then the value's own place has to do.
    fn inside(&self, attribute: Attribute<'_, '_>, at: usize) -> usize {
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
}

fn is_transport_name(name: &str) -> bool {
    name.len() <= NAME_LENGTH_MAX
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

fn name_offset(node: Node<'_, '_>) -> usize {
    node.range().start + 1
}

/// What the file has too much of for it to be parsed, if anything: place, word and problem.
///
/// An XML parser compares the attributes of an element with each other and keeps a state for each
/// level, so both are counted before it sees the text.
fn excess(text: &str) -> Option<(usize, &str, String)> {
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
        if attributes > ATTRIBUTES_MAX {
            let problem = format!("has more than {ATTRIBUTES_MAX} attributes");
            return Some((start + 1, word, problem));
        }
        if depth > DEPTH_MAX {
            let problem = format!("is nested too deep; the most is {DEPTH_MAX} levels");
            return Some((start + 1, word, problem));
        }
        if at + 1 >= text.len() {
            return None;
        }
    }
    None
}

/// Says where and what a text stops being XML.
fn syntax_problem<'a>(text: &'a str, error: &roxmltree::Error) -> (usize, &'a str, String) {
    use roxmltree::Error;
    let told = |problem: &str| problem.to_owned();
    match error {
        Error::DtdDetected => {
            let offset = text.find("<!DOCTYPE").unwrap_or_default();
            return (offset, "<!DOCTYPE", told("is refused: a policy file has no document type"));
        }
        Error::NodesLimitReached => {
            let problem = format!("has more than {ELEMENTS_MAX} elements, comments and texts");
            return (0, "tsuji", problem);
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

use std::str::FromStr;
use std::sync::Arc;

use tsuji_core::{
    Conditions, DraftPolicy, Export, Interop, Origin, Peer, Peers, Policy, Prefer, Rate,
    Reliability, Robot, RtpsEngine, Rule, Scope, Scopes, Setting, Size, Sourced, StatedSize,
    TopicPattern, TransportId, TransportSettings,
};
use tsuji_xml::{Attribute, Kind, Node, Places, name_offset};

use crate::builtin::builtin_file;
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

const KIND: Kind = Kind {
    name: "a policy file",
    root: "tsuji",
    bytes_max: FILE_BYTES_MAX,
    elements_max: ELEMENTS_MAX,
    attributes_max: ATTRIBUTES_MAX,
    depth_max: DEPTH_MAX,
};

/// The most characters of a name, a key or a plug-in's path.
const NAME_LENGTH_MAX: usize = 200;

/// The most characters of a setting's value.
const VALUE_LENGTH_MAX: usize = 64 * 1024;

const ELEMENTS: [&str; 7] = ["size", "topic", "rule", "forbid", "transport", "robot", "export"];

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
    robot: Option<Sourced<Robot>>,
    exports: Vec<Export>,
    warnings: Vec<String>,
}

impl PolicyFile {
    /// Understands the bytes of a file, or tells everything that is wrong with it.
    ///
    /// `file` is what messages call it; `known` are the transports that need no declaration.
    pub fn parse(file: &str, bytes: &[u8], known: &[&str]) -> Result<Self, PolicyErrors> {
        tsuji_xml::read(&KIND, file, bytes, |root, places| {
            Reader { places, known, plugins: Vec::new(), warnings: Vec::new() }.read(root)
        })
    }

    /// Words of older files that were understood, each with its place and the word that took its place.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
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
            robot: self.robot.or(below.robot),
            exports: [self.exports, below.exports].concat(),
        };
        // Each of the policy's own demands was checked with its place when the file was read, so
        // what is left has no better place than the whole file.
        let file = draft.rules.first().map(|rule| rule.origin.file.clone());
        Policy::new(draft).map_err(|invalid| {
            PolicyErrors::new(vec![PolicyError {
                file: file.unwrap_or_default(),
                line: 1,
                column: 1,
                word: "tsuji".to_owned(),
                problem: invalid.to_string(),
                allowed: Vec::new(),
            }])
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
            robot: None,
            exports: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// Goes through the elements, collecting what is understood and what is wrong.
struct Reader<'a, 'b> {
    places: &'b mut Places<'a>,
    known: &'b [&'b str],
    plugins: Vec<&'a str>,
    warnings: Vec<String>,
}

impl<'a> Reader<'a, '_> {
    fn read(mut self, root: Node<'a, 'a>) -> PolicyFile {
        let mut file = PolicyFile::empty();
        self.places.attributes(root, &["prefer", "interop", "engine", "builtin"]);
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
        for node in self.places.elements(root) {
            match node.tag_name().name() {
                "size" => self.size(node, &mut file),
                "topic" => self.topic(node, &mut file),
                "rule" => self.rule(node, &mut file),
                "forbid" => self.forbid(node, &mut file),
                "transport" => self.transport(node, &mut file),
                "robot" => self.robot(node, &mut file),
                "export" => self.export(node, &mut file),
                _ => self.places.unknown_element(node, &ELEMENTS),
            }
        }
        file.warnings = self.warnings;
        file
    }

    fn size(&mut self, node: Node<'a, 'a>, file: &mut PolicyFile) {
        self.places.attributes(node, &["line"]);
        self.places.leaf(node);
        let Some(line) = self.places.required(node, "line") else { return };
        let origin = Some(self.origin(name_offset(node)));
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
        self.places.attributes(node, &["pattern", "size", "expected"]);
        self.places.leaf(node);
        let size = self.word(node, "size", "size", Size::WORDS);
        let expected_bytes = node.attribute_node("expected").and_then(|it| self.bytes(it));
        if !node.has_attribute("size") && !node.has_attribute("expected") {
            let problem = "states nothing; give it one of the attributes".to_owned();
            self.places.error(name_offset(node), "topic", problem, &["size", "expected"]);
        }
        let Some(pattern) = self.places.required(node, "pattern") else { return };
        let Some(topic) = self.pattern(pattern) else { return };
        let origin = self.origin(name_offset(node));
        file.stated_sizes.push(StatedSize { topic, size, expected_bytes, origin });
    }

    fn robot(&mut self, node: Node<'a, 'a>, file: &mut PolicyFile) {
        self.places.attributes(node, &["name", "shared"]);
        self.places.leaf(node);
        let shared = node.attribute_node("shared").map(|it| self.patterns(it)).unwrap_or_default();
        let Some(name) = self.places.required(node, "name") else { return };
        let origin = Some(self.origin(name_offset(node)));
        match Robot::new(name.value(), shared) {
            Ok(_) if file.robot.is_some() => self.twice(node, "robot"),
            Ok(value) => file.robot = Some(Sourced { value, origin }),
            Err(error) => {
                let offset = name.range_value().start;
                self.places.error(offset, name.value(), format!("is {error}"), &[]);
            }
        }
    }

    fn export(&mut self, node: Node<'a, 'a>, file: &mut PolicyFile) {
        self.places.attributes(node, &["topic", "rate"]);
        self.places.leaf(node);
        let rate = node.attribute_node("rate").and_then(|it| {
            let offset = it.range_value().start;
            let say = |error| self.places.error(offset, it.value(), format!("is {error}"), &[]);
            it.value().parse::<Rate>().map_err(say).ok()
        });
        let Some(topic) = self.places.required(node, "topic") else { return };
        let Some(topic) = self.pattern(topic) else { return };
        file.exports.push(Export { topic, rate, origin: self.origin(name_offset(node)) });
    }

    fn rule(&mut self, node: Node<'a, 'a>, file: &mut PolicyFile) {
        self.places.attributes(node, &[&["name", "priority", "use"], &CONDITIONS[..]].concat());
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
        self.places.attributes(node, &[&["name", "use"], &CONDITIONS[..]].concat());
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
        self.places.leaf(node);
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
        let named = self.places.required(node, "use")?;
        let transports = self.transports(named);
        if file.rules.len() + file.forbids.len() == RULES_MAX {
            let word = node.tag_name().name();
            let problem = format!("is one too many; a file has at most {RULES_MAX} rules");
            self.places.error(name_offset(node), word, problem, &[]);
        }
        let origin = self.origin(name_offset(node));
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
        self.places.attributes(node, &["name", "plugin"]);
        let plugin = node.attribute_node("plugin");
        let path = plugin.and_then(|plugin| self.short(plugin, NAME_LENGTH_MAX));
        let mut settings: Vec<Setting> = Vec::new();
        for child in self.places.elements(node) {
            if child.tag_name().name() != "set" {
                self.places.unknown_element(child, &["set"]);
                continue;
            }
            self.places.attributes(child, &["key", "value"]);
            self.places.leaf(child);
            let key =
                self.places.required(child, "key").and_then(|it| self.short(it, NAME_LENGTH_MAX));
            let value = self.places.required(child, "value").and_then(|value| {
                // An empty value can be meant, so only its length is looked at.
                let fits = value.value().chars().count() <= VALUE_LENGTH_MAX;
                if fits { Some(value.value()) } else { self.short(value, VALUE_LENGTH_MAX) }
            });
            let (Some(key), Some(value)) = (key, value) else { continue };
            if settings.iter().any(|setting| *setting.key == *key) {
                self.twice(child, key);
                continue;
            }
            let origin = self.origin(name_offset(child));
            settings.push(Setting { key: key.into(), value: value.into(), origin });
        }
        let Some(name) = self.places.required(node, "name") else { return };
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
        let origin = self.origin(name_offset(node));
        let plugin = path.map(Arc::from);
        file.transports.push(TransportSettings { transport, plugin, settings, origin });
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
        let origin = node.attribute_node(name).map(|it| self.origin(it.range().start));
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
        self.pattern_at(attribute, 0, attribute.value())
    }

    /// All of a list.
    fn patterns(&mut self, attribute: Attribute<'a, 'a>) -> Vec<TopicPattern> {
        let mut patterns = Vec::new();
        for (at, word) in words_of(attribute.value()) {
            patterns.extend(self.pattern_at(attribute, at, word));
        }
        self.refuse_empty(attribute);
        patterns
    }

    /// The pattern that stands in a value at this place.
    fn pattern_at(
        &mut self,
        attribute: Attribute<'a, 'a>,
        at: usize,
        word: &str,
    ) -> Option<TopicPattern> {
        match word.parse::<TopicPattern>() {
            Ok(pattern) => Some(pattern),
            Err(invalid) => {
                let inside = word.char_indices().nth(invalid.position - 1);
                let inside = inside.map_or(word.len(), |(index, _)| index);
                let offset = self.places.inside(attribute, at + inside);
                let problem = format!("is not a topic pattern, {invalid}");
                self.places.error(offset, word, problem, &[]);
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
                Err(_) if word == "foreign" => Peers::FOREIGN,
                Err(_) if word == "plain" => {
                    self.retired(offset, word, "foreign");
                    Peers::FOREIGN
                }
                Err(_) => {
                    let allowed = [&["foreign"], Peer::WORDS].concat();
                    self.places.error(offset, word, "is not a peer".to_owned(), &allowed);
                    continue;
                }
            };
            peers = peers.union(more);
        }
        peers
    }

    /// Notes a word of older files that is still understood.
    fn retired(&mut self, offset: usize, word: &str, now: &str) {
        let (file, line) = (self.places.file(), self.places.line_of(offset));
        self.warnings.push(format!("{file}:{line}: {word:?} is {now:?} now"));
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
        self.refuse_empty(attribute);
        let words = words_of(attribute.value());
        words.into_iter().map(|(at, word)| (self.places.inside(attribute, at), word)).collect()
    }

    fn refuse_empty(&mut self, attribute: Attribute<'a, 'a>) {
        if words_of(attribute.value()).is_empty() {
            let problem = "is empty; leave it out, or name at least one".to_owned();
            self.places.error(attribute.range().start, attribute.name(), problem, &[]);
        }
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

    fn origin(&self, offset: usize) -> Origin {
        Origin { file: self.places.file().clone(), line: self.places.line_of(offset) }
    }

    fn twice(&mut self, node: Node<'a, 'a>, word: &str) {
        self.places.error(name_offset(node), word, "is written twice".to_owned(), &[]);
    }
}

/// The words of a list, each with where it begins.
fn words_of(value: &str) -> Vec<(usize, &str)> {
    let words = value.split(' ').scan(0, |at, word| {
        let begins = *at;
        *at += word.len() + 1;
        Some((begins, word))
    });
    words.filter(|(_, word)| !word.is_empty()).collect()
}

fn is_transport_name(name: &str) -> bool {
    name.len() <= NAME_LENGTH_MAX
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

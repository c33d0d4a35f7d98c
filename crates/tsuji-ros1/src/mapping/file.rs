//! Files of mapping rules, as ros1_bridge has them.

use super::{FieldRules, FieldValues, MappingError, NameRule, Named};
use crate::types::is_identifier;
use tsuji_msg::yaml::{self, Node, NodeKind};
use tsuji_msg::{Kind, TypeName};

/// A rule as it is written.
pub(super) struct Rule {
    pub(super) name: NameRule,
    pub(super) fields: Vec<((String, String), FieldRules)>,
    pub(super) definitions: Vec<(String, String)>,
}

const KEYS: [&str; 12] = [
    "ros1_package_name",
    "ros2_package_name",
    "ros1_message_name",
    "ros2_message_name",
    "fields_1_to_2",
    "values_1_to_2",
    "ros1_service_name",
    "ros2_service_name",
    "request_fields_1_to_2",
    "response_fields_1_to_2",
    "ros1_definition",
    "enable_foreign_mappings",
];

/// Reads the rules of a file in their order.
pub(super) fn parse(file: &str, text: &str) -> Result<Vec<Rule>, MappingError> {
    let root = yaml::parse(text).map_err(|error| MappingError {
        file: file.into(),
        place: error.place.unwrap_or((1, 1)),
        found: error.found,
        allowed: error.expected,
    })?;
    let file = File(file);
    match &root.kind {
        NodeKind::Sequence(rules) => rules.iter().map(|rule| file.rule(rule)).collect(),
        NodeKind::Scalar { text, plain: true } if text.is_empty() => Ok(Vec::new()),
        _ => Err(file.error(&root, root.describe(), "a list of mapping rules")),
    }
}

/// The file of which errors tell.
#[derive(Clone, Copy)]
struct File<'a>(&'a str);

/// The entries of one rule.
struct Entries<'a> {
    file: File<'a>,
    rule: &'a Node,
    entries: &'a [(String, Node)],
}

impl<'a> File<'a> {
    fn error(self, node: &Node, found: impl Into<String>, allowed: &str) -> MappingError {
        MappingError {
            file: self.0.into(),
            place: node.place,
            found: found.into(),
            allowed: allowed.into(),
        }
    }

    fn rule(self, rule: &'a Node) -> Result<Rule, MappingError> {
        let NodeKind::Mapping(entries) = &rule.kind else {
            return Err(self.error(rule, rule.describe(), "a mapping rule: a mapping of keys"));
        };
        if let Some((key, value)) = entries.iter().find(|(key, _)| !KEYS.contains(&key.as_str())) {
            let place = value.name_place.unwrap_or(value.place);
            let error = self.error(value, format!("the key `{key}`"), &KEYS.join(", "));
            return Err(MappingError { place, ..error });
        }
        let entries = Entries { file: self, rule, entries };
        let ros1_package = entries.needed("ros1_package_name", Word::Ros1)?;
        let ros2_package = entries.needed("ros2_package_name", Word::Package)?;
        let message = entries.pair("ros1_message_name", "ros2_message_name")?;
        let service = entries.pair("ros1_service_name", "ros2_service_name")?;
        let (of, allowed): (_, &[&str]) = match (message, service) {
            (None, None) => (Named::Package, &[]),
            (Some((ros1, ros2)), None) => (
                Named::Message { ros1, ros2 },
                &["fields_1_to_2", "values_1_to_2", "ros1_definition"],
            ),
            (None, Some((ros1, ros2))) => (
                Named::Service { ros1, ros2 },
                &["request_fields_1_to_2", "response_fields_1_to_2", "ros1_definition"],
            ),
            (Some(_), Some(_)) => {
                let found = "a rule for a message and a service at once";
                return Err(self.error(rule, found, "one rule for each"));
            }
        };
        entries.refuse_others(allowed)?;
        let mut new = Rule {
            name: NameRule { ros1_package, ros2_package, of },
            fields: Vec::new(),
            definitions: Vec::new(),
        };
        entries.details(&mut new)?;
        Ok(new)
    }
}

/// What a word must be.
#[derive(Clone, Copy)]
enum Word {
    /// A package or type of ROS 1.
    Ros1,
    /// A package of ROS 2.
    Package,
    /// A type of ROS 2.
    Type,
}

impl Entries<'_> {
    fn find(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    fn text<'n>(&self, node: &'n Node, allowed: &str) -> Result<&'n str, MappingError> {
        match &node.kind {
            NodeKind::Scalar { text, .. } => Ok(text),
            _ => Err(self.file.error(node, node.describe(), allowed)),
        }
    }

    fn needed(&self, key: &str, word: Word) -> Result<String, MappingError> {
        let Some(node) = self.find(key) else {
            let found = format!("a rule without `{key}`");
            return Err(self.file.error(self.rule, found, "rules that name both packages"));
        };
        self.name(node, word)
    }

    fn name(&self, node: &Node, word: Word) -> Result<String, MappingError> {
        let allowed = match word {
            Word::Ros1 => "a letter, then letters, digits and underscores",
            Word::Package => "the name of a package of ROS 2",
            Word::Type => "the name of a type of ROS 2 without its package",
        };
        let text = self.text(node, allowed)?;
        let is_one = match word {
            Word::Ros1 => is_identifier(text),
            Word::Package => TypeName::new(text, Kind::Message, "Name").is_ok(),
            Word::Type => TypeName::new("package", Kind::Message, text).is_ok(),
        };
        if !is_one {
            return Err(self.file.error(node, node.describe(), allowed));
        }
        Ok(text.to_owned())
    }

    /// Two names that come together or not at all.
    fn pair(&self, ros1: &str, ros2: &str) -> Result<Option<(String, String)>, MappingError> {
        match (self.find(ros1), self.find(ros2)) {
            (None, None) => Ok(None),
            (Some(one), Some(two)) => {
                Ok(Some((self.name(one, Word::Ros1)?, self.name(two, Word::Type)?)))
            }
            (Some(node), None) | (None, Some(node)) => {
                let found = format!("a rule with only one of `{ros1}` and `{ros2}`");
                Err(self.file.error(node, found, "both or none"))
            }
        }
    }

    /// Refuses the keys that belong to another kind of rule.
    fn refuse_others(&self, allowed: &[&str]) -> Result<(), MappingError> {
        let is_detail = |key: &str| key.ends_with("_1_to_2") || key == "ros1_definition";
        let wrong =
            self.entries.iter().find(|(key, _)| is_detail(key) && !allowed.contains(&key.as_str()));
        let Some((key, node)) = wrong else { return Ok(()) };
        let allowed = match allowed {
            [] => "no more than the names of the packages, or the names of a message or service"
                .into(),
            keys => format!("in this rule {}", keys.join(", ")),
        };
        let place = node.name_place.unwrap_or(node.place);
        let error = self.file.error(node, format!("the key `{key}`"), &allowed);
        Err(MappingError { place, ..error })
    }

    fn details(&self, rule: &mut Rule) -> Result<(), MappingError> {
        let NameRule { ros1_package, ros2_package, of } = &rule.name;
        let definition = match self.find("ros1_definition") {
            Some(node) => Some((self.text(node, "fields and constants of ROS 1")?, node)),
            None => None,
        };
        match of {
            Named::Package => {}
            Named::Message { ros1, ros2 } => {
                let ros1 = format!("{ros1_package}/{ros1}");
                let pairs = self.fields("fields_1_to_2")?;
                let values = self.values()?;
                if pairs.is_some() || !values.is_empty() {
                    let names = (ros1.clone(), format!("{ros2_package}/msg/{ros2}"));
                    let rules = FieldRules { pairs: pairs.unwrap_or_default(), values };
                    rule.fields.push((names, rules));
                }
                rule.definitions.extend(definition.map(|(text, _)| (ros1, text.to_owned())));
            }
            Named::Service { ros1, ros2 } => {
                let ros1 = format!("{ros1_package}/{ros1}");
                let ros2 = format!("{ros2_package}/srv/{ros2}");
                let parts =
                    [("request_fields_1_to_2", "Request"), ("response_fields_1_to_2", "Response")];
                for (key, part) in parts {
                    if let Some(pairs) = self.fields(key)? {
                        let names = (format!("{ros1}{part}"), format!("{ros2}_{part}"));
                        rule.fields.push((names, FieldRules { pairs, values: Vec::new() }));
                    }
                }
                if let Some((text, node)) = definition {
                    let split = crate::types::split_service(&ros1, text);
                    let (request, response) = split.map_err(|error| {
                        let allowed = "request and response with one line of `---` between";
                        self.file.error(node, error.to_string(), allowed)
                    })?;
                    rule.definitions.push((format!("{ros1}Request"), request.to_owned()));
                    rule.definitions.push((format!("{ros1}Response"), response.to_owned()));
                }
            }
        }
        Ok(())
    }

    /// Fields of ROS 1 with those of ROS 2.
    fn fields(&self, key: &str) -> Result<Option<Vec<(String, String)>>, MappingError> {
        let Some(node) = self.find(key) else { return Ok(None) };
        let NodeKind::Mapping(entries) = &node.kind else {
            let allowed = "a mapping from fields of ROS 1 to fields of ROS 2";
            return Err(self.file.error(node, node.describe(), allowed));
        };
        let mut pairs = Vec::with_capacity(entries.len());
        for (ros1, node) in entries {
            let allowed = "a field such as `stamp` or `header.stamp`";
            let ros2 = self.text(node, allowed)?;
            if !is_path(ros1) || !is_path(ros2) {
                let wrong = if is_path(ros1) { ros2 } else { ros1 };
                return Err(self.file.error(node, format!("`{wrong}`"), allowed));
            }
            if pairs.iter().any(|(_, other)| *other == ros2) {
                let found = format!("the ROS 2 field `{ros2}` again");
                return Err(self.file.error(node, found, "each field at most once"));
            }
            pairs.push((ros1.clone(), ros2.to_owned()));
        }
        Ok(Some(pairs))
    }

    /// Numbers of ROS 1 with those of ROS 2 by field, in the order of those of ROS 1.
    fn values(&self) -> Result<Vec<FieldValues>, MappingError> {
        let allowed = "for each field whole numbers of ROS 1 with those of ROS 2: {level: {1: 10}}";
        let Some(node) = self.find("values_1_to_2") else { return Ok(Vec::new()) };
        let NodeKind::Mapping(fields) = &node.kind else {
            return Err(self.file.error(node, node.describe(), allowed));
        };
        let mut all = Vec::with_capacity(fields.len());
        for (field, node) in fields {
            let wrong = || self.file.error(node, node.describe(), allowed);
            let NodeKind::Mapping(numbers) = &node.kind else { return Err(wrong()) };
            let number = |text: &str| yaml::integer(text).and_then(|it| i64::try_from(it).ok());
            let mut pairs = Vec::with_capacity(numbers.len());
            for (ros1, node) in numbers {
                let ros2 = number(self.text(node, allowed)?);
                let wrong =
                    || self.file.error(node, format!("`{ros1}`: {}", node.describe()), allowed);
                pairs.push(number(ros1).zip(ros2).ok_or_else(wrong)?);
            }
            if pairs.is_empty() || !is_path(field) {
                return Err(wrong());
            }
            all.push((field.clone(), pairs));
        }
        Ok(all)
    }
}

fn is_path(text: &str) -> bool {
    text.split('.').all(is_identifier)
}

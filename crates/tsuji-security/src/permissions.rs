//! What participants may publish and subscribe to: the permissions document, section 9.4.1.3 of DDS Security 1.1.

use std::fmt;
use std::time::SystemTime;

use tsuji_xml::{Kind, Node, XmlErrors, name_offset};

use crate::certificate::Certificate;
use crate::name::Name;
use crate::pattern::Pattern;
use crate::reader::{Domains, Reader, kind};

const KIND: Kind = kind("a permissions document");

/// A permissions document.
#[derive(Clone, Debug, PartialEq)]
pub struct Permissions {
    grants: Vec<Grant>,
}

/// What one subject may do while it is valid.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    name: String,
    subject: Name,
    not_before: SystemTime,
    not_after: SystemTime,
    rules: Vec<Rule>,
    allows_the_rest: bool,
    default_line: u32,
}

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    allows: bool,
    domains: Domains,
    criteria: Vec<Criterion>,
    line: u32,
}

/// One `publish` or `subscribe` of a rule.
#[derive(Clone, Debug, PartialEq)]
struct Criterion {
    deed: Deed,
    topics: Vec<Pattern>,
    partitions: Vec<Pattern>,
    line: u32,
}

/// What is done with a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Sending samples.
    Publish,
    /// Receiving samples.
    Subscribe,
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Publish => "publish",
            Self::Subscribe => "subscribe",
        })
    }
}

/// Whether something is allowed, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it is.
    pub is_allowed: bool,
    /// The rule, or why none counts, for people: ``deny_rule of grant "/talker" in line 12``.
    pub because: String,
}

impl Permissions {
    /// Reads a document, which messages call `file`.
    ///
    /// # Errors
    ///
    /// All that is wrong with it, each with its place.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, XmlErrors> {
        tsuji_xml::read(&KIND, file, bytes, |root, places| Reader { places }.permissions(root))
    }

    /// The grant of whom a certificate is for, the first there is.
    pub fn grant(&self, certificate: &Certificate) -> Option<&Grant> {
        self.grant_of(certificate.name())
    }

    fn grant_of(&self, subject: &Name) -> Option<&Grant> {
        self.grants.iter().find(|it| it.subject.is_same(subject))
    }
}

impl Grant {
    /// Its name, which says nothing of whom it is for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// From when to when it counts.
    pub fn validity(&self) -> (SystemTime, SystemTime) {
        (self.not_before, self.not_after)
    }

    /// Words for what it says of the rest.
    fn default(&self) -> String {
        let word = if self.allows_the_rest { "ALLOW" } else { "DENY" };
        format!("its default in line {} is {word}", self.default_line)
    }

    /// Whether a domain may be joined at all, as governance may ask.
    pub fn may_join(&self, domain: u32) -> Answer {
        let name = &self.name;
        let rule = self.rules.iter().find(|it| it.allows && it.domains.have(domain));
        let because = match rule {
            Some(rule) => format!("allow_rule in line {} of grant {name:?}", rule.line),
            None => {
                let default = self.default();
                format!("no allow_rule of grant {name:?} is about domain {domain}; {default}")
            }
        };
        Answer { is_allowed: rule.is_some() || self.allows_the_rest, because }
    }

    /// Whether this may be done in a domain with a topic as DDS names it, such as `rt/chatter`, in no partition.
    ///
    /// Rules are tried in their order; the first that names the topic counts.
    pub fn may(&self, deed: Deed, domain: u32, topic: &str) -> Answer {
        let name = &self.name;
        for rule in self.rules.iter().filter(|it| it.domains.have(domain)) {
            let mut criteria = rule.criteria.iter().filter(|it| it.deed == deed);
            if let Some(found) = criteria.find(|it| it.names(topic)) {
                let word = if rule.allows { "allow_rule" } else { "deny_rule" };
                let (rule_line, line) = (rule.line, found.line);
                let because =
                    format!("{word} in line {rule_line} of grant {name:?}, {deed} in line {line}");
                return Answer { is_allowed: rule.allows, because };
            }
        }
        let default = self.default();
        let because = format!(
            "no rule of grant {name:?} is about {deed} {topic} in domain {domain}; {default}"
        );
        Answer { is_allowed: self.allows_the_rest, because }
    }
}

impl Criterion {
    fn names(&self, topic: &str) -> bool {
        // An endpoint without a partition is in the one without a name.
        let is_partition =
            self.partitions.is_empty() || self.partitions.iter().any(|it| it.matches(""));
        is_partition && self.topics.iter().any(|it| it.matches(topic))
    }
}

const ALLOW_OR_DENY: [(&str, bool); 2] = [("ALLOW", true), ("DENY", false)];

impl<'a> Reader<'a, '_> {
    fn permissions(mut self, root: Node<'a, 'a>) -> Permissions {
        let mut grants = Vec::new();
        for child in self.places.elements(root) {
            if child.tag_name().name() != "permissions" {
                self.places.unknown_element(child, &["permissions"]);
                continue;
            }
            for child in self.places.elements(child) {
                if child.tag_name().name() == "grant" {
                    grants.extend(self.grant(child));
                } else {
                    self.places.unknown_element(child, &["grant"]);
                }
            }
        }
        Permissions { grants }
    }

    fn grant(&mut self, node: Node<'a, 'a>) -> Option<Grant> {
        self.places.attributes(node, &["name"]);
        let name = self.places.required(node, "name")?.value().to_owned();
        self.at_most_once(node, &["subject_name", "validity", "default"]);
        let (mut subject, mut validity, mut default) = (None, None, None);
        let mut rules = Vec::new();
        for child in self.places.elements(node) {
            match child.tag_name().name() {
                "subject_name" => subject = Some(self.subject(child)),
                "validity" => validity = Some(self.validity(child)),
                "allow_rule" => rules.push(self.rule(child, true)),
                "deny_rule" => rules.push(self.rule(child, false)),
                "default" => {
                    let word = self.word(child, "a default", &ALLOW_OR_DENY);
                    default = Some((word.unwrap_or_default(), self.line(child)));
                }
                _ => {
                    let allowed =
                        ["subject_name", "validity", "allow_rule", "deny_rule", "default"];
                    self.places.unknown_element(child, &allowed);
                }
            }
        }
        let found = [subject.is_some(), validity.is_some(), default.is_some()];
        for (what, is_there) in ["subject_name", "validity", "default"].iter().zip(found) {
            if !is_there {
                self.lacks(node, what);
            }
        }
        let ((not_before, not_after), (allows_the_rest, default_line)) = (validity??, default?);
        Some(Grant {
            name,
            subject: subject??,
            not_before,
            not_after,
            rules,
            allows_the_rest,
            default_line,
        })
    }

    fn subject(&mut self, node: Node<'a, 'a>) -> Option<Name> {
        let text = self.some_text(node);
        let name = Name::parse(text);
        if name.is_none() {
            let problem = "is no name of X.509, such as CN=/talker".to_owned();
            self.places.error(name_offset(node), text, problem, &[]);
        }
        name
    }

    fn validity(&mut self, node: Node<'a, 'a>) -> Option<(SystemTime, SystemTime)> {
        self.places.attributes(node, &[]);
        self.at_most_once(node, &["not_before", "not_after"]);
        let (mut first, mut last) = (None, None);
        for child in self.places.elements(node) {
            match child.tag_name().name() {
                "not_before" => first = self.time(child),
                "not_after" => last = self.time(child),
                _ => self.places.unknown_element(child, &["not_before", "not_after"]),
            }
        }
        if self.places.is_good() && (first.is_none() || last.is_none()) {
            self.lacks(node, if first.is_none() { "not_before" } else { "not_after" });
        }
        first.zip(last)
    }

    fn rule(&mut self, node: Node<'a, 'a>, allows: bool) -> Rule {
        self.places.attributes(node, &[]);
        let mut rule = Rule {
            allows,
            domains: Domains::default(),
            criteria: Vec::new(),
            line: self.line(node),
        };
        self.at_most_once(node, &["domains"]);
        let mut has_domains = false;
        for child in self.places.elements(node) {
            match child.tag_name().name() {
                "domains" => (rule.domains, has_domains) = (self.domains(child), true),
                "publish" => rule.criteria.push(self.criterion(child, Deed::Publish)),
                "subscribe" => rule.criteria.push(self.criterion(child, Deed::Subscribe)),
                // Nothing here relays.
                "relay" => {}
                _ => {
                    let allowed = ["domains", "publish", "subscribe", "relay"];
                    self.places.unknown_element(child, &allowed);
                }
            }
        }
        if !has_domains {
            self.lacks(node, "domains");
        }
        rule
    }

    fn criterion(&mut self, node: Node<'a, 'a>, deed: Deed) -> Criterion {
        self.places.attributes(node, &[]);
        let mut criterion =
            Criterion { deed, topics: Vec::new(), partitions: Vec::new(), line: self.line(node) };
        for child in self.places.elements(node) {
            match child.tag_name().name() {
                "topics" => criterion.topics.extend(self.patterns(child, "topic")),
                "partitions" => criterion.partitions.extend(self.patterns(child, "partition")),
                "data_tags" => {
                    let problem = "are not supported: no topic of ROS 2 has any".to_owned();
                    self.places.error(name_offset(child), "data_tags", problem, &[]);
                }
                _ => self.places.unknown_element(child, &["topics", "partitions"]),
            }
        }
        if criterion.topics.is_empty() && self.places.is_good() {
            self.lacks(node, "topics");
        }
        criterion
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    const TALKER: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="http://www.omg.org/spec/DDS-SECURITY/20170901/omg_shared_ca_permissions.xsd">
  <permissions>
    <grant name="/talker">
      <subject_name>CN=/talker</subject_name>
      <validity>
        <not_before>2026-01-01T00:00:00</not_before>
        <not_after>2036-01-01T00:00:00</not_after>
      </validity>
      <deny_rule>
        <domains><id>0</id></domains>
        <publish><topics><topic>rt/chatter_secret</topic></topics></publish>
      </deny_rule>
      <allow_rule>
        <domains><id_range><min>0</min><max>9</max></id_range><id>42</id></domains>
        <publish>
          <topics><topic>rt/chatter*</topic></topics>
        </publish>
        <publish>
          <topics><topic>rt/apart</topic></topics>
          <partitions><partition>a*</partition></partitions>
        </publish>
        <subscribe>
          <topics><topic>rq/talker/*Request</topic></topics>
          <partitions><partition>*</partition></partitions>
        </subscribe>
      </allow_rule>
      <default>DENY</default>
    </grant>
  </permissions>
</dds>"#;

    fn read(text: &str) -> Permissions {
        Permissions::parse("p.xml", text.as_bytes()).unwrap_or_else(|it| panic!("{it}"))
    }

    #[test]
    fn the_first_rule_that_names_a_topic_counts() {
        let permissions = read(TALKER);
        let grant = permissions.grant_of(&name("CN=/talker")).unwrap();
        assert_eq!(grant.name(), "/talker");
        assert!(permissions.grant_of(&name("CN=/listener")).is_none());
        let (first, last) = grant.validity();
        assert_eq!(last.duration_since(first).unwrap(), Duration::from_secs(3652 * 86_400));
        for (deed, domain, topic, is_allowed, because) in [
            (
                Deed::Publish,
                0,
                "rt/chatter",
                true,
                r#"allow_rule in line 14 of grant "/talker", publish in line 16"#,
            ),
            (
                Deed::Publish,
                42,
                "rt/chatter",
                true,
                r#"allow_rule in line 14 of grant "/talker", publish in line 16"#,
            ),
            (
                Deed::Publish,
                0,
                "rt/chatter_secret",
                false,
                r#"deny_rule in line 10 of grant "/talker", publish in line 12"#,
            ),
            (
                Deed::Publish,
                1,
                "rt/chatter_secret",
                true,
                r#"allow_rule in line 14 of grant "/talker", publish in line 16"#,
            ),
            (
                Deed::Subscribe,
                3,
                "rq/talker/set_parametersRequest",
                true,
                r#"allow_rule in line 14 of grant "/talker", subscribe in line 23"#,
            ),
            (
                Deed::Subscribe,
                0,
                "rt/chatter",
                false,
                r#"no rule of grant "/talker" is about subscribe rt/chatter in domain 0; its default in line 28 is DENY"#,
            ),
            (
                Deed::Publish,
                10,
                "rt/chatter",
                false,
                r#"no rule of grant "/talker" is about publish rt/chatter in domain 10; its default in line 28 is DENY"#,
            ),
            (
                Deed::Publish,
                0,
                "rt/apart",
                false,
                r#"no rule of grant "/talker" is about publish rt/apart in domain 0; its default in line 28 is DENY"#,
            ),
        ] {
            assert_eq!(
                grant.may(deed, domain, topic),
                Answer { is_allowed, because: because.to_owned() }
            );
        }
        assert!(grant.may_join(0).is_allowed && grant.may_join(42).is_allowed);
        let not = grant.may_join(77);
        assert!(
            !not.is_allowed && not.because.ends_with("domain 77; its default in line 28 is DENY")
        );
        let open = read(&TALKER.replace("DENY", "ALLOW"));
        let answer = open.grant_of(&name("CN=/talker")).unwrap().may(Deed::Subscribe, 0, "rt/x");
        assert!(answer.is_allowed && answer.because.ends_with("is ALLOW"));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let told = |text: &str| {
            let errors = Permissions::parse("p.xml", text.as_bytes()).unwrap_err().to_string();
            errors.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let grant = |inside: &str| {
            format!("<dds><permissions><grant name=\"g\">{inside}</grant></permissions></dds>")
        };
        assert_eq!(
            told(&grant("<subject_name>CN=a</subject_name><default>MAYBE</default><relay/>")),
            [
                "p.xml:1:20: \"grant\" lacks the element \"validity\"",
                "p.xml:1:69: \"MAYBE\" is not a default; allowed: ALLOW, DENY",
                "p.xml:1:93: \"relay\" is not an element here; allowed: subject_name, validity, allow_rule, deny_rule, default",
            ]
        );
        let rule = |inside: &str| grant(&format!("<allow_rule>{inside}</allow_rule>"));
        for (text, expect) in [
            (rule("<domains><id>x</id></domains>"), "\"x\" is not the number of a domain"),
            (
                rule("<publish><topics><topic>a</topic></topics></publish>"),
                "\"allow_rule\" lacks the element \"domains\"",
            ),
            (rule("<domains/><publish/>"), "\"publish\" lacks the element \"topics\""),
            (
                rule("<domains/><publish><data_tags/></publish>"),
                "\"data_tags\" are not supported: no topic of ROS 2 has any",
            ),
            (
                rule("<domains/><publish><topics><topic><b/></topic></topics></publish>"),
                "\"b\" has no place inside \"topic\"",
            ),
            (
                grant("<validity><not_before>soon</not_before></validity>"),
                "\"soon\" is not a date and time",
            ),
            (
                "<dds><permissions><grant/></permissions></dds>".to_owned(),
                "\"grant\" lacks the attribute \"name\"",
            ),
            // What a reader would leave out could be what denies.
            (
                rule("<domains><id>1</id></domains><domains><id>2</id></domains>"),
                "\"domains\" stands here twice",
            ),
            (
                rule("<domains/><publish><topics><topic><!-- c -->rt/a</topic></topics></publish>"),
                "\"topic\" has a comment in its text",
            ),
            (
                rule("<domains/><publish><topics><topic>rt/<?x y?>a</topic></topics></publish>"),
                "\"topic\" has a comment in its text",
            ),
            (
                rule("<domains/><publish><topics><topic> </topic></topics></publish>"),
                "\"topic\" is empty",
            ),
            (
                rule(
                    "<domains/><publish><topics><topic>rt/cam[[:digit:]]</topic></topics></publish>",
                ),
                "has [[, of which implementations of DDS Security differ",
            ),
            (
                rule("<domains/><publish><topics><topic>rt/cam[1</topic></topics></publish>"),
                "has a `[` without a `]`",
            ),
            (rule("<domains><id_range/></domains>"), "\"id_range\" lacks the element \"min\""),
            (
                rule("<domains><id_range><min>9</min><max>3</max></id_range></domains>"),
                "ends at 3, before it begins at 9",
            ),
            (
                grant("<default>DENY</default><default>ALLOW</default>"),
                "\"default\" stands here twice",
            ),
            (
                grant("<subject_name>CN=a</subject_name><subject_name>CN=b</subject_name>"),
                "\"subject_name\" stands here twice",
            ),
            (grant("<subject_name>talker</subject_name>"), "\"talker\" is no name of X.509"),
            (
                "<dds><domain_access_rules/></dds>".to_owned(),
                "\"domain_access_rules\" is not an element here; allowed: permissions",
            ),
            ("<!DOCTYPE dds><dds/>".to_owned(), "p.xml:1:"),
        ] {
            let told = told(&text).join("\n");
            assert!(told.contains(expect), "{told}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[<>/a-z \"=]{0,60}", cut in 0usize..2000) {
            let _ = Permissions::parse("p.xml", text.as_bytes());
            let _ = Permissions::parse("p.xml", &TALKER.as_bytes()[..cut.min(TALKER.len())]);
        }
    }
}

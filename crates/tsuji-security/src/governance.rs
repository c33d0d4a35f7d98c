//! What a domain protects, and how: the governance document, section 9.4.1.2 of DDS Security 1.1.

use std::fmt;

use tsuji_xml::{Kind, Node, XmlErrors};

use crate::pattern::Pattern;
use crate::reader::{Domains, Reader, kind};
use crate::{Answer, Deed, Grant};

const KIND: Kind = kind("a governance document");

/// A governance document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Governance {
    rules: Vec<DomainRule>,
}

/// How something is protected, the stronger the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// Not at all.
    #[default]
    None,
    /// Nobody alters it unseen.
    Sign,
    /// And nobody else reads it.
    Encrypt,
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "not protected",
            Self::Sign => "signed",
            Self::Encrypt => "encrypted",
        })
    }
}

/// Protection, and whether each receiver can tell which participant of several with the key has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protected {
    /// How.
    pub by: Protection,
    /// Whether the origin is authenticated.
    pub with_origin: bool,
}

/// The rule of some domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainRule {
    domains: Domains,
    /// Whether participants that prove nothing are met, for topics that are not protected.
    pub allows_unauthenticated: bool,
    /// Whether who joins is to have a grant for the domain.
    pub checks_joining: bool,
    /// What is told of endpoints on protected topics.
    pub discovery: Protected,
    /// What tells that participants are alive.
    pub liveliness: Protected,
    /// Whole messages.
    pub messages: Protected,
    topics: Vec<TopicRule>,
    /// The line of the document.
    pub line: u32,
}

/// The rule of some topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicRule {
    topics: Pattern,
    /// Whether endpoints are told of in a protected way.
    pub protects_discovery: bool,
    /// Whether it is told in a protected way that endpoints are alive.
    pub protects_liveliness: bool,
    /// Whether permissions say who may subscribe.
    pub checks_subscribing: bool,
    /// Whether permissions say who may publish.
    pub checks_publishing: bool,
    /// What is said of samples.
    pub metadata: Protected,
    /// The samples.
    pub data: Protection,
    /// The line of the document.
    pub line: u32,
}

impl Governance {
    /// Reads a document, which messages call `file`.
    ///
    /// # Errors
    ///
    /// All that is wrong with it, each with its place.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, XmlErrors> {
        tsuji_xml::read(&KIND, file, bytes, |root, places| Reader { places }.governance(root))
    }

    /// The rule of a domain, the first that names it. Where there is none, nobody may join.
    pub fn domain(&self, domain: u32) -> Option<&DomainRule> {
        self.rules.iter().find(|it| it.domains.have(domain))
    }

    /// Whether whoever has this grant may join a domain, where there is a question: anybody may where no permission is asked for.
    pub(crate) fn may_join(&self, grant: &Grant, domain: u32) -> Option<Answer> {
        let Some(rule) = self.domain(domain) else {
            let because = format!("governance has no rule for domain {domain}");
            return Some(Answer { is_allowed: false, because });
        };
        rule.checks_joining.then(|| grant.may_join(domain))
    }

    /// Whether whoever has this grant may do this with a topic as DDS names it.
    pub(crate) fn may(&self, grant: &Grant, deed: Deed, domain: u32, topic: &str) -> Answer {
        let denied = |because| Answer { is_allowed: false, because };
        let Some(of_domain) = self.domain(domain) else {
            return denied(format!("governance has no rule for domain {domain}"));
        };
        let Some(of_topic) = of_domain.topic(topic) else {
            return denied("governance has no rule for this topic".to_owned());
        };
        let is_checked = match deed {
            Deed::Publish => of_topic.checks_publishing,
            Deed::Subscribe => of_topic.checks_subscribing,
        };
        if is_checked {
            return grant.may(deed, domain, topic);
        }
        let because = format!("governance asks for no permission, in line {}", of_topic.line);
        Answer { is_allowed: true, because }
    }
}

impl DomainRule {
    /// The rule of a topic as DDS names it, such as `rt/chatter`: the first that names it. Where there is none, the topic may not be.
    pub fn topic(&self, topic: &str) -> Option<&TopicRule> {
        self.topics.iter().find(|it| it.topics.matches(topic))
    }

    /// The least that protects samples of a topic, whatever they go by.
    pub fn protection(&self, topic: &TopicRule) -> Protection {
        self.messages.by.max(topic.metadata.by).max(topic.data)
    }
}

const KINDS: [(&str, Protected); 5] = {
    const fn protected(by: Protection, with_origin: bool) -> Protected {
        Protected { by, with_origin }
    }
    [
        ("NONE", protected(Protection::None, false)),
        ("SIGN", protected(Protection::Sign, false)),
        ("ENCRYPT", protected(Protection::Encrypt, false)),
        ("SIGN_WITH_ORIGIN_AUTHENTICATION", protected(Protection::Sign, true)),
        ("ENCRYPT_WITH_ORIGIN_AUTHENTICATION", protected(Protection::Encrypt, true)),
    ]
};
const BASIC: [(&str, Protection); 3] =
    [("NONE", Protection::None), ("SIGN", Protection::Sign), ("ENCRYPT", Protection::Encrypt)];

const OF_DOMAIN: [&str; 7] = [
    "domains",
    "allow_unauthenticated_participants",
    "enable_join_access_control",
    "discovery_protection_kind",
    "liveliness_protection_kind",
    "rtps_protection_kind",
    "topic_access_rules",
];
const OF_TOPIC: [&str; 7] = [
    "topic_expression",
    "enable_discovery_protection",
    "enable_liveliness_protection",
    "enable_read_access_control",
    "enable_write_access_control",
    "metadata_protection_kind",
    "data_protection_kind",
];

impl<'a> Reader<'a, '_> {
    fn governance(mut self, root: Node<'a, 'a>) -> Governance {
        let mut rules = Vec::new();
        for child in self.places.elements(root) {
            if child.tag_name().name() != "domain_access_rules" {
                self.places.unknown_element(child, &["domain_access_rules"]);
                continue;
            }
            for child in self.places.elements(child) {
                if child.tag_name().name() == "domain_rule" {
                    rules.extend(self.domain_rule(child));
                } else {
                    self.places.unknown_element(child, &["domain_rule"]);
                }
            }
        }
        Governance { rules }
    }

    /// The elements of these names inside `node`, each once.
    fn each_once<const N: usize>(
        &mut self,
        node: Node<'a, 'a>,
        names: [&str; N],
    ) -> Option<[Node<'a, 'a>; N]> {
        self.places.attributes(node, &[]);
        self.at_most_once(node, &names);
        let children = self.places.elements(node);
        for child in children.iter().filter(|it| !names.contains(&it.tag_name().name())) {
            self.places.unknown_element(*child, &names);
        }
        let found =
            names.map(|name| children.iter().find(|it| it.tag_name().name() == name).copied());
        for (name, _) in names.iter().zip(&found).filter(|(_, it)| it.is_none()) {
            self.lacks(node, name);
        }
        let all: Option<Vec<_>> = found.into_iter().collect();
        all.and_then(|it| it.try_into().ok())
    }

    fn domain_rule(&mut self, node: Node<'a, 'a>) -> Option<DomainRule> {
        let found = self.each_once(node, OF_DOMAIN)?;
        let [domains, unauthenticated, joining, discovery, liveliness, messages, rules] = found;
        let mut kind = |node| self.word(node, "a kind of protection", &KINDS);
        let kinds = (kind(discovery), kind(liveliness), kind(messages));
        let (allows, checks) = (self.boolean(unauthenticated), self.boolean(joining));
        let domains = self.domains(domains);
        self.places.attributes(rules, &[]);
        let mut topics = Vec::new();
        for child in self.places.elements(rules) {
            if child.tag_name().name() == "topic_rule" {
                topics.extend(self.topic_rule(child));
            } else {
                self.places.unknown_element(child, &["topic_rule"]);
            }
        }
        Some(DomainRule {
            domains,
            allows_unauthenticated: allows?,
            checks_joining: checks?,
            discovery: kinds.0?,
            liveliness: kinds.1?,
            messages: kinds.2?,
            topics,
            line: self.line(node),
        })
    }

    fn topic_rule(&mut self, node: Node<'a, 'a>) -> Option<TopicRule> {
        let [topics, discovery, liveliness, read, write, metadata, data] =
            self.each_once(node, OF_TOPIC)?;
        let switches = [discovery, liveliness, read, write].map(|it| self.boolean(it));
        let metadata = self.word(metadata, "a kind of protection", &KINDS);
        let data = self.word(data, "a kind of protection of data", &BASIC);
        Some(TopicRule {
            topics: {
                let text = self.some_text(topics);
                self.pattern(topics, text)
            },
            protects_discovery: switches[0]?,
            protects_liveliness: switches[1]?,
            checks_subscribing: switches[2]?,
            checks_publishing: switches[3]?,
            metadata: metadata?,
            data: data?,
            line: self.line(node),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(pattern: &str, read: &str, metadata: &str, data: &str) -> String {
        format!(
            "<topic_rule><topic_expression>{pattern}</topic_expression>
            <enable_discovery_protection>true</enable_discovery_protection>
            <enable_liveliness_protection>false</enable_liveliness_protection>
            <enable_read_access_control>{read}</enable_read_access_control>
            <enable_write_access_control>TRUE</enable_write_access_control>
            <metadata_protection_kind>{metadata}</metadata_protection_kind>
            <data_protection_kind>{data}</data_protection_kind></topic_rule>"
        )
    }

    fn document(domains: &str, messages: &str, topics: &str) -> String {
        format!(
            "<dds><domain_access_rules><domain_rule><domains>{domains}</domains>
            <allow_unauthenticated_participants>false</allow_unauthenticated_participants>
            <enable_join_access_control>1</enable_join_access_control>
            <discovery_protection_kind>ENCRYPT</discovery_protection_kind>
            <liveliness_protection_kind>SIGN</liveliness_protection_kind>
            <rtps_protection_kind>{messages}</rtps_protection_kind>
            <topic_access_rules>{topics}</topic_access_rules></domain_rule></domain_access_rules></dds>"
        )
    }

    #[test]
    fn the_first_rule_of_domain_and_topic_counts() {
        let topics = [
            topic("rt/open*", "false", "NONE", "NONE"),
            topic("rt/*", "true", "SIGN_WITH_ORIGIN_AUTHENTICATION", "ENCRYPT"),
        ];
        let text =
            document("<id>0</id><id_range><min>10</min></id_range>", "SIGN", &topics.concat());
        let governance =
            Governance::parse("g.xml", text.as_bytes()).unwrap_or_else(|it| panic!("{it}"));
        assert!(governance.domain(1).is_none() && governance.domain(300).is_some());
        let rule = governance.domain(0).unwrap();
        assert!(!rule.allows_unauthenticated && rule.checks_joining && rule.line == 1);
        assert_eq!(rule.discovery, Protected { by: Protection::Encrypt, with_origin: false });
        assert_eq!((rule.liveliness.by, rule.messages.by), (Protection::Sign, Protection::Sign));
        let open = rule.topic("rt/open/door").unwrap();
        assert!(!open.checks_subscribing && open.checks_publishing && open.protects_discovery);
        assert_eq!(rule.protection(open), Protection::Sign, "by the messages");
        let other = rule.topic("rt/chatter").unwrap();
        assert!(
            other.metadata.with_origin && other.checks_subscribing && !other.protects_liveliness
        );
        assert_eq!(rule.protection(other), Protection::Encrypt);
        assert!(rule.topic("rq/addRequest").is_none());
        assert!(Protection::None < Protection::Sign && Protection::Sign < Protection::Encrypt);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, expect) in [
            (document("", "STRONG", ""), "\"STRONG\" is not a kind of protection; allowed: NONE, SIGN, ENCRYPT, SIGN_WITH_ORIGIN_AUTHENTICATION, ENCRYPT_WITH_ORIGIN_AUTHENTICATION"),
            (document("", "NONE", &topic("*", "maybe", "NONE", "NONE")), "\"maybe\" is not true or false; allowed: true, false, 1, 0, TRUE, FALSE"),
            (document("", "NONE", &topic("*", "true", "NONE", "SIGN_WITH_ORIGIN_AUTHENTICATION")), "is not a kind of protection of data; allowed: NONE, SIGN, ENCRYPT"),
            (document("", "NONE", &topic("*</topic_expression><topic_expression>rt/a", "true", "NONE", "NONE")), "\"topic_expression\" stands here twice"),
            (document("", "NONE", &topic("<!-- all -->*", "true", "NONE", "NONE")), "\"topic_expression\" has a comment in its text"),
            (document("", "NONE", "<topic_rule/>"), "\"topic_rule\" lacks the element \"topic_expression\""),
            ("<dds><domain_access_rules><domain_rule><domain/></domain_rule></domain_access_rules></dds>".to_owned(), "\"domain\" is not an element here"),
        ] {
            let told = Governance::parse("g.xml", text.as_bytes()).unwrap_err().to_string();
            assert!(told.contains(expect), "{told}");
        }
    }
}

//! Access policies of SROS2: what enclaves may do, in words of ROS; and the permissions document that says it in those of DDS.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use time::OffsetDateTime;
use tsuji_xml::{Kind, Node, Places, XmlErrors, name_offset};

use crate::keystore::read_file;
use crate::reader::Reader;
use crate::{Deed, Refused, Verb, validate_enclave};

/// What the enclaves of a file may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessPolicy {
    enclaves: Vec<(String, Access)>,
}

impl AccessPolicy {
    /// Reads a policy file as `ros2 security create_permission` takes it, with what it includes.
    ///
    /// # Errors
    ///
    /// All that is wrong with it, each with its place.
    pub fn read(path: &Path) -> Result<Self, Refused> {
        let bytes = read_file(path).map_err(Refused::of(path))?;
        let mut sources = Sources { paths: vec![path.to_owned()], included: 0 };
        let file = path.display().to_string();
        let mut enclaves = Vec::new();
        tsuji_xml::read(&kind("policy"), &file, &bytes, |root, places| {
            sources.policy(root, places, &mut enclaves);
        })
        .map_err(Refused::of(path))?;
        if enclaves.is_empty() {
            return Err(Refused::of(path)("has no enclave"));
        }
        Ok(Self { enclaves })
    }

    /// The names of its enclaves, in the order of the file.
    pub fn enclaves(&self) -> impl Iterator<Item = &str> {
        self.enclaves.iter().map(|(name, _)| &**name)
    }

    /// What an enclave may do, if the policy has it.
    pub fn access(&self, enclave: &str) -> Option<&Access> {
        self.enclaves.iter().find(|(name, _)| name == enclave).map(|(_, it)| it)
    }
}

/// What one enclave may do, by topics as DDS names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    allowed: Topics,
    denied: Topics,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Topics {
    published: BTreeSet<String>,
    subscribed: BTreeSet<String>,
}

impl Access {
    /// All that nodes of ROS do, as `ros2 security create_enclave` allows it.
    pub fn everything() -> Self {
        let mut access = Self::default();
        for (deed, topic) in ["topics", "services", "actions"]
            .iter()
            .flat_map(|block| qualifiers(block))
            .flat_map(|(_, verb)| verb.topics("/*"))
        {
            access.allowed.of(deed).insert(topic);
        }
        access
    }

    /// The permissions document that gives it to the enclave with this name in one domain, from one time to another.
    pub(crate) fn document(
        &self,
        enclave: &str,
        (first, last): (SystemTime, SystemTime),
        domain: u32,
    ) -> String {
        let domains =
            format!("        <domains>\n          <id>{domain}</id>\n        </domains>\n");
        // What tells all participants of ROS 2 of each other's nodes.
        let mut discovery = Topics::default();
        discovery.published.insert("ros_discovery_info".to_owned());
        discovery.subscribed.insert("ros_discovery_info".to_owned());
        let mut rules = String::new();
        // The first rule that knows a topic decides.
        for (rule, topics) in
            [("deny_rule", &self.denied), ("allow_rule", &self.allowed), ("allow_rule", &discovery)]
        {
            if !topics.is_empty() {
                let criteria = topics.criteria();
                let _ = write!(rules, "      <{rule}>\n{domains}{criteria}      </{rule}>\n");
            }
        }
        let (first, last) = (date(first), date(last));
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <dds xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:noNamespaceSchemaLocation=\"http://www.omg.org/spec/DDS-SECURITY/20170901/omg_shared_ca_permissions.xsd\">\n  \
             <permissions>\n    <grant name=\"{enclave}\">\n      <subject_name>CN={enclave}</subject_name>\n      \
             <validity>\n        <not_before>{first}</not_before>\n        <not_after>{last}</not_after>\n      </validity>\n\
             {rules}      <default>DENY</default>\n    </grant>\n  </permissions>\n</dds>\n"
        )
    }
}

impl Topics {
    fn of(&mut self, deed: Deed) -> &mut BTreeSet<String> {
        match deed {
            Deed::Publish => &mut self.published,
            Deed::Subscribe => &mut self.subscribed,
        }
    }

    fn is_empty(&self) -> bool {
        self.published.is_empty() && self.subscribed.is_empty()
    }

    fn criteria(&self) -> String {
        let mut text = String::new();
        for (word, topics) in [("publish", &self.published), ("subscribe", &self.subscribed)] {
            if topics.is_empty() {
                continue;
            }
            let _ = write!(text, "        <{word}>\n          <topics>\n");
            for topic in topics {
                let topic = topic.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                let _ = writeln!(text, "            <topic>{topic}</topic>");
            }
            let _ = write!(text, "          </topics>\n        </{word}>\n");
        }
        text
    }
}

/// As documents have it: in UTC, without a part of a second.
fn date(time: SystemTime) -> String {
    let time = OffsetDateTime::from(time);
    let (hour, minute, second) = time.to_hms();
    let (year, month, day) = time.to_calendar_date();
    format!("{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}", u8::from(month))
}

/// The words that qualify what is in blocks of this name, by the schema of SROS2.
fn qualifiers(block: &str) -> [(&'static str, Verb); 2] {
    match block {
        "topics" => [("publish", Verb::Publish), ("subscribe", Verb::Subscribe)],
        "services" => [("request", Verb::Call), ("reply", Verb::Serve)],
        _ => [("call", Verb::SendGoal), ("execute", Verb::Execute)],
    }
}

/// What a policy file, and what it includes, may have.
const fn kind(root: &'static str) -> Kind {
    Kind {
        name: "an access policy",
        root,
        bytes_max: 1 << 20,
        elements_max: 20_000,
        attributes_max: 16,
        depth_max: 16,
    }
}

/// Stack of the files that include each other, for the bounds of including.
struct Sources {
    /// Each is included by the one before it.
    paths: Vec<PathBuf>,
    /// How many were included in all.
    included: usize,
}

/// Names by which a profile completes those of its topics, services and actions.
#[derive(Clone, Copy)]
struct Owner<'a> {
    namespace: &'a str,
    node: &'a str,
}

impl Sources {
    fn policy<'a>(
        &mut self,
        root: Node<'a, 'a>,
        places: &mut Places<'a>,
        found: &mut Vec<(String, Access)>,
    ) {
        places.attributes(root, &["version"]);
        if let Some(version) = places.required(root, "version")
            && version.value() != VERSION
        {
            let problem = "is a version of policies that is not known here".to_owned();
            places.error(version.range_value().start, version.value(), problem, &[VERSION]);
        }
        for child in places.elements(root) {
            match child.tag_name().name() {
                "enclaves" => self.enclaves(child, places, found),
                _ => places.unknown_element(child, &["enclaves"]),
            }
        }
    }

    fn enclaves<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        found: &mut Vec<(String, Access)>,
    ) {
        places.attributes(node, &[]);
        for child in places.elements(node) {
            if is_include(child) {
                self.include(child, places, "policy", ENCLAVES, &mut |it, root, places| {
                    it.policy(root, places, found);
                });
                continue;
            }
            if child.tag_name().name() != "enclave" {
                places.unknown_element(child, &["enclave", "xi:include"]);
                continue;
            }
            places.attributes(child, &["path"]);
            let Some(path) = places.required(child, "path") else { continue };
            let name = path.value();
            if let Err(why) = validate_enclave(name) {
                places.error(path.range_value().start, name, why, &[]);
            }
            if found.iter().any(|it| it.0 == name) {
                let problem = "is an enclave that the policy has twice".to_owned();
                places.error(path.range_value().start, name, problem, &[]);
            }
            let mut access = Access::default();
            self.enclave(child, places, &mut access);
            found.push((name.to_owned(), access));
        }
    }

    fn enclave<'a>(&mut self, node: Node<'a, 'a>, places: &mut Places<'a>, access: &mut Access) {
        // SROS2 makes a grant of each, of which the first alone counts.
        Reader { places }.at_most_once(node, &["profiles"]);
        for profiles in places.elements(node) {
            match profiles.tag_name().name() {
                "profiles" => self.profiles(profiles, places, access),
                _ => places.unknown_element(profiles, &["profiles"]),
            }
        }
    }

    fn profiles<'a>(&mut self, node: Node<'a, 'a>, places: &mut Places<'a>, access: &mut Access) {
        places.attributes(node, &["type"]);
        for profile in places.elements(node) {
            if is_include(profile) {
                self.include(profile, places, "policy", PROFILES, &mut |it, root, places| {
                    let of = |node: Node<'_, '_>, name: &str| node.tag_name().name() == name;
                    let within = |name| move |it: &Node<'_, '_>| of(*it, name);
                    let enclaves = root.children().filter(within("enclaves"));
                    let enclaves = enclaves.flat_map(|it| it.children().filter(within("enclave")));
                    for enclave in enclaves {
                        it.enclave(enclave, places, access);
                    }
                });
                continue;
            }
            match profile.tag_name().name() {
                "profile" => {
                    places.attributes(profile, &["ns", "node"]);
                    let namespace = places.required(profile, "ns");
                    let node = places.required(profile, "node");
                    let (Some(namespace), Some(node)) = (namespace, node) else { continue };
                    if !namespace.value().starts_with('/') {
                        let problem = "is no namespace; allowed: such as / or /robot";
                        let (at, word) = (namespace.range_value().start, namespace.value());
                        places.error(at, word, problem.to_owned(), &[]);
                    }
                    let owner = Owner { namespace: namespace.value(), node: node.value() };
                    self.blocks(profile, places, owner, access);
                }
                // For people.
                "metadata" => {}
                _ => places.unknown_element(profile, &["profile", "metadata", "xi:include"]),
            }
        }
    }

    /// What stands in a profile.
    fn blocks<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        owner: Owner<'_>,
        access: &mut Access,
    ) {
        for block in places.elements(node) {
            if is_include(block) {
                self.include(block, places, "profile", PROFILE, &mut |it, root, places| {
                    // Whose it is the file that includes it says.
                    places.attributes(root, &["ns", "node"]);
                    it.blocks(root, places, owner, access);
                });
                continue;
            }
            let name = block.tag_name().name();
            let item = match name {
                "topics" => "topic",
                "services" => "service",
                "actions" => "action",
                _ => {
                    let allowed = ["topics", "services", "actions", "xi:include"];
                    places.unknown_element(block, &allowed);
                    continue;
                }
            };
            let said = qualified(block, places, name);
            for child in places.elements(block) {
                if child.tag_name().name() != item {
                    places.unknown_element(child, &[item]);
                    continue;
                }
                let mut reader = Reader { places };
                let text = reader.some_text(child);
                reader.pattern(child, text);
                if text.contains(char::is_control) {
                    let problem = "has a line end or another control character".to_owned();
                    places.error(name_offset(child), item, problem, &[]);
                    continue;
                }
                let full = full_name(owner, text);
                for (allows, verb) in &said {
                    let into = if *allows { &mut access.allowed } else { &mut access.denied };
                    for (deed, topic) in verb.topics(&full) {
                        into.of(deed).insert(topic);
                    }
                }
            }
        }
    }

    /// Reads another file in the place of an `xi:include`.
    fn include<'a>(
        &mut self,
        node: Node<'a, 'a>,
        places: &mut Places<'a>,
        root: &'static str,
        pointer: &'static str,
        read: &mut dyn for<'b> FnMut(&mut Self, Node<'b, 'b>, &mut Places<'b>),
    ) {
        places.leaf(node);
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            let is_known =
                ["href", "xpointer"].contains(&name) || (name, value) == ("parse", "xml");
            if attribute.namespace().is_some() || !is_known {
                let problem = format!("={value:?} is not taken here");
                let allowed = ["href", "xpointer", "parse=\"xml\""];
                places.error(attribute.range().start, name, problem, &allowed);
            }
        }
        let (href, xpointer) = (places.required(node, "href"), places.required(node, "xpointer"));
        let (Some(href), Some(xpointer)) = (href, xpointer) else { return };
        let at = href.range_value().start;
        if xpointer.value() != pointer {
            let problem = "is a part of a file that is not taken here".to_owned();
            places.error(xpointer.range_value().start, xpointer.value(), problem, &[pointer]);
            return;
        }
        let folder = self.paths.last().and_then(|it| it.parent()).unwrap_or_else(|| Path::new(""));
        let path = folder.join(href.value());
        self.included += 1;
        if self.paths.len() == DEPTH_MAX || INCLUDED_MAX < self.included {
            let problem = format!(
                "is included too deep, or is one file too many; the most are {DEPTH_MAX} below each other and {INCLUDED_MAX} in all"
            );
            places.error(at, href.value(), problem, &[]);
            return;
        }
        let bytes = match read_file(&path) {
            Ok(bytes) => bytes,
            Err(why) => {
                places.error(at, href.value(), format!("cannot be included: {why}"), &[]);
                return;
            }
        };
        let label = path.display().to_string();
        self.paths.push(path);
        let errors: Result<(), XmlErrors> =
            tsuji_xml::read(&kind(root), &label, &bytes, |root, places| {
                read(self, root, places);
            });
        self.paths.pop();
        if let Err(errors) = errors {
            places.others(errors);
        }
    }
}

fn is_include(node: Node<'_, '_>) -> bool {
    let name = node.tag_name();
    name.name() == "include" && name.namespace().is_some_and(|it| XINCLUDE.contains(&it))
}

/// What a block allows and what it denies.
fn qualified<'a>(block: Node<'a, 'a>, places: &mut Places<'a>, name: &str) -> Vec<(bool, Verb)> {
    let known = qualifiers(name);
    let names = known.map(|it| it.0);
    places.attributes(block, &names);
    let mut said = Vec::new();
    for (qualifier, verb) in known {
        let Some(attribute) = block.attribute_node(qualifier) else { continue };
        match attribute.value() {
            "ALLOW" => said.push((true, verb)),
            "DENY" => said.push((false, verb)),
            other => {
                let problem = format!("is no value of {qualifier:?}");
                places.error(attribute.range_value().start, other, problem, &["ALLOW", "DENY"]);
            }
        }
    }
    if said.is_empty() && places.is_good() {
        let problem = "allows and denies nothing: it lacks an attribute".to_owned();
        places.error(name_offset(block), name, problem, &names);
    }
    said
}

/// A name as SROS2 completes it: one of all, one below its node, or one below its namespace.
fn full_name(owner: Owner<'_>, name: &str) -> String {
    let Owner { namespace, node } = owner;
    let between = if namespace.ends_with('/') { "" } else { "/" };
    match name.strip_prefix('~') {
        _ if name.starts_with('/') => name.to_owned(),
        Some(rest) => format!("{namespace}{between}{node}{rest}"),
        None => format!("{namespace}{between}{name}"),
    }
}

/// The version of the schema of policies, which has not changed since 2020.
const VERSION: &str = "0.2.0";
const XINCLUDE: [&str; 2] = ["http://www.w3.org/2001/XInclude", "http://www.w3.org/2003/XInclude"];
const ENCLAVES: &str = "xpointer(/policy/enclaves/*)";
const PROFILES: &str = "xpointer(/policy/enclaves/enclave/profiles/*)";
const PROFILE: &str = "xpointer(/profile/*)";
const DEPTH_MAX: usize = 8;
const INCLUDED_MAX: usize = 1000;

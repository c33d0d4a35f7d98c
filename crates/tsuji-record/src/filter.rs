//! Which topics are meant, of those that are there or of those in a recording.

use std::fmt;
use std::str::FromStr;

use regex::bytes::{Regex, RegexBuilder};
use tsuji_core::TopicPattern;

/// Which topics are recorded or played: all, unless something says which, and then those that anything says.
///
/// The events of services and what actions are made of are meant by the names of these. With all topics all of them are
/// meant; otherwise those that are named, or that the regular expression finds by the name of the service or action.
#[derive(Clone, Debug, Default)]
pub struct TopicFilter {
    /// All topics, whatever the other words say. Not services and actions.
    pub all_topics: bool,
    /// All services.
    pub all_services: bool,
    /// All actions.
    pub all_actions: bool,
    /// Those that one of these is for.
    pub wanted: Vec<TopicPattern>,
    /// Those of these types.
    pub types: Vec<String>,
    /// Those in whose name it finds something.
    pub regex: Option<NameRegex>,
    /// These services, by full name.
    pub services: Vec<String>,
    /// These actions, by full name.
    pub actions: Vec<String>,
    /// But nothing that one of these is for.
    pub excluded: Vec<TopicPattern>,
    /// But no topics of these types, by their whole names. Services and actions are not meant.
    pub excluded_types: Vec<String>,
    /// But nothing in whose name one of these finds something.
    pub excluded_regexes: Vec<NameRegex>,
    /// But not these services.
    pub excluded_services: Vec<String>,
    /// But not these actions.
    pub excluded_actions: Vec<String>,
    /// Whether hidden topics are meant too where they are not named.
    pub hidden: bool,
}

impl TopicFilter {
    /// Whether the topic of this full name and type is meant.
    pub fn has(&self, topic: &str, type_name: &str) -> bool {
        let any = |of: &[TopicPattern]| of.iter().any(|it| it.matches(topic));
        let is = |of: &[String], name: &str| of.iter().any(|it| it == name);
        let nothing_is_said = self.says_nothing();
        let (is_wanted, is_excluded, name) = match Carries::of(topic, type_name) {
            Carries::Service(name) => (
                nothing_is_said || self.all_services || is(&self.services, name),
                is(&self.excluded_services, name),
                name,
            ),
            Carries::Action(name) => (
                nothing_is_said || self.all_actions || is(&self.actions, name),
                is(&self.excluded_actions, name),
                name,
            ),
            Carries::Messages => {
                let is_wanted = nothing_is_said || self.all_topics || is(&self.types, type_name);
                (is_wanted, is(&self.excluded_types, type_name), topic)
            }
        };
        let is_found = is_wanted || self.regex.as_ref().is_some_and(|it| it.finds(name));
        let is_shown = self.hidden || !name.split('/').any(|it| it.starts_with('_'));
        let is_excluded = is_excluded
            || any(&self.excluded)
            || self.excluded_regexes.iter().any(|it| it.finds(name));
        (is_found && is_shown || any(&self.wanted)) && !is_excluded
    }

    /// Whether nothing says which topics are meant, so that all are.
    pub fn says_nothing(&self) -> bool {
        let Self { all_topics, all_services, all_actions, .. } = *self;
        !(all_topics || all_services || all_actions || self.regex.is_some())
            && self.wanted.is_empty()
            && self.types.is_empty()
            && self.services.is_empty()
            && self.actions.is_empty()
    }
}

/// What stands behind a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carries<'a> {
    Messages,
    /// The events of the service of this name.
    Service(&'a str),
    /// Something of the action of this name.
    Action(&'a str),
}

impl<'a> Carries<'a> {
    fn of(topic: &'a str, type_name: &str) -> Self {
        const OF_ACTIONS: [&str; 5] = [
            "feedback",
            "status",
            "send_goal/_service_event",
            "cancel_goal/_service_event",
            "get_result/_service_event",
        ];
        if let Some((action, part)) = topic.rsplit_once("/_action/")
            && OF_ACTIONS.contains(&part)
        {
            return Self::Action(action);
        }
        let is_event = type_name.contains("/srv/") && type_name.ends_with("_Event");
        match topic.strip_suffix("/_service_event").filter(|_| is_event) {
            Some(service) => Self::Service(service),
            None => Self::Messages,
        }
    }
}

/// A regular expression that looks for something anywhere in a name.
///
/// As in `rosbag2` it is found in a part of the name unless it says where it begins and ends. Looking ahead or behind is
/// not there.
#[derive(Clone, Debug)]
pub struct NameRegex(Regex);

impl NameRegex {
    /// Whether there is something in `name` that it describes.
    pub fn finds(&self, name: &str) -> bool {
        self.0.is_match(name.as_bytes())
    }
}

impl fmt::Display for NameRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl FromStr for NameRegex {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Names are of ASCII, and tables for other letters are not needed.
        let built = RegexBuilder::new(text).unicode(false).size_limit(SIZE_MAX).build();
        built.map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                format!("it takes more than {SIZE_MAX} bytes of memory")
            }
            // The last line says what is wrong; those before repeat the text.
            error => {
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default();
                format!("{}; allowed: a regular expression", last.trim_start_matches("error: "))
            }
        })
    }
}

/// Bytes that a regular expression may take.
const SIZE_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "std_msgs/msg/String";
    const EVENT: &str = "std_srvs/srv/SetBool_Event";

    fn patterns(of: &[&str]) -> Vec<TopicPattern> {
        of.iter().map(|it| it.parse().unwrap()).collect()
    }

    fn has(filter: &TopicFilter, topic: &str) -> bool {
        let is_event = topic.ends_with("/_service_event") && !topic.contains("/_action/");
        filter.has(topic, if is_event { EVENT } else { TEXT })
    }

    #[track_caller]
    fn check(filter: TopicFilter, yes: &[&str], no: &[&str]) {
        yes.iter().for_each(|it| assert!(has(&filter, it), "{it}: {filter:?}"));
        no.iter().for_each(|it| assert!(!has(&filter, it), "{it}: {filter:?}"));
    }

    #[test]
    fn all_that_is_not_hidden() {
        let excluded = patterns(&["/c/**"]);
        check(
            TopicFilter { excluded: excluded.clone(), ..TopicFilter::default() },
            &[
                "/a",
                "/set/_service_event",
                "/fib/_action/status",
                "/fib/_action/send_goal/_service_event",
            ],
            &["/_a", "/a/_b", "/c/d"],
        );
        check(
            TopicFilter { hidden: true, excluded, ..TopicFilter::default() },
            &["/a/_b"],
            &["/c"],
        );
        let topics = TopicFilter { all_topics: true, ..TopicFilter::default() };
        check(topics, &["/a"], &["/_a", "/set/_service_event", "/fib/_action/feedback"]);
    }

    #[test]
    fn what_is_named() {
        check(
            TopicFilter {
                wanted: patterns(&["/c*/image", "/a", "/_hidden"]),
                excluded: patterns(&["/cx/image"]),
                ..TopicFilter::default()
            },
            &["/c1/image", "/a", "/_hidden"],
            &["/b", "/cx/image", "/set/_service_event"],
        );
        let types = TopicFilter { types: vec![TEXT.into()], ..TopicFilter::default() };
        check(types.clone(), &["/a"], &["/_a", "/set/_service_event"]);
        assert!(!types.has("/a", "std_msgs/msg/Bool"));
        let but = TopicFilter { excluded_types: vec![TEXT.into()], ..TopicFilter::default() };
        assert!(!but.has("/a", TEXT) && but.has("/a", "std_msgs/msg/Bool"));
        let event = "std_srvs/srv/SetBool_Event".to_owned();
        let but = TopicFilter { excluded_types: vec![event.clone()], ..TopicFilter::default() };
        assert!(but.has("/set/_service_event", &event));
        // Word for word, as `ros2 bag record` takes it.
        let two = vec!["std_msgs/String".to_owned()];
        assert!(TopicFilter { excluded_types: two, ..TopicFilter::default() }.has("/a", TEXT));
    }

    #[test]
    fn services_and_actions() {
        let services = TopicFilter { services: vec!["/set".into()], ..TopicFilter::default() };
        check(services, &["/set/_service_event"], &["/a", "/other/_service_event", "/set"]);
        check(
            TopicFilter {
                all_services: true,
                excluded_services: vec!["/set".into()],
                ..TopicFilter::default()
            },
            &["/other/_service_event"],
            &["/set/_service_event", "/a", "/fib/_action/get_result/_service_event"],
        );
        let actions = TopicFilter { actions: vec!["/fib".into()], ..TopicFilter::default() };
        check(
            actions,
            &["/fib/_action/feedback", "/fib/_action/cancel_goal/_service_event"],
            &["/fob/_action/feedback", "/fib/_action/other", "/a"],
        );
    }

    #[test]
    fn regular_expressions_find_a_part_of_a_name() {
        let regex = |it: &str| it.parse::<NameRegex>().unwrap();
        check(
            TopicFilter {
                regex: Some(regex("cam\\d|^/set$")),
                excluded_regexes: vec![regex("raw$")],
                ..TopicFilter::default()
            },
            &["/x/cam1/image", "/set/_service_event"],
            &["/camera", "/_cam1", "/cam1/raw"],
        );
        assert!("(".parse::<NameRegex>().unwrap_err().contains("unclosed group"));
        assert!("(?!a)b".parse::<NameRegex>().unwrap_err().contains("look-ahead"));
        assert!("a{1000}{1000}{1000}".parse::<NameRegex>().is_err());
    }
}

//! What the outside sees of a process: the name of its robot before its names, and which topics at all.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::names::validate_namespace;
use crate::{Rate, TopicPattern};

/// The most characters of a robot's name, so that what stands behind it has room.
pub const ROBOT_LENGTH_MAX: usize = 100;

/// A robot. Its processes know its topics by names of their own, and others by the same names behind the robot's.
///
/// `/camera/image` of the robot `r2` is `/r2/camera/image` outside of it. Topics that are shared have one name everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Robot {
    /// With the slash before it.
    prefix: Arc<str>,
    shared: Vec<TopicPattern>,
}

impl Robot {
    /// The robot `name`: tokens of ROS names with slashes between, as `r2` or `fleet/r2`.
    ///
    /// # Errors
    ///
    /// [`InvalidRobot`] if it is no such name, or longer than [`ROBOT_LENGTH_MAX`].
    pub fn new(name: &str, shared: Vec<TopicPattern>) -> Result<Self, InvalidRobot> {
        let prefix = format!("/{name}");
        let is_name = !name.is_empty() && validate_namespace(&prefix).is_ok();
        if !is_name || ROBOT_LENGTH_MAX < name.len() {
            return Err(InvalidRobot);
        }
        Ok(Self { prefix: prefix.into(), shared })
    }

    /// Its name, without a slash before it.
    pub fn name(&self) -> &str {
        &self.prefix[1..]
    }

    /// The topics that have one name everywhere.
    pub fn shared(&self) -> &[TopicPattern] {
        &self.shared
    }

    /// What is behind the robot's own name.
    fn behind<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_prefix(&*self.prefix).filter(|it| it.starts_with('/'))
    }

    /// Whether a topic of this robot is called the same outside.
    fn is_shared(&self, topic: &str) -> bool {
        // What begins with the robot's own name would be taken for one of its other topics.
        self.behind(topic).is_none() && self.shared.iter().any(|it| it.matches(topic))
    }
}

/// A text that is no robot's name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InvalidRobot;

impl fmt::Display for InvalidRobot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no name of a robot; allowed: letters, digits and '_', not beginning with a digit, in parts with '/' between, \
             at most {ROBOT_LENGTH_MAX} characters"
        )
    }
}

impl Error for InvalidRobot {}

/// What the outside sees of a process. For names, inside are the processes of the same robot, and without one those that
/// have none; for what is exported, those of them on the same host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outward {
    robot: Option<Robot>,
    /// All topics, where it is empty.
    exports: Vec<(TopicPattern, Option<Rate>)>,
}

impl Outward {
    /// Of this robot the topics that fit one of `exports`, or all where there is none. The first that a topic fits says how often it
    /// leaves.
    pub fn new(robot: Option<Robot>, exports: Vec<(TopicPattern, Option<Rate>)>) -> Self {
        Self { robot, exports }
    }

    /// The same of the robot `name`, which shares the same topics; of none for an empty name.
    ///
    /// # Errors
    ///
    /// As those of [`Robot::new`].
    pub fn named(self, name: &str) -> Result<Self, InvalidRobot> {
        let shared = self.robot.map(|it| it.shared).unwrap_or_default();
        let robot = if name.is_empty() { None } else { Some(Robot::new(name, shared)?) };
        Ok(Self { robot, ..self })
    }

    /// The robot.
    pub fn robot(&self) -> Option<&Robot> {
        self.robot.as_ref()
    }

    /// The topics that the outside sees, and how often they leave at most; empty for all.
    pub fn exports(&self) -> &[(TopicPattern, Option<Rate>)] {
        &self.exports
    }

    /// Whether the outside sees a topic or service of this process, and this process those of that name outside.
    pub fn is_exported(&self, topic: &str) -> bool {
        self.exports.is_empty() || self.exports.iter().any(|(it, _)| it.matches(topic))
    }

    /// How often at most samples of a topic of this process leave, where that is bounded.
    pub fn rate(&self, topic: &str) -> Option<Rate> {
        self.exports.iter().find(|(it, _)| it.matches(topic)).and_then(|(_, rate)| *rate)
    }

    /// Whether a topic or service of this process is called the same outside.
    pub fn is_shared(&self, topic: &str) -> bool {
        self.robot.as_ref().is_none_or(|it| it.is_shared(topic))
    }

    /// What processes of one robot must have in common, for people.
    pub fn rules(&self) -> String {
        let words = |mut all: Vec<&str>| {
            all.sort_unstable();
            if all.is_empty() { "-".to_owned() } else { all.join(" ") }
        };
        let shared = self.robot.iter().flat_map(|it| &it.shared).map(TopicPattern::as_str);
        // How often something leaves is the affair of whoever publishes it.
        let exported = self.exports.iter().map(|(it, _)| it.as_str());
        format!("shared {}, exported {}", words(shared.collect()), words(exported.collect()))
    }

    /// What a topic or service of this process is called outside.
    pub fn topic<'a>(&self, topic: &'a str) -> Cow<'a, str> {
        match &self.robot {
            Some(robot) if !robot.is_shared(topic) => format!("{}{topic}", robot.prefix).into(),
            _ => topic.into(),
        }
    }

    /// What a topic or service is called in this process that has this name outside. `None` if it is of another robot:
    /// nothing here has a name for it.
    pub fn topic_here<'a>(&self, name: &'a str) -> Option<Cow<'a, str>> {
        let Some(robot) = &self.robot else { return Some(name.into()) };
        match robot.behind(name) {
            Some(topic) if !robot.is_shared(topic) => Some(topic.into()),
            _ => robot.is_shared(name).then(|| name.into()),
        }
    }

    /// What a namespace of this process is called outside.
    pub fn namespace<'a>(&self, namespace: &'a str) -> Cow<'a, str> {
        match (&self.robot, namespace) {
            (None, _) => namespace.into(),
            (Some(robot), "/") => robot.prefix.to_string().into(),
            (Some(robot), _) => format!("{}{namespace}", robot.prefix).into(),
        }
    }

    /// What a node of this full name outside is called in this process. That of another robot stays as it is.
    pub fn node_here<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match &self.robot {
            Some(robot) => robot.behind(name).unwrap_or(name).into(),
            None => name.into(),
        }
    }

    /// What a namespace of this name is called in this process. That of another robot stays as it is.
    pub fn namespace_here<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match &self.robot {
            Some(robot) if name == &*robot.prefix => "/".into(),
            _ => self.node_here(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn outward(name: &str, shared: &str, exports: &str) -> Outward {
        let patterns = |all: &str| -> Vec<TopicPattern> {
            all.split_whitespace().map(|it| it.parse().unwrap()).collect()
        };
        let exports = patterns(exports).into_iter().map(|it| (it, None)).collect();
        Outward::new(Some(Robot::new(name, patterns(shared)).unwrap()), exports)
    }

    #[test]
    fn names_of_a_robot_are_behind_its_own_outside() {
        let r2 = outward("r2", "/fleet/** /clock", "");
        for (here, outside) in [
            ("/camera/image", "/r2/camera/image"),
            ("/clock", "/clock"),
            ("/fleet", "/fleet"),
            ("/fleet/orders", "/fleet/orders"),
            ("/r2", "/r2/r2"),
            ("/r2/camera/image", "/r2/r2/camera/image"),
            ("/r22/x", "/r2/r22/x"),
        ] {
            assert_eq!(
                (&*r2.topic(here), r2.topic_here(outside).as_deref()),
                (outside, Some(here))
            );
        }
        for others in ["/camera/image", "/r1/camera/image", "/r22/x", "/r2", "/r2/clock"] {
            assert_eq!(r2.topic_here(others), None, "{others}");
        }
        for (here, outside) in [("/", "/r2"), ("/arm", "/r2/arm"), ("/r2", "/r2/r2")] {
            assert_eq!(
                (r2.namespace(here), r2.namespace_here(outside)),
                (outside.into(), here.into())
            );
        }
        for (here, outside) in [("/arm", "/r2/arm"), ("?", "?"), ("/r2", "/r2/r2")] {
            assert_eq!(r2.node_here(outside), here);
        }
        assert_eq!(r2.node_here("/r2"), "/r2");
        assert_eq!((&*r2.namespace_here("/r1/arm"), &*r2.namespace_here("/")), ("/r1/arm", "/"));
    }

    #[test]
    fn without_a_robot_names_stay() {
        let none = Outward::default();
        assert_eq!(
            (&*none.topic("/a"), none.topic_here("/r1/a").as_deref()),
            ("/a", Some("/r1/a"))
        );
        assert_eq!((&*none.namespace("/"), &*none.namespace_here("/r1")), ("/", "/r1"));
    }

    #[test]
    fn what_is_exported() {
        let all = outward("r2", "", "");
        let some = outward("fleet/r2", "", "/camera/** /cmd_vel");
        assert!(
            all.is_exported("/tf")
                && some.is_exported("/camera/left")
                && some.is_exported("/cmd_vel")
        );
        assert!(!some.is_exported("/tf") && !some.is_exported("/fleet/r2/cmd_vel"));
        assert_eq!(some.topic("/cmd_vel"), "/fleet/r2/cmd_vel");
        assert_eq!(some.rules(), "shared -, exported /camera/** /cmd_vel");
        assert_eq!(outward("r2", "/b /a", "").rules(), "shared /a /b, exported -");
        assert!(!all.is_shared("/tf") && Outward::default().is_shared("/tf"));
    }

    #[test]
    fn the_first_export_that_a_topic_fits_says_how_often_it_leaves() {
        let export = |topic: &str, rate: Option<&str>| {
            (topic.parse().unwrap(), rate.map(|it| it.parse::<Rate>().ok().unwrap()))
        };
        let exports = vec![
            export("/camera/info", None),
            export("/camera/**", Some("5")),
            export("/**", Some("1")),
        ];
        let outward = Outward::new(None, exports);
        let rate = |topic| outward.rate(topic).map(|it| it.to_string());
        assert_eq!(rate("/camera/info"), None);
        assert_eq!(rate("/camera/image").as_deref(), Some("5"));
        assert_eq!(rate("/odom").as_deref(), Some("1"));
        assert_eq!(Outward::default().rate("/odom"), None);
    }

    #[test]
    fn what_is_no_robots_name() {
        for name in ["", "/r2", "r2/", "2r", "a//b", "r-2", "r 2", "räuber", &"a".repeat(101)] {
            assert_eq!(Robot::new(name, Vec::new()), Err(InvalidRobot), "{name}");
        }
        assert_eq!(Robot::new("fleet/r_2", Vec::new()).unwrap().name(), "fleet/r_2");
    }

    proptest! {
        #[test]
        fn no_two_topics_have_one_name_outside(
            topics in prop::collection::vec("(/(r2|fleet|a|status)){1,4}", 2),
            shared in prop::collection::vec("(/(r2|fleet|\\*|\\*\\*|a)){1,3}", 0..3),
        ) {
            let r2 = outward("r2", &shared.join(" "), "");
            let outside: Vec<_> = topics.iter().map(|it| r2.topic(it)).collect();
            for (topic, name) in topics.iter().zip(&outside) {
                let here = r2.topic_here(name);
                prop_assert_eq!(here.as_deref(), Some(topic.as_str()));
            }
            prop_assert_eq!(topics[0] == topics[1], outside[0] == outside[1]);
        }
    }
}

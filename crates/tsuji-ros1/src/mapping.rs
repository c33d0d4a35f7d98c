//! Which types of ROS 1 and ROS 2 belong together.
//!
//! Without a rule, package and name are the same in both: `std_msgs/String` is `std_msgs/msg/String`. Rules are written
//! as those of ros1_bridge, see [`Mapping::add`], so its files can be used as they are. What tsuji itself knows is such
//! a file too.

mod file;

use crate::types::is_message_name;
use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;
use tsuji_msg::{Kind, TypeName};

/// Which type of ROS 2 is which of ROS 1, and where their fields differ.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Of the rules that say something of a name, the last counts.
    names: Vec<NameRule>,
    /// How fields belong together, by the names of a message in ROS 1 and ROS 2.
    fields: HashMap<(String, String), FieldRules>,
    /// Definitions of ROS 1, by name.
    definitions: HashMap<String, String>,
}

/// Says that two names belong together.
#[derive(Clone, Debug)]
struct NameRule {
    ros1_package: String,
    ros2_package: String,
    of: Named,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Named {
    /// Everything in the packages that has the same name.
    Package,
    Message {
        ros1: String,
        ros2: String,
    },
    Service {
        ros1: String,
        ros2: String,
    },
}

/// How the fields of two messages belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldRules {
    /// Fields of ROS 1 and of ROS 2, such as `header.stamp` and `stamp`.
    pub(crate) pairs: Vec<(String, String)>,
    /// Numbers that mean the same, by the field of ROS 1.
    pub(crate) values: Vec<FieldValues>,
}

/// A field of ROS 1, and its numbers in ROS 1 with those in ROS 2.
pub(crate) type FieldValues = (String, Vec<(i64, i64)>);

static BUILTIN: LazyLock<Mapping> = LazyLock::new(|| {
    let mut mapping = Mapping::empty();
    let added = mapping.add("builtin.yaml", include_str!("mapping/builtin.yaml"));
    debug_assert!(added.is_ok(), "{added:?}");
    mapping
});

impl Default for Mapping {
    fn default() -> Self {
        Self::builtin()
    }
}

impl Mapping {
    /// What tsuji knows: the differences of the common interfaces.
    pub fn builtin() -> Self {
        BUILTIN.clone()
    }

    fn empty() -> Self {
        Self { names: Vec::new(), fields: HashMap::new(), definitions: HashMap::new() }
    }

    /// Adds the rules of a file, which win over what is there. Of two rules in one file that contradict each other the
    /// later wins, and one for a message or service wins over one for its package. After an error nothing is added.
    ///
    /// The text is a list of the mapping rules of [ros1_bridge](https://github.com/ros2/ros1_bridge/blob/master/doc/index.rst).
    /// Three more keys are understood:
    ///
    /// - `ros1_definition`: the fields and constants of the type in ROS 1, needed where they are not those of ROS 2.
    /// - `values_1_to_2`: for a field of ROS 1 the numbers that mean the same, such as `{level: {1: 10, 2: 20}}`. Another
    ///   number counts as the greatest listed one below it, or else as the least one listed.
    ///
    /// `enable_foreign_mappings` says nothing here, since no file belongs to a package.
    ///
    /// ```
    /// let mut mapping = tsuji_ros1::mapping::Mapping::builtin();
    /// let rules = "
    /// - ros1_package_name: my_msgs
    ///   ros1_message_name: Grip
    ///   ros2_package_name: my_interfaces
    ///   ros2_message_name: Gripper
    ///   fields_1_to_2: {maxForce: max_force}
    /// ";
    /// mapping.add("rules.yaml", rules)?;
    /// assert_eq!(mapping.message_to_ros2("my_msgs/Grip").as_deref(), Some("my_interfaces/msg/Gripper"));
    /// # Ok::<_, tsuji_ros1::mapping::MappingError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A [`MappingError`] that names the line and what is allowed there, if the text is no YAML or no list of rules, or
    /// a key or name is none.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), MappingError> {
        let rules = file::parse(file, text)?;
        // The last rule counts, so the more general ones come first.
        let (packages, others): (Vec<_>, Vec<_>) =
            rules.into_iter().partition(|rule| rule.name.of == Named::Package);
        for rule in packages.into_iter().chain(others) {
            self.definitions.extend(rule.definitions);
            self.fields.extend(rule.fields);
            self.names.push(rule.name);
        }
        Ok(())
    }

    /// Returns the ROS 2 name of a message of ROS 1: `std_msgs/String` is `std_msgs/msg/String`. None if it is no name,
    /// or one that no type of ROS 2 can have.
    pub fn message_to_ros2(&self, ros1: &str) -> Option<String> {
        self.to_ros2(ros1, Kind::Message)
    }

    /// Returns the ROS 1 name of a message of ROS 2: `std_msgs/msg/String` is `std_msgs/String`. None if it is no name,
    /// or that of a service or action.
    pub fn message_to_ros1(&self, ros2: &str) -> Option<String> {
        self.to_ros1(ros2, Kind::Message)
    }

    /// Returns the ROS 2 name of a service of ROS 1: `std_srvs/SetBool` is `std_srvs/srv/SetBool`. None if it is no
    /// name, or one that no type of ROS 2 can have.
    pub fn service_to_ros2(&self, ros1: &str) -> Option<String> {
        self.to_ros2(ros1, Kind::Service)
    }

    /// Returns the ROS 1 name of a service of ROS 2: `std_srvs/srv/SetBool` is `std_srvs/SetBool`. None if it is no
    /// name, or that of a message or action.
    pub fn service_to_ros1(&self, ros2: &str) -> Option<String> {
        self.to_ros1(ros2, Kind::Service)
    }

    fn to_ros2(&self, ros1: &str, kind: Kind) -> Option<String> {
        let (package, name) = ros1.split_once('/').filter(|_| is_message_name(ros1))?;
        let rules = self.names.iter().rev().filter(|rule| rule.ros1_package == package);
        let ruled =
            rules.filter_map(|rule| Some((&rule.ros2_package, rule.of.to_ros2(kind, name)?)));
        let (package, name) = match ruled.into_iter().next() {
            Some((package, ruled)) => (package.as_str(), ruled),
            None => (package, name),
        };
        TypeName::new(package, kind, name).ok().map(|name| name.to_string())
    }

    fn to_ros1(&self, ros2: &str, kind: Kind) -> Option<String> {
        let ros2: TypeName = ros2.parse().ok().filter(|it: &TypeName| it.kind() == kind)?;
        let (package, name) = (ros2.package(), ros2.name());
        let rules = self.names.iter().rev().filter(|rule| rule.ros2_package == package);
        let ruled =
            rules.filter_map(|rule| Some((&rule.ros1_package, rule.of.to_ros1(kind, name)?)));
        match ruled.into_iter().next() {
            Some((package, name)) => Some(format!("{package}/{name}")),
            None => Some(format!("{package}/{name}")),
        }
    }

    /// How the fields of two messages belong together, if a rule says so.
    pub(crate) fn fields(&self, ros1: &str, ros2: &str) -> Option<&FieldRules> {
        self.fields.get(&(ros1.to_owned(), ros2.to_owned()))
    }

    /// The definition that a rule states for a type of ROS 1.
    pub(crate) fn definition(&self, ros1: &str) -> Option<&str> {
        self.definitions.get(ros1).map(String::as_str)
    }
}

impl Named {
    /// What a rule for the package of ROS 1 makes of a name in it.
    fn to_ros2<'a>(&'a self, kind: Kind, name: &'a str) -> Option<&'a str> {
        match (self, kind) {
            (Self::Package, _) => Some(name),
            (Self::Message { ros1, ros2 }, Kind::Message)
            | (Self::Service { ros1, ros2 }, Kind::Service) => (ros1 == name).then_some(ros2),
            _ => None,
        }
    }

    /// What a rule for the package of ROS 2 makes of a name in it.
    fn to_ros1<'a>(&'a self, kind: Kind, name: &'a str) -> Option<&'a str> {
        match (self, kind) {
            (Self::Package, _) => Some(name),
            (Self::Message { ros1, ros2 }, Kind::Message)
            | (Self::Service { ros1, ros2 }, Kind::Service) => (ros2 == name).then_some(ros1),
            _ => None,
        }
    }
}

/// What is wrong with a file of mapping rules.
#[derive(Clone, PartialEq, Eq)]
pub struct MappingError {
    /// The file.
    pub file: String,
    /// Line and column, from 1.
    pub place: (usize, usize),
    /// What was found.
    pub found: String,
    /// What is allowed there.
    pub allowed: String,
}

impl fmt::Display for MappingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, place: (line, column), found, allowed } = self;
        write!(f, "{file}: line {line}, column {column}: found {found}; allowed: {allowed}")
    }
}

impl std::error::Error for MappingError {}

tsuji_msg::__sentences! {
    MappingError,
}

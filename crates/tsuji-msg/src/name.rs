use crate::definition::{Kind, is_message_name, is_package_name};
use std::fmt;
use std::str::FromStr;

/// The name of an interface: `sensor_msgs/msg/Image`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeName {
    package: String,
    kind: Kind,
    name: String,
}

impl TypeName {
    /// Makes a name of its parts, as ROS allows it.
    ///
    /// # Errors
    ///
    /// A [`NameError`] if `package` is not made of small letters, digits and single underscores, or `name` is not
    /// made of letters and digits, but for what ROS appends to the parts of services and actions. The package
    /// begins with a small letter and does not end with an underscore, the name begins with a capital.
    pub fn new(package: &str, kind: Kind, name: &str) -> Result<Self, NameError> {
        if is_package_name(package) && is_message_name(name) {
            Ok(Self { package: package.into(), kind, name: name.into() })
        } else {
            Err(NameError(format!("{package}/{kind}/{name}")))
        }
    }

    /// The package.
    pub fn package(&self) -> &str {
        &self.package
    }

    /// What it is. The parts of a service are messages and yet named `srv`.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The last part.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name that DDS gives it: `sensor_msgs::msg::dds_::Image_`.
    pub fn dds(&self) -> String {
        format!("{}::{}::dds_::{}_", self.package, self.kind, self.name)
    }

    /// Reads the name that DDS gives.
    ///
    /// # Errors
    ///
    /// A [`NameError`] if the text is not `package::kind::dds_::Name_` with the kind `msg`, `srv` or `action`; else
    /// those of [`new`](Self::new).
    pub fn from_dds(text: &str) -> Result<Self, NameError> {
        let parts: Vec<&str> = text.split("::").collect();
        match *parts {
            [package, kind, "dds_", name] if name.ends_with('_') => {
                format!("{package}/{kind}/{}", &name[..name.len() - 1]).parse()
            }
            _ => Err(NameError(text.into())),
        }
    }

    /// The part of a service or action with this suffix.
    pub(crate) fn with_suffix(&self, suffix: &str) -> Self {
        Self {
            package: self.package.clone(),
            kind: self.kind,
            name: format!("{}{suffix}", self.name),
        }
    }
}

impl FromStr for TypeName {
    type Err = NameError;

    /// Reads `package/msg/Name`; `package/Name` is a message.
    fn from_str(text: &str) -> Result<Self, NameError> {
        let parts: Vec<&str> = text.split('/').collect();
        let (package, kind, name) = match *parts {
            [package, name] => (package, Kind::Message, name),
            [package, "msg", name] => (package, Kind::Message, name),
            [package, "srv", name] => (package, Kind::Service, name),
            [package, "action", name] => (package, Kind::Action, name),
            _ => return Err(NameError(text.into())),
        };
        Self::new(package, kind, name).map_err(|_| NameError(text.into()))
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.package, self.kind, self.name)
    }
}

/// A text that names no interface.
#[derive(Clone, PartialEq, Eq)]
pub struct NameError(pub(crate) String);

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` names no interface; allowed: package/msg/Name, package/srv/Name, package/action/Name, package/Name",
            self.0
        )
    }
}

impl std::error::Error for NameError {}

//! Interfaces by name: those of an installed ROS 2 first, then those that ship with tsuji.

use std::collections::BTreeSet;
use std::env;
use std::sync::Arc;

use tsuji_interfaces::{AmentIndex, Chain, Shipped};
use tsuji_msg::{
    ActionDescription, Kind, LoadError, Resolver, ServiceDescription, TypeDescription, TypeName,
    TypeSet,
};
use tsuji_policy::spelling::distance;

use crate::failure::Usage;
use crate::output;

/// Names that are suggested for an unknown one.
const SUGGESTIONS_MAX: usize = 3;

/// Every interface that this environment knows.
#[derive(Debug)]
pub(crate) struct Interfaces {
    ament: AmentIndex,
    types: TypeSet<Chain>,
}

impl Interfaces {
    /// What `AMENT_PREFIX_PATH` names, over what ships with tsuji.
    pub(crate) fn from_environment() -> Self {
        let path = env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
        let ament = AmentIndex::from_env_value(path);
        let chain = Chain(vec![Box::new(ament.clone()), Box::new(Shipped)]);
        Self { ament, types: TypeSet::new(chain) }
    }

    /// A message type, also one that is a part of a service or an action.
    pub(crate) fn message(&self, name: &str) -> anyhow::Result<Arc<TypeDescription>> {
        self.types.load(name).map_err(|error| self.explain(name, error))
    }

    /// A service type.
    pub(crate) fn service(&self, name: &str) -> anyhow::Result<ServiceDescription> {
        self.types.load_service(name).map_err(|error| self.explain(name, error))
    }

    /// An action type.
    pub(crate) fn action(&self, name: &str) -> anyhow::Result<ActionDescription> {
        self.types.load_action(name).map_err(|error| self.explain(name, error))
    }

    /// Like [`TypeSet`], with suggestions where a name is unknown.
    pub(crate) fn types(&self) -> &TypeSet<Chain> {
        &self.types
    }

    /// The text of the definition of `name`.
    pub(crate) fn definition(&self, name: &TypeName) -> anyhow::Result<String> {
        let text = self.types.resolver().find(name.kind(), name.package(), name.name())?;
        text.map(|it| it.text.into_owned()).ok_or_else(|| self.unknown(&name.to_string()))
    }

    /// All names in their order, such as `sensor_msgs/msg/Image`. What cannot be read is left out.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.names_and_troubles().0
    }

    /// The same, and what is left out is told.
    pub(crate) fn names_told(&self) -> BTreeSet<String> {
        let (names, troubles) = self.names_and_troubles();
        troubles.into_iter().for_each(output::warning);
        names
    }

    fn names_and_troubles(&self) -> (BTreeSet<String>, Vec<String>) {
        let (mut names, troubles) = self.ament.names();
        names.extend(tsuji_interfaces::names().map(str::to_owned));
        let told = troubles.into_iter().map(|it| format!("{it}; its interfaces are left out"));
        (names, told.collect())
    }

    /// What is said of an unknown name: what may have been meant, and where was looked.
    pub(crate) fn unknown(&self, name: &str) -> anyhow::Error {
        let names = self.names_told();
        let mut text = format!("unknown interface \"{name}\"");
        let suggestions = suggestions(name, &names);
        match suggestions.is_empty() {
            true => text.push_str("; searched"),
            false => {
                text.push_str(&format!("; did you mean {}? Searched", suggestions.join(" or ")))
            }
        }
        let prefixes = match self.ament.prefixes().len() {
            0 => String::new(),
            1 => "AMENT_PREFIX_PATH (1 folder) and ".to_owned(),
            more => format!("AMENT_PREFIX_PATH ({more} folders) and "),
        };
        text.push_str(&format!(
            " {prefixes}what ships with tsuji, `tsuji interface list` lists all {}",
            names.len()
        ));
        Usage(text).into()
    }

    /// An error of the loader, in the words of a user.
    pub(crate) fn explain(&self, name: &str, error: LoadError) -> anyhow::Error {
        match error {
            LoadError::Missing { used_by: None, .. } => self.unknown(name),
            LoadError::Name(_) if !self.near(name).is_empty() => self.unknown(name),
            LoadError::Name(_) | LoadError::Kind { .. } => Usage(error.to_string()).into(),
            error => error.into(),
        }
    }

    fn near(&self, name: &str) -> Vec<String> {
        suggestions(name, &self.names())
    }
}

/// The known names that `name` was most likely meant to be, the likeliest first.
fn suggestions(name: &str, names: &BTreeSet<String>) -> Vec<String> {
    let wanted = name.to_lowercase();
    let wanted_last = last(&wanted);
    let mut near: Vec<(usize, &String)> = names
        .iter()
        .filter_map(|known| {
            let lower = known.to_lowercase();
            let short = lower.replacen("/msg/", "/", 1);
            let whole = distance(&wanted, &lower).min(distance(&wanted, &short));
            // `Image` or `geometry_msgs/Image` finds sensor_msgs/msg/Image.
            let end = distance(wanted_last, last(&lower));
            let limit = wanted_last.chars().count() / 4;
            let by_end = (end <= limit).then_some(end * 2 + 1);
            let by_whole = (whole <= 2).then_some(whole * 2);
            by_whole.into_iter().chain(by_end).min().map(|distance| (distance, known))
        })
        .collect();
    near.sort();
    let best = near.first().map_or(0, |(distance, _)| *distance);
    let near = near.into_iter().take_while(|(distance, _)| *distance <= best + 1);
    near.map(|(_, known)| known.clone()).take(SUGGESTIONS_MAX).collect()
}

fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The heading that `ros2 interface list` gives a kind.
pub(crate) fn heading(kind: Kind) -> &'static str {
    match kind {
        Kind::Message => "Messages:",
        Kind::Service => "Services:",
        Kind::Action => "Actions:",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expect: &[&str]) {
        let names = tsuji_interfaces::names().map(str::to_owned).collect();
        assert_eq!(suggestions(name, &names), expect);
    }

    #[test]
    fn what_was_meant() {
        check("std_msgs/msg/Sting", &["std_msgs/msg/String", "example_interfaces/msg/String"]);
        check("std_msgs/sTring", &["std_msgs/msg/String", "example_interfaces/msg/String"]);
        check("geometry_msgs/msg/Image", &["sensor_msgs/msg/Image"]);
        check("Twist", &["geometry_msgs/msg/Twist"]);
        check("sensor_msgs/msg/Imge", &["sensor_msgs/msg/Image"]);
        check("my_msgs/msg/Nonsense", &[]);
    }
}

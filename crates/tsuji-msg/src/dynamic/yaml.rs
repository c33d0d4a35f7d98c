//! Messages from YAML text.

use super::input::{self, Input};
use super::{DynamicMessage, ValueError};
use crate::types::TypeDescription;
use crate::yaml::parse;
use std::sync::Arc;

/// The time that `auto` and `now` stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Seconds since the epoch.
    pub sec: i32,
    /// Nanoseconds within the second.
    pub nanosec: u32,
}

impl DynamicMessage {
    /// A message from YAML as `ros2 topic pub` takes it: `{linear: {x: 1.0}}`. Fields that are not
    /// named keep their defaults.
    pub fn from_yaml(ty: &Arc<TypeDescription>, text: &str) -> Result<Self, ValueError> {
        input::message(ty, Input::Yaml(&parse(text)?), None)
    }

    /// As [`DynamicMessage::from_yaml`], and `header: auto` or `stamp: now` becomes the time `now`.
    pub fn from_yaml_at(
        ty: &Arc<TypeDescription>,
        text: &str,
        now: Now,
    ) -> Result<Self, ValueError> {
        input::message(ty, Input::Yaml(&parse(text)?), Some(now))
    }
}

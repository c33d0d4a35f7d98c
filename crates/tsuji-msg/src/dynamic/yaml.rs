//! Messages from YAML text.

use super::input::{self, Input};
use super::{DynamicMessage, ValueError};
use crate::types::TypeDescription;
use crate::yaml::parse_with_tags;
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
    /// A message from YAML as `ros2 topic pub` takes it: `{linear: {x: 1.0}}`.
    ///
    /// Fields that are not named keep their defaults.
    ///
    /// # Errors
    ///
    /// Those of [`parse_with_tags`]; a [`ValueError`] with the path of the field and its place in the text if a
    /// mapping or a sequence is wanted and there is another value, a mapping names a field that its type does not
    /// have, a word stands for no value of its type or one out of range, a text is longer than its type allows, or
    /// a sequence has more or fewer elements than its type allows.
    pub fn from_yaml(ty: &Arc<TypeDescription>, text: &str) -> Result<Self, ValueError> {
        input::message(ty, Input::Yaml(&parse_with_tags(text)?), None)
    }

    /// A message from YAML as [`DynamicMessage::from_yaml`] reads it, where `header: auto` or `stamp: now` becomes
    /// the time `now`.
    ///
    /// # Errors
    ///
    /// Those of [`from_yaml`](Self::from_yaml).
    pub fn from_yaml_at(
        ty: &Arc<TypeDescription>,
        text: &str,
        now: Now,
    ) -> Result<Self, ValueError> {
        input::message(ty, Input::Yaml(&parse_with_tags(text)?), Some(now))
    }
}

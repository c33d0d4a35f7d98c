//! The part of a message that `--field` names.

use std::sync::Arc;

use tsuji_msg::definition::{FieldType, Shape};
use tsuji_msg::{DynamicMessage, TypeDescription, Value};

use crate::failure::Usage;

/// A part that every message of a type has, but for elements of sequences.
#[derive(Debug)]
pub(super) struct Part {
    /// Such as `poses[0].position`.
    pub(super) path: String,
    pub(super) ty: FieldType<Arc<TypeDescription>>,
}

impl Part {
    /// Takes a path apart. As in `ros2`, points at its ends mean nothing.
    pub(super) fn new(path: &str, ty: &Arc<TypeDescription>) -> Result<Self, Usage> {
        let refuse = |text: String| Usage(format!("--field {path}: {text}"));
        let mut holder = Some(Arc::clone(ty));
        let mut walked = String::new();
        let mut found = None;
        for step in names(path)? {
            let (name, indices) = step.split_at(step.find('[').unwrap_or(step.len()));
            let Some(message) = holder.take() else {
                return Err(refuse(match &found {
                    Some(FieldType { shape: Shape::Single, .. }) | None => {
                        format!("{walked} is {} and has no fields", shown(&found))
                    }
                    Some(_) => format!(
                        "{walked} is {} and has elements; allowed: {walked}[0].{step} and the like",
                        shown(&found)
                    ),
                }));
            };
            let Some((_, field)) = message.field(name) else {
                let names: Vec<&str> = message.fields().iter().map(|it| it.name.as_str()).collect();
                let allowed = match names.is_empty() {
                    true => "it has none".to_owned(),
                    false => format!("allowed: {}", names.join(", ")),
                };
                return Err(refuse(format!("{message} has no field \"{name}\"; {allowed}")));
            };
            walked.extend([if walked.is_empty() { "" } else { "." }, name]);
            let mut ty = field.ty.clone();
            if let Some(index) = index(indices).ok_or_else(|| refuse(NO_INDEX.to_owned()))? {
                match ty.shape {
                    Shape::Single => {
                        return Err(refuse(format!("{walked} is {ty} and has no elements")));
                    }
                    Shape::Array(most) | Shape::Bounded(most) if most as usize <= index => {
                        let text = format!("{walked} is {ty}; allowed: an index below {most}");
                        return Err(refuse(text));
                    }
                    _ => ty.shape = Shape::Single,
                }
                walked.push_str(indices);
            }
            if ty.shape == Shape::Single {
                holder = ty.base.nested().cloned();
            }
            found = Some(ty);
        }
        match found {
            Some(ty) => Ok(Self { path: walked, ty }),
            None => Err(refuse("allowed: a name such as pose.position or poses[0].x".to_owned())),
        }
    }

    /// The part of one message; why there is none is an element that it does not have.
    pub(super) fn of(&self, message: &DynamicMessage) -> anyhow::Result<Value> {
        Ok(message.get(&self.path)?.into_owned())
    }
}

const NO_INDEX: &str = "an index is a number in brackets, such as [0]";

/// Checks what can be checked before the type is known.
pub(super) fn check(path: &str) -> Result<(), Usage> {
    // What is empty is not to look as if nothing was said.
    let said = if path.is_empty() { "''" } else { path };
    let refuse = |text: &str| Usage(format!("--field {said}: {text}"));
    let steps = names(path)?;
    if steps.is_empty() {
        return Err(refuse("allowed: a name such as pose.position or poses[0].x"));
    }
    for step in steps {
        let indices = &step[step.find('[').unwrap_or(step.len())..];
        index(indices).ok_or_else(|| refuse(NO_INDEX))?;
    }
    Ok(())
}

/// The names with points between them.
fn names(path: &str) -> Result<Vec<&str>, Usage> {
    let steps: Vec<&str> = path.split('.').filter(|it| !it.is_empty()).collect();
    match steps.iter().any(|it| it.starts_with('[') || it.contains(char::is_whitespace)) {
        true => Err(Usage(format!(
            "--field {path}: allowed: names with `.` between them and `[index]` behind"
        ))),
        false => Ok(steps),
    }
}

/// The index in `[0]`; none where there are no brackets, and nothing where they hold no number.
fn index(brackets: &str) -> Option<Option<usize>> {
    if brackets.is_empty() {
        return Some(None);
    }
    let digits = brackets.strip_prefix('[')?.strip_suffix(']')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
    Some(Some(digits.parse().ok().filter(|_| is_number)?))
}

fn shown(ty: &Option<FieldType<Arc<TypeDescription>>>) -> String {
    ty.as_ref().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsuji_interfaces::Shipped;

    #[test]
    fn paths_of_a_type() {
        let check = |ty: &str, path: &str, expect: &str| {
            let ty = tsuji_msg::load(ty, &Shipped).unwrap();
            let found = match Part::new(path, &ty) {
                Ok(part) => format!("{} {}", part.path, part.ty),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expect, "{path}");
        };
        let array = "geometry_msgs/msg/PoseArray";
        check(array, "header.frame_id", "header.frame_id string");
        check(array, ".header.frame_id.", "header.frame_id string");
        check(array, "poses", "poses geometry_msgs/msg/Pose[]");
        check(array, "poses[3].position.x", "poses[3].position.x float64");
        let poses = "--field poses.position: poses is geometry_msgs/msg/Pose[] and has elements; \
                     allowed: poses[0].position and the like";
        check(array, "poses.position", poses);
        check(
            array,
            "header[0]",
            "--field header[0]: header is std_msgs/msg/Header and has no elements",
        );
        check(array, "poses[x]", "--field poses[x]: an index is a number in brackets, such as [0]");
        check(array, "poses[0", "--field poses[0: an index is a number in brackets, such as [0]");
        check(
            array,
            "poses[0][1]",
            "--field poses[0][1]: an index is a number in brackets, such as [0]",
        );
        check(array, ".", "--field .: allowed: a name such as pose.position or poses[0].x");
        let covariance = "geometry_msgs/msg/PoseWithCovariance";
        check(covariance, "covariance[35]", "covariance[35] float64");
        let beyond =
            "--field covariance[36]: covariance is float64[36]; allowed: an index below 36";
        check(covariance, "covariance[36]", beyond);
        let leaf = "--field data.x: data is string and has no fields";
        check("std_msgs/msg/String", "data.x", leaf);
        check(
            "std_msgs/msg/Empty",
            "x",
            "--field x: std_msgs/msg/Empty has no field \"x\"; it has none",
        );
    }
}

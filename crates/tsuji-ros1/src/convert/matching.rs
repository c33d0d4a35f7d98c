//! Which fields of two messages belong together.

use super::PlanError;
use crate::mapping::Mapping;
use crate::types::{self, MessageType, Shape as Shape1};
use std::sync::Arc;
use tsuji_msg::TypeDescription;
use tsuji_msg::definition::{Base, Shape};

/// Two fields that belong together, each by the way to it from its message.
#[derive(Clone, Debug)]
pub(super) struct Pair<'m> {
    pub(super) ros1: Vec<usize>,
    pub(super) ros2: Vec<usize>,
    /// Numbers that mean the same.
    pub(super) values: Option<&'m [(i64, i64)]>,
}

pub(super) fn pairs<'m>(
    ros1: &MessageType,
    ros2: &Arc<TypeDescription>,
    mapping: &'m Mapping,
) -> Result<Vec<Pair<'m>>, PlanError> {
    let full = ros2.name().to_string();
    let rules = mapping.fields(ros1.name(), &full);
    let mut pairs = Vec::<Pair<'m>>::new();
    let wrong =
        |problem: String| PlanError::Rule { ros1: ros1.name().into(), ros2: full.clone(), problem };
    let listed = rules.map(|rules| rules.pairs.as_slice()).unwrap_or_default();
    for (one, two) in listed {
        let no_field = |path: &str, of: &str| wrong(format!("{of} has no field `{path}`"));
        let pair = Pair {
            ros1: path_of_ros1(ros1, one).ok_or_else(|| no_field(one, ros1.name()))?,
            ros2: path_of_ros2(ros2, two).ok_or_else(|| no_field(two, &full))?,
            values: None,
        };
        let overlaps = |a: &[usize], b: &[usize]| a.starts_with(b) || b.starts_with(a);
        let is_twice = |other: &Pair<'_>| {
            overlaps(&other.ros1, &pair.ros1) || overlaps(&other.ros2, &pair.ros2)
        };
        if pairs.iter().any(is_twice) {
            return Err(wrong(format!("`{one}: {two}` names a field that another line covers")));
        }
        pairs.push(pair);
    }
    match_names(ros1, ros2, &mut pairs);
    if listed.is_empty() {
        let only_ros1: Vec<_> = (ros1.fields().iter().enumerate())
            .filter(|(at, _)| pairs.iter().all(|pair| pair.ros1[0] != *at))
            .map(|(_, field)| field.name.clone())
            .collect();
        let only_ros2: Vec<_> = (ros2.fields().iter().enumerate())
            .filter(|(at, _)| pairs.iter().all(|pair| pair.ros2[0] != *at))
            .map(|(_, field)| field.name.clone())
            .collect();
        if !only_ros1.is_empty() && !only_ros2.is_empty() {
            let (ros1, ros2) = (ros1.name().to_owned(), full);
            return Err(PlanError::Unmatched { ros1, ros2, only_ros1, only_ros2 });
        }
    }
    for (field, values) in rules.map(|rules| rules.values.as_slice()).unwrap_or_default() {
        let path = path_of_ros1(ros1, field);
        let pair = path.and_then(|path| pairs.iter_mut().find(|pair| pair.ros1 == path));
        let pair = pair.ok_or_else(|| {
            wrong(format!("`values_1_to_2` names `{field}`, to which no field of {full} belongs"))
        })?;
        pair.values = Some(values);
    }
    Ok(pairs)
}

/// Adds the fields of the same name that no rule lists. Where a rule lists others, those whose types do not convert are
/// left out.
fn match_names(ros1: &MessageType, ros2: &Arc<TypeDescription>, pairs: &mut Vec<Pair<'_>>) {
    let is_ruled = !pairs.is_empty();
    // The very name comes before one that only differs in its capitals.
    for is_exact in [true, false] {
        for (at1, field1) in ros1.fields().iter().enumerate() {
            let lower = field1.name.to_ascii_lowercase();
            let name = if is_exact { &field1.name } else { &lower };
            let Some((at2, field2)) = ros2.field(name) else { continue };
            let is_taken = |pair: &Pair<'_>| pair.ros1[0] == at1 || pair.ros2[0] == at2;
            if pairs.iter().any(is_taken) || is_ruled && !is_alike(field1, field2) {
                continue;
            }
            pairs.push(Pair { ros1: vec![at1], ros2: vec![at2], values: None });
        }
    }
}

/// Whether the types of two fields convert, as far as it shows without looking into messages.
fn is_alike(one: &types::Field, two: &tsuji_msg::Field) -> bool {
    let is_list = |is_single: bool| !is_single;
    if is_list(one.shape == Shape1::Single) != is_list(two.ty.shape == Shape::Single) {
        return false;
    }
    match (&one.base, &two.ty.base) {
        (types::Base::Scalar(one), Base::Scalar(two)) => super::compile::is_convertible(*one, *two),
        (types::Base::String, Base::String { .. }) => true,
        (types::Base::Time, Base::Nested(two)) => super::compile::is_time(two),
        (types::Base::Duration, Base::Nested(two)) => super::compile::is_duration(two),
        (types::Base::Message(_), Base::Nested(_)) => true,
        _ => false,
    }
}

fn path_of_ros1(ty: &MessageType, path: &str) -> Option<Vec<usize>> {
    let mut inside = Some(ty);
    path.split('.')
        .map(|name| {
            let fields = inside?.fields();
            let at = fields.iter().position(|field| field.name == name)?;
            inside = match (&fields[at].base, fields[at].shape) {
                (types::Base::Message(ty), Shape1::Single) => Some(ty),
                _ => None,
            };
            Some(at)
        })
        .collect()
}

fn path_of_ros2(ty: &Arc<TypeDescription>, path: &str) -> Option<Vec<usize>> {
    let mut inside = Some(ty);
    path.split('.')
        .map(|name| {
            let (at, field) = inside?.field(name)?;
            inside = field.ty.base.nested().filter(|_| field.ty.shape == Shape::Single);
            Some(at)
        })
        .collect()
}

//! What ROS 1 has for a type of ROS 2.

use super::text::{is_constant_type, is_identifier};
use super::{Builder, MessageType, ServiceType, Source, TypeError};
use crate::mapping::Mapping;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use tsuji_msg::definition::{Base, Constant, Literal, Shape};
use tsuji_msg::{Field, Kind, ServiceDescription, TypeDescription};

/// The types of ROS 2 that are types of the language in ROS 1.
const TIME: &str = "builtin_interfaces/msg/Time";
const DURATION: &str = "builtin_interfaces/msg/Duration";

pub(super) fn message(
    ros2: &Arc<TypeDescription>,
    mapping: &Mapping,
) -> Result<MessageType, TypeError> {
    let name = name_of(ros2, mapping)?;
    let available = available(&[ros2], mapping);
    let mut find = |name: &str| source(name, &available, mapping);
    let text = text_of(&name, ros2, mapping)?;
    Builder::new(&mut find).named(&name, &text)
}

pub(super) fn service(
    ros2: &ServiceDescription,
    mapping: &Mapping,
) -> Result<ServiceType, TypeError> {
    let full = ros2.name.to_string();
    let name = mapping.service_to_ros1(&full).ok_or_else(|| no_name(&full))?;
    let available = available(&[&ros2.request, &ros2.response], mapping);
    let mut find = |name: &str| source(name, &available, mapping);
    let mut builder = Builder::new(&mut find);
    let mut part = |suffix: &str, ros2: &Arc<TypeDescription>| {
        let name = format!("{name}{suffix}");
        builder.named(&name, &text_of(&name, ros2, mapping)?)
    };
    let request = part("Request", &ros2.request)?;
    let response = part("Response", &ros2.response)?;
    Ok(ServiceType::of(&name, request, response))
}

fn no_name(ros2: &str) -> TypeError {
    let problem = "the type has no name in ROS 1".to_owned();
    TypeError::NoCounterpart { name: ros2.into(), field: String::new(), problem }
}

/// The name of a message in ROS 1; those of the parts of a service are `SetBoolRequest` and `SetBoolResponse`.
fn name_of(ros2: &TypeDescription, mapping: &Mapping) -> Result<String, TypeError> {
    let full = ros2.name().to_string();
    if ros2.name().kind() == Kind::Message {
        return mapping.message_to_ros1(&full).ok_or_else(|| no_name(&full));
    }
    let part = ["Request", "Response"].iter().find_map(|part| {
        let service = full.strip_suffix(part)?.strip_suffix('_')?;
        Some(format!("{}{part}", mapping.service_to_ros1(service)?))
    });
    part.ok_or_else(|| no_name(&full))
}

/// The types that can be used, by their names in ROS 1.
fn available<'a>(
    of: &[&'a Arc<TypeDescription>],
    mapping: &Mapping,
) -> HashMap<String, &'a Arc<TypeDescription>> {
    let used = of.iter().flat_map(|ros2| ros2.referenced());
    used.filter_map(|used| Some((name_of(used, mapping).ok()?, used))).collect()
}

fn source(
    name: &str,
    available: &HashMap<String, &Arc<TypeDescription>>,
    mapping: &Mapping,
) -> Option<Source> {
    let text = match (mapping.definition(name), available.get(name)) {
        (Some(text), _) => Ok(text.to_owned()),
        (None, Some(ros2)) => text_of(name, ros2, mapping),
        (None, None) => return None,
    };
    Some(text.map_or_else(Source::Refused, Source::Text))
}

/// The definition in ROS 1 of a type of ROS 2.
fn text_of(ros1: &str, ros2: &TypeDescription, mapping: &Mapping) -> Result<String, TypeError> {
    if let Some(text) = mapping.definition(ros1) {
        return Ok(text.to_owned());
    }
    let full = ros2.name().to_string();
    let rules = mapping.fields(ros1, &full).map(|rules| rules.pairs.as_slice()).unwrap_or_default();
    if let Some((one, two)) = rules.iter().find(|(one, two)| one.contains('.') || two.contains('.'))
    {
        let problem = format!(
            "a mapping rule has `{one}` of {ros1} for it; such a rule needs the key `ros1_definition`"
        );
        return Err(TypeError::NoCounterpart { name: full, field: two.clone(), problem });
    }
    let mut text = String::new();
    for constant in ros2.constants() {
        let wrong = |problem: String| TypeError::NoCounterpart {
            name: full.clone(),
            field: constant.name.clone(),
            problem,
        };
        let ty = match &constant.base {
            Base::Scalar(kind) => kind.name(),
            Base::String { .. } => "string",
            Base::WString { .. } | Base::Nested(_) => {
                return Err(wrong(NO_WSTRING.into()));
            }
        };
        debug_assert!(is_constant_type(ty));
        let value = constant_value(constant, ros2.text());
        if value.contains('\n') {
            return Err(wrong("a constant of ROS 1 has no line end".into()));
        }
        // Writing to a String does not fail.
        let _ = writeln!(text, "{ty} {}={value}", constant.name);
    }
    for field in ros2.fields() {
        let renamed = rules.iter().find(|(_, two)| *two == field.name);
        let name = renamed.map_or(field.name.as_str(), |(one, _)| one);
        debug_assert!(is_identifier(name));
        let ty = type_of(field, &full, mapping)?;
        let _ = writeln!(text, "{ty} {name}");
    }
    Ok(text)
}

const NO_WSTRING: &str = "ROS 1 has no wstring";

fn type_of(field: &Field, owner: &str, mapping: &Mapping) -> Result<String, TypeError> {
    let wrong = |problem: String| TypeError::NoCounterpart {
        name: owner.into(),
        field: field.name.clone(),
        problem,
    };
    let base = match &field.ty.base {
        Base::Scalar(kind) => kind.name().to_owned(),
        Base::String { .. } => "string".to_owned(),
        Base::WString { .. } => return Err(wrong(NO_WSTRING.into())),
        Base::Nested(nested) => match nested.name().to_string().as_str() {
            TIME => "time".to_owned(),
            DURATION => "duration".to_owned(),
            _ => name_of(nested, mapping).map_err(|error| wrong(error.to_string()))?,
        },
    };
    Ok(match field.ty.shape {
        Shape::Single => base,
        Shape::Array(count) => format!("{base}[{count}]"),
        Shape::Sequence | Shape::Bounded(_) => format!("{base}[]"),
    })
}

/// The value of a constant in the words of its definition, which the MD5 sum is of, unless ROS 1 does not know them.
fn constant_value(constant: &Constant, text: &str) -> String {
    let written = text.lines().find_map(|line| {
        let (left, value) = line.split('#').next()?.split_once('=')?;
        let is_it = left.split_whitespace().nth(1) == Some(constant.name.as_str());
        is_it.then(|| value.trim().to_owned())
    });
    let is_decimal = |word: &String| {
        let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    match &constant.value {
        Literal::Text(value) => value.clone(),
        Literal::Bool(value) => {
            let known = written.filter(|word| ["True", "False", "0", "1"].contains(&word.as_str()));
            known.unwrap_or_else(|| if *value { "True" } else { "False" }.to_owned())
        }
        Literal::Integer(value) => written.filter(is_decimal).unwrap_or_else(|| value.to_string()),
        value => written.unwrap_or_else(|| value.to_string()),
    }
}

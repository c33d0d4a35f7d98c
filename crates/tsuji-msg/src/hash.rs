//! The RIHS01 type hash: SHA-256 over the type description as JSON, exactly as rosidl writes it.
//!
//! The JSON has spaces after commas and colons, keys in a fixed order, no default values, and the
//! types that are used, at any depth, sorted by name. An empty message counts with the one field
//! that rosidl gives it.

use crate::definition::{Base, FieldType, ScalarKind, Shape};
use crate::name::TypeName;
use crate::types::{ServiceDescription, TypeDescription};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The field that rosidl puts into a message without any.
const EMPTY_FIELD: &str = "structure_needs_at_least_one_member";

/// The hash of a message.
pub(crate) fn message(description: &TypeDescription) -> String {
    let mut used = BTreeMap::new();
    use_fields_of(description, &mut used);
    digest(&message_json(description), used)
}

/// The hash of a service.
pub(crate) fn service(
    name: &TypeName,
    request: &TypeDescription,
    response: &TypeDescription,
    event: &TypeDescription,
) -> String {
    let mut used = BTreeMap::new();
    for part in [request, response, event] {
        use_message(part, &mut used);
    }
    digest(&service_json(name, request, response, event), used)
}

/// The hash of an action.
pub(crate) fn action(
    name: &TypeName,
    [goal, result, feedback]: [&TypeDescription; 3],
    [send_goal, get_result]: [&ServiceDescription; 2],
    feedback_message: &TypeDescription,
) -> String {
    let mut used = BTreeMap::new();
    for part in [goal, result, feedback, feedback_message] {
        use_message(part, &mut used);
    }
    for part in [send_goal, get_result] {
        let ServiceDescription { name, request, response, event, .. } = part;
        used.insert(name.to_string(), service_json(name, request, response, event));
        for message in [request, response, event] {
            use_message(message, &mut used);
        }
    }
    let fields = [
        ("goal", goal.name()),
        ("result", result.name()),
        ("feedback", feedback.name()),
        ("send_goal_service", &send_goal.name),
        ("get_result_service", &get_result.name),
        ("feedback_message", feedback_message.name()),
    ];
    digest(
        &interface_json(name, fields.map(|(field, ty)| nested_field_json(field, ty)).into()),
        used,
    )
}

fn use_message(description: &TypeDescription, used: &mut BTreeMap<String, String>) {
    if used.insert(description.name().to_string(), message_json(description)).is_none() {
        use_fields_of(description, used);
    }
}

fn use_fields_of(description: &TypeDescription, used: &mut BTreeMap<String, String>) {
    for field in description.fields() {
        if let Base::Nested(nested) = &field.ty.base {
            use_message(nested, used);
        }
    }
}

fn digest(top: &str, used: BTreeMap<String, String>) -> String {
    let used = used.into_values().collect::<Vec<_>>().join(", ");
    let json =
        format!("{{\"type_description\": {top}, \"referenced_type_descriptions\": [{used}]}}");
    let mut text = String::from("RIHS01_");
    for byte in Sha256::digest(json.as_bytes()) {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn message_json(description: &TypeDescription) -> String {
    let mut fields: Vec<_> =
        description.fields().iter().map(|field| field_json(&field.name, &field.ty)).collect();
    if fields.is_empty() {
        fields.push(raw_field_json(EMPTY_FIELD, scalar_id(ScalarKind::U8), 0, 0, ""));
    }
    interface_json(description.name(), fields)
}

fn service_json(
    name: &TypeName,
    request: &TypeDescription,
    response: &TypeDescription,
    event: &TypeDescription,
) -> String {
    let fields =
        [("request_message", request), ("response_message", response), ("event_message", event)];
    interface_json(name, fields.map(|(field, part)| nested_field_json(field, part.name())).into())
}

fn interface_json(name: &TypeName, fields: Vec<String>) -> String {
    format!("{{\"type_name\": \"{name}\", \"fields\": [{}]}}", fields.join(", "))
}

fn nested_field_json(field: &str, name: &TypeName) -> String {
    raw_field_json(field, 1, 0, 0, &name.to_string())
}

fn field_json(name: &str, ty: &FieldType<std::sync::Arc<TypeDescription>>) -> String {
    let (base, text_capacity, nested) = match &ty.base {
        Base::Scalar(kind) => (scalar_id(*kind), 0, String::new()),
        Base::String { bound: None } => (17, 0, String::new()),
        Base::WString { bound: None } => (18, 0, String::new()),
        Base::String { bound: Some(bound) } => (21, *bound, String::new()),
        Base::WString { bound: Some(bound) } => (22, *bound, String::new()),
        Base::Nested(nested) => (1, 0, nested.name().to_string()),
    };
    let (offset, capacity) = match ty.shape {
        Shape::Single => (0, 0),
        Shape::Array(count) => (48, count),
        Shape::Bounded(bound) => (96, bound),
        Shape::Sequence => (144, 0),
    };
    raw_field_json(name, base + offset, capacity, text_capacity, &nested)
}

fn raw_field_json(name: &str, id: u8, capacity: u32, text_capacity: u32, nested: &str) -> String {
    format!(
        "{{\"name\": \"{name}\", \"type\": {{\"type_id\": {id}, \"capacity\": {capacity}, \
         \"string_capacity\": {text_capacity}, \"nested_type_name\": \"{nested}\"}}}}"
    )
}

/// The number of `type_description_interfaces/msg/FieldType`. A `char` is there a `uint8`, because
/// rosidl makes it one on the way to IDL.
fn scalar_id(kind: ScalarKind) -> u8 {
    match kind {
        ScalarKind::I8 => 2,
        ScalarKind::U8 | ScalarKind::Char => 3,
        ScalarKind::I16 => 4,
        ScalarKind::U16 => 5,
        ScalarKind::I32 => 6,
        ScalarKind::U32 => 7,
        ScalarKind::I64 => 8,
        ScalarKind::U64 => 9,
        ScalarKind::F32 => 10,
        ScalarKind::F64 => 11,
        ScalarKind::Bool => 15,
        ScalarKind::Byte => 16,
    }
}

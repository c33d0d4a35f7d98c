//! From introspection to the definition of a type, for what looks at fields by their names.

use super::compile::{DEPTH_MAX, EMPTY_FIELD};
use super::error::{PlanError, PlanProblem};
use super::support::{fields, members_at, text};
use crate::abi::{Abi, InC};
use crate::ffi::rosidl::{MessageMember, MessageMembers, field_type};
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::fmt::Write as _;

/// The definition of a message type in the language of `.msg`, with those of the types that it uses.
///
/// # Safety
/// `members` is such a table, whole.
pub(super) unsafe fn definition(
    members: *const InC<MessageMembers>,
    abi: &Abi,
) -> Result<String, PlanError> {
    let mut used = BTreeMap::new();
    // SAFETY: as the caller says.
    let mut own = unsafe { lines(members, abi, &mut used, 0)? };
    for (name, text) in used {
        let _ = write!(own, "===\nMSG: {name}\n{}", text.unwrap_or_default());
    }
    Ok(own)
}

/// # Safety
/// As of [`definition`].
unsafe fn lines(
    members: *const InC<MessageMembers>,
    abi: &Abi,
    used: &mut BTreeMap<String, Option<String>>,
    depth: usize,
) -> Result<String, PlanError> {
    // SAFETY: as the caller says.
    let table = unsafe { members_at(members, abi) }.filter(|_| depth <= DEPTH_MAX);
    let Some(table) = table else { return Err(PlanError::new(PlanProblem::Table("no table"))) };
    let mut out = String::new();
    // SAFETY: as the caller says.
    for member in unsafe { fields(&table, abi) } {
        // SAFETY: names in a table are C strings.
        let name = unsafe { text(member.name_) };
        if name == EMPTY_FIELD {
            continue;
        }
        // SAFETY: as the caller says.
        let of = unsafe { base(&member, abi, used, depth)? };
        let shape = match (member.is_array_, member.is_upper_bound_, member.array_size_) {
            (false, ..) => String::new(),
            (true, true, most) => format!("[<={most}]"),
            (true, false, 0) => "[]".to_owned(),
            (true, false, count) => format!("[{count}]"),
        };
        let _ = writeln!(out, "{of}{shape} {name}");
    }
    Ok(out)
}

/// What a field, an array or a sequence is made of.
///
/// # Safety
/// `member` is of a whole table.
unsafe fn base(
    member: &MessageMember,
    abi: &Abi,
    used: &mut BTreeMap<String, Option<String>>,
    depth: usize,
) -> Result<String, PlanError> {
    let word = match member.type_id_ {
        field_type::FLOAT => "float32",
        field_type::DOUBLE => "float64",
        field_type::CHAR => "char",
        field_type::BOOLEAN => "bool",
        field_type::OCTET => "byte",
        field_type::UINT8 => "uint8",
        field_type::INT8 => "int8",
        field_type::UINT16 => "uint16",
        field_type::INT16 => "int16",
        field_type::UINT32 => "uint32",
        field_type::INT32 => "int32",
        field_type::UINT64 => "uint64",
        field_type::INT64 => "int64",
        field_type::STRING => "string",
        field_type::WSTRING => "wstring",
        field_type::MESSAGE => {
            // SAFETY: as the caller says.
            let table = unsafe { member.members_.as_ref() }.map(|it| it.data.cast());
            let table: *const InC<MessageMembers> = table.unwrap_or(std::ptr::null());
            // SAFETY: as the caller says.
            let Some(found) = (unsafe { members_at(table, abi) }) else {
                return Err(PlanError::new(PlanProblem::Table("no table")));
            };
            let name = name_of(found.message_namespace_, found.message_name_);
            if !used.contains_key(&name) {
                // It is known by its name before its fields are looked at.
                used.insert(name.clone(), None);
                // SAFETY: as the caller says.
                let text = unsafe { lines(table, abi, used, depth + 1)? };
                used.insert(name.clone(), Some(text));
            }
            return Ok(name);
        }
        _ => return Err(PlanError::new(PlanProblem::Type("such a field"))),
    };
    Ok(match member.string_upper_bound_ {
        0 => word.to_owned(),
        most => format!("{word}<={most}"),
    })
}

/// `geometry_msgs/Point`: a definition names types by their packages.
fn name_of(namespace: *const c_char, name: *const c_char) -> String {
    // SAFETY: names in a table are C strings.
    let (namespace, name) = unsafe { (text(namespace), text(name)) };
    let package = namespace.split("::").flat_map(|it| it.split("__")).next().unwrap_or_default();
    format!("{package}/{name}")
}

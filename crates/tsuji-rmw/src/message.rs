//! What plans lack for messages on their way: the type as tsuji names it, loans, bytes.

use std::ffi::c_void;

use tsuji::RawType;

use crate::abi::Abi;
use crate::error::{Result, RmwError};
use crate::ffi::rosidl::{rosidl_message_type_support_t, rosidl_service_type_support_t};
use crate::plan::{
    HEADER, Plan, PlanError, PlanErrorKind, ServicePlans, service_type_hash, type_hash,
};

/// How large a loan is in which a message can be built and looked at in place, if its type allows that.
pub(crate) fn loan_size(plan: &Plan) -> Result<usize> {
    let whole = HEADER.len() + plan.message_size();
    if plan.is_plain() && plan.fixed_size() == Some(whole) && cfg!(target_endian = "little") {
        return Ok(whole);
    }
    Err(RmwError::unsupported(format!(
        "messages of {} cannot be lent; allowed: those whose memory is their CDR",
        plan.type_name()
    )))
}

/// The message inside CDR, where it can be used as it lies there. The plan is one that [`loan_size`] allows.
pub(crate) fn in_place<'a>(plan: &Plan, bytes: &'a [u8]) -> Option<&'a [u8]> {
    // The last two bytes of the header are options; some writers put the count of padding bytes there.
    let body = bytes.strip_prefix(&HEADER[..2])?.get(2..)?;
    let is_aligned = body.as_ptr().addr().is_multiple_of(align_of::<u64>());
    (plan.message_size() <= body.len() && is_aligned).then_some(body)
}

/// A message as CDR.
///
/// # Safety
///
/// The message is null or has the plan's type.
pub(crate) unsafe fn to_bytes(plan: &Plan, message: *const c_void) -> Result<Vec<u8>> {
    // SAFETY: the caller promises it.
    let mut bytes = vec![0; unsafe { plan.serialized_size(message) }?];
    // SAFETY: the caller promises it.
    let written = unsafe { plan.serialize(message, &mut bytes) }?;
    bytes.truncate(written);
    Ok(bytes)
}

/// The type of a topic.
///
/// # Safety
///
/// The plan was made of this type support.
pub(crate) unsafe fn message_type(
    support: *const rosidl_message_type_support_t,
    plan: &Plan,
    abi: &Abi,
) -> RawType {
    // SAFETY: the caller promises it.
    let hash = unsafe { type_hash(support, abi) };
    RawType::new(plan.type_name()).hash(hash.unwrap_or_default()).keyed(plan.is_keyed())
}

/// The type of a service.
///
/// # Safety
///
/// The plans were made of this type support.
pub(crate) unsafe fn service_type(
    support: *const rosidl_service_type_support_t,
    plans: &ServicePlans,
    abi: &Abi,
) -> RawType {
    // SAFETY: the caller promises it.
    let hash = unsafe { service_type_hash(support, abi) };
    RawType::new(plans.type_name.clone()).hash(hash.unwrap_or_default())
}

impl From<PlanError> for RmwError {
    fn from(error: PlanError) -> Self {
        let what = error.to_string();
        match error.kind() {
            PlanErrorKind::Unsupported => Self::unsupported(what),
            PlanErrorKind::NoMemory => Self::bad_alloc(what),
            PlanErrorKind::Invalid | PlanErrorKind::NoRoom => Self::error(what),
        }
    }
}

//! What every exported function asks of its arguments first.

use std::ffi::{CStr, c_char};
use std::ptr;

use crate::abi::{self, InC};
use crate::error::{Result, RmwError};
use crate::ffi::rmw::{
    RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_STRICTLY_REQUIRED, rmw_context_t, rmw_qos_profile_t,
    rmw_unique_network_flow_endpoints_requirement_t,
};
use crate::identity::IDENTIFIER;
use crate::init::ContextImpl;

/// What `pointer` points to, called `name` in the text of the error if it is null.
///
/// # Safety
///
/// It is null, or valid for reads as long as the answer is used.
pub(crate) unsafe fn reference<'a, T>(name: &str, pointer: *const T) -> Result<&'a T> {
    // SAFETY: the caller promises it.
    unsafe { pointer.as_ref() }.ok_or_else(|| is_null(name))
}

/// The same for what is written to.
///
/// # Safety
///
/// It is null, or valid for reads and writes, and nobody else uses it, as long as the answer is used.
pub(crate) unsafe fn reference_mut<'a, T>(name: &str, pointer: *mut T) -> Result<&'a mut T> {
    // SAFETY: the caller promises it.
    unsafe { pointer.as_mut() }.ok_or_else(|| is_null(name))
}

/// Refuses a null pointer.
pub(crate) fn not_null<T>(name: &str, pointer: *const T) -> Result {
    if pointer.is_null() { Err(is_null(name)) } else { Ok(()) }
}

fn is_null(name: &str) -> RmwError {
    RmwError::invalid(format!("{name} is null"))
}

/// Refuses what another rmw made. What is not made yet, and so has no identifier, is such too.
///
/// # Safety
///
/// The identifier is null, or a text that ends with NUL.
pub(crate) unsafe fn check_identifier(name: &str, identifier: *const c_char) -> Result {
    if ptr::eq(identifier, IDENTIFIER.as_ptr()) {
        return Ok(());
    }
    if identifier.is_null() {
        return Err(RmwError::other_implementation(name, c"(null)"));
    }
    // SAFETY: it is not null, and the caller promises the rest.
    let identifier = unsafe { CStr::from_ptr(identifier) };
    if identifier == IDENTIFIER {
        return Ok(());
    }
    Err(RmwError::other_implementation(name, identifier))
}

/// The context behind what C holds, shut down or not.
///
/// # Safety
///
/// It is null, zero, or was made by `rmw_init` and lives as long as the answer is used.
pub(crate) unsafe fn context_of<'a>(context: *const InC<rmw_context_t>) -> Result<&'a ContextImpl> {
    not_null("context", context)?;
    // SAFETY: the caller promises it.
    let context = unsafe { abi::get::<rmw_context_t>(abi::here()?, context) };
    if context.impl_.is_null() {
        return Err(RmwError::invalid("context is not initialised"));
    }
    // SAFETY: a context that has an implementation has an identifier.
    unsafe { check_identifier("context", context.implementation_identifier) }?;
    // SAFETY: it is ours, so `rmw_init` made what is behind it, which is not null.
    Ok(unsafe { &*context.impl_.cast::<ContextImpl>() })
}

/// Refuses what no publisher and no subscription here has.
pub(crate) fn no_unique_flow(asked: rmw_unique_network_flow_endpoints_requirement_t) -> Result {
    if asked == RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_STRICTLY_REQUIRED {
        return Err(RmwError::unsupported("unique network flow endpoints"));
    }
    Ok(())
}

/// The text that C passes as `name`. It must be UTF-8.
///
/// # Safety
///
/// It is null, or a text that ends with NUL and lives as long as the answer is used.
pub(crate) unsafe fn text<'a>(name: &str, text: *const c_char) -> Result<&'a str> {
    not_null(name, text)?;
    // SAFETY: it is not null, and the caller promises the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| RmwError::invalid(format!("{name} is not UTF-8: {text:?}")))
}

/// The name of a topic or service as C passes it as `name`. It must be a whole one; but one that is not to follow
/// ROS's conventions may lack the slash, and has one in tsuji all the same.
///
/// # Safety
///
/// As of [`text`].
pub(crate) unsafe fn full_name(
    name: &str,
    full: *const c_char,
    profile: &rmw_qos_profile_t,
) -> Result<String> {
    // SAFETY: the caller promises it.
    let full = unsafe { text(name, full) }?;
    if full.starts_with('/') {
        return Ok(full.to_owned());
    }
    if profile.avoid_ros_namespace_conventions && !full.is_empty() {
        return Ok(format!("/{full}"));
    }
    Err(RmwError::invalid(format!(
        "{name} {full:?}; allowed: whole names, which begin with a slash"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::rmw::{
        NO_CONTEXT, RMW_RET_INCORRECT_RMW_IMPLEMENTATION, RMW_RET_INVALID_ARGUMENT, rmw_node_t,
        rmw_ret_t,
    };
    use crate::handle::inside;

    #[test]
    fn identifiers() {
        let check = |identifier: *const c_char, expect: Option<rmw_ret_t>| {
            // SAFETY: each is null or a text.
            let got = unsafe { check_identifier("node", identifier) };
            assert_eq!(got.err().map(|error| error.ret()), expect);
        };
        check(IDENTIFIER.as_ptr(), None);
        check(c"rmw_tsuji".to_owned().as_ptr(), None);
        check(c"rmw_other".as_ptr(), Some(RMW_RET_INCORRECT_RMW_IMPLEMENTATION));
        check(ptr::null(), Some(RMW_RET_INCORRECT_RMW_IMPLEMENTATION));
    }

    #[test]
    fn nothing_there() {
        let nothing = RMW_RET_INVALID_ARGUMENT;
        // SAFETY: null, or zero.
        unsafe {
            assert_eq!(context_of(ptr::null()).unwrap_err().ret(), nothing);
            assert_eq!(context_of(&NO_CONTEXT).unwrap_err().ret(), nothing);
            assert_eq!(inside::<rmw_node_t>(ptr::null()).unwrap_err().ret(), nothing);
            assert_eq!(text("topic", ptr::null()).unwrap_err().to_string(), "topic is null");
            let latin = text("topic", c"\xe9".as_ptr()).unwrap_err();
            assert_eq!(latin.to_string(), "topic is not UTF-8: \"\\xe9\"");
        }
    }
}

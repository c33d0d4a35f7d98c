//! What there is not: each of these functions answers `RMW_RET_UNSUPPORTED`, with a text that says what to do without it.

use std::ffi::c_void;

use crate::abi::InC;
use crate::error::{Result, RmwError, guard};
use crate::ffi::rcutils::rcutils_allocator_t;
use crate::ffi::rmw::rmw_message_info_t;
use crate::ffi::rmw::{
    rmw_publisher_allocation_t, rmw_ret_t, rmw_subscription_allocation_t, rmw_subscription_t,
};

/// Memory is not set aside for publishing: `rmw_publish` takes none.
#[unsafe(no_mangle)]
pub extern "C" fn rmw_init_publisher_allocation(
    _type_support: *const c_void,
    _message_bounds: *const c_void,
    _allocation: *mut rmw_publisher_allocation_t,
) -> rmw_ret_t {
    guard(|| unsupported("memory set aside for publishing", "a null allocation"))
}

/// The end of what [`rmw_init_publisher_allocation`] does not begin.
#[unsafe(no_mangle)]
pub extern "C" fn rmw_fini_publisher_allocation(
    _allocation: *mut rmw_publisher_allocation_t,
) -> rmw_ret_t {
    guard(|| unsupported("memory set aside for publishing", "a null allocation"))
}

/// Memory is not set aside for taking: `rmw_take` takes none.
#[unsafe(no_mangle)]
pub extern "C" fn rmw_init_subscription_allocation(
    _type_support: *const c_void,
    _message_bounds: *const c_void,
    _allocation: *mut rmw_subscription_allocation_t,
) -> rmw_ret_t {
    guard(|| unsupported("memory set aside for taking", "a null allocation"))
}

/// The end of what [`rmw_init_subscription_allocation`] does not begin.
#[unsafe(no_mangle)]
pub extern "C" fn rmw_fini_subscription_allocation(
    _allocation: *mut rmw_subscription_allocation_t,
) -> rmw_ret_t {
    guard(|| unsupported("memory set aside for taking", "a null allocation"))
}

/// Messages of a type that is made at run time are not taken as values.
#[unsafe(no_mangle)]
pub extern "C" fn rmw_take_dynamic_message(
    _subscription: *const rmw_subscription_t,
    _dynamic_message: *mut c_void,
    _taken: *mut bool,
    _allocation: *mut rmw_subscription_allocation_t,
) -> rmw_ret_t {
    guard(|| unsupported("a dynamic message", "rmw_take_serialized_message"))
}

/// The same with what comes with the message.
#[unsafe(no_mangle)]
pub extern "C" fn rmw_take_dynamic_message_with_info(
    _subscription: *const rmw_subscription_t,
    _dynamic_message: *mut c_void,
    _taken: *mut bool,
    _message_info: *mut InC<rmw_message_info_t>,
    _allocation: *mut rmw_subscription_allocation_t,
) -> rmw_ret_t {
    guard(|| unsupported("a dynamic message", "rmw_take_serialized_message_with_info"))
}

/// Types are not made at run time.
#[unsafe(no_mangle)]
pub extern "C" fn rmw_serialization_support_init(
    _serialization_lib_name: *const std::ffi::c_char,
    _allocator: *mut rcutils_allocator_t,
    _serialization_support: *mut c_void,
) -> rmw_ret_t {
    guard(|| unsupported("a type that is made at run time", "type supports that were generated"))
}

fn unsupported(what: &str, allowed: &str) -> Result {
    Err(RmwError::unsupported(format!("rmw_tsuji does not support {what}; allowed: {allowed}")))
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::ffi::rmw::RMW_RET_UNSUPPORTED;

    #[test]
    fn nothing_there() {
        let nothing = ptr::null_mut();
        let rets = [
            rmw_init_publisher_allocation(nothing, nothing, ptr::null_mut()),
            rmw_fini_publisher_allocation(ptr::null_mut()),
            rmw_init_subscription_allocation(nothing, nothing, ptr::null_mut()),
            rmw_fini_subscription_allocation(ptr::null_mut()),
        ];
        assert!(rets.iter().all(|it| *it == RMW_RET_UNSUPPORTED), "{rets:?}");
    }
}

//! Who this is, and the few questions that need no context.

use std::ffi::{CStr, c_char};

use crate::abi::{self, InC};
use crate::check::{check_identifier, not_null, reference_mut};
use crate::error::{RmwError, guard};
use crate::ffi::rmw::{
    RMW_FEATURE_MESSAGE_INFO_PUBLICATION_SEQUENCE_NUMBER,
    RMW_FEATURE_MESSAGE_INFO_RECEPTION_SEQUENCE_NUMBER, RMW_LOG_SEVERITY_DEBUG,
    RMW_LOG_SEVERITY_ERROR, RMW_LOG_SEVERITY_FATAL, RMW_LOG_SEVERITY_INFO, RMW_LOG_SEVERITY_WARN,
    rmw_feature_t, rmw_gid_t, rmw_log_severity_t, rmw_ret_t,
};
use crate::log;

/// The name of this rmw. Callers compare its address, which is always the same.
pub(crate) static IDENTIFIER: &CStr = c"rmw_tsuji";

/// The name of this rmw.
#[unsafe(no_mangle)]
pub extern "C" fn rmw_get_implementation_identifier() -> *const c_char {
    IDENTIFIER.as_ptr()
}

/// How messages are serialised.
#[unsafe(no_mangle)]
pub extern "C" fn rmw_get_serialization_format() -> *const c_char {
    c"cdr".as_ptr()
}

/// Whether two numbers of endpoints are the same.
///
/// # Safety
///
/// Each argument is null, or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_compare_gids_equal(
    gid1: *const InC<rmw_gid_t>,
    gid2: *const InC<rmw_gid_t>,
    result: *mut bool,
) -> rmw_ret_t {
    guard(|| {
        not_null("gid1", gid1)?;
        not_null("gid2", gid2)?;
        let abi = abi::here()?;
        // SAFETY: the caller promises it.
        let (gid1, gid2): (rmw_gid_t, rmw_gid_t) =
            unsafe { (abi::get(abi, gid1), abi::get(abi, gid2)) };
        // SAFETY: the caller promises it.
        let result = unsafe { reference_mut("result", result) }?;
        // SAFETY: whoever made them set it.
        unsafe {
            check_identifier("gid1", gid1.implementation_identifier)?;
            check_identifier("gid2", gid2.implementation_identifier)?;
        }
        *result = gid1.data == gid2.data;
        Ok(())
    })
}

/// Whether this rmw has a feature: messages come with their publisher's number and the subscription's, and
/// nothing else of what can be asked for.
#[unsafe(no_mangle)]
pub extern "C" fn rmw_feature_supported(feature: rmw_feature_t) -> bool {
    [
        RMW_FEATURE_MESSAGE_INFO_PUBLICATION_SEQUENCE_NUMBER,
        RMW_FEATURE_MESSAGE_INFO_RECEPTION_SEQUENCE_NUMBER,
    ]
    .contains(&feature)
}

/// Sets how severe a line must be for this library to log it: a warning if this is not called. It goes to the logger
/// `rmw_tsuji` of librcutils, which has a level of its own.
#[unsafe(no_mangle)]
pub extern "C" fn rmw_set_log_severity(severity: rmw_log_severity_t) -> rmw_ret_t {
    guard(|| match severity {
        RMW_LOG_SEVERITY_DEBUG
        | RMW_LOG_SEVERITY_INFO
        | RMW_LOG_SEVERITY_WARN
        | RMW_LOG_SEVERITY_ERROR
        | RMW_LOG_SEVERITY_FATAL => {
            log::set_severity(severity);
            Ok(())
        }
        _ => Err(RmwError::invalid(format!(
            "log severity {severity}; allowed: 10 (debug), 20, 30, 40, 50 (fatal)"
        ))),
    })
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::ffi::rmw::{
        GidBytes, RMW_GID_STORAGE_SIZE, RMW_RET_INCORRECT_RMW_IMPLEMENTATION,
        RMW_RET_INVALID_ARGUMENT, RMW_RET_OK,
    };

    #[test]
    fn one_address() {
        assert_eq!(rmw_get_implementation_identifier(), rmw_get_implementation_identifier());
        // SAFETY: it is a text of this library.
        let format = unsafe { CStr::from_ptr(rmw_get_serialization_format()) };
        assert_eq!((IDENTIFIER, format), (c"rmw_tsuji", c"cdr"));
    }

    #[test]
    fn gids() {
        let gid = |byte, of: &'static CStr| rmw_gid_t {
            implementation_identifier: of.as_ptr(),
            data: GidBytes([byte; RMW_GID_STORAGE_SIZE]),
        };
        let check = |one: rmw_gid_t, other: rmw_gid_t, expect: (rmw_ret_t, bool)| {
            let mut same = false;
            // SAFETY: all are valid.
            let ret = unsafe { rmw_compare_gids_equal(&one, &other, &mut same) };
            assert_eq!((ret, same), expect);
        };
        let ours = gid(1, IDENTIFIER);
        check(ours, ours, (RMW_RET_OK, true));
        check(ours, gid(2, IDENTIFIER), (RMW_RET_OK, false));
        check(ours, gid(1, c"rmw_x"), (RMW_RET_INCORRECT_RMW_IMPLEMENTATION, false));
        check(gid(1, c"rmw_x"), ours, (RMW_RET_INCORRECT_RMW_IMPLEMENTATION, false));
        let mut same = false;
        let invalid = RMW_RET_INVALID_ARGUMENT;
        // SAFETY: all are valid or null.
        unsafe {
            assert_eq!(rmw_compare_gids_equal(ptr::null(), &ours, &mut same), invalid);
            assert_eq!(rmw_compare_gids_equal(&ours, ptr::null(), &mut same), invalid);
            assert_eq!(rmw_compare_gids_equal(&ours, &ours, ptr::null_mut()), invalid);
        }
    }

    #[test]
    fn features_and_severities() {
        assert!(rmw_feature_supported(RMW_FEATURE_MESSAGE_INFO_PUBLICATION_SEQUENCE_NUMBER));
        assert!(rmw_feature_supported(RMW_FEATURE_MESSAGE_INFO_RECEPTION_SEQUENCE_NUMBER));
        assert!(!rmw_feature_supported(99));
        assert_eq!(rmw_set_log_severity(RMW_LOG_SEVERITY_FATAL), RMW_RET_OK);
        assert_eq!(rmw_set_log_severity(RMW_LOG_SEVERITY_INFO), RMW_RET_OK);
        assert_eq!(rmw_set_log_severity(0), RMW_RET_INVALID_ARGUMENT);
    }
}

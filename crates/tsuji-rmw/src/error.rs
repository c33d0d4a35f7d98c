//! How an error becomes what C sees: a return code, and the text that `rmw_get_error_string` answers.
//!
//! The text is kept by librcutils, one for each thread. This library does not link against it, so that
//! it builds and loads where there is no ROS; it is found in the process when it is first needed.

use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::distribution::rcutils;
use crate::ffi::rmw::{
    RMW_RET_BAD_ALLOC, RMW_RET_ERROR, RMW_RET_INCORRECT_RMW_IMPLEMENTATION,
    RMW_RET_INVALID_ARGUMENT, RMW_RET_NODE_NAME_NON_EXISTENT, RMW_RET_OK, RMW_RET_TIMEOUT,
    RMW_RET_UNSUPPORTED, rmw_ret_t,
};

/// The result of what an exported function does.
pub(crate) type Result<T = ()> = std::result::Result<T, RmwError>;

/// What an exported function answers in place of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RmwError {
    ret: rmw_ret_t,
    what: String,
}

impl RmwError {
    fn new(ret: rmw_ret_t, what: impl Into<String>) -> Self {
        Self { ret, what: what.into() }
    }

    /// `RMW_RET_ERROR`: none of the other kinds.
    pub(crate) fn error(what: impl Into<String>) -> Self {
        Self::new(RMW_RET_ERROR, what)
    }

    /// `RMW_RET_TIMEOUT`.
    pub(crate) fn timeout(what: impl Into<String>) -> Self {
        Self::new(RMW_RET_TIMEOUT, what)
    }

    /// `RMW_RET_BAD_ALLOC`: the caller's allocator, or memory, is at its end.
    pub(crate) fn bad_alloc(what: impl Into<String>) -> Self {
        Self::new(RMW_RET_BAD_ALLOC, what)
    }

    /// `RMW_RET_INVALID_ARGUMENT`.
    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::new(RMW_RET_INVALID_ARGUMENT, what)
    }

    /// `RMW_RET_INCORRECT_RMW_IMPLEMENTATION`: `thing` was made by another rmw.
    pub(crate) fn other_implementation(thing: &str, by: &CStr) -> Self {
        let by = by.to_string_lossy();
        let what = format!("{thing} is of the rmw {by:?}; allowed: those of rmw_tsuji");
        Self::new(RMW_RET_INCORRECT_RMW_IMPLEMENTATION, what)
    }

    /// `RMW_RET_UNSUPPORTED`.
    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::new(RMW_RET_UNSUPPORTED, what)
    }

    /// `RMW_RET_NODE_NAME_NON_EXISTENT`.
    pub(crate) fn no_such_node(node: impl Display) -> Self {
        Self::new(RMW_RET_NODE_NAME_NON_EXISTENT, format!("there is no node {node}"))
    }

    /// The code.
    pub(crate) fn ret(&self) -> rmw_ret_t {
        self.ret
    }

    /// The same as `RMW_RET_ERROR`, where rmw asks for that of a null pointer.
    pub(crate) fn or_error(mut self) -> Self {
        if self.ret == RMW_RET_INVALID_ARGUMENT {
            self.ret = RMW_RET_ERROR;
        }
        self
    }

    /// The same, with what it is about before the text.
    pub(crate) fn about(mut self, thing: impl Display) -> Self {
        self.what = format!("{thing}: {}", self.what);
        self
    }
}

impl Display for RmwError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl From<tsuji::Error> for RmwError {
    fn from(error: tsuji::Error) -> Self {
        let ret = match error.kind() {
            tsuji::ErrorKind::Invalid => RMW_RET_INVALID_ARGUMENT,
            tsuji::ErrorKind::Timeout => RMW_RET_TIMEOUT,
            tsuji::ErrorKind::Unsupported => RMW_RET_UNSUPPORTED,
            _ => RMW_RET_ERROR,
        };
        Self::new(ret, error.to_string())
    }
}

/// Runs the body of an exported function. A panic ends here: it must not reach C.
pub(crate) fn guard(body: impl FnOnce() -> Result) -> rmw_ret_t {
    caught(body).map_or_else(|error| error.ret, |()| RMW_RET_OK)
}

/// The same for one that answers a pointer, null in case of an error.
pub(crate) fn guard_pointer<T>(body: impl FnOnce() -> Result<*mut T>) -> *mut T {
    caught(body).unwrap_or(ptr::null_mut())
}

/// Runs `body`, and tells C of its error.
fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    let result = std::panic::catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        Err(RmwError::error(format!("rmw_tsuji panicked: {}", said(&*panic))))
    });
    result.inspect_err(|error| tell(&error.what))
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("for no reason")
}

/// Keeps the text for `rmw_get_error_string`.
fn tell(what: &str) {
    #[cfg(test)]
    tests::TOLD.set(what.to_owned());
    let Some(set_error_state) = rcutils_set_error_state() else {
        tracing::debug!("{what}");
        return;
    };
    let text = CString::new(what.replace('\0', "\u{fffd}")).unwrap_or_default();
    // SAFETY: both texts end with NUL and live through the call, which copies them.
    unsafe { set_error_state(text.as_ptr(), FILE.as_ptr(), 0) };
}

/// What librcutils shows for the place in the source. The text alone says what is wrong.
const FILE: &CStr = c"rmw_tsuji";

type SetErrorState = unsafe extern "C" fn(*const c_char, *const c_char, usize);

/// `rcutils_set_error_state`, if librcutils is in this process.
fn rcutils_set_error_state() -> Option<SetErrorState> {
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    let mut found = FOUND.load(Ordering::Acquire);
    if found.is_null() {
        found = rcutils(c"rcutils_set_error_state");
        FOUND.store(found, Ordering::Release);
    }
    if found.is_null() {
        return None;
    }
    // SAFETY: librcutils has this function with these arguments in all distributions, and is never
    // unloaded: a handle to it is kept open.
    Some(unsafe { std::mem::transmute::<*mut c_void, SetErrorState>(found) })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::RefCell;

    use super::*;

    thread_local! {
        /// The last text of this thread.
        pub(crate) static TOLD: RefCell<String> = const { RefCell::new(String::new()) };
    }

    /// The last text of this thread, once.
    pub(crate) fn told() -> String {
        TOLD.take()
    }

    #[test]
    fn a_result_becomes_a_code_and_a_text() {
        let check = |body: Result, ret, text: &str| {
            assert_eq!((guard(|| body), told().as_str()), (ret, text));
        };
        check(Ok(()), RMW_RET_OK, "");
        check(Err(RmwError::invalid("no")), RMW_RET_INVALID_ARGUMENT, "no");
        check(Err(RmwError::invalid("no").about("node")), RMW_RET_INVALID_ARGUMENT, "node: no");
        check(
            Err(RmwError::no_such_node("/a")),
            RMW_RET_NODE_NAME_NON_EXISTENT,
            "there is no node /a",
        );
        let other = RmwError::other_implementation("node", c"rmw_x");
        let text = "node is of the rmw \"rmw_x\"; allowed: those of rmw_tsuji";
        check(Err(other), RMW_RET_INCORRECT_RMW_IMPLEMENTATION, text);
        let closed = tsuji::Error::new(tsuji::ErrorKind::Closed, "shut down");
        check(Err(closed.into()), RMW_RET_ERROR, "shut down");
        let late = tsuji::Error::new(tsuji::ErrorKind::Timeout, "late");
        check(Err(late.into()), RMW_RET_TIMEOUT, "late");
    }

    #[test]
    fn a_panic_does_not_reach_c() {
        assert_eq!(guard(|| panic!("on purpose")), RMW_RET_ERROR);
        assert_eq!(told(), "rmw_tsuji panicked: on purpose");
        assert!(guard_pointer::<u8>(|| panic!("{}", 1)).is_null());
        assert_eq!(told(), "rmw_tsuji panicked: 1");
    }

    /// Where Debian's librcutils is installed the text is seen to arrive in it.
    #[test]
    #[allow(clippy::print_stderr, reason = "says that it did not run")]
    fn the_text_reaches_librcutils() {
        // SAFETY: librcutils runs nothing when it is loaded.
        let handle = unsafe { libc::dlopen(c"librcutils.so.1d".as_ptr(), libc::RTLD_LAZY) };
        if handle.is_null() {
            eprintln!("librcutils is not installed: not run");
            return;
        }
        assert_eq!(guard(|| Err(RmwError::error("seen\0by C"))), RMW_RET_ERROR);
        // SAFETY: the handle is open.
        let is_set = unsafe { libc::dlsym(handle, c"rcutils_error_is_set".as_ptr()) };
        // SAFETY: librcutils has it so.
        let is_set = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> bool>(is_set) };
        assert!(is_set());
        // SAFETY: the handle is open.
        let reset = unsafe { libc::dlsym(handle, c"rcutils_reset_error".as_ptr()) };
        // SAFETY: librcutils has it so.
        let reset = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn()>(reset) };
        reset();
        assert!(!is_set());
    }
}

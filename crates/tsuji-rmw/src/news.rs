//! Callbacks of C that hear how much has come.

use std::ffi::c_void;

use tsuji::NewMessageCallback;

use crate::ffi::rmw::rmw_event_callback_t;

/// What C is called with, as it said.
struct UserData(*const c_void);

// SAFETY: whoever sets a callback promises that any thread may call it with this.
unsafe impl Send for UserData {}
// SAFETY: as above; and one thread at a time does.
unsafe impl Sync for UserData {}

/// A callback of C as one of tsuji.
///
/// # Safety
///
/// Any thread may call `callback` with `user_data` until the answer is dropped.
pub(crate) unsafe fn callback_of(
    callback: rmw_event_callback_t,
    user_data: *const c_void,
) -> Option<NewMessageCallback> {
    let callback = callback?;
    let user_data = UserData(user_data);
    Some(Box::new(move |count| {
        let UserData(user_data) = &user_data;
        // SAFETY: the caller promises it.
        unsafe { callback(*user_data, count) };
    }))
}

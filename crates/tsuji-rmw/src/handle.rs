//! The structures that C holds by pointer, and what is behind each.

use std::ffi::{c_char, c_void};

use tsuji::GuardCondition;

use crate::check::{check_identifier, reference};
use crate::client::ClientImpl;
use crate::error::{Result, RmwError};
use crate::events::Events;
use crate::ffi::rmw::{
    rmw_client_t, rmw_event_t, rmw_guard_condition_t, rmw_node_t, rmw_publisher_t, rmw_service_t,
    rmw_subscription_t, rmw_wait_set_t,
};
use crate::node::NodeImpl;
use crate::publisher::PublisherImpl;
use crate::service::ServiceImpl;
use crate::subscription::{SubscriptionImpl, SubscriptionMemory};
use crate::wait::WaitSetImpl;

/// A structure of rmw that says which rmw made it, and has something of that one's behind it.
pub(crate) trait Handle {
    /// What it is called in the texts of errors.
    const NAME: &'static str;

    /// What is behind it, if it is ours.
    type Inside;

    /// Which rmw made it; null if none has yet.
    fn identifier(&self) -> *const c_char;

    /// Where that is.
    fn data(&self) -> *mut c_void;

    /// Gives its memory back.
    ///
    /// # Safety
    ///
    /// It comes from `Box::into_raw`, and nobody uses it any more.
    unsafe fn free(this: *mut Self)
    where
        Self: Sized,
    {
        // SAFETY: the caller promises it.
        drop(unsafe { Box::from_raw(this) });
    }
}

/// What has a size of its own in each distribution begins with what is the same in all, and was allocated as `memory`.
macro_rules! handles {
    ($($handle:ident $name:literal $inside:ty $(, in $memory:ty)?;)*) => {$(
        impl Handle for $handle {
            const NAME: &'static str = $name;

            type Inside = $inside;

            fn identifier(&self) -> *const c_char {
                self.implementation_identifier
            }

            fn data(&self) -> *mut c_void {
                self.data
            }

            $(unsafe fn free(this: *mut Self) {
                // SAFETY: the caller promises it.
                drop(unsafe { Box::from_raw(this.cast::<$memory>()) });
            })?
        }
    )*};
}

handles! {
    rmw_client_t "client" ClientImpl;
    rmw_event_t "rmw_event" Events;
    rmw_guard_condition_t "guard_condition" GuardCondition;
    rmw_node_t "node" NodeImpl;
    rmw_publisher_t "publisher" PublisherImpl;
    rmw_service_t "service" ServiceImpl;
    rmw_subscription_t "subscription" SubscriptionImpl, in SubscriptionMemory;
    rmw_wait_set_t "wait_set" WaitSetImpl;
}

/// What C holds. It is refused if it is null, or another rmw's.
///
/// # Safety
///
/// It is null, zero, or was made by an rmw, and lives as long as the answer is used.
pub(crate) unsafe fn ours<'a, H: Handle>(handle: *const H) -> Result<&'a H> {
    // SAFETY: the caller promises it.
    let handle = unsafe { reference(H::NAME, handle) }?;
    // SAFETY: whoever made it set it.
    unsafe { check_identifier(H::NAME, handle.identifier()) }?;
    Ok(handle)
}

/// What is behind what C holds.
///
/// # Safety
///
/// As of [`ours`].
pub(crate) unsafe fn inside<'a, H: Handle>(handle: *const H) -> Result<&'a H::Inside> {
    // SAFETY: the caller promises it.
    let data = unsafe { ours(handle) }?.data().cast::<H::Inside>();
    // SAFETY: it is ours, so it points to that.
    let inside = unsafe { data.as_ref() };
    inside.ok_or_else(|| RmwError::invalid("it is not initialised").about(H::NAME))
}

/// The `data` of a handle that is being made. [`end`] frees it.
pub(crate) fn data_of<T>(inside: T) -> *mut c_void {
    Box::into_raw(Box::new(inside)).cast()
}

/// Ends what C holds, and what is behind it.
///
/// # Safety
///
/// It was made as [`Handle::free`] wants it, its data is of [`data_of`], and nobody uses them any more.
pub(crate) unsafe fn end<H: Handle>(handle: *mut H) {
    // SAFETY: the caller promises it.
    let data = unsafe { (*handle).data() };
    // SAFETY: as above.
    unsafe { H::free(handle) };
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(data.cast::<H::Inside>()) });
}

/// Ends what C holds and has made in a node.
///
/// # Safety
///
/// Both are null, zero or valid, and if the handle is ours, as [`end`] asks.
pub(crate) unsafe fn end_in<H: Handle>(node: *const rmw_node_t, handle: *mut H) -> Result {
    // SAFETY: the caller promises it.
    unsafe {
        inside(node)?;
        inside(handle)?;
        end(handle);
    }
    Ok(())
}

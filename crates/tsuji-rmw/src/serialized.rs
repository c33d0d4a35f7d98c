//! Messages as CDR: `rmw_serialize` and `rmw_deserialize`, and the buffers of C that hold it.

use std::ffi::c_void;
use std::slice;

use crate::abi;
use crate::check;
use crate::error::{Result, RmwError, guard};
use crate::ffi::rmw::{rmw_ret_t, rmw_serialized_message_t};
use crate::ffi::rosidl::rosidl_message_type_support_t;
use crate::plan;

/// Makes room for `size` bytes, by the buffer's own allocator.
///
/// # Safety
///
/// The buffer is one of `rcutils_uint8_array_t`.
unsafe fn room(message: &mut rmw_serialized_message_t, size: usize) -> Result<&mut [u8]> {
    if message.buffer_capacity < size {
        let allocator = &message.allocator;
        let reallocate = allocator.reallocate;
        let reallocate = reallocate
            .ok_or_else(|| RmwError::invalid("the serialized message has no allocator"))?;
        // SAFETY: the buffer is of this allocator.
        let buffer = unsafe { reallocate(message.buffer.cast(), size, allocator.state) };
        if buffer.is_null() {
            return Err(RmwError::bad_alloc(format!("{size} bytes for a serialized message")));
        }
        message.buffer = buffer.cast();
        message.buffer_capacity = size;
    }
    message.buffer_length = 0;
    if size == 0 {
        return Ok(&mut []);
    }
    // SAFETY: so much is there. Bytes may be anything, and are written before they are read.
    Ok(unsafe { slice::from_raw_parts_mut(message.buffer, size) })
}

/// Copies CDR into a buffer of C.
///
/// # Safety
///
/// As [`room`].
pub(crate) unsafe fn fill(message: &mut rmw_serialized_message_t, bytes: &[u8]) -> Result {
    // SAFETY: the caller promises it.
    unsafe { room(message, bytes.len()) }?.copy_from_slice(bytes);
    message.buffer_length = bytes.len();
    Ok(())
}

/// A message as CDR, little-endian, with its header of 4 bytes.
///
/// # Safety
///
/// As in rmw.h: the message has this type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_serialize(
    ros_message: *const c_void,
    type_support: *const rosidl_message_type_support_t,
    serialized_message: *mut rmw_serialized_message_t,
) -> rmw_ret_t {
    guard(|| {
        check::not_null("ros_message", ros_message)?;
        check::not_null("type_support", type_support)?;
        // SAFETY: the caller promises it.
        let message = unsafe { check::reference_mut("serialized_message", serialized_message) }?;
        // SAFETY: the caller promises it.
        let plan = unsafe { plan::of_message(type_support, abi::here()?) }?;
        // SAFETY: the caller promises it.
        let size = unsafe { plan.serialized_size(ros_message) }?;
        // SAFETY: the caller promises it.
        let out = unsafe { room(message, size) }?;
        // SAFETY: the caller promises it.
        message.buffer_length = unsafe { plan.serialize(ros_message, out) }?;
        Ok(())
    })
}

/// CDR as a message.
///
/// # Safety
///
/// As in rmw.h: the message has this type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_deserialize(
    serialized_message: *const rmw_serialized_message_t,
    type_support: *const rosidl_message_type_support_t,
    ros_message: *mut c_void,
) -> rmw_ret_t {
    guard(|| {
        // SAFETY: the caller promises it.
        let message = unsafe { check::reference("serialized_message", serialized_message) }?;
        check::not_null("type_support", type_support)?;
        check::not_null("ros_message", ros_message)?;
        // SAFETY: the caller promises it.
        let plan = unsafe { plan::of_message(type_support, abi::here()?) }?;
        let bytes = match message.buffer_length {
            0 => &[][..],
            // SAFETY: the caller promises that so much is there.
            length => unsafe { slice::from_raw_parts(message.buffer, length) },
        };
        // SAFETY: the caller promises it.
        Ok(unsafe { plan.deserialize(bytes, ros_message) }?)
    })
}

/// How many bytes of CDR a message takes, where that is the same for all of its type. Of others the bounds do not tell it,
/// as ROS 2 declares them and says nothing of what is in them.
///
/// # Safety
///
/// As in rmw.h: pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_serialized_message_size(
    type_support: *const rosidl_message_type_support_t,
    _message_bounds: *const c_void,
    size: *mut usize,
) -> rmw_ret_t {
    guard(|| {
        check::not_null("type_support", type_support)?;
        // SAFETY: the caller promises it.
        let size = unsafe { check::reference_mut("size", size) }?;
        // SAFETY: the caller promises it.
        let plan = unsafe { plan::of_message(type_support, abi::here()?) }?;
        *size = plan.fixed_size().ok_or_else(|| {
            RmwError::unsupported(format!(
                "messages of {} have no one size; allowed: types without strings and sequences, or rmw_serialize, which \
                 says it",
                plan.type_name()
            ))
        })?;
        Ok(())
    })
}

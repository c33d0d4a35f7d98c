//! Of the package rcutils.
#![allow(missing_docs, non_camel_case_types, reason = "rcutils' headers name and document them")]

use std::ffi::{c_char, c_int, c_void};

pub type rcutils_ret_t = c_int;

/// How memory is got and given back. Valid with all four functions set.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rcutils_allocator_t {
    pub allocate: Option<unsafe extern "C" fn(usize, *mut c_void) -> *mut c_void>,
    pub deallocate: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub reallocate: Option<unsafe extern "C" fn(*mut c_void, usize, *mut c_void) -> *mut c_void>,
    pub zero_allocate: Option<unsafe extern "C" fn(usize, usize, *mut c_void) -> *mut c_void>,
    pub state: *mut c_void,
}

/// Strings, all of one allocator.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rcutils_string_array_t {
    pub size: usize,
    pub data: *mut *mut c_char,
    pub allocator: rcutils_allocator_t,
}

/// Bytes; a serialised message is such.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rcutils_uint8_array_t {
    pub buffer: *mut u8,
    pub buffer_length: usize,
    pub buffer_capacity: usize,
    pub allocator: rcutils_allocator_t,
}

pub type rcutils_time_point_value_t = i64;
pub type rcutils_duration_value_t = i64;

/// What an allocator is before it is made.
pub const NO_ALLOCATOR: rcutils_allocator_t = rcutils_allocator_t {
    allocate: None,
    deallocate: None,
    reallocate: None,
    zero_allocate: None,
    state: std::ptr::null_mut(),
};

/// What a string array is before it is made.
pub const NO_STRINGS: rcutils_string_array_t =
    rcutils_string_array_t { size: 0, data: std::ptr::null_mut(), allocator: NO_ALLOCATOR };

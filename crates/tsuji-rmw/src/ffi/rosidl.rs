//! Of the packages rosidl_runtime_c and rosidl_typesupport_introspection_c and _cpp.
//!
//! The introspection tables of C and of C++ have the same layout; only what their function pointers
//! take and return differs, and is said there.
#![expect(non_camel_case_types, reason = "the names that ROS 2 gives")]

use std::ffi::{c_char, c_int, c_void};

use crate::abi::InC;

/// What [`rosidl_message_type_support_t::typesupport_identifier`] says of introspection for C.
pub const INTROSPECTION_C: &std::ffi::CStr = c"rosidl_typesupport_introspection_c";
/// What [`rosidl_message_type_support_t::typesupport_identifier`] says of introspection for C++.
pub const INTROSPECTION_CPP: &std::ffi::CStr = c"rosidl_typesupport_introspection_cpp";

/// Finds the type support with the given identifier; null when there is none.
pub type rosidl_message_typesupport_handle_function = Option<
    unsafe extern "C" fn(
        *const rosidl_message_type_support_t,
        *const c_char,
    ) -> *const rosidl_message_type_support_t,
>;

/// The type support of a message: what is the same in every distribution, and comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rosidl_message_type_support_t {
    /// Which type support this is.
    pub typesupport_identifier: *const c_char,
    /// For introspection a [`MessageMembers`].
    pub data: *const c_void,
    /// Leads to another type support of the same type.
    pub func: rosidl_message_typesupport_handle_function,
}

/// Finds the type support with the given identifier; null when there is none.
pub type rosidl_service_typesupport_handle_function = Option<
    unsafe extern "C" fn(
        *const rosidl_service_type_support_t,
        *const c_char,
    ) -> *const rosidl_service_type_support_t,
>;

/// The type support of a service: what is the same in every distribution, and comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rosidl_service_type_support_t {
    /// Which type support this is.
    pub typesupport_identifier: *const c_char,
    /// For introspection a [`ServiceMembers`].
    pub data: *const c_void,
    /// Leads to another type support of the same type.
    pub func: rosidl_service_typesupport_handle_function,
}

/// The hash of a type's description.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct rosidl_type_hash_t {
    /// How the hash was made; 0 when there is none.
    pub version: u8,
    /// SHA-256.
    pub value: [u8; 32],
}

/// Limits of the sizes of a message. ROS 2 declares it and says nothing of its contents.
#[repr(C)]
#[derive(Debug)]
pub struct rosidl_runtime_c__Sequence__bound {
    contents: [u8; 0],
}

/// Says how many elements a sequence has.
pub type SizeFunction = Option<unsafe extern "C" fn(*const c_void) -> usize>;
/// Says where an element is.
pub type GetConstFunction = Option<unsafe extern "C" fn(*const c_void, usize) -> *const c_void>;
/// Says where an element is that may be written to.
pub type GetFunction = Option<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>;
/// Copies an element out.
pub type FetchFunction = Option<unsafe extern "C" fn(*const c_void, usize, *mut c_void)>;
/// Copies an element in.
pub type AssignFunction = Option<unsafe extern "C" fn(*mut c_void, usize, *const c_void)>;
/// Gives a sequence another size.
pub type ResizeFunction = Option<unsafe extern "C" fn(*mut c_void, usize) -> bool>;
/// Makes a message in memory.
pub type InitFunction = Option<unsafe extern "C" fn(*mut c_void, c_int)>;
/// Drops what a message holds.
pub type FiniFunction = Option<unsafe extern "C" fn(*mut c_void)>;

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub struct MessageMember {
    /// The field's name.
    pub name_: *const c_char,
    /// One of [`field_type`].
    pub type_id_: u8,
    /// Most characters of a string; 0 for no limit.
    pub string_upper_bound_: usize,
    /// Introspection of the message that the field holds.
    pub members_: *const rosidl_message_type_support_t,
    /// Whether the field is annotated as a key. Since Jazzy.
    pub is_key_: bool,
    /// Whether the field is an array or a sequence.
    pub is_array_: bool,
    /// Elements of an array, most elements of a bounded sequence, else 0.
    pub array_size_: usize,
    /// Whether the field is a bounded sequence.
    pub is_upper_bound_: bool,
    /// Where the field is in the message's memory.
    pub offset_: u32,
    /// The field's default, or null.
    pub default_value_: *const c_void,
    /// Elements of the field.
    pub size_function: SizeFunction,
    /// Where an element is; none for a C++ `vector<bool>`.
    pub get_const_function: GetConstFunction,
    /// Where an element is; none for a C++ `vector<bool>`.
    pub get_function: GetFunction,
    /// Copies an element out.
    pub fetch_function: FetchFunction,
    /// Copies an element in.
    pub assign_function: AssignFunction,
    /// Gives a sequence another size. In C it drops all elements first, and answers whether there
    /// was memory; in C++ it answers nothing, and throws.
    pub resize_function: ResizeFunction,
    /// Whether the field is one of C++ whose memory may be elsewhere than the processor's: a `rosidl::Buffer`. Since
    /// Lyrical.
    pub is_rosidl_buffer_: bool,
}

/// The fields of a message.
#[derive(Clone, Copy, Debug)]
pub struct MessageMembers {
    /// Package and folder: `std_msgs__msg` in C, `std_msgs::msg` in C++.
    pub message_namespace_: *const c_char,
    /// The type's name.
    pub message_name_: *const c_char,
    /// How many fields there are. An empty message has one, of one byte.
    pub member_count_: u32,
    /// Bytes of the message's memory.
    pub size_of_: usize,
    /// Whether a field is annotated as a key. Since Jazzy.
    pub has_any_key_member_: bool,
    /// The fields.
    pub members_: *const InC<MessageMember>,
    /// Makes a message in memory; the number is one of `rosidl_runtime_c__message_initialization`.
    pub init_function: InitFunction,
    /// Drops what a message holds.
    pub fini_function: FiniFunction,
}

/// The two messages of a service: what is the same in every distribution, and comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ServiceMembers {
    /// Package and folder, as in [`MessageMembers`].
    pub service_namespace_: *const c_char,
    /// The type's name.
    pub service_name_: *const c_char,
    /// What a client sends.
    pub request_members_: *const InC<MessageMembers>,
    /// What a server answers.
    pub response_members_: *const InC<MessageMembers>,
}

/// The types that [`MessageMember::type_id_`] can say.
#[expect(missing_docs, reason = "each name says it all")]
pub mod field_type {
    pub const FLOAT: u8 = 1;
    pub const DOUBLE: u8 = 2;
    pub const LONG_DOUBLE: u8 = 3;
    pub const CHAR: u8 = 4;
    pub const WCHAR: u8 = 5;
    pub const BOOLEAN: u8 = 6;
    pub const OCTET: u8 = 7;
    pub const UINT8: u8 = 8;
    pub const INT8: u8 = 9;
    pub const UINT16: u8 = 10;
    pub const INT16: u8 = 11;
    pub const UINT32: u8 = 12;
    pub const INT32: u8 = 13;
    pub const UINT64: u8 = 14;
    pub const INT64: u8 = 15;
    pub const STRING: u8 = 16;
    pub const WSTRING: u8 = 17;
    pub const MESSAGE: u8 = 18;
}

/// The hash of a type's function: the last three of a type support are functions, of which this is the first.
pub type TypeHashFunction =
    Option<unsafe extern "C" fn(*const c_void) -> *const rosidl_type_hash_t>;

/// A C string, sequence or wide string: they all look like this. Since Lyrical two flags follow in a sequence of numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rosidl_runtime_c__Sequence<T> {
    /// The elements; null when there is no memory for any.
    pub data: *mut T,
    /// Elements in use. Of a string without its terminator.
    pub size: usize,
    /// Elements there is memory for, all of them initialised. Of a string with its terminator.
    pub capacity: usize,
}

/// Text with a terminating zero.
pub type rosidl_runtime_c__String = rosidl_runtime_c__Sequence<c_char>;
/// UTF-16 with a terminating zero.
pub type rosidl_runtime_c__U16String = rosidl_runtime_c__Sequence<u16>;

crate::abi::shaped! {
    MessageMember as rosidl_typesupport_introspection_c__MessageMember {
        name_, type_id_, string_upper_bound_, members_, is_key_, is_array_, array_size_, is_upper_bound_, offset_,
        default_value_, size_function, get_const_function, get_function, fetch_function, assign_function,
        resize_function, is_rosidl_buffer_,
    }
    MessageMembers as rosidl_typesupport_introspection_c__MessageMembers {
        message_namespace_, message_name_, member_count_, size_of_, has_any_key_member_, members_, init_function,
        fini_function,
    }
}

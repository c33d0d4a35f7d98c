//! From what an application hands over to the tables of introspection.

use super::Language;
use super::error::{PlanError, PlanProblem};
use crate::abi::{self, Abi, InC};
use crate::ffi::rosidl::{
    INTROSPECTION_C, INTROSPECTION_CPP, MessageMember, MessageMembers, TypeHashFunction,
    rosidl_message_type_support_t, rosidl_service_type_support_t,
};
use std::ffi::{CStr, c_char, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

/// A table of introspection, and for which language it is.
pub(super) struct Table<T> {
    pub(super) language: Language,
    pub(super) members: *const T,
}

/// A message's table; none where there is a null pointer.
///
/// # Safety
/// `members` is null or a whole table.
pub(super) unsafe fn members_at(
    members: *const InC<MessageMembers>,
    abi: &Abi,
) -> Option<MessageMembers> {
    // SAFETY: as the caller says.
    (!members.is_null()).then(|| unsafe { abi::get(abi, members) })
}

/// The fields in a message's table.
///
/// # Safety
/// The table is whole, so that as many are there as it says.
pub(super) unsafe fn fields(
    table: &MessageMembers,
    abi: &Abi,
) -> impl Iterator<Item = MessageMember> {
    let first = table.members_.cast_mut();
    // SAFETY: as the caller says.
    (0..table.member_count_ as usize)
        .map(move |at| unsafe { abi::get(abi, abi::element(abi, first, at)) })
}

/// The function of a type support that answers the type's hash; none in distributions that have none.
///
/// # Safety
/// `support` is a type support as generated code makes them.
pub(super) unsafe fn type_hash_function<S>(
    support: *const S,
    offset: Option<usize>,
) -> TypeHashFunction {
    // SAFETY: as the caller says.
    offset.and_then(|offset| unsafe { support.byte_add(offset).cast::<TypeHashFunction>().read() })
}

/// What message and service type supports have in common.
pub(super) trait TypeSupport: Sized {
    fn identifier(&self) -> *const c_char;
    fn data(&self) -> *const c_void;

    /// The type support of the same type with another identifier; null when there is none.
    ///
    /// # Safety
    /// `self` is a type support as generated code makes them.
    unsafe fn other(&self, identifier: &CStr) -> *const Self;
}

macro_rules! type_support {
    ($type:ty) => {
        impl TypeSupport for $type {
            fn identifier(&self) -> *const c_char {
                self.typesupport_identifier
            }

            fn data(&self) -> *const c_void {
                self.data
            }

            unsafe fn other(&self, identifier: &CStr) -> *const Self {
                match self.func {
                    // SAFETY: as the caller says.
                    Some(func) => unsafe { func(self, identifier.as_ptr()) },
                    None => std::ptr::null(),
                }
            }
        }
    };
}

type_support!(rosidl_message_type_support_t);
type_support!(rosidl_service_type_support_t);

/// Finds the table that a type support leads to, or is.
///
/// # Safety
/// `support` is null or a type support as generated code makes them, and `T` is its kind's table.
pub(super) unsafe fn table<S: TypeSupport, T>(support: *const S) -> Result<Table<T>, PlanError> {
    // SAFETY: as the caller says.
    let Some(support) = (unsafe { support.as_ref() }) else {
        return Err(PlanError::new(PlanProblem::Null));
    };
    let mut languages = [(Language::C, INTROSPECTION_C), (Language::Cpp, INTROSPECTION_CPP)];
    // SAFETY: identifiers are C strings, or null.
    let itself = unsafe { support.identifier().as_ref() }
        .map(|first| unsafe { CStr::from_ptr(std::ptr::from_ref(first)) });
    for (language, identifier) in languages {
        if itself == Some(identifier) {
            return Ok(Table { language, members: support.data().cast() });
        }
    }
    // What is there costs less to find than what is not, of which a text is made.
    if itself.is_some_and(|itself| itself.to_bytes().ends_with(b"_cpp")) {
        languages.reverse();
    }
    for (language, identifier) in languages {
        // SAFETY: as the caller says.
        match unsafe { support.other(identifier).as_ref() } {
            Some(found) => return Ok(Table { language, members: found.data().cast() }),
            None => reset_error(),
        }
    }
    Err(PlanError::new(PlanProblem::NoIntrospection))
}

/// Forgets the error that a type support set when it was asked for what it does not have. Another
/// error would be told with a warning about this one.
fn reset_error() {
    static RESET: OnceLock<Option<unsafe extern "C" fn()>> = OnceLock::new();
    let reset = RESET.get_or_init(|| {
        const NAME: &CStr = c"rcutils_reset_error";
        // SAFETY: with names that end; RTLD_NOLOAD loads nothing, and keeps what is there.
        let mut address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, NAME.as_ptr()) };
        // Where the application was loaded with symbols of its own, only the library's name leads to it.
        for library in [c"librcutils.so", c"librcutils.so.1d"] {
            if address.is_null() {
                let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
                // SAFETY: as above.
                let handle = unsafe { libc::dlopen(library.as_ptr(), flags) };
                if !handle.is_null() {
                    // SAFETY: as above.
                    address = unsafe { libc::dlsym(handle, NAME.as_ptr()) };
                }
            }
        }
        if address.is_null() {
            return None;
        }
        // SAFETY: a function of this name has no argument and no result in every distribution.
        Some(unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(address) })
    });
    if let Some(reset) = reset {
        // SAFETY: it touches the error of this thread only.
        unsafe { reset() };
    }
}

/// `std_msgs/msg/String` of the namespace and the name in a table.
///
/// # Safety
/// Both are null or C strings.
pub(super) unsafe fn type_name(namespace: *const c_char, name: *const c_char) -> String {
    // SAFETY: as the caller says.
    let (namespace, name) = unsafe { (text(namespace), text(name)) };
    format!("{}/{name}", namespace.replace("::", "/").replace("__", "/"))
}

/// # Safety
/// `text` is null or a C string.
pub(super) unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A number that changes with everything that a plan is compiled from. A library that is loaded
/// where another was may put another table at the same address.
///
/// # Safety
/// `members` is null or a whole table.
pub(super) unsafe fn fingerprint(members: *const InC<MessageMembers>, abi: &Abi) -> u64 {
    let mut hasher = DefaultHasher::new();
    // SAFETY: as the caller says.
    unsafe { hash_table(members, abi, 0, &mut hasher) };
    hasher.finish()
}

/// # Safety
/// As of [`fingerprint`].
unsafe fn hash_table(
    members: *const InC<MessageMembers>,
    abi: &Abi,
    depth: usize,
    hasher: &mut DefaultHasher,
) {
    members.hash(hasher);
    // SAFETY: as the caller says.
    let Some(table) = (unsafe { members_at(members, abi) }) else { return };
    // What the compiler refuses needs no fingerprint.
    if depth > 64 || table.members_.is_null() {
        return;
    }
    // SAFETY: as the caller says.
    unsafe {
        hash_text(table.message_namespace_, hasher);
        hash_text(table.message_name_, hasher);
    }
    (table.size_of_, table.init_function, table.fini_function).hash(hasher);
    // SAFETY: as the caller says.
    for member in unsafe { fields(&table, abi) } {
        // SAFETY: as the caller says.
        unsafe { hash_text(member.name_, hasher) };
        (member.type_id_, member.string_upper_bound_, member.array_size_).hash(hasher);
        (member.is_array_, member.is_upper_bound_, member.offset_).hash(hasher);
        (member.size_function, member.get_const_function, member.resize_function).hash(hasher);
        // SAFETY: as the caller says.
        if let Some(support) = unsafe { member.members_.as_ref() } {
            // SAFETY: as the caller says.
            unsafe { hash_table(support.data.cast(), abi, depth + 1, hasher) };
        }
    }
}

/// # Safety
/// `text` is null or a C string.
unsafe fn hash_text(text: *const c_char, hasher: &mut DefaultHasher) {
    if !text.is_null() {
        // SAFETY: as the caller says.
        unsafe { CStr::from_ptr(text) }.hash(hasher);
    }
}

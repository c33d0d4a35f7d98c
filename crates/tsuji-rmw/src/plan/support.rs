//! From what an application hands over to the tables of introspection.

use super::Language;
use super::error::{PlanError, PlanProblem};
use crate::abi::{self, Abi, InC};
use crate::distribution::rcutils;
use crate::ffi::rosidl::{
    INTROSPECTION_C, INTROSPECTION_CPP, MessageMember, MessageMembers, TypeHashFunction,
    rosidl_message_type_support_t, rosidl_service_type_support_t,
};
use std::ffi::{CStr, c_char, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;
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
    let mut why = None;
    for (language, identifier) in languages {
        // SAFETY: as the caller says.
        match unsafe { support.other(identifier).as_ref() } {
            Some(found) => return Ok(Table { language, members: found.data().cast() }),
            // What was asked for first is what should be there.
            None => {
                // Always, as another error would be told with a warning about this one.
                let said = take_error();
                why = why.or(said);
            }
        }
    }
    Err(PlanError::new(PlanProblem::NoIntrospection(why.unwrap_or_default())))
}

/// The functions of librcutils that tell and forget an error of this thread; none where it is not in the process.
struct ErrorState {
    is_set: unsafe extern "C" fn() -> bool,
    text: unsafe extern "C" fn() -> ErrorText,
    reset: unsafe extern "C" fn(),
}

/// `rcutils_error_string_t`.
#[repr(C)]
struct ErrorText([c_char; 1024]);

impl ErrorState {
    fn get() -> Option<&'static Self> {
        static STATE: OnceLock<Option<ErrorState>> = OnceLock::new();
        let state = STATE.get_or_init(|| {
            let find = |name| Some(rcutils(name)).filter(|it| !it.is_null());
            let (is_set, text, reset) = (
                find(c"rcutils_error_is_set")?,
                find(c"rcutils_get_error_string")?,
                find(c"rcutils_reset_error")?,
            );
            // SAFETY: functions of these names take nothing, and answer these, in every distribution.
            Some(unsafe {
                Self {
                    is_set: mem::transmute::<*mut c_void, unsafe extern "C" fn() -> bool>(is_set),
                    text: mem::transmute::<*mut c_void, unsafe extern "C" fn() -> ErrorText>(text),
                    reset: mem::transmute::<*mut c_void, unsafe extern "C" fn()>(reset),
                }
            })
        });
        state.as_ref()
    }
}

/// Forgets the error that a type support set when it was asked for what it does not have, and answers its text. Another
/// error would be told with a warning about this one.
fn take_error() -> Option<String> {
    let state = ErrorState::get()?;
    // SAFETY: they touch the error of this thread only.
    unsafe {
        if !(state.is_set)() {
            return None;
        }
        let text = (state.text)().0.map(|it| it.to_ne_bytes()[0]);
        (state.reset)();
        let text = CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy();
        // Behind the text it says where in the sources that was.
        Some(text.split(", at ").next().unwrap_or_default().to_owned())
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
        member.is_rosidl_buffer_.hash(hasher);
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

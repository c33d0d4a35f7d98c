//! How messages of one type become CDR and back, compiled once from their introspection.
//!
//! This module knows the memory of messages and bytes. It knows no topics and no transports.
//!
//! A plan writes what `tsuji-msg` writes for the same type and content, with one difference: strings
//! are bytes here, and need not be UTF-8, nor wide strings UTF-16, as in ROS 2 itself.
//! A C string or sequence of size 0 may have a null pointer; with another size that is an error. The
//! size counts, not the terminator, which need not be there to be read.

mod code;
mod compile;
mod containers;
mod describe;
mod error;
mod read;
mod support;
mod write;

pub use error::{PlanError, PlanErrorKind, PlanProblem};

use crate::abi::{Abi, InC};
use crate::ffi::rosidl::{
    MessageMembers, ServiceMembers, rosidl_message_type_support_t, rosidl_service_type_support_t,
    rosidl_type_hash_t,
};
use code::{Code, Element};
use containers::{C, Containers, Cpp};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};
use tsuji::dynamic::TypeDescription;

/// Bytes of the encapsulation header before the body.
const HEADER_SIZE: usize = 4;
/// CDR, little endian.
pub(crate) const HEADER: [u8; HEADER_SIZE] = [0, 1, 0, 0];

/// How messages of one type become CDR and back.
///
/// It calls functions of the library that the type support is in: that must stay loaded for as long
/// as messages of its type are used, as ROS 2 asks of every middleware.
#[derive(Debug)]
pub struct Plan {
    type_name: String,
    language: Language,
    code: Code,
    fixed_size: Option<usize>,
    is_plain: bool,
    is_keyed: bool,
    description: OnceLock<Arc<TypeDescription>>,
    init: unsafe extern "C" fn(*mut c_void, c_int),
    fini: unsafe extern "C" fn(*mut c_void),
}

/// The plans of a service's two messages.
#[derive(Clone, Debug)]
pub struct ServicePlans {
    /// Such as `example_interfaces/srv/AddTwoInts`.
    pub type_name: String,
    /// What a client sends.
    pub request: Arc<Plan>,
    /// What a server answers.
    pub response: Arc<Plan>,
}

/// In which language messages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    C,
    Cpp,
}

impl Language {
    /// Bytes from one element to the next in memory.
    fn stride(self, element: &Element) -> usize {
        match self {
            Self::C => C::stride(element),
            Self::Cpp => Cpp::stride(element),
        }
    }
}

/// A table's address and fingerprint.
type Key = (usize, u64);

/// Every plan so far.
static PLANS: LazyLock<RwLock<HashMap<Key, Arc<Plan>>>> = LazyLock::new(Default::default);

/// The plan of a message type, compiled at the first call and kept until the process ends.
///
/// # Safety
/// `support` is null or a type support as the distribution's generated code makes them, and its library stays loaded
/// for as long as the plan is used.
pub unsafe fn of_message(
    support: *const rosidl_message_type_support_t,
    abi: &Abi,
) -> Result<Arc<Plan>, PlanError> {
    // SAFETY: as the caller says.
    unsafe {
        let table = support::table(support)?;
        of_table(table.members, table.language, abi)
    }
}

/// The plans of a service type, as by [`of_message`].
///
/// # Safety
/// As of [`of_message`].
pub unsafe fn of_service(
    support: *const rosidl_service_type_support_t,
    abi: &Abi,
) -> Result<ServicePlans, PlanError> {
    // SAFETY: as the caller says.
    unsafe {
        let table = support::table::<_, ServiceMembers>(support)?;
        let Some(members) = table.members.as_ref() else {
            return Err(PlanError::new(PlanProblem::Table("no table")));
        };
        Ok(ServicePlans {
            type_name: support::type_name(members.service_namespace_, members.service_name_),
            request: of_table(members.request_members_, table.language, abi)?,
            response: of_table(members.response_members_, table.language, abi)?,
        })
    }
}

/// # Safety
/// `members` is null or a whole table of this language.
unsafe fn of_table(
    members: *const InC<MessageMembers>,
    language: Language,
    abi: &Abi,
) -> Result<Arc<Plan>, PlanError> {
    // SAFETY: as the caller says.
    let key = (members.addr(), unsafe { support::fingerprint(members, abi) });
    // A plan is in the map whole or not at all, whoever panicked.
    if let Some(plan) = PLANS.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Ok(plan.clone());
    }
    // SAFETY: as the caller says.
    let plan = Arc::new(unsafe { Plan::new(members, language, abi)? });
    let mut plans = PLANS.write().unwrap_or_else(PoisonError::into_inner);
    Ok(plans.entry(key).or_insert(plan).clone())
}

/// The definition of a message type in the language of `.msg`, with those of the types that it uses, as
/// `tsuji_msg::load_full_text` reads it.
///
/// # Safety
/// As of [`of_message`].
pub unsafe fn definition(
    support: *const rosidl_message_type_support_t,
    abi: &Abi,
) -> Result<String, PlanError> {
    // SAFETY: as the caller says.
    unsafe { describe::definition(support::table(support)?.members, abi) }
}

/// The hash of a message type, such as `RIHS01_` and 64 hexadecimal digits; none in distributions
/// that do not have one.
///
/// # Safety
/// As of [`of_message`].
pub unsafe fn type_hash(
    support: *const rosidl_message_type_support_t,
    abi: &Abi,
) -> Option<String> {
    let offset = abi.rosidl_message_type_support_t.get_type_hash_func;
    // SAFETY: as the caller says.
    unsafe { hash_of(support, offset) }
}

/// The hash of a service type, as by [`type_hash`].
///
/// # Safety
/// As of [`of_service`].
pub unsafe fn service_type_hash(
    support: *const rosidl_service_type_support_t,
    abi: &Abi,
) -> Option<String> {
    let offset = abi.rosidl_service_type_support_t.get_type_hash_func;
    // SAFETY: as the caller says.
    unsafe { hash_of(support, offset) }
}

/// # Safety
/// `support` is null or a type support as generated code makes them.
unsafe fn hash_of<S>(support: *const S, offset: Option<usize>) -> Option<String> {
    if support.is_null() {
        return None;
    }
    // SAFETY: as the caller says.
    unsafe {
        let function = support::type_hash_function(support, offset)?;
        hash_text(function(support.cast()))
    }
}

/// # Safety
/// `hash` is null or a hash.
unsafe fn hash_text(hash: *const rosidl_type_hash_t) -> Option<String> {
    use std::fmt::Write as _;
    // SAFETY: as the caller says.
    let hash = unsafe { hash.as_ref()? };
    if hash.version == 0 {
        return None;
    }
    let mut text = format!("RIHS{:02}_", hash.version);
    for byte in hash.value {
        write!(text, "{byte:02x}").ok()?;
    }
    Some(text)
}

impl Plan {
    /// # Safety
    /// `members` is null or a whole table of this language.
    unsafe fn new(
        members: *const InC<MessageMembers>,
        language: Language,
        abi: &Abi,
    ) -> Result<Self, PlanError> {
        // SAFETY: as the caller says.
        let Some(table) = (unsafe { support::members_at(members, abi) }) else {
            return Err(PlanError::new(PlanProblem::Table("no table")));
        };
        // SAFETY: names in a table are C strings.
        let type_name =
            unsafe { support::type_name(table.message_namespace_, table.message_name_) };
        // SAFETY: as the caller says.
        let code = unsafe { compile::compile(members, language, abi) }
            .map_err(|error| error.of(&type_name))?;
        let (Some(init), Some(fini)) = (table.init_function, table.fini_function) else {
            let problem = PlanProblem::Table("a message that cannot be made");
            return Err(PlanError::new(problem).of(&type_name));
        };
        let fixed_size = code.end(0).map(|body| body + HEADER_SIZE);
        Ok(Self {
            type_name,
            language,
            fixed_size,
            is_plain: code.is_plain(),
            is_keyed: table.has_any_key_member_,
            code,
            description: OnceLock::new(),
            init,
            fini,
        })
    }

    /// Such as `std_msgs/msg/String`; of a service's half `example_interfaces/srv/AddTwoInts_Request`.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// The type's definition, made when it is asked for first.
    pub(crate) fn description<E>(
        &self,
        make: impl FnOnce() -> Result<Arc<TypeDescription>, E>,
    ) -> Result<Arc<TypeDescription>, E> {
        match self.description.get() {
            Some(made) => Ok(Arc::clone(made)),
            None => make().map(|made| Arc::clone(self.description.get_or_init(|| made))),
        }
    }

    /// Bytes of CDR with its header, where that is the same for all messages of the type.
    pub fn fixed_size(&self) -> Option<usize> {
        self.fixed_size
    }

    /// Whether the CDR body is the memory of the message, byte for byte, on this machine, so that a
    /// loan can be the message. Not where a `bool` is in it: of that not every byte is a value.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Whether a field of it is annotated as a key.
    pub fn is_keyed(&self) -> bool {
        self.is_keyed
    }

    /// Bytes of a message in memory.
    pub fn message_size(&self) -> usize {
        self.code.size_of
    }

    /// Makes a message in memory, every field at its default.
    ///
    /// # Safety
    /// `message` points to [`Plan::message_size`] bytes, aligned as the type wants.
    pub unsafe fn init(&self, message: *mut c_void) {
        // SAFETY: as the caller says.
        unsafe {
            // In C, numbers without a default have the value that was there before.
            if self.language == Language::C {
                message.cast::<u8>().write_bytes(0, self.code.size_of);
            }
            containers::init(self.init, message);
        }
    }

    /// Drops what a message holds; its own memory is the caller's.
    ///
    /// # Safety
    /// `message` is a live message of this type, and none afterwards.
    pub unsafe fn fini(&self, message: *mut c_void) {
        // SAFETY: as the caller says.
        unsafe { (self.fini)(message) }
    }

    /// Exact bytes of CDR that a message takes, header included.
    ///
    /// # Safety
    /// `message` is null, which is an error, or a live message of this type.
    pub unsafe fn serialized_size(&self, message: *const c_void) -> Result<usize, PlanError> {
        if message.is_null() {
            return Err(self.null());
        }
        if let Some(size) = self.fixed_size {
            return Ok(size);
        }
        let message = message.cast();
        // SAFETY: as the caller says.
        let counted = unsafe {
            match self.language {
                Language::C => write::count::<C>(&self.code, message),
                Language::Cpp => write::count::<Cpp>(&self.code, message),
            }
        };
        counted.map_err(|error| error.of(&self.type_name))
    }

    /// Writes a message as little-endian CDR with its header, and answers its bytes. Padding is
    /// zero; what is in `out` after the message stays.
    ///
    /// # Safety
    /// As of [`Plan::serialized_size`].
    pub unsafe fn serialize(
        &self,
        message: *const c_void,
        out: &mut [u8],
    ) -> Result<usize, PlanError> {
        if message.is_null() {
            return Err(self.null());
        }
        let message = message.cast();
        // SAFETY: as the caller says.
        let written = unsafe {
            match self.language {
                Language::C => write::write::<C>(&self.code, message, out),
                Language::Cpp => write::write::<Cpp>(&self.code, message, out),
            }
        };
        written.map_err(|error| error.of(&self.type_name))
    }

    /// Reads CDR of either byte order into a message, which keeps the memory that it has where that
    /// suffices. When this fails the message is live still, with what was read by then.
    ///
    /// # Safety
    /// As of [`Plan::serialized_size`], and nobody else uses the message meanwhile.
    pub unsafe fn deserialize(&self, bytes: &[u8], message: *mut c_void) -> Result<(), PlanError> {
        if message.is_null() {
            return Err(self.null());
        }
        let message = message.cast();
        // SAFETY: as the caller says.
        let read = unsafe {
            match self.language {
                Language::C => read::read::<C>(&self.code, bytes, message),
                Language::Cpp => read::read::<Cpp>(&self.code, bytes, message),
            }
        };
        read.map_err(|error| error.of(&self.type_name))
    }

    #[cold]
    fn null(&self) -> PlanError {
        PlanError::new(PlanProblem::Null).of(&self.type_name)
    }
}

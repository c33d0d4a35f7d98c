//! The types that `scripts/ros-types` builds, and messages of them in C and C++ memory, filled and read through what
//! generated code offers: a witness that shares nothing with the plans but the tables' layout.
#![allow(dead_code, reason = "the benchmark shares this file and fills no message by its fields")]
#![allow(clippy::unwrap_used, reason = "it serves tests, and a benchmark that fails as they do")]
#![allow(
    clippy::missing_transmute_annotations,
    reason = "from what dlsym answers, or a function of another signature; to what is named"
)]

use rmw_tsuji::abi::{self, HUMBLE};
use rmw_tsuji::ffi::rosidl::{
    MessageMember, MessageMembers, field_type, rosidl_message_type_support_t,
    rosidl_runtime_c__String, rosidl_runtime_c__U16String, rosidl_service_type_support_t,
};
use rmw_tsuji::plan::{Plan, of_message};
use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::transmute;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs, slice};
use tsuji_msg::definition::{Base, Shape};
use tsuji_msg::{DynamicMessage, Field, List, Value};

/// `c` and `cpp`, as the names of libraries and symbols have it.
pub(crate) const LANGUAGES: [&str; 2] = ["c", "cpp"];

pub(crate) struct RosTypes {
    root: PathBuf,
    texts: *mut c_void,
    runtime: *mut c_void,
}

impl RosTypes {
    /// The types, or none, and a word about it, where they are not built. A failure where they must be.
    pub(crate) fn find() -> Option<Self> {
        let test = env::current_exe().unwrap();
        let root = test
            .ancestors()
            .map(|folder| folder.join("ros-types/humble"))
            .find(|root| root.join("stamp").exists());
        let Some(root) = root else {
            let required = env::var_os("TSUJI_ROS_TYPES").is_some_and(|value| value == "required");
            assert!(!required, "TSUJI_ROS_TYPES=required, and scripts/ros-types was not run");
            #[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
            {
                eprintln!("SKIPPED: there are no types; scripts/ros-types builds them");
            }
            return None;
        };
        let texts = open(&root.join("lib/libtsuji_test_texts.so"));
        let runtime = open(Path::new("librosidl_runtime_c.so.0d"));
        Some(Self { root, texts, runtime })
    }

    pub(crate) fn root(&self) -> &str {
        self.root.to_str().unwrap()
    }

    /// Every message that was built, such as `std_msgs/msg/String`.
    pub(crate) fn messages(&self) -> Vec<String> {
        let mut names = Vec::new();
        for package in fs::read_dir(self.root.join("share")).unwrap() {
            let folder = package.unwrap().path();
            let Ok(files) = fs::read_dir(folder.join("msg")) else { continue };
            for file in files {
                let file = file.unwrap().path();
                if file.extension().is_some_and(|extension| extension == "msg") {
                    let package = folder.file_name().unwrap().to_str().unwrap();
                    let name = file.file_stem().unwrap().to_str().unwrap();
                    names.push(format!("{package}/msg/{name}"));
                }
            }
        }
        names.sort();
        assert!(names.len() > 80, "only {} types were built", names.len());
        names
    }

    fn handle<T>(&self, name: &str, kind: &str, part: &str) -> *const T {
        let mut words = name.split('/');
        let package = words.next().unwrap();
        let library = open(&self.root.join(format!("lib/lib{package}__{part}.so")));
        let name = name.replace('/', "__");
        let get = symbol(library, &format!("{part}__get_{kind}_type_support_handle__{name}"));
        // SAFETY: the signature of every function of this name.
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn() -> *const T>(get)() }
    }

    /// What an application hands over.
    pub(crate) fn message(
        &self,
        name: &str,
        language: &str,
    ) -> *const rosidl_message_type_support_t {
        self.handle(name, "message", &format!("rosidl_typesupport_{language}"))
    }

    /// What that leads to.
    pub(crate) fn introspection(
        &self,
        name: &str,
        language: &str,
    ) -> *const rosidl_message_type_support_t {
        self.handle(name, "message", &format!("rosidl_typesupport_introspection_{language}"))
    }

    pub(crate) fn service(
        &self,
        name: &str,
        language: &str,
    ) -> *const rosidl_service_type_support_t {
        self.handle(name, "service", &format!("rosidl_typesupport_{language}"))
    }

    pub(crate) fn plan(&self, name: &str, language: &str) -> Arc<Plan> {
        // SAFETY: of generated code, whose library stays open.
        unsafe { of_message(self.message(name, language), &HUMBLE) }.unwrap()
    }

    /// A message in memory with every field at its default.
    pub(crate) fn make<'a>(&'a self, name: &str, language: &str) -> InMemory<'a> {
        let support = self.introspection(name, language);
        // SAFETY: of generated code.
        let members = unsafe { abi::get(&HUMBLE, (*support).data.cast()) };
        let walker = Walker { types: self, cpp: language == "cpp" };
        let plan = self.plan(name, language);
        let layout = Layout::from_size_align(plan.message_size(), 16).unwrap();
        // SAFETY: memory of that size.
        let at = unsafe {
            let at = alloc(layout);
            // What was there before must not matter.
            at.write_bytes(0xa5, layout.size());
            plan.init(at.cast());
            at
        };
        InMemory { plan, members, walker, at, layout }
    }
}

fn open(library: &Path) -> *mut c_void {
    let name = CString::new(library.to_str().unwrap()).unwrap();
    // SAFETY: a library of ROS 2, which does nothing when it is loaded.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    // SAFETY: after a failure there is a text.
    assert!(!handle.is_null(), "{:?}", unsafe { CStr::from_ptr(libc::dlerror()) });
    handle
}

fn symbol(library: *mut c_void, name: &str) -> *mut c_void {
    let text = CString::new(name).unwrap();
    // SAFETY: the handle is open and stays it.
    let address = unsafe { libc::dlsym(library, text.as_ptr()) };
    assert!(!address.is_null(), "no {name}");
    address
}

/// A message in memory as ROS 2 holds it.
pub(crate) struct InMemory<'a> {
    pub(crate) plan: Arc<Plan>,
    members: MessageMembers,
    walker: Walker<'a>,
    at: *mut u8,
    layout: Layout,
}

impl InMemory<'_> {
    pub(crate) fn at(&self) -> *mut c_void {
        self.at.cast()
    }

    /// Where a field is.
    pub(crate) fn field(&self, name: &str) -> *mut c_void {
        // SAFETY: a whole table, and a message of its type.
        unsafe {
            let members = fields(&self.members);
            let member =
                members.iter().find(|member| CStr::from_ptr(member.name_).to_str() == Ok(name));
            self.at.add(member.unwrap().offset_ as usize).cast()
        }
    }

    pub(crate) fn fill(&mut self, value: &DynamicMessage) {
        // SAFETY: a message of the table's type.
        unsafe { self.walker.fill(&self.members, self.at, value) }
    }

    pub(crate) fn read(&self, like: &DynamicMessage) -> DynamicMessage {
        // SAFETY: a message of the table's type.
        unsafe { self.walker.read(&self.members, self.at, like) }
    }

    pub(crate) fn serialize(&self) -> Result<Vec<u8>, rmw_tsuji::plan::PlanError> {
        // SAFETY: a message of the plan's type.
        unsafe {
            let mut bytes = vec![0xee; self.plan.serialized_size(self.at.cast())?];
            let written = self.plan.serialize(self.at.cast(), &mut bytes)?;
            assert_eq!(written, bytes.len(), "{}", self.plan.type_name());
            Ok(bytes)
        }
    }

    pub(crate) fn deserialize(&mut self, bytes: &[u8]) -> Result<(), rmw_tsuji::plan::PlanError> {
        // SAFETY: a message of the plan's type.
        unsafe { self.plan.deserialize(bytes, self.at.cast()) }
    }
}

impl Drop for InMemory<'_> {
    fn drop(&mut self) {
        // SAFETY: live until here.
        unsafe {
            self.plan.fini(self.at.cast());
            dealloc(self.at, self.layout);
        }
    }
}

unsafe fn fields(members: &MessageMembers) -> Vec<MessageMember> {
    let first = members.members_.cast_mut();
    let field = |at| {
        // SAFETY: a whole table.
        unsafe { abi::get(&HUMBLE, abi::element(&HUMBLE, first, at)) }
    };
    (0..members.member_count_ as usize).map(field).collect()
}

/// Goes through a message by the functions that generated code offers.
struct Walker<'a> {
    types: &'a RosTypes,
    cpp: bool,
}

impl Walker<'_> {
    unsafe fn fill(&self, members: &MessageMembers, at: *mut u8, value: &DynamicMessage) {
        // SAFETY: as for all of this: the table is whole, the memory of its type.
        let members = unsafe { fields(members) };
        for (member, (field, value)) in members.iter().zip(value.fields()) {
            // SAFETY: as above.
            unsafe {
                assert_eq!(CStr::from_ptr(member.name_).to_str(), Ok(field.name.as_str()));
                let at = at.add(member.offset_ as usize);
                match value {
                    Value::List(list) => self.fill_list(member, field, at, list),
                    value => self.fill_single(member, at, value),
                }
            }
        }
    }

    unsafe fn fill_list(&self, member: &MessageMember, field: &Field, at: *mut u8, list: &List) {
        // SAFETY: as above; in C++ the function answers nothing.
        unsafe {
            if !matches!(field.ty.shape, Shape::Array(_)) {
                let resize = member.resize_function.unwrap();
                if self.cpp {
                    transmute::<_, unsafe extern "C" fn(*mut c_void, usize)>(resize)(
                        at.cast(),
                        list.len(),
                    );
                } else {
                    assert!(resize(at.cast(), list.len()));
                }
            }
            assert_eq!(member.size_function.unwrap()(at.cast()), list.len());
            for index in 0..list.len() {
                let value = list.get(index).unwrap();
                match (member.get_function, value) {
                    (Some(get), value) => {
                        self.fill_single(member, get(at.cast(), index).cast(), &value);
                    }
                    (None, Value::Bool(value)) => {
                        let value = std::ptr::from_ref(&value).cast();
                        member.assign_function.unwrap()(at.cast(), index, value);
                    }
                    _ => panic!("no place for an element of {}", field.name),
                }
            }
        }
    }

    unsafe fn fill_single(&self, member: &MessageMember, at: *mut u8, value: &Value) {
        // SAFETY: as above.
        unsafe {
            match value {
                Value::Bool(value) => at.cast::<bool>().write(*value),
                Value::U8(value) => at.write(*value),
                Value::I8(value) => at.cast::<i8>().write(*value),
                Value::U16(value) => at.cast::<u16>().write(*value),
                Value::I16(value) => at.cast::<i16>().write(*value),
                Value::U32(value) => at.cast::<u32>().write(*value),
                Value::I32(value) => at.cast::<i32>().write(*value),
                Value::U64(value) => at.cast::<u64>().write(*value),
                Value::I64(value) => at.cast::<i64>().write(*value),
                Value::F32(value) => at.cast::<f32>().write(*value),
                Value::F64(value) => at.cast::<f64>().write(*value),
                Value::Text(text) if member.type_id_ == field_type::WSTRING => {
                    let units: Vec<u16> = text.encode_utf16().collect();
                    self.set("U16String", "u16string", at, units.as_ptr().cast(), units.len());
                }
                Value::Text(text) => {
                    self.set("String", "string", at, text.as_ptr().cast(), text.len());
                }
                Value::Message(value) => {
                    self.fill(&abi::get(&HUMBLE, (*member.members_).data.cast()), at, value);
                }
                Value::List(_) => panic!("a list in a list"),
            }
        }
    }

    unsafe fn set(&self, c: &str, cpp: &str, at: *mut u8, data: *const c_void, size: usize) {
        // SAFETY: the signatures of these functions.
        unsafe {
            if self.cpp {
                let assign = symbol(self.types.texts, &format!("test_{cpp}_assign"));
                transmute::<_, unsafe extern "C" fn(*mut u8, *const c_void, usize)>(assign)(
                    at, data, size,
                );
            } else {
                let assign = symbol(self.types.runtime, &format!("rosidl_runtime_c__{c}__assignn"));
                assert!(
                    transmute::<_, unsafe extern "C" fn(*mut u8, *const c_void, usize) -> bool>(
                        assign
                    )(at, data, size)
                );
            }
        }
    }

    unsafe fn read(
        &self,
        members: &MessageMembers,
        at: *const u8,
        like: &DynamicMessage,
    ) -> DynamicMessage {
        let mut message = DynamicMessage::new(like.ty().clone());
        // SAFETY: as above.
        let members = unsafe { fields(members) };
        for (member, field) in members.iter().zip(like.ty().fields()) {
            // SAFETY: as above.
            let value = unsafe {
                let at = at.add(member.offset_ as usize);
                match field.ty.shape {
                    Shape::Single => self.read_single(member, field, at),
                    _ => self.read_list(member, field, at),
                }
            };
            message.set(&field.name, value).unwrap();
        }
        message
    }

    unsafe fn read_list(&self, member: &MessageMember, field: &Field, at: *const u8) -> Value {
        let mut list = List::empty(&field.ty.base);
        // SAFETY: as above.
        unsafe {
            for index in 0..member.size_function.unwrap()(at.cast()) {
                let value = match member.get_const_function {
                    Some(get) => self.read_single(member, field, get(at.cast(), index).cast()),
                    None => {
                        let mut value = false;
                        let place = std::ptr::from_mut(&mut value).cast();
                        member.fetch_function.unwrap()(at.cast(), index, place);
                        Value::Bool(value)
                    }
                };
                list.push(value).unwrap();
            }
        }
        Value::List(list)
    }

    unsafe fn read_single(&self, member: &MessageMember, field: &Field, at: *const u8) -> Value {
        use field_type::*;
        // SAFETY: as above.
        unsafe {
            match member.type_id_ {
                BOOLEAN => {
                    assert!(*at < 2, "{} holds {}", field.name, *at);
                    Value::Bool(*at == 1)
                }
                OCTET | CHAR | UINT8 => Value::U8(*at),
                INT8 => Value::I8(*at.cast()),
                UINT16 => Value::U16(*at.cast()),
                INT16 => Value::I16(*at.cast()),
                UINT32 => Value::U32(*at.cast()),
                INT32 => Value::I32(*at.cast()),
                UINT64 => Value::U64(*at.cast()),
                INT64 => Value::I64(*at.cast()),
                FLOAT => Value::F32(*at.cast()),
                DOUBLE => Value::F64(*at.cast()),
                STRING => Value::Text(String::from_utf8(self.text(at).to_vec()).unwrap()),
                WSTRING => Value::Text(String::from_utf16(self.wide_text(at)).unwrap()),
                MESSAGE => {
                    let Base::Nested(ty) = &field.ty.base else { panic!("{}", field.name) };
                    let like = DynamicMessage::new(ty.clone());
                    let members = abi::get(&HUMBLE, (*member.members_).data.cast());
                    Value::Message(self.read(&members, at, &like))
                }
                other => panic!("{} has type {other}", field.name),
            }
        }
    }

    unsafe fn text(&self, at: *const u8) -> &[u8] {
        let mut size = 0;
        // SAFETY: as above.
        unsafe {
            if self.cpp {
                let data = symbol(self.types.texts, "test_string_data");
                let data = transmute::<_, unsafe extern "C" fn(*const u8, *mut usize) -> *const u8>(
                    data,
                )(at, &mut size);
                return slice::from_raw_parts(data, size);
            }
            let text = &*at.cast::<rosidl_runtime_c__String>();
            assert_eq!(CStr::from_ptr(text.data.cast::<c_char>()).count_bytes(), text.size);
            assert!(text.capacity > text.size);
            slice::from_raw_parts(text.data.cast(), text.size)
        }
    }

    unsafe fn wide_text(&self, at: *const u8) -> &[u16] {
        let mut size = 0;
        // SAFETY: as above.
        unsafe {
            if self.cpp {
                let data = symbol(self.types.texts, "test_u16string_data");
                let data = transmute::<_, unsafe extern "C" fn(*const u8, *mut usize) -> *const u16>(
                    data,
                )(at, &mut size);
                return slice::from_raw_parts(data, size);
            }
            let text = &*at.cast::<rosidl_runtime_c__U16String>();
            assert_eq!(*text.data.add(text.size), 0);
            assert!(text.capacity > text.size);
            slice::from_raw_parts(text.data, text.size)
        }
    }
}

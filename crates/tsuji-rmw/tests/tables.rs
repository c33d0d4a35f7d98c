//! Plans from tables written by hand, so that the layouts of every ROS distribution are read where no ROS 2 is.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::missing_transmute_annotations, reason = "the fields say the types")]

use rmw_tsuji::abi::{self, Abi, Distribution, InC, Shaped};
use rmw_tsuji::ffi::rosidl::{
    INTROSPECTION_C, INTROSPECTION_CPP, MessageMember, MessageMembers, ServiceMembers,
    TypeHashFunction, field_type, rosidl_message_type_support_t, rosidl_runtime_c__Sequence,
    rosidl_runtime_c__String, rosidl_service_type_support_t, rosidl_type_hash_t,
};
use rmw_tsuji::plan::{
    PlanErrorKind, PlanProblem, of_message, of_service, service_type_hash, type_hash,
};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::{offset_of, zeroed};
use std::path::Path;
use std::process::Command;
use std::ptr;
use std::sync::Arc;

/// A struct as rosidl_generator_c makes it.
#[repr(C)]
struct Point {
    x: f64,
    y: f64,
}

#[repr(C)]
struct Marker {
    id: u16,
    visible: bool,
    name: rosidl_runtime_c__String,
    at: Point,
    line: rosidl_runtime_c__Sequence<Point>,
    colours: [f32; 3],
    bytes: rosidl_runtime_c__Sequence<u8>,
    /// Since Lyrical the sequence has them: whether its memory is elsewhere, and whether it is its own.
    flags: [bool; 8],
}

unsafe extern "C" fn init(_: *mut c_void, how: c_int) {
    assert_eq!(how, 0);
}

unsafe extern "C" fn fini_point(_: *mut c_void) {}

unsafe extern "C" fn fini_marker(message: *mut c_void) {
    // SAFETY: a live marker, whose memory is of malloc.
    unsafe {
        let marker = &mut *message.cast::<Marker>();
        libc::free(marker.name.data.cast());
        libc::free(marker.line.data.cast());
        libc::free(marker.bytes.data.cast());
    }
}

unsafe extern "C" fn size<T>(sequence: *const c_void) -> usize {
    // SAFETY: a live sequence.
    unsafe { (*sequence.cast::<rosidl_runtime_c__Sequence<T>>()).size }
}

unsafe extern "C" fn get<T>(sequence: *const c_void, index: usize) -> *const c_void {
    // SAFETY: a live sequence, longer than the index.
    unsafe { (*sequence.cast::<rosidl_runtime_c__Sequence<T>>()).data.add(index).cast() }
}

/// Refuses what a machine without memory would.
unsafe extern "C" fn resize<T>(sequence: *mut c_void, size: usize) -> bool {
    if size > 1000 {
        return false;
    }
    // SAFETY: a live sequence, whose memory is of malloc.
    unsafe {
        let sequence = &mut *sequence.cast::<rosidl_runtime_c__Sequence<T>>();
        libc::free(sequence.data.cast());
        sequence.data = libc::calloc(size, size_of::<T>()).cast();
        sequence.size = size;
        sequence.capacity = size;
    }
    true
}

fn field(name: &'static CStr, type_id: u8, offset: usize) -> MessageMember {
    // SAFETY: null pointers, no functions, zeros and false.
    let mut member: MessageMember = unsafe { zeroed() };
    member.name_ = name.as_ptr();
    member.type_id_ = type_id;
    member.offset_ = offset as u32;
    member
}

fn sequence<T>(member: MessageMember) -> MessageMember {
    MessageMember {
        is_array_: true,
        size_function: Some(size::<T>),
        get_const_function: Some(get::<T>),
        resize_function: Some(resize::<T>),
        ..member
    }
}

/// These in memory that stays, as they lie in a distribution.
fn in_c<T: Shaped>(abi: &Abi, all: &[T]) -> *mut InC<T> {
    let size = T::size(abi);
    let memory = vec![0_u64; (size * all.len()).div_ceil(size_of::<u64>())].leak();
    let first: *mut InC<T> = memory.as_mut_ptr().cast();
    for (at, value) in all.iter().enumerate() {
        // SAFETY: there is room for as many.
        unsafe { abi::set(abi, abi::element(abi, first, at), value) };
    }
    first
}

fn table(
    abi: &Abi,
    name: &'static CStr,
    size_of: usize,
    members: &[MessageMember],
) -> MessageMembers {
    // SAFETY: null pointers, no functions, zeros and false.
    let mut table: MessageMembers = unsafe { zeroed() };
    table.message_namespace_ = c"hand__msg".as_ptr();
    table.message_name_ = name.as_ptr();
    table.member_count_ = members.len() as u32;
    table.size_of_ = size_of;
    table.members_ = in_c(abi, members);
    table.init_function = Some(init);
    table.fini_function = Some(fini_point);
    table
}

/// A type support in memory enough for that of every distribution.
fn support(abi: &Abi, table: MessageMembers) -> &'static mut rosidl_message_type_support_t {
    // SAFETY: null pointers and no functions.
    let memory: &mut [rosidl_message_type_support_t; 4] = Box::leak(Box::new(unsafe { zeroed() }));
    let support = &mut memory[0];
    support.typesupport_identifier = INTROSPECTION_C.as_ptr();
    support.data = in_c(abi, &[table]).cast();
    support
}

fn point(abi: &Abi) -> &'static rosidl_message_type_support_t {
    let members = [
        field(c"x", field_type::DOUBLE, offset_of!(Point, x)),
        field(c"y", field_type::DOUBLE, offset_of!(Point, y)),
    ];
    support(abi, table(abi, c"Point", size_of::<Point>(), &members))
}

fn marker(abi: &Abi) -> &'static rosidl_message_type_support_t {
    let point = point(abi);
    let message = |member| MessageMember { members_: point, ..member };
    let members = [
        field(c"id", field_type::UINT16, offset_of!(Marker, id)),
        field(c"visible", field_type::BOOLEAN, offset_of!(Marker, visible)),
        field(c"name", field_type::STRING, offset_of!(Marker, name)),
        message(field(c"at", field_type::MESSAGE, offset_of!(Marker, at))),
        sequence::<Point>(message(field(c"line", field_type::MESSAGE, offset_of!(Marker, line)))),
        MessageMember {
            is_array_: true,
            array_size_: 3,
            ..field(c"colours", field_type::FLOAT, offset_of!(Marker, colours))
        },
        sequence::<u8>(field(c"bytes", field_type::UINT8, offset_of!(Marker, bytes))),
    ];
    let mut marker = table(abi, c"Marker", size_of::<Marker>(), &members);
    marker.fini_function = Some(fini_marker);
    support(abi, marker)
}

#[rustfmt::skip]
const SAMPLE: &[u8] = &[
    0, 1, 0, 0,
    7, 0,  1,  0,                                             // id, visible, padding
    3, 0, 0, 0,  b'o', b'k', 0,                               // name
    0,  0, 0, 0, 0,                                           // padding to 16 after the header
    0, 0, 0, 0, 0, 0, 0xf0, 0x3f,  0, 0, 0, 0, 0, 0, 0, 0x40, // at: 1.0, 2.0
    1, 0, 0, 0,  0, 0, 0, 0,                                  // line: one point, padding
    0, 0, 0, 0, 0, 0, 0x08, 0x40,  0, 0, 0, 0, 0, 0, 0x10, 0x40,
    0, 0, 0, 0x3f,  0, 0, 0, 0,  0, 0, 0x80, 0x3f,            // colours: 0.5, 0.0, 1.0
    2, 0, 0, 0,  8, 9,                                        // bytes
];

/// Each with the interface of a distribution.
fn everywhere(mut test: impl FnMut(&'static Abi)) {
    for distribution in Distribution::ALL {
        test(distribution.abi());
    }
}

#[test]
fn a_message_by_hand_goes_there_and_back() {
    everywhere(|abi| {
        // SAFETY: of whole tables, as are all below.
        let plan = unsafe { of_message(marker(abi), abi) }.unwrap();
        assert_eq!(plan.type_name(), "hand/msg/Marker");
        assert_eq!((plan.fixed_size(), plan.is_plain()), (None, false));
        assert_eq!(plan.message_size(), size_of::<Marker>());
        // SAFETY: memory of the message's type.
        unsafe {
            let mut marker = std::mem::MaybeUninit::<Marker>::uninit();
            plan.init(marker.as_mut_ptr().cast());
            plan.deserialize(SAMPLE, marker.as_mut_ptr().cast()).unwrap();
            let message = marker.as_ptr().cast();
            let read = marker.assume_init_ref();
            assert_eq!((read.id, read.visible, read.name.size, read.at.y), (7, true, 2, 2.0));
            assert_eq!((read.line.size, (*read.line.data).x, (*read.line.data).y), (1, 3.0, 4.0));
            assert_eq!(read.colours, [0.5, 0.0, 1.0]);
            assert_eq!(CStr::from_ptr(read.name.data), c"ok");
            assert_eq!(plan.serialized_size(message), Ok(SAMPLE.len()));
            let mut out = [0xee; SAMPLE.len()];
            assert_eq!(plan.serialize(message, &mut out), Ok(SAMPLE.len()));
            assert_eq!(out, SAMPLE);
            for length in 0..SAMPLE.len() {
                let error = plan.deserialize(&SAMPLE[..length], marker.as_mut_ptr().cast());
                assert_eq!(error.unwrap_err().kind(), PlanErrorKind::Invalid);
            }
            plan.fini(marker.as_mut_ptr().cast());
        }
    });
}

/// Since Lyrical a sequence of numbers may have its memory elsewhere; then `data` is no array.
#[test]
fn numbers_that_are_elsewhere_are_refused() {
    everywhere(|abi| {
        let knows_flags = matches!(abi.distribution, Distribution::Lyrical | Distribution::Rolling);
        // SAFETY: as above, and memory of the message's type.
        unsafe {
            let plan = of_message(marker(abi), abi).unwrap();
            let mut marker = std::mem::MaybeUninit::<Marker>::uninit();
            let message = marker.as_mut_ptr().cast();
            plan.init(message);
            plan.deserialize(SAMPLE, message).unwrap();
            marker.assume_init_mut().flags[0] = true;
            let size = plan.serialized_size(message);
            let read = plan.deserialize(SAMPLE, message);
            if knows_flags {
                for error in [size.unwrap_err(), read.unwrap_err()] {
                    let got = (error.kind(), error.problem(), error.field());
                    let expect = (PlanErrorKind::Unsupported, &PlanProblem::Elsewhere, "bytes");
                    assert_eq!(got, expect);
                }
            } else {
                assert_eq!((size, read), (Ok(SAMPLE.len()), Ok(())));
            }
            plan.fini(message);
        }
    });
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    everywhere(|abi| {
        // SAFETY: as above, and memory of the message's type.
        unsafe {
            let plan = of_message(marker(abi), abi).unwrap();
            let mut marker = std::mem::MaybeUninit::<Marker>::uninit();
            plan.init(marker.as_mut_ptr().cast());
            let mut sample = SAMPLE[..SAMPLE.len() - 6].to_vec();
            sample.extend(2000_u32.to_le_bytes());
            sample.extend([1; 2000]);
            let error = plan.deserialize(&sample, marker.as_mut_ptr().cast()).unwrap_err();
            assert_eq!((error.kind(), error.field()), (PlanErrorKind::NoMemory, "bytes"));
            plan.fini(marker.as_mut_ptr().cast());
        }
    });
}

#[test]
fn numbers_without_padding_are_plain() {
    everywhere(|abi| {
        // SAFETY: as above.
        let plan = unsafe { of_message(point(abi), abi) }.unwrap();
        let is_little = cfg!(target_endian = "little");
        assert_eq!((plan.fixed_size(), plan.is_plain()), (Some(20), is_little));
    });
}

#[test]
fn plans_are_told_apart_by_what_is_in_the_tables() {
    everywhere(|abi| {
        let kept = marker(abi);
        // SAFETY: as above.
        unsafe {
            let plan = of_message(kept, abi).unwrap();
            assert!(Arc::ptr_eq(&plan, &of_message(kept, abi).unwrap()));
            // As if another library were loaded where this one was.
            let at = kept.data.cast_mut().cast::<InC<MessageMembers>>();
            let mut table: MessageMembers = abi::get(abi, at);
            table.message_name_ = c"Other".as_ptr();
            abi::set(abi, at, &table);
            let other = of_message(kept, abi).unwrap();
            let names = (plan.type_name(), other.type_name());
            assert_eq!(names, ("hand/msg/Marker", "hand/msg/Other"));
        }
    });
}

#[test]
fn what_cannot_be_carried_is_named() {
    everywhere(|abi| {
        let refused = |members: &[MessageMember]| {
            let support = support(abi, table(abi, c"Odd", 32, members));
            // SAFETY: as above.
            let error = unsafe { of_message(support, abi) }.unwrap_err();
            assert_eq!(error.kind(), PlanErrorKind::Unsupported);
            error.to_string()
        };
        assert_eq!(
            refused(&[field(c"far", field_type::LONG_DOUBLE, 0)]),
            "hand/msg/Odd, far: long double cannot be carried"
        );
        let wide = field(c"letter", field_type::WCHAR, 0);
        assert_eq!(refused(&[wide]), "hand/msg/Odd, letter: wchar cannot be carried");
        for (member, what) in [
            (field(c"f", field_type::DOUBLE, 28), "a field beyond the message's end"),
            (field(c"f", field_type::DOUBLE, 4), "a field that is not aligned"),
            (field(c"f", 99, 0), "an unknown type of field"),
            (field(c"f", field_type::MESSAGE, 0), "a field's message without a table"),
            (
                MessageMember { is_array_: true, ..field(c"f", field_type::UINT8, 0) },
                "a sequence that cannot be resized",
            ),
        ] {
            let error = refused(&[member]);
            assert!(error.starts_with("hand/msg/Odd, f: ") && error.contains(what), "{error}");
        }
        assert!(refused(&[]).contains("a message without fields"));
    });
}

#[test]
fn a_message_within_itself_is_refused() {
    everywhere(|abi| {
        let own = field(c"self", field_type::MESSAGE, 0);
        let endless = support(abi, table(abi, c"Endless", 8, &[own]));
        // SAFETY: leaked, and used by this test only.
        unsafe {
            let table: MessageMembers = abi::get(abi, endless.data.cast());
            let own = MessageMember { members_: ptr::from_ref(endless), ..own };
            abi::set(abi, table.members_.cast_mut(), &own);
            let refused = of_message(endless, abi).unwrap_err();
            assert_eq!(refused.kind(), PlanErrorKind::Unsupported);
        }
    });
}

#[test]
fn a_service_by_hand_has_two_plans() {
    everywhere(|abi| {
        // SAFETY: null pointers and no functions.
        let mut members: ServiceMembers = unsafe { zeroed() };
        members.service_namespace_ = c"hand__srv".as_ptr();
        members.service_name_ = c"Move".as_ptr();
        members.request_members_ = point(abi).data.cast();
        members.response_members_ = marker(abi).data.cast();
        // SAFETY: as above. Enough for that of every distribution.
        let mut support: [rosidl_service_type_support_t; 4] = unsafe { zeroed() };
        support[0].typesupport_identifier = c"rosidl_typesupport_c".as_ptr();
        support[0].data = ptr::from_ref(Box::leak(Box::new(members))).cast();
        support[0].func = Some(lead);
        // SAFETY: as above.
        let plans = unsafe { of_service(support.as_ptr(), abi) }.unwrap();
        assert_eq!(plans.type_name, "hand/srv/Move");
        assert_eq!(plans.request.type_name(), "hand/msg/Point");
        assert_eq!(plans.response.type_name(), "hand/msg/Marker");
    });
}

/// A dispatching handle, which knows C only.
unsafe extern "C" fn lead(
    support: *const rosidl_service_type_support_t,
    identifier: *const c_char,
) -> *const rosidl_service_type_support_t {
    // SAFETY: called by plans.
    unsafe {
        if CStr::from_ptr(identifier) != INTROSPECTION_C {
            return ptr::null();
        }
        let mut found = *support;
        found.typesupport_identifier = INTROSPECTION_C.as_ptr();
        Box::leak(Box::new(found))
    }
}

#[test]
fn a_handle_that_leads_nowhere_is_refused() {
    everywhere(|abi| {
        // SAFETY: null pointers and no functions, and enough for that of every distribution.
        let mut memory: [rosidl_service_type_support_t; 4] = unsafe { zeroed() };
        let problem = |support: *const rosidl_service_type_support_t| {
            // SAFETY: as above.
            unsafe { of_service(support, abi) }.unwrap_err().problem().clone()
        };
        assert_eq!(problem(memory.as_ptr()), PlanProblem::NoIntrospection(String::new()));
        memory[0].typesupport_identifier = INTROSPECTION_C.as_ptr();
        assert_eq!(problem(memory.as_ptr()), PlanProblem::Table("no table"));
        assert_eq!(problem(ptr::null()), PlanProblem::Null);
        // SAFETY: as above.
        unsafe {
            let refused = of_message(ptr::null(), abi).unwrap_err();
            assert_eq!(refused.problem(), &PlanProblem::Null);
            let hashes = (service_type_hash(memory.as_ptr(), abi), type_hash(point(abi), abi));
            assert_eq!(hashes, (None, None));
        }
    });
}

#[test]
fn a_type_hash_is_told_as_text() {
    static HASH: rosidl_type_hash_t = rosidl_type_hash_t { version: 1, value: [0x0a; 32] };
    unsafe extern "C" fn hash(_: *const c_void) -> *const rosidl_type_hash_t {
        &HASH
    }
    everywhere(|abi| {
        let support: *const rosidl_message_type_support_t = point(abi);
        // Behind what is the same in every distribution; Humble does not look there.
        let at = abi.rosidl_message_type_support_t.get_type_hash_func.unwrap_or(24);
        // SAFETY: there is room for it.
        unsafe { support.cast_mut().byte_add(at).cast::<TypeHashFunction>().write(Some(hash)) };
        // SAFETY: as above.
        let text = unsafe { type_hash(support, abi) };
        let expect = format!("RIHS01_{}", "0a".repeat(32));
        let has_hashes = abi.distribution != Distribution::Humble;
        assert_eq!(text, has_hashes.then_some(expect));
    });
}

/// The functions of a `rosidl::Buffer<uint8_t>` in `tests/c/buffer.cpp`.
struct Buffers {
    make: unsafe extern "C" fn(is_elsewhere: bool) -> *mut c_void,
    size: unsafe extern "C" fn(*const c_void) -> usize,
    get: unsafe extern "C" fn(*const c_void, usize) -> *const c_void,
    resize: unsafe extern "C" fn(*mut c_void, usize) -> bool,
}

impl Buffers {
    fn build() -> Self {
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libbuffer.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/buffer.cpp");
        let mut command = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned()));
        command.args(["-std=c++17", "-Wall", "-Werror", "-shared", "-fPIC"]);
        let output = command.arg(source).arg("-o").arg(&library).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let path = CString::new(library.to_str().unwrap()).unwrap();
        // SAFETY: it has no constructors that do anything.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        let find = |name: &CStr| {
            // SAFETY: the handle is open.
            let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            assert!(!found.is_null(), "{name:?}");
            found
        };
        // SAFETY: they are declared so.
        unsafe {
            Self {
                make: std::mem::transmute(find(c"make")),
                size: std::mem::transmute(find(c"size")),
                get: std::mem::transmute(find(c"get")),
                resize: std::mem::transmute(find(c"resize")),
            }
        }
    }
}

/// Since Lyrical the `uint8[]` of C++ is a class of its own, whose layout nobody but its functions knows.
#[test]
fn a_buffer_of_cpp_is_reached_through_its_functions() {
    let buffers = Buffers::build();
    let abi = Distribution::Lyrical.abi();
    let member = MessageMember {
        is_array_: true,
        size_function: Some(buffers.size),
        get_const_function: Some(buffers.get),
        resize_function: Some(buffers.resize),
        is_rosidl_buffer_: true,
        ..field(c"data", field_type::UINT8, 0)
    };
    // It is a pointer, so much smaller than a vector.
    let support = support(abi, table(abi, c"Picture", size_of::<usize>(), &[member]));
    support.typesupport_identifier = INTROSPECTION_CPP.as_ptr();
    // SAFETY: a whole table, and messages of its type.
    unsafe {
        let plan = of_message(support, abi).unwrap();
        let mut message = (buffers.make)(false);
        let at: *mut c_void = (&raw mut message).cast();
        for content in [&b""[..], b"pixels", b"", &[7; 3_000_000]] {
            let count = content.len() as u32;
            let sample = [&[0, 1, 0, 0][..], &count.to_le_bytes(), content].concat();
            plan.deserialize(&sample, at).unwrap();
            assert_eq!(plan.serialized_size(at), Ok(sample.len()));
            let mut out = vec![0xee; sample.len()];
            assert_eq!(plan.serialize(at, &mut out), Ok(sample.len()));
            assert!(out == sample);
        }
        // Without memory: it throws.
        let error = plan.deserialize(&[0, 1, 0, 0, 255, 255, 255, 255], at).unwrap_err();
        assert_eq!(error.kind(), PlanErrorKind::Invalid);
        let mut message = (buffers.make)(true);
        let at: *mut c_void = (&raw mut message).cast();
        let refused = [
            plan.serialized_size(at).unwrap_err(),
            plan.deserialize(&[0, 1, 0, 0, 1, 0, 0, 0, 9], at).unwrap_err(),
        ];
        for error in refused {
            assert_eq!((error.problem(), error.field()), (&PlanProblem::Elsewhere, "data"));
        }
    }
}

//! Plans from tables written by hand, so that the layouts of either ROS distribution are read where no ROS 2 is.

use rmw_tsuji::ffi::rosidl::{
    INTROSPECTION_C, MessageMember, MessageMembers, ServiceMembers, field_type,
    rosidl_message_type_support_t, rosidl_runtime_c__Sequence, rosidl_runtime_c__String,
    rosidl_service_type_support_t,
};
use rmw_tsuji::plan::{
    PlanErrorKind, PlanProblem, of_message, of_service, service_type_hash, type_hash,
};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{offset_of, zeroed};
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

fn table(name: &'static CStr, size_of: usize, members: &'static [MessageMember]) -> MessageMembers {
    // SAFETY: null pointers, no functions, zeros and false.
    let mut table: MessageMembers = unsafe { zeroed() };
    table.message_namespace_ = c"hand__msg".as_ptr();
    table.message_name_ = name.as_ptr();
    table.member_count_ = members.len() as u32;
    table.size_of_ = size_of;
    table.members_ = members.as_ptr();
    table.init_function = Some(init);
    table.fini_function = Some(fini_point);
    table
}

fn support(table: MessageMembers) -> &'static rosidl_message_type_support_t {
    // SAFETY: null pointers and no functions.
    let mut support: rosidl_message_type_support_t = unsafe { zeroed() };
    support.typesupport_identifier = INTROSPECTION_C.as_ptr();
    support.data = ptr::from_ref(Box::leak(Box::new(table))).cast();
    Box::leak(Box::new(support))
}

fn point() -> &'static rosidl_message_type_support_t {
    let members = vec![
        field(c"x", field_type::DOUBLE, offset_of!(Point, x)),
        field(c"y", field_type::DOUBLE, offset_of!(Point, y)),
    ];
    support(table(c"Point", size_of::<Point>(), members.leak()))
}

fn marker() -> &'static rosidl_message_type_support_t {
    let point = point();
    let message = |member| MessageMember { members_: point, ..member };
    let members = vec![
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
    let mut marker = table(c"Marker", size_of::<Marker>(), members.leak());
    marker.fini_function = Some(fini_marker);
    support(marker)
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

#[test]
fn a_message_by_hand_goes_there_and_back() {
    // SAFETY: of whole tables, as are all below.
    let plan = unsafe { of_message(marker()) }.unwrap();
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
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    // SAFETY: as above, and memory of the message's type.
    unsafe {
        let plan = of_message(marker()).unwrap();
        let mut marker = std::mem::MaybeUninit::<Marker>::uninit();
        plan.init(marker.as_mut_ptr().cast());
        let mut sample = SAMPLE[..SAMPLE.len() - 6].to_vec();
        sample.extend(2000_u32.to_le_bytes());
        sample.extend([1; 2000]);
        let error = plan.deserialize(&sample, marker.as_mut_ptr().cast()).unwrap_err();
        assert_eq!((error.kind(), error.field()), (PlanErrorKind::NoMemory, "bytes"));
        plan.fini(marker.as_mut_ptr().cast());
    }
}

#[test]
fn numbers_without_padding_are_plain() {
    // SAFETY: as above.
    let plan = unsafe { of_message(point()) }.unwrap();
    assert_eq!((plan.fixed_size(), plan.is_plain()), (Some(20), cfg!(target_endian = "little")));
}

#[test]
fn plans_are_told_apart_by_what_is_in_the_tables() {
    let kept = marker();
    // SAFETY: as above.
    unsafe {
        let plan = of_message(kept).unwrap();
        assert!(Arc::ptr_eq(&plan, &of_message(kept).unwrap()));
        // As if another library were loaded where this one was.
        let table = kept.data.cast_mut().cast::<MessageMembers>();
        (*table).message_name_ = c"Other".as_ptr();
        let other = of_message(kept).unwrap();
        assert_eq!((plan.type_name(), other.type_name()), ("hand/msg/Marker", "hand/msg/Other"));
    }
}

#[test]
fn what_cannot_be_carried_is_named() {
    let refused = |members: Vec<MessageMember>| {
        // SAFETY: as above.
        let error = unsafe { of_message(support(table(c"Odd", 32, members.leak()))) }.unwrap_err();
        assert_eq!(error.kind(), PlanErrorKind::Unsupported);
        error.to_string()
    };
    assert_eq!(
        refused(vec![field(c"far", field_type::LONG_DOUBLE, 0)]),
        "hand/msg/Odd, far: long double cannot be carried"
    );
    let wide = field(c"letter", field_type::WCHAR, 0);
    assert_eq!(refused(vec![wide]), "hand/msg/Odd, letter: wchar cannot be carried");
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
        let error = refused(vec![member]);
        assert!(error.starts_with("hand/msg/Odd, f: ") && error.contains(what), "{error}");
    }
    assert!(refused(Vec::new()).contains("a message without fields"));
}

#[test]
fn a_message_within_itself_is_refused() {
    let endless =
        support(table(c"Endless", 8, vec![field(c"self", field_type::MESSAGE, 0)].leak()));
    // SAFETY: leaked, and used by this test only.
    unsafe {
        let table = endless.data.cast_mut().cast::<MessageMembers>();
        (*(*table).members_.cast_mut()).members_ = endless;
        assert_eq!(of_message(endless).unwrap_err().kind(), PlanErrorKind::Unsupported);
    }
}

#[test]
fn a_service_by_hand_has_two_plans() {
    let request = point().data.cast();
    // SAFETY: null pointers and no functions.
    let (mut members, mut support): (ServiceMembers, rosidl_service_type_support_t) =
        unsafe { (zeroed(), zeroed()) };
    members.service_namespace_ = c"hand__srv".as_ptr();
    members.service_name_ = c"Move".as_ptr();
    members.request_members_ = request;
    members.response_members_ = marker().data.cast();
    support.typesupport_identifier = c"rosidl_typesupport_c".as_ptr();
    support.data = ptr::from_ref(Box::leak(Box::new(members))).cast();
    support.func = Some(lead);
    // SAFETY: as above.
    let plans = unsafe { of_service(&support) }.unwrap();
    assert_eq!(plans.type_name, "hand/srv/Move");
    assert_eq!(plans.request.type_name(), "hand/msg/Point");
    assert_eq!(plans.response.type_name(), "hand/msg/Marker");
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
    // SAFETY: null pointers and no functions.
    let mut support: rosidl_service_type_support_t = unsafe { zeroed() };
    // SAFETY: as above.
    unsafe {
        assert_eq!(of_service(&support).unwrap_err().problem(), &PlanProblem::NoIntrospection);
        support.typesupport_identifier = INTROSPECTION_C.as_ptr();
        assert_eq!(of_service(&support).unwrap_err().problem(), &PlanProblem::Table("no table"));
        assert_eq!(of_service(ptr::null()).unwrap_err().problem(), &PlanProblem::Null);
        assert_eq!(of_message(ptr::null()).unwrap_err().problem(), &PlanProblem::Null);
        assert_eq!((service_type_hash(&support), type_hash(point())), (None, None));
    }
}

#[cfg(feature = "jazzy")]
#[test]
fn a_type_hash_is_told_as_text() {
    use rmw_tsuji::ffi::rosidl::rosidl_type_hash_t;

    static HASH: rosidl_type_hash_t = rosidl_type_hash_t { version: 1, value: [0x0a; 32] };
    unsafe extern "C" fn hash(
        _: *const rosidl_message_type_support_t,
    ) -> *const rosidl_type_hash_t {
        &HASH
    }
    let mut support = *point();
    support.get_type_hash_func = Some(hash);
    // SAFETY: as above.
    let text = unsafe { type_hash(&support) };
    assert_eq!(text.as_deref(), Some(format!("RIHS01_{}", "0a".repeat(32)).as_str()));
}

/// What a C compiler says of ROS 2's headers on a 64-bit machine.
#[cfg(target_pointer_width = "64")]
#[test]
fn layouts_are_those_of_the_distribution() {
    let jazzy = cfg!(feature = "jazzy");
    let sizes = [
        size_of::<rosidl_message_type_support_t>(),
        size_of::<rosidl_service_type_support_t>(),
        size_of::<ServiceMembers>(),
        size_of::<MessageMembers>(),
        size_of::<MessageMember>(),
    ];
    assert_eq!(sizes, if jazzy { [48, 88, 40, 64, 112] } else { [24, 24, 32, 56, 112] });
    let table = [offset_of!(MessageMembers, members_), offset_of!(MessageMembers, fini_function)];
    assert_eq!(table, if jazzy { [40, 56] } else { [32, 48] });
    let member = [
        offset_of!(MessageMember, is_array_),
        offset_of!(MessageMember, array_size_),
        offset_of!(MessageMember, offset_),
        offset_of!(MessageMember, resize_function),
    ];
    assert_eq!(member, if jazzy { [33, 40, 52, 104] } else { [32, 40, 52, 104] });
    #[cfg(feature = "jazzy")]
    {
        assert_eq!(offset_of!(rosidl_message_type_support_t, get_type_hash_func), 24);
        assert_eq!(offset_of!(rosidl_service_type_support_t, get_type_hash_func), 64);
    }
}

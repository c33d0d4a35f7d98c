//! The functions of Cyclone DDS that are called, and of the shim over it (`shim/shim.h`).
//!
//! Entities are numbers above 0; results below 0 are errors.

use std::ffi::{c_char, c_int, c_void};

/// An entity of Cyclone DDS.
pub(crate) type Entity = i32;

/// A QoS under construction, or of somebody else.
#[repr(C)]
pub(crate) struct Qos {
    _opaque: [u8; 0],
}

/// `struct tcy_taken`.
#[repr(C)]
pub(crate) struct Taken {
    pub(crate) sample: *mut c_void,
    pub(crate) data: *const u8,
    pub(crate) len: usize,
    pub(crate) writer: [u8; 16],
    pub(crate) number: i64,
    pub(crate) source_ns: i64,
}

/// `struct tcy_ear`.
pub(crate) use tsuji_engine::foreign::Ear;

/// `struct tcy_found`.
#[repr(C)]
pub(crate) struct Found {
    pub(crate) guid: [u8; 16],
    pub(crate) is_alive: bool,
    pub(crate) topic: *mut c_char,
    pub(crate) type_name: *mut c_char,
    pub(crate) qos: *mut Qos,
}

unsafe extern "C" {
    pub(crate) fn tcy_create_topic(
        participant: Entity,
        name: *const c_char,
        type_name: *const c_char,
        qos: *const Qos,
    ) -> Entity;
    pub(crate) fn tcy_write(
        writer: Entity,
        data: *const u8,
        len: usize,
        source_ns: i64,
        owner: *mut c_void,
        release: unsafe extern "C" fn(*mut c_void),
    ) -> i32;
    pub(crate) fn tcy_take(reader: Entity, taken: *mut Taken) -> i32;
    pub(crate) fn tcy_sample_free(sample: *mut c_void);
    pub(crate) fn tcy_log_to(log: unsafe extern "C" fn(bool, *const c_char, usize));
    pub(crate) fn tcy_listen_reader(reader: Entity, ear: *const Ear) -> i32;
    pub(crate) fn tcy_listen_writer(writer: Entity, ear: *const Ear) -> i32;
    pub(crate) fn tcy_listen_no_more(entity: Entity);
    pub(crate) fn tcy_each_match(
        entity: Entity,
        is_writer: bool,
        arg: *mut c_void,
        each: unsafe extern "C" fn(*mut c_void, *const u8),
    ) -> i32;
    pub(crate) fn tcy_watch(participant: Entity, watched: c_int) -> Entity;
    pub(crate) fn tcy_take_found(reader: Entity, watched: c_int, found: *mut Found) -> i32;
    pub(crate) fn tcy_found_free(found: *mut Found);

    pub(crate) fn dds_create_domain(domain: u32, config: *const c_char) -> Entity;
    pub(crate) fn dds_create_participant(
        domain: u32,
        qos: *const Qos,
        listener: *const c_void,
    ) -> Entity;
    pub(crate) fn dds_create_writer(
        participant: Entity,
        topic: Entity,
        qos: *const Qos,
        listener: *const c_void,
    ) -> Entity;
    pub(crate) fn dds_create_reader(
        participant: Entity,
        topic: Entity,
        qos: *const Qos,
        listener: *const c_void,
    ) -> Entity;
    pub(crate) fn dds_delete(entity: Entity) -> i32;
    pub(crate) fn dds_get_guid(entity: Entity, guid: *mut [u8; 16]) -> i32;
    pub(crate) fn dds_wait_for_acks(writer: Entity, timeout: i64) -> i32;
    pub(crate) fn dds_strretcode(result: i32) -> *const c_char;

    pub(crate) fn dds_free(memory: *mut c_void);

    pub(crate) fn dds_create_qos() -> *mut Qos;
    pub(crate) fn dds_delete_qos(qos: *mut Qos);
    pub(crate) fn dds_qset_userdata(qos: *mut Qos, value: *const c_void, len: usize);
    pub(crate) fn dds_qset_durability(qos: *mut Qos, kind: c_int);
    pub(crate) fn dds_qset_history(qos: *mut Qos, kind: c_int, depth: i32);
    pub(crate) fn dds_qset_durability_service(
        qos: *mut Qos,
        cleanup_delay: i64,
        history_kind: c_int,
        history_depth: i32,
        samples_max: i32,
        instances_max: i32,
        samples_per_instance_max: i32,
    );
    pub(crate) fn dds_qset_reliability(qos: *mut Qos, kind: c_int, blocking_max: i64);
    pub(crate) fn dds_qset_deadline(qos: *mut Qos, deadline: i64);
    pub(crate) fn dds_qset_lifespan(qos: *mut Qos, lifespan: i64);
    pub(crate) fn dds_qset_liveliness(qos: *mut Qos, kind: c_int, lease: i64);
    pub(crate) fn dds_qset_ignorelocal(qos: *mut Qos, kind: c_int);
    pub(crate) fn dds_qset_data_representation(qos: *mut Qos, count: u32, values: *const i16);

    // These answer whether the QoS says anything of it.
    pub(crate) fn dds_qget_userdata(
        qos: *const Qos,
        value: *mut *mut c_void,
        len: *mut usize,
    ) -> bool;
    pub(crate) fn dds_qget_prop(
        qos: *const Qos,
        name: *const c_char,
        value: *mut *mut c_char,
    ) -> bool;
    pub(crate) fn dds_qget_durability(qos: *const Qos, kind: *mut c_int) -> bool;
    pub(crate) fn dds_qget_history(qos: *const Qos, kind: *mut c_int, depth: *mut i32) -> bool;
    pub(crate) fn dds_qget_reliability(
        qos: *const Qos,
        kind: *mut c_int,
        blocking_max: *mut i64,
    ) -> bool;
    pub(crate) fn dds_qget_deadline(qos: *const Qos, deadline: *mut i64) -> bool;
    pub(crate) fn dds_qget_lifespan(qos: *const Qos, lifespan: *mut i64) -> bool;
    pub(crate) fn dds_qget_liveliness(qos: *const Qos, kind: *mut c_int, lease: *mut i64) -> bool;
}

/// `enum tcy_watched`.
pub(crate) const PARTICIPANTS: c_int = 0;
pub(crate) const WRITERS: c_int = 1;
pub(crate) const READERS: c_int = 2;

// Only for the engine without tsuji.
#[cfg(feature = "raw")]
unsafe extern "C" {
    pub(crate) fn dds_get_participant(entity: Entity) -> Entity;
    pub(crate) fn dds_create_waitset(owner: Entity) -> Entity;
    pub(crate) fn dds_create_readcondition(reader: Entity, mask: u32) -> Entity;
    pub(crate) fn dds_waitset_attach(wait_set: Entity, entity: Entity, mark: isize) -> i32;
    pub(crate) fn dds_waitset_wait(
        wait_set: Entity,
        marks: *mut isize,
        marks_max: usize,
        timeout: i64,
    ) -> i32;
}

/// `DDS_ANY_STATE`.
#[cfg(feature = "raw")]
pub(crate) const ANY_STATE: u32 = 127;
/// `DDS_INFINITY`.
pub(crate) const INFINITE: i64 = i64::MAX;
/// `dds_durability_kind_t`.
pub(crate) const VOLATILE: c_int = 0;
pub(crate) const TRANSIENT_LOCAL: c_int = 1;
pub(crate) const TRANSIENT: c_int = 2;
pub(crate) const PERSISTENT: c_int = 3;
/// `dds_history_kind_t`.
pub(crate) const KEEP_LAST: c_int = 0;
pub(crate) const KEEP_ALL: c_int = 1;
/// `dds_reliability_kind_t`.
pub(crate) const BEST_EFFORT: c_int = 0;
pub(crate) const RELIABLE: c_int = 1;
/// `dds_liveliness_kind_t`.
pub(crate) const AUTOMATIC: c_int = 0;
pub(crate) const MANUAL_BY_PARTICIPANT: c_int = 1;
pub(crate) const MANUAL_BY_TOPIC: c_int = 2;
/// `dds_ignorelocal_kind_t`: nothing of the same participant.
pub(crate) const IGNORE_PARTICIPANT: c_int = 1;
/// `DDS_LENGTH_UNLIMITED`.
pub(crate) const UNLIMITED: i32 = -1;
/// `DDS_DATA_REPRESENTATION_XCDR1`.
pub(crate) const XCDR1: i16 = 0;
/// `DDS_RETCODE_TIMEOUT`.
pub(crate) const TIMEOUT: i32 = -10;
/// `DDS_RETCODE_OUT_OF_RESOURCES`.
pub(crate) const OUT_OF_RESOURCES: i32 = -5;

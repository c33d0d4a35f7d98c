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

/// `enum tsuji_treatment`.
pub(crate) const WAIT: c_int = 0;
pub(crate) const PASS_OVER: c_int = 1;
pub(crate) const MEET: c_int = 2;

/// `struct tsuji_peers`.
#[repr(C)]
pub(crate) struct PeerProcesses {
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
    pub(crate) relates: bool,
    pub(crate) related: Related,
}

/// `struct tcy_related`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Related {
    pub(crate) name: [u8; 16],
    pub(crate) number: i64,
}

/// `struct tcy_relation`.
#[repr(C)]
pub(crate) struct Relation {
    pub(crate) related: *const Related,
    pub(crate) header: *const [u8; 16],
}

/// `struct tcy_ear`.
pub(crate) use tsuji_engine::foreign::Ear;

/// `struct tcy_found`.
#[repr(C)]
pub(crate) struct Found {
    pub(crate) guid: [u8; 16],
    pub(crate) vendor: [u8; 2],
    pub(crate) is_alive: bool,
    pub(crate) topic: *mut c_char,
    pub(crate) type_name: *mut c_char,
    pub(crate) qos: *mut Qos,
}

/// `struct tsuji_address`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Address {
    pub(crate) bytes: [u8; 16],
    pub(crate) port: u16,
    pub(crate) is_v6: bool,
}

unsafe extern "C" {
    pub(crate) fn tsuji_addresses(
        participant: Entity,
        is_sent: bool,
        to: *mut Address,
        room: usize,
    ) -> usize;
    pub(crate) fn tcy_create_topic(
        participant: Entity,
        name: *const c_char,
        type_name: *const c_char,
        is_keyed: bool,
        qos: *const Qos,
    ) -> Entity;
    pub(crate) fn tcy_write(
        writer: Entity,
        data: *const u8,
        len: usize,
        source_ns: i64,
        relation: *const Relation,
        owner: *mut c_void,
        release: unsafe extern "C" fn(*mut c_void),
    ) -> i32;
    pub(crate) fn tcy_take(reader: Entity, taken: *mut Taken) -> i32;
    pub(crate) fn tcy_sample_free(sample: *mut c_void);
    pub(crate) fn tcy_log_to(log: unsafe extern "C" fn(bool, *const c_char, usize));
    pub(crate) fn tcy_listen_reader(reader: Entity, ear: *const Ear) -> i32;
    pub(crate) fn tcy_listen_writer(writer: Entity, ear: *const Ear) -> i32;
    pub(crate) fn tcy_is_silent(reader: Entity, writer: *const u8) -> i32;
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

    pub(crate) fn tsuji_peers_new(claim: *const c_char, key: *const c_char) -> *mut PeerProcesses;
    pub(crate) fn tsuji_peers_for_next(all: *mut PeerProcesses);
    pub(crate) fn tsuji_peers_free(all: *mut PeerProcesses);
    pub(crate) fn tsuji_peers_treat(
        all: *mut PeerProcesses,
        process: *const c_char,
        treatment: c_int,
    );

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
    pub(crate) fn dds_qset_prop(qos: *mut Qos, name: *const c_char, value: *const c_char);
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
    pub(crate) fn dds_assert_liveliness(entity: Entity) -> i32;
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

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        fn tcy_read_related(
            qos: *const u8,
            len: usize,
            is_little: bool,
            is_custom_known: bool,
            related: *mut Related,
        );
        fn tcy_put_related(related: *const Related, to: *mut [u8; 24]);
    }

    fn read(qos: &[u8], is_little: bool, is_custom_known: bool) -> Related {
        let mut related = Related { name: [1; 16], number: 1 };
        // SAFETY: so many bytes are there, and the answer is written.
        unsafe {
            tcy_read_related(qos.as_ptr(), qos.len(), is_little, is_custom_known, &raw mut related);
        }
        related
    }

    /// A parameter in either byte order, with a value of so many bytes of an identity.
    fn parameter(pid: u16, len: usize, is_little: bool) -> Vec<u8> {
        let numbers = match is_little {
            true => [3u32.to_le_bytes(), 4u32.to_le_bytes()],
            false => [3u32.to_be_bytes(), 4u32.to_be_bytes()],
        };
        let value = [&[7; 16][..], &numbers.concat(), &[9; 8]].concat();
        let head = match is_little {
            true => [pid.to_le_bytes(), (len as u16).to_le_bytes()],
            false => [pid.to_be_bytes(), (len as u16).to_be_bytes()],
        };
        [&head.concat()[..], &value[..len]].concat()
    }

    #[test]
    fn what_a_sample_relates_to_is_read_in_either_order() {
        let said = Related { name: [7; 16], number: (3 << 32) + 4 };
        let none = Related::default();
        let [standard, custom, other] = [0x83, 0x800f, 0x71];
        for is_little in [true, false] {
            let check = |parameters: &[(u16, usize)], is_custom_known, expect| {
                let parts = parameters.iter().map(|(pid, len)| parameter(*pid, *len, is_little));
                let mut qos = parts.collect::<Vec<_>>().concat();
                assert_eq!(read(&qos, is_little, is_custom_known), expect, "{parameters:?}");
                // Whatever stands behind the end is not read.
                qos.extend(parameter(1, 0, is_little));
                assert_eq!(read(&qos, is_little, is_custom_known), expect, "{parameters:?}");
                qos.extend(parameter(standard, 24, is_little));
                assert_eq!(read(&qos, is_little, is_custom_known), expect, "{parameters:?}");
            };
            check(&[], true, none);
            check(&[(standard, 24)], false, said);
            check(&[(standard, 28)], false, said);
            check(&[(other, 4), (other, 0), (standard, 24), (other, 4)], true, said);
            // Of the vendors alone whose number that is.
            check(&[(custom, 24)], true, said);
            check(&[(custom, 24)], false, none);
            check(&[(custom, 24), (standard, 24)], false, said);
            for len in 0..24 {
                check(&[(standard, len)], true, none);
                check(&[(standard, len), (custom, 24)], true, said);
            }
        }
    }

    #[test]
    fn what_is_cut_off_says_nothing() {
        let whole = parameter(0x83, 24, true);
        for len in 0..whole.len() {
            assert_eq!(read(&whole[..len], true, true), Related::default(), "{len} bytes");
        }
        // A length beyond the end.
        let mut long = whole;
        long[2..4].copy_from_slice(&u16::MAX.to_le_bytes());
        assert_eq!(read(&long, true, true), Related::default());
    }

    #[test]
    fn what_is_written_is_read() {
        let check = |number, expect| {
            let related = Related { name: [7; 16], number };
            let mut value = [0; 24];
            // SAFETY: both are there during the call.
            unsafe { tcy_put_related(&raw const related, &raw mut value) };
            let is_little = cfg!(target_endian = "little");
            let mut qos = parameter(0x83, 24, is_little);
            qos[4..].copy_from_slice(&value);
            assert_eq!(read(&qos, is_little, false), Related { number: expect, ..related });
        };
        check((3 << 32) + 4, (3 << 32) + 4);
        check(i64::MAX, i64::MAX);
        // None, as RTPS writes it.
        check(0, -1 << 32);
        check(-5, -1 << 32);
    }
}

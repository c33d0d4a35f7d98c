//! What `cpp/include/tsuji_transport.h` declares, which says what it means. `tests/abi.rs` compares the
//! two.

use std::ffi::{c_char, c_void};

pub const ABI: u32 = 1;

pub const BUSY: i32 = -1;
pub const CLOSED: i32 = -2;
pub const TOO_LARGE: i32 = -3;
pub const UNSUPPORTED: i32 = -4;
pub const INVALID: i32 = -5;
pub const EXHAUSTED: i32 = -6;
pub const UNEXPECTED: i32 = -7;

pub const SCOPE_LOCAL: u32 = 1;
pub const SCOPE_REMOTE: u32 = 2;

pub const PEERS_CYCLONEDDS: u32 = 1;
pub const PEERS_FASTDDS: u32 = 2;
pub const PEERS_ZENOH: u32 = 4;
pub const PEERS_OTHER: u32 = 8;
/// Nodes of ROS 1 are met.
pub const PEERS_ROS1: u32 = 16;

pub const RELATES: u32 = 1;

pub const NAME_BYTES: usize = 16;
pub const PROBLEM_BYTES: usize = 512;
pub const INFINITE: i64 = i64::MAX;

pub const BEST_EFFORT: u32 = 0;
pub const RELIABLE: u32 = 1;

pub const VOLATILE: u32 = 0;
pub const TRANSIENT_LOCAL: u32 = 1;
pub const TRANSIENT: u32 = 2;
pub const PERSISTENT: u32 = 3;

pub const KEEP_LAST: u32 = 0;
pub const KEEP_ALL: u32 = 1;
pub const HISTORY_UNKNOWN: u32 = 2;

pub const AUTOMATIC: u32 = 0;
pub const MANUAL_BY_PARTICIPANT: u32 = 1;
pub const MANUAL_BY_TOPIC: u32 = 2;

pub const FOUND_GONE: u32 = 0;
pub const FOUND_PARTICIPANT: u32 = 1;
pub const FOUND_WRITER: u32 = 2;
pub const FOUND_READER: u32 = 3;

/// `struct tsuji_qos`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Qos {
    pub reliability: u32,
    pub durability: u32,
    pub history: u32,
    pub depth: u32,
    pub keep_all_max: u32,
    pub liveliness: u32,
    pub deadline_ns: i64,
    pub lifespan_ns: i64,
    pub lease_ns: i64,
}

/// `struct tsuji_endpoint`.
#[derive(Debug)]
#[repr(C)]
pub struct Endpoint {
    pub size: usize,
    pub topic: *const c_char,
    pub type_name: *const c_char,
    pub user_data: *const u8,
    pub user_data_size: usize,
    pub qos: Qos,
}

/// `struct tsuji_setting`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Setting {
    pub key: *const c_char,
    pub value: *const c_char,
}

/// `struct tsuji_join`.
#[derive(Debug)]
#[repr(C)]
pub struct Join {
    pub size: usize,
    pub domain: u32,
    pub no_multicast: u32,
    pub host_only: u32,
    pub user_data: *const u8,
    pub user_data_size: usize,
    pub interfaces: *const *const c_char,
    pub interfaces_count: usize,
    pub hosts: *const *const c_char,
    pub hosts_count: usize,
    pub settings: *const Setting,
    pub settings_count: usize,
    pub log: unsafe extern "C" fn(u32, *const c_char),
}

/// `struct tsuji_ear`.
pub use tsuji_engine::foreign::Ear;

/// `struct tsuji_related`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Related {
    pub name: [u8; NAME_BYTES],
    pub number: i64,
}

/// `struct tsuji_taken`.
#[derive(Debug)]
#[repr(C)]
pub struct Taken {
    pub sample: *mut c_void,
    pub data: *const u8,
    pub data_size: usize,
    pub writer: [u8; NAME_BYTES],
    pub number: i64,
    pub source_ns: i64,
    pub related: Related,
}

/// `struct tsuji_found`.
#[derive(Debug)]
#[repr(C)]
pub struct Found {
    pub kind: u32,
    pub name: [u8; NAME_BYTES],
    pub vendor: [u8; 2],
    pub topic: *const c_char,
    pub type_name: *const c_char,
    pub user_data: *const u8,
    pub user_data_size: usize,
    pub host: *const c_char,
    pub program: *const c_char,
    pub pid: u32,
    pub qos: Qos,
    pub memory: *mut c_void,
}

/// The objects of a plug-in, of which nothing is known here.
macro_rules! opaque {
    ($($name:ident)*) => {$(
        #[derive(Debug)]
        #[repr(C)]
        pub struct $name {
            _opaque: [u8; 0],
        }
    )*};
}

opaque!(Participant Writer Reader Watch);

pub use tsuji_engine::foreign::Each;
pub type Release = unsafe extern "C" fn(*mut c_void);

/// `struct tsuji_transport`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Table {
    pub abi: u32,
    pub size: u32,
    pub name: *const c_char,
    pub version: *const c_char,
    pub scopes: u32,
    pub peers: u32,
    pub features: u32,
    pub sample_bytes_max: u64,
    pub join: unsafe extern "C" fn(*const Join, *mut *mut Participant, *mut c_char) -> i32,
    pub leave: unsafe extern "C" fn(*mut Participant),
    pub participant_name: unsafe extern "C" fn(*const Participant, *mut u8),
    pub open_writer: unsafe extern "C" fn(
        *mut Participant,
        *const Endpoint,
        *mut *mut Writer,
        *mut c_char,
    ) -> i32,
    pub close_writer: unsafe extern "C" fn(*mut Writer),
    pub writer_name: unsafe extern "C" fn(*const Writer, *mut u8),
    pub listen_writer: unsafe extern "C" fn(*mut Writer, *const Ear) -> i32,
    pub write: unsafe extern "C" fn(
        *mut Writer,
        *const u8,
        usize,
        i64,
        *const Related,
        *mut c_void,
        Release,
    ) -> i32,
    pub acknowledged: unsafe extern "C" fn(*mut Writer, i64) -> i32,
    pub writer_matches: unsafe extern "C" fn(*const Writer, *mut c_void, Each) -> i32,
    pub open_reader: unsafe extern "C" fn(
        *mut Participant,
        *const Endpoint,
        *mut *mut Reader,
        *mut c_char,
    ) -> i32,
    pub close_reader: unsafe extern "C" fn(*mut Reader),
    pub reader_name: unsafe extern "C" fn(*const Reader, *mut u8),
    pub listen_reader: unsafe extern "C" fn(*mut Reader, *const Ear) -> i32,
    pub take: unsafe extern "C" fn(*mut Reader, *mut Taken) -> i32,
    pub sample_free: unsafe extern "C" fn(*mut c_void),
    pub reader_matches: unsafe extern "C" fn(*const Reader, *mut c_void, Each) -> i32,
    pub open_watch:
        unsafe extern "C" fn(*mut Participant, *const Ear, *mut *mut Watch, *mut c_char) -> i32,
    pub close_watch: unsafe extern "C" fn(*mut Watch),
    pub found: unsafe extern "C" fn(*mut Watch, *mut Found) -> i32,
    pub found_free: unsafe extern "C" fn(*mut Found),
}

// SAFETY: a table and what it points to stay and do not change, as the header demands, and its functions
// may be called from any thread.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

/// Where the functions begin in a table, all of it pointers from there on.
pub const FUNCTIONS_AT: usize = std::mem::offset_of!(Table, join);

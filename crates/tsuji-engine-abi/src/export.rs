//! The functions of the table over the traits of an engine. What panics is caught, and nothing unwinds into
//! whoever calls.

use std::any::Any;
use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use tsuji_core::{Durability, History, Liveliness, Peers, Qos, Reliability, Scopes};
use tsuji_engine::foreign::{self, Each, Ear};
use tsuji_engine::{
    EndpointSpec, EngineReader, EngineWriter, Guid, Listener, Participant, Peep, Related, Tap,
    Watch,
};
use tsuji_transport::wire::{
    Found, FoundEndpoint, FoundParticipant, WireDurability, WireLiveliness, WireQos,
    from_nanoseconds, to_nanoseconds,
};
use tsuji_transport::{Bytes, Error, ErrorKind, Result};

use crate::abi;
use crate::log;

/// An engine as a shared library, which [`export!`](crate::export) makes of it.
pub trait Library: 'static {
    /// As in policies, and in the file's name.
    const NAME: &'static CStr;
    /// Of itself and of its engine, for people.
    const VERSION: &'static CStr;
    /// How far it carries.
    const SCOPES: Scopes;
    /// Who is met besides tsuji.
    const PEERS: Peers;
    /// The largest sample.
    const SAMPLE_BYTES_MAX: u64;
    /// Its samples say what they relate to.
    const RELATES: bool = false;

    /// Joins. May block as long as it takes to resolve names of hosts.
    fn join(asked: &Asked) -> Result<Box<dyn Participant>>;
}

/// What is asked for with joining, as `struct tsuji_join` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The domain, 0 to 232.
    pub domain: u32,
    /// Nobody is looked for by multicast.
    pub no_multicast: bool,
    /// Nobody of another host is met.
    pub host_only: bool,
    /// What is announced of the participant.
    pub user_data: Vec<u8>,
    /// The names of interfaces to use; none leaves the choice to the engine.
    pub interfaces: Vec<String>,
    /// Names or addresses of hosts to look for besides.
    pub hosts: Vec<String>,
    /// Settings of the policy, by key.
    pub settings: Vec<(String, String)>,
}

/// Makes the function that the shared library exports, over a [`Library`].
#[macro_export]
macro_rules! export {
    ($library:ty) => {
        /// Answers what this transport is, and its functions.
        #[unsafe(no_mangle)]
        pub extern "C" fn tsuji_transport() -> *const $crate::abi::Table {
            static TABLE: $crate::abi::Table = $crate::table::<$library>();
            &raw const TABLE
        }
    };
}

/// What [`export!`](crate::export) answers.
pub const fn table<L: Library>() -> abi::Table {
    abi::Table {
        abi: abi::ABI,
        size: size_of::<abi::Table>() as u32,
        name: L::NAME.as_ptr(),
        version: L::VERSION.as_ptr(),
        scopes: bits([
            (L::SCOPES.local, abi::SCOPE_LOCAL),
            (L::SCOPES.remote, abi::SCOPE_REMOTE),
            (false, 0),
            (false, 0),
            (false, 0),
        ]),
        peers: bits([
            (L::PEERS.cyclone, abi::PEERS_CYCLONEDDS),
            (L::PEERS.fast, abi::PEERS_FASTDDS),
            (L::PEERS.zenoh, abi::PEERS_ZENOH),
            (L::PEERS.other, abi::PEERS_OTHER),
            (L::PEERS.ros1, abi::PEERS_ROS1),
        ]),
        sample_bytes_max: L::SAMPLE_BYTES_MAX,
        features: if L::RELATES { abi::RELATES } else { 0 },
        join: join::<L>,
        leave,
        participant_name,
        open_writer,
        close_writer,
        writer_name,
        listen_writer,
        write,
        acknowledged,
        writer_matches,
        open_reader,
        close_reader,
        reader_name,
        listen_reader,
        take,
        sample_free,
        reader_matches,
        open_watch,
        close_watch,
        found,
        found_free,
    }
}

const fn bits(of: [(bool, u32); 5]) -> u32 {
    let (mut all, mut at) = (0, 0);
    while at < of.len() {
        if of[at].0 {
            all |= of[at].1;
        }
        at += 1;
    }
    all
}

/// What stands behind `struct tsuji_participant`.
struct HeldParticipant(Box<dyn Participant>);

/// What stands behind `struct tsuji_writer`.
struct HeldWriter {
    /// Taken out to be closed, while callbacks may still look at the rest.
    writer: RwLock<Option<Box<dyn EngineWriter>>>,
    guid: Guid,
    peep: Arc<dyn Peep>,
    ear: OnceLock<Arc<Heard>>,
}

/// What stands behind `struct tsuji_reader`.
struct HeldReader {
    /// As with writers.
    reader: Mutex<Option<Box<dyn EngineReader>>>,
    guid: Guid,
    tap: Arc<dyn Tap>,
    ear: OnceLock<Arc<Heard>>,
}

/// What stands behind `struct tsuji_watch`.
struct HeldWatch {
    /// As with writers.
    watch: Mutex<Option<Box<dyn Watch>>>,
    /// What was found and not taken.
    found: Mutex<VecDeque<Found>>,
    ear: Arc<Heard>,
}

/// What stands behind what was found.
#[derive(Default)]
struct HeldFound {
    texts: Vec<CString>,
    user_data: Vec<u8>,
}

/// A listener on the other side, until it is revoked.
struct Heard(RwLock<Option<NonNull<Ear>>>);

// SAFETY: its functions may be called from any thread, as the header has it.
unsafe impl Send for Heard {}
// SAFETY: as above.
unsafe impl Sync for Heard {}

impl Heard {
    fn new(ear: *const Ear) -> Arc<Self> {
        Arc::new(Self(RwLock::new(NonNull::new(ear.cast_mut()))))
    }

    fn with(&self, call: impl FnOnce(&Ear)) {
        let ear = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(ear) = *ear {
            // SAFETY: the ear stays until the object is closed, by which time it is revoked.
            call(unsafe { ear.as_ref() });
        }
    }
}

impl Listener for Heard {
    fn data_available(&self) {
        // SAFETY: it is called with what came with it.
        self.with(|ear| unsafe { (ear.on_data)(ear.arg) });
    }

    fn matched(&self) {
        // SAFETY: as above.
        self.with(|ear| unsafe { (ear.on_match)(ear.arg) });
    }
}

/// Revokes a listener when dropped, once callbacks that still run have ended.
struct Revoke<'a>(&'a Heard);

impl Drop for Revoke<'_> {
    fn drop(&mut self) {
        *self.0.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Drops an object. An engine that panics there may still have its listener.
fn close<T>(object: T, ear: Option<&Arc<Heard>>) {
    let _revoke = ear.map(|it| Revoke(it));
    drop(object);
}

unsafe extern "C" fn join<L: Library>(
    asked: *const abi::Join,
    place: *mut *mut abi::Participant,
    problem: *mut c_char,
) -> i32 {
    answered(problem, || {
        // SAFETY: it and what it points to is there during the call, as the header has it.
        let asked = unsafe {
            // Whose structure is another has its log elsewhere.
            let read = read_asked(asked)?;
            log::tell_by((*asked).log);
            read
        };
        let held = HeldParticipant(L::join(&asked)?);
        // SAFETY: the place is the caller's.
        unsafe { place.write(given(held)) };
        Ok(0)
    })
}

unsafe extern "C" fn leave(participant: *mut abi::Participant) {
    // SAFETY: `join` made it, and nothing of it is called any more.
    done(|| drop(unsafe { owned::<HeldParticipant, _>(participant) }));
}

unsafe extern "C" fn participant_name(participant: *const abi::Participant, name: *mut u8) {
    // SAFETY: `join` made it, and a name fits.
    done(|| unsafe {
        name.cast::<Guid>().write(held::<HeldParticipant, _>(participant).0.guid());
    });
}

unsafe extern "C" fn open_writer(
    participant: *mut abi::Participant,
    endpoint: *const abi::Endpoint,
    place: *mut *mut abi::Writer,
    problem: *mut c_char,
) -> i32 {
    answered(problem, || {
        // SAFETY: `join` made it.
        let participant = unsafe { &held::<HeldParticipant, _>(participant).0 };
        // SAFETY: it and what it points to is there during the call.
        let writer = unsafe { with_spec(endpoint, |spec| participant.writer(spec)) }?;
        let (guid, peep) = (writer.guid(), writer.peep());
        let writer = RwLock::new(Some(writer));
        let held = HeldWriter { writer, guid, peep, ear: OnceLock::new() };
        // SAFETY: the place is the caller's.
        unsafe { place.write(given(held)) };
        Ok(0)
    })
}

unsafe extern "C" fn close_writer(writer: *mut abi::Writer) {
    done(|| {
        // SAFETY: `open_writer` made it. Callbacks that still run may look at it until it is dropped.
        let held = unsafe { held::<HeldWriter, _>(writer) };
        let gone = held.writer.write().unwrap_or_else(PoisonError::into_inner).take();
        close(gone, held.ear.get());
        // SAFETY: no callback runs any more, and nothing of it is called.
        drop(unsafe { owned::<HeldWriter, _>(writer) });
    });
}

unsafe extern "C" fn writer_name(writer: *const abi::Writer, name: *mut u8) {
    // SAFETY: `open_writer` made it, and a name fits.
    done(|| unsafe { name.cast::<Guid>().write(held::<HeldWriter, _>(writer).guid) });
}

unsafe extern "C" fn listen_writer(writer: *mut abi::Writer, ear: *const Ear) -> i32 {
    answered(std::ptr::null_mut(), || {
        // SAFETY: `open_writer` made it.
        let held = unsafe { held::<HeldWriter, _>(writer) };
        let mut writer = held.writer.write().unwrap_or_else(PoisonError::into_inner);
        let writer = writer.as_mut().ok_or_else(closed)?;
        writer.listen(Arc::clone(held.ear.get_or_init(|| Heard::new(ear))) as Arc<dyn Listener>)?;
        Ok(0)
    })
}

unsafe extern "C" fn write(
    writer: *mut abi::Writer,
    data: *const u8,
    size: usize,
    source_ns: i64,
    related: *const abi::Related,
    owner: *mut c_void,
    release: abi::Release,
) -> i32 {
    answered(std::ptr::null_mut(), || {
        let is_there = NonNull::new(data.cast_mut());
        let (start, len) = is_there.map_or((NonNull::dangling(), 0), |start| (start, size));
        // SAFETY: the bytes stay as they are until they are released, which this does once.
        let bytes = unsafe { foreign::bytes(start, len, owner, release) };
        // SAFETY: `open_writer` made it.
        let held = unsafe { held::<HeldWriter, _>(writer) };
        let writer = held.writer.read().unwrap_or_else(PoisonError::into_inner);
        let writer = writer.as_ref().ok_or_else(closed)?;
        // SAFETY: it is null, or there during the call.
        match unsafe { related.as_ref() } {
            None => writer.write(&bytes, source_ns)?,
            Some(abi::Related { name, number }) => {
                let related = Related { name: *name, number: *number };
                writer.write_related(&bytes, source_ns, related)?;
            }
        }
        Ok(0)
    })
}

unsafe extern "C" fn acknowledged(writer: *mut abi::Writer, timeout_ns: i64) -> i32 {
    answered(std::ptr::null_mut(), || {
        // SAFETY: `open_writer` made it.
        let held = unsafe { held::<HeldWriter, _>(writer) };
        let writer = held.writer.read().unwrap_or_else(PoisonError::into_inner);
        let writer = writer.as_ref().ok_or_else(closed)?;
        let timeout = u64::try_from(timeout_ns).unwrap_or(0);
        if 0 < timeout && !writer.is_acknowledged() {
            writer.wait_for_acknowledgements(Duration::from_nanos(timeout));
        }
        Ok(writer.is_acknowledged().into())
    })
}

unsafe extern "C" fn writer_matches(
    writer: *const abi::Writer,
    arg: *mut c_void,
    each: Each,
) -> i32 {
    answered(std::ptr::null_mut(), || {
        // SAFETY: `open_writer` made it.
        let all = unsafe { held::<HeldWriter, _>(writer) }.peep.matches();
        // SAFETY: it is called with what came with it, during the call.
        all.iter().for_each(|name| unsafe { each(arg, name.as_ptr()) });
        Ok(0)
    })
}

unsafe extern "C" fn open_reader(
    participant: *mut abi::Participant,
    endpoint: *const abi::Endpoint,
    place: *mut *mut abi::Reader,
    problem: *mut c_char,
) -> i32 {
    answered(problem, || {
        // SAFETY: `join` made it.
        let participant = unsafe { &held::<HeldParticipant, _>(participant).0 };
        // SAFETY: it and what it points to is there during the call.
        let reader = unsafe { with_spec(endpoint, |spec| participant.reader(spec)) }?;
        let (guid, tap) = (reader.guid(), reader.tap());
        let reader = Mutex::new(Some(reader));
        let held = HeldReader { reader, guid, tap, ear: OnceLock::new() };
        // SAFETY: the place is the caller's.
        unsafe { place.write(given(held)) };
        Ok(0)
    })
}

unsafe extern "C" fn close_reader(reader: *mut abi::Reader) {
    done(|| {
        // SAFETY: as with writers.
        let held = unsafe { held::<HeldReader, _>(reader) };
        let gone = lock(&held.reader).take();
        close(gone, held.ear.get());
        // SAFETY: as with writers.
        drop(unsafe { owned::<HeldReader, _>(reader) });
    });
}

unsafe extern "C" fn reader_name(reader: *const abi::Reader, name: *mut u8) {
    // SAFETY: `open_reader` made it, and a name fits.
    done(|| unsafe { name.cast::<Guid>().write(held::<HeldReader, _>(reader).guid) });
}

unsafe extern "C" fn listen_reader(reader: *mut abi::Reader, ear: *const Ear) -> i32 {
    answered(std::ptr::null_mut(), || {
        // SAFETY: `open_reader` made it.
        let held = unsafe { held::<HeldReader, _>(reader) };
        let mut reader = lock(&held.reader);
        let reader = reader.as_mut().ok_or_else(closed)?;
        reader.listen(Arc::clone(held.ear.get_or_init(|| Heard::new(ear))) as Arc<dyn Listener>)?;
        Ok(0)
    })
}

unsafe extern "C" fn take(reader: *mut abi::Reader, place: *mut abi::Taken) -> i32 {
    answered(std::ptr::null_mut(), || {
        // SAFETY: `open_reader` made it.
        let Some(arrived) = unsafe { held::<HeldReader, _>(reader) }.tap.take()? else {
            return Ok(0);
        };
        let (data, data_size) = (arrived.bytes.as_ptr(), arrived.bytes.len());
        let related = arrived.related.unwrap_or_default();
        let taken = abi::Taken {
            sample: given(arrived.bytes),
            data,
            data_size,
            writer: arrived.writer,
            number: arrived.number,
            source_ns: arrived.source_ns,
            related: abi::Related { name: related.name, number: related.number },
        };
        // SAFETY: the place is the caller's.
        unsafe { place.write(taken) };
        Ok(1)
    })
}

unsafe extern "C" fn sample_free(sample: *mut c_void) {
    // SAFETY: `take` gave it, and it is freed once.
    done(|| drop(unsafe { owned::<Bytes, _>(sample) }));
}

unsafe extern "C" fn reader_matches(
    reader: *const abi::Reader,
    arg: *mut c_void,
    each: Each,
) -> i32 {
    answered(std::ptr::null_mut(), || {
        // SAFETY: `open_reader` made it.
        let all = unsafe { held::<HeldReader, _>(reader) }.tap.matches();
        // SAFETY: as with writers.
        all.iter().for_each(|name| unsafe { each(arg, name.as_ptr()) });
        Ok(0)
    })
}

unsafe extern "C" fn open_watch(
    participant: *mut abi::Participant,
    ear: *const Ear,
    place: *mut *mut abi::Watch,
    problem: *mut c_char,
) -> i32 {
    answered(problem, || {
        // SAFETY: `join` made it.
        let participant = unsafe { &held::<HeldParticipant, _>(participant).0 };
        let ear = Heard::new(ear);
        let listener: Arc<dyn Listener> = Arc::clone(&ear) as Arc<dyn Listener>;
        let revoke = Revoke(&ear);
        let watch = Mutex::new(Some(participant.watch(&listener)?));
        std::mem::forget(revoke);
        let held = HeldWatch { watch, found: Mutex::default(), ear };
        // SAFETY: the place is the caller's.
        unsafe { place.write(given(held)) };
        Ok(0)
    })
}

unsafe extern "C" fn close_watch(watch: *mut abi::Watch) {
    done(|| {
        // SAFETY: as with writers.
        let held = unsafe { held::<HeldWatch, _>(watch) };
        let gone = lock(&held.watch).take();
        close(gone, Some(&held.ear));
        // SAFETY: as with writers.
        drop(unsafe { owned::<HeldWatch, _>(watch) });
    });
}

unsafe extern "C" fn found(watch: *mut abi::Watch, place: *mut abi::Found) -> i32 {
    answered(std::ptr::null_mut(), || {
        // SAFETY: `open_watch` made it.
        let held = unsafe { held::<HeldWatch, _>(watch) };
        let mut found = lock(&held.found);
        if found.is_empty()
            && let Some(watch) = &*lock(&held.watch)
        {
            found.extend(watch.take());
        }
        let Some(next) = found.pop_front() else { return Ok(0) };
        // SAFETY: the place is the caller's.
        unsafe { place.write(told(next)) };
        Ok(1)
    })
}

unsafe extern "C" fn found_free(found: *mut abi::Found) {
    // SAFETY: `found` filled it, and it is freed once.
    done(|| drop(unsafe { owned::<HeldFound, _>((*found).memory) }));
}

/// What is given to the other side, which gives it back for [`owned`].
fn given<T, O>(value: T) -> *mut O {
    Box::into_raw(Box::new(value)).cast()
}

/// What was given to the other side.
///
/// # Safety
///
/// It is of [`given`], with this type, and nobody uses it any more.
unsafe fn owned<T, O>(object: *mut O) -> Box<T> {
    // SAFETY: the caller promises it.
    unsafe { Box::from_raw(object.cast()) }
}

/// What was given to the other side, to look at.
///
/// # Safety
///
/// It is of [`given`], with this type, and is not given back while this is used.
unsafe fn held<'a, T, O>(object: *const O) -> &'a T {
    // SAFETY: the caller promises it.
    unsafe { &*object.cast() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "use an endpoint")
}

/// The answer of `body`, in the numbers of the header. `problem` is null, or has room for what went wrong.
fn answered(problem: *mut c_char, body: impl FnOnce() -> Result<i32>) -> i32 {
    let (kind, text) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(answer)) => return answer,
        Ok(Err(error)) => (error.kind(), error.to_string()),
        Err(panic) => {
            let text = format!("the transport panicked: {}", said(&*panic));
            log::tell(true, &text);
            (ErrorKind::Unexpected, text)
        }
    };
    if !problem.is_null() {
        let mut len = text.len().min(abi::PROBLEM_BYTES - 1);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        // SAFETY: it has room for so many and a nul.
        unsafe {
            problem.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), len);
            problem.add(len).write(0);
        }
    }
    match kind {
        ErrorKind::Busy => abi::BUSY,
        ErrorKind::Closed => abi::CLOSED,
        ErrorKind::TooLarge => abi::TOO_LARGE,
        ErrorKind::Unsupported => abi::UNSUPPORTED,
        ErrorKind::Invalid => abi::INVALID,
        ErrorKind::Exhausted => abi::EXHAUSTED,
        _ => abi::UNEXPECTED,
    }
}

/// Does what answers nothing.
fn done(body: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        log::tell(true, &format!("the transport panicked: {}", said(&*panic)));
    }
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}

/// # Safety
///
/// It is as the header has it.
unsafe fn read_asked(asked: *const abi::Join) -> Result<Asked> {
    // SAFETY: the caller promises it; the size stands first in every version.
    let size = unsafe { (*asked).size };
    if size < size_of::<abi::Join>() {
        let text = format!("its structure has {size} bytes; at least {}", size_of::<abi::Join>());
        return Err(Error::new(ErrorKind::Invalid, "join").about(text));
    }
    // SAFETY: it is as large as this version of it.
    let asked = unsafe { &*asked };
    // SAFETY: each is so many, and each text ends with a nul.
    unsafe {
        let texts = |of, count| all(of, count).iter().map(|it| text(*it)).collect();
        let settings = all(asked.settings, asked.settings_count).iter();
        Ok(Asked {
            domain: asked.domain,
            no_multicast: asked.no_multicast != 0,
            host_only: asked.host_only != 0,
            user_data: all(asked.user_data, asked.user_data_size).to_vec(),
            interfaces: texts(asked.interfaces, asked.interfaces_count),
            hosts: texts(asked.hosts, asked.hosts_count),
            settings: settings.map(|it| (text(it.key), text(it.value))).collect(),
        })
    }
}

/// Calls `body` with what an endpoint is announced as.
///
/// # Safety
///
/// It is as the header has it.
unsafe fn with_spec<T>(
    endpoint: *const abi::Endpoint,
    body: impl FnOnce(&EndpointSpec<'_>) -> Result<T>,
) -> Result<T> {
    const OPEN: &str = "open an endpoint";
    // SAFETY: the caller promises it; the size stands first in every version.
    let size = unsafe { (*endpoint).size };
    if size < size_of::<abi::Endpoint>() {
        let least = size_of::<abi::Endpoint>();
        let text = format!("its structure has {size} bytes; at least {least}");
        return Err(Error::new(ErrorKind::Invalid, OPEN).about(text));
    }
    // SAFETY: it is as large as this version of it, and its texts end with a nul.
    let (endpoint, topic, type_name, user_data) = unsafe {
        let it = &*endpoint;
        (it, text(it.topic), text(it.type_name), all(it.user_data, it.user_data_size))
    };
    let qos = read_qos(&endpoint.qos).map_err(|what| {
        Error::new(ErrorKind::Invalid, OPEN).about(format!("{topic}: its {what} is none"))
    })?;
    let keep_all_max = endpoint.qos.keep_all_max;
    body(&EndpointSpec {
        topic: &topic,
        type_name: &type_name,
        is_keyed: false,
        qos: &qos,
        keep_all_max,
        user_data,
    })
}

/// # Safety
///
/// It is null, or there are so many for as long as the answer is used.
unsafe fn all<'a, T>(of: *const T, count: usize) -> &'a [T] {
    if of.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: the caller promises it.
    unsafe { std::slice::from_raw_parts(of, count) }
}

/// # Safety
///
/// It is null, or ends with a nul.
unsafe fn text(of: *const c_char) -> String {
    if of.is_null() {
        return String::new();
    }
    // SAFETY: the caller promises it.
    unsafe { CStr::from_ptr(of) }.to_string_lossy().into_owned()
}

/// Or the word for what is not of the header.
fn read_qos(qos: &abi::Qos) -> Result<Qos, &'static str> {
    Ok(Qos {
        reliability: match qos.reliability {
            abi::BEST_EFFORT => Reliability::BestEffort,
            abi::RELIABLE => Reliability::Reliable,
            _ => return Err("reliability"),
        },
        durability: match qos.durability {
            abi::VOLATILE => Durability::Volatile,
            abi::TRANSIENT_LOCAL => Durability::TransientLocal,
            _ => return Err("durability"),
        },
        history: match qos.history {
            abi::KEEP_LAST => History::KeepLast(qos.depth),
            abi::KEEP_ALL => History::KeepAll,
            _ => return Err("history"),
        },
        liveliness: match qos.liveliness {
            abi::AUTOMATIC => Liveliness::Automatic,
            abi::MANUAL_BY_TOPIC => Liveliness::ManualByTopic,
            _ => return Err("liveliness"),
        },
        deadline: from_nanoseconds(qos.deadline_ns),
        lifespan: from_nanoseconds(qos.lifespan_ns),
        liveliness_lease: from_nanoseconds(qos.lease_ns),
    })
}

/// What was found, as the header has it.
fn told(found: Found) -> abi::Found {
    let mut kept = HeldFound::default();
    let mut told = abi::Found {
        kind: abi::FOUND_GONE,
        name: [0; abi::NAME_BYTES],
        vendor: [0; 2],
        topic: std::ptr::null(),
        type_name: std::ptr::null(),
        user_data: std::ptr::null(),
        user_data_size: 0,
        host: std::ptr::null(),
        program: std::ptr::null(),
        pid: 0,
        qos: wire_qos(None),
        memory: std::ptr::null_mut(),
    };
    let mut keep = |text: Option<String>| {
        let Some(text) = text.and_then(|it| CString::new(it).ok()) else {
            return std::ptr::null();
        };
        // What it points to stays where it is when the vector grows.
        kept.texts.push(text);
        kept.texts[kept.texts.len() - 1].as_ptr()
    };
    match found {
        Found::Gone(name) => told.name = name.0,
        Found::Participant(FoundParticipant { name, vendor, user_data, host, program, pid }) => {
            told.kind = abi::FOUND_PARTICIPANT;
            (told.name, told.vendor, told.pid) = (name.0, vendor, pid.unwrap_or(0));
            (told.host, told.program) = (keep(host), keep(program));
            kept.user_data = user_data;
        }
        Found::Endpoint(FoundEndpoint {
            name,
            is_writer,
            topic,
            type_name,
            user_data,
            qos,
            ..
        }) => {
            told.kind = if is_writer { abi::FOUND_WRITER } else { abi::FOUND_READER };
            told.name = name.0;
            (told.topic, told.type_name) = (keep(Some(topic)), keep(Some(type_name)));
            told.qos = wire_qos(Some(&qos));
            kept.user_data = user_data;
        }
    }
    (told.user_data, told.user_data_size) = (kept.user_data.as_ptr(), kept.user_data.len());
    told.memory = given(kept);
    told
}

fn wire_qos(qos: Option<&WireQos>) -> abi::Qos {
    let mut told = abi::Qos {
        reliability: abi::BEST_EFFORT,
        durability: abi::VOLATILE,
        history: abi::HISTORY_UNKNOWN,
        depth: 0,
        keep_all_max: 0,
        liveliness: abi::AUTOMATIC,
        deadline_ns: abi::INFINITE,
        lifespan_ns: abi::INFINITE,
        lease_ns: abi::INFINITE,
    };
    let Some(qos) = qos else { return told };
    told.reliability = match qos.reliability {
        Reliability::BestEffort => abi::BEST_EFFORT,
        Reliability::Reliable => abi::RELIABLE,
    };
    told.durability = match qos.durability {
        WireDurability::Volatile => abi::VOLATILE,
        WireDurability::TransientLocal => abi::TRANSIENT_LOCAL,
        WireDurability::Transient => abi::TRANSIENT,
        WireDurability::Persistent => abi::PERSISTENT,
    };
    (told.history, told.depth) = match qos.history {
        None => (abi::HISTORY_UNKNOWN, 0),
        Some(History::KeepLast(depth)) => (abi::KEEP_LAST, depth),
        Some(History::KeepAll) => (abi::KEEP_ALL, 0),
    };
    told.liveliness = match qos.liveliness {
        WireLiveliness::Automatic => abi::AUTOMATIC,
        WireLiveliness::ManualByParticipant => abi::MANUAL_BY_PARTICIPANT,
        WireLiveliness::ManualByTopic => abi::MANUAL_BY_TOPIC,
    };
    told.deadline_ns = to_nanoseconds(qos.deadline);
    told.lifespan_ns = to_nanoseconds(qos.lifespan);
    told.lease_ns = to_nanoseconds(qos.lease);
    told
}

#[cfg(test)]
mod tests;

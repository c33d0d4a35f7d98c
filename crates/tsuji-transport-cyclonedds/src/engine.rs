//! Cyclone DDS behind safe types: one domain and participant, writers, readers, samples.

use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use tsuji_core::{Durability, History, Liveliness, Qos, Reliability};
use tsuji_platform::clock;
use tsuji_platform::fork::Generation;
use tsuji_transport::{Bytes, Endpoint, Error, ErrorKind, Owner, Result};

use crate::ffi::{self, Entity};

mod watch;
pub(crate) use watch::{Watch, participant_of};

/// An RTPS GUID: 12 bytes of the participant, 4 of the entity, as on the wire.
pub(crate) type Guid = [u8; 16];

/// What is called from the engine's threads. It must be quick, and may not delete entities.
pub(crate) trait Listener: Send + Sync + 'static {
    /// A sample has arrived.
    fn news(&self) {}

    /// The set of endpoints that match changed.
    fn matched(&self) {}
}

/// A participant in a domain of its own. It sees other participants of this process as those of
/// another: by the network.
#[derive(Debug)]
pub(crate) struct Participant {
    // In this order: the domain is deleted last.
    entity: Deleted,
    _domain: Deleted,
}

impl Participant {
    /// Joins the domain that `config` names. `user_data` is announced.
    pub(crate) fn join(config: &str, user_data: &[u8]) -> Result<Self> {
        check_user_data("create a participant", user_data)?;
        // The engine knows each domain by a number of this process; the one on the network is in
        // the configuration.
        static DOMAINS: AtomicU32 = AtomicU32::new(1);
        static LOGS: Once = Once::new();
        // SAFETY: the function stays.
        LOGS.call_once(|| unsafe { ffi::tcy_log_to(log) });
        crate::lock(&COMPLAINTS).clear();
        let number = DOMAINS.fetch_add(1, Ordering::Relaxed);
        let config = text("create a domain", config)?;
        // SAFETY: the string ends with a nul.
        let domain = unsafe { ffi::dds_create_domain(number, config.as_ptr()) };
        let domain = checked("create a domain", domain).map_err(with_complaints)?;
        let domain = Deleted::new(domain);
        let mut qos = QosBox::new();
        qos.user_data(user_data);
        // SAFETY: the domain exists, and the QoS is valid.
        let entity = unsafe { ffi::dds_create_participant(number, qos.0, ptr::null()) };
        let entity = checked("create a participant", entity).map_err(with_complaints)?;
        let entity = Deleted::new(entity);
        Ok(Self { entity, _domain: domain })
    }

    /// Its name on the network.
    pub(crate) fn guid(&self) -> Guid {
        guid(self.entity.entity)
    }

    /// Watches who is there. `listener` has news when there is something to take.
    pub(crate) fn watch(&self, listener: &Arc<dyn Listener>) -> Result<Watch> {
        Watch::new(self.entity.entity, listener)
    }

    /// A writer of raw CDR.
    pub(crate) fn writer(&self, spec: &EndpointSpec<'_>) -> Result<EngineWriter> {
        let (topic, qos) = self.topic(spec)?;
        // SAFETY: participant and topic exist, and the QoS is valid.
        let made =
            unsafe { ffi::dds_create_writer(self.entity.entity, topic.entity, qos.0, ptr::null()) };
        let entity = Deleted::new(checked("create a writer", made)?);
        Ok(EngineWriter { guid: guid(entity.entity), ear: None, entity, _topic: topic })
    }

    /// A reader of raw CDR, which takes nothing of this participant's own writers.
    pub(crate) fn reader(&self, spec: &EndpointSpec<'_>) -> Result<EngineReader> {
        let (topic, qos) = self.topic(spec)?;
        // SAFETY: as above.
        unsafe { ffi::dds_qset_ignorelocal(qos.0, ffi::IGNORE_PARTICIPANT) };
        // SAFETY: as above.
        let made =
            unsafe { ffi::dds_create_reader(self.entity.entity, topic.entity, qos.0, ptr::null()) };
        let entity = Deleted::new(checked("create a reader", made)?);
        Ok(EngineReader { guid: guid(entity.entity), ear: None, entity, _topic: topic })
    }

    fn topic(&self, spec: &EndpointSpec<'_>) -> Result<(Deleted, QosBox)> {
        check_user_data("create an endpoint", spec.user_data)?;
        let mut qos = QosBox::new();
        qos.set(spec.qos, spec.keep_all_max);
        qos.user_data(spec.user_data);
        let (name, type_name) = (text("topic", spec.topic)?, text("type", spec.type_name)?);
        // SAFETY: the participant exists and the strings end with a nul. The topic itself takes the
        // defaults: what counts for matching is the endpoints'.
        let topic = unsafe {
            ffi::tcy_create_topic(
                self.entity.entity,
                name.as_ptr(),
                type_name.as_ptr(),
                ptr::null(),
            )
        };
        Ok((Deleted::new(checked("create a topic", topic)?), qos))
    }
}

/// What a writer or a reader is announced as.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndpointSpec<'a> {
    pub(crate) topic: &'a str,
    pub(crate) type_name: &'a str,
    pub(crate) qos: &'a Qos,
    /// Samples that a history which keeps all gives late joiners.
    pub(crate) keep_all_max: u32,
    pub(crate) user_data: &'a [u8],
}

impl<'a> EndpointSpec<'a> {
    pub(crate) fn of(endpoint: &'a Endpoint) -> Self {
        let (qos, keep_all_max) = (&endpoint.qos, endpoint.keep_all_max);
        let (topic, type_name, user_data) = match &endpoint.announced {
            Some(it) => (&it.topic, &it.type_name, &it.user_data[..]),
            None => (&endpoint.topic, &endpoint.type_name, &[][..]),
        };
        Self { topic, type_name, qos, keep_all_max, user_data }
    }
}

pub(crate) struct EngineWriter {
    guid: Guid,
    ear: Option<EarBox>,
    entity: Deleted,
    _topic: Deleted,
}

impl EngineWriter {
    pub(crate) fn guid(&self) -> Guid {
        self.guid
    }

    #[cfg(feature = "raw")]
    pub(crate) fn entity(&self) -> Entity {
        self.entity.entity
    }

    /// Calls `listener` from now on. Called once.
    pub(crate) fn listen(&mut self, listener: Arc<dyn Listener>) -> Result<()> {
        let ear = EarBox::new(listener);
        // SAFETY: the ear stays until the callbacks have ended.
        let result = unsafe { ffi::tcy_listen_writer(self.entity.entity, ear.as_ptr()) };
        self.ear = Some(ear);
        checked("listen", result).map(drop)
    }

    /// Writes a sample of at least 4 bytes, which begin with an encapsulation header. Answers Busy
    /// when too much is not acknowledged yet.
    pub(crate) fn write(&self, bytes: &Bytes, source_ns: i64) -> Result<()> {
        let held = Box::new(bytes.clone());
        let (data, len) = (held.as_ptr(), held.len());
        let owner = Box::into_raw(held).cast::<c_void>();
        // SAFETY: the bytes stay as they are while `owner` holds them, which `release_bytes` frees.
        let result = unsafe {
            ffi::tcy_write(self.entity.entity, data, len, source_ns, owner, release_bytes)
        };
        checked("send", result).map(drop)
    }

    /// Whether the readers have acknowledged all that was written.
    pub(crate) fn is_acknowledged(&self) -> bool {
        // SAFETY: the writer exists.
        unsafe { ffi::dds_wait_for_acks(self.entity.entity, 0) == 0 }
    }

    /// Waits until the readers have acknowledged all that was written, or for `timeout`.
    pub(crate) fn wait_for_acknowledgements(&self, timeout: Duration) {
        let timeout = i64::try_from(timeout.as_nanos()).unwrap_or(ffi::INFINITE);
        // SAFETY: the writer exists. Whatever it answers, the caller looks again.
        unsafe { ffi::dds_wait_for_acks(self.entity.entity, timeout) };
    }

    /// A handle by which callbacks look at it, which may not own the writer.
    pub(crate) fn peep(&self) -> Peep {
        Peep(self.entity.entity)
    }
}

impl Drop for EngineWriter {
    fn drop(&mut self) {
        end_ear(&self.entity, self.ear.take());
    }
}

pub(crate) struct EngineReader {
    guid: Guid,
    ear: Option<EarBox>,
    entity: Deleted,
    _topic: Deleted,
}

impl EngineReader {
    pub(crate) fn guid(&self) -> Guid {
        self.guid
    }

    #[cfg(feature = "raw")]
    pub(crate) fn entity(&self) -> Entity {
        self.entity.entity
    }

    /// Calls `listener` from now on. Called once.
    pub(crate) fn listen(&mut self, listener: Arc<dyn Listener>) -> Result<()> {
        let ear = EarBox::new(listener);
        // SAFETY: the ear stays until the callbacks have ended.
        let result = unsafe { ffi::tcy_listen_reader(self.entity.entity, ear.as_ptr()) };
        self.ear = Some(ear);
        checked("listen", result).map(drop)
    }

    /// A handle by which callbacks take, which may not own the reader.
    pub(crate) fn tap(&self) -> Tap {
        Tap(self.entity.entity)
    }
}

impl Drop for EngineReader {
    fn drop(&mut self) {
        end_ear(&self.entity, self.ear.take());
    }
}

/// Looks at a writer that may be gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peep(Entity);

impl Peep {
    /// The readers that match now.
    pub(crate) fn matches(self) -> Vec<Guid> {
        matches(self.0, true)
    }
}

/// Takes from a reader that may be gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tap(Entity);

impl Tap {
    /// The writers that match now.
    pub(crate) fn matches(self) -> Vec<Guid> {
        matches(self.0, false)
    }

    /// The next sample, if there is one.
    pub(crate) fn take(self) -> Result<Option<Arrived>> {
        let mut taken = MaybeUninit::uninit();
        // SAFETY: it is filled when the answer is 1. An entity that is gone is an error.
        let taken = match unsafe { ffi::tcy_take(self.0, taken.as_mut_ptr()) } {
            0 => return Ok(None),
            // SAFETY: as above.
            1 => unsafe { taken.assume_init() },
            result => return checked("take", result).map(|_| None),
        };
        let start = NonNull::new(taken.data.cast_mut());
        let sample = NonNull::new(taken.sample);
        let (Some(start), Some(sample)) = (start, sample) else {
            return Err(Error::new(ErrorKind::Unexpected, "take").about("a sample without data"));
        };
        let owner = Arc::new(EngineSample { sample, holders: AtomicUsize::new(1) });
        // SAFETY: the engine's sample holds the bytes, which nobody changes any more.
        let bytes = unsafe { Bytes::from_owner(owner, start, taken.len) };
        let (writer, number) = (taken.writer, taken.number);
        Ok(Some(Arrived { writer, number, source_ns: taken.source_ns, bytes }))
    }
}

/// A sample that has come over the network.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) writer: Guid,
    /// The engine's number for it, from 1.
    pub(crate) number: i64,
    /// In nanoseconds since the Unix epoch, as the writer says.
    pub(crate) source_ns: i64,
    pub(crate) bytes: Bytes,
}

/// A sample in the engine's memory.
struct EngineSample {
    sample: NonNull<c_void>,
    holders: AtomicUsize,
}

// SAFETY: the engine counts references to samples atomically, and the bytes are immutable.
unsafe impl Send for EngineSample {}
// SAFETY: as above.
unsafe impl Sync for EngineSample {}

impl Owner for EngineSample {
    fn retain(&self) {
        self.holders.fetch_add(1, Ordering::Relaxed);
    }

    fn release(&self) {
        if self.holders.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: the last holder is gone, and with it the last look at the bytes.
            unsafe { ffi::tcy_sample_free(self.sample.as_ptr()) };
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An entity that is deleted with this value.
#[derive(Debug)]
struct Deleted {
    entity: Entity,
    /// A forked child has no threads of the engine, and would wait for them.
    generation: Generation,
}

impl Deleted {
    fn new(entity: Entity) -> Self {
        Self { entity, generation: Generation::current() }
    }
}

impl Drop for Deleted {
    fn drop(&mut self) {
        if self.generation.is_current() {
            // SAFETY: an entity that is gone already, with its participant, is an error and no more.
            unsafe { ffi::dds_delete(self.entity) };
        }
    }
}

fn guid(entity: Entity) -> Guid {
    let mut guid = [0; 16];
    // SAFETY: it is filled, or left as it is.
    unsafe { ffi::dds_get_guid(entity, &raw mut guid) };
    guid
}

fn matches(entity: Entity, is_writer: bool) -> Vec<Guid> {
    unsafe extern "C" fn add(all: *mut c_void, guid: *const u8) {
        // SAFETY: `all` is the vector below, and a GUID has 16 bytes.
        unsafe { (*all.cast::<Vec<Guid>>()).push(guid.cast::<Guid>().read()) };
    }
    let mut all = Vec::new();
    // SAFETY: the vector outlives the call.
    unsafe { ffi::tcy_each_match(entity, is_writer, (&raw mut all).cast(), add) };
    all
}

unsafe extern "C" fn release_bytes(owner: *mut c_void) {
    // SAFETY: it is the box that `write` gave away, which is released once.
    drop(unsafe { Box::from_raw(owner.cast::<Bytes>()) });
}

/// A listener as the engine calls it.
pub(crate) struct EarBox(NonNull<Ears>);

struct Ears {
    ear: ffi::Ear,
    listener: Arc<dyn Listener>,
}

// SAFETY: the listener is Send and Sync; the pointers are to it and to plain functions.
unsafe impl Send for EarBox {}
// SAFETY: as above.
unsafe impl Sync for EarBox {}

impl EarBox {
    fn new(listener: Arc<dyn Listener>) -> Self {
        let ear = ffi::Ear { arg: ptr::null(), on_news: Some(on_news), on_match: Some(on_match) };
        let ears = NonNull::from(Box::leak(Box::new(Ears { ear, listener })));
        // SAFETY: nobody else knows it yet.
        unsafe { (*ears.as_ptr()).ear.arg = ears.as_ptr().cast() };
        Self(ears)
    }

    fn as_ptr(&self) -> *const ffi::Ear {
        // SAFETY: it is valid until dropped.
        unsafe { &raw const (*self.0.as_ptr()).ear }
    }
}

impl Drop for EarBox {
    fn drop(&mut self) {
        // SAFETY: it was leaked in `new`, and no callback runs any more.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

unsafe extern "C" fn on_news(ears: *const c_void) {
    // SAFETY: `new` made it, and it is not dropped while callbacks run.
    unsafe { (*ears.cast::<Ears>()).listener.news() };
}

unsafe extern "C" fn on_match(ears: *const c_void) {
    // SAFETY: as above.
    unsafe { (*ears.cast::<Ears>()).listener.matched() };
}

fn end_ear(entity: &Deleted, ear: Option<EarBox>) {
    if ear.is_some() && entity.generation.is_current() {
        // SAFETY: waits for callbacks that run.
        unsafe { ffi::tcy_listen_no_more(entity.entity) };
    }
}

/// A QoS of Cyclone DDS.
struct QosBox(*mut ffi::Qos);

impl QosBox {
    fn new() -> Self {
        // SAFETY: the engine ends the process rather than answer null.
        Self(unsafe { ffi::dds_create_qos() })
    }

    fn user_data(&mut self, bytes: &[u8]) {
        // SAFETY: the bytes are copied.
        unsafe { ffi::dds_qset_userdata(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }

    fn set(&mut self, qos: &Qos, keep_all_max: u32) {
        let keep_all_max = i32::try_from(keep_all_max.max(1)).unwrap_or(i32::MAX);
        let (history, depth) = match qos.history {
            History::KeepLast(depth) => {
                (ffi::KEEP_LAST, i32::try_from(depth.max(1)).unwrap_or(i32::MAX))
            }
            History::KeepAll => (ffi::KEEP_ALL, ffi::UNLIMITED),
        };
        let durability = match qos.durability {
            Durability::Volatile => ffi::VOLATILE,
            Durability::TransientLocal => ffi::TRANSIENT_LOCAL,
        };
        let reliability = match qos.reliability {
            Reliability::BestEffort => ffi::BEST_EFFORT,
            Reliability::Reliable => ffi::RELIABLE,
        };
        let liveliness = match qos.liveliness {
            Liveliness::Automatic => ffi::AUTOMATIC,
            Liveliness::ManualByTopic => ffi::MANUAL_BY_TOPIC,
        };
        let nanos = |it: Option<Duration>| {
            it.map_or(ffi::INFINITE, |it| i64::try_from(it.as_nanos()).unwrap_or(ffi::INFINITE))
        };
        let xcdr1 = [ffi::XCDR1];
        // SAFETY: the QoS is valid, and the engine copies what it is given. Writing never waits:
        // that is for the node API.
        unsafe {
            ffi::dds_qset_history(self.0, history, depth);
            ffi::dds_qset_durability(self.0, durability);
            if qos.durability == Durability::TransientLocal {
                let none = ffi::UNLIMITED;
                let kept = if depth == ffi::UNLIMITED { keep_all_max } else { depth };
                let last = ffi::KEEP_LAST;
                ffi::dds_qset_durability_service(self.0, 0, last, kept, none, none, none);
            }
            ffi::dds_qset_reliability(self.0, reliability, 0);
            ffi::dds_qset_deadline(self.0, nanos(qos.deadline));
            ffi::dds_qset_lifespan(self.0, nanos(qos.lifespan));
            ffi::dds_qset_liveliness(self.0, liveliness, nanos(qos.liveliness_lease));
            ffi::dds_qset_data_representation(self.0, 1, xcdr1.as_ptr());
        }
    }
}

impl Drop for QosBox {
    fn drop(&mut self) {
        // SAFETY: nobody else knows it.
        unsafe { ffi::dds_delete_qos(self.0) };
    }
}

/// The errors that the engine has logged since the last participant was begun. Beyond
/// [`COMPLAINTS_MAX`] they are only logged.
static COMPLAINTS: Mutex<Vec<String>> = Mutex::new(Vec::new());
const COMPLAINTS_MAX: usize = 5;

unsafe extern "C" fn log(is_error: bool, text: *const c_char, len: usize) {
    // SAFETY: so many bytes are there during the call.
    let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    let text = String::from_utf8_lossy(text);
    let text = text.trim_end();
    if !is_error {
        return tracing::warn!(target: "cyclonedds", "{text}");
    }
    if text.starts_with(UNSENT) {
        return log_unsent(text);
    }
    tracing::error!(target: "cyclonedds", "{text}");
    let mut complaints = crate::lock(&COMPLAINTS);
    if complaints.len() < COMPLAINTS_MAX {
        complaints.push(text.to_owned());
    }
}

/// Logs that something cannot be sent, which the engine says of each datagram.
fn log_unsent(text: &str) {
    static NEXT_NS: AtomicU64 = AtomicU64::new(0);
    let (next_ns, now_ns) = (NEXT_NS.load(Ordering::Relaxed), clock::monotonic_ns());
    let after_ns = now_ns.saturating_add(UNSENT_EVERY_NS);
    let (set, seen) = (Ordering::Relaxed, Ordering::Relaxed);
    if now_ns < next_ns || NEXT_NS.compare_exchange(next_ns, after_ns, set, seen).is_err() {
        return;
    }
    tracing::error!(
        target: "cyclonedds",
        "{text}; it uses the addresses that this host had when the process started: where one is \
         another now, nothing goes by it until it is back or the process is started again"
    );
}

/// How the engine begins to say so.
const UNSENT: &str = "ddsi_udp_conn_write to ";
/// How often it is logged at most.
const UNSENT_EVERY_NS: u64 = 10_000_000_000;

/// The error, with what the engine has logged.
fn with_complaints(error: Error) -> Error {
    let complaints = std::mem::take(&mut *crate::lock(&COMPLAINTS));
    if complaints.is_empty() { error } else { error.because(complaints.join("; ")) }
}

/// RTPS counts the bytes of a parameter in 16 bits, and all that is announced of an endpoint is one
/// datagram. The engine writes more than fits behind its buffer.
fn check_user_data(operation: &'static str, user_data: &[u8]) -> Result<()> {
    if user_data.len() <= USER_DATA_BYTES_MAX {
        return Ok(());
    }
    let about = format!("user data of {} bytes; at most {USER_DATA_BYTES_MAX}", user_data.len());
    Err(Error::new(ErrorKind::TooLarge, operation).about(about))
}

const USER_DATA_BYTES_MAX: usize = 60_000;

fn text(operation: &'static str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|error| Error::new(ErrorKind::Invalid, operation).because(error))
}

/// The result, unless it is an error.
pub(crate) fn checked(operation: &'static str, result: i32) -> Result<i32> {
    if 0 <= result {
        return Ok(result);
    }
    let kind = match result {
        ffi::TIMEOUT => ErrorKind::Busy,
        ffi::OUT_OF_RESOURCES => ErrorKind::Exhausted,
        _ => ErrorKind::Unexpected,
    };
    // SAFETY: it is a constant string.
    let said = unsafe { CStr::from_ptr(ffi::dds_strretcode(result)) };
    Err(Error::new(kind, operation).about(format!("Cyclone DDS says {}", said.to_string_lossy())))
}

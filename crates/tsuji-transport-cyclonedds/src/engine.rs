//! Cyclone DDS behind safe types: one domain and participant, writers, readers, samples.

use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use tsuji_core::{Durability, History, Liveliness, Qos, Reliability};
use tsuji_engine::foreign::{self, EarBox};
use tsuji_engine::{Arrived, EndpointSpec, EngineReader, EngineWriter, Guid, Listener, Related};
use tsuji_platform::clock;
use tsuji_platform::fork::Generation;
use tsuji_platform::ordered::Mutex;
use tsuji_platform::report;
use tsuji_transport::wire::{NetworkAddresses, Treatment};
use tsuji_transport::{Bytes, Error, ErrorKind, PeerId, RelationHeader, Result, deferred};

use crate::ffi::{self, Entity};
use crate::{DdsSecurity, PeerMarks};

mod peer_processes;
mod watch;
use peer_processes::PeerProcesses;
use watch::Watch;

/// Has the system's allocator keep up to 8 MiB of what is free at the end of the heap, in place of 128 KiB. Each message that is
/// encrypted or decrypted takes some buffers of 64 KiB and gives them back, and a picture many: they would be unmapped and mapped
/// anew for every one.
///
/// glibc raises both thresholds when a buffer is given back that was mapped by itself (`M_MMAP_THRESHOLD` in mallopt(3)), unless the
/// user has set one of them.
fn keep_buffers_mapped() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(4 << 20)));
}

/// A participant in a domain of its own. It sees other participants of this process as those of
/// another: by the network.
#[derive(Debug)]
pub(crate) struct Participant {
    // In this order: the domain is deleted before what it looks at.
    entity: Deleted,
    _domain: Deleted,
    peer_processes: Option<PeerProcesses>,
}

impl Participant {
    /// Joins the domain that `config` names. `user_data` is announced.
    pub(crate) fn join(
        config: &str,
        user_data: &[u8],
        peer_processes: Option<&PeerMarks>,
        security: Option<&DdsSecurity>,
    ) -> Result<Self> {
        check_user_data("create a participant", user_data)?;
        let properties = security.map(DdsSecurity::properties).transpose()?.unwrap_or_default();
        // The engine knows each domain by a number of this process; the one on the network is in
        // the configuration.
        static DOMAINS: AtomicU32 = AtomicU32::new(1);
        static LOGS: Once = Once::new();
        // SAFETY: the function stays.
        LOGS.call_once(|| unsafe { ffi::tcy_log_to(log) });
        // One at a time, so that what the engine complains of is of this one.
        static JOINING: Mutex<()> = Mutex::new(());
        let _one = crate::lock(&JOINING);
        crate::lock(&COMPLAINTS).clear();
        let number = DOMAINS.fetch_add(1, Ordering::Relaxed);
        let config = text("create a domain", config)?;
        let peer_processes = peer_processes.map(PeerProcesses::new).transpose()?;
        let domain = PeerProcesses::with_domain(peer_processes.as_ref(), || {
            // SAFETY: the string ends with a nul.
            unsafe { ffi::dds_create_domain(number, config.as_ptr()) }
        });
        let domain = checked("create a domain", domain).map_err(with_complaints)?;
        let domain = Deleted::new(domain);
        if security.is_some() {
            keep_buffers_mapped();
        }
        let mut qos = QosBox::new();
        qos.user_data(user_data);
        for (name, value) in &properties {
            qos.property(
                &text("secure a participant", name)?,
                &text("secure a participant", value)?,
            );
        }
        // SAFETY: the domain exists, and the QoS is valid.
        let entity = unsafe { ffi::dds_create_participant(number, qos.0, ptr::null()) };
        let entity = checked("create a participant", entity).map_err(with_complaints)?;
        let entity = Deleted::new(entity);
        Ok(Self { entity, _domain: domain, peer_processes })
    }

    /// A writer of raw CDR.
    pub(crate) fn writer(&self, spec: &EndpointSpec<'_>) -> Result<CycloneWriter> {
        let (topic, qos) = self.topic(spec)?;
        // SAFETY: participant and topic exist, and the QoS is valid.
        let made =
            unsafe { ffi::dds_create_writer(self.entity.entity, topic.entity, qos.0, ptr::null()) };
        let entity = Deleted::new(checked("create a writer", made)?);
        Ok(CycloneWriter { guid: guid(entity.entity), ear: None, entity, _topic: topic })
    }

    /// A reader of raw CDR, which takes nothing of this participant's own writers.
    pub(crate) fn reader(&self, spec: &EndpointSpec<'_>) -> Result<CycloneReader> {
        let (topic, qos) = self.topic(spec)?;
        // SAFETY: as above.
        unsafe { ffi::dds_qset_ignorelocal(qos.0, ffi::IGNORE_PARTICIPANT) };
        // SAFETY: as above.
        let made =
            unsafe { ffi::dds_create_reader(self.entity.entity, topic.entity, qos.0, ptr::null()) };
        let entity = Deleted::new(checked("create a reader", made)?);
        Ok(CycloneReader { guid: guid(entity.entity), ear: None, entity, _topic: topic })
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
                spec.is_keyed,
                ptr::null(),
            )
        };
        Ok((Deleted::new(checked("create a topic", topic)?), qos))
    }
}

impl tsuji_engine::Participant for Participant {
    fn guid(&self) -> Guid {
        guid(self.entity.entity)
    }

    fn writer(&self, spec: &EndpointSpec<'_>) -> Result<Box<dyn EngineWriter>> {
        Ok(Box::new(self.writer(spec)?))
    }

    fn reader(&self, spec: &EndpointSpec<'_>) -> Result<Box<dyn EngineReader>> {
        Ok(Box::new(self.reader(spec)?))
    }

    fn treat(&self, peer: PeerId, treatment: Treatment) {
        if let Some(peer_processes) = &self.peer_processes {
            peer_processes.treat(peer, treatment);
        }
    }

    fn addresses(&self) -> NetworkAddresses {
        let all = |is_sent| {
            let mut found =
                [ffi::Address { bytes: [0; 16], port: 0, is_v6: false }; INTERFACES_MAX];
            // SAFETY: there is room for so many.
            let count = unsafe {
                let (to, room) = (found.as_mut_ptr(), found.len());
                ffi::tsuji_addresses(self.entity.entity, is_sent, to, room)
            };
            found[..count.min(INTERFACES_MAX)].iter().map(socket_address).collect()
        };
        NetworkAddresses { sends: all(true), receives: all(false) }
    }

    fn watch(&self, listener: &Arc<dyn Listener>) -> Result<Box<dyn tsuji_engine::Watch>> {
        Ok(Box::new(Watch::new(self.entity.entity, listener)?))
    }
}

/// A writer of raw CDR.
pub(crate) struct CycloneWriter {
    guid: Guid,
    ear: Option<EarBox>,
    entity: Deleted,
    _topic: Deleted,
}

impl CycloneWriter {
    fn write_with(
        &self,
        bytes: &Bytes,
        source_ns: i64,
        relation: Option<&ffi::Relation>,
    ) -> Result<()> {
        let (data, len, owner) = (bytes.as_ptr(), bytes.len(), foreign::hold(bytes));
        let relation = relation.map_or(ptr::null(), ptr::from_ref);
        let entity = self.entity.entity;
        // SAFETY: the bytes stay as they are while `owner` holds them, and what the relation refers to is read
        // during the call.
        let result = unsafe {
            ffi::tcy_write(entity, data, len, source_ns, relation, owner, foreign::let_go)
        };
        checked("send", result).map(drop)
    }
}

#[cfg(feature = "raw")]
impl CycloneWriter {
    pub(crate) fn entity(&self) -> Entity {
        self.entity.entity
    }
}

impl EngineWriter for CycloneWriter {
    fn guid(&self) -> Guid {
        self.guid
    }

    fn listen(&mut self, listener: Arc<dyn Listener>) -> Result<()> {
        let ear = EarBox::new(listener);
        // SAFETY: the ear stays until the callbacks have ended.
        let result = unsafe { ffi::tcy_listen_writer(self.entity.entity, ear.as_ptr()) };
        self.ear = Some(ear);
        checked("listen", result).map(drop)
    }

    fn write(&self, bytes: &Bytes, source_ns: i64) -> Result<()> {
        self.write_with(bytes, source_ns, None)
    }

    fn write_either(
        &self,
        bytes: &Bytes,
        source_ns: i64,
        header: &RelationHeader,
        related: Option<Related>,
    ) -> Result<()> {
        let related = related.map(|it| ffi::Related { name: it.name, number: it.number });
        let related = related.as_ref().map_or(ptr::null(), ptr::from_ref);
        let relation = ffi::Relation { related, header };
        self.write_with(bytes, source_ns, Some(&relation))
    }

    fn assert_liveliness(&self) {
        // SAFETY: the writer exists.
        unsafe { ffi::dds_assert_liveliness(self.entity.entity) };
    }

    fn is_acknowledged(&self) -> bool {
        // SAFETY: the writer exists.
        unsafe { ffi::dds_wait_for_acks(self.entity.entity, 0) == 0 }
    }

    fn wait_for_acknowledgements(&self, timeout: Duration) {
        let timeout = i64::try_from(timeout.as_nanos()).unwrap_or(ffi::INFINITE);
        // SAFETY: the writer exists. Whatever it answers, the caller looks again.
        unsafe { ffi::dds_wait_for_acks(self.entity.entity, timeout) };
    }

    fn peep(&self) -> Arc<dyn tsuji_engine::Peep> {
        Arc::new(Peep(self.entity.entity))
    }
}

impl Drop for CycloneWriter {
    fn drop(&mut self) {
        end_ear(&self.entity, self.ear.take());
    }
}

/// A reader of raw CDR.
pub(crate) struct CycloneReader {
    guid: Guid,
    ear: Option<EarBox>,
    entity: Deleted,
    _topic: Deleted,
}

#[cfg(feature = "raw")]
impl CycloneReader {
    pub(crate) fn entity(&self) -> Entity {
        self.entity.entity
    }
}

impl EngineReader for CycloneReader {
    fn guid(&self) -> Guid {
        self.guid
    }

    fn listen(&mut self, listener: Arc<dyn Listener>) -> Result<()> {
        let ear = EarBox::new(listener);
        // SAFETY: the ear stays until the callbacks have ended.
        let result = unsafe { ffi::tcy_listen_reader(self.entity.entity, ear.as_ptr()) };
        self.ear = Some(ear);
        checked("listen", result).map(drop)
    }

    fn tap(&self) -> Arc<dyn tsuji_engine::Tap> {
        Arc::new(Tap(self.entity.entity))
    }
}

impl Drop for CycloneReader {
    fn drop(&mut self) {
        end_ear(&self.entity, self.ear.take());
    }
}

/// Looks at a writer that may be gone.
#[derive(Clone, Copy, Debug)]
struct Peep(Entity);

impl tsuji_engine::Peep for Peep {
    fn matches(&self) -> Vec<Guid> {
        matches(self.0, true)
    }
}

/// Takes from a reader that may be gone.
#[derive(Clone, Copy, Debug)]
struct Tap(Entity);

impl tsuji_engine::Tap for Tap {
    fn matches(&self) -> Vec<Guid> {
        matches(self.0, false)
    }

    fn is_silent(&self, writer: Guid) -> Option<bool> {
        // SAFETY: the name is read during the call. A reader that is gone has no writers.
        let silent = unsafe { ffi::tcy_is_silent(self.0, writer.as_ptr()) };
        (silent >= 0).then_some(silent == 1)
    }

    fn take(&self) -> Result<Option<Arrived>> {
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
        // SAFETY: the engine's sample holds the bytes, which nobody changes any more.
        let bytes =
            unsafe { foreign::bytes(start, taken.len, sample.as_ptr(), ffi::tcy_sample_free) };
        let ffi::Taken { writer, number, source_ns, relates, related, .. } = taken;
        let related = (related.name != Guid::default())
            .then_some(Related { name: related.name, number: related.number });
        Ok(Some(Arrived { writer, number, source_ns, is_headed: !relates, related, bytes }))
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

fn socket_address(address: &ffi::Address) -> SocketAddr {
    let [a, b, c, d, ..] = address.bytes;
    let ip = match address.is_v6 {
        true => IpAddr::from(address.bytes),
        false => IpAddr::from([a, b, c, d]),
    };
    SocketAddr::new(ip, address.port)
}

/// Cyclone DDS takes no more (`MAX_XMIT_CONNS`).
const INTERFACES_MAX: usize = 4;

fn matches(entity: Entity, is_writer: bool) -> Vec<Guid> {
    foreign::names(|arg, each| {
        // SAFETY: the function is called during the call.
        unsafe { ffi::tcy_each_match(entity, is_writer, arg, each) };
    })
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

    fn property(&mut self, name: &CStr, value: &CStr) {
        // SAFETY: both end with a nul and are copied.
        unsafe { ffi::dds_qset_prop(self.0, name.as_ptr(), value.as_ptr()) };
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
                let (kind, kept) = match qos.history {
                    // Where more would be kept than an index of each sample is worth, its writer has the limit.
                    History::KeepAll if INDEXED_MAX < keep_all_max => (ffi::KEEP_ALL, none),
                    History::KeepAll => (ffi::KEEP_LAST, keep_all_max),
                    History::KeepLast(_) => (ffi::KEEP_LAST, depth),
                };
                ffi::dds_qset_durability_service(self.0, 0, kind, kept, none, none, none);
            }
            ffi::dds_qset_reliability(self.0, reliability, 0);
            ffi::dds_qset_deadline(self.0, nanos(qos.deadline));
            ffi::dds_qset_lifespan(self.0, nanos(qos.lifespan));
            ffi::dds_qset_liveliness(self.0, liveliness, nanos(qos.liveliness_lease));
            ffi::dds_qset_data_representation(self.0, 1, xcdr1.as_ptr());
        }
    }
}

/// Samples kept for late joiners by their number. It takes a word for each at once.
const INDEXED_MAX: i32 = 10_000;

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
        let text = text.to_owned();
        return deferred::elsewhere(move || report::warn!(target: "cyclonedds", "{text}"));
    }
    if text.starts_with(UNSENT) {
        return log_unsent(text);
    }
    if text.starts_with(CROWDED) || is_told(text) {
        // Other ports are tried then; and what could not be joined is tried again without end.
        let text = text.to_owned();
        deferred::elsewhere(move || tracing::debug!(target: "cyclonedds", "{text}"));
    } else {
        let told = text.to_owned();
        // The engine may hold locks of its own, and whoever takes events may ask anything.
        deferred::elsewhere(move || report::error!(target: "cyclonedds", "{told}"));
    }
    let mut complaints = crate::lock(&COMPLAINTS);
    if complaints.len() < COMPLAINTS_MAX {
        complaints.push(text.to_owned());
    }
}

/// Whether the engine has said the same before. The last [`TOLD_MAX`] different errors are remembered.
fn is_told(text: &str) -> bool {
    static TOLD: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());
    let mut told = crate::lock(&TOLD);
    let is_known = told.iter().any(|it| it == text);
    if !is_known {
        told.truncate(TOLD_MAX - 1);
        told.push_front(text.to_owned());
    }
    is_known
}

const TOLD_MAX: usize = 32;

/// Logs that something cannot be sent, which the engine says of each datagram.
fn log_unsent(text: &str) {
    static NEXT_NS: AtomicU64 = AtomicU64::new(0);
    let (next_ns, now_ns) = (NEXT_NS.load(Ordering::Relaxed), clock::monotonic_ns());
    let after_ns = now_ns.saturating_add(UNSENT_EVERY_NS);
    let (set, seen) = (Ordering::Relaxed, Ordering::Relaxed);
    if now_ns < next_ns || NEXT_NS.compare_exchange(next_ns, after_ns, set, seen).is_err() {
        return;
    }
    let text = text.to_owned();
    deferred::elsewhere(move || {
        report::error!(
            target: "cyclonedds",
            "{text}; it uses the addresses that this host had when it joined: where one is gone, \
             nothing goes by it until it is back, or another is there and the network is joined anew"
        );
    });
}

/// Whether a participant could not join because all indices of its domain are taken on this host.
pub(crate) fn is_crowded(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|it| it.to_string().contains(CROWDED))
}

/// How the engine says so.
const CROWDED: &str = "Failed to find a free participant index";

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

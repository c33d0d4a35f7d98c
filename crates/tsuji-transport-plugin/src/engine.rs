//! The objects of a plug-in behind the traits of an engine.

use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::mem::{self, MaybeUninit};
use std::ptr::{self, NonNull};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tsuji_core::{Durability, History, Liveliness, Qos, Reliability};
use tsuji_engine::foreign::{self, EarBox};
use tsuji_engine::{
    Arrived, EndpointSpec, EngineReader, EngineWriter, Guid, Listener, Related, participant_of,
};
use tsuji_engine_abi::abi::{self, Table};
use tsuji_platform::exit::{self, Call};
use tsuji_platform::fork::Generation;
use tsuji_platform::report;
use tsuji_transport::wire::{
    Found, FoundEndpoint, FoundParticipant, WireDurability, WireLiveliness, WireQos,
    from_nanoseconds,
};
use tsuji_transport::{Bytes, Error, ErrorKind, Gid, Result, deferred};

use crate::PluginConfig;
use crate::library::{Plugin, text};

/// A participant of a plug-in.
pub(crate) struct Participant {
    object: Arc<Object<abi::Participant>>,
    guid: Guid,
    plugin: Plugin,
}

impl Participant {
    pub(crate) fn join(plugin: Plugin, config: &PluginConfig) -> Result<Self> {
        const JOIN: &str = "join the domain";
        let strings = |all: &[String]| -> Result<Vec<CString>> {
            all.iter().map(|it| c_string(JOIN, it)).collect()
        };
        let pointers = |all: &[CString]| all.iter().map(|it| it.as_ptr()).collect::<Vec<_>>();
        let (interfaces, hosts) = (strings(&config.interfaces)?, strings(&config.hosts)?);
        let (interface_pointers, host_pointers) = (pointers(&interfaces), pointers(&hosts));
        let mut words = Vec::new();
        for (key, value) in &config.settings {
            words.push((c_string(JOIN, key)?, c_string(JOIN, value)?));
        }
        let settings: Vec<abi::Setting> = words
            .iter()
            .map(|(key, value)| abi::Setting { key: key.as_ptr(), value: value.as_ptr() })
            .collect();
        let join = abi::Join {
            size: size_of::<abi::Join>(),
            domain: config.domain,
            no_multicast: config.no_multicast.into(),
            host_only: config.host_only.into(),
            user_data: config.user_data.as_ptr(),
            user_data_size: config.user_data.len(),
            interfaces: interface_pointers.as_ptr(),
            interfaces_count: interface_pointers.len(),
            hosts: host_pointers.as_ptr(),
            hosts_count: host_pointers.len(),
            settings: settings.as_ptr(),
            settings_count: settings.len(),
            log,
        };
        let table = plugin.table;
        let object = made(JOIN, &plugin, table.join as *const (), |place, problem| {
            let Some(_call) = Call::enter() else { return gone() };
            // SAFETY: all that `join` points to is there during the call.
            unsafe { (table.join)(&raw const join, place, problem) }
        })?;
        // SAFETY: it was made, and is not used after this.
        let object = Object::new(object, |it| unsafe { (table.leave)(it) });
        let guid = object.name(table.participant_name);
        if participant_of(Gid(guid)) != Gid(guid) {
            let about =
                format!("{}: its participant's name is no participant's", plugin.about().id);
            return Err(Error::new(ErrorKind::Invalid, JOIN).about(about));
        }
        Ok(Self { object, guid, plugin })
    }

    /// The name of an endpoint, by which samples are told apart.
    fn checked_name(&self, guid: Guid) -> Result<Guid> {
        if participant_of(Gid(guid)) == Gid(self.guid) && guid != self.guid {
            return Ok(guid);
        }
        let about = format!("{}: its name is none of its participant's", self.plugin.about().id);
        Err(Error::new(ErrorKind::Invalid, "open an endpoint").about(about))
    }

    fn open<T>(
        &self,
        spec: &EndpointSpec<'_>,
        open: unsafe extern "C" fn(
            *mut abi::Participant,
            *const abi::Endpoint,
            *mut *mut T,
            *mut c_char,
        ) -> i32,
    ) -> Result<NonNull<T>> {
        const OPEN: &str = "open an endpoint";
        let (topic, type_name) = (c_string(OPEN, spec.topic)?, c_string(OPEN, spec.type_name)?);
        let endpoint = abi::Endpoint {
            size: size_of::<abi::Endpoint>(),
            topic: topic.as_ptr(),
            type_name: type_name.as_ptr(),
            user_data: spec.user_data.as_ptr(),
            user_data_size: spec.user_data.len(),
            qos: offered(spec.qos, spec.keep_all_max),
        };
        made(OPEN, &self.plugin, open as *const (), |place, problem| {
            self.object.with(gone, |participant| {
                // SAFETY: all that `endpoint` points to is there during the call.
                unsafe { open(participant, &raw const endpoint, place, problem) }
            })
        })
    }
}

impl fmt::Debug for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Participant").field("of", &self.plugin.about().id).finish_non_exhaustive()
    }
}

impl tsuji_engine::Participant for Participant {
    fn guid(&self) -> Guid {
        self.guid
    }

    fn writer(&self, spec: &EndpointSpec<'_>) -> Result<Box<dyn EngineWriter>> {
        let table = self.plugin.table;
        let made = self.open(spec, table.open_writer)?;
        // SAFETY: it was opened, and is not used after this.
        let object = Object::new(made, |it| unsafe { (table.close_writer)(it) });
        let guid = self.checked_name(object.name(table.writer_name))?;
        Ok(Box::new(Writer { object, guid, table, ear: None }))
    }

    fn reader(&self, spec: &EndpointSpec<'_>) -> Result<Box<dyn EngineReader>> {
        let table = self.plugin.table;
        let made = self.open(spec, table.open_reader)?;
        // SAFETY: as above.
        let object = Object::new(made, |it| unsafe { (table.close_reader)(it) });
        let guid = self.checked_name(object.name(table.reader_name))?;
        Ok(Box::new(Reader { object, guid, table, ear: None }))
    }

    fn watch(&self, listener: &Arc<dyn Listener>) -> Result<Box<dyn tsuji_engine::Watch>> {
        let table = self.plugin.table;
        let ear = EarBox::new(Arc::clone(listener));
        let made = made(
            "watch the domain",
            &self.plugin,
            table.open_watch as *const (),
            |place, problem| {
                self.object.with(gone, |participant| {
                    // SAFETY: the ear stays until the watch is closed.
                    unsafe { (table.open_watch)(participant, ear.as_ptr(), place, problem) }
                })
            },
        )?;
        // SAFETY: as above.
        let object = Object::new(made, |it| unsafe { (table.close_watch)(it) });
        Ok(Box::new(Watch { object, table, ear: Some(ear) }))
    }
}

/// An object of a plug-in, closed with [`close`](Self::close). Whoever still looks at it then finds
/// nothing.
struct Object<T> {
    /// Held for reading during a call, for writing when it is taken out to be closed.
    object: RwLock<Option<NonNull<T>>>,
    close: Box<dyn Fn(*mut T) + Send + Sync>,
    /// A forked child has no threads of the engine.
    generation: Generation,
    _of: PhantomData<T>,
}

// SAFETY: the functions of a plug-in may be called from any thread.
unsafe impl<T> Send for Object<T> {}
// SAFETY: as above, and for one object at once.
unsafe impl<T> Sync for Object<T> {}

impl<T> Object<T> {
    fn new(object: NonNull<T>, close: impl Fn(*mut T) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            object: RwLock::new(Some(object)),
            close: Box::new(close),
            generation: Generation::current(),
            _of: PhantomData,
        })
    }

    /// What `call` answers, or `gone` where the object is no more, or is not to be called any more.
    fn with<R>(&self, gone: impl FnOnce() -> R, call: impl FnOnce(*mut T) -> R) -> R {
        if !self.generation.is_current() {
            return gone();
        }
        let Some(_call) = Call::enter() else { return gone() };
        let object = self.object.read().unwrap_or_else(PoisonError::into_inner);
        object.map_or_else(gone, |object| call(object.as_ptr()))
    }

    fn name(&self, name: unsafe extern "C" fn(*const T, *mut u8)) -> Guid {
        let mut guid = [0; abi::NAME_BYTES];
        // SAFETY: the object is there, and a name fits.
        self.with(|| (), |object| unsafe { name(object, guid.as_mut_ptr()) });
        guid
    }

    fn matches(
        &self,
        each: unsafe extern "C" fn(*const T, *mut c_void, abi::Each) -> i32,
    ) -> Vec<Guid> {
        foreign::names(|arg, each_name| {
            // SAFETY: the function is called during the call.
            self.with(gone, |object| unsafe { each(object, arg, each_name) });
        })
    }

    /// Closes it before its ear is gone. Where it may still call back, the ear stays for ever.
    fn close_before(&self, ear: &mut Option<EarBox>) {
        if !self.close() {
            mem::forget(ear.take());
        }
    }

    /// Closes it, and answers whether nothing calls back from it any more. Where the process exits it is left as it is, and may.
    fn close(&self) -> bool {
        if !self.generation.is_current() {
            return true;
        }
        let Some(_call) = Call::enter() else { return false };
        // Waits for calls that are under way. Callbacks that still run find nothing from here on.
        let object = self.object.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(object) = object {
            (self.close)(object.as_ptr());
        }
        true
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        self.close();
    }
}

fn gone() -> i32 {
    abi::CLOSED
}

struct Writer {
    object: Arc<Object<abi::Writer>>,
    guid: Guid,
    table: &'static Table,
    ear: Option<EarBox>,
}

impl EngineWriter for Writer {
    fn guid(&self) -> Guid {
        self.guid
    }

    fn listen(&mut self, listener: Arc<dyn Listener>) -> Result<()> {
        let ear = self.ear.insert(EarBox::new(listener));
        let listened = self.object.with(gone, |writer| {
            // SAFETY: the ear stays until the writer is closed.
            unsafe { (self.table.listen_writer)(writer, ear.as_ptr()) }
        });
        checked("listen", listened, "").map(drop)
    }

    fn write(&self, bytes: &Bytes, source_ns: i64) -> Result<()> {
        self.write_as(bytes, source_ns, ptr::null())
    }

    fn write_related(&self, bytes: &Bytes, source_ns: i64, related: Related) -> Result<()> {
        let related = abi::Related { name: related.name, number: related.number };
        self.write_as(bytes, source_ns, &raw const related)
    }

    fn is_acknowledged(&self) -> bool {
        // SAFETY: the writer is there.
        self.object.with(|| 1, |writer| unsafe { (self.table.acknowledged)(writer, 0) }) != 0
    }

    fn wait_for_acknowledgements(&self, timeout: Duration) {
        let timeout = i64::try_from(timeout.as_nanos()).unwrap_or(abi::INFINITE);
        // SAFETY: the writer is there. Whatever it answers, the caller looks again.
        self.object.with(gone, |writer| unsafe { (self.table.acknowledged)(writer, timeout) });
    }

    fn peep(&self) -> Arc<dyn tsuji_engine::Peep> {
        Arc::new(Peep { object: Arc::clone(&self.object), table: self.table })
    }
}

impl Writer {
    /// `related` is null, or of what the sample relates to.
    fn write_as(&self, bytes: &Bytes, source_ns: i64, related: *const abi::Related) -> Result<()> {
        let written = self.object.with(gone, |writer| {
            let (data, size, owner) = (bytes.as_ptr(), bytes.len(), foreign::hold(bytes));
            let write = self.table.write;
            // SAFETY: the bytes stay as they are while `owner` holds them, and the caller's `related` is
            // there during the call.
            unsafe { write(writer, data, size, source_ns, related, owner, foreign::let_go) }
        });
        checked("send", written, "").map(drop)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Those who peep may keep the object for longer.
        self.object.close_before(&mut self.ear);
    }
}

struct Peep {
    object: Arc<Object<abi::Writer>>,
    table: &'static Table,
}

impl tsuji_engine::Peep for Peep {
    fn matches(&self) -> Vec<Guid> {
        self.object.matches(self.table.writer_matches)
    }
}

struct Reader {
    object: Arc<Object<abi::Reader>>,
    guid: Guid,
    table: &'static Table,
    ear: Option<EarBox>,
}

impl EngineReader for Reader {
    fn guid(&self) -> Guid {
        self.guid
    }

    fn listen(&mut self, listener: Arc<dyn Listener>) -> Result<()> {
        let ear = self.ear.insert(EarBox::new(listener));
        let listened = self.object.with(gone, |reader| {
            // SAFETY: the ear stays until the reader is closed.
            unsafe { (self.table.listen_reader)(reader, ear.as_ptr()) }
        });
        checked("listen", listened, "").map(drop)
    }

    fn tap(&self) -> Arc<dyn tsuji_engine::Tap> {
        Arc::new(Tap { object: Arc::clone(&self.object), table: self.table })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // As with writers.
        self.object.close_before(&mut self.ear);
    }
}

struct Tap {
    object: Arc<Object<abi::Reader>>,
    table: &'static Table,
}

impl tsuji_engine::Tap for Tap {
    fn matches(&self) -> Vec<Guid> {
        self.object.matches(self.table.reader_matches)
    }

    fn take(&self) -> Result<Option<Arrived>> {
        let mut taken = MaybeUninit::<abi::Taken>::zeroed();
        // SAFETY: the reader is there, and the place is filled when the answer is 1.
        let answer = self
            .object
            .with(gone, |reader| unsafe { (self.table.take)(reader, taken.as_mut_ptr()) });
        if checked("take", answer, "")? == 0 {
            return Ok(None);
        }
        // SAFETY: as above; and all zero is a value too.
        let taken = unsafe { taken.assume_init() };
        // Nonsense is an empty sample, which is counted as invalid, and the next ones are taken.
        let is_sane = taken.data_size as u64 <= self.table.sample_bytes_max;
        let (start, len) = match NonNull::new(taken.data.cast_mut()) {
            Some(start) if is_sane => (start, taken.data_size),
            _ => (NonNull::dangling(), 0),
        };
        // SAFETY: the sample holds the bytes, which nobody changes any more.
        let bytes = unsafe { foreign::bytes(start, len, taken.sample, self.table.sample_free) };
        let abi::Related { name, number } = taken.related;
        let related = (name != Guid::default()).then_some(Related { name, number });
        let (writer, number, source_ns) = (taken.writer, taken.number, taken.source_ns);
        Ok(Some(Arrived { writer, number, source_ns, is_headed: false, related, bytes }))
    }
}

struct Watch {
    object: Arc<Object<abi::Watch>>,
    table: &'static Table,
    ear: Option<EarBox>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.object.close_before(&mut self.ear);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

impl tsuji_engine::Watch for Watch {
    fn take(&self) -> Vec<Found> {
        let mut all = Vec::new();
        loop {
            let answer = self.object.with(gone, |watch| {
                let mut found = MaybeUninit::<abi::Found>::zeroed();
                // SAFETY: the watch is there, and the place is filled when the answer is 1.
                let answer = unsafe { (self.table.found)(watch, found.as_mut_ptr()) };
                if 0 < answer {
                    // SAFETY: as above; and all zero is a value too.
                    let mut found = unsafe { found.assume_init() };
                    // SAFETY: it is valid until it is freed, which is done once.
                    unsafe {
                        all.extend(read_found(&found));
                        (self.table.found_free)(&raw mut found);
                    }
                }
                answer
            });
            // An error here means that the participant is about to go.
            if answer <= 0 {
                return all;
            }
        }
    }
}

/// What was found; nothing, if it is of a kind that is not known.
///
/// # Safety
///
/// Its texts are null or end with a nul, and its user data are as many as it says.
unsafe fn read_found(found: &abi::Found) -> Option<Found> {
    let name = Gid(found.name);
    // SAFETY: the caller promises it.
    let said = |it| unsafe { text(it) };
    let user_data = match NonNull::new(found.user_data.cast_mut()) {
        // SAFETY: as above.
        Some(start) => unsafe {
            std::slice::from_raw_parts(start.as_ptr(), found.user_data_size).to_vec()
        },
        None => Vec::new(),
    };
    Some(match found.kind {
        abi::FOUND_GONE => Found::Gone(name),
        abi::FOUND_PARTICIPANT => Found::Participant(FoundParticipant {
            name,
            vendor: found.vendor,
            user_data,
            host: said(found.host),
            program: said(found.program),
            pid: Some(found.pid).filter(|pid| *pid != 0),
        }),
        abi::FOUND_WRITER | abi::FOUND_READER => Found::Endpoint(FoundEndpoint {
            name,
            participant: participant_of(name),
            is_writer: found.kind == abi::FOUND_WRITER,
            topic: said(found.topic).unwrap_or_default(),
            type_name: said(found.type_name).unwrap_or_default(),
            user_data,
            qos: announced(&found.qos),
        }),
        _ => return None,
    })
}

fn offered(qos: &Qos, keep_all_max: u32) -> abi::Qos {
    let (history, depth) = match qos.history {
        History::KeepLast(depth) => (abi::KEEP_LAST, depth.max(1)),
        History::KeepAll => (abi::KEEP_ALL, 0),
    };
    let nanos = |it: Option<Duration>| {
        it.map_or(abi::INFINITE, |it| i64::try_from(it.as_nanos()).unwrap_or(abi::INFINITE))
    };
    abi::Qos {
        reliability: match qos.reliability {
            Reliability::BestEffort => abi::BEST_EFFORT,
            Reliability::Reliable => abi::RELIABLE,
        },
        durability: match qos.durability {
            Durability::Volatile => abi::VOLATILE,
            Durability::TransientLocal => abi::TRANSIENT_LOCAL,
        },
        history,
        depth,
        keep_all_max: keep_all_max.max(1),
        liveliness: match qos.liveliness {
            Liveliness::Automatic => abi::AUTOMATIC,
            Liveliness::ManualByTopic => abi::MANUAL_BY_TOPIC,
        },
        deadline_ns: nanos(qos.deadline),
        lifespan_ns: nanos(qos.lifespan),
        lease_ns: nanos(qos.liveliness_lease),
    }
}

fn announced(qos: &abi::Qos) -> WireQos {
    WireQos {
        reliability: match qos.reliability {
            abi::RELIABLE => Reliability::Reliable,
            _ => Reliability::BestEffort,
        },
        durability: match qos.durability {
            abi::TRANSIENT_LOCAL => WireDurability::TransientLocal,
            abi::TRANSIENT => WireDurability::Transient,
            abi::PERSISTENT => WireDurability::Persistent,
            _ => WireDurability::Volatile,
        },
        history: match qos.history {
            abi::KEEP_LAST => Some(History::KeepLast(qos.depth)),
            abi::KEEP_ALL => Some(History::KeepAll),
            _ => None,
        },
        deadline: from_nanoseconds(qos.deadline_ns),
        lifespan: from_nanoseconds(qos.lifespan_ns),
        liveliness: match qos.liveliness {
            abi::MANUAL_BY_PARTICIPANT => WireLiveliness::ManualByParticipant,
            abi::MANUAL_BY_TOPIC => WireLiveliness::ManualByTopic,
            _ => WireLiveliness::Automatic,
        },
        lease: from_nanoseconds(qos.lease_ns),
    }
}

unsafe extern "C" fn log(is_error: u32, said: *const c_char) {
    // SAFETY: it is null or ends with a nul, as the ABI has it.
    let Some(said) = (unsafe { text(said) }) else { return };
    // The library may hold locks of its own, and whoever takes events may ask anything.
    deferred::elsewhere(move || {
        if is_error == 0 {
            report::warn!(target: "transport", "{}", said.trim_end());
        } else {
            report::error!(target: "transport", "{}", said.trim_end());
        }
    });
}

/// The object that `make` puts into its place.
fn made<T>(
    operation: &'static str,
    plugin: &Plugin,
    by: *const (),
    make: impl FnOnce(*mut *mut T, *mut c_char) -> i32,
) -> Result<NonNull<T>> {
    let mut problem = [0_u8; abi::PROBLEM_BYTES];
    let mut place = ptr::null_mut();
    let answer = make(&raw mut place, problem.as_mut_ptr().cast());
    let said = match CStr::from_bytes_until_nul(&problem) {
        Ok(said) => said.to_string_lossy(),
        Err(_) => String::from_utf8_lossy(&problem),
    };
    let name = plugin.about().id.as_str();
    let about = if said.is_empty() { name.to_owned() } else { format!("{name}: {said}") };
    checked(operation, answer, &about)?;
    exit::keep_out_before_destructors(by);
    NonNull::new(place).ok_or_else(|| {
        Error::new(ErrorKind::Unexpected, operation).about(format!("{name} answers nothing"))
    })
}

/// The answer, unless it is an error.
fn checked(operation: &'static str, answer: i32, about: &str) -> Result<i32> {
    if 0 <= answer {
        return Ok(answer);
    }
    let kind = match answer {
        abi::BUSY => ErrorKind::Busy,
        abi::CLOSED => ErrorKind::Closed,
        abi::TOO_LARGE => ErrorKind::TooLarge,
        abi::UNSUPPORTED => ErrorKind::Unsupported,
        abi::INVALID => ErrorKind::Invalid,
        abi::EXHAUSTED => ErrorKind::Exhausted,
        _ => ErrorKind::Unexpected,
    };
    let error = Error::new(kind, operation);
    Err(if about.is_empty() { error } else { error.about(about) })
}

fn c_string(operation: &'static str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|error| Error::new(ErrorKind::Invalid, operation).because(error))
}

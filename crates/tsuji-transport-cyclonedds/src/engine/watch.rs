//! What the engine finds on the network, taken from its readers of what is built in.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

use tsuji_core::{History, Reliability};
use tsuji_engine::foreign::EarBox;
use tsuji_engine::{Listener, participant_of};
use tsuji_transport::wire::{
    Found, FoundEndpoint, FoundParticipant, WireDurability, WireLiveliness, WireQos,
    from_nanoseconds,
};
use tsuji_transport::{Gid, Result};

use super::{Deleted, checked, end_ear};
use crate::ffi::{self, Entity};

/// Finds participants, writers and readers, those of its own participant too.
pub(crate) struct Watch {
    participants: Watcher,
    writers: Watcher,
    readers: Watcher,
}

impl Watch {
    pub(super) fn new(participant: Entity, listener: &Arc<dyn Listener>) -> Result<Self> {
        let watcher = |watched| Watcher::new(participant, watched, Arc::clone(listener));
        Ok(Self {
            participants: watcher(ffi::PARTICIPANTS)?,
            writers: watcher(ffi::WRITERS)?,
            readers: watcher(ffi::READERS)?,
        })
    }
}

impl tsuji_engine::Watch for Watch {
    /// Participants are taken last: then that of each endpoint is here, or gone already.
    fn take(&self) -> Vec<Found> {
        let endpoints = [self.writers.take(), self.readers.take()].concat();
        let mut found = self.participants.take();
        found.extend(endpoints);
        found
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

struct Watcher {
    watched: c_int,
    ear: Option<EarBox>,
    entity: Deleted,
}

impl Watcher {
    fn new(participant: Entity, watched: c_int, listener: Arc<dyn Listener>) -> Result<Self> {
        // SAFETY: the participant exists.
        let made = unsafe { ffi::tcy_watch(participant, watched) };
        let entity = Deleted::new(checked("watch the domain", made)?);
        let ear = EarBox::new(listener);
        // SAFETY: the ear stays until the callbacks have ended.
        let result = unsafe { ffi::tcy_listen_reader(entity.entity, ear.as_ptr()) };
        let watcher = Self { watched, ear: Some(ear), entity };
        checked("listen", result)?;
        Ok(watcher)
    }

    fn take(&self) -> Vec<Found> {
        let mut all = Vec::new();
        loop {
            let mut taken = MaybeUninit::uninit();
            // SAFETY: the reader exists and watches that. It is filled when the answer is 1.
            let result = unsafe {
                ffi::tcy_take_found(self.entity.entity, self.watched, taken.as_mut_ptr())
            };
            // An error here means that the participant is about to go.
            if result != 1 {
                return all;
            }
            // SAFETY: as above.
            let taken = TakenBox(unsafe { taken.assume_init() });
            all.push(taken.read(self.watched));
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        end_ear(&self.entity, self.ear.take());
    }
}

/// What was taken, which the engine's allocator has made.
struct TakenBox(ffi::Found);

impl Drop for TakenBox {
    fn drop(&mut self) {
        // SAFETY: it was taken, and is freed once.
        unsafe { ffi::tcy_found_free(&raw mut self.0) };
    }
}

impl TakenBox {
    fn read(&self, watched: c_int) -> Found {
        let it = &self.0;
        let name = Gid(it.guid);
        if !it.is_alive {
            return Found::Gone(name);
        }
        let qos = QosView(it.qos);
        if watched == ffi::PARTICIPANTS {
            // A name begins with the vendor of those who know it from elsewhere too, such as this one.
            let vendor = if it.vendor == [0; 2] { [it.guid[0], it.guid[1]] } else { it.vendor };
            return Found::Participant(qos.participant(name, vendor));
        }
        // SAFETY: of an endpoint that is there both are strings, or null.
        let (topic, type_name) = unsafe { (string(it.topic), string(it.type_name)) };
        Found::Endpoint(FoundEndpoint {
            name,
            participant: participant_of(name),
            is_writer: watched == ffi::WRITERS,
            topic,
            type_name,
            user_data: qos.user_data(),
            qos: qos.wire(),
        })
    }
}

/// A string of the engine, in which what is not UTF-8 is replaced.
///
/// # Safety
/// It is null, or a string that ends with a nul.
unsafe fn string(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A QoS that was announced. It lives as long as what it was taken with.
#[derive(Clone, Copy)]
struct QosView(*const ffi::Qos);

impl QosView {
    fn participant(self, name: Gid, vendor: [u8; 2]) -> FoundParticipant {
        FoundParticipant {
            name,
            vendor,
            user_data: self.user_data(),
            host: self.property(c"__Hostname"),
            program: self.property(c"__ProcessName"),
            pid: self.property(c"__Pid").and_then(|pid| pid.parse().ok()),
        }
    }

    fn user_data(self) -> Vec<u8> {
        let (mut value, mut len) = (ptr::null_mut::<c_void>(), 0);
        // SAFETY: the QoS is valid. It answers a copy of so many bytes, or null.
        let is_said = unsafe { ffi::dds_qget_userdata(self.0, &raw mut value, &raw mut len) };
        if !is_said || value.is_null() {
            return Vec::new();
        }
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), len) }.to_vec();
        // SAFETY: the copy is this function's.
        unsafe { ffi::dds_free(value) };
        bytes
    }

    fn property(self, name: &CStr) -> Option<String> {
        let mut value = ptr::null_mut();
        // SAFETY: the QoS and the name are valid. It answers a copy of a string, or null.
        let is_said = unsafe { ffi::dds_qget_prop(self.0, name.as_ptr(), &raw mut value) };
        // SAFETY: as above.
        let text = is_said.then(|| unsafe { string(value) });
        // SAFETY: the copy is this function's. Null is nothing to free.
        unsafe { ffi::dds_free(value.cast()) };
        text
    }

    /// What the announcement leaves out, the engine has filled in with the defaults of DDS.
    fn wire(self) -> WireQos {
        WireQos {
            reliability: self.reliability(),
            durability: self.durability(),
            history: self.history(),
            deadline: from_nanoseconds(self.deadline()),
            lifespan: from_nanoseconds(self.lifespan()),
            liveliness: self.liveliness().0,
            lease: from_nanoseconds(self.liveliness().1),
        }
    }

    fn reliability(self) -> Reliability {
        let (mut kind, mut blocking_max) = (ffi::BEST_EFFORT, 0);
        // SAFETY: the QoS is valid; what it does not say stays as it is. So below.
        unsafe { ffi::dds_qget_reliability(self.0, &raw mut kind, &raw mut blocking_max) };
        if kind == ffi::RELIABLE { Reliability::Reliable } else { Reliability::BestEffort }
    }

    fn durability(self) -> WireDurability {
        let mut kind = ffi::VOLATILE;
        // SAFETY: as above.
        unsafe { ffi::dds_qget_durability(self.0, &raw mut kind) };
        match kind {
            ffi::TRANSIENT_LOCAL => WireDurability::TransientLocal,
            ffi::TRANSIENT => WireDurability::Transient,
            ffi::PERSISTENT => WireDurability::Persistent,
            _ => WireDurability::Volatile,
        }
    }

    fn history(self) -> Option<History> {
        let (mut kind, mut depth) = (ffi::KEEP_LAST, 0);
        // SAFETY: as above.
        let is_said = unsafe { ffi::dds_qget_history(self.0, &raw mut kind, &raw mut depth) };
        let depth = u32::try_from(depth).unwrap_or(0);
        let history =
            if kind == ffi::KEEP_ALL { History::KeepAll } else { History::KeepLast(depth) };
        is_said.then_some(history)
    }

    fn deadline(self) -> i64 {
        let mut deadline = ffi::INFINITE;
        // SAFETY: as above.
        unsafe { ffi::dds_qget_deadline(self.0, &raw mut deadline) };
        deadline
    }

    fn lifespan(self) -> i64 {
        let mut lifespan = ffi::INFINITE;
        // SAFETY: as above.
        unsafe { ffi::dds_qget_lifespan(self.0, &raw mut lifespan) };
        lifespan
    }

    fn liveliness(self) -> (WireLiveliness, i64) {
        let (mut kind, mut lease) = (ffi::AUTOMATIC, ffi::INFINITE);
        // SAFETY: as above.
        unsafe { ffi::dds_qget_liveliness(self.0, &raw mut kind, &raw mut lease) };
        let kind = match kind {
            ffi::MANUAL_BY_PARTICIPANT => WireLiveliness::ManualByParticipant,
            ffi::MANUAL_BY_TOPIC => WireLiveliness::ManualByTopic,
            _ => WireLiveliness::Automatic,
        };
        (kind, lease)
    }
}

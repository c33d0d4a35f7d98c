//! The engine without tsuji: for measuring what tsuji adds, and for nothing else.
//!
//! The same library, tuned by the same configuration, with samples of the same raw CDR. A reader is
//! taken from by the thread that wants the samples, which sleeps in a wait set of Cyclone DDS. Nothing
//! here finds endpoints of tsuji, numbers samples or waits for room.

use std::ffi::c_void;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

use tsuji_core::Qos;
use tsuji_engine::{EndpointSpec, EngineWriter as _};
use tsuji_transport::Result;

use crate::config::{self, CycloneConfig};
use crate::engine::{self, CycloneReader, CycloneWriter, checked};
use crate::ffi::{self, Entity};

/// One participant of a DDS domain.
#[derive(Debug)]
pub struct Participant(engine::Participant);

impl Participant {
    /// Joins the domain, tuned as tsuji tunes.
    pub fn join(config: &CycloneConfig) -> Result<Self> {
        let peers = config.resolve_peers()?;
        let xml = config.to_xml(&peers, config::receive_buffer_bytes_max(), config::Ports::OfIndex);
        engine::Participant::join(&xml, &config.user_data, None, config.security.as_ref()).map(Self)
    }

    /// A writer on a topic of the network.
    pub fn writer(&self, topic: &str, type_name: &str, qos: &Qos) -> Result<Writer> {
        self.0.writer(&spec(topic, type_name, qos)).map(Writer)
    }

    /// A reader on a topic of the network, with a wait set of its own.
    pub fn reader(&self, topic: &str, type_name: &str, qos: &Qos) -> Result<Reader> {
        let engine = self.0.reader(&spec(topic, type_name, qos))?;
        let reader = engine.entity();
        // SAFETY: the reader exists, and with it its participant. What is made here ends with the
        // participant.
        let wait_set = unsafe {
            let wait_set = ffi::dds_create_waitset(ffi::dds_get_participant(reader));
            let wait_set = checked("create a wait set", wait_set)?;
            let condition = ffi::dds_create_readcondition(reader, ffi::ANY_STATE);
            let condition = checked("create a read condition", condition)?;
            checked("attach", ffi::dds_waitset_attach(wait_set, condition, 0))?;
            wait_set
        };
        Ok(Reader { engine, wait_set })
    }
}

fn spec<'a>(topic: &'a str, type_name: &'a str, qos: &'a Qos) -> EndpointSpec<'a> {
    EndpointSpec { topic, type_name, is_keyed: false, qos, keep_all_max: 1, user_data: &[] }
}

/// Writes samples.
pub struct Writer(CycloneWriter);

impl Writer {
    /// Writes CDR with its header of 4 bytes, without a copy: it is shared until the readers have
    /// acknowledged it.
    pub fn write(&self, sample: &Arc<Vec<u8>>) -> Result<()> {
        let (data, len) = (sample.as_ptr(), sample.len());
        let owner = Arc::into_raw(Arc::clone(sample)).cast_mut().cast::<c_void>();
        let (entity, now_ns) = (self.0.entity(), tsuji_platform::clock::wall_ns());
        // SAFETY: the bytes stay as they are while they are shared, until `release` has been called.
        let result =
            unsafe { ffi::tcy_write(entity, data, len, now_ns, ptr::null(), owner, release_vec) };
        checked("send", result).map(drop)
    }

    /// How many readers match.
    pub fn matched(&self) -> usize {
        self.0.peep().matches().len()
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

unsafe extern "C" fn release_vec(owner: *mut c_void) {
    // SAFETY: it is the reference that `write` gave away, which is released once.
    drop(unsafe { Arc::from_raw(owner.cast_const().cast::<Vec<u8>>()) });
}

/// Sleeps until samples are there, and takes them.
pub struct Reader {
    engine: CycloneReader,
    wait_set: Entity,
}

impl Reader {
    /// Sleeps until there is something to take, or for `timeout`.
    pub fn wait(&self, timeout: Duration) -> Result<()> {
        let timeout = i64::try_from(timeout.as_nanos()).unwrap_or(ffi::INFINITE);
        let mut attached = [0; 1];
        // SAFETY: the wait set exists, and the array has room for one.
        let result =
            unsafe { ffi::dds_waitset_wait(self.wait_set, attached.as_mut_ptr(), 1, timeout) };
        checked("wait", result).map(drop)
    }

    /// The next sample, if there is one.
    pub fn take(&self) -> Result<Option<Taken>> {
        let mut taken = MaybeUninit::<ffi::Taken>::uninit();
        // SAFETY: the reader exists, and it is filled when the answer is 1.
        let result = unsafe { ffi::tcy_take(self.engine.entity(), taken.as_mut_ptr()) };
        if checked("take", result)? == 0 {
            return Ok(None);
        }
        // SAFETY: as above.
        let taken = unsafe { taken.assume_init() };
        let parts = NonNull::new(taken.sample).zip(NonNull::new(taken.data.cast_mut()));
        Ok(parts.map(|(sample, data)| Taken { sample, data, len: taken.len }))
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

/// A sample in the engine's memory, which it has back when this is dropped.
pub struct Taken {
    sample: NonNull<c_void>,
    data: NonNull<u8>,
    len: usize,
}

impl Deref for Taken {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the sample holds so many bytes, which nobody changes.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: it is freed once, and nobody looks at its bytes any more.
        unsafe { ffi::tcy_sample_free(self.sample.as_ptr()) };
    }
}

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Taken({})", self.len)
    }
}

//! Recordings: MCAP files and the folders of rosbag2, as messages of the classes that programs know.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyLookupError, PyOSError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use self_cell::{MutBorrow, self_cell};
use tsuji::Bytes;
use tsuji_record::{
    Compression, ErrorKind, Messages as RawMessages, RecordedMessage as RawMessage,
    Recording as RawRecording, RecordingWriter as RawWriter,
};
use tsuji_transport::Owner;

use crate::message::{Message, Place};
use crate::qos::{Qos, qos_of};
use crate::types::{Plan, plan_of};
use crate::waiting::lock;

/// Opens a recording: an MCAP file, or a folder as rosbag2 writes it. With `mapped`, messages that are not packed are views of the
/// file, which is mapped into memory: the fastest way to large ones. Their checksums are not compared, and what others
/// write into the file is seen. Where it is made shorter meanwhile, what is gone reads as zeros, and the iteration ends with
/// an `OSError`; a handler of SIGBUS that the program sets afterwards takes that protection away. Each iteration maps the file once more
/// as long as its messages are held, at most 1024 at a time.
#[pyfunction]
#[pyo3(signature = (path, *, mapped = false))]
pub(crate) fn open_recording(py: Python<'_>, path: PathBuf, mapped: bool) -> PyResult<Recording> {
    if !path.exists() {
        return Err(PyFileNotFoundError::new_err(format!("{}: it is not there", path.display())));
    }
    let opened = py.detach(|| opened(&path, mapped)).map_err(raised)?;
    let topics = topics_of(&opened);
    let summary = opened.summary();
    let (first_ns, last_ns, count) = (summary.first_ns, summary.last_ns, summary.messages);
    let damages = summary.damages.iter().map(ToString::to_string).collect();
    Ok(Recording { path, is_mapped: mapped, topics, first_ns, last_ns, count, damages })
}

fn opened(path: &Path, is_mapped: bool) -> tsuji_record::Result<RawRecording> {
    match is_mapped {
        true => RawRecording::open_mapped(path),
        false => RawRecording::open(path),
    }
}

fn topics_of(opened: &RawRecording) -> Arc<[Topic]> {
    let topics = opened.topics().iter().map(|topic| Topic {
        name: topic.full_name().into_owned(),
        type_name: topic.type_name.clone(),
        messages: topic.messages,
        offered: topic.offered.iter().copied().map(Qos).collect(),
        plan: match (&topic.unplayable, topic.definition()) {
            (Some(why), _) => Err(why.clone()),
            (None, Some(text)) => match tsuji_msg::load_full_text(&topic.type_name, text) {
                Ok(ty) => Ok(Plan::of(&ty)),
                Err(error) => Plan::named(&topic.type_name).map_err(|_| error.to_string()),
            },
            (None, None) => Plan::named(&topic.type_name).map_err(|error| error.to_string()),
        },
    });
    topics.collect()
}

struct Topic {
    name: String,
    type_name: String,
    messages: u64,
    offered: Vec<Qos>,
    /// Or why its messages cannot be read.
    plan: Result<Arc<Plan>, String>,
}

/// A recording. Iterating over it gives its messages in the order of their times.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct Recording {
    path: PathBuf,
    is_mapped: bool,
    topics: Arc<[Topic]>,
    first_ns: u64,
    last_ns: u64,
    count: u64,
    damages: Vec<String>,
}

#[pymethods]
impl Recording {
    /// Each topic, with its type and how many messages of it there are.
    #[getter]
    fn topics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for topic in &*self.topics {
            dict.set_item(&topic.name, (&topic.type_name, topic.messages))?;
        }
        Ok(dict)
    }

    /// Of each topic what its publishers offered, one for each of them that the recording tells.
    #[getter]
    fn offered_qos<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for topic in &*self.topics {
            dict.set_item(&topic.name, topic.offered.clone())?;
        }
        Ok(dict)
    }

    /// When the first message was received, in seconds since 1970.
    #[getter]
    fn start(&self) -> f64 {
        in_seconds(self.first_ns)
    }

    /// When the last message was received, in seconds since 1970.
    #[getter]
    fn end(&self) -> f64 {
        in_seconds(self.last_ns)
    }

    /// Damage found in the files, a text for each place.
    #[getter]
    fn damages(&self) -> Vec<String> {
        self.damages.clone()
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Messages> {
        self.messages(py, None, None, None)
    }

    /// The messages of these topics, or of all, from one time to another, both in seconds since 1970 as `start` and `end` are.
    #[pyo3(signature = (topics = None, *, start = None, end = None))]
    fn messages(
        &self,
        py: Python<'_>,
        topics: Option<&Bound<'_, PyAny>>,
        start: Option<f64>,
        end: Option<f64>,
    ) -> PyResult<Messages> {
        let names = match topics {
            None => None,
            Some(one) => Some(match one.extract::<String>() {
                Ok(name) => vec![name],
                Err(_) => one.extract::<Vec<String>>()?,
            }),
        };
        for name in names.iter().flatten() {
            if !self.topics.iter().any(|it| it.name == *name) {
                let known: Vec<&str> = self.topics.iter().map(|it| it.name.as_str()).collect();
                let text = format!("no topic {name}; allowed: {}", known.join(", "));
                return Err(PyLookupError::new_err(text));
            }
        }
        let opened = py.detach(|| opened(&self.path, self.is_mapped)).map_err(raised)?;
        // It may have grown since it was opened.
        let known = topics_of(&opened);
        let is_wanted = |topic: &Topic| names.as_ref().is_none_or(|it| it.contains(&topic.name));
        let wanted = known.iter().map(is_wanted).collect();
        // Seconds do not tell nanoseconds of today apart: what is at the same second as they say it is within.
        let from_ns = start.map_or(0, |it| (it * 1e9).max(0.0) as u64).saturating_sub(1000);
        let reading =
            Reading::new(MutBorrow::new(opened), |opened| opened.borrow_mut().messages(from_ns));
        Ok(Messages {
            reading: Mutex::new(reading),
            topics: known,
            wanted,
            start: start.unwrap_or(f64::NEG_INFINITY),
            end: end.unwrap_or(f64::INFINITY),
        })
    }

    fn __repr__(&self) -> String {
        let seconds = in_seconds(self.last_ns.saturating_sub(self.first_ns));
        let (path, topics) = (self.path.display(), self.topics.len());
        format!("<recording {path}: {} messages of {topics} topics in {seconds:.3} s>", self.count)
    }
}

self_cell! {
    struct Reading {
        owner: MutBorrow<RawRecording>,

        #[not_covariant]
        dependent: RawMessages,
    }
}

/// The messages of a recording, one after the other.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct Messages {
    reading: Mutex<Reading>,
    topics: Arc<[Topic]>,
    wanted: Vec<bool>,
    start: f64,
    end: f64,
}

/// As programs have it.
fn in_seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[pymethods]
impl Messages {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RecordedMessage>> {
        let next = py.detach(|| {
            let mut reading = lock(&self.reading);
            reading.with_dependent_mut(|_, messages| {
                loop {
                    match messages.next() {
                        Some(Ok(message)) if self.end < in_seconds(message.log_ns) => return None,
                        Some(Ok(message))
                            if !self.wanted[message.topic]
                                || in_seconds(message.log_ns) < self.start => {}
                        other => return other,
                    }
                }
            })
        });
        let Some(message) = next else { return Ok(None) };
        let message = message.map_err(raised)?;
        Ok(Some(RecordedMessage {
            topics: Arc::clone(&self.topics),
            topic: message.topic,
            time_ns: message.log_ns,
            bytes: bytes_of(message),
            message: PyOnceLock::new(),
        }))
    }
}

/// The bytes of a message, where they were read.
fn bytes_of(message: RawMessage) -> Bytes {
    let data = message.data();
    struct Kept(#[expect(dead_code, reason = "it is held, and not looked at")] RawMessage);
    impl Owner for Kept {
        fn as_any(&self) -> &dyn Any {
            self
        }
    }
    let (start, len) = (NonNull::from(data).cast(), data.len());
    // SAFETY: the data stays where it is as long as the message is there, and nobody in this process writes to it. Others may write to a
    // file that is mapped, as to memory that processes share.
    unsafe { Bytes::from_owner(Arc::new(Kept(message)), start, len) }
}

/// A message of a recording, with its topic and time.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct RecordedMessage {
    topics: Arc<[Topic]>,
    topic: usize,
    /// When it was received, in nanoseconds since 1970.
    #[pyo3(get)]
    time_ns: u64,
    bytes: Bytes,
    message: PyOnceLock<Py<PyAny>>,
}

#[pymethods]
impl RecordedMessage {
    /// The topic's name.
    #[getter]
    fn topic(&self) -> &str {
        &self.topics[self.topic].name
    }

    /// When it was received, in seconds since 1970.
    #[getter]
    fn time(&self) -> f64 {
        in_seconds(self.time_ns)
    }

    /// The message, of the class of its type.
    #[getter]
    fn message<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let topic = &self.topics[self.topic];
        let plan = topic.plan.as_ref();
        let plan = plan.map_err(|why| PyValueError::new_err(format!("{}: {why}", topic.name)))?;
        let made = self.message.get_or_try_init(py, || {
            let place = Place::whole(self.bytes.clone());
            Message::received(py, plan, place, None).map(Bound::unbind)
        })?;
        Ok(made.bind(py).clone())
    }

    /// The message as it was serialised.
    #[getter]
    fn data(&self) -> &[u8] {
        &self.bytes
    }

    fn __repr__(&self) -> String {
        let topic = &self.topics[self.topic];
        format!("<{} of {} at {:.6} s>", topic.type_name, topic.name, self.time())
    }
}

/// Writes a recording as an MCAP file, which rosbag2 and other tools read. A message is safe from the end of the process a
/// second after it was written.
#[pyclass(frozen, module = "tsuji")]
pub(crate) struct RecordingWriter(RawWriter);

#[pymethods]
impl RecordingWriter {
    /// Creates the file, which must not exist. `compression` is zstd, lz4 or None.
    #[new]
    #[pyo3(signature = (path, *, compression = Some("zstd")))]
    fn new(py: Python<'_>, path: PathBuf, compression: Option<&str>) -> PyResult<Self> {
        let compression = match compression {
            None => Compression::None,
            Some("zstd") => Compression::Zstd,
            Some("lz4") => Compression::Lz4,
            Some(other) => {
                let text = format!("compression: {other:?} is none; allowed: zstd, lz4, None");
                return Err(PyValueError::new_err(text));
            }
        };
        let made = py.detach(|| RawWriter::create(&path, compression));
        made.map(Self).map_err(|error| match error.kind() {
            ErrorKind::Invalid => {
                PyFileExistsError::new_err(format!("{}: it exists", path.display()))
            }
            _ => raised(error),
        })
    }

    /// Enters a topic with what its publisher offers, as nodes take it, which players offer too. A topic that is written without
    /// it has the default QoS.
    #[pyo3(signature = (topic, r#type, qos = None))]
    fn add_topic(
        &self,
        py: Python<'_>,
        topic: &str,
        r#type: &Bound<'_, PyAny>,
        qos: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (plan, qos) = (plan_of(r#type)?, qos_of(qos)?);
        py.detach(|| self.0.add_topic(topic, &plan.ty, &[qos])).map_err(raised)
    }

    /// Writes a message of a topic. `time` is in seconds since 1970, or `time_ns` in nanoseconds; without either, now.
    #[pyo3(signature = (topic, message, *, time = None, time_ns = None))]
    fn write(
        &self,
        py: Python<'_>,
        topic: &str,
        message: &Bound<'_, Message>,
        time: Option<f64>,
        time_ns: Option<u64>,
    ) -> PyResult<()> {
        let plan = message.get().plan();
        let data = match message.get().as_it_came() {
            Some(bytes) => bytes,
            None => Bytes::copy_from(&crate::message::encode(message)?),
        };
        let time_ns = match (time_ns, time) {
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err("time and time_ns; allowed: one of both"));
            }
            (Some(ns), None) => ns,
            (None, Some(seconds)) => (seconds * 1e9).max(0.0) as u64,
            (None, None) => {
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_nanos() as u64)
            }
        };
        py.detach(|| self.0.write(topic, &plan.ty, time_ns, &data)).map_err(raised)
    }

    /// Completes and closes the file. Nothing can be written afterwards.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.finish()).map_err(raised)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }
}

fn raised(error: tsuji_record::Error) -> PyErr {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::Invalid | ErrorKind::Format => PyValueError::new_err(text),
        _ => PyOSError::new_err(text),
    }
}

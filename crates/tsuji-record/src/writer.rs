//! An MCAP file that a program writes message by message.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use mcap::records::MessageHeader;
use tsuji_core::Qos;
use tsuji_msg::TypeDescription;
use tsuji_platform::fork::Generation;

use crate::offered::Layout;
use crate::write::{Bag, Compression};
use crate::{Error, ErrorKind, Result};

/// Writes an MCAP file of the profile `ros2`, from any thread. Dropping it completes the file, as [`finish`](Self::finish) does.
///
/// A message is in the file, and safe from the end of this process, a second after it was written, whether or not another
/// follows: a thread of the writer sees to that. A forked child has nothing of it: there it refuses everything, and leaves
/// the file to the parent.
pub struct RecordingWriter {
    path: PathBuf,
    shared: Arc<Shared>,
    made_in: Generation,
}

struct Shared {
    state: Mutex<State>,
    /// A chunk has begun, or the file is complete.
    changed: Condvar,
}

struct State {
    /// None once the file is complete.
    bag: Option<Bag>,
    /// By name; one of each type.
    topics: HashMap<String, Vec<Topic>>,
    /// What went wrong while nobody called.
    failed: Option<Error>,
}

struct Topic {
    type_hash: String,
    channel: u16,
    /// Of its last message.
    sequence: u32,
}

impl RecordingWriter {
    /// Makes the file.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::Invalid`] if it exists.
    /// - [`ErrorKind::Disk`] if it cannot be made or written, or there is no thread to be had.
    pub fn create(path: &Path, compression: Compression) -> Result<Self> {
        let bag = Bag::create(path, compression, false)?;
        let state = State { bag: Some(bag), topics: HashMap::new(), failed: None };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let ended = Arc::clone(&shared);
        thread::Builder::new()
            .name("tsuji-chunks".into())
            .spawn(move || end_chunks(&ended))
            .map_err(|error| Error::disk(format_args!("{}", path.display()), error))?;
        Ok(Self { path: path.to_owned(), shared, made_in: Generation::current() })
    }

    /// Enters a topic with what its publishers offer, one for each, which players offer too.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::Invalid`] if the topic is in the file with this type already, or the file is complete.
    /// - [`ErrorKind::Disk`] and [`ErrorKind::Format`] as of [`write`](Self::write).
    pub fn add_topic(&self, topic: &str, ty: &TypeDescription, offers: &[Qos]) -> Result<()> {
        let mut state = self.state()?;
        if state.topic(topic, ty).is_some() {
            let text = format!("{}: {topic} is in it with its QoS already", self.path.display());
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        self.enter(&mut state, topic, ty, offers)
    }

    /// Writes a message, which was received and published at `time_ns`, in nanoseconds since the Unix epoch. A topic that was
    /// not [added](Self::add_topic) is, with the default QoS.
    ///
    /// # Errors
    ///
    /// After an error nothing more is written; what was written before it is readable.
    ///
    /// - [`ErrorKind::Disk`] if the disk refuses, or refused what was written before.
    /// - [`ErrorKind::Format`] if MCAP cannot hold it.
    /// - [`ErrorKind::Invalid`] if the file is complete.
    pub fn write(
        &self,
        topic: &str,
        ty: &TypeDescription,
        time_ns: u64,
        data: &[u8],
    ) -> Result<()> {
        let mut state = self.state()?;
        if state.topic(topic, ty).is_none() {
            self.enter(&mut state, topic, ty, &[Qos::DEFAULT])?;
        }
        let Some(entry) = state.topic(topic, ty) else { return Err(self.is_complete()) };
        entry.sequence = entry.sequence.wrapping_add(1);
        let header = MessageHeader {
            channel_id: entry.channel,
            sequence: entry.sequence,
            log_time: time_ns,
            publish_time: time_ns,
        };
        let bag = state.bag.as_mut().ok_or_else(|| self.is_complete())?;
        let has_waited = bag.chunk_ends().is_some();
        bag.message(&header, data)?;
        if !has_waited {
            self.shared.changed.notify_one();
        }
        Ok(())
    }

    /// Completes the file. Nothing can be written afterwards; of a file that is complete it does nothing.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::Disk`] if the disk refuses, or refused what was written before.
    /// - [`ErrorKind::Format`] if MCAP cannot hold what is written.
    /// - [`ErrorKind::Invalid`] in a forked child.
    pub fn finish(&self) -> Result<()> {
        let mut state = self.state_unasked()?;
        let (bag, failed) = (state.bag.take(), state.failed.take());
        self.shared.changed.notify_one();
        match (failed, bag) {
            (Some(error), _) => Err(error),
            (None, Some(mut bag)) => bag.finish(Vec::new()),
            (None, None) => Ok(()),
        }
    }

    fn enter(
        &self,
        state: &mut State,
        topic: &str,
        ty: &TypeDescription,
        offers: &[Qos],
    ) -> Result<()> {
        let bag = state.bag.as_mut().ok_or_else(|| self.is_complete())?;
        let channel = bag.channel(topic, ty, offers, Layout::Jazzy)?;
        let added = Topic { type_hash: ty.hash().to_owned(), channel, sequence: 0 };
        state.topics.entry(topic.to_owned()).or_default().push(added);
        Ok(())
    }

    /// Fails with what went wrong while nobody called, too.
    fn state(&self) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state_unasked()?;
        match state.failed.take() {
            Some(error) => Err(error),
            None => Ok(state),
        }
    }

    /// Fails in a forked child, where a lock may be held by a thread that is not there.
    fn state_unasked(&self) -> Result<MutexGuard<'_, State>> {
        if self.made_in.is_current() {
            return Ok(lock(&self.shared.state));
        }
        let text = format!("{} is written by another process", self.path.display());
        Err(Error::new(ErrorKind::Invalid, text))
    }

    fn is_complete(&self) -> Error {
        Error::new(ErrorKind::Invalid, format!("{}: it is closed", self.path.display()))
    }
}

impl State {
    fn topic(&mut self, name: &str, ty: &TypeDescription) -> Option<&mut Topic> {
        self.topics.get_mut(name)?.iter_mut().find(|it| it.type_hash == ty.hash())
    }
}

impl Drop for RecordingWriter {
    fn drop(&mut self) {
        if !self.made_in.is_current() {
            // What is dropped writes its end, and the file is the parent's.
            std::mem::forget(Arc::clone(&self.shared));
            return;
        }
        // Whoever wants to know calls it.
        let _ = self.finish();
    }
}

impl fmt::Debug for RecordingWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingWriter").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Ends each chunk when it is time, until the file is complete.
fn end_chunks(shared: &Shared) {
    let mut state = lock(&shared.state);
    while let Some(bag) = &mut state.bag {
        let now = Instant::now();
        let ended = bag.end_old_chunk(now);
        let left = bag.chunk_ends().map(|it| it.saturating_duration_since(now));
        if let Err(error) = ended {
            state.failed = Some(error);
        }
        state = match left {
            None => shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(left) => {
                let waited = shared.changed.wait_timeout(state, left);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use tsuji_interfaces::Shipped;
    use tsuji_msg::TypeSet;

    use super::*;
    use crate::Recording;

    fn path() -> PathBuf {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tsuji-record-writer-{}-{number}.mcap", std::process::id());
        std::env::temp_dir().join(name)
    }

    #[test]
    fn what_was_written_is_in_the_file_though_nothing_follows() {
        let ty = TypeSet::new(Shipped).load("std_msgs/msg/String").unwrap();
        for compression in [Compression::None, Compression::Zstd, Compression::Lz4] {
            let path = path();
            let writer = RecordingWriter::create(&path, compression).unwrap();
            for count in 1..=2 {
                writer.write("/words", &ty, count, b"\0\x01\0\0\x02\0\0\0a\0").unwrap();
                // Cut by the watchdog of the tests.
                while Recording::open(&path).unwrap().summary().messages < count {
                    thread::sleep(Duration::from_millis(5));
                }
            }
            writer.finish().unwrap();
            let mut whole = Recording::open(&path).unwrap();
            whole.check().unwrap();
            assert_eq!((whole.summary().messages, &*whole.summary().damages), (2, &[][..]));
            fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn each_topic_has_what_it_offers() {
        let ty = TypeSet::new(Shipped).load("std_msgs/msg/String").unwrap();
        let path = path();
        let writer = RecordingWriter::create(&path, Compression::None).unwrap();
        writer.add_topic("/map", &ty, &[Qos::LATCHED]).unwrap();
        for topic in ["/map", "/words", "/words"] {
            writer.write(topic, &ty, 1, b"").unwrap();
        }
        for topic in ["/map", "/words"] {
            let error = writer.add_topic(topic, &ty, &[Qos::DEFAULT]).unwrap_err();
            assert!(error.kind() == ErrorKind::Invalid, "{error}");
        }
        let again = RecordingWriter::create(&path, Compression::None).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Invalid, "{again}");
        writer.finish().unwrap();
        writer.finish().unwrap();
        let error = writer.write("/words", &ty, 1, b"").unwrap_err();
        assert!(error.to_string().ends_with(": it is closed"), "{error}");
        let read = Recording::open(&path).unwrap();
        let offers: Vec<_> =
            read.topics().iter().map(|it| (&*it.name, &*it.offered, it.messages)).collect();
        assert_eq!(offers, [("/map", &[Qos::LATCHED][..], 1), ("/words", &[Qos::DEFAULT][..], 2)]);
        fs::remove_file(path).unwrap();
    }
}

//! A message of a recording.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::ops::{Deref, Range};
use std::sync::Arc;

use tsuji_platform::mapped_file::MappedFile;

/// Bytes of what a message has before its data.
pub(crate) const HEAD_OF_MESSAGE: usize = 22;

/// What `zstd` begins with. The first byte of a message in CDR is 0.
pub(crate) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// A part of a file.
#[derive(Debug)]
pub(crate) enum Part {
    /// Read, and unpacked if it was packed.
    Read(Vec<u8>),
    /// Where it lies in a mapped file.
    Mapped(Arc<MappedFile>, Range<usize>),
}

impl Deref for Part {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Read(bytes) => bytes,
            Self::Mapped(file, range) => &file[range.clone()],
        }
    }
}

/// A message of a recording. It keeps what it was read with, at most [`KEPT_TIMES_MAX`] times its own bytes.
#[derive(Clone)]
pub struct RecordedMessage {
    /// When it was received, in nanoseconds since the Unix epoch.
    pub log_ns: u64,
    /// Its topic, by its place in [`Recording::topics`](crate::Recording::topics).
    pub topic: usize,
    /// What it was read with: a chunk, or messages outside chunks.
    read: Arc<Part>,
    /// Where its data is in that.
    data: Range<usize>,
}

impl RecordedMessage {
    /// `None` if it is too short, or of no channel that is known.
    pub(crate) fn new(
        read: &Arc<Part>,
        record: Range<usize>,
        channels: &HashMap<u16, usize>,
    ) -> Option<Self> {
        let head = read[record.clone()].first_chunk::<HEAD_OF_MESSAGE>()?;
        let (&channel, rest) = head.split_first_chunk()?;
        let log_ns = u64::from_le_bytes(*rest[4..].first_chunk()?);
        let topic = *channels.get(&u16::from_le_bytes(channel))?;
        let data = record.start + HEAD_OF_MESSAGE..record.end;
        Some(Self { log_ns, topic, read: Arc::clone(read), data })
    }

    /// The message as it was before `rosbag2` packed it by itself, which no message in CDR looks like; `None` if that takes more
    /// than what `room` has left, or if it is none.
    pub(crate) fn unpacked(mut self, room: &mut u64) -> Option<Self> {
        if !self.data().starts_with(&ZSTD_MAGIC) {
            return Some(self);
        }
        let mut data = Vec::new();
        let source = zstd::Decoder::new(self.data()).ok()?;
        // It grows by what is there, and no further.
        let bytes = source.take(*room + 1).read_to_end(&mut data).ok()? as u64;
        *room = room.checked_sub(bytes)?;
        (self.data, self.read) = (0..data.len(), Arc::new(Part::Read(data)));
        Some(self)
    }

    /// The message as it was serialised. It stays where it is while the message, or a clone of it, is there.
    pub fn data(&self) -> &[u8] {
        &self.read[self.data.clone()]
    }

    /// How many bytes of memory the message keeps: those that it was read with. What is mapped is the system's to keep.
    pub(crate) fn kept_bytes(&self) -> usize {
        match &*self.read {
            Part::Read(bytes) => bytes.len(),
            Part::Mapped(..) => 0,
        }
    }

    /// The same message, which keeps at most [`KEPT_TIMES_MAX`] times its own bytes: it is copied where it would keep more.
    pub(crate) fn compacted(mut self) -> Self {
        if self.data.len() < self.kept_bytes() / KEPT_TIMES_MAX {
            let data = self.data().to_vec();
            (self.data, self.read) = (0..data.len(), Arc::new(Part::Read(data)));
        }
        self
    }
}

/// How many times its own bytes a message keeps, of what it was read with.
pub const KEPT_TIMES_MAX: usize = 8;

/// Messages are equal that have one time, topic and data.
impl PartialEq for RecordedMessage {
    fn eq(&self, other: &Self) -> bool {
        (self.log_ns, self.topic, self.data()) == (other.log_ns, other.topic, other.data())
    }
}

impl Eq for RecordedMessage {}

impl fmt::Debug for RecordedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { log_ns, topic, data, .. } = self;
        f.debug_struct("RecordedMessage")
            .field("log_ns", log_ns)
            .field("topic", topic)
            .field("bytes", &data.len())
            .finish_non_exhaustive()
    }
}

//! Writing an MCAP file.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mcap::records::{MessageHeader, Metadata};
use mcap::{McapError, WriteOptions, Writer};
use tsuji_core::Qos;
use tsuji_msg::TypeDescription;
use tsuji_platform::limit::LimitedFile;

use crate::file::{Frames, Step, op};
use crate::offered::{self, Layout};
use crate::{Error, ErrorKind, Result};

/// How chunks are packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// Small.
    Zstd,
    /// Fast.
    Lz4,
}

/// Bytes of messages of a chunk, before it is packed. One message may be larger.
const CHUNK_BYTES: u64 = 4 << 20;

/// How long after its first message a chunk is ended at the latest. A recorder that is killed loses what came within it; it
/// is well below the second that is promised, so that a busy machine keeps the promise too.
const CHUNK_AGE_MAX: Duration = Duration::from_millis(500);

/// A file that grows.
pub(crate) struct Bag {
    path: PathBuf,
    writer: Option<Writer<Disk>>,
    /// When the chunk that grows is to be ended; none without a message in it. The writer ends a chunk by its size without
    /// telling, so it may be that of the chunk before: then a chunk is ended early, and never late.
    chunk_ends: Option<Instant>,
}

impl Bag {
    /// Refuses a file that exists unless `replace`.
    pub(crate) fn create(path: &Path, compression: Compression, replace: bool) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).read(true);
        if replace {
            options.create(true).truncate(true)
        } else {
            options.create_new(true)
        };
        let file = options.open(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Error::new(ErrorKind::Invalid, format!("{} exists", path.display()))
            }
            _ => Error::disk(format_args!("cannot create {}", path.display()), error),
        })?;
        let compression = match compression {
            Compression::None => None,
            Compression::Zstd => Some(mcap::Compression::Zstd),
            Compression::Lz4 => Some(mcap::Compression::Lz4),
        };
        let options = WriteOptions::new()
            .profile("ros2")
            .library(concat!("tsuji ", env!("CARGO_PKG_VERSION")))
            .compression(compression)
            .chunk_size(Some(CHUNK_BYTES))
            // A second look at each byte, which that of the chunk makes needless.
            .calculate_data_section_crc(false);
        let mut bag = Self { path: path.to_owned(), writer: None, chunk_ends: None };
        match options.create(Disk::new(file)) {
            Ok(writer) => bag.writer = Some(writer),
            Err(error) => return Err(bag.failed(error)),
        }
        // So that it begins as a recording whatever becomes of the recorder.
        bag.write(Writer::flush)?;
        Ok(bag)
    }

    /// Enters a topic, and answers its channel.
    pub(crate) fn channel(
        &mut self,
        topic: &str,
        ty: &TypeDescription,
        offers: &[Qos],
        layout: Layout,
    ) -> Result<u16> {
        let metadata = BTreeMap::from([
            ("offered_qos_profiles".to_owned(), offered::to_yaml(offers, layout)),
            ("topic_type_hash".to_owned(), ty.hash().to_owned()),
        ]);
        let (name, text) = (ty.name().to_string(), ty.full_text());
        self.write(|it| {
            let schema = it.add_schema(&name, "ros2msg", text.as_bytes())?;
            it.add_channel(schema, topic, "cdr", &metadata)
        })
    }

    /// Writes a message from where it lies.
    pub(crate) fn message(&mut self, header: &MessageHeader, data: &[u8]) -> Result<()> {
        self.write(|it| it.write_to_known_channel(header, data))?;
        let now = Instant::now();
        self.chunk_ends.get_or_insert(now + CHUNK_AGE_MAX);
        self.end_old_chunk(now)
    }

    /// When the chunk that grows is to be ended by [`end_old_chunk`](Self::end_old_chunk), whether or not a message comes
    /// before; never without a message in it.
    pub(crate) fn chunk_ends(&self) -> Option<Instant> {
        self.chunk_ends
    }

    /// Ends the chunk that grows and hands all to the system, if that is due.
    pub(crate) fn end_old_chunk(&mut self, now: Instant) -> Result<()> {
        if self.chunk_ends.is_none_or(|it| now < it) {
            return Ok(());
        }
        self.chunk_ends = None;
        self.write(Writer::flush)
    }

    /// Writes records of metadata, each by its name, then the indices and the end. Nothing can be written afterwards.
    pub(crate) fn finish(&mut self, metadata: Vec<(&str, BTreeMap<String, String>)>) -> Result<()> {
        let records = metadata
            .into_iter()
            .map(|(name, metadata)| Metadata { name: name.to_owned(), metadata });
        self.write(|it| {
            records.into_iter().try_for_each(|record| it.write_metadata(&record))?;
            it.finish()
        })?;
        let Some(writer) = self.writer.take() else { return Ok(()) };
        writer.into_inner().flush().map_err(|error| self.failed(error.into()))
    }

    fn write<T>(
        &mut self,
        what: impl FnOnce(&mut Writer<Disk>) -> std::result::Result<T, McapError>,
    ) -> Result<T> {
        let Some(writer) = &mut self.writer else {
            let text =
                format!("{} is closed, by its end or since the disk refused", self.path.display());
            return Err(Error::new(ErrorKind::Disk, text));
        };
        what(writer).map_err(|error| self.failed(error))
    }

    /// Ends the file behind what is whole, so that it stays readable.
    fn failed(&mut self, error: McapError) -> Error {
        self.writer = None;
        let what = format!("cannot write {}", self.path.display());
        let error = match error {
            McapError::Io(source) => Error::disk(what, source),
            error => Error::new(ErrorKind::Format, format!("{what}: {error}")),
        };
        match end_behind_what_is_whole(&self.path) {
            Ok(()) => error,
            Err(_) => Error::new(error.kind(), format!("{error}; its end is missing")),
        }
    }
}

/// Without an index of the whole: readers go through the chunks.
const BARE_END: [u8; 50] = {
    let mut end = [0; 50];
    end[0] = op::DATA_END;
    end[1] = 4;
    end[13] = op::FOOTER;
    end[14] = 20;
    let mut at = 0;
    while at < mcap::MAGIC.len() {
        end[42 + at] = mcap::MAGIC[at];
        at += 1;
    }
    end
};

fn end_behind_what_is_whole(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let len = file.metadata()?.len();
    let Some(mut frames) = Frames::new(BufReader::new(&file))? else { return Ok(()) };
    // So far that the end has room where the disk has none.
    let mut whole = mcap::MAGIC.len() as u64;
    while let Step::Record(frame) = frames.next()? {
        if frame.opcode == op::DATA_END || len < frame.end() + BARE_END.len() as u64 {
            break;
        }
        whole = frame.end();
    }
    file.set_len(whole)?;
    file.seek(SeekFrom::End(0))?;
    file.write_all(&BARE_END)
}

/// Small writes together, large ones from where they lie. After the first error nothing is written any more, so that
/// no half of a record is ever made to look whole.
struct Disk {
    file: LimitedFile,
    buffer: Vec<u8>,
    position: u64,
    failed: bool,
}

const BUFFER_BYTES: usize = 256 << 10;

impl Disk {
    fn new(file: File) -> Self {
        Self {
            file: LimitedFile(file),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            position: 0,
            failed: false,
        }
    }

    fn attempt<T>(&mut self, what: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        if self.failed {
            return Err(io::Error::other("an earlier write failed"));
        }
        let result = what(self);
        self.failed = result.is_err();
        result
    }

    fn empty_buffer(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(|it| {
            if BUFFER_BYTES < it.buffer.len() + bytes.len() {
                it.empty_buffer()?;
            }
            if BUFFER_BYTES <= bytes.len() {
                it.file.write_all(bytes)?;
            } else {
                it.buffer.extend_from_slice(bytes);
            }
            it.position += bytes.len() as u64;
            Ok(bytes.len())
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt(Self::empty_buffer)
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if to == SeekFrom::Current(0) {
            return Ok(self.position);
        }
        self.attempt(|it| {
            it.empty_buffer()?;
            it.position = it.file.seek(to)?;
            Ok(it.position)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use proptest::prelude::*;
    use tsuji_interfaces::Shipped;
    use tsuji_msg::TypeSet;

    use super::*;
    use crate::Recording;

    /// Topic, time and data of each message: few of the last are larger than what is written together.
    fn messages() -> impl Strategy<Value = Vec<(usize, u64, Vec<u8>)>> {
        let len = prop_oneof![8 => 0..500_usize, 1 => 0..2 * BUFFER_BYTES];
        let data = (len, any::<u8>()).prop_map(|(len, seed)| {
            (0..len).map(|it| (it as u8).wrapping_mul(31).wrapping_add(seed)).collect()
        });
        prop::collection::vec((0..3_usize, 1..1000_u64, data), 0..40)
    }

    fn written(messages: &[(usize, u64, Vec<u8>)], compression: Compression) -> Vec<u8> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tsuji-record-written-{}-{number}.mcap", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut bag = Bag::create(&path, compression, false).unwrap();
        let ty = TypeSet::new(Shipped).load("std_msgs/msg/String").unwrap();
        let channels: Vec<u16> = ["/a", "/b", "/c"]
            .iter()
            .map(|it| bag.channel(it, &ty, &[Qos::DEFAULT], Layout::Jazzy).unwrap())
            .collect();
        for (topic, log_time, data) in messages {
            let (channel_id, publish_time) = (channels[*topic], *log_time);
            let header =
                MessageHeader { channel_id, sequence: 0, log_time: *log_time, publish_time };
            bag.message(&header, data).unwrap();
        }
        let counts = BTreeMap::from([("/a received".to_owned(), "1".to_owned())]);
        bag.finish(vec![("tsuji", counts)]).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn what_is_written_is_read(messages in messages(), how in 0..3_usize) {
            let how = [Compression::None, Compression::Zstd, Compression::Lz4][how];
            let mut recording = Recording::read(written(&messages, how)).unwrap();
            prop_assert_eq!(recording.summary().messages, messages.len() as u64);
            prop_assert_eq!(&recording.summary().metadata["tsuji"]["/a received"], "1");
            let read: Vec<(usize, u64, Vec<u8>)> = recording
                .messages(0)
                .map(|it| it.map(|it| (it.topic, it.log_ns, it.data().to_vec())).unwrap())
                .collect();
            prop_assert_eq!(&recording.summary().damages, &[]);
            let mut expect = messages;
            // Those of one time as they were written.
            expect.sort_by_key(|it| it.1);
            prop_assert!(read == expect);
        }
    }
}

//! Reading recordings.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use tsuji_core::Qos;
use tsuji_msg::TypeName;
use tsuji_platform::mapped_file::MappedFile;

use crate::chunk::{CHUNK_BYTES_MAX, apart, unpack};
use crate::fields::{self, Record};
use crate::file::{Frame, Frames, Step, op};
use crate::list::{self, LIST, List, Packing};
use crate::message::{HEAD_OF_MESSAGE, Part, RecordedMessage, ZSTD_MAGIC};
use crate::span::Span;
use crate::{Error, ErrorKind, OFFERS_MAX, Result, offered, schema};

/// Topics of a recording. One of more is refused.
pub const TOPICS_MAX: usize = 10_000;

/// Bytes of a record. A larger one is told as damage and left out.
pub const RECORD_BYTES_MAX: u64 = 1 << 30;

/// Bytes of a schema or a channel. A larger one is told as damage and left out.
pub const DEFINITION_BYTES_MAX: usize = 4 << 20;

/// Bytes of the schemas and channels of a recording, equal schemas counted once. One of more is refused.
pub const DEFINITIONS_BYTES_MAX: usize = 64 << 20;

/// Bytes of messages that wait to be put in order, with what keeps each. When there are more, later chunks wait, and what overlaps so widely
/// comes late.
const WAITING_BYTES_MAX: usize = 2 << 30;

/// Bytes of messages outside chunks that are read together.
const LOOSE_BYTES: u64 = 4 << 20;

/// Damages that are kept. Of more only the number is known.
const DAMAGES_MAX: usize = 100;

/// The record of metadata that a recorder of tsuji ends its file with.
pub(crate) const METADATA: &str = "tsuji";

/// What follows the name of a topic in it where it has the offers, if they became more.
pub(crate) const OFFERED: &str = " offered";

/// A file or a folder of rosbag2, opened.
pub struct Recording {
    files: Vec<Opened>,
    /// The one file that is open, if any is; what is in memory always is.
    open: Option<usize>,
    /// Whether files are mapped.
    is_mapped: bool,
    topics: Vec<RecordedTopic>,
    pieces: Vec<Piece>,
    /// The files' schemas, those that several have once.
    schemas: HashSet<Arc<Schema>>,
    definitions_bytes: usize,
    span: Span,
    summary: Summary,
}

/// A topic that was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedTopic {
    /// The full name.
    pub name: String,
    /// Such as `std_msgs/msg/String`.
    pub type_name: String,
    /// Such as `RIHS01_…`: as it was recorded, else of the definition in the file; empty if neither is there.
    pub type_hash: String,
    /// How its messages are serialised, such as `cdr`.
    pub encoding: String,
    /// What publishers offered, one for each publisher; at most [`OFFERS_MAX`].
    pub offered: Vec<Qos>,
    /// Its messages.
    pub messages: u64,
    /// Why it cannot be played, if so.
    pub unplayable: Option<String>,
    schema: Option<Arc<Schema>>,
}

impl RecordedTopic {
    /// The definition in the file.
    pub fn definition(&self) -> Option<&str> {
        self.schema.as_deref().map(|it| it.text.as_str())
    }

    /// The name in full, as it is played, chosen and remapped: some write topics without the slash. What is no name of ROS 2
    /// is as it stands.
    pub fn full_name(&self) -> Cow<'_, str> {
        match tsuji_core::names::expand_topic(&self.name, "tsuji", "/") {
            Ok(full) if full != self.name => Cow::Owned(full),
            _ => Cow::Borrowed(&self.name),
        }
    }
}

/// What is known of a recording as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Its files.
    pub files: Vec<PathBuf>,
    /// The distribution of ROS 2 that recorded it, such as `jazzy`; empty if it does not say.
    pub distro: String,
    /// Of all its files.
    pub bytes: u64,
    /// All messages.
    pub messages: u64,
    /// When the first and the last were received, in nanoseconds since the Unix epoch; 0 without any.
    pub first_ns: u64,
    /// See `first_ns`.
    pub last_ns: u64,
    /// What a recorder has noted, such as what was lost: by the name of the record, then by key.
    pub metadata: BTreeMap<String, BTreeMap<String, String>>,
    /// What is not as it should be.
    pub damages: Vec<Damage>,
    /// How many there were, those that are not kept included.
    pub damage_count: u64,
}

/// Something in a file that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Where, in bytes from its beginning.
    pub at: u64,
    /// What, and what follows from it.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: byte {}: {}", self.file.display(), self.at, self.what)
    }
}

trait Source: Read + Seek + Send {}
impl<R: Read + Seek + Send> Source for R {}

/// A file while it is open.
struct Content {
    frames: Frames<Box<dyn Source>>,
    /// What the frames are read from, if that is mapped.
    mapped: Option<Arc<MappedFile>>,
}

struct Opened {
    path: PathBuf,
    /// `None` while a file is closed.
    content: Option<Content>,
    /// What was mapped of it, as long as it is open or somebody holds messages of it.
    mapped: Weak<MappedFile>,
    /// Places of topics by channel.
    channels: HashMap<u16, usize>,
    schemas: HashMap<u16, Arc<Schema>>,
    /// What its channels say was offered, by place of the topic. Several of one topic are several publishers.
    offers: HashMap<usize, Vec<Qos>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Schema {
    name: String,
    encoding: String,
    text: String,
}

/// A chunk, or messages outside chunks.
#[derive(Clone, Copy, Debug)]
struct Piece {
    file: usize,
    kind: PieceKind,
    at: u64,
    /// All of it, heads of records included.
    len: u64,
    first_ns: u64,
    last_ns: u64,
    /// Whether what is damaged in it is told.
    is_told: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceKind {
    Chunk,
    Loose,
}

impl Recording {
    /// Opens a file, or a folder that rosbag2 wrote, of whose files one is open at a time.
    ///
    /// A file that is cut off is opened as far as it is whole, and says so in [`Summary::damages`].
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::Disk`] if a file, or the list of a folder, cannot be read.
    /// - [`ErrorKind::Format`] if a file is no MCAP, the list is none of rosbag2 or does not name files of MCAP in
    ///   its folder, messages are packed in a way that is not known, or there are more than [`TOPICS_MAX`] topics
    ///   or [`DEFINITIONS_BYTES_MAX`] of definitions.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_all(&[path])
    }

    /// Opens several as one.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open); the limits are those of all together.
    pub fn open_all(paths: &[impl AsRef<Path>]) -> Result<Self> {
        Self::empty().with_all(paths)
    }

    /// Opens a file or a folder, whose messages are where they lie in the file if they are not packed: nothing is copied, and no
    /// checksum of what is not packed is compared. The rest is as of [`open`](Self::open).
    ///
    /// What others write into the files meanwhile is seen. Where a file is made shorter, or cannot be read, what is not there
    /// reads as zeros, and the iterator of [`messages`](Self::messages) ends with an error.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open); [`ErrorKind::Disk`] also if a file cannot be mapped, as none can that is empty, or where
    /// [`MAPPED_FILES_MAX`](tsuji_platform::mapped_file::MAPPED_FILES_MAX) are mapped.
    pub fn open_mapped(path: &Path) -> Result<Self> {
        Self { is_mapped: true, ..Self::empty() }.with_all(&[path])
    }

    fn with_all(mut self, paths: &[impl AsRef<Path>]) -> Result<Self> {
        for path in paths {
            let (files, list) = files_of(path.as_ref())?;
            for file in files {
                self.add(&file, None)?;
            }
            self.take_in(list);
        }
        self.ordered()
    }

    /// Reads what is in memory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Format`], as of [`open`](Self::open).
    pub fn read(bytes: Vec<u8>) -> Result<Self> {
        let mut recording = Self::empty();
        let path = Path::new("memory");
        let frames = frames(path, Box::new(io::Cursor::new(bytes)))?;
        recording.add(path, Some(Content { frames, mapped: None }))?;
        recording.ordered()
    }

    /// Its topics, in the order of their names.
    pub fn topics(&self) -> &[RecordedTopic] {
        &self.topics
    }

    /// What is known of it as a whole. Damages within chunks are found as these are first read: by playing,
    /// by [`check`](Self::check), or by opening a file that does not tell its counts.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Its messages in the order of their times, from `from_ns` on, in nanoseconds since the Unix epoch. What is damaged is
    /// left out, and in [`Summary::damages`] afterwards; chunks that end before `from_ns` are not looked into.
    pub fn messages(&mut self, from_ns: u64) -> Messages<'_> {
        let waiting = BinaryHeap::new();
        Messages {
            recording: self,
            from_ns,
            next: 0,
            waiting,
            waiting_bytes: 0,
            count: 0,
            is_over: false,
        }
    }

    /// Reads every message and finds every damage.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Disk`] if a file cannot be read any more; [`ErrorKind::Format`] if it is no MCAP any more, or
    /// if with what its chunks define there are more than [`TOPICS_MAX`] topics or [`DEFINITIONS_BYTES_MAX`] of
    /// definitions. A damage is no error.
    pub fn check(&mut self) -> Result<()> {
        self.messages(0).try_for_each(|it| it.map(drop))
    }

    fn empty() -> Self {
        Self {
            files: Vec::new(),
            open: None,
            is_mapped: false,
            topics: Vec::new(),
            pieces: Vec::new(),
            schemas: HashSet::new(),
            definitions_bytes: 0,
            span: Span::default(),
            summary: Summary::default(),
        }
    }

    fn ordered(mut self) -> Result<Self> {
        let mut order: Vec<usize> = (0..self.topics.len()).collect();
        order.sort_by(|a, b| self.topics[*a].name.cmp(&self.topics[*b].name));
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, old)| place[*old] = new);
        for file in &mut self.files {
            file.channels.values_mut().for_each(|it| *it = place[*it]);
            file.offers = file.offers.drain().map(|(it, offers)| (place[it], offers)).collect();
        }
        self.topics = order.into_iter().map(|it| self.topics[it].clone()).collect();
        self.pieces.sort_by_key(|it| it.first_ns);
        Ok(self)
    }

    /// Adds what is at `path`, or in memory.
    fn add(&mut self, path: &Path, content: Option<Content>) -> Result<()> {
        let file = self.files.len();
        self.files.push(Opened {
            path: path.to_owned(),
            content,
            mapped: Weak::new(),
            channels: HashMap::new(),
            schemas: HashMap::new(),
            offers: HashMap::new(),
        });
        self.summary.files.push(path.to_owned());
        let mut found = self.walk(file)?;
        self.check_mapped(file)?;
        for (name, offers) in std::mem::take(&mut found.offered) {
            for topic in self.topics.iter_mut().filter(|it| it.name == name) {
                offered::merge(&mut topic.offered, &offers);
            }
        }
        self.count(file, found)
    }

    /// Takes in what the list of a folder says. Of QoS its word counts, as for `rosbag2`: users change it there.
    fn take_in(&mut self, list: List) {
        if !list.distro.is_empty() {
            self.summary.distro = list.distro;
        }
        for listed in list.topics {
            let type_name = listed.type_name.parse::<TypeName>().map(|it| it.to_string());
            let type_name = type_name.unwrap_or(listed.type_name);
            let known = self.topics.iter_mut().filter(|it| it.name == listed.name);
            for topic in known.filter(|it| it.type_name == type_name) {
                if !listed.offered.is_empty() {
                    topic.offered.clone_from(&listed.offered);
                }
                if topic.type_hash.is_empty() {
                    topic.type_hash.clone_from(&listed.type_hash);
                }
            }
        }
    }

    /// Takes in a record of metadata.
    fn note(
        &mut self,
        file: usize,
        at: u64,
        name: String,
        metadata: BTreeMap<String, String>,
        found: &mut Found,
    ) -> Result<()> {
        if name == METADATA {
            let offered = metadata.iter().filter_map(|(key, text)| {
                Some((key.strip_suffix(OFFERED)?.to_owned(), offered::from_yaml(text)))
            });
            found.offered.extend(offered);
        }
        if name == list::RECORD.0 {
            if let Some(distro) = metadata.get("ROS_DISTRO") {
                self.summary.distro.clone_from(distro);
            }
            if let Some(text) = metadata.get(list::RECORD.1).filter(|it| !it.is_empty()) {
                match List::parse(text) {
                    Ok(list) => {
                        check_packing(&self.files[file].path, &list)?;
                        if !list.distro.is_empty() {
                            self.summary.distro = list.distro;
                        }
                    }
                    Err(error) => self.left_out(file, at, &error),
                }
            }
        }
        self.summary.metadata.insert(name, metadata);
        Ok(())
    }

    /// A file, which is opened if it is closed; then that which was open is closed, so that a recording of any number of files
    /// has one open.
    fn content(&mut self, file: usize) -> Result<&mut Content> {
        if self.files[file].content.is_none() {
            if let Some(other) = self.open {
                self.check_mapped(other)?;
                self.files[other].content = None;
            }
            self.open = Some(file);
        }
        let Opened { path, content, mapped, .. } = &mut self.files[file];
        match content {
            Some(content) => Ok(content),
            None if self.is_mapped => {
                let shared = match mapped.upgrade() {
                    Some(shared) => shared,
                    None => Arc::new(map(path)?),
                };
                *mapped = Arc::downgrade(&shared);
                let frames = frames(path, Box::new(io::Cursor::new(Shared(Arc::clone(&shared)))))?;
                Ok(content.insert(Content { frames, mapped: Some(shared) }))
            }
            None => Ok(content.insert(Content { frames: open(path)?, mapped: None })),
        }
    }

    fn frames(&mut self, file: usize) -> Result<&mut Frames<Box<dyn Source>>> {
        Ok(&mut self.content(file)?.frames)
    }

    /// Refuses a mapped file of which a part is gone, if it is open or somebody holds messages of it.
    fn check_mapped(&self, file: usize) -> Result<()> {
        let mapped = self.files[file].mapped.upgrade();
        mapped.map_or(Ok(()), |it| it.check()).map_err(|error| self.unread(file, error))
    }

    /// Goes over a file's records without unpacking any.
    fn walk(&mut self, file: usize) -> Result<Found> {
        let mut found = Found::default();
        loop {
            let step = match self.frames(file)?.next() {
                Ok(step) => step,
                Err(error) => return Err(self.unread(file, error)),
            };
            let frame = match step {
                Step::Record(frame) => frame,
                Step::End => break,
                Step::Truncated(at) => {
                    found.is_cut = true;
                    self.summary.bytes += at;
                    self.damage(
                        file,
                        at,
                        "the file ends here, in the middle; what is before is played".into(),
                    );
                    return Ok(found);
                }
            };
            found.bytes = frame.end();
            match frame.opcode {
                op::CHUNK => self.piece(file, frame, PieceKind::Chunk)?,
                op::MESSAGE => self.piece(file, frame, PieceKind::Loose)?,
                op::SCHEMA | op::CHANNEL => {
                    let Some(body) = self.body(file, frame)? else { continue };
                    self.learn(file, frame.opcode, &body, frame.start)?;
                }
                op::STATISTICS | op::METADATA => {
                    let Some(body) = self.body(file, frame)? else { continue };
                    match fields::parse(frame.opcode, &body) {
                        Ok(Record::Statistics(it)) => found.statistics = Some(it),
                        Ok(Record::Metadata { name, metadata }) => {
                            self.note(file, frame.start, name, metadata, &mut found)?;
                        }
                        Ok(_) => {}
                        Err(error) => self.left_out(file, frame.start, &error),
                    }
                }
                _ => {}
            }
        }
        self.summary.bytes += found.bytes + mcap::MAGIC.len() as u64;
        Ok(found)
    }

    /// Notes a chunk, or a message outside chunks, together with those right before it.
    fn piece(&mut self, file: usize, frame: Frame, kind: PieceKind) -> Result<()> {
        // Where the times of the first message and the last are.
        let (first, last, least) =
            if kind == PieceKind::Chunk { (0, 8, 40) } else { (6, 6, HEAD_OF_MESSAGE as u64) };
        if frame.len < least {
            self.damage(file, frame.start, "a record is too short, and left out".into());
            return Ok(());
        }
        let first_ns = self.time(file, frame.body() + first)?;
        let last_ns = self.time(file, frame.body() + last)?;
        let len = frame.end() - frame.start;
        if kind == PieceKind::Loose
            && let Some(last) = self.pieces.last_mut()
            && (last.file, last.kind, last.at + last.len) == (file, kind, frame.start)
            && last.len + len <= LOOSE_BYTES
        {
            last.len += len;
            last.first_ns = last.first_ns.min(first_ns);
            last.last_ns = last.last_ns.max(last_ns);
            return Ok(());
        }
        let at = frame.start;
        self.pieces.push(Piece { file, kind, at, len, first_ns, last_ns, is_told: false });
        Ok(())
    }

    fn time(&mut self, file: usize, at: u64) -> Result<u64> {
        let mut time = [0; 8];
        let read = self.frames(file)?.read_at(at, &mut time);
        read.map(|()| u64::from_le_bytes(time)).map_err(|error| self.unread(file, error))
    }

    /// Counts a file's messages: as its summary says, or by reading it all where there is none that can be relied on.
    fn count(&mut self, file: usize, found: Found) -> Result<()> {
        let known = self.files[file].channels.len();
        let says_all = |it: &fields::Statistics| {
            it.channel_count as usize == known
                && it
                    .channel_message_counts
                    .keys()
                    .all(|it| self.files[file].channels.contains_key(it))
                && it.channel_message_counts.values().fold(0_u64, |sum, it| sum.saturating_add(*it))
                    == it.message_count
        };
        match found.statistics {
            Some(it) if !found.is_cut && says_all(&it) => {
                for (channel, count) in &it.channel_message_counts {
                    let topic = self.files[file].channels[channel];
                    let messages = &mut self.topics[topic].messages;
                    *messages = messages.saturating_add(*count);
                }
                self.summary.messages = self.summary.messages.saturating_add(it.message_count);
                if it.message_count != 0 {
                    self.extend(it.first_ns, it.last_ns);
                }
            }
            _ => {
                for at in 0..self.pieces.len() {
                    if self.pieces[at].file != file {
                        continue;
                    }
                    for message in self.load(at)? {
                        self.topics[message.topic].messages += 1;
                        self.summary.messages += 1;
                        self.extend(message.log_ns, message.log_ns);
                    }
                }
            }
        }
        Ok(())
    }

    fn extend(&mut self, first_ns: u64, last_ns: u64) {
        self.span.extend(first_ns, last_ns);
        self.summary.first_ns = self.span.first_ns();
        self.summary.last_ns = self.span.last_ns();
    }

    /// A record's body, unless it is too large.
    fn body(&mut self, file: usize, frame: Frame) -> Result<Option<Part>> {
        self.part(file, frame.body(), frame.len)
    }

    fn part(&mut self, file: usize, at: u64, len: u64) -> Result<Option<Part>> {
        if RECORD_BYTES_MAX < len {
            let text = format!("{len} bytes are left out; a record has at most {RECORD_BYTES_MAX}");
            self.damage(file, at, text);
            return Ok(None);
        }
        // The walk has seen that the file is so long, or was.
        let content = self.content(file)?;
        let part = match &content.mapped {
            Some(mapped) if at.checked_add(len).is_some_and(|end| end <= mapped.len() as u64) => {
                let (start, end) = (at as usize, (at + len) as usize);
                Ok(Part::Mapped(Arc::clone(mapped), start..end))
            }
            Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            None => content.frames.read(at, len as usize).map(Part::Read),
        };
        part.map(Some).map_err(|error| self.unread(file, error))
    }

    /// All messages of a piece, in the order of their times. However often it is loaded, its damages are told once.
    fn load(&mut self, piece: usize) -> Result<Vec<RecordedMessage>> {
        let (kept, count) = (self.summary.damages.len(), self.summary.damage_count);
        let messages = self.read_piece(piece)?;
        self.check_mapped(self.pieces[piece].file)?;
        if std::mem::replace(&mut self.pieces[piece].is_told, true) {
            self.summary.damages.truncate(kept);
            self.summary.damage_count = count;
        }
        Ok(messages)
    }

    fn read_piece(&mut self, piece: usize) -> Result<Vec<RecordedMessage>> {
        let Piece { file, kind, at, len, .. } = self.pieces[piece];
        let Some(part) = self.part(file, at, len)? else { return Ok(Vec::new()) };
        let (read, records) = match kind {
            PieceKind::Chunk => match unpack(part) {
                Ok(unpacked) => unpacked,
                Err(what) => {
                    self.damage(file, at, format!("a chunk is left out: {what}"));
                    return Ok(Vec::new());
                }
            },
            PieceKind::Loose => (part, 0..len as usize),
        };
        let read = Arc::new(read);
        let mut messages = Vec::new();
        let (mut unknown, mut packed) = (0_u64, 0_u64);
        let mut room = CHUNK_BYTES_MAX;
        for (opcode, body) in apart(&read, records) {
            match opcode {
                op::SCHEMA | op::CHANNEL => self.learn(file, opcode, &read[body], at)?,
                op::MESSAGE => {
                    match RecordedMessage::new(&read, body, &self.files[file].channels) {
                        Some(message) => match message.unpacked(&mut room) {
                            Some(message) => messages.push(message),
                            None => packed += 1,
                        },
                        None => unknown += 1,
                    }
                }
                _ => {}
            }
        }
        if packed != 0 {
            let text = format!(
                "{packed} messages are left out: they are packed each by itself, and cannot be unpacked into {CHUNK_BYTES_MAX} bytes"
            );
            self.damage(file, at, text);
        }
        if unknown != 0 {
            let text = format!(
                "{unknown} messages are left out: too short, or of a channel that the file does not tell"
            );
            self.damage(file, at, text);
        }
        messages.sort_by_key(|it| it.log_ns);
        Ok(messages)
    }

    /// Takes in a schema or a channel.
    fn learn(&mut self, file: usize, opcode: u8, body: &[u8], at: u64) -> Result<()> {
        if DEFINITION_BYTES_MAX < body.len() {
            let text = format!("it has {} bytes; allowed: {DEFINITION_BYTES_MAX}", body.len());
            self.left_out(file, at, &text);
            return Ok(());
        }
        match fields::parse(opcode, body) {
            Ok(Record::Schema(schema)) if !self.files[file].schemas.contains_key(&schema.id) => {
                let known = self.schema(&schema, body.len())?;
                self.files[file].schemas.insert(schema.id, known);
            }
            Ok(Record::Channel(channel))
                if !self.files[file].channels.contains_key(&channel.id) =>
            {
                let schema = self.files[file].schemas.get(&channel.schema_id).cloned();
                if schema.is_none() && channel.schema_id != 0 {
                    let text = format!("channel {} has a schema that is not there", channel.topic);
                    self.damage(file, at, text);
                }
                let topic = self.topic(&channel, schema, body.len())?;
                self.files[file].channels.insert(channel.id, topic);
                let said = channel.metadata.get("offered_qos_profiles");
                let more = offered::from_yaml(said.map(String::as_str).unwrap_or_default());
                let offers = self.files[file].offers.entry(topic).or_default();
                offers.extend(more.into_iter().take(OFFERS_MAX - offers.len().min(OFFERS_MAX)));
                offered::merge(&mut self.topics[topic].offered, offers);
            }
            Ok(_) => {}
            Err(error) => self.left_out(file, at, &error),
        }
        Ok(())
    }

    /// A schema, kept once however many files have it; it takes `bytes` where it is not known yet.
    fn schema(&mut self, schema: &fields::Schema<'_>, bytes: usize) -> Result<Arc<Schema>> {
        let &fields::Schema { name, encoding, data, .. } = schema;
        let text = String::from_utf8_lossy(data).into_owned();
        let schema = Schema { name: name.to_owned(), encoding: encoding.to_owned(), text };
        if let Some(known) = self.schemas.get(&schema) {
            return Ok(Arc::clone(known));
        }
        self.keep(bytes)?;
        let schema = Arc::new(schema);
        self.schemas.insert(Arc::clone(&schema));
        Ok(schema)
    }

    /// Counts the bytes of a definition that is kept.
    fn keep(&mut self, bytes: usize) -> Result<()> {
        self.definitions_bytes += bytes;
        if self.definitions_bytes <= DEFINITIONS_BYTES_MAX {
            return Ok(());
        }
        let text =
            format!("the recording has more than {DEFINITIONS_BYTES_MAX} bytes of definitions");
        Err(Error::new(ErrorKind::Format, text))
    }

    /// The place of a channel's topic. Channels of one name and one type are one topic; a new one takes `bytes`.
    fn topic(
        &mut self,
        channel: &fields::Channel<'_>,
        schema: Option<Arc<Schema>>,
        bytes: usize,
    ) -> Result<usize> {
        let type_name = schema.as_deref().map(|it| it.name.as_str()).unwrap_or_default();
        let parsed = type_name.parse::<TypeName>().map(|it| it.to_string());
        let type_name = parsed.as_deref().unwrap_or(type_name).to_owned();
        let said = |key: &str| channel.metadata.get(key).map(String::as_str).unwrap_or_default();
        let known =
            self.topics.iter().position(|it| it.name == channel.topic && it.type_name == type_name);
        if let Some(place) = known {
            return Ok(place);
        }
        if TOPICS_MAX <= self.topics.len() {
            let text = format!("the recording has more than {TOPICS_MAX} topics");
            return Err(Error::new(ErrorKind::Format, text));
        }
        self.keep(bytes)?;
        let type_hash = match said("topic_type_hash") {
            "" => schema
                .as_deref()
                .filter(|it| it.encoding == "ros2msg")
                .and_then(|it| schema::hash(&type_name, &it.text))
                .unwrap_or_default(),
            hash => hash.to_owned(),
        };
        let unplayable = if channel.message_encoding != "cdr" {
            Some(format!("its messages are in \"{}\"; played: cdr", channel.message_encoding))
        } else if parsed.is_err() {
            Some(format!("its type \"{type_name}\" is none of ROS 2"))
        } else {
            let name = tsuji_core::names::expand_topic(channel.topic, "tsuji", "/");
            name.err().map(|error| format!("its name is none of ROS 2: {error}"))
        };
        self.topics.push(RecordedTopic {
            name: channel.topic.to_owned(),
            type_name,
            type_hash,
            encoding: channel.message_encoding.to_owned(),
            offered: Vec::new(),
            messages: 0,
            unplayable,
            schema,
        });
        Ok(self.topics.len() - 1)
    }

    fn left_out(&mut self, file: usize, at: u64, why: &str) {
        self.damage(file, at, format!("a record is left out: {why}"));
    }

    fn damage(&mut self, file: usize, at: u64, what: String) {
        self.summary.damage_count += 1;
        if self.summary.damages.len() < DAMAGES_MAX {
            self.summary.damages.push(Damage { file: self.files[file].path.clone(), at, what });
        }
    }

    fn unread(&self, file: usize, error: io::Error) -> Error {
        unread(&self.files[file].path, error)
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("summary", &self.summary).finish_non_exhaustive()
    }
}

/// What the walk over a file found.
#[derive(Default)]
struct Found {
    bytes: u64,
    is_cut: bool,
    statistics: Option<fields::Statistics>,
    /// What the recorder counted as offered in the end, by topic.
    offered: Vec<(String, Vec<Qos>)>,
}

/// The messages of a recording, as [`Recording::messages`] gives them.
pub struct Messages<'a> {
    recording: &'a mut Recording,
    from_ns: u64,
    next: usize,
    waiting: BinaryHeap<Entry>,
    waiting_bytes: usize,
    count: u64,
    is_over: bool,
}

/// By its time, then by when it was read.
type Entry = Reverse<(u64, u64, Waiting)>;

/// Is put in order by what stands before it.
struct Waiting(RecordedMessage);

impl Waiting {
    fn bytes(&self) -> usize {
        size_of::<Entry>() + self.0.kept_bytes()
    }
}

impl PartialEq for Waiting {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

impl fmt::Debug for Messages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages").field("recording", &self.recording).finish_non_exhaustive()
    }
}

impl Iterator for Messages<'_> {
    type Item = Result<RecordedMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(piece) = self.recording.pieces.get(self.next) {
            let is_due = self.waiting.peek().is_none_or(|it| piece.first_ns <= it.0.0);
            if !is_due || WAITING_BYTES_MAX < self.waiting_bytes {
                break;
            }
            self.next += 1;
            // 0 is also what those write who do not know.
            if piece.last_ns != 0 && piece.last_ns < self.from_ns {
                continue;
            }
            let messages = match self.recording.load(self.next - 1) {
                Ok(messages) => messages,
                Err(error) => {
                    if self.recording.is_mapped {
                        (self.is_over, self.next) = (true, usize::MAX);
                        self.waiting.clear();
                    }
                    return Some(Err(error));
                }
            };
            for message in messages.into_iter().filter(|it| self.from_ns <= it.log_ns) {
                let (log_ns, message) = (message.log_ns, Waiting(message.compacted()));
                self.waiting_bytes += message.bytes();
                self.count += 1;
                self.waiting.push(Reverse((log_ns, self.count, message)));
            }
        }
        let Some(Reverse((_, _, message))) = self.waiting.pop() else {
            // What was looked at since the last was loaded.
            let is_over = std::mem::replace(&mut self.is_over, true);
            let lost = || {
                (0..self.recording.files.len()).find_map(|it| self.recording.check_mapped(it).err())
            };
            return if is_over { None } else { lost().map(Err) };
        };
        self.waiting_bytes -= message.bytes();
        Some(Ok(message.0))
    }
}

fn open(path: &Path) -> Result<Frames<Box<dyn Source>>> {
    let file = File::open(path).map_err(|error| unread(path, error))?;
    frames(path, Box::new(BufReader::with_capacity(1 << 16, file)))
}

fn map(path: &Path) -> Result<MappedFile> {
    File::open(path).and_then(MappedFile::new).map_err(|error| unread(path, error))
}

/// A mapped file as bytes that a cursor goes over.
struct Shared(Arc<MappedFile>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn frames(path: &Path, source: Box<dyn Source>) -> Result<Frames<Box<dyn Source>>> {
    let frames = Frames::new(source).map_err(|error| unread(path, error))?;
    frames.ok_or_else(|| {
        let mut begin = [0; 15];
        // What cannot be read is none of these.
        let _ = File::open(path).and_then(|mut it| it.read_exact(&mut begin));
        let what = match begin {
            it if it.starts_with(&ZSTD_MAGIC) => {
                "is packed as a whole; unpack it, such as by `zstd -d`, and take the file that this makes"
            }
            [0x04, 0x22, 0x4D, 0x18, ..] => {
                "is packed as a whole; unpack it, such as by `lz4 -d`, and take the file that this makes"
            }
            it if it == *b"SQLite format 3" => {
                "is a recording in SQLite; read are files of MCAP, which `ros2 bag convert` makes of it"
            }
            _ => "is no MCAP file: it does not begin as one",
        };
        Error::new(ErrorKind::Format, format!("{} {what}", path.display()))
    })
}

/// Refuses messages that were packed in a way that is not known here.
fn check_packing(path: &Path, list: &List) -> Result<()> {
    match &list.packing {
        Packing::Messages(format) if format != "zstd" => {
            let text = format!(
                "{}: each message is packed by \"{format}\"; unpacked: zstd",
                path.display()
            );
            Err(Error::new(ErrorKind::Format, text))
        }
        _ => Ok(()),
    }
}

fn unread(path: &Path, error: io::Error) -> Error {
    Error::disk(format_args!("cannot read {}", path.display()), error)
}

/// The file itself, or those that a folder of rosbag2 names, in their order, and what else its list says.
fn files_of(path: &Path) -> Result<(Vec<PathBuf>, List)> {
    if !fs::metadata(path).map_err(|error| unread(path, error))?.is_dir() {
        return Ok((vec![path.to_owned()], List::default()));
    }
    let at = path.join(LIST);
    let mut text = String::new();
    let read =
        File::open(&at).and_then(|it| it.take(list::LIST_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|error| unread(&at, error))?;
    let refused = |what: &str| Error::new(ErrorKind::Format, format!("{} {what}", at.display()));
    let list =
        List::parse(&text).map_err(|what| refused(&format!("is no list of rosbag2: {what}")))?;
    if let Some(what) = list.refusal() {
        return Err(refused(&what));
    }
    check_packing(path, &list)?;
    Ok((list.files.iter().map(|it| path.join(it)).collect(), list))
}

#[cfg(test)]
mod tests {
    use tsuji_core::History;

    use super::*;
    use crate::chunk::tests::{chunk, record};

    /// A text as records have it.
    fn text(text: &str) -> Vec<u8> {
        [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
    }

    /// Channel `id` on `topic`, with what was offered.
    fn channel(id: u16, schema: u16, topic: &str, offered: &str) -> Vec<u8> {
        let metadata = [text("offered_qos_profiles"), text(offered)].concat();
        let body = [
            &id.to_le_bytes()[..],
            &schema.to_le_bytes(),
            &text(topic),
            &text("cdr"),
            &(metadata.len() as u32).to_le_bytes(),
            &metadata,
        ];
        record(op::CHANNEL, &body.concat())
    }

    /// A message without data of channel 1.
    fn message(log_ns: u64) -> Vec<u8> {
        let body = [&[1, 0, 0, 0, 0, 0][..], &log_ns.to_le_bytes(), &[0; 8]];
        record(op::MESSAGE, &body.concat())
    }

    /// A file of `records`, which ends as it should.
    fn opened(records: &[Vec<u8>]) -> Result<Recording> {
        let end = [record(op::FOOTER, &[0; 20]), mcap::MAGIC.to_vec()].concat();
        Recording::read([mcap::MAGIC, &records.concat(), &end].concat())
    }

    fn recording(records: &[Vec<u8>]) -> Recording {
        opened(records).unwrap()
    }

    #[test]
    fn a_recording_may_begin_at_0() {
        let recording = recording(&[channel(1, 0, "/a", ""), message(0), message(5), message(3)]);
        let Summary { messages, first_ns, last_ns, .. } = *recording.summary();
        assert_eq!((messages, first_ns, last_ns), (3, 0, 5));
    }

    #[test]
    fn a_chunk_that_ends_before_is_not_looked_into() {
        let check = |first_ns: u64, last_ns: u64, from_ns, expect| {
            let mut chunk = chunk("brotli", &[], 0);
            chunk[9..17].copy_from_slice(&first_ns.to_le_bytes());
            chunk[17..25].copy_from_slice(&last_ns.to_le_bytes());
            // Of no message, and thus not in need of the chunk.
            let mut recording = recording(&[chunk, record(op::STATISTICS, &[0; 46])]);
            assert_eq!(recording.messages(from_ns).count(), 0);
            assert_eq!(recording.summary().damage_count, expect, "{first_ns} to {last_ns}");
        };
        check(1, 2, 3, 0);
        check(1, 3, 3, 1);
        check(0, 0, 3, 1);
    }

    #[test]
    fn what_waits_does_not_keep_what_it_was_read_with() {
        // Chunks that overlap, each with a small message beside a record that nobody reads.
        let records = [message(5), record(0x70, &vec![0; 1 << 20])].concat();
        let packed = zstd::bulk::compress(&records, 0).unwrap();
        let mut chunk = chunk("zstd", &packed, records.len() as u64);
        chunk[9..17].copy_from_slice(&1_u64.to_le_bytes());
        chunk[17..25].copy_from_slice(&9_u64.to_le_bytes());
        let mut recording = recording(&[vec![channel(1, 0, "/a", "")], vec![chunk; 20]].concat());
        let mut messages = recording.messages(0);
        let first = messages.next().unwrap().unwrap();
        assert!(first.kept_bytes() < 100);
        assert!((19..100 << 10).contains(&messages.waiting_bytes), "{}", messages.waiting_bytes);
        let kept: usize = messages.waiting.iter().map(|it| it.0.2.0.kept_bytes()).sum();
        assert!(kept < 100, "{kept}");
        assert_eq!(messages.count(), 19);
    }

    /// A chunk in which one schema takes so many bytes.
    fn chunk_of_schema(id: u16, bytes: usize) -> Vec<u8> {
        let data = vec![id as u8; bytes];
        let len = (bytes as u32).to_le_bytes();
        let body = [&id.to_le_bytes()[..], &text("a/msg/B"), &text("ros2msg"), &len, &data];
        let schema = record(op::SCHEMA, &body.concat());
        chunk("zstd", &zstd::bulk::compress(&schema, 0).unwrap(), schema.len() as u64)
    }

    #[test]
    fn definitions_have_limits() {
        let large = recording(&[chunk_of_schema(1, DEFINITION_BYTES_MAX)]);
        let [damage] = &large.summary().damages[..] else { panic!("{:?}", large.summary()) };
        assert!(damage.what.starts_with("a record is left out: it has "), "{damage}");

        let half = DEFINITION_BYTES_MAX / 2;
        let fit = DEFINITIONS_BYTES_MAX / half - 1;
        let mut chunks: Vec<_> = (0..fit as u16).map(|id| chunk_of_schema(id, half)).collect();
        // The same once more takes no more.
        chunks.push(chunk_of_schema(0, half));
        assert_eq!(recording(&chunks).summary().damages, []);
        chunks.extend((fit as u16..).map(|id| chunk_of_schema(id, half)).take(2));
        let error = opened(&chunks).unwrap_err();
        assert!(error.to_string().contains("bytes of definitions"), "{error}");
    }

    #[test]
    fn an_offer_is_kept_for_each_publisher() {
        let offers = ["- depth: 3\n", "- depth: 4\n- depth: 3\n"];
        let recording =
            recording(&[channel(1, 0, "/a", offers[0]), channel(2, 0, "/a", offers[1])]);
        let depths: Vec<_> = recording.topics()[0].offered.iter().map(|it| it.history).collect();
        let [three, four] = [3, 4].map(History::KeepLast);
        assert_eq!(depths, [three, four, three]);
        let many: String =
            (0..OFFERS_MAX + 50).map(|it| format!("- depth: {}\n", it + 1)).collect();
        let next = "- depth: 1000\n";
        let recording = opened(&[channel(1, 0, "/a", &many), channel(2, 0, "/a", next)]).unwrap();
        assert_eq!(recording.topics()[0].offered.len(), OFFERS_MAX);
    }

    #[test]
    fn damages_outside_of_chunks_are_kept() {
        let records = [channel(1, 5, "/a", ""), record(op::CHUNK, &[0; 10])];
        let mut recording = recording(&records);
        recording.check().unwrap();
        let damages: Vec<_> = recording.summary().damages.iter().map(|it| &*it.what).collect();
        let expect =
            ["channel /a has a schema that is not there", "a record is too short, and left out"];
        assert_eq!(damages, expect);
    }

    #[test]
    fn a_damage_is_counted_once_however_often_it_is_met() {
        let count = DAMAGES_MAX + 50;
        let mut recording = recording(&vec![chunk("brotli", &[], 0); count]);
        for _ in 0..3 {
            recording.check().unwrap();
            let Summary { damages, damage_count, .. } = recording.summary();
            assert_eq!((damages.len(), *damage_count), (DAMAGES_MAX, count as u64));
        }
    }
}

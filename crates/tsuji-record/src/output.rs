//! Where a recording goes: to one file, or to a folder of several as rosbag2 splits one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcap::records::MessageHeader;
use tsuji_core::Qos;
use tsuji_msg::TypeDescription;
use tsuji_platform::limit::{with_limit, without_file_signal};

use crate::list::LIST;
use crate::offered::{self, Layout};
use crate::read::{METADATA, OFFERED};
use crate::span::Span;
use crate::write::{Bag, Compression};
use crate::{Error, ErrorKind, RecordOptions, Result};

/// When a recording goes on in another file. If nothing is set it is one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Bytes of the messages of a file; one message may be larger.
    pub bytes_max: Option<u64>,
    /// From the first message of a file to the last.
    pub duration_max: Option<Duration>,
    /// Whether it is a folder although it may never go on in another file, as `rosbag2` makes one.
    pub folder: bool,
}

impl Split {
    fn is_wanted(&self) -> bool {
        self.bytes_max.is_some() || self.duration_max.is_some() || self.folder
    }
}

/// A recording as it grows.
pub(crate) struct Output {
    path: PathBuf,
    split: Split,
    compression: Compression,
    layout: Layout,
    distro: String,
    custom_data: BTreeMap<String, String>,
    bag: Bag,
    channels: Vec<Channel>,
    /// All files, the one that grows last.
    parts: Vec<Part>,
    /// Of the messages of all.
    bytes: u64,
}

/// A topic, which every file has to know anew.
struct Channel {
    topic: String,
    ty: Arc<TypeDescription>,
    offers: Vec<Qos>,
    /// Whether the file that grows has fewer of them.
    has_more_offers: bool,
    /// Its number in the file that grows.
    id: u16,
    messages: u64,
}

/// What is in one file.
#[derive(Clone, Debug, Default)]
struct Part {
    name: String,
    span: Span,
    messages: u64,
    bytes: u64,
}

impl Part {
    fn extend(&mut self, log_ns: u64, bytes: u64) {
        self.span.extend(log_ns, log_ns);
        self.messages += 1;
        self.bytes += bytes;
    }
}

impl Output {
    /// Makes the file, or the folder with its first file.
    pub(crate) fn create(path: &Path, options: &RecordOptions) -> Result<Self> {
        let &RecordOptions { split, compression, replace, layout, .. } = options;
        let mut name = String::new();
        let mut file = path.to_owned();
        if split.is_wanted() {
            make_folder(path)?;
            name = part_name(path, 0);
            file = path.join(&name);
        }
        let output = Self {
            path: path.to_owned(),
            split,
            compression,
            layout,
            distro: options.distro.clone(),
            custom_data: options.custom_data.clone(),
            bag: Bag::create(&file, compression, replace)?,
            channels: Vec::new(),
            parts: vec![Part { name, ..Part::default() }],
            bytes: 0,
        };
        output.write_list()?;
        Ok(output)
    }

    /// Bytes of the messages so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Enters a topic, and answers its place. A folder lists it once [`write_list`](Self::write_list) is called.
    pub(crate) fn channel(
        &mut self,
        topic: &str,
        ty: Arc<TypeDescription>,
        offers: Vec<Qos>,
    ) -> Result<usize> {
        let id = self.bag.channel(topic, &ty, &offers, self.layout)?;
        let has_more_offers = false;
        self.channels.push(Channel {
            topic: topic.to_owned(),
            ty,
            offers,
            has_more_offers,
            id,
            messages: 0,
        });
        Ok(self.channels.len() - 1)
    }

    /// Enters that more publishers of the topic at `place` offer this. The next file tells it of the topic, and the last one
    /// in its metadata.
    pub(crate) fn offer(&mut self, place: usize, offers: Vec<Qos>) {
        let channel = &mut self.channels[place];
        channel.offers = offers;
        channel.has_more_offers = true;
    }

    /// Writes a message of the topic at `place` from where it lies, to another file if that which grows has had its share.
    pub(crate) fn message(
        &mut self,
        place: usize,
        header: MessageHeader,
        data: &[u8],
    ) -> Result<()> {
        let written = self.write_message(place, header, data);
        if written.is_err() {
            // It is told why; a list of what is there is as much as can be done.
            let _ = self.write_list();
        }
        written
    }

    fn write_message(
        &mut self,
        place: usize,
        mut header: MessageHeader,
        data: &[u8],
    ) -> Result<()> {
        if self.is_full(header.log_time, data.len() as u64) {
            self.go_on()?;
        }
        let channel = &mut self.channels[place];
        header.channel_id = channel.id;
        self.bag.message(&header, data)?;
        channel.messages += 1;
        self.bytes += data.len() as u64;
        let Some(part) = self.parts.last_mut() else { return Ok(()) };
        part.extend(header.log_time, data.len() as u64);
        if part.messages == 1 { self.write_list() } else { Ok(()) }
    }

    /// When [`end_old_chunk`](Self::end_old_chunk) has something to do next; never without a message that waits.
    pub(crate) fn chunk_ends(&self) -> Option<Instant> {
        self.bag.chunk_ends()
    }

    /// Hands to the system what has waited long enough for a chunk to be full.
    pub(crate) fn end_old_chunk(&mut self, now: Instant) -> Result<()> {
        let ended = self.bag.end_old_chunk(now);
        if ended.is_err() {
            let _ = self.write_list();
        }
        ended
    }

    /// Writes what was counted, then the end.
    pub(crate) fn finish(&mut self, mut counts: BTreeMap<String, String>) -> Result<()> {
        for it in self.channels.iter().filter(|it| it.has_more_offers) {
            let offers = offered::to_yaml(&it.offers, self.layout);
            counts.insert(format!("{}{OFFERED}", it.topic), offers);
        }
        let mut metadata = vec![(METADATA, counts)];
        if !self.custom_data.is_empty() {
            metadata.push((CUSTOM_DATA, self.custom_data.clone()));
        }
        let ended = self.bag.finish(metadata);
        let listed = self.write_list();
        ended.and(listed)
    }

    fn is_full(&self, log_ns: u64, bytes: u64) -> bool {
        let Some(part) = self.parts.last().filter(|it| it.messages != 0) else { return false };
        let after = Duration::from_nanos(log_ns.saturating_sub(part.span.first_ns()));
        self.split.bytes_max.is_some_and(|it| it < part.bytes + bytes)
            || self.split.duration_max.is_some_and(|it| it <= after)
    }

    /// Ends the file and begins the next.
    fn go_on(&mut self) -> Result<()> {
        self.bag.finish(Vec::new())?;
        let name = part_name(&self.path, self.parts.len());
        let path = self.path.join(&name);
        self.begin(&path).inspect_err(|error| {
            // Nothing is in it; but one that existed is somebody's.
            if error.kind() != ErrorKind::Invalid {
                let _ = fs::remove_file(&path);
            }
        })?;
        self.parts.push(Part { name, ..Part::default() });
        Ok(())
    }

    fn begin(&mut self, path: &Path) -> Result<()> {
        self.bag = Bag::create(path, self.compression, false)?;
        for it in &mut self.channels {
            it.id = self.bag.channel(&it.topic, &it.ty, &it.offers, self.layout)?;
            it.has_more_offers = false;
        }
        Ok(())
    }

    /// Writes what a folder has in it. It is written as topics are joined and with the first message of each file: a recorder
    /// that is killed leaves a list too, and ROS tools know topics and the starting time from it alone.
    pub(crate) fn write_list(&self) -> Result<()> {
        if !self.split.is_wanted() {
            return Ok(());
        }
        // By another name first, so that there is a whole one at any time.
        let (list, fresh) = (self.path.join(LIST), self.path.join(".metadata.yaml"));
        without_file_signal(|| fs::write(&fresh, self.list()))
            .map_err(with_limit)
            .and_then(|()| fs::rename(&fresh, &list))
            .inspect_err(|_| drop(fs::remove_file(&fresh)))
            .map_err(|error| Error::disk(format_args!("cannot write {}", list.display()), error))
    }

    /// As rosbag2 writes it in the version that is asked for.
    fn list(&self) -> String {
        let (mut topics, mut paths, mut files) = (String::new(), String::new(), String::new());
        let mut whole = Span::default();
        self.parts.iter().for_each(|it| whole.join(it.span));
        let messages: u64 = self.parts.iter().map(|it| it.messages).sum();
        // Writing to a text does not fail.
        for it in &self.channels {
            let offers = offered::to_yaml(&it.offers, self.layout);
            let offers: String = offers.lines().map(|it| format!("          {it}\n")).collect();
            // A list since Jazzy, and a text that has one in it before.
            let block = if self.layout == Layout::Jazzy { "" } else { " |" };
            let hash = match self.layout {
                Layout::Humble => String::new(),
                _ => format!("        type_description_hash: {}\n", it.ty.hash()),
            };
            let _ = write!(
                topics,
                "    - topic_metadata:\n        name: {}\n        type: {}\n        serialization_format: cdr\n        \
                 offered_qos_profiles:{block}\n{offers}{hash}      message_count: {}\n",
                it.topic,
                it.ty.name(),
                it.messages
            );
        }
        for it in &self.parts {
            let _ = writeln!(paths, "    - {}", quoted(&it.name));
            let _ = write!(
                files,
                "    - path: {}\n      starting_time:\n        nanoseconds_since_epoch: {}\n      duration:\n        \
                 nanoseconds: {}\n      message_count: {}\n",
                quoted(&it.name),
                it.span.first_ns(),
                it.span.last_ns() - it.span.first_ns(),
                it.messages
            );
        }
        let none = if topics.is_empty() { " []" } else { "" };
        let mut last = String::new();
        if self.layout != Layout::Humble {
            let custom = self
                .custom_data
                .iter()
                .map(|(key, value)| format!("    {}: {}\n", quoted(key), quoted(value)));
            let custom: String = custom.collect();
            let none = if custom.is_empty() { " ~" } else { "" };
            let _ = write!(last, "  custom_data:{none}\n{custom}");
        }
        if self.layout == Layout::Jazzy {
            let distro = if self.distro.is_empty() { "unknown" } else { &self.distro };
            let _ = writeln!(last, "  ros_distro: {}", quoted(distro));
        }
        format!(
            "rosbag2_bagfile_information:\n  version: {}\n  storage_identifier: mcap\n  duration:\n    nanoseconds: {}\n  \
             starting_time:\n    nanoseconds_since_epoch: {}\n  message_count: {}\n  topics_with_message_count:{none}\n\
             {topics}  compression_format: \"\"\n  compression_mode: \"\"\n  relative_file_paths:\n{paths}  \
             files:\n{files}{last}",
            self.layout.version(),
            whole.last_ns() - whole.first_ns(),
            whole.first_ns(),
            messages
        )
    }
}

fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let text =
                format!("{} exists; a recording of several files makes its folder", path.display());
            Error::new(ErrorKind::Invalid, text)
        }
        _ => Error::disk(format_args!("cannot create {}", path.display()), error),
    })
}

/// Such as `drive_3.mcap` in the folder `drive`.
fn part_name(folder: &Path, number: usize) -> String {
    let folder = folder.file_name().unwrap_or_default().to_string_lossy();
    format!("{folder}_{number}.mcap")
}

/// The record that has what the user said of the recording.
const CUSTOM_DATA: &str = "custom_data";

/// As a scalar of YAML in quotes, so that no word is taken for a number or for nothing.
fn quoted(text: &str) -> String {
    if text.chars().any(char::is_control) {
        return tsuji_msg::yaml::quoted(text);
    }
    format!("'{}'", text.replace('\'', "''"))
}

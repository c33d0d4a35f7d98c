//! A film from a recording, in the place of the drawn one.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::PathBuf;

use image::{ImageFormat, ImageReader};
use serde::{Deserialize, Serialize};
use tsuji::Message;
use tsuji_interfaces::sensor_msgs::msg::{CompressedImage, Image};
use tsuji_record::{RecordedTopic, Recording};

use super::reel::{Frame, Reel, no_jpeg};
use crate::arguments::Options;
use crate::report::{Cell, Table};
use crate::statistics::mean;

/// Pictures of a recording that are filmed, as many as the article's. What is behind them is left out.
const PICTURES_MAX: usize = 500;

/// Bytes of them, which the process that films holds. What is behind them is left out; one may be larger.
const FILM_BYTES_MAX: usize = 256 << 20;

/// What a user asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Input {
    file: PathBuf,
    topic: Option<String>,
    /// As far apart as they were recorded, or every 30 ms.
    is_recorded_beat: bool,
}

/// What a recording has to film.
pub(super) struct Footage {
    pub(super) reel: Reel,
    file: String,
    topic: String,
    type_name: String,
    /// Messages of the topic, as far as that is known.
    messages: u64,
    /// Why messages of the topic are not filmed: how many, and the first reason.
    left_out: Option<(u64, String)>,
    /// What is wrong with the file.
    damages: Vec<String>,
    is_recorded_beat: bool,
}

impl Input {
    /// `None` if the drawn film was asked for.
    pub(super) fn of(options: &Options) -> Option<Self> {
        let file = options.input.clone()?;
        let (topic, is_recorded_beat) = (options.topic.clone(), options.recorded_beat);
        Some(Self { file, topic, is_recorded_beat })
    }

    /// Reads the film. An error says what keeps it from being filmed.
    pub(super) fn read(&self) -> Result<Footage, String> {
        let recording = Recording::open(&self.file).map_err(|error| error.to_string())?;
        self.film(recording)
    }

    fn film(&self, mut recording: Recording) -> Result<Footage, String> {
        let file = self.file.display().to_string();
        let place = self.choose(recording.topics())?;
        let topic = recording.topics()[place].clone();
        let (mut frames, mut times_ns, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut left_out: Option<(u64, String)> = None;
        for message in recording.messages(0) {
            let message = message.map_err(|error| error.to_string())?;
            if message.topic != place {
                continue;
            }
            match frame(&topic.type_name, message.data()) {
                Ok(frame) => {
                    bytes += frame.data().len();
                    if PICTURES_MAX == frames.len() || FILM_BYTES_MAX < bytes && !frames.is_empty()
                    {
                        break;
                    }
                    frames.push(frame);
                    times_ns.push(message.log_ns);
                }
                Err(why) => left_out.get_or_insert((0, why)).0 += 1,
            }
        }
        let Some(first_ns) = times_ns.first().copied() else {
            let why = left_out.map_or(String::new(), |(count, why)| format!(": {count} are {why}"));
            return Err(format!("{file}: {} has no picture that can be filmed{why}", topic.name));
        };
        let due_us = times_ns.iter().map(|it| it.saturating_sub(first_ns) / 1000).collect();
        let reel = if self.is_recorded_beat {
            Reel::at_beat(frames, due_us)
        } else {
            Reel::evenly(frames)
        };
        Ok(Footage {
            reel,
            file,
            topic: topic.name,
            type_name: topic.type_name,
            messages: topic.messages,
            left_out,
            damages: recording.summary().damages.iter().map(ToString::to_string).collect(),
            is_recorded_beat: self.is_recorded_beat,
        })
    }

    /// The place of the topic that is filmed.
    fn choose(&self, topics: &[RecordedTopic]) -> Result<usize, String> {
        let file = self.file.display();
        let of_pictures: Vec<usize> = (0..topics.len())
            .filter(|it| has_pictures(&topics[*it]) && 0 < topics[*it].messages)
            .collect();
        let names: Vec<&str> = of_pictures.iter().map(|it| topics[*it].name.as_str()).collect();
        let names = names.join(", ");
        match (&self.topic, &of_pictures[..]) {
            (_, []) => {
                let all: Vec<_> =
                    topics.iter().map(|it| format!("{} ({})", it.name, it.type_name)).collect();
                let has = if all.is_empty() { "nothing".to_owned() } else { all.join(", ") };
                let (raw, compressed) = (Image::TYPE_NAME, CompressedImage::TYPE_NAME);
                Err(format!(
                    "{file} has no pictures, which are {raw} or {compressed}; it has {has}"
                ))
            }
            (Some(topic), _) => of_pictures
                .into_iter()
                .find(|it| topics[*it].name == *topic)
                .ok_or_else(|| format!("--topic {topic}: {file} has pictures on {names}")),
            (None, [only]) => Ok(*only),
            (None, _) => Err(format!("{file} has pictures on {names}; --topic chooses one")),
        }
    }
}

fn has_pictures(topic: &RecordedTopic) -> bool {
    topic.unplayable.is_none()
        && [Image::TYPE_NAME, CompressedImage::TYPE_NAME].contains(&topic.type_name.as_str())
}

/// The picture in a message; the error says what it is instead.
fn frame(type_name: &str, data: &[u8]) -> Result<Frame, String> {
    if type_name == Image::TYPE_NAME {
        return Image::deserialize(data)
            .map(Frame::Raw)
            .map_err(|error| format!("no CDR: {error}"));
    }
    let image = CompressedImage::deserialize(data).map_err(|error| format!("no CDR: {error}"))?;
    if sides(&image).is_none() {
        return Err(format!("no JPEG but \"{}\"", image.format));
    }
    Ok(Frame::Compressed(image))
}

/// Width and height of a JPEG.
fn sides(image: &CompressedImage) -> Option<(u32, u32)> {
    ImageReader::with_format(Cursor::new(&image.data), ImageFormat::Jpeg).into_dimensions().ok()
}

impl Footage {
    /// Why there is nothing to send raw, or as JPEG, if so.
    pub(super) fn lacks(&self, is_jpeg: bool) -> Option<String> {
        self.reel.frames().iter().find_map(|it| match it {
            Frame::Raw(image) if is_jpeg => no_jpeg(image),
            Frame::Compressed(_) if !is_jpeg => {
                Some(format!("{} has {}, which is not decoded here", self.topic, self.type_name))
            }
            _ => None,
        })
    }

    /// What is filmed, for the title of a table.
    pub(super) fn title(&self) -> String {
        let beat = if self.is_recorded_beat { "as far apart as recorded" } else { "every 30 ms" };
        format!("{} of {}, {beat}", self.topic, self.file)
    }

    /// The film: its pictures by size and encoding.
    pub(super) fn table(&self) -> Table {
        let mut kinds: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
        for frame in self.reel.frames() {
            let (sides, encoding) = match frame {
                Frame::Raw(it) => ((it.width, it.height), &it.encoding),
                Frame::Compressed(it) => (sides(it).unwrap_or_default(), &it.format),
            };
            let sides = format!("{} × {}", sides.0, sides.1);
            kinds.entry((sides, encoding.clone())).or_default().push(frame.data().len() as f64);
        }
        let rows = kinds.into_iter().map(|((sides, encoding), bytes)| {
            let figures = [bytes.len() as f64, mean(&bytes)].map(Cell::Number);
            [self.type_name.clone(), sides, encoding]
                .map(Cell::Text)
                .into_iter()
                .chain(figures)
                .collect()
        });
        let columns = ["type", "size", "encoding", "pictures", "bytes"];
        let title = format!("The film: {}", self.title());
        Table::new(title, &columns, rows.collect(), self.note())
    }

    fn note(&self) -> String {
        let mut note = format!(
            "{} of {} pictures, which go round; one every {:.1} ms in the mean.",
            self.reel.frames().len(),
            self.messages,
            self.reel.period_us() / 1000.0
        );
        if let Some((count, why)) = &self.left_out {
            note += &format!(" {count} are left out; the first is {why}.");
        }
        for damage in &self.damages {
            note += &format!(" {damage}.");
        }
        note
    }
}

//! Cyclone DDS alone: the same library, tuning, QoS and bytes as on tsuji's road, the receiver asleep
//! in a wait set with a read condition, as its own examples do it. And a plain node for tsuji to meet.

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};
use tsuji::{History, Message, Qos};
use tsuji_transport_cyclonedds::CycloneConfig;
use tsuji_transport_cyclonedds::raw::{Participant, Reader, Writer};

use crate::account::{Account, Wrong};
use crate::carrier::peer::{self, Line, Listener, Talker};
use crate::carrier::{End, Flow, LOOK_AGAIN, Sender, Spec, tsuji as ours};
use crate::picture::Pictures;
use crate::road;

/// What DDS calls the type of a picture.
pub(crate) const TYPE_NAME: &str = "sensor_msgs::msg::dds_::Image_";

fn join(line: &Line, domain: u32) -> Result<Participant, String> {
    if line.flow == Flow::Stream {
        return Err("Cyclone DDS is measured one sample at a time".to_owned());
    }
    Participant::join(&CycloneConfig::on_loopback(domain)).map_err(said)
}

pub(super) fn talker(line: &Line, domain: u32) -> Result<Talking, String> {
    let participant = join(line, domain)?;
    let writer = participant.writer(&line.topic(), line.type_name, &line.qos).map_err(said)?;
    Ok(Talking { writer, _participant: participant })
}

pub(super) struct Talking {
    writer: Writer,
    _participant: Participant,
}

impl Talker for Talking {
    fn is_met(&mut self) -> Result<bool, String> {
        Ok(self.writer.matched() != 0)
    }

    fn send(&mut self, sample: &[u8]) -> Result<(), String> {
        self.writer.write(&Arc::new(sample.to_vec())).map_err(said)
    }
}

pub(super) fn listener(line: &Line, domain: u32) -> Result<Listening, String> {
    let participant = join(line, domain)?;
    let reader = participant.reader(&line.topic(), line.type_name, &line.qos).map_err(said)?;
    Ok(Listening { reader, _participant: participant })
}

pub(super) struct Listening {
    reader: Reader,
    _participant: Participant,
}

impl Listener for Listening {
    fn run(self: Box<Self>, end: &End, heard: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        while !end.is_over() {
            self.reader.wait(LOOK_AGAIN).map_err(said)?;
            while let Some(sample) = self.reader.take().map_err(said)? {
                heard(&sample);
            }
        }
        Ok(())
    }
}

/// Sends pictures from the buffers that they are drawn in.
pub(super) fn in_place(spec: &Spec) -> Result<Box<dyn Sender>, String> {
    let talking = talker(&Line::of(spec), road::raw_domain(&spec.folder))?;
    let pictures = Pictures::new(spec.size);
    let blank = ours::image(pictures.size()).to_vec().map_err(|error| error.to_string())?;
    let frames = (0..FRAMES).map(|_| Arc::new(blank.clone())).collect();
    Ok(Box::new(InPlace { pictures, blank, frames, has_met: false, talking }))
}

/// Frames in rotation; one is free again when the receiver has acknowledged it.
const FRAMES: usize = 4;

struct InPlace {
    pictures: Pictures,
    /// An image without its pixels, which are the end of it.
    blank: Vec<u8>,
    frames: VecDeque<Arc<Vec<u8>>>,
    has_met: bool,
    talking: Talking,
}

impl Sender for InPlace {
    fn prepare(&mut self) -> Result<(), String> {
        peer::meet_once(&mut self.has_met, &mut self.talking)?;
        self.frames.rotate_left(1);
        if Arc::get_mut(&mut self.frames[0]).is_none() {
            self.frames[0] = Arc::new(self.blank.clone());
        }
        Ok(())
    }

    fn draw(&mut self, number: u64) -> Result<(), String> {
        let frame = Arc::get_mut(&mut self.frames[0]).ok_or("the frame is in use")?;
        let pixels = frame.len() - self.pictures.size();
        self.pictures.draw(number, &mut frame[pixels..]);
        Ok(())
    }

    fn publish(&mut self) -> Result<(), String> {
        self.talking.writer.write(&self.frames[0]).map_err(said)
    }
}

/// A participant in the domain of tsuji that has one reader, and a writer that writes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    /// The folder of the run.
    pub(crate) folder: PathBuf,
    /// The type of both, as DDS names it.
    pub(crate) type_name: String,
    /// The topic that it reads, without the prefix that DDS sees.
    pub(crate) reads: String,
    /// The topic of the writer, if there is one.
    pub(crate) writes: Option<String>,
    /// Bytes of the numbered pictures that it reads and checks; 0 where it only counts them.
    pub(crate) size: usize,
    /// How many samples it keeps.
    pub(crate) depth: u32,
}

impl Plain {
    /// As one word of a command line.
    pub(crate) fn to_json(&self) -> String {
        json!({
            "folder": self.folder.to_string_lossy(),
            "type_name": self.type_name,
            "reads": self.reads,
            "writes": self.writes,
            "size": self.size,
            "depth": self.depth,
        })
        .to_string()
    }

    fn from_json(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let word = |field: &str| value[field].as_str().map(str::to_owned);
        let needed = |field: &str| word(field).ok_or_else(|| format!("{field} is missing"));
        let number =
            |field: &str| value[field].as_u64().ok_or_else(|| format!("{field} is missing"));
        Ok(Self {
            folder: needed("folder")?.into(),
            type_name: needed("type_name")?,
            reads: needed("reads")?,
            writes: word("writes"),
            size: number("size")? as usize,
            depth: u32::try_from(number("depth")?).map_err(|error| error.to_string())?,
        })
    }
}

/// Plays a plain node, as `text` describes it. To each line it answers how many samples it has taken, what
/// was wrong with them, and how many readers its writer has.
pub(crate) fn play_plain(text: &str) -> Result<(), String> {
    let plain = Plain::from_json(text)?;
    let domain = road::domain(&plain.folder);
    let participant = Participant::join(&CycloneConfig::on_loopback(domain)).map_err(said)?;
    let (topic, ty) = (format!("rt/{}", plain.reads), &*plain.type_name);
    let qos = Qos { history: History::KeepLast(plain.depth), ..Qos::DEFAULT };
    let reader = participant.reader(&topic, ty, &qos).map_err(said)?;
    let writer = plain
        .writes
        .map(|name| participant.writer(&format!("rt/{name}"), ty, &Qos::DEFAULT).map_err(said));
    let writer = writer.transpose()?;
    let taken = Arc::<AtomicU64>::default();
    let wrong = Arc::<Mutex<Wrong>>::default();
    thread::spawn({
        let (taken, wrong) = (Arc::clone(&taken), Arc::clone(&wrong));
        let pictures = (plain.size != 0).then(|| Pictures::new(plain.size));
        let mut account = Account::default();
        move || {
            while reader.wait(LOOK_AGAIN).is_ok() {
                while let Ok(Some(sample)) = reader.take() {
                    if let Some(pictures) = &pictures {
                        let pixels = sample.len().saturating_sub(pictures.size());
                        account.enter(pictures, &sample[pixels..]);
                        *wrong.lock().unwrap_or_else(PoisonError::into_inner) = account.wrong();
                    }
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
    let mut input = io::stdin().lock();
    let mut line = String::new();
    loop {
        let (taken, matched) =
            (taken.load(Ordering::Relaxed), writer.as_ref().map(Writer::matched));
        let wrong = wrong.lock().unwrap_or_else(PoisonError::into_inner).to_json();
        let answer = json!({ "taken": taken, "wrong": wrong, "matched": matched });
        let mut out = io::stdout().lock();
        // Nobody listens any more when this fails, and the input ends as well.
        let _ = writeln!(out, "{answer}").and_then(|()| out.flush());
        line.clear();
        if matches!(input.read_line(&mut line), Ok(0) | Err(_)) {
            // The reader's thread does not end by itself.
            std::process::exit(0);
        }
    }
}

fn said(error: impl std::fmt::Display) -> String {
    format!("Cyclone DDS: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_node_comes_back_from_its_text() {
        for writes in [None, Some("b".to_owned())] {
            let plain = Plain {
                folder: "/tmp/a folder".into(),
                type_name: TYPE_NAME.to_owned(),
                reads: "a".to_owned(),
                writes,
                size: 64,
                depth: 10,
            };
            assert_eq!(Plain::from_json(&plain.to_json()), Ok(plain));
        }
        assert!(Plain::from_json("{}").is_err());
    }
}

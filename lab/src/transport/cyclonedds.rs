//! Cyclone DDS alone: the same library, tuning, QoS and bytes as on tsuji's transport, the receiver asleep
//! in a wait set with a read condition, as its own examples do it. And a foreign node for tsuji to meet.

use std::collections::VecDeque;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde::{Deserialize, Serialize};
use tsuji::{History, Message, Qos};
use tsuji_security::Enclave;
use tsuji_transport_cyclonedds::raw::{Participant, Reader, Writer};
use tsuji_transport_cyclonedds::{CycloneConfig, DdsSecurity};

use crate::Allocations;
use crate::account::{Account, Wrong};
use crate::child::{ChildPart, answer, obey_each};
use crate::picture::Pictures;
use crate::route;
use crate::transport::peer::{self, Line, Listener, Talker};
use crate::transport::{End, Flow, LOOK_AGAIN, Sender, Spec, tsuji as ours};

/// What DDS calls the type of a picture.
pub(crate) const TYPE_NAME: &str = "sensor_msgs::msg::dds_::Image_";

/// Cyclone DDS alone, where tsuji's discovery is not heard.
pub(super) fn alone(folder: &Path) -> CycloneConfig {
    CycloneConfig::on_loopback(route::raw_domain(folder))
}

/// The same, secured as this process was started.
pub(super) fn secured(folder: &Path) -> Result<CycloneConfig, String> {
    let keystore = env::var_os(KEYSTORE).ok_or_else(|| format!("{KEYSTORE} is not set"))?;
    let files = Enclave::files(Path::new(&keystore), ENCLAVE);
    let security = Some(DdsSecurity::of(tsuji::dds_security_library()?, files));
    Ok(CycloneConfig { security, ..alone(folder) })
}

/// Cyclone DDS as a foreign node that tsuji meets.
pub(super) fn foreign(folder: &Path) -> CycloneConfig {
    CycloneConfig::on_loopback(route::domain(folder))
}

/// The variable with the keystore of a secured process, as SROS2 has it.
pub(crate) const KEYSTORE: &str = "ROS_SECURITY_KEYSTORE";

/// The enclave of all that are secured.
pub(crate) const ENCLAVE: &str = "/laboratory";

/// Why RTPS cannot be secured here; nothing where it can.
pub(crate) fn absence_of_security() -> Option<String> {
    tsuji::dds_security_library().err()
}

fn join(line: &Line, config: &CycloneConfig) -> Result<Participant, String> {
    if line.flow == Flow::Stream {
        return Err("Cyclone DDS is measured one sample at a time".to_owned());
    }
    Participant::join(config).map_err(said)
}

pub(super) fn talker(line: &Line, config: &CycloneConfig) -> Result<Talking, String> {
    let participant = join(line, config)?;
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

pub(super) fn listener(line: &Line, config: &CycloneConfig) -> Result<Listening, String> {
    let participant = join(line, config)?;
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
    let talking =
        talker(&Line::of(spec), &CycloneConfig::on_loopback(route::raw_domain(&spec.folder)))?;
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

/// A process with a participant in the domain of tsuji that has one reader, and a writer that writes nothing. To each line it
/// answers what it has [`Heard`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Foreign {
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

/// What a foreign node answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Heard {
    /// How many samples it has taken.
    pub(crate) taken: u64,
    /// What was wrong with their numbers.
    pub(crate) wrong: Wrong,
    /// How many readers its writer has, if it has one.
    pub(crate) matched: Option<usize>,
}

impl ChildPart for Foreign {
    const MODE: &'static str = "--plain";

    fn play(self, _: Option<Allocations>) -> Result<(), String> {
        run_plain(self)
    }
}

fn run_plain(plain: Foreign) -> Result<(), String> {
    let participant = Participant::join(&foreign(&plain.folder)).map_err(said)?;
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
    let heard = || Heard {
        taken: taken.load(Ordering::Relaxed),
        wrong: *wrong.lock().unwrap_or_else(PoisonError::into_inner),
        matched: writer.as_ref().map(Writer::matched),
    };
    answer(&heard());
    obey_each(|_| Ok(heard()))?;
    // The reader's thread does not end by itself.
    std::process::exit(0);
}

fn said(error: impl std::fmt::Display) -> String {
    format!("Cyclone DDS: {error}")
}

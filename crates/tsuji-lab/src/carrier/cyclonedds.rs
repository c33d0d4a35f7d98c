//! Cyclone DDS alone: the same library, tuning, QoS and bytes as on tsuji's road, the receiver asleep
//! in a wait set with a read condition, as its own examples do it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tsuji::{Message, Qos};
use tsuji_transport_cyclonedds::CycloneConfig;
use tsuji_transport_cyclonedds::raw::{Participant, Reader, Writer};

use crate::carrier::{Carrier, End, Flow, LOOK_AGAIN, Receiver, Sender, Spec, tsuji as ours};
use crate::picture::Pictures;
use crate::probe::Arrivals;
use crate::road;

fn join(spec: &Spec) -> Result<Participant, String> {
    if spec.flow == Flow::Stream {
        return Err("Cyclone DDS is measured one sample at a time".to_owned());
    }
    Participant::join(&CycloneConfig::on_loopback(road::raw_domain(&spec.folder))).map_err(said)
}

fn topic(spec: &Spec) -> String {
    format!("rt/{}", spec.name)
}

const TYPE_NAME: &str = "sensor_msgs::msg::dds_::Image_";

pub(crate) fn sender(spec: &Spec) -> Result<Box<dyn Sender>, String> {
    let participant = join(spec)?;
    let writer = participant.writer(&topic(spec), TYPE_NAME, &Qos::DEFAULT).map_err(said)?;
    let pictures = Pictures::new(spec.size);
    let blank = ours::image(pictures.size()).to_vec().map_err(|error| error.to_string())?;
    Ok(Box::new(Sending {
        frames: (0..FRAMES).map(|_| Arc::new(blank.clone())).collect(),
        blank,
        pictures,
        copies: spec.carrier == Carrier::CycloneCopy,
        is_met: false,
        writer,
        _participant: participant,
    }))
}

/// Frames in rotation; one is free again when the receiver has acknowledged it.
const FRAMES: usize = 4;

struct Sending {
    pictures: Pictures,
    /// An image without its pixels, which are the end of it.
    blank: Vec<u8>,
    frames: VecDeque<Arc<Vec<u8>>>,
    copies: bool,
    is_met: bool,
    writer: Writer,
    _participant: Participant,
}

impl Sender for Sending {
    fn prepare(&mut self) -> Result<(), String> {
        for _ in 0..LOOKS_MAX {
            self.is_met = self.is_met || self.writer.matched() != 0;
            if self.is_met {
                break;
            }
            std::thread::sleep(LOOK);
        }
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
        let frame = &self.frames[0];
        if self.copies {
            return self.writer.write(&Arc::new(Vec::clone(frame))).map_err(said);
        }
        self.writer.write(frame).map_err(said)
    }
}

/// How a reader is waited for.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS_MAX: u32 = 1000;

pub(crate) fn receiver(spec: &Spec, arrivals: Arc<Arrivals>) -> Result<Box<dyn Receiver>, String> {
    let participant = join(spec)?;
    let reader = participant.reader(&topic(spec), TYPE_NAME, &Qos::DEFAULT).map_err(said)?;
    let size = Pictures::new(spec.size).size();
    Ok(Box::new(Receiving { reader, size, arrivals, _participant: participant }))
}

struct Receiving {
    reader: Reader,
    size: usize,
    arrivals: Arc<Arrivals>,
    _participant: Participant,
}

impl Receiver for Receiving {
    fn run(self: Box<Self>, end: &End) -> Result<(), String> {
        while !end.is_over() {
            self.reader.wait(LOOK_AGAIN).map_err(said)?;
            while let Some(sample) = self.reader.take().map_err(said)? {
                let pixels = sample.len().saturating_sub(self.size);
                self.arrivals.arrived(&sample[pixels..]);
            }
        }
        Ok(())
    }
}

fn said(error: impl std::fmt::Display) -> String {
    format!("Cyclone DDS: {error}")
}

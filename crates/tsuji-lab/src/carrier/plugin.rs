//! An engine from a shared library alone: the same library, settings, QoS and bytes as on tsuji's road, the receiver
//! asleep on a condition variable that the engine's own thread signals.

use std::path::PathBuf;
use std::sync::Arc;

use tsuji::Message;
use tsuji_transport_plugin::raw::{Participant, Reader, Writer};
use tsuji_transport_plugin::{file_name, folders, locate};

use crate::carrier::{
    Carrier, End, Flow, LOOK_AGAIN, PICTURE_TYPE, Receiver, Sender, Spec, tsuji as ours,
    wait_until_met,
};
use crate::picture::Pictures;
use crate::probe::Arrivals;
use crate::road::{self, Transport};

/// Why the library of this transport is not here; nothing where it is, or where the transport needs none.
pub(crate) fn absence(transport: Transport) -> Option<String> {
    match transport {
        Transport::Shm | Transport::CycloneDds => None,
        Transport::FastDds | Transport::Zenoh => library(transport).err(),
    }
}

fn library(transport: Transport) -> Result<PathBuf, String> {
    locate(&file_name(transport.word()), &folders()).map(|it| it.path)
}

fn join(spec: &Spec) -> Result<Participant, String> {
    if spec.flow == Flow::Stream {
        return Err("an engine alone is measured one sample at a time".to_owned());
    }
    let transport = match spec.carrier {
        Carrier::FastCopy => Transport::FastDds,
        _ => Transport::Zenoh,
    };
    let path = library(transport)?;
    let domain = road::raw_domain(&spec.folder);
    Participant::join_on_host(transport.word(), &path, domain).map_err(said)
}

fn topic(spec: &Spec) -> String {
    format!("rt/{}", spec.name)
}

pub(crate) fn sender(spec: &Spec) -> Result<Box<dyn Sender>, String> {
    let participant = join(spec)?;
    let writer = participant.writer(&topic(spec), PICTURE_TYPE, &ours::qos(spec)).map_err(said)?;
    let pictures = Pictures::new(spec.size);
    let frame = ours::image(pictures.size()).to_vec().map_err(|error| error.to_string())?;
    Ok(Box::new(Sending { frame, pictures, is_met: false, writer, _participant: participant }))
}

struct Sending {
    pictures: Pictures,
    /// An image, whose pixels are the end of it.
    frame: Vec<u8>,
    is_met: bool,
    writer: Writer,
    _participant: Participant,
}

impl Sender for Sending {
    fn prepare(&mut self) -> Result<(), String> {
        wait_until_met(&mut self.is_met, || self.writer.matched());
        Ok(())
    }

    fn draw(&mut self, number: u64) -> Result<(), String> {
        let pixels = self.frame.len() - self.pictures.size();
        self.pictures.draw(number, &mut self.frame[pixels..]);
        Ok(())
    }

    fn publish(&mut self) -> Result<(), String> {
        self.writer.write_copy(&self.frame).map_err(said)
    }
}

pub(crate) fn receiver(spec: &Spec, arrivals: Arc<Arrivals>) -> Result<Box<dyn Receiver>, String> {
    let participant = join(spec)?;
    let reader = participant.reader(&topic(spec), PICTURE_TYPE, &ours::qos(spec)).map_err(said)?;
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
            self.reader.wait(LOOK_AGAIN);
            while let Some(sample) = self.reader.take().map_err(said)? {
                let pixels = sample.len().saturating_sub(self.size);
                self.arrivals.arrived(&sample[pixels..]);
            }
        }
        Ok(())
    }
}

fn said(error: impl std::fmt::Display) -> String {
    format!("the engine alone: {error}")
}

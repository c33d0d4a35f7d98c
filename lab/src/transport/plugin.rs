//! An engine from a shared library alone: the same library, settings, QoS and bytes as on tsuji's transport, the receiver
//! asleep on a condition variable that the engine's own thread signals.

use std::path::PathBuf;

use tsuji_transport_plugin::raw::{Participant, Reader, Writer};
use tsuji_transport_plugin::{file_name, folders, locate};

use crate::route::{self, TsujiTransport};
use crate::transport::peer::{Line, Listener, Talker};
use crate::transport::{End, Flow, LOOK_AGAIN};

/// Why the library of this transport is not here; nothing where it is, or where the transport needs none.
pub(crate) fn absence(via: TsujiTransport) -> Option<String> {
    match via {
        TsujiTransport::Shm | TsujiTransport::CycloneDds => None,
        TsujiTransport::FastDds | TsujiTransport::Zenoh => library(via).err(),
    }
}

fn library(via: TsujiTransport) -> Result<PathBuf, String> {
    locate(&file_name(via.word()), &folders()).map(|it| it.path)
}

fn join(line: &Line, via: TsujiTransport) -> Result<Participant, String> {
    if line.flow == Flow::Stream {
        return Err("an engine alone is measured one sample at a time".to_owned());
    }
    let path = library(via)?;
    let domain = route::raw_domain(&line.folder);
    Participant::join_on_host(via.word(), &path, domain).map_err(said)
}

pub(super) fn talker(line: &Line, via: TsujiTransport) -> Result<Talking, String> {
    let participant = join(line, via)?;
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
        self.writer.write_copy(sample).map_err(said)
    }
}

pub(super) fn listener(line: &Line, via: TsujiTransport) -> Result<Listening, String> {
    let participant = join(line, via)?;
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
            self.reader.wait(LOOK_AGAIN);
            while let Some(sample) = self.reader.take().map_err(said)? {
                heard(&sample);
            }
        }
        Ok(())
    }
}

fn said(error: impl std::fmt::Display) -> String {
    format!("the engine alone: {error}")
}

//! What carries bytes without tsuji: an engine alone, iceoryx2, a Unix socket. Each is driven as a user of it would, behind
//! two small traits, so that every experiment has the same peers.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use tsuji::{Message, Qos};

use super::cyclonedds::{alone, foreign, secured};
use super::{
    End, Flow, PICTURE_TYPE, Receiver, Sender, Spec, absence, cyclonedds, iceoryx, plugin, socket,
    tsuji as ours,
};
use crate::child::told_by_word;
use crate::picture::Pictures;
use crate::probe::Arrivals;
use crate::route::{Route, TsujiTransport};

/// One that carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Cyclone DDS, where tsuji's discovery is not heard.
    CycloneDds,
    /// The same, secured by an enclave.
    CycloneSecured,
    /// Fast DDS from its plug-in.
    FastDds,
    /// Zenoh from its plug-in.
    Zenoh,
    /// iceoryx2.
    Iceoryx2,
    /// A Unix stream socket.
    UnixSocket,
    /// Cyclone DDS in the domain of tsuji, as a foreign ROS 2 node is.
    Foreign,
}

impl Peer {
    /// Those that stand beside tsuji and do not meet it.
    pub(crate) const ALONE: [Self; 5] =
        [Self::CycloneDds, Self::FastDds, Self::Zenoh, Self::Iceoryx2, Self::UnixSocket];

    /// Its name in reports, and between this program and its children.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::CycloneDds => "raw:cyclonedds",
            Self::CycloneSecured => "raw:cyclonedds-secured",
            Self::FastDds => "raw:fastdds",
            Self::Zenoh => "raw:zenoh",
            Self::Iceoryx2 => "raw:iceoryx2",
            Self::UnixSocket => "raw:unix-socket",
            Self::Foreign => "plain",
        }
    }

    /// Why it is not here; nothing where it is, or needs no library.
    pub(crate) fn absence(self) -> Option<String> {
        match self {
            Self::FastDds => absence(TsujiTransport::FastDds),
            Self::Zenoh => absence(TsujiTransport::Zenoh),
            Self::CycloneSecured => cyclonedds::absence_of_security(),
            Self::CycloneDds | Self::Iceoryx2 | Self::UnixSocket | Self::Foreign => None,
        }
    }

    /// Whether it carries messages of ROS 2, in CDR. For the others a picture is its bytes.
    fn has_messages(self) -> bool {
        !matches!(self, Self::Iceoryx2 | Self::UnixSocket)
    }

    /// The end of `line` that sends, which is opened first.
    pub(crate) fn talker(self, line: &Line) -> Result<Box<dyn Talker>, String> {
        Ok(match self {
            Self::CycloneDds => Box::new(cyclonedds::talker(line, &alone(&line.folder))?),
            Self::CycloneSecured => Box::new(cyclonedds::talker(line, &secured(&line.folder)?)?),
            Self::Foreign => Box::new(cyclonedds::talker(line, &foreign(&line.folder))?),
            Self::FastDds => Box::new(plugin::talker(line, TsujiTransport::FastDds)?),
            Self::Zenoh => Box::new(plugin::talker(line, TsujiTransport::Zenoh)?),
            Self::Iceoryx2 => Box::new(iceoryx::talker(line)?),
            Self::UnixSocket => Box::new(socket::talker(line)?),
        })
    }

    /// The end of `line` that listens, for the thread that opens it.
    pub(crate) fn listener(self, line: &Line) -> Result<Box<dyn Listener>, String> {
        Ok(match self {
            Self::CycloneDds => Box::new(cyclonedds::listener(line, &alone(&line.folder))?),
            Self::CycloneSecured => Box::new(cyclonedds::listener(line, &secured(&line.folder)?)?),
            Self::Foreign => Box::new(cyclonedds::listener(line, &foreign(&line.folder))?),
            Self::FastDds => Box::new(plugin::listener(line, TsujiTransport::FastDds)?),
            Self::Zenoh => Box::new(plugin::listener(line, TsujiTransport::Zenoh)?),
            Self::Iceoryx2 => Box::new(iceoryx::listener(line)?),
            Self::UnixSocket => Box::new(socket::listener(line)?),
        })
    }
}

/// What an end of a flow goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// By tsuji.
    Tsuji(Route),
    /// Without tsuji.
    Alone(Peer),
}

impl Way {
    /// Its name between this program and its children.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Tsuji(route) => route.word(),
            Self::Alone(peer) => peer.word(),
        }
    }

    /// The one of that name.
    pub(crate) fn of_word(word: &str) -> Result<Self, String> {
        let mut peers = Peer::ALONE.into_iter().chain([Peer::Foreign]);
        match peers.find(|it| it.word() == word) {
            Some(peer) => Ok(Self::Alone(peer)),
            None => Route::of_word(word).map(Self::Tsuji),
        }
    }

    /// Why it is not here; nothing where it is.
    pub(crate) fn absence(self) -> Option<String> {
        match self {
            Self::Tsuji(Route::By(via)) => absence(via),
            Self::Tsuji(_) => None,
            Self::Alone(peer) => peer.absence(),
        }
    }
}

told_by_word!(Way);

/// A flow of samples by a peer.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// A folder of this run.
    pub(crate) folder: PathBuf,
    /// A name that no other flow of the machine has, made of letters, digits and `_`.
    pub(crate) name: String,
    /// The type of the samples, as DDS names it.
    pub(crate) type_name: &'static str,
    /// Where the peer knows of such things.
    pub(crate) qos: Qos,
    /// How samples follow each other.
    pub(crate) flow: Flow,
    /// Bytes of a sample at most.
    pub(crate) bytes_max: usize,
    /// Processes that listen.
    pub(crate) receivers: usize,
}

impl Line {
    /// That of samples one by one to one other process.
    pub(crate) fn between_two(
        folder: PathBuf,
        name: String,
        type_name: &'static str,
        qos: Qos,
        bytes_max: usize,
    ) -> Self {
        Self { folder, name, type_name, qos, flow: Flow::Paced, bytes_max, receivers: 1 }
    }

    /// That of a flow of pictures.
    pub(super) fn of(spec: &Spec) -> Self {
        Self {
            folder: spec.folder.clone(),
            name: spec.name.clone(),
            type_name: PICTURE_TYPE,
            qos: ours::qos(spec),
            flow: spec.flow,
            bytes_max: Pictures::new(spec.size).size(),
            receivers: spec.receivers,
        }
    }

    /// The topic as an engine sees it.
    pub(super) fn topic(&self) -> String {
        format!("rt/{}", self.name)
    }
}

/// The end that sends.
pub(crate) trait Talker {
    /// Whether somebody listens, as far as this end knows.
    fn is_met(&mut self) -> Result<bool, String>;

    /// Sends a copy of a finished sample. That nobody listens is no error.
    fn send(&mut self, sample: &[u8]) -> Result<(), String>;
}

/// Waits a while until somebody listens.
pub(crate) fn meet(talker: &mut dyn Talker) -> Result<(), String> {
    for _ in 0..LOOKS_MAX {
        if talker.is_met()? {
            return Ok(());
        }
        thread::sleep(LOOK);
    }
    Err("nobody listens".to_owned())
}

const LOOK: Duration = Duration::from_millis(10);
const LOOKS_MAX: u32 = 1000;

/// The same, unless `has_met` says that it was met before.
pub(super) fn meet_once(has_met: &mut bool, talker: &mut dyn Talker) -> Result<(), String> {
    if !*has_met {
        meet(talker)?;
        *has_met = true;
    }
    Ok(())
}

/// The end that listens.
pub(crate) trait Listener {
    /// Sleeps in the calling thread until the end, and hands over each sample as soon as its bytes can be read.
    fn run(self: Box<Self>, end: &End, heard: &mut dyn FnMut(&[u8])) -> Result<(), String>;
}

/// Why a thread that listens has failed, once it has.
pub(crate) type Failure = Arc<OnceLock<String>>;

/// Opens the end of `line` that listens in a thread of its own, which ends with the process.
pub(crate) fn listen(
    peer: Peer,
    line: Line,
    mut heard: impl FnMut(&[u8]) + Send + 'static,
) -> Result<Failure, String> {
    let failure = Failure::default();
    let failed = Arc::clone(&failure);
    let (tell, told) = mpsc::channel();
    let listening = thread::Builder::new().name("listener".to_owned()).spawn(move || {
        let (listener, opened) = match peer.listener(&line) {
            Ok(listener) => (Some(listener), Ok(())),
            Err(error) => (None, Err(error)),
        };
        // Whoever opened it is waiting for this.
        let _ = tell.send(opened);
        if let Some(Err(error)) = listener.map(|it| it.run(&End::default(), &mut heard)) {
            // It fails once.
            let _ = failed.set(error);
        }
    });
    listening.map_err(|error| error.to_string())?;
    told.recv().map_err(|error| error.to_string())??;
    Ok(failure)
}

/// Sends copies of finished pictures by a peer.
pub(super) fn sender(peer: Peer, spec: &Spec) -> Result<Box<dyn Sender>, String> {
    let pictures = Pictures::new(spec.size);
    let frame = match peer.has_messages() {
        true => ours::image(pictures.size()).to_vec().map_err(|error| error.to_string())?,
        false => vec![0; pictures.size()],
    };
    let talker = peer.talker(&Line::of(spec))?;
    Ok(Box::new(Copying { pictures, frame, has_met: false, talker }))
}

struct Copying {
    pictures: Pictures,
    /// A sample, whose pixels are the end of it.
    frame: Vec<u8>,
    has_met: bool,
    talker: Box<dyn Talker>,
}

impl Sender for Copying {
    fn prepare(&mut self) -> Result<(), String> {
        meet_once(&mut self.has_met, &mut *self.talker)
    }

    fn draw(&mut self, number: u64) -> Result<(), String> {
        let pixels = self.frame.len() - self.pictures.size();
        self.pictures.draw(number, &mut self.frame[pixels..]);
        Ok(())
    }

    fn publish(&mut self) -> Result<(), String> {
        self.talker.send(&self.frame)
    }
}

/// Receives pictures by a peer.
pub(super) fn receiver(
    peer: Peer,
    spec: &Spec,
    arrivals: Arc<Arrivals>,
) -> Result<Box<dyn Receiver>, String> {
    let line = Line::of(spec);
    Ok(Box::new(Receiving { listener: peer.listener(&line)?, size: line.bytes_max, arrivals }))
}

struct Receiving {
    listener: Box<dyn Listener>,
    /// Bytes of a picture, which are the end of a sample.
    size: usize,
    arrivals: Arc<Arrivals>,
}

impl Receiver for Receiving {
    fn run(self: Box<Self>, end: &End) -> Result<(), String> {
        let Self { listener, size, arrivals } = *self;
        listener.run(end, &mut |sample| {
            let pixels = sample.len().saturating_sub(size);
            arrivals.arrived(&sample[pixels..]);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_comes_back_from_its_word() {
        let peers = Peer::ALONE.into_iter().chain([Peer::Foreign]).map(Way::Alone);
        for way in peers.chain([Way::Tsuji(Route::By(TsujiTransport::Zenoh))]) {
            assert_eq!(Way::of_word(way.word()), Ok(way));
        }
        assert!(Way::of_word("raw:pigeon").is_err());
    }

    #[test]
    fn why_a_listener_fails_is_told_at_once_or_later() {
        let folder = std::env::temp_dir().join(format!("tsuji-lab-peer-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let name = "failing".to_owned();
        let line = Line::between_two(folder.clone(), name, PICTURE_TYPE, Qos::DEFAULT, 100);
        let nobody = listen(Peer::UnixSocket, line.clone(), |_| ()).unwrap_err();
        assert!(nobody.contains("failing.socket"), "{nobody}");
        let mut talker = Peer::UnixSocket.talker(&line).unwrap();
        let failure = listen(Peer::UnixSocket, line, |_| ()).unwrap();
        meet(&mut *talker).unwrap();
        talker.send(&[0; 100]).unwrap();
        talker.send(&[0; 101]).unwrap();
        while failure.get().is_none() {
            thread::yield_now();
        }
        assert_eq!(failure.get().unwrap(), "Unix socket: a sample of 101 bytes; allowed are 100");
        std::fs::remove_dir_all(folder).unwrap();
    }
}

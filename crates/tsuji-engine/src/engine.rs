//! What a transport asks of an engine.
//!
//! No call blocks but those that say so. Calls may come from any thread; values of a forked child are
//! never called, only dropped, and must then leave everything as it is.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tsuji_core::{Peers, Qos, Scopes, TransportId};
use tsuji_transport::wire::{Announcements, Found, NetworkAddresses, Relates, Treatment};
use tsuji_transport::{Bytes, Endpoint, Error, ErrorKind, Gid, PeerId, RelationHeader, Result};

/// The name of a participant or an endpoint on the engine's network: 12 bytes that all names of one
/// participant begin with, and 4 of its own, which are `00 00 01 c1` for the participant itself. On RTPS
/// it is the GUID (RTPS 2.5, 9.3.1).
pub type Guid = [u8; 16];

/// The participant of which this is an endpoint; its own name, if it is a participant.
pub fn participant_of(name: Gid) -> Gid {
    let mut participant = name;
    participant.0[12..].copy_from_slice(&[0, 0, 1, 0xc1]);
    participant
}

/// Something that carries raw samples between endpoints that find each other by topic, type and QoS.
/// It has started nothing yet.
pub trait Engine: fmt::Debug + Send + Sync + 'static {
    /// What it is. Always the same.
    fn about(&self) -> About;

    /// What of it is loaded, for people.
    fn library(&self) -> Library {
        Library::default()
    }

    /// What two processes must have the same of to find each other, such as the domain.
    fn network(&self) -> u32;

    /// Why it would refuse to join now, which may pass.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Whether to join may take long: names of hosts are asked for.
    fn joins_slowly(&self) -> bool {
        false
    }

    /// Whether whoever it meets has proved to be allowed, and what it carries is protected, as the keystore asks that secures this
    /// process.
    fn is_secured(&self) -> bool {
        false
    }

    /// The addresses of this host that it would use if it joined now, beside those of loopback. None where there are none yet, and
    /// where it follows changes by itself.
    fn addresses(&self) -> Vec<IpAddr> {
        Vec::new()
    }

    /// Where whoever has not joined hears of others; or why it has to join, as a clause after
    /// "because".
    fn announcements(&self) -> Result<Announcements, String> {
        Err("it tells nothing to whoever has not joined".to_owned())
    }

    /// Starts. Called once at a time, and again when it has failed or its participant has left. May take as long as it takes to
    /// resolve the names of hosts.
    fn join(&self) -> Result<Box<dyn Participant>>;
}

/// What an engine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The transport's name.
    pub id: TransportId,
    /// How far it carries. Two ends of one participant never reach each other.
    pub scopes: Scopes,
    /// Who is met there. Where it is tsuji alone, the engine's network is nobody else's affair: endpoints
    /// are called there what tsuji calls them, and nobody is looked for.
    pub peers: Peers,
    /// The largest sample.
    pub sample_bytes_max: u64,
    /// How its samples say what they relate to: see [`Related`].
    pub relates: Relates,
}

/// What of an engine is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    /// The file. `None` for what is part of the program.
    pub path: Option<PathBuf>,
    /// Such as `Cyclone DDS 11.0.1`. `None` while it is not known.
    pub version: Option<String>,
    /// Whether it is in memory.
    pub is_loaded: bool,
}

/// One participant. Dropping it leaves; its endpoints were dropped before.
pub trait Participant: fmt::Debug + Send + Sync {
    /// Its name.
    fn guid(&self) -> Guid;

    /// Opens a writer.
    fn writer(&self, spec: &EndpointSpec<'_>) -> Result<Box<dyn EngineWriter>>;

    /// Opens a reader, which takes nothing of this participant's own writers.
    fn reader(&self, spec: &EndpointSpec<'_>) -> Result<Box<dyn EngineReader>>;

    /// Treats the participants of a process of this host in this way from now on: see
    /// [`Wire::treat`](tsuji_transport::wire::Wire::treat). An engine that can do so says it in its user data, because both
    /// ends must be able to.
    fn treat(&self, peer: PeerId, treatment: Treatment) {
        let _ = (peer, treatment);
    }

    /// Where its packets are sent from and received. Nothing where it is not known.
    fn addresses(&self) -> NetworkAddresses {
        NetworkAddresses::default()
    }

    /// Watches who is there. `listener` has news when there is something to take.
    fn watch(&self, listener: &Arc<dyn Listener>) -> Result<Box<dyn Watch>>;
}

/// What is called from the engine's threads. It is quick, and deletes nothing of the engine.
pub trait Listener: Send + Sync + 'static {
    /// A sample has arrived.
    fn data_available(&self) {}

    /// The set of endpoints that match changed, or what [`Tap::is_silent`] says of one.
    fn matched(&self) {}
}

/// What a writer or a reader is announced as.
#[derive(Clone, Copy, Debug)]
pub struct EndpointSpec<'a> {
    /// The topic's name on the network.
    pub topic: &'a str,
    /// The type's name on the network.
    pub type_name: &'a str,
    /// The type has keys, which engines of RTPS announce; an engine from a plug-in is not told.
    pub is_keyed: bool,
    /// What is offered or asked for.
    pub qos: &'a Qos,
    /// Samples that a history which keeps all gives late joiners.
    pub keep_all_max: u32,
    /// What else is said of it.
    pub user_data: &'a [u8],
}

impl<'a> EndpointSpec<'a> {
    /// As this endpoint is announced to these.
    pub(crate) fn of(endpoint: &'a Endpoint, peers: Peers) -> Self {
        let (qos, keep_all_max) = (&endpoint.qos, endpoint.keep_all_max);
        let announced = endpoint.announced.as_ref().filter(|_| peers != Peers::TSUJI);
        let (topic, type_name, user_data) = match announced {
            Some(it) => (&it.topic, &it.type_name, &it.user_data[..]),
            None => (&endpoint.topic, &endpoint.type_name, &[][..]),
        };
        let is_keyed = announced.is_some_and(|it| it.is_keyed);
        Self { topic, type_name, is_keyed, qos, keep_all_max, user_data }
    }
}

/// Sends to all readers that match. What it sends it numbers from 1, without gaps. Dropping it waits,
/// for at most a second, until its readers have what was sent; no callback of it runs after that.
pub trait EngineWriter: Send + Sync {
    /// Its name.
    fn guid(&self) -> Guid;

    /// Calls `listener` from now on. Called once.
    fn listen(&mut self, listener: Arc<dyn Listener>) -> Result<()>;

    /// Writes a sample of at least 4 bytes, which begin with an encapsulation header. Answers Busy
    /// when too much is not acknowledged yet; then it has no number.
    fn write(&self, bytes: &Bytes, source_ns: i64) -> Result<()>;

    /// The same, of a sample that relates to another one. Only of an engine that relates
    /// [beside](Relates::Beside) its samples.
    fn write_related(&self, bytes: &Bytes, source_ns: i64, related: Related) -> Result<()> {
        let _ = (bytes, source_ns, related);
        Err(Error::new(ErrorKind::Unsupported, "relate"))
    }

    /// The same, in two forms, to each reader in its own: with `header` behind the encapsulation header, or
    /// without it, and `related` beside the sample. Only of an engine that relates by
    /// [either](Relates::Either).
    fn write_either(
        &self,
        bytes: &Bytes,
        source_ns: i64,
        header: &RelationHeader,
        related: Option<Related>,
    ) -> Result<()> {
        let _ = (bytes, source_ns, header, related);
        Err(Error::new(ErrorKind::Unsupported, "relate"))
    }

    /// Shows that the writer is alive, where it offers liveliness by topic.
    fn assert_liveliness(&self) {}

    /// Whether the readers have acknowledged all that was written.
    fn is_acknowledged(&self) -> bool;

    /// Waits until the readers have acknowledged all that was written, or for `timeout`.
    fn wait_for_acknowledgements(&self, timeout: Duration);

    /// A handle by which callbacks look at it, which does not own the writer.
    fn peep(&self) -> Arc<dyn Peep>;
}

/// Looks at a writer that may be gone.
pub trait Peep: Send + Sync {
    /// The readers that match now; none when it is gone.
    fn matches(&self) -> Vec<Guid>;
}

/// Receives from all writers that match, each in its order. Dropping it ends the callbacks.
pub trait EngineReader: Send + Sync {
    /// Its name.
    fn guid(&self) -> Guid;

    /// Calls `listener` from now on. Called once.
    fn listen(&mut self, listener: Arc<dyn Listener>) -> Result<()>;

    /// A handle by which callbacks take, which does not own the reader.
    fn tap(&self) -> Arc<dyn Tap>;
}

/// Takes from a reader that may be gone.
pub trait Tap: Send + Sync {
    /// The writers that match now; none when it is gone.
    fn matches(&self) -> Vec<Guid>;

    /// Whether a matched writer that is to show that it is alive has not done so within its lease. `None` of one that is gone, and
    /// of an engine that does not watch that.
    fn is_silent(&self, writer: Guid) -> Option<bool> {
        let _ = writer;
        None
    }

    /// The next sample, if there is one. An error when the reader is gone.
    fn take(&self) -> Result<Option<Arrived>>;
}

/// What a sample relates to, as RTPS has it (`PID_RELATED_SAMPLE_IDENTITY`): a sample of a writer, or with
/// no number just an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Related {
    /// The writer, or another endpoint.
    pub name: Guid,
    /// The writer's number for the sample; 0 and less is none.
    pub number: i64,
}

/// A sample that has come.
#[derive(Debug)]
pub struct Arrived {
    /// Who wrote it.
    pub writer: Guid,
    /// The writer's number for it, from 1.
    pub number: i64,
    /// In nanoseconds since the Unix epoch, as the writer says.
    pub source_ns: i64,
    /// Who wrote it says in the payload of a request or a reply what that relates to, and not beside it.
    pub is_headed: bool,
    /// What it relates to, if that is said beside it.
    pub related: Option<Related>,
    /// With the encapsulation header. Who is not tsuji may send less than that.
    pub bytes: Bytes,
}

/// Finds participants, writers and readers, those of its own participant too.
pub trait Watch: fmt::Debug + Send + Sync {
    /// What was found since the last call, participants first.
    fn take(&self) -> Vec<Found>;
}

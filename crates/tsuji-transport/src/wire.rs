//! Who else is on the wire of a transport, tsuji's and others, and what is said there besides samples.

use std::fmt;
use std::net::{SocketAddr, SocketAddrV4};

use tsuji_core::{Peers, Qos};

use crate::{Bytes, Gid, PeerId, Result};

mod qos;
pub use qos::{
    Unsatisfiable, WireDurability, WireLiveliness, WireQos, from_nanoseconds, from_seconds,
    to_nanoseconds, to_seconds,
};

/// The wire of a transport on which participants find each other.
///
/// Participants and endpoints have names there, of 16 bytes: on RTPS their GUIDs. What happens makes
/// [`Transport::control_fd`](crate::Transport::control_fd) readable; as
/// [`Transport::control_messages`](crate::Transport::control_messages) makes it unreadable, look here after that call.
pub trait Wire: fmt::Debug + Send + Sync {
    /// Whom it talks to.
    fn peers(&self) -> Peers;

    /// How requests and replies say which request they are.
    fn relates(&self) -> Relates {
        Relates::Never
    }

    /// Where whoever has not joined hears of others; or why it has to join at once, as a clause after
    /// "because". A failure once it has joined, which [`join`](Self::join) is not the only way to do:
    /// see [`Transport::control_fd`](crate::Transport::control_fd), which tells that.
    fn announcements(&self) -> Result<Announcements, String> {
        Err("its wire tells nothing to whoever has not joined".to_owned())
    }

    /// Joins, if it has not yet, and answers the name of this participant. From then on others see it.
    /// May take as long as it takes to resolve the names of hosts.
    fn join(&self) -> Result<Gid>;

    /// Why this participant should leave and join anew, if it should: the addresses of this host are others than when it joined.
    fn moved(&self) -> Option<String> {
        None
    }

    /// Leaves, for [`join`](Self::join) to join under another name, and answers that all who were found are gone. What is
    /// still open goes on until it is dropped; what is opened from now on is opened of the next participant.
    fn leave(&self) -> Vec<Found> {
        Vec::new()
    }

    /// Treats the participant of process `peer`, which is on this host, in this way from now on, also after this process has
    /// joined anew. Both processes have to do the same. A wire that makes no difference does nothing.
    fn treat(&self, peer: PeerId, treatment: Treatment) {
        let _ = (peer, treatment);
    }

    /// Where its packets are sent from and received. Nothing before it has joined, or where that is not known.
    fn addresses(&self) -> NetworkAddresses {
        NetworkAddresses::default()
    }

    /// What was found since the last call. A participant comes before its endpoints and goes after
    /// them. Nothing of this participant is told. Nothing before it has joined. How many are known
    /// is limited; beyond that others are not told.
    fn found(&self) -> Vec<Found>;

    /// Opens a topic for writing what is no flow. Joins.
    fn open_outlet(&self, spec: &ChannelSpec) -> Result<Box<dyn Outlet>>;

    /// Opens a topic for reading what is no flow. Joins.
    fn open_inlet(&self, spec: &ChannelSpec) -> Result<Box<dyn Inlet>>;
}

/// The addresses of this host that packets have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkAddresses {
    /// Where what is published is sent from, one of each interface that is used.
    pub sends: Vec<SocketAddr>,
    /// Where others are told to send what is subscribed to, likewise.
    pub receives: Vec<SocketAddr>,
}

/// How the participant of another process of this host is treated on a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Treatment {
    /// One that says that it may be met otherwise is given some seconds for that, and is then met as any other.
    #[default]
    Wait,
    /// Nothing that it says is listened to, and it is not told of: it is spoken to otherwise.
    PassOver,
    /// It is met as any other, and at once.
    Meet,
}

/// How requests and replies say which request they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Relates {
    /// Not beside them: who sends them writes it into the payload.
    #[default]
    Never,
    /// Beside them, as the envelope's `related`, with names of the wire: a request to the reader of its
    /// replies, which is named as everybody names it here, and a reply to what came with the request. What
    /// comes is named so too: a request by its client and the client's number for it, a reply to a request
    /// of this process by the writer and the number that it had.
    Beside,
    /// To each reader as its vendor does: beside them, or in the payload, where the envelope's `header` is
    /// then put. What comes from who writes it into the payload has no `related`, and has it there.
    Either,
}

/// Where all participants of a wire announce themselves, again and again: in datagrams to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcements {
    /// The multicast group and its port.
    pub group: SocketAddrV4,
    /// The names of the interfaces, at least one.
    pub interfaces: Vec<String>,
    /// How far they are sent: over so many routers, less one.
    pub hops_max: u8,
}

/// What was found on a wire.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// A participant is there, or says something else than before.
    Participant(FoundParticipant),
    /// A writer or a reader is there, or says something else than before.
    Endpoint(FoundEndpoint),
    /// A participant, a writer or a reader is gone, or was not heard of for too long.
    Gone(Gid),
}

/// A participant, as it announces itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundParticipant {
    /// Its name.
    pub name: Gid,
    /// Who made its engine, by the number that RTPS knows.
    pub vendor: [u8; 2],
    /// What it says of itself.
    pub user_data: Vec<u8>,
    /// Its host, if it says so. Not proved.
    pub host: Option<String>,
    /// Its program, if it says so.
    pub program: Option<String>,
    /// Its process id, if it says so, as its own namespace counts.
    pub pid: Option<u32>,
}

/// A writer or a reader, as it announces itself.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundEndpoint {
    /// Its name.
    pub name: Gid,
    /// The participant's.
    pub participant: Gid,
    /// It writes.
    pub is_writer: bool,
    /// The topic's name on the wire.
    pub topic: String,
    /// The type's name on the wire.
    pub type_name: String,
    /// What it says of itself.
    pub user_data: Vec<u8>,
    /// What it offers or asks for.
    pub qos: WireQos,
}

/// A topic that is no flow.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelSpec {
    /// Its name on the wire.
    pub topic: String,
    /// The name of its type on the wire.
    pub type_name: String,
    /// What is offered or asked for.
    pub qos: Qos,
    /// What is said of it.
    pub user_data: Vec<u8>,
}

/// Writes to whoever reads.
pub trait Outlet: fmt::Debug + Send + Sync {
    /// Its name on the wire.
    fn name(&self) -> Gid;

    /// Writes CDR with its header of 4 bytes. Busy while the engine waits for too much to be
    /// acknowledged.
    fn write(&self, bytes: &[u8]) -> Result<()>;
}

/// Reads what anybody else writes: nothing of this participant. What is not taken is limited; beyond
/// that the oldest is dropped.
pub trait Inlet: fmt::Debug + Send + Sync {
    /// Its name on the wire.
    fn name(&self) -> Gid;

    /// The oldest sample that was not taken, with the name of its writer.
    fn take(&self) -> Result<Option<(Gid, Bytes)>>;
}

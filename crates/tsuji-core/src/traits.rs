use std::fmt;

use crate::Reliability;
use crate::words::words;

/// What is known of a flow when its route is chosen.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Traits {
    /// Whether its samples are small or large.
    pub size: Size,
    /// How `size` came to be known.
    pub size_origin: SizeOrigin,
    /// The bytes of a typical sample, where a number is known.
    pub sample_bytes: Option<u64>,
    /// How far apart the two ends are, by proof.
    pub scope: Scope,
    /// What the matched QoS asks for.
    pub reliability: Reliability,
    /// Who the other end is.
    pub peer: Peer,
}

/// The two classes of sample size; the line between them is the policy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Size {
    /// Below the line.
    Small,
    /// At or above the line.
    Large,
}

/// Where the size of a flow's samples is known from, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SizeOrigin {
    /// The type has a fixed size.
    FixedType,
    /// A running high percentile of what was really sent.
    Sent,
    /// The publisher's `expected_size`.
    Expected,
    /// The policy file states it for the topic.
    Stated,
    /// A prior by type: images and point clouds are large.
    Prior,
}

/// How far apart the two ends of a flow are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Scope {
    /// In one process, sharing the in-process registry.
    Intra,
    /// On one host, with memory that both can map.
    Local,
    /// Anywhere else.
    Remote,
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Scopes {
    /// [`Scope::Intra`] is in the set.
    pub intra: bool,
    /// [`Scope::Local`] is in the set.
    pub local: bool,
    /// [`Scope::Remote`] is in the set.
    pub remote: bool,
}

impl Scopes {
    /// Every scope.
    pub const ALL: Self = Self { intra: true, local: true, remote: true };

    /// Whether `scope` is in the set.
    pub fn contains(self, scope: Scope) -> bool {
        match scope {
            Scope::Intra => self.intra,
            Scope::Local => self.local,
            Scope::Remote => self.remote,
        }
    }
}

/// Who the other end of a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Peer {
    /// A tsuji endpoint.
    Tsuji,
    /// A foreign ROS 2 node, or one of ROS 1.
    Foreign(Vendor),
}

/// A set of peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Peers {
    /// [`Peer::Tsuji`] is in the set.
    pub tsuji: bool,
    /// Foreign nodes on [`Vendor::Cyclone`] are in the set.
    pub cyclone: bool,
    /// Foreign nodes on [`Vendor::Fast`] are in the set.
    pub fast: bool,
    /// Foreign nodes on [`Vendor::Zenoh`] are in the set.
    pub zenoh: bool,
    /// Nodes of ROS 1 are in the set.
    pub ros1: bool,
    /// Foreign nodes on [`Vendor::Other`] are in the set.
    pub other: bool,
}

impl Peers {
    /// Tsuji endpoints only.
    pub const TSUJI: Self =
        Self { tsuji: true, cyclone: false, fast: false, zenoh: false, ros1: false, other: false };

    /// Foreign nodes of every vendor.
    pub const FOREIGN: Self =
        Self { tsuji: false, cyclone: true, fast: true, zenoh: true, ros1: true, other: true };

    /// Tsuji endpoints, and foreign nodes on any DDS.
    pub const RTPS: Self = Self { zenoh: false, ros1: false, ..Self::ALL };

    /// Everybody.
    pub const ALL: Self = Self { tsuji: true, ..Self::FOREIGN };

    /// Whether `peer` is in the set.
    pub fn contains(self, peer: Peer) -> bool {
        match peer {
            Peer::Tsuji => self.tsuji,
            Peer::Foreign(Vendor::Cyclone) => self.cyclone,
            Peer::Foreign(Vendor::Fast) => self.fast,
            Peer::Foreign(Vendor::Zenoh) => self.zenoh,
            Peer::Foreign(Vendor::Ros1) => self.ros1,
            Peer::Foreign(Vendor::Other) => self.other,
        }
    }

    /// Both sets together.
    pub fn union(self, rhs: Self) -> Self {
        Self {
            tsuji: self.tsuji || rhs.tsuji,
            cyclone: self.cyclone || rhs.cyclone,
            fast: self.fast || rhs.fast,
            zenoh: self.zenoh || rhs.zenoh,
            ros1: self.ros1 || rhs.ros1,
            other: self.other || rhs.other,
        }
    }
}

impl From<Peer> for Peers {
    fn from(peer: Peer) -> Self {
        let none = Self::default();
        match peer {
            Peer::Tsuji => Self::TSUJI,
            Peer::Foreign(Vendor::Cyclone) => Self { cyclone: true, ..none },
            Peer::Foreign(Vendor::Fast) => Self { fast: true, ..none },
            Peer::Foreign(Vendor::Zenoh) => Self { zenoh: true, ..none },
            Peer::Foreign(Vendor::Ros1) => Self { ros1: true, ..none },
            Peer::Foreign(Vendor::Other) => Self { other: true, ..none },
        }
    }
}

/// Whose middleware a foreign node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Vendor {
    /// Eclipse Cyclone DDS.
    Cyclone,
    /// eProsima Fast DDS.
    Fast,
    /// Eclipse Zenoh.
    Zenoh,
    /// None of these: the node is one of ROS 1, on TCPROS.
    Ros1,
    /// Any other.
    Other,
}

words!(Size, "size" { [Self::Small] => "small", [Self::Large] => "large", });
words!(Scope, "scope" {
    [Self::Intra] => "intra",
    [Self::Local] => "local",
    [Self::Remote] => "remote",
});
words!(Peer, "peer" {
    [Self::Tsuji] => "tsuji",
    [Self::Foreign(Vendor::Cyclone)] => "cyclone",
    [Self::Foreign(Vendor::Fast)] => "fast",
    [Self::Foreign(Vendor::Zenoh)] => "zenoh",
    [Self::Foreign(Vendor::Ros1)] => "ros1",
    [Self::Foreign(Vendor::Other)] => "other",
});

impl fmt::Display for SizeOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::FixedType => "the type has a fixed size",
            Self::Sent => "what was really sent",
            Self::Expected => "the publisher's expected_size",
            Self::Stated => "the policy states it",
            Self::Prior => "a prior by type",
        })
    }
}

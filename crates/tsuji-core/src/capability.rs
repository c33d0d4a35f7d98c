use std::fmt;
use std::sync::Arc;

use crate::Scopes;

/// Names one transport, for example `shm`. Plug-ins bring names known only at run time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TransportId(Arc<str>);

impl TransportId {
    /// The transport called `name`.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The name used in policies, routes and logs.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TransportId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for TransportId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What a transport can do. Declared by the transport, relied on by selection, and checked by the
/// conformance suite on both sides: what is declared works, what is not is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Capability {
    /// How far apart the ends it connects may be.
    pub scopes: Scopes,
    /// It delivers every sample to a reliable reader, or answers Busy.
    pub reliable: bool,
    /// It lends memory that a reader sees without a copy.
    pub loan: bool,
    /// It carries typed values by reference.
    pub typed: bool,
    /// Ends are connected, and samples have arrived, when the call that does it returns. Otherwise
    /// later.
    pub immediate: bool,
    /// It sends to one reader of several what the others do not get.
    pub directed: bool,
    /// All of a sample's envelope arrives, whatever it holds. Otherwise the publisher's GID, numbers
    /// that grow by one a sample, and the wall time.
    pub whole_envelope: bool,
    /// It carries only what begins with an encapsulation header of CDR, 4 bytes.
    pub cdr_only: bool,
    /// The largest sample it accepts.
    pub sample_bytes_max: u64,
    /// The most readers one writer can have on it.
    pub readers_max: u32,
}

impl Capability {
    /// What no selection refuses, but for its health.
    pub const ANYTHING: Self = Self {
        scopes: Scopes::ALL,
        reliable: true,
        loan: true,
        typed: true,
        immediate: true,
        directed: true,
        whole_envelope: true,
        cdr_only: false,
        sample_bytes_max: u64::MAX,
        readers_max: u32::MAX,
    };
}

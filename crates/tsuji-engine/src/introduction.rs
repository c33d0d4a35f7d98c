//! How two processes learn that they are of one domain, and how an address is known to be one.

use std::hash::{BuildHasher, DefaultHasher, Hasher};

use tsuji_transport::{Address, Error, ErrorKind, Gid, PeerId, Result};

use crate::engine::Guid;

/// Changes with every change of handshakes, addresses and messages.
const VERSION: u32 = 2;

/// The words of one process: bytes that it alone could have written, as far as mistakes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Secret(u64);

impl Secret {
    pub(crate) fn random() -> Self {
        Self(std::hash::RandomState::new().hash_one(0u8))
    }

    fn tag(self, parts: &[&[u8]]) -> [u8; 8] {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        parts.iter().for_each(|part| hasher.write(part));
        hasher.finish().to_le_bytes()
    }
}

/// What two processes must have the same of to understand each other on an engine's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ground {
    /// As [`Engine::network`](crate::Engine::network) has it.
    pub(crate) network: u32,
    /// Others than tsuji are met, by the names that they know.
    pub(crate) is_public: bool,
}

/// What a process shows another: its version, its ground, its secret, and their tag.
pub(crate) fn handshake(secret: Secret, ground: Ground) -> Vec<u8> {
    let Ground { network, is_public } = ground;
    let (network, is_public) = (network.to_le_bytes(), u32::from(is_public).to_le_bytes());
    let body = [&VERSION.to_le_bytes()[..], &network, &is_public, &secret.0.to_le_bytes()];
    [&body.concat()[..], &secret.tag(&body)].concat()
}

/// The secret of the other process, if it speaks this version on this ground.
pub(crate) fn read_handshake(bytes: &[u8], ground: Ground) -> Result<Secret> {
    let refused = |why: String| Error::new(ErrorKind::Invalid, "meet").about(why);
    let parts = || {
        let (version, rest) = bytes.split_first_chunk::<4>()?;
        let (theirs, rest) = rest.split_first_chunk::<4>()?;
        let (is_public, rest) = rest.split_first_chunk::<4>()?;
        let (secret, tag) = rest.split_first_chunk::<8>()?;
        let secret = Secret(u64::from_le_bytes(*secret));
        let number = |it: &[u8; 4]| u32::from_le_bytes(*it);
        (secret.tag(&[version, theirs, is_public, &secret.0.to_le_bytes()]) == *tag)
            .then(|| (number(version), number(theirs), 0 < number(is_public), secret))
    };
    let (version, theirs, is_public, secret) =
        parts().ok_or_else(|| refused("not a handshake".into()))?;
    if version != VERSION {
        return Err(refused(format!("version {version}; here it is {VERSION}")));
    }
    let Ground { network, .. } = ground;
    if theirs != network {
        return Err(refused(format!("domain {theirs}; here it is {network}")));
    }
    if is_public != ground.is_public {
        let place = if is_public { "there and not here" } else { "here and not there" };
        return Err(refused(format!("it speaks to foreign nodes {place}")));
    }
    Ok(secret)
}

/// The answer to a handshake: that its secret was read.
pub(crate) fn answer(theirs: Secret) -> Vec<u8> {
    theirs.tag(&[b"answer"]).to_vec()
}

/// How a reader is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReaderAddress {
    pub(crate) guid: Guid,
    /// Counts what the reader accepted.
    pub(crate) round: u32,
    /// How many samples may wait untaken; `None` where the newest push out the oldest.
    pub(crate) capacity: Option<u32>,
}

impl ReaderAddress {
    pub(crate) fn to_address(self, secret: Secret, peer: PeerId, reader: Gid) -> Address {
        let body = self.body();
        let tag = secret.tag(&[&body, &reader.0]);
        Address { peer, reader, bytes: [&body[..], &tag].concat() }
    }

    /// The address, if the process of that secret wrote it.
    pub(crate) fn read(address: &Address, secret: Secret) -> Option<Self> {
        let (guid, rest) = address.bytes.split_first_chunk()?;
        let (round, rest) = rest.split_first_chunk()?;
        let (capacity, tag) = rest.split_first_chunk()?;
        let capacity = u32::from_le_bytes(*capacity);
        let round = u32::from_le_bytes(*round);
        let it = Self { guid: *guid, round, capacity: (capacity != 0).then_some(capacity) };
        (secret.tag(&[&it.body(), &address.reader.0]) == *tag).then_some(it)
    }

    fn body(self) -> Vec<u8> {
        let capacity = self.capacity.unwrap_or(0);
        [&self.guid[..], &self.round.to_le_bytes(), &capacity.to_le_bytes()].concat()
    }
}

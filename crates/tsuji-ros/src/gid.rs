//! GUIDs of RTPS, the GIDs that ROS 2 makes of them, and what differs between its distributions.
//!
//! A GUID is 16 bytes: a prefix of 12 that all entities of a participant share, and an entity id of
//! 4. The GID of an entity is its GUID, with zeros after it where a distribution keeps more bytes
//! (`convert_guid_to_gid` in rmw_cyclonedds, `rmw_node.cpp`; `create_rmw_gid` in rmw_fastrtps,
//! `create_rmw_gid.cpp`; the size is `RMW_GID_STORAGE_SIZE` in rmw, `types.h`).

use std::fmt;

use tsuji_core::UnknownWord;

use crate::hex::Hex;

/// The identity of a participant, a writer or a reader on RTPS, in the byte order of the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// The entity id of every participant.
    pub const PARTICIPANT: [u8; 4] = [0, 0, 1, 0xc1];

    /// A GUID from its two parts.
    pub fn new(prefix: [u8; 12], entity: [u8; 4]) -> Self {
        let mut bytes = [0; 16];
        bytes[..12].copy_from_slice(&prefix);
        bytes[12..].copy_from_slice(&entity);
        Self(bytes)
    }

    /// What all entities of one participant share.
    pub fn prefix(self) -> [u8; 12] {
        let [prefix @ .., _, _, _, _] = self.0;
        prefix
    }

    /// Which entity of its participant it is.
    pub fn entity(self) -> [u8; 4] {
        let [.., a, b, c, d] = self.0;
        [a, b, c, d]
    }

    /// The participant of this entity.
    #[must_use]
    pub fn participant(self) -> Self {
        Self::new(self.prefix(), Self::PARTICIPANT)
    }

    /// Whether it is a reader: the kinds of readers, and no other, have this bit. rmw_fastrtps tells
    /// by it whether the related identity of a request names a reader (`rmw_response.cpp`).
    pub fn is_reader(self) -> bool {
        self.0[15] & 0x04 != 0
    }

    /// Whether it is a writer or a reader of a type with keys (RTPS 2.5, table 9.1).
    pub fn has_keys(self) -> bool {
        matches!(self.0[15] & 0x3f, 0x02 | 0x07)
    }

    /// The GID that `distro` makes of it, [`Distro::gid_bytes`] long.
    pub fn to_gid(self, distro: Distro) -> Vec<u8> {
        let mut gid = self.0.to_vec();
        gid.resize(distro.gid_bytes(), 0);
        gid
    }

    /// The GUID in a GID of 16 or 24 bytes; none if the length is another, or if what follows the
    /// GUID is not zero.
    pub fn from_gid(gid: &[u8]) -> Option<Self> {
        let (guid, padding) = gid.split_first_chunk()?;
        let fits = matches!(padding.len(), 0 | 8) && padding.iter().all(|byte| *byte == 0);
        fits.then_some(Self(*guid))
    }
}

/// Prefix and entity id in hexadecimal: `0110a1b2c3d4e5f601020304:000001c1`.
impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", Hex(&self.prefix()), Hex(&self.entity()))
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guid({self})")
    }
}

/// A distribution of ROS 2, as far as it decides what is on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Distro {
    /// 2022, the only one here with GIDs of 24 bytes and without type hashes.
    Humble,
    /// 2023.
    Iron,
    /// 2024, taken where none is named.
    #[default]
    Jazzy,
    /// 2025.
    Kilted,
    /// 2026.
    Lyrical,
    /// What becomes the next one; on the wire as the newest.
    Rolling,
}

impl Distro {
    /// Every one, oldest first.
    pub const ALL: [Self; 6] =
        [Self::Humble, Self::Iron, Self::Jazzy, Self::Kilted, Self::Lyrical, Self::Rolling];

    const NAMES: [&str; 6] = ["humble", "iron", "jazzy", "kilted", "lyrical", "rolling"];

    /// The one that `ROS_DISTRO` calls `name`, in lower case.
    pub fn from_name(name: &str) -> Result<Self, UnknownWord> {
        let found = Self::ALL.into_iter().find(|distro| distro.name() == name);
        found.ok_or_else(|| UnknownWord {
            word: name.to_owned(),
            what: "ROS distribution",
            allowed: &Self::NAMES,
        })
    }

    /// As `ROS_DISTRO` calls it.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The bytes of a GID, in the graph message above all.
    pub fn gid_bytes(self) -> usize {
        if self == Self::Humble { 24 } else { 16 }
    }

    /// Whether endpoints announce that their type has keys, which then meet no others.
    pub fn announces_keys(self) -> bool {
        matches!(self, Self::Kilted | Self::Lyrical | Self::Rolling)
    }

    /// Whether endpoints announce the hash of their type in their user data.
    pub fn has_type_hash(self) -> bool {
        self != Self::Humble
    }
}

impl fmt::Display for Distro {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GUID: Guid = Guid(*b"\x01\x10\xa1\xb2\xc3\xd4\xe5\xf6\x01\x02\x03\x04\x00\x00\x15\x03");

    #[test]
    fn the_parts_of_a_guid() {
        assert_eq!(GUID.to_string(), "0110a1b2c3d4e5f601020304:00001503");
        assert_eq!(Guid::new(GUID.prefix(), GUID.entity()), GUID);
        assert_eq!(GUID.participant().to_string(), "0110a1b2c3d4e5f601020304:000001c1");
        assert!(!GUID.is_reader());
        // RTPS 9.3.1.2: a reader without a key is 0x04, one with a key 0x07.
        assert!(Guid::new(GUID.prefix(), [0, 0, 0x15, 0x04]).is_reader());
        assert!(Guid::new(GUID.prefix(), [0, 0, 0x15, 0x07]).is_reader());
    }

    #[test]
    fn a_gid_is_the_guid_and_zeros() {
        assert_eq!(GUID.to_gid(Distro::Jazzy), GUID.0);
        let gid = GUID.to_gid(Distro::Humble);
        assert_eq!(gid.len(), 24);
        assert_eq!(gid[..16], GUID.0);
        assert_eq!(gid[16..], [0; 8]);
    }

    #[test]
    fn distributions_by_name() {
        for distro in Distro::ALL {
            assert_eq!(Distro::from_name(distro.name()), Ok(distro));
        }
        assert_eq!(Distro::default(), Distro::Jazzy);
        assert_eq!(
            Distro::from_name("foxy").unwrap_err().to_string(),
            "\"foxy\" is not a ROS distribution; \
             allowed: humble, iron, jazzy, kilted, lyrical, rolling"
        );
        let with_long_gids = Distro::ALL.into_iter().filter(|distro| distro.gid_bytes() == 24);
        assert_eq!(with_long_gids.collect::<Vec<_>>(), [Distro::Humble]);
    }

    proptest! {
        #[test]
        fn gids_read_back(bytes: [u8; 16], at in 0..Distro::ALL.len()) {
            let gid = Guid(bytes).to_gid(Distro::ALL[at]);
            prop_assert_eq!(Guid::from_gid(&gid), Some(Guid(bytes)));
        }

        #[test]
        fn any_bytes_are_a_gid_or_none(bytes in prop::collection::vec(0..2_u8, 0..30)) {
            if let Some(guid) = Guid::from_gid(&bytes) {
                prop_assert!(matches!(bytes.len(), 16 | 24));
                prop_assert_eq!(&guid.0[..], &bytes[..16]);
            }
        }
    }
}

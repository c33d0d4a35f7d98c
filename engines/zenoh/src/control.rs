//! What two ends of tsuji say to each other beside the samples, by a key of the receiving session.

use tsuji_engine::Guid;

/// The root of the keys by which sessions of tsuji are told, and the version of what is said.
pub(crate) const CONTROL: &str = "@tsuji/1";

/// The first 12 bytes of all names of one participant.
pub(crate) type Prefix = [u8; 12];

/// Said by one endpoint of a flow to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) what: What,
    /// Of whoever says it.
    pub(crate) from: Prefix,
    /// The endpoints, as the last 4 bytes of their names.
    pub(crate) writer: [u8; 4],
    pub(crate) reader: [u8; 4],
    pub(crate) number: i64,
    pub(crate) source_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The writer sends to the reader: all that is behind the number.
    Start,
    /// A sample for a late joiner, which is the payload.
    Kept,
    /// The reader has everything up to the number.
    Acknowledged,
}

impl Said {
    pub(crate) const LEN: usize = 37;

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[0] = match self.what {
            What::Start => 1,
            What::Kept => 2,
            What::Acknowledged => 3,
        };
        bytes[1..13].copy_from_slice(&self.from);
        bytes[13..17].copy_from_slice(&self.writer);
        bytes[17..21].copy_from_slice(&self.reader);
        bytes[21..29].copy_from_slice(&self.number.to_le_bytes());
        bytes[29..].copy_from_slice(&self.source_ns.to_le_bytes());
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LEN] = bytes.try_into().ok()?;
        let what = match bytes[0] {
            1 => What::Start,
            2 => What::Kept,
            3 => What::Acknowledged,
            _ => return None,
        };
        Some(Self {
            what,
            from: bytes[1..13].try_into().ok()?,
            writer: bytes[13..17].try_into().ok()?,
            reader: bytes[17..21].try_into().ok()?,
            number: i64::from_le_bytes(bytes[21..29].try_into().ok()?),
            source_ns: i64::from_le_bytes(bytes[29..].try_into().ok()?),
        })
    }
}

/// The name of an endpoint.
pub(crate) fn name(prefix: Prefix, own: [u8; 4]) -> Guid {
    let mut name = [0; 16];
    name[..12].copy_from_slice(&prefix);
    name[12..].copy_from_slice(&own);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_reads_back() {
        for what in [What::Start, What::Kept, What::Acknowledged] {
            let said = Said {
                what,
                from: [1; 12],
                writer: [2; 4],
                reader: [3; 4],
                number: 1 << 40,
                source_ns: -1,
            };
            assert_eq!(Said::read(&said.to_bytes()), Some(said));
        }
        assert_eq!(Said::read(&[0; Said::LEN]), None);
        assert_eq!(Said::read(&[1; Said::LEN - 1]), None);
    }
}

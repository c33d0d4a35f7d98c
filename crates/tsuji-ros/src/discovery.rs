//! What is sent to the group where participants announce themselves, as far as whoever only listens
//! there has to understand it (RTPS 2.5, 9.4.4).
//!
//! Two who only listen would never hear of each other. Each of them therefore tries to connect: a header of RTPS
//! without a submessage after it, which the engines read and pass over (`handle_submsg_sequence` in
//! Cyclone DDS, `ddsi_receive.c`; `processCDRMsg` in Fast DDS, `MessageReceiver.cpp`).

use crate::vendor::VendorId;

/// What a datagram there says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A participant is there.
    Participant(VendorId),
    /// A process of tsuji is there that only listens.
    ConnectAttempt(ConnectAttempt),
}

/// Asks whoever only listens to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectAttempt {
    /// The same for those who find each other without it.
    pub place: u64,
}

impl ConnectAttempt {
    /// The datagram.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(PROTOCOL);
        // Of version 2.1, which all accept, and of no vendor.
        bytes[4..8].copy_from_slice(&[MAJOR, 1, 0, 0]);
        bytes[8..12].copy_from_slice(TAG);
        bytes[12..].copy_from_slice(&self.place.to_be_bytes());
        bytes
    }
}

impl Heard {
    /// Reads a datagram, of which at least [`HEADER_BYTES`] must be given and `len` were sent. `None`
    /// if it is not of RTPS 2.
    pub fn read(datagram: &[u8], len: usize) -> Option<Self> {
        let header: &[u8; HEADER_BYTES] = datagram.first_chunk()?;
        let [r, t, p, s, major, _, vendor @ ..] = header;
        if [*r, *t, *p, *s] != *PROTOCOL || *major != MAJOR {
            return None;
        }
        let (tag, place) = header[8..].split_first_chunk()?;
        match len == HEADER_BYTES && tag == TAG {
            true => Some(Self::ConnectAttempt(ConnectAttempt {
                place: u64::from_be_bytes(place.try_into().ok()?),
            })),
            false => Some(Self::Participant(VendorId([vendor[0], vendor[1]]))),
        }
    }
}

/// The length of a header.
pub const HEADER_BYTES: usize = 20;

const PROTOCOL: &[u8; 4] = b"RTPS";
const MAJOR: u8 = 2;

/// What the GUID prefix of a connect attempt begins with, in place of a vendor.
const TAG: &[u8; 4] = b"tsji";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connect_attempt_is_a_header_and_no_more() {
        let connect_attempt = ConnectAttempt { place: 0x0102_0304_0506_0708 };
        let bytes = connect_attempt.to_bytes();
        assert_eq!(&bytes, b"RTPS\x02\x01\0\0tsji\x01\x02\x03\x04\x05\x06\x07\x08");
        assert_eq!(Heard::read(&bytes, 20), Some(Heard::ConnectAttempt(connect_attempt)));
        // With something after it, it is a participant's.
        let none = VendorId([0, 0]);
        assert_eq!(Heard::read(&bytes, 24), Some(Heard::Participant(none)));
    }

    #[test]
    fn what_is_not_rtps_says_nothing() {
        let announcement = b"RTPS\x02\x03\x01\x0f\x01\x0f345678901bcdefgh";
        let fast = Some(Heard::Participant(VendorId::FAST));
        assert_eq!(Heard::read(announcement, announcement.len()), fast);
        let mut other = *announcement;
        other[4] = 3;
        assert_eq!(Heard::read(&other, other.len()), None);
        assert_eq!(Heard::read(&announcement[..19], 19), None);
        assert_eq!(Heard::read(b"RTPX\x02\x03\x01\x0f\x01\x0f345678901bcdefgh", 26), None);
        assert_eq!(Heard::read(b"", 0), None);
    }
}

//! Requests and replies on links that cannot name a request in the envelope, or not to everybody: as
//! `rmw_cyclonedds_cpp` writes them, with a header in the payload.

use tsuji_msg::CdrError;
use tsuji_ros::service::RequestHeader;
use tsuji_transport::{Bytes, Gid, RelationHeader};

/// The client of tsuji that sends from `requests`, as the header names it.
pub(crate) fn client_number(requests: Gid) -> u64 {
    // Numbers of one process differ in the last bytes only.
    fnv1a(requests.0)
}

/// A number that all processes make of the same bytes: FNV-1a.
pub(crate) fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A request or reply with its header.
pub(crate) fn join(related: (Gid, u64), plain: &[u8]) -> Result<Bytes, CdrError> {
    header_of(related).join(plain).map(|whole| Bytes::copy_from(&whole))
}

/// The header as it would stand in a request or reply.
pub(crate) fn header(related: (Gid, u64), plain: &[u8]) -> Result<RelationHeader, CdrError> {
    header_of(related).in_order_of(plain)
}

fn header_of((Gid(name), number): (Gid, u64)) -> RequestHeader {
    let [client @ .., _, _, _, _, _, _, _, _] = name;
    RequestHeader { client: u64::from_le_bytes(client), sequence: number.cast_signed() }
}

/// The header, as what a reply relates to, and the plain request or reply.
pub(crate) fn split(whole: &[u8]) -> Result<((Gid, u64), Bytes), CdrError> {
    let (header, encapsulation, body) = RequestHeader::split(whole)?;
    let plain = [&encapsulation, body].concat();
    Ok((related(header.client, header.sequence.cast_unsigned()), Bytes::copy_from(&plain)))
}

/// Request `number` of a client that the header names so.
pub(crate) fn related(client: u64, number: u64) -> (Gid, u64) {
    let mut gid = [0; 16];
    gid[..8].copy_from_slice(&client.to_le_bytes());
    (Gid(gid), number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_joined_splits() {
        let plain = b"\0\x01\0\0\x07\0\0\0";
        let asked = related(client_number(Gid([7; 16])), u64::MAX);
        let whole = join(asked, plain).unwrap();
        let (found, left) = split(&whole).unwrap();
        assert_eq!((found, &left[..]), (asked, &plain[..]));
        assert!(split(&whole[..19]).is_err());
        assert_eq!(header(asked, plain).unwrap(), whole[4..20]);
    }

    #[test]
    fn clients_of_one_process_have_other_numbers() {
        let number = |last: u8| {
            let mut gid = [3; 16];
            gid[15] = last;
            client_number(Gid(gid))
        };
        let mut numbers: Vec<u64> = (0..=255).map(number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 256);
    }
}

//! The header that `rmw_cyclonedds_cpp` puts into requests and replies.
//!
//! Between the encapsulation and the CDR body of both stand 16 bytes, in the byte order that the
//! encapsulation announces: the client as a `uint64`, then the number of the request as an `int64`
//! (`cdds_request_header` in rmw_cyclonedds, `serdata.hpp`, written by `serialize_top_level` in
//! `Serialization.cpp`). Since 16 is a multiple of every alignment, the body is the same with and
//! without the header.
//!
//! ```text
//! request      00 01 00 00 | client | sequence | body
//! plain sample 00 01 00 00 |                     body
//! ```
//!
//! The client is the instance handle of its request writer in its own process; to everybody else it
//! is a number without meaning. A server returns both numbers as they came, and a client takes only
//! replies that carry its own (`rmw_take_response_request` in `rmw_node.cpp`). Replies of all clients
//! pass one topic. Which reader and writer make up a client is told by
//! [`ServiceEnd`](crate::user_data::ServiceEnd).
//!
//! # With `rmw_fastrtps_cpp` there is no header
//! The request's own writer GUID and sequence number identify it, and the reply repeats them as the
//! *related sample identity* in its inline QoS (`PID_RELATED_SAMPLE_IDENTITY`). A client writes into
//! the related identity of its request the GUID of its reply **reader**; a server that finds one
//! there replies to that GUID instead of the writer's, with the request's sequence number, and first
//! waits for that reader to match (`rmw_request.cpp` and `rmw_response.cpp` in
//! `rmw_fastrtps_shared_cpp`). The client takes replies related to its reader or its writer.
//! [`Guid::is_reader`](crate::gid::Guid::is_reader) tells which of the two is meant.
//!
//! The two mappings cannot talk to each other: topic and type names match, so endpoints match, and
//! what one sends the other misreads. Which mapping a peer has is known by its vendor, and each is spoken to in
//! its own.

use tsuji_msg::CdrError;
use tsuji_msg::cdr::{ByteOrder, HEADER_SIZE, Reader};

/// Bytes of the header.
pub const REQUEST_HEADER_BYTES: usize = 16;

/// Which request a request or reply of `rmw_cyclonedds_cpp` is, or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestHeader {
    /// The client, by a number that it chose.
    pub client: u64,
    /// The request, by a number that its client counts.
    pub sequence: i64,
}

impl RequestHeader {
    /// Takes a received sample apart: the header, the encapsulation and the body. The last two
    /// together are the plain sample.
    ///
    /// Refused if the encapsulation is not plain CDR, or the sample ends inside the header. The
    /// body is not looked at.
    pub fn split(sample: &[u8]) -> Result<(Self, [u8; HEADER_SIZE], &[u8]), CdrError> {
        let mut reader = Reader::new(sample)?;
        let client = reader.field("header.guid")?;
        let sequence = reader.field("header.seq")?;
        let (encapsulation, _) = sample.split_first_chunk().unwrap_or((&[0; HEADER_SIZE], &[]));
        let body = sample.get(reader.offset()..).unwrap_or_default();
        Ok((Self { client, sequence }, *encapsulation, body))
    }

    /// The plain sample `sample` with this header in it, in its byte order.
    ///
    /// Refused if the encapsulation of `sample` is not plain CDR.
    pub fn join(self, sample: &[u8]) -> Result<Vec<u8>, CdrError> {
        let header = self.in_order_of(sample)?;
        let (encapsulation, body) = sample.split_at(HEADER_SIZE);
        Ok([encapsulation, &header, body].concat())
    }

    /// This header as it stands in `sample`, in its byte order.
    ///
    /// Refused if the encapsulation of `sample` is not plain CDR.
    pub fn in_order_of(self, sample: &[u8]) -> Result<[u8; REQUEST_HEADER_BYTES], CdrError> {
        let (client, sequence) = match Reader::new(sample)?.order() {
            ByteOrder::Big => (self.client.to_be_bytes(), self.sequence.to_be_bytes()),
            ByteOrder::Little => (self.client.to_le_bytes(), self.sequence.to_le_bytes()),
        };
        let mut header = [0; REQUEST_HEADER_BYTES];
        header[..8].copy_from_slice(&client);
        header[8..].copy_from_slice(&sequence);
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: RequestHeader = RequestHeader { client: 0x0102_0304_0506_0708, sequence: 9 };

    /// A request of AddTwoInts, 2 and 3, in both byte orders.
    const LITTLE: &[u8] = b"\x00\x01\x00\x00\
        \x08\x07\x06\x05\x04\x03\x02\x01\x09\0\0\0\0\0\0\0\
        \x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0";
    const BIG: &[u8] = b"\x00\x00\x00\x00\
        \x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0\0\0\0\x09\
        \0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03";

    #[test]
    fn known_requests() {
        for sample in [LITTLE, BIG] {
            let (header, encapsulation, body) = RequestHeader::split(sample).unwrap();
            assert_eq!(header, HEADER);
            assert_eq!(encapsulation, sample[..4]);
            assert_eq!(body, &sample[20..]);
            let plain = [&encapsulation, body].concat();
            assert_eq!(header.join(&plain).unwrap(), sample);
        }
    }

    #[test]
    fn samples_that_are_none() {
        let check = |sample: &[u8], expect: &str| {
            assert_eq!(RequestHeader::split(sample).unwrap_err().to_string(), expect);
        };
        check(&LITTLE[..3], "byte 0: the message ends here: 4 bytes needed, 3 left");
        check(&LITTLE[..19], "header.seq: byte 12: the message ends here: 8 bytes needed, 7 left");
        check(
            b"\x00\x07\x00\x00",
            "byte 0: encapsulation 00 07 is not understood; \
             allowed are 00 00 (CDR, big endian) and 00 01 (CDR, little endian)",
        );
        assert!(HEADER.join(&[0, 1, 0]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_joined_splits(
            client: u64,
            sequence: i64,
            order in 0..2_u8,
            options: [u8; 2],
            body: Vec<u8>,
        ) {
            let header = RequestHeader { client, sequence };
            let plain = [&[0, order, options[0], options[1]], &body[..]].concat();
            let whole = header.join(&plain).unwrap();
            let (split, encapsulation, rest) = RequestHeader::split(&whole).unwrap();
            prop_assert_eq!(split, header);
            prop_assert_eq!([&encapsulation, rest].concat(), plain);
        }

        #[test]
        fn any_bytes_split_or_not(mut bytes: Vec<u8>, order in 0..3_u8) {
            if let [first, second, ..] = &mut bytes[..] {
                (*first, *second) = (0, order);
            }
            if let Ok((header, encapsulation, body)) = RequestHeader::split(&bytes) {
                prop_assert_eq!(header.join(&[&encapsulation, body].concat()).unwrap(), bytes);
            }
        }
    }
}

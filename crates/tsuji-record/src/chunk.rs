//! Chunks: records that were packed together.

use std::io::{self, Read};
use std::ops::Range;

use crate::fields::{self, Record};
use crate::file::{HEAD_BYTES, op};
use crate::message::Part;

/// Bytes of an unpacked chunk. A larger one is told as damage and left out.
pub const CHUNK_BYTES_MAX: u64 = 1 << 30;

/// How many times what is packed by zstd is reserved for what it makes. More is unpacked step by step.
const RATIO_MAX: u64 = 64;

/// The records of a chunk, which is handed over with its head; or what is wrong with it.
pub(crate) fn unpack(record: Part) -> Result<(Part, Range<usize>), String> {
    let body = record.get(HEAD_BYTES as usize..).unwrap_or_default();
    let Record::Chunk(chunk) = fields::parse(op::CHUNK, body)? else {
        return Err("it is none".to_owned());
    };
    let size = chunk.uncompressed_size;
    if CHUNK_BYTES_MAX < size {
        return Err(format!("it has {size} bytes unpacked; allowed: {CHUNK_BYTES_MAX}"));
    }
    let packed = |source: io::Result<Box<dyn Read + '_>>| {
        let mut bytes = Vec::new();
        // It grows by what is there and not by what is said to be, and no further.
        let read = source.and_then(|it| it.take(size + 1).read_to_end(&mut bytes));
        read.map(|_| Some(bytes)).map_err(|error| format!("it cannot be unpacked: {error}"))
    };
    // Where so much is likely to be there.
    let zstd_at_once = || {
        let is_likely = size <= (chunk.data.len() as u64).saturating_mul(RATIO_MAX);
        is_likely.then(|| zstd::bulk::decompress(chunk.data, size as usize).ok()).flatten()
    };
    let unpacked = match chunk.compression {
        "" => None,
        "zstd" => match zstd_at_once() {
            Some(bytes) => Some(bytes),
            // It also tells what is wrong.
            None => packed(zstd::Decoder::new(chunk.data).map(|it| Box::new(it) as _))?,
        },
        "lz4" => packed(lz4::Decoder::new(chunk.data).map(|it| Box::new(it) as _))?,
        other => return Err(format!("it is packed as \"{other}\"; read: zstd and lz4")),
    };
    let bytes = unpacked.as_deref().unwrap_or(chunk.data);
    if bytes.len() as u64 != size {
        return Err(format!("it has not the {size} bytes that it says"));
    }
    // 0 says that there is none. To look at all that is mapped would be to read it.
    let said = chunk.uncompressed_crc;
    if said != 0 && !(unpacked.is_none() && matches!(record, Part::Mapped(..))) {
        let found = crc32fast::hash(bytes);
        if said != found {
            return Err(format!("its CRC is {found:08x}, where it says {said:08x}"));
        }
    }
    let whole: usize =
        apart(bytes, 0..bytes.len()).map(|(_, body)| HEAD_BYTES as usize + body.len()).sum();
    if whole != bytes.len() {
        return Err("it ends in the middle of a record".to_owned());
    }
    match unpacked {
        Some(unpacked) => {
            let all = 0..unpacked.len();
            Ok((Part::Read(unpacked), all))
        }
        None => {
            // What is not packed stands at the end of the record's fields.
            let start = chunk.data.as_ptr() as usize - record.as_ptr() as usize;
            let records = start..start + chunk.data.len();
            Ok((record, records))
        }
    }
}

/// Records that stand one behind the other in this part of `bytes`, by where their bodies are; those that are whole.
pub(crate) fn apart(bytes: &[u8], part: Range<usize>) -> impl Iterator<Item = (u8, Range<usize>)> {
    let Range { mut start, end } = part;
    std::iter::from_fn(move || {
        let rest = &bytes[start..end];
        let (&[opcode, ref len @ ..], after) =
            rest.split_first_chunk::<{ HEAD_BYTES as usize }>()?;
        let len = u64::from_le_bytes(*len).try_into().ok()?;
        after.get(..len)?;
        let body = start + HEAD_BYTES as usize..start + HEAD_BYTES as usize + len;
        start = body.end;
        Some((opcode, body))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A record with its head.
    pub(crate) fn record(opcode: u8, body: &[u8]) -> Vec<u8> {
        [&[opcode][..], &(body.len() as u64).to_le_bytes(), body].concat()
    }

    /// A chunk without a checksum, as nobody who wants to be read writes it.
    pub(crate) fn chunk(compression: &str, content: &[u8], unpacked: u64) -> Vec<u8> {
        let mut body = [0; 16].to_vec();
        body.extend(unpacked.to_le_bytes());
        body.extend([0; 4]);
        body.extend((compression.len() as u32).to_le_bytes());
        body.extend(compression.as_bytes());
        body.extend((content.len() as u64).to_le_bytes());
        body.extend(content);
        record(op::CHUNK, &body)
    }

    #[test]
    fn lengths_that_lie_inside_a_chunk_are_refused() {
        for len in [5, 1000, 1 << 31, u64::MAX] {
            let mut records = vec![op::MESSAGE];
            records.extend(u64::to_le_bytes(len));
            records.extend([1, 2, 3, 4]);
            let unpacked = records.len() as u64;
            let packed = zstd::bulk::compress(&records, 0).unwrap();
            for unpacked in [unpacked, 0, 1, unpacked - 1, unpacked + 1, 1 << 29] {
                let none = |chunk: &[u8]| {
                    unpack(Part::Read(chunk.to_vec()))
                        .map_or(true, |(_, records)| records.is_empty())
                };
                assert!(none(&chunk("zstd", &packed, unpacked)), "{len} of {unpacked}");
                assert!(none(&chunk("", &records, unpacked)), "{len} of {unpacked}");
            }
        }
    }

    #[test]
    fn chunks_that_are_none_are_refused() {
        let check = |chunk: &[u8], expect: &str| {
            let error = unpack(Part::Read(chunk.to_vec())).unwrap_err();
            assert!(error.contains(expect), "{error}");
        };
        check(&[], "");
        check(&[op::CHUNK; 60], "");
        check(&chunk("brotli", &[1], 1), "packed as \"brotli\"; read: zstd and lz4");
        check(&chunk("zstd", &[1], 1 << 40), "unpacked; allowed");
    }
}

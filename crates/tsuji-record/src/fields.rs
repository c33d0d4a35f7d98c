//! What is in the records of an MCAP file. The crate `mcap` sets aside as much memory as a length says, whatever is behind it;
//! here nothing is taken that is not there.

use std::collections::{BTreeMap, HashMap};

use crate::file::op;

/// A record that is understood.
#[derive(Debug)]
pub(crate) enum Record<'a> {
    Schema(Schema<'a>),
    Channel(Channel<'a>),
    Chunk(Chunk<'a>),
    Statistics(Statistics),
    Metadata { name: String, metadata: BTreeMap<String, String> },
}

#[derive(Debug)]
pub(crate) struct Schema<'a> {
    pub(crate) id: u16,
    pub(crate) name: &'a str,
    pub(crate) encoding: &'a str,
    pub(crate) data: &'a [u8],
}

#[derive(Debug)]
pub(crate) struct Channel<'a> {
    pub(crate) id: u16,
    pub(crate) schema_id: u16,
    pub(crate) topic: &'a str,
    pub(crate) message_encoding: &'a str,
    pub(crate) metadata: BTreeMap<String, String>,
}

#[derive(Debug)]
pub(crate) struct Chunk<'a> {
    pub(crate) uncompressed_size: u64,
    pub(crate) uncompressed_crc: u32,
    pub(crate) compression: &'a str,
    pub(crate) data: &'a [u8],
}

#[derive(Debug)]
pub(crate) struct Statistics {
    pub(crate) message_count: u64,
    pub(crate) channel_count: u32,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    pub(crate) channel_message_counts: HashMap<u16, u64>,
}

/// The record of that number and body; the error says what is wrong with it.
pub(crate) fn parse(opcode: u8, body: &[u8]) -> Result<Record<'_>, String> {
    let mut fields = Fields(body);
    let record = fields.record(opcode);
    record.ok_or_else(|| {
        format!("what is in record 0x{opcode:02X} does not fit into it, or is no UTF-8")
    })
}

/// What is left of a body. Each takes the next field; `None` if it is not whole.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn record(&mut self, opcode: u8) -> Option<Record<'a>> {
        Some(match opcode {
            op::SCHEMA => Record::Schema(Schema {
                id: self.u16()?,
                name: self.text()?,
                encoding: self.text()?,
                data: self.bytes()?,
            }),
            op::CHANNEL => Record::Channel(Channel {
                id: self.u16()?,
                schema_id: self.u16()?,
                topic: self.text()?,
                message_encoding: self.text()?,
                metadata: self.texts()?,
            }),
            op::CHUNK => {
                // Its first and last time.
                self.take(16)?;
                Record::Chunk(Chunk {
                    uncompressed_size: self.u64()?,
                    uncompressed_crc: self.u32()?,
                    compression: self.text()?,
                    data: {
                        let len = self.u64()?;
                        self.take(usize::try_from(len).ok()?)?
                    },
                })
            }
            op::STATISTICS => {
                let message_count = self.u64()?;
                // How many schemas.
                self.take(2)?;
                let channel_count = self.u32()?;
                // How many attachments, records of metadata and chunks.
                self.take(12)?;
                Record::Statistics(Statistics {
                    message_count,
                    channel_count,
                    first_ns: self.u64()?,
                    last_ns: self.u64()?,
                    channel_message_counts: self.counts()?,
                })
            }
            op::METADATA => {
                Record::Metadata { name: self.text()?.to_owned(), metadata: self.texts()? }
            }
            _ => return None,
        })
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.take(usize::try_from(len).ok()?)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn texts(&mut self) -> Option<BTreeMap<String, String>> {
        let mut entries = Fields(self.bytes()?);
        let mut texts = BTreeMap::new();
        while !entries.0.is_empty() {
            texts.insert(entries.text()?.to_owned(), entries.text()?.to_owned());
        }
        Some(texts)
    }

    fn counts(&mut self) -> Option<HashMap<u16, u64>> {
        let mut entries = Fields(self.bytes()?);
        let mut counts = HashMap::new();
        while !entries.0.is_empty() {
            counts.insert(entries.u16()?, entries.u64()?);
        }
        Some(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_says_more_than_there_is_takes_no_memory() {
        let mut channel = [1, 0, 2, 0].to_vec();
        channel.extend(u32::MAX.to_le_bytes());
        channel.extend(b"/a");
        assert!(parse(op::CHANNEL, &channel).unwrap_err().contains("record 0x04"));
        let mut chunk = [0; 28].to_vec();
        chunk.extend([0; 4]);
        chunk.extend((1_u64 << 31).to_le_bytes());
        assert!(parse(op::CHUNK, &chunk).is_err());
        for opcode in 0..=u8::MAX {
            assert!(parse(opcode, &[0xFF; 7]).is_err());
        }
    }
}

//! Payloads that tell whether they arrived as they were sent.

use tsuji_transport::{Bytes, Envelope, Payload, Sample};

/// `len` bytes that only `seed` makes.
pub(crate) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fill(&mut bytes, seed);
    bytes
}

/// Some transports carry only what begins so.
const CDR_HEADER: [u8; 4] = [0, 1, 0, 0];

pub(crate) fn fill(bytes: &mut [u8], seed: u64) {
    let mut words = Words(seed);
    for chunk in bytes.chunks_mut(8) {
        let word = words.next().to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
    let header = CDR_HEADER.len().min(bytes.len());
    bytes[..header].copy_from_slice(&CDR_HEADER[..header]);
}

/// Whether `bytes` are what [`fill`] made of `seed`. Allocates nothing.
pub(crate) fn is_pattern(bytes: &[u8], seed: u64) -> bool {
    let mut words = Words(seed);
    let first = words.next().to_le_bytes();
    let mut chunks = bytes.chunks(8);
    let is_begun = chunks.next().is_none_or(|chunk| {
        let header = CDR_HEADER.len().min(chunk.len());
        chunk[..header] == CDR_HEADER[..header] && chunk[header..] == first[header..chunk.len()]
    });
    is_begun && chunks.all(|chunk| chunk == &words.next().to_le_bytes()[..chunk.len()])
}

pub(crate) fn payload(seed: u64, len: usize) -> Payload {
    Payload::Bytes(Bytes::copy_from(&pattern(seed, len)))
}

/// The seed of what the suite's outlets send.
pub(crate) fn seed(envelope: &Envelope) -> u64 {
    u64::from_le_bytes(envelope.gid.0[..8].try_into().unwrap()) ^ envelope.sequence.rotate_left(32)
}

/// The bytes of a sample, which must be bytes.
#[track_caller]
pub(crate) fn bytes(sample: &Sample) -> &Bytes {
    match &sample.payload {
        Payload::Bytes(bytes) => bytes,
        Payload::Typed(_) => panic!("bytes were sent and a typed value arrived"),
    }
}

/// The sample is what an outlet sent under this envelope.
#[track_caller]
pub(crate) fn assert_whole(sample: &Sample) {
    let bytes = bytes(sample);
    let (len, envelope) = (bytes.len(), sample.envelope);
    assert!(is_pattern(bytes, seed(&envelope)), "{len} bytes were changed, {envelope:?}");
}

/// SplitMix64.
pub(crate) struct Words(pub(crate) u64);

impl Words {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

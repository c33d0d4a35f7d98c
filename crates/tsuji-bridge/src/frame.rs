//! One message as it goes to every client that wants it.

use std::sync::{Arc, OnceLock};

use tsuji::Bytes;
use tsuji_rosbridge::{Fragments, Id};
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::deflate::deflate;

/// A message that is encoded once, whoever gets it: a WebSocket frame, of which other protocols send the payload.
#[derive(Debug)]
pub(crate) struct Frame {
    kind: Kind,
    bytes: Vec<u8>,
    /// Where the frame begins, and where its payload does.
    begin: usize,
    payload: usize,
    /// The frame with a payload that is deflated, and where it begins; made when the first client wants it, and nothing where it
    /// would be no shorter.
    deflated: OnceLock<Option<(usize, Box<[u8]>)>>,
    /// Where it goes in pieces, those behind this one.
    more: Vec<Arc<Self>>,
    /// The rest of the payload, where that is sent from where it lies.
    tail: Option<Bytes>,
}

/// What a message is to a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Text,
    Binary,
}

impl Frame {
    /// The message that `write` appends. Its error, if it fails.
    pub(crate) fn encode<E>(
        kind: Kind,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut bytes = Vec::with_capacity(HEAD_MAX + SMALL);
        bytes.resize(HEAD_MAX, 0);
        write(&mut bytes)?;
        Ok(Self::new(kind, bytes, None))
    }

    /// The binary message that `write` appends, with `tail` behind it, which is not copied.
    pub(crate) fn with_tail(write: impl FnOnce(&mut Vec<u8>), tail: Bytes) -> Self {
        let mut bytes = vec![0; HEAD_MAX];
        write(&mut bytes);
        Self::new(Kind::Binary, bytes, Some(tail))
    }

    fn new(kind: Kind, mut bytes: Vec<u8>, tail: Option<Bytes>) -> Self {
        let begin = put_head(&mut bytes, tail.as_ref().map_or(0, |it| it.len()), kind, false);
        let (deflated, more) = (OnceLock::new(), Vec::new());
        Self { kind, bytes, begin, payload: HEAD_MAX, deflated, more, tail }
    }

    /// The same in pieces, if it is text that is longer than `fragment_size`; `id` is what its pieces are known by.
    pub(crate) fn in_pieces(self, fragment_size: Option<u32>, id: &Id<'_>) -> Self {
        // Binary may look like text, and is none.
        let text = fragment_size
            .filter(|_| self.is_text())
            .and_then(|size| Some((std::str::from_utf8(self.payload()).ok()?, size)));
        let pieces = text.and_then(|(text, size)| {
            let least = u32::try_from(text.len().div_ceil(PIECES_MAX)).unwrap_or(u32::MAX);
            Fragments::new(text, id.borrowed(), size.max(least))
        });
        let Some(mut pieces) = pieces else { return self };
        let mut piece = || {
            let written = Self::encode(Kind::Text, |out| match pieces.write_next(out) {
                true => Ok(()),
                false => Err(()),
            });
            written.ok()
        };
        let Some(first) = piece() else { return self };
        Self { more: std::iter::from_fn(piece).map(Arc::new).collect(), ..first }
    }

    /// The pieces behind this one, where it goes in pieces.
    pub(crate) fn more(&self) -> &[Arc<Self>] {
        &self.more
    }

    /// As a WebSocket sends it, up to its tail.
    pub(crate) fn whole(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }

    /// As a WebSocket sends it that has agreed on `permessage-deflate`, where that is shorter.
    pub(crate) fn deflated(&self) -> Option<&[u8]> {
        let made = self.deflated.get_or_init(|| {
            // What is not copied is large and most often a picture, which takes long and wins little.
            if self.payload().len() < DEFLATED_MIN || self.tail.is_some() {
                return None;
            }
            let mut bytes = vec![0; HEAD_MAX];
            deflate(self.payload(), &mut bytes)
                .then(|| (put_head(&mut bytes, 0, self.kind, true), bytes.into()))
        });
        made.as_ref().map(|(begin, bytes)| &bytes[*begin..])
    }

    /// Deflates it with all pieces behind it, so that no other thread has to.
    pub(crate) fn deflate_all(&self) {
        self.deflated();
        self.more.iter().for_each(|it| it.deflate_all());
    }

    /// The message alone, up to its tail.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.bytes[self.payload..]
    }

    /// What follows, from where it lies.
    pub(crate) fn tail(&self) -> &[u8] {
        self.tail.as_deref().unwrap_or_default()
    }

    fn is_text(&self) -> bool {
        self.bytes[self.begin] & OPCODE == u8::from(OpCode::Data(Data::Text))
    }

    /// The longest payload of its pieces.
    pub(crate) fn largest_bytes(&self) -> usize {
        let more = self.more.iter().map(|it| it.largest_bytes());
        more.chain([self.payload().len() + self.tail().len()]).max().unwrap_or_default()
    }

    /// What it takes of a client's memory while it waits, with the pieces behind it. What is deflated is shorter, and not counted.
    pub(crate) fn cost_bytes(&self) -> usize {
        let more: usize = self.more.iter().map(|it| it.cost_bytes()).sum();
        self.piece_bytes() + more
    }

    /// The same without them.
    pub(crate) fn piece_bytes(&self) -> usize {
        self.bytes.len() + self.tail().len() + OVERHEAD_BYTES
    }
}

/// Writes the head of a frame into `HEAD_MAX` bytes that are left for it, with so many bytes of the payload elsewhere; where it
/// begins.
fn put_head(bytes: &mut [u8], tail: usize, kind: Kind, is_deflated: bool) -> usize {
    let opcode = OpCode::Data(match kind {
        Kind::Text => Data::Text,
        Kind::Binary => Data::Binary,
    });
    let head = FrameHeader { opcode, rsv1: is_deflated, ..FrameHeader::default() };
    let mut written = [0; HEAD_MAX];
    let mut rest = &mut written[..];
    // It cannot fail: without a mask there is room for all.
    let _ = head.format((bytes.len() - HEAD_MAX + tail) as u64, &mut rest);
    let begin = rest.len();
    bytes[begin..HEAD_MAX].copy_from_slice(&written[..HEAD_MAX - begin]);
    begin
}

/// The head of a frame that is not masked is at most so long.
const HEAD_MAX: usize = 10;

/// The bits of the first byte of a frame that say what it is.
const OPCODE: u8 = 0x0f;

/// A message goes in no more pieces; they are longer instead. Each takes some memory, however short it is.
const PIECES_MAX: usize = 1000;

/// Room for most messages, so that they are encoded without growing.
const SMALL: usize = 246;

/// Shorter messages are not deflated: there is little to win, and each costs some microseconds.
pub(crate) const DEFLATED_MIN: usize = 128;

/// What a waiting message takes besides its bytes.
const OVERHEAD_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &[u8]) -> Frame {
        let append = |out: &mut Vec<u8>| {
            out.extend_from_slice(text);
            Ok::<_, ()>(())
        };
        Frame::encode(Kind::Text, append).unwrap()
    }

    #[test]
    fn long_messages_are_deflated_and_say_so() {
        assert_eq!(text(&[b'x'; DEFLATED_MIN - 1]).deflated(), None);
        let letters = [b'x'; DEFLATED_MIN];
        let frame = text(&letters);
        let deflated = frame.deflated().unwrap();
        assert_eq!(deflated[..2], [0xc1, deflated.len() as u8 - 2]);
        let mut inflater = crate::deflate::Inflater::default();
        assert_eq!(inflater.inflate(&deflated[2..], DEFLATED_MIN), Ok(&letters[..]));
        assert_eq!(frame.payload(), letters);
    }

    #[test]
    fn the_head_says_how_long_the_payload_is() {
        for (len, head) in [
            (0, vec![0x81, 0]),
            (125, vec![0x81, 125]),
            (126, vec![0x81, 126, 0, 126]),
            (65_536, vec![0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let letters = vec![b'x'; len];
            let frame = text(&letters);
            assert_eq!(frame.payload(), letters);
            assert_eq!(frame.whole(), [head, letters].concat());
        }
        let id = Id::Text("i".into());
        let pieces = text(b"0123456789").in_pieces(Some(4), &id);
        let all = [pieces.payload()].into_iter().chain(pieces.more().iter().map(|it| it.payload()));
        let data: Vec<_> = all
            .map(|it| serde_json::from_slice::<serde_json::Value>(it).unwrap()["data"].clone())
            .collect();
        assert_eq!(data, ["0123", "4567", "89"]);
        assert!(text(b"0123").in_pieces(Some(4), &id).more().is_empty());
        let binary = |bytes: &[u8]| {
            let append = |out: &mut Vec<u8>| {
                out.extend_from_slice(bytes);
                Ok::<_, ()>(())
            };
            Frame::encode(Kind::Binary, append).unwrap()
        };
        assert_eq!(binary(&[7]).whole(), [0x82, 1, 7]);
        // A document of BSON may be UTF-8 by accident.
        let whole = binary(b"\x0c\0\0\0\x10a\0\x01\0\0\0\0").in_pieces(Some(4), &id);
        assert!(whole.more().is_empty() && whole.payload().len() == 12);
    }

    #[test]
    fn a_tail_counts_and_is_not_copied() {
        let tail = Bytes::copy_from(&[7; 200]);
        let frame = Frame::with_tail(|out| out.extend_from_slice(b"head"), tail.clone());
        assert_eq!(frame.whole(), [&[0x82, 126, 0, 204][..], b"head"].concat());
        assert_eq!((frame.payload(), frame.tail().as_ptr()), (&b"head"[..], tail.as_ptr()));
        assert_eq!((frame.largest_bytes(), frame.deflated()), (204, None));
        assert!(204 < frame.cost_bytes());
    }
}

//! What is being written to one connection.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::sync::Arc;

use crate::frame::Frame;

/// Bytes that are on their way, in order. Nothing here is ever dropped: it may be half written.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pieces: VecDeque<Piece>,
    /// How much of the first piece is written.
    written: usize,
    bytes: usize,
}

#[derive(Debug)]
enum Piece {
    /// Small messages one behind the other.
    Own(Vec<u8>),
    /// The whole of a large one, which others may be sent too.
    Whole(Arc<Frame>),
    /// The same, deflated.
    Deflated(Arc<Frame>),
    /// Its payload alone.
    Payload(Arc<Frame>),
    /// What follows either of them, from where it lies.
    Tail(Arc<Frame>),
}

/// In which form a client gets messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As they are, one behind the other.
    Bare,
    /// In frames of a WebSocket.
    Framed,
    /// The same, and deflated where that is shorter and they are no longer than this.
    Deflated {
        /// So much a client can refer back.
        message_bytes_max: usize,
    },
}

impl Piece {
    fn of(frame: Arc<Frame>, form: Form) -> Self {
        match form {
            Form::Bare => Self::Payload(frame),
            Form::Deflated { message_bytes_max }
                if frame.payload().len() <= message_bytes_max && frame.deflated().is_some() =>
            {
                Self::Deflated(frame)
            }
            Form::Framed | Form::Deflated { .. } => Self::Whole(frame),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Whole(frame) => frame.whole(),
            Self::Deflated(frame) => frame.deflated().unwrap_or_default(),
            Self::Payload(frame) => frame.payload(),
            Self::Tail(frame) => frame.tail(),
        }
    }
}

impl Outgoing {
    /// How much is left to be written.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Puts a message behind what is there.
    pub(super) fn push(&mut self, frame: Arc<Frame>, form: Form) {
        let tail = (!frame.tail().is_empty()).then(|| Piece::Tail(Arc::clone(&frame)));
        self.put(Piece::of(frame, form));
        tail.into_iter().for_each(|it| self.put(it));
    }

    fn put(&mut self, piece: Piece) {
        let bytes = piece.bytes();
        if bytes.len() <= COPIED_MAX {
            self.append(bytes);
        } else {
            self.bytes += bytes.len();
            self.pieces.push_back(piece);
        }
    }

    /// Puts bytes behind what is there.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        match self.pieces.back_mut() {
            Some(Piece::Own(own)) if own.len() + bytes.len() <= own.capacity() => {
                own.extend_from_slice(bytes);
            }
            _ if bytes.is_empty() => {}
            _ => {
                let mut own = Vec::with_capacity(bytes.len().max(OWN_BYTES));
                own.extend_from_slice(bytes);
                self.pieces.push_back(Piece::Own(own));
            }
        }
    }

    /// Writes as much as `stream` takes; whether that was all.
    pub(super) fn write(&mut self, stream: &mut impl Write) -> io::Result<bool> {
        while !self.pieces.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let mut count = 0;
            for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
                let skipped = if count == 0 { self.written } else { 0 };
                *slice = IoSlice::new(&piece.bytes()[skipped..]);
                count += 1;
            }
            match stream.write_vectored(&slices[..count]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => self.taken(taken),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn taken(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.written += bytes;
        while let Some(first) = self.pieces.front() {
            let len = first.bytes().len();
            if self.written < len {
                return;
            }
            self.written -= len;
            self.pieces.pop_front();
        }
    }
}

/// Messages of at most so many bytes are copied behind each other, so that many leave by one call.
const COPIED_MAX: usize = 4096;

/// How much is copied into one piece.
const OWN_BYTES: usize = 64 << 10;

/// Pieces that one call writes.
const SLICES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Kind;

    /// Takes so many bytes a call, and after them is full once.
    struct Narrow {
        taken: Vec<u8>,
        a_call: usize,
        is_full: bool,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.is_full = !self.is_full;
            if self.is_full {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(self.a_call);
            self.taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_tail_follows_its_frame() {
        for len in [0, 3, 4096, 5000] {
            let tail = vec![b't'; len];
            let mut outgoing = Outgoing::default();
            for _ in 0..2 {
                let bytes = tsuji::Bytes::copy_from(&tail);
                let frame = Frame::with_tail(|out| out.extend_from_slice(b"head"), bytes);
                outgoing.push(Arc::new(frame), Form::Framed);
            }
            assert_eq!(outgoing.pieces.len(), if len < 5000 { 1 } else { 4 }, "{len}");
            let mut narrow = Narrow { taken: Vec::new(), a_call: 7, is_full: false };
            while !outgoing.write(&mut narrow).unwrap() {}
            let one = narrow.taken.len() / 2;
            assert_eq!(narrow.taken[one - len - 4..one], [b"head", &tail[..]].concat());
            assert_eq!((&narrow.taken[..one], outgoing.bytes()), (&narrow.taken[one..], 0));
        }
    }

    #[test]
    fn all_is_written_in_order_however_little_is_taken_at_once() {
        for a_call in [1, 7, 5000, 100_000] {
            let mut outgoing = Outgoing::default();
            let mut expected = Vec::new();
            for (at, len) in [3, 5000, 4096, 4096, 9000, 5000, 1, 10, 1].into_iter().enumerate() {
                let append = |out: &mut Vec<u8>| {
                    out.extend(std::iter::repeat_n(b'a' + at as u8, len));
                    Ok::<_, ()>(())
                };
                let frame = Arc::new(Frame::encode(Kind::Text, append).unwrap());
                let (form, bytes) = match at % 3 {
                    0 => (Form::Framed, frame.whole()),
                    1 => (Form::Bare, frame.payload()),
                    _ => (Form::Deflated { message_bytes_max: 4096 }, frame.whole()),
                };
                let is_deflated =
                    matches!(form, Form::Deflated { .. }) && (128..=4096).contains(&len);
                let bytes = if is_deflated { frame.deflated().unwrap() } else { bytes };
                expected.extend_from_slice(bytes);
                outgoing.push(frame, form);
            }
            assert_eq!(outgoing.bytes(), expected.len());
            let mut narrow = Narrow { taken: Vec::new(), a_call, is_full: false };
            while !outgoing.write(&mut narrow).unwrap() {}
            assert!(narrow.taken == expected && outgoing.is_empty() && outgoing.bytes() == 0);
        }
    }
}

//! Any stream, cut anywhere: the same messages and faults as in one chunk, no more kept than may be.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tsuji_rosbridge::{BsonSplitter, Garbage, Piece, Splitter};

const BYTES_MAX: usize = 100;

fn pieces<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Vec<Result<Vec<u8>, Garbage>> {
    let mut splitter = Splitter::new(BYTES_MAX, 5);
    let mut out = Vec::new();
    for mut chunk in chunks {
        while let Some(piece) = splitter.next(&mut chunk) {
            out.push(match piece {
                Piece::Message(message) => Ok(message.to_vec()),
                Piece::Refused(garbage) => Err(garbage),
            });
        }
        assert!(splitter.held_bytes() <= BYTES_MAX);
    }
    out
}

fn documents<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Vec<Result<Vec<u8>, Garbage>> {
    let mut splitter = BsonSplitter::new(BYTES_MAX);
    let mut out = Vec::new();
    for mut chunk in chunks {
        while let Some(piece) = splitter.next(&mut chunk) {
            out.push(match piece {
                Piece::Message(message) => Ok(message.to_vec()),
                Piece::Refused(garbage) => Err(garbage),
            });
        }
        assert!(splitter.held_bytes() <= BYTES_MAX);
    }
    out
}

fuzz_target!(|input: (u8, &[u8])| {
    let (size, stream) = (usize::from(input.0) + 1, input.1);
    let whole = pieces(std::iter::once(stream));
    assert_eq!(pieces(stream.chunks(size)), whole);
    assert_eq!(pieces(stream.chunks(1)), whole);
    for message in whole.into_iter().flatten() {
        assert!(message.len() <= BYTES_MAX && message.starts_with(b"{"));
    }
    assert_eq!(documents(stream.chunks(size)), documents(std::iter::once(stream)));
});

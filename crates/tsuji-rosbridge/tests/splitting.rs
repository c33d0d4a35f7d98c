//! Messages out of streams, however they are cut.

use proptest::prelude::*;
use tsuji_rosbridge::{BsonSplitter, Encoding, Fault, Piece, Splitter, StreamSplitter};

const BYTES_MAX: usize = 60;
const NESTING_MAX: usize = 4;

/// What comes out of the chunks: messages as they are, faults with their places.
fn pieces<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut splitter = Splitter::new(BYTES_MAX, NESTING_MAX);
    let mut out = Vec::new();
    for mut chunk in chunks {
        while let Some(piece) = splitter.next(&mut chunk) {
            out.push(match piece {
                Piece::Message(message) => String::from_utf8_lossy(message).into_owned(),
                Piece::Refused(garbage) => format!("{:?} at {}", garbage.fault, garbage.at),
            });
        }
        assert!(splitter.held_bytes() <= BYTES_MAX);
    }
    out
}

/// In one chunk, and byte by byte.
#[track_caller]
fn check(stream: &str, expect: &[&str]) {
    assert_eq!(pieces([stream.as_bytes()]), expect, "in one chunk");
    assert_eq!(pieces(stream.as_bytes().chunks(1)), expect, "byte by byte");
}

#[test]
fn objects_follow_each_other() {
    check("", &[]);
    check(" \r\n\t ", &[]);
    check("{}", &["{}"]);
    check("{}{}", &["{}", "{}"]);
    check(" {\"a\": [1, {}]}\n\n{\"b\":2} ", &["{\"a\": [1, {}]}", "{\"b\":2}"]);
    check(r#"{"a":"} \" { \\"}{"b":"\\"}"#, &[r#"{"a":"} \" { \\"}"#, r#"{"b":"\\"}"#]);
    check("{\"a\":\"  spaces  stay  \"}", &["{\"a\":\"  spaces  stay  \"}"]);
    check("{\"unfinished\":", &[]);
}

#[test]
fn garbage_is_told_once_and_passed_over() {
    check("x{}", &["Between at 0", "{}"]);
    check("{} , {}", &["{}", "Between at 3", "{}"]);
    check("}}]] {\"a\":1} ,", &["Between at 0", "{\"a\":1}", "Between at 13"]);
    check("{\"a\":\"b\n{}", &["Control at 7", "{}"]);
    check("x\"y\nz{\"a\":\"\u{1}\"} {}", &["Between at 0", "{}"]);
}

#[test]
fn what_is_too_much_is_passed_over_to_its_end() {
    let long = format!("{{\"a\":\"{}\"}}", "x}{\\\"".repeat(100));
    let found = pieces([format!("{long}{{\"b\":1}}").as_bytes()]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("TooLarge"));
    assert_eq!(found[1], "{\"b\":1}");
    check("{[[[[]]]]}{}", &["TooDeep at 4", "{}"]);
    check("{[[[]]]}", &["{[[[]]]}"]);
    let exact = format!("{{\"a\":\"{}\"}}", "x".repeat(BYTES_MAX - 8));
    check(&exact, &[&exact]);
}

#[test]
fn millions_of_braces_are_not_kept() {
    let mut splitter = Splitter::new(10_000_000, 64);
    let braces = vec![b'{'; 1_000_000];
    let mut faults = 0;
    for mut chunk in braces.chunks(4096) {
        while let Some(piece) = splitter.next(&mut chunk) {
            assert!(matches!(piece, Piece::Refused(it) if it.fault == Fault::TooDeep));
            faults += 1;
        }
    }
    assert_eq!((faults, splitter.held_bytes()), (1, 0));
}

#[test]
fn a_whole_message_is_a_slice_of_the_chunk() {
    let stream = b"  {\"a\":1}".as_slice();
    let mut splitter = Splitter::new(BYTES_MAX, NESTING_MAX);
    let mut chunk = stream;
    let Some(Piece::Message(message)) = splitter.next(&mut chunk) else { panic!() };
    assert_eq!(message.as_ptr(), stream[2..].as_ptr());
}

fn document(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[..4].copy_from_slice(&(length as i32).to_le_bytes());
    bytes
}

fn bson_pieces<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Result<Vec<u8>, String>> {
    let mut splitter = BsonSplitter::new(BYTES_MAX);
    let mut out = Vec::new();
    for mut chunk in chunks {
        while let Some(piece) = splitter.next(&mut chunk) {
            out.push(match piece {
                Piece::Message(message) => Ok(message.to_vec()),
                Piece::Refused(garbage) => Err(format!("{:?} at {}", garbage.fault, garbage.at)),
            });
        }
        assert!(splitter.held_bytes() <= BYTES_MAX);
    }
    out
}

#[test]
fn documents_follow_each_other() {
    let check = |stream: Vec<u8>, expect: &[Result<Vec<u8>, String>]| {
        for size in [stream.len(), 1, 3, 7] {
            assert_eq!(bson_pieces(stream.chunks(size)), expect, "in chunks of {size}");
        }
    };
    let documents = [document(5), document(60), document(9)];
    check(documents.concat(), &documents.map(Ok));
    let too_large = Err("TooLarge at 5".to_owned());
    let stream = [document(5), document(61), document(6)].concat();
    check(stream, &[Ok(document(5)), too_large, Ok(document(6))]);
    let stream = [document(5), vec![4, 0, 0, 0, 9, 9, 9, 9]].concat();
    check(stream, &[Ok(document(5)), Err("Lost at 5".to_owned())]);
    check(vec![0xFF; 20], &[Err("Lost at 0".to_owned())]);
}

#[test]
fn a_stream_is_split_as_its_encoding_has_it() {
    for (encoding, stream, held) in [
        (Encoding::Json, [b"{}".to_vec(), b"{".to_vec()].concat(), 1),
        (Encoding::Bson, [document(9), vec![9, 0, 0]].concat(), 3),
    ] {
        let mut splitter = StreamSplitter::new(encoding, BYTES_MAX, NESTING_MAX);
        let mut chunk = stream.as_slice();
        let first = stream.len() - held;
        assert_eq!(splitter.next(&mut chunk), Some(Piece::Message(&stream[..first])));
        assert_eq!(splitter.next(&mut chunk), None);
        assert_eq!(splitter.held_bytes(), held);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_however_it_is_cut(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("{"), Just("}"), Just("["), Just("]"), Just("\""), Just("\\"), Just(" "),
                Just("\n"), Just("x"), Just("\\u00e9"), Just("é"), Just("{}"), Just("{\"a\":\""),
                Just("\"}"), Just("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
            ],
            0..60,
        ),
        cuts in proptest::collection::vec(1..20usize, 1..40),
    ) {
        let stream = parts.concat();
        let mut rest = stream.as_bytes();
        let mut chunks = Vec::new();
        for size in cuts.iter().cycle() {
            if rest.is_empty() { break }
            let (chunk, behind) = rest.split_at((*size).min(rest.len()));
            chunks.push(chunk);
            rest = behind;
        }
        let whole = pieces([stream.as_bytes()]);
        prop_assert_eq!(&pieces(chunks), &whole);
        prop_assert_eq!(&pieces(stream.as_bytes().chunks(1)), &whole);
    }

    #[test]
    fn documents_however_they_are_cut(
        lengths in proptest::collection::vec(5..80usize, 0..20),
        size in 1..50usize,
    ) {
        let stream: Vec<u8> = lengths.iter().flat_map(|it| document(*it)).collect();
        prop_assert_eq!(bson_pieces(stream.chunks(size)), bson_pieces([stream.as_slice()]));
    }
}

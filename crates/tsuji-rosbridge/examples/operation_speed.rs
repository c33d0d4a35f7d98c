//! What it costs to read a `publish` and to split a stream, beside serde_json and memchr, in turn in one run.
//!
//! `cargo run --release -p tsuji-rosbridge --example operation_speed`
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it is what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tsuji_rosbridge::client::{Client, ClientLimits, StreamKey, Subscribed};
use tsuji_rosbridge::{Operation, Piece, Splitter, parse_json, write_publish};

/// So few that most rounds are not interrupted.
const MESSAGES: usize = 2000;
const ROUNDS: usize = 301;

fn main() {
    let one = r#"{"op":"publish","id":"publish:/c:1","topic":"/c","msg":{"data":"hello 01234"}}"#;
    let roslib = r#"{"op":"publish","id":"publish:/chatter:123456","topic":"/chatter","msg":{"data":"hello world 123456"},"latch":false}"#;
    println!("median of {ROUNDS} rounds of {MESSAGES} messages, in turn");
    for message in [one, roslib] {
        println!("{} bytes: {message}", message.len());
        let text = message.as_bytes();
        let stream = message.repeat(MESSAGES);
        let stream = stream.as_bytes();
        let mut out = Vec::new();
        let (mut client, key) = subscribed();
        let mut rows: [(&str, &mut dyn FnMut()); 9] = [
            ("parse_json", &mut || {
                for _ in 0..MESSAGES {
                    black_box(parse_json(black_box(text)).is_ok());
                }
            }),
            ("serde_json, borrowed, RawValue", &mut || {
                for _ in 0..MESSAGES {
                    black_box(serde_json::from_slice::<Borrowed<'_>>(black_box(text)).is_ok());
                }
            }),
            ("serde_json::Value", &mut || {
                for _ in 0..MESSAGES {
                    black_box(serde_json::from_slice::<serde_json::Value>(black_box(text)).is_ok());
                }
            }),
            ("Splitter, chunks of 64 KiB", &mut || assert_eq!(split(stream, 65536), MESSAGES)),
            ("Splitter, chunks of 1 KiB", &mut || assert_eq!(split(stream, 1024), MESSAGES)),
            ("memchr over the same structure", &mut || assert_eq!(search(stream), MESSAGES)),
            ("Splitter and parse_json", &mut || assert_eq!(split_and_parse(stream), MESSAGES)),
            ("offer and take of a stream", &mut || {
                for count in 0..MESSAGES {
                    let now = Duration::from_nanos(count as u64);
                    client.subscriptions.offer(now, key, black_box(count), 100);
                    black_box(client.subscriptions.take(now));
                }
            }),
            ("write_publish of 20 bytes", &mut || {
                for _ in 0..MESSAGES {
                    out.clear();
                    write_publish(
                        &mut out,
                        tsuji_rosbridge::Encoding::Json,
                        "/chatter",
                        b"{\"data\":\"hello 123\"}",
                    );
                    black_box(&out);
                }
            }),
        ];
        let mut times = vec![Vec::new(); rows.len()];
        for _ in 0..ROUNDS {
            for ((_, run), times) in rows.iter_mut().zip(&mut times) {
                let start = Instant::now();
                run();
                times.push(start.elapsed());
            }
        }
        for ((name, _), times) in rows.iter().zip(&mut times) {
            times.sort();
            let ns = times[ROUNDS / 2].as_secs_f64() * 1e9 / MESSAGES as f64;
            println!("  {name:32} {ns:7.1} ns a message");
        }
    }
}

/// A client that gets one topic.
fn subscribed() -> (Client<usize, ()>, StreamKey) {
    let mut client = Client::new(ClientLimits::default());
    let subscribe = parse_json(br#"{"op":"subscribe","topic":"/t","queue_length":10}"#);
    let Ok(Operation::Subscribe(it)) = subscribe.map(|it| it.operation) else {
        unreachable!("it is a subscribe");
    };
    match client.subscriptions.subscribe(Duration::ZERO, &it) {
        Ok(Subscribed::Opened { key, .. }) => (client, key),
        _ => unreachable!("it is the first"),
    }
}

/// The members of a `publish`, as serde reads them without copying the sample.
struct Borrowed<'a> {
    _raw: &'a RawValue,
}

impl<'de> serde::Deserialize<'de> for Borrowed<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct Members<'a> {
            #[serde(rename = "op")]
            _op: &'a str,
            #[serde(rename = "id")]
            _id: &'a str,
            #[serde(rename = "topic")]
            _topic: &'a str,
            #[serde(borrow)]
            msg: &'a RawValue,
            #[serde(rename = "latch", default)]
            _latch: bool,
        }
        Members::deserialize(deserializer).map(|it| Borrowed { _raw: it.msg })
    }
}

fn split(stream: &[u8], chunk_bytes: usize) -> usize {
    let mut splitter = Splitter::new(1_000_000, 64);
    let mut count = 0;
    for mut chunk in stream.chunks(chunk_bytes) {
        while let Some(piece) = splitter.next(&mut chunk) {
            count += usize::from(matches!(piece, Piece::Message(_)));
        }
    }
    count
}

fn split_and_parse(stream: &[u8]) -> usize {
    let mut splitter = Splitter::new(1_000_000, 64);
    let mut count = 0;
    for mut chunk in stream.chunks(65536) {
        while let Some(piece) = splitter.next(&mut chunk) {
            let Piece::Message(message) = piece else { continue };
            let parsed = parse_json(message).map(|it| it.operation);
            count += usize::from(matches!(parsed, Ok(Operation::Publish(_))));
        }
    }
    count
}

/// Counts objects by searching for quotes and brackets.
fn search(stream: &[u8]) -> usize {
    let (mut depth, mut at, mut count) = (0, 0, 0);
    while let Some(next) = memchr::memchr3(b'"', b'{', b'}', &stream[at..]) {
        at += next + 1;
        match stream[at - 1] {
            b'"' => {
                while let Some(end) = memchr::memchr2(b'"', b'\\', &stream[at..]) {
                    at += end + 1;
                    if stream[at - 1] == b'"' {
                        break;
                    }
                    at += 1;
                }
            }
            b'{' => depth += 1,
            _ => {
                depth -= 1;
                count += usize::from(depth == 0);
            }
        }
    }
    count
}

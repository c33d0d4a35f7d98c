//! The cases of the Autobahn testsuite, framed by hand: what a client sends is what stands here, byte by byte.
//!
//! The bridge is no server of echoes. What came whole shows by its coming back on a topic to which the client has subscribed itself.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use serde_json::{Value, json};
use tsuji_bridge::{Protocol, Settings};
use world::{WATCHDOG, World};

mod world;

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
/// The first of several frames, one in the middle, and the last.
const TEXT_BEGINS: u8 = 0x01;
const GOES_ON: u8 = 0x00;
const ENDS: u8 = 0x80;
const DEFLATED: u8 = 0x40;
const DEFLATED_TEXT: u8 = TEXT | DEFLATED;

/// One connection, as bytes.
struct Raw {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// A frame of the server.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    first: u8,
    payload: Vec<u8>,
}

impl Raw {
    /// Connects with more lines in the request; what the server answered.
    fn connect(world: &World, lines: &str) -> (Self, String) {
        let stream = TcpStream::connect(world.address(Protocol::WebSocket)).unwrap();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut raw = Self { stream, unread: Vec::new() };
        let request = format!(
            "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{lines}\r\n"
        );
        raw.stream.write_all(request.as_bytes()).unwrap();
        let end = loop {
            if let Some(at) = raw.unread.windows(4).position(|it| it == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(raw.read_more(), "closed in the handshake");
        };
        let head: Vec<u8> = raw.unread.drain(..end).collect();
        (raw, String::from_utf8(head).unwrap().to_lowercase())
    }

    /// One that has subscribed to what it publishes.
    fn echoing(world: &World, lines: &str) -> (Self, String) {
        let (mut raw, head) = Self::connect(world, lines);
        for message in [
            json!({ "op": "advertise", "topic": "/echo", "type": "std_msgs/String" }),
            json!({ "op": "subscribe", "topic": "/echo", "type": "std_msgs/String" }),
            json!({ "op": "call_service", "service": "/rosapi/get_time" }),
        ] {
            raw.send(&frame(TEXT, message.to_string().as_bytes()));
        }
        // It has subscribed when what was asked for after that is answered.
        assert_eq!(json_of(&raw.hear().unwrap())["op"], "service_response");
        (raw, head)
    }

    /// One that keeps the topic matched while others come and go, and of what they say hears nothing.
    fn keeping(world: &World) -> Self {
        let (mut raw, _) = Self::connect(world, "");
        for message in [
            json!({ "op": "advertise", "topic": "/echo", "type": "std_msgs/String" }),
            json!({ "op": "subscribe", "topic": "/echo", "type": "std_msgs/String", "throttle_rate": 3_600_000 }),
        ] {
            raw.send(&frame(TEXT, message.to_string().as_bytes()));
        }
        raw.send(&frame(TEXT, &publish("first")));
        check_echo("first", &raw.hear().unwrap(), "first");
        raw
    }

    /// Whether more has come before the end.
    fn read_more(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        let count = self.stream.read(&mut buffer).unwrap();
        self.unread.extend_from_slice(&buffer[..count]);
        count != 0
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next frame of the server; nothing at the end.
    fn hear(&mut self) -> Option<Frame> {
        loop {
            if let Some((frame, len)) = parsed(&self.unread) {
                self.unread.drain(..len);
                return Some(frame);
            }
            if !self.read_more() {
                assert!(self.unread.is_empty(), "the server went in the middle of a frame");
                return None;
            }
        }
    }
}

/// The first frame in `bytes`, if it is whole, and how long it is. A server's frames are not masked, and say how long they are in
/// the fewest bytes.
fn parsed(bytes: &[u8]) -> Option<(Frame, usize)> {
    let (first, short) = (*bytes.first()?, *bytes.get(1)?);
    let (head, len) = match short {
        126 => {
            let len = u16::from_be_bytes(bytes.get(2..4)?.try_into().unwrap());
            assert!(126 <= len);
            (4, usize::from(len))
        }
        127 => {
            let len = u64::from_be_bytes(bytes.get(2..10)?.try_into().unwrap());
            assert!(0xffff < len);
            (10, usize::try_from(len).unwrap())
        }
        short => {
            assert!(short < 126, "a masked frame");
            (2, usize::from(short))
        }
    };
    let payload = bytes.get(head..head + len)?.to_vec();
    Some((Frame { first, payload }, head + len))
}

fn json_of(frame: &Frame) -> Value {
    match frame.first {
        TEXT => serde_json::from_slice(&frame.payload).unwrap(),
        DEFLATED_TEXT => serde_json::from_slice(&inflated(&frame.payload)).unwrap(),
        _ => panic!("{frame:?}"),
    }
}

/// A frame as a client sends it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let len = payload.len();
    let mut bytes = match len {
        0..126 => vec![first, 0x80 | len as u8],
        126..65_536 => [&[first, 0x80 | 126][..], &(len as u16).to_be_bytes()].concat(),
        _ => [&[first, 0x80 | 127][..], &(len as u64).to_be_bytes()].concat(),
    };
    let mask = [0x9a, 0x01, 0xff, 0x37];
    bytes.extend_from_slice(&mask);
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

fn close(code: u16, reason: &[u8]) -> Vec<u8> {
    frame(CLOSE, &[&code.to_be_bytes(), reason].concat())
}

const BEGIN: &str = r#"{"op":"publish","topic":"/echo","msg":{"data":""#;
const END: &str = r#""}}"#;

/// What comes back as `data`.
fn publish(data: &str) -> Vec<u8> {
    [BEGIN, data, END].concat().into_bytes()
}

/// Letters, so many that a message of them has `len` bytes.
fn letters(len: usize) -> String {
    (0..len - BEGIN.len() - END.len()).map(|at| char::from(b'a' + (at % 23) as u8)).collect()
}

/// The same message in CBOR.
fn publish_cbor(data: &str) -> Vec<u8> {
    let begin = b"\xa3\x62op\x67publish\x65topic\x65/echo\x63msg\xa1\x64data\x7a";
    [&begin[..], &(data.len() as u32).to_be_bytes(), data.as_bytes()].concat()
}

/// One after the other.
enum Step {
    /// So many bytes are written.
    Send(Vec<u8>),
    /// The same, in writes of so many bytes each.
    Chopped(Vec<u8>, usize),
    /// A message with this text comes back.
    Echo(String),
    /// It is said that a message was none.
    Refused,
    Pong(Vec<u8>),
    /// The server closes with this code, or without one, and sends nothing more.
    Closed(Option<u16>),
}

use Step::{Chopped, Closed, Echo, Pong, Refused, Send};

/// What has to come of each case, on a connection of its own. One that the server does not close is closed by the client, and then
/// nothing else may have come.
fn check(world: &World, cases: Vec<(String, Vec<Step>)>) {
    let _keeper = Raw::keeping(world);
    for (name, steps) in cases {
        let (mut raw, _) = Raw::echoing(world, "");
        let mut is_closed = false;
        for (at, step) in steps.into_iter().enumerate() {
            let name = format!("{name}, step {at}");
            match step {
                Send(bytes) => raw.send(&bytes),
                Chopped(bytes, at_once) => bytes.chunks(at_once).for_each(|it| raw.send(it)),
                Echo(data) => check_echo(&name, &raw.hear().unwrap(), &data),
                Refused => {
                    let status = json_of(&raw.hear().unwrap());
                    assert_eq!(
                        (&status["op"], &status["level"]),
                        (&json!("status"), &json!("error")),
                        "{name}"
                    );
                }
                Pong(payload) => {
                    assert_eq!(raw.hear(), Some(Frame { first: PONG, payload }), "{name}");
                }
                Closed(code) => {
                    check_close(&name, &mut raw, code);
                    is_closed = true;
                }
            }
        }
        if !is_closed {
            raw.send(&close(1000, b"done"));
            check_close(&name, &mut raw, Some(1000));
        }
    }
}

fn check_echo(name: &str, frame: &Frame, data: &str) {
    let message = json_of(frame);
    assert_eq!(message["op"], "publish", "{name}: {message}");
    // Without its megabytes.
    assert!(message["msg"]["data"] == data, "{name}: {:.200}", message.to_string());
}

fn check_close(name: &str, raw: &mut Raw, code: Option<u16>) {
    let frame = raw.hear().unwrap();
    let told = frame.payload.get(..2).map(|it| u16::from_be_bytes([it[0], it[1]]));
    assert_eq!((frame.first, told), (CLOSE, code), "{name}: {frame:?}");
    assert!(
        frame.payload.len() <= 125
            && str::from_utf8(frame.payload.get(2..).unwrap_or_default()).is_ok()
    );
    assert_eq!(raw.hear(), None, "{name}");
}

fn case(name: impl Into<String>, steps: impl Into<Vec<Step>>) -> (String, Vec<Step>) {
    (name.into(), steps.into())
}

/// A message that comes back.
fn said(data: &str) -> [Step; 2] {
    [Send(frame(TEXT, &publish(data))), Echo(data.to_owned())]
}

/// The group 1: lengths at which the head of a frame changes.
#[test]
fn messages_of_any_length_come_whole() {
    let world = World::new();
    let mut cases = vec![
        case("text of 0", [Send(frame(TEXT, b"")), Refused]),
        case("binary of 0", [Send(frame(BINARY, b"")), Refused]),
    ];
    for len in [125, 126, 127, 128, 65_535, 65_536, 65_537] {
        let data = letters(len);
        let (text, binary) = (frame(TEXT, &publish(&data)), frame(BINARY, &publish_cbor(&data)));
        let chop = if len < 200 { 1 } else { 997 };
        let both = [("text", text), ("binary", binary)];
        for (kind, bytes) in both {
            let chopped = [Chopped(bytes.clone(), chop), Echo(data.clone())];
            cases.push(case(format!("{kind} of {len}"), [Send(bytes), Echo(data.clone())]));
            cases.push(case(format!("{kind} of {len}, {chop} at once"), chopped));
        }
    }
    check(&world, cases);
}

/// The group 2.
#[test]
fn pings_are_answered_and_pongs_are_not() {
    let world = World::new();
    let ping = |payload: &[u8]| frame(PING, payload);
    let bytes = [0x00, 0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0x00, 0xff];
    let ten: Vec<Vec<u8>> = (0..10).map(|at| format!("payload-{at}").into_bytes()).collect();
    let ten_pings = ten.iter().map(|it| ping(it)).collect::<Vec<_>>().concat();
    let pongs = || ten.iter().map(|it| Pong(it.clone()));
    let cases = vec![
        case("empty", [Send(ping(b"")), Pong(vec![])]),
        case("text", [Send(ping(b"Hello, world!")), Pong(b"Hello, world!".to_vec())]),
        case("bytes", [Send(ping(&bytes)), Pong(bytes.to_vec())]),
        case("125 bytes", [Send(ping(&[0xfe; 125])), Pong(vec![0xfe; 125])]),
        case("126 bytes", [Send(ping(&[0xfe; 126])), Closed(Some(1002))]),
        case("125 bytes in octets", [Chopped(ping(&[0xfe; 125]), 1), Pong(vec![0xfe; 125])]),
        case("unsolicited pong", [Send(frame(PONG, b""))]),
        case("unsolicited pong with a payload", [Send(frame(PONG, b"unsolicited"))]),
        case(
            "unsolicited pong and a ping",
            [Send(frame(PONG, b"unsolicited")), Send(ping(b"ping")), Pong(b"ping".to_vec())],
        ),
        case(
            "ten in one write",
            [Send(ten_pings.clone())].into_iter().chain(pongs()).collect::<Vec<_>>(),
        ),
        case(
            "ten in octets",
            [Chopped(ten_pings, 1)].into_iter().chain(pongs()).collect::<Vec<_>>(),
        ),
        case("a pong of 126 bytes", [Send(frame(PONG, &[0; 126])), Closed(Some(1002))]),
    ];
    check(&world, cases);
}

/// The groups 3 and 4.
#[test]
fn what_is_reserved_or_not_masked_ends_it() {
    let world = World::new();
    let mut cases = Vec::new();
    for reserved in 1..=7 {
        for first in [TEXT, BINARY, TEXT_BEGINS, PING, CLOSE] {
            let bytes = frame(first | reserved << 4, b"Hello");
            let mut steps = Vec::from(said("before"));
            steps.extend([Chopped(bytes, usize::from(reserved)), Closed(Some(1002))]);
            cases.push(case(format!("reserved bits {reserved} of {first:#x}"), steps));
        }
        let pieces = [frame(TEXT_BEGINS, b"Hello"), frame(ENDS | reserved << 4, b"!")].concat();
        cases.push(case(
            format!("reserved bits {reserved} later"),
            [Send(pieces), Closed(Some(1002))],
        ));
    }
    for opcode in (3..=7).chain(11..=15) {
        for payload in [&b""[..], b"reserved opcode payload"] {
            let name = format!("opcode {opcode} with {}", payload.len());
            let mut steps = Vec::from(said("before"));
            steps.extend([
                Send(frame(0x80 | opcode, payload)),
                Send(frame(PING, b"")),
                Closed(Some(1002)),
            ]);
            cases.push(case(name, steps));
        }
    }
    for first in [TEXT, BINARY, PING, CLOSE] {
        let name = format!("{first:#x} without a mask");
        cases.push(case(name, [Send(vec![first, 2, b'{', b'}']), Closed(Some(1002))]));
    }
    let no_length = [&[BINARY, 0xff, 0x80][..], &[0; 7], &[0; 4]].concat();
    cases.push(case("a length of 64 bits", [Send(no_length), Closed(Some(1002))]));
    check(&world, cases);
}

/// The group 5.
#[test]
fn messages_in_pieces_are_one_and_only_in_order() {
    let world = World::new();
    let whole = publish("in pieces");
    let (begin, rest) = whole.split_at(20);
    let (middle, end) = rest.split_at(20);
    let two = |begins: u8| [frame(begins, begin), frame(ENDS, rest)];
    let ping = || frame(PING, b"between");
    let pong = || Pong(b"between".to_vec());
    let echo = || Echo("in pieces".to_owned());
    let [first, last] = two(TEXT_BEGINS);
    let cbor = publish_cbor("in pieces");
    let (cbor_begin, cbor_end) = cbor.split_at(30);
    let five: Vec<u8> = [
        frame(TEXT_BEGINS, begin),
        frame(GOES_ON, &middle[..10]),
        ping(),
        frame(GOES_ON, &middle[10..]),
        frame(GOES_ON, b""),
        ping(),
        frame(ENDS, end),
    ]
    .concat();
    let cases = vec![
        case(
            "a ping in pieces",
            [Send([frame(0x09, b"a"), frame(ENDS, b"b")].concat()), Closed(Some(1002))],
        ),
        case(
            "a pong in pieces",
            [Send([frame(0x0a, b"a"), frame(ENDS, b"b")].concat()), Closed(Some(1002))],
        ),
        case("a close in pieces", [Send(frame(0x08, b"\x03\xe8")), Closed(Some(1002))]),
        case("text in two", [Send([first.clone(), last.clone()].concat()), echo()]),
        case("text in two, apart", [Send(first.clone()), Send(last.clone()), echo()]),
        case(
            "text in two, in octets",
            [Chopped([first.clone(), last.clone()].concat(), 1), echo()],
        ),
        case(
            "binary in two",
            [Send([frame(0x02, cbor_begin), frame(ENDS, cbor_end)].concat()), echo()],
        ),
        case(
            "a ping between",
            [Send(first.clone()), Send(ping()), pong(), Send(last.clone()), echo()],
        ),
        case(
            "a ping between, in one write",
            [Send([first.clone(), ping(), last.clone()].concat()), pong(), echo()],
        ),
        case(
            "a ping between, in octets",
            [Chopped([first.clone(), ping(), last.clone()].concat(), 1), pong(), echo()],
        ),
        case("five with pings", [Send(five.clone()), pong(), pong(), echo()]),
        case("five with pings, in octets", [Chopped(five, 1), pong(), pong(), echo()]),
        case(
            "empty pieces",
            [
                Send([frame(TEXT_BEGINS, b""), frame(GOES_ON, b""), frame(ENDS, &whole)].concat()),
                echo(),
            ],
        ),
        case(
            "the last is empty",
            [Send([frame(TEXT_BEGINS, &whole), frame(ENDS, b"")].concat()), echo()],
        ),
        case(
            "all are empty",
            [Send([frame(TEXT_BEGINS, b""), frame(ENDS, b"")].concat()), Refused],
        ),
        case("an end of nothing", [Send(frame(ENDS, b"continuation")), Closed(Some(1002))]),
        case(
            "an end of nothing, in octets",
            [Chopped(frame(ENDS, b"continuation"), 1), Closed(Some(1002))],
        ),
        case("a middle of nothing", [Send(frame(GOES_ON, b"continuation")), Closed(Some(1002))]),
        case(
            "a middle of nothing and a text",
            [Send([frame(GOES_ON, b"x"), frame(TEXT, &whole)].concat()), Closed(Some(1002))],
        ),
        case(
            "an end too much",
            [
                Send([first.clone(), last.clone()].concat()),
                echo(),
                Send(frame(ENDS, b"x")),
                Closed(Some(1002)),
            ],
        ),
        case("both begin", [Send([first.clone(), frame(TEXT, rest)].concat()), Closed(Some(1002))]),
        case(
            "text within text",
            [Send([first.clone(), frame(TEXT_BEGINS, middle)].concat()), Closed(Some(1002))],
        ),
        case(
            "binary within text",
            [Send([first, frame(BINARY, b"x")].concat()), Closed(Some(1002))],
        ),
    ];
    check(&world, cases);
}

/// The group 6.
#[test]
fn text_is_utf_8_or_it_ends() {
    let world = World::new();
    let mut cases = Vec::new();
    for data in [
        "Hello-µ@ßöäüàá-UTF-8!!",
        "κόσμε",
        // The first and the last of each length, and what stands around the surrogates and at the ends.
        "\u{20}\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}",
        "\u{d7ff}\u{e000}\u{fffd}\u{fffe}\u{1fffe}\u{10fffe}\u{10ffff}",
    ] {
        let message = publish(data);
        let echo = || Echo(data.to_owned());
        cases.push(case(format!("{data:?}"), [Send(frame(TEXT, &message)), echo()]));
        cases.push(case(
            format!("{data:?}, in octets"),
            [Chopped(frame(TEXT, &message), 1), echo()],
        ));
        // Each byte in a frame of its own, wherever the letters end.
        let mut pieces = frame(TEXT_BEGINS, b"");
        message.iter().for_each(|byte| pieces.extend(frame(GOES_ON, &[*byte])));
        pieces.extend(frame(ENDS, b""));
        cases.push(case(format!("{data:?}, a byte a frame"), [Send(pieces), echo()]));
    }
    let wrong: [&[u8]; 43] = [
        // Surrogates within other letters.
        b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80\x65\x64\x69\x74\x65\x64",
        // Too far, and lengths that there are no more.
        b"\xf4\x90\x80\x80",
        b"\xf7\xbf\xbf\xbf",
        b"\xf8\x88\x80\x80\x80",
        b"\xfb\xbf\xbf\xbf\xbf",
        b"\xfc\x84\x80\x80\x80\x80",
        b"\xfd\xbf\xbf\xbf\xbf\xbf",
        // Continuations of nothing.
        b"\x80",
        b"\xbf",
        b"\x80\xbf",
        b"\x80\xbf\x80",
        b"\x80\xbf\x80\xbf\x80\xbf",
        // Beginnings alone.
        b"\xc2 \xc3 \xdf ",
        b"\xe0 \xe1 \xef ",
        b"\xf0 \xf1 \xf4 ",
        b"\xf8 \xf9 \xfb ",
        b"\xfc \xfd ",
        // The last byte lacks.
        b"\xc2",
        b"\xdf",
        b"\xe0\xa0",
        b"\xef\xbf",
        b"\xf0\x90\x80",
        b"\xf4\x8f\xbf",
        b"\xc2\xe0\xa0\xf0\x90\x80",
        // Bytes that there are not.
        b"\xfe",
        b"\xff",
        b"\xfe\xfe\xff\xff",
        // Longer than it has to be.
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xf0\x80\x80\xaf",
        b"\xc1\xbf",
        b"\xe0\x9f\xbf",
        b"\xf0\x8f\xbf\xbf",
        b"\xc0\x80",
        b"\xe0\x80\x80",
        b"\xf0\x80\x80\x80",
        // Surrogates, alone and in pairs.
        b"\xed\xa0\x80",
        b"\xed\xad\xbf",
        b"\xed\xae\x80",
        b"\xed\xb0\x80",
        b"\xed\xbf\xbf",
        b"\xed\xa0\x80\xed\xb0\x80",
        b"\xed\xaf\xbf\xed\xbf\xbf",
    ];
    for bytes in wrong {
        let told = bytes.escape_ascii();
        let end = || Closed(Some(1007));
        cases.push(case(format!("{told}"), [Send(frame(TEXT, bytes)), end()]));
        cases.push(case(format!("{told}, in octets"), [Chopped(frame(TEXT, bytes), 1), end()]));
        let pieces = [frame(TEXT_BEGINS, &bytes[..1]), frame(ENDS, &bytes[1..])].concat();
        cases.push(case(format!("{told}, in two"), [Send(pieces), end()]));
    }
    // It is said as soon as it is seen, without the rest of the message or of the frame.
    let begin = frame(TEXT_BEGINS, "κόσμε".as_bytes());
    let bad = frame(GOES_ON, b"\xf4\x90");
    cases.push(case("early, between frames", [Send(begin.clone()), Send(bad), Closed(Some(1007))]));
    let long = frame(ENDS, &[b"\xed\xa0"[..].to_vec(), vec![b'x'; 1000]].concat());
    let some = long[..8 + 3].to_vec();
    cases.push(case("early, within a frame", [Send(begin), Send(some), Closed(Some(1007))]));
    // Bytes that are no text may be anything.
    cases.push(case("binary", [Send(frame(BINARY, b"\xff\xfe")), Refused]));
    check(&world, cases);
}

/// The group 7.
#[test]
fn a_close_is_answered_by_its_rules() {
    let world = World::new();
    let mut cases = vec![
        case(
            "two closes",
            [Send([close(1000, b""), close(1000, b"")].concat()), Closed(Some(1000))],
        ),
        case(
            "a ping after it",
            [Send([close(1000, b""), frame(PING, b"x")].concat()), Closed(Some(1000))],
        ),
        case(
            "text after it",
            [
                Send([close(1000, b""), frame(TEXT, &publish("too late"))].concat()),
                Closed(Some(1000)),
            ],
        ),
        case(
            "within a message",
            [
                Send([frame(TEXT_BEGINS, b"{"), close(1000, b""), frame(ENDS, b"}")].concat()),
                Closed(Some(1000)),
            ],
        ),
        case(
            "256 KB before it",
            [
                Send(frame(TEXT, &publish(&letters(256 << 10)))),
                Echo(letters(256 << 10)),
                Send(close(1000, b"")),
                Closed(Some(1000)),
            ],
        ),
        case("no code", [Send(frame(CLOSE, b"")), Closed(None)]),
        case("half a code", [Send(frame(CLOSE, b"\x03")), Closed(Some(1002))]),
        case("a reason", [Send(close(1000, "ade, schöne Welt".as_bytes())), Closed(Some(1000))]),
        case("a reason of 123", [Send(close(1000, &[b'*'; 123])), Closed(Some(1000))]),
        case("a reason of 124", [Send(close(1000, &[b'*'; 124])), Closed(Some(1002))]),
        case(
            "a reason that is no text",
            [Send(close(1000, b"\xce\xba\xed\xa0\x80")), Closed(Some(1007))],
        ),
        case("a reason in octets", [Chopped(close(1000, b"bye"), 1), Closed(Some(1000))]),
    ];
    for code in [
        1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000,
        4999,
    ] {
        cases.push(case(format!("{code}"), [Send(close(code, b"")), Closed(Some(code))]));
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] {
        cases.push(case(format!("{code}"), [Send(close(code, b"why")), Closed(Some(1002))]));
    }
    check(&world, cases);
}

/// The groups 9 and 10, as far as they are not about speed.
#[test]
fn messages_may_be_as_long_as_is_allowed_and_no_longer() {
    const MAX: usize = 4 << 20;
    let mut settings = Settings::default();
    settings.limits.message_bytes_max = MAX;
    let world = World::with(settings);
    let mut cases = Vec::new();
    for len in [64 << 10, 256 << 10, 1 << 20, MAX] {
        let data = letters(len);
        let echo = || Echo(data.clone());
        let bytes = publish(&data);
        cases.push(case(format!("{len} in one"), [Send(frame(TEXT, &bytes)), echo()]));
        for size in [64, 1300, 4096, 64 << 10] {
            if len / size > 10_000 {
                continue;
            }
            let mut pieces = frame(TEXT_BEGINS, b"");
            bytes.chunks(size).for_each(|it| pieces.extend(frame(GOES_ON, it)));
            pieces.extend(frame(ENDS, b""));
            cases.push(case(format!("{len} in pieces of {size}"), [Send(pieces), echo()]));
        }
        let chopped = [Chopped(frame(TEXT, &bytes), 1024), echo()];
        cases.push(case(format!("{len} in writes of 1024"), chopped));
    }
    // What is too long is refused before it comes.
    let told = [&[BINARY, 0xff][..], &(MAX as u64 + 1).to_be_bytes(), &[0; 4]].concat();
    cases.push(case("one too many", [Send(told), Closed(Some(1009))]));
    let begin = frame(TEXT_BEGINS, &vec![b' '; MAX]);
    let more = [ENDS, 0x81, 0, 0, 0, 0].to_vec();
    cases.push(case("one too many, later", [Send(begin), Send(more), Closed(Some(1009))]));
    let many: Vec<Step> = (0..500).flat_map(|at| said(&at.to_string())).collect();
    cases.push(case("many", many));
    check(&world, cases);
}

/// What a client that keeps nothing sends for a message.
fn deflated(message: &[u8], level: u32) -> Vec<u8> {
    let mut raw = Compress::new(Compression::new(level), false);
    let mut out = Vec::with_capacity(message.len() + message.len() / 100 + 100);
    raw.compress_vec(message, &mut out, FlushCompress::Sync).unwrap();
    assert_eq!(raw.total_in() as usize, message.len());
    assert!(out.ends_with(&[0, 0, 0xff, 0xff]));
    out.truncate(out.len() - 4);
    out
}

fn inflated(payload: &[u8]) -> Vec<u8> {
    let mut raw = Decompress::new(false);
    let mut out = Vec::with_capacity(1 << 20);
    let whole = [payload, &[0, 0, 0xff, 0xff]].concat();
    raw.decompress_vec(&whole, &mut out, FlushDecompress::Sync).unwrap();
    assert_eq!(raw.total_in() as usize, whole.len());
    out
}

/// The groups 12 and 13.
#[test]
fn messages_are_deflated_as_was_agreed_on() {
    let world = World::with(Settings { compression: true, ..Settings::default() });
    let _keeper = Raw::keeping(&world);
    const AGREED: &str =
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
    for (offer, window) in [
        ("permessage-deflate", None),
        ("permessage-deflate; client_max_window_bits", None),
        ("permessage-deflate; client_max_window_bits=9", None),
        ("permessage-deflate; server_no_context_takeover; client_no_context_takeover", None),
        ("permessage-deflate; server_max_window_bits=15; client_max_window_bits=15", Some(15)),
        ("permessage-deflate; server_max_window_bits=9", Some(9)),
        ("permessage-deflate; server_max_window_bits=12; server_no_context_takeover", Some(12)),
        ("permessage-deflate; server_max_window_bits=8", Some(8)),
        (
            "permessage-deflate; mystery, permessage-deflate; server_max_window_bits=\"10\"",
            Some(10),
        ),
    ] {
        let (mut raw, head) =
            Raw::echoing(&world, &format!("Sec-WebSocket-Extensions: {offer}\r\n"));
        let expected = match window {
            Some(bits) => {
                format!("sec-websocket-extensions: {AGREED}; server_max_window_bits={bits}\r\n")
            }
            None => format!("sec-websocket-extensions: {AGREED}\r\n"),
        };
        assert!(head.contains(&expected), "{offer}: {head}");
        for len in [64, 256, 257, 1024, 4096, 8192, 32_768, 65_536, 131_072] {
            for (level, pieces) in [(1, 1), (9, 3)] {
                let data = letters(len);
                let payload = deflated(&publish(&data), level);
                // A message is deflated as a whole: of its frames the first says so, and controls may stand between.
                let mut parts = payload.chunks(payload.len().div_ceil(pieces)).peekable();
                let mut first = TEXT_BEGINS | DEFLATED;
                while let Some(part) = parts.next() {
                    let last = if parts.peek().is_none() { 0x80 } else { 0 };
                    raw.send(&frame(first | last, part));
                    first = GOES_ON;
                    if last == 0 {
                        raw.send(&frame(PING, b"between"));
                        let pong = Frame { first: PONG, payload: b"between".to_vec() };
                        assert_eq!(raw.hear(), Some(pong));
                    }
                }
                let name = format!("{offer}: {len}");
                let echo = raw.hear().unwrap();
                // What reaches farther back than the client can is sent as it is, and so is what is short.
                let window = window
                    .map_or(usize::MAX, |bits| if bits == 15 { usize::MAX } else { 1 << bits });
                let is_deflated = (128..=window).contains(&len);
                assert_eq!(echo.first, if is_deflated { DEFLATED_TEXT } else { TEXT }, "{name}");
                check_echo(&name, &echo, &data);
            }
        }
        // One that is not deflated may be among them.
        raw.send(&frame(TEXT, &publish("plain")));
        check_echo(offer, &raw.hear().unwrap(), "plain");
        raw.send(&close(1000, b""));
        check_close(offer, &mut raw, Some(1000));
    }
    for offer in
        ["permessage-deflate; server_max_window_bits=7", "permessage-deflate; x=1", "deflate-frame"]
    {
        let (_, head) = Raw::connect(&world, &format!("Sec-WebSocket-Extensions: {offer}\r\n"));
        assert!(!head.contains("extensions"), "{head}");
    }
}

#[test]
fn what_is_deflated_wrongly_ends_it() {
    let mut settings = Settings { compression: true, ..Settings::default() };
    settings.limits.message_bytes_max = 1 << 20;
    let world = World::with(settings);
    let _keeper = Raw::keeping(&world);
    let first = DEFLATED_TEXT;
    let message = publish(&letters(1000));
    let whole = deflated(&message, 6);
    // The second of two messages that share what was said before.
    let mut taking_over = Compress::new(Compression::new(6), false);
    let mut shared = |message: &[u8]| {
        let mut out = Vec::with_capacity(10_000);
        taking_over.compress_vec(message, &mut out, FlushCompress::Sync).unwrap();
        out.truncate(out.len() - 4);
        out
    };
    let (one, two) = (shared(&message), shared(&message));
    assert!(two.len() < one.len() / 2);
    for (name, bytes, code) in [
        ("garbage", frame(first, b"\x07garbage"), 1007),
        ("cut off", frame(first, &whole[..whole.len() - 3]), 1007),
        ("no text", frame(first, &deflated(&[b'x', 0xff, b'x'].repeat(100), 6)), 1007),
        ("one too many", frame(first, &deflated(&vec![b' '; (1 << 20) + 1], 9)), 1009),
        ("a bomb", frame(first, &deflated(&vec![0; 20 << 20], 9)), 1009),
        ("a ping that is deflated", frame(PING | DEFLATED, b"x"), 1002),
        (
            "a later piece that says so",
            [frame(TEXT_BEGINS, b"{"), frame(ENDS | DEFLATED, b"}")].concat(),
            1002,
        ),
        ("another bit", frame(TEXT | 0x20, b"{}"), 1002),
    ] {
        let (mut raw, _) = Raw::echoing(&world, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
        raw.send(&bytes);
        check_close(name, &mut raw, Some(code));
    }
    let (mut raw, _) = Raw::echoing(&world, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
    raw.send(&frame(first, &one));
    check_echo("the first of two", &raw.hear().unwrap(), &letters(1000));
    raw.send(&frame(first, &two));
    check_close("the second of two", &mut raw, Some(1007));
    // Who has not agreed on it may not use it, and is not offered it by default.
    let (mut raw, _) = Raw::echoing(&world, "");
    raw.send(&frame(first, &whole));
    check_close("not agreed on", &mut raw, Some(1002));
    let plain = World::new();
    let (_, head) = Raw::connect(&plain, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
    assert!(!head.contains("extensions"), "{head}");
}

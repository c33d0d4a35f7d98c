//! What is said between clients and a bridge, as bytes: messages of the protocol, and frames of WebSocket. No sockets.

use std::io::Cursor;

use serde_json::{Value, json};
use tsuji_bridge::Protocol;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

/// As the article's programs name it.
pub(super) const TEXT_TYPE: &str = "std_msgs/String";
pub(super) const PICTURE_TYPE: &str = "sensor_msgs/Image";

/// The text of that number as the article's program for `protocol` says it. Its time is one that follows from the number, so that
/// whoever hears it knows what was said.
pub(super) fn text(protocol: Protocol, number: u64) -> String {
    let (second, part) = (1_600_000_000 + number / 10_000, 1_000_000 + number % 10_000);
    match protocol {
        Protocol::WebSocket => format!("hello, {number} {second}.{part}"),
        Protocol::Tcp | Protocol::Udp => format!("hello, {number}, {second}.{part}"),
    }
}

/// Spaced as Python's `json.dumps` does it. `data` has nothing that JSON would escape.
pub(super) fn publish(topic: &str, data: &str) -> String {
    format!("{{\"op\": \"publish\", \"topic\": \"{topic}\", \"msg\": {{\"data\": \"{data}\"}}}}")
}

pub(super) fn advertise(topic: &str, ty: &str) -> String {
    format!("{{\"op\": \"advertise\", \"topic\": \"{topic}\", \"type\": \"{ty}\"}}")
}

/// Whoever asks for it has at most `queue_length` samples wait.
pub(super) fn subscribe(topic: &str, ty: &str, compression: &str, queue_length: u64) -> String {
    json!({
        "op": "subscribe", "topic": topic, "type": ty,
        "compression": compression, "queue_length": queue_length,
    })
    .to_string()
}

/// All that is published, of which so many may wait.
pub(super) fn subscribe_to_all(topic: &str, count: u64) -> String {
    json!({
        "op": "subscribe", "topic": topic, "type": TEXT_TYPE,
        "queue_length": count, "qos": { "history": "keep_all" },
    })
    .to_string()
}

/// What is answered at once.
pub(super) fn question() -> String {
    json!({ "op": "call_service", "id": "c", "service": "/rosapi/get_time" }).to_string()
}

/// What came of texts that were numbered from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    /// As they were said, each once.
    pub(super) came: u64,
    /// Otherwise than they were said.
    pub(super) altered: u64,
    /// Once more.
    pub(super) repeated: u64,
}

impl Account {
    /// Of `count` texts.
    pub(super) fn of<'a>(
        texts: impl IntoIterator<Item = &'a str>,
        protocol: Protocol,
        count: u64,
    ) -> Self {
        let mut seen = vec![false; usize::try_from(count).unwrap_or_default()];
        let mut account = Self::default();
        for heard in texts {
            let number = number_of(heard).filter(|it| heard == text(protocol, *it));
            match number.and_then(|it| seen.get_mut(usize::try_from(it).ok()?)) {
                None => account.altered += 1,
                Some(true) => account.repeated += 1,
                Some(seen) => {
                    *seen = true;
                    account.came += 1;
                }
            }
        }
        account
    }

    pub(super) fn to_json(self, last_ns: u64) -> Value {
        let Self { came, altered, repeated } = self;
        json!({ "came": came, "altered": altered, "repeated": repeated, "last": last_ns })
    }

    /// What a listener answers of `count` texts: the account itself, or the texts where it is a node of others.
    pub(super) fn heard(value: &Value, protocol: Protocol, count: u64) -> Self {
        match value["texts"].as_array() {
            Some(texts) => Self::of(texts.iter().filter_map(Value::as_str), protocol, count),
            None => Self::read(value),
        }
    }

    pub(super) fn read(value: &Value) -> Self {
        let number = |field: &str| value[field].as_u64().unwrap_or_default();
        Self { came: number("came"), altered: number("altered"), repeated: number("repeated") }
    }
}

/// The number in a text.
fn number_of(text: &str) -> Option<u64> {
    let rest = text.strip_prefix("hello, ")?;
    rest.split([',', ' ']).next()?.parse().ok()
}

/// What stands in a picture's `header.frame_id`: found again in any encoding, since all of them keep the letters of a text.
pub(super) fn mark(number: u64) -> String {
    format!("#{number:09}#")
}

const MARK_LEN: usize = 11;

/// The number of a picture, by the first bytes of its message.
pub(super) fn picture_number(start: &[u8]) -> Option<u64> {
    start.windows(MARK_LEN).find_map(|it| {
        let digits = it.strip_prefix(b"#")?.strip_suffix(b"#")?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        std::str::from_utf8(digits).ok()?.parse().ok()
    })
}

/// Puts a frame as a client sends it behind `out`.
pub(super) fn frame(text: &str, out: &mut Vec<u8>) {
    let mask = [1, 2, 3, 4];
    let opcode = OpCode::Data(Data::Text);
    let head = FrameHeader { opcode, mask: Some(mask), ..FrameHeader::default() };
    // Writing to memory cannot fail.
    let _ = head.format(text.len() as u64, out);
    out.extend(text.bytes().zip(mask.into_iter().cycle()).map(|(byte, mask)| byte ^ mask));
}

/// Frames of a server, as they come in any pieces.
#[derive(Debug, Default)]
pub(super) struct Frames {
    head: Vec<u8>,
    /// What of a frame is still to come.
    left: Option<u64>,
    len: u64,
    is_data: bool,
    start: Vec<u8>,
}

/// So much of each frame is kept until it is whole.
const START_MAX: usize = 4096;

impl Frames {
    /// Calls `whole` for each message that `bytes` completes, with its first bytes and how long it is. An error says that none
    /// will come any more.
    pub(super) fn read(
        &mut self,
        mut bytes: &[u8],
        mut whole: impl FnMut(&[u8], u64),
    ) -> Result<(), String> {
        loop {
            let Some(left) = self.left else {
                let Some((first, rest)) = bytes.split_first() else { return Ok(()) };
                bytes = rest;
                self.head.push(*first);
                self.begin()?;
                continue;
            };
            let now = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
            let room = START_MAX.saturating_sub(self.start.len()).min(now);
            self.start.extend_from_slice(&bytes[..room]);
            bytes = &bytes[now..];
            let left = left - now as u64;
            if 0 < left {
                self.left = Some(left);
                return Ok(());
            }
            self.left = None;
            if self.is_data {
                whole(&self.start, self.len);
            }
        }
    }

    /// Begins a frame, once its head is whole.
    fn begin(&mut self) -> Result<(), String> {
        let head = FrameHeader::parse(&mut Cursor::new(&self.head));
        let Some((head, len)) = head.map_err(|error| error.to_string())? else { return Ok(()) };
        if head.opcode == OpCode::Control(Control::Close) {
            return Err("the bridge closes the connection".to_owned());
        }
        self.is_data = matches!(head.opcode, OpCode::Data(_));
        (self.left, self.len) = (Some(len), len);
        self.head.clear();
        self.start.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_accounted_for() {
        let say = |number| text(Protocol::Tcp, number);
        assert_eq!(say(12_345), "hello, 12345, 1600000001.1002345");
        assert_eq!(text(Protocol::WebSocket, 7), "hello, 7 1600000000.1000007");
        // A space that was lost, one that was never said, one of another program, one said twice.
        let altered = say(2).replace(", 2,", ",2,");
        let heard = [say(0), say(1), say(1), altered, say(9), text(Protocol::WebSocket, 3)];
        let account = Account::of(heard.iter().map(String::as_str), Protocol::Tcp, 4);
        assert_eq!(account, Account { came: 2, altered: 3, repeated: 1 });
        assert_eq!(Account::read(&account.to_json(5)), account);
        assert_eq!(Account::heard(&account.to_json(5), Protocol::Tcp, 4), account);
        let texts = json!({ "texts": heard, "last": 5 });
        assert_eq!(Account::heard(&texts, Protocol::Tcp, 4), account);
    }

    #[test]
    fn messages_are_the_articles() {
        let expect = r#"{"op": "publish", "topic": "/chatter", "msg": {"data": "hello, 0"}}"#;
        assert_eq!(publish("/chatter", "hello, 0"), expect);
        let value: Value = serde_json::from_str(&advertise("/chatter", TEXT_TYPE)).unwrap();
        assert_eq!((&value["op"], &value["type"]), (&json!("advertise"), &json!(TEXT_TYPE)));
    }

    #[test]
    fn frames_are_whole_however_they_are_cut() {
        let mut bytes = Vec::new();
        let lens = [0_usize, 5, 125, 126, 5000, 70_000];
        for len in lens {
            let opcode = OpCode::Data(Data::Binary);
            let head = FrameHeader { opcode, ..FrameHeader::default() };
            head.format(len as u64, &mut bytes).unwrap();
            bytes.extend((0..len).map(|at| at as u8));
            let ping = OpCode::Control(Control::Ping);
            let head = FrameHeader { opcode: ping, ..FrameHeader::default() };
            head.format(1, &mut bytes).unwrap();
            bytes.push(0);
        }
        for cut in [1, 7, 4096, bytes.len()] {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for piece in bytes.chunks(cut) {
                let whole = |start: &[u8], len| {
                    assert!(start.iter().enumerate().all(|(at, it)| *it == at as u8));
                    found.push((start.len(), len));
                };
                frames.read(piece, whole).unwrap();
            }
            let expect: Vec<_> = lens.iter().map(|it| (*it.min(&START_MAX), *it as u64)).collect();
            assert_eq!(found, expect, "in pieces of {cut}");
        }
        let mut close = Vec::new();
        FrameHeader::default().format(0, &mut close).unwrap();
        assert!(Frames::default().read(&close, |_, _| ()).unwrap_err().contains("closes"));
    }

    #[test]
    fn what_a_client_sends_is_a_frame() {
        let mut out = Vec::new();
        frame("hello", &mut out);
        assert_eq!((out[0], out[1] & 0x7f, out[1] & 0x80), (0x81, 5, 0x80));
        let mask = out[2..6].iter().cycle();
        let text: Vec<u8> = out[6..].iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
        assert_eq!(text, b"hello");
    }

    #[test]
    fn a_picture_is_known_by_its_mark() {
        let message =
            format!("{{\"msg\": {{\"color\": \"#12#\", \"frame_id\": \"{}\"", mark(70_000));
        assert_eq!(picture_number(message.as_bytes()), Some(70_000));
        assert_eq!(picture_number(b"#00000000#"), None);
    }
}

//! Messages of a WebSocket (RFC 6455) from the bytes that come: frames are read here, pings and closes answered, and whatever
//! breaks the protocol ends it as soon as it is seen.
//!
//! Nothing is read from a socket here. A message that lies whole in what was read is handed out where it lies.

use std::ops::Range;
use std::str;

use tungstenite::protocol::frame::coding::CloseCode;

use super::outgoing::{Form, Outgoing};
use crate::deflate::Agreed;

/// The state of a WebSocket whose handshake is done.
#[derive(Debug)]
pub(super) struct WebSocket {
    deflate: Option<Agreed>,
    message_bytes_max: usize,
    /// What has come of the head of a frame.
    head: [u8; HEAD_BYTES_MAX],
    head_len: usize,
    /// The frame whose payload comes.
    frame: Option<Frame>,
    /// The message that has begun.
    begun: Option<Begun>,
    /// What is kept of it, unmasked.
    kept: Vec<u8>,
    /// So much of that is known to be UTF-8.
    checked: usize,
    /// What is kept was handed out, and is over.
    is_handed_out: bool,
    /// What has come of the payload of a control frame.
    control: Vec<u8>,
    /// It was said that it is over.
    is_closed: bool,
}

/// A frame whose payload comes.
#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: u8,
    is_last: bool,
    mask: [u8; 4],
    /// Which byte of the mask is the next.
    turned: usize,
    left: usize,
}

#[derive(Clone, Copy, Debug)]
struct Begun {
    is_text: bool,
    is_deflated: bool,
}

/// What has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Came<'a> {
    /// A message.
    Message(Message<'a>),
    /// The other side has said that it is over, and was answered.
    Closed,
}

/// A message. Text that is not deflated is UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) is_text: bool,
    pub(super) is_deflated: bool,
    pub(super) bytes: &'a [u8],
}

/// What came breaks the protocol, or is too large. It is said with this code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) code: CloseCode,
    pub(super) why: String,
}

/// What a step leads to.
enum Step {
    /// The next one.
    On,
    /// More has to be read first.
    Wait,
    /// A message, which was kept or lies in what was read.
    Message(Begun, Option<Range<usize>>),
    Closed,
}

impl WebSocket {
    /// One of which nothing was read. Messages of the other side are at most so long.
    pub(super) fn new(message_bytes_max: usize, deflate: Option<Agreed>) -> Self {
        Self {
            deflate,
            message_bytes_max,
            head: [0; HEAD_BYTES_MAX],
            head_len: 0,
            frame: None,
            begun: None,
            kept: Vec::new(),
            checked: 0,
            is_handed_out: false,
            control: Vec::new(),
            is_closed: false,
        }
    }

    /// In which form messages are sent to it.
    pub(super) fn form(&self) -> Form {
        match self.deflate {
            Some(agreed) => Form::Deflated { message_bytes_max: agreed.message_bytes_max() },
            None => Form::Framed,
        }
    }

    /// The next that has come in `read` from `at` on; nothing when all of it is used up. `at` goes on behind what was used, which
    /// is unmasked. What has to be answered is put behind `outgoing`.
    pub(super) fn next<'s>(
        &'s mut self,
        read: &'s mut [u8],
        at: &mut usize,
        outgoing: &mut Outgoing,
    ) -> Result<Option<Came<'s>>, Broken> {
        self.release();
        let (begun, place) = loop {
            match self.step(read, at, outgoing)? {
                Step::On => {}
                Step::Wait => return Ok(None),
                Step::Closed => return Ok(Some(Came::Closed)),
                Step::Message(begun, place) => break (begun, place),
            }
        };
        let Begun { is_text, is_deflated } = begun;
        let bytes = match place {
            Some(place) => &read[place],
            None => &self.kept[..],
        };
        Ok(Some(Came::Message(Message { is_text, is_deflated, bytes })))
    }

    /// Gives back the room of the message that was handed out last, as [`next`](Self::next) does.
    pub(super) fn release(&mut self) {
        if std::mem::take(&mut self.is_handed_out) {
            self.kept.clear();
            self.kept.shrink_to(KEPT_BYTES_KEPT);
        }
    }

    /// What is kept of a message that is not whole.
    pub(super) fn held_bytes(&self) -> usize {
        if self.is_handed_out { 0 } else { self.kept.len() }
    }

    /// Asks whether the other side is there.
    pub(super) fn ping(&mut self, outgoing: &mut Outgoing) {
        // After a close there is nobody to ask.
        if !self.is_closed {
            put_control(outgoing, PING, &[]);
        }
    }

    /// Says that it is over, and why.
    pub(super) fn close(&mut self, code: CloseCode, reason: &str, outgoing: &mut Outgoing) {
        let code = u16::from(code).to_be_bytes();
        self.put_close(&[&code, shortened(reason).as_bytes()].concat(), outgoing);
    }

    /// Says it once.
    fn put_close(&mut self, payload: &[u8], outgoing: &mut Outgoing) {
        if !std::mem::replace(&mut self.is_closed, true) {
            put_control(outgoing, CLOSE, payload);
        }
    }

    fn step(
        &mut self,
        read: &mut [u8],
        at: &mut usize,
        outgoing: &mut Outgoing,
    ) -> Result<Step, Broken> {
        let Some(frame) = self.frame else {
            if !self.read_head(read, at)? {
                return Ok(Step::Wait);
            }
            self.frame = Some(self.begin()?);
            return Ok(Step::On);
        };
        let count = frame.left.min(read.len() - *at);
        let place = *at..*at + count;
        unmask(&mut read[place.clone()], frame.mask, frame.turned);
        *at += count;
        let left = frame.left - count;
        // What is left comes with the next that is read.
        self.frame =
            (left != 0).then_some(Frame { left, turned: (frame.turned + count) % 4, ..frame });
        if is_control(frame.opcode) {
            self.control.extend_from_slice(&read[place]);
            return if left == 0 { self.obey(frame.opcode, outgoing) } else { Ok(Step::Wait) };
        }
        // A frame of data is either the first of a message or one that goes on.
        let Some(begun) = self.begun else { return Ok(Step::On) };
        let is_end = left == 0 && frame.is_last;
        let is_checked = begun.is_text && !begun.is_deflated;
        if is_end && self.kept.is_empty() {
            self.begun = None;
            if is_checked && str::from_utf8(&read[place.clone()]).is_err() {
                return Err(no_text());
            }
            return Ok(Step::Message(begun, Some(place)));
        }
        self.kept.extend_from_slice(&read[place]);
        if is_checked {
            self.check(is_end)?;
        }
        if is_end {
            self.begun = None;
            self.checked = 0;
            self.is_handed_out = true;
            return Ok(Step::Message(begun, None));
        }
        Ok(if left == 0 { Step::On } else { Step::Wait })
    }

    /// Takes bytes of a head; whether it is whole. What is wrong with its first two is said before any more come.
    fn read_head(&mut self, read: &[u8], at: &mut usize) -> Result<bool, Broken> {
        loop {
            let len = match self.head_len {
                0 | 1 => 2,
                _ => head_bytes(self.head[1]),
            };
            if self.head_len == len {
                return Ok(true);
            }
            let count = (len - self.head_len).min(read.len() - *at);
            if count == 0 {
                return Ok(false);
            }
            self.head[self.head_len..self.head_len + count]
                .copy_from_slice(&read[*at..*at + count]);
            self.head_len += count;
            *at += count;
            if self.head_len == 2 {
                self.check_head(self.head[0], self.head[1])?;
            }
        }
    }

    fn check_head(&self, first: u8, second: u8) -> Result<(), Broken> {
        let (opcode, len) = (first & OPCODE, second & LEN);
        let may_deflate = self.deflate.is_some() && matches!(opcode, TEXT | BINARY);
        let reserved = if may_deflate { RSV2 | RSV3 } else { RSV1 | RSV2 | RSV3 };
        let is_last = first & FIN != 0;
        let why = match opcode {
            _ if first & reserved != 0 => "a reserved bit that nobody has agreed on",
            _ if second & MASKED == 0 => "a frame of a client that is not masked",
            CONTINUATION if self.begun.is_none() => "the continuation of nothing",
            TEXT | BINARY if self.begun.is_some() => "a message within another",
            CLOSE | PING | PONG if !is_last => "a control frame in pieces",
            CLOSE | PING | PONG if CONTROL_BYTES_MAX < usize::from(len) => {
                "a control frame of more than 125 bytes"
            }
            CONTINUATION | TEXT | BINARY | CLOSE | PING | PONG => return Ok(()),
            _ => "an opcode that means nothing",
        };
        Err(wrong(why))
    }

    /// What a whole head says.
    fn begin(&mut self) -> Result<Frame, Broken> {
        let len = head_bytes(self.head[1]);
        let (head, mask) = self.head[..len].split_at(len - 4);
        let told = match head {
            [_, second] => u64::from(second & LEN),
            [_, _, long @ ..] => long.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
            _ => 0,
        };
        let mask = <[u8; 4]>::try_from(mask).unwrap_or_default();
        let (first, opcode) = (self.head[0], self.head[0] & OPCODE);
        self.head_len = 0;
        if told >> 63 != 0 {
            return Err(wrong("a length of more than 63 bits"));
        }
        if matches!(opcode, TEXT | BINARY) {
            self.begun = Some(Begun { is_text: opcode == TEXT, is_deflated: first & RSV1 != 0 });
        }
        if is_control(opcode) {
            self.control.clear();
        } else {
            self.check_length(told)?;
        }
        // It is no longer than a message may be, or 125.
        let left = usize::try_from(told).unwrap_or(usize::MAX);
        Ok(Frame { opcode, is_last: first & FIN != 0, mask, turned: 0, left })
    }

    /// Whether the message may be so much longer.
    fn check_length(&self, more: u64) -> Result<(), Broken> {
        let max = match self.begun {
            // What cannot be deflated becomes a little longer by it. How long it becomes again is limited where it does.
            Some(Begun { is_deflated: true, .. }) => {
                self.message_bytes_max + self.message_bytes_max / 1000 + 64
            }
            _ => self.message_bytes_max,
        };
        if (max as u64) < (self.kept.len() as u64).saturating_add(more) {
            let why = format!("a message of more than {} bytes", self.message_bytes_max);
            return Err(Broken { code: CloseCode::Size, why });
        }
        Ok(())
    }

    /// Whether what is kept is UTF-8 as far as it has come.
    fn check(&mut self, is_end: bool) -> Result<(), Broken> {
        match str::from_utf8(&self.kept[self.checked..]) {
            Ok(_) => self.checked = self.kept.len(),
            // A letter of which the rest has not come.
            Err(error) if error.error_len().is_none() && !is_end => {
                self.checked += error.valid_up_to();
            }
            Err(_) => return Err(no_text()),
        }
        Ok(())
    }

    /// Does what a whole control frame says.
    fn obey(&mut self, opcode: u8, outgoing: &mut Outgoing) -> Result<Step, Broken> {
        match opcode {
            PING => {
                put_control(outgoing, PONG, &self.control);
                Ok(Step::On)
            }
            CLOSE => {
                let code = match &self.control[..] {
                    [] => Vec::new(),
                    [_] => return Err(wrong("a close with half a code")),
                    [high, low, reason @ ..] => {
                        if !may_be_said(u16::from_be_bytes([*high, *low])) {
                            return Err(wrong("a close with a code that nobody may send"));
                        }
                        if str::from_utf8(reason).is_err() {
                            return Err(no_text());
                        }
                        vec![*high, *low]
                    }
                };
                self.put_close(&code, outgoing);
                Ok(Step::Closed)
            }
            _ => Ok(Step::On),
        }
    }
}

fn put_control(outgoing: &mut Outgoing, opcode: u8, payload: &[u8]) {
    // It is never longer than a control frame may be.
    outgoing.append(&[&[FIN | opcode, payload.len() as u8], payload].concat());
}

fn wrong(why: &str) -> Broken {
    Broken { code: CloseCode::Protocol, why: why.to_owned() }
}

/// What says that text is none.
pub(super) fn no_text() -> Broken {
    Broken { code: CloseCode::Invalid, why: "text that is not UTF-8".to_owned() }
}

/// Whether whoever closes may give this as the reason.
fn may_be_said(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// How long the head of a masked frame is whose second byte this is.
fn head_bytes(second: u8) -> usize {
    match second & LEN {
        126 => 8,
        127 => HEAD_BYTES_MAX,
        _ => 6,
    }
}

fn is_control(opcode: u8) -> bool {
    opcode & 8 != 0
}

/// Unmasks bytes, of which the first has this turn of the mask.
fn unmask(bytes: &mut [u8], mask: [u8; 4], turned: usize) {
    let mut mask = mask;
    mask.rotate_left(turned);
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let mut eights = bytes.chunks_exact_mut(8);
    for eight in &mut eights {
        if let Ok(masked) = <[u8; 8]>::try_from(&*eight) {
            eight.copy_from_slice(&(u64::from_ne_bytes(masked) ^ wide).to_ne_bytes());
        }
    }
    for (byte, mask) in eights.into_remainder().iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
}

/// As much of a reason as a control frame has room for.
fn shortened(reason: &str) -> &str {
    let mut end = reason.len().min(CONTROL_BYTES_MAX - 2);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    &reason[..end]
}

// The first byte of a head.
const FIN: u8 = 0x80;
const RSV1: u8 = 0x40;
const RSV2: u8 = 0x20;
const RSV3: u8 = 0x10;
const OPCODE: u8 = 0x0f;

// The second.
const MASKED: u8 = 0x80;
const LEN: u8 = 0x7f;

// What a frame is.
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// Two bytes, eight of a long length, four of a mask.
const HEAD_BYTES_MAX: usize = 14;

/// The payload of a control frame is at most so long; a close begins with a code of two bytes.
const CONTROL_BYTES_MAX: usize = 125;

/// Room for messages in pieces is given back when one was longer.
const KEPT_BYTES_KEPT: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 70_000;

    /// A frame as a client sends it.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let len = payload.len();
        let mut bytes = match len {
            0..126 => vec![first, MASKED | len as u8],
            126..65_536 => [&[first, MASKED | 126][..], &(len as u16).to_be_bytes()].concat(),
            _ => [&[first, MASKED | 127][..], &(len as u64).to_be_bytes()].concat(),
        };
        let mask = [1, 0x82, 3, 0xc4];
        bytes.extend_from_slice(&mask);
        bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        bytes
    }

    /// What comes of bytes that are read so many at once, and what is answered.
    fn told(bytes: &[u8], at_once: usize, deflate: Option<Agreed>) -> (Vec<String>, Vec<u8>) {
        let mut websocket = WebSocket::new(MAX, deflate);
        let mut outgoing = Outgoing::default();
        let mut all = Vec::new();
        'over: for part in bytes.chunks(at_once) {
            let (mut part, mut at) = (part.to_vec(), 0);
            loop {
                match websocket.next(&mut part, &mut at, &mut outgoing) {
                    Ok(None) => break,
                    Ok(Some(Came::Closed)) => {
                        all.push("closed".to_owned());
                        break 'over;
                    }
                    Ok(Some(Came::Message(it))) => all.push(format!(
                        "{}{} {}",
                        if it.is_deflated { "deflated " } else { "" },
                        if it.is_text { "text" } else { "binary" },
                        String::from_utf8_lossy(it.bytes)
                    )),
                    Err(Broken { code, .. }) => {
                        all.push(code.to_string());
                        break 'over;
                    }
                }
            }
            assert_eq!(at, part.len(), "something was left");
        }
        let mut answered = Vec::new();
        assert!(outgoing.write(&mut answered).unwrap());
        (all, answered)
    }

    fn check(bytes: &[u8], expected: &[&str], answered: &[u8]) {
        for at_once in [1, 2, 3, 7, 1000, bytes.len().max(1)] {
            assert_eq!(
                told(bytes, at_once, None),
                (expected.iter().map(|it| (*it).to_owned()).collect(), answered.to_vec()),
                "{at_once} at once"
            );
        }
    }

    #[test]
    fn messages_come_whole_in_whatever_pieces() {
        let (one, two) = (frame(0x81, b"one"), frame(0x82, b"two"));
        check(&[one.clone(), two].concat(), &["text one", "binary two"], &[]);
        let ping = frame(0x89, b"?");
        let pieces = [frame(0x01, b"a"), ping, frame(0, b""), frame(0x80, b"b"), one].concat();
        check(&pieces, &["text ab", "text one"], &[0x8a, 1, b'?']);
        check(&frame(0x81, b""), &["text "], &[]);
        check(&[frame(1, b""), frame(0x80, b"")].concat(), &["text "], &[]);
        for len in [125, 126, 65_535, 65_536] {
            let letters = "x".repeat(len);
            check(&frame(0x81, letters.as_bytes()), &[&format!("text {letters}")], &[]);
        }
    }

    #[test]
    fn what_breaks_the_protocol_has_its_code() {
        for (bytes, expected) in [
            (frame(0xc1, b"x"), "1002"),
            (frame(0x83, b""), "1002"),
            (frame(0x8b, b""), "1002"),
            (frame(0x80, b""), "1002"),
            (vec![0x81, 1, b'x'], "1002"),
            (frame(0x09, b""), "1002"),
            (frame(0x89, &[0; 126]), "1002"),
            ([frame(0x01, b"a"), frame(0x81, b"b")].concat(), "1002"),
            (vec![0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "1002"),
            (frame(0x82, &[0; MAX + 1]), "1009"),
            ([frame(0x02, &[0; MAX]), frame(0x80, b"x")].concat(), "1009"),
            (frame(0x81, &[0xce, 0x28]), "1007"),
            // Cut within a letter.
            (frame(0x81, &[0xce]), "1007"),
            ([frame(0x01, &[0xce]), frame(0x80, &[0x28])].concat(), "1007"),
            // Said before the message is whole.
            (frame(0x01, &[0xf4, 0x90]), "1007"),
            (frame(0x88, &[3]), "1002"),
            (frame(0x88, &[3, 0xed]), "1002"),
            (frame(0x88, &[3, 0xe8, 0xce]), "1007"),
        ] {
            check(&bytes, &[expected], &[]);
        }
    }

    #[test]
    fn a_close_is_answered_once_and_ends_it() {
        let close = frame(0x88, &[3, 0xe8, b'!']);
        check(&close, &["closed"], &[0x88, 2, 3, 0xe8]);
        check(&frame(0x88, b""), &["closed"], &[0x88, 0]);
        let (all, _) = told(&[close.clone(), frame(0x81, b"x")].concat(), 1000, None);
        assert_eq!(all, ["closed"]);
        let (mut websocket, mut outgoing) = (WebSocket::new(MAX, None), Outgoing::default());
        websocket.ping(&mut outgoing);
        websocket.close(CloseCode::Away, &"ä".repeat(100), &mut outgoing);
        websocket.ping(&mut outgoing);
        let (mut bytes, mut at) = (close, 0);
        assert_eq!(websocket.next(&mut bytes, &mut at, &mut outgoing), Ok(Some(Came::Closed)));
        let mut answered = Vec::new();
        assert!(outgoing.write(&mut answered).unwrap());
        assert_eq!(answered[..6], [0x89, 0, 0x88, 124, 3, 0xe9]);
        assert_eq!(answered.len(), 4 + 2 + 122);
    }

    #[test]
    fn only_what_was_agreed_on_may_be_deflated() {
        let agreed = Some(Agreed::default());
        // Deflated bytes are no text yet, whatever the frame says.
        let bytes = [frame(0x41, &[0xce]), frame(0x80, b"!"), frame(0x82, b"x")].concat();
        let (all, _) = told(&bytes, 3, agreed);
        assert_eq!(all, ["deflated text \u{fffd}!", "binary x"]);
        for bytes in [frame(0xc9, b""), [frame(0x01, b""), frame(0xc0, b"")].concat()] {
            assert_eq!(told(&bytes, 100, agreed).0, ["1002"]);
        }
    }

    #[test]
    fn what_is_kept_of_a_message_is_given_back() {
        let (mut websocket, mut outgoing) = (WebSocket::new(MAX, None), Outgoing::default());
        let mut bytes = frame(0x02, &[7; 60_000]);
        let mut at = 0;
        assert_eq!(websocket.next(&mut bytes, &mut at, &mut outgoing), Ok(None));
        assert_eq!(websocket.held_bytes(), 60_000);
        let (mut end, mut at) = (frame(0x80, b""), 0);
        let message = websocket.next(&mut end, &mut at, &mut outgoing).unwrap().unwrap();
        assert!(matches!(message, Came::Message(Message { bytes, .. }) if bytes.len() == 60_000));
        assert_eq!(websocket.held_bytes(), 0);
        assert_eq!(websocket.next(&mut end, &mut at, &mut outgoing), Ok(None));
        assert!(websocket.kept.capacity() <= KEPT_BYTES_KEPT);
    }
}

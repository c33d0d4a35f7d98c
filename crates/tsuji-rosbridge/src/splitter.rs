//! Messages out of a stream of bytes that has no frames.

use crate::bson;
use crate::json::{BYTE_ORDER_MARK, CLOSE, OPEN, PLAIN, QUOTE, STRUCTURE, plain_text_end};
use crate::operation::Encoding;

/// What a splitter found next.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// One message, whole, as it was sent.
    Message(&'a [u8]),
    /// Bytes that are no message. The splitter goes on behind them.
    Refused(Garbage),
}

/// Bytes of a stream that are no message, or one that is beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbage {
    /// Where, in bytes from the start of the stream.
    pub at: u64,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong with a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Something other than white space between two objects. Everything is passed over up to the next `{`.
    Between,
    /// A control character within a text. Everything is passed over up to the next `{`.
    Control,
    /// A message larger than is allowed. It is passed over to its end, and not kept.
    TooLarge,
    /// A message nested deeper than is allowed. It is passed over to its end, and not kept.
    TooDeep,
    /// A length that cannot be that of a document of BSON. Nothing after it can be understood: close.
    Lost,
}

impl std::fmt::Display for Garbage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.fault {
            Fault::Between => "no object begins here; everything is passed over up to the next {",
            Fault::Control => {
                "a control character within a text; everything is passed over up to the next {"
            }
            Fault::TooLarge => "the message is larger than is allowed and was passed over",
            Fault::TooDeep => "the message is nested deeper than is allowed and was passed over",
            Fault::Lost => "no document can be so long; nothing after it can be understood",
        };
        write!(f, "byte {}: {what}", self.at)
    }
}

/// Splits a stream of JSON objects that follow each other, with white space between them or none, however it is cut.
///
/// Each byte is looked at once, wherever chunks end. A message within one chunk is a slice of it; one that lies in several
/// is put together in a buffer, which holds at most `message_bytes_max`. After garbage the next fault is told
/// only when a whole object has come in between, so that rubbish costs one answer and not many.
#[derive(Debug)]
pub struct Splitter {
    message_bytes_max: usize,
    nesting_max: usize,
    /// The beginning of a message whose end has not come.
    begun: Vec<u8>,
    /// Whether `begun` was handed out as a whole message.
    handed_out: bool,
    place: Place,
    /// Whether the message is too much, and passed over without being kept.
    skipping: bool,
    depth: usize,
    /// Bytes of the message so far, while it is kept.
    length: usize,
    /// How many bytes have been taken.
    taken: u64,
    /// Whether a fault was told since the last whole object.
    told: bool,
}

/// Where in the grammar the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Between,
    /// Between objects, behind something that is none.
    Garbage,
    Object,
    Text,
    Escape,
}

/// Why looking through a message stopped, behind the byte that it stopped at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// There is no more.
    End,
    /// The message is whole.
    Closed,
    /// It is one level too deep.
    Deep,
    /// It cannot go on so.
    Control,
}

/// The buffer is given back when it has held a message larger than this.
const BUFFER_BYTES_KEPT: usize = 64 * 1024;

impl Splitter {
    /// One that has seen nothing. A message is at most `message_bytes_max` long and `nesting_max` deep.
    pub fn new(message_bytes_max: usize, nesting_max: usize) -> Self {
        Self {
            message_bytes_max,
            nesting_max,
            begun: Vec::new(),
            handed_out: false,
            place: Place::Between,
            skipping: false,
            depth: 0,
            length: 0,
            taken: 0,
            told: false,
        }
    }

    /// Gives back the room of what was handed out last, as the next call of [`next`](Self::next) does.
    pub fn release(&mut self) {
        if std::mem::take(&mut self.handed_out) {
            self.begun.clear();
            self.begun.shrink_to(BUFFER_BYTES_KEPT);
        }
    }

    /// The next message or fault; `None` when the chunk is used up. What is left of the chunk stays in it.
    pub fn next<'s, 'c: 's>(&'s mut self, chunk: &mut &'c [u8]) -> Option<Piece<'s>> {
        self.release();
        let bytes = *chunk;
        let mut at = 0;
        // Where the message begins that is being looked at, or goes on from an earlier chunk.
        let mut start = 0;
        loop {
            if let Place::Between | Place::Garbage = self.place {
                at = self.between(bytes, at);
                match bytes.get(at) {
                    None => break,
                    Some(b'{') => {
                        start = at;
                        self.place = Place::Object;
                        self.skipping = false;
                        self.depth = 0;
                        self.length = 0;
                    }
                    Some(_) => {
                        self.place = Place::Garbage;
                        if self.tell() {
                            return Some(self.refuse(chunk, at, at, Fault::Between));
                        }
                        continue;
                    }
                }
            }
            // What is kept is looked through no further than it may be long.
            let room =
                if self.skipping { usize::MAX } else { self.message_bytes_max - self.length };
            let visible = &bytes[..bytes.len().min(at.saturating_add(room))];
            let from = at;
            let stop = self.scan(visible, &mut at);
            if !self.skipping {
                self.length += at - from;
            }
            let fault = match stop {
                Stop::Closed => {
                    self.place = Place::Between;
                    if self.skipping {
                        continue;
                    }
                    return Some(self.message(chunk, start, at));
                }
                Stop::End if at == bytes.len() => break,
                Stop::End => Fault::TooLarge,
                Stop::Deep => Fault::TooDeep,
                Stop::Control => Fault::Control,
            };
            self.begun = Vec::new();
            self.skipping = true;
            let mut place = at;
            if fault != Fault::TooLarge {
                place -= 1;
            }
            if fault == Fault::Control {
                self.place = Place::Garbage;
            }
            if self.tell() {
                return Some(self.refuse(chunk, at, place, fault));
            }
        }
        let within = !matches!(self.place, Place::Between | Place::Garbage);
        if within && !self.skipping {
            self.begun.extend_from_slice(&bytes[start..]);
        }
        self.advance(chunk, bytes.len());
        None
    }

    /// How many bytes are kept of a message whose end has not come.
    pub fn held_bytes(&self) -> usize {
        if self.handed_out { 0 } else { self.begun.len() }
    }

    /// Passes over white space and byte order marks, and behind garbage over everything, up to what may be a message.
    fn between(&self, bytes: &[u8], at: usize) -> usize {
        let passed = |byte: &u8| match self.place {
            Place::Garbage => *byte != b'{',
            _ => matches!(byte, b' ' | b'\n' | b'\r' | b'\t') || BYTE_ORDER_MARK.contains(byte),
        };
        at + bytes[at..].iter().take_while(|it| passed(it)).count()
    }

    /// Looks through a message, to its end or to what it cannot have.
    fn scan(&mut self, bytes: &[u8], at: &mut usize) -> Stop {
        let nesting_max = if self.skipping { usize::MAX } else { self.nesting_max };
        let (mut here, mut depth) = (*at, self.depth);
        let stop = 'stop: {
            if self.place == Place::Escape {
                if here == bytes.len() {
                    break 'stop Stop::End;
                }
                here += 1;
                self.place = Place::Text;
            }
            loop {
                while self.place == Place::Text {
                    here = plain_text_end(bytes, here);
                    let Some(&byte) = bytes.get(here) else { break 'stop Stop::End };
                    here += 1;
                    match byte {
                        b'"' => self.place = Place::Object,
                        b'\\' if here == bytes.len() => {
                            self.place = Place::Escape;
                            break 'stop Stop::End;
                        }
                        b'\\' => here += 1,
                        _ => break 'stop Stop::Control,
                    }
                }
                while let Some(&byte) = bytes.get(here) {
                    here += 1;
                    match STRUCTURE[usize::from(byte)] {
                        PLAIN => (),
                        QUOTE => {
                            self.place = Place::Text;
                            break;
                        }
                        OPEN => {
                            depth += 1;
                            if depth > nesting_max {
                                break 'stop Stop::Deep;
                            }
                        }
                        CLOSE.. => {
                            depth -= 1;
                            if depth == 0 {
                                break 'stop Stop::Closed;
                            }
                        }
                    }
                }
                if self.place == Place::Object {
                    break 'stop Stop::End;
                }
            }
        };
        (*at, self.depth) = (here, depth);
        stop
    }

    /// Whether a fault is to be told, which it then is.
    fn tell(&mut self) -> bool {
        !std::mem::replace(&mut self.told, true)
    }

    fn refuse(&mut self, chunk: &mut &[u8], end: usize, at: usize, fault: Fault) -> Piece<'static> {
        let at = self.taken + at as u64;
        self.advance(chunk, end);
        Piece::Refused(Garbage { at, fault })
    }

    fn message<'s, 'c: 's>(
        &'s mut self,
        chunk: &mut &'c [u8],
        start: usize,
        end: usize,
    ) -> Piece<'s> {
        let bytes = *chunk;
        self.told = false;
        self.advance(chunk, end);
        if self.begun.is_empty() {
            return Piece::Message(&bytes[start..end]);
        }
        self.begun.extend_from_slice(&bytes[..end]);
        self.handed_out = true;
        Piece::Message(&self.begun)
    }

    fn advance(&mut self, chunk: &mut &[u8], end: usize) {
        self.taken += end as u64;
        *chunk = &chunk[end..];
    }
}

/// Splits a stream of BSON documents, each of which begins with its length, however it is cut.
#[derive(Debug)]
pub struct BsonSplitter {
    message_bytes_max: usize,
    begun: Vec<u8>,
    handed_out: bool,
    /// Bytes of a document that is too large, which are still to come.
    skipped: usize,
    taken: u64,
    lost: bool,
}

impl BsonSplitter {
    /// One that has seen nothing. A document is at most `message_bytes_max` long.
    pub fn new(message_bytes_max: usize) -> Self {
        let begun = Vec::new();
        Self { message_bytes_max, begun, handed_out: false, skipped: 0, taken: 0, lost: false }
    }

    /// Gives back the room of what was handed out last, as the next call of [`next`](Self::next) does.
    pub fn release(&mut self) {
        if std::mem::take(&mut self.handed_out) {
            self.begun.clear();
            self.begun.shrink_to(BUFFER_BYTES_KEPT);
        }
    }

    /// The next document or fault; `None` when the chunk is used up. After [`Fault::Lost`] nothing comes any more.
    pub fn next<'s, 'c: 's>(&'s mut self, chunk: &mut &'c [u8]) -> Option<Piece<'s>> {
        self.release();
        if self.lost {
            *chunk = &[];
            return None;
        }
        let skipped = self.skipped.min(chunk.len());
        self.skipped -= skipped;
        self.advance(chunk, skipped);
        if chunk.is_empty() {
            return None;
        }
        let mut prefix = [0; 4];
        let prefix_length = (self.begun.len() + chunk.len()).min(4);
        for (place, byte) in prefix.iter_mut().zip(self.begun.iter().chain(*chunk)) {
            *place = *byte;
        }
        if prefix_length < 4 {
            self.keep(chunk);
            return None;
        }
        let at = self.taken - self.begun.len() as u64;
        let length = bson::length(&prefix, 0).filter(|&it| it >= bson::DOCUMENT_BYTES_MIN);
        let Some(length) = length else {
            self.lost = true;
            return Some(Piece::Refused(Garbage { at, fault: Fault::Lost }));
        };
        if length > self.message_bytes_max {
            self.skipped = length - self.begun.len();
            self.begun.clear();
            return Some(Piece::Refused(Garbage { at, fault: Fault::TooLarge }));
        }
        let missing = length - self.begun.len();
        let bytes = *chunk;
        if bytes.len() < missing {
            self.keep(chunk);
            return None;
        }
        self.advance(chunk, missing);
        if self.begun.is_empty() {
            return Some(Piece::Message(&bytes[..missing]));
        }
        self.begun.extend_from_slice(&bytes[..missing]);
        self.handed_out = true;
        Some(Piece::Message(&self.begun))
    }

    /// How many bytes are kept of a document whose end has not come.
    pub fn held_bytes(&self) -> usize {
        if self.handed_out { 0 } else { self.begun.len() }
    }

    fn keep(&mut self, chunk: &mut &[u8]) {
        self.begun.extend_from_slice(chunk);
        self.advance(chunk, chunk.len());
    }

    fn advance(&mut self, chunk: &mut &[u8], end: usize) {
        self.taken += end as u64;
        *chunk = &chunk[end..];
    }
}

/// Splits a stream as its encoding has it.
#[derive(Debug)]
pub enum StreamSplitter {
    /// JSON objects.
    Json(Splitter),
    /// BSON documents.
    Bson(BsonSplitter),
}

impl StreamSplitter {
    /// One that has seen nothing. CBOR has no streams without frames: what comes is JSON.
    pub fn new(encoding: Encoding, message_bytes_max: usize, nesting_max: usize) -> Self {
        match encoding {
            Encoding::Json | Encoding::Cbor => {
                Self::Json(Splitter::new(message_bytes_max, nesting_max))
            }
            Encoding::Bson => Self::Bson(BsonSplitter::new(message_bytes_max)),
        }
    }

    /// The next message or fault; `None` when the chunk is used up. What is left of the chunk stays in it.
    pub fn next<'s, 'c: 's>(&'s mut self, chunk: &mut &'c [u8]) -> Option<Piece<'s>> {
        match self {
            Self::Json(splitter) => splitter.next(chunk),
            Self::Bson(splitter) => splitter.next(chunk),
        }
    }

    /// Gives back the room of what was handed out last, as the next call of [`next`](Self::next) does.
    pub fn release(&mut self) {
        match self {
            Self::Json(splitter) => splitter.release(),
            Self::Bson(splitter) => splitter.release(),
        }
    }

    /// How many bytes are kept of a message whose end has not come.
    pub fn held_bytes(&self) -> usize {
        match self {
            Self::Json(splitter) => splitter.held_bytes(),
            Self::Bson(splitter) => splitter.held_bytes(),
        }
    }
}

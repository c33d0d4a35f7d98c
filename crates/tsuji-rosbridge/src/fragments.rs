//! Messages in pieces, both ways.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::time::Duration;

use crate::json;
use crate::operation::{Fragment, Id};
use crate::refusal::Refusal;

/// What a client may have under way in fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentLimits {
    /// Of how many messages at a time. The first fragment of one more is refused.
    pub messages_max: usize,
    /// How long a message may become. One that becomes longer is forgotten and refused.
    pub message_bytes_max: usize,
    /// What all together may take. A fragment that does not fit any more is refused, and its message forgotten.
    pub bytes_max: usize,
    /// Of how many pieces a message may be. The first fragment of one of more is refused.
    pub pieces_max: u32,
    /// How long to wait for the next fragment of a message before it is forgotten.
    pub timeout: Duration,
}

impl Default for FragmentLimits {
    /// 8 messages of 10 MB, together 20 MB, in at most 65,536 pieces, 600 s: sizes and time as in rosbridge.
    fn default() -> Self {
        Self {
            messages_max: 8,
            message_bytes_max: 10_000_000,
            bytes_max: 20_000_000,
            pieces_max: 65_536,
            timeout: Duration::from_secs(600),
        }
    }
}

/// The messages of one client of which some fragments have come.
#[derive(Debug)]
pub struct Assembly {
    limits: FragmentLimits,
    messages: HashMap<Id<'static>, Begun>,
    by_time: BTreeSet<(Duration, u64)>,
    ids: HashMap<u64, Id<'static>>,
    next: u64,
    bytes: usize,
    forgotten: u64,
}

/// What has come of one message.
#[derive(Debug)]
struct Begun {
    total: u32,
    /// What has come, in the order in which it came.
    data: Vec<u8>,
    /// Where each piece lies in `data`.
    pieces: BTreeMap<u32, Range<usize>>,
    expires: Duration,
    key: u64,
}

/// What a piece costs beside its data.
const PIECE_BYTES: usize = 48;
/// What a message costs beside its pieces.
const MESSAGE_BYTES: usize = 256;

impl Assembly {
    /// One in which nothing has come.
    pub fn new(limits: FragmentLimits) -> Self {
        Self {
            limits,
            messages: HashMap::new(),
            by_time: BTreeSet::new(),
            ids: HashMap::new(),
            next: 0,
            bytes: 0,
            forgotten: 0,
        }
    }

    /// Takes a fragment; the whole message when it was the last that was missing. Fragments may come in any order.
    ///
    /// What is returned is a message as any other, and may be a fragment again.
    pub fn add(
        &mut self,
        now: Duration,
        fragment: &Fragment<'_>,
    ) -> Result<Option<Vec<u8>>, Refusal> {
        let refuse = |field, found: String, expected: String| {
            Err(Refusal::new("fragment", Some(&fragment.id), Some(field), found, expected))
        };
        let limits = self.limits;
        let Fragment { num, total, .. } = *fragment;
        if total == 0 || total > limits.pieces_max {
            return refuse("total", total.to_string(), format!("1 to {}", limits.pieces_max));
        }
        if num >= total {
            return refuse("num", num.to_string(), format!("0 to {}", total - 1));
        }
        let id = fragment.id.clone().into_owned();
        if total == 1 && !self.messages.contains_key(&id) {
            if fragment.data.len() > limits.message_bytes_max {
                let found = format!("{} bytes", fragment.data.len());
                return refuse("data", found, format!("at most {}", limits.message_bytes_max));
            }
            return Ok(Some(whole(fragment.data.to_vec())));
        }
        let expires = now.saturating_add(limits.timeout);
        let added = fragment.data.len() + PIECE_BYTES;
        if !self.messages.contains_key(&id) {
            if self.messages.len() >= limits.messages_max {
                let found = format!("the first fragment of message {}", limits.messages_max + 1);
                let expected = format!("at most {} messages under way", limits.messages_max);
                return refuse("id", found, expected);
            }
            let in_all = added + MESSAGE_BYTES + id.text_bytes() * 2;
            if self.bytes + in_all > limits.bytes_max {
                let expected = format!("at most {} bytes under way", limits.bytes_max);
                return refuse("data", format!("{in_all} bytes more"), expected);
            }
            self.begin(id.clone(), total, expires);
        }
        let Some(begun) = self.messages.get_mut(&id) else { return Ok(None) };
        if begun.total != total {
            return refuse("total", total.to_string(), format!("{}, as before", begun.total));
        }
        if begun.pieces.contains_key(&num) {
            return refuse("num", format!("{num}, again"), "each number once".to_owned());
        }
        let too_long = begun.data.len() + fragment.data.len() > limits.message_bytes_max;
        if too_long || self.bytes + added > limits.bytes_max {
            let expected = if too_long {
                format!("a message of at most {} bytes", limits.message_bytes_max)
            } else {
                format!("at most {} bytes under way", limits.bytes_max)
            };
            let found = format!("{} bytes more", fragment.data.len());
            self.forget(&id);
            return refuse("data", found, expected);
        }
        self.by_time.remove(&(begun.expires, begun.key));
        begun.expires = expires;
        self.by_time.insert((expires, begun.key));
        let start = begun.data.len();
        begun.data.extend_from_slice(&fragment.data);
        begun.pieces.insert(num, start..begun.data.len());
        self.bytes += added;
        if begun.pieces.len() < total as usize {
            return Ok(None);
        }
        Ok(self.remove(&id).map(Begun::join))
    }

    /// Forgets what was waited for too long, and says of each which message it was.
    pub fn expire(&mut self, now: Duration) -> Vec<Refusal> {
        let mut expired = Vec::new();
        while let Some(&(at, key)) = self.by_time.first()
            && at <= now
        {
            let Some(id) = self.ids.get(&key).cloned() else { break };
            let Some(begun) = self.remove(&id) else { break };
            self.forgotten += 1;
            let found = format!("{} of {} fragments", begun.pieces.len(), begun.total);
            let expected = format!("all, with less than {:?} between two", self.limits.timeout);
            expired.push(Refusal::new("fragment", Some(&id), None, found, expected));
        }
        expired
    }

    /// Forgets all that has come.
    pub fn clear(&mut self) {
        self.forgotten += self.messages.len() as u64;
        self.messages.clear();
        self.by_time.clear();
        self.ids.clear();
        self.bytes = 0;
    }

    /// When to call [`Self::expire`].
    pub fn timeout(&self) -> Option<Duration> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Bounds what is kept from now on.
    pub(crate) fn limit_bytes(&mut self, bytes_max: usize) {
        self.limits.bytes_max = bytes_max;
    }

    /// What is kept, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.bytes
    }

    /// How many messages were forgotten because a fragment did not come, or came and did not fit.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    fn begin(&mut self, id: Id<'static>, total: u32, expires: Duration) {
        let key = self.next;
        self.next += 1;
        self.bytes += MESSAGE_BYTES + id.text_bytes() * 2;
        self.by_time.insert((expires, key));
        self.ids.insert(key, id.clone());
        let begun = Begun { total, data: Vec::new(), pieces: BTreeMap::new(), expires, key };
        self.messages.insert(id, begun);
    }

    fn forget(&mut self, id: &Id<'static>) {
        self.forgotten += u64::from(self.remove(id).is_some());
    }

    fn remove(&mut self, id: &Id<'static>) -> Option<Begun> {
        let begun = self.messages.remove(id)?;
        self.by_time.remove(&(begun.expires, begun.key));
        self.ids.remove(&begun.key);
        self.bytes -= MESSAGE_BYTES + id.text_bytes() * 2;
        self.bytes -= begun.data.len() + begun.pieces.len() * PIECE_BYTES;
        Some(begun)
    }
}

impl Begun {
    fn join(self) -> Vec<u8> {
        let in_order = self.pieces.values().is_sorted_by_key(|it| it.start);
        if in_order {
            return whole(self.data);
        }
        let mut text = Vec::with_capacity(self.data.len());
        for piece in self.pieces.into_values() {
            text.extend_from_slice(&self.data[piece]);
        }
        whole(text)
    }
}

/// Puts together what was cut within a character.
fn whole(text: Vec<u8>) -> Vec<u8> {
    if std::str::from_utf8(&text).is_ok() { text } else { json::join_surrogates(text) }
}

/// How many pieces a message is sent in at most. Where `fragment_size` would make more, the pieces are larger.
pub const SENT_PIECES_MAX: usize = 10_000;

/// The fragments of a message that is too long for a client.
///
/// `fragment_size` is the length of the piece itself, as in rosbridge: what is sent is longer by the members around it and by
/// the escapes in it. Pieces end at characters, so one may be up to three bytes longer.
#[derive(Debug)]
pub struct Fragments<'a> {
    text: &'a str,
    id: Id<'a>,
    size: usize,
    at: usize,
    num: usize,
    total: usize,
}

impl<'a> Fragments<'a> {
    /// Cuts `text`, which is JSON, where it is longer than `fragment_size`; `None` where it is not and is sent as it is.
    ///
    /// The id is that of the message where it has one, else one that no other message in fragments to this client has.
    pub fn new(text: &'a str, id: Id<'a>, fragment_size: u32) -> Option<Self> {
        let size = usize::try_from(fragment_size).unwrap_or(usize::MAX).max(1);
        if text.len() <= size {
            return None;
        }
        let size = size.max(text.len().div_ceil(SENT_PIECES_MAX));
        let mut total = 0;
        let mut at = 0;
        while at < text.len() {
            at = cut(text, at, size);
            total += 1;
        }
        Some(Self { text, id, size, at: 0, num: 0, total })
    }

    /// How many there are.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Appends the next, a message of JSON; `false` when there is none.
    pub fn write_next(&mut self, out: &mut Vec<u8>) -> bool {
        if self.at >= self.text.len() {
            return false;
        }
        let end = cut(self.text, self.at, self.size);
        out.extend_from_slice(b"{\"op\":\"fragment\",\"id\":");
        match &self.id {
            Id::Text(text) => json::write_text(out, text),
            Id::Integer(integer) => out.extend_from_slice(integer.to_string().as_bytes()),
        }
        out.extend_from_slice(b",\"data\":");
        json::write_text(out, &self.text[self.at..end]);
        let rest = format!(",\"num\":{},\"total\":{}}}", self.num, self.total);
        out.extend_from_slice(rest.as_bytes());
        self.at = end;
        self.num += 1;
        true
    }
}

/// Where the piece ends that begins at `at`.
fn cut(text: &str, at: usize, size: usize) -> usize {
    let mut end = at.saturating_add(size).min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    end
}

//! `permessage-deflate` (RFC 7692): what a client and the server agree on, and messages made shorter and whole again.
//!
//! Neither side keeps anything from one message to the next. So what is deflated once serves every client, and no client costs a
//! window.

use std::cell::RefCell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// What a client and the server have agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// What is sent to this client may refer back no farther than two to this power.
    server_window_bits: Option<u8>,
}

impl Agreed {
    /// The first of the offers in `Sec-WebSocket-Extensions` that can be taken, if one can.
    pub(crate) fn of<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        lines.into_iter().flat_map(|line| parts(line, ',')).find_map(offer)
    }

    /// What the server answers.
    pub(crate) fn answer(self) -> String {
        let mut answer = format!("{NAME}; server_no_context_takeover; client_no_context_takeover");
        if let Some(bits) = self.server_window_bits {
            answer.push_str(&format!("; server_max_window_bits={bits}"));
        }
        answer
    }

    /// The longest message that may be deflated for this client: within it nothing refers back too far. Longer ones are sent as
    /// they are.
    pub(crate) fn message_bytes_max(self) -> usize {
        match self.server_window_bits {
            None | Some(WINDOW_BITS_MAX) => usize::MAX,
            Some(bits) => 1 << bits,
        }
    }
}

/// One offer, if it is of this extension and says nothing that is unknown, wrong or said twice.
fn offer(text: &str) -> Option<Agreed> {
    let mut parts = parts(text, ';').map(|it| it.trim_matches([' ', '\t']));
    if parts.next()? != NAME {
        return None;
    }
    let mut agreed = Agreed::default();
    let mut said = Vec::new();
    for part in parts {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name, Some(unquoted(value))),
            None => (part, None),
        };
        if said.contains(&name) {
            return None;
        }
        said.push(name);
        match (name, value) {
            ("server_no_context_takeover" | "client_no_context_takeover", None) => {}
            // How far a client refers back is all one: the whole message is here.
            ("client_max_window_bits", None) => {}
            ("client_max_window_bits", Some(value)) => {
                window_bits(value)?;
            }
            ("server_max_window_bits", Some(value)) => {
                agreed.server_window_bits = Some(window_bits(value)?);
            }
            _ => return None,
        }
    }
    Some(agreed)
}

/// Cuts where a letter stands outside of quotation marks.
fn parts(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |letter: char| {
        is_quoted ^= letter == '"';
        letter == separator && !is_quoted
    })
}

fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(value)
}

fn window_bits(value: &str) -> Option<u8> {
    (WINDOW_BITS_MIN..=WINDOW_BITS_MAX).find(|it| it.to_string() == value)
}

/// Appends a message as the extension sends it, if that is shorter; whether it was.
pub(crate) fn deflate(message: &[u8], out: &mut Vec<u8>) -> bool {
    let begin = out.len();
    let is_shorter = DEFLATER.with_borrow_mut(|raw| {
        raw.reset();
        let mut rest = message;
        // Text becomes a third, mostly.
        out.reserve(message.len() / 2 + 64);
        loop {
            let before = raw.total_in();
            if raw.compress_vec(rest, out, FlushCompress::Sync).is_err() {
                return false;
            }
            rest = &rest[(raw.total_in() - before) as usize..];
            if message.len() + BLOCK_END.len() <= out.len() - begin {
                return false;
            }
            if rest.is_empty() && out.len() < out.capacity() {
                return out.ends_with(&BLOCK_END);
            }
            out.reserve(message.len() / 4 + 64);
        }
    });
    let end = if is_shorter { out.len() - BLOCK_END.len() } else { begin };
    out.truncate(end);
    is_shorter
}

thread_local! {
    /// Some 300 KB, made where the first message is deflated.
    static DEFLATER: RefCell<Compress> = RefCell::new(Compress::new(Compression::new(LEVEL), false));
}

/// Makes messages whole again.
#[derive(Debug)]
pub(crate) struct Inflater {
    raw: Decompress,
    out: Vec<u8>,
    /// How often what was deflated has ended within a message.
    ends: u32,
}

/// Why a message is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotInflated {
    /// It would become longer than it may be. No more than that was inflated.
    TooLong,
    /// It is nothing that was deflated.
    Corrupt,
}

impl Default for Inflater {
    fn default() -> Self {
        Self { raw: Decompress::new(false), out: Vec::new(), ends: 0 }
    }
}

impl Inflater {
    /// What `deflated`, the payload of a whole message, was made of.
    pub(crate) fn inflate(
        &mut self,
        deflated: &[u8],
        bytes_max: usize,
    ) -> Result<&[u8], NotInflated> {
        self.raw.reset(false);
        self.out.clear();
        self.out.shrink_to(OUT_BYTES_KEPT);
        self.ends = 0;
        self.feed(deflated, bytes_max)?;
        self.feed(&BLOCK_END, bytes_max)?;
        // Of what is cut somewhere within, this is no end.
        match self.feed(&STREAM_END, bytes_max)? {
            true => Ok(&self.out),
            false => Err(NotInflated::Corrupt),
        }
    }

    /// Inflates so much more; whether that is where the stream ends.
    fn feed(&mut self, mut input: &[u8], bytes_max: usize) -> Result<bool, NotInflated> {
        loop {
            if self.out.len() == self.out.capacity() {
                let room = bytes_max.saturating_add(1).saturating_sub(self.out.len());
                self.out.reserve_exact(room.min(self.out.len().max(OUT_BYTES_STEP)));
            }
            let (before_in, before_out) = (self.raw.total_in(), self.out.len());
            let status = self
                .raw
                .decompress_vec(input, &mut self.out, FlushDecompress::None)
                .map_err(|_| NotInflated::Corrupt)?;
            let taken = (self.raw.total_in() - before_in) as usize;
            input = &input[taken..];
            if bytes_max < self.out.len() {
                return Err(NotInflated::TooLong);
            }
            let is_full = self.out.len() == self.out.capacity();
            match status {
                Status::StreamEnd if input.is_empty() => return Ok(true),
                // Some end a message by a last block, and then another follows.
                Status::StreamEnd if self.ends < ENDS_MAX => {
                    self.ends += 1;
                    self.raw.reset(false);
                }
                Status::StreamEnd => return Err(NotInflated::Corrupt),
                _ if input.is_empty() && !is_full => return Ok(false),
                _ if taken == 0 && before_out == self.out.len() && !is_full => {
                    return Err(NotInflated::Corrupt);
                }
                _ => {}
            }
        }
    }
}

const NAME: &str = "permessage-deflate";

/// What RFC 7692 allows.
const WINDOW_BITS_MIN: u8 = 8;
const WINDOW_BITS_MAX: u8 = 15;

/// What every deflated message ends with, and leaves out.
const BLOCK_END: [u8; 4] = [0, 0, 0xff, 0xff];

/// An empty last block.
const STREAM_END: [u8; 5] = [1, 0, 0, 0xff, 0xff];

/// Quick: each message is deflated while others wait.
const LEVEL: u32 = 3;

const OUT_BYTES_STEP: usize = 4096;

/// The room is given back when a message was longer.
const OUT_BYTES_KEPT: usize = 64 << 10;

/// Each end costs as much as a thousand bytes.
const ENDS_MAX: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn deflated(message: &[u8]) -> Vec<u8> {
        let mut out = b"before".to_vec();
        assert!(deflate(message, &mut out));
        out.split_off(6)
    }

    #[test]
    fn offers_are_taken_or_left_as_they_are_written() {
        let plain = Agreed::default();
        let window = |bits| Agreed { server_window_bits: Some(bits) };
        for (text, expected) in [
            ("permessage-deflate", Some(plain)),
            ("permessage-deflate; client_max_window_bits", Some(plain)),
            ("permessage-deflate ;\tclient_max_window_bits=10", Some(plain)),
            (
                "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
                Some(plain),
            ),
            ("permessage-deflate; server_max_window_bits=8", Some(window(8))),
            ("permessage-deflate; server_max_window_bits=\"12\"", Some(window(12))),
            ("permessage-deflate; server_max_window_bits=15", Some(window(15))),
            ("x-webkit-deflate-frame, permessage-deflate", Some(plain)),
            ("foo; bar=\",permessage-deflate,\"", None),
            // One that is wrong is passed over for the next.
            ("permessage-deflate; server_max_window_bits=7, permessage-deflate", Some(plain)),
            ("permessage-deflate; server_max_window_bits", None),
            ("permessage-deflate; server_max_window_bits=16", None),
            ("permessage-deflate; server_max_window_bits=09", None),
            ("permessage-deflate; server_max_window_bits=+9", None),
            ("permessage-deflate; client_max_window_bits=7", None),
            ("permessage-deflate; client_max_window_bits=", None),
            ("permessage-deflate; server_no_context_takeover=1", None),
            ("permessage-deflate; client_no_context_takeover; client_no_context_takeover", None),
            ("permessage-deflate; unknown", None),
            ("permessage-deflate;", None),
            ("permessage-deflated", None),
            ("", None),
        ] {
            assert_eq!(Agreed::of([text]), expected, "{text}");
        }
        assert_eq!(Agreed::of(["foo", "permessage-deflate"]), Some(plain));
        let told = window(10).answer();
        assert_eq!(
            told,
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=10"
        );
        assert_eq!((window(10).message_bytes_max(), plain.message_bytes_max()), (1024, usize::MAX));
    }

    #[test]
    fn what_is_deflated_is_inflated() {
        let mut inflater = Inflater::default();
        for len in [200, 5000, 65_536, 1_000_000] {
            let message: Vec<u8> = (0..len).map(|at| (at % 251 * (at / 1000) % 7) as u8).collect();
            let made = deflated(&message);
            assert!(made.len() < message.len() / 2, "{len}: {}", made.len());
            assert_eq!(inflater.inflate(&made, len), Ok(&*message));
            assert_eq!(inflater.inflate(&made, len - 1), Err(NotInflated::TooLong));
        }
        let mut noise = 1_u64;
        let random: Vec<u8> = std::iter::repeat_with(|| {
            noise = noise
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (noise >> 33) as u8
        })
        .take(10_000)
        .collect();
        let mut out = b"before".to_vec();
        assert!(!deflate(&random, &mut out) && out == b"before");
    }

    /// The examples of section 7.2.3 of the RFC.
    #[test]
    fn what_the_rfc_shows_is_understood() {
        let mut inflater = Inflater::default();
        for (what, deflated, message) in [
            ("a fixed block", &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00][..], "Hello"),
            (
                "a stored block",
                &[0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00],
                "Hello",
            ),
            ("a last block", &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00], "Hello"),
            (
                "two blocks",
                &[0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00],
                "Hello",
            ),
            ("nothing", &[0x00], ""),
        ] {
            assert_eq!(inflater.inflate(deflated, 5), Ok(message.as_bytes()), "{what}");
        }
    }

    #[test]
    fn what_is_none_is_refused_and_a_bomb_does_not_go_off() {
        let mut inflater = Inflater::default();
        let whole = deflated(&[b'x'; 1000]);
        for (what, bytes) in [
            ("nothing at all", &[][..]),
            ("a kind of block that there is not", &[0x07, 1, 2, 3]),
            ("a beginning", &whole[..whole.len() - 2]),
            ("text", b"{\"op\":\"publish\"}"),
            ("too far back", &[0x02, 0x02, 0x00]),
        ] {
            assert_eq!(inflater.inflate(bytes, 10_000), Err(NotInflated::Corrupt), "{what}");
        }
        let mut ends = [0x03, 0x00].repeat(2000);
        ends.push(0);
        assert_eq!(inflater.inflate(&ends, 10_000), Err(NotInflated::Corrupt));
        let bomb = deflated(&vec![0; 100_000_000]);
        assert!(bomb.len() < 1_000_000);
        assert_eq!(inflater.inflate(&bomb, 10_000), Err(NotInflated::TooLong));
        assert!(inflater.out.capacity() < 100_000);
        // It is as good as new.
        assert_eq!(inflater.inflate(&whole, 1000), Ok(&[b'x'; 1000][..]));
    }
}

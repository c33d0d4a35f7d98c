//! What is in the quotes of a JSON text.

/// How many bytes at the beginning stand for themselves: neither a quote, nor a backslash, nor a control character.
#[inline]
pub(super) fn plain(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let mut at = 0;
    // Most texts end in the first words; long ones are mostly plain, and blocks of them are compared at once.
    for round in 0.. {
        if round == 4 {
            at += plain_blocks::<BLOCK>(&bytes[at..]);
        }
        let Some(word) = bytes[at..].first_chunk() else { break };
        let special = special(u64::from_le_bytes(*word));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += size_of::<u64>();
    }
    at + bytes[at..].iter().position(|byte| is_special(*byte)).unwrap_or(bytes.len() - at)
}

/// Bytes of the whole blocks at the beginning in which nothing is special.
fn plain_blocks<const BLOCK: usize>(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let is_plain =
        |block: &[u8; BLOCK]| !block.iter().fold(false, |found, byte| found | is_special(*byte));
    blocks.iter().position(|block| !is_plain(block)).unwrap_or(blocks.len()) * BLOCK
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// A word whose lowest set bit is in its first special byte; bits above that one say nothing.
#[inline]
fn special(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGHS: u64 = ONES * 0x80;
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | equal(b'"') | equal(b'\\')) & HIGHS
}

/// Appends a text as JSON, with its quotes.
#[inline]
pub(super) fn write(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at(plain(rest));
        out.extend_from_slice(plain);
        let [byte, after @ ..] = special else { break };
        write_escape(*byte, out);
        rest = after;
    }
    out.push(b'"');
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        8 => b'b',
        12 => b'f',
        control => {
            let hex = |digit: u8| b"0123456789abcdef"[usize::from(digit & 15)];
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(control >> 4), hex(control)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

/// Bytes of the escape at the beginning; none if it is none.
pub(super) fn escape_size(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Some(2),
        [b'\\', b'u', digits @ ..] => hex(digits).map(|_| 6),
        _ => None,
    }
}

/// The text behind the escapes of one that [`escape_size`] found good; else where half a surrogate pair is.
pub(super) fn unescape(text: &str) -> Result<String, usize> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at..];
        let (letter, size) = unescape_one(escape.as_bytes()).ok_or(text.len() - escape.len())?;
        out.push(letter);
        rest = &escape[size..];
    }
    out.push_str(rest);
    Ok(out)
}

fn unescape_one(escape: &[u8]) -> Option<(char, usize)> {
    let letter = match escape.get(1)? {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let first = hex(&escape[2..])?;
            if let Some(letter) = char::from_u32(first.into()) {
                return Some((letter, 6));
            }
            let [b'\\', b'u', second @ ..] = escape.get(6..)? else { return None };
            let pair = char::decode_utf16([first, hex(second)?]).next()?.ok()?;
            return Some((pair, 12));
        }
        letter => char::from(*letter),
    };
    Some((letter, 2))
}

fn hex(digits: &[u8]) -> Option<u16> {
    let digits = digits.get(..4)?;
    digits.iter().try_fold(0, |value, digit| {
        Some(value << 4 | u16::try_from(char::from(*digit).to_digit(16)?).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_special_byte_is_found_wherever_it_is() {
        for length in 0..150 {
            let text = vec![b'a'; length];
            assert_eq!(plain(&text), length);
            for at in 0..length {
                for special in [0, 1, 0x1f, b'"', b'\\'] {
                    let mut text = text.clone();
                    text[at] = special;
                    assert_eq!(plain(&text), at, "{special} at {at} of {length}");
                    text[length - 1] = b'"';
                    assert_eq!(plain(&text), at);
                }
                for other in [0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
                    let mut text = text.clone();
                    text[at] = other;
                    assert_eq!(plain(&text), length, "{other} at {at} of {length}");
                }
            }
        }
    }

    #[test]
    fn texts_are_written_and_read_back() {
        let check = |text: &str, json: &str| {
            let mut out = Vec::new();
            write(text, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), format!("\"{json}\""));
            assert_eq!(unescape(json).unwrap(), text);
        };
        check("", "");
        check("plain", "plain");
        check("a\"b\\c/d", r#"a\"b\\c/d"#);
        check("\n\r\t\u{8}\u{c}\0\u{1f}", r"\n\r\t\b\f\u0000\u001f");
        check("ä日本🚁\u{7f}\u{2028}", "ä日本🚁\u{7f}\u{2028}");
        assert_eq!(unescape(r"\u00e4\u65E5\uD83D\ude81\/").unwrap(), "ä日🚁/");
        assert_eq!(unescape(r"ab\ud83d"), Err(2));
        assert_eq!(unescape(r"ab\ude81"), Err(2));
        assert_eq!(unescape(r"\n\ud83d\u0041"), Err(2));
        assert_eq!(unescape(r"\ud83dx"), Err(0));
    }
}

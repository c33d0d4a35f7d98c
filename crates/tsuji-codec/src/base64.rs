//! Bytes as text.

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig, Simd};
use std::sync::LazyLock;

/// Padded when written. Read with or without padding, and whatever the last letter's unused bits are, since encoders
/// disagree there and nothing is lost.
static ENGINE: LazyLock<Simd> = LazyLock::new(|| {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    Simd::standard(config)
});

/// Appends the text of bytes.
pub(crate) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    // There is room for exactly so much.
    let written = ENGINE.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
}

/// Appends the bytes of a text; false, with nothing appended, if it is no base64. White space in it is passed over, as
/// MIME and Python's encoders break lines.
pub(crate) fn decode(text: &[u8], out: &mut Vec<u8>) -> bool {
    if decode_strictly(text, out) {
        return true;
    }
    let letters: Vec<u8> =
        text.iter().copied().filter(|letter| !letter.is_ascii_whitespace()).collect();
    letters.len() < text.len() && decode_strictly(&letters, out)
}

fn decode_strictly(text: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.resize(start + text.len().div_ceil(4) * 3, 0);
    let written = ENGINE.decode_slice(text, &mut out[start..]);
    out.truncate(start + *written.as_ref().unwrap_or(&0));
    written.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_texts() {
        let check = |bytes: &[u8], text: &str| {
            let mut out = b"x".to_vec();
            encode(bytes, &mut out);
            assert_eq!(out, format!("x{text}").as_bytes());
            let mut out = b"x".to_vec();
            assert!(decode(text.as_bytes(), &mut out));
            assert_eq!(&out[1..], bytes);
        };
        check(b"", "");
        check(b"a", "YQ==");
        check(b"ab", "YWI=");
        check(b"abc", "YWJj");
        check(&[0xff; 70], &format!("{}/w==", "////".repeat(23)));
        let read = |text: &str| {
            let mut out = Vec::new();
            decode(text.as_bytes(), &mut out).then_some(out)
        };
        assert_eq!(read("YQ"), Some(b"a".to_vec()), "no padding");
        assert_eq!(read("YR=="), Some(b"a".to_vec()), "bits that nobody uses");
        assert_eq!(read("YW\r\nJj\n"), Some(b"abc".to_vec()), "lines");
        for bad in ["Y", "Y===", "YQ=a", "Y-Jj", "ä", "YQ==YQ=="] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}

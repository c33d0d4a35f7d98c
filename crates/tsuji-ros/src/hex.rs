use std::fmt;

/// Bytes as lower-case hexadecimal digits.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The 16 bytes that exactly 32 hexadecimal digits stand for.
pub(crate) fn sixteen_bytes(digits: &[u8]) -> Option<[u8; 16]> {
    let digits: &[u8; 32] = digits.try_into().ok()?;
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_read_back() {
        let bytes = *b"\x00\x01\x0f\x10\x7f\x80\xa5\xff01234567";
        let text = Hex(&bytes).to_string();
        assert_eq!(text, "00010f107f80a5ff3031323334353637");
        assert_eq!(sixteen_bytes(text.as_bytes()), Some(bytes));
        assert_eq!(sixteen_bytes(&text.as_bytes()[1..]), None);
        assert_eq!(sixteen_bytes(text.replace('a', "g").as_bytes()), None);
        assert_eq!(sixteen_bytes(text.replace("00", "+0").as_bytes()), None);
    }
}

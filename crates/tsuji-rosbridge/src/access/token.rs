use std::fmt;

use sha2::{Digest, Sha256};

/// What a client says to be a user. Kept and compared as its SHA-256, so that how long it takes tells nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; 32]);

impl Token {
    /// That of a text; none of an empty one.
    pub fn new(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(Sha256::digest(text.as_bytes()).into()))
    }

    /// That whose SHA-256 is this, 64 digits of hexadecimal.
    pub fn from_sha256(hex: &str) -> Option<Self> {
        bytes_of_hex(hex).map(Self)
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        same(&self.0, &other.0)
    }
}

/// It is nobody's business, not even that of a log.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(_)")
    }
}

/// Whether both are the same, in a time that only their length decides.
pub(super) fn same<const N: usize>(a: &[u8; N], b: &[u8; N]) -> bool {
    a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// The bytes that so many digits of hexadecimal are, in either case.
pub(super) fn bytes_of_hex<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let digits = hex.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |of: u8| char::from(of).to_digit(16).map(|it| it as u8);
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

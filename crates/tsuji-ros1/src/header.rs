//! Connection headers of TCPROS: what the two ends of a connection tell each other first.
//!
//! A header is a length of 4 bytes, little endian, and then fields, each a length of 4 bytes and `name=value`. The names and
//! what they mean are those of <http://wiki.ros.org/ROS/Connection%20Header>.

use std::fmt;

/// The longest header that is taken, in bytes. Definitions of messages make up most of one.
pub const HEADER_BYTES_MAX: usize = 4 << 20;

/// The most fields that are taken.
pub const FIELDS_MAX: usize = 64;

/// The fields of a connection header, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header(Vec<(String, String)>);

/// What is wrong with a connection header.
#[derive(Clone, PartialEq, Eq)]
pub enum HeaderError {
    /// It, or a field of it, says that it is longer than what is taken, or than what holds it.
    Length(u64),
    /// A field has no `=`.
    Field(String),
    /// There are more fields than are taken.
    Fields,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => write!(
                f,
                "connection header: a length of {length}; allowed: what holds it, and at most {HEADER_BYTES_MAX}"
            ),
            Self::Field(field) => {
                write!(f, "connection header: the field {field:?}; allowed: name=value")
            }
            Self::Fields => write!(f, "connection header: more than {FIELDS_MAX} fields"),
        }
    }
}

impl std::error::Error for HeaderError {}

impl Header {
    /// Creates a header of these fields.
    pub fn new<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(fields.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Creates a header that says why a connection is refused.
    pub fn refusal(why: &str) -> Self {
        Self::new([("error", why)])
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// True if the field is there and says `1`.
    pub fn is_set(&self, name: &str) -> bool {
        self.get(name) == Some("1")
    }

    /// Adds a field.
    pub fn push(&mut self, name: &str, value: &str) {
        self.0.push((name.to_owned(), value.to_owned()));
    }

    /// The header as bytes, with its length first.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        for (name, value) in &self.0 {
            let length = u32::try_from(name.len() + 1 + value.len()).unwrap_or(u32::MAX);
            bytes.extend(length.to_le_bytes());
            bytes.extend(name.as_bytes());
            bytes.push(b'=');
            bytes.extend(value.as_bytes());
        }
        let length = u32::try_from(bytes.len() - 4).unwrap_or(u32::MAX);
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    /// How many bytes a header has, with its length, that begins with what was received; 4 while that does not say it.
    pub fn wanted(received: &[u8]) -> usize {
        let length = received.first_chunk().map_or(0, |it| u32::from_le_bytes(*it) as usize);
        4 + length.min(HEADER_BYTES_MAX)
    }

    /// Takes a whole header off the front of what was received; none while it is not whole. Answers how many bytes it has.
    ///
    /// # Errors
    ///
    /// [`HeaderError`] if what has come can never be a header.
    pub fn take(received: &[u8]) -> Result<Option<(Self, usize)>, HeaderError> {
        let Some((length, rest)) = received.split_first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if HEADER_BYTES_MAX < length {
            return Err(HeaderError::Length(length as u64));
        }
        let Some(fields) = rest.get(..length) else { return Ok(None) };
        Ok(Some((Self::parse(fields)?, 4 + length)))
    }

    /// Reads the fields, without the length of the whole.
    ///
    /// # Errors
    ///
    /// [`HeaderError`] if a field is not whole or no field.
    pub fn parse(mut bytes: &[u8]) -> Result<Self, HeaderError> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            if fields.len() == FIELDS_MAX {
                return Err(HeaderError::Fields);
            }
            let Some((length, rest)) = bytes.split_first_chunk() else {
                return Err(HeaderError::Length(bytes.len() as u64));
            };
            let length = u32::from_le_bytes(*length);
            let Some((field, rest)) = rest.split_at_checked(length as usize) else {
                return Err(HeaderError::Length(length.into()));
            };
            // Comments in definitions may be of any encoding, and mean nothing.
            let field = String::from_utf8_lossy(field);
            let Some((name, value)) = field.split_once('=') else {
                return Err(HeaderError::Field(field.chars().take(80).collect()));
            };
            fields.push((name.to_owned(), value.to_owned()));
            bytes = rest;
        }
        Ok(Self(fields))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_header_is_read_once_it_is_whole() {
        let header = Header::new([("topic", "/chatter"), ("md5sum", "*"), ("latching", "1")]);
        let bytes = header.encode();
        for length in 0..bytes.len() {
            assert_eq!(Header::take(&bytes[..length]), Ok(None));
            assert_eq!(Header::wanted(&bytes[..length]), if length < 4 { 4 } else { bytes.len() });
        }
        let mut more = bytes.clone();
        more.extend(b"and what follows");
        assert_eq!(Header::take(&more), Ok(Some((header.clone(), bytes.len()))));
        assert_eq!(header.get("topic"), Some("/chatter"));
        assert!(header.is_set("latching") && !header.is_set("topic") && !header.is_set("none"));
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let endless = Header::take(&[0xff; 8]);
        assert_eq!(endless, Err(HeaderError::Length(u32::MAX.into())));
        // An element that is longer than what holds it.
        assert_eq!(Header::take(b"\x06\0\0\0\x09\0\0\0ab"), Err(HeaderError::Length(9)));
        assert_eq!(Header::take(b"\x02\0\0\0ab"), Err(HeaderError::Length(2)));
        let no_value = Header::take(b"\x06\0\0\0\x02\0\0\0ab");
        assert_eq!(no_value, Err(HeaderError::Field("ab".to_owned())));
        let mut many = Header::default();
        (0..=FIELDS_MAX).for_each(|_| many.push("a", "b"));
        assert_eq!(Header::take(&many.encode()), Err(HeaderError::Fields));
        let refusal = Header::refusal("no");
        assert_eq!(refusal.encode(), b"\x0c\0\0\0\x08\0\0\0error=no");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_refused(bytes: Vec<u8>) {
            if let Ok(Some((header, length))) = Header::take(&bytes)
                && std::str::from_utf8(&bytes[4..length]).is_ok()
            {
                prop_assert_eq!(header.encode(), &bytes[..length]);
            }
        }

        #[test]
        fn what_is_written_is_read(fields in prop::collection::vec(("[a-z_0-9]{1,9}", ".{0,40}"), 0..9)) {
            let fields = fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let header = Header::new(fields);
            let bytes = header.encode();
            prop_assert_eq!(Header::take(&bytes), Ok(Some((header, bytes.len()))));
        }
    }
}

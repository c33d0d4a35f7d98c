//! Names of X.509, compared part by part.

use x509_parser::x509::{RelativeDistinguishedName, X509Name};

/// A name: its parts, each with one attribute or several, which are an OID and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(Vec<Vec<(String, String)>>);

impl Name {
    /// That of a certificate; none if a value of it is no text.
    pub(crate) fn of(name: &X509Name<'_>) -> Option<Self> {
        let part = |part: &RelativeDistinguishedName<'_>| {
            let attributes = part
                .iter()
                .map(|it| Some((it.attr_type().to_id_string(), it.as_str().ok()?.to_owned())));
            attributes.collect::<Option<_>>().map(sorted)
        };
        name.iter_rdn().map(part).collect::<Option<_>>().map(Self)
    }

    /// Reads one as RFC 2253 writes it, or OpenSSL with blanks between; none if it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let part = |text: &str| {
            let attributes = pieces(text, '+')?.into_iter().map(|it| {
                let (key, value) = it.split_once('=')?;
                let value = unescaped(value)?;
                (!value.is_empty()).then(|| (oid(key.trim()), value))
            });
            attributes.collect::<Option<_>>().map(sorted)
        };
        pieces(text, ',')?.into_iter().map(part).collect::<Option<_>>().map(Self)
    }

    /// Whether the two are one, from either end: who writes them begins with either.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0 == other.0 || self.0.iter().eq(other.0.iter().rev())
    }
}

fn sorted(mut attributes: Vec<(String, String)>) -> Vec<(String, String)> {
    attributes.sort();
    attributes
}

/// What is between separators that no backslash and no quotes keep.
fn pieces(text: &str, between: char) -> Option<Vec<&str>> {
    let (mut pieces, mut begin, mut is_escaped, mut is_quoted) = (Vec::new(), 0, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            it if it == between && !is_quoted => {
                pieces.push(&text[begin..at]);
                begin = at + it.len_utf8();
            }
            _ => {}
        }
    }
    pieces.push(&text[begin..]);
    (!is_escaped && !is_quoted).then_some(pieces)
}

/// A value without blanks around it, backslashes and quotes.
fn unescaped(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(text);
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let first = rest.next()?;
        // Two digits are a byte; anything else stands for itself.
        let digits = [Some(first), rest.clone().next()].map(|it| char::from(it?).to_digit(16));
        if let [Some(high), Some(low)] = digits {
            rest.next();
            bytes.push((high * 16 + low) as u8);
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8(bytes).ok()
}

/// The OID that a key stands for, or the key.
fn oid(key: &str) -> String {
    let known = KEYS.iter().find(|(it, _)| it.eq_ignore_ascii_case(key));
    known.map_or_else(|| key.trim_start_matches("OID.").to_owned(), |it| it.1.to_owned())
}

/// The keys of RFC 4514 and those that OpenSSL writes besides.
const KEYS: [(&str, &str); 16] = [
    ("CN", "2.5.4.3"),
    ("SN", "2.5.4.4"),
    ("serialNumber", "2.5.4.5"),
    ("C", "2.5.4.6"),
    ("L", "2.5.4.7"),
    ("ST", "2.5.4.8"),
    ("S", "2.5.4.8"),
    ("street", "2.5.4.9"),
    ("O", "2.5.4.10"),
    ("OU", "2.5.4.11"),
    ("GN", "2.5.4.42"),
    ("DC", "0.9.2342.19200300.100.1.25"),
    ("UID", "0.9.2342.19200300.100.1.1"),
    ("emailAddress", "1.2.840.113549.1.9.1"),
    ("Email", "1.2.840.113549.1.9.1"),
    ("E", "1.2.840.113549.1.9.1"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_however_they_are_written() {
        let name = |text| Name::parse(text).unwrap_or_else(|| panic!("{text}"));
        let is_same = |one, other| name(one).is_same(&name(other));
        for (one, other) in [
            ("CN=/talker", "CN = /talker"),
            ("C=JP, O=Acme, CN=robot", "CN=robot,O=Acme,C=JP"),
            ("C = JP, O = \"Acme, Inc.\", CN = robot", r"CN=robot,O=Acme\, Inc.,C=JP"),
            (r"O=a\+b", r"O=a\2Bb"),
            ("CN=a+OU=b,O=c", "OU=b+CN=a,O=c"),
            ("emailAddress=a@b.c,CN=a", "Email=a@b.c, CN=a"),
            ("UID=7", "uid=7"),
            ("CN=abba", "CN=abba"),
            (r"CN=f\C3\BCr", "CN=für"),
        ] {
            assert!(is_same(one, other), "{one} {other}");
        }
        for (one, other) in [
            (r"CN=victim\,O=Acme", "O=Acme,CN=victim"),
            ("CN=a", "CN=A"),
            ("CN=a,O=b", "CN=a"),
            ("CN=a+O=b", "CN=a,O=b"),
            ("CN=a,O=b,C=c", "O=b,CN=a,C=c"),
            ("CN=a", "OU=a"),
        ] {
            assert!(!is_same(one, other), "{one} {other}");
        }
        for text in ["", "CN", "CN=", "CN=a,", r"CN=a\", "CN=\"a", ",CN=a"] {
            assert_eq!(Name::parse(text), None, "{text}");
        }
    }
}

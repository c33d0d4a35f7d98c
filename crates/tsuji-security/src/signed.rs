//! Documents with a signature beside them: S/MIME with a detached signature, as DDS Security asks for and SROS2 writes.

use cms::content_info::ContentInfo;
use cms::signed_data::{SignedData, SignerInfo};
use data_encoding::BASE64;
use der::asn1::{ObjectIdentifier, OctetString};
use der::{Decode, Encode};

use crate::certificate::{Certificate, Digest};

/// The document in a signed file, if `authority` has signed it.
///
/// # Errors
///
/// What is wrong with the file, or that somebody else has signed it.
pub(crate) fn verified(file: &[u8], authority: &Certificate) -> Result<Vec<u8>, String> {
    let (content, signature) = parts(file)?;
    let signature = decoded(signature).ok_or("has a signature that is not in base 64")?;
    let infos = signed_data(&signature).ok_or("has a signature that is none of CMS")?;
    let mut why = format!("is not signed by {}, or was changed since", authority.subject());
    for info in infos.signer_infos.0.iter() {
        match is_signed(info, &content, authority) {
            Some(true) => return Ok(body(&content).to_vec()),
            Some(false) => {}
            None => why = format!("is signed by means that are not trusted; allowed: {TRUSTED}"),
        }
    }
    Err(why)
}

/// The signed part, with line ends as they were signed, and the signature.
fn parts(file: &[u8]) -> Result<(Vec<u8>, &str), String> {
    let text = std::str::from_utf8(file).map_err(|_| "is not UTF-8".to_owned())?;
    let (head, rest) = split_head(text).ok_or("has no head of S/MIME")?;
    let boundary = boundary(head).ok_or("is no signed file: its head names no parts")?;
    let mark = format!("--{boundary}");
    let mut begins = Vec::new();
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end().strip_prefix(&mark).is_some_and(|it| matches!(it, "" | "--")) {
            begins.push((at, at + line.len()));
        }
        at += line.len();
    }
    let [(_, content), (content_end, signature), (signature_end, _)] = begins[..] else {
        return Err("has other parts than two: the document and its signature".to_owned());
    };
    let content = rest[content..content_end].trim_end_line();
    let signature = &rest[signature..signature_end];
    let (_, signature) = split_head(signature).ok_or("has a signature without a head")?;
    // What was signed has line ends of the network.
    let content = content.replace("\r\n", "\n").replace('\n', "\r\n");
    Ok((content.into_bytes(), signature))
}

trait EndLine {
    /// Without the line end before the mark, which is the mark's.
    fn trim_end_line(&self) -> &str;
}

impl EndLine for str {
    fn trim_end_line(&self) -> &str {
        let it = self.strip_suffix('\n').unwrap_or(self);
        it.strip_suffix('\r').unwrap_or(it)
    }
}

/// What is before an empty line, and what is behind it.
fn split_head(text: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end_matches(['\r', '\n']).is_empty() {
            return Some((&text[..at], &text[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// What stands between the parts.
fn boundary(head: &str) -> Option<String> {
    let lower = head.to_ascii_lowercase();
    if !lower.contains("multipart/signed") {
        return None;
    }
    let at = lower.find("boundary=")? + "boundary=".len();
    let value = &head[at..];
    let value = match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => value.split([';', '\r', '\n', ' ']).next()?,
    };
    (!value.is_empty()).then(|| value.to_owned())
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let letters: Vec<u8> = text.bytes().filter(|it| !it.is_ascii_whitespace()).collect();
    BASE64.decode(&letters).ok()
}

fn signed_data(der: &[u8]) -> Option<SignedData> {
    let info = ContentInfo::from_der(der).ok()?;
    if info.content_type != SIGNED_DATA {
        return None;
    }
    info.content.decode_as().ok()
}

/// Whether `authority` has signed it; none where it is signed by means that prove nothing.
fn is_signed(info: &SignerInfo, content: &[u8], authority: &Certificate) -> Option<bool> {
    let digest = match info.digest_alg.oid {
        SHA_256 => Digest::Sha256,
        SHA_384 => Digest::Sha384,
        SHA_512 => Digest::Sha512,
        // Older ones are broken.
        _ => return None,
    };
    let signature = info.signature.as_bytes();
    let Some(attributes) = &info.signed_attrs else {
        return authority.has_signed(content, digest, signature);
    };
    // What is signed then are attributes, of which one is the digest, and one says that it is of data.
    let stated = |oid| {
        let mut values =
            attributes.iter().filter(|it| it.oid == oid).flat_map(|it| it.values.iter());
        values.next().filter(|_| values.next().is_none())
    };
    let of_data = stated(CONTENT_TYPE).and_then(|it| it.decode_as::<ObjectIdentifier>().ok());
    let stated = stated(MESSAGE_DIGEST).and_then(|it| it.decode_as::<OctetString>().ok());
    let is_stated =
        of_data == Some(DATA) && stated.is_some_and(|it| it.as_bytes() == digest.of(content));
    let signed = attributes.to_der().unwrap_or_default();
    authority.has_signed(&signed, digest, signature).map(|it| it && is_stated)
}

/// What is behind the head that a text has in MIME.
fn body(content: &[u8]) -> &[u8] {
    let begin = content.iter().position(|it| !it.is_ascii_whitespace()).unwrap_or_default();
    if content[begin..].first() == Some(&b'<') {
        return &content[begin..];
    }
    let end = content.windows(4).position(|it| it == b"\r\n\r\n");
    end.map_or(content, |it| &content[it + 4..])
}

const TRUSTED: &str =
    "ECDSA on P-256 or P-384, RSA of at least 2048 bits, with SHA-256, SHA-384 or SHA-512";
pub(crate) const DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.1");
pub(crate) const SIGNED_DATA: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
pub(crate) const CONTENT_TYPE: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.3");
pub(crate) const MESSAGE_DIGEST: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
pub(crate) const SHA_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
pub(crate) const SHA_384: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
pub(crate) const SHA_512: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");

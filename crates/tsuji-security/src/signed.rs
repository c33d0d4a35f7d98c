//! Documents with a signature beside them: S/MIME with a detached signature, as DDS Security asks for and SROS2 writes.

use std::error::Error;
use std::fmt::Write;

use cms::cert::x509;
use cms::cert::x509::attr::Attribute;
use cms::cert::x509::spki::AlgorithmIdentifierOwned;
use cms::cert::{CertificateChoices, IssuerAndSerialNumber};
use cms::content_info::{CmsVersion, ContentInfo};
use cms::signed_data::{EncapsulatedContentInfo, SignedData, SignerIdentifier, SignerInfo};
use data_encoding::{BASE64, HEXLOWER};
use der::asn1::{Null, ObjectIdentifier, OctetString, SetOfVec};
use der::{Any, Decode, Encode};
use rcgen::{KeyPair, SigningKey as _};

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

/// A document as a signed file, with the signature of `authority`, whose key this is.
///
/// # Errors
///
/// Why there is none.
pub(crate) fn signed(
    document: &str,
    authority: &Certificate,
    key: &KeyPair,
) -> Result<Vec<u8>, String> {
    let document = document.replace("\r\n", "\n");
    if document.contains('\r') {
        return Err(
            "has a carriage return that ends no line, which is not signed alike by all".into()
        );
    }
    let content = format!("Content-Type: text/plain\n\n{document}");
    let digest = digest_with(key)?;
    let micalg = if digest == Digest::Sha256 { "sha-256" } else { "sha-384" };
    let signature = signature(content.replace('\n', "\r\n").as_bytes(), digest, authority, key)
        .map_err(|error| format!("cannot be signed: {error}"))?;
    // No line of the document is it, since that would be in its own digest.
    let boundary = format!("----{}", HEXLOWER.encode(&digest.of(content.as_bytes())[..16]));
    let mut file = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/signed; protocol=\"application/x-pkcs7-signature\"; micalg=\"{micalg}\"; \
         boundary=\"{boundary}\"\n\nThis is an S/MIME signed message\n\n--{boundary}\n{content}\n--{boundary}\n\
         Content-Type: application/x-pkcs7-signature; name=\"smime.p7s\"\nContent-Transfer-Encoding: base64\n\
         Content-Disposition: attachment; filename=\"smime.p7s\"\n\n"
    );
    for line in BASE64.encode(&signature).as_bytes().chunks(64) {
        file.push_str(&String::from_utf8_lossy(line));
        file.push('\n');
    }
    let _ = write!(file, "\n--{boundary}--\n\n");
    Ok(file.into_bytes())
}

/// The signature of CMS for what stands beside it.
fn signature(
    content: &[u8],
    digest: Digest,
    authority: &Certificate,
    key: &KeyPair,
) -> Result<Vec<u8>, Box<dyn Error>> {
    let certificate = x509::Certificate::from_der(authority.der())?;
    let algorithm = |oid, parameters| AlgorithmIdentifierOwned { oid, parameters };
    let attribute =
        |oid, value: Any| SetOfVec::try_from(vec![value]).map(|values| Attribute { oid, values });
    let attributes = SetOfVec::try_from(vec![
        attribute(CONTENT_TYPE, Any::encode_from(&DATA)?)?,
        attribute(MESSAGE_DIGEST, Any::encode_from(&OctetString::new(digest.of(content))?)?)?,
    ])?;
    let of_digest = match digest {
        Digest::Sha256 => SHA_256,
        Digest::Sha384 => SHA_384,
        Digest::Sha512 => SHA_512,
    };
    let of_digest = algorithm(of_digest, None);
    let of_signature = match digest {
        _ if key.algorithm() == &rcgen::PKCS_RSA_SHA256 => {
            algorithm(RSA, Some(Any::encode_from(&Null)?))
        }
        Digest::Sha256 => algorithm(ECDSA_SHA_256, None),
        _ => algorithm(ECDSA_SHA_384, None),
    };
    let signer = SignerInfo {
        version: CmsVersion::V1,
        sid: SignerIdentifier::IssuerAndSerialNumber(IssuerAndSerialNumber {
            issuer: certificate.tbs_certificate.issuer.clone(),
            serial_number: certificate.tbs_certificate.serial_number.clone(),
        }),
        digest_alg: of_digest.clone(),
        signature: OctetString::new(key.sign(&attributes.to_der()?)?)?,
        signed_attrs: Some(attributes),
        signature_algorithm: of_signature,
        unsigned_attrs: None,
    };
    let data = SignedData {
        version: CmsVersion::V1,
        digest_algorithms: SetOfVec::try_from(vec![of_digest])?,
        encap_content_info: EncapsulatedContentInfo { econtent_type: DATA, econtent: None },
        certificates: Some(vec![CertificateChoices::Certificate(certificate)].try_into()?),
        crls: None,
        signer_infos: vec![signer].try_into()?,
    };
    let content = Any::encode_from(&data)?;
    Ok(ContentInfo { content_type: SIGNED_DATA, content }.to_der()?)
}

/// What a key of an authority signs documents with.
fn digest_with(key: &KeyPair) -> Result<Digest, String> {
    match key.algorithm() {
        it if it == &rcgen::PKCS_ECDSA_P256_SHA256 || it == &rcgen::PKCS_RSA_SHA256 => {
            Ok(Digest::Sha256)
        }
        it if it == &rcgen::PKCS_ECDSA_P384_SHA384 => Ok(Digest::Sha384),
        _ => {
            Err("cannot be signed: the key of the authority is none of P-256, P-384 or RSA".into())
        }
    }
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
const DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.1");
const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
const CONTENT_TYPE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.3");
const MESSAGE_DIGEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
const SHA_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const SHA_384: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
const SHA_512: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");
const ECDSA_SHA_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
const ECDSA_SHA_384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

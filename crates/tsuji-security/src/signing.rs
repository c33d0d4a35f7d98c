//! Signing documents, as [`signed`](crate::signed) reads them.

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
use crate::signed::{CONTENT_TYPE, DATA, MESSAGE_DIGEST, SHA_256, SHA_384, SHA_512, SIGNED_DATA};

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

const ECDSA_SHA_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
const ECDSA_SHA_384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

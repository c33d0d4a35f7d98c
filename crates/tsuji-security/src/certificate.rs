//! Certificates of X.509, and what they vouch for.

use std::fmt;
use std::time::{Duration, SystemTime};

use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use x509_parser::asn1_rs::Oid;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;

use crate::name::Name;

/// A certificate.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    der: Vec<u8>,
    subject: String,
    name: Name,
    serial: Vec<u8>,
    not_before: SystemTime,
    not_after: SystemTime,
    is_authority: bool,
}

/// The digests that are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digest {
    Sha256,
    Sha384,
    Sha512,
}

impl Digest {
    pub(crate) fn of(self, bytes: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Self::Sha256 => &ring::digest::SHA256,
            Self::Sha384 => &ring::digest::SHA384,
            Self::Sha512 => &ring::digest::SHA512,
        };
        ring::digest::digest(algorithm, bytes).as_ref().to_vec()
    }
}

impl Certificate {
    /// Reads the first certificate of a PEM file.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn from_pem(pem: &[u8]) -> Result<Self, String> {
        let (_, pem) = parse_x509_pem(pem).map_err(|_| "is no PEM file".to_owned())?;
        if pem.label != "CERTIFICATE" {
            return Err(format!("holds {:?}, and no CERTIFICATE", pem.label));
        }
        Self::from_der(pem.contents)
    }

    pub(crate) fn from_der(der: Vec<u8>) -> Result<Self, String> {
        let (rest, read) = X509Certificate::from_der(&der)
            .map_err(|_| "holds no certificate of X.509".to_owned())?;
        if !rest.is_empty() {
            return Err("holds more than a certificate".to_owned());
        }
        let odd = read.extensions().iter().find(|it| {
            it.critical
                && matches!(it.parsed_extension(), ParsedExtension::UnsupportedExtension { .. })
        });
        if let Some(odd) = odd {
            return Err(format!("has a critical extension that is not known here: {}", odd.oid));
        }
        let name = Name::of(read.subject()).ok_or("has a subject that is no text")?;
        // Without a word on its uses a key may be used for all.
        let usage = read.key_usage().map_err(|_| "has uses of its key that are none")?;
        let may_sign = usage.is_none_or(|it| it.value.key_cert_sign());
        let time = |seconds: i64| {
            let since = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
            SystemTime::UNIX_EPOCH + since
        };
        let facts = (
            read.subject().to_string(),
            read.raw_serial().to_vec(),
            time(read.validity().not_before.timestamp()),
            time(read.validity().not_after.timestamp()),
            read.is_ca() && may_sign,
        );
        let (subject, serial, not_before, not_after, is_authority) = facts;
        Ok(Self { der, subject, name, serial, not_before, not_after, is_authority })
    }

    /// Whom it is for, such as `CN=/talker`.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The same by its parts.
    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    /// From when to when it counts.
    pub fn validity(&self) -> (SystemTime, SystemTime) {
        (self.not_before, self.not_after)
    }

    /// Its encoding.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The key that it vouches for, as it is encoded in it.
    pub(crate) fn key(&self) -> Vec<u8> {
        self.read(|it| it.public_key().subject_public_key.data.to_vec()).unwrap_or_default()
    }

    /// Its number among those that its authority has issued, as it is encoded in it.
    pub(crate) fn serial(&self) -> &[u8] {
        &self.serial
    }

    /// Refuses a list of revoked certificates that this authority has not signed.
    pub(crate) fn has_signed_list(
        &self,
        list: &CertificateRevocationList<'_>,
    ) -> Result<(), String> {
        let issuer = list.issuer().as_raw();
        if self.read(|it| it.subject().as_raw() == issuer) != Some(true) {
            return Err(format!("is not of {}", self.subject));
        }
        let may = |it: &X509Certificate<'_>| {
            it.key_usage().is_ok_and(|usage| usage.is_none_or(|it| it.value.crl_sign()))
        };
        if self.read(may) != Some(true) {
            return Err(format!("names {}, whose key may sign no such list", self.subject));
        }
        let algorithm = list.signature_algorithm.algorithm.to_id_string();
        let is_signed = self.read(|it| list.verify_signature(it.public_key()).is_ok());
        self.check_signature(Some(algorithm), is_signed)
    }

    /// Refuses what is signed by an algorithm that is not trusted, or not by this authority, which it names.
    fn check_signature(
        &self,
        algorithm: Option<String>,
        is_signed: Option<bool>,
    ) -> Result<(), String> {
        if !algorithm.is_some_and(|it| SIGNATURES.contains(&&*it)) {
            return Err(format!(
                "is signed by an algorithm that is not trusted; allowed: {SIGNATURES_NAMED}"
            ));
        }
        match is_signed {
            Some(true) => Ok(()),
            _ => Err(format!("is not signed by {}, whom it names", self.subject)),
        }
    }

    /// Whether `authority` has issued it.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn is_issued_by(&self, authority: &Self) -> Result<(), String> {
        if !authority.is_authority {
            return Err(format!("names {}, who may issue no certificates", authority.subject));
        }
        let is_named = self.read(|own| {
            let issuer = own.issuer().as_raw().to_vec();
            authority.read(|it| it.subject().as_raw() == issuer)
        });
        if is_named.flatten() != Some(true) {
            return Err(format!("is not issued by {}", authority.subject));
        }
        let algorithm = self.read(|it| it.signature_algorithm.algorithm.to_id_string());
        let is_signed = self
            .read(|own| authority.read(|it| own.verify_signature(Some(it.public_key())).is_ok()));
        authority.check_signature(algorithm, is_signed.flatten())
    }

    /// Whether it is an authority that vouches for itself, from which trust may begin.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(crate) fn is_anchor(&self) -> Result<(), String> {
        if !self.is_authority {
            return Err("is of no authority: its holder may issue no certificates".to_owned());
        }
        self.is_issued_by(self)
            .map_err(|why| format!("is of no authority that vouches for itself: it {why}"))
    }

    /// Whether it counts at a time.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn is_valid_at(&self, now: SystemTime) -> Result<(), String> {
        is_within(self.validity(), now)
    }

    /// Whether whoever has its key has signed this; none where a signature by such a key and such a digest proves nothing.
    pub(crate) fn has_signed(&self, message: &[u8], digest: Digest, signed: &[u8]) -> Option<bool> {
        let algorithm = self.algorithm(digest)?;
        Some(UnparsedPublicKey::new(algorithm, self.key()).verify(message, signed).is_ok())
    }

    fn algorithm(&self, digest: Digest) -> Option<&'static dyn VerificationAlgorithm> {
        let [key, curve] = self.read(|it| {
            let algorithm = &it.public_key().algorithm;
            let curve = algorithm.parameters.as_ref().and_then(|it| Oid::try_from(it.clone()).ok());
            [
                algorithm.algorithm.to_id_string(),
                curve.map_or_else(String::new, |it| it.to_id_string()),
            ]
        })?;
        Some(match (key.as_str(), curve.as_str(), digest) {
            (EC, P_256, Digest::Sha256) => &signature::ECDSA_P256_SHA256_ASN1,
            (EC, P_256, Digest::Sha384) => &signature::ECDSA_P256_SHA384_ASN1,
            (EC, P_384, Digest::Sha256) => &signature::ECDSA_P384_SHA256_ASN1,
            (EC, P_384, Digest::Sha384) => &signature::ECDSA_P384_SHA384_ASN1,
            (RSA, _, Digest::Sha256) => &signature::RSA_PKCS1_2048_8192_SHA256,
            (RSA, _, Digest::Sha384) => &signature::RSA_PKCS1_2048_8192_SHA384,
            (RSA, _, Digest::Sha512) => &signature::RSA_PKCS1_2048_8192_SHA512,
            _ => return None,
        })
    }

    fn read<T>(&self, of: impl FnOnce(&X509Certificate<'_>) -> T) -> Option<T> {
        // It was read before.
        X509Certificate::from_der(&self.der).ok().map(|(_, it)| of(&it))
    }
}

/// What authorities sign with: ECDSA and RSA with SHA-2, Ed25519.
const SIGNATURES: [&str; 7] = [
    "1.2.840.10045.4.3.2",
    "1.2.840.10045.4.3.3",
    "1.2.840.10045.4.3.4",
    "1.2.840.113549.1.1.11",
    "1.2.840.113549.1.1.12",
    "1.2.840.113549.1.1.13",
    "1.3.101.112",
];
const SIGNATURES_NAMED: &str = "ECDSA or RSA with SHA-256, SHA-384 or SHA-512, Ed25519";
const EC: &str = "1.2.840.10045.2.1";
const RSA: &str = "1.2.840.113549.1.1.1";
const P_256: &str = "1.2.840.10045.3.1.7";
const P_384: &str = "1.3.132.0.34";

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("subject", &self.subject).finish_non_exhaustive()
    }
}

/// Whether a time is within two others.
pub(crate) fn is_within(
    (first, last): (SystemTime, SystemTime),
    now: SystemTime,
) -> Result<(), String> {
    let between = |from: SystemTime, to: SystemTime| {
        let seconds = to.duration_since(from).unwrap_or_default().as_secs();
        let (count, unit) = match seconds {
            172_800.. => (seconds / 86_400, "days"),
            7200.. => (seconds / 3600, "hours"),
            _ => (seconds.div_ceil(60), "minutes"),
        };
        format!("{count} {}", if count == 1 { &unit[..unit.len() - 1] } else { unit })
    };
    match () {
        () if now < first => Err(format!("counts only in {}", between(now, first))),
        () if last < now => Err(format!("has expired {} ago", between(last, now))),
        () => Ok(()),
    }
}

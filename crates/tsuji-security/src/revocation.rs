//! Certificates that an authority has taken back: lists of X.509 (RFC 5280).

use std::time::{Duration, SystemTime};

use x509_parser::extensions::ParsedExtension;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;

use crate::certificate::{Certificate, is_within};

/// A list of revoked certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Revocations {
    authority: Certificate,
    serials: Vec<Vec<u8>>,
    validity: (SystemTime, SystemTime),
}

impl Revocations {
    /// Reads the first list of a PEM file, which `authority` has signed.
    pub(crate) fn from_pem(pem: &[u8], authority: &Certificate) -> Result<Self, String> {
        let (_, pem) = parse_x509_pem(pem).map_err(|_| "is no PEM file".to_owned())?;
        if pem.label != "X509 CRL" {
            return Err(format!("holds {:?}, and no X509 CRL", pem.label));
        }
        let (rest, list) = CertificateRevocationList::from_der(&pem.contents)
            .map_err(|_| "holds no list of revoked certificates".to_owned())?;
        if !rest.is_empty() {
            return Err("holds more than a list of revoked certificates".to_owned());
        }
        authority.has_signed_list(&list)?;
        // A list of a part, or of changes, would be taken for all of it.
        let of_entries = list.iter_revoked_certificates().flat_map(|it| it.extensions());
        let odd = list.extensions().iter().chain(of_entries).find(|it| {
            let is_known = matches!(
                it.parsed_extension(),
                ParsedExtension::AuthorityKeyIdentifier(_)
                    | ParsedExtension::CRLNumber(_)
                    | ParsedExtension::ReasonCode(_)
                    | ParsedExtension::InvalidityDate(_)
            );
            it.critical && !is_known
        });
        if let Some(odd) = odd {
            return Err(format!("has a critical extension that is not known here: {}", odd.oid));
        }
        let next = list.next_update();
        let next = next.ok_or("does not say when the next one comes, so it could be kept back")?;
        let time = |seconds: i64| {
            let since = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
            SystemTime::UNIX_EPOCH + since
        };
        let validity = (time(list.last_update().timestamp()), time(next.timestamp()));
        let serials = list.iter_revoked_certificates().map(|it| it.raw_serial().to_vec()).collect();
        Ok(Self { authority: authority.clone(), serials, validity })
    }

    /// Whether it counts at a time.
    pub(crate) fn is_valid_at(&self, now: SystemTime) -> Result<(), String> {
        is_within(self.validity, now)
    }

    /// Until when it counts.
    pub(crate) fn expires_at(&self) -> SystemTime {
        self.validity.1
    }

    /// The serial numbers of the certificates that were taken back.
    #[cfg(feature = "maker")]
    pub(crate) fn serials(&self) -> &[Vec<u8>] {
        &self.serials
    }

    /// Refuses a certificate that was taken back.
    pub(crate) fn permits(&self, certificate: &Certificate) -> Result<(), String> {
        if !self.serials.iter().any(|it| it == certificate.serial()) {
            return Ok(());
        }
        Err(format!("was revoked by {}", self.authority.subject()))
    }
}

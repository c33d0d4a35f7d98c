//! The certificate of the server.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use tsuji_platform::clock;
use x509_parser::certificate::Validity;
use x509_parser::time::ASN1Time;

use super::stream::{Stream, TlsStream};
use crate::settings::TlsFiles;
use crate::{Error, Result};

/// Makes TLS of what connects.
#[derive(Clone, Debug)]
pub(super) struct Tls {
    config: Arc<ServerConfig>,
    file: PathBuf,
    /// When the first of the certificates expires.
    expires: Option<ASN1Time>,
    /// When it was said last that one has.
    said: Option<Instant>,
}

impl Tls {
    /// Reads certificate and key. An error says which file and why. Certificates that are not valid now are refused.
    pub(super) fn read(files: &TlsFiles) -> Result<Self> {
        let file = &files.certificate;
        let certificates: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(&content(file)?)
                .collect::<std::result::Result<_, _>>()
                .map_err(|error| wrong(file, &error.to_string()))?;
        if certificates.is_empty() {
            return Err(wrong(file, "no certificate is in it; allowed is PEM"));
        }
        let expires = expires(file, &certificates, now_s())?;
        let key = PrivateKeyDer::from_pem_slice(&content(&files.key)?)
            .map_err(|error| wrong(&files.key, &error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|it| it.with_no_client_auth().with_single_cert(certificates, key))
            .map_err(|error| wrong(file, &error.to_string()))?;
        Ok(Self { config: Arc::new(config), file: file.clone(), expires, said: None })
    }

    /// The same socket, in TLS. A certificate that has expired meanwhile is served all the same, since clients judge it themselves,
    /// and a line of the log says so.
    pub(super) fn wrap(&mut self, socket: TcpStream, now: Instant) -> Result<Stream> {
        self.say_if_expired(now);
        let connection = ServerConnection::new(Arc::clone(&self.config));
        let connection = connection.map_err(|error| Error::invalid(error.to_string()))?;
        Ok(Stream::Tls(Box::new(TlsStream::new(connection, socket))))
    }

    fn say_if_expired(&mut self, now: Instant) {
        let Some(expires) = self.expires.filter(|it| it.timestamp() < now_s()) else { return };
        if self.said.is_none_or(|it| it + SAID_EVERY <= now) {
            self.said = Some(now);
            let file = self.file.display();
            tracing::error!(%file, %expires, "the certificate has expired: clients will refuse it");
        }
    }
}

/// When the first of `certificates` expires. One that is not valid now is an error, and one that soon is not a line of the log.
fn expires(
    file: &Path,
    certificates: &[CertificateDer<'_>],
    now_s: i64,
) -> Result<Option<ASN1Time>> {
    let mut first: Option<ASN1Time> = None;
    for (at, certificate) in certificates.iter().enumerate() {
        // What cannot be read here is judged by rustls, and by clients.
        let Ok((_, read)) = x509_parser::parse_x509_certificate(certificate) else { continue };
        let Validity { not_before, not_after } = *read.validity();
        let which = format!("certificate {} of {}", at + 1, certificates.len());
        let allowed = "allowed is one that is valid now";
        if not_after.timestamp() < now_s {
            return Err(wrong(file, &format!("{which} has expired on {not_after}; {allowed}")));
        }
        if now_s < not_before.timestamp() {
            let why = format!("{which} is not valid before {not_before}; {allowed}");
            return Err(wrong(file, &why));
        }
        if not_after.timestamp() < now_s + SOON.as_secs() as i64 {
            tracing::warn!(file = %file.display(), which, expires = %not_after, "a certificate expires soon");
        }
        first = Some(first.map_or(not_after, |it| it.min(not_after)));
    }
    Ok(first)
}

/// The wall clock, in seconds.
fn now_s() -> i64 {
    clock::wall_ns().div_euclid(1_000_000_000)
}

fn content(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| wrong(path, &error.to_string()))
}

fn wrong(path: &Path, why: &str) -> Error {
    Error::invalid(format!("{}: {why}", path.display()))
}

/// Less than that before a certificate expires the log warns of it.
const SOON: Duration = Duration::from_secs(14 * 24 * 3600);

/// So often it is said that one has.
const SAID_EVERY: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    /// The certificates of years from the first to before the second, and what is said of them at the beginning of 2025.
    fn told(years: &[(i32, i32)]) -> String {
        let key = KeyPair::generate().unwrap();
        let certificate = |&(from, to): &(i32, i32)| {
            let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
            params.not_before = date_time_ymd(from, 1, 1);
            params.not_after = date_time_ymd(to, 1, 1);
            params.self_signed(&key).unwrap().der().clone()
        };
        let certificates: Vec<_> = years.iter().map(certificate).collect();
        match expires(Path::new("server.pem"), &certificates, 1_735_689_600) {
            Ok(expires) => expires.unwrap().to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_certificate_is_served_only_while_it_is_valid() {
        let told_of = told(&[(2020, 2030), (2020, 2028)]);
        assert!(told_of.starts_with("Jan  1 00:00:00 2028"), "{told_of}");
        let told_of = told(&[(2020, 2030), (2020, 2024)]);
        let expected = "server.pem: certificate 2 of 2 has expired on Jan  1 00:00:00 2024";
        assert!(told_of.starts_with(expected) && told_of.ends_with("valid now"), "{told_of}");
        let told_of = told(&[(2026, 2030)]);
        let expected = "server.pem: certificate 1 of 1 is not valid before Jan  1 00:00:00 2026";
        assert!(told_of.starts_with(expected), "{told_of}");
    }
}

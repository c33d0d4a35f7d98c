//! The certificate of the server.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use mio::net::TcpStream;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::stream::Stream;
use crate::settings::TlsFiles;
use crate::{Error, Result};

/// Makes TLS of what connects.
#[derive(Clone, Debug)]
pub(super) struct Tls {
    config: Arc<ServerConfig>,
}

impl Tls {
    /// Reads certificate and key. An error says which file and why.
    pub(super) fn read(files: &TlsFiles) -> Result<Self> {
        let certificates: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(&content(&files.certificate)?)
                .collect::<std::result::Result<_, _>>()
                .map_err(|error| wrong(&files.certificate, &error.to_string()))?;
        if certificates.is_empty() {
            return Err(wrong(&files.certificate, "no certificate is in it; allowed is PEM"));
        }
        let key = PrivateKeyDer::from_pem_slice(&content(&files.key)?)
            .map_err(|error| wrong(&files.key, &error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|it| it.with_no_client_auth().with_single_cert(certificates, key))
            .map_err(|error| wrong(&files.certificate, &error.to_string()))?;
        Ok(Self { config: Arc::new(config) })
    }

    /// The same socket, in TLS.
    pub(super) fn wrap(&self, socket: TcpStream) -> Result<Stream> {
        let connection = ServerConnection::new(Arc::clone(&self.config));
        let connection = connection.map_err(|error| Error::invalid(error.to_string()))?;
        Ok(Stream::Tls(Box::new(StreamOwned::new(connection, socket))))
    }
}

fn content(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| wrong(path, &error.to_string()))
}

fn wrong(path: &Path, why: &str) -> Error {
    Error::invalid(format!("{}: {why}", path.display()))
}

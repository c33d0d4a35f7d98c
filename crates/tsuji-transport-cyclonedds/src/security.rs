//! DDS Security: what a participant that is secured is told, and the shared library that has the plug-ins for it.

use std::path::{Path, PathBuf};

use tsuji_transport::{Error, ErrorKind, Result};

/// The file that has the plug-ins, built by `engines/dds-security`. They need OpenSSL, so no process loads it that is not secured.
pub const DDS_SECURITY_LIBRARY: &str = "libtsuji_dds_security.so";

/// What secures a participant: files of an enclave, as SROS2 names them, and the library by which they are obeyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DdsSecurity {
    /// Where [`DDS_SECURITY_LIBRARY`] is.
    pub library: PathBuf,
    /// Who may vouch for participants.
    pub identity_ca: PathBuf,
    /// Who this one is.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Who may say what is allowed.
    pub permissions_ca: PathBuf,
    /// What is protected, and how.
    pub governance: PathBuf,
    /// What this one may do.
    pub permissions: PathBuf,
    /// Certificates that count no longer. There need be no such file.
    pub revocations: PathBuf,
}

impl DdsSecurity {
    /// By the files of an enclave: certificate, key, who vouches for identities and for permissions, governance, permissions, and the
    /// enclave's list of revoked certificates and that of the keystore, of which the first that is there counts.
    pub fn of(library: PathBuf, files: [PathBuf; 8]) -> Self {
        let [certificate, key, identity_ca, permissions_ca, governance, permissions, own, public] =
            files;
        let revocations = if own.exists() { own } else { public };
        Self {
            library,
            identity_ca,
            certificate,
            key,
            permissions_ca,
            governance,
            permissions,
            revocations,
        }
    }

    fn files(&self) -> [&Path; 7] {
        let Self { identity_ca, certificate, key, permissions_ca, governance, permissions, .. } =
            self;
        let files = [identity_ca, certificate, key, permissions_ca, governance, permissions];
        let [a, b, c, d, e, f] = files.map(PathBuf::as_path);
        [a, b, c, d, e, f, &self.revocations]
    }

    /// The properties of a participant, by the names of DDS Security 1.1 (tables 7.6, 9.10 and 9.55) and those that Cyclone DDS adds.
    pub(crate) fn properties(&self) -> Result<Vec<(String, String)>> {
        let mut all = Vec::new();
        let mut add = |name: &str, value: &str| all.push((name.to_owned(), value.to_owned()));
        let library = text(&self.library)?;
        for (plugin, function) in PLUGINS {
            add(&format!("dds.sec.{plugin}.library.path"), library);
            add(&format!("dds.sec.{plugin}.library.init"), &function_name("init", function));
            add(
                &format!("dds.sec.{plugin}.library.finalize"),
                &function_name("finalize", function),
            );
        }
        let has_revocations = self.revocations.exists();
        let properties = NAMES.iter().zip(self.files());
        for (name, file) in properties.filter(|(name, _)| has_revocations || **name != REVOCATIONS)
        {
            add(name, &format!("file:{}", text(file)?));
        }
        Ok(all)
    }
}

/// The plug-ins of DDS Security by the words of their properties, and what their functions are called after.
const PLUGINS: [(&str, &str); 3] =
    [("auth", "authentication"), ("access", "access_control"), ("crypto", "crypto")];

/// As `engines/dds-security` exports it: what is handed to it has the layout of this version, so a library of another is refused.
fn function_name(what: &str, of: &str) -> String {
    format!("tsuji_{}_{what}_{of}", env!("CARGO_PKG_VERSION").replace(['.', '-', '+'], "_"))
}

const REVOCATIONS: &str = "org.eclipse.cyclonedds.sec.auth.crl";

/// In the order of the files.
const NAMES: [&str; 7] = [
    "dds.sec.auth.identity_ca",
    "dds.sec.auth.identity_certificate",
    "dds.sec.auth.private_key",
    "dds.sec.access.permissions_ca",
    "dds.sec.access.governance",
    "dds.sec.access.permissions",
    REVOCATIONS,
];

fn text(path: &Path) -> Result<&str> {
    let is_plain = |it: &&str| !it.contains('\0');
    path.to_str().filter(is_plain).ok_or_else(|| {
        Error::new(ErrorKind::Invalid, "secure a participant")
            .about(format!("the path {path:?}; allowed: UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_its_property() {
        let path = |it: &str| PathBuf::from("/no/such").join(it);
        let security = DdsSecurity {
            library: path("library"),
            identity_ca: path("identity_ca"),
            certificate: path("identity_certificate"),
            key: path("private_key"),
            permissions_ca: path("permissions_ca"),
            governance: path("governance"),
            permissions: path("permissions"),
            revocations: path("crl"),
        };
        let properties = security.properties().unwrap();
        let files: Vec<_> =
            properties.iter().filter(|(_, value)| value.starts_with("file:")).collect();
        assert_eq!(files.len(), 6, "no list, so none is named");
        for (name, value) in files {
            assert_eq!(name.rsplit('.').next(), value.rsplit('/').next());
        }
        let functions: Vec<_> = properties
            .iter()
            .filter(|(name, _)| name.ends_with("init"))
            .map(|(_, it)| it.as_str())
            .collect();
        assert_eq!(
            functions,
            [
                "tsuji_0_2_0_init_authentication",
                "tsuji_0_2_0_init_access_control",
                "tsuji_0_2_0_init_crypto"
            ]
        );
    }
}

//! Keystores on disk, as `ros2 security create_keystore` and `create_enclave` lay them out.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use x509_parser::pem::parse_x509_pem;

use crate::certificate::{Certificate, is_within};
use crate::key::Key;
use crate::revocation::Revocations;
use crate::{
    Answer, Deed, Governance, Grant, Identity, PERMISSIONS_BYTES_MAX, Permissions, Protection,
    signed,
};

/// Why an enclave is not what it should be.
#[derive(Clone, PartialEq, Eq)]
pub struct Refused {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

impl Refused {
    /// Of a file or folder, for the reason that an error or a sentence gives.
    pub(crate) fn of<W: fmt::Display>(path: &Path) -> impl Fn(W) -> Self + use<W> {
        let path = path.to_owned();
        move |why| Self { path: path.clone(), why: why.to_string() }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, why) = (self.path.display(), &self.why);
        // What is wrong inside a file is told with the places in it.
        let is_named = why.strip_prefix(&path.to_string()).is_some_and(|it| it.starts_with(':'));
        if is_named { f.write_str(why) } else { write!(f, "{path}: {why}") }
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Refused {}

/// An enclave whose files are all there, fit each other and are signed.
#[derive(Clone, Debug)]
pub struct Enclave {
    name: String,
    folder: PathBuf,
    certificate: Certificate,
    governance: Governance,
    grant: Grant,
    expiries: Vec<(SystemTime, String)>,
}

impl Enclave {
    /// Reads an enclave of a keystore, such as `/talker`, and checks all of it at the time `now`.
    ///
    /// # Errors
    ///
    /// The first file that is missing, unreadable, forged, expired or of something else, and why.
    pub fn read(keystore: &Path, name: &str, now: SystemTime) -> Result<Self, Refused> {
        Self::read_whole(keystore, name, now).map(Identity::into_enclave)
    }

    /// The same, with what it takes to prove who it is.
    pub(crate) fn read_whole(
        keystore: &Path,
        name: &str,
        now: SystemTime,
    ) -> Result<Identity, Refused> {
        let parts = name.strip_prefix('/').unwrap_or(name);
        let folder = keystore.join(ENCLAVES);
        let is_part = |it: &str| !matches!(it, "" | "." | "..") && !it.contains(char::is_control);
        if !parts.is_empty() && !parts.split('/').all(is_part) {
            let why = format!(
                "{name:?} is no name of an enclave; allowed: such as /talker or /robot/talker"
            );
            return Err(Refused { path: folder, why });
        }
        let folder = folder_of(keystore, name);
        if !folder.is_dir() {
            let there = enclaves(keystore);
            let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            let why = format!("there is no enclave {name:?}; in this keystore: {there}");
            return Err(Refused { path: folder, why });
        }
        let refused = |file: &str| Refused::of::<String>(&folder.join(file));
        let certificate = |file: &str| {
            let read = read_certificate(&folder.join(file))?;
            read.is_valid_at(now).map_err(refused(file))?;
            Ok(read)
        };
        let authority = |file: &str| {
            let read = certificate(file)?;
            read.is_anchor().map_err(refused(file))?;
            // What the keystore has for all is what counts, where it has it.
            let public = keystore.join(PUBLIC).join(file);
            if public.exists() && read_certificate(&public)? != read {
                return Err(refused(file)(format!("is not {}", public.display())));
            }
            Ok(read)
        };
        let identity_ca = authority(IDENTITY_CA)?;
        let permissions_ca = authority(PERMISSIONS_CA)?;
        let own = certificate(CERTIFICATE)?;
        own.is_issued_by(&identity_ca).map_err(refused(CERTIFICATE))?;
        let lists = read_revocations_of(keystore, &folder, &identity_ca)?;
        check_revocations(&lists, &own, &folder.join(CERTIFICATE), now)?;
        let revocations: Vec<_> = lists.into_iter().map(|(_, list)| list).collect();
        let key = read_file(&folder.join(KEY)).and_then(|it| key_of(&it));
        let key = key.map_err(refused(KEY))?;
        if key.public() != own.key() {
            return Err(refused(KEY)(format!("is not the key of {CERTIFICATE}")));
        }
        let governance = read_governance(&folder.join(GOVERNANCE), &permissions_ca)?;
        let (permissions, signed) = read_permissions(&folder.join(PERMISSIONS), &permissions_ca)?;
        if PERMISSIONS_BYTES_MAX < signed.len() {
            let why = format!("is longer than {PERMISSIONS_BYTES_MAX} bytes");
            return Err(refused(PERMISSIONS)(why));
        }
        let subject = own.subject();
        let grant = permissions.grant(&own).cloned();
        let grant =
            grant.ok_or_else(|| refused(PERMISSIONS)(format!("has no grant for {subject}")))?;
        is_within(grant.validity(), now)
            .map_err(|why| refused(PERMISSIONS)(format!("the grant for {subject} {why}")))?;
        let of = |it: &Certificate, file: &str| (it.validity().1, file.to_owned());
        let mut expiries = vec![
            of(&own, CERTIFICATE),
            of(&identity_ca, IDENTITY_CA),
            of(&permissions_ca, PERMISSIONS_CA),
            (grant.validity().1, PERMISSIONS.to_owned()),
        ];
        expiries.extend(revocations.iter().map(|it| (it.expires_at(), REVOCATIONS.to_owned())));
        expiries.sort();
        let name = format!("/{parts}");
        let enclave = Self { name, certificate: own, governance, grant, expiries, folder };
        Ok(Identity::new(enclave, key, [identity_ca, permissions_ca], revocations, signed))
    }

    /// Whether a keystore has an enclave, whole or not: its folder is there, or it cannot be seen whether it is. The folder of `/` is
    /// that of all enclaves too, so of that one a file must be there.
    pub fn is_in(keystore: &Path, name: &str) -> bool {
        let is_there = |path: &Path| match fs::symlink_metadata(path) {
            Err(error) => error.kind() != io::ErrorKind::NotFound,
            Ok(_) => true,
        };
        let folder = folder_of(keystore, name);
        if folder != keystore.join(ENCLAVES) {
            return is_there(&folder);
        }
        let own = [CERTIFICATE, KEY, IDENTITY_CA, PERMISSIONS_CA, PERMISSIONS];
        own.iter().any(|it| is_there(&folder.join(it)))
    }

    /// The files of an enclave, there or not: its certificate, its key, the certificates of the authorities of identities and of
    /// permissions, governance, permissions, and the revoked certificates of the enclave's own list and of that of the keystore.
    pub fn files(keystore: &Path, name: &str) -> [PathBuf; 8] {
        let folder = folder_of(keystore, name);
        let own = |it: &str| folder.join(it);
        [
            own(CERTIFICATE),
            own(KEY),
            own(IDENTITY_CA),
            own(PERMISSIONS_CA),
            own(GOVERNANCE),
            own(PERMISSIONS),
            own(REVOCATIONS),
            keystore.join(PUBLIC).join(REVOCATIONS),
        ]
    }

    /// Its name, such as `/talker`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its files are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whom it is.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// What is protected, and how.
    pub fn governance(&self) -> &Governance {
        &self.governance
    }

    /// What it may do.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Whether it may join a domain; `None` where governance lets anybody.
    pub fn may_join(&self, domain: u32) -> Option<Answer> {
        self.governance.may_join(&self.grant, domain)
    }

    /// Whether it may do this in a domain with a topic as DDS names it: what governance has no rule for may not be, what it asks no
    /// permission for anybody may, and the rest is as its grant says.
    pub fn may(&self, deed: Deed, domain: u32, topic: &str) -> Answer {
        self.governance.may(&self.grant, deed, domain, topic)
    }

    /// The domains up to `last` that it may join by governance and by its grant.
    pub fn domains(&self, last: u32) -> impl Iterator<Item = u32> {
        (0..=last).filter(|it| {
            self.governance.domain(*it).is_some() && self.grant.may_join(*it).is_allowed
        })
    }

    /// The least that protects samples of a topic as DDS names it; none where it may not be.
    pub fn protection(&self, domain: u32, topic: &str) -> Option<Protection> {
        let of_domain = self.governance.domain(domain)?;
        Some(of_domain.protection(of_domain.topic(topic)?))
    }

    /// When its files expire, the first first.
    pub fn expiries(&self) -> &[(SystemTime, String)] {
        &self.expiries
    }
}

/// Of one that lacks some of its files the others are told of.
fn is_enclave(folder: &Path) -> bool {
    [CERTIFICATE, KEY, PERMISSIONS].iter().any(|it| folder.join(it).exists())
}

pub(crate) fn folder_of(keystore: &Path, name: &str) -> PathBuf {
    let (folder, parts) = (keystore.join(ENCLAVES), name.trim_start_matches('/'));
    if parts.is_empty() { folder } else { folder.join(parts) }
}

/// The names of all enclaves of a keystore.
pub fn enclaves(keystore: &Path) -> Vec<String> {
    fn look(folder: &Path, name: &str, depth: usize, found: &mut Vec<String>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten().filter(|it| it.file_type().is_ok_and(|it| it.is_dir())) {
            let name = format!("{name}/{}", entry.file_name().to_string_lossy());
            if is_enclave(&entry.path()) {
                found.push(name.clone());
            }
            if depth < DEPTH_MAX {
                look(&entry.path(), &name, depth + 1, found);
            }
        }
    }
    let mut found = Vec::new();
    if is_enclave(&keystore.join(ENCLAVES)) {
        found.push("/".to_owned());
    }
    look(&keystore.join(ENCLAVES), "", 0, &mut found);
    found.sort();
    found
}

/// What is in a file, which is one and no more than so long.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let told = |error: io::Error| error.to_string();
    // A pipe would be waited for.
    if !fs::metadata(path).map_err(told)?.is_file() {
        return Err("is no file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(told)?;
    file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(told)?;
    if FILE_MAX < bytes.len() as u64 {
        return Err(format!("is longer than {FILE_MAX} bytes"));
    }
    Ok(bytes)
}

/// Far more than documents have.
const FILE_MAX: u64 = 4 << 20;

pub(crate) fn read_certificate(path: &Path) -> Result<Certificate, Refused> {
    read_file(path).and_then(|it| Certificate::from_pem(&it)).map_err(Refused::of(path))
}

/// A governance that `authority` has signed.
pub(crate) fn read_governance(path: &Path, authority: &Certificate) -> Result<Governance, Refused> {
    let (document, _) = read_signed(path, authority)?;
    Governance::parse(&path.display().to_string(), &document).map_err(Refused::of(path))
}

/// Permissions that `authority` has signed, and the file as it stands.
pub(crate) fn read_permissions(
    path: &Path,
    authority: &Certificate,
) -> Result<(Permissions, Vec<u8>), Refused> {
    let (document, file) = read_signed(path, authority)?;
    let read = Permissions::parse(&path.display().to_string(), &document);
    read.map(|it| (it, file)).map_err(Refused::of(path))
}

/// A list of revoked certificates that `authority` has signed; `None` where no file is there.
pub(crate) fn read_revocations(
    path: &Path,
    authority: &Certificate,
) -> Result<Option<Revocations>, Refused> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        _ => {}
    }
    let read = read_file(path).and_then(|it| Revocations::from_pem(&it, authority));
    read.map(Some).map_err(Refused::of(path))
}

/// The lists that count for an enclave, with their files: what the keystore has for all, and its own if that is another.
pub(crate) fn read_revocations_of(
    keystore: &Path,
    folder: &Path,
    authority: &Certificate,
) -> Result<Vec<(PathBuf, Revocations)>, Refused> {
    let mut lists: Vec<(PathBuf, Revocations)> = Vec::new();
    for path in [keystore.join(PUBLIC), folder.to_owned()].map(|it| it.join(REVOCATIONS)) {
        match read_revocations(&path, authority)? {
            Some(list) if lists.iter().all(|(_, it)| *it != list) => lists.push((path, list)),
            _ => {}
        }
    }
    Ok(lists)
}

/// Refuses a certificate, which is in `file`, that stands in one of these lists, and each list that does not count now.
pub(crate) fn check_revocations(
    lists: &[(PathBuf, Revocations)],
    certificate: &Certificate,
    file: &Path,
    now: SystemTime,
) -> Result<(), Refused> {
    lists.iter().try_for_each(|(path, list)| {
        list.is_valid_at(now).map_err(Refused::of(path))?;
        list.permits(certificate).map_err(Refused::of(file))
    })
}

/// The document in a signed file, and the file.
fn read_signed(path: &Path, authority: &Certificate) -> Result<(Vec<u8>, Vec<u8>), Refused> {
    let file = read_file(path).map_err(Refused::of(path))?;
    let document = signed::verified(&file, authority).map_err(Refused::of(path))?;
    Ok((document, file))
}

/// The key in a file.
fn key_of(pem: &[u8]) -> Result<Key, String> {
    let (_, pem) = parse_x509_pem(pem).map_err(|_| "is no PEM file".to_owned())?;
    if pem.label != "PRIVATE KEY" {
        return Err(format!(
            "holds {:?}; allowed: a PRIVATE KEY, in PKCS #8 and in clear, as `openssl pkcs8 -topk8 -nocrypt` writes it",
            pem.label
        ));
    }
    Key::from_pkcs8(&pem.contents)
        .ok_or_else(|| "holds neither a key of P-256 nor one of RSA".to_owned())
}

const ENCLAVES: &str = "enclaves";
const PUBLIC: &str = "public";
pub(crate) const CERTIFICATE: &str = "cert.pem";
pub(crate) const KEY: &str = "key.pem";
pub(crate) const IDENTITY_CA: &str = "identity_ca.cert.pem";
pub(crate) const PERMISSIONS_CA: &str = "permissions_ca.cert.pem";
pub(crate) const GOVERNANCE: &str = "governance.p7s";
pub(crate) const PERMISSIONS: &str = "permissions.p7s";
/// As rmw_dds_common calls it, which hands it to middlewares. It may be missing.
pub(crate) const REVOCATIONS: &str = "crl.pem";
/// Names have no more parts than this.
const DEPTH_MAX: usize = 32;

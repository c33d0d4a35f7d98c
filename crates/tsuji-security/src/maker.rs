//! Makes keystores and enclaves, laid out as `ros2 security create_keystore` and `create_enclave` do.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    PublicKeyData as _,
};
use ring::rand::{SecureRandom, SystemRandom};
use time::OffsetDateTime;

use crate::certificate::Certificate;
use crate::keystore::{
    CERTIFICATE, GOVERNANCE, IDENTITY_CA, KEY, PERMISSIONS, PERMISSIONS_CA, read_file,
};
use crate::{Access, Enclave, Governance, Permissions, Refused, enclaves, signed};

/// From when to when something counts that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    first: SystemTime,
    last: SystemTime,
}

impl Lifetime {
    /// So many days from now on. It begins a day before, for machines whose clock is behind.
    pub fn days(now: SystemTime, days: u32) -> Self {
        Self { first: now - DAY, last: now + DAY * days }
    }

    /// When it ends.
    pub fn last(self) -> SystemTime {
        self.last
    }

    fn within(self, authority: &Certificate) -> Self {
        let (first, last) = authority.validity();
        Self { first: self.first.max(first), last: self.last.min(last) }
    }
}

/// What was made of an enclave; the rest was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its key, and the certificate for it.
    pub key: bool,
    /// What it may do.
    pub permissions: bool,
}

/// A keystore with the keys of its authorities. Others who would make something in it wait until this one is dropped.
#[derive(Debug)]
pub struct Maker {
    folder: PathBuf,
    identities: Authority,
    permissions: Authority,
    _lock: File,
}

#[derive(Debug)]
struct Authority {
    certificate: Certificate,
    key: KeyPair,
}

impl Maker {
    /// Makes a keystore whose messages are all encrypted in one domain, where there is none. Its authority counts for twenty years.
    /// Says whether it did. `waits` is called where another makes it just now.
    ///
    /// # Errors
    ///
    /// The file or folder that is in its way.
    pub fn make(
        folder: &Path,
        domain: u32,
        now: SystemTime,
        waits: impl FnOnce(),
    ) -> Result<bool, Refused> {
        // The keys come last, so that it is whole.
        if folder.join("private").exists() {
            return Ok(false);
        }
        // A folder that is there stays the one it is: somebody may be in it, or it is another file system.
        if folder.is_dir() {
            let file = File::open(folder).map_err(at(folder))?;
            lock(folder, &file, waits)?;
            if is_there(folder)? {
                return Ok(false);
            }
            let new = Unfinished::within(folder)?;
            build(&new.0, domain, now)?;
            for part in PARTS {
                fs::rename(new.0.join(part), folder.join(part)).map_err(at(&folder.join(part)))?;
            }
            return Ok(true);
        }
        let beside = match folder.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        fs::create_dir_all(beside).map_err(at(beside))?;
        let new = Unfinished::within(beside)?;
        build(&new.0, domain, now)?;
        fs::set_permissions(&new.0, fs::Permissions::from_mode(0o755)).map_err(at(&new.0))?;
        match fs::rename(&new.0, folder) {
            Ok(()) => Ok(true),
            // Another was faster.
            Err(_) if is_there(folder)? => Ok(false),
            Err(error) => Err(at(folder)(error)),
        }
    }

    /// Opens a keystore that is there. `waits` is called where another makes something in it, who is waited for.
    ///
    /// # Errors
    ///
    /// The first file that is missing, unreadable or does not fit the others, and why.
    pub fn open(folder: &Path, now: SystemTime, waits: impl FnOnce()) -> Result<Self, Refused> {
        // Of what is there nobody else can open this one, so nobody else can hold it up.
        let path = folder.join("private").join(IDENTITY_KEY);
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.or_else(|_| File::open(&path)).map_err(at(&path))?;
        lock(&path, &file, waits)?;
        Ok(Self {
            identities: Authority::read(folder, IDENTITY_CA, IDENTITY_KEY, now)?,
            permissions: Authority::read(folder, PERMISSIONS_CA, PERMISSIONS_KEY, now)?,
            folder: folder.to_owned(),
            _lock: file,
        })
    }

    /// When its authorities end, and with them all that they have signed.
    pub fn last(&self) -> SystemTime {
        let last = |it: &Authority| it.certificate.validity().1;
        last(&self.identities).min(last(&self.permissions))
    }

    /// Signs another governance for all enclaves. Returns those that have one of their own, which stays.
    ///
    /// # Errors
    ///
    /// What is wrong with it, or the file that cannot be written.
    pub fn govern(&self, governance: &NewGovernance) -> Result<Vec<String>, Refused> {
        let folder = self.folder.join("enclaves");
        self.permissions.put_signed(&folder, GOVERNANCE, &governance.0)?;
        let signed = folder.join(GOVERNANCE);
        let shared = read_file(&signed).map_err(|why| Refused { path: signed, why })?;
        let has_own = |name: &String| {
            read_file(&folder.join(&name[1..]).join(GOVERNANCE)).is_ok_and(|it| it != shared)
        };
        Ok(enclaves(&self.folder).into_iter().filter(has_own).collect())
    }

    /// Adds what an enclave lacks: its key, its certificate, the files that it shares with all. What it may do is made anew where
    /// `access` is given; where it is not, what is there is kept, and a new enclave may do everything.
    ///
    /// # Errors
    ///
    /// The name or the file that is wrong, and why. What was there is then as it was.
    pub fn add(
        &self,
        name: &str,
        access: Option<&Access>,
        domain: u32,
        lifetime: Lifetime,
        now: SystemTime,
    ) -> Result<(Made, Enclave), Refused> {
        let enclaves = self.folder.join("enclaves");
        validate_enclave(name)
            .map_err(|why| Refused { path: enclaves.clone(), why: format!("{name:?} {why}") })?;
        self.has_rule(&enclaves.join(GOVERNANCE), domain)?;
        let folder = match &name[1..] {
            "" => enclaves,
            parts => enclaves.join(parts),
        };
        let [key_file, certificate_file, permissions_file] =
            [KEY, CERTIFICATE, PERMISSIONS].map(|it| folder.join(it));
        // A link that leads nowhere is there too.
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        let refused = |path: &Path| {
            let path = path.to_owned();
            move |why: String| Refused { path, why }
        };
        // A key without a certificate is what one left who was killed: nobody knows it.
        let new = match (is_there(&key_file), is_there(&certificate_file)) {
            (true, true) => None,
            (_, false) => {
                let lifetime = lifetime.within(&self.identities.certificate);
                let issued = self.identities.issue(name, lifetime);
                Some(issued.map_err(refused(&certificate_file))?)
            }
            (false, true) => {
                let why =
                    format!("is not there, and its {CERTIFICATE} is; remove that for a new key");
                return Err(refused(&key_file)(why));
            }
        };
        let certificate = match &new {
            Some((_, pem)) => Certificate::from_pem(pem.as_bytes()),
            None => read_file(&certificate_file).and_then(|it| Certificate::from_pem(&it)),
        };
        let certificate = certificate.map_err(refused(&certificate_file))?;
        certificate
            .is_issued_by(&self.identities.certificate)
            .and_then(|()| certificate.is_valid_at(now))
            .map_err(refused(&certificate_file))?;
        let remake = access.is_some() || !is_there(&permissions_file);
        let permissions = if remake {
            let wanted = format!("CN={name}");
            if certificate.subject() != wanted {
                let why = format!(
                    "is of {}, and permissions made here are of {wanted}",
                    certificate.subject()
                );
                return Err(refused(&certificate_file)(why));
            }
            let everything = Access::everything();
            let access = access.unwrap_or(&everything);
            let document = access.document(name, certificate.validity(), domain);
            Permissions::parse(&permissions_file.display().to_string(), document.as_bytes())
                .map_err(|it| refused(&permissions_file)(it.to_string()))?;
            Some(
                self.permissions
                    .sign(&document)
                    .map(|it| (document, it))
                    .map_err(refused(&permissions_file))?,
            )
        } else {
            let document = read_file(&permissions_file)
                .and_then(|it| signed::verified(&it, &self.permissions.certificate))
                .map_err(refused(&permissions_file))?;
            let kept = Permissions::parse(&permissions_file.display().to_string(), &document)
                .map_err(|it| refused(&permissions_file)(it.to_string()))?;
            let grant = kept.grant(&certificate);
            if !grant.is_some_and(|it| it.may_join(domain).is_allowed) {
                let why =
                    format!("is kept, and lets {} not join domain {domain}", certificate.subject());
                return Err(refused(&permissions_file)(why));
            }
            None
        };

        fs::DirBuilder::new().recursive(true).mode(0o755).create(&folder).map_err(at(&folder))?;
        let up = "../".repeat(name[1..].split('/').filter(|it| !it.is_empty()).count());
        for (file, whose) in [
            (IDENTITY_CA, format!("{up}../public/{IDENTITY_CA}")),
            (PERMISSIONS_CA, format!("{up}../public/{PERMISSIONS_CA}")),
            (GOVERNANCE, format!("{up}{GOVERNANCE}")),
        ] {
            match symlink(whose, folder.join(file)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(at(&folder.join(file))(error));
                }
                _ => {}
            }
        }
        let made = Made { key: new.is_some(), permissions: permissions.is_some() };
        if let Some((key, certificate)) = new {
            put(&key_file, key.serialize_pem().as_bytes(), 0o600)?;
            put(&certificate_file, certificate.as_bytes(), 0o644)?;
        }
        if let Some((document, signed)) = permissions {
            put(&permissions_file.with_extension("xml"), document.as_bytes(), 0o644)?;
            put(&permissions_file, &signed, 0o644)?;
        }
        Ok((made, Enclave::read(&self.folder, name, now)?))
    }

    fn has_rule(&self, path: &Path, domain: u32) -> Result<(), Refused> {
        let refused = |why| Refused { path: path.to_owned(), why };
        let document = read_file(path)
            .and_then(|it| signed::verified(&it, &self.permissions.certificate))
            .map_err(refused)?;
        governs(path, &document, domain)
    }
}

/// A governance that can be signed.
#[derive(Clone, Debug)]
pub struct NewGovernance(String);

impl NewGovernance {
    /// Reads one that has a rule for a domain.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn read(path: &Path, domain: u32) -> Result<Self, Refused> {
        let refused = |why| Refused { path: path.to_owned(), why };
        let document = read_file(path).map_err(refused)?;
        governs(path, &document, domain)?;
        String::from_utf8(document).map(Self).map_err(|_| refused("is not UTF-8".to_owned()))
    }
}

/// Whether a governance has a rule for a domain.
fn governs(path: &Path, document: &[u8], domain: u32) -> Result<(), Refused> {
    let refused = |why| Refused { path: path.to_owned(), why };
    let governance = Governance::parse(&path.display().to_string(), document);
    if governance.map_err(|it| refused(it.to_string()))?.domain(domain).is_some() {
        return Ok(());
    }
    Err(refused(format!("has no rule for domain {domain}, so nobody could join it")))
}

/// A new folder for a keystore that is not done. It goes where it does not get another name.
struct Unfinished(PathBuf);

impl Unfinished {
    const NAME: &str = ".keystore-";

    /// Nobody else has been in the folder before, whoever may write where it is.
    fn within(folder: &Path) -> Result<Self, Refused> {
        // Those who were killed have left theirs.
        for entry in fs::read_dir(folder).map_err(at(folder))?.flatten().filter(Self::is_old) {
            let _ = fs::remove_dir_all(entry.path());
        }
        let mut id = [0_u8; 8];
        let random = SystemRandom::new().fill(&mut id);
        random.map_err(|_| at(folder)(io::Error::other("the system has no random numbers")))?;
        let new = folder.join(format!("{}{}", Self::NAME, HEXLOWER.encode(&id)));
        fs::DirBuilder::new().mode(0o700).create(&new).map_err(at(&new))?;
        Ok(Self(new))
    }

    fn is_one(name: &OsStr) -> bool {
        name.to_str().is_some_and(|it| it.starts_with(Self::NAME))
    }

    fn is_old(entry: &fs::DirEntry) -> bool {
        let is_old = |it: fs::Metadata| {
            it.is_dir()
                && it.modified().is_ok_and(|it| it.elapsed().is_ok_and(|it| MAKING_MAX < it))
        };
        Self::is_one(&entry.file_name()) && entry.metadata().is_ok_and(is_old)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // What is finished has another name.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Makes a keystore in a folder that is empty.
fn build(folder: &Path, domain: u32, now: SystemTime) -> Result<(), Refused> {
    let (authority, certificate) = Authority::new(Lifetime::days(now, AUTHORITY_DAYS))?;
    let [enclaves, public, private] = PARTS.map(|it| folder.join(it));
    for (folder, mode) in [(&public, 0o755), (&private, 0o700), (&enclaves, 0o755)] {
        fs::DirBuilder::new().mode(mode).create(folder).map_err(at(folder))?;
    }
    put(&private.join("ca.key.pem"), authority.key.serialize_pem().as_bytes(), 0o600)?;
    put(&public.join("ca.cert.pem"), certificate.as_bytes(), 0o644)?;
    for (folder, file, whose) in [
        (&public, IDENTITY_CA, "ca.cert.pem"),
        (&public, PERMISSIONS_CA, "ca.cert.pem"),
        (&private, IDENTITY_KEY, "ca.key.pem"),
        (&private, PERMISSIONS_KEY, "ca.key.pem"),
    ] {
        symlink(whose, folder.join(file)).map_err(at(&folder.join(file)))?;
    }
    authority.put_signed(&enclaves, GOVERNANCE, &governance(domain))
}

/// Locks a file, and says where that takes its time.
fn lock(path: &Path, file: &File, waits: impl FnOnce()) -> Result<(), Refused> {
    let locked = match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => {
            waits();
            file.lock()
        }
        Err(fs::TryLockError::Error(error)) => Err(error),
        Ok(()) => Ok(()),
    };
    locked.map_err(at(path))
}

fn at(path: &Path) -> impl Fn(io::Error) -> Refused {
    let path = path.to_owned();
    move |error| Refused { path: path.clone(), why: error.to_string() }
}

/// Whether a keystore is there; what else is there must not be mixed with one.
fn is_there(folder: &Path) -> Result<bool, Refused> {
    if PARTS.iter().any(|it| folder.join(it).exists()) {
        return Ok(true);
    }
    let refused = |why| Err(Refused { path: folder.to_owned(), why });
    let is_other = |it: &fs::DirEntry| !Unfinished::is_one(&it.file_name());
    match fs::read_dir(folder).map(|it| it.flatten().any(|it| is_other(&it))) {
        Ok(true) => refused(
            "is not empty, and is no keystore, which has public, private and enclaves".to_owned(),
        ),
        Ok(false) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => refused(error.to_string()),
    }
}

impl Authority {
    fn new(lifetime: Lifetime) -> Result<(Self, String), Refused> {
        let refused = |why: String| Refused { path: "ca.cert.pem".into(), why };
        let failed = |error: rcgen::Error| refused(error.to_string());
        let key = KeyPair::generate().map_err(failed)?;
        let mut asked = params("tsuji keystore", lifetime);
        asked.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
        let pem = asked.self_signed(&key).map_err(failed)?.pem();
        let certificate = Certificate::from_pem(pem.as_bytes()).map_err(refused)?;
        Ok((Self { certificate, key }, pem))
    }

    fn read(keystore: &Path, file: &str, key: &str, now: SystemTime) -> Result<Self, Refused> {
        let path = keystore.join("public").join(file);
        let refused = |why| Refused { path: path.clone(), why };
        let certificate =
            read_file(&path).and_then(|it| Certificate::from_pem(&it)).map_err(refused)?;
        certificate.is_anchor().and_then(|()| certificate.is_valid_at(now)).map_err(refused)?;
        let path = keystore.join("private").join(key);
        let refused = |why| Refused { path: path.clone(), why };
        let pem = read_file(&path).map_err(refused)?;
        let key = std::str::from_utf8(&pem).ok().and_then(|it| KeyPair::from_pem(it).ok());
        let key = key.ok_or_else(|| {
            refused("is no key in PKCS #8 and in clear, of P-256, P-384 or RSA".to_owned())
        })?;
        if key.der_bytes() != certificate.key() {
            return Err(refused(format!("is not the key of public/{file}")));
        }
        Ok(Self { certificate, key })
    }

    /// A key, and a certificate for it.
    fn issue(&self, name: &str, lifetime: Lifetime) -> Result<(KeyPair, String), String> {
        let failed = |error: rcgen::Error| format!("cannot be issued: {error}");
        let der = self.certificate.der().into();
        let issuer = Issuer::from_ca_cert_der(&der, &self.key).map_err(failed)?;
        let key = KeyPair::generate().map_err(failed)?;
        let mut asked = params(name, lifetime);
        asked.is_ca = IsCa::ExplicitNoCa;
        let pem = asked.signed_by(&key, &issuer).map_err(failed)?.pem();
        // Names of some kinds come out otherwise than they went in.
        Certificate::from_pem(pem.as_bytes())?.is_issued_by(&self.certificate).map_err(|_| {
            let subject = self.certificate.subject();
            format!("cannot be issued here: the authority's name, {subject}, has a part twice, or one that is not known")
        })?;
        Ok((key, pem))
    }

    /// The signed file of a document, which is read as others read it before it counts.
    fn sign(&self, document: &str) -> Result<Vec<u8>, String> {
        let signed = signed::signed(document, &self.certificate, &self.key)?;
        signed::verified(&signed, &self.certificate)?;
        Ok(signed)
    }

    /// Writes a document beside the same with a signature, which is all that counts.
    fn put_signed(&self, folder: &Path, file: &str, document: &str) -> Result<(), Refused> {
        let path = folder.join(file);
        let signed = self.sign(document).map_err(|why| Refused { path: path.clone(), why })?;
        put(&path.with_extension("xml"), document.as_bytes(), 0o644)?;
        put(&path, &signed, 0o644)
    }
}

fn params(name: &str, lifetime: Lifetime) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = OffsetDateTime::from(lifetime.first);
    params.not_after = OffsetDateTime::from(lifetime.last);
    params
}

/// Whether an enclave can have this name, such as `/talker`, which its certificate is to carry.
///
/// # Errors
///
/// Why not.
pub fn validate_enclave(name: &str) -> Result<(), String> {
    let is_part = |it: &str| {
        let begins = it.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        begins && it.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let parts = name.strip_prefix('/').filter(|it| it.is_empty() || it.split('/').all(is_part));
    if parts.is_none() {
        return Err("is no name of an enclave; allowed: such as /talker or /robot/talker".into());
    }
    if NAME_MAX < name.len() {
        return Err(format!(
            "is longer than {NAME_MAX} letters, the most that a certificate names"
        ));
    }
    Ok(())
}

/// Puts a file there as a whole, in the place of what is there.
fn put(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Refused> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.new"));
    let written = || {
        let _ = fs::remove_file(&new);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    written().map_err(|error| Refused { path: path.to_owned(), why: error.to_string() })
}

fn governance(domain: u32) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="http://www.omg.org/spec/DDS-SECURITY/20170901/omg_shared_ca_governance.xsd">
  <domain_access_rules>
    <domain_rule>
      <domains>
        <id>{domain}</id>
      </domains>
      <allow_unauthenticated_participants>false</allow_unauthenticated_participants>
      <enable_join_access_control>true</enable_join_access_control>
      <discovery_protection_kind>ENCRYPT</discovery_protection_kind>
      <liveliness_protection_kind>ENCRYPT</liveliness_protection_kind>
      <rtps_protection_kind>SIGN</rtps_protection_kind>
      <topic_access_rules>
        <topic_rule>
          <topic_expression>*</topic_expression>
          <enable_discovery_protection>true</enable_discovery_protection>
          <enable_liveliness_protection>true</enable_liveliness_protection>
          <enable_read_access_control>true</enable_read_access_control>
          <enable_write_access_control>true</enable_write_access_control>
          <metadata_protection_kind>ENCRYPT</metadata_protection_kind>
          <data_protection_kind>ENCRYPT</data_protection_kind>
        </topic_rule>
      </topic_access_rules>
    </domain_rule>
  </domain_access_rules>
</dds>
"#
    )
}

const IDENTITY_KEY: &str = "identity_ca.key.pem";
const PERMISSIONS_KEY: &str = "permissions_ca.key.pem";
/// The folders of a keystore, in the order in which they are made.
const PARTS: [&str; 3] = ["enclaves", "public", "private"];
/// Enclaves are to be renewed under the same authority, and ten years is what they count.
const AUTHORITY_DAYS: u32 = 7300;
/// Nobody makes a keystore for so long.
const MAKING_MAX: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);
/// The most letters of a common name, by the upper bounds of RFC 5280.
const NAME_MAX: usize = 64;

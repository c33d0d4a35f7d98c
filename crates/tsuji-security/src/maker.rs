//! Makes keystores and enclaves, laid out as `ros2 security create_keystore` and `create_enclave` do.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName,
    DnType, IsCa, Issuer, KeyIdMethod, KeyPair, PublicKeyData as _, RevokedCertParams,
    SerialNumber,
};
use ring::rand::{SecureRandom, SystemRandom};
use time::OffsetDateTime;

use crate::certificate::Certificate;
use crate::keystore::{
    CERTIFICATE, GOVERNANCE, IDENTITY_CA, KEY, PERMISSIONS, PERMISSIONS_CA, REVOCATIONS,
    check_revocations, folder_of, read_certificate, read_file, read_governance, read_permissions,
    read_revocations, read_revocations_of,
};
use crate::revocation::Revocations;
use crate::{Access, Enclave, Governance, Permissions, Refused, enclaves, signed, signing};

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
    pub fn expires_at(self) -> SystemTime {
        self.last
    }

    fn within(self, authority: &Certificate) -> Self {
        let (first, last) = authority.validity();
        Self { first: self.first.max(first), last: self.last.min(last) }
    }
}

/// Parts of an enclave that were made anew; the rest was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Additions {
    /// Its key, and the certificate for it.
    pub key: bool,
    /// What it may do.
    pub permissions: bool,
}

/// A list of revoked certificates that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRevocations {
    /// The file.
    pub path: PathBuf,
    /// Until when it counts.
    pub expires_at: SystemTime,
    /// Enclaves that have a list of their own, and keep it.
    pub others: Vec<String>,
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
            let file = File::open(folder).map_err(Refused::of(folder))?;
            lock(folder, &file, waits)?;
            if is_there(folder)? {
                return Staging::left_by_killed(folder).map_or(Ok(false), |it| it.put(folder));
            }
            let new = Staging::within(folder)?;
            build(&new.0, domain, now)?;
            return new.put(folder);
        }
        let beside = match folder.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        fs::create_dir_all(beside).map_err(Refused::of(beside))?;
        let new = Staging::within(beside)?;
        build(&new.0, domain, now)?;
        fs::set_permissions(&new.0, fs::Permissions::from_mode(0o755))
            .map_err(Refused::of(&new.0))?;
        match fs::rename(&new.0, folder) {
            Ok(()) => Ok(true),
            // Another was faster.
            Err(_) if is_there(folder)? => Ok(false),
            Err(error) => Err(Refused::of(folder)(error)),
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
        let file = file.or_else(|_| File::open(&path)).map_err(Refused::of(&path))?;
        lock(&path, &file, waits)?;
        Ok(Self {
            identities: Authority::read(folder, IDENTITY_CA, IDENTITY_KEY, now)?,
            permissions: Authority::read(folder, PERMISSIONS_CA, PERMISSIONS_KEY, now)?,
            folder: folder.to_owned(),
            _lock: file,
        })
    }

    /// When its authorities end, and with them all that they have signed.
    pub fn expires_at(&self) -> SystemTime {
        let last = |it: &Authority| it.certificate.validity().1;
        last(&self.identities).min(last(&self.permissions))
    }

    /// Signs another governance for all enclaves. Returns those that have one of their own, which stays.
    ///
    /// # Errors
    ///
    /// What is wrong with it, or the file that cannot be written.
    pub fn sign_governance(&self, governance: &NewGovernance) -> Result<Vec<String>, Refused> {
        let folder = self.folder.join("enclaves");
        self.permissions.put_signed(&folder, GOVERNANCE, &governance.0)?;
        let signed = folder.join(GOVERNANCE);
        let shared = read_file(&signed).map_err(Refused::of(&signed))?;
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
    pub fn add_enclave(
        &self,
        name: &str,
        access: Option<&Access>,
        domain: u32,
        lifetime: Lifetime,
        now: SystemTime,
    ) -> Result<(Additions, Enclave), Refused> {
        let enclaves = self.folder.join("enclaves");
        validate_enclave(name).map_err(|why| Refused::of(&enclaves)(format!("{name:?} {why}")))?;
        let path = enclaves.join(GOVERNANCE);
        check_domain(&path, &read_governance(&path, &self.permissions.certificate)?, domain)?;
        let folder = match &name[1..] {
            "" => enclaves,
            parts => enclaves.join(parts),
        };
        // All of it is looked at before any of it is put.
        let new = self.new_identity(&folder, name, lifetime)?;
        let path = folder.join(CERTIFICATE);
        let certificate = match &new {
            Some((_, pem)) => Certificate::from_pem(pem.as_bytes()).map_err(Refused::of(&path))?,
            None => read_certificate(&path)?,
        };
        certificate
            .is_issued_by(&self.identities.certificate)
            .and_then(|()| certificate.is_valid_at(now))
            .map_err(Refused::of(&path))?;
        let lists = read_revocations_of(&self.folder, &folder, &self.identities.certificate)?;
        check_revocations(&lists, &certificate, &path, now).map_err(|mut refused| {
            if refused.path == path {
                refused.why.push_str(&format!("; remove it and {KEY} for a new key"));
            }
            refused
        })?;
        let permissions = self.new_permissions(&folder, name, &certificate, access, domain)?;

        let made = Additions { key: new.is_some(), permissions: permissions.is_some() };
        link_shared_files(&folder, name)?;
        link_revocations(&self.folder, &folder, name)?;
        if let Some((key, certificate)) = new {
            replace_file(&folder.join(KEY), key.serialize_pem().as_bytes(), 0o600)?;
            replace_file(&path, certificate.as_bytes(), 0o644)?;
        }
        if let Some(permissions) = permissions {
            permissions.put(&folder.join(PERMISSIONS))?;
        }
        Ok((made, Enclave::read(&self.folder, name, now)?))
    }

    /// Takes the certificates in these files, and those that these enclaves have now, back: puts a new list of revoked ones, with those
    /// of the list before, where all enclaves have it. Those that have a list of their own keep that too, and are returned. The list
    /// counts as long as `lifetime` says, and as its authority.
    ///
    /// # Errors
    ///
    /// The file that is missing, unreadable or of another authority, and why: what was there is then as it was. Or the first enclave
    /// into whose folder the list cannot be linked, once all others have it.
    pub fn revoke(
        &self,
        names: &[String],
        files: &[PathBuf],
        lifetime: Lifetime,
        now: SystemTime,
    ) -> Result<NewRevocations, Refused> {
        let authority = &self.identities.certificate;
        let path = self.folder.join("public").join(REVOCATIONS);
        let before = read_revocations(&path, authority)?;
        let mut serials = before.map_or_else(Vec::new, |it| it.serials().to_vec());
        let own = names.iter().map(|it| folder_of(&self.folder, it).join(CERTIFICATE));
        for path in own.chain(files.iter().cloned()) {
            let certificate = read_certificate(&path)?;
            certificate.is_issued_by(authority).map_err(Refused::of(&path))?;
            if !serials.iter().any(|it| it == certificate.serial()) {
                serials.push(certificate.serial().to_vec());
            }
        }
        let lifetime = lifetime.within(authority);
        let list = self.identities.list(&serials, lifetime, now).map_err(Refused::of(&path))?;
        replace_file(&path, list.as_bytes(), 0o644)?;
        let shared = fs::canonicalize(&path).map_err(Refused::of(&path))?;
        let (mut others, mut linked) = (Vec::new(), Ok(()));
        for name in enclaves(&self.folder) {
            let folder = folder_of(&self.folder, &name);
            if let Err(refused) = link_revocations(&self.folder, &folder, &name) {
                linked = linked.and(Err(refused));
            } else if fs::canonicalize(folder.join(REVOCATIONS)).ok().as_ref() != Some(&shared) {
                others.push(name);
            }
        }
        linked.map(|()| NewRevocations { path, expires_at: lifetime.expires_at(), others })
    }

    /// A key and its certificate, where an enclave has none.
    fn new_identity(
        &self,
        folder: &Path,
        name: &str,
        lifetime: Lifetime,
    ) -> Result<Option<(KeyPair, String)>, Refused> {
        let [key, certificate] = [KEY, CERTIFICATE].map(|it| folder.join(it));
        match (is_there_or_link(&key), is_there_or_link(&certificate)) {
            (true, true) => Ok(None),
            // A key without a certificate is what one left who was killed: nobody knows it.
            (_, false) => {
                let lifetime = lifetime.within(&self.identities.certificate);
                let issued = self.identities.issue(name, lifetime);
                issued.map(Some).map_err(Refused::of(&certificate))
            }
            (false, true) => {
                let why =
                    format!("is not there, and its {CERTIFICATE} is; remove that for a new key");
                Err(Refused::of(&key)(why))
            }
        }
    }

    /// What an enclave may do, where that is said or nothing is there; what is kept has to be for the domain.
    fn new_permissions(
        &self,
        folder: &Path,
        name: &str,
        certificate: &Certificate,
        access: Option<&Access>,
        domain: u32,
    ) -> Result<Option<SignedDocument>, Refused> {
        let (path, subject) = (folder.join(PERMISSIONS), certificate.subject());
        if access.is_none() && is_there_or_link(&path) {
            let (kept, _) = read_permissions(&path, &self.permissions.certificate)?;
            let grant = kept.grant(certificate);
            if grant.is_some_and(|it| it.may_join(domain).is_allowed) {
                return Ok(None);
            }
            let why = format!("is kept, and lets {subject} not join domain {domain}");
            return Err(Refused::of(&path)(why));
        }
        let wanted = format!("CN={name}");
        if subject != wanted {
            let why = format!("is of {subject}, and permissions made here are of {wanted}");
            return Err(Refused::of(&folder.join(CERTIFICATE))(why));
        }
        let everything = Access::everything();
        let access = access.unwrap_or(&everything);
        let document = access.document(name, certificate.validity(), domain);
        Permissions::parse(&path.display().to_string(), document.as_bytes())
            .map_err(Refused::of(&path))?;
        self.permissions.sign(document).map(Some).map_err(Refused::of(&path))
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
        let document = read_file(path).map_err(Refused::of(path))?;
        let read = Governance::parse(&path.display().to_string(), &document);
        check_domain(path, &read.map_err(Refused::of(path))?, domain)?;
        String::from_utf8(document).map(Self).map_err(|_| Refused::of(path)("is not UTF-8"))
    }
}

/// Refuses a governance without a rule for a domain.
fn check_domain(path: &Path, governance: &Governance, domain: u32) -> Result<(), Refused> {
    if governance.domain(domain).is_some() {
        return Ok(());
    }
    let why = format!("has no rule for domain {domain}, so nobody could join it");
    Err(Refused::of(path)(why))
}

/// Returns whether a file or a link is there, also one that leads nowhere.
fn is_there_or_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Links what all enclaves have in common into the folder of one, as SROS2 does.
fn link_shared_files(folder: &Path, name: &str) -> Result<(), Refused> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)
        .map_err(Refused::of(folder))?;
    let up = up(name);
    for (file, whose) in [
        (IDENTITY_CA, format!("{up}../public/{IDENTITY_CA}")),
        (PERMISSIONS_CA, format!("{up}../public/{PERMISSIONS_CA}")),
        (GOVERNANCE, format!("{up}{GOVERNANCE}")),
    ] {
        link(folder, file, &whose)?;
    }
    Ok(())
}

/// Links the keystore's list of revoked certificates, if it has one, into the folder of an enclave.
fn link_revocations(keystore: &Path, folder: &Path, name: &str) -> Result<(), Refused> {
    if !is_there_or_link(&keystore.join("public").join(REVOCATIONS)) {
        return Ok(());
    }
    link(folder, REVOCATIONS, &format!("{}../public/{REVOCATIONS}", up(name)))
}

/// From the folder of an enclave to that of all.
fn up(name: &str) -> String {
    "../".repeat(name[1..].split('/').filter(|it| !it.is_empty()).count())
}

fn link(folder: &Path, file: &str, whose: &str) -> Result<(), Refused> {
    let link = folder.join(file);
    match symlink(whose, &link) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Refused::of(&link)(error))
        }
        _ => Ok(()),
    }
}

/// New folder in which a keystore is made. It is removed unless it was renamed.
struct Staging(PathBuf);

impl Staging {
    /// It ends with a number in so many digits, so that nothing else is taken for one and thrown away.
    const NAME: &str = ".tsuji-keystore-";
    const DIGITS: usize = 16;

    /// Nobody else has been in the folder before, whoever may write where it is.
    fn within(folder: &Path) -> Result<Self, Refused> {
        // Those who were killed have left theirs.
        for entry in
            fs::read_dir(folder).map_err(Refused::of(folder))?.flatten().filter(Self::is_old)
        {
            let _ = fs::remove_dir_all(entry.path());
        }
        let mut id = [0_u8; Self::DIGITS / 2];
        let random = SystemRandom::new().fill(&mut id);
        random.map_err(|_| Refused::of(folder)("the system has no random numbers"))?;
        let new = folder.join(format!("{}{}", Self::NAME, HEXLOWER.encode(&id)));
        fs::DirBuilder::new().mode(0o700).create(&new).map_err(Refused::of(&new))?;
        Ok(Self(new))
    }

    /// That of one who was killed while its parts got their places, the keys not yet.
    fn left_by_killed(folder: &Path) -> Option<Self> {
        let [first, .., last] = PARTS;
        let is_left = |it: &fs::DirEntry| {
            let path = it.path();
            Self::is_one(&it.file_name()) && !path.join(first).exists() && path.join(last).exists()
        };
        let is_begun = folder.join(first).exists() && !folder.join(last).exists();
        let mut entries = fs::read_dir(folder).ok().filter(|_| is_begun)?.flatten();
        entries.find(is_left).map(|it| Self(it.path()))
    }

    /// Moves its parts into the folder of the keystore.
    fn put(&self, folder: &Path) -> Result<bool, Refused> {
        for part in PARTS.iter().filter(|it| self.0.join(it).exists()) {
            let place = folder.join(part);
            fs::rename(self.0.join(part), &place).map_err(Refused::of(&place))?;
        }
        Ok(true)
    }

    fn is_one(name: &OsStr) -> bool {
        let number = name.to_str().and_then(|it| it.strip_prefix(Self::NAME));
        number.is_some_and(|it| {
            it.len() == Self::DIGITS && it.bytes().all(|it| it.is_ascii_hexdigit())
        })
    }

    fn is_old(entry: &fs::DirEntry) -> bool {
        let is_old = |it: fs::Metadata| {
            it.is_dir()
                && it.modified().is_ok_and(|it| it.elapsed().is_ok_and(|it| MAKING_MAX < it))
        };
        Self::is_one(&entry.file_name()) && entry.metadata().is_ok_and(is_old)
    }
}

impl Drop for Staging {
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
        fs::DirBuilder::new().mode(mode).create(folder).map_err(Refused::of(folder))?;
    }
    replace_file(&private.join("ca.key.pem"), authority.key.serialize_pem().as_bytes(), 0o600)?;
    replace_file(&public.join("ca.cert.pem"), certificate.as_bytes(), 0o644)?;
    for (folder, file, whose) in [
        (&public, IDENTITY_CA, "ca.cert.pem"),
        (&public, PERMISSIONS_CA, "ca.cert.pem"),
        (&private, IDENTITY_KEY, "ca.key.pem"),
        (&private, PERMISSIONS_KEY, "ca.key.pem"),
    ] {
        symlink(whose, folder.join(file)).map_err(Refused::of(&folder.join(file)))?;
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
    locked.map_err(Refused::of(path))
}

/// Whether a keystore is there; what else is there must not be mixed with one.
fn is_there(folder: &Path) -> Result<bool, Refused> {
    if PARTS.iter().any(|it| folder.join(it).exists()) {
        return Ok(true);
    }
    let is_other = |it: &fs::DirEntry| !Staging::is_one(&it.file_name());
    match fs::read_dir(folder).map(|it| it.flatten().any(|it| is_other(&it))) {
        Ok(true) => Err(Refused::of(folder)(
            "is not empty, and is no keystore, which has public, private and enclaves",
        )),
        Ok(false) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Refused::of(folder)(error)),
    }
}

impl Authority {
    fn new(lifetime: Lifetime) -> Result<(Self, String), Refused> {
        let refused = Refused::of::<String>(Path::new("ca.cert.pem"));
        let failed = |error: rcgen::Error| refused(error.to_string());
        let key = KeyPair::generate().map_err(failed)?;
        let mut asked = params("tsuji keystore", lifetime);
        asked.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
        let pem = asked.self_signed(&key).map_err(failed)?.pem();
        let certificate = Certificate::from_pem(pem.as_bytes()).map_err(&refused)?;
        Ok((Self { certificate, key }, pem))
    }

    fn read(keystore: &Path, file: &str, key: &str, now: SystemTime) -> Result<Self, Refused> {
        let path = keystore.join("public").join(file);
        let certificate = read_certificate(&path)?;
        certificate
            .is_anchor()
            .and_then(|()| certificate.is_valid_at(now))
            .map_err(Refused::of(&path))?;
        let path = keystore.join("private").join(key);
        let pem = read_file(&path).map_err(Refused::of(&path))?;
        let key = std::str::from_utf8(&pem).ok().and_then(|it| KeyPair::from_pem(it).ok());
        let key = key.ok_or_else(|| {
            Refused::of(&path)("is no key in PKCS #8 and in clear, of P-256, P-384 or RSA")
        })?;
        if key.der_bytes() != certificate.key() {
            return Err(Refused::of(&path)(format!("is not the key of public/{file}")));
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

    /// A list of certificates that were taken back, read as others read it before it counts.
    fn list(
        &self,
        serials: &[Vec<u8>],
        lifetime: Lifetime,
        now: SystemTime,
    ) -> Result<String, String> {
        let failed = |error: rcgen::Error| format!("cannot be signed: {error}");
        let der = self.certificate.der().into();
        let issuer = Issuer::from_ca_cert_der(&der, &self.key).map_err(failed)?;
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let revoked = serials.iter().map(|it| RevokedCertParams {
            serial_number: SerialNumber::from_slice(it),
            revocation_time: OffsetDateTime::from(now),
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: OffsetDateTime::from(lifetime.first),
            next_update: OffsetDateTime::from(lifetime.last),
            // Higher than that of the list before.
            crl_number: SerialNumber::from(since.as_micros() as u64),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let pem = list.signed_by(&issuer).and_then(|it| it.pem()).map_err(failed)?;
        let read = Revocations::from_pem(pem.as_bytes(), &self.certificate)?;
        match read.serials() == serials {
            true => Ok(pem),
            false => Err("cannot be signed: numbers of certificates come out otherwise".to_owned()),
        }
    }

    /// Signs a document. What comes of it is read as others read it before it counts.
    fn sign(&self, document: String) -> Result<SignedDocument, String> {
        let file = signing::signed(&document, &self.certificate, &self.key)?;
        signed::verified(&file, &self.certificate)?;
        Ok(SignedDocument { document, file })
    }

    fn put_signed(&self, folder: &Path, file: &str, document: &str) -> Result<(), Refused> {
        let path = folder.join(file);
        self.sign(document.to_owned()).map_err(Refused::of(&path))?.put(&path)
    }
}

/// Document, and its signed file, which is all that counts.
struct SignedDocument {
    document: String,
    file: Vec<u8>,
}

impl SignedDocument {
    /// Puts both there, the signed one last.
    fn put(&self, path: &Path) -> Result<(), Refused> {
        replace_file(&path.with_extension("xml"), self.document.as_bytes(), 0o644)?;
        replace_file(path, &self.file, 0o644)
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
fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Refused> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.new"));
    let written = || {
        let _ = fs::remove_file(&new);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    written().map_err(Refused::of(path))
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

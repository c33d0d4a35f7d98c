//! What secures this process: its enclave of a keystore, by which others know who it is, and which says what it may do.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use tsuji_platform::process;
use tsuji_ros::environment;
use tsuji_ros::names::DdsTopic;
use tsuji_security::{Answer, Certificate, Claim, Deed, Enclave, End, Identity, Peer, Protection};
use tsuji_transport::PeerId;

use crate::graph::CertificateReport;
use crate::{Error, ErrorKind, Result, Role};

/// The enclave of a process that is secured.
#[derive(Debug)]
pub(crate) struct Security {
    /// As it was read last, and was whole.
    identity: RwLock<Arc<Identity>>,
    /// What its files were like when they were read last.
    read: Mutex<Stamps>,
    keystore: PathBuf,
    enclave: String,
    domain: u32,
}

/// What came of looking whether the keystore has changed.
#[derive(Debug)]
pub(crate) enum Renewal {
    /// It is as it was.
    Same,
    /// From now on this counts.
    Renewed,
    /// It is not whole, and what was read before goes on counting.
    Refused(String),
}

impl Security {
    /// Reads the enclave that the environment and the program ask for. `None`, with a line that says so, where there is none and
    /// nothing enforces it.
    pub(crate) fn open(
        asked: &environment::Security,
        enclave: &str,
        domain: u32,
        lines: &mut Vec<String>,
    ) -> Result<Option<Self>> {
        let missing = match &asked.keystore {
            None => Some("ROS_SECURITY_KEYSTORE is not set".to_owned()),
            Some(keystore) if Enclave::is_in(Path::new(keystore), enclave) => None,
            Some(keystore) => {
                let there = tsuji_security::enclaves(Path::new(keystore));
                let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
                Some(format!(
                    "there is no enclave {enclave:?} in the keystore {keystore}, which has {there}; --enclave and \
                     ROS_SECURITY_ENCLAVE_OVERRIDE name another"
                ))
            }
        };
        if let Some(missing) = missing {
            if asked.is_enforced {
                return Err(Error::invalid(format!(
                    "security is enforced, and {missing}; `tsuji security create` makes keystores and enclaves"
                )));
            }
            lines.push(format!("ROS_SECURITY_ENABLE=true: {missing}; nothing is secured"));
            return Ok(None);
        }
        let keystore = Path::new(asked.keystore.as_deref().unwrap_or_default());
        // The program may go to another folder.
        let keystore = std::path::absolute(keystore)
            .map_err(|error| Error::invalid("ROS_SECURITY_KEYSTORE").because(error))?;
        let stamps = Stamps::of(&keystore, enclave);
        let identity = read(&keystore, enclave)
            .map_err(|why| Error::invalid(format!("ROS_SECURITY_ENABLE=true: {why}")))?;
        if let Some(Answer { is_allowed: false, because }) = identity.enclave().may_join(domain) {
            return Err(denied(format!(
                "the enclave {enclave:?} may not join domain {domain}: {because}"
            )));
        }
        Ok(Some(Self {
            enclave: identity.enclave().name().to_owned(),
            identity: RwLock::new(Arc::new(identity)),
            read: Mutex::new(stamps),
            keystore,
            domain,
        }))
    }

    /// The files of the enclave, as [`Enclave::files`] lists them.
    pub(crate) fn files(&self) -> [PathBuf; 8] {
        Enclave::files(&self.keystore, &self.enclave)
    }

    /// By which this process proves who it is, as the keystore was last.
    pub(crate) fn identity(&self) -> Arc<Identity> {
        Arc::clone(&self.identity.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the enclave again, if its files are others than they were.
    pub(crate) fn renew(&self) -> Renewal {
        let stamps = Stamps::of(&self.keystore, &self.enclave);
        let mut read_before = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if *read_before == stamps {
            return Renewal::Same;
        }
        *read_before = stamps;
        match read(&self.keystore, &self.enclave) {
            Ok(identity) => {
                *self.identity.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(identity);
                Renewal::Renewed
            }
            Err(why) => {
                // Others may be revoked whatever is wrong here.
                let list = self.identity().renew_revocations(&self.keystore);
                Renewal::Refused(match list {
                    Ok(()) => why,
                    Err(list) => format!("{why}; {list}"),
                })
            }
        }
    }

    /// By which this process proves who it is.
    pub(crate) fn certificate(&self) -> CertificateReport {
        let identity = self.identity();
        let enclave = identity.enclave();
        let first = enclave.expiries().first().map_or(SystemTime::UNIX_EPOCH, |(at, _)| *at);
        report_of(enclave.certificate(), first)
    }

    pub(crate) fn keystore(&self) -> &Path {
        &self.keystore
    }

    /// The enclave.
    pub(crate) fn enclave(&self) -> &str {
        &self.enclave
    }

    pub(crate) fn domain(&self) -> u32 {
        self.domain
    }

    /// A new claim by this identity of the process that is `id` in its domain.
    pub(crate) fn claim(&self, identity: &Identity, id: PeerId) -> Result<Claim, String> {
        let pid_namespace = process::pid_namespace().map_err(|error| error.to_string())?;
        identity.claim(End { token: id.0, domain: self.domain, pid: process::id(), pid_namespace })
    }

    /// How governance has the samples of a topic protected, whatever they go by. `topic` is as the outside of a robot calls it.
    pub(crate) fn protection(&self, role: Role, topic: &str) -> Protection {
        let (_, topic) = asked_of_dds(role, true, topic);
        self.identity().enclave().protection(self.domain, &topic).unwrap_or_default()
    }

    /// Refuses an endpoint of this process that its permissions do not allow. `topic` is as the outside of a robot calls it.
    pub(crate) fn permit(&self, role: Role, is_publisher: bool, topic: &str) -> Result<()> {
        let (deed, topic) = asked_of_dds(role, is_publisher, topic);
        let answer = self.identity().enclave().may(deed, self.domain, &topic);
        if answer.is_allowed {
            return Ok(());
        }
        Err(denied(format!(
            "the enclave {:?} may not {deed} {topic}: {}",
            self.enclave(),
            answer.because
        )))
    }

    /// Why another process may not have an endpoint of which it tells; nothing where it may.
    pub(crate) fn denial(
        &self,
        peer: &Peer,
        role: Role,
        is_publisher: bool,
        topic: &str,
    ) -> Option<String> {
        let (deed, topic) = asked_of_dds(role, is_publisher, topic);
        let answer = self.identity().peer_may(peer, deed, self.domain, &topic);
        let subject = peer.certificate().subject();
        (!answer.is_allowed)
            .then(|| format!("{subject} may not {deed} {topic}: {}", answer.because))
    }
}

fn read(keystore: &Path, enclave: &str) -> Result<Identity, String> {
    Identity::read(keystore, enclave, SystemTime::now()).map_err(|it| it.to_string())
}

/// By which it is seen that files were written anew: where each lies, how long it is, and when it was changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamps(Vec<Option<(u64, u64, i64, i64)>>);

impl Stamps {
    pub(crate) fn of(keystore: &Path, enclave: &str) -> Self {
        let stamp = |path: PathBuf| {
            let it = fs::metadata(path).ok()?;
            Some((it.ino(), it.len(), it.mtime(), it.mtime_nsec()))
        };
        Self(Enclave::files(keystore, enclave).into_iter().map(stamp).collect())
    }
}

pub(crate) fn report_of(certificate: &Certificate, expiry: SystemTime) -> CertificateReport {
    let since = expiry.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    CertificateReport {
        subject: certificate.subject().to_owned(),
        expires_wall_ns: i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
    }
}

fn denied(what: String) -> Error {
    Error::new(ErrorKind::PermissionDenied, what)
}

/// What permissions are asked for an endpoint: they have DDS's names.
fn asked_of_dds(role: Role, is_publisher: bool, topic: &str) -> (Deed, String) {
    let deed = if is_publisher { Deed::Publish } else { Deed::Subscribe };
    let named = match role {
        Role::Topic => DdsTopic::Topic(topic),
        Role::Request => DdsTopic::ServiceRequest(topic),
        Role::Reply => DdsTopic::ServiceReply(topic),
    };
    // What has no name of DDS no rule names.
    (deed, named.mangle().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use tsuji_security::{Lifetime, Maker};

    use super::*;

    #[test]
    fn what_is_not_whole_leaves_what_was_read_before() {
        let folder = process::temporary_path("tsuji-renewal");
        let now = SystemTime::now();
        Maker::make(&folder, 7, now, || {}).unwrap();
        let make = || {
            let maker = Maker::open(&folder, now, || {}).unwrap();
            maker.add_enclave("/a", None, 7, Lifetime::days(now, 9), now).unwrap();
        };
        make();
        let keystore = Some(folder.display().to_string());
        let asked = environment::Security { is_enforced: true, keystore, enclave: None };
        let security = Security::open(&asked, "/a", 7, &mut Vec::new()).unwrap().unwrap();
        assert!(matches!(security.renew(), Renewal::Same));
        let files = Enclave::files(&folder, "/a");
        let (certificate, key) = (&files[0], &files[1]);
        let first = security.identity();
        fs::write(key, "").unwrap();
        let Renewal::Refused(why) = security.renew() else { panic!("it is taken") };
        assert!(why.contains("key.pem"), "{why}");
        assert!(matches!(security.renew(), Renewal::Same), "once");
        assert!(Arc::ptr_eq(&first, &security.identity()));
        for file in [certificate, key] {
            fs::remove_file(file).unwrap();
        }
        assert!(matches!(security.renew(), Renewal::Refused(_)));
        make();
        assert!(matches!(security.renew(), Renewal::Renewed));
        let der = |it: &Identity| it.enclave().certificate().der().to_vec();
        assert_ne!(der(&first), der(&security.identity()));
        // Of another domain it is refused from the beginning.
        let error = Security::open(&asked, "/a", 8, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        fs::remove_dir_all(folder).unwrap();
    }
}

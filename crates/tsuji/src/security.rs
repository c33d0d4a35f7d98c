//! What secures this process: its enclave of a keystore, by which others know who it is, and which says what it may do.

use std::path::Path;
use std::time::SystemTime;

use tsuji_platform::process;
use tsuji_ros::environment;
use tsuji_ros::names::DdsTopic;
use tsuji_security::{Answer, Certificate, Claim, Deed, Enclave, End, Identity, Peer};
use tsuji_transport::PeerId;

use crate::graph::CertificateReport;
use crate::{Error, ErrorKind, Result, Role};

/// The enclave of a process that is secured.
#[derive(Debug)]
pub(crate) struct Security {
    pub(crate) identity: Identity,
    domain: u32,
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
        let identity = Identity::read(keystore, enclave, SystemTime::now())
            .map_err(|refused| Error::invalid(format!("ROS_SECURITY_ENABLE=true: {refused}")))?;
        let bytes = identity.permissions_bytes();
        if PERMISSIONS_BYTES_MAX < bytes {
            return Err(Error::invalid(format!(
                "ROS_SECURITY_ENABLE=true: the permissions of {enclave:?} are {bytes} bytes, which are told to every process; allowed: \
                 {PERMISSIONS_BYTES_MAX}"
            )));
        }
        if let Some(Answer { is_allowed: false, because }) = identity.enclave().may_join(domain) {
            return Err(denied(format!(
                "the enclave {enclave:?} may not join domain {domain}: {because}"
            )));
        }
        Ok(Some(Self { identity, domain }))
    }

    /// By which this process proves who it is.
    pub(crate) fn certificate(&self) -> CertificateReport {
        let enclave = self.identity.enclave();
        let first = enclave.expiries().first().map_or(SystemTime::UNIX_EPOCH, |(at, _)| *at);
        report_of(enclave.certificate(), first)
    }

    /// The enclave.
    pub(crate) fn enclave(&self) -> &str {
        self.identity.enclave().name()
    }

    pub(crate) fn domain(&self) -> u32 {
        self.domain
    }

    /// A new claim of the process that is `id` in its domain.
    pub(crate) fn claim(&self, id: PeerId) -> Result<Claim, String> {
        let pid_namespace = process::pid_namespace().map_err(|error| error.to_string())?;
        self.identity.claim(End {
            token: id.0,
            domain: self.domain,
            user: process::user_id(),
            pid: process::id(),
            pid_namespace,
        })
    }

    /// Refuses an endpoint of this process that its permissions do not allow. `topic` is as the outside of a robot calls it.
    pub(crate) fn permit(&self, role: Role, is_publisher: bool, topic: &str) -> Result<()> {
        let (deed, topic) = asked_of_dds(role, is_publisher, topic);
        let answer = self.identity.enclave().may(deed, self.domain, &topic);
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
    pub(crate) fn obstacle(
        &self,
        peer: &Peer,
        role: Role,
        is_publisher: bool,
        topic: &str,
    ) -> Option<String> {
        let (deed, topic) = asked_of_dds(role, is_publisher, topic);
        let answer = self.identity.peer_may(peer, deed, self.domain, &topic);
        let subject = peer.certificate().subject();
        (!answer.is_allowed)
            .then(|| format!("{subject} may not {deed} {topic}: {}", answer.because))
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

/// How much of its permissions a process may send before it has proved anything.
pub(crate) const PERMISSIONS_BYTES_MAX: usize = 512 * 1024;

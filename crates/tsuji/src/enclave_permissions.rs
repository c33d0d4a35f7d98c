//! What another enclave of the keystore may do, for who acts for somebody of it.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tsuji_platform::clock;
use tsuji_security::{Enclave, Verb};

use crate::context::Context;
use crate::security::Stamps;
use crate::session::Session;
use crate::{Error, Result};

/// What an enclave of a keystore may do. A process that acts for others, such as a bridge, asks by it what it does for each of them:
/// beside what its own enclave may, which is asked anyway.
///
/// Files that are written anew count ten seconds later, permissions and lists of revoked certificates among them. Where they are not
/// whole then, and where something has expired, nothing is allowed.
pub struct EnclavePermissions {
    session: Arc<Session>,
    keystore: PathBuf,
    domain: u32,
    enclave: String,
    read: Mutex<Read>,
}

/// The enclave as it was read last, and when its files were looked at.
struct Read {
    looked_ns: u64,
    stamps: Stamps,
    /// How often it was read before.
    version: u64,
    enclave: std::result::Result<Enclave, String>,
}

impl Context {
    /// Reads what an enclave of the keystore may do that secures this context, such as `/operator`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the context is not secured, or the enclave is not there or not whole: the file
    /// and what is wrong with it.
    pub fn enclave_permissions(&self, enclave: &str) -> Result<EnclavePermissions> {
        let session = self.session();
        let Some(security) = session.security() else {
            let why = format!(
                "the enclave {enclave:?} is asked for in a process that is not secured; it is by \
                 ROS_SECURITY_ENABLE=true and ROS_SECURITY_KEYSTORE"
            );
            return Err(Error::invalid(why));
        };
        let keystore = security.keystore().to_owned();
        let read = Read::of(&keystore, enclave);
        if let Err(why) = &read.enclave {
            return Err(Error::invalid(why.clone()));
        }
        Ok(EnclavePermissions {
            session: Arc::clone(session),
            keystore,
            domain: security.domain(),
            enclave: enclave.to_owned(),
            read: Mutex::new(read),
        })
    }
}

impl Read {
    fn of(keystore: &std::path::Path, enclave: &str) -> Self {
        // Before: what changes meanwhile is read again.
        let (looked_ns, stamps) = (clock::monotonic_ns(), Stamps::of(keystore, enclave));
        let read = Enclave::read(keystore, enclave, SystemTime::now());
        Self { looked_ns, stamps, version: 0, enclave: read.map_err(|it| it.to_string()) }
    }

    /// What has expired, if anything has.
    fn expired(&self) -> Option<&str> {
        let (at, what) = self.enclave.as_ref().ok()?.expiries().first()?;
        (*at <= SystemTime::now()).then_some(what)
    }
}

impl EnclavePermissions {
    /// The name of the enclave.
    pub fn enclave(&self) -> &str {
        &self.enclave
    }

    /// Whether whoever is of this enclave may do that with a topic, a service or an action, whose full name it is in this process.
    ///
    /// # Errors
    ///
    /// Why not: the rule of its permissions, or the file that does not count.
    pub fn may(&self, verb: Verb, name: &str) -> std::result::Result<(), String> {
        let read = self.current();
        let enclave = read.enclave.as_ref().map_err(Clone::clone)?;
        if let Some(what) = read.expired() {
            return Err(format!("{what} of the enclave {:?} has expired", self.enclave));
        }
        let name = self.session.outward().topic(name);
        for (deed, topic) in verb.topics(&name) {
            let answer = enclave.may(deed, self.domain, &topic);
            if !answer.is_allowed {
                let Self { enclave, .. } = self;
                return Err(format!(
                    "the enclave {enclave:?} may not {deed} {topic}: {}",
                    answer.because
                ));
            }
        }
        Ok(())
    }

    /// Another number once what is allowed may be something else: the files were written anew, or something has expired.
    pub fn version(&self) -> u64 {
        let read = self.current();
        if read.expired().is_some() { u64::MAX } else { read.version }
    }

    /// What is in the files, as they were at most ten seconds ago.
    fn current(&self) -> MutexGuard<'_, Read> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.looked_ns + LOOK_AGAIN_NS <= clock::monotonic_ns() {
            read.looked_ns = clock::monotonic_ns();
            if read.stamps != Stamps::of(&self.keystore, &self.enclave) {
                let version = read.version + 1;
                *read = Read { version, ..Read::of(&self.keystore, &self.enclave) };
            }
        }
        read
    }
}

impl fmt::Debug for EnclavePermissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnclavePermissions").field("enclave", &self.enclave).finish_non_exhaustive()
    }
}

/// How often it is looked whether files were written anew, as for the own enclave.
const LOOK_AGAIN_NS: u64 = Duration::from_secs(10).as_nanos() as u64;

//! How two processes of one host prove to each other who they are.
//!
//! Each end makes a [`Claim`]: who it is by its certificate, what it may do by its signed permissions, which process it is, and a
//! number that was never used before. Each checks the other's by the authorities of its own keystore, and then signs both claims and
//! the [`Side`] it is on. Whoever only hands on what others say has a process of his own at each end, which is not the one that is
//! claimed there.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use ring::rand::{SecureRandom, SystemRandom};

use crate::certificate::{Certificate, Digest, is_within};
use crate::key::Key;
use crate::keystore::read_revocations_of;
use crate::revocation::Revocations;
use crate::{Answer, Deed, Enclave, Grant, Permissions, Refused, signed};

/// An enclave with its key, which can prove that it is that enclave.
#[derive(Debug)]
pub struct Identity {
    enclave: Enclave,
    key: Key,
    identity_ca: Certificate,
    permissions_ca: Certificate,
    revocations: RwLock<Vec<Revocations>>,
    permissions: Vec<u8>,
    /// Whose permissions were found good lately, by their digest and that of the certificate: most processes of a robot share a few.
    checked: Mutex<Vec<([Vec<u8>; 2], Peer)>>,
}

/// What one end of a connection says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Which process it is.
    pub end: End,
    /// A number that was never used before.
    pub nonce: [u8; 32],
    /// Its certificate, in DER.
    pub certificate: Vec<u8>,
    /// Its permissions, as the file with their signature.
    pub permissions: Vec<u8>,
}

/// A process at an end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Its number among the processes of the domain.
    pub token: [u8; 16],
    /// The domain.
    pub domain: u32,
    /// Its process number, as the kernel knows it.
    pub pid: u32,
    /// In which namespace that is its number.
    pub pid_namespace: u64,
}

/// The ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Who has made it.
    Connecting,
    /// Who was connected to.
    Accepting,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Connecting => Self::Accepting,
            Self::Accepting => Self::Connecting,
        }
    }
}

/// Whom a claim is of, once its certificate and its permissions are checked.
#[derive(Clone, Debug)]
pub struct Peer {
    known: Arc<Known>,
}

#[derive(Debug)]
struct Known {
    certificate: Certificate,
    grant: Grant,
    /// Until when the authorities count too.
    expiry: SystemTime,
}

impl Identity {
    /// Reads an enclave of a keystore, as [`Enclave::read`] does, with its key.
    ///
    /// # Errors
    ///
    /// The first file that is missing, unreadable, forged, expired or of something else, and why.
    pub fn read(keystore: &Path, name: &str, now: SystemTime) -> Result<Self, Refused> {
        Enclave::read_whole(keystore, name, now)
    }

    pub(crate) fn new(
        enclave: Enclave,
        key: Key,
        [identity_ca, permissions_ca]: [Certificate; 2],
        revocations: Vec<Revocations>,
        permissions: Vec<u8>,
    ) -> Self {
        let (checked, revocations) = (Mutex::default(), RwLock::new(revocations));
        Self { enclave, key, identity_ca, permissions_ca, revocations, permissions, checked }
    }

    pub(crate) fn into_enclave(self) -> Enclave {
        self.enclave
    }

    /// Who it is, and what it may do.
    pub fn enclave(&self) -> &Enclave {
        &self.enclave
    }

    /// A new claim for a connection whose own end this is.
    ///
    /// # Errors
    ///
    /// If the system gives no random numbers.
    pub fn claim(&self, end: End) -> Result<Claim, String> {
        let mut nonce = [0; 32];
        let filled = SystemRandom::new().fill(&mut nonce);
        filled.map_err(|_| "the system gives no random numbers".to_owned())?;
        Ok(Claim {
            end,
            nonce,
            certificate: self.enclave.certificate().der().to_vec(),
            permissions: self.permissions.clone(),
        })
    }

    /// Whom the certificate of a claim is for at the time `now`, whatever its permissions are.
    ///
    /// # Errors
    ///
    /// Why it does not count.
    pub fn check_certificate(&self, claim: &Claim, now: SystemTime) -> Result<Certificate, String> {
        let certificate = Certificate::from_der(claim.certificate.clone())
            .map_err(|why| format!("its certificate {why}"))?;
        let subject = certificate.subject();
        let of_certificate = |why| format!("its certificate for {subject} {why}");
        let of_authority = |it: &Certificate| {
            let subject = it.subject().to_owned();
            it.is_valid_at(now).map_err(|why| format!("the authority {subject} {why}"))
        };
        of_authority(&self.identity_ca)?;
        of_authority(&self.permissions_ca)?;
        certificate.is_issued_by(&self.identity_ca).map_err(of_certificate)?;
        certificate.is_valid_at(now).map_err(of_certificate)?;
        self.permits(&certificate, now)?;
        Ok(certificate)
    }

    /// Reads the lists of revoked certificates again, also where something else of the enclave is not whole any more.
    ///
    /// # Errors
    ///
    /// The list that is unreadable, forged or of something else, and why. Those that were read before go on counting.
    pub fn renew_revocations(&self, keystore: &Path) -> Result<(), Refused> {
        let read = read_revocations_of(keystore, self.enclave.folder(), &self.identity_ca)?;
        let read = read.into_iter().map(|(_, list)| list).collect();
        *self.revocations.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }

    /// Refuses a certificate that was revoked, and any at all where a list of those has expired, or this enclave stands in it.
    ///
    /// # Errors
    ///
    /// Why it does not count.
    pub fn permits(&self, certificate: &Certificate, now: SystemTime) -> Result<(), String> {
        let own = self.enclave.certificate();
        let lists = self.revocations.read().unwrap_or_else(PoisonError::into_inner);
        lists.iter().try_for_each(|list| {
            let valid = list.is_valid_at(now);
            valid.map_err(|why| format!("the list of revoked certificates {why}"))?;
            [(own, "the own certificate of"), (certificate, "its certificate for")]
                .into_iter()
                .try_for_each(|(it, what)| {
                    list.permits(it).map_err(|why| format!("{what} {} {why}", it.subject()))
                })
        })
    }

    /// Whom a claim is of at the time `now`. That it is also whoever has made the claim only a [proof](Self::prove) shows.
    ///
    /// # Errors
    ///
    /// Why the certificate or the permissions do not count.
    pub fn check(&self, claim: &Claim, now: SystemTime) -> Result<Peer, String> {
        let digests = [&claim.certificate, &claim.permissions].map(|it| Digest::Sha256.of(it));
        let lately = || self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let found = lately().iter().find(|(it, _)| *it == digests).map(|(_, peer)| peer.clone());
        let peer = match found {
            Some(peer) if now <= peer.expiry() => peer,
            _ => {
                let certificate = self.check_certificate(claim, now)?;
                let peer = self.check_permissions(claim, certificate)?;
                let mut lately = lately();
                lately.truncate(CHECKED_MAX - 1);
                lately.insert(0, (digests, peer.clone()));
                peer
            }
        };
        // Lists come and expire while claims are remembered.
        self.permits(peer.certificate(), now)?;
        let (grant, subject) = (&peer.known.grant, peer.certificate().subject());
        is_within(grant.validity(), now).map_err(|why| format!("the grant for {subject} {why}"))?;
        let domain = claim.end.domain;
        let joins = self.enclave.governance().may_join(grant, domain);
        if let Some(Answer { is_allowed: false, because }) = joins {
            return Err(format!("{subject} may not join domain {domain}: {because}"));
        }
        Ok(peer)
    }

    /// Reads the permissions of a claim.
    fn check_permissions(&self, claim: &Claim, certificate: Certificate) -> Result<Peer, String> {
        let subject = certificate.subject();
        let document = signed::verified(&claim.permissions, &self.permissions_ca)
            .map_err(|why| format!("the permissions of {subject}: what it sent {why}"))?;
        let permissions = Permissions::parse(&format!("permissions of {subject}"), &document)
            .map_err(|errors| errors.to_string())?;
        let grant = permissions.grant(&certificate).cloned();
        let grant = grant.ok_or_else(|| format!("its permissions have no grant for {subject}"))?;
        let ends = [
            certificate.validity().1,
            grant.validity().1,
            self.identity_ca.validity().1,
            self.permissions_ca.validity().1,
        ];
        let expiry = ends.into_iter().min().unwrap_or(SystemTime::UNIX_EPOCH);
        Ok(Peer { known: Arc::new(Known { certificate, grant, expiry }) })
    }

    /// The signature that proves the claim `own`, made on this side of a connection, to whoever has made the claim `theirs`.
    ///
    /// # Errors
    ///
    /// If the system gives no random numbers.
    pub fn prove(&self, side: Side, own: &Claim, theirs: &Claim) -> Result<Vec<u8>, String> {
        let signed = self.key.sign(&statement(side, own, theirs));
        signed.ok_or_else(|| "the system gives no random numbers".to_owned())
    }

    /// Whether a peer may do this with a topic as DDS names it, by the governance of this keystore and by the peer's own grant.
    pub fn peer_may(&self, peer: &Peer, deed: Deed, domain: u32, topic: &str) -> Answer {
        self.enclave.governance().may(&peer.known.grant, deed, domain, topic)
    }
}

impl Peer {
    /// Its certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.known.certificate
    }

    /// Until when its certificate, its permissions and the authorities of both count.
    pub fn expiry(&self) -> SystemTime {
        self.known.expiry
    }

    /// Whether it has proved the claim `theirs` on its side of a connection, to whoever has made the claim `own`.
    pub fn has_proved(&self, side: Side, theirs: &Claim, own: &Claim, proof: &[u8]) -> bool {
        self.certificate().has_signed(&statement(side, theirs, own), Digest::Sha256, proof)
            == Some(true)
    }
}

/// What whoever is on this side signs, who has made the claim `own`.
fn statement(side: Side, own: &Claim, theirs: &Claim) -> Vec<u8> {
    let (connecting, accepting) = match side {
        Side::Connecting => (own, theirs),
        Side::Accepting => (theirs, own),
    };
    let mut statement = PURPOSE.to_vec();
    statement.push(match side {
        Side::Connecting => 1,
        Side::Accepting => 2,
    });
    for Claim { end, nonce, certificate, permissions } in [connecting, accepting] {
        let End { token, domain, pid, pid_namespace } = end;
        statement.extend(token);
        statement.extend([domain, pid].iter().flat_map(|it| it.to_be_bytes()));
        statement.extend(pid_namespace.to_be_bytes());
        statement.extend(nonce);
        // Of a fixed length, as all the rest.
        statement.extend(Digest::Sha256.of(certificate));
        statement.extend(Digest::Sha256.of(permissions));
    }
    statement
}

/// No signature that is made for something else begins with it.
const PURPOSE: &[u8] = b"tsuji: who is at this end of a control channel, 1\n";

/// So many claims are remembered.
const CHECKED_MAX: usize = 64;

/// The longest permissions of an enclave, as a file with their signature: whoever is met is told of them whole.
pub const PERMISSIONS_BYTES_MAX: usize = 512 * 1024;

//! Proving who one is on a control channel, where a process is secured.
//!
//! Whoever has connected sends its claim. The other one checks it, and answers with its own and the proof of that. The first
//! answers with its proof and goes on with its hello. Before that nothing else is taken, and whoever begins otherwise is refused
//! with the reason: so are a process that is not secured by one that is, and one that is by one that is not.

use std::time::SystemTime;

use tsuji_platform::process;
use tsuji_platform::socket::Credentials;
use tsuji_security::{Claim, End, Peer, Side};
use tsuji_transport::PeerId;
use tsuji_transport::deferred::told;

use super::protocol::{ClaimRecord, Control};
use super::{Keeper, say_hello};
use crate::graph::UnreachablePeer;
use crate::graph_cache::GraphCache;
use crate::security::{PERMISSIONS_BYTES_MAX, Security};

/// How far two processes have come in proving to each other who they are.
#[derive(Debug, Default)]
pub(crate) struct Proving {
    own: Option<Claim>,
    theirs: Option<Claim>,
    /// Bytes of the other's permissions that have not come yet.
    missing: usize,
    /// Whom the other claims to be, once what vouches for that is checked.
    checked: Option<Peer>,
    is_proved: bool,
}

/// What is known of the ends of a connection without the word of either.
#[derive(Clone, Copy, Debug)]
struct Ends {
    side: Side,
    own: PeerId,
    /// To whom this process has connected.
    target: Option<PeerId>,
    /// Who is at the other end, by the kernel.
    credentials: Option<Credentials>,
}

impl Proving {
    /// Who has proved to be at the other end.
    pub(crate) fn proved(&self) -> Option<&Peer> {
        self.checked.as_ref().filter(|_| self.is_proved)
    }

    /// The number of the process that has proved to be at the other end.
    pub(crate) fn token(&self) -> Option<PeerId> {
        let theirs = self.theirs.as_ref().filter(|_| self.is_proved)?;
        Some(PeerId(theirs.end.token))
    }

    /// What is said first on a connection that this process has made.
    pub(super) fn begin(
        &mut self,
        security: &Security,
        own: PeerId,
    ) -> Result<Vec<Control>, String> {
        let claim = security.claim(own)?;
        let words = words_of(&claim);
        self.own = Some(claim);
        Ok(words)
    }

    /// Takes a word of the other end. Answers what is to be said, or why there is nothing to say to each other.
    fn take(
        &mut self,
        security: &Security,
        ends: Ends,
        word: Control,
    ) -> Result<Vec<Control>, String> {
        match word {
            Control::Claim(record) if self.theirs.is_none() => {
                let ClaimRecord { token, domain, user, pid, pid_namespace, .. } = *record;
                let end = End { token, domain, user, pid, pid_namespace };
                check_end(security, ends, end)?;
                let missing = record.permissions_bytes as usize;
                if missing == 0 || PERMISSIONS_BYTES_MAX < missing {
                    return Err(format!(
                        "its permissions are {missing} bytes; allowed: 1 to {PERMISSIONS_BYTES_MAX}"
                    ));
                }
                self.missing = missing;
                self.theirs = Some(Claim {
                    end,
                    nonce: record.nonce,
                    certificate: record.certificate,
                    permissions: Vec::new(),
                });
                Ok(Vec::new())
            }
            Control::ClaimPart(part) if !part.is_empty() && part.len() <= self.missing => {
                let Some(theirs) = &mut self.theirs else { return Err(OUT_OF_ORDER.to_owned()) };
                self.missing -= part.len();
                theirs.permissions.extend(part);
                if 0 < self.missing {
                    return Ok(Vec::new());
                }
                self.checked = Some(security.identity.check(theirs, SystemTime::now())?);
                if ends.side == Side::Connecting {
                    return Ok(Vec::new());
                }
                let mut words = self.begin(security, ends.own)?;
                words.push(self.proof(security, ends)?);
                Ok(words)
            }
            Control::Proof(proof) if !self.is_proved => {
                let (Some(own), Some(theirs), Some(peer)) =
                    (&self.own, &self.theirs, &self.checked)
                else {
                    return Err(OUT_OF_ORDER.to_owned());
                };
                if !peer.has_proved(ends.side.other(), theirs, own, &proof) {
                    let subject = peer.certificate().subject();
                    return Err(format!("it does not prove that it has the key of {subject}"));
                }
                self.is_proved = true;
                match ends.side {
                    Side::Connecting => Ok(vec![self.proof(security, ends)?]),
                    Side::Accepting => Ok(Vec::new()),
                }
            }
            _ => Err(OUT_OF_ORDER.to_owned()),
        }
    }

    fn proof(&self, security: &Security, ends: Ends) -> Result<Control, String> {
        let (Some(own), Some(theirs)) = (&self.own, &self.theirs) else {
            return Err(OUT_OF_ORDER.to_owned());
        };
        security.identity.prove(ends.side, own, theirs).map(Control::Proof)
    }
}

/// Holds what a process says of itself against what the kernel says of it.
fn check_end(security: &Security, ends: Ends, claimed: End) -> Result<(), String> {
    let token = PeerId(claimed.token);
    if token == ends.own || ends.target.is_some_and(|target| target != token) {
        return Err("it claims to be another process than the one whose socket this is".to_owned());
    }
    if claimed.domain != security.domain() {
        return Err(format!(
            "it claims domain {}, and this is {}",
            claimed.domain,
            security.domain()
        ));
    }
    let namespace = process::pid_namespace().map_err(|error| error.to_string())?;
    if claimed.pid_namespace != namespace {
        return Err("it has another pid namespace, in which the kernel cannot say who it is; allowed: the same, as with \
                    --pid=host of a container"
            .to_owned());
    }
    let Some(known) = ends.credentials else {
        return Err("the kernel does not say who it is".to_owned());
    };
    if (known.user, known.pid) != (claimed.user, claimed.pid) {
        return Err(format!(
            "it claims to be process {} of user {}, and is process {} of user {} by the kernel's word",
            claimed.pid, claimed.user, known.pid, known.user
        ));
    }
    Ok(())
}

/// A claim, as it is said.
fn words_of(claim: &Claim) -> Vec<Control> {
    let Claim { end, nonce, certificate, permissions } = claim;
    let record = ClaimRecord {
        token: end.token,
        domain: end.domain,
        user: end.user,
        pid: end.pid,
        pid_namespace: end.pid_namespace,
        nonce: *nonce,
        certificate: certificate.clone(),
        permissions_bytes: permissions.len() as u32,
    };
    let parts = permissions.chunks(PART_BYTES).map(|it| Control::ClaimPart(it.to_vec()));
    [Control::Claim(Box::new(record))].into_iter().chain(parts).collect()
}

impl Keeper {
    /// Answers what the other end says, if it has proved who it is or need not; else takes it as a part of that proof.
    pub(super) fn authenticate(
        &self,
        graph_cache: &mut GraphCache,
        key: u64,
        control: Control,
    ) -> Option<Control> {
        let of_proof =
            matches!(control, Control::Claim(_) | Control::ClaimPart(_) | Control::Proof(_));
        if let Control::Refused(reason) = control {
            let reason = match reason.as_str() {
                ONE_IN_CLEAR => reason,
                _ => format!("it refuses this process, of which it says: {reason}"),
            };
            self.note_refusal(graph_cache, key, &reason);
            return None;
        }
        let Some(security) = self.session.security() else {
            if of_proof {
                self.refuse(graph_cache, key, ONE_IN_CLEAR);
                return None;
            }
            return Some(control);
        };
        let channel = graph_cache.channels.get(key)?;
        if channel.proving.is_proved && !of_proof {
            return Some(control);
        }
        if !of_proof {
            self.refuse(graph_cache, key, ONE_IN_CLEAR);
            return None;
        }
        let side = if channel.target.is_some() { Side::Connecting } else { Side::Accepting };
        let (target, credentials) = (channel.target, channel.credentials());
        let ends = Ends { side, own: self.session.id, target, credentials };
        match channel.proving.take(security, ends, control) {
            Ok(words) => {
                let is_proved = channel.proving.is_proved;
                words.iter().for_each(|it| graph_cache.channels.send_by(key, it));
                if is_proved && let Some(target) = target {
                    say_hello(&self.session, graph_cache, key, target);
                }
            }
            Err(reason) => self.refuse(graph_cache, key, &reason),
        }
        None
    }

    /// Has nothing to do with whoever is at the other end, and says so to it and to whoever asks.
    fn refuse(&self, graph_cache: &mut GraphCache, key: u64, reason: &str) {
        graph_cache.channels.send_by(key, &Control::Refused(reason.to_owned()));
        self.note_refusal(graph_cache, key, reason);
    }

    fn note_refusal(&self, graph_cache: &mut GraphCache, key: u64, reason: &str) {
        // Also what others say is for people to read.
        let reason = reason.chars().filter(|it| !it.is_control()).take(REASON_CHARS_MAX).collect();
        let path = self.place_of(graph_cache, key);
        let refused = UnreachablePeer { path, reason };
        if graph_cache.is_new_unreachable_peer(&refused) {
            let process = graph_cache.channels.program_at(key);
            told::warn!(
                path = refused.path,
                process,
                reason = refused.reason,
                "a process is not met"
            );
        }
        graph_cache.note_unreachable_peer(refused);
        if let Some(target) = graph_cache.channels.get(key).and_then(|channel| channel.target) {
            graph_cache.refuse_near(&self.session, target);
        }
        self.drop_channel(graph_cache, key);
    }
}

/// So much of its permissions goes in one message.
const PART_BYTES: usize = 32 * 1024;

/// The longest reason that is shown.
const REASON_CHARS_MAX: usize = 400;

/// What both of them may say, and take for the same.
const ONE_IN_CLEAR: &str = "one of the two is secured by a keystore, and the other is not";

const OUT_OF_ORDER: &str = "what it says does not prove who it is";

//! Proving who one is on a control channel, where a process is secured.
//!
//! Whoever has connected sends its claim. The other one checks it, and answers with its own and the proof of that. The first
//! answers with its proof and goes on with its hello. Before that nothing else is taken, and whoever begins otherwise is refused
//! with the reason: so are a process that is not secured by one that is, and one that is by one that is not.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tsuji_platform::socket::Credentials;
use tsuji_platform::{clock, process};
use tsuji_security::{Claim, End, Identity, PERMISSIONS_BYTES_MAX, Peer, Side};
use tsuji_transport::PeerId;
use tsuji_transport::deferred::told;

use super::protocol::{ClaimRecord, Control};
use super::{Keeper, say_hello};
use crate::graph::UnreachablePeer;
use crate::graph_cache::GraphCache;
use crate::pacing::after;
use crate::security::{Renewal, Security};
use crate::session::Session;

/// How far two processes have come in proving to each other who they are.
#[derive(Debug, Default)]
pub(crate) struct Authentication {
    proved: Option<AuthenticatedPeer>,
    /// The proof that goes on now: the first, or one more since a keystore was renewed.
    exchange: Exchange,
    /// The keystore was renewed while it goes on.
    wants_again: bool,
}

/// Who has proved to be at the other end.
#[derive(Debug)]
struct AuthenticatedPeer {
    token: PeerId,
    peer: Peer,
}

#[derive(Debug, Default)]
struct Exchange {
    /// By which the own claim is made, and what it is.
    own: Option<(Arc<Identity>, Claim)>,
    theirs: Option<Claim>,
    /// Bytes of the other's permissions that have not come yet.
    missing: usize,
    /// Whom the other claims to be, once what vouches for that is checked.
    checked: Option<Peer>,
    /// This process has begun.
    is_own: bool,
    /// When it began.
    since_ns: u64,
}

/// What is known of the ends of a connection without the word of either.
#[derive(Clone, Copy, Debug)]
struct Ends {
    own: PeerId,
    /// To whom this process has connected, or who has proved to be there before.
    expected: Option<PeerId>,
    /// Who is at the other end, by the kernel.
    credentials: Option<Credentials>,
    /// When this process was connected to, since the system began; nothing where it has connected itself.
    accepted_ns: Option<u64>,
}

impl Authentication {
    /// Bytes that are held of a claim which is not proved.
    pub(crate) fn claimed_bytes(&self) -> usize {
        self.exchange.theirs.as_ref().map_or(0, |it| it.permissions.len())
    }

    /// Since when a proof goes on, on the monotonic clock.
    pub(crate) fn running_since_ns(&self) -> Option<u64> {
        self.exchange.is_running().then_some(self.exchange.since_ns)
    }

    /// Who has proved to be at the other end.
    pub(crate) fn proved(&self) -> Option<&Peer> {
        self.proved.as_ref().map(|it| &it.peer)
    }

    /// The number of the process that has proved to be at the other end.
    pub(crate) fn token(&self) -> Option<PeerId> {
        self.proved.as_ref().map(|it| it.token)
    }

    /// What is said first by whoever begins: who has made a connection, or has another keystore than when it was proved.
    /// Nothing while a proof goes on; it is then begun when that is over.
    pub(super) fn begin(
        &mut self,
        security: &Security,
        own: PeerId,
    ) -> Result<Vec<Control>, String> {
        self.wants_again = self.exchange.is_running();
        if self.wants_again {
            return Ok(Vec::new());
        }
        self.exchange.is_own = true;
        self.exchange.since_ns = clock::monotonic_ns();
        self.exchange.claim(security, own)
    }

    /// Takes a word of the other end. Answers what is to be said and whether it is proved by now who that is, or why there is
    /// nothing to say to each other.
    fn handle_message(
        &mut self,
        security: &Security,
        ends: Ends,
        word: Control,
    ) -> Result<(Vec<Control>, bool), String> {
        let exchange = &mut self.exchange;
        match word {
            Control::Claim(record) if exchange.theirs.is_none() => {
                let have_both_begun = exchange.is_own && !record.is_answer;
                if (record.is_answer && !exchange.is_own)
                    || (have_both_begun && self.proved.is_none())
                {
                    return Err(OUT_OF_ORDER.to_owned());
                }
                // The one of the lower number answers.
                exchange.is_own &= !have_both_begun || PeerId(record.token) < ends.own;
                exchange.handle_claim(security, ends, *record)?;
                Ok((Vec::new(), false))
            }
            Control::ClaimPart(part) if !part.is_empty() && part.len() <= exchange.missing => {
                let Some(theirs) = &mut exchange.theirs else {
                    return Err(OUT_OF_ORDER.to_owned());
                };
                exchange.missing -= part.len();
                theirs.permissions.extend(part);
                if 0 < exchange.missing {
                    return Ok((Vec::new(), false));
                }
                let checked = security.identity().check(theirs, SystemTime::now())?;
                let (before, now) = (self.proved.as_ref(), checked.certificate().subject());
                if let Some(before) = before.map(|it| it.peer.certificate().subject())
                    && before != now
                {
                    return Err(format!("it has proved to be {before}, and claims to be {now}"));
                }
                exchange.checked = Some(checked);
                if exchange.is_own {
                    return Ok((Vec::new(), false));
                }
                let mut words = match exchange.own {
                    Some(_) => Vec::new(),
                    None => exchange.claim(security, ends.own)?,
                };
                words.push(exchange.proof()?);
                Ok((words, false))
            }
            Control::Proof(proof) => {
                let (Some((_, own)), Some(theirs), Some(peer)) =
                    (&exchange.own, &exchange.theirs, &exchange.checked)
                else {
                    return Err(OUT_OF_ORDER.to_owned());
                };
                if !peer.has_proved(exchange.side().other(), theirs, own, &proof) {
                    let subject = peer.certificate().subject();
                    return Err(format!("it does not prove that it has the key of {subject}"));
                }
                let mut words = Vec::new();
                if exchange.is_own {
                    words.push(exchange.proof()?);
                }
                let (token, peer) = (PeerId(theirs.end.token), peer.clone());
                self.proved = Some(AuthenticatedPeer { token, peer });
                self.exchange = Exchange::default();
                if std::mem::take(&mut self.wants_again) {
                    words.extend(self.begin(security, ends.own)?);
                }
                Ok((words, true))
            }
            _ => Err(OUT_OF_ORDER.to_owned()),
        }
    }
}

impl Exchange {
    /// Whoever begins a proof is on the side of who has made the connection.
    fn side(&self) -> Side {
        if self.is_own { Side::Connecting } else { Side::Accepting }
    }

    fn is_running(&self) -> bool {
        self.own.is_some() || self.theirs.is_some()
    }

    fn claim(&mut self, security: &Security, own: PeerId) -> Result<Vec<Control>, String> {
        let identity = security.identity();
        let claim = security.claim(&identity, own)?;
        let words = messages_of(&claim, !self.is_own);
        self.own = Some((identity, claim));
        Ok(words)
    }

    fn handle_claim(
        &mut self,
        security: &Security,
        ends: Ends,
        record: ClaimRecord,
    ) -> Result<(), String> {
        let ClaimRecord { token, domain, pid, pid_namespace, .. } = record;
        let end = End { token, domain, pid, pid_namespace };
        check_end(security, ends, end)?;
        let missing = record.permissions_bytes as usize;
        if missing == 0 || PERMISSIONS_BYTES_MAX < missing {
            return Err(format!(
                "its permissions are {missing} bytes; allowed: 1 to {PERMISSIONS_BYTES_MAX}"
            ));
        }
        let (nonce, certificate) = (record.nonce, record.certificate);
        let claim = Claim { end, nonce, certificate, permissions: Vec::new() };
        // Before anything is kept of what follows.
        security.identity().check_certificate(&claim, SystemTime::now())?;
        self.missing = missing;
        if !self.is_running() {
            self.since_ns = clock::monotonic_ns();
        }
        self.theirs = Some(claim);
        Ok(())
    }

    fn proof(&self) -> Result<Control, String> {
        let (Some((identity, own)), Some(theirs)) = (&self.own, &self.theirs) else {
            return Err(OUT_OF_ORDER.to_owned());
        };
        identity.prove(self.side(), own, theirs).map(Control::Proof)
    }
}

/// Holds what a process says of itself against what the kernel says of it.
fn check_end(security: &Security, ends: Ends, claimed: End) -> Result<(), String> {
    let token = PeerId(claimed.token);
    if token == ends.own || ends.expected.is_some_and(|expected| expected != token) {
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
    if known.pid != claimed.pid {
        return Err(format!(
            "it claims to be process {}, and is process {} by the kernel's word",
            claimed.pid, known.pid
        ));
    }
    if let Some(accepted_ns) = ends.accepted_ns {
        // The kernel names who has connected, also when that one is gone and somebody else has its number.
        let began_ns = process::began_ns(known.pid).map_err(|error| error.to_string())?;
        if accepted_ns < began_ns {
            return Err(
                "it began after the connection was made, which is somebody else's".to_owned()
            );
        }
    }
    Ok(())
}

/// A claim, as it is said.
fn messages_of(claim: &Claim, is_answer: bool) -> Vec<Control> {
    let Claim { end, nonce, certificate, permissions } = claim;
    let record = ClaimRecord {
        token: end.token,
        domain: end.domain,
        pid: end.pid,
        pid_namespace: end.pid_namespace,
        is_answer,
        nonce: *nonce,
        certificate: certificate.clone(),
        permissions_bytes: permissions.len() as u32,
    };
    let parts = permissions.chunks(PART_BYTES).map(|it| Control::ClaimPart(it.to_vec()));
    [Control::Claim(Box::new(record))].into_iter().chain(parts).collect()
}

/// Begins to talk on a connection that this process has made: with a claim where it is secured, else with a hello.
pub(super) fn introduce(session: &Session, graph_cache: &mut GraphCache, key: u64, peer: PeerId) {
    let Some(security) = session.security() else {
        return say_hello(session, graph_cache, key, peer);
    };
    let Some(channel) = graph_cache.channels.get(key) else { return };
    match channel.authentication.begin(security, session.id) {
        Ok(words) => words.iter().for_each(|it| graph_cache.channels.send_by(key, it)),
        Err(error) => {
            told::warn!(error, "no claim now");
            graph_cache.channels.give_up(key);
        }
    }
}

impl Keeper {
    /// Lets a word through from whoever has proved who it is, or need not. A word of a proof is taken here; who says anything else
    /// before, or is secured where this process is not, is refused.
    pub(super) fn authenticate(
        &self,
        graph_cache: &mut GraphCache,
        key: u64,
        control: Control,
    ) -> Option<Control> {
        let of_proof =
            matches!(control, Control::Claim(_) | Control::ClaimPart(_) | Control::Proof(_));
        let channel = graph_cache.channels.get(key)?;
        let is_met = channel.hello.is_some() && !channel.authentication.exchange.is_running();
        if let Control::Refused(reason) = control {
            // Whoever is met has no reason to say so.
            if !is_met && !graph_cache.channels.is_remote(key) {
                let reason = match reason.as_str() {
                    ONE_IN_CLEAR => reason,
                    _ => format!("it refuses this process, of which it says: {reason}"),
                };
                self.note_refusal(graph_cache, key, &reason);
            }
            return None;
        }
        let Some(security) = self.session.security() else {
            if of_proof && !is_met {
                self.refuse(graph_cache, key, ONE_IN_CLEAR);
            }
            return Some(control).filter(|_| !of_proof);
        };
        let was_proved = channel.authentication.proved.is_some();
        if !of_proof {
            if !was_proved {
                self.refuse(graph_cache, key, ONE_IN_CLEAR);
            }
            return Some(control).filter(|_| was_proved);
        }
        let (target, credentials) = (channel.target, channel.credentials());
        let expected = channel.authentication.token().or(target);
        let accepted_ns = target.is_none().then_some(channel.since_boot_ns());
        let ends = Ends { own: self.session.id, expected, credentials, accepted_ns };
        if !was_proved && CLAIMED_BYTES_MAX < graph_cache.channels.claimed_bytes() {
            let path = self.place_of(graph_cache, key);
            let reason = "too many claims at once; those that are let go may come again".to_owned();
            graph_cache.note_unreachable_peer(UnreachablePeer { path, reason });
            self.drop_channel(graph_cache, key);
            return None;
        }
        let channel = graph_cache.channels.get(key)?;
        match channel.authentication.handle_message(security, ends, control) {
            Ok((words, is_proved)) => {
                let peer = channel.authentication.token().filter(|_| is_proved);
                words.iter().for_each(|it| graph_cache.channels.send_by(key, it));
                let peer = peer?;
                graph_cache.channels.forgive(peer);
                match target {
                    _ if was_proved => graph_cache.apply_permissions(&self.session, peer),
                    Some(target) => say_hello(&self.session, graph_cache, key, target),
                    None => {}
                }
            }
            Err(reason) => self.refuse(graph_cache, key, &reason),
        }
        None
    }

    /// Looks whether the keystore was renewed, and whether whoever is met still counts. Answers when that is looked at again.
    pub(super) fn check_keys(&self) -> Option<u64> {
        let security = self.session.security()?;
        let renewal = security.renew();
        let mut graph_cache = self.session.graph_cache();
        match renewal {
            Renewal::Same => {}
            Renewal::Renewed => {
                told::info!(enclave = security.enclave(), "the keystore was renewed");
                self.follow_keystore(&mut graph_cache);
                // Whoever was refused may not be by these.
                graph_cache.channels.retain_refused(|_| false);
                graph_cache.channels.hurry();
                graph_cache.channels.look_again();
                for key in graph_cache.channels.proved_keys() {
                    self.authenticate_again(&mut graph_cache, security, key);
                }
            }
            Renewal::Refused(why) => {
                told::warn!(
                    why,
                    "the keystore has changed and is not whole; as it was before it goes on counting"
                );
            }
        }
        let (identity, now) = (security.identity(), SystemTime::now());
        for key in graph_cache.channels.proved_keys() {
            let proved = graph_cache.channels.get(key).and_then(|it| it.authentication.proved());
            let reason = proved.and_then(|it| {
                if it.expiry() < now {
                    let subject = it.certificate().subject();
                    return Some(format!(
                        "the certificate or the permissions of {subject} have expired"
                    ));
                }
                identity.permits(it.certificate(), now).err()
            });
            if let Some(reason) = reason {
                self.refuse(&mut graph_cache, key, &reason);
            }
        }
        Some(after(clock::monotonic_ns(), KEYS))
    }

    fn authenticate_again(&self, graph_cache: &mut GraphCache, security: &Security, key: u64) {
        let Some(channel) = graph_cache.channels.get(key) else { return };
        match channel.authentication.begin(security, self.session.id) {
            Ok(words) => words.iter().for_each(|it| graph_cache.channels.send_by(key, it)),
            Err(error) => told::warn!(error, "the renewed key is not proved"),
        }
    }

    /// Has nothing to do with whoever is at the other end, and says so to it and to whoever asks.
    fn refuse(&self, graph_cache: &mut GraphCache, key: u64, reason: &str) {
        graph_cache.channels.send_by(key, &Control::Refused(reason.to_owned()));
        self.note_refusal(graph_cache, key, reason);
    }

    fn note_refusal(&self, graph_cache: &mut GraphCache, key: u64, reason: &str) {
        // Also what others say is for people to read.
        let reason = reason.chars().filter(|it| !it.is_control()).take(REASON_CHARS_MAX).collect();
        let (path, process) =
            (self.place_of(graph_cache, key), graph_cache.channels.program_at(key));
        let target = graph_cache.channels.get(key).and_then(|channel| channel.target);
        // Of those who have connected one folder is all the path there is.
        let path = if target.is_some() { path } else { format!("{path}, {process}") };
        let refused = UnreachablePeer { path, reason };
        if graph_cache.is_new_unreachable_peer(&refused) {
            told::warn!(
                path = refused.path,
                process,
                reason = refused.reason,
                "a process is not met"
            );
            graph_cache.forget_unreachable_peer(&refused.path);
            graph_cache.note_unreachable_peer(refused);
        }
        match target {
            // Its keystore or what stands at its path may be another later, so it is tried again, ever more rarely.
            Some(_) if self.session.security().is_some() => graph_cache.channels.look_again(),
            Some(target) => graph_cache.refuse_near(&self.session, target),
            None => {}
        }
        self.drop_channel(graph_cache, key);
    }
}

/// So many bytes are held of permissions whose owners have not proved anything yet.
const CLAIMED_BYTES_MAX: usize = 16 << 20;

/// How often is looked whether the keystore was renewed, and who has expired.
const KEYS: Duration = Duration::from_secs(10);

/// So much of its permissions goes in one message.
const PART_BYTES: usize = 32 * 1024;

/// The longest reason that is shown.
const REASON_CHARS_MAX: usize = 400;

/// What both of them may say, and take for the same.
const ONE_IN_CLEAR: &str = "one of the two is secured by a keystore, and the other is not";

const OUT_OF_ORDER: &str =
    "it says the words of a proof out of their order: a claim, its parts, the proof";

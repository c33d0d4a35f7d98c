//! What two processes prove to each other by their keystores, and what nobody can.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use house::Folder;
use proptest::prelude::*;
use tsuji_security::{Claim, Deed, End, Identity, Lifetime, Maker, Peer, Side};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
const TALKER: &str = "/talker_listener/talker";
const LISTENER: &str = "/talker_listener/listener";
const CONNECTING: End = End { token: [1; 16], domain: 0, pid: 11, pid_namespace: 7 };
const ACCEPTING: End = End { token: [2; 16], domain: 0, pid: 12, pid_namespace: 7 };

fn at(year: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs((year - 1970) * 31_556_952)
}

fn sros2() -> PathBuf {
    Path::new(DATA).join("sros2")
}

fn identity(name: &str) -> Identity {
    Identity::read(&sros2(), name, at(2028)).unwrap()
}

/// Both ends of a connection, with their claims.
struct Ends {
    ends: [Identity; 2],
    claims: [Claim; 2],
}

impl Ends {
    fn new(ends: [Identity; 2]) -> Self {
        let claims = [ends[0].claim(CONNECTING).unwrap(), ends[1].claim(ACCEPTING).unwrap()];
        Self { ends, claims }
    }

    fn side(at: usize) -> Side {
        [Side::Connecting, Side::Accepting][at]
    }

    /// Whom one end takes the other for.
    fn checked(&self, at: usize) -> Result<Peer, String> {
        self.ends[at].check(&self.claims[1 - at], at_2028())
    }

    fn proof(&self, at: usize) -> Vec<u8> {
        let (own, theirs) = (&self.claims[at], &self.claims[1 - at]);
        self.ends[at].prove(Self::side(at), own, theirs).unwrap()
    }

    /// Whether one end takes the proof of the other.
    fn takes(&self, at: usize, proof: &[u8]) -> bool {
        let (own, theirs) = (&self.claims[at], &self.claims[1 - at]);
        let peer = self.checked(at).unwrap();
        peer.has_proved(Self::side(at).other(), theirs, own, proof)
    }
}

fn at_2028() -> SystemTime {
    at(2028)
}

fn talker_and_listener() -> Ends {
    Ends::new([identity(TALKER), identity(LISTENER)])
}

#[test]
fn two_enclaves_of_sros2_prove_who_they_are() {
    let ends = talker_and_listener();
    for (at, name) in [(0, LISTENER), (1, TALKER)] {
        let peer = ends.checked(at).unwrap();
        assert_eq!(peer.certificate().subject(), format!("CN={name}"));
        assert!(ends.takes(at, &ends.proof(1 - at)), "{name}");
    }
    let talker = ends.checked(1).unwrap();
    let may = |deed, topic| ends.ends[1].peer_may(&talker, deed, 0, topic);
    assert!(may(Deed::Publish, "rt/chatter").is_allowed);
    let refused = may(Deed::Subscribe, "rt/chatter");
    assert!(!refused.is_allowed);
    assert!(refused.because.contains("grant \"/talker_listener/talker\""), "{}", refused.because);
}

#[test]
fn keys_of_openssl_and_keys_that_are_made_here_prove_it_too() {
    let openssl = || Identity::read(&Path::new(DATA).join("openssl"), "/robot", at(2028)).unwrap();
    let ends = Ends::new([openssl(), openssl()]);
    assert!(ends.takes(0, &ends.proof(1)) && ends.takes(1, &ends.proof(0)));

    let folder = Folder::new("proof-made");
    let keystore = folder.0.join("keystore");
    Maker::make(&keystore, 0, at(2028), || {}).unwrap();
    let maker = Maker::open(&keystore, at(2028), || {}).unwrap();
    maker.add_enclave("/a", None, 0, Lifetime::days(at(2028), 100), at(2028)).unwrap();
    let made = || Identity::read(&keystore, "/a", at(2028)).unwrap();
    let ends = Ends::new([made(), made()]);
    assert!(ends.takes(0, &ends.proof(1)) && ends.takes(1, &ends.proof(0)));
    // Of another authority.
    let stranger = identity(TALKER).claim(ACCEPTING).unwrap();
    let why = made().check(&stranger, at(2028)).unwrap_err();
    assert!(why.contains("is not issued by"), "{why}");
}

#[test]
fn a_proof_is_of_one_connection_one_side_and_one_end() {
    let ends = talker_and_listener();
    let proof = ends.proof(0);
    assert!(ends.takes(1, &proof));
    // What was said is handed back.
    assert!(!ends.takes(0, &proof));
    let side = Side::Connecting;
    let peer = ends.checked(1).unwrap();
    let (theirs, own) = (&ends.claims[0], &ends.claims[1]);
    assert!(peer.has_proved(side, theirs, own, &proof));
    assert!(!peer.has_proved(side.other(), theirs, own, &proof), "the other side");
    // Another connection of the same two.
    let again = talker_and_listener();
    assert!(!again.takes(1, &proof));
    // Somebody else hands it on, who is another process or stands elsewhere.
    for spoilt in [
        End { pid: 99, ..CONNECTING },
        End { token: [9; 16], ..CONNECTING },
        End { pid_namespace: 8, ..CONNECTING },
        End { domain: 1, ..CONNECTING },
    ] {
        let theirs = Claim { end: spoilt, ..theirs.clone() };
        assert!(!peer.has_proved(side, &theirs, own, &proof), "{spoilt:?}");
        let own = Claim { end: spoilt, ..own.clone() };
        assert!(!peer.has_proved(side, &ends.claims[0], &own, &proof), "{spoilt:?}");
    }
    // Other permissions or another certificate than were claimed.
    let other = identity(LISTENER).claim(CONNECTING).unwrap();
    let of_others = Claim { permissions: other.permissions, ..theirs.clone() };
    assert!(!peer.has_proved(side, &of_others, own, &proof));
    // The listener cannot prove what is the talker's.
    let listener = identity(LISTENER);
    let forged = listener.prove(side, theirs, own).unwrap();
    assert!(!peer.has_proved(side, theirs, own, &forged));
    assert!(!peer.has_proved(side, theirs, own, &[]));
}

#[test]
fn what_does_not_count_is_refused_with_the_reason() {
    let listener = identity(LISTENER);
    let talker = identity(TALKER).claim(CONNECTING).unwrap();
    let other = listener.claim(CONNECTING).unwrap();
    let check = |claim: &Claim, now, expect: &str| {
        let why = listener.check(claim, now).unwrap_err();
        assert!(why.contains(expect), "{why}");
    };
    check(
        &Claim { certificate: Vec::new(), ..talker.clone() },
        at(2028),
        "no certificate of X.509",
    );
    check(&talker, at(2050), "has expired");
    check(&talker, at(2000), "counts only in");
    check(
        &Claim { permissions: b"no file".to_vec(), ..talker.clone() },
        at(2028),
        "has no head of S/MIME",
    );
    // What it may do is somebody else's.
    let stolen = Claim { permissions: other.permissions.clone(), ..talker.clone() };
    check(&stolen, at(2028), "no grant for CN=/talker_listener/talker");
    let mut changed = talker.clone();
    let text = String::from_utf8(talker.permissions.clone()).unwrap();
    changed.permissions = text.replace("rt/chatter", "rt/*******").into_bytes();
    check(&changed, at(2028), "or was changed since");
    // Neither its certificate nor another's is taken from whoever may issue none.
    let wrong = fs::read(Path::new(DATA).join("other_sros2_ca.pem")).unwrap();
    let wrong = tsuji_security::Certificate::from_pem(&wrong).unwrap();
    let of_authority = "is not signed by CN=sros2CA, whom it names";
    check(&Claim { certificate: wrong.der().to_vec(), ..talker }, at(2028), of_authority);
}

#[test]
fn an_enclave_that_may_not_join_the_domain_is_refused() {
    let folder = Folder::new("proof-join");
    let keystore = folder.0.join("keystore");
    Maker::make(&keystore, 5, at(2028), || {}).unwrap();
    let maker = Maker::open(&keystore, at(2028), || {}).unwrap();
    let lifetime = Lifetime::days(at(2028), 100);
    maker.add_enclave("/a", None, 5, lifetime, at(2028)).unwrap();
    let identity = Identity::read(&keystore, "/a", at(2028)).unwrap();
    let claim = |domain| identity.claim(End { domain, ..CONNECTING }).unwrap();
    assert!(identity.check(&claim(5), at(2028)).is_ok());
    let why = identity.check(&claim(6), at(2028)).unwrap_err();
    let expect = "CN=/a may not join domain 6: governance has no rule for domain 6";
    assert_eq!(why, expect);
}

proptest! {
    #[test]
    fn whatever_is_claimed_is_answered(
        certificate in proptest::collection::vec(any::<u8>(), 0..300),
        cut in 0usize..2000,
        at_byte in 0usize..2000,
        byte: u8,
    ) {
        let listener = identity(LISTENER);
        let talker = identity(TALKER).claim(CONNECTING).unwrap();
        let odd = Claim { certificate, ..talker.clone() };
        prop_assert!(listener.check(&odd, at(2028)).is_err());
        let mut odd = talker.clone();
        odd.certificate.truncate(cut);
        prop_assert!(odd == talker || listener.check(&odd, at(2028)).is_err());
        let mut odd = talker.clone();
        let at_byte = at_byte % odd.certificate.len();
        odd.certificate[at_byte] = byte;
        // What is not under the signature may differ, and says nothing of whose it is.
        let subject = listener.check(&odd, at(2028)).map(|it| it.certificate().subject().to_owned());
        prop_assert!(subject.is_err() || subject.as_deref() == Ok("CN=/talker_listener/talker"));
    }
}

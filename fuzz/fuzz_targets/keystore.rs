//! Any bytes read as the files of a keystore, and as what another process claims: no panic, what is wrong is told, and each answer
//! has its reason.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use libfuzzer_sys::fuzz_target;
use tsuji_security::{Certificate, Claim, Deed, End, Governance, Identity, Permissions};

/// Of whom permissions may speak.
static TALKER: LazyLock<Certificate> = LazyLock::new(|| {
    let pem = include_bytes!(
        "../../crates/tsuji-security/tests/data/sros2/enclaves/talker_listener/talker/cert.pem"
    );
    Certificate::from_pem(pem).expect("it is a certificate")
});

/// Who is claimed to, and a claim that counts.
static LISTENER: LazyLock<(Identity, Claim)> = LazyLock::new(|| {
    let keystore =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/tsuji-security/tests/data/sros2");
    let read = |name| Identity::read(&keystore, name, now()).expect("it is whole");
    let end = End { token: [1; 16], domain: 0, pid: 1, pid_namespace: 1 };
    let claim = read("/talker_listener/talker").claim(end).expect("there are random numbers");
    (read("/talker_listener/listener"), claim)
});

/// In 2028, when all of that counts.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_830_000_000)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 5 {
        0 => {
            if let Ok(it) = Certificate::from_pem(bytes) {
                let _ = (it.is_issued_by(&it), TALKER.is_issued_by(&it), it.subject());
            }
        }
        1 => match Governance::parse("fuzzed", bytes) {
            Ok(it) => {
                let of_domain = it.domain(0);
                of_domain.and_then(|it| Some(it.protection(it.topic("rt/chatter")?)));
            }
            Err(errors) => assert!(!errors.errors.is_empty()),
        },
        2 => {
            let (listener, claim) = &*LISTENER;
            let _ = listener.check(&Claim { certificate: bytes.to_vec(), ..claim.clone() }, now());
        }
        3 => {
            // What is signed stands in front of the signature, so that both are reached.
            let (listener, claim) = &*LISTENER;
            let _ = listener.check(&Claim { permissions: bytes.to_vec(), ..claim.clone() }, now());
            let mut permissions = claim.permissions.clone();
            let at = bytes.first().map_or(0, |it| usize::from(*it) * permissions.len() / 256);
            permissions.splice(at.., bytes.iter().copied().skip(1));
            let changed = listener.check(&Claim { permissions, ..claim.clone() }, now());
            assert!(
                changed.is_err()
                    || changed.is_ok_and(|it| it.certificate().subject() == TALKER.subject())
            );
        }
        _ => match Permissions::parse("fuzzed", bytes) {
            Ok(it) => {
                let Some(grant) = it.grant(&TALKER) else { return };
                for deed in [Deed::Publish, Deed::Subscribe] {
                    assert!(!grant.may(deed, 0, "rt/chatter").because.is_empty());
                }
                assert!(!grant.may_join(0).because.is_empty());
            }
            Err(errors) => assert!(!errors.errors.is_empty()),
        },
    }
});

//! Any bytes read as the files of a keystore: no panic, what is wrong is told, and each answer has its reason.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tsuji_security::{Certificate, Deed, Governance, Permissions};

/// Of whom permissions may speak.
static TALKER: LazyLock<Certificate> = LazyLock::new(|| {
    let pem = include_bytes!(
        "../../crates/tsuji-security/tests/data/sros2/enclaves/talker_listener/talker/cert.pem"
    );
    Certificate::from_pem(pem).expect("it is a certificate")
});

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 3 {
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

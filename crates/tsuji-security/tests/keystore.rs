//! Keystores that SROS2 and OpenSSL have made, whole and spoilt. See `data/README.md`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use tsuji_security::{Certificate, Deed, Enclave, Protection, Refused, enclaves};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
const TALKER: &str = "/talker_listener/talker";

fn at(year: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs((year - 1970) * 31_556_952)
}

fn sros2() -> PathBuf {
    Path::new(DATA).join("sros2")
}

#[test]
fn what_sros2_has_made_is_read() {
    assert_eq!(enclaves(&sros2()), ["/talker_listener/listener", TALKER]);
    let talker = Enclave::read(&sros2(), TALKER, at(2028)).unwrap();
    assert_eq!(
        (talker.name(), talker.certificate().subject()),
        (TALKER, "CN=/talker_listener/talker")
    );
    assert_eq!(talker.folder(), sros2().join("enclaves/talker_listener/talker"));
    let (first, files) = (&talker.expiries()[0], talker.expiries().len());
    assert!(at(2036) < first.0 && first.0 < at(2037) && files == 4, "{first:?}");

    let rule = talker.governance().domain(0).unwrap();
    let topic = rule.topic("rt/chatter").unwrap();
    assert_eq!(rule.protection(topic), Protection::Encrypt);
    assert!(talker.governance().domain(1).is_none());

    let grant = talker.grant();
    for (deed, topic, is_allowed) in [
        (Deed::Publish, "rt/chatter", true),
        (Deed::Subscribe, "rt/chatter", false),
        (Deed::Publish, "rt/rosout", true),
        (Deed::Publish, "ros_discovery_info", true),
        (Deed::Subscribe, "ros_discovery_info", true),
        (Deed::Subscribe, "rq/talker/get_parametersRequest", true),
        (Deed::Publish, "rt/chatter2", false),
        (Deed::Publish, "rq/other/get_parametersRequest", false),
    ] {
        let answer = grant.may(deed, 0, topic);
        assert_eq!(answer.is_allowed, is_allowed, "{deed} {topic}: {}", answer.because);
        assert!(!grant.may(deed, 1, topic).is_allowed, "of another domain");
    }
    let listener = Enclave::read(&sros2(), "talker_listener/listener", at(2028)).unwrap();
    assert!(listener.grant().may(Deed::Subscribe, 0, "rt/chatter").is_allowed);
}

#[test]
fn what_openssl_has_made_is_read() {
    let robot = Enclave::read(&Path::new(DATA).join("openssl"), "/robot", at(2028)).unwrap();
    assert_eq!(robot.certificate().subject(), "C=JP, O=Acme, CN=robot");
    assert!(robot.grant().may(Deed::Publish, 7, "rt/scan").is_allowed);
    assert!(!robot.grant().may(Deed::Subscribe, 7, "rt/scan").is_allowed);
    assert_eq!(robot.expiries()[0].1, "permissions.p7s");
}

/// A copy of the talker's enclave that is spoilt.
struct Copy(PathBuf);

impl Copy {
    fn new(name: &str) -> Self {
        let root =
            std::env::temp_dir().join(format!("tsuji-security-{}-{name}", std::process::id()));
        let folder = root.join("enclaves").join(&TALKER[1..]);
        fs::create_dir_all(&folder).unwrap();
        for entry in fs::read_dir(sros2().join("enclaves").join(&TALKER[1..])).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        }
        Self(root)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join("enclaves").join(&TALKER[1..]).join(name)
    }

    /// Puts there what another file of the data has.
    fn take(&self, name: &str, from: &str) {
        fs::copy(Path::new(DATA).join(from), self.file(name)).unwrap();
    }

    fn change(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.file(name)).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        fs::write(self.file(name), text.replacen(from, to, 1)).unwrap();
    }

    #[track_caller]
    fn is_refused(&self, file: &str, why: &str) {
        let refused = Enclave::read(&self.0, TALKER, at(2028)).unwrap_err();
        assert_eq!(
            (refused.path.file_name().unwrap().to_str().unwrap(), &*refused.why),
            (file, why)
        );
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const FILES: [&str; 6] = [
    "cert.pem",
    "key.pem",
    "identity_ca.cert.pem",
    "permissions_ca.cert.pem",
    "governance.p7s",
    "permissions.p7s",
];

#[test]
fn a_file_that_is_missing_empty_or_of_something_else_is_named() {
    for file in FILES {
        let copy = Copy::new(&format!("missing-{file}"));
        fs::remove_file(copy.file(file)).unwrap();
        copy.is_refused(file, "No such file or directory (os error 2)");
        fs::write(copy.file(file), "").unwrap();
        let why = if file.ends_with("p7s") { "has no head of S/MIME" } else { "is no PEM file" };
        copy.is_refused(file, why);
    }
    let copy = Copy::new("swapped");
    copy.take("cert.pem", "sros2/enclaves/talker_listener/talker/key.pem");
    copy.is_refused("cert.pem", "holds \"PRIVATE KEY\", and no CERTIFICATE");
    copy.take("cert.pem", "sros2/enclaves/talker_listener/talker/cert.pem");
    copy.take("key.pem", "sros2/enclaves/talker_listener/talker/cert.pem");
    copy.is_refused(
        "key.pem",
        "holds \"CERTIFICATE\"; allowed: a PRIVATE KEY, in PKCS #8 and in clear, as `openssl pkcs8 -topk8 -nocrypt` writes it",
    );
    let Err(Refused { why, .. }) = Enclave::read(&sros2(), "/nobody", at(2028)) else { panic!() };
    assert_eq!(
        why,
        "there is no enclave \"/nobody\"; in this keystore: /talker_listener/listener, /talker_listener/talker"
    );
    let Err(Refused { why, .. }) = Enclave::read(Path::new("/nowhere"), "/a", at(2028)) else {
        panic!()
    };
    assert_eq!(why, "there is no enclave \"/a\"; in this keystore: none");
}

#[test]
fn what_was_changed_or_is_of_another_is_found_out() {
    let copy = Copy::new("changed");
    copy.change("governance.p7s", "ENCRYPT", "NONE");
    copy.is_refused("governance.p7s", "is not signed by CN=sros2CA, or was changed since");
    copy.take("governance.p7s", "openssl/enclaves/robot/governance.p7s");
    copy.is_refused("governance.p7s", "is not signed by CN=sros2CA, or was changed since");

    let copy = Copy::new("of-another");
    copy.take("permissions.p7s", "sros2/enclaves/talker_listener/listener/permissions.p7s");
    copy.is_refused("permissions.p7s", "has no grant for CN=/talker_listener/talker");
    copy.take("key.pem", "sros2/enclaves/talker_listener/listener/key.pem");
    copy.is_refused("key.pem", "is not the key of cert.pem");

    // One of the same name, with a key of its own.
    let copy = Copy::new("forged");
    copy.take("identity_ca.cert.pem", "other_sros2_ca.pem");
    copy.is_refused("cert.pem", "is not signed by CN=sros2CA, whom it names");
    copy.take("identity_ca.cert.pem", "openssl/enclaves/robot/identity_ca.cert.pem");
    copy.is_refused("cert.pem", "is not issued by C=JP, O=Acme, CN=Identity");
    copy.take("identity_ca.cert.pem", "sros2/enclaves/talker_listener/listener/cert.pem");
    copy.is_refused(
        "identity_ca.cert.pem",
        "is of no authority: its holder may issue no certificates",
    );
    let copy = Copy::new("forged-permissions");
    copy.take("permissions_ca.cert.pem", "other_sros2_ca.pem");
    copy.is_refused("governance.p7s", "is not signed by CN=sros2CA, or was changed since");
}

/// Whoever may sign permissions may do all.
#[test]
fn an_enclave_is_no_authority_of_its_own() {
    let copy = Copy::new("own-authority");
    copy.take("permissions_ca.cert.pem", "sros2/enclaves/talker_listener/talker/cert.pem");
    let why = "is of no authority: its holder may issue no certificates";
    copy.is_refused("permissions_ca.cert.pem", why);

    let copy = Copy::new("public");
    let public = copy.0.join("public");
    fs::create_dir_all(&public).unwrap();
    fs::copy(copy.file("identity_ca.cert.pem"), public.join("identity_ca.cert.pem")).unwrap();
    assert!(Enclave::read(&copy.0, TALKER, at(2028)).is_ok());
    let other = Path::new(DATA).join("other_sros2_ca.pem");
    fs::copy(other, public.join("permissions_ca.cert.pem")).unwrap();
    let why = format!("is not {}", public.join("permissions_ca.cert.pem").display());
    copy.is_refused("permissions_ca.cert.pem", &why);
}

#[test]
fn what_is_no_file_or_too_long_is_not_waited_for() {
    for file in FILES {
        let copy = Copy::new(&format!("no-file-{file}"));
        fs::remove_file(copy.file(file)).unwrap();
        let made = std::process::Command::new("mkfifo").arg(copy.file(file)).status().unwrap();
        assert!(made.success());
        copy.is_refused(file, "is no file");
        fs::remove_file(copy.file(file)).unwrap();
        fs::create_dir(copy.file(file)).unwrap();
        copy.is_refused(file, "is no file");
        fs::remove_dir(copy.file(file)).unwrap();
        fs::File::create(copy.file(file)).unwrap().set_len(3 << 30).unwrap();
        copy.is_refused(file, "is longer than 4194304 bytes");
    }
}

#[test]
fn enclaves_that_lack_a_file_are_listed_and_names_lead_nowhere_else() {
    let copy = Copy::new("listed");
    fs::remove_file(copy.file("key.pem")).unwrap();
    assert_eq!(enclaves(&copy.0), [TALKER]);
    fs::write(copy.0.join("enclaves/key.pem"), "").unwrap();
    assert_eq!(enclaves(&copy.0), ["/", TALKER]);
    for name in ["/../enclaves/a", "..", "/a/./b", "//a", "/a/", "/a\nb"] {
        let refused = Enclave::read(&copy.0, name, at(2028)).unwrap_err();
        assert!(refused.why.contains("is no name of an enclave"), "{name}: {refused}");
    }
    let root = Enclave::read(&copy.0, "/", at(2028)).unwrap_err();
    assert!(root.path.ends_with("enclaves/identity_ca.cert.pem"), "{root}");
}

#[test]
fn what_has_expired_or_does_not_count_yet_is_refused() {
    let refused = |year| Enclave::read(&sros2(), TALKER, at(year)).unwrap_err();
    let early = refused(2016);
    assert!(early.why.starts_with("counts only in 39"), "{early}");
    assert!(early.path.ends_with("identity_ca.cert.pem"));
    let late = refused(2046).why;
    assert!(late.starts_with("has expired 3") && late.ends_with("days ago"), "{late}");
    // Of a grant, though all certificates count.
    let openssl = Path::new(DATA).join("openssl");
    let late = Enclave::read(&openssl, "/robot", at(2036) + Duration::from_secs(20 * 86_400));
    let late = late.unwrap_err();
    assert!(late.path.ends_with("permissions.p7s"), "{late}");
    assert!(late.why.starts_with("the grant for C=JP, O=Acme, CN=robot has expired"), "{late}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_byte_of_a_file_can_be_changed(which in 0usize..6, at_byte in 0usize..4000, to: u8) {
        let file = FILES[which];
        let path = sros2().join("enclaves").join(&TALKER[1..]).join(file);
        let mut bytes = fs::read(path).unwrap();
        let at_byte = at_byte % bytes.len();
        let before = std::mem::replace(&mut bytes[at_byte], to);
        let copy = Copy::new(&format!("byte-{file}"));
        fs::write(copy.file(file), &bytes).unwrap();
        // It is refused, or what it means is what it was: a blank between, or a head that says the same.
        if let Ok(enclave) = Enclave::read(&copy.0, TALKER, at(2028)) {
            let whole = Enclave::read(&sros2(), TALKER, at(2028)).unwrap();
            prop_assert_eq!(enclave.grant(), whole.grant(), "{} {} {}", file, at_byte, before);
            prop_assert_eq!(enclave.governance(), whole.governance());
            prop_assert_eq!(enclave.certificate(), whole.certificate());
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, text in "(-----BEGIN CERTIFICATE-----\n)?[A-Za-z=\n]{0,60}(\n-----END CERTIFICATE-----)?") {
        let _ = Certificate::from_pem(&bytes);
        let _ = Certificate::from_pem(text.as_bytes());
    }
}

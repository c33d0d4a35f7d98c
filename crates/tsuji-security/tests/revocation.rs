//! Certificates that were taken back.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use house::Folder;
use tsuji_security::{Certificate, Enclave, End, Identity, Lifetime, Maker, Refused};

const DOMAIN: u32 = 3;
const DAY: Duration = Duration::from_secs(86_400);
const END: End = End { token: [1; 16], domain: DOMAIN, pid: 11, pid_namespace: 7 };

fn now() -> SystemTime {
    SystemTime::now()
}

/// A keystore with two enclaves.
fn keystore(folder: &Folder, name: &str) -> PathBuf {
    let keystore = folder.0.join(name);
    Maker::make(&keystore, DOMAIN, now(), || {}).unwrap();
    for name in ["/talker", "/robot/listener"] {
        add(&keystore, name).unwrap();
    }
    keystore
}

fn maker(keystore: &Path) -> Maker {
    Maker::open(keystore, now(), || {}).unwrap()
}

fn add(keystore: &Path, name: &str) -> Result<Enclave, Refused> {
    let lifetime = Lifetime::days(now(), 100);
    maker(keystore).add_enclave(name, None, DOMAIN, lifetime, now()).map(|(_, it)| it)
}

fn revoke(keystore: &Path, names: &[&str], days: u32) -> Result<Vec<String>, Refused> {
    let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
    let made = maker(keystore).revoke(&names, &[], Lifetime::days(now(), days), now())?;
    Ok(made.others)
}

#[track_caller]
fn is_refused(read: Result<Enclave, Refused>, file: &str, why: &str) {
    let refused = read.unwrap_err();
    assert_eq!(refused.path.file_name().unwrap(), file, "{refused}");
    assert!(refused.why.contains(why), "{refused}");
}

#[test]
fn who_was_revoked_starts_nowhere_and_is_not_met() {
    let folder = Folder::new("revoked");
    let keystore = keystore(&folder, "keystore");
    let talker = Identity::read(&keystore, "/talker", now()).unwrap();
    let listener = || Identity::read(&keystore, "/robot/listener", now()).unwrap();
    let claim = talker.claim(END).unwrap();
    let before = listener();
    before.check(&claim, now()).unwrap();
    assert_eq!(revoke(&keystore, &["/talker"], 50), Ok(vec![]));

    is_refused(Enclave::read(&keystore, "/talker", now()), "cert.pem", "was revoked by CN=tsuji");
    let why = "its certificate for CN=/talker was revoked by CN=tsuji keystore";
    assert_eq!(listener().check(&claim, now()).unwrap_err(), why);
    assert_eq!(listener().check_certificate(&claim, now()).unwrap_err(), why);
    // Whoever has not read the list yet does not know.
    before.check(&claim, now()).unwrap();

    // It ends before all else, and counts no longer then.
    let expiries = listener().enclave().expiries().to_vec();
    assert_eq!(expiries[0].1, "crl.pem");
    let late = now() + DAY * 51;
    is_refused(Enclave::read(&keystore, "/robot/listener", late), "crl.pem", "has expired");
    let other = listener();
    let claim = other.claim(END).unwrap();
    other.check(&claim, now()).unwrap();
    // Also where the claim is remembered.
    for why in
        [other.check_certificate(&claim, late).map(drop), other.check(&claim, late).map(drop)]
    {
        let why = why.unwrap_err();
        assert!(why.starts_with("the list of revoked certificates has expired"), "{why}");
    }

    // What runs by it reads the list although its enclave is not whole any more, and meets nobody then.
    talker.check(&other.claim(END).unwrap(), now()).unwrap();
    talker.renew_revocations(&keystore).unwrap();
    let why = talker.check(&other.claim(END).unwrap(), now()).unwrap_err();
    assert!(why.starts_with("the own certificate of CN=/talker was revoked"), "{why}");

    // A new key is another certificate, and the list goes on counting for the old one.
    let refused = add(&keystore, "/talker").unwrap_err();
    assert!(refused.why.contains("remove it and key.pem for a new key"), "{refused}");
    for file in ["key.pem", "cert.pem"] {
        fs::remove_file(keystore.join("enclaves/talker").join(file)).unwrap();
    }
    add(&keystore, "/talker").unwrap();
    assert_eq!(revoke(&keystore, &[], 200), Ok(vec![]));
    assert!(now() + DAY * 99 < listener().enclave().expiries()[0].0);
    let old = talker.claim(END).unwrap();
    assert!(listener().check(&old, now()).unwrap_err().contains("was revoked"));
    let new = Identity::read(&keystore, "/talker", now()).unwrap().claim(END).unwrap();
    listener().check(&new, now()).unwrap();
}

#[test]
fn lists_are_for_all_enclaves_but_those_with_their_own() {
    let folder = Folder::new("own");
    let [keystore, other] = ["keystore", "other"].map(|it| keystore(&folder, it));
    revoke(&other, &["/talker"], 50).unwrap();
    let own = keystore.join("enclaves/talker/crl.pem");
    fs::copy(other.join("public/crl.pem"), &own).unwrap();
    // What it has is of another authority, and is told when it is read.
    assert_eq!(revoke(&keystore, &["/robot/listener"], 50), Ok(vec!["/talker".to_owned()]));
    is_refused(Enclave::read(&keystore, "/talker", now()), "crl.pem", "is not signed by CN=tsuji");
    fs::remove_file(&own).unwrap();
    assert_eq!(revoke(&keystore, &[], 50), Ok(vec![]));
    Enclave::read(&keystore, "/talker", now()).unwrap();
    // What is in public counts also where there is no link, as in a copy that was made before.
    fs::remove_file(keystore.join("enclaves/robot/listener/crl.pem")).unwrap();
    is_refused(Enclave::read(&keystore, "/robot/listener", now()), "cert.pem", "was revoked by");
    let late = now() + DAY * 51;
    let refused = Enclave::read(&keystore, "/talker", late).unwrap_err();
    assert_eq!(refused.path, keystore.join("public/crl.pem"), "{refused}");
    // New ones have it too, and those that are not there cannot be revoked.
    add(&keystore, "/robot/arm").unwrap();
    assert!(keystore.join("enclaves/robot/arm/crl.pem").is_symlink());
    // A certificate that was replaced before it was known to be stolen.
    let talker = Identity::read(&keystore, "/talker", now()).unwrap();
    let old = keystore.join("old.pem");
    fs::rename(keystore.join("enclaves/robot/arm/cert.pem"), &old).unwrap();
    fs::remove_file(keystore.join("enclaves/robot/arm/key.pem")).unwrap();
    add(&keystore, "/robot/arm").unwrap();
    let lifetime = Lifetime::days(now(), 50);
    maker(&keystore).revoke(&[], std::slice::from_ref(&old), lifetime, now()).unwrap();
    Enclave::read(&keystore, "/robot/arm", now()).unwrap();
    talker.renew_revocations(&keystore).unwrap();
    let old = Certificate::from_pem(&fs::read(&old).unwrap()).unwrap();
    assert!(talker.permits(&old, now()).unwrap_err().contains("was revoked"));
    let before = fs::read(keystore.join("public/crl.pem")).unwrap();
    assert!(revoke(&keystore, &["/robot/arm", "/none"], 50).is_err());
    assert_eq!(fs::read(keystore.join("public/crl.pem")).unwrap(), before);
}

#[test]
fn spoilt_lists_are_refused() {
    let folder = Folder::new("spoilt");
    let keystore = keystore(&folder, "keystore");
    revoke(&keystore, &["/robot/listener"], 50).unwrap();
    let path = keystore.join("public/crl.pem");
    let pem = fs::read_to_string(&path).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let refused = Enclave::read(&keystore, "/talker", now()).unwrap_err();
        assert_eq!(refused.path.file_name().unwrap(), "crl.pem", "{refused}");
        refused.why
    };
    for bytes in [&b""[..], b"none", &pem.as_bytes()[..pem.len() / 2]] {
        assert_eq!(refused(bytes), "is no PEM file");
    }
    let certificate = fs::read(keystore.join("public/ca.cert.pem")).unwrap();
    assert_eq!(refused(&certificate), "holds \"CERTIFICATE\", and no X509 CRL");
    // No letter can be another so that the list says something else.
    let mut count = 0;
    for at in (30..pem.len() - 30).filter(|it| pem.as_bytes()[*it] != b'\n') {
        let mut spoilt = pem.clone().into_bytes();
        spoilt[at] = if spoilt[at] == b'A' { b'B' } else { b'A' };
        fs::write(&path, &spoilt).unwrap();
        match Enclave::read(&keystore, "/talker", now()) {
            Err(refused) => {
                assert_eq!(refused.path.file_name().unwrap(), "crl.pem", "{refused}");
                count += 1;
            }
            Ok(_) => {
                let listener = Enclave::read(&keystore, "/robot/listener", now());
                is_refused(listener, "cert.pem", "was revoked by");
            }
        }
    }
    assert!(300 < count, "{count}");
    fs::remove_file(&path).unwrap();
    // A link that leads nowhere is no missing list.
    is_refused(Enclave::read(&keystore, "/talker", now()), "crl.pem", "No such file");
    fs::write(&path, &pem).unwrap();
    Enclave::read(&keystore, "/talker", now()).unwrap();
}

/// OpenSSL, which rmw_fastrtps and rmw_cyclonedds check lists by.
fn openssl(folder: &Path, words: &[&str]) -> String {
    let done = Command::new("openssl").current_dir(folder).args(words).output().unwrap();
    let text = [done.stdout, done.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    text.concat()
}

#[test]
fn openssl_takes_the_list_and_its_own_is_read() {
    let folder = Folder::new("openssl");
    let keystore = keystore(&folder, "keystore");
    revoke(&keystore, &["/talker"], 50).unwrap();
    let verified = |enclave: &str| {
        let certificate = format!("enclaves/{enclave}/cert.pem");
        let words = ["verify", "-crl_check", "-CAfile", "public/ca.cert.pem", "-CRLfile"];
        openssl(&keystore, &[&words[..], &["public/crl.pem", &certificate]].concat())
    };
    let talker = verified("talker");
    assert!(talker.contains("certificate revoked"), "{talker}");
    let listener = verified("robot/listener");
    assert!(listener.contains("cert.pem: OK"), "{listener}");

    fs::write(keystore.join("index.txt"), "").unwrap();
    fs::write(keystore.join("number"), "10\n").unwrap();
    let configuration = "[ca]\ndefault_ca = it\n[it]\ndatabase = index.txt\ncrlnumber = number\ndefault_md = sha256\n\
        certificate = public/ca.cert.pem\nprivate_key = private/ca.key.pem\ncrl_extensions = more\n[more]\nauthorityKeyIdentifier = keyid\n";
    fs::write(keystore.join("ca.cnf"), configuration).unwrap();
    let by = ["ca", "-config", "ca.cnf"];
    openssl(&keystore, &[&by[..], &["-revoke", "enclaves/robot/listener/cert.pem"]].concat());
    let made = openssl(
        &keystore,
        &[&by[..], &["-gencrl", "-crldays", "9", "-out", "public/crl.pem"]].concat(),
    );
    let talker =
        Enclave::read(&keystore, "/talker", now()).unwrap_or_else(|it| panic!("{it}: {made}"));
    assert_eq!(talker.expiries()[0].1, "crl.pem");
    is_refused(Enclave::read(&keystore, "/robot/listener", now()), "cert.pem", "was revoked by");
    // And goes on from there.
    revoke(&keystore, &["/talker"], 50).unwrap();
    for name in ["/talker", "/robot/listener"] {
        is_refused(Enclave::read(&keystore, name, now()), "cert.pem", "was revoked by");
    }
}

//! Keystores that are made here, and what SROS2 makes of the same.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::{Duration, SystemTime};

use house::Folder;
use proptest::prelude::*;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};
use tsuji_security::{
    Access, AccessPolicy, Additions, Deed, Enclave, Lifetime, Maker, NewGovernance, Protection,
    Refused, enclaves,
};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
const DOMAIN: u32 = 3;
const NEW: Additions = Additions { key: true, permissions: true };

fn keystore(folder: &Folder) -> PathBuf {
    folder.0.join("keystore")
}

/// A keystore with authorities and nothing else.
fn made(folder: &Folder) -> PathBuf {
    let keystore = keystore(folder);
    assert_eq!(make(&keystore), Ok(true));
    keystore
}

fn now() -> SystemTime {
    SystemTime::now()
}

fn lifetime() -> Lifetime {
    Lifetime::days(now(), 100)
}

fn make(keystore: &Path) -> Result<bool, Refused> {
    Maker::make(keystore, DOMAIN, now(), || {})
}

fn open(keystore: &Path) -> Result<Maker, Refused> {
    Maker::open(keystore, now(), || {})
}

fn add(
    keystore: &Path,
    name: &str,
    access: Option<&Access>,
) -> Result<(Additions, Enclave), Refused> {
    open(keystore)?.add_enclave(name, access, DOMAIN, lifetime(), now())
}

/// What a permissions document says in the order of its rules, without its times and domains.
fn said(document: &str) -> Vec<(String, BTreeSet<String>)> {
    let mut rules: Vec<(String, BTreeSet<String>)> = Vec::new();
    let (mut rule, mut deed) = ("", "");
    for line in document.lines().map(str::trim) {
        match line {
            "<allow_rule>" | "<deny_rule>" => rule = line,
            "<publish>" | "<subscribe>" => {
                deed = line;
                rules.push((format!("{rule}{deed}"), BTreeSet::new()));
            }
            _ if line.starts_with("<topic>") => {
                assert!(!deed.is_empty());
                rules.last_mut().unwrap().1.insert(line.to_owned());
            }
            _ => {}
        }
    }
    assert!(!rules.is_empty());
    rules
}

fn by_sros2(enclave: &str) -> Vec<(String, BTreeSet<String>)> {
    let file = format!("{DATA}/sros2/enclaves/talker_listener/{enclave}/permissions.p7s");
    said(&fs::read_to_string(file).unwrap())
}

#[test]
fn a_keystore_is_laid_out_as_sros2_does() {
    let folder = Folder::new("layout");
    let keystore = made(&folder);
    for (name, links) in [("/talker", "../../"), ("/robot/arm", "../../../"), ("/", "../")] {
        let (made, enclave) = add(&keystore, name, None).unwrap();
        assert_eq!((made, enclave.name()), (NEW, name));
        assert_eq!(enclave.certificate().subject(), format!("CN={name}"));
        let of = keystore.join("enclaves").join(&name[1..]);
        let link = fs::read_link(of.join("identity_ca.cert.pem")).unwrap();
        assert_eq!(link, Path::new(&format!("{links}public/identity_ca.cert.pem")));
        if name != "/" {
            let link = fs::read_link(of.join("governance.p7s")).unwrap();
            assert_eq!(link, Path::new(&links[3..]).join("governance.p7s"));
        }
        let mode = |file: &str| of.join(file).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("key.pem"), mode("cert.pem")), (0o600, 0o644));
        assert!(enclave.may(Deed::Publish, DOMAIN, "rt/chatter").is_allowed);
        assert!(!enclave.may(Deed::Publish, DOMAIN + 1, "rt/chatter").is_allowed);
        assert_eq!(enclave.protection(DOMAIN, "rt/chatter"), Some(Protection::Encrypt));
    }
    assert_eq!(enclaves(&keystore), ["/", "/robot/arm", "/talker"]);
    let private = keystore.join("private");
    assert_eq!(private.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(
        fs::read_link(private.join("identity_ca.key.pem")).unwrap(),
        Path::new("ca.key.pem")
    );
    // Nothing is left beside it.
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn everything_is_what_sros2_takes_for_it() {
    let folder = Folder::new("everything");
    let keystore = made(&folder);
    add(&keystore, "/listener", None).unwrap();
    let document = keystore.join("enclaves/listener/permissions.xml");
    assert_eq!(said(&fs::read_to_string(document).unwrap()), by_sros2("listener"));
}

/// What SROS2 has for every node, and for its talker.
fn talker(folder: &Folder) -> PathBuf {
    folder.write(
        "common/parameters.xml",
        r#"<profile><services reply="ALLOW" request="ALLOW">
            <service>~/describe_parameters</service><service>~/get_parameter_types</service>
            <service>~/get_parameters</service><service>~/list_parameters</service>
            <service>~/set_parameters</service><service>~/set_parameters_atomically</service>
        </services></profile>"#,
    );
    folder.write(
        "common/node.xml",
        r#"<profile xmlns:xi="http://www.w3.org/2003/XInclude">
            <xi:include href="parameters.xml" xpointer="xpointer(/profile/*)"/>
            <topics publish="ALLOW" subscribe="ALLOW"><topic>/parameter_events</topic></topics>
            <topics publish="ALLOW"><topic>/rosout</topic></topics>
            <topics subscribe="ALLOW"><topic>/clock</topic></topics>
        </profile>"#,
    );
    folder.write(
        "talker.xml",
        r#"<policy version="0.2.0" xmlns:xi="http://www.w3.org/2001/XInclude"><enclaves>
            <enclave path="/talker_listener/talker"><profiles><profile ns="/" node="talker">
                <xi:include href="common/node.xml" xpointer="xpointer(/profile/*)"/>
                <topics publish="ALLOW"><topic>chatter</topic></topics>
            </profile></profiles></enclave>
        </enclaves></policy>"#,
    )
}

#[test]
fn a_policy_is_what_sros2_makes_of_it() {
    let folder = Folder::new("policy");
    let policy = AccessPolicy::read(&talker(&folder)).unwrap();
    let name = "/talker_listener/talker";
    assert_eq!(policy.enclaves().collect::<Vec<_>>(), [name]);
    let keystore = made(&folder);
    let (_, enclave) = add(&keystore, name, policy.access(name)).unwrap();
    let document = enclave.folder().join("permissions.xml");
    assert_eq!(said(&fs::read_to_string(document).unwrap()), by_sros2("talker"));
    assert!(enclave.may(Deed::Publish, DOMAIN, "rt/chatter").is_allowed);
    assert!(!enclave.may(Deed::Subscribe, DOMAIN, "rt/chatter").is_allowed);
}

#[test]
fn names_are_completed_and_what_is_denied_comes_first() {
    let folder = Folder::new("names");
    talker(&folder);
    let path = folder.write(
        "all.xml",
        r#"<policy version="0.2.0" xmlns:xi="http://www.w3.org/2001/XInclude"><enclaves>
            <xi:include href="talker.xml" xpointer="xpointer(/policy/enclaves/*)"/>
            <enclave path="/all"><profiles>
                <xi:include href="talker.xml" parse="xml" xpointer="xpointer(/policy/enclaves/enclave/profiles/*)"/>
            </profiles></enclave>
            <enclave path="/arm"><profiles type="any">
                <profile ns="/robot" node="arm">
                    <topics subscribe="ALLOW" publish="DENY"><topic>joints</topic><topic>/a&amp;b*</topic></topics>
                    <services reply="ALLOW"><service>~/stop</service></services>
                    <actions call="DENY" execute="ALLOW"><action>reach</action></actions>
                </profile>
                <profile ns="/" node="arm"><topics publish="ALLOW"><topic>*</topic></topics></profile>
                <metadata><author>any</author></metadata>
            </profiles></enclave>
        </enclaves></policy>"#,
    );
    let policy = AccessPolicy::read(&path).unwrap();
    assert_eq!(policy.enclaves().collect::<Vec<_>>(), ["/talker_listener/talker", "/all", "/arm"]);
    assert_eq!(policy.access("/all"), policy.access("/talker_listener/talker"));
    let keystore = made(&folder);
    let (_, arm) = add(&keystore, "/arm", policy.access("/arm")).unwrap();
    for (deed, topic, is_allowed) in [
        (Deed::Subscribe, "rt/robot/joints", true),
        (Deed::Publish, "rt/robot/joints", false),
        (Deed::Subscribe, "rt/a&bc", true),
        (Deed::Publish, "rt/a&b", false),
        (Deed::Publish, "rt/chatter", true),
        (Deed::Subscribe, "rt/chatter", false),
        (Deed::Subscribe, "rq/robot/arm/stopRequest", true),
        (Deed::Publish, "rr/robot/arm/stopReply", true),
        (Deed::Publish, "rq/robot/arm/stopRequest", false),
        (Deed::Subscribe, "rq/robot/reach/_action/send_goalRequest", true),
        (Deed::Publish, "rt/robot/reach/_action/feedback", true),
        (Deed::Publish, "rq/robot/reach/_action/cancel_goalRequest", false),
        (Deed::Subscribe, "rt/robot/reach/_action/status", false),
        (Deed::Publish, "ros_discovery_info", true),
    ] {
        let answer = arm.may(deed, DOMAIN, topic);
        assert_eq!(answer.is_allowed, is_allowed, "{deed} {topic}: {}", answer.because);
    }
}

#[test]
fn what_is_wrong_with_a_policy_is_told_with_its_place() {
    let folder = Folder::new("wrong");
    let of_profile = |inside: &str| {
        format!(
            "<policy version=\"0.2.0\" xmlns:xi=\"http://www.w3.org/2001/XInclude\"><enclaves><enclave path=\"/a\">\n\
             <profiles><profile ns=\"/\" node=\"n\">\n{inside}</profile></profiles></enclave></enclaves></policy>"
        )
    };
    let cycle = of_profile(r#"<xi:include href="p.xml" xpointer="xpointer(/profile/*)"/>"#);
    folder.write(
        "p.xml",
        r#"<profile xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="p.xml" xpointer="xpointer(/profile/*)"/></profile>"#,
    );
    let topics = |text: &str| of_profile(&format!("<topics publish=\"ALLOW\">{text}</topics>"));
    for (text, why) in [
        ("", "end of file"),
        ("<policy version=\"0.2.0\"/>", "has no enclave"),
        (
            "<policy version=\"0.1.0\"/>",
            "\"0.1.0\" is a version of policies that is not known here",
        ),
        ("<dds/>", "\"dds\" is not an element here"),
        (&*topics("<topic/>"), "\"topic\" is empty"),
        (&topics("<service>a</service>"), "\"service\" is not an element here"),
        (&topics("<topic>[[a</topic>"), "of which implementations of DDS Security differ"),
        (&of_profile("<topics call=\"ALLOW\"/>"), "\"call\" is not an attribute of \"topics\""),
        (&of_profile("<topics publish=\"YES\"/>"), "\"YES\" is no value of \"publish\""),
        (&of_profile("<topics/>"), "\"topics\" allows and denies nothing"),
        (&of_profile("<nodes/>"), "\"nodes\" is not an element here"),
        (&of_profile("<xi:include href=\"p.xml\"/>"), "lacks the attribute \"xpointer\""),
        (
            &of_profile("<xi:include href=\"p.xml\" xpointer=\"xpointer(/*)\"/>"),
            "\"xpointer(/*)\" is a part of a file that is not taken here",
        ),
        (
            &of_profile("<xi:include href=\"none.xml\" xpointer=\"xpointer(/profile/*)\"/>"),
            "\"none.xml\" cannot be included: No such file or directory",
        ),
        (&cycle, "is included too deep"),
        (
            &of_profile(
                "<xi:include href=\"p.xml\" parse=\"text\" xpointer=\"xpointer(/profile/*)\"/>",
            ),
            "\"parse\" =\"text\" is not taken here; allowed: href, xpointer, parse=\"xml\"",
        ),
        (
            &topics("<topic>a&#13;&#10;b</topic>"),
            "\"topic\" has a line end or another control character",
        ),
        (
            "<policy version=\"0.2.0\"><enclaves><enclave path=\"/a\"><profiles/><profiles/></enclave></enclaves></policy>",
            "\"profiles\" stands here twice",
        ),
        (
            "<policy version=\"0.2.0\"><enclaves><enclave path=\"a b\"/></enclaves></policy>",
            "\"a b\" is no name of an enclave",
        ),
        (
            "<policy version=\"0.2.0\"><enclaves><enclave path=\"/a\"/><enclave path=\"/a\"/></enclaves></policy>",
            "\"/a\" is an enclave that the policy has twice",
        ),
    ] {
        let path = folder.write("policy.xml", text);
        let refused = AccessPolicy::read(&path).unwrap_err();
        assert!(refused.path == path && refused.why.contains(why), "{refused}\n{text}");
    }
    let refused = AccessPolicy::read(&folder.0).unwrap_err();
    assert_eq!(refused.why, "is no file");
}

#[test]
fn what_is_there_is_kept() {
    let folder = Folder::new("kept");
    let keystore = made(&folder);
    assert_eq!(make(&keystore), Ok(false));
    add(&keystore, "/talker", None).unwrap();
    let files = ["key.pem", "cert.pem", "permissions.p7s"].map(|it| {
        let path = keystore.join("enclaves/talker").join(it);
        (path.clone(), fs::read(path).unwrap())
    });
    let kept = Additions { key: false, permissions: false };
    assert_eq!(add(&keystore, "/talker", None).unwrap().0, kept);
    for (path, bytes) in &files {
        assert_eq!(&fs::read(path).unwrap(), bytes, "{}", path.display());
    }
    let access = Access::default();
    let (made, talker) = add(&keystore, "/talker", Some(&access)).unwrap();
    assert_eq!(made, Additions { key: false, permissions: true });
    assert!(!talker.may(Deed::Publish, DOMAIN, "rt/chatter").is_allowed);
    // What lacks one of the two has neither.
    fs::remove_file(&files[1].0).unwrap();
    let (made, _) = add(&keystore, "/talker", None).unwrap();
    assert_eq!(made, Additions { key: true, permissions: false });
}

#[test]
fn many_at_once_make_one_keystore() {
    for round in 0..5 {
        many_at_once(&Folder::new(&format!("many-{round}")));
        let folder = Folder::new(&format!("many-there-{round}"));
        fs::create_dir(keystore(&folder)).unwrap();
        many_at_once(&folder);
    }
}

fn many_at_once(folder: &Folder) {
    const MAKERS: usize = 8;
    let keystore = keystore(folder);
    let together = Barrier::new(MAKERS);
    let made = thread::scope(|scope| {
        let makers: Vec<_> = (0..MAKERS)
            .map(|of| {
                let (keystore, together) = (&keystore, &together);
                scope.spawn(move || {
                    together.wait();
                    let is_new = make(keystore).unwrap();
                    add(keystore, &format!("/n{of}"), None).unwrap();
                    add(keystore, "/shared", None).unwrap();
                    is_new
                })
            })
            .collect();
        makers.into_iter().map(|it| it.join().unwrap()).filter(|it| *it).count()
    });
    assert_eq!(made, 1);
    assert_eq!(enclaves(&keystore).len(), MAKERS + 1);
    for name in enclaves(&keystore) {
        Enclave::read(&keystore, &name, now()).unwrap();
    }
    // Those who were slower have left nothing beside it.
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    assert_eq!(fs::read_dir(&keystore).unwrap().count(), 3);
}

#[track_caller]
fn is_refused<T: std::fmt::Debug>(result: Result<T, Refused>, file: &Path, why: &str) {
    let refused = result.unwrap_err();
    assert!(refused.path == file && refused.why.contains(why), "{refused}");
}

#[test]
fn what_is_in_the_way_is_named() {
    let folder = Folder::new("way");
    folder.write("other/file", "");
    let other = folder.0.join("other");
    is_refused(make(&other), &other, "is not empty");
    let file = folder.0.join("other/file");
    is_refused(make(&file), &file, "Not a directory");
    is_refused(make(Path::new("/")), Path::new("/"), "is not empty");
    let empty = folder.0.join("empty");
    fs::create_dir(&empty).unwrap();
    assert_eq!(make(&empty), Ok(true));

    let keystore = made(&folder);
    let none = folder.0.join("none");
    let missing = none.join("private/identity_ca.key.pem");
    is_refused(open(&none), &missing, "No such file");
    let enclaves = keystore.join("enclaves");
    for name in ["", "talker", "/talker/", "/..", "/a b", "/1", "/a/../b"] {
        is_refused(add(&keystore, name, None), &enclaves, "is no name of an enclave");
    }
    let long = format!("/{}", "a".repeat(64));
    is_refused(add(&keystore, &long, None), &enclaves, "is longer than 64 letters");
    let other_domain =
        open(&keystore).unwrap().add_enclave("/a", None, DOMAIN + 1, lifetime(), now());
    is_refused(other_domain, &enclaves.join("governance.p7s"), "has no rule for domain 4");
    assert!(!enclaves.join("a").exists());

    let later = now() + Duration::from_secs(7301 * 86_400);
    is_refused(
        Maker::open(&keystore, later, || {}),
        &keystore.join("public/identity_ca.cert.pem"),
        "has expired 24 hours ago",
    );
    let key = keystore.join("private/permissions_ca.key.pem");
    fs::remove_file(&key).unwrap();
    is_refused(open(&keystore), &key, "No such file");
    fs::write(&key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    is_refused(open(&keystore), &key, "is not the key of public/permissions_ca.cert");
    fs::write(&key, "none").unwrap();
    is_refused(open(&keystore), &key, "is no key in PKCS #8");
}

#[test]
fn another_governance_counts_for_all() {
    let folder = Folder::new("governance");
    let keystore = made(&folder);
    add(&keystore, "/talker", None).unwrap();
    let document = keystore.join("enclaves/governance.xml");
    let text = fs::read_to_string(&document).unwrap();
    let other = folder.write(
        "governance.xml",
        &text
            .replace(&format!("<id>{DOMAIN}</id>"), "<id_range><min>0</min></id_range>")
            .replace("<data_protection_kind>ENCRYPT", "<data_protection_kind>SIGN"),
    );
    let governance = NewGovernance::read(&other, DOMAIN).unwrap();
    assert!(open(&keystore).unwrap().sign_governance(&governance).unwrap().is_empty());
    let maker = open(&keystore).unwrap();
    maker.add_enclave("/other", None, 7, lifetime(), now()).unwrap();
    let talker = Enclave::read(&keystore, "/talker", now()).unwrap();
    assert!(talker.governance().domain(7).is_some());
    let wrong = folder.write("governance.xml", &text.replace("ENCRYPT", "HIDE"));
    is_refused(NewGovernance::read(&wrong, DOMAIN), &wrong, "\"HIDE\"");
    let why = "has no rule for domain 4";
    let narrow = folder.write("narrow.xml", &text);
    is_refused(NewGovernance::read(&narrow, DOMAIN + 1), &narrow, why);
    // Whatever its line ends, but no others than those of lines.
    let lines = folder.write("governance.xml", &text.replace('\n', "\r\n"));
    maker.sign_governance(&NewGovernance::read(&lines, DOMAIN).unwrap()).unwrap();
    let odd = folder.write("governance.xml", &text.replace("<id>", "\r<id>"));
    let odd = NewGovernance::read(&odd, DOMAIN).unwrap();
    is_refused(
        maker.sign_governance(&odd),
        &keystore.join("enclaves/governance.p7s"),
        "carriage return",
    );
    Enclave::read(&keystore, "/talker", now()).unwrap();

    // What is no link stays, and is told.
    let own = keystore.join("enclaves/other/governance.p7s");
    let bytes = fs::read(&own).unwrap();
    fs::remove_file(&own).unwrap();
    fs::write(&own, bytes).unwrap();
    assert_eq!(maker.sign_governance(&governance).unwrap(), ["/other"]);
}

#[test]
fn permissions_that_are_kept_are_for_the_domain() {
    let folder = Folder::new("domains");
    let keystore = made(&folder);
    let (_, talker) = add(&keystore, "/talker", None).unwrap();
    assert_eq!(talker.domains(232).collect::<Vec<_>>(), [DOMAIN]);
    let text = fs::read_to_string(keystore.join("enclaves/governance.xml")).unwrap();
    let all = text.replace(&format!("<id>{DOMAIN}</id>"), "<id_range><min>0</min></id_range>");
    let all = NewGovernance::read(&folder.write("governance.xml", &all), 7).unwrap();
    let maker = open(&keystore).unwrap();
    maker.sign_governance(&all).unwrap();
    let permissions = keystore.join("enclaves/talker/permissions.p7s");
    let why = "is kept, and lets CN=/talker not join domain 7";
    is_refused(maker.add_enclave("/talker", None, 7, lifetime(), now()), &permissions, why);
    let everything = Access::everything();
    let (_, talker) =
        maker.add_enclave("/talker", Some(&everything), 7, lifetime(), now()).unwrap();
    assert_eq!(talker.domains(232).collect::<Vec<_>>(), [7]);
}

#[test]
fn a_key_without_its_certificate_is_nobodys_and_the_other_way_round_is_refused() {
    let folder = Folder::new("halves");
    let keystore = made(&folder);
    let of = keystore.join("enclaves/talker");
    fs::create_dir(&of).unwrap();
    fs::write(of.join("key.pem"), "half").unwrap();
    assert_eq!(add(&keystore, "/talker", None).unwrap().0, NEW);
    // It is where it belongs, on the robot.
    fs::remove_file(of.join("key.pem")).unwrap();
    let before = fs::read(of.join("cert.pem")).unwrap();
    let everything = Access::everything();
    let why = "is not there, and its cert.pem is; remove that for a new key";
    is_refused(add(&keystore, "/talker", Some(&everything)), &of.join("key.pem"), why);
    assert_eq!(fs::read(of.join("cert.pem")).unwrap(), before);
}

#[test]
fn a_certificate_of_another_name_keeps_its_permissions() {
    let folder = Folder::new("subject");
    let keystore = made(&folder);
    add(&keystore, "/talker", None).unwrap();
    let enclaves = keystore.join("enclaves");
    fs::rename(enclaves.join("talker"), enclaves.join("other")).unwrap();
    let permissions = fs::read(enclaves.join("other/permissions.p7s")).unwrap();
    let everything = Access::everything();
    let why = "is of CN=/talker, and permissions made here are of CN=/other";
    is_refused(add(&keystore, "/other", Some(&everything)), &enclaves.join("other/cert.pem"), why);
    assert_eq!(fs::read(enclaves.join("other/permissions.p7s")).unwrap(), permissions);
    assert_eq!(
        add(&keystore, "/other", None).unwrap().0,
        Additions { key: false, permissions: false }
    );
}

#[test]
fn who_makes_something_is_waited_for() {
    let folder = Folder::new("waiting");
    let keystore = made(&folder);
    let first = open(&keystore).unwrap();
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        let keystore = &keystore;
        let waits = tell.clone();
        scope.spawn(move || {
            let waits = || waits.send("waits").unwrap();
            Maker::open(keystore, now(), waits).unwrap();
            tell.send("has it").unwrap();
        });
        assert_eq!(told.recv(), Ok("waits"));
        drop(first);
        assert_eq!(told.recv(), Ok("has it"));
    });
}

#[test]
fn what_those_left_who_were_killed_goes() {
    let folder = Folder::new("left");
    let left = folder.0.join(".tsuji-keystore-0123456789abcdef");
    fs::create_dir_all(left.join("private")).unwrap();
    let young = folder.0.join(".tsuji-keystore-fedcba9876543210");
    fs::create_dir(&young).unwrap();
    // What only looks alike is somebody's.
    let others = [".tsuji-keystore-backup", ".tsuji-keystore-0123456789abcdeg", ".keystore-old"];
    let others = others.map(|it| folder.0.join(it));
    others.iter().for_each(|it| fs::create_dir(it).unwrap());
    let long_ago = now() - Duration::from_secs(3600);
    for old in others.iter().chain([&left]) {
        fs::File::open(old).unwrap().set_modified(long_ago).unwrap();
    }
    made(&folder);
    assert!(!left.exists() && young.exists());
    assert!(others.iter().all(|it| it.exists()));
}

/// It is killed after each of the steps in which the parts get their places.
#[test]
fn what_was_begun_in_a_folder_is_finished() {
    for moved in 0..3 {
        let folder = Folder::new(&format!("begun-{moved}"));
        let keystore = keystore(&folder);
        fs::create_dir(&keystore).unwrap();
        made(&folder);
        let left = keystore.join(".tsuji-keystore-0123456789abcdef");
        fs::create_dir(&left).unwrap();
        for part in &["enclaves", "public", "private"][moved..] {
            fs::rename(keystore.join(part), left.join(part)).unwrap();
        }
        assert_eq!(make(&keystore), Ok(true), "{moved} moved");
        add(&keystore, "/talker", None).unwrap();
        // What was whole, and not begun to be moved, goes a minute later.
        assert_eq!(left.exists(), moved == 0);
    }
}

#[test]
fn a_folder_that_is_there_stays_the_one_it_is() {
    let folder = Folder::new("stays");
    let empty = folder.0.join("empty");
    fs::create_dir(&empty).unwrap();
    let before = fs::metadata(&empty).unwrap().ino();
    let link = folder.0.join("link");
    std::os::unix::fs::symlink(&empty, &link).unwrap();
    assert_eq!(make(&link), Ok(true));
    assert_eq!(fs::metadata(&empty).unwrap().ino(), before);
    add(&link, "/talker", None).unwrap();
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 3);
    assert_eq!(make(&empty), Ok(false));
}

#[test]
fn authorities_with_other_keys_sign_too() {
    let rsa = fs::read_to_string(format!("{DATA}/openssl/enclaves/robot/key.pem")).unwrap();
    let keys = [
        ("rsa", KeyPair::from_pem(&rsa).unwrap()),
        ("p384", KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap()),
    ];
    for (name, key) in keys {
        let folder = Folder::new(name);
        let keystore = made(&folder);
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::OrganizationName, "Acme, Inc.");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().pem();
        fs::write(keystore.join("public/ca.cert.pem"), certificate).unwrap();
        fs::write(keystore.join("private/ca.key.pem"), key.serialize_pem()).unwrap();
        sign_anew(&keystore);
        add(&keystore, "/talker", None).unwrap();
    }
}

fn sign_anew(keystore: &Path) {
    let governance = NewGovernance::read(&keystore.join("enclaves/governance.xml"), DOMAIN);
    open(keystore).unwrap().sign_governance(&governance.unwrap()).unwrap();
}

/// Made by OpenSSL with `-subj /DC=com/DC=acme/CN=z`, which comes out as one DC of rcgen.
#[test]
fn an_authority_whose_name_cannot_be_written_issues_nothing() {
    let folder = Folder::new("name");
    let keystore = made(&folder);
    for (file, to) in [("ca.cert.pem", "public"), ("ca.key.pem", "private")] {
        fs::copy(format!("{DATA}/dc/{file}"), keystore.join(to).join(file)).unwrap();
    }
    sign_anew(&keystore);
    let certificate = keystore.join("enclaves/a/cert.pem");
    is_refused(
        add(&keystore, "/a", None),
        &certificate,
        "cannot be issued here: the authority's name, DC=com, DC=acme, CN=z, has a part twice",
    );
    assert!(!keystore.join("enclaves/a").exists());
}

proptest! {
    #[test]
    fn no_policy_makes_it_panic(text in "(<(policy|enclaves|enclave path=\"/a\"|profile ns=\"/\" node=\"n\"|topics publish=\"ALLOW\"|/topics|topic|/topic)>|[a-z<>&~/*]{0,3}){0,20}") {
        let folder = Folder::new("any");
        let _ = AccessPolicy::read(&folder.write("policy.xml", &text));
    }

    /// Whatever names a policy has, the document for it is read, and says of each what the policy does.
    #[test]
    fn every_name_is_allowed_and_nothing_else(name in "[a-zA-Z0-9_&<>'\";.~-]{1,12}") {
        prop_assume!(!name.starts_with('~'));
        let folder = Folder::new("every");
        let escaped = name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let policy = folder.write("policy.xml", &format!(
            "<policy version=\"0.2.0\"><enclaves><enclave path=\"/a\"><profiles><profile ns=\"/n\" node=\"n\">\
             <topics publish=\"ALLOW\"><topic>{escaped}</topic></topics></profile></profiles></enclave></enclaves></policy>"
        ));
        let policy = AccessPolicy::read(&policy).unwrap();
        let keystore = made(&folder);
        let (_, enclave) = add(&keystore, "/a", policy.access("/a")).unwrap();
        let may = |name: &str| enclave.may(Deed::Publish, DOMAIN, &format!("rt/n/{name}")).is_allowed;
        prop_assert!(may(&name));
        let (longer, other) = (format!("{name}x"), format!("x{name}"));
        prop_assert!(!may(&longer) && !may(&other));
    }
}

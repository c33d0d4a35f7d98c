//! `tsuji security`, on keystores that SROS2 and OpenSSL have made.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::World;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tsuji-security/tests/data");
const TALKER: &str = "/talker_listener/talker";

/// A copy in the world's folder, whose keys only their owner may read.
fn keystore(world: &World, name: &str) -> PathBuf {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let to = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                copy(&entry.path(), &to);
            } else {
                fs::copy(entry.path(), &to).unwrap();
                fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).unwrap();
            }
        }
    }
    let folder = world.path(name);
    copy(&Path::new(DATA).join(name), &folder);
    folder
}

#[test]
fn what_is_whole_is_good_until_a_date() {
    let world = World::new();
    keystore(&world, "sros2");
    let variable = [("ROS_SECURITY_KEYSTORE", "sros2")];
    let checked = world.run_with(&variable, &["security", "check"]);
    assert_eq!((checked.code, &*checked.err), (Some(0), ""));
    let lines: Vec<_> = checked.out.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[2].starts_with("/talker_listener/talker    good   in "), "{lines:?}");
    assert!(lines[2].ends_with(" days (cert.pem)"), "{lines:?}");

    let words = ["security", "check", "--keystore", "sros2", "--json", TALKER];
    let json: Value = serde_json::from_str(&world.run(&words).good()).unwrap();
    let [enclave] = &**json.as_array().unwrap() else { panic!("{json}") };
    assert_eq!(enclave["enclave"], TALKER);
    assert_eq!(enclave["is_whole"], true);
    assert_eq!(enclave["subject"], "CN=/talker_listener/talker");
    assert_eq!(enclave["expiries"].as_array().unwrap().len(), 4);
}

#[test]
fn what_is_spoilt_is_refused_with_its_file_and_what_others_may_read_is_warned_of() {
    let world = World::new();
    let folder = keystore(&world, "sros2").join("enclaves/talker_listener");
    fs::copy(folder.join("talker/key.pem"), folder.join("listener/key.pem")).unwrap();
    fs::set_permissions(folder.join("talker/key.pem"), fs::Permissions::from_mode(0o644)).unwrap();
    let words = ["security", "check", "--keystore", "sros2"];
    let checked = world.run(&words);
    assert_eq!(checked.code, Some(1));
    assert!(checked.out.contains("/talker_listener/listener  refused"), "{}", checked.out);
    assert_eq!(
        checked.err,
        "WARNING: sros2/enclaves/talker_listener/talker/key.pem: others may read this key (mode 644); chmod 600 it\n\
         sros2/enclaves/talker_listener/listener/key.pem: is not the key of cert.pem\n\
         error: 1 enclave is not whole\n"
    );
    let checked = world.run(&[&words[..], &["--json"]].concat());
    assert_eq!(checked.code, Some(1));
    let json: Value = serde_json::from_str(&checked.out).unwrap();
    assert_eq!(json[0]["is_whole"], false);
    assert_eq!(json[0]["file"], "sros2/enclaves/talker_listener/listener/key.pem");
    assert_eq!(json[0]["why"], "is not the key of cert.pem");
    assert_eq!(json[1]["is_whole"], true);

    // The enclave of another under a name of its own.
    fs::rename(folder.join("talker"), folder.join("thief")).unwrap();
    let checked = world.run(&[&words[..], &["talker_listener/thief"]].concat());
    assert_eq!(checked.code, Some(0));
    assert!(checked.out.contains("/talker_listener/thief  good"), "{}", checked.out);
    let warned =
        "WARNING: /talker_listener/thief: its certificate is that of CN=/talker_listener/talker";
    assert!(checked.err.contains(warned), "{}", checked.err);

    let checked = world.run(&[&words[..], &["/nobody"]].concat());
    assert_eq!(checked.code, Some(1));
    let why = "there is no enclave \"/nobody\"; in this keystore: /talker_listener/listener";
    assert!(checked.err.contains(why), "{}", checked.err);
}

#[test]
fn where_there_is_no_keystore_is_said() {
    let world = World::new();
    for (words, code, expect) in [
        (&["check"][..], 2, "give --keystore FOLDER, or set ROS_SECURITY_KEYSTORE"),
        (&["check", "--keystore", "none"], 1, "there are no enclaves in none/enclaves"),
        (&["explain", "/a", "publish", "/b", "--keystore", "none"], 1, "in this keystore: none"),
        (&["explain", "/a", "publish", "b c", "--keystore", "none"], 2, "invalid value 'b c'"),
        (&["explain", "/a", "shout", "/b"], 2, "possible values: publish, subscribe, call"),
        (&["chek"], 2, "`tsuji security check` lists enclaves"),
    ] {
        let error = world.run(&[&["security"], words].concat()).bad(code);
        assert!(error.contains(expect), "{words:?}: {error}");
    }
}

#[test]
fn what_an_enclave_may_do_is_explained_by_the_rule() {
    let world = World::new();
    keystore(&world, "sros2");
    let explain = |words: &str| {
        let fixed = ["security", "explain", "--keystore", "sros2", TALKER];
        world.run(&fixed.into_iter().chain(words.split(' ')).collect::<Vec<_>>())
    };
    assert_eq!(
        explain("publish /chatter").good(),
        "/talker_listener/talker may publish /chatter in domain 0: allowed\n\
         join domain 0: allowed\n  allow_rule in line 9 of grant \"/talker_listener/talker\"\n\
         publish rt/chatter: allowed; samples: encrypted\n  \
         allow_rule in line 9 of grant \"/talker_listener/talker\", publish in line 13\n"
    );
    let denied = explain("subscribe /chatter");
    assert_eq!(denied.code, Some(1));
    assert!(denied.out.ends_with("its default in line 66 is DENY\n"), "{}", denied.out);
    let elsewhere = explain("call /talker/get_parameters --domain-id 3");
    assert_eq!(elsewhere.code, Some(1));
    assert_eq!(elsewhere.out.matches("governance has no rule for domain 3").count(), 2);

    // A service takes two topics, an action eight; all of them are to be allowed, and to join the domain.
    for (deed, parts, is_allowed) in [
        ("call /talker/get_parameters", 3, true),
        ("serve /talker/get_parameters", 3, true),
        ("execute /reach", 9, false),
    ] {
        let explained = explain(&format!("{deed} --json"));
        assert_eq!(explained.code, Some(i32::from(!is_allowed)), "{deed}: {}", explained.out);
        let json: Value = serde_json::from_str(&explained.out).unwrap();
        assert_eq!((&json["is_allowed"], &json["domain"]), (&is_allowed.into(), &0.into()));
        let all = json["parts"].as_array().unwrap();
        assert_eq!(all.len(), parts, "{json}");
        assert_eq!((&all[0]["verb"], &all[0]["topic"]), (&"join".into(), &Value::Null));
        assert!(all[1..].iter().all(|it| it["topic"].is_string()), "{json}");
    }
}

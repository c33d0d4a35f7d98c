//! `tsuji security`, on keystores that SROS2, OpenSSL and the command have made.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::de::{IoRead, StreamDeserializer};

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
    assert_eq!(elsewhere.out.matches("governance has no rule for domain 3").count(), 3);

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

const ACCESS: &str = r#"<policy version="0.2.0"><enclaves>
    <enclave path="/talker"><profiles><profile ns="/" node="talker">
        <topics publish="ALLOW"><topic>chatter</topic></topics>
    </profile></profiles></enclave>
    <enclave path="/listener"><profiles><profile ns="/" node="listener">
        <topics subscribe="ALLOW"><topic>chatter</topic></topics>
    </profile></profiles></enclave>
</enclaves></policy>"#;

#[test]
fn what_is_made_is_whole_and_allows_what_its_policy_says() {
    let world = World::new();
    let create =
        |words: &[&str]| world.run(&[&["security", "create", "--keystore", "own"], words].concat());
    let made = create(&["/talker", "arm", "--domain-id", "3"]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let lines: Vec<_> = made.out.lines().collect();
    assert_eq!(lines[..2], ["own: made", "ENCLAVE  KEY  PERMISSIONS      EXPIRES"]);
    assert!(lines[2].starts_with("/talker  new  new: everything  in 36"), "{lines:?}");
    assert!(lines[3].starts_with("/arm     new  new: everything  in 36"), "{lines:?}");
    assert_eq!(
        made.err,
        "whoever has own/private can make enclaves; a robot needs only public, enclaves/governance.p7s and its own enclave\n"
    );
    let checked = world.run(&["security", "check", "--keystore", "own"]);
    assert_eq!((checked.code, &*checked.err), (Some(0), ""));

    let explain = |enclave: &str, verb: &str| {
        let words = ["explain", enclave, verb, "/chatter", "--keystore", "own", "--domain-id", "3"];
        world.run(&[&["security"], &words[..]].concat()).code
    };
    assert_eq!(
        (explain("/talker", "subscribe"), explain("/listener", "subscribe")),
        (Some(0), Some(1))
    );
    fs::write(world.path("access.xml"), ACCESS).unwrap();
    let made = create(&["--access", "access.xml", "--domain-id", "3", "--days", "20", "--json"]);
    let json: Value = serde_json::from_str(&made.good()).unwrap();
    assert_eq!(
        (&json["keystore"], &json["is_new"], &json["domain"]),
        (&"own".into(), &false.into(), &3.into())
    );
    let of = |name: &str| {
        let mut all = json["enclaves"].as_array().unwrap().iter();
        let it = all.find(|it| it["enclave"] == name).unwrap();
        (it["has_new_key"].as_bool().unwrap(), it["has_new_permissions"].as_bool().unwrap())
    };
    assert_eq!((of("/talker"), of("/listener")), ((false, true), (true, true)));
    assert_eq!(
        (explain("/talker", "publish"), explain("/talker", "subscribe")),
        (Some(0), Some(1))
    );
    assert_eq!(
        (explain("/listener", "publish"), explain("/listener", "subscribe")),
        (Some(1), Some(0))
    );
    // Who renews keys learns of it in time.
    let checked = world.run(&["security", "check", "--keystore", "own", "/listener"]).good();
    assert!(checked.contains("/listener  good, not for long  in 19 days (cert.pem)"), "{checked}");
    let kept = create(&["/talker", "--domain-id", "3"]).good();
    assert!(kept.contains("/talker  kept  kept "), "{kept}");
}

#[test]
fn what_cannot_be_made_is_told_and_nothing_is_made_of_it() {
    let world = World::new();
    fs::write(world.path("access.xml"), ACCESS).unwrap();
    fs::write(world.path("wrong.xml"), ACCESS.replace("ALLOW", "MAYBE")).unwrap();
    fs::create_dir(world.path("full")).unwrap();
    fs::write(world.path("full/file"), "").unwrap();
    let create = |words: &str| {
        let words: Vec<_> = ["security", "create"].into_iter().chain(words.split(' ')).collect();
        world.run(&words)
    };
    for (words, code, expect) in [
        ("/talker", 2, "give --keystore FOLDER, or set ROS_SECURITY_KEYSTORE"),
        ("--keystore new --days 0", 2, "0 is not in 1..=36500"),
        ("--keystore new /a/../b", 2, "it is no name of an enclave; allowed: such as /talker"),
        ("--keystore new --access none.xml", 1, "none.xml: No such file or directory"),
        (
            "--keystore new --access wrong.xml",
            1,
            "error: wrong.xml:3:26: \"MAYBE\" is no value of \"publish\"; allowed: ALLOW, DENY",
        ),
        (
            "--keystore new --access access.xml /arm",
            1,
            "access.xml: says nothing of the enclave /arm; it has /talker, /listener",
        ),
        ("--keystore full /talker", 1, "full: is not empty, and is no keystore"),
    ] {
        let error = create(words).bad(code);
        assert!(error.contains(expect), "{words}: {error}");
    }
    assert!(!world.path("new").exists());
    assert_eq!(create("--keystore new").code, Some(0));
    for (words, expect) in [
        ("--keystore new /a --domain-id 7", "governance.p7s: has no rule for domain 7"),
        (
            "--keystore new --governance access.xml",
            "error: access.xml:1:2: \"policy\" is not an element here",
        ),
    ] {
        let refused = create(words);
        assert!(refused.code == Some(1) && refused.err.contains(expect), "{words}: {refused:?}");
    }
    // What was made before it is told.
    fs::create_dir_all(world.path("new/enclaves/half")).unwrap();
    fs::write(world.path("new/enclaves/half/cert.pem"), "").unwrap();
    let refused = create("--keystore new /whole /half /last --json");
    assert_eq!(refused.code, Some(1));
    let json: Value = serde_json::from_str(&refused.out).unwrap();
    let [whole, half] = &json["enclaves"].as_array().unwrap()[..] else { panic!("{json}") };
    assert_eq!((&whole["enclave"], &whole["is_whole"]), (&"/whole".into(), &true.into()));
    assert_eq!((&half["enclave"], &half["is_whole"]), (&"/half".into(), &false.into()));
    assert_eq!(half["file"], "new/enclaves/half/key.pem");
}

#[test]
fn what_makes_a_keystore_worth_less_is_warned_of() {
    let world = World::new();
    let run = |words: &str| {
        let words: Vec<_> = ["security"].into_iter().chain(words.split(' ')).collect();
        world.run(&words)
    };
    let made = run("create --keystore own --days 36500 /talker");
    let warned =
        "WARNING: the authority of the keystore expires in 7299 days, and certificates with it\n";
    assert!(made.code == Some(0) && made.err.starts_with(warned), "{made:?}");
    // As SROS2 leaves it.
    let set = |path: &str, mode| {
        fs::set_permissions(world.path(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    set("own/private/ca.key.pem", 0o644);
    assert_eq!(run("check --keystore own").err, "");
    set("own/private", 0o755);
    for words in ["check --keystore own", "create --keystore own /talker"] {
        let warned = run(words).err;
        assert!(
            warned.starts_with("WARNING: ")
                && warned.contains("own/private/ca.key.pem: others may read this key (mode 644)"),
            "{warned}"
        );
        assert_eq!(warned.lines().count(), 1, "{warned}");
    }
    set("own/private", 0o700);
    let governance = fs::read_to_string(world.path("own/enclaves/governance.xml")).unwrap();
    fs::write(world.path("five.xml"), governance.replace("<id>0</id>", "<id>5</id>")).unwrap();
    assert_eq!(run("create --keystore own --governance five.xml --domain-id 5").code, Some(0));
    let checked = run("check --keystore own");
    assert!(
        checked.err.contains("WARNING: /talker: may join no domain; its permissions and governance have none in common"),
        "{checked:?}"
    );
    let own = world.path("own/enclaves/talker/governance.p7s");
    fs::remove_file(&own).unwrap();
    fs::copy(world.path("own/enclaves/governance.p7s"), &own).unwrap();
    fs::write(world.path("zero.xml"), governance).unwrap();
    let made = run("create --keystore own --governance zero.xml");
    assert_eq!(made.err, "WARNING: /talker: has a governance of its own, which is kept\n");
    // A variable that is not set.
    let empty = world.run(&["security", "create", "--keystore", "own", ""]).bad(2);
    assert!(
        empty.contains("it is empty; allowed: such as /talker, and / for the one above all"),
        "{empty}"
    );
}

/// Killed sooner and later, so that each step is cut off in some run; whoever comes next makes it whole.
#[test]
fn what_a_killed_command_has_begun_the_next_one_ends() {
    let world = World::new();
    for kind in ["none", "there"] {
        let keystore = format!("{kind}/keystore");
        let words = ["security", "create", "--keystore", &keystore, "/a", "/b/c"];
        fs::create_dir(world.path(kind)).unwrap();
        for round in 0..30 {
            if kind == "there" {
                let _ = fs::remove_dir_all(world.path(&keystore));
                fs::create_dir(world.path(&keystore)).unwrap();
            }
            let killed = world.start(&words);
            thread::sleep(Duration::from_micros(700 * round));
            drop(killed);
            if kind == "there" || round == 29 {
                assert_eq!(world.run(&words).code, Some(0), "{kind} {round}");
                let checked = world.run(&["security", "check", "--keystore", &keystore]);
                assert_eq!((checked.code, &*checked.err), (Some(0), ""), "{kind} {round}");
            }
        }
    }
}

#[test]
fn a_killed_revocation_leaves_a_list_that_counts_or_none() {
    let world = World::new();
    let create = ["security", "create", "--keystore", "keystore", "/a", "/b/c"];
    let revoke = ["security", "revoke", "--keystore", "keystore", "/a"];
    let check = |enclave| world.run(&["security", "check", "--keystore", "keystore", enclave]);
    for round in 0..30 {
        let _ = fs::remove_dir_all(world.path("keystore"));
        assert_eq!(world.run(&create).code, Some(0));
        let killed = world.start(&revoke);
        thread::sleep(Duration::from_micros(700 * round));
        drop(killed);
        let is_listed = world.path("keystore/public/crl.pem").exists();
        assert_eq!(check("/b/c").code, Some(0), "{round}");
        assert_eq!(check("/a").code, Some(i32::from(is_listed)), "{round}");
        assert_eq!(world.run(&revoke).code, Some(0), "{round}");
        let checked = check("/b/c");
        assert_eq!((checked.code, &*checked.err), (Some(0), ""), "{round}");
        assert!(check("/a").err.contains("was revoked"), "{round}");
        assert!(!world.path("keystore/public/.crl.pem.new").exists(), "{round}");
    }
}

#[test]
fn an_enclave_that_is_refused_is_told_in_json_too() {
    let world = World::new();
    keystore(&world, "sros2");
    let words = ["explain", "/nobody", "publish", "/b", "--keystore", "sros2", "--json"];
    let explained = world.run(&[&["security"], &words[..]].concat());
    assert_eq!(explained.code, Some(1));
    let json: Value = serde_json::from_str(&explained.out).unwrap();
    assert_eq!((&json["enclave"], &json["is_whole"]), (&"/nobody".into(), &false.into()));
    assert!(explained.err.contains("there is no enclave \"/nobody\""), "{}", explained.err);
}

#[test]
fn each_flow_says_who_has_proved_its_key() {
    let world = World::new();
    let made = world.run(&["security", "create", "--keystore", "keys", "/talker", "/listener"]);
    assert_eq!(made.code, Some(0));
    let publish = ["topic", "pub", "/chatter", "std_msgs/msg/String", "data: hello"];
    let _talker = world.start_with(&enclave("/talker"), &publish);
    let echo = ["topic", "echo", "/chatter", "std_msgs/msg/String"];
    let mut listener = world.start_with(&enclave("/listener"), &echo);
    listener.out("data: hello");
    let why = world.run_with(&enclave("/listener"), &["routes", "--why"]).good();
    let expect = "secured     confined to memory of proved processes; CN=/talker and CN=/listener have proved their keys; until 20";
    assert!(why.contains(expect), "{why}");
    assert!(why.contains("cyclonedds: not working: not secured, as this process is"), "{why}");
    let json = world.run_with(&enclave("/talker"), &["routes", "--json"]).json();
    assert_eq!(json[0]["publisher"]["certificate"]["subject"], "CN=/talker");
    assert_eq!(json[0]["subscription"]["certificate"]["subject"], "CN=/listener");
    assert!(json[0]["subscription"]["certificate"]["expires_wall_ns"].as_i64().unwrap() > 0);
    // Nobody in clear sees any of it, and both sides say why.
    let clear = world.run(&["doctor"]);
    for told in [&clear.out, &clear.err] {
        assert!(told.contains("one of the two is secured by a keystore"), "{clear:?}");
    }
}

#[test]
fn a_web_user_of_an_enclave_may_do_what_its_permissions_allow() {
    let world = World::new();
    let policy = |topics: &str| {
        let text = format!(
            r#"<policy version="0.2.0"><enclaves><enclave path="/operator"><profiles><profile ns="/" node="web">
            <topics publish="ALLOW">{topics}</topics></profile></profiles></enclave></enclaves></policy>"#
        );
        world.write("operator.xml", &text);
    };
    let create = |words: &[&str]| {
        let made = world.run(&[&["security", "create", "--keystore", "keys"], words].concat());
        assert_eq!(made.code, Some(0), "{made:?}");
    };
    policy("<topic>cmd_vel</topic>");
    create(&["/bridge", "/listener"]);
    create(&["--access", "operator.xml"]);
    let users = "users: {pilot: {token: sesame, enclave: /operator}}";
    world.write("users.yaml", users);
    let start = ["bridge", "--no-websocket", "--tcp-port", "0", "--json", "--users", "users.yaml"];
    // In clear nobody says what an enclave may do.
    let error = world.run(&start).bad(2);
    assert!(error.contains("is asked for in a process that is not secured"), "{error}");
    world.write("nobody.yaml", &users.replace("/operator", "/nobody"));
    let nobody = [&start[..6], &["nobody.yaml"]].concat();
    let error = world.run_with(&enclave("/bridge"), &nobody).bad(2);
    assert!(error.contains("there is no enclave"), "{error}");

    let echo = ["topic", "echo", "/cmd_vel", "std_msgs/msg/String", "--once"];
    let mut listener = world.start_with(&enclave("/listener"), &echo);
    let mut bridge = world.start_with(&enclave("/bridge"), &start);
    let told: Value = serde_json::from_str(&bridge.out_line("listening")).unwrap();
    let port = told["listening"][0]["port"].as_u64().unwrap();
    let connect = || {
        let port = u16::try_from(port).unwrap();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        client.set_read_timeout(Some(WATCHDOG)).unwrap();
        client
    };
    let mut client = connect();
    let mut says = client.try_clone().unwrap();
    let mut hears = StreamDeserializer::new(IoRead::new(&mut client));
    let mut say = |text: &str| says.write_all(text.as_bytes()).unwrap();
    let mut hear = || -> Value { hears.next().unwrap().unwrap() };
    say(r#"{"op":"auth","token":"sesame"}
        {"op":"advertise","topic":"/cmd_vel","type":"std_msgs/String"}
        {"op":"publish","topic":"/cmd_vel","msg":{"data":"from the web"}}
        {"op":"subscribe","id":"s","topic":"/cmd_vel","type":"std_msgs/String"}"#);
    listener.out("data: from the web");
    let refused = hear();
    let why = refused["msg"].as_str().unwrap();
    assert!(
        why.contains("the enclave \"/operator\" may not subscribe rt/cmd_vel: no rule"),
        "{why}"
    );
    // Permissions that are signed anew count for whoever is connected.
    let advertise = r#"{"op":"advertise","topic":"/other","type":"std_msgs/String"}
        {"op":"call_service","id":"t","service":"/rosapi/get_time"}"#;
    say(advertise);
    assert!(hear()["msg"].as_str().unwrap().contains("rt/other"));
    assert_eq!(hear()["op"], "service_response");
    policy("<topic>cmd_vel</topic><topic>other</topic>");
    create(&["--access", "operator.xml"]);
    let begun = Instant::now();
    loop {
        say(advertise);
        let answer = hear();
        if answer["op"] == "service_response" {
            break;
        }
        hear();
        assert!(begun.elapsed() < WATCHDOG, "{answer}");
        thread::sleep(Duration::from_millis(200));
    }
    // Once it has no key that counts it goes if it has begun something, and may do nothing if it comes again.
    let revoked = world.run(&["security", "revoke", "--keystore", "keys", "/operator"]);
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    let last = hears.next();
    assert!(last.is_none(), "{last:?}");
    let mut client = connect();
    let again = format!(r#"{{"op":"auth","token":"sesame"}}{advertise}"#);
    client.write_all(again.as_bytes()).unwrap();
    let refused: Value = StreamDeserializer::new(IoRead::new(&mut client)).next().unwrap().unwrap();
    assert!(refused["msg"].as_str().unwrap().contains("was revoked by"), "{refused}");
    let ended = bridge.stop();
    assert!(ended.err.contains(r#"\"pilot\" may not subscribe \"/cmd_vel\""#), "{ended:?}");
    let of_revoked = ended.err.lines().filter(|it| it.contains("was revoked by"));
    assert_eq!(of_revoked.count(), 2, "one cut off, one refused: {ended:?}");
}

const WATCHDOG: Duration = Duration::from_secs(60);

/// What secures a process by an enclave of the keystore `keys`.
fn enclave(name: &str) -> [(&'static str, &str); 4] {
    [
        ("ROS_SECURITY_ENABLE", "true"),
        ("ROS_SECURITY_STRATEGY", "Enforce"),
        ("ROS_SECURITY_KEYSTORE", "keys"),
        ("ROS_SECURITY_ENCLAVE_OVERRIDE", name),
    ]
}

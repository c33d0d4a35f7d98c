//! `tsuji doctor`.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;

use crate::support::{Ended, Running, Signal, World, is_there};

const TEXT: &str = "std_msgs/msg/String";

/// The finding of this name.
#[track_caller]
fn finding(json: &serde_json::Value, area: &str, what: &str) -> (String, String, String) {
    let found = json.as_array().unwrap().iter().find(|it| it["area"] == area && it["what"] == what);
    let found = found.unwrap_or_else(|| panic!("no {area}, {what}: {json:#}"));
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("state"), text("found"), text("mend"))
}

#[test]
fn a_machine_that_is_well() {
    let world = World::new();
    let out = world.run(&["doctor"]);
    assert_eq!((out.code, out.err.as_str()), (Some(0), ""), "{out:?}");
    let areas =
        ["policy", "machine", "run-time folder", "transports", "peers", "network", "environment"];
    for area in areas {
        assert!(out.out.lines().any(|it| it == area), "{out:?}");
    }
    let json = world.run(&["doctor", "--json"]).json();
    assert_eq!(finding(&json, "transports", "shm").0, "ok");
    assert_eq!(finding(&json, "transports", "inproc").0, "ok");
    // They may be installed here.
    for name in ["fastdds", "zenoh"] {
        let (state, found, mend) = finding(&json, "transports", name);
        let is_told = found.contains("not installed")
            && mend == format!("install the package tsuji-transport-{name}");
        assert!(state == "ok" || state == "note" && is_told, "{found}; {mend}");
    }
    assert_eq!(finding(&json, "peers", "domain 0").1, "nobody else in this domain");
    let _publisher = world.start(&["topic", "pub", "/x", TEXT]);
    let met = |it: &Ended| finding(&it.json(), "peers", "domain 0").1 == "1 other process met";
    world.run_until(&["doctor", "--json"], met);
}

#[test]
fn a_trace_that_is_asked_for_is_named() {
    let world = World::new();
    let trace = world.path("trace");
    let asked = [("TSUJI_TRACE", trace.to_str().unwrap())];
    let (state, found, _) = finding(
        &world.run_with(&asked, &["doctor", "--json"]).json(),
        "environment",
        "TSUJI_TRACE",
    );
    assert_eq!((state.as_str(), found.contains("trace.PID")), ("ok", true), "{found}");
    // Where it cannot be written the command goes on, and says so.
    let nowhere = [("TSUJI_TRACE", "/proc/trace")];
    let told = world.run_with(&nowhere, &["doctor"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.err.contains("TSUJI_TRACE: flows are not traced"), "{told:?}");
}

/// What the library is does not matter: it is not loaded for it.
#[test]
fn a_transport_whose_start_has_ended_processes() {
    let world = World::new();
    let library = world.write("lib/libtsuji_transport_fastdds.so", "");
    let path = [("TSUJI_TRANSPORT_PATH", library.parent().unwrap().to_str().unwrap())];
    let shown =
        || finding(&world.run_with(&path, &["doctor", "--json"]).json(), "transports", "fastdds");
    assert_eq!(shown().0, "ok");
    let user = fs::metadata(&library).unwrap().uid();
    let note = world.write(&format!("run/starts-of-fastdds-{user}"), "2");
    let (state, found, _) = shown();
    assert_eq!(state, "broken");
    assert!(
        found.contains("the last 2 processes") && found.contains(note.to_str().unwrap()),
        "{found}"
    );
    fs::remove_file(note).unwrap();
    assert_eq!(shown().0, "ok");
}

#[test]
fn a_folder_that_everybody_may_write_to() {
    let world = World::new();
    fs::create_dir(world.run_time()).unwrap();
    fs::set_permissions(world.run_time(), fs::Permissions::from_mode(0o777)).unwrap();
    let ended = world.run(&["doctor", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let (state, found, mend) = finding(&ended.json(), "run-time folder", "path");
    assert_eq!(state, "broken");
    assert!(found.ends_with("mode 777: everybody may write to it"), "{found}");
    assert_eq!(mend, format!("chmod o-w {}", world.run_time().display()));
    // And what is said to mend it does.
    assert!(std::process::Command::new("sh").args(["-c", &mend]).status().unwrap().success());
    assert_eq!(world.run(&["doctor"]).code, Some(0));
}

#[test]
fn a_folder_that_is_none() {
    let world = World::new();
    world.write("run", "a file");
    let ended = world.run(&["doctor", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let json = ended.json();
    let (state, _, mend) = finding(&json, "run-time folder", "path");
    assert_eq!((state, mend), ("broken".to_owned(), format!("rm {}", world.run_time().display())));
    assert_eq!(finding(&json, "peers", "join").0, "broken");
}

#[test]
fn a_folder_that_is_said_relative_is_the_one_in_which_processes_meet() {
    let world = World::new();
    let relative = [("TSUJI_RUNTIME_DIR", "run")];
    let json = world.run_with(&relative, &["doctor", "--json"]).json();
    let (state, found, _) = finding(&json, "run-time folder", "path");
    let folder = world.run_time().display().to_string();
    assert!(state == "ok" && found.starts_with(&folder), "{found}");
}

#[test]
#[expect(clippy::print_stderr, reason = "says that it did not run")]
fn who_watches_for_all_is_told_and_whether_it_is_stopped() {
    let world = World::new();
    let doctor = || world.run(&["doctor", "--json"]).json();
    let is_told = |json: &serde_json::Value| json.to_string().contains("\"watcher\"");
    assert!(!is_told(&doctor()));
    let mut publisher = world.start(&["topic", "pub", "/x", TEXT]);
    publisher.out("publishing #1");
    let pid = publisher.id();
    let json = doctor();
    if !is_told(&json) {
        assert!(!fs::read_to_string("/proc/locks").is_ok_and(|it| it.contains(&pid.to_string())));
        eprintln!("this system shows no locks: not run");
        return;
    }
    let (state, found, _) = finding(&json, "run-time folder", "watcher");
    assert_eq!(state, "ok");
    assert!(found.ends_with(&format!(" (pid {pid}) watches for all of domain 0")), "{found}");
    publisher.freeze();
    let (state, found, mend) = finding(&doctor(), "run-time folder", "watcher");
    publisher.signal(Signal::Continue);
    assert_eq!((state.as_str(), mend), ("warning", format!("kill -CONT {pid}")));
    assert!(found.contains("and is stopped"), "{found}");
}

#[test]
fn what_killed_processes_leave() {
    let world = World::new();
    let mut publisher = world.start(&["topic", "pub", "/x", TEXT]);
    publisher.out("publishing #1");
    publisher.kill();
    let folder = world.run_time().join("domain-0");
    drop(UnixListener::bind(folder.join(format!("{:032x}.sock", 7))).unwrap());
    let (state, found, _) =
        finding(&world.run(&["doctor", "--json"]).json(), "run-time folder", "leftovers");
    assert_eq!((state.as_str(), found.split(' ').next()), ("note", Some("2")), "{found}");
    let (state, found, _) =
        finding(&world.run(&["doctor", "--json"]).json(), "run-time folder", "leftovers");
    assert_eq!((state.as_str(), found.as_str()), ("ok", "none"));

    // What lies in another domain stays there, and nobody claims otherwise.
    let folder = world.run_time().join("domain-7");
    fs::create_dir(&folder).unwrap();
    drop(UnixListener::bind(folder.join(format!("{:032x}.sock", 7))).unwrap());
    for _ in 0..2 {
        let json = world.run(&["doctor", "--json"]).json();
        let (_, found, _) = finding(&json, "run-time folder", "leftovers");
        let expect = "1 socket of a killed process; what is left in this domain is now removed";
        assert_eq!(found, expect);
    }
}

#[test]
fn somebody_who_cannot_be_met() {
    let world = World::new();
    world.run(&["topic", "list"]).good();
    // It listens, but is none of us.
    let path = world.run_time().join("domain-0").join(format!("{:032x}.sock", 8));
    let _listener = UnixListener::bind(&path).unwrap();
    let ended = world.run(&["doctor", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let (state, found, mend) = finding(&ended.json(), "peers", "not met");
    assert_eq!(state, "warning");
    assert!(found.starts_with(&path.display().to_string()), "{found}");
    assert!(!mend.is_empty());
    assert_eq!(finding(&ended.json(), "run-time folder", "leftovers").0, "ok");
}

#[test]
fn a_policy_that_is_refused() {
    let world = World::new();
    world.write("bad.xml", "<tsuji prefer=\"speed\"/>");
    let ended = world.run(&["doctor", "--json", "--policy", "bad.xml"]);
    assert_eq!(ended.code, Some(1));
    let (state, _, mend) = finding(&ended.json(), "policy", "in force");
    assert_eq!((state.as_str(), mend.as_str()), ("broken", "tsuji policy check bad.xml"));
}

#[test]
fn a_memory_folder_that_is_missing() {
    let world = World::new();
    let folder = world.path("no/such");
    let policy = format!(
        "<tsuji><transport name=\"shm\"><set key=\"backing\" value=\"{}\"/></transport></tsuji>",
        folder.display()
    );
    world.write("mine.xml", &policy);
    let ended = world.run(&["doctor", "--json", "--policy", "mine.xml"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let json = ended.json();
    assert_eq!(finding(&json, "machine", "memory folder").0, "broken");
    assert_eq!(finding(&json, "transports", "shm").0, "broken");
}

#[test]
fn the_environment() {
    let world = World::new();
    let variables = [
        ("ROS_DOMAIN_ID", "7"),
        ("ROS_LOCALHOST_ONLY", "1"),
        ("RMW_IMPLEMENTATION", "rmw_cyclonedds_cpp"),
        ("CYCLONEDDS_URI", "file:///x"),
        ("ROS_DISTRO", "humble"),
        ("TSUJI_INTEROP", "rtps"),
        ("TSUJI_ROBOT", "r2"),
        ("FASTDDS_DEFAULT_PROFILES_FILE", "/x"),
        ("AMENT_PREFIX_PATH", "/no/such/prefix"),
        ("ROS_SECURITY_ENABLE", "true"),
    ];
    let ended = world.run_with(&variables, &["doctor", "--json"]);
    // It tries what a process does: with this CYCLONEDDS_URI no foreign node is met.
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let json = ended.json();
    let (state, found, _) = finding(&json, "transports", "cyclonedds");
    assert!(state == "broken" && found.contains("can't open configuration file"), "{found}");
    let state = |name: &str| finding(&json, "environment", name).0;
    assert_eq!(finding(&json, "environment", "ROS_DOMAIN_ID").1, "7: obeyed");
    assert_eq!(state("ROS_LOCALHOST_ONLY"), "note");
    assert_eq!(state("RMW_IMPLEMENTATION"), "note");
    assert_eq!(state("CYCLONEDDS_URI"), "warning");
    assert_eq!(state("ROS_DISTRO"), "ok");
    assert_eq!(state("TSUJI_INTEROP"), "ok");
    let found = finding(&json, "environment", "TSUJI_ROBOT").1;
    assert!(found.ends_with("/chatter of a program started here is /r2/chatter"), "{found}");
    assert_eq!(state("FASTDDS_DEFAULT_PROFILES_FILE"), "note");
    // Who only joins is told it too.
    assert!(
        ended.err.contains("WARNING: FASTDDS_DEFAULT_PROFILES_FILE=\"/x\": not obeyed"),
        "{ended:?}"
    );
    assert_eq!(state("AMENT_PREFIX_PATH"), "warning");
    assert_eq!(state("ROS_SECURITY_ENABLE"), "warning");
    let broken = [
        ("ROS_DOMAIN_ID", "999"),
        ("ROS_SECURITY_ENABLE", "true"),
        ("ROS_SECURITY_STRATEGY", "Enforce"),
    ];
    let ended = world.run_with(&broken, &["doctor", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(finding(&ended.json(), "environment", "ROS_DOMAIN_ID").2, "unset ROS_DOMAIN_ID");
    let (state, found, mend) = finding(&ended.json(), "environment", "ROS_SECURITY_ENABLE");
    assert_eq!(
        (&*state, &*mend),
        ("broken", "set ROS_SECURITY_KEYSTORE, or unset ROS_SECURITY_ENABLE")
    );
    let expect = "true, and ROS_SECURITY_KEYSTORE is not set, so no process starts, as ROS_SECURITY_STRATEGY=Enforce says";
    assert_eq!(found, expect);
}

#[test]
fn what_is_secured_is_said() {
    let world = World::new();
    assert_eq!(world.run(&["security", "create", "--keystore", "keys", "/talker"]).code, Some(0));
    let check = |enabled: &str, enclave: &str, state: &str, expect: &str| {
        let variables = [
            ("ROS_SECURITY_ENABLE", enabled),
            ("ROS_SECURITY_KEYSTORE", "keys"),
            ("ROS_SECURITY_ENCLAVE_OVERRIDE", enclave),
            ("TSUJI_TRANSPORT_PATH", "/no/such/folder"),
        ];
        let ended = world.run_with(&variables, &["doctor", "--json"]);
        let found = finding(&ended.json(), "environment", "ROS_SECURITY_ENABLE");
        assert_eq!((&*found.0, &*found.1), (state, expect));
    };
    let others = "and meets no other hosts and no nodes on other middlewares: not installed: \
        libtsuji_dds_security.so is in none of the folders where transports are looked for; \
        TSUJI_TRANSPORT_PATH adds some; the package tsuji-dds-security installs it, which secures RTPS";
    check(
        "true",
        "/talker",
        "ok",
        &format!("true: a process is secured by /talker of keys, {others}"),
    );
    let named =
        format!("true: a process is secured by the enclave that it names of keys, {others}");
    check("true", "", "ok", &named);
    let missing = "true, and keys has no enclave /arm, so processes start in clear";
    check("true", "/arm", "warning", missing);
    check("TRUE", "/talker", "warning", "TRUE: nothing is secured");
    check("false", "/talker", "ok", "false: nothing is secured");
}

#[test]
fn a_keystore_is_looked_at_and_who_renews_keys_is_told_in_time() {
    let world = World::new();
    let create = |words: &[&str]| {
        world.run(&[&["security", "create", "--keystore", "keys"], words].concat()).code
    };
    let looked_at = || {
        let ended = world.run_with(&[("ROS_SECURITY_KEYSTORE", "keys")], &["doctor", "--json"]);
        finding(&ended.json(), "environment", "ROS_SECURITY_KEYSTORE")
    };
    let check = |state: &str, found: &str, mend: &str| {
        let told = looked_at();
        assert!(told.0 == state && told.1.starts_with(found) && told.2 == mend, "{told:?}");
    };
    check("warning", "keys: there are no enclaves in it", "tsuji security create makes them");
    assert_eq!(create(&["/talker"]), Some(0));
    check("ok", "keys: 1 enclave; cert.pem of /talker expires in 3649 days", "");
    assert_eq!(create(&["/arm", "--days", "9"]), Some(0));
    check("warning", "keys: 2 enclaves; cert.pem of /arm expires in 8 days", "renew it in time");
    fs::write(world.path("keys/enclaves/arm/key.pem"), "").unwrap();
    let refused = "1 of 2 enclaves refused: keys/enclaves/arm/key.pem: is no PEM file";
    check("warning", refused, "tsuji security check says more");
}

#[test]
fn who_is_spoken_to() {
    let world = World::new();
    let json = |variables: &[(&str, &str)]| {
        let ended = world.run_with(variables, &["doctor", "--json"]);
        (ended.code, ended.json())
    };
    let (code, wrong) = json(&[("TSUJI_INTEROP", "dds")]);
    assert_eq!(code, Some(1));
    let (state, _, mend) = finding(&wrong, "environment", "TSUJI_INTEROP");
    assert_eq!((state.as_str(), mend.as_str()), ("broken", "unset TSUJI_INTEROP"));
    assert_eq!(finding(&wrong, "peers", "join").0, "broken");
    let (code, wrong) = json(&[("TSUJI_ROBOT", "r-2")]);
    assert_eq!(code, Some(1));
    let (state, found, mend) = finding(&wrong, "environment", "TSUJI_ROBOT");
    assert_eq!((state.as_str(), mend.as_str()), ("broken", "unset TSUJI_ROBOT"));
    assert!(found.starts_with("\"r-2\" is no name of a robot; allowed: letters"), "{found}");
    let off = ("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF");
    let (code, off) = json(&[("TSUJI_INTEROP", "rtps"), off]);
    assert_eq!(code, Some(0));
    assert_eq!(finding(&off, "environment", "TSUJI_INTEROP").0, "warning");
    assert_eq!(finding(&off, "environment", "ROS_AUTOMATIC_DISCOVERY_RANGE").0, "ok");
    assert_eq!(finding(&off, "network", "used by").0, "note");
    let (_, none) = json(&[("TSUJI_INTEROP", "none"), ("CYCLONEDDS_URI", "<General/>")]);
    assert_eq!(finding(&none, "environment", "TSUJI_INTEROP").0, "ok");
    assert_eq!(finding(&none, "environment", "CYCLONEDDS_URI").0, "note");
}

/// What doctor says in a network namespace of its own, after `script`; `None` where there is none.
fn in_a_namespace(world: &World, script: &str) -> Option<serde_json::Value> {
    let script = format!("set -e; {script}\nexec \"$@\"");
    let wrapper = ["unshare", "-rn", "sh", "-c", &script, "sh"];
    if !is_there(&[&wrapper[..], &["true"]].concat()) {
        return None;
    }
    let ended = Running::new(&mut world.command_under(&wrapper, &["doctor", "--json"])).end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    Some(ended.json())
}

/// The command in a finding's remedy.
#[track_caller]
fn as_root(mend: &str) -> &str {
    mend.strip_prefix("as root: ").unwrap_or_else(|| panic!("{mend}"))
}

#[test]
fn a_namespace_with_loopback_alone() {
    let world = World::new();
    // Where this build does not leave the host, nothing of it is a warning.
    let troubled = |json: &serde_json::Value, what: &str| {
        let (state, found, mend) = finding(json, "network", what);
        assert!(["note", "warning"].contains(&state.as_str()), "{what}: {state}");
        (found, mend)
    };
    let Some(json) = in_a_namespace(&world, "") else { return };
    let (found, mend) = troubled(&json, "lo");
    assert!(found.starts_with("down: "), "{found}");
    let up = as_root(&mend).to_owned();

    let Some(json) = in_a_namespace(&world, &up) else { return };
    assert!(troubled(&json, "interfaces").0.starts_with("none is up but loopback"));
    let (found, mend) = troubled(&json, "lo");
    assert!(found.starts_with("127.0.0.1") && found.contains("; no multicast"), "{found}");
    let (found, same) = troubled(&json, "multicast");
    assert!(found.starts_with("239.255.0.1 cannot be reached"), "{found}");
    assert_eq!(mend, same);

    // And what is said to mend it does.
    let Some(json) = in_a_namespace(&world, as_root(&mend)) else { return };
    assert_eq!(finding(&json, "network", "lo").0, "ok");
    let (state, found, _) = finding(&json, "network", "multicast");
    assert!(state == "ok" && found.starts_with("a datagram to 239.255.0.1 came back"), "{found}");
}

#[test]
fn an_interface_without_multicast() {
    let world = World::new();
    let pair = "ip link add one type veth peer name two; ip addr add 192.0.2.7/24 dev one; \
                ip link set one up multicast off; ip link set two up";
    let Some(json) = in_a_namespace(&world, pair) else { return };
    let (state, found, mend) = finding(&json, "network", "one");
    assert_ne!(state, "ok");
    assert!(found.starts_with("192.0.2.7") && found.contains("no multicast"), "{found}");
    assert_eq!(mend, "as root: ip link set one multicast on");
    assert_eq!(finding(&json, "network", "two").0, "ok");
    let Some(json) = in_a_namespace(&world, &format!("{pair}; {}", as_root(&mend))) else { return };
    assert_eq!(finding(&json, "network", "one").0, "ok");
}

#[test]
fn a_port_of_rtps_that_somebody_has_for_himself() {
    let world = World::new();
    let mut domains = (20..100_u16).filter_map(|domain| {
        let port = 7400 + 250 * domain;
        Some((domain, port, UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).ok()?))
    });
    let (domain, port, _socket) = domains.next().unwrap();
    let (flag, what) = (domain.to_string(), format!("ports of domain {domain}"));
    let json = world.run(&["doctor", "--json", "--domain-id", &flag]).json();
    let (state, found, mend) = finding(&json, "network", &what);
    assert_ne!(state, "ok", "{found}");
    let own = std::process::id();
    assert!(found.contains(&format!("{port} is held by ")), "{found}");
    assert!(found.contains(&format!("(pid {own}), which does not share it")), "{found}");
    assert_eq!(mend, format!("kill {own}, or take another ROS_DOMAIN_ID everywhere"));
}

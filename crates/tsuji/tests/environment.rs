//! What the environment says of the network is obeyed, or refused with a line.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use house::{Child, Folder, HANG, Watchdog, keep_all, take_until, tell, wait_until};
use tsuji::Interop;
use tsuji::{Context, ErrorKind, RouteReport, RouteState};
use tsuji_interfaces::std_msgs::msg::UInt64;

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "start" => match Context::new() {
            Ok(context) => tell(&format!("domain {} {}", context.domain(), context.interop())),
            Err(error) => tell(&format!("{:?} {error}", error.kind())),
        },
        "talk" => talk(),
        _ => (),
    }
}

/// Two processes in one, which reach each other by the network only.
fn talk() {
    let context = || Context::builder().isolated().build().unwrap();
    let (one, two) = (context(), context());
    let (talker, listener) = (one.node("talker").unwrap(), two.node("listener").unwrap());
    let publisher = talker.create_publisher::<UInt64>("t", keep_all()).unwrap();
    let subscription = listener.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    publisher.publish(UInt64 { data: 7 }).unwrap();
    take_until(&listener, &subscription, |received| received.message().data == 7);
    let routes = || one.routes(HANG).unwrap();
    // An engine that asks for the names of hosts is gone on with later.
    let is_final = |it: &RouteReport| {
        let is_joining = it.rejected.iter().any(|(_, why)| why.contains("it is still joining"));
        it.state == RouteState::Active && !is_joining
    };
    wait_until("a route", || routes().iter().any(is_final));
    let route = routes().remove(0);
    let rejected = route.rejected.iter().map(|(link, why)| format!("{link}: {why}"));
    let rejected = rejected.collect::<Vec<_>>().join("; ").replace('\n', " ");
    tell(&format!("by {} not {rejected}", route.transport.unwrap()));
}

/// What a process says that starts with these variables.
fn started(variables: &[(&str, &str)]) -> String {
    let folder = Folder::new();
    let child = Child::start_with(&folder, "start", variables);
    let said = child.line();
    child.finish();
    said
}

#[test]
fn what_is_wrong_is_named_with_what_is_allowed() {
    let check = |variables: &[(&str, &str)], expect: &str| {
        assert_eq!(started(variables), expect, "{variables:?}");
    };
    check(
        &[("TSUJI_INTEROP", "dds")],
        "Invalid TSUJI_INTEROP: \"dds\" is not a kind of interop; allowed: rtps, zenoh, ros1, both, none",
    );
    check(&[("ROS_DOMAIN_ID", "300")], "Invalid ROS_DOMAIN_ID=\"300\": allowed: 0 to 232");
    check(
        &[("ROS_SECURITY_ENABLE", "true"), ("ROS_SECURITY_STRATEGY", "Enforce")],
        "Invalid security is enforced, and ROS_SECURITY_KEYSTORE is not set; `tsuji security create` makes keystores \
         and enclaves",
    );
}

#[test]
fn what_is_said_is_what_comes_of_it() {
    let check = |variables: &[(&str, &str)], expect: &str| {
        assert_eq!(started(variables), expect, "{variables:?}");
    };
    check(&[("ROS_DOMAIN_ID", "0x10"), ("TSUJI_INTEROP", "rtps")], "domain 16 rtps");
    // Where the plug-in over Zenoh is not found.
    let nowhere = ("TSUJI_TRANSPORT_PATH", "");
    check(&[("TSUJI_INTEROP", "both"), nowhere], "domain 7 rtps");
    check(&[("TSUJI_INTEROP", "zenoh"), nowhere], "domain 7 none");
    let off = ("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF");
    check(&[("TSUJI_INTEROP", "rtps"), off], "domain 7 none");
    check(&[("TSUJI_INTEROP", "none")], "domain 7 none");
}

#[test]
fn what_a_program_says_prevails() {
    let folder = Folder::new();
    let context = |interop| {
        let builder = Context::builder().runtime_dir(&folder.0).domain(house::DOMAIN);
        builder.interop(interop).build()
    };
    let rtps = context(Interop::RTPS).unwrap();
    assert_eq!(rtps.interop(), Interop::RTPS);
    // As with another policy.
    let error = context(Interop::NONE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error
            .to_string()
            .contains("speaks to other ROS 2 nodes, or is of another robot; allowed: "),
        "{error}"
    );
    assert_eq!(context(Interop::RTPS).unwrap().interop(), Interop::RTPS);
}

#[test]
fn without_a_word_the_policy_says_it() {
    let folder = Folder::new();
    let said = |interop: &str| {
        let path = policy_file(&folder, &format!("<tsuji interop=\"{interop}\"/>"));
        started(&[("TSUJI_INTEROP", ""), ("TSUJI_POLICY", path.to_str().unwrap())])
    };
    assert_eq!([said("none"), said("rtps")], ["domain 7 none", "domain 7 rtps"]);
}

fn policy_file(folder: &Folder, text: &str) -> PathBuf {
    std::fs::create_dir_all(&folder.0).unwrap();
    std::fs::set_permissions(&folder.0, std::fs::Permissions::from_mode(0o700)).unwrap();
    let path = folder.0.join("policy.xml");
    std::fs::write(&path, text).unwrap();
    path
}

/// How two processes talk that have these variables, below another program.
fn talked(wrapper: &[&str], uses: &str, variables: &[(&str, &str)]) -> String {
    let _watchdog = Watchdog::start("two that talk");
    let folder = Folder::new();
    let text = format!("<tsuji><rule name=\"this\" scope=\"local\" use=\"{uses}\"/></tsuji>");
    let path = policy_file(&folder, &text);
    let fixed = [("TSUJI_POLICY", path.to_str().unwrap()), ("TSUJI_INTEROP", "rtps")];
    let variables = [&fixed[..], variables].concat();
    let child = Child::start_in(wrapper, &folder.0, "talk", &variables);
    let said = child.expect("by ");
    child.finish();
    said
}

const RANGE: &str = "ROS_AUTOMATIC_DISCOVERY_RANGE";

const URI_OF_LOOPBACK: (&str, &str) = (
    "CYCLONEDDS_URI",
    "<General><Interfaces><NetworkInterface name=\"lo\" multicast=\"true\"/></Interfaces></General>",
);

#[test]
fn every_range_that_is_not_off_finds_who_is_on_this_host() {
    // A domain of its own on the network, so that other tests are not met there.
    let domain = ("ROS_DOMAIN_ID", "91");
    for range in ["LOCALHOST", "SUBNET", "SYSTEM_DEFAULT", "OFF"] {
        let said = talked(&[], "cyclonedds", &[domain, (RANGE, range)]);
        assert!(said.starts_with("cyclonedds not "), "{range}: {said}");
    }
}

#[test]
fn loopback_alone_is_enough() {
    let up = "set -e; ip link set lo up; exec \"$@\"";
    let wrapper = ["unshare", "-rn", "sh", "-c", up, "sh"];
    let mut tried = Command::new(wrapper[0]);
    if !tried.args(&wrapper[1..]).arg("true").status().is_ok_and(|it| it.success()) {
        return;
    }
    for variables in [&[(RANGE, "SUBNET")][..], &[(RANGE, "LOCALHOST")], &[URI_OF_LOOPBACK]] {
        let said = talked(&wrapper, "cyclonedds", variables);
        assert!(said.starts_with("cyclonedds not "), "{variables:?}: {said}");
    }
}

#[test]
fn what_is_meant_for_the_engine_reaches_it() {
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    let trace = folder.0.join("trace");
    let text = format!(
        "<Tracing><Verbosity>config</Verbosity><OutputFile>{}</OutputFile></Tracing>",
        trace.display()
    );
    let file = folder.0.join("cyclone.xml");
    std::fs::write(&file, format!("<CycloneDDS><Domain>{text}</Domain></CycloneDDS>")).unwrap();
    for uri in [text, format!("file://{}", file.display())] {
        let said = talked(&[], "cyclonedds", &[(RANGE, "LOCALHOST"), ("CYCLONEDDS_URI", &uri)]);
        assert!(said.starts_with("cyclonedds not "), "{uri}: {said}");
        std::fs::remove_file(&trace).unwrap();
    }
}

#[test]
fn what_the_engine_refuses_leaves_the_other_links() {
    let check = |uri: &str, expect: &str| {
        let variables = [(RANGE, "LOCALHOST"), ("CYCLONEDDS_URI", uri)];
        let said = talked(&[], "cyclonedds shm", &variables);
        assert!(said.starts_with("shm not "), "{uri}: {said}");
        assert!(said.contains("CYCLONEDDS_URI") && said.contains(expect), "{uri}: {said}");
    };
    check("<General><<", "parser error");
    check("<General><Nothing/></General>", "Nothing: unknown element");
    check("file:///no/such/file", "can't open configuration file");
    // At these the engine would end the process.
    let peer = |it: &str| format!("<Discovery><Peers><Peer address=\"{it}\"/></Peers></Discovery>");
    check(&peer("300.1.1.1"), "300.1.1.1: ");
    check(&peer("no-such-host.invalid"), "no-such-host.invalid: ");
    check(&peer("fe80::1"), "allowed: a name or an IPv4 address");
    check("<General><Transport>udp6</Transport></General>", "allowed: that one");
}

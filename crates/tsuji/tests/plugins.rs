//! Flows by transports of shared libraries: the example in C, and Fast DDS and Zenoh where their plug-ins were built.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use house::links::{Sender, Taker, assert_all_came, ends, keep_many, set, settled_on};
use house::{Child, Folder, HANG, Watchdog, keep_all, keep_last};
use tsuji::{Context, Qos};
use tsuji_core::Policy;
use tsuji_interfaces::std_msgs::msg::UInt64;

/// The example, compiled once.
fn example() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugins");
        std::fs::create_dir_all(&folder).unwrap();
        tsuji_conformance::example_transport(&folder)
    })
}

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    house::links::play(&house::role(), &house::context());
}

/// Everything over loopback, and the example, whose sockets are in `folder`.
fn policy(folder: &Folder) -> Policy {
    tsuji_policy::load("test", text(folder).as_bytes(), tsuji::KNOWN_TRANSPORTS).unwrap()
}

fn text(folder: &Folder) -> String {
    std::fs::create_dir_all(&folder.0).unwrap();
    format!(
        "<tsuji>
           <transport name=\"cyclonedds\">
             <set key=\"interfaces\" value=\"lo\"/>
             <set key=\"multicast\" value=\"true\"/>
           </transport>
           <transport name=\"zenoh\"><set key=\"meet\" value=\"host\"/></transport>
           <transport name=\"example\" plugin=\"{}\"><set key=\"folder\" value=\"{}\"/></transport>
         </tsuji>",
        example().display(),
        folder.0.display()
    )
}

/// A process of its own, whose flows on this host go by this plug-in.
fn start(folder: &Folder, role: &str, plugin: &str) -> Child {
    let rule = format!("<rule name=\"by the plug-in\" scope=\"local\" use=\"{plugin}\"/></tsuji>");
    let path = folder.0.join("policy.xml");
    std::fs::write(&path, text(folder).replace("</tsuji>", &rule)).unwrap();
    Child::start_with(folder, role, &[("TSUJI_POLICY", path.to_str().unwrap())])
}

/// A process with these transports of all there are; with all, where none is named.
fn process(folder: &Folder, transports: &[&'static str]) -> Context {
    let builder = Context::builder().runtime_dir(&folder.0).domain(house::DOMAIN);
    let transports = transports.to_vec();
    let builder = builder.policy(policy(folder)).transports(move |mut built| {
        built.retain(|it| transports.is_empty() || transports.contains(&it.id().as_str()));
        built
    });
    builder.build().unwrap()
}

fn back_and_forth(qos: Qos, between: [&str; 2]) {
    let _watchdog = Watchdog::start("back and forth");
    let folder = Folder::new();
    let (here, there) = (process(&folder, &[]), process(&folder, &[]));
    let (publisher, subscription) = ends(&here, &there, qos);
    let sending = Sender::start(publisher, Duration::from_micros(200));
    let taking = Taker::start(subscription, u64::MAX);
    for change in 0..10 {
        let to = between[change % 2];
        set(&there, "/n", Some(to));
        settled_on(&there, "/n", to);
        taking.wait_for_more();
    }
    let sent = sending.finish();
    assert_all_came(taking.finish(sent).counters(), sent);
}

#[test]
fn a_flow_goes_by_a_plugin_and_back_to_shared_memory() {
    back_and_forth(keep_many(), ["example", "shm"]);
}

#[test]
fn a_flow_goes_by_a_plugin_and_back_to_the_network() {
    back_and_forth(keep_all(), ["example", "cyclonedds"]);
}

/// Whether the plug-in of this name is here; a test that is not run says so. It must be, where the variable says that it is
/// required.
#[allow(clippy::print_stderr, reason = "says that it did not run")]
fn is_built(name: &str) -> bool {
    let variable = format!("TSUJI_{}", name.to_uppercase());
    let folder = Folder::new();
    let offered = folder.process().transports();
    let it = offered.iter().find(|it| it.name == name).unwrap();
    if !it.is_installed && std::env::var_os(variable).is_none() {
        eprintln!("{name}: not run: {}", it.trouble.as_deref().unwrap());
        return false;
    }
    assert_eq!(it.trouble, None);
    true
}

/// The links between processes that there are here, with all plug-ins.
fn links() -> Vec<&'static str> {
    let mut links = vec!["shm", "cyclonedds", "example"];
    links.extend(["fastdds", "zenoh"].into_iter().filter(|it| is_built(it)));
    links
}

/// A process, and others that it reaches by a link each, itself in process among them.
fn on_every_link(folder: &Folder) -> (Context, Vec<Context>) {
    let here = process(folder, &[]);
    let mut others: Vec<Context> = links().into_iter().map(|it| process(folder, &[it])).collect();
    others.push(here.clone());
    (here, others)
}

/// A publisher whose readers are on every link there is, and each gets each sample once.
#[test]
fn one_publisher_feeds_subscriptions_on_every_link() {
    let _watchdog = Watchdog::start("every link");
    let folder = Folder::new();
    let (here, others) = on_every_link(&folder);
    let publisher =
        here.node("sender").unwrap().create_publisher::<UInt64>("n", keep_all()).unwrap();
    let subscribe = |context: &Context| {
        let node = context.node("taker").unwrap();
        node.create_polled_subscription::<UInt64>("n", keep_all()).unwrap()
    };
    let subscriptions: Vec<_> = others.iter().map(subscribe).collect();
    publisher.wait_for_subscriptions(subscriptions.len(), HANG).unwrap();
    for subscription in &subscriptions {
        subscription.wait_for_publishers(1, HANG).unwrap();
    }
    let mut taken: Vec<String> =
        here.routes(HANG).unwrap().into_iter().filter_map(|it| it.transport).collect();
    taken.sort();
    let mut expect = [links(), vec!["inproc"]].concat();
    expect.sort_unstable();
    assert_eq!(taken, expect);
    let sending = Sender::start(publisher, Duration::from_micros(200));
    let takers: Vec<_> = subscriptions.into_iter().map(|it| Taker::start(it, u64::MAX)).collect();
    takers.iter().for_each(|it| it.wait_for(1000));
    let sent = sending.finish();
    for taker in takers {
        assert_all_came(taker.finish(sent).counters(), sent);
    }
}

/// A subscription that takes from publishers on every link there is, in the order of each.
#[test]
fn one_subscription_takes_from_publishers_on_every_link() {
    const SENT: u64 = 1000;
    let _watchdog = Watchdog::start("every link");
    let folder = Folder::new();
    let (here, others) = on_every_link(&folder);
    let node = here.node("taker").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("n", keep_all()).unwrap();
    let publish = |context: &Context| {
        let node = context.node("sender").unwrap();
        node.create_publisher::<UInt64>("n", keep_all()).unwrap()
    };
    let publishers: Vec<_> = others.iter().map(publish).collect();
    subscription.wait_for_publishers(publishers.len(), HANG).unwrap();
    for publisher in &publishers {
        publisher.wait_for_subscriptions(1, HANG).unwrap();
    }
    std::thread::scope(|scope| {
        for publisher in &publishers {
            scope.spawn(move || {
                for number in 0..SENT {
                    publisher.publish(UInt64 { data: number }).unwrap();
                }
            });
        }
        let mut next = vec![0; publishers.len()];
        while next.iter().sum::<u64>() < SENT * publishers.len() as u64 {
            let Some(received) = subscription.take().unwrap() else {
                std::thread::sleep(Duration::from_micros(50));
                continue;
            };
            let from = received.info().publisher;
            let at = publishers.iter().position(|it| it.gid() == from).unwrap();
            assert_eq!(received.view().data, next[at], "of publisher {at}");
            next[at] += 1;
        }
    });
    assert!(subscription.take().unwrap().is_none());
}

#[test]
fn a_publisher_killed_in_a_flow_by_a_plugin_leaves_the_rest() {
    let folder = Folder::new();
    kill_publishers(&folder, "example");
    // Whoever joins takes away what the dead have left.
    let (here, there) = (process(&folder, &["example"]), process(&folder, &["example"]));
    let _ends = ends(&there, &here, keep_last(10));
    assert_eq!(sockets(&folder), 2);
}

/// A publisher killed while it sends loses what it had not sent, and nothing else; the next one is heard.
fn kill_publishers(folder: &Folder, plugin: &'static str) {
    let _watchdog = Watchdog::start("a publisher is killed");
    let here = process(folder, &[plugin]);
    let node = here.node("taker").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("n", keep_many()).unwrap();
    for _ in 0..3 {
        let child = start(folder, "publish", plugin);
        child.expect("there");
        let mut next = None;
        let mut take = || {
            let Some(received) = subscription.take().unwrap() else { return false };
            let number = received.view().data;
            assert_eq!(number, next.unwrap_or(number), "each once, in order");
            next = Some(number + 1);
            true
        };
        let mut taken = 0;
        house::wait_until("samples come", || {
            taken += u32::from(take());
            500 <= taken
        });
        child.kill();
        house::wait_until("it is gone", || subscription.matched() == 0);
        // What it had sent whole still comes, and that is all.
        while take() {}
    }
    assert_eq!(subscription.counters().duplicates, 0);
}

#[test]
fn a_subscription_killed_in_a_flow_by_a_plugin_leaves_the_rest() {
    kill_subscriptions("example");
}

/// A subscription killed while it takes costs the others nothing.
fn kill_subscriptions(plugin: &'static str) {
    let _watchdog = Watchdog::start("a subscription is killed");
    let folder = Folder::new();
    let (here, there) = (process(&folder, &[plugin]), process(&folder, &[plugin]));
    let (publisher, subscription) = ends(&here, &there, keep_all());
    let sending = Sender::start(publisher, Duration::from_micros(200));
    let taking = Taker::start(subscription, u64::MAX);
    for _ in 0..3 {
        let mut child = start(&folder, "take", plugin);
        child.expect("there");
        house::wait_until("it takes", || {
            child.say("how far?");
            child.line().parse::<u64>().unwrap() != 0
        });
        child.kill();
        taking.wait_for_more();
    }
    let sent = sending.finish();
    assert_all_came(taking.finish(sent).counters(), sent);
}

/// The sockets of the example.
fn sockets(folder: &Folder) -> usize {
    let folders = std::fs::read_dir(&folder.0).unwrap().map(|it| it.unwrap());
    let own = folders.filter(|it| it.file_name().to_string_lossy().starts_with("tsuji-example-"));
    own.map(|it| std::fs::read_dir(it.path()).unwrap().count()).sum()
}

/// Fast DDS, where its plug-in was built: `scripts/fastdds`.
#[test]
fn a_flow_goes_by_fast_dds_and_back() {
    if is_built("fastdds") {
        back_and_forth(keep_many(), ["fastdds", "shm"]);
        back_and_forth(keep_all(), ["fastdds", "cyclonedds"]);
    }
}

/// Zenoh, where its plug-in was built: `scripts/zenoh`.
#[test]
fn a_flow_goes_by_zenoh_and_back() {
    if is_built("zenoh") {
        back_and_forth(keep_many(), ["zenoh", "shm"]);
        back_and_forth(keep_all(), ["zenoh", "cyclonedds"]);
        if is_built("fastdds") {
            back_and_forth(keep_all(), ["zenoh", "fastdds"]);
        }
    }
}

#[test]
fn ends_killed_in_a_flow_by_zenoh_leave_the_rest() {
    if is_built("zenoh") {
        kill_publishers(&Folder::new(), "zenoh");
        kill_subscriptions("zenoh");
    }
}

#[test]
fn a_plugin_that_is_not_there_is_told_and_the_rest_works() {
    let _watchdog = Watchdog::start("not there");
    let folder = Folder::new();
    let text = "<tsuji>
        <rule name=\"by radio\" scope=\"local\" use=\"radio shm\" priority=\"9\"/>
        <transport name=\"radio\" plugin=\"libtsuji_radio.so\"/>
      </tsuji>";
    let policy = tsuji_policy::load("test", text.as_bytes(), tsuji::KNOWN_TRANSPORTS).unwrap();
    let process = || {
        let builder = Context::builder().runtime_dir(&folder.0).domain(house::DOMAIN);
        builder.policy(policy.clone()).isolated().build().unwrap()
    };
    let (here, there) = (process(), process());
    let report = here.transports().into_iter().find(|it| it.name == "radio").unwrap();
    let trouble = report.trouble.unwrap();
    assert!(trouble.contains("libtsuji_radio.so is in none of the folders"), "{trouble}");
    let (_publisher, _subscription) = ends(&here, &there, keep_last(10));
    let route = settled_on(&here, "/n", "shm");
    assert!(route.because.contains("by radio"), "{}", route.because);
    let (_, why) = route.rejected.iter().find(|(transport, _)| transport == "radio").unwrap();
    assert!(why.contains("libtsuji_radio.so"), "{why}");
}

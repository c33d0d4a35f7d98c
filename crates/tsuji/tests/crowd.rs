//! Many processes of one user: one of them watches for all, and each has the descriptors that it needs. Alone in its
//! binary, since it counts the descriptors of the whole process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "it says how far it came")]

mod house;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use house::log::Log;
use house::{Child, DOMAIN, Folder, HANG, Watchdog, heard, tell, wait_until};
use tsuji::Interop;
use tsuji::{Context, Node, Qos};
use tsuji_interfaces::std_msgs::msg::UInt64;
use tsuji_platform::limit::{Counted, limit};

/// So many contexts behave as so many processes; each holds a socket for each other one while they meet.
const MANY: usize = 40;

/// Held by the test that runs: one makes descriptors of the whole process rare.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Instances of inotify that this process has.
fn instances() -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let links = links.filter_map(|it| fs::read_link(it.path()).ok());
    links.filter(|it| it.to_string_lossy().contains("inotify")).count()
}

fn process(folder: &Folder, policy: &Path, number: usize) -> (Context, Node) {
    let builder = Context::builder().runtime_dir(&folder.0).domain(DOMAIN).interop(Interop::NONE);
    let context = builder.policy_file(policy).isolated().build().unwrap();
    let node = context.node(&format!("n{number}")).unwrap();
    (context, node)
}

fn all_meet(processes: &[(Context, Node)]) {
    for (context, _) in processes {
        let are_there = |graph: &tsuji::Graph| (graph.nodes.len() == processes.len()).then_some(());
        context.wait_for_graph(HANG, are_there).unwrap().unwrap();
    }
}

#[test]
fn one_process_watches_for_all() {
    let _turn = turn();
    let _watchdog = Watchdog::start("one process watches for all");
    let log = Log::install(tracing::Level::INFO);
    let hard = limit(Counted::Descriptors).hard;
    if hard.is_some_and(|it| it < 8000) {
        let _ = writeln!(std::io::stderr(), "skipped: this user may have {hard:?} descriptors");
        return;
    }
    let few = libc::rlimit { rlim_cur: 512, rlim_max: hard.unwrap_or(libc::RLIM_INFINITY) };
    // SAFETY: a limit that is read only.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const few) }, 0);
    let folder = Folder::new();
    fs::create_dir_all(&folder.0).unwrap();
    let policy = folder.0.join("policy.xml");
    let write = |line: &str| fs::write(&policy, format!("<tsuji><size line=\"{line}\"/></tsuji>"));
    write("1MiB").unwrap();
    let mut processes: Vec<_> = (0..MANY).map(|it| process(&folder, &policy, it)).collect();
    all_meet(&processes);
    wait_until("one watches", || instances() == 1);
    let changed = |count: usize| {
        wait_until("all take the policy", || count <= log.with("the policy has changed").len());
        assert_eq!(log.with("the policy has changed").len(), count);
    };
    write("2MiB").unwrap();
    changed(MANY);
    // Whoever watches ends; it was the first.
    processes.remove(0);
    all_meet(&processes);
    wait_until("another watches", || instances() == 1);
    write("3MiB").unwrap();
    changed(2 * MANY - 1);
    // Somebody removes the folder with all sockets in it; at once, since they are made again while it is emptied.
    let removed = folder.0.join("removed");
    fs::rename(folder.0.join(format!("domain-{DOMAIN}")), &removed).unwrap();
    fs::remove_dir_all(removed).unwrap();
    wait_until("all sockets are made again", || folder.sockets().len() == processes.len());
    processes.push(process(&folder, &policy, MANY));
    all_meet(&processes);
    assert_eq!(instances(), 1);
    assert!(log.with("WARN").iter().all(|it| it.contains("made again")), "{:?}", log.with("WARN"));
    assert!(limit(Counted::Descriptors).soft.is_none_or(|it| 512 < it));
    drop(processes);
    assert!(folder.sockets().is_empty());
    let left = fs::read_dir(folder.0.join(format!("domain-{DOMAIN}"))).unwrap().count();
    assert_eq!(left, 0, "nothing is left behind");
}

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    let role = house::role();
    if let Some(count) = role.strip_prefix("meet all of ") {
        meet_all(count.parse().unwrap());
    } else if let Some(place) = role.strip_prefix("stand in a ring at ") {
        let (at, count) = place.split_once(" of ").unwrap();
        stand_in_ring(at.parse().unwrap(), count.parse().unwrap());
    } else {
        assert_eq!(role, "follow a policy without inotify");
        follow_without_inotify();
    }
}

/// Says what it took when it knows them all, and at the end what it was warned of.
fn meet_all(count: usize) {
    let log = Log::install(tracing::Level::WARN);
    let begin = Instant::now();
    let context = Context::builder().build().unwrap();
    let _node = context.node(&format!("n{}", std::process::id())).unwrap();
    // A look at each change would cost more than the meeting: a graph is as large as the crowd.
    let pause = Duration::from_millis(10) * u32::try_from(count).unwrap();
    loop {
        let known = context.graph().nodes.len();
        if known == count {
            break;
        }
        tell(&format!("waits: {known}"));
        std::thread::sleep(pause.min(HANG / 3));
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let rss = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap().trim();
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().count() - 1;
    let (watches, seconds) = (instances(), begin.elapsed().as_secs_f64());
    tell(&format!("met: {seconds:.1} s, {rss}, {descriptors} descriptors, {watches} watch"));
    heard();
    let warned = log.with("WARN");
    tell(&format!("warned {}: {:?}", warned.len(), warned.first()));
    heard();
}

/// `TSUJI_CROWD` says how many; what they cost grows with the square.
#[test]
#[ignore = "runs long"]
fn soak_a_crowd_of_processes_meets() {
    let wanted = std::env::var("TSUJI_CROWD").ok().and_then(|it| it.parse().ok());
    let count: usize = wanted.unwrap_or(300);
    let folder = Folder::new();
    let role = format!("meet all of {count}");
    let begin = Instant::now();
    let mut children: Vec<_> =
        (0..count).map(|_| Child::start_in(&[], &folder.0, &role, &[])).collect();
    println!("{count} started after {:.1} s", begin.elapsed().as_secs_f64());
    for (at, child) in children.iter().enumerate() {
        let told = loop {
            let line = child.line();
            match line.strip_prefix("waits: ") {
                Some(known) => println!("process {at} knows {known} of {count}"),
                None => break line,
            }
        };
        if at % (count / 10).max(1) == 0 {
            println!("process {at} {told}");
        }
        assert!(told.starts_with("met: "), "{told}");
    }
    println!("all have met after {:.1} s", begin.elapsed().as_secs_f64());
    for child in &mut children {
        child.say("warned?");
    }
    end_unwarned(children);
}

/// Ends children that say what they were warned of, which must be nothing.
fn end_unwarned(mut children: Vec<Child>) {
    let warned: Vec<_> = children.iter().map(Child::line).collect();
    let warned: Vec<_> = warned.into_iter().filter(|it| it != "warned 0: None").collect();
    children.iter_mut().for_each(|it| it.say("end"));
    children.into_iter().for_each(Child::finish);
    assert!(warned.is_empty(), "{} were warned: {}", warned.len(), warned[0]);
}

/// Three topics go from each to the next.
const RING_TOPICS: usize = 3;

/// Says when its flows are there, when it knows everybody, and when somebody has gone.
fn stand_in_ring(at: usize, count: usize) {
    let log = Log::install(tracing::Level::WARN);
    heard();
    let context = Context::builder().build().unwrap();
    let node = context.node(&format!("n{at}")).unwrap();
    let topic = |from: usize, number: usize| format!("/ring{from}/t{number}");
    let before = (at + count - 1) % count;
    let publishers: Vec<_> = (0..RING_TOPICS)
        .map(|it| node.create_publisher::<UInt64>(&topic(at, it), Qos::DEFAULT).unwrap())
        .collect();
    let subscription =
        |it| node.create_polled_subscription::<UInt64>(&topic(before, it), Qos::DEFAULT).unwrap();
    let subscriptions: Vec<_> = (0..RING_TOPICS).map(subscription).collect();
    for (publisher, subscription) in publishers.iter().zip(&subscriptions) {
        publisher.wait_for_subscriptions(1, LONG).unwrap();
        subscription.wait_for_publishers(1, LONG).unwrap();
    }
    tell("matched");
    // A graph is as large as the crowd: a look at it at each change would cost more than the meeting.
    wait_with(Duration::from_millis(100), || context.peer_processes().len() + 1 == count);
    wait_with(Duration::from_secs(1), || {
        let graph = context.graph();
        (graph.nodes.len(), graph.endpoints.len()) == (count, count * 2 * RING_TOPICS)
    });
    tell("knows all");
    heard();
    tell("looks");
    // Its endpoints go with it.
    wait_with(Duration::from_millis(5), || context.peer_processes().len() + 1 < count);
    tell("gone");
    let warned = log.with("WARN");
    tell(&format!("warned {}: {:?}", warned.len(), warned.first()));
    heard();
}

const LONG: Duration = Duration::from_secs(600);

fn wait_with(pause: Duration, is_so: impl Fn() -> bool) {
    let give_up = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < give_up, "it takes too long");
        std::thread::sleep(pause);
    }
}

/// Seconds of a processor that a process has had.
fn processor_s(pid: i32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // In ticks, of which Linux shows programs a hundred a second.
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

/// Its memory, and its share of what several have.
fn pss_kib(pid: i32) -> f64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let pss = rollup.lines().find_map(|it| it.strip_prefix("Pss:")).unwrap();
    pss.trim().trim_end_matches(" kB").parse().unwrap()
}

/// What a ring of processes costs: `TSUJI_CROWD` says how many, `TSUJI_INTEROP` whether they are on the network too.
#[test]
#[ignore = "runs long"]
fn soak_a_ring_of_processes() {
    let wanted = std::env::var("TSUJI_CROWD").ok().and_then(|it| it.parse().ok());
    let count: usize = wanted.unwrap_or(300);
    let folder = Folder::new();
    let start = |at| {
        let role = format!("stand in a ring at {at} of {count}");
        Child::start_in(&[], &folder.0, &role, &[])
    };
    let mut children: Vec<_> = (0..count).map(start).collect();
    let begin = Instant::now();
    let is_told = |children: &[Child], wanted: &str| {
        for child in children {
            assert_eq!(child.line(), wanted);
        }
        begin.elapsed().as_secs_f64()
    };
    children.iter_mut().for_each(|it| it.say("go"));
    let matched_s = is_told(&children, "matched");
    let known_s = is_told(&children, "knows all");
    println!("{count} processes: matched after {matched_s:.1} s, all known after {known_s:.1} s");

    // What was begun by the meeting ends: channels are parked.
    std::thread::sleep(Duration::from_secs(20));
    let processor = |children: &[Child]| children.iter().map(|it| processor_s(it.pid)).sum::<f64>();
    let before_s = processor(&children);
    std::thread::sleep(Duration::from_secs(10));
    let idle = (processor(&children) - before_s) / 10.0;
    let pss = children.iter().map(|it| pss_kib(it.pid)).sum::<f64>() / count as f64 / 1024.0;
    let descriptors = |it: &Child| fs::read_dir(format!("/proc/{}/fd", it.pid)).unwrap().count();
    let descriptors = children.iter().map(descriptors).sum::<usize>() / count;
    println!(
        "idle: {:.1} % of a core in all; {pss:.2} MiB and {descriptors} descriptors each",
        100.0 * idle
    );

    children.iter_mut().for_each(|it| it.say("look"));
    is_told(&children, "looks");
    let before_s = processor(&children);
    let killed = Instant::now();
    let first = children.remove(0);
    first.kill();
    is_told(&children, "gone");
    let gone = killed.elapsed();
    let spent_s = processor(&children) - before_s;
    println!("one killed: all know after {gone:.0?}, with {spent_s:.2} s of a processor");

    end_unwarned(children);
}

fn follow_without_inotify() {
    let log = Log::install(tracing::Level::INFO);
    let folder = Folder(std::env::var_os("TSUJI_RUNTIME_DIR").unwrap().into());
    let policy = folder.0.join("policy.xml");
    let of_user = "/proc/sys/user/max_inotify_instances";
    tell(if fs::write(of_user, "0").is_ok() { "without" } else { "cannot" });
    let process = process(&folder, &policy, 0);
    tell("there");
    heard();
    log.wait_for("the policy has changed");
    assert!(log.with("WARN").is_empty() && instances() == 0);
    tell("changed");
    fs::remove_dir_all(folder.0.join(format!("domain-{DOMAIN}"))).unwrap();
    wait_until("its socket is made again", || folder.sockets().len() == 1);
    drop(process);
    tell("done");
    // The other test removes it.
    std::mem::forget(folder);
}

#[test]
fn without_inotify_it_looks_by_itself() {
    let _turn = turn();
    let _watchdog = Watchdog::start("without inotify");
    let wrapper = ["unshare", "-Ur"];
    let can_run = std::process::Command::new("unshare").args(["-Ur", "true"]).status();
    if !can_run.is_ok_and(|it| it.success()) {
        let _ = writeln!(std::io::stderr(), "skipped: no user namespace can be had here");
        return;
    }
    let folder = Folder::new();
    fs::create_dir_all(&folder.0).unwrap();
    let policy = folder.0.join("policy.xml");
    fs::write(&policy, "<tsuji/>").unwrap();
    let mut child = Child::start_in(&wrapper, &folder.0, "follow a policy without inotify", &[]);
    if child.line() == "cannot" {
        let _ = writeln!(std::io::stderr(), "skipped: the limit cannot be set here");
        return;
    }
    child.expect("there");
    fs::write(&policy, "<tsuji><size line=\"3MiB\"/></tsuji>").unwrap();
    child.say("changed");
    child.expect("changed");
    child.expect("done");
    child.finish();
}

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
use tsuji::{Context, Node};
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
    let builder = Context::builder().runtime_dir(&folder.0).domain(DOMAIN).interop(Interop::None);
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
    match role.strip_prefix("meet all of ") {
        Some(count) => meet_all(count.parse().unwrap()),
        None => {
            assert_eq!(role, "follow a policy without inotify");
            follow_without_inotify();
        }
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
    let warned: Vec<_> = children.iter().map(Child::line).collect();
    let warned: Vec<_> = warned.into_iter().filter(|it| it != "warned 0: None").collect();
    for child in &mut children {
        child.say("end");
    }
    children.into_iter().for_each(Child::finish);
    assert!(warned.is_empty(), "{} were warned: {}", warned.len(), warned[0]);
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

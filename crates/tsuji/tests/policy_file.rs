//! A policy file that changes while samples flow.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use house::links::assert_all_came;
use house::log::Log;
use house::{Child, Folder, HANG, Watchdog, keep_last, wait_until};
use tsuji::Interop;
use tsuji::{
    Context, ContextBuilder, ErrorKind, Publisher, Qos, RouteReport, RouteState, Subscription,
};
use tsuji_interfaces::std_msgs::msg::{String as Text, UInt64};

/// A policy file with a rule for everything.
fn file(rule: &str, link: &str) -> String {
    format!(
        r#"<tsuji>
  <transport name="cyclonedds">
    <set key="interfaces" value="lo"/>
    <set key="multicast" value="true"/>
  </transport>
  <rule name="{rule}" priority="10" use="{link}"/>
</tsuji>"#
    )
}

fn builder(folder: &Folder, path: &Path) -> ContextBuilder {
    log();
    let builder = Context::builder().runtime_dir(&folder.0).domain(house::DOMAIN);
    builder.interop(Interop::NONE).policy_file(path)
}

/// A process with one flow, and the file that it follows.
struct Robot {
    context: Context,
    path: PathBuf,
    publisher: Publisher<Text>,
    _subscription: Subscription<Text>,
    folder: Folder,
}

impl Robot {
    fn start() -> Self {
        let folder = Folder::new();
        fs::create_dir_all(&folder.0).unwrap();
        fs::write(folder.0.join("robot.xml"), file("one", "shm")).unwrap();
        Self::start_at(folder, "robot.xml")
    }

    fn start_at(folder: Folder, name: &str) -> Self {
        let path = folder.0.join(name);
        let context = builder(&folder, &path).isolated().build().unwrap();
        let node = context.node("a").unwrap();
        let publisher = node.create_publisher::<Text>("t", Qos::DEFAULT).unwrap();
        let subscription = node.create_polled_subscription::<Text>("t", Qos::DEFAULT).unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        let robot = Self { context, path, publisher, _subscription: subscription, folder };
        robot.decided_by("one");
        robot
    }

    fn write(&self, text: impl AsRef<[u8]>) {
        fs::write(&self.path, text).unwrap();
    }

    /// Waits until the flow is decided by a rule.
    #[track_caller]
    fn decided_by(&self, rule: &str) {
        let rule = format!("rule {rule:?}");
        wait_until(&rule, || {
            let routes = self.context.routes(HANG).unwrap();
            routes.iter().all(|it| it.state == RouteState::Active && it.because.contains(&rule))
        });
    }

    /// Waits until so many warnings about the file have been given, and answers the last.
    #[track_caller]
    fn warned(&self, times: usize) -> String {
        let mut warnings = Vec::new();
        wait_until("a warning", || {
            warnings = warnings_of(&self.folder.0);
            times <= warnings.len()
        });
        assert_eq!(warnings.len(), times, "{warnings:#?}");
        warnings.pop().unwrap()
    }
}

#[test]
fn an_edited_file_moves_a_flow_that_goes_on() {
    let _watchdog = Watchdog::start("an edited file");
    let folder = Folder::new();
    fs::create_dir_all(&folder.0).unwrap();
    let path = folder.0.join("robot.xml");
    fs::write(&path, file("start", "shm")).unwrap();
    let process = || builder(&folder, &path).isolated().build().unwrap();
    let (here, there) = (process(), process());
    let (sender, taker) = (here.node("sender").unwrap(), there.node("taker").unwrap());
    let publisher = sender.create_publisher::<UInt64>("n", keep_last(1000)).unwrap();
    let subscription = taker.create_polled_subscription::<UInt64>("n", keep_last(1000)).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&stop);
    let sending = std::thread::spawn(move || {
        let mut sent = 0;
        while !is_over.load(Ordering::Acquire) {
            publisher.publish(UInt64 { data: sent }).unwrap();
            sent += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
        (publisher, sent)
    });
    let mut next = 0;
    let mut take = || {
        while let Some(received) = subscription.take().unwrap() {
            assert_eq!(received.view().data, next, "after {next}");
            next += 1;
        }
        next
    };
    let settled = |rule: &str, link: &str, take: &mut dyn FnMut() -> u64| -> RouteReport {
        let mut settled = None;
        wait_until(&format!("{rule}: {link}"), || {
            take();
            let routes = there.routes(HANG).unwrap();
            let is_so = |it: &RouteReport| {
                it.topic == "/n"
                    && it.state == RouteState::Active
                    && it.transport.as_deref() == Some(link)
                    && it.because.contains(&format!("rule {rule:?}"))
                    && it.changes.iter().all(|change| change.is_settled)
            };
            settled = routes.into_iter().find(is_so);
            settled.is_some()
        });
        settled.unwrap()
    };
    settled("start", "shm", &mut take);
    for round in 0..10 {
        let link = if round % 2 == 0 { "cyclonedds" } else { "shm" };
        let rule = format!("round {round}");
        fs::write(&path, file(&rule, link)).unwrap();
        let route = settled(&rule, link, &mut take);
        let last = route.changes.last().unwrap();
        assert_eq!((&*last.to, &*last.why), (link, "the policy file has changed"), "{route:#?}");
        // Some go by it.
        let (from, mut now) = (route.samples, 0);
        wait_until("samples by this link", || {
            take();
            let routes = there.routes(HANG).unwrap();
            now = routes.iter().find(|it| it.topic == "/n").unwrap().samples;
            from + 5 <= now
        });
    }
    stop.store(true, Ordering::Release);
    let (_publisher, sent) = sending.join().unwrap();
    wait_until("all are taken", || take() == sent);
    assert_all_came(subscription.counters(), sent);
    assert_eq!(warnings_of(&folder.0), Vec::<String>::new());
}

#[test]
fn a_file_that_is_replaced() {
    let robot = Robot::start();
    let new = robot.folder.0.join("new");
    fs::write(&new, file("two", "shm")).unwrap();
    fs::rename(&new, &robot.path).unwrap();
    robot.decided_by("two");
    // As editors do that keep a backup.
    fs::rename(&robot.path, robot.folder.0.join("robot.xml~")).unwrap();
    robot.write(file("three", "shm"));
    robot.decided_by("three");
    let rules = |context: &Context| context.policy().rules()[0].name.clone();
    assert_eq!(rules(&robot.context).as_deref(), Some("three"));
}

#[test]
fn a_file_behind_links() {
    let folder = Folder::new();
    for (version, rule) in [("..1", "one"), ("..2", "two"), ("..3", "three")] {
        fs::create_dir_all(folder.0.join(version)).unwrap();
        fs::write(folder.0.join(version).join("robot.xml"), file(rule, "shm")).unwrap();
    }
    symlink("..1", folder.0.join("..data")).unwrap();
    symlink("..data/robot.xml", folder.0.join("robot.xml")).unwrap();
    let robot = Robot::start_at(folder, "robot.xml");
    for (version, rule) in [("..2", "two"), ("..3", "three")] {
        let new = robot.folder.0.join("..data_tmp");
        symlink(version, &new).unwrap();
        fs::rename(&new, robot.folder.0.join("..data")).unwrap();
        robot.decided_by(rule);
    }
    assert_eq!(warnings_of(&robot.folder.0), Vec::<String>::new());
}

#[test]
fn a_bad_file_changes_nothing() {
    let robot = Robot::start();
    let bad = file("bad", "sharm");
    robot.write(&bad);
    let warning = robot.warned(1);
    let expect = "robot.xml:6:39: \"sharm\" is not a transport";
    assert!(
        warning.contains(expect) && warning.ends_with("; the policy in force stays"),
        "{warning}"
    );
    robot.decided_by("one");
    // The same is not told again, another error is.
    robot.write(&bad);
    robot.write("<tsuji><rool/></tsuji>");
    assert!(robot.warned(2).contains("rool"));
    // What could not be started with is bad too.
    let set = r#"<tsuji><transport name="shm"><set key="memory_bytes_max" value="lots"/></transport></tsuji>"#;
    robot.write(set);
    assert!(robot.warned(3).contains("\"lots\" is not a memory_bytes_max"));
    robot.decided_by("one");
    robot.write(file("two", "shm"));
    robot.decided_by("two");
    robot.write(&bad);
    assert!(robot.warned(4).contains(expect));
}

#[test]
fn a_file_that_is_left_half_written_and_completed() {
    let robot = Robot::start();
    let text = file("two", "shm");
    let (head, tail) = text.split_at(text.len() / 2);
    robot.write(head);
    let warning = robot.warned(1);
    assert!(warning.ends_with("; the policy in force stays"), "{warning}");
    robot.decided_by("one");
    let mut open = OpenOptions::new().append(true).open(&robot.path).unwrap();
    open.write_all(tail.as_bytes()).unwrap();
    drop(open);
    robot.decided_by("two");
}

#[test]
fn a_file_that_is_removed() {
    let robot = Robot::start();
    fs::remove_file(&robot.path).unwrap();
    let warning = robot.warned(1);
    assert!(warning.contains("No such file"), "{warning}");
    robot.decided_by("one");
    robot.write(file("one", "shm"));
    robot.decided_by("one");
    robot.write(file("two", "shm"));
    robot.decided_by("two");
    robot.warned(1);
}

#[test]
fn a_file_that_is_none_or_too_large() {
    let robot = Robot::start();
    // Its bytes are never all read.
    let huge = File::create(&robot.path).unwrap();
    huge.set_len(1 << 33).unwrap();
    drop(huge);
    assert!(robot.warned(1).contains("bytes are too many"));
    robot.decided_by("one");
    fs::remove_file(&robot.path).unwrap();
    let c_path = std::ffi::CString::new(robot.path.to_str().unwrap()).unwrap();
    // SAFETY: a path that ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(c_path.as_ptr(), 0o600) }, 0);
    wait_until("it is no file", || {
        warnings_of(&robot.folder.0).iter().any(|it| it.contains("no file"))
    });
    robot.decided_by("one");
    fs::remove_file(&robot.path).unwrap();
    robot.write(file("two", "shm"));
    robot.decided_by("two");
}

#[test]
fn what_is_taken_at_the_next_start_is_said() {
    let robot = Robot::start();
    let text = file("two", "shm").replace(
        "</tsuji>",
        r#"<transport name="shm"><set key="memory_bytes_max" value="1GiB"/></transport></tsuji>"#,
    );
    robot.write(&text);
    robot.decided_by("two");
    let warning = robot.warned(1);
    let expect = "robot.xml: what it says of transport shm is taken at the next start";
    assert!(warning.ends_with(expect), "{warning}");
    robot.write(text.replace("two", "three"));
    robot.decided_by("three");
    robot.warned(1);
}

#[test]
fn the_size_line_moves() {
    let robot = Robot::start();
    (0..20).for_each(|_| robot.publisher.publish(Text { data: "x".repeat(2000) }).unwrap());
    let lined = |line: &str, rule: &str| {
        let head = format!("<tsuji>\n<size line=\"{line}\"/>");
        file(rule, "shm").replace("<tsuji>", &head).replace("<rule", "<rule size=\"large\"")
    };
    let check = |text: String, rule: &str, size: &str| {
        robot.write(text);
        robot.decided_by(rule);
        let route = robot.context.routes(HANG).unwrap().remove(0);
        assert_eq!(route.size, size, "{route:#?}");
    };
    check(lined("1KiB", "two"), "two", "large");
    check(lined("1MiB", "three"), "in process", "small");
}

#[test]
fn contexts_of_one_process_follow_one_file() {
    let folder = Folder::new();
    fs::create_dir_all(&folder.0).unwrap();
    let path = folder.0.join("robot.xml");
    let silent = |rule: &str| file(rule, "shm").replace("<tsuji>", r#"<tsuji interop="none">"#);
    let builder = |path: &Path| {
        log();
        Context::builder().runtime_dir(&folder.0).domain(house::DOMAIN).policy_file(path)
    };
    fs::write(&path, silent("one")).unwrap();
    let one = builder(&path).build().unwrap();
    fs::write(&path, silent("two")).unwrap();
    let two = builder(&path).build().unwrap();
    for context in [&one, &two] {
        assert_eq!(context.policy().rules()[0].name.as_deref(), Some("two"));
    }
    // What is taken at the next start only keeps nobody out.
    fs::write(&path, silent("three").replace("none", "rtps")).unwrap();
    let three = builder(&path).build().unwrap();
    assert_eq!(three.interop(), Interop::NONE);
    assert_eq!(three.policy().rules()[0].name.as_deref(), Some("three"));
    let other = folder.0.join("other.xml");
    fs::write(&other, silent("other")).unwrap();
    assert_eq!(builder(&other).build().unwrap_err().kind(), ErrorKind::Invalid);
}

/// A program without a subscriber of `tracing`, with what it writes to standard error.
struct Program(Child);

impl Program {
    fn start(folder: &Folder, path: &Path, variables: &[(&str, &str)]) -> Self {
        let mut command = Child::command(&[], &folder.0, "");
        command.env("TSUJI_POLICY", path).envs(variables.iter().copied()).stderr(Stdio::piped());
        let child = Child::run(&mut command);
        assert_eq!(child.line(), "ready");
        Self(child)
    }

    fn error(&self) -> String {
        self.0.process.errors.next(HANG).unwrap()
    }

    /// Waits until its policy has this rule.
    fn has_rule(&mut self, rule: &str) {
        wait_until(rule, || {
            self.0.say("rule");
            self.0.line() == rule
        });
    }

    /// Ends it, and answers what it has written that was not read yet.
    fn finish(mut self) -> Vec<String> {
        let ended = self.0.process.finish(HANG).unwrap();
        assert!(ended.status.success());
        ended.errors
    }
}

#[test]
#[ignore = "a child of the tests here"]
fn child() {
    house::role();
    let context = house::context();
    house::tell("ready");
    while house::heard() == "rule" {
        house::tell(context.policy().rules()[0].name.as_deref().unwrap());
    }
}

#[test]
fn a_program_that_collects_no_events_has_the_warnings_on_standard_error() {
    let _watchdog = Watchdog::start("standard error");
    let folder = Folder::new();
    fs::create_dir_all(&folder.0).unwrap();
    let path = folder.0.join("robot.xml");
    fs::write(&path, file("one", "shm")).unwrap();
    let mut program = Program::start(&folder, &path, &[]);
    let mut silent = Program::start(&folder, &path, &[("TSUJI_WARNINGS", "off")]);
    let shown = path.display();
    fs::write(&path, file("bad", "sharm")).unwrap();
    let line = program.error();
    let expect = format!("tsuji: warning: {shown}:6:39: \"sharm\" is not a transport");
    assert!(line.starts_with(&expect) && line.ends_with("; the policy in force stays"), "{line}");
    fs::remove_file(&path).unwrap();
    let line = program.error();
    assert!(
        line.contains("No such file") && line.ends_with("; the policy in force stays"),
        "{line}"
    );
    let mended = file("two", "shm").replace("\"lo\"", "\"any\"");
    fs::write(&path, mended).unwrap();
    let line = program.error();
    let expect = format!(
        "tsuji: warning: {shown}: what it says of transport cyclonedds is taken at the next start"
    );
    assert_eq!(line, expect);
    for program in [&mut program, &mut silent] {
        program.has_rule("two");
    }
    assert_eq!((program.finish(), silent.finish()), (Vec::new(), Vec::new()));
}

/// What was warned of that names this folder.
fn warnings_of(folder: &Path) -> Vec<String> {
    // One folder's name may begin as another's does.
    log().with(&format!("{}/", folder.to_str().unwrap()))
}

/// The warnings of this process.
fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| Log::install(tracing::Level::WARN))
}

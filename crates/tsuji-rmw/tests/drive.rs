//! Programs in C and C++ drive `librmw_tsuji.so` as rcl does, as processes of their own, with the
//! messages that ROS 2's generators make. `tests/c/` has the programs and their scenarios; this file
//! builds them, starts those that belong together, and reads how they ended.
//!
//! They need the types of `scripts/ros-types`, which are of Humble. Without them the tests say so and pass, unless
//! `TSUJI_ROS_TYPES` is `required`.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "figures, and why it did not run")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tsuji_platform::child;
use tsuji_platform::subprocess::{Silence, Subprocess};

/// The programs end themselves when they hang; this ends those that cannot.
const HANG: Duration = Duration::from_secs(120);

/// Whose messages a process uses.
#[derive(Clone, Copy, PartialEq)]
enum Language {
    C,
    Cpp,
}

use Language::{C, Cpp};

/// What every test needs.
struct Drive {
    library: PathBuf,
    c: PathBuf,
    cpp: PathBuf,
}

/// `None` where there is nothing to drive, after saying why.
fn drive() -> Option<&'static Drive> {
    static DRIVE: OnceLock<Result<Drive, String>> = OnceLock::new();
    match DRIVE.get_or_init(prepare) {
        Ok(drive) => Some(drive),
        Err(why) if std::env::var("TSUJI_ROS_TYPES").is_ok_and(|it| it == "required") => {
            panic!("TSUJI_ROS_TYPES is required, but {why}")
        }
        Err(why) => {
            println!("not run: {why}");
            None
        }
    }
}

fn prepare() -> Result<Drive, String> {
    let own = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = own.parent().unwrap();
    // Beside the tests, as cargo builds it for them.
    let library = std::env::var_os("TSUJI_RMW_LIBRARY").map_or_else(
        || std::env::current_exe().unwrap().with_file_name("librmw_tsuji.so"),
        PathBuf::from,
    );
    let types = target.join("ros-types/humble");
    for (needed, made_by) in [(&types.join("lib"), "scripts/ros-types"), (&library, "cargo")] {
        if !needed.exists() {
            return Err(format!("{} is not there; {made_by} makes it", needed.display()));
        }
    }
    let folder = own.join("drive");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let c = folder.join("drive-c");
    let cpp = folder.join("drive-cpp");
    build(&types, &folder, &c, C)?;
    build(&types, &folder, &cpp, Cpp)?;
    Ok(Drive { library, c, cpp })
}

/// Compiles and links the scenarios with the messages of one language.
fn build(types: &Path, folder: &Path, program: &Path, language: Language) -> Result<(), String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let mut includes = Vec::new();
    let packages = fs::read_dir(types.join("include")).map_err(|error| error.to_string())?;
    for package in packages {
        includes.push(package.map_err(|error| error.to_string())?.path());
    }
    for package in [
        "rcutils",
        "rosidl_runtime_c",
        "rosidl_runtime_cpp",
        "rosidl_typesupport_interface",
        "rosidl_typesupport_introspection_c",
        "rosidl_typesupport_introspection_cpp",
    ] {
        includes.push(Path::new("/usr/include").join(package));
    }

    let (messages, suffix, parts) = match language {
        C => (
            "drive.c",
            "c",
            &["rosidl_generator_c", "rosidl_typesupport_introspection_c", "rosidl_typesupport_c"][..],
        ),
        Cpp => (
            "drive.cpp",
            "cpp",
            &["rosidl_typesupport_introspection_cpp", "rosidl_typesupport_cpp"][..],
        ),
    };
    let mut objects = Vec::new();
    for source in ["scene.c", "scenarios.c", "beside.c", "graph.c", "wrong.c", messages] {
        let object = folder.join(format!("{source}.{suffix}.o"));
        let (compiler, standard) = match source.ends_with(".cpp") {
            true => ("c++", "-std=c++17"),
            false => ("cc", "-std=gnu11"),
        };
        let mut command = Command::new(compiler);
        command.args([standard, "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-c"]);
        command.args(["-DTSUJI_RMW_HUMBLE", "-DTSUJI_RMW_WITH_ROSIDL"]);
        for include in &includes {
            // What others generated is not held to these warnings.
            command.arg("-isystem").arg(include);
        }
        run(command.arg(sources.join(source)).arg("-o").arg(&object))?;
        objects.push(object);
    }
    let libraries = types.join("lib");
    let mut command = Command::new("c++");
    command.args(&objects).arg("-o").arg(program).arg("-L").arg(&libraries);
    command.arg(format!("-Wl,-rpath,{}", libraries.display()));
    for part in parts {
        for package in ["std_msgs", "sensor_msgs", "example_interfaces"] {
            command.arg(format!("-l{package}__{part}"));
        }
    }
    run(command.args(["-lrosidl_runtime_c", "-lrcutils", "-lpthread", "-ldl"]))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    output.status.success().then_some(()).ok_or_else(|| format!("{command:?} fails:\n{said}"))
}

/// A run-time folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static FOLDERS: AtomicU64 = AtomicU64::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("tsuji-drive-{}-{number}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One process. Killed when dropped.
struct Process {
    name: String,
    process: Subprocess,
    /// What it has said on stderr and was taken.
    errors: Vec<String>,
}

impl Process {
    fn start(drive: &Drive, folder: &Folder, language: Language, words: &str) -> Self {
        Self::start_with(drive, folder, language, words, &[])
    }

    fn start_with(
        drive: &Drive,
        folder: &Folder,
        language: Language,
        words: &str,
        environment: &[(&str, &str)],
    ) -> Self {
        let program = if language == C { &drive.c } else { &drive.cpp };
        let mut command = Command::new(program);
        command.arg(&drive.library).args(words.split(' '));
        command.env("TSUJI_RUNTIME_DIR", &folder.0).env("TSUJI_INTEROP", "none");
        command.env("ROS_DOMAIN_ID", "7").env_remove("TSUJI_POLICY").env_remove("CYCLONEDDS_URI");
        command.envs(environment.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        child::bind(&mut command);
        let process = Subprocess::start(&mut command, Duration::ZERO).unwrap();
        Self { name: words.to_owned(), process, errors: Vec::new() }
    }

    /// The next line that it says, which begins with `expected`.
    #[track_caller]
    fn expect(&mut self, expected: &str) {
        let line = match self.process.output.next(HANG) {
            Ok(line) => line,
            Err(Silence::Quiet(_)) => "nothing for two minutes".to_owned(),
            Err(Silence::Over) => {
                // Before it is killed below, since how it ended says why it is silent.
                let status = self.process.wait().unwrap();
                format!("no more, and ended: {status}")
            }
        };
        if line.starts_with(expected) {
            println!("{line}");
            return;
        }
        self.process.kill();
        let errors = self.all_errors();
        panic!("{}: expected {expected:?}, it says {line}\n{errors}", self.name);
    }

    /// Waits until it has said this on stderr, and answers all that it has said there.
    #[track_caller]
    fn await_error(&mut self, expected: &str) -> String {
        loop {
            let seen = self.errors.join("\n");
            if seen.contains(expected) {
                return seen;
            }
            match self.process.errors.next(HANG) {
                Ok(line) => self.errors.push(line),
                Err(silence) => {
                    panic!("{}: {expected:?}: {silence:?}; it says\n{seen}", self.name)
                }
            }
        }
    }

    /// All that it said on stderr, once it has ended.
    fn all_errors(&mut self) -> String {
        self.errors.extend(self.process.errors.rest(HANG).unwrap_or_default());
        self.errors.join("\n")
    }

    /// Waits until it has done what it shall, and has ended in good order.
    #[track_caller]
    fn finish(mut self) {
        let expected = format!("ok {} ", self.name.split(' ').next().unwrap());
        self.expect(&expected);
        // What it does when it unloads is part of it: a crash there is one.
        let status = self.process.wait().unwrap();
        let errors = self.all_errors();
        assert!(status.success(), "{}: {status}\n{errors}", self.name);
    }

    /// Tells it that it may go.
    fn dismiss(&mut self) {
        self.process.close_input();
    }

    /// SIGKILL.
    fn end(&mut self) {
        self.process.kill();
    }
}

/// A scenario of one process, in both languages.
fn alone(words: &str) {
    let Some(drive) = drive() else { return };
    for language in [C, Cpp] {
        Process::start(drive, &Folder::new(), language, words).finish();
    }
}

/// A talker and a listener, each of another language; both are told `words`.
fn conversation(words: &str) {
    let Some(drive) = drive() else { return };
    for (talks, listens) in [(C, Cpp), (Cpp, C)] {
        let folder = Folder::new();
        let listener = Process::start(drive, &folder, listens, &format!("listener {words}"));
        let talker = Process::start(drive, &folder, talks, &format!("talker {words}"));
        listener.finish();
        talker.finish();
    }
}

#[test]
fn every_function_that_rmw_implementation_looks_up_is_there() {
    alone("symbols");
}

#[test]
fn a_listener_hears_every_text_in_order() {
    conversation("type=text count=5000");
}

#[test]
fn a_listener_sees_every_picture() {
    conversation("type=image count=100");
}

#[test]
fn a_listener_reads_loans_in_place() {
    conversation("type=number count=5000 loaned=1");
}

#[test]
fn type_supports_are_taken_from_those_that_dispatch() {
    conversation("type=text count=100 handles=dispatching");
    alone("serialize handles=dispatching");
}

#[test]
fn of_a_thousand_entities_only_the_ready_one_is_told() {
    alone("waitset1000");
}

#[test]
fn no_wake_up_is_lost() {
    alone("lostwake count=20000");
}

#[test]
fn each_client_gets_its_own_replies() {
    let Some(drive) = drive() else { return };
    for (serves, asks) in [(C, Cpp), (Cpp, C)] {
        let folder = Folder::new();
        let mut server = Process::start(drive, &folder, serves, "server count=1000 clients=2");
        let first = Process::start(drive, &folder, asks, "client name=1 node=first count=1000");
        let second =
            Process::start(drive, &folder, serves, "client name=2 node=second count=1000 window=1");
        first.finish();
        second.finish();
        server.expect("served");
        server.dismiss();
        server.finish();
    }
}

#[test]
fn bytes_are_as_ros_2_has_them() {
    alone("serialize");
}

#[test]
fn loans_are_lent_published_taken_and_given_back() {
    alone("loaned");
}

#[test]
fn several_messages_are_taken_at_once() {
    alone("sequence");
}

#[test]
fn callbacks_count_what_came_before_them_too() {
    alone("callback");
}

#[test]
fn events_of_qos_are_told() {
    alone("events");
}

#[test]
fn callbacks_hear_of_all_beside_those_who_wait() {
    alone("beside");
}

#[test]
fn a_callback_may_do_anything_with_its_entity() {
    alone("within");
}

#[test]
fn servers_and_clients_keep_as_many_as_their_depth() {
    alone("depth");
}

/// What tsuji warns of is seen by whoever uses the plug-in, here on librcutils' console.
#[test]
fn warnings_reach_the_user() {
    let Some(drive) = drive() else { return };
    let folder = Folder::new();
    let policy = folder.0.with_extension("xml");
    fs::write(
        &policy,
        fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/default.xml")).unwrap(),
    )
    .unwrap();
    let environment = [("ROS_SECURITY_ENABLE", "true"), ("TSUJI_POLICY", policy.to_str().unwrap())];
    let mut guest = Process::start_with(drive, &folder, C, "guest", &environment);
    guest.expect("here");
    fs::write(&policy, "<policies").unwrap();
    let seen = guest.await_error("[rmw_tsuji]: ROS_SECURITY_ENABLE");
    assert!(seen.contains("nothing is secured"), "{seen}");
    guest.await_error(policy.to_str().unwrap());
    guest.dismiss();
    guest.finish();
    fs::remove_file(policy).unwrap();
}

#[test]
fn the_graph_shows_who_comes_and_goes() {
    let Some(drive) = drive() else { return };
    for (host, guest) in [(C, Cpp), (Cpp, C)] {
        let folder = Folder::new();
        let mut host = Process::start(drive, &folder, host, "graph");
        host.expect("ready 1");
        let mut polite = Process::start(drive, &folder, guest, "guest");
        polite.expect("here");
        host.expect("seen 1");
        polite.dismiss();
        polite.finish();
        host.expect("ready 2");
        let mut killed = Process::start(drive, &folder, guest, "guest");
        killed.expect("here");
        host.expect("seen 2");
        killed.end();
        host.finish();
    }
}

#[test]
fn what_is_wrong_is_refused_with_the_right_code() {
    alone("wrong");
}

#[test]
fn a_listener_outlives_talkers_that_are_killed() {
    let Some(drive) = drive() else { return };
    for (talks, listens) in [(C, Cpp), (Cpp, C)] {
        let folder = Folder::new();
        let mut listener = Process::start(drive, &folder, listens, "listener talkers=3 count=50");
        for number in 1..=3 {
            let mut talker = Process::start(drive, &folder, talks, "talker for_ever=1");
            listener.expect(&format!("heard {number}"));
            talker.end();
        }
        listener.finish();
    }
}

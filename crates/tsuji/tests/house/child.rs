//! Children that are this same test binary in a role: started, spoken with by lines, ended.
//!
//! A test file that starts children has an ignored test named `child` that calls [`role`].

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tsuji_platform::child::Signal;
use tsuji_platform::subprocess::Subprocess;

use super::{DOMAIN, Folder, HANG};

/// A child process: this test binary, playing a role. Killed when dropped, and when this process
/// dies.
pub(crate) struct Child {
    pub(crate) process: Subprocess,
    /// Its id as it says itself, where no pid namespace is between.
    pub(crate) pid: i32,
}

impl Child {
    pub(crate) fn start(folder: &Folder, role: &str) -> Self {
        Self::start_in(&[], &folder.0, role, &[])
    }

    pub(crate) fn start_with(folder: &Folder, role: &str, environment: &[(&str, &str)]) -> Self {
        Self::start_in(&[], &folder.0, role, environment)
    }

    /// Below another program, such as `unshare -m`.
    pub(crate) fn start_in(
        wrapper: &[&str],
        folder: &Path,
        role: &str,
        environment: &[(&str, &str)],
    ) -> Self {
        Self::run(Self::command(wrapper, folder, role).envs(environment.iter().copied()))
    }

    /// What starts it.
    pub(crate) fn command(wrapper: &[&str], folder: &Path, role: &str) -> Command {
        let own = std::env::current_exe().unwrap();
        let mut command = match wrapper {
            [] => Command::new(own),
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments).arg(own);
                command
            }
        };
        command.args(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env("TSUJI_ROLE", role).env("TSUJI_RUNTIME_DIR", folder);
        command.env("ROS_DOMAIN_ID", DOMAIN.to_string());
        command
    }

    /// Starts it, and waits until it plays its role.
    pub(crate) fn run(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child =
            Self { process: Subprocess::start(command, Duration::ZERO).unwrap(), pid: 0 };
        child.pid = child.expect("pid ").parse().unwrap();
        child
    }

    /// The next line that the child says.
    #[track_caller]
    pub(crate) fn line(&self) -> String {
        let line = self.process.output.find(HANG, |line| said(line).is_some());
        let line = line.expect("the child says nothing, or died");
        said(&line).unwrap().to_owned()
    }

    /// The next line, if the child has said one.
    pub(crate) fn line_if_any(&self) -> Option<String> {
        let line = self.process.output.find(Duration::ZERO, |line| said(line).is_some()).ok()?;
        said(&line).map(str::to_owned)
    }

    /// The rest of the next line, which begins with `prefix`.
    #[track_caller]
    pub(crate) fn expect(&self, prefix: &str) -> String {
        let line = self.line();
        let rest = line.strip_prefix(prefix);
        rest.unwrap_or_else(|| panic!("expected {prefix:?}, the child said {line:?}")).to_owned()
    }

    pub(crate) fn say(&mut self, line: &str) {
        self.process.tell(line).unwrap();
    }

    /// Stops it, as a debugger does.
    pub(crate) fn stop(&self) {
        assert!(self.process.signal(Signal::Stop));
    }

    /// Lets it go on that was stopped.
    pub(crate) fn go_on(&self) {
        assert!(self.process.signal(Signal::Continue));
    }

    /// Presses Ctrl-C.
    pub(crate) fn interrupt(&self) {
        assert!(self.process.signal(Signal::Interrupt));
    }

    /// Kills it, at whatever instruction it is.
    pub(crate) fn kill(mut self) {
        self.process.kill();
    }

    /// Waits until it has ended in good order.
    pub(crate) fn finish(mut self) {
        self.process.close_input();
        let status = self.process.wait().unwrap();
        assert!(status.success(), "{status}");
    }

    /// Whether it lives no more.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    /// Waits until a signal ends it, and says which.
    pub(crate) fn ended_by(mut self) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt;
        self.process.wait().unwrap().signal()
    }
}

/// What a child says in a line, before which one of the harness may stand.
fn said(line: &str) -> Option<&str> {
    line.split_once("@ ").map(|(_, said)| said)
}

/// The role that this process was started to play.
pub(crate) fn role() -> String {
    // Below another program it is not this test's own child.
    // SAFETY: only asks to be killed when the parent dies.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    tell(&format!("pid {}", std::process::id()));
    std::env::var("TSUJI_ROLE").unwrap_or_default()
}

/// Tells the parent a line, past the capture of the test harness.
pub(crate) fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("@ {line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// The next line of the parent; empty when it is gone or wants the child to end.
pub(crate) fn heard() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

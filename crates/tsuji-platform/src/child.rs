//! Processes that this one starts, each with a group of its own, and what becomes of them.

use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

/// What a process, or a group of them, is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP
    Hangup,
    /// SIGINT
    Interrupt,
    /// SIGTERM
    Terminate,
    /// SIGKILL
    Kill,
    /// SIGSTOP
    Stop,
    /// SIGCONT
    Continue,
}

impl Signal {
    fn number(self) -> libc::c_int {
        match self {
            Self::Hangup => libc::SIGHUP,
            Self::Interrupt => libc::SIGINT,
            Self::Terminate => libc::SIGTERM,
            Self::Kill => libc::SIGKILL,
            Self::Stop => libc::SIGSTOP,
            Self::Continue => libc::SIGCONT,
        }
    }
}

/// Starts a process in a group of its own, whose number is its process id.
///
/// It does not inherit that SIGINT and SIGTERM are ignored, which a shell has done to what it starts in the background: a
/// terminal's Ctrl-C does not come to its group anyway, and it is ended by [`tell_group`]. That SIGHUP is ignored it does.
///
/// It ends with the thread that calls this, as [`bind`] says. Whoever gets the child waits for it by [`reap`] and not by
/// its own means.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    bind(command).process_group(0);
    // SAFETY: what runs between `fork` and `exec` makes system calls only: it takes no lock and asks for no memory.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGINT, libc::SIGTERM] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    command.spawn()
}

/// Makes the system kill what `command` starts when the thread that starts it ends, however that happens; so that thread
/// is to last as long as the process may. That is not so for a program that takes on another user's rights.
pub fn bind(command: &mut Command) -> &mut Command {
    let parent = std::process::id();
    // SAFETY: what runs between `fork` and `exec` makes system calls only: it takes no lock and asks for no memory.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            // A parent that died before the call above is never told of.
            if u32::try_from(libc::getppid()) != Ok(parent) {
                libc::_exit(1);
            }
            Ok(())
        })
    }
}

/// From now on processes whose own parent has ended are children of this one, so that none of them is lost.
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: sets a flag of this process.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What a look for children that have ended finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaped {
    /// This one had ended; its number may be given to another process now.
    Ended(u32, ExitStatus),
    /// None has, and there are some.
    Living,
    /// There are none.
    Childless,
}

/// Takes the end of any child.
pub fn reap() -> Reaped {
    loop {
        let mut status = 0;
        // SAFETY: the pointer is to a number that outlives the call.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        match u32::try_from(pid) {
            Ok(0) => return Reaped::Living,
            Ok(pid) => return Reaped::Ended(pid, ExitStatus::from_raw(status)),
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Reaped::Childless,
        }
    }
}

/// Tells all processes of a group; whether there was one.
pub fn tell_group(group: u32, signal: Signal) -> bool {
    kill_group(group, signal.number())
}

/// Whether a process of the group is there, those included whose end nobody has taken.
pub fn group_is_there(group: u32) -> bool {
    kill_group(group, 0)
}

fn kill_group(group: u32, signal: libc::c_int) -> bool {
    // 0 and 1 would be this process's own group, and everybody.
    let Some(group) = i32::try_from(group).ok().filter(|it| 1 < *it) else { return false };
    // SAFETY: sends a signal, and touches no memory.
    let sent = unsafe { libc::kill(-group, signal) };
    // Of a group of others there is one too.
    sent == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// The children that this process has now, adopted ones included.
pub fn children() -> io::Result<Vec<u32>> {
    let own = std::process::id();
    let all = fs::read_dir("/proc")?.flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name before it is in brackets, and may have any letters.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
        (parent.parse() == Ok(own)).then_some(pid)
    });
    Ok(all.collect())
}

/// Kills a child. Its number is its own until [`reap`] has taken its end.
pub fn kill(child: u32) {
    tell(child, Signal::Kill);
}

/// Tells one process; whether there was one that this process may tell.
pub fn tell(process: u32, signal: Signal) -> bool {
    let process = i32::try_from(process).ok().filter(|it| 1 < *it);
    // SAFETY: sends a signal, and touches no memory.
    process.is_some_and(|process| unsafe { libc::kill(process, signal.number()) } == 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::Stdio;

    use super::*;

    fn sleeper() -> Command {
        let mut command = Command::new("sleep");
        command.arg("1000").stdin(Stdio::null());
        command
    }

    #[test]
    fn a_group_is_told_and_gone() {
        let mut child = spawn(&mut sleeper()).unwrap();
        assert!(group_is_there(child.id()));
        assert!(tell_group(child.id(), Signal::Terminate));
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
        assert!(!group_is_there(child.id()));
        assert!(!tell_group(0, Signal::Kill));
    }

    #[test]
    fn a_child_hears_what_its_starter_ignores() {
        // Neither this process nor its other children are told so.
        let mut shell = Command::new("sh");
        // Where the kernel cannot run this program itself, these words do.
        let runner = std::env::var("TSUJI_TEST_RUNNER").unwrap_or_default();
        let script = format!(
            "trap '' INT HUP; exec {runner} \"$0\" --exact child::tests::ignores_and_starts_a_child --nocapture"
        );
        shell.args(["-c", &script]).arg(std::env::current_exe().unwrap()).env(IGNORES, "1");
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Says that a process of this test ignores SIGINT and SIGHUP.
    const IGNORES: &str = "TSUJI_TEST_IGNORES";

    #[test]
    fn ignores_and_starts_a_child() {
        if std::env::var_os(IGNORES).is_none() {
            return;
        }
        assert_eq!(crate::signals::heard(&[libc::SIGINT, libc::SIGHUP]), []);
        let mut child = spawn(&mut sleeper()).unwrap();
        // The emulator has a handler of its own for each signal that would end a program, so what it starts inherits none
        // that is ignored.
        if std::env::var_os("TSUJI_TEST_RUNNER").is_some() {
            let _ = writeln!(
                io::stderr(),
                "skipped: the emulator does not hand on that SIGHUP is ignored"
            );
        } else {
            assert!(kill_group(child.id(), libc::SIGHUP));
        }
        assert!(tell_group(child.id(), Signal::Interrupt));
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGINT));
    }

    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        let starting = std::thread::spawn(|| spawn(&mut sleeper()).unwrap());
        let mut child = starting.join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn children_are_found() {
        let mut child = spawn(&mut sleeper()).unwrap();
        assert!(children().unwrap().contains(&child.id()));
        kill(child.id());
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }
}

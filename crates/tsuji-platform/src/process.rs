//! What a process is and uses.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// The effective user id.
pub fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The process id, as this process's own namespace counts.
pub fn id() -> u32 {
    std::process::id()
}

/// Whether there is a process of this number, as it is counted here.
pub fn is_there(id: u32) -> bool {
    let Some(id) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) else {
        return false;
    };
    rustix::process::test_kill_process(id) != Err(rustix::io::Errno::SRCH)
}

/// Resident memory, in bytes.
pub fn resident_bytes() -> io::Result<u64> {
    status_kib("VmRSS:").map(|kib| kib * 1024)
}

/// The address space, in bytes.
pub fn virtual_bytes() -> io::Result<u64> {
    status_kib("VmSize:").map(|kib| kib * 1024)
}

/// Threads of this process.
pub fn threads() -> io::Result<u64> {
    status_kib("Threads:")
}

/// The threads of this process by their numbers, with their names. Those that end meanwhile are left out.
pub fn thread_names() -> io::Result<BTreeMap<u32, String>> {
    let all = fs::read_dir("/proc/self/task")?.flatten().filter_map(|task| {
        let number = task.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        Some((number, name.trim_end().to_owned()))
    });
    Ok(all.collect())
}

/// Finds another program of this project: beside the one that runs, else in the first folder of `PATH` that has it. Folders
/// that are not absolute are passed over, since what they mean depends on where the user is.
pub fn companion(name: &str) -> Option<PathBuf> {
    let beside = env::current_exe().ok().map(|it| it.with_file_name(name));
    let path = env::var_os("PATH").unwrap_or_default();
    let in_path = env::split_paths(&path).filter(|it| it.is_absolute()).map(|it| it.join(name));
    beside.into_iter().chain(in_path).find(|it| it.is_file())
}

/// Runs the ignored unit test of this crate with this path in a process of its own. Where the kernel cannot run this program
/// itself, words that stand in the environment do.
#[cfg(test)]
pub(crate) fn own_test(path: &str) -> std::process::Command {
    let runner = env::var("TSUJI_TEST_RUNNER").unwrap_or_default();
    let mut words: Vec<std::ffi::OsString> = runner.split_whitespace().map(Into::into).collect();
    words.push(env::current_exe().unwrap().into());
    let mut command = std::process::Command::new(&words[0]);
    command.args(&words[1..]).args(["--exact", "--ignored", path]);
    command
}

/// A path among the temporary files that nothing has: `name`, the number of this process, and one that counts up. What a
/// killed process of the same number has left is passed over.
pub fn temporary_path(name: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("{name}-{}-{count}", id()));
        if path.symlink_metadata().is_err() {
            return path;
        }
    }
}

/// 16 random bytes from the kernel.
pub fn random_token() -> io::Result<[u8; 16]> {
    let mut token = [0; 16];
    let mut filled = 0;
    while filled < token.len() {
        // SAFETY: the pointer and length describe the rest of `token`.
        let got = unsafe {
            libc::getrandom(token[filled..].as_mut_ptr().cast(), token.len() - filled, 0)
        };
        match usize::try_from(got) {
            Ok(count) => filled += count,
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(token)
}

/// The host's name.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// When a process began, in nanoseconds since the system did, by steps of the kernel's (10 ms) and never later than it did.
pub fn began_ns(id: u32) -> io::Result<u64> {
    let odd = || io::Error::other("what /proc says of the process is not understood");
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    // The name before may have anything in it.
    let (_, rest) = stat.rsplit_once(')').ok_or_else(odd)?;
    let ticks: u64 =
        rest.split_whitespace().nth(19).and_then(|it| it.parse().ok()).ok_or_else(odd)?;
    Ok(ticks.saturating_mul(1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)))
}

/// The number of the namespace in which this process has its [`id`], the same for all processes in it.
pub fn pid_namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/pid")?.ino())
}

/// The number of this run of the system, the same for all processes and in all containers.
pub fn boot_id() -> io::Result<u128> {
    let said = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let digits: String = said.trim().chars().filter(|it| *it != '-').collect();
    u128::from_str_radix(&digits, 16).map_err(io::Error::other)
}

fn status_kib(field: &str) -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.split_whitespace().next())
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| io::Error::other(format!("/proc/self/status has no {field}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn a_process_began_before_now_and_after_the_system_did() {
        let began_ns = began_ns(id()).unwrap();
        assert!(0 < began_ns && began_ns < clock::boot_ns(), "{began_ns}");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let its_ns = super::began_ns(child.id()).unwrap();
        assert!(began_ns <= its_ns && its_ns <= clock::boot_ns(), "{began_ns} {its_ns}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(super::began_ns(child.id()).is_err());
    }

    #[test]
    fn what_is_there_is_passed_over() {
        let first = temporary_path("tsuji-passed-over");
        let (name, count) = first.to_str().unwrap().rsplit_once('-').unwrap();
        let count: u32 = count.parse().unwrap();
        let left: Vec<PathBuf> =
            (1..20).map(|it| PathBuf::from(format!("{name}-{}", count + it))).collect();
        left.iter().for_each(|it| fs::create_dir(it).unwrap());
        let next = temporary_path("tsuji-passed-over");
        assert!(!left.contains(&next) && !next.exists(), "{}", next.display());
        left.iter().for_each(|it| fs::remove_dir(it).unwrap());
    }
}

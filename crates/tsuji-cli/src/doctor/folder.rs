//! The folder in which processes meet, and what is left in it.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::{Finding, State};

pub(super) fn examine() -> Vec<Finding> {
    let finding = |state, found: String| Finding::new("run-time folder", "path", state, found);
    let folder = match tsuji::runtime_dir() {
        Ok(folder) => folder,
        Err(error) => {
            return vec![finding(State::Broken, error.to_string()).mend(elsewhere())];
        }
    };
    let name = folder.display().to_string();
    let metadata = match fs::symlink_metadata(&folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return vec![finding(
                State::Good,
                format!("{name}: not there yet, made by the first process"),
            )];
        }
        Err(error) => {
            return vec![finding(State::Broken, format!("{name}: {error}")).mend(elsewhere())];
        }
    };
    if !metadata.is_dir() {
        return vec![
            finding(State::Broken, format!("{name}: no folder")).mend(format!("rm {name}")),
        ];
    }
    let mode = metadata.permissions().mode() & 0o7777;
    let (owner, group) = (metadata.uid(), metadata.gid());
    let found = format!("{name}: owner {owner}, group {group}, mode {mode:o}");
    if mode & 0o002 != 0 {
        let mend = format!("chmod o-w {name}");
        return vec![
            finding(State::Broken, format!("{found}: everybody may write to it")).mend(mend),
        ];
    }
    if let Err(error) = probe(&folder) {
        let mend =
            if Some(owner) == own_user() { format!("chmod u+rwx {name}") } else { elsewhere() };
        return vec![finding(State::Broken, format!("{found}: not writable: {error}")).mend(mend)];
    }
    let mut findings = vec![finding(State::Good, format!("{found}, writable"))];
    findings.push(leftovers(&folder));
    findings.extend(watchers(&folder));
    findings
}

fn elsewhere() -> String {
    "export TSUJI_RUNTIME_DIR=$HOME/.cache/tsuji".to_owned()
}

/// What killed processes left behind. Whoever joins a domain removes what is left there.
fn leftovers(folder: &Path) -> Finding {
    let dead = sockets(folder).into_iter().filter(|it| is_dead(it)).count();
    let (state, text) = match dead {
        0 => (State::Good, "none".to_owned()),
        1 => (State::Note, format!("1 socket of a killed process{REMOVED}")),
        _ => (State::Note, format!("{dead} sockets of killed processes{REMOVED}")),
    };
    Finding::new("run-time folder", "leftovers", state, text)
}

const REMOVED: &str = "; what is left in this domain is now removed";

/// The folder of each domain.
fn domains(folder: &Path) -> Vec<PathBuf> {
    let mut domains = entries(folder);
    domains.retain(|it| it.is_dir());
    domains.sort();
    domains
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path()).collect()
}

/// The sockets of every domain.
fn sockets(folder: &Path) -> Vec<PathBuf> {
    let files = domains(folder).into_iter().flat_map(|it| entries(&it));
    files.filter(|it| it.extension().is_some_and(|it| it == "sock")).collect()
}

/// Which process of each domain watches for all of them. While it is stopped nobody is told of anything.
fn watchers(folder: &Path) -> Vec<Finding> {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let watcher = |domain: PathBuf| {
        let lock = fs::symlink_metadata(domain.join(LOCK)).ok()?;
        let pid = holder(&locks, (lock.dev(), lock.ino()))?;
        let name = domain.file_name().unwrap_or_default().to_string_lossy().replace('-', " ");
        let program = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let found = format!("{} (pid {pid}) watches for all of {name}", program.trim_end());
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let finding = |state, found| Finding::new("run-time folder", "watcher", state, found);
        Some(match is_stopped(&stat) {
            false => finding(State::Good, found),
            true => finding(
                State::Warning,
                format!(
                    "{found}, and is stopped: until it goes on nobody there is told that a policy file has changed"
                ),
            )
            .mend(format!("kill -CONT {pid}")),
        })
    };
    domains(folder).into_iter().filter_map(watcher).collect()
}

/// Whoever has the lock of this file in the folder of a domain watches.
const LOCK: &str = "watch.lock";

/// Who has locked a file, by the text of /proc/locks. Whoever has another namespace of processes is not seen there.
fn holder(locks: &str, (device, number): (u64, u64)) -> Option<u32> {
    // As Linux packs the two numbers of a device.
    let major = device >> 8 & 0xfff | device >> 32 & 0xffff_f000;
    let minor = device & 0xff | device >> 12 & 0xffff_ff00;
    let file = format!("{major:02x}:{minor:02x}:{number}");
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, _, pid, of, ..] = words[..] else { return None };
        (of == file).then(|| pid.parse().ok())?
    })
}

/// Whether a process is stopped, or held by a debugger, by the text of its /proc/PID/stat. Its name in there may have any
/// letters.
fn is_stopped(stat: &str) -> bool {
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|it| it.starts_with(['T', 't']))
}

/// Whether nobody listens any more. A living socket is of another kind than this asks for, so the
/// kernel refuses with another error and its owner notices nothing.
fn is_dead(socket: &Path) -> bool {
    UnixStream::connect(socket).is_err_and(|it| it.kind() == ErrorKind::ConnectionRefused)
}

fn probe(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".doctor-{}", std::process::id()));
    fs::File::create_new(&path)?;
    fs::remove_file(&path)
}

fn own_user() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|it| it.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_in_proc_locks() {
        let locks = "1: POSIX  ADVISORY  WRITE 3 fe:00:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 4 fe:00:7 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 5 fe:00:77 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 6 fe:00:78 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 7 103:10004:8 0 EOF\n";
        assert_eq!(holder(locks, (0xfe00, 77)), Some(5));
        assert_eq!(holder(locks, (0xfe00, 7)), Some(4));
        // Major 0x103 and minor 0x10004.
        assert_eq!(holder(locks, (0x1001_0304, 8)), Some(7));
        assert_eq!(holder(locks, (0xfe01, 77)), None);
        assert_eq!(holder(locks, (0xfe00, 78)), None);
    }

    #[test]
    fn the_state_of_a_process_is_behind_its_name() {
        assert!(is_stopped("7 (a) T 1 7 7 0"));
        assert!(is_stopped("7 (a) S) t 1 7 7 0"));
        assert!(!is_stopped("7 (a) T) S 1 7 7 0"));
        assert!(!is_stopped(""));
    }
}

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

/// The sockets of every domain.
fn sockets(folder: &Path) -> Vec<PathBuf> {
    let entries = |it: &Path| {
        fs::read_dir(it).into_iter().flatten().flatten().map(|it| it.path()).collect::<Vec<_>>()
    };
    let folders = entries(folder).into_iter().filter(|it| it.is_dir());
    let files = folders.flat_map(|it| entries(&it));
    files.filter(|it| it.extension().is_some_and(|it| it == "sock")).collect()
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

//! The socket in the run-time folder at which other processes connect, and what that folder must be like.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tsuji_platform::life::Life;
use tsuji_platform::process;
use tsuji_platform::socket::Listener;
use tsuji_transport::PeerId;

use crate::session::unexpected;
use crate::{Error, ErrorKind, Result};

/// The socket at which other processes connect.
pub(crate) struct ListeningSocket {
    pub(super) folder: PathBuf,
    pub(super) path: PathBuf,
    pub(super) listener: Listener,
}

impl ListeningSocket {
    /// Opens the socket of participant `id` in `folder`, which is made if it is not there.
    pub(crate) fn open(folder: &Path, id: PeerId) -> Result<Self> {
        prepare_folder(folder)?;
        let path = socket_of(folder, id);
        let too_long = path.as_os_str().len().saturating_sub(SOCKET_PATH_MAX);
        if 0 < too_long {
            return Err(Error::invalid(format!(
                "run-time folder {}: its path is {too_long} bytes too long for a socket in it; \
                 allowed: {SOCKET_PATH_MAX} with the socket's name; set TSUJI_RUNTIME_DIR to \
                 another",
                folder.display()
            )));
        }
        // The folder's group, if it is one's, may connect.
        let mode = if is_for_group(folder) { 0o770 } else { 0o700 };
        let listener = Listener::bind(&path, mode).map_err(|error| {
            let context = format!("cannot open a socket in {}", folder.display());
            unexpected(&context, error)
        })?;
        Ok(Self { folder: folder.to_owned(), path, listener })
    }

    /// The mode of the locks in the folder.
    pub(super) fn lock_mode(&self) -> u32 {
        if is_for_group(&self.folder) { 0o660 } else { 0o600 }
    }

    /// The sign of life of participant `id`, for whoever shares the folder.
    pub(crate) fn begin_life(&self, id: PeerId) -> Result<Life> {
        let path = self.folder.join(LIVES);
        Life::begin(&path, self.lock_mode(), id.0)
            .map_err(|error| unexpected(&format!("cannot lock {}", path.display()), error))
    }

    /// Removes the socket, and as the last of the folder the file of the lives: whoever still holds memory of others may be cut short
    /// before its life ends.
    pub(super) fn end(&self) {
        let _ = std::fs::remove_file(&self.path);
        if self.peer_processes().is_empty() {
            let _ = std::fs::remove_file(self.folder.join(LIVES));
        }
    }

    /// The sockets of the others.
    pub(super) fn peer_processes(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        let paths = entries.flatten().map(|entry| entry.path());
        paths
            .filter(|path| path.extension() == Some(OsStr::new("sock")) && *path != self.path)
            .collect()
    }

    /// Removes what processes left that were killed while they opened theirs.
    pub(super) fn remove_half_open(&self) {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries
            .filter(|it| Path::new(&it.file_name()).extension() == Some(OsStr::new(HALF_OPEN)))
        {
            let age = entry.metadata().and_then(|it| it.modified()).map(|it| it.elapsed());
            if age.is_ok_and(|age| age.is_ok_and(|age| HALF_OPEN_AGE < age)) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// The kernel's limit, less the zero at the end.
const SOCKET_PATH_MAX: usize = 107;
/// Each process of the folder has the lock of one byte of it.
const LIVES: &str = "life.lock";
/// How [`Listener::bind`] calls a socket that nobody can connect to yet.
const HALF_OPEN: &str = "new";
/// No socket takes so long to open.
const HALF_OPEN_AGE: Duration = Duration::from_secs(60);

/// The folder of those who name none. Not below `XDG_RUNTIME_DIR`: it is set in some sessions of a
/// user and not in others, which would then not find each other.
pub(crate) fn default_folder() -> PathBuf {
    PathBuf::from(format!("/tmp/tsuji-{}", process::user_id()))
}

/// Where participant `id` listens in `folder`.
pub(crate) fn socket_of(folder: &Path, id: PeerId) -> PathBuf {
    folder.join(format!("{id}.sock"))
}

/// Whoever can write to a group's folder is a member of it.
pub(super) fn is_for_group(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|it| it.permissions().mode() & 0o070 == 0o070)
}

/// Makes the folder, for this user alone or for the group that the folder above it belongs to.
fn prepare_folder(folder: &Path) -> Result<()> {
    let failed = |error: io::Error| {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull => ErrorKind::Exhausted,
            _ => ErrorKind::Invalid,
        };
        Error::new(kind, format!("run-time folder {}", folder.display())).because(error)
    };
    let parent = folder.parent().unwrap_or(folder);
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(parent).map_err(failed)?;
    let metadata = std::fs::symlink_metadata(parent).map_err(failed)?;
    if metadata.is_symlink() {
        return Err(Error::invalid(format!(
            "run-time folder {}: a symbolic link, which others may point elsewhere; allowed: the \
             folder itself; set TSUJI_RUNTIME_DIR to it",
            parent.display()
        )));
    }
    let mode = metadata.permissions().mode() & 0o7777;
    // Anybody may have made the default one, to be trusted as its owner or as of its group.
    let is_for_group = mode & 0o070 == 0o070 && parent != default_folder();
    let is_ours = metadata.uid() == process::user_id() && (is_for_group || mode & 0o020 == 0);
    if !metadata.is_dir() || !(is_ours || is_for_group) || mode & 0o002 != 0 {
        return Err(Error::invalid(format!(
            "run-time folder {}: owner {}, mode {mode:o}; allowed: a folder of user {} that others \
             cannot write to, or one that its group can and TSUJI_RUNTIME_DIR names",
            parent.display(),
            metadata.uid(),
            process::user_id(),
        )));
    }
    if !folder.exists() {
        match std::fs::create_dir(folder) {
            Ok(()) => (),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
            Err(error) => return Err(failed(error)),
        }
        let mode = std::fs::Permissions::from_mode(mode);
        // Somebody else of the group may have made it first, and set it.
        let _ = std::fs::set_permissions(folder, mode);
    }
    Ok(())
}

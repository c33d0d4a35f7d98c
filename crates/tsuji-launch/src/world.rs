use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What a plan depends on beside its file.
pub trait World {
    /// The bytes of a file, or why there are none.
    fn read(&self, path: &Path) -> Result<Vec<u8>, String>;

    /// Whether there is a file of this name.
    fn is_file(&self, path: &Path) -> bool;

    /// Whether there is a file of this name that may be run.
    fn is_executable(&self, path: &Path) -> bool;

    /// The names of the files in a folder, for telling which is near; none where it cannot be read.
    fn files(&self, folder: &Path) -> Vec<String>;

    /// The folder in which the output of this launch is kept, or why there is none.
    fn log_folder(&self) -> Result<PathBuf, String>;

    /// A variable of the environment, which need not be UTF-8.
    fn variable(&self, name: &str) -> Option<OsString>;

    /// Letters and digits that make a name unlike those of other launches, for `$(anon name)`.
    fn token(&self) -> String;
}

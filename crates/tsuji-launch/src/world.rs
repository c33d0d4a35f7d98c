use std::path::Path;

/// What a plan depends on beside its file.
pub trait World {
    /// The bytes of a file, or why there are none.
    fn read(&self, path: &Path) -> Result<Vec<u8>, String>;

    /// Whether there is a file of this name.
    fn is_file(&self, path: &Path) -> bool;

    /// Whether there is a file of this name that may be run.
    fn is_executable(&self, path: &Path) -> bool;

    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;

    /// Letters and digits that make a name unlike those of other launches, for `$(anon name)`.
    fn token(&self) -> String;
}

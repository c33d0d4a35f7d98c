//! What tests of keystores have in common.

use std::fs;
use std::path::PathBuf;

/// A folder of a test's own, which goes with it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let id = std::process::id();
        let folder = std::env::temp_dir().join(format!("tsuji-security-{id}-{name}"));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Writes a file in it, and in the folders that its name has.
    #[allow(dead_code, reason = "not every test writes one")]
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

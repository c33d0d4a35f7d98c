//! Any bytes read as a launch file, which may include itself: no panic, and every error names a place in it.
#![no_main]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use tsuji_launch::World;

/// Every file is the text itself, and every variable is set.
struct Mirror<'a>(&'a [u8]);

impl World for Mirror<'_> {
    fn read(&self, _: &Path) -> Result<Vec<u8>, String> {
        Ok(self.0.to_vec())
    }

    fn is_file(&self, _: &Path) -> bool {
        true
    }

    fn is_executable(&self, path: &Path) -> bool {
        path.as_os_str().len() % 5 > 0
    }

    fn files(&self, _: &Path) -> Vec<String> {
        vec!["demo".to_owned()]
    }

    fn log_folder(&self) -> Result<PathBuf, String> {
        Ok("/log".into())
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        (!name.is_empty()).then(|| format!("/{name}").into())
    }

    fn token(&self) -> String {
        "0".to_owned()
    }
}

fuzz_target!(|bytes: &[u8]| {
    let arguments = [("a".to_owned(), "$(var a)".to_owned())];
    for arguments in [&[][..], &arguments] {
        if let Err(errors) = tsuji_launch::plan(&Mirror(bytes), Path::new("fuzz.xml"), arguments) {
            assert!(errors.errors.iter().all(|it| it.line > 0 && it.column > 0), "{errors}");
        }
    }
    let _ = tsuji_launch::declared(&Mirror(bytes), Path::new("fuzz.xml"));
});

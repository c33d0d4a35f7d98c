//! The folder where all builds of one checkout find the library: `KEY` with what is installed, `KEY.lock`, and `KEY.begun` while it
//! is being filled. One has about 5 MB, and one more comes with each change of the sources; `cargo clean` removes them.

use std::error::Error;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use crate::recipe::Recipe;
use crate::remove_folder;

/// Where the library is in `folder`, built if it is not there. Whoever comes while another builds it waits for that.
pub(crate) fn build_once(
    folder: &Path,
    recipe: &Recipe,
    build: impl FnOnce() -> Result<PathBuf, Box<dyn Error>>,
) -> Result<PathBuf, Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let file = |suffix: &str| folder.join(format!("{}{suffix}", recipe.key()));
    let (shared, begun) = (file(""), file(".begun"));
    let lock = File::create(file(".lock"))?;
    if lock.lock().is_err() {
        // A file system without locks.
        return build();
    }
    let stamp = shared.join("stamp");
    if !stamp.is_file() {
        let installed = build()?;
        remove_folder(&begun)?;
        copy_folder(&installed, &begun)?;
        // It comes last, and is old: cargo would run this again for a file that is newer than the beginning of its run.
        File::create(begun.join("stamp"))?
            .set_modified(UNIX_EPOCH + Duration::from_secs(86_400))?;
        // Whole, or not there.
        remove_folder(&shared)?;
        fs::rename(&begun, &shared)?;
    }
    // Where somebody removes it, it is built again.
    println!("cargo::rerun-if-changed={}", stamp.display());
    Ok(shared)
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &copy)?,
            false => fs::copy(entry.path(), copy).map(|_| ())?,
        }
    }
    Ok(())
}

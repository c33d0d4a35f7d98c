//! Sources with changes, as build scripts write them: those of this crate, and of `engines/dds-security`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Files by their paths below the root of the sources.
pub(crate) type Sources = BTreeMap<PathBuf, Vec<u8>>;

/// A file, a text that it has once, and what stands in its place.
pub(crate) type Change = (&'static str, &'static str, &'static str);

/// Reads a folder, and what lies below it of the entries whose path `is_taken`.
pub(crate) fn read_folder(
    root: &Path,
    folder: &Path,
    is_taken: &dyn Fn(&Path) -> bool,
    sources: &mut Sources,
) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if !is_taken(&path) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            read_folder(root, &path, is_taken, sources)?;
        } else {
            sources.insert(path, fs::read(entry.path())?);
        }
    }
    Ok(())
}

/// Refuses sources that are other than those that were read when the changes were made.
pub(crate) fn change(sources: &mut Sources, changes: &[Change]) -> Result<(), Box<dyn Error>> {
    for (file, before, after) in changes {
        let text =
            sources.get_mut(Path::new(file)).ok_or_else(|| format!("{file} is not there"))?;
        let there = std::str::from_utf8(text)?;
        if there.matches(before).count() != 1 {
            return Err(format!("{file}: this is not there once:\n{before}").into());
        }
        *text = there.replacen(before, after, 1).into_bytes();
    }
    Ok(())
}

/// What has not changed keeps its time, so that it is not built again.
pub(crate) fn write_if_other(to: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(to).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(to, bytes)
}

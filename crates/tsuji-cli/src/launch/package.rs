//! Launch files of packages, found as `ros2 launch` finds them.

use std::fs;
use std::path::{Path, PathBuf};

use tsuji_launch::spelling::distance;

use crate::failure::Usage;
use crate::packages::prefixes;

/// The most files and folders of a package that are looked at.
const ENTRIES_MAX: usize = 200_000;

/// The most names that a message lists.
const NAMES_MAX: usize = 20;

/// Where a prefix has a file for each of its packages.
const PACKAGES: &str = "share/ament_index/resource_index/packages";

/// A launch file by its path. A word that is no file but a package is told as one.
pub(super) fn file_or_why_not(word: &str) -> Result<PathBuf, Usage> {
    let path = PathBuf::from(word);
    if path.exists() || word.contains(['/', '.']) {
        // What is not there is told by who reads it.
        return Ok(path);
    }
    match share(word) {
        Some(share) => {
            Err(Usage(format!("{word} is a package, and no file is named; {}", listed(&share))))
        }
        None => Ok(path),
    }
}

/// The file of this name anywhere in the share folder of a package.
pub(super) fn file(package: &str, name: &str) -> Result<PathBuf, Usage> {
    let Some(share) = share(package) else { return Err(Usage(unknown(package))) };
    if name.contains('/') && share.join(name).is_file() {
        return Ok(share.join(name));
    }
    let mut found = all_files(&share);
    let all = found.len();
    found.retain(|path| path.file_name().is_some_and(|it| it == name));
    match &found[..] {
        [] if ENTRIES_MAX <= all => Err(Usage(format!(
            "there is no file {name} among the first {ENTRIES_MAX} files of package {package} in {}",
            share.display()
        ))),
        [] => Err(Usage(format!(
            "there is no file {name} in the share folder of package {package}, {}; {}",
            share.display(),
            listed(&share)
        ))),
        [one] => Ok(one.clone()),
        several => {
            let paths: Vec<String> = several.iter().map(|it| it.display().to_string()).collect();
            Err(Usage(format!(
                "the file {name} is more than once in the share folder of package {package}: {}; \
                 name one of them by its path",
                paths.join(", ")
            )))
        }
    }
}

/// The names in a folder, none where it cannot be read.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(ENTRIES_MAX);
    entries.filter_map(|it| it.ok()?.file_name().into_string().ok()).collect()
}

/// The share folder of a package, in the first prefix that has it.
fn share(package: &str) -> Option<PathBuf> {
    if package.is_empty() || package.contains('/') {
        return None;
    }
    let prefixes = prefixes();
    let indexed = prefixes.iter().find(|it| it.join(PACKAGES).join(package).is_file());
    let folder = || prefixes.iter().find(|it| it.join("share").join(package).is_dir());
    Some(indexed.or_else(folder)?.join("share").join(package))
}

fn unknown(package: &str) -> String {
    let prefixes = prefixes();
    if prefixes.is_empty() {
        return format!(
            "package {package} is not known, nor any other: AMENT_PREFIX_PATH is not set; \
             source the setup file of ROS 2 or of your workspace"
        );
    }
    let mut near: Vec<(usize, String)> = prefixes
        .iter()
        .flat_map(|it| names(&it.join(PACKAGES)))
        .map(|it| (distance(package, &it), it))
        .filter(|(distance, _)| *distance <= package.chars().count().div_ceil(3).min(3))
        .collect();
    near.sort();
    near.dedup();
    let near: Vec<String> = near.into_iter().take(3).map(|(_, name)| name).collect();
    let meant = match near.is_empty() {
        true => String::new(),
        false => format!("; did you mean {}?", near.join(" or ")),
    };
    let prefixes: Vec<String> = prefixes.iter().map(|it| it.display().to_string()).collect();
    format!("package {package} is not known; AMENT_PREFIX_PATH has {}{meant}", prefixes.join(", "))
}

/// All files below a folder, in their order. Links to folders are not followed.
fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok) {
            if ENTRIES_MAX <= files.len() + folders.len() {
                break;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                // A link to a file is one.
                Ok(_) if entry.path().is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    files
}

/// The launch files below a folder, as a message lists them.
fn listed(share: &Path) -> String {
    let is_launch_file = |path: &PathBuf| {
        let name = path.file_name().map(|it| it.to_string_lossy()).unwrap_or_default();
        [".launch", ".launch.xml", ".launch.py", ".launch.yaml", ".launch.yml"]
            .iter()
            .any(|it| name.ends_with(it))
            || ["_launch.xml", "_launch.py", "_launch.yaml"].iter().any(|it| name.ends_with(it))
    };
    let files = all_files(share).into_iter().filter(is_launch_file);
    let mut names: Vec<String> =
        files.filter_map(|it| Some(it.file_name()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    match (names.is_empty(), more) {
        (true, _) => "it has no launch files".to_owned(),
        (false, 0) => format!("its launch files: {}", names.join(", ")),
        (false, more) => format!("its launch files: {} and {more} more", names.join(", ")),
    }
}

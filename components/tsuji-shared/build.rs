//! Makes the fingerprint of this build: two of the same fingerprint lay out all types alike. Hands on where definitions are.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = here.join("../..");
    let mut files = BTreeSet::new();
    for folder in [root.join("crates"), here.join("src")] {
        sources(&folder, &mut files);
        println!("cargo:rerun-if-changed={}", folder.display());
    }
    let mut hasher = DefaultHasher::new();
    for file in files {
        // By its place below the repository, wherever that is.
        file.strip_prefix(&root).unwrap_or(&file).hash(&mut hasher);
        fs::read(&file).unwrap_or_default().hash(&mut hasher);
    }
    let rustc = env::var_os("RUSTC").unwrap_or_default();
    let said = Command::new(rustc).arg("-vV").output();
    let version = said.map(|it| it.stdout).unwrap_or_default();
    version.hash(&mut hasher);
    for name in ["TARGET", "PROFILE", "OPT_LEVEL", "DEBUG", "CARGO_ENCODED_RUSTFLAGS"] {
        println!("cargo:rerun-if-env-changed={name}");
        env::var_os(name).hash(&mut hasher);
    }
    let version = String::from_utf8_lossy(&version);
    let short = version.lines().next().and_then(|it| it.split(' ').nth(1)).unwrap_or("?");
    let tsuji = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    if let Ok(share) = env::var("DEP_TSUJI_INTERFACES_SHARE") {
        println!("cargo:share={share}");
    }
    println!("cargo:rustc-env=TSUJI_BUILD={tsuji}-rustc-{short}-{:016x}", hasher.finish());
}

/// The files below `folder` that a build is made of.
fn sources(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && !["tests", "examples", "target"].iter().any(|it| name == *it) {
            sources(&path, files);
        } else if path.is_file() {
            files.insert(path);
        }
    }
}

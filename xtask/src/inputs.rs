//! What a step of the tests depends on, so that one that builds long is not run again for nothing.

use std::collections::BTreeSet;
use std::path::Path;

use crate::metadata::{self, DependencyKind, Package};

/// The folders of these packages and of all packages here that they are built from, relative to `root`. A package in another
/// workspace is found by the folder of its manifest.
pub(crate) fn folders(root: &Path, asked: &[String]) -> Result<BTreeSet<String>, String> {
    let root = root.canonicalize().map_err(|error| format!("{}: {error}", root.display()))?;
    let packages = metadata::packages(&root, &["--no-deps"])?;
    let mut folders = BTreeSet::new();
    for name in asked {
        let (own, tested): (Vec<Package>, _) = if root.join(name).join("Cargo.toml").is_file() {
            folders.insert(name.clone());
            (metadata::packages(&root.join(name), &["--no-deps"])?, None)
        } else if packages.iter().any(|it| it.name == *name) {
            (Vec::new(), Some(name))
        } else {
            return Err(format!("{name}: neither a package here nor the folder of a workspace"));
        };
        let first = own.iter().flat_map(|it| &it.dependencies).map(|it| &it.name);
        let mut next: Vec<&String> = first.chain(tested).collect();
        let mut seen = BTreeSet::new();
        while let Some(name) = next.pop() {
            let Some(package) = packages.iter().find(|it| it.name == *name) else { continue };
            if !seen.insert(name) {
                continue;
            }
            folders.insert(folder_of(&root, package));
            // What the tests of a library need is no part of what is built on it.
            let is_tested = Some(name) == tested;
            let needed = package.dependencies.iter();
            let needed = needed.filter(|it| is_tested || it.kind != DependencyKind::Dev);
            next.extend(needed.map(|it| &it.name));
        }
    }
    Ok(folders)
}

fn folder_of(root: &Path, package: &Package) -> String {
    let folder = Path::new(&package.manifest).parent().unwrap_or(root);
    folder.strip_prefix(root).unwrap_or(folder).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(asked: &[&str]) -> Result<BTreeSet<String>, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        super::folders(&root, &asked.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn what_a_package_is_built_from_is_there_and_nothing_else() {
        let shm = folders(&["tsuji-transport-shm"]).unwrap();
        for part in ["tsuji-transport-shm", "tsuji-platform", "tsuji-core", "tsuji-conformance"] {
            assert!(shm.contains(&format!("crates/{part}")), "{part}: {shm:?}");
        }
        assert!(!shm.contains("crates/tsuji-bridge") && !shm.contains("crates/tsuji"), "{shm:?}");
        let command = folders(&["tsuji-cli"]).unwrap();
        assert!(command.contains("crates/tsuji-bridge") && command.contains("crates/tsuji"));
    }

    #[test]
    fn another_workspace_is_found_by_its_folder() {
        let zenoh = folders(&["engines/zenoh"]).unwrap();
        assert!(zenoh.contains("engines/zenoh") && zenoh.contains("crates/tsuji-engine-abi"));
        assert!(!zenoh.contains("crates/tsuji-cli"), "{zenoh:?}");
        let error = folders(&["nonsense"]).unwrap_err();
        assert!(error.contains("nonsense"), "{error}");
    }
}

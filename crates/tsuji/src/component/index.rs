//! What installed packages say of their components, in the index of ament.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use tsuji_platform::report;

use super::ComponentType;

/// Components in C++, which containers of rclcpp load.
pub const RCLCPP_COMPONENTS: &str = "rclcpp_components";

/// Components in Rust, which containers of tsuji load.
pub const TSUJI_COMPONENTS: &str = "tsuji_components";

/// A component that a package has installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedComponent {
    /// What it is called.
    pub component: ComponentType,
    /// The library that has it.
    pub library: PathBuf,
}

/// The components of the packages under the folders of `AMENT_PREFIX_PATH`: a package `PACKAGE` has them in
/// `share/ament_index/resource_index/RESOURCE/PACKAGE`, one a line, as `PLUGIN;LIBRARY` with the library's path below the
/// prefix.
///
/// Of a package that is there twice the first counts. A line of another form is told in a warning and left out.
pub fn indexed(resource: &str) -> Vec<IndexedComponent> {
    let path = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
    let prefixes: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|it| it.is_absolute()).collect();
    under(&prefixes, resource)
}

fn under(prefixes: &[PathBuf], resource: &str) -> Vec<IndexedComponent> {
    let mut packages: Vec<String> = Vec::new();
    let mut all = Vec::new();
    for prefix in prefixes {
        let folder = prefix.join("share/ament_index/resource_index").join(resource);
        let entries = match folder.read_dir() {
            Ok(entries) => entries,
            // Not every prefix has components.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                report::warn!(%error, "{} cannot be read; its components are left out", folder.display());
                continue;
            }
        };
        for entry in entries.flatten() {
            let Ok(package) = entry.file_name().into_string() else { continue };
            if packages.contains(&package) {
                continue;
            }
            all.extend(of_package(prefix, &package, &entry.path()));
            packages.push(package);
        }
    }
    all.sort_by(|a, b| a.component.cmp(&b.component));
    all
}

fn of_package(prefix: &Path, package: &str, file: &Path) -> Vec<IndexedComponent> {
    let mut text = String::new();
    let read = File::open(file).and_then(|it| it.take(FILE_BYTES_MAX).read_to_string(&mut text));
    if let Err(error) = read {
        report::warn!(%error, "{} cannot be read", file.display());
        return Vec::new();
    }
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let component = |(number, line): (usize, &str)| match line.trim().split_once(';') {
        Some((plugin, library)) if !plugin.is_empty() && !library.is_empty() => {
            let component = ComponentType::new(package, plugin);
            Some(IndexedComponent { component, library: prefix.join(library) })
        }
        _ => {
            report::warn!("{}:{number}: {line:?}; allowed: PLUGIN;LIBRARY", file.display());
            None
        }
    };
    lines.filter_map(component).collect()
}

/// What is beyond it of a package's file is not read.
const FILE_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn components_are_found_under_prefixes() {
        let root = std::env::temp_dir().join(format!("tsuji-index-{}", std::process::id()));
        let prefixes = [root.join("first"), root.join("second")];
        let write = |prefix: &Path, package: &str, text: &str| {
            let folder = prefix.join("share/ament_index/resource_index/tsuji_components");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(package), text).unwrap();
        };
        write(&prefixes[0], "arm", "arm::Gripper;lib/libarm.so\n\nnonsense\n;lib/x.so\n");
        write(&prefixes[1], "arm", "arm::Hidden;lib/libarm.so\n");
        write(&prefixes[1], "eye", "eye::Camera;/opt/libeye.so");
        let found = under(&prefixes, TSUJI_COMPONENTS);
        let found: Vec<_> =
            found.iter().map(|it| (it.component.to_string(), it.library.clone())).collect();
        let expect = [
            ("arm arm::Gripper".to_owned(), prefixes[0].join("lib/libarm.so")),
            ("eye eye::Camera".to_owned(), PathBuf::from("/opt/libeye.so")),
        ];
        assert_eq!(found, expect);
        assert!(under(&prefixes, RCLCPP_COMPONENTS).is_empty());
        fs::remove_dir_all(&root).unwrap();
    }
}

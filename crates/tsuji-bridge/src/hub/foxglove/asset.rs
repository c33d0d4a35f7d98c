//! Files of packages, such as meshes of a robot.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tsuji_foxglove::{write_asset, write_no_asset};

use crate::connected_client::ConnectedClient;
use crate::foxglove::written;
use crate::frame::Kind;

/// Sends a client a file, from a thread of its own: the disk may be slow.
pub(super) fn fetch(
    client: Arc<ConnectedClient>,
    uri: String,
    request: u32,
    under_way: &Arc<AtomicUsize>,
) {
    let reading = Reading::begin(under_way);
    let Some(reading) = reading else {
        return deny(&client, request, &format!("{AT_ONCE_MAX} files are being read; ask again"));
    };
    let asker = Arc::clone(&client);
    let read = move || {
        let _reading = reading;
        let roots = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
        match place(&uri, std::env::split_paths(&roots)).and_then(|it| read(&it)) {
            Ok(data) => client.say(written(Kind::Binary, |out| write_asset(out, request, &data))),
            Err(why) => deny(&client, request, &format!("{uri}: {why}")),
        }
    };
    if let Err(error) = thread::Builder::new().name("bridge-asset".to_owned()).spawn(read) {
        deny(&asker, request, &error.to_string());
    }
}

fn deny(client: &ConnectedClient, request: u32, why: &str) {
    client.say(written(Kind::Binary, |out| write_no_asset(out, request, why)));
}

/// One of the files that are being read.
struct Reading(Arc<AtomicUsize>);

impl Reading {
    fn begin(under_way: &Arc<AtomicUsize>) -> Option<Self> {
        let reading = Self(Arc::clone(under_way));
        (under_way.fetch_add(1, Ordering::AcqRel) < AT_ONCE_MAX).then_some(reading)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Where the file of an address is, in the first of these prefixes that has its package.
fn place(uri: &str, prefixes: impl IntoIterator<Item = PathBuf>) -> Result<PathBuf, String> {
    let rest = uri.strip_prefix("package://").ok_or("expected package://PACKAGE/PATH")?;
    let (package, path) = rest.split_once('/').ok_or("expected package://PACKAGE/PATH")?;
    let is_package = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    if package.is_empty() || !package.chars().all(is_package) {
        return Err(format!("found package {package:?}; expected letters, digits and underscores"));
    }
    let path = Path::new(path);
    // What leads elsewhere by a link was put there by whoever installed the package.
    if !path.components().all(|it| matches!(it, Component::Normal(_))) {
        return Err("expected a path below the package, without `..`".to_owned());
    }
    let ending = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    if !ENDINGS.contains(&&*ending.to_ascii_lowercase()) {
        return Err(format!("found a file .{ending}; allowed: {}", ENDINGS.join(", ")));
    }
    let shares = prefixes.into_iter().map(|it| it.join("share").join(package));
    let share = shares.into_iter().find(|it| it.is_dir());
    let share = share.ok_or_else(|| format!("no package {package} in AMENT_PREFIX_PATH"))?;
    Ok(share.join(path))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is no file".to_owned());
    }
    let mut data = Vec::new();
    let read = file.take(BYTES_MAX + 1).read_to_end(&mut data);
    read.map_err(|error| error.to_string())?;
    if BYTES_MAX < data.len() as u64 {
        return Err(format!("it has more than {BYTES_MAX} bytes"));
    }
    Ok(data)
}

/// What a view of a robot consists of, as `asset_uri_allowlist` of foxglove_bridge has it.
const ENDINGS: &[&str] = &[
    "dae", "fbx", "glb", "gltf", "jpeg", "jpg", "mtl", "obj", "png", "stl", "tif", "tiff", "urdf",
    "webp", "xacro",
];

/// As many files are read at a time.
const AT_ONCE_MAX: usize = 4;

/// A file has no more bytes.
const BYTES_MAX: u64 = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_packages_alone_are_found() {
        let root = std::env::temp_dir().join(format!("tsuji-asset-{}", std::process::id()));
        let meshes = root.join("share/arm/meshes");
        std::fs::create_dir_all(&meshes).unwrap();
        let file = meshes.join("hand v1.STL");
        std::fs::write(&file, b"solid").unwrap();
        let at = |uri: &str| place(uri, [root.join("other"), root.clone()]);
        assert_eq!(at("package://arm/meshes/hand v1.STL"), Ok(file.clone()));
        assert_eq!(read(&file), Ok(b"solid".to_vec()));
        for (uri, why) in [
            ("file:///etc/passwd", "expected package://"),
            ("package://arm", "expected package://"),
            ("package:///meshes/hand.stl", "found package \"\""),
            ("package://../share/arm/x.stl", "found package"),
            ("package://arm/../../../etc/x.stl", "without `..`"),
            ("package://arm//etc/x.stl", "without `..`"),
            ("package://arm/meshes/../../../x.urdf", "without `..`"),
            ("package://arm/package.xml", "found a file .xml; allowed: dae"),
            ("package://arm/passwd", "found a file .;"),
            ("package://leg/x.stl", "no package leg"),
        ] {
            let found = at(uri).unwrap_err();
            assert!(found.contains(why), "{uri}: {found}");
        }
        assert!(read(&meshes).unwrap_err().contains("no file"));
        assert!(read(&meshes.join("none.stl")).unwrap_err().contains("No such file"));
        let large = meshes.join("large.stl");
        File::create(&large).unwrap().set_len(BYTES_MAX + 1).unwrap();
        assert!(read(&large).unwrap_err().contains("more than"));
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn few_are_read_at_a_time() {
        let under_way = Arc::new(AtomicUsize::new(0));
        let all: Vec<_> = (0..AT_ONCE_MAX).map(|_| Reading::begin(&under_way).unwrap()).collect();
        assert!(Reading::begin(&under_way).is_none());
        drop(all);
        assert_eq!(under_way.load(Ordering::Acquire), 0);
        assert!(Reading::begin(&under_way).is_some());
    }
}

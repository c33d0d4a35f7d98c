//! Files of packages, such as meshes of a robot.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use percent_encoding::percent_decode_str;
use tsuji_foxglove::{write_asset, write_no_asset};

use crate::connected_client::ConnectedClient;
use crate::foxglove::written;
use crate::frame::Kind;

/// Reads files one after the other, on a thread of its own that begins with the first: the disk may be slow. The thread ends
/// with this.
#[derive(Default)]
pub(super) struct Assets {
    wanted: Option<SyncSender<Wanted>>,
}

struct Wanted {
    client: Arc<ConnectedClient>,
    uri: String,
    request: u32,
}

impl Assets {
    /// Sends a client a file, as soon as those before it are read.
    pub(super) fn fetch(&mut self, client: Arc<ConnectedClient>, uri: String, request: u32) {
        if self.wanted.is_none() {
            let (sender, receiver) = sync_channel(WAITING_MAX);
            let reader = thread::Builder::new().name("bridge-assets".to_owned());
            if let Err(error) = reader.spawn(move || read_all(&receiver)) {
                return deny(&client, request, &error.to_string());
            }
            self.wanted = Some(sender);
        }
        let Some(wanted) = &self.wanted else { return };
        match wanted.try_send(Wanted { client, uri, request }) {
            Ok(()) => {}
            Err(TrySendError::Full(it) | TrySendError::Disconnected(it)) => {
                deny(
                    &it.client,
                    request,
                    &format!("{WAITING_MAX} files are waited for; ask again"),
                );
            }
        }
    }
}

fn read_all(wanted: &Receiver<Wanted>) {
    while let Ok(Wanted { client, uri, request }) = wanted.recv() {
        if client.is_gone() {
            continue;
        }
        let roots = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
        // More would be too much that waits for it.
        let bytes_max = BYTES_MAX.min(client.answers_bytes_max() as u64 / 2);
        let found = place(&uri, std::env::split_paths(&roots));
        match found.and_then(|it| read(&it, bytes_max)) {
            Ok(data) => client.say(written(Kind::Binary, |out| write_asset(out, request, &data))),
            Err(why) => deny(&client, request, &format!("{uri}: {why}")),
        }
    }
}

fn deny(client: &ConnectedClient, request: u32, why: &str) {
    client.say(written(Kind::Binary, |out| write_no_asset(out, request, why)));
}

/// Where the file of an address is, in the first of these prefixes that has its package.
fn place(uri: &str, prefixes: impl IntoIterator<Item = PathBuf>) -> Result<PathBuf, String> {
    let rest = uri.strip_prefix("package://").ok_or("expected package://PACKAGE/PATH")?;
    let (package, path) = rest.split_once('/').ok_or("expected package://PACKAGE/PATH")?;
    let is_package = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    if package.is_empty() || !package.chars().all(is_package) {
        return Err(format!("found package {package:?}; expected letters, digits and underscores"));
    }
    let path = percent_decode_str(path).decode_utf8().map_err(|error| error.to_string())?;
    let path = Path::new(&*path);
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

fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    // A pipe would not be opened before somebody writes to it.
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is no file".to_owned());
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut data = Vec::new();
    let read = file.take(bytes_max + 1).read_to_end(&mut data);
    read.map_err(|error| error.to_string())?;
    if bytes_max < data.len() as u64 {
        return Err(format!("it has more than {bytes_max} bytes"));
    }
    Ok(data)
}

/// What a view of a robot consists of, as `asset_uri_allowlist` of foxglove_bridge has it.
const ENDINGS: &[&str] = &[
    "dae", "fbx", "glb", "gltf", "jpeg", "jpg", "mtl", "obj", "png", "stl", "tif", "tiff", "urdf",
    "webp", "xacro",
];

/// So many files wait to be read.
const WAITING_MAX: usize = 256;

/// A file has no more bytes.
const BYTES_MAX: u64 = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_packages_alone_are_found() {
        let root = std::env::temp_dir().join(format!("tsuji-asset-{}", std::process::id()));
        let meshes = root.join("share/arm/meshes");
        fs::create_dir_all(&meshes).unwrap();
        let file = meshes.join("hand v1.STL");
        fs::write(&file, b"solid").unwrap();
        let at = |uri: &str| place(uri, [root.join("other"), root.clone()]);
        assert_eq!(at("package://arm/meshes/hand v1.STL"), Ok(file.clone()));
        assert_eq!(at("package://arm/meshes/hand%20v1.STL"), Ok(file.clone()));
        let read = |it: &Path| read(it, 8);
        assert_eq!(read(&file), Ok(b"solid".to_vec()));
        for (uri, why) in [
            ("file:///etc/passwd", "expected package://"),
            ("package://arm", "expected package://"),
            ("package:///meshes/hand.stl", "found package \"\""),
            ("package://../share/arm/x.stl", "found package"),
            ("package://arm/../../../etc/x.stl", "without `..`"),
            ("package://arm//etc/x.stl", "without `..`"),
            ("package://arm/meshes/../../../x.urdf", "without `..`"),
            ("package://arm/%2e%2e/%2E%2E/x.urdf", "without `..`"),
            ("package://arm/meshes/%ff.stl", "utf-8"),
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
        File::create(&large).unwrap().set_len(9).unwrap();
        assert!(read(&large).unwrap_err().contains("more than 8 bytes"));
        let pipe = meshes.join("pipe.stl");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success() && read(&pipe).unwrap_err().contains("no file"));
        fs::remove_dir_all(root).unwrap();
    }
}

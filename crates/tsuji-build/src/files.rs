//! Definition files, and where they are installed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Error, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use tsuji_msg::definition::definition_of_idl;
use tsuji_msg::{Definition, Kind, Resolver, Unreadable};

/// Bytes of a definition file. A longer file is refused; the parser refuses such a text anyway.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Bytes of an entry of the ament index; a longer one is refused.
const INDEX_BYTES_MAX: u64 = 1 << 20;

/// Where a prefix registers the packages that have interfaces.
const INDEX: &str = "share/ament_index/resource_index/rosidl_interfaces";

/// The definitions of an installed ROS 2 and its workspaces, read from
/// `<prefix>/share/<package>/<kind>/<Name>.<kind>` when asked for, or from `<Name>.idl` where that alone is there.
#[derive(Clone, Debug, Default)]
pub struct AmentIndex {
    prefixes: Vec<PathBuf>,
}

impl AmentIndex {
    /// Creates an index over the value of `AMENT_PREFIX_PATH`: folders with colons between them, the first
    /// that has a definition wins.
    pub fn from_env_value(value: impl AsRef<OsStr>) -> Self {
        let folders = std::env::split_paths(value.as_ref());
        Self { prefixes: folders.filter(|prefix| !prefix.as_os_str().is_empty()).collect() }
    }

    /// The folders that are searched, in their order.
    pub fn prefixes(&self) -> &[PathBuf] {
        &self.prefixes
    }

    /// The names of all interfaces that the prefixes register, such as `sensor_msgs/msg/Image`, and which entries of
    /// their indexes cannot be read.
    pub fn names(&self) -> (BTreeSet<String>, Vec<Unreadable>) {
        let (mut names, mut troubles) = (BTreeSet::new(), Vec::new());
        for index in self.prefixes.iter().map(|prefix| prefix.join(INDEX)) {
            let entries = match fs::read_dir(&index) {
                Ok(entries) => entries,
                // Not every prefix has interfaces.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => {
                    troubles.push(unreadable(&index, &error));
                    continue;
                }
            };
            for entry in entries {
                let found = entry
                    .map_err(|error| unreadable(&index, &error))
                    .and_then(|entry| registered(&entry.path()));
                match found {
                    Ok(found) => names.extend(found),
                    Err(error) => troubles.push(error),
                }
            }
        }
        (names, troubles)
    }

    /// The names of the interfaces of a package that the prefixes register; none where no prefix has the package.
    ///
    /// # Errors
    ///
    /// An entry of an index that is there and cannot be read.
    pub fn names_of(&self, package: &str) -> Result<BTreeSet<String>, Unreadable> {
        let mut names = BTreeSet::new();
        for entry in self.entries_of(package) {
            names.extend(registered(&entry)?);
        }
        Ok(names)
    }

    /// The entries of a package in the indexes.
    pub(crate) fn entries_of(&self, package: &str) -> Vec<PathBuf> {
        if !is_plain(package) {
            return Vec::new();
        }
        let entries = self.prefixes.iter().map(|prefix| prefix.join(INDEX).join(package));
        entries.filter(|it| fs::symlink_metadata(it).is_ok()).collect()
    }
}

/// The interfaces of a package, by its entry in an index.
fn registered(entry: &Path) -> Result<Vec<String>, Unreadable> {
    let refused = |reason| Unreadable { place: entry.display().to_string(), reason };
    let text = text_of(entry, INDEX_BYTES_MAX).map_err(refused)?;
    let word = |it: Option<&OsStr>| it.unwrap_or_default().to_string_lossy().into_owned();
    let package = word(entry.file_name());
    let names = text.lines().map(Path::new).filter_map(|file| {
        let kind = word(file.parent().map(Path::as_os_str));
        // Each interface is listed as an `.idl` file too, some as that alone.
        let is_definition = [kind.as_str(), "idl"].contains(&word(file.extension()).as_str());
        let is_interface = ["msg", "srv", "action"].contains(&kind.as_str()) && is_definition;
        is_interface.then(|| format!("{package}/{kind}/{}", word(file.file_stem())))
    });
    Ok(names.collect())
}

fn unreadable(path: &Path, error: &Error) -> Unreadable {
    Unreadable { place: path.display().to_string(), reason: error.to_string() }
}

impl Resolver for AmentIndex {
    fn find(
        &self,
        kind: Kind,
        package: &str,
        name: &str,
    ) -> Result<Option<Definition<'_>>, Unreadable> {
        // Names come from messages and command lines; one with a path in it must not leave the
        // folders.
        if !is_plain(package) || !is_plain(name) {
            return Ok(None);
        }
        for prefix in &self.prefixes {
            let folder = prefix.join("share").join(package);
            if let Some(found) = find_in(prefix, &folder, (kind, package, name))? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The definition of an interface in a package's folder below `prefix`.
pub(crate) fn find_in(
    prefix: &Path,
    folder: &Path,
    (kind, package, name): (Kind, &str, &str),
) -> Result<Option<Definition<'static>>, Unreadable> {
    let folder = folder.join(kind.word());
    let found = |text: String, file: &Path| {
        let place = Some(file.display().to_string());
        Ok(Some(Definition { text: text.into(), place }))
    };
    let file = folder.join(format!("{name}.{kind}"));
    if let Some(text) = read(prefix, &file)? {
        return found(text, &file);
    }
    let idl = folder.join(format!("{name}.idl"));
    let Some(text) = read(prefix, &idl)? else { return Ok(None) };
    let place = || idl.display().to_string();
    let text = definition_of_idl(&text, kind, package, name)
        .map_err(|error| Unreadable { place: place(), reason: error.to_string() })?;
    found(text, &idl)
}

/// The text of a file below `prefix`; `None` where none is there.
fn read(prefix: &Path, file: &Path) -> Result<Option<String>, Unreadable> {
    let refuse = |reason: String| Err(Unreadable { place: file.display().to_string(), reason });
    match fs::metadata(file) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // A link that leads nowhere is there, and hides nothing of an underlay.
            return match fs::read_link(file) {
                Ok(target) => {
                    refuse(format!("it is a link to {}, which is not there", target.display()))
                }
                Err(_) => Ok(None),
            };
        }
        // A prefix that is no folder has nothing.
        Err(error) if error.kind() == ErrorKind::NotADirectory && !prefix.is_dir() => {
            return Ok(None);
        }
        Err(error) => return refuse(error.to_string()),
    }
    text_of(file, FILE_BYTES_MAX).map(Some).or_else(refuse)
}

/// The text of a file of `bytes_max` bytes at most, or why there is none. Nothing that is no file is opened: a pipe would
/// keep the reader waiting, and a device has no end.
pub(crate) fn text_of(path: &Path, bytes_max: u64) -> Result<String, String> {
    let told = |error: Error| error.to_string();
    let found = fs::metadata(path).map_err(told)?;
    // Of a folder the system says so.
    if !found.is_file() && !found.is_dir() {
        return Err("it is no file".to_owned());
    }
    let too_long = |length| format!("it has {length} bytes; at most {bytes_max} are read");
    if bytes_max < found.len() {
        return Err(too_long(found.len()));
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile; one byte too many is enough to be refused.
    let file = File::open(path).map_err(told)?;
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(told)?;
    if bytes_max < bytes.len() as u64 {
        return Err(too_long(bytes.len() as u64));
    }
    String::from_utf8(bytes).map_err(|error| {
        format!("it is not UTF-8 from byte {} on", error.utf8_error().valid_up_to() + 1)
    })
}

/// Several resolvers, asked in their order. What one has and cannot be read is not asked of the next.
pub struct Chain(pub Vec<Box<dyn Resolver + Send + Sync>>);

impl Resolver for Chain {
    fn find(
        &self,
        kind: Kind,
        package: &str,
        name: &str,
    ) -> Result<Option<Definition<'_>>, Unreadable> {
        for resolver in &self.0 {
            if let Some(found) = resolver.find(kind, package, name)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chain of {}", self.0.len())
    }
}

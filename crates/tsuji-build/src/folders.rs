//! Packages in folders that are named.

use crate::Error;
use crate::files;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tsuji_msg::{Definition, Kind, Resolver, TypeName, Unreadable};

const KINDS: [Kind; 3] = [Kind::Message, Kind::Service, Kind::Action];

/// The definitions of packages whose folders are known.
///
/// A package's folder has `msg`, `srv` and `action` in it, or some of them, with `.msg`, `.srv` and `.action` files,
/// or `.idl` files where those are alone: its source folder, or `share/PACKAGE` where it is installed. Other files are
/// passed over.
#[derive(Clone, Debug, Default)]
pub struct Folders {
    packages: BTreeMap<String, PathBuf>,
    names: BTreeMap<TypeName, PathBuf>,
}

impl Folders {
    /// No packages.
    pub fn new() -> Self {
        Self::default()
    }

    /// The packages whose folders are in `folder`, such as `share`. Files beside them are passed over.
    ///
    /// # Errors
    ///
    /// Those of [`add`](Self::add).
    pub fn below(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let mut folders = Self::new();
        for package in entries(folder.as_ref())? {
            if package.is_dir() {
                folders.add(&package)?;
            }
        }
        Ok(folders)
    }

    /// Adds the package in `folder`, and returns its name: that in `package.xml`, or else that of the folder.
    ///
    /// # Errors
    ///
    /// A folder that cannot be read or has no definitions, a name that ROS 2 would refuse, a package that is there already.
    pub fn add(&mut self, folder: impl AsRef<Path>) -> Result<String, Error> {
        let folder = folder.as_ref();
        let name = name_of(folder)?;
        self.add_as(&name, folder)?;
        Ok(name)
    }

    /// Adds the package in `folder` under this name.
    ///
    /// # Errors
    ///
    /// Those of [`add`](Self::add).
    pub fn add_as(&mut self, package: &str, folder: impl AsRef<Path>) -> Result<(), Error> {
        let folder = folder.as_ref();
        if TypeName::new(package, Kind::Message, "Name").is_err() {
            return Err(Error::new(format!(
                "{}: `{package}` is no name of a package; allowed: small letters, digits and single _, a letter first",
                folder.display()
            )));
        }
        if let Some(other) = self.packages.get(package) {
            let (folder, other) = (folder.display(), other.display());
            return Err(Error::new(format!(
                "{folder}: the package {package} is in {other} already"
            )));
        }
        let names = names_in(package, folder)?;
        if names.is_empty() {
            return Err(Error::new(format!(
                "{}: no interfaces; they are looked for in its folders msg, srv and action",
                folder.display()
            )));
        }
        self.packages.insert(package.to_owned(), folder.to_owned());
        self.names.extend(names);
        Ok(())
    }

    /// Returns all interfaces in their order, each with its file.
    pub fn names(&self) -> impl Iterator<Item = (&TypeName, &Path)> {
        self.names.iter().map(|(name, path)| (name, path.as_path()))
    }

    /// Returns the folder of a package that was added.
    pub fn folder(&self, package: &str) -> Option<&Path> {
        self.packages.get(package).map(PathBuf::as_path)
    }
}

impl Resolver for Folders {
    fn find(
        &self,
        kind: Kind,
        package: &str,
        name: &str,
    ) -> Result<Option<Definition<'_>>, Unreadable> {
        let Ok(wanted) = TypeName::new(package, kind, name) else { return Ok(None) };
        let Some(folder) = self.folder(package).filter(|_| self.names.contains_key(&wanted)) else {
            return Ok(None);
        };
        files::find_in(folder, folder, (kind, package, name))
    }
}

/// The interfaces in a package's folder.
fn names_in(package: &str, folder: &Path) -> Result<BTreeMap<TypeName, PathBuf>, Error> {
    let mut names = BTreeMap::new();
    // One that is not there has no kinds of interfaces, and says more.
    entries(folder)?;
    for kind in KINDS {
        let folder = folder.join(kind.word());
        // A link that leads nowhere is there, and told.
        if fs::symlink_metadata(&folder).is_err_and(|it| it.kind() == ErrorKind::NotFound) {
            continue;
        }
        for file in entries(&folder)? {
            let extension = file.extension().unwrap_or_default();
            if extension != kind.word() && extension != "idl" {
                continue;
            }
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            let Ok(name) = TypeName::new(package, kind, &name) else {
                return Err(Error::new(format!(
                    "{}: `{name}` is no name of an interface; allowed: letters and digits, a capital first",
                    file.display()
                )));
            };
            // The text beside it comes before an `.idl` file.
            if extension == kind.word() || !names.contains_key(&name) {
                names.insert(name, file);
            }
        }
    }
    Ok(names)
}

/// The name of the package in a folder.
fn name_of(folder: &Path) -> Result<String, Error> {
    let manifest = folder.join("package.xml");
    if fs::symlink_metadata(&manifest).is_err_and(|it| it.kind() == ErrorKind::NotFound) {
        // The last part of `.` and of `..` is said by the whole path alone.
        let whole = fs::canonicalize(folder).map_err(|error| unreadable(folder, &error))?;
        return Ok(whole.file_name().unwrap_or_default().to_string_lossy().into_owned());
    }
    let wrong = |why: &str| Error::new(format!("{}: {why}", manifest.display()));
    let text = files::text_of(&manifest, MANIFEST_BYTES_MAX).map_err(|why| wrong(&why))?;
    name_in(&text).map(str::to_owned).ok_or_else(|| wrong("it has no element `name`"))
}

/// Bytes of a `package.xml`; a longer one is refused.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// The text of the first element `name` of a `package.xml`. No other element of its kind has one before.
fn name_in(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = &rest[rest.find('<')?..];
        rest = match rest.strip_prefix("<!--") {
            Some(comment) => &comment[comment.find("-->")?..],
            None => match rest.strip_prefix("<name>") {
                Some(name) => return Some(name[..name.find('<')?].trim()),
                None => &rest[1..],
            },
        };
    }
}

/// What is in a folder, in the order of the names.
fn entries(folder: &Path) -> Result<BTreeSet<PathBuf>, Error> {
    let entries = fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.map(|it| it.path())).collect::<Result<_, _>>()
    });
    entries.map_err(|error| unreadable(folder, &error))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Unreadable { place: path.display().to_string(), reason: error.to_string() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_in_a_manifest() {
        let cases = [
            ("<package format=\"3\">\n  <name>my_msgs</name>\n</package>", Some("my_msgs")),
            ("<package><!-- <name>old</name> --><name> new </name>", Some("new")),
            ("<package><version>1</version></package>", None),
            ("<package><!-- <name>old</name>", None),
            ("<name>open", None),
            ("", None),
        ];
        for (text, expect) in cases {
            assert_eq!(name_in(text), expect, "{text}");
        }
    }
}

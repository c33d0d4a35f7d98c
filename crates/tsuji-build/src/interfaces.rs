//! What a build script says, and what becomes of it.

use crate::{AmentIndex, Error, Folders};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, fs};
use tsuji_msg::codegen::{Codegen, CodegenError};
use tsuji_msg::{Definition, Kind, LoadError, Resolver, Unreadable};

/// The file that is written, in the folder that cargo gives a build script.
const FILE: &str = "interfaces.rs";

/// Where the build script of tsuji-interfaces says which definitions it has types of, and that of tsuji-shared, which
/// hands its types on.
const SHIPPED: [&str; 2] = ["DEP_TSUJI_INTERFACES_SHARE", "DEP_TSUJI_SHARED_SHARE"];

/// Where a crate that depends on tsuji-interfaces finds it.
const PATH: &str = "::tsuji_interfaces";

/// The packages of which a build script generates Rust types.
///
/// All types of the packages that are named are generated. Of those that they use,
/// - one that tsuji-interfaces has is that one, so `std_msgs/Header` is the same Rust type in every crate. Where
///   `AMENT_PREFIX_PATH` has the package too, and the definition there has another type hash, nothing is generated and
///   the error says so; whoever wants that type as well names its package;
/// - one of a package that [`external`](Self::external) names is that of the other crate;
/// - any other is looked for in `AMENT_PREFIX_PATH`, and generated.
///
/// A package has one source: of one whose folder is named, no definition is taken from elsewhere.
///
/// The crate depends on `tsuji-interfaces`; the generated code needs nothing else.
///
/// ```no_run
/// # fn main() -> Result<(), tsuji_build::Error> {
/// tsuji_build::Interfaces::new()
///     .folder("interfaces/my_robot_msgs")
///     .installed("nav2_msgs")
///     .external("fleet_msgs", "::fleet_interfaces::fleet_msgs")
///     .generate()
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Interfaces {
    packages: Vec<Package>,
    external: Vec<(String, String)>,
    ament_prefix_path: Option<OsString>,
    shipped: Option<PathBuf>,
    path: Option<String>,
    out_dir: Option<PathBuf>,
}

#[derive(Clone, Debug)]
enum Package {
    Folder { folder: PathBuf, name: Option<String> },
    Installed(String),
}

impl Interfaces {
    /// Creates a set of no packages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the package in `folder`, which has `msg`, `srv` and `action` in it, or some of them.
    ///
    /// That is a package's source folder, or `share/PACKAGE` where it is installed; relative to the crate's
    /// `Cargo.toml`. Its name is that in `package.xml`, or else that of the folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.packages.push(Package::Folder { folder: folder.into(), name: None });
        self
    }

    /// Adds the package in `folder` under this name.
    #[must_use]
    pub fn folder_as(mut self, package: impl Into<String>, folder: impl Into<PathBuf>) -> Self {
        let name = Some(package.into());
        self.packages.push(Package::Folder { folder: folder.into(), name });
        self
    }

    /// Adds a package that is installed below a folder of `AMENT_PREFIX_PATH`.
    #[must_use]
    pub fn installed(mut self, package: impl Into<String>) -> Self {
        self.packages.push(Package::Installed(package.into()));
        self
    }

    /// Refers to the types of `package` at a Rust path instead of generating them, where another crate has them.
    #[must_use]
    pub fn external(mut self, package: impl Into<String>, path: impl Into<String>) -> Self {
        self.external.push((package.into(), path.into()));
        self
    }

    /// Sets the folders of installed packages, with colons between them. Default the variable `AMENT_PREFIX_PATH`.
    #[must_use]
    pub fn ament_prefix_path(mut self, folders: impl Into<OsString>) -> Self {
        self.ament_prefix_path = Some(folders.into());
        self
    }

    /// Sets the folder `share` of tsuji-interfaces, for a build by other tools than cargo, which says where it is.
    #[must_use]
    pub fn shipped(mut self, share: impl Into<PathBuf>) -> Self {
        self.shipped = Some(share.into());
        self
    }

    /// Sets the Rust path of tsuji-interfaces. Default `::tsuji_interfaces`.
    ///
    /// A component in a shared library depends on tsuji-shared instead, and says `::tsuji_shared::tsuji_interfaces`.
    #[must_use]
    pub fn types_at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets the folder that `interfaces.rs` is written to. Default the variable `OUT_DIR`.
    #[must_use]
    pub fn out_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(folder.into());
        self
    }

    /// Writes the Rust types of all packages to `interfaces.rs`, and tells cargo which files they come from.
    ///
    /// # Errors
    ///
    /// Those of [`source`](Self::source); a file that cannot be written.
    pub fn generate(&self) -> Result<(), Error> {
        let (text, watched) = self.source_and_files()?;
        let Some(folder) = self.out_dir.clone().or_else(|| env::var_os("OUT_DIR").map(Into::into))
        else {
            return Err(Error::new("OUT_DIR is not set; cargo sets it for build scripts"));
        };
        let file = folder.join(FILE);
        fs::write(&file, text)
            .map_err(|error| Error::new(format!("cannot write {}: {error}", file.display())))?;
        for line in watched {
            tell_cargo(&line);
        }
        Ok(())
    }

    /// Returns the Rust types of all packages, as text.
    ///
    /// # Errors
    ///
    /// A folder or a file that cannot be read, a definition with a mistake, one that is missing, one that
    /// tsuji-interfaces has otherwise. No packages, or one that is not installed.
    pub fn source(&self) -> Result<String, Error> {
        Ok(self.source_and_files()?.0)
    }

    /// The source, and the lines that tell cargo what it depends on.
    fn source_and_files(&self) -> Result<(String, Vec<String>), Error> {
        let shipped = Arc::new(Folders::below(self.shipped_folder()?)?);
        let ament = match &self.ament_prefix_path {
            Some(folders) => AmentIndex::from_env_value(folders),
            None => {
                AmentIndex::from_env_value(env::var_os("AMENT_PREFIX_PATH").unwrap_or_default())
            }
        };
        let mut folders = Folders::new();
        let mut names = BTreeSet::new();
        let mut watched_files = BTreeSet::new();
        for package in &self.packages {
            match package {
                Package::Folder { folder, name: Some(name) } => folders.add_as(name, folder)?,
                Package::Folder { folder, name: None } => drop(folders.add(folder)?),
                Package::Installed(package) => {
                    let found = ament.names_of(package)?;
                    if found.is_empty() {
                        return Err(not_installed(package, &ament));
                    }
                    names.extend(found);
                    watched_files.extend(ament.entries_of(package));
                }
            }
        }
        names.extend(folders.names().map(|(name, _)| name.to_string()));
        if names.is_empty() {
            return Err(Error::new("no packages; name one by `folder` or `installed`"));
        }
        let mut lines = vec!["cargo::rerun-if-env-changed=AMENT_PREFIX_PATH".to_owned()];
        let named = folders.names().map(|(name, _)| name.package()).collect::<BTreeSet<_>>();
        let named = named.into_iter().filter_map(|package| folders.folder(package));
        watched_files.extend(named.flat_map(watched));

        let sources = Sources { folders, ament, shipped, read: Mutex::default() };
        let path = self.path.as_deref().unwrap_or(PATH);
        let mut codegen = codegen_at(&sources, sources.shipped.clone(), path);
        for (package, path) in &self.external {
            codegen = codegen.external(package, path);
        }
        let text = codegen
            .generate(names.iter().map(String::as_str))
            .map_err(|error| sources.explain(error))?;
        watched_files.extend(sources.read.into_inner().unwrap_or_else(PoisonError::into_inner));
        lines.extend(
            watched_files.iter().map(|it| format!("cargo::rerun-if-changed={}", it.display())),
        );
        Ok((text, lines))
    }

    fn shipped_folder(&self) -> Result<PathBuf, Error> {
        let told = || SHIPPED.into_iter().find_map(env::var_os).map(PathBuf::from);
        self.shipped.clone().or_else(told).ok_or_else(|| {
            Error::new(
                "tsuji-interfaces is not among the [dependencies] of this crate, and the generated code refers to its \
                 types",
            )
        })
    }
}

/// The generator as [`Interfaces`] uses it: the types in `shipped` are those of tsuji-interfaces.
pub fn codegen<R: Resolver>(definitions: R, shipped: impl Resolver + 'static) -> Codegen<R> {
    codegen_at(definitions, shipped, PATH)
}

fn codegen_at<R: Resolver>(
    definitions: R,
    shipped: impl Resolver + 'static,
    path: &str,
) -> Codegen<R> {
    Codegen::new(definitions).runtime(&format!("{path}::tsuji_msg")).library(shipped, path)
}

/// The definitions of the packages that are named, then those that are installed, then those that ship.
struct Sources {
    folders: Folders,
    ament: AmentIndex,
    shipped: Arc<Folders>,
    /// The files of installed packages that were read.
    read: Mutex<BTreeSet<PathBuf>>,
}

impl Sources {
    fn explain(&self, error: CodegenError) -> Error {
        let CodegenError::Load(LoadError::Missing { .. }) = error else {
            return Error::new(error.to_string());
        };
        let ament = searched(&self.ament);
        Error::new(format!(
            "{error}; searched the folders that are named, {ament} and tsuji-interfaces"
        ))
    }
}

impl Resolver for Sources {
    fn find(
        &self,
        kind: Kind,
        package: &str,
        name: &str,
    ) -> Result<Option<Definition<'_>>, Unreadable> {
        if self.folders.folder(package).is_some() {
            return self.folders.find(kind, package, name);
        }
        if let Some(found) = self.ament.find(kind, package, name)? {
            let file = found.place.as_ref().map(PathBuf::from);
            self.read.lock().unwrap_or_else(PoisonError::into_inner).extend(file);
            return Ok(Some(found));
        }
        self.shipped.find(kind, package, name)
    }
}

/// What cargo watches of a package's folder.
fn watched(folder: &Path) -> Vec<PathBuf> {
    let is_around_the_crate = match (fs::canonicalize(folder), env::current_dir()) {
        (Ok(folder), Ok(here)) => here.starts_with(folder),
        _ => false,
    };
    // All of it, so that a kind of interfaces that it gets later is seen. Around the crate it changes with every build.
    if !is_around_the_crate {
        return vec![folder.to_owned()];
    }
    let parts = ["msg", "srv", "action", "package.xml"].into_iter().map(|it| folder.join(it));
    parts.filter(|it| it.exists()).collect()
}

fn not_installed(package: &str, ament: &AmentIndex) -> Error {
    Error::new(format!("{package}: no such package with interfaces; searched {}", searched(ament)))
}

fn searched(ament: &AmentIndex) -> String {
    match ament.prefixes() {
        [] => "AMENT_PREFIX_PATH, which is not set".to_owned(),
        [_] => "AMENT_PREFIX_PATH (1 folder)".to_owned(),
        more => format!("AMENT_PREFIX_PATH ({} folders)", more.len()),
    }
}

#[expect(clippy::print_stdout, reason = "cargo reads what a build script prints")]
fn tell_cargo(line: &str) {
    println!("{line}");
}

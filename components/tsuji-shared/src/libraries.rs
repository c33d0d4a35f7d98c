//! Where libraries of components are looked for.

use std::collections::BTreeMap;
use std::env;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tsuji::component::{
    ComponentFactory, ComponentSource, ComponentType, IndexedComponent, Registered,
    TSUJI_COMPONENTS, indexed,
};

use crate::library;

/// Names the folders that are looked in for libraries of components, with colons between.
pub const PATH_VARIABLE: &str = "TSUJI_COMPONENT_PATH";

/// Components in shared libraries. A package's library is the one that the index of ament names for the component, under
/// `tsuji_components`; else `libPACKAGE.so` beside the program, in the `lib` beside its folder, in the folders of
/// [`PATH_VARIABLE`], or among the system's libraries: the first there is.
///
/// A library is loaded when a component of it is first asked for, and not unloaded any more.
#[derive(Debug, Default)]
pub struct Libraries {
    loaded: Mutex<BTreeMap<PathBuf, Registered>>,
}

impl Libraries {
    /// None is loaded yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The components of the library at `path`.
    fn load(&self, path: &Path) -> Result<Registered, String> {
        let path = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
        if !is_safe(&path) {
            return Err(format!(
                "{} is not loaded: it, or its folder, is not this user's or root's alone to write to",
                path.display()
            ));
        }
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(registered) = loaded.get(&path) {
            return Ok(registered.clone());
        }
        let registered = library::load(&path)?;
        loaded.insert(path, registered.clone());
        Ok(registered)
    }
}

impl ComponentSource for Libraries {
    fn types(&self) -> Vec<ComponentType> {
        let indexed = installed().into_iter().map(|it| it.component);
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        indexed.chain(loaded.values().flat_map(Registered::types)).collect()
    }

    fn find(&self, wanted: &ComponentType) -> Result<Option<ComponentFactory>, String> {
        let of_package: Vec<_> =
            installed().into_iter().filter(|it| it.component.package == wanted.package).collect();
        let path = match of_package.iter().find(|it| it.component == *wanted) {
            Some(found) => found.library.clone(),
            None if !of_package.is_empty() => {
                let plugins: Vec<&str> =
                    of_package.iter().map(|it| it.component.plugin.as_str()).collect();
                return Err(tsuji::component::no_class(wanted, &plugins));
            }
            None => match located(&wanted.package) {
                Some(path) => path,
                None => return Ok(None),
            },
        };
        let registered = self.load(&path)?;
        registered.find(wanted)?.map(Some).ok_or_else(|| {
            let all: Vec<String> = registered.types().iter().map(ToString::to_string).collect();
            format!("{} has no {wanted}; allowed: {}", path.display(), all.join(", "))
        })
    }
}

/// What installed packages have.
fn installed() -> Vec<IndexedComponent> {
    // Its user says where they are.
    if is_secure() { Vec::new() } else { indexed(TSUJI_COMPONENTS) }
}

/// The first library of the package in the folders.
fn located(package: &str) -> Option<PathBuf> {
    // The name of a file, and no path.
    if package.is_empty() || !package.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_') {
        return None;
    }
    let file = format!("lib{package}.so");
    folders().into_iter().map(|it| it.join(&file)).find(|it| it.is_file())
}

/// Whether this is a program with the rights of others, which takes no library that its user may choose, as with the
/// system's own.
fn is_secure() -> bool {
    // SAFETY: reads what the kernel gave this process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

fn folders() -> Vec<PathBuf> {
    let mut all = Vec::new();
    if !is_secure() {
        if let Some(folder) = env::current_exe().ok().as_deref().and_then(Path::parent) {
            all.push(folder.to_owned());
            all.extend(folder.parent().map(|it| it.join("lib")));
        }
        // A relative one would be another for each working directory.
        let said = env::var_os(PATH_VARIABLE).unwrap_or_default();
        all.extend(env::split_paths(&said).filter(|it| it.is_absolute()));
    }
    let multiarch = format!("{}-linux-gnu", env::consts::ARCH);
    for root in ["/usr/local/lib", "/usr/lib"] {
        all.extend([Path::new(root).join(&multiarch), PathBuf::from(root)]);
    }
    all
}

/// Whether nobody else can have put it there.
fn is_safe(library: &Path) -> bool {
    // SAFETY: asks for a number, and cannot fail.
    let user = unsafe { libc::geteuid() };
    [Some(library), library.parent()].into_iter().flatten().all(|it| {
        it.metadata().is_ok_and(|it| it.mode() & 0o002 == 0 && [0, user].contains(&it.uid()))
    })
}

//! One library of components: what it says of itself is checked before anything of it is called.

use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use tsuji::component::Registered;

use crate::BUILD;

/// The version of [`ComponentLibrary`].
pub const ABI: u32 = 1;

/// What a library of components exports, under the name `TSUJI_COMPONENT_LIBRARY`. Its first fields are the same in every
/// version.
#[derive(Debug)]
#[repr(C)]
pub struct ComponentLibrary {
    abi: u32,
    size: u32,
    /// [`BUILD`], as it was when the library was built, filled up with zeros.
    build: [u8; BUILD_BYTES],
    /// Of the loaded copy of tsuji that the library is linked with.
    copy: &'static Copy,
    components: fn() -> Registered,
}

impl ComponentLibrary {
    /// That of a library with these components, built now.
    pub const fn new(build: &str, components: fn() -> Registered) -> Self {
        assert!(build.len() <= BUILD_BYTES, "the build's name is too long");
        let mut bytes = [0; BUILD_BYTES];
        let mut at = 0;
        while at < build.len() {
            bytes[at] = build.as_bytes()[at];
            at += 1;
        }
        let size = size_of::<Self>() as u32;
        Self { abi: ABI, size, build: bytes, copy: &COPY, components }
    }
}

/// Lets a library have components: those that the function named, without arguments, answers.
#[macro_export]
macro_rules! export_components {
    ($components:path) => {
        /// What this library has.
        // SAFETY: no other library that is linked with this one has a symbol of that name.
        #[unsafe(no_mangle)]
        pub static TSUJI_COMPONENT_LIBRARY: $crate::ComponentLibrary =
            $crate::ComponentLibrary::new($crate::BUILD, $components);
    };
}

/// Its address names the loaded copy.
#[derive(Debug)]
struct Copy(#[expect(dead_code, reason = "what is empty need not have an address")] u8);

static COPY: Copy = Copy(0);

const BUILD_BYTES: usize = 64;
const SYMBOL: &[u8] = b"TSUJI_COMPONENT_LIBRARY\0";

/// What stands before all else in every version.
#[repr(C)]
struct Head {
    abi: u32,
    size: u32,
    build: [u8; BUILD_BYTES],
    copy: *const Copy,
}

/// The components of the library at `path`. It is never unloaded: threads and destructors of its code may outlive any
/// component, and so do messages whose type it alone knows.
pub(crate) fn load(path: &Path) -> Result<Registered, String> {
    let refused = |why: String| format!("{}: {why}", path.display());
    // SAFETY: a library that the user has put where components are looked for. What its constructors do is as with any
    // library that a program is linked with.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    let library = library.map_err(|error| {
        refused(format!(
            "Failed to load library: {error}; allowed: one that is linked with libtsuji_shared.so of this build, {BUILD}"
        ))
    })?;
    // Whatever comes of it: it may have threads already.
    let library = std::mem::ManuallyDrop::new(library);
    // SAFETY: a pointer to whatever it is; nothing is read here.
    let found = unsafe { library.get::<*const Head>(SYMBOL) };
    let found = found.map_err(|_| {
        refused("it exports no TSUJI_COMPONENT_LIBRARY; allowed: a library made with export_components!".to_owned())
    })?;
    let head: *const Head = *found;
    if head.is_null() || !head.is_aligned() {
        return Err(refused("its TSUJI_COMPONENT_LIBRARY is none".to_owned()));
    }
    // SAFETY: both are there in every version.
    let (abi, size) = unsafe { ((*head).abi, (*head).size) };
    if abi != ABI || size as usize != size_of::<ComponentLibrary>() {
        return Err(refused(format!(
            "it has version {abi} of TSUJI_COMPONENT_LIBRARY; allowed: {ABI}"
        )));
    }
    // SAFETY: a table of this version is at least as long.
    let head = unsafe { &*head };
    let build = String::from_utf8_lossy(&head.build);
    let build = build.trim_end_matches('\0');
    if build != BUILD {
        return Err(refused(format!(
            "it was built with tsuji {build}; allowed: {BUILD}, of this container"
        )));
    }
    if !std::ptr::eq(head.copy, &COPY) {
        return Err(refused(
            "it brings a copy of tsuji of its own; allowed: that of this container".to_owned(),
        ));
    }
    // SAFETY: it is of this build, so it is one, and lives for as long as the process.
    let library: &'static ComponentLibrary = unsafe { &*std::ptr::from_ref(head).cast() };
    Ok((library.components)())
}

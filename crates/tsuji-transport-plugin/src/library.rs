//! A shared library that is a transport: what it says of itself is checked before anything is called.

use std::ffi::{CStr, c_char};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW, Symbol};
use tsuji_core::{Peers, Scopes, TransportId};
use tsuji_engine::About;
use tsuji_engine_abi::abi::{self, Table};
use tsuji_transport::wire::Relates;
use tsuji_transport::{Error, ErrorKind, Result};

/// A library that is loaded for as long as the process lives.
#[derive(Clone, Debug)]
pub struct Plugin {
    pub(crate) table: &'static Table,
    path: PathBuf,
    about: About,
    version: String,
}

impl Plugin {
    /// Loads the library at `path`, which must be the transport called `name`. It is never unloaded:
    /// threads of its engine may still run in it.
    pub fn load(path: &Path, name: &str) -> Result<Self> {
        let refused = |why: String| {
            Error::new(ErrorKind::Invalid, LOAD).about(format!("{}: {why}", path.display()))
        };
        // SAFETY: a transport that the user has put where transports are looked for. What its
        // constructors do is as with any library that a program is linked with.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        // Whatever comes of it: it may have threads already.
        let library = ManuallyDrop::new(library.map_err(|error| refused(error.to_string()))?);
        // SAFETY: the type is that of the header.
        let found: Result<Symbol<unsafe extern "C" fn() -> *const Table>, _> =
            unsafe { library.get(SYMBOL) };
        let get = found.map_err(|error| refused(format!("no transport: {error}")))?;
        // SAFETY: as the header has it.
        let table = unsafe { get() };
        // SAFETY: it is null, or what the header promises of it as far as it says so itself.
        let (table, about, version) = unsafe { read(table, name) }.map_err(refused)?;
        Ok(Self { table, path: path.to_owned(), about, version })
    }

    /// Whether it is at least what was said of it before it was loaded.
    pub(crate) fn keeps(&self, said: &About) -> bool {
        let Self { about, .. } = self;
        let reaches = |is_said: bool, is: bool| is || !is_said;
        about.id == said.id
            && reaches(said.scopes.local, about.scopes.local)
            && reaches(said.scopes.remote, about.scopes.remote)
            && said.peers.union(about.peers) == about.peers
            && said.sample_bytes_max <= about.sample_bytes_max
            && reaches(said.relates != Relates::Never, about.relates != Relates::Never)
    }

    /// Where it was.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Of itself and of its engine, for people.
    pub fn version(&self) -> &str {
        &self.version
    }
}

const LOAD: &str = "load a transport";
const SYMBOL: &[u8] = b"tsuji_transport\0";

/// The table, if it is one that can be used; or why not.
///
/// # Safety
///
/// It is null, or begins with its version and size, has that size, and if it has the version and the
/// size of this build it is one whose texts are null or end with a nul.
unsafe fn read(
    table: *const Table,
    expected: &str,
) -> Result<(&'static Table, About, String), String> {
    if table.is_null() {
        return Err("it answers no table".to_owned());
    }
    if !table.is_aligned() {
        return Err("its table is not aligned".to_owned());
    }
    // SAFETY: both are there in every version.
    let (version, size) = unsafe { ((*table).abi, (*table).size) };
    if version != abi::ABI {
        let age = if version < abi::ABI { "older" } else { "newer" };
        return Err(format!(
            "it has version {version} of the ABI, {age} than that of this build, {}; allowed: one built \
             with this build's tsuji_transport.h",
            abi::ABI
        ));
    }
    if size as usize != size_of::<Table>() {
        return Err(format!(
            "its table has {size} bytes and says that it is of version {version}, which has {}",
            size_of::<Table>()
        ));
    }
    let functions = (size_of::<Table>() - abi::FUNCTIONS_AT) / size_of::<usize>();
    for at in 0..functions {
        // SAFETY: from there on the table is pointers, as many as fit its size.
        let function =
            unsafe { table.cast::<u8>().add(abi::FUNCTIONS_AT).cast::<*const u8>().add(at).read() };
        if function.is_null() {
            return Err(format!("function {} of {functions} in its table is null", at + 1));
        }
    }
    // SAFETY: it is as large as a table, its functions are there, and all else may have any value.
    let table: &'static Table = unsafe { &*table };
    // SAFETY: the caller promises it.
    let (name, version) = unsafe { (text(table.name), text(table.version)) };
    let (Some(name), Some(version)) = (name, version) else {
        return Err("its table has no name or no version".to_owned());
    };
    if name != expected {
        return Err(format!("it is the transport {name:?}; allowed there: {expected:?}"));
    }
    let known = abi::SCOPE_LOCAL | abi::SCOPE_REMOTE;
    if table.scopes == 0 || table.scopes & !known != 0 {
        return Err(format!("its scopes are {:#x}; allowed: 0x1 to 0x3", table.scopes));
    }
    let known = abi::PEERS_CYCLONEDDS
        | abi::PEERS_FASTDDS
        | abi::PEERS_ZENOH
        | abi::PEERS_OTHER
        | abi::PEERS_ROS1;
    if table.peers & !known != 0 {
        return Err(format!("its peers are {:#x}; allowed: 0x0 to 0xf", table.peers));
    }
    if table.features & !abi::RELATES != 0 {
        return Err(format!("its features are {:#x}; allowed: 0x0 to 0x1", table.features));
    }
    if table.sample_bytes_max < 4 {
        let max = table.sample_bytes_max;
        return Err(format!("its largest sample has {max} bytes; allowed: at least 4"));
    }
    let has = |set: u32, bit: u32| set & bit != 0;
    let about = About {
        id: TransportId::new(&name),
        scopes: Scopes {
            intra: false,
            local: has(table.scopes, abi::SCOPE_LOCAL),
            remote: has(table.scopes, abi::SCOPE_REMOTE),
        },
        peers: Peers {
            tsuji: true,
            cyclone: has(table.peers, abi::PEERS_CYCLONEDDS),
            fast: has(table.peers, abi::PEERS_FASTDDS),
            zenoh: has(table.peers, abi::PEERS_ZENOH),
            ros1: has(table.peers, abi::PEERS_ROS1),
            other: has(table.peers, abi::PEERS_OTHER),
        },
        sample_bytes_max: table.sample_bytes_max,
        relates: match has(table.features, abi::RELATES) {
            true => Relates::Beside,
            false => Relates::Never,
        },
    };
    Ok((table, about, version))
}

/// A text, in which what is not UTF-8 is replaced.
///
/// # Safety
///
/// It is null, or ends with a nul.
pub(crate) unsafe fn text(text: *const c_char) -> Option<String> {
    // SAFETY: the caller promises it.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

//! Which ROS 2 this library was loaded into. Each has layouts of its own, so that what another one passes would be
//! misread: it is refused before anything of it is read or written.
//!
//! What the libraries of the process export is the proof. `ROS_DISTRO` is asked only where there is none.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;

use crate::error::{Result, RmwError};

/// Refuses the process of another distribution than this library was built for.
pub(crate) fn check() -> Result {
    if cfg!(test) {
        // One of the unit tests loads the librcutils of the system, of whichever distribution that is.
        return Ok(());
    }
    let named = std::env::var_os("ROS_DISTRO");
    refuse_others(&proved(), named.as_ref().map(|it| it.to_string_lossy()).as_deref())
}

/// What there is proof of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    OlderThanHumble,
    Humble,
    Iron,
    Jazzy,
    Kilted,
    NewerThanKilted,
}

const BUILT_FOR: Found = if cfg!(feature = "humble") { Found::Humble } else { Found::Jazzy };

impl Found {
    fn name(self) -> &'static str {
        match self {
            Self::OlderThanHumble => "one before Humble",
            Self::Humble => "Humble",
            Self::Iron => "Iron",
            Self::Jazzy => "Jazzy",
            Self::Kilted => "Kilted",
            Self::NewerThanKilted => "one after Kilted",
        }
    }

    /// By what one library of the process exports; `None` where that says nothing.
    fn by(
        library: Library,
        has: impl Fn(&CStr) -> bool,
        is_jazzy: impl Fn() -> bool,
    ) -> Option<Self> {
        Some(match library {
            Library::Rmw if !has(c"rmw_get_zero_initialized_init_options") => return None,
            Library::Rmw if has(c"rmw_get_zero_initialized_service_endpoint_info") => {
                Self::NewerThanKilted
            }
            Library::Rmw if has(c"rmw_enclave_options_copy") => Self::Kilted,
            Library::Rmw if !has(c"rmw_subscription_content_filter_options_init") => {
                Self::OlderThanHumble
            }
            Library::Rmw if !has(c"rmw_discovery_options_init") => Self::Humble,
            // Its rmw has the structures of Iron's; what describes messages is other than there.
            Library::Rmw if is_jazzy() => Self::Jazzy,
            Library::Rmw => Self::Iron,
            Library::Rcutils if !has(c"rcutils_set_error_state") => return None,
            Library::Rcutils if has(c"rcutils_join") => Self::Kilted,
            Library::Rcutils if has(IN_JAZZY) => Self::Jazzy,
            Library::Rcutils if has(c"rcutils_sha256_init") => Self::Iron,
            Library::Rcutils => Self::Humble,
        })
    }
}

/// Of librcutils, since Jazzy.
const IN_JAZZY: &CStr = c"rcutils_raw_steady_time_now";

/// What proves something. Only where no librmw is there, librcutils counts: what it has gained may come to older
/// distributions too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Library {
    Rmw,
    Rcutils,
}

fn refuse_others(proved: &[(Found, String)], named: Option<&str>) -> Result {
    let built_for = BUILT_FOR.name();
    let refused = |what: String| {
        Err(RmwError::unsupported(format!(
            "{what}, and this librmw_tsuji.so was built for {built_for}; allowed: {built_for}. tsuji can be built for \
             Humble and Jazzy"
        )))
    };
    if let Some((found, path)) = proved.iter().find(|(found, _)| *found != BUILT_FOR) {
        return refused(format!("{path} is of {}", found.name()));
    }
    match named {
        Some(named)
            if proved.is_empty() && !named.is_empty() && named != built_for.to_lowercase() =>
        {
            refused(format!("ROS_DISTRO={named}"))
        }
        _ => Ok(()),
    }
}

/// What the process has been found to be, with the path of each library that says so.
fn proved() -> Vec<(Found, String)> {
    let rcutils = named("librcutils.so");
    let is_jazzy =
        || Handle::GLOBAL.has(IN_JAZZY) || rcutils.iter().any(|(handle, _)| handle.has(IN_JAZZY));
    let by = |library, handles: &[(Handle, String)], global: &str| {
        let known = handles.iter().filter_map(|(handle, path)| {
            Some((Found::by(library, |name| handle.has(name), is_jazzy)?, path.clone()))
        });
        let mut found: Vec<_> = known.collect();
        if found.is_empty() {
            // It may be linked into the program.
            let in_program = Found::by(library, |name| Handle::GLOBAL.has(name), is_jazzy);
            found.extend(in_program.map(|found| (found, global.to_owned())));
        }
        found
    };
    let by_rmw = by(Library::Rmw, &named("librmw.so"), "the program's rmw");
    if !by_rmw.is_empty() {
        return by_rmw;
    }
    by(Library::Rcutils, &rcutils, "the program's rcutils")
}

/// The libraries of the process whose files' names begin so, with their paths.
fn named(name: &str) -> Vec<(Handle, String)> {
    let is_it = |path: &CString| {
        let file = Path::new(path.to_str().unwrap_or_default()).file_name();
        file.and_then(|it| it.to_str()).is_some_and(|it| it.starts_with(name))
    };
    let found = loaded().into_iter().filter(is_it);
    found
        .filter_map(|path| Some((Handle::of(&path)?, path.to_string_lossy().into_owned())))
        .collect()
}

/// A function of librcutils; null where it is not in this process.
pub(crate) fn rcutils(name: &CStr) -> *mut c_void {
    let found = Handle::GLOBAL.find(name);
    if !found.is_null() {
        return found;
    }
    // A Python extension keeps its libraries to itself.
    let mut found = named("librcutils.so").into_iter().map(|(handle, _)| handle.find(name));
    found.find(|it| !it.is_null()).unwrap_or(std::ptr::null_mut())
}

/// A library of the process, or all that it lets be found without naming one.
#[derive(Clone, Copy)]
struct Handle(*mut c_void);

impl Handle {
    const GLOBAL: Self = Self(libc::RTLD_DEFAULT);

    /// A library that is loaded. It stays so: librmw and librcutils are never unloaded while somebody calls an rmw.
    fn of(path: &CStr) -> Option<Self> {
        // SAFETY: the path ends with NUL. Nothing is loaded that is not there already.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        (!handle.is_null()).then_some(Self(handle))
    }

    fn find(self, name: &CStr) -> *mut c_void {
        // SAFETY: the handle is open, and the name ends with NUL.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }

    fn has(self, name: &CStr) -> bool {
        !self.find(name).is_null()
    }
}

/// The paths of the libraries of the process.
fn loaded() -> Vec<CString> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, all: *mut c_void) -> c_int {
        // SAFETY: dl_iterate_phdr passes an object of the process, and what it was given.
        let (name, all) = unsafe { ((*info).dlpi_name, &mut *all.cast::<Vec<CString>>()) };
        if !name.is_null() {
            // SAFETY: a name ends with NUL.
            all.push(unsafe { CStr::from_ptr(name.cast::<c_char>()) }.to_owned());
        }
        0
    }
    let mut all = Vec::<CString>::new();
    // SAFETY: `add` takes what is passed for what it is, and does not outlive this call.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut all).cast()) };
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_libraries_export_proves_the_distribution() {
        let humble = [
            "rmw_get_zero_initialized_init_options",
            "rmw_subscription_content_filter_options_init",
        ];
        let jazzy = [&humble[..], &["rmw_discovery_options_init"]].concat();
        let kilted = [&jazzy[..], &["rmw_enclave_options_copy"]].concat();
        let lyrical = [&kilted[..], &["rmw_get_zero_initialized_service_endpoint_info"]].concat();
        let check = |library, names: &[&str], is_jazzy, expect| {
            let has = |name: &CStr| names.contains(&name.to_str().unwrap());
            assert_eq!(Found::by(library, has, || is_jazzy), expect, "{names:?}");
        };
        check(Library::Rmw, &[], true, None);
        check(Library::Rmw, &humble[..1], false, Some(Found::OlderThanHumble));
        check(Library::Rmw, &humble, false, Some(Found::Humble));
        check(Library::Rmw, &jazzy, false, Some(Found::Iron));
        check(Library::Rmw, &jazzy, true, Some(Found::Jazzy));
        check(Library::Rmw, &kilted, true, Some(Found::Kilted));
        check(Library::Rmw, &lyrical, true, Some(Found::NewerThanKilted));
        let rcutils = [
            "rcutils_set_error_state",
            "rcutils_sha256_init",
            "rcutils_raw_steady_time_now",
            "rcutils_join",
        ];
        let all =
            [None, Some(Found::Humble), Some(Found::Iron), Some(Found::Jazzy), Some(Found::Kilted)];
        for (count, expect) in all.into_iter().enumerate() {
            check(Library::Rcutils, &rcutils[..count], false, expect);
        }
    }

    #[test]
    fn the_variable_counts_where_nothing_is_proved() {
        let fits = |named| refuse_others(&[], named).is_ok();
        assert!(fits(None) && fits(Some("")));
        assert_eq!(fits(Some("humble")), cfg!(feature = "humble"));
        assert_eq!(fits(Some("jazzy")), cfg!(feature = "jazzy"));
        for other in ["foxy", "iron", "kilted", "lyrical", "rolling"] {
            assert!(!fits(Some(other)), "{other}");
        }
        let proof = |found| [(found, "/opt/librmw.so".to_owned())];
        assert!(refuse_others(&proof(BUILT_FOR), Some("kilted")).is_ok());
        let refused = refuse_others(&proof(Found::Kilted), Some("jazzy")).unwrap_err().to_string();
        assert!(
            refused.starts_with(
                "/opt/librmw.so is of Kilted, and this librmw_tsuji.so was built for "
            ),
            "{refused}"
        );
    }
}

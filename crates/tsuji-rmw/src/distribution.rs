//! Which ROS 2 this library was loaded into. Each has layouts of its own, so that what one passes would be misread as
//! another's: what is not known for certain is refused before anything of it is read or written.
//!
//! What the libraries of the process export is the proof. `ROS_DISTRO` is asked only where there is none, and which of two
//! that look alike it is.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::OnceLock;

use crate::abi::Distribution;
use crate::error::{Result, RmwError};

/// The distribution of this process: found out once, when it is asked for the first time.
pub(crate) fn here() -> Result<Distribution> {
    static HERE: OnceLock<std::result::Result<Distribution, String>> = OnceLock::new();
    let here = HERE.get_or_init(|| {
        let named = std::env::var_os("ROS_DISTRO");
        judge(&proved(), named.as_ref().map(|it| it.to_string_lossy()).as_deref())
    });
    here.clone().map_err(RmwError::unsupported)
}

/// What there is proof of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    OlderThanHumble,
    Humble,
    Iron,
    Jazzy,
    Kilted,
    /// Rolling had layouts of its own for some months of 2025 and 2026.
    BetweenKiltedAndLyrical,
    /// Rolling has the same.
    Lyrical,
}

impl Found {
    /// The distribution, or how to call it in a text.
    fn distribution(self) -> std::result::Result<Distribution, &'static str> {
        match self {
            Self::OlderThanHumble => Err("one before Humble"),
            Self::Humble => Ok(Distribution::Humble),
            Self::Iron => Err("Iron"),
            Self::Jazzy => Ok(Distribution::Jazzy),
            Self::Kilted => Ok(Distribution::Kilted),
            Self::BetweenKiltedAndLyrical => Err("a Rolling between Kilted and Lyrical"),
            Self::Lyrical => Ok(Distribution::Lyrical),
        }
    }

    /// By what librmw exports; `None` where it is none.
    fn by_rmw(has: impl Fn(&CStr) -> bool, of_others: &OfOthers) -> Option<Self> {
        Some(match () {
            () if !has(c"rmw_get_zero_initialized_init_options") => return None,
            () if has(c"rmw_get_zero_initialized_service_endpoint_info") => {
                if of_others.has_buffers { Self::Lyrical } else { Self::BetweenKiltedAndLyrical }
            }
            () if has(c"rmw_enclave_options_copy") => Self::Kilted,
            () if !has(c"rmw_subscription_content_filter_options_init") => Self::OlderThanHumble,
            () if !has(c"rmw_discovery_options_init") => Self::Humble,
            // Its rmw has the structures of Iron's; what describes messages is other than there.
            () if of_others.has_steady_time => Self::Jazzy,
            () => Self::Iron,
        })
    }

    /// By what librcutils exports; `None` where it is none. Only where no librmw is there it counts: what it has gained may
    /// come to older distributions too.
    fn by_rcutils(has: impl Fn(&CStr) -> bool, of_others: &OfOthers) -> Option<Self> {
        Some(match () {
            () if !has(c"rcutils_set_error_state") => return None,
            () if of_others.has_buffers => Self::Lyrical,
            () if has(c"rcutils_join") => Self::Kilted,
            () if of_others.has_steady_time => Self::Jazzy,
            () if has(c"rcutils_sha256_init") => Self::Iron,
            () => Self::Humble,
        })
    }
}

/// What other libraries of the process say.
#[derive(Clone, Copy, Debug)]
struct OfOthers {
    /// Of librcutils, since Jazzy.
    has_steady_time: bool,
    /// Of librosidl_buffer, which librosidl_runtime_c needs since Lyrical: sequences of numbers have two flags more.
    has_buffers: bool,
}

impl OfOthers {
    fn look() -> Self {
        let has = |library, name| {
            Handle::GLOBAL.has(name) || named(library).iter().any(|(handle, _)| handle.has(name))
        };
        Self {
            has_steady_time: has("librcutils.so", c"rcutils_raw_steady_time_now"),
            has_buffers: has("librosidl_buffer.so", c"rosidl_buffer_uint8_destroy"),
        }
    }
}

/// The one distribution that all of this says, or why there is none.
fn judge(
    proved: &[(Found, String)],
    named: Option<&str>,
) -> std::result::Result<Distribution, String> {
    let refused = |what: &str| {
        let allowed = Distribution::ALL.map(Distribution::name).join(", ");
        Err(format!("{what}, which rmw_tsuji does not know; allowed: {allowed}"))
    };
    let by_name = Distribution::ALL
        .into_iter()
        .find(|it| named.is_some_and(|named| it.name().to_lowercase() == named));
    let Some((found, path)) = proved.first() else {
        return match (by_name, named) {
            (Some(named), _) => Ok(named),
            (None, Some(named)) if !named.is_empty() => refused(&format!("ROS_DISTRO is {named}")),
            _ => refused(
                "there is no librmw and no librcutils in this process, and ROS_DISTRO is not set: a distribution",
            ),
        };
    };
    if let Some((other, beside)) = proved.iter().find(|(other, _)| other != found) {
        let name = |found: Found| found.distribution().map_or_else(|name| name, Distribution::name);
        return Err(format!(
            "{path} is of {}, and {beside} of {}; allowed: libraries of one distribution",
            name(*found),
            name(*other)
        ));
    }
    match found.distribution() {
        Ok(Distribution::Lyrical) if by_name == Some(Distribution::Rolling) => {
            Ok(Distribution::Rolling)
        }
        Ok(found) => Ok(found),
        Err(name) => refused(&format!("{path} is of {name}")),
    }
}

/// What the process has been found to be, with the path of each library that says so.
fn proved() -> Vec<(Found, String)> {
    let of_others = OfOthers::look();
    let by = |library, global: &str, found_by: &dyn Fn(Handle) -> Option<Found>| {
        let known = named(library).into_iter();
        let mut found: Vec<_> =
            known.filter_map(|(handle, path)| Some((found_by(handle)?, path))).collect();
        if found.is_empty() {
            // It may be linked into the program.
            found.extend(found_by(Handle::GLOBAL).map(|found| (found, global.to_owned())));
        }
        found
    };
    let by_rmw = by("librmw.so", "the program's rmw", &|handle| {
        Found::by_rmw(|name| handle.has(name), &of_others)
    });
    if !by_rmw.is_empty() {
        return by_rmw;
    }
    by("librcutils.so", "the program's rcutils", &|handle| {
        Found::by_rcutils(|name| handle.has(name), &of_others)
    })
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
        let others = |has_steady_time, has_buffers| OfOthers { has_steady_time, has_buffers };
        let check = |names: &[&str], of_others: OfOthers, expect| {
            let has = |name: &CStr| names.contains(&name.to_str().unwrap());
            assert_eq!(Found::by_rmw(has, &of_others), expect, "{names:?}");
        };
        check(&[], others(true, false), None);
        check(&humble[..1], others(false, false), Some(Found::OlderThanHumble));
        check(&humble, others(false, false), Some(Found::Humble));
        check(&jazzy, others(false, false), Some(Found::Iron));
        check(&jazzy, others(true, false), Some(Found::Jazzy));
        check(&kilted, others(true, false), Some(Found::Kilted));
        check(&lyrical, others(true, false), Some(Found::BetweenKiltedAndLyrical));
        check(&lyrical, others(true, true), Some(Found::Lyrical));
        for (names, of_others, expect) in [
            (&[][..], others(false, false), None),
            (&["rcutils_set_error_state"], others(false, false), Some(Found::Humble)),
            (
                &["rcutils_set_error_state", "rcutils_sha256_init"],
                others(false, false),
                Some(Found::Iron),
            ),
            (&["rcutils_set_error_state"], others(true, false), Some(Found::Jazzy)),
            (
                &["rcutils_set_error_state", "rcutils_join"],
                others(true, false),
                Some(Found::Kilted),
            ),
            (
                &["rcutils_set_error_state", "rcutils_join"],
                others(true, true),
                Some(Found::Lyrical),
            ),
        ] {
            let has = |name: &CStr| names.contains(&name.to_str().unwrap());
            assert_eq!(Found::by_rcutils(has, &of_others), expect, "{names:?}");
        }
    }

    #[test]
    fn the_variable_counts_where_nothing_is_proved() {
        for distribution in Distribution::ALL {
            let named = distribution.name().to_lowercase();
            assert_eq!(judge(&[], Some(&named)), Ok(distribution));
        }
        for other in ["foxy", "iron", "mystic", "Jazzy", " jazzy"] {
            let refused = judge(&[], Some(other)).unwrap_err();
            assert_eq!(
                refused,
                format!(
                    "ROS_DISTRO is {other}, which rmw_tsuji does not know; allowed: Humble, Jazzy, Kilted, Lyrical, \
                     Rolling"
                )
            );
        }
        for nothing in [None, Some("")] {
            let refused = judge(&[], nothing).unwrap_err();
            assert!(refused.contains("ROS_DISTRO is not set"), "{refused}");
        }
    }

    #[test]
    fn what_is_proved_counts_whatever_the_variable_says() {
        let proof = |found| (found, "/opt/librmw.so".to_owned());
        assert_eq!(judge(&[proof(Found::Jazzy)], Some("kilted")), Ok(Distribution::Jazzy));
        assert_eq!(judge(&[proof(Found::Jazzy)], Some("rolling")), Ok(Distribution::Jazzy));
        assert_eq!(judge(&[proof(Found::Lyrical)], None), Ok(Distribution::Lyrical));
        assert_eq!(judge(&[proof(Found::Lyrical)], Some("rolling")), Ok(Distribution::Rolling));
        let refused = judge(&[proof(Found::Iron)], Some("jazzy")).unwrap_err();
        let expect = "/opt/librmw.so is of Iron, which rmw_tsuji does not know; allowed: Humble, ";
        assert!(refused.starts_with(expect), "{refused}");
        let refused = judge(&[proof(Found::Jazzy), proof(Found::Kilted)], None).unwrap_err();
        let expect = "/opt/librmw.so is of Jazzy, and /opt/librmw.so of Kilted; allowed: libraries of one distribution";
        assert_eq!(refused, expect);
    }
}

//! What the C library does with memory that was given back.
//!
//! glibc returns a picture's memory to the kernel as soon as the picture is dropped, so that the next one, a 30th of a second
//! later, costs a page fault for every 4 KiB: more than its whole way. So a process that begins a context keeps what was
//! given back, up to a limit, where nobody has said otherwise.

use std::ffi::OsString;
use std::sync::Once;

/// How many bytes at the end of a heap are kept that were given back; 0 leaves the C library as it is.
const VARIABLE: &str = "TSUJI_RMW_KEEP_MEMORY";

/// Ten pictures of Full HD.
const KEPT_DEFAULT: i32 = 64 << 20;

/// Larger pieces than these are mapped and given back one by one. It is the most that glibc allows.
const MAPPED: i32 = 32 << 20;

/// What says that the user has set this himself.
const OF_GLIBC: [&str; 4] =
    ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_TOP_PAD_"];

/// Has the process keep memory, the first time that this is called.
pub(crate) fn keep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| match bytes_kept(|name| std::env::var_os(name)) {
        Ok(None) => {}
        Ok(Some(bytes)) => set(bytes),
        Err(said) => {
            let most = i32::MAX;
            tracing::warn!("{VARIABLE} is {said:?}; allowed: bytes, 0 to {most}. It is taken for {KEPT_DEFAULT}");
            set(KEPT_DEFAULT);
        }
    });
}

/// How much is to be kept; none where the C library is left as it is.
fn bytes_kept(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<i32>, OsString> {
    if let Some(said) = variable(VARIABLE).filter(|said| !said.is_empty()) {
        return match said.to_str().and_then(|said| said.parse().ok()) {
            Some(0) => Ok(None),
            Some(bytes @ 1..) => Ok(Some(bytes)),
            _ => Err(said),
        };
    }
    let tunes = |name: &&str| variable(name).is_some();
    let by_tunables = variable("GLIBC_TUNABLES")
        .is_some_and(|said| said.to_string_lossy().contains("glibc.malloc."));
    let is_set = OF_GLIBC.iter().any(tunes) || by_tunables;
    Ok((!is_set).then_some(KEPT_DEFAULT))
}

#[cfg(target_env = "gnu")]
fn set(kept: i32) {
    // Either alone would end what glibc does by itself with the other.
    for (what, bytes) in [(libc::M_MMAP_THRESHOLD, MAPPED), (libc::M_TRIM_THRESHOLD, kept)] {
        // SAFETY: in glibc it takes the lock of the first heap for what it changes. Its manual calls it unsafe beside other
        // threads since these read the two numbers without one: each reads the old or the new, and both are fine.
        if unsafe { libc::mallopt(what, bytes) } != 1 {
            tracing::debug!(what, bytes, "the C library does not take this setting");
        }
    }
}

#[cfg(not(target_env = "gnu"))]
fn set(_: i32) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_says_counts() {
        let check = |said: &[(&str, &str)], expect: Result<Option<i32>, &str>| {
            let variable = |name: &str| {
                said.iter().find(|(its, _)| *its == name).map(|(_, value)| (*value).into())
            };
            assert_eq!(bytes_kept(variable), expect.map_err(Into::into), "{said:?}");
        };
        check(&[], Ok(Some(KEPT_DEFAULT)));
        check(&[(VARIABLE, "")], Ok(Some(KEPT_DEFAULT)));
        check(&[(VARIABLE, "0")], Ok(None));
        check(&[(VARIABLE, "1048576")], Ok(Some(1 << 20)));
        for bad in ["-1", "1M", "2147483648", "much"] {
            check(&[(VARIABLE, bad)], Err(bad));
        }
        check(&[("MALLOC_TRIM_THRESHOLD_", "1000")], Ok(None));
        check(&[("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=1")], Ok(None));
        check(&[("GLIBC_TUNABLES", "glibc.cpu.hwcaps=x")], Ok(Some(KEPT_DEFAULT)));
        check(&[("MALLOC_TOP_PAD_", "1"), (VARIABLE, "5")], Ok(Some(5)));
    }
}

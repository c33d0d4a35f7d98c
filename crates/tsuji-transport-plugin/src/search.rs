//! Where plug-ins are looked for.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tsuji_platform::process;

/// Names the folders that are looked in before those of the system, with colons between.
pub const PATH_VARIABLE: &str = "TSUJI_TRANSPORT_PATH";

/// Where a plug-in was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The library that is taken.
    pub path: PathBuf,
    /// Other libraries of its name, further on, which are not.
    pub hidden: Vec<PathBuf>,
}

/// The folders in which transports are looked for, first those that are taken first: that of the program
/// and the `lib` beside it, those of [`PATH_VARIABLE`], those of the system. There packages put them into
/// `tsuji/transports`, since no program links with them.
pub fn folders() -> Vec<PathBuf> {
    // A program with the rights of others takes no library that its user may choose, as with the system's own.
    // SAFETY: reads what the kernel gave this process.
    let is_secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    let program = env::current_exe().ok().filter(|_| !is_secure);
    listed(program.as_deref(), env::var_os(PATH_VARIABLE).filter(|_| !is_secure))
}

fn listed(program: Option<&Path>, path: Option<OsString>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    if let Some(folder) = program.and_then(Path::parent) {
        all.push(folder.to_owned());
        all.extend(folder.parent().map(|it| it.join("lib")));
    }
    // A relative one would be another for each working directory.
    all.extend(env::split_paths(&path.unwrap_or_default()).filter(|it| it.is_absolute()));
    let multiarch = format!("{}-linux-gnu", env::consts::ARCH);
    for root in ["/usr/local/lib", "/usr/lib"].map(Path::new) {
        for libraries in [root.join(&multiarch), root.to_owned()] {
            all.extend([libraries.join("tsuji/transports"), libraries]);
        }
    }
    let mut seen = Vec::new();
    all.retain(|it| {
        let is_new = !seen.contains(it);
        seen.push(it.clone());
        is_new
    });
    all
}

/// The library of this file name in these folders, which is not loaded for it; or why there is none.
pub fn locate(file: &str, folders: &[PathBuf]) -> Result<Located, String> {
    if file.is_empty() || file.contains('/') {
        return Err(format!(
            "{file:?} is no library; allowed: the name of a file, or a path from the root"
        ));
    }
    let (mut found, unsafe_ones): (Vec<PathBuf>, Vec<PathBuf>) = folders
        .iter()
        .map(|it| it.join(file))
        .filter(|it| it.is_file())
        .partition(|it| is_safe(it));
    let mut found = found.drain(..);
    let Some(path) = found.next() else {
        if let [first, ..] = &unsafe_ones[..] {
            let first = first.display();
            return Err(format!(
                "{first} is not loaded: it, or its folder, is not this user's or root's alone to write to"
            ));
        }
        return Err(format!(
            "not installed: {file} is in none of the folders where transports are looked for; \
             {PATH_VARIABLE} adds some"
        ));
    };
    // The same file by another way is no other.
    let is_same = |it: &PathBuf| it.canonicalize().ok() == path.canonicalize().ok();
    let hidden = found.filter(|it| !is_same(it)).collect();
    Ok(Located { path, hidden })
}

/// Whether nobody else can have put it there.
fn is_safe(library: &Path) -> bool {
    let user = process::user_id();
    [Some(library), library.parent()].into_iter().flatten().all(|it| {
        it.metadata().is_ok_and(|it| it.mode() & 0o002 == 0 && [0, user].contains(&it.uid()))
    })
}

/// The file in which a transport of this name is, unless somebody says another.
pub fn file_name(name: &str) -> String {
    format!("libtsuji_transport_{name}.so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_in_the_order_in_which_they_are_taken() {
        let path = Some(OsString::from("/a:relative:/usr/lib:/a"));
        let all = listed(Some(Path::new("/opt/robot/bin/node")), path);
        let named: Vec<&str> = all.iter().map(|it| it.to_str().unwrap()).collect();
        assert_eq!(named[..4], ["/opt/robot/bin", "/opt/robot/lib", "/a", "/usr/lib"]);
        assert_eq!(named.iter().filter(|it| **it == "/usr/lib").count(), 1);
        let multiarch = format!("/usr/lib/{}-linux-gnu", env::consts::ARCH);
        assert_eq!(
            named[named.len() - 3..],
            [&format!("{multiarch}/tsuji/transports"), &multiarch, "/usr/lib/tsuji/transports"]
        );
    }

    #[test]
    fn of_two_the_first_is_taken_and_the_other_told() {
        let root = env::temp_dir().join(format!("tsuji-locate-{}", std::process::id()));
        let folders = [root.join("none"), root.join("one"), root.join("two"), root.join("three")];
        for folder in &folders[1..3] {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join(file_name("x")), "").unwrap();
        }
        std::os::unix::fs::symlink(&folders[1], &folders[3]).unwrap();
        let found = locate(&file_name("x"), &folders).unwrap();
        assert_eq!(found.path, folders[1].join(file_name("x")));
        assert_eq!(found.hidden, [folders[2].join(file_name("x"))]);
        // What somebody else may have put there is passed over.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&folders[1], open).unwrap();
        assert_eq!(
            locate(&file_name("x"), &folders).unwrap().path,
            folders[2].join(file_name("x"))
        );
        let error = locate(&file_name("x"), &folders[..2]).unwrap_err();
        assert!(error.contains("is not loaded"), "{error}");
        let error = locate(&file_name("y"), &folders).unwrap_err();
        assert!(error.contains("libtsuji_transport_y.so"), "{error}");
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_name_is_no_path() {
        for name in ["", "../x.so", "/x.so"] {
            assert!(locate(name, &[]).unwrap_err().contains("is no library"), "{name:?}");
        }
    }
}

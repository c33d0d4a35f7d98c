//! Builds the plug-ins of DDS Security from the sources of Cyclone DDS that its crate is built from, with the changes in `changes.rs`.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

mod changes;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=changes.rs");
    let of_crate = |key: &str| env::var(format!("DEP_TSUJI_CYCLONEDDS_{key}")).map(PathBuf::from);
    println!("cargo::rerun-if-changed=src/host.c");
    let (installed, source) = (of_crate("INSTALLED")?, of_crate("SOURCE")?.join("src/security"));
    let copy = PathBuf::from(env::var("OUT_DIR")?).join("source");
    match fs::remove_dir_all(&copy) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let sources = changed(&source)?;
    for (path, text) in &sources {
        let to = copy.join(path);
        to.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(to, text)?;
    }
    // What Rust exports is seen, and nothing else.
    let export = copy.join("generated/dds/security/export.h");
    export.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(export, "#define SECURITY_EXPORT\n")?;
    let mut build = cc::Build::new();
    build.file("src/host.c").include(of_crate("SHIM")?);
    build.include(installed.join("include")).includes(
        ["generated", "openssl/include", "builtin_plugins/include"].map(|it| copy.join(it)),
    );
    let is_source = |path: &&PathBuf| path.extension().is_some_and(|it| it == "c");
    build.files(sources.keys().filter(is_source).map(|it| copy.join(it)));
    // As they are released: without assertions, which whoever sends something could make fail.
    build.flag("-std=gnu11").define("_GNU_SOURCE", None).define("NDEBUG", None).warnings(false);
    build.flag("-Werror=implicit-function-declaration").flag("-fvisibility=hidden");
    build
        .try_compile("dds-security")
        .map_err(|error| format!("{error}; it needs the headers of OpenSSL 3 (libssl-dev)"))?;
    println!("cargo::rustc-link-lib=crypto");
    Ok(())
}

/// What the engine alone needs: it has threads and loads libraries.
const OF_ENGINE: [&str; 2] = ["dds_security_fsm.c", "dds_security_plugins.c"];

/// The files of the plug-ins by their paths, but for those of tests, as they are built.
fn changed(source: &Path) -> Result<BTreeMap<PathBuf, String>, Box<dyn Error>> {
    let mut sources = BTreeMap::new();
    for folder in ["builtin_plugins", "openssl", "core/src"] {
        read_folder(source, Path::new(folder), &mut sources)?;
    }
    for (file, before, after) in changes::CHANGES {
        let text =
            sources.get_mut(Path::new(file)).ok_or_else(|| format!("{file} is not there"))?;
        if text.matches(before).count() != 1 {
            return Err(format!("{file}: this is not there once:\n{before}").into());
        }
        *text = text.replacen(before, after, 1);
    }
    Ok(sources)
}

fn read_folder(
    root: &Path,
    folder: &Path,
    sources: &mut BTreeMap<PathBuf, String>,
) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let path = folder.join(entry?.file_name());
        if root.join(&path).is_dir() {
            if !path.ends_with("tests") {
                read_folder(root, &path, sources)?;
            }
        } else if path.extension().is_some_and(|it| it == "c" || it == "h")
            && !OF_ENGINE.iter().any(|it| path.ends_with(it))
        {
            sources.insert(path.clone(), fs::read_to_string(root.join(path))?);
        }
    }
    Ok(())
}

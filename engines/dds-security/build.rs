//! Builds the plug-ins of DDS Security from the sources of Cyclone DDS that its crate is built from, with the changes in `changes.rs`.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};

use sources::{Sources, write_if_other};

mod changes;
#[path = "../../crates/tsuji-transport-cyclonedds/sources.rs"]
mod sources;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=changes.rs");
    println!("cargo::rerun-if-changed=src/host.c");
    println!("cargo::rerun-if-changed=../../crates/tsuji-transport-cyclonedds/sources.rs");
    let of_crate = |key: &str| env::var(format!("DEP_TSUJI_CYCLONEDDS_{key}")).map(PathBuf::from);
    let (installed, source) = (of_crate("INSTALLED")?, of_crate("SOURCE")?.join("src/security"));
    let copy = PathBuf::from(env::var("OUT_DIR")?).join("source");
    let sources = changed(&source)?;
    for (path, bytes) in &sources {
        write_if_other(&copy.join(path), bytes)?;
    }
    // What Rust exports is seen, and nothing else.
    write_if_other(&copy.join("generated/dds/security/export.h"), b"#define SECURITY_EXPORT\n")?;
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

/// What the engine alone needs, which has threads and loads libraries, and what is for tests.
const LEFT_OUT: [&str; 3] = ["dds_security_fsm.c", "dds_security_plugins.c", "tests"];

fn changed(source: &Path) -> Result<Sources, Box<dyn Error>> {
    let mut sources = Sources::new();
    let is_taken = |path: &Path| !LEFT_OUT.iter().any(|it| path.ends_with(it));
    for folder in ["builtin_plugins", "openssl", "core/src"] {
        sources::read_folder(source, Path::new(folder), &is_taken, &mut sources)?;
    }
    sources::change(&mut sources, changes::CHANGES)?;
    Ok(sources)
}

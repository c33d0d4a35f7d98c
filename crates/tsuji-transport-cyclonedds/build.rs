//! Builds Cyclone DDS as a static library, and the shim over it.
//!
//! Its sources are those that the crate `cyclors` carries, found by `cargo metadata`, with the changes in `changes.rs`.
//! `TSUJI_CYCLONEDDS_SOURCE` names another folder of Cyclone DDS 11. `TSUJI_CYCLONEDDS_BUILD` names one for what is built, in
//! place of OUT_DIR, where other builds find it.

use std::error::Error;
use std::path::{self, Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use recipe::Recipe;
use sources::{Sources, write_if_other};

mod changes;
mod recipe;
mod shared;
mod sources;

fn main() -> Result<(), Box<dyn Error>> {
    // It documents crates where there is no network, and links nothing.
    if env::var_os("DOCS_RS").is_some() {
        return Ok(());
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=changes.rs");
    println!("cargo::rerun-if-changed=recipe.rs");
    println!("cargo::rerun-if-changed=shared.rs");
    println!("cargo::rerun-if-changed=sources.rs");
    println!("cargo::rerun-if-changed=shim");
    println!("cargo::rerun-if-env-changed={SOURCE}");
    let source = match env::var_os(SOURCE) {
        Some(folder) => PathBuf::from(folder),
        None => source_in_registry()?,
    };
    if !source.join("src/core/ddsc/include/dds/dds.h").is_file() {
        return Err(format!(
            "{} is not a folder of Cyclone DDS; allowed in {SOURCE}: the root of its sources",
            source.display()
        )
        .into());
    }
    let sources = changed(&source)?;
    let recipe = Recipe::new(&sources)?;
    let built = match env::var_os(SHARED) {
        Some(folder) => shared::build_once(&path::absolute(folder)?, &recipe, || {
            build_engine(&sources, &recipe)
        })?,
        None => build_engine(&sources, &recipe)?,
    };
    cc::Build::new()
        .file("shim/shim.c")
        .include(built.join("include"))
        .flag("-std=c11")
        .flag("-fvisibility=hidden")
        .warnings(true)
        .extra_warnings(true)
        .compile("tsuji-cyclonedds-shim");
    // For the crate that builds the plug-ins of DDS Security (engines/dds-security).
    println!("cargo::metadata=installed={}", built.display());
    println!("cargo::metadata=source={}", source.display());
    println!("cargo::metadata=shim={}", path::absolute("shim")?.display());
    println!("cargo::rustc-link-search=native={}", built.join("lib").display());
    println!("cargo::rustc-link-lib=static=ddsc");
    for library in ["dl", "m", "pthread", "rt"] {
        println!("cargo::rustc-link-lib={library}");
    }
    Ok(())
}

const SOURCE: &str = "TSUJI_CYCLONEDDS_SOURCE";

/// Names a folder where the library is built once for all workspaces and profiles. That it is set or not is no reason to build
/// again: what is built is the same.
const SHARED: &str = "TSUJI_CYCLONEDDS_BUILD";

/// Where the sources are that cargo has put there for a manifest of nothing but the crate that carries them. This crate's own is no
/// use: its other dependencies may be where cargo finds them for nobody but the build that goes on, as when it is checked for
/// publication. Versions and checksums are those of the lock file beside this crate, or of its workspace.
fn source_in_registry() -> Result<PathBuf, Box<dyn Error>> {
    let carrier = PathBuf::from(env::var("OUT_DIR")?).join("carrier");
    fs::create_dir_all(&carrier)?;
    fs::write(carrier.join("lib.rs"), "")?;
    let manifest = carrier.join("Cargo.toml");
    fs::write(&manifest, CARRIER_MANIFEST)?;
    let crate_folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let locks = crate_folder.ancestors().map(|folder| folder.join("Cargo.lock"));
    if let Some(lock) = locks.into_iter().find(|lock| lock.is_file()) {
        fs::write(carrier.join("Cargo.lock"), fs::read(lock)?)?;
    }
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--filter-platform"])
        .arg(env::var("TARGET")?)
        .arg("--manifest-path")
        .arg(&manifest)
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "cargo metadata, to find the sources of Cyclone DDS, which {SOURCE} can name instead: {said}"
        )
        .into());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let carrier = packages.into_iter().find(|package| package["name"] == "cyclors");
    let manifest = carrier.and_then(|package| package["manifest_path"].as_str());
    let folder = manifest.and_then(|manifest| Path::new(manifest).parent());
    let folder = folder.ok_or("cargo metadata does not know cyclors")?;
    Ok(folder.join("cyclonedds"))
}

/// The version is that in this crate's own manifest. A workspace that the folder may lie in is none of its.
const CARRIER_MANIFEST: &str = r#"[package]
name = "carrier"
edition = "2024"

[lib]
path = "lib.rs"

[dependencies]
cyclors = "=0.4.0"

[workspace]
"#;

fn changed(source: &Path) -> Result<Sources, Box<dyn Error>> {
    let left_out = ["docs", "examples", "fuzz", "ports", "WiX"].map(Path::new);
    let mut sources = Sources::new();
    let is_taken = |path: &Path| !left_out.contains(&path);
    sources::read_folder(source, Path::new(""), &is_taken, &mut sources)?;
    for name in changes::ADDED {
        let added = fs::read(Path::new("shim").join(name))?;
        sources.insert(Path::new("src/core/ddsi/src").join(name), added);
    }
    sources::change(&mut sources, changes::CHANGES)?;
    Ok(sources)
}

/// The compiler's flags for this target, and an error for a change that calls what it does not know, which would be built wrongly. By itself the
/// crate `cmake` adds `-w`, which hides that too.
fn c_flags() -> String {
    let compiler = cc::Build::new().get_compiler();
    let kept = compiler.args().iter().filter_map(|it| it.to_str());
    // Of those that follow from the profile it is built without: it is the same in each.
    let of_profile = ["-O", "-g", "-w", "-W", "-fno-omit", "-mno-omit"];
    let kept = kept.filter(|flag| !of_profile.iter().any(|it| flag.starts_with(it)));
    kept.chain(["-Werror=implicit-function-declaration"]).collect::<Vec<_>>().join(" ")
}

/// What tsuji does not use is left out.
const OFF: &[&str] = &[
    "BUILD_SHARED_LIBS",
    "BUILD_IDLC",
    "BUILD_DDSPERF",
    "BUILD_TESTING",
    "BUILD_EXAMPLES",
    "ENABLE_LTO",
    "ENABLE_SSL",
    "ENABLE_TYPELIB",
    "ENABLE_TYPE_DISCOVERY",
    "ENABLE_TOPIC_DISCOVERY",
    "ENABLE_QOS_PROVIDER",
    "ENABLE_SOURCE_SPECIFIC_MULTICAST",
    "ENABLE_ICEORYX",
    "WERROR",
];

/// Builds and installs the library below OUT_DIR. What has not changed keeps its time, so that it is not built again. All is built
/// anew after a build that was cut off, which can have left half a file that looks like a whole one, and where it is built in
/// another way.
fn build_engine(sources: &Sources, recipe: &Recipe) -> Result<PathBuf, Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let (copy, done) = (out.join("source"), out.join("done"));
    if fs::read_to_string(&done).is_ok_and(|it| it == recipe.way()) {
        fs::remove_file(&done)?;
    } else {
        remove_folder(&copy)?;
        remove_folder(&out.join("build"))?;
    }
    for (path, bytes) in sources {
        write_if_other(&copy.join(path), bytes)?;
    }
    let mut config = cmake::Config::new(&copy);
    // Optimised in every profile: the tests time out no less for a slow engine.
    config.profile("Release").define("CMAKE_INSTALL_LIBDIR", "lib").build_target("ddsc");
    config.define("CMAKE_C_FLAGS", c_flags());
    OFF.iter().for_each(|option| {
        config.define(option, "OFF");
    });
    let built = config.build().join("build");
    // What the library alone needs of an installation: the target `install` would build its tests.
    install(&built);
    fs::write(&done, recipe.way())?;
    Ok(built.join("installed"))
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn install(built: &Path) {
    let prefix = built.join("installed");
    let _ = fs::remove_dir_all(&prefix);
    let status = Command::new("cmake")
        .args(["--install"])
        .arg(built)
        .arg("--prefix")
        .arg(&prefix)
        .stdout(std::process::Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()), "cmake --install {}", built.display());
}

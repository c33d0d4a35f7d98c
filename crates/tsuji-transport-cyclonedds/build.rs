//! Builds Cyclone DDS as a static library, and the shim over it.
//!
//! Its sources are those that the crate `cyclors` carries, found by `cargo metadata`.
//! `TSUJI_CYCLONEDDS_SOURCE` names another folder of Cyclone DDS 11.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
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
    let built = build_engine(&source);
    cc::Build::new()
        .file("shim/shim.c")
        .include(built.join("include"))
        .flag("-std=c11")
        .flag("-fvisibility=hidden")
        .warnings(true)
        .extra_warnings(true)
        .compile("tsuji-cyclonedds-shim");
    println!("cargo::rustc-link-search=native={}", built.join("lib").display());
    println!("cargo::rustc-link-lib=static=ddsc");
    for library in ["dl", "m", "pthread", "rt"] {
        println!("cargo::rustc-link-lib={library}");
    }
    Ok(())
}

const SOURCE: &str = "TSUJI_CYCLONEDDS_SOURCE";

/// The crate that carries the sources.
const CARRIER: &str = "cyclors";

/// Where cargo has put the sources. A condition that only this call meets brings the crate into
/// view, and no build of it.
fn source_in_registry() -> Result<PathBuf, Box<dyn Error>> {
    let manifest = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("Cargo.toml");
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform"])
        .arg(env::var("TARGET")?)
        .arg("--manifest-path")
        .arg(&manifest)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", "--cfg tsuji_cyclonedds_source")
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo metadata, to find the sources of Cyclone DDS: {said}").into());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let carrier = packages.into_iter().find(|package| package["name"] == CARRIER);
    let manifest = carrier.and_then(|package| package["manifest_path"].as_str());
    let folder = manifest.and_then(|manifest| Path::new(manifest).parent());
    let folder = folder.ok_or_else(|| format!("cargo metadata does not know {CARRIER}"))?;
    Ok(folder.join("cyclonedds"))
}

/// Builds and installs the library below OUT_DIR. What tsuji does not use is left out.
fn build_engine(source: &Path) -> PathBuf {
    let off = [
        "BUILD_SHARED_LIBS",
        "BUILD_IDLC",
        "BUILD_DDSPERF",
        "BUILD_TESTING",
        "BUILD_EXAMPLES",
        "ENABLE_LTO",
        "ENABLE_SECURITY",
        "ENABLE_SSL",
        "ENABLE_TYPELIB",
        "ENABLE_TYPE_DISCOVERY",
        "ENABLE_TOPIC_DISCOVERY",
        "ENABLE_QOS_PROVIDER",
        "ENABLE_SOURCE_SPECIFIC_MULTICAST",
        "ENABLE_ICEORYX",
        "WERROR",
    ];
    let mut config = cmake::Config::new(source);
    // Optimised in every profile: the tests time out no less for a slow engine.
    config.profile("Release").define("CMAKE_INSTALL_LIBDIR", "lib").build_target("ddsc");
    off.iter().for_each(|option| {
        config.define(option, "OFF");
    });
    let built = config.build().join("build");
    // What the library alone needs of an installation: the target `install` would build its tests.
    install(&built);
    built.join("installed")
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

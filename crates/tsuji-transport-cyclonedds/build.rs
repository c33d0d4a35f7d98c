//! Builds Cyclone DDS as a static library, and the shim over it.
//!
//! Its sources are those that the crate `cyclors` carries, found by `cargo metadata`, with the changes in `changes.rs`.
//! `TSUJI_CYCLONEDDS_SOURCE` names another folder of Cyclone DDS 11.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

mod changes;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=changes.rs");
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
    let built = build_engine(&changed(&source)?);
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

/// A copy of the sources below OUT_DIR, with the changes. What has not changed keeps its time, so that it is not built
/// again.
fn changed(source: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let copy = PathBuf::from(env::var("OUT_DIR")?).join("source");
    let left_out = ["docs", "examples", "fuzz", "ports", "WiX"];
    copy_folder(source, &copy, &|name| !left_out.contains(&name))?;
    let shim = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("shim");
    for name in changes::ADDED {
        write_if_other(&copy.join("src/core/ddsi/src").join(name), &fs::read(shim.join(name))?)?;
    }
    let mut texts = BTreeMap::new();
    for (file, before, after) in changes::CHANGES {
        if !texts.contains_key(file) {
            texts.insert(file, fs::read_to_string(source.join(file))?);
        }
        let Some(text) = texts.get_mut(file).filter(|it| it.matches(before).count() == 1) else {
            return Err(format!("{file}: this is not there once:\n{before}").into());
        };
        *text = text.replacen(before, after, 1);
    }
    for (file, text) in texts {
        write_if_other(&copy.join(file), text.as_bytes())?;
    }
    Ok(copy)
}

/// Copies a folder, and of its own entries those that `is_taken`.
fn copy_folder(from: &Path, to: &Path, is_taken: &dyn Fn(&str) -> bool) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        let is_changed = changes::CHANGES.iter().any(|(file, ..)| path.ends_with(file));
        if is_changed || !name.to_str().is_some_and(is_taken) {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => copy_folder(&path, &to.join(name), &|_| true)?,
            false => write_if_other(&to.join(name), &fs::read(&path)?)?,
        }
    }
    Ok(())
}

fn write_if_other(to: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::read(to).is_ok_and(|there| there == bytes) {
        true => Ok(()),
        false => fs::write(to, bytes),
    }
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
    config.define("CMAKE_C_FLAGS", c_flags());
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

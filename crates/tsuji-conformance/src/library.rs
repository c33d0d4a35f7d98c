use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles C to the file `out`, with `cpp/include` among the folders of headers and these further words
/// for the compiler, which `CC` names.
pub fn compile(source: &Path, out: &Path, words: &[&str]) {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let made = out.with_extension(format!("{}-{run}", std::process::id()));
    let output = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-pthread", "-I"])
        .arg(repository().join("cpp/include"))
        .args(words)
        .arg(source)
        .arg("-o")
        .arg(&made)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Whole or not at all, where several processes compile the same.
    std::fs::rename(made, out).unwrap();
}

/// The example transport in C as a library in `folder`.
pub fn example_transport(folder: &Path) -> PathBuf {
    let out = folder.join("libtsuji_transport_example.so");
    let source = repository().join("cpp/example/tsuji_transport_example.c");
    compile(&source, &out, &["-shared", "-fPIC", "-fvisibility=hidden"]);
    out
}

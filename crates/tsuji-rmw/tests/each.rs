//! A program in C for each distribution, laid out by that one's declarations, drives `librmw_tsuji.so` from the options of a
//! context to its end. It needs no ROS 2, so also those are tried that are nowhere to be had.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::process::Command;

use rmw_tsuji::abi::Distribution;

#[test]
fn each_distribution_from_init_to_fini() {
    let deps = std::env::current_exe().unwrap();
    let library = deps.with_file_name("librmw_tsuji.so");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("each");
    std::fs::create_dir_all(&folder).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/each.c");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    for distribution in Distribution::ALL {
        let name = distribution.name().to_lowercase();
        let program = folder.join(&name);
        let mut command = Command::new(&compiler);
        command.args(["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror"]);
        command.arg(format!("-DTSUJI_RMW_{}", name.to_uppercase()));
        let output = command.arg(&source).args(["-ldl", "-o"]).arg(&program).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let output = Command::new(&program)
            .arg(&library)
            .env("ROS_DISTRO", &name)
            .env("TSUJI_INTEROP", "none")
            .env("TSUJI_RUNTIME_DIR", folder.join(format!("{name}.run")))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said == "done\n", "{name}: {:?}: {said}", output.status);
    }
}

//! The program of this crate, as a process.

use std::process::Command;

#[test]
fn it_receives_what_it_publishes() {
    let folder = std::env::temp_dir().join(format!("own-messages-{}", std::process::id()));
    let ended = Command::new(env!("CARGO_BIN_EXE_own-messages"))
        .env("TSUJI_RUNTIME_DIR", &folder)
        .env("TSUJI_INTEROP", "none")
        .output()
        .unwrap();
    let out = String::from_utf8(ended.stdout).unwrap();
    let lines: Vec<_> = out.lines().collect();
    assert!(
        ended.status.success() && lines.len() == 3,
        "{out}{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    assert_eq!(lines[0], "B-0042 of base_link: 100 %, 4 cells, the first of 3.7 V");
    std::fs::remove_dir_all(folder).unwrap();
}

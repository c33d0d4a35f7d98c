//! What programs say to their users names nothing of the source tree, which an installed user does not have.

/// Words of somebody who has the sources.
const OF_SOURCES: &[&str] = &[
    "scripts/",
    "target/debug",
    "target/release",
    "cargo build",
    "cargo run",
    "cargo xtask",
    "--path crates",
    "`make ",
];

/// Begins the tests at the end of a file.
const TESTS: &str = "#[cfg(test)]";

/// Texts in the source of a program, or of a library that programs are linked with, that name the source tree.
pub(crate) fn of_sources(path: &str, text: &str) -> Vec<String> {
    let is_rust = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    let is_python = path.starts_with("python/package/") && path.ends_with(".py");
    // The suite is run by those who write transports, in the source tree.
    if !is_rust && !is_python || path.starts_with("crates/tsuji-conformance/") {
        return Vec::new();
    }
    let is_comment = |line: &str| {
        let line = line.trim_start();
        let is_help = line.starts_with("///") && path.starts_with("crates/tsuji-cli/");
        !is_help && (line.starts_with("//") || line.starts_with('#'))
    };
    let shipped = text.lines().take_while(|line| line.trim() != TESTS).enumerate();
    shipped
        .filter(|(_, line)| !is_comment(line) && OF_SOURCES.iter().any(|it| line.contains(it)))
        .map(|(at, line)| {
            format!("{path}:{}: an installed user has no source tree: {}", at + 1, line.trim())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, lines: &[usize]) {
        let found = of_sources(path, text);
        let begins: Vec<_> = lines.iter().map(|it| format!("{path}:{it}: ")).collect();
        assert_eq!(found.len(), begins.len(), "{found:?}");
        assert!(found.iter().zip(&begins).all(|(it, begin)| it.starts_with(begin)), "{found:?}");
    }

    #[test]
    fn what_is_said_names_no_script() {
        let install = "let a = 1;\nlet mend = \"scripts/zenoh install\";";
        check("crates/tsuji-cli/src/doctor.rs", install, &[2]);
        check("python/package/tsuji/node.py", install, &[2]);
        check("crates/tsuji/src/registry.rs", "warn!(\"as \\\n  `make demo` does\")", &[2]);
        check("crates/tsuji-cli/src/main.rs", "/// Started by `make demo`\nBridge,", &[1]);
    }

    #[test]
    fn comments_tests_and_what_is_not_installed_may() {
        check(
            "crates/tsuji/src/registry.rs",
            "// Built by scripts/zenoh.\n/// As `make test`.",
            &[],
        );
        check("crates/tsuji/src/a.rs", "fn a() {}\n#[cfg(test)]\nmod tests { \"scripts/x\" }", &[]);
        check("crates/tsuji/tests/a.rs", "\"scripts/zenoh\"", &[]);
        check("xtask/src/main.rs", "\"cargo xtask tidy\"", &[]);
    }
}

//! What the laboratory says of itself and what it refuses. Nothing is measured.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test says what it wants")]

use std::process::Command;

/// Runs it with these words, and answers its exit code, what it printed and what it complained of.
fn run(words: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let runner = std::env::var("TSUJI_TEST_RUNNER").unwrap_or_default();
    let mut start = runner.split_whitespace().chain([env!("CARGO_BIN_EXE_tsuji-lab")]);
    let mut command = Command::new(start.next().unwrap());
    command.args(start).args(words).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    (output.status.code(), out, err)
}

#[test]
fn it_has_a_help() {
    let (code, out, err) = run(&["--help"], &[]);
    assert_eq!((code, &*err), (Some(0), ""));
    assert!(out.contains("Usage: tsuji lab"), "{out}");
    let (code, out, err) = run(&["--version"], &[]);
    assert_eq!((code, &*err), (Some(0), ""));
    assert_eq!(out, format!("tsuji-lab {}\n", env!("CARGO_PKG_VERSION")));
    let (code, out, err) = run(&["latency", "--help"], &[]);
    assert_eq!((code, &*err), (Some(0), ""));
    assert!(out.contains("Usage: tsuji lab latency [OPTIONS]"), "{out}");
    let (code, out, err) = run(&["tune", "--help"], &[]);
    assert_eq!((code, &*err), (Some(0), ""));
    assert!(out.contains("Usage: tsuji tune [OPTIONS]"), "{out}");
}

#[test]
fn every_help_fits_its_terminal() {
    let experiments = [
        "all", "latency", "jitter", "camera", "bridge", "budgets", "handover", "matrix", "report",
        "compare", "tune",
    ];
    let all = [vec!["--help"]].into_iter().chain(experiments.map(|it| vec![it, "--help"]));
    for words in all {
        for (columns, width) in [("80", 80), ("300", 100)] {
            let help = run(&words, &[("COLUMNS", columns)]).1;
            let wide: Vec<_> = help.lines().filter(|it| width < it.chars().count()).collect();
            assert!(wide.is_empty() && help.contains("Usage: tsuji"), "{words:?}: {wide:?}");
        }
    }
}

#[test]
fn old_words_are_taken_with_a_line_that_says_the_new_ones() {
    let (code, out, err) = run(&["passing", "--help"], &[]);
    assert_eq!((code, &*err), (Some(0), "warning: \"passing\" is \"latency\" now\n"));
    assert!(out.contains("Usage: tsuji lab latency"), "{out}");
    let (code, _, err) = run(&["handover", "--roads", "shm"], &[]);
    assert_eq!(code, Some(2));
    assert!(err.contains("Usage: tsuji lab handover [OPTIONS]"), "{err}");
    assert!(err.starts_with("warning: \"--roads\" is \"--transports\" now\n"), "{err}");
}

#[test]
fn a_shell_is_answered_with_what_can_follow() {
    let asked = |words: &[&str]| {
        let index = (words.len() - 1).to_string();
        let words = [&["--"], words].concat();
        let shell =
            [("TSUJI_COMPLETE", "bash"), ("_CLAP_COMPLETE_INDEX", &index), ("_CLAP_IFS", "\n")];
        let (code, out, err) = run(&words, &shell);
        assert_eq!((code, &*err), (Some(0), ""));
        out
    };
    let found = asked(&["tsuji", "lab", "la"]);
    assert_eq!(found.trim(), "latency");
    let found = asked(&["tsuji", "lab", "jitter", "--ros"]);
    assert_eq!(found.trim(), "--rosout");
    let found = asked(&["tsuji", "tune", "--placement", ""]);
    assert_eq!(found.lines().collect::<Vec<_>>(), ["apart", "together", "free"]);
}

#[test]
fn tuning_keeps_what_is_there() {
    let file = std::env::temp_dir().join(format!("tsuji-lab-usage-{}.xml", std::process::id()));
    std::fs::write(&file, "mine").unwrap();
    let (code, _, err) = run(&["tune", "--output", file.to_str().unwrap()], &[]);
    let kept = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!((code, &*kept), (Some(1), "mine"));
    assert!(err.contains(".xml is there already; allowed: --force"), "{err}");
}

#[test]
fn another_version_of_the_command_is_told() {
    let caller = |version| run(&["--help"], &[("TSUJI_LAB_CALLER", version)]).2;
    assert_eq!(caller(env!("CARGO_PKG_VERSION")), "");
    let warning = caller("0.0.1");
    let own = env!("CARGO_PKG_VERSION");
    let expect = format!("warning: tsuji is of version 0.0.1, tsuji-lab of {own}");
    assert!(warning.contains(&expect) && warning.lines().count() == 1, "{warning}");
}

/// Words of the user that are refused command no terminal.
#[test]
fn words_that_are_refused() {
    let commands = |it: char| it.is_control() && it != '\n' && it != '\t' || it == '\u{202e}';
    let nasty = "/x\u{1b}[31m\u{1b}]0;title\u{7}\u{202e}";
    let option = format!("--x{nasty}");
    for (words, code) in [
        (&[nasty][..], 2),
        (&["report", nasty], 1),
        (&["compare", nasty, "/x"], 1),
        (&["tune", nasty], 2),
        (&[&option], 2),
        (&["tune", &option], 2),
        (&["matrix", "--transports", nasty], 2),
    ] {
        let (found, out, err) = run(words, &[]);
        assert_eq!((found, &*out), (Some(code), ""), "{words:?}: {err}");
        assert!(err.contains("\\x1b") && !err.contains(commands), "{words:?}: {err:?}");
    }
}

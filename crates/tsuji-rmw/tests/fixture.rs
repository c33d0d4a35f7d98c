//! The library that keeps tests of ROS 2 apart from everything else on the host: `ros2/rmw_tsuji/test_fixture.c`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Command;

/// Says what each of several calls answers and what is in the environment then.
const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void tell(const char *what, int ret) {
    const char *folder = getenv("TSUJI_RUNTIME_DIR"), *domain = getenv("ROS_DOMAIN_ID");
    const char *range = getenv("ROS_AUTOMATIC_DISCOVERY_RANGE"), *peers = getenv("ROS_STATIC_PEERS");
    printf("%s %d %s %s %s %s\n", what, ret, folder ? folder : "-", domain ? domain : "-", range ? range : "-", peers ? peers : "-");
}
int main(int argc, char **argv) {
    void *library = dlopen(argv[argc - 1], RTLD_NOW);
    int (*start)(void), (*stop)(void);
    *(void **)&start = dlsym(library, "rmw_test_isolation_start");
    *(void **)&stop = dlsym(library, "rmw_test_isolation_stop");
    tell("stop", stop());
    tell("start", start());
    char kept[4096];
    snprintf(kept, sizeof kept, "%s/kept", getenv("TSUJI_RUNTIME_DIR"));
    fclose(fopen(kept, "w"));
    tell("again", start());
    fflush(stdout);
    char folder[4096];
    strcpy(folder, getenv("TSUJI_RUNTIME_DIR"));
    getchar();
    tell("stop", stop());
    printf("%s\n", access(folder, F_OK) ? "removed" : "left");
    return 0;
}
"#;

#[test]
fn a_test_has_a_folder_and_a_domain_of_its_own() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fixture");
    std::fs::create_dir_all(&folder).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let library = folder.join("librmw_tsuji_test_fixture.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ros2/rmw_tsuji/test_fixture.c");
    let program = folder.join("program");
    let text = folder.join("program.c");
    std::fs::write(&text, PROGRAM).unwrap();
    let flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden"];
    let builds: [(&[&str], &Path, &Path); 2] =
        [(&["-shared", "-fPIC"], &source, &library), (&["-ldl"], &text, &program)];
    for (kind, from, to) in builds {
        let mut command = Command::new(&compiler);
        let output = command.args(flags).arg(from).args(kind).arg("-o").arg(to).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let run = || {
        Command::new(&program)
            .arg(&library)
            .env_remove("TSUJI_RUNTIME_DIR")
            .env_remove("ROS_AUTOMATIC_DISCOVERY_RANGE")
            .env("ROS_DOMAIN_ID", "7")
            .env("ROS_STATIC_PEERS", "somewhere")
            .env("TMPDIR", &folder)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    // Two at once: both are there before one of them is told to go on.
    let started = [run(), run()].map(|mut child| {
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        while said.lines().count() < 3 {
            assert_ne!(output.read_line(&mut said).unwrap(), 0, "{said}");
        }
        (child, output, said)
    });
    let lines = started.map(|(mut child, mut output, mut said)| {
        drop(child.stdin.take());
        output.read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success());
        said
    });
    let domains = lines.map(|said| {
        let words: Vec<Vec<_>> = said.lines().map(|line| line.split(' ').collect()).collect();
        assert_eq!(words[0], ["stop", "0", "-", "7", "-", "somewhere"]);
        let [what, ret, its_folder, domain, range, peers] = words[1][..] else { panic!("{said}") };
        assert_eq!([what, ret, range, peers], ["start", "0", "LOCALHOST", "-"]);
        assert!(Path::new(its_folder).starts_with(&folder));
        // A second time it is refused, and nothing changes.
        assert_eq!((words[2][..2].to_vec(), &words[2][2..]), (vec!["again", "1"], &words[1][2..]));
        assert_eq!(words[3], ["stop", "0", "-", "7", "-", "somewhere"]);
        assert_eq!(words[4], ["removed"]);
        domain.to_owned()
    });
    assert_ne!(domains[0], domains[1]);
}

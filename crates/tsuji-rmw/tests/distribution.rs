//! Under the libraries of another distribution than it was built for the plug-in refuses, and writes nothing before.
//! Those of distributions that are not here are stood for by libraries that export the same names.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const RMW_HUMBLE: &[&str] =
    &["rmw_get_zero_initialized_init_options", "rmw_subscription_content_filter_options_init"];
const RMW_IRON: &[&str] = &["rmw_discovery_options_init"];
const RMW_KILTED: &[&str] = &["rmw_enclave_options_copy"];
const RMW_LYRICAL: &[&str] = &["rmw_get_zero_initialized_service_endpoint_info"];
const RCUTILS_IRON: &[&str] = &["rcutils_sha256_init"];
const RCUTILS_JAZZY: &[&str] = &["rcutils_raw_steady_time_now"];
const RCUTILS_KILTED: &[&str] = &["rcutils_join"];

/// What is built once for all cases.
struct Stand {
    folder: PathBuf,
    library: PathBuf,
    program: PathBuf,
}

impl Stand {
    fn get() -> &'static Self {
        static STAND: OnceLock<Stand> = OnceLock::new();
        STAND.get_or_init(Self::new)
    }

    fn new() -> Self {
        let deps = std::env::current_exe().unwrap();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("distribution");
        std::fs::create_dir_all(&folder).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/distribution.c");
        let program = folder.join("distribution");
        compile(
            Command::new(compiler())
                .args(["-Wall", "-Werror"])
                .arg(source)
                .args(["-ldl", "-o"])
                .arg(&program),
        );
        Self { library: deps.with_file_name("librmw_tsuji.so"), program, folder }
    }

    /// A library of this name that exports just these.
    fn library(&self, case: &str, name: &str, functions: &[&[&str]]) -> PathBuf {
        let folder = self.folder.join(case);
        std::fs::create_dir_all(&folder).unwrap();
        let mut source = String::new();
        if name == "librcutils.so" {
            // It is told of the error.
            source.push_str(
                "#include <stdio.h>\n#include <stddef.h>\nvoid rcutils_set_error_state(const char *text, const char *file, \
                 size_t line) { (void)file, (void)line; printf(\"%s\\n\", text); fflush(stdout); }\n",
            );
        }
        for function in functions.concat() {
            source.push_str(&format!("void {function}(void) {{}}\n"));
        }
        let file = folder.join(format!("{name}.c"));
        std::fs::write(&file, source).unwrap();
        let library = folder.join(name);
        let mut command = Command::new(compiler());
        compile(command.args(["-shared", "-fPIC"]).arg(file).arg("-o").arg(&library));
        library
    }

    /// What the program says with these libraries in its process.
    fn run(&self, distro: &str, others: &[PathBuf]) -> String {
        let mut command = Command::new(&self.program);
        command.arg(&self.library).args(others).env("ROS_DISTRO", distro);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

fn compiler() -> String {
    std::env::var("CC").unwrap_or_else(|_| "cc".to_owned())
}

fn compile(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn only_the_distribution_that_it_was_built_for_is_served() {
    let stand = Stand::get();
    let here = if cfg!(feature = "humble") { "Humble" } else { "Jazzy" };
    let check = |case: &str, rmw: &[&[&str]], rcutils: &[&[&str]], expect: &str| {
        let rcutils = stand.library(case, "librcutils.so", rcutils);
        let mut libraries = vec![rcutils.clone()];
        if !rmw.is_empty() {
            libraries.push(stand.library(case, "librmw.so", rmw));
        }
        // Whatever the variable says.
        for distro in ["humble", "jazzy", "kilted", "rolling", ""] {
            let said = stand.run(distro, &libraries);
            if expect == here {
                assert_eq!(said, "0 written\n", "{case}, ROS_DISTRO={distro}");
                continue;
            }
            let by = libraries.last().unwrap().display();
            let text =
                format!("{by} is of {expect}, and this librmw_tsuji.so was built for {here}; ");
            assert!(said.starts_with(&text) && said.ends_with("\n3 untouched\n"), "{case}: {said}");
        }
    };
    check("foxy", &[&RMW_HUMBLE[..1]], &[], "one before Humble");
    check("humble", &[RMW_HUMBLE], &[], "Humble");
    check("iron", &[RMW_HUMBLE, RMW_IRON], &[RCUTILS_IRON], "Iron");
    let (rmw, rcutils) = ([RMW_HUMBLE, RMW_IRON], [RCUTILS_IRON, RCUTILS_JAZZY]);
    check("jazzy", &rmw, &rcutils, "Jazzy");
    let rcutils_now = [&rcutils[..], &[RCUTILS_KILTED]].concat();
    // What librcutils gains may come to Jazzy too.
    check("jazzy later", &rmw, &rcutils_now, "Jazzy");
    let rmw = [&rmw[..], &[RMW_KILTED]].concat();
    check("kilted", &rmw, &rcutils_now, "Kilted");
    check("lyrical", &[&rmw[..], &[RMW_LYRICAL]].concat(), &rcutils_now, "one after Kilted");
    // A program that has no librmw.
    check("humble alone", &[], &[], "Humble");
    check("jazzy alone", &[], &rcutils, "Jazzy");
    check("kilted alone", &[], &rcutils_now, "Kilted");
}

#[test]
fn where_nothing_is_proved_the_variable_counts() {
    let stand = Stand::get();
    let here = if cfg!(feature = "humble") { "humble" } else { "jazzy" };
    for distro in ["", here] {
        assert_eq!(stand.run(distro, &[]), "0 written\n");
    }
    for distro in ["foxy", "iron", "kilted", "lyrical", "rolling"] {
        assert_eq!(stand.run(distro, &[]), "3 untouched\n", "{distro}");
    }
}

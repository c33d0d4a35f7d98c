//! The plug-in finds out which distribution it was loaded into. Under the libraries of one that it does not know it refuses,
//! and writes nothing before. Distributions are stood for by libraries that export the same names.
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
const ROSIDL_BUFFER: &[&str] = &["rosidl_buffer_uint8_destroy"];

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

/// What a process with these libraries is told, whatever `ROS_DISTRO` says.
fn check(case: &str, rmw: &[&[&str]], rcutils: &[&[&str]], has_buffers: bool, expect: &str) {
    let stand = Stand::get();
    let mut libraries = vec![stand.library(case, "librcutils.so", rcutils)];
    if has_buffers {
        libraries.push(stand.library(case, "librosidl_buffer.so", &[ROSIDL_BUFFER]));
    }
    let mut by = libraries[0].clone();
    if !rmw.is_empty() {
        by = stand.library(case, "librmw.so", rmw);
        libraries.push(by.clone());
    }
    for distro in ["humble", "jazzy", "kilted", "lyrical", "rolling", "mystic", ""] {
        let said = stand.run(distro, &libraries);
        match expect {
            "" => assert_eq!(said, "0 written\n", "{case}, ROS_DISTRO={distro}"),
            expect => {
                let text = format!(
                    "{} is of {expect}, which rmw_tsuji does not know; allowed: Humble, ",
                    by.display()
                );
                let is_refused = said.starts_with(&text) && said.ends_with("\n3 untouched\n");
                assert!(is_refused, "{case}: {said}");
            }
        }
    }
}

#[test]
fn what_is_known_is_served_and_what_is_not_is_refused() {
    let served = "";
    check("foxy", &[&RMW_HUMBLE[..1]], &[], false, "one before Humble");
    check("humble", &[RMW_HUMBLE], &[], false, served);
    check("iron", &[RMW_HUMBLE, RMW_IRON], &[RCUTILS_IRON], false, "Iron");
    let (rmw, rcutils) = ([RMW_HUMBLE, RMW_IRON], [RCUTILS_IRON, RCUTILS_JAZZY]);
    check("jazzy", &rmw, &rcutils, false, served);
    let rcutils_now = [&rcutils[..], &[RCUTILS_KILTED]].concat();
    // What librcutils gains may come to Jazzy too.
    check("jazzy later", &rmw, &rcutils_now, false, served);
    let rmw = [&rmw[..], &[RMW_KILTED]].concat();
    check("kilted", &rmw, &rcutils_now, false, served);
    let rmw = [&rmw[..], &[RMW_LYRICAL]].concat();
    check("between", &rmw, &rcutils_now, false, "a Rolling between Kilted and Lyrical");
    check("lyrical", &rmw, &rcutils_now, true, served);
    // A program that has no librmw.
    check("humble alone", &[], &[], false, served);
    check("iron alone", &[], &[RCUTILS_IRON], false, "Iron");
    check("jazzy alone", &[], &rcutils, false, served);
    check("kilted alone", &[], &rcutils_now, false, served);
    check("lyrical alone", &[], &rcutils_now, true, served);
}

#[test]
fn libraries_of_two_distributions_are_refused() {
    let stand = Stand::get();
    let rcutils = stand.library("two", "librcutils.so", &[RCUTILS_IRON, RCUTILS_JAZZY]);
    let jazzy = stand.library("two", "librmw.so", &[RMW_HUMBLE, RMW_IRON]);
    let kilted = stand.library("two/other", "librmw.so", &[RMW_HUMBLE, RMW_IRON, RMW_KILTED]);
    let said = stand.run("jazzy", &[rcutils, jazzy.clone(), kilted.clone()]);
    let expect = format!(
        "{} is of Jazzy, and {} of Kilted; allowed: libraries of one distribution\n3 untouched\n",
        jazzy.display(),
        kilted.display()
    );
    assert_eq!(said, expect);
}

#[test]
fn where_nothing_is_proved_the_variable_counts() {
    let stand = Stand::get();
    for distro in ["humble", "jazzy", "kilted", "lyrical", "rolling"] {
        assert_eq!(stand.run(distro, &[]), "0 written\n", "{distro}");
    }
    for distro in ["", "foxy", "iron", "mystic"] {
        assert_eq!(stand.run(distro, &[]), "3 untouched\n", "{distro}");
    }
}

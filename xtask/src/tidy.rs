//! What rustc and clippy do not check: the edges between crates, documents that keep up, leftovers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::metadata::{self, DependencyKind, Package};
use crate::{circles, links, manual, told, words};

/// Which crate may depend on which; `dev:` and `build:` allow only that kind of dependency. An edge
/// missing here is a design question, not an oversight.
const ALLOWED_EDGES: &[(&str, &[&str])] = &[
    ("tsuji-core", &[]),
    ("tsuji-platform", &[]),
    ("tsuji-msg", &[]),
    ("tsuji-xml", &[]),
    ("tsuji-policy", &["tsuji-core", "tsuji-xml"]),
    ("tsuji-security", &["tsuji-xml"]),
    ("tsuji-launch", &["tsuji-core", "tsuji-msg", "tsuji-xml"]),
    ("tsuji-ros", &["tsuji-core", "tsuji-msg"]),
    ("tsuji-ros1", &["tsuji-msg", "dev:tsuji-interfaces"]),
    ("tsuji-foxglove", &[]),
    ("tsuji-rosbridge", &["tsuji-core"]),
    ("tsuji-transport", &["tsuji-core", "tsuji-platform", "dev:tsuji-conformance"]),
    ("tsuji-conformance", &["tsuji-core", "tsuji-platform", "tsuji-transport"]),
    (
        "tsuji-transport-shm",
        &["tsuji-core", "tsuji-platform", "tsuji-transport", "dev:tsuji-conformance"],
    ),
    ("tsuji-engine", &["tsuji-core", "tsuji-platform", "tsuji-transport"]),
    (
        "tsuji-engine-abi",
        &["tsuji-core", "tsuji-engine", "tsuji-transport", "dev:tsuji-conformance"],
    ),
    (
        "tsuji-transport-cyclonedds",
        &[
            "tsuji-core",
            "tsuji-engine",
            "tsuji-platform",
            "tsuji-transport",
            "dev:tsuji-conformance",
        ],
    ),
    (
        "tsuji-transport-plugin",
        &[
            "tsuji-core",
            "tsuji-engine",
            "tsuji-engine-abi",
            "tsuji-platform",
            "tsuji-transport",
            "dev:tsuji-conformance",
        ],
    ),
    (
        "tsuji-transport-ros1",
        &[
            "tsuji-build",
            "tsuji-core",
            "tsuji-engine",
            "tsuji-engine-abi",
            "tsuji-interfaces",
            "tsuji-msg",
            "tsuji-platform",
            "tsuji-ros",
            "tsuji-ros1",
            "tsuji-transport",
        ],
    ),
    ("tsuji-build", &["tsuji-msg"]),
    ("tsuji-interfaces", &["tsuji-build", "tsuji-msg"]),
    ("tsuji-codec", &["tsuji-msg", "dev:tsuji-interfaces"]),
    (
        "tsuji",
        &[
            "tsuji-core",
            "tsuji-engine",
            "tsuji-interfaces",
            "tsuji-msg",
            "tsuji-platform",
            "tsuji-policy",
            "tsuji-ros",
            "tsuji-security",
            "tsuji-transport",
            "tsuji-transport-cyclonedds",
            "tsuji-transport-plugin",
            "tsuji-transport-shm",
            "dev:tsuji-conformance",
            "dev:tsuji-transport-ros1",
        ],
    ),
    (
        "tsuji-bridge",
        &[
            "tsuji",
            "tsuji-codec",
            "tsuji-core",
            "tsuji-foxglove",
            "tsuji-interfaces",
            "tsuji-msg",
            "tsuji-platform",
            "tsuji-rosbridge",
        ],
    ),
    ("tsuji-record", &["tsuji", "tsuji-core", "tsuji-interfaces", "tsuji-msg", "tsuji-platform"]),
    (
        "tsuji-lab",
        // Of the transports only the engines that they carry, to measure against.
        &[
            "tsuji",
            "tsuji-bridge",
            "tsuji-interfaces",
            "tsuji-msg",
            "tsuji-platform",
            "tsuji-policy",
            "tsuji-record",
            "tsuji-security",
            "tsuji-transport-cyclonedds",
            "tsuji-transport-plugin",
        ],
    ),
    (
        "tsuji-cli",
        &[
            "tsuji",
            "tsuji-bridge",
            "tsuji-build",
            "tsuji-core",
            "tsuji-interfaces",
            "tsuji-launch",
            "tsuji-msg",
            "tsuji-platform",
            "tsuji-policy",
            "tsuji-record",
            "tsuji-ros",
            "tsuji-ros1",
            "tsuji-security",
            "tsuji-xml",
        ],
    ),
    (
        "tsuji-rmw",
        &[
            "tsuji",
            "tsuji-core",
            "tsuji-platform",
            "tsuji-ros",
            "dev:tsuji-interfaces",
            "dev:tsuji-msg",
        ],
    ),
    (
        "tsuji-demo",
        &["tsuji", "tsuji-interfaces", "tsuji-msg", "tsuji-platform", "tsuji-transport"],
    ),
    ("xtask", &[]),
];

/// Where system calls, shared memory and owners of foreign bytes are; every other crate forbids
/// unsafe code.
const MAY_BE_UNSAFE: &[&str] = &[
    "tsuji-engine",
    "tsuji-engine-abi",
    "tsuji-platform",
    "tsuji-rmw",
    "tsuji-transport",
    "tsuji-transport-cyclonedds",
    "tsuji-transport-plugin",
    // The function that its library exports.
    "tsuji-transport-ros1",
    "tsuji-transport-shm",
];

/// The one file that names transports, and the names that stand nowhere else but in a transport's
/// own sources.
const REGISTRY: &str = "crates/tsuji/src/registry.rs";

/// A library with functions of an engine.
const DDS_SECURITY: &str = "engines/dds-security/src/lib.rs";
const TRANSPORTS: &[(&str, &str)] = &[
    ("tsuji-transport-cyclonedds", concat!("tsuji_transport", "_cyclonedds")),
    ("tsuji-transport-plugin", concat!("tsuji_transport", "_plugin")),
    ("tsuji-transport-shm", concat!("tsuji_transport", "_shm")),
];

/// The workspace of the laboratory, whose crate has edges and manners as those of the main one.
const LABORATORY: &str = "lab";

/// Where engines are measured without tsuji.
const RAW_ENGINES: [&str; 2] = ["lab/src/transport/cyclonedds.rs", "lab/src/transport/plugin.rs"];

/// Where tests make participants that are not tsuji's of the engine.
const FOREIGN_PEERS: &str = "crates/tsuji/tests/house/foreign.rs";

/// A file longer than this wants to be two.
const RUST_LINES_MAX: usize = 1200;

/// Said in the first lines of a file that a program wrote.
const GENERATED: &str = concat!("@", "generated");

/// What is not left in a source: it is done, or it is written down as a limit where users look.
const LEFTOVERS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const SOURCES: &[&str] = &[".rs", ".toml", ".sh", ".xml", "Makefile", "scripts/", ".ci/"];

/// Folders of somebody's machine.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// Documents that name every crate, and must exist.
const MAPS: &[&str] = &["ARCHITECTURE.md"];

/// Programs that stand in a document, and the examples of the same text, which are built and run.
const PROGRAMS: &[(&str, &str)] = &[
    ("docs/tutorial/talker-and-listener.md", "crates/tsuji/examples/talker.rs"),
    ("docs/tutorial/talker-and-listener.md", "crates/tsuji/examples/listener.rs"),
];

/// Lock files of workspaces that are built where the main one is: what has the same version there is built once.
const BUILT_TOGETHER: &[&str] =
    &["examples/own-messages/Cargo.lock", "lab/Cargo.lock", "python/Cargo.lock"];

/// What a program is linked with warns by `tsuji_platform::report`, which is heard where nobody collects events.
const REPORTERS: &[&str] = &[
    "crates/tsuji/src/",
    "crates/tsuji-engine/src/",
    "crates/tsuji-transport-cyclonedds/src/",
    "crates/tsuji-transport-plugin/src/",
];
const UNHEARD: &[&str] = &[concat!("tracing::", "warn!("), concat!("tracing::", "error!(")];

/// Crates that are programs, whose errors nobody else returns.
const PROGRAMS_OF_CRATES: &[&str] = &["tsuji-cli/", "tsuji-demo/"];

/// The files of the repository by their path in it, and the packages of the workspace.
struct Repository {
    files: BTreeMap<String, String>,
    packages: Vec<Package>,
}

/// Everything that is not as it should be in the repository at `root`.
pub(crate) fn complaints(root: &Path) -> Result<Vec<String>, String> {
    let root = root.canonicalize().map_err(|error| format!("{}: {error}", root.display()))?;
    let mut packages = metadata::packages(&root, &["--no-deps"])?;
    packages.extend(metadata::packages(&root.join(LABORATORY), &["--no-deps"])?);
    for package in &mut packages {
        package.manifest = relative(&root, &package.manifest);
        for it in &mut package.roots {
            it.path = relative(&root, &it.path);
        }
    }
    let files = files(&root)?;
    let repository = Repository { files, packages };
    let mut complaints = check(&repository);
    complaints.extend(circles::complaints(&repository.files));
    Ok(complaints)
}

/// The texts below `root` by their paths in it, without what is built. Of what is not text there is the path alone.
pub(crate) fn files(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let root = root.canonicalize().map_err(|error| format!("{}: {error}", root.display()))?;
    let mut files = BTreeMap::new();
    read_tree(&root, &root, &mut files).map_err(|error| format!("{}: {error}", root.display()))?;
    Ok(files)
}

fn check(repository: &Repository) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in &repository.packages {
        complaints.extend(edges(package));
        complaints.extend(manifest(package, repository));
        complaints.extend(crate_roots(package, repository));
    }
    for (path, text) in &repository.files {
        complaints.extend(transports_named(path, text));
        complaints.extend(length(path, text));
        complaints.extend(leftovers(path, text));
        complaints.extend(machine_paths(path, text));
        complaints.extend(unheard(path, text));
        complaints.extend(no_sentences(path, text));
        complaints.extend(words::retired(path, text));
        complaints.extend(told::of_sources(path, text));
    }
    complaints.extend(links::broken(&repository.files));
    complaints.extend(manual::complaints(&repository.files));
    complaints.extend(programs(repository));
    complaints.extend(decisions(repository));
    complaints.extend(lock_files(repository));
    complaints.extend(maps(repository));
    complaints
}

fn edges(package: &Package) -> Vec<String> {
    let name = &package.name;
    let Some((_, allowed)) = ALLOWED_EDGES.iter().find(|(it, _)| it == name) else {
        return vec![format!("{name} is not in the table of allowed edges in xtask/src/tidy.rs")];
    };
    let inside = |dependency: &str| {
        ALLOWED_EDGES.iter().any(|(it, _)| *it == dependency) || dependency.starts_with("tsuji")
    };
    package
        .dependencies
        .iter()
        .filter(|it| inside(&it.name))
        .filter_map(|it| {
            let (prefix, kind) = match it.kind {
                DependencyKind::Normal => ("", "depend"),
                DependencyKind::Dev => ("dev:", "depend in its tests"),
                DependencyKind::Build => ("build:", "depend in its build script"),
            };
            let edge = format!("{prefix}{}", it.name);
            let fits = allowed.contains(&it.name.as_str()) || allowed.contains(&edge.as_str());
            (!fits).then(|| format!("{name} must not {kind} on {}", it.name))
        })
        .collect()
}

fn manifest(package: &Package, repository: &Repository) -> Vec<String> {
    let mut complaints = Vec::new();
    let path = &package.manifest;
    if package.description.as_deref().is_none_or(str::is_empty) {
        complaints.push(format!("{path} has no description"));
    }
    let text = repository.files.get(path).map_or("", String::as_str);
    let inherits = text
        .split_once("\n[lints]\n")
        .is_some_and(|(_, rest)| rest.lines().next() == Some("workspace = true"));
    if !inherits {
        complaints
            .push(format!("{path} does not take the workspace's lints: [lints] workspace = true"));
    }
    complaints
}

fn crate_roots(package: &Package, repository: &Repository) -> Vec<String> {
    let mut complaints = Vec::new();
    for root in &package.roots {
        let path = &root.path;
        let text = repository.files.get(path).map_or("", String::as_str);
        if root.is_library && !text.starts_with("//!") {
            complaints.push(format!(
                "{path} does not open with //! and what the crate does and does not do"
            ));
        }
        let may_be_unsafe = MAY_BE_UNSAFE.contains(&package.name.as_str());
        if !may_be_unsafe && !text.contains("#![forbid(unsafe_code)]") {
            complaints.push(format!("{path} lacks #![forbid(unsafe_code)]"));
        }
    }
    complaints
}

fn transports_named(path: &str, text: &str) -> Vec<String> {
    let may_name =
        [REGISTRY, FOREIGN_PEERS, DDS_SECURITY].contains(&path) || RAW_ENGINES.contains(&path);
    if !path.ends_with(".rs") || may_name {
        return Vec::new();
    }
    TRANSPORTS
        .iter()
        .filter(|(package, name)| {
            !path.starts_with(&format!("crates/{package}/")) && text.contains(name)
        })
        .map(|(_, name)| format!("{path} names {name}; only {REGISTRY} may"))
        .collect()
}

fn length(path: &str, text: &str) -> Option<String> {
    let generated = text.lines().take(5).any(|line| line.contains(GENERATED));
    let lines = text.lines().count();
    (path.ends_with(".rs") && !generated && lines > RUST_LINES_MAX)
        .then(|| format!("{path} has {lines} lines; at most {RUST_LINES_MAX}"))
}

fn leftovers(path: &str, text: &str) -> Vec<String> {
    if !SOURCES.iter().any(|it| path.ends_with(it) || path.starts_with(it)) {
        return Vec::new();
    }
    let words = |line: &str, leftover: &str| {
        line.split(|it: char| !it.is_alphanumeric() && it != '_').any(|word| word == leftover)
    };
    lines_with(text, |line| LEFTOVERS.iter().any(|it| words(line, it)))
        .map(|(number, line)| format!("{path}:{number}: left over: {line}"))
        .collect()
}

fn machine_paths(path: &str, text: &str) -> Vec<String> {
    let stands_alone = |before: &str| {
        !before.ends_with(|it: char| {
            it.is_alphanumeric() || matches!(it, '_' | '-' | '.' | '~' | '}' | '{')
        })
    };
    let found = |line: &str| {
        MACHINE_PATHS
            .iter()
            .any(|it| line.match_indices(it).any(|(at, _)| stands_alone(&line[..at])))
    };
    lines_with(text, found)
        .map(|(number, line)| format!("{path}:{number}: a path of one machine: {line}"))
        .collect()
}

fn unheard(path: &str, text: &str) -> Vec<String> {
    if !REPORTERS.iter().any(|it| path.starts_with(it)) {
        return Vec::new();
    }
    lines_with(text, |line| UNHEARD.iter().any(|it| line.contains(it)))
        .map(|(number, line)| {
            format!(
                "{path}:{number}: heard by subscribers alone; use tsuji_platform::report: {line}"
            )
        })
        .collect()
}

/// A `main` that fails prints its error by `Debug`, of which the derived one is no sentence.
fn no_sentences(path: &str, text: &str) -> Vec<String> {
    let Some(within) = path.strip_prefix("crates/").filter(|it| it.contains("/src/")) else {
        return Vec::new();
    };
    if !path.ends_with(".rs") || PROGRAMS_OF_CRATES.iter().any(|it| within.starts_with(it)) {
        return Vec::new();
    }
    let errors = text.lines().filter_map(|line| {
        let (trait_name, name) = line.strip_prefix("impl ")?.split_once(" for ")?;
        let name = name.split(|it: char| !it.is_alphanumeric() && it != '_').next()?;
        let trait_name = trait_name.rsplit("::").next()?;
        ["Error", "StdError"].contains(&trait_name).then_some(name)
    });
    let derives = |name: &&str| {
        let is_it = |line: &str| {
            let mut words = line.split(|it: char| !it.is_alphanumeric() && it != '_');
            line.starts_with("pub") && words.any(|it| it == *name) && !line.contains("use ")
        };
        let lines: Vec<&str> = text.lines().collect();
        let Some(at) = lines
            .iter()
            .position(|line| is_it(line) && (line.contains("struct ") || line.contains("enum ")))
        else {
            return false;
        };
        let before = lines[..at].iter().rev();
        let mut attributes = before.take_while(|it| it.starts_with("#[") || it.starts_with("///"));
        attributes.any(|it| it.starts_with("#[derive(") && it.contains("Debug"))
    };
    let complaint = |name: &str| {
        format!(
            "{path}: {name} is an error that derives Debug; print its sentence, as `main` does of what it returns"
        )
    };
    errors.filter(derives).map(complaint).collect()
}

/// What a reader types is what is tested: from its imports on, for lints are no reader's concern.
fn programs(repository: &Repository) -> Vec<String> {
    let differs = |(document, example): &&(&str, &str)| {
        let texts = (repository.files.get(*document), repository.files.get(*example));
        let (Some(document), Some(example)) = texts else { return false };
        let from = example.find("\nuse ").unwrap_or_default();
        !document.contains(&format!("```rust{}```", &example[from..]))
    };
    let complaint = |(document, example): &(&str, &str)| {
        format!("{document} does not have the program {example} as it is")
    };
    PROGRAMS.iter().filter(differs).map(complaint).collect()
}

/// Decisions are numbered from 0001 on, each number once.
fn decisions(repository: &Repository) -> Vec<String> {
    let names = repository.files.keys().filter_map(|path| path.strip_prefix("docs/decisions/"));
    let names = names.filter(|it| *it != "README.md" && it.ends_with(".md") && !it.contains('/'));
    let mut complaints = Vec::new();
    for (index, name) in names.enumerate() {
        let expected = format!("{:04}-", index + 1);
        if !name.starts_with(&expected) {
            complaints.push(format!("docs/decisions/{name}: the next number is {expected}"));
            break;
        }
    }
    complaints
}

/// A package has one version in all that is built together, where the numbers allow it.
fn lock_files(repository: &Repository) -> Vec<String> {
    let Some(main) = repository.files.get("Cargo.lock") else { return Vec::new() };
    let main: BTreeMap<_, _> =
        locked(main).map(|(name, version)| ((name, compatible(version)), version)).collect();
    let mut complaints = Vec::new();
    for path in BUILT_TOGETHER {
        let text = repository.files.get(*path).map_or("", String::as_str);
        for (name, version) in locked(text) {
            let wanted = main.get(&(name, compatible(version))).filter(|it| **it != version);
            let folder = path.trim_end_matches("/Cargo.lock");
            complaints.extend(wanted.map(|wanted| {
                format!(
                    "{path} has {name} {version}, Cargo.lock {wanted}: in {folder}, \
                     cargo update {name}@{version} --precise {wanted}"
                )
            }));
        }
    }
    complaints
}

/// The packages of a lock file with their versions.
fn locked(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("[[package]]\n").skip(1).filter_map(|package| {
        let (name, rest) = package.strip_prefix("name = \"")?.split_once("\"\nversion = \"")?;
        Some((name, rest.split_once('"')?.0))
    })
}

/// A version up to the first number that is not 0: those with the same one go together.
fn compatible(version: &str) -> &str {
    let first = version.find(|it| it != '0' && it != '.').unwrap_or(version.len());
    version[first..].find('.').map_or(version, |length| &version[..first + length])
}

fn maps(repository: &Repository) -> Vec<String> {
    let mut complaints = Vec::new();
    for path in MAPS {
        let Some(text) = repository.files.get(*path) else {
            complaints.push(format!("{path} is missing"));
            continue;
        };
        let is_crate = |it: &&Package| {
            it.manifest.starts_with("crates/") || it.manifest.starts_with(LABORATORY)
        };
        let crates = repository.packages.iter().filter(is_crate);
        let missing = crates.filter(|it| !text.contains(&format!("`{}`", it.name)));
        complaints.extend(missing.map(|it| format!("{path} does not mention `{}`", it.name)));
    }
    complaints
}

fn lines_with(text: &str, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(text.lines())
        .filter(move |(_, line)| wanted(line))
        .map(|(number, line)| (number, line.trim()))
}

/// Reads every text below `dir`, except what is built and git's own files.
fn read_tree(root: &Path, dir: &Path, files: &mut BTreeMap<String, String>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let built = path.join("CACHEDIR.TAG").exists() || entry.file_name() == "target";
            if !built && entry.file_name() != ".git" {
                read_tree(root, &path, files)?;
            }
        } else if kind.is_file() {
            // What is not UTF-8 is data, of which the name alone counts.
            let text = String::from_utf8(fs::read(&path)?).unwrap_or_default();
            files.insert(relative(root, &path.to_string_lossy()), text);
        }
    }
    Ok(())
}

fn relative(root: &Path, path: &str) -> String {
    let path = Path::new(path);
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Dependency, Root};

    #[test]
    fn this_workspace_is_tidy() {
        let found = complaints(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
        assert!(found.is_empty(), "\n{}", found.join("\n"));
    }

    #[test]
    fn crates_depend_only_on_what_they_may() {
        let check = |name: &str, kind: DependencyKind, on: &str, expect: &[&str]| {
            let dependencies = vec![Dependency { name: on.to_owned(), kind }];
            let package = Package { name: name.to_owned(), dependencies, ..Package::default() };
            assert_eq!(edges(&package), expect);
        };
        use DependencyKind::{Build, Dev, Normal};
        check("tsuji-policy", Normal, "tsuji-core", &[]);
        check("tsuji-policy", Dev, "tsuji-core", &[]);
        check("tsuji-interfaces", Build, "tsuji-msg", &[]);
        check("tsuji-core", Normal, "libc", &[]);
        check("tsuji-transport", Dev, "tsuji-conformance", &[]);
        check(
            "tsuji-transport",
            Normal,
            "tsuji-conformance",
            &["tsuji-transport must not depend on tsuji-conformance"],
        );
        check(
            "tsuji-core",
            Dev,
            "tsuji-msg",
            &["tsuji-core must not depend in its tests on tsuji-msg"],
        );
        check(
            "tsuji-core",
            Build,
            "tsuji-new",
            &["tsuji-core must not depend in its build script on tsuji-new"],
        );
        check(
            "tsuji-new",
            Normal,
            "libc",
            &["tsuji-new is not in the table of allowed edges in xtask/src/tidy.rs"],
        );
    }

    /// A repository of one good crate, `tsuji-core`, and `files` over it.
    fn repository(files: &[(&str, &str)]) -> Repository {
        let good = [
            ("ARCHITECTURE.md", "`tsuji-core` decides."),
            ("crates/tsuji-core/Cargo.toml", "[package]\n\n[lints]\nworkspace = true\n"),
            ("crates/tsuji-core/src/lib.rs", "//! Decides.\n#![forbid(unsafe_code)]\n"),
        ];
        let package = Package {
            name: "tsuji-core".to_owned(),
            description: Some("Decides.".to_owned()),
            manifest: "crates/tsuji-core/Cargo.toml".to_owned(),
            roots: vec![Root { is_library: true, path: "crates/tsuji-core/src/lib.rs".to_owned() }],
            ..Package::default()
        };
        let files = good
            .iter()
            .chain(files)
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        Repository { files, packages: vec![package] }
    }

    fn check_file(path: &str, text: &str, expect: &[&str]) {
        assert_eq!(check(&repository(&[(path, text)])), expect, "{path}: {text}");
    }

    #[test]
    fn an_error_prints_its_sentence() {
        let text = |derived: &str, trait_name: &str| {
            format!(
                "/// Why.\n#[derive({derived})]\n#[non_exhaustive]\n/// So.\npub enum Odd {{\n}}\n\nimpl {trait_name} for Odd {{}}\n"
            )
        };
        let why = "crates/tsuji-core/src/odd.rs: Odd is an error that derives Debug; print its sentence, as `main` does of what it returns";
        let path = "crates/tsuji-core/src/odd.rs";
        check_file(path, &text("Clone, Debug, PartialEq", "std::error::Error"), &[why]);
        check_file(path, &text("Debug", "Error"), &[why]);
        check_file(path, &text("Clone, PartialEq", "StdError"), &[]);
        check_file(path, &text("Clone, Debug", "fmt::Display"), &[]);
        check_file("crates/tsuji-cli/src/odd.rs", &text("Debug", "Error"), &[]);
    }

    #[test]
    fn a_manifest_takes_the_lints_and_says_what_the_crate_is() {
        let expect = [
            "crates/tsuji-core/Cargo.toml does not take the workspace's lints: [lints] workspace = true",
        ];
        check_file("crates/tsuji-core/Cargo.toml", "[package]\n[lints.rust]\n", &expect);
        let mut nameless = repository(&[]);
        nameless.packages[0].description = None;
        assert_eq!(check(&nameless), ["crates/tsuji-core/Cargo.toml has no description"]);
    }

    #[test]
    fn a_crate_says_what_it_does_and_forbids_unsafe_code() {
        let path = "crates/tsuji-core/src/lib.rs";
        check_file(
            path,
            "//! Decides.\n",
            &["crates/tsuji-core/src/lib.rs lacks #![forbid(unsafe_code)]"],
        );
        check_file(
            path,
            "#![forbid(unsafe_code)]\n//! Decides.\n",
            &[
                "crates/tsuji-core/src/lib.rs does not open with //! and what the crate does and does not do",
            ],
        );
    }

    #[test]
    fn only_the_registry_names_a_transport() {
        let text = format!("use {}::Shm;\n", TRANSPORTS[0].1);
        check_file(REGISTRY, &text, &[]);
        let own = format!("crates/{}/tests/conformance.rs", TRANSPORTS[0].0);
        check_file(&own, &text, &[]);
        let complaint =
            format!("crates/tsuji/src/node.rs names {}; only {REGISTRY} may", TRANSPORTS[0].1);
        check_file("crates/tsuji/src/node.rs", &text, &[&complaint]);
    }

    #[test]
    fn a_file_by_hand_has_a_length() {
        let long = "\n".repeat(RUST_LINES_MAX + 1);
        check_file("a.rs", &long[1..], &[]);
        check_file("a.rs", &long, &["a.rs has 1201 lines; at most 1200"]);
        check_file("a.rs", &format!("// {GENERATED}\n{long}"), &[]);
        check_file("a.md", &long, &[]);
    }

    #[test]
    fn nothing_is_left_over() {
        let [word, ..] = LEFTOVERS else { unreachable!() };
        check_file(
            "scripts/a",
            &format!("# {word}: later"),
            &[&format!("scripts/a:1: left over: # {word}: later")],
        );
        check_file("a.rs", &format!("const {word}S: u8 = 0;"), &[]);
        check_file("a.md", &format!("No {word}."), &[]);
    }

    #[test]
    fn paths_of_one_machine_are_seen_and_parts_of_others_are_not() {
        let [work, _, home] = MACHINE_PATHS else { unreachable!() };
        let text = format!("cd {home}me");
        check_file("a.md", &text, &[&format!("a.md:1: a path of one machine: {text}")]);
        check_file(
            "a.md",
            &format!("https://example.org{work}a and ~{work}a and ./net{work}a"),
            &[],
        );
    }

    #[test]
    fn a_warning_is_one_that_everybody_hears() {
        let text = format!("{}\"x\");", UNHEARD[0]);
        let complaint = format!(
            "crates/tsuji/src/a.rs:1: heard by subscribers alone; use tsuji_platform::report: {text}"
        );
        check_file("crates/tsuji/src/a.rs", &text, &[&complaint]);
        check_file("crates/tsuji-cli/src/a.rs", &text, &[]);
    }

    #[test]
    fn a_program_in_a_document_is_that_which_is_tested() {
        let example = "//! Says hello.\n#![allow(x)]\n\nuse a;\n\nfn main() {}\n";
        let of_document =
            |text: &str| check(&repository(&[(PROGRAMS[0].0, text), (PROGRAMS[0].1, example)]));
        assert!(of_document("```rust\nuse a;\n\nfn main() {}\n```\n").is_empty());
        let (document, example) = PROGRAMS[0];
        let expect = format!("{document} does not have the program {example} as it is");
        assert_eq!(of_document("```rust\nuse a;\n\nfn main() { old() }\n```\n"), [expect]);
    }

    #[test]
    fn decisions_are_numbered_without_gaps() {
        let check_names = |names: &[&str], expect: &[&str]| {
            let paths: Vec<String> =
                names.iter().map(|it| format!("docs/decisions/{it}")).collect();
            let files: Vec<(&str, &str)> = paths.iter().map(|it| (it.as_str(), "")).collect();
            assert_eq!(check(&repository(&files)), expect);
        };
        check_names(&["README.md", "0001-a.md", "0002-b.md"], &[]);
        check_names(&["0002-b.md"], &["docs/decisions/0002-b.md: the next number is 0001-"]);
        check_names(
            &["0001-a.md", "0001-b.md"],
            &["docs/decisions/0001-b.md: the next number is 0002-"],
        );
        check_names(&["0001-a.md", "b.md"], &["docs/decisions/b.md: the next number is 0002-"]);
    }

    #[test]
    fn what_is_built_together_has_one_version() {
        let check_locks = |main: &str, python: &str, expect: &[&str]| {
            let lock = |version: &str| {
                format!("version = 4\n\n[[package]]\nname = \"cc\"\nversion = \"{version}\"\n")
            };
            let (ours, theirs) = (lock(main), lock(python));
            let files = [("Cargo.lock", ours.as_str()), ("python/Cargo.lock", theirs.as_str())];
            assert_eq!(check(&repository(&files)), expect, "{main} {python}");
        };
        check_locks("1.11.1", "1.11.1", &[]);
        check_locks("1.11.1", "2.11.1", &[]);
        check_locks("0.4.0", "0.3.5+spec-1", &[]);
        check_locks("0.0.1", "0.0.2", &[]);
        let told = "python/Cargo.lock has cc 1.11.3, Cargo.lock 1.11.1: in python, cargo update cc@1.11.3 --precise 1.11.1";
        check_locks("1.11.1", "1.11.3", &[told]);
        let told = "python/Cargo.lock has cc 0.3.5, Cargo.lock 0.3.4: in python, cargo update cc@0.3.5 --precise 0.3.4";
        check_locks("0.3.4", "0.3.5", &[told]);
    }

    #[test]
    fn the_maps_mention_every_crate() {
        check_file("ARCHITECTURE.md", "", &["ARCHITECTURE.md does not mention `tsuji-core`"]);
    }
}

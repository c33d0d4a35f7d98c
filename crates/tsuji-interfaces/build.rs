//! Generates Rust types and the table of texts from the definitions under `share`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};
use tsuji_msg::codegen::Codegen;
use tsuji_msg::{Kind, Resolver};

fn main() -> Result<(), Box<dyn Error>> {
    let share = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("share");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", share.display());

    let files = definitions(&share)?;
    let texts = Texts(
        files
            .iter()
            .map(|(name, path)| Ok((name.clone(), fs::read_to_string(path)?)))
            .collect::<Result<_, std::io::Error>>()?,
    );
    let code = Codegen::new(&texts).generate(texts.0.keys().map(String::as_str))?;
    fs::write(out.join("interfaces.rs"), code)?;
    fs::write(out.join("texts.rs"), table(&files))?;
    fs::write(out.join("each.rs"), each(texts.0.keys()))?;
    Ok(())
}

/// The definition files by ROS name.
fn definitions(share: &Path) -> Result<BTreeMap<String, PathBuf>, Box<dyn Error>> {
    let mut files = BTreeMap::new();
    for package in fs::read_dir(share)? {
        let package = package?.path();
        for kind in [Kind::Message, Kind::Service, Kind::Action] {
            let folder = package.join(kind.word());
            if !folder.is_dir() {
                continue;
            }
            for file in fs::read_dir(folder)? {
                let file = file?.path();
                let part = |name: Option<&std::ffi::OsStr>| {
                    name.unwrap_or_default().to_string_lossy().into_owned()
                };
                let name =
                    format!("{}/{kind}/{}", part(package.file_name()), part(file.file_stem()));
                files.insert(name, file);
            }
        }
    }
    Ok(files)
}

/// A sorted Rust table of names and texts.
fn table(files: &BTreeMap<String, PathBuf>) -> String {
    let mut text = String::from("&[\n");
    for (name, path) in files {
        // Writing to a String does not fail.
        let _ = writeln!(text, "    ({name:?}, include_str!({path:?})),");
    }
    text.push_str("]\n");
    text
}

/// Macros that do the same for every generated message, service and action; the tests use them.
fn each<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let [mut messages, mut services, mut actions] = [const { String::new() }; 3];
    for name in names {
        let path = format!("tsuji_interfaces::{}", name.replace('/', "::"));
        // Writing to a String does not fail.
        if name.contains("/srv/") {
            let _ = writeln!(services, "$check::<{path}>($($argument),*);");
            for part in ["Request", "Response"] {
                let _ = writeln!(messages, "$check::<{path}{part}>($($argument),*);");
            }
        } else if name.contains("/action/") {
            let _ = writeln!(actions, "$check::<{path}>($($argument),*);");
            for part in ["Goal", "Result", "Feedback", "FeedbackMessage"] {
                let _ = writeln!(messages, "$check::<{path}{part}>($($argument),*);");
            }
            for service in ["SendGoal", "GetResult"] {
                let _ = writeln!(services, "$check::<{path}{service}>($($argument),*);");
                for part in ["Request", "Response"] {
                    let _ = writeln!(messages, "$check::<{path}{service}{part}>($($argument),*);");
                }
            }
        } else {
            let _ = writeln!(messages, "$check::<{path}>($($argument),*);");
        }
    }
    let each = |name, body| {
        format!(
            "macro_rules! {name} {{ ($check:ident $(, $argument:expr)*) => {{{{ {body} }}}}; }}\n"
        )
    };
    each("each_message", messages) + &each("each_service", services) + &each("each_action", actions)
}

struct Texts(BTreeMap<String, String>);

impl Resolver for Texts {
    fn definition(&self, kind: Kind, package: &str, name: &str) -> Option<Cow<'_, str>> {
        self.0.get(&format!("{package}/{kind}/{name}")).map(|text| Cow::Borrowed(text.as_str()))
    }
}

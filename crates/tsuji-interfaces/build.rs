//! Generates Rust types and the table of texts from the definitions under `share`.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};
use tsuji_build::Folders;
use tsuji_msg::codegen::Codegen;

fn main() -> Result<(), Box<dyn Error>> {
    let share = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("share");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", share.display());
    println!("cargo::metadata=share={}", share.display());

    let folders = Folders::below(&share)?;
    let names: Vec<String> = folders.names().map(|(name, _)| name.to_string()).collect();
    let code = Codegen::new(&folders).generate(names.iter().map(String::as_str))?;
    fs::write(out.join("interfaces.rs"), code)?;
    fs::write(out.join("texts.rs"), table(&folders))?;
    fs::write(out.join("each.rs"), each(names.iter()))?;
    Ok(())
}

/// A Rust table of names and texts, sorted as texts are.
fn table(folders: &Folders) -> String {
    let mut lines: Vec<String> = folders
        .names()
        .map(|(name, path)| format!("    ({:?}, include_str!({path:?})),\n", name.to_string()))
        .collect();
    lines.sort();
    format!("&[\n{}]\n", lines.concat())
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

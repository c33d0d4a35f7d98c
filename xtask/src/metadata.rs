use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// One package of `cargo metadata`, with what the checks read of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) manifest: String,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) roots: Vec<Root>,
}

#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: DependencyKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    Normal,
    Dev,
    Build,
}

/// The first file of a library or a program.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(crate) is_library: bool,
    pub(crate) path: String,
}

/// Asks cargo, with `arguments` after `cargo metadata`.
pub(crate) fn packages(root: &Path, arguments: &[&str]) -> Result<Vec<Package>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1"])
        .args(arguments)
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let json: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    Ok(list(&json["packages"]).map(package).collect())
}

fn package(json: &Value) -> Package {
    Package {
        name: text(&json["name"]),
        description: json["description"].as_str().map(str::to_owned),
        manifest: text(&json["manifest_path"]),
        dependencies: list(&json["dependencies"]).map(dependency).collect(),
        roots: list(&json["targets"]).filter_map(crate_root).collect(),
    }
}

fn dependency(json: &Value) -> Dependency {
    let kind = match json["kind"].as_str() {
        Some("dev") => DependencyKind::Dev,
        Some("build") => DependencyKind::Build,
        _ => DependencyKind::Normal,
    };
    Dependency { name: text(&json["name"]), kind }
}

fn crate_root(json: &Value) -> Option<Root> {
    let is_library = match list(&json["kind"]).next()?.as_str()? {
        "lib" | "rlib" | "cdylib" | "staticlib" | "proc-macro" => true,
        "bin" => false,
        _ => return None,
    };
    Some(Root { is_library, path: text(&json["src_path"]) })
}

fn list(json: &Value) -> impl Iterator<Item = &Value> {
    json.as_array().into_iter().flatten()
}

fn text(json: &Value) -> String {
    json.as_str().unwrap_or_default().to_owned()
}

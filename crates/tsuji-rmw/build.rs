//! Builds what only C++ can say of C++, its strings and vectors; and makes Rust of the tables in `abi/`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

/// In the order of their releases, as `Distribution` in `src/abi.rs` has them.
const DISTRIBUTIONS: [&str; 5] = ["humble", "jazzy", "kilted", "lyrical", "rolling"];

fn main() {
    println!("cargo::rerun-if-changed=src/containers.cpp");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        // Quick in a debug build too: it stands for what the standard library does in a call.
        .opt_level(2)
        .flag("-fvisibility=hidden")
        .extra_warnings(true)
        .warnings_into_errors(true)
        .file("src/containers.cpp")
        .compile("tsuji_rmw_containers");

    let tables = DISTRIBUTIONS.map(|name| {
        let path = format!("abi/{name}.def");
        println!("cargo::rerun-if-changed={path}");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        Table::read(&path, &text)
    });
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("abi.rs");
    fs::write(&out, in_rust(&tables)).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
}

/// What one file of `abi/` says.
#[derive(Default)]
struct Table {
    sizes: BTreeMap<String, u64>,
    offsets: BTreeMap<String, BTreeMap<String, u64>>,
    values: BTreeMap<String, u64>,
    functions: Vec<String>,
}

impl Table {
    fn read(path: &str, text: &str) -> Self {
        let mut table = Self::default();
        for (at, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with("//") {
                continue;
            }
            table.line(line).unwrap_or_else(|| panic!("{path}:{}: {line}", at + 1));
        }
        table
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once('(')?;
        let words: Vec<_> = rest.strip_suffix(')')?.split(", ").collect();
        let is_new = match (kind, &words[..]) {
            ("SIZE", [name, size]) => {
                self.sizes.insert((*name).to_owned(), number(size)?).is_none()
            }
            ("OFFSET", [name, field, offset]) => {
                let fields = self.offsets.entry((*name).to_owned()).or_default();
                fields.insert((*field).to_owned(), number(offset)?).is_none()
            }
            ("VALUE", [name, value]) => {
                self.values.insert((*name).to_owned(), number(value)?).is_none()
            }
            ("FUNCTION", [name]) => {
                self.functions.push((*name).to_owned());
                true
            }
            _ => return None,
        };
        is_new.then_some(())
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The type `Abi`, with a field for each structure and each value that differs between distributions, and one `Abi`
/// for each.
fn in_rust(tables: &[Table]) -> String {
    let structures: BTreeSet<_> = tables.iter().flat_map(|it| it.sizes.keys()).collect();
    let structures: Vec<_> = structures
        .into_iter()
        .filter(|name| {
            let of = |table: &Table| {
                (table.sizes.get(*name).copied(), table.offsets.get(*name).cloned())
            };
            tables.iter().any(|table| of(table) != of(&tables[0]))
        })
        .collect();
    let values: BTreeSet<_> = tables.iter().flat_map(|it| it.values.keys()).collect();
    let values: Vec<_> = values
        .into_iter()
        .filter(|name| tables.iter().any(|it| it.values.get(*name) != tables[0].values.get(*name)))
        .collect();

    let mut out = String::new();
    let mut abi = String::new();
    for name in &structures {
        let fields: BTreeSet<_> =
            tables.iter().filter_map(|it| it.offsets.get(*name)).flat_map(|it| it.keys()).collect();
        let _ =
            writeln!(out, "/// Where the fields of `{name}` are; none where it has no such field.");
        let _ = writeln!(
            out,
            "#[derive(Clone, Copy, Debug)]\npub struct {name}_at {{\n    pub SIZE: usize,"
        );
        for field in &fields {
            let _ = writeln!(out, "    pub {}: Option<usize>,", in_rust_name(field));
        }
        let _ = writeln!(out, "}}\n");
        let _ = writeln!(abi, "    pub {name}: {name}_at,");
    }
    for name in &values {
        let _ = writeln!(abi, "    pub {name}: Option<u32>,");
    }
    let _ = writeln!(
        out,
        "/// What differs between distributions: layouts, in bytes, and values.\n#[derive(Clone, Copy, Debug)]\npub struct \
         Abi {{\n    pub distribution: Distribution,\n    /// The functions that the distribution looks up.\n    pub functions: \
         &'static [&'static str],\n{abi}}}\n"
    );
    for (distribution, table) in DISTRIBUTIONS.iter().zip(tables) {
        let upper = distribution.to_uppercase();
        let mut variant = distribution.to_string();
        variant[..1].make_ascii_uppercase();
        let _ = writeln!(
            out,
            "pub static {upper}: Abi = Abi {{\n    distribution: Distribution::{variant},"
        );
        let _ = writeln!(out, "    functions: &{:?},", table.functions);
        for name in &structures {
            let all: BTreeSet<_> = tables
                .iter()
                .filter_map(|it| it.offsets.get(*name))
                .flat_map(|it| it.keys())
                .collect();
            let size = table.sizes.get(*name).copied().unwrap_or(0);
            let _ = writeln!(out, "    {name}: {name}_at {{\n        SIZE: {size},");
            for field in all {
                let offset = table.offsets.get(*name).and_then(|it| it.get(field));
                let _ = writeln!(out, "        {}: {offset:?},", in_rust_name(field));
            }
            let _ = writeln!(out, "    }},");
        }
        for name in &values {
            let _ = writeln!(out, "    {name}: {:?},", table.values.get(*name));
        }
        let _ = writeln!(out, "}};\n");
    }
    out
}

/// A field's name that is no word of Rust.
fn in_rust_name(field: &str) -> &str {
    if field == "impl" { "impl_" } else { field }
}

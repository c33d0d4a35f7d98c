//! `tsuji pkg` and `tsuji run`: what installed packages have, as the index of ament tells it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use clap::Subcommand;
use clap_complete::engine::ArgValueCandidates;
use tsuji_interfaces::AmentIndex;

use crate::completions;
use crate::failure::Usage;
use crate::output::{self, Output};
use crate::session::Globals;

/// Folders in folders below a package's executables; deeper ones are not looked into.
const DEPTH_MAX: usize = 16;

/// Bytes of a package's manifest; a longer one is refused.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

const MANIFEST: tsuji_xml::Kind = tsuji_xml::Kind {
    name: "a manifest",
    root: "package",
    bytes_max: MANIFEST_BYTES_MAX as usize,
    elements_max: 10_000,
    attributes_max: 100,
    depth_max: 16,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the packages
    #[command(after_help = "Example:\n  tsuji pkg list")]
    List,
    /// List the executables of a package, or of all
    #[command(
        after_help = "Examples:\n  tsuji pkg executables demo_nodes_cpp\n  tsuji pkg executables --full-path"
    )]
    Executables(Executables),
    /// Print the folder under which a package is installed
    #[command(
        after_help = "Examples:\n  tsuji pkg prefix std_msgs\n  tsuji pkg prefix --share std_msgs"
    )]
    Prefix(Prefix),
    /// Print the manifest of a package, or the text of one of its elements
    #[command(
        after_help = "Examples:\n  tsuji pkg xml std_msgs\n  tsuji pkg xml std_msgs -t version"
    )]
    Xml(Xml),
    /// Refused: tsuji builds no packages
    #[command(hide = true, disable_help_flag = true)]
    Create(crate::elsewhere::Words),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Executables {
    /// The package; all if not said
    #[arg(value_name = "PACKAGE", add = packages())]
    package: Option<String>,
    /// Print the whole path of each
    #[arg(long)]
    full_path: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Prefix {
    /// The package
    #[arg(value_name = "PACKAGE", add = packages())]
    package: String,
    /// Print the folder with what the package shares
    #[arg(long)]
    share: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Xml {
    /// The package
    #[arg(value_name = "PACKAGE", add = packages())]
    package: String,
    /// Print the text of the elements of this name alone, such as version
    #[arg(short, long, value_name = "NAME")]
    tag: Option<String>,
}

pub(crate) const RUN_EXAMPLES: &str = "It becomes the program, so signals reach it and its exit code is that of the command.\n\n\
    Examples:\n  tsuji run demo_nodes_cpp talker --ros-args -r chatter:=/news\n  \
    tsuji run --prefix 'gdb -ex run --args' demo_nodes_cpp talker";

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Words in front of the program, such as 'gdb --args'
    #[arg(long, value_name = "COMMAND")]
    prefix: Option<String>,
    /// The package
    #[arg(value_name = "PACKAGE", add = packages())]
    package: String,
    /// The executable of the package; all that follows it is what the program is told
    // One argument, since the first word of one that trails ends the reading of flags.
    #[arg(value_name = "EXECUTABLE", required = true, trailing_var_arg = true)]
    words: Vec<String>,
}

pub(crate) fn run(command: &Command, out: &mut Output) -> anyhow::Result<()> {
    match command {
        Command::List => {
            let packages = Packages::installed();
            packages.told().keys().try_for_each(|it| out.line(it))?;
            Ok(())
        }
        Command::Executables(args) => executables(args, out),
        Command::Prefix(args) => {
            let prefix = Packages::installed().prefix(&args.package)?;
            let shown = if args.share { share(&prefix, &args.package) } else { prefix };
            Ok(out.line(shown.display())?)
        }
        Command::Xml(args) => xml(args, out),
        Command::Create(_) => crate::elsewhere::refuse("pkg create"),
    }
}

/// Becomes the program; comes back only with an error.
pub(crate) fn run_program(args: &Run, globals: &Globals) -> anyhow::Result<()> {
    let Run { prefix, package, words } = args;
    let Some((executable, arguments)) = words.split_first() else {
        return Err(Usage("an executable is to be named".to_owned()).into());
    };
    let folder = Packages::installed().prefix(package)?.join("lib").join(package);
    let all = executables_in(&folder)?;
    let named = |it: &&PathBuf| it.file_name().is_some_and(|it| it.to_str() == Some(executable));
    let found: Vec<&PathBuf> = all.iter().filter(named).collect();
    let program = match found.as_slice() {
        [one] => *one,
        [] => {
            let names: Vec<_> = all.iter().filter_map(|it| it.file_name()?.to_str()).collect();
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            anyhow::bail!("No executable found: '{executable}' of {package}; there are: {there}");
        }
        several => {
            let paths: Vec<String> =
                several.iter().map(|it| format!("\n- {}", it.display())).collect();
            anyhow::bail!("Multiple executables found:{}", paths.concat());
        }
    };
    let words = tsuji_launch::shell_words(prefix.as_deref().unwrap_or_default())
        .map_err(|quote| Usage(format!("--prefix: the quote {quote} is not closed")))?;
    let mut words = words.into_iter();
    let mut process = match words.next() {
        Some(first) => {
            let mut process = Process::new(first);
            process.args(words).arg(program);
            process
        }
        None => Process::new(program),
    };
    globals.pass_on(&mut process);
    let error = process.args(arguments).exec();
    anyhow::bail!("cannot start {}: {error}", process.get_program().to_string_lossy())
}

fn executables(args: &Executables, out: &mut Output) -> anyhow::Result<()> {
    let packages = Packages::installed();
    let asked: Vec<(String, PathBuf)> = match &args.package {
        Some(package) => vec![(package.clone(), packages.prefix(package)?)],
        None => packages.told().iter().map(|(it, prefix)| (it.clone(), prefix.clone())).collect(),
    };
    for (package, prefix) in asked {
        for path in executables_in(&prefix.join("lib").join(&package))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match args.full_path {
                true => out.line(path.display())?,
                false => out.line(format_args!("{package} {name}"))?,
            }
        }
    }
    Ok(())
}

fn xml(args: &Xml, out: &mut Output) -> anyhow::Result<()> {
    let path =
        share(&Packages::installed().prefix(&args.package)?, &args.package).join("package.xml");
    let text = match fs::metadata(&path) {
        Ok(it) if MANIFEST_BYTES_MAX < it.len() => anyhow::bail!(
            "{}: it has {} bytes; at most {MANIFEST_BYTES_MAX} are read",
            path.display(),
            it.len()
        ),
        Ok(_) => fs::read_to_string(&path),
        Err(error) => Err(error),
    };
    let text = text.map_err(|error| anyhow::anyhow!("cannot read {}: {error}", path.display()))?;
    let Some(tag) = &args.tag else { return Ok(out.lines(text.trim_end())?) };
    let found =
        tsuji_xml::read(&MANIFEST, &path.display().to_string(), text.as_bytes(), |root, _| {
            let named = root.children().filter(|it| it.tag_name().name() == tag);
            named.map(text_of).collect::<Vec<_>>()
        })?;
    if found.is_empty() {
        anyhow::bail!("XML tag not found: {} has no element '{tag}'", path.display());
    }
    Ok(found.iter().try_for_each(|it| out.lines(it))?)
}

/// The text before the first element inside, as Python's ElementTree has it: comments divide nothing.
fn text_of(node: tsuji_xml::Node<'_, '_>) -> String {
    let before = node.children().take_while(|it| !it.is_element());
    let text: String = before.filter_map(|it| it.text().filter(|_| it.is_text())).collect();
    if text.is_empty() { "None".to_owned() } else { text }
}

fn share(prefix: &Path, package: &str) -> PathBuf {
    prefix.join("share").join(package)
}

/// The executables below a folder, in their order. Folders whose names begin with a point are not looked into.
fn executables_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
        let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            // A link that leads nowhere is no executable.
            let Ok(it) = fs::metadata(&path) else { continue };
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            if it.is_dir() && !is_hidden && !entry.file_type()?.is_symlink() && depth < DEPTH_MAX {
                walk(&path, depth + 1, found)?;
            } else if it.is_file() && it.permissions().mode() & 0o111 != 0 {
                found.push(path);
            }
        }
        Ok(())
    }
    let mut found = Vec::new();
    match walk(folder, 0, &mut found) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            anyhow::bail!("cannot read {}: {error}", folder.display())
        }
        _ => {
            found.sort();
            Ok(found)
        }
    }
}

/// The prefixes that `AMENT_PREFIX_PATH` names, in their order.
pub(crate) fn prefixes() -> Vec<PathBuf> {
    let path = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
    AmentIndex::from_env_value(path).prefixes().to_vec()
}

/// The packages of the prefixes that `AMENT_PREFIX_PATH` names. Of one that is there twice the first counts.
struct Packages {
    by_name: BTreeMap<String, PathBuf>,
    prefixes: usize,
    troubles: Vec<String>,
}

impl Packages {
    fn installed() -> Self {
        let prefixes = prefixes();
        let mut packages =
            Self { by_name: BTreeMap::new(), prefixes: prefixes.len(), troubles: Vec::new() };
        for prefix in prefixes {
            let index = prefix.join("share/ament_index/resource_index/packages");
            let entries = fs::read_dir(&index).and_then(|it| it.collect::<io::Result<Vec<_>>>());
            match entries {
                Ok(entries) => {
                    for entry in entries {
                        let name = entry.file_name().to_string_lossy().into_owned();
                        packages.by_name.entry(name).or_insert_with(|| prefix.clone());
                    }
                }
                Err(error) if error.kind() == ErrorKind::NotFound => (),
                Err(error) => packages.troubles.push(format!(
                    "cannot read {}: {error}; its packages are left out",
                    index.display()
                )),
            }
        }
        packages
    }

    /// The packages, after what could not be read is told.
    fn told(&self) -> &BTreeMap<String, PathBuf> {
        self.troubles.iter().for_each(output::warning);
        if self.prefixes == 0 {
            output::warning("AMENT_PREFIX_PATH is not set; installed packages are found by it");
        }
        &self.by_name
    }

    fn prefix(&self, package: &str) -> anyhow::Result<PathBuf> {
        if let Some(prefix) = self.by_name.get(package) {
            return Ok(prefix.clone());
        }
        self.troubles.iter().for_each(output::warning);
        let searched = match self.prefixes {
            0 => anyhow::bail!(
                "Package '{package}' not found: AMENT_PREFIX_PATH is not set; installed packages are found by it"
            ),
            1 => "searched AMENT_PREFIX_PATH (1 folder)".to_owned(),
            more => format!("searched AMENT_PREFIX_PATH ({more} folders)"),
        };
        anyhow::bail!(
            "Package '{package}' not found; {searched}, `tsuji pkg list` lists those there are"
        )
    }
}

/// The names of packages, for the words of a command.
fn packages() -> ArgValueCandidates {
    completions::words(|| Packages::installed().by_name.into_keys().collect())
}

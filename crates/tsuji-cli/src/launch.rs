//! `tsuji launch`: the nodes of a launch file, from their start to their end.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Context as _;
use serde_json::{Value as Json, json};
use tsuji::parameter::{self, Parameter, ParameterFile};
use tsuji_launch::{Argument, Component, ParameterSource, Plan, Process, World};

use crate::failure::Usage;
use crate::output::{Colour, Output};
use crate::record::refusal;
use crate::session::Globals;

mod guard;
mod loading;
mod package;
mod report;
mod running;

pub(crate) const EXAMPLES: &str = "\
The file is a launch file of ROS 2 in XML; the page of the manual about launch files says which elements there are.
Ctrl-C ends all nodes: SIGINT first, SIGTERM after 5 seconds, SIGKILL after 5 more, unless the file says otherwise;
pressed again, the next of these at once.

Exit codes: 0 if all ended well or were told to end; 1 if one failed; 2 if the file or an argument is wrong, and then
nothing is started.

Examples:
  tsuji launch robot.launch.xml
  tsuji launch robot.launch.xml name:=left rate:=2.0
  tsuji launch demo_nodes_cpp talker_listener_launch.xml
  tsuji launch robot.launch.xml --show-args
  tsuji launch robot.launch.xml --dry-run";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The launch file, or a package and the file in it
    #[arg(value_name = "FILE", required_unless_present = "guard", num_args = 1..)]
    words: Vec<String>,
    /// Show the arguments that the file takes, and end
    #[arg(short = 's', long, alias = "show-arguments", conflicts_with = "dry_run")]
    show_args: bool,
    /// Show what would be started, and start nothing
    #[arg(short = 'p', long, visible_alias = "print", alias = "print-description")]
    dry_run: bool,
    /// Show and keep all that nodes print, whatever the file says of their output
    #[arg(short = 'a', long)]
    show_all_subprocesses_output: bool,
    /// Words to stand before each process that the file gives no such words
    #[arg(long, value_name = "WORDS")]
    launch_prefix: Option<String>,
    /// Print JSON: an object in each line for what happens and for each line that a node prints
    #[arg(long)]
    json: bool,
    /// No effect: nothing is asked
    #[arg(short = 'n', long, hide = true)]
    noninteractive: bool,
    /// Not supported
    #[arg(short = 'd', long, hide = true)]
    debug: bool,
    /// Kill the groups of a launch that has died
    #[arg(long, hide = true, conflicts_with = "words")]
    guard: bool,
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    if args.guard {
        guard::watch(io::stdin().lock());
        return Ok(());
    }
    if args.debug {
        return Err(refusal(
            "--debug: nothing runs in Python; --dry-run shows what would be started, and --launch-prefix 'gdb -ex run --args' \
             starts each process in a debugger",
        ));
    }
    let said = args.words.iter().position(|it| it.contains(":=")).unwrap_or(args.words.len());
    let (file, given) = args.words.split_at(said);
    let file = match file {
        [file] => package::file_or_why_not(file)?,
        // As `ros2 launch` has it, a file comes before a package of its name.
        [file, argument] if Path::new(file).is_file() => return Err(no_argument(argument).into()),
        [package, file] => package::file(package, file)?,
        _ => {
            let text =
                "a launch file is one word, or a package and a file; arguments are NAME:=VALUE";
            return Err(Usage(text.to_owned()).into());
        }
    };
    // What stands beside it is found from any working directory.
    let file = std::path::absolute(&file)?;
    let here = Here { shows_all: args.show_all_subprocesses_output };
    if args.show_args {
        let arguments = tsuji_launch::declared(&here, &file);
        return show_arguments(&arguments.map_err(usage)?, args.json, out);
    }
    let given = given.iter().map(|words| match words.split_once(":=") {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(no_argument(words)),
    });
    let mut given = given.collect::<Result<BTreeMap<_, _>, _>>()?;
    if let Some(prefix) = &args.launch_prefix {
        given.insert("launch-prefix".to_owned(), prefix.clone());
    }
    let given: Vec<(String, String)> = given.into_iter().collect();
    let plan = tsuji_launch::plan(&here, &file, &given).map_err(usage)?;
    let components = check(&plan)?;
    if args.dry_run {
        return show(&plan, args.json, out);
    }
    running::run(plan, components, args.json, globals)
}

/// Opens a file. Whoever opens or reads a pipe may wait without an end.
fn open(path: &Path) -> io::Result<fs::File> {
    let kind = fs::metadata(path)?;
    // That it is a folder is told by who reads it.
    if !kind.is_file() && !kind.is_dir() {
        return Err(io::Error::other("it is no regular file"));
    }
    fs::File::open(path)
}

fn usage(error: impl std::fmt::Display) -> anyhow::Error {
    Usage(error.to_string()).into()
}

fn no_argument(words: &str) -> Usage {
    Usage(format!("{words:?} is not an argument; it is NAME:=VALUE"))
}

/// The machine that the command runs on.
struct Here {
    /// What all processes print goes to the terminal, whatever the file says.
    shows_all: bool,
}

impl World for Here {
    fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        let file = open(path).map_err(|error| error.to_string())?;
        // One more than is allowed, which the reader of launch files then says.
        let most = tsuji_launch::FILE_BYTES_MAX as u64 + 1;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn is_executable(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    }

    fn files(&self, folder: &Path) -> Vec<String> {
        package::names(folder)
    }

    fn log_folder(&self) -> Result<PathBuf, String> {
        log_path().map_err(|error| error.to_string())
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        if self.shows_all && name == "OVERRIDE_LAUNCH_PROCESS_OUTPUT" {
            return Some("both".into());
        }
        env::var_os(name)
    }

    fn token(&self) -> String {
        let random = tsuji_platform::process::random_token().unwrap_or_default();
        let number = u64::from_le_bytes(random[..8].try_into().unwrap_or_default());
        format!("{}_{number:016x}", std::process::id())
    }
}

/// A component whose values are understood.
#[derive(Debug)]
struct Loadable {
    what: Component,
    parameters: Vec<Parameter>,
    extra: Vec<Parameter>,
}

/// Reads all values of parameters, which a node would otherwise refuse at its start.
fn check(plan: &Plan) -> anyhow::Result<Vec<Loadable>> {
    for process in &plan.processes {
        for source in &process.parameters {
            parameters(source, process.node.as_deref())?;
        }
    }
    let components = plan.components.iter().map(|it| {
        let full = format!("{}/{}", it.namespace.trim_end_matches('/'), it.name);
        let mut all = Vec::new();
        for source in &it.parameters {
            all.extend(parameters(source, Some(&full))?);
        }
        let mut extra = Vec::new();
        for (words, place) in &it.extra {
            let source = ParameterSource::Assign(words.clone(), place.clone());
            extra.extend(parameters(&source, Some(&full))?);
        }
        Ok(Loadable { what: it.clone(), parameters: all, extra })
    });
    components.collect()
}

fn parameters(source: &ParameterSource, node: Option<&str>) -> anyhow::Result<Vec<Parameter>> {
    let (file, place, what) = match source {
        ParameterSource::Assign(words, place) => {
            // The name is not one of a node, whatever it looks like.
            (ParameterFile::parse_argument(words), place, words.clone())
        }
        ParameterSource::File(path, place) => {
            let what = path.display().to_string();
            let wrong = |error: io::Error| Usage(format!("{place}: {what}: {error}"));
            let file = fs::File::open(path).map_err(wrong)?;
            let mut text = String::new();
            file.take(parameter::FILE_BYTES_MAX as u64 + 1)
                .read_to_string(&mut text)
                .map_err(wrong)?;
            (ParameterFile::parse(&text), place, what)
        }
    };
    let file = file.map_err(|error| Usage(format!("{place}: {what}:{error}")))?;
    Ok(file.for_node(node.unwrap_or("/_")))
}

fn show_arguments(arguments: &[Argument], json: bool, out: &mut Output) -> anyhow::Result<()> {
    if json {
        let all = arguments.iter().map(|it| {
            json!({ "name": it.name, "default": it.default, "description": it.description, "choices": it.choices })
        });
        return Ok(out.lines(serde_json::to_string_pretty(&all.collect::<Vec<_>>())?)?);
    }
    if arguments.is_empty() {
        return Ok(out.line("No arguments.")?);
    }
    out.line("Arguments (pass arguments as '<name>:=<value>'):")?;
    for Argument { name, default, description, choices } in arguments {
        out.lines(format_args!("\n    '{}':", out.paint.text(Colour::Name, name)))?;
        if !description.is_empty() {
            out.lines(format_args!("        {description}"))?;
        }
        if !choices.is_empty() {
            out.line(format_args!("        one of: {}", choices.join(", ")))?;
        }
        match default {
            Some(default) => out.line(format_args!("        (default: '{default}')"))?,
            None => out.line("        (must be given)")?,
        }
    }
    Ok(())
}

fn show(plan: &Plan, json: bool, out: &mut Output) -> anyhow::Result<()> {
    if json {
        let processes = plan.processes.iter().map(process_json).collect::<Vec<_>>();
        let components = plan.components.iter().map(|it| {
            json!({ "container": it.container, "package": it.package, "plugin": it.plugin, "name": it.name,
                "namespace": it.namespace, "remappings": it.remappings, "place": it.place.to_string() })
        });
        let messages = plan
            .messages
            .iter()
            .map(|(text, place)| json!({ "message": text, "place": place.to_string() }));
        let all = json!({ "messages": messages.collect::<Vec<_>>(), "processes": processes,
            "components": components.collect::<Vec<_>>() });
        return Ok(out.lines(serde_json::to_string_pretty(&all)?)?);
    }
    for (text, place) in &plan.messages {
        out.line(format_args!("says: {text}"))?;
        out.line(format_args!("    of {}", out.paint.text(Colour::Dim, place)))?;
    }
    for process in &plan.processes {
        let label = format!("[{}]", process.label);
        out.line(format_args!(
            "{} {}",
            out.paint.text(Colour::Name, label),
            command_line(process)
        ))?;
        let place = out.paint.text(Colour::Dim, &process.place);
        out.line(format_args!("    of {place}"))?;
        if let Some(cwd) = &process.cwd {
            out.line(format_args!("    in {}", cwd.display()))?;
        }
    }
    for it in &plan.components {
        let (package, plugin, container) = (&it.package, &it.plugin, &it.container);
        out.line(format_args!("{package} {plugin} into {container}"))?;
        let place = out.paint.text(Colour::Dim, &it.place);
        out.line(format_args!("    of {place}"))?;
    }
    Ok(())
}

fn process_json(process: &Process) -> Json {
    let respawn = process
        .respawn
        .map(|it| json!({ "delay_s": it.delay.as_secs_f64(), "retries_max": it.retries_max }));
    json!({ "process": process.label, "argv": process.argv, "env": process.env, "cwd": process.cwd,
        "node": process.node, "respawn": respawn, "place": process.place.to_string() })
}

/// As it would be typed.
fn command_line(process: &Process) -> String {
    let env = process.env.iter().map(|(name, value)| match value {
        Some(value) => format!("{name}={}", quoted(value)),
        None => format!("-u {name}"),
    });
    let mut words: Vec<String> = env.collect();
    if !words.is_empty() {
        words.sort_by_key(|it| !it.starts_with("-u"));
        words.insert(0, "env".to_owned());
    }
    words.extend(process.argv.iter().map(|it| quoted(it)));
    words.join(" ")
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "_-./:=@%+,".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Where the output of this launch is kept, as ROS 2 finds it: in `ROS_LOG_DIR`, or `log` in `ROS_HOME`, or `~/.ros/log`.
fn log_path() -> io::Result<PathBuf> {
    static NAME: OnceLock<String> = OnceLock::new();
    let said = |name| env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let base = said("ROS_LOG_DIR").or_else(|| Some(said("ROS_HOME")?.join("log")));
    let base = base.or_else(|| Some(said("HOME")?.join(".ros").join("log")));
    let base =
        base.ok_or_else(|| io::Error::other("none of ROS_LOG_DIR, ROS_HOME, HOME is set"))?;
    let name = NAME.get_or_init(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let seconds = now.map_or(0, |it| it.as_secs());
        format!("launch-{seconds}-{}", std::process::id())
    });
    Ok(base.join(name))
}

/// Makes the folder where the output of processes is kept.
fn log_folder() -> anyhow::Result<PathBuf> {
    let folder = log_path().context("cannot make a folder for what processes print")?;
    fs::create_dir_all(&folder).with_context(|| {
        format!(
            "cannot make the folder {} for what processes print; ROS_LOG_DIR can name another",
            folder.display()
        )
    })?;
    Ok(folder)
}

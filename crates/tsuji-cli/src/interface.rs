//! `tsuji interface`: what messages and services are made of.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use tsuji_msg::definition::{Base, parse_message};
use tsuji_msg::{DynamicMessage, EchoStyle, Kind, NameError, TypeName};

use crate::completions;
use crate::failure::Usage;
use crate::interfaces::{Interfaces, heading};
use crate::output::{Colour, Output};
use crate::session::end_at_once_on_signals;

/// Messages in messages that are shown; the loader refuses deeper types.
const NESTING_MAX: usize = tsuji_msg::NESTING_MAX;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the definition of an interface, with the definitions that it uses
    #[command(after_help = "Examples:\n  tsuji interface show geometry_msgs/msg/Twist\n  \
        tsuji interface show sensor_msgs/Image --no-comments\n  \
        tsuji interface show std_srvs/srv/SetBool")]
    Show(Show),
    /// List all interfaces
    #[command(after_help = "Examples:\n  tsuji interface list\n  tsuji interface list -s")]
    List(List),
    /// List the interfaces of a package
    #[command(
        after_help = "Examples:\n  tsuji interface package sensor_msgs\n  tsuji interface package -s std_srvs"
    )]
    Package(Package),
    /// List the packages that have interfaces
    #[command(after_help = "Example:\n  tsuji interface packages --only-srvs")]
    Packages(List),
    /// Print a message, the request of a service or the goal of an action with its default values, to be filled in
    #[command(
        after_help = "Examples:\n  tsuji interface proto geometry_msgs/msg/Twist --no-quotes\n  \
        tsuji interface proto std_srvs/srv/SetBool"
    )]
    Proto(Proto),
    /// Print Rust types of all interfaces of packages, for a crate that depends on tsuji-interfaces
    #[command(after_help = "Examples:\n  tsuji interface rust my_robot_msgs\n  \
        tsuji interface rust my_robot_msgs nav2_msgs -o src/interfaces.rs")]
    Rust(Rust),
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The interface: package/msg/Name, package/srv/Name, package/Name; `-` reads it from standard
    /// input
    #[arg(value_name = "TYPE", add = completions::interfaces())]
    name: String,
    /// Show no comments and no blank lines
    #[arg(long, conflicts_with = "all_comments")]
    no_comments: bool,
    /// Show the comments of the interfaces inside as well
    #[arg(long)]
    all_comments: bool,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    kinds: Kinds,
    /// Print JSON: an array of names
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Kinds {
    /// Only messages
    #[arg(short = 'm', long)]
    only_msgs: bool,
    /// Only services
    #[arg(short = 's', long)]
    only_srvs: bool,
    /// Only actions
    #[arg(short = 'a', long)]
    only_actions: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Package {
    /// The package
    #[arg(value_name = "PACKAGE", add = completions::packages())]
    package: String,
    #[command(flatten)]
    kinds: Kinds,
}

#[derive(Debug, Args)]
pub(crate) struct Proto {
    /// The interface: package/msg/Name, package/srv/Name, package/action/Name, package/Name
    #[arg(value_name = "TYPE", add = completions::interfaces())]
    name: String,
    /// Print it without the quotes around it
    #[arg(long)]
    no_quotes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rust {
    /// The packages; others that they use are printed as well, but those of tsuji-interfaces
    #[arg(value_name = "PACKAGE", required = true, add = completions::packages())]
    packages: Vec<String>,
    /// Write them to a file
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(command: &Command, out: &mut Output) -> anyhow::Result<()> {
    let interfaces = Interfaces::from_environment();
    match command {
        Command::Show(args) => show(args, &interfaces, out),
        Command::List(args) => list(args, &interfaces, out),
        Command::Package(args) => package(args, &interfaces, out),
        Command::Packages(args) => packages(args, &interfaces, out),
        Command::Proto(args) => proto(args, &interfaces, out),
        Command::Rust(args) => rust(args, &interfaces, out),
    }
}

fn show(args: &Show, interfaces: &Interfaces, out: &mut Output) -> anyhow::Result<()> {
    let mut text = args.name.clone();
    if text == "-" {
        text.clear();
        end_at_once_on_signals()?;
        io::stdin().read_line(&mut text)?;
        if text.trim().is_empty() {
            let text = "the first line of standard input is empty; allowed: a name such as std_msgs/msg/String";
            return Err(Usage(text.to_owned()).into());
        }
    }
    let text = text.trim();
    let name: TypeName =
        text.parse().map_err(|error: NameError| interfaces.explain(text, error.into()))?;
    check(&name, interfaces)?;
    let outer = if args.no_comments { Comments::Hidden } else { Comments::Shown };
    let inner = if args.all_comments { Comments::Shown } else { Comments::Hidden };
    let mut lines = Vec::new();
    definition_lines(&name, interfaces, (outer, inner), 0, &mut lines)?;
    for line in lines {
        let (code, comment) = line.split_at(line.len() - comment_of(&line).len());
        let comment = out.paint.text(Colour::Dim, comment);
        let text =
            if line.len() == code.len() { code.to_owned() } else { format!("{code}{comment}") };
        out.line(text)?;
    }
    Ok(())
}

fn list(args: &List, interfaces: &Interfaces, out: &mut Output) -> anyhow::Result<()> {
    let names = wanted(args, interfaces);
    if args.json {
        return Ok(out.lines(serde_json::to_string_pretty(&names)?)?);
    }
    for kind in args.kinds.asked() {
        out.line(out.paint.text(Colour::Strong, heading(kind)))?;
        for name in names.iter().filter(|it| kind_of(it) == Some(kind)) {
            out.line(format_args!("    {name}"))?;
        }
    }
    Ok(())
}

fn package(args: &Package, interfaces: &Interfaces, out: &mut Output) -> anyhow::Result<()> {
    let names = interfaces.names_told();
    let found = names_of(&args.package, &names)?;
    let kinds = args.kinds.asked();
    let is_wanted = |it: &&String| kind_of(it).is_some_and(|kind| kinds.contains(&kind));
    Ok(found.into_iter().filter(is_wanted).try_for_each(|it| out.line(it))?)
}

/// The names of a package among all.
fn names_of<'a>(package: &str, names: &'a BTreeSet<String>) -> anyhow::Result<Vec<&'a String>> {
    let prefix = format!("{package}/");
    let found: Vec<_> = names.iter().filter(|it| it.starts_with(&prefix)).collect();
    if found.is_empty() {
        let text = format!(
            "unknown package \"{package}\"; `tsuji interface packages` lists those that have interfaces"
        );
        return Err(Usage(text).into());
    }
    Ok(found)
}

fn packages(args: &List, interfaces: &Interfaces, out: &mut Output) -> anyhow::Result<()> {
    let names = wanted(args, interfaces);
    let packages: BTreeSet<&str> = names.iter().filter_map(|it| it.split('/').next()).collect();
    if args.json {
        return Ok(out.lines(serde_json::to_string_pretty(&packages)?)?);
    }
    for package in packages {
        out.line(package)?;
    }
    Ok(())
}

fn proto(args: &Proto, interfaces: &Interfaces, out: &mut Output) -> anyhow::Result<()> {
    let ty = match kind_of(&args.name) {
        // What a client sends is what is to be filled in.
        Some(Kind::Service) if !is_part(&args.name) => interfaces.service(&args.name)?.request,
        Some(Kind::Action) if !is_part(&args.name) => interfaces.action(&args.name)?.goal,
        _ => interfaces.message(&args.name)?,
    };
    let message = DynamicMessage::new(ty);
    let yaml = message.to_yaml(EchoStyle::default());
    let quote = if args.no_quotes { "" } else { "\"" };
    out.lines(format_args!("{quote}{yaml}{quote}"))?;
    Ok(())
}

fn rust(args: &Rust, interfaces: &Interfaces, out: &mut Output) -> anyhow::Result<()> {
    let names = interfaces.names_told();
    let mut wanted = Vec::new();
    for package in &args.packages {
        wanted.extend(names_of(package, &names)?);
    }
    let definitions = interfaces.types().resolver();
    let code = tsuji_build::codegen(definitions, tsuji_interfaces::Shipped)
        .generate(wanted.into_iter().map(String::as_str))?;
    let Some(file) = &args.output else { return Ok(out.lines(code.trim_end())?) };
    fs::write(file, code).with_context(|| format!("cannot write {}", file.display()))
}

impl Kinds {
    fn asked(&self) -> Vec<Kind> {
        let asked = [
            (Kind::Message, self.only_msgs),
            (Kind::Service, self.only_srvs),
            (Kind::Action, self.only_actions),
        ];
        let none = asked.iter().all(|(_, only)| !only);
        asked.into_iter().filter(|(_, only)| none || *only).map(|(kind, _)| kind).collect()
    }
}

fn wanted(args: &List, interfaces: &Interfaces) -> Vec<String> {
    let kinds = args.kinds.asked();
    let wanted = |name: &String| kind_of(name).is_some_and(|kind| kinds.contains(&kind));
    interfaces.names_told().into_iter().filter(wanted).collect()
}

/// Whether a name is that of a part that ROS makes of a service or an action, which alone have an underscore.
fn is_part(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|it| it.contains('_'))
}

fn kind_of(name: &str) -> Option<Kind> {
    name.parse::<TypeName>().ok().map(|it| it.kind())
}

/// Whether an interface can be loaded, so that nothing is shown of one that cannot.
fn check(name: &TypeName, interfaces: &Interfaces) -> anyhow::Result<()> {
    let text = name.to_string();
    // Parts such as `pkg/srv/Name_Request` have no text of their own.
    interfaces.definition(name)?;
    let types = interfaces.types();
    let loaded = match name.kind() {
        Kind::Message => types.load(&text).map(drop),
        Kind::Service => types.load_service(&text).map(drop),
        Kind::Action => types.load_action(&text).map(drop),
    };
    loaded.map_err(|error| interfaces.explain(&text, error))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comments {
    Shown,
    Hidden,
}

/// The lines of a definition, each field of another type followed by that type's, one tab deeper.
/// `comments` are for this definition and for those inside.
fn definition_lines(
    name: &TypeName,
    interfaces: &Interfaces,
    comments: (Comments, Comments),
    depth: usize,
    lines: &mut Vec<String>,
) -> anyhow::Result<()> {
    let text = interfaces.definition(name)?;
    for line in text.lines().map(str::trim_end) {
        let comment = comment_of(line);
        let mut shown = line;
        if comments.0 == Comments::Hidden {
            shown = line[..line.len() - comment.len()].trim_end();
            if shown.is_empty() {
                continue;
            }
        }
        lines.push(format!("{}{shown}", "\t".repeat(depth)));
        if let Some(nested) = nested_type(line, name)
            && depth < NESTING_MAX
        {
            definition_lines(&nested, interfaces, (comments.1, comments.1), depth + 1, lines)?;
        }
    }
    Ok(())
}

/// The type of the field that a line defines, if that is another message.
fn nested_type(line: &str, owner: &TypeName) -> Option<TypeName> {
    let spec = parse_message(line).ok()?;
    let Base::Nested(reference) = &spec.fields.first()?.ty.base else { return None };
    let package = reference.package.as_deref().unwrap_or_else(|| owner.package());
    TypeName::new(package, Kind::Message, &reference.name).ok()
}

/// The comment at the end of a line, empty if there is none. A `#` inside a text is none.
fn comment_of(line: &str) -> &str {
    let whole = parse_message(line).ok();
    let same = |prefix: &str| match (&whole, parse_message(prefix).ok()) {
        (Some(whole), Some(part)) => {
            let values = |it: &tsuji_msg::definition::MessageSpec| {
                let constants: Vec<_> = it.constants.iter().map(|it| it.value.clone()).collect();
                let defaults: Vec<_> = it.fields.iter().map(|it| it.default.clone()).collect();
                (constants, defaults)
            };
            values(whole) == values(&part)
        }
        _ => whole.is_none(),
    };
    let starts = line.match_indices('#').map(|(at, _)| at);
    starts.into_iter().find(|at| same(&line[..*at])).map_or("", |at| &line[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_told_from_texts() {
        let cases = [
            ("int32 x # where", "# where"),
            ("# all of it", "# all of it"),
            ("string NAME=\"a#b\" # c", "# c"),
            ("string name 'a#b'", ""),
            ("int32 x", ""),
            ("---", ""),
        ];
        for (line, expect) in cases {
            assert_eq!(comment_of(line), expect, "{line}");
        }
    }
}

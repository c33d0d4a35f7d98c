//! `tsuji interface`: what messages and services are made of.

use std::collections::BTreeSet;
use std::io;

use clap::{Args, Subcommand};
use tsuji_msg::definition::{Base, parse_message};
use tsuji_msg::{DynamicMessage, EchoStyle, Kind, NameError, TypeName};

use crate::completions;
use crate::failure::Usage;
use crate::interfaces::{Interfaces, heading};
use crate::output::{Colour, Output};

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
    #[command(after_help = "Example:\n  tsuji interface package sensor_msgs")]
    Package(Package),
    /// List the packages that have interfaces
    #[command(after_help = "Example:\n  tsuji interface packages --only-srvs")]
    Packages(List),
    /// Print a message with its default values, to be filled in for `tsuji topic pub`
    #[command(after_help = "Example:\n  tsuji interface proto geometry_msgs/msg/Twist --no-quotes")]
    Proto(Proto),
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
    /// Only messages
    #[arg(short = 'm', long)]
    only_msgs: bool,
    /// Only services
    #[arg(short = 's', long)]
    only_srvs: bool,
    /// Only actions
    #[arg(short = 'a', long)]
    only_actions: bool,
    /// Print JSON: an array of names
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Package {
    /// The package
    #[arg(value_name = "PACKAGE", add = completions::packages())]
    package: String,
}

#[derive(Debug, Args)]
pub(crate) struct Proto {
    /// The message: package/msg/Name, package/Name
    #[arg(value_name = "TYPE", add = completions::messages())]
    name: String,
    /// Print it without the quotes around it
    #[arg(long)]
    no_quotes: bool,
}

pub(crate) fn run(command: &Command, out: &mut Output) -> anyhow::Result<()> {
    let interfaces = Interfaces::from_environment();
    match command {
        Command::Show(args) => show(args, &interfaces, out),
        Command::List(args) => list(args, &interfaces, out),
        Command::Package(args) => package(args, &interfaces, out),
        Command::Packages(args) => packages(args, &interfaces, out),
        Command::Proto(args) => proto(args, &interfaces, out),
    }
}

fn show(args: &Show, interfaces: &Interfaces, out: &mut Output) -> anyhow::Result<()> {
    let mut text = args.name.clone();
    if text == "-" {
        text.clear();
        io::stdin().read_line(&mut text)?;
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
        return Ok(out.line(serde_json::to_string_pretty(&names)?)?);
    }
    for kind in args.kinds() {
        out.line(out.paint.text(Colour::Strong, heading(kind)))?;
        for name in names.iter().filter(|it| kind_of(it) == Some(kind)) {
            out.line(format_args!("    {name}"))?;
        }
    }
    Ok(())
}

fn package(args: &Package, interfaces: &Interfaces, out: &mut Output) -> anyhow::Result<()> {
    let names = interfaces.names();
    let prefix = format!("{}/", args.package);
    let mut found = names.iter().filter(|it| it.starts_with(&prefix)).peekable();
    if found.peek().is_none() {
        let text = format!(
            "unknown package \"{}\"; `tsuji interface packages` lists those that have interfaces",
            args.package
        );
        return Err(Usage(text).into());
    }
    for name in found {
        out.line(name)?;
    }
    Ok(())
}

fn packages(args: &List, interfaces: &Interfaces, out: &mut Output) -> anyhow::Result<()> {
    let names = wanted(args, interfaces);
    let packages: BTreeSet<&str> = names.iter().filter_map(|it| it.split('/').next()).collect();
    if args.json {
        return Ok(out.line(serde_json::to_string_pretty(&packages)?)?);
    }
    for package in packages {
        out.line(package)?;
    }
    Ok(())
}

fn proto(args: &Proto, interfaces: &Interfaces, out: &mut Output) -> anyhow::Result<()> {
    let message = DynamicMessage::new(interfaces.message(&args.name)?);
    let yaml = message.to_yaml(EchoStyle::default());
    let quote = if args.no_quotes { "" } else { "\"" };
    out.line(format_args!("{quote}{yaml}{quote}"))?;
    Ok(())
}

impl List {
    fn kinds(&self) -> Vec<Kind> {
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
    let kinds = args.kinds();
    let wanted = |name: &String| kind_of(name).is_some_and(|kind| kinds.contains(&kind));
    interfaces.names().into_iter().filter(wanted).collect()
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

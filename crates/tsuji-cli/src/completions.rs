//! `tsuji completions`, and the words that a shell asks for while a command is typed.
//!
//! The script that a shell reads is a few lines: for each word it runs this program again, with
//! [`ASKED`] set. So topics, nodes and types are completed as they are at that moment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::CommandFactory;
use clap::builder::PossibleValuesParser;
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use tsuji::{Context, Graph, KNOWN_TRANSPORTS};
use tsuji::{component, lifecycle};
use tsuji_platform::report;

use crate::Cli;
use crate::action::action_of;
use crate::companions;
use crate::interfaces::Interfaces;
use crate::output::{Output, escaped};
use crate::session::is_hidden;

pub(crate) const EXAMPLES: &str = "\
The script asks tsuji for each word, so topics and nodes are completed as they are at that moment. It belongs to this
version: let the shell take it anew at each start, as here.

Examples:
  tsuji completions bash
  echo 'source <(tsuji completions bash)' >> ~/.bashrc
  echo 'source <(tsuji completions zsh)' >> ~/.zshrc
  echo 'tsuji completions fish | source' >> ~/.config/fish/config.fish";

/// The variable in which a script names its shell when it asks for words.
const ASKED: &str = "TSUJI_COMPLETE";

/// How long others may take to tell what they have. What is not known by then is not offered.
const SETTLE: Duration = Duration::from_millis(250);

/// How long a whole look at the graph may take, before nothing is offered.
const PATIENCE: Duration = Duration::from_millis(400);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_name = "SHELL", value_parser = PossibleValuesParser::new(shells()))]
    shell: String,
}

fn shells() -> Vec<&'static str> {
    Shells::builtins().names().collect()
}

/// Prints the script.
pub(crate) fn run(args: &Args, out: &mut Output) -> anyhow::Result<()> {
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell);
    let shell = shell.ok_or_else(|| anyhow::anyhow!("no script for {}", args.shell))?;
    let mut script = Vec::new();
    shell.write_registration(ASKED, "tsuji", "tsuji", "tsuji", &mut script)?;
    Ok(out.write_all(&script)?)
}

/// Answers a shell that asks for words; `None` if this is an ordinary run. An error has no place at
/// a prompt, so nothing is said of it.
pub(crate) fn answer() -> Option<ExitCode> {
    let env = CompleteEnv::with_factory(Cli::command).var(ASKED).bin("tsuji");
    if std::env::var_os(ASKED).is_some() {
        report::set_least(report::Level::Nothing);
    }
    companions::complete(std::env::args_os(), ASKED);
    let current = std::env::current_dir().ok();
    match env.try_complete(std::env::args_os(), current.as_deref()) {
        Ok(false) => None,
        Ok(true) => Some(ExitCode::SUCCESS),
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// The topics there are, each with its type.
pub(crate) fn topics() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let endpoints = graph().map(|it| it.endpoints).unwrap_or_default();
        named(endpoints.into_iter().map(|it| (it.topic, Some(it.type_name))))
    })
}

/// The transports that a topic can be set to.
pub(crate) fn transports() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        KNOWN_TRANSPORTS.iter().copied().map(CompletionCandidate::new).collect()
    })
}

/// The services there are, each with its type.
pub(crate) fn services() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let services = graph().map(|it| it.services).unwrap_or_default();
        named(services.into_iter().map(|it| (it.topic, Some(it.type_name))))
    })
}

/// The actions there are, each with its type.
pub(crate) fn actions() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let services = graph().map(|it| it.services).unwrap_or_default();
        let found = services.iter().filter_map(|it| action_of(&it.topic, &it.type_name));
        let found: BTreeMap<String, String> = found.collect();
        named(found.into_iter().map(|(name, ty)| (name, Some(ty))))
    })
}

/// The types of actions that this environment knows.
pub(crate) fn action_types() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let names = Interfaces::from_environment().names().into_iter();
        named(names.filter(|it| it.contains("/action/")).map(|it| (it, None)))
    })
}

/// The types of services that this environment knows.
pub(crate) fn service_types() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let names = Interfaces::from_environment().names().into_iter();
        named(names.filter(|it| it.contains("/srv/")).map(|it| (it, None)))
    })
}

/// The nodes there are.
pub(crate) fn nodes() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let nodes = graph().map(|it| it.nodes).unwrap_or_default();
        named(nodes.iter().map(|it| (it.fully_qualified_name(), None)))
    })
}

/// The containers there are.
pub(crate) fn containers() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let found = graph().map(|it| component::containers(&it)).unwrap_or_default();
        named(found.into_iter().map(|it| (it, None)))
    })
}

/// The managed nodes there are.
pub(crate) fn managed_nodes() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let found = graph().map(|it| lifecycle::managed_nodes(&it)).unwrap_or_default();
        named(found.into_iter().map(|it| (it, None)))
    })
}

/// The types of messages that this environment knows.
pub(crate) fn messages() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let names = Interfaces::from_environment().names().into_iter();
        named(names.filter(|it| it.contains("/msg/")).map(|it| (it, None)))
    })
}

/// All interfaces that this environment knows.
pub(crate) fn interfaces() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        named(Interfaces::from_environment().names().into_iter().map(|it| (it, None)))
    })
}

/// The packages of all interfaces that this environment knows.
pub(crate) fn packages() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let names = Interfaces::from_environment().names().into_iter();
        named(names.filter_map(|it| Some((it.split_once('/')?.0.to_owned(), None))))
    })
}

/// Words that `find` finds, such as the packages that are installed.
pub(crate) fn words(find: impl Fn() -> Vec<String> + Send + Sync + 'static) -> ArgValueCandidates {
    ArgValueCandidates::new(move || named(find().into_iter().map(|it| (it, None))))
}

/// One candidate a name, in their order. Hidden names are offered where no other fits.
fn named(names: impl Iterator<Item = (String, Option<String>)>) -> Vec<CompletionCandidate> {
    // A shell prints candidates as they are.
    let mut names: Vec<_> = names.filter(|it| escaped(&it.0, "") == it.0).collect();
    names.sort();
    names.dedup_by(|a, b| a.0 == b.0);
    let candidate = |(name, help): (String, Option<String>)| {
        let is_hidden = is_hidden(&name);
        let help = help.map(|it| escaped(&it, "").into());
        CompletionCandidate::new(name).help(help).hide(is_hidden)
    };
    names.into_iter().map(candidate).collect()
}

/// All that is known of the system within [`PATIENCE`].
fn graph() -> Option<Graph> {
    let (sender, receiver) = mpsc::channel();
    // Nobody listens when it took too long, and then the process ends.
    thread::spawn(move || sender.send(look()));
    receiver.recv_timeout(PATIENCE).ok()?
}

/// Meets the others without a transport, since nothing is to flow.
fn look() -> Option<Graph> {
    if !tsuji::runtime_dir().ok()?.is_dir() {
        return None;
    }
    let builder = Context::builder().policy(tsuji_policy::builtin_default());
    let mut builder = builder.transports(|_| Vec::new());
    if let Some(domain) = domain_said(std::env::args_os()) {
        builder = builder.domain(domain);
    }
    let context = builder.build().ok()?;
    // Those who did not answer in time are left out.
    let _ = context.settle(SETTLE);
    let graph = context.graph();
    // Here and not at the end of the process, which may come before it.
    drop(context);
    Some(graph)
}

/// The domain that the words of a command name with `--domain-id`.
fn domain_said(words: impl Iterator<Item = OsString>) -> Option<u32> {
    let mut is_next = false;
    for word in words {
        let word = word.to_string_lossy();
        let said = word.strip_prefix("--domain-id=").or_else(|| is_next.then_some(&*word));
        if let Some(domain) = said.and_then(|it| it.parse().ok()) {
            return Some(domain);
        }
        is_next = word == "--domain-id";
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_of_a_command_that_is_being_typed() {
        let check = |words: &str, expect| {
            assert_eq!(domain_said(words.split(' ').map(OsString::from)), expect, "{words}");
        };
        check("tsuji topic echo", None);
        check("tsuji --domain-id 7 topic echo", Some(7));
        check("tsuji topic echo --domain-id=8 /x", Some(8));
        check("tsuji topic echo --domain-id", None);
        check("tsuji topic echo --domain-id x 9", None);
    }
}

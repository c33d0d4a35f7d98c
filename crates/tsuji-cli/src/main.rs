//! The command `tsuji`: what flows where, by which transport, and why.
//!
//! This crate reads flags and writes text. What another program could want is in `tsuji`.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{CommandFactory, Parser, Subcommand};
use tsuji_platform::limit::end_file_signal;

use crate::output::Output;
use crate::session::Globals;

mod action;
mod bag;
mod bridge;
mod companions;
mod completions;
mod component;
mod console;
mod doctor;
mod elsewhere;
mod failure;
mod figures;
mod help;
mod interface;
mod interfaces;
mod launch;
mod lifecycle;
mod log;
mod manual;
mod multicast;
mod node;
mod offers;
mod output;
mod packages;
mod param;
mod play;
mod policy;
mod python;
mod qos;
mod record;
mod ros1;
mod rosout;
mod route;
mod routes;
mod security;
mod service;
mod session;
mod table;
mod terminal;
mod top;
mod topic;

fn main() -> ExitCode {
    end_file_signal();
    if let Some(code) = completions::answer() {
        return code;
    }
    // Wrong flags end here, with exit code 2.
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => return refuse(&error),
        // A help or the version is asked for; only then are the texts of all commands laid out.
        Err(asked) => {
            help::reflowed(Cli::command()).try_get_matches().err().unwrap_or(asked).exit()
        }
    };
    log::listen();
    failure::finish(run(&cli))
}

/// Says what is wrong with the flags. The words of the user in it command no terminal.
fn refuse(error: &clap::Error) -> ExitCode {
    // Told from the colours around them by reading them again, with escapes.
    let words = std::env::args_os().map(|it| output::escaped(&it.to_string_lossy(), ""));
    match help::reflowed(Cli::command())
        .try_get_matches_from(words)
        .err()
        .filter(clap::Error::use_stderr)
    {
        Some(error) => output::rendered(&error.render()),
        // What is no UTF-8 is wrong in itself, and nothing else.
        None => output::note(error.render().to_string().trim_end()),
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// What `--version` says; `-V` says the number alone. Packages are built with their commit in TSUJI_COMMIT.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let (version, commit) = (env!("CARGO_PKG_VERSION"), option_env!("TSUJI_COMMIT"));
    let commit = commit.unwrap_or("not known, as it was built by cargo alone");
    let (processor, system) = (std::env::consts::ARCH, std::env::consts::OS);
    format!(
        "{version}\ncommit: {commit}\nfor: {processor}, {system}\nengines: Cyclone DDS is built in; \
         `tsuji routes --engines` shows the plug-ins"
    )
});

/// See and use the transports that ROS 2 messages take
#[derive(Debug, Parser)]
#[command(name = "tsuji", version, long_version = LONG_VERSION.as_str(), propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Environment: ROS_DOMAIN_ID, TSUJI_POLICY, TSUJI_RUNTIME_DIR, TSUJI_INTEROP, TSUJI_ROBOT,\n    TSUJI_RTPS_ENGINE, AMENT_PREFIX_PATH, NO_COLOR.\n\
    `tsuji doctor` says what each of them is here."
)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// See, receive and send what topics carry
    Topic {
        #[command(subcommand)]
        command: topic::Command,
        /// Before the verb, as `ros2` takes it too
        #[arg(long, hide = true)]
        include_hidden_topics: bool,
        #[command(flatten)]
        ignored: session::Ignored,
    },
    /// See and call services
    Service {
        #[command(subcommand)]
        command: service::Command,
        /// Before the verb, as `ros2` takes it too
        #[arg(long, hide = true)]
        include_hidden_services: bool,
        #[command(flatten)]
        ignored: session::Ignored,
    },
    /// See actions, and ask for their goals
    Action {
        #[command(subcommand)]
        command: action::Command,
        #[command(flatten)]
        ignored: session::Ignored,
    },
    /// See and set the parameters of nodes
    Param {
        #[command(subcommand)]
        command: param::Command,
        #[command(flatten)]
        ignored: session::Ignored,
    },
    /// Follow what nodes log on /rosout, the last lines first
    #[command(after_help = rosout::EXAMPLES)]
    Log(rosout::Args),
    /// Load components into a running process, and unload them
    Component {
        #[command(subcommand)]
        command: component::Command,
        #[command(flatten)]
        ignored: session::Ignored,
    },
    /// See and change where managed nodes stand
    Lifecycle {
        #[command(subcommand)]
        command: lifecycle::Command,
        #[command(flatten)]
        ignored: session::Ignored,
    },
    /// See the nodes
    Node {
        #[command(subcommand)]
        command: node::Command,
        #[command(flatten)]
        ignored: session::Ignored,
    },
    /// Start the nodes of a launch file, and end them together
    #[command(after_help = launch::EXAMPLES)]
    Launch(launch::Args),
    /// Record topics to a file
    #[command(after_help = record::EXAMPLES)]
    Record(record::Args),
    /// Play a recording
    #[command(after_help = play::EXAMPLES)]
    Play(play::Args),
    /// Record, play and see recordings, in the words of `ros2 bag`
    #[command(subcommand)]
    Bag(bag::Command),
    /// Serve web clients by the protocols of rosbridge and Foxglove
    #[command(after_help = bridge::EXAMPLES)]
    Bridge(bridge::Args),
    /// Serve nodes of ROS 1
    #[command(subcommand)]
    Ros1(ros1::Command),
    /// See what messages and services are made of
    #[command(subcommand)]
    Interface(interface::Command),
    /// Show the transport of each flow, why it is that one, and how it does
    #[command(after_help = routes::EXAMPLES)]
    Routes(routes::Args),
    /// Watch flows and processes live, and set routes by keys
    #[command(after_help = top::examples())]
    Top(top::Args),
    /// Set the transport of a topic while its samples flow, or leave it to the policy again
    #[command(subcommand)]
    Route(route::Command),
    /// Check, show and question the policy that chooses the transports
    #[command(subcommand)]
    Policy(policy::Command),
    /// Make and check keystores of SROS2, and say what enclaves may do
    #[command(subcommand)]
    Security(security::Command),
    /// Start a program of an installed package
    #[command(after_help = packages::RUN_EXAMPLES)]
    Run(packages::Run),
    /// See what installed packages have
    #[command(subcommand)]
    Pkg(packages::Command),
    /// Try whether datagrams for groups come through
    #[command(subcommand)]
    Multicast(multicast::Command),
    /// Say what this machine offers, what is in the way, and what mends it
    #[command(visible_alias = "wtf", after_help = doctor::EXAMPLES)]
    Doctor(doctor::Args),
    /// Run a small robot whose flows change their transports
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Demo(companions::Args),
    /// Measure tsuji beside the raw transports
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Lab(companions::Args),
    /// Measure the transports of this machine, and write the policy that follows from it
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Tune(companions::Args),
    /// Print what makes a shell complete the words of this command
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::Args),
    /// Write the manual page of each command to a folder
    #[command(after_help = manual::EXAMPLES)]
    Man(manual::Args),
    /// Refused, with what takes its place
    #[command(hide = true, disable_help_flag = true, disable_version_flag = true)]
    Daemon(elsewhere::Words),
    /// Refused, with what takes its place
    #[command(hide = true, disable_help_flag = true, disable_version_flag = true)]
    Test(elsewhere::Words),
    /// Refused, with what takes its place
    #[command(hide = true, disable_help_flag = true, disable_version_flag = true)]
    Extensions(elsewhere::Words),
    /// Refused, with what takes its place
    #[command(
        hide = true,
        disable_help_flag = true,
        disable_version_flag = true,
        name = "extension_points"
    )]
    ExtensionPoints(elsewhere::Words),
    /// Refused, with what takes its place
    #[command(hide = true, disable_help_flag = true, disable_version_flag = true)]
    Plugin(elsewhere::Words),
    /// Refused, with what takes its place
    #[command(hide = true, disable_help_flag = true, disable_version_flag = true)]
    Trace(elsewhere::Words),
    /// Refused, with what takes its place
    #[command(hide = true, disable_help_flag = true, disable_version_flag = true)]
    Control(elsewhere::Words),
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    let mut out = Output::stdout();
    let globals = &cli.globals;
    let result = match &cli.command {
        Command::Topic { command, include_hidden_topics, ignored } => {
            let asked = topic::Asked {
                use_sim_time: ignored.use_sim_time,
                include_hidden: *include_hidden_topics,
            };
            topic::run(command, globals, asked, &mut out)
        }
        Command::Service { command, include_hidden_services, .. } => {
            service::run(command, globals, *include_hidden_services, &mut out)
        }
        Command::Action { command, .. } => action::run(command, globals, &mut out),
        Command::Param { command, .. } => param::run(command, globals, &mut out),
        Command::Log(args) => rosout::run(args, globals, &mut out),
        Command::Component { command, .. } => component::run(command, globals, &mut out),
        Command::Lifecycle { command, .. } => lifecycle::run(command, globals, &mut out),
        Command::Node { command, .. } => node::run(command, globals, &mut out),
        Command::Record(args) => record::run(args, record::Words::Own, globals, &mut out),
        Command::Play(args) => play::run(args, globals, &mut out),
        Command::Bag(command) => bag::run(command, globals, &mut out),
        Command::Bridge(args) => bridge::run(args, globals, &mut out),
        Command::Ros1(command) => ros1::run(command, &mut out),
        Command::Interface(command) => interface::run(command, &mut out),
        Command::Routes(args) => routes::run(args, globals, &mut out),
        Command::Top(args) => top::run(args, globals, &mut out),
        Command::Route(command) => route::run(command, globals, &mut out),
        Command::Policy(command) => policy::run(command, globals, &mut out),
        Command::Security(command) => security::run(command, globals, &mut out),
        Command::Doctor(args) => doctor::run(args, globals, &mut out),
        Command::Launch(args) => launch::run(args, globals, &mut out),
        Command::Demo(args) => companions::demo(args),
        Command::Lab(args) => companions::lab(args),
        Command::Tune(args) => companions::tune(args),
        Command::Completions(args) => completions::run(args, &mut out),
        Command::Man(args) => manual::run(args, &mut out),
        Command::Run(args) => packages::run_program(args, globals),
        Command::Pkg(command) => packages::run(command, &mut out),
        Command::Multicast(command) => multicast::run(command, &mut out),
        Command::Daemon(_) => elsewhere::refuse("daemon"),
        Command::Test(_) => elsewhere::refuse("test"),
        Command::Extensions(_) => elsewhere::refuse("extensions"),
        Command::ExtensionPoints(_) => elsewhere::refuse("extension_points"),
        Command::Plugin(_) => elsewhere::refuse("plugin"),
        Command::Trace(_) => elsewhere::refuse("trace"),
        Command::Control(_) => elsewhere::refuse("control"),
    };
    // What was found before an error is still worth reading.
    let flushed = std::io::Write::flush(&mut out);
    result?;
    Ok(flushed?)
}

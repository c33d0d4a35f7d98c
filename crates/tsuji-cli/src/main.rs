//! The command `tsuji`: what flows where, by which road, and why.
//!
//! This crate reads flags and writes text. What another program could want is in `tsuji`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::output::Output;
use crate::session::Globals;

mod action;
mod bag;
mod bridge;
mod completions;
mod component;
mod doctor;
mod failure;
mod figures;
mod interface;
mod interfaces;
mod lab;
mod launch;
mod lifecycle;
mod log;
mod node;
mod offers;
mod output;
mod param;
mod play;
mod policy;
mod python;
mod qos;
mod record;
mod rosout;
mod route;
mod routes;
mod service;
mod session;
mod table;
mod topic;

fn main() -> ExitCode {
    if let Some(code) = completions::answer() {
        return code;
    }
    // Wrong flags end here, with exit code 2.
    let cli = Cli::parse();
    log::listen();
    failure::finish(run(&cli))
}

/// See and use the roads that ROS 2 messages take
#[derive(Debug, Parser)]
#[command(name = "tsuji", version, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Environment: ROS_DOMAIN_ID, TSUJI_POLICY, TSUJI_RUNTIME_DIR, TSUJI_INTEROP, TSUJI_RTPS_ENGINE,\n    AMENT_PREFIX_PATH, NO_COLOR.\n\
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
        #[command(flatten)]
        ignored: session::Ignored,
    },
    /// See and call services
    Service {
        #[command(subcommand)]
        command: service::Command,
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
    /// See what is in a recording
    #[command(subcommand)]
    Bag(bag::Command),
    /// Serve web clients by the rosbridge protocol
    #[command(after_help = bridge::EXAMPLES)]
    Bridge(bridge::Args),
    /// See what messages and services are made of
    #[command(subcommand)]
    Interface(interface::Command),
    /// Show the road of each flow, why it is that one, and how it does
    #[command(after_help = routes::EXAMPLES)]
    Routes(routes::Args),
    /// Set the road of a topic while its samples flow, or leave it to the policy again
    #[command(subcommand)]
    Route(route::Command),
    /// Check, show and question the policy that chooses the roads
    #[command(subcommand)]
    Policy(policy::Command),
    /// Say what this machine offers, what is in the way, and what mends it
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::Args),
    /// Measure tsuji beside the raw carriers
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Lab(lab::Args),
    /// Measure the transports of this machine, and write the policy that follows from it
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Tune(lab::Args),
    /// Print what makes a shell complete the words of this command
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::Args),
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    let mut out = Output::stdout();
    let globals = &cli.globals;
    let result = match &cli.command {
        Command::Topic { command, ignored } => {
            ignored.tell();
            topic::run(command, globals, &mut out)
        }
        Command::Service { command, ignored } => {
            ignored.tell();
            service::run(command, globals, &mut out)
        }
        Command::Action { command, ignored } => {
            ignored.tell();
            action::run(command, globals, &mut out)
        }
        Command::Param { command, ignored } => {
            ignored.tell();
            param::run(command, globals, &mut out)
        }
        Command::Log(args) => rosout::run(args, globals, &mut out),
        Command::Component { command, ignored } => {
            ignored.tell();
            component::run(command, globals, &mut out)
        }
        Command::Lifecycle { command, ignored } => {
            ignored.tell();
            lifecycle::run(command, globals, &mut out)
        }
        Command::Node { command, ignored } => {
            ignored.tell();
            node::run(command, globals, &mut out)
        }
        Command::Record(args) => record::run(args, globals, &mut out),
        Command::Play(args) => play::run(args, globals, &mut out),
        Command::Bag(command) => bag::run(command, &mut out),
        Command::Bridge(args) => bridge::run(args, globals, &mut out),
        Command::Interface(command) => interface::run(command, &mut out),
        Command::Routes(args) => routes::run(args, globals, &mut out),
        Command::Route(command) => route::run(command, globals, &mut out),
        Command::Policy(command) => policy::run(command, globals, &mut out),
        Command::Doctor(args) => doctor::run(args, globals, &mut out),
        Command::Launch(args) => launch::run(args, globals, &mut out),
        Command::Lab(args) => lab::run(args, &mut out),
        Command::Tune(args) => lab::tune(args, &mut out),
        Command::Completions(args) => completions::run(args, &mut out),
    };
    // What was found before an error is still worth reading.
    let flushed = std::io::Write::flush(&mut out);
    result?;
    Ok(flushed?)
}

//! `ros2-client-peer`: ROS 2 nodes over the crate ros2-client, for tests and demonstrations that need a node which is
//! not made of tsuji. It knows nothing of tsuji and depends on none of its crates.
#![forbid(unsafe_code)]

mod action;
mod arguments;
mod end;
mod graph;
mod listen;
mod messages;
mod parameters;
mod peer;
mod service;
mod talk;
mod view;

use std::process::ExitCode;

use clap::Parser as _;

use crate::arguments::{Arguments, Command, MessageType};
use crate::end::End;
use crate::messages::{Image, Text, Twist};
use crate::peer::Peer;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    Warnings::install();
    let ended = async_io::block_on(run(&arguments)).err();
    if let Some(words) = ended.as_ref().and_then(End::words) {
        // Standard error may be closed as well, and then nobody is left to be told.
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{words}\n"));
    }
    ExitCode::from(ended.map_or(0, |end| end.code()))
}

async fn run(arguments: &Arguments) -> Result<(), End> {
    if matches!(arguments.command, Command::Mute) {
        return peer::mute(&arguments.node).await;
    }
    let mut peer = Peer::new(&arguments.node, &arguments.command)?;
    match &arguments.command {
        Command::Talk(it) => match it.endpoint.r#type {
            MessageType::String => talk::run::<Text>(&mut peer, it).await,
            MessageType::Twist => talk::run::<Twist>(&mut peer, it).await,
            MessageType::Image => talk::run::<Image>(&mut peer, it).await,
        },
        Command::Listen(it) => match it.endpoint.r#type {
            MessageType::String => listen::run::<Text>(&mut peer, it).await,
            MessageType::Twist => listen::run::<Twist>(&mut peer, it).await,
            MessageType::Image => listen::run::<Image>(&mut peer, it).await,
        },
        Command::Serve(it) => service::serve(&mut peer, it).await,
        Command::Call(it) => service::call(&mut peer, it).await,
        Command::Pursue(it) => action::pursue(&mut peer, it).await,
        Command::Ask(it) => action::ask(&mut peer, it).await,
        Command::Offer(it) => parameters::offer(&mut peer, it).await,
        Command::Inspect(it) => parameters::inspect(&mut peer, it).await,
        Command::Graph(it) => graph::run(&mut peer, it).await,
        Command::Mute => Ok(()),
    }
}

/// What RustDDS and ros2-client have to say goes to standard error, from the level on that `ROS2_CLIENT_PEER_LOG` names.
struct Warnings;

impl Warnings {
    fn install() {
        let level = std::env::var("ROS2_CLIENT_PEER_LOG").ok();
        let level = level.and_then(|it| it.parse().ok()).unwrap_or(log::LevelFilter::Error);
        if log::set_logger(&Self).is_ok() {
            log::set_max_level(level);
        }
    }
}

impl log::Log for Warnings {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let (level, target, text) = (record.level(), record.target(), record.args());
        let line = format_args!("{level} {target}: {text}\n");
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), line);
    }

    fn flush(&self) {}
}

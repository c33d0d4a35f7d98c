//! `tsuji multicast`: whether datagrams for groups come through, as `ros2 multicast` tries it.

use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Subcommand;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tsuji_platform::signals;

use crate::output::Output;
use crate::session::LOOK_AGAIN;

/// Bytes that are taken of a datagram.
const BYTES_MAX: usize = 4096;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send one datagram to a group
    #[command(after_help = "Examples:\n  tsuji multicast send\n  tsuji multicast send --ttl 4")]
    Send(Send),
    /// Wait for one datagram of a group
    #[command(after_help = "Example:\n  tsuji multicast receive --group 239.255.0.1 --port 7400")]
    Receive(Receive),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Group {
    /// The address of the group
    #[arg(long, value_name = "ADDRESS", default_value = "225.0.0.1", value_parser = group)]
    group: Ipv4Addr,
    /// The port
    #[arg(long, value_name = "PORT", default_value_t = 49150)]
    port: u16,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Send {
    #[command(flatten)]
    to: Group,
    /// Routers that the datagram passes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255))]
    ttl: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Receive {
    #[command(flatten)]
    of: Group,
}

pub(crate) fn run(command: &Command, out: &mut Output) -> anyhow::Result<()> {
    match command {
        Command::Send(args) => send(args, out),
        Command::Receive(args) => receive(args, out),
    }
}

fn group(text: &str) -> Result<Ipv4Addr, String> {
    let group = text.parse::<Ipv4Addr>().ok().filter(Ipv4Addr::is_multicast);
    group.ok_or_else(|| "allowed: an address from 224.0.0.0 to 239.255.255.255".to_owned())
}

fn send(args: &Send, out: &mut Output) -> anyhow::Result<()> {
    let Group { group, port } = args.to;
    out.line("Sending one UDP multicast datagram...")?;
    out.flush()?;
    let sent = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        args.ttl.map_or(Ok(()), |ttl| socket.set_multicast_ttl_v4(ttl))?;
        socket.send_to(b"Hello World!", (group, port))
    });
    sent.map_err(|error| anyhow::anyhow!("cannot send to {group}:{port}: {error}"))?;
    Ok(())
}

fn receive(args: &Receive, out: &mut Output) -> anyhow::Result<()> {
    let Group { group, port } = args.of;
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in signals::heard(&[SIGINT, SIGTERM, SIGHUP]) {
        signal_hook::flag::register(signal, Arc::clone(&is_over))?;
    }
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).and_then(|socket| {
        socket.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED)?;
        // A signal does not end the waiting by itself.
        socket.set_read_timeout(Some(LOOK_AGAIN))?;
        Ok(socket)
    });
    let socket =
        socket.map_err(|error| anyhow::anyhow!("cannot receive from {group}:{port}: {error}"))?;
    out.line("Waiting for UDP multicast datagram...")?;
    out.flush()?;
    let mut bytes = [0; BYTES_MAX];
    while !is_over.load(Ordering::Acquire) {
        match socket.recv_from(&mut bytes) {
            Ok((length, from)) => {
                let text = String::from_utf8_lossy(&bytes[..length]);
                return Ok(out.line(format_args!("Received from {from}: '{text}'"))?);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                continue;
            }
            Err(error) => anyhow::bail!("cannot receive from {group}:{port}: {error}"),
        }
    }
    Ok(())
}

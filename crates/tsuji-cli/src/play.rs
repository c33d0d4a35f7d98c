//! `tsuji play`.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tsuji_core::TopicPattern;
use tsuji_record::{ErrorKind, PlayOptions, Played, Player, Recording, Remap};

use crate::failure::{Told, Usage};
use crate::figures;
use crate::output::{self, Output, escaped};
use crate::record;
use crate::session::{Globals, LOOK_AGAIN, Session};

pub(crate) const EXAMPLES: &str = "\
Each topic is published with the QoS that was offered when it was recorded, and with the type that is in the file, which
need not be installed. A file that is damaged or cut off is played as far as it is whole; the exit code is 1 then.

Examples:
  tsuji play drive.mcap
  tsuji play rosbag2_2026_01_31-12_00_00/ --rate 0.5 --loop
  tsuji play drive.mcap --topics /camera/image '/arm/**' --remap /odom:=/recorded/odom
  tsuji play drive.mcap --wait 1 --start-offset 12.5
  tsuji play drive.mcap --clock 100";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// An MCAP file, or a folder of rosbag2 with MCAP files in it
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How many times as fast as it was recorded
    #[arg(short, long, value_name = "TIMES", default_value_t = 1.0)]
    rate: f64,
    /// Begin again at the end, until Ctrl-C
    #[arg(short, long = "loop")]
    again: bool,
    /// Leave out so many seconds at the beginning
    #[arg(long, value_name = "SECONDS", value_parser = offset, default_value = "0")]
    start_offset: Duration,
    /// Play only these topics, or patterns of them
    #[arg(long, value_name = "TOPIC", value_parser = record::pattern, num_args = 1..)]
    topics: Vec<TopicPattern>,
    /// Play a topic under another name, such as /odom:=/recorded/odom
    #[arg(short = 'm', long, value_name = "OLD:=NEW", num_args = 1..)]
    remap: Vec<Remap>,
    /// Publish the time of the recording on /clock, so often a second; what was recorded there is left out
    #[arg(long, value_name = "HZ", num_args = 0..=1, default_missing_value = "40")]
    clock: Option<f64>,
    /// Wait until each topic has so many subscriptions
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    wait: usize,
    /// Print what was played as JSON
    #[arg(long)]
    json: bool,
}

fn offset(text: &str) -> Result<Duration, String> {
    let offset = text.parse().ok().and_then(|it| Duration::try_from_secs_f64(it).ok());
    offset.ok_or_else(|| "allowed: a number of seconds, such as 0 or 2.5".to_owned())
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let recording = Recording::open(&args.file)?;
    let session = Session::open(globals)?;
    let node = session.hidden_node()?;
    let options = PlayOptions {
        rate: args.rate,
        start_offset: args.start_offset,
        topics: args.topics.clone(),
        remap: args.remap.clone(),
        clock_hz: args.clock,
    };
    let mut player =
        Player::new(&node, recording, options).map_err(|error| match error.kind() {
            ErrorKind::Invalid => Usage(escaped(&error.to_string(), "")).into(),
            _ => anyhow::Error::from(error),
        })?;
    player.skipped().iter().for_each(|it| output::warning(escaped(it, "")));
    if player.matched() < args.wait {
        output::note(format_args!("waiting for {} subscriptions of each topic", args.wait));
    }
    while player.matched() < args.wait && session.context.is_ok() {
        // A match is seen here by whoever looks; the graph tells of no endpoint of one's own.
        let _ = session
            .context
            .wait_for_graph(LOOK_AGAIN, |_| (args.wait <= player.matched()).then_some(()));
    }
    let mut sum = Played::default();
    while session.context.is_ok() {
        let Played { messages, bytes, refused } = player.play()?;
        sum.messages += messages;
        sum.bytes += bytes;
        sum.refused += refused;
        if !args.again || messages == 0 {
            break;
        }
    }
    player.leave();
    report(args, &player, sum, out)
}

fn report(args: &Args, player: &Player, sum: Played, out: &mut Output) -> anyhow::Result<()> {
    let summary = player.recording().summary();
    if args.json {
        let damages: Vec<String> = summary.damages.iter().map(ToString::to_string).collect();
        out.line(json!({
            "messages": sum.messages,
            "bytes": sum.bytes,
            "refused": sum.refused,
            "damages": damages,
            "damage_count": summary.damage_count,
        }))?;
    } else {
        let bytes = figures::bytes(sum.bytes);
        out.line(format_args!("played {} messages, {bytes}", sum.messages))?;
    }
    if sum.refused != 0 {
        output::warning(format_args!(
            "{} messages are none in CDR, and were left out",
            sum.refused
        ));
    }
    tell_damages(summary)
}

/// Says what is not as it should be in a recording; that it is damaged is exit code 1.
pub(crate) fn tell_damages(summary: &tsuji_record::Summary) -> anyhow::Result<()> {
    summary.damages.iter().for_each(|it| output::error(escaped(&it.to_string(), "")));
    let more = summary.damage_count - summary.damages.len() as u64;
    if more != 0 {
        output::error(format_args!("and {more} more of the kind"));
    }
    if summary.damage_count == 0 { Ok(()) } else { Err(Told(1).into()) }
}

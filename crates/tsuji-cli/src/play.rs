//! `tsuji play`, and `tsuji bag play`.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tsuji::Node;
use tsuji_core::TopicPattern;
use tsuji_record::{
    ErrorKind, NameRegex, PlayOptions, Played, Player, Recording, Remap, TopicFilter,
};

use crate::console::{Console, Wanted};
use crate::failure::{Told, Usage};
use crate::figures;
use crate::output::{self, Output, escaped};
use crate::record::{self, NoEffect, Storage, refusal};
use crate::session::{Globals, LOOK_AGAIN, Session};

pub(crate) const EXAMPLES: &str = "\
Each topic is published with the QoS that was offered when it was recorded, and with the type that is in the file, which
need not be installed. Subscriptions that are there have the first message. A file that is damaged or cut off is played as
far as it is whole; the exit code is 1 then. On a terminal space pauses and goes on.

Examples:
  tsuji play drive.mcap
  tsuji play rosbag2_2026_01_31-12_00_00/ --rate 0.5 --loop
  tsuji play drive.mcap --topics /camera/image '/arm/**' \\
      --remap /odom:=/recorded/odom
  tsuji play drive.mcap --exclude-topics /tf --start-paused
  tsuji play drive.mcap --wait 1 --start-offset 12.5
  tsuji play drive.mcap --clock 100";

pub(crate) const BAG_EXAMPLES: &str = "\
The flags are those of `tsuji play`, which has the flags of `ros2 bag play`.

Examples:
  tsuji bag play rosbag2_2026_01_31-12_00_00/ --loop
  tsuji bag play drive.mcap -r 0.5 -p
  tsuji bag play -i drive -i arm --clock";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// An MCAP file, or a folder of rosbag2 with MCAP files in it
    #[arg(value_name = "FILE", required_unless_present = "input")]
    file: Option<PathBuf>,
    /// One of several that are played as one
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    input: Vec<PathBuf>,
    /// How many times as fast as it was recorded
    #[arg(short, long, value_name = "TIMES", default_value_t = 1.0, allow_negative_numbers = true)]
    rate: f64,
    /// Begin again at the end, until Ctrl-C
    #[arg(short = 'l', long = "loop")]
    again: bool,
    /// Begin paused, until space is pressed
    #[arg(short = 'p', long)]
    start_paused: bool,
    /// Wait so many seconds before it is played, each time with --loop
    #[arg(short, long, value_name = "SECONDS", value_parser = offset, default_value = "0", allow_negative_numbers = true)]
    delay: Duration,
    /// Leave out so many seconds at the beginning
    #[arg(long, value_name = "SECONDS", value_parser = offset, default_value = "0", allow_negative_numbers = true)]
    start_offset: Duration,
    /// Play no more than so many seconds of it; with --playback-until too, until the later end
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    playback_duration: Option<f64>,
    /// Play until this time, in seconds since 1970
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    playback_until_sec: Option<f64>,
    /// Play until this time, in nanoseconds since 1970
    #[arg(
        long,
        value_name = "NANOSECONDS",
        allow_negative_numbers = true,
        conflicts_with = "playback_until_sec"
    )]
    playback_until_nsec: Option<i64>,
    /// Play only these topics, or patterns of them
    #[arg(long, value_name = "TOPIC", value_parser = record::pattern, num_args = 1..)]
    topics: Vec<TopicPattern>,
    /// Play only the events of these services
    #[arg(long, value_name = "SERVICE", value_parser = record::name, num_args = 1..)]
    services: Vec<String>,
    /// Play only these actions
    #[arg(long, value_name = "ACTION", value_parser = record::name, num_args = 1..)]
    actions: Vec<String>,
    /// Play only topics, services and actions in whose names this regular expression finds something
    #[arg(short = 'e', long)]
    regex: Option<NameRegex>,
    /// But not these topics, or patterns of them
    #[arg(long, value_name = "TOPIC", value_parser = record::pattern, num_args = 1..)]
    exclude_topics: Vec<TopicPattern>,
    /// But not these services
    #[arg(long, value_name = "SERVICE", value_parser = record::name, num_args = 1..)]
    exclude_services: Vec<String>,
    /// But not these actions
    #[arg(long, value_name = "ACTION", value_parser = record::name, num_args = 1..)]
    exclude_actions: Vec<String>,
    /// But not those in whose names this regular expression finds something
    #[arg(short = 'x', long, value_name = "REGEX")]
    exclude_regex: Option<NameRegex>,
    /// Play a topic under another name, such as /odom:=/recorded/odom
    #[arg(short = 'm', long, value_name = "OLD:=NEW", num_args = 1..)]
    remap: Vec<Remap>,
    /// A YAML file of what is offered instead of what was when it was recorded, by recorded topic
    #[arg(long, value_name = "FILE")]
    qos_profile_overrides_path: Option<PathBuf>,
    /// Publish the time of the recording on /clock, so often a second; what was recorded there is left out
    #[arg(long, value_name = "HZ", num_args = 0..=1, default_missing_value = "40", allow_negative_numbers = true, conflicts_with_all = ["clock_topics", "clock_topics_all"])]
    clock: Option<f64>,
    /// Publish the time of the recording on /clock before each message of these topics
    #[arg(long, value_name = "TOPIC", value_parser = record::pattern, num_args = 1.., conflicts_with = "clock_topics_all")]
    clock_topics: Vec<TopicPattern>,
    /// The same before each message
    #[arg(long)]
    clock_topics_all: bool,
    /// Wait until each topic has so many subscriptions
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    wait: usize,
    /// Wait at the end until every reliable subscription has all, at most so many milliseconds; 0 waits without an end
    #[arg(long, value_name = "MS")]
    wait_for_all_acked: Option<u64>,
    /// How often a second the position is shown on a terminal; never if it is 0
    #[arg(long, value_name = "HZ", default_value_t = 3.0, allow_negative_numbers = true)]
    progress_bar_update_rate: f64,
    /// Print what was played as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    storage: Storage,
    #[command(flatten)]
    others: Others,
    #[command(flatten)]
    no_effect: NoEffect,
}

/// The flags of `ros2 bag play` that have no place here.
#[derive(Clone, Debug, clap::Args)]
struct Others {
    /// No effect: chunks are read as they are played
    #[arg(long, hide = true, value_name = "N")]
    read_ahead_queue_size: Option<u64>,
    /// No effect: bytes go from the file to the transport
    #[arg(long, hide = true)]
    disable_loan_message: bool,
    /// No effect: the position is one line
    #[arg(long, hide = true, value_name = "N")]
    progress_bar_separation_lines: Option<u64>,
    /// Not supported but for received
    #[arg(long, hide = true, value_name = "ORDER", value_parser = ["received", "sent"])]
    message_order: Option<String>,
    /// Not supported
    #[arg(long, hide = true)]
    publish_service_requests: bool,
    /// Not supported
    #[arg(long, hide = true, value_name = "SOURCE")]
    service_requests_source: Option<String>,
    /// Not supported
    #[arg(long, hide = true)]
    send_actions_as_client: bool,
}

impl Others {
    /// Refuses what is not there, with what takes its place.
    fn check(&self) -> anyhow::Result<()> {
        let refused = [
            (
                self.message_order.as_deref() == Some("sent"),
                "--message-order sent: messages are played in the order and at the pace in which they were received",
            ),
            (
                self.publish_service_requests || self.service_requests_source.is_some(),
                "--publish-service-requests, --service-requests-source: no service is called; the events of services are played \
                 on their topics, and `tsuji service call` calls one",
            ),
            (
                self.send_actions_as_client,
                "--send-actions-as-client: no action is asked for; what was recorded of actions is played on their topics, and \
                 `tsuji action send_goal` asks for one",
            ),
        ];
        match refused.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, text)) => Err(refusal(text)),
            None => Ok(()),
        }
    }
}

fn offset(text: &str) -> Result<Duration, String> {
    let offset = text.parse().ok().and_then(|it| Duration::try_from_secs_f64(it).ok());
    offset.ok_or_else(|| "allowed: a number of seconds, such as 0 or 2.5".to_owned())
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    args.storage.check()?;
    args.others.check()?;
    let has_keys = !args.no_effect.disable_keyboard_controls && io::stdin().is_terminal();
    if args.start_paused && !has_keys {
        return Err(refusal(
            "--start-paused: space goes on, which needs a terminal as standard input and its keys; `--wait N` waits for \
             subscriptions",
        ));
    }
    let paths: Vec<&PathBuf> = args.file.iter().chain(&args.input).collect();
    let recording = Recording::open_all(&paths)?;
    let options = options(args, &recording)?;
    let summary = recording.summary();
    let span = (summary.first_ns, summary.last_ns);
    if recording.topics().is_empty() && !options.topics.says_nothing() {
        let text = "no topic of the recording is meant; it has none";
        return Err(Usage(text.to_owned()).into());
    }
    let session = Session::open(globals)?;
    let node = session.hidden_node()?;
    let mut player = player(&node, recording, options)?;
    if player.matched() < args.wait {
        output::note(format_args!("waiting for {} subscriptions of each topic", args.wait));
    }
    while player.matched() < args.wait && session.context.is_ok() {
        // A match is seen here by whoever looks; the graph tells of no endpoint of one's own.
        let _ = session
            .context
            .wait_for_graph(LOOK_AGAIN, |_| (args.wait <= player.matched()).then_some(()));
    }
    for missed in player.meet()? {
        output::warning(escaped(&missed, ""));
    }
    let hz = args.progress_bar_update_rate;
    let wanted = Wanted {
        keys: has_keys,
        // Negative stands for each message, of which more than ten a second cannot be read.
        every: (hz != 0.0).then(|| {
            Duration::from_secs_f64(if hz < 0.0 { 0.1 } else { 1.0 / hz.clamp(0.01, 10.0) })
        }),
        span,
    };
    let console = Console::start(player.controls(), wanted)?;
    let sum = play(args, &mut player, &session);
    drop(console);
    let sum = sum?;
    match args.wait_for_all_acked {
        None => player.leave(),
        Some(ms) => {
            let patience = (ms != 0).then(|| Duration::from_millis(ms));
            if !player.leave_within(patience) && session.context.is_ok() {
                output::warning(format_args!("not every subscription has all after {ms} ms"));
            }
        }
    }
    report(args, &player, sum, out)
}

/// What plays a recording. What of it cannot be played is told.
pub(crate) fn player(
    node: &Node,
    recording: Recording,
    options: PlayOptions,
) -> anyhow::Result<Player> {
    let player = Player::new(node, recording, options).map_err(|error| match error.kind() {
        ErrorKind::Invalid => Usage(escaped(&error.to_string(), "")).into(),
        _ => anyhow::Error::from(error),
    })?;
    player.skipped().iter().for_each(|it| output::warning(escaped(it, "")));
    Ok(player)
}

fn play(args: &Args, player: &mut Player, session: &Session) -> anyhow::Result<Played> {
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
    Ok(sum)
}

fn options(args: &Args, recording: &Recording) -> anyhow::Result<PlayOptions> {
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    let until = match (args.playback_until_sec, args.playback_until_nsec) {
        (Some(seconds), _) if 0.0 <= seconds => Some(ns(seconds)),
        (_, Some(ns)) => u64::try_from(ns).ok(),
        _ => None,
    };
    let from_ns = recording.summary().first_ns.saturating_add(ns(args.start_offset.as_secs_f64()));
    let after = args.playback_duration.filter(|it| 0.0 <= *it);
    let after = after.map(|it| from_ns.saturating_add(ns(it)));
    let clock_topics = match args.clock_topics_all {
        true => vec!["/**".parse()?],
        false => args.clock_topics.clone(),
    };
    Ok(PlayOptions {
        rate: args.rate,
        start_offset: args.start_offset,
        // As in ROS 2 the later of the two.
        until_ns: until.max(after),
        topics: TopicFilter {
            wanted: args.topics.clone(),
            services: args.services.clone(),
            actions: args.actions.clone(),
            regex: args.regex.clone(),
            excluded: args.exclude_topics.clone(),
            excluded_services: args.exclude_services.clone(),
            excluded_actions: args.exclude_actions.clone(),
            excluded_regexes: args.exclude_regex.iter().cloned().collect(),
            hidden: true,
            ..TopicFilter::default()
        },
        remap: args.remap.clone(),
        qos: record::overrides(args.qos_profile_overrides_path.as_deref())?,
        delay: args.delay,
        paused: args.start_paused,
        clock_hz: args.clock,
        clock_topics,
        ..PlayOptions::default()
    })
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

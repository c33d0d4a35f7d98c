//! `tsuji topic pub`.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tsuji::{
    Context, ErrorKind, Executor, Node, PublisherEvent, PublisherOptions, RawPublisher, RawType,
    Timer, TimerOptions,
};
use tsuji_core::Qos;
use tsuji_msg::{DynamicMessage, Now};

use crate::completions;
use crate::failure::Usage;
use crate::interfaces::Interfaces;
use crate::output::{self, Output};
use crate::python;
use crate::qos::QosFlags;
use crate::session::{
    A_WHILE, Globals, LOOK_AGAIN, Session, SimulatedTime, end_at_once_on_signals,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The topic
    #[arg(value_name = "TOPIC", value_parser = super::full_name, add = completions::topics())]
    topic: String,
    /// The type, such as std_msgs/msg/String
    #[arg(value_name = "TYPE", add = completions::messages())]
    type_name: String,
    /// The values of the message, in YAML
    #[arg(
        value_name = "VALUES",
        default_value = "{}",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    values: String,
    /// Take the values from this file, such as one that `tsuji topic echo` printed; of several
    /// messages with `---` between them one after the other
    #[arg(long, value_name = "FILE", conflicts_with_all = ["values", "stdin"])]
    yaml_file: Option<PathBuf>,
    /// Take the values from standard input, which is read to its end
    #[arg(long, conflicts_with = "values")]
    stdin: bool,
    /// Messages a second
    #[arg(short, long, value_name = "HZ", default_value = "1", value_parser = rate)]
    rate: Duration,
    /// Print only every so many messages; 0 prints none
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    print: u64,
    /// Publish one message and end
    #[arg(short = '1', long, conflicts_with = "times")]
    once: bool,
    /// Publish so many messages and end; 0 is without end
    #[arg(short, long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    times: u64,
    /// Wait until so many subscriptions match; without it 1 with --once and --times, else 0
    #[arg(short, long, value_name = "N")]
    wait_matching_subscriptions: Option<usize>,
    /// Give up the waiting after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = super::seconds)]
    max_wait_time_secs: Option<Duration>,
    /// Stay so many seconds after the last message, so that slow receivers have it
    #[arg(long, value_name = "SECONDS", default_value = "0.1", value_parser = super::seconds)]
    keep_alive: Duration,
    /// The name of the node that publishes
    #[arg(short, long, value_name = "NAME")]
    node_name: Option<String>,
    #[command(flatten)]
    qos: QosFlags,
}

impl Args {
    /// How many messages there are; `None` is without end.
    fn count(&self) -> Option<u64> {
        if self.once { Some(1) } else { Some(self.times).filter(|it| *it != 0) }
    }

    /// How many subscriptions are waited for.
    fn wanted(&self) -> usize {
        let is_short = self.count().is_some();
        self.wait_matching_subscriptions.unwrap_or_else(|| usize::from(is_short))
    }
}

pub(crate) fn run(
    args: &Args,
    globals: &Globals,
    use_sim_time: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    if args.max_wait_time_secs.is_some() && args.wanted() == 0 {
        let text = "--max-wait-time-secs option is only effective with --wait-matching-subscriptions, --once or --times";
        return Err(Usage(text.to_owned()).into());
    }
    let ty = Interfaces::from_environment().message(&args.type_name)?;
    let texts = texts(args)?;
    let stamped = texts.iter().map(|text| DynamicMessage::from_yaml_at(&ty, text, now()));
    let messages = stamped.collect::<Result<Vec<_>, _>>();
    let messages = messages.map_err(|error| Usage(format!("the values are no {ty}: {error}")))?;
    let largest = messages.iter().map(DynamicMessage::serialized_size).max().unwrap_or(0);

    let session = Session::open(globals)?;
    let node = match &args.node_name {
        Some(name) => session.context.node(name)?,
        None => session.hidden_node()?,
    };
    let raw = RawType::new(ty.name().to_string()).hash(ty.hash());
    let topic = args.topic.clone();
    let publisher = node.create_raw_publisher(
        &args.topic,
        raw,
        PublisherOptions::default()
            .qos(args.qos.over(Qos::DEFAULT)?)
            .expected_size(largest as u64)
            .on_event(move |event| tell(&topic, event)),
    )?;
    let mut executor = Executor::new(&session.context)?;
    executor.add(&node)?;
    let simulated = use_sim_time.then(|| session.simulated_time()).transpose()?;
    let mut talker =
        Talker { context: session.context.clone(), node, publisher, executor, simulated };
    if talker.has_whom_to_talk_to(args, out)? {
        talk(args, &texts, messages, &mut talker, out)?;
    }
    Ok(())
}

/// What a command is told, or what stands on its standard input.
pub(crate) fn said(words: &str, stdin: bool) -> anyhow::Result<String> {
    if !stdin {
        return Ok(words.to_owned());
    }
    let text = standard_input()?;
    Ok(text.map_err(|error| Usage(format!("cannot read standard input: {error}")))?)
}

fn standard_input() -> anyhow::Result<io::Result<String>> {
    end_at_once_on_signals()?;
    Ok(io::read_to_string(io::stdin()))
}

/// The values of each message.
fn texts(args: &Args) -> anyhow::Result<Vec<String>> {
    let (name, text) = match &args.yaml_file {
        Some(file) => (file.display().to_string(), fs::read_to_string(file)),
        None if args.stdin => ("standard input".to_owned(), standard_input()?),
        None => return Ok(vec![args.values.clone()]),
    };
    let text = text.map_err(|error| Usage(format!("cannot read {name}: {error}")))?;
    let mut texts = vec![String::new()];
    for line in text.lines() {
        match texts.last_mut() {
            Some(last) if line.trim_end() != "---" => last.extend([line, "\n"]),
            _ => texts.push(String::new()),
        }
    }
    texts.retain(|it| !it.trim().is_empty());
    if texts.is_empty() {
        return Err(Usage(format!("{name} holds no message")).into());
    }
    Ok(texts)
}

fn talk(
    args: &Args,
    texts: &[String],
    mut messages: Vec<DynamicMessage>,
    talker: &mut Talker,
    out: &mut Output,
) -> anyhow::Result<()> {
    // Only a message with `auto` or `now` in it differs from time to time.
    let is_fixed: Vec<bool> = texts
        .iter()
        .zip(&messages)
        .map(|(text, message)| DynamicMessage::from_yaml(message.ty(), text).is_ok())
        .collect();
    out.line("publisher: beginning loop")?;
    out.flush()?;
    let times = args.count();
    let mut pace = talker.pace(args.rate)?;
    let mut count = 0;
    while talker.context.is_ok() && times.is_none_or(|times| count < times) {
        let at = count as usize % messages.len();
        count += 1;
        if !is_fixed[at] {
            messages[at] =
                DynamicMessage::from_yaml_at(messages[at].ty(), &texts[at], talker.now())?;
        }
        let message = &messages[at];
        if args.print != 0 && count % args.print == 0 {
            out.lines(format_args!("publishing #{count}: {}\n", python::repr(message)))?;
            out.flush()?;
        }
        talker.publish(&message.encode()?)?;
        if times.is_none_or(|times| count < times) {
            talker.keep(&mut pace)?;
        }
    }
    talker.pause_until(Instant::now() + args.keep_alive)
}

/// The publisher, and what runs its events.
struct Talker {
    context: Context,
    node: Node,
    publisher: RawPublisher,
    executor: Executor,
    /// Time as `/clock` tells it, where that is asked for.
    simulated: Option<SimulatedTime>,
}

/// When the next message is due.
enum Pace {
    /// At this moment, and then after so long each.
    Machine { next: Instant, period: Duration },
    /// Whenever the timer has ticked, which simulated time drives.
    Simulation { ticks: Arc<AtomicU64>, _timer: Timer },
}

impl Talker {
    /// Waits for the subscriptions that were asked for. `false` when the command is to end.
    fn has_whom_to_talk_to(&mut self, args: &Args, out: &mut Output) -> anyhow::Result<bool> {
        let wanted = args.wanted();
        let began = Instant::now();
        let mut told = Duration::ZERO;
        while self.publisher.matched() < wanted {
            if !self.context.is_ok() {
                return Ok(false);
            }
            if args.max_wait_time_secs.is_some_and(|it| it <= began.elapsed()) {
                anyhow::bail!(
                    "Timed out waiting for subscribers: Expected {wanted} subscribers but only got {} subscribers",
                    self.publisher.matched()
                );
            }
            // Once a second, as `ros2` does.
            if told <= began.elapsed() {
                out.line(format_args!(
                    "Waiting for at least {wanted} matching subscription(s)..."
                ))?;
                out.flush()?;
                told += Duration::from_secs(1);
            }
            // That a subscription matched is an event, which ends the pause.
            self.executor.spin_once(LOOK_AGAIN)?;
        }
        Ok(self.context.is_ok())
    }

    /// Publishes one message, however long a subscription that keeps all makes it wait.
    fn publish(&self, bytes: &[u8]) -> anyhow::Result<()> {
        while self.context.is_ok() {
            match self.publisher.publish_bytes(bytes) {
                Err(error) if error.kind() == ErrorKind::Busy => {}
                Err(_) if !self.context.is_ok() => {}
                result => return Ok(result?),
            }
        }
        Ok(())
    }

    fn pace(&self, period: Duration) -> anyhow::Result<Pace> {
        let Some(time) = &self.simulated else {
            return Ok(Pace::Machine { next: Instant::now(), period });
        };
        let ticks = Arc::new(AtomicU64::new(0));
        let counting = Arc::clone(&ticks);
        let tick = move || {
            counting.fetch_add(1, Ordering::AcqRel);
        };
        let timer = self.node.create_timer(TimerOptions::new(period).clock(time.clock()), tick)?;
        Ok(Pace::Simulation { ticks, _timer: timer })
    }

    /// Waits until the next message is due.
    fn keep(&mut self, pace: &mut Pace) -> anyhow::Result<()> {
        match pace {
            Pace::Machine { next, period } => {
                // After a delay the rate goes on from now; what was missed is not made up for in a burst.
                *next = (*next + *period).max(Instant::now());
                self.pause_until(*next)
            }
            Pace::Simulation { ticks, .. } => {
                while self.context.is_ok() && ticks.swap(0, Ordering::AcqRel) == 0 {
                    self.executor.spin_once(A_WHILE)?;
                }
                Ok(())
            }
        }
    }

    /// The time that messages are stamped with.
    fn now(&self) -> Now {
        match &self.simulated {
            Some(time) => stamp(time.now_ns()),
            None => now(),
        }
    }

    fn pause_until(&mut self, end: Instant) -> anyhow::Result<()> {
        while self.context.is_ok() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.executor.spin_once(left)?;
        }
        Ok(())
    }
}

fn tell(topic: &str, event: PublisherEvent) {
    match event {
        PublisherEvent::IncompatibleQos { mismatches, .. } => output::warning(format_args!(
            "New subscription discovered on topic '{topic}', requesting incompatible QoS. No messages will be sent \
             to it. {}",
            mismatches.join("; ")
        )),
        PublisherEvent::IncompatibleType { mismatch, .. } => output::warning(format_args!(
            "New subscription discovered on topic '{topic}', of another type. No messages will be sent to it. \
             {mismatch}"
        )),
        _ => {}
    }
}

pub(crate) fn now() -> Now {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Now { sec: i32::try_from(since.as_secs()).unwrap_or(i32::MAX), nanosec: since.subsec_nanos() }
}

fn stamp(ns: i64) -> Now {
    let (sec, nanosec) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    Now {
        sec: i32::try_from(sec).unwrap_or(i32::MAX),
        nanosec: u32::try_from(nanosec).unwrap_or_default(),
    }
}

/// A rate as the time between two messages.
pub(crate) fn rate(text: &str) -> Result<Duration, String> {
    let hz = text.parse::<f64>().ok().filter(|it| *it > 0.0 && it.is_finite());
    let period = hz.and_then(|it| Duration::try_from_secs_f64(1.0 / it).ok());
    period.ok_or_else(|| {
        "allowed: a number of messages a second above 0, such as 0.5 or 100".to_owned()
    })
}

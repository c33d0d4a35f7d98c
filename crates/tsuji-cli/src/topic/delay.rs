//! `tsuji topic delay`.

use std::sync::Arc;

use serde_json::json;
use tsuji::{RawSample, RawType};
use tsuji_msg::definition::{Base, Shape};
use tsuji_msg::{DynamicMessage, TypeDescription, Value};

use super::listener::{self, Listener};
use super::measure::{self, By, Measured, Meter, SPREAD, Summary, Times, Topics};
use crate::interfaces::Interfaces;
use crate::output::{self, Output};
use crate::session::{Globals, Session};
use crate::table::Column;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    topics: Topics,
    /// The most messages that the average is over
    #[arg(short, long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    window: u32,
    /// Print each summary as one line of JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(
    args: &Args,
    globals: &Globals,
    use_sim_time: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    let session = Session::open(globals)?;
    let by = By::new(&session, use_sim_time)?;
    let interfaces = Interfaces::from_environment();
    let mut listener = Listener::of_nothing(&session, &session.hidden_node()?)?;
    let mut measured = Vec::new();
    for topic in args.topics.names(&session.graph())? {
        let Some(name) = listener::type_to_measure(&session, &topic)? else { return Ok(()) };
        let ty = interfaces.message(&name)?;
        if !has_header(&ty) {
            if args.topics.are_all() {
                continue;
            }
            // The words of `ros2`, which finds out with the first message.
            anyhow::bail!("msg does not have header: {ty} has no field `std_msgs/Header header`");
        }
        let raw = RawType::new(ty.name().to_string()).hash(ty.hash());
        listener.measure(&topic, raw)?;
        let meter =
            Delay { topic: topic.clone(), ty, delays: Times::new(args.window), last_ns: None };
        measured.push(Measured::new(topic, meter));
    }
    if measured.is_empty() {
        anyhow::bail!("none of the topics has messages with a field `std_msgs/Header header`");
    }
    measure::tell_subscribed(&measured, args.json, out)?;
    measure::run(measured, &by, &session, &mut listener, args.json, out)
}

fn has_header(ty: &TypeDescription) -> bool {
    let Some((_, field)) = ty.field("header") else { return false };
    let is_header = |it: &Arc<TypeDescription>| it.name().to_string() == "std_msgs/msg/Header";
    matches!((&field.ty.base, &field.ty.shape), (Base::Nested(it), Shape::Single) if is_header(it))
}

/// The times from the stamps of the last messages to their arrival.
struct Delay {
    topic: String,
    ty: Arc<TypeDescription>,
    delays: Times,
    last_ns: Option<i64>,
}

impl Meter for Delay {
    const ONLY_OF_NEWS: bool = true;
    const COLUMNS: &'static [Column] =
        &[Column::number("delay"), SPREAD[0], SPREAD[1], SPREAD[2], SPREAD[3]];

    fn arrived(&mut self, sample: &RawSample, by: &By) -> anyhow::Result<bool> {
        let message = match DynamicMessage::decode(&self.ty, &sample.bytes) {
            Ok(message) => message,
            Err(error) => {
                output::warning(format_args!(
                    "a message on {} was no valid {}: {error}",
                    self.topic, self.ty
                ));
                return Ok(false);
            }
        };
        let Some(at_ns) = by.stamp_ns(&sample.info) else { return Ok(false) };
        if matches!(by, By::Simulation(_))
            && self.last_ns.replace(at_ns).is_some_and(|it| at_ns < it)
        {
            measure::tell_reset();
            self.delays.clear();
        }
        let (seconds, nanos) = stamp(&message)?;
        let stamp_ns = seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        self.delays.push(at_ns.saturating_sub(stamp_ns));
        Ok(true)
    }

    fn summary(&mut self, _: &By) -> Option<Summary> {
        let delays = self.delays.figures()?;
        Some(Summary {
            text: format!("average delay: {:.3}\n{}", delays.mean, delays.spread()),
            cells: delays.cells(delays.mean),
            json: json!({
                "delay_s": delays.mean,
                "min_s": delays.min,
                "max_s": delays.max,
                "std_dev_s": delays.deviation,
                "window": delays.count,
            }),
        })
    }
}

/// Seconds and nanoseconds of a message's `header.stamp`.
fn stamp(message: &DynamicMessage) -> anyhow::Result<(i64, i64)> {
    let number = |path: &str| match message.get(path)?.as_ref() {
        Value::I32(value) => Ok(i64::from(*value)),
        Value::U32(value) => Ok(i64::from(*value)),
        _ => anyhow::bail!("{path} of {} is no whole number", message.ty()),
    };
    Ok((number("header.stamp.sec")?, number("header.stamp.nanosec")?))
}

//! `tsuji topic delay`.

use std::sync::Arc;

use serde_json::json;
use tsuji::{RawSample, RawType};
use tsuji_msg::definition::{Base, Shape};
use tsuji_msg::{DynamicMessage, TypeDescription, Value};

use super::listener::{self, Listener};
use super::measure::{self, Meter, Summary, Times};
use crate::completions;
use crate::interfaces::Interfaces;
use crate::output::{self, Output};
use crate::session::{Globals, Session};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The topic
    #[arg(value_name = "TOPIC", value_parser = super::full_name, add = completions::topics())]
    topic: String,
    /// The most messages that the average is over
    #[arg(short, long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    window: u32,
    /// Print each summary as one line of JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Output) -> anyhow::Result<()> {
    let session = Session::open(globals)?;
    let Some(name) = listener::type_to_measure(&session, &args.topic)? else { return Ok(()) };
    let ty = Interfaces::from_environment().message(&name)?;
    if !has_header(&ty) {
        // The words of `ros2`, which finds out with the first message.
        anyhow::bail!("msg does not have header: {ty} has no field `std_msgs/Header header`");
    }
    let raw = RawType { name: ty.name().to_string(), hash: ty.hash().to_owned() };
    let mut listener = Listener::measuring(&session, &args.topic, raw)?;
    let mut meter = Delay { topic: &args.topic, ty, delays: Times::new(args.window) };
    measure::run(&mut meter, &session, &mut listener, args.json, out)
}

fn has_header(ty: &TypeDescription) -> bool {
    let Some((_, field)) = ty.field("header") else { return false };
    let is_header = |it: &Arc<TypeDescription>| it.name().to_string() == "std_msgs/msg/Header";
    matches!((&field.ty.base, &field.ty.shape), (Base::Nested(it), Shape::Single) if is_header(it))
}

/// The times from the stamps of the last messages to their arrival.
struct Delay<'a> {
    topic: &'a str,
    ty: Arc<TypeDescription>,
    delays: Times,
}

impl Meter for Delay<'_> {
    const ONLY_OF_NEWS: bool = true;

    fn arrived(&mut self, sample: &RawSample) -> anyhow::Result<bool> {
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
        let (seconds, nanos) = stamp(&message)?;
        let stamp_ns = seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        self.delays.push(listener::received_wall_ns(&sample.info).saturating_sub(stamp_ns));
        Ok(true)
    }

    fn summary(&self) -> Option<Summary> {
        let delays = self.delays.figures()?;
        Some(Summary {
            text: format!("average delay: {:.3}\n{}", delays.mean, delays.spread()),
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

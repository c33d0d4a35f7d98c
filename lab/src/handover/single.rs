//! What publish and take cost on one thread, by reference, where nothing changes: the fixed price of a
//! sample.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tsuji::Qos;
use tsuji_interfaces::geometry_msgs::msg::Inertia;
use tsuji_platform::clock::thread_cpu_ns;

use crate::Allocations;
use crate::budgets::Run;
use crate::child::ChildPart;
use crate::crew::{Child, Stop};
use crate::placement::Place;
use crate::route::Route;
use crate::statistics::over_clusters;

/// Publishes and takes in blocks.
pub(super) fn measure(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let samples = if run.options.quick { SAMPLES_QUICK } else { SAMPLES };
    let part = Single { folder: run.stage.folder().to_owned(), blocks: BLOCKS, samples };
    let mut starts = Vec::new();
    for _ in 0..run.options.blocks {
        let mut child = Child::start(&run.stage.at(Place::Sender), &part)?;
        let answer = child.answer()?;
        let each_ns = answer["each_ns"].as_array().into_iter().flatten().filter_map(Value::as_f64);
        starts.push(each_ns.collect::<Vec<f64>>());
    }
    let of = "an Arc of 80 bytes, published and taken";
    run.judge("single-thread CPU/sample", of, over_clusters(&starts, 0.5), "ns", None);
    Ok(())
}

/// Blocks of each process.
const BLOCKS: usize = 2;

const SAMPLES: u64 = 200_000;
const SAMPLES_QUICK: u64 = 20_000;

/// The process that does it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Single {
    folder: PathBuf,
    blocks: usize,
    samples: u64,
}

impl ChildPart for Single {
    const MODE: &'static str = "--single";

    fn play(self, _: Option<Allocations>) -> Result<(), String> {
        run_part(&self)
    }
}

fn run_part(Single { folder, blocks, samples }: &Single) -> Result<(), String> {
    let context = Route::Alone.context(folder).build().map_err(super::said)?;
    let node = context.node("single").map_err(super::said)?;
    let publisher =
        node.create_publisher::<Inertia>("single", Qos::DEFAULT).map_err(super::said)?;
    let subscription =
        node.create_polled_subscription::<Inertia>("single", Qos::DEFAULT).map_err(super::said)?;
    publisher.wait_for_subscriptions(1, PATIENCE).map_err(super::said)?;
    let message = Arc::new(Inertia::default());
    let block = || {
        let before_ns = thread_cpu_ns();
        for _ in 0..*samples {
            publisher.publish(Arc::clone(&message)).map_err(super::said)?;
            let taken = subscription.take().map_err(super::said)?;
            black_box(taken.ok_or("a sample is missing")?);
        }
        Ok::<f64, String>((thread_cpu_ns() - before_ns) as f64 / *samples as f64)
    };
    block()?;
    let each_ns: Vec<f64> = (0..*blocks).map(|_| block()).collect::<Result<_, _>>()?;
    super::answer(&json!({ "each_ns": each_ns }));
    Ok(())
}

const PATIENCE: Duration = Duration::from_secs(20);

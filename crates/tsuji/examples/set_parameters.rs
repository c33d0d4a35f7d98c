//! How long it takes to set 1000 parameters of a node in one call, beside a call that sets one.
//!
//! cargo run --release -p tsuji --example set_parameters
#![allow(clippy::print_stdout, reason = "it is what this is for")]

use std::thread;
use std::time::{Duration, Instant};

use tsuji::parameter::{Parameter, ParameterClient};
use tsuji::{Context, Error};

const PARAMETERS: usize = 1000;
const ROUNDS: i64 = 101;
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> Result<(), Error> {
    // Each as in a process of its own.
    let serving = Context::builder().args(std::env::args().skip(1)).only_ros_args();
    let serving = serving.isolated().build()?.node("serving")?;
    let asking = Context::builder().isolated().build()?.node("asking")?;
    let parameters = serving.parameters()?;
    let name = |number: usize| format!("group_{}.parameter_{number}", number % 10);
    for number in 0..PARAMETERS {
        parameters.declare(&name(number), 0i64)?;
    }
    let context = serving.context().clone();
    let spinning = thread::spawn(move || tsuji::spin(&serving));
    let client = ParameterClient::new(&asking, "/serving");
    let set = |many: usize, value: i64| {
        let all = (0..many).map(|number| Parameter::new(name(number), value)).collect();
        let began = Instant::now();
        let results = client.set(all, PATIENCE)?;
        let took = began.elapsed();
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        Ok::<_, Error>(took)
    };
    let (mut one, mut all) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        one.push(set(1, -round)?);
        all.push(set(PARAMETERS, round)?);
    }
    for (many, mut took) in [(1, one), (PARAMETERS, all)] {
        took.sort();
        let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
        println!("{many} in one call: median {median:?}, longest of {ROUNDS} {longest:?}");
    }
    context.shutdown();
    let _ = spinning.join();
    Ok(())
}

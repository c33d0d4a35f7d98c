//! Clients that come and go, and clients that only stand there: what is left of the first, and what the others cost.

use std::time::{Duration, Instant};

use serde_json::json;
use tsuji_bridge::Protocol;

use super::house::House;
use super::pictures::{GROWN_MB_MAX, Memory, resident_mb};
use super::server::OWN;
use crate::budgets::{Run, woken};
use crate::crew::Stop;
use crate::placement::Place;
use crate::statistics::Bar;

pub(super) const CONNECTS: &str = "connects";

/// So often the memory is looked at.
const LOOKS: u64 = 50;

/// Clients that stand there, subscribed to what nobody publishes.
const IDLE_CLIENTS: u64 = 10;

const IDLE: Duration = Duration::from_secs(10);
const IDLE_QUICK: Duration = Duration::from_secs(2);

/// Once, since it says something of the whole only.
pub(super) fn measure(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let count = run.options.count;
    let longest = Duration::from_secs(run.options.seconds_max);
    House::with(run.stage, &OWN, Place::Receiver(0), |house| {
        let text = json!({ "does": "connect", "topic": house.topic("chatter") });
        let mut client = house.client(Place::Sender, Protocol::WebSocket, text)?;
        let (mut looks, begin) = (Vec::new(), Instant::now());
        let mut done = 0;
        while done < count && begin.elapsed() < longest {
            let now = count.div_ceil(LOOKS).min(count - done);
            client.ask(&format!("cycle {now}"))?;
            done += now;
            looks.push((begin.elapsed().as_secs_f64(), resident_mb(house.id())?));
            run.screen.progress(&format!("{CONNECTS}: {done} of {count}"));
        }
        let took_s = begin.elapsed().as_secs_f64();
        let of = format!("{OWN}, {done} clients one after the other");
        let rate = done as f64 / took_s / 1000.0;
        run.judge(CONNECTS, &of, rate, "k/s", None);
        let mut memory = Memory::default();
        memory.append(looks);
        memory.tell(run, CONNECTS, &of, GROWN_MB_MAX);
        run.report.series(memory.series(CONNECTS, &OWN.to_string()));

        client.ask(&format!("hold {IDLE_CLIENTS}"))?;
        let wait = if run.options.quick { IDLE_QUICK } else { IDLE };
        let woken = woken(run, CONNECTS, &[house.id()], wait)?;
        let of = format!("{OWN}, {IDLE_CLIENTS} clients that hear nothing");
        let what = format!("{CONNECTS} wake-ups in {} s", wait.as_secs());
        run.judge(what, of, woken, "", Some(Bar::AtMost(0.0)));
        Ok(())
    })
}

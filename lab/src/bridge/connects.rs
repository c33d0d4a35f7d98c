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

/// Clients that come and go before it is known how long they take.
const FIRST: u64 = 100;

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
            let now = at_once(count, done, begin.elapsed(), longest).min(count - done);
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

/// So many come and go between two looks that there are [`LOOKS`], whether their number or the time ends it first: `done` have,
/// and took `elapsed`.
fn at_once(count: u64, done: u64, elapsed: Duration, longest: Duration) -> u64 {
    let share_s = longest.as_secs_f64() / LOOKS as f64;
    let in_time = match done {
        0 => FIRST,
        done => (done as f64 / elapsed.as_secs_f64() * share_s) as u64,
    };
    count.div_ceil(LOOKS).min(in_time.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_looks_where_the_time_ends_it_first() {
        let longest = Duration::from_secs(60);
        let looks = |count: u64, per_s: f64| {
            let (mut done, mut looks) = (0, 0);
            let elapsed = |done: u64| Duration::from_secs_f64(done as f64 / per_s);
            while done < count && elapsed(done) < longest {
                done += at_once(count, done, elapsed(done), longest).min(count - done);
                looks += 1;
            }
            looks
        };
        assert_eq!(looks(1_000_000, 100_000.0), 51);
        assert_eq!(looks(1_000_000, 907.0), 51);
        assert_eq!(looks(600, 907.0), 50);
        assert!(0 < looks(1_000_000, 0.1));
    }
}

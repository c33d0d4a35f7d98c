//! Texts that a client gets, and messages that come back to the one that said them.

use serde_json::{Value, json};
use tsuji_bridge::Protocol;

use super::house::House;
use super::server::{OWN, Server};
use super::wire::Account;
use super::{Scenario, named};
use crate::budgets::Run;
use crate::crew::Stop;
use crate::placement::Place;
use crate::report::Series;
use crate::rounds::{InRounds, Round};
use crate::statistics::{Bar, interval_of_median, interval_of_quantile};

/// A node that publishes as fast as it can, and a client that gets all of it.
pub(super) struct Outward {
    pub(super) name: String,
    pub(super) server: Server,
    /// One of each start.
    pub(super) brought: Vec<Came>,
}

/// What one start brought.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    took_s: f64,
    cpu_us: f64,
    count: u64,
    account: Account,
}

impl Came {
    /// How many came in a second.
    fn a_second(&self) -> f64 {
        self.account.came as f64 / self.took_s
    }
}

impl Scenario for Outward {
    fn server(&self) -> &Server {
        &self.server
    }

    fn tell(&self, run: &mut Run<'_, '_>) {
        if self.brought.is_empty() {
            return;
        }
        let (name, is_own) = (&self.name, self.server.is_own());
        let of = format!("{}, one client", self.server);
        let median = |of: fn(&Came) -> f64| {
            interval_of_median(&self.brought.iter().map(of).collect::<Vec<_>>())
        };
        let rate = median(|it| it.a_second() / 1e6);
        run.judge(name, &of, rate, "M/s", is_own.then_some(Bar::AtLeast(1.5)));
        let cpu = median(|it| it.cpu_us / it.account.came as f64);
        run.judge(
            format!("{name} CPU/message"),
            &of,
            cpu,
            "µs",
            is_own.then_some(Bar::AtMost(0.6)),
        );
        let sum = |of: fn(&Came) -> u64| self.brought.iter().map(of).sum::<u64>();
        let lost = sum(|it| it.count - it.account.came);
        let altered = sum(|it| it.account.altered + it.account.repeated);
        for (what, figure) in [("lost", lost), ("altered", altered)] {
            let bar = is_own.then_some(Bar::AtMost(0.0));
            run.judge(format!("{name} {what}"), &of, figure, "", bar);
        }
        if is_own {
            run.report.astray(lost + altered);
        }
    }

    fn timed(&self) -> Option<(&str, Vec<f64>)> {
        Some((&self.name, self.brought.iter().map(|it| 1.0 / it.a_second()).collect()))
    }
}

impl InRounds for Outward {
    fn name(&self) -> String {
        named(&self.name, &self.server)
    }

    fn round(&mut self, run: &mut Run<'_, '_>, _: Round) -> Result<(), Stop> {
        let count = self.server.messages(run.options.count);
        let place = Place::Receiver(0);
        let came = House::with(run.stage, &self.server, place, |it| Self::measure(it, count))?;
        self.brought.push(came);
        Ok(())
    }
}

impl Outward {
    fn measure(house: &mut House<'_>, count: u64) -> Result<Came, Stop> {
        let topic = house.topic("answers");
        let text = json!({ "topic": topic, "pictures": false });
        // The bridge has a processor for itself.
        let mut speaker = house.node(Place::Sender, "speaker", text)?;
        let text = json!({ "does": "hear", "topic": topic, "count": count });
        let mut client = house.client(Place::Sender, Protocol::WebSocket, text)?;
        speaker.ask("meet")?;
        let before = house.cpu_us()?;
        client.tell(&format!("hear {count}"))?;
        let said = speaker.ask(&format!("say {count}"))?;
        let heard = client.answer()?;
        let cpu_us = house.cpu_us()? - before;
        let account = Account::read(&heard);
        if account.came == 0 {
            return Err("nothing of what was said came to the client".to_owned().into());
        }
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let took_ns = number(&heard["last"]).saturating_sub(number(&said["began"]));
        Ok(Came { took_s: took_ns as f64 / 1e9, cpu_us, count, account })
    }
}

/// Messages of 64 letters that a client publishes and gets back, 32 on their way, each sent by a write of its own.
#[derive(Default)]
pub(super) struct Trips {
    /// How many a second in each start.
    a_second: Vec<f64>,
    cpu_us: Vec<f64>,
    /// How long each took, of each start.
    took_us: Vec<Vec<f64>>,
}

const IN_FLIGHT: u64 = 32;

/// So many of what was asked for are enough of these, since each is kept.
const TRIPS_OF_COUNT: u64 = 5;

impl Scenario for Trips {
    fn server(&self) -> &Server {
        &OWN
    }

    fn tell(&self, run: &mut Run<'_, '_>) {
        if self.a_second.is_empty() {
            return;
        }
        let of = format!("{OWN}, {IN_FLIGHT} of 64 letters on their way");
        let thousands: Vec<f64> = self.a_second.iter().map(|it| it / 1000.0).collect();
        let rate = interval_of_median(&thousands);
        run.judge(TRIPS, &of, rate, "k/s", Some(Bar::AtLeast(80.0)));
        let cpu = interval_of_median(&self.cpu_us);
        run.judge(format!("{TRIPS} CPU/message"), &of, cpu, "µs", None);
        let starts: Vec<&[f64]> = self.took_us.iter().map(Vec::as_slice).collect();
        for (what, q) in [("median", 0.5), ("p99", 0.99)] {
            run.judge(format!("{TRIPS} {what}"), &of, interval_of_quantile(&starts, q), "µs", None);
        }
        run.report.series(Series::latency(TRIPS, OWN.to_string(), &self.took_us));
    }
}

impl InRounds for Trips {
    fn name(&self) -> String {
        TRIPS.to_owned()
    }

    fn round(&mut self, run: &mut Run<'_, '_>, _: Round) -> Result<(), Stop> {
        let count = (run.options.count / TRIPS_OF_COUNT).max(1);
        let (told, cpu_us) = House::with(run.stage, &OWN, Place::Receiver(0), |house| {
            let text = json!({ "does": "trips", "topic": house.topic("trips") });
            let mut client = house.client(Place::Sender, Protocol::WebSocket, text)?;
            let before = house.cpu_us()?;
            let told = client.ask(&format!("trips {count} {IN_FLIGHT}"))?;
            Ok((told, house.cpu_us()? - before))
        })?;
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let took_ns = number(&told["ended"]).saturating_sub(number(&told["began"]));
        self.a_second.push(count as f64 / (took_ns as f64 / 1e9));
        self.cpu_us.push(cpu_us / count as f64);
        let took = told["took"].as_array().map_or(&[][..], Vec::as_slice);
        self.took_us.push(took.iter().map(|it| number(it) as f64 / 1000.0).collect());
        Ok(())
    }
}

pub(super) const TRIPS: &str = "trips";

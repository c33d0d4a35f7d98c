//! Texts that a client publishes: the article's experiment.

use std::fmt;

use serde_json::json;
use tsuji_bridge::Protocol;

use super::house::House;
use super::server::{INCOMING_BUFFER, Server};
use super::wire::Account;
use super::{Scenario, named};
use crate::budgets::Run;
use crate::crew::{Program, Stop};
use crate::placement::Place;
use crate::report::{Cell, Table};
use crate::rounds::{InRounds, Round};
use crate::statistics::{Bar, Interval, interval_of_median, quantile, sorted};

/// A client of one protocol, and what came of what it published.
pub(super) struct Inward {
    pub(super) name: String,
    pub(super) protocol: Protocol,
    pub(super) server: Server,
    pub(super) who: Who,
    /// One of each start.
    pub(super) brought: Vec<Brought>,
}

/// Who publishes.
#[derive(Clone, Debug)]
pub(super) enum Who {
    /// Its messages were made beforehand and are written at once.
    Fast,
    /// It does as the article's client does.
    Article,
    /// The article's client, played by that Python.
    Python(Program),
}

impl Who {
    /// What stands behind the name of its case.
    pub(super) fn suffix(&self) -> &'static str {
        match self {
            Self::Fast => "",
            Self::Article => "-article",
            Self::Python(_) => "-python",
        }
    }

    fn is_fast(&self) -> bool {
        matches!(self, Self::Fast)
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fast => "fast client",
            Self::Article => "as the article's client",
            Self::Python(_) => "the article's client",
        })
    }
}

/// What one start brought.
#[derive(Clone, Copy, Debug)]
pub(super) struct Brought {
    /// From the first message to the end of the last write.
    sent_s: f64,
    /// From the first message to the arrival of the last.
    took_s: f64,
    /// What the client's calls take of that by themselves, where each message is one.
    alone_s: f64,
    count: u64,
    account: Account,
    cpu_us: f64,
}

impl Brought {
    fn lost(&self) -> u64 {
        self.count - self.account.came
    }

    fn cpu_each(&self) -> f64 {
        self.cpu_us / self.account.came as f64
    }

    /// How many came in a second.
    fn a_second(&self) -> f64 {
        self.account.came as f64 / self.took_s
    }
}

impl Scenario for Inward {
    fn server(&self) -> &Server {
        &self.server
    }

    fn tell(&self, run: &mut Run<'_, '_>) {
        let [first, ..] = &*self.brought else { return };
        let (name, of) = (&self.name, format!("{}, {}", self.server, self.who));
        let has_bars = self.who.is_fast() && self.server.is_own();
        let is_udp = self.protocol == Protocol::Udp;
        let bar_ms = if self.protocol == Protocol::WebSocket { 200.0 } else { 220.0 };
        let bar_ms = bar_ms * first.count as f64 / ARTICLES_COUNT;
        let bar = |bar: f64| has_bars.then_some(Bar::AtMost(bar));
        let took = self.median(|it| it.took_s * 1000.0);
        run.judge(name, &of, took, "ms", bar(bar_ms).filter(|_| !is_udp));
        if is_udp && has_bars {
            // The bar is for what the client's own cost is not in. Both work at once, so what is left would hide a slow bridge:
            // it takes no less than its processor time.
            let rest =
                self.median(|it| ((it.took_s - it.alone_s) * 1000.0).max(it.cpu_us / 1000.0));
            let alone_ms = self.middle(|it| it.alone_s * 1000.0);
            let of =
                format!("{of}; its calls alone, to a socket that nobody reads: {alone_ms:.0} ms");
            run.judge(format!("{name} less its sending"), of, rest, "ms", bar(bar_ms));
        }
        let cpu = self.median(Brought::cpu_each);
        run.judge(format!("{name} CPU/message"), &of, cpu, "µs", bar(1.5).filter(|_| !is_udp));
        let rate = self.median(|it| it.a_second() / 1000.0);
        run.judge(format!("{name} messages"), &of, rate, "k/s", None);
        let sum = |of: fn(&Brought) -> u64| self.brought.iter().map(of).sum::<u64>();
        let lost = sum(Brought::lost);
        let (altered, repeated) = (sum(|it| it.account.altered), sum(|it| it.account.repeated));
        // What the system lets go of datagrams is told, and no fault.
        for (what, figure, may_be) in
            [("lost", lost, is_udp), ("altered", altered, false), ("repeated", repeated, false)]
        {
            let bar = (self.server.is_own() && !may_be).then_some(Bar::AtMost(0.0));
            run.judge(format!("{name} {what}"), &of, figure, "", bar);
        }
        if self.server.is_own() {
            run.report.astray(altered + repeated + if is_udp { 0 } else { lost });
        }
    }

    fn timed(&self) -> Option<(&str, Vec<f64>)> {
        Some((&self.name, self.brought.iter().map(|it| 1.0 / it.a_second()).collect()))
    }

    fn inward(&self) -> Option<&Inward> {
        Some(self)
    }
}

impl InRounds for Inward {
    fn name(&self) -> String {
        named(&self.name, &self.server)
    }

    fn round(&mut self, run: &mut Run<'_, '_>, _: Round) -> Result<(), Stop> {
        let count = self.server.messages(run.options.count);
        let place = Place::Receiver(0);
        let brought = House::with(run.stage, &self.server, place, |it| self.measure(it, count))?;
        self.brought.push(brought);
        Ok(())
    }
}

impl Inward {
    fn measure(&self, house: &mut House<'_>, count: u64) -> Result<Brought, Stop> {
        let (topic, protocol) = (house.topic("chatter"), self.protocol);
        let text = json!({ "topic": topic, "protocol": protocol.word() });
        let mut listener = house.node(Place::Anywhere, "listener", text)?;
        let text = json!({ "does": "publish", "topic": topic, "is_fast": self.who.is_fast() });
        let mut client = match &self.who {
            Who::Python(program) => house.client_of(program, Place::Sender, protocol, text)?,
            Who::Fast | Who::Article => house.client(Place::Sender, protocol, text)?,
        };
        let made = client.ask(&format!("make {count}"))?;
        listener.ask("meet")?;
        let before = house.cpu_us()?;
        let silent_ms = if protocol == Protocol::Udp { LOSSY_SILENT_MS } else { SILENT_MS };
        listener.tell(&format!("hear {count} {silent_ms}"))?;
        let said = client.ask(&format!("publish {count}"))?;
        let heard = listener.answer()?;
        let cpu_us = house.cpu_us()? - before;
        let account = Account::heard(&heard, protocol, count);
        if account.came == 0 {
            return Err("nothing of what was said came to the listener".to_owned().into());
        }
        let began = said["began"].as_u64().unwrap_or_default();
        let since = |it: &serde_json::Value| {
            it.as_u64().unwrap_or_default().saturating_sub(began) as f64 / 1e9
        };
        let (sent_s, took_s) = (since(&said["sent"]), since(&heard["last"]));
        let alone_s = made["alone_ns"].as_f64().unwrap_or_default() / 1e9;
        Ok(Brought { sent_s, took_s, alone_s, count, account, cpu_us })
    }

    fn all(&self, of: impl Fn(&Brought) -> f64) -> Vec<f64> {
        self.brought.iter().map(of).collect()
    }

    fn median(&self, of: impl Fn(&Brought) -> f64) -> Option<Interval> {
        interval_of_median(&self.all(of))
    }

    fn middle(&self, of: impl Fn(&Brought) -> f64) -> f64 {
        quantile(&sorted(self.all(of)), 0.5)
    }

    /// Where the same stands in the article.
    fn published(&self) -> Option<&'static Published> {
        let server = match (self.protocol, self.server.incoming_buffer()) {
            (Protocol::WebSocket, _) => "WebSocket",
            (Protocol::Tcp, INCOMING_BUFFER) => "TCP, incoming_buffer 65536",
            (Protocol::Tcp, _) => "TCP, incoming_buffer 1024",
            (Protocol::Udp, _) => return None,
        };
        PUBLISHED.iter().find(|it| it.server == server)
    }

    fn row(&self) -> Option<Vec<Cell>> {
        let middle = |of: fn(&Brought) -> f64| Cell::Number(self.middle(of));
        let sum =
            |of: fn(&Brought) -> u64| Cell::Number(self.brought.iter().map(of).sum::<u64>() as f64);
        let first = self.brought.first()?;
        let published = self
            .published()
            .map_or([Cell::Nothing, Cell::Nothing], |it| it.noetic.map(Cell::Number));
        let mut row = vec![
            Cell::Text(self.name.clone()),
            Cell::Text(self.server.to_string()),
            Cell::Text(self.who.to_string()),
            Cell::Number(first.count as f64),
            middle(|it| it.sent_s * 1000.0),
            middle(|it| it.took_s * 1000.0),
            middle(Brought::a_second),
            middle(Brought::cpu_each),
            sum(Brought::lost),
            sum(|it| it.account.altered),
        ];
        row.extend(published);
        Some(row)
    }
}

/// So many messages the article's clients send.
const ARTICLES_COUNT: f64 = 100_000.0;

/// Where nothing comes for so long, nothing will.
const SILENT_MS: u64 = 10_000;
/// The same where the system lets some go, perhaps the last.
const LOSSY_SILENT_MS: u64 = 1000;

/// All clients side by side, and what the article has.
pub(super) fn tables(run: &mut Run<'_, '_>, all: &[&Inward]) {
    let rows: Vec<_> = all.iter().filter_map(|it| it.row()).collect();
    if rows.is_empty() {
        return;
    }
    let columns = [
        "case",
        "server",
        "client",
        "messages",
        "sent ms",
        "all there ms",
        "messages/s",
        "server CPU µs",
        "lost",
        "altered",
        "article sent s",
        "article all there s",
    ];
    let note = "Medians of the starts; lost and altered of all together. The article's are of 100,000 messages by Python's clients to \
                rosbridge_server of ROS noetic, shown by `rostopic echo`; its 0.5 s of waiting is in them, and not in ours.";
    let title = "Texts that a client publishes, until the last is in another process";
    let table = Table::new(title, &columns, rows, note);
    run.report.table(run.screen, table);
    run.report.table(run.screen, articles_table());
}

/// What the article measured, in seconds: until all was sent, and until all was shown.
struct Published {
    server: &'static str,
    melodic: [f64; 2],
    /// With the change that the article proposes: `join` in the place of `+`.
    melodic_joined: [f64; 2],
    noetic: [f64; 2],
    noetic_joined: [f64; 2],
}

const PUBLISHED: [Published; 3] = [
    Published {
        server: "TCP, incoming_buffer 65536",
        melodic: [4334.94, 9922.59],
        melodic_joined: [90.16, 255.5],
        noetic: [119.37, 255.79],
        noetic_joined: [88.01, 249.26],
    },
    Published {
        server: "TCP, incoming_buffer 1024",
        melodic: [206.07, 217.23],
        melodic_joined: [13.99, 16.06],
        noetic: [10.53, 11.87],
        noetic_joined: [10.45, 11.9],
    },
    Published {
        server: "WebSocket",
        melodic: [5.18, 16.2],
        melodic_joined: [4.99, 15.5],
        noetic: [4.63, 6.17],
        noetic_joined: [4.49, 6.05],
    },
];

fn articles_table() -> Table {
    let columns = [
        "server",
        "melodic sent s",
        "all shown s",
        "with join sent s",
        "all shown s",
        "noetic sent s",
        "all shown s",
        "with join sent s",
        "all shown s",
    ];
    let row = |it: &Published| {
        let figures = [it.melodic, it.melodic_joined, it.noetic, it.noetic_joined].concat();
        let figures = figures.into_iter().map(Cell::Number);
        [Cell::Text(it.server.to_owned())].into_iter().chain(figures).collect()
    };
    let (title, note) = (
        "100,000 texts to rosbridge_server of ROS 1, the article",
        "Of an i7-10870H, the server in a container.",
    );
    Table::new(title, &columns, PUBLISHED.iter().map(row).collect(), note)
}

//! Pictures of a camera to one client, and to many of which one never reads.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tsuji_bridge::Protocol;

use super::house::House;
use super::server::Server;
use super::{PICTURE_BYTES, Scenario, named};
use crate::budgets::{Run, Status};
use crate::crew::Stop;
use crate::placement::Place;
use crate::report::{At, Series};
use crate::rounds::{InRounds, Round};
use crate::statistics::{Bar, interval_of_median, interval_of_quantile};

/// How they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Cbor,
    CborRaw,
}

impl Form {
    /// As the protocol names it.
    fn compression(self) -> &'static str {
        match self {
            Self::Json => "none",
            Self::Cbor => "cbor",
            Self::CborRaw => "cbor-raw",
        }
    }

    /// Per cent of a core that the bridge may take for one client.
    fn cpu_percent_max(self) -> f64 {
        match self {
            Self::Json => 4.0,
            Self::Cbor => 2.0,
            Self::CborRaw => 1.5,
        }
    }
}

/// A node that films, and those who watch.
pub(super) struct Pictures {
    pub(super) name: String,
    pub(super) form: Form,
    /// Many watch, and one does not read.
    pub(super) is_crowd: bool,
    pub(super) server: Server,
    /// What the bridge took in each start, per cent of a core.
    cpu_percent: Vec<f64>,
    /// How late pictures were whole, of each start and of all who read.
    took_us: Vec<Vec<f64>>,
    /// Pictures that whoever reads did not get, behind the first that came.
    lost: u64,
    memory: Memory,
}

impl Pictures {
    pub(super) fn new(name: &str, form: Form, is_crowd: bool, server: Server) -> Self {
        Self {
            name: name.to_owned(),
            form,
            is_crowd,
            server,
            cpu_percent: Vec::new(),
            took_us: Vec::new(),
            lost: 0,
            memory: Memory::default(),
        }
    }

    /// Clients that read.
    fn readers(&self) -> u64 {
        if self.is_crowd { CROWD - 1 } else { 1 }
    }
}

/// Clients of a crowd, with the one that does not read.
const CROWD: u64 = 50;

/// 30 Hz.
const PERIOD_US: u64 = 33_333;

/// So many of what was asked for are enough of these, and no more than a child may take time for.
const PICTURES_OF_COUNT: u64 = 600;
const PICTURES_MIN: u64 = 8;
const PICTURES_MAX: u64 = 2000;

/// By then all have met.
const WARM_UP: u64 = 3;

impl Scenario for Pictures {
    fn server(&self) -> &Server {
        &self.server
    }

    fn tell(&self, run: &mut Run<'_, '_>) {
        if self.took_us.is_empty() {
            return;
        }
        let (name, is_own) = (&self.name, self.server.is_own());
        // All forms in one plot.
        let (case, form) = name.split_once('-').unwrap_or((name, ""));
        let line = if is_own { form.to_owned() } else { format!("{form}, {}", self.server) };
        let of = match self.is_crowd {
            true => format!("{}, {CROWD} clients, one of which does not read", self.server),
            false => format!("{}, one client", self.server),
        };
        let cpu = interval_of_median(&self.cpu_percent);
        let bar = Bar::AtMost(self.form.cpu_percent_max());
        let bar = (is_own && !self.is_crowd).then_some(bar);
        run.judge(format!("{name} CPU"), &of, cpu, "% of a core", bar);
        let starts_ms: Vec<Vec<f64>> =
            self.took_us.iter().map(|it| it.iter().map(|us| us / 1000.0).collect()).collect();
        let starts_ms: Vec<&[f64]> = starts_ms.iter().map(Vec::as_slice).collect();
        for (what, q) in [("median", 0.5), ("p99", 0.99)] {
            let bar = (self.is_crowd && q > 0.9).then_some(Bar::AtMost(20.0));
            let took = interval_of_quantile(&starts_ms, q);
            run.judge(format!("{name} {what}"), &of, took, "ms", bar);
        }
        let bar = (is_own && !self.is_crowd).then_some(Bar::AtMost(0.0));
        run.judge(format!("{name} lost"), &of, self.lost, "", bar);
        if bar.is_some() {
            run.report.astray(self.lost);
        }
        run.report.series(Series::latency(case, &line, &self.took_us));
        if self.is_crowd {
            let grown_max = GROWN_MB_MAX + 4.0 * PICTURE_BYTES as f64 / 1e6;
            self.memory.tell(run, name, &of, grown_max);
            run.report.series(self.memory.series(case, &line));
        }
    }
}

impl InRounds for Pictures {
    fn name(&self) -> String {
        named(&self.name, &self.server)
    }

    fn round(&mut self, run: &mut Run<'_, '_>, _: Round) -> Result<(), Stop> {
        let count = (run.options.count / PICTURES_OF_COUNT).clamp(PICTURES_MIN, PICTURES_MAX);
        let seen = House::with(run.stage, &self.server, Place::Receiver(0), |house| {
            self.watch(run, house, count)
        })?;
        self.cpu_percent.push(seen.cpu_percent);
        self.took_us.push(seen.took_us);
        self.lost += seen.lost;
        self.memory.append(seen.memory);
        Ok(())
    }
}

/// What one start brought.
struct Seen {
    cpu_percent: f64,
    took_us: Vec<f64>,
    lost: u64,
    memory: Vec<(f64, f64)>,
}

impl Pictures {
    fn watch(&self, run: &Run<'_, '_>, house: &mut House<'_>, count: u64) -> Result<Seen, Stop> {
        let topic = house.topic("camera");
        let text = json!({
            "does": "watch", "topic": topic, "compression": self.form.compression(),
            "watchers": self.readers(), "has_stalled": self.is_crowd,
            // Whoever watches with others wants the newest.
            "queue": if self.is_crowd { 1 } else { 10 },
        });
        let mut client = house.client(Place::Anywhere, Protocol::WebSocket, text)?;
        let text = json!({ "topic": topic, "pictures": true });
        let mut speaker = house.node(Place::Sender, "speaker", text)?;
        speaker.ask("meet")?;
        client.tell(&format!("watch {}", count - 1))?;
        let (before_us, begin) = (house.cpu_us()?, Instant::now());
        speaker.tell(&format!("film {count} {PERIOD_US}"))?;
        let lasts = Duration::from_micros(count * PERIOD_US);
        let mut memory = Vec::new();
        while begin.elapsed() < lasts {
            if run.stage.interrupt.is_set() {
                return Err(Stop::Interrupted);
            }
            memory.push((begin.elapsed().as_secs_f64(), resident_mb(house.id())?));
            thread::sleep(LOOK.min(lasts.saturating_sub(begin.elapsed())));
        }
        let filmed = speaker.answer()?;
        let cpu_us = house.cpu_us()? - before_us;
        let cpu_percent = cpu_us / begin.elapsed().as_micros() as f64 * 100.0;
        let (took_us, lost) = took(&filmed["published"], &client.answer()?["seen"]);
        if took_us.is_empty() {
            return Err("no picture came to a client".to_owned().into());
        }
        Ok(Seen { cpu_percent, took_us, lost, memory })
    }
}

/// How long each took from its publishing until it was whole, by all who read; and how many did not come.
fn took(published: &Value, seen: &Value) -> (Vec<f64>, u64) {
    let list = |it: &Value| it.as_array().cloned().unwrap_or_default();
    let published = list(published);
    let (mut took_us, mut lost) = (Vec::new(), 0);
    for reader in list(seen) {
        let seen: Vec<(u64, u64)> = list(&reader)
            .iter()
            .filter_map(|it| Some((it[0].as_u64()?, it[1].as_u64()?)))
            .collect();
        let first = seen.first().map_or(0, |it| it.0);
        lost += (published.len() as u64 - first).saturating_sub(seen.len() as u64);
        for (number, at) in seen.into_iter().filter(|it| WARM_UP <= it.0) {
            let sent = usize::try_from(number).ok().and_then(|it| published.get(it)?.as_u64());
            took_us.extend(sent.map(|sent| at.saturating_sub(sent) as f64 / 1000.0));
        }
    }
    (took_us, lost)
}

/// How often the memory of the bridge is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// What is resident of a process, 10^6 bytes.
pub(super) fn resident_mb(id: u32) -> Result<f64, Stop> {
    Ok(Status::of(id)?.kib("VmRSS:") as f64 * 1024.0 / 1e6)
}

/// What a bridge may grow by where nothing of it should.
pub(super) const GROWN_MB_MAX: f64 = 2.0;

/// What was resident of a bridge over time.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Since the begin, one start behind the other.
    seconds: Vec<f64>,
    mb: Vec<f64>,
    /// What it grew by in each start.
    grown_mb: Vec<f64>,
}

impl Memory {
    /// What was seen in one start: when, and how much.
    pub(super) fn append(&mut self, looks: Vec<(f64, f64)>) {
        let before = self.seconds.last().copied().unwrap_or_default();
        let mb: Vec<f64> = looks.iter().map(|it| it.1).collect();
        self.grown_mb.extend(grown(&mb));
        self.seconds.extend(looks.iter().map(|it| before + it.0));
        self.mb.extend(mb);
    }

    /// Says how much there was, and what it grew by.
    pub(super) fn tell(&self, run: &mut Run<'_, '_>, name: &str, of: &str, grown_max: f64) {
        let most = self.mb.iter().copied().fold(0.0, f64::max);
        run.judge(format!("{name} RSS"), of, most, "MB", None);
        let grown = interval_of_median(&self.grown_mb);
        run.judge(format!("{name} growth"), of, grown, "MB", Some(Bar::AtMost(grown_max)));
    }

    /// What there was over time.
    pub(super) fn series(&self, case: &str, of: &str) -> Series {
        Series {
            case: case.to_owned(),
            of: of.to_owned(),
            what: "memory",
            unit: "MB",
            at: At::Seconds(self.seconds.clone()),
            starts: vec![self.mb.clone()],
        }
    }
}

/// The most of the last fifth, less the most between the first tenth and three of them: before that it fills what it keeps.
fn grown(looks: &[f64]) -> Option<f64> {
    let at = |tenths: usize| looks.len() * tenths / 10;
    let most = |part: &[f64]| part.iter().copied().max_by(f64::total_cmp);
    Some(most(&looks[at(8)..])? - most(&looks[at(1)..at(3)])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_late_by_those_who_read() {
        let published = json!([1000, 2000, 3000, 4000, 5000]);
        // The first joins late, the second misses one, the third sees nothing.
        let seen =
            json!([[[2, 3500], [3, 6000], [4, 9000]], [[0, 1], [1, 2], [3, 5000], [4, 5500]], []]);
        let (took_us, lost) = took(&published, &seen);
        assert_eq!(took_us, [2.0, 4.0, 1.0, 0.5]);
        assert_eq!(lost, 1 + 5);
    }

    #[test]
    fn growth_is_of_what_comes_behind_the_begin() {
        let rising: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(grown(&rising), Some(99.0 - 29.0));
        let mut filling = vec![50.0; 100];
        filling[..10].fill(1.0);
        assert_eq!(grown(&filling), Some(0.0));
        assert_eq!(grown(&[1.0, 2.0]), None);
        let mut memory = Memory::default();
        memory.append(vec![(0.5, 1.0), (1.0, 2.0)]);
        memory.append(vec![(0.5, 3.0)]);
        assert_eq!((memory.seconds, memory.mb), (vec![0.5, 1.0, 1.5], vec![1.0, 2.0, 3.0]));
    }
}

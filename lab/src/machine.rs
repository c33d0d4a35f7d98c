//! What is measured on, so that a figure can be read later.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use tsuji_platform::clock::monotonic_ns;

/// The machine as it is now.
pub(crate) fn describe() -> Value {
    let load = text("/proc/loadavg");
    let load: Vec<f64> = load.split_whitespace().take(3).filter_map(|it| it.parse().ok()).collect();
    json!({
        "cpu": cpu_model(),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "architecture": std::env::consts::ARCH,
        "kernel": text("/proc/sys/kernel/osrelease"),
        "memory_bytes": memory_bytes(),
        "load": load,
        "date": date(tsuji_platform::clock::wall_ns() / 1_000_000_000),
        "tsuji": env!("CARGO_PKG_VERSION"),
        "optimized": !cfg!(debug_assertions),
        "clock_ns": clock_ns(),
        "noise": Noise::of(LISTENED).to_json(),
    })
}

/// What one reading of the clock takes: the least of many, in ns. A time that the laboratory tells has one in it.
fn clock_ns() -> f64 {
    const READINGS: u32 = 1000;
    let batch = || {
        let begin = monotonic_ns();
        for _ in 0..READINGS {
            std::hint::black_box(monotonic_ns());
        }
        (monotonic_ns() - begin) as f64 / f64::from(READINGS)
    };
    (0..20).map(|_| batch()).fold(f64::INFINITY, f64::min)
}

/// How long the machine is listened to before anything is measured.
const LISTENED: Duration = Duration::from_millis(200);

/// A reading of the clock that comes so much later than the one before was kept from it.
const GAP_NS: u64 = 20_000;

/// Above this share of the time the machine is too noisy for what is rare to be told: one sample in a hundred meets it.
const NOISY_PERCENT: f64 = 1.0;

/// How much a thread that only reads the clock is kept from it.
struct Noise {
    /// The share of the time that went by in gaps.
    percent: f64,
    longest_us: f64,
}

impl Noise {
    fn of(listened: Duration) -> Self {
        let begin = monotonic_ns();
        let (mut last, mut lost_ns, mut longest_ns) = (begin, 0, 0);
        while last - begin < listened.as_nanos() as u64 {
            let now = monotonic_ns();
            let gap = now - last;
            if GAP_NS <= gap {
                lost_ns += gap;
                longest_ns = longest_ns.max(gap);
            }
            last = now;
        }
        let percent = lost_ns as f64 / (last - begin) as f64 * 100.0;
        Self { percent, longest_us: longest_ns as f64 / 1000.0 }
    }

    fn to_json(&self) -> Value {
        let tenth = |it: f64| (it * 10.0).round() / 10.0;
        json!({ "percent": tenth(self.percent), "longest_us": tenth(self.longest_us) })
    }
}

/// Above this share of all processors others have changed what was measured: a processor that was just used wakes otherwise
/// than one that has slept.
const OTHERS_MAX_PERCENT: f64 = 2.0;

/// Looks at how much of the machine others have while something is measured.
#[derive(Debug)]
pub(crate) struct Watch(Option<Ticks>);

/// How long processors have worked since the machine and this process began, in ticks of the kernel.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    /// All processors, whatever they did.
    all: u64,
    /// In programs, or in the kernel for one.
    busy: u64,
    /// What the host of a virtual machine gave to others.
    stolen: u64,
    /// In this process and in its children that have ended.
    own: u64,
}

impl Ticks {
    /// `stat` is `/proc/stat`, `own` is `/proc/self/stat`.
    fn read(stat: &str, own: &str) -> Option<Self> {
        let words = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let times: Vec<u64> = words.map_while(|it| it.parse().ok()).collect();
        // What interrupts take is of whose messages they bring. Guests are in user and nice already.
        let &[user, nice, system, _, _, _, _, stolen, ..] = &*times else { return None };
        let all = times.iter().take(8).sum();
        // Behind the name, which may have anything in it: utime, stime and the same of children are the 14th to the 17th.
        let (_, own) = own.rsplit_once(") ")?;
        let own = own.split(' ').skip(11).take(4).map_while(|it| it.parse::<u64>().ok()).sum();
        Some(Self { all, busy: user + nice + system, stolen, own })
    }

    fn now() -> Option<Self> {
        Self::read(&text("/proc/stat"), &text("/proc/self/stat"))
    }
}

impl Watch {
    /// Begins.
    pub(crate) fn start() -> Self {
        Self(Ticks::now())
    }

    /// What it saw until now, when all children have ended; nothing where the kernel does not say.
    pub(crate) fn to_json(&self) -> Value {
        let (Some(before), Some(now)) = (self.0, Ticks::now()) else { return Value::Null };
        let all = now.all.saturating_sub(before.all).max(1) as f64;
        let share = |ticks: u64| (ticks as f64 / all * 1000.0).round() / 10.0;
        let own = now.own.saturating_sub(before.own);
        json!({
            "percent": share(now.busy.saturating_sub(before.busy).saturating_sub(own)),
            "stolen_percent": share(now.stolen.saturating_sub(before.stolen)),
        })
    }
}

/// What others had of a machine as described, in words, where that was too much.
pub(crate) fn others(machine: &Value) -> Option<String> {
    let share = |field: &str| machine["others"][field].as_f64().unwrap_or(0.0);
    let (percent, stolen) = (share("percent"), share("stolen_percent"));
    (OTHERS_MAX_PERCENT < percent + stolen).then(|| {
        format!(
            "While this was measured, other programs had {percent} % of all processors and the host of this machine took \
             {stolen} %: another run may give other figures."
        )
    })
}

/// What is to be known before figures of this machine, as described, are believed.
pub(crate) fn warnings(machine: &Value) -> Vec<String> {
    let noise = &machine["noise"];
    let percent = noise["percent"].as_f64().filter(|it| NOISY_PERCENT < *it);
    let busy = percent.map(|percent| {
        format!(
            "This machine is busy: a thread that did nothing else was kept waiting for {percent} % of the time, and once for \
             {} µs. What is rare, such as a 99th percentile, is then of the machine more than of what is measured.",
            noise["longest_us"]
        )
    });
    let single = (machine["cores"] == 1).then(|| {
        "There is one processor for all: no two threads run at once, so every time has changes between them in it, and \
         two transports differ less than where there are more."
            .to_owned()
    });
    busy.into_iter().chain(single).chain(others(machine)).collect()
}

/// The same in one line.
pub(crate) fn line(machine: &Value) -> String {
    let memory = machine["memory_bytes"].as_u64().unwrap_or(0) as f64 / f64::from(1 << 30);
    format!(
        "{}, {} cores, {memory:.0} GiB, Linux {}, load {}, clock {} ns, {}{}",
        machine["cpu"].as_str().unwrap_or("?"),
        machine["cores"],
        machine["kernel"].as_str().unwrap_or("?"),
        machine["load"][0],
        machine["clock_ns"].as_f64().unwrap_or(f64::NAN).round(),
        machine["date"].as_str().unwrap_or("?"),
        if cfg!(debug_assertions) { ", NOT OPTIMIZED: the figures mean nothing" } else { "" },
    )
}

/// What is to be known of it beside figures.
pub(crate) fn short(machine: &Value) -> String {
    let memory = machine["memory_bytes"].as_u64().unwrap_or(0) as f64 / f64::from(1 << 30);
    let word = |field: &str| machine[field].as_str().unwrap_or("?");
    let placement = machine["placement"]["placement"].as_str();
    // To the minute.
    let date = word("date")
        .get(..16)
        .map_or_else(|| word("date").to_owned(), |it| it.replace('T', " ") + " UTC");
    format!(
        "{}, {} cores, {memory:.0} GiB, Linux {}, tsuji {}, {}{}",
        word("cpu"),
        machine["cores"],
        word("kernel"),
        word("tsuji"),
        date,
        placement.map_or(String::new(), |it| format!(", placement {it}"))
    )
}

fn cpu_model() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    // arm64 gives no name, only numbers.
    for field in ["model name", "CPU part"] {
        let line = info.lines().find(|line| line.starts_with(field));
        if let Some((_, name)) = line.and_then(|line| line.split_once(':')) {
            return name.trim().to_owned();
        }
    }
    "unknown".to_owned()
}

fn memory_bytes() -> u64 {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// Seconds since 1970 as a date and time of day, UTC. After Howard Hinnant's `civil_from_days`.
fn date(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(date(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date(1_735_689_599), "2024-12-31T23:59:59Z");
    }

    #[test]
    fn the_machine_is_described() {
        let machine = describe();
        assert_ne!(machine["memory_bytes"], 0);
        assert_ne!(machine["cpu"], "unknown");
        assert!(line(&machine).contains(" cores, "));
        assert!(0.0 < machine["clock_ns"].as_f64().unwrap());
    }

    #[test]
    fn what_others_had_is_what_is_left() {
        let stat = |user, stolen| format!("cpu  {user} 5 20 900 7 3 2 {stolen} 4 0\ncpu0 1 2 3\n");
        let own = "42 (a) b) R 1 1 1 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0";
        let ticks = Ticks::read(&stat(100, 6), own).unwrap();
        assert_eq!((ticks.all, ticks.busy, ticks.stolen, ticks.own), (1043, 125, 6, 100));
        assert!(Ticks::read("intr 1", own).is_none() && Ticks::read("cpu  1 2", own).is_none());
        let told = Watch::start().to_json();
        assert!(told["percent"].is_f64() && told["stolen_percent"].is_f64(), "{told}");
        let machine = |percent| json!({ "others": { "percent": percent, "stolen_percent": 0.5 } });
        assert!(others(&machine(1.5)).is_none() && others(&json!({})).is_none());
        assert!(others(&machine(1.6)).unwrap().contains("had 1.6 %"));
    }

    #[test]
    fn a_busy_machine_is_warned_of() {
        let busy = |percent| json!({ "noise": { "percent": percent, "longest_us": 900.0 } });
        assert!(warnings(&busy(0.4)).is_empty());
        let warnings = warnings(&busy(7.5));
        let [warning] = &*warnings else { panic!("{warnings:?}") };
        assert!(warning.contains("7.5 %") && warning.contains("900.0 µs"), "{warning}");
    }
}

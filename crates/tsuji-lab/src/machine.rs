//! What is measured on, so that a figure can be read later.

use std::fs;

use serde_json::{Value, json};

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
    })
}

/// The same in one line.
pub(crate) fn line(machine: &Value) -> String {
    let memory = machine["memory_bytes"].as_u64().unwrap_or(0) as f64 / f64::from(1 << 30);
    format!(
        "{}, {} cores, {memory:.0} GiB, Linux {}, load {}, {}{}",
        machine["cpu"].as_str().unwrap_or("?"),
        machine["cores"],
        machine["kernel"].as_str().unwrap_or("?"),
        machine["load"][0],
        machine["date"].as_str().unwrap_or("?"),
        if cfg!(debug_assertions) { ", NOT OPTIMIZED: the figures mean nothing" } else { "" },
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
    }
}

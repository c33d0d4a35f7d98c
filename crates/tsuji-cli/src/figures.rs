//! Numbers as people read them.

use std::time::Duration;

/// A number of things: `1 flow`, `2 flows`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A rate: `30.0 Hz`, `1.2 kHz`.
pub(crate) fn rate(hz: f64) -> String {
    if hz <= 0.0 { "-".to_owned() } else { format!("{}Hz", scaled(hz)) }
}

/// Bytes a second: `27.6 MB/s`.
pub(crate) fn throughput(bytes_per_s: f64) -> String {
    if bytes_per_s <= 0.0 { "-".to_owned() } else { format!("{}B/s", scaled(bytes_per_s)) }
}

/// An amount of bytes: `1.2 MB`.
pub(crate) fn bytes(bytes: u64) -> String {
    if bytes < 1000 { format!("{bytes} B") } else { format!("{}B", scaled(bytes as f64)) }
}

/// Microseconds, without their unit: `9.3`, `140`.
pub(crate) fn micros(us: f64) -> String {
    if us < 99.95 { format!("{us:.1}") } else { format!("{us:.0}") }
}

/// A time that passed, given in microseconds: `85 µs`, `2.1 ms`, `1.3 s`.
pub(crate) fn duration(us: f64) -> String {
    match us {
        us if us < 999.5 => format!("{us:.0} µs"),
        us if us < 999_950.0 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.1} s", us / 1e6),
    }
}

/// A time that a user has said, as it was said: `1 s`, `2.5 s`.
pub(crate) fn seconds(said: Duration) -> String {
    format!("{} s", said.as_secs_f64())
}

/// A time of the wall clock, in UTC: `04:14:25.123Z`, and with its date if that is not the one of
/// `now_ns`.
pub(crate) fn time(wall_ns: i64, now_ns: i64) -> String {
    const DAY_MS: i64 = 86_400_000;
    let (days, ms) =
        ((wall_ns / 1_000_000).div_euclid(DAY_MS), (wall_ns / 1_000_000).rem_euclid(DAY_MS));
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    let time = format!("{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000);
    if days == (now_ns / 1_000_000).div_euclid(DAY_MS) {
        return time;
    }
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {time}")
}

/// A day, as `2036-11-27`.
pub(crate) fn date_of(wall_ns: i64) -> String {
    let (year, month, day) = date(wall_ns.div_euclid(86_400_000_000_000));
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of so many days after 1970 began, by the Gregorian calendar.
fn date(days: i64) -> (i64, i64, i64) {
    // Counted from March, so that the day that is not always there is the last of a year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// A number with one digit behind the point and its thousands as a letter: `27.6 M`.
fn scaled(value: f64) -> String {
    let units = [("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9)];
    // What would be rounded to 1000.0 belongs to the next unit.
    let fits = |factor: f64| value / factor < 999.95;
    let (unit, factor) = units.into_iter().find(|(_, factor)| fits(*factor)).unwrap_or(("T", 1e12));
    format!("{:.1} {unit}", value / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_of_the_calendar() {
        let ns = |seconds: i64| seconds * 1_000_000_000 + 123_000_000;
        let check = |seconds, expect: &str| assert_eq!(time(ns(seconds), ns(0)), expect);
        check(3661, "01:01:01.123Z");
        check(951_782_400, "2000-02-29 00:00:00.123Z");
        check(951_868_800, "2000-03-01 00:00:00.123Z");
        check(1_798_761_599, "2026-12-31 23:59:59.123Z");
        check(-1, "1969-12-31 23:59:59.123Z");
    }

    #[test]
    fn numbers_are_short() {
        let cases = [
            (rate(30.0), "30.0 Hz"),
            (rate(999.97), "1.0 kHz"),
            (rate(0.0), "-"),
            (throughput(27_648_000.0), "27.6 MB/s"),
            (throughput(12.0), "12.0 B/s"),
            (bytes(64), "64 B"),
            (bytes(921_600), "921.6 kB"),
            (bytes(u64::MAX), "18446744.1 TB"),
            (duration(85.2), "85 µs"),
            (duration(999.9), "1.0 ms"),
            (duration(2140.0), "2.1 ms"),
            (duration(1_300_000.0), "1.3 s"),
            (micros(9.34), "9.3"),
            (micros(140.2), "140"),
            (seconds(Duration::from_secs(1)), "1 s"),
            (seconds(Duration::from_millis(2500)), "2.5 s"),
            (seconds(Duration::from_secs_f64(0.1)), "0.1 s"),
        ];
        for (got, expect) in cases {
            assert_eq!(got, expect);
        }
    }
}

//! Sizes and durations with units, as policy files and transport settings write them.

use std::time::Duration;

/// The units of a size, each with its bytes.
pub const SIZE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("KB", 1000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
];

/// The units of a duration, each with its nanoseconds.
pub const DURATION_UNITS: &[(&str, u64)] =
    &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("min", 60_000_000_000)];

/// Reads `64KiB`, `1 GiB`, or a plain number of bytes. `None` for anything else, and for more than
/// 64 bits hold.
pub fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let unit = if unit.is_empty() { "B" } else { unit };
    number.checked_mul(factor(SIZE_UNITS, unit)?)
}

/// Reads `500ms` or `10 s`; the unit is needed, except for `0`. `None` for anything else, and for
/// more than 64 bits of nanoseconds hold (584 years).
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    if number == 0 && unit.is_empty() {
        return Some(Duration::ZERO);
    }
    Some(Duration::from_nanos(number.checked_mul(factor(DURATION_UNITS, unit)?)?))
}

/// Writes a size with the largest binary unit that is exact.
pub fn format_size(bytes: u64) -> String {
    for (unit, factor) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes != 0 && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    format!("{bytes}B")
}

fn split(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim_start_matches(' ')))
}

fn factor(units: &[(&str, u64)], unit: &str) -> Option<u64> {
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        #[track_caller]
        fn check(text: &str, expect: Option<u64>) {
            assert_eq!(parse_size(text), expect, "{text}");
        }
        check("921600", Some(921_600));
        check("64KiB", Some(65_536));
        check("64 KB", Some(64_000));
        check("1GiB", Some(1 << 30));
        check("0", Some(0));
        check("17179869184GiB", None);
        check("99999999999999999999", None);
        check("", None);
        check("KiB", None);
        check("1kib", None);
        check("1.5MiB", None);
        check("-1", None);
        check("1 KiB ", None);
        check("１KiB", None);
    }

    #[test]
    fn sizes_read_back() {
        for bytes in [0, 1, 1000, 1024, 65_536, 921_600, 1 << 20, 1 << 30, u64::MAX] {
            assert_eq!(parse_size(&format_size(bytes)), Some(bytes));
        }
    }

    #[test]
    fn durations() {
        #[track_caller]
        fn check(text: &str, expect: Option<Duration>) {
            assert_eq!(parse_duration(text), expect, "{text}");
        }
        check("500ms", Some(Duration::from_millis(500)));
        check("10 s", Some(Duration::from_secs(10)));
        check("2min", Some(Duration::from_secs(120)));
        check("0", Some(Duration::ZERO));
        check("5", None);
        check("1h", None);
        check("999999999999min", None);
    }
}

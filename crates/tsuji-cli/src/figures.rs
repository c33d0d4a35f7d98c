//! Numbers as people read them.

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
            (micros(9.34), "9.3"),
            (micros(140.2), "140"),
        ];
        for (got, expect) in cases {
            assert_eq!(got, expect);
        }
    }
}

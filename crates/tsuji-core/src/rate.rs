use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How often at most samples of a topic leave: 0.001 to 1000 times a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rate {
    millihertz: u32,
}

impl Rate {
    const MILLIHERTZ_MAX: u32 = 1_000_000;

    /// From one sample to the next, at least.
    pub fn period(self) -> Duration {
        // What was not read by this crate may be anything.
        Duration::from_nanos(1_000_000_000_000 / u64::from(self.millihertz.max(1)))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.millihertz) / 1000.0)
    }
}

impl FromStr for Rate {
    type Err = InvalidRate;

    /// Reads it in Hz.
    fn from_str(text: &str) -> Result<Self, InvalidRate> {
        // No sign, no exponent, no infinity.
        if !text.bytes().all(|it| it.is_ascii_digit() || it == b'.') {
            return Err(InvalidRate);
        }
        let millihertz = text.parse::<f64>().map_err(|_| InvalidRate)? * 1000.0;
        let is_whole = (millihertz - millihertz.round()).abs() < 1e-6;
        if !is_whole || !(1.0..=f64::from(Self::MILLIHERTZ_MAX)).contains(&millihertz.round()) {
            return Err(InvalidRate);
        }
        Ok(Self { millihertz: millihertz.round() as u32 })
    }
}

/// A text that is no rate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InvalidRate;

impl fmt::Display for InvalidRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no rate; allowed: 0.001 to 1000, in Hz, with three digits behind the point at most",
        )
    }
}

impl Error for InvalidRate {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_written() {
        for (text, written, nanos) in [
            ("5", "5", 200_000_000),
            ("0.5", "0.5", 2_000_000_000),
            ("3.000", "3", 333_333_333),
            ("29.97", "29.97", 33_366_700),
            ("1000", "1000", 1_000_000),
            ("0.001", "0.001", 1_000_000_000_000),
        ] {
            let rate: Rate = text.parse().unwrap_or_else(|_| panic!("{text}"));
            assert_eq!(
                (rate.to_string().as_str(), rate.period()),
                (written, Duration::from_nanos(nanos))
            );
        }
        for text in [
            "", ".", "0", "0.0001", "1.0005", "1001", "-5", "+5", "5e1", "inf", "NaN", "5 Hz", " 5",
        ] {
            assert_eq!(text.parse::<Rate>().err(), Some(InvalidRate), "{text}");
        }
    }
}

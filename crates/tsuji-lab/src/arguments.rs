//! The words after `tsuji lab`.

use std::path::PathBuf;

/// What a user asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// How pictures are passed.
    Passing(Options),
    /// Everything else that has a bar.
    Limits(Options),
    /// How it is used.
    Help,
}

/// How much to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Where the figures go as JSON.
    pub(crate) json: Option<PathBuf>,
    /// Only these sizes, where a case has sizes; those of the case if empty.
    pub(crate) sizes: Vec<usize>,
    /// Only cases whose names begin so; all if empty.
    pub(crate) cases: Vec<String>,
    /// Blocks of each carrier.
    pub(crate) blocks: usize,
    /// Samples of each carrier in a case.
    pub(crate) count: u64,
    /// Least rest of the receiver between two samples.
    pub(crate) pause_us: u64,
    /// A look instead of a measurement.
    pub(crate) quick: bool,
}

/// From 64 bytes to 8 MB; 2,359,296 bytes are a picture of 1024 × 768 in three colours.
pub(crate) const SIZES: [usize; 7] = [64, 512, 4096, 65_536, 524_288, PICTURE_BYTES, 8 << 20];

/// The sizes by the road cyclonedds: one datagram, two, a picture, and as much as a receive buffer holds.
pub(crate) const CYCLONE_SIZES: [usize; 4] = [64, 65_536, PICTURE_BYTES, 4 << 20];

/// A picture of 1024 × 768, bgr8.
pub(crate) const PICTURE_BYTES: usize = 1024 * 768 * 3;

/// Sizes that a user may ask for.
const SIZE_MIN: usize = 8;
const SIZE_MAX: usize = 256 << 20;

const BLOCKS: usize = 20;
const COUNT: u64 = 1000;
/// Short, so that a virtual processor that has nothing to do is not yet given back to the host.
const PAUSE_US: u64 = 40;
const QUICK_BLOCKS: usize = 4;
const QUICK_COUNT: u64 = 80;

/// What `tsuji lab --help` says.
pub(crate) const HELP: &str = "\
Measures tsuji beside the raw carriers, in one run, interleaved. How: docs/lab.md.

Usage: tsuji lab passing [OPTIONS]
       tsuji lab limits [OPTIONS]

  passing  how long a picture takes from publish() to a sleeping subscriber: six patterns, and
           sizes from 64 B to 8 MB by pointer, by loan and by ordinary publish; the last two also
           by the road cyclonedds, beside Cyclone DDS alone
  limits   throughput, small samples, allocations, memory, threads, descriptors, start-up, idling,
           also beside plain ROS 2 nodes, and what one that listens costs

Options:
  --quick         a look of about a minute; too short for verdicts to mean much
  --json FILE     writes the figures to FILE
  --cases NAMES   only cases whose names begin with one of NAMES, with commas between
  --sizes BYTES   only these sizes, with commas between, such as 64,4KiB,2359296
  --blocks N      blocks of each carrier [default: 20, quick: 4]
  --pause N       µs that pass at least before the next sample, for the receiver to rest
                  [default: 40]
  --count N       samples of each carrier in a case [default: 1000, quick: 80]
  --help          this text

Ctrl-C ends it and keeps what is measured. Exit code: 0, or 1 when something was lost or could not
be measured, 2 for wrong usage, 130 after Ctrl-C. A bar that is not met is not an error.
";

/// Reads the words. An error says what is wrong and what is allowed.
pub(crate) fn parse(words: &[String]) -> Result<Asked, String> {
    let (command, rest) = match words.split_first() {
        None => return Ok(Asked::Help),
        Some((command, rest)) => (command.as_str(), rest),
    };
    let asked = match command {
        "passing" => Asked::Passing,
        "limits" => Asked::Limits,
        "help" | "--help" | "-h" => return Ok(Asked::Help),
        other => return Err(format!("`{other}`: allowed are passing and limits")),
    };
    let mut options = Options {
        json: None,
        sizes: vec![],
        cases: vec![],
        blocks: 0,
        count: 0,
        pause_us: PAUSE_US,
        quick: false,
    };
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        let (name, joined) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let mut value = || {
            let value = joined.clone().or_else(|| rest.next().cloned());
            value.ok_or_else(|| format!("{name} needs a value"))
        };
        match name {
            "--quick" => options.quick = true,
            "--help" | "-h" => return Ok(Asked::Help),
            "--json" => options.json = Some(value()?.into()),
            "--cases" => options.cases = value()?.split(',').map(str::to_owned).collect(),
            "--sizes" => options.sizes = value()?.split(',').map(size).collect::<Result<_, _>>()?,
            "--blocks" => options.blocks = positive(name, &value()?, 1000)? as usize,
            "--pause" => options.pause_us = positive(name, &value()?, 1_000_000)?,
            "--count" => options.count = positive(name, &value()?, 1_000_000)?,
            other => return Err(format!("`{other}` is no option; `tsuji lab --help` lists them")),
        }
    }
    if options.blocks == 0 {
        options.blocks = if options.quick { QUICK_BLOCKS } else { BLOCKS };
    }
    if options.count == 0 {
        options.count = if options.quick { QUICK_COUNT } else { COUNT };
    }
    Ok(asked(options))
}

fn positive(name: &str, text: &str, max: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|it| (1..=max).contains(it));
    number.ok_or_else(|| format!("{name} {text}: allowed is a number from 1 to {max}"))
}

fn size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => Some(1),
        "K" | "KiB" => Some(1 << 10),
        "M" | "MiB" => Some(1 << 20),
        _ => None,
    };
    let bytes = digits.parse::<usize>().ok().zip(unit).and_then(|(it, unit)| it.checked_mul(unit));
    bytes.filter(|it| (SIZE_MIN..=SIZE_MAX).contains(it)).ok_or_else(|| {
        format!("--sizes {text}: allowed are {SIZE_MIN} to {SIZE_MAX} bytes, also as KiB or MiB")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &str, expect: Result<&str, &str>) {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let found = parse(&words).map(|it| match it {
            Asked::Passing(it) => format!(
                "passing {:?} {:?} {:?} {} {}",
                it.json, it.sizes, it.cases, it.blocks, it.count
            ),
            Asked::Limits(it) => format!("limits {} {}", it.blocks, it.count),
            Asked::Help => "help".to_owned(),
        });
        match (&found, expect) {
            (Ok(found), Ok(expect)) => assert_eq!(found, expect, "{words:?}"),
            (Err(found), Err(part)) => assert!(found.contains(part), "{words:?}: {found}"),
            _ => panic!("{words:?}: {found:?}"),
        }
    }

    #[test]
    fn options_are_understood() {
        check("", Ok("help"));
        check("passing --help", Ok("help"));
        check("limits --quick", Ok("limits 4 80"));
        check(
            "passing --json a.json --sizes 64,4KiB,2MiB --cases loan,two --count 10 --blocks=3",
            Ok(r#"passing Some("a.json") [64, 4096, 2097152] ["loan", "two"] 3 10"#),
        );
    }

    #[test]
    fn a_wrong_word_is_named_with_what_is_allowed() {
        check("fast", Err("`fast`: allowed are passing and limits"));
        check("passing --fast", Err("`--fast` is no option"));
        check("passing --json", Err("--json needs a value"));
        check("passing --sizes 64,1GB", Err("--sizes 1GB: allowed are 8 to"));
        check("passing --sizes 4", Err("--sizes 4: allowed are 8 to"));
        check("passing --blocks 0", Err("--blocks 0: allowed is a number from 1 to 1000"));
        check("passing --count many", Err("--count many: allowed"));
    }
}

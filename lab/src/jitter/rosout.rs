//! The same from a log of ROS 1: `rosout.log`, in which both ends have written a line for each message.

use std::fs;
use std::path::Path;

use super::beat::Spread;
use super::{AUTHORS, AUTHORS_EARLY};
use crate::arguments::Options;
use crate::crew::Stop;
use crate::report::{At, Cell, Report, Screen, Series, Table};

/// Reads `log`, and reports what it says.
pub(super) fn analyse(
    log: &Path,
    options: &Options,
    screen: &mut Screen<'_>,
    report: &mut Report,
) -> Result<(), Stop> {
    // Whoever wrote it may have used any encoding; its times are digits in all of them.
    let bytes = fs::read(log).map_err(|error| format!("read {}: {error}", log.display()))?;
    let lines = Lines::read(&String::from_utf8_lossy(&bytes), &options.words);
    if lines.published.is_empty() || lines.received.is_empty() {
        let [published, received] = &options.words;
        let why = format!(
            "{}: {} lines say {published:?} and {} say {received:?}, of {} with a time; needed are some of each; other \
             words: --publish-word and --subscribe-word",
            log.display(),
            lines.published.len(),
            lines.received.len(),
            lines.timed,
        );
        return Err(Stop::Failed(why));
    }
    let found = Found::of(&lines);
    screen.line(&format!(
        "{}: {} lines, {} with a time; {} steps of the clock, {} pauses",
        log.display(),
        lines.all,
        lines.timed,
        found.steps,
        found.pauses,
    ));
    report.table(screen, found.table(&lines));
    let of = log.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for (what, values) in [("interval", found.intervals_us), ("transmit", found.transmit_us)] {
        let (case, of) = ("rosout".to_owned(), of.clone());
        report.series(Series { case, of, what, unit: "µs", at: At::Turn, starts: vec![values] });
    }
    Ok(())
}

/// What a log says of the two ends: times in nanoseconds since 1970, in the order of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Lines {
    published: Vec<i64>,
    received: Vec<i64>,
    all: usize,
    timed: usize,
}

impl Lines {
    fn read(text: &str, [publish, subscribe]: &[String; 2]) -> Self {
        let mut lines = Self::default();
        for line in text.lines() {
            lines.all += 1;
            let Some((at_ns, rest)) = timed(line) else { continue };
            lines.timed += 1;
            let message = message(rest);
            if message.contains(publish.as_str()) {
                lines.published.push(at_ns);
            } else if message.contains(subscribe.as_str()) {
                lines.received.push(at_ns);
            }
        }
        lines
    }
}

/// The time in front of a line, `seconds.nanoseconds`, and the rest.
fn timed(line: &str) -> Option<(i64, &str)> {
    let (time, rest) = line.trim_start().split_once(char::is_whitespace)?;
    let (seconds, fraction) = time.split_once('.')?;
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if !is_digits(seconds) || !is_digits(fraction) || 9 < fraction.len() {
        return None;
    }
    let seconds: i64 = seconds.parse().ok()?;
    let nanoseconds: i64 = format!("{fraction:0<9}").parse().ok()?;
    Some((seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)?, rest))
}

/// What was said, behind the level, the node, `[file:line(function)]` and `[topics: …]`: a node or a file may be
/// called after what it does. What has no such head is all said.
fn message(rest: &str) -> &str {
    let Some((level, behind)) = rest.trim_start().split_once(' ') else { return rest };
    if !["DEBUG", "INFO", "WARN", "ERROR", "FATAL"].contains(&level) {
        return rest;
    }
    let mut message = match behind.split_once(' ') {
        Some((node, behind)) if node.starts_with('/') => behind,
        _ => behind,
    };
    for _ in 0..2 {
        let Some((_, behind)) =
            message.trim_start().strip_prefix('[').and_then(|it| it.split_once("] "))
        else {
            break;
        };
        message = behind;
    }
    message
}

/// What follows from the lines.
#[derive(Clone, Debug, Default)]
struct Found {
    /// From each publish to the next, where neither the clock was set nor the publisher paused in between.
    intervals_us: Vec<f64>,
    /// From a publish to the receiving that belongs to it.
    transmit_us: Vec<f64>,
    /// How often the clock of the log went back.
    steps: usize,
    /// Intervals of more than ten times the usual one.
    pauses: usize,
    /// Published before the first that was matched.
    early: usize,
    /// As the script of the article has it: the surplus of published ones is dropped at the beginning, and the rest matched
    /// one by one. `None` where there is no surplus but a lack.
    as_in_article_us: Option<Vec<f64>>,
}

impl Found {
    fn of(lines: &Lines) -> Self {
        let Lines { published, received, .. } = lines;
        let forward: Vec<i64> = published
            .windows(2)
            .map(|it| it[1].saturating_sub(it[0]))
            .filter(|it| 0 < *it)
            .collect();
        // Who has published once or not at all has no usual interval.
        let usual_ns = median(forward.clone()).unwrap_or(UNKNOWN_INTERVAL_NS);
        let (usual, pauses): (Vec<i64>, Vec<i64>) =
            forward.into_iter().partition(|it| *it <= usual_ns.saturating_mul(10));
        let mut found = Self {
            intervals_us: usual.into_iter().map(micros).collect(),
            pauses: pauses.len(),
            steps: steps(published).max(steps(received)),
            ..Self::default()
        };
        let pairs = pairs(published, received, usual_ns.saturating_mul(10));
        found.early = pairs.first().map_or(published.len(), |(publish, _)| *publish);
        let took =
            |(publish, receive): &(usize, usize)| micros(received[*receive] - published[*publish]);
        found.transmit_us = pairs.iter().map(took).collect();
        found.as_in_article_us = published.len().checked_sub(received.len()).map(|surplus| {
            let kept = published[surplus..].iter().zip(received);
            kept.map(|(sent, came)| micros(came.saturating_sub(*sent))).collect()
        });
        found
    }

    fn table(&self, lines: &Lines) -> Table {
        let number = |it: usize| Cell::Number(it as f64);
        let spread = |values: &[f64], per: f64| {
            let Spread { mean, std, max } = Spread::of(values);
            [mean / per, std, max / per]
                .map(|it| if it.is_finite() { Cell::Number(it) } else { Cell::Nothing })
        };
        let interval = spread(&self.intervals_us, 1000.0);
        let row = |name: &str, early: Cell, unmatched: Cell, transmit: [Cell; 3]| {
            let mut row = vec![Cell::Text(name.to_owned()), number(lines.published.len())];
            row.extend([number(lines.received.len()), early, unmatched]);
            row.extend(interval.clone());
            row.extend(transmit);
            row
        };
        let unmatched = lines.received.len() - self.transmit_us.len();
        let matched = spread(&self.transmit_us, 1.0);
        let nothing = || [Cell::Nothing, Cell::Nothing, Cell::Nothing];
        let theirs = self.as_in_article_us.as_deref().map_or_else(nothing, |it| spread(it, 1.0));
        let [interval_ms, interval_std, off_ms, mean, std, max] = AUTHORS.map(Cell::Number);
        let article = vec![
            Cell::Text("the article".to_owned()),
            Cell::Nothing,
            Cell::Nothing,
            Cell::Number(AUTHORS_EARLY),
            Cell::Nothing,
            // The article tells how far the interval was off at most.
            interval_ms,
            interval_std,
            match off_ms {
                Cell::Number(off) => Cell::Number(10.0 + off),
                other => other,
            },
            mean,
            std,
            max,
        ];
        let surplus = lines.published.len().saturating_sub(lines.received.len());
        let columns = [
            "matched",
            "published",
            "received",
            "before the subscription",
            "received, not matched",
            "interval mean ms",
            "std µs",
            "max ms",
            "transmit mean µs",
            "std µs",
            "max µs",
        ];
        let rows = vec![
            row("by time", number(self.early), number(unmatched), matched),
            row("as in the article's script", number(surplus), number(0), theirs),
            article,
        ];
        let note = "By time: each line of the subscriber with the last line of the publisher before it, within ten intervals. \
                    A message that took longer than an interval is told too short by this; the log has no number of it.";
        Table::new("The beat that a log tells of", &columns, rows, note)
    }
}

fn micros(ns: i64) -> f64 {
    ns as f64 / 1000.0
}

fn median(mut values: Vec<i64>) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

const UNKNOWN_INTERVAL_NS: i64 = 100_000_000;

/// How often the clock went back.
fn steps(times: &[i64]) -> usize {
    times.windows(2).filter(|it| it[1] < it[0]).count()
}

/// The parts in which the clock did not go back, as ranges of places.
fn runs(times: &[i64]) -> Vec<std::ops::Range<usize>> {
    let breaks = (1..times.len()).filter(|at| times[*at] < times[at - 1]);
    let starts: Vec<usize> = [0].into_iter().chain(breaks).chain([times.len()]).collect();
    starts.windows(2).map(|it| it[0]..it[1]).filter(|it| !it.is_empty()).collect()
}

/// The places of those that belong together, in order: of each that came the last that was sent before it, within the
/// limit, where the clock did not go back in between. Where it went back for one end only, nothing is matched until
/// it has for the other.
fn pairs(published: &[i64], received: &[i64], limit_ns: i64) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (sent, came) in runs(published).into_iter().zip(runs(received)) {
        let mut next = sent.start;
        for place in came {
            let at = received[place];
            let behind = next + published[next..sent.end].partition_point(|it| *it <= at);
            let Some(last) = behind.checked_sub(1).filter(|it| next <= *it) else { continue };
            if at.saturating_sub(published[last]) <= limit_ns {
                pairs.push((last, place));
                next = behind;
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\n\n1571234567.000000001  Node Startup\n\
        1571234567.100000000 INFO /test_publisher [/src/publisher.cpp:12(main)] [topics: /rosout, /chatter] publish: Test msg\n\
        1571234567.110000000 INFO /test_publisher [/src/publisher.cpp:12(main)] [topics: /rosout, /chatter] publish: Test msg\n\
        1571234567.110300000 INFO /test_subscriber [/src/subscriber.cpp:6(chatterCallback)] [topics: /rosout] subscribe: Test msg\n\
        何かのログ publish\n\
        1571234567.115000000 WARN /test_publisher [/src/publisher.cpp:20(main)] [topics: /rosout] something else\n\
        1571234567.1202 INFO /test_publisher [/src/publisher.cpp:12(main)] [topics: /rosout, /chatter] publish: Test msg\n\
        1571234567.120400000 INFO /test_subscriber [/src/subscriber.cpp:6(chatterCallback)] [topics: /rosout] subscribe: Test msg\n";

    fn words() -> [String; 2] {
        ["publish", "subscribe"].map(str::to_owned)
    }

    #[test]
    fn a_log_is_read_by_what_was_said_and_not_by_whom() {
        let lines = Lines::read(LOG, &words());
        assert_eq!((lines.all, lines.timed), (10, 7));
        let base = 1_571_234_567_000_000_000;
        assert_eq!(lines.published, [100_000_000, 110_000_000, 120_200_000].map(|it| base + it));
        let found = Found::of(&lines);
        assert_eq!(found.early, 1);
        assert_eq!(found.transmit_us, [300.0, 200.0]);
        assert_eq!(found.intervals_us, [10_000.0, 10_200.0]);
        assert_eq!(found.as_in_article_us, Some(vec![300.0, 200.0]));
    }

    #[test]
    fn what_the_screen_showed_is_read_too() {
        let lines = Lines::read(
            "1571234567.5 publish: Test msg\n1571234567.6 subscribe: Test msg",
            &words(),
        );
        assert_eq!((lines.published.len(), lines.received.len()), (1, 1));
    }

    #[test]
    fn a_single_message_is_matched_too() {
        let text = "1.5 INFO /a publish: x\n1.5004 INFO /b subscribe: x\n";
        assert_eq!(Found::of(&Lines::read(text, &words())).transmit_us, [400.0]);
    }

    /// Where these were published and received, in ms, what is matched with what.
    fn check(published: &[i64], received: &[i64], expected: &[(usize, usize)]) {
        assert_eq!(pairs(published, received, 100), expected, "{published:?} {received:?}");
    }

    #[test]
    fn lost_lines_and_set_clocks_cost_only_what_they_touch() {
        check(&[0, 10, 20, 30], &[11, 31], &[(1, 0), (3, 1)]);
        // A line of the publisher is missing.
        check(&[0, 20], &[1, 11, 21], &[(0, 0), (1, 2)]);
        // The clock goes back for both.
        check(&[0, 10, 5, 15], &[1, 11, 6, 16], &[(0, 0), (1, 1), (2, 2), (3, 3)]);
        check(&[0, 1000], &[500], &[]);
        check(&[], &[1], &[]);
        check(&[50], &[1], &[]);
    }

    #[test]
    fn times_that_are_none_are_left_out() {
        for line in [
            "",
            "publish",
            "1.2",
            "1.2345678901 publish",
            "x.5 publish",
            "-1.5 publish",
            ". publish",
            "99999999999999999999.0 publish",
        ] {
            assert_eq!(timed(line), None, "{line}");
        }
        assert_eq!(timed("1.5 publish"), Some((1_500_000_000, "publish")));
    }

    #[test]
    fn a_pause_is_counted_and_no_interval() {
        let published: Vec<i64> =
            (0..20).map(|it| it * 10_000_000).chain([5_000_000_000]).collect();
        let lines = Lines { received: vec![1], published, ..Lines::default() };
        let found = Found::of(&lines);
        assert_eq!((found.pauses, found.intervals_us.len()), (1, 19));
    }

    #[test]
    fn whatever_the_times_are_nothing_is_matched_twice_or_backwards() {
        // A linear congruential generator; the numbers of Numerical Recipes.
        let mut state = 1_u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            i64::from((state >> 8) % below)
        };
        for _ in 0..2000 {
            let mut times =
                |most: u32| -> Vec<i64> { (0..random(most)).map(|_| random(300)).collect() };
            let (published, received) = (times(30), times(30));
            let pairs = pairs(&published, &received, 100);
            assert!(pairs.windows(2).all(|it| it[0].0 < it[1].0 && it[0].1 < it[1].1), "{pairs:?}");
            for (sent, came) in pairs {
                assert!((0..=100).contains(&(received[came] - published[sent])));
            }
            let lines = Lines { published, received, ..Lines::default() };
            let _ = Found::of(&lines).table(&lines).title;
        }
    }
}

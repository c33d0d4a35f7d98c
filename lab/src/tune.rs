//! Which transport between processes is the fastest on this machine, as a policy file.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::arguments::Options;
use crate::budgets::Run;
use crate::crew::Stop;
use crate::machine;
use crate::matrix::{Cell, Matrix};

/// Below and above the line of 64 KiB.
const SMALL: [usize; 3] = [256, 4096, 32_768];
const LARGE: [usize; 3] = [131_072, 1 << 20, 4 << 20];

/// What is not faster by so much is as fast, and the order of the built-in policy stays.
const FASTER: f64 = 0.95;

/// What keeps the policy from being written, before minutes are spent on it.
pub(crate) fn is_in_the_way(options: &Options) -> Option<String> {
    let path = &*options.output;
    let is_there = path.exists() && !options.force;
    let path = path.display();
    is_there.then(|| {
        format!("{path} is there already; allowed: --force, or --output with another name")
    })
}

/// Measures what decides, and writes the policy that follows from it.
pub(crate) fn run(run: &mut Run<'_, '_>) -> Result<(), Stop> {
    let path = &*run.options.output;
    let text = tuned(run)?;
    write(path, &text, run.options.force)
        .map_err(|error| Stop::Failed(format!("write {}: {error}", path.display())))?;
    let path = path.display();
    run.screen.line(&format!(
        "{path} is written. TSUJI_POLICY={path} puts it in force; `tsuji policy explain` cites it."
    ));
    Ok(())
}

/// Measures what decides, and answers the policy that follows from it.
pub(crate) fn tuned(run: &mut Run<'_, '_>) -> Result<String, Stop> {
    let mut matrix = Matrix::of_transports(&[SMALL, LARGE].concat());
    matrix.measure(run)?;
    let classes = classes(&matrix.cells);
    if classes.is_empty() {
        return Err(Stop::Failed("nothing was measured, so no policy follows from it".to_owned()));
    }
    classes.iter().for_each(|it| run.screen.line(&it.name()));
    Ok(policy(&machine::line(&machine::describe()), &classes))
}

fn write(path: &Path, text: &str, force: bool) -> io::Result<()> {
    let mut file = if force { File::create(path)? } else { File::create_new(path)? };
    file.write_all(text.as_bytes())
}

/// Flows of one kind, and what each transport takes for them.
#[derive(Clone, Debug, PartialEq)]
struct Class {
    size: &'static str,
    is_reliable: bool,
    /// The fastest first; µs.
    order: Vec<(&'static str, f64)>,
}

impl Class {
    fn reliability(&self) -> &'static str {
        if self.is_reliable { "reliable" } else { "best_effort" }
    }

    /// It cites the figures, so that whoever asks why is told them.
    fn name(&self) -> String {
        let figures = self.order.iter().map(|(name, us)| format!("{name} {us:.1}"));
        let figures = figures.collect::<Vec<_>>().join(", ");
        format!("tuned, {}, {}: {figures} µs", self.size, self.reliability())
    }
}

/// Those of which something is known.
fn classes(cells: &[Cell]) -> Vec<Class> {
    let kinds = [("small", &SMALL), ("large", &LARGE)];
    let kinds = kinds.into_iter().flat_map(|kind| [true, false].map(|reliable| (kind, reliable)));
    let classes = kinds.map(|((size, sizes), is_reliable)| {
        let is_meant = |it: &&Cell| it.is_reliable == is_reliable && sizes.contains(&it.size_bytes);
        let cells: Vec<&Cell> = cells.iter().filter(is_meant).collect();
        Class { size, is_reliable, order: order(&cells, sizes.len()) }
    });
    classes.filter(|it| !it.order.is_empty()).collect()
}

/// The transports that brought samples of each size, by the geometric mean of their medians. One that
/// lost more than it may comes last.
fn order(cells: &[&Cell], sizes: usize) -> Vec<(&'static str, f64)> {
    let mut order: Vec<(&'static str, f64, bool)> = Vec::new();
    for cell in cells {
        let Some(name) = cell.of_tsuji.filter(|it| !order.iter().any(|(seen, ..)| seen == it))
        else {
            continue;
        };
        let own = || cells.iter().filter(|it| it.of_tsuji == Some(name));
        let medians: Vec<f64> = own().map(|it| it.latency_us[1]).collect();
        if medians.len() < sizes || !medians.iter().all(|it| it.is_finite() && 0.0 < *it) {
            continue;
        }
        let sum: f64 = medians.iter().map(|it| it.ln()).sum();
        let score = (sum / medians.len() as f64).exp();
        let loses = own().any(|it| it.lost_max() < it.lost);
        // They come in the order of the built-in policy.
        let is_before = |before: &(&str, f64, bool)| match (loses, before.2) {
            (false, true) => true,
            (true, false) => false,
            _ => score < before.1 * FASTER,
        };
        let mut at = order.len();
        while 0 < at && is_before(&order[at - 1]) {
            at -= 1;
        }
        order.insert(at, (name, score, loses));
    }
    order.into_iter().map(|(name, score, _)| (name, score)).collect()
}

fn policy(machine: &str, classes: &[Class]) -> String {
    let machine = machine.replace("--", "- -");
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!--\n  Written by `tsuji tune` on {machine}.\n\n  \
         Medians in microseconds from publish to a sleeping subscriber of another process on this host,\n  \
         as the geometric mean of {SMALL:?} bytes (small) and {LARGE:?} bytes\n  (large). What is not \
         named here goes as the built-in policy says.\n-->\n<tsuji>\n  <size line=\"64KiB\"/>\n"
    );
    for class in classes {
        let used: Vec<&str> = class.order.iter().map(|(name, _)| *name).collect();
        let _ = writeln!(
            text,
            "  <rule name=\"{}\"\n        scope=\"local\" peer=\"tsuji\" size=\"{}\" reliability=\"{}\" \
             use=\"{}\"/>",
            class.name(),
            class.size,
            class.reliability(),
            used.join(" ")
        );
    }
    text + "</tsuji>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(is_reliable: bool, sizes: &[usize], medians: &[(&'static str, f64)]) -> Vec<Cell> {
        let each = |(name, median): &(&'static str, f64)| {
            sizes.iter().map(|size| Cell::of_median(*size, is_reliable, name, *median)).collect()
        };
        medians.iter().flat_map(|it| -> Vec<Cell> { each(it) }).collect()
    }

    #[track_caller]
    fn check(medians: &[(&'static str, f64)], expect: &[&str]) {
        let cells = cells(true, &SMALL, medians);
        let found = classes(&cells);
        let names: Vec<_> = found[0].order.iter().map(|it| it.0).collect();
        assert_eq!((names.as_slice(), found.len()), (expect, 1));
    }

    #[test]
    fn the_fastest_comes_first_unless_it_is_hardly_faster() {
        check(
            &[("shm", 10.0), ("cyclonedds", 20.0), ("fastdds", 30.0)],
            &["shm", "cyclonedds", "fastdds"],
        );
        check(
            &[("shm", 30.0), ("cyclonedds", 20.0), ("fastdds", 10.0)],
            &["fastdds", "cyclonedds", "shm"],
        );
        check(&[("shm", 10.0), ("cyclonedds", 9.9)], &["shm", "cyclonedds"]);
    }

    #[test]
    fn what_loses_comes_last_and_what_lacks_a_size_not_at_all() {
        let mut cells = cells(true, &LARGE, &[("shm", 1.0), ("cyclonedds", 20.0)]);
        cells[1].lost = 1;
        cells.push(Cell::of_median(LARGE[0], true, "fastdds", 0.1));
        let names: Vec<_> = classes(&cells)[0].order.iter().map(|it| it.0).collect();
        assert_eq!(names, ["cyclonedds", "shm"]);
        assert_eq!(classes(&[]), []);
    }

    #[test]
    fn the_policy_is_one_and_cites_its_figures() {
        let mut all = cells(true, &SMALL, &[("shm", 10.0), ("cyclonedds", 20.0)]);
        all.extend(cells(false, &LARGE, &[("cyclonedds", 200.0)]));
        let text = policy("a machine -- with dashes", &classes(&all));
        let policy = tsuji_policy::load("tuned", text.as_bytes(), tsuji::KNOWN_TRANSPORTS).unwrap();
        let rules = &policy.parts().rules;
        let name = "tuned, small, reliable: shm 10.0, cyclonedds 20.0 µs";
        assert_eq!(rules[0].name.as_deref(), Some(name));
        assert_eq!(rules[1].transports[0].as_str(), "cyclonedds");
    }
}

//! What reports answer, in as few words as are read in ten seconds: of each experiment the question, the figure that decides and
//! the verdict; of all together how many bars are met, and what is not on the machine.
//!
//! This decides what is said, for the page and for the terminal, and writes no markup.

use serde_json::Value;

use super::figures::Group;
use super::{Document, list, shown, text};
use crate::machine;

/// What an experiment asks, and where its answer is looked for first.
struct Question {
    experiment: &'static str,
    asks: &'static str,
    /// How the figure begins that answers it where every bar is met, the first of these that was measured.
    figures: &'static [&'static str],
    /// How the names of the group and of the plot begin that tell most, the first of these that there is.
    plots: &'static [(&'static str, &'static str)],
}

const QUESTIONS: [Question; 9] = [
    Question {
        experiment: "latency",
        asks: "How long does a picture take from publish() to a sleeping subscriber?",
        figures: &["two_nodes_pointer", "two_nodes", "loan", "publish"],
        plots: &[("two_nodes", QUANTILES), ("", QUANTILES)],
    },
    Question {
        experiment: "jitter",
        asks: "How even is a beat of short texts, and how long does each take?",
        figures: &["jitter-shm, transmit", "jitter"],
        plots: &[("jitter", "transmit"), ("", "transmit")],
    },
    Question {
        experiment: "camera",
        asks: "How many pictures of a camera come, and how late?",
        figures: &["raw-shm, to the callback", "raw"],
        plots: &[("raw", "to the callback"), ("", "to the callback")],
    },
    Question {
        experiment: "bridge",
        asks: "How fast is tsuji bridge for web clients?",
        figures: &["in"],
        plots: &[(BARS, "")],
    },
    Question {
        experiment: "budgets",
        asks: "Does tsuji keep its budgets of memory, threads, start-up and time?",
        figures: &["throughput", "footprint-shm-1 RSS"],
        plots: &[(BARS, "")],
    },
    Question {
        experiment: "handover",
        asks: "What happens to samples while the transport of their flow changes?",
        figures: &["processes-64 p99", "processes"],
        plots: &[(HANDOVERS, ""), (BARS, "")],
    },
    Question {
        experiment: "matrix",
        asks: "How fast is each transport at every size and reliability?",
        figures: &[],
        plots: &[("reliable", "median latency over size")],
    },
    Question {
        experiment: "tune",
        asks: "Which transports are the fastest on this machine?",
        figures: &[],
        plots: &[("reliable", "median latency over size")],
    },
    Question {
        experiment: super::COMPARE,
        asks: "Do two runs of one experiment agree?",
        figures: &[],
        plots: &[],
    },
];

/// The group of all figures that have a bar.
pub(super) const BARS: &str = "Bars";
/// The group of the samples around handovers.
pub(super) const HANDOVERS: &str = "Handovers";
/// How the plot of medians and 99th percentiles begins, of a series called `latency`.
const QUANTILES: &str = "latency, median and 99th percentile";

/// All that a page or a run begins with.
pub(super) struct Summary<'a> {
    pub(super) answers: Vec<Answer<'a>>,
    /// What is not on the machine, each once.
    pub(super) absent: Vec<Absent<'a>>,
}

/// What one experiment says.
pub(super) struct Answer<'a> {
    pub(super) experiment: &'a str,
    /// The question; nothing of an experiment that this version does not know.
    pub(super) asks: &'static str,
    pub(super) verdict: Verdict,
    /// The one that the verdict is about.
    pub(super) figure: Option<Headline<'a>>,
    pub(super) counts: Counts,
    /// Samples lost in rows.
    pub(super) lost: u64,
    /// What could not be measured.
    pub(super) skipped: usize,
    /// Why the first of that was not.
    why: Option<&'a str>,
}

/// What is said of all bars of an experiment together: the worst that is said of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Met,
    NotMet,
    Inconclusive,
    NoBar,
    NotMeasured,
}

impl Verdict {
    /// Those of a bar.
    pub(super) const OF_BARS: [Self; 3] = [Self::Met, Self::NotMet, Self::Inconclusive];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet => "not met",
            Self::Inconclusive => "inconclusive",
            Self::NoBar => "no bar",
            Self::NotMeasured => "not measured",
        }
    }
}

/// How many bars got which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts([usize; 3]);

impl Counts {
    fn of(report: &Value) -> Self {
        Self(Verdict::OF_BARS.map(|verdict| {
            judged(report).filter(|it| text(it, "verdict") == verdict.word()).count()
        }))
    }

    pub(super) fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let add = |sum: [usize; 3], it: &Self| [0, 1, 2].map(|at| sum[at] + it.0[at]);
        Self(all.fold([0; 3], add))
    }

    /// Each verdict with its number.
    pub(super) fn each(self) -> impl Iterator<Item = (Verdict, usize)> {
        Verdict::OF_BARS.into_iter().zip(self.0)
    }

    /// Whether there are bars.
    pub(super) fn has_any(self) -> bool {
        self.0 != [0; 3]
    }

    fn worst(self) -> Option<Verdict> {
        let has = |verdict: &Verdict| self.each().any(|(it, count)| it == *verdict && count != 0);
        [Verdict::NotMet, Verdict::Inconclusive, Verdict::Met].into_iter().find(has)
    }

    /// Such as `17 of 18 bars met`.
    pub(super) fn tally(self) -> String {
        match self.0.iter().sum() {
            0 => "no bars".to_owned(),
            all => format!("{} of {all} bars met", self.0[0]),
        }
    }
}

/// A figure with its unit, its interval and its bar, as they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Headline<'a> {
    pub(super) what: String,
    pub(super) of: &'a str,
    /// With its unit.
    pub(super) figure: String,
    /// Nothing where it is what it is.
    pub(super) interval: Option<String>,
    /// With its unit.
    pub(super) bar: Option<String>,
}

/// What is not on the machine.
pub(super) struct Absent<'a> {
    /// A peer by its name, anything else as the reports call it.
    pub(super) name: &'a str,
    pub(super) is_peer: bool,
    pub(super) why: &'a str,
}

impl<'a> Summary<'a> {
    /// That of all `documents`.
    pub(super) fn of(documents: &'a [Document]) -> Self {
        let answers = documents.iter().map(|it| Answer::of(it.experiment(), &it.report)).collect();
        let mut absent: Vec<Absent<'_>> = Vec::new();
        for told in documents.iter().flat_map(|it| list(&it.report, "absent")) {
            let (what, why) = (text(told, "what"), text(told, "why"));
            let peer = peer(what, why);
            let name = peer.unwrap_or(what);
            let is_told = |it: &Absent<'_>| it.name == name || (peer.is_none() && it.why == why);
            if !absent.iter().any(is_told) {
                absent.push(Absent { name, is_peer: peer.is_some(), why });
            }
        }
        Self { answers, absent }
    }

    /// What is not here, in one line; nothing where all is.
    pub(super) fn absent(&self) -> Option<String> {
        let (peers, others): (Vec<_>, Vec<_>) = self.absent.iter().partition(|it| it.is_peer);
        let mut names: Vec<_> = peers.iter().map(|it| it.name.to_owned()).collect();
        match others.len() {
            0 => (),
            1 if names.is_empty() => names.push(others[0].name.to_owned()),
            count if names.is_empty() => names.push(format!("{count} that were asked for")),
            count => names.push(format!("{count} more")),
        }
        (!names.is_empty()).then(|| format!("Not on this machine: {}.", names.join(", ")))
    }

    /// How many bars got which verdict, what was lost, and what was not measured.
    pub(super) fn totals(&self, lost: u64) -> String {
        let counts = Counts::sum(self.answers.iter().map(|it| &it.counts));
        let counts: Vec<_> = counts.each().map(|(it, n)| format!("{n} {}", it.word())).collect();
        let skipped: usize = self.answers.iter().map(|it| it.skipped).sum();
        let skipped =
            if skipped == 0 { String::new() } else { format!("; not measured: {skipped}") };
        format!("Bars: {}; samples lost: {lost}{skipped}.", counts.join(", "))
    }

    /// Samples lost in rows.
    pub(super) fn lost(&self) -> u64 {
        self.answers.iter().map(|it| it.lost).sum()
    }

    /// All of it for a terminal of 80 columns. Where more was `lost` than stands in rows, that many.
    pub(super) fn lines(&self, lost: u64) -> Vec<String> {
        let mut lines = Vec::new();
        // What stands below a verdict begins where that does.
        let below = " ".repeat(INDENT);
        for it in &self.answers {
            let figure = it.figure.as_ref();
            let told = match figure {
                Some(figure) => {
                    let parts = [Some(figure.told()), figure.bar.clone()];
                    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
                }
                None => it.why.unwrap_or_default().to_owned(),
            };
            let told = told.trim_end();
            let verdict = format!("{:10} {:12}", it.experiment, it.verdict.word());
            lines.extend(wrapped(told, &format!("{verdict}  ")));
            lines.push(format!("{below}{}", it.asks));
            if let Some(figure) = figure {
                let tally = it.counts.has_any().then(|| format!("; {}", it.counts.tally()));
                let told = format!("{}{}", figure.named(), tally.unwrap_or_default());
                lines.extend(wrapped(&told, &below));
            }
        }
        lines.extend(wrapped(&self.totals(lost.max(self.lost())), ""));
        lines.extend(self.absent().iter().flat_map(|it| wrapped(it, "")));
        lines
    }
}

const COLUMNS: usize = 80;
/// Where verdicts begin.
const INDENT: usize = 11;

/// `text` behind `before`, in lines of at most 80 columns unless a word is longer, the further ones as far in.
fn wrapped(text: &str, before: &str) -> Vec<String> {
    let width = before.chars().count();
    let mut lines = vec![before.to_owned()];
    for (at, word) in text.split(' ').enumerate() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if at != 0 && line.chars().count() + 1 + word.chars().count() <= COLUMNS {
            line.extend([" ", word]);
        } else if at == 0 {
            line.push_str(word);
        } else {
            lines.push(format!("{:width$}{word}", ""));
        }
    }
    lines.iter().map(|it| it.trim_end().to_owned()).collect()
}

impl<'a> Answer<'a> {
    fn of(experiment: &'a str, report: &'a Value) -> Self {
        let question = question(experiment);
        let counts = Counts::of(report);
        let figure = question.map_or(&[][..], |it| it.figures);
        let figure = deciding(report, counts.worst(), figure);
        let is_empty = figure.is_none()
            && ["rows", "matrix", "tables"].iter().all(|it| list(report, it).is_empty());
        let verdict = match counts.worst() {
            Some(verdict) => verdict,
            None if is_empty => Verdict::NotMeasured,
            None => Verdict::NoBar,
        };
        Self {
            experiment,
            asks: question.map_or("", |it| it.asks),
            verdict,
            figure,
            counts,
            lost: list(report, "rows").iter().filter_map(|it| it["lost"].as_u64()).sum(),
            skipped: list(report, "skipped").len(),
            why: list(report, "skipped").first().map(|it| text(it, "why")),
        }
    }

    /// What it says, in one sentence.
    pub(super) fn sentence(&self) -> String {
        let Some(figure) = &self.figure else {
            return match self.verdict {
                Verdict::NotMeasured => "Nothing was measured.".to_owned(),
                _ => format!("Measured; {}.", self.counts.tally()),
            };
        };
        let of = if figure.of.is_empty() { String::new() } else { format!(" ({})", figure.of) };
        let told = format!("{}{of}: {}", figure.what, figure.told());
        match &figure.bar {
            Some(bar) => format!("{told}, with a bar of {bar}; {}.", self.counts.tally()),
            None => format!("{told}."),
        }
    }
}

impl Headline<'_> {
    /// The figure with its interval.
    pub(super) fn told(&self) -> String {
        let interval = self.interval.as_ref().map(|it| format!(" [{it}]"));
        format!("{}{}", self.figure, interval.unwrap_or_default())
    }

    /// What it is of.
    pub(super) fn named(&self) -> String {
        match self.of {
            "" => self.what.clone(),
            of => format!("{}, {of}", self.what),
        }
    }

    fn of_judged(it: &Value) -> Headline<'_> {
        let word = |field: &str| it[field].as_str().unwrap_or_default();
        let unit = word("unit");
        Headline {
            what: text(it, "what").to_owned(),
            // What stands behind the semicolon was measured besides.
            of: word("of").split("; ").next().unwrap_or_default(),
            figure: with_unit(&it["figure"].as_f64().map_or_else(|| "–".to_owned(), shown), unit),
            interval: interval(it),
            bar: bar_of(it),
        }
    }

    fn of_series(it: &Value) -> Option<Headline<'_>> {
        let median = &it["median"];
        Some(Headline {
            what: format!("{}, {} median", text(it, "case"), text(it, "what")),
            of: text(it, "of"),
            figure: with_unit(&shown(median["figure"].as_f64()?), text(it, "unit")),
            interval: interval(median),
            bar: None,
        })
    }
}

/// The figure with its unit, where it has one.
pub(super) fn with_unit(figure: &str, unit: &str) -> String {
    if unit.is_empty() { figure.to_owned() } else { format!("{figure} {unit}") }
}

/// A bar as it was set; one that was computed with as many digits as say something.
pub(super) fn bar_of(it: &Value) -> Option<String> {
    const LETTERS_MAX: usize = 6;
    let unit = it["unit"].as_str().unwrap_or_default();
    let told = |words: &str, bar: f64| {
        let plain = bar.to_string();
        let plain = if plain.len() <= LETTERS_MAX { plain } else { shown(bar) };
        format!("{words} {}", with_unit(&plain, unit))
    };
    let at_least = || it["at_least"].as_f64().map(|bar| told("at least", bar));
    it["at_most"].as_f64().map(|bar| told("at most", bar)).or_else(at_least)
}

/// From where to where a figure may be; nothing where it is what it is.
pub(super) fn interval(it: &Value) -> Option<String> {
    let (low, high) = (it["low"].as_f64()?, it["high"].as_f64()?);
    (low != high).then(|| format!("{} – {}", shown(low), shown(high)))
}

/// All figures of a report, with and without bars.
pub(super) fn judged(report: &Value) -> impl Iterator<Item = &Value> {
    list(report, "ratios").iter().chain(list(report, "figures"))
}

/// Which part of what the bar allows a figure takes, 1 where it just keeps to it; nothing without a bar, or with one of 0.
pub(super) fn share_of_bar(it: &Value, figure: f64) -> Option<f64> {
    let share = match (it["at_most"].as_f64(), it["at_least"].as_f64()) {
        (Some(bar), _) => figure / bar,
        (_, Some(bar)) => bar / figure,
        _ => return None,
    };
    share.is_finite().then_some(share)
}

/// The figure that the verdict is about: of the bars not met the one farthest off, else of those that are inconclusive. Where all
/// are met or there is none, the first of `preferred` that was measured.
fn deciding<'a>(
    report: &'a Value,
    worst: Option<Verdict>,
    preferred: &[&str],
) -> Option<Headline<'a>> {
    if let Some(worst @ (Verdict::NotMet | Verdict::Inconclusive)) = worst {
        // A bar of 0 that is not met is off by more than any other.
        let off = |it: &&Value| {
            it["figure"]
                .as_f64()
                .and_then(|figure| share_of_bar(it, figure))
                .unwrap_or(f64::INFINITY)
        };
        let these = judged(report).filter(|it| text(it, "verdict") == worst.word());
        return these.max_by(|a, b| off(a).total_cmp(&off(b))).map(Headline::of_judged);
    }
    let is_barred = |it: &&Value| worst.is_none() || text(it, "verdict") == "met";
    let all = judged(report).filter(is_barred).map(Headline::of_judged);
    let all: Vec<_> = match worst {
        Some(_) => all.collect(),
        None => all.chain(list(report, "series").iter().filter_map(Headline::of_series)).collect(),
    };
    let begins = |begin: &&str| all.iter().position(|it| it.what.starts_with(begin));
    let at = preferred.iter().find_map(begins).unwrap_or(0);
    all.into_iter().nth(at)
}

fn question(experiment: &str) -> Option<&'static Question> {
    QUESTIONS.iter().find(|it| it.experiment == experiment)
}

/// Which plot of `groups` tells most of an experiment: its group, and its place there.
pub(super) fn telling(experiment: &str, groups: &[Group]) -> Option<(usize, usize)> {
    let plots = question(experiment).map_or(&[][..], |it| it.plots);
    let find = |(group, title): &(&str, &str)| {
        groups.iter().enumerate().filter(|it| it.1.title.starts_with(group)).find_map(|it| {
            let figure = it.1.figures.iter().position(|it| it.title.starts_with(title))?;
            Some((it.0, figure))
        })
    };
    let first = groups.iter().position(|it| !it.figures.is_empty()).map(|it| (it, 0));
    plots.iter().find_map(find).or(first)
}

/// Peers by what reports call them, and by the library that the reason names.
const PEERS: [(&str, &str); 9] = [
    ("ros1", "ROS 1"),
    ("rclcpp", "rclcpp"),
    ("rosbridge_server", "rosbridge_server"),
    ("rosbridge_server of ROS 1", "rosbridge_server of ROS 1"),
    ("python3", "Python"),
    ("autobahn", "autobahn of Python"),
    ("allocations", "tsuji-lab-alloc"),
    ("transport_fastdds", "Fast DDS"),
    ("transport_zenoh", "Zenoh"),
];

fn peer(what: &str, why: &str) -> Option<&'static str> {
    let is_meant =
        |word: &str| what == word || (word.starts_with("transport_") && why.contains(word));
    PEERS.iter().find(|it| is_meant(it.0)).map(|it| it.1)
}

/// The machines of all documents in one line, if they are one.
pub(super) fn machine(documents: &[Document]) -> Option<String> {
    let mut all = documents.iter().map(|it| &it.report["machine"]).filter(|it| it.is_object());
    let first = all.next()?;
    let is_same = |it: &Value| {
        ["cpu", "cores", "kernel", "memory_bytes"].iter().all(|field| it[field] == first[field])
    };
    if !all.all(is_same) {
        return Some("Several machines, told with each experiment.".to_owned());
    }
    Some(machine::short(first))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(report: Value) -> Document {
        Document { name: String::new(), report }
    }

    /// A ratio of that verdict, which may be twice the other at most.
    fn ratio(what: &str, figure: f64, verdict: Option<&str>) -> Value {
        json!({ "what": what, "of": "tsuji:shm / raw:x", "figure": figure, "low": figure - 0.5, "high": figure + 0.5,
            "unit": "×", "at_most": verdict.map(|_| 2.0), "verdict": verdict })
    }

    /// What is said of `figures` of `latency`: the verdict, the figure it is about, and the tally.
    fn check(figures: &[Value], expect: (&str, &str, &str)) {
        let documents = [document(json!({ "experiment": "latency", "ratios": figures }))];
        let summary = Summary::of(&documents);
        let [answer] = &summary.answers[..] else { panic!("one answer") };
        let what = answer.figure.as_ref().map_or("", |it| &it.what);
        assert_eq!((answer.verdict.word(), what, &*answer.counts.tally()), expect);
    }

    #[test]
    fn the_verdict_of_an_experiment_is_the_worst_of_its_bars() {
        let met = ratio("loan-64 median", 1.0, Some("met"));
        let pointer = ratio("two_nodes_pointer median", 1.0, Some("met"));
        let open = ratio("loan-64 p99", 2.1, Some("inconclusive"));
        let unmet = [3.0, 9.0, 4.0].map(|it| ratio(&format!("publish {it}"), it, Some("not met")));
        check(std::slice::from_ref(&met), ("met", "loan-64 median", "1 of 1 bars met"));
        check(
            &[met.clone(), pointer.clone()],
            ("met", "two_nodes_pointer median", "2 of 2 bars met"),
        );
        check(&[met.clone(), open.clone()], ("inconclusive", "loan-64 p99", "1 of 2 bars met"));
        let all = [&[met, open][..], &unmet].concat();
        check(&all, ("not met", "publish 9", "1 of 5 bars met"));
        check(&[ratio("loan-64 median", 1.0, None)], ("no bar", "loan-64 median", "no bars"));
        check(&[], ("not measured", "", "no bars"));
    }

    #[test]
    fn a_sentence_has_the_figure_its_bar_and_how_many_are_met() {
        let all = [ratio("loan", 1.0, Some("met")), ratio("publish", 2.1, Some("inconclusive"))];
        let documents = [document(json!({ "experiment": "latency", "ratios": all }))];
        let expect = "publish (tsuji:shm / raw:x): 2.10 × [1.60 – 2.60], with a bar of at most 2 ×; 1 of 2 bars met.";
        assert_eq!(Summary::of(&documents).answers[0].sentence(), expect);
        let never = [Document::unmeasured("camera", "interrupted before it began")];
        assert_eq!(Summary::of(&never).answers[0].sentence(), "Nothing was measured.");
    }

    #[test]
    fn a_bar_of_nothing_that_is_broken_decides() {
        let lost = json!({ "what": "lost", "of": "", "figure": 3.0, "low": 3.0, "high": 3.0, "unit": "",
            "at_most": 0.0, "verdict": "not met" });
        let all = [ratio("publish", 99.0, Some("not met")), lost];
        check(&all, ("not met", "lost", "0 of 2 bars met"));
    }

    #[test]
    fn without_figures_a_median_answers() {
        let series = |case: &str, of: &str| {
            json!({ "case": case, "of": of, "what": "transmit", "unit": "µs",
                "median": { "figure": 35.2, "low": 33.0, "high": 38.0 } })
        };
        let report = json!({ "experiment": "jitter",
            "series": [series("jitter-inproc", "tsuji:inproc"), series("jitter-shm", "tsuji:shm")] });
        let documents = [document(report)];
        let summary = Summary::of(&documents);
        let expect = "jitter-shm, transmit median (tsuji:shm): 35.2 µs [33.0 – 38.0].";
        assert_eq!(summary.answers[0].sentence(), expect);
        assert_eq!(summary.answers[0].verdict, Verdict::NoBar);
    }

    #[test]
    fn an_absent_peer_is_named_once_for_all_experiments() {
        let plugin = |name: &str| format!("libtsuji_transport_{name}.so is not in /a:/b");
        let absent = |all: &[(&str, String)]| -> Value {
            all.iter().map(|(what, why)| json!({ "what": what, "why": why })).collect()
        };
        let nodes = || ("ros1", "not built: tsuji-lab-ros1".to_owned());
        let latency = [nodes(), ("fastdds-publish-64", plugin("fastdds"))];
        let camera = [
            ("raw-fastdds", plugin("fastdds")),
            ("raw-zenoh", plugin("zenoh")),
            ("inside-cyclonedds", "an engine is no transport inside one process".to_owned()),
            ("inside-fastdds", "an engine is no transport inside one process".to_owned()),
        ];
        let documents = [
            document(json!({ "experiment": "latency", "absent": absent(&latency) })),
            document(json!({ "experiment": "camera", "absent": absent(&camera) })),
            document(json!({ "experiment": "jitter", "absent": absent(&[nodes()]) })),
        ];
        let summary = Summary::of(&documents);
        let line = "Not on this machine: ROS 1, Fast DDS, Zenoh, 1 more.";
        assert_eq!(summary.absent().as_deref(), Some(line));
        let lines = summary.lines(0).concat();
        assert_eq!((lines.matches("ROS 1").count(), lines.matches("Fast DDS").count()), (1, 1));
        assert_eq!(Summary::of(&[]).absent(), None);
    }

    #[test]
    fn a_terminal_of_80_columns_shows_it_whole() {
        let all = [
            ratio("two_nodes_pointer median", 1.02, Some("met")),
            ratio("loan", 7.5, Some("not met")),
        ];
        let skipped = [json!({ "what": "loan-64", "why": "/dev/shm is full" })];
        let rows = [json!({ "lost": 2 })];
        let documents = [
            document(
                json!({ "experiment": "latency", "ratios": all, "skipped": skipped, "rows": rows }),
            ),
            Document::unmeasured("handover", "interrupted before it began"),
        ];
        let lines = Summary::of(&documents).lines(0);
        let expect = [
            "latency    not met       7.50 × [7.00 – 8.00], at most 2 ×",
            "           How long does a picture take from publish() to a sleeping subscriber?",
            "           loan, tsuji:shm / raw:x; 1 of 2 bars met",
            "handover   not measured  interrupted before it began",
            "           What happens to samples while the transport of their flow changes?",
            "Bars: 1 met, 1 not met, 0 inconclusive; samples lost: 2; not measured: 2.",
        ];
        assert_eq!(lines, expect);
        // What stands in no row is counted by the run alone.
        assert!(Summary::of(&documents).lines(5)[5].contains("samples lost: 5"));
        let long = QUESTIONS.iter().map(|it| INDENT + it.asks.len()).max();
        assert!(long <= Some(COLUMNS), "{long:?}");
        assert_eq!(
            wrapped("a bb", &"-".repeat(79)),
            [format!("{}a", "-".repeat(79)), format!("{:79}bb", "")]
        );
    }

    #[test]
    fn the_most_telling_plot_is_found_or_the_first() {
        let series = |case: &str| {
            json!({ "case": case, "of": "a", "what": "latency", "unit": "µs", "at_unit": "turn",
                "median": { "figure": 1.0, "low": 1.0, "high": 1.0 }, "values": [1, 2] })
        };
        let report = json!({ "series": [series("one_node"), series("two_nodes")] });
        let groups = super::super::figures::groups(&report, 10);
        assert_eq!(telling("latency", &groups), Some((1, 0)));
        assert_eq!(telling("unknown", &groups), Some((0, 0)));
        assert_eq!(telling("latency", &[]), None);
    }
}

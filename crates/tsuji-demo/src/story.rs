//! What came of the acts: which transports changed, and how late pictures were meanwhile.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tsuji::{RouteChange, RouteReport};

use crate::orders::Answer;
use crate::picture::FULL;
use crate::robot::{PICTURES, VIEWER};
use crate::tally::Ages;

/// A flow came to another transport, or a new flow to its first.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) topic: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) transport: RouteChange,
}

/// What came of one act.
#[derive(Debug, Default)]
pub(crate) struct Chapter {
    pub(crate) name: &'static str,
    /// What was done, and how long after the first picture.
    pub(crate) deeds: Vec<(Duration, &'static str)>,
    pub(crate) changes: Vec<Change>,
    /// How much longer than usual a picture took at most.
    pub(crate) extra_us: f64,
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) chapters: Vec<Chapter>,
    /// Changes before the first act.
    pub(crate) before: Vec<Change>,
    /// The last change that is known, by publisher and subscription.
    known: HashMap<(String, String), u32>,
    /// How old a picture is as a rule.
    usual_us: Option<f64>,
    /// How long pictures took by each transport, in microseconds: a median for each time that they went by it.
    latencies: BTreeMap<String, Vec<f64>>,
}

impl Story {
    /// Adds what is done in the act of this number.
    pub(crate) fn add_deed(
        &mut self,
        act: usize,
        name: &'static str,
        at: Duration,
        says: &'static str,
    ) {
        if self.chapters.len() <= act {
            self.chapters.push(Chapter { name, ..Chapter::default() });
        }
        self.chapters[act].deeds.push((at, says));
    }

    /// Adds what has changed since the last time, and answers it, oldest first. A change counts when it is over: when the
    /// subscription has all of the old transport, or there is another change.
    pub(crate) fn add_changes(&mut self, routes: &[RouteReport]) -> Vec<Change> {
        let mut new = Vec::new();
        for route in routes {
            let flow = (route.publisher.gid.clone(), route.subscription.gid.clone());
            let known = self.known.entry(flow).or_default();
            let last = route.changes.last().map_or(0, |it| it.epoch);
            let is_over = |it: &&RouteChange| it.is_settled || it.epoch < last;
            let seen = *known;
            for transport in route.changes.iter().filter(|it| seen < it.epoch).take_while(is_over) {
                *known = transport.epoch;
                new.push(Change {
                    topic: route.topic.clone(),
                    from: route.publisher.node.clone(),
                    to: route.subscription.node.clone(),
                    transport: transport.clone(),
                });
            }
        }
        // What the robot begins with is no change.
        new.retain(|it| it.transport.from.is_some() || !self.chapters.is_empty());
        new.sort_by_key(|it| it.transport.wall_ns);
        let known = self.chapters.last_mut().map_or(&mut self.before, |it| &mut it.changes);
        known.extend_from_slice(&new);
        new
    }

    /// Adds how old the viewer's pictures were in the period that is asked about, and how long pictures took by the transports that
    /// they had in it.
    pub(crate) fn add_answer(&mut self, answer: &Answer) {
        let period = &answer.question.period;
        for count in answer.counts.iter().filter(|it| it.topic == PICTURES && !it.is_sender) {
            if let Some(ages) = count.ages.filter(|_| count.node == VIEWER) {
                self.add_ages(period.chapter, ages);
            }
            let latencies = count.latencies.filter(|it| it.bytes == FULL.bytes());
            if let (Some(latencies), Some(by)) = (latencies, period.transports.get(&count.node)) {
                self.add_latency(by, latencies.median_us);
            }
        }
    }

    fn add_ages(&mut self, chapter: Option<usize>, ages: Ages) {
        let usual_us = *self.usual_us.get_or_insert(ages.median_us);
        if let Some(chapter) = chapter.and_then(|at| self.chapters.get_mut(at)) {
            chapter.extra_us = chapter.extra_us.max(ages.max_us - usual_us);
        }
    }

    fn add_latency(&mut self, transport: &str, median_us: f64) {
        self.latencies.entry(transport.to_owned()).or_default().push(median_us);
    }

    /// How long a picture takes by each transport that was taken, in microseconds: the median of the medians, fastest first.
    pub(crate) fn latencies(&self) -> Vec<(&str, f64)> {
        let median = |of: &Vec<f64>| {
            let mut sorted = of.clone();
            sorted.sort_by(f64::total_cmp);
            sorted.get(sorted.len() / 2).copied()
        };
        let all = self.latencies.iter();
        let mut medians: Vec<_> =
            all.filter_map(|(name, of)| Some((&**name, median(of)?))).collect();
        medians.sort_by(|one, other| one.1.total_cmp(&other.1));
        medians
    }

    /// All changes of a flow that had a transport before.
    pub(crate) fn changes_of(&self, topic: &str, from: &str, to: &str) -> usize {
        let is_it = |it: &&Change| {
            (&*it.topic, &*it.from, &*it.to) == (topic, from, to) && it.transport.from.is_some()
        };
        self.changes().filter(is_it).count()
    }

    pub(crate) fn changes(&self) -> impl Iterator<Item = &Change> {
        self.before.iter().chain(self.chapters.iter().flat_map(|it| &it.changes))
    }

    /// How often flows came from one transport to another.
    pub(crate) fn changes_made(&self) -> usize {
        self.changes().filter(|it| it.transport.from.is_some()).count()
    }

    /// How much longer than usual a picture took at most, in all acts.
    pub(crate) fn extra_us(&self) -> f64 {
        self.chapters.iter().map(|it| it.extra_us).fold(0.0, f64::max)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let change = |it: &Change| serde_json::json!({ "topic": it.topic, "from": it.from, "to": it.to, "change": it.transport });
        let changes = |them: &[Change]| them.iter().map(change).collect::<Vec<_>>();
        let deed = |(at, says): &(Duration, &str)| serde_json::json!({ "at_seconds": at.as_secs_f64(), "says": says });
        let chapter = |it: &Chapter| {
            serde_json::json!({
                "name": it.name,
                "deeds": it.deeds.iter().map(deed).collect::<Vec<_>>(),
                "changes": changes(&it.changes),
                "extra_latency_us": it.extra_us,
            })
        };
        serde_json::json!({
            "acts": self.chapters.iter().map(chapter).collect::<Vec<_>>(),
            "changes_before": changes(&self.before),
            "usual_latency_us": self.usual_us,
            "extra_latency_us": self.extra_us(),
            "picture_latency_us": self.latencies().into_iter().collect::<BTreeMap<_, _>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::{Period, Question};
    use crate::robot::DETECTOR;
    use crate::tally::{Count, Latencies};

    #[test]
    fn an_answer_that_comes_late_tells_of_its_own_time() {
        let mut story = Story::default();
        let add = |story: &mut Story, chapter, transport: Option<&str>, max_us| {
            let pictures = |node: &str, bytes| Count {
                topic: PICTURES.to_owned(),
                node: node.to_owned(),
                ages: Some(Ages { median_us: 1.0, max_us }),
                latencies: Some(Latencies { median_us: max_us, bytes }),
                ..Count::default()
            };
            // What comes in another size says nothing.
            let counts = vec![pictures(VIEWER, FULL.bytes()), pictures(DETECTOR, 1)];
            let by = |it: &str| [VIEWER, DETECTOR].map(|to| (to.to_owned(), it.to_owned()));
            let transports = transport.into_iter().flat_map(by).collect();
            let question = Question { number: 1, period: Period { chapter, transports } };
            story.add_answer(&Answer { question, counts });
        };
        add(&mut story, None, Some("shm"), 2.0);
        story.add_deed(0, "first", Duration::ZERO, "");
        story.add_deed(1, "second", Duration::ZERO, "");
        add(&mut story, Some(0), Some("cyclonedds"), 9.0);
        add(&mut story, Some(1), None, 5.0);
        let extra: Vec<_> = story.chapters.iter().map(|it| it.extra_us).collect();
        assert_eq!(extra, [8.0, 4.0]);
        assert_eq!(story.latencies(), [("shm", 2.0), ("cyclonedds", 9.0)]);
    }

    #[test]
    fn a_picture_takes_the_median_of_its_times_and_the_fastest_comes_first() {
        let mut story = Story::default();
        for (transport, took) in [("shm", 9.0), ("shm", 2.0), ("shm", 3.0), ("inproc", 1.0)] {
            story.add_latency(transport, took);
        }
        assert_eq!(story.latencies(), [("inproc", 1.0), ("shm", 3.0)]);
        assert_eq!(story.json()["picture_latency_us"]["shm"], 3.0);
    }
}

//! What is said at the end: each flow from end to end, and what came of the acts.

use tsuji::RouteReport;

use crate::guide::Tour;
use crate::robot::{FLOWS, FOREIGN};
use crate::story::Story;
use crate::tally::Count;

/// What is said at the end.
pub(crate) struct Summary {
    pub(crate) seconds: f64,
    pub(crate) flows: Vec<FlowSum>,
    pub(crate) story: Story,
    /// Where the robot was driven.
    pub(crate) tour: Tour,
    /// The names of acts that were not played, and why.
    pub(crate) left_out: Vec<(&'static str, String)>,
    pub(crate) troubles: Vec<String>,
}

/// One flow, from end to end.
pub(crate) struct FlowSum {
    pub(crate) topic: &'static str,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    /// `None` when that end did not tell.
    pub(crate) sent: Option<u64>,
    pub(crate) received: Option<u64>,
    /// Samples that were not what was sent, or could not be sent.
    pub(crate) wrong: u64,
    /// What was wrong with the first.
    pub(crate) trouble: Option<String>,
    pub(crate) route: Option<RouteReport>,
    /// How often it came to another transport.
    pub(crate) changes: usize,
}

impl Summary {
    pub(crate) fn is_good(&self) -> bool {
        self.troubles.is_empty() && self.flows.iter().all(FlowSum::is_good)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let flow = |it: &FlowSum| {
            serde_json::json!({
                "topic": it.topic,
                "from": it.from,
                "to": it.to,
                "sent": it.sent,
                "received": it.received,
                "lost": it.lost(),
                "doubled": it.doubled(),
                "wrong": it.wrong,
                "trouble": it.trouble,
                "changes": it.changes,
                "route": it.route,
            })
        };
        let flows: Vec<_> = self.flows.iter().map(flow).collect();
        let left_out =
            |(name, why): &(&str, String)| serde_json::json!({ "name": name, "why": why });
        let left_out: Vec<_> = self.left_out.iter().map(left_out).collect();
        serde_json::json!({
            "ok": self.is_good(),
            "seconds": self.seconds,
            "flows": flows,
            "story": self.story.json(),
            "tour": self.tour,
            "left_out": left_out,
            "troubles": self.troubles,
        })
    }
}

impl FlowSum {
    pub(crate) fn lost(&self) -> Option<u64> {
        Some(self.sent?.saturating_sub(self.received?))
    }

    pub(crate) fn doubled(&self) -> Option<u64> {
        Some(self.received?.saturating_sub(self.sent?))
    }

    pub(crate) fn is_good(&self) -> bool {
        self.sent.is_some() && self.sent == self.received && self.wrong == 0 && self.sent != Some(0)
    }
}

pub(crate) fn sum_up(
    counts: &[Count],
    routes: &[RouteReport],
    story: &Story,
    has_foreign: bool,
) -> Vec<FlowSum> {
    let count = |topic: &str, node: &str, is_sender: bool| {
        counts.iter().find(|it| (&*it.topic, &*it.node, it.is_sender) == (topic, node, is_sender))
    };
    let flow = |(topic, from, to): (&'static str, &'static str, &'static str)| {
        let (sender, receiver) = (count(topic, from, true), count(topic, to, false));
        let ends = [sender, receiver].into_iter().flatten();
        let is_route = |it: &&RouteReport| {
            (&*it.topic, &*it.publisher.node, &*it.subscription.node) == (topic, from, to)
        };
        FlowSum {
            topic,
            from,
            to,
            sent: sender.map(|it| it.samples),
            received: receiver.map(|it| it.samples),
            wrong: ends.clone().map(|it| it.wrong).sum(),
            trouble: ends.filter_map(|it| it.trouble.clone()).next(),
            route: routes.iter().find(is_route).cloned(),
            changes: story.changes_of(topic, from, to),
        }
    };
    FLOWS.into_iter().filter(|(_, _, to)| has_foreign || *to != FOREIGN).map(flow).collect()
}

//! How late samples are around a change of their transport, beside those of the transports in peace.

use std::collections::{BTreeMap, VecDeque};

use crate::budgets::Run;
use crate::statistics::{Bar, Interval, bootstrap, quantile_of};

/// One flow: who sends, and who receives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowId {
    publisher: String,
    subscription: String,
}

/// Blocks below which a ratio is shown and not judged.
const BLOCKS_MIN: usize = 5;

impl FlowId {
    pub(super) fn new(publisher: String, subscription: String) -> Self {
        Self { publisher, subscription }
    }
}

/// A flow has come to another transport. Times are of the monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) flow_id: FlowId,
    pub(super) from: String,
    pub(super) to: String,
    /// When the transport was set.
    pub(super) asked_ns: u64,
    /// The new transport carries what is sent from here on.
    pub(super) cut_ns: u64,
    /// The subscription has all of the old transport.
    pub(super) settled_ns: u64,
}

/// Collects the times of all samples, and sorts them.
#[derive(Debug)]
pub(super) struct Timing {
    /// From one sample of a publisher to the next.
    period_ns: u64,
    /// When the samples of each publisher were sent that may still arrive.
    sent: BTreeMap<String, VecDeque<(u64, u64)>>,
    flows: BTreeMap<FlowId, FlowTimes>,
    /// When nothing was changed, nor had been for a while, since the last block.
    peace: Vec<(u64, u64)>,
    blocks: Vec<Block>,
    block: Block,
    /// The blocks of earlier starts.
    earlier: Vec<Vec<Block>>,
}

#[derive(Debug, Default)]
struct FlowTimes {
    changes: VecDeque<Change>,
    /// When they were sent, and how long they took; in order.
    samples: VecDeque<(u64, f64)>,
    /// What carries after the changes that were looked at.
    transport: Option<String>,
    /// Until when samples were looked at.
    seen_ns: u64,
}

/// Latencies in µs of some changes after each other.
#[derive(Clone, Debug, Default, PartialEq)]
struct Block {
    /// From the last sample before a cut to the first few after it has settled.
    around: Vec<f64>,
    /// From when the transport was set to the last but one before the cut.
    opening: Vec<f64>,
    /// From there until the transport is set again.
    after: Vec<f64>,
    /// While nothing is changed nor has been for a while, by transport.
    steady: BTreeMap<String, Vec<f64>>,
}

impl Timing {
    pub(super) fn new(period_ns: u64) -> Self {
        let (blocks, block) = (Vec::new(), Block::default());
        let (sent, flows, peace) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self { period_ns, sent, flows, peace, blocks, block, earlier: Vec::new() }
    }

    /// What was so far is not to count.
    pub(super) fn forget(&mut self) {
        self.end_block();
        self.blocks.clear();
    }

    pub(super) fn changed(&mut self, change: Change) {
        let flow = self.flows.entry(change.flow_id.clone()).or_default();
        flow.changes.push_back(change);
    }

    /// What is sent then is not touched by a change.
    pub(super) fn peace(&mut self, from_ns: u64, to_ns: u64) {
        self.peace.push((from_ns, to_ns));
    }

    pub(super) fn sent(&mut self, publisher: &str, number: u64, at_ns: u64) {
        let sent = self.sent.entry(publisher.to_owned()).or_default();
        sent.push_back((number, at_ns));
        if SENT_KEPT < sent.len() {
            sent.pop_front();
        }
    }

    /// Of each flow in the order of their coming.
    pub(super) fn arrived(&mut self, flow_id: &FlowId, number: u64, at_ns: u64) {
        let Some(sent) = self.sent.get(&flow_id.publisher) else { return };
        let Ok(at) = sent.binary_search_by_key(&number, |(number, _)| *number) else { return };
        let sent_ns = sent[at].1;
        let latency_us = at_ns.saturating_sub(sent_ns) as f64 / 1e3;
        let flow = self.flows.entry(flow_id.clone()).or_default();
        flow.samples.push_back((sent_ns, latency_us));
    }

    /// Sorts what has come since the last block. To be called when all flows are at rest.
    pub(super) fn end_block(&mut self) {
        for flow in self.flows.values_mut() {
            flow.sort_into(&mut self.block, self.period_ns, &self.peace);
        }
        self.peace.clear();
        self.blocks.push(std::mem::take(&mut self.block));
    }

    /// Puts behind it what was seen of the next start.
    pub(super) fn append(&mut self, next: Self) {
        self.earlier.push(std::mem::replace(&mut self.blocks, next.blocks));
    }

    /// Says how late samples are. What is drawn for the intervals are whole starts; of a single one it is its blocks, if they are
    /// enough.
    pub(super) fn judge(&self, run: &mut Run<'_, '_>, what: &str) {
        let clusters: Vec<Vec<&Block>> = if self.earlier.is_empty() {
            self.blocks.iter().map(|it| vec![it]).collect()
        } else {
            self.earlier.iter().chain([&self.blocks]).map(|it| it.iter().collect()).collect()
        };
        let blocks: Vec<&Block> = clusters.concat();
        let mut transports: Vec<&String> = blocks.iter().flat_map(|it| it.steady.keys()).collect();
        transports.sort();
        transports.dedup();
        // A few blocks tell nothing of how far the figure may be off.
        let is_told = !self.earlier.is_empty() || BLOCKS_MIN <= blocks.len();
        let drawn = |statistic: &dyn Fn(&[usize]) -> f64| {
            let interval = bootstrap(clusters.len(), statistic);
            interval.map(|it| if is_told { it } else { Interval::exactly(it.middle) })
        };
        for (name, share) in [("median", 0.5), ("p99", 0.99)] {
            for transport in &transports {
                let steady =
                    drawn(&|drawn| over(&clusters, drawn, share, |it| it.steady_by(transport)));
                run.judge(format!("{what} in peace {name}"), &***transport, steady, "µs", None);
            }
            let around = drawn(&|drawn| over(&clusters, drawn, share, |it| &it.around));
            run.judge(format!("{what} around {name}"), "cut to settled", around, "µs", None);
            let opening = drawn(&|drawn| over(&clusters, drawn, share, |it| &it.opening));
            run.judge(format!("{what} before {name}"), "set to cut", opening, "µs", None);
            let after = drawn(&|drawn| over(&clusters, drawn, share, |it| &it.after));
            run.judge(format!("{what} after {name}"), "settled to set", after, "µs", None);
        }
        let most = blocks.iter().flat_map(|it| &it.around).copied().fold(0.0, f64::max);
        run.judge(format!("{what} around most"), "cut to settled", most, "µs", None);
        for (name, share, bar) in [("median", 0.5, 2.0), ("p99", 0.99, 5.0)] {
            let ratio = drawn(&|drawn| {
                let steady = transports
                    .iter()
                    .map(|transport| over(&clusters, drawn, share, |it| it.steady_by(transport)));
                let slower = steady.filter(|it| it.is_finite()).fold(0.0, f64::max);
                over(&clusters, drawn, share, |it| &it.around) / slower
            });
            let of = "around a handover / the slower transport in peace";
            let bar = is_told.then_some(Bar::AtMost(bar));
            run.judge(format!("{what} {name}"), of, ratio, "×", bar);
        }
    }
}

impl Block {
    fn steady_by(&self, transport: &str) -> &[f64] {
        self.steady.get(transport).map_or(&[], Vec::as_slice)
    }
}

/// The quantile over all samples of the clusters of blocks that were drawn.
fn over(
    clusters: &[Vec<&Block>],
    drawn: &[usize],
    share: f64,
    of: impl Fn(&Block) -> &[f64],
) -> f64 {
    let blocks = drawn.iter().flat_map(|at| &clusters[*at]);
    quantile_of(blocks.flat_map(|it| of(it).iter().copied()).collect(), share)
}

impl FlowTimes {
    fn sort_into(&mut self, block: &mut Block, period_ns: u64, peace: &[(u64, u64)]) {
        while let Some(change) = self.changes.pop_front() {
            let before = self.take_until(change.asked_ns.max(self.seen_ns));
            self.rest(block, before, peace);
            let mut before_cut = self.take_until(change.cut_ns);
            let last = before_cut.pop().map(|(_, us)| us);
            block.opening.extend(before_cut.into_iter().map(|(_, us)| us));
            block.around.extend(last);
            let end_ns = change.settled_ns.max(change.cut_ns) + SAMPLES_AFTER * period_ns;
            let next_ns = self.changes.front().map_or(u64::MAX, |it| it.asked_ns);
            let around = self.take_until(end_ns.min(next_ns));
            block.around.extend(around.into_iter().map(|(_, us)| us));
            self.seen_ns = end_ns;
            self.transport = Some(change.to);
        }
        let rest = self.take_until(u64::MAX);
        self.rest(block, rest, peace);
    }

    fn rest(&self, block: &mut Block, samples: Vec<(u64, f64)>, peace: &[(u64, u64)]) {
        let Some(transport) = &self.transport else { return };
        let steady = block.steady.entry(transport.clone()).or_default();
        for (sent_ns, us) in samples {
            let is_steady = peace.iter().any(|(from, to)| (*from..*to).contains(&sent_ns));
            if is_steady { steady.push(us) } else { block.after.push(us) }
        }
    }

    /// The samples that were sent before.
    fn take_until(&mut self, end_ns: u64) -> Vec<(u64, f64)> {
        let count = self.samples.partition_point(|(sent_ns, _)| *sent_ns < end_ns);
        self.samples.drain(..count).collect()
    }
}

/// Samples after a change has settled that still count as around it.
const SAMPLES_AFTER: u64 = 3;

/// Samples whose sending is remembered: more than can be on their way.
const SENT_KEPT: usize = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_around_a_change_are_told_from_those_in_peace() {
        let mut timing = Timing::new(10);
        let flow_id = FlowId::new("p".to_owned(), "s".to_owned());
        let change = |to: &str, from_ns: u64| Change {
            flow_id: flow_id.clone(),
            from: "?".to_owned(),
            to: to.to_owned(),
            asked_ns: from_ns,
            cut_ns: from_ns + 25,
            settled_ns: from_ns + 45,
        };
        timing.changed(change("a", 0));
        timing.changed(change("b", 200));
        for number in 0..40 {
            timing.sent("p", number, number * 10);
        }
        for number in 0..40 {
            timing.arrived(&flow_id, number, number * 10 + 1000 * (number + 1));
        }
        timing.peace(120, 200);
        timing.peace(330, 500);
        timing.end_block();
        let us = |numbers: std::ops::Range<u64>| numbers.map(|it| (it + 1) as f64).collect();
        let expect = Block {
            opening: [us(0..2), us(20..22)].concat(),
            around: [us(2..8), us(22..28)].concat(),
            after: [us(8..12), us(28..33)].concat(),
            steady: [("a".to_owned(), us(12..20)), ("b".to_owned(), us(33..40))].into(),
        };
        assert_eq!(timing.blocks, [expect]);
    }
}

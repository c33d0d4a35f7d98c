//! The words of changing a route, and the receiver's order across the change.
//!
//! Every sample of a publisher has a sequence number, and travels on the route of an [`Epoch`]. A
//! [`Cut`] says from which number on the next epoch's route carries. A [`Sequencer`] turns what
//! several routes bring into each sample once and in order. It moves numbers, not samples, and
//! reads no clock: whoever holds the samples decides how long is too long.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::fmt;

/// Counts the routes that a flow has had, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

/// From the sample `first` on, the route of `epoch` carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The new route.
    pub epoch: Epoch,
    /// The first sample that it owes.
    pub first: u64,
}

/// Delivers the samples of one publisher once and in order, whichever routes bring them.
///
/// A route keeps order: when it brings a sample, what it has not brought before it was lost on it.
/// While an older route still owes samples, what a newer one brings is held back.
#[derive(Clone, Debug)]
pub struct Sequencer {
    current: Epoch,
    next: Option<u64>,
    cuts: VecDeque<Cut>,
    held: BTreeMap<u64, Epoch>,
    held_max: usize,
    /// Routes up to this one bring nothing more.
    ended: Option<Epoch>,
    /// Nothing up to this sample is still to come: what is not held was lost.
    settled: Option<u64>,
    counters: SequencerCounters,
}

/// What to do with a sample that a route brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Deliver it.
    Deliver,
    /// Deliver it; so many before it were lost.
    Gap {
        /// How many.
        missing: u64,
    },
    /// Drop it: it was delivered, is held, or another route owes it.
    Duplicate,
    /// Keep it until [`Sequencer::poll_held`] names it.
    Hold,
    /// It ought to be held and no more may be. Leave it on its route and try again later, or call
    /// [`Sequencer::give_up`] and try again now.
    Full,
}

/// A sample that need not be held any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released {
    /// Which one; deliver it now.
    pub sequence: u64,
    /// So many before it were lost.
    pub missing: u64,
}

/// What a [`Sequencer`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequencerCounters {
    /// Samples to be delivered.
    pub delivered: u64,
    /// Samples to be dropped because another copy counts.
    pub duplicates: u64,
    /// Samples that did not come.
    pub lost: u64,
    /// Samples that were held, at any time.
    pub held: u64,
    /// The most that were held at one time.
    pub held_peak: usize,
    /// Refusals because no more could be held.
    pub full: u64,
}

impl Sequencer {
    /// The most cuts that are known and not yet reached. A publisher that has so many handovers
    /// under way must wait.
    pub const CUTS_MAX: usize = 16;

    /// A receiver that starts on the route of `epoch` and holds at most `held_max` samples.
    ///
    /// With `first`, that sample is owed; without, whatever that route brings first is the first.
    pub fn new(epoch: Epoch, first: Option<u64>, held_max: usize) -> Self {
        Self {
            current: epoch,
            next: first,
            cuts: VecDeque::new(),
            held: BTreeMap::new(),
            held_max,
            ended: None,
            settled: None,
            counters: SequencerCounters::default(),
        }
    }

    /// Takes note of a cut that the publisher announced, then ask [`Self::poll_held`].
    ///
    /// A cut that is known already, or long past, changes nothing.
    pub fn cut(&mut self, cut: Cut) -> Result<(), CutError> {
        if cut.epoch <= self.current {
            return Ok(());
        }
        if let Some(known) = self.cuts.iter().find(|known| known.epoch == cut.epoch) {
            let announced = cut;
            return if *known == cut {
                Ok(())
            } else {
                Err(CutError::Contradiction { known: *known, announced })
            };
        }
        if let Some(last) = self.cuts.back()
            && (cut.epoch < last.epoch || cut.first < last.first)
        {
            return Err(CutError::Contradiction { known: *last, announced: cut });
        }
        if self.cuts.len() == Self::CUTS_MAX {
            return Err(CutError::TooMany);
        }
        self.cuts.push_back(cut);
        self.switch();
        Ok(())
    }

    /// The route of `epoch` brought the sample `sequence`. Whatever the verdict, then ask
    /// [`Self::poll_held`].
    pub fn arrive(&mut self, epoch: Epoch, sequence: u64) -> Verdict {
        let verdict = self.judge(epoch, sequence);
        if let Some(next) = self.next
            && matches!(self.order(next, epoch, sequence), Order::After { .. })
        {
            // What newer routes brought in between can go out before this one.
            self.settled = self.settled.max(Some(sequence));
        }
        match verdict {
            Verdict::Deliver | Verdict::Gap { .. } => {
                self.pass(sequence);
            }
            Verdict::Duplicate => self.counters.duplicates += 1,
            Verdict::Hold => {
                self.held.insert(sequence, epoch);
                self.counters.held += 1;
                self.counters.held_peak = self.counters.held_peak.max(self.held.len());
            }
            Verdict::Full => self.counters.full += 1,
        }
        verdict
    }

    /// The next held sample that is due, if any.
    pub fn poll_held(&mut self) -> Option<Released> {
        let next = self.next?;
        let (&sequence, &epoch) = self.held.first_key_value()?;
        let due = match self.order(next, epoch, sequence) {
            Order::Due | Order::After { .. } => true,
            Order::Early => self.settled >= Some(sequence),
            // Its own route does not count any more. The one that owes it may have passed it.
            Order::Foreign => self.settled >= Some(sequence) || self.passed(next),
        };
        if !due {
            return None;
        }
        let missing = sequence - next;
        self.held.pop_first();
        self.pass(sequence);
        Some(Released { sequence, missing })
    }

    /// The routes up to that of `epoch` have ended: what they still owe is lost, as soon as a cut
    /// says how much that is. Then ask [`Self::poll_held`]; [`Self::counters`] says what was lost.
    pub fn close_road(&mut self, epoch: Epoch) {
        self.ended = self.ended.max(Some(epoch));
        self.switch();
    }

    /// Waits no longer for what is missing before the first held sample. Then ask
    /// [`Self::poll_held`]; [`Self::counters`] says what was lost.
    pub fn give_up(&mut self) {
        if let Some((&sequence, _)) = self.held.first_key_value() {
            self.skip_to(sequence);
        }
    }

    /// The sample that is owed next; `None` before the first.
    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// The route that owes it.
    pub fn epoch(&self) -> Epoch {
        self.current
    }

    /// How many samples are held now.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// What has been done so far.
    pub fn counters(&self) -> SequencerCounters {
        self.counters
    }

    fn judge(&self, epoch: Epoch, sequence: u64) -> Verdict {
        let order = match self.next {
            Some(next) if sequence < next => return Verdict::Duplicate,
            Some(next) => self.order(next, epoch, sequence),
            None if epoch == self.current => Order::Due,
            None if epoch < self.current => Order::Foreign,
            None => Order::Early,
        };
        match order {
            Order::Due => Verdict::Deliver,
            Order::After { missing } if !self.held.range(..=sequence).any(|_| true) => {
                Verdict::Gap { missing }
            }
            // Between the owed sample and this one a newer route has brought some: they are told
            // first, with the gap before them.
            Order::After { .. } | Order::Early if self.held.contains_key(&sequence) => {
                Verdict::Duplicate
            }
            Order::After { .. } | Order::Early if self.held.len() >= self.held_max => Verdict::Full,
            Order::After { .. } | Order::Early => Verdict::Hold,
            Order::Foreign => Verdict::Duplicate,
        }
    }

    /// How `sequence` on the route of `epoch` stands to `next`.
    fn order(&self, next: u64, epoch: Epoch, sequence: u64) -> Order {
        if sequence < next {
            return Order::Foreign;
        }
        if sequence == next {
            // Whichever route brings it, it is the right one.
            return Order::Due;
        }
        // The route that owes both has ended, so any copy is as good as its own.
        let nothing_more = self.ended >= Some(self.current)
            && self.cuts.front().is_some_and(|cut| sequence < cut.first);
        if nothing_more {
            return Order::After { missing: sequence - next };
        }
        if epoch < self.owner(sequence) {
            return Order::Foreign;
        }
        // `current` owes `next`; a newer route says nothing of what an older one may still bring.
        if epoch > self.current {
            return Order::Early;
        }
        Order::After { missing: sequence - next }
    }

    /// Whether something is held that shows that `next` will not come.
    fn passed(&self, next: u64) -> bool {
        let mut held = self.held.iter();
        held.any(|(&sequence, &epoch)| {
            matches!(self.order(next, epoch, sequence), Order::After { .. })
        })
    }

    /// The route that owes `sequence`, as far as cuts are known.
    fn owner(&self, sequence: u64) -> Epoch {
        let reached = self.cuts.iter().rev().find(|cut| cut.first <= sequence);
        reached.map_or(self.current, |cut| cut.epoch)
    }

    fn pass(&mut self, sequence: u64) {
        self.counters.lost += sequence - self.next.unwrap_or(sequence);
        self.counters.delivered += 1;
        self.next = Some(sequence.saturating_add(1));
        // The copy that is delivered may have overtaken one that is held.
        if self.held.remove(&sequence).is_some() {
            self.counters.duplicates += 1;
        }
        self.switch();
    }

    fn skip_to(&mut self, sequence: u64) {
        let next = self.next.unwrap_or(sequence);
        self.counters.lost += sequence.saturating_sub(next);
        self.next = Some(next.max(sequence));
        self.switch();
    }

    /// Moves on to the next route when the current one has brought what it owed, or has ended and
    /// nothing held comes before its end.
    fn switch(&mut self) {
        while let (Some(next), Some(cut)) = (self.next, self.cuts.front()) {
            if cut.first > next {
                let held_before = self.held.range(..cut.first).next().is_some();
                if self.ended < Some(self.current) || held_before {
                    return;
                }
                self.counters.lost += cut.first - next;
                self.next = Some(cut.first);
            }
            self.current = cut.epoch;
            self.cuts.pop_front();
        }
    }
}

/// Why a cut is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutError {
    /// It does not agree with one that is known.
    Contradiction {
        /// The one that is known.
        known: Cut,
        /// The one that was announced.
        announced: Cut,
    },
    /// [`Sequencer::CUTS_MAX`] are known and not yet reached.
    TooMany,
}

impl fmt::Display for CutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contradiction { known, announced } => write!(
                f,
                "epoch {} from sample {} on does not agree with epoch {} from sample {} on",
                announced.epoch.0, announced.first, known.epoch.0, known.first
            ),
            Self::TooMany => write!(f, "more than {} cuts ahead", Sequencer::CUTS_MAX),
        }
    }
}

impl Error for CutError {}

enum Order {
    /// It is the one that is owed.
    Due,
    /// It is later on the route that owes the next: those between were lost.
    After { missing: u64 },
    /// It is on a newer route, and an older one has not finished.
    Early,
    /// It is past the end of its route; a newer one owes it.
    Foreign,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs steps such as `0:7` (epoch 0 brings sample 7), `cut 1:9`, `close 0` and `give up`, and
    /// tells what came of each.
    fn run(sequencer: &mut Sequencer, steps: &str) -> String {
        let mut told = Vec::new();
        for step in steps.split(", ") {
            let mut words = Vec::new();
            let lost_before = sequencer.counters().lost;
            if step == "give up" {
                sequencer.give_up();
                words.push(format!("lost {}", sequencer.counters().lost - lost_before));
            } else if let Some(epoch) = step.strip_prefix("close ") {
                sequencer.close_road(Epoch(epoch.parse().unwrap()));
                words.push(format!("lost {}", sequencer.counters().lost - lost_before));
            } else {
                let (is_cut, pair) = match step.strip_prefix("cut ") {
                    Some(pair) => (true, pair),
                    None => (false, step),
                };
                let (epoch, sequence) = pair.split_once(':').unwrap();
                let epoch = Epoch(epoch.parse().unwrap());
                let sequence = sequence.parse().unwrap();
                words.push(if is_cut {
                    match sequencer.cut(Cut { epoch, first: sequence }) {
                        Ok(()) => "noted".to_owned(),
                        Err(error) => error.to_string(),
                    }
                } else {
                    match sequencer.arrive(epoch, sequence) {
                        Verdict::Deliver => sequence.to_string(),
                        Verdict::Gap { missing } => format!("-{missing} {sequence}"),
                        Verdict::Duplicate => "again".to_owned(),
                        Verdict::Hold => "hold".to_owned(),
                        Verdict::Full => "full".to_owned(),
                    }
                });
            }
            while let Some(Released { sequence, missing }) = sequencer.poll_held() {
                if missing > 0 {
                    words.push(format!("-{missing}"));
                }
                words.push(sequence.to_string());
            }
            told.push(words.join(" "));
        }
        told.join(", ")
    }

    #[track_caller]
    fn check(steps: &str, expect: &str) {
        assert_eq!(run(&mut Sequencer::new(Epoch(0), None, 3), steps), expect);
    }

    #[test]
    fn one_road() {
        check("0:5, 0:6, 0:6, 0:9, 0:7, 0:10", "5, 6, again, -2 9, again, 10");
    }

    #[test]
    fn the_new_road_waits_for_the_old() {
        check("0:1, cut 1:3, 1:3, 1:4, 0:2, 1:5", "1, noted, hold, hold, 2 3 4, 5");
        check("0:1, 1:3, 1:4, 0:2, cut 1:3", "1, hold, hold, 2 3 4, noted");
    }

    #[test]
    fn an_overlap_repeats_nothing() {
        check("0:1, cut 1:2, 1:2, 0:2, 0:3, 1:3", "1, noted, 2, again, 3, again");
        check("0:1, cut 1:3, 1:3, 0:2, 0:3, 1:4", "1, noted, hold, 2 3, again, 4");
        check("0:1, 1:3, 1:3, 0:3", "1, hold, again, again -1 3");
    }

    #[test]
    fn what_the_old_road_still_owes_is_lost_when_it_ends() {
        check("0:1, cut 1:4, 1:4, close 0, 1:6", "1, noted, hold, lost 2 4, -1 6");
        check("0:1, cut 1:4, close 0, 1:5", "1, noted, lost 2, -1 5");
        check("0:1, close 0, 0:2", "1, lost 0, 2");
        // What a newer route brought early is not lost with the older one.
        check("0:1, 1:3, close 0, cut 1:5, 1:5", "1, hold, lost 0, noted -1 3, 5");
    }

    #[test]
    fn holding_is_bounded() {
        check(
            "0:1, cut 1:3, 1:3, 1:4, 1:5, 1:6, 0:2, 1:6",
            "1, noted, hold, hold, hold, full, 2 3 4 5, 6",
        );
        check(
            "0:1, cut 1:3, 1:3, 1:4, 1:5, 1:6, give up, 1:6",
            "1, noted, hold, hold, hold, full, lost 1 3 4 5, 6",
        );
    }

    #[test]
    fn a_handover_overtaken_by_the_next() {
        check("0:1, cut 1:3, cut 2:3, 2:3, 2:4, 0:2, 2:5", "1, noted, noted, hold, hold, 2 3 4, 5");
        check("0:1, cut 1:3, cut 2:5, 2:5, 0:2, 1:3, 1:4", "1, noted, noted, hold, 2, 3, 4 5");
    }

    #[test]
    fn cuts_that_do_not_agree_are_refused() {
        check(
            "0:1, cut 1:3, cut 1:3, cut 1:4, cut 2:2, cut 0:9",
            "1, noted, noted, \
             epoch 1 from sample 4 on does not agree with epoch 1 from sample 3 on, \
             epoch 2 from sample 2 on does not agree with epoch 1 from sample 3 on, noted",
        );
        let mut sequencer = Sequencer::new(Epoch(0), Some(1), 0);
        for epoch in 1..=16 {
            assert_eq!(sequencer.cut(Cut { epoch: Epoch(epoch), first: 100 }), Ok(()));
        }
        let one_more = Cut { epoch: Epoch(17), first: 100 };
        assert_eq!(sequencer.cut(one_more), Err(CutError::TooMany));
    }

    #[test]
    fn a_copy_past_the_end_of_its_road_does_not_hold_up_the_others() {
        // Sample 10 came on the old route before the cut at 7 was known.
        let before = "0:4, 1:7, 0:10, cut 1:7, 1:11";
        check(before, "4, hold, hold -2 7 -2 10, noted, 11");
        check("0:4, cut 1:5, cut 2:7, 2:7, 1:6, 2:8", "4, noted, noted, hold, -1 6 7, 8");
    }

    #[test]
    fn before_the_first_sample() {
        check("1:3, cut 1:3, 0:2", "hold, noted, 2 3");
        let mut sequencer = Sequencer::new(Epoch(0), Some(2), 3);
        assert_eq!(run(&mut sequencer, "0:3, 0:2, 0:4"), "-1 3, again, 4");
    }

    proptest! {
        /// Roads that lose nothing, cuts that come at any time, any interleaving, samples that two
        /// roads bring around each cut: each sample once and in order.
        #[test]
        fn lossless_roads_deliver_each_sample_once_in_order(
            lengths in prop::collection::vec(1_u64..12, 1..5),
            overlap in 0_u64..4,
            picks in prop::collection::vec(any::<prop::sample::Index>(), 400),
        ) {
            let mut roads: Vec<VecDeque<u64>> = Vec::new();
            let mut cuts = VecDeque::new();
            let mut first = 0;
            for (epoch, length) in lengths.iter().enumerate() {
                if epoch > 0 {
                    cuts.push_back(Cut { epoch: Epoch(epoch as u32), first });
                }
                let total: u64 = lengths.iter().sum();
                roads.push((first..(first + length + overlap).min(total)).collect());
                first += length;
            }
            let mut sequencer = Sequencer::new(Epoch(0), Some(0), 8);
            let mut delivered = Vec::new();
            let mut picks = picks.into_iter();
            while roads.iter().any(|road| !road.is_empty()) {
                let choices = roads.len() + 1;
                // When the random picks are used up, the roads are drained in order.
                let at = match picks.next() {
                    Some(pick) => pick.index(choices),
                    None if !cuts.is_empty() => roads.len(),
                    None => roads.iter().position(|road| !road.is_empty()).unwrap_or(0),
                };
                if at == roads.len() {
                    if let Some(cut) = cuts.pop_front() {
                        prop_assert_eq!(sequencer.cut(cut), Ok(()));
                    }
                } else if let Some(&sequence) = roads[at].front() {
                    match sequencer.arrive(Epoch(at as u32), sequence) {
                        Verdict::Deliver => delivered.push(sequence),
                        Verdict::Gap { missing } => prop_assert!(false, "{missing} lost"),
                        // A reliable road keeps what is not taken.
                        Verdict::Full => continue,
                        Verdict::Duplicate | Verdict::Hold => {}
                    }
                    roads[at].pop_front();
                }
                while let Some(Released { sequence, missing }) = sequencer.poll_held() {
                    prop_assert_eq!(missing, 0);
                    delivered.push(sequence);
                }
                prop_assert!(sequencer.held() <= 8);
            }
            let all: Vec<u64> = (0..lengths.iter().sum()).collect();
            prop_assert_eq!(delivered, all);
            prop_assert_eq!(sequencer.counters().lost, 0);
        }

        /// Roads that lose any of their samples: when the last one has brought its last and the
        /// others have ended, nothing is held and every sample is accounted for.
        #[test]
        fn lossy_roads_leave_nothing_held(
            lengths in prop::collection::vec(1_u64..12, 2..5),
            overlap in 0_u64..4,
            steps in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..200),
        ) {
            let total: u64 = lengths.iter().sum();
            let last = lengths.len() - 1;
            let mut roads: Vec<VecDeque<u64>> = Vec::new();
            let mut cuts = VecDeque::new();
            let mut first = 0;
            for (epoch, length) in lengths.iter().enumerate() {
                if epoch > 0 {
                    cuts.push_back(Cut { epoch: Epoch(epoch as u32), first });
                }
                roads.push((first..(first + length + overlap).min(total)).collect());
                first += length;
            }
            let mut sequencer = Sequencer::new(Epoch(0), Some(0), 100);
            let mut delivered = Vec::new();
            for (pick, lost) in steps {
                let at = pick.index(roads.len() + 1);
                if at == roads.len() {
                    if let Some(cut) = cuts.pop_front() {
                        prop_assert_eq!(sequencer.cut(cut), Ok(()));
                    }
                } else if let Some(sequence) = roads[at].pop_front()
                    && !lost
                    && let Verdict::Deliver | Verdict::Gap { .. } =
                        sequencer.arrive(Epoch(at as u32), sequence)
                {
                    delivered.push(sequence);
                }
                delivered.extend(std::iter::from_fn(|| sequencer.poll_held()).map(|it| it.sequence));
            }
            for cut in cuts {
                prop_assert_eq!(sequencer.cut(cut), Ok(()));
            }
            sequencer.close_road(Epoch(last as u32 - 1));
            delivered.extend(std::iter::from_fn(|| sequencer.poll_held()).map(|it| it.sequence));
            match sequencer.arrive(Epoch(last as u32), total) {
                Verdict::Deliver | Verdict::Gap { .. } => delivered.push(total),
                _ => {}
            }
            delivered.extend(std::iter::from_fn(|| sequencer.poll_held()).map(|it| it.sequence));
            prop_assert_eq!(sequencer.held(), 0);
            prop_assert_eq!(delivered.last(), Some(&total));
            prop_assert!(delivered.is_sorted_by(|a, b| a < b));
            let counters = sequencer.counters();
            prop_assert_eq!(counters.delivered, delivered.len() as u64);
            prop_assert_eq!(counters.delivered + counters.lost, total + 1);
        }

        /// Whatever arrives, in whatever order: numbers only rise, and the counters add up.
        #[test]
        fn anything_delivered_rises(
            steps in prop::collection::vec((0_u8..8, 0_u32..4, 0_u64..30), 0..200),
        ) {
            let mut sequencer = Sequencer::new(Epoch(0), Some(0), 4);
            let mut last = None;
            let mut delivered = 0;
            for (what, epoch, number) in steps {
                let mut came = Vec::new();
                match what {
                    0 => drop(sequencer.cut(Cut { epoch: Epoch(epoch), first: number })),
                    1 => sequencer.close_road(Epoch(epoch)),
                    2 => sequencer.give_up(),
                    _ => match sequencer.arrive(Epoch(epoch), number) {
                        Verdict::Deliver | Verdict::Gap { .. } => came.push(number),
                        _ => {}
                    },
                }
                while let Some(released) = sequencer.poll_held() {
                    came.push(released.sequence);
                }
                for number in came {
                    prop_assert!(last.is_none_or(|last| last < number));
                    last = Some(number);
                    delivered += 1;
                }
                prop_assert!(sequencer.held() <= 4);
            }
            let counters = sequencer.counters();
            prop_assert_eq!(counters.delivered, delivered);
            prop_assert_eq!(sequencer.next(), Some(counters.delivered + counters.lost));
        }
    }
}

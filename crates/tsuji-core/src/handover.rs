//! Changing the road of a flow while samples flow: what its two ends must remember, without I/O.
//!
//! The publisher's end is a [`Course`], the subscription's an [`Intake`]. They talk over a channel
//! that keeps order and loses nothing as long as both live:
//!
//! 1. The publisher offers a road; the subscription opens its end of it beside the one that stands.
//! 2. When the new road has matched, the publisher sends its next sample there and none on the old
//!    one, and says so with a [`Cut`]. Where a road must first show that it carries, the publisher sends
//!    on both until the subscription says that something has come.
//! 3. The subscription delivers what the old road brings, up to the cut, and holds meanwhile what
//!    comes by the new one. When the old road has brought all, or brings nothing more, or was waited
//!    for long enough, it goes on with what is held, and says that it has done so.
//! 4. Only then the publisher may offer the old road again.
//!
//! What the ends rely on:
//!
//! - **Order**: a road brings samples in the order in which they were sent, though it may lose some and
//!   bring some again. Its numbers grow as long as the flow lives, each time that it is offered.
//! - **No gap behind the cut**: a road that was left may go on for others, but when it has not carried a
//!   sample it carries none until the subscription is done with it. Else what it brings before the cut
//!   is known would seem to follow on what it brought before. A road that reaches each reader by itself
//!   carries nothing there behind the cut.
//!
//! What holds then, whoever loses, repeats, refuses, overtakes or dies; `tests/handover_model.rs` tries
//! it in all interleavings of small cases, `tests/handover.rs` of `tsuji-transport` in random large ones:
//!
//! - **Once and in order**: what is delivered has growing numbers, and each sample its own.
//! - **All of it**: a sample is delivered unless the road lost it that carried it for this flow, or it
//!   was pushed out of what is held, or its road was given up before it brought it. (What a road loses
//!   behind the cut while the cut is not known is as good as lost.) When the publisher dies, what came
//!   is delivered, but not what came by a road that counts differently and of which the cut did not come.
//! - **Bounded**: an intake holds at most as many samples, and has at most as many roads open, as it was
//!   told.
//! - **It ends**: where nothing is under way any more, one road stands at both ends, the same under the
//!   same numbers, nothing is held, and any other road may be begun. Somebody has to give up waiting
//!   only where a road lost the last that it carried, or its first number was not known.

use std::collections::VecDeque;

/// Counts the roads that were offered for a flow, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

/// From here on the road of `epoch` carries.
///
/// Two roads may count differently, as those of services do, so each number is that of its own road.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cut {
    /// The new road.
    pub epoch: Epoch,
    /// The first number that the road before would have had next, and does not bring.
    pub ends: u64,
    /// The first number on the new road.
    pub first: u64,
}

/// The publisher's end of a flow: which roads it has and is about to have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Course<R> {
    last: Epoch,
    standing: Option<(Epoch, R)>,
    opening: Option<(Epoch, R)>,
    /// Roads that were left, and that the subscription may still take from.
    closing: Vec<(Epoch, R)>,
}

/// What became of [`Course::begin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Offer it to the subscription under this number.
    Offer {
        /// Of the road that is to be opened.
        epoch: Epoch,
        /// Of a road that was being opened and is not wanted any more: it is to be told too, first.
        withdrawn: Option<Epoch>,
    },
    /// It is the road that stands. One that was being opened is not wanted any more.
    Stands {
        /// Of that one.
        withdrawn: Option<Epoch>,
    },
    /// It is being opened already.
    UnderWay,
    /// The subscription still takes from it what came before, or from too many others. To be begun
    /// again after [`Course::done`].
    NotYet,
}

impl<R> Default for Course<R> {
    fn default() -> Self {
        Self { last: Epoch(0), standing: None, opening: None, closing: Vec::new() }
    }
}

impl<R: PartialEq> Course<R> {
    /// Roads that were left and are not finished, beyond which no other is begun.
    pub const CLOSING_MAX: usize = 4;

    /// Begins to open a road.
    pub fn begin(&mut self, road: R) -> Begun {
        if self.standing().is_some_and(|it| *it == road) {
            return Begun::Stands { withdrawn: self.withdraw() };
        }
        if self.opening().is_some_and(|it| *it == road) {
            return Begun::UnderWay;
        }
        if self.is_left(&road) || Self::CLOSING_MAX <= self.closing.len() {
            return Begun::NotYet;
        }
        let withdrawn = self.withdraw();
        self.last = Epoch(self.last.0.wrapping_add(1));
        self.opening = Some((self.last, road));
        Begun::Offer { epoch: self.last, withdrawn }
    }

    /// The road that is being opened is not wanted any more.
    pub fn withdraw(&mut self) -> Option<Epoch> {
        self.opening.take().map(|(epoch, _)| epoch)
    }

    /// The road of `epoch` is not to be had. Answers whether it was being opened.
    pub fn refused(&mut self, epoch: Epoch) -> bool {
        let is_opening = self.is_opening(epoch);
        if is_opening {
            self.opening = None;
        }
        is_opening
    }

    /// The road of `epoch` has matched, and carries from here on: the [`Cut`] is said before anything is
    /// sent on it. Answers whether it was being opened; else it is to be left alone.
    pub fn carry(&mut self, epoch: Epoch) -> bool {
        if !self.is_opening(epoch) {
            return false;
        }
        let left = std::mem::replace(&mut self.standing, self.opening.take());
        self.closing.extend(left);
        true
    }

    /// The subscription has all that came before the road of `epoch`.
    pub fn done(&mut self, epoch: Epoch) {
        self.closing.retain(|(it, _)| epoch <= *it);
    }

    /// Nothing stands any more, nor is being opened: the subscription was told that it is over.
    pub fn end(&mut self) {
        let last = self.last;
        *self = Self { last, ..Self::default() };
    }

    /// The road that carries.
    pub fn standing(&self) -> Option<&R> {
        self.standing.as_ref().map(|(_, road)| road)
    }

    /// The road that is being opened.
    pub fn opening(&self) -> Option<&R> {
        self.opening.as_ref().map(|(_, road)| road)
    }

    /// The number of the road that is being opened.
    pub fn opening_epoch(&self) -> Option<Epoch> {
        self.opening.as_ref().map(|(epoch, _)| *epoch)
    }

    /// The number of the road that was offered last.
    pub fn last(&self) -> Epoch {
        self.last
    }

    /// Whether the subscription has finished with all roads that were left.
    pub fn is_settled(&self) -> bool {
        self.closing.is_empty()
    }

    /// Whether it was left and the subscription may still take from it. If it goes on for others, it does
    /// so without a gap, or is silent until this is over.
    pub fn is_left(&self, road: &R) -> bool {
        self.closing.iter().any(|(_, it)| it == road)
    }

    fn is_opening(&self, epoch: Epoch) -> bool {
        self.opening.as_ref().is_some_and(|(it, _)| *it == epoch)
    }
}

/// The subscription's end of a flow while its road changes: turns what several roads bring into each
/// sample once and in order.
///
/// A road keeps order: when it brings a sample, what it has not brought before it was lost on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Intake<S> {
    /// The oldest first. The first of them delivers; there is always one.
    lanes: VecDeque<Lane<S>>,
    /// The number of the next sample, as the flow counts it: the first road's own numbers, continued.
    next: Option<u64>,
    due: VecDeque<(u64, S)>,
    /// Held and not wanted after all.
    discarded: Vec<S>,
    held: usize,
    held_max: usize,
    held_peak: usize,
    /// Each road counts for itself, so that the same number on two of them is not the same sample, and a
    /// number says nothing before the road's cut is known.
    is_counted_apart: bool,
}

/// A road at the subscription's end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lane<S> {
    epoch: Epoch,
    /// Its first number, once its cut is known.
    first: Option<u64>,
    /// Its first number that the next road brings, once that one's cut is known.
    end: Option<u64>,
    /// To be added to its numbers, so that those of the flow go on.
    shift: u64,
    /// It brings nothing more.
    is_over: bool,
    /// In its own numbers: what is before it was brought, or was lost on the road, or is not wanted.
    past: u64,
    /// In its own numbers.
    held: VecDeque<(u64, S)>,
}

/// What became of a sample that a road brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival<S> {
    /// Deliver it, under this number.
    Deliver(u64, S),
    /// It is held. To bound what is held, this older one was let go.
    Held(Option<S>),
    /// It has come before, or another road owes it, or its road is not open.
    Repeated(S),
}

impl<S> Intake<S> {
    /// The most roads that are open at one time.
    pub const LANES_MAX: usize = Course::<()>::CLOSING_MAX + 1;

    /// An end whose road is that of `epoch` and whose next sample is `next`, if that is known, in
    /// numbers that differ from the road's own by `shift`. It holds at most `held_max` samples, at
    /// least one.
    pub fn new(epoch: Epoch, next: Option<u64>, shift: u64, held_max: usize) -> Self {
        let first = next.map(|it| it.wrapping_sub(shift));
        let standing = Lane { first, shift, past: first.unwrap_or(0), ..Lane::new(epoch) };
        Self {
            lanes: VecDeque::from([standing]),
            next,
            due: VecDeque::new(),
            discarded: Vec::new(),
            held: 0,
            held_max: held_max.max(1),
            held_peak: 0,
            is_counted_apart: shift != 0,
        }
    }

    /// The same of a flow each of whose roads counts for itself, as replies are counted where all clients
    /// of a server get them: what a road brings behind its end is nothing of what the next one brings.
    #[must_use]
    pub fn counted_apart(self) -> Self {
        Self { is_counted_apart: true, ..self }
    }

    /// A newer road is open at this end. No course ever has more than [`LANES_MAX`](Self::LANES_MAX)
    /// of them open; one beyond is not opened.
    pub fn open(&mut self, epoch: Epoch) {
        let is_newer = self.lanes.back().is_none_or(|it| it.epoch < epoch);
        if is_newer && self.lanes.len() < Self::LANES_MAX {
            self.lanes.push_back(Lane::new(epoch));
        }
    }

    /// A road that was opened and has carried nothing will not.
    pub fn withdraw(&mut self, epoch: Epoch) {
        let is_idle = |lane: &Lane<S>| lane.epoch == epoch && lane.first.is_none();
        let at = (1..self.lanes.len()).find(|at| is_idle(&self.lanes[*at]));
        let lane = at.and_then(|at| self.lanes.remove(at));
        self.discard(lane);
    }

    /// The publisher's word from where on a road carries. Answers `false` if that road is not open, or
    /// it or a newer one carries already. Then ask [`next_due`](Self::next_due).
    pub fn cut(&mut self, cut: Cut) -> bool {
        let carrying = self.lanes.iter().rposition(|it| it.first.is_some()).unwrap_or(0);
        let at = self.lanes.iter().position(|it| it.epoch == cut.epoch);
        let Some(at) = at.filter(|at| carrying < *at) else { return false };
        let before = &mut self.lanes[carrying];
        before.end = Some(cut.ends);
        let shift = cut.ends.wrapping_add(before.shift).wrapping_sub(cut.first);
        let lane = &mut self.lanes[at];
        lane.first = Some(cut.first);
        lane.past = lane.past.max(cut.first);
        lane.shift = shift;
        self.is_counted_apart |= shift != 0;
        self.advance();
        true
    }

    /// The road of `epoch` brought the sample that it counts as `sequence`. Then ask
    /// [`next_due`](Self::next_due).
    pub fn arrive(&mut self, epoch: Epoch, sequence: u64, sample: S) -> Arrival<S> {
        let Some(at) = self.lanes.iter().position(|it| it.epoch == epoch) else {
            return Arrival::Repeated(sample);
        };
        let is_past = (at == 0 || !self.is_counted_apart) && self.is_past(at, sequence);
        let lane = &mut self.lanes[at];
        let is_behind = lane.end.is_some_and(|end| end <= sequence);
        let is_known = sequence < lane.past;
        let number = sequence.wrapping_add(lane.shift);
        lane.past = lane.past.max(sequence.saturating_add(1));
        if is_behind {
            // It has brought all that it owed and goes on for others.
            self.advance();
            return Arrival::Repeated(sample);
        }
        if is_known || is_past {
            return Arrival::Repeated(sample);
        }
        if at == 0 {
            self.next = Some(number.saturating_add(1));
            self.let_go_of_known();
            self.advance();
            return Arrival::Deliver(number, sample);
        }
        lane.held.push_back((sequence, sample));
        self.held += 1;
        let is_too_much = self.held_max < self.held;
        let oldest = if is_too_much { self.let_one_go() } else { None };
        self.held_peak = self.held_peak.max(self.held);
        Arrival::Held(oldest)
    }

    /// The next sample that need not be held any longer, under its number.
    pub fn next_due(&mut self) -> Option<(u64, S)> {
        self.due.pop_front()
    }

    /// Samples that were held and are not wanted after all: they have come another way, or their road
    /// never carried.
    pub fn discarded(&mut self) -> Vec<S> {
        std::mem::take(&mut self.discarded)
    }

    /// The road of `epoch` brings nothing more of what it owes. Then ask
    /// [`next_due`](Self::next_due).
    pub fn over(&mut self, epoch: Epoch) {
        if let Some(lane) = self.lanes.iter_mut().find(|it| it.epoch == epoch) {
            lane.is_over = true;
        }
        self.advance();
    }

    /// The publisher is gone and no cut will come any more: what is held goes out behind what its road
    /// has brought. Where roads count differently, that of a road whose cut did not come is discarded:
    /// it may have come before. Then ask [`next_due`](Self::next_due).
    pub fn end(&mut self) {
        while let Some(lane) = self.lanes.get(1) {
            let guess = lane.held.front().filter(|_| !self.is_counted_apart);
            if self.is_ending() {
                self.lanes[0].is_over = true;
                self.advance();
            } else if let Some((first, _)) = guess {
                self.cut(Cut { epoch: lane.epoch, ends: *first, first: *first });
            } else {
                let lane = self.lanes.remove(1);
                self.discard(lane);
            }
        }
    }

    /// The road that delivers.
    pub fn current(&self) -> Epoch {
        self.lanes[0].epoch
    }

    /// Whether it is known where the road that delivers ends, so that only its samples are waited for.
    pub fn is_ending(&self) -> bool {
        self.lanes[0].end.is_some()
    }

    /// Whether one road is left, and nothing is held.
    pub fn is_settled(&self) -> bool {
        self.lanes.len() == 1 && self.due.is_empty()
    }

    /// Whether the road of `epoch` is open at this end.
    pub fn is_open(&self, epoch: Epoch) -> bool {
        self.lanes.iter().any(|it| it.epoch == epoch)
    }

    /// Whether one sample more would push out another.
    pub fn is_full(&self) -> bool {
        self.held_max <= self.held
    }

    /// The number of the next sample.
    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// What is to be added to the numbers of the road that delivers.
    pub fn shift(&self) -> u64 {
        self.lanes[0].shift
    }

    /// The number from which on the road that delivers is the one to do so.
    pub fn since(&self) -> Option<u64> {
        self.lanes[0].first.map(|first| first.wrapping_add(self.lanes[0].shift))
    }

    /// The most samples that were held at one time.
    pub fn held_peak(&self) -> usize {
        self.held_peak
    }

    /// Whether a sample of this road has come before, as far as the roads count alike.
    fn is_past(&self, at: usize, sequence: u64) -> bool {
        let lane = &self.lanes[at];
        // Before its cut a road counts as the one that delivers.
        let shift = if lane.first.is_some() { lane.shift } else { self.lanes[0].shift };
        self.next.is_some_and(|next| sequence.wrapping_add(shift) < next)
    }

    /// What is held and has come by the road that delivers is not wanted any more.
    fn let_go_of_known(&mut self) {
        for at in 1..self.lanes.len() {
            while !self.is_counted_apart
                && let Some((sequence, _)) = self.lanes[at].held.front()
                && self.is_past(at, *sequence)
            {
                let known = self.lanes[at].held.pop_front();
                self.held -= 1;
                self.discarded.extend(known.map(|(_, sample)| sample));
            }
        }
    }

    /// Lets the oldest sample go that is held.
    fn let_one_go(&mut self) -> Option<S> {
        let oldest = self.lanes.iter_mut().find_map(|lane| lane.held.pop_front());
        self.held -= usize::from(oldest.is_some());
        oldest.map(|(_, sample)| sample)
    }

    /// Goes on to the next road while the one that delivers has brought all that it owed.
    fn advance(&mut self) {
        while 1 < self.lanes.len() {
            let lane = &self.lanes[0];
            let Some(end) = lane.end else { return };
            let is_over = lane.is_over || end <= lane.past;
            let end = end.wrapping_add(lane.shift);
            if !is_over && self.next.is_none_or(|next| next < end) {
                return;
            }
            self.lanes.pop_front();
            // Roads that were opened after it and never carried were overtaken.
            while 1 < self.lanes.len() && self.lanes[0].first.is_none() {
                let overtaken = self.lanes.pop_front();
                self.discard(overtaken);
            }
            self.next = self.next.max(Some(end));
            let lane = &mut self.lanes[0];
            if let Some((next, first)) = self.next.zip(lane.first).filter(|_| self.is_counted_apart)
            {
                lane.shift = next.wrapping_sub(first);
            }
            self.let_out();
        }
    }

    /// Lets out what is held of the road that delivers now.
    fn let_out(&mut self) {
        let lane = &mut self.lanes[0];
        let (shift, first) = (lane.shift, lane.first.unwrap_or(0));
        let end = lane.end.unwrap_or(u64::MAX);
        for (sequence, sample) in std::mem::take(&mut lane.held) {
            self.held -= 1;
            let number = sequence.wrapping_add(shift);
            let is_new = self.next.is_none_or(|next| next <= number);
            if is_new && (first..end).contains(&sequence) {
                self.next = Some(number.saturating_add(1));
                self.due.push_back((number, sample));
            } else {
                self.discarded.push(sample);
            }
        }
    }

    fn discard(&mut self, lane: Option<Lane<S>>) {
        let held = lane.map(|it| it.held).unwrap_or_default();
        self.held -= held.len();
        self.discarded.extend(held.into_iter().map(|(_, sample)| sample));
    }
}

impl<S> Lane<S> {
    fn new(epoch: Epoch) -> Self {
        let held = VecDeque::new();
        Self { epoch, first: None, end: None, shift: 0, is_over: false, past: 0, held }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Runs steps as `0:7` (the road of epoch 0 brings sample 7), `open 1`, `cut 1:9`, `cut 1:9=3` (whose
    /// own numbers begin at 3), `over 0`, `end` and `withdraw 1`, and tells what came of each.
    fn run(intake: &mut Intake<u64>, steps: &str) -> String {
        let mut told = Vec::new();
        for step in steps.split(", ") {
            let (word, rest) = step.split_once(' ').unwrap_or(("", step));
            let number = |text: &str| text.parse::<u64>().unwrap();
            let mut words = Vec::new();
            match word {
                "open" => intake.open(Epoch(number(rest) as u32)),
                "over" => intake.over(Epoch(number(rest) as u32)),
                "withdraw" => intake.withdraw(Epoch(number(rest) as u32)),
                "cut" => {
                    let (epoch, at) = rest.split_once(':').unwrap();
                    let (ends, first) = at.split_once('=').unwrap_or((at, at));
                    let epoch = Epoch(number(epoch) as u32);
                    let cut = Cut { epoch, ends: number(ends), first: number(first) };
                    if !intake.cut(cut) {
                        words.push("ignored".to_owned());
                    }
                }
                _ if rest == "end" => intake.end(),
                _ => {
                    let (epoch, sequence) = rest.split_once(':').unwrap();
                    let sequence = number(sequence);
                    words.push(
                        match intake.arrive(Epoch(number(epoch) as u32), sequence, sequence) {
                            Arrival::Deliver(number, _) => number.to_string(),
                            Arrival::Held(None) => "held".to_owned(),
                            Arrival::Held(Some(oldest)) => format!("held for {oldest}"),
                            Arrival::Repeated(_) => "again".to_owned(),
                        },
                    );
                }
            }
            while let Some((number, _)) = intake.next_due() {
                words.push(number.to_string());
            }
            told.push(if words.is_empty() { ".".to_owned() } else { words.join(" ") });
        }
        told.join(", ")
    }

    #[track_caller]
    fn check(steps: &str, expect: &str) {
        assert_eq!(run(&mut Intake::new(Epoch(0), Some(1), 0, 3), steps), expect);
    }

    #[test]
    fn the_new_road_waits_for_the_old() {
        check("0:1, open 1, 1:3, cut 1:3, 1:4, 0:2, 1:5", "1, ., held, ., held, 2 3 4, 5");
        check("0:1, 0:2, open 1, cut 1:3, 1:3", "1, 2, ., ., 3");
        check("open 1, cut 1:1, 1:1", "., ., 1");
    }

    #[test]
    fn what_the_old_road_lost_is_waited_for_until_it_is_over() {
        check("0:1, open 1, cut 1:4, 1:4, 0:2, over 0, 1:5", "1, ., ., held, 2, 4, 5");
        // What the old road brings for others shows that it has brought all else.
        check("0:1, open 1, cut 1:4, 1:4, 0:2, 0:5, 1:5", "1, ., ., held, 2, again 4, 5");
        check("open 1, cut 1:2, open 2, 1:3, cut 2:3, 2:3, 0:1", "., ., ., held, ., held, 1 3");
    }

    #[test]
    fn what_was_pushed_out_is_not_waited_for() {
        let mut intake = Intake::new(Epoch(0), Some(1), 0, 1);
        let steps = "open 1, cut 1:2, 1:2, open 2, cut 2:3, 2:3, 0:1, 2:4";
        let expect = "., ., held, ., ., held for 2, 1 3, 4";
        assert_eq!(run(&mut intake, steps), expect);
    }

    #[test]
    fn nothing_comes_twice() {
        check(
            "0:1, 0:1, open 1, 1:2, 1:2, cut 1:2, 1:2, 0:2, 0:3",
            "1, again, ., held, again, 2, again, again, again",
        );
        // The new road was there for others before.
        check("0:1, open 1, 1:1, cut 1:3, 1:2, 1:3, 0:2", "1, ., again, ., again, held, 2 3");
        // Roads that count apart bring what was sent before the flow.
        check("open 1, cut 1:1=90, 1:7, 1:90", "., ., again, 1");
        let mut intake = Intake::new(Epoch(0), Some(1), 0u64.wrapping_sub(7), 3);
        assert_eq!(run(&mut intake, "0:3, 0:8, 0:9"), "again, 1, 2");
        // The old road went on for others.
        check("0:1, open 1, 0:2, 0:3, cut 1:2, 1:2, 1:3, 1:4", "1, ., 2, 3, ., again, again, 4");
    }

    #[test]
    fn what_is_held_is_bounded_and_the_newest() {
        check(
            "open 1, 1:5, 1:6, 1:7, 1:8, cut 1:5, over 0",
            "., held, held, held, held for 5, ., 6 7 8",
        );
    }

    #[test]
    fn one_change_overtakes_another() {
        check(
            "0:1, open 1, cut 1:2, open 2, 1:2, cut 2:3, 2:3, over 0, 2:4",
            "1, ., ., ., 2, ., 3, ., 4",
        );
        check(
            "open 1, cut 1:3, 1:3, open 2, cut 2:4, 2:4, 0:1, 0:2",
            "., ., held, ., ., held, 1, 2 3 4",
        );
        // The one between was given up before it carried.
        check("0:1, open 1, withdraw 1, open 2, cut 2:2, 2:2", "1, ., ., ., ., 2");
        check("0:1, open 1, open 2, cut 2:2, cut 1:2, 2:2", "1, ., ., ., ignored, 2");
        check("open 1, open 2, cut 2:2, cut 1:2, 2:2, end", "., ., ., ignored, held, 2");
        // What carries is not withdrawn, and what is open is not opened again.
        check("open 1, cut 1:2, withdraw 1, 1:2, 0:1", "., ., ., held, 1 2");
        check("open 1, open 1, withdraw 1, 1:1, cut 1:1", "., ., ., again, ignored");
    }

    #[test]
    fn numbers_go_on_where_roads_count_differently() {
        check("0:1, open 1, 1:7, cut 1:3=7, 1:8, 0:2, 1:9", "1, ., held, ., held, 2 3 4, 5");
        check("open 1, cut 1:1=90, 1:90, open 2, cut 2:91=4, 2:4, 2:5", "., ., 1, ., ., 2, 3");
    }

    #[test]
    fn what_a_road_brings_behind_its_end_is_not_what_the_next_brings_that_is_counted_apart() {
        let steps = "0:1, open 1, 0:2, 0:3, cut 1:2, 1:2, 1:3, 0:4";
        let mut intake = Intake::new(Epoch(0), Some(1), 0, 3).counted_apart();
        assert_eq!(run(&mut intake, steps), "1, ., 2, 3, ., 4, 5, again");
    }

    #[test]
    fn when_the_publisher_is_gone_all_that_came_goes_out() {
        check("0:1, open 1, 1:3, 1:4, end", "1, ., held, held, 3 4");
        check("0:1, open 1, cut 1:3, 1:3, open 2, 2:5, end", "1, ., ., held, ., held, 3 5");
        check("0:1, open 1, end, 0:2", "1, ., ., 2");
        // A road that was overtaken does not take the place of the one that carries.
        let overtaken = "open 1, 1:1, 1:5, open 2, cut 2:3, 2:3, end";
        check(overtaken, "., held, held, ., ., held, 3");
    }

    #[test]
    fn where_roads_count_apart_nothing_is_guessed() {
        let steps = "open 1, cut 1:1=90, 1:90, open 2, 2:4, 2:5, end, 1:91";
        check(steps, "., ., 1, ., held, held, ., 2");
        let mut intake = Intake::new(Epoch(0), Some(1), 0, 3).counted_apart();
        assert_eq!(run(&mut intake, "0:1, open 1, 1:7, end, 0:2"), "1, ., held, ., 2");
        assert_eq!(intake.discarded(), [7]);
    }

    #[test]
    fn no_more_roads_are_open_than_a_course_has() {
        let mut intake = Intake::<u64>::new(Epoch(0), Some(1), 0, 1);
        (1..9).for_each(|it| intake.open(Epoch(it)));
        assert!(intake.is_open(Epoch(4)) && !intake.is_open(Epoch(5)));
    }

    #[test]
    fn a_course_goes_from_road_to_road() {
        let mut course = Course::default();
        let offer = |epoch| Begun::Offer { epoch: Epoch(epoch), withdrawn: None };
        assert_eq!(course.begin('a'), offer(1));
        assert_eq!(course.begin('a'), Begun::UnderWay);
        assert!(course.carry(Epoch(1)));
        assert_eq!(course.begin('a'), Begun::Stands { withdrawn: None });
        assert_eq!(course.begin('b'), offer(2));
        let withdrawn = Some(Epoch(2));
        assert_eq!(course.begin('c'), Begun::Offer { epoch: Epoch(3), withdrawn });
        assert!(!course.carry(Epoch(2)) && !course.refused(Epoch(2)));
        assert!(course.carry(Epoch(3)));
        assert_eq!((course.standing(), course.is_settled()), (Some(&'c'), false));
        // The subscription may still take from it.
        assert_eq!(course.begin('a'), Begun::NotYet);
        assert!(course.is_left(&'a') && !course.is_left(&'b'));
        course.done(Epoch(3));
        assert!(course.is_settled() && !course.is_left(&'a'));
        assert_eq!(course.begin('a'), offer(4));
        assert!(course.refused(Epoch(4)));
        assert_eq!((course.standing(), course.opening()), (Some(&'c'), None));
        assert_eq!(course.begin('b'), offer(5));
        assert_eq!(course.begin('c'), Begun::Stands { withdrawn: Some(Epoch(5)) });
    }

    #[test]
    fn a_course_has_few_roads_that_are_not_finished() {
        let mut course = Course::default();
        for road in 0..5 {
            assert!(matches!(course.begin(road), Begun::Offer { .. }));
            assert!(course.carry(course.last()));
        }
        assert_eq!(course.begin(9), Begun::NotYet);
        course.end();
        assert_eq!(course.begin(0), Begun::Offer { epoch: Epoch(6), withdrawn: None });
    }

    #[derive(Clone, Copy, Debug)]
    enum Word {
        Open,
        Withdraw,
        Cut { ends: u64, first: u64 },
        Arrive { sequence: u64 },
        Over,
        End,
    }

    fn word() -> impl Strategy<Value = Word> {
        let number = || prop_oneof![8 => 0..8u64, 1 => any::<u64>(), 1 => Just(u64::MAX - 1)];
        prop_oneof![
            Just(Word::Open),
            Just(Word::Withdraw),
            (number(), number()).prop_map(|(ends, first)| Word::Cut { ends, first }),
            number().prop_map(|sequence| Word::Arrive { sequence }),
            Just(Word::Over),
            Just(Word::End),
        ]
    }

    proptest! {
        /// A peer may say anything. It harms its own flow at most.
        #[test]
        fn senseless_words_do_not_mislead(
            words in vec((0..6u32, word()), 0..60),
            next in proptest::option::of(0..4u64),
            shift in prop_oneof![Just(0), any::<u64>()],
        ) {
            let mut intake = Intake::new(Epoch(0), next, shift, 2);
            let mut last = None;
            for (epoch, word) in words {
                let epoch = Epoch(epoch);
                let mut delivered = Vec::new();
                match word {
                    Word::Open => intake.open(epoch),
                    Word::Withdraw => intake.withdraw(epoch),
                    Word::Cut { ends, first } => _ = intake.cut(Cut { epoch, ends, first }),
                    Word::Arrive { sequence } => {
                        if let Arrival::Deliver(number, ()) = intake.arrive(epoch, sequence, ()) {
                            delivered.push(number);
                        }
                    }
                    Word::Over => intake.over(epoch),
                    Word::End => {
                        intake.end();
                        prop_assert!(intake.lanes.len() == 1);
                    }
                }
                delivered.extend(std::iter::from_fn(|| intake.next_due()).map(|(number, ())| number));
                for number in delivered {
                    prop_assert!(last.is_none_or(|last| last < number || number == u64::MAX));
                    last = Some(number);
                }
                let held: usize = intake.lanes.iter().map(|it| it.held.len()).sum();
                prop_assert_eq!(held, intake.held);
                prop_assert!(intake.held_peak() <= 2 && intake.lanes.len() <= Intake::<()>::LANES_MAX);
            }
        }
    }
}

//! Changing the link of a flow while samples flow: what its two ends must remember, without I/O.
//!
//! The publisher's end is a [`WriterHandover`], the subscription's an [`ReaderHandover`]. They talk over a channel
//! that keeps order and loses nothing as long as both live:
//!
//! 1. The publisher offers a link; the subscription opens its end of it beside the one that stands.
//! 2. When the new link has matched, the publisher sends its next sample there and none on the old
//!    one, and says so with a [`Cut`]. Where a link must first show that it carries, the publisher sends
//!    on both until the subscription says that something has come.
//! 3. The subscription delivers what the old link brings, up to the cut, and holds meanwhile what
//!    comes by the new one. When the old link has brought all, or brings nothing more, or was waited
//!    for long enough, it goes on with what is held, and says that it has done so.
//! 4. Only then the publisher may offer the old link again.
//!
//! What the ends rely on:
//!
//! - **Order**: a link brings samples in the order in which they were sent, though it may lose some and
//!   bring some again. Its numbers grow as long as the flow lives, each time that it is offered.
//! - **No gap behind the cut**: a link that was left may go on for others, but when it has not carried a
//!   sample it carries none until the subscription is done with it. Else what it brings before the cut
//!   is known would seem to follow on what it brought before. A link that reaches each reader by itself
//!   carries nothing there behind the cut.
//!
//! What holds then, whoever loses, repeats, refuses, overtakes or dies; `tests/handover_model.rs` tries
//! it in all interleavings of small cases, `tests/handover.rs` of `tsuji-transport` in random large ones:
//!
//! - **Once and in order**: what is delivered has growing numbers, and each sample its own.
//! - **All of it**: a sample is delivered unless the link lost it that carried it for this flow, or it
//!   was pushed out of what is held, or its link was given up before it brought it. (What a link loses
//!   behind the cut while the cut is not known is as good as lost.) When the publisher dies, what came
//!   is delivered, but not what came by a link that counts differently and of which the cut did not come.
//! - **Bounded**: a handover holds at most as many samples, and has at most as many links open, as it was
//!   told.
//! - **It ends**: where nothing is under way any more, one link stands at both ends, the same under the
//!   same numbers, nothing is held, and any other link may be begun. Somebody has to give up waiting
//!   only where a link lost the last that it carried, or its first number was not known.

use std::collections::VecDeque;

/// Counts the links that were offered for a flow, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

/// From here on the link of `epoch` carries.
///
/// Two links may count differently, as those of services do, so each number is that of its own link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cut {
    /// The new link.
    pub epoch: Epoch,
    /// The first number that the link before would have had next, and does not bring.
    pub ends: u64,
    /// The first number on the new link.
    pub first: u64,
}

/// The publisher's end of a flow: which links it has and is about to have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WriterHandover<R> {
    last: Epoch,
    current: Option<(Epoch, R)>,
    opening: Option<(Epoch, R)>,
    /// Links that were left, and that the subscription may still take from.
    closing: Vec<(Epoch, R)>,
}

/// What became of [`WriterHandover::begin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Offer it to the subscription under this number.
    Offer {
        /// Of the link that is to be opened.
        epoch: Epoch,
        /// Of a link that was being opened and is not wanted any more: it is to be told too, first.
        withdrawn: Option<Epoch>,
    },
    /// It is the link that stands. One that was being opened is not wanted any more.
    Stands {
        /// Of that one.
        withdrawn: Option<Epoch>,
    },
    /// It is being opened already.
    UnderWay,
    /// The subscription still takes from it what came before, or from too many others. To be begun
    /// again after [`WriterHandover::done`].
    NotYet,
}

impl<R> Default for WriterHandover<R> {
    fn default() -> Self {
        Self { last: Epoch(0), current: None, opening: None, closing: Vec::new() }
    }
}

impl<R: PartialEq> WriterHandover<R> {
    /// Links that were left and are not finished, beyond which no other is begun.
    pub const CLOSING_MAX: usize = 4;

    /// The end of a flow whose links are numbered on from this one.
    pub fn following(last: Epoch) -> Self {
        Self { last, ..Self::default() }
    }

    /// Begins to open a link.
    pub fn begin(&mut self, link: R) -> Begun {
        if self.current().is_some_and(|it| *it == link) {
            return Begun::Stands { withdrawn: self.withdraw() };
        }
        if self.opening().is_some_and(|it| *it == link) {
            return Begun::UnderWay;
        }
        if self.is_left(&link) || Self::CLOSING_MAX <= self.closing.len() {
            return Begun::NotYet;
        }
        let withdrawn = self.withdraw();
        self.last = Epoch(self.last.0.wrapping_add(1));
        self.opening = Some((self.last, link));
        Begun::Offer { epoch: self.last, withdrawn }
    }

    /// The link that is being opened is not wanted any more.
    pub fn withdraw(&mut self) -> Option<Epoch> {
        self.opening.take().map(|(epoch, _)| epoch)
    }

    /// The link of `epoch` is not to be had. Answers whether it was being opened.
    pub fn refused(&mut self, epoch: Epoch) -> bool {
        let is_opening = self.is_opening(epoch);
        if is_opening {
            self.opening = None;
        }
        is_opening
    }

    /// The link of `epoch` has matched, and carries from here on: the [`Cut`] is said before anything is
    /// sent on it. Answers whether it was being opened; else it is to be left alone.
    pub fn carry(&mut self, epoch: Epoch) -> bool {
        if !self.is_opening(epoch) {
            return false;
        }
        let left = std::mem::replace(&mut self.current, self.opening.take());
        self.closing.extend(left);
        true
    }

    /// The subscription has all that came before the link of `epoch`.
    pub fn done(&mut self, epoch: Epoch) {
        self.closing.retain(|(it, _)| epoch <= *it);
    }

    /// Nothing stands any more, nor is being opened: the subscription was told that it is over.
    pub fn end(&mut self) {
        let last = self.last;
        *self = Self { last, ..Self::default() };
    }

    /// The link that carries.
    pub fn current(&self) -> Option<&R> {
        self.current.as_ref().map(|(_, link)| link)
    }

    /// The link that is being opened.
    pub fn opening(&self) -> Option<&R> {
        self.opening.as_ref().map(|(_, link)| link)
    }

    /// The number of the link that is being opened.
    pub fn opening_epoch(&self) -> Option<Epoch> {
        self.opening.as_ref().map(|(epoch, _)| *epoch)
    }

    /// The number of the link that was offered last.
    pub fn last(&self) -> Epoch {
        self.last
    }

    /// Whether the subscription has finished with all links that were left.
    pub fn is_settled(&self) -> bool {
        self.closing.is_empty()
    }

    /// Whether it was left and the subscription may still take from it. If it goes on for others, it does
    /// so without a gap, or is silent until this is over.
    pub fn is_left(&self, link: &R) -> bool {
        self.closing.iter().any(|(_, it)| it == link)
    }

    fn is_opening(&self, epoch: Epoch) -> bool {
        self.opening.as_ref().is_some_and(|(it, _)| *it == epoch)
    }
}

/// The subscription's end of a flow while its link changes: turns what several links bring into each
/// sample once and in order.
///
/// A link keeps order: when it brings a sample, what it has not brought before it was lost on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReaderHandover<S> {
    /// The oldest first. The first of them delivers; there is always one.
    links: VecDeque<OpenLink<S>>,
    /// The number of the next sample, as the flow counts it: the first link's own numbers, continued.
    next: Option<u64>,
    due: VecDeque<(u64, S)>,
    /// Held and not wanted after all.
    discarded: Vec<S>,
    held: usize,
    held_max: usize,
    held_peak: usize,
    /// Each link counts for itself, so that the same number on two of them is not the same sample, and a
    /// number says nothing before the link's cut is known.
    is_counted_apart: bool,
}

/// A link at the subscription's end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OpenLink<S> {
    epoch: Epoch,
    /// Its first number, once its cut is known.
    first: Option<u64>,
    /// Its first number that the next link brings, once that one's cut is known.
    end: Option<u64>,
    /// To be added to its numbers, so that those of the flow go on.
    shift: u64,
    /// It brings nothing more.
    is_over: bool,
    /// In its own numbers: what is before it was brought, or was lost on the link, or is not wanted.
    past: u64,
    /// In its own numbers.
    held: VecDeque<(u64, S)>,
}

/// What became of a sample that a link brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival<S> {
    /// Deliver it, under this number.
    Deliver(u64, S),
    /// It is held. To bound what is held, this older one was let go.
    Held(Option<S>),
    /// It has come before, or another link owes it, or its link is not open.
    Repeated(S),
}

impl<S> ReaderHandover<S> {
    /// The most links that are open at one time.
    pub const LINKS_MAX: usize = WriterHandover::<()>::CLOSING_MAX + 1;

    /// An end whose link is that of `epoch` and whose next sample is `next`, if that is known, in
    /// numbers that differ from the link's own by `shift`. It holds at most `held_max` samples, at
    /// least one.
    pub fn new(epoch: Epoch, next: Option<u64>, shift: u64, held_max: usize) -> Self {
        let first = next.map(|it| it.wrapping_sub(shift));
        let current = OpenLink { first, shift, past: first.unwrap_or(0), ..OpenLink::new(epoch) };
        Self {
            links: VecDeque::from([current]),
            next,
            due: VecDeque::new(),
            discarded: Vec::new(),
            held: 0,
            held_max: held_max.max(1),
            held_peak: 0,
            is_counted_apart: shift != 0,
        }
    }

    /// The same of a flow each of whose links counts for itself, as replies are counted where all clients
    /// of a server get them: what a link brings behind its end is nothing of what the next one brings.
    #[must_use]
    pub fn counted_apart(self) -> Self {
        Self { is_counted_apart: true, ..self }
    }

    /// A newer link is open at this end. No handover ever has more than [`LINKS_MAX`](Self::LINKS_MAX)
    /// of them open; one beyond is not opened.
    pub fn open(&mut self, epoch: Epoch) {
        let is_newer = self.links.back().is_none_or(|it| it.epoch < epoch);
        if is_newer && self.links.len() < Self::LINKS_MAX {
            self.links.push_back(OpenLink::new(epoch));
        }
    }

    /// A link that was opened and has carried nothing will not.
    pub fn withdraw(&mut self, epoch: Epoch) {
        let is_idle = |link: &OpenLink<S>| link.epoch == epoch && link.first.is_none();
        let at = (1..self.links.len()).find(|at| is_idle(&self.links[*at]));
        let link = at.and_then(|at| self.links.remove(at));
        self.discard(link);
    }

    /// The publisher's word from where on a link carries. Answers `false` if that link is not open, or
    /// it or a newer one carries already. Then ask [`next_due`](Self::next_due).
    pub fn cut(&mut self, cut: Cut) -> bool {
        let carrying = self.links.iter().rposition(|it| it.first.is_some()).unwrap_or(0);
        let at = self.links.iter().position(|it| it.epoch == cut.epoch);
        let Some(at) = at.filter(|at| carrying < *at) else { return false };
        let before = &mut self.links[carrying];
        before.end = Some(cut.ends);
        let shift = cut.ends.wrapping_add(before.shift).wrapping_sub(cut.first);
        let link = &mut self.links[at];
        link.first = Some(cut.first);
        link.past = link.past.max(cut.first);
        link.shift = shift;
        self.is_counted_apart |= shift != 0;
        self.advance();
        true
    }

    /// The link of `epoch` brought the sample that it counts as `sequence`. Then ask
    /// [`next_due`](Self::next_due).
    pub fn arrive(&mut self, epoch: Epoch, sequence: u64, sample: S) -> Arrival<S> {
        let Some(at) = self.links.iter().position(|it| it.epoch == epoch) else {
            return Arrival::Repeated(sample);
        };
        let is_past = (at == 0 || !self.is_counted_apart) && self.is_past(at, sequence);
        let link = &mut self.links[at];
        let is_behind = link.end.is_some_and(|end| end <= sequence);
        let is_known = sequence < link.past;
        let number = sequence.wrapping_add(link.shift);
        link.past = link.past.max(sequence.saturating_add(1));
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
        link.held.push_back((sequence, sample));
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

    /// Samples that were held and are not wanted after all: they have come another way, or their link
    /// never carried.
    pub fn discarded(&mut self) -> Vec<S> {
        std::mem::take(&mut self.discarded)
    }

    /// The link of `epoch` brings nothing more of what it owes. Then ask
    /// [`next_due`](Self::next_due).
    pub fn over(&mut self, epoch: Epoch) {
        if let Some(link) = self.links.iter_mut().find(|it| it.epoch == epoch) {
            link.is_over = true;
        }
        self.advance();
    }

    /// The publisher is gone and no cut will come any more: what is held goes out behind what its link
    /// has brought. Where links count differently, that of a link whose cut did not come is discarded:
    /// it may have come before. Then ask [`next_due`](Self::next_due).
    pub fn end(&mut self) {
        while let Some(link) = self.links.get(1) {
            let guess = link.held.front().filter(|_| !self.is_counted_apart);
            if self.is_ending() {
                self.links[0].is_over = true;
                self.advance();
            } else if let Some((first, _)) = guess {
                self.cut(Cut { epoch: link.epoch, ends: *first, first: *first });
            } else {
                let link = self.links.remove(1);
                self.discard(link);
            }
        }
    }

    /// The link that delivers.
    pub fn current(&self) -> Epoch {
        self.links[0].epoch
    }

    /// Whether it is known where the link that delivers ends, so that only its samples are waited for.
    pub fn is_ending(&self) -> bool {
        self.links[0].end.is_some()
    }

    /// Whether one link is left, and nothing is held.
    pub fn is_settled(&self) -> bool {
        self.links.len() == 1 && self.due.is_empty()
    }

    /// Whether the link of `epoch` is open at this end.
    pub fn is_open(&self, epoch: Epoch) -> bool {
        self.links.iter().any(|it| it.epoch == epoch)
    }

    /// Whether one sample more would push out another.
    pub fn is_full(&self) -> bool {
        self.held_max <= self.held
    }

    /// The number of the next sample.
    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// What is to be added to the numbers of the link that delivers.
    pub fn shift(&self) -> u64 {
        self.links[0].shift
    }

    /// The number from which on the link that delivers is the one to do so.
    pub fn since(&self) -> Option<u64> {
        self.links[0].first.map(|first| first.wrapping_add(self.links[0].shift))
    }

    /// The most samples that were held at one time.
    pub fn held_peak(&self) -> usize {
        self.held_peak
    }

    /// Whether a sample of this link has come before, as far as the links count alike.
    fn is_past(&self, at: usize, sequence: u64) -> bool {
        let link = &self.links[at];
        // Before its cut a link counts as the one that delivers.
        let shift = if link.first.is_some() { link.shift } else { self.links[0].shift };
        self.next.is_some_and(|next| sequence.wrapping_add(shift) < next)
    }

    /// What is held and has come by the link that delivers is not wanted any more.
    fn let_go_of_known(&mut self) {
        for at in 1..self.links.len() {
            while !self.is_counted_apart
                && let Some((sequence, _)) = self.links[at].held.front()
                && self.is_past(at, *sequence)
            {
                let known = self.links[at].held.pop_front();
                self.held -= 1;
                self.discarded.extend(known.map(|(_, sample)| sample));
            }
        }
    }

    /// Lets the oldest sample go that is held.
    fn let_one_go(&mut self) -> Option<S> {
        let oldest = self.links.iter_mut().find_map(|link| link.held.pop_front());
        self.held -= usize::from(oldest.is_some());
        oldest.map(|(_, sample)| sample)
    }

    /// Goes on to the next link while the one that delivers has brought all that it owed.
    fn advance(&mut self) {
        while 1 < self.links.len() {
            let link = &self.links[0];
            let Some(end) = link.end else { return };
            let is_over = link.is_over || end <= link.past;
            let end = end.wrapping_add(link.shift);
            if !is_over && self.next.is_none_or(|next| next < end) {
                return;
            }
            self.links.pop_front();
            // Links that were opened after it and never carried were overtaken.
            while 1 < self.links.len() && self.links[0].first.is_none() {
                let overtaken = self.links.pop_front();
                self.discard(overtaken);
            }
            self.next = self.next.max(Some(end));
            let link = &mut self.links[0];
            if let Some((next, first)) = self.next.zip(link.first).filter(|_| self.is_counted_apart)
            {
                link.shift = next.wrapping_sub(first);
            }
            self.let_out();
        }
    }

    /// Lets out what is held of the link that delivers now.
    fn let_out(&mut self) {
        let link = &mut self.links[0];
        let (shift, first) = (link.shift, link.first.unwrap_or(0));
        let end = link.end.unwrap_or(u64::MAX);
        for (sequence, sample) in std::mem::take(&mut link.held) {
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

    fn discard(&mut self, link: Option<OpenLink<S>>) {
        let held = link.map(|it| it.held).unwrap_or_default();
        self.held -= held.len();
        self.discarded.extend(held.into_iter().map(|(_, sample)| sample));
    }
}

impl<S> OpenLink<S> {
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

    /// Runs steps as `0:7` (the link of epoch 0 brings sample 7), `open 1`, `cut 1:9`, `cut 1:9=3` (whose
    /// own numbers begin at 3), `over 0`, `end` and `withdraw 1`, and tells what came of each.
    fn run(handover: &mut ReaderHandover<u64>, steps: &str) -> String {
        let mut told = Vec::new();
        for step in steps.split(", ") {
            let (word, rest) = step.split_once(' ').unwrap_or(("", step));
            let number = |text: &str| text.parse::<u64>().unwrap();
            let mut words = Vec::new();
            match word {
                "open" => handover.open(Epoch(number(rest) as u32)),
                "over" => handover.over(Epoch(number(rest) as u32)),
                "withdraw" => handover.withdraw(Epoch(number(rest) as u32)),
                "cut" => {
                    let (epoch, at) = rest.split_once(':').unwrap();
                    let (ends, first) = at.split_once('=').unwrap_or((at, at));
                    let epoch = Epoch(number(epoch) as u32);
                    let cut = Cut { epoch, ends: number(ends), first: number(first) };
                    if !handover.cut(cut) {
                        words.push("ignored".to_owned());
                    }
                }
                _ if rest == "end" => handover.end(),
                _ => {
                    let (epoch, sequence) = rest.split_once(':').unwrap();
                    let sequence = number(sequence);
                    words.push(
                        match handover.arrive(Epoch(number(epoch) as u32), sequence, sequence) {
                            Arrival::Deliver(number, _) => number.to_string(),
                            Arrival::Held(None) => "held".to_owned(),
                            Arrival::Held(Some(oldest)) => format!("held for {oldest}"),
                            Arrival::Repeated(_) => "again".to_owned(),
                        },
                    );
                }
            }
            while let Some((number, _)) = handover.next_due() {
                words.push(number.to_string());
            }
            told.push(if words.is_empty() { ".".to_owned() } else { words.join(" ") });
        }
        told.join(", ")
    }

    #[track_caller]
    fn check(steps: &str, expect: &str) {
        assert_eq!(run(&mut ReaderHandover::new(Epoch(0), Some(1), 0, 3), steps), expect);
    }

    #[test]
    fn the_new_link_waits_for_the_old() {
        check("0:1, open 1, 1:3, cut 1:3, 1:4, 0:2, 1:5", "1, ., held, ., held, 2 3 4, 5");
        check("0:1, 0:2, open 1, cut 1:3, 1:3", "1, 2, ., ., 3");
        check("open 1, cut 1:1, 1:1", "., ., 1");
    }

    #[test]
    fn what_the_old_link_lost_is_waited_for_until_it_is_over() {
        check("0:1, open 1, cut 1:4, 1:4, 0:2, over 0, 1:5", "1, ., ., held, 2, 4, 5");
        // What the old link brings for others shows that it has brought all else.
        check("0:1, open 1, cut 1:4, 1:4, 0:2, 0:5, 1:5", "1, ., ., held, 2, again 4, 5");
        check("open 1, cut 1:2, open 2, 1:3, cut 2:3, 2:3, 0:1", "., ., ., held, ., held, 1 3");
    }

    #[test]
    fn what_was_pushed_out_is_not_waited_for() {
        let mut handover = ReaderHandover::new(Epoch(0), Some(1), 0, 1);
        let steps = "open 1, cut 1:2, 1:2, open 2, cut 2:3, 2:3, 0:1, 2:4";
        let expect = "., ., held, ., ., held for 2, 1 3, 4";
        assert_eq!(run(&mut handover, steps), expect);
    }

    #[test]
    fn nothing_comes_twice() {
        check(
            "0:1, 0:1, open 1, 1:2, 1:2, cut 1:2, 1:2, 0:2, 0:3",
            "1, again, ., held, again, 2, again, again, again",
        );
        // The new link was there for others before.
        check("0:1, open 1, 1:1, cut 1:3, 1:2, 1:3, 0:2", "1, ., again, ., again, held, 2 3");
        // Links that count apart bring what was sent before the flow.
        check("open 1, cut 1:1=90, 1:7, 1:90", "., ., again, 1");
        let mut handover = ReaderHandover::new(Epoch(0), Some(1), 0u64.wrapping_sub(7), 3);
        assert_eq!(run(&mut handover, "0:3, 0:8, 0:9"), "again, 1, 2");
        // The old link went on for others.
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
    fn numbers_go_on_where_links_count_differently() {
        check("0:1, open 1, 1:7, cut 1:3=7, 1:8, 0:2, 1:9", "1, ., held, ., held, 2 3 4, 5");
        check("open 1, cut 1:1=90, 1:90, open 2, cut 2:91=4, 2:4, 2:5", "., ., 1, ., ., 2, 3");
    }

    #[test]
    fn what_a_link_brings_behind_its_end_is_not_what_the_next_brings_that_is_counted_apart() {
        let steps = "0:1, open 1, 0:2, 0:3, cut 1:2, 1:2, 1:3, 0:4";
        let mut handover = ReaderHandover::new(Epoch(0), Some(1), 0, 3).counted_apart();
        assert_eq!(run(&mut handover, steps), "1, ., 2, 3, ., 4, 5, again");
    }

    #[test]
    fn when_the_publisher_is_gone_all_that_came_goes_out() {
        check("0:1, open 1, 1:3, 1:4, end", "1, ., held, held, 3 4");
        check("0:1, open 1, cut 1:3, 1:3, open 2, 2:5, end", "1, ., ., held, ., held, 3 5");
        check("0:1, open 1, end, 0:2", "1, ., ., 2");
        // A link that was overtaken does not take the place of the one that carries.
        let overtaken = "open 1, 1:1, 1:5, open 2, cut 2:3, 2:3, end";
        check(overtaken, "., held, held, ., ., held, 3");
    }

    #[test]
    fn where_links_count_apart_nothing_is_guessed() {
        let steps = "open 1, cut 1:1=90, 1:90, open 2, 2:4, 2:5, end, 1:91";
        check(steps, "., ., 1, ., held, held, ., 2");
        let mut handover = ReaderHandover::new(Epoch(0), Some(1), 0, 3).counted_apart();
        assert_eq!(run(&mut handover, "0:1, open 1, 1:7, end, 0:2"), "1, ., held, ., 2");
        assert_eq!(handover.discarded(), [7]);
    }

    #[test]
    fn no_more_links_are_open_than_a_handover_has() {
        let mut handover = ReaderHandover::<u64>::new(Epoch(0), Some(1), 0, 1);
        (1..9).for_each(|it| handover.open(Epoch(it)));
        assert!(handover.is_open(Epoch(4)) && !handover.is_open(Epoch(5)));
    }

    #[test]
    fn a_handover_goes_from_link_to_link() {
        let mut handover = WriterHandover::default();
        let offer = |epoch| Begun::Offer { epoch: Epoch(epoch), withdrawn: None };
        assert_eq!(handover.begin('a'), offer(1));
        assert_eq!(handover.begin('a'), Begun::UnderWay);
        assert!(handover.carry(Epoch(1)));
        assert_eq!(handover.begin('a'), Begun::Stands { withdrawn: None });
        assert_eq!(handover.begin('b'), offer(2));
        let withdrawn = Some(Epoch(2));
        assert_eq!(handover.begin('c'), Begun::Offer { epoch: Epoch(3), withdrawn });
        assert!(!handover.carry(Epoch(2)) && !handover.refused(Epoch(2)));
        assert!(handover.carry(Epoch(3)));
        assert_eq!((handover.current(), handover.is_settled()), (Some(&'c'), false));
        // The subscription may still take from it.
        assert_eq!(handover.begin('a'), Begun::NotYet);
        assert!(handover.is_left(&'a') && !handover.is_left(&'b'));
        handover.done(Epoch(3));
        assert!(handover.is_settled() && !handover.is_left(&'a'));
        assert_eq!(handover.begin('a'), offer(4));
        assert!(handover.refused(Epoch(4)));
        assert_eq!((handover.current(), handover.opening()), (Some(&'c'), None));
        assert_eq!(handover.begin('b'), offer(5));
        assert_eq!(handover.begin('c'), Begun::Stands { withdrawn: Some(Epoch(5)) });
    }

    #[test]
    fn a_handover_has_few_links_that_are_not_finished() {
        let mut handover = WriterHandover::default();
        for link in 0..5 {
            assert!(matches!(handover.begin(link), Begun::Offer { .. }));
            assert!(handover.carry(handover.last()));
        }
        assert_eq!(handover.begin(9), Begun::NotYet);
        handover.end();
        assert_eq!(handover.begin(0), Begun::Offer { epoch: Epoch(6), withdrawn: None });
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
            let mut handover = ReaderHandover::new(Epoch(0), next, shift, 2);
            let mut last = None;
            for (epoch, word) in words {
                let epoch = Epoch(epoch);
                let mut delivered = Vec::new();
                match word {
                    Word::Open => handover.open(epoch),
                    Word::Withdraw => handover.withdraw(epoch),
                    Word::Cut { ends, first } => _ = handover.cut(Cut { epoch, ends, first }),
                    Word::Arrive { sequence } => {
                        if let Arrival::Deliver(number, ()) = handover.arrive(epoch, sequence, ()) {
                            delivered.push(number);
                        }
                    }
                    Word::Over => handover.over(epoch),
                    Word::End => {
                        handover.end();
                        prop_assert!(handover.links.len() == 1);
                    }
                }
                delivered.extend(std::iter::from_fn(|| handover.next_due()).map(|(number, ())| number));
                for number in delivered {
                    prop_assert!(last.is_none_or(|last| last < number || number == u64::MAX));
                    last = Some(number);
                }
                let held: usize = handover.links.iter().map(|it| it.held.len()).sum();
                prop_assert_eq!(held, handover.held);
                prop_assert!(handover.held_peak() <= 2 && handover.links.len() <= ReaderHandover::<()>::LINKS_MAX);
            }
        }
    }
}

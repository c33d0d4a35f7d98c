//! When a timer is due, as a value: it is told the time.

/// When a timer calls back, by a clock that may jump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    period_ns: i64,
    /// The last call, or what counts as one: when it was made, reset or a jump back began it anew.
    last_ns: i64,
    /// `None` while it is cancelled.
    next_ns: Option<i64>,
}

impl Plan {
    /// The first call is a period, at least 1, after now.
    pub(crate) fn new(period_ns: i64, now_ns: i64) -> Self {
        let period_ns = period_ns.max(1);
        Self { period_ns, last_ns: now_ns, next_ns: Some(now_ns.saturating_add(period_ns)) }
    }

    pub(crate) fn period_ns(&self) -> i64 {
        self.period_ns
    }

    /// When it is due; `None` for never.
    pub(crate) fn due_ns(&self) -> Option<i64> {
        self.next_ns
    }

    pub(crate) fn is_due(&self, now_ns: i64) -> bool {
        self.next_ns.is_some_and(|next_ns| next_ns <= now_ns)
    }

    /// Whether to call back now. Then it is due again at the first whole number of periods that is later than now.
    pub(crate) fn begin(&mut self, now_ns: i64) -> bool {
        let Some(next_ns) = self.next_ns.filter(|it| *it <= now_ns) else { return false };
        let missed = now_ns.saturating_sub(next_ns) / self.period_ns;
        let later_ns = missed.saturating_add(1).saturating_mul(self.period_ns);
        self.next_ns = Some(next_ns.saturating_add(later_ns));
        self.last_ns = now_ns;
        true
    }

    /// The clock shows `now_ns`, wherever it was before. Back before the last call a new period begins.
    pub(crate) fn moved(&mut self, now_ns: i64) {
        if now_ns < self.last_ns {
            self.last_ns = now_ns;
            self.next_ns = self.next_ns.map(|_| now_ns.saturating_add(self.period_ns));
        }
    }

    /// From now on another clock counts, which shows `now_ns` where the one before shows `before_ns`. What was left to wait
    /// is left.
    pub(crate) fn change_clock(&mut self, before_ns: i64, now_ns: i64) {
        let left_ns = |next_ns: i64| next_ns.saturating_sub(before_ns).clamp(0, self.period_ns);
        let next_ns = self.next_ns.map(|it| now_ns.saturating_add(left_ns(it)));
        self.last_ns = next_ns.map_or(now_ns, |it| it.saturating_sub(self.period_ns));
        self.next_ns = next_ns;
    }

    /// From now on another clock counts, of which nobody knows yet what it shows. With its first time a period begins.
    pub(crate) fn await_clock(&mut self) {
        self.last_ns = i64::MAX;
        self.next_ns = self.next_ns.map(|_| i64::MAX);
    }

    /// Begins a period now.
    pub(crate) fn reset(&mut self, now_ns: i64) {
        *self = Self::new(self.period_ns, now_ns);
    }

    /// The same, unless it is cancelled.
    pub(crate) fn reset_if_running(&mut self, now_ns: i64) {
        if self.next_ns.is_some() {
            self.reset(now_ns);
        }
    }

    pub(crate) fn cancel(&mut self) {
        self.next_ns = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn calls_that_were_missed_are_one() {
        let mut plan = Plan::new(10, 100);
        assert!(!plan.begin(109));
        assert!(plan.begin(110));
        assert_eq!(plan.due_ns(), Some(120));
        assert!(plan.begin(1003));
        assert!(!plan.begin(1003));
        assert_eq!(plan.due_ns(), Some(1010));
    }

    #[test]
    fn back_before_the_last_call_begins_a_period() {
        let mut plan = Plan::new(10, 100);
        assert!(plan.begin(112));
        plan.moved(113);
        plan.moved(112);
        assert_eq!(plan.due_ns(), Some(120));
        plan.moved(50);
        assert_eq!(plan.due_ns(), Some(60));
        plan.moved(3);
        assert_eq!(plan.due_ns(), Some(13));
    }

    #[test]
    fn what_is_left_is_left_by_another_clock() {
        let mut plan = Plan::new(10, 100);
        plan.change_clock(103, 1_000_000);
        assert_eq!(plan.due_ns(), Some(1_000_007));
        // Whoever was late is due at once, and once.
        plan.change_clock(2_000_000, 5);
        assert_eq!(plan.due_ns(), Some(5));
        assert!(plan.begin(5) && !plan.begin(5));
        plan.await_clock();
        assert!(!plan.is_due(i64::MAX - 1));
        plan.moved(700);
        assert_eq!(plan.due_ns(), Some(710));
    }

    #[test]
    fn cancelled_is_never_due_until_it_is_reset() {
        let mut plan = Plan::new(10, 100);
        plan.cancel();
        plan.moved(i64::MAX);
        plan.moved(0);
        plan.change_clock(0, 50);
        plan.await_clock();
        plan.moved(60);
        assert!(!plan.begin(i64::MAX));
        assert_eq!(plan.due_ns(), None);
        plan.reset(60);
        assert_eq!(plan.due_ns(), Some(70));
    }

    #[derive(Clone, Debug)]
    enum Event {
        Move(i64),
        Call,
        Change(i64),
        Await,
        Reset,
    }

    fn event() -> impl Strategy<Value = Event> {
        let time = prop_oneof![0..2_000i64, 0..i64::MAX, Just(i64::MAX)];
        prop_oneof![
            8 => time.clone().prop_map(Event::Move),
            8 => Just(Event::Call),
            2 => time.prop_map(Event::Change),
            1 => Just(Event::Await),
            1 => Just(Event::Reset),
        ]
    }

    proptest! {
        /// However time moves, a timer waits for at most one period from where time is, and calls once at a time.
        #[test]
        fn no_jump_stalls_a_timer_or_makes_a_burst(
            period_ns in 1..1_000i64,
            events in prop::collection::vec(event(), 1..60),
        ) {
            let mut now_ns = 500;
            let mut plan = Plan::new(period_ns, now_ns);
            for event in events {
                match event {
                    Event::Move(to_ns) => {
                        now_ns = to_ns;
                        plan.moved(now_ns);
                    }
                    Event::Call => {
                        if plan.begin(now_ns) && now_ns < i64::MAX - 2 * period_ns {
                            prop_assert!(!plan.begin(now_ns), "twice at {now_ns}");
                        }
                    }
                    Event::Change(to_ns) => {
                        plan.change_clock(now_ns, to_ns);
                        now_ns = to_ns;
                    }
                    Event::Await => {
                        plan.await_clock();
                        now_ns = 42;
                        plan.moved(now_ns);
                    }
                    Event::Reset => plan.reset(now_ns),
                }
                let due_ns = plan.due_ns().unwrap();
                prop_assert!(due_ns <= now_ns.saturating_add(period_ns), "{due_ns} at {now_ns}");
            }
        }

        /// While time goes forward without a jump, every period has its call, on the beat of the first.
        #[test]
        fn small_steps_miss_no_call(
            period_ns in 1..1_000i64,
            steps in prop::collection::vec(0..1_000i64, 1..100),
        ) {
            let (mut now_ns, mut calls) = (0, 0);
            let mut plan = Plan::new(period_ns, now_ns);
            for step_ns in steps {
                now_ns += step_ns.min(period_ns);
                plan.moved(now_ns);
                calls += i64::from(plan.begin(now_ns));
            }
            prop_assert_eq!(calls, now_ns / period_ns);
        }
    }
}

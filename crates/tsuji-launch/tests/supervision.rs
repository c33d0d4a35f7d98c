//! When processes are started, told to end and started again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use proptest::prelude::*;
use tsuji_launch::{End, Order, Patience, Respawn, Signal, Supervised, Supervision};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn orders(all: &mut Supervision, now: Duration) -> Vec<Order> {
    std::iter::from_fn(|| all.poll(now)).collect()
}

const PATIENT: Supervised = Supervised {
    respawn: None,
    shuts_down: false,
    patience: Patience {
        until_terminate: Duration::from_secs(5),
        until_kill: Duration::from_secs(5),
    },
};

#[test]
fn who_does_not_end_is_told_with_more_and_more_force() {
    let mut all = Supervision::new(vec![PATIENT; 2]);
    assert_eq!(orders(&mut all, ms(0)), [Order::Start(0), Order::Start(1)]);
    assert_eq!(all.timeout(), None);
    all.stop(ms(100));
    let tell = |signal| [Order::Tell(0, signal), Order::Tell(1, signal)];
    assert_eq!(orders(&mut all, ms(100)), tell(Signal::Interrupt));
    all.ended(ms(200), 1, End::Exited(0), false);
    assert_eq!(all.timeout(), Some(ms(5100)));
    assert_eq!(orders(&mut all, ms(5099)), []);
    assert_eq!(orders(&mut all, ms(5100)), [Order::Tell(0, Signal::Terminate)]);
    assert_eq!(orders(&mut all, ms(10_100)), [Order::Tell(0, Signal::Kill)]);
    assert_eq!(all.timeout(), None);
    all.ended(ms(10_200), 0, End::Signalled(9), false);
    assert!(all.is_over());
    assert_eq!(all.failed(), 0);
}

#[test]
fn a_second_wish_to_end_hastens() {
    let mut all = Supervision::new(vec![PATIENT]);
    orders(&mut all, ms(0));
    for (at, signal) in [(1, Signal::Interrupt), (2, Signal::Terminate), (3, Signal::Kill)] {
        all.stop(ms(at));
        assert_eq!(orders(&mut all, ms(at)), [Order::Tell(0, signal)]);
    }
    all.stop(ms(4));
    assert_eq!(orders(&mut all, ms(4)), []);
}

#[test]
fn who_ends_is_started_again_as_often_as_it_may() {
    let respawn = Some(Respawn { delay: ms(500), retries_max: Some(1) });
    let mut all = Supervision::new(vec![Supervised { respawn, ..PATIENT }]);
    orders(&mut all, ms(0));
    all.ended(ms(10), 0, End::Signalled(9), false);
    assert_eq!(orders(&mut all, ms(10)), [Order::Respawn(0, ms(500))]);
    assert_eq!(all.timeout(), Some(ms(510)));
    assert_eq!(orders(&mut all, ms(510)), [Order::Start(0)]);
    all.ended(ms(600), 0, End::Exited(1), false);
    assert_eq!(orders(&mut all, ms(600)), [Order::GiveUp(0)]);
    assert!(all.is_over());
    assert_eq!(all.failed(), 1);
}

#[test]
fn who_cannot_live_keeps_nobody_busy_and_is_not_started_at_the_end() {
    let respawn = Some(Respawn { delay: ms(0), retries_max: None });
    let mut all = Supervision::new(vec![Supervised { respawn, ..PATIENT }]);
    orders(&mut all, ms(0));
    all.ended(ms(0), 0, End::Exited(0), false);
    assert_eq!(orders(&mut all, ms(0)), [Order::Respawn(0, ms(100))]);
    all.stop(ms(50));
    assert_eq!(orders(&mut all, ms(500)), []);
    assert!(all.is_over());
}

#[test]
fn the_end_of_one_may_be_that_of_all() {
    let mut all = Supervision::new(vec![Supervised { shuts_down: true, ..PATIENT }, PATIENT]);
    orders(&mut all, ms(0));
    all.ended(ms(10), 0, End::Exited(2), false);
    let expect = [Order::ShutDown(0), Order::Tell(1, Signal::Interrupt)];
    assert_eq!(orders(&mut all, ms(10)), expect);
    all.ended(ms(20), 1, End::Exited(0), false);
    assert!(all.is_over());
    assert_eq!(all.failed(), 1);
}

#[test]
fn what_a_process_leaves_behind_is_ended_before_it_is_over() {
    let respawn = Some(Respawn { delay: ms(100), retries_max: None });
    let mut all = Supervision::new(vec![Supervised { respawn, ..PATIENT }]);
    orders(&mut all, ms(0));
    all.ended(ms(10), 0, End::Exited(0), true);
    assert_eq!(orders(&mut all, ms(10)), [Order::Tell(0, Signal::Terminate)]);
    assert_eq!(all.leaving().collect::<Vec<_>>(), [0]);
    assert_eq!(orders(&mut all, ms(5010)), [Order::Tell(0, Signal::Kill)]);
    all.emptied(ms(5020), 0);
    assert_eq!(orders(&mut all, ms(5020)), [Order::Respawn(0, ms(100))]);
    assert_eq!(orders(&mut all, ms(5120)), [Order::Start(0)]);
}

#[test]
fn one_that_cannot_be_started_ends_all() {
    let mut all = Supervision::new(vec![PATIENT; 3]);
    assert_eq!(all.poll(ms(0)), Some(Order::Start(0)));
    assert_eq!(all.poll(ms(0)), Some(Order::Start(1)));
    all.not_started(ms(0), 1);
    assert_eq!(orders(&mut all, ms(0)), [Order::Tell(0, Signal::Interrupt)]);
    all.ended(ms(1), 0, End::Exited(0), false);
    assert!(all.is_over());
    assert_eq!(all.failed(), 1);
}

#[derive(Clone, Debug)]
enum Event {
    Ended(usize, bool, bool),
    Emptied(usize),
    Stop,
    Time(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..3_usize, any::<bool>(), any::<bool>()).prop_map(|(a, b, c)| Event::Ended(a, b, c)),
        2 => (0..3_usize).prop_map(Event::Emptied),
        1 => Just(Event::Stop),
        4 => (0..8000_u64).prop_map(Event::Time),
    ]
}

proptest! {
    /// Whatever happens: a process is started only when it does not run, never after the wish to end, is told more and
    /// more, and time alone brings every process that is told to end to SIGKILL.
    #[test]
    fn nobody_is_forgotten(
        respawns in prop::collection::vec(any::<bool>(), 3),
        events in prop::collection::vec(event(), 0..60),
    ) {
        let respawn = Some(Respawn { delay: ms(200), retries_max: Some(5) });
        let all = respawns.iter().map(|it| Supervised { respawn: respawn.filter(|_| *it), ..PATIENT });
        let mut all = Supervision::new(all.collect());
        let mut runs = [false; 3];
        let mut told: [Option<Signal>; 3] = [None; 3];
        let mut now = ms(0);
        let rank = |it: Option<Signal>| it.map_or(0, |it| match it {
            Signal::Interrupt => 1, Signal::Terminate => 2, Signal::Kill => 3,
        });
        let end = [Event::Stop, Event::Time(6000), Event::Time(6000)];
        for event in events.into_iter().chain(end) {
            match event {
                Event::Ended(process, is_good, is_left) => {
                    let end = if is_good { End::Exited(0) } else { End::Signalled(11) };
                    let is_leaving = all.leaving().any(|it| it == process);
                    if runs[process] && !is_leaving {
                        all.ended(now, process, end, is_left);
                        runs[process] = is_left;
                    }
                }
                Event::Emptied(process) => {
                    if all.leaving().any(|it| it == process) {
                        all.emptied(now, process);
                        runs[process] = false;
                    }
                }
                Event::Stop => all.stop(now),
                Event::Time(by) => now += ms(by),
            }
            for order in orders(&mut all, now) {
                match order {
                    Order::Start(process) => {
                        prop_assert!(!runs[process] && !all.is_stopping());
                        runs[process] = true;
                        told[process] = None;
                    }
                    Order::Tell(process, signal) => {
                        prop_assert!(runs[process]);
                        prop_assert!(rank(told[process]) < rank(Some(signal)));
                        told[process] = Some(signal);
                    }
                    _ => {}
                }
            }
            prop_assert!(all.timeout().is_none_or(|at| now < at));
        }
        for process in 0..3 {
            prop_assert!(!runs[process] || told[process] == Some(Signal::Kill));
            if runs[process] {
                all.ended(now, process, End::Signalled(9), false);
                all.emptied(now, process);
            }
        }
        prop_assert!(all.is_over());
    }
}

//! What runs long: `make soak` sets `TSUJI_SOAK_SECONDS`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "it says how far it came")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tsuji::{Context, History, Publisher, Qos, Subscription, WaitSet};
use tsuji_interfaces::std_msgs::msg::UInt64;

/// Only there to end a hung test.
const HANG: Duration = Duration::from_secs(60);

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("tsuji-soak-{name}-{}", std::process::id())))
    }

    fn process(&self) -> Context {
        Context::builder().runtime_dir(&self.0).isolated().build().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn soak_time() -> Duration {
    let seconds = std::env::var("TSUJI_SOAK_SECONDS").ok().and_then(|it| it.parse().ok());
    Duration::from_secs(seconds.unwrap_or(10))
}

fn keep_all() -> Qos {
    Qos { history: History::KeepAll, ..Qos::DEFAULT }
}

fn next(subscription: &Subscription<UInt64>, set: &WaitSet) -> u64 {
    loop {
        if let Some(received) = subscription.take().unwrap() {
            return received.view().data;
        }
        let ready = set.wait(HANG).unwrap();
        assert!(!ready.is_empty(), "a wake-up was lost, or the other end is stuck");
    }
}

/// Two processes wake each other for as long as it takes; a lost wake-up would end it.
#[test]
#[ignore = "runs long"]
fn soak_no_wake_up_is_lost() {
    let folder = Folder::new("wake");
    let (one, two) = (folder.process(), folder.process());
    let end = |context: &Context, sends: &str, hears: &str| {
        let node = context.node("end").unwrap();
        let publisher = node.create_publisher::<UInt64>(sends, keep_all()).unwrap();
        let subscription = node.create_polled_subscription::<UInt64>(hears, keep_all()).unwrap();
        (publisher, subscription)
    };
    let (ping, pong): (_, (Publisher<UInt64>, Subscription<UInt64>)) =
        (end(&one, "ping", "pong"), end(&two, "pong", "ping"));
    ping.0.wait_for_subscriptions(1, HANG).unwrap();
    pong.0.wait_for_subscriptions(1, HANG).unwrap();
    let give_up = Instant::now() + soak_time();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut set = WaitSet::new(&two).unwrap();
            set.add(&pong.1).unwrap();
            loop {
                let number = next(&pong.1, &set);
                pong.0.publish(UInt64 { data: number }).unwrap();
                if number == u64::MAX {
                    return;
                }
            }
        });
        let mut set = WaitSet::new(&one).unwrap();
        set.add(&ping.1).unwrap();
        let mut rounds = 0;
        while Instant::now() < give_up {
            for _ in 0..1000 {
                ping.0.publish(UInt64 { data: rounds }).unwrap();
                assert_eq!(next(&ping.1, &set), rounds);
                rounds += 1;
            }
        }
        ping.0.publish(UInt64 { data: u64::MAX }).unwrap();
        assert_eq!(next(&ping.1, &set), u64::MAX);
        println!("{rounds} round trips");
    });
}

/// Endpoints come and go while samples flow; memory and descriptors stay where they were.
#[test]
#[ignore = "runs long"]
fn soak_endpoints_come_and_go() {
    let folder = Folder::new("come-and-go");
    let (one, two) = (folder.process(), folder.process());
    let talker = one.node("talker").unwrap();
    let publisher = talker.create_publisher::<UInt64>("count", keep_all()).unwrap();
    let listener = two.node("listener").unwrap();
    let give_up = Instant::now() + soak_time();
    let reserved = || {
        let figures = one.transports().into_iter().find(|it| it.name == "shm").unwrap().figures;
        figures.into_iter().find(|(name, _)| name == "reserved_bytes").unwrap().1
    };
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let (mut rounds, mut first) = (0u64, None);
    while Instant::now() < give_up {
        let subscription =
            listener.create_polled_subscription::<UInt64>("count", keep_all()).unwrap();
        subscription.wait_for_publishers(1, HANG).unwrap();
        let mut set = WaitSet::new(&two).unwrap();
        set.add(&subscription).unwrap();
        for number in 0..100 {
            publisher.publish(UInt64 { data: number }).unwrap();
        }
        // Half of it is never taken.
        for number in 0..50 {
            assert_eq!(next(&subscription, &set), number);
        }
        drop((set, subscription));
        one.wait_for_graph(HANG, |graph| (graph.endpoints.len() == 1).then_some(()))
            .unwrap()
            .unwrap();
        rounds += 1;
        if rounds == 100 {
            first = Some((reserved(), descriptors()));
        }
    }
    println!("{rounds} rounds");
    if let Some((bytes, fds)) = first {
        assert!(reserved() <= bytes, "{} bytes, {bytes} before", reserved());
        assert_eq!(descriptors(), fds);
    }
}

/// How long it takes to make and to drop one more flow where there are none, and where there are very many.
#[test]
#[ignore = "runs long"]
fn soak_the_last_of_many_flows_is_as_the_first() {
    let many = std::env::var("TSUJI_FLOWS").ok().and_then(|it| it.parse().ok()).unwrap_or(20_000);
    let folder = Folder::new("many");
    // An engine takes the longer the more there is to tell others.
    let builder = Context::builder().runtime_dir(&folder.0).interop(tsuji::Interop::NONE);
    let context = builder.isolated().build().unwrap();
    let node = context.node("many").unwrap();
    let flow = |number: usize| {
        let topic = format!("/t{number}");
        let publisher = node.create_publisher::<UInt64>(&topic, Qos::DEFAULT).unwrap();
        let subscription = node.create_polled_subscription::<UInt64>(&topic, Qos::DEFAULT).unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        (publisher, subscription)
    };
    // The median of some, made and dropped one by one.
    let measure = |from: usize| {
        let times = (from..from + 101).map(|number| {
            let start = Instant::now();
            let made = flow(number);
            let made_in = start.elapsed();
            let start = Instant::now();
            drop(made);
            (made_in, start.elapsed())
        });
        let (mut made, mut dropped): (Vec<_>, Vec<_>) = times.unzip();
        made.sort();
        dropped.sort();
        (made[50], dropped[50])
    };
    measure(0);
    let first = measure(0);
    let start = Instant::now();
    let kept: Vec<_> = (0..many).map(flow).collect();
    let all = start.elapsed();
    let last = measure(many);
    println!(
        "{many} flows in {all:?}: made in {:?}, then {:?}; dropped in {:?}, then {:?}",
        first.0, last.0, first.1, last.1
    );
    // What looks at all for each would take a hundred times as long and more.
    assert!(last.0 < 50 * first.0.max(Duration::from_micros(100)), "{first:?}, {last:?}");
    assert!(last.1 < 50 * first.1.max(Duration::from_micros(100)), "{first:?}, {last:?}");
    drop(kept);
}

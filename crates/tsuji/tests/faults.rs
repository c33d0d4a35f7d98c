//! Links that lose, repeat and delay samples: what a subscription then counts, tells and delivers.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use house::{Folder, HANG, keep_all, keep_last, take_until};
use tsuji::{
    Context, ErrorKind, Executor, Node, Publisher, Qos, RawType, RouteReport, RouteState,
    Subscription, SubscriptionEvent, SubscriptionOptions,
};
use tsuji_core::{Capability, TransportId};
use tsuji_interfaces::std_msgs::msg::UInt64;
use tsuji_transport::bell::Cell;
use tsuji_transport::faulty::{FaultCounts, Faults, Faulty};
use tsuji_transport::{
    Endpoint, Error, ErrorKind as TransportErrorKind, Handshake, PeerId, Reader, Result, Transport,
    Writer,
};

const LOSE: Faults = Faults { loss: 1.0, ..Faults::NONE };
const REPEAT: Faults = Faults { duplicate: 1.0, ..Faults::NONE };
const DELAY: Faults = Faults { delay: 1.0, delay_samples: 3, ..Faults::NONE };
const CUT: Faults = Faults { cut: true, ..Faults::NONE };

/// A publisher and a subscription over faulty transports, in one process or in two.
struct Flow {
    faulty: Vec<Faulty>,
    publisher: Publisher<UInt64>,
    subscription: Subscription<UInt64>,
    node: Node,
    context: Context,
    told: Arc<Mutex<Vec<SubscriptionEvent>>>,
    _folder: Folder,
}

/// A context whose transports are all faulty, and these.
fn faulty_process(folder: &Folder) -> (Context, Vec<Faulty>) {
    let made = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&made);
    let context = Context::builder()
        .runtime_dir(&folder.0)
        .domain(house::DOMAIN)
        .transports(move |built| {
            let faulty: Vec<_> = built.into_iter().map(|it| Faulty::new(it, 1)).collect();
            keep.lock().unwrap().clone_from(&faulty);
            faulty.into_iter().map(|it| Arc::new(it) as Arc<dyn Transport>).collect()
        })
        .build()
        .unwrap();
    let made = std::mem::take(&mut *made.lock().unwrap());
    (context, made)
}

impl Flow {
    fn new(processes: usize, qos: Qos) -> Self {
        let folder = Folder::new();
        let (context, faulty) = faulty_process(&folder);
        let other = match processes {
            1 => context.clone(),
            _ => faulty_process(&folder).0,
        };
        let publisher = context.node("a").unwrap().create_publisher::<UInt64>("t", qos).unwrap();
        let node = other.node("b").unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&told);
        let subscription = node
            .create_polled_subscription::<UInt64>(
                "t",
                SubscriptionOptions::default()
                    .qos(qos)
                    .on_event(move |event| keep.lock().unwrap().push(event)),
            )
            .unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        subscription.wait_for_publishers(1, HANG).unwrap();
        Self { faulty, publisher, subscription, node, context, told, _folder: folder }
    }

    fn set(&self, faults: Faults) {
        self.faulty.iter().for_each(|it| it.set(faults));
    }

    fn publish(&self, data: u64) {
        self.publisher.publish(UInt64 { data }).unwrap();
    }

    /// What can be taken up to `last`.
    fn take_to(&self, last: u64) -> Vec<u64> {
        let mut taken = Vec::new();
        take_until(&self.node, &self.subscription, |received| {
            taken.push(received.view().data);
            taken.ends_with(&[last])
        });
        taken
    }

    fn route(&self) -> RouteReport {
        self.context.routes(HANG).unwrap().remove(0)
    }

    /// Waits for an event.
    fn is_told(&self, event: &SubscriptionEvent) {
        let mut executor = Executor::new(self.node.context()).unwrap();
        executor.add(&self.node).unwrap();
        executor.spin_until(|| self.told.lock().unwrap().contains(event)).unwrap();
    }
}

/// The `k`-th of ten samples is lost on its way.
fn check_loss(processes: usize, k: u64, link: &str) {
    let _watchdog = house::Watchdog::start("a lost sample");
    let flow = Flow::new(processes, keep_last(100));
    for number in 1..=10 {
        flow.set(if number == k { LOSE } else { Faults::NONE });
        flow.publish(number);
    }
    let expect: Vec<_> = (1..=10).filter(|number| *number != k).collect();
    assert_eq!(flow.take_to(10), expect);
    let counters = flow.subscription.counters();
    assert_eq!((counters.received, counters.lost, counters.displaced), (9, 1, 0));
    flow.is_told(&SubscriptionEvent::MessageLost { total: 1 });
    let route = flow.route();
    assert_eq!(route.transport.as_deref(), Some(link));
    assert_eq!((route.sent, route.samples, route.lost, route.displaced), (10, 9, 1, 0));

    // The next loss adds to it.
    flow.set(LOSE);
    (11..=13).for_each(|number| flow.publish(number));
    flow.set(Faults::NONE);
    flow.publish(14);
    assert_eq!(flow.take_to(14), [14]);
    flow.is_told(&SubscriptionEvent::MessageLost { total: 4 });
    assert_eq!((flow.subscription.counters().lost, flow.route().lost), (4, 4));
}

#[test]
fn a_lost_sample_is_told_and_counted() {
    check_loss(1, 4, "faulty-inproc");
    check_loss(2, 4, "faulty-shm");
}

#[test]
fn the_loss_of_the_first_sample_is_noticed() {
    check_loss(1, 1, "faulty-inproc");
    check_loss(2, 1, "faulty-shm");
}

#[test]
fn what_is_displaced_is_not_lost() {
    for processes in [1, 2] {
        let flow = Flow::new(processes, keep_last(5));
        for number in 1..=20 {
            flow.set(if number == 18 { LOSE } else { Faults::NONE });
            flow.publish(number);
        }
        assert_eq!(flow.take_to(20), [15, 16, 17, 19, 20]);
        let counters = flow.subscription.counters();
        assert_eq!((counters.received, counters.displaced, counters.lost), (5, 14, 1));
        flow.is_told(&SubscriptionEvent::MessageLost { total: 1 });
        let route = flow.route();
        assert_eq!((route.sent, route.samples, route.displaced, route.lost), (20, 5, 14, 1));
    }
}

#[test]
fn a_repeated_sample_is_counted_and_not_delivered() {
    for processes in [1, 2] {
        let flow = Flow::new(processes, keep_last(100));
        for number in 1..=10 {
            flow.set(if number % 3 == 0 { REPEAT } else { Faults::NONE });
            flow.publish(number);
        }
        assert_eq!(flow.take_to(10), (1..=10).collect::<Vec<_>>());
        let counters = flow.subscription.counters();
        assert_eq!((counters.received, counters.duplicates, counters.lost), (10, 3, 0));
        let route = flow.route();
        assert_eq!((route.sent, route.samples, route.duplicates), (10, 10, 3));
    }
}

/// A delay holds back all that follows, so that the order of a publisher is kept on every link; a
/// wait is no loss.
#[test]
fn delayed_samples_come_late_and_in_order() {
    for processes in [1, 2] {
        let flow = Flow::new(processes, keep_all());
        flow.set(DELAY);
        (1..=3).for_each(|number| flow.publish(number));
        assert!(flow.subscription.take().unwrap().is_none());
        flow.publish(4);
        assert_eq!(flow.take_to(3), [1, 2, 3]);
        flow.set(Faults::NONE);
        // What is held goes before what is sent now.
        (5..=7).for_each(|number| flow.publish(number));
        assert_eq!(flow.take_to(7), [4, 5, 6, 7]);
        let counters = flow.subscription.counters();
        assert_eq!((counters.received, counters.lost, counters.duplicates), (7, 0, 0));
        assert!(!flow.told.lock().unwrap().iter().any(is_loss));
    }
}

fn is_loss(event: &SubscriptionEvent) -> bool {
    matches!(event, SubscriptionEvent::MessageLost { .. })
}

#[test]
fn a_link_that_cannot_be_opened_is_struck_out_with_the_reason() {
    let folder = Folder::new();
    let (context, faulty) = faulty_process(&folder);
    faulty[0].set(CUT);
    let node = context.node("a").unwrap();
    let publisher = node.create_publisher::<UInt64>("t", keep_last(10)).unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(UInt64 { data: 1 }).unwrap();
    take_until(&node, &subscription, |_| true);
    let route = context.routes(HANG).unwrap().remove(0);
    assert_eq!(route.transport.as_deref(), Some("faulty-shm"));
    let refused = ("faulty-inproc".to_owned(), "exhausted: cut by a fault".to_owned());
    assert!(route.rejected.contains(&refused), "{route:?}");

    // A cut of the only link that is left is the publisher's to know.
    faulty[1].set(CUT);
    let error = publisher.publish(UInt64 { data: 2 }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!(faulty[1].counts(), FaultCounts::default());
}

/// Who only ever lends and publishes loans leaves a link that has failed too.
#[test]
fn a_loan_on_a_link_that_has_failed_is_of_another() {
    let _watchdog = house::Watchdog::start("a loan on a failed link");
    let folder = Folder::new();
    let (context, faulty) = faulty_process(&folder);
    let node = context.node("a").unwrap();
    let ty = RawType::new("std_msgs/msg/UInt64");
    let publisher = node.create_raw_publisher("t", ty.clone(), keep_all()).unwrap();
    let subscription = node.create_polled_raw_subscription("t", ty, keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let message = [0, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
    for link in ["faulty-inproc", "faulty-shm"] {
        let mut loan = publisher.loan_bytes(message.len()).unwrap();
        loan.copy_from_slice(&message);
        publisher.publish_loan(loan).unwrap();
        let route = context.routes(HANG).unwrap().remove(0);
        assert_eq!(route.transport.as_deref(), Some(link), "{route:?}");
        faulty[0].set(CUT);
    }
    house::wait_until("both have come", || {
        while subscription.take_bytes().unwrap().is_some() {}
        subscription.counters().received == 2
    });
}

/// A transport that has run out of something for readers or for writers, until it is said that it
/// has not.
#[derive(Debug)]
struct Poor {
    inner: Arc<dyn Transport>,
    is_poor: Arc<AtomicBool>,
}

impl Poor {
    fn check(&self) -> Result<()> {
        match self.is_poor.load(Ordering::Relaxed) {
            true => Err(Error::new(TransportErrorKind::Exhausted, "open").about("for a while")),
            false => Ok(()),
        }
    }
}

impl Transport for Poor {
    fn id(&self) -> TransportId {
        self.inner.id()
    }
    fn capability(&self) -> Capability {
        self.inner.capability()
    }
    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.inner.figures()
    }
    fn handshake(&self, peer: PeerId) -> Result<Handshake> {
        self.inner.handshake(peer)
    }
    fn meet(&self, peer: PeerId, handshake: Handshake) -> Result<Vec<u8>> {
        self.inner.meet(peer, handshake)
    }
    fn confirm(&self, peer: PeerId, answer: &[u8]) -> Result<()> {
        self.inner.confirm(peer, answer)
    }
    fn part(&self, peer: PeerId) {
        self.inner.part(peer);
    }
    fn open_writer(&self, endpoint: &Endpoint, room: Arc<Cell>) -> Result<Arc<dyn Writer>> {
        self.check()?;
        self.inner.open_writer(endpoint, room)
    }
    fn open_reader(&self, endpoint: &Endpoint, news: Arc<Cell>) -> Result<Arc<dyn Reader>> {
        self.check()?;
        self.inner.open_reader(endpoint, news)
    }
}

fn poor_process(folder: &Folder) -> (Context, Arc<AtomicBool>) {
    let is_poor = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&is_poor);
    let builder = Context::builder().runtime_dir(&folder.0).domain(house::DOMAIN);
    let context = builder.transports(move |built| {
        let poor = built.into_iter().map(|inner| Poor { inner, is_poor: Arc::clone(&flag) });
        poor.map(|it| Arc::new(it) as Arc<dyn Transport>).collect()
    });
    (context.build().unwrap(), is_poor)
}

/// What runs out on either side, or on the only one, excludes no link for ever.
fn check_a_passing_shortage(processes: usize) {
    let _watchdog = house::Watchdog::start("a passing shortage");
    let folder = Folder::new();
    let (one, writers) = poor_process(&folder);
    let (two, readers) = match processes {
        1 => (one.clone(), Arc::clone(&writers)),
        _ => poor_process(&folder),
    };
    let publisher = one.node("a").unwrap().create_publisher::<UInt64>("t", keep_all()).unwrap();
    let node = two.node("b").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
    let wait_for_refusal = || {
        house::wait_until("it is refused", || {
            let routes = one.routes(HANG).unwrap();
            let [route] = &routes[..] else { return false };
            let told = |(_, reason): &(String, String)| reason.contains("exhausted");
            route.state == RouteState::NoRoute && route.rejected.iter().any(told)
        });
    };
    wait_for_refusal();
    readers.store(false, Ordering::Relaxed);
    if processes == 2 {
        // Now the subscription's end is opened, and the publisher's is not.
        let epoch = || one.routes(HANG).unwrap()[0].epoch;
        let before = epoch();
        house::wait_until("it is tried again", || before + 1 < epoch());
        wait_for_refusal();
        writers.store(false, Ordering::Relaxed);
    }
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(UInt64 { data: 1 }).unwrap();
    take_until(&node, &subscription, |_| true);
    subscription.wait_for_publishers(1, HANG).unwrap();
}

#[test]
fn a_shortage_in_one_process_passes() {
    check_a_passing_shortage(1);
}

#[test]
fn a_shortage_between_two_processes_passes() {
    check_a_passing_shortage(2);
}

#[test]
fn a_program_leaves_out_transports() {
    let folder = Folder::new();
    type Transports = Vec<Arc<dyn Transport>>;
    let process = |arrange: fn(Transports) -> Transports| {
        let builder = Context::builder().runtime_dir(&folder.0).domain(house::DOMAIN);
        builder.transports(arrange).build().unwrap()
    };
    let only_shm =
        process(|built| built.into_iter().filter(|it| it.id().as_str() == "shm").collect());
    let none = process(|_| Vec::new());
    assert_eq!(only_shm.transports().len(), 1);
    let node = only_shm.node("a").unwrap();
    let publisher = node.create_publisher::<UInt64>("t", keep_last(10)).unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
    let reader = none.node("b").unwrap();
    let _unreached = reader.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(UInt64 { data: 1 }).unwrap();
    take_until(&node, &subscription, |_| true);
    only_shm.wait_for_graph(HANG, |graph| (graph.endpoints.len() == 3).then_some(())).unwrap();
    house::wait_until("both flows are decided", || {
        let routes = only_shm.routes(HANG).unwrap();
        let mut links: Vec<_> = routes.iter().map(|it| (it.state, &*it.because)).collect();
        links.sort_by_key(|(state, _)| *state == RouteState::NoRoute);
        links.len() == 2
            && links[0].0 == RouteState::Active
            && links[1].1.contains("not working: not in this build")
    });
}

/// What is displaced and not yet missed does not hide a loss that was told.
#[test]
fn losses_only_grow_and_each_is_told_once() {
    for processes in [1, 2] {
        let _watchdog = house::Watchdog::start("losses that only grow");
        let flow = Flow::new(processes, keep_last(5));
        for number in 1..=3 {
            flow.set(if number == 2 { LOSE } else { Faults::NONE });
            flow.publish(number);
        }
        assert_eq!(flow.take_to(3), [1, 3]);
        flow.is_told(&SubscriptionEvent::MessageLost { total: 1 });
        (4..=13).for_each(|number| flow.publish(number));
        assert_eq!(flow.subscription.counters().lost, 1);
        assert_eq!(flow.take_to(13), [9, 10, 11, 12, 13]);
        let counters = flow.subscription.counters();
        assert_eq!((counters.lost, counters.displaced), (1, 5));
        flow.set(LOSE);
        flow.publish(14);
        flow.set(Faults::NONE);
        flow.publish(15);
        assert_eq!(flow.take_to(15), [15]);
        flow.is_told(&SubscriptionEvent::MessageLost { total: 2 });
        let told = flow.told.lock().unwrap();
        assert_eq!(told.iter().filter(|event| is_loss(event)).count(), 2, "{told:?}");
    }
}

/// A reader that finds a sample gone does not take it for lost, however close it is to the writer.
#[test]
fn what_is_displaced_while_it_is_read_is_not_lost() {
    let _watchdog = house::Watchdog::start("reading at the writer's heels");
    const COUNT: u64 = 300_000;
    for depth in [1, 5] {
        let flow = Flow::new(2, keep_last(depth));
        std::thread::scope(|scope| {
            scope.spawn(|| (1..=COUNT).for_each(|number| flow.publish(number)));
            loop {
                let Some(received) = flow.subscription.take().unwrap() else { continue };
                assert_eq!(flow.subscription.counters().lost, 0);
                if received.view().data == COUNT {
                    break;
                }
            }
        });
        let counters = flow.subscription.counters();
        assert_eq!(counters.received + counters.displaced, COUNT, "{counters:?}");
        assert!(!flow.told.lock().unwrap().iter().any(is_loss));
    }
}

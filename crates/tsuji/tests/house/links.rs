//! What the tests of changing links share: processes whose links can be broken, publishers and
//! subscriptions of numbers, and who waits for a flow to come to rest.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tsuji::{
    Context, ErrorKind, Publisher, Qos, RouteReport, RouteState, Subscription, SubscriptionCounters,
};
use tsuji_core::Policy;
use tsuji_interfaces::std_msgs::msg::UInt64;
use tsuji_transport::Transport;
use tsuji_transport::faulty::{Faults, Faulty};

use crate::house::{self, Child, Folder, HANG, heard, keep_last, tell};

pub(crate) const POLICY: &str = r#"<tsuji>
  <transport name="cyclonedds">
    <set key="interfaces" value="lo"/>
    <set key="multicast" value="true"/>
  </transport>
  <transport name="shm">
    <set key="memory_bytes_max" value="64MiB"/>
  </transport>
</tsuji>"#;

pub(crate) fn policy() -> Policy {
    tsuji_policy::load("test", POLICY.as_bytes(), tsuji::KNOWN_TRANSPORTS).unwrap()
}

pub(crate) fn process(folder: &Folder) -> Context {
    let builder = Context::builder().runtime_dir(&folder.0).domain(house::DOMAIN);
    builder.policy(policy()).isolated().build().unwrap()
}

/// A process whose transports can be broken, by their names.
pub(crate) fn breakable(folder: &Folder) -> (Context, impl Fn(&str, Faults)) {
    let made = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&made);
    let builder = Context::builder().runtime_dir(&folder.0).domain(house::DOMAIN).policy(policy());
    let context = builder.transports(move |built| {
        let faulty: Vec<_> = built.into_iter().map(|it| Faulty::in_place_of(it, 1)).collect();
        keep.lock().unwrap().clone_from(&faulty);
        faulty.into_iter().map(|it| Arc::new(it) as Arc<dyn Transport>).collect()
    });
    let set = move |name: &str, faults| {
        let made = made.lock().unwrap();
        made.iter().find(|it| it.id().as_str() == name).unwrap().set(faults);
    };
    (context.build().unwrap(), set)
}

/// Keeps the last samples, and so many of them that none is pushed out however late a busy machine lets
/// whoever takes them run.
pub(crate) fn keep_many() -> Qos {
    keep_last(20_000)
}

/// Publishes 0, 1, 2, … on a thread of its own.
pub(crate) struct Sender {
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) thread: Option<JoinHandle<u64>>,
}

impl Sender {
    pub(crate) fn start(publisher: Publisher<UInt64>, pause: Duration) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut next = 0;
            while !told.load(Ordering::Acquire) {
                match publisher.publish(UInt64 { data: next }) {
                    Ok(()) => next += 1,
                    // It was not sent, and its publisher knows.
                    Err(error) if error.kind() == ErrorKind::Busy => {}
                    Err(error) if error.kind() == ErrorKind::Closed => break,
                    Err(error) => panic!("{error}"),
                }
                std::thread::sleep(pause);
            }
            PUBLISHERS.lock().unwrap().push(publisher);
            next
        });
        Self { stop, thread: Some(thread) }
    }

    /// Stops, and answers how many were published. The publisher stays.
    pub(crate) fn finish(mut self) -> u64 {
        self.stop.store(true, Ordering::Release);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// Those that have sent all: with the publisher its flows would end.
pub(crate) static PUBLISHERS: Mutex<Vec<Publisher<UInt64>>> = Mutex::new(Vec::new());

/// Takes numbers on a thread of its own and checks that each follows the one before.
pub(crate) struct Taker {
    pub(crate) seen: Arc<AtomicU64>,
    pub(crate) until: Arc<AtomicU64>,
    pub(crate) thread: JoinHandle<Subscription<UInt64>>,
}

impl Taker {
    /// The first number may be any.
    pub(crate) fn start(subscription: Subscription<UInt64>, until: u64) -> Self {
        Self::start_with(subscription, until, false)
    }

    /// Where it `jumps` samples may be missing, but none comes twice or late.
    pub(crate) fn start_with(subscription: Subscription<UInt64>, until: u64, jumps: bool) -> Self {
        let (seen, until) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(until)));
        let (told, wanted) = (Arc::clone(&seen), Arc::clone(&until));
        let thread = std::thread::spawn(move || {
            let mut next = None;
            while next.is_none_or(|next| next < wanted.load(Ordering::Acquire)) {
                match subscription.take() {
                    Ok(Some(received)) => {
                        let number = received.view().data;
                        let expected = next.unwrap_or(number);
                        let is_right = number == expected || jumps && expected < number;
                        let counters = || subscription.counters();
                        assert!(is_right, "{number} after {expected}: {:?}", counters());
                        next = Some(number + 1);
                        told.store(number + 1, Ordering::Release);
                    }
                    Ok(None) => std::thread::sleep(Duration::from_micros(50)),
                    Err(error) if error.kind() == ErrorKind::Closed => break,
                    Err(error) => panic!("{error}"),
                }
            }
            subscription
        });
        Self { seen, until, thread }
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, number: u64) {
        house::wait_until("the samples go on", || {
            assert!(!self.thread.is_finished() || number <= self.seen());
            number <= self.seen()
        });
    }

    #[track_caller]
    pub(crate) fn wait_for_more(&self) {
        self.wait_for(self.seen() + 20);
    }

    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Acquire)
    }

    /// Takes all that were sent, and answers the subscription.
    pub(crate) fn finish(self, sent: u64) -> Subscription<UInt64> {
        self.until.store(sent, Ordering::Release);
        let subscription = self.thread.join().unwrap();
        assert!(subscription.take().unwrap().is_none());
        subscription
    }
}

/// The route of a topic's one flow.
pub(crate) fn route(context: &Context, topic: &str) -> Option<RouteReport> {
    context.routes(HANG).unwrap().into_iter().find(|it| it.topic == topic)
}

/// Waits until the flows of a topic have settled on a transport, and answers one of the reports.
#[track_caller]
pub(crate) fn settled_on(context: &Context, topic: &str, transport: &str) -> RouteReport {
    let end = Instant::now() + HANG;
    loop {
        let mut routes = context.routes(HANG).unwrap();
        routes.retain(|it| it.topic == topic);
        let is_settled = |route: &RouteReport| {
            route.state == RouteState::Active
                && route.transport.as_deref() == Some(transport)
                && route.changes.iter().all(|it| it.is_settled)
        };
        if !routes.is_empty() && routes.iter().all(is_settled) {
            return routes.remove(0);
        }
        assert!(Instant::now() < end, "{transport}: {routes:#?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[track_caller]
pub(crate) fn set(context: &Context, topic: &str, transport: Option<&str>) {
    let set = context.set_route(topic, transport, HANG).unwrap();
    assert!(set.iter().all(|it| it.outcome.is_ok()), "{set:?}");
}

/// A publisher and a subscription, in one process or in two, that have met.
pub(crate) fn ends(
    here: &Context,
    there: &Context,
    qos: Qos,
) -> (Publisher<UInt64>, Subscription<UInt64>) {
    let (sender, taker) = (here.node("sender").unwrap(), there.node("taker").unwrap());
    let publisher = sender.create_publisher::<UInt64>("n", qos).unwrap();
    let subscription = taker.create_polled_subscription::<UInt64>("n", qos).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    (publisher, subscription)
}

/// Children get the policy by a file.
pub(crate) fn start(folder: &Folder, role: &str) -> Child {
    std::fs::create_dir_all(&folder.0).unwrap();
    let path = folder.0.join("policy.xml");
    std::fs::write(&path, POLICY).unwrap();
    Child::start_with(folder, role, &[("TSUJI_POLICY", path.to_str().unwrap())])
}

/// What a child does: takes numbers and says how far it has come, or publishes them.
pub(crate) fn play(role: &str, context: &Context) {
    match role {
        "take" => {
            let node = context.node("taker").unwrap();
            let subscription = node.create_polled_subscription::<UInt64>("n", keep_many()).unwrap();
            subscription.wait_for_publishers(1, HANG).unwrap();
            tell("there");
            let taking = Taker::start(subscription, u64::MAX);
            while !heard().is_empty() {
                tell(&taking.seen.load(Ordering::Acquire).to_string());
            }
        }
        "publish" => {
            let node = context.node("sender").unwrap();
            let publisher = node.create_publisher::<UInt64>("n", keep_last(1000)).unwrap();
            publisher.wait_for_subscriptions(1, HANG).unwrap();
            tell("there");
            let _sending = Sender::start(publisher, Duration::from_micros(200));
            heard();
        }
        "publish_nothing" => {
            let node = context.node("sender").unwrap();
            let _publisher = node.create_publisher::<UInt64>("n", Qos::DEFAULT).unwrap();
            tell("there");
            heard();
        }
        other => panic!("{other}"),
    }
}

/// The flows of a topic between processes of this host.
pub(crate) fn local_flows(context: &Context, topic: &str) -> Vec<RouteReport> {
    let mut routes = context.routes(HANG).unwrap();
    routes.retain(|it| it.topic == topic && it.scope == "local");
    routes
}

/// So many were sent, and all of them taken.
#[track_caller]
pub(crate) fn assert_all_came(counters: SubscriptionCounters, sent: u64) {
    let SubscriptionCounters { received, lost, displaced, .. } = counters;
    assert_eq!((received, lost, displaced), (sent, 0, 0), "{counters:?}");
}

//! Publishers and subscriptions that several threads or tasks use at once, and values that call them
//! when they are dropped.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::time::Duration;

use house::{Folder, HANG, Watchdog, keep_all, keep_last, take_until};
use tsuji::{
    Context, Durability, ErrorKind, Interop, Message, Publisher, PublisherOptions, Qos,
    Subscription, WaitSet,
};
use tsuji_interfaces::std_msgs::msg::UInt64;
use tsuji_msg::cdr::{Reader, Sink, Writer};
use tsuji_msg::{CdrError, Wire};

const EACH: u64 = 5000;

#[test]
fn threads_that_share_a_publisher_lose_nothing_beside_another() {
    let _watchdog = Watchdog::start("threads that share a publisher");
    let folder = Folder::new();
    for remote in [false, true] {
        let one = folder.process();
        let two = if remote { folder.process() } else { one.clone() };
        let (writer, reader) = (one.node("w").unwrap(), two.node("r").unwrap());
        let subscription = reader.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
        let publisher = || {
            writer
                .create_publisher::<UInt64>(
                    "t",
                    PublisherOptions::default().qos(keep_all()).max_blocking(HANG),
                )
                .unwrap()
        };
        let (shared, other) = (publisher(), publisher());
        shared.wait_for_subscriptions(1, HANG).unwrap();
        other.wait_for_subscriptions(1, HANG).unwrap();
        subscription.wait_for_publishers(2, HANG).unwrap();
        std::thread::scope(|scope| {
            for (publisher, first) in [(&shared, 0), (&shared, EACH), (&other, 2 * EACH)] {
                scope.spawn(move || {
                    for data in first..first + EACH {
                        publisher.publish(UInt64 { data }).unwrap();
                    }
                });
            }
            let mut left: BTreeSet<u64> = (0..3 * EACH).collect();
            take_until(&reader, &subscription, |received| {
                let data = received.view().data;
                assert!(left.remove(&data), "{data} comes twice");
                let counters = subscription.counters();
                assert_eq!((counters.duplicates, counters.lost), (0, 0), "{} left", left.len());
                left.is_empty()
            });
        });
    }
}

/// A publisher with a subscription that keeps all and is full.
fn full_flow(folder: &Folder, max_blocking: Duration) -> (Publisher<UInt64>, Subscription<UInt64>) {
    let context = folder.process();
    let node = context.node("n").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
    let publisher = node
        .create_publisher::<UInt64>(
            "t",
            PublisherOptions::default().qos(keep_all()).max_blocking(max_blocking),
        )
        .unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    (0..1024).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    (publisher, subscription)
}

/// If each waited for those before it, the watchdog would cut it.
#[test]
fn many_that_wait_for_room_give_up_together() {
    const THREADS: u32 = 300;
    let _watchdog = Watchdog::start("many that wait for room");
    let folder = Folder::new();
    let (publisher, subscription) = full_flow(&folder, HANG * 2 / THREADS);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let error = publisher.publish(UInt64 { data: 0 }).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
            });
        }
    });
    assert_eq!(publisher.counters().dropped, u64::from(THREADS));
    // None of them took a number.
    while subscription.take().unwrap().is_some() {}
    publisher.publish(UInt64 { data: 1 }).unwrap();
    assert_eq!(subscription.take().unwrap().unwrap().info().sequence, 1025);
    assert_eq!(subscription.counters().lost, 0);
}

#[test]
fn those_that_wait_for_room_all_get_it() {
    const THREADS: u64 = 20;
    let _watchdog = Watchdog::start("those that get room");
    let folder = Folder::new();
    let (publisher, subscription) = full_flow(&folder, Duration::MAX);
    std::thread::scope(|scope| {
        for data in 0..THREADS {
            let publisher = &publisher;
            scope.spawn(move || publisher.publish(UInt64 { data }).unwrap());
        }
        for sequence in 1..=1024 + THREADS {
            let received = loop {
                if let Some(received) = subscription.take().unwrap() {
                    break received;
                }
                std::thread::yield_now();
            };
            assert_eq!(received.info().sequence, sequence);
        }
    });
}

#[test]
fn whoever_cannot_wait_for_room_is_told_busy() {
    let _watchdog = Watchdog::start("no bell to wait with");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let _subscription = node.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
    let publisher = node
        .create_publisher::<UInt64>(
            "t",
            PublisherOptions::default().qos(keep_all()).max_blocking(Duration::MAX),
        )
        .unwrap();
    (0..1024).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    let mut sets = Vec::new();
    let error = loop {
        match WaitSet::new(&context) {
            Ok(set) => sets.push(set),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Exhausted);
    let error = publisher.publish(UInt64 { data: 0 }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert!(error.to_string().contains("at most 64"), "{error}");
    assert_eq!(publisher.counters().dropped, 1);
}

/// Tells that it was woken.
struct Told(Mutex<Sender<usize>>, usize);

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        self.0.lock().unwrap().send(self.1).unwrap();
    }
}

#[test]
fn two_that_await_one_subscription_are_both_woken() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
    let publisher = node.create_publisher::<UInt64>("t", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let (tell, told) = channel();
    let waker = |number| Waker::from(Arc::new(Told(Mutex::new(tell.clone()), number)));
    let mut both = [pin!(subscription.recv()), pin!(subscription.recv())];
    let wakers = [waker(0), waker(1)];
    let poll = |it: &mut Pin<&mut tsuji::Recv<'_, UInt64>>, waker: &Waker| {
        it.as_mut().poll(&mut TaskContext::from_waker(waker))
    };
    for _ in 0..3 {
        // What rang before may wake once more than there is news.
        while told.try_recv().is_ok() {}
        let waits: Vec<_> =
            both.iter_mut().zip(&wakers).map(|(it, waker)| poll(it, waker)).collect();
        assert!(waits.iter().all(Poll::is_pending));
        (0..2).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
        let mut got = BTreeSet::new();
        while got.len() < 2 {
            let number = told.recv_timeout(HANG).unwrap();
            if let Poll::Ready(received) = poll(&mut both[number], &wakers[number]) {
                got.insert(received.unwrap().view().data);
            }
        }
    }
}

/// A number that calls somebody when it is dropped.
#[derive(Clone, Debug, Default, PartialEq)]
struct Nosy(UInt64);

static AT_DROP: Mutex<Option<Arc<dyn Fn() + Send + Sync>>> = Mutex::new(None);

impl Drop for Nosy {
    fn drop(&mut self) {
        let call = AT_DROP.lock().unwrap().clone();
        if let Some(call) = call {
            call();
        }
    }
}

impl Wire for Nosy {
    type View<'a> = <UInt64 as Wire>::View<'a>;
    const MIN_SIZE: usize = UInt64::MIN_SIZE;

    fn write<S: Sink>(&self, writer: &mut Writer<S>) -> Result<(), CdrError> {
        self.0.write(writer)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        UInt64::read(reader).map(Self)
    }

    fn as_view(&self) -> Self::View<'_> {
        self.0.as_view()
    }

    fn read_view<'a>(reader: &mut Reader<'a>) -> Result<Self::View<'a>, CdrError> {
        UInt64::read_view(reader)
    }

    fn from_view(view: &Self::View<'_>) -> Self {
        Self(UInt64::from_view(view))
    }
}

impl Message for Nosy {
    const TYPE_NAME: &'static str = UInt64::TYPE_NAME;
    const TYPE_HASH: &'static str = UInt64::TYPE_HASH;
    const FIXED_SIZE: Option<usize> = UInt64::FIXED_SIZE;
    const DEFINITION: &'static str = UInt64::DEFINITION;
}

#[test]
fn what_is_pushed_out_may_call_its_own_ends_when_dropped() {
    let _watchdog = Watchdog::start("values that call when dropped");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let listen = |call: Arc<dyn Fn() + Send + Sync>| *AT_DROP.lock().unwrap() = Some(call);

    // Out of a publisher's history.
    let qos = Qos { durability: Durability::TransientLocal, ..keep_last(1) };
    let publisher = Arc::new(node.create_publisher::<Nosy>("latched", qos).unwrap());
    let caller = Arc::clone(&publisher);
    listen(Arc::new(move || assert!(caller.counters().published <= 3)));
    (0..3).for_each(|_| publisher.publish(Nosy::default()).unwrap());
    *AT_DROP.lock().unwrap() = None;

    // Out of the queue of a subscription.
    let subscription = node.create_polled_subscription::<Nosy>("t", keep_last(2)).unwrap();
    let subscription = Arc::new(subscription);
    let publishers = [(); 2].map(|()| node.create_publisher::<Nosy>("t", keep_last(2)).unwrap());
    subscription.wait_for_publishers(2, HANG).unwrap();
    let caller = Arc::clone(&subscription);
    listen(Arc::new(move || assert_eq!(caller.counters().lost, 0)));
    for _ in 0..5 {
        publishers.iter().for_each(|it| it.publish(Nosy::default()).unwrap());
        assert!(subscription.take().unwrap().is_some());
    }
    assert!(0 < subscription.counters().displaced);
    *AT_DROP.lock().unwrap() = None;
}

#[test]
fn contexts_that_are_given_up_leave_those_that_are_made_meanwhile() {
    let _watchdog = Watchdog::start("contexts that come and go");
    let folder = Folder::new();
    let made = || Context::builder().runtime_dir(&folder.0).interop(Interop::NONE).build().unwrap();
    std::thread::scope(|scope| {
        for number in 0..4 {
            scope.spawn(move || {
                for _ in 0..50 {
                    let context = made();
                    let node = context.node(&format!("n{number}")).unwrap();
                    let subscription =
                        node.create_polled_subscription::<UInt64>("t", keep_last(1)).unwrap();
                    assert!(context.is_ok());
                    context.leave();
                    context.leave();
                    drop((subscription, node));
                }
            });
        }
    });
    let (first, second) = (made(), made());
    first.leave();
    assert!(first.is_ok() && second.is_ok());
    drop(first);
    assert!(second.is_ok());
    second.leave();
    assert!(!second.is_ok());
}

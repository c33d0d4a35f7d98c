//! Callbacks, groups, timers, wait sets and futures, and their ends.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use futures_core::Stream;
use house::{Folder, HANG, Random, Watchdog, keep_all, keep_last, wait_until};
use tsuji::{
    CallbackGroupKind, Context, ErrorKind, Executor, ParameterArgument, PublisherOptions, Qos,
    Severity, SubscriptionOptions, Timer, WaitSet,
};
use tsuji_interfaces::std_msgs::msg::UInt64;

/// Wakes a parked thread: the smallest executor of futures there is.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut TaskContext::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park_timeout(HANG),
        }
    }
}

#[test]
fn messages_are_awaited_and_streamed() {
    let _watchdog = Watchdog::start("awaiting");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let node = one.node("writer").unwrap();
    let publisher = node.create_publisher::<UInt64>("t", keep_all()).unwrap();
    let reader = two.node("reader").unwrap();
    let subscriptions: Vec<_> = (0..4)
        .map(|_| reader.create_polled_subscription::<UInt64>("t", keep_all()).unwrap())
        .collect();
    publisher.wait_for_subscriptions(4, HANG).unwrap();
    std::thread::scope(|scope| {
        for subscription in &subscriptions {
            scope.spawn(|| {
                for expect in 0..500 {
                    let received = block_on(subscription.recv()).unwrap();
                    assert_eq!(received.view().data, expect);
                }
                let mut stream = pin!(subscription.stream());
                for expect in 500..1000 {
                    let next = std::future::poll_fn(|task| stream.as_mut().poll_next(task));
                    assert_eq!(block_on(next).unwrap().view().data, expect);
                }
                // What nobody has sent is awaited until the context ends.
                let next = std::future::poll_fn(|task| stream.as_mut().poll_next(task));
                assert!(block_on(next).is_none());
                let error = block_on(subscription.recv()).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Closed);
            });
        }
        (0..1000).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
        wait_until("all have come", || {
            subscriptions.iter().all(|it| it.counters().received == 1000)
        });
        two.shutdown();
    });
}

#[test]
fn a_future_that_is_pending_ends_with_the_context() {
    let _watchdog = Watchdog::start("pending futures");
    let folder = Folder::new();
    for _ in 0..50 {
        let context = folder.process();
        let node = context.node("reader").unwrap();
        let subscription = node.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| block_on(subscription.recv()));
            context.shutdown();
            assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
        });
    }
}

#[test]
fn one_wait_set_watches_two_hundred_subscriptions() {
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let writer = one.node("writer").unwrap();
    let reader = two.node("reader").unwrap();
    let mut set = WaitSet::new(&two).unwrap();
    let (mut publishers, mut subscriptions) = (Vec::new(), Vec::new());
    for number in 0..200 {
        let topic = format!("t{number}");
        let publisher = writer.create_publisher::<UInt64>(&topic, Qos::DEFAULT).unwrap();
        let subscription =
            reader.create_polled_subscription::<UInt64>(&topic, Qos::DEFAULT).unwrap();
        assert_eq!(set.add(&subscription).unwrap(), number);
        publishers.push(publisher);
        subscriptions.push(subscription);
    }
    publishers.iter().for_each(|it| it.wait_for_subscriptions(1, HANG).unwrap());
    // Connecting may have rung some.
    while !set.wait(Duration::ZERO).unwrap().is_empty() {}
    for number in (0..200).rev().chain((0..200).step_by(7)) {
        publishers[number].publish(UInt64 { data: number as u64 }).unwrap();
        let ready = set.wait(HANG).unwrap();
        assert_eq!(ready, [number]);
        assert_eq!(subscriptions[number].take().unwrap().unwrap().view().data, number as u64);
    }
    publishers.iter().for_each(|it| it.publish(UInt64 { data: 1 }).unwrap());
    let mut seen = [false; 200];
    while seen.iter().any(|it| !it) {
        for number in set.wait(HANG).unwrap() {
            seen[number] |= subscriptions[number].take().unwrap().is_some();
        }
    }
    // One that is dropped rings no more, and its number is nobody else's.
    subscriptions.truncate(100);
    publishers.iter().for_each(|it| it.publish(UInt64 { data: 2 }).unwrap());
    let mut count = 0;
    while count < 100 {
        count += set.wait(HANG).unwrap().iter().filter(|number| **number < 100).count();
    }
    // The end of the context ends the wait.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            loop {
                match set.wait(HANG) {
                    Ok(ready) => assert!(!ready.is_empty()),
                    Err(error) => return error.kind(),
                }
            }
        });
        two.shutdown();
        assert_eq!(waiting.join().unwrap(), ErrorKind::Closed);
    });
}

#[test]
fn exclusive_groups_exclude_and_reentrant_ones_overlap() {
    let _watchdog = Watchdog::start("callback groups");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let exclusive = node.create_callback_group(CallbackGroupKind::MutuallyExclusive);
    let reentrant = node.create_callback_group(CallbackGroupKind::Reentrant);
    let inside = Arc::new(AtomicUsize::new(0));
    let runs = Arc::new(AtomicUsize::new(0));
    let publisher = node.create_publisher::<UInt64>("t", keep_all()).unwrap();
    let mut kept = Vec::new();
    for _ in 0..3 {
        let (inside, runs) = (Arc::clone(&inside), Arc::clone(&runs));
        kept.push(
            node.create_subscription::<UInt64>(
                "t",
                SubscriptionOptions::default().qos(keep_all()).group(&exclusive),
                move |_| {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    runs.fetch_add(1, Ordering::SeqCst);
                },
            )
            .unwrap(),
        );
    }
    // Three callbacks that wait for each other can only end when they overlap.
    let barrier = Arc::new(Barrier::new(3));
    let met = Arc::new(AtomicUsize::new(0));
    for number in 0..3 {
        let (barrier, met) = (Arc::clone(&barrier), Arc::clone(&met));
        let topic = format!("overlap{number}");
        kept.push(
            node.create_subscription::<UInt64>(
                &topic,
                SubscriptionOptions::default().group(&reentrant),
                move |_| {
                    barrier.wait();
                    met.fetch_add(1, Ordering::SeqCst);
                },
            )
            .unwrap(),
        );
        node.create_publisher::<UInt64>(&topic, Qos::DEFAULT)
            .unwrap()
            .publish(UInt64 { data: 0 })
            .unwrap();
    }
    let mut executor = Executor::new(&context).unwrap().threads(4);
    executor.add(&node).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..500).for_each(|data| publisher.publish(UInt64 { data }).unwrap()));
        let done = || runs.load(Ordering::SeqCst) == 1500 && met.load(Ordering::SeqCst) == 3;
        executor.spin_until(done).unwrap();
    });
}

#[test]
fn a_callback_drops_its_own_subscription_and_publishes_on_its_own_topic() {
    let _watchdog = Watchdog::start("own subscription");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let publisher = Arc::new(node.create_publisher::<UInt64>("t", keep_all()).unwrap());
    let slot = Arc::new(Mutex::new(None));
    let count = Arc::new(AtomicU64::new(0));
    let (own, answer, counted) = (Arc::clone(&slot), Arc::clone(&publisher), Arc::clone(&count));
    let subscription = node
        .create_subscription::<UInt64>("t", keep_all(), move |received| {
            counted.fetch_add(1, Ordering::SeqCst);
            let data = received.view().data;
            answer.publish(UInt64 { data: data + 1 }).unwrap();
            if data == 50 {
                drop(own.lock().unwrap().take());
            }
        })
        .unwrap();
    *slot.lock().unwrap() = Some(subscription);
    publisher.publish(UInt64 { data: 0 }).unwrap();
    let mut executor = Executor::new(&context).unwrap().threads(2);
    executor.add(&node).unwrap();
    executor.spin_until(|| slot.lock().unwrap().is_none()).unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 51);
    publisher.publish(UInt64 { data: 0 }).unwrap();
    executor.spin_once(Duration::from_millis(1)).unwrap();
    assert_eq!((count.load(Ordering::SeqCst), publisher.matched()), (51, 0));
}

#[test]
fn a_callback_makes_and_drops_others() {
    let _watchdog = Watchdog::start("making in callbacks");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let publisher = node.create_publisher::<UInt64>("t", keep_all()).unwrap();
    let made = Arc::new(Mutex::new(Vec::new()));
    let calls = Arc::new(AtomicU64::new(0));
    let (list, inner, maker) = (Arc::clone(&made), Arc::clone(&calls), node.clone());
    let _subscription = node
        .create_subscription::<UInt64>("t", keep_all(), move |received| {
            let inner = Arc::clone(&inner);
            let call = move |_| {
                inner.fetch_add(1, Ordering::SeqCst);
            };
            let other = maker.create_subscription::<UInt64>("t", keep_all(), call).unwrap();
            let mut list = list.lock().unwrap();
            list.push(other);
            if received.view().data % 3 == 2 {
                list.clear();
            }
        })
        .unwrap();
    let mut executor = Executor::new(&context).unwrap().threads(3);
    executor.add(&node).unwrap();
    for data in 0..100 {
        publisher.publish(UInt64 { data }).unwrap();
        let wanted = (data as usize + 1) % 3;
        // The one that was made for the message before gets this one.
        let called = if wanted == 2 { calls.load(Ordering::SeqCst) + 1 } else { 0 };
        let is_done =
            || made.lock().unwrap().len() == wanted && called <= calls.load(Ordering::SeqCst);
        executor.spin_until(is_done).unwrap();
    }
}

#[test]
fn a_panic_in_a_callback_comes_out_of_spin_and_the_rest_goes_on() {
    let _watchdog = Watchdog::start("panics");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let publisher = node.create_publisher::<UInt64>("t", keep_all()).unwrap();
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let _subscription = node
        .create_subscription::<UInt64>("t", keep_all(), move |received| {
            counted.fetch_add(1, Ordering::SeqCst);
            assert!(received.view().data % 2 == 0, "odd numbers are a bug of the user's");
        })
        .unwrap();
    for threads in [1, 3] {
        let mut executor = Executor::new(&context).unwrap().threads(threads);
        executor.add(&node).unwrap();
        let before = count.load(Ordering::SeqCst);
        publisher.publish(UInt64 { data: 1 }).unwrap();
        let spun = catch_unwind(AssertUnwindSafe(|| executor.spin()));
        assert!(spun.is_err(), "a panic is not swallowed");
        assert_eq!(count.load(Ordering::SeqCst), before + 1);
        // Whoever catches it can go on with the same executor and the same callback.
        publisher.publish(UInt64 { data: 2 }).unwrap();
        executor.spin_until(|| count.load(Ordering::SeqCst) == before + 2).unwrap();
    }
    assert!(context.is_ok());
}

#[test]
fn shutting_down_in_a_callback_ends_every_spin() {
    let _watchdog = Watchdog::start("shutdown");
    let folder = Folder::new();
    for threads in [1, 4] {
        let context = folder.process();
        let (node, other) = (context.node("n").unwrap(), context.node("other").unwrap());
        let ender = context.clone();
        let _timer = node.create_timer(Duration::from_millis(1), move || ender.shutdown()).unwrap();
        let publisher = node
            .create_publisher::<UInt64>(
                "full",
                PublisherOptions::default().qos(keep_all()).max_blocking(HANG),
            )
            .unwrap();
        let full = node.create_polled_subscription::<UInt64>("full", keep_all()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| tsuji::spin(&other).unwrap());
            let blocked = scope.spawn(|| {
                (0..).find_map(|data| publisher.publish(UInt64 { data }).err()).unwrap().kind()
            });
            wait_until("it is full", || publisher.counters().published == 1024);
            let mut executor = Executor::new(&context).unwrap().threads(threads);
            executor.add(&node).unwrap();
            executor.spin().unwrap();
            assert_eq!(blocked.join().unwrap(), ErrorKind::Closed);
        });
        assert!(!context.is_ok());
        assert_eq!(full.take().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(context.node("late").unwrap_err().kind(), ErrorKind::Closed);
    }
}

#[test]
fn contexts_of_one_process_share_the_pointer_link_and_isolated_ones_do_not() {
    let folder = Folder::new();
    let build = || Context::builder().runtime_dir(&folder.0).domain(9);
    let (one, two) = (build().build().unwrap(), build().build().unwrap());
    let apart = build().isolated().build().unwrap();
    let elsewhere = Context::builder().runtime_dir(&folder.0).domain(10).build().unwrap();
    let node = one.node("writer").unwrap();
    let publisher = node.create_publisher::<UInt64>("t", Qos::DEFAULT).unwrap();
    let subscribe = |context: &Context| {
        context
            .node("reader")
            .unwrap()
            .create_polled_subscription::<UInt64>("t", Qos::DEFAULT)
            .unwrap()
    };
    let (near, far, not) = (subscribe(&two), subscribe(&apart), subscribe(&elsewhere));
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    let message = Arc::new(UInt64 { data: 5 });
    publisher.publish(Arc::clone(&message)).unwrap();
    assert!(Arc::ptr_eq(&near.take().unwrap().unwrap().message(), &message));
    house::take_until(&apart.node("x").unwrap(), &far, |received| {
        assert!(!received.is_by_reference());
        true
    });
    assert_eq!((not.matched(), publisher.matched()), (0, 2));
    let mut links: Vec<_> =
        one.routes(HANG).unwrap().into_iter().filter_map(|route| route.transport).collect();
    links.sort();
    assert_eq!(links, ["inproc", "shm"]);
    // A second context of the same participant must not have another policy.
    let policy = folder.0.join("policy.xml");
    std::fs::write(&policy, "<tsuji prefer=\"memory\"/>").unwrap();
    let error = build().policy_file(&policy).build().unwrap_err();
    assert!(error.to_string().contains("isolated"), "{error}");
    // The first to go does not take the other along.
    drop((near, node, publisher, one));
    assert!(two.is_ok() && two.node("still").is_ok());
}

#[test]
fn arguments_remap_names() {
    let folder = Folder::new();
    let arguments = "program own --ros-args -r __node:=other -r __ns:=/robot -r chatter:=talk \
                     --log-config-file f.conf --disable-stdout-logs --enable-rosout-logs -e /e \
                     --log-level debug --log-level robot.other:=Warn -p a.b:=1 --params-file f.yaml --param /robot/other:c:=x:=y \
                     --remap /absolute:=/elsewhere -- --also-own";
    let arguments = arguments.split_whitespace().map(str::to_owned);
    let context = Context::builder().runtime_dir(&folder.0).domain(1).isolated().args(arguments);
    let context = context.build().unwrap();
    assert_eq!(context.arguments(), ["program", "own", "--also-own"]);
    let assign = |text: &str| ParameterArgument::Assign(text.to_owned());
    let file = ParameterArgument::File("f.yaml".into());
    let said = [assign("a.b:=1"), file, assign("/robot/other:c:=x:=y")];
    assert_eq!(context.parameter_arguments(), said);
    let log = context.log_arguments();
    let levels = [(None, Severity::Debug), (Some("robot.other".to_owned()), Severity::Warn)];
    assert_eq!((&log.levels[..], log.rosout, log.stdout), (&levels[..], true, false));
    let node = context.node("name").unwrap();
    assert_eq!(node.fully_qualified_name(), "/robot/other");
    let topic =
        |name| node.create_publisher::<UInt64>(name, Qos::DEFAULT).unwrap().topic().to_owned();
    assert_eq!(topic("chatter"), "/robot/talk");
    assert_eq!(topic("/absolute"), "/elsewhere");
    assert_eq!(topic("~/private"), "/robot/other/private");
    assert_eq!(topic("plain"), "/robot/plain");
    for wrong in [
        "--ros-args -r",
        "--ros-args -r nothing",
        "--ros-args -p",
        "--ros-args -p nothing",
        "--ros-args --params-file",
        "--ros-args --log-level",
        "--ros-args --log-level loud",
        "--ros-args --log-level arm:=loud",
        "--ros-args --log-config-file",
        "--ros-args -e",
        "--ros-args --enclave",
        "--ros-args --log-config-file x --what",
        "--ros-args --what",
        "--ros-args -r a:=b!",
    ] {
        let arguments = wrong.split_whitespace().map(str::to_owned);
        let built = Context::builder().runtime_dir(&folder.0).isolated().args(arguments).build();
        assert_eq!(built.unwrap_err().kind(), ErrorKind::Invalid, "{wrong}");
    }
}

#[test]
fn a_program_without_arguments_of_its_own_refuses_them() {
    let folder = Folder::new();
    let build = |line: &str| {
        let arguments = line.split_whitespace().map(str::to_owned);
        let builder = Context::builder().runtime_dir(&folder.0).domain(1).isolated();
        builder.args(arguments).only_ros_args().build()
    };
    for line in ["", "--ros-args -r a:=b", "--ros-args -r __node:=x --"] {
        build(line).unwrap();
    }
    for (line, expect) in [
        ("-r a:=b", "\"-r\""),
        ("--help", "\"--help\""),
        ("--ros-args -r a:=b -- more", "\"more\""),
    ] {
        let error = build(line).unwrap_err();
        let expect = format!("{expect}: this program has no arguments of its own; allowed: ");
        assert!(error.to_string().starts_with(&expect), "{line}: {error}");
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}

/// A timer that runs while there is something to do, and is reset by whoever brings more, from another thread and
/// at any moment: while its executor sleeps, looks when it is due, or runs it, and finds nothing left to do.
#[test]
fn no_reset_of_a_timer_is_lost() {
    let _watchdog = Watchdog::start("resets");
    for threads in [1, 3] {
        let folder = Folder::new();
        let context = folder.process();
        let node = context.node("n").unwrap();
        let (brought, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let timer = Arc::new(OnceLock::<Timer>::new());
        let (to_do, doing, own) = (Arc::clone(&brought), Arc::clone(&done), Arc::downgrade(&timer));
        let look = move || {
            let all = to_do.load(Ordering::SeqCst);
            doing.store(all, Ordering::SeqCst);
            let Some(own) = own.upgrade() else { return };
            let Some(timer) = own.get() else { return };
            timer.cancel();
            if to_do.load(Ordering::SeqCst) != all {
                timer.reset();
            }
        };
        timer.set(node.create_timer(Duration::from_micros(20), look).unwrap()).unwrap();
        let mut executor = Executor::new(&context).unwrap().threads(threads);
        executor.add(&node).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| executor.spin().unwrap());
            let mut random = Random(threads as u64);
            for number in 1..=5_000 {
                brought.store(number, Ordering::SeqCst);
                timer.get().unwrap().reset();
                // Often it is not done yet when there is more.
                (0..random.below(2_000)).for_each(|_| std::hint::spin_loop());
                let is_awaited = random.below(2) == 0;
                while is_awaited && done.load(Ordering::SeqCst) != number {
                    std::thread::yield_now();
                }
            }
            wait_until("all is done", || done.load(Ordering::SeqCst) == 5_000);
            context.shutdown();
        });
    }
}

#[test]
fn timers_keep_their_period_and_can_be_cancelled_and_reset() {
    let _watchdog = Watchdog::start("timers");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let (fast, slow) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (count_fast, count_slow) = (Arc::clone(&fast), Arc::clone(&slow));
    let fast_timer = node
        .create_timer(Duration::from_millis(2), move || {
            count_fast.fetch_add(1, Ordering::SeqCst);
        })
        .unwrap();
    let slow_timer = node
        .create_timer(Duration::from_millis(20), move || {
            count_slow.fetch_add(1, Ordering::SeqCst);
        })
        .unwrap();
    assert!(node.create_timer(Duration::ZERO, || ()).is_err());
    let mut executor = Executor::new(&context).unwrap().threads(2);
    executor.add(&node).unwrap();
    let start = std::time::Instant::now();
    executor.spin_until(|| slow.load(Ordering::SeqCst) == 5).unwrap();
    // Never early: five periods have passed, and no more calls were made than fit into them.
    assert!(Duration::from_millis(100) <= start.elapsed() + Duration::from_millis(20));
    let elapsed = start.elapsed().as_millis() as u64;
    assert!(fast.load(Ordering::SeqCst) <= elapsed / 2 + 20);
    fast_timer.cancel();
    let (before, turns) = (fast.load(Ordering::SeqCst), slow.load(Ordering::SeqCst));
    executor.spin_until(|| slow.load(Ordering::SeqCst) == turns + 3).unwrap();
    // One call may have been on its way.
    let after = fast.load(Ordering::SeqCst);
    assert!(after <= before + 1, "{before} {after}");
    fast_timer.reset();
    executor.spin_until(|| after + 3 <= fast.load(Ordering::SeqCst)).unwrap();
    // A timer that is made while everybody sleeps is noticed. (The end is asked for first.)
    slow_timer.cancel();
    fast_timer.cancel();
    let spinning = AtomicBool::new(false);
    let late = Arc::new(AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            executor
                .spin_until(|| {
                    spinning.store(true, Ordering::SeqCst);
                    0 < late.load(Ordering::SeqCst)
                })
                .unwrap();
        });
        wait_until("it spins", || spinning.load(Ordering::SeqCst));
        let counted = Arc::clone(&late);
        let _timer = node
            .create_timer(Duration::from_millis(1), move || {
                counted.fetch_add(1, Ordering::SeqCst);
            })
            .unwrap();
        wait_until("the new timer runs", || 0 < late.load(Ordering::SeqCst));
    });
}

#[test]
fn everything_may_be_dropped_in_any_order() {
    let _watchdog = Watchdog::start("any order");
    let folder = Folder::new();
    let mut random = Random(6);
    for _ in 0..60 {
        let (context, other) = (folder.process(), folder.process());
        let node = context.node("n").unwrap();
        let publisher = node.create_publisher::<UInt64>("t", keep_all()).unwrap();
        let near = node.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
        let remote_node = other.node("far").unwrap();
        let far = remote_node.create_polled_subscription::<UInt64>("t", keep_last(4)).unwrap();
        publisher.wait_for_subscriptions(2, HANG).unwrap();
        let called = node.create_subscription::<UInt64>("t", keep_all(), |_| ()).unwrap();
        let timer = node.create_timer(Duration::from_millis(1), || ()).unwrap();
        let mut executor = Executor::new(&context).unwrap();
        executor.add(&node).unwrap();
        let mut set = WaitSet::new(&other).unwrap();
        set.add(&far).unwrap();
        let loan = publisher.loan_bytes(64).unwrap();
        publisher.publish(UInt64 { data: 1 }).unwrap();
        let by_value = near.take().unwrap().unwrap();
        let by_bytes = loop {
            if let Some(received) = far.take().unwrap() {
                break received;
            }
            set.wait(HANG).unwrap();
        };
        let group = node.create_callback_group(CallbackGroupKind::Reentrant);
        let mut all: Vec<Box<dyn std::any::Any>> = vec![
            Box::new(context),
            Box::new(other),
            Box::new(node),
            Box::new(remote_node),
            Box::new(publisher),
            Box::new(near),
            Box::new(far),
            Box::new(called),
            Box::new(timer),
            Box::new(executor),
            Box::new(set),
            Box::new(loan),
            Box::new(by_value),
            Box::new(by_bytes),
            Box::new(group),
        ];
        while !all.is_empty() {
            let at = random.below(all.len() as u64) as usize;
            drop(all.swap_remove(at));
        }
    }
    assert_eq!(folder.sockets().len(), 0, "{:?}", folder.sockets());
}

#[test]
fn a_spin_once_after_another_spin_runs_what_is_ready_and_returns() {
    let _watchdog = Watchdog::start("spin once");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let publisher = Arc::new(node.create_publisher::<UInt64>("t", keep_all()).unwrap());
    let count = Arc::new(AtomicU64::new(0));
    let (counted, answer) = (Arc::clone(&count), Arc::clone(&publisher));
    // Each sample is answered by the next, so there is always one more.
    let _subscription = node
        .create_subscription::<UInt64>("t", keep_all(), move |received| {
            counted.fetch_add(1, Ordering::SeqCst);
            answer.publish(UInt64 { data: received.view().data + 1 }).unwrap();
        })
        .unwrap();
    publisher.publish(UInt64 { data: 0 }).unwrap();
    let mut executor = Executor::new(&context).unwrap();
    executor.add(&node).unwrap();
    let reached = |wanted| count.load(Ordering::SeqCst) == wanted;
    executor.spin_until(|| reached(3)).unwrap();
    for round in 4..20 {
        executor.spin_once(HANG).unwrap();
        assert!(reached(round), "{} after round {round}", count.load(Ordering::SeqCst));
    }
}

#[test]
fn a_context_under_other_arguments_is_of_the_same_participant() {
    let folder = Folder::new();
    let context = folder.process();
    let arguments = ["--ros-args", "-r", "t:=u", "-r", "__node:=other", "-p", "x:=1"];
    let other = context.with_args(arguments.map(str::to_owned)).unwrap();
    assert_eq!(other.token(), context.token());
    assert_eq!(other.parameter_arguments(), [ParameterArgument::Assign("x:=1".into())]);
    let (node, renamed) = (context.node("n").unwrap(), other.node("n").unwrap());
    assert_eq!((node.name(), renamed.name()), ("n", "other"));
    let publisher = node.create_publisher::<UInt64>("u", keep_last(1)).unwrap();
    let subscription = renamed.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    publisher.publish(UInt64 { data: 7 }).unwrap();
    wait_until("it has come", || subscription.is_ready());
    assert!(subscription.take().unwrap().unwrap().is_by_reference());
    // It ends with the other, and keeps what it was made of.
    drop((node, context));
    assert!(other.is_ok());
    assert!(other.with_args(["--ros-args".to_owned(), "nonsense".to_owned()]).is_err());
    other.shutdown();
    assert!(!other.is_ok());
}

#[test]
fn a_waker_lets_a_spin_end() {
    let folder = Folder::new();
    let context = folder.process();
    let mut executor = Executor::new(&context).unwrap().threads(2);
    let (wake, is_done) = (executor.waker(), AtomicBool::new(false));
    let has_asked = Barrier::new(2);
    let asked = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let spin = scope.spawn(|| {
            executor.spin_until(|| {
                if asked.fetch_add(1, Ordering::AcqRel) == 0 {
                    has_asked.wait();
                }
                is_done.load(Ordering::Acquire)
            })
        });
        has_asked.wait();
        is_done.store(true, Ordering::Release);
        wake();
        spin.join().unwrap().unwrap();
    });
}

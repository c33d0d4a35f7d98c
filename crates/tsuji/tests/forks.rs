//! A forked child may do nothing with what its parent uses, and harms nothing by ending.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use house::{Child, Folder, HANG, heard, keep_all, take_until, tell};
use tsuji::{Context, ErrorKind, Executor, PublisherOptions, Qos, Result, WaitSet};
use tsuji_interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use tsuji_interfaces::std_msgs::msg::UInt64;

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "fork and use all" => fork_and_use_all(),
        "fork and call" => fork_and_call(),
        "fork and trigger" => fork_and_trigger(),
        "fork in a callback" => fork_in_a_callback(),
        "fork a child that stays" => fork_a_child_that_stays(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_child_that_triggers_takes_no_wake_up_from_its_parent() {
    let folder = Folder::new();
    let child = Child::start(&folder, "fork and trigger");
    child.expect("the parent was woken");
    child.finish();
}

/// Runs `body` in a forked child and answers the child's process id.
fn fork(body: impl FnOnce()) -> i32 {
    // SAFETY: the only other threads are tsuji's own and the test harness's, which hold no lock
    // that `body` takes but the allocator's, which libc makes usable.
    let pid = unsafe { libc::fork() };
    assert!(0 <= pid, "{}", std::io::Error::last_os_error());
    if pid == 0 {
        let is_right =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).map_or(1, |()| 0);
        // SAFETY: ends the child, running nothing of the parent's.
        unsafe { libc::_exit(is_right) }
    }
    pid
}

fn wait_for(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: a child of this process that nobody else waits for.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status
}

#[track_caller]
fn closed<T>(result: Result<T>) {
    match result {
        Ok(_) => panic!("a forked child is served"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
            assert!(error.to_string().contains("forked child"), "{error}");
        }
    }
}

/// The child's trigger must not pass for one of the parent's, which would wake nobody any more.
fn fork_and_trigger() {
    let context = house::context();
    let guard = tsuji::GuardCondition::new(&context).unwrap();
    let mut list = tsuji::WaitList::new(&context).unwrap();
    let sleeper = Arc::new(AtomicU64::new(0));
    let (waited_for, id) = (guard.clone(), Arc::clone(&sleeper));
    let waiting = std::thread::spawn(move || {
        // SAFETY: it asks for a number.
        id.store(unsafe { libc::gettid() } as u64, Ordering::Release);
        list.wait(&[&waited_for], None).unwrap().len()
    });
    house::wait_until("it sleeps", || {
        let stat = std::fs::read_to_string(format!(
            "/proc/self/task/{}/stat",
            sleeper.load(Ordering::Acquire)
        ));
        stat.is_ok_and(|it| it.contains(") S "))
    });
    let child = fork(|| guard.trigger());
    assert_eq!(wait_for(child), 0);
    guard.trigger();
    assert_eq!(waiting.join().unwrap(), 1);
    tell("the parent was woken");
}

fn fork_and_use_all() {
    let context = house::context();
    let node = context.node("parent").unwrap();
    let publisher = node.create_publisher::<UInt64>("out", keep_all()).unwrap();
    let count = Arc::new(AtomicU64::new(0));
    let sink = Arc::clone(&count);
    let called = node
        .create_subscription::<UInt64>("in", keep_all(), move |_| {
            sink.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
    let taken = node.create_polled_subscription::<UInt64>("in", keep_all()).unwrap();
    let own = node.create_polled_subscription::<UInt64>("out", keep_all()).unwrap();
    let timer = node.create_timer(Duration::from_secs(3600), || ()).unwrap();
    let mut executor = Executor::new(&context).unwrap();
    executor.add(&node).unwrap();
    let mut set = WaitSet::new(&context).unwrap();
    set.add(&taken).unwrap();
    called.wait_for_publishers(1, HANG).unwrap();
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    let loan = publisher.loan_bytes(100).unwrap();
    let view = {
        publisher.publish(UInt64 { data: 0 }).unwrap();
        own.take().unwrap().unwrap()
    };
    // Everything is moved into the child, which drops its copy of it.
    let everything = (context, node, publisher, called, taken, own, timer, executor, set);
    let everything = std::mem::ManuallyDrop::new((everything, loan, view));
    let child = fork(|| {
        // SAFETY: in the child this copy is the only one; the parent's is in another memory.
        let it: (All, tsuji::Loan, tsuji::Received<UInt64>) =
            unsafe { std::ptr::read(&*everything) };
        let ((context, node, publisher, called, taken, own, timer, mut executor, set), loan, view) =
            it;
        assert!(!context.is_ok());
        closed(publisher.publish(UInt64 { data: 666 }));
        closed(publisher.publish(UInt64 { data: 666 }));
        closed(publisher.loan_bytes(8));
        closed(publisher.publish_loan(loan));
        closed(publisher.assert_liveliness());
        closed(publisher.wait_for_subscriptions(1, HANG));
        closed(taken.take());
        closed(own.take());
        closed(set.wait(HANG));
        closed(executor.spin());
        closed(executor.spin_once(HANG));
        closed(context.node("child"));
        closed(node.create_publisher::<UInt64>("x", Qos::DEFAULT));
        closed(node.create_polled_subscription::<UInt64>("x", Qos::DEFAULT));
        closed(context.routes(HANG));
        closed(context.settle(HANG));
        closed(WaitSet::new(&context));
        closed(Executor::new(&context));
        drop(set);
        drop(executor);
        drop((view, timer, called, taken, own, publisher, node));
        context.shutdown();
        drop(context);
        // A context of its own works.
        let own = Context::builder().isolated().build().unwrap();
        assert!(own.is_ok() && 0 < own.settle(HANG).unwrap());
        tell("the forked child is done");
    });
    let status = wait_for(child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status}");
    let (all, loan, view) = std::mem::ManuallyDrop::into_inner(everything);
    let (context, node, publisher, called, taken, own, timer, mut executor, set) = all;
    assert_eq!(view.view().data, 0);
    drop(loan);
    assert!(context.is_ok());
    assert_eq!(publisher.matched(), 2);
    tell("forked");
    // The peer sends one; both subscriptions get it, and the answer arrives.
    executor.spin_until(|| count.load(Ordering::Relaxed) == 1).unwrap();
    while taken.take().unwrap().is_none() {
        assert!(!set.wait(HANG).unwrap().is_empty());
    }
    publisher.publish(UInt64 { data: 2 }).unwrap();
    assert_eq!(own.take().unwrap().unwrap().view().data, 2);
    heard();
    drop((called, timer, node));
}

type All = (
    Context,
    tsuji::Node,
    tsuji::Publisher<UInt64>,
    tsuji::Subscription<UInt64>,
    tsuji::Subscription<UInt64>,
    tsuji::Subscription<UInt64>,
    tsuji::Timer,
    Executor,
    WaitSet,
);

#[test]
fn a_forked_childs_calls_are_closed_and_its_end_harms_nothing() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("peer").unwrap();
    let publisher = node.create_publisher::<UInt64>("in", keep_all()).unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("out", keep_all()).unwrap();
    let mut child = Child::start(&folder, "fork and use all");
    child.expect("the forked child is done");
    child.expect("forked");
    assert_eq!(publisher.matched(), 2);
    publisher.publish(UInt64 { data: 1 }).unwrap();
    take_until(&node, &subscription, |received| received.view().data == 2);
    assert_eq!(context.unreachable_peers(), []);
    child.say("end");
    child.finish();
}

fn fork_and_call() {
    let context = house::context();
    let node = context.node("parent").unwrap();
    let client = node.create_client::<AddTwoInts>("add").unwrap();
    let service = node.create_polled_service::<AddTwoInts>("own").unwrap();
    let own = node.create_client::<AddTwoInts>("own").unwrap();
    client.wait_for_service(HANG).unwrap();
    let request = AddTwoIntsRequest { a: 1, b: 2 };
    let [pending, dropped] = [(); 2].map(|()| client.send(request).unwrap());
    let [one, two] = [(); 2].map(|()| own.send(request).unwrap());
    let [held, unanswered] = [(); 2].map(|()| service.take().unwrap().unwrap());
    let everything = (node, client, service, own, pending, dropped, held, unanswered, one, two);
    let everything = std::mem::ManuallyDrop::new(everything);
    let child = fork(|| {
        // SAFETY: in the child this copy is the only one; the parent's is in another memory.
        let it: Calling = unsafe { std::ptr::read(&*everything) };
        let (node, client, service, own, pending, dropped, held, unanswered, one, two) = it;
        closed(client.call(request, HANG));
        closed(client.send(request));
        closed(client.wait_for_service(HANG));
        closed(own.call(request, HANG));
        closed(pending.wait(HANG));
        closed(service.take());
        closed(held.respond(AddTwoIntsResponse { sum: 666 }));
        closed(node.create_client::<AddTwoInts>("x"));
        assert!(!client.is_ready() && client.counters().open == 0 && client.obstacles().is_empty());
        assert_eq!(service.counters().open, 0);
        drop((dropped, unanswered, one, two, service, own, client, node));
    });
    assert!(libc::WIFEXITED(wait_for(child)));
    let everything = std::mem::ManuallyDrop::into_inner(everything);
    let (node, client, service, own, pending, dropped, held, unanswered, one, two) = everything;
    assert_eq!((client.counters().open, service.counters().open), (2, 2));
    assert_eq!(pending.wait(HANG).unwrap().sum, 3);
    held.respond(AddTwoIntsResponse { sum: 4 }).unwrap();
    assert_eq!(one.wait(HANG).unwrap().sum, 4);
    assert_eq!(client.call(request, HANG).unwrap().sum, 3);
    drop((dropped, unanswered, two, own, node));
    assert_eq!((client.counters().lost, service.counters().unanswered), (0, 1));
    tell("all is well");
}

type Calling = (
    tsuji::Node,
    tsuji::Client<AddTwoInts>,
    tsuji::Service<AddTwoInts>,
    tsuji::Client<AddTwoInts>,
    tsuji::Pending<AddTwoInts>,
    tsuji::Pending<AddTwoInts>,
    tsuji::Request<AddTwoInts>,
    tsuji::Request<AddTwoInts>,
    tsuji::Pending<AddTwoInts>,
    tsuji::Pending<AddTwoInts>,
);

#[test]
fn a_forked_childs_calls_of_services_are_closed_and_harm_nothing() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("server").unwrap();
    let answered = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&answered);
    let _service = node
        .create_service::<AddTwoInts>("add", move |request| {
            count.fetch_add(1, Ordering::Relaxed);
            AddTwoIntsResponse { sum: request.a + request.b }
        })
        .unwrap();
    let child = Child::start(&folder, "fork and call");
    let mut executor = Executor::new(&context).unwrap();
    executor.add(&node).unwrap();
    executor.spin_until(|| answered.load(Ordering::Relaxed) == 3).unwrap();
    child.expect("all is well");
    child.finish();
    assert_eq!(answered.load(Ordering::Relaxed), 3);
}

fn fork_in_a_callback() {
    let context = house::context();
    let node = context.node("parent").unwrap();
    let is_child = Arc::new(AtomicU64::new(0));
    let (mark, counted) = (Arc::clone(&is_child), Arc::new(AtomicU64::new(0)));
    let count = Arc::clone(&counted);
    let _subscription = node
        .create_subscription::<UInt64>("in", keep_all(), move |_| {
            if count.fetch_add(1, Ordering::Relaxed) == 0 {
                // SAFETY: as in `fork`; the child goes on in the executor.
                let pid = unsafe { libc::fork() };
                mark.store(u64::from(pid == 0), Ordering::Relaxed);
                if pid != 0 {
                    let status = wait_for(pid);
                    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
                }
            }
        })
        .unwrap();
    let mut executor = Executor::new(&context).unwrap();
    executor.add(&node).unwrap();
    tell("ready");
    let spun = executor.spin_until(|| counted.load(Ordering::Relaxed) == 3);
    if is_child.load(Ordering::Relaxed) == 1 {
        closed(spun);
        // SAFETY: ends the child, running nothing of the parent's.
        unsafe { libc::_exit(0) }
    }
    spun.unwrap();
    tell("all came");
}

#[test]
fn a_fork_in_a_callback_ends_the_childs_spin_and_not_the_parents() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("peer").unwrap();
    let publisher = node.create_publisher::<UInt64>("in", keep_all()).unwrap();
    let child = Child::start(&folder, "fork in a callback");
    child.expect("ready");
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    (0..3).for_each(|data| publisher.publish(UInt64 { data }).unwrap());
    child.expect("all came");
    child.finish();
}

fn fork_a_child_that_stays() {
    let context = house::context();
    let node = context.node("parent").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    let tester: i32 = std::env::var("TSUJI_TESTER").unwrap().parse().unwrap();
    let stays = fork(|| {
        // SAFETY: asks only whether the process is there.
        while unsafe { libc::kill(tester, 0) } == 0 {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    tell(&stays.to_string());
    heard();
}

#[test]
fn a_death_is_noticed_although_a_forked_child_lives_on() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("peer").unwrap();
    let publisher = node
        .create_publisher::<UInt64>(
            "t",
            PublisherOptions::default().qos(keep_all()).max_blocking(HANG),
        )
        .unwrap();
    let tester = std::process::id().to_string();
    let environment = [("TSUJI_TESTER", &*tester)];
    let child = Child::start_with(&folder, "fork a child that stays", &environment);
    let stays: i32 = child.line().parse().unwrap();
    // What it does not read blocks this publisher until its death is noticed.
    std::thread::scope(|scope| {
        let publishing =
            scope.spawn(|| (0..2000).try_for_each(|data| publisher.publish(UInt64 { data })));
        house::wait_until("it is full", || 1024 <= publisher.counters().published);
        child.kill();
        publishing.join().unwrap().unwrap();
    });
    context
        .wait_for_graph(HANG, |graph| (graph.nodes.len() == 1).then_some(()))
        .unwrap()
        .expect("the death is noticed");
    // Nobody answers at its door either: the next start removes it.
    let next = folder.process();
    assert_eq!(next.settle(HANG).unwrap(), 1);
    assert_eq!(folder.sockets().len(), 2, "{:?}", folder.sockets());
    // SAFETY: the child of the killed child, which nobody else ends.
    assert_eq!(unsafe { libc::kill(stays, libc::SIGKILL) }, 0);
}

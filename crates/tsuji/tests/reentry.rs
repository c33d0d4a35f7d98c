//! The user's code is never called while a lock is held: whatever it asks then, it is answered.
//!
//! Each test hangs where that is not so, and a watchdog cuts it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod house;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, RwLock};
use std::task::{Context as TaskContext, RawWaker, RawWakerVTable, Waker};
use std::thread;

use house::{Folder, HANG, Watchdog, best_effort, keep_all, keep_last, take_until, wait_until};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata};
use tsuji::{
    Context, Durability, ErrorKind, Executor, Graph, Message, Node, PublisherOptions, Qos, RawType,
    ServiceType, SubscriptionOptions,
};
use tsuji_interfaces::std_msgs::msg::{String as Text, UInt64};
use tsuji_msg::cdr::{Reader, Sink, Writer};
use tsuji_msg::{CdrError, Wire};

type Hook = Arc<dyn Fn() + Send + Sync>;

/// What the user's code does in each place where it is called, and how often it was.
static HOOK: RwLock<Option<Hook>> = RwLock::new(None);
static CALLS: Mutex<BTreeMap<&str, usize>> = Mutex::new(BTreeMap::new());
/// One test at a time has the hook.
static TURN: Mutex<()> = Mutex::new(());

/// The user's code runs.
fn called(place: &'static str) {
    thread_local!(static IS_INSIDE: Cell<bool> = const { Cell::new(false) });
    // What it calls in turn asks nothing, and counts all the same: whoever waits for it would wait for ever.
    if IS_INSIDE.replace(true) {
        *CALLS.lock().unwrap().entry(place).or_default() += 1;
        return;
    }
    let hook = HOOK.read().unwrap().clone();
    if let Some(hook) = hook {
        hook();
        *CALLS.lock().unwrap().entry(place).or_default() += 1;
    }
    IS_INSIDE.set(false);
}

/// From now on `hook` is what the user's code does. Ends with the answer.
fn hook(hook: impl Fn() + Send + Sync + 'static) -> impl Drop {
    struct End;

    impl Drop for End {
        fn drop(&mut self) {
            *HOOK.write().unwrap() = None;
        }
    }

    CALLS.lock().unwrap().clear();
    *HOOK.write().unwrap() = Some(Arc::new(hook));
    End
}

#[track_caller]
fn expect_calls(places: &[&str]) {
    let calls = CALLS.lock().unwrap();
    for place in places {
        assert!(calls.contains_key(place), "{place} was not called: {calls:?}");
    }
}

fn turn() -> impl Drop {
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Asks all that takes the locks of a context.
fn ask(context: &Context) {
    let graph = context.graph();
    assert!(!graph.nodes.is_empty());
    let _ = context.endpoints_of("/t");
    let _ = context.peer_processes();
    let _ = context.transports();
}

/// A number whose every function is the user's.
#[derive(Debug, Default, PartialEq)]
struct Curious(UInt64);

impl Clone for Curious {
    fn clone(&self) -> Self {
        called("clone");
        Self(self.0)
    }
}

impl Drop for Curious {
    fn drop(&mut self) {
        called("drop");
    }
}

impl Wire for Curious {
    type View<'a> = <UInt64 as Wire>::View<'a>;
    const MIN_SIZE: usize = UInt64::MIN_SIZE;

    fn write<S: Sink>(&self, writer: &mut Writer<S>) -> Result<(), CdrError> {
        called(if S::COUNTS { "count" } else { "write" });
        self.0.write(writer)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        called("read");
        UInt64::read(reader).map(Self)
    }

    fn as_view(&self) -> Self::View<'_> {
        self.0.as_view()
    }

    fn read_view<'a>(reader: &mut Reader<'a>) -> Result<Self::View<'a>, CdrError> {
        called("check");
        UInt64::read_view(reader)
    }

    fn from_view(view: &Self::View<'_>) -> Self {
        Self(UInt64::from_view(view))
    }
}

impl Message for Curious {
    const TYPE_NAME: &'static str = UInt64::TYPE_NAME;
    const TYPE_HASH: &'static str = UInt64::TYPE_HASH;
    // So that it is measured, too.
    const FIXED_SIZE: Option<usize> = None;
    const DEFINITION: &'static str = UInt64::DEFINITION;
}

struct Ask;

impl ServiceType for Ask {
    type Request = Curious;
    type Response = Curious;
    const TYPE_NAME: &'static str = "test_msgs/srv/Ask";
    const TYPE_HASH: &'static str =
        "RIHS01_0000000000000000000000000000000000000000000000000000000000000000";
}

fn curious(data: u64) -> Curious {
    Curious(UInt64 { data })
}

fn latched(depth: u32) -> Qos {
    Qos { durability: Durability::TransientLocal, ..keep_last(depth) }
}

#[test]
fn whoever_waits_for_the_graph_may_ask_anything() {
    let _turn = turn();
    let _watchdog = Watchdog::start("asking while waiting for the graph");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("first").unwrap();
    let mut kept = Vec::new();
    let asked = |graph: &Graph| {
        ask(&context);
        context.routes(HANG).unwrap();
        context.wait_for_graph(HANG, |_| Some(())).unwrap();
        // A change from inside is seen as well.
        if kept.len() < 3 {
            kept.push(node.create_publisher::<UInt64>("t", Qos::DEFAULT).unwrap());
        }
        (graph.endpoints.len() == 3).then_some(())
    };
    assert_eq!(context.wait_for_graph(HANG, asked).unwrap(), Some(()));
}

#[test]
fn the_code_of_a_message_may_ask_anything() {
    let _turn = turn();
    let _watchdog = Watchdog::start("a message that asks");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let (writer, reader) = (one.node("writer").unwrap(), two.node("reader").unwrap());
    let publisher = Arc::new(writer.create_publisher::<Curious>("t", latched(3)).unwrap());
    let far = Arc::new(reader.create_polled_subscription::<Curious>("t", keep_all()).unwrap());
    let near = Arc::new(writer.create_polled_subscription::<Curious>("t", keep_last(2)).unwrap());
    publisher.wait_for_subscriptions(2, HANG).unwrap();
    far.wait_for_publishers(1, HANG).unwrap();
    let (asking, asked_remote, asked_near) = (publisher.clone(), far.clone(), near.clone());
    let contexts = [one.clone(), two.clone()];
    let end = hook(move || {
        contexts.iter().for_each(ask);
        assert!(asking.counters().published <= 40);
        let _ = (asking.matched(), asked_remote.counters(), asked_near.counters());
        let _ = (asked_remote.is_ready(), asked_near.matched());
    });
    // By a loan of shared memory, by reference and copied; what is pushed out is dropped.
    for data in 0..10 {
        publisher.publish(curious(data)).unwrap();
        let looked_at = curious(data);
        publisher.publish(&looked_at).unwrap();
        assert_eq!(near.take().unwrap().unwrap().view().data, data);
        take_until(&reader, &far, |received| {
            received.message();
            received.view().data == data
        });
    }
    expect_calls(&["count", "write", "check", "read", "drop"]);

    // What late joiners are owed, by each link.
    let late = reader.create_polled_subscription::<Curious>("t", latched(3)).unwrap();
    take_until(&reader, &late, |received| received.view().data == 9);
    let late_near = writer.create_polled_subscription::<Curious>("t", latched(3)).unwrap();
    take_until(&writer, &late_near, |received| received.view().data == 9);

    // What waits is dropped with its queue, and with the history.
    publisher.publish(curious(10)).unwrap();
    CALLS.lock().unwrap().clear();
    drop(late_near);
    drop((late, end));
}

#[test]
fn what_ends_keep_is_dropped_when_no_lock_is_held() {
    let _turn = turn();
    let _watchdog = Watchdog::start("values that ask when dropped");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let asked = context.clone();
    let _end = hook(move || ask(&asked));
    for qos in [latched(5), Qos { history: tsuji::History::KeepAll, ..latched(5) }] {
        CALLS.lock().unwrap().clear();
        let publisher = node.create_publisher::<Curious>("t", qos).unwrap();
        (0..4).for_each(|data| publisher.publish(curious(data)).unwrap());
        drop(publisher);
        expect_calls(&["drop"]);
    }
    CALLS.lock().unwrap().clear();
    let publisher = node.create_publisher::<Curious>("t", keep_last(5)).unwrap();
    let subscription = node.create_polled_subscription::<Curious>("t", keep_last(5)).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    (0..4).for_each(|data| publisher.publish(curious(data)).unwrap());
    drop(subscription);
    expect_calls(&["drop"]);
}

#[test]
fn the_code_of_a_request_and_a_response_may_ask_anything() {
    let _turn = turn();
    let _watchdog = Watchdog::start("a service that asks");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    for far in [&one, &two] {
        let (server, asker) = (one.node("server").unwrap(), far.node("asker").unwrap());
        let service = server.create_service::<Ask>("ask", |asked| curious(asked.0.data + 1));
        let _service = service.unwrap();
        let client = asker.create_client::<Ask>("ask").unwrap();
        client.wait_for_service(HANG).unwrap();
        let contexts = [one.clone(), two.clone()];
        for context in &contexts {
            let knows = |graph: &Graph| (graph.nodes.len() == 2).then_some(());
            context.wait_for_graph(HANG, knows).unwrap().unwrap();
        }
        let _end = hook(move || contexts.iter().for_each(ask));
        let mut executor = Executor::new(&one).unwrap();
        executor.add(&server).unwrap();
        let stop = executor.waker();
        let is_done = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let question = curious(1);
                assert_eq!(client.call(&question, HANG).unwrap().view().data, 2);
                is_done.store(true, std::sync::atomic::Ordering::Release);
                stop();
            });
            let done = || is_done.load(std::sync::atomic::Ordering::Acquire);
            executor.spin_until(done).unwrap();
        });
        expect_calls(&["drop"]);
    }
}

/// Asks whenever something is told.
struct Nosy;

impl tracing::Subscriber for Nosy {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        called(match *event.metadata().level() {
            tracing::Level::WARN => "a warning",
            _ => "another line",
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn a_tracing_subscriber_may_ask_anything() {
    let _turn = turn();
    let _watchdog = Watchdog::start("a tracing subscriber that asks");
    tracing::subscriber::set_global_default(Nosy).unwrap();
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let (node, far) = (one.node("n").unwrap(), two.node("far").unwrap());
    let raw = RawType::new(Text::TYPE_NAME).hash(Text::TYPE_HASH);
    let publisher = Arc::new(node.create_raw_publisher("t", raw, Qos::DEFAULT).unwrap());
    let subscription = Arc::new(far.create_polled_subscription::<Text>("t", Qos::DEFAULT).unwrap());
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let (contexts, asked) = ([one.clone(), two.clone()], (publisher.clone(), subscription.clone()));
    let _end = hook(move || {
        contexts.iter().for_each(ask);
        let _ = (asked.0.counters(), asked.1.counters());
    });
    // Told with the lock of the graph, by the thread of the control channels too.
    let _asks_too_much = far.create_polled_subscription::<UInt64>("q", keep_last(1)).unwrap();
    let _offers = node.create_publisher::<UInt64>("q", best_effort(1)).unwrap();
    wait_until("both sides are told that they do not fit", || {
        2 <= CALLS.lock().unwrap().get("a warning").copied().unwrap_or(0)
    });
    // Told with the lock of a subscription.
    CALLS.lock().unwrap().clear();
    publisher.publish_bytes(&[0, 1, 0, 0, 2, 0, 0, 0, 0xff, 0]).unwrap();
    wait_until("the message is invalid", || {
        assert!(subscription.take().unwrap().is_none());
        subscription.counters().invalid == 1
    });
    expect_calls(&["a warning"]);
}

/// A waker whose every function is the user's.
fn nosy_waker() -> Waker {
    const TABLE: RawWakerVTable = RawWakerVTable::new(
        |_| {
            called("waker cloned");
            RawWaker::new(std::ptr::null(), &TABLE)
        },
        |_| called("woken"),
        |_| called("woken"),
        |_| called("waker dropped"),
    );
    // SAFETY: nothing is behind the pointer, and the functions may be called by any thread.
    unsafe { Waker::new(std::ptr::null(), &TABLE) }
}

#[test]
fn a_waker_may_ask_anything() {
    let _turn = turn();
    let _watchdog = Watchdog::start("wakers that ask");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let server = context.node("server").unwrap();
    let subscription =
        Arc::new(node.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap());
    let publisher = node.create_publisher::<UInt64>("t", Qos::DEFAULT).unwrap();
    let service = server.create_polled_service::<Ask>("ask").unwrap();
    let client = Arc::new(node.create_client::<Ask>("ask").unwrap());
    client.wait_for_service(HANG).unwrap();
    let asked = (context.clone(), subscription.clone(), client.clone());
    let _end = hook(move || {
        ask(&asked.0);
        let _ = (asked.1.counters(), asked.1.is_ready(), asked.2.counters());
    });
    let mut received = pin!(subscription.recv());
    let question = curious(1);
    let mut reply = pin!(client.send(&question).unwrap());
    for _ in 0..3 {
        // Another one each time: the one before is dropped.
        let (waker, another) = (nosy_waker(), nosy_waker());
        assert!(received.as_mut().poll(&mut TaskContext::from_waker(&waker)).is_pending());
        assert!(reply.as_mut().poll(&mut TaskContext::from_waker(&another)).is_pending());
    }
    CALLS.lock().unwrap().remove("woken");
    publisher.publish(UInt64 { data: 1 }).unwrap();
    wait_until("the task is woken", || CALLS.lock().unwrap().contains_key("woken"));
    CALLS.lock().unwrap().remove("woken");
    let request = service.take().unwrap().unwrap();
    request.respond(curious(2)).unwrap();
    wait_until("the client is woken", || CALLS.lock().unwrap().contains_key("woken"));
    expect_calls(&["waker cloned", "waker dropped"]);
}

#[test]
fn who_is_told_of_events_may_ask_anything_and_end_the_context() {
    let _turn = turn();
    let _watchdog = Watchdog::start("notes of events that ask");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let (node, far) = (one.node("n").unwrap(), two.node("far").unwrap());
    let asked = one.clone();
    let note = move |context: &Context, place: &'static str| {
        called(place);
        ask(context);
    };
    let (noted, first) = (note, asked.clone());
    let publisher = node
        .create_publisher::<UInt64>(
            "t",
            PublisherOptions::default().note_events(move |_| noted(&first, "publisher")),
        )
        .unwrap();
    let raw = RawType::new(UInt64::TYPE_NAME).hash(UInt64::TYPE_HASH);
    let _end = hook(|| ());
    let subscription = node
        .create_polled_raw_subscription(
            "t",
            raw,
            SubscriptionOptions::default().note_events(move |_| note(&asked, "subscription")),
        )
        .unwrap();
    expect_calls(&["publisher", "subscription"]);
    drop((publisher, subscription));

    // The thread of the control channels is told, and ends by it.
    let ended = one.clone();
    let publisher = node
        .create_publisher::<UInt64>(
            "end",
            PublisherOptions::default().note_events(move |_| ended.shutdown()),
        )
        .unwrap();
    let _far = far.create_polled_subscription::<UInt64>("end", Qos::DEFAULT).unwrap();
    wait_until("the context is shut down", || !one.is_ok());
    drop(publisher);
}

/// Callbacks of all kinds, each of which asks.
#[test]
fn callbacks_may_ask_anything() {
    let _turn = turn();
    let _watchdog = Watchdog::start("callbacks that ask");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let _end = hook(|| ());
    let asks = |place: &'static str| {
        let (context, node): (Context, Node) = (context.clone(), node.clone());
        move || {
            ask(&context);
            // An endpoint that comes and goes changes what the executor and the graph keep.
            drop(node.create_publisher::<UInt64>("of_a_callback", Qos::DEFAULT).unwrap());
            called(place);
        }
    };
    let (message, event) = (asks("message"), asks("event"));
    let _subscription = node
        .create_subscription::<UInt64>(
            "t",
            SubscriptionOptions::default().on_event(move |_| event()),
            move |_| message(),
        )
        .unwrap();
    let news = node.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
    let on_new_message = asks("news");
    news.on_new_message(Some(Box::new(move |_| on_new_message()))).unwrap();
    let _timer = node.create_timer(std::time::Duration::from_millis(1), asks("timer")).unwrap();
    let publisher = node.create_publisher::<UInt64>("t", Qos::DEFAULT).unwrap();
    publisher.publish(UInt64 { data: 1 }).unwrap();
    let mut executor = Executor::new(&context).unwrap();
    executor.add(&node).unwrap();
    let all = ["message", "event", "news", "timer"];
    let is_done = || all.iter().all(|it| CALLS.lock().unwrap().contains_key(it));
    while !is_done() {
        executor.spin_once(std::time::Duration::from_millis(10)).unwrap();
    }
}

/// Whoever agrees to a change asks what it likes, and waits in vain, but not for ever, for others that change something.
#[test]
fn callbacks_of_parameters_may_ask_anything_and_wait_for_others_that_set() {
    let _turn = turn();
    let _watchdog = Watchdog::start("callbacks of parameters that wait for a set");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let parameters = node.parameters().unwrap();
    parameters.declare("a", 1_i64).unwrap();
    parameters.declare("b", 1_i64).unwrap();
    let refusals = Arc::new(Mutex::new(Vec::new()));
    let callback = || {
        let (context, parameters, refusals) =
            (context.clone(), parameters.clone(), refusals.clone());
        move || {
            ask(&context);
            let own = parameters.set("b", 2_i64).unwrap_err();
            let other = parameters.clone();
            let other = thread::spawn(move || other.set("b", 2_i64).unwrap_err()).join().unwrap();
            let (sees, to_come) = (parameters.get::<i64>("a").unwrap(), other.to_string());
            assert!(to_come.contains("nothing was changed"), "{to_come}");
            refusals.lock().unwrap().push((sees, own.kind(), other.kind()));
        }
    };
    let (asked, told) = (callback(), callback());
    let agreeing = parameters.on_set(move |_| {
        asked();
        Ok(())
    });
    let hearing = parameters.on_post_set(move |_| told());
    parameters.set("a", 2_i64).unwrap();
    let expected = [1, 2].map(|sees| (sees, ErrorKind::Invalid, ErrorKind::Busy));
    assert_eq!(*refusals.lock().unwrap(), expected);
    assert_eq!(parameters.get::<i64>("b").unwrap(), 1);
    drop((agreeing, hearing));
    parameters.set("b", 3_i64).unwrap();
    assert_eq!(parameters.get::<i64>("b").unwrap(), 3);
}

/// One that only waits for its turn gets it, however long the others take together.
#[test]
fn changes_of_parameters_wait_for_each_other() {
    let _turn = turn();
    let _watchdog = Watchdog::start("parameters that many threads set");
    let folder = Folder::new();
    let node = folder.process().node("n").unwrap();
    let parameters = node.parameters().unwrap();
    parameters.declare("a", 0_i64).unwrap();
    let sums = Arc::new(Mutex::new(0));
    let summed = sums.clone();
    let _agreeing = parameters.on_set(move |_| {
        *summed.lock().unwrap() += 1;
        Ok(())
    });
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..100_i64).for_each(|it| parameters.set("a", it).unwrap()));
        }
    });
    assert_eq!(*sums.lock().unwrap(), 800);
}

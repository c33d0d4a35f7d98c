//! Services: requests that find their servers and replies that find their clients, on every link, and
//! what a caller is told when they do not.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use house::{Child, Folder, HANG, Watchdog, best_effort, heard, spun, tell, wait_until};
use tsuji::{
    CallbackGroupKind, Client, ClientEvent, ClientOptions, Context, EndpointKind, Error, ErrorKind,
    Executor, Node, Qos, RawType, Request, Role, RouteState, Service, ServiceEvent, ServiceOptions,
    ServiceType, WaitSet,
};
use tsuji_interfaces::diagnostic_msgs::srv::{
    AddDiagnostics, AddDiagnosticsRequest, AddDiagnosticsResponse,
};
use tsuji_interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use tsuji_interfaces::std_msgs::msg::UInt64;
use tsuji_interfaces::std_srvs::srv::{SetBool, SetBoolRequest, SetBoolResponse};

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "add" => serve(),
        "take and stay silent" => take_and_stay_silent(),
        "call and wait" => call_and_wait(),
        other => panic!("{other}"),
    }
}

fn serve() {
    let context = house::context();
    let node = context.node("server").unwrap();
    let _service = node.create_service::<AddTwoInts>("add", |it| add(&it)).unwrap();
    tell("there");
    thread::spawn(move || {
        heard();
        context.shutdown();
    });
    tsuji::spin(&node).unwrap();
}

fn take_and_stay_silent() {
    let context = house::context();
    let node = context.node("silent").unwrap();
    let service = node.create_polled_service::<AddTwoInts>("add").unwrap();
    tell("there");
    let _request = next(&node, &service);
    tell("holding");
    heard();
}

fn call_and_wait() {
    let context = house::context();
    let node = context.node("caller").unwrap();
    let client = node.create_client::<AddTwoInts>("add").unwrap();
    client.wait_for_service(HANG).unwrap();
    tell("calling");
    let _ = client.call(sum_of(1, 2), HANG);
}

fn sum_of(a: i64, b: i64) -> AddTwoIntsRequest {
    AddTwoIntsRequest { a, b }
}

fn add(request: &AddTwoIntsRequest) -> AddTwoIntsResponse {
    AddTwoIntsResponse { sum: request.a + request.b }
}

/// The next request of a service without a callback.
#[track_caller]
fn next<S: ServiceType>(node: &Node, service: &Service<S>) -> Request<S> {
    let mut set = WaitSet::new(node.context()).unwrap();
    set.add_service(service).unwrap();
    loop {
        if let Some(request) = service.take().unwrap() {
            return request;
        }
        assert!(!set.wait(HANG).unwrap().is_empty(), "no request comes");
    }
}

#[track_caller]
fn is_kind<T: std::fmt::Debug>(result: Result<T, Error>, kind: ErrorKind, word: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(word), "{error}");
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn in_one_process_request_and_response_are_the_same_values() {
    let _watchdog = Watchdog::start("one process");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("both").unwrap();
    let client = node.create_client::<AddTwoInts>("add").unwrap();
    assert!(!client.is_ready());
    let service = node.create_polled_service::<AddTwoInts>("/add").unwrap();
    assert!(client.is_ready());
    assert_eq!((client.name(), client.type_name()), ("/add", "example_interfaces/srv/AddTwoInts"));
    let request = Arc::new(sum_of(2, 40));
    let pending = client.send(Arc::clone(&request)).unwrap();
    let taken = service.take().unwrap().unwrap();
    assert!(Arc::ptr_eq(&taken.message(), &request));
    assert_eq!((taken.view().a, taken.info().publisher), (2, client.gid()));
    assert!(service.take().unwrap().is_none());
    taken.respond(AddTwoIntsResponse { sum: 42 }).unwrap();
    assert_eq!(pending.wait(HANG).unwrap().sum, 42);
    let (asked, answered) = (client.counters(), service.counters());
    assert_eq!((asked.sent, asked.replied, asked.open), (1, 1, 0));
    assert_eq!((answered.received, answered.answered, answered.open), (1, 1, 0));
    let routes = context.routes(HANG).unwrap();
    let roles: Vec<_> = routes.iter().map(|it| (it.role, it.transport.as_deref())).collect();
    assert_eq!(roles, [(Role::Request, Some("inproc")), (Role::Reply, Some("inproc"))]);
    assert!(routes.iter().all(|it| (it.sent, it.samples, it.lost) == (1, 1, 0)), "{routes:?}");
}

#[test]
fn a_callback_answers_another_process() {
    let _watchdog = Watchdog::start("another process");
    let folder = Folder::new();
    let mut server = Child::start(&folder, "add");
    server.expect("there");
    let context = folder.process();
    let client = context.node("caller").unwrap().create_client::<AddTwoInts>("add").unwrap();
    for a in 0..100 {
        let request = sum_of(a, 1);
        assert_eq!(client.call(request, HANG).unwrap(), add(&request));
    }
    assert_eq!(client.counters().replied, 100);
    let routes = context.routes(HANG).unwrap();
    assert_eq!(routes.len(), 2, "{routes:?}");
    assert!(routes.iter().all(|it| it.transport.as_deref() == Some("shm")), "{routes:?}");
    assert!(routes.iter().all(|it| (it.sent, it.samples, it.lost) == (100, 100, 0)), "{routes:?}");
    server.say("end");
    server.finish();
    wait_until("the server is gone", || !client.is_ready());
    is_kind(client.send(sum_of(1, 1)), ErrorKind::NoServer, "no server is ready");
}

#[test]
fn each_client_gets_its_own_replies() {
    let _watchdog = Watchdog::start("several clients");
    let folder = Folder::new();
    let serving = folder.process();
    let node = serving.node("server").unwrap();
    let _service = node.create_service::<AddTwoInts>("add", |it| add(&it)).unwrap();
    // Two processes, and one client in that of the server.
    let contexts = [folder.process(), folder.process(), serving.clone()];
    let clients: Vec<Client<AddTwoInts>> = (0..6)
        .map(|number| {
            let node = contexts[number % 3].node(&format!("c{number}")).unwrap();
            node.create_client("add").unwrap()
        })
        .collect();
    spun(&node, || {
        thread::scope(|scope| {
            for (number, client) in clients.iter().enumerate() {
                scope.spawn(move || {
                    for a in 0..200 {
                        let reply = client.call(sum_of(a, number as i64 * 1000), HANG).unwrap();
                        assert_eq!(reply.sum, a + number as i64 * 1000);
                    }
                });
            }
        });
    });
    for client in &clients {
        let counters = client.counters();
        assert_eq!((counters.replied, counters.late, counters.open), (200, 0, 0));
    }
    let routes = serving.routes(HANG).unwrap();
    assert_eq!(routes.len(), 12);
    // Nobody misses what others got.
    assert!(routes.iter().all(|it| (it.sent, it.samples, it.lost) == (200, 200, 0)), "{routes:?}");
}

#[test]
fn of_several_servers_the_first_reply_counts() {
    let _watchdog = Watchdog::start("several servers");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let (slow, fast) = (one.node("slow").unwrap(), two.node("fast").unwrap());
    let slow_service = slow.create_polled_service::<AddTwoInts>("add").unwrap();
    let fast_service = fast.create_polled_service::<AddTwoInts>("add").unwrap();
    // One server is in its own process, the other is not.
    let client = two.node("caller").unwrap().create_client::<AddTwoInts>("add").unwrap();
    wait_until("both are ready", || client.servers() == 2);
    let pending = client.send(sum_of(1, 1)).unwrap();
    let late = next(&slow, &slow_service);
    next(&fast, &fast_service).respond(AddTwoIntsResponse { sum: 7 }).unwrap();
    assert_eq!(pending.wait(HANG).unwrap().sum, 7);
    late.respond(AddTwoIntsResponse { sum: 8 }).unwrap();
    wait_until("the other reply is counted", || client.counters().late == 1);
    // One that leaves does not end what the other may answer.
    let pending = client.send(sum_of(2, 2)).unwrap();
    let request = next(&slow, &slow_service);
    drop(next(&fast, &fast_service));
    drop(fast_service);
    wait_until("one is left", || client.servers() == 1);
    request.respond(AddTwoIntsResponse { sum: 4 }).unwrap();
    assert_eq!(pending.wait(HANG).unwrap().sum, 4);
    assert_eq!(client.counters().lost, 0);
}

#[test]
fn threads_call_at_once_through_one_client() {
    let _watchdog = Watchdog::start("64 at once");
    const CALLS: i64 = 64;
    let folder = Folder::new();
    let serving = folder.process();
    // In one process, and between two.
    for context in [serving.clone(), folder.process()] {
        let node = serving.node("server").unwrap();
        // All are asked before any is answered, the last first.
        let held = Mutex::new(Vec::new());
        let service = node
            .create_deferred_service::<AddTwoInts>("add", move |request| {
                let mut held = held.lock().unwrap();
                held.push(request);
                if held.len() == CALLS as usize {
                    for request in held.drain(..).rev() {
                        let response = add(&request.message());
                        request.respond(response).unwrap();
                    }
                }
            })
            .unwrap();
        let client = context.node("caller").unwrap().create_client::<AddTwoInts>("add").unwrap();
        spun(&node, || {
            thread::scope(|scope| {
                for a in 0..CALLS {
                    let client = client.clone();
                    let call = move || client.call(sum_of(a, 1), HANG).unwrap().sum;
                    scope.spawn(move || assert_eq!(call(), a + 1));
                }
            });
        });
        assert_eq!(client.counters().replied, CALLS as u64);
        let counters = service.counters();
        assert_eq!((counters.answered, counters.open, counters.unanswered), (CALLS as u64, 0, 0));
    }
}

/// A process has 64 doorbells, and its wait sets and executors need some.
#[test]
fn more_clients_wait_than_there_are_doorbells() {
    let _watchdog = Watchdog::start("100 clients");
    const CLIENTS: i64 = 100;
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let node = one.node("server").unwrap();
    let service = node.create_polled_service::<AddTwoInts>("add").unwrap();
    let calling = two.node("caller").unwrap();
    thread::scope(|scope| {
        let calls: Vec<_> = (0..CLIENTS)
            .map(|a| {
                let client = calling.create_client::<AddTwoInts>("add").unwrap();
                scope.spawn(move || client.call(sum_of(a, 1), HANG).unwrap().sum)
            })
            .collect();
        let held: Vec<_> = (0..CLIENTS).map(|_| next(&node, &service)).collect();
        for request in held {
            let response = add(&request.message());
            request.respond(response).unwrap();
        }
        let sums: Vec<i64> = calls.into_iter().map(|it| it.join().unwrap()).collect();
        assert_eq!(sums, (1..=CLIENTS).collect::<Vec<_>>());
    });
}

#[test]
fn replies_are_awaited_and_waited_for_at_once() {
    let _watchdog = Watchdog::start("awaited");
    let folder = Folder::new();
    let serving = folder.process();
    let node = serving.node("server").unwrap();
    let _service = node.create_service::<AddTwoInts>("add", |it| add(&it)).unwrap();
    let calling = folder.process();
    let client = calling.node("caller").unwrap().create_client::<AddTwoInts>("add").unwrap();
    client.wait_for_service(HANG).unwrap();
    spun(&node, || {
        thread::scope(|scope| {
            for number in 0..4 {
                let client = &client;
                scope.spawn(move || {
                    for a in 0..200 {
                        let reply = if number % 2 == 0 {
                            block_on(client.send(sum_of(a, number)).unwrap()).unwrap()
                        } else {
                            client.call(sum_of(a, number), HANG).unwrap()
                        };
                        assert_eq!(reply.sum, a + number);
                    }
                });
            }
        });
    });
    assert_eq!((client.counters().replied, client.counters().open), (800, 0));
}

#[test]
fn a_server_killed_in_the_middle_of_a_call_ends_it() {
    let _watchdog = Watchdog::start("killed server");
    let folder = Folder::new();
    let context = folder.process();
    let client = context.node("caller").unwrap().create_client::<AddTwoInts>("add").unwrap();
    for is_awaited in [false, true] {
        let server = Child::start(&folder, "take and stay silent");
        server.expect("there");
        client.wait_for_service(HANG).unwrap();
        thread::scope(|scope| {
            let call = scope.spawn(|| {
                if is_awaited {
                    return block_on(client.send(sum_of(1, 2)).unwrap());
                }
                client.call(sum_of(1, 2), HANG)
            });
            server.expect("holding");
            server.kill();
            is_kind(call.join().unwrap(), ErrorKind::ServerLost, "the server left or died");
        });
        wait_until("it is gone", || !client.is_ready());
    }
    assert_eq!((client.counters().lost, client.counters().open), (2, 0));
    // Another one is found, and asked.
    let server = Child::start(&folder, "add");
    server.expect("there");
    assert_eq!(client.call(sum_of(1, 2), HANG).unwrap().sum, 3);
}

#[test]
fn a_client_killed_in_the_middle_of_a_call_stops_nobody() {
    let _watchdog = Watchdog::start("killed client");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("server").unwrap();
    let service = node.create_polled_service::<AddTwoInts>("add").unwrap();
    let other = folder.process().node("other").unwrap().create_client::<AddTwoInts>("add").unwrap();
    other.wait_for_service(HANG).unwrap();
    let client = Child::start(&folder, "call and wait");
    client.expect("calling");
    let request = next(&node, &service);
    client.kill();
    // Both its halves are: a reply finds nobody.
    let is_gone = context.wait_for_graph(HANG, |it| (it.services.len() == 2).then_some(()));
    is_gone.unwrap().expect("the death is noticed");
    assert_eq!(service.clients(), 1);
    // What it asked can still be read.
    assert_eq!(request.message().a, 1);
    is_kind(request.respond(AddTwoIntsResponse { sum: 3 }), ErrorKind::Closed, "has left");
    assert_eq!((service.counters().failed, service.counters().open), (1, 0));
    let pending = other.send(sum_of(2, 2)).unwrap();
    next(&node, &service).respond(AddTwoIntsResponse { sum: 4 }).unwrap();
    assert_eq!(pending.wait(HANG).unwrap().sum, 4);
}

#[test]
fn a_reply_after_the_time_is_counted_and_not_mistaken() {
    let _watchdog = Watchdog::start("late reply");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let node = one.node("server").unwrap();
    let service = node.create_polled_service::<AddTwoInts>("add").unwrap();
    let client = two.node("caller").unwrap().create_client::<AddTwoInts>("add").unwrap();
    client.wait_for_service(HANG).unwrap();
    let error = client.call(sum_of(1, 1), Duration::from_millis(5));
    is_kind(error, ErrorKind::Timeout, "no reply within 0.005 s");
    assert_eq!((client.counters().timed_out, client.counters().open), (1, 0));
    let dropped = client.send(sum_of(2, 2)).unwrap();
    drop(dropped);
    let pending = client.send(sum_of(3, 3)).unwrap();
    let mut last = AddTwoIntsResponse::default();
    for _ in 0..3 {
        let request = next(&node, &service);
        let response = add(&request.message());
        request.respond(response).unwrap();
        last = response;
    }
    assert_eq!((pending.wait(HANG).unwrap(), last.sum), (last, 6));
    let counters = client.counters();
    assert_eq!((counters.late, counters.forgotten, counters.replied), (2, 1, 1));
    // A request that is dropped is not answered, and is counted.
    let pending = client.send(sum_of(4, 4)).unwrap();
    drop(next(&node, &service));
    is_kind(pending.wait(Duration::from_millis(1)), ErrorKind::Timeout, "/add");
    assert_eq!((service.counters().unanswered, service.counters().answered), (1, 3));
}

#[test]
fn large_requests_and_replies_pass() {
    let _watchdog = Watchdog::start("large");
    let folder = Folder::new();
    let serving = folder.process();
    let node = serving.node("server").unwrap();
    let _service = node
        .create_service::<AddDiagnostics>("load", |request| AddDiagnosticsResponse {
            success: true,
            message: request.load_namespace.clone(),
        })
        .unwrap();
    for context in [serving.clone(), folder.process()] {
        let client = context.node("caller").unwrap();
        let client = client.create_client::<AddDiagnostics>("load").unwrap();
        client.wait_for_service(HANG).unwrap();
        spun(&node, || {
            for bytes in [0, 1, 64 * 1024, 1 << 20, 3] {
                let request = AddDiagnosticsRequest { load_namespace: "x".repeat(bytes) };
                // By reference, by value and shared, several on their way at once.
                let pending = [
                    client.send(&request).unwrap(),
                    client.send(request.clone()).unwrap(),
                    client.send(Arc::new(request.clone())).unwrap(),
                ];
                for pending in pending {
                    assert_eq!(pending.wait(HANG).unwrap().message, request.load_namespace);
                }
            }
        });
    }
}

#[test]
fn a_callback_calls_through_the_executor_that_runs_it() {
    let _watchdog = Watchdog::start("call in a callback");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("both").unwrap();
    let servers = node.create_callback_group(CallbackGroupKind::MutuallyExclusive);
    let _add = node
        .create_service::<AddTwoInts>(ServiceOptions::new("add").group(&servers), |request| {
            add(&request)
        })
        .unwrap();
    // A server whose callback is itself a client.
    let client = node.create_client::<AddTwoInts>("add").unwrap();
    let _twice = node
        .create_service::<AddTwoInts>("twice", move |request| {
            let once = client.call(request, HANG).unwrap().sum;
            client.call(sum_of(once, once), HANG).unwrap()
        })
        .unwrap();
    let caller = node.create_client::<AddTwoInts>("twice").unwrap();
    let mut executor = Executor::new(&context).unwrap().threads(2);
    executor.add(&node).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| executor.spin().unwrap());
        let reply = catch_unwind(AssertUnwindSafe(|| caller.call(sum_of(3, 4), HANG).unwrap()));
        context.shutdown();
        assert_eq!(reply.unwrap().sum, 14);
    });
}

#[test]
fn a_panic_in_a_callback_comes_out_of_the_spin() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("both").unwrap();
    let service = node
        .create_service::<AddTwoInts>("add", |request| {
            assert!(request.a != 13, "unlucky");
            add(&request)
        })
        .unwrap();
    let client = node.create_client::<AddTwoInts>("add").unwrap();
    let mut executor = Executor::new(&context).unwrap();
    executor.add(&node).unwrap();
    let unlucky = client.send(sum_of(13, 0)).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| executor.spin_once(HANG))).is_err());
    assert_eq!((service.counters().unanswered, service.counters().open), (1, 0));
    let lucky = client.send(sum_of(12, 0)).unwrap();
    while service.counters().answered == 0 {
        executor.spin_once(HANG).unwrap();
    }
    assert_eq!(lucky.wait(HANG).unwrap().sum, 12);
    is_kind(unlucky.wait(Duration::ZERO), ErrorKind::Timeout, "/add");
}

#[test]
fn another_type_is_told_on_both_sides() {
    let _watchdog = Watchdog::start("another type");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let (of_service, service_events) = channel();
    let (of_client, client_events) = channel();
    let serving = one.node("server").unwrap();
    let _service = serving
        .create_service::<SetBool>(
            ServiceOptions::new("s").on_event(move |event| of_service.send(event).unwrap()),
            |_: Arc<SetBoolRequest>| SetBoolResponse::default(),
        )
        .unwrap();
    let calling = two.node("caller").unwrap();
    let client = calling
        .create_client::<AddTwoInts>(
            ClientOptions::new("s").on_event(move |event| of_client.send(event).unwrap()),
        )
        .unwrap();
    let (told_service, told_client) = spun(&serving, || {
        spun(&calling, || {
            (service_events.recv_timeout(HANG).unwrap(), client_events.recv_timeout(HANG).unwrap())
        })
    });
    let types = "type: offered example_interfaces/srv/AddTwoInts, requested std_srvs/srv/SetBool";
    let expect = ServiceEvent::IncompatibleType { client: client.gid(), mismatch: types.into() };
    assert_eq!(told_service, expect);
    let ClientEvent::IncompatibleType { mismatch, .. } = told_client else {
        panic!("{told_client:?}")
    };
    assert_eq!(mismatch, types);
    is_kind(
        client.call(sum_of(1, 1), Duration::from_millis(1)),
        ErrorKind::NoServer,
        &format!("no server is ready within 0.001 s; /server: {types}"),
    );
    let routes = two.routes(HANG).unwrap();
    assert!(routes.iter().all(|it| it.state == RouteState::Incompatible), "{routes:?}");
}

#[test]
fn a_qos_that_does_not_fit_is_told() {
    let _watchdog = Watchdog::start("another QoS");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("n").unwrap();
    let server = |name: &str, qos: Qos| {
        node.create_service::<AddTwoInts>(ServiceOptions::new(name).qos(qos), |it| add(&it))
            .unwrap()
    };
    let client = |name: &str, qos: Qos| {
        node.create_client::<AddTwoInts>(ClientOptions::new(name).qos(qos)).unwrap()
    };
    let unreliable = "reliability: offered best_effort, requested reliable";
    // Requests that may be lost do not reach a server that wants all, nor replies a client.
    let _one = server("one", Qos::DEFAULT);
    let _two = server("two", best_effort(10));
    for client in [client("one", best_effort(10)), client("two", Qos::DEFAULT)] {
        let refused = client.wait_for_service(Duration::ZERO);
        is_kind(refused, ErrorKind::NoServer, unreliable);
        assert_eq!(client.servers(), 0);
    }
    let both = client("two", best_effort(10));
    spun(&node, || assert_eq!(both.call(sum_of(1, 1), HANG).unwrap().sum, 2));
    let latched = Qos { durability: tsuji::Durability::TransientLocal, ..Qos::DEFAULT };
    let refused = node.create_client::<AddTwoInts>(ClientOptions::new("one").qos(latched));
    is_kind(refused, ErrorKind::Invalid, "allowed for a service: volatile");
}

#[test]
fn a_service_and_a_topic_of_one_name_do_not_meet() {
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node_in("n", "/robot").unwrap();
    let publisher = node.create_publisher::<UInt64>("x", Qos::DEFAULT).unwrap();
    let _service = node.create_service::<AddTwoInts>("x", |it| add(&it)).unwrap();
    let client = node.create_client::<AddTwoInts>("x").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("x", Qos::DEFAULT).unwrap();
    assert_eq!((publisher.matched(), subscription.matched(), client.servers()), (1, 1, 1));
    let graph = context.graph();
    let shown = |all: &[tsuji::EndpointInfo]| -> Vec<(EndpointKind, String)> {
        all.iter().map(|it| (it.kind, format!("{} {}", it.topic, it.type_name))).collect()
    };
    let (topic, service) =
        ("/robot/x std_msgs/msg/UInt64", "/robot/x example_interfaces/srv/AddTwoInts");
    let expect =
        [(EndpointKind::Publisher, topic.into()), (EndpointKind::Subscription, topic.into())];
    assert_eq!(shown(&graph.endpoints), expect);
    let expect = [(EndpointKind::Server, service.into()), (EndpointKind::Client, service.into())];
    assert_eq!(shown(&graph.services), expect);
}

#[test]
fn service_names_are_remapped_apart_from_topics() {
    let folder = Folder::new();
    let rules = ["--ros-args", "-r", "rosservice://x:=y", "-r", "rostopic://x:=z"];
    let builder = Context::builder().runtime_dir(&folder.0).domain(house::DOMAIN).isolated();
    let context = builder.args(rules.map(str::to_owned)).build().unwrap();
    let node = context.node("n").unwrap();
    assert_eq!(node.create_client::<AddTwoInts>("x").unwrap().name(), "/y");
    assert_eq!(node.create_service::<AddTwoInts>("~/x", |it| add(&it)).unwrap().name(), "/n/x");
    is_kind(node.create_client::<AddTwoInts>("a b"), ErrorKind::Invalid, "a b");
}

#[test]
fn open_requests_have_a_limit_on_both_sides() {
    let _watchdog = Watchdog::start("limits");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let node = one.node("server").unwrap();
    let service = node.create_polled_service::<AddTwoInts>("add").unwrap();
    let nodes = [two.node("a").unwrap(), two.node("b").unwrap()];
    let clients = nodes.map(|node| node.create_client::<AddTwoInts>("add").unwrap());
    let mut pending = Vec::new();
    for client in &clients {
        client.wait_for_service(HANG).unwrap();
    }
    let (mut held, mut asked) = (Vec::new(), 0);
    // The server holds as many as it may; the rest waits for it.
    while held.len() < 1024 {
        for client in &clients {
            pending.push(client.send(sum_of(asked, 0)).unwrap());
            asked += 1;
        }
        held.push(next(&node, &service));
    }
    is_kind(clients[0].send(sum_of(0, 0)), ErrorKind::Busy, "1024 requests are open");
    assert_eq!((clients[0].counters().open, clients[0].counters().sent), (1024, 1024));
    assert!(service.take().unwrap().is_none());
    assert_eq!(service.counters().open, 1024);
    let mut set = WaitSet::new(&one).unwrap();
    set.add_service(&service).unwrap();
    // A place that comes free is told.
    set.wait(Duration::ZERO).unwrap();
    drop(held.pop());
    assert_eq!(set.wait(HANG).unwrap(), [0]);
    held.push(service.take().unwrap().unwrap());
    let dropped = held.len();
    drop(held);
    assert_eq!((service.counters().open, service.counters().unanswered), (0, dropped as u64 + 1));
    drop(pending);
    assert_eq!(clients[1].counters().forgotten, 1024);
}

#[test]
fn whoever_waits_is_told_of_the_end() {
    let _watchdog = Watchdog::start("ends");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let node = one.node("server").unwrap();
    let service = node.create_polled_service::<AddTwoInts>("add").unwrap();
    let client = two.node("caller").unwrap().create_client::<AddTwoInts>("add").unwrap();
    client.wait_for_service(HANG).unwrap();
    // A server that leaves in good order; what it said before is still heard.
    let [answered, open] = [1, 2].map(|a| client.send(sum_of(a, a)).unwrap());
    next(&node, &service).respond(AddTwoIntsResponse { sum: 2 }).unwrap();
    let deferred = next(&node, &service);
    drop(service);
    wait_until("it has left", || !client.is_ready());
    is_kind(open.wait(HANG), ErrorKind::ServerLost, "may have been performed");
    assert_eq!(answered.wait(HANG).unwrap().sum, 2);
    is_kind(deferred.respond(AddTwoIntsResponse { sum: 4 }), ErrorKind::Closed, "/add");
    // The client's own context.
    let service = node.create_polled_service::<AddTwoInts>("add").unwrap();
    client.wait_for_service(HANG).unwrap();
    thread::scope(|scope| {
        let calls: Vec<_> = (0..3)
            .map(|a| {
                scope.spawn({
                    let client = &client;
                    move || client.call(sum_of(a, 1), HANG)
                })
            })
            .collect();
        let awaited = scope.spawn(|| block_on(client.send(sum_of(5, 5)).unwrap()));
        let held: Vec<_> = (0..4).map(|_| next(&node, &service)).collect();
        two.shutdown();
        for call in calls {
            is_kind(call.join().unwrap(), ErrorKind::Closed, "shut down");
        }
        is_kind(awaited.join().unwrap(), ErrorKind::Closed, "shut down");
        drop(held);
    });
    is_kind(client.send(sum_of(1, 1)), ErrorKind::Closed, "shut down");
    is_kind(client.wait_for_service(HANG), ErrorKind::Closed, "shut down");
}

#[test]
fn who_shuts_its_own_context_down_has_lost_no_server() {
    let _watchdog = Watchdog::start("own end");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let node = one.node("server").unwrap();
    let service = node.create_polled_service::<AddTwoInts>("add").unwrap();
    let client = two.node("caller").unwrap().create_client::<AddTwoInts>("add").unwrap();
    client.wait_for_service(HANG).unwrap();
    let pending = client.send(sum_of(1, 1)).unwrap();
    let held = next(&node, &service);
    two.shutdown();
    let counters = client.counters();
    assert_eq!((counters.lost, counters.open), (0, 1));
    is_kind(pending.wait(HANG), ErrorKind::Closed, "shut down");
    drop(held);
}

#[test]
fn whoever_begins_to_wait_as_the_context_ends_is_told_of_it() {
    let _watchdog = Watchdog::start("wait at the end");
    let folder = Folder::new();
    let one = folder.process();
    let node = one.node("server").unwrap();
    let service = node.create_polled_service::<AddTwoInts>("add").unwrap();
    for round in 0..40 {
        let two = folder.process();
        let client = two.node("caller").unwrap().create_client::<AddTwoInts>("add").unwrap();
        client.wait_for_service(HANG).unwrap();
        let pending: Vec<_> = (0..4).map(|a| client.send(sum_of(a, 1)).unwrap()).collect();
        let held: Vec<_> = (0..4).map(|_| next(&node, &service)).collect();
        thread::scope(|scope| {
            let waiting = pending.into_iter().enumerate().map(|(number, pending)| {
                scope.spawn(move || match number {
                    0 => block_on(pending),
                    _ => pending.wait(HANG),
                })
            });
            let waiting: Vec<_> = waiting.collect();
            // Some wait already, and some do not yet.
            (0..round).for_each(|_| thread::yield_now());
            two.shutdown();
            for waiting in waiting {
                is_kind(waiting.join().unwrap(), ErrorKind::Closed, "shut down");
            }
        });
        drop(held);
    }
}

#[test]
fn a_call_waits_for_a_server_that_comes() {
    let _watchdog = Watchdog::start("server that comes");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let client = two.node("caller").unwrap().create_client::<AddTwoInts>("add").unwrap();
    is_kind(
        client.call(sum_of(1, 1), Duration::ZERO),
        ErrorKind::NoServer,
        "no server is ready within 0 s",
    );
    let began = AtomicU64::new(0);
    thread::scope(|scope| {
        let call = scope.spawn(|| {
            began.store(1, Ordering::Release);
            client.call(sum_of(1, 1), HANG)
        });
        wait_until("the call began", || began.load(Ordering::Acquire) == 1);
        let node = one.node("server").unwrap();
        let _service = node.create_service::<AddTwoInts>("add", |it| add(&it)).unwrap();
        assert_eq!(spun(&node, || call.join().unwrap()).unwrap().sum, 2);
    });
}

#[test]
fn bytes_and_values_understand_each_other() {
    let _watchdog = Watchdog::start("bytes");
    let folder = Folder::new();
    let one = folder.process();
    let raw = || {
        RawType::new(<AddTwoInts as ServiceType>::TYPE_NAME)
            .hash(<AddTwoInts as ServiceType>::TYPE_HASH)
    };
    use tsuji::Message;
    let node = one.node("server").unwrap();
    let _raw = node
        .create_raw_service("raw", raw(), |request| {
            let sum = add(&AddTwoIntsRequest::deserialize(request.bytes()).unwrap());
            request.respond_bytes(&sum.to_vec().unwrap()).unwrap();
        })
        .unwrap();
    let _typed = node.create_service::<AddTwoInts>("typed", |it| add(&it)).unwrap();
    let _broken = node
        .create_raw_service("broken", raw(), |request| {
            request.respond_bytes(&[0, 1, 0, 0, 9]).unwrap()
        })
        .unwrap();
    for context in [one.clone(), folder.process()] {
        let calling = context.node("caller").unwrap();
        spun(&node, || {
            for name in ["raw", "typed"] {
                let typed = calling.create_client::<AddTwoInts>(name).unwrap();
                assert_eq!(typed.call(sum_of(1, 2), HANG).unwrap().sum, 3);
                let bytes = calling.create_raw_client(name, raw()).unwrap();
                let request = sum_of(3, 4).to_vec().unwrap();
                let reply = bytes.call_bytes(&request, HANG).unwrap();
                assert_eq!(AddTwoIntsResponse::deserialize(&reply).unwrap().sum, 7);
                is_kind(bytes.call_bytes(&[1], HANG), ErrorKind::Invalid, "1 bytes");
            }
            let typed = calling.create_client::<AddTwoInts>("broken").unwrap();
            is_kind(typed.call(sum_of(1, 2), HANG), ErrorKind::Invalid, "no valid");
        });
    }
    // A value has no bytes to hand over.
    let typed = node.create_client::<AddTwoInts>("typed").unwrap();
    let request = sum_of(3, 4).to_vec().unwrap();
    spun(&node, || is_kind(typed.call_bytes(&request, HANG), ErrorKind::Unsupported, "raw"));
}

/// A client with a type refuses what its server should not have sent; who shows replies asks for the rest of it.
#[test]
fn a_text_that_is_not_utf_8_is_refused_or_replaced() {
    use tsuji::Message;
    let _watchdog = Watchdog::start("a text that is not UTF-8");
    let folder = Folder::new();
    let one = folder.process();
    let node = one.node("server").unwrap();
    let raw =
        RawType::new(<SetBool as ServiceType>::TYPE_NAME).hash(<SetBool as ServiceType>::TYPE_HASH);
    let _server = node
        .create_raw_service("set", raw, |request| {
            let said = SetBoolResponse { success: true, message: "caf?".to_owned() };
            let mut reply = said.to_vec().unwrap();
            let at = reply.iter().position(|it| *it == b'?').unwrap();
            reply[at] = 0xe9;
            request.respond_bytes(&reply).unwrap();
        })
        .unwrap();
    for context in [one.clone(), folder.process()] {
        let calling = context.node("caller").unwrap();
        let request = || SetBoolRequest { data: true };
        let strict = calling.create_client::<SetBool>("set").unwrap();
        let replaced = calling
            .create_client::<SetBool>(ClientOptions::new("set").replace_invalid_text())
            .unwrap();
        spun(&node, || {
            is_kind(strict.call(request(), HANG), ErrorKind::Invalid, "a string is not UTF-8");
            let expect = SetBoolResponse { success: true, message: "caf\u{fffd}".to_owned() };
            assert_eq!(replaced.call(request(), HANG).unwrap(), expect);
            replaced.wait_for_service(HANG).unwrap();
            assert_eq!(replaced.send(request()).unwrap().wait(HANG).unwrap(), expect);
        });
    }
}

/// Whatever the instruction at which a server dies: each call ends, with a reply or with the news.
#[test]
fn servers_killed_at_random_leave_no_call_open() {
    let _watchdog = Watchdog::start("servers killed at random");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("caller").unwrap();
    let mut random = house::Random(7);
    let rounds = house::kills() / 5;
    for round in 0..rounds {
        let server = Child::start(&folder, "add");
        server.expect("there");
        let client = node.create_client::<AddTwoInts>("add").unwrap();
        client.wait_for_service(HANG).unwrap();
        let (replies, wanted) = (AtomicU64::new(0), 1 + random.below(2000));
        thread::scope(|scope| {
            for number in 0..4 {
                let (client, replies) = (&client, &replies);
                scope.spawn(move || {
                    loop {
                        let asked = client.send(sum_of(number, 1));
                        let reply = match asked {
                            // Some wait, some await, some ask and go away.
                            Ok(pending) if number == 0 && round % 2 == 0 => block_on(pending),
                            Ok(pending) if number == 1 => pending.wait(Duration::from_micros(20)),
                            Ok(pending) => pending.wait(HANG),
                            Err(error) => Err(error),
                        };
                        match reply.map_err(|error| (error.kind(), error)) {
                            Ok(reply) => {
                                assert_eq!(reply.sum, number + 1);
                                replies.fetch_add(1, Ordering::Relaxed);
                            }
                            Err((ErrorKind::Timeout, _)) if number == 1 => (),
                            Err((ErrorKind::Busy, _)) => (),
                            Err((ErrorKind::ServerLost | ErrorKind::NoServer, _)) => return,
                            Err((_, error)) => panic!("round {round}: {error}"),
                        }
                    }
                });
            }
            wait_until("it answers", || wanted <= replies.load(Ordering::Relaxed));
            server.kill();
        });
        wait_until("it is gone", || !client.is_ready());
        let counters = client.counters();
        assert_eq!((counters.open, counters.replied), (0, replies.load(Ordering::Relaxed)));
    }
}

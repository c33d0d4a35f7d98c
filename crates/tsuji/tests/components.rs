//! Components in a container, loaded and unloaded over its services.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tracing_subscriber::layer::SubscriberExt as _;
use tsuji::component::{
    COMPONENTS_MAX, Component, ComponentFactory, ComponentOptions, ComponentSource, ComponentType,
    Container, ContainerClient, LoadRequest, LoadedComponent, Registered, builtin, containers,
};
use tsuji::parameter::{Parameter, Parameters};
use tsuji::{
    Context, EndpointKind, ErrorKind, Executor, History, MessageInfo, Node, Publisher, Qos,
    RouteReport, Subscription,
};
use tsuji_interfaces::rcl_interfaces::msg::Log;
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::String as Text;

#[path = "house/world.rs"]
mod world;
use world::{Folder, HANG, spun};

/// A node that keeps something.
struct Kept<T> {
    node: Node,
    _kept: T,
}

impl<T: Send + 'static> Component for Kept<T> {
    fn node(&self) -> &Node {
        &self.node
    }
}

/// Declares a parameter and publishes on a topic, or does what `fails` says.
fn probe(options: &ComponentOptions) -> tsuji::Result<Kept<(Parameters, Publisher<Text>)>> {
    let node = options.node("probe")?;
    let parameters = node.parameters()?;
    match node.declare_parameter("fails", String::new())?.as_str() {
        "panic" => panic!("it was told to"),
        "error" => Err(tsuji::Error::new(ErrorKind::Unsupported, "no camera is plugged in")),
        _ => {
            let publisher = node.create_publisher::<Text>("chatter", Qos::DEFAULT)?;
            Ok(Kept { node, _kept: (parameters, publisher) })
        }
    }
}

/// Panics when it hears something.
fn fuse(options: &ComponentOptions) -> tsuji::Result<Kept<Subscription<Text>>> {
    let node = options.node("fuse")?;
    let kept = node.create_subscription::<Text>("blow", Qos::DEFAULT, |_| panic!("blown"))?;
    Ok(Kept { node, _kept: kept })
}

fn registered() -> Registered {
    Registered::new().with("probes", "probes::Probe", probe).with("probes", "probes::Fuse", fuse)
}

/// A container, and who asks of it, each as in a process of its own.
struct Pair {
    container: Container,
    asking: Node,
    client: ContainerClient,
    /// Goes last, when nobody makes anything in it any more.
    folder: Folder,
}

fn pair(registered: Registered) -> Pair {
    let folder = Folder::new();
    let container = Container::new(&folder.process(), "container", registered).unwrap();
    let asking = folder.process().node("asking").unwrap();
    let client = ContainerClient::new(&asking, "/container");
    Pair { container, asking, client, folder }
}

fn sees(node: &Node, what: impl Fn(&tsuji::Graph) -> bool) {
    let seen = node.context().wait_for_graph(HANG, |graph| what(graph).then_some(()));
    assert!(seen.unwrap().is_some(), "{:?}", node.context().graph());
}

#[test]
fn components_are_loaded_listed_and_unloaded() {
    let pair = pair(registered());
    spun(pair.container.node(), || {
        let client = &pair.client;
        sees(&pair.asking, |it| containers(it).contains("/container"));
        let first = client.load(LoadRequest::new("probes", "probes::Probe"), HANG).unwrap();
        assert_eq!(first, LoadedComponent { id: 1, node: "/probe".into() });
        let request = LoadRequest {
            node_name: "left".into(),
            node_namespace: "/arm".into(),
            remap_rules: vec!["chatter:=talk".into()],
            parameters: vec![Parameter::new("fails", "never".to_owned())],
            extra_arguments: vec![Parameter::new("use_intra_process_comms", true)],
            ..LoadRequest::new("probes", "probes::Probe")
        };
        let second = client.load(request, HANG).unwrap();
        assert_eq!(second, LoadedComponent { id: 2, node: "/arm/left".into() });
        sees(&pair.asking, |it| {
            let talks = |topic: &str, node: &str| {
                it.endpoints.iter().any(|it| it.topic == topic && it.node == node)
            };
            talks("/chatter", "/probe") && talks("/arm/talk", "/arm/left")
        });
        let of = tsuji::parameter::ParameterClient::new(&pair.asking, "/arm/left");
        assert_eq!(of.get(&["fails"], HANG).unwrap(), ["never".to_owned().into()]);
        assert_eq!(client.list(HANG).unwrap(), [first.clone(), second]);
        client.unload(1, HANG).unwrap();
        sees(&pair.asking, |it| {
            it.nodes.iter().all(|it| it.name != "probe")
                && it.endpoints.iter().all(|it| it.topic != "/chatter")
        });
        // An id is never given twice.
        let third = client.load(LoadRequest::new("probes", "probes::Probe"), HANG).unwrap();
        assert_eq!(third, LoadedComponent { id: 3, ..first });
        let counters = pair.container.counters();
        assert_eq!((counters.loaded, counters.ended, counters.failed), (3, 1, 0));
    });
}

#[test]
fn what_cannot_be_loaded_is_refused_with_the_reason() {
    let pair = pair(registered());
    spun(pair.container.node(), || {
        let check = |request: LoadRequest, expect: &str| {
            let error = pair.client.load(request, HANG).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert_eq!(error.to_string(), format!("load: /container: {expect}"));
        };
        let probe = || LoadRequest::new("probes", "probes::Probe");
        check(
            LoadRequest::new("robes", "probes::Probe"),
            "Could not find requested resource in ament index, nor among the components of this container: package \
             'robes'; allowed: probes",
        );
        check(
            LoadRequest::new("probes", "Probe"),
            "Failed to find class with the requested plugin name: 'Probe' of probes; allowed: probes::Fuse, probes::Probe",
        );
        let told = |how: &str| vec![Parameter::new("fails", how.to_owned())];
        check(
            LoadRequest { parameters: told("error"), ..probe() },
            "Component constructor threw an exception: no camera is plugged in",
        );
        check(
            LoadRequest { parameters: told("panic"), ..probe() },
            "Component constructor threw an exception: it panicked: it was told to",
        );
        let intra = |value: Parameter| LoadRequest { extra_arguments: vec![value], ..probe() };
        check(
            intra(Parameter::new("use_intra_process_comms", 1)),
            "Extra component argument 'use_intra_process_comms' must be a boolean",
        );
        check(
            intra(Parameter::new("forward_global_arguments", true)),
            "Extra component argument 'forward_global_arguments' is true; allowed: false, since a component has the \
             names and parameters of its request alone",
        );
        let refused = |request: LoadRequest, expect: &str| {
            let error = pair.client.load(request, HANG).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        };
        refused(LoadRequest { remap_rules: vec!["a->b".into()], ..probe() }, "a->b");
        refused(LoadRequest { node_name: "1st".into(), ..probe() }, "1st");
        refused(LoadRequest { node_namespace: "a b".into(), ..probe() }, "a b");
        let error = pair.client.unload(7, HANG).unwrap_err();
        assert_eq!(error.to_string(), "unload: /container: No node found with unique_id: 7");
        assert_eq!(pair.container.counters().refused, 9);
        assert!(pair.client.list(HANG).unwrap().is_empty());
    });
    // Nothing is left of those that failed.
    sees(&pair.asking, |it| it.nodes.iter().all(|it| it.name != "probe"));
    let nobody = ContainerClient::new(&pair.asking, "/nobody");
    let error = nobody.list(Duration::from_millis(10)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoServer);
    // The time that was asked for, not what was left of it at the last step.
    assert!(error.to_string().contains(" within 0.01 s"), "{error}");
}

#[test]
fn a_component_that_panics_is_unloaded_and_the_others_go_on() {
    let pair = pair(registered());
    spun(pair.container.node(), || {
        let fuse = pair.client.load(LoadRequest::new("probes", "probes::Fuse"), HANG).unwrap();
        let probe = pair.client.load(LoadRequest::new("probes", "probes::Probe"), HANG).unwrap();
        let publisher = pair.asking.create_publisher::<Text>("blow", Qos::DEFAULT).unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        publisher.publish(Text::default()).unwrap();
        sees(&pair.asking, |it| it.nodes.iter().all(|it| it.name != "fuse"));
        // Its thread may still be at its end; whoever unloads it waits for that.
        let _ = pair.client.unload(fuse.id, HANG);
        assert_eq!(pair.client.list(HANG).unwrap(), [probe]);
        assert_eq!(pair.container.counters().failed, 1);
        assert!(pair.client.unload(fuse.id, HANG).is_err());
    });
}

#[test]
fn of_two_containers_of_one_name_none_is_asked() {
    let pair = pair(registered());
    let second = Container::new(&pair.folder.process(), "container", registered()).unwrap();
    let both = |it: &tsuji::Graph| {
        let loading = |it: &&tsuji::EndpointInfo| {
            it.kind == EndpointKind::Server && it.topic == "/container/_container/load_node"
        };
        it.services.iter().filter(loading).count() == 2
    };
    sees(&pair.asking, both);
    spun(pair.container.node(), || {
        spun(second.node(), || {
            let request = LoadRequest::new("probes", "probes::Probe");
            let error = pair.client.load(request, HANG).unwrap_err();
            assert_eq!(
                error.to_string(),
                "container /container: 2 nodes of this name are there; allowed: one"
            );
        });
    });
    assert!(pair.container.list().is_empty() && second.list().is_empty());
}

#[test]
fn two_of_one_name_are_loaded_as_by_rclcpp() {
    let pair = pair(registered());
    let request = || LoadRequest::new("probes", "probes::Probe");
    let ids: Vec<u64> = (0..2).map(|_| pair.container.load(request()).unwrap().id).collect();
    assert_eq!(ids, [1, 2]);
    assert_eq!(pair.container.list()[0].node, pair.container.list()[1].node);
    pair.container.unload(1).unwrap();
    // Those that are left go with the container.
    let Pair { container, asking, client, folder } = pair;
    sees(&asking, |it| it.nodes.iter().any(|it| it.name == "probe"));
    drop(container);
    sees(&asking, |it| it.nodes.iter().all(|it| it.name != "probe"));
    drop((client, asking, folder));
}

#[test]
fn unloading_says_when_a_callback_does_not_end() {
    let (entered, has_entered) = mpsc::channel();
    let (end, is_to_end) = mpsc::channel::<()>();
    let is_to_end = Arc::new(Mutex::new(Some((entered, is_to_end))));
    let stuck = move |options: &ComponentOptions| {
        let node = options.node("stuck")?;
        let mut waits = is_to_end.lock().unwrap().take();
        let timer = node.create_timer(Duration::from_millis(1), move || {
            if let Some((entered, end)) = waits.take() {
                entered.send(()).unwrap();
                let _ = end.recv();
            }
        })?;
        Ok(Kept { node, _kept: timer })
    };
    let pair = pair(Registered::new().with("probes", "Stuck", stuck));
    let loaded = pair.container.load(LoadRequest::new("probes", "Stuck")).unwrap();
    has_entered.recv_timeout(HANG).unwrap();
    let error = pair.container.unload(loaded.id).unwrap_err().to_string();
    assert_eq!(
        error,
        "unload: /stuck (unique_id 1) has a callback that still runs after 5s; it leaves when that ends"
    );
    assert_eq!(pair.container.list(), std::slice::from_ref(&loaded));
    drop(end);
    pair.container.unload(loaded.id).map_or_else(
        // It may have ended before it was asked.
        |error| assert!(error.to_string().contains("No node found"), "{error}"),
        |()| (),
    );
    assert!(pair.container.list().is_empty());
}

/// Panics wherever a container asks it for something else than to be made.
struct Rigged {
    node: Node,
    panics_at: &'static str,
}

impl Component for Rigged {
    fn node(&self) -> &Node {
        assert_ne!(self.panics_at, "node", "rigged");
        &self.node
    }

    fn threads(&self) -> usize {
        assert_ne!(self.panics_at, "threads", "rigged");
        1
    }
}

struct PanickingSource;

impl ComponentSource for PanickingSource {
    fn types(&self) -> Vec<ComponentType> {
        Vec::new()
    }

    fn find(&self, wanted: &ComponentType) -> Result<Option<ComponentFactory>, String> {
        assert_ne!(wanted.package, "rigged", "rigged");
        Ok(None)
    }
}

#[test]
fn a_panic_of_others_code_while_a_component_is_loaded_is_an_error() {
    let rigged = |panics_at: &'static str| {
        move |options: &ComponentOptions| Ok(Rigged { node: options.node("rigged")?, panics_at })
    };
    let folder = Folder::new();
    let context = folder.process();
    let registered = Registered::new()
        .with("probes", "Node", rigged("node"))
        .with("probes", "Threads", rigged("threads"))
        .with("probes", "Sound", rigged("nothing"));
    let container = Container::builder(&context, "container")
        .source(PanickingSource)
        .source(registered)
        .build()
        .unwrap();
    let asking = folder.process().node("asking").unwrap();
    let client = ContainerClient::new(&asking, "/container");
    spun(container.node(), || {
        for (package, plugin) in [("probes", "Node"), ("probes", "Threads"), ("rigged", "Any")] {
            let error = client.load(LoadRequest::new(package, plugin), HANG).unwrap_err();
            assert!(error.to_string().contains("it panicked: assertion"), "{error}");
        }
        // It goes on, and nothing is left of them.
        let loaded = client.load(LoadRequest::new("probes", "Sound"), HANG).unwrap();
        assert_eq!(client.list(HANG).unwrap(), [loaded]);
        let counters = container.counters();
        assert_eq!((counters.loaded, counters.refused), (1, 3));
    });
}

#[test]
fn one_component_too_many_is_refused_before_it_is_made() {
    let made = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&made);
    let count = move |options: &ComponentOptions| {
        counting.fetch_add(1, Ordering::Relaxed);
        Ok(Kept { node: options.node("one")?, _kept: () })
    };
    let pair = pair(Registered::new().with("probes", "One", count));
    let load = || pair.container.load(LoadRequest::new("probes", "One"));
    for _ in 0..COMPONENTS_MAX {
        load().unwrap();
    }
    let error = load().unwrap_err().to_string();
    assert_eq!(error, "load probes One: 48 components are loaded; allowed: no more");
    assert_eq!(made.load(Ordering::Relaxed), COMPONENTS_MAX);
    pair.container.unload(1).unwrap();
    load().unwrap();
}

/// Counts warnings.
struct Warnings(Arc<AtomicUsize>);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Warnings {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        let is_warning = *event.metadata().level() == tracing::Level::WARN;
        self.0.fetch_add(usize::from(is_warning), Ordering::Relaxed);
    }
}

/// The first can end when the second has left.
#[test]
fn a_container_that_leaves_tells_all_its_components_before_it_waits() {
    let (entered, has_entered) = mpsc::channel();
    let (dropped, is_dropped) = mpsc::channel();
    let waits = Mutex::new(Some((entered, is_dropped)));
    let waiting = move |options: &ComponentOptions| {
        let node = options.node("waiting")?;
        let mut waits = waits.lock().unwrap().take();
        let timer = node.create_timer(Duration::from_millis(1), move || {
            if let Some((entered, is_dropped)) = waits.take() {
                entered.send(()).unwrap();
                is_dropped.recv_timeout(HANG).unwrap();
            }
        })?;
        Ok(Kept { node, _kept: timer })
    };
    let dropped = Mutex::new(dropped);
    let last = move |options: &ComponentOptions| {
        let node = options.node("last")?;
        Ok(Kept { node, _kept: OnDrop(dropped.lock().unwrap().clone()) })
    };
    let registered =
        Registered::new().with("probes", "Waiting", waiting).with("probes", "Last", last);
    let Pair { container, asking, client, folder } = pair(registered);
    container.load(LoadRequest::new("probes", "Waiting")).unwrap();
    container.load(LoadRequest::new("probes", "Last")).unwrap();
    has_entered.recv_timeout(HANG).unwrap();
    let warnings = Arc::new(AtomicUsize::new(0));
    let subscriber = tracing_subscriber::registry().with(Warnings(Arc::clone(&warnings)));
    tracing::subscriber::with_default(subscriber, || drop(container));
    assert_eq!(warnings.load(Ordering::Relaxed), 0, "a component went on");
    drop((client, asking, folder));
}

/// Tells when it is dropped.
struct OnDrop(Sender<()>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn a_component_that_is_made_while_its_container_leaves_leaves_too() {
    let (entered, has_entered) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let (dropped, is_dropped) = mpsc::channel();
    let ends = Mutex::new((entered, may_go_on, dropped));
    let slow = move |options: &ComponentOptions| {
        let (entered, may_go_on, dropped) = &*ends.lock().unwrap();
        let node = options.node("slow")?;
        entered.send(()).unwrap();
        let _ = may_go_on.recv();
        Ok(Kept { node, _kept: OnDrop(dropped.clone()) })
    };
    let folder = Folder::new();
    let context = folder.process();
    let registered = Registered::new().with("probes", "Slow", slow);
    let container = Container::new(&context, "container", registered).unwrap();
    let asking = folder.process().node("asking").unwrap();
    let client = ContainerClient::new(&asking, "/container");
    let node = container.node().clone();
    spun(&node, || {
        thread::scope(|scope| {
            scope.spawn(|| {
                // Whether the answer still comes is not said.
                let _ = client.load(LoadRequest::new("probes", "Slow"), Duration::from_secs(1));
            });
            has_entered.recv_timeout(HANG).unwrap();
            drop(container);
            go_on.send(()).unwrap();
            is_dropped.recv_timeout(HANG).unwrap();
        });
    });
    sees(&asking, |it| it.nodes.iter().all(|it| it.name != "slow"));
}

/// A node and nothing more.
struct Whole(Node);

impl Component for Whole {
    fn node(&self) -> &Node {
        &self.0
    }
}

#[test]
fn a_component_has_parameters_and_ros_time_and_its_log_goes_to_rosout() {
    let whole = |options: &ComponentOptions| {
        let node = options.node("whole")?;
        node.declare_parameter("side", 1)?;
        node.clock()?;
        node.logger();
        Ok(Whole(node))
    };
    let folder = Folder::new();
    let context = folder.process();
    let logging = context.logging().clone();
    let subscriber = tracing_subscriber::registry().with(logging.rosout_layer());
    let _installed = tracing::subscriber::set_default(subscriber);
    let container = Container::builder(&context, "container")
        .source(Registered::new().with("probes", "Whole", whole).with("probes", "Fuse", fuse))
        .build()
        .unwrap();
    let asking = folder.process().node("asking").unwrap();
    let (hears, heard) = mpsc::channel();
    let qos = Qos { history: History::KeepLast(100), ..Qos::DEFAULT };
    let lines = asking.create_subscription::<Log>("/rosout", qos, move |line| {
        let _ = hears.send((line.message().name.clone(), line.message().msg.clone()));
    });
    let lines = lines.unwrap();
    spun(&asking, || {
        let request = LoadRequest {
            node_namespace: "/arm".into(),
            parameters: vec![Parameter::new("side", 7), Parameter::new("use_sim_time", true)],
            ..LoadRequest::new("probes", "Whole")
        };
        container.load(request).unwrap();
        let of = tsuji::parameter::ParameterClient::new(&asking, "/arm/whole");
        spun(container.node(), || {
            let values = of.get(&["side", "use_sim_time"], HANG).unwrap();
            assert_eq!(values, [7.into(), true.into()]);
        });
        // The container's, and the component's.
        lines.wait_for_publishers(2, HANG).unwrap();
        tsuji::info!(logging.logger("arm.whole"), "ready");
        container.load(LoadRequest::new("probes", "Fuse")).unwrap();
        container.load(LoadRequest::new("probes", "Fuse")).unwrap();
        let next = || heard.recv_timeout(HANG).unwrap();
        assert_eq!(next(), ("arm.whole".into(), "ready".into()));
        let (name, text) = next();
        assert_eq!(name, "container");
        assert_eq!(text, "two components of this container have the same name node=\"/fuse\"");
    });
    drop(container);
}

const LARGE: usize = 1024 * 768 * 3;
const PICTURES: Qos = Qos { history: History::KeepLast(10), ..Qos::DEFAULT };

/// Counts what it sees on `image`.
fn viewing(node: &Node, seen: Sender<MessageInfo>) -> tsuji::Result<Subscription<Image>> {
    node.create_subscription::<Image>("image", PICTURES, move |picture| {
        assert_eq!(picture.view().data.len(), LARGE);
        let _ = seen.send(*picture.info());
    })
}

/// The numbers of the pictures follow each other.
fn follow(seen: &[MessageInfo]) {
    for two in seen.windows(2) {
        assert_eq!(two[0].sequence + 1, two[1].sequence);
        assert_eq!(two[0].publisher, two[1].publisher);
    }
}

fn take(from: &Receiver<MessageInfo>, count: usize) -> Vec<MessageInfo> {
    (0..count).map(|_| from.recv_timeout(HANG).unwrap()).collect()
}

/// The flow of pictures to this node, once it has a link.
fn link(context: &Context, node: &str) -> RouteReport {
    let began = Instant::now();
    loop {
        let routes = context.routes(HANG).unwrap();
        let found =
            routes.into_iter().find(|it| it.subscription.node == node && it.topic == "/image");
        if let Some(found) = found.filter(|it| it.transport.is_some()) {
            return found;
        }
        assert!(began.elapsed() < HANG, "no link to {node}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_viewer_that_moves_into_the_container_has_its_pictures_by_pointer_and_misses_none() {
    let folder = Folder::new();
    let (sees, inner) = mpsc::channel();
    let sees = Mutex::new(sees);
    let view = move |options: &ComponentOptions| {
        let node = options.node("viewer")?;
        let kept = viewing(&node, sees.lock().unwrap().clone())?;
        Ok(Kept { node, _kept: kept })
    };
    let context = folder.process();
    let container = Container::builder(&context, "container")
        .source(Registered::new().with("views", "Viewer", view))
        .source(builtin())
        .build()
        .unwrap();
    // The viewer of before, in another process.
    let outside = folder.process().node("outer").unwrap();
    let (sees, outer) = mpsc::channel();
    let viewed = viewing(&outside, sees).unwrap();
    let asking = folder.process().node("asking").unwrap();
    let client = ContainerClient::new(&asking, "/container");
    let mut executor = Executor::new(&context).unwrap();
    executor.add(container.node()).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                executor.spin_once(Duration::from_millis(20)).unwrap();
            }
        });
        spun(&outside, || {
            let camera = LoadRequest::new("tsuji_components", "Camera");
            client.load(camera, HANG).unwrap();
            let before = take(&outer, 10);
            let transport = link(&context, "/outer").transport;
            assert_eq!(transport.as_deref(), Some("shm"));
            let loaded = client.load(LoadRequest::new("views", "Viewer"), HANG).unwrap();
            let mut first = take(&inner, 1);
            assert_eq!(link(&context, "/viewer").transport.as_deref(), Some("inproc"));
            // Both see all that come.
            first.extend(take(&inner, 10));
            drop(viewed);
            first.extend(take(&inner, 10));
            follow(&first);
            let all: Vec<_> = before.into_iter().chain(outer.try_iter()).collect();
            follow(&all);
            // The inner one had begun when the outer one ended.
            assert!(first[0].sequence <= all.last().unwrap().sequence + 1);
            let route = link(&context, "/viewer");
            assert_eq!((route.lost, route.duplicates), (0, 0));
            // And each was by pointer: no other link was ever taken.
            assert!(route.changes.iter().all(|it| it.to == "inproc"), "{:?}", route.changes);
            client.unload(loaded.id, HANG).unwrap();
        });
        done.store(true, Ordering::Release);
    });
    drop(executor);
}

#[test]
fn the_camera_that_ships_draws_pictures_that_move() {
    let folder = Folder::new();
    let context = folder.process();
    let container = Container::builder(&context, "container").source(builtin()).build().unwrap();
    let asking = folder.process().node("asking").unwrap();
    let (sees, seen) = mpsc::channel();
    let _pictures = asking
        .create_subscription::<Image>("image", Qos::DEFAULT, move |picture| {
            let image = picture.view();
            let _ = sees.send(((image.width, image.height, image.step), image.data.to_vec()));
        })
        .unwrap();
    let size = [Parameter::new("width", 64i64), Parameter::new("height", 48i64)];
    let camera =
        LoadRequest { parameters: size.into(), ..LoadRequest::new("tsuji_components", "Camera") };
    container.load(camera).unwrap();
    spun(&asking, || {
        let [(size, one), (_, two)] = [(); 2].map(|()| seen.recv_timeout(HANG).unwrap());
        assert_eq!((size, one.len()), ((64, 48, 192), 64 * 48 * 3));
        let colours: std::collections::BTreeSet<&[u8]> = one.chunks_exact(3).collect();
        assert!(8 < colours.len(), "{colours:?}");
        assert_ne!(one, two);
    });
}

//! Foreign participants that behave badly, or as few do. Each is the engine itself, without anything of
//! tsuji, in this process or in a child.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use house::foreign::{Plain, Talker, Topic, context, figure, next};
use house::{
    Child, Folder, HANG, Random, Watchdog, best_effort, descriptors, heard, keep_all, keep_last,
    resident_kib, take, take_until, tell, threads, wait_until,
};
use tsuji::{
    Context, Durability, EndpointKind, ErrorKind, Liveliness, Message, Node, PublisherEvent,
    PublisherOptions, Qos, Role, RouteReport, RouteState, ServiceType, Subscription,
    SubscriptionEvent, SubscriptionOptions,
};
use tsuji_interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::{Int32, String as Text, UInt64};
use tsuji_ros::gid::{Distro, Guid};
use tsuji_ros::graph_message::ParticipantEntitiesInfo;
use tsuji_ros::service::RequestHeader;
use tsuji_transport::Gid;
use tsuji_transport::wire::Inlet;

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "talk of pictures" => talk_of_pictures(),
        "listen and be stopped" => listen_and_be_stopped(),
        "publish to one that is stopped" => publish_to_one_that_is_stopped(),
        "serve and be silent" => serve_and_be_silent(),
        "meet one that comes and goes" => meet_one_that_comes_and_goes(),
        "look at nodes as humble" => look_at_nodes_as_humble(),
        other => panic!("{other}"),
    }
}

/// The flows of a topic or service, as `context` knows them.
fn routes(context: &Context, topic: &str) -> Vec<RouteReport> {
    let mut routes = context.routes(HANG).unwrap();
    routes.retain(|route| route.topic == topic);
    routes
}

fn is_active(route: &RouteReport) -> bool {
    route.state == RouteState::Active
}

fn text(data: impl Into<String>) -> Text {
    Text { data: data.into() }
}

fn number(data: u64) -> UInt64 {
    UInt64 { data }
}

/// Runs what a node is called back for, until its context is shut down.
struct Spinner(Context, Option<JoinHandle<()>>);

impl Spinner {
    fn start(node: &Node) -> Self {
        let spun = node.clone();
        let thread = thread::spawn(move || tsuji::spin(&spun).unwrap());
        Self(node.context().clone(), Some(thread))
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.shutdown();
        let _ = self.1.take().map(JoinHandle::join);
    }
}

/// A subscription of `node`, with what it is told.
fn watched<M: Message>(
    node: &Node,
    topic: &str,
    qos: Qos,
) -> (Subscription<M>, Receiver<SubscriptionEvent>) {
    let (sender, events) = channel();
    let told = move |event| drop(sender.send(event));
    let options = SubscriptionOptions::default().qos(qos).on_event(told);
    (node.create_polled_subscription::<M>(topic, options).unwrap(), events)
}

/// The first event of which `pick` makes something.
#[track_caller]
fn event<E, T>(events: &Receiver<E>, mut pick: impl FnMut(E) -> Option<T>) -> T {
    loop {
        let event = events.recv_timeout(HANG).expect("an event");
        if let Some(picked) = pick(event) {
            return picked;
        }
    }
}

#[test]
fn what_is_no_message_is_dropped_and_counted() {
    let _watchdog = Watchdog::start("no messages");
    let folder = Folder::new();
    let context = context(&folder, 30);
    let node = context.node("listener").unwrap();
    let subscription = node.create_polled_subscription::<Text>("chatter", keep_all()).unwrap();
    let plain = Plain::join(30);
    let talker = plain.talker(&Topic::of::<Text>("chatter"), keep_all());
    subscription.wait_for_publishers(1, HANG).unwrap();
    talker.wait_for_readers(1);

    let cdr = |body: &[u8]| [&[0, 1, 0, 0], body].concat();
    let mut garbage = Random(7);
    let garbage: Vec<u8> = (0..100).map(|_| garbage.next() as u8).collect();
    let invalid = [
        cdr(b""),
        cdr(b"\x06\0\0"),
        // Cut off in the text, and of a text that would be longer than any sample.
        cdr(b"\x06\0\0\0hel"),
        cdr(b"\xff\xff\xff\x7fhello\0"),
        cdr(b"\xff\xff\xff\xffhello\0"),
        // Not closed, no UTF-8.
        cdr(b"\x05\0\0\0hello"),
        cdr(b"\x03\0\0\0\xff\xfe\0"),
        cdr(&garbage),
        [&[0, 0, 0, 0][..], b"\x06\0\0\0hello\0"].concat(),
    ];
    // Of other encapsulations: parameter lists and version 2, with a good body.
    let foreign: Vec<Vec<u8>> = [[0, 2], [0, 3], [0, 7], [0, 9], [0, 11]]
        .iter()
        .map(|kind| [&kind[..], b"\0\0\x06\0\0\0hello\0"].concat())
        .collect();
    talker.say(&text("first"));
    for (at, bad) in invalid.iter().chain(&foreign).enumerate() {
        talker.write(bad);
        talker.say(&text(format!("after {at}")));
    }
    assert_eq!(take(&node, &subscription).data.to_string(), "first");
    for at in 0..invalid.len() + foreign.len() {
        assert_eq!(take(&node, &subscription).data.to_string(), format!("after {at}"));
    }
    let counters = subscription.counters();
    assert_eq!(counters.invalid, invalid.len() as u64, "{counters:?}");
    assert_eq!(figure(&context, "invalid_samples"), foreign.len() as u64);
    assert_eq!((counters.duplicates, counters.displaced), (0, 0));
    // What the engine could not be asked to carry has left gaps, which are told as such.
    assert_eq!(counters.lost, foreign.len() as u64);
    let [route] = &routes(&context, "/chatter")[..] else { panic!("one flow") };
    assert_eq!((route.state, route.invalid), (RouteState::Active, invalid.len() as u64));

    // An encapsulation that the engine does not know, it does not take: what its writer sends after
    // that waits for it in vain, and nobody else.
    let careless = plain.talker(&Topic::of::<Text>("chatter"), keep_all());
    subscription.wait_for_publishers(2, HANG).unwrap();
    careless.wait_for_readers(1);
    careless.write(b"\x70\x69\0\0\x06\0\0\0hello\0");
    careless.say(&text("too late"));
    talker.say(&text("in time"));
    assert_eq!(take(&node, &subscription).data.to_string(), "in time");
}

#[test]
fn late_joiners_that_keep_all_get_all_both_ways() {
    const OWED: u64 = 5000;
    let _watchdog = Watchdog::start("what late joiners are owed by foreign nodes, and they by us");
    let folder = Folder::new();
    let context = context(&folder, 45);
    let node = context.node("n").unwrap();
    let plain = Plain::join(45);
    let latched = |qos: Qos| Qos { durability: Durability::TransientLocal, ..qos };
    let publisher = node.create_publisher::<UInt64>("ours", latched(keep_all())).unwrap();
    let talker = plain.talker(&Topic::of::<UInt64>("theirs"), latched(keep_last(OWED as u32)));
    for data in 0..OWED {
        publisher.publish(number(data)).unwrap();
        talker.say(&number(data));
    }
    let subscription =
        node.create_polled_subscription::<UInt64>("theirs", latched(keep_all())).unwrap();
    (0..OWED).for_each(|data| assert_eq!(take(&node, &subscription).data, data));
    let counters = subscription.counters();
    assert_eq!((counters.lost, counters.displaced), (0, 0));
    let listener = plain.listener(&Topic::of::<UInt64>("ours"), latched(keep_all()));
    for data in 0..OWED {
        assert_eq!(UInt64::deserialize(&listener.next().1).unwrap().data, data);
    }
}

#[test]
fn another_type_under_the_same_name_does_not_fit() {
    let _watchdog = Watchdog::start("another type");
    let folder = Folder::new();
    let context = context(&folder, 31);
    let node = context.node("listener").unwrap();
    let (subscription, events) = watched::<Text>(&node, "chatter", keep_all());
    let (sender, told) = channel();
    let options = PublisherOptions::default().qos(keep_all());
    let options = options.on_event(move |event| drop(sender.send(event)));
    let publisher = node.create_publisher::<Text>("ours", options).unwrap();
    let _spinner = Spinner::start(&node);

    let plain = Plain::join(31);
    let other = Topic { ty: Topic::of::<Int32>("chatter").ty, ..Topic::of::<Text>("chatter") };
    let of_other = plain.talker(&other, keep_all());
    let hash = format!("RIHS01_{}", "a".repeat(64));
    let rehashed = Topic::of::<Text>("chatter").saying(&format!("typehash={hash};"));
    let of_rehashed = plain.talker(&rehashed, keep_all());
    // A type that is none of ROS 2, and a hash that is none: it says nothing.
    let strange = Topic { ty: "Square\u{7f}<T>".to_owned(), ..Topic::of::<Text>("chatter") };
    let of_strange = plain.talker(&strange, keep_all());
    let good = Topic::of::<Text>("chatter").saying("typehash=RIHS01_7;");
    let good = plain.talker(&good, keep_all());

    let mut mismatches: Vec<(Gid, String)> = (0..3)
        .map(|_| {
            event(&events, |event| match event {
                SubscriptionEvent::IncompatibleType { publisher, mismatch } => {
                    Some((publisher, mismatch))
                }
                _ => None,
            })
        })
        .collect();
    mismatches.sort();
    let mut expect = vec![
        (of_other.name(), "type: offered std_msgs/msg/Int32, requested std_msgs/msg/String".into()),
        (of_rehashed.name(), format!("type hash: offered {hash}, requested {}", Text::TYPE_HASH)),
        (
            of_strange.name(),
            "type: offered Square\u{7f}<T>, requested std_msgs/msg/String".to_owned(),
        ),
    ];
    expect.sort();
    assert_eq!(mismatches, expect);

    subscription.wait_for_publishers(1, HANG).unwrap();
    good.wait_for_readers(1);
    // The engine matches by the names of topic and type: what has another hash arrives, and is
    // nobody's.
    of_rehashed.say(&text("not heard"));
    of_other.say(&Int32 { data: 1 });
    good.say(&text("heard"));
    assert_eq!(take(&node, &subscription).data.to_string(), "heard");
    let routes_of = routes(&context, "/chatter");
    let with = |state| routes_of.iter().filter(move |it| it.state == state);
    assert_eq!((with(RouteState::Active).count(), with(RouteState::Incompatible).count()), (1, 3));
    for route in with(RouteState::Incompatible) {
        assert!(route.has_two_types(), "{route:?}");
        let (_, mismatch) =
            expect.iter().find(|it| it.0.to_string() == route.publisher.gid).unwrap();
        assert_eq!(route.because, format!("incompatible: {mismatch}"));
    }
    assert!(subscription.take().unwrap().is_none());

    let theirs = plain.inlet(&Topic { name: "rt/ours".to_owned(), ..other.clone() }, keep_all());
    let mismatch = event(&told, |event| match event {
        PublisherEvent::IncompatibleType { subscription, mismatch } => {
            Some((subscription, mismatch))
        }
        _ => None,
    });
    let expect = "type: offered std_msgs/msg/String, requested std_msgs/msg/Int32";
    assert_eq!(mismatch, (theirs.name(), expect.to_owned()));
    let [route] = &routes(&context, "/ours")[..] else { panic!("one flow") };
    assert_eq!((route.state, publisher.matched()), (RouteState::Incompatible, 0));

    // With whoever does not fit goes what was said of it.
    drop((of_other, of_rehashed, of_strange, theirs));
    wait_until("they are gone", || {
        routes(&context, "/chatter").len() == 1 && routes(&context, "/ours").is_empty()
    });
}

/// What a peer of this distribution and one of another are to a context of `own`.
fn check_distros(context: &Context, domain: u32, own: Distro, other: Distro) {
    let node = context.node("listener").unwrap();
    let subscription = node.create_polled_subscription::<Text>("chatter", keep_all()).unwrap();
    let (kin, unreachable_peer) = (Plain::join(domain), Plain::join(domain));
    let topic = Topic::of::<Text>("chatter");
    let talkers = [kin.talker(&topic, keep_all()), unreachable_peer.talker(&topic, keep_all())];
    let kin_says = kin.say_nodes(own, &kin.node("kin", &[talkers[0].name()]));
    let unreachable_peer_says = unreachable_peer.node("unreachable_peer", &[talkers[1].name()]);
    let said = unreachable_peer.say_nodes(other, &unreachable_peer_says);
    subscription.wait_for_publishers(2, HANG).unwrap();
    let names = || {
        let graph = context.graph();
        let mut names: Vec<_> = graph.endpoints.iter().map(|it| it.node.clone()).collect();
        names.sort();
        names
    };
    wait_until("the kin's node is known", || names() == ["/kin", "/listener", "?"]);
    wait_until("the unreachable_peer is complained of", || context.unreachable_peers().len() == 1);
    // It says so again and again.
    for _ in 0..10 {
        said.write(
            &unreachable_peer_says.encode(other, tsuji_msg::cdr::ByteOrder::Little).unwrap(),
        );
    }
    for talker in &talkers {
        talker.wait_for_readers(1);
        talker.say(&text("hello"));
        assert_eq!(take(&node, &subscription).data.to_string(), "hello");
    }
    // After these came what was said before.
    let again = kin.node("renamed", &[talkers[0].name()]);
    kin_says.write(&again.encode(own, tsuji_msg::cdr::ByteOrder::Big).unwrap());
    wait_until("the kin's node has another name", || names() == ["/listener", "/renamed", "?"]);
    let [complaint] = &context.unreachable_peers()[..] else { panic!("one") };
    assert_eq!(complaint.path, format!("participant {}", unreachable_peer.name()));
    let bytes = |it: Distro| format!("{} bytes", it.gid_bytes());
    let reason = &complaint.reason;
    assert!(reason.contains(&bytes(own)) && reason.contains(&bytes(other)), "{reason}");
    drop(talkers);
    drop((said, unreachable_peer));
    wait_until("it has left, and the complaint with it", || context.unreachable_peers().is_empty());
}

#[test]
fn a_peer_of_another_distribution_has_no_node_names_and_works() {
    let _watchdog = Watchdog::start("distributions");
    let folder = Folder::new();
    check_distros(&context(&folder, 32), 32, Distro::Jazzy, Distro::Humble);
    let child = Child::start_with(&folder, "look at nodes as humble", &[("ROS_DISTRO", "humble")]);
    child.expect("right");
    child.finish();
}

fn look_at_nodes_as_humble() {
    let folder = Folder::new();
    check_distros(&context(&folder, 42), 42, Distro::Humble, Distro::Jazzy);
    tell("right");
}

#[test]
fn many_endpoints_come_at_once_and_go_at_once() {
    const MANY: usize = 100;
    let _watchdog = Watchdog::start("many endpoints");
    let folder = Folder::new();
    let context = context(&folder, 33);
    let node = context.node("both").unwrap();
    let name = |kind: &str, at: usize| format!("{kind}_{at}");
    let subscriptions: Vec<_> = (0..MANY / 2)
        .map(|at| node.create_polled_subscription::<UInt64>(&name("w", at), keep_last(5)).unwrap())
        .collect();
    let publishers: Vec<_> = (0..MANY / 2)
        .map(|at| node.create_publisher::<UInt64>(&name("r", at), keep_last(5)).unwrap())
        .collect();
    let plain = Plain::join(33);
    let all: Vec<_> = (0..MANY)
        .map(|at| {
            let (from, to) =
                (Topic::of::<UInt64>(&name("w", at)), Topic::of::<UInt64>(&name("r", at)));
            (plain.outlet(&from, keep_last(5)), plain.inlet(&to, keep_last(5)))
        })
        .collect();
    let theirs =
        |graph: &tsuji::Graph| graph.endpoints.iter().filter(|it| it.vendor.is_some()).count();
    let shown =
        context.wait_for_graph(HANG, |graph| (theirs(graph) == 2 * MANY).then_some(())).unwrap();
    assert!(shown.is_some(), "{} are shown", theirs(&context.graph()));
    subscriptions.iter().for_each(|it| it.wait_for_publishers(1, HANG).unwrap());
    publishers.iter().for_each(|it| it.wait_for_subscriptions(1, HANG).unwrap());
    wait_until("all flows are active", || {
        let routes = context.routes(HANG).unwrap();
        routes.len() == MANY && routes.iter().all(is_active)
    });
    for (at, (publisher, (_, inlet))) in publishers.iter().zip(&all).enumerate() {
        publisher.publish(number(at as u64)).unwrap();
        assert_eq!(&next(&**inlet).1[..], number(at as u64).to_vec().unwrap());
    }
    drop(all);
    drop(plain);
    let gone = context.wait_for_graph(HANG, |graph| (theirs(graph) == 0).then_some(())).unwrap();
    assert!(gone.is_some());
    assert!(context.routes(HANG).unwrap().is_empty());
    assert!(subscriptions.iter().all(|it| it.matched() == 0));
    assert!(publishers.iter().all(|it| it.matched() == 0));
}

#[test]
fn a_peer_killed_in_a_sample_is_gone_after_its_lease() {
    let _watchdog = Watchdog::start("killed in a sample");
    let folder = Folder::new();
    let context = context(&folder, 34);
    let node = context.node("viewer").unwrap();
    let subscription = node.create_polled_subscription::<Image>("image", keep_last(2)).unwrap();
    for _ in 0..3 {
        let child = Child::start(&folder, "talk of pictures");
        take_until(&node, &subscription, |received| received.view().data.len() == PICTURE);
        child.kill();
    }
    // The leases have not ended yet, and what was sent half holds nobody up.
    let plain = Plain::join(34);
    let talker = plain.talker(&Topic::of::<Image>("image"), keep_all());
    talker.wait_for_readers(1);
    talker.say(&Image { height: 7, ..Image::default() });
    take_until(&node, &subscription, |received| match received.view().height {
        7 => true,
        _ => {
            assert_eq!(received.view().data.len(), PICTURE);
            false
        }
    });
    let publishers = |graph: &tsuji::Graph| {
        graph.endpoints.iter().filter(|it| it.kind == EndpointKind::Publisher).count()
    };
    let gone = context.wait_for_graph(HANG, |graph| (publishers(graph) == 1).then_some(()));
    assert!(gone.unwrap().is_some());
    talker.say(&Image { height: 8, ..Image::default() });
    take_until(&node, &subscription, |received| received.view().height == 8);
    assert_eq!((subscription.counters().invalid, subscription.matched()), (0, 1));
    assert_eq!(routes(&context, "/image").len(), 1);
}

const PICTURE: usize = 4_000_000;

fn talk_of_pictures() {
    let plain = Plain::join(34);
    let talker = plain.talker(&Topic::of::<Image>("image"), keep_last(1));
    let picture = Image { data: vec![7; PICTURE], ..Image::default() }.to_vec().unwrap();
    loop {
        talker.write(&picture);
    }
}

#[test]
fn nobody_speaks_of_nodes_but_for_himself() {
    let _watchdog = Watchdog::start("graph messages");
    let folder = Folder::new();
    let context = context(&folder, 35);
    let (good, liar) = (Plain::join(35), Plain::join(35));
    let topic = Topic::of::<Text>("chatter");
    let (talker, theirs) = (good.talker(&topic, keep_all()), liar.talker(&topic, keep_all()));
    let own = context.node("own").unwrap();
    let ours = own.create_publisher::<Text>("chatter", keep_all()).unwrap();
    let said = good.node("good", &[talker.name()]);
    let _said = good.say_nodes(Distro::Jazzy, &said);
    let graph = liar.graph();
    let encoded = |said: &ParticipantEntitiesInfo| {
        said.encode(Distro::Jazzy, tsuji_msg::cdr::ByteOrder::Little).unwrap()
    };
    let nodes = || {
        let graph = context.graph();
        graph.nodes.iter().map(|it| it.fully_qualified_name()).collect::<Vec<_>>()
    };
    let expect = |expect: &[&str]| wait_until("the nodes are known", || nodes() == expect);
    let liars_own = || liar.node("liar", &[theirs.name()]);
    graph.write(&encoded(&liars_own()));
    expect(&["/good", "/liar", "/own"]);

    // It renames and removes nodes of another, and of the participant that reads it.
    let renamed = ParticipantEntitiesInfo { nodes: liars_own().nodes, ..said.clone() };
    graph.write(&encoded(&renamed));
    let removed = ParticipantEntitiesInfo { nodes: Vec::new(), ..said.clone() };
    graph.write(&encoded(&removed));
    let reader = liar.found(&topic).into_iter().find(|it| it.participant != good.name()).unwrap();
    let of_tsuji = ParticipantEntitiesInfo { participant: Guid(reader.participant.0), ..renamed };
    graph.write(&encoded(&of_tsuji));
    let nobody = ParticipantEntitiesInfo { participant: Guid([9; 16]), ..of_tsuji };
    graph.write(&encoded(&nobody));
    // Its own node as the owner of what others write, and twice the same node.
    let mut greedy = liar.node("greedy", &[theirs.name(), talker.name(), reader.name]);
    greedy.nodes.push(greedy.nodes[0].clone());
    graph.write(&encoded(&greedy));
    expect(&["/good", "/greedy", "/greedy", "/own"]);
    let owner = |gid: Gid| {
        let graph = context.graph();
        graph.endpoints.iter().find(|it| it.gid == gid).unwrap().node.clone()
    };
    assert_eq!(owner(talker.name()), "/good");
    assert_eq!((owner(theirs.name()), owner(ours.gid())), ("/greedy".into(), "/own".into()));
    let [complaint] = &context.unreachable_peers()[..] else {
        panic!("one: {:?}", context.unreachable_peers())
    };
    assert_eq!(complaint.path, format!("participant {}", liar.name()));
    assert!(complaint.reason.contains("allowed: its own"), "{complaint:?}");

    // None of these is taken, and what was known stays.
    let whole = encoded(&liars_own());
    let mut random = Random(35);
    for _ in 0..200 {
        let len = 4 + random.below(200) as usize;
        let mut garbage: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
        graph.write(&garbage);
        garbage[..4].copy_from_slice(&[0, 1, 0, 0]);
        graph.write(&garbage);
    }
    (4..whole.len()).for_each(|end| graph.write(&whole[..end]));
    let with_names = |namespace: &str, name: &str| {
        let mut bytes = whole[..24].to_vec();
        let mut put = |text: &str| {
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes.extend((text.len() as u32 + 1).to_le_bytes());
            bytes.extend(text.as_bytes());
            bytes.push(0);
        };
        put(namespace);
        put(name);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend([0; 8]);
        bytes
    };
    graph.write(&with_names("/", &"a".repeat(257)));
    graph.write(&with_names("/", &"a".repeat(1_000_000)));
    graph.write(&with_names("/", "a\nb\x1b[31m"));
    graph.write(&with_names("/\0", "a"));
    let one = [&[2, 0, 0, 0, b'/', 0, 0, 0, 2, 0, 0, 0, b'a', 0, 0, 0][..], &[0; 8]].concat();
    let mut many = whole[..20].to_vec();
    many.extend(2000u32.to_le_bytes());
    (0..2000).for_each(|_| many.extend(&one));
    graph.write(&many);
    // Names that ROS 2 would not allow are shown as they are; the message after shows that all of
    // this has come.
    graph.write(&with_names("no slash", "a b"));
    expect(&["/good", "/own", "no slash/a b"]);
    assert_eq!(context.unreachable_peers().len(), 1);
    // It has none.
    graph.write(&encoded(&ParticipantEntitiesInfo { nodes: Vec::new(), ..liars_own() }));
    expect(&["/good", "/own"]);
    graph.write(&encoded(&liars_own()));
    expect(&["/good", "/liar", "/own"]);
    drop((graph, theirs));
    drop(liar);
    expect(&["/good", "/own"]);

    // What is said last before the end is nobody's.
    for at in 0..20 {
        let hasty = Plain::join(35);
        let _said = hasty.say_nodes(Distro::Jazzy, &hasty.node(&format!("hasty_{at}"), &[]));
    }
    let all_gone = || {
        let last = Plain::join(35);
        let _said = last.say_nodes(Distro::Jazzy, &last.node("last", &[]));
        expect(&["/good", "/last", "/own"]);
    };
    all_gone();
    expect(&["/good", "/own"]);
}

#[test]
fn what_participants_say_of_themselves_is_not_believed_blindly() {
    let _watchdog = Watchdog::start("user data");
    let folder = Folder::new();
    let (here, there) = (context(&folder, 36), context(&folder, 36));
    let (node, far) = (here.node("talker").unwrap(), there.node("listener").unwrap());
    let publisher = node.create_publisher::<UInt64>("flow", keep_all()).unwrap();
    let subscription = far.create_polled_subscription::<UInt64>("flow", keep_all()).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    let heard_of = node.create_polled_subscription::<Text>("chatter", keep_all()).unwrap();

    let topic = Topic::of::<Text>("chatter");
    let mut random = Random(36);
    let garbage: Vec<u8> = (0..300).map(|_| random.next() as u8).collect();
    let long = [&b"enclave=/;x="[..], &vec![b'x'; 50_000]].concat();
    let known = format!("tsujiprocess={};tsujihost=h;tsujiversion=", "5a".repeat(16));
    let plain: Vec<Vec<u8>> = vec![
        Vec::new(),
        b";;;===;\0\0".to_vec(),
        garbage,
        long,
        b"enclave=/;unknown=1;another=;".to_vec(),
        b"tsujiprocess=short;tsujiversion=1;tsujihost=h;".to_vec(),
        format!("{known}x;").into_bytes(),
        format!("{known}77;").into_bytes(),
    ];
    let peers: Vec<Plain> = plain.iter().map(|said| Plain::saying(36, said)).collect();
    let talkers: Vec<_> = peers.iter().map(|it| it.talker(&topic, keep_all())).collect();
    heard_of.wait_for_publishers(talkers.len(), HANG).unwrap();
    for (at, talker) in talkers.iter().enumerate() {
        talker.wait_for_readers(1);
        talker.say(&text(at.to_string()));
        assert_eq!(take(&node, &heard_of).data.to_string(), at.to_string());
    }
    wait_until("that of another version is shown", || !here.unreachable_peers().is_empty());
    let [unreachable_peer] = &here.unreachable_peers()[..] else {
        panic!("one: {:?}", here.unreachable_peers())
    };
    assert_eq!(unreachable_peer.path, format!("participant {}", peers.last().unwrap().name()));
    assert!(unreachable_peer.reason.contains("it speaks version 77"), "{unreachable_peer:?}");

    // Liars: they are this process, another that lives, and one that nobody knows.
    let token = |node: &Node| {
        let nodes = here.graph().nodes;
        let of_it =
            |it: &&tsuji::NodeInfo| it.fully_qualified_name() == node.fully_qualified_name();
        nodes.iter().find(of_it).unwrap().process.token.clone()
    };
    let version = tsuji_version(36);
    for token in [token(&node), token(&far), "77".repeat(16)] {
        let said = format!("enclave=/;tsujiprocess={token};tsujiversion={version};tsujihost=h;");
        let liar = Plain::saying(36, said.as_bytes());
        let lies = liar.talker(&topic, keep_all());
        let _inlet = liar.inlet(&Topic::of::<UInt64>("flow"), keep_all());
        wait_until("it has found us", || liar.readers(&topic) == 1);
        lies.say(&text("a lie"));
        let truth = Plain::join(36);
        let tells = truth.talker(&topic, keep_all());
        tells.wait_for_readers(1);
        tells.say(&text("the truth"));
        assert_eq!(take(&node, &heard_of).data.to_string(), "the truth");
        publisher.publish(number(1)).unwrap();
        assert_eq!(take(&far, &subscription).data, 1);
        drop(lies);
        drop(_inlet);
        drop(liar);
        publisher.publish(number(2)).unwrap();
        assert_eq!(take(&far, &subscription).data, 2);
    }
    assert_eq!((publisher.matched(), subscription.matched()), (1, 1));
    drop(talkers);
    drop(peers);
    wait_until("all have left", || here.graph().endpoints.iter().all(|it| it.vendor.is_none()));
    wait_until("and what was said of them", || here.unreachable_peers().is_empty());
    let [route] = &routes(&here, "/flow")[..] else { panic!("one flow") };
    assert_eq!((route.state, route.lost, route.duplicates), (RouteState::Active, 0, 0));
}

/// The version of the control protocol, as a process of tsuji announces it.
fn tsuji_version(domain: u32) -> u32 {
    let (plain, mut version) = (Plain::join(domain), None);
    wait_until("a process of tsuji is found", || {
        version = plain.said_by_others().iter().find_map(|said| {
            let said = tsuji_ros::user_data::ParticipantUserData::parse(said).ok()?;
            Some(said.tsuji?.version).filter(|it| *it != 77)
        });
        version.is_some()
    });
    version.unwrap()
}

#[test]
fn a_foreign_publisher_that_shows_no_sign_of_life_is_told_of() {
    let _watchdog = Watchdog::start("signs of life");
    let folder = Folder::new();
    let context = context(&folder, 46);
    let node = context.node("nurse").unwrap();
    let _spinner = Spinner::start(&node);
    let plain = Plain::join(46);
    let by_topic = Qos {
        liveliness: Liveliness::ManualByTopic,
        liveliness_lease: Some(Duration::from_secs(1)),
        ..Qos::DEFAULT
    };
    let theirs = plain.talker(&Topic::of::<Text>("heart"), by_topic);
    let (subscription, events) = watched::<Text>(&node, "heart", by_topic);
    theirs.wait_for_readers(1);
    let told = |alive: usize, not_alive: usize| {
        let wanted = SubscriptionEvent::LivelinessChanged { alive, not_alive };
        event(&events, |event| (event == wanted).then_some(()));
    };
    told(1, 0);
    for _ in 0..3 {
        told(0, 1);
        theirs.say(&text("alive"));
        told(1, 0);
    }
    drop(theirs);
    told(0, 0);
    assert_eq!(subscription.matched(), 0);
}

#[test]
fn qos_that_does_not_fit_is_told_at_our_end() {
    let _watchdog = Watchdog::start("qos");
    let folder = Folder::new();
    let context = context(&folder, 38);
    let node = context.node("strict").unwrap();
    let _spinner = Spinner::start(&node);
    let plain = Plain::join(38);
    let second = Duration::from_secs(1);
    let late = Qos { durability: Durability::TransientLocal, ..Qos::DEFAULT };
    let with_deadline = |seconds| Qos { deadline: Some(seconds * second), ..Qos::DEFAULT };
    let with_lease = Qos { liveliness_lease: Some(second), ..Qos::DEFAULT };
    let cases = [
        (
            "a",
            best_effort(10),
            Qos::DEFAULT,
            "reliability: offered best_effort, requested reliable",
        ),
        ("b", Qos::DEFAULT, late, "durability: offered volatile, requested transient_local"),
        ("c", with_deadline(3), with_deadline(2), "deadline: offered 3s, requested 2s"),
        ("d", Qos::DEFAULT, with_deadline(2), "deadline: offered infinite, requested 2s"),
        ("e", Qos::DEFAULT, with_lease, "liveliness_lease: offered infinite, requested 1s"),
    ];
    for (name, offered, requested, expect) in cases {
        let theirs = plain.outlet(&Topic::of::<Text>(name), offered);
        let (subscription, events) = watched::<Text>(&node, name, requested);
        let mismatch = event(&events, |event| match event {
            SubscriptionEvent::IncompatibleQos { publisher, mismatches } => {
                Some((publisher, mismatches))
            }
            _ => None,
        });
        assert_eq!(mismatch, (theirs.name(), vec![expect.to_owned()]));
        let [route] = &routes(&context, &format!("/{name}"))[..] else { panic!("one flow") };
        assert_eq!(route.state, RouteState::Incompatible);
        assert_eq!(route.mismatches, [expect]);
        assert_eq!(route.because, format!("incompatible: {expect}"));
        assert_eq!(
            (route.publisher.gid.clone(), subscription.matched()),
            (theirs.name().to_string(), 0)
        );

        let name = format!("to_{name}");
        let (sender, events) = channel();
        let options = PublisherOptions::default().qos(offered);
        let options = options.on_event(move |event| drop(sender.send(event)));
        let publisher = node.create_publisher::<Text>(&name, options).unwrap();
        let theirs = plain.inlet(&Topic::of::<Text>(&name), requested);
        let mismatch = event(&events, |event| match event {
            PublisherEvent::IncompatibleQos { subscription, mismatches } => {
                Some((subscription, mismatches))
            }
            _ => None,
        });
        assert_eq!(mismatch, (theirs.name(), vec![expect.to_owned()]));
        let [route] = &routes(&context, &format!("/{name}"))[..] else { panic!("one flow") };
        assert_eq!((route.state, publisher.matched()), (RouteState::Incompatible, 0));
        assert_eq!(route.mismatches, [expect]);
    }
    // The other way round they fit.
    let _theirs = plain.outlet(&Topic::of::<Text>("f"), late);
    let fits = node.create_polled_subscription::<Text>("f", best_effort(1)).unwrap();
    fits.wait_for_publishers(1, HANG).unwrap();
}

const ADD: &str = AddTwoInts::TYPE_NAME;

/// A request of a foreign client, or a reply of a foreign server, to request `sequence` of `client`.
fn with_header(client: u64, sequence: i64, message: &impl Message) -> Vec<u8> {
    RequestHeader { client, sequence }.join(&message.to_vec().unwrap()).unwrap()
}

#[test]
fn foreign_clients_are_answered_whatever_else_is_asked() {
    let _watchdog = Watchdog::start("foreign clients");
    let folder = Folder::new();
    let context = context(&folder, 37);
    let node = context.node("adder").unwrap();
    let answer = |it: std::sync::Arc<AddTwoIntsRequest>| AddTwoIntsResponse { sum: it.a + it.b };
    let service = node.create_service::<AddTwoInts>("ours", answer).unwrap();
    let _spinner = Spinner::start(&node);
    // Two clients of one participant, whose halves come in such an order that only what they say
    // tells which belong together.
    let plain = Plain::join(37);
    let (asks, takes) = (Topic::requests("ours", ADD), Topic::replies("ours", ADD));
    let of = |topic: &Topic, id: &str| topic.clone().saying(&format!("clientid={id};"));
    let second_takes = plain.inlet(&of(&takes, "2"), keep_all());
    let first_asks = plain.talker(&of(&asks, "1"), keep_all());
    let shown = |count: usize| {
        wait_until("the clients are known", || {
            let graph = context.graph();
            graph.services.iter().filter(|it| it.topic == "/ours").count() == 1 + count
        });
    };
    shown(1);
    // Two halves of two make no client.
    assert!(routes(&context, "/ours").is_empty());
    let second_asks = plain.talker(&of(&asks, "2"), keep_all());
    let first_takes = plain.inlet(&of(&takes, "1"), keep_all());
    shown(2);
    let active = |count: usize| {
        wait_until("the flows are there", || {
            let routes = routes(&context, "/ours");
            routes.len() == count && routes.iter().all(is_active)
        });
    };
    active(4);
    for asks in [&first_asks, &second_asks] {
        asks.wait_for_readers(1);
    }
    let request = |a| AddTwoIntsRequest { a, b: 1000 };
    let whole = with_header(7, 1, &request(1));
    // Shorter than the header, nothing behind it, not all of it behind it; no encapsulation.
    let bad = [&whole[..4], &whole[..14], &whole[..19], &whole[..20], &whole[..35]];
    bad.iter().for_each(|bad| first_asks.write(bad));
    first_asks.write(&with_header(7, 1, &request(1)));
    second_asks.write(&with_header(8, i64::MIN, &request(2)));
    // The same number again is another request, for all that a server knows.
    second_asks.write(&with_header(8, i64::MIN, &request(3)));
    let mut expect = vec![
        with_header(7, 1, &AddTwoIntsResponse { sum: 1001 }),
        with_header(8, i64::MIN, &AddTwoIntsResponse { sum: 1002 }),
        with_header(8, i64::MIN, &AddTwoIntsResponse { sum: 1003 }),
    ];
    expect.sort();
    for takes in [&first_takes, &second_takes] {
        // Replies go to all clients; each knows its own.
        let mut replies: Vec<_> = (0..3).map(|_| next(&**takes).1.to_vec()).collect();
        replies.sort();
        assert_eq!(replies, expect);
    }
    // A reply may have come before it is counted.
    wait_until("all are counted", || {
        let counters = service.counters();
        (counters.invalid, counters.answered) == (bad.len() as u64, 3)
    });

    // Half a client is none; the other one is not touched.
    drop(first_asks);
    active(2);
    let left = routes(&context, "/ours");
    let names = [second_asks.name().to_string(), second_takes.name().to_string()];
    for route in &left {
        let theirs =
            if route.role == Role::Request { &route.publisher } else { &route.subscription };
        assert!(names.contains(&theirs.gid), "{route:?}");
    }
    second_asks.write(&with_header(8, 4, &request(4)));
    let reply = with_header(8, 4, &AddTwoIntsResponse { sum: 1004 });
    assert_eq!(next(&*second_takes).1.to_vec(), reply);
    assert_eq!(next(&*first_takes).1.to_vec(), reply);
    // The half finds another.
    let first_asks = plain.talker(&of(&asks, "1"), keep_all());
    active(4);
    first_asks.wait_for_readers(1);
    first_asks.write(&with_header(9, 5, &request(5)));
    let reply = with_header(9, 5, &AddTwoIntsResponse { sum: 1005 });
    assert_eq!(next(&*first_takes).1.to_vec(), reply);
    assert_eq!(service.counters().lost, 0);
}

#[test]
fn requests_of_clients_that_left_are_never_misread() {
    const MANY: i64 = 300;
    let _watchdog = Watchdog::start("clients that left");
    let folder = Folder::new();
    let context = context(&folder, 37);
    let node = context.node("busy").unwrap();
    let service = node.create_polled_service::<AddTwoInts>("busy").unwrap();
    let plain = Plain::join(37);
    for number in 0..MANY {
        // The writer of the one before is still there, until all that it sent is acknowledged.
        let id = format!("clientid={number};");
        let takes = plain.inlet(&Topic::replies("busy", ADD).saying(&id), keep_all());
        let asks = plain.talker(&Topic::requests("busy", ADD).saying(&id), keep_all());
        asks.wait_for_readers(1);
        wait_until("the server knows the client", || service.clients() == 1);
        asks.write(&with_header(u64::MAX, -1, &AddTwoIntsRequest { a: number, b: number }));
        drop((asks, takes));
        wait_until("the client has left", || service.clients() == 0);
    }
    let mut taken = 0;
    while let Some(request) = service.take().unwrap() {
        let asked = request.message();
        assert!(asked.a == asked.b && (0..MANY).contains(&asked.a), "{asked:?}");
        assert_eq!(
            request.respond(AddTwoIntsResponse { sum: 0 }).unwrap_err().kind(),
            ErrorKind::Closed
        );
        taken += 1;
    }
    let counters = service.counters();
    // What came when its client was half gone was nobody's.
    assert!(0 < taken && taken + counters.lost <= MANY as u64, "{counters:?}");
    assert_eq!((counters.received, counters.invalid), (taken, 0), "{counters:?}");
}

/// The two halves of a foreign server.
struct Server<'a> {
    requests: Box<dyn Inlet>,
    replies: Talker<'a>,
}

impl<'a> Server<'a> {
    fn start(plain: &'a Plain, service: &str) -> Self {
        let requests = Topic::requests(service, ADD).saying("serviceid=1;");
        let replies = Topic::replies(service, ADD).saying("serviceid=1;");
        let requests = plain.inlet(&requests, keep_all());
        Self { requests, replies: plain.talker(&replies, keep_all()) }
    }

    /// The next request, of the one client, when that can be answered.
    fn take(&self) -> (RequestHeader, AddTwoIntsRequest) {
        let (_, whole) = next(&*self.requests);
        self.replies.wait_for_readers(1);
        let (header, encapsulation, body) = RequestHeader::split(&whole).unwrap();
        (header, AddTwoIntsRequest::deserialize(&[&encapsulation, body].concat()).unwrap())
    }

    fn reply(&self, header: RequestHeader, sum: i64) {
        self.replies.write(&with_header(
            header.client,
            header.sequence,
            &AddTwoIntsResponse { sum },
        ));
    }
}

#[test]
fn replies_that_are_not_ours_are_not_delivered() {
    let _watchdog = Watchdog::start("strange replies");
    let folder = Folder::new();
    let context = context(&folder, 37);
    let node = context.node("caller").unwrap();
    let client = node.create_client::<AddTwoInts>("theirs").unwrap();
    let request = |a| AddTwoIntsRequest { a, b: 0 };

    // Half a server is none.
    let plain = Plain::join(37);
    let replies = Topic::replies("theirs", ADD).saying("serviceid=0;");
    let half = plain.outlet(&replies, keep_all());
    let after = plain.outlet(&Topic::of::<Text>("after_the_half"), keep_all());
    let is_shown = |name: Gid| context.graph().endpoints.iter().any(|it| it.gid == name);
    wait_until("all that was there before is known", || is_shown(after.name()));
    assert_eq!((client.is_ready(), routes(&context, "/theirs")), (false, Vec::new()));
    let none = client.call(request(0), Duration::from_millis(20)).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NoServer);
    drop(half);

    let server = Server::start(&plain, "theirs");
    client.wait_for_service(HANG).unwrap();
    let pending = client.send(request(1)).unwrap();
    let (header, asked) = server.take();
    assert_eq!(asked, request(1));
    // Too short for its header, of another client, to requests never sent.
    server.replies.write(&[0, 1, 0, 0, 1, 2, 3]);
    server.reply(RequestHeader { client: header.client ^ 1, ..header }, 66);
    for sequence in [header.sequence + 1, -1, i64::MAX] {
        server.reply(RequestHeader { sequence, ..header }, 77);
    }
    // Twice the right one.
    server.reply(header, 1);
    server.reply(header, 1);
    assert_eq!(pending.wait(HANG).unwrap().sum, 1);
    wait_until("what nobody waits for is counted", || client.counters().late == 4);
    let counters = client.counters();
    assert_eq!((counters.replied, counters.lost, counters.open), (1, 0, 0), "{counters:?}");
    let of_replies = routes(&context, "/theirs").into_iter().find(|it| it.role == Role::Reply);
    let of_replies = of_replies.unwrap();
    assert_eq!((of_replies.invalid, of_replies.lost), (1, 0), "{of_replies:?}");

    // Whoever is answered with what is none is told so.
    let pending = client.send(request(9)).unwrap();
    let (header, _) = server.take();
    let whole = with_header(header.client, header.sequence, &AddTwoIntsResponse { sum: 1 });
    server.replies.write(&whole[..20]);
    assert_eq!(pending.wait(HANG).unwrap_err().kind(), ErrorKind::Invalid);

    // Two servers have each request, and the first answer counts.
    let other = Plain::join(37);
    let second = Server::start(&other, "theirs");
    wait_until("both are ready", || client.servers() == 2);
    let pending = client.send(request(2)).unwrap();
    let ((_, one), (header, two)) = (server.take(), second.take());
    assert_eq!((one, two), (request(2), request(2)));
    second.reply(header, 22);
    assert_eq!(pending.wait(HANG).unwrap().sum, 22);
    server.reply(header, 11);
    wait_until("the second answer is late", || client.counters().late == 5);

    // One of two may go while it is asked.
    let pending = client.send(request(3)).unwrap();
    let (header, _) = server.take();
    drop(second);
    wait_until("one is left", || client.servers() == 1);
    server.reply(header, 33);
    assert_eq!(pending.wait(HANG).unwrap().sum, 33);
}

#[test]
fn a_foreign_server_that_dies_is_lost() {
    let _watchdog = Watchdog::start("a foreign server dies");
    let folder = Folder::new();
    let context = context(&folder, 37);
    let node = context.node("caller").unwrap();
    let client = node.create_client::<AddTwoInts>("dying").unwrap();
    let child = Child::start(&folder, "serve and be silent");
    client.wait_for_service(HANG).unwrap();
    let pending = client.send(AddTwoIntsRequest { a: 1, b: 2 }).unwrap();
    child.expect("asked");
    child.kill();
    assert_eq!(pending.wait(HANG).unwrap_err().kind(), ErrorKind::ServerLost);
    assert_eq!((client.counters().lost, client.is_ready()), (1, false));
}

fn serve_and_be_silent() {
    let plain = Plain::join(37);
    let server = Server::start(&plain, "dying");
    server.take();
    tell("asked");
    heard();
}

#[test]
fn a_foreign_reader_that_is_stopped_holds_nobody_up() {
    let _watchdog = Watchdog::start("a stopped reader");
    let folder = Folder::new();
    let listener = Child::start(&folder, "listen and be stopped");
    let mut publisher = Child::start(&folder, "publish to one that is stopped");
    listener.expect("heard");
    listener.stop();
    publisher.say("go on");
    publisher.expect("done");
    listener.go_on();
    listener.expect("heard the last");
    publisher.say("end");
    publisher.finish();
}

/// Publishes 200 MB that nobody acknowledges. As its depth says, it keeps the last samples only, so it
/// neither waits nor grows.
fn publish_to_one_that_is_stopped() {
    let folder = Folder::new();
    let context = context(&folder, 39);
    let node = context.node("camera").unwrap();
    let publisher = node.create_publisher::<Image>("image", keep_last(5)).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let mut picture = Image { data: vec![7; PICTURE], ..Image::default() };
    publisher.publish(&picture).unwrap();
    heard();
    let before_kib = resident_kib();
    let mut most_kib = 0;
    for _ in 0..50 {
        publisher.publish(&picture).unwrap();
        most_kib = most_kib.max(resident_kib());
    }
    let grown_kib = most_kib - before_kib;
    assert!(grown_kib < 100 * 1024, "{grown_kib} KiB more");
    assert_eq!(publisher.counters().dropped, 0);
    tell("done");
    // Said until it is heard: where the machine is slow the lease has ended meanwhile.
    picture.height = 1;
    thread::scope(|scope| {
        let ending = scope.spawn(heard);
        while !ending.is_finished() {
            publisher.publish(&picture).unwrap();
            thread::sleep(Duration::from_millis(50));
        }
    });
}

fn listen_and_be_stopped() {
    let plain = Plain::join(39);
    let inlet = plain.inlet(&Topic::of::<Image>("image"), keep_all());
    next(&*inlet);
    tell("heard");
    while Image::deserialize(&next(&*inlet).1).unwrap().height == 0 {}
    tell("heard the last");
    heard();
}

#[test]
fn one_that_comes_and_goes_leaves_nothing() {
    let _watchdog = Watchdog::start("comes and goes");
    let folder = Folder::new();
    let child = Child::start(&folder, "meet one that comes and goes");
    child.expect("left nothing");
    child.finish();
}

fn meet_one_that_comes_and_goes() {
    let folder = Folder::new();
    let context = context(&folder, 41);
    let node = context.node("steady").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("churn", keep_last(10)).unwrap();
    let publisher = node.create_publisher::<UInt64>("churn", keep_last(10)).unwrap();
    let plain = Plain::join(41);
    let topic = Topic::of::<UInt64>("churn");
    let is_quiet = || {
        routes(&context, "/churn").len() == 1
            && context.graph().endpoints.iter().filter(|it| it.topic == "/churn").count() == 2
            && plain.readers(&topic) == 1
    };
    let churn = |rounds: usize| {
        for round in 0..rounds {
            let outlet = plain.outlet(&topic, keep_last(10));
            let inlet = plain.inlet(&topic, keep_last(10));
            if round % 10 == 0 {
                outlet.write(&number(1).to_vec().unwrap()).unwrap();
                publisher.publish(number(2)).unwrap();
            }
            drop((outlet, inlet));
        }
        wait_until("all flows have ended", is_quiet);
        while subscription.take().unwrap().is_some() {}
    };
    churn(50);
    let (descriptors_before, threads_before) = (descriptors(), threads());
    churn(1000);
    wait_until("no thread is left", || threads() <= threads_before);
    assert!(descriptors() <= descriptors_before);
    assert_eq!((subscription.matched(), publisher.matched()), (1, 1));
    assert!(context.unreachable_peers().is_empty());
    tell("left nothing");
}

/// What came last is kept, by whatever link: neither the numbers nor the clocks of two publishers are
/// compared.
#[test]
fn of_two_links_the_newest_is_kept() {
    let _watchdog = Watchdog::start("the newest of two links");
    let folder = Folder::new();
    let (here, there) = (context(&folder, 43), context(&folder, 43));
    let plain = Plain::join(43);
    let topic = Topic::of::<UInt64>("newest");
    let (near_node, node) = (here.node("near").unwrap(), there.node("viewer").unwrap());
    let near = near_node.create_publisher::<UInt64>("newest", keep_last(1)).unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("newest", keep_last(1)).unwrap();
    let far = plain.talker(&topic, keep_last(1));
    subscription.wait_for_publishers(2, HANG).unwrap();
    near.wait_for_subscriptions(1, HANG).unwrap();
    far.wait_for_readers(1);
    for round in 0..5 {
        near.publish(number(10 * round)).unwrap();
        far.say(&number(10 * round + 1));
        // Where both are there by now the older is pushed out.
        take_until(&node, &subscription, |received| received.view().data == 10 * round + 1);
    }
}

#[test]
fn a_context_that_is_shut_down_is_not_seen_any_more() {
    let _watchdog = Watchdog::start("shut down, and still held");
    let folder = Folder::new();
    let context = context(&folder, 44);
    let plain = Plain::join(44);
    let topic = Topic::of::<UInt64>("held");
    let node = context.node("held").unwrap();
    let publisher = node.create_publisher::<UInt64>("held", Qos::DEFAULT).unwrap();
    wait_until("it is seen", || plain.found(&topic).len() == 1);
    context.shutdown();
    wait_until("it is not seen", || plain.found(&topic).is_empty());
    drop((publisher, node));
}

/// A flow by the engine is no reason to meet others.
#[test]
fn with_interop_none_no_foreign_node_is_met() {
    let _watchdog = Watchdog::start("interop none");
    let folder = Folder::new();
    let policy = r#"<tsuji interop="none"><rule scope="local" use="cyclonedds"/>
        <transport name="cyclonedds">
            <set key="interfaces" value="lo"/><set key="multicast" value="true"/>
        </transport></tsuji>"#;
    let policy = tsuji_policy::load("test", policy.as_bytes(), tsuji::KNOWN_TRANSPORTS).unwrap();
    let process = || {
        let builder = Context::builder().runtime_dir(&folder.0).domain(45).policy(policy.clone());
        builder.isolated().build().unwrap()
    };
    let (here, there) = (process(), process());
    let plain = Plain::join(45);
    let talker = plain.talker(&Topic::of::<UInt64>("t"), Qos::DEFAULT);
    let (one, two) = (here.node("one").unwrap(), there.node("two").unwrap());
    let publisher = one.create_publisher::<UInt64>("t", Qos::DEFAULT).unwrap();
    let subscription = two.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    subscription.wait_for_publishers(1, HANG).unwrap();
    for data in 0..100 {
        talker.say(&number(1000));
        publisher.publish(number(data)).unwrap();
        assert_eq!(take(&two, &subscription).data, data);
    }
    for context in [&here, &there] {
        let graph = context.graph();
        assert!(graph.endpoints.iter().all(|it| it.vendor.is_none()), "{graph:?}");
        assert_eq!(graph.endpoints.len(), 2, "{graph:?}");
    }
}

//! Managed nodes and those who manage them: services, events, callbacks that fail.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use tsuji::lifecycle::{
    Lifecycle, LifecycleClient, LifecycleNode, LifecyclePublisher, Outcome, State, managed_nodes,
};
use tsuji::{Context, ErrorKind, History, Message, Node, Qos, Subscription, WaitSet};
use tsuji_interfaces::lifecycle_msgs::msg::{Transition, TransitionEvent};
use tsuji_interfaces::lifecycle_msgs::srv::{ChangeState, ChangeStateRequest};
use tsuji_interfaces::std_msgs::msg::String as Text;

#[path = "house/world.rs"]
mod world;
use world::{Folder, HANG, spun};

type Says = Box<dyn FnMut(&'static str, &LifecycleNode) -> Outcome + Send>;

/// Tells which callback runs, from which state, and does what the test says.
struct Scripted {
    called: Sender<(&'static str, State)>,
    says: Says,
}

impl Scripted {
    fn run(&mut self, name: &'static str, node: &LifecycleNode, from: State) -> Outcome {
        self.called.send((name, from)).unwrap();
        (self.says)(name, node)
    }
}

impl Lifecycle for Scripted {
    fn on_configure(&mut self, node: &LifecycleNode, from: State) -> Outcome {
        self.run("configure", node, from)
    }

    fn on_activate(&mut self, node: &LifecycleNode, from: State) -> Outcome {
        self.run("activate", node, from)
    }

    fn on_deactivate(&mut self, node: &LifecycleNode, from: State) -> Outcome {
        self.run("deactivate", node, from)
    }

    fn on_cleanup(&mut self, node: &LifecycleNode, from: State) -> Outcome {
        self.run("cleanup", node, from)
    }

    fn on_shutdown(&mut self, node: &LifecycleNode, from: State) -> Outcome {
        self.run("shutdown", node, from)
    }

    fn on_error(&mut self, node: &LifecycleNode, from: State) -> Outcome {
        self.run("error", node, from)
    }
}

/// A managed node and one that manages it, each as in a process of its own.
struct Pair {
    managed: LifecycleNode,
    called: Receiver<(&'static str, State)>,
    events: Subscription<TransitionEvent>,
    asking: Node,
    client: LifecycleClient,
    /// Goes last, when nobody makes anything in it any more.
    folder: Folder,
}

fn pair(says: impl FnMut(&'static str, &LifecycleNode) -> Outcome + Send + 'static) -> Pair {
    let folder = Folder::new();
    let node = folder.process().node_in("arm", "/robot").unwrap();
    let (sender, called) = mpsc::channel();
    let managed = node.manage(Scripted { called: sender, says: Box::new(says) }).unwrap();
    let asking = folder.process().node("manager").unwrap();
    let qos = Qos { history: History::KeepLast(100), ..Qos::DEFAULT };
    let events = asking.create_polled_subscription("/robot/arm/transition_event", qos).unwrap();
    events.wait_for_publishers(1, HANG).unwrap();
    let client = LifecycleClient::new(&asking, "/robot/arm");
    Pair { managed, called, events, asking, client, folder }
}

impl Pair {
    fn called(&self) -> Vec<(&'static str, State)> {
        self.called.try_iter().collect()
    }

    /// The steps that were told, by number and the labels of both states.
    fn told(&self, count: usize) -> Vec<(u8, String, String)> {
        let of = |it: Arc<TransitionEvent>| {
            assert!(0 < it.timestamp);
            (it.transition.id, it.start_state.label.clone(), it.goal_state.label.clone())
        };
        (0..count).map(|_| of(next(self.asking.context(), &self.events))).collect()
    }
}

/// The next message, however long it takes.
fn next<M: Message>(context: &Context, subscription: &Subscription<M>) -> Arc<M> {
    let mut set = WaitSet::new(context).unwrap();
    set.add(subscription).unwrap();
    loop {
        if let Some(received) = subscription.take().unwrap() {
            return received.message();
        }
        assert!(!set.wait(HANG).unwrap().is_empty(), "nothing comes");
    }
}

fn step(id: u8, from: &str, to: &str) -> (u8, String, String) {
    (id, from.to_owned(), to.to_owned())
}

#[test]
fn a_node_is_configured_activated_and_shut_down() {
    let pair = pair(|_, _| Outcome::Success);
    spun(pair.managed.node(), || {
        let client = &pair.client;
        let found = pair.asking.context().wait_for_graph(HANG, |graph| {
            managed_nodes(graph).contains("/robot/arm").then_some(())
        });
        assert!(found.unwrap().is_some());
        let state = || client.state(HANG).unwrap().label;
        assert_eq!(state(), "unconfigured");
        let labels = |all: Vec<tsuji_interfaces::lifecycle_msgs::msg::TransitionDescription>| {
            let all = all.into_iter();
            all.map(|it| (it.transition.id, it.transition.label, it.goal_state.label))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            labels(client.transitions(HANG).unwrap()),
            [step(1, "configure", "configuring"), step(5, "shutdown", "shuttingdown")]
        );
        assert_eq!(client.transition_graph(HANG).unwrap().len(), 25);
        let states = client.states(HANG).unwrap();
        assert_eq!((states.len(), states[2].label.as_str()), (11, "inactive"));
        for (transition, then) in [
            ("configure", "inactive"),
            ("activate", "active"),
            ("deactivate", "inactive"),
            ("cleanup", "unconfigured"),
            // By its number.
            ("1", "inactive"),
            ("shutdown", "finalized"),
        ] {
            client.change(transition, HANG).unwrap();
            assert_eq!(state(), then, "{transition}");
        }
        assert!(client.transitions(HANG).unwrap().is_empty());
    });
    let called = [
        ("configure", State::Unconfigured),
        ("activate", State::Inactive),
        ("deactivate", State::Active),
        ("cleanup", State::Inactive),
        ("configure", State::Unconfigured),
        ("shutdown", State::Inactive),
    ];
    assert_eq!(pair.called(), called);
    let first = [
        step(1, "unconfigured", "configuring"),
        step(10, "configuring", "inactive"),
        step(3, "inactive", "activating"),
        step(30, "activating", "active"),
    ];
    assert_eq!(pair.told(4), first);
}

#[test]
fn what_is_not_allowed_is_refused_with_what_is() {
    let pair = pair(|_, _| Outcome::Success);
    spun(pair.managed.node(), || {
        let error = pair.client.change("activate", HANG).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(
            error.to_string(),
            "lifecycle of /robot/arm: transition `activate` is not one of state unconfigured; allowed: configure [1], \
             shutdown [5]"
        );
        // Whoever asks the service itself is told no more than ROS 2 has words for.
        let raw = pair.asking.create_client::<ChangeState>("/robot/arm/change_state").unwrap();
        raw.wait_for_service(HANG).unwrap();
        let ask = |id: u8, label: &str| {
            let transition = Transition { id, label: label.to_owned() };
            raw.call(ChangeStateRequest { transition }, HANG).unwrap().success
        };
        assert!(!ask(3, ""));
        assert!(!ask(0, "activate"));
        assert!(!ask(99, ""));
        // The label counts where there is one.
        assert!(ask(3, "configure"));
        assert!(ask(3, ""));
    });
    let error = pair.managed.change("cleanup").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(
        error.to_string(),
        "/robot/arm: transition `cleanup` is not one of state active; allowed: deactivate [4], shutdown [7]"
    );
    let nobody = LifecycleClient::new(&pair.asking, "/nobody");
    let error = nobody.state(Duration::from_millis(10)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoServer);
    assert!(error.to_string().contains(" within 0.01 s"), "{error}");
    let error = nobody.change("configure", Duration::from_millis(10)).unwrap_err();
    assert!(error.to_string().contains(" within 0.01 s"), "{error}");
}

#[test]
fn a_callback_that_fails_leaves_the_node_where_it_was() {
    let pair = pair(|name, _| match name {
        "activate" => Outcome::Failure,
        _ => Outcome::Success,
    });
    spun(pair.managed.node(), || {
        pair.client.change("configure", HANG).unwrap();
        let error = pair.client.change("activate", HANG).unwrap_err();
        assert_eq!(
            error.to_string(),
            "lifecycle of /robot/arm: transition `activate` was not made; it is inactive"
        );
    });
    assert_eq!(pair.managed.change("activate").unwrap(), Outcome::Failure);
    assert_eq!(pair.managed.state(), State::Inactive);
}

/// A callback answers an error or panics, and what [`Lifecycle::on_error`] answers decides.
#[test]
fn an_error_is_processed() {
    let check = |panics: bool, tidied: Outcome, then: State| {
        let pair = pair(move |name, _| match name {
            "error" => tidied,
            _ if panics => panic!("it was told to"),
            _ => Outcome::Error,
        });
        assert_eq!(pair.managed.change("configure").unwrap(), Outcome::Error);
        assert_eq!(pair.managed.state(), then);
        let called = [("configure", State::Unconfigured), ("error", State::Unconfigured)];
        assert_eq!(pair.called(), called);
        let last = if tidied == Outcome::Success { 60 } else { 61 };
        let told = [
            step(1, "unconfigured", "configuring"),
            step(12, "configuring", "errorprocessing"),
            step(last + u8::from(tidied == Outcome::Error), "errorprocessing", then.label()),
        ];
        assert_eq!(pair.told(3), told);
    };
    for panics in [false, true] {
        check(panics, Outcome::Success, State::Unconfigured);
        check(panics, Outcome::Failure, State::Finalized);
        check(panics, Outcome::Error, State::Finalized);
    }
}

#[test]
fn of_two_changes_at_once_the_second_is_refused() {
    let (entered, has_entered) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let pair = pair(move |_, node| {
        // One of its own, too.
        assert_eq!(node.change("activate").unwrap_err().kind(), ErrorKind::Busy);
        entered.send(()).unwrap();
        may_go_on.recv().unwrap();
        Outcome::Success
    });
    thread::scope(|scope| {
        let first = scope.spawn(|| pair.managed.change("configure"));
        has_entered.recv_timeout(HANG).unwrap();
        assert_eq!(pair.managed.state(), State::Configuring);
        let error = pair.managed.change("shutdown").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert_eq!(
            error.to_string(),
            "/robot/arm: another transition is not over: it is configuring"
        );
        spun(pair.managed.node(), || {
            // What comes of a callback is nobody else's to ask for.
            for wanted in ["shutdown", "transition_success", "10"] {
                let error = pair.client.change(wanted, HANG).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Busy);
                assert_eq!(
                    error.to_string(),
                    "lifecycle of /robot/arm: another transition is not over: it is configuring"
                );
            }
        });
        go_on.send(()).unwrap();
        assert_eq!(first.join().unwrap().unwrap(), Outcome::Success);
    });
    assert_eq!(pair.managed.state(), State::Inactive);
}

#[test]
fn publishers_send_while_the_node_is_active() {
    let (hands_over, publishers) = mpsc::channel::<LifecyclePublisher<Text>>();
    let pair = pair(move |name, node| {
        if name == "configure" {
            hands_over.send(node.create_publisher("chatter", Qos::DEFAULT).unwrap()).unwrap();
        }
        Outcome::Success
    });
    let texts =
        pair.asking.create_polled_subscription::<Text>("/robot/chatter", Qos::DEFAULT).unwrap();
    let say = |publisher: &LifecyclePublisher<Text>, text: &str| {
        publisher.publish(Text { data: text.into() }).unwrap();
    };
    pair.managed.change("configure").unwrap();
    let publisher = publishers.recv().unwrap();
    texts.wait_for_publishers(1, HANG).unwrap();
    publisher.unmanaged().wait_for_subscriptions(1, HANG).unwrap();
    say(&publisher, "inactive");
    pair.managed.change("activate").unwrap();
    say(&publisher, "active");
    pair.managed.change("deactivate").unwrap();
    say(&publisher, "inactive again");
    pair.managed.change("activate").unwrap();
    say(&publisher, "active again");
    pair.managed.change("shutdown").unwrap();
    say(&publisher, "over");
    assert_eq!((publisher.unsent(), publisher.is_active()), (3, false));
    publisher.unmanaged().publish(Text { data: "the last".into() }).unwrap();
    let heard: Vec<String> =
        (0..3).map(|_| next(pair.asking.context(), &texts).data.to_string()).collect();
    assert_eq!(heard, ["active", "active again", "the last"]);
}

/// Its services leave with the last of its clones, also where a callback was given one.
#[test]
fn management_ends_with_the_last_clone() {
    let pair = pair(|_, _| Outcome::Success);
    pair.managed.change("configure").unwrap();
    let Pair { managed, asking, events, client, folder, .. } = pair;
    let node = managed.node().clone();
    drop(managed);
    let gone = asking
        .context()
        .wait_for_graph(HANG, |graph| managed_nodes(graph).is_empty().then_some(()));
    assert!(gone.unwrap().is_some());
    drop((node, events, client, asking, folder));
}

/// One thread activates while another deactivates as soon as it can: what is told last is where the node stands.
#[test]
fn steps_of_two_threads_take_effect_and_are_told_in_their_order() {
    const ROUNDS: usize = 3000;
    let (hands_over, publishers) = mpsc::channel::<LifecyclePublisher<Text>>();
    let pair = pair(move |name, node| {
        if name == "configure" {
            hands_over.send(node.create_publisher("chatter", Qos::DEFAULT).unwrap()).unwrap();
        }
        Outcome::Success
    });
    pair.managed.change("configure").unwrap();
    let publisher = publishers.recv().unwrap();
    let mut before = pair.told(2)[1].2.clone();
    for _ in 0..ROUNDS {
        let deactivated = thread::scope(|scope| {
            let deactivates = scope.spawn(|| {
                // At once when it can be, which the other thread may not have told yet.
                while pair.managed.state() != State::Active {
                    std::hint::spin_loop();
                }
                pair.managed.change("deactivate").unwrap()
            });
            assert_eq!(pair.managed.change("activate").unwrap(), Outcome::Success);
            deactivates.join().unwrap()
        });
        assert_eq!(deactivated, Outcome::Success);
        assert_eq!((pair.managed.state(), publisher.is_active()), (State::Inactive, false));
        for (_, from, to) in pair.told(4) {
            assert_eq!(from, before);
            before = to;
        }
    }
}

#[test]
fn a_node_is_managed_once() {
    let pair = pair(|_, _| Outcome::Success);
    let again = |node: &Node| {
        let (called, _) = mpsc::channel();
        node.manage(Scripted { called, says: Box::new(|_, _| Outcome::Success) })
    };
    let node = pair.managed.node().clone();
    let error = again(&node).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(error.to_string(), "manage /robot/arm: it is managed already; allowed: once a node");
    // Another of its name is another, and when the first management has ended a new one may begin.
    let other = node.context().node_in("arm", "/robot").unwrap();
    drop(again(&other).unwrap());
    let Pair { managed, .. } = &pair;
    assert_eq!(managed.state(), State::Unconfigured);
    drop(again(&other).unwrap());
}

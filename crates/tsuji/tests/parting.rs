//! Processes that part while they live: what they hold stays theirs, and they meet again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use house::{
    Child, Folder, HANG, Watchdog, heard, keep_all, keep_last, take_until, tell, wait_until,
};
use tsuji::Qos;
use tsuji_interfaces::sensor_msgs::msg::Image;
use tsuji_interfaces::std_msgs::msg::UInt64;

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "be there" => be_there(),
        "be stuck" => be_stuck(),
        "have no descriptors left" => have_no_descriptors_left(),
        other => panic!("{other}"),
    }
}

fn be_there() {
    let context = house::context();
    let node = context.node("other").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
    tell("there");
    while heard() == "look" {
        let graph = context.graph();
        tell(&format!(
            "{} endpoints, {} publishers",
            graph.endpoints.len(),
            subscription.matched()
        ));
    }
}

fn be_stuck() {
    // Whoever runs the tests in the background has it ignored.
    // SAFETY: the default is no function.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    let context = house::context();
    context.shutdown_on_signals().unwrap();
    tell("waiting");
    wait_until("it is shut down", || !context.is_ok());
    tell("stuck");
    heard();
}

fn have_no_descriptors_left() {
    let context = house::context();
    let _node = context.node("other").unwrap();
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place for the answer.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }, 0);
    let low = libc::rlimit { rlim_cur: 3, ..limit };
    // SAFETY: valid limits; what is open stays open.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const low) }, 0);
    tell("none left");
    heard();
    // SAFETY: the limits there were.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    tell("some again");
    heard();
}

/// What was received stays as it is when the subscription's side has left and the publisher goes on.
#[test]
fn a_sample_outlives_its_context() {
    let _watchdog = Watchdog::start("a sample outlives its context");
    let folder = Folder::new();
    let (one, two) = (folder.process(), folder.process());
    let writer = one.node("writer").unwrap();
    let reader = two.node("reader").unwrap();
    let publisher = writer.create_publisher::<Image>("image", keep_last(2)).unwrap();
    let subscription = reader.create_polled_subscription::<Image>("image", Qos::DEFAULT).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let picture = |byte: u8| Image { data: vec![byte; 1 << 20], ..Image::default() };
    publisher.publish(picture(1)).unwrap();
    let mut held = None;
    take_until(&reader, &subscription, |received| held.replace(received).is_none());
    let held = held.unwrap();
    drop((subscription, reader, two));
    one.wait_for_graph(HANG, |graph| (graph.nodes.len() == 1).then_some(())).unwrap().unwrap();
    // Somebody else reads, so that what is published goes the same link.
    let three = folder.process();
    let other = three.node("other").unwrap();
    let subscription = other.create_polled_subscription::<Image>("image", keep_last(1)).unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    for byte in 2..100 {
        publisher.publish(picture(byte)).unwrap();
        while subscription.take().unwrap().is_some() {}
        assert!(held.view().data.iter().all(|it| *it == 1), "changed by picture {byte}");
    }
}

/// Whoever could not be met at first is met later, without anybody starting anew.
#[test]
fn a_link_that_could_not_be_made_is_made_later() {
    let _watchdog = Watchdog::start("a link made later");
    let folder = Folder::new();
    let mut child = Child::start(&folder, "have no descriptors left");
    child.expect("none left");
    let context = folder.process();
    let _node = context.node("newcomer").unwrap();
    // It tried to connect and was shut out; it goes on trying.
    assert_eq!(context.graph().nodes.len(), 1);
    child.say("take them back");
    child.expect("some again");
    context.wait_for_graph(HANG, |graph| (graph.nodes.len() == 2).then_some(())).unwrap().unwrap();
    assert_eq!(context.unreachable_peers(), []);
}

/// A stopped process is told what is there when it goes on, not all that came and went meanwhile,
/// and is never taken for dead.
#[test]
fn much_comes_and_goes_while_a_process_is_stopped() {
    let _watchdog = Watchdog::start("a stopped process");
    let folder = Folder::new();
    let context = folder.process();
    let node = context.node("survivor").unwrap();
    let publisher = node.create_publisher::<UInt64>("t", keep_all()).unwrap();
    let mut child = Child::start(&folder, "be there");
    child.expect("there");
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    child.stop();
    let mut kept = Vec::new();
    for number in 0..5000 {
        let other = node.create_publisher::<UInt64>("t", Qos::DEFAULT).unwrap();
        if number % 1000 == 0 {
            kept.push(other);
        }
    }
    assert_eq!(publisher.matched(), 1);
    child.go_on();
    wait_until("the child knows what is there", || {
        child.say("look");
        child.line() == "7 endpoints, 6 publishers"
    });
}

/// Peers that are killed leave sockets, which the survivor takes away.
#[test]
fn a_survivor_takes_the_sockets_of_the_dead_away() {
    let _watchdog = Watchdog::start("sockets of the dead");
    let folder = Folder::new();
    let context = folder.process();
    let child = Child::start(&folder, "be there");
    child.expect("there");
    context.wait_for_graph(HANG, |graph| (graph.nodes.len() == 1).then_some(())).unwrap().unwrap();
    child.kill();
    wait_until("its socket is taken away", || folder.sockets().len() == 1);
}

#[test]
fn a_second_signal_ends_a_process_that_is_stuck() {
    let _watchdog = Watchdog::start("a second signal");
    let folder = Folder::new();
    let child = Child::start(&folder, "be stuck");
    child.expect("waiting");
    child.interrupt();
    child.expect("stuck");
    child.interrupt();
    assert_eq!(child.ended_by(), Some(libc::SIGINT));
}

//! Processes that hold no socket for each other: they hear of each other all the same, and speak when there is something to say.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "children speak by it")]

mod house;

use std::any::Any;
use std::fs;
use std::path::Path;
use std::time::Duration;

use house::{Child, DOMAIN, Folder, HANG, heard, take_until, tell, wait_until};
use tsuji::{Durability, Graph, Qos};
use tsuji_interfaces::std_msgs::msg::UInt64;
use tsuji_platform::socket::Connection;

/// No channel stays open but those to the two adjacent processes.
const NONE_OPEN: [(&str, &str); 1] = [("TSUJI_CHANNELS_OPEN_MAX", "0")];
const MANY: usize = 8;
/// Of the control protocol.
const VERSION: u32 = 10;

/// The child plays this role.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    assert_eq!(house::role(), "a process of many");
    let context = house::context();
    let node = context.node(&format!("n{}", std::process::id())).unwrap();
    let latched = Qos { durability: Durability::TransientLocal, ..Qos::DEFAULT };
    let mut kept: Vec<Box<dyn Any>> = Vec::new();
    loop {
        let asked = heard();
        let (word, rest) = asked.split_once(' ').unwrap_or((&asked, ""));
        match word {
            "know" => {
                let count: usize = rest.parse().unwrap();
                let is_so = |graph: &Graph| (graph.nodes.len() == count).then_some(());
                let found = context.wait_for_graph(HANG, is_so).unwrap();
                found.unwrap_or_else(|| panic!("{count}: {:?}", context.graph()));
            }
            // Beside the one at which it listens.
            "hold" => {
                let most: usize = rest.parse().unwrap();
                wait_until("sockets are given back", || sockets() <= 1 + most);
            }
            "publish" => {
                let publisher = node.create_publisher(rest, latched).unwrap();
                publisher.publish(UInt64 { data: 7 }).unwrap();
                kept.push(Box::new(publisher));
            }
            "listen" => {
                let subscription =
                    node.create_polled_subscription::<UInt64>(rest, latched).unwrap();
                take_until(&node, &subscription, |received| received.view().data == 7);
                kept.push(Box::new(subscription));
            }
            _ => return,
        }
        tell(&asked);
    }
}

/// Sockets that this process has.
fn sockets() -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let links = links.filter_map(|it| fs::read_link(it.path()).ok());
    links.filter(|it| it.to_string_lossy().starts_with("socket:")).count()
}

struct Crowd {
    members: Vec<Child>,
    /// The last to be dropped: who finds the folder removed makes it again.
    folder: Folder,
}

impl Crowd {
    fn new(settings: &[(&str, &str)]) -> Self {
        let mut crowd = Self { members: Vec::new(), folder: Folder::new() };
        (0..MANY).for_each(|_| crowd.join(settings));
        crowd.all_know();
        crowd
    }

    fn join(&mut self, settings: &[(&str, &str)]) {
        self.members.push(Child::start_with(&self.folder, "a process of many", settings));
    }

    /// All do it, at once.
    fn all(&mut self, what: &str) {
        self.members.iter_mut().for_each(|it| it.say(what));
        for member in &self.members {
            member.expect(what);
        }
    }

    fn all_know(&mut self) {
        self.all(&format!("know {}", self.members.len()));
    }

    fn one(&mut self, at: usize, what: &str) {
        self.members[at].say(what);
        self.members[at].expect(what);
    }
}

#[test]
fn who_holds_no_socket_is_spoken_to() {
    let mut crowd = Crowd::new(&NONE_OPEN);
    crowd.all("hold 2");
    // Each to each: the one who connects is the lower of the two, and either has something to say first.
    for from in 0..MANY {
        crowd.one(from, &format!("publish from{from}"));
    }
    for from in 0..MANY {
        crowd.all(&format!("listen from{from}"));
    }
    crowd.all("hold 2");
    // Both at once.
    for round in 0..5 {
        crowd.all(&format!("publish all{round}"));
        crowd.all(&format!("listen all{round}"));
    }
    crowd.all("hold 2");
}

#[test]
fn as_many_are_open_as_may_be() {
    let mut crowd = Crowd::new(&[("TSUJI_CHANNELS_OPEN_MAX", "4")]);
    crowd.all("hold 4");
}

#[test]
fn a_death_is_known_to_all() {
    let mut crowd = Crowd::new(&NONE_OPEN);
    crowd.all("hold 2");
    crowd.members.swap_remove(0).kill();
    crowd.all_know();
    crowd.all("hold 2");
    // Adjacent ones too, at once.
    crowd.members.drain(..4).for_each(Child::kill);
    crowd.all_know();
    crowd.all("hold 2");
    let mut leaves = crowd.members.swap_remove(0);
    leaves.say("end");
    leaves.finish();
    crowd.all_know();
    crowd.join(&NONE_OPEN);
    crowd.all_know();
}

#[test]
fn one_that_is_killed_while_it_speaks_to_all_is_gone() {
    let mut crowd = Crowd::new(&NONE_OPEN);
    crowd.all("hold 2");
    // At whatever point of connecting to all, and of parking again.
    for pause_ms in [0, 1, 2, 5, 1000] {
        let mut killed = crowd.members.swap_remove(0);
        killed.say("publish last");
        std::thread::sleep(Duration::from_millis(pause_ms));
        killed.kill();
        crowd.all_know();
        crowd.join(&NONE_OPEN);
        crowd.all_know();
        crowd.all("hold 2");
    }
}

#[test]
fn one_that_says_something_and_leaves_is_gone() {
    let mut crowd = Crowd::new(&NONE_OPEN);
    for at in 0..MANY {
        crowd.one(at, &format!("publish of{at}"));
    }
    crowd.all("hold 2");
    // Its publisher goes, which it tells to all, and then at once itself.
    let stopped = crowd.members.pop().unwrap();
    stopped.stop();
    while 3 < crowd.members.len() {
        let mut leaves = crowd.members.swap_remove(0);
        leaves.say("end");
        leaves.finish();
        crowd.all(&format!("know {}", crowd.members.len() + 1));
    }
    stopped.go_on();
    crowd.members.push(stopped);
    crowd.all_know();
}

#[test]
fn whoever_says_hello_as_another_is_hung_up_on() {
    let mut crowd = Crowd::new(&NONE_OPEN);
    crowd.all("hold 2");
    let sockets = crowd.folder.sockets();
    let token_of = |path: &Path| {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let byte = |at: usize| u8::from_str_radix(&name[2 * at..2 * at + 2], 16).unwrap();
        std::array::from_fn::<u8, 16, _>(byte)
    };
    for of in &sockets {
        for to in sockets.iter().filter(|to| *to != of) {
            // A hello of one who has parked its channel, but of another process.
            let mut frame = [&b"tsji"[..], &VERSION.to_le_bytes(), &[0]].concat();
            frame.extend(token_of(of));
            // Its number, program and host, a sign of life, and no handshake.
            frame.extend([1, 1, b'x', 1, b'y', 1, 2, 3, 0]);
            let connection = Connection::connect(to).unwrap();
            connection.send(&frame, &[]).unwrap();
            let mut buffer = [0; 1 << 16];
            wait_until("it is hung up on", || matches!(connection.receive(&mut buffer), Ok(None)));
        }
    }
    crowd.all_know();
    crowd.one(0, "publish still");
    crowd.all("listen still");
}

#[test]
fn one_that_is_stopped_is_kept_and_told_when_it_goes_on() {
    let mut crowd = Crowd::new(&NONE_OPEN);
    crowd.all("hold 2");
    let mut stopped = crowd.members.swap_remove(0);
    stopped.stop();
    crowd.one(0, "publish late");
    crowd.all("listen late");
    crowd.all(&format!("know {MANY}"));
    stopped.go_on();
    stopped.say("listen late");
    stopped.expect("listen late");
    crowd.members.push(stopped);
    crowd.all("hold 2");
}

#[test]
fn a_socket_that_is_removed_is_made_again() {
    let mut crowd = Crowd::new(&NONE_OPEN);
    crowd.all("hold 2");
    let folder = crowd.folder.0.join(format!("domain-{DOMAIN}"));
    let removed = crowd.folder.0.join("removed");
    fs::rename(&folder, &removed).unwrap();
    fs::remove_dir_all(removed).unwrap();
    wait_until("all sockets are made again", || crowd.folder.sockets().len() == MANY);
    crowd.one(0, "publish again");
    crowd.all("listen again");
    crowd.join(&NONE_OPEN);
    crowd.all_know();
    crowd.all("hold 2");
    // One alone: whoever watches tells it, or those adjacent to it.
    let sockets = crowd.folder.sockets();
    fs::remove_file(&sockets[0]).unwrap();
    wait_until("it is made again", || crowd.folder.sockets().len() == MANY + 1);
    crowd.members.swap_remove(1).kill();
    crowd.all_know();
}

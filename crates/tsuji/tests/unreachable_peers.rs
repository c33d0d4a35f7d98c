//! Whatever an unreachable peer says at the door, or does not say: those who are there go on unharmed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "children speak by it")]

mod house;

use std::io::ErrorKind as IoKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use house::wait_until;
use house::{Child, Folder, HANG, Random, descriptors, heard, keep_all, take_until, tell};
use tsuji::{Context, Node, Publisher, Qos, Subscription};
use tsuji_interfaces::std_msgs::msg::UInt64;
use tsuji_platform::socket::Connection;

/// What the children do.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    match house::role().as_str() {
        "run out of descriptors" => run_out_of_descriptors(),
        other => panic!("{other}"),
    }
}

/// Two processes that exchange samples.
struct World {
    one: Context,
    two: Context,
    node: Node,
    publisher: Publisher<UInt64>,
    subscription: Subscription<UInt64>,
    sent: u64,
    /// The last to be dropped: who finds the folder removed makes it again.
    folder: Folder,
}

impl World {
    fn new() -> Self {
        let folder = Folder::new();
        let (one, two) = (folder.process(), folder.process());
        let publisher = one.node("writer").unwrap().create_publisher("t", keep_all()).unwrap();
        let node = two.node("reader").unwrap();
        let subscription = node.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
        publisher.wait_for_subscriptions(1, HANG).unwrap();
        subscription.wait_for_publishers(1, HANG).unwrap();
        Self { one, two, node, publisher, subscription, sent: 0, folder }
    }

    fn listening_socket(&self, of: &Context) -> PathBuf {
        let token = of.graph().nodes.iter().find_map(|node| {
            let is_own = node.name
                == if std::ptr::eq(of, &raw const self.one) { "writer" } else { "reader" };
            is_own.then(|| node.process.token.clone())
        });
        of.runtime_folder().join(format!("{}.sock", token.unwrap()))
    }

    fn connect_attempt(&self) -> Connection {
        Connection::connect(&self.listening_socket(&self.one)).unwrap()
    }

    /// Samples still flow, new processes are still met, and both sides agree on who is there.
    #[track_caller]
    fn check(&mut self) {
        self.sent += 1;
        self.publisher.publish(UInt64 { data: self.sent }).unwrap();
        let sent = self.sent;
        take_until(&self.node, &self.subscription, |received| {
            assert_eq!(received.view().data, sent);
            true
        });
        assert_eq!((self.publisher.matched(), self.subscription.matched()), (1, 1));
        let newcomer = self.folder.process();
        let node = newcomer.node("newcomer").unwrap();
        let late = node.create_polled_subscription::<UInt64>("t", Qos::DEFAULT).unwrap();
        late.wait_for_publishers(1, HANG).unwrap();
        assert_eq!(newcomer.settle(HANG).unwrap(), 2);
        drop((late, node, newcomer));
        for context in [&self.one, &self.two] {
            let is_alone = context
                .wait_for_graph(HANG, |graph| {
                    let names: Vec<_> = graph.nodes.iter().map(|node| &*node.name).collect();
                    (names == ["reader", "writer"] && graph.endpoints.len() == 2).then_some(())
                })
                .unwrap();
            is_alone.unwrap_or_else(|| panic!("{:?}", context.graph()));
            wait_until("unreachable_peers are parted", || context.settle(HANG).unwrap() == 1);
        }
        assert_eq!((self.publisher.matched(), self.subscription.matched()), (1, 1));
    }
}

/// Reads what the other end says until it hangs up, or says nothing more for now.
fn drain(connection: &Connection) -> bool {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match connection.receive(&mut buffer) {
            Ok(None) => return true,
            Ok(Some(_)) => (),
            Err(error) if error.kind() == IoKind::WouldBlock => return false,
            Err(error) => panic!("{error}"),
        }
    }
}

#[track_caller]
fn wait_for_hang_up(connection: &Connection) {
    wait_until("the other end hangs up", || drain(connection));
}

const VERSION: u32 = 14;

/// A frame with `body`, which begins with the number of what is said.
fn frame(version: u32, body: &[u8]) -> Vec<u8> {
    [&b"tsji"[..], &version.to_le_bytes(), body].concat()
}

/// What a process says, in the encoding of the control channel.
#[derive(Clone)]
struct Said(Vec<u8>);

impl Said {
    fn new(number: u8) -> Self {
        Self(vec![number])
    }

    fn token(mut self, token: [u8; 16]) -> Self {
        self.0.extend(token);
        self
    }

    fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }

    fn number(mut self, mut number: u64) -> Self {
        while 0x80 <= number {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    fn text(self, text: &str) -> Self {
        let mut it = self.number(text.len() as u64);
        it.0.extend(text.as_bytes());
        it
    }

    fn bytes(self, bytes: &[u8]) -> Self {
        let mut it = self.number(bytes.len() as u64);
        it.0.extend(bytes);
        it
    }

    fn frame(&self) -> Vec<u8> {
        frame(VERSION, &self.0)
    }
}

fn hello(token: [u8; 16], handshakes: &[(&str, &[u8], u64)]) -> Said {
    let mut it = Said::new(0).token(token).number(4711).text("unreachable_peer").text("here");
    // Of no robot, and with what such processes have in common.
    it = it.byte(0).text("shared -, exported -");
    // A sign of life in a file that is not there.
    it = it.number(1).number(2).number(3);
    it = it.number(handshakes.len() as u64);
    for (transport, bytes, fds) in handshakes {
        it = it.text(transport).bytes(bytes).number(*fds);
    }
    it
}

fn endpoint(gid: [u8; 16], is_publisher: bool, topic: &str) -> Said {
    let it = Said::new(5).token(gid).token([9; 16]).byte(is_publisher.into());
    // Of a topic, and nobody's partner.
    let it = it.byte(0).token([0; 16]).text(topic).text("std_msgs/msg/UInt64").text("");
    // Depth 10, reliable, volatile, no deadline, no lifespan, automatic, no lease.
    it.byte(1).number(10).byte(1).byte(0).byte(0).byte(0).byte(0).byte(0)
}

fn unreachable_peers(context: &Context) -> String {
    let unreachable_peers = context.unreachable_peers();
    unreachable_peers.iter().map(|it| format!("{}: {}\n", it.path, it.reason)).collect()
}

/// The number of the process that has this node.
fn token_of(world: &World, node: &str) -> [u8; 16] {
    let graph = world.one.graph();
    let process = &graph.nodes.iter().find(|it| it.name == node).unwrap().process;
    let byte = |at: usize| u8::from_str_radix(&process.token[2 * at..2 * at + 2], 16).unwrap();
    std::array::from_fn(byte)
}

#[test]
fn a_peer_of_another_version_is_shown_and_left_alone() {
    let mut world = World::new();
    // One that tries to connect.
    let later = world.connect_attempt();
    later.send(&frame(VERSION + 1, b"whatever is new in it"), &[]).unwrap();
    // It learns which version this is, and need not try again.
    let mut said = [0; 64];
    wait_until("it is answered", || later.receive(&mut said).is_ok_and(|it| it.is_some()));
    assert_eq!(said[..8], *frame(VERSION, &[]));
    wait_for_hang_up(&later);
    assert!(
        unreachable_peers(&world.one)
            .contains(&format!("version {} of the control protocol", VERSION + 1))
    );
    assert!(unreachable_peers(&world.one).contains("treated as a foreign peer"));
    // One that was there before: its socket is named.
    let path = world.one.runtime_folder().join(format!("{:032x}.sock", 77));
    let listener = tsuji_platform::socket::Listener::bind(&path, 0o700).unwrap();
    let third = world.folder.process();
    let mut accepted = None;
    wait_until("it tries to connect", || {
        accepted = accepted.take().or_else(|| listener.accept().unwrap());
        accepted.is_some()
    });
    let accepted = accepted.unwrap();
    accepted.send(&frame(VERSION + 7, &[]), &[]).unwrap();
    wait_until("it is shown", || !third.unreachable_peers().is_empty());
    let shown = unreachable_peers(&third);
    let version = format!("version {} of", VERSION + 7);
    assert!(shown.contains(path.to_str().unwrap()) && shown.contains(&version), "{shown}");
    drop(third);
    drop(listener);
    world.check();
}

#[test]
fn garbage_is_hung_up_on() {
    let mut world = World::new();
    let valid = hello([1; 16], &[]).frame();
    let mut random = Random(4);
    let noise = |len: usize, random: &mut Random| -> Vec<u8> {
        (0..len).map(|_| random.next() as u8).collect()
    };
    let mut frames = vec![b"x".to_vec(), b"tsji".to_vec(), valid[..8].to_vec()];
    frames.extend((1..valid.len()).map(|len| valid[..len].to_vec()));
    frames.extend((1..60).map(|len| noise(len * 7, &mut random)));
    frames.extend((1..60).map(|len| frame(VERSION, &noise(len * 7, &mut random))));
    // Anything but hello, a hello with too much behind it, one with absurd lengths, and huge ones.
    frames.push(Said::new(2).frame());
    frames.push(endpoint([3; 16], true, "/t").frame());
    frames.push(Said::new(0).token([1; 16]).number(1).number(u64::MAX).frame());
    frames.push(Said::new(0).token([1; 16]).number(u64::MAX).frame());
    frames.push(noise(65 * 1024, &mut random));
    frames.push(frame(VERSION, &noise(65 * 1024, &mut random)));
    frames.push(frame(VERSION, &vec![0; 150 * 1024]));
    let before = descriptors();
    for frame in &frames {
        let connection = world.connect_attempt();
        connection.send(frame, &[]).unwrap();
        // A hello may be valid by chance; then it is dropped here.
        if frame.starts_with(&valid[..9]) && frame.len() < 60_000 {
            wait_until("it is answered or hung up on", || drain(&connection) || frame.len() > 24);
        } else {
            wait_for_hang_up(&connection);
        }
    }
    wait_until("all are closed", || descriptors() <= before);
    world.check();
}

#[test]
fn one_that_says_nothing_is_not_waited_for() {
    let mut world = World::new();
    let silent: Vec<_> = (0..50).map(|_| world.connect_attempt()).collect();
    // Once those behind it in the queue are let in, it is too.
    let last = world.connect_attempt();
    last.send(b"garbage", &[]).unwrap();
    wait_for_hang_up(&last);
    world.check();
    drop(silent);
    world.check();
}

#[test]
fn one_that_says_hello_twice_or_as_somebody_else_is_hung_up_on() {
    let mut world = World::new();
    let twice = world.connect_attempt();
    twice.send(&hello([1; 16], &[]).frame(), &[]).unwrap();
    twice.send(&hello([1; 16], &[]).frame(), &[]).unwrap();
    wait_for_hang_up(&twice);
    assert!(unreachable_peers(&world.one).contains("hello"), "{}", unreachable_peers(&world.one));
    for of in ["reader", "writer"] {
        let false_name = world.connect_attempt();
        let said = hello(token_of(&world, of), &[]);
        false_name.send(&said.frame(), &[]).unwrap();
        wait_for_hang_up(&false_name);
    }
    world.check();
}

#[test]
fn lies_about_descriptors_are_refused() {
    let mut world = World::new();
    let null: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
    let short: OwnedFd = std::fs::File::open("/proc/self/cmdline").unwrap().into();
    let (pipe, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let pipe: OwnedFd = pipe.into();
    // Long enough for an arena, but without its first words.
    let zeros = world.folder.0.join("zeros");
    let file = std::fs::File::create_new(&zeros).unwrap();
    file.set_len(16 << 20).unwrap();
    let zeros: OwnedFd = file.into();
    let wrong: [&[&OwnedFd]; 9] = [
        &[],
        &[&null],
        &[&null, &null],
        &[&null, &null, &null],
        &[&short, &pipe],
        &[&zeros, &zeros],
        &[&zeros, &null],
        &[&zeros, &zeros, &zeros, &null],
        &[&null, &null, &null, &null, &null, &null, &null],
    ];
    let before = descriptors();
    let handshake: [u8; 8] = [1, 0, 0, 0, 0, 0, 0, 0];
    let mut token = [0; 16];
    for fds in wrong {
        for said in [0, 1, 2, 3, 8, u64::from(u32::MAX)] {
            for bytes in [&handshake[..], &[], &[0xff; 8], &[0; 100]] {
                token[0] += 1;
                token[1] += u8::from(token[0] == 0);
                let connection = world.connect_attempt();
                let handshakes = [("shm", bytes, said), ("nonsense", bytes, said)];
                let borrowed: Vec<BorrowedFd<'_>> = fds.iter().map(|it| it.as_fd()).collect();
                connection.send(&hello(token, &handshakes).frame(), &borrowed).unwrap();
                // It is answered, with the reason why the link does not reach.
                let mut buffer = vec![0; 1 << 16];
                let mut told = String::new();
                wait_until("it is answered", || match connection.receive(&mut buffer) {
                    Ok(Some(received)) => {
                        told.push_str(&String::from_utf8_lossy(&buffer[..received.bytes]));
                        told.contains("not in this build")
                    }
                    Ok(None) => panic!("hung up after {told:?}"),
                    Err(_) => false,
                });
                assert!(told.contains("meet: not supported"), "{told:?}");
            }
        }
        token = [token[0], token[1], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    }
    wait_until("all are closed", || descriptors() <= before);
    world.check();
}

#[test]
fn a_thousand_connections_leave_no_descriptor() {
    let mut world = World::new();
    let before = descriptors();
    for number in 0..1000u32 {
        let connection = world.connect_attempt();
        match number % 3 {
            0 => (),
            1 => connection.send(b"garbage", &[]).unwrap(),
            _ => {
                let mut token = [2; 16];
                token[..4].copy_from_slice(&number.to_le_bytes());
                connection.send(&hello(token, &[]).frame(), &[]).unwrap();
            }
        }
    }
    wait_until("all are closed", || descriptors() <= before);
    assert!(world.one.unreachable_peers().len() <= 100);
    world.check();
}

#[test]
fn bits_that_flip_after_a_good_hello_harm_nobody() {
    let mut world = World::new();
    let graph = world.one.graph();
    let gid_of = |at: usize| graph.endpoints[at].gid.0;
    let (publisher, subscription) = (gid_of(0), gid_of(1));
    let node = graph.nodes[0].gid.0;
    let flow = |it: Said, own: [u8; 16]| it.token(own).token(subscription);
    let own = [0xab; 16];
    let [one, two] = ["writer", "reader"].map(|name| token_of(&world, name));
    // Some speak of the unreachable peer's own endpoints, some of what is not its own.
    let said = [
        Said::new(1).number(1).text("shm").byte(0).bytes(&[1; 8]),
        Said::new(1).number(1).text("shm").byte(1).text("no"),
        Said::new(2),
        Said::new(3).token([9; 16]).text("node").text("/").text("/"),
        Said::new(3).token(node).text("false").text("/").text("/"),
        Said::new(4).token(node),
        endpoint(own, true, "/t"),
        endpoint([0xcd; 16], false, "/t"),
        endpoint(subscription, true, "/other"),
        Said::new(6).token(publisher),
        Said::new(6).token(subscription),
        Said::new(6).token(own),
        flow(Said::new(7), own).number(1).text("shm"),
        flow(Said::new(7), publisher).number(1).text("shm"),
        flow(Said::new(7), own).number(1).text("inproc"),
        flow(Said::new(8), publisher).number(1).byte(0).bytes(&[0xff; 16]),
        Said::new(8).token(publisher).token([0xcd; 16]).number(1).byte(0).bytes(&[0x40; 16]),
        flow(Said::new(9), publisher).number(1).number(u64::MAX),
        flow(Said::new(9), own).number(1).number(3),
        flow(Said::new(10), publisher).number(1),
        Said::new(11).token(publisher),
        Said::new(12).number(5),
        Said::new(13).number(1).byte(0),
        // Of parking: to be hung up, resumed, connected to, and that others or all of them are gone.
        Said::new(24).byte(0),
        Said::new(24).byte(1),
        Said::new(24).byte(2).token(one),
        Said::new(24).byte(3),
        Said::new(24).byte(4),
        Said::new(24).byte(5).token(two),
        Said::new(24).byte(6).token(one),
        Said::new(24).byte(6).token(two),
        Said::new(24).byte(6).token([0xee; 16]),
        Said::new(24).byte(7).token(one),
        hello([8; 16], &[]),
    ];
    let mut random = Random(5);
    let mut connections = 0;
    for round in 0..400u32 {
        let listening_socket = if round % 2 == 0 {
            world.listening_socket(&world.one)
        } else {
            world.listening_socket(&world.two)
        };
        let connection = Connection::connect(&listening_socket).unwrap();
        connections += 1;
        let mut token = [7; 16];
        token[..4].copy_from_slice(&round.to_le_bytes());
        let _ = connection.send(&hello(token, &[]).frame(), &[]);
        for _ in 0..20 {
            let mut frame = said[random.below(said.len() as u64 - 1) as usize].frame();
            for _ in 0..random.below(4) {
                let bit = random.below(8 * frame.len() as u64 - 64) as usize + 64;
                frame[bit / 8] ^= 1 << (bit % 8);
            }
            if connection.send(&frame, &[]).is_err() {
                break;
            }
            if drain(&connection) {
                break;
            }
        }
        if round % 40 == 39 {
            drop(connection);
            world.check();
        }
    }
    assert_eq!(connections, 400);
    world.check();
}

fn run_out_of_descriptors() {
    let limit = libc::rlimit { rlim_cur: 60, rlim_max: 60 };
    // SAFETY: a limit that is read only.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    let context = house::context();
    let node = context.node("poor").unwrap();
    let subscription = node.create_polled_subscription::<UInt64>("t", keep_all()).unwrap();
    tell(context.graph().nodes[0].process.token.as_str());
    take_until(&node, &subscription, |received| {
        tell(&received.view().data.to_string());
        received.view().data == 2
    });
    heard();
}

#[test]
fn a_process_without_descriptors_hangs_up_and_recovers() {
    let folder = Folder::new();
    let mut child = Child::start(&folder, "run out of descriptors");
    let token = child.line();
    let context = folder.process();
    let publisher = context.node("rich").unwrap().create_publisher::<UInt64>("t", Qos::DEFAULT);
    let publisher = publisher.unwrap();
    publisher.wait_for_subscriptions(1, HANG).unwrap();
    let listening_socket = context.runtime_folder().join(format!("{token}.sock"));
    let mut connecting: Vec<_> =
        (0..100).map(|_| Connection::connect(&listening_socket).unwrap()).collect();
    // Those for whom there is no descriptor are not left waiting.
    let last = connecting.pop().unwrap();
    wait_for_hang_up(&last);
    publisher.publish(UInt64 { data: 1 }).unwrap();
    child.expect("1");
    drop(connecting);
    // A newcomer is met again.
    wait_until("a newcomer is let in", || {
        let newcomer = folder.process();
        let node = newcomer.node("newcomer").unwrap();
        let publisher = node.create_publisher::<UInt64>("t", Qos::DEFAULT).unwrap();
        publisher.wait_for_subscriptions(1, std::time::Duration::from_secs(1)).is_ok()
    });
    publisher.publish(UInt64 { data: 2 }).unwrap();
    child.expect("2");
    child.say("end");
    child.finish();
}

#[test]
fn nodes_beyond_the_limit_are_left_out_and_it_is_told() {
    let mut world = World::new();
    let connection = world.connect_attempt();
    connection.send(&hello([1; 16], &[]).frame(), &[]).unwrap();
    for number in 0..50_001_u64 {
        let mut gid = [1; 16];
        gid[..8].copy_from_slice(&number.to_le_bytes());
        let node = Said::new(3).token(gid).text("n").text("/").text("/").frame();
        wait_until("there is room", || match connection.send(&node, &[]) {
            Err(error) if error.kind() == IoKind::WouldBlock => drain(&connection),
            sent => sent.is_ok(),
        });
    }
    wait_until("it is told", || {
        unreachable_peers(&world.one).contains("too many nodes; at most 50000")
    });
    drop(connection);
    world.check();
}

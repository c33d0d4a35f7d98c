//! How fast a bridge is: 100,000 texts of a client until the last has come to a subscriber in another process, by each
//! carrier, and as many to one client. The client's bytes are made beforehand; its own processor time is told apart.
//!
//!     cargo run --release -p tsuji-bridge --example bridge_speed
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that cannot go on has failed"
)]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tsuji::{Context, History, Qos};
use tsuji_bridge::{Bridge, Place, Settings};
use tsuji_interfaces::Shipped;
use tsuji_interfaces::std_msgs::msg::String as Text;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Data, OpCode};

const COUNT: usize = 100_000;
const KEEP_ALL: Qos = Qos { history: History::KeepAll, ..Qos::DEFAULT };

fn main() {
    let words: Vec<String> = env::args().collect();
    match *words.iter().map(String::as_str).collect::<Vec<_>>() {
        [_, "serve", folder] => serve(Path::new(folder)),
        [_, "listen", folder] => listen(Path::new(folder)),
        [_, "speak", folder] => speak(Path::new(folder)),
        _ => measure(),
    }
}

fn context(folder: &Path) -> Context {
    Context::builder().runtime_dir(folder).domain(0).isolated().build().unwrap()
}

/// Says a line and waits for one.
fn turn(line: &str) -> bool {
    println!("{line}");
    let mut answer = String::new();
    matches!(std::io::stdin().lock().read_line(&mut answer), Ok(1..))
}

fn serve(folder: &Path) {
    let node = context(folder).node("bridge").unwrap();
    let place = Some(Place { address: [127, 0, 0, 1].into(), port: 0 });
    let settings = Settings { websocket: place, tcp: place, udp: place, ..Settings::default() };
    let bridge = Bridge::start(&node, settings, Box::new(Shipped)).unwrap();
    let places: Vec<_> = bridge.bound().iter().map(|it| it.address.to_string()).collect();
    let mut line = places.join(" ");
    while turn(&line) {
        line = format!("{:?}", bridge.statistics());
    }
}

/// Tells when the last of so many has come.
fn listen(folder: &Path) {
    let node = context(folder).node("listener").unwrap();
    let heard = node.subscription::<Text>("/chatter").qos(KEEP_ALL).build().unwrap();
    let mut set = tsuji::WaitSet::new(node.context()).unwrap();
    set.add(&heard).unwrap();
    let (mut count, mut bytes) = (0, 0);
    while turn(&format!("{count} {bytes} {}", tsuji_platform::clock::monotonic_ns())) {
        count = 0;
        let mut last = Instant::now();
        while count < COUNT && last.elapsed() < Duration::from_secs(1) {
            set.wait(Duration::from_millis(100)).unwrap();
            while let Some(message) = heard.take().unwrap() {
                count += 1;
                bytes += message.view().data.len();
                last = Instant::now();
            }
        }
    }
}

/// Publishes as many as are taken.
fn speak(folder: &Path) {
    let node = context(folder).node("speaker").unwrap();
    let speaker = node.publisher::<Text>("/answers").qos(KEEP_ALL).build().unwrap();
    while turn("ready") {
        speaker.wait_for_subscriptions(1, Duration::from_secs(60)).unwrap();
        for at in 0..COUNT {
            speaker.publish(Text { data: format!("message number {at:>7}") }).unwrap();
        }
    }
}

/// A process of this program.
struct Part {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Part {
    fn start(role: &str, folder: &Path) -> (Self, String) {
        let mut child = Command::new(env::current_exe().unwrap())
            .args([role.as_ref(), folder.as_os_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut part = Self { child, answers };
        let first = part.answer();
        (part, first)
    }

    fn go(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Processor time of the whole process, in seconds.
    fn cpu_s(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat[stat.rfind(')').unwrap()..].split(' ').collect();
        (fields[12].parse::<f64>().unwrap() + fields[13].parse::<f64>().unwrap()) / 100.0
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn publish(at: usize) -> String {
    format!(
        "{{\"op\":\"publish\",\"topic\":\"/chatter\",\"msg\":{{\"data\":\"message number {at:>7}\"}}}}"
    )
}

/// A frame as a client sends it.
fn masked(text: &str, out: &mut Vec<u8>) {
    let mask = [1, 2, 3, 4];
    let opcode = OpCode::Data(Data::Text);
    let head = FrameHeader { opcode, mask: Some(mask), ..FrameHeader::default() };
    head.format(text.len() as u64, out).unwrap();
    out.extend(text.bytes().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
}

fn handshake(address: SocketAddr) -> TcpStream {
    let (socket, _) = tungstenite::connect(format!("ws://{address}/")).unwrap();
    match socket.into_inner() {
        tungstenite::stream::MaybeTlsStream::Plain(stream) => stream,
        _ => unreachable!(),
    }
}

fn measure() {
    let folder: PathBuf =
        env::temp_dir().join(format!("tsuji-bridge-speed-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let (mut server, places) = Part::start("serve", &folder);
    let places: Vec<SocketAddr> = places.split(' ').map(|it| it.parse().unwrap()).collect();
    let (mut listener, _) = Part::start("listen", &folder);
    let advertise = r#"{"op":"advertise","topic":"/chatter","type":"std_msgs/String"}"#;
    let texts: Vec<String> = (0..COUNT).map(publish).collect();
    let mut frames = Vec::new();
    texts.iter().for_each(|it| masked(it, &mut frames));
    let stream = texts.concat();
    for round in 0..3 {
        for carrier in ["websocket", "tcp"] {
            let (mut socket, bytes) = match carrier {
                "websocket" => {
                    let mut socket = handshake(places[0]);
                    let mut first = Vec::new();
                    masked(advertise, &mut first);
                    socket.write_all(&first).unwrap();
                    (socket, &frames[..])
                }
                _ => {
                    let mut socket = TcpStream::connect(places[1]).unwrap();
                    socket.write_all(advertise.as_bytes()).unwrap();
                    (socket, stream.as_bytes())
                }
            };
            std::thread::sleep(Duration::from_millis(300));
            let before = server.cpu_s();
            listener.go();
            let began = tsuji_platform::clock::monotonic_ns();
            socket.write_all(bytes).unwrap();
            let told = listener.answer();
            let told: Vec<u64> = told.split(' ').map(|it| it.parse().unwrap()).collect();
            let took = told[2].saturating_sub(began) as f64 / 1e9;
            let cpu = (server.cpu_s() - before) / COUNT as f64 * 1e6;
            println!(
                "{round} in by {carrier}: {} of {COUNT} in {took:.3} s, server CPU {cpu:.2} µs each",
                told[0]
            );
        }
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.connect(places[2]).unwrap();
        udp.send(advertise.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        listener.go();
        let began = tsuji_platform::clock::monotonic_ns();
        texts.iter().for_each(|it| drop(udp.send(it.as_bytes())));
        let told = listener.answer();
        let told: Vec<u64> = told.split(' ').map(|it| it.parse().unwrap()).collect();
        let took = told[2].saturating_sub(began) as f64 / 1e9;
        println!("{round} in by udp: {} of {COUNT} in {took:.3} s", told[0]);
    }
    let (mut speaker, _) = Part::start("speak", &folder);
    for round in 0..3 {
        let mut socket = handshake(places[0]);
        let subscribe = r#"{"op":"subscribe","topic":"/answers","type":"std_msgs/String","qos":{"history":"keep_all"}}"#;
        let mut first = Vec::new();
        masked(subscribe, &mut first);
        socket.write_all(&first).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let before = server.cpu_s();
        speaker.go();
        let began = Instant::now();
        let mut frame = Vec::new();
        let text = format!(
            "{{\"op\":\"publish\",\"topic\":\"/answers\",\"msg\":{{\"data\":\"message number {:>7}\"}}}}",
            0
        );
        FrameHeader { opcode: OpCode::Data(Data::Text), ..FrameHeader::default() }
            .format(text.len() as u64, &mut frame)
            .unwrap();
        let expected = (frame.len() + text.len()) * COUNT;
        let (mut read, mut buffer) = (0, vec![0; 1 << 20]);
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        while read < expected {
            match socket.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(count) => read += count,
            }
        }
        let took = began.elapsed().as_secs_f64();
        let cpu = (server.cpu_s() - before) / COUNT as f64 * 1e6;
        let came = read as f64 / expected as f64 * COUNT as f64;
        speaker.answer();
        println!(
            "{round} out by websocket: {came:.0} of {COUNT} in {took:.3} s, {:.0} a second, server CPU {cpu:.2} µs each",
            came / took
        );
    }
    server.go();
    println!("{}", server.answer());
    drop((server, listener, speaker));
    let _ = fs::remove_dir_all(&folder);
}

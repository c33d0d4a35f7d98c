//! A process with clients of a bridge, which knows nothing of ROS. What it uses is not of the bridge.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tsuji_bridge::Protocol;
use tsuji_platform::clock::monotonic_ns;
use tsuji_platform::poll::Poll;
use tungstenite::{Message, WebSocket};

use super::wire::{self, Account, Frames, PICTURE_TYPE, TEXT_TYPE};
use crate::child::{answer, obey_each, parsed};

/// Plays the clients that `value` describes.
pub(super) fn run(value: &Value) -> Result<(), String> {
    let word = |field: &str| value[field].as_str().unwrap_or_default();
    let protocol = protocol_of(word("protocol"))?;
    let address = word("address");
    let address = address.parse().map_err(|error| format!("`{address}`: {error}"))?;
    let at = At { protocol, address, topic: word("topic").to_owned() };
    match word("does") {
        "publish" => Publishing::open(at, value["is_fast"] == true)?.run(),
        "hear" => Hearing::open(&at, value["count"].as_u64().unwrap_or_default())?.run(),
        "watch" => Watching::open(&at, value)?.run(),
        "trips" => Trips::open(at)?.run(),
        "connect" => Connecting { at, held: Vec::new() }.run(),
        other => Err(format!("no client does `{other}`")),
    }
}

/// The protocol of that name.
pub(super) fn protocol_of(word: &str) -> Result<Protocol, String> {
    let all = [Protocol::WebSocket, Protocol::Tcp, Protocol::Udp];
    all.into_iter().find(|it| it.word() == word).ok_or_else(|| format!("no protocol {word}"))
}

/// Where a bridge is, and what it is asked for there.
struct At {
    protocol: Protocol,
    address: SocketAddr,
    topic: String,
}

impl At {
    /// What went wrong there.
    fn trouble(&self, error: &io::Error) -> String {
        format!("{} at {}: {error}", self.protocol.word(), self.address)
    }

    /// A WebSocket.
    fn websocket(&self) -> Result<WebSocket<TcpStream>, String> {
        let stream = TcpStream::connect(self.address).map_err(|error| self.trouble(&error))?;
        self.upgrade(stream)
    }

    fn upgrade(&self, stream: TcpStream) -> Result<WebSocket<TcpStream>, String> {
        // As libraries for WebSocket do.
        let prepared = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(WATCHDOG));
        prepared.map_err(|error| self.trouble(&error))?;
        let opened = tungstenite::client(format!("ws://{}/", self.address), stream);
        opened.map(|(socket, _)| socket).map_err(|error| format!("{}: {error}", self.address))
    }

    fn line(&self) -> Result<Line, String> {
        match self.protocol {
            Protocol::WebSocket => Ok(Line::WebSocket(self.websocket()?.into_inner())),
            Protocol::Tcp => TcpStream::connect(self.address)
                .map(Line::Tcp)
                .map_err(|error| self.trouble(&error)),
            Protocol::Udp => {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
                let socket = socket.and_then(|it| it.connect(self.address).map(|()| it));
                socket.map(Line::Udp).map_err(|error| self.trouble(&error))
            }
        }
    }
}

/// Nothing that is waited for takes any part of it.
const WATCHDOG: Option<Duration> = Some(Duration::from_secs(60));

/// A connection.
#[derive(Debug)]
enum Line {
    WebSocket(TcpStream),
    Tcp(TcpStream),
    Udp(UdpSocket),
}

impl Line {
    /// Says a message by one write. What the system does not take of datagrams is lost.
    fn say(&mut self, text: &str) -> Result<(), String> {
        let written = match self {
            Self::WebSocket(stream) => {
                let mut frame = Vec::with_capacity(text.len() + 14);
                wire::frame(text, &mut frame);
                stream.write_all(&frame)
            }
            Self::Tcp(stream) => stream.write_all(text.as_bytes()),
            Self::Udp(socket) => sent(socket, text.as_bytes()),
        };
        written.map_err(|error| error.to_string())
    }
}

fn sent(socket: &UdpSocket, datagram: &[u8]) -> io::Result<()> {
    match socket.send(datagram) {
        // Nobody is there.
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Err(error),
        _ => Ok(()),
    }
}

/// Sends all that end in `ends`, one by one.
fn all_sent(socket: &UdpSocket, bytes: &[u8], ends: &[usize]) -> io::Result<()> {
    let mut begin = 0;
    for end in ends {
        sent(socket, &bytes[begin..*end])?;
        begin = *end;
    }
    Ok(())
}

/// How long it takes to send them to a socket where they are dropped once it is full.
fn said_to_nobody(bytes: &[u8], ends: &[usize]) -> io::Result<u64> {
    let nobody = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(nobody.local_addr()?)?;
    let began = monotonic_ns();
    all_sent(&socket, bytes, ends)?;
    Ok(monotonic_ns() - began)
}

/// A client that publishes texts: as the article's program for its protocol does, or as fast as they are taken.
struct Publishing {
    at: At,
    is_fast: bool,
    line: Option<Line>,
    /// Messages that were made beforehand, and where each ends.
    made: (Vec<u8>, Vec<usize>),
}

/// What the article's programs wait for after they have advertised.
const ARTICLES_WAIT: Duration = Duration::from_millis(500);

impl Publishing {
    fn open(at: At, is_fast: bool) -> Result<Self, String> {
        let mut line = at.line()?;
        line.say(&wire::advertise(&at.topic, TEXT_TYPE))?;
        if !is_fast {
            thread::sleep(ARTICLES_WAIT);
        }
        Ok(Self { at, is_fast, line: Some(line), made: Default::default() })
    }

    fn run(mut self) -> Result<(), String> {
        answer(&json!({ "open": true }));
        obey_each(|line| match *line.split_whitespace().collect::<Vec<_>>() {
            ["make", count] => self.make(parsed(count)?),
            ["publish", count] => self.publish(parsed(count)?),
            _ => Err(format!("`{line}` is not understood")),
        })
    }

    fn message(&self, number: u64) -> String {
        wire::publish(&self.at.topic, &wire::text(self.at.protocol, number))
    }

    /// Makes its messages. Answers what saying datagrams takes by itself, to a socket that nobody reads.
    fn make(&mut self, count: u64) -> Result<Value, String> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        if self.is_fast {
            for number in 0..count {
                let text = self.message(number);
                match self.at.protocol {
                    Protocol::WebSocket => wire::frame(&text, &mut bytes),
                    Protocol::Tcp | Protocol::Udp => bytes.extend_from_slice(text.as_bytes()),
                }
                ends.push(bytes.len());
            }
        }
        let alone_ns = match self.at.protocol {
            Protocol::Udp => {
                said_to_nobody(&bytes, &ends).map_err(|error| self.at.trouble(&error))?
            }
            Protocol::WebSocket | Protocol::Tcp => 0,
        };
        self.made = (bytes, ends);
        Ok(json!({ "alone_ns": alone_ns }))
    }

    fn publish(&mut self, count: u64) -> Result<Value, String> {
        let began = monotonic_ns();
        if self.is_fast {
            self.publish_made().map_err(|error| self.at.trouble(&error))?;
        } else {
            self.publish_as_the_article(count)?;
        }
        Ok(json!({ "began": began, "sent": monotonic_ns() }))
    }

    fn publish_made(&mut self) -> io::Result<()> {
        let (bytes, ends) = &self.made;
        match &mut self.line {
            Some(Line::WebSocket(stream) | Line::Tcp(stream)) => stream.write_all(bytes),
            Some(Line::Udp(socket)) => all_sent(socket, bytes, ends),
            None => Err(ErrorKind::NotConnected.into()),
        }
    }

    /// One message after the other, each made when it is its turn and sent by a write of its own, and then shown.
    fn publish_as_the_article(&mut self, count: u64) -> Result<(), String> {
        let mut screen = File::options().write(true).open("/dev/null");
        // The loop of asyncio looks for news of its sockets before each turn.
        let turns = Poll::new().map_err(|error| error.to_string())?;
        let mut news = Vec::new();
        for number in 0..count {
            let text = wire::text(self.at.protocol, number);
            let line = self.line.as_mut().ok_or("it has closed")?;
            let said = line.say(&wire::publish(&self.at.topic, &text));
            said.map_err(|error| format!("message {number}: {error}"))?;
            if let Ok(screen) = &mut screen {
                let _ = writeln!(screen, "{text}");
            }
            if self.at.protocol == Protocol::WebSocket {
                let _ = turns.wait(Some(Duration::ZERO), &mut news);
            }
        }
        if self.at.protocol == Protocol::Tcp {
            // It ends there.
            self.line = None;
        }
        Ok(())
    }
}

/// A client that gets texts.
struct Hearing {
    stream: TcpStream,
}

impl Hearing {
    /// Wants as many kept as there will be.
    fn open(at: &At, count: u64) -> Result<Self, String> {
        let stream = at.websocket()?.into_inner();
        let wanted = wire::subscribe_to_all(&at.topic, count);
        let mut line = Line::WebSocket(stream.try_clone().map_err(|error| at.trouble(&error))?);
        line.say(&wanted)?;
        Ok(Self { stream })
    }

    fn run(mut self) -> Result<(), String> {
        answer(&json!({ "open": true }));
        obey_each(|line| match *line.split_whitespace().collect::<Vec<_>>() {
            ["hear", count] => self.hear(parsed(count)?),
            _ => Err(format!("`{line}` is not understood")),
        })
    }

    fn hear(&mut self, count: u64) -> Result<Value, String> {
        let _ = self.stream.set_read_timeout(Some(SILENT));
        let (mut frames, mut heard) = (Frames::default(), Vec::<Vec<u8>>::new());
        let (mut buffer, mut last_ns) = (vec![0; READ_BYTES], 0);
        while (heard.len() as u64) < count {
            match read(&mut self.stream, &mut buffer)? {
                None => break,
                Some(read) => {
                    frames.read(&buffer[..read], |start, _| heard.push(start.to_vec()))?
                }
            }
            last_ns = monotonic_ns();
        }
        let texts: Vec<String> = heard.iter().map(|it| text_of(it)).collect();
        // What a speaker says is as by WebSocket.
        let account = Account::of(texts.iter().map(String::as_str), Protocol::WebSocket, count);
        Ok(account.to_json(last_ns))
    }
}

/// What a message that was published says; nothing of any other.
fn text_of(message: &[u8]) -> String {
    let value: Value = serde_json::from_slice(message).unwrap_or_default();
    value["msg"]["data"].as_str().unwrap_or_default().to_owned()
}

/// How much has come; nothing where nothing came in time. An error where nothing will.
fn read(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<Option<usize>, String> {
    loop {
        return match stream.read(buffer) {
            Ok(0) => Err("the bridge has closed the connection".to_owned()),
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(None)
            }
            Err(error) => Err(error.to_string()),
        };
    }
}

/// Where nothing comes for so long, nothing will.
const SILENT: Duration = Duration::from_secs(5);

const READ_BYTES: usize = 256 << 10;

/// Clients that watch pictures, on one thread, and one that never reads.
struct Watching {
    watchers: Vec<Watcher>,
    poll: Poll,
    /// Its connection stays open.
    _stalled: Option<TcpStream>,
}

struct Watcher {
    stream: TcpStream,
    frames: Frames,
    /// The number of each picture, and when it was whole.
    seen: Vec<(u64, u64)>,
}

impl Watching {
    fn open(at: &At, value: &Value) -> Result<Self, String> {
        let number = |field: &str| value[field].as_u64().unwrap_or_default();
        let compression = value["compression"].as_str().unwrap_or("none");
        let wanted = wire::subscribe(&at.topic, PICTURE_TYPE, compression, number("queue"));
        let poll = Poll::new().map_err(|error| at.trouble(&error))?;
        let connect = || -> Result<TcpStream, String> {
            let stream = at.websocket()?.into_inner();
            let mut frame = Vec::new();
            wire::frame(&wanted, &mut frame);
            (&stream).write_all(&frame).map_err(|error| at.trouble(&error))?;
            Ok(stream)
        };
        let mut watchers = Vec::new();
        for key in 0..number("watchers") {
            let stream = connect()?;
            let watched = stream.set_nonblocking(true).and_then(|()| poll.add(&stream, key));
            watched.map_err(|error| at.trouble(&error))?;
            watchers.push(Watcher { stream, frames: Frames::default(), seen: Vec::new() });
        }
        let stalled = (value["has_stalled"] == true).then(connect).transpose()?;
        Ok(Self { watchers, poll, _stalled: stalled })
    }

    fn run(mut self) -> Result<(), String> {
        answer(&json!({ "open": true }));
        obey_each(|line| match *line.split_whitespace().collect::<Vec<_>>() {
            ["watch", last] => self.watch(parsed(last)?),
            _ => Err(format!("`{line}` is not understood")),
        })
    }

    /// Reads until all have the picture `last`, or nothing comes any more.
    fn watch(&mut self, last: u64) -> Result<Value, String> {
        let (mut ready, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
        let mut since = Instant::now();
        let has_last = |it: &Watcher| it.seen.last().is_some_and(|it| last <= it.0);
        while !self.watchers.iter().all(has_last) && since.elapsed() < SILENT {
            let waited = self.poll.wait(Some(LOOK), &mut ready);
            waited.map_err(|error| error.to_string())?;
            for it in &ready {
                let Some(watcher) = self.watchers.get_mut(it.key as usize) else { continue };
                since = Instant::now();
                watcher.take(&mut buffer)?;
            }
        }
        let seen: Vec<_> =
            self.watchers.iter_mut().map(|it| std::mem::take(&mut it.seen)).collect();
        Ok(json!({ "seen": seen }))
    }
}

const LOOK: Duration = Duration::from_millis(50);

impl Watcher {
    fn take(&mut self, buffer: &mut [u8]) -> Result<(), String> {
        let Some(count) = read(&mut self.stream, buffer)? else { return Ok(()) };
        let seen = &mut self.seen;
        let mut wrong = None;
        self.frames.read(&buffer[..count], |start, len| match wire::picture_number(start) {
            Some(number) if PICTURE_BYTES <= len => seen.push((number, monotonic_ns())),
            _ => wrong = Some(String::from_utf8_lossy(&start[..start.len().min(200)]).into_owned()),
        })?;
        wrong.map_or(Ok(()), |it| Err(format!("this is no whole picture: {it}")))
    }
}

/// A message with a picture is no shorter, however it is encoded.
const PICTURE_BYTES: u64 = super::PICTURE_BYTES as u64;

/// A client that hears what it says, so many messages at a time.
struct Trips {
    at: At,
    line: Line,
    stream: TcpStream,
    frames: Frames,
    /// When each was sent, by its number.
    sent: Vec<u64>,
}

/// So many letters has each message.
const TRIP_LETTERS: usize = 64;

impl Trips {
    fn open(at: At) -> Result<Self, String> {
        let stream = at.websocket()?.into_inner();
        let line = Line::WebSocket(stream.try_clone().map_err(|error| at.trouble(&error))?);
        let mut trips = Self { at, line, stream, frames: Frames::default(), sent: Vec::new() };
        let topic = trips.at.topic.clone();
        trips.line.say(&wire::advertise(&topic, TEXT_TYPE))?;
        trips.line.say(&wire::subscribe(&topic, TEXT_TYPE, "none", 1000))?;
        // The first comes back once all that belongs to it is there.
        trips.exchange(1, 1)?;
        Ok(trips)
    }

    fn run(mut self) -> Result<(), String> {
        answer(&json!({ "open": true }));
        obey_each(|line| match *line.split_whitespace().collect::<Vec<_>>() {
            ["trips", count, in_flight] => self.exchange(parsed(count)?, parsed(in_flight)?),
            _ => Err(format!("`{line}` is not understood")),
        })
    }

    fn send(&mut self) -> Result<(), String> {
        let number = self.sent.len();
        let text = wire::publish(&self.at.topic, &format!("{number:0TRIP_LETTERS$}"));
        self.sent.push(monotonic_ns());
        self.line.say(&text)
    }

    /// Each that comes back lets the next go, by a write of its own.
    fn exchange(&mut self, count: u64, in_flight: u64) -> Result<Value, String> {
        let began = monotonic_ns();
        self.sent.clear();
        for _ in 0..in_flight.min(count) {
            self.send()?;
        }
        let mut took = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
        let mut buffer = vec![0; READ_BYTES];
        let mut wrong = 0_u64;
        while (took.len() as u64) < count {
            let Some(read) = read(&mut self.stream, &mut buffer)? else {
                return Err(format!("message {} does not come back", took.len()));
            };
            let now = monotonic_ns();
            let (mut came, sent) = (0, &self.sent);
            self.frames.read(&buffer[..read], |message, _| {
                let at = trip_number(message).and_then(|it| sent.get(it));
                took.extend(at.map(|it| now.saturating_sub(*it)));
                wrong += u64::from(at.is_none());
                came += 1;
            })?;
            if 0 < wrong {
                return Err("what came back is not what was said".to_owned());
            }
            for _ in 0..came {
                if (self.sent.len() as u64) < count {
                    self.send()?;
                }
            }
        }
        Ok(json!({ "began": began, "ended": monotonic_ns(), "took": took }))
    }
}

/// The number of a message that came back.
fn trip_number(message: &[u8]) -> Option<usize> {
    let is_letters = |it: &&[u8]| it.len() == TRIP_LETTERS && it.iter().all(u8::is_ascii_digit);
    let letters = message.split(|it| *it == b'"').find(is_letters)?;
    std::str::from_utf8(letters).ok()?.parse().ok()
}

/// Clients that come and go.
struct Connecting {
    at: At,
    held: Vec<WebSocket<TcpStream>>,
}

impl Connecting {
    fn run(mut self) -> Result<(), String> {
        answer(&json!({ "open": true }));
        obey_each(|line| match *line.split_whitespace().collect::<Vec<_>>() {
            ["cycle", count] => self.cycle(parsed(count)?),
            ["hold", count] => self.hold(parsed(count)?),
            _ => Err(format!("`{line}` is not understood")),
        })
    }

    /// Clients one after the other, each of which subscribes, is answered and leaves in good order.
    fn cycle(&mut self, count: u64) -> Result<Value, String> {
        for number in 0..count {
            let mut socket = self.connect()?;
            let trouble = |error: tungstenite::Error| format!("client {number}: {error}");
            socket.close(None).map_err(trouble)?;
            loop {
                match socket.read() {
                    Ok(_) => {}
                    Err(tungstenite::Error::ConnectionClosed) => break,
                    Err(error) => return Err(trouble(error)),
                }
            }
        }
        Ok(json!({ "cycled": count }))
    }

    /// So many that stay.
    fn hold(&mut self, count: u64) -> Result<Value, String> {
        for _ in 0..count {
            let socket = self.connect()?;
            self.held.push(socket);
        }
        Ok(json!({ "held": self.held.len() }))
    }

    fn connect(&self) -> Result<WebSocket<TcpStream>, String> {
        let mut socket = self.at.upgrade(self.stream()?)?;
        let subscribe = wire::subscribe(&self.at.topic, TEXT_TYPE, "none", 0);
        for text in [subscribe, wire::question()] {
            socket.send(Message::text(text)).map_err(|error| error.to_string())?;
        }
        loop {
            let message = socket.read().map_err(|error| error.to_string())?;
            if message.to_text().is_ok_and(|it| it.contains("service_response")) {
                return Ok(socket);
            }
        }
    }

    /// The system keeps the port of a connection that is over for a while: where all are kept, one is waited for.
    fn stream(&self) -> Result<TcpStream, String> {
        let begin = Instant::now();
        loop {
            match TcpStream::connect(self.at.address) {
                Err(error) if error.kind() == ErrorKind::AddrNotAvailable => {
                    if PORTS_PATIENCE < begin.elapsed() {
                        return Err(self.at.trouble(&error));
                    }
                    thread::sleep(LOOK);
                }
                connected => return connected.map_err(|error| self.at.trouble(&error)),
            }
        }
    }
}

/// A port is kept for a minute.
const PORTS_PATIENCE: Duration = Duration::from_secs(70);

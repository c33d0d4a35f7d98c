//! A bridge with a node beside it, and clients that speak to it as others do.
#![allow(dead_code, reason = "each program of tests uses what it needs")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use tsuji::Interop;
use tsuji::parameter::Parameters;
use tsuji::{Context, Node};
use tsuji_bridge::{Bridge, Place, Protocol, Settings, TlsFiles};
use tsuji_interfaces::Shipped;
use tungstenite::protocol::frame::CloseFrame;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

/// Cuts a hang. Nothing is expected to take any part of it.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(60);

/// A bridge on free ports, and a node in another context that does not know of it but by topics.
pub(crate) struct World {
    pub(crate) bridge: Bridge,
    pub(crate) node: Node,
    context: Context,
    spinning: Mutex<Option<JoinHandle<()>>>,
    folder: Folder,
}

/// What spins has to end before the folder goes.
impl Drop for World {
    fn drop(&mut self) {
        self.node.context().shutdown();
        if let Some(spinning) = self.spinning.lock().unwrap().take() {
            let _ = spinning.join();
        }
    }
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    /// As `settings` says, but on free ports of loopback, by every protocol.
    pub(crate) fn with(settings: Settings) -> Self {
        let folder = Folder(tsuji_platform::process::temporary_path("tsuji-bridge-test"));
        fs::create_dir(&folder.0).unwrap();
        // By the network the worlds of other tests would be met.
        let context = || {
            let builder = Context::builder().runtime_dir(&folder.0).domain(0);
            builder.interop(Interop::NONE).isolated().build().unwrap()
        };
        let (serving, beside) = (context(), context());
        let place = Some(Place { address: [127, 0, 0, 1].into(), port: 0 });
        let settings = Settings { websocket: place, tcp: place, udp: place, ..settings };
        let node = serving.node("bridge").unwrap();
        let bridge = Bridge::start(&node, settings, Box::new(Shipped)).unwrap();
        let node = beside.node("beside").unwrap();
        Self { bridge, node, context: serving, spinning: Mutex::default(), folder }
    }

    /// Lets what the node beside serves be served, until the world ends.
    pub(crate) fn spin(&self) {
        let node = self.node.clone();
        let spinning = std::thread::spawn(move || {
            let _ = tsuji::spin(&node);
        });
        *self.spinning.lock().unwrap() = Some(spinning);
    }

    /// Parameters of the node beside, which it serves.
    pub(crate) fn serve_parameters(&mut self) -> Parameters {
        let node = Node::builder("beside").allow_undeclared_parameters();
        self.node = node.build(self.node.context()).unwrap();
        let parameters = self.node.parameters().unwrap();
        parameters.declare("gain", 0.5).unwrap();
        parameters.declare("name", "left".to_owned()).unwrap();
        self.spin();
        parameters
    }

    pub(crate) fn address(&self, protocol: Protocol) -> std::net::SocketAddr {
        self.bridge.bound().iter().find(|it| it.protocol == protocol).unwrap().address
    }

    /// Ends the context of the bridge, as nobody should.
    pub(crate) fn shut_down(&self) {
        self.context.shutdown();
    }

    /// Goes with the world.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder.0
    }

    pub(crate) fn client(&self) -> Client {
        let address = self.address(Protocol::WebSocket);
        let (socket, _) = tungstenite::connect(format!("ws://{address}/")).unwrap();
        let MaybeTlsStream::Plain(stream) = socket.get_ref() else { unreachable!() };
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        Client { socket }
    }

    /// One more bridge on the same node, by TLS, and a connection to it that trusts its certificate.
    pub(crate) fn by_tls(&self) -> (Bridge, StreamOwned<ClientConnection, TcpStream>) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|it| self.folder().join(it));
        fs::write(&certificate, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let place = Place { address: [127, 0, 0, 1].into(), port: 0 };
        let tls = Some(TlsFiles { certificate, key });
        let settings = Settings { websocket: Some(place), tls, ..Settings::default() };
        let bridge = Bridge::start(&self.node, settings, Box::new(Shipped)).unwrap();

        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connection =
            ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
        let socket = TcpStream::connect(bridge.bound()[0].address).unwrap();
        socket.set_read_timeout(Some(WATCHDOG)).unwrap();
        (bridge, StreamOwned::new(connection, socket))
    }

    pub(crate) fn tcp(&self) -> Tcp {
        let stream = TcpStream::connect(self.address(Protocol::Tcp)).unwrap();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        Tcp { stream, read: Vec::new() }
    }

    pub(crate) fn udp(&self) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(self.address(Protocol::Udp)).unwrap();
        socket.set_read_timeout(Some(WATCHDOG)).unwrap();
        socket
    }
}

/// A client by WebSocket.
pub(crate) struct Client {
    pub(crate) socket: WebSocket<MaybeTlsStream<TcpStream>>,
}

impl Client {
    pub(crate) fn say(&mut self, value: &Value) {
        self.say_text(&value.to_string());
    }

    pub(crate) fn say_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).unwrap();
    }

    /// Bytes as they are, which may be no frame.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let MaybeTlsStream::Plain(stream) = self.socket.get_mut() else { unreachable!() };
        stream.write_all(bytes).unwrap();
    }

    /// The next message that is no ping.
    pub(crate) fn hear(&mut self) -> Message {
        loop {
            match self.socket.read().unwrap() {
                Message::Ping(_) | Message::Pong(_) => {}
                message => return message,
            }
        }
    }

    /// The next message, which is text.
    pub(crate) fn hear_json(&mut self) -> Value {
        match self.hear() {
            Message::Text(text) => serde_json::from_str(&text).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// The next that is of `operation`; what comes before it is passed over.
    pub(crate) fn hear_of(&mut self, operation: &str) -> Value {
        loop {
            let value = self.hear_json();
            if value["op"] == operation {
                return value;
            }
        }
    }

    /// How the server closes.
    pub(crate) fn hear_close(&mut self) -> Option<CloseFrame> {
        loop {
            if let Message::Close(frame) = self.hear() {
                return frame;
            }
        }
    }

    /// Calls a service, and waits for what comes of it.
    pub(crate) fn call(&mut self, service: &str, args: Value) -> Value {
        self.say(&json!({ "op": "call_service", "id": "c", "service": service, "args": args }));
        self.hear_of("service_response")
    }

    /// Returns when the server has done all that was said before.
    pub(crate) fn settle(&mut self) {
        self.call("/rosapi/get_time", json!({}));
    }
}

/// A client by TCP.
pub(crate) struct Tcp {
    pub(crate) stream: TcpStream,
    read: Vec<u8>,
}

impl Tcp {
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next object.
    pub(crate) fn hear(&mut self) -> Value {
        let mut buffer = [0; 4096];
        loop {
            let mut values = serde_json::Deserializer::from_slice(&self.read).into_iter::<Value>();
            if let Some(Ok(value)) = values.next() {
                let end = values.byte_offset();
                self.read.drain(..end);
                return value;
            }
            let count = self.stream.read(&mut buffer).unwrap();
            assert_ne!(count, 0, "the server has closed");
            self.read.extend_from_slice(&buffer[..count]);
        }
    }
}

/// Waits until `found` finds something.
pub(crate) fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(it) = found() {
            return it;
        }
        assert!(began.elapsed() < WATCHDOG, "{what}: not within {WATCHDOG:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

//! What a bridge is told.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tsuji_rosbridge::access::Access;
use tsuji_rosbridge::{Encoding, Limits};

use crate::jpeg::Jpeg;
use crate::playback::Playback;

/// By which way a client comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// A WebSocket, with or without TLS.
    WebSocket,
    /// JSON objects one after the other on a TCP connection.
    Tcp,
    /// A JSON object a datagram.
    Udp,
}

impl Protocol {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::WebSocket => "websocket",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// Where a protocol listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The address of an interface; `0.0.0.0` or `::` for all.
    pub address: IpAddr,
    /// 0 for any that is free.
    pub port: u16,
}

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate with those that lead to its root.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// What a bridge is told. The defaults are those of rosbridge_server, but that it listens on loopback alone.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where WebSockets are, and the page; none if nothing.
    pub websocket: Option<Place>,
    /// Where TCP is; none if nothing.
    pub tcp: Option<Place>,
    /// Where UDP is; none if nothing.
    pub udp: Option<Place>,
    /// The path of WebSockets.
    pub url_path: String,
    /// With TLS, WebSockets are `wss` and the page is `https`.
    pub tls: Option<TlsFiles>,
    /// Whether WebSockets may agree on `permessage-deflate`.
    pub compression: bool,
    /// Whether the page is served, a dashboard for browsers. It speaks JSON, so there is none with `bson_only`.
    pub page: bool,
    /// Whether `/metrics` is served, for Prometheus and its like, to whoever may call `/rosapi/tsuji_routes`.
    pub metrics: bool,
    /// Pages of these origins alone may connect, and the bridge's own; pages of any if there is none. Programs that are no pages
    /// always may.
    pub origins: Vec<String>,
    /// So often a WebSocket is asked whether it is there; never if zero.
    pub ping_interval: Duration,
    /// So long it may take to answer.
    pub ping_timeout: Duration,
    /// After so long a silence the system asks whether the other end of a connection is there, and ends it 30 s later if it is not;
    /// never if zero.
    pub keepalive: Duration,
    /// Bytes that are read of a TCP connection at once.
    pub incoming_buffer: usize,
    /// What the system keeps of datagrams that were not read yet, in bytes. It may allow less; what does not fit is dropped and counted.
    pub udp_receive_buffer: usize,
    /// Whether messages are BSON, in and out.
    pub bson_only: bool,
    /// How long a service may take to answer where the client does not say.
    pub call_timeout: Duration,
    /// The least time between two messages to a client, where it says nothing of it.
    pub message_interval: Duration,
    /// Samples of a topic that wait to be written for clients. Of more the oldest are displaced and counted.
    pub depth: u32,
    /// What `get_ros_version` tells.
    pub distro: String,
    /// Names that `interfaces` of rosapi lists beside those that ship with tsuji, such as `my_msgs/srv/Run`.
    pub interfaces: Vec<String>,
    /// Whether each topic's transport and what is lost is told on `/diagnostics`, to whoever subscribes to that.
    pub diagnostics: bool,
    /// Which pictures are offered compressed too, if any.
    pub jpeg: Option<Jpeg>,
    /// What plays a recording that clients may control, if anything does.
    pub playback: Option<Arc<dyn Playback>>,
    /// Who may do what.
    pub access: Access,
    /// How much anybody may have.
    pub limits: Limits,
    /// What may wait for and of all clients together, in bytes. At that, whoever has the most loses its oldest samples, or is closed
    /// with 1013 where it has none; from seven eighths of it on nobody new is let in.
    pub memory_bytes_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            websocket: Some(Place { address: IpAddr::V4(Ipv4Addr::LOCALHOST), port: 9090 }),
            tcp: None,
            udp: None,
            url_path: "/".to_owned(),
            tls: None,
            compression: false,
            page: true,
            metrics: true,
            origins: Vec::new(),
            ping_interval: Duration::ZERO,
            ping_timeout: Duration::from_secs(30),
            keepalive: Duration::from_secs(60),
            incoming_buffer: 65_536,
            udp_receive_buffer: 8 << 20,
            bson_only: false,
            call_timeout: Duration::from_secs(5),
            message_interval: Duration::ZERO,
            depth: 1000,
            distro: "jazzy".to_owned(),
            interfaces: Vec::new(),
            diagnostics: false,
            jpeg: None,
            playback: None,
            access: Access::default(),
            limits: Limits::default(),
            memory_bytes_max: 512 << 20,
        }
    }
}

impl Settings {
    /// How clients are spoken to.
    pub(crate) fn encoding(&self) -> Encoding {
        if self.bson_only { Encoding::Bson } else { Encoding::Json }
    }
}

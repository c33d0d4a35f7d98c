//! Web clients of ROS 2: the rosbridge protocol over WebSocket, TCP and UDP, as a node of tsuji.
//!
//! Two threads serve all clients. One has the connections: it reads, publishes, and writes what waits. The other has
//! what comes from ROS: it takes samples, replies, requests and goals, and writes each once in every form that clients want. A
//! third begins when somebody first asks for the transports of all flows, or for metrics, and one compresses pictures where that is
//! wanted. What the protocol means is decided in `tsuji-rosbridge`, how
//! messages look in `tsuji-codec`; this crate acts. It chooses no transport and knows no transport.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use tsuji::Node;
use tsuji_msg::Resolver;

mod body;
mod clients;
mod connected_client;
mod deflate;
mod desk;
mod enclaves;
mod error;
mod foxglove;
mod frame;
mod hub;
mod io;
mod jpeg;
mod memory;
mod metrics;
mod observer;
mod own;
mod page;
mod plain;
mod playback;
mod session;
mod settings;
mod tree;
mod types;
mod users;
mod wake;

pub use error::{Error, ErrorKind, Result};
pub use jpeg::Jpeg;
pub use playback::{Playback, PlaybackState, PlaybackStatus, PlaybackWish};
pub use settings::{Place, Protocol, Settings, TlsFiles};
pub use tsuji_rosbridge as protocol;
pub use users::{Users, read_rosauth};

use desk::Desk;
use hub::Hub;
use io::Io;
use jpeg::{Compressor, Stop};
use memory::Memory;
use types::Types;
use wake::Wake;

/// Serves clients until it is dropped.
pub struct Bridge {
    wake: Arc<Wake>,
    over: Arc<Over>,
    counters: Arc<Counters>,
    memory: Arc<Memory>,
    bound: Vec<Bound>,
    connections: Option<JoinHandle<()>>,
    ros: Option<JoinHandle<()>>,
    compressor: Option<(Stop, JoinHandle<()>)>,
}

/// Where a protocol listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The protocol.
    pub protocol: Protocol,
    /// Its address, with the port that was taken where any was wanted.
    pub address: SocketAddr,
}

impl Bridge {
    /// Listens as `settings` says, and serves.
    ///
    /// All endpoints are those of `node`; `definitions` has the types.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::Invalid`] if the certificate or the key of [`Settings::tls`] cannot be read, is not in PEM,
    ///   does not fit the other, or is not valid now. Or if a user has an enclave, and nothing is secured, or the
    ///   keystore does not have it whole.
    /// - [`ErrorKind::Address`] if an address cannot be listened at: its port is taken or may not be used, or no
    ///   interface of this machine has it.
    /// - [`ErrorKind::Unexpected`] if the system refuses a socket or a thread, or tsuji the means to wait.
    pub fn start(
        node: &Node,
        settings: Settings,
        definitions: Box<dyn Resolver + Send + Sync>,
    ) -> Result<Self> {
        let mut settings = settings;
        enclaves::bind(&mut settings.access, node.context())?;
        let settings = Arc::new(settings);
        let counters = Arc::<Counters>::default();
        let types = Arc::new(Types::new(definitions));
        let (io, bound) = Io::bind(Arc::clone(&settings), Arc::clone(&counters))?;
        let wake = io.wake();
        let began = Instant::now();
        let (hub, mailbox) = Hub::new(node, &settings, &counters, &types, began)?;
        let compressor = settings.jpeg.clone();
        let compressor = compressor.map(|it| Compressor::new(node, it, Arc::clone(&counters)));
        let compressor = compressor.transpose()?;
        let desk = Desk::new(
            node.clone(),
            settings,
            Arc::clone(&counters),
            types,
            mailbox,
            Arc::clone(&wake),
            began,
        );
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
            spawned.map_err(|error| Error::new(ErrorKind::Unexpected, format!("thread: {error}")))
        };
        let (over, memory) = (Arc::<Over>::default(), Arc::clone(desk.memory()));
        let ends = || Ends { wake: Arc::clone(&wake), over: Arc::clone(&over) };
        let (ros_ends, connections_end) = (ends(), ends());
        let compressor = compressor.map(|it| (it, ends()));
        let (connections, ros) = (None, None);
        let mut bridge =
            Self { wake, over, counters, memory, bound, connections, ros, compressor: None };
        if let Some((compressor, compressor_ends)) = compressor {
            let stop = compressor.stop();
            let work = move || {
                let _ends = compressor_ends;
                compressor.run();
            };
            let thread = spawn("bridge-jpeg", Box::new(work))?;
            bridge.compressor = Some((stop, thread));
        }
        bridge.ros = Some(spawn(
            "bridge-ros",
            Box::new(move || {
                let _ends = ros_ends;
                hub.run();
            }),
        )?);
        bridge.connections = Some(spawn(
            "bridge-io",
            Box::new(move || {
                let _ends = connections_end;
                io.run(desk);
            }),
        )?);
        Ok(bridge)
    }

    /// Where it listens.
    pub fn bound(&self) -> &[Bound] {
        &self.bound
    }

    /// Has `tell` called, by one of its threads, when it serves nobody any more although it was not dropped: a thread of it has ended,
    /// and the log says why. Where that has happened it is called at once. Of several calls the last one counts.
    pub fn when_over(&self, tell: impl FnOnce() + Send + 'static) {
        self.over.then(Box::new(tell));
    }

    /// Whether it serves nobody any more.
    pub fn is_over(&self) -> bool {
        self.over.lock().is_over
    }

    /// What it has done so far.
    pub fn statistics(&self) -> Statistics {
        Statistics { held_bytes: self.memory.bytes() as u64, ..self.counters.statistics() }
    }
}

/// Ends the connections when a thread ends, whyever that is: nobody could be served any more.
struct Ends {
    wake: Arc<Wake>,
    over: Arc<Over>,
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.wake.end();
        self.over.tell();
    }
}

/// Whether a bridge is over, and whom to tell.
#[derive(Default)]
struct Over(Mutex<End>);

#[derive(Default)]
struct End {
    is_over: bool,
    tell: Option<Box<dyn FnOnce() + Send>>,
}

impl Over {
    fn then(&self, tell: Box<dyn FnOnce() + Send>) {
        let mut end = self.lock();
        if end.is_over {
            drop(end);
            return tell();
        }
        end.tell = Some(tell);
    }

    fn tell(&self) {
        let mut end = self.lock();
        end.is_over = true;
        let tell = end.tell.take();
        drop(end);
        if let Some(tell) = tell {
            tell();
        }
    }

    fn lock(&self) -> MutexGuard<'_, End> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // Whoever drops it knows.
        self.over.lock().tell = None;
        self.wake.end();
        let compressor = self.compressor.take().map(|(stop, thread)| {
            stop.stop();
            thread
        });
        // A thread that has panicked has said so.
        for thread in [self.connections.take(), self.ros.take(), compressor].into_iter().flatten() {
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge").field("bound", &self.bound).finish_non_exhaustive()
    }
}

/// What a bridge has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Connections that were accepted.
    pub connected: u64,
    /// Those of them that are over.
    pub disconnected: u64,
    /// Connections that were not, as there were too many, or too much waited for all clients together.
    pub refused: u64,
    /// Messages of clients that were published.
    pub published: u64,
    /// Samples that came for clients.
    pub received: u64,
    /// Messages of clients that were refused.
    pub refusals: u64,
    /// Samples that never came, or were pushed out of the queue before they could be written for clients.
    pub missed: u64,
    /// Samples that newer ones pushed out of the queue of a slow client, for each client.
    pub dropped: u64,
    /// Samples that came before their time for a client with a `throttle_rate`.
    pub throttled: u64,
    /// Samples that were none of their type.
    pub invalid: u64,
    /// Messages to clients by UDP that the system did not take.
    pub datagrams_lost: u64,
    /// Messages of clients by UDP that were dropped, since they came faster than is allowed.
    pub excess: u64,
    /// Datagrams of clients that the system dropped before they were read, as far as the socket was read since.
    pub datagrams_dropped: u64,
    /// Samples that a client lost, of all the one with the most, when too much waited for all together.
    pub crowded_out: u64,
    /// Clients that were closed, when too much waited and what they had was no samples.
    pub cut_off: u64,
    /// Pictures that were compressed.
    pub pictures_compressed: u64,
    /// Pictures that were not, as newer ones had come, the rate had no room for them, or they could not be.
    pub pictures_skipped: u64,
    /// What waits now for and of all clients, in bytes.
    pub held_bytes: u64,
}

impl Statistics {
    /// What it has counted, as the command and the page tell it: numbers by names.
    pub fn to_json(&self) -> serde_json::Value {
        self.counts().into_iter().map(|(name, number, _)| (name, number)).collect()
    }

    /// The same with a sentence for each, as the metrics tell it.
    pub(crate) fn counts(&self) -> [(&'static str, u64, &'static str); 16] {
        [
            ("connected", self.connected, "Connections that were accepted."),
            ("refused_connections", self.refused, "Connections that were not accepted."),
            ("published", self.published, "Messages of clients that were published."),
            ("received", self.received, "Samples that came for clients."),
            ("refused", self.refusals, "Messages of clients that were refused."),
            (
                "missed",
                self.missed,
                "Samples that never came, or were displaced before they were written.",
            ),
            (
                "dropped",
                self.dropped,
                "Samples that newer ones displaced in the queue of a slow client.",
            ),
            (
                "throttled",
                self.throttled,
                "Samples before their time for a client with a throttle_rate.",
            ),
            ("invalid", self.invalid, "Samples that were none of their type."),
            (
                "datagrams_lost",
                self.datagrams_lost,
                "Messages by UDP that the system did not take.",
            ),
            ("excess", self.excess, "Messages by UDP that came faster than is allowed."),
            (
                "datagrams_dropped",
                self.datagrams_dropped,
                "Datagrams that the system dropped unread.",
            ),
            (
                "crowded_out",
                self.crowded_out,
                "Samples that a client lost as too much waited for all.",
            ),
            ("cut_off", self.cut_off, "Clients that were closed as too much waited for all."),
            ("pictures_compressed", self.pictures_compressed, "Pictures that were compressed."),
            (
                "pictures_skipped",
                self.pictures_skipped,
                "Pictures left out for newer ones or for the rate, or that cannot be compressed.",
            ),
        ]
    }

    /// Connections that are open.
    pub(crate) fn connections(&self) -> u64 {
        self.connected.saturating_sub(self.disconnected)
    }
}

#[derive(Debug, Default)]
struct Counters {
    connected: AtomicU64,
    disconnected: AtomicU64,
    refused: AtomicU64,
    published: AtomicU64,
    received: AtomicU64,
    refusals: AtomicU64,
    missed: AtomicU64,
    dropped: AtomicU64,
    throttled: AtomicU64,
    invalid: AtomicU64,
    datagrams_lost: AtomicU64,
    excess: AtomicU64,
    datagrams_dropped: AtomicU64,
    crowded_out: AtomicU64,
    cut_off: AtomicU64,
    pictures_compressed: AtomicU64,
    pictures_skipped: AtomicU64,
}

impl Counters {
    /// But for what waits now, which it does not know.
    fn statistics(&self) -> Statistics {
        let of = |it: &AtomicU64| it.load(Ordering::Relaxed);
        Statistics {
            connected: of(&self.connected),
            disconnected: of(&self.disconnected),
            refused: of(&self.refused),
            published: of(&self.published),
            received: of(&self.received),
            refusals: of(&self.refusals),
            missed: of(&self.missed),
            dropped: of(&self.dropped),
            throttled: of(&self.throttled),
            invalid: of(&self.invalid),
            datagrams_lost: of(&self.datagrams_lost),
            excess: of(&self.excess),
            datagrams_dropped: of(&self.datagrams_dropped),
            crowded_out: of(&self.crowded_out),
            cut_off: of(&self.cut_off),
            pictures_compressed: of(&self.pictures_compressed),
            pictures_skipped: of(&self.pictures_skipped),
            held_bytes: 0,
        }
    }
}

//! Web clients of ROS 2: the rosbridge protocol over WebSocket, TCP and UDP, as a node of tsuji.
//!
//! Two threads serve all clients. One has the connections: it reads, publishes, and writes what waits. The other has
//! what comes from ROS: it takes samples, replies, requests and goals, and writes each once in every form that clients want. A
//! third begins when somebody first asks for the roads of all flows. What the protocol means is decided in `tsuji-rosbridge`, how
//! messages look in `tsuji-codec`; this crate acts. It chooses no road and knows no transport.
#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use tsuji::Node;
use tsuji_msg::Resolver;

mod body;
mod desk;
mod error;
mod frame;
mod hub;
mod io;
mod member;
mod page;
mod session;
mod settings;
mod tree;
mod types;
mod users;
mod wake;

pub use error::{Error, ErrorKind, Result};
pub use settings::{Carrier, Place, Settings, TlsFiles};
pub use tsuji_rosbridge as protocol;
pub use users::{Users, read_rosauth};

use desk::Desk;
use hub::Hub;
use io::Io;
use types::Types;
use wake::Wake;

/// Serves clients until it is dropped.
pub struct Bridge {
    wake: Arc<Wake>,
    counters: Arc<Counters>,
    bound: Vec<Bound>,
    connections: Option<JoinHandle<()>>,
    ros: Option<JoinHandle<()>>,
}

/// Where a carrier listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The carrier.
    pub carrier: Carrier,
    /// Its address, with the port that was taken where any was wanted.
    pub address: SocketAddr,
}

impl Bridge {
    /// Listens as `settings` says, and serves. All endpoints are those of `node`; `definitions` has the types.
    pub fn start(
        node: &Node,
        settings: Settings,
        definitions: Box<dyn Resolver + Send + Sync>,
    ) -> Result<Self> {
        let settings = Arc::new(settings);
        let counters = Arc::<Counters>::default();
        let types = Arc::new(Types::new(definitions));
        let (io, bound) = Io::bind(Arc::clone(&settings), Arc::clone(&counters))?;
        let wake = io.wake();
        let began = Instant::now();
        let (hub, mailbox) = Hub::new(node, &settings, &counters, &types, began)?;
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
        let mut bridge = Self { wake, counters, bound, connections: None, ros: None };
        let ends = Ends(Arc::clone(&bridge.wake));
        bridge.ros = Some(spawn(
            "bridge-ros",
            Box::new(move || {
                let _ends = ends;
                hub.run();
            }),
        )?);
        bridge.connections = Some(spawn("bridge-io", Box::new(move || io.run(desk)))?);
        Ok(bridge)
    }

    /// Where it listens.
    pub fn bound(&self) -> &[Bound] {
        &self.bound
    }

    /// What it has done so far.
    pub fn statistics(&self) -> Statistics {
        self.counters.statistics()
    }
}

/// Ends the connections when the thread of ROS does, whyever that is: nobody could be served any more.
struct Ends(Arc<Wake>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.wake.end();
        // A thread that has panicked has said so.
        for thread in [self.connections.take(), self.ros.take()].into_iter().flatten() {
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
    /// Connections that were not, as there were too many.
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
}

impl Counters {
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
        }
    }
}

//! One participant: a server for the slave API and for connections, and its threads.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tsuji_engine::{EndpointSpec, EngineReader, EngineWriter, Guid, Listener, ListenerSlot, Watch};
use tsuji_platform::fork::Generation;
use tsuji_platform::poll::{Poll, Waker};
use tsuji_ros::gid;
use tsuji_ros::vendor::VendorId;
use tsuji_transport::wire::Found;
use tsuji_transport::{Error, ErrorKind, Result};

use crate::config::Ros1Config;
use crate::endpoint::{Ros1Reader, Ros1Writer};
use crate::graph::Prefix;
use crate::registration::{MARK, mark_of};
use crate::state::Shared;
use crate::types::Types;
use crate::{io, registration};

/// How long leaving waits for the master to be told.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// A participant, which is a node of ROS 1 to all others, with many names.
pub(crate) struct Participant {
    shared: Arc<Shared>,
    generation: Generation,
}

impl Participant {
    pub(crate) fn join(config: &Ros1Config) -> Result<Self> {
        let failed = |what: &'static str| {
            move |error: std::io::Error| Error::new(ErrorKind::Exhausted, what).because(error)
        };
        let host = match &config.host {
            Some(host) => host.clone(),
            None => own_address(config).to_string(),
        };
        // Where all are on this host nobody else is listened to.
        let is_near = host.parse().is_ok_and(|it: IpAddr| it.is_loopback()) || host == "localhost";
        let address = if is_near { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
        let listener = TcpListener::bind((address, 0)).map_err(failed("listen"))?;
        listener.set_nonblocking(true).map_err(failed("listen"))?;
        let port = listener.local_addr().map_err(failed("listen"))?.port();
        let prefix = own_prefix(port);
        let mark = mark_of(prefix);
        let api = match host.contains(':') {
            true => format!("http://[{host}]:{port}{MARK}{mark}/"),
            false => format!("http://{host}:{port}{MARK}{mark}/"),
        };
        let poll = Poll::new().map_err(failed("watch connections"))?;
        let waker = Waker::new().map_err(failed("watch connections"))?;
        let types = Types::new(config.mapping.clone());
        let master = config.master.clone();
        let shared = Shared::new(types, master, host, port, api, prefix, poll, waker);
        io::watch(&shared.poll, &listener, &shared).map_err(failed("watch connections"))?;
        let participant = Self { shared, generation: Generation::current() };
        participant.start("tsuji-ros1", move |shared| io::run(shared, &listener))?;
        participant.start("tsuji-ros1-reg", registration::run)?;
        Ok(participant)
    }

    fn start(&self, name: &str, body: impl FnOnce(&Arc<Shared>) + Send + 'static) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        shared.lock().threads += 1;
        let run = move || {
            body(&shared);
            shared.lock().threads -= 1;
            shared.work.notify_all();
        };
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(run);
        spawned.map(drop).map_err(|error| {
            self.shared.lock().threads -= 1;
            Error::new(ErrorKind::Exhausted, "start a thread").because(error)
        })
    }
}

/// The address of this host by which it reaches the master; that of loopback where it cannot be told.
fn own_address(config: &Ros1Config) -> IpAddr {
    let master = (config.master.host.as_str(), config.master.port);
    let found = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        // Nothing is sent: the kernel says which address it would send from.
        socket.connect(master)?;
        socket.local_addr()
    });
    found.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |it| it.ip())
}

/// A prefix that no other participant has: one of this process, of now and of this port.
fn own_prefix(port: u16) -> Prefix {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |it| it.subsec_nanos() ^ it.as_secs() as u32);
    let mut prefix = Prefix::default();
    prefix[..2].copy_from_slice(&VendorId::ROS1.0);
    prefix[2..6].copy_from_slice(&process::id().to_be_bytes());
    prefix[6..8].copy_from_slice(&port.to_be_bytes());
    prefix[8..].copy_from_slice(&now.to_be_bytes());
    prefix
}

impl fmt::Debug for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Participant").field("api", &self.shared.api).finish_non_exhaustive()
    }
}

impl tsuji_engine::Participant for Participant {
    fn guid(&self) -> Guid {
        gid::Guid::new(self.shared.prefix, gid::Guid::PARTICIPANT).0
    }

    fn writer(&self, spec: &EndpointSpec<'_>) -> Result<Box<dyn EngineWriter>> {
        Ok(Box::new(Ros1Writer::open(&self.shared, spec)))
    }

    fn reader(&self, spec: &EndpointSpec<'_>) -> Result<Box<dyn EngineReader>> {
        Ok(Box::new(Ros1Reader::open(&self.shared, spec)))
    }

    fn watch(&self, listener: &Arc<dyn Listener>) -> Result<Box<dyn Watch>> {
        let ear = Arc::new(ListenerSlot::default());
        ear.open(Arc::clone(listener));
        self.shared.lock().graph.watch(Arc::clone(&ear));
        Ok(Box::new(GraphWatch { shared: Arc::clone(&self.shared), ear }))
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        if !self.generation.is_current() {
            return;
        }
        let mut state = self.shared.lock();
        state.is_leaving = true;
        self.shared.work.notify_all();
        self.shared.waker.give();
        let deadline = Instant::now() + LEAVE_WITHIN;
        while state.threads != 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // A master that does not answer is not waited for.
                break;
            }
            let waited = self.shared.work.wait_timeout(state, left);
            state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }
}

/// Watches who is there, until it is dropped.
struct GraphWatch {
    shared: Arc<Shared>,
    ear: Arc<ListenerSlot>,
}

impl fmt::Debug for GraphWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphWatch").finish_non_exhaustive()
    }
}

impl Watch for GraphWatch {
    fn take(&self) -> Vec<Found> {
        self.shared.lock().graph.take_found()
    }
}

impl Drop for GraphWatch {
    fn drop(&mut self) {
        self.ear.close();
    }
}

//! The transports that are compared, behind two small traits.
//!
//! Those that carry between processes without tsuji are in `peer`, for experiments of other kinds too.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::arguments::SIZES;
use crate::child::told_by_word;
use crate::probe::Arrivals;
use crate::route::Route;

mod condvar;
mod cyclonedds;
mod ends;
mod iceoryx;
mod peer;
mod plugin;
mod socket;
mod tsuji;

pub(crate) use cyclonedds::{
    ENCLAVE, Foreign, Heard, KEYSTORE, TYPE_NAME as PICTURE_TYPE, absence_of_security,
};
pub(crate) use ends::{Came, Hears, PATIENCE, Sends};
pub(crate) use peer::{Line, Peer, Talker, Way};
pub(crate) use plugin::absence;

/// One way of handing a picture over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Mutex, queue and condition variable; the picture behind an `Arc`.
    Condvar,
    /// The same, the picture copied when it is sent.
    CondvarClone,
    /// iceoryx2, the picture drawn in a loan.
    IceoryxLoan,
    /// iceoryx2, the finished picture copied into a loan when it is sent.
    IceoryxMemcpy,
    /// Cyclone DDS, the sample drawn in the buffer that is written.
    CycloneInPlace,
    /// Cyclone DDS, the finished sample copied when it is written.
    CycloneCopy,
    /// Cyclone DDS, secured by an enclave, the finished sample copied when it is written.
    CycloneSecured,
    /// Fast DDS from its plug-in, the finished sample copied when it is written.
    FastCopy,
    /// Zenoh from its plug-in, the finished sample copied when it is written.
    ZenohCopy,
    /// Nodes of ROS 1, the message published and received by value.
    Roscpp,
    /// Nodes of ROS 1, by `boost::shared_ptr`.
    RoscppPointer,
    /// Nodelets of ROS 1 under one manager, by value.
    Nodelet,
    /// Nodelets of ROS 1 under one manager, by `boost::shared_ptr`.
    NodeletPointer,
    /// Nodes of rclcpp, the message published and received by reference.
    Rclcpp,
    /// Nodes of rclcpp in one process with its own way inside, by `std::unique_ptr`.
    RclcppPointer,
    /// Nodes of rclcpp, the picture drawn in a message that the middleware lends.
    RclcppLoan,
    /// A Unix socket, the finished picture copied into the kernel when it is sent.
    UnixSocket,
    /// tsuji, an `Arc` published and the same `Arc` received.
    TsujiPointer,
    /// tsuji, a reference published.
    TsujiPublish,
    /// tsuji, a reference published, both processes secured by an enclave.
    TsujiSecured,
    /// tsuji, the picture drawn in a loan and read as a view.
    TsujiLoan,
    /// tsuji, a message of a fixed size.
    TsujiTyped,
    /// tsuji, bytes that are serialised already.
    TsujiBytes,
    /// tsuji, a serialised command.
    TsujiCommand,
    /// The same, while pictures go from the one process to the other on another topic.
    TsujiCommandBesidePictures,
}

impl Transport {
    /// All of them, and their names between this program and its children.
    const ALL: [(Self, &'static str); 25] = [
        (Self::Condvar, "condvar"),
        (Self::CondvarClone, "condvar-clone"),
        (Self::IceoryxLoan, "iceoryx2-loan"),
        (Self::IceoryxMemcpy, "iceoryx2-memcpy"),
        (Self::CycloneInPlace, "cyclonedds-in-place"),
        (Self::CycloneCopy, "cyclonedds-copy"),
        (Self::CycloneSecured, "cyclonedds-secured"),
        (Self::FastCopy, "fastdds-copy"),
        (Self::ZenohCopy, "zenoh-copy"),
        (Self::Roscpp, "roscpp"),
        (Self::RoscppPointer, "roscpp-pointer"),
        (Self::Nodelet, "nodelet"),
        (Self::NodeletPointer, "nodelet-pointer"),
        (Self::Rclcpp, RCLCPP),
        (Self::RclcppPointer, "rclcpp-pointer"),
        (Self::RclcppLoan, "rclcpp-loan"),
        (Self::UnixSocket, "unix-socket"),
        (Self::TsujiPointer, "tsuji-pointer"),
        (Self::TsujiPublish, "tsuji-publish"),
        (Self::TsujiSecured, "tsuji-secured"),
        (Self::TsujiLoan, "tsuji-loan"),
        (Self::TsujiTyped, "tsuji-typed"),
        (Self::TsujiBytes, "tsuji-bytes"),
        (Self::TsujiCommand, "tsuji-command"),
        (Self::TsujiCommandBesidePictures, "tsuji-command-beside-pictures"),
    ];

    /// Its name between this program and its children.
    pub(crate) fn word(self) -> &'static str {
        Self::ALL.iter().find(|it| it.0 == self).map_or("", |it| it.1)
    }

    fn of_word(word: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|it| it.1 == word).map(|it| it.0);
        found.ok_or_else(|| format!("no transport {word}"))
    }

    /// Whether it is tsuji that carries.
    pub(crate) fn is_tsuji(self) -> bool {
        self.word().starts_with("tsuji")
    }

    /// Whether its children are secured by an enclave.
    pub(crate) fn is_secured(self) -> bool {
        matches!(self, Self::TsujiSecured | Self::CycloneSecured)
    }

    /// Whether it is ROS 1, whose ends are played by a program of its own.
    pub(crate) fn is_ros1(self) -> bool {
        matches!(self, Self::Roscpp | Self::RoscppPointer | Self::Nodelet | Self::NodeletPointer)
    }

    /// Whether it is rclcpp, whose ends are played by a program of its own, on one middleware or another.
    pub(crate) fn is_rclcpp(self) -> bool {
        self.word().starts_with(RCLCPP)
    }

    /// Whether it can carry pictures of so many bytes. A message that rclcpp lends has its size in its type.
    pub(crate) fn carries(self, size: usize) -> bool {
        self != Self::RclcppLoan || SIZES.contains(&size)
    }

    /// The name in a row where it is rclcpp on `middleware`.
    pub(crate) fn on(self, middleware: &str) -> String {
        self.word().replacen(RCLCPP, &format!("{RCLCPP}:{middleware}"), 1)
    }

    /// Whether another program plays its ends.
    fn is_played_elsewhere(self) -> bool {
        self.is_ros1() || self.is_rclcpp()
    }

    /// What carries between two processes where it is not tsuji.
    fn peer(self) -> Option<Peer> {
        match self {
            Self::IceoryxLoan | Self::IceoryxMemcpy => Some(Peer::Iceoryx2),
            Self::CycloneInPlace | Self::CycloneCopy => Some(Peer::CycloneDds),
            Self::CycloneSecured => Some(Peer::CycloneSecured),
            Self::FastCopy => Some(Peer::FastDds),
            Self::ZenohCopy => Some(Peer::Zenoh),
            Self::UnixSocket => Some(Peer::UnixSocket),
            _ => None,
        }
    }
}

told_by_word!(Transport);

impl fmt::Display for Transport {
    /// The name in a row. For tsuji, what carries is known once a route is there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TsujiSecured => f.pad(self.word()),
            it if it.is_tsuji() => f.pad("tsuji"),
            it if it.is_ros1() => f.pad(&format!("ros1:{}", it.word())),
            it if it.is_rclcpp() => f.pad(it.word()),
            it => f.pad(&format!("raw:{}", it.word())),
        }
    }
}

/// Begins the names of all that is rclcpp.
pub(crate) const RCLCPP: &str = "rclcpp";

/// What a child process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// It sends, another process receives.
    Sender,
    /// It receives.
    Receiver,
    /// One thread sends, another one receives.
    Both,
}

/// How samples follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Flow {
    /// One at a time, each to a receiver that has fallen asleep.
    Paced,
    /// As fast as they are taken, none lost.
    Stream,
}

/// All that a child must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// The transport.
    pub(crate) transport: Transport,
    /// The part of this child.
    pub(crate) role: Role,
    /// How samples follow each other.
    pub(crate) flow: Flow,
    /// Bytes of a picture.
    pub(crate) size: usize,
    /// Least rest of the receiver between two samples.
    pub(crate) pause_us: u64,
    /// Least time from one sample to the next; 0 where the rest alone counts.
    pub(crate) period_us: u64,
    /// By which transport tsuji goes.
    pub(crate) route: Route,
    /// What was lost on the way is sent again, where the transport knows of that.
    pub(crate) is_reliable: bool,
    /// Processes that receive.
    pub(crate) receivers: usize,
    /// Whether, in one process, publisher and subscription are of one node.
    pub(crate) one_node: bool,
    /// A folder of this run, for whatever needs one.
    pub(crate) folder: PathBuf,
    /// A name that no other flow of this run has, made of letters, digits and `_`.
    pub(crate) name: String,
}

/// The sending end.
pub(crate) trait Sender {
    /// Takes a place for the next picture.
    fn prepare(&mut self) -> Result<(), String>;

    /// Draws the picture of that number there.
    fn draw(&mut self, number: u64) -> Result<(), String>;

    /// Sends it.
    fn publish(&mut self) -> Result<(), String>;

    /// A block begins. What it sends besides is sent from now on.
    fn begin(&mut self) {}

    /// The block is over.
    fn end(&mut self) {}

    /// What carries, once somebody receives; nothing where the transport's name says it all.
    fn transport(&mut self) -> Option<String> {
        None
    }
}

/// The receiving end. Each picture is handed to the [`Arrivals`] it was opened with.
pub(crate) trait Receiver {
    /// Sleeps and delivers in the calling thread until the end.
    fn run(self: Box<Self>, end: &End) -> Result<(), String>;
}

/// Says that it is over.
#[derive(Default)]
pub(crate) struct End {
    over: AtomicBool,
    wake: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl End {
    /// Whether it is over. A receiver without a wake looks at least every [`LOOK_AGAIN`].
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Calls `wake` when it is over.
    pub(crate) fn on_end(&self, wake: impl FnOnce() + Send + 'static) {
        *self.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(wake));
        if self.is_over() {
            self.call();
        }
    }

    /// Now it is over.
    pub(crate) fn now(&self) {
        self.over.store(true, Ordering::Release);
        self.call();
    }

    fn call(&self) {
        let wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(wake) = wake {
            wake();
        }
    }
}

/// Begins the names of the files in `/dev/shm` that a run in `folder` may leave.
pub(crate) fn shared_memory_prefix(folder: &Path) -> String {
    iceoryx::prefix(folder)
}

/// How long a raw receiver sleeps at most.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Opens the sending end of a flow between two processes.
pub(crate) fn open_sender(spec: &Spec) -> Result<Box<dyn Sender>, String> {
    match (spec.transport, spec.transport.peer()) {
        (Transport::IceoryxLoan, _) => iceoryx::in_place(spec),
        (Transport::CycloneInPlace, _) => cyclonedds::in_place(spec),
        (_, Some(peer)) => peer::sender(peer, spec),
        (Transport::Condvar | Transport::CondvarClone, None) => Err(unfit(spec)),
        (it, None) if it.is_played_elsewhere() => Err(unfit(spec)),
        (_, None) => tsuji::sender(spec),
    }
}

/// Opens the receiving end of a flow between two processes.
pub(crate) fn open_receiver(
    spec: &Spec,
    arrivals: Arc<Arrivals>,
) -> Result<Box<dyn Receiver>, String> {
    match (spec.transport, spec.transport.peer()) {
        (_, Some(peer)) => peer::receiver(peer, spec, arrivals),
        (Transport::Condvar | Transport::CondvarClone, None) => Err(unfit(spec)),
        (it, None) if it.is_played_elsewhere() => Err(unfit(spec)),
        (_, None) => tsuji::receiver(spec, arrivals),
    }
}

/// Samples that came to the receiving process of `spec` by the network and by another transport too.
pub(crate) fn doubled(spec: &Spec) -> Result<u64, String> {
    if spec.transport.is_tsuji() { tsuji::doubled(spec) } else { Ok(0) }
}

/// The two ends of a flow inside this process.
pub(crate) type Ends = (Box<dyn Sender>, Box<dyn Receiver + Send>);

/// Opens both ends inside this process.
pub(crate) fn open_both(spec: &Spec, arrivals: Arc<Arrivals>) -> Result<Ends, String> {
    match spec.transport {
        Transport::Condvar | Transport::CondvarClone => Ok(condvar::ends(spec, arrivals)),
        it if it.is_played_elsewhere() || it.peer().is_some() => Err(unfit(spec)),
        _ => tsuji::ends(spec, arrivals),
    }
}

fn unfit(spec: &Spec) -> String {
    format!("{} cannot be {:?}", spec.transport.word(), spec.role)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_comes_back_from_its_text() {
        for (transport, role, flow, route) in [
            (Transport::Condvar, Role::Both, Flow::Paced, Route::Alone),
            (Transport::IceoryxLoan, Role::Sender, Flow::Stream, Route::Alone),
            (Transport::TsujiLoan, Role::Receiver, Flow::Paced, Route::Rtps),
        ] {
            let spec = Spec {
                transport,
                role,
                flow,
                size: 64,
                pause_us: 40,
                period_us: 33_333,
                route,
                is_reliable: route == Route::Alone,
                receivers: 8,
                one_node: false,
                folder: "/tmp/a folder".into(),
                name: "loan_64".to_owned(),
            };
            let text = serde_json::to_string(&spec).unwrap();
            assert_eq!(serde_json::from_str::<Spec>(&text).unwrap(), spec);
        }
        assert!(serde_json::from_str::<Spec>("{}").is_err());
    }
}

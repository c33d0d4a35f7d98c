//! What processes tell each other over a control channel.
//!
//! A frame is a magic word, a version and one [`Control`]. The first two never change their place,
//! so that a process of another version is recognised, not misread.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tsuji_core::{Durability, History, Liveliness, Outward, Qos, Reliability};
use tsuji_platform::life::LifeSign;

pub(crate) use tsuji_core::flows::{Flow, Refusal};

use crate::control::watching::WatchWord;
use crate::engines::ProcessEngines;
use crate::graph::{Role, RouteHalf, TypeOf};
use crate::{Error, ErrorKind};

/// Changes with every change of this file.
pub(crate) const VERSION: u32 = 14;

const MAGIC: u32 = u32::from_le_bytes(*b"tsji");

/// One message of the control channel. Topics and nodes in it are as the outside of a robot calls them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Control {
    /// Who I am, and how each transport greets. The descriptors of all handshakes follow in order.
    Hello(Hello),
    /// How each handshake was answered, in the order of the handshakes; `Err` says why it was not.
    Met(Vec<(String, Result<Vec<u8>, String>)>),
    /// Everything that was there at the time of Hello has been told.
    Settled,
    /// A node is there.
    Node(NodeRecord),
    /// A node is gone.
    NodeGone([u8; 16]),
    /// An endpoint is there.
    Endpoint(EndpointRecord),
    /// An endpoint is gone.
    EndpointGone([u8; 16]),
    /// From the publisher: open your end of this flow on this transport, beside that which stands if it is
    /// not the first.
    Offer { flow: Flow, epoch: u32, is_first: bool, transport: String },
    /// From the subscription: the address, or why not.
    Answer { flow: Flow, epoch: u32, address: Result<Vec<u8>, Refusal> },
    /// From the publisher: this epoch's link carries from the number `first` on. `ends` is the number
    /// that the link before would have brought next; `None` if there was none.
    Cut { flow: Flow, epoch: u32, ends: Option<u64>, first: u64 },
    /// From the subscription: of the links before this epoch's there is nothing more to take. So many
    /// samples were held at most.
    Done { flow: Flow, epoch: u32, held: u64 },
    /// From the subscription: something has come by this epoch's link, which was to show that it carries.
    Shown { flow: Flow, epoch: u32 },
    /// From the publisher: this epoch's link is not wanted after all.
    Withdrawn { flow: Flow, epoch: u32 },
    /// From the publisher: the flow is over, or begins anew.
    Closed { flow: Flow, epoch: u32 },
    /// From the subscription: so many samples of this flow were pushed out of full queues after they were sent, where
    /// the publisher does not see it.
    Displaced { flow: Flow, total: u64 },
    /// What a transport says to itself in the other process.
    OfTransport { transport: String, bytes: Vec<u8> },
    /// A publisher whose liveliness is manual says that it is alive.
    Alive([u8; 16]),
    /// Tell me the halves of all flows that you know.
    AskRoutes { question: u64 },
    /// One of them; `None` is the last.
    Route { question: u64, half: Option<RouteHalf> },
    /// Tell me how your engines stand.
    AskEngines { question: u64 },
    /// So they do.
    Engines { question: u64, engines: Box<ProcessEngines> },
    /// From now on the flows of this topic take this transport, or with `None` what the policy says.
    /// `question` is 0 for what was asked for before.
    /// Of two words about a topic the one with the higher stamp counts.
    Pin { question: u64, topic: String, transport: Option<String>, stamp: (u64, [u8; 16]) },
    /// So many flows were decided again, or why none.
    Pinned { question: u64, outcome: Result<u32, String> },
    /// About who watches files for all.
    Watch(WatchWord),
    /// About channels for which no socket is held.
    Parking(ParkingWord),
    /// From the subscription: of this flow it wants what passes this content filter, or with `None` everything.
    Filter { flow: Flow, filter: Option<FilterRecord> },
    /// Between processes that are secured, before all else: who I claim to be. Parts of the permissions follow.
    Claim(Box<ClaimRecord>),
    /// The next bytes of the permissions of the claim.
    ClaimPart(Vec<u8>),
    /// The signature that proves the claim to whoever has made the other one.
    Proof(Vec<u8>),
    /// I have nothing to do with you, for this reason.
    Refused(String),
}

/// What processes of one host say to each other about channels that are parked, or with whom they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ParkingWord {
    /// I would hang up, and keep what we know of each other. Hang up if you do not need this connection.
    Park,
    /// I do.
    Stay,
    /// The first word on a connection: I am this process, whose channel was parked.
    Resume([u8; 16]),
    /// Go on, it is that channel again.
    Resumed,
    /// I do not know you any more: say hello.
    Anew,
    /// The only word on a connection: I am this process, whose channel was parked. Connect to me.
    ConnectBack([u8; 16]),
    /// This process does not answer, or is you. Maybe the only word on a connection.
    Gone([u8; 16]),
    /// I am this process, and leave. Maybe the only word on a connection.
    Bye([u8; 16]),
}

impl Control {
    /// The topic that it is about and shows, if it is about one.
    pub(crate) fn topic(&self) -> Option<&str> {
        match self {
            Self::Endpoint(record) => Some(&record.topic),
            Self::Pin { topic, .. } => Some(topic),
            Self::Route { half: Some(RouteHalf::Decision(half)), .. } => Some(&half.topic),
            _ => None,
        }
    }

    fn topic_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Endpoint(record) => Some(&mut record.topic),
            Self::Pin { topic, .. } => Some(topic),
            Self::Route { half: Some(RouteHalf::Decision(half)), .. } => Some(&mut half.topic),
            _ => None,
        }
    }

    /// The same with the name that the outside has for its topic.
    pub(crate) fn outward(&self, outward: &Outward) -> Cow<'_, Self> {
        let mut said = Cow::Borrowed(self);
        if let Some(Cow::Owned(name)) = self.topic().map(|topic| outward.topic(topic))
            && let Some(topic) = said.to_mut().topic_mut()
        {
            *topic = name;
        }
        said
    }

    /// The same with the name that its topic has here. `None` where it has none.
    pub(crate) fn inward(mut self, outward: &Outward) -> Option<Self> {
        if outward.robot().is_some()
            && let Some(topic) = self.topic_mut()
        {
            *topic = outward.topic_here(topic)?.into_owned();
        }
        Some(self)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let is_passing = matches!(error.kind(), ErrorKind::Busy | ErrorKind::Exhausted);
        Self { reason: error.to_string(), is_passing }
    }
}

/// What a secured process claims to be, but for its permissions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClaimRecord {
    pub(crate) token: [u8; 16],
    pub(crate) domain: u32,
    pub(crate) pid: u32,
    pub(crate) pid_namespace: u64,
    /// Whether it was made because the other end has made one.
    pub(crate) is_answer: bool,
    pub(crate) nonce: [u8; 32],
    pub(crate) certificate: Vec<u8>,
    /// How many bytes of permissions follow.
    pub(crate) permissions_bytes: u32,
}

/// A process introduces itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) token: [u8; 16],
    pub(crate) pid: u32,
    pub(crate) program: String,
    pub(crate) host: String,
    /// The name of its robot, if it has one.
    pub(crate) robot: Option<String>,
    /// What processes of one robot must have in common.
    pub(crate) rules: String,
    /// What processes of its host ask whether it lives.
    pub(crate) life: LifeRecord,
    pub(crate) handshakes: Vec<HandshakeRecord>,
}

/// A sign of life on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LifeRecord {
    file: (u64, u64),
    at: u64,
}

impl From<LifeSign> for LifeRecord {
    fn from(LifeSign { file, at }: LifeSign) -> Self {
        Self { file, at }
    }
}

impl From<LifeRecord> for LifeSign {
    fn from(LifeRecord { file, at }: LifeRecord) -> Self {
        Self { file, at }
    }
}

/// One transport's handshake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HandshakeRecord {
    pub(crate) transport: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) fds: u32,
}

/// A node, as others see it, by its names outside of a robot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NodeRecord {
    pub(crate) gid: [u8; 16],
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) enclave: String,
}

/// An endpoint, as others see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EndpointRecord {
    pub(crate) gid: [u8; 16],
    pub(crate) node: [u8; 16],
    pub(crate) is_publisher: bool,
    pub(crate) role: Role,
    /// The other half of a client or of a server; zeros for a topic.
    pub(crate) partner: [u8; 16],
    pub(crate) topic: String,
    pub(crate) type_name: String,
    pub(crate) type_hash: String,
    pub(crate) qos: QosRecord,
}

impl EndpointRecord {
    pub(crate) fn ty(&self) -> TypeOf<'_> {
        TypeOf { name: &self.type_name, hash: &self.type_hash }
    }
}

/// A content filter, with all that it takes to compile it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilterRecord {
    /// The definition of the type, with those of the types that it uses.
    pub(crate) definition: String,
    pub(crate) expression: String,
    pub(crate) parameters: Vec<String>,
}

/// A QoS on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QosRecord {
    depth: Option<u32>,
    reliable: bool,
    transient_local: bool,
    deadline: Option<Duration>,
    lifespan: Option<Duration>,
    manual: bool,
    lease: Option<Duration>,
}

impl From<Qos> for QosRecord {
    fn from(qos: Qos) -> Self {
        Self {
            depth: match qos.history {
                History::KeepLast(depth) => Some(depth),
                History::KeepAll => None,
            },
            reliable: qos.reliability == Reliability::Reliable,
            transient_local: qos.durability == Durability::TransientLocal,
            deadline: qos.deadline,
            lifespan: qos.lifespan,
            manual: qos.liveliness == Liveliness::ManualByTopic,
            lease: qos.liveliness_lease,
        }
    }
}

impl From<QosRecord> for Qos {
    fn from(it: QosRecord) -> Self {
        Self {
            history: it.depth.map_or(History::KeepAll, History::KeepLast),
            reliability: [Reliability::BestEffort, Reliability::Reliable][usize::from(it.reliable)],
            durability: [Durability::Volatile, Durability::TransientLocal]
                [usize::from(it.transient_local)],
            deadline: it.deadline,
            lifespan: it.lifespan,
            liveliness: [Liveliness::Automatic, Liveliness::ManualByTopic][usize::from(it.manual)],
            liveliness_lease: it.lease,
        }
    }
}

/// Why a frame is not a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrameError {
    /// The other process speaks another version.
    Version(u32),
    /// It is no frame at all.
    Garbage,
}

/// The frame of one message.
pub(crate) fn encode(control: &Control) -> Vec<u8> {
    let mut frame = [MAGIC, VERSION].map(u32::to_le_bytes).concat();
    // Writing to a vector fails for types without a known length only, and there are none.
    if let Ok(body) = postcard::to_stdvec(control) {
        frame.extend(body);
    }
    frame
}

/// The message of one frame.
pub(crate) fn decode(frame: &[u8]) -> Result<Control, FrameError> {
    let word = |at: usize| {
        let bytes = frame.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_le_bytes).ok_or(FrameError::Garbage)
    };
    if word(0)? != MAGIC {
        return Err(FrameError::Garbage);
    }
    match word(4)? {
        VERSION => postcard::from_bytes(&frame[8..]).map_err(|_| FrameError::Garbage),
        other => Err(FrameError::Version(other)),
    }
}

#[cfg(test)]
mod tests {
    use tsuji_transport::Gid;

    use tsuji_core::Robot;

    use super::*;

    fn flow() -> Flow {
        Flow::new(Gid([1; 16]), Gid([2; 16]))
    }

    #[test]
    fn a_message_survives_its_frame() {
        let qos = Qos {
            history: History::KeepAll,
            deadline: Some(Duration::from_millis(3)),
            ..Qos::DEFAULT
        };
        let endpoint = EndpointRecord {
            gid: [3; 16],
            node: [4; 16],
            is_publisher: true,
            role: Role::Request,
            partner: [5; 16],
            topic: "/chatter".into(),
            type_name: "std_msgs/msg/String".into(),
            type_hash: String::new(),
            qos: qos.into(),
        };
        assert_eq!(Qos::from(endpoint.qos), qos);
        for control in [
            Control::Endpoint(endpoint),
            Control::Answer { flow: flow(), epoch: 7, address: Err(Refusal::lasting("no")) },
            Control::Cut { flow: flow(), epoch: 7, ends: None, first: u64::MAX },
            Control::Done { flow: flow(), epoch: 7, held: 3 },
            Control::Filter {
                flow: flow(),
                filter: Some(FilterRecord {
                    definition: "int8 a".into(),
                    expression: "a > %0".into(),
                    parameters: vec!["1".into()],
                }),
            },
            Control::Pin {
                question: 1,
                topic: "/a".into(),
                transport: Some("shm".into()),
                stamp: (1, [2; 16]),
            },
            Control::Claim(Box::new(ClaimRecord {
                token: [1; 16],
                domain: 2,
                pid: 4,
                pid_namespace: 5,
                is_answer: true,
                nonce: [6; 32],
                certificate: vec![7],
                permissions_bytes: 8,
            })),
            Control::ClaimPart(vec![1]),
            Control::Proof(vec![2]),
            Control::Refused("no".into()),
            Control::Settled,
        ] {
            assert_eq!(decode(&encode(&control)), Ok(control));
        }
    }

    #[test]
    fn names_are_told_as_the_outside_has_them() {
        let robot = Robot::new("r2", vec!["/fleet/**".parse().unwrap()]).unwrap();
        let (r2, none) = (Outward::new(Some(robot), Vec::new()), Outward::default());
        let pin = |topic: &str| Control::Pin {
            question: 1,
            topic: topic.into(),
            transport: None,
            stamp: (1, [2; 16]),
        };
        for (here, outside) in [
            (pin("/a"), pin("/r2/a")),
            (pin("/fleet/a"), pin("/fleet/a")),
            (Control::Settled, Control::Settled),
        ] {
            assert_eq!(*here.outward(&r2), outside);
            assert_eq!(outside.clone().inward(&r2), Some(here.clone()));
            assert_eq!(
                (here.outward(&none), here.clone().inward(&none)),
                (Cow::Borrowed(&here), Some(here.clone()))
            );
        }
        assert_eq!(pin("/r1/a").inward(&r2), None);
    }

    #[test]
    fn another_version_is_recognised() {
        let mut frame = encode(&Control::Settled);
        frame[4] = 99;
        assert_eq!(decode(&frame), Err(FrameError::Version(99)));
    }

    #[test]
    fn garbage_and_truncation_are_refused() {
        let frame = encode(&Control::Offer {
            flow: flow(),
            epoch: 1,
            is_first: true,
            transport: "shm".into(),
        });
        for len in 0..frame.len() {
            assert_eq!(decode(&frame[..len]), Err(FrameError::Garbage), "{len}");
        }
        let mut random = 1u64;
        for len in 0..2000 {
            let mut bytes = encode(&Control::Settled)[..8].to_vec();
            for _ in 0..len % 300 {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                bytes.push((random >> 56) as u8);
            }
            let _ = decode(&bytes);
        }
    }
}

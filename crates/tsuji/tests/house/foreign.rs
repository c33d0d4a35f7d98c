//! Participants that are not tsuji's: the engine itself, without what tsuji says of itself, doing
//! what its test wants.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tsuji::{Context, Message, Qos};
use tsuji_core::{Peers, Scopes, TransportId};
use tsuji_engine::About;
use tsuji_msg::cdr::ByteOrder;
use tsuji_platform::memory::Backing;
use tsuji_ros::gid::{Distro, Guid};
use tsuji_ros::graph_message::{self, NodeEntitiesInfo, ParticipantEntitiesInfo};
use tsuji_transport::bell::Bells;
use tsuji_transport::wire::{ChannelSpec, Found, FoundEndpoint, Inlet, Outlet, Relates, Wire};
use tsuji_transport::{
    Announced, Bytes, Endpoint, Envelope, Gid, Payload, PeerId, Reader, Transport, Writer,
};
use tsuji_transport_cyclonedds::{CycloneConfig, CycloneDds, EngineTransport};
use tsuji_transport_plugin::{PluginConfig, PluginEngine};

use super::{Folder, wait_until};

/// A context that speaks to foreign nodes over loopback.
pub(crate) fn context(folder: &Folder, domain: u32) -> Context {
    context_with(folder, domain, "")
}

/// With further settings of the transport, as a policy has them.
pub(crate) fn context_with(folder: &Folder, domain: u32, settings: &str) -> Context {
    let policy = format!(
        r#"<tsuji><transport name="cyclonedds">
        <set key="interfaces" value="lo"/><set key="multicast" value="true"/>{settings}
    </transport></tsuji>"#
    );
    let policy = tsuji_policy::load("test", policy.as_bytes(), tsuji::KNOWN_TRANSPORTS).unwrap();
    let builder = Context::builder().runtime_dir(&folder.0).domain(domain).policy(policy);
    builder.interop(tsuji::Interop::RTPS).isolated().build().unwrap()
}

/// A figure of the transport that reaches foreign nodes.
pub(crate) fn figure(context: &Context, name: &str) -> u64 {
    let reports = context.transports();
    let cyclone = reports.iter().find(|it| it.name == "cyclonedds").unwrap();
    cyclone.figures.iter().find(|(it, _)| it == name).unwrap().1
}

/// The name of a message or of half a service on DDS, such as `std_msgs::msg::dds_::String_`.
pub(crate) fn dds_type(ros: &str, suffix: &str) -> String {
    let [package, kind, name] = ros.split('/').collect::<Vec<_>>()[..] else { panic!("{ros}") };
    format!("{package}::{kind}::dds_::{name}{suffix}_")
}

/// Where its messages go on DDS.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) name: String,
    pub(crate) ty: String,
    pub(crate) is_keyed: bool,
    pub(crate) user_data: Vec<u8>,
}

impl Topic {
    /// A topic by its names on the wire.
    pub(crate) fn new(name: String, ty: String) -> Self {
        Self { name, ty, is_keyed: false, user_data: Vec::new() }
    }

    /// A topic of ROS 2.
    pub(crate) fn of<M: Message>(name: &str) -> Self {
        let ty = dds_type(M::TYPE_NAME, "");
        Self::new(format!("rt/{name}"), ty)
    }

    /// The half of a service: `rq` and `Request`, or `rr` and `Reply`.
    pub(crate) fn requests(name: &str, ty: &str) -> Self {
        let ty = dds_type(ty, "_Request");
        Self::new(format!("rq/{name}Request"), ty)
    }

    pub(crate) fn replies(name: &str, ty: &str) -> Self {
        let ty = dds_type(ty, "_Response");
        Self::new(format!("rr/{name}Reply"), ty)
    }

    pub(crate) fn saying(mut self, user_data: &str) -> Self {
        self.user_data = user_data.as_bytes().to_vec();
        self
    }

    fn endpoint(&self, gid: Gid, qos: Qos) -> Endpoint {
        let (topic, type_name) = (self.name.clone(), self.ty.clone());
        let announced = Announced {
            topic: topic.clone(),
            type_name: type_name.clone(),
            is_keyed: self.is_keyed,
            user_data: self.user_data.clone(),
        };
        Endpoint { topic, type_name, gid, qos, keep_all_max: 1000, announced: Some(announced) }
    }

    fn channel(&self, qos: Qos) -> ChannelSpec {
        let (topic, type_name) = (self.name.clone(), self.ty.clone());
        ChannelSpec { topic, type_name, qos, user_data: self.user_data.clone() }
    }
}

/// A participant.
pub(crate) struct Plain {
    transport: EngineTransport,
    bells: Arc<Bells>,
    found: Mutex<Others>,
}

/// What a participant has found of others.
#[derive(Default)]
struct Others {
    endpoints: BTreeMap<Gid, FoundEndpoint>,
    /// What their participants say.
    said: Vec<Vec<u8>>,
}

impl Plain {
    /// One as every ROS 2 process has.
    pub(crate) fn join(domain: u32) -> Self {
        Self::saying(domain, b"enclave=/;")
    }

    pub(crate) fn saying(domain: u32, user_data: &[u8]) -> Self {
        let config =
            CycloneConfig { user_data: user_data.to_vec(), ..CycloneConfig::on_loopback(domain) };
        Self::on(CycloneDds::create(PeerId([0xee; 16]), &config).unwrap())
    }

    /// One on Fast DDS, whose plug-in is there.
    pub(crate) fn join_fast(domain: u32) -> Self {
        let about = About {
            id: TransportId::new("fastdds"),
            scopes: Scopes { intra: false, ..Scopes::ALL },
            peers: Peers::RTPS,
            sample_bytes_max: 1 << 30,
            relates: Relates::Beside,
        };
        let file = tsuji_transport_plugin::file_name("fastdds");
        let folders = tsuji_transport_plugin::folders();
        let path = tsuji_transport_plugin::locate(&file, &folders).unwrap().path;
        let config = PluginConfig {
            interfaces: vec!["lo".to_owned()],
            user_data: b"enclave=/;".to_vec(),
            ..PluginConfig::new(about, path, domain)
        };
        Self::on(PluginEngine::create(PeerId([0xef; 16]), config).unwrap())
    }

    fn on(transport: EngineTransport) -> Self {
        transport.join().unwrap();
        let bells = Bells::create(&Backing::Anonymous).unwrap();
        Self { transport, bells, found: Mutex::default() }
    }

    pub(crate) fn name(&self) -> Gid {
        self.transport.join().unwrap()
    }

    /// What it has found of others on a topic.
    pub(crate) fn found(&self, topic: &Topic) -> Vec<FoundEndpoint> {
        let mut locked = self.found.lock().unwrap();
        let Others { endpoints: known, said } = &mut *locked;
        for found in self.transport.found() {
            match found {
                Found::Participant(it) => said.push(it.user_data),
                Found::Endpoint(it) => drop(known.insert(it.name, it)),
                Found::Gone(name) => drop(known.remove(&name)),
            }
        }
        known.values().filter(|it| it.topic == topic.name).cloned().collect()
    }

    /// The topics of all endpoints of others, as the wire has them.
    pub(crate) fn topics(&self) -> Vec<String> {
        self.found(&Topic::new(String::new(), String::new()));
        let found = self.found.lock().unwrap();
        found.endpoints.values().map(|it| it.topic.clone()).collect()
    }

    /// What the participants of others have said of themselves.
    pub(crate) fn said_by_others(&self) -> Vec<Vec<u8>> {
        self.found(&Topic::new(String::new(), String::new()));
        self.found.lock().unwrap().said.clone()
    }

    pub(crate) fn readers(&self, topic: &Topic) -> usize {
        self.found(topic).iter().filter(|it| !it.is_writer).count()
    }

    /// A writer that nobody waits for.
    pub(crate) fn outlet(&self, topic: &Topic, qos: Qos) -> Box<dyn Outlet> {
        self.transport.open_outlet(&topic.channel(qos)).unwrap()
    }

    pub(crate) fn inlet(&self, topic: &Topic, qos: Qos) -> Box<dyn Inlet> {
        self.transport.open_inlet(&topic.channel(qos)).unwrap()
    }

    /// A writer that knows who listens.
    pub(crate) fn talker(&self, topic: &Topic, qos: Qos) -> Talker<'_> {
        let room = Arc::new(self.bells.claim_cell().unwrap());
        let endpoint = topic.endpoint(Gid([0xee; 16]), qos);
        let writer = self.transport.open_writer(&endpoint, room).unwrap();
        Talker { plain: self, topic: topic.clone(), writer }
    }

    /// A reader that knows who writes, and to what a sample relates.
    pub(crate) fn listener(&self, topic: &Topic, qos: Qos) -> Listener<'_> {
        let news = Arc::new(self.bells.claim_cell().unwrap());
        let endpoint = topic.endpoint(Listener::GID, qos);
        let reader = self.transport.open_reader(&endpoint, news).unwrap();
        Listener { plain: self, topic: topic.clone(), reader }
    }

    /// Says so of its nodes, as a participant of `distro` does. What is not this participant's may be
    /// said of others.
    pub(crate) fn say_nodes(&self, distro: Distro, said: &ParticipantEntitiesInfo) -> Graph {
        let graph = self.graph();
        graph.write(&said.encode(distro, ByteOrder::Little).unwrap());
        graph
    }

    /// Its writer of graph messages, which does as it is told.
    pub(crate) fn graph(&self) -> Graph {
        let (name, ty) = (graph_message::TOPIC.to_owned(), graph_message::TYPE_NAME.to_owned());
        let topic = Topic::new(name, ty);
        Graph(self.outlet(&topic, graph_message::WRITER_QOS))
    }

    /// What it would say if it had this node alone.
    pub(crate) fn node(&self, name: &str, writers: &[Gid]) -> ParticipantEntitiesInfo {
        let node = NodeEntitiesInfo {
            node_namespace: "/".to_owned(),
            node_name: name.to_owned(),
            readers: Vec::new(),
            writers: writers.iter().map(|it| Guid(it.0)).collect(),
        };
        ParticipantEntitiesInfo { participant: Guid(self.name().0), nodes: vec![node] }
    }
}

pub(crate) struct Graph(Box<dyn Outlet>);

impl Graph {
    pub(crate) fn write(&self, bytes: &[u8]) {
        self.0.write(bytes).unwrap();
    }
}

/// A writer that knows who listens.
pub(crate) struct Talker<'a> {
    plain: &'a Plain,
    topic: Topic,
    writer: Arc<dyn Writer>,
}

impl Talker<'_> {
    /// Its name on the wire.
    pub(crate) fn name(&self) -> Gid {
        self.writer.wire_name().unwrap()
    }

    /// Waits until so many readers get what it writes.
    #[track_caller]
    pub(crate) fn wait_for_readers(&self, count: usize) {
        wait_until("its readers match", || {
            for reader in self.plain.found(&self.topic).iter().filter(|it| !it.is_writer) {
                let _ = self.writer.connect_foreign(reader.name).unwrap();
            }
            self.writer.readers() == count
        });
    }

    /// Writes CDR with its header of 4 bytes, or what it says is that.
    pub(crate) fn write(&self, bytes: &[u8]) {
        self.write_related(bytes, None);
    }

    /// The same, of what relates to another sample, or is to be answered to a reader of its own.
    pub(crate) fn write_related(&self, bytes: &[u8], related: Option<(Gid, u64)>) {
        let wall_ns = tsuji_platform::clock::wall_ns();
        let envelope = Envelope { wall_ns, related, ..Envelope::default() };
        wait_until("there is room", || {
            self.writer.send(&envelope, &Payload::Bytes(Bytes::copy_from(bytes))).is_ok()
        });
    }

    pub(crate) fn say<M: Message>(&self, message: &M) {
        self.write(&message.to_vec().unwrap());
    }
}

/// A reader that knows who writes.
pub(crate) struct Listener<'a> {
    plain: &'a Plain,
    topic: Topic,
    reader: Arc<dyn Reader>,
}

impl Listener<'_> {
    /// How its own participant names it.
    pub(crate) const GID: Gid = Gid([0xed; 16]);

    /// The next sample, and what it relates to.
    #[track_caller]
    pub(crate) fn next(&self) -> (Option<(Gid, u64)>, Vec<u8>) {
        let mut taken = None;
        wait_until("a sample comes", || {
            for writer in self.plain.found(&self.topic).iter().filter(|it| it.is_writer) {
                let _ = self.reader.accept_foreign(writer.name).unwrap();
            }
            taken = self.reader.take().unwrap();
            taken.is_some()
        });
        let sample = taken.unwrap();
        let Payload::Bytes(bytes) = &sample.payload else { panic!("bytes") };
        (sample.envelope.related, bytes.to_vec())
    }
}

/// The next sample.
#[track_caller]
pub(crate) fn next(inlet: &dyn Inlet) -> (Gid, Bytes) {
    let mut taken = None;
    wait_until("a sample comes", || {
        taken = inlet.take().unwrap();
        taken.is_some()
    });
    taken.unwrap()
}

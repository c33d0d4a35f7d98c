//! Which node owns which endpoint: the messages on `ros_discovery_info`.
//!
//! Every participant of ROS 2 publishes one message, which names its nodes and the GIDs of the
//! readers and writers of each, and publishes it anew when they change. DDS discovery tells the
//! rest: topics, types, QoS. The message is `rmw_dds_common/msg/ParticipantEntitiesInfo`
//! (rmw_dds_common, folder `msg`):
//!
//! ```text
//! Gid gid
//! NodeEntitiesInfo[] node_entities_info_seq
//!     string<=256 node_namespace
//!     string<=256 node_name
//!     Gid[] reader_gid_seq
//!     Gid[] writer_gid_seq
//! ```
//!
//! Topic and QoS are from rmw_cyclonedds, `rmw_node.cpp`, and rmw_fastrtps,
//! `init_rmw_context_impl.cpp`.
//!
//! # Two layouts
//! A `Gid` is 24 bytes on Humble and 16 later ([`Distro::gid_bytes`]), and nothing in a message says
//! which. A message is taken for one of a layout if it is read to its last byte and, with 24 bytes,
//! the last 8 of every GID are zero. No message is both:
//!
//! - One with 24 bytes has zeros behind its first GUID. Read with 16, they are a count of no nodes,
//!   and at least 8 bytes are left over.
//! - One with 16 bytes has its count of nodes there. Read with 24, the count must be zero, and then
//!   the message ends before the padding does.
//!
//! What is of the other layout is refused with [`GraphMessageError::OtherLayout`].

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

use tsuji_core::Qos;
use tsuji_msg::cdr::{ByteOrder, Reader, Writer};
use tsuji_msg::{CdrError, CdrProblem};

use crate::gid::{Distro, Guid};

/// The name of the topic on DDS: it avoids the conventions of ROS names.
pub const TOPIC: &str = "ros_discovery_info";

/// The name of its type on DDS.
pub const TYPE_NAME: &str = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";

/// The hash of its type with GIDs of 16 bytes, for the distributions that announce one.
pub const TYPE_HASH: &str =
    "RIHS01_91a0593bacdcc50ea9bdcf849a938b128412cc1ea821245c663bcd26f83c295e";

/// The QoS of the writer of each participant: reliable, transient local, keep last 1.
pub const WRITER_QOS: Qos = Qos::LATCHED;

/// The QoS of the reader of each participant: as the writers', but keep all, since the type has no
/// key and all participants write one instance.
pub const READER_QOS: Qos = WRITER_QOS.keep_all();

/// The most nodes of a participant. A message with more is refused.
pub const NODES_MAX: usize = 1024;

/// The most readers of a node, and the most writers. A message with more is refused.
pub const GIDS_MAX: usize = 4096;

/// The most bytes of a namespace or node name, which the type limits.
pub const TEXT_BYTES_MAX: usize = 256;

/// What a participant says of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParticipantEntitiesInfo {
    /// The participant.
    pub participant: Guid,
    /// Its nodes; none if it has none any more.
    pub nodes: Vec<NodeEntitiesInfo>,
}

/// A node and its endpoints, those of its services among them.
///
/// The names are text as the peer wrote it, without control characters; they need not be valid
/// names of ROS 2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeEntitiesInfo {
    /// Its namespace, `/` if it is in none.
    pub node_namespace: String,
    /// Its name in there. Two nodes may have the same.
    pub node_name: String,
    /// Its readers.
    pub readers: Vec<Guid>,
    /// Its writers.
    pub writers: Vec<Guid>,
}

impl ParticipantEntitiesInfo {
    /// Reads a sample with its encapsulation, in either byte order.
    pub fn decode(sample: &[u8], distro: Distro) -> Result<Self, GraphMessageError> {
        let expected = distro.gid_bytes();
        let other = if expected == 16 { 24 } else { 16 };
        read(sample, expected).map_err(|error| match read(sample, other) {
            Ok(_) => GraphMessageError::OtherLayout { found: other, expected },
            Err(_) => error,
        })
    }

    /// Writes a sample with its encapsulation. Refused is what [`Self::decode`] would refuse.
    pub fn encode(&self, distro: Distro, order: ByteOrder) -> Result<Vec<u8>, GraphMessageError> {
        let mut writer = Writer::new(Vec::new(), order)?;
        writer.scalars(&self.participant.to_gid(distro))?;
        check_bound("node_entities_info_seq", writer.position(), self.nodes.len(), NODES_MAX)?;
        writer.length(self.nodes.len())?;
        for (index, node) in self.nodes.iter().enumerate() {
            node.write(&mut writer, distro).map_err(|error| in_node(error, index))?;
        }
        Ok(writer.into_sink())
    }
}

impl NodeEntitiesInfo {
    fn write(&self, writer: &mut Writer<Vec<u8>>, distro: Distro) -> Result<(), GraphMessageError> {
        for (field, text) in [(NAMESPACE, &self.node_namespace), (NAME, &self.node_name)] {
            check_text(field, writer.position(), text)?;
            writer.string(text).map_err(|error| error.within(field))?;
        }
        for (field, guids) in [(READERS, &self.readers), (WRITERS, &self.writers)] {
            check_bound(field, writer.position(), guids.len(), GIDS_MAX)?;
            writer.length(guids.len())?;
            for guid in guids {
                writer.scalars(&guid.to_gid(distro))?;
            }
        }
        Ok(())
    }
}

/// Why a sample is no graph message, or a graph message cannot be written.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum GraphMessageError {
    /// It is whole with GIDs of another size: the participant runs another distribution.
    OtherLayout {
        /// Bytes of a GID in it.
        found: usize,
        /// Bytes of a GID in the distribution that is set.
        expected: usize,
    },
    /// The CDR is broken, or a limit is passed.
    Cdr(CdrError),
    /// Bytes behind a GUID are not zero.
    Padding {
        /// Offset of the GID in the sample.
        offset: usize,
        /// Which field.
        field: String,
    },
    /// A name has a control character.
    Control {
        /// Offset of the text in the sample, its length included.
        offset: usize,
        /// Which field.
        field: String,
    },
    /// Bytes are left when the message is read.
    LeftOver {
        /// How many.
        bytes: usize,
    },
}

impl fmt::Display for GraphMessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("graph message: ")?;
        match self {
            Self::OtherLayout { found, expected } => {
                let of = |bytes| if bytes == 24 { "humble" } else { "iron and later" };
                write!(
                    f,
                    "GIDs of {found} bytes, as in {}; allowed: {expected} bytes, as in {}",
                    of(*found),
                    of(*expected)
                )
            }
            Self::Cdr(error) => error.fmt(f),
            Self::Padding { offset, field } => {
                write!(f, "{field}: byte {offset}: a GID of 24 bytes; allowed: zeros after 16")
            }
            Self::Control { offset, field } => {
                write!(f, "{field}: byte {offset}: a control character; allowed: other characters")
            }
            Self::LeftOver { bytes } => {
                write!(f, "{bytes} bytes after the last node; allowed: none")
            }
        }
    }
}

impl Error for GraphMessageError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Cdr(error) => Some(error),
            _ => None,
        }
    }
}

impl From<CdrError> for GraphMessageError {
    fn from(error: CdrError) -> Self {
        Self::Cdr(error)
    }
}

/// The nodes of all participants.
///
/// A participant is known by its GUID prefix, which its endpoints have as well. When a limit is
/// reached, the update is refused and what was known of its participant stays.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    participants: BTreeMap<[u8; 12], ParticipantEntitiesInfo>,
    nodes: usize,
    endpoints: usize,
}

impl Graph {
    /// The most participants.
    pub const PARTICIPANTS_MAX: usize = 1024;

    /// The most nodes of all participants together.
    pub const NODES_MAX: usize = 65_536;

    /// The most endpoints of all participants together: 4 MiB of GUIDs.
    pub const ENDPOINTS_MAX: usize = 262_144;

    /// Takes what a participant says of its nodes in place of what it said before.
    pub fn update(&mut self, said: ParticipantEntitiesInfo) -> Result<(), GraphFull> {
        let key = said.participant.prefix();
        let before = self.participants.get(&key);
        let count = self.participants.len() + usize::from(before.is_none());
        let (nodes_before, endpoints_before) = before.map_or((0, 0), sizes);
        let (nodes, endpoints) = sizes(&said);
        let nodes = self.nodes - nodes_before + nodes;
        let endpoints = self.endpoints - endpoints_before + endpoints;
        for (what, found, allowed) in [
            ("participants", count, Self::PARTICIPANTS_MAX),
            ("nodes", nodes, Self::NODES_MAX),
            ("endpoints", endpoints, Self::ENDPOINTS_MAX),
        ] {
            if found > allowed {
                return Err(GraphFull { participant: said.participant, what, found, allowed });
            }
        }
        (self.nodes, self.endpoints) = (nodes, endpoints);
        self.participants.insert(key, said);
        Ok(())
    }

    /// Forgets the participant of this GUID, when it has left or was lost. False if it was not known.
    pub fn remove(&mut self, participant: Guid) -> bool {
        let Some(gone) = self.participants.remove(&participant.prefix()) else { return false };
        let (nodes, endpoints) = sizes(&gone);
        self.nodes -= nodes;
        self.endpoints -= endpoints;
        true
    }

    /// Whether this participant has told its nodes, of which there may be none.
    pub fn has_told(&self, participant: Guid) -> bool {
        self.participants.contains_key(&participant.prefix())
    }

    /// All nodes, each with its participant.
    pub fn nodes(&self) -> impl Iterator<Item = (Guid, &NodeEntitiesInfo)> {
        let participants = self.participants.values();
        participants.flat_map(|it| it.nodes.iter().map(move |node| (it.participant, node)))
    }

    /// The node that owns the endpoint, if its participant has said so yet.
    pub fn node_of(&self, endpoint: Guid) -> Option<&NodeEntitiesInfo> {
        let participant = self.participants.get(&endpoint.prefix())?;
        let owns = |node: &&NodeEntitiesInfo| {
            node.readers.contains(&endpoint) || node.writers.contains(&endpoint)
        };
        participant.nodes.iter().find(owns)
    }
}

/// A limit of the [`Graph`] is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GraphFull {
    /// Whose nodes were not taken.
    pub participant: Guid,
    /// What there are too many of.
    pub what: &'static str,
    /// How many there would be.
    pub found: usize,
    /// How many there may be.
    pub allowed: usize,
}

impl fmt::Display for GraphFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { participant, what, found, allowed } = self;
        write!(f, "nodes of participant {participant}: {found} {what}; allowed: {allowed}")
    }
}

impl Error for GraphFull {}

const NAMESPACE: &str = "node_namespace";
const NAME: &str = "node_name";
const READERS: &str = "reader_gid_seq";
const WRITERS: &str = "writer_gid_seq";

/// How many nodes and endpoints there are.
fn sizes(said: &ParticipantEntitiesInfo) -> (usize, usize) {
    let endpoints = said.nodes.iter().map(|node| node.readers.len() + node.writers.len());
    (said.nodes.len(), endpoints.sum())
}

fn read(sample: &[u8], gid_bytes: usize) -> Result<ParticipantEntitiesInfo, GraphMessageError> {
    let mut reader = Reader::new(sample)?;
    let participant = read_guid(&mut reader, "gid", gid_bytes)?;
    // Two lengths of text with their NULs, and two counts, but for padding.
    let count = read_length(&mut reader, "node_entities_info_seq", 16, NODES_MAX)?;
    let mut nodes = Vec::with_capacity(count);
    for index in 0..count {
        let node = read_node(&mut reader, gid_bytes).map_err(|error| in_node(error, index))?;
        nodes.push(node);
    }
    match reader.left() {
        0 => Ok(ParticipantEntitiesInfo { participant, nodes }),
        bytes => Err(GraphMessageError::LeftOver { bytes }),
    }
}

fn read_node(
    reader: &mut Reader<'_>,
    gid_bytes: usize,
) -> Result<NodeEntitiesInfo, GraphMessageError> {
    Ok(NodeEntitiesInfo {
        node_namespace: read_text(reader, NAMESPACE)?,
        node_name: read_text(reader, NAME)?,
        readers: read_guids(reader, READERS, gid_bytes)?,
        writers: read_guids(reader, WRITERS, gid_bytes)?,
    })
}

fn read_text(reader: &mut Reader<'_>, field: &str) -> Result<String, GraphMessageError> {
    let offset = reader.offset();
    let text = reader.string().map_err(|error| error.within(field))?;
    check_text(field, offset, text)?;
    Ok(text.to_owned())
}

fn read_guids(
    reader: &mut Reader<'_>,
    field: &str,
    gid_bytes: usize,
) -> Result<Vec<Guid>, GraphMessageError> {
    let count = read_length(reader, field, gid_bytes, GIDS_MAX)?;
    (0..count).map(|_| read_guid(reader, field, gid_bytes)).collect()
}

fn read_guid(
    reader: &mut Reader<'_>,
    field: &str,
    gid_bytes: usize,
) -> Result<Guid, GraphMessageError> {
    let offset = reader.offset();
    let gid = reader.scalar_bytes::<u8>(gid_bytes).map_err(|error| error.within(field))?;
    Guid::from_gid(gid)
        .ok_or_else(|| GraphMessageError::Padding { offset, field: field.to_owned() })
}

/// A count of elements that take at least `element_min` bytes each.
fn read_length(
    reader: &mut Reader<'_>,
    field: &str,
    element_min: usize,
    bound: usize,
) -> Result<usize, GraphMessageError> {
    let offset = reader.offset();
    let count = reader.length(element_min).map_err(|error| error.within(field))?;
    check_bound(field, offset, count, bound)?;
    Ok(count)
}

fn check_text(field: &str, offset: usize, text: &str) -> Result<(), GraphMessageError> {
    check_bound(field, offset, text.len(), TEXT_BYTES_MAX)?;
    if text.contains(char::is_control) {
        let offset = length_offset(offset);
        return Err(GraphMessageError::Control { offset, field: field.to_owned() });
    }
    Ok(())
}

fn check_bound(
    field: &str,
    offset: usize,
    length: usize,
    bound: usize,
) -> Result<(), GraphMessageError> {
    if length <= bound {
        return Ok(());
    }
    let problem = CdrProblem::Bound { length, bound };
    Err(CdrError::new(length_offset(offset), problem).within(field).into())
}

/// Where the length of a text or sequence is, behind the padding at `offset`.
fn length_offset(offset: usize) -> usize {
    offset.next_multiple_of(4)
}

/// The error of a field seen from the whole message.
fn in_node(error: GraphMessageError, index: usize) -> GraphMessageError {
    let sequence = "node_entities_info_seq";
    let whole = |field: String| format!("{sequence}[{index}].{field}");
    match error {
        GraphMessageError::Cdr(error) => error.within_element(index).within(sequence).into(),
        GraphMessageError::Padding { offset, field } => {
            GraphMessageError::Padding { offset, field: whole(field) }
        }
        GraphMessageError::Control { offset, field } => {
            GraphMessageError::Control { offset, field: whole(field) }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {

    use proptest::prelude::*;
    use tsuji_core::{Reliability, rxo};
    use tsuji_msg::{Definition, Kind, Resolver, TypeName, Unreadable, load};

    use super::*;
    use crate::names::{DdsTopic, DdsType};

    const PREFIX: [u8; 12] = *b"\x01\x10\xa1\xb2\xc3\xd4\xe5\xf6\x01\x02\x03\x04";

    fn guid(entity: u32) -> Guid {
        Guid::new(PREFIX, entity.to_be_bytes())
    }

    fn talker() -> ParticipantEntitiesInfo {
        let node = NodeEntitiesInfo {
            node_namespace: "/".to_owned(),
            node_name: "talker".to_owned(),
            readers: vec![],
            writers: vec![guid(0x1503)],
        };
        ParticipantEntitiesInfo { participant: guid(0x1c1), nodes: vec![node] }
    }

    /// The message of [`talker`] as CDR lays it out, all of its parts 4-byte aligned.
    fn known(order: ByteOrder, padding: &[u8]) -> Vec<u8> {
        let number = |number: u32| match order {
            ByteOrder::Little => number.to_le_bytes(),
            ByteOrder::Big => number.to_be_bytes(),
        };
        let parts: [&[u8]; 12] = [
            &order.header(),
            &guid(0x1c1).0,
            padding,
            &number(1),
            &number(2),
            b"/\0\0\0",
            &number(7),
            b"talker\0\0",
            &number(0),
            &number(1),
            &guid(0x1503).0,
            padding,
        ];
        parts.concat()
    }

    #[test]
    fn known_messages() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for (distro, padding) in [(Distro::Jazzy, &[][..]), (Distro::Humble, &[0; 8][..])] {
                let sample = known(order, padding);
                assert_eq!(talker().encode(distro, order).unwrap(), sample);
                assert_eq!(ParticipantEntitiesInfo::decode(&sample, distro), Ok(talker()));
            }
        }
    }

    #[test]
    fn topic_type_and_qos() {
        assert_eq!(DdsTopic::demangle(TOPIC), DdsTopic::NotRos(TOPIC));
        let name: TypeName = "rmw_dds_common/msg/ParticipantEntitiesInfo".parse().unwrap();
        assert_eq!(DdsType::Message(name).to_string(), TYPE_NAME);
        assert_eq!(WRITER_QOS.reliability, Reliability::Reliable);
        assert_eq!(rxo::check(&WRITER_QOS, &READER_QOS), Ok(()));
    }

    #[test]
    fn the_hash_is_that_of_the_definition() {
        struct Definitions;
        impl Resolver for Definitions {
            fn find(
                &self,
                _: Kind,
                _: &str,
                name: &str,
            ) -> Result<Option<Definition<'_>>, Unreadable> {
                let text = match name {
                    "Gid" => "char[16] data",
                    "NodeEntitiesInfo" => {
                        "string<=256 node_namespace\nstring<=256 node_name\n\
                         Gid[] reader_gid_seq\nGid[] writer_gid_seq"
                    }
                    "ParticipantEntitiesInfo" => {
                        "Gid gid\nNodeEntitiesInfo[] node_entities_info_seq"
                    }
                    _ => return Ok(None),
                };
                Ok(Some(text.into()))
            }
        }
        let ty = load("rmw_dds_common/msg/ParticipantEntitiesInfo", &Definitions).unwrap();
        assert_eq!(ty.hash(), TYPE_HASH);
    }

    #[track_caller]
    fn refused(sample: &[u8], distro: Distro, expect: &str) {
        let error = ParticipantEntitiesInfo::decode(sample, distro).unwrap_err();
        assert_eq!(error.to_string(), expect);
    }

    #[test]
    fn the_other_layout_is_refused() {
        let short = known(ByteOrder::Little, &[]);
        let long = known(ByteOrder::Little, &[0; 8]);
        refused(
            &short,
            Distro::Humble,
            "graph message: GIDs of 16 bytes, as in iron and later; \
             allowed: 24 bytes, as in humble",
        );
        refused(
            &long,
            Distro::Jazzy,
            "graph message: GIDs of 24 bytes, as in humble; \
             allowed: 16 bytes, as in iron and later",
        );
    }

    #[test]
    fn broken_messages_tell_where() {
        let sample = known(ByteOrder::Little, &[]);
        refused(
            &sample[..30],
            Distro::Jazzy,
            "graph message: node_entities_info_seq: byte 24: \
             a length of 1 is more than the 6 bytes left can hold",
        );
        refused(
            &sample[..60],
            Distro::Jazzy,
            "graph message: node_entities_info_seq[0].writer_gid_seq: byte 52: \
             a length of 1 is more than the 8 bytes left can hold",
        );
        refused(
            &[&sample[..], &[0; 4]].concat(),
            Distro::Jazzy,
            "graph message: 4 bytes after the last node; allowed: none",
        );
        let mut control = sample.clone();
        control[40] = 0x1b;
        refused(
            &control,
            Distro::Jazzy,
            "graph message: node_entities_info_seq[0].node_name: byte 32: \
             a control character; allowed: other characters",
        );
        refused(
            &known(ByteOrder::Little, &[1; 8]),
            Distro::Humble,
            "graph message: gid: byte 4: a GID of 24 bytes; allowed: zeros after 16",
        );
    }

    #[test]
    fn limits() {
        let check = |node: NodeEntitiesInfo, expect: &str| {
            let said = ParticipantEntitiesInfo { nodes: vec![node], ..talker() };
            let error = said.encode(Distro::Jazzy, ByteOrder::Little).unwrap_err();
            assert_eq!(error.to_string(), expect);
        };
        let node = NodeEntitiesInfo::default();
        check(
            NodeEntitiesInfo { node_name: "a".repeat(257), ..node.clone() },
            "graph message: node_entities_info_seq[0].node_name: byte 32: \
             a length of 257; allowed are at most 256",
        );
        check(
            NodeEntitiesInfo { writers: vec![guid(1); GIDS_MAX + 1], ..node.clone() },
            "graph message: node_entities_info_seq[0].writer_gid_seq: byte 44: \
             a length of 4097; allowed are at most 4096",
        );
        let said = ParticipantEntitiesInfo { nodes: vec![node; NODES_MAX + 1], ..talker() };
        assert!(said.encode(Distro::Jazzy, ByteOrder::Little).is_err());
        let mut many = vec![0, 1, 0, 0];
        many.extend(guid(0x1c1).0);
        many.extend(u32::to_le_bytes(1025));
        many.extend([0; 16 * 1025]);
        refused(
            &many,
            Distro::Jazzy,
            "graph message: node_entities_info_seq: byte 20: \
             a length of 1025; allowed are at most 1024",
        );
    }

    #[test]
    fn the_graph_knows_who_owns_what() {
        let mut graph = Graph::default();
        assert_eq!(graph.node_of(guid(0x1503)), None);
        graph.update(talker()).unwrap();
        assert_eq!(graph.nodes().collect::<Vec<_>>(), [(guid(0x1c1), &talker().nodes[0])]);
        assert_eq!(graph.node_of(guid(0x1503)).unwrap().node_name, "talker");
        assert_eq!(graph.node_of(guid(0x1603)), None);
        assert_eq!(graph.node_of(Guid([0; 16])), None);
        let two = NodeEntitiesInfo { readers: vec![guid(0x1604)], ..talker().nodes[0].clone() };
        let said =
            ParticipantEntitiesInfo { nodes: vec![NodeEntitiesInfo::default(), two], ..talker() };
        graph.update(said).unwrap();
        assert_eq!(graph.nodes().count(), 2);
        assert_eq!(graph.node_of(guid(0x1604)).unwrap().node_name, "talker");
        assert!(graph.remove(guid(0x1c1)));
        assert!(!graph.remove(guid(0x1c1)));
        assert_eq!(graph.nodes().count(), 0);
        assert_eq!((graph.nodes, graph.endpoints), (0, 0));
    }

    #[test]
    fn a_full_graph_refuses_and_keeps_what_it_has() {
        let of = |number: usize, nodes: usize| {
            let mut prefix = [0; 12];
            prefix[..8].copy_from_slice(&number.to_be_bytes());
            ParticipantEntitiesInfo {
                participant: Guid::new(prefix, Guid::PARTICIPANT),
                nodes: vec![NodeEntitiesInfo::default(); nodes],
            }
        };
        let mut graph = Graph::default();
        for number in 0..Graph::PARTICIPANTS_MAX {
            graph.update(of(number, 1)).unwrap();
        }
        assert_eq!(
            graph.update(of(5000, 1)).unwrap_err().to_string(),
            "nodes of participant 000000000000138800000000:000001c1: \
             1025 participants; allowed: 1024"
        );
        for number in 0..63 {
            graph.update(of(number, NODES_MAX)).unwrap();
        }
        let error = graph.update(of(63, NODES_MAX)).unwrap_err();
        assert_eq!((error.what, error.found), ("nodes", 64 * 1024 + 960));
        assert_eq!(graph.nodes().filter(|(it, _)| *it == of(63, 1).participant).count(), 1);
        graph.update(of(0, 1)).unwrap();
        graph.update(of(63, NODES_MAX)).unwrap();
    }

    fn any_message() -> impl Strategy<Value = ParticipantEntitiesInfo> {
        let guids = || prop::collection::vec(any::<[u8; 16]>().prop_map(Guid), 0..4);
        let node = ("/[a-z/]{0,12}", "[a-zé_]{0,12}", guids(), guids()).prop_map(
            |(node_namespace, node_name, readers, writers)| NodeEntitiesInfo {
                node_namespace,
                node_name,
                readers,
                writers,
            },
        );
        (any::<[u8; 16]>(), prop::collection::vec(node, 0..4)).prop_map(|(participant, nodes)| {
            ParticipantEntitiesInfo { participant: Guid(participant), nodes }
        })
    }

    proptest! {
        #[test]
        fn messages_read_back_and_are_of_one_layout(
            said in any_message(),
            at in 0..Distro::ALL.len(),
            order in prop::sample::select(vec![ByteOrder::Little, ByteOrder::Big]),
        ) {
            let distro = Distro::ALL[at];
            let sample = said.encode(distro, order).unwrap();
            prop_assert_eq!(ParticipantEntitiesInfo::decode(&sample, distro), Ok(said));
            let other = if distro == Distro::Humble { Distro::Jazzy } else { Distro::Humble };
            prop_assert_eq!(
                ParticipantEntitiesInfo::decode(&sample, other),
                Err(GraphMessageError::OtherLayout {
                    found: distro.gid_bytes(),
                    expected: other.gid_bytes(),
                })
            );
        }

        #[test]
        fn bent_messages_are_read_or_refused(
            said in any_message(),
            at: prop::sample::Index,
            byte: u8,
            cut: prop::sample::Index,
        ) {
            let mut sample = said.encode(Distro::Jazzy, ByteOrder::Little).unwrap();
            let index = at.index(sample.len());
            sample[index] = byte;
            for sample in [&sample[..], &sample[..cut.index(sample.len())]] {
                for distro in [Distro::Humble, Distro::Jazzy] {
                    let _ = ParticipantEntitiesInfo::decode(sample, distro);
                }
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let sample = [&[0, 1, 0, 0], &bytes[..]].concat();
            let _ = ParticipantEntitiesInfo::decode(&sample, Distro::Jazzy);
            let _ = ParticipantEntitiesInfo::decode(&bytes, Distro::Humble);
        }
    }
}

//! What rmw_zenoh writes: the keys of data, the tokens by which endpoints are found, the attachment
//! of a sample. As its design document has it (`rmw_zenoh/docs/design.md`).
//!
//! Names of ROS come out as rmw_zenoh has them. A character that no name of ROS has, and that a key
//! may not have, becomes `=` and two hexadecimal digits for each byte.

use std::fmt::Write as _;
use std::time::Duration;

use tsuji_core::{Durability, History, Liveliness, Qos, Reliability};
use tsuji_engine::{Guid, Related};

/// The root of rmw_zenoh's tokens.
pub(crate) const TOKENS: &str = "@ros2_lv";

/// The root of the tokens by which endpoints of tsuji find each other. They are laid out alike, and rmw_zenoh does not
/// see them.
pub(crate) const OWN_TOKENS: &str = "@tsuji_lv";

/// The hash of a type whose description nobody has.
pub(crate) const NO_HASH: &str = "TypeHashNotSupported";

/// The depth that a token leaves out.
const DEPTH_DEFAULT: u32 = 42;

/// What an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Writer,
    Reader,
}

/// What must fit for a writer and a reader to match.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Announced {
    pub(crate) topic: String,
    pub(crate) type_name: String,
    pub(crate) hash: String,
    pub(crate) qos: Qos,
}

impl Announced {
    /// Whether a reader gets what this writer sends.
    pub(crate) fn reaches(&self, reader: &Self) -> bool {
        self.is_same(reader) && tsuji_core::rxo::check(&self.qos, &reader.qos).is_ok()
    }

    /// Whether the samples, or requests, of both go by one key.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.topic, &self.type_name, &self.hash) == (&other.topic, &other.type_name, &other.hash)
    }

    /// The key by which the samples go.
    pub(crate) fn data_key(&self, domain: u32) -> String {
        let topic = self.topic.trim_matches('/');
        let chunks: Vec<String> = topic.split('/').map(chunk).collect();
        format!("{domain}/{}/{}/{}", chunks.join("/"), mangled(&self.type_name), chunk(&self.hash))
    }
}

/// A token, by which a node or an endpoint is there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) domain: u32,
    /// Of the session, as Zenoh writes it.
    pub(crate) session: String,
    pub(crate) id: u32,
    pub(crate) node: NodeName,
    pub(crate) entity: Entity,
}

/// Whose it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeName {
    pub(crate) id: u32,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// What is there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entity {
    Node,
    Writer(Announced),
    Reader(Announced),
    Server(Announced),
    Client(Announced),
}

impl Entity {
    pub(crate) fn endpoint(kind: Kind, announced: Announced) -> Self {
        match kind {
            Kind::Writer => Self::Writer(announced),
            Kind::Reader => Self::Reader(announced),
        }
    }

    pub(crate) fn announced(&self) -> Option<&Announced> {
        match self {
            Self::Node => None,
            Self::Writer(it) | Self::Reader(it) | Self::Server(it) | Self::Client(it) => Some(it),
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Node => "NN",
            Self::Writer(_) => "MP",
            Self::Reader(_) => "MS",
            Self::Server(_) => "SS",
            Self::Client(_) => "SC",
        }
    }
}

/// What names of endpoints have room for.
pub(crate) const ID_MAX: u32 = 0xff_ffff;

/// What a graph message has room for.
const NAME_BYTES_MAX: usize = 255;

impl Token {
    pub(crate) fn to_key(&self, root: &str) -> String {
        let Self { domain, session, id, node, entity } = self;
        let (word, node_id, namespace) = (entity.word(), node.id, mangled(&node.namespace));
        let name = mangled(&node.name);
        let head = format!("{root}/{domain}/{session}/{node_id}/{id}/{word}/%/{namespace}/{name}");
        match entity.announced() {
            None => head,
            Some(Announced { topic, type_name, hash, qos }) => format!(
                "{head}/{}/{}/{}/{}",
                mangled(topic),
                mangled(type_name),
                chunk(hash),
                qos_text(qos)
            ),
        }
    }

    /// `None` for what is not understood.
    pub(crate) fn read(root: &str, key: &str) -> Option<Self> {
        let parts: Vec<&str> = key.split('/').collect();
        let (head, rest) = parts.split_at_checked(9)?;
        let [found, domain, session, node_id, id, word, _enclave, namespace, name] = head[..]
        else {
            return None;
        };
        let announced = || {
            // Newer versions of rmw_zenoh say more behind.
            let [topic, type_name, hash, qos, ..] = rest[..] else { return None };
            Some(Announced {
                topic: plain(topic)?,
                type_name: plain(type_name)?,
                hash: plain(hash)?,
                qos: read_qos(qos)?,
            })
        };
        let entity = match word {
            "NN" if rest.is_empty() => Entity::Node,
            "MP" => Entity::Writer(announced()?),
            "MS" => Entity::Reader(announced()?),
            "SS" => Entity::Server(announced()?),
            "SC" => Entity::Client(announced()?),
            _ => return None,
        };
        let number = |text: &str| text.parse::<u32>().ok();
        let text = |text: &str| {
            let is_fit =
                |it: &String| it.len() <= NAME_BYTES_MAX && !it.chars().any(char::is_control);
            plain(text).filter(is_fit)
        };
        let node =
            NodeName { id: number(node_id)?, namespace: text(namespace)?, name: text(name)? };
        let token = Self {
            domain: number(domain)?,
            session: session.to_owned(),
            id: number(id).filter(|it| *it <= ID_MAX)?,
            node,
            entity,
        };
        (found == root).then_some(token)
    }
}

/// What goes with each sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) number: i64,
    pub(crate) source_ns: i64,
    pub(crate) writer: Guid,
}

/// The length of the name, which stands before it.
const NAME_LEN: u8 = 16;

impl Attachment {
    pub(crate) const LEN: usize = 33;

    /// With what a sample relates to, as processes of tsuji say it to each other.
    const LEN_RELATED: usize = Self::LEN + 24;

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.source_ns.to_le_bytes());
        bytes[16] = NAME_LEN;
        bytes[17..].copy_from_slice(&self.writer);
        bytes
    }

    pub(crate) fn to_bytes_with(self, related: Option<Related>) -> Vec<u8> {
        let mut bytes = self.to_bytes().to_vec();
        if let Some(Related { name, number }) = related {
            bytes.extend_from_slice(&name);
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LEN] = bytes.try_into().ok()?;
        let number = |at: usize| bytes[at..at + 8].try_into().ok().map(i64::from_le_bytes);
        let attachment = Self {
            number: number(0)?,
            source_ns: number(8)?,
            writer: bytes[17..].try_into().ok()?,
        };
        (bytes[16] == NAME_LEN).then_some(attachment)
    }

    pub(crate) fn read_with(bytes: &[u8]) -> Option<(Self, Option<Related>)> {
        let (own, more) = bytes.split_at_checked(Self::LEN)?;
        let attachment = Self::read(own)?;
        match bytes.len() {
            Self::LEN => Some((attachment, None)),
            Self::LEN_RELATED => {
                let (name, number) = more.split_first_chunk::<16>()?;
                let number = i64::from_le_bytes(number.try_into().ok()?);
                Some((attachment, Some(Related { name: *name, number })))
            }
            _ => None,
        }
    }
}

/// As what rmw_zenoh_cpp calls the endpoint of a token in its attachments: XXH3 of the token, 128 bits, without what
/// newer versions say behind.
pub(crate) fn gid_of(token: &str) -> Guid {
    let end = token.match_indices('/').nth(12).map_or(token.len(), |(at, _)| at);
    let token = &token[..end];
    twox_hash::XxHash3_128::oneshot(token.as_bytes()).to_le_bytes()
}

/// A name as one chunk of a key, with `%` for `/`.
fn mangled(name: &str) -> String {
    if name.is_empty() {
        return "=".to_owned();
    }
    let parts: Vec<String> = name.split('/').map(escaped).collect();
    parts.join("%")
}

/// A part of a name as one chunk of a key.
fn chunk(part: &str) -> String {
    if part.is_empty() { "=".to_owned() } else { escaped(part) }
}

fn escaped(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"_:-.~{}".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "={byte:02x}");
        }
    }
    text
}

/// What [`mangled`] was made of.
fn plain(text: &str) -> Option<String> {
    if text == "=" {
        return Some(String::new());
    }
    let mut name = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => name.push(b'/'),
            b'=' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                name.push(u8::try_from(high * 16 + low).ok()?);
            }
            byte => name.push(byte),
        }
    }
    String::from_utf8(name).ok()
}

/// What is the default is left out.
fn qos_text(qos: &Qos) -> String {
    let reliability = match qos.reliability {
        Reliability::Reliable => "",
        Reliability::BestEffort => "2",
    };
    let durability = match qos.durability {
        Durability::Volatile => "",
        Durability::TransientLocal => "1",
    };
    let history = match qos.history {
        History::KeepLast(DEPTH_DEFAULT) => ",".to_owned(),
        History::KeepLast(depth) => format!(",{depth}"),
        History::KeepAll => "2,".to_owned(),
    };
    let liveliness = match qos.liveliness {
        Liveliness::Automatic => "",
        Liveliness::ManualByTopic => "3",
    };
    format!(
        "{reliability}:{durability}:{history}:{}:{}:{liveliness},{}",
        period_text(qos.deadline),
        period_text(qos.lifespan),
        period_text(qos.liveliness_lease)
    )
}

fn period_text(period: Option<Duration>) -> String {
    match period {
        None => ",".to_owned(),
        Some(period) => format!("{},{}", period.as_secs(), period.subsec_nanos()),
    }
}

fn read_qos(text: &str) -> Option<Qos> {
    let parts: Vec<&str> = text.split(':').collect();
    let [reliability, durability, history, deadline, lifespan, liveliness] = parts[..] else {
        return None;
    };
    let (kind, depth) = history.split_once(',')?;
    let depth = if depth.is_empty() { DEPTH_DEFAULT } else { depth.parse().ok()? };
    let (manner, lease) = liveliness.split_once(',')?;
    Some(Qos {
        // 0 is the system's default.
        reliability: match reliability {
            "" | "0" | "1" => Reliability::Reliable,
            "2" => Reliability::BestEffort,
            _ => return None,
        },
        durability: match durability {
            "" | "0" | "2" => Durability::Volatile,
            "1" => Durability::TransientLocal,
            _ => return None,
        },
        history: match kind {
            "" | "0" | "1" => History::KeepLast(depth),
            "2" => History::KeepAll,
            _ => return None,
        },
        deadline: read_period(deadline)?,
        lifespan: read_period(lifespan)?,
        liveliness: match manner {
            "" | "0" | "1" => Liveliness::Automatic,
            "3" => Liveliness::ManualByTopic,
            _ => return None,
        },
        liveliness_lease: read_period(lease)?,
    })
}

/// Inside, `None` is infinite.
fn read_period(text: &str) -> Option<Option<Duration>> {
    let (seconds, nanoseconds) = text.split_once(',')?;
    // Each is left out where it is that of infinite.
    let number = |text: &str, left_out: u64| {
        if text.is_empty() { Some(left_out) } else { text.parse().ok() }
    };
    let infinite = Qos::DURATION_MAX;
    let seconds = number(seconds, infinite.as_secs() + 1)?;
    let nanoseconds = number(nanoseconds, infinite.subsec_nanos().into())?;
    let nanoseconds = u32::try_from(nanoseconds).ok().filter(|it| *it < 1_000_000_000)?;
    let period = Duration::new(seconds, nanoseconds);
    // ROS's infinite is the largest number of nanoseconds.
    let is_finite = !period.is_zero() && period <= Qos::DURATION_MAX;
    Some(is_finite.then_some(period))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

    fn chatter() -> Announced {
        Announced {
            topic: "/chatter".to_owned(),
            type_name: "std_msgs::msg::dds_::String_".to_owned(),
            hash: HASH.to_owned(),
            qos: Qos::DEFAULT,
        }
    }

    fn token(announced: Announced) -> Token {
        let node = NodeName { id: 0, namespace: "/".to_owned(), name: "talker".to_owned() };
        let entity = Entity::Writer(announced);
        Token { domain: 0, session: "aabb".to_owned(), id: 10, node, entity }
    }

    #[test]
    fn keys_are_those_that_were_captured() {
        assert_eq!(chatter().data_key(0), format!("0/chatter/std_msgs::msg::dds_::String_/{HASH}"));
        let captured = format!(
            "@ros2_lv/0/aabb/0/10/MP/%/%/talker/%chatter/std_msgs::msg::dds_::String_/{HASH}/::,10:,:,:,,"
        );
        let written = token(chatter());
        assert_eq!(written.to_key(TOKENS), captured);
        assert_eq!(Token::read(TOKENS, &captured), Some(written.clone()));
        assert_eq!(Token::read(OWN_TOKENS, &captured), None);
        let node = "@ros2_lv/0/aabb/0/0/NN/%/%robot/talker";
        let read = Token::read(TOKENS, node).unwrap();
        assert_eq!((&*read.node.namespace, &read.entity), ("/robot", &Entity::Node));
        assert_eq!(read.to_key(TOKENS), node);
        let longer = format!("{captured}/backends:cpu:");
        assert_eq!(Token::read(TOKENS, &longer), Some(written.clone()));
        assert_eq!(gid_of(&longer), gid_of(&captured));
        let server = captured.replace("/MP/", "/SS/");
        let expect = Token { entity: Entity::Server(chatter()), ..written };
        assert_eq!(Token::read(TOKENS, &server), Some(expect));
    }

    #[test]
    fn what_is_no_endpoint_is_no_token() {
        for key in [
            "",
            "@ros2_lv",
            "@ros2_lv/0/aabb/0/0/NN/%/%",
            "@ros2_lv/0/aabb/0/0/NN/%/%/talker/more",
            "@ros2_lv/0/aabb/0/1/XX/%/%/n/%s/t/h/::,10:,:,:,,",
            "@ros2_lv/0/aabb/0/1/MP/%/%/n/%s/t/h/::,10:,:,,",
            "@ros2_lv/0/aabb/0/1/MP/%/%/n/%s=4/t/h/::,10:,:,:,,",
            "@ros2_lv/0/aabb/0/1/MP/%/%/n=0a/%s/t/h/::,10:,:,:,,",
            "@ros2_lv/0/aabb/0/16777216/MP/%/%/n/%s/t/h/::,10:,:,:,,",
            "@ros2_lv/0/aabb/-1/1/MP/%/%/n/%s/t/h/::,10:,:,:,,",
            "other/0/aabb/0/1/MP/%/%/n/%s/t/h/::,10:,:,:,,",
        ] {
            assert_eq!(Token::read(TOKENS, key), None, "{key}");
        }
    }

    #[test]
    fn every_qos_reads_back() {
        let period = Some(Duration::new(3, 7));
        let other = Qos {
            history: History::KeepAll,
            reliability: Reliability::BestEffort,
            durability: Durability::TransientLocal,
            deadline: period,
            lifespan: period,
            liveliness: Liveliness::ManualByTopic,
            liveliness_lease: period,
        };
        assert_eq!(qos_text(&other), "2:1:2,:3,7:3,7:3,3,7");
        let as_default = Qos { history: History::KeepLast(42), ..Qos::DEFAULT };
        for qos in [Qos::DEFAULT, Qos::SENSOR_DATA, as_default, other] {
            assert_eq!(read_qos(&qos_text(&qos)), Some(qos));
        }
        let infinite = "::,10:9223372036,854775807:,:,9223372036,854775807";
        assert_eq!(read_qos(infinite), Some(Qos::DEFAULT));
    }

    #[test]
    fn any_name_makes_a_key_and_reads_back() {
        for name in ["", "/", "a//b", "/a*b?c#d$e@f%g=h i", "\u{7af9}/\u{8fbb}", "@x"] {
            let announced = Announced { topic: name.to_owned(), ..chatter() };
            let token = token(announced.clone());
            let key = token.to_key(OWN_TOKENS);
            assert_eq!(Token::read(OWN_TOKENS, &key), Some(token.clone()), "{name}");
            for key in [key, announced.data_key(7)] {
                assert!(zenoh::key_expr::KeyExpr::new(key.clone()).is_ok(), "{key}");
            }
        }
    }

    #[test]
    fn an_attachment_is_laid_out_as_captured() {
        let attachment = Attachment { number: 2, source_ns: -3, writer: [9; 16] };
        let bytes = attachment.to_bytes();
        assert_eq!(bytes[..9], [2, 0, 0, 0, 0, 0, 0, 0, 0xfd]);
        assert_eq!(bytes[16..19], [0x10, 9, 9]);
        assert_eq!(Attachment::read(&bytes), Some(attachment));
        assert_eq!(Attachment::read(&bytes[1..]), None);
        let mut other = bytes;
        other[16] = 24;
        assert_eq!(Attachment::read(&other), None);
    }

    #[test]
    fn what_a_sample_relates_to_stands_behind() {
        let attachment = Attachment { number: 2, source_ns: 3, writer: [9; 16] };
        let related = Some(Related { name: [7; 16], number: -5 });
        for related in [None, related] {
            let bytes = attachment.to_bytes_with(related);
            assert_eq!(Attachment::read_with(&bytes), Some((attachment, related)));
            let (longer, shorter) = ([&bytes[..], &[0]].concat(), &bytes[..bytes.len() - 1]);
            assert_eq!(Attachment::read_with(&longer), None);
            assert_eq!(Attachment::read_with(shorter), None);
        }
        assert_eq!(Attachment::read_with(&[]), None);
    }

    /// The values are of rmw_zenoh_cpp's own code.
    #[test]
    fn an_endpoint_of_rmw_zenoh_is_called_by_the_hash_of_its_token() {
        let hash = |text: &str| u128::from_le_bytes(gid_of(text));
        assert_eq!(hash("abc"), 0x06b0_5ab6_733a_6185_78af_5f94_892f_3950);
        let short = token(chatter()).to_key(TOKENS);
        assert_eq!((short.len(), hash(&short)), (157, 0x89c1_8812_56c3_42f4_a011_619d_f1ce_d94c));
        let long = format!(
            "@ros2_lv/0/aac3178e146ba6f1fc6e6a4085e77f21/0/10/MP/%/%a_rather_long_namespace%of_a_robot/\
             talker_with_a_long_name/%chatter%of%a%topic%with%a%long%name/\
             example_interfaces::msg::dds_::UInt64MultiArray_/{HASH}/::,10:,:,:,,"
        );
        assert_eq!((long.len(), hash(&long)), (284, 0xccd0_65b2_0747_a9cb_43cc_9c91_ef9f_7410));
    }
}

//! What `rosbag2` says of a recording as a whole: in the `metadata.yaml` of a folder, and within a file of MCAP in the record of
//! the name [`RECORD`].

use std::path::{Component, Path};

use tsuji_core::Qos;
use tsuji_msg::yaml::{self, Node, NodeKind};

use crate::offered;

/// What a folder has its list in.
pub(crate) const LIST: &str = "metadata.yaml";

/// The record that has the same within a file, and the key of it.
pub(crate) const RECORD: (&str, &str) = ("rosbag2", "serialized_metadata");

/// Bytes of a list. A longer one is refused.
pub(crate) const LIST_BYTES_MAX: u64 = 64 << 20;

/// What is taken from a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    /// The files, in their order, relative to the folder.
    pub(crate) files: Vec<String>,
    pub(crate) topics: Vec<Listed>,
    /// How the messages or the files are packed, if they are.
    pub(crate) packing: Packing,
    /// Such as `jazzy`; empty if it does not say.
    pub(crate) distro: String,
}

/// A topic of a list.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) type_hash: String,
    pub(crate) offered: Vec<Qos>,
}

/// How `rosbag2` packed a recording, beside what MCAP does itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Packing {
    #[default]
    None,
    /// Each message, by this format.
    Messages(String),
    /// Each file, by this format.
    Files(String),
}

impl List {
    /// Reads a list. The error says what is wrong with it, and where.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let root = yaml::parse(text).map_err(|error| error.to_string())?;
        // Within a file it stands by itself.
        let list = get(&root, "rosbag2_bagfile_information").unwrap_or(&root);
        let text = |key: &str| get(list, key).map(scalar).unwrap_or_default();
        let format = text("compression_format");
        let packing = match text("compression_mode").to_ascii_uppercase().as_str() {
            "" | "NONE" => Packing::None,
            "MESSAGE" => Packing::Messages(format.to_owned()),
            "FILE" => Packing::Files(format.to_owned()),
            other => {
                return Err(format!("compression_mode \"{other}\"; allowed: NONE, MESSAGE, FILE"));
            }
        };
        let topics = items(get(list, "topics_with_message_count")).filter_map(Listed::of);
        Ok(Self {
            files: items(get(list, "relative_file_paths"))
                .map(|it| scalar(it).to_owned())
                .collect(),
            topics: topics.collect(),
            packing,
            distro: text("ros_distro").to_owned(),
        })
    }

    /// Why the files are not to be opened, if so.
    pub(crate) fn refusal(&self) -> Option<String> {
        if self.files.is_empty() {
            return Some("names no file in relative_file_paths".to_owned());
        }
        if let Some(name) = self.files.iter().find(|it| !it.ends_with(".mcap")) {
            return Some(match name.strip_suffix(".zstd").or_else(|| name.strip_suffix(".lz4")) {
                Some(inner) if inner.ends_with(".mcap") => format!(
                    "names {name}, which is packed as a whole; unpack it as {inner}, such as by `zstd -d`, and name that"
                ),
                _ => format!("names {name}; played: files of MCAP that are not packed as a whole"),
            });
        }
        let inside =
            |it: &str| Path::new(it).components().all(|it| matches!(it, Component::Normal(_)));
        let outside = self.files.iter().find(|it| !inside(it));
        outside.map(|name| format!("names {name}; allowed: files in its folder"))
    }
}

impl Listed {
    fn of(node: &Node) -> Option<Self> {
        let topic = get(node, "topic_metadata")?;
        let text = |key: &str| get(topic, key).map(scalar).unwrap_or_default().to_owned();
        let offered = match get(topic, "offered_qos_profiles") {
            // Since Jazzy it is a list; before, a text that has one in it.
            Some(Node { kind: NodeKind::Sequence(profiles), .. }) => offered::from_nodes(profiles),
            Some(node) => offered::from_yaml(scalar(node)),
            None => Vec::new(),
        };
        Some(Self {
            name: text("name"),
            type_name: text("type"),
            type_hash: text("type_description_hash"),
            offered,
        })
    }
}

/// The value of a name in a mapping.
pub(crate) fn get<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    let NodeKind::Mapping(entries) = &node.kind else { return None };
    entries.iter().find(|(it, _)| it == name).map(|(_, value)| value)
}

/// The text of a scalar, and nothing of anything else.
pub(crate) fn scalar(node: &Node) -> &str {
    match &node.kind {
        NodeKind::Scalar { text, plain: true } if text == "~" || text == "null" => "",
        NodeKind::Scalar { text, .. } => text,
        _ => "",
    }
}

fn items(node: Option<&Node>) -> impl Iterator<Item = &Node> {
    let items = node.map(|it| match &it.kind {
        NodeKind::Sequence(items) => items.as_slice(),
        _ => &[],
    });
    items.unwrap_or_default().iter()
}

#[cfg(test)]
mod tests {
    use tsuji_core::{Durability, History};

    use super::*;

    /// A list whose one topic has offered what stands in `offered`.
    fn list(version: u32, offered: &str) -> String {
        format!(
            "rosbag2_bagfile_information:\n  version: {version}\n  storage_identifier: mcap\n  duration:\n    \
             nanoseconds: 0\n  starting_time:\n    nanoseconds_since_epoch: 1\n  message_count: 1\n  \
             topics_with_message_count:\n    - topic_metadata:\n        name: /map\n        type: std_msgs/msg/String\n        \
             serialization_format: cdr\n        offered_qos_profiles: {offered}\n      message_count: 1\n  \
             compression_format: \"\"\n  compression_mode: \"\"\n  relative_file_paths:\n    - 'it''s_0.mcap'\n    - b_1.mcap\n"
        )
    }

    /// Each version as rosbag2 and the package `rosbags` write it.
    #[test]
    fn offers_of_every_version() {
        let numbers = "\"- history: 1\\n  depth: 7\\n  reliability: 1\\n  durability: 1\\n  deadline:\\n    sec: 9223372036\\n    \
                       nsec: 854775807\\n  lifespan:\\n    sec: 9223372036\\n    nsec: 854775807\\n  liveliness: 1\\n  \
                       liveliness_lease_duration:\\n    sec: 9223372036\\n    nsec: 854775807\\n  \
                       avoid_ros_namespace_conventions: false\"";
        let block = "|-\n          - history: 1\n            depth: 7\n            durability: 1\n            reliability: 1";
        let words = "\n          - history: keep_last\n            depth: 7\n            reliability: reliable\n            \
                     durability: transient_local\n            deadline:\n              sec: 9223372036\n              \
                     nsec: 854775807\n            liveliness: automatic";
        let flow = "[{history: keep_last, depth: 7, durability: transient_local, lifespan: {nsec: 854775807, sec: 9223372036}}]";
        let expect = Qos {
            history: History::KeepLast(7),
            durability: Durability::TransientLocal,
            ..Qos::DEFAULT
        };
        for (version, offered) in [(5, numbers), (4, block), (8, numbers), (9, words), (9, flow)] {
            let list = List::parse(&list(version, offered)).unwrap();
            assert_eq!(list.topics[0].offered, [expect], "{offered}");
            assert_eq!(list.files, ["it's_0.mcap", "b_1.mcap"]);
            assert_eq!(list.packing, Packing::None);
        }
        for none in ["\"\"", "[]", "~", ""] {
            assert_eq!(List::parse(&list(9, none)).unwrap().topics[0].offered, [], "{none}");
        }
    }

    #[test]
    fn packing_is_told() {
        let parse = |mode: &str| {
            List::parse(&format!("compression_mode: {mode}\ncompression_format: zstd\n"))
        };
        assert_eq!(parse("MESSAGE").unwrap().packing, Packing::Messages("zstd".into()));
        assert_eq!(parse("file").unwrap().packing, Packing::Files("zstd".into()));
        assert_eq!(parse("none").unwrap().packing, Packing::None);
        assert!(parse("half").unwrap_err().contains("HALF"));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        assert!(List::parse("a: [").unwrap_err().contains("line"));
        let refusal = |files: &str| {
            List::parse(&format!("relative_file_paths: [{files}]")).unwrap().refusal()
        };
        assert_eq!(refusal("a.mcap, b.mcap"), None);
        assert!(refusal("").unwrap().contains("names no file"));
        assert!(refusal("a.mcap.zstd").unwrap().contains("packed as a whole; unpack it as a.mcap"));
        assert!(refusal("../a.mcap").unwrap().contains("files in its folder"));
    }
}

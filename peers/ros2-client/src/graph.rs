//! Prints what others announce.

use std::collections::BTreeSet;
use std::pin::pin;

use futures::StreamExt as _;
use ros2_client::qos::{Durability, History, QosProfile, WhenFull};
use ros2_client::{Gid, Message, MessageTypeName};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::arguments::Graph;
use crate::end::End;
use crate::peer::{Peer, say};
use crate::view::hex;

/// `rmw_dds_common/msg/ParticipantEntitiesInfo`. That of ros2-client refuses the whole message when it dislikes the name
/// of one node, and does not say which endpoints a node has.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ParticipantEntities {
    gid: Gid,
    nodes: Vec<NodeEntities>,
}

impl Message for ParticipantEntities {}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct NodeEntities {
    namespace: String,
    name: String,
    readers: Vec<Gid>,
    writers: Vec<Gid>,
}

pub(crate) async fn run(peer: &mut Peer, arguments: &Graph) -> Result<(), End> {
    let context = peer.context.clone();
    // As the other implementations subscribe it: with one kept sample, as ros2-client has it, the words of two
    // participants at once are those of one.
    let qos = QosProfile::subscription_default()
        .reliability_reliable(WhenFull::Block)
        .durability(Durability::TransientLocal)
        .history(History::KeepAll);
    let type_name = MessageTypeName::new("rmw_dds_common", "ParticipantEntitiesInfo");
    let topic = context
        .create_topic("ros_discovery_info".to_owned(), type_name, &qos)
        .map_err(|error| End::failed("ros_discovery_info", error))?;
    let subscription = peer
        .node
        .create_subscription::<ParticipantEntities>(&topic, Some(qos))
        .map_err(|error| End::failed("ros_discovery_info", error))?;
    let mut messages = pin!(subscription.async_stream());
    say("ready")?;

    let own = context.participant_entities_info().gid();
    let wanted_topics = arguments.until_topic.as_deref().map(names_on_dds).unwrap_or_default();
    let mut nodes = BTreeSet::new();
    loop {
        let news = peer.view().take_news();
        for line in news {
            say(line)?;
        }
        let node = arguments.until_node.as_ref().filter(|it| !nodes.contains(&full_name(it)));
        let topic = arguments
            .until_topic
            .as_ref()
            .filter(|_| !wanted_topics.iter().any(|it| peer.view().knows_topic(it)));
        let asked = arguments.until_node.is_some() || arguments.until_topic.is_some();
        if asked && node.is_none() && topic.is_none() {
            return Ok(());
        }
        let what = || match (node, topic) {
            (Some(node), _) => format!("node {node}"),
            (None, Some(topic)) => format!("topic {topic}"),
            (None, None) => "news".to_owned(),
        };
        let message = match peer.wait_or(what, messages.next(), |it| it.has_news()).await {
            Err(End::Interrupted(_)) if !asked => return Err(End::Told),
            message => message?,
        };
        let Some(Some(message)) = message else { continue };
        match message {
            Ok((message, _)) if message.gid != own => print(&message, &mut nodes)?,
            Ok(_) => (),
            // The words of another distribution; they end nothing.
            Err(error) => say(json!({ "ros_discovery_info": format!("{error}") }))?,
        }
    }
}

fn print(message: &ParticipantEntities, nodes: &mut BTreeSet<String>) -> Result<(), End> {
    let gid = |it: &Gid| hex(it.as_bytes());
    if message.nodes.is_empty() {
        say(json!({ "nodes": [], "participant": gid(&message.gid) }))?;
    }
    for node in &message.nodes {
        let name = full_name(&format!("{}/{}", node.namespace, node.name));
        say(json!({
            "node": name,
            "participant": gid(&message.gid),
            "readers": node.readers.iter().map(gid).collect::<Vec<_>>(),
            "writers": node.writers.iter().map(gid).collect::<Vec<_>>(),
        }))?;
        nodes.insert(name);
    }
    Ok(())
}

fn full_name(name: &str) -> String {
    format!("/{}", name.trim_start_matches('/'))
}

/// A topic's name as it is on DDS, or, taken as the name of a service, those of its requests and replies.
fn names_on_dds(name: &str) -> [String; 3] {
    let name = full_name(name);
    [format!("rt{name}"), format!("rq{name}Request"), format!("rr{name}Reply")]
}

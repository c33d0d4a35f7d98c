//! What endpoints of tsuji are to rmw_zenoh, by the names that they have on a wire.

use tsuji_engine::EndpointSpec;
use tsuji_ros::gid::Distro;
use tsuji_ros::graph_message;
use tsuji_ros::names::DdsTopic;
use tsuji_ros::user_data::{EndpointUserData, ServiceEnd};

use crate::format::{Announced, NO_HASH};

/// What an endpoint is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Role {
    /// Nothing that rmw_zenoh knows.
    Own,
    /// Of a topic.
    Topic,
    /// Of a service: a half of a client or a server.
    Request(Half),
    /// The other half.
    Reply(Half),
    /// Of the topic by which participants say what nodes they have. Nothing of it goes over Zenoh, where tokens say it.
    Nodes(Distro),
}

/// A half of a client or a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Half {
    /// As rmw_zenoh announces the whole.
    pub(crate) service: Announced,
    /// What both halves say.
    pub(crate) end: ServiceEnd,
}

const REQUEST: &str = "Request_";
const REPLY: &str = "Response_";

/// The role of an endpoint, and as what it is announced.
pub(crate) fn of(spec: &EndpointSpec<'_>, is_on_wire: bool) -> (Role, Announced) {
    let own = announced(spec, spec.topic, spec.type_name, None);
    if !is_on_wire {
        return (Role::Own, own);
    }
    // What cannot be read says nothing.
    let said = EndpointUserData::parse(spec.user_data).unwrap_or_default();
    let half = |service: &str, suffix: &str| {
        let type_name = spec.type_name.strip_suffix(suffix)?;
        let service = announced(spec, service, type_name, said.service_hash.clone());
        Some(Half { service, end: said.service_end.clone()? })
    };
    match DdsTopic::demangle(spec.topic) {
        DdsTopic::Topic(topic) => {
            (Role::Topic, announced(spec, topic, spec.type_name, said.type_hash))
        }
        DdsTopic::ServiceRequest(service) => {
            (half(service, REQUEST).map_or(Role::Own, Role::Request), own)
        }
        DdsTopic::ServiceReply(service) => {
            (half(service, REPLY).map_or(Role::Own, Role::Reply), own)
        }
        DdsTopic::NotRos(graph_message::TOPIC) => {
            // The distributions whose message has no hash have the longer names in it.
            let distro = if said.type_hash.is_some() { Distro::Jazzy } else { Distro::Humble };
            (Role::Nodes(distro), own)
        }
        DdsTopic::NotRos(_) => (Role::Own, own),
    }
}

fn announced(
    spec: &EndpointSpec<'_>,
    topic: &str,
    type_name: &str,
    hash: Option<String>,
) -> Announced {
    Announced {
        topic: topic.to_owned(),
        type_name: type_name.to_owned(),
        hash: hash.unwrap_or_else(|| NO_HASH.to_owned()),
        qos: *spec.qos,
    }
}

/// The topics and types of the halves of a service: of requests, and of replies.
pub(crate) fn halves(service: &Announced) -> [(String, String); 2] {
    let Announced { topic, type_name, .. } = service;
    [
        (format!("rq{topic}Request"), format!("{type_name}{REQUEST}")),
        (format!("rr{topic}Reply"), format!("{type_name}{REPLY}")),
    ]
}

#[cfg(test)]
mod tests {
    use tsuji_core::Qos;

    use super::*;

    fn role(topic: &str, type_name: &str, user_data: &str) -> (Role, Announced) {
        let qos = &Qos::DEFAULT;
        let user_data = user_data.as_bytes();
        of(
            &EndpointSpec { topic, type_name, is_keyed: false, qos, keep_all_max: 1, user_data },
            true,
        )
    }

    #[test]
    fn names_on_the_wire_say_what_an_endpoint_is() {
        let hash = format!("RIHS01_{}", "0a".repeat(32));
        let (is, announced) =
            role("rt/a/b", "std_msgs::msg::dds_::String_", &format!("typehash={hash};"));
        assert_eq!((is, &*announced.topic, &announced.hash), (Role::Topic, "/a/b", &hash));
        let (is, announced) = role("rt/a", "std_msgs::msg::dds_::String_", "typehash=x;");
        assert_eq!((is, &*announced.hash), (Role::Topic, NO_HASH));
        let said = format!("clientid=7;tsujiservicehash={hash};");
        let service = "example_interfaces::srv::dds_::AddTwoInts_";
        let (Role::Request(half), own) =
            role("rq/addRequest", &format!("{service}Request_"), &said)
        else {
            panic!("a half");
        };
        assert_eq!((&*half.service.topic, &*half.service.type_name), ("/add", service));
        assert_eq!((half.service.hash.as_str(), &*own.topic), (&*hash, "rq/addRequest"));
        assert_eq!(half.end, ServiceEnd::Client("7".to_owned()));
        let [(topic, type_name), _] = halves(&half.service);
        assert_eq!((&*topic, type_name), ("rq/addRequest", format!("{service}Request_")));
        // It does not say whose half it is, or is of a message.
        assert_eq!(role("rr/addReply", &format!("{service}Response_"), "").0, Role::Own);
        assert_eq!(role("rr/addReply", service, &said).0, Role::Own);
        assert_eq!(role("ros_discovery_info", "x", "").0, Role::Nodes(Distro::Humble));
        assert_eq!(role("anything", "x", &said).0, Role::Own);
    }
}

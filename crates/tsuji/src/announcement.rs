//! What endpoints are called on RTPS, and what those found there are to tsuji.

use tsuji_core::Qos;
use tsuji_msg::TypeName;
use tsuji_ros::gid::Distro;
use tsuji_ros::names::{DdsTopic, DdsType};
use tsuji_ros::user_data::{EndpointUserData, ServiceEnd};
use tsuji_transport::wire::FoundEndpoint;
use tsuji_transport::{Announced, Gid};

use crate::Role;
use crate::control::protocol::EndpointRecord;
use crate::mapping::fnv1a;

/// An endpoint of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announcement<'a> {
    pub(crate) gid: Gid,
    pub(crate) partner: Gid,
    pub(crate) role: Role,
    pub(crate) is_publisher: bool,
    pub(crate) topic: &'a str,
    pub(crate) type_name: &'a str,
    pub(crate) type_hash: &'a str,
    pub(crate) is_keyed: bool,
    /// Nodes on Zenoh are spoken to, which know services by the hash of the whole.
    pub(crate) is_for_zenoh: bool,
}

impl Announcement<'_> {
    /// As foreign ROS 2 nodes of `distro` know it; or why they cannot.
    pub(crate) fn for_ros(&self, distro: Distro) -> Result<Announced, String> {
        let topic = match self.role {
            Role::Topic => DdsTopic::Topic(self.topic),
            Role::Request => DdsTopic::ServiceRequest(self.topic),
            Role::Reply => DdsTopic::ServiceReply(self.topic),
        };
        let ty: TypeName = self.type_name.parse().map_err(|error| format!("{error}"))?;
        let ty = match self.role {
            Role::Topic => DdsType::Message(ty),
            Role::Request => DdsType::ServiceRequest(ty),
            Role::Reply => DdsType::ServiceResponse(ty),
        };
        // What is known of a service is the hash of the whole, and ROS 2 announces that of a half.
        let is_known = distro.has_type_hash() && !self.type_hash.is_empty();
        let is_topic = self.role == Role::Topic;
        let hash = |is_said: bool| (is_known && is_said).then(|| self.type_hash.to_owned());
        let user_data = EndpointUserData {
            service_end: self.service_end(),
            type_hash: hash(is_topic),
            service_hash: hash(!is_topic && self.is_for_zenoh),
            tsuji_gid: Some(self.gid.0),
        };
        Ok(Announced {
            topic: topic.mangle().map_err(|error| error.to_string())?,
            type_name: ty.to_string(),
            is_keyed: self.is_keyed,
            user_data: user_data.write().map_err(|error| error.to_string())?,
        })
    }

    /// As other processes of tsuji know it where nobody else is to. `None` where its own name does.
    pub(crate) fn for_tsuji(&self) -> Option<Announced> {
        let suffix = match self.role {
            Role::Topic => return None,
            Role::Request => "Request",
            Role::Reply => "Reply",
        };
        let topic = format!("{}{suffix}", self.topic);
        let type_name = self.type_name.to_owned();
        Some(Announced { topic, type_name, ..Announced::default() })
    }

    /// As processes of tsuji on this host know it where others are on the network who are not to know of it: by a number.
    pub(crate) fn for_inside(&self) -> Announced {
        let number = fnv1a(self.topic.bytes().chain([self.role as u8]));
        let topic = format!("tsuji/inside/{number:016x}");
        Announced { topic, type_name: "tsuji/inside".to_owned(), ..Announced::default() }
    }

    /// Both halves of a client or a server say the same: the number of that for requests.
    fn service_end(&self) -> Option<ServiceEnd> {
        Some(match (self.role, self.is_publisher) {
            (Role::Topic, _) => return None,
            (Role::Request, true) => ServiceEnd::Client(self.gid.to_string()),
            (Role::Reply, false) => ServiceEnd::Client(self.partner.to_string()),
            (Role::Request, false) => ServiceEnd::Server(self.gid.to_string()),
            (Role::Reply, true) => ServiceEnd::Server(self.partner.to_string()),
        })
    }
}

/// An endpoint of a foreign node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ForeignEndpoint {
    pub(crate) record: EndpointRecord,
    /// Which client or server it is a half of, if it says so.
    pub(crate) end: Option<ServiceEnd>,
}

/// What an endpoint of a foreign node is; nothing, if it is none of ROS 2; or why it cannot be spoken
/// to.
pub(crate) fn foreign_endpoint(found: &FoundEndpoint) -> Result<Option<ForeignEndpoint>, String> {
    let (role, topic) = match DdsTopic::demangle(&found.topic) {
        DdsTopic::Topic(topic) => (Role::Topic, topic),
        DdsTopic::ServiceRequest(service) => (Role::Request, service),
        DdsTopic::ServiceReply(service) => (Role::Reply, service),
        DdsTopic::NotRos(_) => return Ok(None),
    };
    let type_name = match (DdsType::demangle(&found.type_name), role) {
        (DdsType::Message(ty), Role::Topic)
        | (DdsType::ServiceRequest(ty), Role::Request)
        | (DdsType::ServiceResponse(ty), Role::Reply) => ty.to_string(),
        // Shown as it is, and fits nobody.
        _ => found.type_name.clone(),
    };
    let qos: Qos = match found.is_writer {
        true => found.qos.offered(),
        false => found.qos.requested().map_err(|error| error.to_string())?,
    };
    // What cannot be read says nothing.
    let said = EndpointUserData::parse(&found.user_data).unwrap_or_default();
    // That of a half is of no use.
    let type_hash = if role == Role::Topic { said.type_hash } else { said.service_hash };
    let record = EndpointRecord {
        gid: found.name.0,
        node: [0; 16],
        is_publisher: found.is_writer,
        role,
        partner: [0; 16],
        topic: topic.to_owned(),
        type_name,
        type_hash: type_hash.unwrap_or_default(),
        qos: qos.into(),
    };
    Ok(Some(ForeignEndpoint { record, end: said.service_end }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use tsuji_core::{History, Reliability};
    use tsuji_transport::wire::{WireDurability, WireLiveliness, WireQos};

    use super::*;

    fn qos() -> impl Strategy<Value = WireQos> {
        let durations = prop::array::uniform3(prop::option::of(any::<Duration>()));
        let history = prop_oneof![Just(History::KeepAll), any::<u32>().prop_map(History::KeepLast)];
        let kinds = (any::<bool>(), 0..4usize, 0..3usize);
        (kinds, prop::option::of(history), durations).prop_map(|(kinds, history, durations)| {
            use WireDurability::{Persistent, Transient, TransientLocal, Volatile};
            use WireLiveliness::{Automatic, ManualByParticipant, ManualByTopic};
            let (reliable, durability, liveliness) = kinds;
            let [deadline, lifespan, lease] = durations;
            WireQos {
                reliability: if reliable { Reliability::Reliable } else { Reliability::BestEffort },
                durability: [Volatile, TransientLocal, Transient, Persistent][durability],
                history,
                deadline,
                lifespan,
                liveliness: [Automatic, ManualByParticipant, ManualByTopic][liveliness],
                lease,
            }
        })
    }

    fn user_data() -> impl Strategy<Value = Vec<u8>> {
        let said = "((clientid|serviceid|typehash|tsujigid|enclave)=[^;]{0,5};){0,4}";
        let hashed = "typehash=RIHS01_[0-9a-f]{64};(clientid=[0-9.]{1,9};)?";
        let said = prop_oneof![said, hashed].prop_map(String::into_bytes);
        prop_oneof![any::<Vec<u8>>(), said]
    }

    prop_compose! {
        fn endpoint()(
            topic in "(|rt|rq|rr|rt/[a-z_]{1,9}|rq/[a-z]{1,9}|rr/[a-z]{1,9}).{0,9}(|Request|Reply)",
            type_name in "(|[a-z]{1,5}::(msg|srv|action)::dds_::[A-Z][a-z]{0,5}).{0,5}(|_Request_|_Response_|_)",
            names: ([u8; 16], [u8; 16]),
            is_writer: bool,
            user_data in user_data(),
            qos in qos(),
        ) -> FoundEndpoint {
            let (name, participant) = (Gid(names.0), Gid(names.1));
            FoundEndpoint { name, participant, is_writer, topic, type_name, user_data, qos }
        }
    }

    proptest! {
        #[test]
        fn any_endpoint_of_others_is_something_that_holds_together(found in endpoint()) {
            let plain = match foreign_endpoint(&found) {
                Ok(Some(plain)) => plain,
                Ok(None) => {
                    prop_assert_eq!(DdsTopic::demangle(&found.topic), DdsTopic::NotRos(&found.topic));
                    return Ok(());
                }
                Err(_) => {
                    prop_assert!(!found.is_writer && found.qos.requested().is_err());
                    return Ok(());
                }
            };
            let ForeignEndpoint { record, end } = plain;
            let topic = match record.role {
                Role::Topic => DdsTopic::Topic(&record.topic),
                Role::Request => DdsTopic::ServiceRequest(&record.topic),
                Role::Reply => DdsTopic::ServiceReply(&record.topic),
            };
            prop_assert_eq!(topic, DdsTopic::demangle(&found.topic));
            prop_assert_eq!((record.gid, record.is_publisher), (found.name.0, found.is_writer));
            prop_assert_eq!((record.node, record.partner), ([0; 16], [0; 16]));
            prop_assert!(Qos::from(record.qos).validate().is_ok());
            prop_assert!(record.type_hash.is_empty() || record.role == Role::Topic);
            let said = EndpointUserData::parse(&found.user_data).unwrap_or_default();
            prop_assert_eq!(end, said.service_end);
            // Whatever its type is called, it is that of ROS 2 or what it was.
            let is_ros = record.type_name.parse::<TypeName>().is_ok();
            prop_assert!(is_ros || record.type_name == found.type_name);
        }
    }

    #[test]
    fn what_tsuji_announces_it_reads_back() {
        let hash = format!("RIHS01_{}", "0a".repeat(32));
        for (role, type_name) in [
            (Role::Topic, "std_msgs/msg/String"),
            (Role::Request, "std_srvs/srv/SetBool"),
            (Role::Reply, "std_srvs/srv/SetBool"),
        ] {
            let announcement = Announcement {
                gid: Gid([1; 16]),
                partner: Gid([2; 16]),
                role,
                is_publisher: true,
                topic: "/robot/it",
                type_name,
                type_hash: &hash,
                is_keyed: true,
                is_for_zenoh: true,
            };
            let Announced { topic, type_name, is_keyed, user_data } =
                announcement.for_ros(Distro::Jazzy).unwrap();
            assert!(is_keyed);
            let qos = WireQos::new(&Qos::DEFAULT).unwrap();
            let (name, participant) = (Gid([3; 16]), Gid([4; 16]));
            let found = FoundEndpoint {
                name,
                participant,
                is_writer: true,
                topic,
                type_name,
                user_data,
                qos,
            };
            let ForeignEndpoint { record, end } = foreign_endpoint(&found).unwrap().unwrap();
            assert_eq!((record.role, &*record.topic), (role, "/robot/it"));
            assert_eq!(record.type_name, announcement.type_name);
            assert_eq!(record.type_hash, hash);
            assert_eq!(end, announcement.service_end());
        }
    }
}

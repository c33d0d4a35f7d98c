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
}

impl Announcement<'_> {
    /// As plain ROS 2 nodes of `distro` know it; or why they cannot.
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
        let is_hashed =
            self.role == Role::Topic && distro.has_type_hash() && !self.type_hash.is_empty();
        let user_data = EndpointUserData {
            service_end: self.service_end(),
            type_hash: is_hashed.then(|| self.type_hash.to_owned()),
            tsuji_gid: Some(self.gid.0),
        };
        Ok(Announced {
            topic: topic.mangle().map_err(|error| error.to_string())?,
            type_name: ty.to_string(),
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
        Some(Announced { topic, type_name: self.type_name.to_owned(), user_data: Vec::new() })
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

/// An endpoint of a plain node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlainEndpoint {
    pub(crate) record: EndpointRecord,
    /// Which client or server it is a half of, if it says so.
    pub(crate) end: Option<ServiceEnd>,
}

/// What an endpoint of a plain node is; nothing, if it is none of ROS 2; or why it cannot be spoken
/// to.
pub(crate) fn plain_endpoint(found: &FoundEndpoint) -> Result<Option<PlainEndpoint>, String> {
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
    let type_hash = said.type_hash.filter(|_| role == Role::Topic).unwrap_or_default();
    let record = EndpointRecord {
        gid: found.name.0,
        node: [0; 16],
        is_publisher: found.is_writer,
        role,
        partner: [0; 16],
        topic: topic.to_owned(),
        type_name,
        type_hash,
        qos: qos.into(),
    };
    Ok(Some(PlainEndpoint { record, end: said.service_end }))
}

//! What endpoints of tsuji are to ROS 1, by the names that they have on a wire.

use tsuji_engine::EndpointSpec;
use tsuji_msg::TypeName;
use tsuji_ros::gid::Distro;
use tsuji_ros::graph_message;
use tsuji_ros::names::{DdsTopic, DdsType};
use tsuji_ros::user_data::{EndpointUserData, ServiceEnd};

/// What an endpoint is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Role {
    /// Of a topic.
    Topic(Named),
    /// Of a service: a half of a client or a server.
    Request(Half),
    /// The other half.
    Reply(Half),
    /// Of the topic by which participants say what nodes they have. Nothing of it goes to ROS 1, where a master knows that.
    Nodes(Distro),
    /// Nothing that ROS 1 knows.
    Hidden,
}

/// A topic or a service, and its type as ROS 2 calls it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) type_name: String,
}

/// A half of a client or a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Half {
    pub(crate) service: Named,
    /// What both halves say.
    pub(crate) end: ServiceEnd,
}

impl Role {
    /// The name of the topic or the service.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Topic(named) => &named.name,
            Self::Request(half) | Self::Reply(half) => &half.service.name,
            Self::Nodes(_) | Self::Hidden => "",
        }
    }
}

impl Half {
    pub(crate) fn is_client(&self) -> bool {
        matches!(self.end, ServiceEnd::Client(_))
    }
}

/// Packages whose interfaces only nodes of ROS 2 ask each other for.
const HIDDEN_PACKAGES: [&str; 3] =
    ["rcl_interfaces", "type_description_interfaces", "rosidl_runtime"];

/// The one message of these that ROS 1 has under another name.
const LOG: &str = "rcl_interfaces/msg/Log";

/// Returns the role of an endpoint.
pub(crate) fn of(spec: &EndpointSpec<'_>) -> Role {
    // What cannot be read says nothing.
    let said = EndpointUserData::parse(spec.user_data).unwrap_or_default();
    let half = |service: &str, ty: String| {
        let service = Named { name: service.to_owned(), type_name: ty };
        Some(Half { service, end: said.service_end.clone()? })
    };
    let role = match (DdsTopic::demangle(spec.topic), DdsType::demangle(spec.type_name)) {
        (DdsTopic::Topic(topic), DdsType::Message(ty)) => {
            Some(Role::Topic(Named { name: topic.to_owned(), type_name: ty.to_string() }))
        }
        (DdsTopic::ServiceRequest(service), DdsType::ServiceRequest(ty)) => {
            half(service, ty.to_string()).map(Role::Request)
        }
        (DdsTopic::ServiceReply(service), DdsType::ServiceResponse(ty)) => {
            half(service, ty.to_string()).map(Role::Reply)
        }
        (DdsTopic::NotRos(graph_message::TOPIC), _) => {
            // The distributions whose message has no hash have the longer names in it.
            let distro = if said.type_hash.is_some() { Distro::Jazzy } else { Distro::Humble };
            return Role::Nodes(distro);
        }
        _ => None,
    };
    role.filter(|role| !is_hidden(role)).unwrap_or(Role::Hidden)
}

/// True for names that ROS 2 hides, such as those of actions, and for what its nodes ask each other for.
fn is_hidden(role: &Role) -> bool {
    let named = match role {
        Role::Topic(named) => named,
        Role::Request(half) | Role::Reply(half) => &half.service,
        Role::Nodes(_) | Role::Hidden => return false,
    };
    let package = named.type_name.split('/').next().unwrap_or_default();
    let is_of_ros2 = HIDDEN_PACKAGES.contains(&package) && named.type_name != LOG;
    is_of_ros2 || named.name.split('/').any(|token| token.starts_with('_'))
}

/// The topics and types on a wire of the halves of a service: of requests, and of replies. Nothing for a name that ROS 2 forbids.
pub(crate) fn halves(service: &Named) -> Option<[(String, String); 2]> {
    let Named { name, type_name } = service;
    let half = |topic: DdsTopic<'_>, ty: fn(TypeName) -> DdsType| {
        Some((topic.mangle().ok()?, mangled(type_name, ty)))
    };
    Some([
        half(DdsTopic::ServiceRequest(name), DdsType::ServiceRequest)?,
        half(DdsTopic::ServiceReply(name), DdsType::ServiceResponse)?,
    ])
}

/// The name of a topic and of its type on a wire. Nothing for a name that ROS 2 forbids.
pub(crate) fn of_topic(topic: &Named) -> Option<(String, String)> {
    let name = DdsTopic::Topic(&topic.name).mangle().ok()?;
    Some((name, mangled(&topic.type_name, DdsType::Message)))
}

/// A type whose name ROS 2 forbids is shown as it is, and fits nobody.
fn mangled(type_name: &str, ty: fn(TypeName) -> DdsType) -> String {
    type_name.parse().map_or_else(|_| DdsType::NotRos(type_name.to_owned()), ty).to_string()
}

#[cfg(test)]
mod tests {
    use tsuji_core::Qos;

    use super::*;

    fn role(topic: &str, type_name: &str, user_data: &str) -> Role {
        let (qos, user_data) = (&Qos::DEFAULT, user_data.as_bytes());
        of(&EndpointSpec { topic, type_name, is_keyed: false, qos, keep_all_max: 1, user_data })
    }

    #[test]
    fn names_on_the_wire_say_what_an_endpoint_is() {
        let chatter =
            Named { name: "/chatter".to_owned(), type_name: "std_msgs/msg/String".to_owned() };
        let (topic, type_name) = of_topic(&chatter).unwrap();
        assert_eq!((&*topic, &*type_name), ("rt/chatter", "std_msgs::msg::dds_::String_"));
        assert_eq!(role(&topic, &type_name, ""), Role::Topic(chatter));
        let service =
            Named { name: "/add".to_owned(), type_name: "example_interfaces/srv/Add".to_owned() };
        let [(asks, asked), (answers, answered)] = halves(&service).unwrap();
        assert_eq!((&*asks, &*answers), ("rq/addRequest", "rr/addReply"));
        let Role::Request(half) = role(&asks, &asked, "clientid=7;") else { panic!("a request") };
        assert!(half.is_client() && half.service == service);
        let Role::Reply(half) = role(&answers, &answered, "serviceid=7;") else {
            panic!("a reply")
        };
        assert!(!half.is_client() && half.service == service);
        // It does not say whose half it is.
        assert_eq!(role(&answers, &answered, ""), Role::Hidden);
        assert_eq!(role("ros_discovery_info", "x", ""), Role::Nodes(Distro::Humble));
    }

    #[test]
    fn what_nodes_of_ros_2_ask_each_other_for_is_not_shown() {
        let hidden = [
            ("rt/parameter_events", "rcl_interfaces::msg::dds_::ParameterEvent_"),
            ("rt/fibonacci/_action/status", "action_msgs::msg::dds_::GoalStatusArray_"),
            ("anything", "std_msgs::msg::dds_::String_"),
            ("rt/chatter", "none of ROS"),
        ];
        for (topic, type_name) in hidden {
            assert_eq!(role(topic, type_name, ""), Role::Hidden, "{topic}");
        }
        assert!(matches!(role("rt/rosout", "rcl_interfaces::msg::dds_::Log_", ""), Role::Topic(_)));
    }
}

//! The interfaces of rosbridge and rosapi that no installation need have: what the bridge answers and publishes itself.

use tsuji_msg::{Definition, Kind, Resolver, Unreadable};

/// Services by which clients ask the bridge itself, by their last names, each with the last name of its type.
pub(crate) const SERVICES: &[(&str, &str)] = &[
    ("topics", "Topics"),
    ("interfaces", "Interfaces"),
    ("topics_for_type", "TopicsForType"),
    ("topics_and_raw_types", "TopicsAndRawTypes"),
    ("topic_type", "TopicType"),
    ("publishers", "Publishers"),
    ("subscribers", "Subscribers"),
    ("services", "Services"),
    ("services_for_type", "ServicesForType"),
    ("service_type", "ServiceType"),
    ("service_providers", "ServiceProviders"),
    ("service_node", "ServiceNode"),
    ("service_request_details", "ServiceRequestDetails"),
    ("service_response_details", "ServiceResponseDetails"),
    ("nodes", "Nodes"),
    ("node_details", "NodeDetails"),
    ("action_servers", "GetActionServers"),
    ("action_type", "ActionType"),
    ("action_goal_details", "ActionGoalDetails"),
    ("action_result_details", "ActionResultDetails"),
    ("action_feedback_details", "ActionFeedbackDetails"),
    ("message_details", "MessageDetails"),
    ("get_param", "GetParam"),
    ("set_param", "SetParam"),
    ("has_param", "HasParam"),
    ("delete_param", "DeleteParam"),
    ("search_param", "SearchParam"),
    ("get_param_names", "GetParamNames"),
    ("get_time", "GetTime"),
    ("get_ros_version", "GetROSVersion"),
];

/// What the definitions of these services and of the topics of a bridge are, by package and name.
const DEFINITIONS: &[(Kind, &str, &str, &str)] = &[
    (
        Kind::Message,
        BRIDGE,
        "ConnectedClient",
        "string ip_address\nbuiltin_interfaces/Time connection_time\n",
    ),
    (Kind::Message, BRIDGE, "ConnectedClients", "ConnectedClient[] clients\n"),
    (
        Kind::Message,
        ROSAPI,
        "TypeDef",
        "string type\nstring[] fieldnames\nstring[] fieldtypes\nint32[] fieldarraylen\nstring[] examples\n\
         string[] constnames\nstring[] constvalues\n",
    ),
    (Kind::Service, ROSAPI, "Topics", "---\nstring[] topics\nstring[] types\n"),
    (Kind::Service, ROSAPI, "Interfaces", "---\nstring[] interfaces\n"),
    (Kind::Service, ROSAPI, "TopicsForType", "string type\n---\nstring[] topics\n"),
    (
        Kind::Service,
        ROSAPI,
        "TopicsAndRawTypes",
        "---\nstring[] topics\nstring[] types\nstring[] typedefs_full_text\n",
    ),
    (Kind::Service, ROSAPI, "TopicType", "string topic\n---\nstring type\n"),
    (Kind::Service, ROSAPI, "Publishers", "string topic\n---\nstring[] publishers\n"),
    (Kind::Service, ROSAPI, "Subscribers", "string topic\n---\nstring[] subscribers\n"),
    (Kind::Service, ROSAPI, "Services", "---\nstring[] services\n"),
    (Kind::Service, ROSAPI, "ServicesForType", "string type\n---\nstring[] services\n"),
    (Kind::Service, ROSAPI, "ServiceType", "string service\n---\nstring type\n"),
    (Kind::Service, ROSAPI, "ServiceProviders", "string service\n---\nstring[] providers\n"),
    (Kind::Service, ROSAPI, "ServiceNode", "string service\n---\nstring node\n"),
    (Kind::Service, ROSAPI, "ServiceRequestDetails", DETAILS),
    (Kind::Service, ROSAPI, "ServiceResponseDetails", DETAILS),
    (Kind::Service, ROSAPI, "Nodes", "---\nstring[] nodes\n"),
    (
        Kind::Service,
        ROSAPI,
        "NodeDetails",
        "string node\n---\nstring[] subscribing\nstring[] publishing\nstring[] services\n",
    ),
    (Kind::Service, ROSAPI, "GetActionServers", "---\nstring[] action_servers\n"),
    (Kind::Service, ROSAPI, "ActionType", "string action\n---\nstring type\n"),
    (Kind::Service, ROSAPI, "ActionGoalDetails", DETAILS),
    (Kind::Service, ROSAPI, "ActionResultDetails", DETAILS),
    (Kind::Service, ROSAPI, "ActionFeedbackDetails", DETAILS),
    (Kind::Service, ROSAPI, "MessageDetails", DETAILS),
    (
        Kind::Service,
        ROSAPI,
        "GetParam",
        "string name\nstring default_value\n---\nstring value\nbool successful\nstring reason\n",
    ),
    (
        Kind::Service,
        ROSAPI,
        "SetParam",
        "string name\nstring value\n---\nbool successful\nstring reason\n",
    ),
    (Kind::Service, ROSAPI, "HasParam", "string name\n---\nbool exists\n"),
    (Kind::Service, ROSAPI, "DeleteParam", "string name\n---\nbool successful\nstring reason\n"),
    (Kind::Service, ROSAPI, "SearchParam", "string name\n---\nstring global_name\n"),
    (Kind::Service, ROSAPI, "GetParamNames", "---\nstring[] names\n"),
    (Kind::Service, ROSAPI, "GetTime", "---\nbuiltin_interfaces/Time time\n"),
    (Kind::Service, ROSAPI, "GetROSVersion", "---\nuint8 version\nstring distro\n"),
];

const DETAILS: &str = "string type\n---\nTypeDef[] typedefs\n";
const BRIDGE: &str = "rosbridge_msgs";
const ROSAPI: &str = "rosapi_msgs";

/// The names of these interfaces, in three parts.
pub(crate) fn interfaces() -> impl Iterator<Item = String> {
    DEFINITIONS.iter().map(|(kind, package, name, _)| format!("{package}/{kind}/{name}"))
}

/// What somebody else has, and these where that has none.
pub(crate) struct WithOwn<R>(pub(crate) R);

impl<R: Resolver> Resolver for WithOwn<R> {
    fn find(
        &self,
        kind: Kind,
        package: &str,
        name: &str,
    ) -> Result<Option<Definition<'_>>, Unreadable> {
        let is_it = |it: &&(Kind, &str, &str, &str)| (it.0, it.1, it.2) == (kind, package, name);
        let own = || {
            let found = DEFINITIONS.iter().find(is_it)?;
            Some(Definition::from(found.3))
        };
        Ok(self.0.find(kind, package, name)?.or_else(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Types;
    use tsuji_interfaces::Shipped;

    #[test]
    fn every_type_is_there() {
        let types = Types::new(Box::new(Shipped));
        for (service, ty) in SERVICES {
            let found = types.service(&format!("rosapi_msgs/srv/{ty}"));
            assert!(found.is_ok(), "{service}: {:?}", found.err());
        }
        for name in ["rosbridge_msgs/msg/ConnectedClients", "rosapi_msgs/msg/TypeDef"] {
            assert!(types.message(name).is_ok(), "{name}");
        }
    }
    /// An installation whose files nobody may read.
    struct Locked;

    impl Resolver for Locked {
        fn find(
            &self,
            _: Kind,
            package: &str,
            name: &str,
        ) -> Result<Option<Definition<'_>>, Unreadable> {
            let place = format!("/opt/{package}/{name}.msg");
            Err(Unreadable { place, reason: "permission denied".to_owned() })
        }
    }

    #[test]
    fn a_definition_that_cannot_be_read_is_told_with_its_place_and_the_reason() {
        let types = Types::new(Box::new(Locked));
        // What the bridge would have itself does not hide it.
        for name in ["own_msgs/msg/Odd", "rosapi_msgs/msg/TypeDef"] {
            let file = name.replace("/msg/", "/");
            let error = types.message(name).unwrap_err();
            let expect = format!("{name}: cannot read /opt/{file}.msg: permission denied");
            assert_eq!(error, expect);
        }
    }
}

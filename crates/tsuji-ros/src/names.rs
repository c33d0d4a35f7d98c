//! Names of ROS 2 as they are on DDS, and back.
//!
//! | ROS 2 | DDS topic | DDS type |
//! |---|---|---|
//! | topic `/chatter`, `std_msgs/msg/String` | `rt/chatter` | `std_msgs::msg::dds_::String_` |
//! | request of `/add`, `example_interfaces/srv/AddTwoInts` | `rq/addRequest` | `example_interfaces::srv::dds_::AddTwoInts_Request_` |
//! | its reply | `rr/addReply` | `example_interfaces::srv::dds_::AddTwoInts_Response_` |
//!
//! An action is made of such: `/fib/_action/send_goal` is a service, `/fib/_action/feedback` a topic.
//! A topic that avoids the conventions of ROS names keeps its name as it is, and its type is still
//! named this way; `ros_discovery_info` is one.
//!
//! From `make_fqtopic` in rmw_cyclonedds, `rmw_node.cpp`, with `demangle.cpp`,
//! `MessageTypeSupport_impl.hpp` and `ServiceTypeSupport_impl.hpp`; in rmw_fastrtps `names.hpp`,
//! `namespace_prefix.cpp`, `demangle.cpp` and `type_support_common.hpp`. Reading is stricter here:
//! a name that ROS would not allow is [`DdsTopic::NotRos`].

use std::fmt;

use tsuji_core::names::{NameError, NameKind, NameProblem, validate_topic};
use tsuji_msg::{Kind, TypeName};

/// The most bytes of a topic's name on DDS. Fast DDS cuts off what is longer.
pub const DDS_NAME_BYTES_MAX: usize = 255;

/// What a topic of DDS is to ROS 2, with its fully qualified ROS name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DdsTopic<'a> {
    /// A topic: `/chatter`.
    Topic(&'a str),
    /// What the clients of a service write and its servers read: `/add`.
    ServiceRequest(&'a str),
    /// What the servers of a service write and its clients read: `/add`.
    ServiceReply(&'a str),
    /// Not by the conventions of ROS 2; the name as it is on DDS.
    NotRos(&'a str),
}

impl<'a> DdsTopic<'a> {
    /// What the topic called `name` on DDS is. Any text is something.
    pub fn demangle(name: &'a str) -> Self {
        let ros_name = |prefix, suffix| {
            let ros = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
            validate_topic(ros).is_ok().then_some(ros)
        };
        if let Some(topic) = ros_name(TOPIC, "") {
            Self::Topic(topic)
        } else if let Some(service) = ros_name(REQUEST.0, REQUEST.1) {
            Self::ServiceRequest(service)
        } else if let Some(service) = ros_name(REPLY.0, REPLY.1) {
            Self::ServiceReply(service)
        } else {
            Self::NotRos(name)
        }
    }

    /// Its name on DDS. A ROS name must be a valid, fully qualified one, any other just not empty, and
    /// what comes out at most [`DDS_NAME_BYTES_MAX`] long.
    pub fn mangle(self) -> Result<String, NameError> {
        let (prefix, name, suffix) = match self {
            Self::Topic(name) => (TOPIC, name, ""),
            Self::ServiceRequest(name) => (REQUEST.0, name, REQUEST.1),
            Self::ServiceReply(name) => (REPLY.0, name, REPLY.1),
            Self::NotRos(name) => ("", name, ""),
        };
        let refuse = |at: usize, problem| NameError {
            kind: NameKind::Topic,
            name: name.to_owned(),
            position: at + 1,
            found: name.chars().nth(at),
            problem,
        };
        if !matches!(self, Self::NotRos(_)) {
            validate_topic(name)?;
        } else if name.is_empty() {
            return Err(refuse(0, NameProblem::Empty));
        }
        let length_max = DDS_NAME_BYTES_MAX - prefix.len() - suffix.len();
        if name.len() > length_max {
            let at = name.char_indices().take_while(|(index, _)| *index < length_max).count();
            return Err(refuse(at, NameProblem::TooLong { length_max }));
        }
        Ok(format!("{prefix}{name}{suffix}"))
    }
}

/// What a type of DDS is to ROS 2.
///
/// The goal, result and status parts of an action are messages and services of kind `action`, so
/// `Fibonacci_SendGoal` is a service here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DdsType {
    /// A message, or the event of a service.
    Message(TypeName),
    /// The request of this service.
    ServiceRequest(TypeName),
    /// The response of this service.
    ServiceResponse(TypeName),
    /// Not by the conventions of ROS 2; the name as it is on DDS.
    NotRos(String),
}

impl DdsType {
    /// What the type called `name` on DDS is. Any text is something.
    pub fn demangle(name: &str) -> Self {
        let Ok(ty) = TypeName::from_dds(name) else {
            return Self::NotRos(name.to_owned());
        };
        if ty.kind() == Kind::Message {
            return Self::Message(ty);
        }
        let service = |suffix| {
            let stem = ty.name().strip_suffix(suffix)?;
            TypeName::new(ty.package(), ty.kind(), stem).ok()
        };
        if let Some(service) = service(REQUEST_TYPE) {
            Self::ServiceRequest(service)
        } else if let Some(service) = service(RESPONSE_TYPE) {
            Self::ServiceResponse(service)
        } else {
            Self::Message(ty)
        }
    }
}

/// The name on DDS.
impl fmt::Display for DdsType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut part = |ty: &TypeName, suffix| {
            write!(f, "{}::{}::dds_::{}{suffix}_", ty.package(), ty.kind(), ty.name())
        };
        match self {
            Self::Message(ty) => part(ty, ""),
            Self::ServiceRequest(ty) => part(ty, REQUEST_TYPE),
            Self::ServiceResponse(ty) => part(ty, RESPONSE_TYPE),
            Self::NotRos(name) => f.write_str(name),
        }
    }
}

/// What stands before the slash of a full name, and after the name.
const TOPIC: &str = "rt";
const REQUEST: (&str, &str) = ("rq", "Request");
const REPLY: (&str, &str) = ("rr", "Reply");

const REQUEST_TYPE: &str = "_Request";
const RESPONSE_TYPE: &str = "_Response";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(topic: DdsTopic<'_>, dds: &str) {
        assert_eq!(topic.mangle().unwrap(), dds);
        assert_eq!(DdsTopic::demangle(dds), topic);
    }

    #[test]
    fn topics_and_services() {
        use DdsTopic::{NotRos, ServiceReply, ServiceRequest, Topic};
        check(Topic("/chatter"), "rt/chatter");
        check(Topic("/front/camera/image"), "rt/front/camera/image");
        check(Topic("/_hidden"), "rt/_hidden");
        check(Topic("/fooRequest"), "rt/fooRequest");
        check(ServiceRequest("/add"), "rq/addRequest");
        check(ServiceReply("/add"), "rr/addReply");
        check(ServiceReply("/ReplyReply"), "rr/ReplyReplyReply");
        check(ServiceRequest("/fib/_action/send_goal"), "rq/fib/_action/send_goalRequest");
        check(ServiceReply("/fib/_action/get_result"), "rr/fib/_action/get_resultReply");
        check(Topic("/fib/_action/feedback"), "rt/fib/_action/feedback");
        check(Topic("/add/_service_event"), "rt/add/_service_event");
        check(NotRos("ros_discovery_info"), "ros_discovery_info");
        check(NotRos("/chatter"), "/chatter");
        check(NotRos("Square"), "Square");
        check(NotRos("rtx/a"), "rtx/a");
        check(NotRos("rt"), "rt");
        check(NotRos("rt/"), "rt/");
        check(NotRos("rt/a b"), "rt/a b");
        check(NotRos("rq/add"), "rq/add");
        check(NotRos("rq/Request"), "rq/Request");
        check(NotRos("rr/addRequest"), "rr/addRequest");
    }

    #[test]
    fn names_that_cannot_be() {
        let check = |topic: DdsTopic<'_>, expect: &str| {
            assert_eq!(topic.mangle().unwrap_err().to_string(), expect);
        };
        check(
            DdsTopic::Topic("chatter"),
            "name \"chatter\": character 1, 'c': a full name is needed; allowed: '/'",
        );
        check(
            DdsTopic::NotRos(""),
            "name \"\": character 1: it is empty; allowed: at least one character",
        );
        let longest = format!("/{}", "a".repeat(246));
        assert_eq!(DdsTopic::Topic(&longest).mangle().unwrap().len(), 249);
        assert_eq!(DdsTopic::ServiceReply(&longest).mangle().unwrap().len(), 254);
        let error = DdsTopic::ServiceRequest(&longest).mangle().unwrap_err();
        assert_eq!(error.position, 247);
        assert_eq!(error.problem.to_string(), "too long; allowed: at most 246 characters");
        assert!(DdsTopic::NotRos(&"ä".repeat(127)).mangle().is_ok());
        assert_eq!(DdsTopic::NotRos(&"ä".repeat(128)).mangle().unwrap_err().found, None);
    }

    #[test]
    fn types() {
        let check = |dds: &str, expect: fn(TypeName) -> DdsType, name: &str| {
            assert_eq!(DdsType::demangle(dds), expect(name.parse().unwrap()));
            assert_eq!(DdsType::demangle(dds).to_string(), dds);
        };
        use DdsType::{Message, ServiceRequest, ServiceResponse};
        check("std_msgs::msg::dds_::String_", Message, "std_msgs/msg/String");
        check(
            "example_interfaces::srv::dds_::AddTwoInts_Request_",
            ServiceRequest,
            "example_interfaces/srv/AddTwoInts",
        );
        check(
            "example_interfaces::srv::dds_::AddTwoInts_Response_",
            ServiceResponse,
            "example_interfaces/srv/AddTwoInts",
        );
        check(
            "example_interfaces::srv::dds_::AddTwoInts_Event_",
            Message,
            "example_interfaces/srv/AddTwoInts_Event",
        );
        check(
            "example_interfaces::action::dds_::Fibonacci_SendGoal_Request_",
            ServiceRequest,
            "example_interfaces/action/Fibonacci_SendGoal",
        );
        check(
            "example_interfaces::action::dds_::Fibonacci_FeedbackMessage_",
            Message,
            "example_interfaces/action/Fibonacci_FeedbackMessage",
        );
        for dds in ["", "_", "ShapeType", "std_msgs::msg::String_", "std_msgs::msg::dds_::String"] {
            assert_eq!(DdsType::demangle(dds), DdsType::NotRos(dds.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn any_name_reads_back(name in "(r[tqr])?[a1_/Ré]{0,6}(Request|Reply)?") {
            if let Ok(mangled) = DdsTopic::demangle(&name).mangle() {
                prop_assert_eq!(mangled, name);
            } else {
                prop_assert!(name.is_empty());
            }
        }

        #[test]
        fn every_ros_name_reads_back(
            name in "(/[a-zA-Z_][a-zA-Z0-9_]{0,20}){1,4}",
            kind in 0..3_usize,
        ) {
            let topic = match kind {
                0 => DdsTopic::Topic(&name),
                1 => DdsTopic::ServiceRequest(&name),
                _ => DdsTopic::ServiceReply(&name),
            };
            let mangled = topic.mangle().unwrap();
            prop_assert_eq!(DdsTopic::demangle(&mangled), topic);
        }

        #[test]
        fn any_type_reads_back(name in "(a|msg|srv|action|dds_|[A-Z_:é]{0,3}|::|_Request|_Response){0,8}_?") {
            prop_assert_eq!(DdsType::demangle(&name).to_string(), name);
        }

        #[test]
        fn any_text_is_something(name: String) {
            prop_assert_eq!(DdsType::demangle(&name).to_string(), name.clone());
            DdsTopic::demangle(&name);
        }
    }
}

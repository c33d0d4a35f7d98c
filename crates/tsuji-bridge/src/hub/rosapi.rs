//! What clients ask of the system: the services of rosapi, answered here and by nobody else.
//!
//! Names and fields are those of rosapi_msgs; types of fields are told as rosapi of ROS 2 tells them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Value, json};
use tsuji::{EndpointInfo, EndpointKind, Graph};
use tsuji_msg::TypeDescription;
use tsuji_msg::definition::{Base, FieldType, Literal, Shape};

use crate::own;
use crate::settings::Settings;
use crate::tree;
use crate::types::{Types, of_kind};

/// What is looked at for an answer.
pub(super) struct World<'a> {
    pub(super) graph: &'a Graph,
    pub(super) types: &'a Types,
    /// Whether the client may know of a topic, and of a service.
    pub(super) shows_topic: &'a dyn Fn(&str) -> bool,
    pub(super) shows_service: &'a dyn Fn(&str) -> bool,
    /// The time by the clock of ROS, in nanoseconds.
    pub(super) now_ns: i64,
    pub(super) settings: &'a Settings,
    /// Whose services these are.
    pub(super) node: &'a str,
}

/// What clients call a service that is answered here: `/rosapi/topics`, whatever stands before.
pub(super) fn service_of(name: &str) -> Option<&'static str> {
    let short = name.strip_prefix('/').unwrap_or(name).strip_prefix("rosapi/")?;
    own::SERVICES.iter().map(|it| it.0).find(|it| *it == short)
}

/// The response of one of [`own::SERVICES`] but those of parameters, or what is the matter.
pub(super) fn answer(service: &str, args: &Value, world: &World<'_>) -> Result<Value, String> {
    let text = |field: &str| tree::text_of(args, service, field, 0);
    Ok(match service {
        "topics" => {
            let (topics, types) =
                world.topics(|_| true).into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
            json!({ "topics": topics, "types": types })
        }
        "topics_and_raw_types" => {
            let (topics, types) =
                world.topics(|_| true).into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
            let text = |name: &&str| match world.types.message(name) {
                Ok(ty) => ty.description.full_text(),
                Err(error) => format!("# the definition is not known here: {error}"),
            };
            let texts: Vec<_> = types.iter().map(text).collect();
            json!({ "topics": topics, "types": types, "typedefs_full_text": texts })
        }
        "topics_for_type" => {
            let wanted = of_kind(text("type")?, "msg");
            let topics = world.topics(|ty| ty == wanted).into_iter().map(|it| it.0);
            json!({ "topics": topics.collect::<Vec<_>>() })
        }
        "topic_type" => {
            let topic = full_name(text("topic")?);
            let all = world.topics(|_| true);
            let ty = all.iter().find(|it| it.0 == topic).map_or("", |it| it.1);
            json!({ "type": ty })
        }
        "publishers" => {
            let topic = full_name(text("topic")?);
            json!({ "publishers": world.nodes_of(EndpointKind::Publisher, &topic) })
        }
        "subscribers" => {
            let topic = full_name(text("topic")?);
            json!({ "subscribers": world.nodes_of(EndpointKind::Subscription, &topic) })
        }
        "services" => {
            let services = world.services().into_iter().map(|it| it.0);
            json!({ "services": services.collect::<BTreeSet<_>>() })
        }
        "services_for_type" => {
            let wanted = of_kind(text("type")?, "srv");
            let services = world.services().into_iter().filter(|it| it.1 == wanted);
            json!({ "services": services.map(|it| it.0).collect::<BTreeSet<_>>() })
        }
        "service_type" => {
            let service = full_name(text("service")?);
            let found = world.services().into_iter().find(|it| it.0 == service);
            json!({ "type": found.map_or(Cow::Borrowed(""), |it| it.1) })
        }
        // Of ROS 1's rosapi this is the services of a type, and of ROS 2's as well.
        "service_providers" => {
            let wanted = text("service")?;
            let ty = of_kind(wanted, "srv");
            let is_one = |it: &Provided<'_>| it.1 == ty || it.0 == full_name(wanted);
            let nodes = world.services().into_iter().filter(is_one).map(|it| it.2);
            json!({ "providers": nodes.collect::<BTreeSet<_>>() })
        }
        "service_node" => {
            let service = full_name(text("service")?);
            let found = world.services().into_iter().find(|it| it.0 == service);
            json!({ "node": found.map_or("", |it| it.2) })
        }
        "interfaces" => {
            let shipped = tsuji_interfaces::names().map(str::to_owned);
            let others = world.settings.interfaces.iter().cloned();
            let all = shipped.chain(others).chain(own::interfaces());
            json!({ "interfaces": all.collect::<BTreeSet<_>>() })
        }
        "nodes" => {
            let nodes = world.graph.nodes.iter().map(|it| it.fully_qualified_name());
            json!({ "nodes": nodes.filter(|it| !is_hidden(it)).collect::<BTreeSet<_>>() })
        }
        "node_details" => {
            let node = full_name(text("node")?);
            let services = world.services().into_iter().filter(|it| it.2 == node).map(|it| it.0);
            json!({
                "subscribing": world.of_node(EndpointKind::Subscription, &node),
                "publishing": world.of_node(EndpointKind::Publisher, &node),
                "services": services.collect::<BTreeSet<_>>(),
            })
        }
        "action_servers" => {
            let servers = world.graph.endpoints.iter();
            let servers = servers.filter(|it| it.kind == EndpointKind::Publisher);
            let names = servers.filter_map(|it| it.topic.strip_suffix("/_action/status"));
            let names = names.filter(|it| (world.shows_topic)(it));
            json!({ "action_servers": names.collect::<BTreeSet<_>>() })
        }
        "action_type" => {
            let action = full_name(text("action")?);
            let feedback = format!("{action}/_action/feedback");
            let is_it =
                |it: &&EndpointInfo| it.kind == EndpointKind::Publisher && it.topic == feedback;
            let found = world.graph.endpoints.iter().find(is_it);
            let found = found.filter(|_| (world.shows_topic)(&action));
            // Each action has a type of feedback messages of its own.
            let ty = found.and_then(|it| it.type_name.strip_suffix("_FeedbackMessage"));
            json!({ "type": ty.unwrap_or("") })
        }
        "action_goal_details" => {
            let ty = world.types.action(text("type")?)?;
            json!({ "typedefs": details(&ty.goal.description) })
        }
        "action_result_details" => {
            let ty = world.types.action(text("type")?)?;
            json!({ "typedefs": details(&ty.result) })
        }
        "action_feedback_details" => {
            let ty = world.types.action(text("type")?)?;
            json!({ "typedefs": details(&ty.feedback.description) })
        }
        "message_details" => {
            let ty = world.types.message(text("type")?)?;
            json!({ "typedefs": details(&ty.description) })
        }
        "service_request_details" => {
            let ty = world.types.service(text("type")?)?;
            json!({ "typedefs": details(&ty.request.description) })
        }
        "service_response_details" => {
            let ty = world.types.service(text("type")?)?;
            json!({ "typedefs": details(&ty.response.description) })
        }
        "get_time" => {
            let (sec, nanosec) =
                (world.now_ns.div_euclid(SECOND_NS), world.now_ns.rem_euclid(SECOND_NS));
            // roslibpy reads the names of ROS 1.
            json!({ "time": { "sec": sec, "nanosec": nanosec, "secs": sec, "nsecs": nanosec } })
        }
        "get_ros_version" => json!({ "version": 2, "distro": world.settings.distro }),
        _ => return Err(format!("{service} is none of rosapi")),
    })
}

/// A service, its type and its node.
type Provided<'a> = (Cow<'a, str>, Cow<'a, str>, &'a str);

impl World<'_> {
    /// Topics that are not hidden, of types that `fits` says, each with its type.
    fn topics(&self, fits: impl Fn(&str) -> bool) -> Vec<(&str, &str)> {
        let endpoints = self.graph.endpoints.iter().filter(|it| !is_hidden(&it.topic));
        let mut topics: Vec<(&str, &str)> = endpoints
            .filter(|it| fits(&it.type_name) && (self.shows_topic)(&it.topic))
            .map(|it| (it.topic.as_str(), it.type_name.as_str()))
            .collect();
        topics.sort_unstable();
        topics.dedup_by_key(|it| it.0);
        topics
    }

    /// Services that are not hidden, and those of rosapi.
    fn services(&self) -> Vec<Provided<'_>> {
        let servers = self.graph.services.iter().filter(|it| it.kind == EndpointKind::Server);
        let others = servers
            .filter(|it| !is_hidden(&it.topic))
            .map(|it| (Cow::Borrowed(&*it.topic), Cow::Borrowed(&*it.type_name), &*it.node));
        let own = own::SERVICES.iter().map(|(service, ty)| {
            let name = format!("/rosapi/{service}");
            (Cow::Owned(name), Cow::Owned(format!("rosapi_msgs/srv/{ty}")), self.node)
        });
        others.chain(own).filter(|it| (self.shows_service)(&it.0)).collect()
    }

    fn nodes_of(&self, kind: EndpointKind, topic: &str) -> BTreeSet<&str> {
        let found = self.graph.endpoints.iter().filter(|it| it.kind == kind && it.topic == topic);
        found.filter(|it| (self.shows_topic)(&it.topic)).map(|it| it.node.as_str()).collect()
    }

    fn of_node(&self, kind: EndpointKind, node: &str) -> BTreeSet<&str> {
        let all = self.graph.endpoints.iter();
        let found = all.filter(|it| it.kind == kind && it.node == node && !is_hidden(&it.topic));
        found.filter(|it| (self.shows_topic)(&it.topic)).map(|it| it.topic.as_str()).collect()
    }
}

/// A name from the root on.
pub(super) fn full_name(name: &str) -> String {
    let root = if name.starts_with('/') { "" } else { "/" };
    format!("{root}{name}")
}

/// A name with a token that begins with an underscore.
pub(super) fn is_hidden(name: &str) -> bool {
    name.split('/').any(|it| it.starts_with('_'))
}

/// What a message consists of, and then what each message in it does, each once.
fn details(ty: &TypeDescription) -> Vec<Value> {
    let mut all = vec![ty];
    let mut at = 0;
    while let Some(ty) = all.get(at).copied() {
        at += 1;
        for nested in ty.fields().iter().filter_map(|it| it.ty.base.nested()) {
            if !all.iter().any(|it| it.name() == nested.name()) {
                all.push(nested);
            }
        }
    }
    all.into_iter().map(detail).collect()
}

fn detail(ty: &TypeDescription) -> Value {
    let fields = ty.fields();
    let constants = ty.constants();
    json!({
        "type": short(&ty.name().to_string()),
        "fieldnames": fields.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(),
        "fieldtypes": fields.iter().map(|it| base(&it.ty)).collect::<Vec<_>>(),
        "fieldarraylen": fields.iter().map(|it| len(it.ty.shape)).collect::<Vec<_>>(),
        "examples": fields.iter().map(|it| example(&it.ty)).collect::<Vec<_>>(),
        "constnames": constants.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(),
        "constvalues": constants.iter().map(|it| shown(&it.value)).collect::<Vec<_>>(),
    })
}

/// As rosapi says it: `geometry_msgs/Point`.
fn short(name: &str) -> String {
    match *name.split('/').collect::<Vec<_>>() {
        [package, _, name] => format!("{package}/{name}"),
        _ => name.to_owned(),
    }
}

fn base<N: AsRef<TypeDescription>>(ty: &FieldType<N>) -> String {
    match &ty.base {
        Base::Scalar(kind) => match kind.name() {
            "bool" => "boolean".to_owned(),
            "byte" => "octet".to_owned(),
            "char" => "uint8".to_owned(),
            "float32" => "float".to_owned(),
            "float64" => "double".to_owned(),
            other => other.to_owned(),
        },
        Base::String { .. } | Base::WString { .. } => "string".to_owned(),
        Base::Nested(nested) => short(&nested.as_ref().name().to_string()),
    }
}

/// −1 for one value, 0 for any number of them.
fn len(shape: Shape) -> i64 {
    match shape {
        Shape::Single => -1,
        Shape::Array(len) => len.into(),
        Shape::Sequence | Shape::Bounded(_) => 0,
    }
}

fn example<N>(ty: &FieldType<N>) -> String {
    match (ty.shape, &ty.base) {
        (Shape::Single, Base::Nested(_)) => "{}".to_owned(),
        (Shape::Single, Base::Scalar(kind)) => match kind.name() {
            "bool" => "False".to_owned(),
            "float32" | "float64" => "0.0".to_owned(),
            _ => "0".to_owned(),
        },
        (Shape::Single, _) => String::new(),
        _ => "[]".to_owned(),
    }
}

fn shown(value: &Literal) -> String {
    match value {
        Literal::Text(text) => text.clone(),
        other => other.to_string(),
    }
}

const SECOND_NS: i64 = 1_000_000_000;

//! Parameters of a node, and asking for those of another, by the services that every node of ROS 2 has. ros2-client serves
//! them in the mapping of rmw_fastrtps alone, so here they are served in the mapping that is asked for.

use futures::{FutureExt as _, select_biased};
use ros2_client::parameters::{ParameterDescriptor, raw};
use ros2_client::qos::{History, QosProfile, WhenFull};
use ros2_client::rcl_interfaces::{
    DescribeParametersRequest, DescribeParametersResponse, GetParameterTypesRequest,
    GetParameterTypesResponse, GetParametersRequest, GetParametersResponse, ListParametersRequest,
    ListParametersResponse, ListParametersResult, SetParametersAtomicallyResponse,
    SetParametersRequest, SetParametersResponse,
};
use ros2_client::{
    Client, Message, MessageTypeName, NodeOptions, Parameter, ParameterValue, RmwRequestId, Server,
    ServiceMapping, ServiceTypeName,
};

use crate::arguments::{Inspect, Offer};
use crate::end::End;
use crate::peer::{Peer, absolute, say};

const SERVICES: [&str; 6] = [
    "list_parameters",
    "get_parameters",
    "get_parameter_types",
    "describe_parameters",
    "set_parameters",
    "set_parameters_atomically",
];

fn qos() -> QosProfile {
    // rmw_qos_profile_parameters
    QosProfile::subscription_default()
        .reliability_reliable(WhenFull::Block)
        .history(History::KeepLast { depth: 1000 })
}

fn failed(error: impl std::fmt::Debug) -> End {
    End::Failed(format!("{error:?}"))
}

fn service_type(service: &str) -> ServiceTypeName {
    let words = service.split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
    ServiceTypeName::new("rcl_interfaces", &words.collect::<String>())
}

fn server<Q: Message + Clone + 'static, S: Message + Clone + 'static>(
    peer: &mut Peer,
    mapping: ServiceMapping,
    service: &str,
) -> Result<Server<Q, S>, End> {
    let (name, text) = absolute(&format!("{}/{service}", peer.node.fully_qualified_name()))?;
    let made = peer.node.create_server(mapping, &name, &service_type(service), qos(), qos());
    made.map_err(|error| End::failed(&text, error))
}

fn client<Q: Message + Clone + 'static, S: Message + Clone + 'static>(
    peer: &mut Peer,
    mapping: ServiceMapping,
    of: &str,
    service: &str,
) -> Result<Client<Q, S>, End> {
    let (name, text) = absolute(&format!("{of}/{service}"))?;
    let made = peer.node.create_client(mapping, &name, &service_type(service), qos(), qos());
    made.map_err(|error| End::failed(&text, error))
}

/// What the node has: of each kind one, and one with a rule.
pub(crate) fn options() -> NodeOptions {
    let rule = |name: &str, value: &ParameterValue| match (name, value) {
        ("rate_hz", ParameterValue::Integer(rate)) if *rate <= 0 => {
            Err(format!("rate_hz is more than 0, and not {rate}"))
        }
        _ => Ok(()),
    };
    let texts = vec!["a".to_owned(), "b".to_owned()];
    NodeOptions::new()
        .declare_parameter("enabled", ParameterValue::Boolean(true))
        .declare_parameter("rate_hz", ParameterValue::Integer(1))
        .declare_parameter("arm.gain", ParameterValue::Double(0.5))
        .declare_parameter("label", ParameterValue::String("demo".to_owned()))
        .declare_parameter("tags", ParameterValue::StringArray(texts))
        .declare_parameter("sizes", ParameterValue::IntegerArray(vec![640, 480]))
        .parameter_validator(Box::new(rule))
}

enum Asked {
    List,
    Get(GetParametersRequest),
    Types(GetParameterTypesRequest),
    Describe(DescribeParametersRequest),
    Set(SetParametersRequest),
    SetAtomically(SetParametersRequest),
}

pub(crate) async fn offer(peer: &mut Peer, arguments: &Offer) -> Result<(), End> {
    let mapping = ServiceMapping::from(arguments.mapping);
    let list = server::<ListParametersRequest, ListParametersResponse>(peer, mapping, SERVICES[0])?;
    let get = server::<_, GetParametersResponse>(peer, mapping, SERVICES[1])?;
    let types = server::<_, GetParameterTypesResponse>(peer, mapping, SERVICES[2])?;
    let describe = server::<_, DescribeParametersResponse>(peer, mapping, SERVICES[3])?;
    let set = server::<_, SetParametersResponse>(peer, mapping, SERVICES[4])?;
    let atomically = server::<_, SetParametersAtomicallyResponse>(peer, mapping, SERVICES[5])?;
    say("ready")?;
    loop {
        let next = async {
            Ok::<(RmwRequestId, Asked), End>(select_biased! {
                it = list.async_receive_request().fuse() => it.map(|(id, _)| (id, Asked::List)).map_err(failed)?,
                it = get.async_receive_request().fuse() => it.map(|(id, it)| (id, Asked::Get(it))).map_err(failed)?,
                it = types.async_receive_request().fuse() => it.map(|(id, it)| (id, Asked::Types(it))).map_err(failed)?,
                it = describe.async_receive_request().fuse() => it.map(|(id, it)| (id, Asked::Describe(it))).map_err(failed)?,
                it = set.async_receive_request().fuse() => it.map(|(id, it)| (id, Asked::Set(it))).map_err(failed)?,
                it = atomically.async_receive_request().fuse() => it.map(|(id, it)| (id, Asked::SetAtomically(it))).map_err(failed)?,
            })
        };
        let (id, asked) = match peer.wait(|| "a request".to_owned(), next).await {
            Err(End::Interrupted(_)) => return Err(End::Told),
            asked => asked??,
        };
        let service = match &asked {
            Asked::List => SERVICES[0],
            Asked::Get(_) => SERVICES[1],
            Asked::Types(_) => SERVICES[2],
            Asked::Describe(_) => SERVICES[3],
            Asked::Set(_) => SERVICES[4],
            Asked::SetAtomically(_) => SERVICES[5],
        };
        // As of a reply of any service: before its reader has matched it would be lost.
        let replies = format!("rr{}/{service}Reply", peer.node.fully_qualified_name());
        let client = id.writer_gid.to_bytes16();
        let client = &client[..8];
        let met = peer.until(
            || format!("the client of {service} to match for its reply"),
            |view| {
                view.readers_matched_of(&replies, |it| it.starts_with(client)) > 0
                    || !view.knows_participant(client)
            },
        );
        met.await?;
        let change = |result: Result<(), String>| raw::SetParametersResult {
            successful: result.is_ok(),
            reason: result.err().unwrap_or_default(),
        };
        match asked {
            // All of them are listed, whatever prefix is asked for.
            Asked::List => {
                let names = peer.node.list_parameters();
                let result = ListParametersResult { names, prefixes: Vec::new() };
                list.async_send_response(id, ListParametersResponse { result }).await
            }
            Asked::Get(it) => {
                let values = it.names.iter().filter_map(|name| peer.node.get_parameter(name));
                let values = values.map(Into::into).collect();
                get.async_send_response(id, GetParametersResponse { values }).await
            }
            Asked::Types(it) => {
                let values = it.names.iter().filter_map(|name| peer.node.get_parameter(name));
                let values = values.map(|it| it.to_parameter_type() as u8).collect();
                types.async_send_response(id, GetParameterTypesResponse { values }).await
            }
            Asked::Describe(it) => {
                let values = it.names.iter().filter_map(|name| {
                    let value = peer.node.get_parameter(name)?;
                    Some(ParameterDescriptor::from_value(name, &value).into())
                });
                let values = values.collect();
                describe.async_send_response(id, DescribeParametersResponse { values }).await
            }
            Asked::Set(it) => {
                let each = it.parameter.into_iter().map(Parameter::from);
                let results = each.map(|it| change(peer.node.set_parameter(&it.name, it.value)));
                let results = results.collect();
                set.async_send_response(id, SetParametersResponse { results }).await
            }
            Asked::SetAtomically(it) => {
                let mut all = it.parameter.into_iter().map(Parameter::from);
                let result = change(match (all.next(), all.next()) {
                    (Some(it), None) => peer.node.set_parameter(&it.name, it.value),
                    _ => Err("the node sets one at a time".to_owned()),
                });
                atomically.async_send_response(id, SetParametersAtomicallyResponse { result }).await
            }
        }
        .map_err(failed)?;
        say(format_args!("answered {service}"))?;
    }
}

pub(crate) async fn inspect(peer: &mut Peer, arguments: &Inspect) -> Result<(), End> {
    let mapping = ServiceMapping::from(arguments.mapping);
    let (_, of) = absolute(&arguments.node_name)?;
    let list = client::<_, ListParametersResponse>(peer, mapping, &of, SERVICES[0])?;
    let get = client::<_, GetParametersResponse>(peer, mapping, &of, SERVICES[1])?;
    let types = client::<_, GetParameterTypesResponse>(peer, mapping, &of, SERVICES[2])?;
    let describe = client::<_, DescribeParametersResponse>(peer, mapping, &of, SERVICES[3])?;
    let set = client::<_, SetParametersResponse>(peer, mapping, &of, SERVICES[4])?;
    let atomically = client::<_, SetParametersAtomicallyResponse>(peer, mapping, &of, SERVICES[5])?;
    let (topic, _) = absolute("parameter_events")?;
    let type_name = MessageTypeName::new("rcl_interfaces", "ParameterEvent");
    let topic = peer.node.create_topic(&topic, type_name, &qos()).map_err(failed)?;
    let events = peer.node.create_subscription::<raw::ParameterEvent>(&topic, Some(qos()));
    let events = events.map_err(failed)?;
    say("ready")?;
    let met = peer.until(
        || format!("the parameters of {of}"),
        |view| {
            view.writers_matched("rt/parameter_events") > 0
                && SERVICES.iter().all(|service| {
                    view.readers_matched(&format!("rq{of}/{service}Request")) > 0
                        && view.writers_matched(&format!("rr{of}/{service}Reply")) > 0
                })
        },
    );
    met.await?;
    peer.hold(arguments.hold).await?;
    let names = arguments.names.clone();
    let what = || format!("an answer of {of}");
    let request = ListParametersRequest { prefixes: Vec::new(), depth: 0 };
    let listed = peer.wait(what, list.async_call_service(request)).await?.map_err(failed)?;
    say(format_args!("names {}", listed.result.names.join(" ")))?;
    let request = GetParametersRequest { names: names.clone() };
    let values = peer.wait(what, get.async_call_service(request)).await?.map_err(failed)?.values;
    for value in values {
        say(format_args!("value {:?}", ParameterValue::from(value)))?;
    }
    let request = GetParameterTypesRequest { names: names.clone() };
    let values = peer.wait(what, types.async_call_service(request)).await?.map_err(failed)?.values;
    say(format_args!("types {values:?}"))?;
    let request = DescribeParametersRequest { names: names.clone() };
    let answer = peer.wait(what, describe.async_call_service(request)).await?.map_err(failed)?;
    for it in answer.values {
        let ranges = it.floating_point_range.iter().map(|it| (it.from_value, it.to_value));
        let ranges: Vec<_> = ranges.collect();
        say(format_args!("described {} {} {:?} {ranges:?}", it.name, it.r#type, it.description))?;
    }
    let Some(name) = names.first() else { return Ok(()) };
    let to = |value: f64| SetParametersRequest {
        parameter: vec![
            Parameter { name: name.clone(), value: ParameterValue::Double(value) }.into(),
        ],
    };
    for value in &arguments.set {
        let answer = peer.wait(what, set.async_call_service(to(*value))).await?.map_err(failed)?;
        for it in answer.results {
            say(format_args!("set {} {:?}", it.successful, it.reason))?;
        }
        let answer = atomically.async_call_service(to(*value));
        let it = peer.wait(what, answer).await?.map_err(failed)?.result;
        say(format_args!("set atomically {} {:?}", it.successful, it.reason))?;
    }
    loop {
        let (event, _) =
            peer.wait(|| "an event".to_owned(), events.async_take()).await?.map_err(failed)?;
        // Each node of ros2-client tells of its own at its start.
        if event.node == of && !event.changed_parameters.is_empty() {
            for it in event.changed_parameters {
                say(format_args!("event {} {:?}", it.name, ParameterValue::from(it.value)))?;
            }
            return Ok(());
        }
    }
}

//! What can be seen of the whole system.

use std::ffi::c_char;

use tsuji::{EndpointInfo, EndpointKind, Graph};
use tsuji_core::names::{validate_namespace, validate_node, validate_topic};
use tsuji_ros::names::DdsTopic;

use crate::abi::{self, Abi};
use crate::check::{not_null, reference, reference_mut, text};
use crate::error::{Result, RmwError, guard};
use crate::ffi::rcutils::{rcutils_allocator_t, rcutils_string_array_t};
use crate::ffi::rmw::{
    GidBytes, RMW_ENDPOINT_CLIENT, RMW_ENDPOINT_PUBLISHER, RMW_ENDPOINT_SERVER,
    RMW_ENDPOINT_SUBSCRIPTION, rmw_context_t, rmw_names_and_types_t, rmw_node_t, rmw_qos_profile_t,
    rmw_ret_t, rmw_service_endpoint_info_array_t, rmw_service_endpoint_info_t,
    rmw_topic_endpoint_info_array_t, rmw_topic_endpoint_info_t,
};
use crate::ffi::rosidl::rosidl_type_hash_t;
use crate::gid::bytes_of;
use crate::handle::inside;
use crate::qos;
use crate::text::{Batch, NamesAndTypes};

/// The names and namespaces of all nodes, the caller's among them.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, and the arrays are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_node_names(
    node: *const rmw_node_t,
    node_names: *mut rcutils_string_array_t,
    node_namespaces: *mut rcutils_string_array_t,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { node_names_of(node, node_names, node_namespaces, None) })
}

/// The same, and the enclave of each, which has no effect here: there is no security.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, and the arrays are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_node_names_with_enclaves(
    node: *const rmw_node_t,
    node_names: *mut rcutils_string_array_t,
    node_namespaces: *mut rcutils_string_array_t,
    enclaves: *mut rcutils_string_array_t,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { node_names_of(node, node_names, node_namespaces, Some(enclaves)) })
}

/// All topics with their types; with `no_demangle` as they are named on DDS, those of services too.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, and what else is pointed to is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_topic_names_and_types(
    node: *const rmw_node_t,
    allocator: *mut rcutils_allocator_t,
    no_demangle: bool,
    topic_names_and_types: *mut rmw_names_and_types_t,
) -> rmw_ret_t {
    guard(|| {
        let collect = |graph: &Graph| topics(graph, no_demangle, |_, _| true);
        // SAFETY: the caller promises it.
        unsafe { names_and_types(node, allocator, topic_names_and_types, collect) }
    })
}

/// All services that have a server or a client, with their types.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, and what else is pointed to is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_service_names_and_types(
    node: *const rmw_node_t,
    allocator: *mut rcutils_allocator_t,
    service_names_and_types: *mut rmw_names_and_types_t,
) -> rmw_ret_t {
    guard(|| {
        let collect = |graph: &Graph| services(graph, |_| true);
        // SAFETY: the caller promises it.
        unsafe { names_and_types(node, allocator, service_names_and_types, collect) }
    })
}

/// The topics that a node publishes, with their types.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, and what else is pointed to is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_publisher_names_and_types_by_node(
    node: *const rmw_node_t,
    allocator: *mut rcutils_allocator_t,
    node_name: *const c_char,
    node_namespace: *const c_char,
    no_demangle: bool,
    topic_names_and_types: *mut rmw_names_and_types_t,
) -> rmw_ret_t {
    guard(|| {
        let collect = |graph: &Graph, of: &str| {
            topics(graph, no_demangle, |it, is_publisher| is_publisher && it.node == of)
        };
        let of = (node_name, node_namespace);
        // SAFETY: the caller promises it.
        unsafe { by_node(node, allocator, of, topic_names_and_types, collect) }
    })
}

/// The topics that a node subscribes to, with their types.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, and what else is pointed to is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_subscriber_names_and_types_by_node(
    node: *const rmw_node_t,
    allocator: *mut rcutils_allocator_t,
    node_name: *const c_char,
    node_namespace: *const c_char,
    no_demangle: bool,
    topic_names_and_types: *mut rmw_names_and_types_t,
) -> rmw_ret_t {
    guard(|| {
        let collect = |graph: &Graph, of: &str| {
            topics(graph, no_demangle, |it, is_publisher| !is_publisher && it.node == of)
        };
        let of = (node_name, node_namespace);
        // SAFETY: the caller promises it.
        unsafe { by_node(node, allocator, of, topic_names_and_types, collect) }
    })
}

/// The services that a node serves, with their types.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, and what else is pointed to is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_service_names_and_types_by_node(
    node: *const rmw_node_t,
    allocator: *mut rcutils_allocator_t,
    node_name: *const c_char,
    node_namespace: *const c_char,
    service_names_and_types: *mut rmw_names_and_types_t,
) -> rmw_ret_t {
    guard(|| {
        let collect = |graph: &Graph, of: &str| {
            services(graph, |it| it.kind == EndpointKind::Server && it.node == of)
        };
        let of = (node_name, node_namespace);
        // SAFETY: the caller promises it.
        unsafe { by_node(node, allocator, of, service_names_and_types, collect) }
    })
}

/// The services that a node is a client of, with their types.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, and what else is pointed to is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_client_names_and_types_by_node(
    node: *const rmw_node_t,
    allocator: *mut rcutils_allocator_t,
    node_name: *const c_char,
    node_namespace: *const c_char,
    service_names_and_types: *mut rmw_names_and_types_t,
) -> rmw_ret_t {
    guard(|| {
        let collect = |graph: &Graph, of: &str| {
            services(graph, |it| it.kind == EndpointKind::Client && it.node == of)
        };
        let of = (node_name, node_namespace);
        // SAFETY: the caller promises it.
        unsafe { by_node(node, allocator, of, service_names_and_types, collect) }
    })
}

/// How many publishers a topic has.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, the name is null or ends with NUL, the count is null or
/// valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_count_publishers(
    node: *const rmw_node_t,
    topic_name: *const c_char,
    count: *mut usize,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { count_of(node, ("topic_name", topic_name), EndpointKind::Publisher, count) })
}

/// How many subscriptions a topic has.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, the name is null or ends with NUL, the count is null or
/// valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_count_subscribers(
    node: *const rmw_node_t,
    topic_name: *const c_char,
    count: *mut usize,
) -> rmw_ret_t {
    let name = ("topic_name", topic_name);
    // SAFETY: the caller promises it.
    guard(|| unsafe { count_of(node, name, EndpointKind::Subscription, count) })
}

/// How many clients a service has.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, the name is null or ends with NUL, the count is null or
/// valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_count_clients(
    node: *const rmw_node_t,
    service_name: *const c_char,
    count: *mut usize,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { count_of(node, ("service_name", service_name), EndpointKind::Client, count) })
}

/// How many servers a service has.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, the name is null or ends with NUL, the count is null or
/// valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_count_services(
    node: *const rmw_node_t,
    service_name: *const c_char,
    count: *mut usize,
) -> rmw_ret_t {
    // SAFETY: the caller promises it.
    guard(|| unsafe { count_of(node, ("service_name", service_name), EndpointKind::Server, count) })
}

/// Every publisher of a topic: its node, type, QoS and number. With `no_mangle` the topic and the types
/// are named as on DDS.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, and what else is pointed to is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_publishers_info_by_topic(
    node: *const rmw_node_t,
    allocator: *mut rcutils_allocator_t,
    topic_name: *const c_char,
    no_mangle: bool,
    publishers_info: *mut rmw_topic_endpoint_info_array_t,
) -> rmw_ret_t {
    let wanted = Wanted { no_mangle, publishers: true };
    // SAFETY: the caller promises it.
    guard(|| unsafe { endpoints(node, allocator, topic_name, wanted, publishers_info) })
}

/// Every subscription to a topic, in the same way.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, and what else is pointed to is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_subscriptions_info_by_topic(
    node: *const rmw_node_t,
    allocator: *mut rcutils_allocator_t,
    topic_name: *const c_char,
    no_mangle: bool,
    subscriptions_info: *mut rmw_topic_endpoint_info_array_t,
) -> rmw_ret_t {
    let wanted = Wanted { no_mangle, publishers: false };
    // SAFETY: the caller promises it.
    guard(|| unsafe { endpoints(node, allocator, topic_name, wanted, subscriptions_info) })
}

/// Every client of a service: its node, type, and the numbers and QoS of its two halves. Looked up since Lyrical.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, and what else is pointed to is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_clients_info_by_service(
    node: *const rmw_node_t,
    allocator: *mut rcutils_allocator_t,
    service_name: *const c_char,
    no_mangle: bool,
    clients_info: *mut rmw_service_endpoint_info_array_t,
) -> rmw_ret_t {
    let wanted = (EndpointKind::Client, no_mangle);
    // SAFETY: the caller promises it.
    guard(|| unsafe { service_ends(node, allocator, service_name, wanted, clients_info) })
}

/// Every server of a service, in the same way.
///
/// # Safety
///
/// The node is null or of `rmw_create_node`, and what else is pointed to is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_get_servers_info_by_service(
    node: *const rmw_node_t,
    allocator: *mut rcutils_allocator_t,
    service_name: *const c_char,
    no_mangle: bool,
    servers_info: *mut rmw_service_endpoint_info_array_t,
) -> rmw_ret_t {
    let wanted = (EndpointKind::Server, no_mangle);
    // SAFETY: the caller promises it.
    guard(|| unsafe { service_ends(node, allocator, service_name, wanted, servers_info) })
}

/// Which endpoints of a topic.
#[derive(Clone, Copy)]
struct Wanted {
    no_mangle: bool,
    publishers: bool,
}

/// # Safety
///
/// As [`rmw_get_node_names_with_enclaves`]; no enclaves are wanted where there is `None`.
unsafe fn node_names_of(
    node: *const rmw_node_t,
    names: *mut rcutils_string_array_t,
    namespaces: *mut rcutils_string_array_t,
    enclaves: Option<*mut rcutils_string_array_t>,
) -> Result {
    // SAFETY: the caller promises it.
    let of = unsafe { inside(node) }?;
    // SAFETY: the caller promises it, also that none of them is another.
    let (names, namespaces) = unsafe {
        (empty_strings("node_names", names)?, empty_strings("node_namespaces", namespaces)?)
    };
    let enclaves = match enclaves {
        // SAFETY: as above.
        Some(enclaves) => Some(unsafe { empty_strings("enclaves", enclaves) }?),
        None => None,
    };
    // SAFETY: a node that passed points to its context.
    let context = unsafe { (*node).context };
    not_null("the context of node", context)?;
    // SAFETY: as above.
    let context: rmw_context_t = unsafe { abi::get(abi::here()?, context) };
    let nodes = of.node.context().graph().nodes;
    let mut batch = Batch::new(&context.options.allocator)?;
    let all = (
        batch.texts(nodes.iter().map(|it| it.name.as_str()))?,
        batch.texts(nodes.iter().map(|it| it.namespace.as_str()))?,
    );
    if let Some(enclaves) = enclaves {
        *enclaves = batch.texts(nodes.iter().map(|it| it.enclave.as_str()))?;
    }
    batch.keep();
    (*names, *namespaces) = all;
    Ok(())
}

/// # Safety
///
/// Null, or valid as long as the answer is used.
unsafe fn empty_strings<'a>(
    name: &str,
    array: *mut rcutils_string_array_t,
) -> Result<&'a mut rcutils_string_array_t> {
    // SAFETY: the caller promises it.
    let array = unsafe { reference_mut(name, array) }?;
    if array.size == 0 && array.data.is_null() { Ok(array) } else { Err(not_zero(name)) }
}

fn not_zero(name: &str) -> RmwError {
    RmwError::invalid(format!("{name} is not zero"))
}

/// Fills in what `collect` takes from the graph.
///
/// # Safety
///
/// As [`rmw_get_topic_names_and_types`].
unsafe fn names_and_types(
    node: *const rmw_node_t,
    allocator: *mut rcutils_allocator_t,
    answer: *mut rmw_names_and_types_t,
    collect: impl FnOnce(&Graph) -> NamesAndTypes,
) -> Result {
    // SAFETY: the caller promises it.
    unsafe { fill(node, allocator, answer, |graph| Ok(collect(graph))) }
}

/// The same about one node.
///
/// # Safety
///
/// As [`rmw_get_publisher_names_and_types_by_node`].
unsafe fn by_node(
    node: *const rmw_node_t,
    allocator: *mut rcutils_allocator_t,
    (name, namespace): (*const c_char, *const c_char),
    answer: *mut rmw_names_and_types_t,
    collect: impl FnOnce(&Graph, &str) -> NamesAndTypes,
) -> Result {
    // SAFETY: the caller promises it.
    let (name, namespace) =
        unsafe { (text("node_name", name)?, text("node_namespace", namespace)?) };
    validate_node(name).map_err(|error| RmwError::invalid(error.to_string()))?;
    validate_namespace(namespace).map_err(|error| RmwError::invalid(error.to_string()))?;
    let full = format!("{}/{name}", namespace.trim_end_matches('/'));
    let collect = |graph: &Graph| {
        let mut nodes = graph.nodes.iter();
        if !nodes.any(|it| it.name == name && it.namespace == namespace) {
            return Err(RmwError::no_such_node(&full));
        }
        Ok(collect(graph, &full))
    };
    // SAFETY: the caller promises it.
    unsafe { fill(node, allocator, answer, collect) }
}

/// # Safety
///
/// As [`rmw_get_topic_names_and_types`].
unsafe fn fill(
    node: *const rmw_node_t,
    allocator: *mut rcutils_allocator_t,
    answer: *mut rmw_names_and_types_t,
    collect: impl FnOnce(&Graph) -> Result<NamesAndTypes>,
) -> Result {
    // SAFETY: the caller promises it.
    let node = unsafe { inside(node) }?;
    // SAFETY: the caller promises it.
    let mut batch = Batch::new(unsafe { reference("allocator", allocator) }?)?;
    // SAFETY: the caller promises it.
    let answer = unsafe { reference_mut("names_and_types", answer) }?;
    let names = &answer.names;
    if names.size != 0 || !names.data.is_null() || !answer.types.is_null() {
        return Err(not_zero("names_and_types"));
    }
    let found = collect(&node.node.context().graph())?;
    *answer = batch.names_and_types(&found)?;
    batch.keep();
    Ok(())
}

/// # Safety
///
/// As [`rmw_count_publishers`].
unsafe fn count_of(
    node: *const rmw_node_t,
    (what, name): (&str, *const c_char),
    kind: EndpointKind,
    count: *mut usize,
) -> Result {
    // SAFETY: the caller promises it.
    let node = unsafe { inside(node) }?;
    // SAFETY: the caller promises it.
    let name = unsafe { text(what, name) }?;
    validate_topic(name).map_err(|error| RmwError::invalid(error.to_string()))?;
    // SAFETY: the caller promises it.
    let count = unsafe { reference_mut("count", count) }?;
    let Graph { endpoints, services, .. } = node.node.context().graph();
    let all = endpoints.iter().chain(&services);
    *count = all.filter(|it| it.kind == kind && it.topic == name).count();
    Ok(())
}

/// # Safety
///
/// As [`rmw_get_publishers_info_by_topic`].
unsafe fn endpoints(
    node: *const rmw_node_t,
    allocator: *mut rcutils_allocator_t,
    topic: *const c_char,
    wanted: Wanted,
    answer: *mut rmw_topic_endpoint_info_array_t,
) -> Result {
    // SAFETY: the caller promises it.
    let node = unsafe { inside(node) }?;
    // SAFETY: the caller promises it.
    let mut batch = Batch::new(unsafe { reference("allocator", allocator) }?)?;
    // SAFETY: the caller promises it.
    let topic = unsafe { text("topic_name", topic) }?;
    // SAFETY: the caller promises it.
    let answer = unsafe { reference_mut("the array of endpoints", answer) }?;
    if answer.size != 0 || !answer.info_array.is_null() {
        return Err(not_zero("the array of endpoints"));
    }
    let graph = node.node.context().graph();
    let all = ends(&graph, wanted.no_mangle);
    let found: Vec<_> =
        all.iter().filter(|it| it.is_publisher == wanted.publishers && it.topic == topic).collect();
    let abi = abi::here()?;
    let infos = batch.zeroed_in_c::<rmw_topic_endpoint_info_t>(abi, found.len())?;
    for (at, end) in found.iter().enumerate() {
        let info = info(&mut batch, end)?;
        // SAFETY: there is room for as many.
        unsafe { abi::set(abi, abi::element(abi, infos, at), &info) };
    }
    batch.keep();
    *answer = rmw_topic_endpoint_info_array_t { size: found.len(), info_array: infos };
    Ok(())
}

/// # Safety
///
/// As [`rmw_get_clients_info_by_service`].
unsafe fn service_ends(
    node: *const rmw_node_t,
    allocator: *mut rcutils_allocator_t,
    service: *const c_char,
    (kind, no_mangle): (EndpointKind, bool),
    answer: *mut rmw_service_endpoint_info_array_t,
) -> Result {
    // SAFETY: the caller promises it.
    let node = unsafe { inside(node) }?;
    // SAFETY: the caller promises it.
    let mut batch = Batch::new(unsafe { reference("allocator", allocator) }?)?;
    // SAFETY: the caller promises it.
    let service = unsafe { text("service_name", service) }?;
    // SAFETY: the caller promises it.
    let answer = unsafe { reference_mut("the array of endpoints", answer) }?;
    if answer.size != 0 || !answer.info_array.is_null() {
        return Err(not_zero("the array of endpoints"));
    }
    let graph = node.node.context().graph();
    // As on DDS a service has the name of its requests' topic.
    let name = |it: &EndpointInfo| match no_mangle {
        true => mangled(DdsTopic::ServiceRequest(&it.topic)),
        false => it.topic.clone(),
    };
    let found: Vec<_> =
        graph.services.iter().filter(|it| it.kind == kind && name(it) == service).collect();
    let abi = abi::here()?;
    let infos = batch.zeroed_in_c::<rmw_service_endpoint_info_t>(abi, found.len())?;
    for (at, end) in found.iter().enumerate() {
        let info = service_info(&mut batch, abi, end)?;
        // SAFETY: there is room for as many.
        unsafe { abi::set(abi, abi::element(abi, infos, at), &info) };
    }
    batch.keep();
    *answer = rmw_service_endpoint_info_array_t { size: found.len(), info_array: infos };
    Ok(())
}

/// A client or server has one number here, by which rmw would have told of a middleware that knows services.
fn service_info(
    batch: &mut Batch,
    abi: &Abi,
    end: &EndpointInfo,
) -> Result<rmw_service_endpoint_info_t> {
    let (namespace, name) = node_name(end);
    let gids = batch.zeroed_in_c::<GidBytes>(abi, 1)?;
    let profiles = batch.zeroed::<rmw_qos_profile_t>(1)?;
    // SAFETY: there is room for one of each.
    unsafe {
        abi::set(abi, gids, &bytes_of(end.gid));
        profiles.write(qos::profile(&end.qos));
    }
    Ok(rmw_service_endpoint_info_t {
        node_name: batch.text(name)?,
        node_namespace: batch.text(namespace)?,
        service_type: batch.text(&end.type_name)?,
        service_type_hash: type_hash(&end.type_hash),
        endpoint_type: match end.kind {
            EndpointKind::Client => RMW_ENDPOINT_CLIENT,
            _ => RMW_ENDPOINT_SERVER,
        },
        endpoint_count: 1,
        endpoint_gids: gids.cast(),
        qos_profiles: profiles,
    })
}

/// The namespace and the name of an endpoint's node.
fn node_name(endpoint: &EndpointInfo) -> (&str, &str) {
    match endpoint.node.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((namespace, name)) => (namespace, name),
        // As ROS 2 calls the nodes of which nothing was said yet.
        None => ("_NODE_NAMESPACE_UNKNOWN_", "_NODE_NAME_UNKNOWN_"),
    }
}

fn info(batch: &mut Batch, end: &End<'_>) -> Result<rmw_topic_endpoint_info_t> {
    let endpoint = end.endpoint;
    let (namespace, name) = node_name(endpoint);
    Ok(rmw_topic_endpoint_info_t {
        node_name: batch.text(name)?,
        node_namespace: batch.text(namespace)?,
        topic_type: batch.text(&end.type_name)?,
        topic_type_hash: type_hash(&endpoint.type_hash),
        endpoint_type: match end.is_publisher {
            true => RMW_ENDPOINT_PUBLISHER,
            false => RMW_ENDPOINT_SUBSCRIPTION,
        },
        endpoint_gid: bytes_of(endpoint.gid),
        qos_profile: qos::profile(&endpoint.qos),
    })
}

/// `RIHS01_…` as a number; of version 0, which is none, if it is not that.
fn type_hash(text: &str) -> rosidl_type_hash_t {
    let none = rosidl_type_hash_t { version: 0, value: [0; 32] };
    let Some(digits) = text.strip_prefix("RIHS01_").filter(|it| it.len() == 64 && it.is_ascii())
    else {
        return none;
    };
    let mut value = [0; 32];
    for (at, byte) in value.iter_mut().enumerate() {
        let Ok(read) = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16) else { return none };
        *byte = read;
    }
    rosidl_type_hash_t { version: 1, value }
}

fn topics(
    graph: &Graph,
    no_demangle: bool,
    wanted: impl Fn(&EndpointInfo, bool) -> bool,
) -> NamesAndTypes {
    let ends = ends(graph, no_demangle);
    collected(ends.into_iter().filter(|it| wanted(it.endpoint, it.is_publisher)).map(|it| {
        let End { topic, type_name, .. } = it;
        (topic, type_name)
    }))
}

fn services(graph: &Graph, wanted: impl Fn(&EndpointInfo) -> bool) -> NamesAndTypes {
    let wanted = graph.services.iter().filter(|it| wanted(it));
    collected(wanted.map(|it| (it.topic.clone(), it.type_name.clone())))
}

fn collected(all: impl Iterator<Item = (String, String)>) -> NamesAndTypes {
    let mut collected = NamesAndTypes::new();
    for (name, type_name) in all {
        collected.entry(name).or_default().insert(type_name);
    }
    collected
}

/// One end of a topic.
struct End<'a> {
    topic: String,
    type_name: String,
    is_publisher: bool,
    endpoint: &'a EndpointInfo,
}

/// The ends of all topics; as they are on DDS, with the two of each server and client, if `on_dds`.
fn ends(graph: &Graph, on_dds: bool) -> Vec<End<'_>> {
    let mut ends = Vec::new();
    for endpoint in &graph.endpoints {
        let is_publisher = endpoint.kind == EndpointKind::Publisher;
        let (topic, type_name) = match on_dds {
            true => (mangled(DdsTopic::Topic(&endpoint.topic)), dds_type(&endpoint.type_name, "")),
            false => (endpoint.topic.clone(), endpoint.type_name.clone()),
        };
        ends.push(End { topic, type_name, is_publisher, endpoint });
    }
    for endpoint in graph.services.iter().filter(|_| on_dds) {
        let is_client = endpoint.kind == EndpointKind::Client;
        let halves = [
            (DdsTopic::ServiceRequest(&endpoint.topic), "_Request", is_client),
            (DdsTopic::ServiceReply(&endpoint.topic), "_Response", !is_client),
        ];
        for (topic, suffix, is_publisher) in halves {
            let (topic, type_name) = (mangled(topic), dds_type(&endpoint.type_name, suffix));
            ends.push(End { topic, type_name, is_publisher, endpoint });
        }
    }
    ends
}

/// The name on DDS. One that is too long for it keeps its own.
fn mangled(topic: DdsTopic<'_>) -> String {
    topic.mangle().unwrap_or_else(|error| error.name)
}

/// `std_msgs/msg/String` as `std_msgs::msg::dds_::String_`.
fn dds_type(name: &str, suffix: &str) -> String {
    match name.rsplit_once('/') {
        Some((folder, name)) => format!("{}::dds_::{name}{suffix}_", folder.replace('/', "::")),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::ptr;

    use tsuji::{Durability, Qos};
    use tsuji_interfaces::std_msgs::msg::String as Text;
    use tsuji_interfaces::std_srvs::srv::SetBool;

    use super::*;
    use crate::error::tests::told;
    use crate::ffi::rcutils::{NO_ALLOCATOR, NO_STRINGS};
    use crate::ffi::rmw::{
        RMW_RET_BAD_ALLOC, RMW_RET_INCORRECT_RMW_IMPLEMENTATION, RMW_RET_INVALID_ARGUMENT,
        RMW_RET_NODE_NAME_NON_EXISTENT, RMW_RET_OK,
    };
    use crate::identity::IDENTIFIER;
    use crate::init::tests::Begun;
    use crate::node::{rmw_create_node, rmw_destroy_node};
    use crate::text::free;
    use crate::text::tests::{Counting, fini_names_and_types, fini_texts};

    const NOTHING: rmw_names_and_types_t =
        rmw_names_and_types_t { names: NO_STRINGS, types: ptr::null_mut() };
    const NOBODY: rmw_topic_endpoint_info_array_t =
        rmw_topic_endpoint_info_array_t { size: 0, info_array: ptr::null_mut() };

    /// A node of C in a domain of its own.
    struct Alone {
        node: *mut rmw_node_t,
        begun: Begun,
    }

    impl Alone {
        fn new() -> Self {
            let mut begun = Begun::new();
            // SAFETY: all are valid.
            let node =
                unsafe { rmw_create_node(&mut *begun.context, c"mine".as_ptr(), c"/ns".as_ptr()) };
            assert!(!node.is_null(), "{}", told());
            Self { node, begun }
        }

        fn node(&self) -> &tsuji::Node {
            // SAFETY: it is there.
            &unsafe { inside(self.node) }.unwrap().node
        }
    }

    impl Drop for Alone {
        fn drop(&mut self) {
            // SAFETY: it is used no more.
            unsafe { rmw_destroy_node(self.node) };
        }
    }

    fn strings(all: &[&str]) -> Vec<String> {
        all.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn node_names() {
        let alone = Alone::new();
        let far = ["--ros-args", "--enclave", "/far"].map(str::to_owned);
        let _other = alone.node().context().with_args(far).unwrap().node("other").unwrap();
        let (mut names, mut namespaces, mut enclaves) = (NO_STRINGS, NO_STRINGS, NO_STRINGS);
        let invalid = RMW_RET_INVALID_ARGUMENT;
        // SAFETY: all are valid or null.
        unsafe {
            assert_eq!(rmw_get_node_names(ptr::null(), &mut names, &mut namespaces), invalid);
            assert_eq!(rmw_get_node_names(alone.node, ptr::null_mut(), &mut namespaces), invalid);
            assert_eq!(rmw_get_node_names(alone.node, &mut names, ptr::null_mut()), invalid);
            let ret = rmw_get_node_names_with_enclaves(
                alone.node,
                &mut names,
                &mut namespaces,
                ptr::null_mut(),
            );
            assert_eq!(ret, invalid);
            assert!(names.data.is_null() && namespaces.data.is_null());
            let ret = rmw_get_node_names_with_enclaves(
                alone.node,
                &mut names,
                &mut namespaces,
                &mut enclaves,
            );
            assert_eq!(ret, RMW_RET_OK);
            assert_eq!(rmw_get_node_names(alone.node, &mut names, &mut namespaces), invalid);
        }
        assert_eq!(fini_texts(&names), ["mine", "other"]);
        assert_eq!(fini_texts(&namespaces), ["/ns", "/"]);
        assert_eq!(fini_texts(&enclaves), ["/", "/far"]);
    }

    #[test]
    fn names_and_types() {
        let alone = Alone::new();
        let node = alone.node();
        let other = node.context().node_in("other", "/far").unwrap();
        let _publisher = node.create_publisher::<Text>("chatter", Qos::DEFAULT).unwrap();
        let _subscription = other.create_subscription::<Text>("/ns/chatter", Qos::DEFAULT, drop);
        let _client = node.create_client::<SetBool>("/set").unwrap();
        let _server = other.create_service::<SetBool>("/set", |_| unreachable!()).unwrap();
        let mut allocator = alone.begun.memory.allocator();
        let allocator: *mut _ = &mut allocator;
        type Ask<'a> = &'a dyn Fn(*mut rmw_names_and_types_t) -> rmw_ret_t;
        let check = |ask: Ask<'_>, expect: &[(&str, &[&str])]| {
            let mut found = NOTHING;
            assert_eq!((ask(&mut found), told().as_str()), (RMW_RET_OK, ""));
            let expect: Vec<_> =
                expect.iter().map(|(name, types)| ((*name).to_owned(), strings(types))).collect();
            assert_eq!(fini_names_and_types(&found), expect);
        };
        let me = alone.node;
        let chatter: &[(&str, &[&str])] = &[("/ns/chatter", &["std_msgs/msg/String"])];
        let set: &[(&str, &[&str])] = &[("/set", &["std_srvs/srv/SetBool"])];
        let text: &[&str] = &["std_msgs::msg::dds_::String_"];
        let request: &[&str] = &["std_srvs::srv::dds_::SetBool_Request_"];
        let response: &[&str] = &["std_srvs::srv::dds_::SetBool_Response_"];
        let (mine, ns) = (c"mine".as_ptr(), c"/ns".as_ptr());
        let (others, far) = (c"other".as_ptr(), c"/far".as_ptr());
        // SAFETY: in all of these everything is valid.
        unsafe {
            check(&|all| rmw_get_topic_names_and_types(me, allocator, false, all), chatter);
            check(
                &|all| rmw_get_topic_names_and_types(me, allocator, true, all),
                &[("rq/setRequest", request), ("rr/setReply", response), ("rt/ns/chatter", text)],
            );
            check(&|all| rmw_get_service_names_and_types(me, allocator, all), set);
            let publishers = rmw_get_publisher_names_and_types_by_node;
            check(&|all| publishers(me, allocator, mine, ns, false, all), chatter);
            check(&|all| publishers(me, allocator, others, far, false, all), &[]);
            check(
                &|all| publishers(me, allocator, mine, ns, true, all),
                &[("rq/setRequest", request), ("rt/ns/chatter", text)],
            );
            let subscribers = rmw_get_subscriber_names_and_types_by_node;
            check(&|all| subscribers(me, allocator, mine, ns, false, all), &[]);
            check(&|all| subscribers(me, allocator, others, far, false, all), chatter);
            let servers = rmw_get_service_names_and_types_by_node;
            check(&|all| servers(me, allocator, mine, ns, all), &[]);
            check(&|all| servers(me, allocator, others, far, all), set);
            let clients = rmw_get_client_names_and_types_by_node;
            check(&|all| clients(me, allocator, mine, ns, all), set);
            check(&|all| clients(me, allocator, others, far, all), &[]);
        }
        let mut found = NOTHING;
        let invalid = RMW_RET_INVALID_ARGUMENT;
        let nobody = RMW_RET_NODE_NAME_NON_EXISTENT;
        let bad = c"not valid !".as_ptr();
        let mut broken = NO_ALLOCATOR;
        // SAFETY: all are valid or null.
        unsafe {
            let all: *mut _ = &mut found;
            let ask = rmw_get_publisher_names_and_types_by_node;
            assert_eq!(ask(ptr::null(), allocator, mine, ns, false, all), invalid);
            assert_eq!(ask(me, ptr::null_mut(), mine, ns, false, all), invalid);
            assert_eq!(ask(me, &mut broken, mine, ns, false, all), invalid);
            assert_eq!(ask(me, allocator, ptr::null(), ns, false, all), invalid);
            assert_eq!(ask(me, allocator, mine, ptr::null(), false, all), invalid);
            assert_eq!(ask(me, allocator, bad, ns, false, all), invalid);
            assert_eq!(ask(me, allocator, mine, bad, false, all), invalid);
            assert_eq!(ask(me, allocator, mine, ns, false, ptr::null_mut()), invalid);
            assert_eq!(ask(me, allocator, mine, far, false, all), nobody);
            assert!((*all).names.data.is_null() && (*all).types.is_null());
            (*me).implementation_identifier = c"rmw_x".as_ptr();
            let ret = ask(me, allocator, mine, ns, false, all);
            assert_eq!(ret, RMW_RET_INCORRECT_RMW_IMPLEMENTATION);
            (*me).implementation_identifier = IDENTIFIER.as_ptr();
            assert_eq!(rmw_get_topic_names_and_types(me, allocator, false, all), RMW_RET_OK);
            assert_eq!(rmw_get_topic_names_and_types(me, allocator, false, all), invalid);
        }
        fini_names_and_types(&found);
    }

    #[test]
    fn counts() {
        let alone = Alone::new();
        let node = alone.node();
        let _publishers: Vec<_> =
            (0..2).map(|_| node.create_publisher::<Text>("/a", Qos::DEFAULT).unwrap()).collect();
        let _subscription = node.create_subscription::<Text>("/a", Qos::DEFAULT, drop).unwrap();
        let _client = node.create_client::<SetBool>("/a").unwrap();
        let _server = node.create_service::<SetBool>("/a", |_| unreachable!()).unwrap();
        type Count =
            unsafe extern "C" fn(*const rmw_node_t, *const c_char, *mut usize) -> rmw_ret_t;
        let check = |count: Count, expect: usize| {
            let (mut found, invalid) = (9, RMW_RET_INVALID_ARGUMENT);
            // SAFETY: all are valid or null.
            unsafe {
                assert_eq!(count(alone.node, c"/a".as_ptr(), &mut found), RMW_RET_OK);
                assert_eq!(found, expect);
                assert_eq!(count(alone.node, c"/b".as_ptr(), &mut found), RMW_RET_OK);
                assert_eq!(found, 0);
                assert_eq!(count(ptr::null(), c"/a".as_ptr(), &mut found), invalid);
                assert_eq!(count(alone.node, ptr::null(), &mut found), invalid);
                assert_eq!(count(alone.node, c"not valid !".as_ptr(), &mut found), invalid);
                assert_eq!(count(alone.node, c"/a".as_ptr(), ptr::null_mut()), invalid);
            }
        };
        check(rmw_count_publishers, 2);
        check(rmw_count_subscribers, 1);
        check(rmw_count_clients, 1);
        check(rmw_count_services, 1);
    }

    /// What is told of each endpoint, given back as rmw does.
    fn fini_infos(memory: &Counting, all: rmw_topic_endpoint_info_array_t) -> Vec<String> {
        let allocator = memory.allocator();
        let text = |text: *const c_char| {
            // SAFETY: it ends with NUL.
            let copy = unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned();
            // SAFETY: it is of this allocator.
            unsafe { free(&allocator, text.cast_mut()) };
            copy
        };
        let mut lines = Vec::new();
        for at in 0..all.size {
            // SAFETY: there are as many.
            let info = unsafe { &*all.info_array.add(at) };
            let (name, namespace) = (text(info.node_name), text(info.node_namespace));
            let type_name = text(info.topic_type);
            assert_eq!(info.topic_type_hash.version, 1);
            let (kind, durability) = (info.endpoint_type, info.qos_profile.durability);
            lines.push(format!("{namespace} {name} {type_name} {kind} {durability}"));
        }
        // SAFETY: it is of this allocator.
        unsafe { free(&allocator, all.info_array) };
        lines
    }

    #[test]
    fn endpoints_of_a_topic() {
        let alone = Alone::new();
        let node = alone.node();
        let root = node.context().node("root").unwrap();
        let lasting = Qos { durability: Durability::TransientLocal, ..Qos::DEFAULT };
        let _publisher = root.create_publisher::<Text>("/a", lasting).unwrap();
        let _subscription = node.create_subscription::<Text>("/a", Qos::DEFAULT, drop).unwrap();
        let _client = node.create_client::<SetBool>("/set").unwrap();
        let memory = &alone.begun.memory;
        let mut allocator = memory.allocator();
        let allocator: *mut _ = &mut allocator;
        type Ask = unsafe extern "C" fn(
            *const rmw_node_t,
            *mut rcutils_allocator_t,
            *const c_char,
            bool,
            *mut rmw_topic_endpoint_info_array_t,
        ) -> rmw_ret_t;
        let check = |ask: Ask, topic: &CStr, no_mangle, expect: &[&str]| {
            let mut found = NOBODY;
            // SAFETY: all are valid.
            let ret = unsafe { ask(alone.node, allocator, topic.as_ptr(), no_mangle, &mut found) };
            assert_eq!(ret, RMW_RET_OK);
            assert_eq!(fini_infos(memory, found), expect);
        };
        let (publishers, subscriptions): (Ask, Ask) =
            (rmw_get_publishers_info_by_topic, rmw_get_subscriptions_info_by_topic);
        check(publishers, c"/a", false, &["/ root std_msgs/msg/String 1 1"]);
        check(subscriptions, c"/a", false, &["/ns mine std_msgs/msg/String 2 2"]);
        check(publishers, c"/b", false, &[]);
        check(publishers, c"rt/a", true, &["/ root std_msgs::msg::dds_::String_ 1 1"]);
        let request = "/ns mine std_srvs::srv::dds_::SetBool_Request_ 1 2";
        check(publishers, c"rq/setRequest", true, &[request]);
        let response = "/ns mine std_srvs::srv::dds_::SetBool_Response_ 2 2";
        check(subscriptions, c"rr/setReply", true, &[response]);
        check(publishers, c"/a", true, &[]);
        let invalid = RMW_RET_INVALID_ARGUMENT;
        let (mut found, topic) = (NOBODY, c"/a".as_ptr());
        // SAFETY: all are valid or null.
        unsafe {
            assert_eq!(publishers(ptr::null(), allocator, topic, false, &mut found), invalid);
            let me = alone.node;
            assert_eq!(publishers(me, ptr::null_mut(), topic, false, &mut found), invalid);
            assert_eq!(publishers(me, allocator, ptr::null(), false, &mut found), invalid);
            assert_eq!(publishers(me, allocator, topic, false, ptr::null_mut()), invalid);
            found.size = 1;
            assert_eq!(publishers(me, allocator, topic, false, &mut found), invalid);
        }
    }

    #[test]
    fn every_allocation_may_fail() {
        let alone = Alone::new();
        let _publisher = alone.node().create_publisher::<Text>("/a", Qos::DEFAULT).unwrap();
        for most in 0..4 {
            let memory = Counting::new(Some(most));
            let mut allocator = memory.allocator();
            let (mut infos, mut names) = (NOBODY, NOTHING);
            // SAFETY: all are valid.
            let ret = unsafe {
                rmw_get_publishers_info_by_topic(
                    alone.node,
                    &mut allocator,
                    c"/a".as_ptr(),
                    false,
                    &mut infos,
                )
            };
            assert_eq!((ret, infos.size), (RMW_RET_BAD_ALLOC, 0));
            let memory = Counting::new(Some(most));
            let mut allocator = memory.allocator();
            // SAFETY: all are valid.
            let ret = unsafe {
                rmw_get_topic_names_and_types(alone.node, &mut allocator, false, &mut names)
            };
            assert_eq!((ret, names.names.size), (RMW_RET_BAD_ALLOC, 0));
        }
    }

    #[test]
    fn type_hashes() {
        let digits = "00ff".repeat(16);
        let hash = type_hash(&format!("RIHS01_{digits}"));
        assert_eq!((hash.version, &hash.value[..3]), (1, &[0x00, 0xff, 0x00][..]));
        for text in ["", "RIHS01_", "RIHS02_00", &format!("RIHS01_{}", "zz".repeat(32))] {
            assert_eq!(type_hash(text).version, 0, "{text}");
        }
    }
}

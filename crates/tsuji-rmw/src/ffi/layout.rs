//! The sizes, offsets and values of these declarations, checked against the tables in `abi/`, which a C compiler checks
//! against the headers of ROS 2.

use std::collections::{BTreeMap, BTreeSet};

use super::rcutils::*;
use super::rmw::*;
use super::rosidl::{
    self, rosidl_runtime_c__String, rosidl_runtime_c__U16String, rosidl_type_hash_t,
};

/// Writes out the layout of structures with all of their fields.
macro_rules! layout {
    ($lines:ident; $($name:ident { $($field:ident),* })*) => {$(
        $lines.push(format!("SIZE({}, {})", stringify!($name), size_of::<$name>()));
        // Does not compile unless the fields are all of them.
        let _ = |all: $name| { let $name { $($field: _),* } = all; };
        $($lines.push(format!(
            "OFFSET({}, {}, {})",
            stringify!($name),
            in_c(stringify!($field)),
            std::mem::offset_of!($name, $field)
        ));)*
    )*};
}

/// Writes out values.
macro_rules! values {
    ($lines:ident; $($name:ident)*) => {
        $($lines.push(format!("VALUE({}, {:#x})", stringify!($name), $name));)*
    };
}

/// A field's name in C.
fn in_c(field: &str) -> &str {
    if field == "impl_" { "impl" } else { field }
}

fn lines() -> Vec<String> {
    let mut lines = Vec::new();
    layout! { lines;
        rcutils_allocator_t { allocate, deallocate, reallocate, zero_allocate, state }
        rcutils_string_array_t { size, data, allocator }
        rcutils_uint8_array_t { buffer, buffer_length, buffer_capacity, allocator }
        rmw_time_t { sec, nsec }
        rmw_security_options_t { enforce_security, security_root_path }
        rmw_node_t { implementation_identifier, data, name, namespace_, context }
        rmw_publisher_options_t { rmw_specific_publisher_payload, require_unique_network_flow_endpoints }
        rmw_publisher_t { implementation_identifier, data, topic_name, options, can_loan_messages }
        rmw_subscription_content_filter_options_t { filter_expression, expression_parameters }
        rmw_service_t { implementation_identifier, data, service_name }
        rmw_client_t { implementation_identifier, data, service_name }
        rmw_guard_condition_t { implementation_identifier, data, context }
        rmw_publisher_allocation_t { implementation_identifier, data }
        rmw_subscription_allocation_t { implementation_identifier, data }
        rmw_subscriptions_t { subscriber_count, subscribers }
        rmw_services_t { service_count, services }
        rmw_clients_t { client_count, clients }
        rmw_events_t { event_count, events }
        rmw_guard_conditions_t { guard_condition_count, guard_conditions }
        rmw_wait_set_t { implementation_identifier, guard_conditions, data }
        rmw_request_id_t { writer_guid, sequence_number }
        rmw_service_info_t { source_timestamp, received_timestamp, request_id }
        rmw_message_sequence_t { data, size, capacity, allocator }
        rmw_message_info_sequence_t { data, size, capacity, allocator }
        rmw_qos_profile_t { history, depth, reliability, durability, deadline, lifespan, liveliness, liveliness_lease_duration, avoid_ros_namespace_conventions }
        rmw_names_and_types_t { names, types }
        rmw_topic_endpoint_info_array_t { size, info_array }
        rmw_network_flow_endpoint_t { transport_protocol, internet_protocol, transport_port, flow_label, dscp, internet_address }
        rmw_network_flow_endpoint_array_t { size, network_flow_endpoint, allocator }
        rmw_event_t { implementation_identifier, data, event_type }
        rmw_qos_incompatible_event_status_t { total_count, total_count_change, last_policy_kind }
        rmw_liveliness_changed_status_t { alive_count, not_alive_count, alive_count_change, not_alive_count_change }
        rmw_liveliness_lost_status_t { total_count, total_count_change }
        rmw_message_lost_status_t { total_count, total_count_change }
        rmw_offered_deadline_missed_status_t { total_count, total_count_change }
        rmw_requested_deadline_missed_status_t { total_count, total_count_change }
    }
    layout! { lines;
        rmw_peer_address_t { peer_address }
        rmw_discovery_options_t { automatic_discovery_range, static_peers, static_peers_count, allocator }
        rmw_service_endpoint_info_array_t { size, info_array }
        rosidl_type_hash_t { version, value }
        rmw_incompatible_type_status_t { total_count, total_count_change }
        rmw_matched_status_t { total_count, total_count_change, current_count, current_count_change }
        rosidl_runtime_c__String { data, size, capacity }
        rosidl_runtime_c__U16String { data, size, capacity }
    }
    values! { lines;
        RMW_RET_OK
        RMW_RET_ERROR
        RMW_RET_TIMEOUT
        RMW_RET_UNSUPPORTED
        RMW_RET_BAD_ALLOC
        RMW_RET_INVALID_ARGUMENT
        RMW_RET_INCORRECT_RMW_IMPLEMENTATION
        RMW_RET_NODE_NAME_NON_EXISTENT
        RMW_DEFAULT_DOMAIN_ID
        RMW_SECURITY_ENFORCEMENT_PERMISSIVE
        RMW_SECURITY_ENFORCEMENT_ENFORCE
        RMW_LOCALHOST_ONLY_DEFAULT
        RMW_LOCALHOST_ONLY_ENABLED
        RMW_LOCALHOST_ONLY_DISABLED
        RMW_ENDPOINT_INVALID
        RMW_ENDPOINT_PUBLISHER
        RMW_ENDPOINT_SUBSCRIPTION
        RMW_ENDPOINT_CLIENT
        RMW_ENDPOINT_SERVER
        RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_NOT_REQUIRED
        RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_STRICTLY_REQUIRED
        RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_OPTIONALLY_REQUIRED
        RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_SYSTEM_DEFAULT
        RMW_MESSAGE_INFO_SEQUENCE_NUMBER_UNSUPPORTED
        RMW_QOS_POLICY_HISTORY_SYSTEM_DEFAULT
        RMW_QOS_POLICY_HISTORY_KEEP_LAST
        RMW_QOS_POLICY_HISTORY_KEEP_ALL
        RMW_QOS_POLICY_HISTORY_UNKNOWN
        RMW_QOS_POLICY_DEPTH_SYSTEM_DEFAULT
        RMW_QOS_POLICY_RELIABILITY_SYSTEM_DEFAULT
        RMW_QOS_POLICY_RELIABILITY_RELIABLE
        RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT
        RMW_QOS_POLICY_RELIABILITY_UNKNOWN
        RMW_QOS_POLICY_DURABILITY_SYSTEM_DEFAULT
        RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL
        RMW_QOS_POLICY_DURABILITY_VOLATILE
        RMW_QOS_POLICY_DURABILITY_UNKNOWN
        RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT
        RMW_QOS_POLICY_LIVELINESS_AUTOMATIC
        RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_NODE
        RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC
        RMW_QOS_POLICY_LIVELINESS_UNKNOWN
        RMW_QOS_COMPATIBILITY_OK
        RMW_QOS_COMPATIBILITY_WARNING
        RMW_QOS_COMPATIBILITY_ERROR
        RMW_QOS_POLICY_INVALID
        RMW_QOS_POLICY_DURABILITY
        RMW_QOS_POLICY_DEADLINE
        RMW_QOS_POLICY_LIVELINESS
        RMW_QOS_POLICY_RELIABILITY
        RMW_QOS_POLICY_HISTORY
        RMW_QOS_POLICY_LIFESPAN
        RMW_QOS_POLICY_DEPTH
        RMW_QOS_POLICY_LIVELINESS_LEASE_DURATION
        RMW_QOS_POLICY_AVOID_ROS_NAMESPACE_CONVENTIONS
        RMW_TRANSPORT_PROTOCOL_UNKNOWN
        RMW_TRANSPORT_PROTOCOL_UDP
        RMW_TRANSPORT_PROTOCOL_TCP
        RMW_INTERNET_PROTOCOL_UNKNOWN
        RMW_INTERNET_PROTOCOL_IPV4
        RMW_INTERNET_PROTOCOL_IPV6
        RMW_INET_ADDRSTRLEN
        RMW_FEATURE_MESSAGE_INFO_PUBLICATION_SEQUENCE_NUMBER
        RMW_FEATURE_MESSAGE_INFO_RECEPTION_SEQUENCE_NUMBER
        RMW_LOG_SEVERITY_DEBUG
        RMW_LOG_SEVERITY_INFO
        RMW_LOG_SEVERITY_WARN
        RMW_LOG_SEVERITY_ERROR
        RMW_LOG_SEVERITY_FATAL
    }
    values! { lines;
        RMW_AUTOMATIC_DISCOVERY_RANGE_NOT_SET
        RMW_AUTOMATIC_DISCOVERY_RANGE_OFF
        RMW_AUTOMATIC_DISCOVERY_RANGE_LOCALHOST
        RMW_AUTOMATIC_DISCOVERY_RANGE_SUBNET
        RMW_AUTOMATIC_DISCOVERY_RANGE_SYSTEM_DEFAULT
        RMW_DISCOVERY_OPTIONS_STATIC_PEERS_MAX_LENGTH
        RMW_QOS_POLICY_RELIABILITY_BEST_AVAILABLE
        RMW_QOS_POLICY_DURABILITY_BEST_AVAILABLE
        RMW_QOS_POLICY_LIVELINESS_BEST_AVAILABLE
        RMW_MIDDLEWARE_SUPPORTS_TYPE_DISCOVERY
        RMW_MIDDLEWARE_CAN_TAKE_DYNAMIC_MESSAGE
    }
    lines
}

/// The lines of every table.
fn tables() -> [(&'static str, BTreeSet<&'static str>); 5] {
    [
        ("humble", include_str!("../../abi/humble.def")),
        ("jazzy", include_str!("../../abi/jazzy.def")),
        ("kilted", include_str!("../../abi/kilted.def")),
        ("lyrical", include_str!("../../abi/lyrical.def")),
        ("rolling", include_str!("../../abi/rolling.def")),
    ]
    .map(|(name, text)| (name, text.lines().filter(|line| !line.starts_with("//")).collect()))
}

/// What a line is about: a structure or a value.
fn subject(line: &str) -> &str {
    let rest = line.split_once('(').map_or("", |(_, rest)| rest);
    rest.split([',', ')']).next().unwrap_or_default()
}

/// What is used where it lies is in every table that has it, and there is nothing more of it in any. What begins alike in
/// all may go on.
#[test]
fn what_is_used_where_it_lies_is_the_same_in_every_distribution() {
    let lines = lines();
    let mut declared = BTreeMap::<&str, BTreeSet<&str>>::new();
    for line in &lines {
        declared.entry(subject(line)).or_default().insert(line);
    }
    for (name, table) in tables() {
        for (subject_, ours) in &declared {
            let theirs: BTreeSet<_> =
                table.iter().copied().filter(|line| subject(line) == *subject_).collect();
            assert!(theirs.is_empty() || theirs == *ours, "{name}: {theirs:?} and {ours:?}");
        }
    }
    let tables = tables();
    for subject_ in declared.keys() {
        assert!(tables.iter().any(|(_, table)| table.iter().any(|it| subject(it) == *subject_)));
    }
}

/// Of what differs the fields of all distributions are there, and no others.
#[test]
fn what_differs_has_the_fields_of_all() {
    let tables = tables();
    let mut shaped = BTreeMap::new();
    for (name, fields) in SHAPED.iter().chain(rosidl::SHAPED) {
        let fields: BTreeSet<_> = fields.iter().map(|it| in_c(it).to_owned()).collect();
        let of_all = tables.iter().flat_map(|(_, table)| table.iter());
        let offsets = of_all.filter(|line| line.starts_with(&format!("OFFSET({name}, ")));
        let known: BTreeSet<_> =
            offsets.filter_map(|line| line.split(", ").nth(1)).map(str::to_owned).collect();
        assert_eq!(fields, known, "{name}");
        shaped.insert(*name, fields);
    }
    // Those that are looked at by their beginnings, which are laid out as here.
    let begins = [
        ("rosidl_message_type_support_t", ["typesupport_identifier", "data", "func"]),
        ("rosidl_service_type_support_t", ["typesupport_identifier", "data", "func"]),
        ("rosidl_runtime_c__uint8__Sequence", ["data", "size", "capacity"]),
        ("rmw_subscription_t", ["implementation_identifier", "data", "topic_name"]),
    ];
    for (name, table) in &tables {
        for (subject_, fields) in begins {
            for (at, field) in fields.iter().enumerate() {
                let line = format!("OFFSET({subject_}, {field}, {})", at * size_of::<usize>());
                assert!(table.contains(line.as_str()), "{name}: {line}");
            }
        }
        let service = "rosidl_typesupport_introspection_c__ServiceMembers";
        for (at, field) in
            ["service_namespace_", "service_name_", "request_members_", "response_members_"]
                .iter()
                .enumerate()
        {
            let line = format!("OFFSET({service}, {field}, {})", at * size_of::<usize>());
            assert!(table.contains(line.as_str()), "{name}: {line}");
        }
    }
    // Nothing in the tables is neither.
    let lines = lines();
    let declared: BTreeSet<_> = lines.iter().map(|line| subject(line)).collect();
    let differs = |subject: &str| subject.starts_with("RMW_EVENT_");
    for (name, table) in &tables {
        for subject_ in table.iter().filter(|it| !it.starts_with("FUNCTION")).map(|it| subject(it))
        {
            let is_known = declared.contains(subject_)
                || shaped.contains_key(subject_)
                || begins.iter().any(|(begins, _)| *begins == subject_)
                || subject_ == "rosidl_typesupport_introspection_c__ServiceMembers"
                || subject_ == "RMW_GID_STORAGE_SIZE"
                || differs(subject_);
            assert!(is_known, "{name}: {subject_}");
        }
    }
}

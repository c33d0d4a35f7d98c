//! The sizes, offsets and values of these declarations, checked against `tests/abi/`, which the C
//! compiler checks against the headers of rmw.

use super::rcutils::*;
use super::rmw::*;

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
        rmw_context_t { instance_id, implementation_identifier, options, actual_domain_id, impl_ }
        rmw_node_t { implementation_identifier, data, name, namespace_, context }
        rmw_publisher_options_t { rmw_specific_publisher_payload, require_unique_network_flow_endpoints }
        rmw_publisher_t { implementation_identifier, data, topic_name, options, can_loan_messages }
        rmw_subscription_content_filter_options_t { filter_expression, expression_parameters }
        rmw_subscription_options_t { rmw_specific_subscription_payload, ignore_local_publications, require_unique_network_flow_endpoints, content_filter_options }
        rmw_subscription_t { implementation_identifier, data, topic_name, options, can_loan_messages, is_cft_enabled }
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
        rmw_gid_t { implementation_identifier, data }
        rmw_message_info_t { source_timestamp, received_timestamp, publication_sequence_number, reception_sequence_number, publisher_gid, from_intra_process }
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
    #[cfg(feature = "jazzy")]
    layout! { lines;
        rmw_peer_address_t { peer_address }
        rmw_discovery_options_t { automatic_discovery_range, static_peers, static_peers_count, allocator }
        rmw_init_options_t { instance_id, implementation_identifier, domain_id, security_options, localhost_only, discovery_options, enclave, allocator, impl_ }
        rosidl_type_hash_t { version, value }
        rmw_topic_endpoint_info_t { node_name, node_namespace, topic_type, topic_type_hash, endpoint_type, endpoint_gid, qos_profile }
        rmw_incompatible_type_status_t { total_count, total_count_change }
        rmw_matched_status_t { total_count, total_count_change, current_count, current_count_change }
    }
    #[cfg(not(feature = "jazzy"))]
    layout! { lines;
        rmw_init_options_t { instance_id, implementation_identifier, domain_id, security_options, localhost_only, enclave, allocator, impl_ }
        rmw_topic_endpoint_info_t { node_name, node_namespace, topic_type, endpoint_type, endpoint_gid, qos_profile }
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
        RMW_GID_STORAGE_SIZE
        RMW_DEFAULT_DOMAIN_ID
        RMW_SECURITY_ENFORCEMENT_PERMISSIVE
        RMW_SECURITY_ENFORCEMENT_ENFORCE
        RMW_LOCALHOST_ONLY_DEFAULT
        RMW_LOCALHOST_ONLY_ENABLED
        RMW_LOCALHOST_ONLY_DISABLED
        RMW_ENDPOINT_INVALID
        RMW_ENDPOINT_PUBLISHER
        RMW_ENDPOINT_SUBSCRIPTION
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
        RMW_EVENT_LIVELINESS_CHANGED
        RMW_EVENT_REQUESTED_DEADLINE_MISSED
        RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE
        RMW_EVENT_MESSAGE_LOST
        RMW_EVENT_LIVELINESS_LOST
        RMW_EVENT_OFFERED_DEADLINE_MISSED
        RMW_EVENT_OFFERED_QOS_INCOMPATIBLE
        RMW_EVENT_INVALID
        RMW_FEATURE_MESSAGE_INFO_PUBLICATION_SEQUENCE_NUMBER
        RMW_FEATURE_MESSAGE_INFO_RECEPTION_SEQUENCE_NUMBER
        RMW_LOG_SEVERITY_DEBUG
        RMW_LOG_SEVERITY_INFO
        RMW_LOG_SEVERITY_WARN
        RMW_LOG_SEVERITY_ERROR
        RMW_LOG_SEVERITY_FATAL
    }
    #[cfg(feature = "jazzy")]
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
        RMW_EVENT_SUBSCRIPTION_INCOMPATIBLE_TYPE
        RMW_EVENT_SUBSCRIPTION_MATCHED
        RMW_EVENT_PUBLISHER_INCOMPATIBLE_TYPE
        RMW_EVENT_PUBLICATION_MATCHED
        RMW_MIDDLEWARE_SUPPORTS_TYPE_DISCOVERY
        RMW_MIDDLEWARE_CAN_TAKE_DYNAMIC_MESSAGE
    }
    lines
}

#[test]
fn as_the_headers_of_rmw_say() {
    #[cfg(feature = "jazzy")]
    let proved = include_str!("../../tests/abi/jazzy.def");
    #[cfg(not(feature = "jazzy"))]
    let proved = include_str!("../../tests/abi/humble.def");
    let proved: Vec<_> = proved.lines().filter(|line| !line.starts_with("//")).collect();
    let lines = lines();
    assert_eq!(proved, lines, "\n{}\n", lines.join("\n"));
}

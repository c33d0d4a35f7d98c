//! Of the package rmw: what its functions take and answer.
//!
//! What is the same in every distribution is laid out as in C. What differs has the fields of all, and is laid out as in C
//! nowhere: see [`crate::abi`].
//!
//! An enumeration of C is an unsigned number here, since a caller may pass any value.
#![allow(missing_docs, non_camel_case_types, reason = "rmw's headers name and document them")]

use std::ffi::{c_char, c_uint, c_void};

use super::rosidl::rosidl_type_hash_t;
use crate::abi::InC;

use super::rcutils::{
    NO_ALLOCATOR, rcutils_allocator_t, rcutils_duration_value_t, rcutils_string_array_t,
    rcutils_time_point_value_t, rcutils_uint8_array_t,
};

pub type rmw_ret_t = i32;
pub const RMW_RET_OK: rmw_ret_t = 0;
pub const RMW_RET_ERROR: rmw_ret_t = 1;
pub const RMW_RET_TIMEOUT: rmw_ret_t = 2;
pub const RMW_RET_UNSUPPORTED: rmw_ret_t = 3;
pub const RMW_RET_BAD_ALLOC: rmw_ret_t = 10;
pub const RMW_RET_INVALID_ARGUMENT: rmw_ret_t = 11;
pub const RMW_RET_INCORRECT_RMW_IMPLEMENTATION: rmw_ret_t = 12;
pub const RMW_RET_NODE_NAME_NON_EXISTENT: rmw_ret_t = 203;

/// The most that a distribution has: Humble 24, the others 16.
pub const RMW_GID_STORAGE_SIZE: usize = 24;

/// A duration, or a point in time.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct rmw_time_t {
    pub sec: u64,
    pub nsec: u64,
}

pub type rmw_time_point_value_t = rcutils_time_point_value_t;
pub type rmw_duration_t = rcutils_duration_value_t;

pub const RMW_DURATION_INFINITE: rmw_time_t = rmw_time_t { sec: 9_223_372_036, nsec: 854_775_807 };
pub const RMW_DURATION_UNSPECIFIED: rmw_time_t = rmw_time_t { sec: 0, nsec: 0 };

// What a program asks of a context.

pub const RMW_DEFAULT_DOMAIN_ID: usize = usize::MAX;

pub type rmw_security_enforcement_policy_t = c_uint;
pub const RMW_SECURITY_ENFORCEMENT_PERMISSIVE: rmw_security_enforcement_policy_t = 0;
pub const RMW_SECURITY_ENFORCEMENT_ENFORCE: rmw_security_enforcement_policy_t = 1;

/// Whether to encrypt, and where the keys are.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_security_options_t {
    pub enforce_security: rmw_security_enforcement_policy_t,
    pub security_root_path: *mut c_char,
}

pub type rmw_localhost_only_t = c_uint;
pub const RMW_LOCALHOST_ONLY_DEFAULT: rmw_localhost_only_t = 0;
pub const RMW_LOCALHOST_ONLY_ENABLED: rmw_localhost_only_t = 1;
pub const RMW_LOCALHOST_ONLY_DISABLED: rmw_localhost_only_t = 2;

pub type rmw_automatic_discovery_range_t = c_uint;
pub const RMW_AUTOMATIC_DISCOVERY_RANGE_NOT_SET: rmw_automatic_discovery_range_t = 0;
pub const RMW_AUTOMATIC_DISCOVERY_RANGE_OFF: rmw_automatic_discovery_range_t = 1;
pub const RMW_AUTOMATIC_DISCOVERY_RANGE_LOCALHOST: rmw_automatic_discovery_range_t = 2;
pub const RMW_AUTOMATIC_DISCOVERY_RANGE_SUBNET: rmw_automatic_discovery_range_t = 3;
pub const RMW_AUTOMATIC_DISCOVERY_RANGE_SYSTEM_DEFAULT: rmw_automatic_discovery_range_t = 4;

pub const RMW_DISCOVERY_OPTIONS_STATIC_PEERS_MAX_LENGTH: usize = 256;

/// An address, or a host's name.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_peer_address_t {
    pub peer_address: [c_char; RMW_DISCOVERY_OPTIONS_STATIC_PEERS_MAX_LENGTH],
}

/// Whom to find.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_discovery_options_t {
    pub automatic_discovery_range: rmw_automatic_discovery_range_t,
    pub static_peers: *mut rmw_peer_address_t,
    pub static_peers_count: usize,
    pub allocator: rcutils_allocator_t,
}

/// What a program asks of a context. `impl_` is `impl` in C.
#[derive(Clone, Copy, Debug)]
pub struct rmw_init_options_t {
    pub instance_id: u64,
    pub implementation_identifier: *const c_char,
    pub domain_id: usize,
    pub security_options: rmw_security_options_t,
    /// Until Jazzy.
    pub localhost_only: rmw_localhost_only_t,
    /// Since Iron.
    pub discovery_options: rmw_discovery_options_t,
    pub enclave: *mut c_char,
    pub allocator: rcutils_allocator_t,
    pub impl_: *mut c_void,
}

/// What the options are before they are made.
pub const NO_INIT_OPTIONS: rmw_init_options_t = rmw_init_options_t {
    instance_id: 0,
    implementation_identifier: std::ptr::null(),
    domain_id: 0,
    security_options: rmw_security_options_t {
        enforce_security: RMW_SECURITY_ENFORCEMENT_PERMISSIVE,
        security_root_path: std::ptr::null_mut(),
    },
    localhost_only: RMW_LOCALHOST_ONLY_DEFAULT,
    discovery_options: rmw_discovery_options_t {
        automatic_discovery_range: RMW_AUTOMATIC_DISCOVERY_RANGE_NOT_SET,
        static_peers: std::ptr::null_mut(),
        static_peers_count: 0,
        allocator: NO_ALLOCATOR,
    },
    enclave: std::ptr::null_mut(),
    allocator: NO_ALLOCATOR,
    impl_: std::ptr::null_mut(),
};

/// Where nodes live. `impl_` is `impl` in C.
#[derive(Clone, Copy, Debug)]
pub struct rmw_context_t {
    pub instance_id: u64,
    pub implementation_identifier: *const c_char,
    pub options: rmw_init_options_t,
    pub actual_domain_id: usize,
    pub impl_: *mut c_void,
}

/// What a context is before it is made.
pub const NO_CONTEXT: rmw_context_t = rmw_context_t {
    instance_id: 0,
    implementation_identifier: std::ptr::null(),
    options: NO_INIT_OPTIONS,
    actual_domain_id: 0,
    impl_: std::ptr::null_mut(),
};

// What a program holds.

/// A node.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_node_t {
    pub implementation_identifier: *const c_char,
    pub data: *mut c_void,
    pub name: *const c_char,
    pub namespace_: *const c_char,
    pub context: *mut InC<rmw_context_t>,
}

pub type rmw_endpoint_type_t = c_uint;
pub const RMW_ENDPOINT_INVALID: rmw_endpoint_type_t = 0;
pub const RMW_ENDPOINT_PUBLISHER: rmw_endpoint_type_t = 1;
pub const RMW_ENDPOINT_SUBSCRIPTION: rmw_endpoint_type_t = 2;
/// Since Lyrical.
pub const RMW_ENDPOINT_CLIENT: rmw_endpoint_type_t = 3;
/// Since Lyrical.
pub const RMW_ENDPOINT_SERVER: rmw_endpoint_type_t = 4;

pub type rmw_unique_network_flow_endpoints_requirement_t = c_uint;
pub const RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_NOT_REQUIRED:
    rmw_unique_network_flow_endpoints_requirement_t = 0;
pub const RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_STRICTLY_REQUIRED:
    rmw_unique_network_flow_endpoints_requirement_t = 1;
pub const RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_OPTIONALLY_REQUIRED:
    rmw_unique_network_flow_endpoints_requirement_t = 2;
pub const RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_SYSTEM_DEFAULT:
    rmw_unique_network_flow_endpoints_requirement_t = 3;

/// What a program asks of a publisher, besides its QoS.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_publisher_options_t {
    pub rmw_specific_publisher_payload: *mut c_void,
    pub require_unique_network_flow_endpoints: rmw_unique_network_flow_endpoints_requirement_t,
}

/// A publisher.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_publisher_t {
    pub implementation_identifier: *const c_char,
    pub data: *mut c_void,
    pub topic_name: *const c_char,
    pub options: rmw_publisher_options_t,
    pub can_loan_messages: bool,
}

/// A filter as SQL would say it, with what its `%0` and so on stand for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_subscription_content_filter_options_t {
    pub filter_expression: *mut c_char,
    pub expression_parameters: rcutils_string_array_t,
}

/// What a program asks of a subscription, besides its QoS.
#[derive(Clone, Copy, Debug)]
pub struct rmw_subscription_options_t {
    pub rmw_specific_subscription_payload: *mut c_void,
    pub ignore_local_publications: bool,
    pub require_unique_network_flow_endpoints: rmw_unique_network_flow_endpoints_requirement_t,
    pub content_filter_options: *mut rmw_subscription_content_filter_options_t,
    /// Since Lyrical: where the memory of buffers may be, such as `cpu`.
    pub acceptable_buffer_backends: *const c_char,
}

/// A subscription: what is the same in every distribution, and comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_subscription_t {
    pub implementation_identifier: *const c_char,
    pub data: *mut c_void,
    pub topic_name: *const c_char,
}

/// A subscription, whole.
#[derive(Clone, Copy, Debug)]
pub struct WholeSubscription {
    pub implementation_identifier: *const c_char,
    pub data: *mut c_void,
    pub topic_name: *const c_char,
    pub options: rmw_subscription_options_t,
    pub can_loan_messages: bool,
    pub is_cft_enabled: bool,
    /// Since Lyrical.
    pub is_cft_supported: bool,
}

/// A server.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_service_t {
    pub implementation_identifier: *const c_char,
    pub data: *mut c_void,
    pub service_name: *const c_char,
}

/// A client.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_client_t {
    pub implementation_identifier: *const c_char,
    pub data: *mut c_void,
    pub service_name: *const c_char,
}

/// What wakes a wait set by hand.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_guard_condition_t {
    pub implementation_identifier: *const c_char,
    pub data: *mut c_void,
    pub context: *mut InC<rmw_context_t>,
}

/// Memory set aside for publishing.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_publisher_allocation_t {
    pub implementation_identifier: *const c_char,
    pub data: *mut c_void,
}

/// Memory set aside for taking.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_subscription_allocation_t {
    pub implementation_identifier: *const c_char,
    pub data: *mut c_void,
}

// What a wait set waits for. Each array holds the `data` of its kind; what is not ready becomes null.

/// Subscriptions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_subscriptions_t {
    pub subscriber_count: usize,
    pub subscribers: *mut *mut c_void,
}

/// Servers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_services_t {
    pub service_count: usize,
    pub services: *mut *mut c_void,
}

/// Clients.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_clients_t {
    pub client_count: usize,
    pub clients: *mut *mut c_void,
}

/// Events. Each is a pointer to an [`rmw_event_t`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_events_t {
    pub event_count: usize,
    pub events: *mut *mut c_void,
}

/// Guard conditions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_guard_conditions_t {
    pub guard_condition_count: usize,
    pub guard_conditions: *mut *mut c_void,
}

/// A wait set.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_wait_set_t {
    pub implementation_identifier: *const c_char,
    pub guard_conditions: *mut rmw_guard_conditions_t,
    pub data: *mut c_void,
}

// What comes with a message.

/// Which request of which client.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct rmw_request_id_t {
    pub writer_guid: [u8; 16],
    pub sequence_number: i64,
}

/// What comes with a request or a reply.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_service_info_t {
    pub source_timestamp: rmw_time_point_value_t,
    pub received_timestamp: rmw_time_point_value_t,
    pub request_id: rmw_request_id_t,
}

/// The bytes of a number, of which a distribution has the first 16 or all.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GidBytes(pub [u8; RMW_GID_STORAGE_SIZE]);

/// The number of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct rmw_gid_t {
    pub implementation_identifier: *const c_char,
    pub data: GidBytes,
}

pub const RMW_MESSAGE_INFO_SEQUENCE_NUMBER_UNSUPPORTED: u64 = u64::MAX;

/// What comes with a message.
#[derive(Clone, Copy, Debug)]
pub struct rmw_message_info_t {
    pub source_timestamp: rmw_time_point_value_t,
    pub received_timestamp: rmw_time_point_value_t,
    pub publication_sequence_number: u64,
    pub reception_sequence_number: u64,
    pub publisher_gid: rmw_gid_t,
    pub from_intra_process: bool,
}

/// A message as it is on the wire.
pub type rmw_serialized_message_t = rcutils_uint8_array_t;

/// Room for several messages.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_message_sequence_t {
    pub data: *mut *mut c_void,
    pub size: usize,
    pub capacity: usize,
    pub allocator: *mut rcutils_allocator_t,
}

/// Room for what comes with several messages.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_message_info_sequence_t {
    pub data: *mut InC<rmw_message_info_t>,
    pub size: usize,
    pub capacity: usize,
    pub allocator: *mut rcutils_allocator_t,
}

// Quality of service.

pub type rmw_qos_history_policy_t = c_uint;
pub const RMW_QOS_POLICY_HISTORY_SYSTEM_DEFAULT: rmw_qos_history_policy_t = 0;
pub const RMW_QOS_POLICY_HISTORY_KEEP_LAST: rmw_qos_history_policy_t = 1;
pub const RMW_QOS_POLICY_HISTORY_KEEP_ALL: rmw_qos_history_policy_t = 2;
pub const RMW_QOS_POLICY_HISTORY_UNKNOWN: rmw_qos_history_policy_t = 3;

pub const RMW_QOS_POLICY_DEPTH_SYSTEM_DEFAULT: usize = 0;

pub type rmw_qos_reliability_policy_t = c_uint;
pub const RMW_QOS_POLICY_RELIABILITY_SYSTEM_DEFAULT: rmw_qos_reliability_policy_t = 0;
pub const RMW_QOS_POLICY_RELIABILITY_RELIABLE: rmw_qos_reliability_policy_t = 1;
pub const RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT: rmw_qos_reliability_policy_t = 2;
pub const RMW_QOS_POLICY_RELIABILITY_UNKNOWN: rmw_qos_reliability_policy_t = 3;
pub const RMW_QOS_POLICY_RELIABILITY_BEST_AVAILABLE: rmw_qos_reliability_policy_t = 4;

pub type rmw_qos_durability_policy_t = c_uint;
pub const RMW_QOS_POLICY_DURABILITY_SYSTEM_DEFAULT: rmw_qos_durability_policy_t = 0;
pub const RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL: rmw_qos_durability_policy_t = 1;
pub const RMW_QOS_POLICY_DURABILITY_VOLATILE: rmw_qos_durability_policy_t = 2;
pub const RMW_QOS_POLICY_DURABILITY_UNKNOWN: rmw_qos_durability_policy_t = 3;
pub const RMW_QOS_POLICY_DURABILITY_BEST_AVAILABLE: rmw_qos_durability_policy_t = 4;

pub type rmw_qos_liveliness_policy_t = c_uint;
pub const RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT: rmw_qos_liveliness_policy_t = 0;
pub const RMW_QOS_POLICY_LIVELINESS_AUTOMATIC: rmw_qos_liveliness_policy_t = 1;
pub const RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_NODE: rmw_qos_liveliness_policy_t = 2;
pub const RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC: rmw_qos_liveliness_policy_t = 3;
pub const RMW_QOS_POLICY_LIVELINESS_UNKNOWN: rmw_qos_liveliness_policy_t = 4;
pub const RMW_QOS_POLICY_LIVELINESS_BEST_AVAILABLE: rmw_qos_liveliness_policy_t = 5;

/// `RMW_QOS_DEADLINE_BEST_AVAILABLE` and `RMW_QOS_LIVELINESS_LEASE_DURATION_BEST_AVAILABLE`.
pub const RMW_DURATION_BEST_AVAILABLE: rmw_time_t =
    rmw_time_t { sec: 9_223_372_036, nsec: 854_775_806 };

/// What an endpoint offers or asks for.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct rmw_qos_profile_t {
    pub history: rmw_qos_history_policy_t,
    pub depth: usize,
    pub reliability: rmw_qos_reliability_policy_t,
    pub durability: rmw_qos_durability_policy_t,
    pub deadline: rmw_time_t,
    pub lifespan: rmw_time_t,
    pub liveliness: rmw_qos_liveliness_policy_t,
    pub liveliness_lease_duration: rmw_time_t,
    pub avoid_ros_namespace_conventions: bool,
}

pub type rmw_qos_compatibility_type_t = c_uint;
pub const RMW_QOS_COMPATIBILITY_OK: rmw_qos_compatibility_type_t = 0;
pub const RMW_QOS_COMPATIBILITY_WARNING: rmw_qos_compatibility_type_t = 1;
pub const RMW_QOS_COMPATIBILITY_ERROR: rmw_qos_compatibility_type_t = 2;

pub type rmw_qos_policy_kind_t = c_uint;
pub const RMW_QOS_POLICY_INVALID: rmw_qos_policy_kind_t = 1;
pub const RMW_QOS_POLICY_DURABILITY: rmw_qos_policy_kind_t = 2;
pub const RMW_QOS_POLICY_DEADLINE: rmw_qos_policy_kind_t = 4;
pub const RMW_QOS_POLICY_LIVELINESS: rmw_qos_policy_kind_t = 8;
pub const RMW_QOS_POLICY_RELIABILITY: rmw_qos_policy_kind_t = 16;
pub const RMW_QOS_POLICY_HISTORY: rmw_qos_policy_kind_t = 32;
pub const RMW_QOS_POLICY_LIFESPAN: rmw_qos_policy_kind_t = 64;
pub const RMW_QOS_POLICY_DEPTH: rmw_qos_policy_kind_t = 128;
pub const RMW_QOS_POLICY_LIVELINESS_LEASE_DURATION: rmw_qos_policy_kind_t = 256;
pub const RMW_QOS_POLICY_AVOID_ROS_NAMESPACE_CONVENTIONS: rmw_qos_policy_kind_t = 512;

// What is known of the whole system.

/// Names, and the types of each.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_names_and_types_t {
    pub names: rcutils_string_array_t,
    pub types: *mut rcutils_string_array_t,
}

/// A publisher or subscription somewhere.
#[derive(Clone, Copy, Debug)]
pub struct rmw_topic_endpoint_info_t {
    pub node_name: *const c_char,
    pub node_namespace: *const c_char,
    pub topic_type: *const c_char,
    /// Since Iron.
    pub topic_type_hash: rosidl_type_hash_t,
    pub endpoint_type: rmw_endpoint_type_t,
    pub endpoint_gid: GidBytes,
    pub qos_profile: rmw_qos_profile_t,
}

/// Some of them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_topic_endpoint_info_array_t {
    pub size: usize,
    pub info_array: *mut InC<rmw_topic_endpoint_info_t>,
}

/// A client or server somewhere. Since Lyrical.
#[derive(Clone, Copy, Debug)]
pub struct rmw_service_endpoint_info_t {
    pub node_name: *const c_char,
    pub node_namespace: *const c_char,
    pub service_type: *const c_char,
    pub service_type_hash: rosidl_type_hash_t,
    pub endpoint_type: rmw_endpoint_type_t,
    /// How many endpoints it has, and so how many numbers and profiles follow.
    pub endpoint_count: usize,
    pub endpoint_gids: *mut u8,
    pub qos_profiles: *mut rmw_qos_profile_t,
}

/// Some of them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_service_endpoint_info_array_t {
    pub size: usize,
    pub info_array: *mut InC<rmw_service_endpoint_info_t>,
}

pub type rmw_transport_protocol_t = c_uint;
pub const RMW_TRANSPORT_PROTOCOL_UNKNOWN: rmw_transport_protocol_t = 0;
pub const RMW_TRANSPORT_PROTOCOL_UDP: rmw_transport_protocol_t = 1;
pub const RMW_TRANSPORT_PROTOCOL_TCP: rmw_transport_protocol_t = 2;

pub type rmw_internet_protocol_t = c_uint;
pub const RMW_INTERNET_PROTOCOL_UNKNOWN: rmw_internet_protocol_t = 0;
pub const RMW_INTERNET_PROTOCOL_IPV4: rmw_internet_protocol_t = 1;
pub const RMW_INTERNET_PROTOCOL_IPV6: rmw_internet_protocol_t = 2;

pub const RMW_INET_ADDRSTRLEN: usize = 48;

/// Where packets of an endpoint come from.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_network_flow_endpoint_t {
    pub transport_protocol: rmw_transport_protocol_t,
    pub internet_protocol: rmw_internet_protocol_t,
    pub transport_port: u16,
    pub flow_label: u32,
    pub dscp: u8,
    pub internet_address: [c_char; RMW_INET_ADDRSTRLEN],
}

/// Some of them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_network_flow_endpoint_array_t {
    pub size: usize,
    pub network_flow_endpoint: *mut rmw_network_flow_endpoint_t,
    pub allocator: *mut rcutils_allocator_t,
}

// Events.

pub type rmw_event_callback_t =
    Option<unsafe extern "C" fn(user_data: *const c_void, number_of_events: usize)>;

pub type rmw_event_type_t = c_uint;

/// One kind of event of one endpoint.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_event_t {
    pub implementation_identifier: *const c_char,
    pub data: *mut c_void,
    pub event_type: rmw_event_type_t,
}

/// Another end's QoS does not fit.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_qos_incompatible_event_status_t {
    pub total_count: i32,
    pub total_count_change: i32,
    pub last_policy_kind: rmw_qos_policy_kind_t,
}

/// Publishers became alive, or ceased to be.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_liveliness_changed_status_t {
    pub alive_count: i32,
    pub not_alive_count: i32,
    pub alive_count_change: i32,
    pub not_alive_count_change: i32,
}

/// A publisher did not show in time that it is alive.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_liveliness_lost_status_t {
    pub total_count: i32,
    pub total_count_change: i32,
}

/// Messages did not arrive.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_message_lost_status_t {
    pub total_count: usize,
    pub total_count_change: usize,
}

/// A publisher was late.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_offered_deadline_missed_status_t {
    pub total_count: i32,
    pub total_count_change: i32,
}

/// A message was late.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_requested_deadline_missed_status_t {
    pub total_count: i32,
    pub total_count_change: i32,
}

/// Another end has another type.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_incompatible_type_status_t {
    pub total_count: i32,
    pub total_count_change: i32,
}

/// Other ends came or went.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_matched_status_t {
    pub total_count: usize,
    pub total_count_change: usize,
    pub current_count: usize,
    pub current_count_change: i32,
}

// The rest.

pub type rmw_feature_t = c_uint;
pub const RMW_FEATURE_MESSAGE_INFO_PUBLICATION_SEQUENCE_NUMBER: rmw_feature_t = 0;
pub const RMW_FEATURE_MESSAGE_INFO_RECEPTION_SEQUENCE_NUMBER: rmw_feature_t = 1;
pub const RMW_MIDDLEWARE_SUPPORTS_TYPE_DISCOVERY: rmw_feature_t = 2;
pub const RMW_MIDDLEWARE_CAN_TAKE_DYNAMIC_MESSAGE: rmw_feature_t = 3;

pub type rmw_log_severity_t = c_uint;
pub const RMW_LOG_SEVERITY_DEBUG: rmw_log_severity_t = 10;
pub const RMW_LOG_SEVERITY_INFO: rmw_log_severity_t = 20;
pub const RMW_LOG_SEVERITY_WARN: rmw_log_severity_t = 30;
pub const RMW_LOG_SEVERITY_ERROR: rmw_log_severity_t = 40;
pub const RMW_LOG_SEVERITY_FATAL: rmw_log_severity_t = 50;

// The order of the fields here is of no account.
crate::abi::shaped! {
    rmw_init_options_t as rmw_init_options_t {
        instance_id, implementation_identifier, domain_id, security_options, localhost_only, discovery_options, enclave,
        allocator, impl_,
    }
    rmw_context_t as rmw_context_t {
        instance_id, implementation_identifier, options, actual_domain_id, impl_,
    }
    rmw_subscription_options_t as rmw_subscription_options_t {
        rmw_specific_subscription_payload, ignore_local_publications, require_unique_network_flow_endpoints,
        content_filter_options, acceptable_buffer_backends,
    }
    WholeSubscription as rmw_subscription_t {
        implementation_identifier, data, topic_name, options, can_loan_messages, is_cft_enabled, is_cft_supported,
    }
    rmw_gid_t as rmw_gid_t { implementation_identifier, data }
    rmw_message_info_t as rmw_message_info_t {
        source_timestamp, received_timestamp, publication_sequence_number, reception_sequence_number, publisher_gid,
        from_intra_process,
    }
    rmw_topic_endpoint_info_t as rmw_topic_endpoint_info_t {
        node_name, node_namespace, topic_type, topic_type_hash, endpoint_type, endpoint_gid, qos_profile,
    }
    rmw_service_endpoint_info_t as rmw_service_endpoint_info_t {
        node_name, node_namespace, service_type, service_type_hash, endpoint_type, endpoint_count, endpoint_gids,
        qos_profiles,
    }
}

//! Of the package rmw: what its functions take and answer, by the headers of one distribution.
//!
//! An enumeration of C is an unsigned number here, since a caller may pass any value.
#![allow(missing_docs, non_camel_case_types, reason = "rmw's headers name and document them")]

use std::ffi::{c_char, c_uint, c_void};

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

#[cfg(feature = "jazzy")]
pub const RMW_GID_STORAGE_SIZE: usize = 16;
#[cfg(not(feature = "jazzy"))]
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

#[cfg(feature = "jazzy")]
pub use discovery::*;

#[cfg(feature = "jazzy")]
mod discovery {
    use super::{c_char, c_uint, rcutils_allocator_t};

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
}

/// What a program asks of a context. `impl_` is `impl` in C.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_init_options_t {
    pub instance_id: u64,
    pub implementation_identifier: *const c_char,
    pub domain_id: usize,
    pub security_options: rmw_security_options_t,
    pub localhost_only: rmw_localhost_only_t,
    #[cfg(feature = "jazzy")]
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
    #[cfg(feature = "jazzy")]
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
#[repr(C)]
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
    pub context: *mut rmw_context_t,
}

pub type rmw_endpoint_type_t = c_uint;
pub const RMW_ENDPOINT_INVALID: rmw_endpoint_type_t = 0;
pub const RMW_ENDPOINT_PUBLISHER: rmw_endpoint_type_t = 1;
pub const RMW_ENDPOINT_SUBSCRIPTION: rmw_endpoint_type_t = 2;

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
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_subscription_options_t {
    pub rmw_specific_subscription_payload: *mut c_void,
    pub ignore_local_publications: bool,
    pub require_unique_network_flow_endpoints: rmw_unique_network_flow_endpoints_requirement_t,
    pub content_filter_options: *mut rmw_subscription_content_filter_options_t,
}

/// A subscription.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_subscription_t {
    pub implementation_identifier: *const c_char,
    pub data: *mut c_void,
    pub topic_name: *const c_char,
    pub options: rmw_subscription_options_t,
    pub can_loan_messages: bool,
    pub is_cft_enabled: bool,
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
    pub context: *mut rmw_context_t,
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
    #[cfg(feature = "jazzy")]
    pub writer_guid: [u8; 16],
    #[cfg(not(feature = "jazzy"))]
    pub writer_guid: [i8; 16],
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

/// The number of an endpoint.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_gid_t {
    pub implementation_identifier: *const c_char,
    pub data: [u8; RMW_GID_STORAGE_SIZE],
}

pub const RMW_MESSAGE_INFO_SEQUENCE_NUMBER_UNSUPPORTED: u64 = u64::MAX;

/// What comes with a message.
#[repr(C)]
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
    pub data: *mut rmw_message_info_t,
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
#[cfg(feature = "jazzy")]
pub const RMW_QOS_POLICY_RELIABILITY_BEST_AVAILABLE: rmw_qos_reliability_policy_t = 4;

pub type rmw_qos_durability_policy_t = c_uint;
pub const RMW_QOS_POLICY_DURABILITY_SYSTEM_DEFAULT: rmw_qos_durability_policy_t = 0;
pub const RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL: rmw_qos_durability_policy_t = 1;
pub const RMW_QOS_POLICY_DURABILITY_VOLATILE: rmw_qos_durability_policy_t = 2;
pub const RMW_QOS_POLICY_DURABILITY_UNKNOWN: rmw_qos_durability_policy_t = 3;
#[cfg(feature = "jazzy")]
pub const RMW_QOS_POLICY_DURABILITY_BEST_AVAILABLE: rmw_qos_durability_policy_t = 4;

pub type rmw_qos_liveliness_policy_t = c_uint;
pub const RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT: rmw_qos_liveliness_policy_t = 0;
pub const RMW_QOS_POLICY_LIVELINESS_AUTOMATIC: rmw_qos_liveliness_policy_t = 1;
pub const RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_NODE: rmw_qos_liveliness_policy_t = 2;
pub const RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC: rmw_qos_liveliness_policy_t = 3;
pub const RMW_QOS_POLICY_LIVELINESS_UNKNOWN: rmw_qos_liveliness_policy_t = 4;
#[cfg(feature = "jazzy")]
pub const RMW_QOS_POLICY_LIVELINESS_BEST_AVAILABLE: rmw_qos_liveliness_policy_t = 5;

/// `RMW_QOS_DEADLINE_BEST_AVAILABLE` and `RMW_QOS_LIVELINESS_LEASE_DURATION_BEST_AVAILABLE`.
#[cfg(feature = "jazzy")]
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

/// The hash of a type. Of the package rosidl_runtime_c, of which Humble's rmw has none.
#[cfg(feature = "jazzy")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct rosidl_type_hash_t {
    pub version: u8,
    pub value: [u8; 32],
}

/// A publisher or subscription somewhere.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_topic_endpoint_info_t {
    pub node_name: *const c_char,
    pub node_namespace: *const c_char,
    pub topic_type: *const c_char,
    #[cfg(feature = "jazzy")]
    pub topic_type_hash: rosidl_type_hash_t,
    pub endpoint_type: rmw_endpoint_type_t,
    pub endpoint_gid: [u8; RMW_GID_STORAGE_SIZE],
    pub qos_profile: rmw_qos_profile_t,
}

/// Some of them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rmw_topic_endpoint_info_array_t {
    pub size: usize,
    pub info_array: *mut rmw_topic_endpoint_info_t,
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

/// The events of Jazzy.
#[cfg(feature = "jazzy")]
mod event_types {
    use super::rmw_event_type_t;

    pub const RMW_EVENT_LIVELINESS_CHANGED: rmw_event_type_t = 0;
    pub const RMW_EVENT_REQUESTED_DEADLINE_MISSED: rmw_event_type_t = 1;
    pub const RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE: rmw_event_type_t = 2;
    pub const RMW_EVENT_MESSAGE_LOST: rmw_event_type_t = 3;
    pub const RMW_EVENT_SUBSCRIPTION_INCOMPATIBLE_TYPE: rmw_event_type_t = 4;
    pub const RMW_EVENT_SUBSCRIPTION_MATCHED: rmw_event_type_t = 5;
    pub const RMW_EVENT_LIVELINESS_LOST: rmw_event_type_t = 6;
    pub const RMW_EVENT_OFFERED_DEADLINE_MISSED: rmw_event_type_t = 7;
    pub const RMW_EVENT_OFFERED_QOS_INCOMPATIBLE: rmw_event_type_t = 8;
    pub const RMW_EVENT_PUBLISHER_INCOMPATIBLE_TYPE: rmw_event_type_t = 9;
    pub const RMW_EVENT_PUBLICATION_MATCHED: rmw_event_type_t = 10;
    pub const RMW_EVENT_INVALID: rmw_event_type_t = 11;
}

/// The events of Humble.
#[cfg(not(feature = "jazzy"))]
mod event_types {
    use super::rmw_event_type_t;

    pub const RMW_EVENT_LIVELINESS_CHANGED: rmw_event_type_t = 0;
    pub const RMW_EVENT_REQUESTED_DEADLINE_MISSED: rmw_event_type_t = 1;
    pub const RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE: rmw_event_type_t = 2;
    pub const RMW_EVENT_MESSAGE_LOST: rmw_event_type_t = 3;
    pub const RMW_EVENT_LIVELINESS_LOST: rmw_event_type_t = 4;
    pub const RMW_EVENT_OFFERED_DEADLINE_MISSED: rmw_event_type_t = 5;
    pub const RMW_EVENT_OFFERED_QOS_INCOMPATIBLE: rmw_event_type_t = 6;
    pub const RMW_EVENT_INVALID: rmw_event_type_t = 7;
}

pub use event_types::*;

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

#[cfg(feature = "jazzy")]
pub use jazzy_statuses::*;

#[cfg(feature = "jazzy")]
mod jazzy_statuses {
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
}

// The rest.

pub type rmw_feature_t = c_uint;
pub const RMW_FEATURE_MESSAGE_INFO_PUBLICATION_SEQUENCE_NUMBER: rmw_feature_t = 0;
pub const RMW_FEATURE_MESSAGE_INFO_RECEPTION_SEQUENCE_NUMBER: rmw_feature_t = 1;
#[cfg(feature = "jazzy")]
pub const RMW_MIDDLEWARE_SUPPORTS_TYPE_DISCOVERY: rmw_feature_t = 2;
#[cfg(feature = "jazzy")]
pub const RMW_MIDDLEWARE_CAN_TAKE_DYNAMIC_MESSAGE: rmw_feature_t = 3;

pub type rmw_log_severity_t = c_uint;
pub const RMW_LOG_SEVERITY_DEBUG: rmw_log_severity_t = 10;
pub const RMW_LOG_SEVERITY_INFO: rmw_log_severity_t = 20;
pub const RMW_LOG_SEVERITY_WARN: rmw_log_severity_t = 30;
pub const RMW_LOG_SEVERITY_ERROR: rmw_log_severity_t = 40;
pub const RMW_LOG_SEVERITY_FATAL: rmw_log_severity_t = 50;

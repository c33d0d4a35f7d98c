// What a program in C or C++ needs to call librmw_tsuji.so where no headers of rmw are installed, as in
// continuous integration. Written by hand for all distributions, of which one is defined, such as TSUJI_RMW_JAZZY. What is
// in `abi/` proves that its layouts are those of rmw's own headers.
#ifndef RMW_TSUJI_TEST_H
#define RMW_TSUJI_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// In the order of their releases.
#if defined(TSUJI_RMW_HUMBLE)
#define TSUJI_RMW_IS 1
#elif defined(TSUJI_RMW_JAZZY)
#define TSUJI_RMW_IS 2
#elif defined(TSUJI_RMW_KILTED)
#define TSUJI_RMW_IS 3
#elif defined(TSUJI_RMW_LYRICAL)
#define TSUJI_RMW_IS 4
#elif defined(TSUJI_RMW_ROLLING)
#define TSUJI_RMW_IS 5
#else
#error "define one of TSUJI_RMW_HUMBLE, TSUJI_RMW_JAZZY, TSUJI_RMW_KILTED, TSUJI_RMW_LYRICAL and TSUJI_RMW_ROLLING"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifdef TSUJI_RMW_WITH_ROSIDL
// Where messages are generated, the packages below are there with headers of their own.
#include "rcutils/allocator.h"
#include "rcutils/time.h"
#include "rcutils/types/string_array.h"
#include "rcutils/types/uint8_array.h"
#include "rosidl_runtime_c/message_type_support_struct.h"
#include "rosidl_runtime_c/sequence_bound.h"
#include "rosidl_runtime_c/service_type_support_struct.h"
#else

// Of the package rcutils.

typedef struct rcutils_allocator_t
{
  void * (* allocate)(size_t size, void * state);
  void (* deallocate)(void * pointer, void * state);
  void * (* reallocate)(void * pointer, size_t size, void * state);
  void * (* zero_allocate)(size_t count, size_t size, void * state);
  void * state;
} rcutils_allocator_t;

typedef struct rcutils_string_array_t
{
  size_t size;
  char ** data;
  rcutils_allocator_t allocator;
} rcutils_string_array_t;

typedef struct rcutils_uint8_array_t
{
  uint8_t * buffer;
  size_t buffer_length;
  size_t buffer_capacity;
  rcutils_allocator_t allocator;
} rcutils_uint8_array_t;

typedef int64_t rcutils_time_point_value_t;
typedef int64_t rcutils_duration_value_t;

// Of the packages rosidl_runtime_c and rosidl_typesupport_introspection_c.

typedef struct rosidl_runtime_c__Sequence__bound rosidl_runtime_c__Sequence__bound;

#if 2 <= TSUJI_RMW_IS
typedef struct rosidl_type_hash_t
{
  uint8_t version;
  uint8_t value[32];
} rosidl_type_hash_t;
#endif

typedef struct rosidl_message_type_support_t rosidl_message_type_support_t;
struct rosidl_message_type_support_t
{
  const char * typesupport_identifier;
  const void * data;
  const rosidl_message_type_support_t * (* func)(const rosidl_message_type_support_t *, const char * identifier);
#if 2 <= TSUJI_RMW_IS
  const rosidl_type_hash_t * (* get_type_hash_func)(const rosidl_message_type_support_t *);
  const void * (* get_type_description_func)(const rosidl_message_type_support_t *);
  const void * (* get_type_description_sources_func)(const rosidl_message_type_support_t *);
#endif
};

typedef struct rosidl_service_type_support_t rosidl_service_type_support_t;
struct rosidl_service_type_support_t
{
  const char * typesupport_identifier;
  const void * data;
  const rosidl_service_type_support_t * (* func)(const rosidl_service_type_support_t *, const char * identifier);
#if 2 <= TSUJI_RMW_IS
  const rosidl_message_type_support_t * request_typesupport;
  const rosidl_message_type_support_t * response_typesupport;
  const rosidl_message_type_support_t * event_typesupport;
  void * (* event_message_create_handle_function)(const void *, void *, const void *, const void *);
  bool (* event_message_destroy_handle_function)(void *, void *);
  const rosidl_type_hash_t * (* get_type_hash_func)(const rosidl_service_type_support_t *);
  const void * (* get_type_description_func)(const rosidl_service_type_support_t *);
  const void * (* get_type_description_sources_func)(const rosidl_service_type_support_t *);
#endif
};

typedef struct rosidl_typesupport_introspection_c__MessageMember
{
  const char * name_;
  uint8_t type_id_;
  size_t string_upper_bound_;
  const rosidl_message_type_support_t * members_;
#if 2 <= TSUJI_RMW_IS
  bool is_key_;
#endif
  bool is_array_;
  size_t array_size_;
  bool is_upper_bound_;
  uint32_t offset_;
  const void * default_value_;
  size_t (* size_function)(const void *);
  const void * (* get_const_function)(const void *, size_t index);
  void * (* get_function)(void *, size_t index);
  void (* fetch_function)(const void *, size_t index, void *);
  void (* assign_function)(void *, size_t index, const void *);
  bool (* resize_function)(void *, size_t size);
#if 4 <= TSUJI_RMW_IS
  bool is_rosidl_buffer_;
#endif
} rosidl_typesupport_introspection_c__MessageMember;

typedef struct rosidl_typesupport_introspection_c__MessageMembers
{
  const char * message_namespace_;
  const char * message_name_;
  uint32_t member_count_;
  size_t size_of_;
#if 2 <= TSUJI_RMW_IS
  bool has_any_key_member_;
#endif
  const rosidl_typesupport_introspection_c__MessageMember * members_;
  void (* init_function)(void *, int);
  void (* fini_function)(void *);
} rosidl_typesupport_introspection_c__MessageMembers;

typedef struct rosidl_typesupport_introspection_c__ServiceMembers
{
  const char * service_namespace_;
  const char * service_name_;
  const rosidl_typesupport_introspection_c__MessageMembers * request_members_;
  const rosidl_typesupport_introspection_c__MessageMembers * response_members_;
#if 2 <= TSUJI_RMW_IS
  const rosidl_typesupport_introspection_c__MessageMembers * event_members_;
#endif
} rosidl_typesupport_introspection_c__ServiceMembers;

typedef struct rosidl_runtime_c__uint8__Sequence
{
  uint8_t * data;
  size_t size;
  size_t capacity;
#if 4 <= TSUJI_RMW_IS
  bool is_rosidl_buffer;
  bool owns_rosidl_buffer;
#endif
} rosidl_runtime_c__uint8__Sequence;

typedef struct rosidl_runtime_c__String
{
  char * data;
  size_t size;
  size_t capacity;
} rosidl_runtime_c__String;

typedef struct rosidl_runtime_c__U16String
{
  uint_least16_t * data;
  size_t size;
  size_t capacity;
} rosidl_runtime_c__U16String;
#endif

// Of the package rosidl_dynamic_typesupport: only pointers to it are passed.

typedef struct rosidl_dynamic_typesupport_dynamic_data_s rosidl_dynamic_typesupport_dynamic_data_t;
typedef struct rosidl_dynamic_typesupport_serialization_support_s
  rosidl_dynamic_typesupport_serialization_support_t;

// Of the package rmw.

typedef int32_t rmw_ret_t;
#define RMW_RET_OK 0
#define RMW_RET_ERROR 1
#define RMW_RET_TIMEOUT 2
#define RMW_RET_UNSUPPORTED 3
#define RMW_RET_BAD_ALLOC 10
#define RMW_RET_INVALID_ARGUMENT 11
#define RMW_RET_INCORRECT_RMW_IMPLEMENTATION 12
#define RMW_RET_NODE_NAME_NON_EXISTENT 203

#if 2 <= TSUJI_RMW_IS
#define RMW_GID_STORAGE_SIZE 16u
#endif
#if TSUJI_RMW_IS < 2
#define RMW_GID_STORAGE_SIZE 24u
#endif

typedef struct rmw_time_t
{
  uint64_t sec;
  uint64_t nsec;
} rmw_time_t;

typedef rcutils_time_point_value_t rmw_time_point_value_t;
typedef rcutils_duration_value_t rmw_duration_t;
#define RMW_DURATION_INFINITE {9223372036ULL, 854775807ULL}
#define RMW_DURATION_UNSPECIFIED {0ULL, 0ULL}

// What a program asks of a context.

#define RMW_DEFAULT_DOMAIN_ID SIZE_MAX

typedef unsigned int rmw_security_enforcement_policy_t;
#define RMW_SECURITY_ENFORCEMENT_PERMISSIVE 0u
#define RMW_SECURITY_ENFORCEMENT_ENFORCE 1u

typedef struct rmw_security_options_t
{
  rmw_security_enforcement_policy_t enforce_security;
  char * security_root_path;
} rmw_security_options_t;

#if TSUJI_RMW_IS < 3
typedef unsigned int rmw_localhost_only_t;
#define RMW_LOCALHOST_ONLY_DEFAULT 0u
#define RMW_LOCALHOST_ONLY_ENABLED 1u
#define RMW_LOCALHOST_ONLY_DISABLED 2u
#endif

#if 2 <= TSUJI_RMW_IS
typedef unsigned int rmw_automatic_discovery_range_t;
#define RMW_AUTOMATIC_DISCOVERY_RANGE_NOT_SET 0u
#define RMW_AUTOMATIC_DISCOVERY_RANGE_OFF 1u
#define RMW_AUTOMATIC_DISCOVERY_RANGE_LOCALHOST 2u
#define RMW_AUTOMATIC_DISCOVERY_RANGE_SUBNET 3u
#define RMW_AUTOMATIC_DISCOVERY_RANGE_SYSTEM_DEFAULT 4u

#define RMW_DISCOVERY_OPTIONS_STATIC_PEERS_MAX_LENGTH 256u

typedef struct rmw_peer_address_t
{
  char peer_address[RMW_DISCOVERY_OPTIONS_STATIC_PEERS_MAX_LENGTH];
} rmw_peer_address_t;

typedef struct rmw_discovery_options_t
{
  rmw_automatic_discovery_range_t automatic_discovery_range;
  rmw_peer_address_t * static_peers;
  size_t static_peers_count;
  rcutils_allocator_t allocator;
} rmw_discovery_options_t;
#endif

typedef struct rmw_init_options_t
{
  uint64_t instance_id;
  const char * implementation_identifier;
  size_t domain_id;
  rmw_security_options_t security_options;
#if TSUJI_RMW_IS < 3
  rmw_localhost_only_t localhost_only;
#endif
#if 2 <= TSUJI_RMW_IS
  rmw_discovery_options_t discovery_options;
#endif
  char * enclave;
  rcutils_allocator_t allocator;
  void * impl;
} rmw_init_options_t;

typedef struct rmw_context_t
{
  uint64_t instance_id;
  const char * implementation_identifier;
  rmw_init_options_t options;
  size_t actual_domain_id;
  void * impl;
} rmw_context_t;

// What a program holds.

typedef struct rmw_node_t
{
  const char * implementation_identifier;
  void * data;
  const char * name;
  const char * namespace_;
  rmw_context_t * context;
} rmw_node_t;

typedef unsigned int rmw_endpoint_type_t;
#define RMW_ENDPOINT_INVALID 0u
#define RMW_ENDPOINT_PUBLISHER 1u
#define RMW_ENDPOINT_SUBSCRIPTION 2u
#if 4 <= TSUJI_RMW_IS
#define RMW_ENDPOINT_CLIENT 3u
#define RMW_ENDPOINT_SERVER 4u
#endif

typedef unsigned int rmw_unique_network_flow_endpoints_requirement_t;
#define RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_NOT_REQUIRED 0u
#define RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_STRICTLY_REQUIRED 1u
#define RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_OPTIONALLY_REQUIRED 2u
#define RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_SYSTEM_DEFAULT 3u

typedef struct rmw_publisher_options_t
{
  void * rmw_specific_publisher_payload;
  rmw_unique_network_flow_endpoints_requirement_t require_unique_network_flow_endpoints;
} rmw_publisher_options_t;

typedef struct rmw_publisher_t
{
  const char * implementation_identifier;
  void * data;
  const char * topic_name;
  rmw_publisher_options_t options;
  bool can_loan_messages;
} rmw_publisher_t;

typedef struct rmw_subscription_content_filter_options_t
{
  char * filter_expression;
  rcutils_string_array_t expression_parameters;
} rmw_subscription_content_filter_options_t;

typedef struct rmw_subscription_options_t
{
  void * rmw_specific_subscription_payload;
  bool ignore_local_publications;
  rmw_unique_network_flow_endpoints_requirement_t require_unique_network_flow_endpoints;
  rmw_subscription_content_filter_options_t * content_filter_options;
#if 4 <= TSUJI_RMW_IS
  const char * acceptable_buffer_backends;
#endif
} rmw_subscription_options_t;

typedef struct rmw_subscription_t
{
  const char * implementation_identifier;
  void * data;
  const char * topic_name;
  rmw_subscription_options_t options;
  bool can_loan_messages;
  bool is_cft_enabled;
#if 4 <= TSUJI_RMW_IS
  bool is_cft_supported;
#endif
} rmw_subscription_t;

typedef struct rmw_service_t
{
  const char * implementation_identifier;
  void * data;
  const char * service_name;
} rmw_service_t;

typedef struct rmw_client_t
{
  const char * implementation_identifier;
  void * data;
  const char * service_name;
} rmw_client_t;

typedef struct rmw_guard_condition_t
{
  const char * implementation_identifier;
  void * data;
  rmw_context_t * context;
} rmw_guard_condition_t;

typedef struct rmw_publisher_allocation_t
{
  const char * implementation_identifier;
  void * data;
} rmw_publisher_allocation_t;

typedef struct rmw_subscription_allocation_t
{
  const char * implementation_identifier;
  void * data;
} rmw_subscription_allocation_t;

// What a wait set waits for. Each array holds the `data` of its kind; what is not ready becomes null.

typedef struct rmw_subscriptions_t
{
  size_t subscriber_count;
  void **subscribers;
} rmw_subscriptions_t;

typedef struct rmw_services_t
{
  size_t service_count;
  void **services;
} rmw_services_t;

typedef struct rmw_clients_t
{
  size_t client_count;
  void **clients;
} rmw_clients_t;

typedef struct rmw_events_t
{
  size_t event_count;
  void **events;
} rmw_events_t;

typedef struct rmw_guard_conditions_t
{
  size_t guard_condition_count;
  void **guard_conditions;
} rmw_guard_conditions_t;

typedef struct rmw_wait_set_t
{
  const char * implementation_identifier;
  rmw_guard_conditions_t * guard_conditions;
  void * data;
} rmw_wait_set_t;

// What comes with a message.

typedef struct rmw_request_id_t
{
#if 2 <= TSUJI_RMW_IS
  uint8_t writer_guid[16];
#endif
#if TSUJI_RMW_IS < 2
  int8_t writer_guid[16];
#endif
  int64_t sequence_number;
} rmw_request_id_t;

typedef struct rmw_service_info_t
{
  rmw_time_point_value_t source_timestamp;
  rmw_time_point_value_t received_timestamp;
  rmw_request_id_t request_id;
} rmw_service_info_t;

typedef struct rmw_gid_t
{
  const char * implementation_identifier;
  uint8_t data[RMW_GID_STORAGE_SIZE];
} rmw_gid_t;

#define RMW_MESSAGE_INFO_SEQUENCE_NUMBER_UNSUPPORTED UINT64_MAX

typedef struct rmw_message_info_t
{
  rmw_time_point_value_t source_timestamp;
  rmw_time_point_value_t received_timestamp;
  uint64_t publication_sequence_number;
  uint64_t reception_sequence_number;
  rmw_gid_t publisher_gid;
  bool from_intra_process;
} rmw_message_info_t;

typedef rcutils_uint8_array_t rmw_serialized_message_t;
typedef struct rmw_message_sequence_t
{
  void **data;
  size_t size;
  size_t capacity;
  rcutils_allocator_t * allocator;
} rmw_message_sequence_t;

typedef struct rmw_message_info_sequence_t
{
  rmw_message_info_t * data;
  size_t size;
  size_t capacity;
  rcutils_allocator_t * allocator;
} rmw_message_info_sequence_t;

// Quality of service.

typedef unsigned int rmw_qos_history_policy_t;
#define RMW_QOS_POLICY_HISTORY_SYSTEM_DEFAULT 0u
#define RMW_QOS_POLICY_HISTORY_KEEP_LAST 1u
#define RMW_QOS_POLICY_HISTORY_KEEP_ALL 2u
#define RMW_QOS_POLICY_HISTORY_UNKNOWN 3u

#define RMW_QOS_POLICY_DEPTH_SYSTEM_DEFAULT 0u

typedef unsigned int rmw_qos_reliability_policy_t;
#define RMW_QOS_POLICY_RELIABILITY_SYSTEM_DEFAULT 0u
#define RMW_QOS_POLICY_RELIABILITY_RELIABLE 1u
#define RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT 2u
#define RMW_QOS_POLICY_RELIABILITY_UNKNOWN 3u
#if 2 <= TSUJI_RMW_IS
#define RMW_QOS_POLICY_RELIABILITY_BEST_AVAILABLE 4u
#endif

typedef unsigned int rmw_qos_durability_policy_t;
#define RMW_QOS_POLICY_DURABILITY_SYSTEM_DEFAULT 0u
#define RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL 1u
#define RMW_QOS_POLICY_DURABILITY_VOLATILE 2u
#define RMW_QOS_POLICY_DURABILITY_UNKNOWN 3u
#if 2 <= TSUJI_RMW_IS
#define RMW_QOS_POLICY_DURABILITY_BEST_AVAILABLE 4u
#endif

typedef unsigned int rmw_qos_liveliness_policy_t;
#define RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT 0u
#define RMW_QOS_POLICY_LIVELINESS_AUTOMATIC 1u
#if TSUJI_RMW_IS < 4
#define RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_NODE 2u
#endif
#define RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_TOPIC 3u
#define RMW_QOS_POLICY_LIVELINESS_UNKNOWN 4u
#if 2 <= TSUJI_RMW_IS
#define RMW_QOS_POLICY_LIVELINESS_BEST_AVAILABLE 5u
#endif

#if 2 <= TSUJI_RMW_IS
#define RMW_DURATION_BEST_AVAILABLE {9223372036ULL, 854775806ULL}
#endif

typedef struct rmw_qos_profile_t
{
  rmw_qos_history_policy_t history;
  size_t depth;
  rmw_qos_reliability_policy_t reliability;
  rmw_qos_durability_policy_t durability;
  rmw_time_t deadline;
  rmw_time_t lifespan;
  rmw_qos_liveliness_policy_t liveliness;
  rmw_time_t liveliness_lease_duration;
  bool avoid_ros_namespace_conventions;
} rmw_qos_profile_t;

typedef unsigned int rmw_qos_compatibility_type_t;
#define RMW_QOS_COMPATIBILITY_OK 0u
#define RMW_QOS_COMPATIBILITY_WARNING 1u
#define RMW_QOS_COMPATIBILITY_ERROR 2u

typedef unsigned int rmw_qos_policy_kind_t;
#define RMW_QOS_POLICY_INVALID 1u
#define RMW_QOS_POLICY_DURABILITY 2u
#define RMW_QOS_POLICY_DEADLINE 4u
#define RMW_QOS_POLICY_LIVELINESS 8u
#define RMW_QOS_POLICY_RELIABILITY 16u
#define RMW_QOS_POLICY_HISTORY 32u
#define RMW_QOS_POLICY_LIFESPAN 64u
#define RMW_QOS_POLICY_DEPTH 128u
#define RMW_QOS_POLICY_LIVELINESS_LEASE_DURATION 256u
#define RMW_QOS_POLICY_AVOID_ROS_NAMESPACE_CONVENTIONS 512u

// What is known of the whole system.

typedef struct rmw_names_and_types_t
{
  rcutils_string_array_t names;
  rcutils_string_array_t * types;
} rmw_names_and_types_t;

typedef struct rmw_topic_endpoint_info_t
{
  const char * node_name;
  const char * node_namespace;
  const char * topic_type;
#if 2 <= TSUJI_RMW_IS
  rosidl_type_hash_t topic_type_hash;
#endif
  rmw_endpoint_type_t endpoint_type;
  uint8_t endpoint_gid[RMW_GID_STORAGE_SIZE];
  rmw_qos_profile_t qos_profile;
} rmw_topic_endpoint_info_t;

typedef struct rmw_topic_endpoint_info_array_t
{
  size_t size;
  rmw_topic_endpoint_info_t * info_array;
} rmw_topic_endpoint_info_array_t;

#if 4 <= TSUJI_RMW_IS
typedef struct rmw_service_endpoint_info_t
{
  const char * node_name;
  const char * node_namespace;
  const char * service_type;
  rosidl_type_hash_t service_type_hash;
  rmw_endpoint_type_t endpoint_type;
  size_t endpoint_count;
  uint8_t (* endpoint_gids)[RMW_GID_STORAGE_SIZE];
  rmw_qos_profile_t * qos_profiles;
} rmw_service_endpoint_info_t;

typedef struct rmw_service_endpoint_info_array_t
{
  size_t size;
  rmw_service_endpoint_info_t * info_array;
} rmw_service_endpoint_info_array_t;
#endif

typedef unsigned int rmw_transport_protocol_t;
#define RMW_TRANSPORT_PROTOCOL_UNKNOWN 0u
#define RMW_TRANSPORT_PROTOCOL_UDP 1u
#define RMW_TRANSPORT_PROTOCOL_TCP 2u

typedef unsigned int rmw_internet_protocol_t;
#define RMW_INTERNET_PROTOCOL_UNKNOWN 0u
#define RMW_INTERNET_PROTOCOL_IPV4 1u
#define RMW_INTERNET_PROTOCOL_IPV6 2u

#define RMW_INET_ADDRSTRLEN 48u

typedef struct rmw_network_flow_endpoint_t
{
  rmw_transport_protocol_t transport_protocol;
  rmw_internet_protocol_t internet_protocol;
  uint16_t transport_port;
  uint32_t flow_label;
  uint8_t dscp;
  char internet_address[RMW_INET_ADDRSTRLEN];
} rmw_network_flow_endpoint_t;

typedef struct rmw_network_flow_endpoint_array_t
{
  size_t size;
  rmw_network_flow_endpoint_t * network_flow_endpoint;
  rcutils_allocator_t * allocator;
} rmw_network_flow_endpoint_array_t;

// Events.

typedef void (* rmw_event_callback_t)(const void * user_data, size_t number_of_events);

typedef unsigned int rmw_event_type_t;

#if TSUJI_RMW_IS == 2
#define RMW_EVENT_LIVELINESS_CHANGED 0u
#define RMW_EVENT_REQUESTED_DEADLINE_MISSED 1u
#define RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE 2u
#define RMW_EVENT_MESSAGE_LOST 3u
#define RMW_EVENT_SUBSCRIPTION_INCOMPATIBLE_TYPE 4u
#define RMW_EVENT_SUBSCRIPTION_MATCHED 5u
#define RMW_EVENT_LIVELINESS_LOST 6u
#define RMW_EVENT_OFFERED_DEADLINE_MISSED 7u
#define RMW_EVENT_OFFERED_QOS_INCOMPATIBLE 8u
#define RMW_EVENT_PUBLISHER_INCOMPATIBLE_TYPE 9u
#define RMW_EVENT_PUBLICATION_MATCHED 10u
#define RMW_EVENT_INVALID 11u
#endif

#if 3 <= TSUJI_RMW_IS
#define RMW_EVENT_INVALID 0u
#define RMW_EVENT_LIVELINESS_CHANGED 1u
#define RMW_EVENT_REQUESTED_DEADLINE_MISSED 2u
#define RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE 3u
#define RMW_EVENT_MESSAGE_LOST 4u
#define RMW_EVENT_SUBSCRIPTION_INCOMPATIBLE_TYPE 5u
#define RMW_EVENT_SUBSCRIPTION_MATCHED 6u
#define RMW_EVENT_LIVELINESS_LOST 7u
#define RMW_EVENT_OFFERED_DEADLINE_MISSED 8u
#define RMW_EVENT_OFFERED_QOS_INCOMPATIBLE 9u
#define RMW_EVENT_PUBLISHER_INCOMPATIBLE_TYPE 10u
#define RMW_EVENT_PUBLICATION_MATCHED 11u
#define RMW_EVENT_TYPE_MAX 12u
#endif

#if TSUJI_RMW_IS < 2
#define RMW_EVENT_LIVELINESS_CHANGED 0u
#define RMW_EVENT_REQUESTED_DEADLINE_MISSED 1u
#define RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE 2u
#define RMW_EVENT_MESSAGE_LOST 3u
#define RMW_EVENT_LIVELINESS_LOST 4u
#define RMW_EVENT_OFFERED_DEADLINE_MISSED 5u
#define RMW_EVENT_OFFERED_QOS_INCOMPATIBLE 6u
#define RMW_EVENT_INVALID 7u
#endif

typedef struct rmw_event_t
{
  const char * implementation_identifier;
  void * data;
  rmw_event_type_t event_type;
} rmw_event_t;

typedef struct rmw_qos_incompatible_event_status_t
{
  int32_t total_count;
  int32_t total_count_change;
  rmw_qos_policy_kind_t last_policy_kind;
} rmw_qos_incompatible_event_status_t;

typedef struct rmw_liveliness_changed_status_t
{
  int32_t alive_count;
  int32_t not_alive_count;
  int32_t alive_count_change;
  int32_t not_alive_count_change;
} rmw_liveliness_changed_status_t;

typedef struct rmw_liveliness_lost_status_t
{
  int32_t total_count;
  int32_t total_count_change;
} rmw_liveliness_lost_status_t;

typedef struct rmw_message_lost_status_t
{
  size_t total_count;
  size_t total_count_change;
} rmw_message_lost_status_t;

typedef struct rmw_offered_deadline_missed_status_t
{
  int32_t total_count;
  int32_t total_count_change;
} rmw_offered_deadline_missed_status_t;

typedef struct rmw_requested_deadline_missed_status_t
{
  int32_t total_count;
  int32_t total_count_change;
} rmw_requested_deadline_missed_status_t;

#if 2 <= TSUJI_RMW_IS
typedef struct rmw_incompatible_type_status_t
{
  int32_t total_count;
  int32_t total_count_change;
} rmw_incompatible_type_status_t;

typedef struct rmw_matched_status_t
{
  size_t total_count;
  size_t total_count_change;
  size_t current_count;
  int32_t current_count_change;
} rmw_matched_status_t;
#endif

// The rest.

typedef unsigned int rmw_feature_t;
#define RMW_FEATURE_MESSAGE_INFO_PUBLICATION_SEQUENCE_NUMBER 0u
#define RMW_FEATURE_MESSAGE_INFO_RECEPTION_SEQUENCE_NUMBER 1u
#if 2 <= TSUJI_RMW_IS
#define RMW_MIDDLEWARE_SUPPORTS_TYPE_DISCOVERY 2u
#define RMW_MIDDLEWARE_CAN_TAKE_DYNAMIC_MESSAGE 3u
#endif

typedef unsigned int rmw_log_severity_t;
#define RMW_LOG_SEVERITY_DEBUG 10u
#define RMW_LOG_SEVERITY_INFO 20u
#define RMW_LOG_SEVERITY_WARN 30u
#define RMW_LOG_SEVERITY_ERROR 40u
#define RMW_LOG_SEVERITY_FATAL 50u

// The functions.

const char * rmw_get_implementation_identifier(void);
const char * rmw_get_serialization_format(void);
rmw_ret_t rmw_init_options_init(rmw_init_options_t *, rcutils_allocator_t);
rmw_ret_t rmw_init_options_copy(const rmw_init_options_t *, rmw_init_options_t *);
rmw_ret_t rmw_init_options_fini(rmw_init_options_t *);
rmw_ret_t rmw_init(const rmw_init_options_t *, rmw_context_t *);
rmw_ret_t rmw_shutdown(rmw_context_t *);
rmw_ret_t rmw_context_fini(rmw_context_t *);
rmw_node_t * rmw_create_node(rmw_context_t *, const char * name, const char * namespace_);
rmw_ret_t rmw_destroy_node(rmw_node_t *);
const rmw_guard_condition_t * rmw_node_get_graph_guard_condition(const rmw_node_t *);
rmw_ret_t rmw_init_publisher_allocation(
  const rosidl_message_type_support_t *, const rosidl_runtime_c__Sequence__bound *,
  rmw_publisher_allocation_t *);
rmw_ret_t rmw_fini_publisher_allocation(rmw_publisher_allocation_t *);
rmw_publisher_t * rmw_create_publisher(
  const rmw_node_t *, const rosidl_message_type_support_t *, const char * topic_name,
  const rmw_qos_profile_t *, const rmw_publisher_options_t *);
rmw_ret_t rmw_destroy_publisher(rmw_node_t *, rmw_publisher_t *);
rmw_ret_t rmw_borrow_loaned_message(
  const rmw_publisher_t *, const rosidl_message_type_support_t *, void ** ros_message);
rmw_ret_t rmw_return_loaned_message_from_publisher(const rmw_publisher_t *, void * loaned_message);
rmw_ret_t rmw_publish(const rmw_publisher_t *, const void * ros_message, rmw_publisher_allocation_t *);
rmw_ret_t rmw_publish_loaned_message(
  const rmw_publisher_t *, void * ros_message, rmw_publisher_allocation_t *);
rmw_ret_t rmw_publisher_count_matched_subscriptions(const rmw_publisher_t *, size_t *);
rmw_ret_t rmw_publisher_get_actual_qos(const rmw_publisher_t *, rmw_qos_profile_t *);
rmw_ret_t rmw_publisher_event_init(rmw_event_t *, const rmw_publisher_t *, rmw_event_type_t);
rmw_ret_t rmw_publish_serialized_message(
  const rmw_publisher_t *, const rmw_serialized_message_t *, rmw_publisher_allocation_t *);
rmw_ret_t rmw_get_serialized_message_size(
  const rosidl_message_type_support_t *, const rosidl_runtime_c__Sequence__bound *, size_t *);
rmw_ret_t rmw_publisher_assert_liveliness(const rmw_publisher_t *);
rmw_ret_t rmw_publisher_wait_for_all_acked(const rmw_publisher_t *, rmw_time_t);
rmw_ret_t rmw_serialize(
  const void * ros_message, const rosidl_message_type_support_t *, rmw_serialized_message_t *);
rmw_ret_t rmw_deserialize(
  const rmw_serialized_message_t *, const rosidl_message_type_support_t *, void * ros_message);
rmw_ret_t rmw_init_subscription_allocation(
  const rosidl_message_type_support_t *, const rosidl_runtime_c__Sequence__bound *,
  rmw_subscription_allocation_t *);
rmw_ret_t rmw_fini_subscription_allocation(rmw_subscription_allocation_t *);
rmw_subscription_t * rmw_create_subscription(
  const rmw_node_t *, const rosidl_message_type_support_t *, const char * topic_name,
  const rmw_qos_profile_t *, const rmw_subscription_options_t *);
rmw_ret_t rmw_destroy_subscription(rmw_node_t *, rmw_subscription_t *);
rmw_ret_t rmw_subscription_count_matched_publishers(const rmw_subscription_t *, size_t *);
rmw_ret_t rmw_subscription_get_actual_qos(const rmw_subscription_t *, rmw_qos_profile_t *);
rmw_ret_t rmw_subscription_event_init(rmw_event_t *, const rmw_subscription_t *, rmw_event_type_t);
rmw_ret_t rmw_subscription_set_content_filter(
  rmw_subscription_t *, const rmw_subscription_content_filter_options_t *);
rmw_ret_t rmw_subscription_get_content_filter(
  const rmw_subscription_t *, rcutils_allocator_t *, rmw_subscription_content_filter_options_t *);
rmw_ret_t rmw_take(
  const rmw_subscription_t *, void * ros_message, bool * taken, rmw_subscription_allocation_t *);
rmw_ret_t rmw_take_with_info(
  const rmw_subscription_t *, void * ros_message, bool * taken, rmw_message_info_t *,
  rmw_subscription_allocation_t *);
rmw_ret_t rmw_take_sequence(
  const rmw_subscription_t *, size_t count, rmw_message_sequence_t *, rmw_message_info_sequence_t *,
  size_t * taken, rmw_subscription_allocation_t *);
rmw_ret_t rmw_take_serialized_message(
  const rmw_subscription_t *, rmw_serialized_message_t *, bool * taken,
  rmw_subscription_allocation_t *);
rmw_ret_t rmw_take_serialized_message_with_info(
  const rmw_subscription_t *, rmw_serialized_message_t *, bool * taken, rmw_message_info_t *,
  rmw_subscription_allocation_t *);
rmw_ret_t rmw_take_loaned_message(
  const rmw_subscription_t *, void ** loaned_message, bool * taken, rmw_subscription_allocation_t *);
rmw_ret_t rmw_take_loaned_message_with_info(
  const rmw_subscription_t *, void ** loaned_message, bool * taken, rmw_message_info_t *,
  rmw_subscription_allocation_t *);
rmw_ret_t rmw_return_loaned_message_from_subscription(
  const rmw_subscription_t *, void * loaned_message);
rmw_client_t * rmw_create_client(
  const rmw_node_t *, const rosidl_service_type_support_t *, const char * service_name,
  const rmw_qos_profile_t *);
rmw_ret_t rmw_destroy_client(rmw_node_t *, rmw_client_t *);
rmw_ret_t rmw_send_request(const rmw_client_t *, const void * ros_request, int64_t * sequence_id);
rmw_ret_t rmw_take_response(
  const rmw_client_t *, rmw_service_info_t *, void * ros_response, bool * taken);
rmw_ret_t rmw_client_request_publisher_get_actual_qos(const rmw_client_t *, rmw_qos_profile_t *);
rmw_ret_t rmw_client_response_subscription_get_actual_qos(const rmw_client_t *, rmw_qos_profile_t *);
rmw_service_t * rmw_create_service(
  const rmw_node_t *, const rosidl_service_type_support_t *, const char * service_name,
  const rmw_qos_profile_t *);
rmw_ret_t rmw_destroy_service(rmw_node_t *, rmw_service_t *);
rmw_ret_t rmw_take_request(
  const rmw_service_t *, rmw_service_info_t *, void * ros_request, bool * taken);
rmw_ret_t rmw_send_response(const rmw_service_t *, rmw_request_id_t *, void * ros_response);
rmw_ret_t rmw_service_request_subscription_get_actual_qos(const rmw_service_t *, rmw_qos_profile_t *);
rmw_ret_t rmw_service_response_publisher_get_actual_qos(const rmw_service_t *, rmw_qos_profile_t *);
rmw_ret_t rmw_take_event(const rmw_event_t *, void * event_info, bool * taken);
rmw_guard_condition_t * rmw_create_guard_condition(rmw_context_t *);
rmw_ret_t rmw_destroy_guard_condition(rmw_guard_condition_t *);
rmw_ret_t rmw_trigger_guard_condition(const rmw_guard_condition_t *);
rmw_wait_set_t * rmw_create_wait_set(rmw_context_t *, size_t max_conditions);
rmw_ret_t rmw_destroy_wait_set(rmw_wait_set_t *);
rmw_ret_t rmw_wait(
  rmw_subscriptions_t *, rmw_guard_conditions_t *, rmw_services_t *, rmw_clients_t *, rmw_events_t *,
  rmw_wait_set_t *, const rmw_time_t * wait_timeout);
rmw_ret_t rmw_get_publisher_names_and_types_by_node(
  const rmw_node_t *, rcutils_allocator_t *, const char * node_name, const char * node_namespace,
  bool no_demangle, rmw_names_and_types_t *);
rmw_ret_t rmw_get_subscriber_names_and_types_by_node(
  const rmw_node_t *, rcutils_allocator_t *, const char * node_name, const char * node_namespace,
  bool no_demangle, rmw_names_and_types_t *);
rmw_ret_t rmw_get_service_names_and_types_by_node(
  const rmw_node_t *, rcutils_allocator_t *, const char * node_name, const char * node_namespace,
  rmw_names_and_types_t *);
rmw_ret_t rmw_get_client_names_and_types_by_node(
  const rmw_node_t *, rcutils_allocator_t *, const char * node_name, const char * node_namespace,
  rmw_names_and_types_t *);
rmw_ret_t rmw_get_topic_names_and_types(
  const rmw_node_t *, rcutils_allocator_t *, bool no_demangle, rmw_names_and_types_t *);
rmw_ret_t rmw_get_service_names_and_types(
  const rmw_node_t *, rcutils_allocator_t *, rmw_names_and_types_t *);
rmw_ret_t rmw_get_node_names(
  const rmw_node_t *, rcutils_string_array_t * names, rcutils_string_array_t * namespaces);
rmw_ret_t rmw_get_node_names_with_enclaves(
  const rmw_node_t *, rcutils_string_array_t * names, rcutils_string_array_t * namespaces,
  rcutils_string_array_t * enclaves);
rmw_ret_t rmw_count_publishers(const rmw_node_t *, const char * topic_name, size_t *);
rmw_ret_t rmw_count_subscribers(const rmw_node_t *, const char * topic_name, size_t *);
rmw_ret_t rmw_get_gid_for_publisher(const rmw_publisher_t *, rmw_gid_t *);
rmw_ret_t rmw_compare_gids_equal(const rmw_gid_t *, const rmw_gid_t *, bool * result);
rmw_ret_t rmw_service_server_is_available(
  const rmw_node_t *, const rmw_client_t *, bool * is_available);
rmw_ret_t rmw_set_log_severity(rmw_log_severity_t);
rmw_ret_t rmw_get_publishers_info_by_topic(
  const rmw_node_t *, rcutils_allocator_t *, const char * topic_name, bool no_mangle,
  rmw_topic_endpoint_info_array_t *);
rmw_ret_t rmw_get_subscriptions_info_by_topic(
  const rmw_node_t *, rcutils_allocator_t *, const char * topic_name, bool no_mangle,
  rmw_topic_endpoint_info_array_t *);
rmw_ret_t rmw_qos_profile_check_compatible(
  rmw_qos_profile_t publisher_profile, rmw_qos_profile_t subscription_profile,
  rmw_qos_compatibility_type_t *, char * reason, size_t reason_size);
rmw_ret_t rmw_publisher_get_network_flow_endpoints(
  const rmw_publisher_t *, rcutils_allocator_t *, rmw_network_flow_endpoint_array_t *);
rmw_ret_t rmw_subscription_get_network_flow_endpoints(
  const rmw_subscription_t *, rcutils_allocator_t *, rmw_network_flow_endpoint_array_t *);
rmw_ret_t rmw_subscription_set_on_new_message_callback(
  rmw_subscription_t *, rmw_event_callback_t, const void * user_data);
rmw_ret_t rmw_service_set_on_new_request_callback(
  rmw_service_t *, rmw_event_callback_t, const void * user_data);
rmw_ret_t rmw_client_set_on_new_response_callback(
  rmw_client_t *, rmw_event_callback_t, const void * user_data);
rmw_ret_t rmw_event_set_callback(rmw_event_t *, rmw_event_callback_t, const void * user_data);
bool rmw_feature_supported(rmw_feature_t);

#if 2 <= TSUJI_RMW_IS
rmw_ret_t rmw_count_clients(const rmw_node_t *, const char * service_name, size_t *);
rmw_ret_t rmw_count_services(const rmw_node_t *, const char * service_name, size_t *);
rmw_ret_t rmw_get_gid_for_client(const rmw_client_t *, rmw_gid_t *);
rmw_ret_t rmw_take_dynamic_message(
  const rmw_subscription_t *, rosidl_dynamic_typesupport_dynamic_data_t *, bool * taken,
  rmw_subscription_allocation_t *);
rmw_ret_t rmw_take_dynamic_message_with_info(
  const rmw_subscription_t *, rosidl_dynamic_typesupport_dynamic_data_t *, bool * taken,
  rmw_message_info_t *, rmw_subscription_allocation_t *);
rmw_ret_t rmw_serialization_support_init(
  const char * serialization_lib_name, rcutils_allocator_t *,
  rosidl_dynamic_typesupport_serialization_support_t *);
bool rmw_event_type_is_supported(rmw_event_type_t);
#endif

#if 4 <= TSUJI_RMW_IS
rmw_ret_t rmw_get_clients_info_by_service(
  const rmw_node_t *, rcutils_allocator_t *, const char * service_name, bool no_mangle,
  rmw_service_endpoint_info_array_t *);
rmw_ret_t rmw_get_servers_info_by_service(
  const rmw_node_t *, rcutils_allocator_t *, const char * service_name, bool no_mangle,
  rmw_service_endpoint_info_array_t *);
#endif

#ifdef __cplusplus
}
#endif

#endif  // RMW_TSUJI_TEST_H

// Whether a C compiler sees in the headers of ROS 2, or in the one of this repository's own tests, the sizes, offsets,
// values and functions that a table says. It says so by compiling.
//
//   cc -fsyntax-only -x c -DTABLE='"jazzy.def"' -DTSUJI_RMW_JAZZY -I../tests/c check.h    (the header of the tests)
//   cc -fsyntax-only -x c -DTABLE='"jazzy.def"' -DROS_HEADERS -isystem... check.h         (ROS 2's own)
//   c++ -fsyntax-only -x c++ -DTABLE='"jazzy.def"' -DROS_HEADERS -isystem... check.h      (and what C++ has of its own)
//
// With ROSIDL_ONLY no header of rmw is included: for a table of which only what is of rosidl and rcutils is left.

#include <stddef.h>

// RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_NODE is one that rmw advises against.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#ifdef ROS_HEADERS
#include <rcutils/types/string_array.h>
#include <rcutils/types/uint8_array.h>
#include <rosidl_runtime_c/message_type_support_struct.h>
#include <rosidl_runtime_c/primitives_sequence.h>
#include <rosidl_runtime_c/service_type_support_struct.h>
#include <rosidl_runtime_c/string.h>
#include <rosidl_runtime_c/u16string.h>
#include <rosidl_typesupport_introspection_c/message_introspection.h>
#include <rosidl_typesupport_introspection_c/service_introspection.h>
#ifndef ROSIDL_ONLY
#include <rmw/domain_id.h>
#include <rmw/event.h>
#include <rmw/events_statuses/events_statuses.h>
#include <rmw/features.h>
#include <rmw/get_network_flow_endpoints.h>
#include <rmw/get_node_info_and_types.h>
#include <rmw/get_service_names_and_types.h>
#include <rmw/get_topic_endpoint_info.h>
#include <rmw/get_topic_names_and_types.h>
#include <rmw/init.h>
#include <rmw/init_options.h>
#include <rmw/message_sequence.h>
#include <rmw/names_and_types.h>
#include <rmw/network_flow_endpoint_array.h>
#include <rmw/qos_policy_kind.h>
#include <rmw/qos_profiles.h>
#include <rmw/ret_types.h>
#include <rmw/rmw.h>
#include <rmw/topic_endpoint_info_array.h>
#include <rmw/types.h>
#endif
#else
#include "rmw_tsuji_test.h"
#endif

#ifdef __cplusplus
// The tables of C++ are laid out as those of C.
#include <rosidl_typesupport_introspection_cpp/message_introspection.hpp>
#include <rosidl_typesupport_introspection_cpp/service_introspection.hpp>
#define rosidl_typesupport_introspection_c__MessageMember rosidl_typesupport_introspection_cpp::MessageMember
#define rosidl_typesupport_introspection_c__MessageMembers rosidl_typesupport_introspection_cpp::MessageMembers
#define rosidl_typesupport_introspection_c__ServiceMembers rosidl_typesupport_introspection_cpp::ServiceMembers
#define IS(what, text) static_assert(what, text);
#else
#define IS(what, text) _Static_assert(what, text);
#endif

#define SIZE(type, expect) IS(sizeof(type) == (expect), "size of " #type)
#define OFFSET(type, field, expect) IS(offsetof(type, field) == (expect), "offset of " #field " in " #type)
#define VALUE(name, expect) IS((name) == (expect), "value of " #name)
#define FUNCTION(name) IS(sizeof(&name) == sizeof(void *), #name)

#include TABLE

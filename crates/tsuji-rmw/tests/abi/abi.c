// Whether the C compiler sees in the headers of rmw, or in the one of this repository's own tests, the
// sizes, offsets and values that the declarations of this crate have. It says so by compiling.
//
//   cc -fsyntax-only -DTSUJI_RMW_JAZZY -DTSUJI_RMW_HEADERS -I... abi.c     (rmw's own)
//   cc -fsyntax-only -DTSUJI_RMW_JAZZY -I../c abi.c                        (rmw_tsuji_test.h)

#include <stddef.h>

// RMW_QOS_POLICY_LIVELINESS_MANUAL_BY_NODE is one that rmw advises against.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#ifdef TSUJI_RMW_HEADERS
#include <rcutils/types/string_array.h>
#include <rcutils/types/uint8_array.h>
#include <rmw/domain_id.h>
#include <rmw/event.h>
#include <rmw/events_statuses/events_statuses.h>
#include <rmw/features.h>
#include <rmw/init.h>
#include <rmw/init_options.h>
#include <rmw/message_sequence.h>
#include <rmw/names_and_types.h>
#include <rmw/network_flow_endpoint_array.h>
#include <rmw/qos_policy_kind.h>
#include <rmw/qos_profiles.h>
#include <rmw/ret_types.h>
#include <rmw/topic_endpoint_info_array.h>
#include <rmw/types.h>
#else
#include "rmw_tsuji_test.h"
#endif

#define SIZE(type, expect) _Static_assert(sizeof(type) == (expect), "size of " #type);
#define OFFSET(type, field, expect) \
  _Static_assert(offsetof(type, field) == (expect), "offset of " #field " in " #type);
#define VALUE(name, expect) _Static_assert((name) == (expect), "value of " #name);

#ifdef TSUJI_RMW_HUMBLE
#include "humble.def"
#else
#include "jazzy.def"
#endif

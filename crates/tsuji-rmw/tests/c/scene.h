// What every scenario stands on: the functions of librmw_tsuji.so, found by name as ROS 2's rmw_implementation finds
// them, a participant made in the order in which rcl makes it, and checks that end the process.
#ifndef SCENE_H_
#define SCENE_H_

#include "drive.h"
#include "rcutils/error_handling.h"

// A hang ends the process after so many seconds without a check that held.
#define HANG_SECONDS 60

// Every function that ROS 2's rmw_implementation looks up.
#if 2 <= TSUJI_RMW_IS
#define RMW_FUNCTIONS_SINCE_JAZZY(X)                                                                                   \
    X(count_clients) X(count_services) X(get_gid_for_client) X(serialization_support_init) X(take_dynamic_message)     \
    X(take_dynamic_message_with_info)
#else
#define RMW_FUNCTIONS_SINCE_JAZZY(X)
#endif
#define RMW_FUNCTIONS(X)                                                                                               \
    X(borrow_loaned_message) X(client_request_publisher_get_actual_qos)                                                \
    X(client_response_subscription_get_actual_qos) X(client_set_on_new_response_callback) X(compare_gids_equal)        \
    X(context_fini) X(count_publishers) X(count_subscribers) X(create_client) X(create_guard_condition)                \
    X(create_node) X(create_publisher) X(create_service) X(create_subscription) X(create_wait_set) X(deserialize)      \
    X(destroy_client) X(destroy_guard_condition) X(destroy_node) X(destroy_publisher) X(destroy_service)               \
    X(destroy_subscription) X(destroy_wait_set) X(event_set_callback) X(feature_supported)                             \
    X(fini_publisher_allocation) X(fini_subscription_allocation) X(get_client_names_and_types_by_node)                 \
    X(get_gid_for_publisher) X(get_implementation_identifier) X(get_node_names) X(get_node_names_with_enclaves)        \
    X(get_publisher_names_and_types_by_node) X(get_publishers_info_by_topic) X(get_serialization_format)               \
    X(get_serialized_message_size) X(get_service_names_and_types) X(get_service_names_and_types_by_node)               \
    X(get_subscriber_names_and_types_by_node) X(get_subscriptions_info_by_topic) X(get_topic_names_and_types)          \
    X(init) X(init_options_copy) X(init_options_fini) X(init_options_init) X(init_publisher_allocation)                \
    X(init_subscription_allocation) X(node_get_graph_guard_condition) X(publish) X(publish_loaned_message)             \
    X(publish_serialized_message) X(publisher_assert_liveliness) X(publisher_count_matched_subscriptions)              \
    X(publisher_event_init) X(publisher_get_actual_qos) X(publisher_get_network_flow_endpoints)                        \
    X(publisher_wait_for_all_acked) X(qos_profile_check_compatible) X(return_loaned_message_from_publisher)            \
    X(return_loaned_message_from_subscription) X(send_request) X(send_response) X(serialize)                           \
    X(service_request_subscription_get_actual_qos) X(service_response_publisher_get_actual_qos)                        \
    X(service_server_is_available) X(service_set_on_new_request_callback) X(set_log_severity) X(shutdown)              \
    X(subscription_count_matched_publishers) X(subscription_event_init) X(subscription_get_actual_qos)                 \
    X(subscription_get_content_filter) X(subscription_get_network_flow_endpoints)                                      \
    X(subscription_set_content_filter) X(subscription_set_on_new_message_callback) X(take) X(take_event)               \
    X(take_loaned_message) X(take_loaned_message_with_info) X(take_request) X(take_response) X(take_sequence)          \
    X(take_serialized_message) X(take_serialized_message_with_info) X(take_with_info) X(trigger_guard_condition)       \
    X(wait)                                                                                                            \
    RMW_FUNCTIONS_SINCE_JAZZY(X)

// Called as rmw.init(…), rmw.wait(…).
struct rmw_functions {
#define FIELD(NAME) __typeof__(&rmw_##NAME) NAME;
    RMW_FUNCTIONS(FIELD)
#undef FIELD
};
extern struct rmw_functions rmw;

// Ends the process with a message and what rmw said last.
_Noreturn void fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
// Called at each check that held: the hang is counted from here.
void alive(const char *file, int line);
// The same where a thread goes on and on, and the line of the main thread shall stay.
void alive_quietly(void);

#define FAIL(...) fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(CONDITION) ((CONDITION) ? alive(__FILE__, __LINE__) : FAIL("not so: %s", #CONDITION))
// A call that must return RMW_RET_OK.
#define OK(CALL) expect_return(__FILE__, __LINE__, #CALL, (CALL), RMW_RET_OK)
// A call that must return another code, and leave a message behind.
#define REFUSED(CODE, CALL) expect_return(__FILE__, __LINE__, #CALL, (CALL), CODE)
// A call that must fail, with whichever code.
#define NOT_OK(CALL) expect_failure(__FILE__, __LINE__, #CALL, (CALL))
// A call that must return NULL, and leave a message behind.
#define REFUSED_NULL(CALL) expect_null(__FILE__, __LINE__, #CALL, (CALL))
// A call that must return a pointer.
#define MADE(CALL) expect_made(__FILE__, __LINE__, #CALL, (CALL))
// Asks again and again, since nothing tells; a hang ends it.
#define UNTIL(CONDITION)                                                                                               \
    do {                                                                                                               \
        alive(__FILE__, __LINE__);                                                                                     \
        while (!(CONDITION)) {                                                                                         \
            pause_ms(1);                                                                                               \
        }                                                                                                              \
    } while (0)

void expect_return(const char *file, int line, const char *call, rmw_ret_t is, rmw_ret_t shall);
void expect_failure(const char *file, int line, const char *call, rmw_ret_t is);
void expect_null(const char *file, int line, const char *call, const void *is);
void *expect_made(const char *file, int line, const char *call, const void *is);

void pause_ms(unsigned milliseconds);
int64_t wall_ns(void);
double seconds_now(void);
// The same row of numbers in each run.
uint64_t dice(uint64_t *state);

// Arguments of the command line, NAME=VALUE.
const char *word(const char *name, const char *otherwise);
uint64_t number(const char *name, uint64_t otherwise);

struct participant {
    rmw_init_options_t options;
    rmw_context_t context;
    rmw_node_t *node;
};
// As rcl_init and rcl_node_init do.
void join(struct participant *own, const char *name, const char *namespace_);
void make_options(rmw_init_options_t *options);
void leave(struct participant *own);
// As rclcpp on Ctrl-C: the context is shut down while all its nodes and endpoints are there.
void shut_down(struct participant *own);
void clear_up(struct participant *own);

rmw_publisher_t *publisher(struct participant *own, const struct message_type *type, const char *topic,
                           rmw_qos_profile_t qos);
rmw_subscription_t *subscription(struct participant *own, const struct message_type *type, const char *topic,
                                 rmw_qos_profile_t qos);
rmw_client_t *client(struct participant *own, const char *name);
rmw_service_t *service(struct participant *own, const char *name);
size_t matched_subscriptions(const rmw_publisher_t *publisher);
size_t matched_publishers(const rmw_subscription_t *subscription);

rmw_qos_profile_t keep_last(size_t depth);
rmw_qos_profile_t keep_all(void);

// Publishes, again if the subscriptions have no room yet.
void publish(const rmw_publisher_t *publisher, const void *message);

// One of each at most. After wait_on, what is not ready is NULL.
struct awaited {
    const rmw_subscription_t *subscription;
    const rmw_guard_condition_t *guard;
    const rmw_service_t *service;
    const rmw_client_t *client;
    rmw_event_t *event;
};
// For ever if timeout_ns is negative. Gives whether something is ready.
bool wait_on(rmw_wait_set_t *set, struct awaited *awaited, int64_t timeout_ns);

void hex(char *text, const uint8_t *bytes, size_t count);

void names_free(rmw_names_and_types_t *names);
void endpoints_free(rmw_topic_endpoint_info_array_t *endpoints);

// Reads a line of the parent's; false when it wants the process to end.
bool told(void);
// Tells the parent something in between.
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The last line of a scenario.
void done(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The scenarios; which one runs is the second word of the command line.
#define SCENARIOS(X)                                                                                                   \
    X(symbols)                                                                                                         \
    X(talker)                                                                                                          \
    X(listener)                                                                                                        \
    X(waitset1000)                                                                                                     \
    X(lostwake)                                                                                                        \
    X(server)                                                                                                          \
    X(client)                                                                                                          \
    X(serialize)                                                                                                       \
    X(loaned)                                                                                                          \
    X(sequence)                                                                                                        \
    X(callback)                                                                                                        \
    X(events)                                                                                                          \
    X(beside)                                                                                                          \
    X(within)                                                                                                          \
    X(depth)                                                                                                           \
    X(graph)                                                                                                           \
    X(guest)                                                                                                           \
    X(wrong)
#define DECLARE(NAME) void scenario_##NAME(void);
SCENARIOS(DECLARE)
#undef DECLARE

#endif

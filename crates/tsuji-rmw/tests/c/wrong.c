// What rmw refuses, and with which code: null arguments, handles of another implementation, wrong names, wrong order.
// The codes are those that ROS 2's test_rmw_implementation expects.
#include "scene.h"

#include <stdio.h>
#include <string.h>

void scenario_symbols(void) {
    // That each is there was seen when the library was loaded.
#define COUNT(NAME) +1
    int functions = 0 RMW_FUNCTIONS(COUNT);
#undef COUNT
    CHECK(strcmp(rmw.get_implementation_identifier(), "rmw_tsuji") == 0);
    CHECK(strcmp(rmw.get_serialization_format(), "cdr") == 0);
    done("%d functions", functions);
}

static const char *const OTHER = "not-rmw_tsuji";

// The call with a handle that says to be of another implementation.
#define FOREIGN(HANDLE, CALL)                                                                                          \
    do {                                                                                                               \
        const char *own_identifier = (HANDLE)->implementation_identifier;                                              \
        (HANDLE)->implementation_identifier = OTHER;                                                                   \
        REFUSED(RMW_RET_INCORRECT_RMW_IMPLEMENTATION, CALL);                                                           \
        (HANDLE)->implementation_identifier = own_identifier;                                                          \
    } while (0)
#define FOREIGN_NULL(HANDLE, CALL)                                                                                     \
    do {                                                                                                               \
        const char *own_identifier = (HANDLE)->implementation_identifier;                                              \
        (HANDLE)->implementation_identifier = OTHER;                                                                   \
        REFUSED_NULL(CALL);                                                                                            \
        (HANDLE)->implementation_identifier = own_identifier;                                                          \
    } while (0)
#define INVALID(CALL) REFUSED(RMW_RET_INVALID_ARGUMENT, CALL)

static void wrong_start(void) {
    rcutils_allocator_t allocator = rcutils_get_default_allocator(), none;
    rmw_init_options_t options, copy;
    rmw_context_t context;
    memset(&none, 0, sizeof none);
    memset(&options, 0, sizeof options);
    memset(&copy, 0, sizeof copy);
    memset(&context, 0, sizeof context);
    INVALID(rmw.init_options_init(NULL, allocator));
    INVALID(rmw.init_options_init(&options, none));
    INVALID(rmw.init_options_fini(NULL));
    INVALID(rmw.init_options_fini(&options));
    INVALID(rmw.init_options_copy(&options, &copy));
    INVALID(rmw.init(&options, &context));
    make_options(&options);
    INVALID(rmw.init_options_init(&options, allocator));
    INVALID(rmw.init_options_copy(NULL, &copy));
    INVALID(rmw.init_options_copy(&options, NULL));
    FOREIGN(&options, rmw.init_options_copy(&options, &copy));
    OK(rmw.init_options_copy(&options, &copy));
    CHECK(strcmp(copy.enclave, options.enclave) == 0 && copy.enclave != options.enclave);
    INVALID(rmw.init_options_copy(&options, &copy));
    FOREIGN(&copy, rmw.init_options_fini(&copy));
    OK(rmw.init_options_fini(&copy));
    INVALID(rmw.init_options_fini(&copy));

    INVALID(rmw.init(NULL, &context));
    INVALID(rmw.init(&options, NULL));
    FOREIGN(&options, rmw.init(&options, &context));
    char *enclave = options.enclave;
    options.enclave = NULL;
    INVALID(rmw.init(&options, &context));
    options.enclave = enclave;
    INVALID(rmw.shutdown(NULL));
    INVALID(rmw.shutdown(&context));
    INVALID(rmw.context_fini(NULL));
    INVALID(rmw.context_fini(&context));
    REFUSED_NULL(rmw.create_node(&context, "node", "/"));
    REFUSED_NULL(rmw.create_guard_condition(NULL));
    REFUSED_NULL(rmw.create_wait_set(NULL, 1));

    OK(rmw.init(&options, &context));
    INVALID(rmw.init(&options, &context));
    // Before it is shut down.
    INVALID(rmw.context_fini(&context));
    FOREIGN(&context, rmw.shutdown(&context));
    OK(rmw.shutdown(&context));
    OK(rmw.shutdown(&context));
    REFUSED_NULL(rmw.create_node(&context, "node", "/"));
    FOREIGN(&context, rmw.context_fini(&context));
    OK(rmw.context_fini(&context));
    INVALID(rmw.context_fini(&context));
    // The options serve again.
    memset(&context, 0, sizeof context);
    OK(rmw.init(&options, &context));
    OK(rmw.shutdown(&context));
    OK(rmw.context_fini(&context));
    OK(rmw.init_options_fini(&options));
}

static void wrong_nodes(struct participant *own) {
    REFUSED_NULL(rmw.create_node(NULL, "node", "/"));
    REFUSED_NULL(rmw.create_node(&own->context, NULL, "/"));
    REFUSED_NULL(rmw.create_node(&own->context, "node", NULL));
    REFUSED_NULL(rmw.create_node(&own->context, "", "/"));
    REFUSED_NULL(rmw.create_node(&own->context, "two words", "/"));
    REFUSED_NULL(rmw.create_node(&own->context, "node", "no_slash"));
    REFUSED_NULL(rmw.create_node(&own->context, "node", "/two words"));
    FOREIGN_NULL(&own->context, rmw.create_node(&own->context, "node", "/"));
    INVALID(rmw.destroy_node(NULL));
    FOREIGN(own->node, rmw.destroy_node(own->node));
    REFUSED_NULL(rmw.node_get_graph_guard_condition(NULL));
    FOREIGN_NULL(own->node, rmw.node_get_graph_guard_condition(own->node));
}

static void wrong_publishers(struct participant *own) {
    rmw_node_t *node = own->node;
    const rosidl_message_type_support_t *support = TEXT.support();
    rosidl_message_type_support_t strange = *support;
    strange.typesupport_identifier = "not-a-typesupport";
    rmw_qos_profile_t qos = keep_last(10), unknown = qos;
    unknown.reliability = 3; // RMW_QOS_POLICY_RELIABILITY_UNKNOWN
    rmw_publisher_options_t options;
    memset(&options, 0, sizeof options);
    REFUSED_NULL(rmw.create_publisher(NULL, support, "/topic", &qos, &options));
    REFUSED_NULL(rmw.create_publisher(node, NULL, "/topic", &qos, &options));
    REFUSED_NULL(rmw.create_publisher(node, &strange, "/topic", &qos, &options));
    REFUSED_NULL(rmw.create_publisher(node, support, NULL, &qos, &options));
    REFUSED_NULL(rmw.create_publisher(node, support, "", &qos, &options));
    REFUSED_NULL(rmw.create_publisher(node, support, "/two words", &qos, &options));
    REFUSED_NULL(rmw.create_publisher(node, support, "relative", &qos, &options));
    REFUSED_NULL(rmw.create_publisher(node, support, "/topic", NULL, &options));
    REFUSED_NULL(rmw.create_publisher(node, support, "/topic", &unknown, &options));
    REFUSED_NULL(rmw.create_publisher(node, support, "/topic", &qos, NULL));
    FOREIGN_NULL(node, rmw.create_publisher(node, support, "/topic", &qos, &options));

    rmw_publisher_t *out = publisher(own, &TEXT, "/topic", qos);
    void *text = TEXT.make(), *loan = NULL;
    size_t count;
    rmw_gid_t gid, other;
    bool equal;
    rmw_event_t event;
    rmw_serialized_message_t bytes = rcutils_get_zero_initialized_uint8_array();
    memset(&event, 0, sizeof event);
    INVALID(rmw.publish(NULL, text, NULL));
    INVALID(rmw.publish(out, NULL, NULL));
    FOREIGN(out, rmw.publish(out, text, NULL));
    INVALID(rmw.publish_serialized_message(NULL, &bytes, NULL));
    INVALID(rmw.publish_serialized_message(out, NULL, NULL));
    FOREIGN(out, rmw.publish_serialized_message(out, &bytes, NULL));
    INVALID(rmw.publisher_count_matched_subscriptions(NULL, &count));
    INVALID(rmw.publisher_count_matched_subscriptions(out, NULL));
    FOREIGN(out, rmw.publisher_count_matched_subscriptions(out, &count));
    rcutils_allocator_t allocator = rcutils_get_default_allocator();
    rmw_network_flow_endpoint_array_t flows = {0, NULL, NULL};
    INVALID(rmw.publisher_get_network_flow_endpoints(NULL, &allocator, &flows));
    INVALID(rmw.publisher_get_network_flow_endpoints(out, NULL, &flows));
    INVALID(rmw.publisher_get_network_flow_endpoints(out, &allocator, NULL));
    FOREIGN(out, rmw.publisher_get_network_flow_endpoints(out, &allocator, &flows));
    // The nodes here speak to no network.
    OK(rmw.publisher_get_network_flow_endpoints(out, &allocator, &flows));
    CHECK(flows.size == 0 && flows.network_flow_endpoint == NULL);
    flows.size = 1;
    REFUSED(RMW_RET_ERROR, rmw.publisher_get_network_flow_endpoints(out, &allocator, &flows));
    INVALID(rmw.publisher_get_actual_qos(NULL, &qos));
    INVALID(rmw.publisher_get_actual_qos(out, NULL));
    FOREIGN(out, rmw.publisher_get_actual_qos(out, &qos));
    INVALID(rmw.publisher_wait_for_all_acked(NULL, (rmw_time_t){0, 0}));
    INVALID(rmw.publisher_assert_liveliness(NULL));
    FOREIGN(out, rmw.publisher_assert_liveliness(out));
    INVALID(rmw.get_gid_for_publisher(NULL, &gid));
    INVALID(rmw.get_gid_for_publisher(out, NULL));
    FOREIGN(out, rmw.get_gid_for_publisher(out, &gid));
    OK(rmw.get_gid_for_publisher(out, &gid));
    other = gid;
    INVALID(rmw.compare_gids_equal(NULL, &other, &equal));
    INVALID(rmw.compare_gids_equal(&gid, NULL, &equal));
    INVALID(rmw.compare_gids_equal(&gid, &other, NULL));
    FOREIGN(&gid, rmw.compare_gids_equal(&gid, &other, &equal));
    FOREIGN(&other, rmw.compare_gids_equal(&gid, &other, &equal));
    INVALID(rmw.publisher_event_init(NULL, out, RMW_EVENT_LIVELINESS_LOST));
    INVALID(rmw.publisher_event_init(&event, NULL, RMW_EVENT_LIVELINESS_LOST));
    INVALID(rmw.borrow_loaned_message(NULL, support, &loan));

    INVALID(rmw.destroy_publisher(NULL, out));
    INVALID(rmw.destroy_publisher(node, NULL));
    FOREIGN(node, rmw.destroy_publisher(node, out));
    FOREIGN(out, rmw.destroy_publisher(node, out));
    OK(rmw.destroy_publisher(node, out));

    // What can be lent.
    rmw_publisher_t *lends = publisher(own, &NUMBER, "/numbers", qos);
    CHECK(lends->can_loan_messages);
    INVALID(rmw.borrow_loaned_message(lends, NULL, &loan));
    INVALID(rmw.borrow_loaned_message(lends, NUMBER.support(), NULL));
    FOREIGN(lends, rmw.borrow_loaned_message(lends, NUMBER.support(), &loan));
    INVALID(rmw.publish_loaned_message(lends, NULL, NULL));
    INVALID(rmw.publish_loaned_message(NULL, text, NULL));
    INVALID(rmw.return_loaned_message_from_publisher(lends, NULL));
    INVALID(rmw.return_loaned_message_from_publisher(NULL, text));
    // Memory that was never lent.
    NOT_OK(rmw.publish_loaned_message(lends, text, NULL));
    OK(rmw.destroy_publisher(node, lends));
    TEXT.drop(text);
}

static void wrong_subscriptions(struct participant *own) {
    rmw_node_t *node = own->node;
    const rosidl_message_type_support_t *support = TEXT.support();
    rosidl_message_type_support_t strange = *support;
    strange.typesupport_identifier = "not-a-typesupport";
    rmw_qos_profile_t qos = keep_last(10), unknown = qos;
    unknown.durability = 3; // RMW_QOS_POLICY_DURABILITY_UNKNOWN
    rmw_subscription_options_t options;
    memset(&options, 0, sizeof options);
    REFUSED_NULL(rmw.create_subscription(NULL, support, "/topic", &qos, &options));
    REFUSED_NULL(rmw.create_subscription(node, NULL, "/topic", &qos, &options));
    REFUSED_NULL(rmw.create_subscription(node, &strange, "/topic", &qos, &options));
    REFUSED_NULL(rmw.create_subscription(node, support, NULL, &qos, &options));
    REFUSED_NULL(rmw.create_subscription(node, support, "", &qos, &options));
    REFUSED_NULL(rmw.create_subscription(node, support, "/two words", &qos, &options));
    REFUSED_NULL(rmw.create_subscription(node, support, "relative", &qos, &options));
    REFUSED_NULL(rmw.create_subscription(node, support, "/topic", NULL, &options));
    REFUSED_NULL(rmw.create_subscription(node, support, "/topic", &unknown, &options));
    REFUSED_NULL(rmw.create_subscription(node, support, "/topic", &qos, NULL));
    FOREIGN_NULL(node, rmw.create_subscription(node, support, "/topic", &qos, &options));

    rmw_subscription_t *in = subscription(own, &TEXT, "/topic", qos);
    void *text = TEXT.make(), *loan = NULL;
    bool taken;
    size_t count;
    rmw_message_info_t info;
    rmw_event_t event;
    rmw_serialized_message_t bytes = rcutils_get_zero_initialized_uint8_array();
    memset(&event, 0, sizeof event);
    INVALID(rmw.take(NULL, text, &taken, NULL));
    INVALID(rmw.take(in, NULL, &taken, NULL));
    INVALID(rmw.take(in, text, NULL, NULL));
    FOREIGN(in, rmw.take(in, text, &taken, NULL));
    INVALID(rmw.take_with_info(NULL, text, &taken, &info, NULL));
    INVALID(rmw.take_with_info(in, NULL, &taken, &info, NULL));
    INVALID(rmw.take_with_info(in, text, NULL, &info, NULL));
    INVALID(rmw.take_with_info(in, text, &taken, NULL, NULL));
    FOREIGN(in, rmw.take_with_info(in, text, &taken, &info, NULL));
    INVALID(rmw.take_serialized_message(NULL, &bytes, &taken, NULL));
    INVALID(rmw.take_serialized_message(in, NULL, &taken, NULL));
    INVALID(rmw.take_serialized_message(in, &bytes, NULL, NULL));
    INVALID(rmw.take_serialized_message_with_info(in, &bytes, &taken, NULL, NULL));
    FOREIGN(in, rmw.take_serialized_message(in, &bytes, &taken, NULL));
    INVALID(rmw.take_loaned_message(NULL, &loan, &taken, NULL));
    INVALID(rmw.subscription_count_matched_publishers(NULL, &count));
    INVALID(rmw.subscription_count_matched_publishers(in, NULL));
    FOREIGN(in, rmw.subscription_count_matched_publishers(in, &count));
    rcutils_allocator_t allocator = rcutils_get_default_allocator();
    rmw_network_flow_endpoint_array_t flows = {0, NULL, NULL};
    INVALID(rmw.subscription_get_network_flow_endpoints(NULL, &allocator, &flows));
    INVALID(rmw.subscription_get_network_flow_endpoints(in, NULL, &flows));
    INVALID(rmw.subscription_get_network_flow_endpoints(in, &allocator, NULL));
    FOREIGN(in, rmw.subscription_get_network_flow_endpoints(in, &allocator, &flows));
    OK(rmw.subscription_get_network_flow_endpoints(in, &allocator, &flows));
    CHECK(flows.size == 0 && flows.network_flow_endpoint == NULL);
    INVALID(rmw.subscription_get_actual_qos(NULL, &qos));
    INVALID(rmw.subscription_get_actual_qos(in, NULL));
    FOREIGN(in, rmw.subscription_get_actual_qos(in, &qos));
    INVALID(rmw.subscription_set_on_new_message_callback(NULL, NULL, NULL));
    INVALID(rmw.subscription_event_init(NULL, in, RMW_EVENT_LIVELINESS_CHANGED));
    INVALID(rmw.subscription_event_init(&event, NULL, RMW_EVENT_LIVELINESS_CHANGED));
    INVALID(rmw.take_event(NULL, &info, &taken));
    TEXT.drop(text);

    INVALID(rmw.destroy_subscription(NULL, in));
    INVALID(rmw.destroy_subscription(node, NULL));
    FOREIGN(node, rmw.destroy_subscription(node, in));
    FOREIGN(in, rmw.destroy_subscription(node, in));
    OK(rmw.destroy_subscription(node, in));
}

static void wrong_services(struct participant *own) {
    rmw_node_t *node = own->node;
    const rosidl_service_type_support_t *support = add_two_ints();
    rosidl_service_type_support_t strange = *support;
    strange.typesupport_identifier = "not-a-typesupport";
    rmw_qos_profile_t qos = keep_last(10);
    REFUSED_NULL(rmw.create_client(NULL, support, "/service", &qos));
    REFUSED_NULL(rmw.create_client(node, NULL, "/service", &qos));
    REFUSED_NULL(rmw.create_client(node, &strange, "/service", &qos));
    REFUSED_NULL(rmw.create_client(node, support, NULL, &qos));
    REFUSED_NULL(rmw.create_client(node, support, "", &qos));
    REFUSED_NULL(rmw.create_client(node, support, "/two words", &qos));
    REFUSED_NULL(rmw.create_client(node, support, "relative", &qos));
    REFUSED_NULL(rmw.create_client(node, support, "/service", NULL));
    FOREIGN_NULL(node, rmw.create_client(node, support, "/service", &qos));
    REFUSED_NULL(rmw.create_service(NULL, support, "/service", &qos));
    REFUSED_NULL(rmw.create_service(node, NULL, "/service", &qos));
    REFUSED_NULL(rmw.create_service(node, &strange, "/service", &qos));
    REFUSED_NULL(rmw.create_service(node, support, NULL, &qos));
    REFUSED_NULL(rmw.create_service(node, support, "", &qos));
    REFUSED_NULL(rmw.create_service(node, support, "/two words", &qos));
    REFUSED_NULL(rmw.create_service(node, support, "relative", &qos));
    REFUSED_NULL(rmw.create_service(node, support, "/service", NULL));
    FOREIGN_NULL(node, rmw.create_service(node, support, "/service", &qos));

    rmw_client_t *asks = client(own, "/service");
    rmw_service_t *answers = service(own, "/service");
    void *request = REQUEST.make(), *response = RESPONSE.make();
    int64_t sent;
    bool taken, is_there;
    rmw_service_info_t info;
    memset(&info, 0, sizeof info);
    INVALID(rmw.send_request(NULL, request, &sent));
    INVALID(rmw.send_request(asks, NULL, &sent));
    INVALID(rmw.send_request(asks, request, NULL));
    FOREIGN(asks, rmw.send_request(asks, request, &sent));
    INVALID(rmw.take_response(NULL, &info, response, &taken));
    INVALID(rmw.take_response(asks, NULL, response, &taken));
    INVALID(rmw.take_response(asks, &info, NULL, &taken));
    INVALID(rmw.take_response(asks, &info, response, NULL));
    FOREIGN(asks, rmw.take_response(asks, &info, response, &taken));
    INVALID(rmw.take_request(NULL, &info, request, &taken));
    INVALID(rmw.take_request(answers, NULL, request, &taken));
    INVALID(rmw.take_request(answers, &info, NULL, &taken));
    INVALID(rmw.take_request(answers, &info, request, NULL));
    FOREIGN(answers, rmw.take_request(answers, &info, request, &taken));
    INVALID(rmw.send_response(NULL, &info.request_id, response));
    INVALID(rmw.send_response(answers, NULL, response));
    INVALID(rmw.send_response(answers, &info.request_id, NULL));
    FOREIGN(answers, rmw.send_response(answers, &info.request_id, response));
    REFUSED(RMW_RET_ERROR, rmw.service_server_is_available(NULL, asks, &is_there));
    REFUSED(RMW_RET_ERROR, rmw.service_server_is_available(node, NULL, &is_there));
    REFUSED(RMW_RET_ERROR, rmw.service_server_is_available(node, asks, NULL));
    FOREIGN(asks, rmw.service_server_is_available(node, asks, &is_there));
    // An answer to a question that nobody asked is lost or refused, and nothing else.
    rmw_ret_t is = rmw.send_response(answers, &info.request_id, response);
    CHECK(is == RMW_RET_OK || is == RMW_RET_ERROR);
    rcutils_reset_error();
    OK(rmw.take_response(asks, &info, response, &taken));
    CHECK(!taken);
    REQUEST.drop(request);
    RESPONSE.drop(response);

    INVALID(rmw.destroy_client(NULL, asks));
    INVALID(rmw.destroy_client(node, NULL));
    FOREIGN(node, rmw.destroy_client(node, asks));
    FOREIGN(asks, rmw.destroy_client(node, asks));
    OK(rmw.destroy_client(node, asks));
    INVALID(rmw.destroy_service(NULL, answers));
    INVALID(rmw.destroy_service(node, NULL));
    FOREIGN(node, rmw.destroy_service(node, answers));
    FOREIGN(answers, rmw.destroy_service(node, answers));
    OK(rmw.destroy_service(node, answers));
}

static void wrong_waits(struct participant *own) {
    rmw_time_t at_once = {0, 0}, soon = {0, 1000000};
    rmw_guard_condition_t *guard = MADE(rmw.create_guard_condition(&own->context));
    rmw_wait_set_t *set = MADE(rmw.create_wait_set(&own->context, 1));
    FOREIGN_NULL(&own->context, rmw.create_guard_condition(&own->context));
    FOREIGN_NULL(&own->context, rmw.create_wait_set(&own->context, 1));
    INVALID(rmw.trigger_guard_condition(NULL));
    FOREIGN(guard, rmw.trigger_guard_condition(guard));
    INVALID(rmw.wait(NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    FOREIGN(set, rmw.wait(NULL, NULL, NULL, NULL, NULL, set, &at_once));
    // Nothing to wait for is not wrong.
    REFUSED(RMW_RET_TIMEOUT, rmw.wait(NULL, NULL, NULL, NULL, NULL, set, &at_once));
    REFUSED(RMW_RET_TIMEOUT, rmw.wait(NULL, NULL, NULL, NULL, NULL, set, &soon));
    REFUSED(RMW_RET_ERROR, rmw.destroy_wait_set(NULL));
    FOREIGN(set, rmw.destroy_wait_set(set));
    OK(rmw.destroy_wait_set(set));
    INVALID(rmw.destroy_guard_condition(NULL));
    FOREIGN(guard, rmw.destroy_guard_condition(guard));
    OK(rmw.destroy_guard_condition(guard));
}

static void wrong_graph(struct participant *own) {
    rmw_node_t *node = own->node;
    rcutils_allocator_t allocator = rcutils_get_default_allocator(), none;
    rcutils_string_array_t names = rcutils_get_zero_initialized_string_array(), spaces = names, full = names;
    rmw_names_and_types_t types, full_types;
    rmw_topic_endpoint_info_array_t endpoints;
    size_t count;
    memset(&none, 0, sizeof none);
    memset(&types, 0, sizeof types);
    memset(&full_types, 0, sizeof full_types);
    memset(&endpoints, 0, sizeof endpoints);
    CHECK(rcutils_string_array_init(&full, 1, &allocator) == RCUTILS_RET_OK);
    full_types.names = full;
    INVALID(rmw.get_node_names(NULL, &names, &spaces));
    INVALID(rmw.get_node_names(node, NULL, &spaces));
    INVALID(rmw.get_node_names(node, &names, NULL));
    INVALID(rmw.get_node_names(node, &full, &spaces));
    INVALID(rmw.get_node_names(node, &names, &full));
    FOREIGN(node, rmw.get_node_names(node, &names, &spaces));
    INVALID(rmw.get_node_names_with_enclaves(node, &names, &spaces, NULL));
    INVALID(rmw.get_node_names_with_enclaves(node, &names, &spaces, &full));
    INVALID(rmw.get_topic_names_and_types(NULL, &allocator, false, &types));
    INVALID(rmw.get_topic_names_and_types(node, NULL, false, &types));
    INVALID(rmw.get_topic_names_and_types(node, &none, false, &types));
    INVALID(rmw.get_topic_names_and_types(node, &allocator, false, NULL));
    INVALID(rmw.get_topic_names_and_types(node, &allocator, false, &full_types));
    FOREIGN(node, rmw.get_topic_names_and_types(node, &allocator, false, &types));
    INVALID(rmw.get_service_names_and_types(NULL, &allocator, &types));
    INVALID(rmw.get_service_names_and_types(node, &none, &types));
    FOREIGN(node, rmw.get_service_names_and_types(node, &allocator, &types));
    INVALID(rmw.get_publisher_names_and_types_by_node(NULL, &allocator, "node", "/", false, &types));
    INVALID(rmw.get_publisher_names_and_types_by_node(node, &allocator, NULL, "/", false, &types));
    INVALID(rmw.get_publisher_names_and_types_by_node(node, &allocator, "two words", "/", false, &types));
    INVALID(rmw.get_publisher_names_and_types_by_node(node, &allocator, "node", NULL, false, &types));
    INVALID(rmw.get_publisher_names_and_types_by_node(node, &allocator, "node", "no_slash", false, &types));
    FOREIGN(node, rmw.get_publisher_names_and_types_by_node(node, &allocator, "node", "/", false, &types));
    INVALID(rmw.count_publishers(NULL, "/topic", &count));
    INVALID(rmw.count_publishers(node, NULL, &count));
    INVALID(rmw.count_publishers(node, "two words", &count));
    INVALID(rmw.count_publishers(node, "/topic", NULL));
    FOREIGN(node, rmw.count_publishers(node, "/topic", &count));
    INVALID(rmw.count_subscribers(NULL, "/topic", &count));
    INVALID(rmw.count_subscribers(node, "two words", &count));
    FOREIGN(node, rmw.count_subscribers(node, "/topic", &count));
    INVALID(rmw.get_publishers_info_by_topic(NULL, &allocator, "/topic", false, &endpoints));
    INVALID(rmw.get_publishers_info_by_topic(node, NULL, "/topic", false, &endpoints));
    INVALID(rmw.get_publishers_info_by_topic(node, &allocator, NULL, false, &endpoints));
    INVALID(rmw.get_publishers_info_by_topic(node, &allocator, "/topic", false, NULL));
    FOREIGN(node, rmw.get_publishers_info_by_topic(node, &allocator, "/topic", false, &endpoints));
    CHECK(rcutils_string_array_fini(&full) == RCUTILS_RET_OK);
}

static void wrong_bytes(void) {
    const rosidl_message_type_support_t *support = TEXT.support();
    rosidl_message_type_support_t strange = *support;
    strange.typesupport_identifier = "not-a-typesupport";
    void *text = TEXT.make();
    rcutils_allocator_t allocator = rcutils_get_default_allocator();
    rmw_serialized_message_t bytes = rcutils_get_zero_initialized_uint8_array();
    CHECK(rcutils_uint8_array_init(&bytes, 0, &allocator) == RCUTILS_RET_OK);
    text_set(text, "words");
    NOT_OK(rmw.serialize(text, &strange, &bytes));
    OK(rmw.serialize(text, support, &bytes));
    NOT_OK(rmw.deserialize(&bytes, &strange, text));
    // No header of CDR; a length beyond everything; bytes that are none.
    uint8_t kept[4];
    memcpy(kept, bytes.buffer, 4);
    bytes.buffer[1] = 0x77;
    NOT_OK(rmw.deserialize(&bytes, support, text));
    memcpy(bytes.buffer, kept, 4);
    memset(bytes.buffer + 4, 0xff, 4);
    NOT_OK(rmw.deserialize(&bytes, support, text));
    // The message is as usable as before.
    text_set(text, "still");
    CHECK(strcmp(text_get(text), "still") == 0);
    TEXT.drop(text);
    CHECK(rcutils_uint8_array_fini(&bytes) == RCUTILS_RET_OK);
}

// What was made before the context was shut down can be used, waited for and destroyed after, as rclcpp does.
static void after_the_end(void) {
    struct participant own;
    join(&own, "late", "/");
    rmw_publisher_t *out = publisher(&own, &TEXT, "/late", keep_last(1));
    rmw_subscription_t *in = subscription(&own, &TEXT, "/late", keep_last(1));
    rmw_guard_condition_t *guard = MADE(rmw.create_guard_condition(&own.context));
    rmw_wait_set_t *set = MADE(rmw.create_wait_set(&own.context, 2));
    void *text = TEXT.make();
    bool taken = true;
    shut_down(&own);
    OK(rmw.trigger_guard_condition(guard));
    struct awaited awaited = {.subscription = in, .guard = guard};
    CHECK(wait_on(set, &awaited, -1) && awaited.guard);
    // Whether it still carries is nobody's promise.
    rmw_ret_t is = rmw.publish(out, text, NULL);
    CHECK(is == RMW_RET_OK || is == RMW_RET_ERROR);
    rcutils_reset_error();
    is = rmw.take(in, text, &taken, NULL);
    CHECK(is == RMW_RET_OK || is == RMW_RET_ERROR);
    rcutils_reset_error();
    TEXT.drop(text);
    OK(rmw.destroy_wait_set(set));
    OK(rmw.destroy_guard_condition(guard));
    OK(rmw.destroy_subscription(own.node, in));
    OK(rmw.destroy_publisher(own.node, out));
    clear_up(&own);
}

void scenario_wrong(void) {
    wrong_start();
    struct participant own;
    join(&own, "wrong", "/");
    wrong_nodes(&own);
    wrong_publishers(&own);
    wrong_subscriptions(&own);
    wrong_services(&own);
    wrong_waits(&own);
    wrong_graph(&own);
    wrong_bytes();
    leave(&own);
    after_the_end();
    done("refused with the right codes");
}

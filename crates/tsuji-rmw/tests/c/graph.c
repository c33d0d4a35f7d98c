// What a process is told of the others: names, types, counts, endpoints, and that something has changed.
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The other process.
void scenario_guest(void) {
    struct participant own;
    join(&own, "guest", "/inn");
    rmw_publisher_t *menu = publisher(&own, &TEXT, "/inn/menu", keep_last(7));
    rmw_subscription_t *orders = subscription(&own, &IMAGE, "/inn/orders", keep_last(3));
    rmw_service_t *add = service(&own, "/inn/add");
    rmw_client_t *sum = client(&own, "/inn/sum");
    tell("here");
    while (told()) {
    }
    OK(rmw.destroy_client(own.node, sum));
    OK(rmw.destroy_service(own.node, add));
    OK(rmw.destroy_subscription(own.node, orders));
    OK(rmw.destroy_publisher(own.node, menu));
    leave(&own);
    done("came and went");
}

static size_t count_of(rmw_ret_t (*count)(const rmw_node_t *, const char *, size_t *), const rmw_node_t *node,
                       const char *topic) {
    size_t is = SIZE_MAX;
    OK(count(node, topic, &is));
    return is;
}

static size_t nodes_called(const rmw_node_t *node, const char *name, const char *namespace_) {
    rcutils_string_array_t names = rcutils_get_zero_initialized_string_array(), namespaces = names, enclaves = names;
    OK(rmw.get_node_names_with_enclaves(node, &names, &namespaces, &enclaves));
    CHECK(names.size == namespaces.size && names.size == enclaves.size);
    size_t count = 0;
    for (size_t i = 0; i < names.size; i++) {
        count += strcmp(names.data[i], name) == 0 && strcmp(namespaces.data[i], namespace_) == 0;
        CHECK(strcmp(enclaves.data[i], "/") == 0);
    }
    CHECK(rcutils_string_array_fini(&names) == RCUTILS_RET_OK);
    CHECK(rcutils_string_array_fini(&namespaces) == RCUTILS_RET_OK);
    CHECK(rcutils_string_array_fini(&enclaves) == RCUTILS_RET_OK);

    OK(rmw.get_node_names(node, &names, &namespaces));
    size_t again = 0;
    for (size_t i = 0; i < names.size; i++) {
        again += strcmp(names.data[i], name) == 0 && strcmp(namespaces.data[i], namespace_) == 0;
    }
    CHECK(rcutils_string_array_fini(&names) == RCUTILS_RET_OK);
    CHECK(rcutils_string_array_fini(&namespaces) == RCUTILS_RET_OK);
    return again == count ? count : SIZE_MAX;
}

// Whether the name is there with just the type; frees the names.
static bool has(rmw_names_and_types_t *names, const char *name, const char *type) {
    bool is = false;
    for (size_t i = 0; i < names->names.size; i++) {
        if (strcmp(names->names.data[i], name) == 0) {
            if (names->types[i].size != 1 || strcmp(names->types[i].data[0], type) != 0) {
                FAIL("%s is of %zu types, the first of them %s", name, names->types[i].size,
                     names->types[i].size ? names->types[i].data[0] : "-");
            }
            is = true;
        }
    }
    names_free(names);
    return is;
}

static bool guest_is_whole(const rmw_node_t *node) {
    rcutils_allocator_t allocator = rcutils_get_default_allocator();
    rmw_names_and_types_t names;
    memset(&names, 0, sizeof names);
    if (nodes_called(node, "guest", "/inn") != 1 || count_of(rmw.count_publishers, node, "/inn/menu") != 1 ||
        count_of(rmw.count_subscribers, node, "/inn/orders") != 1) {
        return false;
    }
    OK(rmw.get_service_names_and_types_by_node(node, &allocator, "guest", "/inn", &names));
    if (!has(&names, "/inn/add", "example_interfaces/srv/AddTwoInts")) {
        return false;
    }
    OK(rmw.get_client_names_and_types_by_node(node, &allocator, "guest", "/inn", &names));
    return has(&names, "/inn/sum", "example_interfaces/srv/AddTwoInts");
}

static bool guest_is_gone(const rmw_node_t *node) {
    return nodes_called(node, "guest", "/inn") == 0 && count_of(rmw.count_publishers, node, "/inn/menu") == 0 &&
           count_of(rmw.count_subscribers, node, "/inn/orders") == 0;
}

static void check_endpoint(rmw_topic_endpoint_info_array_t *endpoints, const char *type, rmw_endpoint_type_t kind) {
    CHECK(endpoints->size == 1);
    const rmw_topic_endpoint_info_t *is = &endpoints->info_array[0];
    CHECK(strcmp(is->node_name, "guest") == 0);
    CHECK(strcmp(is->node_namespace, "/inn") == 0);
    CHECK(strcmp(is->topic_type, type) == 0);
    CHECK(is->endpoint_type == kind);
    CHECK(is->qos_profile.reliability == RMW_QOS_POLICY_RELIABILITY_RELIABLE);
    CHECK(is->qos_profile.durability == RMW_QOS_POLICY_DURABILITY_VOLATILE);
    endpoints_free(endpoints);
}

// While the guest is there.
static void check_guest(const rmw_node_t *node) {
    rcutils_allocator_t allocator = rcutils_get_default_allocator();
    rmw_names_and_types_t names;
    memset(&names, 0, sizeof names);
    OK(rmw.get_publisher_names_and_types_by_node(node, &allocator, "guest", "/inn", false, &names));
    CHECK(has(&names, "/inn/menu", TEXT.name));
    OK(rmw.get_subscriber_names_and_types_by_node(node, &allocator, "guest", "/inn", false, &names));
    CHECK(has(&names, "/inn/orders", IMAGE.name));
    OK(rmw.get_topic_names_and_types(node, &allocator, false, &names));
    CHECK(has(&names, "/inn/menu", TEXT.name));
    OK(rmw.get_topic_names_and_types(node, &allocator, false, &names));
    CHECK(has(&names, "/inn/orders", IMAGE.name));
    // Those of services are no topics.
    OK(rmw.get_topic_names_and_types(node, &allocator, false, &names));
    for (size_t i = 0; i < names.names.size; i++) {
        CHECK(strstr(names.names.data[i], "add") == NULL && strstr(names.names.data[i], "sum") == NULL);
    }
    names_free(&names);
    OK(rmw.get_service_names_and_types(node, &allocator, &names));
    CHECK(has(&names, "/inn/add", "example_interfaces/srv/AddTwoInts"));

    rmw_topic_endpoint_info_array_t endpoints;
    memset(&endpoints, 0, sizeof endpoints);
    OK(rmw.get_publishers_info_by_topic(node, &allocator, "/inn/menu", false, &endpoints));
    check_endpoint(&endpoints, TEXT.name, RMW_ENDPOINT_PUBLISHER);
    OK(rmw.get_subscriptions_info_by_topic(node, &allocator, "/inn/orders", false, &endpoints));
    check_endpoint(&endpoints, IMAGE.name, RMW_ENDPOINT_SUBSCRIPTION);
    OK(rmw.get_publishers_info_by_topic(node, &allocator, "/inn/nothing", false, &endpoints));
    CHECK(endpoints.size == 0);
    REFUSED(RMW_RET_NODE_NAME_NON_EXISTENT,
            rmw.get_publisher_names_and_types_by_node(node, &allocator, "nobody", "/inn", false, &names));
    REFUSED(RMW_RET_NODE_NAME_NON_EXISTENT,
            rmw.get_client_names_and_types_by_node(node, &allocator, "guest", "/elsewhere", &names));
}

// Nothing but the graph guard condition wakes it: a change that is not told hangs.
static void wait_for(rmw_wait_set_t *set, const rmw_node_t *node, bool (*is_so)(const rmw_node_t *)) {
    const rmw_guard_condition_t *changed = rmw.node_get_graph_guard_condition(node);
    CHECK(changed != NULL);
    while (!is_so(node)) {
        // Where the condition is never met, the graph does not change for ever either: so the hang is seen.
        struct awaited awaited = {.guard = changed};
        wait_on(set, &awaited, -1);
    }
}

void scenario_graph(void) {
    struct participant own;
    join(&own, "host", "/");
    const rmw_node_t *node = own.node;
    rmw_wait_set_t *set = MADE(rmw.create_wait_set(&own.context, 1));
    rmw_client_t *asks = client(&own, "/inn/add");
    bool is_there = true;

    CHECK(nodes_called(node, "host", "/") == 1);
    OK(rmw.service_server_is_available(node, asks, &is_there));
    CHECK(!is_there);
    // A node of this process is told too, and is in no other context's way.
    rmw_node_t *second = MADE(rmw.create_node(&own.context, "second", "/deep/er"));
    UNTIL(nodes_called(node, "second", "/deep/er") == 1);
    OK(rmw.destroy_node(second));
    UNTIL(nodes_called(node, "second", "/deep/er") == 0);

    // Each is started and ended by the parent: the first in good order, the second killed.
    for (int visit = 1; visit <= 2; visit++) {
        tell("ready %d", visit);
        wait_for(set, node, guest_is_whole);
        check_guest(node);
        UNTIL(rmw.service_server_is_available(node, asks, &is_there) == RMW_RET_OK && is_there);
        tell("seen %d", visit);
        wait_for(set, node, guest_is_gone);
        UNTIL(rmw.service_server_is_available(node, asks, &is_there) == RMW_RET_OK && !is_there);
    }
    OK(rmw.destroy_client(own.node, asks));
    OK(rmw.destroy_wait_set(set));
    leave(&own);
    done("a guest came, left, came again and was killed");
}

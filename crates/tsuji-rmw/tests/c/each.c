// Drives librmw_tsuji.so as rcl of one distribution does, from the options of a context to its end, with messages whose
// tables are written by hand in that distribution's layout. After each structure that the library fills in there are bytes
// that must stay as they are.
//
// each LIBRARY, compiled with -DTSUJI_RMW_JAZZY and so on
#include "rmw_tsuji_test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void *library;

// Calls a function of the library.
#define RMW(name) ((__typeof__(&rmw_##name))found("rmw_" #name))
static void *found(const char *name) {
    void *function = dlsym(library, name);
    if (!function) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return function;
}

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

// A structure with bytes around it that nobody may touch.
#define GUARDED(type, name)                                                                                            \
    struct {                                                                                                           \
        unsigned char before[64];                                                                                      \
        __typeof__(type) it;                                                                                                     \
        unsigned char after[64];                                                                                       \
    } name;                                                                                                            \
    memset(&(name), 0x5a, sizeof(name));                                                                               \
    memset(&(name).it, 0, sizeof((name).it))
#define INTACT(name)                                                                                                   \
    for (size_t i = 0; i < 64; i++) {                                                                                  \
        CHECK((name).before[i] == 0x5a && (name).after[i] == 0x5a);                                                    \
    }

static void *allocate(size_t size, void *state) { return (void)state, malloc(size); }
static void deallocate(void *pointer, void *state) { (void)state, free(pointer); }
static void *reallocate(void *pointer, size_t size, void *state) { return (void)state, realloc(pointer, size); }
static void *zero_allocate(size_t count, size_t size, void *state) { return (void)state, calloc(count, size); }
static rcutils_allocator_t allocator = {allocate, deallocate, reallocate, zero_allocate, NULL};

// The message: a number, a text and a picture.
typedef struct Sight {
    uint32_t number;
    rosidl_runtime_c__String name;
    rosidl_runtime_c__uint8__Sequence pixels;
} Sight;

static void init(void *message, int how) { (void)how, memset(message, 0, sizeof(Sight)); }
static void fini(void *message) {
    Sight *sight = message;
    free(sight->name.data);
    free(sight->pixels.data);
}
static size_t size(const void *field) { return ((const rosidl_runtime_c__uint8__Sequence *)field)->size; }
static const void *get_const(const void *field, size_t at) {
    return &((const rosidl_runtime_c__uint8__Sequence *)field)->data[at];
}
static void *get(void *field, size_t at) { return &((rosidl_runtime_c__uint8__Sequence *)field)->data[at]; }
static bool resize(void *field, size_t count) {
    rosidl_runtime_c__uint8__Sequence *sequence = field;
    free(sequence->data);
    memset(sequence, 0, sizeof *sequence);
    sequence->data = calloc(count ? count : 1, 1);
    sequence->size = sequence->capacity = count;
    return sequence->data != NULL;
}

typedef rosidl_typesupport_introspection_c__MessageMember Member;
typedef rosidl_typesupport_introspection_c__MessageMembers Members;
static const Member fields[] = {
    {.name_ = "number", .type_id_ = 12, .offset_ = offsetof(Sight, number)},
    {.name_ = "name", .type_id_ = 16, .offset_ = offsetof(Sight, name)},
    {.name_ = "pixels",
     .type_id_ = 8,
     .is_array_ = true,
     .offset_ = offsetof(Sight, pixels),
     .size_function = size,
     .get_const_function = get_const,
     .get_function = get,
     .resize_function = resize,
#if 4 <= TSUJI_RMW_IS
     .is_rosidl_buffer_ = true,
#endif
    },
};
static const Members members = {
    .message_namespace_ = "each__msg",
    .message_name_ = "Sight",
    .member_count_ = 3,
    .size_of_ = sizeof(Sight),
    .members_ = fields,
    .init_function = init,
    .fini_function = fini,
};
static const rosidl_typesupport_introspection_c__ServiceMembers service_members = {
    .service_namespace_ = "each__srv",
    .service_name_ = "Look",
    .request_members_ = &members,
    .response_members_ = &members,
};

#if 2 <= TSUJI_RMW_IS
static const rosidl_type_hash_t hash = {1, {0xab, 0xcd}};
static const rosidl_type_hash_t *message_hash(const rosidl_message_type_support_t *of) { return (void)of, &hash; }
static const rosidl_type_hash_t *service_hash(const rosidl_service_type_support_t *of) { return (void)of, &hash; }
#endif
static const rosidl_message_type_support_t message_support = {
    .typesupport_identifier = "rosidl_typesupport_introspection_c",
    .data = &members,
#if 2 <= TSUJI_RMW_IS
    .get_type_hash_func = message_hash,
#endif
};
static const rosidl_service_type_support_t service_support = {
    .typesupport_identifier = "rosidl_typesupport_introspection_c",
    .data = &service_members,
#if 2 <= TSUJI_RMW_IS
    .get_type_hash_func = service_hash,
#endif
};

static const rmw_qos_profile_t profile = {
    .history = RMW_QOS_POLICY_HISTORY_KEEP_LAST,
    .depth = 7,
    .reliability = RMW_QOS_POLICY_RELIABILITY_RELIABLE,
    .durability = RMW_QOS_POLICY_DURABILITY_VOLATILE,
};

// Waits until something is so; the process ends where it takes too long.
#define UNTIL(what)                                                                                                    \
    for (int tries = 0; !(what); tries++) {                                                                            \
        CHECK(tries < 20000);                                                                                          \
        nanosleep(&(struct timespec){0, 1000000}, NULL);                                                               \
    }

static size_t matched(const rmw_publisher_t *publisher) {
    size_t count = 0;
    CHECK(RMW(publisher_count_matched_subscriptions)(publisher, &count) == RMW_RET_OK);
    return count;
}

static void fill(Sight *sight, uint32_t number) {
    memset(sight, 0, sizeof *sight);
    sight->number = number;
    sight->name = (rosidl_runtime_c__String){strdup("a sight"), 7, 8};
    CHECK(resize(&sight->pixels, 1000));
    memset(sight->pixels.data, (int)number, 1000);
}

static void is_sight(const Sight *sight, uint32_t number) {
    CHECK(sight->number == number && strcmp(sight->name.data, "a sight") == 0);
    CHECK(sight->pixels.size == 1000 && sight->pixels.data[0] == number && sight->pixels.data[999] == number);
}

static void messages(rmw_node_t *node) {
    rmw_publisher_options_t publisher_options = {0};
    GUARDED(rmw_subscription_options_t, options);
#if 4 <= TSUJI_RMW_IS
    options.it.acceptable_buffer_backends = "cpu";
#endif
    rmw_publisher_t *publishers[2];
    for (int i = 0; i < 2; i++) {
        publishers[i] = RMW(create_publisher)(node, &message_support, "/sight", &profile, &publisher_options);
        CHECK(publishers[i]);
    }
    rmw_subscription_t *subscription =
        RMW(create_subscription)(node, &message_support, "/sight", &profile, &options.it);
    CHECK(subscription && strcmp(subscription->topic_name, "/sight") == 0);
    CHECK(!subscription->can_loan_messages && !subscription->is_cft_enabled);
#if 4 <= TSUJI_RMW_IS
    CHECK(strcmp(subscription->options.acceptable_buffer_backends, "cpu") == 0);
#endif
    INTACT(options);
    UNTIL(matched(publishers[0]) == 1 && matched(publishers[1]) == 1);

    // One message, and what is known of it.
    Sight sent, got;
    fill(&sent, 7);
    CHECK(RMW(publish)(publishers[0], &sent, NULL) == RMW_RET_OK);
    init(&got, 0);
    GUARDED(rmw_message_info_t, info);
    info.it.from_intra_process = true;
    bool taken = false;
    UNTIL((RMW(take_with_info)(subscription, &got, &taken, &info.it, NULL), taken));
    is_sight(&got, 7);
    INTACT(info);
    GUARDED(rmw_gid_t, gid);
    CHECK(RMW(get_gid_for_publisher)(publishers[0], &gid.it) == RMW_RET_OK);
    INTACT(gid);
    bool same = false;
    CHECK(RMW(compare_gids_equal)(&gid.it, &info.it.publisher_gid, &same) == RMW_RET_OK && same);
    CHECK(RMW(get_gid_for_publisher)(publishers[1], &gid.it) == RMW_RET_OK);
    CHECK(RMW(compare_gids_equal)(&gid.it, &info.it.publisher_gid, &same) == RMW_RET_OK && !same);
    CHECK(!info.it.from_intra_process && info.it.publication_sequence_number != 0);
    CHECK(info.it.reception_sequence_number == 1 && info.it.source_timestamp != 0);

    // Two at once, each with what is known of it.
    Sight both[2];
    init(&both[0], 0), init(&both[1], 0);
    void *places[2] = {&both[0], &both[1]};
    typedef rmw_message_info_t Two[2];
    GUARDED(Two, infos);
    rmw_message_sequence_t sequence = {places, 0, 2, &allocator};
    rmw_message_info_sequence_t info_sequence = {infos.it, 0, 2, &allocator};
    for (int i = 0; i < 2; i++) {
        CHECK(RMW(publish)(publishers[1], &sent, NULL) == RMW_RET_OK);
    }
    size_t count = 0;
    for (size_t all = 0; all < 2; all += count) {
        sequence.data = places + all, info_sequence.data = infos.it + all;
        sequence.capacity = info_sequence.capacity = 2 - all;
        UNTIL((RMW(take_sequence)(subscription, 2 - all, &sequence, &info_sequence, &count, NULL), count != 0));
    }
    INTACT(infos);
    for (int i = 0; i < 2; i++) {
        is_sight(&both[i], 7);
        CHECK(infos.it[i].reception_sequence_number == (uint64_t)i + 2);
        CHECK(RMW(compare_gids_equal)(&gid.it, &infos.it[i].publisher_gid, &same) == RMW_RET_OK && same);
        fini(&both[i]);
    }

    // Who publishes it: two, so that the second tells how large the first is.
    rmw_topic_endpoint_info_array_t endpoints = {0};
    CHECK(RMW(get_publishers_info_by_topic)(node, &allocator, "/sight", false, &endpoints) == RMW_RET_OK);
    CHECK(endpoints.size == 2);
    for (size_t i = 0; i < 2; i++) {
        const rmw_topic_endpoint_info_t *endpoint = &endpoints.info_array[i];
        CHECK(strcmp(endpoint->node_name, "each") == 0 && strcmp(endpoint->node_namespace, "/of") == 0);
        CHECK(strcmp(endpoint->topic_type, "each/msg/Sight") == 0);
        CHECK(endpoint->endpoint_type == RMW_ENDPOINT_PUBLISHER && endpoint->qos_profile.depth == 7);
        CHECK(endpoint->qos_profile.durability == RMW_QOS_POLICY_DURABILITY_VOLATILE);
        int is = 0;
        for (int j = 0; j < 2; j++) {
            CHECK(RMW(get_gid_for_publisher)(publishers[j], &gid.it) == RMW_RET_OK);
            is += memcmp(endpoint->endpoint_gid, gid.it.data, RMW_GID_STORAGE_SIZE) == 0;
        }
        CHECK(is == 1);
#if 2 <= TSUJI_RMW_IS
        CHECK(memcmp(&endpoint->topic_type_hash, &hash, sizeof hash) == 0);
#endif
        free((char *)endpoint->node_name), free((char *)endpoint->node_namespace), free((char *)endpoint->topic_type);
    }
    free(endpoints.info_array);

    // Every event by its number in this distribution, and what is none.
    const rmw_event_type_t of_publishers[] = {
        RMW_EVENT_LIVELINESS_LOST, RMW_EVENT_OFFERED_DEADLINE_MISSED, RMW_EVENT_OFFERED_QOS_INCOMPATIBLE,
#if 2 <= TSUJI_RMW_IS
        RMW_EVENT_PUBLISHER_INCOMPATIBLE_TYPE, RMW_EVENT_PUBLICATION_MATCHED,
#endif
    };
    const rmw_event_type_t of_subscriptions[] = {
        RMW_EVENT_LIVELINESS_CHANGED, RMW_EVENT_REQUESTED_DEADLINE_MISSED, RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE,
        RMW_EVENT_MESSAGE_LOST,
#if 2 <= TSUJI_RMW_IS
        RMW_EVENT_SUBSCRIPTION_INCOMPATIBLE_TYPE, RMW_EVENT_SUBSCRIPTION_MATCHED,
#endif
    };
    for (size_t i = 0; i < sizeof of_publishers / sizeof *of_publishers; i++) {
        rmw_event_t event = {0};
        CHECK(RMW(publisher_event_init)(&event, publishers[0], of_publishers[i]) == RMW_RET_OK);
        rmw_event_t other = {0};
        CHECK(RMW(subscription_event_init)(&other, subscription, of_publishers[i]) == RMW_RET_UNSUPPORTED);
    }
    for (size_t i = 0; i < sizeof of_subscriptions / sizeof *of_subscriptions; i++) {
        rmw_event_t event = {0};
        CHECK(RMW(subscription_event_init)(&event, subscription, of_subscriptions[i]) == RMW_RET_OK);
    }
    const rmw_event_type_t none[] = {RMW_EVENT_INVALID, 12, 99};
    for (int i = 0; i < 3; i++) {
        rmw_event_t event = {0};
        CHECK(RMW(publisher_event_init)(&event, publishers[0], none[i]) == RMW_RET_INVALID_ARGUMENT);
    }
#if 2 <= TSUJI_RMW_IS
    CHECK(RMW(event_type_is_supported)(RMW_EVENT_SUBSCRIPTION_MATCHED));
    CHECK(!RMW(event_type_is_supported)(RMW_EVENT_INVALID) && !RMW(event_type_is_supported)(12));
    rmw_event_t event = {0};
    CHECK(RMW(publisher_event_init)(&event, publishers[0], RMW_EVENT_PUBLICATION_MATCHED) == RMW_RET_OK);
    GUARDED(rmw_matched_status_t, status);
    CHECK(RMW(take_event)(&event, &status.it, &taken) == RMW_RET_OK && taken);
    CHECK(status.it.current_count == 1 && status.it.total_count == 1);
    INTACT(status);
#endif

    // A message with a text has no size that could be foretold.
    size_t bytes = 0;
    CHECK(RMW(get_serialized_message_size)(&message_support, NULL, &bytes) == RMW_RET_UNSUPPORTED && bytes == 0);
    CHECK(RMW(get_serialized_message_size)(NULL, NULL, &bytes) == RMW_RET_INVALID_ARGUMENT);
    CHECK(RMW(get_serialized_message_size)(&message_support, NULL, NULL) == RMW_RET_INVALID_ARGUMENT);
    static const Member lone = {.name_ = "number", .type_id_ = 12};
    Members small = members;
    small.message_name_ = "Lone", small.member_count_ = 1, small.size_of_ = 4, small.members_ = &lone;
    rosidl_message_type_support_t lone_support = message_support;
    lone_support.data = &small;
    CHECK(RMW(get_serialized_message_size)(&lone_support, NULL, &bytes) == RMW_RET_OK && bytes == 8);

    fini(&sent), fini(&got);
    CHECK(RMW(destroy_subscription)(node, subscription) == RMW_RET_OK);
    for (int i = 0; i < 2; i++) {
        CHECK(RMW(destroy_publisher)(node, publishers[i]) == RMW_RET_OK);
    }
}

// The number of the next message, which has to come.
static uint32_t next(rmw_subscription_t *subscription) {
    Sight got;
    init(&got, 0);
    bool taken = false;
    UNTIL((RMW(take)(subscription, &got, &taken, NULL), taken));
    uint32_t number = got.number;
    fini(&got);
    return number;
}

static void filters(rmw_node_t *node) {
    rmw_publisher_options_t publisher_options = {0};
    rmw_publisher_t *publisher =
        RMW(create_publisher)(node, &message_support, "/filtered", &profile, &publisher_options);
    char *parameters[] = {"3", "'a%'"};
    rmw_subscription_content_filter_options_t filter = {
        .filter_expression = "number > %0 AND name LIKE %1 AND pixels[0] < 200",
        .expression_parameters = {2, parameters, allocator},
    };
    rmw_subscription_options_t options = {.content_filter_options = &filter};
    rmw_subscription_t *subscription =
        RMW(create_subscription)(node, &message_support, "/filtered", &profile, &options);
    CHECK(publisher && subscription && subscription->is_cft_enabled);
#if 4 <= TSUJI_RMW_IS
    CHECK(subscription->is_cft_supported);
#endif
    UNTIL(matched(publisher) == 1);
    for (uint32_t number = 0; number < 6; number++) {
        Sight sent;
        fill(&sent, number);
        CHECK(RMW(publish)(publisher, &sent, NULL) == RMW_RET_OK);
        fini(&sent);
    }
    CHECK(next(subscription) == 4 && next(subscription) == 5);

    rmw_subscription_content_filter_options_t said = {0};
    CHECK(RMW(subscription_get_content_filter)(subscription, &allocator, &said) == RMW_RET_OK);
    CHECK(strcmp(said.filter_expression, filter.filter_expression) == 0 && said.expression_parameters.size == 2);
    CHECK(strcmp(said.expression_parameters.data[1], "'a%'") == 0);
    free(said.filter_expression), free(said.expression_parameters.data[0]), free(said.expression_parameters.data[1]);
    free(said.expression_parameters.data);

    // What cannot be set leaves what is there.
    char *wrong[] = {"numbr > 1", "number >", "number > %5", "name > 3"};
    for (int i = 0; i < 4; i++) {
        filter.filter_expression = wrong[i];
        CHECK(RMW(subscription_set_content_filter)(subscription, &filter) == RMW_RET_INVALID_ARGUMENT);
        CHECK(subscription->is_cft_enabled);
        CHECK(!RMW(create_subscription)(node, &message_support, "/filtered", &profile, &options));
    }
    CHECK(RMW(subscription_set_content_filter)(subscription, NULL) == RMW_RET_INVALID_ARGUMENT);

    // Another, and none.
    filter = (rmw_subscription_content_filter_options_t){.filter_expression = "number = 1"};
    CHECK(RMW(subscription_set_content_filter)(subscription, &filter) == RMW_RET_OK);
    filter.filter_expression = "";
    for (uint32_t number = 0; number < 3; number++) {
        if (number == 2) {
            CHECK(next(subscription) == 1);
            CHECK(RMW(subscription_set_content_filter)(subscription, &filter) == RMW_RET_OK);
        }
        Sight sent;
        fill(&sent, number);
        CHECK(RMW(publish)(publisher, &sent, NULL) == RMW_RET_OK);
        fini(&sent);
    }
    CHECK(next(subscription) == 2 && !subscription->is_cft_enabled);
    CHECK(RMW(subscription_get_content_filter)(subscription, &allocator, &said) == RMW_RET_ERROR);
    CHECK(RMW(destroy_subscription)(node, subscription) == RMW_RET_OK);
    CHECK(RMW(destroy_publisher)(node, publisher) == RMW_RET_OK);
}

static void services(rmw_node_t *node) {
    rmw_service_t *service = RMW(create_service)(node, &service_support, "/look", &profile);
    rmw_client_t *client = RMW(create_client)(node, &service_support, "/look", &profile);
    CHECK(service && client);
    bool is_there = false;
    UNTIL((RMW(service_server_is_available)(node, client, &is_there), is_there));
    Sight question, asked, answer;
    fill(&question, 3), init(&asked, 0), init(&answer, 0);
    int64_t number = 0;
    CHECK(RMW(send_request)(client, &question, &number) == RMW_RET_OK);
    GUARDED(rmw_service_info_t, info);
    bool taken = false;
    UNTIL((RMW(take_request)(service, &info.it, &asked, &taken), taken));
    is_sight(&asked, 3);
    INTACT(info);
    CHECK(info.it.request_id.sequence_number == number);
#if 2 <= TSUJI_RMW_IS
    GUARDED(rmw_gid_t, gid);
    CHECK(RMW(get_gid_for_client)(client, &gid.it) == RMW_RET_OK);
    INTACT(gid);
#endif
    asked.number = 4;
    memset(asked.pixels.data, 4, 1000);
    CHECK(RMW(send_response)(service, &info.it.request_id, &asked) == RMW_RET_OK);
    UNTIL((RMW(take_response)(client, &info.it, &answer, &taken), taken));
    is_sight(&answer, 4);
    CHECK(info.it.request_id.sequence_number == number);
#if 4 <= TSUJI_RMW_IS
    for (int i = 0; i < 2; i++) {
        rmw_service_endpoint_info_array_t ends = {0};
        CHECK((i ? RMW(get_servers_info_by_service) : RMW(get_clients_info_by_service))(
                  node, &allocator, "/look", false, &ends) == RMW_RET_OK);
        CHECK(ends.size == 1);
        const rmw_service_endpoint_info_t *end = ends.info_array;
        CHECK(strcmp(end->node_name, "each") == 0 && strcmp(end->node_namespace, "/of") == 0);
        CHECK(strcmp(end->service_type, "each/srv/Look") == 0);
        CHECK(end->endpoint_type == (i ? RMW_ENDPOINT_SERVER : RMW_ENDPOINT_CLIENT));
        CHECK(end->endpoint_count == 1 && end->qos_profiles[0].depth == 7);
        CHECK(memcmp(&end->service_type_hash, &hash, sizeof hash) == 0);
        CHECK(i || memcmp(end->endpoint_gids[0], gid.it.data, RMW_GID_STORAGE_SIZE) == 0);
        free((char *)end->node_name), free((char *)end->node_namespace), free((char *)end->service_type);
        free(end->endpoint_gids), free(end->qos_profiles), free(ends.info_array);
    }
    rmw_service_endpoint_info_array_t nobody = {0};
    CHECK(RMW(get_servers_info_by_service)(node, &allocator, "/nothing", false, &nobody) == RMW_RET_OK);
    CHECK(nobody.size == 0 && !nobody.info_array);
    CHECK(RMW(get_servers_info_by_service)(node, &allocator, NULL, false, &nobody) == RMW_RET_INVALID_ARGUMENT);
#endif
    fini(&question), fini(&asked), fini(&answer);
    CHECK(RMW(destroy_client)(node, client) == RMW_RET_OK);
    CHECK(RMW(destroy_service)(node, service) == RMW_RET_OK);
}

// How many nodes there are.
static size_t nodes(const rmw_node_t *node) {
    rcutils_string_array_t names = {0}, namespaces = {0};
    CHECK(RMW(get_node_names)(node, &names, &namespaces) == RMW_RET_OK);
    size_t count = names.size;
    CHECK(namespaces.size == count);
    for (size_t i = 0; i < count; i++) {
        free(names.data[i]), free(namespaces.data[i]);
    }
    free(names.data), free(namespaces.data);
    return count;
}

int main(int argc, char **argv) {
    alarm(60);
    library = argc == 2 ? dlopen(argv[1], RTLD_LAZY) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "each LIBRARY");
        return 2;
    }
    GUARDED(rmw_init_options_t, options);
    CHECK(RMW(init_options_init)(&options.it, allocator) == RMW_RET_OK);
    INTACT(options);
    CHECK(strcmp(options.it.implementation_identifier, "rmw_tsuji") == 0);
    CHECK(options.it.domain_id == (size_t)-1 && options.it.allocator.allocate == allocate);
    options.it.instance_id = 42, options.it.domain_id = 9, options.it.enclave = strdup("/enclave");
    GUARDED(rmw_init_options_t, copy);
    CHECK(RMW(init_options_copy)(&options.it, &copy.it) == RMW_RET_OK);
    INTACT(copy);
    CHECK(strcmp(copy.it.enclave, "/enclave") == 0 && copy.it.enclave != options.it.enclave);
    GUARDED(rmw_context_t, context);
    CHECK(RMW(init)(&copy.it, &context.it) == RMW_RET_OK);
    INTACT(context);
    CHECK(context.it.actual_domain_id == 9 && context.it.instance_id == 42 && context.it.impl);
    CHECK(strcmp(context.it.options.enclave, "/enclave") == 0 && context.it.options.domain_id == 9);
    rmw_node_t *node = RMW(create_node)(&context.it, "each", "/of");
    CHECK(node && node->context == &context.it && strcmp(node->namespace_, "/of") == 0);
    rmw_guard_condition_t *guard = RMW(create_guard_condition)(&context.it);
    CHECK(guard && guard->context == &context.it);
    CHECK(RMW(destroy_guard_condition)(guard) == RMW_RET_OK);

    messages(node);
    filters(node);
    services(node);

    // A node leaves the graph though something is left that was made under it, as rclpy does.
    rmw_node_t *watcher = RMW(create_node)(&context.it, "watcher", "/");
    rmw_service_t *left = RMW(create_service)(node, &service_support, "/left", &profile);
    CHECK(watcher && left && nodes(watcher) == 2);
    CHECK(RMW(destroy_node)(node) == RMW_RET_OK);
    CHECK(nodes(watcher) == 1);
    CHECK(RMW(destroy_service)(watcher, left) == RMW_RET_OK);
    CHECK(RMW(destroy_node)(watcher) == RMW_RET_OK);
    CHECK(RMW(shutdown)(&context.it) == RMW_RET_OK);
    CHECK(RMW(context_fini)(&context.it) == RMW_RET_OK);
    INTACT(context);
    CHECK(!context.it.impl && !context.it.options.enclave);
    CHECK(RMW(init_options_fini)(&copy.it) == RMW_RET_OK && RMW(init_options_fini)(&options.it) == RMW_RET_OK);
    INTACT(options);
    puts("done");
    return 0;
}

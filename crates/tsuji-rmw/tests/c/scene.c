#define _GNU_SOURCE
#include "scene.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

struct rmw_functions rmw;
bool dispatching;

static int argument_count;
static char **arguments;
static const char *scenario_name = "?";
static const char *volatile last_file = "?";
static volatile int last_line;

static void file_and_line(char *text, size_t size, const char *file, int line) {
    const char *slash = strrchr(file, '/');
    snprintf(text, size, "%s:%d", slash ? slash + 1 : file, line);
}

void fail(const char *file, int line, const char *format, ...) {
    char where[128];
    file_and_line(where, sizeof where, file, line);
    printf("failed: %s, %s: ", scenario_name, where);
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    if (rcutils_error_is_set()) {
        printf("; rmw says: %s", rcutils_get_error_string().str);
    }
    putchar('\n');
    fflush(stdout);
    // No destructors: they may stand on what has just failed.
    _exit(1);
}

static void hangs(int signal) {
    (void)signal;
    // Only what a signal handler may do.
    char text[256], where[128];
    file_and_line(where, sizeof where, last_file, last_line);
    int length = snprintf(text, sizeof text, "failed: %s, %s: hangs after this line\n", scenario_name, where);
    if (write(STDOUT_FILENO, text, (size_t)length) < 0) {
        _exit(2);
    }
    // By the core and the stacks a debugger sees where.
    if (getenv("DRIVE_ABORT")) {
        abort();
    }
    _exit(1);
}

void alive(const char *file, int line) {
    last_file = file;
    last_line = line;
    alarm(HANG_SECONDS);
}

void alive_quietly(void) { alarm(HANG_SECONDS); }

void expect_return(const char *file, int line, const char *call, rmw_ret_t is, rmw_ret_t shall) {
    if (is != shall) {
        fail(file, line, "%s returns %d instead of %d", call, is, shall);
    }
    if (shall != RMW_RET_OK && shall != RMW_RET_TIMEOUT && shall != RMW_RET_UNSUPPORTED && !rcutils_error_is_set()) {
        fail(file, line, "%s returns %d and leaves no message", call, is);
    }
    rcutils_reset_error();
    alive(file, line);
}

void expect_failure(const char *file, int line, const char *call, rmw_ret_t is) {
    if (is == RMW_RET_OK) {
        fail(file, line, "%s is accepted", call);
    }
    rcutils_reset_error();
    alive(file, line);
}

void expect_null(const char *file, int line, const char *call, const void *is) {
    if (is != NULL) {
        fail(file, line, "%s is accepted", call);
    }
    if (!rcutils_error_is_set()) {
        fail(file, line, "%s is NULL and leaves no message", call);
    }
    rcutils_reset_error();
    alive(file, line);
}

void *expect_made(const char *file, int line, const char *call, const void *is) {
    if (is == NULL) {
        fail(file, line, "%s is NULL", call);
    }
    alive(file, line);
    return (void *)is;
}

void pause_ms(unsigned milliseconds) {
    struct timespec pause = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    nanosleep(&pause, NULL);
}

static int64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t wall_ns(void) { return clock_ns(CLOCK_REALTIME); }

double seconds_now(void) { return (double)clock_ns(CLOCK_MONOTONIC) / 1e9; }

uint64_t dice(uint64_t *state) {
    // xorshift64*; its state is never 0.
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * UINT64_C(2685821657736338717)) >> 16;
}

const char *word(const char *name, const char *otherwise) {
    size_t length = strlen(name);
    for (int i = 0; i < argument_count; i++) {
        if (strncmp(arguments[i], name, length) == 0 && arguments[i][length] == '=') {
            return arguments[i] + length + 1;
        }
    }
    return otherwise;
}

uint64_t number(const char *name, uint64_t otherwise) {
    const char *text = word(name, NULL);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

void make_options(rmw_init_options_t *options) {
    static uint64_t instances;
    memset(options, 0, sizeof *options);
    OK(rmw.init_options_init(options, rcutils_get_default_allocator()));
    const char *domain = getenv("ROS_DOMAIN_ID");
    options->instance_id = ++instances;
    options->domain_id = domain ? strtoul(domain, NULL, 10) : 0;
    // rcl allocates it by the allocator of the options, and who ends the options frees it so.
    options->enclave = options->allocator.allocate(2, options->allocator.state);
    CHECK(options->enclave != NULL);
    strcpy(options->enclave, "/");
}

void join(struct participant *own, const char *name, const char *namespace_) {
    memset(own, 0, sizeof *own);
    make_options(&own->options);
    OK(rmw.init(&own->options, &own->context));
    own->node = MADE(rmw.create_node(&own->context, name, namespace_));
    CHECK(strcmp(own->node->name, name) == 0);
    CHECK(strcmp(own->node->namespace_, namespace_) == 0);
    CHECK(own->node->context == &own->context);
}

void shut_down(struct participant *own) { OK(rmw.shutdown(&own->context)); }

void clear_up(struct participant *own) {
    OK(rmw.destroy_node(own->node));
    OK(rmw.context_fini(&own->context));
    OK(rmw.init_options_fini(&own->options));
}

void leave(struct participant *own) {
    OK(rmw.destroy_node(own->node));
    OK(rmw.shutdown(&own->context));
    OK(rmw.context_fini(&own->context));
    OK(rmw.init_options_fini(&own->options));
}

rmw_qos_profile_t keep_last(size_t depth) {
    rmw_qos_profile_t qos;
    memset(&qos, 0, sizeof qos);
    qos.history = RMW_QOS_POLICY_HISTORY_KEEP_LAST;
    qos.depth = depth;
    qos.reliability = RMW_QOS_POLICY_RELIABILITY_RELIABLE;
    qos.durability = RMW_QOS_POLICY_DURABILITY_VOLATILE;
    return qos;
}

rmw_qos_profile_t keep_all(void) {
    rmw_qos_profile_t qos = keep_last(0);
    qos.history = RMW_QOS_POLICY_HISTORY_KEEP_ALL;
    return qos;
}

rmw_publisher_t *publisher(struct participant *own, const struct message_type *type, const char *topic,
                           rmw_qos_profile_t qos) {
    rmw_publisher_options_t options;
    memset(&options, 0, sizeof options);
    rmw_publisher_t *made = MADE(rmw.create_publisher(own->node, type->support(), topic, &qos, &options));
    CHECK(strcmp(made->topic_name, topic) == 0);
    return made;
}

rmw_subscription_t *subscription(struct participant *own, const struct message_type *type, const char *topic,
                                 rmw_qos_profile_t qos) {
    rmw_subscription_options_t options;
    memset(&options, 0, sizeof options);
    rmw_subscription_t *made = MADE(rmw.create_subscription(own->node, type->support(), topic, &qos, &options));
    CHECK(strcmp(made->topic_name, topic) == 0);
    return made;
}

rmw_client_t *client(struct participant *own, const char *name) {
    rmw_qos_profile_t qos = keep_last(10);
    rmw_client_t *made = MADE(rmw.create_client(own->node, add_two_ints(), name, &qos));
    CHECK(strcmp(made->service_name, name) == 0);
    return made;
}

rmw_service_t *service(struct participant *own, const char *name) {
    rmw_qos_profile_t qos = keep_last(10);
    rmw_service_t *made = MADE(rmw.create_service(own->node, add_two_ints(), name, &qos));
    CHECK(strcmp(made->service_name, name) == 0);
    return made;
}

size_t matched_subscriptions(const rmw_publisher_t *publisher) {
    size_t count = SIZE_MAX;
    if (rmw.publisher_count_matched_subscriptions(publisher, &count) != RMW_RET_OK) {
        FAIL("rmw_publisher_count_matched_subscriptions");
    }
    return count;
}

size_t matched_publishers(const rmw_subscription_t *subscription) {
    size_t count = SIZE_MAX;
    if (rmw.subscription_count_matched_publishers(subscription, &count) != RMW_RET_OK) {
        FAIL("rmw_subscription_count_matched_publishers");
    }
    return count;
}

void publish(const rmw_publisher_t *publisher, const void *message) {
    rmw_ret_t is;
    alive_quietly();
    // Where all is kept, a publisher that is quicker than its subscriptions is told so after 100 ms. rmw has no code for
    // that; an error of another kind ends at the watchdog.
    while ((is = rmw.publish(publisher, message, NULL)) == RMW_RET_TIMEOUT || is == RMW_RET_ERROR) {
        static _Atomic bool is_told;
        if (!atomic_exchange(&is_told, true)) {
            fprintf(stderr, "rmw_publish returns %d, once at least: %s\n", is, rcutils_get_error_string().str);
        }
        rcutils_reset_error();
    }
    if (is != RMW_RET_OK) {
        FAIL("rmw_publish returns %d", is);
    }
}

bool wait_on(rmw_wait_set_t *set, struct awaited *awaited, int64_t timeout_ns) {
    // As rcl does, the handles' data; of events the event itself.
    void *subscription = awaited->subscription ? awaited->subscription->data : NULL;
    void *guard = awaited->guard ? awaited->guard->data : NULL;
    void *service = awaited->service ? awaited->service->data : NULL;
    void *client = awaited->client ? awaited->client->data : NULL;
    void *event = awaited->event;
    rmw_subscriptions_t subscriptions = {subscription ? 1 : 0, &subscription};
    rmw_guard_conditions_t guards = {guard ? 1 : 0, &guard};
    rmw_services_t services = {service ? 1 : 0, &service};
    rmw_clients_t clients = {client ? 1 : 0, &client};
    rmw_events_t events = {event ? 1 : 0, &event};
    rmw_time_t timeout = {(uint64_t)timeout_ns / 1000000000, (uint64_t)timeout_ns % 1000000000};
    rmw_ret_t is =
        rmw.wait(&subscriptions, &guards, &services, &clients, &events, set, timeout_ns < 0 ? NULL : &timeout);
    if (is != RMW_RET_OK && is != RMW_RET_TIMEOUT) {
        FAIL("rmw_wait returns %d", is);
    }
    bool any = subscription || guard || service || client || event;
    if (any != (is == RMW_RET_OK)) {
        FAIL("rmw_wait returns %d, and %s is ready", is, any ? "something" : "nothing");
    }
    if (timeout_ns < 0 && !any) {
        FAIL("rmw_wait returns without a timeout");
    }
    rcutils_reset_error();
    awaited->subscription = subscription ? awaited->subscription : NULL;
    awaited->guard = guard ? awaited->guard : NULL;
    awaited->service = service ? awaited->service : NULL;
    awaited->client = client ? awaited->client : NULL;
    awaited->event = event ? awaited->event : NULL;
    alive_quietly();
    return any;
}

void hex(char *text, const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sprintf(text + 2 * i, "%02x", bytes[i]);
    }
    text[2 * count] = '\0';
}

void names_free(rmw_names_and_types_t *names) {
    rcutils_allocator_t allocator = names->names.allocator;
    if (names->types) {
        for (size_t i = 0; i < names->names.size; i++) {
            CHECK(rcutils_string_array_fini(&names->types[i]) == RCUTILS_RET_OK);
        }
        allocator.deallocate(names->types, allocator.state);
    }
    CHECK(rcutils_string_array_fini(&names->names) == RCUTILS_RET_OK);
    memset(names, 0, sizeof *names);
}

void endpoints_free(rmw_topic_endpoint_info_array_t *endpoints) {
    rcutils_allocator_t allocator = rcutils_get_default_allocator();
    for (size_t i = 0; i < endpoints->size; i++) {
        allocator.deallocate((void *)endpoints->info_array[i].node_name, allocator.state);
        allocator.deallocate((void *)endpoints->info_array[i].node_namespace, allocator.state);
        allocator.deallocate((void *)endpoints->info_array[i].topic_type, allocator.state);
    }
    allocator.deallocate(endpoints->info_array, allocator.state);
    memset(endpoints, 0, sizeof *endpoints);
}

bool told(void) {
    // As long as the parent wants.
    alarm(0);
    char line[64];
    bool is = fgets(line, sizeof line, stdin) != NULL;
    alive_quietly();
    return is;
}

void tell(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    putchar('\n');
    fflush(stdout);
}

void done(const char *format, ...) {
    printf("ok %s (%s) ", scenario_name, LANGUAGE);
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    putchar('\n');
    fflush(stdout);
}

static const struct scenario {
    const char *name;
    void (*run)(void);
} scenarios[] = {
#define ENTRY(NAME) {#NAME, scenario_##NAME},
    SCENARIOS(ENTRY)
#undef ENTRY
    {NULL, NULL},
};

static void load(const char *path) {
    // As rcutils_load_shared_library does: lazily, and to itself.
    void *library = dlopen(path, RTLD_LAZY);
    if (!library) {
        FAIL("%s", dlerror());
    }
#define FIND(NAME)                                                                                                     \
    *(void **)&rmw.NAME = dlsym(library, "rmw_" #NAME);                                                                \
    if (!rmw.NAME) {                                                                                                   \
        FAIL("%s has no rmw_" #NAME, path);                                                                            \
    }
    RMW_FUNCTIONS(FIND)
#undef FIND
}

// drive LIBRARY SCENARIO [NAME=VALUE…]
int main(int argc, char **argv) {
    // Nothing is left behind when the test that started this dies.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGALRM, hangs);
    if (argc >= 3) {
        argument_count = argc - 3;
        arguments = argv + 3;
        for (const struct scenario *it = scenarios; it->name; it++) {
            if (strcmp(it->name, argv[2]) == 0) {
                scenario_name = it->name;
                alive(__FILE__, __LINE__);
                dispatching = strcmp(word("handles", "introspection"), "dispatching") == 0;
                load(argv[1]);
                it->run();
                return 0;
            }
        }
    }
    fprintf(stderr, "usage: %s LIBRARY SCENARIO [NAME=VALUE...]\nscenarios:", argv[0]);
    for (const struct scenario *it = scenarios; it->name; it++) {
        fprintf(stderr, " %s", it->name);
    }
    fputc('\n', stderr);
    return 2;
}

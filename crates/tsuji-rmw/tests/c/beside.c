// Callbacks beside wait sets, several wait sets of one entity, what a callback may do, and depths of services.
#include "scene.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void count_up(const void *counter, size_t events) { atomic_fetch_add((_Atomic uint64_t *)counter, events); }

static rmw_qos_profile_t best_effort(void) {
    rmw_qos_profile_t qos = keep_last(10);
    qos.reliability = RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
    return qos;
}

// What spins beside the main thread: waits for all of these and takes what is ready, until the guard is triggered.
struct spinner {
    rmw_subscription_t *in;
    rmw_service_t *answers;
    rmw_client_t *asks;
    rmw_event_t *event;
    rmw_guard_condition_t *end;
    struct participant *own;
    _Atomic uint64_t messages, requests, responses, events;
    pthread_t thread;
};

static void *spin(void *of) {
    struct spinner *own = of;
    rmw_wait_set_t *set = MADE(rmw.create_wait_set(&own->own->context, 5));
    void *number = NUMBER.make(), *request = REQUEST.make(), *response = RESPONSE.make();
    for (;;) {
        struct awaited awaited = {.subscription = own->in, .guard = own->end, .service = own->answers,
                                  .client = own->asks, .event = own->event};
        wait_on(set, &awaited, -1);
        bool taken = false;
        rmw_service_info_t info;
        if (awaited.subscription) {
            OK(rmw.take(own->in, number, &taken, NULL));
            atomic_fetch_add(&own->messages, taken);
        }
        if (awaited.service) {
            OK(rmw.take_request(own->answers, &info, request, &taken));
            if (taken) {
                response_set(response, 3);
                OK(rmw.send_response(own->answers, &info.request_id, response));
                atomic_fetch_add(&own->requests, 1);
            }
        }
        if (awaited.client) {
            OK(rmw.take_response(own->asks, &info, response, &taken));
            atomic_fetch_add(&own->responses, taken);
        }
        if (awaited.event) {
            rmw_qos_incompatible_event_status_t status;
            OK(rmw.take_event(own->event, &status, &taken));
            atomic_fetch_add(&own->events, (uint64_t)status.total_count_change);
        }
        if (awaited.guard) {
            break;
        }
    }
    NUMBER.drop(number);
    REQUEST.drop(request);
    RESPONSE.drop(response);
    OK(rmw.destroy_wait_set(set));
    return NULL;
}

static void start(struct spinner *spinner) {
    spinner->end = MADE(rmw.create_guard_condition(&spinner->own->context));
    CHECK(pthread_create(&spinner->thread, NULL, spin, spinner) == 0);
}

static void stop(struct spinner *spinner) {
    OK(rmw.trigger_guard_condition(spinner->end));
    CHECK(pthread_join(spinner->thread, NULL) == 0);
    OK(rmw.destroy_guard_condition(spinner->end));
}

// Beside one and two that spin, callbacks are told of all that comes, whether they are set before or after.
void scenario_beside(void) {
    enum { COUNT = 20 };
    struct participant own;
    join(&own, "beside", "/");
    for (int is_set_first = 0; is_set_first < 2; is_set_first++) {
        for (int spinners = 1; spinners <= 2; spinners++) {
            static _Atomic uint64_t messages, requests, responses, refusals, offers;
            messages = requests = responses = refusals = offers = 0;
            rmw_publisher_t *out = publisher(&own, &NUMBER, "/beside", keep_last(10));
            rmw_subscription_t *in = subscription(&own, &NUMBER, "/beside", keep_last(10));
            rmw_service_t *answers = service(&own, "/beside/add");
            rmw_client_t *asks = client(&own, "/beside/add");
            rmw_event_t wanted = {0}, offered = {0};
            OK(rmw.subscription_event_init(&wanted, in, RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE));
            OK(rmw.publisher_event_init(&offered, out, RMW_EVENT_OFFERED_QOS_INCOMPATIBLE));
            bool is_there = false;
            UNTIL(matched_subscriptions(out) == 1);
            UNTIL(rmw.service_server_is_available(own.node, asks, &is_there) == RMW_RET_OK && is_there);

            struct spinner all[2];
            memset(all, 0, sizeof all);
            for (int at = 0; at < spinners; at++) {
                all[at] = (struct spinner){.in = in, .answers = answers, .asks = asks, .event = &wanted, .own = &own};
            }
            for (int turn = 0; turn < 2; turn++) {
                if (turn == is_set_first) {
                    for (int at = 0; at < spinners; at++) {
                        start(&all[at]);
                    }
                    continue;
                }
                OK(rmw.subscription_set_on_new_message_callback(in, count_up, &messages));
                OK(rmw.service_set_on_new_request_callback(answers, count_up, &requests));
                OK(rmw.client_set_on_new_response_callback(asks, count_up, &responses));
                OK(rmw.event_set_callback(&wanted, count_up, &refusals));
                OK(rmw.event_set_callback(&offered, count_up, &offers));
            }
#define TAKEN(WHAT) (atomic_load(&all[0].WHAT) + atomic_load(&all[1].WHAT))
            void *number = NUMBER.make(), *request = REQUEST.make();
            number_set(number, 1);
            request_set(request, 1, 2);
            for (uint64_t i = 1; i <= COUNT; i++) {
                publish(out, number);
                UNTIL(TAKEN(messages) == i);
                int64_t sent;
                OK(rmw.send_request(asks, request, &sent));
                UNTIL(TAKEN(responses) == i);
            }
            for (uint64_t i = 1; i <= 3; i++) {
                rmw_publisher_t *less = publisher(&own, &NUMBER, "/beside", best_effort());
                UNTIL(TAKEN(events) == i);
                UNTIL(atomic_load(&refusals) == i);
                OK(rmw.destroy_publisher(own.node, less));
            }
            UNTIL(atomic_load(&messages) == COUNT);
            UNTIL(atomic_load(&requests) == COUNT);
            UNTIL(atomic_load(&responses) == COUNT);
            CHECK(atomic_load(&offers) == 0);
            for (int at = 0; at < spinners; at++) {
                stop(&all[at]);
            }
            // Those that spun are gone, and took nothing along.
            publish(out, number);
            UNTIL(atomic_load(&messages) == COUNT + 1);
            NUMBER.drop(number);
            REQUEST.drop(request);
            OK(rmw.destroy_client(own.node, asks));
            OK(rmw.destroy_service(own.node, answers));
            OK(rmw.destroy_subscription(own.node, in));
            OK(rmw.destroy_publisher(own.node, out));
        }
    }

    // What came before the callback is told when it is set, and only once; what never came has no policy.
    static _Atomic uint64_t before;
    rmw_subscription_t *in = subscription(&own, &NUMBER, "/before", keep_last(10));
    rmw_event_t wanted = {0};
    OK(rmw.subscription_event_init(&wanted, in, RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE));
    rmw_qos_incompatible_event_status_t status;
    bool taken = false;
    OK(rmw.take_event(&wanted, &status, &taken));
    // RMW_QOS_POLICY_INVALID
    CHECK(taken && status.total_count == 0 && status.last_policy_kind == 1 << 0);
    rmw_publisher_t *less[3];
    rmw_wait_set_t *set = MADE(rmw.create_wait_set(&own.context, 1));
    for (int i = 0; i < 3; i++) {
        less[i] = publisher(&own, &NUMBER, "/before", best_effort());
    }
    wait_on(set, &(struct awaited){.event = &wanted}, -1);
    OK(rmw.event_set_callback(&wanted, count_up, &before));
    // An executor by events looks at once whether there is something to do.
    CHECK(atomic_load(&before) == 3);
    OK(rmw.event_set_callback(&wanted, NULL, NULL));
    OK(rmw.event_set_callback(&wanted, count_up, &before));
    // It is ready for every wait until it is taken.
    for (int i = 0; i < 3; i++) {
        CHECK(wait_on(set, &(struct awaited){.event = &wanted}, 0));
    }
    OK(rmw.take_event(&wanted, &status, &taken));
    CHECK(status.total_count == 3 && status.total_count_change == 3 && status.last_policy_kind == 1 << 4);
    CHECK(!wait_on(set, &(struct awaited){.event = &wanted}, 0));
    CHECK(atomic_load(&before) == 3);
    for (int i = 0; i < 3; i++) {
        OK(rmw.destroy_publisher(own.node, less[i]));
    }
    OK(rmw.destroy_wait_set(set));
    OK(rmw.destroy_subscription(own.node, in));

    // A change of the graph ends one wait.
    const rmw_guard_condition_t *graph = rmw.node_get_graph_guard_condition(own.node);
    set = MADE(rmw.create_wait_set(&own.context, 1));
    while (wait_on(set, &(struct awaited){.guard = graph}, 0)) {
    }
    for (int i = 0; i < 3; i++) {
        rmw_node_t *other = MADE(rmw.create_node(&own.context, "other", "/"));
        CHECK(wait_on(set, &(struct awaited){.guard = graph}, -1));
        CHECK(!wait_on(set, &(struct awaited){.guard = graph}, 100000000));
        OK(rmw.destroy_node(other));
        CHECK(wait_on(set, &(struct awaited){.guard = graph}, -1));
        CHECK(!wait_on(set, &(struct awaited){.guard = graph}, 100000000));
    }
    OK(rmw.destroy_wait_set(set));
    leave(&own);
    done("one and two that spin, callbacks before and after");
}

// What a callback does with the entity that calls it.
struct within {
    rmw_subscription_t *in;
    rmw_node_t *node;
    _Atomic uint64_t calls, taken;
};

static void takes(const void *data, size_t events) {
    struct within *within = (struct within *)data;
    void *number = NUMBER.make();
    for (size_t i = 0; i < events; i++) {
        bool taken = false;
        OK(rmw.take(within->in, number, &taken, NULL));
        atomic_fetch_add(&within->taken, taken);
    }
    NUMBER.drop(number);
    atomic_fetch_add(&within->calls, 1);
}

static void unsets(const void *data, size_t events) {
    struct within *within = (struct within *)data;
    (void)events;
    OK(rmw.subscription_set_on_new_message_callback(within->in, NULL, NULL));
    atomic_fetch_add(&within->calls, 1);
}

static void replaces(const void *data, size_t events) {
    struct within *within = (struct within *)data;
    OK(rmw.subscription_set_on_new_message_callback(within->in, takes, data));
    takes(data, events);
}

static void destroys(const void *data, size_t events) {
    struct within *within = (struct within *)data;
    (void)events;
    OK(rmw.destroy_subscription(within->node, within->in));
    atomic_fetch_add(&within->calls, 1);
}

void scenario_within(void) {
    struct participant own;
    join(&own, "within", "/");
    rmw_publisher_t *out = publisher(&own, &NUMBER, "/within", keep_last(100));
    static struct within within;
    within.node = own.node;
    within.in = subscription(&own, &NUMBER, "/within", keep_last(100));
    UNTIL(matched_subscriptions(out) == 1);
    void *number = NUMBER.make();
    number_set(number, 1);
    OK(rmw.subscription_set_on_new_message_callback(within.in, takes, &within));
    for (int i = 0; i < 500; i++) {
        publish(out, number);
    }
    publish(out, number);
    UNTIL(atomic_load(&within.calls) > 0);
    bool taken = true;
    // Beside the callback this thread takes too.
    while (taken) {
        OK(rmw.take(within.in, number, &taken, NULL));
    }
    UNTIL(rmw.take(within.in, number, &taken, NULL) == RMW_RET_OK && !taken);
    OK(rmw.subscription_set_on_new_message_callback(within.in, NULL, NULL));
    within.calls = 0;
    OK(rmw.subscription_set_on_new_message_callback(within.in, unsets, &within));
    publish(out, number);
    UNTIL(atomic_load(&within.calls) == 1);
    publish(out, number);
    rmw_wait_set_t *set = MADE(rmw.create_wait_set(&own.context, 1));
    wait_on(set, &(struct awaited){.subscription = within.in}, -1);
    CHECK(atomic_load(&within.calls) == 1);
    within.calls = within.taken = 0;
    OK(rmw.subscription_set_on_new_message_callback(within.in, replaces, &within));
    publish(out, number);
    UNTIL(atomic_load(&within.taken) == 2 || (pause_ms(1), publish(out, number), atomic_load(&within.taken) > 2));
    OK(rmw.subscription_set_on_new_message_callback(within.in, NULL, NULL));
    within.calls = 0;
    OK(rmw.subscription_set_on_new_message_callback(within.in, destroys, &within));
    publish(out, number);
    UNTIL(atomic_load(&within.calls) == 1);
    UNTIL(matched_subscriptions(out) == 0);

    // Text is bytes: what is no UTF-8 arrives as it was sent.
    static const char *const words[] = {"caf\xe9", "\xff\xfe\x80", "", "na\xc3\xafve \xc3"};
    rmw_publisher_t *says = publisher(&own, &TEXT, "/words", keep_last(10));
    rmw_subscription_t *hears = subscription(&own, &TEXT, "/words", keep_last(10));
    UNTIL(matched_subscriptions(says) == 1);
    void *text = TEXT.make();
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        text_set(text, words[i]);
        publish(says, text);
        text_set(text, "other");
        wait_on(set, &(struct awaited){.subscription = hears}, -1);
        OK(rmw.take(hears, text, &taken, NULL));
        CHECK(taken && strcmp(text_get(text), words[i]) == 0);
    }
    TEXT.drop(text);
    NUMBER.drop(number);
    OK(rmw.destroy_wait_set(set));
    OK(rmw.destroy_subscription(own.node, hears));
    OK(rmw.destroy_publisher(own.node, says));
    OK(rmw.destroy_publisher(own.node, out));
    leave(&own);
    done("taken, unset, replaced and destroyed by the callback");
}

// The newest requests and replies, as many as the depth says.
void scenario_depth(void) {
    struct participant own;
    join(&own, "depth", "/");
    rmw_qos_profile_t two = keep_last(2), three = keep_last(3);
    static _Atomic uint64_t told;
    rmw_service_t *answers = MADE(rmw.create_service(own.node, add_two_ints(), "/depth", &two));
    rmw_client_t *asks = MADE(rmw.create_client(own.node, add_two_ints(), "/depth", &three));
    rmw_wait_set_t *set = MADE(rmw.create_wait_set(&own.context, 1));
    bool is_there = false, taken = false;
    UNTIL(rmw.service_server_is_available(own.node, asks, &is_there) == RMW_RET_OK && is_there);
    void *request = REQUEST.make(), *response = RESPONSE.make();
    int64_t sent[5], a, b;
    rmw_service_info_t info;
    for (int i = 0; i < 5; i++) {
        request_set(request, i, 0);
        OK(rmw.send_request(asks, request, &sent[i]));
    }
    // Those that are kept are the newest.
    for (int i = 3; i < 5; i++) {
        wait_on(set, &(struct awaited){.service = answers}, -1);
        OK(rmw.take_request(answers, &info, request, &taken));
        request_get(request, &a, &b);
        CHECK(taken && a == i && info.request_id.sequence_number == sent[i]);
    }
    CHECK(!wait_on(set, &(struct awaited){.service = answers}, 0));
    OK(rmw.take_request(answers, &info, request, &taken));
    CHECK(!taken);
    // Callbacks are told of those that are pushed out too.
    OK(rmw.service_set_on_new_request_callback(answers, count_up, &told));
    for (int i = 0; i < 5; i++) {
        OK(rmw.send_request(asks, request, &sent[i]));
    }
    UNTIL(atomic_load(&told) == 5);
    OK(rmw.service_set_on_new_request_callback(answers, NULL, NULL));
    int left = 0;
    for (taken = true; taken; left += taken) {
        OK(rmw.take_request(answers, &info, request, &taken));
    }
    CHECK(left == 2);
    // The same for replies.
    for (int i = 0; i < 5; i++) {
        OK(rmw.send_request(asks, request, &sent[i]));
        wait_on(set, &(struct awaited){.service = answers}, -1);
        OK(rmw.take_request(answers, &info, request, &taken));
        response_set(response, i);
        OK(rmw.send_response(answers, &info.request_id, response));
    }
    for (int i = 2; i < 5; i++) {
        wait_on(set, &(struct awaited){.client = asks}, -1);
        OK(rmw.take_response(asks, &info, response, &taken));
        CHECK(taken && response_get(response) == i && info.request_id.sequence_number == sent[i]);
    }
    OK(rmw.take_response(asks, &info, response, &taken));
    CHECK(!taken);
    REQUEST.drop(request);
    RESPONSE.drop(response);
    OK(rmw.destroy_wait_set(set));
    OK(rmw.destroy_client(own.node, asks));
    OK(rmw.destroy_service(own.node, answers));
    leave(&own);
    done("2 of 5 requests, 3 of 5 replies");
}

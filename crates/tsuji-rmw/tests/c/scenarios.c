// What rcl does with an rmw implementation, and what it relies on, one scenario after the other. Those of two processes
// are started by tests/drive.rs side by side.
#include "scene.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)

static const uint32_t WIDTH = 1024, HEIGHT = 768;

static const struct message_type *type_of(const char *name) {
    const struct message_type *types[] = {&TEXT, &IMAGE, &NUMBER};
    const char *names[] = {"text", "image", "number"};
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(names[i], name) == 0) {
            return types[i];
        }
    }
    FAIL("no type is called %s", name);
}

// Which message it is, from whom, and contents that follow from the two.
static void fill(const struct message_type *type, void *message, uint64_t number, const char *gid) {
    if (type == &TEXT) {
        char words[256];
        snprintf(words, sizeof words, "Hello World: %" PRIu64 " from %s", number, gid);
        text_set(message, words);
    } else if (type == &IMAGE) {
        uint8_t *pixels = image_set(message, (int32_t)number, gid, WIDTH, HEIGHT);
        size_t words = (size_t)3 * WIDTH * HEIGHT / 8;
        for (size_t i = 0; i < words; i++) {
            uint64_t value = number * UINT64_C(0x9E3779B97F4A7C15) + i;
            memcpy(pixels + 8 * i, &value, 8);
        }
    } else {
        number_set(message, number);
    }
}

// Its number and from whom it says to be; ends the process if the contents do not follow from the two. The type that
// has no place for a GID leaves it as it is.
static uint64_t read_message(const struct message_type *type, const void *message, char *gid, size_t size) {
    if (type == &TEXT) {
        uint64_t number = 0;
        char format[64], from[128], again[256];
        snprintf(format, sizeof format, "Hello World: %%" SCNu64 " from %%127s");
        if (sscanf(text_get(message), format, &number, from) != 2) {
            FAIL("no such text was sent: %s", text_get(message));
        }
        snprintf(again, sizeof again, "Hello World: %" PRIu64 " from %s", number, from);
        if (strcmp(again, text_get(message)) != 0) {
            FAIL("no such text was sent: %s", text_get(message));
        }
        snprintf(gid, size, "%s", from);
        return number;
    }
    if (type == &IMAGE) {
        int32_t number;
        const char *frame;
        size_t bytes;
        const uint8_t *pixels = image_get(message, &number, &frame, &bytes);
        if (bytes != (size_t)3 * WIDTH * HEIGHT) {
            FAIL("a picture of %zu bytes", bytes);
        }
        for (size_t i = 0; i < bytes / 8; i++) {
            uint64_t value;
            memcpy(&value, pixels + 8 * i, 8);
            if (value != (uint64_t)number * UINT64_C(0x9E3779B97F4A7C15) + i) {
                FAIL("picture %d is wrong from byte %zu on", number, 8 * i);
            }
        }
        snprintf(gid, size, "%s", frame);
        return (uint64_t)number;
    }
    return number_get(message);
}

static void gid_text(char *text, const rmw_gid_t *gid) { hex(text, gid->data, sizeof gid->data); }

void scenario_talker(void) {
    const struct message_type *type = type_of(word("type", "text"));
    uint64_t count = number("count", 1000), listeners = number("listeners", 1);
    bool for_ever = number("for_ever", 0), loaned = number("loaned", 0);

    struct participant own;
    join(&own, word("node", "talker"), "/");
    rmw_publisher_t *out = publisher(&own, type, word("topic", "/chatter"), keep_all());
    char gid[2 * RMW_GID_STORAGE_SIZE + 1];
    rmw_gid_t is;
    OK(rmw.get_gid_for_publisher(out, &is));
    gid_text(gid, &is);
    if (loaned) {
        CHECK(out->can_loan_messages);
    }
    UNTIL(matched_subscriptions(out) >= listeners);

    void *message = type->make();
    uint64_t sent = 0;
    while (for_ever || sent < count) {
        sent++;
        if (loaned) {
            void *loan = NULL;
            OK(rmw.borrow_loaned_message(out, type->support(), &loan));
            CHECK(loan != NULL);
            fill(type, loan, sent, gid);
            OK(rmw.publish_loaned_message(out, loan, NULL));
        } else {
            fill(type, message, sent, gid);
            publish(out, message);
        }
        if (for_ever) {
            pause_ms(1);
        }
    }
    rmw_ret_t acked = rmw.publisher_wait_for_all_acked(out, (rmw_time_t){30, 0});
    if (acked != RMW_RET_OK && acked != RMW_RET_UNSUPPORTED) {
        FAIL("rmw_publisher_wait_for_all_acked returns %d", acked);
    }
    rcutils_reset_error();
    // A listener goes when it has all.
    UNTIL(matched_subscriptions(out) == 0);
    type->drop(message);

    shut_down(&own);
    OK(rmw.destroy_publisher(own.node, out));
    clear_up(&own);
    done("sent %" PRIu64 " of %s%s", sent, type->name, acked == RMW_RET_OK ? ", all acknowledged" : "");
}

struct last_info {
    uint64_t publication, reception;
    rmw_time_point_value_t source;
};

// What rmw.h says of rmw_message_info_t, from one publisher's message to its next.
static void check_info(const rmw_message_info_t *info, struct last_info *last, bool is_first) {
    static const char *identifier;
    if (!identifier) {
        identifier = rmw.get_implementation_identifier();
    }
    if (info->publisher_gid.implementation_identifier != identifier) {
        FAIL("the GID is of %s", info->publisher_gid.implementation_identifier);
    }
    int64_t now = wall_ns();
    if (info->source_timestamp > now || info->source_timestamp < now - 3600 * 1000 * MS) {
        FAIL("the source timestamp is %" PRId64 ", and now is %" PRId64, info->source_timestamp, now);
    }
    if (info->received_timestamp != 0 &&
        (info->received_timestamp < info->source_timestamp || info->received_timestamp > now)) {
        FAIL("received at %" PRId64 ", sent at %" PRId64 ", and now is %" PRId64, info->received_timestamp,
             info->source_timestamp, now);
    }
    bool counts_sent = rmw.feature_supported(RMW_FEATURE_MESSAGE_INFO_PUBLICATION_SEQUENCE_NUMBER);
    bool counts_received = rmw.feature_supported(RMW_FEATURE_MESSAGE_INFO_RECEPTION_SEQUENCE_NUMBER);
    if (counts_sent != (info->publication_sequence_number != RMW_MESSAGE_INFO_SEQUENCE_NUMBER_UNSUPPORTED) ||
        counts_received != (info->reception_sequence_number != RMW_MESSAGE_INFO_SEQUENCE_NUMBER_UNSUPPORTED)) {
        FAIL("sequence numbers are not as rmw_feature_supported says");
    }
    if (!is_first) {
        if (counts_sent && info->publication_sequence_number != last->publication + 1) {
            FAIL("number %" PRIu64 " of the publisher's after %" PRIu64, info->publication_sequence_number,
                 last->publication);
        }
        if (counts_received && info->reception_sequence_number != last->reception + 1) {
            FAIL("number %" PRIu64 " of the subscription's after %" PRIu64, info->reception_sequence_number,
                 last->reception);
        }
        if (info->source_timestamp < last->source) {
            FAIL("sent before the message before it");
        }
    }
    last->publication = info->publication_sequence_number;
    last->reception = info->reception_sequence_number;
    last->source = info->source_timestamp;
}

void scenario_listener(void) {
    const struct message_type *type = type_of(word("type", "text"));
    uint64_t count = number("count", 1000), talkers = number("talkers", 1);
    bool loaned = number("loaned", 0);
    // After so many messages of a talker's the parent is told, and the next talker awaited.
    bool many_lives = talkers > 1;

    struct participant own;
    join(&own, word("node", "listener"), "/");
    rmw_subscription_t *in = subscription(&own, type, word("topic", "/chatter"), keep_all());
    rmw_wait_set_t *set = MADE(rmw.create_wait_set(&own.context, 4));
    if (loaned) {
        CHECK(in->can_loan_messages);
    }

    void *message = type->make();
    char from[128] = "", gid[2 * RMW_GID_STORAGE_SIZE + 1], current[sizeof gid] = "";
    struct last_info last = {0, 0, 0};
    uint64_t received = 0, talker_number = 0, of_this_talker = 0, waits = 0;
    int64_t latency_sum = 0;
    double start = 0;
    bool enough = false;
    while (!enough) {
        struct awaited awaited = {.subscription = in};
        waits++;
        wait_on(set, &awaited, -1);
        while (!enough) {
            rmw_message_info_t info;
            memset(&info, 0, sizeof info);
            bool taken = false;
            void *loan = NULL;
            rmw_ret_t is = loaned ? rmw.take_loaned_message_with_info(in, &loan, &taken, &info, NULL)
                                  : rmw.take_with_info(in, message, &taken, &info, NULL);
            if (is != RMW_RET_OK) {
                FAIL("the take of message %" PRIu64 " returns %d", received + 1, is);
            }
            if (!taken) {
                break;
            }
            if (received++ == 0) {
                start = seconds_now();
            }
            gid_text(gid, &info.publisher_gid);
            snprintf(from, sizeof from, "%s", gid);
            uint64_t number_of = read_message(type, loaned ? loan : message, from, sizeof from);
            if (strcmp(from, gid) != 0) {
                FAIL("message %" PRIu64 " is from %s, and its info says %s", number_of, from, gid);
            }
            bool is_new = strcmp(current, gid) != 0;
            if (is_new) {
                memcpy(current, gid, sizeof current);
                talker_number++;
                of_this_talker = 0;
            }
            if (number_of != of_this_talker + 1) {
                FAIL("message %" PRIu64 " after %" PRIu64, number_of, of_this_talker);
            }
            of_this_talker = number_of;
            if (many_lives) {
                // What the reception numbers of a talker's messages are depends on those of the one before.
                struct last_info here = last;
                check_info(&info, &here, is_new);
                last = here;
            } else {
                check_info(&info, &last, is_new);
            }
            latency_sum += wall_ns() - info.source_timestamp;
            if (loaned) {
                OK(rmw.return_loaned_message_from_subscription(in, loan));
            }
            alive_quietly();
            if (many_lives && of_this_talker == count) {
                tell("heard %" PRIu64, talker_number);
            }
            enough = talker_number == talkers && of_this_talker == count;
        }
    }
    double seconds = seconds_now() - start;
    if (many_lives) {
        // The parent kills the last of them too.
        UNTIL(matched_publishers(in) == 0);
    }
    type->drop(message);
    OK(rmw.destroy_wait_set(set));
    OK(rmw.destroy_subscription(own.node, in));
    leave(&own);
    done("received %" PRIu64 " of %s, %.0f/s, on average %.1f us after they were sent, in %" PRIu64 " waits", received,
         type->name, seconds > 0 ? (double)(received - 1) / seconds : 0,
         (double)latency_sum / 1000 / (double)received, waits);
}

enum { SUBSCRIPTIONS = 250, GUARDS = 500, SERVICES = 125, CLIENTS = SERVICES };

struct crowd {
    rmw_subscription_t *subscriptions[SUBSCRIPTIONS];
    rmw_guard_condition_t *guards[GUARDS];
    rmw_service_t *services[SERVICES];
    rmw_client_t *clients[CLIENTS];
    rmw_wait_set_t *set;
};

enum kind { NOTHING, SUBSCRIPTION, GUARD, SERVICE, CLIENT };

// Waits for all, and ends the process unless just the one is ready.
static void only(struct crowd *crowd, enum kind kind, size_t index, const rmw_time_t *timeout) {
    static void *subscriptions[SUBSCRIPTIONS], *guards[GUARDS], *services[SERVICES], *clients[CLIENTS];
    for (size_t i = 0; i < SUBSCRIPTIONS; i++) {
        subscriptions[i] = crowd->subscriptions[i]->data;
    }
    for (size_t i = 0; i < GUARDS; i++) {
        guards[i] = crowd->guards[i]->data;
    }
    for (size_t i = 0; i < SERVICES; i++) {
        services[i] = crowd->services[i]->data;
        clients[i] = crowd->clients[i]->data;
    }
    rmw_subscriptions_t a = {SUBSCRIPTIONS, subscriptions};
    rmw_guard_conditions_t b = {GUARDS, guards};
    rmw_services_t c = {SERVICES, services};
    rmw_clients_t d = {CLIENTS, clients};
    rmw_events_t e = {0, NULL};
    rmw_ret_t is = rmw.wait(&a, &b, &c, &d, &e, crowd->set, timeout);
    if (is != (kind == NOTHING ? RMW_RET_TIMEOUT : RMW_RET_OK)) {
        FAIL("rmw_wait returns %d where kind %d number %zu is ready", is, kind, index);
    }
    rcutils_reset_error();
    struct { enum kind kind; void **handles; size_t count; } all[] = {
        {SUBSCRIPTION, subscriptions, SUBSCRIPTIONS},
        {GUARD, guards, GUARDS},
        {SERVICE, services, SERVICES},
        {CLIENT, clients, CLIENTS},
    };
    for (size_t k = 0; k < 4; k++) {
        for (size_t i = 0; i < all[k].count; i++) {
            bool shall = all[k].kind == kind && i == index;
            if ((all[k].handles[i] != NULL) != shall) {
                FAIL("kind %d number %zu %s, where kind %d number %zu is ready", all[k].kind, i,
                     shall ? "is not ready" : "is ready too", kind, index);
            }
        }
    }
    alive_quietly();
}

void scenario_waitset1000(void) {
    static struct crowd crowd;
    static rmw_publisher_t *publishers[SUBSCRIPTIONS];
    const rmw_time_t at_once = {0, 0};
    struct participant own;
    join(&own, "crowd", "/");
    char name[64];
    for (size_t i = 0; i < SUBSCRIPTIONS; i++) {
        snprintf(name, sizeof name, "/crowd/topic%zu", i);
        crowd.subscriptions[i] = subscription(&own, &TEXT, name, keep_last(4));
        publishers[i] = publisher(&own, &TEXT, name, keep_last(4));
    }
    for (size_t i = 0; i < GUARDS; i++) {
        crowd.guards[i] = MADE(rmw.create_guard_condition(&own.context));
    }
    for (size_t i = 0; i < SERVICES; i++) {
        snprintf(name, sizeof name, "/crowd/service%zu", i);
        crowd.services[i] = service(&own, name);
        crowd.clients[i] = client(&own, name);
    }
    crowd.set = MADE(rmw.create_wait_set(&own.context, SUBSCRIPTIONS + GUARDS + SERVICES + CLIENTS));
    for (size_t i = 0; i < SUBSCRIPTIONS; i++) {
        UNTIL(matched_subscriptions(publishers[i]) == 1);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        bool is_there = false;
        UNTIL(rmw.service_server_is_available(own.node, crowd.clients[i], &is_there) == RMW_RET_OK && is_there);
    }

    double start = seconds_now();
    only(&crowd, NOTHING, 0, &at_once);
    double before = seconds_now();
    only(&crowd, NOTHING, 0, &(rmw_time_t){0, 50000000});
    CHECK(seconds_now() - before >= 0.05);

    void *text = TEXT.make(), *request = REQUEST.make(), *response = RESPONSE.make();
    for (size_t i = 0; i < SUBSCRIPTIONS; i++) {
        snprintf(name, sizeof name, "for %zu", i);
        text_set(text, name);
        publish(publishers[i], text);
        only(&crowd, SUBSCRIPTION, i, NULL);
        // As long as it is not taken it stays ready.
        only(&crowd, SUBSCRIPTION, i, &at_once);
        bool taken = false;
        OK(rmw.take(crowd.subscriptions[i], text, &taken, NULL));
        CHECK(taken && strcmp(text_get(text), name) == 0);
        OK(rmw.take(crowd.subscriptions[i], text, &taken, NULL));
        CHECK(!taken);
    }
    only(&crowd, NOTHING, 0, &at_once);
    for (size_t i = 0; i < GUARDS; i++) {
        OK(rmw.trigger_guard_condition(crowd.guards[i]));
        if (i % 2) {
            OK(rmw.trigger_guard_condition(crowd.guards[i]));
        }
        only(&crowd, GUARD, i, NULL);
    }
    // To have been waited for resets a guard condition, however often it was triggered.
    only(&crowd, NOTHING, 0, &at_once);
    for (size_t i = 0; i < SERVICES; i++) {
        int64_t sent = 0, a = 0, b = 0;
        request_set(request, (int64_t)i, 1000);
        OK(rmw.send_request(crowd.clients[i], request, &sent));
        only(&crowd, SERVICE, i, NULL);
        only(&crowd, SERVICE, i, &at_once);
        rmw_service_info_t info;
        bool taken = false;
        OK(rmw.take_request(crowd.services[i], &info, request, &taken));
        CHECK(taken);
        request_get(request, &a, &b);
        CHECK(a == (int64_t)i && b == 1000);
        response_set(response, a + b);
        OK(rmw.send_response(crowd.services[i], &info.request_id, response));
        only(&crowd, CLIENT, i, NULL);
        only(&crowd, CLIENT, i, &at_once);
        taken = false;
        OK(rmw.take_response(crowd.clients[i], &info, response, &taken));
        CHECK(taken && response_get(response) == (int64_t)i + 1000);
        CHECK(info.request_id.sequence_number == sent);
    }
    only(&crowd, NOTHING, 0, &at_once);
    double seconds = seconds_now() - start;
    TEXT.drop(text);
    REQUEST.drop(request);
    RESPONSE.drop(response);

    OK(rmw.destroy_wait_set(crowd.set));
    for (size_t i = 0; i < SUBSCRIPTIONS; i++) {
        OK(rmw.destroy_subscription(own.node, crowd.subscriptions[i]));
        OK(rmw.destroy_publisher(own.node, publishers[i]));
    }
    for (size_t i = 0; i < GUARDS; i++) {
        OK(rmw.destroy_guard_condition(crowd.guards[i]));
    }
    for (size_t i = 0; i < SERVICES; i++) {
        OK(rmw.destroy_client(own.node, crowd.clients[i]));
        OK(rmw.destroy_service(own.node, crowd.services[i]));
    }
    leave(&own);
    done("%d entities, each ready alone, %d waits in %.2f s", SUBSCRIPTIONS + GUARDS + SERVICES + CLIENTS,
         2 * SUBSCRIPTIONS + GUARDS + 4 * SERVICES + 5, seconds);
}

struct vigil {
    struct participant own;
    rmw_guard_condition_t *guard;
    rmw_publisher_t *out;
    rmw_subscription_t *in;
    uint64_t count;
    // How many guard conditions and messages the waiting thread has seen.
    _Atomic uint64_t guards_seen, messages_seen;
    uint64_t waits, timeouts;
    _Atomic bool over;
};

static void *keep_vigil(void *argument) {
    struct vigil *vigil = argument;
    uint64_t state = 77;
    rmw_wait_set_t *set = MADE(rmw.create_wait_set(&vigil->own.context, 2));
    void *number = NUMBER.make();
    while (!atomic_load(&vigil->over)) {
        struct awaited awaited = {.subscription = vigil->in, .guard = vigil->guard};
        // Half of the waits end by themselves, some at the very moment of a trigger.
        int64_t timeout = dice(&state) % 2 ? -1 : (int64_t)(dice(&state) % 60) * 1000;
        vigil->waits++;
        if (!wait_on(set, &awaited, timeout)) {
            vigil->timeouts++;
            continue;
        }
        if (awaited.subscription) {
            bool taken = true;
            for (;;) {
                if (rmw.take(vigil->in, number, &taken, NULL) != RMW_RET_OK) {
                    FAIL("rmw_take");
                }
                if (!taken) {
                    break;
                }
                uint64_t seen = atomic_load(&vigil->messages_seen);
                if (number_get(number) != seen + 1) {
                    FAIL("message %" PRIu64 " after %" PRIu64, number_get(number), seen);
                }
                atomic_store(&vigil->messages_seen, seen + 1);
            }
        }
        if (awaited.guard) {
            atomic_fetch_add(&vigil->guards_seen, 1);
        }
    }
    NUMBER.drop(number);
    OK(rmw.destroy_wait_set(set));
    return NULL;
}

static void spin(uint64_t times) {
    for (volatile uint64_t i = 0; i < times; i++) {
    }
}

void scenario_lostwake(void) {
    static struct vigil vigil;
    vigil.count = number("count", 20000);
    join(&vigil.own, "vigil", "/");
    vigil.guard = MADE(rmw.create_guard_condition(&vigil.own.context));
    vigil.out = publisher(&vigil.own, &NUMBER, "/vigil", keep_all());
    vigil.in = subscription(&vigil.own, &NUMBER, "/vigil", keep_all());
    UNTIL(matched_subscriptions(vigil.out) == 1);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, keep_vigil, &vigil) == 0);

    uint64_t state = 4711, guards = 0, messages = 0;
    void *number = NUMBER.make();
    double start = seconds_now();
    // One at a time: what is lost here is never seen, and the watchdog says so.
    for (uint64_t i = 0; i < vigil.count; i++) {
        spin(dice(&state) % 20000);
        if (dice(&state) % 2) {
            guards++;
            OK(rmw.trigger_guard_condition(vigil.guard));
            while (atomic_load(&vigil.guards_seen) < guards) {
                sched_yield();
            }
        } else {
            number_set(number, ++messages);
            publish(vigil.out, number);
            while (atomic_load(&vigil.messages_seen) < messages) {
                sched_yield();
            }
        }
        CHECK(atomic_load(&vigil.guards_seen) == guards);
    }
    // Many at a time: each message is seen; triggers may be seen together, the last of them after it was made.
    uint64_t alone = messages;
    for (uint64_t i = 0; i < vigil.count; i++) {
        spin(dice(&state) % 500);
        number_set(number, ++messages);
        publish(vigil.out, number);
    }
    UNTIL(atomic_load(&vigil.messages_seen) == messages);
    for (uint64_t i = 0; i < vigil.count; i++) {
        OK(rmw.trigger_guard_condition(vigil.guard));
    }
    double seconds = seconds_now() - start;
    atomic_store(&vigil.over, true);
    OK(rmw.trigger_guard_condition(vigil.guard));
    CHECK(pthread_join(thread, NULL) == 0);
    NUMBER.drop(number);
    OK(rmw.destroy_publisher(vigil.own.node, vigil.out));
    OK(rmw.destroy_subscription(vigil.own.node, vigil.in));
    OK(rmw.destroy_guard_condition(vigil.guard));
    leave(&vigil.own);
    done("%" PRIu64 " triggers and %" PRIu64 " messages alone, %" PRIu64 " messages in a row, all seen in %.1f s; %" PRIu64
         " waits, %" PRIu64 " of them timed out",
         guards, alone, messages - alone, seconds, vigil.waits, vigil.timeouts);
}

static void check_service_info(const rmw_service_info_t *info) {
    int64_t now = wall_ns();
    if (info->source_timestamp > now || info->source_timestamp < now - 3600 * 1000 * MS) {
        FAIL("the source timestamp is %" PRId64 ", and now is %" PRId64, info->source_timestamp, now);
    }
    if (info->received_timestamp != 0 && info->received_timestamp < info->source_timestamp) {
        FAIL("received before it was sent");
    }
}

void scenario_server(void) {
    uint64_t count = number("count", 1000), clients = number("clients", 2), served = 0;
    struct participant own;
    join(&own, "server", "/");
    rmw_service_t *in = service(&own, "/add_two_ints");
    rmw_wait_set_t *set = MADE(rmw.create_wait_set(&own.context, 1));
    void *request = REQUEST.make(), *response = RESPONSE.make();
    // Who asked, and its last number.
    struct { rmw_request_id_t id; int64_t name; uint64_t requests; } guests[8];
    size_t guest_count = 0;
    memset(guests, 0, sizeof guests);
    while (served < count * clients) {
        struct awaited awaited = {.service = in};
        wait_on(set, &awaited, -1);
        for (;;) {
            rmw_service_info_t info;
            bool taken = false;
            memset(&info, 0, sizeof info);
            OK(rmw.take_request(in, &info, request, &taken));
            if (!taken) {
                break;
            }
            check_service_info(&info);
            int64_t a, b;
            request_get(request, &a, &b);
            size_t guest = 0;
            while (guest < guest_count &&
                   memcmp(guests[guest].id.writer_guid, info.request_id.writer_guid, sizeof info.request_id.writer_guid)) {
                guest++;
            }
            if (guest == guest_count) {
                CHECK(guest_count < clients);
                guest_count++;
                guests[guest].name = a;
            } else {
                // A GUID is one client's, and its requests come in their order.
                CHECK(guests[guest].name == a);
                CHECK(info.request_id.sequence_number > guests[guest].id.sequence_number);
            }
            guests[guest].id = info.request_id;
            CHECK(b == (int64_t)guests[guest].requests);
            guests[guest].requests++;
            response_set(response, a + b);
            OK(rmw.send_response(in, &info.request_id, response));
            served++;
        }
    }
    CHECK(guest_count == clients);
    tell("served");
    // A reply that was sent last may be on its way: the parent says when the clients are done.
    told();
    REQUEST.drop(request);
    RESPONSE.drop(response);
    OK(rmw.destroy_wait_set(set));
    OK(rmw.destroy_service(own.node, in));
    leave(&own);
    done("%" PRIu64 " requests of %zu clients", served, guest_count);
}

void scenario_client(void) {
    int64_t name = (int64_t)number("name", 1) * 1000000;
    uint64_t count = number("count", 1000), window = number("window", 4);
    struct participant own;
    join(&own, word("node", "client"), "/");
    rmw_client_t *out = client(&own, "/add_two_ints");
    rmw_wait_set_t *set = MADE(rmw.create_wait_set(&own.context, 1));
    bool is_there = false;
    UNTIL(rmw.service_server_is_available(own.node, out, &is_there) == RMW_RET_OK && is_there);

    void *request = REQUEST.make(), *response = RESPONSE.make();
    int64_t *numbers = calloc(count, sizeof *numbers);
    bool *answered = calloc(count, sizeof *answered);
    uint64_t sent = 0, received = 0;
    double start = seconds_now();
    while (received < count) {
        while (sent < count && sent - received < window) {
            request_set(request, name, (int64_t)sent);
            OK(rmw.send_request(out, request, &numbers[sent]));
            CHECK(sent == 0 || numbers[sent] > numbers[sent - 1]);
            sent++;
        }
        struct awaited awaited = {.client = out};
        wait_on(set, &awaited, -1);
        for (;;) {
            rmw_service_info_t info;
            bool taken = false;
            memset(&info, 0, sizeof info);
            OK(rmw.take_response(out, &info, response, &taken));
            if (!taken) {
                break;
            }
            check_service_info(&info);
            int64_t which = response_get(response) - name;
            CHECK(which >= 0 && which < (int64_t)sent && !answered[which]);
            CHECK(info.request_id.sequence_number == numbers[which]);
            answered[which] = true;
            received++;
        }
    }
    double seconds = seconds_now() - start;
    free(numbers);
    free(answered);
    REQUEST.drop(request);
    RESPONSE.drop(response);
    OK(rmw.destroy_wait_set(set));
    OK(rmw.destroy_client(own.node, out));
    leave(&own);
    done("%" PRIu64 " calls, %" PRIu64 " at a time, %.0f/s", received, window, (double)received / seconds);
}

static rmw_serialized_message_t bytes_of(const char *text) {
    rmw_serialized_message_t bytes = rcutils_get_zero_initialized_uint8_array();
    rcutils_allocator_t allocator = rcutils_get_default_allocator();
    CHECK(rcutils_uint8_array_init(&bytes, strlen(text) / 2, &allocator) == RCUTILS_RET_OK);
    for (size_t i = 0; text[2 * i]; i++) {
        unsigned byte;
        sscanf(text + 2 * i, "%2x", &byte);
        bytes.buffer[i] = (uint8_t)byte;
    }
    bytes.buffer_length = strlen(text) / 2;
    return bytes;
}

static rmw_serialized_message_t no_bytes(void) {
    rmw_serialized_message_t bytes = rcutils_get_zero_initialized_uint8_array();
    rcutils_allocator_t allocator = rcutils_get_default_allocator();
    // rclcpp begins with none, and the implementation makes room.
    CHECK(rcutils_uint8_array_init(&bytes, 0, &allocator) == RCUTILS_RET_OK);
    return bytes;
}

static void bytes_free(rmw_serialized_message_t *bytes) { CHECK(rcutils_uint8_array_fini(bytes) == RCUTILS_RET_OK); }

static void check_bytes(const char *what, const rmw_serialized_message_t *is, const char *shall) {
    char *text = malloc(2 * is->buffer_length + 1);
    hex(text, is->buffer, is->buffer_length);
    if (strcmp(text, shall) != 0) {
        FAIL("%s is\n%s\ninstead of\n%s", what, text, shall);
    }
    free(text);
}

// Both ways, and once more over what is in the message already.
static void check_both_ways(const struct message_type *type, const void *message, const char *shall) {
    rmw_serialized_message_t bytes = no_bytes();
    OK(rmw.serialize(message, type->support(), &bytes));
    check_bytes(type->name, &bytes, shall);
    void *again = type->make();
    for (int i = 0; i < 2; i++) {
        OK(rmw.deserialize(&bytes, type->support(), again));
        rmw_serialized_message_t second = no_bytes();
        OK(rmw.serialize(again, type->support(), &second));
        check_bytes(type->name, &second, shall);
        bytes_free(&second);
    }
    // Cut anywhere it is refused, or padding was cut.
    for (size_t length = 0; length < bytes.buffer_length; length++) {
        rmw_serialized_message_t cut = bytes;
        // A copy of just these bytes, so that whoever reads on is found out by a memory checker.
        cut.buffer = malloc(length ? length : 1);
        memcpy(cut.buffer, bytes.buffer, length);
        cut.buffer_length = cut.buffer_capacity = length;
        if (rmw.deserialize(&cut, type->support(), again) == RMW_RET_OK) {
            FAIL("%s of %zu bytes is accepted with %zu", type->name, bytes.buffer_length, length);
        }
        rcutils_reset_error();
        free(cut.buffer);
        alive_quietly();
    }
    type->drop(again);
    bytes_free(&bytes);
}

void scenario_serialize(void) {
    const char *hello = "00010000" "06000000" "68656c6c6f00";
    void *text = TEXT.make();
    text_set(text, "hello");
    check_both_ways(&TEXT, text, hello);
    text_set(text, "");
    check_both_ways(&TEXT, text, "00010000" "01000000" "00");
    // Another byte order than this machine's.
    rmw_serialized_message_t foreign = bytes_of("00000000" "00000006" "776f726c6400");
    OK(rmw.deserialize(&foreign, TEXT.support(), text));
    CHECK(strcmp(text_get(text), "world") == 0);
    bytes_free(&foreign);

    void *request = REQUEST.make();
    request_set(request, 1, -2);
    check_both_ways(&REQUEST, request, "00010000" "0100000000000000" "feffffffffffffff");
    REQUEST.drop(request);

    void *image = IMAGE.make();
    uint8_t *pixels = image_set(image, 7, "eye", 2, 1);
    for (uint8_t i = 0; i < 6; i++) {
        pixels[i] = (uint8_t)(0xa0 + i);
    }
    check_both_ways(&IMAGE, image,
                    "00010000"
                    // stamp; frame_id
                    "0700000000000000" "0400000065796500"
                    // height, width; encoding; is_bigendian
                    "0100000002000000" "050000007267623800" "00" "0000"
                    // step; data
                    "06000000" "06000000" "a0a1a2a3a4a5");
    IMAGE.drop(image);

    struct participant own;
    join(&own, "bytes", "/");
    rmw_publisher_t *out = publisher(&own, &TEXT, "/bytes", keep_last(10));
    rmw_subscription_t *in = subscription(&own, &TEXT, "/bytes", keep_last(10));
    rmw_wait_set_t *set = MADE(rmw.create_wait_set(&own.context, 1));
    UNTIL(matched_subscriptions(out) == 1);
    rmw_serialized_message_t bytes = bytes_of(hello), taken_bytes = no_bytes();
    rmw_message_info_t info;
    rmw_gid_t gid;
    bool taken = false, equal = false;
    OK(rmw.get_gid_for_publisher(out, &gid));

    // From bytes to a message.
    OK(rmw.publish_serialized_message(out, &bytes, NULL));
    wait_on(set, &(struct awaited){.subscription = in}, -1);
    OK(rmw.take(in, text, &taken, NULL));
    CHECK(taken && strcmp(text_get(text), "hello") == 0);
    // From a message to bytes.
    text_set(text, "hello");
    publish(out, text);
    wait_on(set, &(struct awaited){.subscription = in}, -1);
    taken = false;
    OK(rmw.take_serialized_message(in, &taken_bytes, &taken, NULL));
    CHECK(taken);
    check_bytes("rmw_take_serialized_message", &taken_bytes, hello);
    // From bytes to bytes.
    OK(rmw.publish_serialized_message(out, &bytes, NULL));
    wait_on(set, &(struct awaited){.subscription = in}, -1);
    taken = false;
    OK(rmw.take_serialized_message_with_info(in, &taken_bytes, &taken, &info, NULL));
    CHECK(taken);
    check_bytes("rmw_take_serialized_message_with_info", &taken_bytes, hello);
    OK(rmw.compare_gids_equal(&gid, &info.publisher_gid, &equal));
    CHECK(equal);
    OK(rmw.take_serialized_message(in, &taken_bytes, &taken, NULL));
    CHECK(!taken);

    bytes_free(&bytes);
    bytes_free(&taken_bytes);
    TEXT.drop(text);
    OK(rmw.destroy_wait_set(set));
    OK(rmw.destroy_subscription(own.node, in));
    OK(rmw.destroy_publisher(own.node, out));
    leave(&own);
    done("as given, cut at every byte, and over a topic from and to bytes");
}

void scenario_loaned(void) {
    struct participant own;
    join(&own, "loaned", "/");
    rmw_publisher_t *out = publisher(&own, &NUMBER, "/loaned", keep_last(10));
    rmw_subscription_t *in = subscription(&own, &NUMBER, "/loaned", keep_last(10));
    rmw_publisher_t *words_out = publisher(&own, &TEXT, "/words", keep_last(10));
    rmw_wait_set_t *set = MADE(rmw.create_wait_set(&own.context, 1));
    CHECK(out->can_loan_messages && in->can_loan_messages);
    // Its string is memory of its own.
    CHECK(!words_out->can_loan_messages);
    UNTIL(matched_subscriptions(out) == 1);

    void *loan = NULL;
    bool taken = false;
    REFUSED(RMW_RET_UNSUPPORTED, rmw.borrow_loaned_message(words_out, TEXT.support(), &loan));
    CHECK(loan == NULL);
    // Returned, it is never seen.
    OK(rmw.borrow_loaned_message(out, NUMBER.support(), &loan));
    CHECK(loan != NULL && number_get(loan) == 0);
    number_set(loan, 13);
    OK(rmw.return_loaned_message_from_publisher(out, loan));
    // Where the place is taken already: the second message would be forgotten.
    loan = NULL;
    OK(rmw.borrow_loaned_message(out, NUMBER.support(), &loan));
    number_set(loan, 42);
    REFUSED(RMW_RET_INVALID_ARGUMENT, rmw.borrow_loaned_message(out, NUMBER.support(), &loan));
    OK(rmw.publish_loaned_message(out, loan, NULL));
    // It is the middleware's now.
    NOT_OK(rmw.return_loaned_message_from_publisher(out, loan));

    rmw_message_info_t info;
    rmw_gid_t gid;
    bool equal = false;
    void *seen = NULL;
    OK(rmw.get_gid_for_publisher(out, &gid));
    wait_on(set, &(struct awaited){.subscription = in}, -1);
    OK(rmw.take_loaned_message_with_info(in, &seen, &taken, &info, NULL));
    CHECK(taken && seen != NULL && number_get(seen) == 42);
    OK(rmw.compare_gids_equal(&gid, &info.publisher_gid, &equal));
    CHECK(equal);
    OK(rmw.return_loaned_message_from_subscription(in, seen));
    NOT_OK(rmw.return_loaned_message_from_subscription(in, seen));
    seen = NULL;
    OK(rmw.take_loaned_message(in, &seen, &taken, NULL));
    CHECK(!taken && seen == NULL);

    // Several at a time, given back in another order; a loan taken as a copy, and a copy taken as a loan.
    void *loans[5] = {NULL};
    for (uint64_t i = 0; i < 5; i++) {
        OK(rmw.borrow_loaned_message(out, NUMBER.support(), &loans[i]));
        number_set(loans[i], i);
    }
    for (int i = 4; i >= 0; i--) {
        OK(rmw.publish_loaned_message(out, loans[i], NULL));
    }
    void *held[5] = {NULL};
    for (int i = 0; i < 5; i++) {
        wait_on(set, &(struct awaited){.subscription = in}, -1);
        OK(rmw.take_loaned_message(in, &held[i], &taken, NULL));
        CHECK(taken && number_get(held[i]) == (uint64_t)(4 - i));
    }
    for (int i = 0; i < 5; i++) {
        CHECK(number_get(held[i]) == (uint64_t)(4 - i));
        OK(rmw.return_loaned_message_from_subscription(in, held[i]));
    }
    void *copy = NUMBER.make();
    loan = NULL;
    OK(rmw.borrow_loaned_message(out, NUMBER.support(), &loan));
    number_set(loan, 5);
    OK(rmw.publish_loaned_message(out, loan, NULL));
    wait_on(set, &(struct awaited){.subscription = in}, -1);
    OK(rmw.take(in, copy, &taken, NULL));
    CHECK(taken && number_get(copy) == 5);
    number_set(copy, 6);
    publish(out, copy);
    wait_on(set, &(struct awaited){.subscription = in}, -1);
    seen = NULL;
    OK(rmw.take_loaned_message(in, &seen, &taken, NULL));
    CHECK(taken && number_get(seen) == 6);
    OK(rmw.return_loaned_message_from_subscription(in, seen));
    NUMBER.drop(copy);
    // One that nobody gives back goes with its publisher.
    loan = NULL;
    OK(rmw.borrow_loaned_message(out, NUMBER.support(), &loan));

    OK(rmw.destroy_wait_set(set));
    OK(rmw.destroy_subscription(own.node, in));
    OK(rmw.destroy_publisher(own.node, out));
    OK(rmw.destroy_publisher(own.node, words_out));
    leave(&own);
    done("lent, published, taken, given back");
}

void scenario_sequence(void) {
    enum { ROOM = 8 };
    struct participant own;
    join(&own, "sequence", "/");
    rmw_publisher_t *out = publisher(&own, &TEXT, "/sequence", keep_last(20));
    rmw_subscription_t *in = subscription(&own, &TEXT, "/sequence", keep_last(20));
    rmw_wait_set_t *set = MADE(rmw.create_wait_set(&own.context, 1));
    UNTIL(matched_subscriptions(out) == 1);
    void *text = TEXT.make(), *texts[ROOM];
    rmw_message_info_t infos[ROOM];
    rcutils_allocator_t allocator = rcutils_get_default_allocator();
    for (size_t i = 0; i < ROOM; i++) {
        texts[i] = TEXT.make();
    }
    rmw_message_sequence_t messages = {texts, 0, ROOM, &allocator};
    rmw_message_info_sequence_t message_infos = {infos, 0, ROOM, &allocator};
    char words[16];
    for (int i = 0; i < 11; i++) {
        snprintf(words, sizeof words, "%d", i);
        text_set(text, words);
        publish(out, text);
    }
    // As many as there are and as there is room for, in their order.
    int next = 0;
    while (next < 11) {
        size_t taken = 0, count = next < 3 ? 3 : ROOM;
        wait_on(set, &(struct awaited){.subscription = in}, -1);
        messages.size = message_infos.size = 0;
        OK(rmw.take_sequence(in, count, &messages, &message_infos, &taken, NULL));
        CHECK(taken >= 1 && taken <= count && messages.size == taken && message_infos.size == taken);
        for (size_t i = 0; i < taken; i++) {
            snprintf(words, sizeof words, "%d", next++);
            CHECK(strcmp(text_get(messages.data[i]), words) == 0);
            CHECK(i == 0 || message_infos.data[i].source_timestamp >= message_infos.data[i - 1].source_timestamp);
        }
    }
    size_t taken = 1;
    messages.size = message_infos.size = 0;
    OK(rmw.take_sequence(in, ROOM, &messages, &message_infos, &taken, NULL));
    CHECK(taken == 0 && messages.size == 0);
    REFUSED(RMW_RET_INVALID_ARGUMENT, rmw.take_sequence(in, 0, &messages, &message_infos, &taken, NULL));
    REFUSED(RMW_RET_INVALID_ARGUMENT, rmw.take_sequence(in, ROOM + 1, &messages, &message_infos, &taken, NULL));
    REFUSED(RMW_RET_INVALID_ARGUMENT, rmw.take_sequence(in, 1, NULL, &message_infos, &taken, NULL));
    REFUSED(RMW_RET_INVALID_ARGUMENT, rmw.take_sequence(in, 1, &messages, NULL, &taken, NULL));
    REFUSED(RMW_RET_INVALID_ARGUMENT, rmw.take_sequence(in, 1, &messages, &message_infos, NULL, NULL));

    TEXT.drop(text);
    for (size_t i = 0; i < ROOM; i++) {
        TEXT.drop(texts[i]);
    }
    OK(rmw.destroy_wait_set(set));
    OK(rmw.destroy_subscription(own.node, in));
    OK(rmw.destroy_publisher(own.node, out));
    leave(&own);
    done("as many as fit, in their order");
}

static void count_up(const void *counter, size_t events) { atomic_fetch_add((_Atomic uint64_t *)counter, events); }

void scenario_callback(void) {
    static _Atomic uint64_t messages, requests, responses;
    struct participant own;
    join(&own, "callback", "/");
    rmw_publisher_t *out = publisher(&own, &NUMBER, "/callback", keep_last(100));
    rmw_subscription_t *in = subscription(&own, &NUMBER, "/callback", keep_last(100));
    rmw_service_t *answers = service(&own, "/callback/add");
    rmw_client_t *asks = client(&own, "/callback/add");
    rmw_wait_set_t *set = MADE(rmw.create_wait_set(&own.context, 1));
    bool is_there = false;
    UNTIL(matched_subscriptions(out) == 1);
    UNTIL(rmw.service_server_is_available(own.node, asks, &is_there) == RMW_RET_OK && is_there);

    void *number = NUMBER.make();
    number_set(number, 1);
    for (int i = 0; i < 3; i++) {
        publish(out, number);
    }
    // By now there is one at least; the others come before or after the callback is set.
    wait_on(set, &(struct awaited){.subscription = in}, -1);
    OK(rmw.subscription_set_on_new_message_callback(in, count_up, &messages));
    UNTIL(atomic_load(&messages) == 3);
    for (int i = 0; i < 5; i++) {
        publish(out, number);
    }
    UNTIL(atomic_load(&messages) == 8);
    // Without it they are counted for the next.
    OK(rmw.subscription_set_on_new_message_callback(in, NULL, NULL));
    bool taken = true;
    for (int i = 0; i < 8; i++) {
        OK(rmw.take(in, number, &taken, NULL));
        CHECK(taken);
    }
    publish(out, number);
    publish(out, number);
    wait_on(set, &(struct awaited){.subscription = in}, -1);
    CHECK(atomic_load(&messages) == 8);
    OK(rmw.subscription_set_on_new_message_callback(in, count_up, &messages));
    UNTIL(atomic_load(&messages) == 10);
    // None is counted twice.
    OK(rmw.subscription_set_on_new_message_callback(in, NULL, NULL));
    OK(rmw.subscription_set_on_new_message_callback(in, count_up, &messages));
    CHECK(atomic_load(&messages) == 10);

    void *request = REQUEST.make(), *response = RESPONSE.make();
    int64_t sent;
    request_set(request, 1, 2);
    OK(rmw.send_request(asks, request, &sent));
    OK(rmw.send_request(asks, request, &sent));
    wait_on(set, &(struct awaited){.service = answers}, -1);
    OK(rmw.service_set_on_new_request_callback(answers, count_up, &requests));
    UNTIL(atomic_load(&requests) == 2);
    OK(rmw.send_request(asks, request, &sent));
    UNTIL(atomic_load(&requests) == 3);
    rmw_service_info_t info;
    for (int i = 0; i < 3; i++) {
        OK(rmw.take_request(answers, &info, request, &taken));
        CHECK(taken);
        response_set(response, 3);
        OK(rmw.send_response(answers, &info.request_id, response));
        if (i == 0) {
            wait_on(set, &(struct awaited){.client = asks}, -1);
            OK(rmw.client_set_on_new_response_callback(asks, count_up, &responses));
        }
    }
    UNTIL(atomic_load(&responses) == 3);
    for (int i = 0; i < 3; i++) {
        OK(rmw.take_response(asks, &info, response, &taken));
        CHECK(taken && response_get(response) == 3);
    }
    NUMBER.drop(number);
    REQUEST.drop(request);
    RESPONSE.drop(response);
    // With the callbacks in place: none is called after its entity is gone.
    OK(rmw.destroy_wait_set(set));
    OK(rmw.destroy_client(own.node, asks));
    OK(rmw.destroy_service(own.node, answers));
    OK(rmw.destroy_subscription(own.node, in));
    OK(rmw.destroy_publisher(own.node, out));
    leave(&own);
    done("messages, requests and responses counted, those before the callback too");
}

void scenario_events(void) {
    struct participant own;
    join(&own, "events", "/");
    rmw_wait_set_t *set = MADE(rmw.create_wait_set(&own.context, 1));
    rmw_qos_profile_t best_effort = keep_last(10);
    best_effort.reliability = RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
    rmw_subscription_t *in = subscription(&own, &NUMBER, "/events", keep_last(10));
    rmw_event_t wanted, lively, unfit;
    memset(&wanted, 0, sizeof wanted);
    memset(&lively, 0, sizeof lively);
    memset(&unfit, 0, sizeof unfit);
    rmw_ret_t offered = rmw.subscription_event_init(&wanted, in, RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE);
    if (offered == RMW_RET_UNSUPPORTED) {
        // rclcpp and rclpy go on without.
        rcutils_reset_error();
        OK(rmw.destroy_subscription(own.node, in));
        OK(rmw.destroy_wait_set(set));
        leave(&own);
        done("are not offered");
        return;
    }
    CHECK(offered == RMW_RET_OK);
    OK(rmw.subscription_event_init(&lively, in, RMW_EVENT_LIVELINESS_CHANGED));
    CHECK(!wait_on(set, &(struct awaited){.event = &wanted}, 0));

    // A publisher that offers less than is wanted.
    rmw_publisher_t *less = publisher(&own, &NUMBER, "/events", best_effort);
    OK(rmw.publisher_event_init(&unfit, less, RMW_EVENT_OFFERED_QOS_INCOMPATIBLE));
    wait_on(set, &(struct awaited){.event = &wanted}, -1);
    rmw_qos_incompatible_event_status_t status;
    bool taken = false;
    OK(rmw.take_event(&wanted, &status, &taken));
    CHECK(taken && status.total_count == 1 && status.total_count_change == 1);
    // RMW_QOS_POLICY_RELIABILITY
    CHECK(status.last_policy_kind == 1 << 4);
    wait_on(set, &(struct awaited){.event = &unfit}, -1);
    taken = false;
    OK(rmw.take_event(&unfit, &status, &taken));
    CHECK(taken && status.total_count == 1);
    CHECK(!wait_on(set, &(struct awaited){.event = &wanted}, 0));
    // To ask again tells how many there were, and that none is new.
    OK(rmw.take_event(&wanted, &status, &taken));
    CHECK(status.total_count == 1 && status.total_count_change == 0);
    CHECK(matched_publishers(in) == 0);

    // One that fits comes, and goes.
    rmw_publisher_t *fits = publisher(&own, &NUMBER, "/events", keep_last(10));
    wait_on(set, &(struct awaited){.event = &lively}, -1);
    rmw_liveliness_changed_status_t alive_status;
    OK(rmw.take_event(&lively, &alive_status, &taken));
    CHECK(alive_status.alive_count == 1 && alive_status.alive_count_change == 1);
    CHECK(matched_publishers(in) == 1);
    OK(rmw.destroy_publisher(own.node, fits));
    wait_on(set, &(struct awaited){.event = &lively}, -1);
    OK(rmw.take_event(&lively, &alive_status, &taken));
    CHECK(alive_status.alive_count == 0 && alive_status.alive_count_change == -1);

    OK(rmw.destroy_publisher(own.node, less));
    OK(rmw.destroy_subscription(own.node, in));
    OK(rmw.destroy_wait_set(set));
    leave(&own);
    done("QoS that does not fit, liveliness");
}

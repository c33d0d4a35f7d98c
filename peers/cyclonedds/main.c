// A node of Cyclone DDS alone, secured by an enclave as rmw_cyclonedds would be, or in clear.
//
//   cyclonedds-peer publish|subscribe ENCLAVE_FOLDER|- DOMAIN TOPIC FIRST
//   cyclonedds-peer serve|call ENCLAVE_FOLDER|- DOMAIN SERVICE FIRST
//
// Publishes FIRST, FIRST + 1 and so on, or writes what it hears in a line each, until its standard input ends. Or it serves a service of
// the type std_srvs/srv/SetBool, or calls it with true again and again, as rmw_cyclonedds does, and writes a line for each request or reply.
// It says "ready" once its endpoints are there. Exit code 2: no participant; 3: no endpoint. CYCLONEDDS_URI says which network it uses.
#include <dds/dds.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Types.h"

static void file(dds_qos_t *qos, const char *property, const char *folder, const char *name)
{
    char path[4096];
    int length = snprintf(path, sizeof(path), "file:%s/%s", folder, name);
    if (length < 0 || sizeof(path) <= (size_t)length) {
        fprintf(stderr, "the path of %s is too long\n", name);
        exit(1);
    }
    if (access(path + strlen("file:"), F_OK) == 0) {
        dds_qset_prop(qos, property, path);
    }
}

static void plugin(dds_qos_t *qos, const char *kind, const char *library, const char *function)
{
    char property[128];
    char value[128];
    snprintf(property, sizeof(property), "dds.sec.%s.library.path", kind);
    dds_qset_prop(qos, property, library);
    snprintf(property, sizeof(property), "dds.sec.%s.library.init", kind);
    snprintf(value, sizeof(value), "init_%s", function);
    dds_qset_prop(qos, property, value);
    snprintf(property, sizeof(property), "dds.sec.%s.library.finalize", kind);
    snprintf(value, sizeof(value), "finalize_%s", function);
    dds_qset_prop(qos, property, value);
}

// As rmw_cyclonedds secures a participant.
static void secure(dds_qos_t *qos, const char *folder)
{
    plugin(qos, "auth", "dds_security_auth", "authentication");
    plugin(qos, "crypto", "dds_security_crypto", "crypto");
    plugin(qos, "access", "dds_security_ac", "access_control");
    file(qos, "dds.sec.auth.identity_ca", folder, "identity_ca.cert.pem");
    file(qos, "dds.sec.auth.identity_certificate", folder, "cert.pem");
    file(qos, "dds.sec.auth.private_key", folder, "key.pem");
    file(qos, "org.eclipse.cyclonedds.sec.auth.crl", folder, "crl.pem");
    file(qos, "dds.sec.access.permissions_ca", folder, "permissions_ca.cert.pem");
    file(qos, "dds.sec.access.governance", folder, "governance.p7s");
    file(qos, "dds.sec.access.permissions", folder, "permissions.p7s");
}

// Ends at once: what the process has at its end would be taken from threads that still use it.
static void end(int code)
{
    fflush(stdout);
    _exit(code);
}

static void *end_with_input(void *none)
{
    char byte;
    while (0 < read(STDIN_FILENO, &byte, 1)) {
    }
    end(0);
    return none;
}

static dds_entity_t topic_of(dds_entity_t participant, const dds_topic_descriptor_t *type, const char *begin, const char *name,
                             const char *end)
{
    char whole[256];
    snprintf(whole, sizeof(whole), "%s%s%s", begin, name, end);
    return dds_create_topic(participant, type, whole, NULL, NULL);
}

typedef struct {
    dds_entity_t writer;
    dds_entity_t reader;
} ends_t;

// The ends on those topics, of which either may be none. What rmw_cyclonedds says of those of a service is in `user_data`.
static ends_t ends_of(dds_entity_t participant, dds_entity_t written, dds_entity_t read, const char *user_data)
{
    ends_t ends = {0, 0};
    dds_qos_t *qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
    dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 100);
    if (user_data != NULL) {
        dds_qset_userdata(qos, user_data, strlen(user_data));
    }
    if (written != 0) {
        ends.writer = dds_create_writer(participant, written, qos, NULL);
    }
    if (read != 0) {
        ends.reader = dds_create_reader(participant, read, qos, NULL);
    }
    dds_delete_qos(qos);
    if (ends.writer < 0 || ends.reader < 0) {
        end(3);
    }
    return ends;
}

static ends_t ends_of_service(dds_entity_t participant, const char *service, bool serves)
{
    dds_entity_t asked = topic_of(participant, &std_srvs_srv_dds__SetBool_Request__desc, "rq/", service, "Request");
    dds_entity_t answered = topic_of(participant, &std_srvs_srv_dds__SetBool_Response__desc, "rr/", service, "Reply");
    dds_guid_t guid;
    char user_data[128];
    int length = snprintf(user_data, sizeof(user_data), "%sid=", serves ? "service" : "client");
    if (dds_get_guid(participant, &guid) < 0) {
        end(3);
    }
    for (size_t at = 0; at < sizeof(guid.v); ++at) {
        length += snprintf(user_data + length, sizeof(user_data) - (size_t)length, at == 0 ? "%x" : ".%x", guid.v[at]);
    }
    snprintf(user_data + length, sizeof(user_data) - (size_t)length, ";");
    return serves ? ends_of(participant, answered, asked, user_data) : ends_of(participant, asked, answered, user_data);
}

// Takes the next sample into `sample`, if one has come. What it points to is the reader's own until the next.
static bool take(dds_entity_t reader, void **sample)
{
    dds_sample_info_t info;
    for (;;) {
        if (*sample != NULL) {
            dds_return_loan(reader, sample, 1);
            *sample = NULL;
        }
        if (dds_take(reader, sample, &info, 1, 1) <= 0) {
            *sample = NULL;
            return false;
        }
        if (info.valid_data) {
            return true;
        }
    }
}

static void turn(const char *what, ends_t ends, uint32_t number, uint64_t client)
{
    void *taken = NULL;
    if (strcmp(what, "publish") == 0) {
        const std_msgs_msg_dds__UInt32_ sample = {.data_ = number};
        dds_write(ends.writer, &sample);
    } else if (strcmp(what, "subscribe") == 0) {
        while (take(ends.reader, &taken)) {
            printf("%u\n", ((const std_msgs_msg_dds__UInt32_ *)taken)->data_);
        }
    } else if (strcmp(what, "serve") == 0) {
        while (take(ends.reader, &taken)) {
            const std_srvs_srv_dds__SetBool_Request_ *request = taken;
            const std_srvs_srv_dds__SetBool_Response_ reply = {
                .guid_ = request->guid_, .seq_ = request->seq_, .success_ = request->data_, .message_ = "served"};
            dds_write(ends.writer, &reply);
            puts(request->data_ ? "true" : "false");
        }
    } else {
        const std_srvs_srv_dds__SetBool_Request_ request = {.guid_ = client, .seq_ = number, .data_ = true};
        dds_write(ends.writer, &request);
        while (take(ends.reader, &taken)) {
            const std_srvs_srv_dds__SetBool_Response_ *reply = taken;
            if (reply->guid_ == client) {
                puts(reply->success_ ? "true" : "false");
            }
        }
    }
}

int main(int count, char **words)
{
    const char *what = count == 6 ? words[1] : "";
    const bool serves = strcmp(what, "serve") == 0;
    const bool publishes = strcmp(what, "publish") == 0;
    const bool is_service = serves || strcmp(what, "call") == 0;
    if (!is_service && !publishes && strcmp(what, "subscribe") != 0) {
        fprintf(stderr, "usage: cyclonedds-peer publish|subscribe|serve|call ENCLAVE_FOLDER|- DOMAIN TOPIC|SERVICE FIRST\n");
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    dds_qos_t *qos = dds_create_qos();
    if (strcmp(words[2], "-") != 0) {
        secure(qos, words[2]);
    }
    const dds_entity_t participant = dds_create_participant((dds_domainid_t)atoi(words[3]), qos, NULL);
    dds_delete_qos(qos);
    if (participant < 0) {
        end(2);
    }
    ends_t ends;
    if (is_service) {
        ends = ends_of_service(participant, words[4], serves);
    } else {
        const dds_entity_t topic = topic_of(participant, &std_msgs_msg_dds__UInt32__desc, "", words[4], "");
        if (topic < 0) {
            end(3);
        }
        ends = ends_of(participant, publishes ? topic : 0, publishes ? 0 : topic, NULL);
    }
    puts("ready");

    pthread_t input;
    if (pthread_create(&input, NULL, end_with_input, NULL) != 0) {
        return 1;
    }
    // No other client has that number, since no other process has it.
    const uint64_t client = (uint64_t)getpid();
    for (uint32_t number = (uint32_t)atoi(words[5]);; ++number) {
        turn(what, ends, number, client);
        dds_sleepfor(DDS_MSECS(20));
    }
}

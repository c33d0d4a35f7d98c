// A node of Cyclone DDS alone, secured by an enclave as rmw_cyclonedds would be, or in clear.
//
//   cyclonedds-peer publish|subscribe ENCLAVE_FOLDER|- DOMAIN TOPIC FIRST
//
// Publishes FIRST, FIRST + 1 and so on, or writes what it hears in a line each, until its standard input ends. It says "ready" once
// its endpoint is there. Exit code 2: no participant; 3: no endpoint. CYCLONEDDS_URI says which network it uses.
#include <dds/dds.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "UInt32.h"

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

static void *end_with_input(void *none)
{
    char byte;
    while (0 < read(STDIN_FILENO, &byte, 1)) {
    }
    fflush(stdout);
    _exit(0);
    return none;
}

int main(int count, char **words)
{
    if (count != 6) {
        fprintf(stderr, "usage: cyclonedds-peer publish|subscribe ENCLAVE_FOLDER|- DOMAIN TOPIC FIRST\n");
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    const int publishes = strcmp(words[1], "publish") == 0;
    dds_qos_t *qos = dds_create_qos();
    if (strcmp(words[2], "-") != 0) {
        secure(qos, words[2]);
    }
    const dds_entity_t participant = dds_create_participant((dds_domainid_t)atoi(words[3]), qos, NULL);
    dds_delete_qos(qos);
    if (participant < 0) {
        return 2;
    }
    const dds_entity_t topic =
        dds_create_topic(participant, &std_msgs_msg_dds__UInt32__desc, words[4], NULL, NULL);
    dds_qos_t *reliable = dds_create_qos();
    dds_qset_reliability(reliable, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
    dds_qset_history(reliable, DDS_HISTORY_KEEP_LAST, 100);
    const dds_entity_t endpoint = topic < 0 ? topic
        : publishes                         ? dds_create_writer(participant, topic, reliable, NULL)
                                            : dds_create_reader(participant, topic, reliable, NULL);
    dds_delete_qos(reliable);
    if (endpoint < 0) {
        return 3;
    }
    puts("ready");

    pthread_t input;
    if (pthread_create(&input, NULL, end_with_input, NULL) != 0) {
        return 1;
    }
    for (uint32_t value = (uint32_t)atoi(words[5]);; ++value) {
        if (publishes) {
            const std_msgs_msg_dds__UInt32_ sample = {.data_ = value};
            dds_write(endpoint, &sample);
        } else {
            std_msgs_msg_dds__UInt32_ sample;
            void *samples[] = {&sample};
            dds_sample_info_t info;
            while (0 < dds_take(endpoint, samples, &info, 1, 1)) {
                if (info.valid_data) {
                    printf("%u\n", sample.data_);
                }
            }
        }
        dds_sleepfor(DDS_MSECS(20));
    }
}

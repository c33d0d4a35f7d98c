/* What build.rs adds to `ddsi_transmit.c` of Cyclone DDS: samples that go to readers in one of two forms, each of the
 * vendors that understand it, and that name another sample in their inline QoS. The functions are in shim.c. */
#ifndef TSUJI_CYCLONEDDS_FORMS_H
#define TSUJI_CYCLONEDDS_FORMS_H

#include <stdbool.h>

struct ddsi_domaingv;
struct ddsi_serdata;

/* Whether readers of different vendors get different forms of this sample. */
bool tsuji_has_forms (const struct ddsi_serdata *sample);

/* The form for readers of this vendor, two bytes: the sample itself, or one that lives as long as that. The caller holds
 * the writer's lock. */
struct ddsi_serdata *tsuji_form_of (struct ddsi_serdata *sample, const unsigned char *vendor);

/* The value of PID_RELATED_SAMPLE_IDENTITY, in the byte order of this host, or NULL. */
const unsigned char *tsuji_identity_of (const struct ddsi_serdata *form);

/* Answers whether another participant of this name, 16 bytes, is known, and its vendor, two. This one is in Cyclone DDS. */
bool tsuji_vendor_of (struct ddsi_domaingv *gv, const unsigned char *name, unsigned char *vendor);

/* Answers whether a writer of another participant, of this name, has let its lease pass; -1 where it is not known. This one is in
   Cyclone DDS too. */
int32_t tsuji_is_silent (struct ddsi_domaingv *gv, const unsigned char *name);

#define TSUJI_PID_RELATED_SAMPLE_IDENTITY 0x0083u
/* What Fast DDS and RTI Connext DDS wrote before the parameter had a standard number, and write still. */
#define TSUJI_PID_CUSTOM_RELATED_SAMPLE_IDENTITY 0x800fu
#define TSUJI_IDENTITY_LEN 24u

#endif

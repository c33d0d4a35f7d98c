/* What build.rs adds to Cyclone DDS: participants of this host that are spoken to by other means are passed over, so that a
 * hundred processes of a host do not all speak to each other over loopback (docs/decisions/0036). */
#ifndef TSUJI_CYCLONEDDS_PEER_PROCESSES_H
#define TSUJI_CYCLONEDDS_PEER_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>

struct ddsi_domaingv;
union ddsi_guid_prefix;

/* The peer processes of one domain that are on this host: those whose participants have a given text in their user data, the
 * claim. A key in them tells the process. */
struct tsuji_peers;

/* What becomes of the participants of a process. */
enum tsuji_treatment {
  /* They are passed over for 5 s from when each was heard first, and met from then on. */
  TSUJI_WAIT,
  TSUJI_PASS_OVER,
  TSUJI_MEET
};

/* For tsuji. `claim` and `key` end with a nul; the value of the key ends with a semicolon or with the user data. NULL where
 * there is no memory. */
struct tsuji_peers *tsuji_peers_new (const char *claim, const char *key);

/* The next domain that this thread creates has these; NULL none. */
void tsuji_peers_for_next (struct tsuji_peers *all);

/* After the domain. */
void tsuji_peers_free (struct tsuji_peers *all);

/* Says what becomes of a process from now on, while the domain has a participant. Who is to be passed over is forgotten, and
 * who is to be met hears an announcement within milliseconds; nothing happens where it is as before. `process` has at most
 * TSUJI_PROCESS_LEN bytes and ends with a nul. */
void tsuji_peers_treat (struct tsuji_peers *all, const char *process, enum tsuji_treatment treatment);

#define TSUJI_PROCESS_LEN 32u

/* For Cyclone DDS. All take NULL for a domain without any. */
struct tsuji_peers *tsuji_peers_take_next (struct ddsi_domaingv *gv);

/* Whether a participant that announces itself with these user data is passed over as long as it is not known. */
bool tsuji_peers_wait_for (struct tsuji_peers *all, const union ddsi_guid_prefix *prefix, const unsigned char *user_data, size_t len);

/* Whether all that this participant says is passed over. */
bool tsuji_peers_pass_over (struct tsuji_peers *all, const union ddsi_guid_prefix *prefix);

/* Whether a participant that is known is answered when it announces itself to all: it may have passed over what it was answered
 * the first time, and says now that it does so no more. */
bool tsuji_peers_answer (struct tsuji_peers *all, const union ddsi_guid_prefix *prefix);

/* The value of a key in user data, which stands at the start or behind a semicolon; NULL where it is not there. */
const unsigned char *tsuji_find_key (const unsigned char *in, size_t len, const char *key);

/* A participant says that it ends. */
void tsuji_peers_lose (struct tsuji_peers *all, const union ddsi_guid_prefix *prefix);

#endif

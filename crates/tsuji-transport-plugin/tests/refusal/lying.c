/* A transport that is none: what is wrong with it is chosen when it is compiled. */
#include "tsuji_transport.h"

#ifndef ABI
#define ABI TSUJI_TRANSPORT_ABI
#endif
#ifndef SIZE
#define SIZE sizeof (struct tsuji_transport)
#endif
#ifndef NAME
#define NAME "lying"
#endif
#ifndef SCOPES
#define SCOPES TSUJI_SCOPE_LOCAL
#endif
#ifndef PEERS
#define PEERS 0
#endif
#ifndef FEATURES
#define FEATURES 0
#endif
#ifndef SAMPLE_BYTES_MAX
#define SAMPLE_BYTES_MAX 100
#endif
#ifndef JOIN
#define JOIN join
#endif
#ifdef ELSEWHERE
const struct tsuji_transport *somewhere_else (void);
#define ANSWER somewhere_else ()
#endif
#ifndef ANSWER
#define ANSWER (&table)
#endif

static int32_t join (const struct tsuji_join *it, struct tsuji_participant **participant, char *problem)
{
  (void) it;
  (void) participant;
  static const char said[] = "there is nothing to join";
  for (size_t at = 0; at < sizeof said; ++at) problem[at] = said[at];
#ifdef ANSWERS_OK
  return 0;
#else
  return TSUJI_UNSUPPORTED;
#endif
}

static void nothing (void) {}

static const struct tsuji_transport table = {
  .abi = ABI, .size = SIZE, .name = NAME, .version = "0", .scopes = SCOPES, .peers = PEERS,
  .features = FEATURES,
  .sample_bytes_max = SAMPLE_BYTES_MAX, .join = JOIN,
  .leave = (void *) nothing, .participant_name = (void *) nothing, .open_writer = (void *) nothing,
  .close_writer = (void *) nothing, .writer_name = (void *) nothing, .listen_writer = (void *) nothing,
  .write = (void *) nothing, .acknowledged = (void *) nothing, .writer_matches = (void *) nothing,
  .open_reader = (void *) nothing, .close_reader = (void *) nothing, .reader_name = (void *) nothing,
  .listen_reader = (void *) nothing, .take = (void *) nothing, .sample_free = (void *) nothing,
  .reader_matches = (void *) nothing, .open_watch = (void *) nothing, .close_watch = (void *) nothing,
  .found = (void *) nothing,
#ifndef SHORT
  .found_free = (void *) nothing,
#endif
};

#ifndef SYMBOL
#define SYMBOL tsuji_transport
#endif

const struct tsuji_transport *SYMBOL (void);
const struct tsuji_transport *SYMBOL (void) { (void) join; (void) table; return ANSWER; }

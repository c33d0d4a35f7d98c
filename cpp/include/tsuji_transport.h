/* The door for transports that are not built into tsuji.
 *
 * A transport is a shared library that exports one function, tsuji_transport, which answers a table of functions. Tsuji
 * loads it with RTLD_NOW | RTLD_LOCAL and never unloads it: libtsuji_transport_fastdds.so when a flow first needs it, one that a policy
 * names when a context begins. It joins when a flow first needs it, leaves when none has for a while, and joins again.
 *
 * What a transport does is little: it sends bytes from a writer to all readers of the same topic that match it, in order,
 * and finds out who is there. What else the samples of tsuji need (who may count on a sample, its number at the publisher,
 * bounds for readers that keep all, loans that outlive everything) tsuji adds itself.
 *
 * Rules for every function:
 * - It may be called from any thread, also for one object at once, unless it says otherwise.
 * - It does not block, unless it says so.
 * - No C++ exception leaves it, and it never ends the process.
 * - Pointers that tsuji passes are valid during the call only, unless the function says otherwise. Texts end with a nul and
 *   are UTF-8. Those that a transport answers stay valid as the function says.
 * - While an object is closed nothing else of it is called, but what its callbacks that still run have begun before.
 * - At exit objects may not be closed when the library's destructors run. From then on nothing but `sample_free` is called any
 *   more, and what is under way has returned, or 5 s have passed. That holds for destructors that were registered before the first
 *   object of each kind was made, and not while the very first participant is being made.
 * - In a child after fork() nothing is called any more. Descriptors that would keep a dead parent looking alive are the
 *   library's to close there.
 * - It answers 0 or more, or one of enum tsuji_error. A function with `problem`, which is never NULL, may write there, in words
 *   for people and with a nul at the end, what failed and what would be allowed; tsuji has set it to "".
 *
 * A later version of the table only adds functions at its end and gets another number; a library says in `abi` and `size`
 * which one it was built with. struct tsuji_join and struct tsuji_endpoint begin with their own size and may grow; the
 * others never change.
 */
#ifndef TSUJI_TRANSPORT_H
#define TSUJI_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. */
#define TSUJI_TRANSPORT_ABI 1u

enum tsuji_error {
  TSUJI_BUSY = -1,        /* no room now; a later try may succeed */
  TSUJI_CLOSED = -2,      /* it is gone */
  TSUJI_TOO_LARGE = -3,
  TSUJI_UNSUPPORTED = -4,
  TSUJI_INVALID = -5,     /* an argument that can never work */
  TSUJI_EXHAUSTED = -6,   /* the machine has no more of something */
  TSUJI_UNEXPECTED = -7
};

/* How far a transport carries: bits of `scopes`. Two ends of one participant never reach each other by it. */
#define TSUJI_SCOPE_LOCAL 1u   /* between processes of one host */
#define TSUJI_SCOPE_REMOTE 2u  /* between hosts */

/* Who is met besides tsuji: bits of `peers`. */
#define TSUJI_PEERS_CYCLONEDDS 1u
#define TSUJI_PEERS_FASTDDS 2u
#define TSUJI_PEERS_ZENOH 4u
#define TSUJI_PEERS_OTHER 8u
#define TSUJI_PEERS_ROS1 16u

/* What else a transport does: bits of `features`. */
#define TSUJI_RELATES 1u  /* `related` of a sample arrives as it was written; without it that is never given */

/* Names a participant or an endpoint: 12 bytes with which all names of one participant begin and that no other participant
 * has, and 4 bytes of its own, which are 00 00 01 c1 for the participant itself. On RTPS it is the GUID. */
#define TSUJI_NAME_BYTES 16

/* Bytes that `problem` has room for. */
#define TSUJI_PROBLEM_BYTES 512

/* A duration of a QoS in nanoseconds that never ends. */
#define TSUJI_INFINITE INT64_MAX

enum tsuji_reliability { TSUJI_BEST_EFFORT = 0, TSUJI_RELIABLE = 1 };
enum tsuji_durability { TSUJI_VOLATILE = 0, TSUJI_TRANSIENT_LOCAL = 1, TSUJI_TRANSIENT = 2, TSUJI_PERSISTENT = 3 };
enum tsuji_history { TSUJI_KEEP_LAST = 0, TSUJI_KEEP_ALL = 1, TSUJI_HISTORY_UNKNOWN = 2 };
enum tsuji_liveliness { TSUJI_AUTOMATIC = 0, TSUJI_MANUAL_BY_PARTICIPANT = 1, TSUJI_MANUAL_BY_TOPIC = 2 };

/* What is offered or asked for, as DDS and ROS 2 have it. A reader and a writer match when they have the same topic and type
 * and the writer offers what the reader asks for (DDS 1.4, 2.2.3). Tsuji itself enforces deadline, lifespan and liveliness;
 * a transport announces them to those who are not tsuji's. */
struct tsuji_qos {
  uint32_t reliability;
  uint32_t durability;
  uint32_t history;
  uint32_t depth;         /* of TSUJI_KEEP_LAST, at least 1 */
  uint32_t keep_all_max;  /* samples that TSUJI_KEEP_ALL with TSUJI_TRANSIENT_LOCAL gives late joiners, at least 1 */
  uint32_t liveliness;
  int64_t deadline_ns;
  int64_t lifespan_ns;
  int64_t lease_ns;
};

/* What a writer or a reader is announced as. */
struct tsuji_endpoint {
  size_t size;
  const char *topic;
  const char *type;
  const unsigned char *user_data;
  size_t user_data_size;
  struct tsuji_qos qos;
};

/* A setting from the policy file. One that the transport does not know is TSUJI_INVALID, with those that it knows. */
struct tsuji_setting {
  const char *key;
  const char *value;
};

/* What is joined. */
struct tsuji_join {
  size_t size;
  uint32_t domain;                     /* 0 to 232; only participants of the same domain meet */
  uint32_t no_multicast;               /* not 0: nobody is looked for by multicast */
  uint32_t host_only;                  /* not 0: nobody of another host is met */
  const unsigned char *user_data;      /* announced of the participant */
  size_t user_data_size;
  const char *const *interfaces;       /* names of interfaces to use; none leaves the choice to the transport */
  size_t interfaces_count;
  const char *const *hosts;            /* names or addresses of hosts to look for besides */
  size_t hosts_count;
  const struct tsuji_setting *settings;
  size_t settings_count;
  /* Logs a line; it may be called from any thread for as long as the process lives. */
  void (*log) (uint32_t is_error, const char *text);
};

/* What a transport calls, from threads of its own, with `arg`. The structure stays as long as `arg`. What happened before it was
 * given is not told: tsuji looks once itself. A transport never calls under a lock that any function of its table
 * takes, but for `on_data` and `on_match` of one object, which it may call one after the other. A callback may call `take`,
 * `matches`, `found`, sample_free and found_free, and nothing else. It stays valid until the object is closed. */
struct tsuji_ear {
  const void *arg;
  void (*on_data) (const void *arg);   /* there may be something to take, or to find */
  void (*on_match) (const void *arg);  /* the set of endpoints that match changed; not for a watch */
};

/* What a sample relates to, as RTPS says it beside a sample (PID_RELATED_SAMPLE_IDENTITY): one of a writer, or just an endpoint.
 * All zero is nothing. */
struct tsuji_related {
  unsigned char name[TSUJI_NAME_BYTES];
  int64_t number;              /* the writer's number for it; 0 and less is none */
};

/* A sample that was taken. */
struct tsuji_taken {
  void *sample;                /* keeps `data` until sample_free, which may come after all is closed */
  const unsigned char *data;   /* unchanged until then; best at an address of 12 modulo 16, which aligns a CDR body */
  size_t data_size;
  unsigned char writer[TSUJI_NAME_BYTES];
  int64_t number;              /* the writer's number for it: counted from 1, for each write that was accepted, with no gap */
  int64_t source_ns;           /* as the writer said, in nanoseconds since the Unix epoch */
  struct tsuji_related related;  /* as the writer said, with TSUJI_RELATES; else nothing */
};

enum tsuji_found_kind {
  TSUJI_FOUND_GONE = 0,         /* a participant, a writer or a reader is gone; only `name` is valid */
  TSUJI_FOUND_PARTICIPANT = 1,  /* it is there, or says something else than before */
  TSUJI_FOUND_WRITER = 2,
  TSUJI_FOUND_READER = 3
};

/* Who was found. Texts are NULL where they are not known. All of it stays valid until found_free. */
struct tsuji_found {
  uint32_t kind;
  unsigned char name[TSUJI_NAME_BYTES];
  unsigned char vendor[2];      /* of a participant: who made its engine, by the number that RTPS knows; else 0 0 */
  const char *topic;            /* of an endpoint */
  const char *type;             /* of an endpoint */
  const unsigned char *user_data;
  size_t user_data_size;
  const char *host;             /* of a participant */
  const char *program;          /* of a participant */
  uint32_t pid;                 /* of a participant; 0 where it is not known */
  struct tsuji_qos qos;         /* of an endpoint */
  void *memory;                 /* what found_free frees */
};

struct tsuji_participant;
struct tsuji_writer;
struct tsuji_reader;
struct tsuji_watch;

/* It calls nothing of the table, so it may be called under a lock. */
typedef void (*tsuji_each_fn) (void *arg, const unsigned char *name);

/* What a transport is and does. All functions must be there. The table stays valid as long as the process lives. */
struct tsuji_transport {
  uint32_t abi;               /* TSUJI_TRANSPORT_ABI */
  uint32_t size;              /* sizeof (struct tsuji_transport) */
  const char *name;           /* as in policies: lower-case letters, digits and _, a letter first, at most 32; as in the file's name */
  const char *version;        /* of itself and of its engine, for people */
  uint32_t scopes;
  uint32_t peers;
  uint32_t features;
  uint64_t sample_bytes_max;  /* of the largest sample, at least 4 */

  /* Joins. May block as long as it takes to resolve names of hosts. */
  int32_t (*join) (const struct tsuji_join *join, struct tsuji_participant **participant, char *problem);
  /* Leaves. All that was opened in the participant was closed before. May block for a second. */
  void (*leave) (struct tsuji_participant *participant);
  void (*participant_name) (const struct tsuji_participant *participant, unsigned char *name);

  /* Opens a writer. It sends to all readers that match, in order. */
  int32_t (*open_writer) (struct tsuji_participant *participant, const struct tsuji_endpoint *endpoint,
    struct tsuji_writer **writer, char *problem);
  /* Closes it. No callback of it runs any more when this returns. What it has sent still arrives, as far as it is waited for:
   * for at most a second, until the reliable readers have it. */
  void (*close_writer) (struct tsuji_writer *writer);
  void (*writer_name) (const struct tsuji_writer *writer, unsigned char *name);
  /* Calls on_match of `ear` from now on. Called once. */
  int32_t (*listen_writer) (struct tsuji_writer *writer, const struct tsuji_ear *ear);
  /* Writes a sample. One thread at a time writes on a writer. The bytes stay as they are until `release (owner)`, which is
   * called once, from any thread, also when this fails, and at the latest before `leave` returns; so they need not be copied.
   * It calls nothing of this table but sample_free, which therefore takes no lock. A sample has 4 bytes or more. `related` is NULL for
   * a sample that relates to nothing, and always without TSUJI_RELATES. TSUJI_BUSY where
   * too much waits for readers; the sample has no number then, and tsuji asks `acknowledged` for when to try again. Without a
   * reader that matches nothing is sent, but it counts. */
  int32_t (*write) (struct tsuji_writer *writer, const unsigned char *data, size_t size, int64_t source_ns,
    const struct tsuji_related *related, void *owner, void (*release) (void *owner));
  /* 1 when the reliable readers that match have all that was written, else 0. May block for `timeout_ns`, which is 0 or more. */
  int32_t (*acknowledged) (struct tsuji_writer *writer, int64_t timeout_ns);
  /* Calls `each` with the name of each reader that matches, during the call. */
  int32_t (*writer_matches) (const struct tsuji_writer *writer, void *arg, tsuji_each_fn each);

  /* Opens a reader, which gets nothing from writers of its own participant. */
  int32_t (*open_reader) (struct tsuji_participant *participant, const struct tsuji_endpoint *endpoint,
    struct tsuji_reader **reader, char *problem);
  /* Closes it. No callback of it runs any more when this returns. Samples that were taken stay valid. */
  void (*close_reader) (struct tsuji_reader *reader);
  void (*reader_name) (const struct tsuji_reader *reader, unsigned char *name);
  /* Calls on_data and on_match of `ear` from now on. Called once. */
  int32_t (*listen_reader) (struct tsuji_reader *reader, const struct tsuji_ear *ear);
  /* Takes a sample: 1, or 0 when there is none. Samples of one writer come in its order. */
  int32_t (*take) (struct tsuji_reader *reader, struct tsuji_taken *taken);
  void (*sample_free) (void *sample);
  /* Calls `each` with the name of each writer that matches, during the call. */
  int32_t (*reader_matches) (const struct tsuji_reader *reader, void *arg, tsuji_each_fn each);

  /* Watches who is there, beginning with those who are, and calls on_data of `ear` when there is something to find. The own
   * participant and its endpoints may be among them. */
  int32_t (*open_watch) (struct tsuji_participant *participant, const struct tsuji_ear *ear, struct tsuji_watch **watch,
    char *problem);
  void (*close_watch) (struct tsuji_watch *watch);
  /* Takes what was found: 1, or 0 when there is nothing new. */
  int32_t (*found) (struct tsuji_watch *watch, struct tsuji_found *found);
  void (*found_free) (struct tsuji_found *found);
};

/* What the library exports. */
#if defined(__GNUC__)
__attribute__ ((visibility ("default")))
#endif
const struct tsuji_transport *tsuji_transport (void);

#ifdef __cplusplus
}
#endif

#endif

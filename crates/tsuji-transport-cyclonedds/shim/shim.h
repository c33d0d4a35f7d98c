/* What tsuji needs of Cyclone DDS beyond its plain functions: samples as raw CDR, with the RTPS
 * numbers of those that arrive, and callbacks without structures by value. */
#ifndef TSUJI_CYCLONEDDS_SHIM_H
#define TSUJI_CYCLONEDDS_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a sample relates to: a sample of a writer, or with a number of 0 or less just an endpoint. */
struct tcy_related {
  unsigned char name[16];
  int64_t number;
};

#define TCY_HEADER_LEN 16u

/* What a sample of two forms is written with. */
struct tcy_relation {
  /* What goes beside the sample to readers of vendors that relate samples so; NULL if nothing does. */
  const struct tcy_related *related;
  /* What stands in the payload for all others, behind the encapsulation: TCY_HEADER_LEN bytes. */
  const unsigned char *header;
};

/* A sample that was taken. `sample` holds the memory of `data` until tcy_sample_free. */
struct tcy_taken {
  void *sample;
  const unsigned char *data;
  /* Bytes, with the encapsulation header of 4 bytes and without padding that it declares. Who is not to be trusted may
   * send less than a header, and any header. */
  size_t len;
  /* Of the writer, as on the wire. All zero for a sample of this domain. */
  unsigned char writer[16];
  /* The writer's number for this sample, from 1. 0 for a sample of this domain. */
  int64_t number;
  /* The source timestamp, in nanoseconds since the Unix epoch. */
  int64_t source_ns;
  /* Whether the writer's vendor relates samples beside them, and not by a header in the payload. */
  bool relates;
  /* What is said beside it. A name of zeroes says nothing. */
  struct tcy_related related;
};

typedef void (*tcy_each_fn) (void *arg, const unsigned char *guid);

/* Creates a topic of raw CDR samples. Its writers and readers say that the type has keys if `is_keyed`; that changes whom they
 * match, and nothing else. Returns an entity, or an error below 0. */
int32_t tcy_create_topic (int32_t participant, const char *name, const char *type, bool is_keyed, const void *qos);

/* Writes `len` bytes, 4 or more, that begin with an encapsulation header. They are not copied as a
 * whole: they must stay as they are until `release (owner)`, which is called once, from any thread,
 * also when this fails. With a relation, which may be NULL, readers get them in one of two forms: as they are, with
 * what they relate to beside them, or with the header in them. */
int32_t tcy_write (int32_t writer, const unsigned char *data, size_t len, int64_t source_ns, const struct tcy_relation *relation, void *owner, void (*release) (void *owner));

/* Reads what a sample relates to from the `len` bytes of its inline QoS, in the byte order that its message says. What is
 * not said, or is bent, has a name of zeroes. */
void tcy_read_related (const unsigned char *qos, size_t len, bool is_little, bool is_custom_known, struct tcy_related *related);

/* Writes the value of the parameter that says it, in the byte order of this host: 24 bytes. */
void tcy_put_related (const struct tcy_related *related, unsigned char *to);

/* Takes one sample. Returns 1, 0 when there is none, or an error below 0. */
int32_t tcy_take (int32_t reader, struct tcy_taken *taken);

void tcy_sample_free (void *sample);

/* Calls `log` with each line that the engine would write to stderr: is_error tells errors from warnings. The text is valid
 * during the call, and does not end with a nul. */
void tcy_log_to (void (*log) (bool is_error, const char *text, size_t len));

/* What is called when something happens; on_match may be NULL where nothing matches. It must stay
 * until tcy_listen_no_more or the end of the entity. */
struct tcy_ear {
  void *arg;
  void (*on_data) (void *arg);
  void (*on_match) (void *arg);
};

/* Calls on_data when a sample has arrived, and on_match when the set of matched writers, or what tcy_is_silent says of one,
 * changed. */
int32_t tcy_listen_reader (int32_t reader, const struct tcy_ear *ear);

/* Whether a matched writer, named by 16 bytes, has let its lease pass without a sign of life; -1 where it is not known. */
int32_t tcy_is_silent (int32_t reader, const uint8_t *writer);

/* Calls on_match when the set of matched readers changed. */
int32_t tcy_listen_writer (int32_t writer, const struct tcy_ear *ear);

/* No callback of the entity runs any more, or will, when this returns. */
void tcy_listen_no_more (int32_t entity);

/* What there is to watch. */
enum tcy_watched { TCY_PARTICIPANTS, TCY_WRITERS, TCY_READERS };

/* Creates a reader of what the engine finds, which knows already what was found before. Returns an entity, or an error
 * below 0. */
int32_t tcy_watch (int32_t participant, enum tcy_watched watched);

/* What was found. Of what is gone there is only the GUID, and a participant has no topic and type. */
struct tcy_found {
  unsigned char guid[16];
  /* Of a participant: what it announces. Zeroes where it is not known: it may be gone again, or is this one. */
  unsigned char vendor[2];
  bool is_alive;
  char *topic;
  char *type;
  void *qos;
};

/* Takes what was found next, by a reader that watches. Returns 1, 0 when there is nothing, or an error below 0. What it
 * answers with 1 is for tcy_found_free. */
int32_t tcy_take_found (int32_t reader, enum tcy_watched watched, struct tcy_found *found);

void tcy_found_free (struct tcy_found *found);

/* Calls `each` with the GUID of each endpoint that matches. */
int32_t tcy_each_match (int32_t entity, bool is_writer, void *arg, tcy_each_fn each);

#endif

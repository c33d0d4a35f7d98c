/* A transport for tsuji as an example: Unix stream sockets between the processes of one user on one host.
 *
 * How it works, from the outside in:
 * - A participant listens on a socket in a folder that all of its domain share. Its name there is its name in tsuji. Whoever
 *   joins connects to all sockets that he finds; so each two participants have one connection.
 * - On a connection both say hello, then which endpoints they have, then whatever changes. What goes over it keeps its order,
 *   and all that follows builds on that.
 * - The writer's end alone decides who matches. It says so to the reader's end with START, behind which come the samples; so
 *   the two ends never disagree, and a reader gets no sample from before it was matched, but for those that it is owed as a
 *   late joiner, which come right behind START.
 * - A sample goes over a connection once, however many readers are there. The other end counts the samples that it has put
 *   into the queues of its readers, and says the count (ACKNOWLEDGED).
 * - One thread a participant receives, and calls tsuji. Samples are sent by whoever writes; what does not fit into the socket
 *   waits in a queue of the connection, and the thread sends it when there is room.
 *
 * Locks: a participant has one, which guards all that belongs to it. It is held for no longer than it takes to copy into a
 * socket, and never while something of tsuji is called.
 *
 * Limits: a participant that is stopped, and not killed, is not given up: a reliable writer is told TSUJI_BUSY when
 * QUEUED_BYTES_MAX wait for it. The queue of a reliable reader has no bound, since tsuji takes from it at once.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tsuji_transport.h"

#define SAMPLE_BYTES_MAX ((size_t) 64 << 20)
/* What is said of a participant or an endpoint: texts and user data. */
#define SAID_BYTES_MAX ((size_t) 1 << 20)
/* What waits for one connection. One sample more fits always. */
#define QUEUED_BYTES_MAX ((size_t) 64 << 20)
/* What a best-effort reader holds untaken; beyond it the oldest are dropped. */
#define BEST_EFFORT_SAMPLES_MAX 4096u
#define BEST_EFFORT_BYTES_MAX ((size_t) 64 << 20)
/* Others are not met. */
#define CONNECTIONS_MAX 1024u
/* Endpoints of one other participant. */
#define REMOTES_MAX 65536u
/* Read or sent in one go, so that one connection does not keep all others waiting. */
#define TURN_BYTES ((size_t) 1 << 20)
/* Small frames are read together. */
#define STAGE_BYTES ((size_t) 64 << 10)
/* Frames that are sent together. */
#define GATHERED_MAX 32u
#define PREFIX_BYTES 12u
/* Milliseconds until something is tried again for which there was no memory, no descriptor or no room. */
#define AGAIN_MS 50
/* Milliseconds from the end of a connection until the folder is looked at again: its socket may be left over, or the
 * participant still there. */
#define LOOK_AGAIN_MS 1000
#define CLOSE_WAITS_NS 1000000000

/* The last byte of an endpoint's name; before it come 3 bytes that count the endpoints. The numbers are those of RTPS, and
 * differ from the participant's. */
#define WRITER_KIND 0x03u
#define READER_KIND 0x04u
#define PARTICIPANT_ID 0x000001c1u

/* Frames */

/* One host has one byte order and, by the name of the folder, one version of this; so structures go as they are. */
enum kind {
  HELLO = 1,     /* with a description */
  WRITER,        /* `from` is here, with a description; also READER */
  READER,
  GONE,          /* `from` is gone */
  START,         /* the writer `from` sends to the reader `to` from now on */
  SAMPLE,        /* of the writer `from`, to the reader `to` or, where that is 0, to all that were started */
  ACKNOWLEDGED   /* `number` frames with samples, since the hello, are where they should be */
};

struct head {
  uint32_t size;  /* of the body that follows */
  uint32_t kind;
  uint32_t from;
  uint32_t to;
  int64_t number;
  int64_t source_ns;
};

/* The body of HELLO, WRITER and READER. Two texts with their nuls and the user data follow: of a participant the host and
 * the program, of an endpoint the topic and the type. */
struct description_head {
  uint32_t first_size;
  uint32_t second_size;
  uint32_t user_data_size;
  uint32_t unused;
  struct tsuji_qos qos;
  unsigned char prefix[16];  /* of a participant; the last 4 are unused */
};

struct description {
  const char *first;
  const char *second;
  const unsigned char *user_data;
  size_t user_data_size;
  struct tsuji_qos qos;
  unsigned char prefix[PREFIX_BYTES];
};

/* What goes out: bytes that connections, and a writer for late joiners, hold together. The lock guards the count. What nobody
 * holds any more is released when the lock is, since `release` belongs to tsuji. */
struct cargo {
  struct cargo *next;  /* to be released */
  size_t holders;
  const unsigned char *data;
  size_t size;
  void *owner;
  void (*release) (void *owner);  /* NULL for bytes behind this structure */
};

/* What came in. It is held by the queues of readers, by found things, and by tsuji after all is closed; so its count is
 * atomic, and freeing it needs no lock. */
struct parcel {
  atomic_size_t holders;
  size_t size;
  uint32_t from;
  unsigned char prefix[PREFIX_BYTES];
  int64_t number;
  int64_t source_ns;
};

/* CDR begins with a header of 4 bytes; at this address what is behind it is aligned. */
#define PARCEL_DATA_AT ((sizeof (struct parcel) + 15u) / 16u * 16u + 12u)

/* A frame in the queue of a connection. */
struct frame {
  struct frame *next;
  struct connection *connection;
  struct head head;
  struct cargo *cargo;  /* the body, or NULL */
};

/* Who is there */

struct list {
  void **items;
  size_t count;
  size_t room;
};

/* What tsuji may listen to. */
struct object {
  struct tsuji_participant *participant;
  struct tsuji_ear ear;
  bool is_listened_to;
  bool is_due;  /* among those whose ear is to be called */
  bool has_news;
  bool has_match;
  struct object *next_due;
};

/* An endpoint of this participant. */
struct endpoint {
  uint32_t id;  /* first, for list_find */
  struct object object;
  struct cargo *said;
  struct description description;
  struct list links;
};

/* A sample that is kept for late joiners. */
struct kept {
  struct kept *next;
  struct cargo *cargo;
  int64_t number;
  int64_t source_ns;
};

struct tsuji_writer {
  struct endpoint endpoint;
  int64_t written;
  struct kept *kept_first;
  struct kept *kept_last;
  size_t kept_count;
  size_t kept_max;
};

struct item {
  struct item *next;
  struct parcel *parcel;
};

struct tsuji_reader {
  struct endpoint endpoint;
  struct item *first;
  struct item *last;
  size_t count;
  size_t bytes;
};

/* An endpoint of another participant. */
struct remote {
  uint32_t id;  /* first, for list_find */
  struct connection *connection;
  struct parcel *said;
  struct description description;
  struct list links;
};

/* A writer and a reader that match, one of them here and one there. */
struct link {
  struct endpoint *endpoint;
  struct remote *remote;
  uint64_t last_sent;  /* of a writer here: which frame with a sample of the connection was the last for this reader */
};

/* With another participant. The thread alone makes, reads, and ends it. */
struct connection {
  struct tsuji_participant *participant;
  int fd;
  uint32_t pid;
  bool is_mine;   /* this end connected, and knows the prefix from the start */
  bool is_named;  /* its prefix is known */
  bool is_open;   /* both have said hello */
  unsigned char prefix[PREFIX_BYTES];
  struct parcel *said;
  struct description description;
  struct list remotes;

  /* Guarded by the lock. */
  bool is_doomed;   /* to be ended by the thread */
  bool is_mute;     /* the other end has closed: nothing can be sent, and the thread reads what is left */
  const char *why;  /* what is logged when it ends, or NULL */
  struct frame *first;
  struct frame *last;
  size_t first_sent;  /* bytes of the first frame that were sent */
  size_t queued_bytes;
  uint64_t samples_sent;
  uint64_t samples_acknowledged;
  uint64_t samples_handled;
  struct frame acknowledgement;  /* never allocated: it is owed even where there is no memory */
  bool is_acknowledging;         /* which is in the queue */
  uint64_t mark;                 /* the last write that sent to it */

  /* Touched by the thread alone. */
  bool is_starved;  /* there was no memory for what it says */
  struct head head;
  size_t head_filled;
  struct parcel *body;
  size_t body_filled;
  size_t stage_at;
  size_t stage_end;
  unsigned char stage[STAGE_BYTES];
};

struct finding {
  struct finding *next;
  struct tsuji_found found;
  struct parcel *said;
};

struct tsuji_watch {
  struct object object;
  struct finding *first;
  struct finding *last;
  bool has_missed;
};

struct tsuji_participant {
  unsigned char prefix[PREFIX_BYTES];
  char folder[sizeof (((struct sockaddr_un *) 0)->sun_path)];
  char path[sizeof (((struct sockaddr_un *) 0)->sun_path)];  /* of its socket; empty before there is one */
  void (*log) (uint32_t is_error, const char *text);
  struct cargo *said;
  int listening;
  int nudge;
  pthread_t thread;

  pthread_mutex_t lock;
  pthread_cond_t changed;  /* an acknowledgement came, a connection ended, or a callback returned */
  bool is_leaving;
  bool is_asleep;          /* the thread waits, and is to be nudged */
  uint32_t endpoints_made;
  struct list endpoints;
  struct list watches;
  struct list connections;
  uint64_t mark;
  struct cargo *released;
  struct object *due_first;
  struct object *due_last;
  struct object *called;   /* whose ear is being called */

  /* Touched by the thread alone. */
  int64_t look_at_ms;      /* when to look into the folder; negative: not at all */
  bool is_crowded;         /* somebody waits to be accepted, and there is no room */
  struct pollfd polled[CONNECTIONS_MAX + 2];
};

/* Descriptors and fork. A child would keep connections open of which its parent may have died. It closes its copies, which
 * needs no lock since this is only ever set while the descriptor is open. */

#define OWN_FDS_MAX 65536
static atomic_bool is_own_fd[OWN_FDS_MAX];

static void close_own_fds_in_child (void)
{
  for (int fd = 0; fd < OWN_FDS_MAX; fd++)
    if (atomic_exchange (&is_own_fd[fd], false))
      close (fd);
}

static void watch_forks (void) { (void) pthread_atfork (NULL, NULL, close_own_fds_in_child); }

static int own_fd (int fd)
{
  if (0 <= fd && fd < OWN_FDS_MAX)
    atomic_store (&is_own_fd[fd], true);
  return fd;
}

static void close_fd (int fd)
{
  if (fd < 0)
    return;
  if (fd < OWN_FDS_MAX)
    atomic_store (&is_own_fd[fd], false);
  close (fd);
}

/* Small things */

static int64_t now_ms (void)
{
  struct timespec now;
  clock_gettime (CLOCK_MONOTONIC, &now);
  return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

__attribute__ ((format (printf, 2, 3))) static void say (char *problem, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  (void) vsnprintf (problem, TSUJI_PROBLEM_BYTES, format, arguments);
  va_end (arguments);
}

static void put_name (unsigned char *name, const unsigned char *prefix, uint32_t id)
{
  memcpy (name, prefix, PREFIX_BYTES);
  for (unsigned at = 0; at < 4; at++)
    name[PREFIX_BYTES + at] = (unsigned char) (id >> (24 - 8 * at));
}

static bool is_writer (uint32_t id) { return (id & 0xffu) == WRITER_KIND; }

static bool list_add (struct list *list, void *item)
{
  if (list->count == list->room)
  {
    const size_t room = list->room == 0 ? 4 : 2 * list->room;
    void **items = realloc (list->items, room * sizeof (*items));
    if (items == NULL)
      return false;
    list->items = items;
    list->room = room;
  }
  list->items[list->count++] = item;
  return true;
}

static void list_remove (struct list *list, const void *item)
{
  size_t at = list->count;
  while (0 < at && list->items[at - 1] != item)
    at--;
  if (at == 0)
    return;
  memmove (&list->items[at - 1], &list->items[at], (list->count - at) * sizeof (*list->items));
  list->count--;
}

/* Of a list of endpoints or remotes, which are in the order of their ids. */
static void *list_find (const struct list *list, uint32_t id)
{
  size_t from = 0, to = list->count;
  while (from < to)
  {
    const size_t middle = from + (to - from) / 2;
    const uint32_t found = *(const uint32_t *) list->items[middle];
    if (found == id)
      return list->items[middle];
    if (found < id)
      from = middle + 1;
    else
      to = middle;
  }
  return NULL;
}

static struct parcel *parcel_new (size_t size)
{
  struct parcel *parcel = aligned_alloc (16, (PARCEL_DATA_AT + size + 15u) / 16u * 16u);
  if (parcel == NULL)
    return NULL;
  memset (parcel, 0, sizeof (*parcel));
  atomic_init (&parcel->holders, 1);
  parcel->size = size;
  return parcel;
}

static unsigned char *parcel_data (struct parcel *parcel) { return (unsigned char *) parcel + PARCEL_DATA_AT; }

static struct parcel *parcel_hold (struct parcel *parcel)
{
  atomic_fetch_add_explicit (&parcel->holders, 1, memory_order_relaxed);
  return parcel;
}

static void parcel_drop (struct parcel *parcel)
{
  if (parcel != NULL && atomic_fetch_sub_explicit (&parcel->holders, 1, memory_order_acq_rel) == 1)
    free (parcel);
}

static void lock (struct tsuji_participant *participant) { pthread_mutex_lock (&participant->lock); }

static void unlock (struct tsuji_participant *participant)
{
  struct cargo *released = participant->released;
  participant->released = NULL;
  pthread_mutex_unlock (&participant->lock);
  while (released != NULL)
  {
    struct cargo *next = released->next;
    if (released->release != NULL)
      released->release (released->owner);
    free (released);
    released = next;
  }
}

static struct cargo *cargo_hold (struct cargo *cargo)
{
  if (cargo != NULL)
    cargo->holders++;
  return cargo;
}

static void cargo_drop (struct tsuji_participant *participant, struct cargo *cargo)
{
  if (cargo == NULL || --cargo->holders != 0)
    return;
  cargo->next = participant->released;
  participant->released = cargo;
}

/* Descriptions */

/* Whether the bytes are a description, which then points into them. */
static bool description_read (const unsigned char *data, size_t size, struct description *description)
{
  struct description_head head;
  if (size < sizeof (head))
    return false;
  memcpy (&head, data, sizeof (head));
  if (head.first_size == 0 || head.second_size == 0)
    return false;
  if ((uint64_t) sizeof (head) + head.first_size + head.second_size + head.user_data_size != size)
    return false;
  const char *first = (const char *) data + sizeof (head);
  const char *second = first + head.first_size;
  if (strnlen (first, head.first_size) + 1 != head.first_size || strnlen (second, head.second_size) + 1 != head.second_size)
    return false;
  description->first = first;
  description->second = second;
  description->user_data = (const unsigned char *) second + head.second_size;
  description->user_data_size = head.user_data_size;
  description->qos = head.qos;
  memcpy (description->prefix, head.prefix, PREFIX_BYTES);
  return true;
}

/* NULL where there is no memory. */
static struct cargo *description_new (const char *first, const char *second, const unsigned char *user_data,
  size_t user_data_size, const struct tsuji_qos *qos, const unsigned char *prefix)
{
  struct description_head head;
  memset (&head, 0, sizeof (head));
  head.first_size = (uint32_t) strlen (first) + 1;
  head.second_size = (uint32_t) strlen (second) + 1;
  head.user_data_size = (uint32_t) user_data_size;
  if (qos != NULL)
    head.qos = *qos;
  memcpy (head.prefix, prefix, PREFIX_BYTES);
  const size_t size = sizeof (head) + head.first_size + head.second_size + user_data_size;
  struct cargo *cargo = calloc (1, sizeof (*cargo) + size);
  if (cargo == NULL)
    return NULL;
  unsigned char *to = (unsigned char *) (cargo + 1);
  cargo->holders = 1;
  cargo->data = to;
  cargo->size = size;
  memcpy (to, &head, sizeof (head));
  memcpy (to + sizeof (head), first, head.first_size);
  memcpy (to + sizeof (head) + head.first_size, second, head.second_size);
  if (user_data_size != 0)
    memcpy (to + size - user_data_size, user_data, user_data_size);
  return cargo;
}

/* Whether one offers what the other asks for (DDS 1.4, 2.2.3). The numbers of the enums grow with what is offered. */
static bool offers (const struct tsuji_qos *offered, const struct tsuji_qos *asked)
{
  return asked->reliability <= offered->reliability && asked->durability <= offered->durability &&
         offered->deadline_ns <= asked->deadline_ns && asked->liveliness <= offered->liveliness &&
         offered->lease_ns <= asked->lease_ns;
}

/* Callbacks. With the lock held, as all that follows unless it says otherwise. */

static void nudge (struct tsuji_participant *participant)
{
  if (!participant->is_asleep)
    return;
  participant->is_asleep = false;
  const uint64_t one = 1;
  while (write (participant->nudge, &one, sizeof (one)) < 0 && errno == EINTR)
    ;
}

static void make_due (struct object *object)
{
  struct tsuji_participant *participant = object->participant;
  if (object->is_due || !object->is_listened_to)
    return;
  object->is_due = true;
  object->next_due = NULL;
  if (participant->due_first == NULL)
    participant->due_first = object;
  else
    participant->due_last->next_due = object;
  participant->due_last = object;
  nudge (participant);
}

static void notice_news (struct object *object)
{
  object->has_news = true;
  make_due (object);
}

static void notice_match (struct object *object)
{
  object->has_match = true;
  make_due (object);
}

/* The thread calls all ears that are due, without the lock. While it is in one, `called` keeps the object from being freed. */
static void call_due (struct tsuji_participant *participant)
{
  struct object *object;
  while ((object = participant->due_first) != NULL)
  {
    participant->due_first = object->next_due;
    object->is_due = false;
    const bool has_news = object->has_news, has_match = object->has_match;
    object->has_news = object->has_match = false;
    const struct tsuji_ear ear = object->ear;
    participant->called = object;
    unlock (participant);
    if (has_match)
      ear.on_match (ear.arg);
    if (has_news)
      ear.on_data (ear.arg);
    lock (participant);
    participant->called = NULL;
    pthread_cond_broadcast (&participant->changed);
  }
}

static int32_t listen_to (struct object *object, const struct tsuji_ear *ear)
{
  lock (object->participant);
  object->ear = *ear;
  object->has_news = object->has_match = false;
  object->is_listened_to = true;
  unlock (object->participant);
  return 0;
}

/* Calls its ear no more, and waits for a call that runs. Waiting gives the lock away, so that the call can end: it may be
 * about to take from this very object. */
static void listen_no_more (struct object *object)
{
  struct tsuji_participant *participant = object->participant;
  object->is_listened_to = false;
  struct object *before = NULL;
  for (struct object *it = participant->due_first; object->is_due && it != NULL; before = it, it = it->next_due)
  {
    if (it != object)
      continue;
    if (before == NULL)
      participant->due_first = it->next_due;
    else
      before->next_due = it->next_due;
    if (participant->due_last == it)
      participant->due_last = before;
    object->is_due = false;
  }
  while (participant->called == object)
    pthread_cond_wait (&participant->changed, &participant->lock);
}

/* Sending */

/* The thread will end it. */
static void doom (struct connection *connection, const char *why)
{
  if (!connection->is_doomed)
    connection->why = why;
  connection->is_doomed = true;
  nudge (connection->participant);
}

static bool is_alive (const struct connection *connection) { return connection->is_open && !connection->is_doomed; }

static size_t frame_size (const struct frame *frame) { return sizeof (frame->head) + frame->head.size; }

/* What a frame counts for in its queue, so that very many small ones are too much as well. */
static size_t frame_cost (const struct frame *frame) { return sizeof (*frame) + sizeof (struct cargo) + frame->head.size; }

static void frame_pop (struct connection *connection)
{
  struct frame *frame = connection->first;
  connection->first = frame->next;
  connection->first_sent = 0;
  connection->queued_bytes -= frame_cost (frame);
  cargo_drop (connection->participant, frame->cargo);
  if (frame == &connection->acknowledgement)
    connection->is_acknowledging = false;
  else
    free (frame);
}

static void frame_push (struct connection *connection, struct frame *frame)
{
  frame->next = NULL;
  if (connection->first == NULL)
    connection->first = frame;
  else
    connection->last->next = frame;
  connection->last = frame;
  connection->queued_bytes += frame_cost (frame);
  if (frame->head.kind == SAMPLE)
    connection->samples_sent++;
}

static void become_mute (struct connection *connection)
{
  connection->is_mute = true;
  while (connection->first != NULL)
    frame_pop (connection);
}

/* Owes the other end an acknowledgement, and one only, however long it does not read. */
static void acknowledge (struct connection *connection)
{
  struct frame *frame = &connection->acknowledgement;
  if (connection->is_mute || connection->is_acknowledging || frame->head.number == (int64_t) connection->samples_handled)
    return;
  frame->head.kind = ACKNOWLEDGED;
  frame->head.number = (int64_t) connection->samples_handled;
  connection->is_acknowledging = true;
  frame_push (connection, frame);
}

/* Points to what is to be sent next, so many frames and bytes at most; answers how many parts that is. */
static size_t gather (const struct connection *connection, struct iovec *parts)
{
  size_t count = 0, skipped = connection->first_sent, left = TURN_BYTES;
  for (struct frame *it = connection->first; it != NULL && left != 0 && count + 2 <= 2 * GATHERED_MAX; it = it->next)
  {
    if (skipped < sizeof (it->head))
    {
      parts[count].iov_base = (unsigned char *) &it->head + skipped;
      parts[count].iov_len = sizeof (it->head) - skipped;
      left -= parts[count].iov_len < left ? parts[count].iov_len : left;
      count++;
      skipped = 0;
    }
    else
      skipped -= sizeof (it->head);
    if (skipped < it->head.size && left != 0)
    {
      const size_t rest = it->head.size - skipped;
      /* Nothing writes there: sendmsg and recvmsg share a structure. */
      parts[count].iov_base = (unsigned char *) (uintptr_t) (it->cargo->data + skipped);
      parts[count].iov_len = rest < left ? rest : left;
      left -= parts[count++].iov_len;
    }
    skipped = 0;
  }
  return count;
}

/* Sends from the queue what the socket takes. What is left the thread sends: it waits for room where there is a queue. */
static void flush (struct connection *connection)
{
  for (size_t turn = 0; connection->first != NULL && turn < TURN_BYTES;)
  {
    struct iovec parts[2 * GATHERED_MAX];
    struct msghdr message;
    memset (&message, 0, sizeof (message));
    message.msg_iov = parts;
    message.msg_iovlen = gather (connection, parts);
    const ssize_t result = sendmsg (connection->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (result < 0 && errno == EINTR)
      continue;
    if (result < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM))
      break;
    if (result < 0)
    {
      become_mute (connection);
      break;
    }
    turn += (size_t) result;
    connection->first_sent += (size_t) result;
    while (connection->first != NULL && frame_size (connection->first) <= connection->first_sent)
    {
      const size_t rest = connection->first_sent - frame_size (connection->first);
      frame_pop (connection);
      connection->first_sent = rest;
    }
    acknowledge (connection);
  }
  if (connection->first != NULL)
    nudge (connection->participant);
}

/* Puts it into the queue, and sends it if nothing was there before. Takes the frame over. */
static void post_frame (struct connection *connection, struct frame *frame)
{
  const bool was_idle = connection->first == NULL;
  frame_push (connection, frame);
  if (connection->is_mute)
    become_mute (connection);
  else if (was_idle)
    flush (connection);
}

static struct frame *frame_new (struct connection *connection, struct head head, struct cargo *cargo)
{
  struct frame *frame = calloc (1, sizeof (*frame));
  if (frame == NULL)
    return NULL;
  frame->connection = connection;
  frame->head = head;
  frame->head.size = cargo == NULL ? 0 : (uint32_t) cargo->size;
  frame->cargo = cargo_hold (cargo);
  return frame;
}

/* Says something. Who cannot be told it would believe what is not so; that connection ends instead. */
static void post (struct connection *connection, struct head head, struct cargo *cargo)
{
  struct frame *frame = frame_new (connection, head, cargo);
  if (frame == NULL)
    doom (connection, "no memory to tell it something");
  else
    post_frame (connection, frame);
}

static void post_to_all (struct tsuji_participant *participant, struct head head, struct cargo *cargo)
{
  for (size_t at = 0; at < participant->connections.count; at++)
  {
    struct connection *connection = participant->connections.items[at];
    if (is_alive (connection))
      post (connection, head, cargo);
  }
}

static void announce (struct connection *connection, const struct endpoint *endpoint)
{
  const struct head head = { .kind = is_writer (endpoint->id) ? WRITER : READER, .from = endpoint->id };
  post (connection, head, endpoint->said);
}

/* Matching */

/* NULL where there is no memory. */
static struct link *link_new (struct endpoint *endpoint, struct remote *remote)
{
  struct link *link = calloc (1, sizeof (*link));
  if (link == NULL)
    return NULL;
  link->endpoint = endpoint;
  link->remote = remote;
  if (!list_add (&endpoint->links, link))
  {
    free (link);
    return NULL;
  }
  if (!list_add (&remote->links, link))
  {
    list_remove (&endpoint->links, link);
    free (link);
    return NULL;
  }
  notice_match (&endpoint->object);
  return link;
}

static void link_end (struct link *link)
{
  list_remove (&link->endpoint->links, link);
  list_remove (&link->remote->links, link);
  notice_match (&link->endpoint->object);
  free (link);
}

static void links_end (struct list *links)
{
  while (links->count != 0)
    link_end (links->items[links->count - 1]);
  free (links->items);
  memset (links, 0, sizeof (*links));
}

/* Links a writer here to a reader there, if they match, and gives it what late joiners are owed. Nothing is written between,
 * so that the order holds. */
static void try_match (struct tsuji_writer *writer, struct remote *reader)
{
  const struct description *one = &writer->endpoint.description, *two = &reader->description;
  if (strcmp (one->first, two->first) != 0 || strcmp (one->second, two->second) != 0 || !offers (&one->qos, &two->qos))
    return;
  struct connection *connection = reader->connection;
  struct link *link = link_new (&writer->endpoint, reader);
  if (link == NULL)
  {
    doom (connection, "no memory for a reader that matches");
    return;
  }
  const struct head start = { .kind = START, .from = writer->endpoint.id, .to = reader->id };
  post (connection, start, NULL);
  const bool is_owed = two->qos.durability != TSUJI_VOLATILE;
  for (const struct kept *it = writer->kept_first; is_owed && it != NULL; it = it->next)
  {
    struct head head = { .kind = SAMPLE, .from = start.from, .to = start.to };
    head.number = it->number;
    head.source_ns = it->source_ns;
    post (connection, head, it->cargo);
  }
  link->last_sent = connection->samples_sent;
}

/* Finding */

static void tell (struct tsuji_watch *watch, uint32_t kind, const struct connection *connection, uint32_t id,
  const struct description *description, struct parcel *said)
{
  struct finding *finding = calloc (1, sizeof (*finding));
  notice_news (&watch->object);
  if (finding == NULL)
  {
    watch->has_missed = true;
    return;
  }
  struct tsuji_found *found = &finding->found;
  found->kind = kind;
  found->memory = finding;
  put_name (found->name, connection->prefix, id);
  if (kind != TSUJI_FOUND_GONE)
  {
    finding->said = parcel_hold (said);
    found->user_data = description->user_data;
    found->user_data_size = description->user_data_size;
    found->qos = description->qos;
    const bool is_participant = kind == TSUJI_FOUND_PARTICIPANT;
    *(is_participant ? &found->host : &found->topic) = description->first;
    *(is_participant ? &found->program : &found->type) = description->second;
    found->pid = is_participant ? connection->pid : 0;
  }
  if (watch->first == NULL)
    watch->first = finding;
  else
    watch->last->next = finding;
  watch->last = finding;
}

static void tell_all (const struct connection *connection, uint32_t kind, uint32_t id, const struct description *description,
  struct parcel *said)
{
  const struct list *watches = &connection->participant->watches;
  for (size_t at = 0; at < watches->count; at++)
    tell (watches->items[at], kind, connection, id, description, said);
}

static uint32_t found_kind (uint32_t id) { return is_writer (id) ? TSUJI_FOUND_WRITER : TSUJI_FOUND_READER; }

static void remote_end (struct remote *remote)
{
  list_remove (&remote->connection->remotes, remote);
  links_end (&remote->links);
  tell_all (remote->connection, TSUJI_FOUND_GONE, remote->id, NULL, NULL);
  parcel_drop (remote->said);
  free (remote);
}

/* Handling what came in */

enum outcome {
  DONE,      /* all that there was */
  STARVED,   /* there is no memory: to be tried again */
  ENDED,     /* the other end has closed, or is not wanted */
  NONSENSE
};

/* Each two participants keep one connection. Two that join at the same moment may both have connected, and both say hello
 * first; then the one with the lower name wins: it refuses what the other has begun, who gives that up when it hears of the
 * winner's. Whoever accepts answers with his own hello, so neither says anything else on a connection that is not kept. */
static bool is_kept (struct connection *connection)
{
  struct tsuji_participant *participant = connection->participant;
  for (size_t at = 0; at < participant->connections.count; at++)
  {
    struct connection *other = participant->connections.items[at];
    if (other == connection || !other->is_named || other->is_doomed)
      continue;
    if (memcmp (other->prefix, connection->prefix, PREFIX_BYTES) != 0)
      continue;
    if (other->is_open || memcmp (participant->prefix, connection->prefix, PREFIX_BYTES) < 0)
      return false;
    doom (other, NULL);
  }
  return true;
}

static enum outcome handle_hello (struct connection *connection)
{
  struct tsuji_participant *participant = connection->participant;
  struct parcel *body = connection->body;
  struct description description;
  if (connection->head.kind != HELLO || !description_read (parcel_data (body), body->size, &description))
    return NONSENSE;
  const bool is_other = memcmp (description.prefix, connection->prefix, PREFIX_BYTES) != 0;
  if (connection->is_mine ? is_other : memcmp (description.prefix, participant->prefix, PREFIX_BYTES) == 0)
    return NONSENSE;
  memcpy (connection->prefix, description.prefix, PREFIX_BYTES);
  if (!is_kept (connection))
    return ENDED;
  connection->said = parcel_hold (body);
  connection->description = description;
  connection->is_named = connection->is_open = true;
  const struct head hello = { .kind = HELLO };
  if (!connection->is_mine)
    post (connection, hello, participant->said);
  for (size_t at = 0; at < participant->endpoints.count; at++)
    announce (connection, participant->endpoints.items[at]);
  tell_all (connection, TSUJI_FOUND_PARTICIPANT, PARTICIPANT_ID, &connection->description, connection->said);
  return DONE;
}

static enum outcome handle_endpoint (struct connection *connection)
{
  const uint32_t id = connection->head.from;
  const struct list *remotes = &connection->remotes;
  /* They come in the order in which they were opened. */
  const struct remote *last = remotes->count == 0 ? NULL : remotes->items[remotes->count - 1];
  const uint32_t kind = connection->head.kind == WRITER ? WRITER_KIND : READER_KIND;
  if ((id & 0xffu) != kind || (last != NULL && id <= last->id) || REMOTES_MAX <= remotes->count)
    return NONSENSE;
  struct description description;
  if (!description_read (parcel_data (connection->body), connection->body->size, &description))
    return NONSENSE;
  struct remote *remote = calloc (1, sizeof (*remote));
  if (remote == NULL || !list_add (&connection->remotes, remote))
  {
    free (remote);
    return STARVED;
  }
  remote->id = id;
  remote->connection = connection;
  remote->said = parcel_hold (connection->body);
  remote->description = description;
  tell_all (connection, found_kind (id), id, &remote->description, remote->said);
  const struct list *endpoints = &connection->participant->endpoints;
  for (size_t at = 0; !is_writer (id) && at < endpoints->count; at++)
  {
    struct endpoint *endpoint = endpoints->items[at];
    if (is_writer (endpoint->id))
      try_match ((struct tsuji_writer *) endpoint, remote);
  }
  return DONE;
}

static enum outcome handle_start (struct connection *connection)
{
  struct remote *writer = list_find (&connection->remotes, connection->head.from);
  if (writer == NULL || !is_writer (writer->id))
    return NONSENSE;
  struct endpoint *reader = list_find (&connection->participant->endpoints, connection->head.to);
  /* It may have been closed meanwhile. */
  if (reader == NULL || is_writer (reader->id))
    return DONE;
  for (size_t at = 0; at < writer->links.count; at++)
    if (((struct link *) writer->links.items[at])->endpoint == reader)
      return NONSENSE;
  return link_new (reader, writer) == NULL ? STARVED : DONE;
}

/* The caller has room for no other: the reader takes over the item. */
static void reader_put (struct tsuji_reader *reader, struct item *item)
{
  item->next = NULL;
  if (reader->first == NULL)
    reader->first = item;
  else
    reader->last->next = item;
  reader->last = item;
  reader->count++;
  reader->bytes += item->parcel->size;
  notice_news (&reader->endpoint.object);
}

/* The oldest sample, for which the caller is the holder now; or NULL. */
static struct parcel *reader_pop (struct tsuji_reader *reader)
{
  struct item *item = reader->first;
  if (item == NULL)
    return NULL;
  struct parcel *parcel = item->parcel;
  reader->first = item->next;
  reader->count--;
  reader->bytes -= parcel->size;
  free (item);
  return parcel;
}

/* Gives the sample to all of its readers here, or to none while there is no memory for all. */
static enum outcome handle_sample (struct connection *connection)
{
  const struct remote *writer = list_find (&connection->remotes, connection->head.from);
  if (writer == NULL || !is_writer (writer->id) || connection->head.number < 1)
    return NONSENSE;
  struct parcel *parcel = connection->body;
  parcel->from = writer->id;
  memcpy (parcel->prefix, connection->prefix, PREFIX_BYTES);
  parcel->number = connection->head.number;
  parcel->source_ns = connection->head.source_ns;
  const uint32_t to = connection->head.to;
  struct item *items = NULL;
  size_t missing = 0;
  for (size_t at = 0; at < writer->links.count && missing == 0; at++)
  {
    const struct link *link = writer->links.items[at];
    if (to != 0 && link->endpoint->id != to)
      continue;
    struct item *item = malloc (sizeof (*item));
    if (item == NULL)
      missing++;
    else
    {
      item->next = items;
      items = item;
    }
  }
  for (size_t at = 0; at < writer->links.count && items != NULL && missing == 0; at++)
  {
    const struct link *link = writer->links.items[at];
    if (to != 0 && link->endpoint->id != to)
      continue;
    struct tsuji_reader *reader = (struct tsuji_reader *) link->endpoint;
    struct item *item = items;
    items = item->next;
    item->parcel = parcel_hold (parcel);
    reader_put (reader, item);
    const bool is_bounded = link->endpoint->description.qos.reliability == TSUJI_BEST_EFFORT;
    while (is_bounded && 1 < reader->count &&
           (BEST_EFFORT_SAMPLES_MAX < reader->count || BEST_EFFORT_BYTES_MAX < reader->bytes))
      parcel_drop (reader_pop (reader));
  }
  while (items != NULL)
  {
    struct item *next = items->next;
    free (items);
    items = next;
  }
  if (missing != 0)
    return STARVED;
  connection->samples_handled++;
  return DONE;
}

static enum outcome handle_open (struct connection *connection)
{
  struct tsuji_participant *participant = connection->participant;
  const struct head *head = &connection->head;
  struct remote *remote;
  switch (head->kind)
  {
    case WRITER:
    case READER:
      return handle_endpoint (connection);
    case GONE:
      remote = list_find (&connection->remotes, head->from);
      if (remote == NULL)
        return NONSENSE;
      remote_end (remote);
      pthread_cond_broadcast (&participant->changed);
      return DONE;
    case START:
      return handle_start (connection);
    case SAMPLE:
      return handle_sample (connection);
    case ACKNOWLEDGED:
      if ((uint64_t) head->number <= connection->samples_acknowledged || connection->samples_sent < (uint64_t) head->number)
        return NONSENSE;
      connection->samples_acknowledged = (uint64_t) head->number;
      pthread_cond_broadcast (&participant->changed);
      return DONE;
    default:
      return NONSENSE;
  }
}

/* Receiving, by the thread and without the lock */

/* As recv; small pieces come by way of the stage. */
static ssize_t pull (struct connection *connection, unsigned char *to, size_t size)
{
  if (connection->stage_at == connection->stage_end)
  {
    const bool is_large = STAGE_BYTES <= size;
    const size_t most = !is_large ? STAGE_BYTES : size < TURN_BYTES ? size : TURN_BYTES;
    ssize_t result;
    do
      result = recv (connection->fd, is_large ? to : connection->stage, most, MSG_DONTWAIT);
    while (result < 0 && errno == EINTR);
    if (result <= 0 || is_large)
      return result;
    connection->stage_at = 0;
    connection->stage_end = (size_t) result;
  }
  const size_t staged = connection->stage_end - connection->stage_at;
  const size_t count = size < staged ? size : staged;
  memcpy (to, connection->stage + connection->stage_at, count);
  connection->stage_at += count;
  return (ssize_t) count;
}

/* Fills a part of the frame. DONE where more has to come first. */
static bool fill (struct connection *connection, unsigned char *to, size_t size, size_t *filled, enum outcome *outcome)
{
  while (*filled < size)
  {
    const ssize_t result = pull (connection, to + *filled, size - *filled);
    if (result <= 0)
    {
      *outcome = result < 0 && errno == EAGAIN ? DONE : ENDED;
      return false;
    }
    *filled += (size_t) result;
  }
  return true;
}

static enum outcome receive (struct connection *connection)
{
  struct tsuji_participant *participant = connection->participant;
  struct head *head = &connection->head;
  enum outcome outcome = DONE;
  /* What is in the stage is always handled: no socket will tell of it again. */
  for (size_t turn = 0; turn < TURN_BYTES || connection->stage_at != connection->stage_end;)
  {
    if (!fill (connection, (unsigned char *) head, sizeof (*head), &connection->head_filled, &outcome))
      return outcome;
    if ((head->kind == SAMPLE ? SAMPLE_BYTES_MAX : SAID_BYTES_MAX) < head->size)
      return NONSENSE;
    if (connection->body == NULL)
      connection->body = parcel_new (head->size);
    if (connection->body == NULL)
      return STARVED;
    if (!fill (connection, parcel_data (connection->body), head->size, &connection->body_filled, &outcome))
      return outcome;
    lock (participant);
    if (connection->is_doomed)
      outcome = ENDED;
    else
      outcome = connection->is_open ? handle_open (connection) : handle_hello (connection);
    unlock (participant);
    if (outcome != DONE)
      return outcome;
    turn += sizeof (*head) + head->size;
    parcel_drop (connection->body);
    connection->body = NULL;
    connection->head_filled = connection->body_filled = 0;
  }
  return DONE;
}

static void serve (struct connection *connection)
{
  const enum outcome outcome = receive (connection);
  connection->is_starved = outcome == STARVED;
  lock (connection->participant);
  acknowledge (connection);
  flush (connection);
  if (outcome == ENDED)
    doom (connection, NULL);
  if (outcome == NONSENSE)
    doom (connection, "it says what makes no sense");
  unlock (connection->participant);
}

/* Meeting, by the thread and without the lock */

/* Takes over the descriptor. NULL where nobody is met. */
static struct connection *connect_to (struct tsuji_participant *participant, int fd, const unsigned char *prefix)
{
  struct ucred other;
  socklen_t size = sizeof (other);
  struct connection *connection = NULL;
  if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid () &&
      participant->connections.count < CONNECTIONS_MAX)
    connection = calloc (1, sizeof (*connection));
  if (connection == NULL)
  {
    close_fd (fd);
    return NULL;
  }
  connection->participant = participant;
  connection->fd = fd;
  /* 0 for who is in another PID namespace. */
  connection->pid = 0 < other.pid ? (uint32_t) other.pid : 0;
  connection->is_mine = connection->is_named = prefix != NULL;
  if (prefix != NULL)
    memcpy (connection->prefix, prefix, PREFIX_BYTES);
  lock (participant);
  const bool is_listed = list_add (&participant->connections, connection);
  const struct head hello = { .kind = HELLO };
  if (is_listed && connection->is_mine)
    post (connection, hello, participant->said);
  unlock (participant);
  if (!is_listed)
  {
    close_fd (fd);
    free (connection);
    return NULL;
  }
  return connection;
}

static void accept_all (struct tsuji_participant *participant)
{
  for (;;)
  {
    const int fd = own_fd (accept4 (participant->listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
      continue;
    /* Without descriptors the socket stays readable; it is left alone for a while. */
    participant->is_crowded = fd < 0 && errno != EAGAIN;
    if (fd < 0)
      return;
    (void) connect_to (participant, fd, NULL);
  }
}

/* Whether a name in the folder is a participant's. */
static bool read_prefix (const char *name, unsigned char *prefix)
{
  static const char digits[] = "0123456789abcdef";
  if (strlen (name) != 2 * PREFIX_BYTES)
    return false;
  for (size_t at = 0; at < 2 * PREFIX_BYTES; at++)
  {
    const char *digit = strchr (digits, name[at]);
    if (digit == NULL)
      return false;
    prefix[at / 2] = (unsigned char) (prefix[at / 2] << 4 | (digit - digits));
  }
  return true;
}

static bool is_met (const struct tsuji_participant *participant, const unsigned char *prefix)
{
  if (memcmp (participant->prefix, prefix, PREFIX_BYTES) == 0)
    return true;
  for (size_t at = 0; at < participant->connections.count; at++)
  {
    const struct connection *it = participant->connections.items[at];
    if (it->is_named && memcmp (it->prefix, prefix, PREFIX_BYTES) == 0)
      return true;
  }
  return false;
}

static bool path_of (char *path, const char *folder, const char *dot, const char *name)
{
  const size_t size = sizeof (((struct sockaddr_un *) 0)->sun_path);
  const int length = snprintf (path, size, "%s/%s%s", folder, dot, name);
  return 0 < length && (size_t) length < size;
}

/* Connects to all that are in the folder and not met. */
static void look_around (struct tsuji_participant *participant)
{
  participant->look_at_ms = -1;
  DIR *folder = opendir (participant->folder);
  if (folder == NULL)
  {
    participant->look_at_ms = now_ms () + LOOK_AGAIN_MS;
    return;
  }
  for (struct dirent *it = readdir (folder); it != NULL; it = readdir (folder))
  {
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    unsigned char prefix[PREFIX_BYTES] = { 0 };
    if (!read_prefix (it->d_name, prefix) || is_met (participant, prefix))
      continue;
    if (!path_of (address.sun_path, participant->folder, "", it->d_name))
      continue;
    const int fd = own_fd (socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (0 <= fd && connect (fd, (struct sockaddr *) &address, sizeof (address)) == 0)
    {
      (void) connect_to (participant, fd, prefix);
      continue;
    }
    /* Who has this name listens since before he had it; so he is dead. */
    if (0 <= fd && errno == ECONNREFUSED)
      (void) unlink (address.sun_path);
    /* Too many wait to be accepted there, or there is no descriptor. */
    else if (fd < 0 || errno == EAGAIN)
      participant->look_at_ms = now_ms () + AGAIN_MS;
    close_fd (fd);
  }
  closedir (folder);
}

/* Ends one connection that is doomed, with all that was at its other end. Called with the lock. */
static bool end_one (struct tsuji_participant *participant)
{
  struct connection *connection = NULL;
  for (size_t at = 0; at < participant->connections.count && connection == NULL; at++)
  {
    struct connection *it = participant->connections.items[at];
    if (it->is_doomed || participant->is_leaving)
      connection = it;
  }
  if (connection == NULL)
    return false;
  list_remove (&participant->connections, connection);
  become_mute (connection);
  while (connection->remotes.count != 0)
    remote_end (connection->remotes.items[connection->remotes.count - 1]);
  if (connection->is_open)
    tell_all (connection, TSUJI_FOUND_GONE, PARTICIPANT_ID, NULL, NULL);
  pthread_cond_broadcast (&participant->changed);
  unlock (participant);
  if (connection->why != NULL)
  {
    char text[128];
    (void) snprintf (text, sizeof (text), "process %u is cut off: %s", (unsigned) connection->pid, connection->why);
    participant->log (1, text);
  }
  close_fd (connection->fd);
  parcel_drop (connection->said);
  parcel_drop (connection->body);
  free (connection->remotes.items);
  free (connection);
  if (participant->look_at_ms < 0)
    participant->look_at_ms = now_ms () + LOOK_AGAIN_MS;
  lock (participant);
  return true;
}

/* The thread */

/* What to wait for, and how many milliseconds at most. Called with the lock. */
static int prepare_wait (struct tsuji_participant *participant)
{
  int timeout_ms = participant->is_crowded ? AGAIN_MS : -1;
  if (0 <= participant->look_at_ms)
  {
    const int64_t left_ms = participant->look_at_ms - now_ms ();
    const int look_ms = left_ms <= 0 ? 0 : (int) left_ms;
    timeout_ms = timeout_ms < 0 || look_ms < timeout_ms ? look_ms : timeout_ms;
  }
  struct pollfd *polled = participant->polled;
  polled[0] = (struct pollfd) { .fd = participant->nudge, .events = POLLIN };
  polled[1] = (struct pollfd) { .fd = participant->is_crowded ? -1 : participant->listening, .events = POLLIN };
  for (size_t at = 0; at < participant->connections.count; at++)
  {
    const struct connection *it = participant->connections.items[at];
    polled[at + 2].fd = it->is_starved ? -1 : it->fd;
    polled[at + 2].events = (short) (POLLIN | (it->first == NULL ? 0 : POLLOUT));
    polled[at + 2].revents = 0;
    if (it->is_starved && (timeout_ms < 0 || AGAIN_MS < timeout_ms))
      timeout_ms = AGAIN_MS;
  }
  return timeout_ms;
}

static void *run (void *arg)
{
  struct tsuji_participant *participant = arg;
  lock (participant);
  while (!participant->is_leaving)
  {
    const int timeout_ms = prepare_wait (participant);
    const size_t count = participant->connections.count;
    participant->is_asleep = true;
    unlock (participant);
    const int ready = poll (participant->polled, (nfds_t) (count + 2), timeout_ms);
    lock (participant);
    participant->is_asleep = false;
    unlock (participant);
    uint64_t nudges;
    if (0 < ready && participant->polled[0].revents != 0 && read (participant->nudge, &nudges, sizeof (nudges)) < 0)
      nudges = 0;
    for (size_t at = 0; at < count; at++)
    {
      struct connection *connection = participant->connections.items[at];
      if (connection->is_starved || (0 < ready && participant->polled[at + 2].revents != 0))
        serve (connection);
    }
    if (participant->is_crowded || (0 < ready && participant->polled[1].revents != 0))
      accept_all (participant);
    if (0 <= participant->look_at_ms && participant->look_at_ms <= now_ms ())
      look_around (participant);
    lock (participant);
    /* What ends is told of as well. */
    while (!participant->is_leaving && end_one (participant))
      ;
    call_due (participant);
  }
  unlock (participant);
  return NULL;
}

/* The table: participants */

/* Makes the folder of the domain, or finds it, and sees that nobody else can put anything there. */
static int32_t find_folder (struct tsuji_participant *participant, const struct tsuji_join *join, char *problem)
{
  const char *parent = getenv ("TMPDIR");
  if (parent == NULL || *parent == '\0')
    parent = "/tmp";
  for (size_t at = 0; at < join->settings_count; at++)
  {
    if (strcmp (join->settings[at].key, "folder") != 0)
    {
      say (problem, "no setting \"%s\"; allowed: folder", join->settings[at].key);
      return TSUJI_INVALID;
    }
    parent = join->settings[at].value;
  }
  const size_t room = sizeof (participant->folder);
  const int length = snprintf (participant->folder, room, "%s/tsuji-example-1-%u-%u", parent, (unsigned) geteuid (),
    (unsigned) join->domain);
  if (length < 0 || room < (size_t) length + 2 * PREFIX_BYTES + sizeof ("/."))
  {
    say (problem, "the folder %s is too long for the address of a socket; allowed: a shorter one by the setting \"folder\"", parent);
    return TSUJI_INVALID;
  }
  if (mkdir (participant->folder, 0700) != 0 && errno != EEXIST)
  {
    say (problem, "cannot make the folder %s: %s", participant->folder, strerror (errno));
    return TSUJI_UNEXPECTED;
  }
  struct stat status;
  if (lstat (participant->folder, &status) != 0 || !S_ISDIR (status.st_mode) || status.st_uid != geteuid () ||
      (status.st_mode & 077u) != 0)
  {
    say (problem, "%s is not safe; allowed: a folder of this user that nobody else may look into (mode 0700)", participant->folder);
    return TSUJI_UNEXPECTED;
  }
  return 0;
}

/* The socket gets its name when it listens, so that whoever finds it can connect, or else knows that it is left over. */
static bool open_socket (struct tsuji_participant *participant)
{
  char name[2 * PREFIX_BYTES + 1];
  for (size_t at = 0; at < PREFIX_BYTES; at++)
    (void) snprintf (name + 2 * at, 3, "%02x", (unsigned) participant->prefix[at]);
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  char path[sizeof (participant->path)];
  if (!path_of (address.sun_path, participant->folder, ".", name) || !path_of (path, participant->folder, "", name))
    return false;
  participant->listening = own_fd (socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (participant->listening < 0 || bind (participant->listening, (struct sockaddr *) &address, sizeof (address)) != 0)
    return false;
  if (listen (participant->listening, SOMAXCONN) != 0 || rename (address.sun_path, path) != 0)
  {
    const int error = errno;
    (void) unlink (address.sun_path);
    errno = error;
    return false;
  }
  memcpy (participant->path, path, sizeof (path));
  return true;
}

static int32_t fill_participant (struct tsuji_participant *participant, const struct tsuji_join *join, char *problem)
{
  if (getrandom (participant->prefix, PREFIX_BYTES, 0) != (ssize_t) PREFIX_BYTES)
  {
    say (problem, "no random numbers: %s", strerror (errno));
    return TSUJI_UNEXPECTED;
  }
  const int32_t result = find_folder (participant, join, problem);
  if (result < 0)
    return result;
  char host[256] = "";
  (void) gethostname (host, sizeof (host) - 1);
  participant->said = description_new (host, program_invocation_short_name, join->user_data, join->user_data_size, NULL, participant->prefix);
  participant->nudge = own_fd (eventfd (0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (participant->said == NULL || participant->nudge < 0)
  {
    say (problem, "no memory or no descriptor is left");
    return TSUJI_EXHAUSTED;
  }
  if (!open_socket (participant))
  {
    say (problem, "cannot listen in %s: %s", participant->folder, strerror (errno));
    return TSUJI_UNEXPECTED;
  }
  return 0;
}

static void free_participant (struct tsuji_participant *participant)
{
  close_fd (participant->listening);
  close_fd (participant->nudge);
  free (participant->said);
  free (participant->endpoints.items);
  free (participant->watches.items);
  free (participant->connections.items);
  pthread_cond_destroy (&participant->changed);
  pthread_mutex_destroy (&participant->lock);
  free (participant);
}

static int32_t join_domain (const struct tsuji_join *join, struct tsuji_participant **joined, char *problem)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void) pthread_once (&once, watch_forks);
  if (join->size < sizeof (*join) || SAID_BYTES_MAX / 2 < join->user_data_size)
  {
    say (problem, "user data of %zu bytes; at most %zu", join->user_data_size, SAID_BYTES_MAX / 2);
    return join->size < sizeof (*join) ? TSUJI_UNSUPPORTED : TSUJI_TOO_LARGE;
  }
  struct tsuji_participant *participant = calloc (1, sizeof (*participant));
  if (participant == NULL)
    return TSUJI_EXHAUSTED;
  participant->listening = participant->nudge = -1;
  participant->log = join->log;
  pthread_mutex_init (&participant->lock, NULL);
  pthread_condattr_t clock;
  pthread_condattr_init (&clock);
  pthread_condattr_setclock (&clock, CLOCK_MONOTONIC);
  pthread_cond_init (&participant->changed, &clock);
  pthread_condattr_destroy (&clock);
  int32_t result = fill_participant (participant, join, problem);
  if (result == 0)
  {
    /* The thread is nobody's business: signals go to the threads of the program. */
    sigset_t all, before;
    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &before);
    if (pthread_create (&participant->thread, NULL, run, participant) != 0)
    {
      say (problem, "no thread is left");
      result = TSUJI_EXHAUSTED;
      (void) unlink (participant->path);
    }
    pthread_sigmask (SIG_SETMASK, &before, NULL);
  }
  if (result < 0)
    free_participant (participant);
  else
    *joined = participant;
  return result;
}

static void leave (struct tsuji_participant *participant)
{
  (void) unlink (participant->path);
  lock (participant);
  participant->is_leaving = true;
  nudge (participant);
  unlock (participant);
  pthread_join (participant->thread, NULL);
  lock (participant);
  while (end_one (participant))
    ;
  unlock (participant);
  free_participant (participant);
}

static void participant_name (const struct tsuji_participant *participant, unsigned char *name)
{
  put_name (name, participant->prefix, PARTICIPANT_ID);
}

/* The table: what writers and readers have in common. It takes the lock itself. */

static bool is_sound (const struct tsuji_qos *qos)
{
  return qos->reliability <= TSUJI_RELIABLE && qos->durability <= TSUJI_PERSISTENT && qos->history <= TSUJI_KEEP_ALL &&
         qos->liveliness <= TSUJI_MANUAL_BY_TOPIC;
}

/* Fills the endpoint and announces it. What it is part of is zeroed, and freed by the caller when this fails. */
static int32_t open_endpoint (struct tsuji_participant *participant, const struct tsuji_endpoint *from, uint32_t kind,
  struct endpoint *endpoint, char *problem)
{
  if (from->size < sizeof (*from))
    return TSUJI_UNSUPPORTED;
  if (!is_sound (&from->qos) || (kind == WRITER_KIND && TSUJI_TRANSIENT_LOCAL < from->qos.durability))
  {
    say (problem, "a QoS that it does not have; allowed: durability volatile or transient local, and history keep last or keep all");
    return TSUJI_UNSUPPORTED;
  }
  const size_t part_max = SAID_BYTES_MAX / 4;
  if (part_max < strlen (from->topic) || part_max < strlen (from->type) || part_max < from->user_data_size)
  {
    say (problem, "a topic, a type or user data of more than %zu bytes", part_max);
    return TSUJI_TOO_LARGE;
  }
  endpoint->object.participant = participant;
  endpoint->said = description_new (from->topic, from->type, from->user_data, from->user_data_size, &from->qos, participant->prefix);
  if (endpoint->said == NULL)
    return TSUJI_EXHAUSTED;
  (void) description_read (endpoint->said->data, endpoint->said->size, &endpoint->description);
  lock (participant);
  const bool is_listed = participant->endpoints_made < 0xffffffu && list_add (&participant->endpoints, endpoint);
  if (is_listed)
  {
    endpoint->id = ++participant->endpoints_made << 8 | kind;
    const struct head head = { .kind = kind == WRITER_KIND ? WRITER : READER, .from = endpoint->id };
    post_to_all (participant, head, endpoint->said);
  }
  for (size_t at = 0; is_listed && kind == WRITER_KIND && at < participant->connections.count; at++)
  {
    const struct connection *connection = participant->connections.items[at];
    for (size_t of = 0; is_alive (connection) && of < connection->remotes.count; of++)
    {
      struct remote *remote = connection->remotes.items[of];
      if (!is_writer (remote->id))
        try_match ((struct tsuji_writer *) endpoint, remote);
    }
  }
  unlock (participant);
  if (is_listed)
    return 0;
  free (endpoint->said);
  return TSUJI_EXHAUSTED;
}

/* What was written goes before this on each connection. Called with the lock, which its callbacks may have had meanwhile. */
static void close_endpoint (struct endpoint *endpoint)
{
  struct tsuji_participant *participant = endpoint->object.participant;
  listen_no_more (&endpoint->object);
  list_remove (&participant->endpoints, endpoint);
  links_end (&endpoint->links);
  const struct head head = { .kind = GONE, .from = endpoint->id };
  post_to_all (participant, head, NULL);
  cargo_drop (participant, endpoint->said);
}

/* Tells of each without the lock, as with all that is tsuji's. */
static int32_t each_match (const struct endpoint *endpoint, void *arg, tsuji_each_fn each)
{
  struct tsuji_participant *participant = endpoint->object.participant;
  lock (participant);
  const size_t count = endpoint->links.count;
  unsigned char (*names)[TSUJI_NAME_BYTES] = malloc ((count + 1) * sizeof (*names));
  for (size_t at = 0; names != NULL && at < count; at++)
  {
    const struct remote *remote = ((const struct link *) endpoint->links.items[at])->remote;
    put_name (names[at], remote->connection->prefix, remote->id);
  }
  unlock (participant);
  if (names == NULL)
    return TSUJI_EXHAUSTED;
  for (size_t at = 0; at < count; at++)
    each (arg, names[at]);
  free (names);
  return 0;
}

/* The table: writers */

static int32_t open_writer (struct tsuji_participant *participant, const struct tsuji_endpoint *endpoint,
  struct tsuji_writer **opened, char *problem)
{
  struct tsuji_writer *writer = calloc (1, sizeof (*writer));
  if (writer == NULL)
    return TSUJI_EXHAUSTED;
  const struct tsuji_qos *qos = &endpoint->qos;
  if (qos->durability != TSUJI_VOLATILE)
    writer->kept_max = qos->history == TSUJI_KEEP_ALL ? qos->keep_all_max : qos->depth;
  const int32_t result = open_endpoint (participant, endpoint, WRITER_KIND, &writer->endpoint, problem);
  if (result < 0)
    free (writer);
  else
    *opened = writer;
  return result;
}

static void writer_name (const struct tsuji_writer *writer, unsigned char *name)
{
  put_name (name, writer->endpoint.object.participant->prefix, writer->endpoint.id);
}

static int32_t listen_writer (struct tsuji_writer *writer, const struct tsuji_ear *ear)
{
  return listen_to (&writer->endpoint.object, ear);
}

static void forget_oldest (struct tsuji_writer *writer)
{
  struct kept *oldest = writer->kept_first;
  writer->kept_first = oldest->next;
  writer->kept_count--;
  cargo_drop (writer->endpoint.object.participant, oldest->cargo);
  free (oldest);
}

static bool is_reliable (const struct link *link) { return link->remote->description.qos.reliability == TSUJI_RELIABLE; }

/* Whether a sample is put into the queue of a connection, where one more fits always. */
static bool has_room (const struct connection *connection) { return connection->queued_bytes < QUEUED_BYTES_MAX; }

/* A frame for each connection with a reader that matches, in a list; false where there is no memory for all. The frames get
 * their heads later. */
static bool address_frames (struct tsuji_writer *writer, struct head head, struct cargo *cargo, struct frame **frames)
{
  const uint64_t mark = ++writer->endpoint.object.participant->mark;
  const struct list *links = &writer->endpoint.links;
  for (size_t at = 0; at < links->count; at++)
  {
    struct connection *connection = ((const struct link *) links->items[at])->remote->connection;
    if (connection->mark == mark || !is_alive (connection) || !has_room (connection))
      continue;
    struct frame *frame = frame_new (connection, head, cargo);
    if (frame == NULL)
      return false;
    connection->mark = mark;
    frame->next = *frames;
    *frames = frame;
  }
  return true;
}

/* Nothing is sent to anybody unless it can be sent to all who count on it; so what is refused has no number. */
static int32_t send_sample (struct tsuji_writer *writer, struct cargo *cargo, int64_t source_ns)
{
  struct tsuji_participant *participant = writer->endpoint.object.participant;
  const struct list *links = &writer->endpoint.links;
  for (size_t at = 0; at < links->count; at++)
  {
    const struct link *link = links->items[at];
    if (is_reliable (link) && is_alive (link->remote->connection) && !has_room (link->remote->connection))
      return TSUJI_BUSY;
  }
  struct head head = { .kind = SAMPLE, .from = writer->endpoint.id };
  head.number = writer->written + 1;
  head.source_ns = source_ns;
  struct frame *frames = NULL;
  struct kept *kept = writer->kept_max == 0 ? NULL : calloc (1, sizeof (*kept));
  if ((kept == NULL && writer->kept_max != 0) || !address_frames (writer, head, cargo, &frames))
  {
    free (kept);
    while (frames != NULL)
    {
      struct frame *next = frames->next;
      cargo_drop (participant, frames->cargo);
      free (frames);
      frames = next;
    }
    return TSUJI_EXHAUSTED;
  }
  writer->written++;
  if (kept != NULL)
  {
    *kept = (struct kept) { .cargo = cargo_hold (cargo), .number = head.number, .source_ns = source_ns };
    if (writer->kept_first == NULL)
      writer->kept_first = kept;
    else
      writer->kept_last->next = kept;
    writer->kept_last = kept;
    writer->kept_count++;
    while (writer->kept_max < writer->kept_count)
      forget_oldest (writer);
  }
  while (frames != NULL)
  {
    struct frame *next = frames->next;
    post_frame (frames->connection, frames);
    frames = next;
  }
  for (size_t at = 0; at < links->count; at++)
  {
    struct link *link = links->items[at];
    if (link->remote->connection->mark == participant->mark)
      link->last_sent = link->remote->connection->samples_sent;
  }
  return 0;
}

static int32_t write_sample (struct tsuji_writer *writer, const unsigned char *data, size_t size, int64_t source_ns,
  const struct tsuji_related *related, void *owner, void (*release) (void *owner))
{
  (void) related;
  struct tsuji_participant *participant = writer->endpoint.object.participant;
  struct cargo *cargo = SAMPLE_BYTES_MAX < size ? NULL : calloc (1, sizeof (*cargo));
  if (cargo == NULL)
  {
    release (owner);
    return SAMPLE_BYTES_MAX < size ? TSUJI_TOO_LARGE : TSUJI_EXHAUSTED;
  }
  *cargo = (struct cargo) { .holders = 1, .data = data, .size = size, .owner = owner, .release = release };
  lock (participant);
  const int32_t result = send_sample (writer, cargo, source_ns);
  cargo_drop (participant, cargo);
  unlock (participant);
  return result;
}

static bool has_all (const struct tsuji_writer *writer)
{
  const struct list *links = &writer->endpoint.links;
  for (size_t at = 0; at < links->count; at++)
  {
    const struct link *link = links->items[at];
    if (is_reliable (link) && link->remote->connection->samples_acknowledged < link->last_sent)
      return false;
  }
  return true;
}

static int32_t acknowledged (struct tsuji_writer *writer, int64_t timeout_ns)
{
  struct tsuji_participant *participant = writer->endpoint.object.participant;
  /* TSUJI_INFINITE does not fit behind the time that it is now. */
  const int64_t longest_ns = (int64_t) 1000000000 * 86400 * 365;
  const int64_t wait_ns = timeout_ns < 0 ? 0 : longest_ns < timeout_ns ? longest_ns : timeout_ns;
  struct timespec end;
  clock_gettime (CLOCK_MONOTONIC, &end);
  const int64_t end_ns = end.tv_nsec + wait_ns;
  end.tv_sec += (time_t) (end_ns / 1000000000);
  end.tv_nsec = (long) (end_ns % 1000000000);
  lock (participant);
  int timed_out = wait_ns == 0;
  while (!has_all (writer) && !timed_out)
    timed_out = pthread_cond_timedwait (&participant->changed, &participant->lock, &end) != 0;
  const int32_t result = has_all (writer);
  unlock (participant);
  return result;
}

static void close_writer (struct tsuji_writer *writer)
{
  struct tsuji_participant *participant = writer->endpoint.object.participant;
  (void) acknowledged (writer, CLOSE_WAITS_NS);
  lock (participant);
  close_endpoint (&writer->endpoint);
  while (writer->kept_first != NULL)
    forget_oldest (writer);
  unlock (participant);
  free (writer);
}

static int32_t writer_matches (const struct tsuji_writer *writer, void *arg, tsuji_each_fn each)
{
  return each_match (&writer->endpoint, arg, each);
}

/* The table: readers */

static int32_t open_reader (struct tsuji_participant *participant, const struct tsuji_endpoint *endpoint,
  struct tsuji_reader **opened, char *problem)
{
  struct tsuji_reader *reader = calloc (1, sizeof (*reader));
  if (reader == NULL)
    return TSUJI_EXHAUSTED;
  const int32_t result = open_endpoint (participant, endpoint, READER_KIND, &reader->endpoint, problem);
  if (result < 0)
    free (reader);
  else
    *opened = reader;
  return result;
}

static void close_reader (struct tsuji_reader *reader)
{
  struct tsuji_participant *participant = reader->endpoint.object.participant;
  lock (participant);
  close_endpoint (&reader->endpoint);
  unlock (participant);
  for (struct parcel *parcel; (parcel = reader_pop (reader)) != NULL;)
    parcel_drop (parcel);
  free (reader);
}

static void reader_name (const struct tsuji_reader *reader, unsigned char *name)
{
  put_name (name, reader->endpoint.object.participant->prefix, reader->endpoint.id);
}

static int32_t listen_reader (struct tsuji_reader *reader, const struct tsuji_ear *ear)
{
  return listen_to (&reader->endpoint.object, ear);
}

static int32_t take (struct tsuji_reader *reader, struct tsuji_taken *taken)
{
  struct tsuji_participant *participant = reader->endpoint.object.participant;
  lock (participant);
  struct parcel *parcel = reader_pop (reader);
  unlock (participant);
  if (parcel == NULL)
    return 0;
  taken->sample = parcel;
  taken->data = parcel_data (parcel);
  taken->data_size = parcel->size;
  put_name (taken->writer, parcel->prefix, parcel->from);
  taken->number = parcel->number;
  taken->source_ns = parcel->source_ns;
  taken->related = (struct tsuji_related) { .number = 0 };
  return 1;
}

static void sample_free (void *sample) { parcel_drop (sample); }

static int32_t reader_matches (const struct tsuji_reader *reader, void *arg, tsuji_each_fn each)
{
  return each_match (&reader->endpoint, arg, each);
}

/* The table: watches */

static int32_t open_watch (struct tsuji_participant *participant, const struct tsuji_ear *ear, struct tsuji_watch **opened,
  char *problem)
{
  (void) problem;
  struct tsuji_watch *watch = calloc (1, sizeof (*watch));
  if (watch == NULL)
    return TSUJI_EXHAUSTED;
  watch->object.participant = participant;
  watch->object.ear = *ear;
  watch->object.is_listened_to = true;
  lock (participant);
  const bool is_listed = list_add (&participant->watches, watch);
  for (size_t at = 0; is_listed && at < participant->connections.count; at++)
  {
    const struct connection *connection = participant->connections.items[at];
    if (!connection->is_open)
      continue;
    tell (watch, TSUJI_FOUND_PARTICIPANT, connection, PARTICIPANT_ID, &connection->description, connection->said);
    for (size_t of = 0; of < connection->remotes.count; of++)
    {
      const struct remote *remote = connection->remotes.items[of];
      tell (watch, found_kind (remote->id), connection, remote->id, &remote->description, remote->said);
    }
  }
  unlock (participant);
  if (!is_listed)
  {
    free (watch);
    return TSUJI_EXHAUSTED;
  }
  *opened = watch;
  return 0;
}

static void found_free (struct tsuji_found *found)
{
  struct finding *finding = found->memory;
  parcel_drop (finding->said);
  free (finding);
}

static void close_watch (struct tsuji_watch *watch)
{
  struct tsuji_participant *participant = watch->object.participant;
  lock (participant);
  listen_no_more (&watch->object);
  list_remove (&participant->watches, watch);
  unlock (participant);
  while (watch->first != NULL)
  {
    struct finding *next = watch->first->next;
    found_free (&watch->first->found);
    watch->first = next;
  }
  free (watch);
}

static int32_t found (struct tsuji_watch *watch, struct tsuji_found *to)
{
  struct tsuji_participant *participant = watch->object.participant;
  lock (participant);
  struct finding *finding = watch->first;
  const bool has_missed = finding == NULL && watch->has_missed;
  if (finding != NULL)
    watch->first = finding->next;
  else
    watch->has_missed = false;
  unlock (participant);
  if (finding == NULL)
    return has_missed ? TSUJI_EXHAUSTED : 0;
  *to = finding->found;
  return 1;
}

static const struct tsuji_transport transport = {
  .abi = TSUJI_TRANSPORT_ABI,
  .size = sizeof (struct tsuji_transport),
  .name = "example",
  .version = "1, over Unix sockets",
  .scopes = TSUJI_SCOPE_LOCAL,
  .peers = 0,
  .features = 0,
  .sample_bytes_max = SAMPLE_BYTES_MAX,
  .join = join_domain,
  .leave = leave,
  .participant_name = participant_name,
  .open_writer = open_writer,
  .close_writer = close_writer,
  .writer_name = writer_name,
  .listen_writer = listen_writer,
  .write = write_sample,
  .acknowledged = acknowledged,
  .writer_matches = writer_matches,
  .open_reader = open_reader,
  .close_reader = close_reader,
  .reader_name = reader_name,
  .listen_reader = listen_reader,
  .take = take,
  .sample_free = sample_free,
  .reader_matches = reader_matches,
  .open_watch = open_watch,
  .close_watch = close_watch,
  .found = found,
  .found_free = found_free,
};

const struct tsuji_transport *tsuji_transport (void) { return &transport; }

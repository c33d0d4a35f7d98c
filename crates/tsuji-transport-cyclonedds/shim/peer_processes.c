/* Part of Cyclone DDS, as build.rs builds it. */
#include "peer_processes.h"

#include <string.h>

#include <linux/filter.h>
#include <sys/socket.h>

#include "dds/ddsrt/heap.h"
#include "dds/ddsrt/hopscotch.h"
#include "dds/ddsrt/string.h"
#include "dds/ddsrt/sync.h"
#include "dds/ddsrt/time.h"
#include "dds/ddsi/ddsi_domaingv.h"
#include "dds/ddsi/ddsi_guid.h"
#include "dds/ddsi/ddsi_thread.h"
#include "ddsi__entity_index.h"
#include "ddsi__participant.h"
#include "ddsi__proxy_participant.h"
#include "ddsi__spdp_schedule.h"
#include "ddsi__tran.h"
#include "ddsi__xevent.h"

/* How long a participant has to be met by other means. */
#define PATIENCE DDS_SECS (5)

/* Beyond so many participants, and processes, others are met as everybody is. */
#define PARTICIPANTS_MAX 4096u

/* Participants of a process at a time: it may have joined anew. */
#define OF_A_PROCESS_MAX 16u

/* After so many messages that were passed over here the system is asked to drop the next. */
#define PASSED_MAX 50u

/* The most participants that the system is told of, of whose programs each has at most 4096 steps. It takes fewer where
 * `net.core.optmem_max` is small. */
#define FILTERED_MAX 500u
#define FILTERED_MIN 8u

/* Those who are to be met within that time hear one announcement. */
#define GATHERED DDS_MSECS (1)

/* A participant that has just been met is answered so often: a few times at once, for it announces itself more than once when it
 * joins, and then after pauses that grow from this one. */
#define ANSWERS_AT_ONCE 3u
#define ANSWERS_MAX 7u
#define ANSWER_PAUSE DDS_MSECS (20)

struct participant {
  ddsi_guid_prefix_t prefix;
  char process[TSUJI_PROCESS_LEN + 1];
  enum tsuji_treatment treatment;
  /* When it got that: when it was heard first, or when it changed. */
  ddsrt_mtime_t since;
  /* How often it was answered since, and when it is again. */
  uint32_t answers;
  ddsrt_mtime_t answers_from;
};

struct process {
  char name[TSUJI_PROCESS_LEN + 1];
  enum tsuji_treatment treatment;
};

struct tsuji_peers {
  struct ddsi_domaingv *gv;
  char *claim;
  char *key;
  ddsrt_mutex_t lock;
  struct ddsrt_hh *by_prefix;
  uint32_t count;
  /* Those with a treatment other than TSUJI_WAIT. */
  struct process *processes;
  uint32_t process_count;
  uint32_t process_room;
  /* Messages that were passed over here since the system was told, which others may have to be told of. */
  uint32_t passed;
  bool is_filter_old;
  bool is_announcing;
};

static ddsrt_thread_local struct tsuji_peers *next_domain;

static uint32_t hash (const void *va)
{
  const struct participant *a = va;
  const uint64_t mixed = (a->prefix.u[0] + UINT64_C (15385148050874689571)) * (a->prefix.u[1] + UINT64_C (17503036526311582379)) +
    (a->prefix.u[2] + UINT64_C (11075621958654396447)) * UINT64_C (9748227842331024047);
  return (uint32_t) (mixed >> 32);
}

static bool is_same (const void *va, const void *vb)
{
  const struct participant *a = va, *b = vb;
  return memcmp (&a->prefix, &b->prefix, sizeof (a->prefix)) == 0;
}

struct tsuji_peers *tsuji_peers_new (const char *claim, const char *key)
{
  struct tsuji_peers *all = ddsrt_calloc_s (1, sizeof (*all));
  if (all == NULL)
    return NULL;
  all->claim = ddsrt_strdup (claim);
  all->key = ddsrt_strdup (key);
  all->by_prefix = ddsrt_hh_new (32, hash, is_same);
  ddsrt_mutex_init (&all->lock);
  return all;
}

void tsuji_peers_for_next (struct tsuji_peers *all)
{
  next_domain = all;
}

struct tsuji_peers *tsuji_peers_take_next (struct ddsi_domaingv *gv)
{
  struct tsuji_peers *all = next_domain;
  next_domain = NULL;
  if (all != NULL)
    all->gv = gv;
  return all;
}

/* The sockets to which all of the host sends. Answers whether that for announcements agrees. */
static bool for_multicast (const struct ddsi_domaingv *gv, int option, const void *value, socklen_t len)
{
  struct ddsi_tran_conn *conns[] = { gv->data_conn_mc, gv->disc_conn_mc };
  bool is_done = false;
  for (size_t i = 0; i < sizeof (conns) / sizeof (conns[0]); i++)
    is_done = conns[i] != NULL && setsockopt (ddsi_conn_handle (conns[i]), SOL_SOCKET, option, value, len) == 0;
  return is_done;
}

static void filter_no_more (struct tsuji_peers *all)
{
  const int nothing = 0;
  (void) for_multicast (all->gv, SO_DETACH_FILTER, &nothing, sizeof (nothing));
  all->passed = 0;
  all->is_filter_old = true;
}

/* Where the words of the sender's prefix are in a datagram, behind the header of UDP (RTPS 2.5, 8.3.3), and where they end. */
#define PREFIX_AT 16u
#define PREFIX_END 28u

/* A program that drops what up to so many participants say who are passed over, and nothing else: not what is shorter than
 * the header of a message, by which the engine wakes itself. Answers its length. */
static unsigned short write_filter (const struct tsuji_peers *all, struct sock_filter *program, uint32_t most)
{
  const struct sock_filter begin[] = {
    BPF_STMT (BPF_LD | BPF_W | BPF_LEN, 0),
    BPF_JUMP (BPF_JMP | BPF_JGE | BPF_K, PREFIX_END, 1, 0),
    BPF_STMT (BPF_RET | BPF_K, UINT32_MAX),
    BPF_STMT (BPF_LD | BPF_W | BPF_ABS, PREFIX_AT),
    BPF_STMT (BPF_ST, 0),
    BPF_STMT (BPF_LD | BPF_W | BPF_ABS, PREFIX_AT + 8),
    BPF_STMT (BPF_ST, 2),
    /* The second word is looked at first, which is another for each. */
    BPF_STMT (BPF_LD | BPF_W | BPF_ABS, PREFIX_AT + 4),
    BPF_STMT (BPF_ST, 1),
  };
  memcpy (program, begin, sizeof (begin));
  unsigned short len = sizeof (begin) / sizeof (begin[0]);
  uint32_t count = 0;
  struct ddsrt_hh_iter it;
  for (struct participant *one = ddsrt_hh_iter_first (all->by_prefix, &it); one != NULL && count < most; one = ddsrt_hh_iter_next (&it))
  {
    if (one->treatment != TSUJI_PASS_OVER)
      continue;
    const struct sock_filter steps[] = {
      BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, one->prefix.u[1], 0, 6),
      BPF_STMT (BPF_LD | BPF_MEM, 2),
      BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, one->prefix.u[2], 0, 3),
      BPF_STMT (BPF_LD | BPF_MEM, 0),
      BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, one->prefix.u[0], 0, 1),
      BPF_STMT (BPF_RET | BPF_K, 0),
      BPF_STMT (BPF_LD | BPF_MEM, 1),
    };
    memcpy (program + len, steps, sizeof (steps));
    len = (unsigned short) (len + sizeof (steps) / sizeof (steps[0]));
    count++;
  }
  const struct sock_filter keep = BPF_STMT (BPF_RET | BPF_K, UINT32_MAX);
  program[len++] = keep;
  return len;
}

/* From now on the system drops what those say who are passed over, without waking anybody; of fewer where it has no room for
 * all, and of none where it refuses. With the lock held. */
static void filter (struct tsuji_peers *all)
{
  struct sock_filter *program = ddsrt_malloc_s ((7 * FILTERED_MAX + 16) * sizeof (*program));
  if (program == NULL)
    return;
  /* It has to have room for the old one beside the new one. */
  filter_no_more (all);
  for (uint32_t most = FILTERED_MAX; FILTERED_MIN <= most; most /= 2)
  {
    const struct sock_fprog whole = { .len = write_filter (all, program, most), .filter = program };
    if (for_multicast (all->gv, SO_ATTACH_FILTER, &whole, sizeof (whole)))
      break;
  }
  /* Until somebody else is to be passed over it is not tried again. */
  all->is_filter_old = false;
  ddsrt_free (program);
}

static void free_one (void *one, void *arg)
{
  (void) arg;
  ddsrt_free (one);
}

void tsuji_peers_free (struct tsuji_peers *all)
{
  ddsrt_hh_enum (all->by_prefix, free_one, NULL);
  ddsrt_hh_free (all->by_prefix);
  ddsrt_mutex_destroy (&all->lock);
  ddsrt_free (all->processes);
  ddsrt_free (all->claim);
  ddsrt_free (all->key);
  ddsrt_free (all);
}

static const unsigned char *find (const unsigned char *in, size_t len, const char *text)
{
  const size_t text_len = strlen (text);
  for (; text_len <= len; in++, len--)
    if (memcmp (in, text, text_len) == 0)
      return in;
  return NULL;
}

const unsigned char *tsuji_find_key (const unsigned char *in, size_t len, const char *key)
{
  const unsigned char *found = in;
  while ((found = find (found, (size_t) (in + len - found), key)) != NULL)
  {
    if (found == in || found[-1] == ';')
      return found + strlen (key);
    found++;
  }
  return NULL;
}

/* The process that these user data name, if they have the claim. */
static bool read_process (const struct tsuji_peers *all, const unsigned char *user_data, size_t len, char *process)
{
  if (user_data == NULL || tsuji_find_key (user_data, len, all->claim) == NULL)
    return false;
  const unsigned char *value = tsuji_find_key (user_data, len, all->key);
  if (value == NULL)
    return false;
  const size_t left = (size_t) (user_data + len - value);
  const unsigned char *end = memchr (value, ';', left);
  const size_t value_len = end != NULL ? (size_t) (end - value) : left;
  if (value_len == 0 || value_len > TSUJI_PROCESS_LEN || memchr (value, 0, value_len) != NULL)
    return false;
  memcpy (process, value, value_len);
  process[value_len] = 0;
  return true;
}

static struct process *find_process (const struct tsuji_peers *all, const char *name)
{
  for (uint32_t i = 0; i < all->process_count; i++)
    if (strcmp (all->processes[i].name, name) == 0)
      return &all->processes[i];
  return NULL;
}

/* Answers whether it is another than before. */
static bool note_process (struct tsuji_peers *all, const char *name, enum tsuji_treatment treatment)
{
  struct process *found = find_process (all, name);
  if ((found != NULL ? found->treatment : TSUJI_WAIT) == treatment)
    return false;
  if (treatment == TSUJI_WAIT)
  {
    *found = all->processes[--all->process_count];
    return true;
  }
  if (found == NULL)
  {
    if (all->process_count == PARTICIPANTS_MAX)
      return false;
    if (all->process_count == all->process_room)
    {
      const uint32_t room = all->process_room == 0 ? 16 : 2 * all->process_room;
      struct process *grown = ddsrt_realloc_s (all->processes, room * sizeof (*grown));
      if (grown == NULL)
        return false;
      all->processes = grown;
      all->process_room = room;
    }
    found = &all->processes[all->process_count++];
    memcpy (found->name, name, strlen (name) + 1);
  }
  found->treatment = treatment;
  return true;
}

static struct participant *find_participant (const struct tsuji_peers *all, const ddsi_guid_prefix_t *prefix)
{
  struct participant wanted;
  wanted.prefix = *prefix;
  return ddsrt_hh_lookup (all->by_prefix, &wanted);
}

static void remove_one (struct tsuji_peers *all, struct participant *one)
{
  (void) ddsrt_hh_remove (all->by_prefix, one);
  all->count--;
  ddsrt_free (one);
}

/* Makes room where all of it is taken: who is only waited for may be met at once. */
static void forget_waiting (struct tsuji_peers *all)
{
  struct ddsrt_hh_iter it;
  struct participant *one = ddsrt_hh_iter_first (all->by_prefix, &it);
  while (one != NULL)
  {
    struct participant *following = ddsrt_hh_iter_next (&it);
    if (one->treatment == TSUJI_WAIT)
      remove_one (all, one);
    one = following;
  }
}

bool tsuji_peers_wait_for (struct tsuji_peers *all, const ddsi_guid_prefix_t *prefix, const unsigned char *user_data, size_t len)
{
  struct participant wanted;
  memset (&wanted, 0, sizeof (wanted));
  if (all == NULL || !read_process (all, user_data, len, wanted.process))
    return false;
  const ddsrt_mtime_t now = ddsrt_time_monotonic ();
  wanted.prefix = *prefix;
  wanted.since = now;
  ddsrt_mutex_lock (&all->lock);
  const struct participant *found = find_participant (all, prefix);
  if (found == NULL)
  {
    const struct process *process = find_process (all, wanted.process);
    wanted.treatment = process != NULL ? process->treatment : TSUJI_WAIT;
    if (all->count == PARTICIPANTS_MAX)
      forget_waiting (all);
    struct participant *added = all->count < PARTICIPANTS_MAX ? ddsrt_malloc_s (sizeof (*added)) : NULL;
    if (added != NULL)
    {
      *added = wanted;
      all->count++;
      ddsrt_hh_add_absent (all->by_prefix, added);
      if (wanted.treatment == TSUJI_PASS_OVER)
        all->is_filter_old = true;
    }
    /* Who finds no room is not waited for, and passed over all the same if it is to be. */
    found = added != NULL || wanted.treatment == TSUJI_PASS_OVER ? &wanted : NULL;
  }
  const bool is_passed_over = found != NULL && found->treatment != TSUJI_MEET &&
    (found->treatment == TSUJI_PASS_OVER || now.v - found->since.v < PATIENCE);
  ddsrt_mutex_unlock (&all->lock);
  return is_passed_over;
}

bool tsuji_peers_pass_over (struct tsuji_peers *all, const ddsi_guid_prefix_t *prefix)
{
  if (all == NULL)
    return false;
  ddsrt_mutex_lock (&all->lock);
  const struct participant *found = find_participant (all, prefix);
  const bool is_passed_over = found != NULL && found->treatment == TSUJI_PASS_OVER;
  if (is_passed_over && all->is_filter_old && ++all->passed == PASSED_MAX)
    filter (all);
  ddsrt_mutex_unlock (&all->lock);
  return is_passed_over;
}

bool tsuji_peers_answer (struct tsuji_peers *all, const ddsi_guid_prefix_t *prefix)
{
  if (all == NULL)
    return false;
  const ddsrt_mtime_t now = ddsrt_time_monotonic ();
  ddsrt_mutex_lock (&all->lock);
  struct participant *found = find_participant (all, prefix);
  const bool is_just_met = found != NULL && found->treatment == TSUJI_MEET && now.v - found->since.v < PATIENCE;
  const bool is_answered = is_just_met && found->answers < ANSWERS_MAX && found->answers_from.v <= now.v;
  if (is_answered)
  {
    found->answers++;
    if (ANSWERS_AT_ONCE <= found->answers)
      found->answers_from = ddsrt_mtime_add_duration (now, ANSWER_PAUSE << (2 * (found->answers - ANSWERS_AT_ONCE)));
  }
  ddsrt_mutex_unlock (&all->lock);
  return is_answered;
}

void tsuji_peers_lose (struct tsuji_peers *all, const ddsi_guid_prefix_t *prefix)
{
  if (all == NULL)
    return;
  ddsrt_mutex_lock (&all->lock);
  struct participant *found = find_participant (all, prefix);
  if (found != NULL)
    remove_one (all, found);
  ddsrt_mutex_unlock (&all->lock);
}

/* Without the lock: they call back. */
static void forget_proxy (struct ddsi_domaingv *gv, const ddsi_guid_prefix_t *prefix)
{
  const ddsi_guid_t guid = { .prefix = *prefix, .entityid = { .u = DDSI_ENTITYID_PARTICIPANT } };
  struct ddsi_thread_state * const thrst = ddsi_lookup_thread_state ();
  ddsi_thread_state_awake (thrst, gv);
  (void) ddsi_delete_proxy_participant_by_guid (gv, &guid, ddsrt_time_wallclock (), false);
  ddsi_thread_state_asleep (thrst);
}

/* On the thread of the engine's events. */
static void announce (struct ddsi_domaingv *gv, struct ddsi_xevent *event, struct ddsi_xpack *xp, void *varg, ddsrt_mtime_t now)
{
  (void) xp;
  (void) varg;
  (void) now;
  struct tsuji_peers *all = gv->tsuji_peers;
  ddsrt_mutex_lock (&all->lock);
  all->is_announcing = false;
  ddsrt_mutex_unlock (&all->lock);
  struct ddsi_entity_enum_participant each;
  struct ddsi_participant *pp;
  ddsi_entidx_enum_participant_init (&each, gv->entity_index);
  while ((pp = ddsi_entidx_enum_participant_next (&each)) != NULL)
    (void) ddsi_spdp_force_republish (gv->spdp_schedule, pp, NULL);
  ddsi_entidx_enum_participant_fini (&each);
  ddsi_delete_xevent (event);
}

void tsuji_peers_treat (struct tsuji_peers *all, const char *process, enum tsuji_treatment treatment)
{
  if (strlen (process) > TSUJI_PROCESS_LEN)
    return;
  ddsi_guid_prefix_t known[OF_A_PROCESS_MAX];
  uint32_t count = 0;
  const ddsrt_mtime_t now = ddsrt_time_monotonic ();
  ddsrt_mutex_lock (&all->lock);
  const bool is_other = note_process (all, process, treatment);
  struct ddsrt_hh_iter it;
  for (struct participant *one = ddsrt_hh_iter_first (all->by_prefix, &it); is_other && one != NULL; one = ddsrt_hh_iter_next (&it))
  {
    if (strcmp (one->process, process) != 0)
      continue;
    if (treatment == TSUJI_PASS_OVER && count < OF_A_PROCESS_MAX)
      known[count++] = one->prefix;
    one->treatment = treatment;
    one->since = now;
    one->answers = 0;
    one->answers_from = now;
  }
  if (is_other && treatment == TSUJI_PASS_OVER)
    all->is_filter_old = true;
  else if (is_other)
    filter_no_more (all);
  const bool is_announced = is_other && treatment == TSUJI_MEET && !all->is_announcing;
  if (is_announced)
    all->is_announcing = true;
  ddsrt_mutex_unlock (&all->lock);
  for (uint32_t i = 0; i < count; i++)
    forget_proxy (all->gv, &known[i]);
  if (is_announced)
    ddsi_qxev_callback (all->gv->xevents, ddsrt_mtime_add_duration (now, GATHERED), announce, NULL, 0, false);
}

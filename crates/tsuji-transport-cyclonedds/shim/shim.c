/* For what the engine's headers take from the system. */
#define _POSIX_C_SOURCE 200809L

#include "shim.h"
#include "forms.h"

#include <stdlib.h>
#include <string.h>

#include "dds/dds.h"
#include "dds/ddsi/ddsi_protocol.h"
#include "dds/ddsi/ddsi_radmin.h"
#include "dds/ddsi/ddsi_serdata.h"
#include "dds/ddsi/ddsi_sertype.h"
#include "dds/ddsrt/atomics.h"
#include "dds/ddsrt/heap.h"
#include "dds/ddsrt/log.h"
#include "dds/ddsrt/sync.h"

#define HEADER_LEN 4u
/* Larger than any sample that tsuji takes, and far from what overflows. */
#define SAMPLE_LEN_MAX ((size_t) 1 << 30)
/* Where the data begins modulo 16, so that the body behind the header is aligned. */
#define LEAD 12u

/* Memory of samples that have been taken and let go of, for the next ones. The allocator may give memory of this size
 * back to the system each time, and then each page of it is zeroed and mapped anew. What is smaller it keeps at hand
 * itself, and what is larger is not kept. */
#define KEPT_LEN_MIN ((size_t) 64 << 10)
#define KEPT_LEN_MAX ((size_t) 16 << 20)
#define KEPT_BYTES_MAX ((size_t) 32 << 20)
#define KEPT_MAX 4u

struct reserve {
  /* Of the type, and of each sample that returns here. A sample may outlive its topic. */
  ddsrt_atomic_uint32_t holders;
  /* Only ever tried, since a child may have been forked while it was held. */
  ddsrt_mutex_t mutex;
  /* The oldest first. */
  struct sample *kept[KEPT_MAX];
  size_t count;
  size_t bytes;
};

struct type {
  struct ddsi_sertype base;
  struct reserve *reserve;
};

struct sample {
  struct ddsi_serdata base;
  unsigned char writer[16];
  int64_t number;
  /* With the header, without padding. */
  size_t len;
  const unsigned char *data;
  /* Of data that somebody else holds. */
  void *owner;
  void (*release) (void *owner);
  /* Of a sample that has arrived. */
  bool relates;
  struct tcy_related related;
  /* Of a sample of two forms: what goes beside it, what stands in it for other readers, and with that in it. */
  bool has_forms;
  bool has_identity;
  unsigned char identity[TSUJI_IDENTITY_LEN];
  unsigned char header[TCY_HEADER_LEN];
  struct ddsi_serdata *headed;
  /* Where its memory goes, or NULL, and how much that is. */
  struct reserve *reserve;
  size_t room;
};

static const struct ddsi_serdata_ops sample_ops;
static const struct ddsi_sertype_ops type_ops;

static size_t padded (size_t len) { return (len + 3u) & ~(size_t) 3u; }

static const struct sample *sample_of (const struct ddsi_serdata *base) { return (const struct sample *) base; }

static struct reserve *reserve_new (void)
{
  struct reserve *reserve = calloc (1, sizeof (*reserve));
  if (reserve == NULL)
    return NULL;
  ddsrt_mutex_init (&reserve->mutex);
  ddsrt_atomic_st32 (&reserve->holders, 1);
  return reserve;
}

static void reserve_unref (struct reserve *reserve)
{
  if (ddsrt_atomic_dec32_nv (&reserve->holders) != 0)
    return;
  for (size_t at = 0; at < reserve->count; at++)
    free (reserve->kept[at]);
  ddsrt_mutex_destroy (&reserve->mutex);
  free (reserve);
}

/* The caller holds the mutex. */
static struct sample *reserve_remove (struct reserve *reserve, size_t at)
{
  struct sample *sample = reserve->kept[at];
  reserve->count--;
  reserve->bytes -= sample->room;
  memmove (&reserve->kept[at], &reserve->kept[at + 1], (reserve->count - at) * sizeof (sample));
  return sample;
}

/* Memory of at least this size and not twice that, or NULL. */
static struct sample *reserve_take (struct reserve *reserve, size_t room)
{
  struct sample *found = NULL;
  if (!ddsrt_mutex_trylock (&reserve->mutex))
    return NULL;
  for (size_t at = 0; at < reserve->count && found == NULL; at++)
    if (room <= reserve->kept[at]->room && reserve->kept[at]->room / 2 < room)
      found = reserve_remove (reserve, at);
  ddsrt_mutex_unlock (&reserve->mutex);
  return found;
}

static void reserve_put (struct reserve *reserve, struct sample *sample)
{
  struct sample *old[KEPT_MAX];
  size_t old_count = 0;
  if (!ddsrt_mutex_trylock (&reserve->mutex))
  {
    free (sample);
    return;
  }
  while (reserve->count == KEPT_MAX || KEPT_BYTES_MAX < reserve->bytes + sample->room)
    old[old_count++] = reserve_remove (reserve, 0);
  reserve->kept[reserve->count++] = sample;
  reserve->bytes += sample->room;
  ddsrt_mutex_unlock (&reserve->mutex);
  for (size_t at = 0; at < old_count; at++)
    free (old[at]);
}

/* A sample with room for `len` bytes behind it, rounded up and zeroed at the end. */
static struct sample *sample_new (const struct ddsi_sertype *base, enum ddsi_serdata_kind kind, size_t len)
{
  const size_t data_at = (sizeof (struct sample) + 15u) / 16u * 16u + LEAD;
  const size_t least = (data_at + padded (len) + 15u) / 16u * 16u;
  const struct type *type = (const struct type *) base;
  struct reserve *reserve = KEPT_LEN_MIN <= len && len <= KEPT_LEN_MAX ? type->reserve : NULL;
  struct sample *sample = reserve == NULL ? NULL : reserve_take (reserve, least);
  const size_t room = sample == NULL ? least : sample->room;
  if (sample == NULL && (sample = aligned_alloc (16, least)) == NULL)
    return NULL;
  memset (sample, 0, sizeof (*sample));
  ddsi_serdata_init (&sample->base, base, kind);
  sample->base.hash = base->serdata_basehash;
  unsigned char *data = (unsigned char *) sample + data_at;
  memset (data + padded (len) - (padded (len) == 0 ? 0 : 4), 0, padded (len) == 0 ? 0 : 4);
  sample->data = data;
  sample->len = len;
  sample->room = room;
  if (reserve != NULL)
  {
    ddsrt_atomic_inc32 (&reserve->holders);
    sample->reserve = reserve;
  }
  return sample;
}

static void sample_release (struct ddsi_serdata *base)
{
  struct sample *sample = (struct sample *) base;
  struct reserve *reserve = sample->reserve;
  if (sample->release != NULL)
    sample->release (sample->owner);
  if (sample->headed != NULL)
    ddsi_serdata_unref (sample->headed);
  if (reserve == NULL)
  {
    free (sample);
    return;
  }
  reserve_put (reserve, sample);
  reserve_unref (reserve);
}

/* The header says in its last two bits how many bytes at the end are padding (DDS-XTypes 1.3, 7.6.3.1.2). A sample in
 * fragments comes without it. */
static void drop_padding (struct sample *sample)
{
  if (sample->len < HEADER_LEN)
    return;
  unsigned char *options = (unsigned char *) sample->data + 3;
  const size_t padding = *options & 3u;
  if (sample->len == padded (sample->len) && HEADER_LEN + padding <= sample->len)
    sample->len -= padding;
  *options &= (unsigned char) ~3u;
}

/* The engine has turned the numbers of a message to the order of this host where they lie. */
static uint32_t u32_at (const unsigned char *at)
{
  uint32_t value;
  memcpy (&value, at, sizeof (value));
  return value;
}

static void put_big_endian (unsigned char *to, uint32_t value)
{
  for (int at = 0; at < 4; at++)
    to[at] = (unsigned char) (value >> (24 - 8 * at));
}

/* The writer and its number, as the message says that brought this fragment: RTPS 2.5, 9.4.4 (header) and 9.4.5.4
 * and 9.4.5.5 (DATA and DATA_FRAG, whose first fields are the same). */
static void read_number (struct sample *sample, const struct ddsi_rdata *fragment)
{
  const unsigned char *packet = DDSI_RMSG_PAYLOAD (fragment->rmsg);
  const unsigned char *message = packet + DDSI_RDATA_SUBMSG_OFF (fragment);
  for (int at = 0; at < 12; at += 4)
    put_big_endian (sample->writer + at, u32_at (packet + 8 + at));
  put_big_endian (sample->writer + 12, u32_at (message + 12));
  sample->number = (int64_t) ((uint64_t) u32_at (message + 16) << 32 | u32_at (message + 20));
}

/* Whether those of this vendor say beside a sample what it relates to, as DDS-RPC 1.0 has it in 7.8.2: Fast DDS and RTI
 * Connext DDS. */
static bool vendor_relates (const unsigned char *vendor)
{
  return vendor[0] == 0x01 && (vendor[1] == 0x0f || vendor[1] == 0x01);
}

static uint32_t u32_in (const unsigned char *at, bool is_little)
{
  uint32_t value = 0;
  for (int byte = 0; byte < 4; byte++)
    value |= (uint32_t) at[byte] << (is_little ? 8 * byte : 24 - 8 * byte);
  return value;
}

static uint32_t u16_in (const unsigned char *at, bool is_little)
{
  return is_little ? (uint32_t) at[1] << 8 | at[0] : (uint32_t) at[0] << 8 | at[1];
}

#define PID_SENTINEL 1u
/* Of a DATA or DATA_FRAG: its numbers are little endian, and it has inline QoS. */
#define FLAG_LITTLE 1u
#define FLAG_INLINE_QOS 2u

void tcy_read_related (const unsigned char *qos, size_t len, bool is_little, bool is_custom_known, struct tcy_related *related)
{
  memset (related, 0, sizeof (*related));
  for (size_t at = 0; 4 <= len - at;)
  {
    const uint32_t pid = u16_in (qos + at, is_little);
    const size_t value_len = u16_in (qos + at + 2, is_little);
    const unsigned char *value = qos + at + 4;
    if (pid == PID_SENTINEL || len - at - 4 < value_len)
      return;
    const bool is_standard = pid == TSUJI_PID_RELATED_SAMPLE_IDENTITY;
    const bool is_known = is_standard || (is_custom_known && pid == TSUJI_PID_CUSTOM_RELATED_SAMPLE_IDENTITY);
    if (is_known && TSUJI_IDENTITY_LEN <= value_len)
    {
      memcpy (related->name, value, sizeof (related->name));
      related->number = (int64_t) ((uint64_t) u32_in (value + 16, is_little) << 32 | u32_in (value + 20, is_little));
    }
    if (is_standard && TSUJI_IDENTITY_LEN <= value_len)
      return;
    at += 4 + value_len;
  }
}

void tcy_put_related (const struct tcy_related *related, unsigned char *to)
{
  /* No number is that of RTPS 2.5, 9.3.2 (SEQUENCENUMBER_UNKNOWN). */
  const uint64_t number = 0 < related->number ? (uint64_t) related->number : (uint64_t) UINT32_MAX << 32;
  const uint32_t high = (uint32_t) (number >> 32), low = (uint32_t) number;
  memcpy (to, related->name, 16);
  memcpy (to + 16, &high, 4);
  memcpy (to + 20, &low, 4);
}

/* What the message says beside the sample: RTPS 2.5, 9.4.5.4. The engine has found that its inline QoS ends where the
 * payload begins, and turned the fields before it to the order of this host, but not what is in it. */
static void read_related (struct sample *sample, const struct ddsi_rdata *fragment)
{
  const unsigned char *packet = DDSI_RMSG_PAYLOAD (fragment->rmsg);
  const size_t message_at = DDSI_RDATA_SUBMSG_OFF (fragment);
  const unsigned char *message = packet + message_at;
  uint16_t to_qos;
  memcpy (&to_qos, message + 6, sizeof (to_qos));
  const size_t qos_at = message_at + 8 + to_qos;
  const size_t end = DDSI_RDATA_PAYLOAD_OFF (fragment);
  sample->relates = vendor_relates (packet + 6);
  if ((message[1] & FLAG_INLINE_QOS) != 0 && qos_at <= end)
    tcy_read_related (packet + qos_at, end - qos_at, (message[1] & FLAG_LITTLE) != 0, sample->relates, &sample->related);
}

/* What is too short for its header is taken too, since only who takes it can count it. */
static struct ddsi_serdata *from_ser (const struct ddsi_sertype *type, enum ddsi_serdata_kind kind, const struct ddsi_rdata *fragment, size_t len)
{
  if (SAMPLE_LEN_MAX < len)
    return NULL;
  struct sample *sample = sample_new (type, kind, len);
  if (sample == NULL)
    return NULL;
  read_number (sample, fragment);
  read_related (sample, fragment);
  unsigned char *data = (unsigned char *) sample->data;
  size_t filled = 0;
  for (; fragment != NULL; fragment = fragment->nextfrag)
  {
    if (fragment->maxp1 <= filled)
      continue;
    /* Fragments may overlap; a gap would leave bytes of nobody. */
    if (filled < fragment->min || len < fragment->maxp1)
      break;
    const unsigned char *payload = DDSI_RMSG_PAYLOADOFF (fragment->rmsg, DDSI_RDATA_PAYLOAD_OFF (fragment));
    memcpy (data + filled, payload + (filled - fragment->min), fragment->maxp1 - filled);
    filled = fragment->maxp1;
  }
  if (filled != len)
  {
    ddsi_serdata_unref (&sample->base);
    return NULL;
  }
  drop_padding (sample);
  return &sample->base;
}

static struct ddsi_serdata *from_ser_iov (const struct ddsi_sertype *type, enum ddsi_serdata_kind kind, ddsrt_msg_iovlen_t count, const ddsrt_iovec_t *iov, size_t len)
{
  if (len < HEADER_LEN || SAMPLE_LEN_MAX < len)
    return NULL;
  struct sample *sample = sample_new (type, kind, len);
  if (sample == NULL)
    return NULL;
  unsigned char *data = (unsigned char *) sample->data;
  size_t filled = 0;
  for (ddsrt_msg_iovlen_t at = 0; at < count && filled < len; at++)
  {
    const size_t part = iov[at].iov_len < len - filled ? iov[at].iov_len : len - filled;
    memcpy (data + filled, iov[at].iov_base, part);
    filled += part;
  }
  if (filled != len)
  {
    ddsi_serdata_unref (&sample->base);
    return NULL;
  }
  drop_padding (sample);
  return &sample->base;
}

/* Whatever is announced of keys: there is one instance here, and nothing of a sample in it. */
static struct ddsi_serdata *keyless (const struct ddsi_sertype *type)
{
  struct sample *sample = sample_new (type, SDK_KEY, 0);
  return sample == NULL ? NULL : &sample->base;
}

static struct ddsi_serdata *from_keyhash (const struct ddsi_sertype *type, const struct ddsi_keyhash *hash)
{
  (void) hash;
  return keyless (type);
}

static struct ddsi_serdata *to_untyped (const struct ddsi_serdata *base)
{
  struct ddsi_serdata *untyped = keyless (base->type);
  if (untyped != NULL)
    untyped->type = NULL;
  return untyped;
}

/* Only raw CDR is written and taken: what would make a sample of a C structure fails. */
static struct ddsi_serdata *from_sample (const struct ddsi_sertype *type, enum ddsi_serdata_kind kind, const void *c_sample)
{
  (void) type; (void) kind; (void) c_sample;
  return NULL;
}

static bool to_sample (const struct ddsi_serdata *base, void *c_sample, void **buffer, void *limit)
{
  (void) base; (void) c_sample; (void) buffer; (void) limit;
  return false;
}

static bool untyped_to_sample (const struct ddsi_sertype *type, const struct ddsi_serdata *base, void *c_sample, void **buffer, void *limit)
{
  (void) type; (void) base; (void) c_sample; (void) buffer; (void) limit;
  return false;
}

static struct ddsi_serdata *from_loan (const struct ddsi_sertype *type, enum ddsi_serdata_kind kind, const char *c_sample, struct dds_loaned_sample *loan, bool needs_cdr)
{
  (void) type; (void) kind; (void) c_sample; (void) loan; (void) needs_cdr;
  return NULL;
}

static struct ddsi_serdata *from_psmx (const struct ddsi_sertype *type, struct dds_loaned_sample *loan)
{
  (void) type; (void) loan;
  return NULL;
}

static bool eqkey (const struct ddsi_serdata *a, const struct ddsi_serdata *b)
{
  (void) a; (void) b;
  return true;
}

static void get_keyhash (const struct ddsi_serdata *base, struct ddsi_keyhash *hash, bool force_md5)
{
  (void) base; (void) force_md5;
  memset (hash, 0, sizeof (*hash));
}

static uint32_t get_size (const struct ddsi_serdata *base) { return (uint32_t) sample_of (base)->len; }

/* Copies a part as it goes over the wire: with zeroes behind the end, and the header saying how many. */
static void to_ser (const struct ddsi_serdata *base, size_t at, size_t count, void *to)
{
  const struct sample *sample = sample_of (base);
  const size_t there = at < sample->len ? sample->len - at : 0;
  const size_t copied = count < there ? count : there;
  memcpy (to, sample->data + at, copied);
  memset ((unsigned char *) to + copied, 0, count - copied);
  if (at < HEADER_LEN && HEADER_LEN <= at + count)
  {
    unsigned char *options = (unsigned char *) to + (3 - at);
    *options = (unsigned char) ((*options & ~3u) | (padded (sample->len) - sample->len));
  }
}

static bool goes_as_it_is (const struct sample *sample, size_t at, size_t count)
{
  if (sample->len < at + count)
    return false;
  return HEADER_LEN <= at || (sample->data[3] & 3u) == padded (sample->len) - sample->len;
}

static struct ddsi_serdata *to_ser_ref (const struct ddsi_serdata *base, size_t at, size_t count, ddsrt_iovec_t *ref)
{
  const struct sample *sample = sample_of (base);
  ref->iov_len = (ddsrt_iov_len_t) count;
  if (goes_as_it_is (sample, at, count))
    ref->iov_base = (void *) (sample->data + at);
  else
  {
    /* ddsrt_malloc ends the process when there is no memory, as everywhere in Cyclone DDS. */
    ref->iov_base = ddsrt_malloc (count);
    to_ser (base, at, count, ref->iov_base);
  }
  return ddsi_serdata_ref (base);
}

static void to_ser_unref (struct ddsi_serdata *base, const ddsrt_iovec_t *ref)
{
  const struct sample *sample = sample_of (base);
  const uintptr_t from = (uintptr_t) sample->data;
  const uintptr_t at = (uintptr_t) ref->iov_base;
  if (at < from || from + sample->len < at)
    ddsrt_free (ref->iov_base);
  ddsi_serdata_unref (base);
}

static size_t print (const struct ddsi_sertype *type, const struct ddsi_serdata *base, char *to, size_t count)
{
  (void) type;
  return (size_t) snprintf (to, count, "(%zu bytes)", sample_of (base)->len);
}

static const struct ddsi_serdata_ops sample_ops = {
  .eqkey = eqkey,
  .get_size = get_size,
  .from_ser = from_ser,
  .from_ser_iov = from_ser_iov,
  .from_keyhash = from_keyhash,
  .from_sample = from_sample,
  .to_ser = to_ser,
  .to_ser_ref = to_ser_ref,
  .to_ser_unref = to_ser_unref,
  .to_sample = to_sample,
  .to_untyped = to_untyped,
  .untyped_to_sample = untyped_to_sample,
  .free = sample_release,
  .print = print,
  .get_keyhash = get_keyhash,
  .from_loaned_sample = from_loan,
  .from_psmx = from_psmx,
};

bool tsuji_has_forms (const struct ddsi_serdata *base)
{
  return base->ops == &sample_ops && sample_of (base)->has_forms;
}

const unsigned char *tsuji_identity_of (const struct ddsi_serdata *base)
{
  return base->ops == &sample_ops && sample_of (base)->has_identity ? sample_of (base)->identity : NULL;
}

/* The form with the header is made when the first reader wants it. */
struct ddsi_serdata *tsuji_form_of (struct ddsi_serdata *base, const unsigned char *vendor)
{
  struct sample *sample = (struct sample *) base;
  if (vendor_relates (vendor))
    return base;
  if (sample->headed != NULL)
    return sample->headed;
  struct sample *headed = sample_new (base->type, base->kind, sample->len + TCY_HEADER_LEN);
  /* As everywhere in Cyclone DDS the process ends when there is no memory. */
  if (headed == NULL)
    abort ();
  unsigned char *data = (unsigned char *) headed->data;
  memcpy (data, sample->data, HEADER_LEN);
  memcpy (data + HEADER_LEN, sample->header, TCY_HEADER_LEN);
  memcpy (data + HEADER_LEN + TCY_HEADER_LEN, sample->data + HEADER_LEN, sample->len - HEADER_LEN);
  headed->base.timestamp = base->timestamp;
  headed->base.twrite = base->twrite;
  sample->headed = &headed->base;
  return sample->headed;
}

static void type_free (struct ddsi_sertype *base)
{
  struct type *type = (struct type *) base;
  ddsi_sertype_fini (base);
  reserve_unref (type->reserve);
  free (type);
}

static void type_zero (const struct ddsi_sertype *type, void *samples, size_t count)
{
  (void) type; (void) samples; (void) count;
}

static void type_realloc (void **pointers, const struct ddsi_sertype *type, void *old, size_t old_count, size_t count)
{
  (void) type; (void) old; (void) old_count;
  for (size_t at = 0; at < count; at++)
    pointers[at] = NULL;
}

static void type_free_samples (const struct ddsi_sertype *type, void **pointers, size_t count, dds_free_op_t op)
{
  (void) type; (void) pointers; (void) count; (void) op;
}

static bool type_equal (const struct ddsi_sertype *a, const struct ddsi_sertype *b)
{
  (void) a; (void) b;
  return true;
}

static uint32_t type_hash (const struct ddsi_sertype *type)
{
  (void) type;
  return 0;
}

static struct ddsi_sertype *type_derive (const struct ddsi_sertype *type, dds_data_representation_id_t representation, dds_type_consistency_enforcement_qospolicy_t consistency)
{
  (void) consistency;
  return representation == DDS_DATA_REPRESENTATION_XCDR1 ? (struct ddsi_sertype *) type : NULL;
}

static const struct ddsi_sertype_ops type_ops = {
  .version = ddsi_sertype_v0,
  .free = type_free,
  .zero_samples = type_zero,
  .realloc_samples = type_realloc,
  .free_samples = type_free_samples,
  .equal = type_equal,
  .hash = type_hash,
  .derive_sertype = type_derive,
};

int32_t tcy_create_topic (int32_t participant, const char *name, const char *type_name, bool is_keyed, const void *qos)
{
  struct type *type = calloc (1, sizeof (*type));
  struct reserve *reserve = reserve_new ();
  if (type == NULL || reserve == NULL)
  {
    free (type);
    free (reserve);
    return DDS_RETCODE_OUT_OF_RESOURCES;
  }
  type->reserve = reserve;
  struct ddsi_sertype *base = &type->base;
  ddsi_sertype_init (base, type_name, &type_ops, &sample_ops, !is_keyed);
  base->allowed_data_representation = DDS_DATA_REPRESENTATION_FLAG_XCDR1;
  const dds_entity_t topic = dds_create_topic_sertype (participant, name, &base, qos, NULL, NULL);
  if (topic < 0)
    ddsi_sertype_unref (base);
  return topic;
}

int32_t tcy_write (int32_t writer, const unsigned char *data, size_t len, int64_t source_ns, const struct tcy_relation *relation, void *owner, void (*release) (void *owner))
{
  const struct ddsi_sertype *type;
  int32_t result = len < HEADER_LEN || SAMPLE_LEN_MAX < len ? DDS_RETCODE_BAD_PARAMETER : dds_get_entity_sertype (writer, &type);
  struct sample *sample = result < 0 ? NULL : sample_new (type, SDK_DATA, 0);
  if (sample == NULL)
  {
    release (owner);
    return result < 0 ? result : DDS_RETCODE_OUT_OF_RESOURCES;
  }
  sample->data = data;
  sample->len = len;
  sample->owner = owner;
  sample->release = release;
  sample->base.timestamp.v = source_ns;
  if (relation != NULL)
  {
    sample->has_forms = true;
    memcpy (sample->header, relation->header, TCY_HEADER_LEN);
    sample->has_identity = relation->related != NULL;
    if (sample->has_identity)
      tcy_put_related (relation->related, sample->identity);
  }
  /* As dds_writecdr, and keeps the timestamp. Takes over the reference, whatever it answers. */
  return dds_forwardcdr (writer, &sample->base);
}

int32_t tcy_take (int32_t reader, struct tcy_taken *taken)
{
  for (;;)
  {
    struct ddsi_serdata *base = NULL;
    dds_sample_info_t info;
    const dds_return_t count = dds_takecdr (reader, &base, 1, &info, DDS_ANY_STATE);
    if (count <= 0)
      return count;
    /* Without data it only says that writers came or went. */
    if (!info.valid_data || base->ops != &sample_ops || base->kind != SDK_DATA)
    {
      ddsi_serdata_unref (base);
      continue;
    }
    const struct sample *sample = sample_of (base);
    taken->sample = base;
    taken->data = sample->data;
    taken->len = sample->len;
    memcpy (taken->writer, sample->writer, sizeof (taken->writer));
    taken->number = sample->number;
    taken->source_ns = info.source_timestamp;
    taken->relates = sample->relates;
    taken->related = sample->related;
    return 1;
  }
}

void tcy_sample_free (void *sample) { ddsi_serdata_unref (sample); }

static void news (dds_entity_t entity, void *ear)
{
  (void) entity;
  const struct tcy_ear *it = ear;
  it->on_data (it->arg);
}

static void reader_matched (dds_entity_t reader, const dds_subscription_matched_status_t status, void *ear)
{
  (void) reader; (void) status;
  const struct tcy_ear *it = ear;
  it->on_match (it->arg);
}

static void reader_liveliness (dds_entity_t reader, const dds_liveliness_changed_status_t status, void *ear)
{
  (void) reader;
  const struct tcy_ear *it = ear;
  /* It is told of each match too. */
  if (status.not_alive_count_change != 0)
    it->on_match (it->arg);
}

static void writer_matched (dds_entity_t writer, const dds_publication_matched_status_t status, void *ear)
{
  (void) writer; (void) status;
  const struct tcy_ear *it = ear;
  it->on_match (it->arg);
}

static int32_t set_listener (dds_entity_t entity, dds_listener_t *listener)
{
  const dds_return_t result = dds_set_listener (entity, listener);
  dds_delete_listener (listener);
  return result;
}

int32_t tcy_listen_reader (int32_t reader, const struct tcy_ear *ear)
{
  dds_listener_t *listener = dds_create_listener ((void *) ear);
  if (listener == NULL)
    return DDS_RETCODE_OUT_OF_RESOURCES;
  dds_lset_data_available (listener, news);
  dds_lset_subscription_matched (listener, reader_matched);
  dds_lset_liveliness_changed (listener, reader_liveliness);
  return set_listener (reader, listener);
}

int32_t tcy_listen_writer (int32_t writer, const struct tcy_ear *ear)
{
  dds_listener_t *listener = dds_create_listener ((void *) ear);
  if (listener == NULL)
    return DDS_RETCODE_OUT_OF_RESOURCES;
  dds_lset_publication_matched (listener, writer_matched);
  return set_listener (writer, listener);
}

/* The domain of a reader, or NULL where that is gone. */
static struct ddsi_domaingv *domain_of (int32_t reader)
{
  const struct ddsi_sertype *type;
  return dds_get_entity_sertype (reader, &type) < 0 ? NULL : ddsrt_atomic_ldvoidp (&type->gv);
}

int32_t tcy_is_silent (int32_t reader, const uint8_t *writer)
{
  struct ddsi_domaingv *gv = domain_of (reader);
  return gv == NULL ? -1 : tsuji_is_silent (gv, writer);
}

void tcy_listen_no_more (int32_t entity) { (void) dds_set_listener (entity, NULL); }

int32_t tcy_each_match (int32_t entity, bool is_writer, void *arg, tcy_each_fn each)
{
  size_t room = 16;
  dds_instance_handle_t *handles = NULL;
  dds_return_t count;
  for (;;)
  {
    dds_instance_handle_t *more = realloc (handles, room * sizeof (*handles));
    if (more == NULL)
    {
      free (handles);
      return DDS_RETCODE_OUT_OF_RESOURCES;
    }
    handles = more;
    count = is_writer ? dds_get_matched_subscriptions (entity, handles, room) : dds_get_matched_publications (entity, handles, room);
    if (count < 0 || (size_t) count <= room)
      break;
    room = (size_t) count + 16;
  }
  for (dds_return_t at = 0; at < count; at++)
  {
    dds_builtintopic_endpoint_t *other =
      is_writer ? dds_get_matched_subscription_data (entity, handles[at]) : dds_get_matched_publication_data (entity, handles[at]);
    /* It may have gone meanwhile. */
    if (other == NULL)
      continue;
    each (arg, other->key.v);
    dds_builtintopic_free_endpoint (other);
  }
  free (handles);
  return count < 0 ? count : 0;
}

int32_t tcy_watch (int32_t participant, enum tcy_watched watched)
{
  static const dds_entity_t topics[] = {
    [TCY_PARTICIPANTS] = DDS_BUILTIN_TOPIC_DCPSPARTICIPANT,
    [TCY_WRITERS] = DDS_BUILTIN_TOPIC_DCPSPUBLICATION,
    [TCY_READERS] = DDS_BUILTIN_TOPIC_DCPSSUBSCRIPTION,
  };
  return dds_create_reader (participant, topics[watched], NULL, NULL);
}

/* Of what is gone the engine fills in the key alone. */
static int32_t take_participant (int32_t reader, struct tcy_found *found, dds_sample_info_t *info)
{
  dds_builtintopic_participant_t taken;
  memset (&taken, 0, sizeof (taken));
  void *to = &taken;
  const dds_return_t count = dds_take (reader, &to, info, 1, 1);
  memcpy (found->guid, taken.key.v, sizeof (found->guid));
  found->qos = taken.qos;
  struct ddsi_domaingv *gv;
  if (0 < count && (gv = domain_of (reader)) != NULL)
    (void) tsuji_vendor_of (gv, found->guid, found->vendor);
  return count;
}

static int32_t take_endpoint (int32_t reader, struct tcy_found *found, dds_sample_info_t *info)
{
  dds_builtintopic_endpoint_t taken;
  memset (&taken, 0, sizeof (taken));
  void *to = &taken;
  const dds_return_t count = dds_take (reader, &to, info, 1, 1);
  memcpy (found->guid, taken.key.v, sizeof (found->guid));
  found->topic = taken.topic_name;
  found->type = taken.type_name;
  found->qos = taken.qos;
  return count;
}

int32_t tcy_take_found (int32_t reader, enum tcy_watched watched, struct tcy_found *found)
{
  for (;;)
  {
    dds_sample_info_t info;
    memset (found, 0, sizeof (*found));
    const int32_t count =
      watched == TCY_PARTICIPANTS ? take_participant (reader, found, &info) : take_endpoint (reader, found, &info);
    /* What came and went between two takes has data, and is not there all the same. */
    found->is_alive = 0 < count && info.instance_state == DDS_ALIVE_INSTANCE_STATE;
    if (0 < count && (info.valid_data || !found->is_alive))
      return count;
    tcy_found_free (found);
    if (count <= 0)
      return count;
  }
}

void tcy_found_free (struct tcy_found *found)
{
  dds_free (found->topic);
  dds_free (found->type);
  if (found->qos != NULL)
    dds_delete_qos (found->qos);
}

static void (*log_line) (bool is_error, const char *text, size_t len);

static void log_sink (void *arg, const dds_log_data_t *line)
{
  (void) arg;
  log_line ((line->priority & (DDS_LC_FATAL | DDS_LC_ERROR)) != 0, line->message, line->size);
}

void tcy_log_to (void (*log) (bool is_error, const char *text, size_t len))
{
  log_line = log;
  dds_set_log_sink (log_sink, NULL);
}

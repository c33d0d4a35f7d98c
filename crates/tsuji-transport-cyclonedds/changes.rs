//! What is changed in the vendored sources of Cyclone DDS (docs/decisions/0032, 0034, 0036, 0038 to 0040 and 0055).
//!
//! Each change is a text that the file has once and what stands in its place, so that sources which are other
//! than those that were read here are refused, and not built wrongly.

use crate::sources::Change;

/// Files of `shim/` that are put beside the sources.
pub(crate) const ADDED: &[&str] = &[
    "addresses.h",
    "addresses.c",
    "forms.h",
    "host.h",
    "host.c",
    "peer_processes.h",
    "peer_processes.c",
];

/// The change of a loop that waits under a lock, while something holds, for what is collected: where no thread can be had for
/// that, it is collected here.
macro_rules! waits_for_collected {
    ($file:expr, $domain:literal, $holds:literal, $lock:literal, $wait:literal) => {
        (
            $file,
            concat!("  while (", $holds, ")\n    ", $wait, "\n"),
            concat!(
                "  while (",
                $holds,
                ")\n  {\n    bool tsuji_collect_here (struct ddsi_domaingv *gv);\n    ddsrt_mutex_unlock (",
                $lock,
                ");\n    const bool is_without = tsuji_collect_here (",
                $domain,
                ");\n    ddsrt_mutex_lock (",
                $lock,
                ");\n    if (!is_without && ",
                $holds,
                ")\n      ",
                $wait,
                "\n  }\n"
            ),
        )
    };
}

/// In the order in which they are made.
pub(crate) const CHANGES: &[Change] = &[
    (
        TRANSMIT,
        r#"static int have_reliable_subs (const struct ddsi_writer *wr)
"#,
        r#"#include "forms.h"
#include "dds/ddsrt/time.h"
#include "ddsi__vendor.h"

static struct ddsi_serdata *tsuji_form_for (struct ddsi_serdata *serdata, const struct ddsi_proxy_reader *prd)
{
  return tsuji_has_forms (serdata) ? tsuji_form_of (serdata, prd->c.vendor.id) : serdata;
}

/* The next reader of a writer behind this one, or the first; NULL at the end. */
static struct ddsi_proxy_reader *tsuji_next_reader (const struct ddsi_writer *wr, ddsi_guid_t *guid, bool *is_first)
{
  for (;;)
  {
    const struct ddsi_wr_prd_match *match = *is_first ?
      ddsrt_avl_find_min (&ddsi_wr_readers_treedef, &wr->readers) :
      ddsrt_avl_lookup_succ (&ddsi_wr_readers_treedef, &wr->readers, guid);
    if (match == NULL)
      return NULL;
    *is_first = false;
    *guid = match->prd_guid;
    struct ddsi_proxy_reader *prd = ddsi_entidx_lookup_proxy_reader_guid (wr->e.gv->entity_index, guid);
    if (prd != NULL)
      return prd;
  }
}

/* The form that all readers of a writer want, or NULL where they want different ones. */
static struct ddsi_serdata *tsuji_form_for_all (const struct ddsi_writer *wr, struct ddsi_serdata *serdata)
{
  if (!tsuji_has_forms (serdata))
    return serdata;
  struct ddsi_serdata *form = NULL;
  struct ddsi_proxy_reader *prd;
  ddsi_guid_t guid;
  bool is_first = true;
  while ((prd = tsuji_next_reader (wr, &guid, &is_first)) != NULL)
  {
    struct ddsi_serdata *wanted = tsuji_form_for (serdata, prd);
    if (form != NULL && form != wanted)
      return NULL;
    form = wanted;
  }
  return form == NULL ? serdata : form;
}

/* The most that is waited between two messages of a large sample, and between all of them. */
#define TSUJI_PAUSE DDS_USECS (100)
#define TSUJI_PAUSES DDS_MSECS (10)

/* So many messages fit into the socket of a reader as the system makes it. */
#define TSUJI_MESSAGES_AT_ONCE 2

/* Whether a reader loses what its socket has no room for. Those of Cyclone DDS make theirs larger. */
static bool tsuji_is_overrun (const struct ddsi_proxy_reader *prd)
{
  return !ddsi_vendor_is_eclipse (prd->c.vendor);
}

/* How long to wait after each of so many messages, so that all of them find room. */
static dds_duration_t tsuji_pause (const struct ddsi_writer *wr, const struct ddsi_proxy_reader *prd, uint32_t messages)
{
  if (messages <= TSUJI_MESSAGES_AT_ONCE)
    return 0;
  bool is_overrun = prd != NULL && tsuji_is_overrun (prd);
  if (prd == NULL)
  {
    ddsi_guid_t guid;
    bool is_first = true;
    while (!is_overrun && (prd = tsuji_next_reader (wr, &guid, &is_first)) != NULL)
      is_overrun = tsuji_is_overrun (prd);
  }
  if (!is_overrun)
    return 0;
  dds_duration_t all = TSUJI_PAUSES;
  if (wr->xqos->deadline.deadline / 4 < all)
    all = wr->xqos->deadline.deadline / 4;
  if (wr->xqos->lifespan.duration / 4 < all)
    all = wr->xqos->lifespan.duration / 4;
  return all / messages < TSUJI_PAUSE ? all / messages : TSUJI_PAUSE;
}

static void tsuji_add_identity (struct ddsi_xmsg *msg, const struct ddsi_serdata *form)
{
  const unsigned char *identity = tsuji_identity_of (form);
  if (identity == NULL)
    return;
  memcpy (ddsi_xmsg_addpar (msg, TSUJI_PID_RELATED_SAMPLE_IDENTITY, TSUJI_IDENTITY_LEN), identity, TSUJI_IDENTITY_LEN);
  /* Fast DDS before 2.14 knows no other. */
  memcpy (ddsi_xmsg_addpar (msg, TSUJI_PID_CUSTOM_RELATED_SAMPLE_IDENTITY, TSUJI_IDENTITY_LEN), identity, TSUJI_IDENTITY_LEN);
}

static ddsi_guid_t tsuji_guid_of (const unsigned char *name)
{
  ddsi_guid_t guid;
  memcpy (&guid, name, sizeof (guid));
  return ddsi_ntoh_guid (guid);
}

bool tsuji_vendor_of (struct ddsi_domaingv *gv, const unsigned char *name, unsigned char *vendor)
{
  struct ddsi_thread_state * const thrst = ddsi_lookup_thread_state ();
  const ddsi_guid_t guid = tsuji_guid_of (name);
  ddsi_thread_state_awake (thrst, gv);
  const struct ddsi_proxy_participant *found = ddsi_entidx_lookup_proxy_participant_guid (gv->entity_index, &guid);
  const bool is_found = found != NULL;
  if (is_found)
    memcpy (vendor, found->vendor.id, sizeof (found->vendor.id));
  ddsi_thread_state_asleep (thrst);
  return is_found;
}

int32_t tsuji_is_silent (struct ddsi_domaingv *gv, const unsigned char *name)
{
  struct ddsi_thread_state * const thrst = ddsi_lookup_thread_state ();
  const ddsi_guid_t guid = tsuji_guid_of (name);
  ddsi_thread_state_awake (thrst, gv);
  const struct ddsi_proxy_writer *found = ddsi_entidx_lookup_proxy_writer_guid (gv->entity_index, &guid);
  /* Read without its lock, which is held while readers are called: each change of it is told of afterwards. */
  const int32_t is_silent = found == NULL ? -1 : !found->alive;
  ddsi_thread_state_asleep (thrst);
  return is_silent;
}

static int have_reliable_subs (const struct ddsi_writer *wr)
"#,
    ),
    (
        TRANSMIT,
        r#"    ddsi_xmsg_addpar_statusinfo (*pmsg, serdata->statusinfo);
  if (ddsi_xmsg_addpar_sentinel_ifparam (*pmsg) > 0)
"#,
        r#"    ddsi_xmsg_addpar_statusinfo (*pmsg, serdata->statusinfo);
  tsuji_add_identity (*pmsg, serdata);
  if (ddsi_xmsg_addpar_sentinel_ifparam (*pmsg) > 0)
"#,
    ),
    // A message that is sent again is merged with the same for another reader, which may want the other form.
    (
        TRANSMIT,
        r#"  enum ddsi_xmsg_kind xmsg_kind = isnew ? DDSI_XMSG_KIND_DATA : DDSI_XMSG_KIND_DATA_REXMIT;
  const uint32_t size = ddsi_serdata_size (serdata);
"#,
        r#"  enum ddsi_xmsg_kind xmsg_kind = isnew ? DDSI_XMSG_KIND_DATA : DDSI_XMSG_KIND_DATA_REXMIT;
  if (!isnew && (tsuji_has_forms (serdata) || tsuji_identity_of (serdata) != NULL))
    xmsg_kind = DDSI_XMSG_KIND_DATA_REXMIT_NOMERGE;
  if (prd != NULL)
    serdata = tsuji_form_for (serdata, prd);
  const uint32_t size = ddsi_serdata_size (serdata);
"#,
    ),
    // A reader takes what the fragment says that comes first, whichever that is.
    (
        TRANSMIT,
        r#"  if (fragnum == 0)
  {
    int rc;
"#,
        r#"  if (fragnum == 0 || tsuji_identity_of (serdata) != NULL)
  {
    int rc;
    tsuji_add_identity (*pmsg, serdata);
"#,
    ),
    (
        TRANSMIT,
        r#"  assert(xp);
  assert((wr->heartbeat_xevent != NULL) == (whcst != NULL));

  sz = ddsi_serdata_size (serdata);
  if (sz >"#,
        r#"  assert(xp);
  assert((wr->heartbeat_xevent != NULL) == (whcst != NULL));

  struct ddsi_serdata *whole = serdata;
  serdata = prd != NULL ? tsuji_form_for (whole, prd) : tsuji_form_for_all (wr, whole);
  if (serdata == NULL)
  {
    /* To each in its form. The lock is let go of in between. */
    struct ddsi_proxy_reader *each;
    ddsi_guid_t guid;
    bool is_first = true;
    serdata = whole;
    while ((each = tsuji_next_reader (wr, &guid, &is_first)) != NULL)
    {
      struct ddsi_serdata *form = tsuji_form_for (whole, each);
      const uint32_t count = (ddsi_serdata_size (form) + gv->config.fragment_size - 1) / gv->config.fragment_size;
      transmit_sample_lgmsg_unlocks_wr (xp, wr, seq, form, each, isnew, count, count);
    }
  }
  else if ((sz = ddsi_serdata_size (serdata)) >"#,
    ),
    (
        TRANSMIT,
        r#"  enum ddsi_qxev_msg_rexmit_result enqueued = DDSI_QXEV_MSG_REXMIT_QUEUED;

  ASSERT_MUTEX_HELD (&wr->e.lock);

  sz = ddsi_serdata_size (serdata);
"#,
        r#"  enum ddsi_qxev_msg_rexmit_result enqueued = DDSI_QXEV_MSG_REXMIT_QUEUED;

  ASSERT_MUTEX_HELD (&wr->e.lock);

  struct ddsi_serdata *form = prd != NULL ? tsuji_form_for (serdata, prd) : tsuji_form_for_all (wr, serdata);
  if (form == NULL)
  {
    struct ddsi_proxy_reader *each;
    ddsi_guid_t guid;
    bool is_first = true;
    int result = 0;
    while (result == 0 && (each = tsuji_next_reader (wr, &guid, &is_first)) != NULL)
      result = ddsi_enqueue_sample_wrlock_held (wr, seq, serdata, each, isnew);
    return result;
  }
  serdata = form;
  sz = ddsi_serdata_size (serdata);
"#,
    ),
    // A client on Fast DDS has matched a server before the server knows of it, and asks at once. Its own readers begin with
    // the oldest sample that a writer has for them, and here they began with the newest.
    (
        MATCH,
        r#"    else if (ddsi_vendor_is_eclipse (pwr->c.vendor))
      m->in_sync = PRMSS_OUT_OF_SYNC;
"#,
        r#"    else if (ddsi_vendor_is_eclipse (pwr->c.vendor) || ddsi_vendor_is_eprosima (pwr->c.vendor))
      m->in_sync = PRMSS_OUT_OF_SYNC;
"#,
    ),
    // A participant on Fast DDS that was there first sends its heartbeats before its announcement has been read here, and each
    // reader then asks whether there is something. Fast DDS takes an acknowledgement of nothing from 0 on for that question
    // (`StatefulWriter::process_acknack`); at 1 it waits for its next heartbeat: 1 s for endpoints, 3 s for nodes.
    (
        ACKNACK,
        r#"#include "ddsi__xevent.h"
"#,
        r#"#include "ddsi__vendor.h"
#include "ddsi__xevent.h"
"#,
    ),
    (
        ACKNACK,
        r#"  an->readerSNState.bitmap_base = ddsi_to_seqno (1);
  an->readerSNState.numbits = 0;
"#,
        r#"  an->readerSNState.bitmap_base = ddsi_to_seqno (ddsi_vendor_is_eprosima (pwr->c.vendor) ? 0 : 1);
  an->readerSNState.numbits = 0;
"#,
    ),
    // A sample of many messages is more than the socket of a reader holds that has not made it larger, as Fast DDS has not.
    // Whoever reads by best effort does not ask again, and who does is answered in another burst.
    (
        TRANSMIT,
        r#"    nf_in_submsg = UINT16_MAX;
  for (uint32_t i = 0; i < nfrags_lim; i += nf_in_submsg)
"#,
        r#"    nf_in_submsg = UINT16_MAX;
  const dds_duration_t pause = isnew ? tsuji_pause (wr, prd, (nfrags_lim + nf_in_submsg - 1) / nf_in_submsg) : 0;
  for (uint32_t i = 0; i < nfrags_lim; i += nf_in_submsg)
"#,
    ),
    (
        TRANSMIT,
        r#"    if(hmsg) ddsi_xpack_addmsg (xp, hmsg, 0);

    ddsrt_mutex_lock (&wr->e.lock);
"#,
        r#"    if(hmsg) ddsi_xpack_addmsg (xp, hmsg, 0);
    if (pause > 0 && i + nf_in_submsg < nfrags_lim)
      dds_sleepfor (pause);

    ddsrt_mutex_lock (&wr->e.lock);
"#,
    ),
    // Peer processes: each domain has those that the thread which creates it has named.
    (
        DOMAIN,
        r#"  ddsrt_prng_t naming_rng;
};
"#,
        r#"  ddsrt_prng_t naming_rng;

  struct tsuji_peers *tsuji_peers;
  const struct tsuji_host *tsuji_host;
};
"#,
    ),
    (
        INIT,
        r#"  gv->tstart = ddsrt_time_wallclock ();    /* wall clock time, used in logs */
"#,
        r#"  gv->tstart = ddsrt_time_wallclock ();    /* wall clock time, used in logs */
  gv->tsuji_peers = tsuji_peers_take_next (gv);
  gv->tsuji_host = tsuji_host ();
"#,
    ),
    (
        INIT,
        r#"#include "ddsi__spdp_schedule.h"
"#,
        r#"#include "ddsi__spdp_schedule.h"
#include "host.h"
#include "peer_processes.h"
"#,
    ),
    (
        SOURCES,
        r#"  ddsi_acknack.c
"#,
        r#"  ddsi_acknack.c
  addresses.c
  host.c
  peer_processes.c
"#,
    ),
    // Those that are passed over are not looked into.
    (
        RECEIVE,
        r#"#include "ddsi__receive.h"
"#,
        r#"#include "ddsi__receive.h"
#include "peer_processes.h"
"#,
    ),
    (
        RECEIVE,
        r#"    hdr->guid_prefix = ddsi_ntoh_guid_prefix (hdr->guid_prefix);

    if (gv->logconfig"#,
        r#"    hdr->guid_prefix = ddsi_ntoh_guid_prefix (hdr->guid_prefix);
    if (tsuji_peers_pass_over (gv->tsuji_peers, &hdr->guid_prefix))
      return;

    if (gv->logconfig"#,
    ),
    (
        ANNOUNCED,
        r#"#include "ddsi__spdp_schedule.h"
"#,
        r#"#include "ddsi__spdp_schedule.h"
#include "peer_processes.h"
"#,
    ),
    (
        ANNOUNCED,
        r#"  if (pgik_result != PGIKR_UNKNOWN)
    return (pgik_result == PGIKR_KNOWN_BUT_INTERESTING) ? HSR_INTERESTING : HSR_NOT_INTERESTING;
"#,
        r#"  const bool is_waited_for = (datap->qos.present & DDSI_QP_USER_DATA) &&
    tsuji_peers_wait_for (gv->tsuji_peers, &datap->participant_guid.prefix, datap->qos.user_data.value, datap->qos.user_data.length);
  const ddsi_guid_prefix_t *dst = &rst->dst_guid_prefix;
  if (pgik_result != PGIKR_UNKNOWN && dst->u[0] == 0 && dst->u[1] == 0 && dst->u[2] == 0 &&
      tsuji_peers_answer (gv->tsuji_peers, &datap->participant_guid.prefix))
    respond_to_spdp (gv, &datap->participant_guid, 1);
  if (pgik_result != PGIKR_UNKNOWN)
    return (pgik_result == PGIKR_KNOWN_BUT_INTERESTING) ? HSR_INTERESTING : HSR_NOT_INTERESTING;
  if (is_waited_for)
    return HSR_NOT_INTERESTING;
"#,
    ),
    // It may have to be passed over since it was asked about.
    (
        ANNOUNCED,
        r#"  else
  {
    /* Force transmission of SPDP messages"#,
        r#"  else if (tsuji_peers_pass_over (gv->tsuji_peers, &datap->participant_guid.prefix))
  {
    (void) ddsi_delete_proxy_participant_by_guid (gv, &datap->participant_guid, timestamp, false);
    return HSR_NOT_INTERESTING;
  }
  else
  {
    /* Force transmission of SPDP messages"#,
    ),
    (
        ANNOUNCED,
        r#"static void respond_to_spdp (const struct ddsi_domaingv *gv, const ddsi_guid_t *dest_proxypp_guid)
"#,
        r#"static void respond_to_spdp (const struct ddsi_domaingv *gv, const ddsi_guid_t *dest_proxypp_guid, int nrepeats)
"#,
    ),
    (ANNOUNCED, r#"      .nrepeats = 4, "#, r#"      .nrepeats = nrepeats, "#),
    (
        ANNOUNCED,
        r#"      respond_to_spdp (gv, &datap->participant_guid);
"#,
        r#"      respond_to_spdp (gv, &datap->participant_guid, 4);
"#,
    ),
    (
        ANNOUNCED,
        r#"    assert (guid.entityid.u == DDSI_ENTITYID_PARTICIPANT);
    if (ddsi_is_proxy_participant_deletion_allowed"#,
        r#"    assert (guid.entityid.u == DDSI_ENTITYID_PARTICIPANT);
    tsuji_peers_lose (gv->tsuji_peers, &guid.prefix);
    if (ddsi_is_proxy_participant_deletion_allowed"#,
    ),
    // Fast DDS 3 looks for the participant of an endpoint under this name alone, and without it shows its node as no node of ROS 2.
    (
        ENDPOINTS,
        r#"    ps.present |= PP_PROTOCOL_VERSION | PP_VENDORID;
    ps.protocol_version = gv->config.protocol_version;
    ps.vendorid = DDSI_VENDORID_ECLIPSE;

    assert (epcommon != NULL);
"#,
        r#"    ps.present |= PP_PROTOCOL_VERSION | PP_VENDORID | PP_PARTICIPANT_GUID;
    ps.protocol_version = gv->config.protocol_version;
    ps.vendorid = DDSI_VENDORID_ECLIPSE;
    ps.participant_guid = (ddsi_guid_t) { .prefix = guid->prefix, .entityid = { .u = DDSI_ENTITYID_PARTICIPANT } };

    assert (epcommon != NULL);
"#,
    ),
    // A volatile reader is not sent what was kept for late joiners before it matched, whoever made it: it asks for all that a
    // heartbeat names.
    (
        MATCHES,
        r#"  ddsi_seqno_t last_seq; /* highest seq send to this reader used when filter is applied */
"#,
        r#"  ddsi_seqno_t last_seq; /* highest seq send to this reader used when filter is applied */
  ddsi_seqno_t tsuji_seq_before; /* the last that was written before it matched */
"#,
    ),
    // Ends of tsuji match whether or not both know that their type has keys: of such a type each keeps one instance alone.
    (
        MATCH,
        r#"static bool topickind_qos_match_p_lock (struct"#,
        r#"#include "peer_processes.h"

static bool tsuji_is_of_tsuji (const dds_qos_t *qos)
{
  return (qos->present & DDSI_QP_USER_DATA) && tsuji_find_key (qos->user_data.value, qos->user_data.length, "tsujigid=") != NULL;
}

static bool topickind_qos_match_p_lock (struct"#,
    ),
    (
        MATCH,
        r#"  if (ddsi_is_keyed_endpoint_entityid (rd->guid.entityid) != ddsi_is_keyed_endpoint_entityid (wr->guid.entityid))
  {
    *reason = DDS_INVALID_QOS_POLICY_ID;
    return false;
  }
  ddsrt_mutex_t * const locks[] = { &rd->qos_lock, &wr->qos_lock, &rd->qos_lock };
  const int shift = (uintptr_t) rd > (uintptr_t) wr;
  for (int i = 0; i < 2; i++)
    ddsrt_mutex_lock (locks[i + shift]);
"#,
        r#"  ddsrt_mutex_t * const locks[] = { &rd->qos_lock, &wr->qos_lock, &rd->qos_lock };
  const int shift = (uintptr_t) rd > (uintptr_t) wr;
  for (int i = 0; i < 2; i++)
    ddsrt_mutex_lock (locks[i + shift]);
  if (ddsi_is_keyed_endpoint_entityid (rd->guid.entityid) != ddsi_is_keyed_endpoint_entityid (wr->guid.entityid) &&
      !(tsuji_is_of_tsuji (rdqos) && tsuji_is_of_tsuji (wrqos)))
  {
    *reason = DDS_INVALID_QOS_POLICY_ID;
    for (int i = 0; i < 2; i++)
      ddsrt_mutex_unlock (locks[i + shift]);
    return false;
  }
"#,
    ),
    (
        MATCH,
        r#"  m->last_seq = m->seq;
  if (ddsrt_avl_lookup_ipath (&ddsi_wr_readers_treedef,"#,
        r#"  m->last_seq = m->seq;
  m->tsuji_seq_before = m->seq;
  if (ddsrt_avl_lookup_ipath (&ddsi_wr_readers_treedef,"#,
    ),
    (
        RECEIVE,
        r#"  const bool gap_for_already_acked = ddsi_vendor_is_eclipse (rst->vendor) && prd->c.xqos->durability.kind == DDS_DURABILITY_VOLATILE && seqbase <= rn->seq;
  const ddsi_seqno_t min_seq_to_rexmit = gap_for_already_acked ? rn->seq + 1 : 0;
"#,
        r#"  /* What is past for a volatile reader; nothing is 0. */
  const ddsi_seqno_t tsuji_seq_past = ddsi_vendor_is_eclipse (rst->vendor) ? rn->seq :
    wr->xqos->durability.kind == DDS_DURABILITY_VOLATILE ? 0 : rn->tsuji_seq_before;
  const bool is_past = prd->c.xqos->durability.kind == DDS_DURABILITY_VOLATILE && seqbase <= tsuji_seq_past;
  const ddsi_seqno_t min_seq_to_rexmit = is_past ? tsuji_seq_past + 1 : 0;
"#,
    ),
    // Whoever asserts that it is alive without a sample is alive again: the lease that has passed is not renewed by itself.
    (
        RECEIVE,
        r#"      ddsi_lease_renew (lease, tnow);
    ddsi_lease_renew (pwr->lease, tnow);
  }
"#,
        r#"      ddsi_lease_renew (lease, tnow);
    ddsi_lease_renew (pwr->lease, tnow);
    if (!pwr->alive)
      ddsi_proxy_writer_set_alive_may_unlock (pwr, true);
  }
"#,
    ),
    // A thread that has nothing to do is not there. Where none can be made, what waits for it stays, and the next that comes tries
    // again.
    (
        INIT,
        r#"  ddsi_gcreq_queue_start (gv->gcreq_queue);

  ddsi_dqueue_start (gv->builtins_dqueue);
  ddsi_dqueue_start (gv->user_dqueue);
"#,
        r#"  if (!ddsi_dqueue_start (gv->builtins_dqueue))
    return -1;
"#,
    ),
    (
        QUEUES,
        r#"static int ddsi_dqueue_enqueue_locked (struct ddsi_dqueue *q, struct ddsi_rsample_chain *sc)
{
  int must_signal;
"#,
        r#"bool tsuji_dqueue_was_never_used (struct ddsi_dqueue *q)
{
  ddsrt_mutex_lock (&q->lock);
  const bool was_never_used = q->thrst == NULL && q->sc.first == NULL;
  ddsrt_mutex_unlock (&q->lock);
  return was_never_used;
}

static int ddsi_dqueue_enqueue_locked (struct ddsi_dqueue *q, struct ddsi_rsample_chain *sc)
{
  int must_signal;
  if (q->thrst == NULL)
    (void) ddsi_dqueue_start (q);
"#,
    ),
    // Whoever receives does not wait for a thread that is not there; what is too much is dropped and asked for again.
    (
        QUEUES,
        r#"    ddsrt_mutex_lock (&q->lock);
    /* In case the wakeups are were all deferred */
"#,
        r#"    ddsrt_mutex_lock (&q->lock);
    if (q->thrst == NULL && !ddsi_dqueue_start (q))
    {
      ddsrt_mutex_unlock (&q->lock);
      return;
    }
    /* In case the wakeups are were all deferred */
"#,
    ),
    // A writer that ends sends a mark through the queue, behind its samples: there are none where there is no thread.
    (
        REMOTE_ENDPOINTS,
        r#"  struct ddsi_dqueue *dqueue = pwr->dqueue;
  ELOGDISC (pwr, "gc_delete_proxy_writer_dqueue(%p, "PGUIDFMT")\n", (void *) gcreq, PGUID (pwr->e.guid));
"#,
        r#"  struct ddsi_dqueue *dqueue = pwr->dqueue;
  ELOGDISC (pwr, "gc_delete_proxy_writer_dqueue(%p, "PGUIDFMT")\n", (void *) gcreq, PGUID (pwr->e.guid));
  bool tsuji_dqueue_was_never_used (struct ddsi_dqueue *q);
  if (tsuji_dqueue_was_never_used (dqueue))
  {
    ddsi_gcreq_requeue (gcreq, gc_delete_proxy_writer);
    return;
  }
"#,
    ),
    (
        COLLECTOR,
        r#"static int gcreq_enqueue_common (struct ddsi_gcreq *gcreq)
{
  struct ddsi_gcreq_queue *gcreq_queue = gcreq->queue;
  int isfirst;
  ddsrt_mutex_lock (&gcreq_queue->lock);
"#,
        r#"/* Whether there is no thread that collects, nor one to be had. Then the calling thread, which waits for what is collected,
   does a little of it. */
bool tsuji_collect_here (struct ddsi_domaingv *gv)
{
  struct ddsi_gcreq_queue * const q = gv->gcreq_queue;
  ddsrt_mutex_lock (&q->lock);
  const bool is_without = q->thrst == NULL && (q->first == NULL || !ddsi_gcreq_queue_start (q));
  ddsrt_mutex_unlock (&q->lock);
  if (is_without)
  {
    (void) ddsi_gcreq_queue_step (q);
    dds_sleepfor (DDS_MSECS (1));
  }
  return is_without;
}

static int gcreq_enqueue_common (struct ddsi_gcreq *gcreq)
{
  struct ddsi_gcreq_queue *gcreq_queue = gcreq->queue;
  int isfirst;
  ddsrt_mutex_lock (&gcreq_queue->lock);
  if (gcreq_queue->thrst == NULL)
    (void) ddsi_gcreq_queue_start (gcreq_queue);
"#,
    ),
    // What a step puts back may be the last, and is waited for.
    (
        COLLECTOR,
        r#"  if (gcreq)
  {
    gcreq->next = q->first;
    q->first = gcreq;
  }
"#,
        r#"  if (gcreq)
  {
    if (q->first == NULL)
      q->last = gcreq;
    gcreq->next = q->first;
    q->first = gcreq;
    ddsrt_cond_etime_broadcast (&q->cond);
  }
"#,
    ),
    // Whoever waits for what is collected.
    waits_for_collected!(
        COLLECTOR,
        "q->gv",
        "q->count != 0",
        "&q->lock",
        "ddsrt_cond_etime_wait (&q->cond, &q->lock);"
    ),
    (
        COLLECTOR,
        r#"    ddsi_join_thread (q->thrst);
    assert (q->first == NULL);
  }
  ddsrt_cond_etime_destroy (&q->cond);
"#,
        r#"    ddsi_join_thread (q->thrst);
    assert (q->first == NULL);
  }
  else
  {
    while (ddsi_gcreq_queue_step (q))
      dds_sleepfor (DDS_MSECS (1));
  }
  ddsrt_cond_etime_destroy (&q->cond);
"#,
    ),
    waits_for_collected!(
        INIT,
        "gv",
        "gv->nparticipants > 0",
        "&gv->participant_set_lock",
        "ddsrt_cond_wait (&gv->participant_set_cond, &gv->participant_set_lock);"
    ),
    waits_for_collected!(
        READER,
        "&e->m_domain->gv",
        "rd->m_rd != NULL",
        "&e->m_mutex",
        "ddsrt_cond_wait (&e->m_cond, &e->m_mutex);"
    ),
    waits_for_collected!(
        WRITER,
        "gv",
        "wr->m_wr != NULL",
        "&e->m_mutex",
        "ddsrt_cond_wait (&e->m_cond, &e->m_mutex);"
    ),
    // A process that may have no more threads is told so, and goes on: with its signals as they were, and nothing freed twice.
    (
        THREAD_OF_SYSTEM,
        r#"    DDS_ERROR ("os_threadCreate(%s): pthread_create failed with error %d\n", name, create_ret);
"#,
        r#"    sigprocmask (SIG_SETMASK, &oset, NULL);
    DDS_ERROR ("os_threadCreate(%s): pthread_create failed with error %d\n", name, create_ret);
"#,
    ),
    (
        INIT,
        r#"    if (gv->recv_threads[i].arg.rbpool)
      ddsi_rbufpool_free (gv->recv_threads[i].arg.rbpool);
  }
  return -1;
"#,
        r#"    if (gv->recv_threads[i].arg.rbpool)
      ddsi_rbufpool_free (gv->recv_threads[i].arg.rbpool);
  }
  gv->n_recv_threads = 0;
  return -1;
"#,
    ),
    (
        THREADS,
        r#"    DDS_FATAL ("create_thread: %s: ddsrt_thread_create failed\n", name);
    goto fatal;
  }
  ddsrt_mutex_unlock (&thread_states.lock);
  return DDS_RETCODE_OK;
fatal:
  ddsrt_mutex_unlock (&thread_states.lock);
  *ts1_out = NULL;
  abort ();
  return DDS_RETCODE_ERROR;
"#,
        r#"    DDS_ERROR ("create_thread: %s: ddsrt_thread_create failed\n", name);
    goto fatal;
  }
  ddsrt_mutex_unlock (&thread_states.lock);
  return DDS_RETCODE_OK;
fatal:
  ddsrt_mutex_unlock (&thread_states.lock);
  *ts1_out = NULL;
  return DDS_RETCODE_ERROR;
"#,
    ),
    // What a sample has lent is given back to it, and not what was encrypted of that: a part that had to be copied is freed by it.
    (
        MESSAGE,
        r#"  ddsrt_iovec_t refd_payload_iov;
#ifdef DDS_HAS_SECURITY
"#,
        r#"  ddsrt_iovec_t refd_payload_iov;
#ifdef DDS_HAS_SECURITY
  ddsrt_iovec_t tsuji_plain_iov;
"#,
    ),
    (
        MESSAGE,
        r#"    assert (m->refd_payload_encoded == NULL);
    /* When encoding is necessary"#,
        r#"    assert (m->refd_payload_encoded == NULL);
    m->tsuji_plain_iov = m->refd_payload_iov;
    /* When encoding is necessary"#,
    ),
    (
        MESSAGE,
        r#"    ddsi_serdata_to_ser_unref (m->refd_payload, &m->refd_payload_iov);
#ifdef DDS_HAS_SECURITY
  ddsrt_free(m->refd_payload_encoded);
"#,
        r#"    ddsi_serdata_to_ser_unref (m->refd_payload, &m->tsuji_plain_iov);
#ifdef DDS_HAS_SECURITY
  ddsrt_free(m->refd_payload_encoded);
"#,
    ),
    (
        MESSAGE,
        r#"    ddsi_serdata_unref(msg->refd_payload);
    msg->refd_payload = NULL;
"#,
        r#"    ddsi_serdata_to_ser_unref (msg->refd_payload, &msg->tsuji_plain_iov);
    msg->refd_payload = NULL;
"#,
    ),
    // Of a participant that is not secured the name stays as it is, and there is nothing to collect.
    (
        PARTICIPANT,
        r#"  if (pp->e.tk)
  {
    ddsi_tkmap_instance_unref (gv->m_tkmap, pp->e.tk);
    pp->e.tk = "#,
        r#"  if (pp->e.tk && ddsi_omg_participant_is_secure (pp))
  {
    ddsi_tkmap_instance_unref (gv->m_tkmap, pp->e.tk);
    pp->e.tk = "#,
    ),
    // The header of an encrypted message was in the order of this host before it was decrypted, and is copied as it is.
    (
        SECURITY,
        r#"  (*hdr)->guid_prefix = ddsi_ntoh_guid_prefix ((*hdr)->guid_prefix);
  *sz = dstlen;
"#,
        r#"  (*hdr)->guid_prefix = prefix;
  *sz = dstlen;
"#,
    ),
    (
        SECURITY,
        r#"  unsigned char *srcbuf;
  size_t srclen, dstlen;

  /* Currently the decode_rtps_message"#,
        r#"  unsigned char *srcbuf;
  size_t srclen, dstlen;
  const ddsi_guid_prefix_t prefix = (*hdr)->guid_prefix;

  /* Currently the decode_rtps_message"#,
    ),
    // Fast DDS refuses a handshake that is without what may be left out.
    (SECURITY, "gv->handshake_include_optional = false;", "gv->handshake_include_optional = true;"),
    // Permissions are for a domain of the network, which is not the number by which a process knows it.
    (
        PARTICIPANT,
        "ddsi_omg_security_check_create_participant (pp, gv->config.domainId)",
        "ddsi_omg_security_check_create_participant (pp, gv->config.extDomainId.value)",
    ),
    (
        MATCH,
        "check_remote_reader_permissions (prd, wr->e.gv->config.domainId,",
        "check_remote_reader_permissions (prd, wr->e.gv->config.extDomainId.value,",
    ),
    (
        MATCH,
        "check_remote_writer_permissions (pwr, rd->e.gv->config.domainId,",
        "check_remote_writer_permissions (pwr, rd->e.gv->config.extDomainId.value,",
    ),
    (
        SECURITY,
        "(DDS_Security_DomainId)gv->config.domainId, topic_name,",
        "(DDS_Security_DomainId)gv->config.extDomainId.value, topic_name,",
    ),
    (
        SECURITY,
        "check_remote_participant_permissions(gv->config.domainId,",
        "check_remote_participant_permissions(gv->config.extDomainId.value,",
    ),
    (
        WRITER,
        "ddsi_omg_security_check_create_writer (pp, gv->config.domainId,",
        "ddsi_omg_security_check_create_writer (pp, gv->config.extDomainId.value,",
    ),
    (
        READER,
        "ddsi_omg_security_check_create_reader (pp, gv->config.domainId,",
        "ddsi_omg_security_check_create_reader (pp, gv->config.extDomainId.value,",
    ),
];

const MESSAGE: &str = "src/core/ddsi/src/ddsi_xmsg.c";
const PARTICIPANT: &str = "src/core/ddsi/src/ddsi_participant.c";
const SECURITY: &str = "src/core/ddsi/src/ddsi_security_omg.c";
const ACKNACK: &str = "src/core/ddsi/src/ddsi_acknack.c";
const TRANSMIT: &str = "src/core/ddsi/src/ddsi_transmit.c";
const MATCH: &str = "src/core/ddsi/src/ddsi_endpoint_match.c";
const DOMAIN: &str = "src/core/ddsi/include/dds/ddsi/ddsi_domaingv.h";
const INIT: &str = "src/core/ddsi/src/ddsi_init.c";
const SOURCES: &str = "src/core/ddsi/CMakeLists.txt";
const RECEIVE: &str = "src/core/ddsi/src/ddsi_receive.c";
const ANNOUNCED: &str = "src/core/ddsi/src/ddsi_discovery_spdp.c";
const QUEUES: &str = "src/core/ddsi/src/ddsi_radmin.c";
const COLLECTOR: &str = "src/core/ddsi/src/ddsi_gc.c";
const THREADS: &str = "src/core/ddsi/src/ddsi_thread.c";
const ENDPOINTS: &str = "src/core/ddsi/src/ddsi_discovery_endpoint.c";
const REMOTE_ENDPOINTS: &str = "src/core/ddsi/src/ddsi_proxy_endpoint.c";
const READER: &str = "src/core/ddsc/src/dds_reader.c";
const WRITER: &str = "src/core/ddsc/src/dds_writer.c";
const THREAD_OF_SYSTEM: &str = "src/ddsrt/src/threads/posix/threads.c";
const MATCHES: &str = "src/core/ddsi/src/ddsi__endpoint_match.h";

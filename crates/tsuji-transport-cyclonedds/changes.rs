//! What is changed in the vendored sources of Cyclone DDS (docs/decisions/0032, 0034 and 0036).
//!
//! Each change is a text that the file has once and what stands in its place, so that sources which are other
//! than those that were read here are refused, and not built wrongly.

/// Files of `shim/` that are put beside the sources.
pub(crate) const ADDED: &[&str] = &["forms.h", "peer_processes.h", "peer_processes.c"];

/// A file in the root of the sources, a text of it, and what stands in its place.
pub(crate) const CHANGES: &[(&str, &str, &str)] = &[
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
  if (identity != NULL)
    memcpy (ddsi_xmsg_addpar (msg, TSUJI_PID_RELATED_SAMPLE_IDENTITY, TSUJI_IDENTITY_LEN), identity, TSUJI_IDENTITY_LEN);
}

bool tsuji_vendor_of (struct ddsi_domaingv *gv, const unsigned char *name, unsigned char *vendor)
{
  struct ddsi_thread_state * const thrst = ddsi_lookup_thread_state ();
  ddsi_guid_t guid;
  memcpy (&guid, name, sizeof (guid));
  guid = ddsi_ntoh_guid (guid);
  ddsi_thread_state_awake (thrst, gv);
  const struct ddsi_proxy_participant *found = ddsi_entidx_lookup_proxy_participant_guid (gv->entity_index, &guid);
  const bool is_found = found != NULL;
  if (is_found)
    memcpy (vendor, found->vendor.id, sizeof (found->vendor.id));
  ddsi_thread_state_asleep (thrst);
  return is_found;
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
};
"#,
    ),
    (
        INIT,
        r#"  gv->tstart = ddsrt_time_wallclock ();    /* wall clock time, used in logs */
"#,
        r#"  gv->tstart = ddsrt_time_wallclock ();    /* wall clock time, used in logs */
  gv->tsuji_peers = tsuji_peers_take_next (gv);
"#,
    ),
    (
        INIT,
        r#"#include "ddsi__spdp_schedule.h"
"#,
        r#"#include "ddsi__spdp_schedule.h"
#include "peer_processes.h"
"#,
    ),
    (
        SOURCES,
        r#"  ddsi_acknack.c
"#,
        r#"  ddsi_acknack.c
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
];

const ACKNACK: &str = "src/core/ddsi/src/ddsi_acknack.c";
const TRANSMIT: &str = "src/core/ddsi/src/ddsi_transmit.c";
const MATCH: &str = "src/core/ddsi/src/ddsi_endpoint_match.c";
const DOMAIN: &str = "src/core/ddsi/include/dds/ddsi/ddsi_domaingv.h";
const INIT: &str = "src/core/ddsi/src/ddsi_init.c";
const SOURCES: &str = "src/core/ddsi/CMakeLists.txt";
const RECEIVE: &str = "src/core/ddsi/src/ddsi_receive.c";
const ANNOUNCED: &str = "src/core/ddsi/src/ddsi_discovery_spdp.c";

/* The functions of the engine that have a state, as the plug-ins call them. */
#include "host.h"

#include "dds/ddsi/ddsi_domaingv.h"

static const struct tsuji_host *host;

/* Called before the first of them, by the thread that joins: one at a time. */
void tsuji_meet_host (const struct ddsi_domaingv *gv) { host = gv->tsuji_host; }

struct ddsi_gcreq *ddsi_gcreq_new (struct ddsi_gcreq_queue *queue, ddsi_gcreq_cb_t cb) { return host->gcreq_new (queue, cb); }
void ddsi_gcreq_free (struct ddsi_gcreq *gcreq) { host->gcreq_free (gcreq); }
void ddsi_gcreq_enqueue (struct ddsi_gcreq *gcreq) { host->gcreq_enqueue (gcreq); }
void *ddsi_gcreq_get_arg (struct ddsi_gcreq *gcreq) { return host->gcreq_get_arg (gcreq); }
void ddsi_gcreq_set_arg (struct ddsi_gcreq *gcreq, void *arg) { host->gcreq_set_arg (gcreq, arg); }

struct ddsi_xevent *ddsi_qxev_callback (struct ddsi_xeventq *queue, ddsrt_mtime_t at, ddsi_xevent_cb_t cb, const void *arg, size_t arg_size, bool sync_on_delete)
{
  return host->qxev_callback (queue, at, cb, arg, arg_size, sync_on_delete);
}

int ddsi_resched_xevent_if_earlier (struct ddsi_xevent *event, ddsrt_mtime_t at) { return host->resched_xevent_if_earlier (event, at); }
void ddsi_delete_xevent (struct ddsi_xevent *event) { host->delete_xevent (event); }

/* What the plug-ins of DDS Security call in the engine. They are a library of their own, with a copy of what has no state; these have
 * one, so they are called in the engine that has loaded them. */
#ifndef TSUJI_CYCLONEDDS_HOST_H
#define TSUJI_CYCLONEDDS_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "dds/ddsrt/attributes.h"
#include "dds/ddsrt/time.h"
#include "dds/ddsi/ddsi_gc.h"
#include "dds/ddsi/ddsi_xevent.h"

struct ddsi_xeventq;

struct tsuji_host {
  struct ddsi_gcreq *(*gcreq_new) (struct ddsi_gcreq_queue *queue, ddsi_gcreq_cb_t cb);
  void (*gcreq_free) (struct ddsi_gcreq *gcreq);
  void (*gcreq_enqueue) (struct ddsi_gcreq *gcreq);
  void *(*gcreq_get_arg) (struct ddsi_gcreq *gcreq);
  void (*gcreq_set_arg) (struct ddsi_gcreq *gcreq, void *arg);
  struct ddsi_xevent *(*qxev_callback) (struct ddsi_xeventq *queue, ddsrt_mtime_t at, ddsi_xevent_cb_t cb, const void *arg, size_t arg_size, bool sync_on_delete);
  int (*resched_xevent_if_earlier) (struct ddsi_xevent *event, ddsrt_mtime_t at);
  void (*delete_xevent) (struct ddsi_xevent *event);
};

/* Of the engine that this is linked with. */
const struct tsuji_host *tsuji_host (void);

#endif

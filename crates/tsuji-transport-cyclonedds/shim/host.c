#include "host.h"

const struct tsuji_host *tsuji_host (void)
{
  static const struct tsuji_host host = {
    .gcreq_new = ddsi_gcreq_new,
    .gcreq_free = ddsi_gcreq_free,
    .gcreq_enqueue = ddsi_gcreq_enqueue,
    .gcreq_get_arg = ddsi_gcreq_get_arg,
    .gcreq_set_arg = ddsi_gcreq_set_arg,
    .qxev_callback = ddsi_qxev_callback,
    .resched_xevent_if_earlier = ddsi_resched_xevent_if_earlier,
    .delete_xevent = ddsi_delete_xevent,
  };
  return &host;
}

/* Part of Cyclone DDS, as build.rs builds it. */
#include "addresses.h"

#include <string.h>

#include "dds/ddsi/ddsi_domaingv.h"
#include "dds__domain.h"
#include "dds__entity.h"

/* Whether it is one of UDP. */
static bool read_locator (const ddsi_locator_t *locator, uint32_t port, struct tsuji_address *to)
{
  memset (to, 0, sizeof (*to));
  to->port = (uint16_t) port;
  to->is_v6 = locator->kind == DDSI_LOCATOR_KIND_UDPv6;
  if (to->is_v6)
    memcpy (to->bytes, locator->address, 16);
  else
    memcpy (to->bytes, locator->address + 12, 4);
  return to->is_v6 || locator->kind == DDSI_LOCATOR_KIND_UDPv4;
}

size_t tsuji_addresses (int32_t participant, bool is_sent, struct tsuji_address *to, size_t room)
{
  struct dds_entity *entity;
  if (dds_entity_pin (participant, &entity) < 0)
    return 0;
  /* Neither changes while the domain is there. */
  const struct ddsi_domaingv *gv = &entity->m_domain->gv;
  size_t count = 0;
  /* Where each participant has a socket of its own there is no one port. */
  const bool is_known = is_sent || gv->config.many_sockets_mode != DDSI_MSM_MANY_UNICAST;
  for (int at = 0; is_known && at < gv->n_interfaces; at++)
  {
    struct tsuji_address address;
    const ddsi_locator_t *sent = &gv->intf_xlocators[at].c;
    const bool is_there = is_sent ?
      read_locator (sent, sent->port, &address) :
      read_locator (&gv->interfaces[at].extloc, gv->loc_default_uc.port, &address);
    if (is_there && count++ < room)
      to[count - 1] = address;
  }
  dds_entity_unpin (entity);
  return count;
}

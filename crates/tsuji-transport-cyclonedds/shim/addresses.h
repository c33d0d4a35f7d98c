/* What build.rs adds to Cyclone DDS: the addresses of this host that its packets have. */
#ifndef TSUJI_CYCLONEDDS_ADDRESSES_H
#define TSUJI_CYCLONEDDS_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tsuji_address {
  /* Of IPv4 the first four. */
  unsigned char bytes[16];
  uint16_t port;
  bool is_v6;
};

/* Where packets of a participant are sent from by UDP, or where others are told to send them to. Returns how many there are, of
 * which `room` are written at most; 0 for what is no participant, and where that is not known. */
size_t tsuji_addresses (int32_t participant, bool is_sent, struct tsuji_address *to, size_t room);

#endif

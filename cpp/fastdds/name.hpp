// The name of a participant or an endpoint: its GUID as it goes over the wire.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string_view>

#include "release.hpp"
#include "tsuji_transport.h"

namespace tsuji {

using Name = std::array<unsigned char, TSUJI_NAME_BYTES>;

inline Name name_of(const rtps::GUID_t &guid)
{
  Name name;
  std::copy_n(guid.guidPrefix.value, 12, name.begin());
  std::copy_n(guid.entityId.value, 4, name.begin() + 12);
  return name;
}

// Whether both are of one participant.
inline bool is_of(const Name &one, const Name &other) { return std::equal(one.begin(), one.begin() + 12, other.begin()); }

struct NameHash {
  size_t operator()(const Name &name) const
  {
    return std::hash<std::string_view>()({reinterpret_cast<const char *>(name.data()), name.size()});
  }
};

}  // namespace tsuji

// Durations as tsuji and as Fast DDS write them.
#pragma once

#include <cstdint>

#include "release.hpp"
#include "tsuji_transport.h"

namespace tsuji {

// The engine counts seconds in 31 bits; what is longer never ends.
inline Duration duration(int64_t ns)
{
  constexpr int64_t SECOND_NS = 1'000'000'000;
  if (ns < 0)
    return {0, 0u};
  if (INT32_MAX <= ns / SECOND_NS)
    return c_TimeInfinite;
  return {static_cast<int32_t>(ns / SECOND_NS), static_cast<uint32_t>(ns % SECOND_NS)};
}

inline int64_t nanoseconds(const Duration &it) { return it.is_infinite() ? TSUJI_INFINITE : it.to_ns(); }

}  // namespace tsuji

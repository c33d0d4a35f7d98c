// Samples of raw CDR, which Fast DDS neither makes nor understands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "release.hpp"

namespace tsuji {

constexpr size_t HEADER_BYTES = 4;
// Far from what overflows the 32 bits in which the engine counts.
constexpr size_t SAMPLE_BYTES_MAX = size_t{1} << 30;

// What a writer hands to the engine.
struct Outgoing {
  const unsigned char *data;
  size_t size;
};

// What the engine hands to a reader. `memory` is freed by sample_free; null where there is none to be had.
struct Incoming {
  void *memory = nullptr;
  const unsigned char *data = nullptr;
  size_t size = 0;
};

void sample_free(void *memory);

// A type of which only the name is known: its samples are Outgoing and Incoming.
class RawType : public NamedType {
 public:
  explicit RawType(const std::string &name) : NamedType(name, HEADER_BYTES) {}

 private:
  bool write(const void *outgoing, rtps::SerializedPayload_t &payload) const override;
  bool read(const rtps::SerializedPayload_t &payload, void *incoming) const override;
  uint32_t size_of(const void *outgoing) const override;
  void *make() const override;
  void remove(void *incoming) const override;
};

}  // namespace tsuji

#include "sample.hpp"

#include <cstdlib>
#include <cstring>

namespace tsuji {

namespace {

// Where the data begins modulo 16, so that the body behind the header is aligned.
constexpr size_t LEAD = 12;

size_t padded(size_t size) { return (size + 3) & ~size_t{3}; }

// The header says in its last two bits how many bytes at the end are padding (DDS-XTypes 1.3, 7.6.3.1.2).
size_t without_padding(unsigned char *data, size_t size)
{
  if (size < HEADER_BYTES)
    return size;
  const size_t padding = data[3] & 3u;
  data[3] &= static_cast<unsigned char>(~3u);
  const bool is_padded = size == padded(size) && HEADER_BYTES + padding <= size;
  return is_padded ? size - padding : size;
}

}  // namespace

void sample_free(void *memory) { std::free(memory); }

// The engine rounds a sample up to 4 bytes on the wire and does not say so in the header; so that is done here.
bool RawType::write(const void *outgoing, rtps::SerializedPayload_t &payload) const
{
  const auto &sample = *static_cast<const Outgoing *>(outgoing);
  const size_t size = padded(sample.size);
  if (payload.max_size < size)
    return false;
  std::memcpy(payload.data, sample.data, sample.size);
  std::memset(payload.data + sample.size, 0, size - sample.size);
  payload.data[3] = static_cast<unsigned char>((payload.data[3] & ~3u) | (size - sample.size));
  payload.length = static_cast<uint32_t>(size);
  payload.encapsulation = (sample.data[1] & 1) != 0 ? CDR_LE : CDR_BE;
  return true;
}

bool RawType::read(const rtps::SerializedPayload_t &payload, void *incoming) const
{
  auto &sample = *static_cast<Incoming *>(incoming);
  sample = Incoming();
  auto *memory = static_cast<unsigned char *>(std::aligned_alloc(16, (LEAD + payload.length + 15) / 16 * 16));
  if (memory == nullptr)
    return true;
  unsigned char *data = memory + LEAD;
  std::memcpy(data, payload.data, payload.length);
  sample = Incoming{memory, data, without_padding(data, payload.length)};
  return true;
}

uint32_t RawType::size_of(const void *outgoing) const
{
  return static_cast<uint32_t>(padded(static_cast<const Outgoing *>(outgoing)->size));
}

void *RawType::make() const { return new Incoming(); }

void RawType::remove(void *incoming) const { delete static_cast<Incoming *>(incoming); }

}  // namespace tsuji

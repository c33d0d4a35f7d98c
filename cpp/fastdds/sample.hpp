// Samples of raw CDR, which Fast DDS neither makes nor understands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <fastdds/dds/topic/TopicDataType.hpp>

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
class RawType : public eprosima::fastdds::dds::TopicDataType {
 public:
  explicit RawType(const std::string &name);

  bool serialize(void *outgoing, eprosima::fastrtps::rtps::SerializedPayload_t *payload) override;
  bool deserialize(eprosima::fastrtps::rtps::SerializedPayload_t *payload, void *incoming) override;
  std::function<uint32_t()> getSerializedSizeProvider(void *outgoing) override;
  void *createData() override;
  void deleteData(void *incoming) override;
  bool getKey(void *data, eprosima::fastrtps::rtps::InstanceHandle_t *handle, bool force_md5) override;
};

}  // namespace tsuji

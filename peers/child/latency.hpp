// Pictures from one end to another, one at a time, each to a receiver that has fallen asleep.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "clock.hpp"
#include "fields.hpp"
#include "pacing.hpp"
#include "picture.hpp"

namespace tsuji {

// What a process plays, of all that the laboratory says.
struct LatencySpec {
  explicit LatencySpec(const Fields &fields);

  std::string transport;
  // `both`, `sender` or `receiver`.
  std::string role;
  std::string folder;
  std::string name;
  size_t size;
  uint64_t pause_us;
  // Inside one process, both ends are of one node.
  bool is_one_node;
};

// What has arrived. Any one thread may tell of it.
class Arrivals {
 public:
  Arrivals(size_t size, Descriptor socket, Meter &meter) : pictures_(size), socket_(std::move(socket)), meter_(meter) {}

  // A callback calls this first of all.
  void arrived(const uint8_t *picture, size_t size);

  // What arrived since the last call, the fields of an answer.
  std::string report();

 private:
  const Pictures pictures_;
  const Descriptor socket_;
  Meter &meter_;
  std::mutex mutex_;
  // Number and time of each right picture.
  std::vector<std::array<uint64_t, 2>> arrived_;
  uint64_t damaged_ = 0;
};

// One end of a flow, or both. What it needs ends with it.
class End {
 public:
  virtual ~End() = default;
};

// One that sends.
class Sender : public End {
 public:
  // Takes a place for the next picture.
  virtual void prepare() = 0;

  // That place, as many bytes as a picture has.
  virtual uint8_t *canvas() = 0;

  // Sends what was drawn there.
  virtual void publish() = 0;
};

// What pictures go by.
class Transport {
 public:
  virtual ~Transport() = default;

  // Its name in a report.
  virtual std::string name() const = 0;

  virtual std::unique_ptr<Sender> sender() = 0;
  virtual std::unique_ptr<End> receiver(Arrivals &arrivals) = 0;

  // Both ends in this process.
  virtual std::unique_ptr<Sender> both(Arrivals &arrivals) = 0;
};

// Plays the part that `spec` describes, until the input ends.
void run_latency(const LatencySpec &spec, Transport &transport);

}  // namespace tsuji

// Clocks, and the processor time that is not the laboratory's own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <thread>

namespace tsuji {

inline uint64_t clock_ns(clockid_t clock)
{
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Processes of a host share it.
inline uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

// Returns once monotonic_ns() is at least that.
inline void sleep_until_ns(uint64_t due_ns)
{
  for (uint64_t now = monotonic_ns(); now < due_ns; now = monotonic_ns())
    std::this_thread::sleep_for(std::chrono::nanoseconds(due_ns - now));
}

// Processor time of this process, without what the laboratory itself uses.
class Meter {
 public:
  uint64_t used_ns() const { return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - excluded_ns_; }

  // Since used_ns() was `before_ns`. What another thread left out meanwhile may have been used before, so it could be less than 0.
  uint64_t used_since_ns(uint64_t before_ns) const
  {
    const uint64_t now_ns = used_ns();
    return before_ns < now_ns ? now_ns - before_ns : 0;
  }

 private:
  friend class Excluded;
  std::atomic<uint64_t> excluded_ns_{0};
};

// Leaves out what the calling thread does for as long as this is there.
class Excluded {
 public:
  explicit Excluded(Meter &meter) : meter_(meter), since_ns_(clock_ns(CLOCK_THREAD_CPUTIME_ID)) {}
  ~Excluded() { meter_.excluded_ns_ += clock_ns(CLOCK_THREAD_CPUTIME_ID) - since_ns_; }
  Excluded(const Excluded &) = delete;
  Excluded &operator=(const Excluded &) = delete;

 private:
  Meter &meter_;
  const uint64_t since_ns_;
};

}  // namespace tsuji

// Calls what tsuji wants to be called, one call after the other, and none after it has been closed.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "tsuji_transport.h"

namespace tsuji {

class Ear {
 public:
  void open(const tsuji_ear *ear);
  // Waits for a call that runs.
  void close();
  void news();
  void match();

 private:
  std::mutex mutex_;
  const tsuji_ear *ear_ = nullptr;
};

// A thread that calls ears. The engine tells of matches and of who is found under locks of its own, which writing and
// opening take too; to be called from there tsuji may not.
class Herald {
 public:
  Herald();
  ~Herald();

  // What an ear is to be told. More of them before it is called are one.
  struct Errand {
    explicit Errand(void (Ear::*call)()) : call(call) {}

    Ear ear;
    void (Ear::*call)();
    std::atomic<bool> is_posted{false};
  };

  void post(const std::shared_ptr<Errand> &errand);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable is_needed_;
  std::deque<std::shared_ptr<Errand>> errands_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace tsuji

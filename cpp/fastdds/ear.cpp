#include "ear.hpp"

namespace tsuji {

void Ear::open(const tsuji_ear *ear)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  ear_ = ear;
}

void Ear::close() { open(nullptr); }

void Ear::news()
{
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ear_ != nullptr)
    ear_->on_data(ear_->arg);
}

void Ear::match()
{
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ear_ != nullptr)
    ear_->on_match(ear_->arg);
}

Herald::Herald() : thread_([this] { run(); }) {}

Herald::~Herald()
{
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_ending_ = true;
  }
  is_needed_.notify_one();
  thread_.join();
}

void Herald::post(const std::shared_ptr<Errand> &errand)
{
  if (errand->is_posted.exchange(true))
    return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    errands_.push_back(errand);
  }
  is_needed_.notify_one();
}

void Herald::run()
{
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;)
  {
    is_needed_.wait(lock, [this] { return is_ending_ || !errands_.empty(); });
    if (is_ending_)
      return;
    const std::shared_ptr<Errand> errand = std::move(errands_.front());
    errands_.pop_front();
    lock.unlock();
    // Before the call: what happens during it is told by another.
    errand->is_posted = false;
    (errand->ear.*errand->call)();
    lock.lock();
  }
}

}  // namespace tsuji

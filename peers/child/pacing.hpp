// How the sender learns that a picture was read, and that its reader sleeps again: over a socket that no transport uses.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <sys/types.h>

namespace tsuji {

// A descriptor that is closed with this.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor &&other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept
  {
    std::swap(number_, other.number_);
    return *this;
  }

  int number() const { return number_; }

 private:
  int number_;
};

// Both ends inside one process.
std::pair<Descriptor, Descriptor> socket_pair();

// The address of the socket between two processes of the flow `name`. Folders whose names are too long are refused.
Descriptor listen_at(const std::string &folder, const std::string &name);
Descriptor connect_to(const std::string &folder, const std::string &name);
Descriptor accept_from(const Descriptor &listener);

// The receiving thread has read the picture of that number.
void acknowledge(const Descriptor &socket, uint64_t number);

// The sending end.
class Pacer {
 public:
  Pacer(Descriptor socket, uint64_t pause_us) : socket_(std::move(socket)), pause_us_(pause_us) {}

  // Whether the receiver has read the picture of that number, waiting for it up to `patience_ms` between two
  // acknowledgements. Remembers which thread it was.
  bool is_acknowledged(uint64_t number, int patience_ms);

  // Returns when that thread is asleep and has rested.
  void wait_until_asleep() const;

 private:
  Descriptor socket_;
  uint64_t pause_us_;
  pid_t thread_ = 0;
  // Its state, a file in /proc.
  Descriptor state_;
};

}  // namespace tsuji

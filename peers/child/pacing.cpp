#include "pacing.hpp"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

namespace tsuji {

namespace {

struct Acknowledgement {
  uint64_t number;
  pid_t process;
  pid_t thread;
};

// Names an environment variable: the processor of who receives, where the same process sends too.
constexpr char RECEIVES_ON[] = "TSUJI_LAB_RECEIVES_ON";

// A receiver that has not slept at so many looks has a fault.
constexpr int NOT_ASLEEP_MAX = 100'000;

[[noreturn]] void fail(const std::string &what) { throw std::system_error(errno, std::generic_category(), what); }

// Takes the calling thread to the processor that the laboratory has for it.
bool receive_here()
{
  const char *told = getenv(RECEIVES_ON);
  const long processor = told ? strtol(told, nullptr, 10) : -1;
  if (processor < 0 || CPU_SETSIZE <= processor)
    return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  // Where the system has taken the processor away meanwhile, any other does.
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

sockaddr_un address_of(const std::string &folder, const std::string &name)
{
  const std::string path = folder + "/" + name + ".acks";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (sizeof address.sun_path <= path.size())
    throw std::runtime_error("\"" + path + "\" is too long; allowed: " + std::to_string(sizeof address.sun_path - 1) + " bytes");
  path.copy(address.sun_path, path.size());
  return address;
}

Descriptor stream_socket()
{
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.number() < 0)
    fail("make a socket");
  return socket;
}

}  // namespace

Descriptor::~Descriptor()
{
  if (0 <= number_)
    close(number_);
}

std::pair<Descriptor, Descriptor> socket_pair()
{
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    fail("make a pair of sockets");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Descriptor listen_at(const std::string &folder, const std::string &name)
{
  const sockaddr_un address = address_of(folder, name);
  Descriptor socket = stream_socket();
  if (bind(socket.number(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0 ||
      listen(socket.number(), 1) != 0)
    fail(std::string("listen at ") + address.sun_path);
  return socket;
}

Descriptor connect_to(const std::string &folder, const std::string &name)
{
  const sockaddr_un address = address_of(folder, name);
  Descriptor socket = stream_socket();
  if (connect(socket.number(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0)
    fail(std::string("connect to ") + address.sun_path);
  return socket;
}

Descriptor accept_from(const Descriptor &listener)
{
  Descriptor socket(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.number() < 0)
    fail("accept the receiver");
  return socket;
}

void acknowledge(const Descriptor &socket, uint64_t number)
{
  // A thread that calls back says so by its first picture, a handshake.
  [[maybe_unused]] thread_local const bool is_here = receive_here();
  const Acknowledgement told{number, getpid(), static_cast<pid_t>(syscall(SYS_gettid))};
  // A sender that has gone needs no acknowledgement.
  (void)!send(socket.number(), &told, sizeof told, MSG_NOSIGNAL);
}

bool Pacer::is_acknowledged(uint64_t number, int patience_ms)
{
  for (;;)
  {
    pollfd readable{socket_.number(), POLLIN, 0};
    Acknowledgement told{};
    if (poll(&readable, 1, patience_ms) <= 0 ||
        recv(socket_.number(), &told, sizeof told, MSG_WAITALL) != sizeof told)
      return false;
    if (told.thread != thread_)
    {
      const std::string path =
          "/proc/" + std::to_string(told.process) + "/task/" + std::to_string(told.thread) + "/stat";
      state_ = Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (state_.number() < 0)
        fail("open " + path);
      thread_ = told.thread;
    }
    if (told.number == number)
      return true;
  }
}

void Pacer::wait_until_asleep() const
{
  char line[128];
  for (int look = 0; look < NOT_ASLEEP_MAX; ++look)
  {
    std::this_thread::sleep_for(std::chrono::microseconds(pause_us_));
    const ssize_t size = pread(state_.number(), line, sizeof line, 0);
    if (size < 0)
      fail("the receiver's thread");
    // `pid (name) S …`, and the name may hold anything.
    const std::string_view text(line, static_cast<size_t>(size));
    const size_t name_ends = text.rfind(')');
    if (name_ends != text.npos && name_ends + 2 < text.size() && text[name_ends + 2] == 'S')
      return;
  }
  throw std::runtime_error("the receiver does not fall asleep");
}

}  // namespace tsuji

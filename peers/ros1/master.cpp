#include "master.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <ros/init.h>
#include <ros/master.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answers.hpp"
#include "pacing.hpp"

namespace tsuji {

namespace {

constexpr std::chrono::milliseconds LOOK(20);

[[noreturn]] void fail(const std::string &what) { throw std::system_error(errno, std::generic_category(), what); }

// Nobody had it a moment ago. `rosmaster` itself can take any, but tells nobody which.
uint16_t free_port()
{
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(socket.number(), reinterpret_cast<sockaddr *>(&address), size) != 0 ||
      getsockname(socket.number(), reinterpret_cast<sockaddr *>(&address), &size) != 0)
    fail("find a free port");
  return ntohs(address.sin_port);
}

// `rosmaster` as a child, which is killed with this.
class Master {
 public:
  explicit Master(uint16_t port)
  {
    const std::string number = std::to_string(port);
    const pid_t parent = getpid();
    process_ = fork();
    if (process_ < 0)
      fail("start rosmaster");
    if (process_ != 0)
      return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // It may have gone before the kernel was asked.
    if (getppid() == parent)
      execlp("rosmaster", "rosmaster", "--core", "-p", number.c_str(), nullptr);
    _exit(127);
  }
  ~Master()
  {
    if (has_ended_)
      return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  Master(const Master &) = delete;
  Master &operator=(const Master &) = delete;

  // Whether it is this one, and no other, that answers. Throws where it has ended.
  bool answers()
  {
    int status = 0;
    has_ended_ = waitpid(process_, &status, WNOHANG) == process_;
    if (has_ended_)
      throw std::runtime_error(WIFSIGNALED(status)
                                   ? "rosmaster was ended by signal " + std::to_string(WTERMSIG(status))
                                   : "rosmaster ended with " + std::to_string(WEXITSTATUS(status)));
    XmlRpc::XmlRpcValue arguments, response, pid;
    arguments[0] = "tsuji_lab";
    return ros::master::execute("getPid", arguments, response, pid, false) && static_cast<int>(pid) == process_;
  }

 private:
  pid_t process_ = -1;
  bool has_ended_ = false;
};

}  // namespace

void play_master()
{
  const uint16_t port = free_port();
  const std::string uri = "http://127.0.0.1:" + std::to_string(port);
  ros::init(ros::M_string{{"__master", uri}}, "tsuji_lab_master", ros::init_options::NoSigintHandler | ros::init_options::NoRosout);
  Master master(port);
  while (!master.answers())
    std::this_thread::sleep_for(LOOK);
  answer("{\"uri\":" + quoted(uri) + "}");
  answer_each([](const std::vector<std::string> &words) -> std::string { not_understood(words); });
}

}  // namespace tsuji

#include "session.hpp"

#include <rmw/rmw.h>
#include <unistd.h>

namespace tsuji {

namespace {

// Whatever takes longer to end, nobody wants any more.
constexpr unsigned END_SECONDS_MAX = 3;

void end()
{
  alarm(END_SECONDS_MAX);
  rclcpp::shutdown();
}

}  // namespace

Session::Session() { rclcpp::init(0, nullptr, rclcpp::InitOptions(), rclcpp::SignalHandlerOptions::None); }

Session::~Session() { end(); }

std::string middleware() { return std::string("rclcpp:") + rmw_get_implementation_identifier(); }

Spinning::Spinning(const std::vector<std::shared_ptr<rclcpp::Node>> &nodes)
{
  for (const std::shared_ptr<rclcpp::Node> &node : nodes)
    executor_.add_node(node);
  thread_ = std::thread([this] { executor_.spin(); });
}

Spinning::~Spinning()
{
  // To cancel the executor would be forgotten where the thread has not begun to spin yet.
  end();
  thread_.join();
}

}  // namespace tsuji

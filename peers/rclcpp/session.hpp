// rclcpp in this process.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rclcpp/rclcpp.hpp>

namespace tsuji {

// Begins with this, and with the middleware that `RMW_IMPLEMENTATION` names; throws where that cannot be loaded. It hears of no Ctrl-C.
class Session {
 public:
  Session();
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;
};

// What was loaded, as a row of a report names it.
std::string middleware();

// A thread in `spin()` of a SingleThreadedExecutor, and the end of rclcpp with it.
class Spinning {
 public:
  explicit Spinning(const std::vector<std::shared_ptr<rclcpp::Node>> &nodes);
  ~Spinning();
  Spinning(const Spinning &) = delete;
  Spinning &operator=(const Spinning &) = delete;

 private:
  rclcpp::executors::SingleThreadedExecutor executor_;
  std::thread thread_;
};

}  // namespace tsuji

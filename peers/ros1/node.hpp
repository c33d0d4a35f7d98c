// A node of ROS 1 in this process.
#pragma once

#include <string>
#include <thread>

namespace tsuji {

// Names it and looks for its master, both as `ROS_MASTER_URI` and the other variables say. It hears of no Ctrl-C and writes no log
// to a topic. Throws where no master answers.
void begin_node(const std::string &name);

// Ends it, however ROS itself fares with that.
void end_node();

// A thread in `ros::spin()`, and the end of the node with it.
class Spinning {
 public:
  Spinning();
  ~Spinning();
  Spinning(const Spinning &) = delete;
  Spinning &operator=(const Spinning &) = delete;

 private:
  std::thread thread_;
};

}  // namespace tsuji

#include "node.hpp"

#include <stdexcept>

#include <ros/console.h>
#include <ros/init.h>
#include <ros/master.h>
#include <unistd.h>

namespace tsuji {

namespace {

// After so long without a master, ROS gives up what it wanted of it.
constexpr double MASTER_SECONDS_MAX = 5;

// Whatever takes longer to end, nobody wants any more.
constexpr unsigned END_SECONDS_MAX = 3;

}  // namespace

void begin_node(const std::string &name)
{
  ros::init(ros::M_string(), name, ros::init_options::NoSigintHandler | ros::init_options::NoRosout);
  ros::console::set_logger_level(ROSCONSOLE_DEFAULT_NAME, ros::console::levels::Warn);
  ros::master::setRetryTimeout(ros::WallDuration(MASTER_SECONDS_MAX));
  if (!ros::master::check())
    throw std::runtime_error("no master of ROS 1 answers at " + ros::master::getURI());
  ros::start();
}

void end_node()
{
  alarm(END_SECONDS_MAX);
  ros::shutdown();
}

Spinning::Spinning() : thread_([] { ros::spin(); }) {}

Spinning::~Spinning()
{
  end_node();
  thread_.join();
}

}  // namespace tsuji

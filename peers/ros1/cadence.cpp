#include "cadence.hpp"

#include <array>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <ros/ros.h>
#include <std_msgs/String.h>

#include "answers.hpp"
#include "clock.hpp"
#include "node.hpp"

namespace tsuji {

namespace {

using Pairs = std::vector<std::array<uint64_t, 2>>;

constexpr char TEXT[] = "Test msg";

// A flow in which nothing has come for so long has ended.
constexpr std::chrono::seconds SILENT(2);
constexpr std::chrono::milliseconds LOOK(10);

// Publishes each when it is due, whenever the one before was. The answer is when each was due and was published. A text of
// ROS 1 has no place for a number, so it stands behind the text.
Pairs publish(ros::Publisher &publisher, const std::string &text, uint64_t count, uint64_t period_us)
{
  Pairs published;
  published.reserve(count);
  const uint64_t begin_ns = monotonic_ns() + period_us * 1000;
  for (uint64_t number = 0; number < count; ++number)
  {
    const uint64_t due_ns = begin_ns + number * period_us * 1000;
    std_msgs::String message;
    message.data = text + " " + std::to_string(number);
    for (uint64_t now = monotonic_ns(); now < due_ns; now = monotonic_ns())
      std::this_thread::sleep_for(std::chrono::nanoseconds(due_ns - now));
    const uint64_t at_ns = monotonic_ns();
    publisher.publish(message);
    published.push_back({due_ns, at_ns});
  }
  return published;
}

// The end that listens.
class Listening {
 public:
  Listening(ros::NodeHandle &node, const std::string &topic, uint32_t depth, bool has_no_delay)
      : subscriber_(node.subscribe(topic, depth, &Listening::note, this, hints(has_no_delay)))
  {
  }

  // Waits until the last of `count` has come, or nothing does any more.
  Pairs heard(uint64_t count) const
  {
    size_t came = 0;
    auto since = std::chrono::steady_clock::now();
    for (;; std::this_thread::sleep_for(LOOK))
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (received_.size() != came)
      {
        came = received_.size();
        since = std::chrono::steady_clock::now();
      }
      // They come in order.
      const bool has_last = !received_.empty() && received_.back()[0] + 1 == count;
      if (has_last || SILENT <= std::chrono::steady_clock::now() - since)
        return received_;
    }
  }

 private:
  static ros::TransportHints hints(bool has_no_delay)
  {
    return has_no_delay ? ros::TransportHints().tcpNoDelay() : ros::TransportHints();
  }

  void note(const std_msgs::String &message)
  {
    const uint64_t at_ns = monotonic_ns();
    const uint64_t number = std::stoull(message.data.substr(message.data.rfind(' ') + 1));
    const std::lock_guard<std::mutex> lock(mutex_);
    received_.push_back({number, at_ns});
  }

  mutable std::mutex mutex_;
  // The number of each that came, from 0, and when.
  Pairs received_;
  ros::Subscriber subscriber_;
  const Spinning spinning_;
};

void speak(ros::NodeHandle &node, const boost::property_tree::ptree &spec)
{
  ros::Publisher publisher = node.advertise<std_msgs::String>(spec.get<std::string>("name"), spec.get<uint32_t>("depth"));
  std::string text;
  while (text.size() < spec.get<size_t>("bytes"))
    text += TEXT;
  text.resize(spec.get<size_t>("bytes"));
  answer("{\"open\":true}");
  answer_each([&](const std::vector<std::string> &words) {
    if (words.size() != 3 || words[0] != "speak")
      not_understood(words);
    return "{\"published\":" + table(publish(publisher, text, std::stoull(words[1]), std::stoull(words[2]))) + "}";
  });
  end_node();
}

void listen(ros::NodeHandle &node, const boost::property_tree::ptree &spec, bool has_no_delay)
{
  const Listening listening(node, spec.get<std::string>("name"), spec.get<uint32_t>("depth"), has_no_delay);
  answer("{\"open\":true}");
  answer_each([&](const std::vector<std::string> &words) {
    if (words.size() != 2 || words[0] != "heard")
      not_understood(words);
    const std::string carrier = has_no_delay ? "ros1:roscpp_nodelay" : "ros1:roscpp";
    const std::string received = table(listening.heard(std::stoull(words[1])));
    return "{\"received\":" + received + ",\"displaced\":null,\"carrier\":\"" + carrier + "\"}";
  });
}

}  // namespace

void play_cadence(const boost::property_tree::ptree &spec, bool has_no_delay)
{
  const auto role = spec.get<std::string>("role");
  begin_node(spec.get<std::string>("name") + "_" + role);
  ros::NodeHandle node;
  if (role == "speaker")
    speak(node, spec);
  else if (role == "listener")
    listen(node, spec, has_no_delay);
  else
    throw std::runtime_error("no role " + role + "; allowed: speaker, listener");
}

}  // namespace tsuji

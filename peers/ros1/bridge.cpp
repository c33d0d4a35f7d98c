#include "bridge.hpp"

#include <chrono>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ros/ros.h>
#include <sensor_msgs/Image.h>
#include <std_msgs/String.h>

#include "answers.hpp"
#include "clock.hpp"
#include "node.hpp"

namespace tsuji {

namespace {

constexpr std::chrono::milliseconds LOOK(20);
constexpr std::chrono::seconds PATIENCE(30);

// All that is said is kept until it is taken.
constexpr uint32_t KEEP_ALL = 0;
constexpr uint32_t PICTURES_QUEUE = 10;

// 640 × 480 in three colours.
constexpr uint32_t WIDTH = 640;
constexpr uint32_t HEIGHT = 480;

// Waits until there are others.
template <typename Others>
std::string meet(const Others &others)
{
  const auto give_up = std::chrono::steady_clock::now() + PATIENCE;
  while (others() == 0)
  {
    if (give_up < std::chrono::steady_clock::now())
      throw std::runtime_error("nobody is at the other end of the topic");
    std::this_thread::sleep_for(LOOK);
  }
  return "{\"met\":true}";
}

// A node that gets what clients publish.
class Listener {
 public:
  Listener(ros::NodeHandle &node, const std::string &topic)
      : subscriber_(node.subscribe(topic, KEEP_ALL, &Listener::note, this, ros::TransportHints().tcpNoDelay()))
  {
  }

  uint32_t publishers() const { return subscriber_.getNumPublishers(); }

  // Waits until so many have come, or nothing comes any more. The answer is what came, and when the last did.
  std::string hear(uint64_t count, uint64_t silent_ms)
  {
    size_t before = 0;
    auto since = std::chrono::steady_clock::now();
    const auto silent = std::chrono::milliseconds(silent_ms);
    for (size_t came = heard(); came < count && std::chrono::steady_clock::now() - since < silent; came = heard())
    {
      if (before < came)
        since = std::chrono::steady_clock::now();
      before = came;
      std::this_thread::sleep_for(LOOK);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string answer = "{\"texts\":[";
    for (const std::string &text : texts_)
      answer += (&text == &texts_.front() ? "" : ",") + quoted(text);
    answer += "],\"last\":" + std::to_string(last_ns_) + "}";
    texts_.clear();
    return answer;
  }

 private:
  void note(const std_msgs::String &message)
  {
    const uint64_t now_ns = monotonic_ns();
    const std::lock_guard<std::mutex> lock(mutex_);
    texts_.push_back(message.data);
    last_ns_ = now_ns;
  }

  size_t heard()
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    return texts_.size();
  }

  std::mutex mutex_;
  std::vector<std::string> texts_;
  uint64_t last_ns_ = 0;
  ros::Subscriber subscriber_;
  const Spinning spinning_;
};

void listen(ros::NodeHandle &node, const std::string &topic)
{
  Listener listener(node, topic);
  answer("{\"open\":true}");
  answer_each([&](const std::vector<std::string> &words) -> std::string {
    if (words.size() == 1 && words[0] == "meet")
      return meet([&] { return listener.publishers(); });
    if (words.size() == 3 && words[0] == "hear")
      return listener.hear(std::stoull(words[1]), std::stoull(words[2]));
    not_understood(words);
  });
}

// The text of that number, as the laboratory itself says it to a client by WebSocket.
std::string text(uint64_t number)
{
  return "hello, " + std::to_string(number) + " " + std::to_string(1'600'000'000 + number / 10'000) + "." +
         std::to_string(1'000'000 + number % 10'000);
}

// As fast as they are taken.
std::string say(const ros::Publisher &publisher, uint64_t count)
{
  const uint64_t began_ns = monotonic_ns();
  std_msgs::String message;
  for (uint64_t number = 0; number < count; ++number)
  {
    message.data = text(number);
    publisher.publish(message);
  }
  return "{\"began\":" + std::to_string(began_ns) + ",\"sent\":" + std::to_string(monotonic_ns()) + "}";
}

// Noise, as it is the same work for every encoding.
sensor_msgs::Image picture()
{
  sensor_msgs::Image image;
  image.height = HEIGHT;
  image.width = WIDTH;
  image.encoding = "bgr8";
  image.step = WIDTH * 3;
  image.data.resize(size_t{HEIGHT} * WIDTH * 3);
  uint32_t state = 1;
  for (uint8_t &byte : image.data)
  {
    state = state * 1'664'525 + 1'013'904'223;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return image;
}

// Each when it is due, whenever the one before was. The answer is when each was published.
std::string film(const ros::Publisher &publisher, uint64_t count, uint64_t period_us)
{
  sensor_msgs::Image image = picture();
  std::string published;
  const uint64_t begin_ns = monotonic_ns() + period_us * 1000;
  for (uint64_t number = 0; number < count; ++number)
  {
    char mark[32];
    std::snprintf(mark, sizeof mark, "#%09llu#", static_cast<unsigned long long>(number));
    image.header.frame_id = mark;
    sleep_until_ns(begin_ns + number * period_us * 1000);
    published += (published.empty() ? "" : ",") + std::to_string(monotonic_ns());
    publisher.publish(image);
  }
  return "{\"published\":[" + published + "]}";
}

void speak(ros::NodeHandle &node, const std::string &topic, bool has_pictures)
{
  const ros::Publisher publisher = has_pictures ? node.advertise<sensor_msgs::Image>(topic, PICTURES_QUEUE)
                                                : node.advertise<std_msgs::String>(topic, KEEP_ALL);
  answer("{\"open\":true}");
  answer_each([&](const std::vector<std::string> &words) -> std::string {
    if (words.size() == 1 && words[0] == "meet")
      return meet([&] { return publisher.getNumSubscribers(); });
    if (words.size() == 2 && words[0] == "say" && !has_pictures)
      return say(publisher, std::stoull(words[1]));
    if (words.size() == 3 && words[0] == "film" && has_pictures)
      return film(publisher, std::stoull(words[1]), std::stoull(words[2]));
    not_understood(words);
  });
  end_node();
}

}  // namespace

void play_beside_bridge(const Fields &fields)
{
  const std::string role = fields.text("role"), topic = fields.text("topic");
  begin_node("tsuji_lab_" + role);
  ros::NodeHandle node;
  if (role == "listener")
    listen(node, topic);
  else if (role == "speaker")
    speak(node, topic, fields.flag("pictures"));
  else
    throw std::runtime_error("no part `" + role + "`");
}

}  // namespace tsuji

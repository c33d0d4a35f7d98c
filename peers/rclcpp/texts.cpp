#include "texts.hpp"

#include <std_msgs/msg/string.hpp>

#include "jitter.hpp"
#include "session.hpp"

namespace tsuji {

namespace {

using Text = std_msgs::msg::String;

void speak(const std::shared_ptr<rclcpp::Node> &node, const rclcpp::QoS &qos, const JitterSpec &spec)
{
  const auto publisher = node->create_publisher<Text>(spec.topic, qos);
  const Spinning spinning({node});
  speak_as_told<Text>(spec, [&](const Text &message) { publisher->publish(message); });
}

void listen(const std::shared_ptr<rclcpp::Node> &node, const rclcpp::QoS &qos, const JitterSpec &spec)
{
  Heard heard;
  const auto subscription =
      node->create_subscription<Text>(spec.topic, qos, [&](const Text &message) { heard.note(message.data); });
  const Spinning spinning({node});
  listen_as_told(heard, middleware());
}

}  // namespace

void play_texts(const Fields &fields)
{
  const JitterSpec spec(fields);
  const Session session;
  const auto node = std::make_shared<rclcpp::Node>(spec.topic + "_" + spec.role);
  const rclcpp::QoS qos = rclcpp::QoS(rclcpp::KeepLast(spec.depth)).reliable();
  if (spec.role == "speaker")
    speak(node, qos, spec);
  else
    listen(node, qos, spec);
}

}  // namespace tsuji

#include "texts.hpp"

#include <ros/ros.h>
#include <std_msgs/String.h>

#include "jitter.hpp"
#include "node.hpp"

namespace tsuji {

namespace {

void speak(ros::NodeHandle &node, const JitterSpec &spec)
{
  ros::Publisher publisher = node.advertise<std_msgs::String>(spec.topic, spec.depth);
  speak_as_told<std_msgs::String>(spec, [&](const std_msgs::String &message) { publisher.publish(message); });
  end_node();
}

// The end that listens.
class Listening {
 public:
  Listening(ros::NodeHandle &node, const JitterSpec &spec, const ros::TransportHints &hints)
      : subscriber_(node.subscribe(spec.topic, spec.depth, &Listening::note, this, hints))
  {
  }

  const Heard &heard() const { return heard_; }

 private:
  void note(const std_msgs::String &message) { heard_.note(message.data); }

  Heard heard_;
  ros::Subscriber subscriber_;
  const Spinning spinning_;
};

void listen(ros::NodeHandle &node, const JitterSpec &spec, bool has_no_delay)
{
  const ros::TransportHints hints = has_no_delay ? ros::TransportHints().tcpNoDelay() : ros::TransportHints();
  const Listening listening(node, spec, hints);
  listen_as_told(listening.heard(), has_no_delay ? "ros1:roscpp_nodelay" : "ros1:roscpp");
}

}  // namespace

void play_texts(const Fields &fields, bool has_no_delay)
{
  const JitterSpec spec(fields);
  begin_node(spec.topic + "_" + spec.role);
  ros::NodeHandle node;
  if (spec.role == "speaker")
    speak(node, spec);
  else
    listen(node, spec, has_no_delay);
}

}  // namespace tsuji

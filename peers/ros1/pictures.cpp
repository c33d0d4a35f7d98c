#include "pictures.hpp"

#include <array>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <boost/make_shared.hpp>
#include <nodelet/loader.h>
#include <nodelet/nodelet.h>
#include <ros/ros.h>
#include <sensor_msgs/Image.h>

#include "node.hpp"
#include "latency.hpp"

namespace tsuji {

namespace {

constexpr uint32_t QUEUE = 10;

// How a message is handed over, and between what.
struct Way {
  explicit Way(const LatencySpec &spec)
      : name(spec.name),
        size(spec.size),
        is_nodelet(spec.transport == "nodelet" || spec.transport == "nodelet-pointer"),
        is_by_pointer(spec.transport == "roscpp-pointer" || spec.transport == "nodelet-pointer")
  {
    if (!is_nodelet && !is_by_pointer && spec.transport != "roscpp")
      throw std::runtime_error("no transport " + spec.transport);
  }

  std::string name;
  size_t size;
  bool is_nodelet;
  bool is_by_pointer;
};

// The end that receives. The callback by value gets a copy of its own, as the article's does.
class Watcher {
 public:
  explicit Watcher(Arrivals &arrivals) : arrivals_(arrivals) {}

  void subscribe(ros::NodeHandle &node, const Way &way)
  {
    const ros::TransportHints hints = ros::TransportHints().tcpNoDelay();
    subscriber_ = way.is_by_pointer ? node.subscribe(way.name, QUEUE, &Watcher::pointer_arrived, this, hints)
                                    : node.subscribe(way.name, QUEUE, &Watcher::value_arrived, this, hints);
  }

 private:
  void pointer_arrived(const sensor_msgs::ImageConstPtr &picture)
  {
    arrivals_.arrived(picture->data.data(), picture->data.size());
  }
  void value_arrived(sensor_msgs::Image picture) { arrivals_.arrived(picture.data.data(), picture.data.size()); }

  Arrivals &arrivals_;
  ros::Subscriber subscriber_;
};

// The end that sends.
class Camera : public Sender {
 public:
  explicit Camera(Way way) : way_(std::move(way))
  {
    for (sensor_msgs::ImagePtr &picture : buffers_)
      picture = blank();
  }

  void advertise(ros::NodeHandle &node) { publisher_ = node.advertise<sensor_msgs::Image>(way_.name, QUEUE); }

  // What was published by pointer belongs to its readers, so that one is new; the last one is let go here, outside the time measured.
  void prepare() override
  {
    if (way_.is_by_pointer)
      place_ = blank();
    else
      place_ = buffers_[turn_++ % buffers_.size()];
  }

  uint8_t *canvas() override { return place_->data.data(); }

  void publish() override
  {
    if (way_.is_by_pointer)
      publisher_.publish(place_);
    else
      publisher_.publish(*place_);
  }

 private:
  sensor_msgs::ImagePtr blank() const
  {
    auto picture = boost::make_shared<sensor_msgs::Image>();
    make_blank(*picture, way_.size);
    return picture;
  }

  const Way way_;
  ros::Publisher publisher_;
  std::array<sensor_msgs::ImagePtr, 4> buffers_;
  size_t turn_ = 0;
  sensor_msgs::ImagePtr place_;
};

// In a process of its own.
class LoneCamera : public Camera {
 public:
  explicit LoneCamera(const Way &way) : Camera(way) { advertise(node_); }
  ~LoneCamera() override { end_node(); }

 private:
  ros::NodeHandle node_;
};

// In a process of its own, with a thread that spins.
class LoneWatcher : public End {
 public:
  LoneWatcher(const Way &way, Arrivals &arrivals) : watcher_(arrivals) { watcher_.subscribe(node_, way); }

 private:
  ros::NodeHandle node_;
  Watcher watcher_;
  const Spinning spinning_;
};

// Both ends of one node, and a thread that spins.
class Node : public Camera {
 public:
  Node(const Way &way, Arrivals &arrivals) : Camera(way), watcher_(arrivals)
  {
    watcher_.subscribe(node_, way);
    advertise(node_);
  }

 private:
  ros::NodeHandle node_;
  Watcher watcher_;
  const Spinning spinning_;
};

// Does what it was made with in a handle of its own.
class Part : public nodelet::Nodelet {
 public:
  explicit Part(std::function<void(ros::NodeHandle &)> begin) : begin_(std::move(begin)) {}

 private:
  void onInit() override { begin_(getNodeHandle()); }

  const std::function<void(ros::NodeHandle &)> begin_;
};

// Two nodelets under one manager, whose threads call back. They are classes of this program, so no plug-in has to be found.
class Nodelets : public Camera {
 public:
  Nodelets(const Way &way, Arrivals &arrivals)
      : Camera(way), watcher_(arrivals), manager_([&](const std::string &type) {
          return boost::make_shared<Part>([&, type](ros::NodeHandle &node) {
            if (type == "camera")
              advertise(node);
            else
              watcher_.subscribe(node, way);
          });
        })
  {
    for (const char *type : {"camera", "watcher"})
      if (!manager_.load("/" + way.name + "_" + type, type, nodelet::M_string(), nodelet::V_string()))
        throw std::runtime_error(std::string("the manager does not load the nodelet ") + type);
  }
  ~Nodelets() override
  {
    end_node();
    manager_.clear();
  }

 private:
  Watcher watcher_;
  nodelet::Loader manager_;
};

class Roscpp : public Transport {
 public:
  explicit Roscpp(const LatencySpec &spec) : name_("ros1:" + spec.transport), way_(spec) {}

  std::string name() const override { return name_; }
  std::unique_ptr<Sender> sender() override { return std::make_unique<LoneCamera>(way_); }
  std::unique_ptr<End> receiver(Arrivals &arrivals) override { return std::make_unique<LoneWatcher>(way_, arrivals); }
  std::unique_ptr<Sender> both(Arrivals &arrivals) override
  {
    if (way_.is_nodelet)
      return std::make_unique<Nodelets>(way_, arrivals);
    return std::make_unique<Node>(way_, arrivals);
  }

 private:
  const std::string name_;
  const Way way_;
};

}  // namespace

void play_pictures(const Fields &fields)
{
  const LatencySpec spec(fields);
  Roscpp roscpp(spec);
  begin_node(spec.name + "_" + spec.role);
  run_latency(spec, roscpp);
}

}  // namespace tsuji

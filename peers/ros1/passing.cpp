#include "passing.hpp"

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <boost/make_shared.hpp>
#include <nodelet/loader.h>
#include <nodelet/nodelet.h>
#include <ros/ros.h>
#include <sensor_msgs/Image.h>

#include "answers.hpp"
#include "clock.hpp"
#include "node.hpp"
#include "pacing.hpp"
#include "picture.hpp"

namespace tsuji {

namespace {

constexpr uint32_t QUEUE = 10;

// Until both ends know each other a greeting gets lost.
constexpr int GREETINGS_MAX = 50;
constexpr int GREETING_PATIENCE_MS = 200;

// After so long without an acknowledgement a picture is lost, and after so many in a row the block is given up.
constexpr int SILENCE_MS = 2000;
constexpr int SILENT_MAX = 3;

// What a child plays, of all that the laboratory says.
struct Spec {
  explicit Spec(const boost::property_tree::ptree &tree)
      : carrier(tree.get<std::string>("carrier")),
        role(tree.get<std::string>("role")),
        folder(tree.get<std::string>("folder")),
        name(tree.get<std::string>("name")),
        pause_us(tree.get<uint64_t>("pause_us"))
  {
    if (carrier != "roscpp" && carrier != "roscpp-pointer" && carrier != "nodelet" && carrier != "nodelet-pointer")
      throw std::runtime_error("no carrier " + carrier);
    const auto size = tree.get<size_t>("size");
    if (size != PICTURE_BYTES)
      throw std::runtime_error("size " + std::to_string(size) + "; allowed: " + std::to_string(PICTURE_BYTES));
  }

  bool is_by_pointer() const { return carrier == "roscpp-pointer" || carrier == "nodelet-pointer"; }
  bool is_nodelet() const { return carrier == "nodelet" || carrier == "nodelet-pointer"; }

  std::string carrier;
  std::string role;
  std::string folder;
  std::string name;
  uint64_t pause_us;
};

// What has arrived.
class Arrivals {
 public:
  Arrivals(Descriptor socket, Meter &meter) : socket_(std::move(socket)), meter_(meter) {}

  // The callbacks. The one by value gets a copy of its own, as the article's does.
  void pointer_arrived(const sensor_msgs::ImageConstPtr &picture) { arrived(*picture); }
  void value_arrived(sensor_msgs::Image picture) { arrived(picture); }

  // What arrived since the last call, the fields of an answer.
  std::string report()
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::string fields = "\"arrived\":" + table(arrived_) + ",\"damaged\":" + std::to_string(damaged_);
    arrived_.clear();
    damaged_ = 0;
    return fields;
  }

 private:
  void arrived(const sensor_msgs::Image &picture)
  {
    const uint64_t at_ns = monotonic_ns();
    const Excluded excluded(meter_);
    const std::optional<uint64_t> number = pictures_.check(picture.data);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!number)
        ++damaged_;
      else if (*number != GREETING)
        arrived_.push_back({*number, at_ns});
    }
    if (number)
      acknowledge(socket_, *number);
  }

  const Pictures pictures_;
  const Descriptor socket_;
  Meter &meter_;
  std::mutex mutex_;
  // Number and time of each right picture.
  std::vector<std::array<uint64_t, 2>> arrived_;
  uint64_t damaged_ = 0;
};

ros::Subscriber subscribe(ros::NodeHandle &node, const Spec &spec, Arrivals &arrivals)
{
  const ros::TransportHints hints = ros::TransportHints().tcpNoDelay();
  return spec.is_by_pointer() ? node.subscribe(spec.name, QUEUE, &Arrivals::pointer_arrived, &arrivals, hints)
                              : node.subscribe(spec.name, QUEUE, &Arrivals::value_arrived, &arrivals, hints);
}

ros::Publisher advertise(ros::NodeHandle &node, const Spec &spec)
{
  return node.advertise<sensor_msgs::Image>(spec.name, QUEUE);
}

// The two ends inside one process, from which pictures are sent by the publisher until the end.
class Ends {
 public:
  virtual ~Ends() = default;
  virtual ros::Publisher &publisher() = 0;
};

// One node, and a thread that spins.
class Node : public Ends {
 public:
  Node(const Spec &spec, Arrivals &arrivals)
      : subscriber_(subscribe(node_, spec, arrivals)), publisher_(advertise(node_, spec))
  {
  }

  ros::Publisher &publisher() override { return publisher_; }

 private:
  ros::NodeHandle node_;
  ros::Subscriber subscriber_;
  ros::Publisher publisher_;
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
class Nodelets : public Ends {
 public:
  Nodelets(const Spec &spec, Arrivals &arrivals)
      : manager_([&](const std::string &type) {
          return boost::make_shared<Part>([&, type](ros::NodeHandle &node) {
            if (type == "camera")
              publisher_ = advertise(node, spec);
            else
              subscriber_ = subscribe(node, spec, arrivals);
          });
        })
  {
    for (const char *type : {"camera", "watcher"})
      if (!manager_.load("/" + spec.name + "_" + type, type, nodelet::M_string(), nodelet::V_string()))
        throw std::runtime_error(std::string("the manager does not load the nodelet ") + type);
  }
  ~Nodelets() override
  {
    end_node();
    manager_.clear();
  }

  ros::Publisher &publisher() override { return publisher_; }

 private:
  ros::Publisher publisher_;
  ros::Subscriber subscriber_;
  nodelet::Loader manager_;
};

// What a process that sends keeps.
class Sending {
 public:
  Sending(ros::Publisher &publisher, bool is_by_pointer, Meter &meter)
      : publisher_(publisher), is_by_pointer_(is_by_pointer), meter_(meter)
  {
    for (sensor_msgs::ImagePtr &picture : buffers_)
      picture = blank();
  }

  void join(Pacer pacer) { pacer_.emplace(std::move(pacer)); }
  bool is_joined() const { return pacer_.has_value(); }

  void greet()
  {
    for (int greeting = 0; greeting < GREETINGS_MAX; ++greeting)
    {
      prepare();
      draw(GREETING);
      publish();
      if (pacer_->is_acknowledged(GREETING, GREETING_PATIENCE_MS))
        return;
    }
    throw std::runtime_error("nothing arrives");
  }

  // Sends pictures one by one. The answer has of each its number, the begin of the drawing, begin and end of the sending.
  std::string block(uint64_t count)
  {
    std::vector<std::array<uint64_t, 4>> sent;
    sent.reserve(count);
    int silent = 0;
    const uint64_t used_ns = meter_.used_ns();
    for (uint64_t at = 0; at < count && silent < SILENT_MAX; ++at)
    {
      const uint64_t number = next_++;
      std::optional<Excluded> excluded(meter_);
      pacer_->wait_until_asleep();
      const uint64_t begun_ns = monotonic_ns();
      excluded.reset();
      prepare();
      excluded.emplace(meter_);
      draw(number);
      excluded.reset();
      const uint64_t at_ns = monotonic_ns();
      publish();
      excluded.emplace(meter_);
      sent.push_back({number, begun_ns, at_ns, monotonic_ns()});
      silent = pacer_->is_acknowledged(number, SILENCE_MS) ? 0 : silent + 1;
    }
    const uint64_t cpu_ns = meter_.used_since_ns(used_ns);
    return "{\"sent\":" + table(sent) + ",\"cpu_ns\":" + std::to_string(cpu_ns) + "}";
  }

 private:
  static sensor_msgs::ImagePtr blank()
  {
    auto picture = boost::make_shared<sensor_msgs::Image>();
    picture->header.frame_id = "camera";
    picture->height = HEIGHT;
    picture->width = WIDTH;
    picture->encoding = "bgr8";
    picture->step = STEP;
    picture->data.resize(PICTURE_BYTES);
    return picture;
  }

  // Takes a place for the next picture. What was published by pointer belongs to its readers, so that one is new; the last one is let
  // go here, outside the time of passing.
  void prepare()
  {
    if (is_by_pointer_)
      place_ = blank();
    else
      place_ = buffers_[turn_++ % buffers_.size()];
  }

  void draw(uint64_t number) { pictures_.draw(number, place_->data.data()); }

  void publish()
  {
    if (is_by_pointer_)
      publisher_.publish(place_);
    else
      publisher_.publish(*place_);
  }

  ros::Publisher &publisher_;
  const bool is_by_pointer_;
  Meter &meter_;
  const Pictures pictures_;
  std::optional<Pacer> pacer_;
  std::array<sensor_msgs::ImagePtr, 4> buffers_;
  size_t turn_ = 0;
  sensor_msgs::ImagePtr place_;
  uint64_t next_ = 0;
};

// Obeys what both kinds of senders are told.
std::string obey(Sending &sending, const std::vector<std::string> &words)
{
  if (words == std::vector<std::string>{"greet"})
  {
    sending.greet();
    return "{\"greeted\":true}";
  }
  if (words == std::vector<std::string>{"transport"})
    return "{}";
  if (words.size() == 2 && words[0] == "block" && sending.is_joined())
    return sending.block(std::stoull(words[1]));
  not_understood(words);
}

void play_both(const Spec &spec)
{
  Meter meter;
  auto [near, far] = socket_pair();
  Arrivals arrivals(std::move(far), meter);
  std::unique_ptr<Ends> ends;
  if (spec.is_nodelet())
    ends = std::make_unique<Nodelets>(spec, arrivals);
  else
    ends = std::make_unique<Node>(spec, arrivals);
  Sending sending(ends->publisher(), spec.is_by_pointer(), meter);
  sending.join(Pacer(std::move(near), spec.pause_us));
  answer("{\"open\":true}");
  answer_each([&](const std::vector<std::string> &words) {
    return words == std::vector<std::string>{"report"} ? "{" + arrivals.report() + "}" : obey(sending, words);
  });
}

void play_sender(const Spec &spec)
{
  Meter meter;
  ros::NodeHandle node;
  ros::Publisher publisher = advertise(node, spec);
  Sending sending(publisher, spec.is_by_pointer(), meter);
  const Descriptor listener = listen_at(spec.folder, spec.name);
  answer("{\"open\":true}");
  answer_each([&](const std::vector<std::string> &words) {
    if (!sending.is_joined())
      sending.join(Pacer(accept_from(listener), spec.pause_us));
    return obey(sending, words);
  });
  end_node();
}

void play_receiver(const Spec &spec)
{
  Meter meter;
  Arrivals arrivals(connect_to(spec.folder, spec.name), meter);
  ros::NodeHandle node;
  const ros::Subscriber subscriber = subscribe(node, spec, arrivals);
  const Spinning spinning;
  answer("{\"open\":true}");
  uint64_t used_ns = meter.used_ns();
  answer_each([&](const std::vector<std::string> &words) {
    if (words != std::vector<std::string>{"report"})
      not_understood(words);
    const uint64_t cpu_ns = meter.used_since_ns(used_ns);
    const std::string report = "{" + arrivals.report() + ",\"cpu_ns\":" + std::to_string(cpu_ns) + "}";
    used_ns = meter.used_ns();
    return report;
  });
}

}  // namespace

void play_passing(const boost::property_tree::ptree &tree)
{
  const Spec spec(tree);
  begin_node(spec.name + "_" + spec.role);
  if (spec.role == "both")
    play_both(spec);
  else if (spec.role == "sender")
    play_sender(spec);
  else if (spec.role == "receiver")
    play_receiver(spec);
  else
    throw std::runtime_error("no role " + spec.role + "; allowed: both, sender, receiver");
}

}  // namespace tsuji

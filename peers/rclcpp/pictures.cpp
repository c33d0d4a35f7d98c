#include "pictures.hpp"

#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <rmw/rmw.h>
#include <sensor_msgs/msg/image.hpp>
#include <tsuji_lab_rclcpp/msg/picture2359296.hpp>
#include <tsuji_lab_rclcpp/msg/picture4096.hpp>
#include <tsuji_lab_rclcpp/msg/picture512.hpp>
#include <tsuji_lab_rclcpp/msg/picture524288.hpp>
#include <tsuji_lab_rclcpp/msg/picture64.hpp>
#include <tsuji_lab_rclcpp/msg/picture65536.hpp>
#include <tsuji_lab_rclcpp/msg/picture8388608.hpp>

#include "answers.hpp"
#include "latency.hpp"
#include "session.hpp"

namespace tsuji {

namespace {

using sensor_msgs::msg::Image;
namespace lent = tsuji_lab_rclcpp::msg;

rclcpp::QoS qos() { return rclcpp::QoS(rclcpp::KeepLast(10)).reliable(); }

// By value: one of four messages in rotation, published by reference.
class Values : public Sender {
 public:
  Values(rclcpp::Node &node, const LatencySpec &spec) : publisher_(node.create_publisher<Image>(spec.name, qos()))
  {
    for (Image &picture : buffers_)
      make_blank(picture, spec.size);
  }

  void prepare() override { place_ = &buffers_[turn_++ % buffers_.size()]; }
  uint8_t *canvas() override { return place_->data.data(); }
  void publish() override { publisher_->publish(*place_); }

 private:
  const std::shared_ptr<rclcpp::Publisher<Image>> publisher_;
  std::array<Image, 4> buffers_;
  size_t turn_ = 0;
  Image *place_ = nullptr;
};

// By `unique_ptr`: what was published belongs to its reader, so each is new.
class Pointers : public Sender {
 public:
  Pointers(rclcpp::Node &node, const LatencySpec &spec)
      : size_(spec.size), publisher_(node.create_publisher<Image>(spec.name, qos()))
  {
  }

  void prepare() override
  {
    place_ = std::make_unique<Image>();
    make_blank(*place_, size_);
  }
  uint8_t *canvas() override { return place_->data.data(); }
  void publish() override { publisher_->publish(std::move(place_)); }

 private:
  const size_t size_;
  const std::shared_ptr<rclcpp::Publisher<Image>> publisher_;
  std::unique_ptr<Image> place_;
};

// By messages that the middleware lends.
template <typename Picture>
class Loans : public Sender {
 public:
  Loans(rclcpp::Node &node, const LatencySpec &spec) : publisher_(node.create_publisher<Picture>(spec.name, qos()))
  {
    if (!publisher_->can_loan_messages())
      throw std::runtime_error(middleware() + " lends no such message");
  }

  void prepare() override { place_.emplace(publisher_->borrow_loaned_message()); }
  uint8_t *canvas() override { return place_->get().data.data(); }
  void publish() override { publisher_->publish(std::move(*place_)); }

 private:
  const std::shared_ptr<rclcpp::Publisher<Picture>> publisher_;
  std::optional<rclcpp::LoanedMessage<Picture>> place_;
};

// The end that receives messages of that type, by such a callback as goes without a copy.
template <typename Picture>
std::shared_ptr<rclcpp::SubscriptionBase> watch(rclcpp::Node &node, const std::string &topic, Arrivals &arrivals)
{
  return node.create_subscription<Picture>(topic, qos(), [&](const Picture &picture) {
    arrivals.arrived(picture.data.data(), picture.data.size());
  });
}

std::shared_ptr<rclcpp::SubscriptionBase> watch_pointers(rclcpp::Node &node, const std::string &topic, Arrivals &arrivals)
{
  return node.create_subscription<Image>(topic, qos(), [&](std::unique_ptr<Image> picture) {
    arrivals.arrived(picture->data.data(), picture->data.size());
  });
}

template <typename Message>
struct Type {
  using type = Message;
};

// What `call` makes of the message that has this size and can be lent.
template <typename Call>
auto with_lent(size_t size, const Call &call)
{
  switch (size)
  {
    case 64:
      return call(Type<lent::Picture64>());
    case 512:
      return call(Type<lent::Picture512>());
    case 4096:
      return call(Type<lent::Picture4096>());
    case 65536:
      return call(Type<lent::Picture65536>());
    case 524288:
      return call(Type<lent::Picture524288>());
    case 2359296:
      return call(Type<lent::Picture2359296>());
    case 8388608:
      return call(Type<lent::Picture8388608>());
    default:
      throw std::runtime_error("no message of " + std::to_string(size) + " bytes can be lent");
  }
}

enum class Handing { Value, Pointer, Loan };

Handing handing_of(const LatencySpec &spec)
{
  if (spec.transport == "rclcpp")
    return Handing::Value;
  if (spec.transport == "rclcpp-pointer")
    return Handing::Pointer;
  if (spec.transport == "rclcpp-loan")
    return Handing::Loan;
  throw std::runtime_error("no transport " + spec.transport);
}

// Ends of a flow on nodes of this process, with a thread that spins.
class Nodes : public Sender {
 public:
  // Of the two roles those that `spec` asks for; without arrivals there is none to watch.
  Nodes(const LatencySpec &spec, Arrivals *arrivals)
  {
    const Handing handing = handing_of(spec);
    const auto options = rclcpp::NodeOptions().use_intra_process_comms(handing == Handing::Pointer);
    const auto node = [&](const std::string &role) {
      nodes_.push_back(std::make_shared<rclcpp::Node>(spec.name + "_" + role, options));
      return nodes_.back();
    };
    const auto first = node(spec.role);
    if (arrivals != nullptr)
      subscription_ = watch_by(handing, *first, spec, *arrivals);
    if (spec.role != "receiver")
      sender_ = sender_by(handing, spec.role == "both" && !spec.is_one_node ? *node("camera") : *first, spec);
    spinning_.emplace(nodes_);
  }

  void prepare() override { sender_->prepare(); }
  uint8_t *canvas() override { return sender_->canvas(); }
  void publish() override { sender_->publish(); }

 private:
  static std::shared_ptr<rclcpp::SubscriptionBase> watch_by(Handing handing, rclcpp::Node &node, const LatencySpec &spec,
                                                            Arrivals &arrivals)
  {
    if (handing == Handing::Value)
      return watch<Image>(node, spec.name, arrivals);
    if (handing == Handing::Pointer)
      return watch_pointers(node, spec.name, arrivals);
    return with_lent(spec.size, [&](auto type) { return watch<typename decltype(type)::type>(node, spec.name, arrivals); });
  }

  static std::unique_ptr<Sender> sender_by(Handing handing, rclcpp::Node &node, const LatencySpec &spec)
  {
    if (handing == Handing::Value)
      return std::make_unique<Values>(node, spec);
    if (handing == Handing::Pointer)
      return std::make_unique<Pointers>(node, spec);
    return with_lent(spec.size, [&](auto type) -> std::unique_ptr<Sender> {
      return std::make_unique<Loans<typename decltype(type)::type>>(node, spec);
    });
  }

  std::vector<std::shared_ptr<rclcpp::Node>> nodes_;
  std::shared_ptr<rclcpp::SubscriptionBase> subscription_;
  std::unique_ptr<Sender> sender_;
  std::optional<Spinning> spinning_;
};

class Rclcpp : public Transport {
 public:
  explicit Rclcpp(const LatencySpec &spec) : spec_(spec) {}

  std::string name() const override
  {
    static constexpr std::array<const char *, 3> ENDINGS{"", "-pointer", "-loan"};
    return middleware() + ENDINGS[static_cast<size_t>(handing_of(spec_))];
  }
  std::unique_ptr<Sender> sender() override { return std::make_unique<Nodes>(spec_, nullptr); }
  std::unique_ptr<End> receiver(Arrivals &arrivals) override { return std::make_unique<Nodes>(spec_, &arrivals); }
  std::unique_ptr<Sender> both(Arrivals &arrivals) override { return std::make_unique<Nodes>(spec_, &arrivals); }

 private:
  const LatencySpec &spec_;
};

}  // namespace

void play_pictures(const Fields &fields)
{
  const LatencySpec spec(fields);
  const Session session;
  Rclcpp rclcpp(spec);
  run_latency(spec, rclcpp);
}

void play_presence()
{
  const Session session;
  rclcpp::Node node("tsuji_lab_presence");
  const auto publisher = node.create_publisher<lent::Picture2359296>("tsuji_lab_presence", qos());
  const auto subscription =
      node.create_subscription<lent::Picture2359296>("tsuji_lab_presence", qos(), [](const lent::Picture2359296 &) {});
  const bool lends = publisher->can_loan_messages() && subscription->can_loan_messages();
  const std::string name = rmw_get_implementation_identifier();
  answer("{\"name\":" + quoted(name) + ",\"lends\":" + (lends ? "true" : "false") + "}");
  answer_each([](const std::vector<std::string> &words) -> std::string { not_understood(words); });
}

}  // namespace tsuji

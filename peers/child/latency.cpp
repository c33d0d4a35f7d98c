#include "latency.hpp"

#include <optional>
#include <stdexcept>
#include <utility>

#include "answers.hpp"

namespace tsuji {

namespace {

// Until both ends know each other a handshake gets lost.
constexpr int HANDSHAKES_MAX = 50;
constexpr int HANDSHAKE_PATIENCE_MS = 200;

// After so long without an acknowledgement a picture is lost, and after so many in a row the block is given up.
constexpr int SILENCE_MS = 2000;
constexpr int SILENT_MAX = 3;

// What a process that sends keeps.
class Sending {
 public:
  Sending(Transport &transport, std::unique_ptr<Sender> sender, size_t size, Meter &meter)
      : transport_(transport), sender_(std::move(sender)), pictures_(size), meter_(meter)
  {
  }

  void join(Pacer pacer) { pacer_.emplace(std::move(pacer)); }
  bool is_joined() const { return pacer_.has_value(); }

  // Obeys what both kinds of senders are told.
  std::string obey(const std::vector<std::string> &words)
  {
    if (words == std::vector<std::string>{"greet"})
    {
      greet();
      return "{\"greeted\":true}";
    }
    if (words == std::vector<std::string>{"transport"})
      return "{\"transport\":" + quoted(transport_.name()) + "}";
    if (words.size() == 2 && words[0] == "block" && is_joined())
      return block(std::stoull(words[1]));
    not_understood(words);
  }

 private:
  void greet()
  {
    for (int handshake = 0; handshake < HANDSHAKES_MAX; ++handshake)
    {
      sender_->prepare();
      pictures_.draw(HANDSHAKE, sender_->canvas());
      sender_->publish();
      if (pacer_->is_acknowledged(HANDSHAKE, HANDSHAKE_PATIENCE_MS))
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
      uint64_t begun_ns = 0;
      {
        const Excluded excluded(meter_);
        pacer_->wait_until_asleep();
        begun_ns = monotonic_ns();
      }
      sender_->prepare();
      {
        const Excluded excluded(meter_);
        pictures_.draw(number, sender_->canvas());
      }
      const uint64_t at_ns = monotonic_ns();
      sender_->publish();
      const Excluded excluded(meter_);
      sent.push_back({number, begun_ns, at_ns, monotonic_ns()});
      silent = pacer_->is_acknowledged(number, SILENCE_MS) ? 0 : silent + 1;
    }
    const uint64_t cpu_ns = meter_.used_since_ns(used_ns);
    return "{\"sent\":" + table(sent) + ",\"cpu_ns\":" + std::to_string(cpu_ns) + "}";
  }

  Transport &transport_;
  const std::unique_ptr<Sender> sender_;
  const Pictures pictures_;
  Meter &meter_;
  std::optional<Pacer> pacer_;
  uint64_t next_ = 0;
};

void run_both(const LatencySpec &spec, Transport &transport)
{
  Meter meter;
  auto [near, far] = socket_pair();
  Arrivals arrivals(spec.size, std::move(far), meter);
  Sending sending(transport, transport.both(arrivals), spec.size, meter);
  sending.join(Pacer(std::move(near), spec.pause_us));
  answer("{\"open\":true}");
  answer_each([&](const std::vector<std::string> &words) {
    return words == std::vector<std::string>{"report"} ? "{" + arrivals.report() + "}" : sending.obey(words);
  });
}

void run_sender(const LatencySpec &spec, Transport &transport)
{
  Meter meter;
  Sending sending(transport, transport.sender(), spec.size, meter);
  const Descriptor listener = listen_at(spec.folder, spec.name);
  answer("{\"open\":true}");
  answer_each([&](const std::vector<std::string> &words) {
    if (!sending.is_joined())
      sending.join(Pacer(accept_from(listener), spec.pause_us));
    return sending.obey(words);
  });
}

void run_receiver(const LatencySpec &spec, Transport &transport)
{
  Meter meter;
  Arrivals arrivals(spec.size, connect_to(spec.folder, spec.name), meter);
  const std::unique_ptr<End> end = transport.receiver(arrivals);
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

LatencySpec::LatencySpec(const Fields &fields)
    : transport(fields.text("transport")),
      role(fields.text("role")),
      folder(fields.text("folder")),
      name(fields.text("name")),
      size(fields.number("size")),
      pause_us(fields.number("pause_us")),
      is_one_node(fields.flag("one_node"))
{
}

void Arrivals::arrived(const uint8_t *picture, size_t size)
{
  const uint64_t at_ns = monotonic_ns();
  const Excluded excluded(meter_);
  const std::optional<uint64_t> number = pictures_.check(picture, size);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!number)
      ++damaged_;
    else if (*number != HANDSHAKE)
      arrived_.push_back({*number, at_ns});
  }
  if (number)
    acknowledge(socket_, *number);
}

std::string Arrivals::report()
{
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string fields = "\"arrived\":" + table(arrived_) + ",\"damaged\":" + std::to_string(damaged_);
  arrived_.clear();
  damaged_ = 0;
  return fields;
}

void run_latency(const LatencySpec &spec, Transport &transport)
{
  if (spec.role == "both")
    run_both(spec, transport);
  else if (spec.role == "sender")
    run_sender(spec, transport);
  else if (spec.role == "receiver")
    run_receiver(spec, transport);
  else
    throw std::runtime_error("no role " + spec.role + "; allowed: both, sender, receiver");
}

}  // namespace tsuji

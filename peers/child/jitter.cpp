#include "jitter.hpp"

#include <stdexcept>

namespace tsuji {

namespace {

constexpr char TEXT[] = "Test msg";

// A flow in which nothing has come for so long has ended.
constexpr std::chrono::seconds SILENT(2);
constexpr std::chrono::milliseconds LOOK(10);

std::string text_of(size_t bytes)
{
  std::string text;
  while (text.size() < bytes)
    text += TEXT;
  text.resize(bytes);
  return text;
}

}  // namespace

JitterSpec::JitterSpec(const Fields &fields)
    : role(fields.text("role")),
      topic(fields.text("topic")),
      depth(static_cast<uint32_t>(fields.number("depth"))),
      text(text_of(fields.number("bytes")))
{
  if (role != "speaker" && role != "listener")
    throw std::runtime_error("no role " + role + "; allowed: speaker, listener");
}

std::string numbered(const std::string &text, uint64_t number) { return text + " " + std::to_string(number); }

void Heard::note(const std::string &text)
{
  const uint64_t at_ns = monotonic_ns();
  const uint64_t number = std::stoull(text.substr(text.rfind(' ') + 1));
  const std::lock_guard<std::mutex> lock(mutex_);
  received_.push_back({number, at_ns});
}

Pairs Heard::wait(uint64_t count) const
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

void listen_as_told(const Heard &heard, const std::string &transport)
{
  answer("{\"open\":true}");
  answer_each([&](const std::vector<std::string> &words) {
    if (words.size() != 2 || words[0] != "heard")
      not_understood(words);
    const std::string received = table(heard.wait(std::stoull(words[1])));
    return "{\"received\":" + received + ",\"displaced\":null,\"transport\":" + quoted(transport) + "}";
  });
}

}  // namespace tsuji

// Short texts at set times, and when each comes.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "answers.hpp"
#include "clock.hpp"
#include "fields.hpp"

namespace tsuji {

// What a process plays, of all that the laboratory says.
struct JitterSpec {
  explicit JitterSpec(const Fields &fields);

  // `speaker` or `listener`.
  std::string role;
  // Of which its node is named too.
  std::string topic;
  uint32_t depth;
  // What is said, without its number.
  std::string text;
};

using Pairs = std::vector<std::array<uint64_t, 2>>;

// A text of any ROS has no place for a number, so it stands behind the text.
std::string numbered(const std::string &text, uint64_t number);

// Publishes each when it is due, whenever the one before was. The answer is when each was due and was published.
template <typename Text, typename Publish>
Pairs publish_each(const std::string &text, uint64_t count, uint64_t period_us, const Publish &publish)
{
  Pairs published;
  published.reserve(count);
  const uint64_t begin_ns = monotonic_ns() + period_us * 1000;
  for (uint64_t number = 0; number < count; ++number)
  {
    const uint64_t due_ns = begin_ns + number * period_us * 1000;
    Text message;
    message.data = numbered(text, number);
    sleep_until_ns(due_ns);
    const uint64_t at_ns = monotonic_ns();
    publish(message);
    published.push_back({due_ns, at_ns});
  }
  return published;
}

// Obeys `speak COUNT PERIOD_US` until the input ends.
template <typename Text, typename Publish>
void speak_as_told(const JitterSpec &spec, const Publish &publish)
{
  answer("{\"open\":true}");
  answer_each([&](const std::vector<std::string> &words) {
    if (words.size() != 3 || words[0] != "speak")
      not_understood(words);
    const Pairs published = publish_each<Text>(spec.text, std::stoull(words[1]), std::stoull(words[2]), publish);
    return "{\"published\":" + table(published) + "}";
  });
}

// What was heard.
class Heard {
 public:
  // A callback calls this first of all.
  void note(const std::string &text);

  // Waits until the last of `count` has come, or nothing does any more.
  Pairs wait(uint64_t count) const;

 private:
  mutable std::mutex mutex_;
  // The number of each that came, from 0, and when.
  Pairs received_;
};

// Obeys `heard COUNT` until the input ends. `transport` is what it came by.
void listen_as_told(const Heard &heard, const std::string &transport);

}  // namespace tsuji

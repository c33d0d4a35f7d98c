#include "picture.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace tsuji {

namespace {

constexpr size_t NUMBER_BYTES = sizeof(uint64_t);

uint64_t word_at(const uint8_t *bytes)
{
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Over all but the number. The place of a byte counts, so exchanged lines do not go unseen. Four sums, for the processor to
// add them side by side.
uint64_t checksum(const uint8_t *picture, size_t size)
{
  const auto add = [](uint64_t sum, uint64_t word) {
    const uint64_t mixed = (sum ^ word) * 0x2545f4914f6cdd1d;
    return mixed << 29 | mixed >> 35;
  };
  std::array<uint64_t, 4> sums{1, 2, 3, 4};
  size_t at = NUMBER_BYTES;
  for (; at + 32 <= size; at += 32)
    for (size_t link = 0; link < sums.size(); ++link)
      sums[link] = add(sums[link], word_at(picture + at + 8 * link));
  uint64_t sum = 0;
  for (; at + 8 <= size; at += 8)
    sum = add(sum, word_at(picture + at));
  for (; at < size; ++at)
    sum = add(sum, picture[at]);
  for (const uint64_t link : sums)
    sum = add(sum, link);
  return sum;
}

}  // namespace

Pictures::Pictures(size_t size)
{
  if (size < NUMBER_BYTES)
    throw std::runtime_error("size " + std::to_string(size) + "; allowed: at least " + std::to_string(NUMBER_BYTES));
  uint64_t seed = 0;
  for (Prepared &it : prepared_)
  {
    uint64_t word = ++seed * 0x9e3779b97f4a7c15;
    it.bytes.resize(size);
    for (uint8_t &byte : it.bytes)
    {
      word ^= word << 13;
      word ^= word >> 7;
      word ^= word << 17;
      byte = static_cast<uint8_t>(word >> 32);
    }
    it.sum = checksum(it.bytes.data(), size);
  }
}

void Pictures::draw(uint64_t number, uint8_t *canvas) const
{
  std::copy(of(number).bytes.begin(), of(number).bytes.end(), canvas);
  std::memcpy(canvas, &number, sizeof number);
}

std::optional<uint64_t> Pictures::check(const uint8_t *seen, size_t size) const
{
  if (size != prepared_[0].bytes.size())
    return std::nullopt;
  const uint64_t number = word_at(seen);
  return checksum(seen, size) == of(number).sum ? std::optional(number) : std::nullopt;
}

}  // namespace tsuji

// What is sent: pictures that the receiver can tell from each other and from damaged ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tsuji {

// Those of the article: bgr8.
constexpr uint32_t WIDTH = 1024;
constexpr uint32_t HEIGHT = 768;
constexpr uint32_t STEP = WIDTH * 3;
constexpr size_t PICTURE_BYTES = size_t{STEP} * HEIGHT;

// The number of a picture that only finds out whether anybody is there.
constexpr uint64_t GREETING = UINT64_MAX;

// A picture is one of a few prepared ones, with its number in its first bytes.
class Pictures {
 public:
  Pictures();

  // Draws the picture of that number into PICTURE_BYTES.
  void draw(uint64_t number, uint8_t *canvas) const;

  // The number of a picture, if the rest of it is as it was drawn.
  std::optional<uint64_t> check(const std::vector<uint8_t> &seen) const;

 private:
  struct Prepared {
    std::vector<uint8_t> bytes;
    uint64_t sum;
  };
  const Prepared &of(uint64_t number) const { return prepared_[number % prepared_.size()]; }

  std::array<Prepared, 4> prepared_;
};

}  // namespace tsuji

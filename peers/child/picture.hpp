// What is sent: pictures that the receiver can tell from each other and from damaged ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tsuji {

// The number of a picture that only finds out whether anybody is there.
constexpr uint64_t HANDSHAKE = UINT64_MAX;

// Pictures of one size. A picture is one of a few prepared ones, with its number in its first bytes.
class Pictures {
 public:
  // Of at least eight bytes; less is refused.
  explicit Pictures(size_t size);

  // Draws the picture of that number into as many bytes.
  void draw(uint64_t number, uint8_t *canvas) const;

  // The number of a picture, if the rest of it is as it was drawn.
  std::optional<uint64_t> check(const uint8_t *seen, size_t size) const;

 private:
  struct Prepared {
    std::vector<uint8_t> bytes;
    uint64_t sum;
  };
  const Prepared &of(uint64_t number) const { return prepared_[number % prepared_.size()]; }

  std::array<Prepared, 4> prepared_;
};

// Makes an Image of any ROS a blank picture of so many bytes: that of the article, 1024 × 768 in three colours, or a row of grey points.
template <typename Image>
void make_blank(Image &picture, size_t size)
{
  const bool is_of_article = size == size_t{1024} * 768 * 3;
  picture.header.frame_id = "camera";
  picture.height = is_of_article ? 768 : 1;
  picture.width = is_of_article ? 1024 : static_cast<uint32_t>(size);
  picture.encoding = is_of_article ? "bgr8" : "mono8";
  picture.step = is_of_article ? 1024 * 3 : static_cast<uint32_t>(size);
  picture.data.resize(size);
}

}  // namespace tsuji

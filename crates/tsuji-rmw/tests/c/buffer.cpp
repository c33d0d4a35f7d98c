// What stands for a rosidl::Buffer<uint8_t> of Lyrical, and the functions that generated code has for a field of it: they
// throw where the memory is not the processor's, and so does it where there is no memory.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

namespace
{
struct Implementation
{
  bool is_elsewhere;
  std::vector<std::uint8_t> bytes;
};

// All that a message has in its memory.
struct Buffer
{
  std::unique_ptr<Implementation> implementation;

  std::vector<std::uint8_t> & here() const
  {
    if (implementation->is_elsewhere) {
      throw std::runtime_error("not in the processor's memory");
    }
    return implementation->bytes;
  }
};
}  // namespace

extern "C" {
void * make(bool is_elsewhere)
{
  return new Implementation{is_elsewhere, {}};
}

std::size_t size(const void * field) {return static_cast<const Buffer *>(field)->here().size();}

const void * get(const void * field, std::size_t index)
{
  return &static_cast<const Buffer *>(field)->here()[index];
}

void resize(void * field, std::size_t count)
{
  static_cast<Buffer *>(field)->here().resize(count);
}
}

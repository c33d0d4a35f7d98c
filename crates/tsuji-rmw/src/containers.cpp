// What only C++ can say of C++: its strings and vectors. Each function is for one exact type, and no exception leaves it.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace
{
// From so many bytes on a copy goes past the caches: what is this large is read next by another core, or much later, and
// would first fetch every line that it overwrites.
constexpr std::size_t LARGE = std::size_t{1} << 20;

#ifdef __SSE2__
// One line of 64 bytes.
void stream(unsigned char * to, const unsigned char * from) noexcept
{
  const auto * in = reinterpret_cast<const __m128i *>(from);
  auto * out = reinterpret_cast<__m128i *>(to);
  const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
  const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
  _mm_stream_si128(out, a);
  _mm_stream_si128(out + 1, b);
  _mm_stream_si128(out + 2, c);
  _mm_stream_si128(out + 3, d);
}
#endif

void copy(void * to, const void * from, std::size_t size) noexcept
{
#ifdef __SSE2__
  if (LARGE <= size) {
    constexpr std::size_t LINE = 64, PAGE = 4096, PAGES = 4, AHEAD = 4 * LINE;
    auto * out = static_cast<unsigned char *>(to);
    const auto * in = static_cast<const unsigned char *>(from);
    const std::size_t head = -reinterpret_cast<std::uintptr_t>(out) % LINE;
    std::memcpy(out, in, head);
    out += head, in += head, size -= head;
    // Several pages side by side keep more of the memory busy than one after the other.
    for (; PAGES * PAGE <= size; out += PAGES * PAGE, in += PAGES * PAGE, size -= PAGES * PAGE) {
      for (std::size_t line = 0; line < PAGE; line += LINE) {
        for (std::size_t page = 0; page < PAGES; ++page) {
          _mm_prefetch(reinterpret_cast<const char *>(in + page * PAGE + line + AHEAD), _MM_HINT_T0);
        }
        for (std::size_t page = 0; page < PAGES; ++page) {
          stream(out + page * PAGE + line, in + page * PAGE + line);
        }
      }
    }
    for (; LINE <= size; out += LINE, in += LINE, size -= LINE) {
      stream(out, in);
    }
    // Before anybody is told that it is there.
    _mm_sfence();
    to = out, from = in;
  }
#endif
  std::memcpy(to, from, size);
}

// Puts numbers into a vector in the place of what it has.
template<typename Number>
void assign(std::vector<Number> & numbers, const void * first, std::size_t count)
{
#if defined(__SSE2__) && defined(__GLIBCXX__) && !defined(_GLIBCXX_DEBUG)
  // The standard has no way to copy into a vector but through the caches, and none to make room without filling it.
  struct Open : std::vector<Number>
  {
    void end_at(Number * end) {this->_M_impl._M_finish = end;}
  };
  if (LARGE <= count * sizeof(Number)) {
    numbers.clear();
    numbers.reserve(count);
    copy(numbers.data(), first, count * sizeof(Number));
    static_cast<Open &>(numbers).end_at(numbers.data() + count);
    return;
  }
#endif
  if (reinterpret_cast<std::uintptr_t>(first) % alignof(Number) == 0) {
    const auto * start = static_cast<const Number *>(first);
    numbers.assign(start, start + count);
    return;
  }
  numbers.resize(count);
  if (count != 0) {
    std::memcpy(numbers.data(), first, count * sizeof(Number));
  }
}

// Whether `act` ran to its end; it throws for want of memory.
template<typename Act>
bool done(Act act) noexcept
{
  try {
    act();
    return true;
  } catch (...) {
    return false;
  }
}

// Calls `act` with a null pointer to the number type that a field type of introspection stands for.
template<typename Act>
void with_number(std::uint8_t type, Act act)
{
  switch (type) {
    case 1: return act(static_cast<float *>(nullptr));
    case 2: return act(static_cast<double *>(nullptr));
    case 4:
    case 7: return act(static_cast<unsigned char *>(nullptr));
    case 8: return act(static_cast<std::uint8_t *>(nullptr));
    case 9: return act(static_cast<std::int8_t *>(nullptr));
    case 10: return act(static_cast<std::uint16_t *>(nullptr));
    case 11: return act(static_cast<std::int16_t *>(nullptr));
    case 12: return act(static_cast<std::uint32_t *>(nullptr));
    case 13: return act(static_cast<std::int32_t *>(nullptr));
    case 14: return act(static_cast<std::uint64_t *>(nullptr));
    case 15: return act(static_cast<std::int64_t *>(nullptr));
  }
}

constexpr std::uint8_t BOOLEAN = 6;
}  // namespace

extern "C" {
extern const std::size_t tsuji_rmw_text_size = sizeof(std::string);
extern const std::size_t tsuji_rmw_wide_text_size = sizeof(std::u16string);

const char * tsuji_rmw_text(const std::string * text, std::size_t * size) noexcept
{
  *size = text->size();
  return text->data();
}

bool tsuji_rmw_set_text(std::string * text, const char * data, std::size_t size) noexcept
{
  return done([&] {text->assign(data, size);});
}

const char16_t * tsuji_rmw_wide_text(const std::u16string * text, std::size_t * size) noexcept
{
  *size = text->size();
  return text->data();
}

// Null for want of memory.
char16_t * tsuji_rmw_resize_wide_text(std::u16string * text, std::size_t size) noexcept
{
  return done([&] {text->resize(size);}) ? &(*text)[0] : nullptr;
}

// Null for a vector<bool>, which has no such place.
const void * tsuji_rmw_numbers(const void * vector, std::uint8_t type, std::size_t * count) noexcept
{
  if (type == BOOLEAN) {
    *count = static_cast<const std::vector<bool> *>(vector)->size();
    return nullptr;
  }
  const void * data = nullptr;
  *count = 0;
  with_number(type, [&](auto * number) {
    using Vector = std::vector<std::remove_pointer_t<decltype(number)>>;
    const auto & numbers = *static_cast<const Vector *>(vector);
    data = numbers.data();
    *count = numbers.size();
  });
  return data;
}

void tsuji_rmw_copy_bools(const std::vector<bool> * bools, std::uint8_t * out) noexcept
{
  for (const bool value : *bools) {
    *out++ = value ? 1 : 0;
  }
}

// Copies bytes that do not overlap.
void tsuji_rmw_copy(void * to, const void * from, std::size_t size) noexcept
{
  copy(to, from, size);
}

// From numbers that need not be aligned. What is aligned is copied once, and nothing is filled with zeros before.
bool tsuji_rmw_set_numbers(
  void * vector, std::uint8_t type, const void * first, std::size_t count) noexcept
{
  return done([&] {
    if (type == BOOLEAN) {
      const auto * bytes = static_cast<const std::uint8_t *>(first);
      static_cast<std::vector<bool> *>(vector)->assign(bytes, bytes + count);
      return;
    }
    with_number(type, [&](auto * number) {
      using Number = std::remove_pointer_t<decltype(number)>;
      auto & numbers = *static_cast<std::vector<Number> *>(vector);
      assign(numbers, first, count);
    });
  });
}

const std::string * tsuji_rmw_texts(
  const std::vector<std::string> * texts, std::size_t * count) noexcept
{
  *count = texts->size();
  return texts->data();
}

bool tsuji_rmw_resize_texts(std::vector<std::string> * texts, std::size_t count) noexcept
{
  return done([&] {texts->resize(count);});
}

const std::u16string * tsuji_rmw_wide_texts(
  const std::vector<std::u16string> * texts, std::size_t * count) noexcept
{
  *count = texts->size();
  return texts->data();
}

bool tsuji_rmw_resize_wide_texts(std::vector<std::u16string> * texts, std::size_t count) noexcept
{
  return done([&] {texts->resize(count);});
}

// Through the type support, which knows the messages' type.
bool tsuji_rmw_resize_messages(
  void (* resize)(void *, std::size_t), void * vector, std::size_t count) noexcept
{
  return done([&] {resize(vector, count);});
}

// Through the type support, which throws where the numbers are not in the processor's memory.
bool tsuji_rmw_buffer(
  std::size_t (* size)(const void *), const void * (*get)(const void *, std::size_t), const void * buffer,
  const void ** data, std::size_t * count) noexcept
{
  return done([&] {
    *count = size(buffer);
    // There is no first element to be asked for in an empty one.
    *data = *count == 0 ? nullptr : get(buffer, 0);
  });
}

// Ends the process for want of memory: it has nobody to tell.
void tsuji_rmw_init(void (* init)(void *, int), void * message) noexcept
{
  init(message, 0);
}
}

// What the tests say of C++ strings and vectors beside the type supports. Written apart from the crate's own containers.cpp,
// because it bears witness against it.
#include <cstddef>
#include <string>
#include <vector>

extern "C" {
void test_string_assign(std::string * text, const char * data, std::size_t size) {text->assign(data, size);}

const char * test_string_data(const std::string * text, std::size_t * size)
{
  *size = text->size();
  return text->data();
}

void test_u16string_assign(std::u16string * text, const char16_t * data, std::size_t size) {text->assign(data, size);}

const char16_t * test_u16string_data(const std::u16string * text, std::size_t * size)
{
  *size = text->size();
  return text->data();
}
}

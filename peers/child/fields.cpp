#include "fields.hpp"

#include <cctype>
#include <stdexcept>

namespace tsuji {

namespace {

// Reads from the begin of a text to its end.
class Reader {
 public:
  explicit Reader(const std::string &text) : text_(text) {}

  // Passes over white space, and then over `sign` if it is there.
  bool takes(char sign)
  {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])))
      ++at_;
    if (at_ == text_.size() || text_[at_] != sign)
      return false;
    ++at_;
    return true;
  }

  void expect(char sign)
  {
    if (!takes(sign))
      fail(std::string("`") + sign + "`");
  }

  // What stands up to the next quotation mark, of which one was taken.
  std::string quoted()
  {
    std::string text;
    for (char sign = next(); sign != '"'; sign = next())
      text += sign == '\\' ? escaped() : sign;
    return text;
  }

  std::string word()
  {
    std::string word;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.' || text_[at_] == '-'))
      word += text_[at_++];
    if (word.empty())
      fail("a text, a number, true or false");
    return word;
  }

  void end()
  {
    takes(' ');
    if (at_ != text_.size())
      fail("nothing more");
  }

 private:
  [[noreturn]] void fail(const std::string &expected) const
  {
    throw std::runtime_error("character " + std::to_string(at_ + 1) + " of `" + text_ + "`: expected is " + expected);
  }

  char next()
  {
    if (at_ == text_.size())
      fail("a quotation mark");
    return text_[at_++];
  }

  char escaped()
  {
    switch (const char sign = next())
    {
      case '"':
      case '\\':
      case '/':
        return sign;
      case 'b':
        return '\b';
      case 'f':
        return '\f';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'u':
        return by_number();
      default:
        fail("an escape of JSON");
    }
  }

  // What is not ASCII is never escaped by the laboratory.
  char by_number()
  {
    unsigned number = 0;
    for (int digit = 0; digit < 4; ++digit)
    {
      const char sign = next();
      if (!std::isxdigit(static_cast<unsigned char>(sign)))
        fail("four hexadecimal digits");
      number = number * 16 + static_cast<unsigned>(std::isdigit(static_cast<unsigned char>(sign)) ? sign - '0' : (sign | 0x20) - 'a' + 10);
    }
    if (0x7f < number)
      fail("an escape of ASCII");
    return static_cast<char>(number);
  }

  const std::string &text_;
  size_t at_ = 0;
};

const std::string &of(const std::map<std::string, std::string> &fields, const std::string &name)
{
  const auto field = fields.find(name);
  if (field == fields.end())
    throw std::runtime_error(name + " is missing");
  return field->second;
}

}  // namespace

Fields::Fields(const std::string &json)
{
  Reader reader(json);
  reader.expect('{');
  if (!reader.takes('}'))
  {
    do
    {
      reader.expect('"');
      const std::string name = reader.quoted();
      reader.expect(':');
      if (reader.takes('"'))
        texts_[name] = reader.quoted();
      else
        words_[name] = reader.word();
    } while (reader.takes(','));
    reader.expect('}');
  }
  reader.end();
}

const std::string &Fields::text(const std::string &name) const { return of(texts_, name); }

uint64_t Fields::number(const std::string &name) const
{
  const std::string &word = of(words_, name);
  // What begins with a digit is a number, as far as it goes.
  size_t read = 0;
  const uint64_t number = std::isdigit(static_cast<unsigned char>(word[0])) ? std::stoull(word, &read) : 0;
  if (read != word.size())
    throw std::runtime_error(name + " is " + word + "; allowed: a whole number");
  return number;
}

bool Fields::flag(const std::string &name) const
{
  const std::string &word = of(words_, name);
  if (word != "true" && word != "false")
    throw std::runtime_error(name + " is " + word + "; allowed: true, false");
  return word == "true";
}

}  // namespace tsuji

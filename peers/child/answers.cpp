#include "answers.hpp"

#include <cerrno>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace tsuji {

namespace {

int output = STDOUT_FILENO;

}  // namespace

void keep_output_for_answers()
{
  output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  if (output < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    throw std::system_error(errno, std::generic_category(), "keep the output for answers");
}

void answer(const std::string &json)
{
  const std::string line = json + "\n";
  size_t written = 0;
  while (written < line.size())
  {
    const ssize_t count = write(output, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR)
      continue;
    // Nobody listens any more, and the input ends as well.
    if (count <= 0)
      return;
    written += static_cast<size_t>(count);
  }
}

void answer_failure(const std::string &error) { answer("{\"failed\":" + quoted(error) + "}"); }

std::string quoted(const std::string &text)
{
  static constexpr char DIGITS[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char sign : text)
  {
    const auto code = static_cast<unsigned char>(sign);
    if (sign == '"' || sign == '\\')
      quoted += std::string("\\") + sign;
    else if (code < 0x20)
      quoted += std::string("\\u00") + DIGITS[code >> 4] + DIGITS[code & 15];
    else
      quoted += sign;
  }
  return quoted + "\"";
}

void answer_each(const std::function<std::string(const std::vector<std::string> &words)> &obey)
{
  std::string line;
  while (std::getline(std::cin, line))
  {
    std::istringstream text(line);
    std::vector<std::string> words;
    for (std::string word; text >> word;)
      words.push_back(word);
    answer(obey(words));
  }
}

void not_understood(const std::vector<std::string> &words)
{
  std::string line;
  for (const std::string &word : words)
    line += (line.empty() ? "" : " ") + word;
  throw std::runtime_error("`" + line + "` is not understood");
}

}  // namespace tsuji

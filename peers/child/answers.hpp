// Lines between the laboratory and this program: a command on the standard input, a line of JSON as its answer.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tsuji {

// From now on answers alone go to the standard output; what a library prints there goes to the standard error output.
void keep_output_for_answers();

void answer(const std::string &json);

// The last answer of a program that ends because of `error`.
void answer_failure(const std::string &error);

// `text` as JSON.
std::string quoted(const std::string &text);

// Answers each line of the input with what `obey` makes of its words, until the input ends.
void answer_each(const std::function<std::string(const std::vector<std::string> &words)> &obey);

// What a command is refused with.
[[noreturn]] void not_understood(const std::vector<std::string> &words);

// `[[1,2],[3,4]]`.
template <typename Rows>
std::string table(const Rows &rows)
{
  std::string text = "[";
  for (const auto &row : rows)
  {
    text += text.size() == 1 ? "[" : ",[";
    bool is_first = true;
    for (const auto &cell : row)
    {
      text += (is_first ? "" : ",") + std::to_string(cell);
      is_first = false;
    }
    text += "]";
  }
  return text + "]";
}

}  // namespace tsuji

// What the laboratory says of the part to play: one object of JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tsuji {

// Texts, numbers and truth by name. Objects and lists inside it are refused, since the laboratory says none.
class Fields {
 public:
  explicit Fields(const std::string &json);

  // Each throws where there is no such field, or it is something else.
  const std::string &text(const std::string &name) const;
  uint64_t number(const std::string &name) const;
  bool flag(const std::string &name) const;

 private:
  std::map<std::string, std::string> texts_;
  // Those without quotation marks, as they were written.
  std::map<std::string, std::string> words_;
};

}  // namespace tsuji

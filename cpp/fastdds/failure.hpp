// Why a function of the table answers an error.
#pragma once

#include <stdexcept>
#include <string>

#include "tsuji_transport.h"

namespace tsuji {

// It never leaves the library: what is exported turns it into an error and words.
struct Failure : std::runtime_error {
  Failure(tsuji_error error, const std::string &words) : std::runtime_error(words), error(error) {}

  tsuji_error error;
};

}  // namespace tsuji

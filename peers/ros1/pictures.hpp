// Pictures between nodes or nodelets.
#pragma once

#include "fields.hpp"

namespace tsuji {

// Plays the part that the laboratory describes, until the input ends.
void play_pictures(const Fields &fields);

}  // namespace tsuji

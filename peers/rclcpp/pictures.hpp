// Pictures between nodes of one process or of two.
#pragma once

#include "fields.hpp"

namespace tsuji {

// Plays the part that the laboratory describes, until the input ends.
void play_pictures(const Fields &fields);

// Answers what the middleware is called, and whether it lends a picture to both ends, until the input ends.
void play_presence();

}  // namespace tsuji

// Short texts at set times between nodes.
#pragma once

#include "fields.hpp"

namespace tsuji {

// Plays the publisher or the subscription that the laboratory describes.
void play_texts(const Fields &fields);

}  // namespace tsuji

// Who is in ROS 1 behind a bridge for web clients.
#pragma once

#include "fields.hpp"

namespace tsuji {

// Plays `listener`, which hears what clients publish, or `speaker`, which publishes for them, as the fields say.
void play_beside_bridge(const Fields &fields);

}  // namespace tsuji

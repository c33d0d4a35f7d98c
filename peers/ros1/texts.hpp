// Short texts at set times between nodes.
#pragma once

#include "fields.hpp"

namespace tsuji {

// Plays the publisher or the subscriber that the laboratory describes, the latter with TCP_NODELAY where that is asked for.
void play_texts(const Fields &fields, bool has_no_delay);

}  // namespace tsuji

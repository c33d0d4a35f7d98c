// Short texts at set times, and when each comes.
#pragma once

#include <boost/property_tree/ptree.hpp>

namespace tsuji {

// Plays the publisher or the subscriber that `spec` describes, the latter with TCP_NODELAY where that is asked for.
void play_cadence(const boost::property_tree::ptree &spec, bool has_no_delay);

}  // namespace tsuji

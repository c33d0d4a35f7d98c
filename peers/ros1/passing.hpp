// Pictures between nodes or nodelets, one at a time, each to a receiver that has fallen asleep.
#pragma once

#include <boost/property_tree/ptree.hpp>

namespace tsuji {

// Plays the part that `spec` describes, as the laboratory's own children do.
void play_passing(const boost::property_tree::ptree &spec);

}  // namespace tsuji

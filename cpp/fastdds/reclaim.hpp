// Shared memory of processes that were killed.
#pragma once

namespace tsuji {

// Removes the segments of Fast DDS whose owners are dead. The engine itself removes only those that it has open, and so
// none of a process that nobody talked to any more.
void reclaim_segments();

}  // namespace tsuji

// The master of a run.
#pragma once

namespace tsuji {

// Starts `rosmaster` on a free port of loopback, answers its URI, and ends it when the input ends. Where this process is killed, the
// kernel ends it.
void play_master();

}  // namespace tsuji

#include "reclaim.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "release.hpp"

namespace tsuji {

namespace {

// A younger one may be about to be locked by its owner, which makes the file first.
constexpr time_t AGE_S_MIN = 5;

constexpr char LOCK_SUFFIX[] = "_el";
constexpr size_t ID_CHARS = 16;

// Behind the prefix <16 of 0-9 and a-z>_el, which the owner of the segment <16 of them> has locked while it lives. Ports are
// named otherwise; the engine makes those anew that it finds abandoned.
bool is_lock_of_segment(const std::string &name)
{
  const size_t prefix = sizeof(SHM_PREFIX) - 1;
  const size_t suffix = sizeof(LOCK_SUFFIX) - 1;
  if (name.size() != prefix + ID_CHARS + suffix || name.compare(0, prefix, SHM_PREFIX) != 0)
    return false;
  const auto is_of_id = [](unsigned char it) { return std::isdigit(it) || std::islower(it); };
  const auto id = name.begin() + prefix;
  return std::all_of(id, id + ID_CHARS, is_of_id) && name.compare(prefix + ID_CHARS, suffix, LOCK_SUFFIX) == 0;
}

// The lock is held until the names are gone, so that nobody else is at it.
void reclaim(int folder, const std::string &lock_name)
{
  const int lock = openat(folder, lock_name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (lock == -1)
    return;
  struct stat about;
  const bool is_old = fstat(lock, &about) == 0 && S_ISREG(about.st_mode) && about.st_ctime + AGE_S_MIN <= time(nullptr);
  if (is_old && flock(lock, LOCK_EX | LOCK_NB) == 0)
  {
    const std::string segment = lock_name.substr(0, lock_name.size() - (sizeof(LOCK_SUFFIX) - 1));
    unlinkat(folder, segment.c_str(), 0);
    unlinkat(folder, lock_name.c_str(), 0);
  }
  close(lock);
}

}  // namespace

void reclaim_segments()
{
  DIR *folder = opendir("/dev/shm");
  if (folder == nullptr)
    return;
  while (const dirent *entry = readdir(folder))
  {
    if (is_lock_of_segment(entry->d_name))
      reclaim(dirfd(folder), entry->d_name);
  }
  closedir(folder);
}

}  // namespace tsuji

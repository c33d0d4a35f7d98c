// Who is there, as the engine finds them, and those who watch.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ear.hpp"
#include "name.hpp"
#include "release.hpp"

namespace tsuji {

// What is known of a participant or an endpoint. It does not change.
struct Entry {
  tsuji_found_kind kind = TSUJI_FOUND_GONE;
  std::array<unsigned char, 2> vendor{};
  std::string topic;
  std::string type;
  std::vector<unsigned char> user_data;
  std::string host;
  std::string program;
  uint32_t pid = 0;
  tsuji_qos qos{};
};

// What a watch has not been told yet, by name: it is told the latest of each, so this is no longer than there are names.
struct Watch {
  explicit Watch() : errand(std::make_shared<Herald::Errand>(&Ear::news)) {}

  std::shared_ptr<Herald::Errand> errand;
  std::deque<Name> names;
  std::unordered_set<Name, NameHash> is_named;
};

// It listens from the beginning, so that a watch begins with all who are there. The engine itself keeps as much of each.
class Directory : public DiscoveryListener {
 public:
  explicit Directory(Herald &herald) : herald_(herald) {}

  void open(Watch *watch);
  void close(Watch *watch);
  // What is new, if anything is. An entry of null is gone.
  bool take(Watch *watch, Name &name, std::shared_ptr<const Entry> &entry);

 private:
  void on_participant(const rtps::GUID_t &guid, const AnnouncedParticipant &announced) override;
  void on_reader(const rtps::GUID_t &guid, const AnnouncedEndpoint &announced) override;
  void on_writer(const rtps::GUID_t &guid, const AnnouncedEndpoint &announced) override;
  void on_gone(const rtps::GUID_t &guid) override;
  void note(const Name &name, std::shared_ptr<const Entry> entry);
  // With the lock held.
  void tell(const Name &name);

  Herald &herald_;
  std::mutex mutex_;
  std::unordered_map<Name, std::shared_ptr<const Entry>, NameHash> entries_;
  std::unordered_set<Watch *> watches_;
};

}  // namespace tsuji

#include "directory.hpp"

#include <cstdlib>

#include "duration.hpp"

namespace tsuji {

using namespace eprosima::fastdds::dds;

namespace {

// The names under which Fast DDS and Cyclone DDS say where a participant runs. Fast DDS says the process by its number, and
// the host with a number of its own behind a colon.
void note_property(Entry &entry, const std::string &key, const std::string &value)
{
  if (key == "__Hostname")
    entry.host = value;
  else if (key == "__ProcessName")
    entry.program = value;
  else if (key == "__Pid" || (key == parameter_policy_physical_data_process && entry.pid == 0))
    entry.pid = static_cast<uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
  else if (key == parameter_policy_physical_data_host && entry.host.empty())
    entry.host = value.substr(0, value.rfind(':'));
}

std::shared_ptr<const Entry> participant_entry(const AnnouncedParticipant &announced)
{
  auto entry = std::make_shared<Entry>();
  entry->kind = TSUJI_FOUND_PARTICIPANT;
  std::copy_n(announced.vendor.begin(), 2, entry->vendor.begin());
  entry->user_data = announced.user_data;
  for (auto it = announced.properties.begin(); it != announced.properties.end(); ++it)
    note_property(*entry, it->first(), it->second());
  return entry;
}

// Histories are not announced.
tsuji_qos qos_of(const AnnouncedEndpoint &announced)
{
  tsuji_qos qos{};
  const bool is_reliable = announced.reliability.kind == RELIABLE_RELIABILITY_QOS;
  qos.reliability = is_reliable ? TSUJI_RELIABLE : TSUJI_BEST_EFFORT;
  switch (announced.durability.kind)
  {
    case VOLATILE_DURABILITY_QOS: qos.durability = TSUJI_VOLATILE; break;
    case TRANSIENT_LOCAL_DURABILITY_QOS: qos.durability = TSUJI_TRANSIENT_LOCAL; break;
    case TRANSIENT_DURABILITY_QOS: qos.durability = TSUJI_TRANSIENT; break;
    case PERSISTENT_DURABILITY_QOS: qos.durability = TSUJI_PERSISTENT; break;
  }
  qos.history = TSUJI_HISTORY_UNKNOWN;
  switch (announced.liveliness.kind)
  {
    case AUTOMATIC_LIVELINESS_QOS: qos.liveliness = TSUJI_AUTOMATIC; break;
    case MANUAL_BY_PARTICIPANT_LIVELINESS_QOS: qos.liveliness = TSUJI_MANUAL_BY_PARTICIPANT; break;
    case MANUAL_BY_TOPIC_LIVELINESS_QOS: qos.liveliness = TSUJI_MANUAL_BY_TOPIC; break;
  }
  qos.deadline_ns = nanoseconds(announced.deadline.period);
  qos.lifespan_ns = nanoseconds(announced.lifespan.duration);
  qos.lease_ns = nanoseconds(announced.liveliness.lease_duration);
  return qos;
}

std::shared_ptr<const Entry> endpoint_entry(tsuji_found_kind kind, const AnnouncedEndpoint &announced)
{
  auto entry = std::make_shared<Entry>();
  entry->kind = kind;
  entry->topic = announced.topic;
  entry->type = announced.type;
  entry->user_data = announced.user_data;
  entry->qos = qos_of(announced);
  return entry;
}

}  // namespace

void Directory::open(Watch *watch)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  watches_.insert(watch);
  const auto name_all = [&](bool is_participant) {
    for (const auto &[name, entry] : entries_)
    {
      if ((entry->kind == TSUJI_FOUND_PARTICIPANT) == is_participant && watch->is_named.insert(name).second)
        watch->names.push_back(name);
    }
  };
  name_all(true);
  name_all(false);
  if (!watch->names.empty())
    herald_.post(watch->errand);
}

void Directory::close(Watch *watch)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  watches_.erase(watch);
}

bool Directory::take(Watch *watch, Name &name, std::shared_ptr<const Entry> &entry)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  if (watch->names.empty())
    return false;
  name = watch->names.front();
  watch->names.pop_front();
  watch->is_named.erase(name);
  const auto known = entries_.find(name);
  entry = known == entries_.end() ? nullptr : known->second;
  return true;
}

void Directory::on_participant(const rtps::GUID_t &guid, const AnnouncedParticipant &announced)
{
  note(name_of(guid), participant_entry(announced));
}

void Directory::on_reader(const rtps::GUID_t &guid, const AnnouncedEndpoint &announced)
{
  note(name_of(guid), endpoint_entry(TSUJI_FOUND_READER, announced));
}

void Directory::on_writer(const rtps::GUID_t &guid, const AnnouncedEndpoint &announced)
{
  note(name_of(guid), endpoint_entry(TSUJI_FOUND_WRITER, announced));
}

void Directory::on_gone(const rtps::GUID_t &guid)
{
  const Name name = name_of(guid);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (entries_.erase(name) != 0)
    tell(name);
}

void Directory::note(const Name &name, std::shared_ptr<const Entry> entry)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_[name] = std::move(entry);
  tell(name);
}

void Directory::tell(const Name &name)
{
  for (Watch *watch : watches_)
  {
    if (watch->is_named.insert(name).second)
      watch->names.push_back(name);
    herald_.post(watch->errand);
  }
}

}  // namespace tsuji

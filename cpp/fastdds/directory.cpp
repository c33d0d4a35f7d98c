#include "directory.hpp"

#include <cstdlib>

#include <fastdds/rtps/participant/ParticipantDiscoveryInfo.h>
#include <fastdds/rtps/reader/ReaderDiscoveryInfo.h>
#include <fastdds/rtps/writer/WriterDiscoveryInfo.h>

#include "duration.hpp"

namespace tsuji {

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::rtps::ParticipantDiscoveryInfo;
using eprosima::fastrtps::rtps::ParticipantProxyData;
using eprosima::fastrtps::rtps::ReaderDiscoveryInfo;
using eprosima::fastrtps::rtps::WriterDiscoveryInfo;

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

std::shared_ptr<const Entry> participant_entry(const ParticipantProxyData &data)
{
  auto entry = std::make_shared<Entry>();
  entry->kind = TSUJI_FOUND_PARTICIPANT;
  std::copy_n(data.m_VendorId.begin(), 2, entry->vendor.begin());
  entry->user_data = data.m_userData.getValue();
  for (auto it = data.m_properties.begin(); it != data.m_properties.end(); ++it)
    note_property(*entry, it->first(), it->second());
  return entry;
}

// Histories are not announced.
template <typename Qos>
tsuji_qos announced(const Qos &said)
{
  tsuji_qos qos{};
  const bool is_reliable = said.m_reliability.kind == RELIABLE_RELIABILITY_QOS;
  qos.reliability = is_reliable ? TSUJI_RELIABLE : TSUJI_BEST_EFFORT;
  switch (said.m_durability.kind)
  {
    case VOLATILE_DURABILITY_QOS: qos.durability = TSUJI_VOLATILE; break;
    case TRANSIENT_LOCAL_DURABILITY_QOS: qos.durability = TSUJI_TRANSIENT_LOCAL; break;
    case TRANSIENT_DURABILITY_QOS: qos.durability = TSUJI_TRANSIENT; break;
    case PERSISTENT_DURABILITY_QOS: qos.durability = TSUJI_PERSISTENT; break;
  }
  qos.history = TSUJI_HISTORY_UNKNOWN;
  switch (said.m_liveliness.kind)
  {
    case AUTOMATIC_LIVELINESS_QOS: qos.liveliness = TSUJI_AUTOMATIC; break;
    case MANUAL_BY_PARTICIPANT_LIVELINESS_QOS: qos.liveliness = TSUJI_MANUAL_BY_PARTICIPANT; break;
    case MANUAL_BY_TOPIC_LIVELINESS_QOS: qos.liveliness = TSUJI_MANUAL_BY_TOPIC; break;
  }
  qos.deadline_ns = nanoseconds(said.m_deadline.period);
  qos.lifespan_ns = nanoseconds(said.m_lifespan.duration);
  qos.lease_ns = nanoseconds(said.m_liveliness.lease_duration);
  return qos;
}

template <typename Data>
std::shared_ptr<const Entry> endpoint_entry(tsuji_found_kind kind, const Data &data)
{
  auto entry = std::make_shared<Entry>();
  entry->kind = kind;
  entry->topic = data.topicName().c_str();
  entry->type = data.typeName().c_str();
  entry->user_data = data.m_qos.m_userData.getValue();
  entry->qos = announced(data.m_qos);
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

void Directory::on_participant_discovery(DomainParticipant *, ParticipantDiscoveryInfo &&info)
{
  const Name name = name_of(info.info.m_guid);
  switch (info.status)
  {
    case ParticipantDiscoveryInfo::DISCOVERED_PARTICIPANT:
    case ParticipantDiscoveryInfo::CHANGED_QOS_PARTICIPANT: return note(name, participant_entry(info.info));
    default: return lose(name);
  }
}

void Directory::on_subscriber_discovery(DomainParticipant *, ReaderDiscoveryInfo &&info)
{
  const Name name = name_of(info.info.guid());
  if (info.status == ReaderDiscoveryInfo::REMOVED_READER)
    return lose(name);
  note(name, endpoint_entry(TSUJI_FOUND_READER, info.info));
}

void Directory::on_publisher_discovery(DomainParticipant *, WriterDiscoveryInfo &&info)
{
  const Name name = name_of(info.info.guid());
  if (info.status == WriterDiscoveryInfo::REMOVED_WRITER)
    return lose(name);
  note(name, endpoint_entry(TSUJI_FOUND_WRITER, info.info));
}

void Directory::note(const Name &name, std::shared_ptr<const Entry> entry)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_[name] = std::move(entry);
  tell(name);
}

void Directory::lose(const Name &name)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  if (entries_.erase(name) != 0)
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

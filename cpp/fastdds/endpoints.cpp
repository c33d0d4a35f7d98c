#include "endpoints.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <new>
#include <string>

#include <fastdds/dds/publisher/qos/DataWriterQos.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/qos/DataReaderQos.hpp>

#include "duration.hpp"
#include "failure.hpp"
#include "release.hpp"
#include "sample.hpp"

namespace tsuji {

using namespace eprosima::fastdds::dds;
using rtps::GUID_t;
using rtps::iHandle2GUID;
using rtps::SampleIdentity;
using rtps::SequenceNumber_t;
using rtps::WriteParams;

namespace {

// What a writer that keeps all lets go unacknowledged. Each write costs the engine more the more there are: with 60,000 of
// them a tenth of a millisecond.
constexpr int32_t UNACKNOWLEDGED_SAMPLES_MAX = 1 << 16;
// What waits in a reader for an earlier sample to arrive again. Beyond it a sample is refused, and sent again later.
constexpr int32_t EARLY_SAMPLES_MAX = 1 << 13;
constexpr int32_t ALLOCATED_SAMPLES = 16;
// The engine copies a name into so many bytes.
constexpr size_t NAME_CHARS_MAX = 255;
constexpr int64_t CLOSE_NS_MAX = 1'000'000'000;
constexpr uint32_t MS = 1'000'000;
// How often a writer asks for what is not acknowledged, how soon a reader answers, and how soon the writer sends again.
constexpr uint32_t HEARTBEAT_NS = 10 * MS;
constexpr uint32_t FIRST_HEARTBEAT_NS = 5 * MS;
constexpr uint32_t ANSWER_NS = 1 * MS;
constexpr uint32_t SEND_AGAIN_NS = 1 * MS;

SequenceNumber_t sequence_number(int64_t number)
{
  return {static_cast<int32_t>(number >> 32), static_cast<uint32_t>(number)};
}

int32_t count_of(uint32_t count) { return static_cast<int32_t>(std::clamp<uint32_t>(count, 1, INT32_MAX)); }

void check_name(const char *what, const std::string &name)
{
  if (name.empty() || NAME_CHARS_MAX < name.size())
    throw Failure(TSUJI_INVALID, std::string(what) + " \"" + name + "\"; allowed: 1 to 255 bytes");
}

Topic *topic_of(Participant &participant, const tsuji_endpoint &endpoint)
{
  check_name("topic", endpoint.topic);
  check_name("type", endpoint.type);
  check_user_data(endpoint.user_data_size);
  return participant.topic(endpoint.topic, endpoint.type);
}

// There is one instance, so the limits are those of all samples.
void limit(ResourceLimitsQosPolicy &limits, int32_t samples)
{
  limits.max_samples = samples;
  limits.max_instances = 1;
  limits.max_samples_per_instance = samples;
  limits.allocated_samples = std::min(samples, ALLOCATED_SAMPLES);
}

// What readers and writers say alike.
template <typename Qos>
void set_qos(Qos &to, const tsuji_endpoint &endpoint)
{
  const tsuji_qos &qos = endpoint.qos;
  const bool is_reliable = qos.reliability != TSUJI_BEST_EFFORT;
  to.reliability().kind = is_reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
  to.durability().kind = qos.durability == TSUJI_VOLATILE ? VOLATILE_DURABILITY_QOS : TRANSIENT_LOCAL_DURABILITY_QOS;
  to.deadline().period = duration(qos.deadline_ns);
  switch (qos.liveliness)
  {
    case TSUJI_MANUAL_BY_PARTICIPANT: to.liveliness().kind = MANUAL_BY_PARTICIPANT_LIVELINESS_QOS; break;
    case TSUJI_MANUAL_BY_TOPIC: to.liveliness().kind = MANUAL_BY_TOPIC_LIVELINESS_QOS; break;
    default: to.liveliness().kind = AUTOMATIC_LIVELINESS_QOS; break;
  }
  to.liveliness().lease_duration = duration(qos.lease_ns);
  to.user_data().data_vec(
    std::vector<unsigned char>(endpoint.user_data, endpoint.user_data + endpoint.user_data_size));
  to.endpoint().history_memory_policy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  to.data_sharing().off();
}

DataWriterQos writer_qos(const tsuji_endpoint &endpoint)
{
  const tsuji_qos &qos = endpoint.qos;
  DataWriterQos to;
  set_qos(to, endpoint);
  to.lifespan().duration = duration(qos.lifespan_ns);
  if (qos.lease_ns < TSUJI_INFINITE)
    to.liveliness().announcement_period = duration(qos.lease_ns / 3);
  // A write that would have to wait is refused. It waits for locks all the same, which are held for short.
  to.reliability().max_blocking_time = {0, 0u};
  to.publish_mode().kind = SYNCHRONOUS_PUBLISH_MODE;
  set_writer_times(to.reliable_writer_qos().times, {0, FIRST_HEARTBEAT_NS}, {0, HEARTBEAT_NS}, {0, SEND_AGAIN_NS});
  // Else one goes with each part of a large sample; and of what a volatile reader of Cyclone DDS has in part when its first
  // heartbeat comes, it thinks that it was before its time.
  to.reliable_writer_qos().disable_heartbeat_piggyback = true;
  if (qos.history == TSUJI_KEEP_LAST)
  {
    to.history().kind = KEEP_LAST_HISTORY_QOS;
    to.history().depth = count_of(qos.depth);
    limit(to.resource_limits(), count_of(qos.depth));
    return to;
  }
  // When it is full the engine lets go of the oldest, if all have acknowledged it, and refuses the write else.
  to.history().kind = KEEP_ALL_HISTORY_QOS;
  const bool keeps = qos.durability != TSUJI_VOLATILE;
  limit(to.resource_limits(), keeps ? count_of(qos.keep_all_max) : UNACKNOWLEDGED_SAMPLES_MAX);
  return to;
}

DataReaderQos reader_qos(const tsuji_endpoint &endpoint)
{
  DataReaderQos to;
  set_qos(to, endpoint);
  to.history().kind = KEEP_ALL_HISTORY_QOS;
  limit(to.resource_limits(), EARLY_SAMPLES_MAX);
  set_reader_times(to.reliable_reader_qos().times, {0, ANSWER_NS}, {0, ANSWER_NS});
  return to;
}

SampleIdentity identity_of(const tsuji_related &related)
{
  SampleIdentity identity;
  GUID_t guid;
  std::copy_n(related.name, 12, guid.guidPrefix.value);
  std::copy_n(related.name + 12, 4, guid.entityId.value);
  identity.writer_guid(guid);
  identity.sequence_number(0 < related.number ? sequence_number(related.number) : SequenceNumber_t::unknown());
  return identity;
}

// All zero where the sample relates to nothing.
tsuji_related related_of(const SampleInfo &info)
{
  tsuji_related related{};
  const SampleIdentity &identity = info.related_sample_identity;
  if (identity.writer_guid() == GUID_t::unknown())
    return related;
  const Name name = name_of(identity.writer_guid());
  std::copy(name.begin(), name.end(), related.name);
  related.number = identity.sequence_number().to64long();
  return related;
}

// Those of one writer in its order: the engine sorts what comes at once by source time, which may go back.
void sort_by_number(std::vector<tsuji_taken> &arrived)
{
  std::sort(arrived.begin(), arrived.end(), [](const tsuji_taken &a, const tsuji_taken &b) {
    const int writers = std::memcmp(a.writer, b.writer, sizeof(a.writer));
    return writers < 0 || (writers == 0 && a.number < b.number);
  });
}

}  // namespace

bool Matches::note(const Name &name, int32_t change)
{
  if (is_of(name, own_))
    return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = std::find(names_.begin(), names_.end(), name);
  if (0 < change && it == names_.end())
    names_.push_back(name);
  else if (change < 0 && it != names_.end())
    names_.erase(it);
  else
    return false;
  return true;
}

void Matches::each(void *arg, tsuji_each_fn call) const
{
  std::unique_lock<std::mutex> lock(mutex_);
  const std::vector<Name> names = names_;
  lock.unlock();
  for (const Name &name : names)
    call(arg, name.data());
}

Writer::Writer(Participant &participant, const tsuji_endpoint &endpoint)
    : participant_(participant)
    , is_reliable_(endpoint.qos.reliability != TSUJI_BEST_EFFORT)
    , matches_(participant.name())
    , topic_(topic_of(participant, endpoint))
    , writer_(participant.publisher()->create_datawriter(topic_, writer_qos(endpoint), this))
{
  if (writer_ == nullptr)
  {
    participant_.give_back(topic_);
    throw Failure(TSUJI_UNEXPECTED, std::string("Fast DDS makes no writer of ") + endpoint.topic);
  }
  name_ = name_of(writer_->guid());
}

Writer::~Writer()
{
  errand_->ear.close();
  is_acknowledged(CLOSE_NS_MAX);
  participant_.publisher()->delete_datawriter(writer_);
  participant_.give_back(topic_);
}

void Writer::write(const unsigned char *data, size_t size, int64_t source_ns, const tsuji_related *related)
{
  if (size < HEADER_BYTES)
    throw Failure(TSUJI_INVALID, "no CDR; allowed: CDR with its header of 4 bytes");
  if (SAMPLE_BYTES_MAX < size)
    throw Failure(TSUJI_TOO_LARGE, "too large");
  Outgoing outgoing{data, size};
  if (related != nullptr)
  {
    WriteParams params;
    params.related_sample_identity(identity_of(*related));
    params.source_timestamp(rtps::Time_t(duration(source_ns)));
    if (write_with(*writer_, &outgoing, params))
      return;
    // It does not say why. Where all is acknowledged there is room, as there may be since it failed; what fails then fails
    // whenever it is tried.
    if (!is_acknowledged(0))
      throw Failure(TSUJI_BUSY, "too much is not acknowledged");
    if (!write_with(*writer_, &outgoing, params))
      throw Failure(TSUJI_UNEXPECTED, "Fast DDS does not write");
    return;
  }
  const ReturnCode result = writer_->write_w_timestamp(&outgoing, HANDLE_NIL, duration(source_ns));
  if (result == RETCODE_OK)
    return;
  if (result == RETCODE_TIMEOUT)
    throw Failure(TSUJI_BUSY, "too much is not acknowledged");
  const bool is_exhausted = result == RETCODE_OUT_OF_RESOURCES;
  throw Failure(is_exhausted ? TSUJI_EXHAUSTED : TSUJI_UNEXPECTED, "Fast DDS does not write");
}

bool Writer::is_acknowledged(int64_t timeout_ns)
{
  return !is_reliable_ || writer_->wait_for_acknowledgments(duration(timeout_ns)) == RETCODE_OK;
}

void Writer::on_publication_matched(DataWriter *, const PublicationMatchedStatus &info)
try
{
  if (matches_.note(name_of(iHandle2GUID(info.last_subscription_handle)), info.current_count_change))
    participant_.herald().post(errand_);
}
catch (const std::bad_alloc &)
{
}

Reader::Reader(Participant &participant, const tsuji_endpoint &endpoint)
    : participant_(participant)
    , depth_(endpoint.qos.history == TSUJI_KEEP_LAST ? static_cast<size_t>(count_of(endpoint.qos.depth)) : SIZE_MAX)
    , matches_(participant.name())
    , topic_(topic_of(participant, endpoint))
    , reader_(participant.subscriber()->create_datareader(topic_, reader_qos(endpoint), this))
{
  if (reader_ == nullptr)
  {
    participant_.give_back(topic_);
    throw Failure(TSUJI_UNEXPECTED, std::string("Fast DDS makes no reader of ") + endpoint.topic);
  }
  name_ = name_of(reader_->guid());
}

Reader::~Reader()
{
  errand_->ear.close();
  participant_.subscriber()->delete_datareader(reader_);
  participant_.give_back(topic_);
  for (const tsuji_taken &taken : arrived_)
    sample_free(taken.sample);
}

bool Reader::take(tsuji_taken &taken)
{
  const std::lock_guard<std::mutex> lock(arrived_mutex_);
  if (arrived_.empty())
    return false;
  taken = arrived_.front();
  arrived_.pop_front();
  return true;
}

// What there is no memory for is lost; nothing may be thrown into the engine.
void Reader::on_data_available(DataReader *reader)
try
{
  std::vector<tsuji_taken> arrived;
  Incoming incoming;
  SampleInfo info;
  while (reader->take_next_sample(&incoming, &info) == RETCODE_OK)
  {
    // Without data it only says that writers came or went.
    if (!info.valid_data || incoming.memory == nullptr)
      continue;
    const Name writer = name_of(info.sample_identity.writer_guid());
    if (is_of(writer, participant_.name()))
    {
      sample_free(incoming.memory);
      continue;
    }
    tsuji_taken taken{};
    taken.sample = incoming.memory;
    taken.data = incoming.data;
    taken.data_size = incoming.size;
    std::copy(writer.begin(), writer.end(), taken.writer);
    taken.number = info.sample_identity.sequence_number().to64long();
    taken.source_ns = info.source_timestamp.to_ns();
    taken.related = related_of(info);
    arrived.push_back(taken);
  }
  if (arrived.empty())
    return;
  keep(arrived);
  errand_->ear.news();
}
catch (const std::bad_alloc &)
{
}

void Reader::keep(std::vector<tsuji_taken> &arrived)
{
  sort_by_number(arrived);
  const std::lock_guard<std::mutex> lock(arrived_mutex_);
  for (const tsuji_taken &taken : arrived)
  {
    if (arrived_.size() == depth_)
    {
      sample_free(arrived_.front().sample);
      arrived_.pop_front();
    }
    arrived_.push_back(taken);
  }
}

void Reader::on_subscription_matched(DataReader *, const SubscriptionMatchedStatus &info)
try
{
  if (matches_.note(name_of(iHandle2GUID(info.last_publication_handle)), info.current_count_change))
    participant_.herald().post(errand_);
}
catch (const std::bad_alloc &)
{
}

}  // namespace tsuji

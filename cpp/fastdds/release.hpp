// What differs between Fast DDS 2 and 3, so that everything else is written once. TSUJI_FASTDDS_MAJOR says which it is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fastdds/dds/core/policy/QosPolicies.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>

#if TSUJI_FASTDDS_MAJOR < 3
#include <fastdds/rtps/participant/ParticipantDiscoveryInfo.h>
#include <fastdds/rtps/reader/ReaderDiscoveryInfo.h>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <fastdds/rtps/writer/WriterDiscoveryInfo.h>
#include <fastrtps/utils/IPLocator.h>
#include <fastrtps/xmlparser/XMLProfileManager.h>
#else
#include <fastdds/LibrarySettings.hpp>
#include <fastdds/rtps/builtin/data/ParticipantBuiltinTopicData.hpp>
#include <fastdds/rtps/builtin/data/PublicationBuiltinTopicData.hpp>
#include <fastdds/rtps/builtin/data/SubscriptionBuiltinTopicData.hpp>
#include <fastdds/rtps/common/WriteParams.hpp>
#include <fastdds/rtps/participant/ParticipantDiscoveryInfo.hpp>
#include <fastdds/rtps/reader/ReaderDiscoveryStatus.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.hpp>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.hpp>
#include <fastdds/rtps/writer/WriterDiscoveryStatus.hpp>
#include <fastdds/utils/IPLocator.hpp>
#endif

namespace tsuji {

namespace dds = eprosima::fastdds::dds;

#if TSUJI_FASTDDS_MAJOR < 3
namespace rtps = eprosima::fastrtps::rtps;
using Duration = eprosima::fastrtps::Duration_t;
using eprosima::fastrtps::c_TimeInfinite;
using ReturnCode = eprosima::fastrtps::types::ReturnCode_t;
constexpr auto RETCODE_OK = ReturnCode::RETCODE_OK;
constexpr auto RETCODE_OUT_OF_RESOURCES = ReturnCode::RETCODE_OUT_OF_RESOURCES;
constexpr auto RETCODE_TIMEOUT = ReturnCode::RETCODE_TIMEOUT;
#else
namespace rtps = eprosima::fastdds::rtps;
using Duration = dds::Duration_t;
using dds::c_TimeInfinite;
using ReturnCode = dds::ReturnCode_t;
using dds::RETCODE_OK;
using dds::RETCODE_OUT_OF_RESOURCES;
using dds::RETCODE_TIMEOUT;
#endif

// How the names of the shared memory begin, in /dev/shm.
#if TSUJI_FASTDDS_MAJOR < 3
constexpr char SHM_PREFIX[] = "fastrtps_";
#else
constexpr char SHM_PREFIX[] = "fastdds_";
#endif

// Whether samples between two participants of this process go over the network too from now on. Fast DDS 3 refuses to change
// that while another user of the library has a participant.
inline bool switch_off_intraprocess()
{
#if TSUJI_FASTDDS_MAJOR < 3
  eprosima::fastrtps::LibrarySettingsAttributes settings;
  settings.intraprocess_delivery = eprosima::fastrtps::INTRAPROCESS_OFF;
  eprosima::fastrtps::xmlparser::XMLProfileManager::library_settings(settings);
  return true;
#else
  eprosima::fastdds::LibrarySettings settings;
  settings.intraprocess_delivery = eprosima::fastdds::INTRAPROCESS_OFF;
  return dds::DomainParticipantFactory::get_instance()->set_library_settings(settings) == RETCODE_OK;
#endif
}

// Whether the sample was written. Fast DDS 2 does not say why not.
inline bool write_with(dds::DataWriter &writer, void *sample, rtps::WriteParams &params)
{
#if TSUJI_FASTDDS_MAJOR < 3
  return writer.write(sample, params);
#else
  return writer.write(sample, params) == RETCODE_OK;
#endif
}

// `times` are those of a reliable writer.
template <typename Times>
void set_writer_times(Times &times, Duration first_heartbeat, Duration heartbeat, Duration send_again)
{
#if TSUJI_FASTDDS_MAJOR < 3
  times.initialHeartbeatDelay = first_heartbeat;
  times.heartbeatPeriod = heartbeat;
  times.nackResponseDelay = send_again;
#else
  times.initial_heartbeat_delay = first_heartbeat;
  times.heartbeat_period = heartbeat;
  times.nack_response_delay = send_again;
#endif
}

// `times` are those of a reliable reader.
template <typename Times>
void set_reader_times(Times &times, Duration first_answer, Duration answer)
{
#if TSUJI_FASTDDS_MAJOR < 3
  times.initialAcknackDelay = first_answer;
  times.heartbeatResponseDelay = answer;
#else
  times.initial_acknack_delay = first_answer;
  times.heartbeat_response_delay = answer;
#endif
}

// What a participant announces of itself.
struct AnnouncedParticipant {
  const rtps::VendorId_t &vendor;
  const std::vector<unsigned char> &user_data;
  const dds::ParameterPropertyList_t &properties;
};

// What is announced of a reader or a writer.
struct AnnouncedEndpoint {
  std::string topic;
  std::string type;
  const std::vector<unsigned char> &user_data;
  const dds::ReliabilityQosPolicy &reliability;
  const dds::DurabilityQosPolicy &durability;
  const dds::LivelinessQosPolicy &liveliness;
  const dds::DeadlineQosPolicy &deadline;
  const dds::LifespanQosPolicy &lifespan;
};

// Whoever derives from it is told who comes, changes and goes.
class DiscoveryListener : public dds::DomainParticipantListener {
 protected:
  virtual void on_participant(const rtps::GUID_t &guid, const AnnouncedParticipant &announced) = 0;
  virtual void on_reader(const rtps::GUID_t &guid, const AnnouncedEndpoint &announced) = 0;
  virtual void on_writer(const rtps::GUID_t &guid, const AnnouncedEndpoint &announced) = 0;
  virtual void on_gone(const rtps::GUID_t &guid) = 0;

 private:
#if TSUJI_FASTDDS_MAJOR < 3
  template <typename Data>
  static AnnouncedEndpoint endpoint(const Data &data)
  {
    const auto &qos = data.m_qos;
    return {data.topicName().c_str(), data.typeName().c_str(), qos.m_userData.data_vec(), qos.m_reliability, qos.m_durability,
      qos.m_liveliness, qos.m_deadline, qos.m_lifespan};
  }

  void on_participant_discovery(dds::DomainParticipant *, rtps::ParticipantDiscoveryInfo &&found) final
  {
    const rtps::ParticipantProxyData &data = found.info;
    using Found = rtps::ParticipantDiscoveryInfo;
    if (found.status == Found::DISCOVERED_PARTICIPANT || found.status == Found::CHANGED_QOS_PARTICIPANT)
      on_participant(data.m_guid, {data.m_VendorId, data.m_userData.data_vec(), data.m_properties});
    else
      on_gone(data.m_guid);
  }

  void on_subscriber_discovery(dds::DomainParticipant *, rtps::ReaderDiscoveryInfo &&found) final
  {
    if (found.status == rtps::ReaderDiscoveryInfo::REMOVED_READER)
      on_gone(found.info.guid());
    else
      on_reader(found.info.guid(), endpoint(found.info));
  }

  void on_publisher_discovery(dds::DomainParticipant *, rtps::WriterDiscoveryInfo &&found) final
  {
    if (found.status == rtps::WriterDiscoveryInfo::REMOVED_WRITER)
      on_gone(found.info.guid());
    else
      on_writer(found.info.guid(), endpoint(found.info));
  }
#else
  template <typename Data>
  static AnnouncedEndpoint endpoint(const Data &data)
  {
    return {data.topic_name.c_str(), data.type_name.c_str(), data.user_data.data_vec(), data.reliability, data.durability,
      data.liveliness, data.deadline, data.lifespan};
  }

  void on_participant_discovery(dds::DomainParticipant *, rtps::ParticipantDiscoveryStatus status,
    const rtps::ParticipantBuiltinTopicData &data, bool &) final
  {
    using Status = rtps::ParticipantDiscoveryStatus;
    if (status == Status::DISCOVERED_PARTICIPANT || status == Status::CHANGED_QOS_PARTICIPANT)
      on_participant(data.guid, {data.vendor_id, data.user_data.data_vec(), data.properties});
    else
      on_gone(data.guid);
  }

  void on_data_reader_discovery(dds::DomainParticipant *, rtps::ReaderDiscoveryStatus status,
    const rtps::SubscriptionBuiltinTopicData &data, bool &) final
  {
    if (status == rtps::ReaderDiscoveryStatus::REMOVED_READER)
      on_gone(data.guid);
    else
      on_reader(data.guid, endpoint(data));
  }

  void on_data_writer_discovery(dds::DomainParticipant *, rtps::WriterDiscoveryStatus status,
    const rtps::PublicationBuiltinTopicData &data, bool &) final
  {
    if (status == rtps::WriterDiscoveryStatus::REMOVED_WRITER)
      on_gone(data.guid);
    else
      on_writer(data.guid, endpoint(data));
  }
#endif
};

// A type without a key, of which Fast DDS knows the name alone. What a sample is whoever derives from it says.
class NamedType : public dds::TopicDataType {
 protected:
  NamedType(const std::string &name, uint32_t bytes_min)
  {
#if TSUJI_FASTDDS_MAJOR < 3
    setName(name.c_str());
    m_typeSize = bytes_min;
    m_isGetKeyDefined = false;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
#else
    set_name(name);
    max_serialized_type_size = bytes_min;
    is_compute_key_provided = false;
#endif
  }

  virtual bool write(const void *outgoing, rtps::SerializedPayload_t &payload) const = 0;
  virtual bool read(const rtps::SerializedPayload_t &payload, void *incoming) const = 0;
  virtual uint32_t size_of(const void *outgoing) const = 0;
  virtual void *make() const = 0;
  virtual void remove(void *incoming) const = 0;

 private:
#if TSUJI_FASTDDS_MAJOR < 3
  bool serialize(void *outgoing, rtps::SerializedPayload_t *payload) final { return write(outgoing, *payload); }
  bool deserialize(rtps::SerializedPayload_t *payload, void *incoming) final { return read(*payload, incoming); }
  std::function<uint32_t()> getSerializedSizeProvider(void *outgoing) final
  {
    return [size = size_of(outgoing)] { return size; };
  }
  void *createData() final { return make(); }
  void deleteData(void *incoming) final { remove(incoming); }
  bool getKey(void *, rtps::InstanceHandle_t *, bool) final { return false; }
#else
  bool serialize(const void *outgoing, rtps::SerializedPayload_t &payload, dds::DataRepresentationId_t) final
  {
    return write(outgoing, payload);
  }
  bool deserialize(rtps::SerializedPayload_t &payload, void *incoming) final { return read(payload, incoming); }
  uint32_t calculate_serialized_size(const void *outgoing, dds::DataRepresentationId_t) final { return size_of(outgoing); }
  void *create_data() final { return make(); }
  void delete_data(void *incoming) final { remove(incoming); }
  bool compute_key(rtps::SerializedPayload_t &, rtps::InstanceHandle_t &, bool) final { return false; }
  bool compute_key(const void *, rtps::InstanceHandle_t &, bool) final { return false; }
#endif
};

}  // namespace tsuji

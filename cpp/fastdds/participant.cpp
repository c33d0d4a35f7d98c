#include "participant.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <vector>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <unistd.h>

#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/log/Log.hpp>

#include "failure.hpp"
#include "loopback.hpp"
#include "reclaim.hpp"
#include "release.hpp"
#include "sample.hpp"

namespace eprosima {

// The library's own, from 2.14 on. It keeps the interfaces of this host as they were when it was first used, and looks at them
// again only when an existing participant is given its settings anew, which is too late for one that is to use others.
class SystemInfo {
 public:
  [[gnu::weak]] static bool update_interfaces();
};

}  // namespace eprosima

namespace tsuji {

using namespace eprosima::fastdds::dds;
using eprosima::fastdds::rtps::SharedMemTransportDescriptor;
using eprosima::fastdds::rtps::UDPv4TransportDescriptor;
using rtps::IPLocator;
using rtps::Locator_t;

namespace {

// What a burst of a sample of some megabytes needs.
constexpr uint32_t SOCKET_BUFFER_BYTES = 4u << 20;
// The variable that turns the engine's shared memory on, and how much there is then: two samples of some megabytes. The engine's
// own half megabyte makes each of them wait for a heartbeat.
constexpr char SHM_VARIABLE[] = "TSUJI_FASTDDS_SHM";
constexpr uint64_t SHM_SEGMENT_BYTES = 16u << 20;
// What waits at a port to be read. Of the engine's own 512 a burst of small samples overruns as many, which are sent again.
constexpr uint32_t SHM_PORT_MESSAGES = 4096;
constexpr uint64_t SHM_SEGMENT_BYTES_MIN = 1u << 20;
constexpr uint64_t SHM_SEGMENT_BYTES_MAX = 1u << 30;
// The ports of a host that is looked for by its name or address (RTPS 2.5, 9.6.2.4).
constexpr uint32_t PORTS_OF_A_HOST = 120;
// As far as participants are numbered. Where the ports of a number are taken by another process the next ones are tried, which
// are still those of the domain.
constexpr int32_t NUMBERS = 100;
constexpr uint32_t DOMAIN_MAX = 232;
// Where participants announce themselves (RTPS 2.5, 9.6.2.3).
constexpr char GROUP[] = "239.255.0.1";
constexpr uint32_t PORT_BASE = 7400;
constexpr uint32_t DOMAIN_GAIN = 250;
// How long a participant that says nothing is taken for alive, and how often it says that it is.
constexpr int32_t LEASE_S = 3;
constexpr int32_t ANNOUNCE_S = 1;
// As far as announcements go.
constexpr uint8_t HOPS_MAX = 32;
constexpr size_t USER_DATA_BYTES_MAX = 60'000;
constexpr size_t COMPLAINTS_MAX = 5;

std::atomic<void (*)(uint32_t, const char *)> log_line{nullptr};

// The errors that the engine has logged since the last participant was begun. Beyond COMPLAINTS_MAX they are only logged.
std::mutex complaints_mutex;
std::vector<std::string> complaints;

class LogToTsuji : public LogConsumer {
 public:
  void Consume(const Log::Entry &entry) override
  {
    const std::string text = std::string(entry.context.category) + ": " + entry.message;
    const bool is_error = entry.kind == Log::Kind::Error;
    if (const auto log = log_line.load())
      log(is_error, text.c_str());
    const std::lock_guard<std::mutex> lock(complaints_mutex);
    if (is_error && complaints.size() < COMPLAINTS_MAX)
      complaints.push_back(text);
  }
};

std::string complaints_so_far()
{
  Log::Flush();
  const std::lock_guard<std::mutex> lock(complaints_mutex);
  std::string all;
  for (const std::string &it : complaints)
    all += "; " + it;
  return all;
}

void warn(const std::string &text)
{
  if (const auto log = log_line.load())
    log(0, text.c_str());
}

const char *variable(const char *name)
{
  const char *value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The participants that there are.
std::mutex live_mutex;
std::set<DomainParticipant *> live;

// Waits until no callback of a participant is under way, and lets none begin. To delete one waits for the same without end,
// which overflows: Fast DDS 3 then spins with the lock that the callback waits for, and may never see its end.
void silence(DomainParticipant &participant)
{
  while (participant.set_listener(nullptr, std::chrono::seconds(1)) != RETCODE_OK)
  {
  }
}

// The engine's factory, which at the end of the process takes all participants with it. When a forked child ends it must
// not: it would say goodbye for its parent, and remove the parent's shared memory.
class Factory {
 public:
  ~Factory()
  {
    if (getpid() != pid_)
    {
      new std::shared_ptr<DomainParticipantFactory>(std::move(factory_));
      return;
    }
    const std::lock_guard<std::mutex> lock(live_mutex);
    for (DomainParticipant *participant : live)
      silence(*participant);
  }

 private:
  const pid_t pid_ = getpid();
  std::shared_ptr<DomainParticipantFactory> factory_ = DomainParticipantFactory::get_shared_instance();
};

// The engine reads its profiles before anything else and lets them set its log and how it delivers within a process; both
// are set after that.
void prepare_library()
{
  static std::once_flag once;
  std::call_once(once, [] {
    static Factory kept;
    (void)kept;
    DomainParticipantFactory::get_instance()->load_profiles();
    Log::ClearConsumers();
    Log::SetVerbosity(Log::Kind::Error);
    Log::RegisterConsumer(std::make_unique<LogToTsuji>());
    // Within a process the engine would call the reader from within write().
    if (!switch_off_intraprocess())
      warn("another user of Fast DDS in this process was there first, and its setting of intra-process delivery stays");
    std::ifstream said("/proc/sys/net/core/rmem_max");
    uint64_t max = 0;
    if (said >> max && max < SOCKET_BUFFER_BYTES)
    {
      warn("a socket's receive buffer is limited to " + std::to_string(max) +
           " bytes, so samples of some megabytes will be late; as root: sysctl -w net.core.rmem_max=" +
           std::to_string(SOCKET_BUFFER_BYTES));
    }
  });
}

// The engine would make a client of every participant.
void refuse_discovery_server()
{
  const std::string server = variable("ROS_DISCOVERY_SERVER");
  if (!server.empty())
    throw Failure(TSUJI_UNSUPPORTED, "ROS_DISCOVERY_SERVER=" + server + " is not supported; allowed: it is not set");
}

// None unless somebody asks for it. Fast DDS maps the ports of others in /dev/shm by their names alone, and what is in there is
// laid out as the build and its Boost have it: beside one of another build it ends this process, at whatever is found.
uint64_t shm_segment_bytes_asked_for()
{
  const std::string value = variable(SHM_VARIABLE);
  if (value.empty() || value == "0")
    return 0;
  if (value == "1")
    return SHM_SEGMENT_BYTES;
  throw Failure(TSUJI_INVALID, std::string(SHM_VARIABLE) + "=\"" + value + "\"; allowed: 0 or 1");
}

struct Settings {
  uint64_t shm_segment_bytes = 0;
  // Whoever is no participant of Fast DDS on this host is not met.
  bool is_host_only = false;
};

uint64_t parse_shm_segment_bytes(const std::string &value)
{
  const bool is_number = !value.empty() && value.size() <= 19 && std::all_of(value.begin(), value.end(), [](unsigned char it) {
    return std::isdigit(it);
  });
  const uint64_t bytes = is_number ? std::strtoull(value.c_str(), nullptr, 10) : 0;
  const bool is_allowed = bytes == 0 || (SHM_SEGMENT_BYTES_MIN <= bytes && bytes <= SHM_SEGMENT_BYTES_MAX);
  if (is_number && is_allowed)
    return bytes;
  throw Failure(TSUJI_INVALID, "shm_segment_bytes=\"" + value + "\"; allowed: 0 for no shared memory, or " +
                                 std::to_string(SHM_SEGMENT_BYTES_MIN) + " to " + std::to_string(SHM_SEGMENT_BYTES_MAX));
}

Settings parse_settings(const tsuji_join &join)
{
  Settings settings;
  bool is_shm_said = false;
  for (size_t at = 0; at < join.settings_count; at++)
  {
    const std::string key = join.settings[at].key;
    const std::string value = join.settings[at].value;
    if (key == "shm_segment_bytes")
    {
      settings.shm_segment_bytes = parse_shm_segment_bytes(value);
      is_shm_said = true;
    }
    else if (key == "meet" && (value == "host" || value == "everybody"))
      settings.is_host_only = value == "host";
    else
      throw Failure(TSUJI_INVALID, key + "=\"" + value + "\" is no setting; allowed: shm_segment_bytes=BYTES, meet=host or everybody");
  }
  // The policy goes before the variable, which is not even read then.
  if (!is_shm_said)
    settings.shm_segment_bytes = shm_segment_bytes_asked_for();
  return settings;
}

std::string text_of(const in_addr &address)
{
  char text[INET_ADDRSTRLEN];
  inet_ntop(AF_INET, &address, text, sizeof(text));
  return text;
}

std::vector<std::string> addresses_of(const ifaddrs *all, const std::string &interface)
{
  std::vector<std::string> addresses;
  for (const ifaddrs *it = all; it != nullptr; it = it->ifa_next)
  {
    if (it->ifa_addr != nullptr && it->ifa_addr->sa_family == AF_INET && interface == it->ifa_name)
      addresses.push_back(text_of(reinterpret_cast<const sockaddr_in *>(it->ifa_addr)->sin_addr));
  }
  return addresses;
}

// The addresses of the interfaces to use; none leaves the choice to the engine.
std::vector<std::string> whitelist(const tsuji_join &join)
{
  if (join.host_only != 0)
    return {"127.0.0.1"};
  std::vector<std::string> allowed;
  if (join.interfaces_count == 0)
    return allowed;
  ifaddrs *all = nullptr;
  if (getifaddrs(&all) != 0)
    throw Failure(TSUJI_EXHAUSTED, std::string("the interfaces cannot be listed: ") + std::strerror(errno));
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs *)> freed(all, freeifaddrs);
  for (size_t at = 0; at < join.interfaces_count; at++)
  {
    const std::string interface = join.interfaces[at];
    const std::vector<std::string> addresses = addresses_of(all, interface);
    if (addresses.empty())
      throw Failure(TSUJI_INVALID, "there is no interface " + interface + " with an IPv4 address; allowed: those of this host");
    allowed.insert(allowed.end(), addresses.begin(), addresses.end());
  }
  return allowed;
}

// The addresses of a host; none where it is not known, since the others are met all the same. Asking may take as long as
// the system's resolver does.
std::vector<std::string> resolve(const std::string &host)
{
  const auto is_of_a_name = [](unsigned char it) { return std::isalnum(it) || std::strchr("-._", it) != nullptr; };
  if (host.empty() || !std::all_of(host.begin(), host.end(), is_of_a_name))
    throw Failure(TSUJI_INVALID, "look for \"" + host + "\"; allowed: a name or an IPv4 address");
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo *all = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &all); error != 0)
  {
    warn("a host is not looked for: " + host + ": " + gai_strerror(error));
    return {};
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo *)> freed(all, freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo *it = all; it != nullptr; it = it->ai_next)
    addresses.push_back(text_of(reinterpret_cast<const sockaddr_in *>(it->ai_addr)->sin_addr));
  return addresses;
}

// The addresses of the hosts to look for besides those that multicast finds.
std::vector<std::string> hosts(const tsuji_join &join)
{
  std::vector<std::string> addresses;
  for (size_t at = 0; at < join.hosts_count; at++)
  {
    const std::vector<std::string> found = resolve(join.hosts[at]);
    addresses.insert(addresses.end(), found.begin(), found.end());
  }
  if (join.host_only != 0)
    addresses.assign(join.hosts_count == 0 ? 0 : 1, "127.0.0.1");
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

// A locator with port 0 stands for the ports that the domain gives.
Locator_t locator(const std::string &address, uint32_t port)
{
  Locator_t it;
  it.kind = LOCATOR_KIND_UDPv4;
  IPLocator::setIPv4(it, address);
  it.port = port;
  return it;
}

void set_transports(DomainParticipantQos &qos, const tsuji_join &join, const Settings &settings)
{
  auto udp = std::make_shared<UDPv4TransportDescriptor>();
  udp->sendBufferSize = SOCKET_BUFFER_BYTES;
  udp->receiveBufferSize = SOCKET_BUFFER_BYTES;
  udp->TTL = join.host_only != 0 ? 0 : HOPS_MAX;
  udp->maxInitialPeersRange = PORTS_OF_A_HOST;
  udp->interfaceWhiteList = whitelist(join);
  qos.transport().use_builtin_transports = false;
  if (join.host_only != 0)
    qos.transport().user_transports.push_back(over_loopback(udp));
  else
    qos.transport().user_transports.push_back(udp);
  if (settings.shm_segment_bytes == 0)
    return;
  warn("the shared memory of Fast DDS is on; beside Fast DDS of another build it may end this process");
  reclaim_segments();
  auto shm = std::make_shared<SharedMemTransportDescriptor>();
  shm->segment_size(static_cast<uint32_t>(settings.shm_segment_bytes));
  // Datagrams by either transport are of the same size.
  shm->max_message_size(udp->max_message_size());
  shm->port_queue_capacity(SHM_PORT_MESSAGES);
  qos.transport().user_transports.push_back(shm);
}

void set_discovery(DomainParticipantQos &qos, const tsuji_join &join, const Settings &settings)
{
  auto &builtin = qos.wire_protocol().builtin;
  // The engine takes a host for its own where the first four bytes of the name are the same: two are of the vendor, and two
  // of the host's addresses.
  if (settings.is_host_only)
    builtin.discovery_config.ignoreParticipantFlags = rtps::FILTER_DIFFERENT_HOST;
  builtin.discovery_config.leaseDuration = {LEASE_S, 0u};
  builtin.discovery_config.leaseDuration_announcementperiod = {ANNOUNCE_S, 0u};
  // With addresses of one kind only the engine adds no multicast of its own.
  if (join.no_multicast != 0)
    builtin.metatrafficUnicastLocatorList.push_back(locator("0.0.0.0", 0));
  const std::vector<std::string> addresses = hosts(join);
  for (const std::string &address : addresses)
    builtin.initialPeersList.push_back(locator(address, 0));
  if (!addresses.empty() && join.no_multicast == 0)
    builtin.initialPeersList.push_back(locator(GROUP, PORT_BASE + DOMAIN_GAIN * join.domain));
}

// Where this process runs, in the words of Fast DDS and of Cyclone DDS.
void set_properties(DomainParticipantQos &qos)
{
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, HOST_NAME_MAX);
  const std::string pid = std::to_string(getpid());
  auto &properties = qos.properties().properties();
  properties.emplace_back(parameter_policy_physical_data_host, host);
  properties.emplace_back(parameter_policy_physical_data_process, pid);
  properties.emplace_back("__Hostname", host, true);
  properties.emplace_back("__ProcessName", program_invocation_short_name, true);
  properties.emplace_back("__Pid", pid, true);
}

DomainParticipantQos qos_of(const tsuji_join &join)
{
  DomainParticipantQos qos;
  const Settings settings = parse_settings(join);
  qos.name("tsuji");
  qos.user_data().data_vec(std::vector<unsigned char>(join.user_data, join.user_data + join.user_data_size));
  set_transports(qos, join, settings);
  set_discovery(qos, join, settings);
  set_properties(qos);
  // Samples go to each reader by itself. Where readers of two participants have one multicast address, the engine would send
  // to both by that, and what is for one of them to an address that it did not prepare; built with its statistics and with
  // assertions, as Debian's is, it ends the process for that.
  qos.allocation().locators.max_multicast_locators = 0;
  return qos;
}

std::mutex numbers_mutex;
std::set<int32_t> numbers;
int32_t number_next = 0;

// Another user of the same libfastrtps.so may have the number: then the engine chooses.
DomainParticipant *create_participant(const tsuji_join &join, int32_t number, DomainParticipantListener &listener)
{
  DomainParticipantQos qos = qos_of(join);
  auto *factory = DomainParticipantFactory::get_instance();
  for (const int32_t id : {number, -1})
  {
    {
      const std::lock_guard<std::mutex> lock(complaints_mutex);
      complaints.clear();
    }
    qos.wire_protocol().participant_id = id;
    // Without the mask the listener would take what is for readers.
    auto *participant = factory->create_participant(join.domain, qos, &listener, StatusMask::none());
    if (participant != nullptr)
      return participant;
  }
  return nullptr;
}

}  // namespace

Number::Number()
{
  const std::lock_guard<std::mutex> lock(numbers_mutex);
  for (int32_t tried = 0; tried < NUMBERS; tried++)
  {
    const int32_t number = number_next;
    number_next = (number_next + 1) % NUMBERS;
    if (!numbers.insert(number).second)
      continue;
    id_ = number;
    return;
  }
}

Number::~Number()
{
  const std::lock_guard<std::mutex> lock(numbers_mutex);
  numbers.erase(id_);
}

void check_user_data(size_t size)
{
  if (USER_DATA_BYTES_MAX < size)
  {
    throw Failure(TSUJI_TOO_LARGE,
      "user data of " + std::to_string(size) + " bytes; at most " + std::to_string(USER_DATA_BYTES_MAX));
  }
}

Participant::Participant(const tsuji_join &join)
{
  if (DOMAIN_MAX < join.domain)
    throw Failure(TSUJI_INVALID, "domain " + std::to_string(join.domain) + "; allowed: 0 to 232");
  check_user_data(join.user_data_size);
  refuse_discovery_server();
  if (join.log != nullptr)
    log_line = join.log;
  prepare_library();
  if (&eprosima::SystemInfo::update_interfaces != nullptr)
    eprosima::SystemInfo::update_interfaces();
  participant_ = create_participant(join, number_.id(), directory_);
  if (participant_ == nullptr)
    throw Failure(TSUJI_UNEXPECTED, "Fast DDS makes no participant" + complaints_so_far());
  {
    const std::lock_guard<std::mutex> lock(live_mutex);
    live.insert(participant_);
  }
  name_ = name_of(participant_->guid());
  publisher_ = participant_->create_publisher(PUBLISHER_QOS_DEFAULT);
  subscriber_ = participant_->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
  if (publisher_ != nullptr && subscriber_ != nullptr)
    return;
  end();
  throw Failure(TSUJI_UNEXPECTED, "Fast DDS makes no publisher or no subscriber" + complaints_so_far());
}

Participant::~Participant() { end(); }

void Participant::end()
{
  {
    const std::lock_guard<std::mutex> lock(live_mutex);
    live.erase(participant_);
  }
  silence(*participant_);
  participant_->delete_contained_entities();
  DomainParticipantFactory::get_instance()->delete_participant(participant_);
}

Topic *Participant::topic(const std::string &name, const std::string &type)
{
  const std::lock_guard<std::mutex> lock(topics_mutex_);
  for (auto &[topic, users] : topic_users_)
  {
    if (topic->get_name() != name)
      continue;
    if (topic->get_type_name() != type)
      throw Failure(TSUJI_INVALID, name + " is of type " + topic->get_type_name() + " here; allowed: one type for a topic");
    users++;
    return topic;
  }
  if (participant_->find_type(type).empty())
    TypeSupport(new RawType(type)).register_type(participant_);
  Topic *topic = participant_->create_topic(name, type, TOPIC_QOS_DEFAULT);
  if (topic == nullptr)
    throw Failure(TSUJI_UNEXPECTED, "Fast DDS makes no topic " + name + complaints_so_far());
  topic_users_[topic] = 1;
  return topic;
}

void Participant::give_back(Topic *topic)
{
  const std::lock_guard<std::mutex> lock(topics_mutex_);
  const auto it = topic_users_.find(topic);
  if (--it->second == 0)
  {
    topic_users_.erase(it);
    participant_->delete_topic(topic);
  }
}

}  // namespace tsuji

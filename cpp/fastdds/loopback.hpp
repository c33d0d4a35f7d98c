// UDP where loopback alone is allowed.
#pragma once

#include <memory>

#include "release.hpp"

#if TSUJI_FASTDDS_MAJOR < 3
#include <fastdds/rtps/transport/ChainingTransport.h>
#include <fastdds/rtps/transport/ChainingTransportDescriptor.h>
#include <fastdds/rtps/transport/TransportReceiverInterface.h>
#endif

namespace tsuji {

using UdpDescriptor = std::shared_ptr<eprosima::fastdds::rtps::TransportDescriptorInterface>;

#if TSUJI_FASTDDS_MAJOR < 3
// Participants of this host may announce its other addresses alone. Fast DDS 2.9 drops these and never answers, where later
// ones take loopback for them.
class Loopback : public eprosima::fastdds::rtps::ChainingTransport {
 public:
  using ChainingTransport::ChainingTransport;

  bool transform_remote_locator(const rtps::Locator_t &remote, rtps::Locator_t &result) const override
  {
    if (low_level_transport_->transform_remote_locator(remote, result))
      return true;
    if (!low_level_transport_->IsLocatorSupported(remote) || !low_level_transport_->is_local_locator(remote))
      return false;
    result = remote;
    rtps::IPLocator::setIPv4(result, 127, 0, 0, 1);
    return true;
  }

  eprosima::fastdds::rtps::TransportDescriptorInterface *get_configuration() override
  {
    return low_level_transport_->get_configuration();
  }

  bool send(rtps::SenderResource *sender, const rtps::octet *data, uint32_t size, rtps::LocatorsIterator *begin,
    rtps::LocatorsIterator *end, const std::chrono::steady_clock::time_point &timeout) override
  {
    return sender->send(data, size, begin, end, timeout);
  }

  void receive(eprosima::fastdds::rtps::TransportReceiverInterface *next, const rtps::octet *data, uint32_t size,
    const rtps::Locator_t &local, const rtps::Locator_t &remote) override
  {
    next->OnDataReceived(data, size, local, remote);
  }
};

struct LoopbackDescriptor : public eprosima::fastdds::rtps::ChainingTransportDescriptor {
  using ChainingTransportDescriptor::ChainingTransportDescriptor;

  eprosima::fastdds::rtps::TransportInterface *create_transport() const override { return new Loopback(*this); }
};

inline UdpDescriptor over_loopback(UdpDescriptor udp) { return std::make_shared<LoopbackDescriptor>(std::move(udp)); }
#else
inline UdpDescriptor over_loopback(UdpDescriptor udp) { return udp; }
#endif

}  // namespace tsuji

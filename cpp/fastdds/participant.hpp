// A participant and what its endpoints share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>

#include "directory.hpp"
#include "ear.hpp"
#include "name.hpp"

namespace tsuji {

// Of its number the engine makes a participant's ports and its name. It would count on for as long as the process lives, into
// the ports of other domains. A number that was given back is the last to be given again: nobody must take a participant for
// one that has just left.
class Number {
 public:
  Number();
  ~Number();
  Number(const Number &) = delete;
  Number &operator=(const Number &) = delete;

  // -1, which leaves it to the engine, where there is none left.
  int32_t id() const { return id_; }

 private:
  int32_t id_ = -1;
};

// Fast DDS is one for a process: another user of the same libfastrtps.so there, if there is one, shares its log and its
// setting that samples between two participants of a process go over the network too.
class Participant {
 public:
  explicit Participant(const tsuji_join &join);
  ~Participant();
  Participant(const Participant &) = delete;
  Participant &operator=(const Participant &) = delete;

  const Name &name() const { return name_; }
  Herald &herald() { return herald_; }
  Directory &directory() { return directory_; }
  eprosima::fastdds::dds::Publisher *publisher() { return publisher_; }
  eprosima::fastdds::dds::Subscriber *subscriber() { return subscriber_; }

  // The topic of this name, which a participant has once; endpoints count on it until they give it back.
  eprosima::fastdds::dds::Topic *topic(const std::string &name, const std::string &type);
  void give_back(eprosima::fastdds::dds::Topic *topic);

 private:
  void end();

  Number number_;
  // In this order: what listens is there before the participant, and after it.
  Herald herald_;
  Directory directory_{herald_};
  eprosima::fastdds::dds::DomainParticipant *participant_ = nullptr;
  eprosima::fastdds::dds::Publisher *publisher_ = nullptr;
  eprosima::fastdds::dds::Subscriber *subscriber_ = nullptr;
  Name name_{};
  std::mutex topics_mutex_;
  std::map<eprosima::fastdds::dds::Topic *, size_t> topic_users_;
};

// RTPS counts the bytes of a parameter in 16 bits, and all that is announced of an endpoint is one datagram.
void check_user_data(size_t size);

}  // namespace tsuji

// Writers and readers of raw CDR.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>

#include "ear.hpp"
#include "name.hpp"
#include "participant.hpp"

namespace tsuji {

// The endpoints of others that match. The engine only tells of changes. Those of the own participant match too, which
// this engine cannot be told to leave alone; they are not among them.
class Matches {
 public:
  explicit Matches(const Name &own) : own_(own) {}

  // Whether the set changed.
  bool note(const Name &name, int32_t change);
  void each(void *arg, tsuji_each_fn call) const;

 private:
  const Name own_;
  mutable std::mutex mutex_;
  std::vector<Name> names_;
};

class Writer : public eprosima::fastdds::dds::DataWriterListener {
 public:
  Writer(Participant &participant, const tsuji_endpoint &endpoint);
  ~Writer() override;

  const Name &name() const { return name_; }
  const Matches &matches() const { return matches_; }
  void listen(const tsuji_ear *ear) { errand_->ear.open(ear); }
  // Copies the bytes.
  void write(const unsigned char *data, size_t size, int64_t source_ns, const tsuji_related *related);
  bool is_acknowledged(int64_t timeout_ns);

  void on_publication_matched(
    eprosima::fastdds::dds::DataWriter *, const eprosima::fastdds::dds::PublicationMatchedStatus &info) override;

 private:
  Participant &participant_;
  const bool is_reliable_;
  std::shared_ptr<Herald::Errand> errand_ = std::make_shared<Herald::Errand>(&Ear::match);
  Matches matches_;
  eprosima::fastdds::dds::Topic *topic_;
  eprosima::fastdds::dds::DataWriter *writer_;
  Name name_{};
};

// What arrives is taken from the engine at once. So `take` needs no lock of the engine, under which it calls; and what
// waits in the engine for an earlier sample to arrive again takes no room that the depth gives.
class Reader : public eprosima::fastdds::dds::DataReaderListener {
 public:
  Reader(Participant &participant, const tsuji_endpoint &endpoint);
  ~Reader() override;

  const Name &name() const { return name_; }
  const Matches &matches() const { return matches_; }
  void listen(const tsuji_ear *ear) { errand_->ear.open(ear); }
  bool take(tsuji_taken &taken);

  void on_data_available(eprosima::fastdds::dds::DataReader *reader) override;
  void on_subscription_matched(
    eprosima::fastdds::dds::DataReader *, const eprosima::fastdds::dds::SubscriptionMatchedStatus &info) override;

 private:
  void keep(std::vector<tsuji_taken> &arrived);

  Participant &participant_;
  // Of samples that are not taken; beyond it the oldest are dropped. Without one all are kept, as tsuji takes them at once.
  const size_t depth_;
  std::shared_ptr<Herald::Errand> errand_ = std::make_shared<Herald::Errand>(&Ear::match);
  Matches matches_;
  std::mutex arrived_mutex_;
  std::deque<tsuji_taken> arrived_;
  eprosima::fastdds::dds::Topic *topic_;
  eprosima::fastdds::dds::DataReader *reader_;
  Name name_{};
};

}  // namespace tsuji

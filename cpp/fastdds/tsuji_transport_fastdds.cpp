// The transport over Fast DDS: what tsuji_transport.h asks for, turned into the classes beside this file and back.
//
// It decides nothing, and knows neither ROS nor messages.

#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "directory.hpp"
#include "endpoints.hpp"
#include "failure.hpp"
#include "participant.hpp"
#include "sample.hpp"
#include "tsuji_transport.h"

struct tsuji_participant : tsuji::Participant {
  using Participant::Participant;
};

struct tsuji_writer : tsuji::Writer {
  using Writer::Writer;
};

struct tsuji_reader : tsuji::Reader {
  using Reader::Reader;
};

struct tsuji_watch : tsuji::Watch {
  explicit tsuji_watch(tsuji::Directory &directory) : directory(directory) {}

  tsuji::Directory &directory;
};

namespace {

using tsuji::Failure;
using tsuji::Name;

void say(char *problem, const char *words)
{
  if (problem == nullptr)
    return;
  std::strncpy(problem, words, TSUJI_PROBLEM_BYTES - 1);
  problem[TSUJI_PROBLEM_BYTES - 1] = '\0';
}

// What `run` answers, or the error for what it throws.
template <typename Run>
int32_t guard(char *problem, Run run) noexcept
{
  try
  {
    return run();
  }
  catch (const Failure &failure)
  {
    say(problem, failure.what());
    return failure.error;
  }
  catch (const std::bad_alloc &)
  {
    say(problem, "no memory");
    return TSUJI_EXHAUSTED;
  }
  catch (const std::exception &exception)
  {
    say(problem, exception.what());
    return TSUJI_UNEXPECTED;
  }
  catch (...)
  {
    say(problem, "an exception of no known type");
    return TSUJI_UNEXPECTED;
  }
}

void put(const Name &name, unsigned char *to) { std::copy(name.begin(), name.end(), to); }

int32_t join(const tsuji_join *join, tsuji_participant **participant, char *problem)
{
  return guard(problem, [&] {
    *participant = new tsuji_participant(*join);
    return 0;
  });
}

void leave(tsuji_participant *participant)
{
  guard(nullptr, [&] {
    delete participant;
    return 0;
  });
}

void participant_name(const tsuji_participant *participant, unsigned char *name) { put(participant->name(), name); }

int32_t open_writer(tsuji_participant *participant, const tsuji_endpoint *endpoint, tsuji_writer **writer, char *problem)
{
  return guard(problem, [&] {
    *writer = new tsuji_writer(*participant, *endpoint);
    return 0;
  });
}

void close_writer(tsuji_writer *writer)
{
  guard(nullptr, [&] {
    delete writer;
    return 0;
  });
}

void writer_name(const tsuji_writer *writer, unsigned char *name) { put(writer->name(), name); }

int32_t listen_writer(tsuji_writer *writer, const tsuji_ear *ear)
{
  return guard(nullptr, [&] {
    writer->listen(ear);
    return 0;
  });
}

int32_t write(tsuji_writer *writer, const unsigned char *data, size_t size, int64_t source_ns, const tsuji_related *related,
  void *owner, void (*release)(void *owner))
{
  const int32_t result = guard(nullptr, [&] {
    writer->write(data, size, source_ns, related);
    return 0;
  });
  release(owner);
  return result;
}

int32_t acknowledged(tsuji_writer *writer, int64_t timeout_ns)
{
  return guard(nullptr, [&] { return writer->is_acknowledged(timeout_ns) ? 1 : 0; });
}

int32_t writer_matches(const tsuji_writer *writer, void *arg, tsuji_each_fn each)
{
  return guard(nullptr, [&] {
    writer->matches().each(arg, each);
    return 0;
  });
}

int32_t open_reader(tsuji_participant *participant, const tsuji_endpoint *endpoint, tsuji_reader **reader, char *problem)
{
  return guard(problem, [&] {
    *reader = new tsuji_reader(*participant, *endpoint);
    return 0;
  });
}

void close_reader(tsuji_reader *reader)
{
  guard(nullptr, [&] {
    delete reader;
    return 0;
  });
}

void reader_name(const tsuji_reader *reader, unsigned char *name) { put(reader->name(), name); }

int32_t listen_reader(tsuji_reader *reader, const tsuji_ear *ear)
{
  return guard(nullptr, [&] {
    reader->listen(ear);
    return 0;
  });
}

int32_t take(tsuji_reader *reader, tsuji_taken *taken)
{
  return guard(nullptr, [&] { return reader->take(*taken) ? 1 : 0; });
}

int32_t reader_matches(const tsuji_reader *reader, void *arg, tsuji_each_fn each)
{
  return guard(nullptr, [&] {
    reader->matches().each(arg, each);
    return 0;
  });
}

int32_t open_watch(tsuji_participant *participant, const tsuji_ear *ear, tsuji_watch **watch, char *problem)
{
  return guard(problem, [&] {
    auto opened = std::make_unique<tsuji_watch>(participant->directory());
    opened->errand->ear.open(ear);
    opened->directory.open(opened.get());
    *watch = opened.release();
    return 0;
  });
}

void close_watch(tsuji_watch *watch)
{
  guard(nullptr, [&] {
    watch->directory.close(watch);
    watch->errand->ear.close();
    delete watch;
    return 0;
  });
}

const char *text_or_null(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

int32_t found(tsuji_watch *watch, tsuji_found *found)
{
  return guard(nullptr, [&] {
    auto held = std::make_unique<std::shared_ptr<const tsuji::Entry>>();
    Name name;
    if (!watch->directory.take(watch, name, *held))
      return 0;
    *found = tsuji_found{};
    put(name, found->name);
    if (*held == nullptr)
      return 1;
    const tsuji::Entry &entry = **held;
    found->kind = entry.kind;
    std::copy(entry.vendor.begin(), entry.vendor.end(), found->vendor);
    found->topic = text_or_null(entry.topic);
    found->type = text_or_null(entry.type);
    found->user_data = entry.user_data.data();
    found->user_data_size = entry.user_data.size();
    found->host = text_or_null(entry.host);
    found->program = text_or_null(entry.program);
    found->pid = entry.pid;
    found->qos = entry.qos;
    found->memory = held.release();
    return 1;
  });
}

void found_free(tsuji_found *found) { delete static_cast<std::shared_ptr<const tsuji::Entry> *>(found->memory); }

// The function of this name hides the structure.
const struct tsuji_transport TABLE = {
  TSUJI_TRANSPORT_ABI,
  sizeof(struct tsuji_transport),
  "fastdds",
  TSUJI_FASTDDS_VERSION,
  TSUJI_SCOPE_LOCAL | TSUJI_SCOPE_REMOTE,
  TSUJI_PEERS_CYCLONEDDS | TSUJI_PEERS_FASTDDS | TSUJI_PEERS_OTHER,
  TSUJI_RELATES,
  tsuji::SAMPLE_BYTES_MAX,
  join,
  leave,
  participant_name,
  open_writer,
  close_writer,
  writer_name,
  listen_writer,
  write,
  acknowledged,
  writer_matches,
  open_reader,
  close_reader,
  reader_name,
  listen_reader,
  take,
  tsuji::sample_free,
  reader_matches,
  open_watch,
  close_watch,
  found,
  found_free,
};

}  // namespace

const struct tsuji_transport *tsuji_transport(void) { return &TABLE; }

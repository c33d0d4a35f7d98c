// Nodes and nodelets of ROS 1 that the laboratory of tsuji measures beside tsuji. It speaks with the laboratory as the
// laboratory's own children do: a line of JSON says what to play, lines on the standard input what to do.
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "answers.hpp"
#include "bridge.hpp"
#include "fields.hpp"
#include "master.hpp"
#include "pictures.hpp"
#include "texts.hpp"

namespace {

constexpr char USAGE[] = "usage: tsuji-lab-ros1 [--tcp-nodelay] --child|--speaker|--bridge-part|--master JSON; `tsuji lab` starts it";

void play(std::vector<std::string> words)
{
  const bool has_no_delay = !words.empty() && words.front() == "--tcp-nodelay";
  if (has_no_delay)
    words.erase(words.begin());
  if (words.size() != 2)
    throw std::runtime_error(USAGE);
  const tsuji::Fields fields(words[1]);
  if (words[0] == "--child")
    tsuji::play_pictures(fields);
  else if (words[0] == "--speaker")
    tsuji::play_texts(fields, has_no_delay);
  else if (words[0] == "--bridge-part")
    tsuji::play_beside_bridge(fields);
  else if (words[0] == "--master")
    tsuji::play_master();
  else
    throw std::runtime_error(USAGE);
}

}  // namespace

int main(int count, char **words)
{
  try
  {
    tsuji::keep_output_for_answers();
    play({words + 1, words + count});
    return 0;
  }
  catch (const std::exception &error)
  {
    tsuji::answer_failure(error.what());
    return 1;
  }
}

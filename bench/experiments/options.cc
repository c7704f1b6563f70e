// SPDX-License-Identifier: Apache-2.0
#include "bench/experiments/options.h"

#include <cerrno>
#include <cstdlib>
#include <map>

#include "bench/experiments/work.h"

namespace experiments {
namespace {

bool Number(const std::string& text, double least, double most, double* value) {
  errno = 0;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || errno != 0 || !(number >= least && number <= most)) return false;
  *value = number;
  return true;
}

}  // namespace

const char kUsage[] =
    "--work matmul|sobel|binomial|madd [--size N] [--rounds N] [--columns N] --seconds S | --repeat N | --slots N "
    "--slot-ms X --side 0|1\n"
    "  [--period-ms X] [--delay-ms X] [--think-us X] [--seed N] [--depth N] [--warm N] [--start FILE] [--until FILE] "
    "[--device TEXT]\n"
    "Prints 'ready' on stderr, waits for the start, launches, and prints one JSON object.\n";

std::string Parse(int argc, char** argv, Options* options) {
  struct Field {
    int* integer;
    double* number;
    double least, most;
  };
  int seed = 1;
  const std::map<std::string, Field> numbers = {
      {"--size", {&options->size, nullptr, 1, 131072}},
      {"--rounds", {&options->rounds, nullptr, 1, 1e9}},
      {"--columns", {&options->columns, nullptr, 1, kGroup}},
      {"--repeat", {&options->repeat, nullptr, 1, 1e6}},
      {"--slots", {&options->slots, nullptr, 2, 1e6}},
      {"--side", {&options->side, nullptr, 0, 1}},
      {"--slot-ms", {nullptr, &options->slot_ms, 1, 1e6}},
      {"--depth", {&options->depth, nullptr, 1, 64}},
      {"--warm", {&options->warm, nullptr, 0, 1000}},
      {"--seed", {&seed, nullptr, 0, 1e9}},
      {"--seconds", {nullptr, &options->seconds, 0.001, 86400}},
      {"--period-ms", {nullptr, &options->period_ms, 0.01, 1e6}},
      {"--delay-ms", {nullptr, &options->delay_ms, 0, 1e6}},
      {"--think-us", {nullptr, &options->think_us, 0, 1e9}},
  };
  const std::map<std::string, std::string*> texts = {{"--work", &options->work},
                                                     {"--start", &options->start},
                                                     {"--until", &options->until},
                                                     {"--device", &options->device}};
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 >= argc) return name + " wants a value";
    const std::string value = argv[i + 1];
    if (const auto text = texts.find(name); text != texts.end()) {
      *text->second = value;
      continue;
    }
    const auto found = numbers.find(name);
    if (found == numbers.end()) return "unknown option " + name;
    const Field& field = found->second;
    double number = 0;
    if (!Number(value, field.least, field.most, &number)) return name + " cannot be '" + value + "'";
    if (field.integer != nullptr) *field.integer = static_cast<int>(number);
    if (field.number != nullptr) *field.number = number;
  }
  options->seed = static_cast<unsigned>(seed);
  if (kGroup % options->columns != 0) return "--columns must divide 64";
  if (options->seconds == 0 && options->repeat == 0 && options->slots == 0) {
    return "one of --seconds, --repeat and --slots must be there";
  }
  if (options->slots != 0 && options->slot_ms == 0) return "--slots wants --slot-ms";
  if (!options->until.empty() && options->repeat == 0) return "--until wants --repeat";
  return {};
}

}  // namespace experiments

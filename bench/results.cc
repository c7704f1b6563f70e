// SPDX-License-Identifier: Apache-2.0
#include "bench/results.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "bench/samples.h"
#include "bench/targets.h"

namespace hawser::bench {
namespace {

using wire::Transport;

std::string ValueOf(const std::string& path, const std::string& key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    size_t begin = line.find_first_not_of(" \t\"", at + 1);
    if (begin == std::string::npos) return "";
    size_t end = line.find_last_not_of(" \t\"");
    return line.substr(begin, end - begin + 1);
  }
  return "";
}

}  // namespace

MachineFacts MachineFacts::Read() {
  MachineFacts facts;
  facts.processor = ValueOf("/proc/cpuinfo", "model name", ':');
  facts.cores = std::thread::hardware_concurrency();
  facts.memory_gib =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)) / double(1u << 30);
  utsname name{};
  if (uname(&name) == 0) facts.kernel = std::string(name.sysname) + " " + name.release;
  facts.distribution = ValueOf("/etc/os-release", "PRETTY_NAME=", '=');
  double load[1] = {0};
  if (getloadavg(load, 1) == 1) facts.load_before = load[0];
  return facts;
}

const Row* OpenClResults::Find(const std::string& id) const {
  for (const Row& row : rows) {
    if (row.spec.id == id) return &row;
  }
  return nullptr;
}

namespace {

bool InPairs(const Row& row, const RemoteValue& value) {
  return row.native_rounds.size() == value.rounds.size() && value.rounds.size() >= 3;
}

double MedianRatio(const Row& row, const RemoteValue& value) {
  std::vector<double> ratios;
  for (size_t i = 0; i < value.rounds.size(); ++i) {
    if (row.native_rounds[i] > 0) ratios.push_back(value.rounds[i] / row.native_rounds[i]);
  }
  return Median(ratios);
}

bool MostPairsMeet(const Row& row, const RemoteValue& value, Transport transport, const RawTransport* raw) {
  size_t met = 0;
  for (size_t i = 0; i < value.rounds.size(); ++i) {
    const auto target = TargetFor(row.spec.id, transport, row.native_rounds[i], value.rounds[i], raw);
    if (target && target->met) ++met;
  }
  return 2 * met >= value.rounds.size();
}

}  // namespace

void Finish(OpenClResults& results) {
  for (Row& row : results.rows) {
    if (!row.native_rounds.empty()) row.native = Median(row.native_rounds);
    for (auto& [transport, value] : row.remote) {
      value.median = Median(value.rounds);
      const auto found = results.raw.find(transport);
      const RawTransport* raw = found == results.raw.end() ? nullptr : &found->second;
      if (row.native && *row.native > 0) value.ratio = value.median / *row.native;
      value.target = TargetFor(row.spec.id, transport, row.native, value.median, raw);
      if (!row.native || !InPairs(row, value)) continue;
      if (*row.native > 0) value.ratio = MedianRatio(row, value);
      if (value.target) value.target->met = MostPairsMeet(row, value, transport, raw);
    }
  }
}

}  // namespace hawser::bench

// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include "softcuda/driver/log.h"

namespace hawser::soft {
namespace {

constexpr uint64_t kDefaultBase = 0x2000'0000'0000;
constexpr uint64_t kDefaultRange = uint64_t{1} << 40;
constexpr uint64_t kMostDefaultMemory = uint64_t{8} << 30;
constexpr int kMostDevices = 16;

/// The number in variable `name`, or `fallback`. Suffixes K, M, G, T. `base` as for strtoull.
uint64_t Number(const char* name, uint64_t fallback, uint64_t least, uint64_t most, int base = 10) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return fallback;
  char* end = nullptr;
  uint64_t value = std::strtoull(text, &end, base);
  uint64_t factor = 1;
  switch (*end) {
    case 'T':
      factor <<= 10;
      [[fallthrough]];
    case 'G':
      factor <<= 10;
      [[fallthrough]];
    case 'M':
      factor <<= 10;
      [[fallthrough]];
    case 'K':
      factor <<= 10;
      ++end;
      break;
    default:
      break;
  }
  const bool fits = value <= UINT64_MAX / factor;
  value *= factor;
  if (end == text || *end != '\0' || !fits || value < least || value > most) {
    Log(std::string(name) + "=" + text + " is not usable; the default is taken");
    return fallback;
  }
  return value;
}

uint64_t DefaultMemory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return kMostDefaultMemory;
  const uint64_t half = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) / 2;
  return std::min(half, kMostDefaultMemory) >> 21 << 21;  // Whole chunks of 2 MiB.
}

void ReadCapability(Settings* settings) {
  const char* const text = std::getenv("HAWSER_SOFT_CC");
  if (text == nullptr || *text == '\0') return;
  int major = 0;
  int minor = 0;
  char rest = 0;
  if (std::sscanf(text, "%2d.%1d%c", &major, &minor, &rest) != 2 || major < 3 || major > 12 || minor < 0) {
    Log(std::string("HAWSER_SOFT_CC=") + text + " is no compute capability such as 9.0; the default is taken");
    return;
  }
  settings->capability_major = major;
  settings->capability_minor = minor;
}

ProcessorSet ReadProcessors() {
  const char* const text = std::getenv("HAWSER_SOFT_PROCESSORS");
  if (text == nullptr || *text == '\0') return {};
  const std::optional<ProcessorSet> set = ProcessorSet::Parse(text);
  if (set && set->Usable()) return *set;
  Log(std::string("HAWSER_SOFT_PROCESSORS=") + text +
      (set ? " are none of this machine's or not for this process" : " is no list of processors such as 2-5,8") +
      "; the device uses those of its process");
  return {};
}

Settings Read() {
  Settings settings;
  settings.devices = static_cast<int>(Number("HAWSER_SOFT_DEVICES", 1, 0, kMostDevices));
  ReadCapability(&settings);
  settings.memory = Number("HAWSER_SOFT_MEMORY", DefaultMemory(), uint64_t{1} << 20, uint64_t{1} << 42);
  settings.processors = ReadProcessors();
  const unsigned processors = settings.processors.count() != 0 ? settings.processors.count()
                                                               : std::max(1U, std::thread::hardware_concurrency());
  settings.threads = static_cast<unsigned>(Number("HAWSER_SOFT_THREADS", processors, 1, 1024));
  settings.base = Number("HAWSER_SOFT_BASE", kDefaultBase, uint64_t{1} << 32, uint64_t{1} << 47, 16);
  settings.range = Number("HAWSER_SOFT_RANGE", kDefaultRange, uint64_t{1} << 30, uint64_t{1} << 45);
  return settings;
}

}  // namespace

const Settings& GetSettings() {
  static const Settings settings = Read();
  return settings;
}

}  // namespace hawser::soft

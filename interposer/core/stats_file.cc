// SPDX-License-Identifier: Apache-2.0
// Runs during exit(), from any thread, while others may still work: no locks, nothing that was destroyed already.
#include "interposer/core/stats_file.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "interposer/core/log.h"

namespace hawser::guest {
namespace {

std::atomic<const Stats*> g_stats{nullptr};
char g_path[PATH_MAX];

__attribute__((destructor)) void Write() {
  const Stats* stats = g_stats.load(std::memory_order_acquire);
  if (stats == nullptr) return;
  const int fd = ::open(g_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    Log(LogLevel::kWarning, "cannot write the statistics $HAWSER_STATS='%s': %s", g_path, std::strerror(errno));
    return;
  }
  const std::string text = StatsJson(*stats) + "\n";
  (void)!::write(fd, text.data(), text.size());
  ::close(fd);
}

}  // namespace

std::string StatsJson(const Stats& stats) {
  const std::pair<const char*, const std::atomic<uint64_t>*> counters[] = {
      {"commands", &stats.commands}, {"bytes_up", &stats.bytes_up}, {"bytes_down", &stats.bytes_down},
      {"waits", &stats.waits},       {"bulk_up", &stats.bulk_up},   {"bulk_down", &stats.bulk_down},
  };
  std::string text;
  for (const auto& [name, counter] : counters) {
    text += text.empty() ? "{\"" : ",\"";
    text += name;
    text += "\":" + std::to_string(counter->load(std::memory_order_relaxed));
  }
  return text + "}";
}

void WriteStatsAtExit(const std::string& path, const Stats* stats) {
  if (path.empty()) return;
  if (path.size() >= sizeof(g_path)) {
    Log(LogLevel::kWarning, "the path $HAWSER_STATS is longer than the system allows; going on without");
    return;
  }
  std::memcpy(g_path, path.c_str(), path.size() + 1);
  g_stats.store(stats, std::memory_order_release);
}

void ForgetStatsAfterFork() { g_stats.store(nullptr, std::memory_order_relaxed); }

}  // namespace hawser::guest

// SPDX-License-Identifier: Apache-2.0
#include "bench/catalogue.h"

#include <algorithm>

namespace hawser::bench {
namespace {

constexpr size_t kKiB = 1u << 10, kMiB = 1u << 20;

int Repetitions(size_t size, bool quick) {
  // As many as move about 64 MiB (32 when quick), within bounds that keep the small sizes short.
  const size_t wanted = (quick ? 32 : 64) * kMiB / size;
  return static_cast<int>(std::clamp<size_t>(wanted, quick ? 1 : 2, 300));
}

}  // namespace

std::string SizeName(size_t bytes) {
  if (bytes >= kMiB) return std::to_string(bytes / kMiB) + "MiB";
  return std::to_string(bytes / kKiB) + "KiB";
}

std::vector<size_t> BandwidthSizes() { return {4 * kKiB, 64 * kKiB, kMiB, 16 * kMiB, 256 * kMiB}; }

std::vector<Measurement> Catalogue(bool quick) {
  const int many = 1000, blocks = quick ? 1 : 4;
  std::vector<Measurement> list;
  list.push_back({{{"measure", "launch_finish"}, {"iterations", many}},
                  {{"p50_us", {"launch_finish_p50", "launch + finish, p50", "us"}},
                   {"p99_us", {"launch_finish_p99", "launch + finish, p99", "us"}}},
                  blocks});
  list.push_back({{{"measure", "launch_burst"}, {"iterations", 10000}},
                  {{"launches_per_s", {"launch_burst_rate", "10,000 launches, then finish", "1/s", Better::kHigher}},
                   {"enqueue_us", {"launch_burst_enqueue", "the guest's part of such a launch", "us"}}}});
  list.push_back({{{"measure", "set_arguments"}, {"iterations", quick ? 20000 : 100000}},
                  {{"set_arg_us", {"set_arg", "setting an argument", "us"}}}});
  list.push_back({{{"measure", "read_small"}, {"iterations", many}},
                  {{"p50_us", {"read_small_p50", "4-byte blocking read, p50", "us"}},
                   {"p99_us", {"read_small_p99", "4-byte blocking read, p99", "us"}}},
                  blocks});
  list.push_back({{{"measure", "step"}, {"iterations", many / 2}},
                  {{"p50_us", {"step_p50", "write 4 KiB, 2 kernels, read 64 B, p50", "us"}},
                   {"p99_us", {"step_p99", "write 4 KiB, 2 kernels, read 64 B, p99", "us"}},
                   {"waits", {"step_waits", "waits per step", "", Better::kLower, true}},
                   {"up_bytes", {"step_up_bytes", "bytes to the server per step", "bytes", Better::kLower, true}},
                   {"down_bytes", {"step_down_bytes", "bytes back per step", "bytes", Better::kLower, true}}},
                  blocks});
  list.push_back({{{"measure", "write_burst"}, {"iterations", quick ? 4000 : 16000}},
                  {{"writes_per_s", {"write_burst_rate", "pipelined 4 KiB writes", "1/s", Better::kHigher}}}});
  list.push_back({{{"measure", "create_release"}, {"iterations", quick ? 10000 : 50000}},
                  {{"pair_us", {"create_release", "create and release a buffer", "us"}},
                   {"waits", {"create_release_waits", "waits per such a pair", "", Better::kLower, true}}}});
  for (const char* memory : {"pageable", "mapped"}) {
    for (const char* direction : {"h2d", "d2h"}) {
      for (const size_t size : BandwidthSizes()) {
        const std::string id = std::string(direction) + "_" + memory + "_" + SizeName(size);
        const std::string title = std::string(direction[0] == 'h' ? "H2D " : "D2H ") + memory + ", " + SizeName(size);
        list.push_back({{{"measure", "bandwidth"},
                         {"direction", direction},
                         {"memory", memory},
                         {"size", size},
                         {"iterations", Repetitions(size, quick)}},
                        {{"gib_s", {id, title, "GiB/s", Better::kHigher}}}});
      }
    }
  }
  return list;
}

BuildRows ProgramBuildRows() {
  return {{"build_cold", "program build, cold", "ms"},
          {"build_cold_launch", "first launch after a cold build", "ms"},
          {"build_cached", "program build, a second process", "ms"},
          {"build_cached_launch", "first launch in a second process", "ms"}};
}

NeighbourRows StallRows() {
  return {{"stall_killed", "longest launch + finish while a neighbour is killed", "us"},
          {"stall_wild", "the same while its kernel writes out of bounds", "us"},
          {"stall_garbage", "the same while 1 MiB of garbage comes in", "us"}};
}

RowSpec PreloadRow() { return {"preload", "a program that uses no GPU, with the library preloaded", "us"}; }

bool IsChosen(const std::vector<std::string>& only, const std::string& id) {
  return only.empty() ||
         std::any_of(only.begin(), only.end(), [&](const std::string& word) { return id.rfind(word, 0) == 0; });
}

}  // namespace hawser::bench

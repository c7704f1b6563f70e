// SPDX-License-Identifier: Apache-2.0
#include "bench/experiments/runner.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <deque>
#include <random>

namespace experiments {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr double kTolerance = 1e-3;

int64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

void SleepUntil(int64_t when) {
  const timespec until{when / kSecond, when % kSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

// The file is complete when its line is.
int64_t CommonStart(const std::string& file) {
  if (file.empty()) return Now();
  for (;;) {
    if (std::FILE* opened = std::fopen(file.c_str(), "r")) {
      int64_t start = 0;
      char end = '\0';
      const bool complete = std::fscanf(opened, "%" SCNd64 "%c", &start, &end) == 2 && end == '\n';
      std::fclose(opened);
      if (complete) return start;
    }
    SleepUntil(Now() + 2'000'000);
  }
}

class Loop {
 public:
  Loop(const Options& options, Device& device, int64_t start)
      : options_(options), device_(device), start_(start), random_(options.seed) {}

  std::vector<Launched> Run() {
    const int64_t end = options_.seconds > 0 ? start_ + std::llround(options_.seconds * kSecond) : INT64_MAX;
    for (int64_t count = 0; !IsEnough(count); ++count) {
      while (pending_.size() >= static_cast<size_t>(options_.depth)) Wait();
      const int64_t begin = Begin(count);
      if (begin >= end) break;
      device_.Launch();
      pending_.push_back(begin);
    }
    while (!pending_.empty()) Wait();
    return std::move(launched_);
  }

 private:
  bool IsEnough(int64_t count) {
    if (options_.repeat == 0 || count < options_.repeat) return false;
    if (options_.until.empty()) return true;
    if (!told_) {
      while (!pending_.empty()) Wait();
      std::fputs("done\n", stderr);
      std::fflush(stderr);
      told_ = true;
    }
    return access(options_.until.c_str(), F_OK) == 0;
  }

  int64_t Begin(int64_t count) {
    if (options_.period_ms > 0) {
      const int64_t due = start_ + std::llround(static_cast<double>(count) * options_.period_ms * 1e6);
      SleepUntil(due);
      return due;
    }
    if (options_.think_us > 0) {
      const double part = 0.5 + static_cast<double>(random_() - random_.min()) / (random_.max() - random_.min());
      SleepUntil(Now() + std::llround(options_.think_us * 1000 * part));
    }
    return Now();
  }

  void Wait() {
    device_.Wait();
    launched_.push_back({pending_.front() - start_, Now() - pending_.front()});
    pending_.pop_front();
  }

  const Options& options_;
  Device& device_;
  const int64_t start_;
  std::minstd_rand random_;
  std::deque<int64_t> pending_;
  bool told_ = false;
  std::vector<Launched> launched_;
};

/// Launches in the slots of this side. Two programs on the same machine take turns, the order turned round in every
/// second pair: A B, B A, A B, ... so that a machine that changes its speed changes it for both.
std::vector<double> RunSlots(const Options& options, Device& device, int64_t start) {
  // The rest of a slot is for what is still under way, and for whoever is late.
  constexpr double kPart = 0.85;
  const auto length = std::llround(options.slot_ms * 1e6);
  std::vector<double> rates;
  for (int slot = 0; slot < options.slots; ++slot) {
    if (((slot % 2) ^ (slot / 2 % 2)) != options.side) continue;
    SleepUntil(start + slot * length);
    const int64_t begin = Now();
    const int64_t end = start + slot * length + std::llround(kPart * static_cast<double>(length));
    int64_t launched = 0, waited = 0;
    for (; launched == 0 || Now() < end; ++launched) {
      for (; launched - waited >= options.depth; ++waited) device.Wait();
      device.Launch();
    }
    for (; waited < launched; ++waited) device.Wait();
    rates.push_back(static_cast<double>(launched) * kSecond / static_cast<double>(std::max<int64_t>(1, Now() - begin)));
  }
  return rates;
}

void Print(const Options& options, const Work& work, const std::string& device, const std::vector<Launched>& launched,
           int64_t start, const std::vector<double>& slots, const std::vector<float>& out, bool right) {
  std::vector<int64_t> lengths;
  int64_t end = 0;
  for (const Launched& launch : launched) {
    lengths.push_back(launch.length_ns);
    end = std::max(end, launch.begin_ns + launch.length_ns);
  }
  std::string quoted;
  for (const char c : device) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
  }
  std::printf("{\"work\": \"%s\", \"size\": %d, \"rounds\": %d, \"depth\": %d, \"device\": \"%s\", ", work.name.c_str(),
              work.size, work.rounds, options.depth, quoted.c_str());
  std::printf("\"right\": %s, \"checksum\": \"%016" PRIx64 "\", \"start_ns\": %" PRId64 ", \"runtime_ms\": %.6f, ",
              right ? "true" : "false", Checksum(out), start, static_cast<double>(end) / 1e6);
  std::printf("\"latency_ms\": {");
  for (const auto& [name, part] : {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1.0}}) {
    std::printf("\"%s\": %.6f%s", name, static_cast<double>(Percentile(lengths, part)) / 1e6, part < 1 ? ", " : "}, ");
  }
  std::printf("\"slots_per_s\": [");
  for (size_t i = 0; i < slots.size(); ++i) std::printf("%s%.3f", i == 0 ? "" : ", ", slots[i]);
  std::printf("], \"launches_ms\": [");
  for (size_t i = 0; i < launched.size(); ++i) {
    std::printf("%s[%.6f, %.6f]", i == 0 ? "" : ", ", static_cast<double>(launched[i].begin_ns) / 1e6,
                static_cast<double>(launched[i].length_ns) / 1e6);
  }
  std::printf("]}\n");
}

}  // namespace

int64_t Percentile(std::vector<int64_t> values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(part * static_cast<double>(values.size()) - 1e-9);
  const auto index = static_cast<size_t>(std::max(1.0, rank)) - 1;
  return values[std::min(index, values.size() - 1)];
}

int Run(const Options& options, const Work& work, Device& device) {
  for (int i = 0; i < options.warm; ++i) {
    device.Launch();
    device.Wait();
  }
  std::fputs("ready\n", stderr);
  std::fflush(stderr);
  const int64_t start = CommonStart(options.start) + std::llround(options.delay_ms * 1e6);
  SleepUntil(start);
  std::vector<Launched> launched;
  std::vector<double> slots;
  if (options.slots != 0) {
    slots = RunSlots(options, device, start);
  } else {
    launched = Loop(options, device, start).Run();
  }
  const std::vector<float> out = device.Results();
  const bool right = work.WorstError(out) <= kTolerance;
  Print(options, work, device.Name(), launched, start, slots, out, right);
  return right ? 0 : 1;
}

}  // namespace experiments

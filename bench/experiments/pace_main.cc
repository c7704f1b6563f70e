// SPDX-License-Identifier: Apache-2.0
// A clock for a device that is a processor: how fast that processor is, many times a second.
//
// A shared machine's processor is up to twice as fast in one second as in the next. This program, on the device's
// processor, does the same small work again and again and takes how much processor time that needed: once
// floating-point arithmetic on vectors, once arithmetic on integers in registers, which neighbours on the same core
// disturb differently. It ends when its standard input does, and prints one line for each bin of time:
//
//   {"bins": [[END_MS, SAMPLES, VECTOR, INTEGER], ...]}
//
// END_MS: of the bin, CLOCK_MONOTONIC. VECTOR, INTEGER: the mean logarithm of the work's processor time in
// microseconds.
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

// A sample's works take 30 us and waking up as much again: 2.3 % of a processor that is busy with something else.
constexpr timespec kEvery = {0, 2'500'000};
constexpr double kBinMs = 250;

double Now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// A kilobyte each: what ran before has taken little of it out of the caches, and the first round brings that back.
std::array<float, 256> g_sums, g_steps;
volatile uint64_t g_integer = 1;

[[gnu::noinline]] void Vectors(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < g_sums.size(); ++i) g_sums[i] = g_sums[i] * 0.999f + g_steps[i];
    asm volatile("" ::: "memory");  // Each round is done.
  }
}

[[gnu::noinline]] void Integers(uint64_t rounds) {
  uint64_t a = g_integer, b = 2, c = 3, d = 4, e = 5, f = 6;
  for (uint64_t round = 0; round < rounds; ++round) {
    a += b ^ round;
    b += c << 1;
    c ^= d + round;
    d += e >> 1;
    e ^= f + a;
    f += a * 3;
  }
  g_integer = a + b + c + d + e + f;
}

struct Bin {
  double end_ms = 0;
  int samples = 0;
  double vectors = 0, integers = 0;
};

}  // namespace

int main() {
  g_steps.fill(1);
  std::vector<Bin> bins;
  double end = Now(CLOCK_MONOTONIC) + kBinMs;
  Bin bin;
  pollfd input{0, POLLIN, 0};
  while (ppoll(&input, 1, &kEvery, nullptr) == 0) {
    Vectors(20);
    const double begun = Now(CLOCK_THREAD_CPUTIME_ID);
    Vectors(250);
    const double between = Now(CLOCK_THREAD_CPUTIME_ID);
    Integers(8000);
    const double done = Now(CLOCK_THREAD_CPUTIME_ID);
    // The clock of a processor that is taken away meanwhile may stand still.
    bin.vectors += std::log(std::max(1e-3, (between - begun) * 1e3));
    bin.integers += std::log(std::max(1e-3, (done - between) * 1e3));
    ++bin.samples;
    bin.end_ms = Now(CLOCK_MONOTONIC);
    if (bin.end_ms < end) continue;
    end = bin.end_ms + kBinMs;
    bins.push_back(bin);
    bin = {};
  }
  if (bin.samples > 0) bins.push_back(bin);
  std::printf("{\"bins\": [");
  const char* comma = "";
  for (const Bin& each : bins) {
    std::printf("%s[%.3f, %d, %.5f, %.5f]", comma, each.end_ms, each.samples, each.vectors / each.samples,
                each.integers / each.samples);
    comma = ", ";
  }
  std::printf("]}\n");
  return std::ferror(stdout) != 0 || std::fflush(stdout) != 0 ? 1 : 0;
}

// SPDX-License-Identifier: Apache-2.0
// hawser-bench-gate: what the scheduler's gate costs a launch, alone. Median over rounds, in nanoseconds.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "scheduler/grant/door.h"
#include "scheduler/grant/gate.h"
#include "server/worker/open_flight.h"

namespace {

using namespace hawser::scheduler;  // NOLINT: a program of one file.

constexpr int kRounds = 101;
constexpr int kRepetitions = 20000;

template <typename Body>
double MedianNanoseconds(Body body) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kRepetitions; ++i) body();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    rounds.push_back(took.count() / kRepetitions);
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2];
}

}  // namespace

int main() {
  GrantPage page;
  CondvarBell scheduler, own;
  Gate gate(page, scheduler, own);
  BasicDoor<std::atomic> door(page, own);

  door.Give({Grant::Kind::kOpen, 1, 0, UINT64_MAX, HAWSER_UNIT_WHOLE});
  // Passing alone: launches whose ends are told later. `active` is emptied between rounds, outside the time.
  std::vector<double> passes;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kRepetitions; ++i) {
      if (!gate.TryEnter(1000)) std::abort();
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    passes.push_back(took.count() / kRepetitions);
    for (int i = 0; i < kRepetitions; ++i) gate.Leave(1000, 1000);
  }
  std::nth_element(passes.begin(), passes.begin() + kRounds / 2, passes.end());
  std::printf("open grant, launch passes:            %6.2f ns\n", passes[kRounds / 2]);
  const double both = MedianNanoseconds([&] {
    if (!gate.TryEnter(1000)) std::abort();
    gate.Leave(1000, 1000);
  });
  std::printf("open grant, passes and its end told:  %6.2f ns\n", both);

  // What bounds how far a lone tenant runs ahead, without the driver's part in a mark.
  hawser::server::OpenFlight<uint64_t> flight;
  const auto kernel = std::make_shared<hawser::server::OpenSpeed>();
  kernel->Set(1);
  uint64_t launches = 0;
  const double bound = MedianNanoseconds([&] {
    if (flight.full()) std::abort();
    launches += 1000;
    if (!flight.Add(*kernel, 1000)) return;
    flight.Look([](uint64_t) { return true; }, [](uint64_t one, uint64_t other) { return other - one; });
    flight.Put(launches, kernel, 1000, 10'000'000);
  });
  std::printf("open grant, what is under way:        %6.2f ns\n", bound);

  uint64_t epoch = 1;
  door.Revoke();
  if (!door.Drained()) return 1;
  door.Give({Grant::Kind::kSlice, ++epoch, UINT64_MAX / 2, UINT64_MAX, 500'000});
  uint64_t in_slice = 0;
  for (int i = 0; i < kRepetitions; ++i) in_slice += gate.TryEnter(1000) ? 1 : 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRepetitions; ++i) in_slice += gate.TryEnter(1000) ? 1 : 0;
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  if (in_slice != 2 * kRepetitions) return 1;
  std::printf("slice, launch passes:                 %6.2f ns\n", took.count() / kRepetitions);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// hawser-bench-gate: what the scheduler's gate costs a launch, alone. Median over rounds, in nanoseconds.
//
//     hawser-bench-gate [--json]
#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/grant/door.h"
#include "scheduler/grant/gate.h"
#include "server/worker/grant_gate.h"
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

struct Row {
  const char* key;
  const char* text;
  double nanoseconds;
};

/// What a worker's launch passes while its tenant is alone: the page and the alarm thread are those of a worker.
double LoneLaunch() {
  namespace server = hawser::server;
  auto ours = server::GrantShare::Create();
  if (!ours.ok()) std::abort();
  auto theirs = server::GrantShare::Attach(ours->fd());
  if (!theirs.ok()) std::abort();
  server::FutexBell submit(ours->slot(0).submit), alarm(ours->slot(0).alarm);
  BasicDoor<std::atomic> door(ours->slot(0).page, submit, &alarm);
  server::EventBell bell(hawser::wire::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  server::GrantGate gate(theirs->slot(0), bell);
  gate.SetDrain([] {});
  door.Give({Grant::Kind::kOpen, 1, 0, UINT64_MAX, HAWSER_UNIT_WHOLE});
  const double took = MedianNanoseconds([&] {
    if (!gate.BeginOpen()) std::abort();
    gate.EndOpen();
  });
  gate.SetDrain(nullptr);
  return took;
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !json) {
    std::fputs("usage: hawser-bench-gate [--json]\n", stderr);
    return 2;
  }
  std::vector<Row> rows;
  rows.push_back({"lone_launch", "alone, a worker's launch", LoneLaunch()});
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
  rows.push_back({"open_pass", "open grant, launch passes", passes[kRounds / 2]});
  const double both = MedianNanoseconds([&] {
    if (!gate.TryEnter(1000)) std::abort();
    gate.Leave(1000, 1000);
  });
  rows.push_back({"open_pass_and_end", "open grant, passes and its end told", both});

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
  rows.push_back({"open_bound", "open grant, what is under way", bound});

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
  rows.push_back({"slice_pass", "slice, launch passes", took.count() / kRepetitions});
  if (json) std::printf("{");
  for (const Row& row : rows) {
    if (json) {
      std::printf("%s\"%s_ns\": %.2f", &row == rows.data() ? "" : ", ", row.key, row.nanoseconds);
    } else {
      std::printf("%-36s %6.2f ns\n", (std::string(row.text) + ":").c_str(), row.nanoseconds);
    }
  }
  if (json) std::printf("}\n");
  return 0;
}

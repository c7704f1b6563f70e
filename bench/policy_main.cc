// SPDX-License-Identifier: Apache-2.0
// hawser-bench-policy: what a decision of a policy costs the scheduler's thread, in its own process and in another.
// A decision is what the scheduler asks for from one grant to the next: charged(), select(), stage(). Medians, in
// microseconds.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "scheduler/core/policy_host.h"
#include "scheduler/isolated/isolation.h"

namespace {

using namespace hawser::scheduler;  // NOLINT: a program of one file.
using Clock = std::chrono::steady_clock;

struct Cost {
  double median_us = 0, p99_us = 0;
};

/// `pause`: between decisions, in which the other process falls asleep.
Cost Measure(const PolicyLibrary& policy, size_t tenant_count, int decisions, std::chrono::microseconds pause) {
  TenantTable tenants;
  for (size_t i = 1; i <= tenant_count; ++i) {
    Tenant& tenant = tenants.Add(i, {});
    tenant.has_work = true;
  }
  PolicyHost host(tenants, {}, [](const PolicyEvent& event) {
    if (event.kind == PolicyEvent::Kind::kEjected) std::fprintf(stderr, "%s\n", event.text.c_str());
  });
  uint64_t now_ns = 1'000'000'000;
  if (const auto status = host.Use(policy, now_ns); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.text().c_str());
    std::exit(1);
  }
  std::vector<double> took;
  for (int i = 0; i < decisions; ++i) {
    if (pause.count() != 0) std::this_thread::sleep_for(pause);
    now_ns += 2'000'000;
    const auto begin = Clock::now();
    const Choice choice = host.Select(now_ns);
    if (choice.kind != Choice::Kind::kGrant) std::exit(1);
    (void)host.Stage(*choice.who, now_ns);
    choice.who->last_served_ns = now_ns;
    host.Charged(*choice.who, 2'000'000, 0, now_ns);
    took.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  if (host.ejected()) std::exit(1);
  std::sort(took.begin(), took.end());
  return {took[took.size() / 2], took[took.size() * 99 / 100]};
}

}  // namespace

int main() {
  IsolationOptions options;
  options.callback_deadline = std::chrono::seconds(10);  // What is measured here is not how busy the machine is.
  std::printf("policy fair; charged() + select() + stage()        in this process     in one of its own\n");
  std::printf("                                                   median      p99     median       p99  us\n");
  for (const size_t tenants : {2, 8, 64}) {
    for (const bool asleep : {false, true}) {
      const auto isolated = OpenIsolated("fair", options);
      if (!isolated.ok()) {
        std::fprintf(stderr, "%s\n", isolated.status().text().c_str());
        return 1;
      }
      const auto pause = std::chrono::microseconds(asleep ? 2000 : 0);
      const int decisions = asleep ? 1000 : 20'000;
      const Cost here = Measure(PolicyLibrary::Fair(), tenants, decisions, pause);
      const Cost there = Measure(isolated.value(), tenants, decisions, pause);
      std::printf("%2zu tenants, %-36s %7.2f  %7.2f    %7.2f   %7.2f\n", tenants,
                  asleep ? "every 2 ms (it has fallen asleep)" : "one after the other", here.median_us, here.p99_us,
                  there.median_us, there.p99_us);
    }
  }
  return 0;
}

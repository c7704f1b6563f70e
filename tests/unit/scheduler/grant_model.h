// SPDX-License-Identifier: Apache-2.0
// What the model checks of the grant protocol have in common: bells, a policy, a second worker.
#ifndef HAWSER_TESTS_UNIT_SCHEDULER_GRANT_MODEL_H_
#define HAWSER_TESTS_UNIT_SCHEDULER_GRANT_MODEL_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "scheduler/grant/arbiter.h"
#include "scheduler/grant/bell.h"
#include "scheduler/grant/page.h"
#include "tests/unit/scheduler/interleave.h"

namespace hawser::scheduler::model {

/// One waits. A ticket takes away the rings before it, so that the bell is a word of one bit: fewer states than a count
/// has.
class ModelBell : public Bell {
 public:
  void Ring() override { rung_.store(1); }
  uint64_t Ticket() override {
    if (digest_) current->Forget(digest_());
    rung_.store(0);
    return 0;
  }
  /// Whoever takes a ticket begins anew, but for this.
  void ForgetBut(std::function<uint64_t()> digest) { digest_ = std::move(digest); }
  void Wait(uint64_t, std::chrono::nanoseconds) override {
    current->BlockUntil([this] { return rung(); });
  }
  /// Waits for a ring, or for something else.
  void WaitOr(const std::function<bool()>& other) {
    current->BlockUntil([this, other] { return rung() || other(); });
  }
  bool rung() const { return rung_.peek() != 0; }

 private:
  ModelAtomic<uint64_t> rung_;
  std::function<uint64_t()> digest_;
};

inline const PolicyLibrary& RoundRobin() {
  static const PolicyLibrary library = PolicyLibrary::Find("rr").value();
  return library;
}

inline constexpr uint64_t kPieceNs = 1000;

/// One piece for a slice; who is alone has an open grant after `alone_after_ns`.
inline SchedulerOptions ModelOptions(uint64_t alone_after_ns) {
  SchedulerOptions options;
  options.policy.callback_cpu_ns = options.policy.callback_wall_ns = 0;
  options.policy.settings["slice_us"] = "1";
  options.alone_after_ns = alone_after_ns;
  options.max_unit_ns = 0;
  return options;
}

/// A worker that wants the device, has it for a step, and has used its slice.
inline void RunPhantom(int launches, BasicGrantPage<ModelAtomic>& page, Bell& scheduler,
                       ModelAtomic<uint64_t>& on_device) {
  for (int n = 0; n < launches; ++n) {
    current->Forget(static_cast<uint64_t>(n) + 99);
    page.demand.store(1, std::memory_order_relaxed);
    scheduler.Ring();
    current->BlockUntil([&page] {
      const uint64_t word = page.word.peek();
      const bool runs = ModeOf(word) == GateMode::kOpen || ModeOf(word) == GateMode::kSlice;
      return runs && EpochOf(word) != page.spent_epoch.peek();
    });
    page.active.fetch_add(MakePiece(kPieceNs), std::memory_order_relaxed);
    on_device.fetch_add(1, std::memory_order_relaxed);
    current->Step();
    on_device.fetch_sub(1, std::memory_order_relaxed);
    page.spent_epoch.store(EpochOf(page.word.peek()), std::memory_order_relaxed);
    page.demand.store(0, std::memory_order_relaxed);
    page.active.fetch_sub(MakePiece(kPieceNs), std::memory_order_relaxed);
    scheduler.Ring();
  }
}

/// The scheduler's thread. A killed worker, whose tenant is `mortal`, is reported when its process, and with it its
/// contexts on the device, is gone: then `reaped` is set.
inline void RunArbiter(BasicArbiter<ModelAtomic>& arbiter, ModelBell& bell, TenantId mortal, bool* reaped) {
  uint64_t now = 1000;
  while (true) {
    current->Forget(arbiter.Digest() * 2 + (*reaped ? 1 : 0));
    (void)bell.Ticket();
    if (current->deaths_now() && !*reaped) {
      *reaped = true;
      arbiter.RemoveTenant(mortal, now);
    }
    arbiter.Poll(now);
    EXPECT_EQ(arbiter.next_wake_ns(), UINT64_MAX);
    bell.WaitOr([reaped] { return current->deaths_now() && !*reaped; });
    now += 1000;
  }
}

/// Explores a world of that setting. Returns what was wrong; empty: nothing.
template <typename Explored, typename Setting>
std::string ExploreWorld(const Setting& setting, size_t preemptions, size_t* states, size_t* deaths) {
  Explorer explorer([&setting] { return std::make_unique<Explored>(setting); }, preemptions);
  std::string wrong = explorer.Run(5'000'000);
  if (states != nullptr) *states = explorer.states();
  if (deaths != nullptr) *deaths = explorer.deaths();
  std::printf("%zu states, %zu executions, %zu deaths\n", explorer.states(), explorer.executions(), explorer.deaths());
  return wrong;
}

#if defined(__SANITIZE_ADDRESS__) || defined(HAWSER_MODEL_QUICK)
inline constexpr size_t kAll = 3;  // An instrumented build would take minutes for all orders.
#else
inline constexpr size_t kAll = SIZE_MAX;
#endif

}  // namespace hawser::scheduler::model

#endif  // HAWSER_TESTS_UNIT_SCHEDULER_GRANT_MODEL_H_

// SPDX-License-Identifier: Apache-2.0
#include "server/worker/grant_gate.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "hawser/policy.h"
#include "server/worker/early_leave.h"
#include "wire/short_slice.h"

namespace hawser::server {

using scheduler::GateMode;

namespace {

// Looked at without an alarm as often as this; for an alarm that was lost with whoever rang it.
constexpr std::chrono::seconds kLongestSleep{10};
// For ever, in hours that fit into a time.
constexpr std::chrono::hours kLongestWait{24 * 365};
// How often the end of a launch that is just under way is looked for: drivers take microseconds to take one.
constexpr std::chrono::microseconds kBetweenLooks{20};

uint64_t Now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

scheduler::GateDemand DemandOf(uint64_t estimated_ns) {
  scheduler::GateDemand demand;
  demand.pending_ns = estimated_ns;
  demand.oldest_arrival_ns = Now();
  return demand;
}

}  // namespace

GrantGate::GrantGate(GrantSlot& slot, scheduler::Bell& bell)
    : slot_(slot),
      submit_bell_(slot.submit),
      alarm_(slot.alarm),
      gate_(slot.page, bell, submit_bell_),
      hold_(slot.page, gate_),
      thread_([this] { WatchAlarm(); }) {}

GrantGate::~GrantGate() {
  Cancel();
  thread_.join();
}

void GrantGate::SetDrain(std::function<void()> drain) {
  // After a drain that is under way: it uses what its owner is about to take apart.
  const std::lock_guard<std::mutex> lock(drain_mutex_);
  drain_ = std::move(drain);
}

void GrantGate::SetClosed(std::function<void()> closed) {
  const std::lock_guard<std::mutex> lock(closed_mutex_);
  closed_ = std::move(closed);
}

bool GrantGate::TryHold(uint64_t word) {
  const std::unique_lock<std::mutex> lock(submit_, std::try_to_lock);
  return lock.owns_lock() && gate_.TryEnterOpen(word);
}

uint64_t GrantGate::OpenCapNs() const {
  // As long as the open grant is held the page has its bound, also when it was taken back and is drained.
  const uint64_t cap = slot_.page.cap_ns.load(std::memory_order_relaxed);
  return hold_.held() && cap != 0 ? cap : kDefaultOpenCapNs;
}

void GrantGate::WatchAlarm() {
  (void)wire::TakeShortSlices();
  uint64_t told = UINT64_MAX;  // No word is that.
  for (;;) {
    const uint64_t ticket = alarm_.Ticket();
    if (cancelled_) return;
    const uint64_t word = slot_.page.word.load(std::memory_order_seq_cst);
    if (scheduler::ModeOf(word) != GateMode::kOpen && word != told) {
      told = word;
      const std::lock_guard<std::mutex> lock(closed_mutex_);
      if (closed_) closed_();
    }
    const bool yielded = hold_.Yield(
        word,
        [this](const auto& launching) {
          while (launching() && !cancelled_) std::this_thread::sleep_for(kBetweenLooks);
        },
        [this] {
          const std::lock_guard<std::mutex> lock(drain_mutex_);
          if (drain_ && !cancelled_) drain_();
        });
    if (!yielded) alarm_.Wait(ticket, kLongestSleep);
  }
}

uint64_t GrantGate::UnitNs() const {
  const uint64_t word = slot_.page.word.load(std::memory_order_relaxed);
  if (scheduler::ModeOf(word) == GateMode::kOpen) return 0;
  if (const uint64_t unit = SliceUnit(word); unit != 0) return unit;
  // Before the first grant: likely nobody else is there. After an open one: somebody is.
  return scheduler::EpochOf(word) != 0 || Tenants() > 1 ? kDefaultUnitNs : kWhole;
}

uint64_t GrantGate::SliceUnit(uint64_t word) const {
  static_assert(kWhole == HAWSER_UNIT_WHOLE);
  // What an open grant leaves in the page is no policy's word.
  if (scheduler::ModeOf(word) == GateMode::kSlice) {
    const uint64_t unit = slot_.page.unit_ns.load(std::memory_order_relaxed);
    slice_unit_ns_.store(unit == 0 ? kDefaultUnitNs : unit, std::memory_order_relaxed);
  }
  return slice_unit_ns_.load(std::memory_order_relaxed);
}

uint64_t GrantGate::PieceNs(uint64_t grain_ns) const {
  const uint64_t unit = UnitNs();
  if (unit == 0 || unit == kWhole) return unit;
  const uint64_t slice = slot_.page.slice_ns.load(std::memory_order_relaxed);
  return NextPieceNs(EarlyNs(), unit, slice, gate_.TakenNs(), grain_ns);
}

uint32_t GrantGate::Tenants() const { return std::max(1u, slot_.tenants.load(std::memory_order_relaxed)); }

bool GrantGate::Entered(bool entered) {
  if (entered) (void)SliceUnit(slot_.page.word.load(std::memory_order_relaxed));
  return entered;
}

bool GrantGate::TryEnter(uint64_t estimated_ns) {
  const std::unique_lock<std::mutex> lock(submit_, std::try_to_lock);
  if (!lock.owns_lock() || cancelled_) return false;
  return Entered(gate_.EnterNow(estimated_ns));
}

bool GrantGate::TryEnterPart(uint64_t* estimated_ns, const Resize& resize) {
  const std::unique_lock<std::mutex> lock(submit_, std::try_to_lock);
  if (!lock.owns_lock() || cancelled_) return false;
  return Entered(gate_.EnterNowAs(estimated_ns, resize));
}

void GrantGate::Announce(uint64_t estimated_ns) { gate_.Announce(estimated_ns, DemandOf(estimated_ns)); }

bool GrantGate::Enter(uint64_t estimated_ns) {
  const std::lock_guard<std::mutex> lock(submit_);
  if (cancelled_) return false;
  return Entered(gate_.Enter(estimated_ns, DemandOf(estimated_ns), kLongestWait));
}

bool GrantGate::EnterPart(uint64_t* estimated_ns, const Resize& resize) {
  const std::lock_guard<std::mutex> lock(submit_);
  if (cancelled_) return false;
  return Entered(gate_.EnterAs(estimated_ns, resize, DemandOf(*estimated_ns), kLongestWait));
}

void GrantGate::Leave(uint64_t estimated_ns, uint64_t measured_ns) { gate_.Leave(estimated_ns, measured_ns); }

void GrantGate::Cancel() {
  cancelled_ = true;
  gate_.Cancel();
  alarm_.Ring();
}

}  // namespace hawser::server

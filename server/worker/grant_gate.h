// SPDX-License-Identifier: Apache-2.0
// The gate to one device of a worker whose server has a scheduler: LaunchGate over the slot that both share.
//
// Alone (an open grant) it holds one piece for everything that it launches (open_hold.h); a thread of the gate's own,
// which the scheduler's alarm wakes, gives that back.
//
// Threads: BeginOpen() and EndOpen() from one thread, the executor. The rest from any; submit_ serializes what enters.
// The alarm thread drains. Lock order: submit_ is a leaf, but Enter() sleeps with it, so nobody else waits for it:
// TryEnter() and BeginOpen() only try. drain_mutex_ comes before the backend's locks.
#ifndef HAWSER_SERVER_WORKER_GRANT_GATE_H_
#define HAWSER_SERVER_WORKER_GRANT_GATE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "scheduler/grant/gate.h"
#include "scheduler/grant/open_hold.h"
#include "server/grants/grant_share.h"
#include "server/worker/launch_gate.h"

namespace hawser::server {

class GrantGate final : public LaunchGate {
 public:
  /// Length of units while the policy has not said one.
  static constexpr uint64_t kDefaultUnitNs = 500'000;
  /// Bound of what is under way alone, while the scheduler has not said one.
  static constexpr uint64_t kDefaultOpenCapNs = 10'000'000;

  /// Both borrowed; `bell` rings at hawserd.
  GrantGate(GrantSlot& slot, scheduler::Bell& bell);
  ~GrantGate() override;
  GrantGate(const GrantGate&) = delete;
  GrantGate& operator=(const GrantGate&) = delete;

  bool BeginOpen() override {
    return hold_.Begin([this](uint64_t word) { return TryHold(word); });
  }
  void EndOpen() override { hold_.End(); }
  uint64_t OpenCapNs() const override;
  void SetDrain(std::function<void()> drain) override;
  void SetClosed(std::function<void()> closed) override;

  uint64_t UnitNs() const override;
  uint64_t PieceNs(uint64_t grain_ns) const override;
  uint32_t Tenants() const override;
  bool TryEnter(uint64_t estimated_ns) override;
  bool Enter(uint64_t estimated_ns) override;
  bool TryEnterPart(uint64_t* estimated_ns, const Resize& resize) override;
  bool EnterPart(uint64_t* estimated_ns, const Resize& resize) override;
  void Leave(uint64_t estimated_ns, uint64_t measured_ns) override;
  void Announce(uint64_t estimated_ns) override;
  uint64_t EarlyNs() const override { return slot_.handover_ns.load(std::memory_order_relaxed); }
  bool Ends() const override { return gate_.Ends(); }
  void LeaveEarly(uint64_t estimated_ns) override { gate_.LeaveEarly(estimated_ns); }
  void LeaveLate(uint64_t estimated_ns, uint64_t measured_ns) override { gate_.LeaveLate(estimated_ns, measured_ns); }
  void Charge(uint64_t measured_ns) override { gate_.Charge(measured_ns); }
  void Cancel() override;

 private:
  /// What there is to do when something was entered, or was not.
  bool Entered(bool entered);
  /// Enters the piece of the open grant of that word.
  bool TryHold(uint64_t word);
  /// Length of units in the latest slice that was seen; 0: none was.
  uint64_t SliceUnit(uint64_t word) const;
  void WatchAlarm();

  GrantSlot& slot_;
  FutexBell submit_bell_;
  FutexBell alarm_;
  scheduler::Gate gate_;
  std::mutex submit_;
  alignas(64) scheduler::OpenHold hold_;  ///< What each launch alone looks at lies together.
  std::atomic<bool> cancelled_{false};
  mutable std::atomic<uint64_t> slice_unit_ns_{0};
  std::mutex drain_mutex_;  ///< Held while the backend is drained; before all locks of the backend.
  std::function<void()> drain_;
  std::mutex closed_mutex_;  ///< Held while it is called.
  std::function<void()> closed_;
  std::thread thread_;  ///< Last: it uses what is above.
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_GRANT_GATE_H_

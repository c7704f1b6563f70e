// SPDX-License-Identifier: Apache-2.0
// The gate of a worker whose server has a scheduler: LaunchGate over the page that both share.
//
// Alone (an open grant) the worker counts as busy with one piece, which is entered by the first launch and stands for
// everything that is launched until the grant is taken back. Then the gate's own thread, which the scheduler's alarm
// wakes, waits for the launch that is just under way, has the backend drained, and leaves for that piece: so the
// scheduler sees the device free when it is, and a lone tenant pays an exchange and a load for each launch.
//
// Threads: BeginOpen() and EndOpen() from one thread, the executor. The rest from any; submit_ serializes what enters.
// The alarm thread drains. Lock order: submit_ is a leaf, but Enter() sleeps with it, so nobody else waits for it:
// TryEnter() and BeginOpen() only try. drain_mutex_ comes before the backend's locks. What the alarm thread and the
// executor say to each other: the executor sets launching_, then looks at the page's word; the scheduler changes the
// word, then the alarm thread looks at launching_.
#ifndef HAWSER_SERVER_WORKER_GRANT_GATE_H_
#define HAWSER_SERVER_WORKER_GRANT_GATE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "scheduler/grant/gate.h"
#include "server/grants/grant_share.h"
#include "server/worker/launch_gate.h"
#include "wire/socket.h"

namespace hawser::server {

class GrantGate final : public LaunchGate {
 public:
  /// Length of units while the policy has not said one.
  static constexpr uint64_t kDefaultUnitNs = 500'000;
  /// Bound of what is under way alone, while the scheduler has not said one.
  static constexpr uint64_t kDefaultOpenCapNs = 10'000'000;

  /// `bell` rings at hawserd.
  GrantGate(GrantShare share, wire::Fd bell);
  ~GrantGate() override;
  GrantGate(const GrantGate&) = delete;
  GrantGate& operator=(const GrantGate&) = delete;

  bool BeginOpen() override {
    launching_.store(true, std::memory_order_seq_cst);
    const uint64_t word = page_->page.word.load(std::memory_order_seq_cst);
    if (word == open_word_) [[likely]]
      return true;
    return BeginOpenSlowly(word);
  }
  void EndOpen() override { launching_.store(false, std::memory_order_release); }
  uint64_t OpenCapNs() const override;
  void SetDrain(std::function<void()> drain) override;
  void SetClosed(std::function<void()> closed) override;

  uint64_t UnitNs() const override;
  uint32_t Tenants() const override;
  bool TryEnter(uint64_t estimated_ns) override;
  bool Enter(uint64_t estimated_ns) override;
  void Leave(uint64_t estimated_ns, uint64_t measured_ns) override;
  void Announce(uint64_t estimated_ns) override;
  uint64_t EarlyNs() const override { return page_->handover_ns.load(std::memory_order_relaxed); }
  bool Ends() const override { return gate_.Ends(); }
  void LeaveEarly(uint64_t estimated_ns) override { gate_.LeaveEarly(estimated_ns); }
  void LeaveLate(uint64_t estimated_ns, uint64_t measured_ns) override { gate_.LeaveLate(estimated_ns, measured_ns); }
  void Charge(uint64_t measured_ns) override { gate_.Charge(measured_ns); }
  void Cancel() override;

 private:
  static constexpr uint64_t kNone = UINT64_MAX;  ///< No word is that.

  bool BeginOpenSlowly(uint64_t word);
  /// Length of units in the latest slice that was seen; 0: none was.
  uint64_t SliceUnit(uint64_t word) const;
  void WatchAlarm();

  const GrantShare share_;
  GrantSharePage* const page_;
  EventBell scheduler_;
  FutexBell submit_bell_;
  FutexBell alarm_;
  scheduler::Gate gate_;
  std::mutex submit_;
  std::atomic<bool> launching_{false};  ///< The executor is between BeginOpen() and EndOpen().
  uint64_t open_word_ = kNone;          ///< The executor's: the word under which the piece is held.
  std::atomic<bool> held_{false};       ///< The piece is entered.
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

// SPDX-License-Identifier: Apache-2.0
// The scheduler's side of one worker's page. See page.h for the protocol.
//
// Threading: the scheduler's thread.
#ifndef HAWSER_SCHEDULER_GRANT_DOOR_H_
#define HAWSER_SCHEDULER_GRANT_DOOR_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "scheduler/core/scheduler.h"
#include "scheduler/core/tenant.h"
#include "scheduler/grant/bell.h"
#include "scheduler/grant/page.h"

namespace hawser::scheduler {

template <template <typename> class Atomic>
class BasicDoor {
 public:
  using Page = BasicGrantPage<Atomic>;

  /// `worker` wakes whoever waits to submit. `alarm`, which may be null, wakes whoever takes back what runs under an
  /// open grant without being counted (server/worker/grant_gate.h).
  BasicDoor(Page& page, Bell& worker, Bell* alarm = nullptr) : page_(page), worker_(worker), alarm_(alarm) {}

  void Give(const Grant& grant) {
    epoch_ = grant.epoch;
    page_.slice_ns.store(grant.slice_ns, std::memory_order_relaxed);
    page_.cap_ns.store(grant.cap_ns, std::memory_order_relaxed);
    page_.unit_ns.store(grant.unit_ns, std::memory_order_relaxed);
    const GateMode mode = grant.kind == Grant::Kind::kOpen ? GateMode::kOpen : GateMode::kSlice;
    page_.word.store(MakeWord(epoch_, mode), std::memory_order_seq_cst);
    given_ = true;
    staged_ = false;
    revoked_ = false;
    open_ = grant.kind == Grant::Kind::kOpen;
    worker_.Ring();
  }

  void Revoke() {
    if (!given_ || revoked_) return;
    page_.word.store(MakeWord(epoch_, GateMode::kRevoked), std::memory_order_seq_cst);
    revoked_ = true;
    if (open_ && alarm_ != nullptr) alarm_->Ring();
  }

  /// Whether its worker is likely to be next; a grant ends it. Only while it has none. Nobody is woken: see
  /// BasicGate::Enter().
  void SetStaged(bool staged) {
    if (given_ || staged == staged_) return;
    staged_ = staged;
    const GateMode mode = epoch_ == 0 ? GateMode::kClosed : GateMode::kRevoked;
    page_.word.store(MakeWord(epoch_, mode) | (staged ? kStagedFlag : 0), std::memory_order_seq_cst);
  }

  /// Whether it has work: something active, or somebody who waits.
  bool HasWork() const {
    return page_.demand.load(std::memory_order_seq_cst) != 0 ||
           PiecesOf(page_.active.load(std::memory_order_seq_cst)) != 0;
  }

  bool given() const { return given_; }

  /// Of a door with a grant: it was taken back, or its slice is used (then this takes it back).
  bool Ended() {
    if (!revoked_ && page_.spent_epoch.load(std::memory_order_seq_cst) == epoch_) Revoke();
    return revoked_;
  }

  /// Whether something is submitted and has not ended.
  bool IsActive() const { return PiecesOf(page_.active.load(std::memory_order_seq_cst)) != 0; }

  /// Whether something left before its end, and has not ended.
  bool HasTail() const { return PiecesOf(page_.tail.load(std::memory_order_seq_cst)) != 0; }

  /// Its grant is over: it was taken back, and nothing was active after that.
  void Close() { given_ = false; }

  /// Whether its grant has ended and nothing of it is active; then it is closed. Revokes first what is spent.
  bool Drained() {
    if (!given_ || !Ended() || IsActive()) return false;
    Close();
    return true;
  }

  /// For the model check.
  uint64_t Digest() const { return (given_ ? 2u : 0u) + (revoked_ ? 1u : 0u); }

  /// What its worker says. Bounded, but for `used_ns`, so that those of a thousand doors have a sum.
  WorkerFacts Facts() const {
    const auto bounded = [](const Atomic<uint64_t>& word) {
      return std::min(word.load(std::memory_order_relaxed), kMostOfFact);
    };
    WorkerFacts facts;
    facts.used_ns = page_.used_ns.load(std::memory_order_relaxed);
    facts.pending_ns = bounded(page_.pending_ns);
    facts.pending_count = bounded(page_.pending_count);
    facts.inflight_ns = EstimateOf(page_.active.load(std::memory_order_relaxed));
    const uint64_t tail = page_.tail.load(std::memory_order_relaxed);
    facts.tail_ns = std::min(EstimateOf(tail), kMostEstimateNs);
    facts.tail = PiecesOf(tail) != 0;
    facts.oldest_arrival_ns = page_.oldest_arrival_ns.load(std::memory_order_relaxed);
    facts.unit_ns = bounded(page_.next_unit_ns);
    facts.last_unit_ns = bounded(page_.last_unit_ns);
    facts.mem_resident = bounded(page_.mem_resident);
    facts.mem_total = bounded(page_.mem_total);
    return facts;
  }

 private:
  static constexpr uint64_t kMostOfFact = uint64_t{1} << 48;

  Page& page_;
  Bell& worker_;
  Bell* const alarm_;
  uint64_t epoch_ = 0;
  bool given_ = false;
  bool staged_ = false;
  bool revoked_ = false;
  bool open_ = false;
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_GRANT_DOOR_H_

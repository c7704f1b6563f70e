// SPDX-License-Identifier: Apache-2.0
// The worker's side of a grant: what every launch passes. See page.h for the protocol.
//
// Threading: the Enter and TryEnter functions from one thread, the one that submits. The Leave functions, Announce(),
// Ends() and TakenNs() from any thread.
#ifndef HAWSER_SCHEDULER_GRANT_GATE_H_
#define HAWSER_SCHEDULER_GRANT_GATE_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "hawser/policy.h"
#include "scheduler/grant/bell.h"
#include "scheduler/grant/page.h"

namespace hawser::scheduler {

/// What waits to be submitted, for the scheduler to know.
struct GateDemand {
  uint64_t pending_ns = 0;
  uint64_t pending_count = 1;
  uint64_t oldest_arrival_ns = 0;
  uint64_t unit_ns = 0;
};

template <template <typename> class Atomic>
class BasicGate {
 public:
  using Page = BasicGrantPage<Atomic>;
  static constexpr std::chrono::nanoseconds kSpin = std::chrono::microseconds(50);

  /// `scheduler` is the scheduler's bell, `own` this worker's. All three must outlive the gate.
  BasicGate(Page& page, Bell& scheduler, Bell& own) : page_(page), scheduler_(scheduler), own_(own) {}
  BasicGate(const BasicGate&) = delete;
  BasicGate& operator=(const BasicGate&) = delete;

  /// Whether a piece that is estimated to take `estimate_ns` may be submitted now. If so, it must be, and Leave() must
  /// follow when it has ended. The launch path: one atomic addition, and two
  /// loads of a line that rarely changes.
  bool TryEnter(uint64_t estimate_ns) {
    // Without a grant nothing is added, so nothing is taken off again and rung for. Such a ring would wake the
    // scheduler for nothing just before Announce() wakes it for something; and a thread that has run a moment ago may
    // have to wait for the end of another's time slice (docs/decisions/0021-short-slices-for-hand-overs.md).
    if (!MayAdmit(page_.word.load(std::memory_order_seq_cst))) return false;
    return Submit(estimate_ns, [this](uint64_t word) { return word == admitted_ || Admit(word); });
  }

  /// As TryEnter(), for a piece that takes no time of its own and stands for what is launched under the open grant of
  /// `word` (open_hold.h). Not under any other: if it is a slice by now, nobody would be told to leave.
  bool TryEnterOpen(uint64_t word) {
    if (page_.word.load(std::memory_order_seq_cst) != word || !MayAdmit(word)) return false;
    const uint64_t piece = MakePiece(0);
    const uint64_t before = page_.active.fetch_add(piece, std::memory_order_seq_cst);
    if (page_.word.load(std::memory_order_seq_cst) == word && (word == admitted_ || Admit(word))) {
      if (PiecesOf(before) == 0 || EstimateOf(before) < cap_ns_) return true;
    }
    Subtract(piece);
    return false;
  }

  /// As TryEnter(), for a piece that was perhaps announced.
  bool EnterNow(uint64_t estimate_ns) {
    return EnterNowBy([&] { return TryEnter(estimate_ns); });
  }

  /// As EnterNow(), for a piece that can be made longer or shorter: when a grant has come under which nothing was
  /// submitted yet, `resize`, of no arguments, says what the piece is estimated to take then. It may ask unit_ns() and
  /// TakenNs(). The last that it said is what was entered, and is written to `estimate_ns`.
  template <typename Resize>
  bool EnterNowAs(uint64_t* estimate_ns, const Resize& resize) {
    return EnterNowBy([&] { return TryEnterAs(estimate_ns, resize); });
  }

  /// Waits until the piece may be submitted; false: not within `at_most`. Tells the scheduler what waits. Who begins to
  /// wait when its tenant is staged already spins for up to `spin` first, then sleeps.
  ///
  /// Who is staged while it sleeps is not woken to spin. The scheduler names the next tenant when it gives the device
  /// to the one before, most of a slice too early; and it hears that a slice is used when nothing is active any more,
  /// which is when it gives the next. It is the worker that knows 250 us before that a slice is about to end. It says
  /// so by leaving early (page.h about tails), and a sleeper is woken while that tail runs.
  bool Enter(uint64_t estimate_ns, const GateDemand& demand, std::chrono::nanoseconds at_most,
             std::chrono::nanoseconds spin = kSpin) {
    return EnterBy(estimate_ns, demand, at_most, spin, [&] { return TryEnter(estimate_ns); });
  }

  /// As Enter(), for a piece that can be made longer or shorter; see EnterNowAs().
  template <typename Resize>
  bool EnterAs(uint64_t* estimate_ns, const Resize& resize, const GateDemand& demand, std::chrono::nanoseconds at_most,
               std::chrono::nanoseconds spin = kSpin) {
    return EnterBy(*estimate_ns, demand, at_most, spin, [&] { return TryEnterAs(estimate_ns, resize); });
  }

  /// Any thread: an Enter() or EnterNow() will follow, from the thread that submits. Whoever leaves and goes on
  /// asking says so first: the scheduler may otherwise think that nothing more comes.
  void Announce(uint64_t estimate_ns, const GateDemand& demand);

  /// Whether what is in flight is the last of its grant: nothing may be submitted until there is another.
  bool Ends() const {
    const uint64_t word = page_.word.load(std::memory_order_relaxed);
    return ModeOf(word) == GateMode::kRevoked ||
           (ModeOf(word) == GateMode::kSlice && page_.spent_epoch.load(std::memory_order_relaxed) == EpochOf(word));
  }
  /// Any thread: what the pieces of the slice that can be submitted under needed so far, and those in flight are
  /// estimated to need. 0: there is no such slice, or nothing was submitted. Just after a slice has begun it may be
  /// what was used of the one before.
  uint64_t TakenNs() const {
    const uint64_t word = page_.word.load(std::memory_order_relaxed);
    if (ModeOf(word) != GateMode::kSlice || Ends()) return 0;
    return used_in_grant_.load(std::memory_order_relaxed) + EstimateOf(page_.active.load(std::memory_order_relaxed));
  }
  /// Instead of Leave(), and before LeaveLate(): the piece is about to end. See page.h about tails.
  void LeaveEarly(uint64_t estimate_ns) {
    page_.tail.fetch_add(MakePiece(estimate_ns), std::memory_order_seq_cst);
    Leave(estimate_ns, estimate_ns);
  }
  /// What left early has ended.
  void LeaveLate(uint64_t estimate_ns, uint64_t used_ns) {
    if (used_ns != 0) page_.last_unit_ns.store(used_ns, std::memory_order_relaxed);
    // What was charged too much is taken off what comes next; what was charged too little is charged now.
    if (used_ns < estimate_ns) {
      credit_.fetch_add(estimate_ns - used_ns, std::memory_order_relaxed);
    } else {
      page_.used_ns.fetch_add(used_ns - estimate_ns, std::memory_order_relaxed);
    }
    page_.tail.fetch_sub(MakePiece(estimate_ns), std::memory_order_seq_cst);
    scheduler_.Ring();
  }

  /// The piece has ended (or could not be submitted: `used_ns` 0). The same estimate that entered.
  void Leave(uint64_t estimate_ns, uint64_t used_ns) {
    // As long as it was, whatever is charged for it.
    page_.last_unit_ns.store(used_ns, std::memory_order_relaxed);
    if (const uint64_t credit = credit_.load(std::memory_order_relaxed); credit != 0) {
      const uint64_t off = std::min(credit, used_ns);
      credit_.fetch_sub(off, std::memory_order_relaxed);
      used_ns -= off;
    }
    used_in_grant_.fetch_add(used_ns, std::memory_order_relaxed);
    page_.used_ns.fetch_add(used_ns, std::memory_order_relaxed);
    page_.completed.fetch_add(1, std::memory_order_relaxed);
    Subtract(MakePiece(estimate_ns));
    if (waits_.load(std::memory_order_seq_cst) != 0) own_.Ring();
  }

  /// Any thread: device time of something that was no piece.
  void Charge(uint64_t used_ns) {
    page_.used_ns.fetch_add(used_ns, std::memory_order_relaxed);
    page_.completed.fetch_add(1, std::memory_order_relaxed);
  }

  /// Any thread: Enter() returns false, now and later.
  void Cancel() {
    cancelled_.store(1, std::memory_order_relaxed);
    own_.Ring();
  }

  /// Length of the pieces that kernels should be split into now; HAWSER_UNIT_WHOLE and 0: do not split.
  uint64_t unit_ns() const { return unit_ns_; }
  /// Whether the grant is open: nobody else is there, so nothing needs to be measured or split.
  bool open() const { return admitted_ != kNone && ModeOf(admitted_) == GateMode::kOpen; }

  /// For the model check: all that the next steps of the submitting thread depend on, beside the page.
  uint64_t Digest() const { return (admitted_ + 1) * 1024 + spent_epoch_; }

 private:
  /// `admits`, of a word: whether the piece may be submitted under that.
  template <typename Admits>
  bool Submit(uint64_t estimate_ns, const Admits& admits) {
    const uint64_t piece = MakePiece(estimate_ns);
    const uint64_t before = page_.active.fetch_add(piece, std::memory_order_seq_cst);
    const uint64_t word = page_.word.load(std::memory_order_seq_cst);
    if (admits(word)) {
      // One piece may always be in flight, however long; and several that are no longer than one.
      if (PiecesOf(before) == 0 || EstimateOf(before) < cap_ns_ || MakesAUnit(before, piece)) {
        if (ModeOf(word) == GateMode::kOpen || TakeFromSlice(before, piece)) return true;
      }
    }
    Subtract(piece);
    return false;
  }

  template <typename Resize>
  bool TryEnterAs(uint64_t* estimate_ns, const Resize& resize) {
    const uint64_t known = page_.word.load(std::memory_order_seq_cst);
    if (known != admitted_) {
      if (!Admit(known)) return false;
      *estimate_ns = resize();
    }
    // Not under a grant that has come meanwhile: it may want another size.
    return Submit(*estimate_ns, [known](uint64_t word) { return word == known; });
  }

  /// `attempt`: TryEnter() or TryEnterAs().
  template <typename Attempt>
  bool EnterNowBy(const Attempt& attempt) {
    if (!attempt()) return false;
    if (page_.demand.load(std::memory_order_relaxed) != 0) Withdraw();
    return true;
  }
  template <typename Attempt>
  bool EnterBy(uint64_t estimate_ns, const GateDemand& demand, std::chrono::nanoseconds at_most,
               std::chrono::nanoseconds spin, const Attempt& attempt);

  /// Nobody waits any more.
  void Withdraw() {
    page_.pending_ns.store(0, std::memory_order_relaxed);
    page_.pending_count.store(0, std::memory_order_relaxed);
    page_.oldest_arrival_ns.store(0, std::memory_order_relaxed);
    page_.demand.store(0, std::memory_order_seq_cst);
  }

  /// Whether a word, as far as it says, lets submit.
  bool MayAdmit(uint64_t word) const {
    if (word == admitted_) return true;
    const GateMode mode = ModeOf(word);
    return (mode == GateMode::kOpen || mode == GateMode::kSlice) && EpochOf(word) != spent_epoch_;
  }

  /// The word is not the one that is known. Whether it lets submit.
  bool Admit(uint64_t word) {
    if (!MayAdmit(word)) return false;
    // A new grant: it comes only after everything of the last one has ended.
    admitted_ = word;
    slice_ns_ = page_.slice_ns.load(std::memory_order_relaxed);
    cap_ns_ = page_.cap_ns.load(std::memory_order_relaxed);
    unit_ns_ = page_.unit_ns.load(std::memory_order_relaxed);
    used_in_grant_.store(0, std::memory_order_relaxed);
    return true;
  }

  /// A little more than a unit, because parts have whole work-groups.
  bool MakesAUnit(uint64_t before, uint64_t piece) const {
    return unit_ns_ != HAWSER_UNIT_WHOLE && EstimateOf(before) + EstimateOf(piece) <= unit_ns_ + unit_ns_ / 16;
  }

  bool TakeFromSlice(uint64_t before, uint64_t piece) {
    const uint64_t taken = used_in_grant_.load(std::memory_order_relaxed) + EstimateOf(before);
    if (taken < slice_ns_ && taken + EstimateOf(piece) < slice_ns_) return true;
    // This piece is the last, or the slice was used by pieces longer than estimated.
    spent_epoch_ = EpochOf(admitted_);
    admitted_ = kNone;
    page_.spent_epoch.store(spent_epoch_, std::memory_order_seq_cst);
    return taken < slice_ns_;
  }

  void Subtract(uint64_t piece) {
    const uint64_t before = page_.active.fetch_sub(piece, std::memory_order_seq_cst);
    if (PiecesOf(before) != 1) return;
    const GateMode mode = ModeOf(page_.word.load(std::memory_order_seq_cst));
    if (mode == GateMode::kSlice || mode == GateMode::kRevoked) scheduler_.Ring();
  }

  Page& page_;
  Bell& scheduler_;
  Bell& own_;
  // The submitting thread's.
  static constexpr uint64_t kNone = UINT64_MAX;  ///< No word is that.
  uint64_t admitted_ = kNone;                    ///< The word under which it submits.
  uint64_t spent_epoch_ = 0;
  uint64_t slice_ns_ = 0, cap_ns_ = 0, unit_ns_ = 0;
  // Both sides of the worker.
  Atomic<uint64_t> used_in_grant_{0};
  Atomic<uint64_t> waits_{0};  ///< The submitting thread is about to sleep, or sleeps.
  Atomic<uint64_t> cancelled_{0};
  Atomic<uint64_t> credit_{0};  ///< Nanoseconds that were charged too much.
};

template <template <typename> class Atomic>
void BasicGate<Atomic>::Announce(uint64_t estimate_ns, const GateDemand& demand) {
  page_.pending_ns.store(demand.pending_ns != 0 ? demand.pending_ns : estimate_ns, std::memory_order_relaxed);
  page_.pending_count.store(demand.pending_count, std::memory_order_relaxed);
  page_.oldest_arrival_ns.store(demand.oldest_arrival_ns, std::memory_order_relaxed);
  page_.next_unit_ns.store(demand.unit_ns, std::memory_order_relaxed);
  // Whoever makes it 1 rings.
  if (page_.demand.exchange(1, std::memory_order_seq_cst) != 0) return;
  // Under an open grant it waits for its own pieces only. If that is taken back now, the scheduler sees the demand.
  if (ModeOf(page_.word.load(std::memory_order_seq_cst)) != GateMode::kOpen) scheduler_.Ring();
}

template <template <typename> class Atomic>
template <typename Attempt>
bool BasicGate<Atomic>::EnterBy(uint64_t estimate_ns, const GateDemand& demand, std::chrono::nanoseconds at_most,
                                std::chrono::nanoseconds spin, const Attempt& attempt) {
  if (EnterNowBy(attempt)) return true;
  Announce(estimate_ns, demand);
  const auto begin = std::chrono::steady_clock::now();
  bool entered = false;
  while (true) {
    waits_.store(1, std::memory_order_seq_cst);
    const uint64_t ticket = own_.Ticket();
    entered = attempt();
    if (entered) break;
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (waited >= at_most || cancelled_.load(std::memory_order_relaxed) != 0) break;
    const bool staged = (page_.word.load(std::memory_order_relaxed) & kStagedFlag) != 0;
    if (waited >= spin || !staged) own_.Wait(ticket, at_most - waited);
  }
  waits_.store(0, std::memory_order_seq_cst);
  Withdraw();
  if (!entered) scheduler_.Ring();  // It may have been chosen for what it no longer wants.
  return entered;
}

using Gate = BasicGate<std::atomic>;

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_GRANT_GATE_H_
